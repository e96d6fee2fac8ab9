//! For each law reducers that keep it and reducers that do not, and what is tolerated.

use coulis_ir::{Expr, Intrinsic};

use super::*;
use crate::{CATALOGUE, ReducerRequest, UserReducer, comm_reducer};

#[test]
fn every_reducer_of_the_catalogue_keeps_its_claims() {
    for entry in CATALOGUE {
        for dtype in DType::ALL {
            for nan in [coulis_ir::NanPolicy::Propagate, coulis_ir::NanPolicy::Ignore] {
                let request = ReducerRequest::new(&vec![dtype; entry.n_inputs]).with_nan(nan);
                let reducer = entry.build(&request).unwrap();
                spot_check_trials(&reducer, 7, 6)
                    .unwrap_or_else(|e| panic!("{} of {dtype}: {e}", entry.name));
            }
        }
    }
}

/// Elements of which many are the least or the greatest of their type, or equal.
fn frequent(random: &mut Random, dtype: DType) -> Value {
    if random.below(3) == 0 { random.few(dtype) } else { random.value(dtype, Draw::Special) }
}

fn is_narrow(dtype: DType) -> bool {
    matches!(dtype, DType::Bool | DType::I8 | DType::U8)
}

#[test]
fn nothing_behind_a_settled_position_changes_it() {
    let mut random = Random(7);
    for parts in [&["argmax"][..], &["argmin"], &["maxloc"], &["minloc"], &["any", "argmax", "max"]] {
        for dtype in [DType::Bool, DType::I8, DType::U8] {
            let build = |request: &ReducerRequest| {
                let made: Vec<(&str, Reducer)> =
                    parts.iter().map(|op| (*op, crate::find(op).unwrap().build(request).unwrap())).collect();
                crate::product(&made).unwrap().reducer
            };
            assert!(
                build(&ReducerRequest::new(&[dtype]).in_any_order()).settled.is_none(),
                "{parts:?} of {dtype}"
            );
            let reducer = build(&ReducerRequest::new(&[dtype]));
            let run = Scalar::new(&reducer);
            let (mut n_settled, mut n_others) = (0, 0);
            for _ in 0..400 {
                let row: Vec<Vec<Value>> =
                    (0..2 + random.below(9)).map(|_| vec![frequent(&mut random, dtype)]).collect();
                let before = row.len() / 2;
                let lifted = |at: usize| run.lift(&row[at], at as i64).unwrap();
                let folded = |places: std::ops::Range<usize>| {
                    places
                        .fold(run.identity().unwrap(), |state, at| run.combine(&state, &lifted(at)).unwrap())
                };
                let (state, behind) = (folded(0..before), folded(before..row.len()));
                if !run.is_settled(&state).unwrap() {
                    n_others += 1;
                    continue;
                }
                n_settled += 1;
                assert_eq!(run.step(&state, &lifted(before)).unwrap(), state, "{parts:?} of {dtype}");
                assert_eq!(run.combine(&state, &behind).unwrap(), state, "{parts:?} of {dtype}");
                assert_eq!(run.combine(&behind, &state).unwrap(), state, "{parts:?} of {dtype}");
            }
            assert!(n_others > 0 && n_settled > 0, "{parts:?} of {dtype}: {n_settled}");
        }
    }
}

#[test]
fn nothing_changes_a_settled_state() {
    let known = ["any", "all", "max", "min", "absmax"];
    let in_order = ["argmax", "argmin", "maxloc", "minloc"];
    let mut random = Random(5);
    for parts in [&["any"][..], &["all"], &["max"], &["min"], &["absmax"], &["any", "all", "max"]] {
        for dtype in DType::ALL {
            let request = ReducerRequest::new(&[dtype]);
            let made: Vec<(&str, Reducer)> =
                parts.iter().map(|op| (*op, crate::find(op).unwrap().build(&request).unwrap())).collect();
            let reducer = crate::product(&made).unwrap().reducer;
            let settles = is_narrow(dtype) || parts.iter().all(|op| ["any", "all"].contains(op));
            assert_eq!(reducer.settled.is_some(), settles, "{parts:?} of {dtype}");
            let run = Scalar::new(&reducer);
            let (mut n_settled, mut n_others) = (0, 0);
            for position in 0..400 {
                let row: Vec<Vec<Value>> =
                    (0..1 + position % 9).map(|_| vec![frequent(&mut random, dtype)]).collect();
                let (state, other) = row.split_at(row.len() / 2);
                let (state, other) = (run.fold(state).unwrap(), run.fold(other).unwrap());
                if !run.is_settled(&state).unwrap() {
                    n_others += 1;
                    continue;
                }
                n_settled += 1;
                let lifted = run.lift(&row[0], position).unwrap();
                assert_eq!(run.step(&state, &lifted).unwrap(), state, "{parts:?} of {dtype}");
                assert_eq!(run.combine(&state, &other).unwrap(), state, "{parts:?} of {dtype}");
                assert_eq!(run.combine(&other, &state).unwrap(), state, "{parts:?} of {dtype}");
            }
            assert!(n_others > 0 && (n_settled > 0) == settles, "{parts:?} of {dtype}: {n_settled}");
        }
    }
    let others = CATALOGUE.iter().filter(|entry| !known.contains(&entry.name));
    for entry in others {
        for dtype in
            DType::ALL.into_iter().filter(|dtype| !in_order.contains(&entry.name) || !is_narrow(*dtype))
        {
            let reducer = entry.build(&ReducerRequest::new(&vec![dtype; entry.n_inputs])).unwrap();
            assert!(reducer.settled.is_none(), "{}: add it to the list", entry.name);
        }
    }
}

#[test]
fn a_product_is_settled_where_all_its_parts_are() {
    let settled = |ops: &[&str]| {
        let request = ReducerRequest::new(&[DType::I8]);
        let made: Vec<(&str, Reducer)> =
            ops.iter().map(|op| (*op, crate::find(op).unwrap().build(&request).unwrap())).collect();
        let reducer = crate::product(&made).unwrap().reducer;
        move |row: &[i128]| {
            let row: Vec<Vec<Value>> = row.iter().map(|x| vec![Value::Int(*x)]).collect();
            let run = Scalar::new(&reducer);
            run.is_settled(&run.fold(&row).unwrap()).unwrap()
        }
    };
    let both = settled(&["any", "max"]);
    assert!(both(&[127]) && both(&[0, 127]) && !both(&[1]) && !both(&[0]));
    let ends = settled(&["min", "max"]);
    assert!(ends(&[127, 3, -128]) && !ends(&[127]) && !ends(&[-128]));
    assert!(!settled(&["any", "sum"])(&[127]), "a sum never is");
}

#[test]
fn a_state_that_is_not_settled_is_refuted() {
    let mut reducer = crate::find("max").unwrap().build(&ReducerRequest::new(&[DType::I8])).unwrap();
    let state = reducer.finish.params.clone();
    let above_zero = state[0].expr().gt(Expr::int_of(0, DType::I8));
    reducer.settled = Some(coulis_ir::Lambda { params: state, body: vec![above_zero] });
    match spot_check(&reducer, 1) {
        Err(ClaimError::Refuted(found)) => assert_eq!(found.law, Law::Settled, "{found}"),
        other => panic!("not refuted: {other:?}"),
    }
}

#[track_caller]
fn refuted(combine: crate::Combine, identity: f64, want: Law) {
    let spec = UserReducer::new("mine", &[DType::F64], vec![Expr::float(identity, DType::F64)], combine);
    let reducer = comm_reducer(&spec).unwrap();
    match spot_check(&reducer, 1) {
        Err(ClaimError::Refuted(found)) => assert_eq!(found.law, want, "{found}"),
        other => panic!("not refuted: {other:?}"),
    }
}

#[test]
fn false_claims_are_refuted_with_a_counterexample() {
    refuted(&|a, b| vec![&a[0] - &b[0]], 0.0, Law::IdentityLeft);
    refuted(&|a, b| vec![&a[0] + &b[0]], 1.0, Law::IdentityLeft);
    refuted(&|a, _| vec![a[0].clone()], 0.0, Law::IdentityLeft);
    let square = |e: &Expr| e * e;
    refuted(&|a, b| vec![&(&a[0] + &b[0]) + &square(&(&a[0] * &b[0]))], 0.0, Law::Associative);
    let last_set = |a: &Expr, b: &Expr| {
        let unset = b.clone().equal(Expr::float(0.0, DType::F64));
        vec![Expr::select(unset, a.clone(), b.clone())]
    };
    refuted(&|a, b| last_set(&a[0], &b[0]), 0.0, Law::Commutative);
    for identity in [0.0, -20.0, -1e9] {
        refuted(&|a, b| vec![a[0].clone().max(b[0].clone())], identity, Law::IdentityLeft);
    }
    let up_to_large = |a: &Expr, b: &Expr| {
        let large = |e: &Expr| e.clone().gt(Expr::float(5000.0, DType::F64));
        vec![Expr::select(large(a).and(large(b)), a.clone().max(b.clone()), a + b)]
    };
    refuted(&|a, b| up_to_large(&a[0], &b[0]), 0.0, Law::Associative);
}

/// The first position of the greatest of some integers, which starts from that identity; as TVM's, it keeps the left one
/// of two where it is as great.
fn argmax_of(dtypes: [DType; 2], identity: [i128; 2]) -> Reducer {
    let identity = identity.into_iter().zip(dtypes).map(|(value, dtype)| Expr::int_of(value, dtype));
    let spec = UserReducer::new("argmax", &dtypes, identity.collect(), &|a, b| {
        let left = a[1].clone().ge(b[1].clone());
        (0..2).map(|i| Expr::select(left.clone(), a[i].clone(), b[i].clone())).collect()
    });
    comm_reducer(&spec).unwrap()
}

#[test]
fn an_identity_that_the_least_integer_ties_with_is_taken_as_tvm_takes_it() {
    for value in [DType::I8, DType::U8, DType::I16, DType::I32] {
        let (least, _) = value.int_range().unwrap();
        for seed in 0..40 {
            let mut reducer = argmax_of([DType::I32, value], [-1, least]);
            assert_eq!(spot_check(&reducer, seed), Ok(()), "{value}");
            let element = reducer.lift.params[1].expr();
            reducer.lift.body[1] = &element * &element;
            assert_eq!(spot_check(&reducer, seed), Ok(()), "squares of {value}");
        }
    }
    let found = spot_check(&argmax_of([DType::I32, DType::I32], [-1, 0]), 1).unwrap_err().to_string();
    assert!(found.contains("which gives (-1, 0) and "), "{found}");
    // Where all elements tie, what begins the fold may be all that it ever gives.
    let mut reducer = argmax_of([DType::I32, DType::I32], [-1, 0]);
    reducer.lift.body[1] = Expr::int(0);
    assert!(spot_check(&reducer, 1).is_err());
}

#[test]
fn what_overflows_refutes_nothing() {
    // The greatest finite value is what TVM's `min_value` and `max_value` give, and infinities are further out.
    let least = Expr::float(f64::from(f32::MIN), DType::F32);
    let max = |a: &[Expr], b: &[Expr]| vec![a[0].clone().max(b[0].clone())];
    let reducer = comm_reducer(&UserReducer::new("mine", &[DType::F32], vec![least], &max)).unwrap();
    assert_eq!(spot_check(&reducer, 1), Ok(()));
    let norm =
        |a: &[Expr], b: &[Expr]| vec![Expr::call1(Intrinsic::Sqrt, &(&a[0] * &a[0]) + &(&b[0] * &b[0]))];
    let zero = Expr::float(0.0, DType::F32);
    let mut reducer = comm_reducer(&UserReducer::new("mine", &[DType::F32], vec![zero], &norm)).unwrap();
    reducer.lift.body[0] = Expr::call1(Intrinsic::Abs, reducer.lift.params[0].expr());
    assert_eq!(spot_check(&reducer, 1), Ok(()));
}

#[test]
fn a_refutation_shows_the_values() {
    let spec = UserReducer::new("mine", &[DType::I32], vec![Expr::int(0)], &|a, b| vec![&a[0] - &b[0]]);
    let reducer = comm_reducer(&spec).unwrap();
    let text = spot_check(&reducer, 1).unwrap_err().to_string();
    assert!(
        text.starts_with("`mine` is refuted: \"combine(identity, a) equals a\" fails for a = "),
        "{text}"
    );
}

#[test]
fn an_argmax_that_keeps_the_left_of_equal_values_is_not_refuted() {
    let spec = UserReducer::new(
        "argmax",
        &[DType::I32, DType::F32],
        vec![Expr::int(-1), Expr::float(f64::NEG_INFINITY, DType::F32)],
        &|a, b| {
            let left = a[1].clone().ge(b[1].clone());
            vec![
                Expr::select(left.clone(), a[0].clone(), b[0].clone()),
                Expr::select(left, a[1].clone(), b[1].clone()),
            ]
        },
    );
    let mut reducer = comm_reducer(&spec).unwrap();
    assert_eq!(spot_check(&reducer, 3), Ok(()));
    assert_eq!(commutes_on_ties(&reducer, 3), Ok(false), "which of them is kept hangs on the order");
    // What is lifted may be the same for nearly all elements.
    let zero = Expr::float(0.0, DType::F32);
    for nth in 0..3 {
        let (place, value) = (reducer.lift.params[0].expr(), reducer.lift.params[1].expr());
        reducer.lift.body[1] = match nth {
            0 => value.max(zero.clone()),
            1 => value.gt(zero.clone()).cast(DType::F32),
            _ => place.floormod(Expr::int(3)).cast(DType::F32),
        };
        assert_eq!(spot_check(&reducer, 3), Ok(()), "lift {nth}");
        assert_eq!(commutes_on_ties(&reducer, 3), Ok(false), "lift {nth}");
    }
}

#[test]
fn what_is_lost_in_one_order_is_refuted_though_components_are_equal() {
    let zero = Expr::float(0.0, DType::F32);
    let spec =
        UserReducer::new("mine", &[DType::F32, DType::F32], vec![zero.clone(), zero.clone()], &|a, b| {
            let first = a[0].clone().not_equal(Expr::float(0.0, DType::F32));
            vec![Expr::select(first, a[0].clone(), b[0].clone()), &a[1] + &b[1]]
        });
    let mut reducer = comm_reducer(&spec).unwrap();
    reducer.lift.body[1] = Expr::float(1.0, DType::F32);
    match spot_check(&reducer, 3) {
        Err(ClaimError::Refuted(found)) => assert_eq!(found.law, Law::Commutative, "{found}"),
        other => panic!("not refuted: {other:?}"),
    }
}

#[test]
fn an_argmax_that_keeps_the_smaller_position_of_equal_values_commutes() {
    let spec = UserReducer::new(
        "argmax",
        &[DType::I32, DType::F32],
        vec![Expr::int(i32::MAX), Expr::float(f64::NEG_INFINITY, DType::F32)],
        &|a, b| {
            let first = a[0].clone().lt(b[0].clone()).and(a[1].clone().equal(b[1].clone()));
            let left = a[1].clone().gt(b[1].clone()).or(first);
            (0..2).map(|i| Expr::select(left.clone(), a[i].clone(), b[i].clone())).collect()
        },
    );
    assert_eq!(commutes_on_ties(&comm_reducer(&spec).unwrap(), 3), Ok(true));
}

#[test]
fn what_has_no_value_tells_nothing_of_ties() {
    let zero = Expr::int(0);
    let spec = UserReducer::new("mine", &[DType::I32], vec![zero.clone()], &|a, b| vec![&a[0] + &b[0]]);
    let mut reducer = comm_reducer(&spec).unwrap();
    let element = reducer.lift.params[0].expr();
    reducer.lift.body[0] = Expr::int(6).floordiv(element.clone());
    assert_eq!(commutes_on_ties(&reducer, 3), Ok(true), "the elements other than zero tell");
    reducer.lift.body[0] = element.floordiv(zero);
    let error = commutes_on_ties(&reducer, 3).unwrap_err().to_string();
    assert_eq!(error, "`mine` cannot be checked: integer division by zero");
}
