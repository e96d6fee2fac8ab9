//! Outputs that are folded over rows that lie apart, on the CPU: kinds of statistics and widths of types, rows of every length that is
//! folded in a way of its own, images in one part and in several, and special values.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Special, array, check, numbers};
use coulis::reduce::plan;
use coulis::{Array, DType, Request};
use coulis_ir::args::{ArrayInfo, compact_strides};

fn made(dtype: DType, shape: &[i64], special: Special, seed: u64) -> Array {
    let n = shape.iter().product::<i64>() as usize;
    array(dtype, shape, &numbers(n, special, seed))
}

const KINDS: [(DType, &[&str]); 9] = [
    (DType::F32, &["sum"]),
    (DType::F32, &["sum", "mean", "var", "min", "max"]),
    (DType::F16, &["mean", "var"]),
    (DType::BF16, &["mean", "meansq"]),
    (DType::F32, &["logsumexp"]),
    (DType::F32, &["argmax", "argmin_last"]),
    (DType::F64, &["var", "absmax"]),
    (DType::I8, &["sum", "max", "argmax"]),
    (DType::Bool, &["any", "count_nonzero"]),
];

const MOST_ELEMENTS: i64 = 1 << 24;

/// Lengths of rows that are folded one element after another, by short vectors, and by long ones, with and without an end.
const LENGTHS: [i64; 6] = [7, 16, 49, 196, 277, 1024];

/// As many times the images as are folded in that order, which those are that no cache holds.
fn no_cache_holds(dtype: DType, [images, channels, length]: [i64; 3], request: &Request) -> Option<[i64; 3]> {
    let shapes = (0..24).map(|power| [images << power, channels, length]);
    let mut in_reach = shapes.take_while(|shape| shape.iter().product::<i64>() <= MOST_ELEMENTS);
    in_reach.find(|shape| {
        let info = ArrayInfo { dtype, shape: shape.to_vec(), strides: compact_strides(shape) };
        plan(&[info], request).unwrap().name == "rows_apart"
    })
}

#[test]
fn statistics_of_channels_are_exact_in_the_order_of_memory() {
    let machine = coulis::machine::machine().unwrap();
    if machine.vector_bytes > 256 {
        println!("SKIP statistics_of_channels_are_exact_in_the_order_of_memory: vectors are no registers");
        return;
    }
    let mut taken = 0;
    for (at, (dtype, ops)) in KINDS.into_iter().enumerate() {
        // Tiles of all threads, and parts of the images of one tile.
        for (turn, (channels, parts)) in [(512, 1), (48, 16)].into_iter().enumerate() {
            let length = LENGTHS[(at + 2 * turn) % LENGTHS.len()];
            let request = Request::new(ops).over(&[0, 2]);
            let Some(shape) = no_cache_holds(dtype, [parts, channels, length], &request) else { continue };
            taken += 1;
            let special = match (at + turn) % 3 {
                0 if dtype.is_float() => Special::Zeros,
                1 if dtype.is_float() => Special::All,
                2 if dtype.is_float() => Special::Nan,
                _ => Special::Few,
            };
            let input = made(dtype, &shape, special, (10 * at + turn) as u64);
            check(&[input], &request).unwrap_or_else(|why| panic!("{ops:?} of {dtype} {shape:?}: {why}"));
        }
    }
    assert!(taken > KINDS.len(), "{taken} of {}", 2 * KINDS.len());
}
