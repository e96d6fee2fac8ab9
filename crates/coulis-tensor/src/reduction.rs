//! Reductions: how the sources are folded over which axes.
//!
//! `sum`, `min`, `max`, `prod`, `all` and `any` keep the type of their source, as tensor expressions do; their
//! identities are true ones (contract N7) and a NaN reaches the result of `min` and `max` (contract N8).
//! [`comm_reducer`] makes a user's reducer, and [`reduce`] folds with one of the catalogue.

use std::sync::Arc;

use coulis_ir::visit::{map_children, uses_any};
use coulis_ir::{
    BinaryOp, Claims, DType, ErrorBound, Expr, Field, Intrinsic, Lambda, NanPolicy, Node, Reducer, Rewalk,
    Ties, Var,
};
use coulis_reducers::{ClaimError, commutes_on_ties, spot_check};

use crate::axis::{IterKind, IterVar};
use crate::error::TensorError;
use crate::operators::limits;

/// How short runs are folded: [`coulis_ir::QuickStep`] with the elements in place.
#[derive(Clone, Debug, PartialEq)]
pub struct QuickFold {
    /// State of a run of no elements.
    pub identity: Vec<Expr>,
    /// What a run folds, one expression a field.
    pub sources: Vec<Expr>,
    /// State of a run after one more source: the fields of the run, then the sources.
    pub step: Lambda,
    /// The state after a run: the fields of the state, then those of the run.
    pub close: Lambda,
    /// Longest run.
    pub max_steps: u32,
    /// Longest run that is made of several chains.
    pub max_joined: u32,
    /// What more walks over the sources of a run add, one after another.
    pub rewalks: Vec<Rewalk>,
    /// Whether a state says that its runs left their range: all of it is then folded again without runs.
    pub spoilt: Option<Lambda>,
}

/// A fold of sources over axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Reduction {
    /// Name of the reducer, for errors.
    pub name: String,
    /// State of two states: the fields of the left one, then those of the right one.
    pub combine: Lambda,
    /// State after one more source, where that is cheaper than `combine`.
    pub step: Option<Lambda>,
    /// Whether `step` is right only if the points of `axes` come in row-major order of the axes as listed.
    pub step_needs_ascending: bool,
    /// The state that changes nothing, one constant a field.
    pub identity: Vec<Expr>,
    /// What is folded, one expression a field.
    pub sources: Vec<Expr>,
    /// Axes that are folded away, outermost first. With none, the result is the sources.
    pub axes: Vec<IterVar>,
    /// Points of the axes that take part; all when absent.
    pub condition: Option<Expr>,
    /// What the fold starts from in place of the identity; empty, or one value a field.
    pub init: Vec<Expr>,
    /// What holds of `combine`.
    pub claims: Claims,
    /// A cheaper fold for short runs, where there is one.
    pub quick: Option<QuickFold>,
    /// Whether nothing more changes a state: see [`Reducer::settled`].
    pub settled: Option<Lambda>,
    /// What may stand in place of the elements at further points of the axes without changing the results,
    /// where what is folded are elements as they are read, of so many arrays: see [`Reducer::neutral`]. Empty
    /// where there is nothing known.
    pub neutral: Vec<Expr>,
}

const CLAIMED: Claims = Claims { associative: true, commutative: true, idempotent: false };

impl Reduction {
    /// The same fold of elements that no longer come in ascending position: without what needs that.
    #[must_use]
    pub fn out_of_order(self) -> Reduction {
        if !self.step_needs_ascending {
            return self;
        }
        Reduction { step: None, quick: None, settled: None, step_needs_ascending: false, ..self }
    }

    /// Number of state fields.
    pub fn arity(&self) -> usize {
        self.identity.len()
    }

    /// Folds only where `condition` holds; it may use data axes, reduce axes and reads. The fold of no point is
    /// the identity.
    pub fn where_(mut self, condition: Expr) -> Result<Reduction, TensorError> {
        if condition.dtype() != DType::Bool || condition.lanes() != 1 {
            return Err(TensorError::ConditionType { reducer: self.name, found: condition.ty() });
        }
        self.condition = Some(match self.condition {
            Some(old) => old.and(condition),
            None => condition,
        });
        Ok(self)
    }

    /// Starts the fold from these values: constants, or elements of tensors indexed by data axes.
    pub fn init(mut self, init: Vec<Expr>) -> Result<Reduction, TensorError> {
        let reducer = self.name.clone();
        if init.len() != self.identity.len() {
            let (wanted, found) = (self.identity.len(), init.len());
            return Err(TensorError::InitCount { reducer, wanted, found });
        }
        for (position, (value, identity)) in init.iter().zip(&self.identity).enumerate() {
            if value.ty() != identity.ty() {
                let (wanted, found) = (identity.dtype(), value.dtype());
                return Err(TensorError::InitType { reducer, position, wanted, found });
            }
            let indices: &[Expr] = match value.node() {
                Node::Int(_) | Node::Float(_) => &[],
                Node::Load(_, indices) => indices,
                _ => return Err(TensorError::InitForm { reducer, position }),
            };
            let is_read = |axis: &&IterVar| {
                indices.iter().any(|index| uses_any(index, std::slice::from_ref(axis.var())))
            };
            if let Some(axis) = self.axes.iter().find(is_read) {
                let axis = axis.name().to_owned();
                return Err(TensorError::InitAxis { reducer, position, axis });
            }
        }
        self.init = init;
        Ok(self)
    }

    /// The state after one more source: `step` where there is one, else `combine`.
    pub fn fold(&self, state: &[Expr], sources: &[Expr]) -> Vec<Expr> {
        let lambda = self.step.as_ref().unwrap_or(&self.combine);
        let args: Vec<Expr> = state.iter().chain(sources).cloned().collect();
        lambda.apply(&args)
    }

    /// The state of two states.
    pub fn merge(&self, left: &[Expr], right: &[Expr]) -> Vec<Expr> {
        let args: Vec<Expr> = left.iter().chain(right).cloned().collect();
        self.combine.apply(&args)
    }

    /// What the fold starts from.
    pub fn start(&self) -> &[Expr] {
        if self.init.is_empty() { &self.identity } else { &self.init }
    }

    /// The first part in which another reduction differs.
    pub(crate) fn first_difference(&self, other: &Reduction) -> Option<&'static str> {
        let parts = [
            ("combiner", self.combine == other.combine && self.identity == other.identity),
            (
                "combiner",
                self.step == other.step
                    && self.init == other.init
                    && self.quick == other.quick
                    && self.settled == other.settled,
            ),
            ("sources", self.sources == other.sources),
            ("axes", self.axes == other.axes),
            ("condition", self.condition == other.condition),
        ];
        parts.into_iter().find(|(_, same)| !same).map(|(what, _)| what)
    }
}

impl Reduction {
    /// The fold by a user-defined reducer, from the parts of its combiner: the variables of the two states,
    /// and the fields of the state that they give. It is taken to be associative and commutative, which is
    /// tried on random values.
    pub fn of_parts(
        name: &str,
        states: (Vec<Var>, Vec<Var>),
        combined: Vec<Expr>,
        identity: Vec<Expr>,
        sources: Vec<Expr>,
        axes: &[IterVar],
    ) -> Result<Reduction, TensorError> {
        let combine = Lambda { params: states.0.into_iter().chain(states.1).collect(), body: combined };
        build(name, combine, None, identity, sources, axes, CLAIMED)?.tried()
    }

    /// The same, unless random values refute what is claimed of the combiner or of its identity (contract
    /// N16); one that only where components are equal tells left from right, as an argmax may, is not
    /// commutative. States are those that the sources give for random elements, so that a source which is a
    /// constant, as the count of one element is, stays that. What the combiner takes from its surroundings is
    /// one number here. A combiner that has a value for no element is shown to keep no law, and claims none.
    fn tried(self) -> Result<Reduction, TensorError> {
        let n = self.arity();
        let left = self.combine.params.get(..n).unwrap_or_default().to_vec();
        if !self.claims.associative || left.len() < n {
            return Ok(self);
        }
        let fields: Vec<Field> =
            left.iter().map(|v| Field { name: v.name().to_owned(), dtype: v.dtype() }).collect();
        let state: Vec<Expr> = left.iter().map(Var::expr).collect();
        let mut read = Vec::new();
        let lifted = self.sources.iter().map(|source| of_elements(source, &mut read)).collect();
        let elements = read.into_iter().map(|(_, var)| var);
        let position = Var::new("position", DType::I64);
        let reducer = Reducer {
            name: self.name.clone(),
            fields: fields.clone(),
            identity: self.identity.iter().map(|e| without_surroundings(e, &[])).collect(),
            lift: Lambda { params: elements.chain([position]).collect(), body: lifted },
            combine: Lambda {
                body: self
                    .combine
                    .body
                    .iter()
                    .map(|e| without_surroundings(e, &self.combine.params))
                    .collect(),
                ..self.combine.clone()
            },
            step: None,
            step_needs_ascending: false,
            quick: None,
            settled: None,
            values: None,
            neutral: Vec::new(),
            results: fields,
            finish: Lambda { params: left, body: state },
            claims: self.claims,
            nan: NanPolicy::Propagate,
            ties: Ties::None,
            error: ErrorBound::Exact,
        };
        if let Err(ClaimError::Refuted(found)) = spot_check(&reducer, SEED) {
            return Err(TensorError::Refuted(found.to_string()));
        }
        let claims = match commutes_on_ties(&reducer, SEED) {
            Ok(commutes) => Claims { commutative: self.claims.commutative && commutes, ..self.claims },
            Err(ClaimError::NoValue { .. } | ClaimError::Refuted(_)) => {
                Claims { associative: false, commutative: false, idempotent: false }
            }
        };
        Ok(Reduction { claims, ..self })
    }
}

/// A source of an element's values: what is read of memory, and each variable, becomes a parameter, the same for the same.
fn of_elements(source: &Expr, read: &mut Vec<(Expr, Var)>) -> Expr {
    if !matches!(source.node(), Node::Load(..) | Node::Var(_)) {
        return map_children(source, &mut |child| of_elements(child, read));
    }
    if let Some((_, var)) = read.iter().find(|(known, _)| known == source) {
        return var.expr();
    }
    let var = Var::new("element", source.dtype());
    read.push((source.clone(), var.clone()));
    var.expr()
}

/// An expression of parameters alone: a number in place of what else is read.
fn without_surroundings(expr: &Expr, params: &[Var]) -> Expr {
    match expr.node() {
        Node::Var(var) if params.contains(var) => expr.clone(),
        Node::Load(..) | Node::Var(_) => Expr::constant(1, expr.dtype()),
        Node::Let(var, ..) => {
            let params = [params, std::slice::from_ref(var)].concat();
            map_children(expr, &mut |child| without_surroundings(child, &params))
        }
        _ => map_children(expr, &mut |child| without_surroundings(child, params)),
    }
}

/// Of the values on which claims are tried.
const SEED: u64 = 16;

/// Makes a checked reduction from its parts.
fn build(
    name: &str,
    combine: Lambda,
    step: Option<Lambda>,
    identity: Vec<Expr>,
    sources: Vec<Expr>,
    axes: &[IterVar],
    claims: Claims,
) -> Result<Reduction, TensorError> {
    let reducer = name.to_owned();
    let (identities, results) = (identity.len(), combine.body.len());
    if identities != results || identities != sources.len() || identities == 0 {
        return Err(TensorError::ReducerArity { reducer, identities, results, sources: sources.len() });
    }
    for (what, exprs) in [("source", &sources), ("result", &combine.body)] {
        for (position, (expr, identity)) in exprs.iter().zip(&identity).enumerate() {
            if expr.ty() != identity.ty() {
                let (wanted, found) = (identity.dtype(), expr.ty());
                return Err(TensorError::ReducerType { reducer, what, position, wanted, found });
            }
        }
    }
    for (position, axis) in axes.iter().enumerate() {
        let axis_name = axis.name().to_owned();
        if axis.kind() != IterKind::Reduce {
            return Err(TensorError::NotReduceAxis { reducer, axis: axis_name });
        }
        if axes[..position].contains(axis) {
            return Err(TensorError::DuplicateAxis { reducer, axis: axis_name });
        }
    }
    let axes = axes.to_vec();
    Ok(Reduction {
        name: reducer,
        combine,
        step,
        step_needs_ascending: false,
        identity,
        sources,
        axes,
        condition: None,
        init: Vec::new(),
        claims,
        quick: None,
        settled: None,
        neutral: Vec::new(),
    })
}

fn lambda2(dtype: DType, combine: impl FnOnce(Expr, Expr) -> Expr) -> Lambda {
    let (x, y) = (Var::new("x", dtype), Var::new("y", dtype));
    let body = vec![combine(x.expr(), y.expr())];
    Lambda { params: vec![x, y], body }
}

fn builtin(
    name: &str,
    source: Expr,
    axes: &[IterVar],
    idempotent: bool,
    identity: Expr,
    combine: impl FnOnce(Expr, Expr) -> Expr,
) -> Result<Reduction, TensorError> {
    let lambda = lambda2(source.dtype(), combine);
    let claims = Claims { idempotent, ..CLAIMED };
    // An element is its own state.
    let is_element = matches!(source.node(), Node::Load(..));
    let neutral = if is_element { vec![identity.clone()] } else { Vec::new() };
    let reduction = build(name, lambda, None, vec![identity], vec![source], axes, claims)?;
    Ok(Reduction { neutral, ..reduction })
}

/// The sum; of bools, whether any is true. Identity 0.
pub fn sum(source: Expr, axes: &[IterVar]) -> Result<Reduction, TensorError> {
    let dtype = source.dtype();
    let identity = Expr::constant(0, dtype);
    if dtype == DType::Bool {
        return builtin("sum", source, axes, true, identity, Expr::or);
    }
    builtin("sum", source, axes, false, identity, |x, y| x + y)
}

/// The product; of bools, whether all are true. Identity 1.
pub fn prod(source: Expr, axes: &[IterVar]) -> Result<Reduction, TensorError> {
    let dtype = source.dtype();
    let identity = Expr::constant(1, dtype);
    if dtype == DType::Bool {
        return builtin("prod", source, axes, true, identity, Expr::and);
    }
    builtin("prod", source, axes, false, identity, |x, y| x * y)
}

/// The smallest element; NaN if there is one. Identity: infinity, or the largest integer of the type.
pub fn min(source: Expr, axes: &[IterVar]) -> Result<Reduction, TensorError> {
    let identity = extreme(source.dtype(), f64::INFINITY, |(_, hi)| hi);
    builtin("min", source, axes, true, identity, |x, y| pick(BinaryOp::Min, x, y))
}

/// The largest element; NaN if there is one. Identity: minus infinity, or the smallest integer of the type.
pub fn max(source: Expr, axes: &[IterVar]) -> Result<Reduction, TensorError> {
    let identity = extreme(source.dtype(), f64::NEG_INFINITY, |(lo, _)| lo);
    builtin("max", source, axes, true, identity, |x, y| pick(BinaryOp::Max, x, y))
}

/// Whether all bools are true. Identity true.
pub fn all(source: Expr, axes: &[IterVar]) -> Result<Reduction, TensorError> {
    only_bool("all", &source)?;
    builtin("all", source, axes, true, Expr::bool(true), Expr::and)
}

/// Whether any bool is true. Identity false.
pub fn any(source: Expr, axes: &[IterVar]) -> Result<Reduction, TensorError> {
    only_bool("any", &source)?;
    builtin("any", source, axes, true, Expr::bool(false), Expr::or)
}

fn only_bool(name: &str, source: &Expr) -> Result<(), TensorError> {
    if source.dtype() == DType::Bool {
        return Ok(());
    }
    Err(TensorError::Unsupported { reducer: name.to_owned(), dtype: source.dtype() })
}

fn extreme(dtype: DType, float: f64, of_range: impl FnOnce((i128, i128)) -> i128) -> Expr {
    match dtype.int_range() {
        Some(range) => Expr::int_of(of_range(range), dtype),
        // Of a type without infinities no element is beyond its ends.
        None if dtype.round_float(float).is_nan() => {
            let (least, greatest) = limits(dtype);
            if float < 0.0 { least } else { greatest }
        }
        None => Expr::float(float, dtype),
    }
}

/// The smaller or larger of two. [`BinaryOp::Min`] and [`BinaryOp::Max`] give the right operand when either is
/// NaN, so only a NaN on the left has to be kept by hand.
pub(crate) fn pick(op: BinaryOp, x: Expr, y: Expr) -> Expr {
    let picked = Expr::binary(op, x.clone(), y);
    if x.dtype().is_float() {
        Expr::select(Expr::call1(Intrinsic::IsNan, x.clone()), x, picked)
    } else {
        picked
    }
}

/// A function of two states.
type Combine = dyn Fn(&[Expr], &[Expr]) -> Vec<Expr> + Send + Sync;
/// The identities of a state of those types.
type Identity = dyn Fn(&[DType]) -> Vec<Expr> + Send + Sync;

/// A reducer given by functions, for any types; made by [`comm_reducer`].
#[derive(Clone)]
pub struct CommReducer {
    name: String,
    combine: Arc<Combine>,
    identity: Arc<Identity>,
    params: (String, String),
    claims: Claims,
}

/// A reducer from a function of two states and the identities of a state of given types. It is taken to be
/// associative and commutative, which is tried on random values; [`CommReducer::claims`] says otherwise.
pub fn comm_reducer(
    combine: impl Fn(&[Expr], &[Expr]) -> Vec<Expr> + Send + Sync + 'static,
    identity: impl Fn(&[DType]) -> Vec<Expr> + Send + Sync + 'static,
    name: &str,
) -> CommReducer {
    let params = ("x".to_owned(), "y".to_owned());
    let (combine, identity) = (Arc::new(combine), Arc::new(identity));
    CommReducer { name: name.to_owned(), combine, identity, params, claims: CLAIMED }
}

impl CommReducer {
    /// Names of the two states in listings; `x` and `y` unless said.
    pub fn params(mut self, left: &str, right: &str) -> CommReducer {
        self.params = (left.to_owned(), right.to_owned());
        self
    }

    /// What holds of the combiner. Factoring needs it associative and commutative.
    pub fn claims(mut self, claims: Claims) -> CommReducer {
        self.claims = claims;
        self
    }

    /// The fold of the sources, one a field, over the axes.
    pub fn reduce(&self, sources: Vec<Expr>, axes: &[IterVar]) -> Result<Reduction, TensorError> {
        let dtypes: Vec<DType> = sources.iter().map(Expr::dtype).collect();
        let identity = (self.identity)(&dtypes);
        if identity.len() != sources.len() {
            return Err(TensorError::ReducerArity {
                reducer: self.name.clone(),
                identities: identity.len(),
                results: sources.len(),
                sources: sources.len(),
            });
        }
        let state = |name: &str| -> Vec<Var> {
            let one = identity.len() == 1;
            let named = |f: usize| if one { name.to_owned() } else { format!("{name}_{f}") };
            identity.iter().enumerate().map(|(f, id)| Var::new(&named(f), id.dtype())).collect()
        };
        let (left, right) = (state(&self.params.0), state(&self.params.1));
        let exprs = |vars: &[Var]| vars.iter().map(Var::expr).collect::<Vec<_>>();
        let body = (self.combine)(&exprs(&left), &exprs(&right));
        let combine = Lambda { params: left.into_iter().chain(right).collect(), body };
        build(&self.name, combine, None, identity, sources, axes, self.claims)?.tried()
    }

    /// The fold of two plain scalars, without axes.
    pub fn fold(&self, left: Expr, right: Expr) -> Vec<Expr> {
        (self.combine)(&[left], &[right])
    }
}

/// The fold of elements by a reducer of the catalogue. The result is the state, one component a field; a compute
/// that applies the reducer's `finish` to it makes the results. The position of an element is row-major over
/// `axes` in the order given.
pub fn reduce(reducer: &Reducer, elements: &[Expr], axes: &[IterVar]) -> Result<Reduction, TensorError> {
    reduce_at(reducer, elements, position_in(axes), axes)
}

/// The position of a point, row-major over the axes as listed.
pub(crate) fn position_in(axes: &[IterVar]) -> Expr {
    let mut position = Expr::int_of(0, DType::I64);
    for axis in axes {
        if let Some((min, extent)) = axis.dom() {
            let offset = axis.expr().cast(DType::I64);
            let offset = if min.is_int(0) { offset } else { offset - min.clone().cast(DType::I64) };
            position =
                if position.is_int(0) { offset } else { position * extent.clone().cast(DType::I64) + offset };
        }
    }
    position
}

/// As [`reduce`], with the position of the element said. Where the reducer's step needs ascending positions, they are
/// to ascend with the axes as listed.
pub fn reduce_at(
    reducer: &Reducer,
    elements: &[Expr],
    position: Expr,
    axes: &[IterVar],
) -> Result<Reduction, TensorError> {
    let args: Vec<Expr> = elements.iter().cloned().chain([position.cast(DType::I64)]).collect();
    if args.len() != reducer.lift.params.len() {
        return Err(TensorError::ReducerArity {
            reducer: reducer.name.clone(),
            identities: reducer.identity.len(),
            results: reducer.combine.body.len(),
            sources: elements.len(),
        });
    }
    for (at, (arg, param)) in args.iter().zip(&reducer.lift.params).enumerate() {
        if arg.dtype() != param.dtype() {
            return Err(TensorError::ReducerType {
                reducer: reducer.name.clone(),
                what: "element",
                position: at,
                wanted: param.dtype(),
                found: arg.ty(),
            });
        }
    }
    let sources = reducer.lift.apply(&args);
    let (combine, step) = (reducer.combine.clone(), reducer.step.clone());
    let identity = reducer.identity.clone();
    let mut reduction = build(&reducer.name, combine, step, identity, sources, axes, reducer.claims)?;
    reduction.step_needs_ascending = reducer.step_needs_ascending;
    reduction.settled = reducer.settled.clone();
    if elements.iter().all(|element| matches!(element.node(), Node::Load(..))) {
        reduction.neutral = reducer.neutral.clone();
    }
    reduction.quick = reducer.quick.as_ref().map(|quick| QuickFold {
        identity: quick.identity.clone(),
        sources: quick.lift.apply(&args),
        step: quick.step.clone(),
        close: quick.close.clone(),
        max_steps: quick.max_steps,
        max_joined: quick.max_joined,
        rewalks: quick.rewalks.clone(),
        spoilt: quick.spoilt.clone(),
    });
    Ok(reduction)
}
