//! Constant places of local memory: what may become variables.
//!
//! One walk over a statement finds them for all the memory that is allocated in it, and is asked again for each allocation.

use std::collections::BTreeMap;

use coulis_ir::hash::{FastMap, Seen};
use coulis_ir::visit::{stmt_children, stmt_exprs};
use coulis_ir::{Buffer, DType, Expr, LoopKind, Node, Stmt, VarId};

use crate::c::index;

/// `offset -> (lanes, stored)` of memory whose accesses are all at constant places; `None` where some access is not of
/// that kind, overlaps another in part, has another element type, or runs on another thread.
pub type Slots = Option<BTreeMap<i64, Slot>>;

/// One constant place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Lanes; 1 where it is accessed as a scalar.
    pub lanes: u32,
    /// Whether anything stores to it.
    pub stored: bool,
    /// Bytes of the masks that are stored, where the buffer holds bools.
    pub mask_bytes: u32,
}

/// Slots of allocations, each found when one around it was asked for. A statement that is asked for does not move.
#[derive(Debug, Default)]
pub struct SlotTable {
    /// By the address of the allocation's body, and the memory.
    known: FastMap<(usize, VarId), Slots>,
}

impl SlotTable {
    /// Slots of memory that is allocated around the statement, directly.
    pub fn of_allocation(&mut self, body: &Stmt, data: VarId) -> Slots {
        let key = (std::ptr::from_ref(body).addr(), data);
        if !self.known.contains_key(&key) {
            let mut walk = SlotWalk::over(&[data]);
            walk.stmt(body, 0);
            self.known.extend(walk.inner);
            let own = walk.open.pop().and_then(|memory| memory.slots());
            self.known.insert(key, own);
        }
        self.known.get(&key).cloned().flatten()
    }
}

/// Of memory that is allocated outside of the statement, what the statement accesses at constant places only:
/// with a buffer by which it does.
pub fn slots_in(body: &Stmt, memory: &[VarId]) -> Vec<(VarId, Buffer, BTreeMap<i64, Slot>)> {
    let mut walk = SlotWalk::over(memory);
    walk.stmt(body, 0);
    let open = walk.open.into_iter().filter_map(|memory| {
        let (data, buffer) = (memory.data, memory.buffer.clone()?);
        Some((data, buffer, memory.slots()?))
    });
    open.collect()
}

/// Memory whose accesses are looked at.
struct Memory {
    data: VarId,
    /// Parallel loops around its allocation.
    depth: u32,
    /// By which it was accessed first.
    buffer: Option<Buffer>,
    slots: BTreeMap<i64, Slot>,
    dtype: Option<DType>,
    good: bool,
}

impl Memory {
    fn new(data: VarId, depth: u32) -> Memory {
        Memory { data, depth, buffer: None, slots: BTreeMap::new(), dtype: None, good: true }
    }

    fn slots(self) -> Slots {
        let mut end = i64::MIN;
        for (offset, slot) in &self.slots {
            if *offset < end {
                return None;
            }
            end = offset + i64::from(slot.lanes);
        }
        self.good.then_some(self.slots)
    }
}

struct SlotWalk {
    /// Memory in scope, the innermost last.
    open: Vec<Memory>,
    inner: Vec<((usize, VarId), Slots)>,
}

impl SlotWalk {
    fn over(memory: &[VarId]) -> SlotWalk {
        SlotWalk { open: memory.iter().map(|data| Memory::new(*data, 0)).collect(), inner: Vec::new() }
    }

    fn memory(&mut self, data: VarId) -> Option<&mut Memory> {
        self.open.iter_mut().rev().find(|memory| memory.data == data)
    }

    fn stmt(&mut self, stmt: &Stmt, depth: u32) {
        let depth = depth + u32::from(matches!(stmt, Stmt::For { kind: LoopKind::Parallel, .. }));
        let mut seen = Seen::default();
        for expr in stmt_exprs(stmt) {
            self.expr(expr, depth, &mut seen);
        }
        match stmt {
            Stmt::Store { buffer, indices, value } => {
                let bytes = index::mask_bytes(value).unwrap_or(1);
                self.access(buffer, indices, value.lanes(), Some(bytes), depth);
            }
            Stmt::View { .. } | Stmt::AllocBuffer(_) | Stmt::Tile(_) => {
                self.open.iter_mut().for_each(|memory| memory.good = false);
            }
            Stmt::Atom(call) => {
                for element in call.elements() {
                    if let Some(memory) = self.memory(element.buffer.data.id()) {
                        memory.good = false;
                    }
                }
            }
            Stmt::Allocate { buffer, body } => {
                self.open.push(Memory::new(buffer.data.id(), depth));
                self.stmt(body, depth);
                let key = (std::ptr::from_ref(&**body).addr(), buffer.data.id());
                self.inner.extend(self.open.pop().map(|memory| (key, memory.slots())));
                return;
            }
            _ => {}
        }
        for child in stmt_children(stmt) {
            self.stmt(child, depth);
        }
    }

    fn expr<'e>(&mut self, expr: &'e Expr, depth: u32, seen: &mut Seen<&'e Expr>) {
        if !expr.reads_memory() || expr.may_be_shared() && !seen.insert(expr) {
            return;
        }
        if let Node::Load(buffer, indices) = expr.node() {
            self.access(buffer, indices, expr.lanes(), None, depth);
        }
        for child in expr.children() {
            self.expr(child, depth, seen);
        }
    }

    fn access(&mut self, buffer: &Buffer, indices: &[Expr], lanes: u32, stored: Option<u32>, depth: u32) {
        let Some(memory) = self.memory(buffer.data.id()).filter(|memory| memory.good) else { return };
        memory.buffer.get_or_insert_with(|| buffer.clone());
        let place = match indices {
            [at] => index::constant_place(at),
            _ => None,
        };
        let same_type = *memory.dtype.get_or_insert(buffer.dtype) == buffer.dtype;
        let Some((offset, _)) =
            place.filter(|(_, width)| depth == memory.depth && *width == lanes && same_type)
        else {
            memory.good = false;
            return;
        };
        let new = Slot { lanes, stored: stored.is_some(), mask_bytes: stored.unwrap_or(1) };
        let slot = memory.slots.entry(offset).or_insert(new);
        if slot.lanes != lanes {
            memory.good = false;
        }
        slot.stored |= new.stored;
        slot.mask_bytes = slot.mask_bytes.max(new.mask_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coulis_ir::{MemScope, Var};

    fn at(index: i32) -> Vec<Expr> {
        vec![Expr::int(index)]
    }

    #[test]
    fn allocations_inside_are_found_with_the_outer_one_and_told_apart() {
        let buffer = |name| Buffer::new(name, DType::F32, vec![Expr::int(4)], MemScope::Local);
        let (outer, inner, moving) = (buffer("outer"), buffer("inner"), buffer("moving"));
        let i = Var::new("i", DType::I32);
        let store = |to: &Buffer, index: Vec<Expr>, value: Expr| Stmt::Store {
            buffer: to.clone(),
            indices: index,
            value,
        };
        let zero = || Expr::float(0.0, DType::F32);
        let twice = |first: i32| {
            let body = store(&inner, at(first), outer.at(at(1)));
            Stmt::allocate(inner.clone(), body)
        };
        let parallel = Stmt::for_(i.clone(), Expr::int(0), Expr::int(4), LoopKind::Parallel, twice(3));
        let loop_ = Stmt::range(i.clone(), Expr::int(4), store(&moving, vec![i.expr()], zero()));
        let body = Stmt::seq([twice(2), store(&outer, at(0), zero()), Stmt::allocate(moving.clone(), loop_)]);
        let places = |slots: Slots| {
            slots.map(|slots| slots.into_iter().map(|(at, s)| (at, s.stored)).collect::<Vec<_>>())
        };
        let mut table = SlotTable::default();
        assert_eq!(places(table.of_allocation(&body, outer.data.id())), Some(vec![(0, true), (1, false)]));
        let mut found = Vec::new();
        coulis_ir::visit::for_each_stmt(&body, &mut |s| {
            if let Stmt::Allocate { buffer, body } = s {
                assert!(table.known.contains_key(&(std::ptr::from_ref(&**body).addr(), buffer.data.id())));
                found.push(places(table.of_allocation(body, buffer.data.id())));
            }
        });
        assert_eq!(found, [Some(vec![(2, true)]), None]);
        // Another thread's accesses are not the allocation's own, unless it is that thread's.
        assert_eq!(places(table.of_allocation(&parallel, outer.data.id())), None);
        let Stmt::For { body: inside, .. } = &parallel else { return };
        let Stmt::Allocate { body: inside, .. } = &**inside else { return };
        assert_eq!(places(table.of_allocation(inside, inner.data.id())), Some(vec![(3, true)]));
        let names: Vec<String> = slots_in(&body, &[outer.data.id(), moving.data.id()])
            .into_iter()
            .map(|(_, b, _)| b.name.clone())
            .collect();
        assert_eq!(names, ["outer"]);
    }
}
