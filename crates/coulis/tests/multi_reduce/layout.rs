//! Where arrays lie in memory: T55, T56, T58, T59.

use coulis::{DType, Request};

use crate::common::{Lie, Special, array, numbers, view};
use crate::harness::{Compiled, Whole, exact_everywhere};

#[test]
fn mr_t55_inputs_one_element_off_an_aligned_address() {
    for (nth, dtype) in DType::ALL.into_iter().enumerate() {
        for shape in [[[1i64, 2000], [20, 97], [97, 20]][nth % 3], [9, 33]] {
            let n = (shape[0] * shape[1]) as usize;
            let whole = array(dtype, &[n as i64 + 16], &numbers(n + 16, Special::Zeros, 4));
            let shifted = whole.view(&shape, &[shape[1], 1], 1).unwrap();
            for axes in [&[1i64][..], &[0]] {
                let call = Request::new(&["sum", "max"]).over(axes);
                exact_everywhere(std::slice::from_ref(&shifted), &call, Compiled::No);
            }
        }
    }
}

#[test]
fn mr_t56_transposed_stepped_reversed_repeated_and_overlapping_views() {
    let ops = ["sum", "max", "argmin"];
    let lies = [Lie::Dense, Lie::Backward, Lie::Repeated, Lie::Gap(3)];
    let orders: [[usize; 3]; 2] = [[0, 1, 2], [1, 2, 0]];
    for (at, lie) in lies.into_iter().enumerate() {
        for (nth, order) in orders.iter().enumerate() {
            let of = [lie, lies[(at + nth) % 4], Lie::Dense];
            let input = view(DType::F32, &[7, 13, 17], order, &of, |n| numbers(n, Special::Zeros, 7));
            for axes in [&[2i64][..], &[0, 2]] {
                exact_everywhere(std::slice::from_ref(&input), &Request::new(&ops).over(axes), Compiled::No);
            }
        }
    }
    // Windows of 30 elements, 4 apart: every element is read by several rows.
    let line = array(DType::F32, &[500], &numbers(500, Special::Zeros, 2));
    let windows = line.view(&[100, 30], &[4, 1], 0).unwrap();
    for axes in [&[1i64][..], &[0], &[0, 1]] {
        exact_everywhere(std::slice::from_ref(&windows), &Request::new(&ops).over(axes), Compiled::Yes);
    }
}

#[test]
fn mr_t58_no_extent_is_too_odd_for_a_plan() {
    for columns in (1..40i64).step_by(3) {
        Whole::new(DType::F32, &[33, columns], &[1], &["sum"]).check(Compiled::No);
        Whole::new(DType::F32, &[columns, 33], &[0], &["sum"]).check(Compiled::No);
    }
}

#[test]
fn mr_t59_what_is_not_contiguous_is_read_right_without_a_copy() {
    let wide = array(DType::F64, &[40, 100], &numbers(4000, Special::Zeros, 12));
    let columns = wide.view(&[40, 33], &[100, 3], 1).unwrap();
    exact_everywhere(&[columns], &Request::new(&["mean", "var", "max"]).over(&[0]), Compiled::Yes);
}
