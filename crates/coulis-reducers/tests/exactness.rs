//! Every reducer of the catalogue, in every type and NaN policy, folded in several ways, against the exact answer.

// Helpers of tests may fail by panic, as tests do.
#![allow(clippy::unwrap_used)]

use coulis_ir::eval::Value;
use coulis_ir::{DType, ErrorBound, Field, NanPolicy, Reducer};
use coulis_reducers::exact::{Exact, Refused, reference, rounding_error, tolerance};
use coulis_reducers::scalar::{Scalar, State};
use coulis_reducers::{CATALOGUE, Empty, Entry, ReducerRequest};

/// A row: one element a position, one value an input.
type Row = Vec<Vec<Value>>;

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn value(&mut self, dtype: DType) -> f64 {
        match dtype.int_range() {
            Some((min, max)) if self.next().is_multiple_of(4) => {
                (if self.next().is_multiple_of(2) { min } else { max }) as f64
            }
            Some(_) => (self.next() % 40) as f64 - 20.0,
            None => ((self.next() % 2001) as f64 - 1000.0) / 257.0,
        }
    }
}

/// Rows that try what can go wrong, with a name for messages.
fn rows(dtype: DType, n_inputs: usize) -> Vec<(&'static str, Row)> {
    let value = |v: f64| match dtype.int_range() {
        Some((min, max)) => Value::Int((v as i128).clamp(min, max)),
        None => Value::Float(v).cast(dtype),
    };
    let mut random = Random(0x1234_5678_9abc_def1);
    let row = |values: &[f64]| -> Row {
        let at = |i: usize| value(values[i % values.len()]);
        (0..values.len()).map(|i| (0..n_inputs).map(|k| at(i + 3 * k)).collect()).collect()
    };
    let mut draw = |n: usize| -> Vec<f64> { (0..n).map(|_| random.value(dtype)).collect() };
    let mut all = vec![
        ("empty", row(&[])),
        ("one", row(&[3.0])),
        ("one negative", row(&[-2.0])),
        ("equal", row(&[0.1; 9].map(|v| if dtype.is_float() { v } else { 7.0 }))),
        ("zeros", row(&[0.0; 5])),
        ("ascending", row(&std::array::from_fn::<f64, 21, _>(|i| i as f64 * 1.5))),
        ("descending", row(&std::array::from_fn::<f64, 21, _>(|i| 9.0 - i as f64))),
        ("ties", row(&[1.0, 5.0, 5.0, -3.0, 5.0, -3.0, 0.0])),
        ("one large, then ones", row(&[16384.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0])),
        ("random", row(&draw(37))),
        ("random again", row(&draw(18))),
    ];
    if dtype.is_float() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        all.extend([
            ("signed zeros", row(&[0.0, -0.0, 0.0, -0.0])),
            ("a NaN", row(&[1.0, nan, 3.0, -1.0])),
            ("NaN first", row(&[nan, 2.0, 3.0])),
            ("NaN last and again", row(&[4.0, nan, 3.0, nan])),
            ("all NaN", row(&[nan, nan, nan])),
            ("infinite", row(&[1.0, inf, 2.0])),
            ("all -inf", row(&[-inf, -inf, -inf])),
            ("all +inf", row(&[inf, inf])),
            ("both infinities", row(&[-inf, 1.0, inf])),
            ("infinity and NaN", row(&[-inf, nan, 7.0, inf])),
        ]);
    }
    match dtype {
        DType::F32 => all.push(("extreme", row(&[3e38, -2e38, 1e-38, 3e38]))),
        DType::F64 => all.push(("extreme", row(&[3e60, -2e60, 1e-38, 3e60]))),
        DType::F16 => all.push(("extreme", row(&[60000.0, 60000.0, 6e-8, 60000.0]))),
        DType::BF16 => all.push(("extreme", row(&[3e38, -2e38, 1e-38, 3e38]))),
        _ => {}
    }
    // The ends of the range: powers of two, the greatest magnitude and the least.
    let ends = match dtype {
        DType::F16 => Some((65504.0, 2f64.powi(-24))),
        DType::BF16 => Some((f64::from(f32::from_bits(0x7f7f_0000)), 2f64.powi(-133))),
        DType::F32 => Some((f64::from(f32::MAX), 2f64.powi(-149))),
        _ => None,
    };
    if let Some((greatest, least)) = ends {
        all.extend([
            ("the greatest", row(&[greatest; 35])),
            (
                "the greatest, of both signs",
                row(&std::array::from_fn::<f64, 33, _>(|i| [greatest, -greatest][i % 2])),
            ),
            (
                "halves of the greatest",
                row(&std::array::from_fn::<f64, 32, _>(|i| greatest / (2 + i % 2) as f64)),
            ),
            ("the least", row(&[least; 35])),
            ("subnormals", row(&std::array::from_fn::<f64, 33, _>(|i| least * (i % 7) as f64))),
            (
                "roots of the least",
                row(&std::array::from_fn::<f64, 33, _>(|i| least.sqrt() * (i % 5) as f64)),
            ),
            (
                "roots of the greatest",
                row(&std::array::from_fn::<f64, 33, _>(|i| greatest.sqrt() * (i % 5) as f64)),
            ),
            (
                "the greatest and the least",
                row(&std::array::from_fn::<f64, 34, _>(|i| [greatest, least, 1.0][i % 3])),
            ),
        ]);
    }
    all
}

/// States of the row under several plans.
fn plans(run: &Scalar, row: &Row) -> Vec<(&'static str, State)> {
    let taking: Vec<(usize, &Vec<Value>)> =
        row.iter().enumerate().filter(|(_, e)| run.takes_part(e).unwrap()).collect();
    let lifted: Vec<State> = taking.iter().map(|(at, e)| run.lift(e, *at as i64).unwrap()).collect();
    let identity = run.identity().unwrap();
    let chain = |states: &mut dyn Iterator<Item = &State>| {
        states.fold(identity.clone(), |state, next| run.combine(&state, next).unwrap())
    };
    let stepped = |states: &mut dyn Iterator<Item = &State>| {
        states.fold(identity.clone(), |state, next| run.step(&state, next).unwrap())
    };
    let mut tree = lifted.clone();
    while tree.len() > 1 {
        tree = tree
            .chunks(2)
            .map(|p| if p.len() == 2 { run.combine(&p[0], &p[1]).unwrap() } else { p[0].clone() })
            .collect();
    }
    let lanes: Vec<State> = (0..4).map(|lane| stepped(&mut lifted.iter().skip(lane).step_by(4))).collect();
    let max_steps = run.reducer().quick.as_ref().map_or(usize::MAX, |q| q.max_steps as usize);
    let elements: Vec<(&[Value], i64)> = taking.iter().map(|(at, e)| (e.as_slice(), *at as i64)).collect();
    let in_runs = |elements: &[(&[Value], i64)], steps: usize| -> State {
        elements.chunks(max_steps.min(steps)).fold(identity.clone(), |s, c| run.run(&s, c).unwrap())
    };
    // Parts of a row may be long enough for runs, and too short.
    let half = elements.len() / 2;
    let (halves_in_runs, halves_stepped) = (
        [in_runs(&elements[..half], 32), in_runs(&elements[half..], 32)],
        [stepped(&mut lifted[..half].iter()), stepped(&mut lifted[half..].iter())],
    );
    let both = |left: &State, right: &State| run.combine(left, right).unwrap();
    let mut plans = vec![
        ("runs, then steps", both(&halves_in_runs[0], &halves_stepped[1])),
        ("steps, then runs", both(&halves_stepped[0], &halves_in_runs[1])),
        ("runs of what was stepped", {
            let runs = elements[half..].chunks(max_steps.min(32));
            runs.fold(halves_stepped[0].clone(), |s, c| run.run(&s, c).unwrap())
        }),
        ("steps of what was run", {
            lifted[half..].iter().fold(halves_in_runs[0].clone(), |s, next| run.step(&s, next).unwrap())
        }),
        ("steps", stepped(&mut lifted.iter())),
        ("combines", chain(&mut lifted.iter())),
        ("combines backwards", chain(&mut lifted.iter().rev())),
        ("tree", tree.first().unwrap_or(&identity).clone()),
        ("lanes", chain(&mut lanes.iter().rev())),
        ("short runs", in_runs(&elements, 7)),
        ("long runs", in_runs(&elements, 32)),
    ];
    if !run.reducer().step_needs_ascending {
        let n_elements = elements.len();
        let dealt = |n: usize| (0..n).flat_map(move |first| (first..n_elements).step_by(n));
        let order = |n: usize| dealt(n).map(|at| elements[at]).collect::<Vec<_>>();
        plans.extend([
            ("steps backwards", stepped(&mut lifted.iter().rev())),
            ("short runs backwards", in_runs(&elements.iter().rev().copied().collect::<Vec<_>>(), 7)),
            ("short runs of every third", in_runs(&order(3), 7)),
            ("long runs of every fifth", in_runs(&order(5), 32)),
        ]);
    }
    plans
}

#[track_caller]
fn compare(what: &str, got: Value, exact: &Exact, bound: ErrorBound, n: usize, result: &Field) {
    let want = exact.value;
    let allowed = tolerance(bound, exact, n);
    let close = |got: Value, want: Value, allowed: f64| {
        got.same(want) || (got.as_f64() - want.as_f64()).abs() <= allowed
    };
    // The state's own precision: a quotient or a root after the fold.
    let own = if bound == ErrorBound::Exact { 0.0 } else { 4.0 * rounding_error(want.as_f64(), DType::F64) };
    let exactly = bound == ErrorBound::Exact;
    let right = if exactly { got.same(want) } else { close(got, want, allowed + own) };
    assert!(right, "{what}: got {got:?}, exact {want:?}, allowed {allowed:e}");
    // And once more after the rounding to the output type.
    let (got, want) = (got.cast(result.dtype), want.cast(result.dtype));
    let allowed = allowed + 2.0 * rounding_error(want.as_f64(), result.dtype);
    assert!(
        if exactly { got.same(want) } else { close(got, want, allowed) },
        "{what}: rounded {got:?}, exact {want:?}"
    );
}

fn check_row(entry: &Entry, request: &ReducerRequest, reducer: &Reducer, name: &str, row: &Row) {
    let run = Scalar::new(reducer);
    let exact = reference(entry, request, row);
    for (plan, state) in plans(&run, row) {
        let got = run.finish(&state).unwrap();
        let what = format!(
            "{} of {:?} {:?} acc {:?}, row \"{name}\", {plan}",
            entry.name, request.inputs, request.nan, request.acc
        );
        assert_eq!(got.len(), reducer.results.len(), "{what}");
        match &exact {
            Ok(exact) => {
                assert_eq!(exact.len(), got.len(), "{what}");
                for ((got, exact), result) in got.iter().zip(exact).zip(&reducer.results) {
                    compare(&what, *got, exact, reducer.error, row.len(), result);
                }
            }
            Err(Refused::Empty | Refused::AllNan) if entry.empty_index_is_error() => {
                assert_eq!(got.last(), Some(&Value::Int(-1)), "{what}");
            }
            Err(_) => assert!(entry.needs_init_when_empty() && row.is_empty(), "{what}"),
        }
    }
}

fn check(dtypes: &[DType], tweak: impl Fn(ReducerRequest) -> ReducerRequest) {
    for entry in CATALOGUE {
        for dtype in dtypes {
            for nan in [NanPolicy::Propagate, NanPolicy::Ignore] {
                if nan == NanPolicy::Ignore && !dtype.is_float() {
                    continue;
                }
                let request = tweak(ReducerRequest::new(&vec![*dtype; entry.n_inputs]).with_nan(nan));
                let Ok(reducer) = entry.build(&request) else { continue };
                for (name, row) in rows(*dtype, entry.n_inputs) {
                    check_row(entry, &request, &reducer, name, &row);
                }
            }
        }
    }
}

#[test]
fn float32_results_are_within_their_bounds() {
    check(&[DType::F32], |r| r);
}

#[test]
fn runs_that_are_walked_twice_are_within_their_bounds() {
    let twice = |r: ReducerRequest| r.with_length(1 << 20).with_two_walks();
    check(&[DType::F32, DType::F16, DType::BF16, DType::F64], twice);
    check(&[DType::I8, DType::I32, DType::U64], twice);
}

#[test]
fn elements_in_any_order_of_positions_give_the_same_results() {
    let dtypes = [DType::F32, DType::BF16, DType::F64, DType::I8, DType::U64];
    check(&dtypes, |r| r.with_length(1 << 20).in_any_order());
    check(&dtypes, |r| r.in_any_order().with_two_walks());
    for entry in CATALOGUE {
        let request = ReducerRequest::new(&vec![DType::F32; entry.n_inputs]).in_any_order();
        assert!(!entry.build(&request).unwrap().step_needs_ascending, "{}", entry.name);
    }
}

#[test]
fn products_overflow_only_where_the_exact_one_does() {
    let entry = coulis_reducers::find("prod").unwrap();
    let ends = |dtype| match dtype {
        DType::F16 => (65504.0, 2f64.powi(-24)),
        DType::F32 => (f64::from(f32::MAX), 2f64.powi(-149)),
        _ => (f64::MAX, 2f64.powi(-1074)),
    };
    for dtype in [DType::F16, DType::F32, DType::F64] {
        let (greatest, least) = ends(dtype);
        let (large, small) = (greatest.sqrt().floor(), (1.0 / greatest.sqrt()).max(least));
        let halves = |a: f64, b: f64| (0..80).map(|i| if i < 40 { a } else { b }).collect::<Vec<f64>>();
        let rows = [
            halves(large, small),
            halves(greatest, -least),
            halves(least, greatest),
            halves(greatest, greatest),
            halves(least, least),
            [halves(greatest, least), vec![0.0]].concat(),
            [vec![-0.0], halves(greatest, greatest), vec![f64::INFINITY]].concat(),
            (0..200).map(f64::from).collect(),
            (1..200).map(|i| if i % 2 == 0 { f64::from(i) } else { 1.0 / f64::from(i) }).collect(),
        ];
        let request = ReducerRequest::new(&[dtype]);
        let reducer = entry.build(&request).unwrap();
        for (at, row) in rows.iter().enumerate() {
            let row: Row = row.iter().map(|v| vec![Value::Float(*v).cast(dtype)]).collect();
            check_row(entry, &request, &reducer, &format!("{at}"), &row);
        }
    }
}

#[test]
fn variances_of_finite_float64_overflow_to_infinity_and_others_are_nan() {
    let max = f64::MAX;
    let rows: [(&[f64], f64); 9] = [
        (&[1e308, -1.0, 5.0], f64::INFINITY),
        (&[8e307, -8e307, 8e307, -8e307, 8e307, -8e307, 8e307, -8e307], f64::INFINITY),
        (&[max, -max, 0.0], f64::INFINITY),
        (&[0.0, max, max, max, max, -max, -max, -max, -max], f64::INFINITY),
        (&[1.0, 1e200, 3.0], f64::INFINITY),
        (&[max, max, max, max, max], 0.0),
        (&[1e308, f64::INFINITY, -1e308], f64::NAN),
        (&[f64::NEG_INFINITY, 1e308, -1e308], f64::NAN),
        (&[1.0, 1e308, f64::NAN, -1e308], f64::NAN),
    ];
    for name in ["var", "std"] {
        let entry = coulis_reducers::find(name).unwrap();
        let request = ReducerRequest::new(&[DType::F64]);
        let reducer = entry.build(&request).unwrap();
        for (row, want) in rows {
            for turn in 0..row.len() {
                let turned = row.iter().cycle().skip(turn).take(row.len());
                let row: Row = turned.map(|v| vec![Value::Float(*v)]).collect();
                let exact = reference(entry, &request, &row).unwrap()[0].value;
                assert!(exact.same(Value::Float(want)), "{name} of {row:?}: {exact:?} is to be {want}");
                check_row(entry, &request, &reducer, &format!("{row:?}"), &row);
            }
        }
    }
}

#[test]
fn means_are_right_next_to_the_end_of_the_range() {
    let row = [vec![f64::MAX], vec![0.1; 18]].concat();
    let request = ReducerRequest::new(&[DType::F64]);
    let entry = coulis_reducers::find("mean").unwrap();
    let row: Row = row.iter().map(|v| vec![Value::Float(*v)]).collect();
    let exact = reference(entry, &request, &row).unwrap()[0];
    assert_eq!((exact.value, exact.scale), (Value::Float(f64::MAX / 19.0), f64::MAX / 19.0));
    check_row(entry, &request, &entry.build(&request).unwrap(), "a large one first", &row);
}

#[test]
fn narrow_runs_are_within_their_bounds() {
    check(&[DType::F32], |r| r.with_length(1 << 20).with_narrow_runs());
    check(&[DType::F64, DType::BF16], |r| r.with_acc(DType::F32).with_narrow_runs());
}

#[test]
fn states_of_few_elements_are_within_their_bounds() {
    let floats = [DType::F16, DType::BF16, DType::F8E4M3, DType::F8E5M2, DType::F32];
    let integers = [DType::Bool, DType::I8, DType::U8, DType::I16, DType::I32];
    let mut n_narrow = 0;
    for (entry, dtype) in
        CATALOGUE.iter().flat_map(|entry| floats.iter().chain(&integers).map(move |d| (entry, *d)))
    {
        let plain = ReducerRequest::new(&vec![dtype; entry.n_inputs]);
        for (name, row) in rows(dtype, entry.n_inputs).into_iter().filter(|(_, row)| row.len() <= 64) {
            let request = plain.clone().with_few(row.len() as i64);
            let (Ok(reducer), Ok(of_any)) = (entry.build(&request), entry.build(&plain)) else { continue };
            n_narrow += usize::from(reducer.fields != of_any.fields);
            check_row(entry, &request, &reducer, name, &row);
        }
    }
    assert!(n_narrow > 200, "{n_narrow}");
    // As many as there may be, of which each addition rounds.
    let entry = coulis_reducers::find("sum").unwrap();
    let row: Row =
        (0..64).map(|i| vec![Value::Float(1.0 + f64::from(i % 7) / 1024.0).cast(DType::F16)]).collect();
    let request = ReducerRequest::new(&[DType::F16]).with_few(64);
    check_row(entry, &request, &entry.build(&request).unwrap(), "64", &row);
    // Near the end of the range, out of which no sum of a part is to lead.
    let row: Row = (0..64)
        .map(|i| vec![Value::Float(if i % 2 == 0 { 3e38 } else { -3e38 }).cast(DType::BF16)])
        .collect();
    let request = ReducerRequest::new(&[DType::BF16]).with_few(64);
    check_row(entry, &request, &entry.build(&request).unwrap(), "ends", &row);
}

#[test]
fn sums_of_few_short_elements_are_kept_in_what_runs_of_them_are() {
    let state = |dtype: DType, few: i64| {
        let request = coulis_reducers::ReducerRequest::new(&[dtype]).with_few(few);
        coulis_reducers::find("sum").unwrap().build(&request).unwrap().fields[0].dtype
    };
    assert_eq!(
        [DType::F16, DType::BF16, DType::F32].map(|d| state(d, 64)),
        [DType::F32, DType::F32, DType::F64]
    );
    assert_eq!(
        [DType::F16, DType::BF16].map(|d| state(d, 65)),
        [DType::F64; 2],
        "the error of more is larger"
    );
    assert_eq!(
        [DType::I8, DType::U16, DType::I32].map(|d| state(d, 64)),
        [DType::I32, DType::I32, DType::I64]
    );
    assert_eq!(
        [1 << 23, (1 << 23) + 1].map(|n| state(DType::I8, n)),
        [DType::I32, DType::I64],
        "more may not fit"
    );
}

#[test]
fn runs_that_are_given_up_are_within_their_bounds() {
    check(&[DType::F16, DType::BF16, DType::F32], |r| r.with_length(1 << 20).with_runs_given_up());
}

#[test]
fn long_runs_of_integers_are_exact_or_within_their_bounds() {
    check(&[DType::Bool, DType::I8, DType::U8, DType::I16], |r| r.with_length(1 << 20).with_long_runs());
}

#[test]
fn float64_results_are_within_their_bounds() {
    check(&[DType::F64], |r| r.with_ddof(1.0));
}

#[test]
fn narrow_float_results_are_within_their_bounds() {
    check(&[DType::F16, DType::BF16], |r| r);
}

#[test]
fn eight_bit_float_results_are_within_their_bounds() {
    check(&[DType::F8E4M3, DType::F8E5M2], |r| r);
}

#[test]
fn signed_integer_results_are_exact_or_within_their_bounds() {
    check(&[DType::I8, DType::I16, DType::I32, DType::I64], |r| r);
}

#[test]
fn unsigned_integer_and_bool_results_are_exact_or_within_their_bounds() {
    check(&[DType::Bool, DType::U8, DType::U16, DType::U32, DType::U64], |r| r);
}

#[test]
fn accumulators_that_are_asked_for_keep_their_bounds() {
    check(&[DType::F16, DType::F32, DType::I32], |r| r.with_acc(DType::F64));
    check(&[DType::F64, DType::I8], |r| r.with_acc(DType::F32));
    check(&[DType::I8, DType::U16], |r| r.with_acc(DType::I32));
}

#[test]
fn the_identity_finishes_as_the_entry_says_an_empty_row_does() {
    for entry in CATALOGUE {
        let reducer = entry.build(&ReducerRequest::new(&vec![DType::F32; entry.n_inputs])).unwrap();
        let run = Scalar::new(&reducer);
        let got = run.finish(&run.identity().unwrap()).unwrap()[0];
        let want = match entry.empty {
            Empty::Refused => continue,
            Empty::Value("NaN") => Value::Float(f64::NAN),
            Empty::Value("-inf") => Value::Float(f64::NEG_INFINITY),
            Empty::Value("true") => Value::Int(1),
            Empty::Value("false") => Value::Int(0),
            Empty::Value(number) => match got {
                Value::Int(_) => Value::Int(number.parse().unwrap()),
                Value::Float(_) => Value::Float(number.parse().unwrap()),
            },
        };
        assert!(got.same(want), "{}: {got:?} {want:?}", entry.name);
    }
}

#[test]
fn results_have_the_types_of_the_table() {
    let check = |name: &str, inputs: &[DType], want: &[DType]| {
        let reducer = coulis_reducers::find(name).unwrap().build(&ReducerRequest::new(inputs)).unwrap();
        let found: Vec<DType> = reducer.results.iter().map(|r| r.dtype).collect();
        assert_eq!(found, want, "{name} of {inputs:?}");
    };
    use DType::*;
    for name in ["sum", "prod", "sumsq", "norm1"] {
        check(name, &[Bool], &[I64]);
        check(name, &[I8], &[I64]);
        check(name, &[U16], &[U64]);
        check(name, &[F16], &[F16]);
        check(name, &[F64], &[F64]);
    }
    for name in ["mean", "var", "std", "meansq", "norm2", "logsumexp"] {
        check(name, &[Bool], &[F64]);
        check(name, &[I64], &[F64]);
        check(name, &[BF16], &[BF16]);
    }
    for name in ["min", "max"] {
        check(name, &[Bool], &[Bool]);
        check(name, &[I8], &[I8]);
        check(name, &[F8E4M3], &[F8E4M3]);
    }
    check("absmax", &[I8], &[U8]);
    check("absmax", &[F32], &[F32]);
    for name in ["any", "all"] {
        check(name, &[F32], &[Bool]);
    }
    for name in ["count", "count_nonzero", "argmin", "argmax", "argmin_last", "argmax_last"] {
        check(name, &[U8], &[I64]);
    }
    check("maxloc", &[F16], &[F16, I64]);
    check("minloc", &[Bool], &[Bool, I64]);
    check("dot", &[I8, I8], &[I64]);
    check("dot", &[F16, BF16], &[F32]);
    check("dot", &[F32, I64], &[F32]);
    check("wmean", &[I8, U8], &[F64]);
    check("wmean", &[F32, F64], &[F64]);
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    let refused = |name: &str, request: ReducerRequest| {
        coulis_reducers::find(name).unwrap().build(&request).unwrap_err().to_string()
    };
    assert_eq!(refused("dot", ReducerRequest::new(&[DType::F32])), "`dot` takes 2 input(s), got 1");
    assert_eq!(
        refused("sum", ReducerRequest::new(&[DType::F32]).with_acc(DType::I32)),
        "`sum` of float32 cannot accumulate in int32; legal accumulators are float32, float64"
    );
    assert_eq!(
        refused("var", ReducerRequest::new(&[DType::F32]).with_ddof(f64::NAN)),
        "`var` takes a finite ddof, got NaN"
    );
}

#[test]
fn mixed_input_types_are_promoted() {
    let request = ReducerRequest::new(&[DType::F32, DType::I8]);
    let row: Row =
        (0..9).map(|i| vec![Value::Float(f64::from(i) * 0.5), Value::Int(i128::from(i) - 4)]).collect();
    for name in ["dot", "wmean"] {
        let entry = coulis_reducers::find(name).unwrap();
        check_row(entry, &request, &entry.build(&request).unwrap(), "mixed", &row);
    }
}
