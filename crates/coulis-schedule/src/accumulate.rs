//! Reductions whose state is wider than their result: sums and products of floats below 32 bits.
//!
//! The program declares a narrow result, and contract N5 wants it folded in the accumulator of N4 and
//! converted once, at the store. So the loops from the first reduce axis on fold into memory of their own,
//! one element for each point of the data loops among them, and loops over those store the result. Threads
//! over data axes come before the reduce loops, since each of them has memory of its own. Where that memory
//! would have no size, as its extents depend on the loops inside, the schedule is refused.

use std::sync::Arc;

use coulis_ir::visit::{substitute_expr, uses_any};
use coulis_ir::{Buffer, Expr, MemScope, Stmt, Var};
use coulis_tensor::{Body, IterVar, Reduction};

use crate::error::ScheduleError;
use crate::infer::Loop;
use crate::nest::Builder;
use crate::order::has_hidden_fields;
use crate::ranges;
use crate::schedule::Values;
use crate::stage::Stage;
use crate::stores::{Purpose, likely, nested, store_all};

/// Makes the states of a schedule's reductions as wide as contract N4 has them.
pub(crate) fn widen(stages: &mut [Arc<Stage>]) {
    for stage in stages {
        if let Body::Reduce(reduction) = &stage.body
            && let Some(wide) = reduction.accumulating()
        {
            let stage = Arc::make_mut(stage);
            if is_wide(stage, &wide) {
                threads_first(stage);
            }
            stage.body = Body::Reduce(Box::new(wide));
        }
    }
}

/// Moves loops of threads over data axes alone out of the reduce loops. Threads run beside each other
/// wherever their loop stands.
fn threads_first(stage: &mut Stage) {
    let Some(common) = stage.leaves.iter().position(|l| stage.origin(l).reduce) else { return };
    let is_place = |l: &IterVar| stage.thread_of(l).is_some() && !stage.origin(l).reduce;
    let (places, others): (Vec<IterVar>, Vec<IterVar>) =
        stage.leaves[common..].iter().cloned().partition(is_place);
    stage.leaves.truncate(common);
    stage.leaves.extend(places.into_iter().chain(others));
}

/// The values in the types of the stage's results.
pub(crate) fn stored(stage: &Stage, values: &[Expr]) -> Vec<Expr> {
    let typed = |(value, output): (&Expr, &Buffer)| {
        if value.dtype() == output.dtype { value.clone() } else { value.clone().cast(output.dtype) }
    };
    values.iter().zip(&stage.outputs).map(typed).collect()
}

/// Whether some result is narrower than its state, or a field of that is no result.
pub(crate) fn is_wide(stage: &Stage, r: &Reduction) -> bool {
    has_hidden_fields(stage, r)
        || r.identity.iter().zip(&stage.outputs).any(|(identity, output)| identity.dtype() != output.dtype)
}

/// What a field of the state is called: as its result, or as the stage where it has none.
pub(crate) fn field_name(stage: &Stage, field: usize) -> String {
    stage.outputs.get(field).map_or_else(|| format!("{}.v{field}", stage.name), |output| output.name.clone())
}

impl Builder<'_> {
    /// The reduction from loop `common` on, folded in memory of its own; a typed error where that has no size.
    pub(crate) fn accumulated(
        &self,
        stage: &Stage,
        r: &Reduction,
        common: usize,
    ) -> Result<Stmt, ScheduleError> {
        let at = self.at(stage);
        let inside = &at.loops[common..];
        let homeless = |why: &'static str| {
            let (stage, state) = (self.schedule.stage_name(stage.id), r.identity[0].dtype());
            Err(ScheduleError::NoState { stage, state, why })
        };
        if inside.iter().any(|l| l.thread.is_some() && !l.is_unit()) {
            return homeless("a thread runs over a data axis fused with a reduce axis");
        }
        // A loop over data and reduce axes fused tells no place by itself: then the memory is that of all results.
        let is_mixed = inside.iter().any(|l| stage.origin(&l.leaf).data && stage.origin(&l.leaf).reduce);
        let data: Vec<&Loop> = inside.iter().filter(|l| stage.origin(&l.leaf).data).collect();
        let extents: Vec<Expr> = if is_mixed {
            stage.axes.iter().map(|a| at.domains[a.var()].1.clone()).collect()
        } else {
            data.iter().map(|l| l.extent.clone()).collect()
        };
        let vars: Vec<Var> = inside.iter().map(|l| l.var.clone()).collect();
        let is_constant = extents.iter().all(|e| e.as_int().is_some());
        let is_launched = !self.launches.of(at.root).is_empty();
        if extents.iter().any(|e| uses_any(e, &vars)) {
            return homeless(
                "the extent of a data loop inside the reduce loop depends on another loop there",
            );
        }
        if is_launched && is_mixed {
            return homeless("a loop inside a launch runs over a data axis fused with a reduce axis");
        }
        if is_launched && !is_constant {
            return homeless(
                "a data loop inside the reduce loop has no constant extent, and threads keep states of a fixed size",
            );
        }
        let scope = if is_constant && !is_mixed { MemScope::Local } else { MemScope::Global };
        let one =
            |exprs: Vec<Expr>, alone: i32| if exprs.is_empty() { vec![Expr::int(alone)] } else { exprs };
        let shape = one(extents, 1);
        let place = |offsets: &Values, loops: &[&Loop]| {
            let own = || loops.iter().map(|l| l.value()).collect();
            let all = || stage.axes.iter().map(|a| offsets[a.var()].clone()).collect();
            one(if is_mixed { all() } else { own() }, 0)
        };
        let buffer = |(field, identity): (usize, &Expr)| {
            let name = format!("{}.acc", field_name(stage, field));
            Buffer::new(&name, identity.dtype(), shape.clone(), scope)
        };
        let states: Vec<Buffer> = r.identity.iter().enumerate().map(buffer).collect();
        let names: Vec<String> = states.iter().map(|s| s.name.clone()).collect();
        let load = |index: &[Expr]| -> Vec<Expr> { states.iter().map(|s| s.at(index.to_vec())).collect() };

        let init = self.data_nest(stage, common, "_init", &mut |point, loops| {
            let values: Vec<Expr> = r.start().iter().map(|e| substitute_expr(e, point.absolutes)).collect();
            let guards = self.guards_of(stage, point, Purpose::Data);
            let store =
                store_all(&names, &states, &place(point.offsets, &loops.iter().collect::<Vec<_>>()), &values);
            Ok(nested(likely(guards), store))
        })?;

        let index = place(&at.offsets, &data);
        let sub = |exprs: &[Expr]| -> Vec<Expr> {
            exprs.iter().map(|e| substitute_expr(e, &at.absolutes)).collect()
        };
        let (state, sources) = (load(&index), sub(&r.sources));
        let in_order = !r.step_needs_ascending || ranges::is_ascending(stage, &stage.leaves);
        let folded = sub(&if in_order { r.fold(&state, &sources) } else { r.merge(&state, &sources) });
        let mut update = store_all(&names, &states, &index, &folded);
        if let Some(condition) = &r.condition {
            update = Stmt::if_(substitute_expr(condition, &at.absolutes), update);
        }
        let update = self.loops(stage, common, stage.leaves.len(), self.guarded(stage, update)?)?;

        let folded_away: Vec<Var> =
            inside.iter().filter(|l| stage.origin(&l.leaf).reduce).map(|l| l.var.clone()).collect();
        let store = self.data_nest(stage, common, "_store", &mut |point, loops| {
            let values = stored(stage, &load(&place(point.offsets, &loops.iter().collect::<Vec<_>>())));
            let guards = self.guards_of(stage, point, Purpose::Data);
            let conditions = self.one_of_many(stage).into_iter().chain(likely(guards));
            let conditions = conditions.chain(self.predicate(stage, point, &folded_away)?);
            let store = self.store_results(stage, point.offsets, &values);
            Ok(nested(conditions, store))
        })?;
        let body = Stmt::seq([init, update, store]);
        let allocated = |body| states.iter().rev().fold(body, |body, s| Stmt::allocate(s.clone(), body));
        if is_mixed {
            Ok(allocated(self.loops(stage, 0, common, body)?))
        } else {
            self.loops(stage, 0, common, allocated(body))
        }
    }
}
