//! Folds that pass over what is left once nothing more changes their state.
//!
//! A loop of a fold asks the states that it folds into before each iteration, and does nothing where one of them is
//! settled: a state of its own, or those of lanes and of vectors side by side, of which one does for all, as all are combined
//! into one later. States of other results never do for each other, and where elements are to come in ascending order, neither do
//! states for those whose next elements may be before theirs.

use coulis_ir::visit::substitute_expr;
use coulis_ir::{Lambda, LoopKind, Stmt};
use coulis_tensor::{Body, IterVar};

use crate::accumulate::is_wide;
use crate::asked;
use crate::error::ScheduleError;
use crate::nest::Builder;
use crate::ranges;
use crate::runs;
use crate::stage::{Attach, Stage};

/// The first loop over data in the loop at `at` that has more than partial states of one result whose elements are all before those of
/// the next iteration, or runs them in parallel.
pub(crate) fn of_others(stage: &Stage, at: usize) -> Option<&IterVar> {
    let roots = stage.roots_of(&stage.leaves[at]);
    let is_partial = |leaf: &IterVar| {
        let of_axis = |root: &IterVar| stage.axes.iter().position(|axis| axis == root);
        let counts = |root: &IterVar| {
            let found = of_axis(root).and_then(|dim| stage.factored.iter().find(|f| f.dim == dim));
            found.is_some_and(|f| !is_ordered(stage) || roots.iter().all(|root| f.around.contains(root)))
        };
        stage.roots_of(leaf).iter().all(counts) && stage.kind_of(leaf) != LoopKind::Parallel
    };
    stage.leaves[at + 1..].iter().find(|leaf| stage.origin(leaf).data && !is_partial(leaf))
}

/// Whether only elements behind those of a settled state are known not to change it.
fn is_ordered(stage: &Stage) -> bool {
    matches!(&stage.body, Body::Reduce(reduction) if reduction.step_needs_ascending)
}

/// Whether all elements of each iteration of the loop at `at` are before those of the next ones, where that matters.
pub(crate) fn follows(stage: &Stage, at: usize) -> bool {
    if !is_ordered(stage) {
        return true;
    }
    let around = stage.leaves[..=at].iter().filter(|leaf| stage.origin(leaf).reduce);
    ranges::ascending_order(stage).is_some_and(|order| {
        let mut order = order.iter();
        around.into_iter().all(|leaf| order.next() == Some(leaf))
    })
}

impl Builder<'_> {
    /// Whether a result that the caller keeps is made in loop `nth`, or in one inside: every iteration is needed then.
    fn makes_results(&self, stage: &Stage, nth: usize) -> bool {
        self.schedule.stages.iter().any(|inner| match &inner.attach {
            Attach::At(parent, axis) if *parent == stage.id && stage.leaves[nth..].contains(axis) => {
                inner.is_arg() || self.makes_results(inner, 0)
            }
            Attach::At(..) | Attach::Root | Attach::Inline => false,
        })
    }

    /// The body of loop `nth`, where that asks: passed over where a state is settled. Folds of threads, folds whose state is
    /// wider than where it is kept, those under a store predicate, and those in whose loop results are made that the caller keeps
    /// never ask.
    pub(crate) fn unless_settled(
        &self,
        stage: &Stage,
        nth: usize,
        body: Stmt,
    ) -> Result<Stmt, ScheduleError> {
        let at = self.at(stage);
        let leaf = &at.loops[nth].leaf;
        let asks = stage.attrs.get(leaf.var()).is_some_and(|attr| attr.until_settled);
        let Body::Reduce(r) = &stage.body else { return Ok(body) };
        let Some(settled) = r.settled.as_ref().filter(|_| asks) else { return Ok(body) };
        let origin = stage.origin(leaf);
        let is_fold = origin.reduce && !origin.data && stage.kind_of(leaf) == LoopKind::Serial;
        let is_whole =
            runs::position(stage, r).is_none_or(|run| nth < run) && stage.store_predicate.is_none();
        let is_own =
            of_others(stage, nth).is_none() && follows(stage, nth) && self.launches.of(at.root).is_empty();
        if !is_fold || !is_whole || !is_own || is_wide(stage, r) || self.makes_results(stage, nth) {
            return Ok(body);
        }
        let here = settled.body.iter().map(|e| substitute_expr(e, &at.absolutes)).collect();
        let settled = Lambda { params: settled.params.clone(), body: here };
        let has_many = at.loops[nth..].iter().any(|l| stage.origin(&l.leaf).data && !l.is_unit());
        if !has_many {
            let state = self.results(stage, &at.offsets);
            return Ok(Stmt::if_(settled.apply(&state).remove(0).logical_not(), body));
        }
        let flags = asked::flags_of(&settled);
        match self.any_state(stage, nth, (&settled, flags), "_settled")? {
            Some(asked) => Ok(asked.then(|any| Stmt::if_(any.logical_not(), body))),
            None => Ok(body),
        }
    }
}
