//! Polynomials over atoms: the form in which differences are compared and proofs are made.
//!
//! An atom is what arithmetic cannot look into (a variable, a load, a minimum), or a floored quotient or remainder
//! of a polynomial by a constant. Products are multiplied out, so two expressions that are equal by the laws of
//! rings have one polynomial. Values are mathematical integers, which an expression equals where
//! [`Analyzer::is_exact`] holds.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::rc::Rc;

use smallvec::{SmallVec, smallvec};

use super::Analyzer;
use super::found::AtomFound;
use super::interval::{Interval, binary_interval};
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, Node, Var};
use crate::op::floor_div;

/// Index into the analyzer's table of atoms.
pub(crate) type AtomId = u32;

/// Polynomials with more terms are not made.
const MAX_TERMS: usize = 48;

/// What a polynomial's variables stand for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Atom {
    /// An expression.
    Leaf(Expr),
    /// The floored quotient by a constant of at least 2.
    Div(Poly, i128),
    /// The remainder of that quotient.
    Mod(Poly, i128),
}

/// Atoms that one product has at most.
const MAX_FACTORS: usize = 6;

/// A product of atoms, in order of their numbers; empty it is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Product {
    ids: [AtomId; MAX_FACTORS],
    len: u8,
}

impl Product {
    /// The atoms.
    pub fn ids(&self) -> &[AtomId] {
        &self.ids[..usize::from(self.len)]
    }

    /// The product of those atoms; `None` of too many.
    fn of(ids: impl Iterator<Item = AtomId>) -> Option<Product> {
        let mut product = Product::default();
        for id in ids {
            *product.ids.get_mut(usize::from(product.len))? = id;
            product.len += 1;
        }
        product.ids[..usize::from(product.len)].sort_unstable();
        Some(product)
    }
}

impl Hash for Product {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u8(self.len);
        for pair in self.ids().chunks(2) {
            state.write_u64(pair.iter().fold(0, |word, id| word << 32 | u64::from(*id)));
        }
    }
}

impl PartialOrd for Product {
    fn partial_cmp(&self, other: &Product) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Product {
    fn cmp(&self, other: &Product) -> Ordering {
        self.ids().cmp(other.ids())
    }
}

/// A sum of integer multiples of products of atoms; the empty product is the constant term.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Poly {
    /// In order of the products, none of multiplier 0.
    terms: Terms,
}

/// Most polynomials are a variable or two and a constant, and need no memory of their own.
type Terms = SmallVec<[(Product, i128); 3]>;

/// Greatest common divisor of magnitudes; `gcd(0, x)` is `|x|`.
pub fn gcd(a: i128, b: i128) -> i128 {
    if let (Ok(mut a), Ok(mut b)) = (u64::try_from(a.unsigned_abs()), u64::try_from(b.unsigned_abs())) {
        while b != 0 {
            (a, b) = (b, a % b);
        }
        return a.into();
    }
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i128::try_from(a).unwrap_or(1)
}

/// Remainder of the floored quotient by a positive divisor.
pub(crate) fn floor_mod(a: i128, b: i128) -> i128 {
    a.rem_euclid(b)
}

impl Poly {
    /// A constant.
    pub fn constant(value: i128) -> Poly {
        let mut terms = Terms::new();
        if value != 0 {
            terms.push((Product::default(), value));
        }
        Poly { terms }
    }

    /// One atom.
    pub fn atom(id: AtomId) -> Poly {
        let mut product = Product { len: 1, ..Product::default() };
        product.ids[0] = id;
        Poly { terms: smallvec![(product, 1)] }
    }

    /// The value of the empty product.
    pub fn constant_term(&self) -> i128 {
        match self.terms.first() {
            Some((product, value)) if product.len == 0 => *value,
            _ => 0,
        }
    }

    /// The value, where no atom is left.
    pub fn as_constant(&self) -> Option<i128> {
        let only_constant = self.terms.iter().all(|(product, _)| product.len == 0);
        only_constant.then(|| self.constant_term())
    }

    /// Products of atoms with their multipliers, the constant left out.
    pub fn products(&self) -> impl Iterator<Item = (&[AtomId], i128)> {
        self.terms.iter().filter(|(m, _)| m.len > 0).map(|(m, c)| (m.ids(), *c))
    }

    /// Products that another one has too, with their multipliers here and there, the constant left out.
    pub fn common_products<'p>(
        &'p self,
        other: &'p Poly,
    ) -> impl Iterator<Item = (&'p [AtomId], i128, i128)> {
        let mut others = other.terms.as_slice();
        self.terms.iter().filter_map(move |(product, here)| {
            while let [(first, there), rest @ ..] = others {
                match first.cmp(product) {
                    Ordering::Less => others = rest,
                    Ordering::Equal if product.len > 0 => return Some((product.ids(), *here, *there)),
                    Ordering::Equal | Ordering::Greater => break,
                }
            }
            None
        })
    }

    /// Every atom that occurs.
    pub fn atoms(&self) -> Vec<AtomId> {
        let mut ids: Vec<AtomId> = self.products().flat_map(|(ids, _)| ids).copied().collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    }

    /// Of terms in any order, equal products added; `None` when it grows too large.
    fn of(mut terms: Terms) -> Option<Poly> {
        terms.sort_unstable_by_key(|term| term.0);
        let mut kept = Terms::with_capacity(terms.len());
        for (product, coeff) in terms {
            match kept.last_mut() {
                Some((last, total)) if *last == product => *total = total.checked_add(coeff)?,
                _ => kept.push((product, coeff)),
            }
        }
        kept.retain(|(_, coeff)| *coeff != 0);
        (kept.len() <= MAX_TERMS).then_some(Poly { terms: kept })
    }

    /// The sum; `None` when it grows too large.
    pub fn add(&self, other: &Poly) -> Option<Poly> {
        self.add_scaled(other, 1)
    }

    /// `self + other * factor`.
    pub fn add_scaled(&self, other: &Poly, factor: i128) -> Option<Poly> {
        let mut terms = Terms::with_capacity(self.terms.len() + other.terms.len());
        let (mut left, mut right) = (self.terms.iter().peekable(), other.terms.iter().peekable());
        loop {
            let order = match (left.peek(), right.peek()) {
                (Some(a), Some(b)) => a.0.cmp(&b.0),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => break,
            };
            let mut total = 0i128;
            let mut product = Product::default();
            if let (Ordering::Less | Ordering::Equal, Some(term)) = (order, left.next_if(|_| order.is_le())) {
                (product, total) = *term;
            }
            if let Some(term) = right.next_if(|_| order.is_ge()) {
                product = term.0;
                total = total.checked_add(term.1.checked_mul(factor)?)?;
            }
            if total != 0 {
                terms.push((product, total));
            }
        }
        (terms.len() <= MAX_TERMS).then_some(Poly { terms })
    }

    /// `self + value`.
    pub fn plus(&self, value: i128) -> Option<Poly> {
        let mut sum = self.clone();
        match sum.terms.first_mut() {
            Some((product, constant)) if product.len == 0 => {
                *constant = constant.checked_add(value)?;
                if *constant == 0 {
                    sum.terms.remove(0);
                }
            }
            _ if value != 0 => sum.terms.insert(0, (Product::default(), value)),
            _ => {}
        }
        (sum.terms.len() <= MAX_TERMS).then_some(sum)
    }

    /// The product with a constant.
    pub fn scale(&self, factor: i128) -> Option<Poly> {
        if factor == 0 {
            return Some(Poly::default());
        }
        let mut product = self.clone();
        for (_, coeff) in &mut product.terms {
            *coeff = coeff.checked_mul(factor)?;
        }
        Some(product)
    }

    /// The product.
    pub fn mul(&self, other: &Poly) -> Option<Poly> {
        if self.terms.len() * other.terms.len() > MAX_TERMS {
            return None;
        }
        let mut terms = Terms::with_capacity(self.terms.len() * other.terms.len());
        for (left, a) in &self.terms {
            for (right, b) in &other.terms {
                let product = Product::of(left.ids().iter().chain(right.ids()).copied())?;
                terms.push((product, a.checked_mul(*b)?));
            }
        }
        Poly::of(terms)
    }

    /// `(c, r)` such that the polynomial is `c * atom + r` and `c` and `r` do not name the atom.
    pub fn split(&self, atom: AtomId) -> Option<(Poly, Poly)> {
        let (mut with, mut without) = (Terms::new(), Terms::new());
        for (product, coeff) in &self.terms {
            match product.ids().iter().filter(|id| **id == atom).count() {
                0 => without.push((*product, *coeff)),
                1 => {
                    let rest = Product::of(product.ids().iter().copied().filter(|id| *id != atom))?;
                    with.push((rest, *coeff));
                }
                _ => return None,
            }
        }
        Some((Poly::of(with)?, Poly { terms: without }))
    }

    /// The sign-preserving quotient by the common divisor of the products' multipliers: at least 0 exactly where
    /// the polynomial is.
    pub fn reduced(self) -> Poly {
        let common = self.products().try_fold(0, |common, (_, coeff)| {
            let next = gcd(common, coeff);
            // One that has no divisor but 1 leaves none.
            (next != 1).then_some(next)
        });
        let Some(common) = common.filter(|common| *common > 1) else { return self };
        let mut reduced = Poly::constant(floor_div(self.constant_term(), common));
        let of_atoms = self.terms.iter().filter(|(product, _)| product.len > 0);
        reduced.terms.extend(of_atoms.map(|(product, coeff)| (*product, coeff / common)));
        reduced
    }

    /// The terms whose multiplier `divisor` divides, divided by it, and the rest.
    fn divided(&self, divisor: i128) -> (Poly, Poly) {
        let constant = self.constant_term();
        let mut quotient = Poly::constant(floor_div(constant, divisor));
        let mut rest = Poly::constant(floor_mod(constant, divisor));
        for (product, coeff) in self.terms.iter().filter(|(product, _)| product.len > 0) {
            if coeff % divisor == 0 {
                quotient.terms.push((*product, coeff / divisor));
            } else {
                rest.terms.push((*product, *coeff));
            }
        }
        (quotient, rest)
    }
}

/// A sum of constant multiples; see [`Analyzer::linear`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Linear {
    /// Terms with their multipliers, no term twice.
    pub terms: Vec<(Expr, i128)>,
    /// What is added.
    pub constant: i128,
}

impl Linear {
    /// The multiplier of a variable, 0 where it is no term.
    pub fn multiplier(&self, var: &Var) -> i128 {
        self.terms.iter().find(|(term, _)| term.as_var() == Some(var)).map_or(0, |(_, coeff)| *coeff)
    }
}

impl Analyzer {
    /// The number of an atom, given on first sight.
    fn atom_id(&self, atom: Atom) -> AtomId {
        let atoms = &mut self.caches.borrow_mut().atoms;
        let place = atoms.position(&atom).unwrap_or_else(|| atoms.push(Rc::new(atom), AtomFound::default()));
        place as AtomId
    }

    /// The atom of that number.
    pub(crate) fn atom(&self, id: AtomId) -> Option<Rc<Atom>> {
        self.caches.borrow().atoms.at(id as usize).map(|(atom, _)| atom.clone())
    }

    /// The polynomial that a scalar integer expression equals.
    pub(crate) fn poly(&self, expr: &Expr) -> Rc<Poly> {
        match self.expand(expr) {
            Some(poly) => poly,
            None => self.found(expr, |found| found.leaf.clone()).unwrap_or_else(|| {
                let leaf = Rc::new(Poly::atom(self.atom_id(Atom::Leaf(expr.clone()))));
                self.note(expr, |found| found.leaf = Some(leaf.clone()));
                leaf
            }),
        }
    }

    /// The polynomial of an expression that arithmetic can look into; `None` for an atom.
    pub(crate) fn expand(&self, expr: &Expr) -> Option<Rc<Poly>> {
        if !expr.ty().is_scalar() || expr.dtype().is_float() {
            return None;
        }
        if let Some(known) = self.found(expr, |found| found.expanded.clone()) {
            return known;
        }
        let found = self.expand_node(expr).map(Rc::new);
        self.note(expr, |known| known.expanded = Some(found.clone()));
        found
    }

    fn expand_node(&self, expr: &Expr) -> Option<Poly> {
        match expr.node() {
            Node::Int(value) => Some(Poly::constant(*value)),
            Node::Cast(inner) if inner.dtype() != DType::Bool => {
                let same = !inner.dtype().is_float() && self.interval(inner).fits(expr.dtype());
                same.then(|| (*self.poly(inner)).clone())
            }
            Node::Binary(op, a, b) => self.expand_binary(expr, *op, a, b),
            _ => None,
        }
    }

    fn expand_binary(&self, expr: &Expr, op: BinaryOp, a: &Expr, b: &Expr) -> Option<Poly> {
        let divisor = b.as_int().filter(|c| *c > 0);
        match op {
            BinaryOp::Add if self.is_exact(expr) => self.poly(a).add(&self.poly(b)),
            BinaryOp::Sub if self.is_exact(expr) => self.poly(a).add_scaled(&self.poly(b), -1),
            BinaryOp::Mul if self.is_exact(expr) => self.poly(a).mul(&self.poly(b)),
            BinaryOp::FloorDiv => self.poly_div(&self.poly(a), divisor?),
            BinaryOp::FloorMod => self.poly_mod(&self.poly(a), divisor?),
            BinaryOp::Div if self.interval(a).at_least(0) => self.poly_div(&self.poly(a), divisor?),
            BinaryOp::TruncMod if self.interval(a).at_least(0) => self.poly_mod(&self.poly(a), divisor?),
            BinaryOp::Shr => {
                let amount = b.as_int().filter(|c| (0..63).contains(c))?;
                self.poly_div(&self.poly(a), 1 << amount)
            }
            _ => None,
        }
    }

    /// The floored quotient by a positive constant.
    pub(crate) fn poly_div(&self, poly: &Poly, divisor: i128) -> Option<Poly> {
        let (quotient, rest) = poly.divided(divisor);
        let common = rest.products().fold(divisor, |g, (_, c)| gcd(g, c));
        let (rest, _) = rest.divided(common);
        let divisor = divisor / common;
        if divisor == 1 {
            return quotient.add(&rest);
        }
        let range = self.poly_interval(&rest).floor_div(divisor);
        match range.as_point() {
            Some(value) => quotient.plus(value),
            None => quotient.add(&Poly::atom(self.atom_id(Atom::Div(rest, divisor)))),
        }
    }

    /// The remainder of the floored quotient by a positive constant.
    pub(crate) fn poly_mod(&self, poly: &Poly, divisor: i128) -> Option<Poly> {
        let (_, rest) = poly.divided(divisor);
        let common = rest.products().fold(divisor, |g, (_, c)| gcd(g, c));
        let constant = floor_mod(rest.constant_term(), common);
        let (rest, _) = rest.divided(common);
        let divisor = divisor / common;
        if divisor == 1 {
            return Some(Poly::constant(constant));
        }
        let turns = self.poly_interval(&rest).floor_div(divisor).as_point();
        let remainder = match turns {
            Some(value) => rest.plus(value.checked_mul(divisor)?.checked_neg()?)?,
            None => Poly::atom(self.atom_id(Atom::Mod(rest, divisor))),
        };
        remainder.scale(common)?.plus(constant)
    }

    /// Where a polynomial lies.
    pub(crate) fn poly_interval(&self, poly: &Poly) -> Interval {
        let found = self.products_interval(poly);
        match self.by_remainder(poly) {
            Some(other) => found.intersect(self.products_interval(&other)),
            None => found,
        }
    }

    /// The polynomial with a remainder in place of a quotient, where that cancels what it is the quotient of:
    /// how far `x` is from a multiple of `d`, `d * (x // d) - x`, is `-(x % d)`. Only of loops: the tails of
    /// sizes stay loops, as in seed 003's listings.
    fn by_remainder(&self, poly: &Poly) -> Option<Poly> {
        let mut quotients: SmallVec<[_; 2]> = {
            let atoms = &self.caches.borrow().atoms;
            let is_quotient =
                |id: AtomId| atoms.at(id as usize).is_some_and(|(atom, _)| matches!(**atom, Atom::Div(..)));
            poly.products().filter(|(ids, _)| ids.len() == 1 && is_quotient(ids[0])).collect()
        };
        if quotients.len() > 1 {
            quotients.sort_by(|(a, _), (b, _)| self.compare_atoms(a[0], b[0]));
        }
        quotients.into_iter().find_map(|(ids, coeff)| {
            let atom = self.atom(ids[0])?;
            let Atom::Div(dividend, divisor) = &*atom else { return None };
            let of_loop = |id: &AtomId| match self.atom(*id).as_deref() {
                Some(Atom::Leaf(expr)) => self.loop_depth(expr).is_some(),
                Some(Atom::Div(..) | Atom::Mod(..)) | None => false,
            };
            let times = Some(coeff / divisor).filter(|_| coeff % divisor == 0)?;
            dividend.atoms().iter().all(of_loop).then_some(())?;
            let (first, of_first) =
                dividend.products().min_by(|(a, _), (b, _)| self.compare_products(a, b))?;
            let cancels =
                poly.products().any(|(ids, c)| ids == first && Some(-c) == of_first.checked_mul(times));
            cancels.then_some(())?;
            let remainder = Poly::atom(self.atom_id(Atom::Mod(dividend.clone(), *divisor)));
            let rest = poly.add_scaled(&Poly::atom(ids[0]), -coeff)?;
            rest.add_scaled(dividend, times)?.add_scaled(&remainder, -times)
        })
    }

    /// Where a polynomial lies, its products taken one by one.
    fn products_interval(&self, poly: &Poly) -> Interval {
        let mut sum = Interval::point(poly.constant_term());
        for (product, coeff) in poly.products() {
            let term = match product {
                [id] => self.atom_interval(*id).scale(coeff),
                _ => {
                    product.iter().fold(Interval::point(coeff), |term, id| term.mul(self.atom_interval(*id)))
                }
            };
            sum = sum.add(term);
            if sum == Interval::ALL {
                break;
            }
        }
        sum
    }

    /// Where an atom lies.
    pub(crate) fn atom_interval(&self, id: AtomId) -> Interval {
        let atom = match self.caches.borrow().atoms.at(id as usize) {
            Some((_, AtomFound { interval: Some(known), .. })) => return *known,
            Some((atom, _)) => atom.clone(),
            None => return Interval::ALL,
        };
        let found = match &*atom {
            Atom::Leaf(expr) => self.interval(expr),
            Atom::Div(poly, divisor) => self.poly_interval(poly).floor_div(*divisor),
            Atom::Mod(poly, divisor) => {
                binary_interval(BinaryOp::FloorMod, self.poly_interval(poly), Interval::point(*divisor))
            }
        };
        if let Some(slot) = self.caches.borrow_mut().atoms.at_mut(id as usize) {
            slot.interval = Some(found);
        }
        found
    }

    /// The expression as constant multiples of variables, the constant term without one; `None` where it is
    /// something else.
    pub(crate) fn affine(&self, expr: &Expr) -> Option<Vec<(Option<Var>, i128)>> {
        let Linear { terms, constant } = self.linear(expr)?;
        let terms = terms.into_iter().map(|(term, coeff)| Some((Some(term.as_var()?.clone()), coeff)));
        terms.chain([Some((None, constant))]).collect()
    }

    /// A scalar integer expression as a sum of constant multiples. Conversions that change no value are looked through, so
    /// terms may be of other types than the expression. `None` where a part is not known any more.
    pub fn linear(&self, expr: &Expr) -> Option<Linear> {
        let poly = self.poly(expr);
        let term = |(product, coeff): (&[AtomId], i128)| Some((self.product_expr(product)?, coeff));
        let terms = poly.products().map(term).collect::<Option<_>>()?;
        Some(Linear { terms, constant: poly.constant_term() })
    }

    fn product_expr(&self, product: &[AtomId]) -> Option<Expr> {
        let factors = product.iter().map(|id| self.atom_expr(*id)).collect::<Option<Vec<_>>>()?;
        factors.into_iter().reduce(|a, b| {
            let (a, b) = Expr::promoted(a, b);
            a * b
        })
    }

    fn atom_expr(&self, id: AtomId) -> Option<Expr> {
        match &*self.atom(id)? {
            Atom::Leaf(expr) => Some(expr.clone()),
            Atom::Div(poly, divisor) => {
                Some(self.poly_expr(poly)?.floordiv(Expr::int_of(*divisor, DType::I64)))
            }
            Atom::Mod(poly, divisor) => {
                Some(self.poly_expr(poly)?.floormod(Expr::int_of(*divisor, DType::I64)))
            }
        }
    }

    fn poly_expr(&self, poly: &Poly) -> Option<Expr> {
        let constant = Expr::int_of(poly.constant_term(), DType::I64);
        poly.products().try_fold(constant, |sum, (product, coeff)| {
            Some(sum + self.product_expr(product)?.cast(DType::I64) * Expr::int_of(coeff, DType::I64))
        })
    }

    /// Whether the operation's value is that of mathematical integers, without wrapping. Signed 32 and 64 bit
    /// arithmetic on variables is taken as index arithmetic, which does not wrap; with values read from memory or
    /// converted from floats in it, and for other types, only bounds can tell.
    pub(crate) fn is_exact(&self, expr: &Expr) -> bool {
        let index = matches!(expr.dtype(), DType::I32 | DType::I64) && !self.holds_data(expr);
        match expr.node() {
            Node::Binary(op @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul), a, b) => {
                index || binary_interval(*op, self.interval(a), self.interval(b)).fits(expr.dtype())
            }
            _ => true,
        }
    }

    /// Whether a value read from memory, a function's result or a converted float is in the expression.
    pub(crate) fn holds_data(&self, expr: &Expr) -> bool {
        match expr.node() {
            Node::Int(_) => return false,
            Node::Var(var) => {
                self.look_at(var);
                return var.dtype().is_float()
                    || self.facts.vars.get(&var.id()).is_some_and(|known| known.is_data);
            }
            Node::Load(..) | Node::Call(..) | Node::Float(_) | Node::Let(..) => return true,
            _ => {}
        }
        if let Some(known) = self.found(expr, |found| found.holds_data) {
            return known;
        }
        let found = expr.dtype().is_float() || expr.children().any(|child| self.holds_data(child));
        self.note(expr, |known| known.holds_data = Some(found));
        found
    }
}
