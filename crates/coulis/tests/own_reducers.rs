//! `reduce` with reducers of the caller's own, beside the catalogue's: one read, every device.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Special, array, numbers};
use coulis::te::{BinaryOp, Expr};
use coulis::{
    Array, CATALOGUE, DType, DeviceChoice, NanPolicy, OwnReducer, Owner, Prologue, Request, Scalar,
    UserReducer, comm_reducer,
};

/// A combine of two states.
type Combine<'a> = &'a dyn Fn(&[Expr], &[Expr]) -> Vec<Expr>;

/// The devices that run everywhere.
fn devices() -> [DeviceChoice; 3] {
    [DeviceChoice::CpuExecuted, DeviceChoice::Auto, DeviceChoice::Sim { warp: 32, orders: 2 }]
}

fn int(value: i64, dtype: DType) -> Expr {
    Expr::int_of(i128::from(value), dtype)
}

/// Exclusive or of 32-bit integers.
fn xor() -> OwnReducer {
    let combine = |a: &[Expr], b: &[Expr]| vec![Expr::binary(BinaryOp::BitXor, a[0].clone(), b[0].clone())];
    let user = UserReducer::new("xor", &[DType::I32], vec![int(0, DType::I32)], &combine);
    OwnReducer::new(comm_reducer(&user).unwrap()).unwrap()
}

/// The element of the largest square, the first of equals, and its position.
fn farthest() -> OwnReducer {
    let square = |e: &Expr| e.clone() * e.clone();
    let combine = |a: &[Expr], b: &[Expr]| {
        let (left, right) = (square(&a[0]), square(&b[0]));
        let earlier = a[1].clone().lt(b[1].clone());
        let takes_left = left.clone().gt(right.clone()).or(left.equal(right).and(earlier));
        vec![
            Expr::select(takes_left.clone(), a[0].clone(), b[0].clone()),
            Expr::select(takes_left, a[1].clone(), b[1].clone()),
        ]
    };
    let lift = |v: &[Expr], at: &Expr| vec![v[0].clone().cast(DType::I64), at.clone()];
    let identity = vec![int(0, DType::I64), int(i64::MAX, DType::I64)];
    let user =
        UserReducer { lift: Some(&lift), ..UserReducer::new("farthest", &[DType::I32], identity, &combine) };
    OwnReducer::new(comm_reducer(&user).unwrap()).unwrap()
}

/// The element of the largest magnitude and the key that is its square, the left of equals kept: `>=` or `>` of keys, which
/// commutes but for ties.
fn left_of_equals(keeps_left: bool) -> OwnReducer {
    let combine = |a: &[Expr], b: &[Expr]| {
        let left = if keeps_left { a[0].clone().ge(b[0].clone()) } else { a[0].clone().gt(b[0].clone()) };
        (0..2).map(|i| Expr::select(left.clone(), a[i].clone(), b[i].clone())).collect()
    };
    let lift = |v: &[Expr], _: &Expr| {
        let wide = v[0].clone().cast(DType::I64);
        vec![wide.clone() * wide.clone(), wide]
    };
    let identity = vec![int(-1, DType::I64), int(0, DType::I64)];
    let name = if keeps_left { "left_of_equals" } else { "right_of_equals" };
    let user = UserReducer { lift: Some(&lift), ..UserReducer::new(name, &[DType::I32], identity, &combine) };
    OwnReducer::new(comm_reducer(&user).unwrap()).unwrap()
}

/// A polynomial's value at 3 by Horner's rule: elements are coefficients, so their order counts.
fn horner() -> OwnReducer {
    let combine = |a: &[Expr], b: &[Expr]| {
        // A state is (value, weight): the weight is 3 to the number of coefficients.
        let value = a[0].clone() * b[1].clone() + b[0].clone();
        vec![value, a[1].clone() * b[1].clone()]
    };
    let lift = |v: &[Expr], _: &Expr| vec![v[0].clone().cast(DType::U64), int(3, DType::U64)];
    let finish = |s: &[Expr]| vec![s[0].clone()];
    let identity = vec![int(0, DType::U64), int(1, DType::U64)];
    let mut user = UserReducer {
        lift: Some(&lift),
        finish: Some(&finish),
        ..UserReducer::new("horner", &[DType::I32], identity, &combine)
    };
    user.claims.commutative = false;
    OwnReducer::new(comm_reducer(&user).unwrap()).unwrap()
}

fn elements(n: usize) -> Vec<i32> {
    numbers(n, Special::Zeros, 5).iter().map(|v| (v * 1000.0) as i32).collect()
}

fn ints(result: &Array) -> Vec<i128> {
    let int = |s: Scalar| match s {
        Scalar::Int(v) => i128::from(v),
        Scalar::UInt(v) => i128::from(v),
        Scalar::Bool(v) => i128::from(v),
        Scalar::Float(v) => panic!("an integer is wanted, found {v}"),
    };
    result.scalars().map(int).collect()
}

/// The elements that each result is folded of, one row a result, and how many those are.
fn rows(input: &Array, axes: &[i64]) -> (Vec<i128>, usize) {
    let (shape, values) = (input.shape(), ints(input));
    let of = |reduced: bool| {
        let mut places = vec![0];
        for (axis, extent) in shape.iter().enumerate() {
            let stride: i64 = shape[axis + 1..].iter().product();
            if axes.contains(&(axis as i64)) == reduced {
                places = places.iter().flat_map(|at| (0..*extent).map(move |i| at + i * stride)).collect();
            }
        }
        places
    };
    let (kept, reduced) = (of(false), of(true));
    let row = |k: &i64| reduced.iter().map(|r| values[(k + r) as usize]).collect::<Vec<_>>();
    let folded = kept.iter().flat_map(row).collect();
    (folded, reduced.len())
}

fn request(ops: &[&str], reducers: Vec<OwnReducer>, axes: &[i64], device: DeviceChoice) -> Request {
    Request { reducers, device, threads: Some(2), ..Request::new(ops).over(axes) }
}

#[test]
fn own_reducers_run_beside_the_catalogues_in_one_kernel_on_every_device() {
    for (shape, axis) in [([40, 70], 1), ([40, 70], 0), ([300, 16], 1), ([2, 1500], 1)] {
        let values = elements((shape[0] * shape[1]) as usize);
        let input = Array::from_slice(&shape, &values).unwrap();
        let (n_out, len) = if axis == 1 { (shape[0], shape[1]) } else { (shape[1], shape[0]) };
        let at = |out: i64, k: i64| values[if axis == 1 { out * len + k } else { k * n_out + out } as usize];
        for device in devices() {
            let own = vec![xor(), farthest()];
            let request = request(&["xor", "sum", "farthest"], own, &[axis], device.clone());
            let outcome = coulis::reduce::run(std::slice::from_ref(&input), &request).unwrap();
            let names: Vec<&str> = outcome.results.iter().map(|r| r.name.as_str()).collect();
            assert_eq!(names, ["xor", "sum", "farthest.v0", "farthest.v1"]);
            let found: Vec<Vec<i128>> = outcome.results.iter().map(|r| ints(&r.array)).collect();
            for out in 0..n_out {
                let row: Vec<i32> = (0..len).map(|k| at(out, k)).collect();
                let largest = row.iter().map(|v| i64::from(*v).pow(2)).max().unwrap();
                let first = row.iter().position(|v| i64::from(*v).pow(2) == largest).unwrap();
                let want = [
                    i128::from(row.iter().fold(0, |a, b| a ^ b)),
                    row.iter().map(|v| i128::from(*v)).sum(),
                    i128::from(row[first]),
                    first as i128,
                ];
                let got: Vec<i128> = found.iter().map(|column| column[out as usize]).collect();
                assert_eq!(got, want, "{shape:?} over {axis}, output {out}, {device:?}");
            }
        }
    }
}

#[test]
fn the_first_or_last_of_equal_values_is_kept_in_every_plan() {
    let values: Vec<i32> = (0..4200).map(|i| [3, -5, 5, 1, -5, 5, 4][(i * 5 + i / 7) % 7]).collect();
    for (shape, axes) in [
        (&[60, 70][..], &[1][..]),
        (&[60, 70], &[0]),
        (&[60, 70], &[0, 1]),
        (&[1050, 4], &[1]),
        (&[2, 2100], &[1]),
        (&[6, 70, 10], &[0, 2]),
    ] {
        let input = Array::from_slice(shape, &values).unwrap();
        for input in [input.clone(), input.transposed()] {
            let (folded, length) = rows(&input, axes);
            for device in devices() {
                let own = vec![left_of_equals(true), left_of_equals(false)];
                let request =
                    request(&["left_of_equals", "right_of_equals", "max"], own, axes, device.clone());
                let outcome = coulis::reduce::run(std::slice::from_ref(&input), &request).unwrap();
                let found: Vec<Vec<i128>> = outcome.results.iter().map(|r| ints(&r.array)).collect();
                for (out, row) in folded.chunks(length).enumerate() {
                    let key = row.iter().map(|v| v * v).max().unwrap();
                    let first = *row.iter().find(|v| *v * *v == key).unwrap();
                    let last = *row.iter().rfind(|v| *v * *v == key).unwrap();
                    let got: Vec<i128> = found.iter().map(|column| column[out]).collect();
                    let largest = *row.iter().max().unwrap();
                    let at = format!("{:?} over {axes:?}, output {out}, {device:?}", input.shape());
                    assert_eq!(got, [key, first, key, last, largest], "{at}");
                }
            }
        }
    }
}

#[test]
fn an_initial_value_is_the_first_of_equal_ones() {
    let input = Array::from_slice(&[4], &[-2, 5, 2, -5]).unwrap();
    for device in devices() {
        for (init, first, last) in [(-5, -5, -5), (3, 5, -5)] {
            let own = vec![left_of_equals(true), left_of_equals(false)];
            let mut call = request(&["left_of_equals", "right_of_equals"], own, &[0], device.clone());
            for op in call.ops.clone() {
                call.init.insert(op, Scalar::Int(init));
            }
            let outcome = coulis::reduce::run(std::slice::from_ref(&input), &call).unwrap();
            let found: Vec<i128> = outcome.results.iter().flat_map(|r| ints(&r.array)).collect();
            assert_eq!(found, [25, first, 25, last], "{init} {device:?}");
        }
    }
}

#[test]
fn a_reducer_that_needs_order_folds_in_order_or_is_refused() {
    let values = elements(40 * 70);
    let input = Array::from_slice(&[40, 70], &values).unwrap();
    let horner_of = |row: &mut dyn Iterator<Item = i32>| {
        row.fold(0u64, |acc, v| acc.wrapping_mul(3).wrapping_add(i64::from(v) as u64))
    };
    for device in [DeviceChoice::CpuExecuted, DeviceChoice::Auto] {
        for axis in [0, 1] {
            let request = request(&["horner"], vec![horner()], &[axis], device.clone());
            let outcome = coulis::reduce::run(std::slice::from_ref(&input), &request).unwrap();
            let want: Vec<u64> = match axis {
                1 => values.chunks(70).map(|row| horner_of(&mut row.iter().copied())).collect(),
                _ => (0..70).map(|c| horner_of(&mut values.iter().skip(c).step_by(70).copied())).collect(),
            };
            assert_eq!(outcome.results[0].array.as_slice::<u64>(), Some(&want[..]), "axis {axis}");
            assert_eq!(outcome.plan.name, "scalar");
        }
        let whole = request(&["horner"], vec![horner()], &[0, 1], device.clone());
        // Three of four neighbours: a fold in any order would take another dimension innermost.
        let three = input.view(&[700, 3], &[4, 1], 0).unwrap();
        let outcome = coulis::reduce::run(&[three], &whole).unwrap();
        let want = horner_of(&mut values.chunks(4).flat_map(|four| four[..3].iter().copied()));
        assert_eq!(outcome.results[0].array.as_slice::<u64>(), Some(&[want][..]));
        let refused = coulis::reduce::run(&[input.transposed()], &whole).unwrap_err();
        assert_eq!((refused.owner, refused.code), (Owner::Unsupported, "reduce/order"), "{refused}");
    }
    let simulated = request(&["horner"], vec![horner()], &[1], DeviceChoice::Sim { warp: 32, orders: 1 });
    let refused = coulis::reduce::run(&[input], &simulated).unwrap_err();
    assert_eq!(refused.code, "reduce/order");
    assert!(refused.message.contains("horner"), "{}", refused.message);
}

#[test]
fn masks_initial_values_and_empty_rows_meet_own_reducers_as_any_other() {
    let values = elements(6);
    let input = Array::from_slice(&[2, 3], &values).unwrap();
    let mask = Array::from_bools(&[2, 3], &[true, false, true, false, false, false]).unwrap();
    for device in devices() {
        let mut call = request(&["xor"], vec![xor()], &[1], device.clone());
        call.where_ = Some(mask.clone());
        call.init.insert("xor".to_owned(), Scalar::Int(9));
        let outcome = coulis::reduce::run(std::slice::from_ref(&input), &call).unwrap();
        assert_eq!(ints(&outcome.results[0].array), [i128::from(values[0] ^ values[2] ^ 9), 9], "{device:?}");
    }
    let empty = Array::from_slice::<i32>(&[2, 0], &[]).unwrap();
    let call = request(&["xor"], vec![xor()], &[1], DeviceChoice::CpuExecuted);
    let outcome = coulis::reduce::run(&[empty], &call).unwrap();
    assert_eq!(ints(&outcome.results[0].array), [0, 0]);
}

#[test]
fn nan_is_absent_for_own_reducers_too_when_it_is_ignored() {
    let combine = |a: &[Expr], b: &[Expr]| vec![a[0].clone().max(b[0].clone())];
    let lift = |v: &[Expr], _: &Expr| vec![v[0].clone() * Expr::float(-2.0, DType::F32)];
    let identity = vec![Expr::float(f64::NEG_INFINITY, DType::F32)];
    let user =
        UserReducer { lift: Some(&lift), ..UserReducer::new("deepest", &[DType::F32], identity, &combine) };
    let own = OwnReducer::new(comm_reducer(&user).unwrap()).unwrap();
    let input = Array::from_slice(&[4], &[1.0f32, f32::NAN, -3.0, 2.0]).unwrap();
    for device in devices() {
        let call =
            Request { nan: NanPolicy::Ignore, ..request(&["deepest"], vec![own.clone()], &[0], device) };
        let outcome = coulis::reduce::run(std::slice::from_ref(&input), &call).unwrap();
        assert_eq!(outcome.results[0].array.as_slice::<f32>(), Some(&[6.0f32][..]));
    }
    // Of nothing but NaN no element takes part, and the identity is left; an extremum of the catalogue is NaN there.
    for (shape, axis) in [([3, 70], 1), ([70, 3], 0)] {
        let input = Array::from_slice(&shape, &[f32::NAN; 210]).unwrap();
        for device in devices() {
            let ops = request(&["deepest", "max"], vec![own.clone()], &[axis], device);
            let call = Request { nan: NanPolicy::Ignore, ..ops };
            let results = coulis::reduce::run(std::slice::from_ref(&input), &call).unwrap().results;
            assert_eq!(results[0].array.as_slice::<f32>(), Some(&[f32::NEG_INFINITY; 3][..]));
            assert!(results[1].array.as_slice::<f32>().unwrap().iter().all(|v| v.is_nan()));
        }
    }
}

#[test]
fn what_is_no_reducer_is_refused_when_it_is_made() {
    let of = |name: &str, combine: Combine| {
        let user = UserReducer::new(name, &[DType::I32], vec![int(0, DType::I32)], combine);
        OwnReducer::new(comm_reducer(&user).unwrap()).unwrap_err()
    };
    let add = |a: &[Expr], b: &[Expr]| vec![a[0].clone() + b[0].clone()];
    let subtract = |a: &[Expr], b: &[Expr]| vec![a[0].clone() - b[0].clone()];
    let outside = coulis::te::Var::new("outside", DType::I32).expr();
    let adds_outside = |a: &[Expr], _: &[Expr]| vec![a[0].clone() + outside.clone()];
    let cases: [(&str, Combine, &str); 4] = [
        ("sum", &add, "`sum` is a statistic of the catalogue"),
        ("a sum", &add, "letters, digits"),
        ("minus", &subtract, "`minus` is refuted"),
        ("strange", &adds_outside, "`combine` of reducer `strange` uses `outside`"),
    ];
    for (name, combine, wanted) in cases {
        let error = of(name, combine);
        assert_eq!((error.owner, error.code), (Owner::User, "reduce/reducer"));
        assert!(error.message.contains(wanted), "{}", error.message);
    }
}

#[test]
fn an_own_reducer_refuses_other_element_types_and_has_no_exact_answer() {
    let input = Array::from_slice(&[3], &[1.0f32, 2.0, 3.0]).unwrap();
    let call = request(&["xor"], vec![xor()], &[0], DeviceChoice::CpuExecuted);
    let error = coulis::reduce::run(&[input], &call).unwrap_err();
    assert_eq!(error.code, "reduce/dtype");
    assert!(error.message.contains("int32") && error.message.contains("float32"), "{}", error.message);
    let input = Array::from_slice(&[3], &[1i32, 2, 3]).unwrap();
    let outcome = coulis::reduce::run(std::slice::from_ref(&input), &call).unwrap();
    let error = coulis::reduce::verify_outcome(&[input], &call, &outcome).unwrap_err();
    assert_eq!((error.owner, error.code), (Owner::Unsupported, "reduce/verify"));
}

#[test]
fn two_reducers_of_one_name_are_two_kernels() {
    let times = |factor: i64| {
        let combine = |a: &[Expr], b: &[Expr]| vec![a[0].clone() + b[0].clone()];
        let lift = move |v: &[Expr], _: &Expr| vec![v[0].clone() * int(factor, DType::I64)];
        let user = UserReducer {
            lift: Some(&lift),
            ..UserReducer::new("scaled", &[DType::I32], vec![int(0, DType::I64)], &combine)
        };
        OwnReducer::new(comm_reducer(&user).unwrap()).unwrap()
    };
    let input = Array::from_slice(&[3], &[1i32, 2, 3]).unwrap();
    for factor in [2, 3, 2] {
        let call = request(&["scaled"], vec![times(factor)], &[0], DeviceChoice::CpuExecuted);
        let outcome = coulis::reduce::run(std::slice::from_ref(&input), &call).unwrap();
        assert_eq!(ints(&outcome.results[0].array), [i128::from(6 * factor)]);
    }
}

/// Sums of so many multiples of the element, `0 * x`, `1 * x`, ..., of which the last is the result.
fn multiples(n: usize) -> OwnReducer {
    let combine = |a: &[Expr], b: &[Expr]| a.iter().zip(b).map(|(a, b)| a.clone() + b.clone()).collect();
    let lift = |v: &[Expr], _: &Expr| {
        let x = v[0].clone().cast(DType::I64);
        (0..n as i64).map(|times| x.clone() * int(times, DType::I64)).collect()
    };
    let finish = |s: &[Expr]| vec![s[n - 1].clone()];
    let identity = vec![int(0, DType::I64); n];
    let user = UserReducer {
        lift: Some(&lift),
        finish: Some(&finish),
        ..UserReducer::new("multiples", &[DType::I32], identity, &combine)
    };
    OwnReducer::new(comm_reducer(&user).unwrap()).unwrap()
}

#[test]
fn states_that_registers_do_not_hold_have_a_plan_that_says_so() {
    let values = elements(60);
    let x = Array::from_slice(&[6, 10], &values).unwrap();
    let remark = |n: usize| {
        let request = Request {
            device: DeviceChoice::Sim { warp: 32, orders: 1 },
            reducers: vec![multiples(n)],
            ..Request::new(&["multiples", "sum"]).over(&[1])
        };
        let outcome = coulis::reduce::run(std::slice::from_ref(&x), &request).unwrap();
        let wanted: Vec<i128> =
            values.chunks(10).map(|row| row.iter().map(|v| i128::from(*v)).sum::<i128>()).collect();
        let times = |times: i128| wanted.iter().map(|sum| sum * times).collect::<Vec<_>>();
        assert_eq!(ints(&outcome.results[0].array), times(n as i128 - 1), "{n}");
        assert_eq!(ints(&outcome.results[1].array), times(1), "{n}");
        let narrowed = outcome.plan.reasons.iter().find(|reason| reason.contains(" narrowed "));
        (outcome.plan.name, narrowed.map(|reason| reason.contains("states in memory")))
    };
    assert_eq!(remark(3).1, None);
    assert_eq!(remark(100), ("gpu_outputs".to_owned(), Some(false)));
    assert_eq!(remark(150), ("gpu_outputs".to_owned(), Some(true)));
}

/// Sums of elements as they are.
fn added(dtype: DType) -> OwnReducer {
    let combine = |a: &[Expr], b: &[Expr]| vec![a[0].clone() + b[0].clone()];
    let user = UserReducer::new("added", &[dtype], vec![Expr::float(0.0, dtype)], &combine);
    OwnReducer::new(comm_reducer(&user).unwrap()).unwrap()
}

const NARROW: [DType; 4] = [DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2];

/// Element by element in their own type, sums of so many equal ones stand still at less than the half.
#[track_caller]
fn accumulates_wide_whatever_is_folded_beside(dtype: DType) {
    let (n, element) = (3000, 2f64.powi(-6));
    let beside: Vec<&str> = CATALOGUE.iter().filter(|e| e.n_inputs == 1).map(|e| e.name).collect();
    let few = ["argmax", "var", "max"];
    let cases = [(DeviceChoice::CpuExecuted, &beside[..]), (DeviceChoice::Sim { warp: 32, orders: 1 }, &few)];
    let want = Scalar::Float(dtype.round_float(n as f64 * element));
    for (device, beside) in &cases {
        for (shape, axis) in [(&[n][..], 0), (&[n, 3], 0), (&[2, n], 1)] {
            let x = array(dtype, shape, &vec![element; shape.iter().product::<i64>() as usize]);
            let lists = beside.iter().map(|op| vec!["added", op]).chain([vec!["added"]]);
            for ops in lists.filter(|ops| shape.len() == 1 || ops.len() == 1 || few.contains(&ops[1])) {
                let request = request(&ops, vec![added(dtype)], &[axis], device.clone());
                let outcome = coulis::reduce::run(std::slice::from_ref(&x), &request).unwrap();
                let found = &outcome.results[0].array;
                assert_eq!(found.dtype(), dtype, "{ops:?}");
                let is_right = found.scalars().all(|v| v == want);
                assert!(is_right, "{dtype} {shape:?} {ops:?} {device:?}: {found:?}, not {want:?}");
            }
        }
    }
}

// One type a test, since they run side by side: each pair of statistics is a kernel to be made.
#[test]
fn float16_is_accumulated_wide_whatever_is_folded_beside_it() {
    accumulates_wide_whatever_is_folded_beside(DType::F16);
}

#[test]
fn bfloat16_is_accumulated_wide_whatever_is_folded_beside_it() {
    accumulates_wide_whatever_is_folded_beside(DType::BF16);
}

#[test]
fn float8_e4m3_is_accumulated_wide_whatever_is_folded_beside_it() {
    accumulates_wide_whatever_is_folded_beside(DType::F8E4M3);
}

#[test]
fn float8_e5m2_is_accumulated_wide_whatever_is_folded_beside_it() {
    accumulates_wide_whatever_is_folded_beside(DType::F8E5M2);
}

#[test]
fn lifts_and_prologues_that_give_narrow_floats_have_wide_states_too() {
    let x = array(DType::F32, &[4, 300], &[1.0 + 2f64.powi(-20); 1200]);
    for device in devices() {
        for dtype in NARROW {
            // Elements are rounded to 1 before they are folded; the product is asked whether it is positive.
            let times = |a: &[Expr], b: &[Expr]| vec![a[0].clone() * b[0].clone()];
            let lift = |v: &[Expr], _: &Expr| vec![v[0].clone().cast(dtype)];
            let finish = |s: &[Expr]| vec![s[0].clone(), s[0].clone().gt(Expr::float(0.0, dtype))];
            let user = UserReducer {
                lift: Some(&lift),
                finish: Some(&finish),
                ..UserReducer::new("times", &[DType::F32], vec![Expr::float(1.0, dtype)], &times)
            };
            let times = OwnReducer::new(comm_reducer(&user).unwrap()).unwrap();
            for beside in ["prod", "count", "logsumexp"] {
                let request = request(&["times", beside], vec![times.clone()], &[1], device.clone());
                let outcome = coulis::reduce::run(std::slice::from_ref(&x), &request).unwrap();
                assert_eq!(outcome.results[0].array.dtype(), dtype);
                assert!(outcome.results[0].array.scalars().all(|v| v == Scalar::Float(1.0)), "{device:?}");
                assert_eq!(ints(&outcome.results[1].array), [1; 4], "{dtype} beside {beside}, {device:?}");
            }
            let call = request(&["added", "max"], vec![added(dtype)], &[1], device.clone());
            let prologue = Prologue::new(1, move |v: &[Expr]| vec![v[0].clone().cast(dtype)]);
            let call = Request { prologue: Some(prologue), ..call };
            let outcome = coulis::reduce::run(std::slice::from_ref(&x), &call).unwrap();
            let want = Scalar::Float(dtype.round_float(300.0));
            assert!(outcome.results[0].array.scalars().all(|v| v == want), "{dtype}, {device:?}");
        }
    }
}

#[test]
fn arithmetic_in_a_type_of_storage_is_a_users_mistake() {
    let stored = |v: &Expr| v.clone().cast(DType::F8E4M3);
    let combine = |a: &[Expr], b: &[Expr]| vec![a[0].clone() + b[0].clone()];
    let twice = |s: &[Expr]| vec![stored(&s[0]) + stored(&s[0])];
    let user = UserReducer::new("twice", &[DType::F32], vec![Expr::float(0.0, DType::F32)], &combine);
    let error = OwnReducer::new(comm_reducer(&UserReducer { finish: Some(&twice), ..user }).unwrap());
    let error = error.unwrap_err();
    assert_eq!((error.owner, error.code), (Owner::User, "reduce/reducer"));
    assert!(error.message.contains("`finish` of reducer `twice` computes `+` of float8_e4m3"), "{error}");
    let prologue = Some(Prologue::new(1, move |v: &[Expr]| vec![stored(&v[0]) * stored(&v[0])]));
    let x = Array::from_slice(&[2], &[1.0f32, 2.0]).unwrap();
    let error = coulis::reduce::run(&[x], &Request { prologue, ..Request::new(&["sum"]) }).unwrap_err();
    assert_eq!((error.owner, error.code), (Owner::User, "reduce/prologue"));
    assert!(error.message.contains("the prologue computes `*` of float8_e4m3"), "{error}");
}
