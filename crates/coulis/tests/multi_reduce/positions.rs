//! Positions of extrema: T33 to T41.

use std::collections::BTreeMap;

use coulis::te::Expr;
use coulis::{Array, DType, DeviceChoice, OwnReducer, Request, UserReducer, comm_reducer};

use crate::common::{Lie, Special, array, numbers, view};
use crate::harness::{Compiled, array_of, exact_everywhere, number, places, repeated, whole};

const POSITIONS: [&str; 4] = ["argmin", "argmax", "argmin_last", "argmax_last"];

/// The results of the positions on every device are these.
fn finds(input: &Array, ops: &[&str], want: &[f64]) {
    for device in places(input.len(), Compiled::No) {
        let call = Request { device, ..Request::new(ops) };
        let outcome = coulis::reduce::run(std::slice::from_ref(input), &call).unwrap();
        let found: Vec<f64> = outcome.results.iter().flat_map(|r| r.array.scalars().map(number)).collect();
        assert_eq!(found, want, "{ops:?} on {}", outcome.device);
    }
}

#[test]
fn mr_t33_known_rows() {
    for dtype in [DType::I32, DType::F32, DType::I8] {
        let row = array_of(dtype, &[7], &[8, 6, -7, 5, 3, 1, -9]);
        finds(&row, &["minloc", "maxloc"], &[-9.0, 6.0, 8.0, 0.0]);
        finds(&array_of(dtype, &[1], &[42]), &POSITIONS, &[0.0; 4]);
        finds(&array_of(dtype, &[5], &[5; 5]), &POSITIONS, &[0.0, 0.0, 4.0, 4.0]);
    }
}

#[test]
fn mr_t34_rows_of_one_infinity() {
    for value in [f64::INFINITY, f64::NEG_INFINITY] {
        for dtype in [DType::F32, DType::F16, DType::F64] {
            let row = array(dtype, &[10], &[value; 10]);
            finds(&row, &["minloc", "maxloc"], &[value, 0.0, value, 0.0]);
        }
    }
}

#[test]
fn mr_t35_repeated_extrema_at_the_ends_and_beside_them() {
    for n in [40usize, 1000, 300_000] {
        for (first, last) in [(0, n - 1), (1, n - 2), (0, n - 2), (1, n - 1), (n - 2, n - 1), (0, 1)] {
            let mut values = vec![0i64; n];
            values[first] = 9;
            values[last] = 9;
            let row = array_of(DType::F32, &[n as i64], &values);
            let smallest_last = (0..n).rev().find(|at| values[*at] == 0).unwrap();
            let smallest = (0..n).find(|at| values[*at] == 0).unwrap();
            let want = [smallest, first, smallest_last, last].map(|at| at as f64);
            if n < 6000 {
                finds(&row, &POSITIONS, &want);
            } else {
                for device in places(n, Compiled::No) {
                    let call = Request { device, ..Request::new(&POSITIONS) };
                    let outcome = coulis::reduce::run(std::slice::from_ref(&row), &call).unwrap();
                    let found: Vec<f64> =
                        outcome.results.iter().flat_map(|r| r.array.scalars().map(number)).collect();
                    assert_eq!(found, want);
                }
            }
        }
    }
}

#[test]
fn mr_t36_an_own_comparison_with_the_most_negative_integer() {
    // Order by magnitude, where the magnitude of the most negative integer is that of its unsigned bits.
    let magnitude = |v: &Expr| {
        let wide = v.clone().cast(DType::I64);
        let zero = Expr::int_of(0, DType::I64);
        Expr::select(wide.clone().lt(zero.clone()), zero - wide.clone(), wide)
    };
    let combine = |a: &[Expr], b: &[Expr]| {
        let (left, right) = (magnitude(&a[0]), magnitude(&b[0]));
        let earlier = a[1].clone().lt(b[1].clone());
        let takes_left = left.clone().gt(right.clone()).or(left.equal(right).and(earlier));
        (0..2).map(|f| Expr::select(takes_left.clone(), a[f].clone(), b[f].clone())).collect()
    };
    let lift = |v: &[Expr], at: &Expr| vec![v[0].clone(), at.clone()];
    let identity = vec![Expr::int_of(0, DType::I32), Expr::int_of(i128::from(i64::MAX), DType::I64)];
    let user =
        UserReducer { lift: Some(&lift), ..UserReducer::new("widest", &[DType::I32], identity, &combine) };
    let own = OwnReducer::new(comm_reducer(&user).unwrap()).unwrap();
    let mut values: Vec<i32> = whole(3000, DType::I32, 8).iter().map(|v| *v as i32 + 7).collect();
    values[1777] = i32::MIN;
    values[2500] = i32::MAX;
    let input = Array::from_slice(&[3000], &values).unwrap();
    for device in places(3000, Compiled::No) {
        let call = Request { device, reducers: vec![own.clone()], ..Request::new(&["widest"]) };
        let outcome = coulis::reduce::run(std::slice::from_ref(&input), &call).unwrap();
        let found: Vec<f64> = outcome.results.iter().flat_map(|r| r.array.scalars().map(number)).collect();
        assert_eq!(found, [f64::from(i32::MIN), 1777.0]);
    }
    exact_everywhere(&[input], &Request::new(&["absmax", "minloc"]), Compiled::No);
}

#[test]
fn mr_t37_positions_beyond_32_bits() {
    let mut row = vec![0i8; 1 << 20];
    row[12_345] = 3;
    let row = Array::from_slice(&[1 << 20], &row).unwrap();
    let times = (1i64 << 12) + 3;
    let input = repeated(&row, times);
    let last = ((times - 1) << 20) + 12_345;
    assert!(last > i64::from(u32::MAX));
    for device in places(usize::MAX, Compiled::Yes).into_iter().filter(|d| *d != DeviceChoice::CpuExecuted) {
        let call = Request { device, ..Request::new(&["argmax", "argmax_last"]) };
        let outcome = coulis::reduce::run(std::slice::from_ref(&input), &call).unwrap();
        let found: Vec<f64> = outcome.results.iter().flat_map(|r| r.array.scalars().map(number)).collect();
        assert_eq!(found, [12_345.0, last as f64], "on {}", outcome.device);
    }
}

#[test]
fn mr_t38_positions_over_several_axes_in_any_order() {
    let input = array(DType::F32, &[4, 5, 6, 7], &numbers(4 * 5 * 6 * 7, Special::All, 3));
    for axes in [&[1i64, 3][..], &[3, 1], &[0, 2], &[-1, 0], &[2, 1, 0], &[0, 1, 2, 3]] {
        exact_everywhere(std::slice::from_ref(&input), &Request::new(&POSITIONS).over(axes), Compiled::No);
    }
    // Where memory's order is another than that of the axes, too.
    let lies = [Lie::Backward, Lie::Dense, Lie::Gap(2)];
    let turned = view(DType::F32, &[7, 8, 9], &[2, 0, 1], &lies, |n| numbers(n, Special::Nan, 9));
    for axes in [&[0i64, 1, 2][..], &[0, 2], &[1]] {
        exact_everywhere(std::slice::from_ref(&turned), &Request::new(&POSITIONS).over(axes), Compiled::No);
    }
}

#[test]
fn mr_t39_alpha_scales_the_value_and_leaves_the_position() {
    let input = array(DType::F32, &[5, 60], &numbers(300, Special::Zeros, 1));
    let alpha = BTreeMap::from([("max".to_owned(), 0.5)]);
    let call = Request { alpha, ..Request::new(&["max", "argmax"]).over(&[1]) };
    exact_everywhere(&[input], &call, Compiled::No);
}

#[test]
fn mr_t40_the_first_nan_is_found() {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let mut values = vec![1.0; 500];
        (values[77], values[300]) = (f64::NAN, f64::NAN);
        let row = array(dtype, &[500], &values);
        finds(&row, &["argmin", "argmax"], &[77.0, 77.0]);
        exact_everywhere(&[row], &Request::new(&POSITIONS), Compiled::No);
    }
}

#[test]
fn mr_t41_values_and_positions_of_other_types_than_the_input() {
    let input = array(DType::F16, &[7, 90], &numbers(630, Special::Zeros, 2));
    let out = |pairs: &[(&str, DType)]| pairs.iter().map(|(op, d)| ((*op).to_owned(), *d)).collect();
    let dtypes = out(&[("max", DType::F64), ("argmax", DType::I32), ("minloc", DType::F32)]);
    let call = Request { out_dtypes: dtypes, ..Request::new(&["max", "argmax", "minloc"]).over(&[1]) };
    exact_everywhere(std::slice::from_ref(&input), &call, Compiled::Yes);
    let outcome = coulis::reduce::run(&[input], &call).unwrap();
    let dtypes: Vec<DType> = outcome.results.iter().map(|r| r.array.dtype()).collect();
    assert_eq!(dtypes, [DType::F64, DType::I32, DType::F32, DType::I64]);
}

#[test]
fn positions_and_counts_that_a_type_does_not_hold_are_refused_and_others_are_right() {
    let row = |n: usize| array(DType::U8, &[n as i64], &(0..n).map(|i| (i % 200) as f64).collect::<Vec<_>>());
    let call = |op: &str, dtype| Request {
        out_dtypes: BTreeMap::from([(op.to_owned(), dtype)]),
        ..Request::new(&[op])
    };
    // The longest row whose positions, or number of elements, the type holds; one more is refused.
    let table = [
        ("argmax", DType::I8, 128),
        ("argmin_last", DType::U8, 256),
        ("argmax_last", DType::Bool, 2),
        ("argmin", DType::F8E5M2, 9),
        ("argmin", DType::F8E4M3, 17),
        ("argmax", DType::BF16, 257),
        ("argmax", DType::F16, 2049),
        ("count", DType::I8, 127),
        ("count_nonzero", DType::U8, 255),
        ("count", DType::F8E5M2, 8),
        ("count_nonzero", DType::F16, 2048),
    ];
    for (op, dtype, n) in table {
        exact_everywhere(&[row(n)], &call(op, dtype), Compiled::No);
        let error = coulis::reduce::run(&[row(n + 1)], &call(op, dtype)).unwrap_err();
        assert_eq!(error.code, "reduce/dtype", "{op} {dtype}");
        let text = error.to_string();
        assert!(
            text.contains(&format!("over {} elements", n + 1)) && text.contains("int64 holds all"),
            "{text}"
        );
    }
    // A part of a number of elements is a float that rounds as others do.
    let part = Request { alpha: BTreeMap::from([("count".to_owned(), 0.5)]), ..call("count", DType::F8E5M2) };
    let count = coulis::reduce::run(&[row(300)], &part).unwrap();
    assert_eq!(count.results[0].array.scalars().next().unwrap().to_f64(), 160.0);
    // With elements left out, -1 is to be told from positions too.
    let mask = coulis::Array::from_bools(&[1], &[true]).unwrap();
    let masked = Request { where_: Some(mask), ..call("argmax", DType::U8) };
    assert_eq!(coulis::reduce::run(&[row(256)], &masked).unwrap_err().code, "reduce/dtype");
    let ignoring = Request { nan: coulis::NanPolicy::Ignore, ..call("argmax", DType::U8) };
    let floats = array(DType::F32, &[256], &[0.0; 256]);
    assert_eq!(coulis::reduce::run(&[floats], &ignoring).unwrap_err().code, "reduce/dtype");
    // Of integers none is NaN.
    assert!(coulis::reduce::run(&[row(256)], &ignoring).is_ok());
}
