//! Masks and inputs that lie in memory in another order than the first input: put in its order first, whatever is folded then.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Special, array, numbers};
use coulis::reduce::{array_info, kernel_for};
use coulis::{Array, DType, DeviceChoice, NanPolicy, Normalize, Prologue, Request};
use coulis_codegen::{dialect_named, emit};
use coulis_ir::Target;
use coulis_lower::{Options, lower};

const DEVICES: [DeviceChoice; 3] =
    [DeviceChoice::Cpu, DeviceChoice::CpuExecuted, DeviceChoice::Sim { warp: 32, orders: 2 }];

/// The same elements, with the axes in this order in memory, outermost first.
fn laid_out(x: &Array, order: &[usize]) -> Array {
    let mut back = vec![0; order.len()];
    order.iter().enumerate().for_each(|(at, &axis)| back[axis] = at);
    let turned = x.permuted(order);
    let values: Vec<f64> = turned.scalars().map(|v| v.to_f64()).collect();
    array(x.dtype(), turned.shape(), &values).permuted(&back)
}

fn drawn(dtype: DType, shape: &[i64], seed: u64) -> Array {
    array(dtype, shape, &numbers(shape.iter().product::<i64>() as usize, Special::Zeros, seed))
}

fn mask(shape: &[i64], seed: u64) -> Array {
    let drawn = numbers(shape.iter().product::<i64>() as usize, Special::Zeros, seed);
    array(DType::Bool, shape, &drawn.into_iter().map(|v| f64::from(v > -1.0)).collect::<Vec<f64>>())
}

/// The results of a call, and whether something was put in order for it.
fn run(inputs: &[Array], request: &Request) -> (Vec<Vec<f64>>, bool) {
    let found = coulis::reduce::run(inputs, request).unwrap();
    let values = found.results.iter().map(|result| result.array.scalars().map(|v| v.to_f64()).collect());
    (values.collect(), found.plan.trace.contains("in_order"))
}

#[track_caller]
fn check(inputs: &[Array], turned: &[Array], request: &Request, order: &[usize], what: &str) {
    for device in DEVICES {
        let of = |where_: Option<Array>| Request { device: device.clone(), where_, ..request.clone() };
        let (want, plain) = run(inputs, &of(request.where_.clone()));
        let turned_mask = request.where_.as_ref().map(|mask| laid_out(mask, order));
        let (found, is_copied) = run(turned, &of(turned_mask));
        // Few wide elements are read as they lie where threads run loops.
        let is_far = request.where_.is_some()
            || matches!(device, DeviceChoice::Sim { .. })
            || inputs[1].dtype().bytes() < 4;
        assert!(is_copied == is_far && !plain, "{what} on {device:?}");
        for (found, want) in found.iter().zip(&want) {
            assert_eq!(found.len(), want.len());
            for (i, (f, w)) in found.iter().zip(want).enumerate() {
                let is_near = (f - w).abs() <= 1e-5 * w.abs() + 1e-4 || f.to_bits() == w.to_bits();
                assert!(is_near || f.is_nan() && w.is_nan(), "{what} on {device:?}: {f} for {w} at {i}");
            }
        }
    }
}

#[test]
fn masks_in_another_order_leave_out_the_same_elements() {
    for (shape, order) in [(vec![271, 257], vec![1, 0]), (vec![9, 131, 66], vec![2, 0, 1])] {
        let x = drawn(DType::F32, &shape, 3);
        let mask = mask(&shape, 5);
        for axes in [vec![0], vec![shape.len() as i64 - 1], (0..shape.len() as i64).collect()] {
            let request = Request {
                where_: Some(mask.clone()),
                ..Request::new(&["sum", "max", "argmax", "count"]).over(&axes)
            };
            let x = std::slice::from_ref(&x);
            check(x, x, &request, &order, &format!("{shape:?} over {axes:?}"));
        }
    }
}

#[test]
fn inputs_in_another_order_are_read_as_the_same_elements() {
    let product = || Some(Prologue::new(2, |v| vec![&v[0] * &v[1]]));
    for (dtype, shape, order) in [
        (DType::F32, vec![130, 257], vec![1, 0]),
        (DType::F64, vec![64, 5, 67], vec![2, 1, 0]),
        (DType::F16, vec![3, 129, 130], vec![0, 2, 1]),
    ] {
        let (x, y) = (drawn(dtype, &shape, 3), drawn(dtype, &shape, 5));
        let turned = [x.clone(), laid_out(&y, &order)];
        for axis in 0..shape.len() as i64 {
            let request = Request { prologue: product(), ..Request::new(&["sum", "min"]).over(&[axis]) };
            check(
                &[x.clone(), y.clone()],
                &turned,
                &request,
                &order,
                &format!("{dtype} {shape:?} over {axis}"),
            );
        }
    }
}

#[test]
fn rows_of_masks_and_inputs_in_another_order_are_normalized() {
    let (shape, order) = (vec![258, 260], vec![1, 0]);
    let (x, y) = (drawn(DType::F32, &shape, 3), drawn(DType::F32, &shape, 5));
    for name in ["softmax", "layer_norm"] {
        for axis in [0, 1] {
            let request = Request {
                prologue: Some(Prologue::new(2, |v| vec![&v[0] + &v[1]])),
                where_: Some(mask(&shape, 7)),
                ..Request::normalizing(Normalize::named(name).unwrap()).over(&[axis])
            };
            let turned = [x.clone(), laid_out(&y, &order)];
            check(&[x.clone(), y.clone()], &turned, &request, &order, &format!("{name} over {axis}"));
        }
    }
}

#[test]
fn a_mask_of_some_axes_is_put_in_order_once_for_all_others() {
    let (shape, order) = ([3, 260, 257], [0, 2, 1]);
    let x = drawn(DType::F32, &shape, 3);
    let request =
        Request { where_: Some(mask(&[1, 260, 257], 5)), ..Request::new(&["sum", "argmin"]).over(&[2]) };
    let x = std::slice::from_ref(&x);
    check(x, x, &request, &order, "a mask of two of three axes");
}

#[test]
fn arrays_beside_an_input_without_elements_are_not_read() {
    let x = array(DType::F32, &[0, 260, 257], &[]);
    let other = |seed: u64| laid_out(&mask(&[1, 260, 257], seed), &[0, 2, 1]);
    for device in DEVICES {
        for (axis, n_outputs) in [(0, 260 * 257), (1, 0), (2, 0)] {
            let request = Request { device: device.clone(), ..Request::new(&["sum"]).over(&[axis]) };
            let masked = Request { where_: Some(other(5)), ..request.clone() };
            assert_eq!(run(std::slice::from_ref(&x), &masked), (vec![vec![0.0; n_outputs]], false));
            let product = Some(Prologue::new(2, |v| vec![&v[0] * &v[1].clone().cast(DType::F32)]));
            let both = Request { prologue: product, ..request };
            let beside = other(7).permuted(&[0, 1, 2]);
            assert_eq!(run(&[x.clone(), beside], &both), (vec![vec![0.0; n_outputs]], false));
        }
    }
}

#[test]
fn what_is_put_in_order_prints_and_replays() {
    let shape = [271, 257];
    let x = drawn(DType::F32, &shape, 3);
    let mask = laid_out(&mask(&shape, 5), &[1, 0]);
    for device in DEVICES {
        let request = Request { where_: Some(mask.clone()), device, ..Request::new(&["sum"]).over(&[1]) };
        let first = coulis::reduce::run(std::slice::from_ref(&x), &request).unwrap();
        let replayed = Request { plan: Some(first.plan.trace.clone()), ..request };
        let second = coulis::reduce::run(std::slice::from_ref(&x), &replayed).unwrap();
        assert_eq!(first.results[0].array.as_bytes(), second.results[0].array.as_bytes());
    }
}

#[test]
fn vectors_of_what_lies_across_are_transposed_in_registers() {
    let x = array_info(&drawn(DType::F32, &[1000, 517], 3));
    let of = |where_: Array| Request {
        where_: Some(where_),
        device: DeviceChoice::CpuExecuted,
        ..Request::new(&["sum"]).over(&[1])
    };
    let plain = mask(&[1000, 517], 5);
    let target = Target::cpu(32, 2);
    let text = |request: &Request| {
        let nest = kernel_for(std::slice::from_ref(&x), request, &target).unwrap();
        let flat = lower(nest, &Options { target: &target, simple_mode: false }, &mut |_, _| {}).unwrap();
        let checked = coulis_ir::verify::verify(flat).unwrap();
        emit(&checked, dialect_named("c").unwrap(), coulis_codegen::Options::for_target(&target))
            .unwrap()
            .text
    };
    let zips = |text: &str| text.lines().filter(|line| line.contains("= cx_zip_")).count();
    let turned = text(&of(laid_out(&plain, &[1, 0])));
    // Sixteen vectors of as many rows, in four stages, beside what is behind the last sixteen.
    assert_eq!((zips(&text(&of(plain))), zips(&turned)), (0, 64), "{turned}");
}

#[test]
fn copies_that_take_large_pages_are_right() {
    let (rows, columns) = (8192, 4160);
    let bytes: Vec<u8> = (0..rows * columns).map(|i| u8::from(i % 3 == 0)).collect();
    let mask = Array::from_bytes(DType::Bool, &[columns, rows], &bytes).unwrap().permuted(&[1, 0]);
    let ones = array(DType::I8, &[1], &[1.0]).view(&[rows, columns], &[0, 0], 0).unwrap();
    let request = Request { where_: Some(mask), device: DeviceChoice::Cpu, ..Request::new(&["sum"]) };
    let (found, is_copied) = run(&[ones], &request);
    assert!(is_copied);
    assert_eq!(found, [[((rows * columns + 2) / 3) as f64]]);
}

#[test]
fn what_nothing_reads_is_not_put_in_order() {
    let shape = [271, 257];
    let [x, y] = [3, 4].map(|seed| drawn(DType::F16, &shape, seed));
    let inputs = [x, laid_out(&y, &[1, 0])];
    let of_first = || Some(Prologue::new(2, |v| vec![v[0].clone()]));
    let product = || Some(Prologue::new(2, |v| vec![&v[0] * &v[1]]));
    let rows = |ops: &[&str], prologue| Request { prologue, ..Request::new(ops).over(&[1]) };
    let softmax = || Request { normalize: Some(Normalize::named("softmax").unwrap()), ..rows(&[], None) };
    let calls = [
        (rows(&["count"], product()), false),
        (rows(&["sum"], of_first()), false),
        (Request { prologue: of_first(), ..softmax() }, false),
        (rows(&["count", "sum"], product()), true),
        (Request { nan: NanPolicy::Ignore, ..rows(&["count"], product()) }, true),
        (Request { prologue: product(), ..softmax() }, true),
    ];
    for device in DEVICES {
        for (request, is_read) in &calls {
            let request = Request { device: device.clone(), ..request.clone() };
            let (found, is_copied) = run(&inputs, &request);
            let (want, _) = run(&[inputs[0].clone(), y.clone()], &request);
            assert_eq!((is_copied, found), (*is_read, want), "{request:?}");
        }
    }
}
