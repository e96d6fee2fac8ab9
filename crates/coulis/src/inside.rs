//! Shows that a kernel touches only elements inside its buffers, for all sizes.
//!
//! The verifier refuses accesses that are certain to be outside. This is the other side of it: accesses that are
//! certain to be inside, by the ranges of the loops and the conditions around them. A kernel for which that cannot be
//! shown is not wrong, but compiled code would not notice if it were, so its calls go to the executor, which looks at
//! each index (see `function.rs`).

mod memory;

use std::borrow::Cow;
use std::collections::HashSet;

use coulis_ir::hash::Seen;
use coulis_ir::print::print_expr;
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::{for_each_stmt, stmt_exprs};
use coulis_ir::{Buffer, BufferId, Expr, Form, Intrinsic, Kernel, Node, Stmt, Target};
use coulis_lower::Options;
use coulis_lower::resolve_scope_ids::resolve_scope_ids;
use coulis_lower::simplify::with_turns;

use crate::inside::memory::{Memories, ends};

/// A kernel with its scope ids as launches, whose extents bound the accesses below them. Where they are
/// wrong, the kernel itself: lowering it tells why.
pub fn launched<'a>(kernel: &'a Kernel, target: &Target) -> Cow<'a, Kernel> {
    let options = Options { target, simple_mode: false };
    let has_ids = kernel.form == Form::Tiled && target.has_threads();
    let resolved = has_ids.then(|| resolve_scope_ids(kernel.clone(), &options)).and_then(Result::ok);
    resolved.map_or(Cow::Borrowed(kernel), Cow::Owned)
}

/// The first access of a kernel that cannot be shown to stay inside; `None` where all of them do.
///
/// Looked at are parameters and allocations, by their dimensions or, where one index is the place in the memory, by what
/// their shapes and strides reach. What a second window on the memory says of its size does not count. Windows on memory
/// of another type, with strides or with an offset count as not shown.
pub fn first_unproven(kernel: &Kernel) -> Option<String> {
    let mut sized: HashSet<BufferId> = kernel.param_buffers().map(|b| b.id).collect();
    let known = Analyzer::of_call(kernel);
    let memories = Memories::of(kernel, &known);
    for_each_stmt(&kernel.body, &mut |stmt| {
        match stmt {
            Stmt::Allocate { buffer, .. }
            | Stmt::AllocBuffer(buffer)
            | Stmt::View { buffer, local: true, .. } => sized.insert(buffer.id),
            _ => false,
        };
    });
    let mut data = HashSet::new();
    if let Some(second) = kernel.param_buffers().find(|b| !data.insert(b.data.clone())) {
        return Some(format!("`{}`, which shares its memory with another parameter,", second.name));
    }
    Proof { form: kernel.form, sized, memories, about: About::Accesses }.stmt(&kernel.body, &known).err()
}

/// The first division of elements whose divisor cannot be shown to be other than zero; `None` where there is none.
/// Quotients of indices are not looked at: loops whose extents they come from would run no iteration.
pub fn first_unproven_divisor(kernel: &Kernel) -> Option<String> {
    let (sized, memories) = (HashSet::new(), Memories::default());
    Proof { form: kernel.form, sized, memories, about: About::Divisors }
        .stmt(&kernel.body, &Analyzer::of_call(kernel))
        .err()
}

/// What is to be shown.
#[derive(Clone, Copy, PartialEq)]
enum About {
    /// Accesses are inside.
    Accesses,
    /// Divisors are not zero.
    Divisors,
}

type Shown = Result<(), String>;

struct Proof {
    form: Form,
    /// Buffers whose shape is that of their memory.
    sized: HashSet<BufferId>,
    memories: Memories,
    about: About,
}

impl Proof {
    fn stmt(&self, at: &Stmt, known: &Analyzer) -> Shown {
        let mut shown = Seen::default();
        for e in stmt_exprs(at) {
            self.expr(e, known, &mut shown)?;
        }
        match at {
            Stmt::Seq(stmts) => stmts.iter().try_for_each(|s| self.stmt(s, known)),
            Stmt::For { var, min, extent, body, .. } => {
                let extent = self.memories.spelled_out(extent);
                self.stmt(body, &with_turns(known, var, min, &extent))
            }
            Stmt::If { cond, then, otherwise } => {
                self.stmt(then, &assuming(known, cond))?;
                let other = || assuming(known, &cond.clone().logical_not());
                otherwise.as_ref().map_or(Ok(()), |o| self.stmt(o, &other()))
            }
            Stmt::Store { buffer, indices, .. } => self.access(buffer, indices, known),
            Stmt::Let { var, value, body } => {
                let mut inner = known.clone();
                inner.bind_value(var, value);
                self.stmt(body, &inner)
            }
            Stmt::Allocate { body, .. } | Stmt::Annotate { body, .. } => self.stmt(body, known),
            Stmt::LaunchThread { var, extent, body, .. } => {
                let mut inner = known.clone();
                inner.bind(var, &Expr::int_of(0, var.dtype()), extent);
                self.stmt(body, &inner)
            }
            Stmt::Atom(call) if call.atom.is_hint() => Ok(()),
            Stmt::Atom(call) => call.elements().try_for_each(|e| self.access(&e.buffer, &e.indices, known)),
            Stmt::AllocBuffer(_) | Stmt::View { .. } | Stmt::Tile(_) | Stmt::Sync(_) => Ok(()),
            Stmt::DeviceEntry | Stmt::ScopeIds { .. } => Err(format!("what is around a {}", at.kind_name())),
        }
    }

    /// `shown`: what has been shown under what is known here, so that an expression in which parts occur again and again is
    /// not written out.
    fn expr<'e>(&self, at: &'e Expr, known: &Analyzer, shown: &mut Seen<&'e Expr>) -> Shown {
        if at.may_be_shared() && !shown.insert(at) {
            return Ok(());
        }
        match at.node() {
            Node::IfThenElse(cond, a, b) => {
                self.expr(cond, known, shown)?;
                if plain(cond).reads_memory() {
                    self.expr(a, known, shown)?;
                    return self.expr(b, known, shown);
                }
                self.expr(a, &assuming(known, cond), &mut Seen::default())?;
                self.expr(b, &assuming(known, &cond.clone().logical_not()), &mut Seen::default())
            }
            Node::Let(var, value, body) => {
                self.expr(value, known, shown)?;
                let mut inner = known.clone();
                inner.bind_value(var, value);
                self.expr(body, &inner, &mut Seen::default())
            }
            Node::Load(buffer, indices) => {
                indices.iter().try_for_each(|i| self.expr(i, known, shown))?;
                self.access(buffer, indices, known)
            }
            Node::Binary(op, a, b) if op.is_division() && b.dtype().is_int() => {
                self.expr(a, known, shown)?;
                self.expr(b, known, shown)?;
                self.divisor(at, b, known)
            }
            _ => at.children().try_for_each(|child| self.expr(child, known, shown)),
        }
    }

    fn divisor(&self, quotient: &Expr, divisor: &Expr, known: &Analyzer) -> Shown {
        let is_shown = || {
            let zero = Expr::int_of(0, divisor.dtype()).broadcast_to(divisor.lanes());
            known.can_prove(&divisor.clone().not_equal(zero))
        };
        if self.about == About::Accesses || !quotient.reads_memory() || is_shown() {
            return Ok(());
        }
        Err(format!("`{}`", print_expr(quotient)))
    }

    fn access(&self, buffer: &Buffer, indices: &[Expr], known: &Analyzer) -> Shown {
        if self.about == About::Divisors {
            return Ok(());
        }
        let by_dimensions = match self.form {
            Form::Nest => true,
            Form::Flat => false,
            // Memory is as large as a layout in it reaches, and a window on registers has as many as its
            // shape says: dispatch compares both. Of elements that are spread over threads each thread has
            // only its own.
            Form::Tiled => buffer.layout.as_ref().is_none_or(|layout| !layout.is_distributed()),
        };
        let inside = |(index, extent): (&Expr, &Expr)| {
            ends(index).is_some_and(|ends| ends.iter().all(|end| is_below(known, end, extent)))
        };
        let in_dimensions = || {
            self.sized.contains(&buffer.id)
                && indices.len() == buffer.rank()
                && indices.iter().zip(&buffer.shape).all(inside)
        };
        let in_memory = || self.form != Form::Tiled && self.memories.reach(buffer, indices, known);
        let shown = by_dimensions && in_dimensions() || in_memory();
        if shown {
            return Ok(());
        }
        let indices: Vec<String> = indices.iter().map(print_expr).collect();
        Err(format!("`{}[{}]`", buffer.name, indices.join(", ")))
    }
}

/// Whether the index is at least 0 and below the extent.
fn is_below(known: &Analyzer, index: &Expr, extent: &Expr) -> bool {
    let (index, extent) = Expr::promoted(index.clone(), extent.clone());
    let zero = Expr::int_of(0, index.dtype());
    known.can_prove(&zero.le(index.clone())) && known.can_prove(&index.lt(extent))
}

/// What is known where a condition holds. A condition on memory says nothing, since stores may follow.
fn assuming(known: &Analyzer, cond: &Expr) -> Analyzer {
    let plain = plain(cond);
    if plain.reads_memory() { known.clone() } else { known.with(plain) }
}

/// The condition itself, without the hint that it is likely.
fn plain(cond: &Expr) -> &Expr {
    match cond.node() {
        Node::Call(Intrinsic::Likely, args) => &args[0],
        _ => cond,
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn a_gpu_is_said_to_divide_by_zero_in_silence_only_where_it_may() {
        let text = |divisor: &str| {
            format!(
                "@T.prim_func
def divide(A: T.Buffer((64,), \"int32\"), B: T.Buffer((64,), \"int32\")):
    tx = T.launch_thread(\"threadIdx.x\", 64)
    B[tx] = 100 // {divisor} + tx // 3
"
            )
        };
        let divisors = [("A[tx]", true), ("T.max(A[tx], 1)", false), ("(tx + 1)", false)];
        for (divisor, may_be_zero) in divisors {
            let kernel = coulis_script::parse_module(&text(divisor)).unwrap().remove(0);
            assert_eq!(first_unproven_divisor(&kernel).is_some(), may_be_zero, "{divisor}");
        }
    }

    #[test]
    fn loops_in_one_whose_extents_may_be_negative_stay_inside() {
        let text = |outer: &str| {
            format!(
                "@T.prim_func
def fill(A_ptr: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(A_ptr, (n, m), \"float32\")
    for f in range({outer} * (m - 2)): A[f // (m - 2) + 2, f % (m - 2)] = T.float32(0)
"
            )
        };
        // Two negative extents have a positive product.
        let index = "`A[f // (m - 2) + 2, f % (m - 2)]`";
        for (outer, unproven) in [("T.max(n - 2, 0)", None), ("(n - 2)", Some(index))] {
            let kernel = coulis_script::parse_module(&text(outer)).unwrap().remove(0);
            assert_eq!(first_unproven(&kernel).as_deref(), unproven, "{outer}");
        }
    }

    #[test]
    fn accesses_of_tile_programs_are_bounded_by_their_scope_ids() {
        let text = |read: &str| {
            format!(
                "@T.prim_func
def rows(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (32, 4), \"float32\", layout=TileLayout(S[(32, 4)]))
    B = T.match_buffer(B_ptr, (32,), \"float32\", layout=TileLayout(S[(32,) : (1,)]))
    T.device_entry(); T.cta_id([1]); tx = T.thread_id([32])
    mine = T.alloc_buffer([4], \"float32\", scope=\"local\")
    total = T.alloc_buffer([1], \"float32\", scope=\"local\")
    for i in T.serial(4): mine[i] = {read}
    Tx.sum(total, mine, accum=False)
    B[tx] = total[0]
"
            )
        };
        for (read, unproven) in [("A[tx, i]", None), ("A[tx, i + 1]", Some("`A[tx, i + 1]`"))] {
            let kernel = coulis_script::parse_module(&text(read)).unwrap().remove(0);
            let target = Target::cuda("sm_90a").unwrap();
            assert_eq!(first_unproven(&launched(&kernel, &target)).as_deref(), unproven);
            assert_eq!(first_unproven_divisor(&launched(&kernel, &target)), None);
        }
    }
}
