//! The shape of indices: ramps, constants, and the width of masks. Also the expansion of unrolled loops, after which
//! more indices are constants.

use std::collections::HashMap;

use coulis_ir::args::eval_constant;
use coulis_ir::hash::FastMap;
use coulis_ir::visit::{map_children, rewrite_exprs, rewrite_stmt, substitute_stmt};
use coulis_ir::{BinaryOp, DType, Expr, Intrinsic, LoopKind, Node, Stmt, Var};

use crate::c::types::CTy;

/// A loop that is to be unrolled is expanded up to this many iterations.
const MAX_UNROLLED: i64 = 256;

/// The value of an integer expression without variables.
pub fn constant(expr: &Expr) -> Option<i64> {
    if expr.lanes() != 1 || expr.dtype().is_float() {
        return None;
    }
    match expr.node() {
        Node::Int(value) => i64::try_from(*value).ok(),
        Node::Var(_) | Node::Load(..) | Node::Float(_) => None,
        _ => eval_constant(expr),
    }
}

/// `(base, stride)` of a vector index `base + i * stride`, both scalars.
pub fn as_ramp(expr: &Expr) -> Option<(Expr, Expr)> {
    if expr.lanes() == 1 {
        return None;
    }
    let dtype = expr.dtype();
    match expr.node() {
        Node::Ramp(base, stride) => Some((base.clone(), stride.clone())),
        Node::Broadcast(value) => Some((value.clone(), Expr::int_of(0, dtype))),
        Node::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), a, b) => {
            let ((x, s), (y, t)) = (as_ramp(a)?, as_ramp(b)?);
            Some((fold_binary(*op, x, y), fold_binary(*op, s, t)))
        }
        Node::Binary(BinaryOp::Mul, a, b) => {
            let ((x, s), (y, t)) = (as_ramp(a)?, as_ramp(b)?);
            if t.is_int(0) {
                Some((fold_binary(BinaryOp::Mul, x, y.clone()), fold_binary(BinaryOp::Mul, s, y)))
            } else if s.is_int(0) {
                Some((fold_binary(BinaryOp::Mul, x.clone(), y), fold_binary(BinaryOp::Mul, x, t)))
            } else {
                None
            }
        }
        // Indices stay within their type, so widening the ends widens every lane.
        Node::Cast(a) if a.dtype().is_int() && dtype.is_int() && a.dtype().bytes() <= dtype.bytes() => {
            let (x, s) = as_ramp(a)?;
            Some((fold(&x.cast(dtype)), fold(&s.cast(dtype))))
        }
        _ => None,
    }
}

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

/// `a op b` with constants folded and neutral elements dropped.
pub fn fold_binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    fold_node(&Expr::binary(op, a, b))
}

fn fold_node(expr: &Expr) -> Expr {
    let dtype = expr.dtype();
    if expr.lanes() != 1 || dtype.is_float() {
        return expr.clone();
    }
    match expr.node() {
        Node::Binary(op, a, b) => {
            if a.as_int().is_some() && b.as_int().is_some() {
                return match constant(expr) {
                    Some(value) => Expr::int_of(i128::from(value), dtype),
                    None => expr.clone(),
                };
            }
            match op {
                BinaryOp::Add if a.is_int(0) => b.clone(),
                BinaryOp::Add | BinaryOp::Sub if b.is_int(0) => a.clone(),
                BinaryOp::Mul if a.is_int(1) => b.clone(),
                BinaryOp::Mul if b.is_int(1) => a.clone(),
                BinaryOp::Mul if a.is_int(0) || b.is_int(0) => Expr::int_of(0, dtype),
                _ => expr.clone(),
            }
        }
        Node::Cast(a) => match a.as_int() {
            Some(value) => Expr::int_of(value, dtype),
            None => expr.clone(),
        },
        _ => expr.clone(),
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

/// The expression with integer constants folded everywhere below.
pub fn fold(expr: &Expr) -> Expr {
    fn go(expr: &Expr, memo: &mut FastMap<Expr, Expr>) -> Expr {
        if let Some(done) = memo.get(expr) {
            return done.clone();
        }
        let new = fold_node(&map_children(expr, &mut |child| go(child, memo)));
        memo.insert(expr.clone(), new.clone());
        new
    }
    go(expr, &mut FastMap::default())
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
