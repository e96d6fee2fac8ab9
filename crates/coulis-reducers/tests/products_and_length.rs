//! Products against their parts, long rows against the stated bounds, and a reducer that is in no catalogue.

// Helpers of tests may fail by panic, as tests do.
#![allow(clippy::unwrap_used)]

use coulis_ir::eval::{Env, Value, eval_expr};
use coulis_ir::{DType, Expr, Intrinsic, NanPolicy, Reducer};
use coulis_reducers::exact::{reference, tolerance, ulp_distance};
use coulis_reducers::scalar::{Scalar, State};
use coulis_reducers::{CATALOGUE, ReducerRequest, UserReducer, comm_reducer, find, product, spot_check};

type Row = Vec<Vec<Value>>;

fn floats(values: impl IntoIterator<Item = f64>) -> Row {
    values.into_iter().map(|v| vec![Value::Float(v)]).collect()
}

fn parts(names: &[&'static str], request: &ReducerRequest) -> Vec<(&'static str, Reducer)> {
    names.iter().map(|n| (*n, find(n).unwrap().build(request).unwrap())).collect()
}

/// All reducers of one input.
fn single_input() -> Vec<&'static str> {
    CATALOGUE.iter().filter(|e| e.n_inputs == 1).map(|e| e.name).collect()
}

/// Folds in two halves, the second one first, each a short run.
fn fold(run: &Scalar, row: &Row) -> State {
    let half = |from: usize, to: usize| {
        let taking = (from..to).filter(|at| run.takes_part(&row[*at]).unwrap());
        let elements: Vec<(&[Value], i64)> = taking.map(|at| (row[at].as_slice(), at as i64)).collect();
        run.run(&run.identity().unwrap(), &elements).unwrap()
    };
    let middle = row.len() / 2;
    run.combine(&half(middle, row.len()), &half(0, middle)).unwrap()
}

#[track_caller]
fn check_product(names: &[&'static str], request: &ReducerRequest, row: &Row) {
    let parts = parts(names, request);
    let whole = product(&parts).unwrap();
    let run = Scalar::new(&whole.reducer);
    let results = run.finish(&fold(&run, row)).unwrap();
    for (part, (name, alone)) in whole.parts.iter().zip(&parts) {
        let run = Scalar::new(alone);
        let want = run.finish(&fold(&run, row)).unwrap();
        let got = &results[part.results.clone()];
        assert!(
            got.iter().zip(&want).all(|(g, w)| g.same(*w)),
            "{name} in {names:?}: {got:?} is not {want:?}"
        );
    }
}

#[test]
fn a_product_gives_what_its_parts_give_to_the_bit() {
    let rows = [
        floats([]),
        floats([2.5]),
        floats([1.0, -3.5, 2.25, 2.25, -0.0, 7.0, -3.5]),
        floats([1.0, f64::NAN, 3.0, -2.0]),
        floats([f64::NAN, f64::NAN]),
        floats([f64::INFINITY, 1.0, f64::NEG_INFINITY]),
    ];
    let all = single_input();
    for dtype in [DType::F16, DType::F32, DType::F64] {
        for nan in [NanPolicy::Propagate, NanPolicy::Ignore] {
            for row in &rows {
                let request = ReducerRequest::new(&[dtype]).with_nan(nan);
                check_product(&all, &request, row);
                check_product(&["sum", "mean", "var"], &request, row);
                check_product(&["max", "min", "argmax"], &request, row);
            }
        }
    }
    let ints: Row = [3, -7, 0, 127, -128, 3].map(|v| vec![Value::Int(v)]).to_vec();
    check_product(&all, &ReducerRequest::new(&[DType::I8]), &ints);
}

#[test]
fn a_product_of_one_and_two_inputs_reads_both() {
    let f32s = [DType::F32, DType::F32];
    let sum = find("sum").unwrap().build(&ReducerRequest::new(&f32s[..1])).unwrap();
    let dot = find("dot").unwrap().build(&ReducerRequest::new(&f32s)).unwrap();
    let whole = product(&[("sum", sum), ("dot", dot)]).unwrap();
    let run = Scalar::new(&whole.reducer);
    let row: Row = [(1.0, 2.0), (3.0, -1.0)].map(|(x, w)| vec![Value::Float(x), Value::Float(w)]).to_vec();
    assert_eq!(run.finish(&fold(&run, &row)).unwrap(), [Value::Float(4.0), Value::Float(-1.0)]);
}

#[test]
fn an_initial_value_stays_with_its_part() {
    let request = ReducerRequest::new(&[DType::F32]);
    let whole = product(&parts(&["sum", "mean", "max"], &request)).unwrap();
    let run = Scalar::new(&whole.reducer);
    let results = |row: &Row, inits: [Option<f64>; 3]| -> Vec<f64> {
        let state: Vec<Expr> = (fold(&run, row).iter().zip(&whole.reducer.fields))
            .map(|(v, f)| match v {
                Value::Int(v) => Expr::int_of(*v, f.dtype),
                Value::Float(v) => Expr::float(*v, f.dtype),
            })
            .collect();
        let inits = inits.map(|v| v.map(|v| Expr::float(v, DType::F32)));
        let exprs = whole.finish_with(&state, &inits);
        exprs.iter().map(|e| eval_expr(e, &mut Env::new()).unwrap().as_f64()).collect()
    };
    assert_eq!(results(&floats([1.0, 3.0]), [Some(10.0), None, Some(2.0)]), [14.0, 2.0, 3.0]);
    let empty = results(&floats([]), [Some(5.0), None, Some(-1.0)]);
    assert!(empty[0] == 5.0 && empty[1].is_nan() && empty[2] == -1.0, "{empty:?}");
}

/// Lanes of quick runs of at most 256 steps, each run closed into its lane, lanes combined at the end.
fn long_fold(run: &Scalar, row: &Row, lanes: usize) -> State {
    let max_run = run.reducer().quick.as_ref().map_or(256, |q| q.max_steps.min(256) as usize);
    let lane = |lane: usize| {
        let at: Vec<usize> = (lane..row.len()).step_by(lanes).collect();
        at.chunks(max_run).fold(run.identity().unwrap(), |total, chunk| {
            let elements: Vec<(&[Value], i64)> =
                chunk.iter().map(|at| (row[*at].as_slice(), *at as i64)).collect();
            run.run(&total, &elements).unwrap()
        })
    };
    (0..lanes).map(lane).fold(run.identity().unwrap(), |total, state| run.combine(&total, &state).unwrap())
}

#[track_caller]
fn check_long(names: &[&str], dtype: DType, what: &str, value: impl Fn(usize) -> f64) {
    let row = floats((0..8_000).map(|i| dtype.round_float(value(i))));
    let request = ReducerRequest::new(&[dtype]);
    for name in names {
        let entry = find(name).unwrap();
        let reducer = entry.build(&request).unwrap();
        let run = Scalar::new(&reducer);
        let exact = reference(entry, &request, &row).unwrap()[0];
        for lanes in [1, 8] {
            let got = run.finish(&long_fold(&run, &row, lanes)).unwrap()[0].as_f64();
            let want = exact.value.as_f64();
            let allowed = tolerance(reducer.error, &exact, row.len()) + 4.0 * f64::EPSILON * want.abs();
            assert!(
                (got - want).abs() <= allowed,
                "{name} of {what} in {dtype}, {lanes} lanes: {got} is not {want}"
            );
        }
    }
}

fn check_long_rows(dtype: DType) {
    let names = ["sum", "mean", "var", "std", "norm2", "logsumexp"];
    check_long(&names, dtype, "equal values", |_| 0.1);
    check_long(&names, dtype, "ascending values", |i| i as f64);
    check_long(&names, dtype, "slowly ascending values", |i| i as f64 * 1e-5);
    check_long(&names, dtype, "slowly descending values", |i| i as f64 * -1e-5);
    check_long(&names, dtype, "one large value, then ones", |i| if i == 0 { 1e9 } else { 1.0 });
    check_long(&names, dtype, "values far from zero", |i| 1e6 + (i % 7) as f64);
    check_long(&["prod"], dtype, "values near one", |i| 1.0 + 1e-3 * ((i % 3) as f64 - 1.0));
}

#[test]
fn long_rows_of_short_floats_stay_within_their_bounds() {
    for dtype in [DType::F16, DType::BF16] {
        let names = ["sum", "mean", "var", "std", "norm1", "norm2", "meansq"];
        check_long(&names, dtype, "equal values", |_| 0.1);
        check_long(&names, dtype, "ascending values", |i| i as f64);
        check_long(&names, dtype, "one large value, then ones", |i| if i == 0 { 6e4 } else { 1.0 });
        check_long(&names, dtype, "runs that begin with an outlier", |i| {
            if i % 128 < 8 { 3e4 } else { (i % 7) as f64 }
        });
        check_long(&names, dtype, "values far from zero", |i| 1e3 + (i % 7) as f64);
    }
}

#[test]
fn long_rows_of_float32_stay_within_their_bounds() {
    check_long_rows(DType::F32);
}

#[test]
fn long_rows_of_float64_stay_within_their_bounds() {
    check_long_rows(DType::F64);
}

#[test]
fn slowly_rising_rows_do_not_pile_up_the_rounding_of_rescaling() {
    // The exponential of each rise is half a unit of float32 off, always to the same side.
    let rise = 1.5 * 2f64.powi(-24);
    let row = floats((0..8_000).map(|i| DType::F32.round_float(f64::from(i) * rise)));
    let (entry, request) = (find("logsumexp").unwrap(), ReducerRequest::new(&[DType::F32]));
    let reducer = entry.build(&request).unwrap();
    let run = Scalar::new(&reducer);
    let exact = reference(entry, &request, &row).unwrap()[0];
    let got = run.finish(&run.fold(&row).unwrap()).unwrap()[0].as_f64();
    let allowed = tolerance(reducer.error, &exact, row.len());
    assert!((got - exact.value.as_f64()).abs() <= allowed, "{got} is not {exact:?}");
}

#[test]
fn an_outlier_at_the_beginning_spoils_only_the_run_that_it_starts() {
    let row = floats((0..8_000).map(|i| if i == 0 { 1e9 } else { 0.1 * f64::from(i % 7) }));
    let (entry, request) = (find("var").unwrap(), ReducerRequest::new(&[DType::F64]));
    let reducer = entry.build(&request).unwrap();
    let run = Scalar::new(&reducer);
    let exact = reference(entry, &request, &row).unwrap()[0].value.as_f64();
    let lift = |at: usize| run.lift(&row[at], at as i64).unwrap();
    let runs = (0..500).map(|r| {
        (16 * r..16 * r + 16).fold(run.identity().unwrap(), |state, at| run.step(&state, &lift(at)).unwrap())
    });
    let state = runs.fold(run.identity().unwrap(), |total, next| run.combine(&total, &next).unwrap());
    let got = run.finish(&state).unwrap()[0].as_f64();
    assert!((got - exact).abs() <= 256.0 * f64::EPSILON * exact, "{got} is not {exact}");
}

#[test]
fn plain_runs_of_a_sum_are_as_short_as_the_contract_wants() {
    for name in ["sum", "mean", "norm1", "sumsq"] {
        let reducer = find(name).unwrap().build(&ReducerRequest::new(&[DType::F64])).unwrap();
        assert_eq!(reducer.quick.unwrap().max_steps, 16, "{name}");
    }
}

#[test]
fn a_long_constant_row_has_no_variance() {
    let reducer = find("var").unwrap().build(&ReducerRequest::new(&[DType::F32])).unwrap();
    let run = Scalar::new(&reducer);
    let row = floats(std::iter::repeat_n(f64::from(0.1f32), 3000));
    assert_eq!(run.finish(&long_fold(&run, &row, 4)).unwrap(), [Value::Float(0.0)]);
}

#[test]
fn one_odd_integer_of_a_long_row_near_the_end_of_its_range_gives_the_exact_variance() {
    for (dtype, common, odd) in [
        (DType::U8, 255, 254),
        (DType::I8, -128, -127),
        (DType::U16, 65535, 65534),
        (DType::I16, -32768, 32767),
    ] {
        let reducer = find("var").unwrap().build(&ReducerRequest::new(&[dtype])).unwrap();
        let run = Scalar::new(&reducer);
        for (n, at) in [(3000, 0), (3000, 2999), (4096, 17)] {
            let row: Row = (0..n).map(|i| vec![Value::Int(if i == at { odd } else { common })]).collect();
            let (n, apart) = (n as f64, (odd - common) as f64);
            let exact = apart * apart * (n - 1.0) / (n * n);
            let got = run.finish(&long_fold(&run, &row, 4)).unwrap()[0].as_f64();
            assert!((got - exact).abs() <= 4.0 * f64::EPSILON * exact, "{dtype} {n}: {got} for {exact}");
        }
        let row: Row = (0..3001).map(|_| vec![Value::Int(odd)]).collect();
        assert_eq!(run.finish(&long_fold(&run, &row, 4)).unwrap(), [Value::Float(0.0)]);
    }
}

#[test]
fn a_made_up_reducer_is_checked_fused_and_folded_like_any_other() {
    // Geometric mean: the sum of logarithms and a count.
    let zero = || Expr::float(0.0, DType::F64);
    let mut spec =
        UserReducer::new("gmean", &[DType::F32], vec![zero(), Expr::int_of(0, DType::I64)], &|a, b| {
            vec![&a[0] + &b[0], &a[1] + &b[1]]
        });
    spec.lift = Some(&|x, _| {
        let magnitude = Expr::call1(Intrinsic::Abs, x[0].clone().cast(DType::F64));
        vec![Expr::call1(Intrinsic::Log, magnitude), Expr::int_of(1, DType::I64)]
    });
    spec.finish = Some(&|s| vec![Expr::call1(Intrinsic::Exp, &s[0] / &s[1].clone().cast(DType::F64))]);
    let gmean = comm_reducer(&spec).unwrap();
    assert_eq!(spot_check(&gmean, 11), Ok(()));

    let mean = find("mean").unwrap().build(&ReducerRequest::new(&[DType::F32])).unwrap();
    let whole = product(&[("mean", mean), ("gmean", gmean)]).unwrap();
    assert_eq!(whole.reducer.arity(), 3, "the counts are one field");
    let run = Scalar::new(&whole.reducer);
    let results = run.finish(&fold(&run, &floats([1.0, 2.0, 4.0, 8.0, 16.0]))).unwrap();
    assert_eq!(results[0], Value::Float(6.2));
    assert!(ulp_distance(results[1], Value::Float(4.0), DType::F64) <= 2, "{results:?}");
}
