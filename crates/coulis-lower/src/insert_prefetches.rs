//! Loops under `pragma_prefetch`, `pragma_prefetch_l2` or `pragma_prefetch_bytes` say ahead of time which memory they will
//! read.
//!
//! The value of the pragma is a distance. That of the first two counts iterations: each asks for what the iteration that many
//! later reads from buffers that it does not write, one cache line at a time and no line twice, not even where it walks the
//! same memory again in another loop. The value of the third counts bytes, for loops that go through memory front to back: each
//! access asks for what lies so far behind it, so that all of an iteration that is cut into loops and single accesses is asked
//! for in the same order; by more than 16 KiB into the second-level cache only.
//!
//! Hardware finds straight streams by itself, but late: it forgets them at the end of each page, loses them among several, and
//! brings lines only as far as the second cache; a loop that computes while it reads waits there. Lines that the other side of a
//! branch reads, or that depend on what the iteration computes, are left out, and so are the hints of an iteration that would
//! need more than [`MAX_LINES`]. A hint may lie outside of its buffer, so none needs a guard.
//!
//! Where the iterations of a loop below read pieces of several rows that together are one stretch of memory, they ask
//! for it front to back, each for its share, and not row after row for what the same iteration reads later: hardware
//! that then reads ahead follows one stream, and a memory that is asked in that order waits less.
//!
//! Rows that the iterations walk side by side are asked for into the first cache a line further ahead each than the one before:
//! where they lie a multiple of 4 KiB apart, what one iteration reads of them has the same few places of that cache.
//!
//! Order: after unrolling and the last simplification, when one iteration's reads stand side by side with constant
//! distances; before common subexpressions get names.

use std::cell::RefCell;

use coulis_ir::expr::{BinaryOp, Expr, Node, Var};
use coulis_ir::hash::{FastMap, FastSet};
use coulis_ir::remark::{PREFETCH, PREFETCH_BYTES, PREFETCH_L2, PREFETCH_NEAR_BYTES, is_pragma};
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::{for_each_expr, for_each_stmt, substitute_expr, uses_any};
use coulis_ir::{Atom, AtomCall, Attr, Buffer, Element, Form, Kernel, MemScope, Stmt, VarId};

use crate::affine::{product, split, sum};
use crate::pass::{LowerError, Options, Pass};
use crate::walk::map_children;

/// The pass.
pub const PASS: Pass = Pass {
    name: "insert_prefetches",
    from: Form::Flat,
    to: Form::Flat,
    run: insert_prefetches,
    doc: "asks ahead of time for the memory that loops under a prefetch pragma will read",
};

/// Most lines that one iteration asks for.
pub const MAX_LINES: usize = 64;
/// Bytes that one hint brings.
const LINE: i128 = 64;
/// Iterations of a loop below by which a stretch that is asked for front to back is asked for earlier: its last lines are else asked
/// for right before the first of these iterations reads some of them.
const LEAD: i128 = 2;

/// Asks ahead of time for the memory that loops under a prefetch pragma will read.
pub fn insert_prefetches(kernel: Kernel, _: &Options) -> Result<Kernel, LowerError> {
    let body = walk(kernel.body, None);
    Ok(Kernel { body, ..kernel })
}

/// How far ahead of what a loop reads it asks.
#[derive(Clone, Copy)]
enum Distance {
    Iterations(i64),
    Bytes(i64),
}

/// `asked`: the hint and the distance of a pragma whose loop has not been met yet.
fn walk(stmt: Stmt, asked: Option<(Atom, Distance)>) -> Stmt {
    match stmt {
        Stmt::Annotate { key, value: Attr::Int(n), body, .. } if is_pragma(&key, PREFETCH) => {
            walk(*body, Some((Atom::Prefetch, Distance::Iterations(n))))
        }
        Stmt::Annotate { key, value: Attr::Int(n), body, .. } if is_pragma(&key, PREFETCH_L2) => {
            walk(*body, Some((Atom::PrefetchL2, Distance::Iterations(n))))
        }
        Stmt::Annotate { key, value: Attr::Int(n), body, .. } if is_pragma(&key, PREFETCH_BYTES) => {
            let hint = if n <= PREFETCH_NEAR_BYTES { Atom::Prefetch } else { Atom::PrefetchL2 };
            walk(*body, Some((hint, Distance::Bytes(n))))
        }
        Stmt::For { var, min, extent, kind, body } => {
            let mut body = walk(*body, None);
            if let Some((hint, distance)) = asked
                && let Some((ahead, bytes)) = distance.of(&var)
            {
                let mut written = FastSet::default();
                for_each_stmt(&body, &mut |s| {
                    if let Stmt::Store { buffer, .. } = s {
                        written.insert(buffer.data.id());
                    }
                });
                let done = RefCell::default();
                body = Hints { hint, var: var.clone(), ahead, bytes, written, done }.body(body);
            }
            Stmt::for_(var, min, extent, kind, body)
        }
        other => map_children(other, &mut |s| walk(s, asked)),
    }
}

impl Distance {
    /// The iteration of the loop whose memory is asked for, and how many bytes behind that; `None` for no distance.
    fn of(self, var: &Var) -> Option<(Expr, i128)> {
        match self {
            Distance::Iterations(0) | Distance::Bytes(0) => None,
            Distance::Iterations(n) => Some((sum(var.expr(), Expr::int_of(n.into(), var.dtype())), 0)),
            Distance::Bytes(n) => Some((var.expr(), n.into())),
        }
    }
}

/// Bytes `start..end` from the element `base` of a buffer.
struct Span {
    buffer: Buffer,
    base: Expr,
    start: i128,
    end: i128,
    /// Whether the next iteration goes on behind them, so that the loop walks one row from end to end.
    goes_on: bool,
}

/// Bytes from an element of some memory on.
type Done = FastMap<(VarId, Expr), Vec<(i128, i128)>>;

struct Hints {
    hint: Atom,
    var: Var,
    /// The iteration that is asked for, in place of `var`.
    ahead: Expr,
    /// Bytes behind what that reads.
    bytes: i128,
    /// Memory that the loop writes.
    written: FastSet<VarId>,
    /// What has been asked for in an iteration.
    done: RefCell<Done>,
}

impl Hints {
    /// The body of the loop, or of a loop in it, with hints at its head for what stands right in it.
    fn body(&self, body: Stmt) -> Stmt {
        self.body_of(body, None)
    }

    /// The same of the body of `turns`, where that is a loop below.
    fn body_of(&self, body: Stmt, turns: Option<&Turns>) -> Stmt {
        let mut spans = Vec::new();
        self.collect(&body, &mut Vec::new(), &mut spans);
        spans.retain(|span| self.is_new(span, turns));
        let hints = lines(self.hint, spans, turns);
        let body = self.inner(body);
        Stmt::seq(hints.into_iter().chain([body]))
    }

    /// The loops below, each with hints of its own.
    fn inner(&self, stmt: Stmt) -> Stmt {
        match stmt {
            Stmt::For { var, min, extent, kind, body } => {
                let n_turns = extent.as_int().filter(|_| min.as_int() == Some(0));
                let turns = n_turns.map(|n_turns| Turns { var: var.clone(), n_turns });
                let body = self.body_of(*body, turns.as_ref());
                Stmt::for_(var, min, extent, kind, body)
            }
            // The first side is the one that goes on; what it reads is asked for where it begins.
            Stmt::If { cond, then, otherwise: Some(otherwise) } => {
                Stmt::If { cond, then: Box::new(self.body(*then)), otherwise: Some(otherwise) }
            }
            other => map_children(other, &mut |s| self.inner(s)),
        }
    }

    /// Whether some of the bytes that a span asks for have not been asked for, which they are from here on: those of all turns of a loop,
    /// where these leave none out between them.
    fn is_new(&self, span: &Span, turns: Option<&Turns>) -> bool {
        let width = span.buffer.dtype.bytes() as i128;
        let (mut base, mut bytes) = (span.base.clone(), (span.start, span.end));
        if let Some(turns) = turns
            && let Some(place) = split(&span.base, &turns.var)
            && let Some(step) = place.coeff.as_int().map(|step| step * width)
            && step.abs() <= bytes.1 - bytes.0
        {
            let last = step * (turns.n_turns - 1).max(0);
            (base, bytes) = (place.rest, (bytes.0 + last.min(0), bytes.1 + last.max(0)));
        }
        let mut done = self.done.borrow_mut();
        let known = done.entry((span.buffer.data.id(), base)).or_default();
        if known.iter().any(|(start, end)| *start <= bytes.0 && bytes.1 <= *end) {
            return false;
        }
        // Stretches that touch are one.
        known.retain(|(start, end)| {
            let touches = *start <= bytes.1 && bytes.0 <= *end;
            if touches {
                bytes = (bytes.0.min(*start), bytes.1.max(*end));
            }
            !touches
        });
        known.push(bytes);
        true
    }

    /// What the statements read that stand in the body itself, not in loops below. `bound`: variables that have no
    /// value at its head.
    fn collect(&self, stmt: &Stmt, bound: &mut Vec<Var>, spans: &mut Vec<Span>) {
        match stmt {
            Stmt::For { .. } | Stmt::If { otherwise: Some(_), .. } => return,
            Stmt::Let { var, .. } => bound.push(var.clone()),
            _ => {}
        }
        for expr in coulis_ir::visit::stmt_exprs(stmt) {
            for_each_expr(expr, &mut |e| {
                if let Node::Load(buffer, indices) = e.node()
                    && let [index] = indices.as_slice()
                    && buffer.scope == MemScope::Global
                    && !self.written.contains(&buffer.data.id())
                {
                    self.span(buffer, index, bound, spans);
                }
            });
        }
        for child in coulis_ir::visit::stmt_children(stmt) {
            self.collect(child, bound, spans);
        }
    }

    /// What one access reads in the iteration that is asked for.
    fn span(&self, buffer: &Buffer, index: &Expr, bound: &[Var], spans: &mut Vec<Span>) {
        let width = buffer.dtype.bytes() as i128;
        let (first, step, lanes) = match index.node() {
            Node::Ramp(base, stride) => (base.clone(), Some(stride.clone()), i128::from(index.lanes())),
            _ if index.lanes() == 1 => (index.clone(), None, 1),
            _ => return,
        };
        if first.reads_memory()
            || uses_any(&first, bound)
            || !uses_any(&first, std::slice::from_ref(&self.var))
        {
            return;
        }
        let map = FastMap::from_iter([(self.var.clone(), self.ahead.clone())]);
        let moves = split(&first, &self.var).and_then(|place| place.coeff.as_int()).unwrap_or(0) * width;
        let goes_on = 0 < moves && moves <= LINE;
        let mut add = |first: Expr, elements: i128| {
            let (base, offset) = apart(&Analyzer::new().simplify(&substitute_expr(&first, &map)));
            let start = offset * width + self.bytes;
            spans.push(Span { buffer: buffer.clone(), base, start, end: start + elements * width, goes_on });
        };
        let constant = step.as_ref().map_or(Some(1), Expr::as_int);
        match (constant, step) {
            (Some(0), _) => add(first, 1),
            (Some(step), _) if step > 0 && step * width <= LINE => add(first, (lanes - 1) * step + 1),
            (_, Some(step)) if lanes <= MAX_LINES as i128 && !uses_any(&step, bound) => {
                for lane in 0..lanes {
                    let lane = Expr::int_of(lane, step.dtype());
                    add(sum(first.clone(), product(step.clone(), lane)), 1);
                }
            }
            _ => {}
        }
    }
}

/// The index without its constant summand, and that.
fn apart(index: &Expr) -> (Expr, i128) {
    match index.node() {
        Node::Binary(BinaryOp::Add, a, b) => match (a.as_int(), b.as_int()) {
            (None, Some(c)) => (a.clone(), c),
            _ => (index.clone(), 0),
        },
        Node::Binary(BinaryOp::Sub, a, b) => match b.as_int() {
            Some(c) => (a.clone(), -c),
            None => (index.clone(), 0),
        },
        _ => (index.clone(), 0),
    }
}

/// A loop of a known number of iterations from 0 on.
struct Turns {
    var: Var,
    n_turns: i128,
}

/// Lines that are asked for at the head of one iteration, by their bytes from the element `base`, in ascending order.
struct Asked {
    base: Expr,
    starts: Vec<i128>,
}

impl Asked {
    /// Each line that the spans touch, from the lowest address up. The spans ascend, and have the base.
    fn of(base: Expr, near: &[Span]) -> Asked {
        let (mut starts, mut done) = (Vec::new(), i128::MIN);
        for span in near {
            let mut at = span.start.max(done);
            while at < span.end {
                starts.push(at);
                at += LINE;
                done = at;
            }
        }
        Asked { base, starts }
    }

    /// As many lines of the stretch that all iterations of `turns` ask for, or [`LEAD`] iterations on, such that they ask for memory
    /// front to back; `None` where they ask for no such stretch. `width`: bytes of an element.
    fn front_to_back(&self, turns: &Turns, width: i128) -> Option<Asked> {
        let place = split(&self.base, &turns.var)?;
        let piece = place.coeff.as_int()? * width;
        let (first, n_lines) = (*self.starts.first()?, self.starts.len());
        if piece <= 0 || piece % LINE != 0 {
            return None;
        }
        let of_a_piece = usize::try_from(piece / LINE).ok()?;
        let is_piece = |(row, lines): (usize, &[i128])| {
            let begin = first + row as i128 * piece * turns.n_turns;
            let are_dense = lines.iter().enumerate().all(|(i, at)| *at == begin + i as i128 * LINE);
            lines.len() == of_a_piece && are_dense
        };
        if n_lines == of_a_piece || !self.starts.chunks(of_a_piece).enumerate().all(is_piece) {
            return None;
        }
        let share = n_lines as i128 * LINE;
        let step = Expr::int_of(share / width, self.base.dtype());
        let base = Analyzer::new().simplify(&sum(place.rest, product(turns.var.expr(), step)));
        let first = first + LEAD * share;
        Some(Asked { base, starts: (0..n_lines).map(|line| first + line as i128 * LINE).collect() })
    }
}

/// One hint for each line that the spans touch, from the lowest address of those with one base up; of what the iterations of
/// `turns` ask for together, front to back.
fn lines(hint: Atom, mut spans: Vec<Span>, turns: Option<&Turns>) -> Vec<Stmt> {
    let apart = if hint == Atom::Prefetch && spans.iter().all(|span| span.goes_on) { LINE } else { 0 };
    let mut hints = Vec::new();
    let mut row = 0;
    while let Some(first) = spans.first() {
        let (buffer, base) = (first.buffer.clone(), first.base.clone());
        let is_near =
            |s: &Span| s.buffer.data == buffer.data && s.buffer.dtype == buffer.dtype && s.base == base;
        let (mut near, rest): (Vec<Span>, Vec<Span>) = spans.into_iter().partition(is_near);
        spans = rest;
        near.sort_by_key(|s| s.start);
        let width = buffer.dtype.bytes() as i128;
        let asked = Asked::of(base, &near);
        let asked = turns.and_then(|turns| asked.front_to_back(turns, width)).unwrap_or(asked);
        let mut end = None;
        for at in asked.starts {
            if end.replace(at + LINE).is_some_and(|end| end < at) {
                row += 1;
            }
            let element = Expr::int_of((at + row * apart) / width, asked.base.dtype());
            let place = Element { buffer: buffer.clone(), indices: vec![sum(asked.base.clone(), element)] };
            hints.push(Stmt::Atom(Box::new(AtomCall {
                atom: hint,
                dst: None,
                memory: Some(place),
                args: Vec::new(),
            })));
        }
        row += 1;
    }
    if hints.len() > MAX_LINES { Vec::new() } else { hints }
}
