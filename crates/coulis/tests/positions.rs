//! Positions of extrema on machines with threads, where elements are equal by the dozen and some are NaN:
//! runs seek the position by a second walk, from their last element to their first, of rows, of columns by
//! several a thread, and of rows in shared memory. And on every machine, where the order of memory is not
//! that of positions.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Lie, array, check, view};

use coulis::{DType, DeviceChoice, Request};

/// Elements of three values, by a rule that repeats after no power of two; each `nan`-th one is NaN.
fn few_values(n: usize, nan: usize) -> Vec<f64> {
    let value = |i: usize| [1.0, -2.0, 2.0, 2.0, -2.0, 0.0, 1.0][(i * i + i / 7) % 7];
    (0..n).map(|i| if nan > 0 && i % nan == nan - 1 { f64::NAN } else { value(i) }).collect()
}

#[test]
fn the_first_and_the_last_of_equal_ones_are_told_apart_in_every_plan() {
    let shapes: [(&[i64], &[i64]); 6] = [
        (&[2, 700], &[1]),
        (&[5, 133], &[1]),
        (&[260, 17], &[1]),
        (&[150, 64], &[0]),
        (&[180, 33], &[0]),
        (&[2, 70, 24], &[1]),
    ];
    let ops: [&[&str]; 3] = [
        &["argmax"],
        &["argmin", "argmax_last", "logsumexp"],
        &["sum", "mean", "var", "min", "max", "argmax"],
    ];
    let dtypes = [DType::F32, DType::BF16, DType::F16, DType::F64];
    let mut turn = 0;
    for (shape, axes) in shapes {
        for ops in ops {
            let n = shape.iter().product::<i64>() as usize;
            let nan = if turn / 2 % 2 == 0 { 0 } else { 97 };
            let input = [array(dtypes[turn % dtypes.len()], shape, &few_values(n, nan))];
            let device = DeviceChoice::Sim { warp: if turn % 5 == 0 { 64 } else { 32 }, orders: 1 };
            let request = Request { device, ..Request::new(ops).over(axes) };
            check(&input, &request).unwrap_or_else(|why| panic!("{ops:?} of {shape:?}, {nan}: {why}"));
            turn += 1;
        }
    }
}

/// Narrow columns alone: each thread folds all that it has in one run, in which positions are noted in
/// passing. It is walked again where an element is NaN, or where infinities of both signs add up to one.
#[test]
fn positions_of_narrow_columns_are_noted_in_passing() {
    let shapes: [(&[i64], &[i64]); 4] =
        [(&[700, 64], &[0]), (&[900, 7], &[0]), (&[3, 210, 40], &[1]), (&[4, 6, 70, 24], &[0, 2])];
    let worst: fn(usize) -> f64 = |_| f64::NEG_INFINITY;
    let mixed: fn(usize) -> f64 = |i| [1.0, f64::INFINITY, f64::NEG_INFINITY, 2.0, 1.0][(i * i + i / 7) % 5];
    let mut turn = 0;
    for (shape, axes) in shapes {
        for dtype in [DType::F16, DType::BF16, DType::I8, DType::I16] {
            let n = shape.iter().product::<i64>() as usize;
            let values = match turn % 4 {
                _ if dtype.is_int() => few_values(n, 0),
                0 => few_values(n, 97),
                1 => (0..n).map(worst).collect(),
                2 => (0..n).map(mixed).collect(),
                _ => few_values(n, 0),
            };
            let op = ["argmax", "argmin", "argmax_last", "argmin_last", "maxloc"][turn % 5];
            let device = DeviceChoice::Sim { warp: 32, orders: 1 };
            let request = Request { device, ..Request::new(&[op]).over(axes) };
            check(&[array(dtype, shape, &values)], &request)
                .unwrap_or_else(|why| panic!("{op} of {dtype} {shape:?}: {why}"));
            turn += 1;
        }
    }
}

/// Runs count steps in bytes where elements are bytes: of equal ones, of rows that end in the middle of a run, and of
/// elements that are all the worst.
#[test]
fn positions_of_narrow_integers_in_long_rows_are_those_of_the_first_and_the_last() {
    let shapes: [(&[i64], &[i64]); 5] = [
        (&[3, 9001], &[1]),
        (&[40_000], &[0]),
        (&[16, 1000], &[1]),
        (&[8, 130], &[1]),
        (&[3, 1000, 70], &[1]),
    ];
    let mut turn = 0;
    for (shape, axes) in shapes {
        for dtype in [DType::Bool, DType::I8, DType::U8, DType::I16] {
            for device in [DeviceChoice::Cpu, DeviceChoice::CpuExecuted] {
                let n = shape.iter().product::<i64>() as usize;
                let far: fn(usize) -> f64 = |i| f64::from(u8::from(i % 8999 == 8998));
                let values: Vec<f64> = match (turn / 2 % 4, dtype) {
                    (0, _) => (0..n).map(far).collect(),
                    (1, DType::I8) => vec![-128.0; n],
                    (1, _) => vec![0.0; n],
                    _ => (0..n)
                        .map(|i| ((i * i + i / 7) % if dtype == DType::Bool { 2 } else { 99 }) as f64)
                        .collect(),
                };
                let op = ["argmax", "argmin_last", "minloc"][turn / 2 % 3];
                let request = Request { device, ..Request::new(&[op]).over(axes) };
                check(&[array(dtype, shape, &values)], &request)
                    .unwrap_or_else(|why| panic!("{op} of {dtype} {shape:?}: {why}"));
                turn += 1;
            }
        }
    }
}

#[test]
fn positions_are_told_in_the_order_of_axes_whatever_the_order_of_memory() {
    let cases: [(&[i64], &[usize], &[i64]); 7] = [
        (&[1000, 3], &[1, 0], &[0, 1]),
        (&[3, 700], &[1, 0], &[0, 1]),
        (&[70, 65], &[1, 0], &[0, 1]),
        (&[9, 200, 4], &[2, 1, 0], &[0, 1]),
        (&[4, 200, 9], &[1, 2, 0], &[0, 1]),
        (&[300, 2, 5], &[1, 0, 2], &[0, 1]),
        (&[3, 3, 5, 70], &[3, 2, 1, 0], &[0, 1, 2, 3]),
    ];
    let ops: [&[&str]; 3] =
        [&["argmax"], &["argmax_last", "minloc"], &["sum", "argmin", "argmin_last", "maxloc", "var"]];
    let dtypes = [DType::F32, DType::I8, DType::F16, DType::F64, DType::BF16];
    let mut turn = 0;
    for (shape, order, axes) in cases {
        for ops in ops {
            for device in [
                DeviceChoice::Cpu,
                DeviceChoice::CpuExecuted,
                DeviceChoice::Sim { warp: if turn % 2 == 0 { 32 } else { 64 }, orders: 1 },
            ] {
                let nan = if turn / 2 % 2 == 0 { 0 } else { 97 };
                let lies = vec![if turn % 3 == 0 { Lie::Backward } else { Lie::Dense }; shape.len()];
                let input = view(dtypes[turn % dtypes.len()], shape, order, &lies, |n| few_values(n, nan));
                let request = Request { device: device.clone(), ..Request::new(ops).over(axes) };
                check(&[input], &request).unwrap_or_else(|why| {
                    panic!("{ops:?} of {shape:?} as {order:?}, {lies:?}, {device:?}: {why}")
                });
                turn += 1;
            }
        }
    }
}

#[test]
fn narrow_integers_of_few_values_have_the_first_and_the_last_of_equal_ones_in_every_plan() {
    let shapes: [(&[i64], &[i64]); 4] =
        [(&[9000], &[0]), (&[37, 133], &[1]), (&[260, 17], &[1]), (&[5, 6, 77], &[0, 2])];
    let ops: [&[&str]; 3] = [&["argmax"], &["argmin_last", "minloc"], &["sum", "var", "max", "argmin"]];
    let dtypes = [DType::I8, DType::Bool, DType::I16, DType::U8];
    let mut turn = 0;
    for (shape, axes) in shapes {
        for ops in ops {
            let n = shape.iter().product::<i64>() as usize;
            let input = [array(dtypes[turn % dtypes.len()], shape, &few_values(n, 0))];
            for device in [DeviceChoice::Cpu, DeviceChoice::CpuExecuted] {
                let request = Request { device, ..Request::new(ops).over(axes) };
                check(&input, &request).unwrap_or_else(|why| panic!("{ops:?} of {shape:?}: {why}"));
            }
            turn += 1;
        }
    }
}
