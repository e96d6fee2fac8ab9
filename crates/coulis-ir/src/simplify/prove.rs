//! Proofs of inequalities: a polynomial is shown to be at least 0 by replacing its atoms, one after another, by
//! bounds that can only make it smaller.
//!
//! A loop variable is bounded by its range, symbolic ends included; a quotient `q = x // c` by `x - c + 1 <=
//! c*q <= x` (for which the polynomial is multiplied by `c`, and more than `-c` is as good as 0); minima,
//! maxima and selections by their operands; and a known inequality may be subtracted. Innermost loops go
//! first, so that what a bound brings in is bounded later. Each step holds for every value, so a proof is
//! sound whatever the order; the search is short, and fails rather than goes on.

use super::Analyzer;
use super::poly::{Atom, AtomId, Poly};
use crate::expr::{BinaryOp, Expr, Node};

/// Steps that one proof may take.
const BUDGET: u32 = 40;
/// Replacements that may follow one another.
const MAX_DEPTH: u32 = 14;

/// Ways to show a polynomial at least 0: for one of them, all its polynomials are to be at least 0.
type Ways = Vec<Vec<Poly>>;

impl Analyzer {
    /// Whether `a op b` is known for integer operands of one scalar type.
    pub(crate) fn decide(&self, op: BinaryOp, a: &Expr, b: &Expr) -> Option<bool> {
        if a.ty() != b.ty() || !a.ty().is_scalar() || a.dtype().is_float() {
            return None;
        }
        let difference = self.poly(b).add_scaled(&self.poly(a), -1)?;
        // Bounds alone tell most: where they say that one side is never reached, no proof of it is looked for.
        let apart = self.poly_interval(&difference);
        let reverse = || difference.scale(-1);
        let is_positive = |p: &Poly| p.plus(-1).is_some_and(|p| self.prove_nonnegative(&p));
        let positive = || !apart.at_most(0) && (apart.at_least(1) || is_positive(&difference));
        let nonnegative = || !apart.at_most(-1) && (apart.at_least(0) || self.prove_nonnegative(&difference));
        let negative =
            || !apart.at_least(0) && (apart.at_most(-1) || reverse().is_some_and(|p| is_positive(&p)));
        let nonpositive = || {
            !apart.at_least(1) && (apart.at_most(0) || reverse().is_some_and(|p| self.prove_nonnegative(&p)))
        };
        let known = |yes: &dyn Fn() -> bool, no: &dyn Fn() -> bool| match yes() {
            true => Some(true),
            false => no().then_some(false),
        };
        match op {
            BinaryOp::Lt => known(&positive, &nonpositive),
            BinaryOp::Le => known(&nonnegative, &negative),
            BinaryOp::Gt => known(&negative, &nonnegative),
            BinaryOp::Ge => known(&nonpositive, &positive),
            BinaryOp::Eq => known(&|| nonnegative() && nonpositive(), &|| {
                self.differ_in_class(a, b) || positive() || negative()
            }),
            BinaryOp::Ne => self.decide(BinaryOp::Eq, a, b).map(|equal| !equal),
            _ => None,
        }
    }

    /// Whether divisibility alone says that the values differ.
    fn differ_in_class(&self, a: &Expr, b: &Expr) -> bool {
        let ((c, x), (d, y)) = (self.modular(a), self.modular(b));
        let common = super::poly::gcd(c, d);
        match x.checked_sub(y) {
            Some(gap) if common == 0 => gap != 0,
            Some(gap) => gap % common != 0,
            None => false,
        }
    }

    /// Whether the polynomial is proved to be at least 0.
    pub(crate) fn prove_nonnegative(&self, poly: &Poly) -> bool {
        if let Some(known) = self.caches.borrow().proved.get(poly) {
            return *known;
        }
        let mut budget = BUDGET;
        let found = self.nonnegative(poly, 0, &mut budget);
        self.caches.borrow_mut().proved.insert(poly.clone(), found);
        found
    }

    fn nonnegative(&self, poly: &Poly, depth: u32, budget: &mut u32) -> bool {
        let poly = poly.clone().reduced();
        if self.poly_interval(&poly).at_least(0) {
            return true;
        }
        if poly.as_constant().is_some() || depth >= MAX_DEPTH || *budget == 0 {
            return false;
        }
        *budget -= 1;
        super::count_step();
        let less_facts = self.without_facts(&poly);
        if less_facts.iter().any(|p| self.poly_interval(p).at_least(0)) {
            return true;
        }
        let mut atoms = poly.atoms();
        if atoms.len() > 1 {
            atoms.sort_by(|a, b| self.compare_atoms(*a, *b));
            atoms.sort_by_cached_key(|id| std::cmp::Reverse(self.atom_rank(*id)));
        }
        for id in atoms {
            let Some(ways) = self.bounded(&poly, id) else { continue };
            if ways.iter().any(|way| way.iter().all(|p| self.nonnegative(p, depth + 1, budget))) {
                return true;
            }
            break;
        }
        less_facts.iter().any(|p| self.nonnegative(p, depth + 4, budget))
    }

    /// The polynomial less each known inequality, as often as one product of it is in the polynomial.
    fn without_facts(&self, poly: &Poly) -> Vec<Poly> {
        let facts = self.fact_polys();
        let less = facts.iter().filter_map(|fact| {
            let shared = fact.products().filter_map(|(product, c)| {
                let (_, found) = poly.products().find(|(p, _)| *p == product)?;
                (found % c == 0 && found / c > 0).then_some((product, found / c))
            });
            let (_, times) = shared.min_by(|(a, _), (b, _)| self.compare_products(a, b))?;
            Some(poly.add_scaled(fact, -times)?.reduced())
        });
        less.take(8).collect()
    }

    /// Known inequalities as polynomials that are at least 0.
    fn fact_polys(&self) -> std::rc::Rc<Vec<Poly>> {
        if let Some(found) = &self.caches.borrow().facts {
            return found.clone();
        }
        let polys = self.facts.inequalities.iter().filter_map(|fact| {
            let difference = self.poly(&fact.larger).add_scaled(&self.poly(&fact.smaller), -1)?;
            difference.plus(-fact.gap)
        });
        let polys = std::rc::Rc::new(polys.collect::<Vec<Poly>>());
        self.caches.borrow_mut().facts = Some(polys.clone());
        polys
    }

    /// How early an atom is replaced: later loops first, and what is made of a variable before the variable.
    fn atom_rank(&self, id: AtomId) -> (usize, bool) {
        let Some(atom) = self.atom(id) else { return (0, false) };
        match &*atom {
            Atom::Leaf(expr) => (self.loop_depth(expr).map_or(0, |depth| depth + 1), expr.as_var().is_none()),
            Atom::Div(poly, _) | Atom::Mod(poly, _) => {
                (poly.atoms().into_iter().map(|id| self.atom_rank(id).0).max().unwrap_or(0), true)
            }
        }
    }

    /// Ways to show the polynomial at least 0 without one of its atoms; `None` where nothing bounds the atom.
    fn bounded(&self, poly: &Poly, id: AtomId) -> Option<Ways> {
        let (factor, rest) = poly.split(id)?;
        let sign = self.poly_interval(&factor);
        let up = if sign.at_least(0) { Some(true) } else { sign.at_most(0).then_some(false) };
        match &*self.atom(id)? {
            Atom::Div(x, c) => {
                let bound = if up? { x.plus(1 - c)? } else { x.clone() };
                Some(vec![vec![factor.mul(&bound)?.add(&rest.scale(*c)?)?.plus(c - 1)?]])
            }
            Atom::Mod(x, c) => {
                let c = *c;
                let quotient = self.poly_div(x, c)?;
                let expanded = factor.mul(&x.add_scaled(&quotient, -c)?)?.add(&rest)?;
                let constant = up.and_then(|up| {
                    let bound = if up { 0 } else { c - 1 };
                    factor.scale(bound)?.add(&rest)
                });
                Some(constant.into_iter().chain([expanded]).map(|p| vec![p]).collect())
            }
            Atom::Leaf(expr) => match expr.node() {
                Node::Var(var) => {
                    let (min, extent) = self.facts.vars.get(&var.id())?.range.as_ref()?;
                    let min = self.poly(min);
                    let bound = if up? { (*min).clone() } else { min.add(&self.poly(extent))?.plus(-1)? };
                    Some(vec![vec![factor.mul(&bound)?.add(&rest)?]])
                }
                Node::Binary(BinaryOp::FloorDiv, x, d) if self.interval(d).at_least(0) => {
                    let (x, d) = (self.poly(x), self.poly(d));
                    let bound = if up? { x.add_scaled(&d, -1)?.plus(1)? } else { (*x).clone() };
                    Some(vec![vec![factor.mul(&bound)?.add(&rest.mul(&d)?)?.add(&d)?.plus(-1)?]])
                }
                Node::Binary(BinaryOp::FloorMod, _, d) if self.interval(d).at_least(0) => {
                    let bound = if up? { Poly::default() } else { self.poly(d).plus(-1)? };
                    Some(vec![vec![factor.mul(&bound)?.add(&rest)?]])
                }
                Node::Binary(op @ (BinaryOp::Min | BinaryOp::Max), a, b) => {
                    let with = |e: &Expr| factor.mul(&self.poly(e)).and_then(|p| p.add(&rest));
                    let (a, b) = (with(a)?, with(b)?);
                    let either = up? == (*op == BinaryOp::Max);
                    Some(if either { vec![vec![a], vec![b]] } else { vec![vec![a, b]] })
                }
                Node::Select(_, a, b) | Node::IfThenElse(_, a, b) => {
                    let with = |e: &Expr| factor.mul(&self.poly(e)).and_then(|p| p.add(&rest));
                    Some(vec![vec![with(a)?, with(b)?]])
                }
                _ => None,
            },
        }
    }
}
