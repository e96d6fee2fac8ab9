//! `reduce` against exact answers: every statistic, every strategy, special rows, both ways to run.

mod common;

use common::{Special, array, check, executed, numbers};
use coulis::{Array, DType, DeviceChoice, NanPolicy, Request};

/// Statistics of one input, a few a kernel.
const GROUPS: [&[&str]; 6] = [
    &["sum", "mean", "var", "min", "max"],
    &["prod", "std", "absmax", "count"],
    &["sumsq", "norm1", "norm2", "meansq"],
    &["any", "all", "count_nonzero", "logsumexp"],
    &["argmin", "argmax", "minloc"],
    &["argmin_last", "argmax_last", "maxloc"],
];

#[test]
fn the_groups_hold_every_statistic_of_one_input() {
    let mut found: Vec<&str> = GROUPS.concat();
    let mut wanted: Vec<&str> =
        coulis::CATALOGUE.iter().filter(|e| e.n_inputs == 1).map(|e| e.name).collect();
    found.sort_unstable();
    wanted.sort_unstable();
    assert_eq!(found, wanted);
}

/// Shapes and axes that reach every strategy.
const CASES: &[(&[i64], &[i64])] = &[
    (&[], &[]),
    (&[1], &[0]),
    (&[7], &[0]),
    (&[1000], &[0]),
    (&[37, 129], &[1]),
    (&[300, 16], &[1]),
    (&[129, 37], &[0]),
    (&[100, 3], &[0]),
    (&[5, 40, 6], &[1]),
    (&[4, 6, 8, 10], &[0, 2]),
    (&[0, 4], &[0]),
    (&[4, 0], &[0]),
    (&[3, 5], &[]),
];

#[test]
fn every_statistic_is_exact_on_every_kind_of_shape_when_executed() {
    for (shape, axes) in CASES {
        let n = shape.iter().product::<i64>() as usize;
        for (ops, dtype) in GROUPS.iter().zip([DType::F32, DType::I16].iter().cycle()) {
            let input = array(*dtype, shape, &numbers(n, Special::Zeros, 7));
            check(&[input], &executed(ops, axes))
                .unwrap_or_else(|why| panic!("{ops:?} {shape:?} {axes:?}: {why}"));
        }
    }
}

#[test]
fn a_mask_that_leaves_nothing_is_refused_by_extrema_alone() {
    let input = array(DType::F32, &[3, 4], &numbers(12, Special::Zeros, 3));
    let mask = Array::from_bools(&[3, 1], &[true, false, true]).unwrap();
    let masked = |ops: &[&str]| Request { where_: Some(mask.clone()), ..executed(ops, &[1]) };
    for op in ["min", "max", "absmax", "argmin", "argmax", "argmin_last", "argmax_last", "minloc", "maxloc"] {
        let error = coulis::reduce::run(std::slice::from_ref(&input), &masked(&[op])).unwrap_err();
        assert_eq!((error.owner, error.code), (coulis::Owner::User, "reduce/empty"), "{op}");
        assert!(error.message.contains("output 1"), "{}", error.message);
    }
    check(std::slice::from_ref(&input), &masked(&["sum", "mean", "count", "any", "prod"])).unwrap();
}

#[test]
fn a_row_of_the_identity_is_not_an_empty_row() {
    let input = Array::from_slice(&[2, 2], &[f32::INFINITY, f32::INFINITY, 1.0, 2.0]).unwrap();
    let mask = Array::from_bools(&[2, 2], &[true, false, true, true]).unwrap();
    let request = Request { where_: Some(mask), ..executed(&["min"], &[1]) };
    let outcome = coulis::reduce::run(&[input], &request).unwrap();
    assert_eq!(outcome.results[0].array.as_slice::<f32>(), Some(&[f32::INFINITY, 1.0][..]));
}

#[test]
fn extrema_of_nothing_but_nan_are_nan_when_nan_is_ignored() {
    let input = Array::from_slice(&[2, 2], &[f32::NAN, f32::NAN, 1.0, f32::NAN]).unwrap();
    for mask in [None, Some(Array::from_bools(&[2, 2], &[true, false, true, true]).unwrap())] {
        let request =
            Request { nan: NanPolicy::Ignore, where_: mask, ..executed(&["min", "max", "absmax"], &[1]) };
        check(std::slice::from_ref(&input), &request).unwrap();
    }
}

/// Shape, axes, statistics and type of a case.
type Compiled<'a> = (&'a [i64], &'a [i64], &'a [&'a str], DType);

#[test]
fn compiled_kernels_give_the_exact_answers_too() {
    let cases: &[Compiled] = &[
        (&[37, 129], &[1], &["sum", "var", "max"], DType::F32),
        (&[129, 37], &[0], &["mean", "argmin"], DType::F16),
        (&[300, 16], &[1], &["logsumexp", "any"], DType::F32),
        (&[5, 40, 6], &[1], &["maxloc", "norm2"], DType::I16),
        (&[1000], &[0], &["sum", "prod"], DType::U8),
    ];
    for (shape, axes, ops, dtype) in cases {
        let n = shape.iter().product::<i64>() as usize;
        let input = array(*dtype, shape, &numbers(n, Special::Zeros, 5));
        let request = Request { device: DeviceChoice::Auto, ..executed(ops, axes) };
        check(&[input], &request).unwrap_or_else(|why| panic!("{ops:?} {shape:?} {axes:?}: {why}"));
    }
}

#[test]
fn a_result_that_was_changed_is_refuted_where_it_was_changed() {
    let input = array(DType::F32, &[4, 50], &numbers(200, Special::Zeros, 3));
    let request = executed(&["sum", "argmax"], &[1]);
    let mut outcome = coulis::reduce::run(std::slice::from_ref(&input), &request).unwrap();
    let mut sums = outcome.results[0].array.as_slice::<f32>().unwrap().to_vec();
    sums[2] += 0.01;
    outcome.results[0].array = Array::from_slice(&[4], &sums).unwrap();
    let report = coulis::reduce::verify(std::slice::from_ref(&input), &request, &outcome).unwrap();
    assert!(!report.is_right());
    assert_eq!(report.results[0].refuted.as_ref().map(|r| r.output), Some(2));
    assert_eq!(report.results[1].refuted, None);
}
