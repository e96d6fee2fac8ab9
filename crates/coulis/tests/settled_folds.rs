//! Folds that end early on CPUs, once nothing more changes their state: flags and extrema of narrow types, whose deciding
//! element is anywhere or nowhere, in rows, in chunks and in rounds of them, by compiled code and by the executor.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::slice::from_ref;

use common::{Special, array, check, executed, numbers};
use coulis::reduce::plan;
use coulis::{Array, DType, NanPolicy, Request, Scalar};
use coulis_ir::args::{ArrayInfo, compact_strides};

fn info(dtype: DType, shape: &[i64]) -> ArrayInfo {
    ArrayInfo { dtype, shape: shape.to_vec(), strides: compact_strides(shape) }
}

/// Where a row holds what decides: of these, a place of each row in turn. -1 is nowhere.
const PLACES: [i64; 14] = [0, -1, 1, 127, 255, 256, 300, 4090, 4796, 8191, 8192, 50_000, 65_537, 69_999];

/// Rows of zeros, but for what `made` gives of the place that decides.
fn rows(n_rows: i64, length: i64, turn: usize, decides: f64, others: f64) -> Vec<f64> {
    let mut values = vec![others; (n_rows * length) as usize];
    for row in 0..n_rows {
        let at = PLACES[(turn + row as usize) % PLACES.len()];
        if (0..length).contains(&at) {
            values[(row * length + at) as usize] = decides;
        }
    }
    values
}

#[test]
fn rows_are_folded_as_far_as_it_takes() {
    let cases: [(DType, &[&str], f64, f64); 11] = [
        (DType::Bool, &["any"], 1.0, 0.0),
        (DType::Bool, &["all"], 0.0, 1.0),
        (DType::I8, &["any"], -3.0, 0.0),
        (DType::F32, &["any"], f64::NAN, 0.0),
        (DType::F16, &["all", "any"], 0.0, 1.0),
        (DType::Bool, &["max", "min"], 1.0, 0.0),
        (DType::U8, &["max", "any", "sum"], 255.0, 0.0),
        (DType::F64, &["any"], 1.0, 0.0),
        (DType::Bool, &["argmax"], 1.0, 0.0),
        (DType::U8, &["argmin", "min"], 0.0, 9.0),
        (DType::I8, &["maxloc", "argmax_last"], 127.0, -2.0),
    ];
    for (turn, (dtype, ops, decides, others)) in cases.into_iter().enumerate() {
        for (n_rows, length) in [(9, 70_001), (1, 65_538), (3, 8192), (40, 4797), (17, 4096), (19, 5003)] {
            let input = array(dtype, &[n_rows, length], &rows(n_rows, length, turn, decides, others));
            for request in [Request::new(ops).over(&[1]), executed(ops, &[1])] {
                let request = Request { keepdims: turn % 2 == 0, ..request };
                check(from_ref(&input), &request).unwrap_or_else(|why| panic!("{ops:?} of {dtype}: {why}"));
            }
        }
    }
}

#[test]
fn positions_in_rows_of_bools_are_the_first_wherever_they_are() {
    // Rows of one run and of several, whole and with rests; as many rows as lanes, with a rest, and in several dimensions.
    for (turn, shape) in [vec![33, 641], vec![34, 4096], vec![32, 5003], vec![2, 19, 4160], vec![32, 9001]]
        .into_iter()
        .enumerate()
    {
        let (n_rows, length) = (shape[..shape.len() - 1].iter().product(), shape[shape.len() - 1]);
        for (ops, decides) in [(&["argmax"][..], 1.0), (&["argmin"], 0.0), (&["max", "argmax"], 1.0)] {
            let values = rows(n_rows, length, turn, decides, 1.0 - decides);
            let input = array(DType::Bool, &shape, &values);
            let axes = [shape.len() as i64 - 1];
            for request in [Request::new(ops).over(&axes), executed(ops, &axes)] {
                check(from_ref(&input), &request).unwrap_or_else(|why| panic!("{ops:?} of {shape:?}: {why}"));
            }
        }
    }
}

#[test]
fn elements_that_do_not_take_part_settle_nothing() {
    for (n_rows, length) in [(4, 40_000), (4, 5003)] {
        settles_nothing(n_rows, length);
    }
}

fn settles_nothing(n_rows: i64, length: i64) {
    let n = (n_rows * length) as usize;
    let input = array(DType::U8, &[n_rows, length], &rows(n_rows, length, 0, 255.0, 0.0));
    let mut takes_part = vec![true; n];
    takes_part[0] = false;
    takes_part[(2 * length + 1) as usize] = false;
    let mask = Array::from_bools(&[n_rows, length], &takes_part).unwrap();
    for ops in [&["any"][..], &["max"]] {
        for request in [Request::new(ops).over(&[1]), executed(ops, &[1])] {
            let request = Request { where_: Some(mask.clone()), ..request };
            check(from_ref(&input), &request).unwrap();
        }
    }
    let request = Request { nan: NanPolicy::Ignore, ..Request::new(&["any"]).over(&[1]) };
    let input = array(DType::F32, &[n_rows, length], &rows(n_rows, length, 0, f64::NAN, 0.0));
    check(&[input], &request).unwrap();
    let input = array(DType::F32, &[n_rows, length], &numbers(n, Special::MostlyNan, 3));
    check(&[input], &request).unwrap();
}

/// The one result of a long array, by all ways to run.
#[track_caller]
fn check_long(bytes: &[u8], dtype: DType, shape: &[i64], op: &str, wanted: Scalar) {
    let input = Array::from_bytes(dtype, shape, bytes).unwrap();
    let axes: Vec<i64> = (0..shape.len() as i64).collect();
    for threads in [1, 2, 5] {
        for request in [Request::new(&[op]).over(&axes), executed(&[op], &axes)] {
            let request = Request { threads: Some(threads), ..request };
            let outcome = coulis::reduce::run(from_ref(&input), &request).unwrap();
            let found = outcome.results[0].array.scalars().next();
            assert_eq!(found, Some(wanted), "{op} by {threads} threads: {}", outcome.plan.trace);
        }
    }
}

#[test]
fn one_result_of_a_long_array_is_folded_in_rounds() {
    let n = (33 << 20) + 77;
    let mut bytes = vec![0u8; n];
    let shape = [n as i64];
    check_long(&bytes, DType::I8, &shape, "any", Scalar::Bool(false));
    for at in [0, (64 << 10) - 1, 64 << 10, 5 << 20, n / 2, n - 1] {
        bytes[at] = 1;
        check_long(&bytes, DType::I8, &shape, "any", Scalar::Bool(true));
        check_long(&bytes, DType::Bool, &shape, "any", Scalar::Bool(true));
        bytes[at] = 0;
    }
    bytes.fill(1);
    check_long(&bytes, DType::Bool, &shape, "all", Scalar::Bool(true));
    bytes[n - 3] = 0;
    check_long(&bytes, DType::Bool, &shape, "all", Scalar::Bool(false));
}

#[test]
fn the_position_in_a_long_array_is_the_first() {
    let n = (33 << 20) + 77;
    let mut bytes = vec![7u8; n];
    bytes[n - 1] = 255;
    for at in [n - 1, n / 2, 9 << 20, (64 << 10) + 1, 64 << 10, (64 << 10) - 1, 3] {
        bytes[at] = 255;
        check_long(&bytes, DType::U8, &[n as i64], "argmax", Scalar::Int(at as i64));
    }
}

/// How often the plan of a request asks whether a state is settled.
fn asks(dtype: DType, shape: &[i64], ops: &[&str], axes: &[i64]) -> usize {
    let request = Request { threads: Some(2), ..Request::new(ops).over(axes) };
    plan(&[info(dtype, shape)], &request).unwrap().trace.to_string().matches("until_settled").count()
}

#[test]
fn plans_ask_where_the_reducer_knows_and_rows_are_long() {
    let long = [64, 1 << 20];
    if asks(DType::I8, &long, &["any"], &[1]) == 0 {
        println!("SKIP: vectors are no registers here");
        return;
    }
    assert_eq!(asks(DType::I8, &long, &["any"], &[1]), 1);
    assert_eq!(asks(DType::F32, &long, &["all"], &[1]), 1);
    assert_eq!(asks(DType::Bool, &long, &["max", "any"], &[1]), 1);
    assert_eq!(asks(DType::I8, &[1 << 26], &["any"], &[0]), 3, "the first elements, and rounds");
    for (dtype, op, row) in [
        (DType::Bool, "any", 4797),
        (DType::I8, "all", 1 << 13),
        (DType::F32, "any", 2000),
        (DType::Bool, "argmax", 700),
    ] {
        assert_eq!(asks(dtype, &[64, row], &[op], &[1]), 1, "the first elements of {row}");
    }
    for (dtype, op, row) in
        [(DType::I8, "any", 1 << 11), (DType::U8, "max", 1 << 13), (DType::U8, "argmax", 1 << 13)]
    {
        assert_eq!(
            asks(dtype, &[64, row], &[op], &[1]),
            0,
            "short rows, and those of states that few elements settle"
        );
    }
    assert_eq!(asks(DType::I8, &long, &["any", "sum"], &[1]), 0, "a sum needs every element");
    assert_eq!(asks(DType::I16, &long, &["max"], &[1]), 0, "that a row holds the greatest is unlikely");
    assert_eq!(asks(DType::I8, &long, &["argmax"], &[1]), 1);
    assert_eq!(asks(DType::Bool, &[1 << 26], &["argmax", "any"], &[0]), 3, "the same");
    assert_eq!(asks(DType::I8, &long, &["argmax_last"], &[1]), 0, "an equal one may follow");
    assert_eq!(asks(DType::I16, &long, &["argmax"], &[1]), 0);
}
