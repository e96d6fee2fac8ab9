//! Views whose innermost dimension in memory is none for vectors: broadcast rows and columns, and some of the channels of pixels; and
//! those whose dimensions run backwards: on the CPU, by plans for a GPU in the simulator, and on one where there is one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "common/gpu.rs"]
mod gpu;

use common::{Special, array, check, numbers};
use coulis::{Array, DType, DeviceChoice, Normalize, Order, Request};

const OPS: [&[&str]; 3] = [&["sum", "var", "max"], &["argmax", "argmin_last"], &["logsumexp"]];

/// A view of new elements, and the axes to fold.
type Case = (&'static [i64], &'static [i64], i64, &'static [i64]);

const CASES: [Case; 13] = [
    // A column broadcast along rows, folded along either.
    (&[70, 90], &[96, 0], 0, &[0]),
    (&[70, 90], &[96, 0], 0, &[1]),
    // A row broadcast along columns, in steps of lines.
    (&[70, 90], &[0, 64], 0, &[0]),
    (&[70, 90], &[0, 64], 0, &[1]),
    // Three of four channels of images, forwards and backwards.
    (&[33, 77, 3], &[308, 4, 1], 0, &[0]),
    (&[33, 77, 3], &[308, 4, -1], 3, &[0]),
    // Dimensions that merge once those that run backwards are turned, and those that do not.
    (&[33, 77], &[77, -1], 76, &[0, 1]),
    (&[33, 77], &[-77, -1], 2540, &[0, 1]),
    (&[5, 33, 40], &[1320, -40, 1], 1280, &[1]),
    (&[5, 33, 40], &[1320, -40, -1], 1319, &[1, 2]),
    (&[5, 33, 40], &[-1320, 40, -1], 5319, &[0, 2]),
    // Rows of kept dimensions with gaps between them.
    (&[19, 12, 40], &[600, -50, 1], 550, &[0]),
    (&[70, 12, 40], &[600, 50, 1], 0, &[0]),
];

fn made(dtype: DType, (shape, strides, start, _): Case, special: Special) -> Array {
    let last = |(&n, &stride): (&i64, &i64)| (n - 1) * stride.max(0);
    let n = start + shape.iter().zip(strides).map(last).sum::<i64>() + 1;
    array(dtype, &[n], &numbers(n as usize, special, n as u64)).view(shape, strides, start).unwrap()
}

#[test]
fn views_are_folded_right() {
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

/// The second input, the mask and a prior lie as they lie, whichever way the first input runs.
#[test]
fn what_stands_beside_a_view_that_runs_backwards_is_read_where_it_is() {
    let shape = [24, 70];
    let n = 24 * 70;
    let memory = array(DType::F32, &[n], &numbers(n as usize, Special::Zeros, 3));
    let backwards = memory.view(&shape, &[-70, -1], n - 1).unwrap();
    let forwards = array(DType::F32, &shape, &numbers(n as usize, Special::Zeros, 4));
    let mask: Vec<bool> = (0..70).map(|i| i % 3 == 0).collect();
    let mask = Array::from_bools(&[1, 70], &mask).unwrap();
    for device in [DeviceChoice::Cpu, DeviceChoice::Sim { warp: 32, orders: 1 }] {
        for axes in [&[0][..], &[1], &[0, 1]] {
            let of = |ops: &[&str]| Request { device: device.clone(), ..Request::new(ops).over(axes) };
            check(&[backwards.clone(), forwards.clone()], &of(&["dot"])).unwrap();
            check(&[forwards.clone(), backwards.clone()], &of(&["dot"])).unwrap();
            let masked = Request { where_: Some(mask.clone()), ..of(&["sum", "max", "count"]) };
            check(std::slice::from_ref(&backwards), &masked).unwrap();
        }
    }
}

/// Results of a transposed view, and what is folded into them, in the order of the elements.
#[test]
fn results_lie_as_the_input_does() {
    let (shape, strides) = ([6, 20, 34], [1, 204, 6]);
    let n = 6 * 20 * 34;
    let found = gpu::gpu().map(|_| DeviceChoice::Cuda(0));
    for device in [DeviceChoice::Cpu, DeviceChoice::Sim { warp: 32, orders: 1 }].into_iter().chain(found) {
        for (dtype, ops) in
            [(DType::F32, &["sum", "max"][..]), (DType::I8, &["argmax"]), (DType::F16, &["mean"])]
        {
            let view =
                array(dtype, &[n], &numbers(n as usize, Special::Few, 5)).view(&shape, &strides, 0).unwrap();
            for (axis, kept, want) in [(0, [20, 34], [34, 1]), (1, [6, 34], [1, 6]), (2, [6, 20], [1, 6])] {
                let mut request = Request { device: device.clone(), ..Request::new(ops).over(&[axis]) };
                request.order = Order::OfInput;
                if ops == ["mean"] {
                    request.beta.insert(String::new(), 2.0);
                    let of = (kept[0] * kept[1]) as usize;
                    let prior = array(dtype, &kept, &numbers(of, Special::Zeros, 6));
                    request.prior.insert("mean".to_owned(), prior);
                }
                check(std::slice::from_ref(&view), &request)
                    .unwrap_or_else(|why| panic!("{ops:?} over {axis} on {device:?}: {why}"));
                let outcome = coulis::reduce::run(std::slice::from_ref(&view), &request).unwrap();
                assert!(outcome.results.iter().all(|r| r.array.strides() == want), "{outcome:?}");
            }
        }
        let view =
            array(DType::F32, &[n], &numbers(n as usize, Special::Few, 5)).view(&shape, &strides, 0).unwrap();
        for axis in [0, 1, 2] {
            let normalize = Normalize::named("softmax").unwrap();
            let request = Request { device: device.clone(), ..Request::normalizing(normalize).over(&[axis]) };
            let of_input = Request { order: Order::OfInput, ..request.clone() };
            let [row_major, as_it_lies] = [request, of_input].map(|request| {
                let outcome = coulis::reduce::run(std::slice::from_ref(&view), &request).unwrap();
                outcome.results[0].array.clone()
            });
            assert_eq!(as_it_lies.strides(), strides);
            let far = |(a, b): (coulis::Scalar, coulis::Scalar)| (a.to_f64() - b.to_f64()).abs() > 1e-6;
            assert!(!row_major.scalars().zip(as_it_lies.scalars()).any(far));
        }
    }
}

#[test]
fn one_element_a_row_or_a_column_is_read_for_all_of_it() {
    let devices = [DeviceChoice::CpuExecuted, DeviceChoice::Sim { warp: 32, orders: 1 }];
    let mut words = 0;
    for (nth, shape) in [[64, 256], [96, 16], [40, 64], [37, 163]].into_iter().enumerate() {
        let n = shape[0] * shape[1];
        for dtype in [DType::BF16, DType::F32, DType::I8] {
            let seed = nth as u64;
            let of = |n: i64, seed| numbers(n as usize, Special::Zeros, seed);
            let x = array(dtype, &shape, &of(n, seed));
            for (n, strides) in [(shape[0], [1, 0]), (shape[1], [0, 1])] {
                let few = array(dtype, &[n], &of(n, seed + 7)).view(&shape, &strides, 0).unwrap();
                let taken: Vec<f64> =
                    of(n, seed + 9).iter().map(|v| f64::from(u8::from(*v > -1.0))).collect();
                let mask = array(DType::Bool, &[n], &taken).view(&shape, &strides, 0).unwrap();
                for device in &devices {
                    for axis in [0, 1] {
                        let on = |ops: &[&str]| {
                            Request { device: device.clone(), ..Request::new(ops) }.over(&[axis])
                        };
                        let both = [x.clone(), few.clone()];
                        let request = on(&["dot"]);
                        check(&both, &request).unwrap_or_else(|e| panic!("{shape:?} {dtype} {axis}: {e}"));
                        let outcome = coulis::reduce::run(&both, &request).unwrap();
                        // Those of one element a row beside words of the rows.
                        let is_beside = strides == [1, 0] && matches!(device, DeviceChoice::Sim { .. });
                        words += usize::from(is_beside && outcome.plan.trace.contains("vectorize"));
                        for ops in [&["sum", "var"][..], &["logsumexp"], &["argmax"], &["max"]] {
                            let request = Request { where_: Some(mask.clone()), ..on(ops) };
                            check(std::slice::from_ref(&x), &request)
                                .unwrap_or_else(|e| panic!("{ops:?} {shape:?} {dtype} {axis}: {e}"));
                        }
                    }
                }
            }
        }
    }
    assert!(words >= 8, "{words} plans read several neighbours at once");
}
