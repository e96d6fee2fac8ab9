//! Statements whose accesses V12 has to look at closely.
//!
//! What is known at a place takes proofs: a name that cuts a loop is a minimum of a maximum of what is left. Most accesses
//! need none, for the ranges of loops of constant length hold them inside, or an [example](Examples) comes to them
//! and is inside: then the access is not outside for certain, if control does not come to it for every value of loops of
//! constant length, of which each must be inside.

use std::rc::Rc;

use super::bounds::{Sizes, lanes_of};
use crate::atom::Atom;
use crate::buffer::Buffer;
use crate::expr::{BinaryOp, Expr, Node, Var};
use crate::hash::{FastSet, Seen};
use crate::simplify::{Analyzer, Examples};
use crate::stmt::Stmt;
use crate::visit::stmt_exprs;

/// Statements that are suspect, and those around them, by their addresses.
#[derive(Default)]
pub(super) struct Suspects(FastSet<usize>);

impl Suspects {
    /// Whether the statement, or one in it, is suspect.
    pub fn are_in(&self, stmt: &Stmt) -> bool {
        self.0.contains(&address(stmt))
    }
}

fn address(stmt: &Stmt) -> usize {
    std::ptr::from_ref(stmt).addr()
}

/// Suspects of a kernel's body, whose buffers have those sizes.
pub(super) fn suspects(body: &Stmt, sizes: &Sizes) -> Suspects {
    let mut glance = Glance { sizes, suspects: Suspects::default() };
    glance.stmt(body, &Place::default());
    glance.suspects
}

/// What is known at a place without proofs.
#[derive(Clone)]
struct Place {
    examples: Examples,
    /// Knows the loops of constant length.
    ranges: Rc<Analyzer>,
    /// Whether control may come here for every value of the loops around.
    may_be_certain: bool,
}

impl Default for Place {
    fn default() -> Place {
        Place { examples: Examples::default(), ranges: Rc::default(), may_be_certain: true }
    }
}

impl Place {
    fn inside(&self, var: &Var, min: &Expr, extent: &Expr) -> Place {
        let mut inner = Place { examples: self.examples.inside(var, min, extent), ..self.clone() };
        match (min.as_int(), extent.as_int()) {
            (Some(_), Some(_)) => Rc::make_mut(&mut inner.ranges).bind(var, min, extent),
            _ => inner.may_be_certain &= !self.examples.vary(min) && !self.examples.vary(extent),
        }
        inner
    }

    fn naming(&self, var: &Var, value: &Expr) -> Place {
        Place { examples: self.examples.naming(var, value), ..self.clone() }
    }

    /// Where a condition holds, and where it does not.
    fn branches(&self, cond: &Expr) -> [Place; 2] {
        let may_be_certain = self.may_be_certain && !self.examples.vary(cond);
        [self.examples.under(cond), self.examples.under_not(cond)].map(|examples| Place {
            examples,
            ranges: self.ranges.clone(),
            may_be_certain,
        })
    }

    /// Whether the index is known not to be outside for certain.
    fn clears(&self, index: &Expr, size: i128) -> bool {
        let Some((base, last_lane)) = lanes_of(index) else { return true };
        let (least, most) = (last_lane.min(0), last_lane.max(0));
        let by_ranges = || self.ranges.interval(base).within(-least, size - 1 - most);
        let by_examples = || [0, last_lane].iter().all(|shift| self.examples.is_inside(base, *shift, size));
        by_ranges() || !self.may_be_certain && base.as_int().is_none() && by_examples()
    }
}

struct Glance<'s> {
    sizes: &'s Sizes,
    suspects: Suspects,
}

/// Branches of one statement's expressions that are looked into.
const MOST_BRANCHES: usize = 64;

impl Glance<'_> {
    /// Whether the statement, or one in it, is suspect.
    fn stmt(&mut self, stmt: &Stmt, place: &Place) -> bool {
        let mut found = stmt_exprs(stmt).into_iter().filter(|expr| expr.reads_memory()).any(|expr| {
            let mut n_branches = 0;
            self.expr(expr, place, &mut Seen::default(), &mut n_branches)
        });
        found |= match stmt {
            Stmt::Seq(stmts) => stmts.iter().fold(false, |found, s| self.stmt(s, place) | found),
            Stmt::For { var, min, extent, body, .. } => self.stmt(body, &place.inside(var, min, extent)),
            Stmt::LaunchThread { var, extent, body, .. } => {
                let zero = Expr::int_of(0, extent.dtype());
                self.stmt(body, &place.inside(var, &zero, extent))
            }
            Stmt::If { cond, then, otherwise } => {
                let [holds, fails] = place.branches(cond);
                let in_then = self.stmt(then, &holds);
                otherwise.iter().fold(in_then, |found, branch| self.stmt(branch, &fails) | found)
            }
            Stmt::Store { buffer, indices, .. } => self.access(buffer, indices, place),
            Stmt::Atom(call) if call.atom.is_hint() => false,
            Stmt::Atom(call) => {
                call.atom == Atom::ClusterLoad
                    || call.elements().any(|e| self.access(&e.buffer, &e.indices, place))
            }
            Stmt::Let { var, value, body } => self.stmt(body, &place.naming(var, value)),
            Stmt::Allocate { body, .. } | Stmt::Annotate { body, .. } => self.stmt(body, place),
            Stmt::DeviceEntry
            | Stmt::ScopeIds { .. }
            | Stmt::AllocBuffer(_)
            | Stmt::View { .. }
            | Stmt::Tile(_)
            | Stmt::Sync(_) => false,
        };
        if found {
            self.suspects.0.insert(address(stmt));
        }
        found
    }

    /// Whether an access in the expression is suspect.
    fn expr<'e>(
        &self,
        expr: &'e Expr,
        place: &Place,
        seen: &mut Seen<&'e Expr>,
        n_branches: &mut usize,
    ) -> bool {
        if !expr.reads_memory() || expr.may_be_shared() && !seen.insert(expr) {
            return false;
        }
        let mut branch = |expr: &'e Expr, place: &Place| {
            *n_branches += 1;
            *n_branches > MOST_BRANCHES || self.expr(expr, place, &mut Seen::default(), n_branches)
        };
        match expr.node() {
            Node::IfThenElse(cond, a, b) => {
                let [holds, fails] = place.branches(cond);
                branch(cond, place) || branch(a, &holds) || branch(b, &fails)
            }
            Node::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => {
                let [holds, fails] = place.branches(a);
                let inner = if *op == BinaryOp::And { holds } else { fails };
                branch(a, place) || branch(b, &inner)
            }
            Node::Let(var, value, body) => branch(value, place) || branch(body, &place.naming(var, value)),
            Node::Load(buffer, indices) => {
                self.access(buffer, indices, place)
                    || indices.iter().any(|index| self.expr(index, place, seen, n_branches))
            }
            _ => expr.children().any(|child| self.expr(child, place, seen, n_branches)),
        }
    }

    fn access(&self, buffer: &Buffer, indices: &[Expr], place: &Place) -> bool {
        let sizes = self.sizes.of(buffer);
        indices.iter().zip(sizes).any(|(index, size)| size.is_some_and(|size| !place.clears(index, size)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::MemScope;
    use crate::dtype::DType;
    use crate::form::Form;
    use crate::hash::FastMap;
    use crate::stmt::LoopKind;

    /// Whether a store to `S[index]`, of 16 elements, is suspect in loops of the variables and extents.
    fn is_suspect(loops: &[(&Var, Expr)], cond: Option<Expr>, index: Expr) -> bool {
        let local = Buffer::new("S", DType::F32, vec![Expr::int(16)], MemScope::Local);
        let store = Stmt::store(&local, &[index], Expr::float(0.0, DType::F32));
        let inner = match cond {
            Some(cond) => Stmt::If { cond, then: Box::new(store), otherwise: None },
            None => store,
        };
        let body = loops.iter().rev().fold(inner, |body, (var, extent)| {
            Stmt::for_((*var).clone(), Expr::int(0), extent.clone(), LoopKind::Serial, body)
        });
        suspects(&body, &Sizes { form: Form::Flat, spans: FastMap::default() }).are_in(&body)
    }

    #[test]
    fn what_an_example_or_the_ranges_of_loops_hold_inside_is_not_suspect() {
        let (n, i, k) = (Var::size("n", DType::I32), Var::size("i", DType::I32), Var::size("k", DType::I32));
        let step = |i: &Var| i.expr() * Expr::int(8);
        let some = [(&i, n.expr())];
        let all = [(&i, Expr::int(2))];
        // Inside in some iteration for some size, and outside in others.
        assert!(!is_suspect(&some, None, step(&i)));
        assert!(!is_suspect(&some, Some(i.expr().lt(Expr::int(2))), step(&i)));
        // Outside in every one, and where no example comes.
        assert!(is_suspect(&some, None, step(&i) + Expr::int(16)));
        assert!(is_suspect(&some, Some(n.expr().equal(Expr::int(77))), step(&i)));
        // Each iteration of a loop of constant length counts.
        assert!(!is_suspect(&all, None, step(&i)));
        assert!(is_suspect(&all, None, step(&i) + Expr::int(8)));
        assert!(is_suspect(&[(&i, Expr::int(2)), (&k, Expr::int(9))], None, step(&i) + k.expr()));
        // Of a condition that holds in all examples it is not known that it may fail.
        assert!(is_suspect(&all, Some(n.expr().ge(Expr::int(0))), step(&i) + Expr::int(8)));
        assert!(!is_suspect(&all, Some(n.expr().lt(Expr::int(100))), step(&i) + Expr::int(8)));
    }
}
