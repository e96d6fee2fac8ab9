//! Folds that are told of each element whether it takes part.
//!
//! An element that does not may be passed over, by a condition on the state; or be folded as something that changes nothing, for
//! which short runs need no condition. A reducer of the second kind has one more input, a bool: where it is false, the element is
//! lifted to what changes no state and no run, and counted as nothing. What that is, is known of reducers of the catalogue: a
//! number that may stand anywhere in the fold ([`Reducer::neutral`]), or else the identity, where steps pass over it as combining
//! does.

use coulis_ir::counts::{Count, counts};
use coulis_ir::eval::{Env, EvalError, Value, eval_expr};
use coulis_ir::{BinaryOp, DType, Expr, Lambda, Node, QuickStep, Reducer, Ties, Var};

use crate::builder::lifted_to_identity;
use crate::product::{Product, product};
use crate::scalar::Scalar;
use crate::shape::extremum::End;

/// What stands for an element that takes no part.
enum Absent {
    /// These numbers, one an input.
    Elements(Vec<Expr>),
    /// The identity, of states and of runs.
    Identity,
}

/// What is better of the two.
#[derive(Clone, Copy)]
enum Preferred {
    /// Numbers, of which there are fewer than fields, and which are narrower.
    Elements,
    /// The identity, which fields have in common whose parts know other numbers.
    Identity,
}

/// The reducer of the catalogue whose last input, a bool, says whether an element takes part; `None` where nothing is known that may stand
/// for one that does not.
fn flagged(reducer: &Reducer, preferred: Preferred) -> Option<Reducer> {
    if reducer.input_dtypes().iter().any(|dtype| matches!(dtype, DType::F8E4M3 | DType::F8E5M2)) {
        return None;
    }
    let counted = counts(reducer);
    let absent = absent(reducer, &counted, preferred)?;
    let flag = Var::new("t", DType::Bool);
    let lift = |lift: &Lambda, identity: &[Expr]| -> Lambda {
        let (position, elements) = lift.params.split_last().map_or((None, &[][..]), |(p, e)| (Some(p), e));
        let present = |yes: &Expr, no: &Expr| Expr::select(flag.expr(), yes.clone(), no.clone());
        let mut body = match &absent {
            Absent::Elements(others) => {
                let chosen = elements.iter().zip(others).map(|(e, other)| present(&e.expr(), other));
                lift.apply(&chosen.chain(position.map(Var::expr)).collect::<Vec<_>>())
            }
            Absent::Identity => lift.body.iter().zip(identity).map(|(e, other)| present(e, other)).collect(),
        };
        for Count { field, each } in &counted {
            let dtype = body[*field].dtype();
            body[*field] = present(&Expr::constant(*each, dtype), &Expr::constant(0, dtype));
        }
        let params = elements.iter().chain([&flag]).chain(position).cloned().collect();
        Lambda { params, body }
    };
    let of_runs = |quick: &QuickStep| QuickStep { lift: lift(&quick.lift, &quick.identity), ..quick.clone() };
    let quick = reducer.quick.as_ref().map(of_runs);
    Some(Reducer {
        lift: lift(&reducer.lift, &reducer.identity),
        quick,
        neutral: Vec::new(),
        ..reducer.clone()
    })
}

/// What stands for an element that takes no part, fields that only count aside.
fn absent(reducer: &Reducer, counted: &[Count], preferred: Preferred) -> Option<Absent> {
    // Combining passes over the identity. Where steps are something else, those of positions do, of which the first of equal ones
    // wins: the value of an identity beats none, and runs of them keep theirs. Walks from the end take the last that is found.
    let walks = || reducer.quick.iter().flat_map(|quick| &quick.rewalks);
    let finds_first =
        reducer.ties == Ties::First && reducer.step_needs_ascending && !walks().any(|walk| walk.backwards);
    let is_stepped_over = reducer.step.as_ref().is_none_or(|step| passes_over(step, &reducer.identity))
        && reducer.quick.as_ref().is_none_or(|quick| passes_over(&quick.step, &quick.identity))
        && walks().next().is_none();
    let identity = (finds_first || is_stepped_over).then_some(Absent::Identity);
    let neutral = Some(&reducer.neutral).filter(|n| !n.is_empty() && are_as_none(reducer, n));
    let elements = neutral.cloned().or_else(|| lifted_to_identity(reducer, counted)).map(Absent::Elements);
    match preferred {
        Preferred::Elements => elements.or(identity),
        Preferred::Identity => identity.or(elements),
    }
}

/// Whether a step leaves a state as it is where what it takes is the identity, field by field: it adds zeros, takes the greater of a
/// value and the least one, or does nothing.
fn passes_over(step: &Lambda, identity: &[Expr]) -> bool {
    let n = identity.len();
    identity.iter().enumerate().all(|(at, identity)| {
        let (left, right) = (step.params[at].expr(), step.params[n + at].expr());
        let is_of_both = |a: &Expr, b: &Expr| (*a == left && *b == right) || (*a == right && *b == left);
        let (dtype, body) = (identity.dtype(), &step.body[at]);
        match body.node() {
            Node::Binary(BinaryOp::Add | BinaryOp::BitOr, a, b) => {
                is_of_both(a, b) && *identity == Expr::constant(0, dtype)
            }
            Node::Binary(BinaryOp::Max, a, b) => {
                is_of_both(a, b) && *identity == End::Greatest.identity(dtype)
            }
            Node::Binary(BinaryOp::Min, a, b) => is_of_both(a, b) && *identity == End::Least.identity(dtype),
            _ => *body == left,
        }
    })
}

/// Whether a row of nothing but these gives what a row without elements does, so that the latter is told.
fn are_as_none(reducer: &Reducer, elements: &[Expr]) -> bool {
    let value = |e: &Expr| eval_expr(e, &mut Env::new());
    let results = || -> Result<[Vec<Value>; 2], EvalError> {
        let run = Scalar::new(reducer);
        let element: Vec<Value> = elements.iter().map(value).collect::<Result<_, _>>()?;
        let none = run.identity()?;
        let one = run.step(&none, &run.lift(&element, 0)?)?;
        Ok([run.finish(&none)?, run.finish(&one)?])
    };
    results().is_ok_and(|[none, one]| none.iter().zip(&one).all(|(a, b)| a.same(*b)))
}

/// As [`Product::flagged`], of a reducer that stands alone, or whose parts share their input.
pub(crate) fn of_one(reducer: &Reducer) -> Option<Reducer> {
    [Preferred::Elements, Preferred::Identity].into_iter().find_map(|preferred| flagged(reducer, preferred))
}

impl Product {
    /// The product's reducer with one more input, a bool: whether an element takes part. `None` where nothing is known that may stand, in
    /// some part, for one that does not, or where that keeps parts from sharing fields. Parts are to be of the catalogue.
    pub fn flagged(&self) -> Option<Reducer> {
        let inputs = self.parts.first()?.reducer.input_dtypes();
        if self.parts.iter().any(|part| part.reducer.input_dtypes() != inputs) {
            return None;
        }
        [Preferred::Elements, Preferred::Identity].into_iter().find_map(|preferred| {
            let made =
                self.parts.iter().map(|part| Some((part.name.as_str(), flagged(&part.reducer, preferred)?)));
            let found = product(&made.collect::<Option<Vec<_>>>()?).ok()?;
            let is_alike = found.reducer.fields == self.reducer.fields
                && found.parts.iter().zip(&self.parts).all(|(a, b)| a.fields == b.fields);
            is_alike.then_some(found.reducer)
        })
    }
}

#[cfg(test)]
mod tests {
    use coulis_ir::NanPolicy;

    use super::*;
    use crate::entry::ReducerRequest;
    use crate::laws::Random;
    use crate::{CATALOGUE, Entry};

    /// The ways in which machines ask for a reducer.
    fn requests(entry: &Entry, dtype: DType, nan: NanPolicy) -> Vec<ReducerRequest> {
        let plain = ReducerRequest::new(&vec![dtype; entry.n_inputs]).with_nan(nan).with_length(1000);
        let twice = plain.clone().with_two_walks();
        vec![
            plain.clone().with_narrow_runs(),
            plain.clone().with_elements_left_out(),
            plain.clone().in_any_order(),
            twice.clone().with_positions_in_passing(),
            twice.clone(),
            twice.in_any_order(),
            ReducerRequest { one_by_one: true, long: true, ..plain },
        ]
    }

    /// One of few values, among which are the ends of the type and, of floats, NaN.
    fn few(random: &mut Random, dtype: DType) -> Value {
        let at = random.below(8) as usize;
        match dtype.int_range() {
            // Sums in floats of the ends of others round too much to be compared.
            Some((least, most)) if dtype.bytes() < 8 => {
                Value::Int(dtype.wrap_int([least, most, 0, 1, 2, 3, least, most - 1][at]))
            }
            Some(_) => Value::Int(dtype.wrap_int(at as i128 - 2)),
            None => Value::Float(
                [f64::NEG_INFINITY, f64::INFINITY, 0.0, 1.0, 2.0, -3.0, f64::NEG_INFINITY, f64::NAN][at],
            ),
        }
    }

    /// Results that are the same, or floats that differ by roundings.
    fn agree(a: &[Value], b: &[Value]) -> bool {
        a.iter().zip(b).all(|(a, b)| match (a, b) {
            (Value::Float(x), Value::Float(y)) => a.same(*b) || (x - y).abs() <= 1e-5 * x.abs().max(1.0),
            _ => a == b,
        })
    }

    #[test]
    fn elements_that_take_no_part_change_nothing_wherever_they_stand() {
        let mut random = Random(11);
        let mut n_flagged = 0;
        for entry in CATALOGUE {
            for dtype in DType::ALL {
                for nan in [NanPolicy::Propagate, NanPolicy::Ignore] {
                    for request in requests(entry, dtype, nan) {
                        let reducer = entry.build(&request).unwrap();
                        let preferred = [Preferred::Elements, Preferred::Identity];
                        let preferred = preferred[random.below(2) as usize];
                        let Some(told) = flagged(&reducer, preferred) else { continue };
                        n_flagged += 1;
                        let (plain, run) = (Scalar::new(&reducer), Scalar::new(&told));
                        for _ in 0..12 {
                            let element = |random: &mut Random| -> Vec<Value> {
                                (0..entry.n_inputs).map(|_| few(random, dtype)).collect()
                            };
                            let row: Vec<(Vec<Value>, bool)> = (0..1 + random.below(9))
                                .map(|_| (element(&mut random), random.below(3) > 0))
                                .collect();
                            check(&plain, &run, &row, entry.name, dtype);
                        }
                    }
                }
            }
        }
        assert!(n_flagged > 1500, "{n_flagged}");
    }

    /// Whether a row whose elements are told of gives what those give that take part, by steps and in a run.
    fn check(plain: &Scalar, told: &Scalar, row: &[(Vec<Value>, bool)], name: &str, dtype: DType) {
        let (mut wanted, mut stepped) = (plain.identity().unwrap(), told.identity().unwrap());
        let mut flags = Vec::new();
        for (at, (element, is_there)) in row.iter().enumerate() {
            let takes_part = *is_there && plain.takes_part(element).unwrap();
            if takes_part {
                wanted = plain.step(&wanted, &plain.lift(element, at as i64).unwrap()).unwrap();
            }
            let with_flag = [element.clone(), vec![Value::Int(takes_part.into())]].concat();
            stepped = told.step(&stepped, &told.lift(&with_flag, at as i64).unwrap()).unwrap();
            flags.push(with_flag);
        }
        let elements: Vec<(&[Value], i64)> =
            flags.iter().enumerate().map(|(at, element)| (&element[..], at as i64)).collect();
        let of_run = told.run(&told.identity().unwrap(), &elements).unwrap();
        let wanted = plain.finish(&wanted).unwrap();
        for (how, found) in [("by steps", stepped), ("in a run", of_run)] {
            let found = told.finish(&found).unwrap();
            assert!(agree(&found, &wanted), "{name} of {dtype} {how}: {found:?}, not {wanted:?}, of {row:?}");
        }
    }

    #[test]
    fn what_is_known_of_reducers() {
        let knows = |names: &[&str], request: &ReducerRequest| {
            let parts: Vec<(&str, Reducer)> =
                names.iter().map(|n| (*n, crate::find(n).unwrap().build(request).unwrap())).collect();
            product(&parts).unwrap().flagged()
        };
        let request = ReducerRequest::new(&[DType::F32]).with_length(1 << 20).with_narrow_runs();
        for names in [&["sum"][..], &["mean", "max", "min"], &["logsumexp", "count"], &["argmax", "sum"]] {
            assert!(knows(names, &request).is_some(), "{names:?}");
        }
        // A variance is about one of the elements that take part.
        assert!(knows(&["var"], &request).is_none() && knows(&["sum", "var"], &request).is_none());
        assert!(
            knows(&["var", "sum"], &ReducerRequest { inputs: vec![DType::U8], ..request.clone() }).is_some()
        );
        assert!(knows(&["argmax_last"], &request).is_none());
        // A walk from the end of a run would take what stands for no element.
        assert!(knows(&["argmax"], &request.clone().with_two_walks()).is_none());
    }
}
