//! Partial states: a reduction of parts of an array, whose states are merged later, as often as needed.
//!
//! The state of any set of statistics is one state, that of their product. So a partial reduction is a reduction by a
//! reducer whose results are the fields of that state, and a merge is one whose elements are such states, with the same
//! combine; the last one has the statistics' own finish. Nothing else is new: both are planned and compiled like every
//! other reducer, on every device.
//!
//! Positions are counted within a part. Who knows where the part lies adds that to the fields that hold positions; -1
//! says that there is none.

use coulis_ir::args::ArrayInfo;
use coulis_ir::visit::uses_any;
use coulis_ir::{BinaryOp, DType, Expr, Field, Lambda, NanPolicy, Node, Reducer, Var};

use crate::error::Error;
use crate::reduce::check;
use crate::request::Request;
use crate::statistic::OwnReducer;

/// The steps of a reduction by parts.
#[derive(Clone, Debug)]
pub struct Partial {
    /// From elements to a state, a result a field. To be used with the request's treatment of NaN.
    pub part: OwnReducer,
    /// From states to a state: an input a field, and a result a field.
    pub merge: OwnReducer,
    /// From states to the results of the statistics.
    pub finish: OwnReducer,
    /// Names and types of the results as `reduce` gives them.
    pub results: Vec<Field>,
    /// What each of them is where no element takes part.
    pub of_none: Vec<OfNone>,
    /// The fields of a state.
    pub fields: Vec<StateField>,
}

/// What a result is where no element takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfNone {
    /// A value like any other.
    Value,
    /// There is none, which only a mask tells.
    Untold,
    /// There is none, which a position of -1 tells.
    NoPosition,
}

/// A field of a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateField {
    /// Its type.
    pub dtype: DType,
    /// Whether it holds a position, row-major over the reduced axes of the part, or -1.
    pub is_position: bool,
}

/// The reduction by parts of elements of these types.
///
/// Of a request, the statistics, the treatment of NaN, `ddof` and the type of accumulators count. Errors:
/// what `reduce` refuses for elements of these types; a user-defined reducer whose state depends on positions
/// otherwise than by holding one.
pub fn partial(inputs: &[DType], request: &Request) -> Result<Partial, Error> {
    // States are to hold the positions of parts of any length.
    let long = |dtype: &DType| ArrayInfo { dtype: *dtype, shape: vec![1 << 40], strides: vec![1] };
    let infos: Vec<ArrayInfo> = inputs.iter().map(long).collect();
    let asked = Request {
        ops: request.ops.clone(),
        reducers: request.reducers.clone(),
        nan: request.nan,
        ddof: request.ddof,
        acc_dtype: request.acc_dtype,
        ..Request::new(&[])
    };
    let call = check(&infos, &asked)?;
    let parts = call.statistics.iter().zip(&call.product.parts);
    let of_none = parts.flat_map(|(statistic, part)| {
        part.results.clone().map(move |result| {
            let is_last = result + 1 == part.results.end;
            match statistic.refuses_empty() {
                true if is_last && statistic.empty_index_is_error() => OfNone::NoPosition,
                true => OfNone::Untold,
                false => OfNone::Value,
            }
        })
    });
    let of_none = of_none.collect();
    let whole = call.product.reducer;
    let fields = fields(&whole)?;
    let state: Vec<Field> = (fields.iter().enumerate())
        .map(|(at, field)| Field { name: format!("field{at}"), dtype: field.dtype })
        .collect();
    let params: Vec<Var> = state.iter().map(|f| Var::new(&f.name, f.dtype)).collect();
    let as_is = Lambda { body: params.iter().map(Var::expr).collect(), params: params.clone() };
    let part =
        Reducer { name: "part".to_owned(), results: state.clone(), finish: as_is.clone(), ..whole.clone() };
    let position = Var::new("position", DType::I64);
    let lift = Lambda { params: params.into_iter().chain([position]).collect(), body: as_is.body.clone() };
    let states = Reducer {
        lift,
        step: None,
        step_needs_ascending: false,
        quick: None,
        settled: None,
        values: None,
        neutral: Vec::new(),
        nan: NanPolicy::Propagate,
        ..whole
    };
    let merge = Reducer { name: "merge".to_owned(), results: state, finish: as_is, ..states.clone() };
    // Names within a reducer have no dots, as those of a statistic with two results have.
    let numbered = |(at, result): (usize, &Field)| Field { name: format!("result{at}"), dtype: result.dtype };
    let named = states.results.clone();
    let results = named.iter().enumerate().map(numbered).collect();
    let finish = Reducer { name: "finish".to_owned(), results, ..states };
    Ok(Partial {
        part: OwnReducer::derived(part),
        merge: OwnReducer::derived(merge),
        finish: OwnReducer::derived(finish),
        results: named,
        of_none,
        fields,
    })
}

/// The fields of a reducer's state, if those that look at positions hold them.
fn fields(reducer: &Reducer) -> Result<Vec<StateField>, Error> {
    let Some(position) = reducer.lift.params.last() else {
        return Err(Error::bug("reduce/partial", "a lift without a position"));
    };
    let are_positions: Vec<bool> =
        reducer.lift.body.iter().map(|lifted| lifted.as_var() == Some(position)).collect();
    let of_both = are_positions.iter().chain(&are_positions);
    let held = reducer.combine.params.iter().zip(of_both).filter(|(_, is_position)| **is_position);
    let held: Vec<Var> = held.map(|(param, _)| param.clone()).collect();
    let states = reducer.fields.iter().zip(&reducer.lift.body).zip(&reducer.combine.body);
    states
        .zip(&are_positions)
        .map(|(((field, lifted), combined), &is_position)| {
            let moves = match is_position {
                true => is_one_of(combined, &held),
                false => !uses_any(lifted, std::slice::from_ref(position)) && only_orders(combined, &held),
            };
            if !moves {
                let message = format!(
                    "field `{}` depends on positions otherwise than by holding one of them: it cannot be reduced by parts",
                    field.name
                );
                return Err(Error::unsupported("reduce/partial", message));
            }
            Ok(StateField { dtype: field.dtype, is_position })
        })
        .collect()
}

/// Whether an expression is one of these positions, whichever is chosen: then it moves with the part that they are of.
fn is_one_of(expr: &Expr, positions: &[Var]) -> bool {
    match expr.node() {
        Node::Var(var) => positions.contains(var),
        Node::Int(none) => *none == -1,
        Node::Select(cond, a, b) | Node::IfThenElse(cond, a, b) => {
            only_orders(cond, positions) && is_one_of(a, positions) && is_one_of(b, positions)
        }
        Node::Binary(BinaryOp::Min | BinaryOp::Max, a, b) => {
            is_one_of(a, positions) && is_one_of(b, positions)
        }
        // These make another number of what they are given.
        Node::Float(_)
        | Node::Binary(..)
        | Node::Not(_)
        | Node::Cast(_)
        | Node::Call(..)
        | Node::Load(..)
        | Node::Ramp(..)
        | Node::Broadcast(_)
        | Node::Let(..) => false,
    }
}

/// Whether an expression asks of these positions no more than which comes first and whether there is one, which is the same
/// wherever the part lies.
fn only_orders(expr: &Expr, positions: &[Var]) -> bool {
    if !uses_any(expr, positions) {
        return true;
    }
    let is_held = |e: &Expr| e.as_var().is_some_and(|v| positions.contains(v));
    let within = |e: &Expr| only_orders(e, positions);
    match expr.node() {
        Node::Binary(op, a, b) if op.is_comparison() && is_held(a) && is_held(b) => true,
        // Every position that there is gives the same answer.
        Node::Binary(BinaryOp::Lt | BinaryOp::Ge, a, b) if is_held(a) && matches!(b.node(), Node::Int(0)) => {
            true
        }
        Node::Binary(op, a, b) if op.is_comparison() && is_held(a) => {
            matches!(b.node(), Node::Int(none) if *none < 0)
        }
        Node::Binary(_, a, b) => within(a) && within(b),
        Node::Not(a) | Node::Cast(a) => within(a),
        Node::Select(a, b, c) | Node::IfThenElse(a, b, c) => within(a) && within(b) && within(c),
        Node::Call(_, args) => args.iter().all(within),
        // A position as it stands, or in what no function of scalars gives.
        Node::Int(_)
        | Node::Float(_)
        | Node::Var(_)
        | Node::Load(..)
        | Node::Ramp(..)
        | Node::Broadcast(_)
        | Node::Let(..) => false,
    }
}

#[cfg(test)]
mod tests {
    use coulis_io::Array;
    use coulis_reducers::{Combine, Lift, UserReducer, comm_reducer};

    use super::*;
    use crate::reduce::run;

    /// Results of `ops` over the whole of `values`, and over parts of these lengths that are merged in two rounds.
    fn both(values: &[f64], lengths: &[usize], ops: &[&str], nan: NanPolicy) -> (Vec<f64>, Vec<f64>) {
        let array = |values: &[f64]| Array::from_slice(&[values.len() as i64], values).expect("it fits");
        let request = Request { nan, ..Request::new(ops) };
        let numbers = |outcome: crate::request::Outcome| -> Vec<f64> {
            let scalars = outcome.results.iter().flat_map(|r| r.array.scalars().collect::<Vec<_>>());
            scalars.map(|s| s.to_f64()).collect()
        };
        let whole = numbers(run(&[array(values)], &request).expect("it runs"));

        let steps = partial(&[DType::F64], &request).expect("there are parts");
        let own = |own: &OwnReducer, nan| Request {
            reducers: vec![own.clone()],
            nan,
            axes: Some(vec![0]),
            ..Request::new(&[own.name()])
        };
        let merged = |states: &[Vec<Array>], step: &OwnReducer| {
            let stacked: Vec<Array> = (0..steps.fields.len())
                .map(|field| {
                    let bytes: Vec<u8> = states
                        .iter()
                        .flat_map(|s| s[field].storage().0.iter().copied().take(s[field].dtype().bytes()))
                        .collect();
                    let dtype = steps.fields[field].dtype;
                    Array::from_bytes(dtype, &[states.len() as i64], &bytes).expect("it fits")
                })
                .collect();
            run(&stacked, &own(step, NanPolicy::Propagate)).expect("states merge")
        };
        let arrays = |o: crate::request::Outcome| o.results.into_iter().map(|r| r.array).collect::<Vec<_>>();
        let (mut states, mut begin) = (Vec::new(), 0);
        for &length in lengths {
            let part = &values[begin..begin + length];
            let mut state = arrays(run(&[array(part)], &own(&steps.part, nan)).expect("a part runs"));
            for (field, of) in state.iter_mut().zip(&steps.fields) {
                if of.is_position && field.scalars().next().expect("one").to_f64() >= 0.0 {
                    let at = field.scalars().next().expect("one").to_f64() as i64 + begin as i64;
                    *field = Array::from_slice(&[], &[at]).expect("it fits");
                }
            }
            states.push(state);
            begin += length;
        }
        assert_eq!(begin, values.len());
        let half = states.len().div_ceil(2);
        let rounds = [&states[..half], &states[half..]].map(|half| arrays(merged(half, &steps.merge)));
        (whole, numbers(merged(&rounds, &steps.finish)))
    }

    const OPS: [&str; 13] = [
        "sum",
        "mean",
        "var",
        "std",
        "min",
        "max",
        "argmax",
        "argmin",
        "argmax_last",
        "count",
        "logsumexp",
        "prod",
        "maxloc",
    ];

    #[test]
    fn parts_merge_to_what_the_whole_gives() {
        let values: Vec<f64> = (0..23).map(|i| f64::from((i * 37) % 19) / 8.0 - 1.0).collect();
        for lengths in [&[1, 1, 21][..], &[10, 13], &[5, 5, 5, 5, 3]] {
            let (whole, merged) = both(&values, lengths, &OPS, NanPolicy::Propagate);
            for (a, b) in whole.iter().zip(&merged) {
                assert!((a - b).abs() <= 1e-12 * a.abs().max(1.0), "{whole:?} {merged:?}");
            }
        }
    }

    #[test]
    fn nan_is_treated_by_the_parts() {
        let values = [1.0, f64::NAN, 3.0, f64::NAN, 2.0];
        let (whole, merged) = both(&values, &[2, 2, 1], &OPS, NanPolicy::Ignore);
        assert_eq!(whole, merged);
        let (whole, merged) = both(&values, &[2, 3], &["max", "argmax", "count"], NanPolicy::Propagate);
        assert!(whole[0].is_nan() && merged[0].is_nan());
        assert_eq!((&whole[1..], &merged[1..]), (&[1.0, 5.0][..], &[1.0, 5.0][..]));
    }

    #[test]
    fn positions_that_are_reckoned_with_are_not_taken_for_places() {
        let [state, zero] = [DType::I64, DType::F64].map(|dtype| Expr::constant(0, dtype));
        let held = |combine: Combine| {
            let mut spec = UserReducer::new("own", &[DType::F64], vec![state.clone(), zero.clone()], combine);
            let lift: Lift = &|x, position| vec![position.clone(), x[0].clone()];
            spec.lift = Some(lift);
            let own = OwnReducer::derived(comm_reducer(&spec).expect("a reducer"));
            partial(&[DType::F64], &Request { reducers: vec![own], ..Request::new(&["own"]) })
        };
        let first = held(&|a, b| {
            let takes = b[1].clone().gt(a[1].clone()).or(b[0].clone().lt(a[0].clone()));
            let takes = takes.and(b[0].clone().ge(Expr::constant(0, DType::I64)));
            vec![Expr::select(takes, b[0].clone(), a[0].clone()), a[1].clone().max(b[1].clone())]
        });
        assert!(first.expect("one of both").fields[0].is_position);
        let refused: [Combine; 4] = [
            &|a, b| vec![&a[0] + &b[0], &a[1] + &b[1]],
            &|a, b| vec![a[0].clone().max(b[0].clone()), &a[1] + &b[0].clone().cast(DType::F64)],
            &|a, b| {
                let early = a[0].clone().lt(Expr::constant(5, DType::I64));
                vec![Expr::select(early, a[0].clone(), b[0].clone()), &a[1] + &b[1]]
            },
            &|a, b| {
                let is_first = a[0].clone().equal(Expr::constant(0, DType::I64));
                vec![Expr::select(is_first, a[0].clone(), b[0].clone()), &a[1] + &b[1]]
            },
        ];
        for combine in refused {
            let error = held(combine).expect_err("it is refused").to_string();
            assert!(error.contains("depends on positions otherwise than by holding one of them"), "{error}");
        }
    }

    #[test]
    fn a_state_says_which_of_its_fields_hold_positions() {
        let positions = |ops: &[&str]| {
            let steps = partial(&[DType::F32], &Request::new(ops)).expect("there are parts");
            steps.fields.iter().filter(|f| f.is_position).count()
        };
        assert_eq!(
            (positions(&["sum", "max"]), positions(&["argmax"]), positions(&["argmax", "argmin"])),
            (0, 1, 2)
        );
    }
}
