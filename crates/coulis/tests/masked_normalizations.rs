//! Normalizations under masks, and of expressions over the elements of several arrays.

#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/normalizations.rs"]
mod meaning;

use std::sync::Arc;

use common::{Special, array, numbers};
use coulis::te::Expr;
use coulis::{Array, DType, DeviceChoice, NORMALIZATIONS, Normalize, Prologue, Request, UserNormalization};
use meaning::{Case, is_right, values};

const EXECUTED: DeviceChoice = DeviceChoice::CpuExecuted;
const SIMULATED: DeviceChoice = DeviceChoice::Sim { warp: 32, orders: 2 };

/// A normalization of one's own: the distance from the smallest element in parts of the range.
fn in_range() -> UserNormalization {
    UserNormalization {
        name: "in_range".to_owned(),
        statistics: vec!["min".to_owned(), "max".to_owned()],
        beside: Vec::new(),
        left_out: None,
        map: Arc::new(|x, s, _| (&x[0] - &s[0]) / (&s[1] - &s[0])),
    }
}

/// A mask by which five eighths of the elements take part, wherever they lie.
fn mask(shape: &[i64], seed: u64) -> Array {
    let drawn = numbers(shape.iter().product::<i64>() as usize, Special::Zeros, seed);
    array(DType::Bool, shape, &drawn.into_iter().map(|v| f64::from(v > -1.0)).collect::<Vec<f64>>())
}

#[test]
fn what_a_mask_leaves_out_is_not_folded() {
    let x =
        Array::from_slice(&[3, 3], &[1f32, 1.0, f32::NAN, 3.0, f32::INFINITY, 5.0, 7.0, 8.0, 9.0]).unwrap();
    let mask = array(DType::Bool, &[3, 3], &[1.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
    let of = |normalize: Normalize, device: &DeviceChoice| {
        let request =
            Request { device: device.clone(), where_: Some(mask.clone()), ..Request::normalizing(normalize) };
        values(&coulis::reduce::run(std::slice::from_ref(&x), &request.over(&[1])).unwrap().results[0].array)
    };
    let named = |name: &str| Normalize::named(name).unwrap();
    for device in [EXECUTED, SIMULATED] {
        // What is left out is 0 of softmax and -inf of its logarithm, also in a row of which nothing takes part.
        let softmax = of(named("softmax"), &device);
        assert_eq!((&softmax[..3], &softmax[6..]), (&[0.5, 0.5, 0.0][..], &[0.0; 3][..]));
        let log_softmax = of(named("log_softmax"), &device);
        assert_eq!(
            log_softmax[4..],
            [f64::NEG_INFINITY, log_softmax[5]].into_iter().chain([f64::NEG_INFINITY; 3]).collect::<Vec<_>>()
                [..]
        );
        // The norms give what becomes of it by the statistics of the others: of the second row a mean of 4 and a deviation of 1.
        let layer_norm = of(named("layer_norm").with("eps", 0.0), &device);
        assert_eq!(layer_norm[3..6], [-1.0, f64::INFINITY, 1.0]);
        assert!(layer_norm[2].is_nan() && layer_norm[6..].iter().all(|v| v.is_nan()));
    }
}

#[test]
fn a_normalization_of_ones_own_says_what_becomes_of_what_is_left_out() {
    let x = Array::from_slice(&[2, 4], &[1f32, 2.0, 5.0, 9.0, 0.0, 10.0, 5.0, 20.0]).unwrap();
    let mask = array(DType::Bool, &[4], &[1.0, 1.0, 1.0, 0.0]);
    for (left_out, [first, second]) in [(None, [2.0, 2.0]), (Some(-1.0), [-1.0, -1.0])] {
        let own = UserNormalization { left_out, ..in_range() };
        for device in [EXECUTED, SIMULATED] {
            let plain = Request::normalizing(Normalize::own(own.clone())).over(&[1]);
            let masked = |mask: &Array| Request {
                device: device.clone(),
                where_: Some(mask.clone()),
                ..plain.clone()
            };
            let run = |mask: &Array| coulis::reduce::run(std::slice::from_ref(&x), &masked(mask));
            let found = values(&run(&mask).unwrap().results[0].array);
            assert_eq!(found, [0.0, 0.25, 1.0, first, 0.0, 1.0, 0.5, second]);
            // Extrema of none have no value, so neither have results of theirs.
            let none = array(DType::Bool, &[2, 1], &[1.0, 0.0]);
            assert_eq!(
                run(&none).unwrap_err().to_string(),
                "error[reduce/empty]: `min` of an empty set has no value: no element takes part in output 1"
            );
        }
    }
}

#[test]
fn masks_are_kept_beside_the_elements_and_broadcast() {
    let cases: [(&[i64], &[usize], &[i64]); 8] = [
        (&[40, 512], &[1], &[40, 512]),
        (&[9, 1023], &[1], &[1, 1023]),
        (&[3, 4, 16, 128], &[3], &[3, 1, 1, 128]),
        (&[400, 13], &[1], &[400, 13]),
        (&[4, 48, 49], &[1], &[4, 1, 49]),
        (&[300, 40], &[0], &[300, 1]),
        (&[4, 6, 7, 10], &[0, 2, 3], &[4, 1, 7, 10]),
        (&[2, 9, 4, 10], &[1, 3], &[2, 9, 4, 10]),
    ];
    for (shape, axes, of_mask) in cases {
        let length = |shape: &[i64]| shape.iter().product::<i64>() as usize;
        let mask = mask(of_mask, 5);
        for dtype in [DType::F32, DType::BF16] {
            let x = array(dtype, shape, &numbers(length(shape), Special::Zeros, 6));
            for name in ["softmax", "log_softmax", "layer_norm"] {
                let case = Case { where_: Some(mask.clone()), ..Case::new(name, axes) };
                for device in [EXECUTED, SIMULATED] {
                    assert_eq!(case.check(&x, &device), Ok(()), "{shape:?} {dtype} {of_mask:?}");
                }
            }
        }
    }
}

#[test]
fn a_normalization_of_an_expression_is_that_of_its_values() {
    for (dtype, shape, axes) in [
        (DType::F32, [5, 66], &[1usize][..]),
        (DType::BF16, [12, 40], &[0]),
        (DType::F16, [3, 1200], &[0, 1]),
    ] {
        let n = (shape[0] * shape[1]) as usize;
        let [x, y] = [3, 4].map(|seed| array(dtype, &shape, &numbers(n, Special::Zeros, seed)));
        // What the expression gives is a float32 in any case.
        let pairs = values(&x).into_iter().zip(values(&y));
        let sums: Vec<f64> = pairs.map(|(x, y)| f64::from(x as f32 * 0.5 + y as f32)).collect();
        let sums = array(DType::F32, &shape, &sums);
        let half = Expr::float(0.5, DType::F32);
        let sum = Prologue::new(2, move |v: &[Expr]| vec![&(&v[0] * &half) + &v[1]]);
        let mask = mask(&[shape[1]], 9);
        for entry in NORMALIZATIONS {
            for where_ in [None, Some(mask.clone())] {
                let set = entry.parameters.iter().map(|p| (p.name, 0.25)).collect();
                let case = Case { set, where_, ..Case::new(entry.name, axes) };
                let exact = case.exact(&sums);
                for device in [EXECUTED, DeviceChoice::Cpu, SIMULATED] {
                    let request = Request { prologue: Some(sum.clone()), ..case.request(&device) };
                    let outcome = coulis::reduce::run(&[x.clone(), y.clone()], &request).unwrap();
                    let found = &outcome.results[0].array;
                    assert_eq!(found.dtype(), dtype, "results are of the type of the arrays");
                    for (found, exact) in values(found).into_iter().zip(&exact) {
                        assert!(is_right(found, *exact, dtype), "{}: {found}, not {exact:?}", entry.name);
                    }
                }
            }
        }
    }
}

#[test]
fn integers_of_an_expression_are_subtracted_as_they_are() {
    let x = Array::from_slice(&[3], &[200u8, 201, 3]).unwrap();
    let doubled = Prologue::new(1, |v: &[Expr]| vec![&v[0] + &v[0]]);
    for device in [EXECUTED, SIMULATED] {
        let normalize = Request::normalizing(Normalize::named("log_softmax").unwrap());
        let request = Request { prologue: Some(doubled.clone()), device, ..normalize };
        let found =
            values(&coulis::reduce::run(std::slice::from_ref(&x), &request).unwrap().results[0].array);
        let wanted = [-2.0, 0.0, -396.0].map(|v: f64| v - (-2f64).exp().ln_1p());
        assert!(found.iter().zip(wanted).all(|(f, w)| (f - w).abs() < 1e-13 * w.abs().max(1.0)), "{found:?}");
    }
}

#[test]
fn a_normalization_of_two_inputs_folds_both() {
    let projected = UserNormalization {
        name: "projected".to_owned(),
        statistics: vec!["dot".to_owned()],
        beside: Vec::new(),
        left_out: None,
        map: Arc::new(|x, s, _| &x[0] - &(&s[0] * &x[1])),
    };
    let x = Array::from_slice(&[3], &[1f32, 2.0, 3.0]).unwrap();
    let y = Array::from_slice(&[3], &[0f32, 1.0, 0.0]).unwrap();
    let request = Request { device: EXECUTED, ..Request::normalizing(Normalize::own(projected)) };
    let outcome = coulis::reduce::run(&[x, y], &request).unwrap();
    assert_eq!(values(&outcome.results[0].array), [1.0, 0.0, 3.0]);
}

#[test]
fn masks_that_do_not_fit_are_refused() {
    let x = array(DType::F32, &[4, 6], &[1.0; 24]);
    let refused = |mask: Array| {
        let softmax = Request::normalizing(Normalize::named("softmax").unwrap());
        let request = Request { where_: Some(mask), device: EXECUTED, ..softmax };
        coulis::reduce::run(std::slice::from_ref(&x), &request).map(|_| ()).unwrap_err().to_string()
    };
    let of_bytes = refused(array(DType::U8, &[4, 6], &[1.0; 24]));
    assert!(of_bytes.starts_with("error[reduce/where]: `where` is to be of bool"), "{of_bytes}");
    assert_eq!(
        refused(array(DType::Bool, &[3, 6], &[1.0; 18])),
        "error[reduce/shape]: `where` of shape [3, 6] does not broadcast to the input's shape [4, 6]: from the last on, \
         each extent is to be 1 or the input's"
    );
}

#[test]
fn a_prologue_makes_as_many_values_as_a_normalization_reads() {
    let x = Array::from_slice(&[3], &[1f32, 2.0, 3.0]).unwrap();
    let two = Prologue::new(1, |v: &[Expr]| vec![v[0].clone(), v[0].clone()]);
    let softmax = Request::normalizing(Normalize::named("softmax").unwrap());
    let request = Request { prologue: Some(two.clone()), device: EXECUTED, ..softmax };
    assert_eq!(
        coulis::reduce::run(std::slice::from_ref(&x), &request).map(|_| ()).unwrap_err().to_string(),
        "error[normalize/prologue]: `softmax` is of 1 value(s), and the prologue gives 2"
    );
    let projected = UserNormalization {
        statistics: vec!["dot".to_owned()],
        map: Arc::new(|x, s, _| &(&x[0] + &x[1]) / &s[0]),
        ..in_range()
    };
    let own = Request::normalizing(Normalize::own(projected));
    let request = Request { prologue: Some(two), device: EXECUTED, ..own };
    let found = coulis::reduce::run(std::slice::from_ref(&x), &request).unwrap();
    assert_eq!(values(&found.results[0].array), [2.0, 4.0, 6.0].map(|v| f64::from(v as f32 / 14.0)));
}
