//! Loops that mostly add let the multipliers do some of their sums: `s + x` becomes `fma(x, 1, s)`, the same number.
//!
//! On a machine whose adders and multipliers are units of their own (Zen: two of each, and an `fma` takes a multiplier
//! alone) a loop takes as long as the busier kind of unit does. Sums with a shift and a conversion beside them, as of a
//! variance, keep the adders busy twice as long as the multipliers. So where an innermost loop does something else on the
//! adders than its sums, as many of these move as make both kinds equally busy. A loop of sums alone stays: memory limits
//! it, and an `fma` takes a cycle longer.
//!
//! Order: after unrolling and vectorizing, when one iteration stands side by side; before common subexpressions get names,
//! which hide sums.

use coulis_ir::expr::{BinaryOp, Expr, Node};
use coulis_ir::hash::FastSet;
use coulis_ir::visit::{any_stmt, for_each_expr, for_each_stmt, stmt_exprs};
use coulis_ir::{Buffer, DType, Form, Intrinsic, Kernel, MemScope, Stmt};

use crate::pass::{LowerError, Options, Pass};
use crate::walk::map_children;

/// The pass.
pub const PASS: Pass = Pass {
    name: "balance_adders",
    from: Form::Flat,
    to: Form::Flat,
    run: balance_adders,
    doc: "gives sums of loops that mostly add to the multipliers, where a machine has those beside its adders",
};

/// What a conversion between `float32` and `float64` takes of the adders, in sums of as many bytes.
const CONVERSION: u64 = 2;

/// Gives sums to the multipliers.
pub fn balance_adders(kernel: Kernel, options: &Options) -> Result<Kernel, LowerError> {
    if !options.target.separate_adders || options.simple_mode {
        return Ok(kernel);
    }
    let body = walk(kernel.body);
    Ok(Kernel { body, ..kernel })
}

fn walk(stmt: Stmt) -> Stmt {
    match stmt {
        Stmt::For { var, min, extent, kind, body } => {
            let has_loop = any_stmt(&body, &mut |s| matches!(s, Stmt::For { .. }));
            let body = if has_loop { walk(*body) } else { balanced(*body) };
            Stmt::for_(var, min, extent, kind, body)
        }
        other => map_children(other, &mut walk),
    }
}

/// The body of an innermost loop.
fn balanced(body: Stmt) -> Stmt {
    let work = Work::of(&body);
    if work.elsewhere || work.adders == work.sums {
        return body;
    }
    let mut spare = work.adders.saturating_sub(work.multipliers);
    moved(body, &mut spare)
}

/// The statement with sums moved as long as they lessen by how much the adders are busier.
fn moved(stmt: Stmt, spare: &mut u64) -> Stmt {
    if let Stmt::Store { buffer, indices, value } = &stmt
        && let Some((state, x)) = as_sum(buffer, indices, value)
        && 2 * bytes(value) <= *spare
    {
        *spare -= 2 * bytes(value);
        let one = Expr::float(1.0, value.dtype()).broadcast_to(value.lanes());
        let value = Expr::call(Intrinsic::Fma, vec![x.clone(), one, state.clone()]);
        return Stmt::Store { buffer: buffer.clone(), indices: indices.clone(), value };
    }
    map_children(stmt, &mut |s| moved(s, spare))
}

/// A state kept in registers and what the store adds to it.
fn as_sum<'e>(buffer: &Buffer, indices: &[Expr], value: &'e Expr) -> Option<(&'e Expr, &'e Expr)> {
    let Node::Binary(BinaryOp::Add, a, b) = value.node() else { return None };
    let is_state = |e: &Expr| matches!(e.node(), Node::Load(of, at) if of == buffer && at[..] == *indices);
    let (state, x) = if is_state(a) { (a, b) } else { (b, a) };
    let fits = is_vector(value) && value.dtype().bytes() >= 4 && buffer.scope == MemScope::Local;
    (fits && is_state(state) && !is_product(x)).then_some((state, x))
}

/// Whether it is a product: an addition of one may be an operation of the multipliers already, where the product is exact.
fn is_product(expr: &Expr) -> bool {
    matches!(expr.node(), Node::Binary(BinaryOp::Mul, ..))
}

/// Whether it is a vector of floats.
fn is_vector(expr: &Expr) -> bool {
    expr.lanes() > 1 && expr.dtype().is_float()
}

/// Bytes of all its lanes.
fn bytes(expr: &Expr) -> u64 {
    u64::from(expr.lanes()) * expr.dtype().bytes() as u64
}

/// Bytes of vectors of floats that one iteration computes, by kind of unit.
#[derive(Default)]
struct Work {
    adders: u64,
    multipliers: u64,
    /// What of the adders' work is sums that may move.
    sums: u64,
    /// Whether something else is computed, as an exponential, which takes multipliers most of the time.
    elsewhere: bool,
}

impl Work {
    fn of(body: &Stmt) -> Work {
        let (mut work, mut seen) = (Work::default(), FastSet::default());
        for_each_stmt(body, &mut |stmt| {
            if let Stmt::Store { buffer, indices, value } = stmt
                && as_sum(buffer, indices, value).is_some()
            {
                work.sums += bytes(value);
            }
            for expr in stmt_exprs(stmt) {
                for_each_expr(expr, &mut |e| {
                    if is_vector(e) && seen.insert(e.clone()) {
                        work.add(e);
                    }
                });
            }
        });
        work
    }

    fn add(&mut self, expr: &Expr) {
        let n = bytes(expr);
        match expr.node() {
            Node::Binary(BinaryOp::Add, a, b) if is_product(a) || is_product(b) => {}
            Node::Binary(BinaryOp::Add | BinaryOp::Sub, ..) => self.adders += n,
            Node::Binary(..) => self.multipliers += n,
            Node::Cast(from) => match from.dtype() {
                DType::F32 | DType::F64 => self.adders += CONVERSION * n,
                // Bits are shifted and lanes moved too, of which each kind of unit does some (measured on Zen 4).
                DType::F16 | DType::BF16 | DType::F8E4M3 | DType::F8E5M2 => {
                    self.adders += n;
                    self.multipliers += n;
                }
                DType::I8 | DType::I16 | DType::I32 | DType::I64 => self.adders += n,
                DType::U8 | DType::U16 | DType::U32 | DType::U64 => self.adders += n,
                DType::Bool => {}
            },
            Node::Call(Intrinsic::Fma, _) => self.multipliers += n,
            Node::Call(Intrinsic::Abs | Intrinsic::Max3 | Intrinsic::Min3, _) => {}
            Node::Call(..) => self.elsewhere = true,
            Node::Int(_) | Node::Float(_) | Node::Var(_) | Node::Not(_) | Node::Load(..) => {}
            Node::Select(..) | Node::IfThenElse(..) | Node::Ramp(..) | Node::Broadcast(_) | Node::Let(..) => {
            }
        }
    }
}
