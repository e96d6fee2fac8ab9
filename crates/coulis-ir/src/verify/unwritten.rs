//! V29: memory that a kernel allocates is written before it is read.
//!
//! Statements are taken in order of the text. A read is a fault when nothing before it writes the memory, or when
//! only constant places are written and its own constant place is not among them. In a loop, what stands after a
//! conditional read may have run in an earlier iteration and counts as before it. Memory annotated as zeroed is
//! written. Conditions are not followed: a write that may have happened has happened.

use crate::hash::{FastMap, FastSet, Seen};

use super::{Check, Group, Property, Report};
use crate::atom::Atom;
use crate::buffer::Buffer;
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, Node, VarId};
use crate::kernel::Kernel;
use crate::print::print_expr;
use crate::remark::ZEROED;
use crate::stmt::{Region, Stmt};
use crate::visit::written_memory;

pub(super) const GROUP: Group = Group {
    properties: &[Property::new("V29", "allocated memory is written before it is read (on every machine)")],
    checks: &[Check::Memory(check_unwritten)],
};

/// Checks reads of allocated memory.
fn check_unwritten<'k>(kernel: &'k Kernel, report: &mut Report<'k>) {
    let mut walk = Walk { memory: FastMap::default(), loops: Vec::new(), conditional: false, report };
    walk.stmt(&kernel.body, false);
}

/// What is written of an allocation.
#[derive(Clone, Debug)]
enum Written {
    /// These elements and no others.
    Places(FastSet<i128>),
    /// Elements that are not told apart.
    Some,
}

/// An allocation.
struct Memory {
    dtype: DType,
    /// Loops around the allocation.
    depth: usize,
    written: Written,
}

struct Walk<'r, 'k> {
    /// Allocations so far, by their pointers.
    memory: FastMap<VarId, Memory>,
    /// Pointers of memory written anywhere in the loops around, the outermost first.
    loops: Vec<FastSet<VarId>>,
    /// Whether a condition stands between the innermost loop and here.
    conditional: bool,
    report: &'r mut Report<'k>,
}

impl<'k> Walk<'_, 'k> {
    fn stmt(&mut self, stmt: &'k Stmt, zeroed: bool) {
        match stmt {
            Stmt::Seq(stmts) => stmts.iter().for_each(|s| self.stmt(s, false)),
            Stmt::For { min, extent, body, .. } => {
                self.read(stmt, min);
                self.read(stmt, extent);
                self.loops.push(written_memory(body));
                let before = std::mem::replace(&mut self.conditional, false);
                self.stmt(body, false);
                self.conditional = before;
                self.loops.pop();
            }
            Stmt::If { cond, then, otherwise } => {
                self.read(stmt, cond);
                let before = std::mem::replace(&mut self.conditional, true);
                self.stmt(then, false);
                if let Some(otherwise) = otherwise {
                    self.stmt(otherwise, false);
                }
                self.conditional = before;
            }
            Stmt::Store { buffer, indices, value } => {
                indices.iter().for_each(|i| self.read(stmt, i));
                self.read(stmt, value);
                self.write(buffer, indices);
            }
            Stmt::Let { value, body, .. } => {
                self.read(stmt, value);
                self.stmt(body, false);
            }
            Stmt::LaunchThread { extent, body, .. } => {
                self.read(stmt, extent);
                self.stmt(body, false);
            }
            Stmt::Annotate { key, body, .. } => self.stmt(body, key == ZEROED),
            Stmt::Allocate { buffer, body } => {
                self.allocate(buffer, zeroed);
                self.stmt(body, false);
            }
            Stmt::AllocBuffer(buffer) => self.allocate(buffer, zeroed),
            Stmt::Atom(call) => {
                call.exprs().into_iter().for_each(|e| self.read(stmt, e));
                if let Some(memory) = &call.memory {
                    self.access(stmt, &memory.buffer, &memory.indices);
                    if call.atom != Atom::ClusterLoad {
                        self.write(&memory.buffer, &memory.indices);
                    }
                }
                if let Some(dst) = &call.dst {
                    self.write(&dst.buffer, &dst.indices);
                }
            }
            Stmt::Tile(call) => {
                let whole = |region: &Region, walk: &mut Self| walk.write(&region.buffer, &[]);
                call.dsts.iter().for_each(|region| whole(region, self));
            }
            Stmt::DeviceEntry | Stmt::ScopeIds { .. } | Stmt::View { .. } | Stmt::Sync(_) => {}
        }
    }

    fn allocate(&mut self, buffer: &Buffer, zeroed: bool) {
        let written = if zeroed { Written::Some } else { Written::Places(FastSet::default()) };
        let memory = Memory { dtype: buffer.dtype, depth: self.loops.len(), written };
        self.memory.insert(buffer.data.id(), memory);
    }

    fn write(&mut self, buffer: &Buffer, indices: &[Expr]) {
        let Some(memory) = self.memory.get_mut(&buffer.data.id()) else { return };
        let place = constant_place(buffer, indices).filter(|_| memory.dtype == buffer.dtype);
        match (&mut memory.written, place) {
            (Written::Some, _) => {}
            (Written::Places(places), Some(place)) => {
                places.insert(place);
            }
            (written, None) => *written = Written::Some,
        }
    }

    fn read(&mut self, stmt: &'k Stmt, expr: &Expr) {
        self.read_once(stmt, expr, &mut Seen::default());
    }

    /// Reads an expression of a statement; `seen` holds those that were read before, and whether under a condition.
    fn read_once<'e>(&mut self, stmt: &'k Stmt, expr: &'e Expr, seen: &mut Seen<(&'e Expr, bool)>) {
        if !expr.reads_memory() || expr.may_be_shared() && !seen.insert((expr, self.conditional)) {
            return;
        }
        match expr.node() {
            Node::IfThenElse(cond, a, b) => {
                self.read_once(stmt, cond, seen);
                let before = std::mem::replace(&mut self.conditional, true);
                self.read_once(stmt, a, seen);
                self.read_once(stmt, b, seen);
                self.conditional = before;
            }
            Node::Binary(BinaryOp::And | BinaryOp::Or, a, b) => {
                self.read_once(stmt, a, seen);
                let before = std::mem::replace(&mut self.conditional, true);
                self.read_once(stmt, b, seen);
                self.conditional = before;
            }
            Node::Load(buffer, indices) => {
                indices.iter().for_each(|i| self.read_once(stmt, i, seen));
                self.access(stmt, buffer, indices);
            }
            _ => expr.each_child(|child| self.read_once(stmt, child, seen)),
        }
    }

    fn access(&mut self, stmt: &'k Stmt, buffer: &Buffer, indices: &[Expr]) {
        let id = buffer.data.id();
        let Some(Memory { dtype, depth, written: Written::Places(places) }) = self.memory.get(&id) else {
            return;
        };
        let place = constant_place(buffer, indices).filter(|_| *dtype == buffer.dtype);
        let missing = match place {
            Some(place) => !places.contains(&place),
            None => places.is_empty(),
        };
        // A loop around the innermost one may have run its later statements too, whatever stands between.
        let n = self.loops.len();
        let earlier =
            |(i, written): (usize, &FastSet<VarId>)| written.contains(&id) && (i + 1 < n || self.conditional);
        if missing && !self.loops.iter().enumerate().skip(*depth).any(earlier) {
            let at: Vec<String> = indices.iter().map(print_expr).collect();
            let name = &buffer.name;
            let text = format!("`{name}[{}]` is read, and nothing before writes it", at.join(", "));
            self.report.at(stmt, "V29", text);
        }
    }
}

/// The element of a plain buffer at one constant index.
fn constant_place(buffer: &Buffer, indices: &[Expr]) -> Option<i128> {
    let plain = buffer.elem_offset.is_int(0) && buffer.strides.is_empty() && buffer.layout.is_none();
    match indices {
        [index] if plain && buffer.rank() <= 1 => index.as_int(),
        _ => None,
    }
}
