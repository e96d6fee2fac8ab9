//! Views whose innermost dimension in memory is none for vectors: broadcast rows and columns, and some of the channels of pixels, on
//! the CPU, by plans for a GPU in the simulator, and on one where there is one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "common/gpu.rs"]
mod gpu;

use common::{Special, array, check, numbers};
use coulis::{Array, DType, DeviceChoice, Request};

const OPS: [&[&str]; 3] = [&["sum", "var", "max"], &["argmax", "argmin_last"], &["logsumexp"]];

/// A view of new elements, and the axes to fold.
type Case = (&'static [i64], &'static [i64], i64, &'static [i64]);

const CASES: [Case; 6] = [
    // A column broadcast along rows, folded along either.
    (&[70, 90], &[96, 0], 0, &[0]),
    (&[70, 90], &[96, 0], 0, &[1]),
    // A row broadcast along columns, in steps of lines.
    (&[70, 90], &[0, 64], 0, &[0]),
    (&[70, 90], &[0, 64], 0, &[1]),
    // Three of four channels of images, forwards and backwards.
    (&[33, 77, 3], &[308, 4, 1], 0, &[0]),
    (&[33, 77, 3], &[308, 4, -1], 3, &[0]),
];

fn made(dtype: DType, (shape, strides, start, _): Case, special: Special) -> Array {
    let last = |(&n, &stride): (&i64, &i64)| (n - 1) * stride.max(0);
    let n = start + shape.iter().zip(strides).map(last).sum::<i64>() + 1;
    array(dtype, &[n], &numbers(n as usize, special, n as u64)).view(shape, strides, start).unwrap()
}

#[test]
fn broadcast_dimensions_and_channels_are_folded_right() {
    let found = gpu::gpu().map(|_| DeviceChoice::Cuda(0));
    for device in [DeviceChoice::Cpu, DeviceChoice::Sim { warp: 32, orders: 1 }].into_iter().chain(found) {
        for (at, case) in CASES.into_iter().enumerate() {
            for (ops, dtype) in OPS.into_iter().zip([DType::F32, DType::I8, DType::F16]) {
                let special = if dtype.is_float() && at % 2 == 0 { Special::All } else { Special::Few };
                let request = Request { device: device.clone(), ..Request::new(ops).over(case.3) };
                check(&[made(dtype, case, special)], &request)
                    .unwrap_or_else(|why| panic!("{ops:?} of {dtype} {case:?} on {device:?}: {why}"));
            }
        }
    }
}
