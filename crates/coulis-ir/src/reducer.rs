//! Reducers as data: what a fold is, without a word on how it runs.
//!
//! A reducer has state fields; each field has an identity, a lift from the elements, and a combine of two states.
//! `finish` turns a state into results. A product of reducers is a reducer whose fields are the union of the
//! parts' fields, equal ones kept once. Source: contract N16, seeds 003 and 004.

use crate::dtype::DType;
use crate::expr::{Expr, Var};

/// One component of a state.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Name, unique in the reducer: `sum`, `count`, `index`.
    pub name: String,
    /// Type in which it is kept.
    pub dtype: DType,
}

/// Expressions of parameters: one result an expression.
#[derive(Clone, Debug)]
pub struct Lambda {
    /// Parameters.
    pub params: Vec<Var>,
    /// Results.
    pub body: Vec<Expr>,
}

/// How a reducer treats NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NanPolicy {
    /// A NaN element makes the result NaN (or is found by a position reducer).
    Propagate,
    /// NaN elements count as absent.
    Ignore,
}

/// Which position wins among equal values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// The result has no position.
    None,
    /// The smallest index.
    First,
    /// The largest index.
    Last,
}

/// What a reducer claims of its combine. Claims of a user's reducer are spot-checked (contract N16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claims {
    /// `(a . b) . c == a . (b . c)`, up to rounding for floats.
    pub associative: bool,
    /// `a . b == b . a`, up to rounding for floats.
    pub commutative: bool,
    /// `a . a == a`: folding an element twice does no harm.
    pub idempotent: bool,
}

/// How far a result may be from the exact one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ErrorBound {
    /// No rounding at all: integers (modulo their width), extrema, positions, bools.
    Exact,
    /// `|computed - exact| <= factor * eps * sum|terms|` plus the rounding of the output (contract N12); `eps` is
    /// that of `float32` unless the accumulator is `float64`.
    Terms {
        /// The factor, at most 32 by contract.
        factor: f64,
    },
    /// `|computed - exact| <= factor * eps * max(1, |exact|)` plus the rounding of the output.
    Relative {
        /// The factor.
        factor: f64,
    },
}

/// A fold of elements into results. All lambdas are over scalars; vectors apply them lane by lane.
#[derive(Clone, Debug)]
pub struct Reducer {
    /// Name, as in the catalogue or as the user gave it.
    pub name: String,
    /// State.
    pub fields: Vec<Field>,
    /// The state that changes nothing, one constant a field.
    pub identity: Vec<Expr>,
    /// State of one element. Parameters: the elements of the inputs, then the position (`int64`, row-major over
    /// the reduced axes taken ascending).
    pub lift: Lambda,
    /// State of two states. Parameters: the fields of the left state, then those of the right.
    pub combine: Lambda,
    /// State after one more element; equals `combine(state, lift(element, position))` within the error bound, and
    /// is cheaper. Parameters: the fields of the state, then those of `lift`. `None` where combine is as cheap.
    pub step: Option<Lambda>,
    /// Results of a state. Parameters: the fields.
    pub finish: Lambda,
    /// What holds of `combine`.
    pub claims: Claims,
    /// NaN policy that the lambdas implement.
    pub nan: NanPolicy,
    /// Which of equal values wins.
    pub ties: Ties,
    /// Bound of the results' error.
    pub error: ErrorBound,
}

impl Lambda {
    /// The results with `args` in place of the parameters. Scalars beside vectors are broadcast.
    pub fn apply(&self, args: &[Expr]) -> Vec<Expr> {
        assert_eq!(self.params.len(), args.len(), "a lambda of {} parameters", self.params.len());
        let map = self.params.iter().cloned().zip(args.iter().cloned()).collect();
        self.body.iter().map(|e| crate::visit::substitute_expr(e, &map)).collect()
    }
}

impl PartialEq for Lambda {
    /// Equal up to the names and identities of parameters.
    fn eq(&self, other: &Lambda) -> bool {
        let types = |l: &Lambda| l.params.iter().map(Var::dtype).collect::<Vec<_>>();
        let args: Vec<Expr> = self.params.iter().map(Var::expr).collect();
        types(self) == types(other) && self.body == other.apply(&args)
    }
}

impl PartialEq for Reducer {
    /// Equal in meaning-bearing parts: everything but the documentation-only `error`.
    fn eq(&self, other: &Reducer) -> bool {
        self.name == other.name
            && self.fields == other.fields
            && self.identity == other.identity
            && self.lift == other.lift
            && self.combine == other.combine
            && self.step == other.step
            && self.finish == other.finish
            && self.claims == other.claims
            && self.nan == other.nan
            && self.ties == other.ties
    }
}

impl Reducer {
    /// Number of state fields.
    pub fn arity(&self) -> usize {
        self.fields.len()
    }

    /// The state after one more lifted element: `step` where there is one, else `combine`.
    pub fn fold(&self, state: &[Expr], lifted: &[Expr]) -> Vec<Expr> {
        let lambda = self.step.as_ref().unwrap_or(&self.combine);
        let args: Vec<Expr> = state.iter().chain(lifted).cloned().collect();
        lambda.apply(&args)
    }

    /// The state of two states.
    pub fn merge(&self, left: &[Expr], right: &[Expr]) -> Vec<Expr> {
        let args: Vec<Expr> = left.iter().chain(right).cloned().collect();
        self.combine.apply(&args)
    }
}
