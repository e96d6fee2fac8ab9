//! Elements that a fold may take for none, of every reducer that has such.

// Helpers of tests may fail by panic, as tests do.
#![allow(clippy::unwrap_used)]

use coulis_ir::eval::{Env, Value, eval_expr};
use coulis_ir::{DType, ErrorBound, Expr, Intrinsic, Lambda, Reducer, Var};
use coulis_reducers::scalar::{Scalar, State};
use coulis_reducers::{CATALOGUE, Empty, ReducerRequest, find, product};

type Row = Vec<Vec<Value>>;

fn values(exprs: &[Expr]) -> Vec<Value> {
    exprs.iter().map(|e| eval_expr(e, &mut Env::new()).unwrap()).collect()
}

/// Folds the row by runs of up to three elements, or one by one.
fn fold(run: &Scalar, row: &Row, in_runs: bool) -> State {
    let mut state = run.identity().unwrap();
    for part in row.chunks(if in_runs { 3 } else { 1 }) {
        let elements: Vec<(&[Value], i64)> = part.iter().map(|e| (e.as_slice(), 0)).collect();
        state = match (in_runs, &elements[..]) {
            (false, [(element, position)]) => {
                run.step(&state, &run.lift(element, *position).unwrap()).unwrap()
            }
            _ => run.run(&state, &elements).unwrap(),
        };
    }
    state
}

/// Rows of numbers in which those with a wrong neutral element would differ.
fn rows(dtype: DType, n_inputs: usize) -> Vec<Row> {
    let element = |v: f64| {
        let one = if dtype.is_float() { Value::Float(v) } else { Value::Int(v as i128) };
        vec![one.cast(dtype); n_inputs]
    };
    let row = |numbers: &[f64]| numbers.iter().map(|v| element(*v)).collect::<Row>();
    let mut rows = vec![
        row(&[]),
        row(&[3.0]),
        row(&[0.0]),
        row(&[1.0, 5.0, 2.0, 2.0, 0.0, 7.0, 3.0]),
        row(&[1.0, 1.0, 1.0]),
    ];
    if dtype.is_float() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        rows.extend([
            row(&[-0.0, -0.0]),
            row(&[-3.5, -2.0, -40.0]),
            row(&[-inf, -inf, -inf, -inf]),
            row(&[inf, 1.0, 2.0]),
            row(&[-100.0, nan, 2.0]),
            row(&[60.0, -60.0, 59.0]),
        ]);
    }
    rows
}

/// Whether results agree: the same, zeros whatever their signs, and floats within two roundings of the accumulator.
fn agree(reducer: &Reducer, a: Value, b: Value) -> bool {
    let (x, y) = (a.as_f64(), b.as_f64());
    let eps = match reducer.error {
        ErrorBound::Exact => 0.0,
        ErrorBound::Terms { eps, .. } | ErrorBound::Relative { eps, .. } | ErrorBound::Length { eps, .. } => {
            eps
        }
    };
    a.same(b) || x == y || (x - y).abs() <= 2.0 * eps * x.abs().max(y.abs()).max(1.0)
}

#[track_caller]
fn check(reducer: &Reducer, empty: Empty, dtype: DType) {
    let run = Scalar::new(reducer);
    let neutral = values(&reducer.neutral);
    // Rows without elements are none of a reducer that refuses them.
    let is_taken = |row: &Vec<Vec<Value>>| !row.is_empty() || empty != Empty::Refused;
    for row in rows(dtype, reducer.input_dtypes().len()).into_iter().filter(is_taken) {
        for in_runs in [false, true] {
            let want = run.finish(&fold(&run, &row, in_runs)).unwrap();
            for before in 0..=row.len() {
                for count in [1, 2, 7, 40] {
                    let mut more = row.clone();
                    more.splice(before..before, vec![neutral.clone(); count]);
                    let got = run.finish(&fold(&run, &more, in_runs)).unwrap();
                    // A state of nothing but such elements vanishes beside another one, too.
                    let alone = fold(&run, &vec![neutral.clone(); count], in_runs);
                    let own = fold(&run, &row, in_runs);
                    for state in [run.combine(&alone, &own).unwrap(), run.combine(&own, &alone).unwrap()] {
                        let beside = run.finish(&state).unwrap();
                        let is_same = beside.iter().zip(&want).all(|(a, b)| agree(reducer, *a, *b));
                        assert!(is_same, "{} of {dtype}: {row:?}: {beside:?}, {want:?}", reducer.name);
                    }
                    let is_same = got.iter().zip(&want).all(|(a, b)| agree(reducer, *a, *b));
                    assert!(is_same, "{} of {dtype}: {more:?}: {got:?}, {want:?}", reducer.name);
                }
            }
        }
    }
}

#[test]
fn elements_that_a_fold_may_take_for_none_change_no_result_anywhere_in_any_number() {
    for entry in CATALOGUE {
        for dtype in [DType::F32, DType::BF16, DType::F16, DType::F64, DType::I8, DType::I64, DType::U8] {
            let request = ReducerRequest::new(&vec![dtype; entry.n_inputs]);
            for request in [request.clone(), request.with_two_walks()] {
                match entry.build(&request) {
                    Ok(reducer) if !reducer.neutral.is_empty() => check(&reducer, entry.empty, dtype),
                    Ok(_) | Err(_) => {}
                }
            }
        }
    }
}

#[test]
fn reducers_have_the_neutral_elements_that_they_should() {
    let (inf, least) = (f64::INFINITY, f64::NEG_INFINITY);
    let of = |name: &str| {
        let entry = find(name).unwrap();
        let reducer = entry.build(&ReducerRequest::new(&vec![DType::F32; entry.n_inputs])).unwrap();
        values(&reducer.neutral).first().map(|v| v.as_f64())
    };
    for (name, wanted) in [
        ("max", Some(least)),
        ("logsumexp", Some(least)),
        ("min", Some(inf)),
        ("sum", Some(0.0)),
        ("sumsq", Some(0.0)),
        ("norm1", Some(0.0)),
        ("norm2", Some(0.0)),
        ("dot", Some(0.0)),
        ("absmax", Some(0.0)),
        ("count_nonzero", Some(0.0)),
        ("any", Some(0.0)),
        ("prod", Some(1.0)),
        ("all", Some(1.0)),
        ("count", None),
        ("mean", None),
        ("meansq", None),
        ("var", None),
        ("argmax", None),
        ("maxloc", None),
    ] {
        assert_eq!(of(name), wanted, "{name}");
    }
}

#[test]
fn a_product_has_one_where_all_its_parts_have_the_same() {
    let request = ReducerRequest::new(&[DType::F32]);
    let of = |names: &[&'static str]| {
        let parts: Vec<(&str, Reducer)> =
            names.iter().map(|n| (*n, find(n).unwrap().build(&request).unwrap())).collect();
        let product = product(&parts).unwrap().reducer;
        if !product.neutral.is_empty() {
            check(&product, Empty::Refused, DType::F32);
        }
        values(&product.neutral).first().map(|v| v.as_f64())
    };
    assert_eq!(of(&["max", "logsumexp"]), Some(f64::NEG_INFINITY));
    assert_eq!(of(&["sum", "sumsq", "norm1"]), Some(0.0));
    assert_eq!(of(&["max", "sum"]), None);
    assert_eq!(of(&["sum", "argmax"]), None);
}

#[test]
fn a_fold_of_what_is_made_of_the_elements_has_none() {
    let sum = find("sum").unwrap().build(&ReducerRequest::new(&[DType::F32])).unwrap();
    let x = Var::new("x", DType::F32);
    let one_less = Lambda { body: vec![x.expr() - Expr::constant(1, DType::F32)], params: vec![x.clone()] };
    assert!(sum.clone().of_mapped(&one_less).neutral.is_empty());
    let exponential = Lambda { body: vec![Expr::call1(Intrinsic::Exp, x.expr())], params: vec![x] };
    assert!(sum.of_mapped(&exponential).neutral.is_empty());
}
