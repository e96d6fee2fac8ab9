//! Elements that take no part, by a mask or as NaN that is ignored: they change nothing wherever they stand, in runs too, on the
//! CPU, by plans for a GPU in the simulator, and on one where there is one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "common/gpu.rs"]
mod gpu;

use common::{Special, array, check, numbers};
use coulis::{Array, DType, DeviceChoice, NanPolicy, Request};

/// Statistics of which runs tell which elements take part, alone and of several that share fields; and some of which they do not.
const OPS: [&[&str]; 8] = [
    &["sum"],
    &["mean", "max", "min"],
    &["logsumexp"],
    &["argmax"],
    &["argmin", "sumsq", "count"],
    &["norm2", "any", "all"],
    &["argmax_last", "var"],
    &["maxloc", "absmax", "prod"],
];

/// A shape, and the axes that are folded: columns, short rows, rows that are whole vectors and others, a middle axis, everything.
const SHAPES: [(&[i64], &[i64]); 6] = [
    (&[70, 70], &[0]),
    (&[300, 16], &[1]),
    (&[9, 512], &[1]),
    (&[20, 163], &[1]),
    (&[5, 40, 33], &[1]),
    (&[4100], &[0]),
];

/// Bools of that shape, of which two of three are true, none where the first index is 1, and all where it is 2.
fn mask(shape: &[i64]) -> Array {
    let n: i64 = shape.iter().product();
    let behind: i64 = shape[1..].iter().product();
    let take = |at: i64| (at * 7919 % 31 % 3 > 0 && at / behind != 1) || at / behind == 2;
    Array::from_bools(shape, &(0..n).map(take).collect::<Vec<_>>()).unwrap()
}

/// Masks that are broadcast in different ways: whole ones, and those of the first and of the last axis.
fn masks(shape: &[i64]) -> Vec<Array> {
    let mut first = vec![1; shape.len()];
    first[0] = shape[0];
    vec![mask(shape), mask(&first), mask(&shape[shape.len() - 1..])]
}

fn everywhere() -> Vec<DeviceChoice> {
    let mut found = vec![DeviceChoice::Cpu, DeviceChoice::Sim { warp: 32, orders: 1 }];
    found.extend(gpu::gpu().map(|_| DeviceChoice::Cuda(0)));
    found
}

/// Asserts that statistics of arrays of all shapes, each of one of these types, are right under what `leave_out` makes of a request: its
/// arguments are the request, the shape, and which case it is.
fn check_all(dtypes: &[DType], leave_out: impl Fn(&Request, &[i64], usize) -> Vec<Request>) {
    for device in everywhere() {
        for (at, (shape, axes)) in SHAPES.into_iter().enumerate() {
            let n = shape.iter().product::<i64>() as usize;
            for (nth, ops) in OPS.into_iter().enumerate() {
                let dtype = dtypes[(at + nth) % dtypes.len()];
                let special = if dtype.is_float() { Special::All } else { Special::Few };
                let x = array(dtype, shape, &numbers(n, special, nth as u64));
                let plain =
                    Request { device: device.clone(), threads: Some(2), ..Request::new(ops).over(axes) };
                for request in leave_out(&plain, shape, at + nth) {
                    check(std::slice::from_ref(&x), &request).unwrap_or_else(|why| {
                        panic!("{ops:?} of {dtype} {shape:?} over {axes:?} on {device:?}: {why}")
                    });
                }
            }
        }
    }
}

#[test]
fn masked_elements_change_nothing() {
    check_all(&[DType::F32, DType::U8, DType::BF16, DType::F64], |plain, shape, case| {
        let whole = masks(shape);
        let which = [&whole[case % 3], &whole[(case + 1) % 3]];
        which.map(|mask| Request { where_: Some(mask.clone()), ..plain.clone() }).to_vec()
    });
}

#[test]
fn ignored_nan_changes_nothing() {
    check_all(&[DType::F32, DType::F16, DType::I32], |plain, _, _| {
        vec![Request { nan: NanPolicy::Ignore, ..plain.clone() }]
    });
}

#[test]
fn runs_are_told_where_that_pays() {
    let (cpu, gpu) = (DeviceChoice::Cpu, DeviceChoice::Sim { warp: 32, orders: 1 });
    let x = array(DType::BF16, &[600, 64], &numbers(600 * 64, Special::Few, 3));
    // Positions on a GPU take longer by runs that are told of each element.
    for (op, device, has_runs) in
        [("logsumexp", &cpu, true), ("logsumexp", &gpu, true), ("argmax", &gpu, false)]
    {
        let masked = Request {
            device: device.clone(),
            where_: Some(Array::from_bools(&[600, 1], &[true; 600]).unwrap()),
            ..Request::new(&[op]).over(&[0])
        };
        let all = Request { where_: None, ..masked.clone() };
        let runs = |request: &Request| {
            let outcome = coulis::reduce::run(std::slice::from_ref(&x), request);
            outcome.unwrap().plan.trace.contains("in_runs")
        };
        assert!(runs(&all), "{op} on {device:?}");
        assert_eq!(runs(&masked), has_runs, "{op} on {device:?}");
    }
}

#[test]
fn rows_of_nothing_or_of_minus_infinity_are_minus_infinity() {
    // Runs, what is behind the last of them, and rows that are all ends; the least finite element is one like others.
    for (dtype, least) in [(DType::F32, -f64::from(f32::MAX)), (DType::F64, f64::MIN)] {
        for n in [5, 16, 163, 600, 1001, 2100] {
            for (value, want) in [(f64::NEG_INFINITY, f64::NEG_INFINITY), (least, least)] {
                let x = array(dtype, &[2, n as i64], &[vec![value; n], vec![-200.0; n]].concat());
                let plain = Request::new(&["logsumexp"]).over(&[1]);
                let masked = Request {
                    where_: Some(Array::from_bools(&[2, 1], &[false, true]).unwrap()),
                    ..plain.clone()
                };
                for (request, first) in [(plain, want), (masked, f64::NEG_INFINITY)] {
                    let outcome = coulis::reduce::run(std::slice::from_ref(&x), &request).unwrap();
                    let found: Vec<f64> = outcome.results[0].array.scalars().map(|v| v.to_f64()).collect();
                    assert_eq!(found[0], first, "{n} {dtype} of {value}");
                    assert!((found[1] + 200.0 - (n as f64).ln()).abs() < 1e-4, "{n} {dtype}: {found:?}");
                }
            }
        }
    }
}
