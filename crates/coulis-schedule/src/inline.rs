//! Replacing reads of a tensor: by another tensor, or by the expression that computes it.

use coulis_ir::hash::FastMap;
use std::cell::Cell;
use std::sync::Arc;

use coulis_ir::visit::{MOST_WRITTEN, change_children, substitute_expr, written_size};
use coulis_ir::{Buffer, BufferId, Expr, Lambda, Node, Rewalk};
use coulis_tensor::{Body, IterVar, QuickFold};

use crate::error::ScheduleError;
use crate::schedule::{Schedule, Values};
use crate::stage::{Attach, Stage};

/// The expression with each read replaced by `f(buffer, indices)` where that gives something; indices first.
pub(crate) fn replace_reads(expr: &Expr, f: &impl Fn(&Buffer, &[Expr]) -> Option<Expr>) -> Expr {
    other_reads(expr, f).unwrap_or_else(|| expr.clone())
}

/// As [`replace_reads`], nothing where none is replaced.
pub(crate) fn other_reads(expr: &Expr, f: &impl Fn(&Buffer, &[Expr]) -> Option<Expr>) -> Option<Expr> {
    fn go(
        expr: &Expr,
        f: &impl Fn(&Buffer, &[Expr]) -> Option<Expr>,
        memo: &mut FastMap<Expr, Option<Expr>>,
    ) -> Option<Expr> {
        if !expr.reads_memory() {
            return None;
        }
        let is_shared = expr.may_be_shared();
        if is_shared && let Some(done) = memo.get(expr) {
            return done.clone();
        }
        let rebuilt = change_children(expr, &mut |child| go(child, f, memo));
        let new = match rebuilt.as_ref().unwrap_or(expr).node() {
            Node::Load(buffer, indices) => f(buffer, indices).or(rebuilt),
            _ => rebuilt,
        };
        if is_shared {
            memo.insert(expr.clone(), new.clone());
        }
        new
    }
    go(expr, f, &mut FastMap::default())
}

/// The body with each expression in it replaced, the domains of reduce axes included. Reduce axes keep their
/// identity unless their domain changes; `rename` says which did.
pub(crate) fn map_body(body: &Body, f: &impl Fn(&Expr) -> Expr) -> Body {
    let all = |exprs: &[Expr]| exprs.iter().map(f).collect::<Vec<_>>();
    match body {
        Body::Plain(exprs) => Body::Plain(all(exprs)),
        Body::Reduce(r) => {
            let mut r = r.clone();
            r.combine = Lambda { body: all(&r.combine.body), ..r.combine };
            r.step = r.step.map(|step| Lambda { body: all(&step.body), ..step });
            r.sources = all(&r.sources);
            r.quick = r.quick.map(|quick| QuickFold {
                sources: all(&quick.sources),
                step: Lambda { body: all(&quick.step.body), ..quick.step },
                close: Lambda { body: all(&quick.close.body), ..quick.close },
                rewalks: (quick.rewalks.into_iter())
                    .map(|walk| Rewalk {
                        needed: Lambda { body: all(&walk.needed.body), ..walk.needed },
                        start: Lambda { body: all(&walk.start.body), ..walk.start },
                        step: Lambda { body: all(&walk.step.body), ..walk.step },
                        backwards: walk.backwards,
                        gives_up: walk.gives_up.map(|l| Lambda { body: all(&l.body), ..l }),
                    })
                    .collect(),
                ..quick
            });
            r.condition = r.condition.as_ref().map(f);
            r.init = all(&r.init);
            r.axes = r
                .axes
                .iter()
                .map(|axis| match axis.dom() {
                    Some((min, extent)) => IterVar::new(axis.var().clone(), axis.kind(), f(min), f(extent)),
                    None => axis.clone(),
                })
                .collect();
            Body::Reduce(r)
        }
    }
}

/// The stage with the reads in its body replaced. Axes keep their variables, and so stay equal to themselves.
pub(crate) fn replace_in_stage(stage: &mut Stage, f: &impl Fn(&Buffer, &[Expr]) -> Option<Expr>) {
    stage.body = map_body(&stage.body, &|e| replace_reads(e, f));
}

/// A copy of the schedule in which every inlined stage has been put into its consumers and is gone.
pub(crate) fn without_inlined(schedule: &Schedule) -> Result<Schedule, ScheduleError> {
    let mut result = schedule.clone();
    let mut inlined = Vec::new();
    for position in (0..result.stages.len()).rev() {
        if result.stages[position].attach != Attach::Inline {
            continue;
        }
        result.check_holds_none("compute_inline", result.stages[position].id)?;
        inlined.push(schedule.stage_name(result.stages[position].id));
        let stage = result.stages.remove(position);
        let Body::Plain(exprs) = &stage.body else { continue };
        let by_buffer: FastMap<BufferId, &Expr> = stage.outputs.iter().map(|o| o.id).zip(exprs).collect();
        let value = |buffer: &Buffer, indices: &[Expr]| {
            let body = by_buffer.get(&buffer.id)?;
            let args: Values = stage
                .axes
                .iter()
                .zip(indices)
                .map(|(axis, index)| (axis.var().clone(), index.clone().cast(axis.dtype())))
                .collect();
            Some(substitute_expr(body, &args))
        };
        for consumer in result.stages.iter_mut().map(Arc::make_mut) {
            replace_in_stage(consumer, &value);
        }
    }
    inlined.reverse();
    check_sizes(schedule, &result, inlined)?;
    Ok(result)
}

/// Refuses what is too long to be written out. Each stage of a chain that reads the one before it three times is three
/// times as long as that one when it is inlined, so a dozen of them are millions of operations.
fn check_sizes(schedule: &Schedule, result: &Schedule, inlined: Vec<String>) -> Result<(), ScheduleError> {
    for stage in &result.stages {
        let largest = Cell::new(0);
        map_body(&stage.body, &|e| {
            largest.set(largest.get().max(written_size(e)));
            e.clone()
        });
        if largest.get() > MOST_WRITTEN {
            let (stage, found) = (schedule.stage_name(stage.id), largest.get());
            return Err(ScheduleError::TooLong { stage, found, most: MOST_WRITTEN, inlined });
        }
    }
    Ok(())
}
