//! Simplification and proof of integer expressions: bounds, divisibility, canonical sums.
//!
//! Signed 32 and 64 bit arithmetic on variables is index arithmetic, and is taken not to wrap. Arithmetic on values
//! that come from memory, from functions or from floats, and arithmetic of other types, wraps as the machine does
//! unless bounds show that it cannot; a variable that stands for such a value is made known with
//! [`Analyzer::bind_value`]. What is proved holds where the divisions in it are carried out; what is rewritten still
//! carries out those whose divisor may be 0 (`divisors.rs`). Floats keep their bits.
//!
//! Every rewrite is a function in [`rules::RULES`], and each is tested by evaluation on random operands.
//! Source: the behaviour listed in seed 003's lowered programs; contract N15 for floats.

mod cases;
mod compare;
mod divide;
mod divisors;
mod examples;
mod fold;
mod found;
mod interval;
mod logic;
mod modular;
mod narrow;
mod place;
mod poly;
mod prove;
mod rules;
mod sum;
#[cfg(test)]
mod tests;
mod vector;

use crate::hash::{FastMap, Table};
use std::cell::Cell;
use std::rc::Rc;

use crate::dtype::{DType, Ty};
use crate::expr::{BinaryOp, Expr, Names, Node, Var, VarId};
use crate::kernel::Kernel;
use crate::visit::map_children;
use compare::{integer_comparison, negated};
use found::{Found, FoundOut};
use interval::Interval;
use poly::{Atom, Poly};
use rules::{Kind, RULES};

pub(crate) use examples::Examples;
pub use interval::element_range;
pub(crate) use logic::without_likely;
pub use narrow::narrow_integers;
pub use poly::{Linear, gcd};

/// Rewrites that may follow one another at one node before the result is taken as it is.
const MAX_REWRITES: u32 = 64;

thread_local! {
    static N_STEPS: Cell<u64> = const { Cell::new(0) };
}

/// Steps that analyzers of this thread have made so far: an expression simplified that was not seen before, or a
/// polynomial looked at in a proof; and those of the verifier, each an operation or a place of 64 threads of a launch. A
/// measure of work that is the same on every machine, but for proofs of which examples tell that there is none: what these
/// are of goes by the numbers of variables.
pub fn n_steps() -> u64 {
    N_STEPS.get()
}

fn count_step() {
    count_steps(1);
}

/// Counts steps as this thread's that another one made for it.
pub(crate) fn count_steps(n: u64) {
    N_STEPS.set(N_STEPS.get() + n);
}

/// What is known: `larger - smaller >= gap`.
#[derive(Clone, Debug)]
struct Inequality {
    larger: Expr,
    smaller: Expr,
    gap: i128,
}

/// What is known of one variable.
#[derive(Clone, Debug, Default)]
struct VarFacts {
    /// `(min, extent)` of one that is bound.
    range: Option<(Expr, Expr)>,
    /// Position of one that is bound, the outermost loop first.
    order: Option<usize>,
    bounds: Option<Interval>,
    class: Option<modular::Class>,
    /// Whether it stands for a value from memory.
    is_data: bool,
}

#[derive(Clone, Debug, Default)]
struct Facts {
    /// Shared with the facts that these were made from, as the rest is: most analyzers add a fact or two to many.
    vars: Table<VarId, Rc<VarFacts>>,
    /// How many variables have an order.
    n_ordered: usize,
    /// These.
    ordered: Names,
    truths: Rc<Table<Expr, bool>>,
    inequalities: Rc<Vec<Inequality>>,
    /// Of bound variables whose ends are no constants: the variable, and those in its ends.
    open_ranges: Rc<Vec<(Names, Names)>>,
    /// Those for which all of this holds.
    examples: Examples,
    /// What they were told of.
    told: Names,
}

impl Facts {
    /// Goes on to examples in which a variable has a value that is made of others. What is known of it already is about
    /// another value.
    fn exemplify(&mut self, var: &Var, examples: Examples, others: Names) {
        let is_named = self.told.may_meet(Names::of(var)) && self.examples.name(var);
        self.examples = if is_named { examples.nowhere() } else { examples };
        self.told = self.told.and(Names::of(var)).and(others);
    }

    /// Of variables of which something new is known: all those whose expressions may be simplified otherwise than before.
    fn touched(&self, about: Names) -> Names {
        let mut all = about;
        loop {
            let before = all;
            for fact in self.inequalities.iter() {
                let named = fact.larger.names().and(fact.smaller.names());
                if named.may_meet(all) {
                    all = all.and(named);
                }
            }
            for (var, ends) in self.open_ranges.iter() {
                if ends.may_meet(all) {
                    all = all.and(*var);
                }
            }
            if all == before {
                return all;
            }
        }
    }
}

/// What is known of variables and conditions, and what follows.
///
/// Knowledge is added in the order of the text, outer loops first: [`Analyzer::bind`] for loops and threads,
/// [`Analyzer::assume`] for conditions, [`Analyzer::bind_value`] for names. Knowledge that holds in a part of the
/// text only is added to a clone, or to what [`Analyzer::with`] returns.
///
/// Clones share what they find out as long as they know the same. One that learns more asks the one before it about
/// expressions that its knowledge does not concern, so that what stands in a loop or branch is not looked at anew for what
/// comes from outside.
#[derive(Debug, Default)]
pub struct Analyzer {
    facts: Rc<Facts>,
    caches: Rc<FoundOut>,
    /// The one before the last thing that was learnt, if it is worth asking.
    outer: Option<Rc<Analyzer>>,
    /// Variables whose expressions `outer` knows less of.
    own: Names,
    /// How many there are outside.
    depth: u32,
    rewrites: Cell<u32>,
}

/// Analyzers that one may ask, one after another.
const MAX_OUTER: u32 = 64;

impl Clone for Analyzer {
    fn clone(&self) -> Analyzer {
        Analyzer {
            facts: self.facts.clone(),
            caches: self.caches.clone(),
            outer: self.outer.clone(),
            own: self.own,
            depth: self.depth,
            rewrites: Cell::default(),
        }
    }
}

impl Analyzer {
    /// Nothing known but the kinds of variables.
    pub fn new() -> Analyzer {
        Analyzer::default()
    }

    /// What a call has checked before a kernel runs: no extent of a parameter is below 0.
    pub fn of_call(kernel: &Kernel) -> Analyzer {
        let mut known = Analyzer::new();
        for extent in kernel.param_buffers().flat_map(|buffer| &buffer.shape) {
            known.assume(&Expr::int_of(0, extent.dtype()).le(extent.clone()));
        }
        known
    }

    /// Within what follows, `var` is in `[min, min + extent)`, and that range is not empty. Ends that are no scalar
    /// integers say nothing.
    pub fn bind(&mut self, var: &Var, min: &Expr, extent: &Expr) {
        if [min, extent].iter().any(|e| !e.ty().is_scalar() || e.dtype().is_float()) {
            return;
        }
        let given = extent;
        let (min, extent) = (self.simplify(min), self.simplify(extent));
        let before = self.detach();
        let examples = self.facts.examples.inside(var, &min, &extent);
        self.facts_mut().exemplify(var, examples, min.names().and(extent.names()));
        let last = self.interval(&min).add(self.interval(&extent)).add(Interval::point(-1));
        let bounds = Interval { lo: self.interval(&min).lo, hi: last.hi };
        self.narrow(var, bounds);
        if extent.is_int(1) {
            let class = self.modular(&min);
            self.var_mut(var).class = Some(class);
        }
        let mut about = Names::of(var);
        let facts = self.facts_mut();
        let position = facts.n_ordered;
        facts.ordered = facts.ordered.and(about);
        let known = Rc::make_mut(facts.vars.entry(&var.id()));
        // A variable that is bound again moves inwards.
        let is_new = known.order.is_none();
        known.order = Some(position);
        known.range = Some((min.clone(), extent.clone()));
        facts.n_ordered += usize::from(is_new);
        if min.as_int().is_none() || extent.as_int().is_none() {
            Rc::make_mut(&mut facts.open_ranges).push((about, min.names().and(extent.names())));
        }
        if min.divides() || extent.divides() {
            about = about.and(min.names());
            self.take_as_divided(&min);
            self.take_as_divided(&extent);
        }
        if extent.as_int().is_none() {
            about = about.and(extent.names());
            if matches!(extent.node(), Node::Binary(BinaryOp::Mul, ..)) {
                self.take_as_nonzero(&extent);
            }
            self.learn(&extent, &Expr::int_of(0, extent.dtype()), 1);
            if self.learn_of_parts(given) {
                let extent = self.simplify(given);
                self.var_mut(var).range = Some((min.clone(), extent));
            }
        }
        let is_closed = !min.reads_memory() && !extent.reads_memory();
        self.knows_more_than(before, about, is_closed);
    }

    /// Within what follows, `var` is equal to `value`. Of a value from memory only its range is kept, since stores
    /// may follow.
    pub fn bind_value(&mut self, var: &Var, value: &Expr) {
        if value.dtype().is_float() {
            // That it is one says all.
            return;
        }
        let value = self.simplify(value);
        let same_type = value.ty() == Ty::scalar(var.dtype());
        let known = same_type.then(|| (self.interval(&value), self.modular(&value)));
        if self.holds_data(&value) {
            self.bind_unknown(var, known);
            return;
        }
        let before = self.detach();
        if let Some((bounds, class)) = known {
            let examples = self.facts.examples.naming(var, &value);
            self.facts_mut().exemplify(var, examples, value.names());
            self.narrow(var, bounds);
            self.var_mut(var).class = Some(class);
            self.learn(&var.expr(), &value, 0);
            self.learn(&value, &var.expr(), 0);
        }
        self.knows_more_than(before, Names::of(var).and(value.names()), true);
    }

    /// Within what follows, `var` is a value from memory of which nothing is known.
    pub fn bind_data(&mut self, var: &Var) {
        if !var.dtype().is_float() {
            self.bind_unknown(var, None);
        }
    }

    /// A value from memory, of which perhaps a range and a class are known.
    fn bind_unknown(&mut self, var: &Var, known: Option<(Interval, modular::Class)>) {
        // Where nothing that was found out depends on it, that stays.
        let before = (!self.is_news(var)).then(|| self.detach());
        let examples = self.facts.examples.naming_data(var);
        self.facts_mut().exemplify(var, examples, Names::default());
        self.var_mut(var).is_data = true;
        if let Some((bounds, class)) = known {
            self.narrow(var, bounds);
            self.var_mut(var).class = Some(class);
        }
        match before {
            Some(before) => self.knows_more_than(before, Names::of(var), true),
            None => self.own = self.own.and(self.facts.touched(Names::of(var))),
        }
    }

    /// Whether nobody has asked for the variable so far, nor shares what this one knows.
    fn is_news(&self, var: &Var) -> bool {
        Rc::strong_count(&self.facts) == 1
            && Rc::strong_count(&self.caches) == 1
            && !self.caches.borrow().looked_at.contains_key(&var.id())
    }

    /// Notes that something depends on what is known of the variable's value.
    fn look_at(&self, var: &Var) {
        self.caches.borrow_mut().looked_at.entry(&var.id());
    }

    fn facts_mut(&mut self) -> &mut Facts {
        Rc::make_mut(&mut self.facts)
    }

    fn var_mut(&mut self, var: &Var) -> &mut VarFacts {
        Rc::make_mut(self.facts_mut().vars.entry(&var.id()))
    }

    /// What of an expression was found out, if that was.
    fn found<T>(&self, expr: &Expr, what: impl FnOnce(&Found) -> Option<T>) -> Option<T> {
        what(self.caches.borrow().exprs.get(expr)?)
    }

    /// Notes what was found out about an expression.
    fn note(&self, expr: &Expr, what: impl FnOnce(&mut Found)) {
        what(self.caches.borrow_mut().exprs.entry(expr));
    }

    /// Begins the addition of knowledge; what is returned does not get it.
    fn detach(&mut self) -> Analyzer {
        let before = self.clone();
        self.outer = None;
        self.forget();
        before
    }

    /// Ends the addition of knowledge about some variables. `before` did not have it. `is_closed`: nothing
    /// but those variables leads to it.
    fn knows_more_than(&mut self, before: Analyzer, about: Names, is_closed: bool) {
        self.forget();
        if is_closed && about != Names::default() && before.depth < MAX_OUTER {
            self.own = self.facts.touched(about);
            self.depth = before.depth + 1;
            self.outer = Some(Rc::new(before));
        } else {
            (self.own, self.depth, self.outer) = (Names::default(), 0, None);
        }
    }

    /// Within what follows, the scalar condition holds. Memory that it reads must not be written there.
    pub fn assume(&mut self, cond: &Expr) {
        let simple = self.simplify(cond);
        let before = self.detach();
        let facts = self.facts_mut();
        facts.examples = facts.examples.under(cond);
        facts.told = facts.told.and(cond.names());
        self.take_for_granted(cond);
        if simple != *cond {
            self.take_for_granted(&simple);
        }
        self.knows_more_than(before, cond.names().and(simple.names()), !cond.reads_memory());
    }

    /// A copy that has asked nothing so far and asks nobody.
    #[cfg(test)]
    fn alone(&self) -> Analyzer {
        Analyzer { facts: self.facts.clone(), ..Analyzer::default() }
    }

    /// A copy that also knows the condition.
    pub fn with(&self, cond: &Expr) -> Analyzer {
        let mut copy = self.clone();
        copy.assume(cond);
        copy
    }

    /// An equal expression, usually smaller: constants folded, like terms collected, terms in canonical order.
    /// Floats are folded only where the result has the same bits.
    pub fn simplify(&self, expr: &Expr) -> Expr {
        if matches!(expr.node(), Node::Int(_) | Node::Float(_)) {
            return expr.clone();
        }
        let mut asked = self;
        while let Some(outer) = &asked.outer
            && !expr.names().may_meet(asked.own)
        {
            asked = outer;
        }
        asked.simplify_here(expr)
    }

    fn simplify_here(&self, expr: &Expr) -> Expr {
        if let Some(done) = self.found(expr, |found| found.simplified.clone()) {
            return done;
        }
        count_step();
        let mut result = self.simplify_operands(expr);
        let kind = Kind::of(result.node()) as u8;
        let applied = RULES.iter().filter(|rule| rule.kinds & kind != 0).find_map(|rule| {
            let new = (rule.apply)(self, &result)?;
            let is_equal = new.ty() == result.ty() && self.keeps_divisors(&result, &new);
            (new != result && is_equal).then_some(new)
        });
        if let Some(new) = applied {
            let depth = self.rewrites.get();
            if depth < MAX_REWRITES {
                self.rewrites.set(depth + 1);
                result = self.simplify(&new);
                self.rewrites.set(depth);
            } else {
                result = new;
            }
        }
        self.note(expr, |found| found.simplified = Some(result.clone()));
        result
    }

    fn simplify_operands(&self, expr: &Expr) -> Expr {
        match expr.node() {
            Node::IfThenElse(cond, a, b) => {
                let cond = self.simplify(cond);
                let (a, b) = match cond.as_int() {
                    Some(value) => return self.simplify(if value != 0 { a } else { b }),
                    None if integer_comparison(&cond).is_some() => {
                        let otherwise = logic::opposite(&cond);
                        (self.with(&cond).simplify(a), self.with(&otherwise).simplify(b))
                    }
                    None => (self.simplify(a), self.simplify(b)),
                };
                Expr::if_then_else(cond, a, b)
            }
            Node::Let(var, value, body) => {
                let value = self.simplify(value);
                if value.as_int().is_some() || value.as_float().is_some() || value.as_var().is_some() {
                    let map = FastMap::from_iter([(var.clone(), value)]);
                    return self.simplify(&crate::visit::substitute_expr(body, &map));
                }
                let mut within = self.clone();
                within.bind_value(var, &value);
                Expr::let_in(var.clone(), value, within.simplify(body))
            }
            _ => map_children(expr, &mut |child| self.simplify(child)),
        }
    }

    /// Whether the bool expression holds for all values allowed. `false` means not proved.
    pub fn can_prove(&self, cond: &Expr) -> bool {
        let simple = self.simplify(cond);
        match simple.node() {
            Node::Broadcast(inner) => inner.is_int(1),
            _ => simple.dtype() == DType::Bool && self.holds_once_divided(&simple),
        }
    }

    /// Constant bounds `[min, max]` of an integer expression, where known. What the type alone says is not
    /// counted as known.
    pub fn const_bounds(&self, expr: &Expr) -> (Option<i128>, Option<i128>) {
        let range = Interval::of_dtype(expr.dtype());
        let found = self.interval(&self.simplify(expr));
        (found.lo.filter(|v| Some(*v) != range.lo), found.hi.filter(|v| Some(*v) != range.hi))
    }

    /// Whether an integer expression is known to be in `[lo, hi]`, which is less than its type holds.
    pub fn is_within(&self, expr: &Expr, lo: i128, hi: i128) -> bool {
        // What it is made of says so as a rule, and it need not be simplified for that.
        self.interval(expr).within(lo, hi)
            || matches!(self.const_bounds(expr), (Some(least), Some(most)) if lo <= least && most <= hi)
    }

    /// Whether what is known leaves no value to some variable, so that nothing for which it holds is ever carried out. An
    /// interval of an expression may then be empty, and says nothing.
    pub fn contradicts_itself(&self) -> bool {
        self.facts.vars.values().any(|known| known.bounds.is_some_and(Interval::is_empty))
    }

    /// Drops what was found out: the facts have changed.
    fn forget(&mut self) {
        self.caches = Rc::default();
    }

    fn narrow(&mut self, var: &Var, bounds: Interval) {
        let known = &mut self.var_mut(var).bounds;
        *known = Some(known.unwrap_or(Interval::ALL).intersect(bounds));
    }

    /// Records `larger - smaller >= gap`.
    fn learn(&mut self, larger: &Expr, smaller: &Expr, gap: i128) {
        if larger.ty() != smaller.ty() || !larger.ty().is_scalar() || larger.dtype().is_float() {
            return;
        }
        let difference = self.poly(larger).add_scaled(&self.poly(smaller), -1);
        if let Some(difference) = difference.and_then(|d| d.plus(-gap)) {
            self.narrow_by(&difference);
        }
        let is_there = self.interval(smaller).at_least(1 - gap);
        let is_plainer = is_there && self.learn_of_parts(larger);
        let larger = if is_plainer { self.simplify(larger) } else { larger.clone() };
        let fact = Inequality { larger, smaller: smaller.clone(), gap };
        Rc::make_mut(&mut self.facts_mut().inequalities).push(fact);
        self.forget();
    }

    /// What follows for the parts of a product or maximum that is at least 1, where one of them may be less. Whether
    /// something does.
    fn learn_of_parts(&mut self, expr: &Expr) -> bool {
        let Node::Binary(op @ (BinaryOp::Mul | BinaryOp::Max), a, b) = expr.node() else { return false };
        let (of_a, of_b) = (self.interval(a), self.interval(b));
        let parts = match op {
            // Of two factors of which one is not negative, both are positive.
            BinaryOp::Mul if of_a.at_least(0) != of_b.at_least(0) && self.is_exact(expr) => vec![a, b],
            BinaryOp::Max if of_b.at_most(0) => vec![a],
            BinaryOp::Max if of_a.at_most(0) => vec![b],
            _ => return false,
        };
        for part in parts.into_iter().filter(|part| part.as_int().is_none()) {
            self.learn(part, &Expr::int_of(0, part.dtype()), 1);
        }
        true
    }

    /// Bounds each variable of `poly >= 0` that stands alone in it, as far as the rest's bounds allow.
    fn narrow_by(&mut self, poly: &Poly) {
        for id in poly.atoms() {
            let Some(atom) = self.atom(id) else { continue };
            let Atom::Leaf(expr) = &*atom else { continue };
            let (Some(var), Some((factor, rest))) = (expr.as_var(), poly.split(id)) else { continue };
            let (Some(factor), Some(most)) = (factor.as_constant(), self.poly_interval(&rest).hi) else {
                continue;
            };
            // factor * var + most >= 0
            let bounds = if factor > 0 {
                Interval { lo: Some(-crate::op::floor_div(most, factor)), hi: None }
            } else {
                Interval { lo: None, hi: Some(crate::op::floor_div(most, -factor)) }
            };
            self.narrow(var, bounds);
        }
    }

    fn take_for_granted(&mut self, cond: &Expr) {
        if !cond.ty().is_scalar() || cond.dtype() != DType::Bool || cond.as_int().is_some() {
            return;
        }
        let cond = logic::without_likely(cond).clone();
        self.take_as_divided(&cond);
        let truths = Rc::make_mut(&mut self.facts_mut().truths);
        truths.insert(cond.clone().likely(), true);
        truths.insert(logic::opposite(&cond), false);
        truths.insert(cond.clone().logical_not(), false);
        truths.insert(cond.clone(), true);
        match cond.node() {
            Node::Binary(BinaryOp::And, a, b) => {
                self.take_for_granted(a);
                self.take_for_granted(b);
            }
            Node::Not(inner) => match inner.node() {
                Node::Binary(BinaryOp::Or, a, b) => {
                    self.take_for_granted(&a.clone().logical_not());
                    self.take_for_granted(&b.clone().logical_not());
                }
                Node::Binary(op, a, b) if integer_comparison(inner).is_some() => {
                    if let Some(op) = negated(*op) {
                        self.compare_granted(op, a, b);
                    }
                }
                _ => {}
            },
            Node::Binary(op, a, b) if integer_comparison(&cond).is_some() => self.compare_granted(*op, a, b),
            _ => {}
        }
    }

    fn compare_granted(&mut self, op: BinaryOp, a: &Expr, b: &Expr) {
        match op {
            BinaryOp::Lt => self.learn(b, a, 1),
            BinaryOp::Le => self.learn(b, a, 0),
            BinaryOp::Gt => self.learn(a, b, 1),
            BinaryOp::Ge => self.learn(a, b, 0),
            BinaryOp::Eq => {
                self.learn(a, b, 0);
                self.learn(b, a, 0);
                let remainder = match a.node() {
                    Node::Binary(BinaryOp::FloorMod, x, c) => x.as_var().zip(c.as_int()),
                    _ => None,
                };
                if let (Some((var, c)), Some(base)) = (remainder, b.as_int())
                    && c > 0
                    && (0..c).contains(&base)
                {
                    self.var_mut(var).class = Some((c, base));
                }
            }
            _ => {}
        }
    }
}
