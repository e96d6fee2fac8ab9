//! The order in which a proof looks at atoms, where their ranks are equal.
//!
//! Numbers of atoms say when each was first asked for. A search that went by them would find other proofs after other
//! questions, so that one kernel would be simplified in several ways, all right and some better. This order is the same
//! whatever was asked before, and for a kernel that is made again: variables in the order in which they were made, and the
//! rest by what they are.

use std::cmp::Ordering;

use super::Analyzer;
use super::poly::{Atom, AtomId, Poly};
use crate::expr::{Expr, Node};

impl Analyzer {
    /// Which of two atoms comes first.
    pub(crate) fn compare_atoms(&self, a: AtomId, b: AtomId) -> Ordering {
        if a == b {
            return Ordering::Equal;
        }
        let (Some(a), Some(b)) = (self.atom(a), self.atom(b)) else { return a.cmp(&b) };
        match (&*a, &*b) {
            (Atom::Leaf(a), Atom::Leaf(b)) => compare(a, b),
            (Atom::Leaf(_), Atom::Div(..) | Atom::Mod(..)) | (Atom::Div(..), Atom::Mod(..)) => Ordering::Less,
            (Atom::Div(..) | Atom::Mod(..), Atom::Leaf(_)) | (Atom::Mod(..), Atom::Div(..)) => {
                Ordering::Greater
            }
            (Atom::Div(x, c), Atom::Div(y, d)) | (Atom::Mod(x, c), Atom::Mod(y, d)) => {
                c.cmp(d).then_with(|| self.compare_polys(x, y))
            }
        }
    }

    /// Which of two products of a polynomial comes first.
    pub(crate) fn compare_products(&self, a: &[AtomId], b: &[AtomId]) -> Ordering {
        if a.len() != b.len() || a.len() == 1 {
            return a.len().cmp(&b.len()).then_with(|| self.compare_atoms(a[0], b[0]));
        }
        let sorted = |ids: &[AtomId]| {
            let mut ids = ids.to_vec();
            ids.sort_by(|a, b| self.compare_atoms(*a, *b));
            ids
        };
        in_turn(sorted(a), sorted(b), |a, b| self.compare_atoms(a, b))
    }

    fn compare_polys(&self, x: &Poly, y: &Poly) -> Ordering {
        fn sorted<'p>(analyzer: &Analyzer, poly: &'p Poly) -> Vec<(&'p [AtomId], i128)> {
            let mut terms: Vec<_> = poly.products().collect();
            terms.sort_by(|(a, _), (b, _)| analyzer.compare_products(a, b));
            terms
        }
        let by_terms = in_turn(sorted(self, x), sorted(self, y), |(a, c), (b, d)| {
            self.compare_products(a, b).then_with(|| c.cmp(&d))
        });
        by_terms.then_with(|| x.constant_term().cmp(&y.constant_term()))
    }
}

/// The first difference of two lists; the shorter one comes first where there is none.
fn in_turn<T>(a: Vec<T>, b: Vec<T>, compare: impl Fn(T, T) -> Ordering) -> Ordering {
    let by_length = a.len().cmp(&b.len());
    let first = a.into_iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne());
    first.unwrap_or(by_length)
}

/// Which of two expressions comes first. Equal ones are one, so only the first operands that differ are looked into.
fn compare(a: &Expr, b: &Expr) -> Ordering {
    if a == b {
        return Ordering::Equal;
    }
    let of_operands = || {
        let differ = a.children().zip(b.children()).find(|(a, b)| a != b);
        differ.map_or(Ordering::Equal, |(a, b)| compare(a, b))
    };
    (own(a).cmp(&own(b)))
        .then_with(|| a.children().count().cmp(&b.children().count()))
        .then_with(of_operands)
        .then_with(|| (a.dtype().name(), a.lanes()).cmp(&(b.dtype().name(), b.lanes())))
}

/// What tells a node from others but for its operands and its type.
fn own(expr: &Expr) -> (u8, i128) {
    match expr.node() {
        Node::Var(var) => (0, var.id().0.into()),
        Node::Int(value) => (1, *value),
        Node::Float(bits) => (2, (*bits).into()),
        Node::Binary(op, ..) => (3, *op as i128),
        Node::Call(intrinsic, _) => (4, *intrinsic as i128),
        Node::Load(buffer, _) => (5, buffer.id.0.into()),
        Node::Let(var, ..) => (6, var.id().0.into()),
        Node::Not(_) => (7, 0),
        Node::Cast(_) => (8, 0),
        Node::Select(..) => (9, 0),
        Node::IfThenElse(..) => (10, 0),
        Node::Ramp(..) => (11, 0),
        Node::Broadcast(_) => (12, 0),
    }
}
