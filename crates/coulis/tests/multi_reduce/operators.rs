//! Operators: rows of the dtype table, several statistics in one call, own reducers, initial values (T21 to T32).

use std::collections::BTreeMap;

use coulis::te::{BinaryOp, Expr};
use coulis::{Array, CATALOGUE, DType, NanPolicy, OwnReducer, Request, Scalar, UserReducer, comm_reducer};

use crate::common::{Special, array, numbers};
use crate::harness::{Compiled, Whole, array_of, exact_everywhere, number, places, whole};

#[test]
fn mr_t21_six_operators_for_each_row_of_the_dtype_table() {
    let all: &[&str] = &["sum", "mean", "norm2", "min", "max", "absmax"];
    let (sums, extrema) = (&all[..3], &all[3..]);
    let rows: [(DType, Option<DType>, DType, &[&str]); 11] = [
        (DType::BF16, Some(DType::F32), DType::BF16, sums),
        (DType::BF16, None, DType::BF16, extrema),
        (DType::F16, None, DType::F16, extrema),
        (DType::F16, Some(DType::F32), DType::F16, sums),
        (DType::F32, Some(DType::F32), DType::F32, sums),
        (DType::F32, None, DType::F32, extrema),
        (DType::F32, Some(DType::F64), DType::F32, sums),
        (DType::F64, Some(DType::F64), DType::F64, sums),
        (DType::I8, None, DType::I8, extrema),
        (DType::BF16, Some(DType::F32), DType::F32, &all[..2]),
        (DType::F16, Some(DType::F32), DType::F32, &all[..2]),
    ];
    let shapes: [(&[i64], &[i64]); 4] = [
        (&[4, 3, 6, 20], &[1, 2, 3]),
        (&[4, 3, 6, 20], &[0, 1, 2, 3]),
        (&[60, 4, 3, 2], &[0]),
        (&[37, 41], &[1]),
    ];
    for (nth, (dtype, acc, out, ops)) in rows.into_iter().enumerate() {
        for (shape, axes) in [shapes[nth % 4], shapes[(nth + 1) % 4]] {
            Whole { acc, out: Some(out), ..Whole::new(dtype, shape, axes, ops) }.check(Compiled::No);
        }
    }
    // Sums of int8 in int8 wrap; the contract's way is an accumulator of 64 bits, and a result of the type asked for.
    Whole { out: Some(DType::I32), ..Whole::new(DType::I8, &[30, 300], &[1], &["sum"]) }.check(Compiled::Yes);
}

#[test]
fn mr_t22_products_and_sums_of_magnitudes() {
    let values = numbers(300, Special::Zeros, 4).iter().map(|v| 1.0 + v / 64.0).collect::<Vec<_>>();
    for dtype in [DType::F32, DType::F64, DType::F16] {
        let input = array(dtype, &[3, 100], &values);
        exact_everywhere(&[input], &Request::new(&["prod", "norm1"]).over(&[1]), Compiled::No);
    }
    let ints = array(DType::I32, &[2, 60], &numbers(120, Special::Zeros, 8));
    exact_everywhere(&[ints], &Request::new(&["prod", "norm1"]).over(&[1]), Compiled::Yes);
}

#[test]
fn mr_t23_mean_and_mean_of_squares_in_one_call() {
    let case = Whole::new(DType::F16, &[30, 7, 5, 4], &[1, 2, 3], &["mean", "meansq"]);
    Whole { out: Some(DType::F32), ..case }.check(Compiled::Yes);
}

#[test]
fn mr_t24_sets_of_statistics_of_different_operators() {
    let sets: [&[&str]; 5] = [
        &["sum", "sumsq"],
        &["sum", "max"],
        &["max", "absmax"],
        &["sum", "mean", "var", "min", "max", "argmax"],
        &["prod", "count", "norm1", "norm2", "any", "all", "logsumexp"],
    ];
    for ops in sets {
        for (shape, axis) in [([40, 33], 1), ([40, 33], 0), ([3, 900], 1)] {
            let n = (shape[0] * shape[1]) as usize;
            let input = array(DType::F32, &shape, &numbers(n, Special::Zeros, 21));
            exact_everywhere(&[input], &Request::new(ops).over(&[axis]), Compiled::No);
        }
    }
}

/// Runs a reducer of one result over axis 1 of int values on every device.
fn own_rows(reducer: &OwnReducer, input: &Array, init: Option<i64>) -> Vec<Vec<f64>> {
    let name = reducer.name();
    let init = init.map(|v| BTreeMap::from([(name.to_owned(), Scalar::Int(v))])).unwrap_or_default();
    let run = |device| {
        let own = vec![reducer.clone()];
        let call = Request { device, reducers: own, init: init.clone(), ..Request::new(&[name]).over(&[1]) };
        let outcome = coulis::reduce::run(std::slice::from_ref(input), &call).unwrap();
        outcome.results[0].array.scalars().map(number).collect()
    };
    places(input.len(), Compiled::No).into_iter().map(run).collect()
}

fn constant(value: i64, dtype: DType) -> Expr {
    Expr::int_of(i128::from(value), dtype)
}

#[test]
fn mr_t25_an_own_state_and_a_result_of_another_type() {
    // Mean distance from 3, kept as a pair of integers and finished as a float64.
    let combine = |a: &[Expr], b: &[Expr]| vec![a[0].clone() + b[0].clone(), a[1].clone() + b[1].clone()];
    let lift = |v: &[Expr], _: &Expr| {
        let d = v[0].clone().cast(DType::I64) - constant(3, DType::I64);
        vec![
            Expr::select(d.clone().lt(constant(0, DType::I64)), constant(0, DType::I64) - d.clone(), d),
            constant(1, DType::I64),
        ]
    };
    let finish = |s: &[Expr]| vec![s[0].clone().cast(DType::F64) / s[1].clone().cast(DType::F64)];
    let identity = vec![constant(0, DType::I64), constant(0, DType::I64)];
    let user = UserReducer {
        lift: Some(&lift),
        finish: Some(&finish),
        ..UserReducer::new("distance", &[DType::I16], identity, &combine)
    };
    let own = OwnReducer::new(comm_reducer(&user).unwrap()).unwrap();
    let values = whole(20 * 77, DType::I16, 2);
    let want: Vec<f64> =
        values.chunks(77).map(|r| r.iter().map(|v| (v - 3).abs()).sum::<i64>() as f64 / 77.0).collect();
    for found in own_rows(&own, &array_of(DType::I16, &[20, 77], &values), None) {
        assert_eq!(found, want);
    }
}

#[test]
fn mr_t26_an_initial_value_counts_once_whatever_the_plan() {
    for (shape, axes) in [(vec![5000i64], vec![0i64]), (vec![3, 1700], vec![1]), (vec![1700, 3], vec![0])] {
        let n = shape.iter().product::<i64>() as usize;
        let values = whole(n, DType::I32, 9);
        let input = array_of(DType::I32, &shape, &values);
        for init in [42, -42, 0, i32::MAX, i32::MIN] {
            let value = Scalar::Int(init.into());
            let ops = ["sum", "max", "min"];
            let call = Request {
                init: ops.iter().map(|op| ((*op).to_owned(), value)).collect(),
                ..Request::new(&ops).over(&axes)
            };
            exact_everywhere(std::slice::from_ref(&input), &call, Compiled::No);
        }
    }
    let large = array_of(DType::I32, &[400_000], &whole(400_000, DType::I32, 9));
    let call =
        Request { init: BTreeMap::from([("sum".to_owned(), Scalar::Int(42))]), ..Request::new(&["sum"]) };
    exact_everywhere(&[large], &call, Compiled::Yes);
}

#[test]
fn mr_t27_a_fold_without_initial_value_meets_no_made_up_one() {
    // The largest of negative numbers only, the smallest of positive ones only, and a product: a zero would show.
    let negative: Vec<i64> = (0..900).map(|i| -1 - i % 7).collect();
    for dtype in [DType::I8, DType::I32, DType::F16, DType::F32] {
        let input = array_of(dtype, &[3, 300], &negative);
        exact_everywhere(&[input], &Request::new(&["max", "argmax"]).over(&[1]), Compiled::No);
        let input = array_of(dtype, &[3, 300], &negative.iter().map(|v| -v).collect::<Vec<_>>());
        exact_everywhere(&[input], &Request::new(&["min", "all"]).over(&[1]), Compiled::No);
    }
}

#[test]
fn mr_t28_bitwise_and_logical_operators_on_integers_give_the_same_bits_everywhere() {
    for dtype in [DType::I8, DType::I32, DType::I64] {
        let values = whole(15 * 130, dtype, 6);
        let input = array_of(dtype, &[15, 130], &values);
        for (name, op, identity) in
            [("xor", BinaryOp::BitXor, 0), ("bit_or", BinaryOp::BitOr, 0), ("bit_and", BinaryOp::BitAnd, -1)]
        {
            let combine = |a: &[Expr], b: &[Expr]| vec![Expr::binary(op, a[0].clone(), b[0].clone())];
            let user = UserReducer::new(name, &[dtype], vec![constant(identity, dtype)], &combine);
            let own = OwnReducer::new(comm_reducer(&user).unwrap()).unwrap();
            let fold = |a: i64, b: &i64| match op {
                BinaryOp::BitXor => a ^ b,
                BinaryOp::BitOr => a | b,
                _ => a & b,
            };
            let want: Vec<f64> =
                values.chunks(130).map(|row| row.iter().fold(identity, fold) as f64).collect();
            for found in own_rows(&own, &input, None) {
                assert_eq!(found, want, "{name} of {dtype}");
            }
        }
        exact_everywhere(&[input], &Request::new(&["min", "max", "any", "all"]).over(&[1]), Compiled::No);
    }
}

#[test]
fn mr_t29_elements_states_and_results_of_four_types() {
    // int8 elements, squared in int32, summed in float64, returned as float32.
    let combine = |a: &[Expr], b: &[Expr]| vec![a[0].clone() + b[0].clone()];
    let lift = |v: &[Expr], _: &Expr| {
        let wide = v[0].clone().cast(DType::I32);
        vec![(wide.clone() * wide).cast(DType::F64)]
    };
    let finish = |s: &[Expr]| vec![s[0].clone().cast(DType::F32)];
    let user = UserReducer {
        lift: Some(&lift),
        finish: Some(&finish),
        ..UserReducer::new("energy", &[DType::I8], vec![Expr::float(0.0, DType::F64)], &combine)
    };
    let own = OwnReducer::new(comm_reducer(&user).unwrap()).unwrap();
    let values = whole(8 * 300, DType::I8, 3);
    let want: Vec<f64> = values.chunks(300).map(|r| r.iter().map(|v| v * v).sum::<i64>() as f64).collect();
    let input = array_of(DType::I8, &[8, 300], &values);
    for found in own_rows(&own, &input, Some(-7)) {
        assert_eq!(
            found,
            want.iter().map(|v| v + 49.0).collect::<Vec<_>>(),
            "the initial value is squared too"
        );
    }
    exact_everywhere(&[input], &Request::new(&["sumsq", "absmax", "norm1"]).over(&[1]), Compiled::No);
}

#[test]
fn mr_t31_variance_and_log_sum_exp_far_from_zero() {
    for offset in [1e6, -3e5] {
        let values: Vec<f64> = numbers(1200, Special::Zeros, 31).iter().map(|v| v + offset).collect();
        for dtype in [DType::F32, DType::F64] {
            let input = array(dtype, &[2, 600], &values);
            let ops = ["mean", "var", "std", "logsumexp"];
            exact_everywhere(&[input], &Request::new(&ops).over(&[1]), Compiled::No);
        }
    }
}

#[test]
fn mr_t32_lifts_that_do_not_keep_the_identity() {
    // v + 1 and (v - c)^2: padding with zeros, or lifting the identity, would add to the sum.
    let values = whole(21 * 53, DType::I32, 12);
    let input = array_of(DType::I32, &[21, 53], &values);
    type Plain = fn(i64) -> i64;
    type Lifted = fn(Expr) -> Expr;
    let lifts: [(&str, Plain, Lifted); 2] = [
        ("plus_one", |v| v + 1, |v| v + constant(1, DType::I64)),
        (
            "from_four",
            |v| (v - 4) * (v - 4),
            |v| {
                let d = v - constant(4, DType::I64);
                d.clone() * d
            },
        ),
    ];
    for (name, plain, lifted) in lifts {
        let lift = |v: &[Expr], _: &Expr| vec![lifted(v[0].clone().cast(DType::I64))];
        let combine = |a: &[Expr], b: &[Expr]| vec![a[0].clone() + b[0].clone()];
        let user = UserReducer {
            lift: Some(&lift),
            ..UserReducer::new(name, &[DType::I32], vec![constant(0, DType::I64)], &combine)
        };
        let own = OwnReducer::new(comm_reducer(&user).unwrap()).unwrap();
        let want: Vec<f64> =
            values.chunks(53).map(|r| r.iter().map(|v| plain(*v)).sum::<i64>() as f64).collect();
        for found in own_rows(&own, &input, None) {
            assert_eq!(found, want, "{name}");
        }
    }
    let floats = array(DType::F32, &[21, 53], &numbers(21 * 53, Special::All, 5));
    exact_everywhere(&[floats], &Request::new(&["logsumexp", "var"]).over(&[1]), Compiled::No);
}

#[test]
fn each_scenario_with_floats_ignores_nan_when_asked() {
    let input = array(DType::F32, &[9, 111], &numbers(999, Special::Nan, 17));
    for entry in CATALOGUE.iter().filter(|e| e.n_inputs == 1) {
        let call = Request { nan: NanPolicy::Ignore, ..Request::new(&[entry.name]).over(&[1]) };
        exact_everywhere(std::slice::from_ref(&input), &call, Compiled::No);
    }
}
