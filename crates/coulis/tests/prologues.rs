//! Statistics of expressions over the inputs' elements: the same as those of arrays that hold the expressions' values.

#![allow(clippy::unwrap_used)]

mod common;

use common::{Special, array, numbers};
use coulis::te::{Expr, Intrinsic};
use coulis::{Array, DType, DeviceChoice, NanPolicy, Prologue, Request};

const DEVICES: [DeviceChoice; 3] =
    [DeviceChoice::CpuExecuted, DeviceChoice::Cpu, DeviceChoice::Sim { warp: 32, orders: 1 }];

fn run(inputs: &[Array], request: &Request) -> Vec<f64> {
    let outcome = coulis::reduce::run(inputs, request).unwrap();
    outcome.results.iter().flat_map(|r| r.array.scalars().map(|v| v.to_f64())).collect()
}

fn same(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a == b || (a.is_nan() && b.is_nan()))
}

/// Integers in floats, so that every order of a sum gives the same.
fn whole(shape: &[i64], seed: u64) -> Array {
    let n = shape.iter().product::<i64>() as usize;
    let values: Vec<f64> = numbers(n, Special::Nan, seed).iter().map(|v| v.round()).collect();
    array(DType::F32, shape, &values)
}

fn made(shape: &[i64], arrays: &[&Array], f: impl Fn(&[f64]) -> f64) -> Array {
    let columns: Vec<Vec<f64>> = arrays.iter().map(|a| a.scalars().map(|v| v.to_f64()).collect()).collect();
    let row = |i: usize| columns.iter().map(|c| c[i]).collect::<Vec<f64>>();
    let values: Vec<f64> = (0..columns[0].len()).map(|i| f(&row(i))).collect();
    array(DType::F32, shape, &values)
}

#[test]
fn statistics_of_an_expression_are_those_of_its_values() {
    let shape = [6, 37];
    let (x, y, z) = (whole(&shape, 1), whole(&shape, 2), whole(&shape, 3));
    let difference = Prologue::new(2, |v: &[Expr]| vec![&v[0] - &v[1]]);
    let product = Prologue::new(3, |v: &[Expr]| vec![&(&v[0] * &v[1]) * &v[2]]);
    let differences = made(&shape, &[&x, &y], |v| v[0] - v[1]);
    let products = made(&shape, &[&x, &y, &z], |v| v[0] * v[1] * v[2]);
    let flags: Vec<f64> = numbers(37, Special::Zeros, 9).iter().map(|v| f64::from(*v > -1.0)).collect();
    let mask = array(DType::Bool, &[37], &flags);
    for device in DEVICES {
        for axes in [&[1i64][..], &[0], &[0, 1]] {
            for (nan, where_) in [(NanPolicy::Propagate, None), (NanPolicy::Ignore, Some(mask.clone()))] {
                let request = Request {
                    nan,
                    where_,
                    device: device.clone(),
                    ..Request::new(&["sumsq", "norm1", "count"])
                };
                let mut request = request.over(axes);
                request.alpha.insert("sumsq".to_owned(), 0.5);
                let of = |p: &Prologue| Request { prologue: Some(p.clone()), ..request.clone() };
                let want = run(std::slice::from_ref(&differences), &request);
                let got = run(&[x.clone(), y.clone()], &of(&difference));
                assert!(same(&got, &want), "{got:?} {want:?} {axes:?} {device:?}");
                let want = run(std::slice::from_ref(&products), &request);
                let got = run(&[x.clone(), y.clone(), z.clone()], &of(&product));
                assert!(same(&got, &want), "{got:?} {want:?} {axes:?} {device:?}");
            }
        }
    }
}

#[test]
fn the_nan_policy_looks_at_what_is_folded_and_not_at_what_was_read() {
    let shape = [5, 19];
    let x = whole(&shape, 4);
    let root = Prologue::new(1, |v: &[Expr]| vec![Expr::call1(Intrinsic::Sqrt, v[0].clone())]);
    let roots = made(&shape, &[&x], |v| f64::from((v[0] as f32).sqrt()));
    let filled = Prologue::new(1, |v: &[Expr]| {
        let is_nan = Expr::call1(Intrinsic::IsNan, v[0].clone());
        vec![Expr::if_then_else(is_nan, Expr::constant(7, DType::F32), v[0].clone())]
    });
    let filleds = made(&shape, &[&x], |v| if v[0].is_nan() { 7.0 } else { v[0] });
    assert!(roots.scalars().filter(|v| v.to_f64().is_nan()).count() > x.len() / 4);
    for device in DEVICES {
        for (prologue, values) in [(&root, &roots), (&filled, &filleds)] {
            let plain = Request {
                nan: NanPolicy::Ignore,
                device: device.clone(),
                ..Request::new(&["count", "max", "min", "argmax"])
            };
            let of = Request { prologue: Some(prologue.clone()), ..plain.clone() };
            for axis in [0i64, 1] {
                let want = run(std::slice::from_ref(values), &plain.clone().over(&[axis]));
                assert_eq!(
                    run(std::slice::from_ref(&x), &of.clone().over(&[axis])),
                    want,
                    "{axis} {device:?}"
                );
            }
        }
    }
}

#[test]
fn a_prologue_may_make_both_values_of_a_statistic_of_two_inputs() {
    let x = Array::from_slice(&[4], &[1f32, 2.0, 3.0, 4.0]).unwrap();
    let weighted = Prologue::new(1, |v: &[Expr]| vec![v[0].clone(), &v[0] * &v[0]]);
    let request = Request { prologue: Some(weighted), ..Request::new(&["wmean"]) };
    assert_eq!(run(&[x], &request), [100.0 / 30.0f32 as f64].map(|v| f64::from(v as f32)));
}

#[test]
fn a_prologue_is_computed_in_the_type_that_sums_of_its_elements_have() {
    let square = Prologue::new(1, |v: &[Expr]| vec![&v[0] * &v[0]]);
    let less = Prologue::new(1, |v: &[Expr]| vec![&(&v[0] * &v[0]) - &Expr::constant(1, v[0].dtype())]);
    let magnitude = Prologue::new(1, |v: &[Expr]| vec![Expr::call1(Intrinsic::Abs, v[0].clone())]);
    let cases = [
        // The squares of 1 + 2^-6 and of 300 are no bfloat16 and no float16; what is made of them is.
        (&less, "max", DType::BF16, vec![1.015_625; 4], 0.031_494_140_625, DType::BF16),
        (&less, "mean", DType::BF16, vec![1.015_625; 40], 0.031_494_140_625, DType::BF16),
        (&square, "mean", DType::F16, vec![300.0, 4.0, 4.0, 4.0], 22512.0, DType::F16),
        (&square, "absmax", DType::F32, vec![3.0, -4.0], 16.0, DType::F32),
    ];
    let (signed, unsigned) = ([-128i8, 5], [255u8, 255]);
    let of_floats = cases.map(|(prologue, op, dtype, values, want, result)| {
        (prologue, op, array(dtype, &[values.len() as i64], &values), want, result)
    });
    let of_integers = [
        (&square, "max", Array::from_slice(&[2], &signed).unwrap(), 16384.0, DType::I64),
        (&magnitude, "max", Array::from_slice(&[2], &signed).unwrap(), 128.0, DType::I64),
        (&square, "sum", Array::from_slice(&[2], &unsigned).unwrap(), 130_050.0, DType::U64),
    ];
    for device in DEVICES {
        for (prologue, op, x, want, result) in of_floats.iter().chain(&of_integers) {
            let dtype = x.dtype();
            let prologue = Some((*prologue).clone());
            let request = Request { prologue, device: device.clone(), ..Request::new(&[op]) };
            let outcome = coulis::reduce::run(std::slice::from_ref(x), &request).unwrap();
            let found = &outcome.results[0].array;
            assert_eq!(found.dtype(), *result, "{op} of {dtype}");
            assert_eq!(found.scalars().next().unwrap().to_f64(), *want, "{op} of {dtype} on {device:?}");
        }
    }
}

#[test]
fn an_accumulator_that_is_asked_for_is_what_a_prologue_computes_in() {
    let square = Prologue::new(1, |v: &[Expr]| vec![&v[0] * &v[0]]);
    let x = Array::from_slice(&[2], &[1e30f32, 0.0]).unwrap();
    let request = Request { prologue: Some(square), acc_dtype: Some(DType::F64), ..Request::new(&["sum"]) };
    assert_eq!(run(&[x], &request), [f64::from(1e30f32).powi(2)]);
}

#[test]
fn elements_of_two_types_are_brought_to_one() {
    let x = Array::from_slice(&[3], &[1.5f32, 2.0, -8.0]).unwrap();
    let y = Array::from_slice(&[3], &[2.0f64, 4.0, 1e-9]).unwrap();
    let n = Array::from_slice(&[3], &[2i16, 1, 3]).unwrap();
    let lesser = |a: &Expr, b: &Expr| Expr::select(a.clone().lt(b.clone()), a.clone(), b.clone());
    let map = move |v: &[Expr]| vec![&(&v[0] * &v[1]) + &lesser(&v[1], &v[2])];
    for device in DEVICES {
        let prologue = Some(Prologue::new(3, map));
        let request = Request { prologue, device, ..Request::new(&["sum"]) };
        let want = (3.0 + 2.0) + (8.0 + 1.0) + (-8e-9 + 1e-9);
        let found = run(&[x.clone(), y.clone(), n.clone()], &request);
        assert!((found[0] - want).abs() < 1e-14, "{found:?}");
    }
}

#[test]
fn wrong_prologues_say_what_is_legal() {
    let x = Array::from_slice(&[2], &[1f32, 2.0]).unwrap();
    let refused = |n: usize, f: fn(&[Expr]) -> Vec<Expr>| {
        let request = Request { prologue: Some(Prologue::new(n, f)), ..Request::new(&["sum"]) };
        coulis::reduce::run(std::slice::from_ref(&x), &request).map(|_| ()).unwrap_err().message
    };
    assert_eq!(refused(2, |v| v.to_vec()), "the prologue reads 2 array(s), got 1");
    assert_eq!(refused(1, |_| Vec::new()), "a prologue gives one or two values, got 0");
    assert_eq!(
        refused(1, |v| vec![v[0].clone(), Expr::call1(Intrinsic::Abs, v[0].clone())]),
        "2 values are made, and the statistics asked for read 1"
    );
    let stranger = |_: &[Expr]| vec![coulis::te::Var::new("n", DType::F32).expr()];
    assert_eq!(refused(1, stranger), "the prologue uses `n`, which is none of its elements");
}

#[test]
fn prologues_of_expressions_are_equal_where_these_are_and_read_the_types_of_their_variables() {
    let x = Array::from_slice(&[3], &[1f32, -2.0, 3.0]).unwrap();
    let of = |factor: f64, dtype: DType| {
        let v = coulis::te::Var::new("v", dtype);
        let value = v.expr() * Expr::float(factor, dtype);
        Prologue::of(vec![v], vec![value])
    };
    let (twice, again) = (of(2.0, DType::F32), of(2.0, DType::F32));
    assert_eq!(twice, again);
    assert_ne!(twice, of(3.0, DType::F32));
    assert_ne!(twice, of(2.0, DType::F64));
    assert_ne!(twice, Prologue::new(1, |v: &[Expr]| vec![&v[0] * &v[0]]));
    let request = |p: Prologue| Request { prologue: Some(p), ..Request::new(&["sum"]) };
    assert_eq!(run(std::slice::from_ref(&x), &request(twice)), [4.0]);
    assert_eq!(run(std::slice::from_ref(&x), &request(of(3.0, DType::F32))), [6.0]);
    let error = coulis::reduce::run(&[x], &request(of(2.0, DType::F64))).unwrap_err().message;
    assert!(error.starts_with("the prologue reads elements of [") && error.contains("got ["), "{error}");
}

#[test]
fn an_element_of_0_that_is_divided_by_itself_ends_the_call() {
    let x = Array::from_slice(&[3], &[0i32, 0, 1]).unwrap();
    let maps: [fn(&Expr) -> Expr; 4] = [
        |a| a.clone().floordiv(a.clone()),
        |a| a.clone().floormod(a.clone()),
        |a| (a * &Expr::int(2)).floordiv(a.clone()),
        |a| Expr::int(0).floordiv(a.clone()),
    ];
    for map in maps {
        for device in [DeviceChoice::CpuExecuted, DeviceChoice::Cpu] {
            for axes in [None, Some(Vec::new())] {
                let prologue = Some(Prologue::new(1, move |v: &[Expr]| vec![map(&v[0])]));
                let request = Request { prologue, device: device.clone(), axes, ..Request::new(&["sum"]) };
                let error = coulis::reduce::run(std::slice::from_ref(&x), &request).map(|_| ()).unwrap_err();
                assert_eq!(error.code, "run/division", "{device:?}: {error}");
            }
        }
    }
}

/// Numbers that the type holds.
fn as_they_are(dtype: DType, shape: &[i64], values: &[f64]) -> Array {
    macro_rules! of {
        ($($name:ident $ty:ty),*) => {
            match dtype {
                $(DType::$name => Array::from_slice(shape, &values.iter().map(|v| *v as $ty).collect::<Vec<_>>()),)*
                other => panic!("{other}"),
            }
        };
    }
    of!(I8 i8, U8 u8, I16 i16, I32 i32, I64 i64, U64 u64, F64 f64).unwrap()
}

#[test]
fn integers_of_a_prologue_are_what_they_are_in_64_bits() {
    // The least and the greatest of each type are among them, which no type of as many bits holds the square of.
    let of = |dtype: DType, seed: u64| {
        let (lo, hi) = dtype.int_range().unwrap();
        let n = numbers(600, Special::Zeros, seed);
        let values: Vec<f64> = n.iter().map(|v| (v * 40.0).round().clamp(lo as f64, hi as f64)).collect();
        let with_ends = values.into_iter().enumerate().map(|(i, v)| match i % 97 {
            0 => lo as f64,
            1 => hi as f64,
            _ => v,
        });
        as_they_are(dtype, &[20, 30], &with_ends.collect::<Vec<f64>>())
    };
    let squared: fn(&[f64]) -> f64 = |v| (v[0] - v[1]) * (v[0] - v[1]);
    let larger: fn(&[f64]) -> f64 = |v| v[0].max(v[1]) - 3.0;
    let differ: fn(&[f64]) -> f64 = |v| f64::from(u8::from(v[0] < v[1] + 2.0)) * 0.5;
    let three = |e: &Expr| Expr::constant(3, e.dtype());
    let cases = [
        (squared, Prologue::new(2, |v: &[Expr]| vec![&(&v[0] - &v[1]) * &(&v[0] - &v[1])])),
        (larger, Prologue::new(2, move |v: &[Expr]| vec![&v[0].clone().max(v[1].clone()) - &three(&v[0])])),
        (
            differ,
            Prologue::new(2, |v: &[Expr]| {
                let less = v[0].clone().lt(&v[1] + &Expr::constant(2, v[1].dtype()));
                vec![less.cast(DType::F64) * Expr::float(0.5, DType::F64)]
            }),
        ),
    ];
    for dtype in [DType::I8, DType::U8, DType::I16, DType::I32] {
        let (x, y) = (of(dtype, 3), of(dtype, 4));
        let mask = array(DType::Bool, &[30], &numbers(30, Special::Zeros, 9));
        for (at, (number, prologue)) in cases.iter().enumerate() {
            if at == 1 && dtype == DType::U8 {
                continue;
            }
            let values: Vec<f64> =
                x.scalars().zip(y.scalars()).map(|(a, b)| number(&[a.to_f64(), b.to_f64()])).collect();
            let wide = if at == 2 { DType::F64 } else { Prologue::element_dtype(dtype, None) };
            let made = as_they_are(wide, &[20, 30], &values);
            for device in DEVICES {
                for (axes, where_) in [(&[0i64][..], None), (&[1], Some(mask.clone())), (&[0, 1], None)] {
                    let ops = ["sum", "mean", "var", "min", "max", "argmax", "norm1", "count_nonzero"];
                    let request = Request { where_, device: device.clone(), ..Request::new(&ops) }.over(axes);
                    let want = coulis::reduce::run(std::slice::from_ref(&made), &request).unwrap();
                    let request = Request { prologue: Some(prologue.clone()), ..request };
                    let got = coulis::reduce::run(&[x.clone(), y.clone()], &request).unwrap();
                    for (got, want) in got.results.iter().zip(&want.results) {
                        assert_eq!(got.array.dtype(), want.array.dtype(), "{} of {dtype}", got.name);
                        let pairs = got.array.scalars().zip(want.array.scalars());
                        let is_same = |(a, b): (coulis::Scalar, coulis::Scalar)| {
                            let (a, b) = (a.to_f64(), b.to_f64());
                            a == b || (a - b).abs() <= 1e-12 * b.abs()
                        };
                        assert!(
                            pairs.into_iter().all(is_same),
                            "{} of {dtype}, {at}, {axes:?}, {device:?}",
                            got.name
                        );
                    }
                }
            }
        }
    }
}
