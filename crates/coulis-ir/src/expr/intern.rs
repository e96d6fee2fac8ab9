//! The table of live expressions, which makes equal ones the same.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use super::holds::Holds;
use super::{Children, Expr, ExprData, Names, Node};
use crate::dtype::Ty;
use crate::hash::FastHasher;

/// The interned expression of that node and type.
pub(super) fn interned(node: Node, ty: Ty) -> Expr {
    static TABLE: Mutex<Interner> = Mutex::new(Interner::new(LEAST));
    let mut hasher = FastHasher::default();
    ty.hash(&mut hasher);
    node.hash(&mut hasher);
    let hash = hasher.finish();
    TABLE.lock().unwrap_or_else(PoisonError::into_inner).intern(node, ty, hash)
}

/// Live expressions below which nothing is swept: few enough that what is made next stays in a near cache.
const LEAST: usize = (1 << 10) - 1;

/// The table of live expressions. It holds one reference to each; when it has doubled since the last sweep, those that
/// nobody else holds are dropped.
struct Interner {
    /// In the order in which they were made: operands before what they are operands of.
    exprs: Vec<Expr>,
    /// A power of two, at most half of them taken, or none. An expression stands in the first free slot from
    /// that of its hash on.
    slots: Vec<Slot>,
    sweep_at: usize,
    /// What `sweep_at` is at least.
    least: usize,
}

/// Where an expression stands in the table, and half of its hash, which tells most others apart without a look at them.
#[derive(Clone, Copy)]
struct Slot {
    hash: u32,
    place: u32,
}

impl Slot {
    const FREE: Slot = Slot { hash: 0, place: u32::MAX };

    fn is_free(self) -> bool {
        self.place == u32::MAX
    }
}

impl Interner {
    const fn new(least: usize) -> Interner {
        Interner { exprs: Vec::new(), slots: Vec::new(), sweep_at: least, least }
    }

    fn intern(&mut self, node: Node, ty: Ty, hash: u64) -> Expr {
        if 2 * (self.exprs.len() + 1) > self.slots.len() {
            self.make_room();
        }
        let mask = self.slots.len() - 1;
        let short = (hash >> 32) as u32;
        let mut at = short as usize & mask;
        while !self.slots[at].is_free() {
            if self.slots[at].hash == short {
                let found = &self.exprs[self.slots[at].place as usize];
                if found.0.hash == hash && found.0.ty == ty && found.0.node == node {
                    return found.clone();
                }
            }
            at = (at + 1) & mask;
        }
        let own = match &node {
            Node::Var(var) => Names::of(var),
            _ => Names::default(),
        };
        let (names, holds) = Children::of(&node).fold((own, Holds::own(&node)), |(names, holds), child| {
            (names.and(child.0.names), holds.and(child.0.holds))
        });
        let expr = Expr(Arc::new(ExprData { node, ty, hash, names, holds }));
        self.slots[at] = Slot { hash: short, place: self.exprs.len() as u32 };
        self.exprs.push(expr.clone());
        expr
    }

    /// Drops what nobody else holds where it is time to, and leaves at least half of the slots free.
    fn make_room(&mut self) {
        if self.exprs.len() >= self.sweep_at {
            // The last first: what an expression holds came before it.
            let mut kept: Vec<Expr> = Vec::new();
            while let Some(expr) = self.exprs.pop() {
                if Arc::strong_count(&expr.0) > 1 {
                    kept.push(expr);
                }
            }
            kept.reverse();
            self.exprs = kept;
            self.sweep_at = (2 * self.exprs.len()).max(self.least);
        }
        let n_slots = (4 * (self.exprs.len() + 1)).max(2 * (self.least + 1)).next_power_of_two();
        let mask = n_slots - 1;
        assert!(u32::try_from(mask).is_ok(), "live expressions are counted with 32 bits");
        self.slots.clear();
        self.slots.resize(n_slots, Slot::FREE);
        for (place, expr) in (0..).zip(&self.exprs) {
            let hash = (expr.0.hash >> 32) as u32;
            let mut at = hash as usize & mask;
            while !self.slots[at].is_free() {
                at = (at + 1) & mask;
            }
            self.slots[at] = Slot { hash, place };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::expr::Var;

    fn table() -> Interner {
        Interner::new(1 << 9)
    }

    #[test]
    fn what_nobody_holds_is_dropped_and_the_rest_stays_the_same() {
        let ty = Ty::scalar(DType::I64);
        let mut table = table();
        // Hashes that several share.
        let make = |table: &mut Interner, n: i128| table.intern(Node::Int(n), ty, (n as u64 % 1021) << 32);
        let kept: Vec<Expr> = (0..200).map(|n| make(&mut table, n)).collect();
        for n in 0..8_000 {
            make(&mut table, 1_000_000 + n);
        }
        assert!(table.exprs.len() < 1 << 11, "{}", table.exprs.len());
        for (n, expr) in (0..).zip(&kept) {
            assert_eq!(make(&mut table, n), *expr);
        }
    }

    #[test]
    fn operands_are_walked_as_they_are_listed() {
        let (i, one) = (Var::new("i", DType::I32).expr(), Expr::int(1));
        let cond = i.clone().lt(one.clone());
        let memory = crate::Buffer::new("m", DType::I32, vec![one.clone()], crate::MemScope::Global);
        let all = [
            i.clone(),
            one.clone(),
            Expr::float(0.5, DType::F32),
            i.clone() + one.clone(),
            cond.clone().logical_not(),
            i.clone().cast(DType::F32),
            Expr::select(cond.clone(), i.clone(), one.clone()),
            Expr::if_then_else(cond.clone(), one.clone(), i.clone()),
            cond.likely(),
            memory.at([i.clone()]),
            memory.at([]),
            Expr::ramp(i.clone(), one.clone(), 4),
            i.clone().broadcast_to(4),
            Expr::let_in(Var::new("j", DType::I32), one, i),
        ];
        for expr in all {
            let mut walked = Vec::new();
            expr.each_child(|child| walked.push(child.clone()));
            assert_eq!(walked, expr.children().cloned().collect::<Vec<_>>(), "{expr:?}");
            assert_eq!(expr.is_leaf(), walked.is_empty(), "{expr:?}");
        }
    }

    #[test]
    fn an_expression_knows_its_variables_and_whether_it_reads() {
        let (i, j) = (Var::new("i", DType::I32), Var::new("j", DType::I32));
        let sum = i.expr() + Expr::int(1);
        assert!(sum.names().may_meet(Names::of(&i)) && !sum.names().may_meet(Names::of(&j)));
        assert!(!sum.reads_memory());
    }

    #[test]
    fn an_expression_knows_whether_it_marks_conditions_or_selects_what_may_fail() {
        let i = Var::new("i", DType::I32).expr();
        let memory = crate::Buffer::new("m", DType::I32, vec![Expr::int(8)], crate::MemScope::Global);
        let cond = i.clone().lt(Expr::int(1));
        let within = |e: Expr| e + Expr::int(1);
        let plain = within(Expr::select(cond.clone(), i.clone(), Expr::int(0)));
        assert!(!plain.has_likely() && !plain.has_unsafe_select());
        let marked = within(Expr::select(cond.clone().likely(), i.clone(), Expr::int(0)));
        assert!(marked.has_likely() && !marked.has_unsafe_select());
        let read = within(Expr::select(cond.clone(), memory.at([i.clone()]), i.clone()));
        let divided = within(Expr::select(cond, Expr::int(3).floordiv(i.clone()), i.clone()));
        assert!(read.has_unsafe_select() && divided.has_unsafe_select());
        assert!(!read.has_likely() && !within(memory.at([i])).has_unsafe_select());
    }
}
