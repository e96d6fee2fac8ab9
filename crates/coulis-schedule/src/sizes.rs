//! The sizes of a schedule's program, and their names in traces.
//!
//! Two variables may have one name. In a trace a size is named as an axis is: the second `n` is `n_1`, so that the text
//! says which one is meant. Where axes of a stage stand beside sizes, their names are taken before those of sizes.

use coulis_ir::hash::FastMap;
use coulis_ir::visit::{for_each_expr, substitute_expr};
use coulis_ir::{Expr, ThreadTag, Var};
use coulis_tensor::Tensor;

use crate::launch::thread_index;
use crate::names::{identifier, numbered};
use crate::schedule::Schedule;

/// The variables that shapes and extents of the program are made of: of the arguments that it reads and computes, of axes,
/// and then of arguments that nobody reads, so that a program with more of these has the same names for the others. A data
/// axis of which an extent is made is none of them.
pub(crate) fn sizes(schedule: &Schedule) -> Vec<Var> {
    let program = schedule.program();
    let mut found = Vec::new();
    let (used, others): (Vec<&Tensor>, Vec<&Tensor>) =
        program.args().iter().partition(|arg| program.ops().contains(arg.op()));
    used.into_iter().flat_map(|arg| arg.shape()).for_each(|extent| note(extent, &mut found));
    for axis in program.ops().iter().flat_map(|op| op.axes().iter().chain(op.reduce_axes())) {
        if let Some((min, extent)) = axis.dom() {
            note(min, &mut found);
            note(extent, &mut found);
        }
    }
    others.into_iter().flat_map(|arg| arg.shape()).for_each(|extent| note(extent, &mut found));
    found.retain(|var| !program.ops().iter().any(|op| op.axes().iter().any(|axis| axis.var() == var)));
    found
}

/// Adds the variables of the expression that are new.
fn note(expr: &Expr, found: &mut Vec<Var>) {
    for_each_expr(expr, &mut |e| {
        if let Some(var) = e.as_var().filter(|var| !found.contains(*var)) {
            found.push(var.clone());
        }
    });
}

/// Names for the variables, no two of them alike, and none that is taken.
fn named(vars: Vec<Var>, taken: &[String]) -> Vec<(String, Var)> {
    let own: Vec<String> = vars.iter().map(|var| identifier(var.name())).collect();
    numbered(&own, taken).into_iter().zip(vars.iter().cloned()).collect()
}

/// The size of a name in a trace, where those names are taken.
pub(crate) fn size_of_name(schedule: &Schedule, name: &str, taken: &[String]) -> Option<Var> {
    named(sizes(schedule), taken).into_iter().find(|(own, _)| own == name).map(|(_, var)| var)
}

/// The expression as traces show it: with the names that its sizes have there, none of which is taken. One that the
/// program has not got is named like none of the program's.
pub(crate) fn in_trace(schedule: &Schedule, expr: &Expr, taken: &[String]) -> Expr {
    let (mut vars, mut used) = (sizes(schedule), Vec::new());
    note(expr, &mut used);
    let is_axis = |var: &Var| {
        schedule.stages.iter().any(|s| s.all_axes.iter().any(|a| a.var() == var))
            || ThreadTag::ALL.into_iter().any(|tag| thread_index(tag) == *var)
    };
    used.retain(|var| !vars.contains(var) && !is_axis(var));
    vars.extend(used);
    let renamed: FastMap<Var, Expr> = (named(vars, taken).into_iter())
        .filter(|(name, var)| var.name() != name)
        .map(|(name, var)| (var.clone(), var.renamed(&name).expr()))
        .collect();
    if renamed.is_empty() { expr.clone() } else { substitute_expr(expr, &renamed) }
}
