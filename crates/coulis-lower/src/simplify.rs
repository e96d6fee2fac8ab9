//! Simplifies every expression under what its loops say, and drops what can be proved idle.
//!
//! A loop of one iteration becomes its body, one of none and a launch of no threads disappear, a condition
//! that always holds goes away. The pass runs twice: on the nest, and again after vectorizing and unrolling,
//! which make constants.

use coulis_ir::hash::FastMap;

use coulis_ir::expr::{BinaryOp, Expr, Intrinsic, Node, Var, VarKind};
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::substitute_expr;
use coulis_ir::{Form, Kernel, Stmt};

use crate::affine::difference;
use crate::binders::substituted;
use crate::pass::{LowerError, Options, Pass};

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
pub fn simplify(kernel: Kernel, _: &Options) -> Result<Kernel, LowerError> {
    let body = simplify_stmt(kernel.body, &Analyzer::new(), Around::Host);
    Ok(Kernel { body, ..kernel })
}

/// What is known of a kernel: the extents of its arguments are not negative.
pub fn with_sizes(kernel: &Kernel) -> Analyzer {
    let mut known = Analyzer::new();
    let mut seen = Vec::new();
    for extent in kernel.param_buffers().flat_map(|buffer| &buffer.shape) {
        if let Some(var) = extent.as_var()
            && var.kind() == VarKind::Plain
            && !seen.contains(var)
        {
            seen.push(var.clone());
            known.assume(&extent.clone().ge(Expr::int_of(0, extent.dtype())));
        }
    }
    known
}

/// What is known in the body of a loop or thread launch.
pub fn with_loop(known: &Analyzer, var: &Var, min: &Expr, extent: &Expr) -> Analyzer {
    let mut inner = known.clone();
    inner.bind(var, min, extent);
    inner
}

/// [`with_loop`], and for an extent that is the least of several that the variable is below each of them.
pub fn with_turns(known: &Analyzer, var: &Var, min: &Expr, extent: &Expr) -> Analyzer {
    let mut inner = with_loop(known, var, min, extent);
    for most in upper_bounds(extent) {
        let (at, most) = Expr::promoted(difference(var.expr(), min.clone()), most);
        inner.assume(&at.lt(most));
    }
    inner
}

/// What the extent of a loop that runs at all is no greater than, where that is several things: the operands of a minimum. A loop
/// that is cut has `max(min(a, b), 0)` iterations.
fn upper_bounds(extent: &Expr) -> Vec<Expr> {
    let without_zero = match extent.node() {
        Node::Binary(BinaryOp::Max, a, zero) if zero.is_int(0) => a,
        _ => extent,
    };
    match without_zero.node() {
        Node::Binary(BinaryOp::Min, a, b) => [a, b]
            .into_iter()
            .flat_map(|e| {
                let inner = upper_bounds(e);
                if inner.is_empty() { vec![e.clone()] } else { inner }
            })
            .collect(),
        _ if without_zero != extent => vec![without_zero.clone()],
        _ => Vec::new(),
    }
}

/// What is known in the body of a let. Of a value from memory, that it is one: stores may change the memory. Of
/// another nothing beyond the kind of the name: an equality would be weighed in every proof of the body, and lets are
/// made here to keep expressions small.
pub fn with_let(known: &Analyzer, var: &Var, value: &Expr) -> Analyzer {
    let mut inner = known.clone();
    if value.reads_memory() {
        inner.bind_data(var);
    }
    inner
}

/// What is known where a condition holds. Of one on memory nothing, which stores may change.
pub fn with_condition(known: &Analyzer, cond: &Expr) -> Analyzer {
    if cond.reads_memory() { known.clone() } else { known.with(cond) }
}

/// The condition of a branch with its mark of likelihood taken off.
fn unmarked(cond: &Expr) -> &Expr {
    match cond.node() {
        Node::Call(Intrinsic::Likely, args) => &args[0],
        _ => cond,
    }
}

/// What executes a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Around {
    /// The host.
    Host,
    /// Threads of a launch.
    Threads,
}

impl Around {
    /// The number of iterations that simplification counts with. In launches a loop of a length that is not known, but
    /// at most 1, counts as one of 2: the index of a rest of a split stays in the text, as in listing 6 of seed 003.
    fn loop_range(self, extent: &Expr, known: &Analyzer) -> Expr {
        let at_most_once = || known.const_bounds(extent).1.is_some_and(|most| most <= 1);
        if self == Around::Threads && extent.as_int().is_none() && at_most_once() {
            return Expr::int_of(2, extent.dtype());
        }
        extent.clone()
    }
}

/// The body of a let whose first question is about the name: the side of the branch that is taken, where the value tells.
fn decided(body: Stmt, var: &Var, value: &Expr, known: &Analyzer) -> Stmt {
    match body {
        Stmt::If { cond, then, otherwise } if !cond.reads_memory() && !value.reads_memory() => {
            let told = substitute_expr(&cond, &FastMap::from_iter([(var.clone(), value.clone())]));
            let told = known.simplify(&told);
            match unmarked(&told) {
                told if told.is_int(1) || known.can_prove(told) => *then,
                told if told.is_int(0) || known.fails_in_each_case(told) => {
                    otherwise.map_or(Stmt::NOP, |s| *s)
                }
                _ => Stmt::If { cond, then, otherwise },
            }
        }
        other => other,
    }
}

/// A statement under what `known` says of its variables.
pub fn simplify_stmt(stmt: Stmt, known: &Analyzer, around: Around) -> Stmt {
    let on = |e: &Expr| known.simplify(e);
    match stmt {
        Stmt::Seq(stmts) => Stmt::seq(stmts.into_iter().map(|s| simplify_stmt(s, known, around))),
        Stmt::For { var, min, extent, kind, body } => {
            let (min, extent) = (on(&min), on(&extent));
            match extent.as_int() {
                Some(n) if n <= 0 => Stmt::NOP,
                Some(1) => {
                    simplify_stmt(substituted(*body, &FastMap::from_iter([(var, min)])), known, around)
                }
                _ => {
                    let range = around.loop_range(&extent, known);
                    let body = simplify_stmt(*body, &with_loop(known, &var, &min, &range), around);
                    Stmt::for_(var, min, extent, kind, body)
                }
            }
        }
        Stmt::If { cond, then, otherwise } => {
            let cond = on(&cond);
            let plain = unmarked(&cond);
            if plain.is_int(1) || known.can_prove(plain) {
                return simplify_stmt(*then, known, around);
            }
            if known.can_refute(plain) || known.fails_in_each_case(plain) {
                return otherwise.map_or(Stmt::NOP, |s| simplify_stmt(*s, known, around));
            }
            let then = Box::new(match plain.reads_memory() {
                // A store in the branch may change what the condition read.
                true => simplify_stmt(*then, known, around),
                false => simplify_stmt(*then, &known.with(plain), around),
            });
            let otherwise =
                otherwise.map(|s| Box::new(simplify_stmt(*s, known, around))).filter(|s| !s.is_nop());
            Stmt::If { cond, then, otherwise }
        }
        Stmt::Store { buffer, mut indices, value } => {
            indices.iter_mut().for_each(|index| *index = on(index));
            let value = known.simplify(&value);
            Stmt::Store { buffer, indices, value }
        }
        Stmt::Let { var, value, body } => {
            let value = on(&value);
            let atom = value.as_int().is_some() || value.as_float().is_some() || value.as_var().is_some();
            if atom {
                simplify_stmt(substituted(*body, &FastMap::from_iter([(var, value)])), known, around)
            } else {
                let inner = with_let(known, &var, &value);
                let body = decided(*body, &var, &value, known);
                Stmt::let_(var, value, simplify_stmt(body, &inner, around))
            }
        }
        Stmt::Allocate { buffer, body } => Stmt::allocate(buffer, simplify_stmt(*body, known, around)),
        Stmt::Annotate { node, key, value, body } => {
            Stmt::Annotate { node, key, value, body: Box::new(simplify_stmt(*body, known, around)) }
        }
        Stmt::LaunchThread { tag, var, extent, body } => {
            let extent = on(&extent);
            if extent.as_int().is_some_and(|n| n <= 0) {
                return Stmt::NOP;
            }
            let inner = with_loop(known, &var, &Expr::int_of(0, var.dtype()), &extent);
            let body = Box::new(simplify_stmt(*body, &inner, Around::Threads));
            Stmt::LaunchThread { tag, var, extent, body }
        }
        Stmt::Atom(mut call) => {
            call.exprs_mut().for_each(|e| *e = on(e));
            Stmt::Atom(call)
        }
        Stmt::DeviceEntry
        | Stmt::ScopeIds { .. }
        | Stmt::AllocBuffer(_)
        | Stmt::View { .. }
        | Stmt::Tile(_)
        | Stmt::Sync(_) => stmt,
    }
}
