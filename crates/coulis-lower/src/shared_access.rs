//! Accesses of threads to shared memory, and whether two of them may meet in one place from different threads.
//!
//! An access is normalised to a sum of digits ([`crate::thread_digits`]) of the threads that the conditions around it let
//! pass. Two accesses of one thread never meet another thread's where the digits of threads tell every thread apart
//! beside everything that varies below and above them: in the place in memory, or in the indices of the dimensions, each
//! of which stays within its own. What is not of this shape counts as meeting.

use coulis_ir::hash::{FastMap, FastSet};
use std::cell::RefCell;
use std::rc::Rc;

use coulis_ir::expr::{BinaryOp, Expr, Node, Var};
use coulis_ir::remark::HANDED_OVER;
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::{any_stmt, for_each_read, for_each_stmt, stmt_exprs, substitute_expr};
use coulis_ir::{AtomCall, Buffer, MemScope, Stmt};

use crate::affine::{conjuncts, difference, sum, uses};
use crate::flatten_buffers::flat_index;
use crate::simplify::{with_let, with_loop};
use crate::thread_digits::{Part, Place, Range};

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
    /// Thread indices of which conditions around it, below the point where it is looked at, let some values pass only.
    pub passed: Passed,
}

/// Thread indices with the range of those that pass.
pub type Passed = Vec<(Var, Range)>;

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

    /// Whether the statement accesses such memory, or waits at a barrier of the block: no other is of concern to its order.
    pub fn concerns(&self, stmt: &Stmt) -> bool {
        any_stmt(stmt, &mut |s| {
            if matches!(s, Stmt::Sync(kind) if kind.is_of_block()) {
                return true;
            }
            let mut own = Vec::new();
            self.own_accesses(s, &Loops::new(), &Loops::new(), &mut own);
            !own.is_empty()
        })
    }

    /// Whether a buffer is such memory.
    fn has(&self, buffer: &Buffer) -> bool {
        match buffer.scope {
            MemScope::Shared | MemScope::SharedDyn => true,
            MemScope::Global => self.handed_over.contains(&buffer.data),
            MemScope::Warp | MemScope::Local => false,
        }
    }

    /// The accesses of a statement to shared memory, statements below it included. `threads` run it, and `known` holds there.
    pub fn accesses_of(&self, stmt: &Stmt, around: &Loops, threads: &Threads, known: &Known) -> Vec<Access> {
        let (mut found, names) = (Vec::new(), known.names.clone());
        let mut way = Way { around, threads, loops: Loops::new(), names, passed: Passed::new() };
        self.collect(stmt, &mut way, &mut found);
        found
    }

    fn collect(&self, stmt: &Stmt, way: &mut Way<'_>, found: &mut Vec<Access>) {
        if is_branch_or_loop(stmt) && !self.concerns(stmt) {
            return;
        }
        let n_before = found.len();
        self.own_accesses(stmt, &way.loops, way.around, found);
        found[n_before..].iter_mut().for_each(|access| access.passed.clone_from(&way.passed));
        match stmt {
            Stmt::For { var, min, extent, body, .. } => {
                way.loops.push(loop_of(var, min, extent));
                let names = with_loop(&way.names, var, min, extent);
                way.inside(names, |way| self.collect(body, way, found));
                way.loops.pop();
            }
            Stmt::Let { var, value, body } => {
                let names = with_let(&way.names, var, value);
                way.inside(names, |way| self.collect(body, way, found));
            }
            Stmt::If { cond, then, otherwise } => {
                way.under(cond, |way| self.collect(then, way, found));
                if let Some(otherwise) = otherwise {
                    way.under(&cond.clone().logical_not(), |way| self.collect(otherwise, way, found));
                }
            }
            other => {
                coulis_ir::visit::stmt_children(other).for_each(|child| self.collect(child, way, found));
            }
        }
    }

    /// The accesses of the expressions that stand directly in a statement, and of its own effect.
    pub fn own_accesses(&self, stmt: &Stmt, loops: &Loops, around: &Loops, found: &mut Vec<Access>) {
        let mut add = |buffer: &Buffer, indices: &[Expr], kind: Kind| {
            if self.has(buffer) {
                let (buffer, indices) = (buffer.clone(), indices.to_vec());
                let (loops, around) = (used_by(&indices, loops), used_by(&indices, around));
                found.push(Access { buffer, indices, kind, loops, around, passed: Passed::new() });
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

/// What leads from the point where a statement is looked at to one below it.
struct Way<'a> {
    around: &'a Loops,
    threads: &'a Threads,
    loops: Loops,
    /// What is known there.
    names: Analyzer,
    passed: Passed,
}

impl Way<'_> {
    /// Goes on where more is known.
    fn inside(&mut self, names: Analyzer, go: impl FnOnce(&mut Self)) {
        let before = std::mem::replace(&mut self.names, names);
        go(self);
        self.names = before;
    }

    /// Goes on where a condition holds, if that may be.
    fn under(&mut self, cond: &Expr, go: impl FnOnce(&mut Self)) {
        if !self.threads.tell_apart(cond) {
            return go(self);
        }
        let mut names = self.names.clone();
        // What memory holds may be another value further on.
        conjuncts(cond).iter().filter(|part| !part.reads_memory()).for_each(|part| names.assume(part));
        if names.contradicts_itself() {
            return;
        }
        let mut passed = Passed::new();
        for (var, extent) in &self.threads.indices {
            let (least, most) = names.const_bounds(&var.expr());
            let (least, most) = (least.unwrap_or(0).max(0), most.unwrap_or(*extent).min(extent - 1));
            if least > most {
                return;
            }
            if (least, most) != (0, extent - 1) {
                passed.push((var.clone(), Range { least, most }));
            }
        }
        let before = std::mem::replace(&mut self.passed, passed);
        self.inside(names, go);
        self.passed = before;
    }
}

/// Whether what stands below the statement is looked at with more known, which takes long enough to ask first whether there
/// is anything to look at.
pub fn is_branch_or_loop(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For { .. } | Stmt::If { .. })
}

/// The loops whose variable an index uses.
fn used_by(indices: &[Expr], loops: &Loops) -> Loops {
    if loops.is_empty() || indices.iter().all(|e| e.as_int().is_some()) {
        return Loops::new();
    }
    loops.iter().filter(|(var, _)| indices.iter().any(|e| uses(e, var))).cloned().collect()
}

impl Access {
    /// The values that a thread index has where it is done.
    pub fn range_of(&self, thread: &Var, extent: i128) -> Range {
        let passed = self.passed.iter().find(|(var, _)| var == thread);
        passed.map_or(Range { least: 0, most: extent - 1 }, |(_, range)| *range)
    }

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
        let index = flat_index(&access.buffer, &access.indices);
        let found = Place::of_index(&index, access, threads, &self.names).map(Rc::new);
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
    let mut told = Told { a, b, threads, parts: FastSet::default() };
    match (a.kind, b.kind) {
        (Kind::Read, Kind::Read) | (Kind::Atomic, Kind::Atomic) => return false,
        _ if told.is_one_thread() => return false,
        _ => {}
    }
    let same_window = a.buffer.dtype == b.buffer.dtype
        && a.buffer.elem_offset == b.buffer.elem_offset
        && a.indices.len() == b.indices.len();
    if !same_window {
        return true;
    }
    let same_shape = a.buffer.shape == b.buffer.shape && a.buffer.strides == b.buffer.strides;
    let is_ordered = same_shape && told.learns_of_memory(known)
        || are_apart(a, b, threads, known)
        || same_shape && told.learns_of_dimensions(known);
    !is_ordered
}

/// What two accesses to one place have in common of the threads that do them.
struct Told<'a> {
    a: &'a Access,
    b: &'a Access,
    threads: &'a Threads,
    /// Parts of thread indices that are equal.
    parts: FastSet<Part>,
}

impl Told<'_> {
    /// Whether both are of one and the same thread.
    fn is_one_thread(&self) -> bool {
        self.threads.indices.iter().enumerate().all(|(thread, (var, extent))| {
            let passed = self.a.range_of(var, *extent).around(self.b.range_of(var, *extent));
            let mut quotients = self.parts.iter().filter(|part| part.thread == thread && part.is_quotient);
            passed.as_value().is_some()
                || quotients.any(|part| self.parts.contains(&Part { is_quotient: false, ..*part }))
        })
    }

    /// Whether the places in memory say that they are two, or of one thread.
    fn learns_of_memory(&mut self, known: &Known) -> bool {
        match (known.place(self.a, self.threads), known.place(self.b, self.threads)) {
            (Some(x), Some(y)) => self.learns(&x, &y),
            _ => false,
        }
    }

    /// The same of the indices of the dimensions, which tell it together.
    fn learns_of_dimensions(&mut self, known: &Known) -> bool {
        let place =
            |index: &Expr, access: &Access| Place::of_index(index, access, self.threads, &known.names);
        let mut pairs = Vec::with_capacity(self.a.indices.len());
        for (x, y) in self.a.indices.iter().zip(&self.b.indices) {
            pairs.extend(place(x, self.a).zip(place(y, self.b)));
        }
        pairs.iter().any(|(x, y)| self.learns(x, y))
    }

    /// Whether two indices that would have to be equal say so.
    fn learns(&mut self, x: &Place, y: &Place) -> bool {
        if x.is_apart_from(y) {
            return true;
        }
        self.parts.extend(x.told_with(y));
        self.is_one_thread()
    }
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

/// A sum as what is not constant, and its constant.
pub(crate) fn constant_part(expr: &Expr) -> (Expr, i128) {
    if let Some(value) = expr.as_int() {
        return (Expr::int_of(0, expr.dtype()), value);
    }
    if let Node::Binary(BinaryOp::Add, a, b) = expr.node() {
        let ((a, m), (b, n)) = (constant_part(a), constant_part(b));
        return (sum(a, b), m + n);
    }
    (expr.clone(), 0)
}
