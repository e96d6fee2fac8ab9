//! Proofs of inequalities: a polynomial is shown to be at least 0 by replacing its atoms, one after another, by
//! bounds that can only make it smaller.
//!
//! A loop variable is bounded by its range, symbolic ends included; a quotient `q = x // c` by `x - c + 1 <=
//! c*q <= x` (for which the polynomial is multiplied by `c`, and more than `-c` is as good as 0); minima,
//! maxima and selections by their operands; and a known inequality may be subtracted. Innermost loops go
//! first, so that what a bound brings in is bounded later. Each step holds for every value, so a proof is
//! sound whatever the order; the search is short, and fails rather than goes on.

use std::rc::Rc;

use super::Analyzer;
use super::compare::negated;
use super::examples::{MOST_PARTS, Values};
use super::found::AtomFound;
use super::interval::Interval;
use super::poly::{Atom, AtomId, Poly};
use crate::expr::{BinaryOp, Expr, Node};

/// Steps that one proof may take.
const BUDGET: u32 = 40;
/// Replacements that may follow one another.
const MAX_DEPTH: u32 = 14;

/// Ways to show a polynomial at least 0: for one of them, all its polynomials are to be at least 0.
type Ways = Vec<Vec<Poly>>;

/// Two operands that are compared.
struct Compared<'a> {
    analyzer: &'a Analyzer,
    operands: (&'a Expr, &'a Expr),
    /// The second less the first.
    difference: Poly,
    /// Where that lies: bounds alone tell most, and where they say that one side is never reached, no proof of it is looked
    /// for.
    apart: Interval,
}

impl Compared<'_> {
    fn holds(&self, op: BinaryOp) -> bool {
        match op {
            BinaryOp::Lt => self.is_positive(),
            BinaryOp::Le => self.is_nonnegative(),
            BinaryOp::Gt => self.is_negative(),
            BinaryOp::Ge => self.is_nonpositive(),
            BinaryOp::Eq => self.is_nonnegative() && self.is_nonpositive(),
            BinaryOp::Ne => self.differ_in_class() || self.is_positive() || self.is_negative(),
            _ => false,
        }
    }

    fn is_positive(&self) -> bool {
        !self.apart.at_most(0) && (self.apart.at_least(1) || self.proves(1, -1))
    }

    fn is_nonnegative(&self) -> bool {
        !self.apart.at_most(-1) && (self.apart.at_least(0) || self.proves(1, 0))
    }

    fn is_negative(&self) -> bool {
        !self.apart.at_least(0) && (self.apart.at_most(-1) || self.proves(-1, -1))
    }

    fn is_nonpositive(&self) -> bool {
        !self.apart.at_least(1) && (self.apart.at_most(0) || self.proves(-1, 0))
    }

    /// Whether the difference, times `factor` and plus `gap`, is proved to be at least 0.
    fn proves(&self, factor: i128, gap: i128) -> bool {
        let poly = self.difference.scale(factor).and_then(|poly| poly.plus(gap));
        poly.is_some_and(|poly| self.analyzer.prove_nonnegative(poly))
    }

    /// Whether divisibility alone says that the values differ.
    fn differ_in_class(&self) -> bool {
        let (a, b) = self.operands;
        let ((c, x), (d, y)) = (self.analyzer.modular(a), self.analyzer.modular(b));
        let common = super::poly::gcd(c, d);
        match x.checked_sub(y) {
            Some(gap) if common == 0 => gap != 0,
            Some(gap) => gap % common != 0,
            None => false,
        }
    }
}

/// A search for one proof.
struct Search<'a> {
    analyzer: &'a Analyzer,
    /// What is known, as polynomials that are at least 0.
    facts: Rc<Vec<Poly>>,
    /// Steps that are left.
    budget: u32,
    /// What was looked at in vain at a depth, and the steps that this took. Facts lead to the same polynomial in every order
    /// in which they are subtracted.
    failed: Vec<(u32, Poly, u32)>,
}

impl Search<'_> {
    /// Whether a way is found to show the polynomial, which is reduced, at least 0.
    fn nonnegative(&mut self, poly: Poly, depth: u32) -> bool {
        self.analyzer.poly_interval(&poly).at_least(0) || self.without_atom_or_fact(poly, depth)
    }

    /// The same of a polynomial whose bounds do not tell.
    fn without_atom_or_fact(&mut self, poly: Poly, depth: u32) -> bool {
        if poly.as_constant().is_some() || depth >= MAX_DEPTH || self.budget == 0 {
            return false;
        }
        let same = |(at, known, _): &&(u32, Poly, u32)| *at == depth && *known == poly;
        if let Some((_, _, n_steps)) = self.failed.iter().find(same)
            && *n_steps <= self.budget
        {
            self.budget -= n_steps;
            return false;
        }
        let before = self.budget;
        self.budget -= 1;
        super::count_step();
        let analyzer = self.analyzer;
        let less_facts = self.less_facts(&poly);
        if less_facts.iter().any(|p| analyzer.poly_interval(p).at_least(0)) {
            return true;
        }
        let mut atoms = poly.atoms();
        if atoms.len() > 1 {
            atoms.sort_by(|a, b| {
                let by_rank = analyzer.atom_rank(*b).cmp(&analyzer.atom_rank(*a));
                by_rank.then_with(|| analyzer.compare_atoms(*a, *b))
            });
        }
        let ways = atoms.into_iter().find_map(|id| analyzer.bounded(&poly, id)).unwrap_or_default();
        let is_found =
            ways.into_iter().any(|way| way.into_iter().all(|p| self.nonnegative(p.reduced(), depth + 1)))
                || less_facts.into_iter().any(|p| self.without_atom_or_fact(p, depth + 4));
        // Where steps ran out, more of them might have found something.
        if !is_found && self.budget > 0 {
            self.failed.push((depth, poly, before - self.budget));
        }
        is_found
    }

    /// The polynomial less each known inequality, as often as one product of it is in the polynomial.
    fn less_facts(&self, poly: &Poly) -> Vec<Poly> {
        let less = self.facts.iter().filter_map(|fact| {
            let shared = fact.common_products(poly).filter_map(|(product, c, found)| {
                (found % c == 0 && found / c > 0).then_some((product, found / c))
            });
            let (_, times) = shared.min_by(|(a, _), (b, _)| self.analyzer.compare_products(a, b))?;
            Some(poly.add_scaled(fact, -times)?.reduced())
        });
        less.take(8).collect()
    }
}

impl Analyzer {
    /// Whether `a op b` is known for integer operands of one scalar type.
    pub(crate) fn decide(&self, op: BinaryOp, a: &Expr, b: &Expr) -> Option<bool> {
        if op == BinaryOp::Ne {
            return self.decide(BinaryOp::Eq, a, b).map(|equal| !equal);
        }
        let (compared, otherwise) = (self.compared(a, b)?, negated(op)?);
        if compared.holds(op) { Some(true) } else { compared.holds(otherwise).then_some(false) }
    }

    /// Whether `a op b` is known to hold. Where it is not, nobody asks whether it is known not to, which takes as long.
    pub(crate) fn holds(&self, op: BinaryOp, a: &Expr, b: &Expr) -> bool {
        self.compared(a, b).is_some_and(|compared| compared.holds(op))
    }

    fn compared<'a>(&'a self, a: &'a Expr, b: &'a Expr) -> Option<Compared<'a>> {
        if a.ty() != b.ty() || !a.ty().is_scalar() || a.dtype().is_float() {
            return None;
        }
        let difference = self.poly(b).add_scaled(&self.poly(a), -1)?;
        let apart = self.poly_interval(&difference);
        Some(Compared { analyzer: self, operands: (a, b), difference, apart })
    }

    /// Whether the polynomial is proved to be at least 0.
    fn prove_nonnegative(&self, poly: Poly) -> bool {
        if let Some(known) = self.caches.borrow().proved.get(&poly) {
            return *known;
        }
        let found = !self.is_refuted(&poly) && {
            let facts = self.fact_polys();
            let mut search = Search { analyzer: self, facts, budget: BUDGET, failed: Vec::new() };
            search.nonnegative(poly.clone().reduced(), 0)
        };
        self.caches.borrow_mut().proved.insert(poly, found);
        found
    }

    /// Whether the polynomial is below 0 in an example.
    fn is_refuted(&self, poly: &Poly) -> bool {
        let examples = &self.facts.examples;
        examples.come() && examples.have_negative(&self.poly_values(poly, &mut { MOST_PARTS }))
    }

    fn poly_values(&self, poly: &Poly, left: &mut u32) -> Values {
        poly.products().fold(Values::constant(poly.constant_term()), |sum, (ids, coeff)| {
            let factors = ids.iter().map(|id| self.atom_values(*id, left));
            sum.add(&factors.fold(Values::constant(coeff), |product, factor| product.mul(&factor)))
        })
    }

    fn atom_values(&self, id: AtomId, left: &mut u32) -> Values {
        if *left == 0 {
            return Values::default();
        }
        *left -= 1;
        match self.atom(id).as_deref() {
            Some(Atom::Leaf(expr)) => self.facts.examples.values_of(expr, left),
            Some(Atom::Div(poly, c)) => self.poly_values(poly, left).floor_div(&Values::constant(*c)),
            Some(Atom::Mod(poly, c)) => self.poly_values(poly, left).floor_mod(&Values::constant(*c)),
            None => Values::default(),
        }
    }

    /// Known inequalities as polynomials that are at least 0.
    fn fact_polys(&self) -> Rc<Vec<Poly>> {
        if let Some(found) = &self.caches.borrow().facts {
            return found.clone();
        }
        let polys = self.facts.inequalities.iter().filter_map(|fact| {
            let difference = self.poly(&fact.larger).add_scaled(&self.poly(&fact.smaller), -1)?;
            difference.plus(-fact.gap)
        });
        let polys = Rc::new(polys.collect::<Vec<Poly>>());
        self.caches.borrow_mut().facts = Some(polys.clone());
        polys
    }

    /// How early a proof replaces an atom: later loops first, and what is made of others before these.
    fn atom_rank(&self, id: AtomId) -> (usize, u32) {
        let atom = match self.caches.borrow().atoms.at(id as usize) {
            Some((_, AtomFound { rank: Some(known), .. })) => return *known,
            Some((atom, _)) => atom.clone(),
            None => return (0, 0),
        };
        let found = match &*atom {
            Atom::Leaf(expr) => {
                (self.loop_depth(expr).map_or(0, |depth| depth + 1), u32::from(expr.as_var().is_none()))
            }
            Atom::Div(poly, _) | Atom::Mod(poly, _) => {
                let inner: Vec<(usize, u32)> =
                    poly.atoms().into_iter().map(|id| self.atom_rank(id)).collect();
                let depth = inner.iter().map(|rank| rank.0).max().unwrap_or(0);
                (depth, 1 + inner.iter().map(|rank| rank.1).max().unwrap_or(0))
            }
        };
        if let Some(slot) = self.caches.borrow_mut().atoms.at_mut(id as usize) {
            slot.rank = Some(found);
        }
        found
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
