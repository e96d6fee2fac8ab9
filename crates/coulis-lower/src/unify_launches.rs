//! Launches become outermost in their region, with one variable for each hardware index.
//!
//! A region is what stands between the function (its global memory, names and sequences of stages) and the innermost
//! statements of a device kernel: a chain of launches, or a loop around launches. Launches of one index inside it are
//! one launch: every thread executes the whole region, and what stood beside a launch is executed by all its threads.
//! Extents of one index must be equal and must not depend on what the region binds. Virtual threads stay where they
//! are. Order: after `dispatch_tiles`, which looks at launches where they stand; before `expand_vthreads`.
//!
//! Source: seed 003's lowering (a thread opened twice on a path is one thread); `coulis_ir::device` for the shape.

use coulis_ir::hash::FastMap;

use coulis_ir::device::has_launches;
use coulis_ir::expr::{Expr, Var};
use coulis_ir::print::print_expr;
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::for_each_stmt;
use coulis_ir::{Form, Kernel, MemScope, Stmt, ThreadTag};

use crate::affine::uses;
use crate::binders::substituted;
use crate::pass::{LowerError, Options, Pass};
use crate::walk::{map_children, try_map_children};

/// The pass.
pub const PASS: Pass = Pass {
    name: "unify_launches",
    from: Form::Nest,
    to: Form::Nest,
    run: unify_launches,
    doc: "moves launches outermost in their region, one variable for each hardware index",
};

/// Moves launches outermost in their regions.
pub fn unify_launches(kernel: Kernel, _: &Options) -> Result<Kernel, LowerError> {
    let body = host(kernel.body)?;
    Ok(Kernel { body, ..kernel })
}

/// A statement that the host executes.
fn host(stmt: Stmt) -> Result<Stmt, LowerError> {
    if !has_launches(&stmt) {
        return Ok(stmt);
    }
    match stmt {
        Stmt::Seq(_) | Stmt::Let { .. } => try_map_children(stmt, &mut host),
        // A remark on a loop stays at the loop.
        Stmt::Annotate { ref body, .. } if !matches!(**body, Stmt::For { .. }) => {
            try_map_children(stmt, &mut host)
        }
        Stmt::Allocate { ref buffer, .. } if buffer.scope == MemScope::Global => {
            try_map_children(stmt, &mut host)
        }
        region => unified(region),
    }
}

/// A hardware index of a region.
struct Index {
    tag: ThreadTag,
    var: Var,
    extent: Expr,
}

fn unified(region: Stmt) -> Result<Stmt, LowerError> {
    let mut indices: Vec<Index> = Vec::new();
    let mut bound: Vec<Var> = Vec::new();
    let mut renamed: FastMap<Var, Expr> = FastMap::default();
    let mut error = None;
    for_each_stmt(&region, &mut |stmt| match stmt {
        Stmt::LaunchThread { tag, var, extent, .. } if *tag != ThreadTag::VThread => {
            if let Err(found) = note(*tag, var, extent, &mut indices, &mut renamed) {
                error.get_or_insert(found);
            }
        }
        other => bound.extend_from_slice(other.bound_vars()),
    });
    if let Some(error) = error {
        return Err(error);
    }
    for index in &indices {
        if let Some(var) = bound.iter().find(|var| uses(&index.extent, var)) {
            return Err(LowerError::LaunchVaries {
                tag: index.tag.name(),
                extent: print_expr(&index.extent),
                var: var.name().to_owned(),
            });
        }
    }
    let body = substituted(stripped(region), &renamed);
    Ok(indices.into_iter().rev().fold(body, |body, Index { tag, var, extent }| Stmt::LaunchThread {
        tag,
        var,
        extent,
        body: Box::new(body),
    }))
}

/// Adds a launch to the indices of its region.
fn note(
    tag: ThreadTag,
    var: &Var,
    extent: &Expr,
    indices: &mut Vec<Index>,
    renamed: &mut FastMap<Var, Expr>,
) -> Result<(), LowerError> {
    let Some(index) = indices.iter().find(|index| index.tag == tag) else {
        indices.push(Index { tag, var: var.clone(), extent: extent.clone() });
        return Ok(());
    };
    let (first, second) = Expr::promoted(index.extent.clone(), extent.clone());
    if first != second && !Analyzer::new().can_prove(&first.equal(second)) {
        return Err(LowerError::LaunchExtents {
            tag: tag.name(),
            first: print_expr(&index.extent),
            second: print_expr(extent),
        });
    }
    if index.var != *var {
        renamed.insert(var.clone(), index.var.expr().cast(var.dtype()));
    }
    Ok(())
}

/// The statement without launches of hardware indices.
fn stripped(stmt: Stmt) -> Stmt {
    match stmt {
        Stmt::LaunchThread { tag, body, .. } if tag != ThreadTag::VThread => stripped(*body),
        other => map_children(other, &mut stripped),
    }
}
