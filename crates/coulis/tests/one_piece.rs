//! Elements that lie in one piece beside a mask or a second array that does not: masks of rows and of columns, factors of
//! each column, in memory that is aligned and that is not. The simulator finds no violation.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Special, array, check, numbers};

use coulis::reduce::{array_info, plan};
use coulis::{Array, DType, DeviceChoice, Request};

/// An array of these extents whose first element is the `start`-th of its memory.
fn made(dtype: DType, shape: &[i64], start: i64, seed: u64) -> Array {
    let n: i64 = shape.iter().product();
    let numbers = match dtype {
        DType::Bool => (0..n + start).map(|i| f64::from((i * 7 + seed as i64) % 5 < 3)).collect(),
        _ => numbers((n + start) as usize, Special::Zeros, seed),
    };
    let strides: Vec<i64> = (0..shape.len()).map(|d| shape[d + 1..].iter().product()).collect();
    array(dtype, &[n + start], &numbers).view(shape, &strides, start).unwrap()
}

/// Compares a call in the simulator with the exact one; its schedule.
#[track_caller]
fn exact(inputs: &[Array], mask: Option<&Array>, ops: &[&str], axes: &[i64], warp: u32) -> String {
    let device = DeviceChoice::Sim { warp, orders: 1 };
    let request = Request { device, where_: mask.cloned(), ..Request::new(ops).over(axes) };
    let of = format!("{ops:?} over {axes:?} of {} {:?}", inputs[0].dtype(), inputs[0].shape());
    check(inputs, &request).unwrap_or_else(|why| panic!("{of}: {why}"));
    let infos: Vec<_> = inputs.iter().map(array_info).collect();
    plan(&infos, &request).unwrap().trace
}

const KINDS: [(DType, &[&str]); 6] = [
    (DType::U8, &["sum", "all"]),
    (DType::F32, &["sum", "var"]),
    (DType::F16, &["mean", "var", "count"]),
    (DType::I64, &["sum"]),
    (DType::BF16, &["logsumexp"]),
    (DType::I16, &["norm2", "any"]),
];

#[test]
fn masks_of_rows_and_columns_leave_words_to_the_elements() {
    let shapes: [&[i64]; 5] = [&[41, 33], &[3, 5, 37], &[2, 3, 4, 19], &[7, 300], &[2, 129, 5]];
    let mut n_words = 0;
    for (turn, (dtype, ops)) in KINDS.into_iter().enumerate() {
        for (at, shape) in shapes.into_iter().enumerate() {
            // Each set of dimensions along which the mask has elements of its own.
            for own in 0..1usize << shape.len() {
                if !(own + turn + at).is_multiple_of(3) {
                    continue;
                }
                let extents: Vec<i64> =
                    (0..shape.len()).map(|d| if own >> d & 1 == 1 { shape[d] } else { 1 }).collect();
                let x = made(dtype, shape, (own % 3) as i64, (turn + at) as u64);
                let mask = made(DType::Bool, &extents, (at % 2) as i64, own as u64);
                let warp = if at % 2 == 0 { 32 } else { 64 };
                let all: Vec<i64> = (0..shape.len() as i64).collect();
                let trace = exact(std::slice::from_ref(&x), Some(&mask), ops, &all, warp);
                n_words += usize::from(trace.contains("vectorize"));
                exact(std::slice::from_ref(&x), Some(&mask), ops, &all[1..], warp);
                exact(std::slice::from_ref(&x), Some(&mask), ops, &all[..1], warp);
            }
        }
    }
    assert!(n_words > 60, "{n_words}");
}

#[test]
fn rows_of_nothing_and_no_rows_have_masks_too() {
    for shape in [[0, 33], [5, 0], [0, 0], [1, 33], [33, 1]] {
        for own in [[1, shape[1]], [shape[0], 1], [1, 1]] {
            let (x, mask) = (made(DType::F32, &shape, 0, 1), made(DType::Bool, &own, 0, 2));
            exact(std::slice::from_ref(&x), Some(&mask), &["sum", "count"], &[0, 1], 32);
        }
    }
}

#[test]
fn factors_of_rows_and_columns_are_found_beside_words() {
    for (turn, dtype) in [DType::F32, DType::BF16, DType::I8, DType::F64].into_iter().enumerate() {
        for (at, shape) in [[41, 33], [9, 125], [300, 7], [5, 1030]].into_iter().enumerate() {
            for factor in [[1, shape[1]], [shape[0], 1], [1, 1]] {
                let x = made(dtype, &shape, (at % 2) as i64, (turn + at) as u64);
                let y = made(dtype, &factor, (turn % 2) as i64, 3);
                for ops in [&["dot"][..], &["wmean", "dot"]] {
                    let request = [x.clone(), y.clone()];
                    exact(&request, None, ops, &[0, 1], 32);
                }
                let mask = made(DType::Bool, &[1, shape[1]], 0, 5);
                exact(&[x, y], Some(&mask), &["dot"], &[0, 1], 64);
            }
        }
    }
}
