//! Indices that are constants, and the width of masks. Also the expansion of unrolled loops, after which more indices
//! are constants.

use std::collections::HashMap;

use coulis_ir::visit::{rewrite_exprs, rewrite_stmt, substitute_stmt};
use coulis_ir::{BinaryOp, DType, Expr, Intrinsic, LoopKind, Node, Stmt, Var};

pub use coulis_ir::index::{as_ramp, constant, fold, fold_binary};

use crate::c::types::CTy;

/// A loop that is to be unrolled is expanded up to this many iterations.
const MAX_UNROLLED: i64 = 256;

/// `(first element, lanes)` of an index that is a constant or a ramp of stride 1 from a constant.
pub fn constant_place(at: &Expr) -> Option<(i64, u32)> {
    if at.lanes() == 1 {
        return Some((constant(at)?, 1));
    }
    let (base, stride) = as_ramp(at)?;
    if constant(&stride)? == 1 { Some((constant(&base)?, at.lanes())) } else { None }
}

/// Bytes of the lanes that were compared to make a bool; `None` where nothing says.
pub fn mask_bytes(expr: &Expr) -> Option<u32> {
    match expr.node() {
        Node::Binary(op, a, _) if op.is_comparison() && a.dtype() != DType::Bool => {
            Some(CTy::carrier(a.dtype()).bytes())
        }
        Node::Binary(_, a, b) => mask_bytes(a).max(mask_bytes(b)),
        Node::Not(a) => mask_bytes(a),
        Node::Select(_, a, b) if expr.dtype() == DType::Bool => mask_bytes(a).max(mask_bytes(b)),
        Node::Cast(a) if expr.dtype() == DType::Bool => Some(CTy::carrier(a.dtype()).bytes()),
        Node::Call(Intrinsic::Likely, args) => mask_bytes(&args[0]),
        Node::Call(_, args) if expr.dtype() == DType::Bool => Some(CTy::carrier(args[0].dtype()).bytes()),
        _ => None,
    }
}

/// The first value past a loop.
pub fn end(min: &Expr, extent: &Expr) -> Expr {
    match extent.node() {
        Node::Binary(BinaryOp::Sub, end, start) if start == min => end.clone(),
        _ if min.is_int(0) => extent.clone(),
        _ => fold(&(min + extent)),
    }
}

/// The statement with unrolled loops of few iterations written out, and integer constants folded.
pub fn expand(stmt: Stmt) -> Stmt {
    let mut expanded = rewrite_stmt(stmt, &mut |_| None, &mut expand_loop);
    rewrite_exprs(&mut expanded, &mut |e| Some(fold(e)));
    expanded
}

fn expand_loop(stmt: Stmt) -> Stmt {
    match stmt {
        Stmt::For { var, min, extent, kind: LoopKind::Unrolled, body } => match constant(&fold(&extent)) {
            Some(count) if count <= MAX_UNROLLED => Stmt::seq((0..count.max(0)).map(|step| {
                let value =
                    fold_binary(BinaryOp::Add, min.clone(), Expr::int_of(i128::from(step), var.dtype()));
                instance(&var, value, (*body).clone())
            })),
            _ => Stmt::For { var, min, extent, kind: LoopKind::Serial, body },
        },
        other => other,
    }
}

fn instance(var: &Var, value: Expr, body: Stmt) -> Stmt {
    substitute_stmt(body, &HashMap::from([(var.clone(), value)]))
}
