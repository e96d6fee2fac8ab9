//! Outputs that fold pieces of neighbours apart from each other: slices of every width and begin, channels of images of odd
//! size, permuted arrays whose positions do not follow memory; in memory that is aligned and that is not. The simulator
//! finds no violation.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Special, array, check, numbers};

use coulis::reduce::{array_info, plan};
use coulis::{Array, DType, DeviceChoice, Request};

/// A view of memory of made-up numbers.
fn view(dtype: DType, shape: &[i64], strides: &[i64], start: i64, special: Special) -> Array {
    let reach: i64 = shape.iter().zip(strides).map(|(n, stride)| (n - 1) * stride.abs()).sum();
    let before: i64 = shape.iter().zip(strides).map(|(n, stride)| (n - 1) * (-stride).max(0)).sum();
    let n = reach + start + 1;
    array(dtype, &[n], &numbers(n as usize, special, 11 + n as u64))
        .view(shape, strides, start + before)
        .unwrap()
}

#[track_caller]
fn exact(x: &Array, ops: &[&str], axes: &[i64], warp: u32) -> String {
    let request = Request { device: DeviceChoice::Sim { warp, orders: 1 }, ..Request::new(ops).over(axes) };
    let name = plan(&[array_info(x)], &request).unwrap().name;
    let of = format!("{ops:?} over {axes:?} of {} {:?} by {:?}", x.dtype(), x.shape(), x.strides());
    check(std::slice::from_ref(x), &request).unwrap_or_else(|why| panic!("{of}: {why}"));
    name
}

const KINDS: [(DType, &[&str]); 6] = [
    (DType::I8, &["sum", "count_nonzero"]),
    (DType::F32, &["sum", "var", "argmax"]),
    (DType::F16, &["mean", "var"]),
    (DType::I64, &["argmin_last", "min"]),
    (DType::BF16, &["logsumexp"]),
    (DType::F16, &["sum", "mean", "var", "min", "max", "argmax"]),
];

#[test]
fn rows_of_a_slice_are_folded_together_wherever_it_begins() {
    let mut n_pieces = 0;
    for (turn, width) in [3, 9, 31, 40, 129, 146, 300].into_iter().enumerate() {
        for (at, (gap, start)) in [(1, 0), (1, 1), (7, 3), (16, 0)].into_iter().enumerate() {
            let (dtype, ops) = KINDS[(turn + at) % KINDS.len()];
            let special = [Special::Zeros, Special::All, Special::Nan][(turn + 2 * at) % 3];
            let warp = if at % 2 == 0 { 32 } else { 64 };
            let x = view(dtype, &[41, width], &[width + gap, 1], start, special);
            n_pieces += i64::from(exact(&x, ops, &[0, 1], warp) == "gpu_pieces");
            exact(&x, ops, &[1], warp);
            exact(&x, ops, &[0], warp);
        }
    }
    assert!(n_pieces >= 20, "{n_pieces} of 28");
}

#[test]
fn channels_of_odd_images_are_folded_as_whole_pieces() {
    for (turn, (dtype, ops)) in KINDS.into_iter().enumerate() {
        for (at, image) in [[7, 7], [13, 17], [5, 41]].into_iter().enumerate() {
            let shape = [6, 3, image[0], image[1]];
            let n = shape.iter().product::<i64>() as usize;
            let x = array(dtype, &shape, &numbers(n, Special::Zeros, (turn + at) as u64));
            assert_eq!(exact(&x, ops, &[0, 2, 3], 32), "gpu_pieces", "{dtype} {shape:?}");
        }
    }
}

#[test]
fn positions_of_permuted_arrays_are_theirs_and_not_those_of_memory() {
    for (shape, strides) in
        [([4, 500], [1, 4]), ([33, 60], [1, 33]), ([60, 33], [-33, 1]), ([2, 300], [1, 3])]
    {
        for ops in [&["argmax"][..], &["sum", "argmin_last", "argmax"]] {
            for dtype in [DType::I8, DType::BF16] {
                exact(&view(dtype, &shape, &strides, 0, Special::All), ops, &[0, 1], 32);
            }
        }
    }
}

#[test]
fn rows_that_begin_behind_a_boundary_are_read_from_it() {
    for start in [1, 2, 3, 5, 8, 13] {
        for (dtype, ops) in KINDS {
            for length in [70, 1029, 2048] {
                let x = view(dtype, &[5, length], &[length, 1], start, Special::Zeros);
                exact(&x, ops, &[1], 32);
                exact(&x, ops, &[0], 32);
                exact(&x, ops, &[0, 1], 32);
            }
        }
    }
}
