//! The table of live expressions, which makes equal ones the same.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Children, Expr, ExprData, Names, Node};
use crate::dtype::Ty;
use crate::hash::FastHasher;

/// The interned expression of that node and type.
pub(super) fn interned(node: Node, ty: Ty) -> Expr {
    static TABLE: Mutex<Interner> =
        Mutex::new(Interner { slots: Vec::new(), n_live: 0, sweep_at: LEAST, least: LEAST });
    let mut hasher = FastHasher::default();
    ty.hash(&mut hasher);
    node.hash(&mut hasher);
    let hash = hasher.finish();
    TABLE.lock().unwrap_or_else(PoisonError::into_inner).intern(node, ty, hash)
}

/// Live expressions below which nothing is swept.
const LEAST: usize = 1 << 16;

/// The table of live expressions. It holds one reference to each; when it has doubled since the last sweep, those that
/// nobody else holds are dropped. An expression stands in the first free slot from that of its hash on.
struct Interner {
    /// A power of two, at most half of them taken, or none.
    slots: Vec<Option<Expr>>,
    n_live: usize,
    sweep_at: usize,
    /// What `sweep_at` is at least.
    least: usize,
}

impl Interner {
    fn intern(&mut self, node: Node, ty: Ty, hash: u64) -> Expr {
        if 2 * (self.n_live + 1) > self.slots.len() {
            self.make_room();
        }
        let mask = self.slots.len() - 1;
        let mut at = hash as usize & mask;
        while let Some(found) = &self.slots[at] {
            if found.0.hash == hash && found.0.ty == ty && found.0.node == node {
                return found.clone();
            }
            at = (at + 1) & mask;
        }
        let own = match &node {
            Node::Var(var) => Names::of(var),
            _ => Names::default(),
        };
        let names = Children::of(&node).fold(own, |names, child| names.and(child.0.names));
        let reads_memory =
            matches!(node, Node::Load(..)) || Children::of(&node).any(|child| child.0.reads_memory);
        let expr = Expr(Arc::new(ExprData { node, ty, hash, names, reads_memory }));
        self.slots[at] = Some(expr.clone());
        self.n_live += 1;
        expr
    }

    /// Drops what nobody else holds where it is time to, and leaves at least half of the slots free.
    fn make_room(&mut self) {
        let mut live: Vec<Expr> = std::mem::take(&mut self.slots).into_iter().flatten().collect();
        if live.len() >= self.sweep_at {
            loop {
                let before = live.len();
                live.retain(|expr| Arc::strong_count(&expr.0) > 1);
                if live.len() == before {
                    break;
                }
            }
            self.sweep_at = (2 * live.len()).max(self.least);
        }
        self.n_live = live.len();
        self.slots.resize_with((4 * (live.len() + 1)).next_power_of_two().max(1 << 10), || None);
        let mask = self.slots.len() - 1;
        for expr in live {
            let mut at = expr.0.hash as usize & mask;
            while self.slots[at].is_some() {
                at = (at + 1) & mask;
            }
            self.slots[at] = Some(expr);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::expr::Var;

    fn table() -> Interner {
        Interner { slots: Vec::new(), n_live: 0, sweep_at: 1 << 9, least: 1 << 9 }
    }

    #[test]
    fn what_nobody_holds_is_dropped_and_the_rest_stays_the_same() {
        let ty = Ty::scalar(DType::I64);
        let mut table = table();
        // Hashes that several share.
        let make = |table: &mut Interner, n: i128| table.intern(Node::Int(n), ty, n as u64 % 1021);
        let kept: Vec<Expr> = (0..200).map(|n| make(&mut table, n)).collect();
        for n in 0..8_000 {
            make(&mut table, 1_000_000 + n);
        }
        assert!(table.n_live < 1 << 11, "{}", table.n_live);
        for (n, expr) in (0..).zip(&kept) {
            assert_eq!(make(&mut table, n), *expr);
        }
    }

    #[test]
    fn an_expression_knows_its_variables_and_whether_it_reads() {
        let (i, j) = (Var::new("i", DType::I32), Var::new("j", DType::I32));
        let sum = i.expr() + Expr::int(1);
        assert!(sum.names().may_meet(Names::of(&i)) && !sum.names().may_meet(Names::of(&j)));
        assert!(!sum.reads_memory());
    }
}
