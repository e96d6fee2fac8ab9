//! Simplifies every expression under what its loops say, and drops what can be proved idle.
//!
//! A loop of one iteration becomes its body, one of none disappears, a condition that always holds goes away. The
//! pass runs twice: on the nest, and again after vectorizing and unrolling, which make constants.

use std::collections::HashMap;

use coulis_ir::expr::{Expr, Intrinsic, Node};
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::substitute_stmt;
use coulis_ir::{Form, Kernel, Stmt};

use crate::pass::{Context, LowerError, Pass};

/// The pass on Nest kernels.
pub const PASS: Pass = Pass {
    name: "simplify",
    from: Form::Nest,
    to: Form::Nest,
    run: simplify,
    doc: "simplifies expressions, drops loops of one iteration and conditions that always hold",
};

/// The same pass on Flat kernels.
pub const PASS_FLAT: Pass = Pass {
    name: "simplify_flat",
    from: Form::Flat,
    to: Form::Flat,
    run: simplify,
    doc: "simplifies once more, now that vectors and unrolled loops brought constants",
};

/// Simplifies the body of a kernel.
pub fn simplify(kernel: Kernel, _: &Context) -> Result<Kernel, LowerError> {
    let body = simplify_stmt(kernel.body, &Analyzer::new());
    Ok(Kernel { body, ..kernel })
}

/// The condition of a branch with its mark of likelihood taken off.
fn unmarked(cond: &Expr) -> &Expr {
    match cond.node() {
        Node::Call(Intrinsic::Likely, args) => &args[0],
        _ => cond,
    }
}

/// A statement under what `known` says of its variables.
pub fn simplify_stmt(stmt: Stmt, known: &Analyzer) -> Stmt {
    let on = |e: &Expr| known.simplify(e);
    match stmt {
        Stmt::Seq(stmts) => Stmt::seq(stmts.into_iter().map(|s| simplify_stmt(s, known))),
        Stmt::For { var, min, extent, kind, body } => {
            let (min, extent) = (on(&min), on(&extent));
            match extent.as_int() {
                Some(n) if n <= 0 => Stmt::NOP,
                Some(1) => simplify_stmt(substitute_stmt(*body, &HashMap::from([(var, min)])), known),
                _ => {
                    let mut inner = known.clone();
                    inner.bind(&var, &min, &extent);
                    let body = simplify_stmt(*body, &inner);
                    Stmt::for_(var, min, extent, kind, body)
                }
            }
        }
        Stmt::If { cond, then, otherwise } => {
            let cond = on(&cond);
            let plain = unmarked(&cond);
            if plain.is_int(1) || known.can_prove(plain) {
                return simplify_stmt(*then, known);
            }
            if plain.is_int(0) {
                return otherwise.map_or(Stmt::NOP, |s| simplify_stmt(*s, known));
            }
            let then = Box::new(simplify_stmt(*then, known));
            let otherwise = otherwise.map(|s| Box::new(simplify_stmt(*s, known))).filter(|s| !s.is_nop());
            Stmt::If { cond, then, otherwise }
        }
        Stmt::Store { buffer, indices, value } => {
            let indices = indices.iter().map(on).collect();
            let value = known.simplify(&value);
            Stmt::Store { buffer, indices, value }
        }
        Stmt::Let { var, value, body } => {
            let value = on(&value);
            let atom = value.as_int().is_some() || value.as_float().is_some() || value.as_var().is_some();
            if atom {
                simplify_stmt(substitute_stmt(*body, &HashMap::from([(var, value)])), known)
            } else {
                Stmt::let_(var, value, simplify_stmt(*body, known))
            }
        }
        Stmt::Allocate { buffer, body } => Stmt::allocate(buffer, simplify_stmt(*body, known)),
        Stmt::Annotate { node, key, value, body } => {
            Stmt::Annotate { node, key, value, body: Box::new(simplify_stmt(*body, known)) }
        }
        Stmt::LaunchThread { tag, var, extent, body } => {
            let extent = on(&extent);
            let mut inner = known.clone();
            inner.bind(&var, &Expr::int_of(0, var.dtype()), &extent);
            let body = Box::new(simplify_stmt(*body, &inner));
            Stmt::LaunchThread { tag, var, extent, body }
        }
        Stmt::DeviceEntry
        | Stmt::ScopeIds { .. }
        | Stmt::AllocBuffer(_)
        | Stmt::View { .. }
        | Stmt::Tile(_)
        | Stmt::Sync(_) => stmt,
    }
}
