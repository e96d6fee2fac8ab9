//! Extrema and their positions over the whole range of every integer type, on the CPU: in rows and columns of each width that
//! vectors have, where compilers know several ways to compare and select.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::check;
use coulis::{Array, DType, Request};

/// Bytes of random integers, with both ends of the range among them.
fn bytes(dtype: DType, n: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 8
    };
    let width = dtype.bytes();
    let mut all = Vec::with_capacity(n * width);
    for _ in 0..n {
        let random = next();
        let value = match random % 61 {
            0 => 0,
            1 => u64::MAX,
            2 => 1 << (8 * width - 1),
            3 => (1 << (8 * width - 1)) - 1,
            _ => next() ^ (next() << 40),
        };
        all.extend_from_slice(&value.to_le_bytes()[..width]);
    }
    all
}

#[test]
fn extrema_of_every_integer_type_are_exact_over_its_whole_range() {
    let types =
        [DType::U8, DType::I8, DType::U16, DType::I16, DType::U32, DType::I32, DType::U64, DType::I64];
    let shapes: [(&[i64], &[i64]); 9] = [
        (&[40_000], &[0]),
        (&[70, 600], &[1]),
        (&[70, 277], &[1]),
        (&[500, 33], &[1]),
        (&[500, 7], &[1]),
        (&[300, 130], &[0]),
        (&[900, 3], &[0]),
        (&[5, 60, 40], &[1]),
        (&[9, 32, 50], &[0, 2]),
    ];
    for (at, dtype) in types.into_iter().enumerate() {
        for (shape, axes) in shapes {
            for ops in
                [&["max"][..], &["min"], &["absmax"], &["argmax", "argmin_last"], &["sum", "min", "max"]]
            {
                let n = shape.iter().product::<i64>() as usize;
                let input = Array::from_bytes(dtype, shape, &bytes(dtype, n, at as u64)).unwrap();
                check(&[input], &Request::new(ops).over(axes))
                    .unwrap_or_else(|why| panic!("{ops:?} of {dtype} {shape:?} over {axes:?}: {why}"));
            }
        }
    }
}
