//! Normalizations in two folds of rows and columns that near caches hold, against references in `float64`: what leaves the range of
//! exponentials, and every way to cut columns into tiles.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "common/normalizations.rs"]
mod meaning;

use common::{Special, array, numbers};
use coulis::{DType, DeviceChoice};
use meaning::Case;

const EXECUTED: DeviceChoice = DeviceChoice::CpuExecuted;

/// Rows of each length that a near cache holds, with what leaves the range of exponentials in some of them, and the same as columns.
#[test]
fn rows_and_columns_of_extreme_elements_are_right() {
    const INF: f64 = f64::INFINITY;
    let extremes: [&[f64]; 9] = [
        &[],
        &[60.0],
        &[-80.0, 60.0],
        &[3e38, -3e38],
        &[-INF],
        &[INF],
        &[f64::NAN],
        &[f64::NAN, INF],
        &[-50.0, 55.0, -INF],
    ];
    for dtype in [DType::F32, DType::BF16, DType::F8E5M2, DType::F64, DType::I16] {
        for n in [15usize, 16, 33, 63, 100, 128, 250, 1000, 2100] {
            if dtype != DType::F32 && n % 10 > 0 {
                continue;
            }
            let mut all = Vec::new();
            for (nth, extreme) in extremes.iter().enumerate() {
                let extreme = if dtype.is_float() { extreme } else { &extreme[..0] };
                let mut row = numbers(n, Special::Zeros, (n + nth) as u64);
                // At the ends and wherever lanes begin.
                for (at, value) in extreme.iter().enumerate() {
                    row[(nth * 29 + at * 8) % n] = *value;
                    row[n - 1 - at] = *value;
                }
                all.extend(row);
            }
            let infinite = vec![if dtype.is_float() { -INF } else { 7.0 }; n];
            all.extend(infinite);
            let n_rows = extremes.len() + 1;
            let x = array(dtype, &[n_rows as i64, n as i64], &all);
            let turned: Vec<f64> = (0..all.len()).map(|at| all[at % n_rows * n + at / n_rows]).collect();
            let columns = array(dtype, &[n as i64, n_rows as i64], &turned);
            for name in ["softmax", "log_softmax"] {
                for (x, axis) in [(&x, 1), (&columns, 0)] {
                    if axis == 0 && n > 250 {
                        continue;
                    }
                    let case = Case::new(name, &[axis]);
                    assert_eq!(case.check(x, &EXECUTED), Ok(()), "{name} {dtype} {n} {axis}");
                    let is_compiled = n == 100 || n == 250 && axis == 1;
                    if is_compiled && [DType::F32, DType::BF16].contains(&dtype) {
                        assert_eq!(case.check(x, &DeviceChoice::Cpu), Ok(()), "{name} {dtype} {n} {axis}");
                    }
                }
            }
        }
    }
}

#[test]
fn columns_of_every_tiling_are_right() {
    let shapes: [(&[i64], &[usize]); 7] = [
        (&[2, 21, 75], &[1]),
        (&[2, 23, 65], &[1]),
        (&[40, 24], &[0]),
        (&[64, 68], &[0]),
        (&[1, 90], &[0]),
        (&[3, 2, 7, 66], &[0, 2]),
        (&[200, 8], &[0]),
    ];
    for (shape, axes) in shapes {
        for dtype in [DType::F32, DType::F16, DType::I8] {
            let n = shape.iter().product::<i64>() as usize;
            let of = |dtype: DType| array(dtype, shape, &numbers(n, Special::Zeros, 7));
            let x = of(dtype);
            for name in ["softmax", "log_softmax"] {
                let plain = Case::new(name, axes);
                let prior = (dtype == DType::F32).then(|| of(DType::F32));
                let scaled = Case { alpha: 0.5, prior, ..plain.clone() };
                for case in [plain, scaled] {
                    assert_eq!(case.check(&x, &EXECUTED), Ok(()), "{case:?} {dtype} {shape:?}");
                    if dtype == DType::F32 && shape.len() == 4 {
                        assert_eq!(case.check(&x, &DeviceChoice::Cpu), Ok(()), "{case:?} {shape:?}");
                    }
                }
            }
        }
    }
}
