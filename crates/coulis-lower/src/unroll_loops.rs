//! Loops marked `unrolled` become their bodies, one copy an iteration, with constant indices.
//!
//! `pragma_auto_unroll_max_step` on an axis also expands serial loops of constant length under it, innermost first,
//! while a loop's copies hold at most that many statements and at most eight loops nest, but not a loop that is to stay one
//! ([`ROLLED`]). Source: seed 003's
//! lowering; `pragma_unroll_explicit` is read and has no effect, since text is always expanded.

use coulis_ir::hash::FastMap;

use coulis_ir::remark::{AUTO_UNROLL_MAX_STEP, ROLLED, UNROLL_EXPLICIT, is_pragma};
use coulis_ir::visit::for_each_stmt;
use coulis_ir::{Attr, Expr, Form, Kernel, LoopKind, Stmt};

use crate::affine::sum;
use crate::binders::copy_with;
use crate::pass::{LowerError, Options, Pass};
use crate::walk::try_map_children;

/// The pass.
pub const PASS: Pass = Pass {
    name: "unroll_loops",
    from: Form::Flat,
    to: Form::Flat,
    run: unroll_loops,
    doc: "writes out unrolled loops, and short constant loops under an auto_unroll_max_step pragma",
};

/// Most statements that one unrolled loop may become.
pub const MAX_STATEMENTS: i128 = 1 << 16;

const MAX_DEPTH: u32 = 8;

/// Writes out unrolled loops.
pub fn unroll_loops(kernel: Kernel, _: &Options) -> Result<Kernel, LowerError> {
    let body = walk(kernel.body, None)?.0;
    Ok(Kernel { body, ..kernel })
}

/// The statement and the depth of loops that were unrolled automatically in it.
fn walk(stmt: Stmt, max_step: Option<i128>) -> Result<(Stmt, u32), LowerError> {
    match stmt {
        Stmt::For { var, min, extent, kind, body } => {
            let (body, depth) = walk(*body, max_step)?;
            let steps = count_stores(&body);
            let n = extent.as_int();
            let wanted = match (kind, max_step, n) {
                (LoopKind::Unrolled, ..) => true,
                (LoopKind::Serial, Some(max), Some(n)) => n.saturating_mul(steps) <= max && depth < MAX_DEPTH,
                (LoopKind::Serial | LoopKind::Parallel | LoopKind::Vectorized, ..) => false,
            };
            if !wanted {
                return Ok((Stmt::for_(var, min, extent, kind, body), depth));
            }
            let Some(n) = n else {
                let extent = coulis_ir::print::print_expr(&extent);
                return Err(LowerError::UnrollExtent { var: var.name().to_owned(), extent });
            };
            let found = n.saturating_mul(steps.max(1));
            if found > MAX_STATEMENTS {
                let var = var.name().to_owned();
                return Err(LowerError::UnrollSize { var, found, limit: MAX_STATEMENTS });
            }
            let copies = (0..n).map(|i| {
                let at = sum(min.clone(), Expr::int_of(i, var.dtype()));
                copy_with(&body, &FastMap::from_iter([(var.clone(), at)]))
            });
            Ok((Stmt::seq(copies), depth + 1))
        }
        Stmt::Annotate { key, value: Attr::Int(max), body, .. } if is_pragma(&key, AUTO_UNROLL_MAX_STEP) => {
            walk(*body, Some(max.into()))
        }
        Stmt::Annotate { key, body, .. } if is_pragma(&key, UNROLL_EXPLICIT) => walk(*body, max_step),
        Stmt::Annotate { node, key, value, body } if key == ROLLED => {
            let (body, depth) = match *body {
                Stmt::For { var, min, extent, kind: LoopKind::Serial, body } => {
                    let (body, depth) = walk(*body, max_step)?;
                    (Stmt::for_(var, min, extent, LoopKind::Serial, body), depth)
                }
                other => walk(other, max_step)?,
            };
            Ok((Stmt::Annotate { node, key, value, body: Box::new(body) }, depth))
        }
        other => {
            let mut deepest = 0;
            let stmt = try_map_children::<LowerError>(other, &mut |s| {
                let (s, depth) = walk(s, max_step)?;
                deepest = deepest.max(depth);
                Ok(s)
            })?;
            Ok((stmt, deepest))
        }
    }
}

fn count_stores(stmt: &Stmt) -> i128 {
    let mut n = 0;
    for_each_stmt(stmt, &mut |s| n += i128::from(matches!(s, Stmt::Store { .. })));
    n
}
