//! Reads that are outside their tensor for sure.
//!
//! Each dimension is looked at by itself: an index that leaves its dimension may well stay in the memory, where it reads
//! another element. What is said is only what some point of a stage at the root is certain to do; a read under a
//! condition, and one that is not known to be outside, is left to the machine.

use std::slice::from_ref;

use coulis_ir::hash::FastMap;
use coulis_ir::print::print_expr;
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::{substitute_expr, uses_any};
use coulis_ir::{BinaryOp, Buffer, Expr, Node, Var};
use coulis_tensor::{Body, IterVar};

use crate::error::ScheduleError;
use crate::fold;
use crate::interval::{Interval, bounds};
use crate::schedule::Schedule;
use crate::stage::{Attach, Stage};

/// Most axes of one index of which the corners are tried.
const MOST_AXES: usize = 6;

/// Refuses a program that reads outside a tensor wherever its stages have a point at all.
pub(crate) fn check(schedule: &Schedule) -> Result<(), ScheduleError> {
    schedule.stages.iter().filter(|stage| stage.attach == Attach::Root).try_for_each(|stage| {
        if stage.store_predicate.is_some() {
            return Ok(());
        }
        match &stage.body {
            Body::Plain(values) => check_all(schedule, stage, values, &stage.axes),
            Body::Reduce(r) => {
                check_all(schedule, stage, &r.init, &stage.axes)?;
                let axes: Vec<IterVar> = stage.axes.iter().chain(&r.axes).cloned().collect();
                check_all(schedule, stage, r.condition.as_slice(), &axes)?;
                let sources = if r.condition.is_none() { &r.sources[..] } else { &[] };
                check_all(schedule, stage, sources, &axes)
            }
        }
    })
}

/// Checks what is evaluated at every point of the axes.
fn check_all(
    schedule: &Schedule,
    stage: &Stage,
    exprs: &[Expr],
    axes: &[IterVar],
) -> Result<(), ScheduleError> {
    let vars: Vec<Var> = axes.iter().map(|axis| axis.var().clone()).collect();
    let mut known = schedule.analyzer();
    let mut env: FastMap<Var, Interval> = FastMap::default();
    for axis in axes {
        let Some((min, extent)) = axis.dom() else { return Ok(()) };
        let zero = fold::int(0, extent.dtype());
        let is_box = |e: &Expr| !uses_any(e, &vars) && !e.reads_memory();
        if !is_box(min) || !is_box(extent) || fold::proves(&known, BinaryOp::Le, extent, &zero) {
            return Ok(());
        }
        // Sizes for which there is no point read nothing.
        if extent.as_int().is_none() {
            known = known.with(&fold::compare(BinaryOp::Gt, extent, &zero));
        }
        let last = fold::sub(&fold::add(min, extent), &fold::int(1, extent.dtype()));
        env.insert(axis.var().clone(), (min.clone(), last));
    }
    let mut found = Ok(());
    for expr in exprs {
        for_each_sure_read(expr, &mut |buffer, indices| {
            for (dim, (index, extent)) in indices.iter().zip(&buffer.shape).enumerate() {
                if found.is_ok()
                    && let Some(value) = outside(index, extent, &env, &known)
                {
                    found = Err(refusal(schedule, stage, (buffer, dim), index, value, &env, &known));
                }
            }
        });
    }
    found
}

/// Calls `f` on each read that happens wherever the expression is evaluated.
fn for_each_sure_read(expr: &Expr, f: &mut dyn FnMut(&Buffer, &[Expr])) {
    match expr.node() {
        Node::Select(first, ..)
        | Node::IfThenElse(first, ..)
        | Node::Binary(BinaryOp::And | BinaryOp::Or, first, _) => {
            for_each_sure_read(first, f);
        }
        // What it names is no element of its own.
        Node::Let(..) => {}
        node => {
            if let Node::Load(buffer, indices) = node {
                f(buffer, indices);
            }
            expr.each_child(|child| for_each_sure_read(child, f));
        }
    }
}

/// A value of the index at some corner of the axes, where that is outside for sure.
fn outside(index: &Expr, extent: &Expr, env: &FastMap<Var, Interval>, known: &Analyzer) -> Option<Expr> {
    let mut varying: Vec<&Var> = env.keys().filter(|var| uses_any(index, from_ref(*var))).collect();
    varying.sort_by_key(|var| var.id());
    if varying.len() > MOST_AXES {
        return None;
    }
    let zero = fold::int(0, index.dtype());
    (0..1usize << varying.len()).find_map(|corner| {
        let ends = varying.iter().enumerate().map(|(nth, var)| {
            let (first, last) = &env[*var];
            let end = if corner >> nth & 1 == 0 { first } else { last };
            ((*var).clone(), fold::cast(end, var.dtype()))
        });
        let value = known.simplify(&substitute_expr(index, &ends.collect::<FastMap<Var, Expr>>()));
        let is_outside = fold::proves(known, BinaryOp::Lt, &value, &zero)
            || fold::proves(known, BinaryOp::Ge, &value, extent);
        is_outside.then_some(value)
    })
}

fn refusal(
    schedule: &Schedule,
    stage: &Stage,
    (buffer, dim): (&Buffer, usize),
    index: &Expr,
    value: Expr,
    env: &FastMap<Var, Interval>,
    known: &Analyzer,
) -> ScheduleError {
    let range = bounds(index, env, known).map(|(lo, hi)| (known.simplify(&lo), known.simplify(&hi)));
    let (lo, hi) = range.unwrap_or((value.clone(), value));
    let extent = &buffer.shape[dim];
    let last = known.simplify(&fold::sub(extent, &fold::int(1, extent.dtype())));
    ScheduleError::ReadOutside {
        stage: schedule.stage_name(stage.id),
        tensor: buffer.name.clone(),
        dim,
        index: print_expr(index),
        range: if lo == hi { print_expr(&lo) } else { format!("{} to {}", print_expr(&lo), print_expr(&hi)) },
        last: print_expr(&last),
    }
}
