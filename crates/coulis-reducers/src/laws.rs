//! Looks for a counterexample of what a reducer claims, on random values.
//!
//! A user's reducer goes through this when it is registered (contract N16). Values are finite; those of states
//! with several fields are distinct where the lift leaves them so, since which of equal values wins is declared, not tested
//! here: see [`commutes_on_ties`]. Nor is which of an element and an identity wins that are equal in a field, as the least integer
//! and the identity of TVM's argmax are. Integers must agree exactly, floats within a thousand units of the least precise type
//! involved, relative to the largest magnitude involved: reordering a fold moves its rounding, not more. Floats are of moderate
//! magnitude, of up to a million, and, for the laws of the identity, of any finite magnitude; what overflows is no
//! counterexample.

mod draw;
#[cfg(test)]
mod tests;

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
    let (mut tied, mut n_untied) = (None, 0);
    for trial in 0..trials {
        let mut found = check.trial(&mut random, trial).map_err(refused)?;
        let (element, position) = Elements::new(reducer, Draw::Any).next(&mut random);
        let neutral = check.neutral(&element, position).map_err(refused)?;
        n_untied += usize::from(neutral.is_empty());
        tied = tied.or_else(|| neutral.first().map(|(refuted, _)| refuted.clone()));
        found.extend(neutral);
        if let Some((refuted, _)) = found.into_iter().find(|(_, cause)| *cause == Cause::Reducer) {
            return Err(ClaimError::Refuted(Box::new(refuted)));
        }
    }
    // An identity that every element ties with is not known to be one.
    match tied.filter(|_| n_untied == 0) {
        Some(refuted) => Err(ClaimError::Refuted(Box::new(refuted))),
        None => Ok(()),
    }
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
    let is_tie =
        |(refuted, cause): &(Refuted, Cause)| refuted.law == Law::Commutative && *cause == Cause::Tie;
    let no_tie = |found: Vec<(Refuted, Cause)>| !found.iter().any(is_tie);
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
        let in_order = run.reducer().step_needs_ascending;
        for (settled, others) in [(&a, [&a, &c]), (&ab, [&a, &c]), (&c, [&a, &b])] {
            if !run.is_settled(settled)? {
                continue;
            }
            // Where elements are to come in order, those that matter are behind: `c` is behind `a` and `b`.
            let is_behind = |other: &Vec<Value>| !in_order || (other == &c && settled != &c);
            for other in others.into_iter().filter(|other| is_behind(other)) {
                sides.push((
                    Law::Settled,
                    vec![settled, other],
                    run.combine(settled, other)?,
                    settled.clone(),
                ));
                sides.push((
                    Law::Settled,
                    vec![other, settled],
                    run.combine(other, settled)?,
                    settled.clone(),
                ));
                sides.push((Law::Settled, vec![settled, other], run.step(settled, other)?, settled.clone()));
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
                    (Law::IdentityLeft | Law::IdentityRight, [a]) => {
                        cause_of([&run.identity()?, a], [&left, &right])
                    }
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
