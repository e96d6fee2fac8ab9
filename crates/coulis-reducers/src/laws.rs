//! Looks for a counterexample of what a reducer claims, on random values.
//!
//! A user's reducer goes through this when it is registered (contract N16). Values are finite; those of states
//! with several fields are distinct where the lift leaves them so, since which of equal values wins is declared, not tested
//! here: see [`commutes_on_ties`]. Integers must
//! agree exactly, floats within a thousand units of the least precise type involved, relative to the largest
//! magnitude involved: reordering a fold moves its rounding, not more. Floats are of moderate magnitude, of up to a
//! million, and, for the laws of the identity, of any finite magnitude; what overflows is no counterexample.

mod draw;

use std::fmt;

use coulis_ir::eval::{EvalError, Value};
use coulis_ir::{DType, Reducer};

pub(crate) use self::draw::Random;
use self::draw::{Draw, Elements};
use crate::scalar::{Scalar, State};

/// Something that a reducer claims, or that every reducer must obey.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Law {
    /// Combining with the identity on the left changes nothing.
    IdentityLeft,
    /// Combining with the identity on the right changes nothing.
    IdentityRight,
    /// `(a . b) . c` is `a . (b . c)`.
    Associative,
    /// `a . b` is `b . a`.
    Commutative,
    /// `a . a` is `a`.
    Idempotent,
    /// A step is the combine with the lifted element.
    Step,
    /// So is a short run of one element, closed.
    Quick,
    /// A settled state stays as it is, whatever it is combined with and steps to.
    Settled,
}

impl fmt::Display for Law {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Law::IdentityLeft => "combine(identity, a) equals a",
            Law::IdentityRight => "combine(a, identity) equals a",
            Law::Associative => "combine is associative",
            Law::Commutative => "combine is commutative",
            Law::Idempotent => "combine is idempotent",
            Law::Step => "step equals combine with the lifted element",
            Law::Quick => "a closed run of one element equals combine with the lifted element",
            Law::Settled => "nothing changes a settled state",
        })
    }
}

/// A counterexample.
#[derive(Clone, Debug, PartialEq)]
pub struct Refuted {
    /// Name of the reducer.
    pub reducer: String,
    /// The law that does not hold.
    pub law: Law,
    /// The states for which it does not: `a`, then `b`, then `c`.
    pub values: Vec<State>,
    /// Results of the left side.
    pub left: Vec<Value>,
    /// Results of the right side.
    pub right: Vec<Value>,
}

impl fmt::Display for Refuted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` is refuted: \"{}\" fails for ", self.reducer, self.law)?;
        for (name, state) in ["a", "b", "c"].iter().zip(&self.values) {
            write!(f, "{name} = {}, ", Tuple(state))?;
        }
        write!(f, "which gives {} and {}", Tuple(&self.left), Tuple(&self.right))
    }
}

struct Tuple<'a>(&'a [Value]);

impl fmt::Display for Tuple<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text: Vec<String> = (self.0.iter())
            .map(|v| match v {
                Value::Int(v) => v.to_string(),
                Value::Float(v) => v.to_string(),
            })
            .collect();
        if text.len() == 1 { f.write_str(&text[0]) } else { write!(f, "({})", text.join(", ")) }
    }
}

/// Why a reducer was not found to keep its claims.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ClaimError {
    /// A claim does not hold.
    #[error("{0}")]
    Refuted(Box<Refuted>),
    /// The lambdas have no value on some input, or use variables of their surroundings.
    #[error("`{reducer}` cannot be checked: {error}")]
    NoValue {
        /// Name of the reducer.
        reducer: String,
        /// What stopped the evaluation.
        error: EvalError,
    },
}

/// Number of triples of states that are tried.
const TRIALS: usize = 48;
/// Allowed difference of floats, in units of the last place of the largest magnitude involved.
const UNITS: f64 = 1000.0;

/// Looks for a counterexample of the reducer's claims and of the laws of identity and step. The same seed tries
/// the same values.
pub fn spot_check(reducer: &Reducer, seed: u64) -> Result<(), ClaimError> {
    spot_check_trials(reducer, seed, TRIALS)
}

fn spot_check_trials(reducer: &Reducer, seed: u64, trials: usize) -> Result<(), ClaimError> {
    let refused = |error| ClaimError::NoValue { reducer: reducer.name.clone(), error };
    let check = Check { run: Scalar::new(reducer), eps: least_precise(reducer) };
    let mut random = Random(seed);
    for trial in 0..trials {
        let mut found = check.trial(&mut random, trial).map_err(refused)?.into_iter();
        if let Some((refuted, _)) = found.find(|(_, cause)| *cause == Cause::Reducer) {
            return Err(ClaimError::Refuted(Box::new(refuted)));
        }
        let (element, position) = Elements::new(reducer, Draw::Any).next(&mut random);
        let found = check.neutral(&element, position).map_err(refused)?;
        if let Some((refuted, _)) = found.into_iter().next() {
            return Err(ClaimError::Refuted(Box::new(refuted)));
        }
    }
    Ok(())
}

/// Whether `a . b` is `b . a` for elements of which components are equal, as far as small integers tell, and the values on
/// which [`spot_check`] of that seed passes them over. Elements that have no value tell nothing; where none has one, that is
/// the error. The same seed tries the same values.
pub fn commutes_on_ties(reducer: &Reducer, seed: u64) -> Result<bool, ClaimError> {
    let check = Check { run: Scalar::new(reducer), eps: least_precise(reducer) };
    let told = |answers: Vec<Result<bool, EvalError>>| {
        let (known, unknown): (Vec<_>, Vec<_>) = answers.into_iter().partition(Result::is_ok);
        match unknown.into_iter().find_map(Result::err) {
            Some(error) if known.is_empty() => {
                Err(ClaimError::NoValue { reducer: reducer.name.clone(), error })
            }
            _ => Ok(known.into_iter().flatten().all(|commutes| commutes)),
        }
    };
    let mut random = Random(seed);
    let on_few = told((0..TRIALS).map(|_| check.ties(&mut random)).collect())?;
    let mut random = Random(seed);
    let no_tie = |found: Vec<(Refuted, Cause)>| found.iter().all(|(_, cause)| *cause != Cause::Tie);
    let on_any = told((0..TRIALS).map(|trial| check.trial(&mut random, trial).map(no_tie)).collect())?;
    Ok(on_few && on_any)
}

/// Why two sides of a law differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cause {
    /// The reducer does not keep the law.
    Reducer,
    /// Two states are equal in a component that stays so, and which of them the others are taken from hangs on the order.
    Tie,
}

/// A law, the states that it is tried on, and the states of its two sides.
type Sides<'s> = (Law, Vec<&'s State>, State, State);

struct Check<'r> {
    run: Scalar<'r>,
    eps: f64,
}

impl Check<'_> {
    /// Whether two elements of small integers commute.
    fn ties(&self, random: &mut Random) -> Result<bool, EvalError> {
        let run = &self.run;
        let mut state = |position| {
            let dtypes = run.reducer().input_dtypes().into_iter();
            let element: Vec<Value> = dtypes.map(|dtype| random.few(dtype)).collect();
            run.lift(&element, position)
        };
        let (a, b) = (state(0)?, state(1)?);
        let (l, r) = (run.finish(&run.combine(&a, &b)?)?, run.finish(&run.combine(&b, &a)?)?);
        Ok(self.agree(&l, &r, a.iter().chain(&b).chain(&l).chain(&r)))
    }

    /// One round of all laws; gives the counterexamples.
    fn trial(&self, random: &mut Random, trial: usize) -> Result<Vec<(Refuted, Cause)>, EvalError> {
        let (run, claims) = (&self.run, self.run.reducer().claims);
        let identity = run.identity()?;
        let draw = match trial % 4 {
            0 => Draw::Moderate,
            2 => Draw::Large,
            _ if run.reducer().arity() == 1 => Draw::Special,
            _ => Draw::Moderate,
        };
        let mut elements = Elements::new(run.reducer(), draw);
        let mut state = |random: &mut Random| -> Result<State, EvalError> {
            let mut state = elements.lift(run, random)?;
            for _ in 0..random.below(3) {
                state = run.combine(&state, &elements.lift(run, random)?)?;
            }
            Ok(state)
        };
        let (a, b) = (state(random)?, state(random)?);
        let last = elements.next(random);
        let c = run.lift(&last.0, last.1)?;
        let ab = run.combine(&a, &b)?;
        let a = if trial == 0 { identity.clone() } else { a };
        let mut sides = vec![
            (Law::IdentityLeft, vec![&a], run.combine(&identity, &a)?, a.clone()),
            (Law::IdentityRight, vec![&a], run.combine(&a, &identity)?, a.clone()),
        ];
        if trial > 0 && claims.associative {
            let left = run.combine(&ab, &c)?;
            sides.push((Law::Associative, vec![&a, &b, &c], left, run.combine(&a, &run.combine(&b, &c)?)?));
        }
        if trial > 0 && claims.commutative {
            sides.push((Law::Commutative, vec![&a, &b], ab.clone(), run.combine(&b, &a)?));
        }
        if claims.idempotent {
            sides.push((Law::Idempotent, vec![&a], run.combine(&a, &a)?, a.clone()));
        }
        let combined = run.combine(&a, &c)?;
        sides.push((Law::Step, vec![&a, &c], run.step(&a, &c)?, combined.clone()));
        if run.reducer().quick.is_some() {
            sides.push((Law::Quick, vec![&a, &c], run.run(&a, &[(&last.0, last.1)])?, combined));
        }
        for settled in [&a, &ab, &c] {
            if run.is_settled(settled)? {
                sides.push((Law::Settled, vec![settled, &a], run.combine(settled, &a)?, settled.clone()));
                sides.push((Law::Settled, vec![&a, settled], run.combine(&a, settled)?, settled.clone()));
                sides.push((Law::Settled, vec![settled, &c], run.step(settled, &c)?, settled.clone()));
            }
        }
        self.refutations(sides, draw)
    }

    /// The laws of the identity for an element.
    fn neutral(&self, element: &[Value], position: i64) -> Result<Vec<(Refuted, Cause)>, EvalError> {
        let run = &self.run;
        let (identity, a) = (run.identity()?, run.lift(element, position)?);
        let sides = vec![
            (Law::IdentityLeft, vec![&a], run.combine(&identity, &a)?, a.clone()),
            (Law::IdentityRight, vec![&a], run.combine(&a, &identity)?, a.clone()),
        ];
        self.refutations(sides, Draw::Any)
    }

    /// The laws whose two sides have results that differ. Of large values results that are not finite tell nothing.
    fn refutations(&self, sides: Vec<Sides>, draw: Draw) -> Result<Vec<(Refuted, Cause)>, EvalError> {
        let run = &self.run;
        let mut found = Vec::new();
        for (law, values, left, right) in sides {
            // What is settled is the state, which may be that of a part.
            let (l, r) = match law {
                Law::Settled => (left.clone(), right.clone()),
                Law::IdentityLeft
                | Law::IdentityRight
                | Law::Associative
                | Law::Commutative
                | Law::Idempotent
                | Law::Step
                | Law::Quick => (run.finish(&left)?, run.finish(&right)?),
            };
            let overflows = |v: &Value| matches!(v, Value::Float(v) if !v.is_finite());
            if draw.may_overflow() && left.iter().chain(&right).chain(&l).chain(&r).any(overflows) {
                continue;
            }
            let involved = values.iter().copied().chain([&left, &right, &l, &r]);
            if !self.agree(&l, &r, involved.flatten()) {
                let cause = match (law, &values[..]) {
                    (Law::Commutative, [a, b]) => cause_of([a, b], [&left, &right]),
                    _ => Cause::Reducer,
                };
                let values = values.into_iter().cloned().collect();
                let reducer = run.reducer().name.clone();
                found.push((Refuted { reducer, law, values, left: l, right: r }, cause));
            }
        }
        Ok(found)
    }

    fn agree<'v>(&self, l: &[Value], r: &[Value], involved: impl Iterator<Item = &'v Value>) -> bool {
        let magnitudes = involved.filter_map(|v| match v {
            Value::Float(v) if v.is_finite() => Some(v.abs()),
            _ => None,
        });
        let tolerance = UNITS * self.eps * magnitudes.fold(0.0, f64::max);
        l.iter().zip(r).all(|(l, r)| match (l, r) {
            (Value::Float(x), Value::Float(y)) => l.same(*r) || (x - y).abs() <= tolerance,
            _ => l == r,
        })
    }
}

/// Why two states give other results the other way around.
fn cause_of([a, b]: [&State; 2], [left, right]: [&State; 2]) -> Cause {
    let components = || a.iter().zip(b).zip(left.iter().zip(right));
    let ties = components().any(|((a, b), (l, r))| a == b && l == a && r == a);
    let selects = components().all(|((a, b), (l, r))| l == r || [l, r].iter().all(|v| *v == a || *v == b));
    if ties && selects { Cause::Tie } else { Cause::Reducer }
}

/// The largest epsilon among the types of inputs and fields.
fn least_precise(reducer: &Reducer) -> f64 {
    let eps = |dtype: DType| match dtype {
        DType::F64 => f64::EPSILON,
        DType::F32 => f64::from(f32::EPSILON),
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        DType::F8E4M3 => 2f64.powi(-3),
        DType::F8E5M2 => 2f64.powi(-2),
        DType::Bool
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64 => 0.0,
    };
    // Lambdas may compute in a narrower type than any field; the inputs' bounds that.
    let types = reducer.fields.iter().map(|f| f.dtype).chain(reducer.input_dtypes());
    types.map(eps).fold(f64::EPSILON, f64::max)
}

#[cfg(test)]
mod tests {
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

    #[test]
    fn nothing_changes_a_settled_state() {
        let known = ["any", "all", "max", "min", "absmax"];
        let mut random = Random(5);
        for parts in [&["any"][..], &["all"], &["max"], &["min"], &["absmax"], &["any", "all", "max"]] {
            for dtype in DType::ALL {
                let request = ReducerRequest::new(&[dtype]);
                let made: Vec<(&str, Reducer)> =
                    parts.iter().map(|op| (*op, crate::find(op).unwrap().build(&request).unwrap())).collect();
                let reducer = crate::product(&made).unwrap().reducer;
                let is_narrow = matches!(dtype, DType::Bool | DType::I8 | DType::U8);
                let settles = is_narrow || parts.iter().all(|op| ["any", "all"].contains(op));
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
            for dtype in DType::ALL {
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
        for value in [DType::U8, DType::I32] {
            let (least, _) = value.int_range().unwrap();
            assert_eq!(spot_check(&argmax_of([DType::I32, value], [-1, least]), 1), Ok(()));
        }
        let found = spot_check(&argmax_of([DType::I32, DType::I32], [-1, 0]), 1).unwrap_err().to_string();
        assert!(found.contains("which gives (-1, 0) and "), "{found}");
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
}
