//! Positions in runs, counted from where a run begins.
//!
//! Where rows are walked as one by threads, the lanes of a thread stand in different rows, so that each of them would count the
//! position of every element for itself, in registers of its own. What differs is the same in all of a run: runs keep
//! the rest, which all lanes share, and the difference is added where they are closed. On vectors, runs keep the number of
//! the step instead, in a type as wide as the values that choose among positions: masks of comparisons then need no
//! other width, and registers hold as many positions as values. Which fields that is legal for, `coulis_ir::position` says.

use coulis_ir::hash::FastMap;
use coulis_ir::position::{RunParts, most_counted};
use coulis_ir::visit::{substitute_expr, uses_any};
use coulis_ir::{DType, Expr, Node, Var};
use coulis_tensor::QuickFold;

use crate::fold;
use crate::infer::{self, Loop};
use crate::nest::Builder;
use crate::stage::Stage;

/// A field of runs that is counted from their begin.
pub(crate) struct FromBegin {
    /// Which one.
    pub(crate) field: usize,
    /// What an element has in place of its position, over the loops.
    pub(crate) source: Expr,
    /// What is to be added, over the loops around the run and the data axes.
    base: Expr,
    /// What one of the source counts for.
    each: Expr,
    /// The type of the field otherwise.
    dtype: DType,
}

impl FromBegin {
    /// The field of a run as it would be otherwise.
    pub(crate) fn restored(&self, run: &Expr) -> Expr {
        let is_none = run.clone().lt(fold::int(0, run.dtype()));
        let wide = run.clone().cast(self.dtype);
        let counted = fold::mul(&wide, &fold::cast(&self.each, self.dtype));
        Expr::select(is_none, wide, counted + fold::cast(&self.base, self.dtype))
    }
}

/// What of a quick step is done before a run is closed.
fn parts(quick: &QuickFold) -> RunParts<'_> {
    let n_state = quick.close.params.len() - quick.identity.len();
    RunParts { identity: &quick.identity, step: &quick.step, rewalks: &quick.rewalks, n_state }
}

/// The number of an iteration of these loops, and how many there are, where that is a constant.
fn numbered(along: &[&Loop], dtype: DType) -> Option<(Expr, i128)> {
    along.iter().try_fold((fold::int(0, dtype), 1), |(nth, n), l| {
        let extent = l.extent.as_int()?;
        let nth = fold::add(&fold::mul(&nth, &fold::int(extent, dtype)), &fold::cast(&l.var.expr(), dtype));
        Some((nth, n * extent))
    })
}

impl Builder<'_> {
    /// The fold with fields of runs that are counted from their begin, and those fields. Of threads: positions of which lanes have
    /// different ones, by what is the same for all elements of a run; on vectors, those that fit the values as numbers of
    /// steps. `along`: the loops of a run over the reduced axes; `lanes`: those over data axes.
    pub(crate) fn counted_from_begin(
        &self,
        stage: &Stage,
        quick: QuickFold,
        along: &[&Loop],
        lanes: &[&Loop],
    ) -> (QuickFold, Vec<FromBegin>) {
        let at = self.at(stage);
        if along.iter().any(|l| stage.origin(&l.leaf).data) {
            return (quick, Vec::new());
        }
        let by_threads = !self.launches.of(at.root).is_empty();
        let vars: Vec<Var> = lanes.iter().map(|l| l.var.clone()).collect();
        let all_at = |place: &dyn Fn(usize) -> i128| -> FastMap<Var, Expr> {
            let each = along.iter().enumerate();
            each.map(|(i, l)| (l.var.clone(), fold::int(place(i), l.var.dtype()))).collect()
        };
        let begin = all_at(&|_| 0);
        let reduced: FastMap<Var, Expr> = (stage.reduce_axes().iter())
            .filter_map(|axis| Some((axis.var().clone(), at.absolutes.get(axis.var())?.clone())))
            .map(|(var, value)| (var, substitute_expr(&value, &begin)))
            .collect();
        let mut known = at.known.clone();
        infer::bind(&mut known, &at.loops);
        let is_natural = |e: &Expr| known.can_prove(&e.clone().ge(fold::int(0, e.dtype())));
        let counted = |quick: &QuickFold, field: usize| {
            let source = &quick.sources[field];
            let position = match source.node() {
                Node::Cast(position) => position,
                _ => source,
            };
            let are_ints = [source, position].iter().all(|e| e.dtype().is_int() && e.lanes() == 1);
            if !are_ints || source.reads_memory() {
                return None;
            }
            let counter = if by_threads { None } else { Some(parts(quick).counter(field)?) };
            if by_threads && !parts(quick).is_position(field) {
                return None;
            }
            let here = substitute_expr(position, &at.absolutes);
            let first = substitute_expr(&here, &begin);
            let since = known.simplify(&(here - first.clone()));
            let base = substitute_expr(position, &reduced);
            let (field_dtype, one) = (source.dtype(), fold::int(1, position.dtype()));
            let from = |source: Expr, each: Expr| FromBegin { field, source, base, each, dtype: field_dtype };
            let Some(counter) = counter else {
                let is_shared = uses_any(&first, &vars) && !uses_any(&since, &vars);
                return (is_shared && is_natural(&since) && is_natural(&first))
                    .then(|| from(fold::cast(&since, field_dtype), one));
            };
            // Steps follow each other at one distance.
            let (nth, n_steps) = numbered(along, position.dtype())?;
            let last = along.iter().rposition(|l| !l.is_unit())?;
            let second = all_at(&|i| i128::from(i == last));
            let each = known.simplify(&substitute_expr(&since, &second));
            let rest = known.simplify(&(since - each.clone() * nth.clone()));
            let is_even = rest.is_int(0) && is_natural(&each) && !uses_any(&each, &vars);
            (is_even && is_natural(&first) && n_steps <= most_counted(counter).into())
                .then(|| from(fold::cast(&nth, counter), each))
        };
        let mut quick = quick;
        let mut all = Vec::new();
        for field in 0..quick.identity.len() {
            let Some(from) = counted(&quick, field) else { continue };
            let dtype = from.source.dtype();
            if dtype != quick.identity[field].dtype() {
                let Some((identity, step, rewalks)) = parts(&quick).retyped(field, dtype) else { continue };
                quick.identity[field] = identity;
                (quick.step, quick.rewalks) = (step, rewalks);
            }
            all.push(from);
        }
        (quick, all)
    }
}
