//! Accesses of threads to shared memory, and whether two of them may meet in one place from different threads.
//!
//! An access is normalised to a sum of digits (thread indices and loop variables with constant factors) and a rest that
//! all threads share. Two accesses of one thread never meet another thread's where the digits of threads tell every
//! thread apart beside everything that varies below and above them. What is not of this shape counts as meeting.

use std::collections::HashMap;

use coulis_ir::expr::{Expr, Node, Var};
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::{for_each_expr, stmt_exprs, substitute_expr};
use coulis_ir::{AtomCall, Buffer, MemScope, Stmt};

use crate::affine::{for_each_distinct, split, sum, uses};
use crate::flatten_buffers::flat_index;

/// Kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Updates in one step that no other update can split.
    Atomic,
}

/// One access to shared memory, or to other memory of a block's threads.
#[derive(Clone, Debug)]
pub struct Access {
    /// The buffer.
    pub buffer: Buffer,
    /// Its indices.
    pub indices: Vec<Expr>,
    /// What is done.
    pub kind: Kind,
    /// Loops around the access, below the point where it is looked at, with constant extents where they have them.
    pub loops: Vec<(Var, Option<i128>)>,
}

/// Whether the memory is shared by the threads of a block.
pub fn is_shared(buffer: &Buffer) -> bool {
    match buffer.scope {
        MemScope::Shared | MemScope::SharedDyn => true,
        MemScope::Global | MemScope::Warp | MemScope::Local => false,
    }
}

/// The accesses of a statement to shared memory, statements below it included.
pub fn accesses_of(stmt: &Stmt) -> Vec<Access> {
    let mut found = Vec::new();
    collect(stmt, &mut Vec::new(), &mut found);
    found
}

/// The accesses of the expressions that stand directly in a statement, and of its own effect.
pub fn own_accesses(stmt: &Stmt, loops: &[(Var, Option<i128>)], found: &mut Vec<Access>) {
    let mut add = |buffer: &Buffer, indices: &[Expr], kind: Kind| {
        if is_shared(buffer) {
            let (buffer, indices) = (buffer.clone(), indices.to_vec());
            found.push(Access { buffer, indices, kind, loops: loops.to_vec() });
        }
    };
    for expr in stmt_exprs(stmt) {
        for_each_distinct(expr, &mut |e| {
            if let Node::Load(buffer, indices) = e.node() {
                add(buffer, indices, Kind::Read);
            }
        });
    }
    match stmt {
        Stmt::Store { buffer, indices, .. } => add(buffer, indices, Kind::Write),
        Stmt::Atom(call) => {
            let AtomCall { dst, memory, .. } = &**call;
            dst.iter().for_each(|e| add(&e.buffer, &e.indices, Kind::Write));
            memory.iter().for_each(|e| add(&e.buffer, &e.indices, Kind::Atomic));
        }
        _ => {}
    }
}

fn collect(stmt: &Stmt, loops: &mut Vec<(Var, Option<i128>)>, found: &mut Vec<Access>) {
    own_accesses(stmt, loops, found);
    if let Stmt::For { var, min, extent, .. } = stmt {
        loops.push((var.clone(), extent.as_int().filter(|_| min.is_int(0))));
    }
    for child in coulis_ir::visit::stmt_children(stmt) {
        collect(child, loops, found);
    }
    if let Stmt::For { .. } = stmt {
        loops.pop();
    }
}

impl Access {
    /// The access with a variable of its indices replaced.
    pub fn with(&self, map: &HashMap<Var, Expr>) -> Access {
        let indices = self.indices.iter().map(|e| substitute_expr(e, map)).collect();
        Access { indices, ..self.clone() }
    }

    fn uses(&self, var: &Var) -> bool {
        self.indices.iter().any(|e| uses(e, var))
    }
}

/// The threads of a block as indices with extents.
pub type Threads = Vec<(Var, i128)>;

/// Whether two accesses may touch one place from different threads, one of them changing it.
pub fn may_conflict(a: &Access, b: &Access, threads: &Threads, known: &Analyzer) -> bool {
    if a.buffer.data != b.buffer.data {
        return false;
    }
    match (a.kind, b.kind) {
        (Kind::Read, Kind::Read) | (Kind::Atomic, Kind::Atomic) => return false,
        _ => {}
    }
    let same_window = a.buffer.dtype == b.buffer.dtype
        && a.buffer.elem_offset == b.buffer.elem_offset
        && a.indices.len() == b.indices.len();
    if !same_window {
        return true;
    }
    if are_apart(a, b, threads, known) {
        return false;
    }
    if a.buffer.shape != b.buffer.shape || a.buffer.strides != b.buffer.strides {
        return true;
    }
    match (Place::of(a, threads, known), Place::of(b, threads, known)) {
        (Some(a), Some(b)) => !a.belongs_to_same_thread(&b, threads),
        _ => true,
    }
}

/// Whether some index differs for any two threads: it uses no thread index and no inner loop, and differs by value.
fn are_apart(a: &Access, b: &Access, threads: &Threads, known: &Analyzer) -> bool {
    let common = |e: &Expr, access: &Access| {
        !threads.iter().any(|(t, _)| uses(e, t)) && !access.loops.iter().any(|(v, _)| uses(e, v))
    };
    a.indices.iter().zip(&b.indices).any(|(x, y)| {
        x.ty() == y.ty()
            && common(x, a)
            && common(y, b)
            && known.can_prove(&x.clone().not_equal(y.clone()))
    })
}

/// A linear index as digits.
struct Place {
    /// Factor of each thread index, in the order of the threads.
    threads: Vec<i128>,
    /// Loops: factor and extent.
    loops: Vec<(i128, i128)>,
    constant: i128,
    /// What is neither.
    rest: Expr,
}

impl Place {
    fn of(access: &Access, threads: &Threads, known: &Analyzer) -> Option<Place> {
        let index = flat_index(&access.buffer, &access.indices);
        let mut rest = known.simplify(&index);
        let mut factors = Vec::with_capacity(threads.len());
        for (var, _) in threads {
            let parts = split(&rest, var)?;
            factors.push(parts.coeff.as_int()?);
            rest = parts.rest;
        }
        let mut loops = Vec::new();
        for (var, extent) in &access.loops {
            if access.uses(var) {
                let parts = split(&rest, var)?;
                let factor = parts.coeff.as_int()?;
                loops.push((factor, (*extent)?));
                rest = parts.rest;
            }
        }
        let rest = known.simplify(&rest);
        let (rest, constant) = constant_part(&rest);
        let mut reads = false;
        for_each_expr(&rest, &mut |e| reads |= matches!(e.node(), Node::Load(..)));
        (!reads).then_some(Place { threads: factors, loops, constant, rest })
    }

    /// Whether equal places mean equal threads.
    fn belongs_to_same_thread(&self, other: &Place, threads: &Threads) -> bool {
        if self.threads != other.threads || self.rest != other.rest {
            return false;
        }
        let mut digits: Vec<(i128, i128)> =
            self.threads.iter().zip(threads).map(|(factor, (_, extent))| (factor.abs(), *extent)).collect();
        digits.retain(|(_, extent)| *extent > 1);
        if digits.iter().any(|(factor, _)| *factor == 0) {
            return false;
        }
        digits.sort_unstable();
        let Some(&(least, _)) = digits.first() else { return true };
        // Loops below the threads move within a window, loops above them by whole multiples of a step.
        let is_low = |(factor, extent): &(i128, i128)| factor.abs() * extent <= least;
        let mut step: Option<i128> = None;
        for (factor, _) in self.loops.iter().chain(&other.loops).filter(|l| !is_low(l) && l.0 != 0) {
            step = Some(step.map_or(factor.abs(), |s| gcd(s, factor.abs())));
        }
        let window = |place: &Place| {
            let base = step.map_or(place.constant, |s| place.constant.rem_euclid(s));
            place.loops.iter().filter(|l| is_low(l)).fold((base, base), |(lo, hi), (factor, extent)| {
                let reach = factor * (extent - 1).max(0);
                (lo + reach.min(0), hi + reach.max(0))
            })
        };
        let ((lo_a, hi_a), (lo_b, hi_b)) = (window(self), window(other));
        let mut span = hi_a.max(hi_b) - lo_a.min(lo_b) + 1;
        for (factor, extent) in digits {
            if factor < span {
                return false;
            }
            span += factor * (extent - 1);
        }
        step.is_none_or(|step| step >= span)
    }
}

/// A sum as what is not constant, and its constant.
fn constant_part(expr: &Expr) -> (Expr, i128) {
    if let Some(value) = expr.as_int() {
        return (Expr::int_of(0, expr.dtype()), value);
    }
    if let Node::Binary(coulis_ir::BinaryOp::Add, a, b) = expr.node() {
        let ((a, m), (b, n)) = (constant_part(a), constant_part(b));
        return (sum(a, b), m + n);
    }
    (expr.clone(), 0)
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}
