//! Accesses of threads to shared memory, and whether two of them may meet in one place from different threads.
//!
//! An access is normalised to a sum of digits (thread indices and loop variables with constant factors) and a rest that
//! all threads share. Two accesses of one thread never meet another thread's where the digits of threads tell every
//! thread apart beside everything that varies below and above them: in the place in memory, or in the indices of the
//! dimensions, each of which stays within its own. What is not of this shape counts as meeting.

use coulis_ir::hash::{FastMap, FastSet};
use std::cell::RefCell;
use std::rc::Rc;

use coulis_ir::expr::{BinaryOp, Expr, Node, Var};
use coulis_ir::remark::HANDED_OVER;
use coulis_ir::simplify::{Analyzer, gcd};
use coulis_ir::visit::{for_each_expr, for_each_read, for_each_stmt, stmt_exprs, substitute_expr};
use coulis_ir::{AtomCall, Buffer, MemScope, Stmt};

use crate::affine::{conjuncts, difference, split, sum, uses};
use crate::flatten_buffers::flat_index;

/// Kind of access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Updates in one step that no other update can split.
    Atomic,
}

/// One access to shared memory, or to other memory of a block's threads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    /// The buffer.
    pub buffer: Buffer,
    /// Its indices.
    pub indices: Vec<Expr>,
    /// What is done.
    pub kind: Kind,
    /// Loops around the access, below the point where it is looked at, that the indices use.
    pub loops: Loops,
    /// Loops around the point where it is looked at, that the indices use.
    pub around: Loops,
    /// Names that conditions around it, below the point where it is looked at, say the constant values of.
    pub pins: Pins,
}

/// Names with the constants that they are equal to.
pub type Pins = Vec<(Var, i128)>;

/// Loop variables with their extents, where those are constants and the loop begins at 0.
pub type Loops = Vec<(Var, Option<i128>)>;

/// The memory of a launch by which threads of a block give each other values.
#[derive(Clone, Debug, Default)]
pub struct SharedMemory {
    /// Global memory that other threads of the block read in the launch that writes it.
    handed_over: FastSet<Var>,
}

impl SharedMemory {
    /// That of the launch.
    pub fn of(launch: &Stmt) -> SharedMemory {
        let mut shared = SharedMemory::default();
        for_each_stmt(launch, &mut |stmt| {
            let Stmt::Annotate { key, body, .. } = stmt else { return };
            for_each_stmt(body, &mut |stmt| match stmt {
                Stmt::Store { buffer, .. } if key == HANDED_OVER && buffer.scope == MemScope::Global => {
                    shared.handed_over.insert(buffer.data.clone());
                }
                _ => {}
            });
        });
        shared
    }

    /// Whether the launch has such memory.
    pub fn is_in(&self, launch: &Stmt) -> bool {
        let mut found = !self.handed_over.is_empty();
        for_each_stmt(launch, &mut |stmt| {
            found |= matches!(stmt, Stmt::Allocate { buffer, .. } if self.has(buffer));
        });
        found
    }

    /// Whether a buffer is such memory.
    fn has(&self, buffer: &Buffer) -> bool {
        match buffer.scope {
            MemScope::Shared | MemScope::SharedDyn => true,
            MemScope::Global => self.handed_over.contains(&buffer.data),
            MemScope::Warp | MemScope::Local => false,
        }
    }

    /// The accesses of a statement to shared memory, statements below it included.
    pub fn accesses_of(&self, stmt: &Stmt, around: &Loops) -> Vec<Access> {
        let mut found = Vec::new();
        self.collect(stmt, &mut Vec::new(), around, &mut found);
        found
    }

    fn collect(&self, stmt: &Stmt, loops: &mut Loops, around: &Loops, found: &mut Vec<Access>) {
        self.own_accesses(stmt, loops, around, found);
        let depth = loops.len();
        if let Stmt::For { var, min, extent, .. } = stmt {
            loops.push(loop_of(var, min, extent));
        }
        if let Stmt::If { cond, then, otherwise } = stmt {
            let n_before = found.len();
            self.collect(then, loops, around, found);
            let pins = pins_of(cond);
            found[n_before..].iter_mut().for_each(|access| access.pins.extend(pins.iter().cloned()));
            otherwise.iter().for_each(|other| self.collect(other, loops, around, found));
            return;
        }
        for child in coulis_ir::visit::stmt_children(stmt) {
            self.collect(child, loops, around, found);
        }
        loops.truncate(depth);
    }

    /// The accesses of the expressions that stand directly in a statement, and of its own effect.
    pub fn own_accesses(&self, stmt: &Stmt, loops: &Loops, around: &Loops, found: &mut Vec<Access>) {
        let mut add = |buffer: &Buffer, indices: &[Expr], kind: Kind| {
            if self.has(buffer) {
                let (buffer, indices) = (buffer.clone(), indices.to_vec());
                let (loops, around) = (used_by(&indices, loops), used_by(&indices, around));
                found.push(Access { buffer, indices, kind, loops, around, pins: Pins::new() });
            }
        };
        for expr in stmt_exprs(stmt) {
            for_each_read(expr, &mut |buffer, indices| add(buffer, indices, Kind::Read));
        }
        match stmt {
            Stmt::Store { buffer, indices, .. } => add(buffer, indices, Kind::Write),
            Stmt::Atom(call) => {
                let AtomCall { dst, memory, .. } = &**call;
                dst.iter().for_each(|e| add(&e.buffer, &e.indices, Kind::Write));
                let kind = if call.writes_memory() { Kind::Atomic } else { Kind::Read };
                memory.iter().for_each(|e| add(&e.buffer, &e.indices, kind));
            }
            _ => {}
        }
    }
}

/// The range of a loop as [`Loops`] has it.
pub fn loop_of(var: &Var, min: &Expr, extent: &Expr) -> (Var, Option<i128>) {
    (var.clone(), extent.as_int().filter(|_| min.is_int(0)))
}

/// The names that the condition says the constant values of.
fn pins_of(cond: &Expr) -> Pins {
    let pinned = |part: &Expr| match part.node() {
        Node::Binary(BinaryOp::Eq, a, b) => match (a.as_var(), b.as_int(), b.as_var(), a.as_int()) {
            (Some(var), Some(value), _, _) | (_, _, Some(var), Some(value)) => Some((var.clone(), value)),
            _ => None,
        },
        _ => None,
    };
    conjuncts(cond).iter().filter_map(pinned).collect()
}

/// The loops whose variable an index uses.
fn used_by(indices: &[Expr], loops: &Loops) -> Loops {
    if loops.is_empty() || indices.iter().all(|e| e.as_int().is_some()) {
        return Loops::new();
    }
    loops.iter().filter(|(var, _)| indices.iter().any(|e| uses(e, var))).cloned().collect()
}

impl Access {
    /// The access of another iteration: `var` is `other` in it, a sum of `var` or a variable of its own.
    pub fn in_iteration(&self, var: &Var, other: &Expr) -> Access {
        if !self.indices.iter().any(|e| uses(e, var)) {
            return self.clone();
        }
        let map = FastMap::from_iter([(var.clone(), other.clone())]);
        let indices = self.indices.iter().map(|e| substitute_expr(e, &map)).collect();
        let mut around = self.around.clone();
        if let Some(new) = other.as_var() {
            around.iter_mut().filter(|(v, _)| v == var).for_each(|(v, _)| *v = new.clone());
        }
        Access { indices, around, ..self.clone() }
    }
}

/// The threads of a block.
#[derive(Clone, Debug, Default)]
pub struct Threads {
    /// Indices with extents.
    pub indices: Vec<(Var, i128)>,
    /// Further names whose value differs between threads.
    pub varying: Vec<Var>,
}

impl Threads {
    /// Whether the expression uses an index or name that differs between threads.
    pub fn tell_apart(&self, expr: &Expr) -> bool {
        self.indices.iter().any(|(t, _)| uses(expr, t)) || self.varying.iter().any(|v| uses(expr, v))
    }
}

/// What is known at a statement, and what was found out of accesses by it.
pub struct Known {
    /// Of names.
    pub names: Analyzer,
    places: RefCell<FastMap<Access, Option<Rc<Place>>>>,
    /// Whether indices of these parts that are not constant, and that distance, differ.
    differ: RefCell<FastMap<(Expr, Expr, i128), bool>>,
}

impl Known {
    /// Nothing found out yet.
    pub fn new(names: Analyzer) -> Known {
        Known { names, places: RefCell::default(), differ: RefCell::default() }
    }

    fn place(&self, access: &Access, threads: &Threads) -> Option<Rc<Place>> {
        if let Some(found) = self.places.borrow().get(access) {
            return found.clone();
        }
        let found = Place::of(access, threads, &self.names).map(Rc::new);
        self.places.borrow_mut().insert(access.clone(), found.clone());
        found
    }

    /// Whether the values of two indices of one type differ.
    fn differ(&self, x: &Expr, y: &Expr) -> bool {
        let ((a, m), (b, n)) = (constant_part(x), constant_part(y));
        let key = (a, b, n - m);
        if let Some(found) = self.differ.borrow().get(&key) {
            return *found;
        }
        let found = differ_modulo(x, y, &self.names) || self.names.can_prove(&x.clone().not_equal(y.clone()));
        self.differ.borrow_mut().insert(key, found);
        found
    }
}

/// Whether an access of one list may touch one place with one of the other from different threads, one of the two
/// changing it.
pub fn any_meet(some: &[Access], others: &[Access], threads: &Threads, known: &Known) -> bool {
    some.iter().any(|a| others.iter().any(|b| may_conflict(a, b, threads, known)))
}

/// The first access that may touch one place with a later one of the list, from different threads.
pub fn first_that_meets<'a>(all: &'a [Access], threads: &Threads, known: &Known) -> Option<&'a Access> {
    let (mut distinct, mut seen, mut repeated) = (Vec::new(), FastSet::default(), FastSet::default());
    for access in all {
        if seen.insert(access) {
            distinct.push(access);
        } else {
            repeated.insert(access);
        }
    }
    distinct.iter().enumerate().find_map(|(at, a)| {
        let met = (repeated.contains(*a) && may_conflict(a, a, threads, known))
            || distinct[at + 1..].iter().any(|b| may_conflict(a, b, threads, known));
        met.then_some(*a)
    })
}

/// Whether two accesses may touch one place from different threads, one of them changing it.
fn may_conflict(a: &Access, b: &Access, threads: &Threads, known: &Known) -> bool {
    if a.buffer.data != b.buffer.data {
        return false;
    }
    match (a.kind, b.kind) {
        (Kind::Read, Kind::Read) | (Kind::Atomic, Kind::Atomic) => return false,
        _ if are_by_one_thread(a, b, threads) => return false,
        _ => {}
    }
    let same_window = a.buffer.dtype == b.buffer.dtype
        && a.buffer.elem_offset == b.buffer.elem_offset
        && a.indices.len() == b.indices.len();
    if !same_window {
        return true;
    }
    let same_shape = a.buffer.shape == b.buffer.shape && a.buffer.strides == b.buffer.strides;
    if same_shape
        && let (Some(a), Some(b)) = (known.place(a, threads), known.place(b, threads))
        && a.belongs_to_same_thread(&b)
    {
        return false;
    }
    let is_apart = are_apart(a, b, threads, known) || (same_shape && are_told_apart(a, b, threads, known));
    !is_apart
}

/// Whether the conditions around the two say that one and the same thread does both.
fn are_by_one_thread(a: &Access, b: &Access, threads: &Threads) -> bool {
    let at = |access: &Access, var: &Var| access.pins.iter().find(|(name, _)| name == var).map(|pin| pin.1);
    threads
        .indices
        .iter()
        .all(|(var, extent)| *extent == 1 || at(a, var).is_some_and(|value| at(b, var) == Some(value)))
}

/// Whether equal indices in all dimensions mean equal threads, each of which some dimension tells.
fn are_told_apart(a: &Access, b: &Access, threads: &Threads, known: &Known) -> bool {
    let mut told = FastSet::default();
    for (x, y) in a.indices.iter().zip(&b.indices) {
        let place = |index: &Expr, access: &Access| Place::of_index(index, access, threads, &known.names);
        if let (Some(x), Some(y)) = (place(x, a), place(y, b))
            && x.tells(&y)
        {
            told.extend(x.told());
        }
    }
    threads.indices.iter().enumerate().all(|(at, (_, extent))| {
        let is_in_two = || {
            let mut quotients = told.iter().filter(|part| part.thread == at && part.is_quotient);
            quotients.any(|part| told.contains(&Part { is_quotient: false, ..*part }))
        };
        *extent == 1 || told.contains(&Part { thread: at, by: 1, is_quotient: true }) || is_in_two()
    })
}

/// Whether some index differs for any two threads: it uses no thread index and no inner loop, and differs by value.
fn are_apart(a: &Access, b: &Access, threads: &Threads, known: &Known) -> bool {
    let common =
        |e: &Expr, access: &Access| !threads.tell_apart(e) && !access.loops.iter().any(|(v, _)| uses(e, v));
    a.indices
        .iter()
        .zip(&b.indices)
        .any(|(x, y)| x.ty() == y.ty() && x != y && common(x, a) && common(y, b) && known.differ(x, y))
}

/// Whether both are remainders of one division, of numbers that differ by a constant which it does not divide.
fn differ_modulo(x: &Expr, y: &Expr, known: &Analyzer) -> bool {
    match (x.node(), y.node()) {
        (Node::Binary(BinaryOp::FloorMod, x, m), Node::Binary(BinaryOp::FloorMod, y, n)) if m == n => {
            let apart = known.simplify(&difference(x.clone(), y.clone()));
            matches!((apart.as_int(), m.as_int()), (Some(d), Some(m)) if m > 0 && d % m != 0)
        }
        _ => false,
    }
}

/// A thread index, or what is left of one that is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Part {
    /// Which of the thread indices.
    thread: usize,
    /// What it is divided by.
    by: i128,
    /// The quotient or the remainder.
    is_quotient: bool,
}

/// A linear index as digits.
struct Place {
    /// Factor and extent of each thread index, in the order of the threads; of the quotient and the remainder of one that
    /// is divided.
    threads: Vec<(i128, i128)>,
    /// What of the threads these are.
    parts: Vec<Part>,
    /// Loops: factor and extent.
    loops: Vec<(i128, Option<i128>)>,
    constant: i128,
    /// What is neither.
    rest: Expr,
}

impl Place {
    fn of(access: &Access, threads: &Threads, known: &Analyzer) -> Option<Place> {
        Place::of_index(&flat_index(&access.buffer, &access.indices), access, threads, known)
    }

    /// The same of an index of the access.
    fn of_index(index: &Expr, access: &Access, threads: &Threads, known: &Analyzer) -> Option<Place> {
        let mut rest = known.simplify(index);
        let mut factors = Vec::with_capacity(threads.indices.len());
        let mut parts_of = Vec::with_capacity(threads.indices.len());
        for (thread, (var, extent)) in threads.indices.iter().enumerate() {
            let mut digits = vec![(var.clone(), *extent)];
            let by = divided_by(&rest, var).filter(|by| extent % by == 0);
            if let Some(by) = by {
                digits = vec![(var.fresh(), extent / by), (var.fresh(), by)];
                rest = in_digits(&rest, var, &digits, known);
            }
            for (at, (digit, extent)) in digits.into_iter().enumerate() {
                let parts = split(&rest, &digit)?;
                factors.push((parts.coeff.as_int()?, extent));
                parts_of.push(Part { thread, by: by.unwrap_or(1), is_quotient: at == 0 });
                rest = parts.rest;
            }
        }
        let mut loops = Vec::new();
        for (var, extent) in access.loops.iter().chain(&access.around) {
            let parts = split(&rest, var)?;
            loops.push((parts.coeff.as_int()?, *extent));
            rest = parts.rest;
        }
        let rest = known.simplify(&rest);
        let (rest, constant) = constant_part(&rest);
        (!rest.reads_memory() && !threads.tell_apart(&rest)).then_some(Place {
            threads: factors,
            parts: parts_of,
            loops,
            constant,
            rest,
        })
    }

    /// Whether equal places mean equal threads.
    fn belongs_to_same_thread(&self, other: &Place) -> bool {
        self.threads.iter().all(|(factor, extent)| *factor != 0 || *extent <= 1) && self.tells(other)
    }

    /// The parts of threads that it has digits of.
    fn told(&self) -> impl Iterator<Item = Part> {
        self.parts.iter().zip(&self.threads).filter(|(_, digit)| digit.0 != 0).map(|(part, _)| *part)
    }

    /// Whether equal places mean equal digits of the threads.
    fn tells(&self, other: &Place) -> bool {
        if self.threads != other.threads || self.parts != other.parts || self.rest != other.rest {
            return false;
        }
        let mut digits: Vec<(i128, i128)> =
            self.threads.iter().map(|(factor, extent)| (factor.abs(), *extent)).collect();
        digits.retain(|(factor, extent)| *extent > 1 && *factor != 0);
        digits.sort_unstable();
        let Some(&(least, _)) = digits.first() else { return true };
        // Loops below the threads move within a window, loops above them by whole multiples of a step.
        let is_low =
            |(factor, extent): &(i128, Option<i128>)| extent.is_some_and(|n| factor.abs() * n <= least);
        let mut step: Option<i128> = None;
        for (factor, _) in self.loops.iter().chain(&other.loops).filter(|l| !is_low(l) && l.0 != 0) {
            step = Some(step.map_or(factor.abs(), |s| gcd(s, factor.abs())));
        }
        let window = |place: &Place| {
            let base = step.map_or(place.constant, |s| place.constant.rem_euclid(s));
            place.loops.iter().filter(|l| is_low(l)).fold((base, base), |(lo, hi), (factor, extent)| {
                let reach = factor * (extent.unwrap_or(1) - 1).max(0);
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

/// The constant that a thread index is divided by in an index.
fn divided_by(index: &Expr, var: &Var) -> Option<i128> {
    let mut found = None;
    for_each_expr(index, &mut |e| {
        if let Node::Binary(BinaryOp::FloorDiv | BinaryOp::FloorMod, x, by) = e.node()
            && x.as_var() == Some(var)
        {
            found = found.or(by.as_int().filter(|by| *by > 1));
        }
    });
    found
}

/// The index where a thread index is its quotient and its remainder.
fn in_digits(index: &Expr, var: &Var, digits: &[(Var, i128)], known: &Analyzer) -> Expr {
    let mut known = known.clone();
    let mut value: Option<Expr> = None;
    for (digit, extent) in digits {
        let extent = Expr::int_of(*extent, digit.dtype());
        known.bind(digit, &Expr::int_of(0, digit.dtype()), &extent);
        value = Some(value.map_or_else(|| digit.expr(), |value| value * extent + digit.expr()));
    }
    let map: FastMap<Var, Expr> = value.into_iter().map(|value| (var.clone(), value)).collect();
    known.simplify(&substitute_expr(index, &map))
}

/// A sum as what is not constant, and its constant.
fn constant_part(expr: &Expr) -> (Expr, i128) {
    if let Some(value) = expr.as_int() {
        return (Expr::int_of(0, expr.dtype()), value);
    }
    if let Node::Binary(BinaryOp::Add, a, b) = expr.node() {
        let ((a, m), (b, n)) = (constant_part(a), constant_part(b));
        return (sum(a, b), m + n);
    }
    (expr.clone(), 0)
}
