//! Loops are cut at the values from which on a likely guard holds, or stops holding.
//!
//! A guard `k.outer * 16 + k.inner < m` is solved for the loop of `k.outer`, with loops inside it at full range: it
//! surely holds for the first `m // 16` iterations. These become a loop without the guard, the others a loop that
//! keeps it. Thread indices around the loop count like loops inside it, so that all threads of a block run the same
//! loops. Where the guard has no loop variable inside, it surely fails past the cut, so that the second loop loses
//! what it guards. Guards that state a lower bound are cut off in front. A parallel loop is not cut but gets a branch
//! on its index, so that its threads start once, and not that for guards at which a loop in it is cut anyway; vectorized and
//! unrolled loops stay whole. Where guards are on the lanes of vectors alone, a vector past the cut is said not to be whole. But in a part that keeps
//! guards, on the CPU, a guarded unrolled loop is cut like a serial one and becomes one, as does one whose guards are
//! only on lanes of its vectors: such a part runs seldom, and writing its loops out, a copy for every length of vector,
//! would take most of the text and of the time that a compiler needs for it.
//!
//! A launch of blocks is no loop that could be cut; where a guard mentions a block index, and threads do not work
//! together in the kernel, the blocks for which it surely holds take a branch without it.
//!
//! Blocks for which guards on the lanes of vectors surely hold copy whole vectors, in a branch around the loops of those
//! vectors alone, whatever the number of blocks: such a guard would keep the loads of several vectors from being under way
//! at once. So do blocks whose vectors are read again, where runs are walked a second time: what is read under a condition
//! does not stay in registers until then. Loops that both branches begin with stand in front of the branch. In a part that
//! keeps such guards, steps over vectors stay a loop: written out they would be most of the text.
//!
//! On the CPU constant lengths are partitioned like others, but not for guards that are only on lanes of vectors beside loops: a
//! part without these would be all of the loops again. Elsewhere only loops of unknown length are, as the reference has it, and
//! loops that hold unrolled ones, each step of which would have its guard. Simple mode leaves all loops whole. Order: after
//! `hoist_ifs`, so that a row's guard is out of its inner loops; before `vectorize_loops`, so that the main part has no guard on
//! lanes.
//!
//! Source: seed 003, listing 6.

use std::cell::RefCell;

use coulis_ir::expr::{BinaryOp, Expr, Intrinsic, Node, Var};
use coulis_ir::hash::FastMap;
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::{any_stmt, for_each_expr, for_each_stmt, rewrite_stmt, substitute_expr};
use coulis_ir::{Form, Kernel, LoopKind, Stmt, TargetKind};

use crate::affine::{ceil_quotient, conjuncts, difference, floor_quotient, is_part_of, sum, uses, widen};
use crate::binders::copy_with;
use crate::branch::branch;
use crate::guarded_steps::{
    guards_lanes, is_beside_loops, may_stay_a_loop, reads_vectors_again, writes_steps_out,
};
use crate::loop_guards::{Guard, Inside, Side, guards_of, in_part_of_lanes, serial_loops};
use crate::pass::{LowerError, Options, Pass};
use crate::simplify::{with_let, with_loop, with_sizes};
use crate::walk::map_children;

/// The pass.
pub const PASS: Pass = Pass {
    name: "partition_loops",
    from: Form::Nest,
    to: Form::Nest,
    run: partition_loops,
    doc: "cuts loops where likely guards begin or cease to hold, so that the main part has none",
};

/// How many guarded parts may nest before loops in them stay whole; bounds the growth of the text.
const MAX_DEPTH: u32 = 3;

/// Cuts loops at their likely guards.
pub fn partition_loops(kernel: Kernel, options: &Options) -> Result<Kernel, LowerError> {
    if options.simple_mode {
        return Ok(kernel);
    }
    let cut_constant = match options.target.kind {
        TargetKind::Cpu => true,
        TargetKind::Cuda | TargetKind::Hip => false,
    };
    let partition = Partition {
        cut_constant,
        threads: RefCell::default(),
        blocks: RefCell::default(),
        launched: RefCell::default(),
    };
    let known = with_sizes(&kernel);
    let body = partition.stmt(kernel.body, &known, 0);
    Ok(Kernel { body, ..kernel })
}

struct Partition {
    cut_constant: bool,
    /// Thread indices around the statement, with their ranges: all threads of a block cut a loop at the same place.
    threads: RefCell<Inside>,
    /// Block indices around the statement, of launches of unknown length.
    blocks: RefCell<Vec<Var>>,
    /// Block indices around the statement.
    launched: RefCell<Vec<Var>>,
}

impl Partition {
    fn stmt(&self, stmt: Stmt, known: &Analyzer, depth: u32) -> Stmt {
        match stmt {
            Stmt::For { .. } | Stmt::Allocate { .. } if depth == 0 => self.whole_vectors(stmt, known),
            other => self.inside(other, known, depth),
        }
    }

    /// Loops with vectors, in a branch without guards on their lanes for the blocks that need none; where
    /// vectors are read again, without any guards on them.
    fn whole_vectors(&self, stmt: Stmt, known: &Analyzer) -> Stmt {
        let mut lanes = Vec::new();
        for_each_stmt(&stmt, &mut |s| {
            if let Stmt::For { var, kind: LoopKind::Vectorized, .. } = s {
                lanes.push(var.clone());
            }
        });
        // Loops are cut instead.
        let read_again = !matches!(stmt, Stmt::For { .. }) && reads_vectors_again(&stmt);
        let (mut facts, mut conditions) = (Vec::new(), Vec::new());
        let launched = self.launched.borrow().clone();
        for block in launched.iter().filter(|_| !lanes.is_empty() && !is_cooperative(&stmt)) {
            let counts = |g: &Guard| read_again || lanes.iter().any(|lane| uses(&g.cond, lane));
            let is_met = |g: &Guard| g.side == Side::Below && counts(g);
            for guard in guards_of(&stmt, block, &self.threads.borrow(), known).into_iter().filter(is_met) {
                let (index, cut) = Expr::promoted(block.expr(), guard.cut);
                let holds = known.simplify(&index.lt(cut));
                if !conditions.contains(&holds) {
                    conditions.push(holds);
                }
                facts.push((guard.cond, true));
            }
        }
        let Some(cond) = conditions.into_iter().reduce(Expr::and) else { return self.allocated(stmt, known) };
        let fast = copy_with(&assume(stmt.clone(), &facts), &FastMap::default());
        branch(cond, self.inside(fast, known, 0), self.inside(stmt, known, 1))
    }

    /// What stands in allocations that lie in each other: vectors in the outermost are those in the innermost.
    fn allocated(&self, stmt: Stmt, known: &Analyzer) -> Stmt {
        match stmt {
            Stmt::Allocate { buffer, body } if matches!(*body, Stmt::Allocate { .. }) => {
                Stmt::allocate(buffer, self.allocated(*body, known))
            }
            other => self.inside(other, known, 0),
        }
    }

    fn inside(&self, stmt: Stmt, known: &Analyzer, depth: u32) -> Stmt {
        match stmt {
            Stmt::For { var, min, extent, kind, body } => {
                let constant = min.as_int().is_some() && extent.as_int().is_some();
                let may_cut = match kind {
                    LoopKind::Serial | LoopKind::Parallel => depth <= MAX_DEPTH,
                    LoopKind::Unrolled => self.cut_constant && 0 < depth && depth <= MAX_DEPTH,
                    LoopKind::Vectorized => false,
                };
                let cuts = self.cut_constant || !constant || writes_steps_out(&body);
                let is_in_rest = kind == LoopKind::Unrolled && depth > 0;
                if is_in_rest && !self.cut_constant && min.is_int(0) && may_stay_a_loop(&var, &body) {
                    let body = self.stmt(*body, &with_loop(known, &var, &min, &extent), depth);
                    return Stmt::rolled(var, extent, body);
                }
                let mut guards = if may_cut && cuts && !is_cooperative(&body) {
                    guards_of(&body, &var, &self.threads.borrow(), known)
                } else {
                    Vec::new()
                };
                if self.cut_constant {
                    guards = worth_a_cut(guards, kind, &body);
                }
                let stays = is_in_rest && self.cut_constant && (!guards.is_empty() || guards_lanes(&body));
                let kind = if stays { LoopKind::Serial } else { kind };
                if guards.is_empty() {
                    let body = self.stmt(*body, &with_loop(known, &var, &min, &extent), depth);
                    return Stmt::for_(var, min, extent, kind, body);
                }
                self.cut(Loop { var, min, extent, kind, body: *body }, guards, known, depth)
            }
            Stmt::LaunchThread { tag, var, extent, body } => {
                let zero = Expr::int_of(0, var.dtype());
                let inner = with_loop(known, &var, &zero, &extent);
                let outer = (self.threads.borrow().len(), self.blocks.borrow().len());
                let n_launched = self.launched.borrow().len();
                if tag.is_thread() {
                    self.threads.borrow_mut().push((var.clone(), Some((zero, extent.clone()))));
                } else {
                    self.launched.borrow_mut().push(var.clone());
                    if extent.as_int().is_none() {
                        self.blocks.borrow_mut().push(var.clone());
                    }
                }
                let body = match *body {
                    launch @ Stmt::LaunchThread { .. } => self.stmt(launch, &inner, depth),
                    whole => self.kernel_body(whole, &inner, depth),
                };
                self.threads.borrow_mut().truncate(outer.0);
                self.blocks.borrow_mut().truncate(outer.1);
                self.launched.borrow_mut().truncate(n_launched);
                let body = Box::new(body);
                Stmt::LaunchThread { tag, var, extent, body }
            }
            Stmt::Let { var, value, body } => {
                let body = self.stmt(*body, &with_let(known, &var, &value), depth);
                Stmt::let_(var, value, body)
            }
            other => map_children(other, &mut |s| self.stmt(s, known, depth)),
        }
    }

    /// What every thread of a launch executes: blocks for which guards surely hold take a branch without them.
    fn kernel_body(&self, body: Stmt, known: &Analyzer, depth: u32) -> Stmt {
        let blocks = self.blocks.borrow().clone();
        let (mut facts, mut condition) = (Vec::new(), None::<Expr>);
        for block in blocks.iter().filter(|_| !is_cooperative(&body)) {
            let guards = guards_of(&body, block, &self.threads.borrow(), known);
            for guard in guards.into_iter().filter(|g| g.side == Side::Below) {
                let (index, cut) = Expr::promoted(block.expr(), guard.cut);
                let holds = known.simplify(&index.lt(cut));
                condition = Some(match condition {
                    None => holds,
                    Some(earlier) if earlier == holds => earlier,
                    Some(earlier) => earlier.and(holds),
                });
                facts.push((guard.cond, true));
            }
        }
        let Some(cond) = condition else { return self.stmt(body, known, depth) };
        let fast = copy_with(&assume(body.clone(), &facts), &FastMap::default());
        let then = Box::new(self.stmt(fast, known, depth));
        Stmt::If { cond, then, otherwise: Some(Box::new(self.stmt(body, known, depth))) }
    }

    fn cut(&self, target: Loop, guards: Vec<Guard>, known: &Analyzer, depth: u32) -> Stmt {
        let mut cuts = Cuts { target: &target, known: known.clone(), lets: Vec::new() };
        let zero = Expr::int_of(0, target.var.dtype());
        let end = target.extent.clone();
        let of = |side: Side| guards.iter().filter(move |g| g.side == side);
        // Offsets from the loop's first value. Lower bounds all fail before `wake`, all hold from `begin` on; upper
        // bounds all hold before `stop`, all fail from `sleep` on.
        let wake = cuts.offset(of(Side::From).map(|g| &g.fail), Expr::min).unwrap_or_else(|| zero.clone());
        let begin = cuts.offset(of(Side::From).map(|g| &g.cut), Expr::max).unwrap_or_else(|| zero.clone());
        let stop = cuts.offset(of(Side::Below).map(|g| &g.cut), Expr::min).unwrap_or_else(|| end.clone());
        let stop = cuts.at_least(stop, &begin);
        let sleep = cuts.offset(of(Side::Below).map(|g| &g.fail), Expr::max).unwrap_or_else(|| end.clone());
        let sleep = if begin.is_int(0) { sleep } else { cuts.at_least(sleep, &stop) };
        let facts = |value: bool, guards: &mut dyn Iterator<Item = &Guard>| -> Vec<(Expr, bool)> {
            guards.map(|g| (g.cond.clone(), value)).collect()
        };
        let (known, lets) = (cuts.known, cuts.lets);
        let in_part =
            self.cut_constant.then(|| in_part_of_lanes(&target.var, &target.body, &guards)).flatten();
        let pieces = vec![
            (zero, wake.clone(), facts(false, &mut of(Side::From)), depth + 1),
            (wake, begin.clone(), Vec::new(), depth + 1),
            (begin, stop.clone(), facts(true, &mut guards.iter()), depth),
            (stop, sleep.clone(), Vec::new(), depth + 1),
            (sleep, end, facts(false, &mut of(Side::Below)), depth + 1),
        ];
        let parts = if target.kind == LoopKind::Parallel {
            self.branch_on_index(target, pieces, &known)
        } else {
            // The fourth is where some lanes of a vector may be left.
            let bodies = [None, None, None, in_part, None].into_iter();
            let bodies = bodies.map(|holds| match holds {
                Some(holds) => Stmt::if_(holds, target.body.clone()),
                None => target.body.clone(),
            });
            let parts = pieces.into_iter().zip(bodies);
            Stmt::seq(parts.map(|(piece, body)| self.piece(&target, piece, body, &known, &lets)))
        };
        lets.into_iter().rev().fold(parts, |body, (var, value)| Stmt::let_(var, value, body))
    }

    /// One loop of the sequence that replaces the whole one.
    fn piece(
        &self,
        target: &Loop,
        (from, to, facts, depth): Piece,
        body: Stmt,
        known: &Analyzer,
        lets: &[(Var, Expr)],
    ) -> Stmt {
        let length = target.length(&from, &to, known);
        if length.as_int().is_some_and(|n| n <= 0) || is_empty_in_each_case(&length, known, lets) {
            return Stmt::NOP;
        }
        let body = assume(body, &facts);
        if body.is_nop() {
            return Stmt::NOP;
        }
        let var = target.var.fresh();
        let single = length.is_int(1);
        let zero = Expr::int_of(0, var.dtype());
        let step = if single { zero.clone() } else { var.expr() };
        let at = known.simplify(&sum(sum(target.min.clone(), from), step));
        let body = copy_with(&body, &FastMap::from_iter([(target.var.clone(), at)]));
        if single {
            return self.stmt(body, known, depth);
        }
        let body = self.stmt(body, &with_loop(known, &var, &zero, &length), depth);
        Stmt::for_(var, zero, length, target.kind, body)
    }

    /// The parallel loop over all pieces, with a branch for the piece of each index.
    fn branch_on_index(&self, target: Loop, pieces: Vec<Piece>, known: &Analyzer) -> Stmt {
        let inner = with_loop(known, &target.var, &target.min, &target.extent);
        let mut otherwise: Option<Stmt> = None;
        for (from, to, facts, depth) in pieces.into_iter().rev() {
            if target.length(&from, &to, known).as_int().is_some_and(|n| n <= 0) {
                continue;
            }
            let body = assume(target.body.clone(), &facts);
            let body = self.stmt(copy_with(&body, &FastMap::default()), &inner, depth);
            otherwise = Some(match otherwise {
                None => body,
                Some(rest) if rest == body => body,
                Some(rest) => {
                    let below = target.var.expr().lt(sum(target.min.clone(), to));
                    let otherwise = Some(Box::new(rest)).filter(|s| !s.is_nop());
                    Stmt::If { cond: inner.simplify(&below), then: Box::new(body), otherwise }
                }
            });
        }
        let body = otherwise.unwrap_or(Stmt::NOP);
        Stmt::for_(target.var, target.min, target.extent, target.kind, body)
    }
}

/// First offset, offset past the last, comparisons whose value is known in it, and depth of what is in it.
type Piece = (Expr, Expr, Vec<(Expr, bool)>, u32);

struct Loop {
    var: Var,
    min: Expr,
    extent: Expr,
    kind: LoopKind,
    body: Stmt,
}

/// The offsets at which a loop is cut. One that had to be held within the loop gets a name.
struct Cuts<'a> {
    target: &'a Loop,
    known: Analyzer,
    lets: Vec<(Var, Expr)>,
}

impl Cuts<'_> {
    /// The offset of the strictest cut, between 0 and the extent; `None` without cuts.
    fn offset<'g>(
        &mut self,
        cuts: impl Iterator<Item = &'g Expr>,
        strictest: fn(Expr, Expr) -> Expr,
    ) -> Option<Expr> {
        let cut = cuts.cloned().reduce(|a, b| {
            let (a, b) = Expr::promoted(a, b);
            strictest(a, b)
        })?;
        let (cut, min) = Expr::promoted(cut, self.target.min.clone());
        let offset = self.known.simplify(&difference(cut, min));
        let dtype = offset.dtype();
        let (zero, extent) = (Expr::int_of(0, dtype), widen(self.target.extent.clone(), dtype));
        let fits = offset == extent
            || is_part_of(&offset, &extent)
            || self.known.can_prove(&offset.clone().le(extent.clone()));
        let offset = if fits { offset } else { offset.min(extent) };
        let positive = self.known.can_prove(&offset.clone().ge(zero.clone()));
        let offset = if positive { offset } else { offset.max(zero) };
        Some(self.named(widen(self.known.simplify(&offset), self.target.var.dtype())))
    }

    /// `offset`, or `least` where that is larger. Both are within the loop, so that nothing is larger than its end.
    fn at_least(&mut self, offset: Expr, least: &Expr) -> Expr {
        let is_end = offset == self.target.extent;
        if is_end
            || least.is_int(0)
            || offset == *least
            || self.known.can_prove(&offset.clone().ge(least.clone()))
        {
            return offset;
        }
        let larger = self.known.simplify(&offset.max(least.clone()));
        self.named(larger)
    }

    fn named(&mut self, offset: Expr) -> Expr {
        let mut clamped = false;
        for_each_expr(&offset, &mut |e| {
            clamped |= matches!(e.node(), Node::Binary(BinaryOp::Min | BinaryOp::Max, ..));
        });
        if !clamped {
            return offset;
        }
        if let Some((var, _)) = self.lets.iter().find(|(_, value)| *value == offset) {
            return var.expr();
        }
        let var = Var::size(&format!("{}_cut", self.target.var.name()), offset.dtype());
        self.known = with_let(&self.known, &var, &offset);
        self.lets.push((var.clone(), offset));
        var.expr()
    }
}

/// Those guards of a loop on a CPU that are worth a second copy of it, and those that the same cut decides.
fn worth_a_cut(mut guards: Vec<Guard>, kind: LoopKind, body: &Stmt) -> Vec<Guard> {
    if kind == LoopKind::Parallel {
        // A loop in it is cut at the guard anyway.
        let inner = serial_loops(body);
        guards.retain(|g| !inner.iter().any(|var| uses(&g.cond, var)));
    }
    let (mut worth, others): (Vec<Guard>, Vec<Guard>) =
        guards.into_iter().partition(|g| !is_beside_loops(body, &g.cond));
    let decided: Vec<Guard> = others.into_iter().filter(|g| worth.iter().any(|w| w.cuts_as(g))).collect();
    worth.extend(decided);
    worth
}

/// Whether a length is at most 0 for each of a few values of an index in it.
fn is_empty_in_each_case(length: &Expr, known: &Analyzer, lets: &[(Var, Expr)]) -> bool {
    let inlined = |length: Expr, (var, value): &(Var, Expr)| {
        substitute_expr(&length, &FastMap::from_iter([(var.clone(), value.clone())]))
    };
    let length = lets.iter().rev().fold(length.clone(), inlined);
    let zero = Expr::int_of(0, length.dtype());
    known.fails_in_each_case(&zero.lt(length))
}

impl Loop {
    /// `to - from`, in the spelling of the reference where it is the rest of a split.
    fn length(&self, from: &Expr, to: &Expr, known: &Analyzer) -> Expr {
        if let (Some((whole, by)), Some((part, by2))) = (ceil_quotient(to), floor_quotient(from))
            && by == by2
            && whole == part
        {
            let dtype = to.dtype();
            let (by, less) = (Expr::int_of(by, dtype), Expr::int_of(by - 1, dtype));
            let rest = sum(part.floormod(by.clone()), less).floordiv(by);
            return known.simplify(&rest);
        }
        known.simplify(&difference(to.clone(), from.clone()))
    }
}

/// Whether threads meet in the body, so that it must not be cut.
fn is_cooperative(body: &Stmt) -> bool {
    let is_hint = |s: &Stmt| matches!(s, Stmt::Atom(call) if call.atom.is_hint());
    any_stmt(body, &mut |s| matches!(s, Stmt::Tile(_) | Stmt::Sync(_) | Stmt::Atom(_)) && !is_hint(s))
}

/// The statement with comparisons replaced by what is known of them, and branches on constants taken.
fn assume(stmt: Stmt, facts: &[(Expr, bool)]) -> Stmt {
    let facts: FastMap<Expr, bool> = facts.iter().cloned().collect();
    if facts.is_empty() {
        return stmt;
    }
    let mut done = FastMap::default();
    rewrite_stmt(stmt, &mut |e| Some(replace(e, &facts, &mut done)), &mut |s| match s {
        Stmt::If { cond, then, otherwise } => {
            let parts = conjuncts(&cond);
            if parts.iter().all(|c| c.is_int(1)) {
                *then
            } else if parts.iter().any(|c| c.is_int(0)) {
                otherwise.map_or(Stmt::NOP, |s| *s)
            } else {
                Stmt::If { cond, then, otherwise }
            }
        }
        Stmt::For { body, .. } if body.is_nop() => Stmt::NOP,
        other => other,
    })
}

fn replace(expr: &Expr, facts: &FastMap<Expr, bool>, done: &mut FastMap<Expr, Expr>) -> Expr {
    if let Some(&value) = facts.get(expr) {
        return Expr::bool(value);
    }
    if let Some(known) = done.get(expr) {
        return known.clone();
    }
    let new = coulis_ir::visit::map_children(expr, &mut |child| replace(child, facts, done));
    let new = match new.node() {
        Node::Binary(BinaryOp::And, a, b) if a.is_int(1) => b.clone(),
        Node::Binary(BinaryOp::And, a, b) if b.is_int(1) => a.clone(),
        Node::Call(Intrinsic::Likely, args) if args[0].as_int().is_some() => args[0].clone(),
        _ => new,
    };
    done.insert(expr.clone(), new.clone());
    new
}
