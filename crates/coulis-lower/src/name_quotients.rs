//! Quotients and remainders of a loop's variable by sizes are computed once an iteration, under a name.
//!
//! A loop over fused axes has indices `f // n` and `f % n`, which no machine divides fast; its inner loops would
//! repeat them. They are bound at the top of the body of the loop whose variable they are of, where the divisor can
//! be proved positive there: the iteration that computes them runs. Divisions by constants are left, since
//! simplification sees through them. Simple mode leaves all, as the reference has it. Order: before
//! `partition_loops`, whose cuts would hold many copies.

use coulis_ir::hash::FastMap;

use coulis_ir::expr::{BinaryOp, Expr, Node, Var};
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::{change_children, for_each_expr, for_each_stmt, rewrite_exprs, stmt_exprs};
use coulis_ir::{Form, Kernel, Stmt};

use crate::affine::uses;
use crate::pass::{LowerError, Options, Pass};
use crate::simplify::{with_let, with_loop};

/// The pass.
pub const PASS: Pass = Pass {
    name: "name_quotients",
    from: Form::Nest,
    to: Form::Nest,
    run: name_quotients,
    doc: "computes quotients of a loop variable by sizes once an iteration",
};

/// Binds quotients of loop variables by sizes at the top of their loops.
pub fn name_quotients(kernel: Kernel, options: &Options) -> Result<Kernel, LowerError> {
    if options.simple_mode {
        return Ok(kernel);
    }
    let body = walk(kernel.body, &Analyzer::new());
    Ok(Kernel { body, ..kernel })
}

fn walk(stmt: Stmt, known: &Analyzer) -> Stmt {
    match stmt {
        Stmt::For { var, min, extent, kind, body } => {
            let mut inner = with_loop(known, &var, &min, &extent);
            let mut body = *body;
            let mut named = Vec::new();
            let mut judged = FastMap::default();
            let sizes = Sizes::of(&extent, known);
            while let Some(quotient) = first_quotient(&body, &var, &named, &mut |e| {
                *judged.entry(e.clone()).or_insert_with(|| is_natural(e, &sizes, &inner))
            }) {
                let kind = if matches!(quotient.node(), Node::Binary(BinaryOp::FloorDiv, ..)) {
                    "div"
                } else {
                    "mod"
                };
                let name = Var::size(&format!("{}_{kind}", var.name()), quotient.dtype());
                inner = with_let(&inner, &name, &quotient);
                body = replaced(body, &quotient, &name.expr());
                named.push((name, quotient));
            }
            let body = walk(body, &inner);
            let body =
                named.into_iter().rev().fold(body, |body, (name, value)| Stmt::let_(name, value, body));
            Stmt::for_(var, min, extent, kind, body)
        }
        Stmt::Let { var, value, body } => {
            let inner = with_let(known, &var, &value);
            Stmt::let_(var, value, walk(*body, &inner))
        }
        Stmt::LaunchThread { .. } => stmt,
        other => crate::walk::map_children(other, &mut |s| walk(s, known)),
    }
}

/// A quotient of `var` or of a name for one, by something that is not constant, that is the same in all of `body`.
fn first_quotient(
    body: &Stmt,
    var: &Var,
    named: &[(Var, Expr)],
    is_natural: &mut dyn FnMut(&Expr) -> bool,
) -> Option<Expr> {
    let mut inside = Vec::new();
    for_each_stmt(body, &mut |s| match s {
        Stmt::For { var, .. } | Stmt::Let { var, .. } | Stmt::LaunchThread { var, .. } => {
            inside.push(var.clone())
        }
        _ => {}
    });
    let mut found: Option<Expr> = None;
    for_each_stmt(body, &mut |s| {
        // Extents of memory are not rewritten, so a quotient in one would be found again for ever.
        if matches!(s, Stmt::Allocate { .. } | Stmt::AllocBuffer(_) | Stmt::View { .. }) {
            return;
        }
        for expr in stmt_exprs(s) {
            for_each_expr(expr, &mut |e| {
                let Node::Binary(BinaryOp::FloorDiv | BinaryOp::FloorMod, _, divisor) = e.node() else {
                    return;
                };
                let of_loop = uses(e, var) || named.iter().any(|(name, _)| uses(e, name));
                if found.is_none()
                    && e.ty().is_scalar()
                    && divisor.as_int().is_none()
                    && of_loop
                    && !inside.iter().any(|v| uses(e, v))
                    && !e.reads_memory()
                    && is_natural(e)
                {
                    found = Some(e.clone());
                }
            });
        }
    });
    found
}

/// The factors of a loop's extent, none of which is negative; none is 0 either where the loop runs.
pub(crate) struct Sizes(pub Vec<Expr>);

impl Sizes {
    /// Those of a loop around which this is known.
    pub fn of(extent: &Expr, known: &Analyzer) -> Sizes {
        fn go(extent: &Expr, factors: &mut Vec<Expr>) {
            match extent.node() {
                Node::Binary(BinaryOp::Mul, a, b) => {
                    go(a, factors);
                    go(b, factors);
                }
                _ => factors.push(extent.clone()),
            }
        }
        let mut factors = Vec::new();
        go(extent, &mut factors);
        let natural = |f: &Expr| known.can_prove(&f.clone().ge(Expr::int_of(0, f.dtype())));
        if factors.iter().all(natural) { Sizes(factors) } else { Sizes(Vec::new()) }
    }
}

/// Whether the divisor is positive and the result at least 0, and every other divisor in it is positive too: a condition that it stands
/// under may be what keeps one from being 0.
fn is_natural(quotient: &Expr, sizes: &Sizes, known: &Analyzer) -> bool {
    let Node::Binary(_, dividend, _) = quotient.node() else { return false };
    let zero = Expr::int_of(0, quotient.dtype());
    let is_positive =
        |e: &Expr| sizes.0.contains(e) || known.can_prove(&e.clone().gt(Expr::int_of(0, e.dtype())));
    let mut has_value = true;
    for_each_expr(quotient, &mut |e| has_value = has_value && e.divisor().is_none_or(is_positive));
    has_value && known.can_prove(&dividend.clone().ge(zero))
}

fn replaced(mut stmt: Stmt, from: &Expr, to: &Expr) -> Stmt {
    fn go(expr: &Expr, from: &Expr, to: &Expr, memo: &mut FastMap<Expr, Option<Expr>>) -> Option<Expr> {
        if expr == from {
            return Some(to.clone());
        }
        if let Some(done) = memo.get(expr) {
            return done.clone();
        }
        let new = change_children(expr, &mut |child| go(child, from, to, memo));
        memo.insert(expr.clone(), new.clone());
        new
    }
    let mut memo = FastMap::default();
    rewrite_exprs(&mut stmt, &mut |e| go(e, from, to, &mut memo));
    stmt
}
