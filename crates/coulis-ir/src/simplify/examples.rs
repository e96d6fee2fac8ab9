//! Examples: runs of a kernel, each of its own sizes and iterations, in which expressions have values.
//!
//! What is so in one of them is not otherwise in all runs. What is false in one cannot be proved, and no proof of it is
//! looked for: searches that fail take most steps. An example in which an access comes to pass and is inside its buffer tells
//! that the access is not outside for certain. Where none tells, nothing is known.

use std::cell::OnceCell;
use std::rc::Rc;
use std::slice::from_ref;

use super::logic::without_likely;
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, Node, Var, VarKind};
use crate::visit::uses_any;

/// How many there are.
const N: usize = 16;

/// What sizes are, each beginning at a place of its own: none, less than a step of most loops, mostly with a rest of every
/// smaller step, a few of them, and many.
const SIZES: [i64; N] =
    [487, 1 << 20, 61, 0, 999, 1, 171, 4099, 13, 70_001, 342, 777, 32_000, 3, 1_000_003, 250];

/// Steps on the way to a place that are followed.
const MOST_STEPS: usize = 512;

/// Parts of an expression that are looked at, those that it shares as often as they stand in it.
pub(crate) const MOST_PARTS: u32 = 1000;

/// A set of examples, a bit for each.
type Set = u16;

const ALL: Set = Set::MAX;

/// What something is in each example in which that is known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Values {
    of: [i64; N],
    known: Set,
}

const UNKNOWN: Values = Values { of: [0; N], known: 0 };

impl Default for Values {
    fn default() -> Values {
        UNKNOWN
    }
}

impl Values {
    /// The same in each.
    pub fn constant(value: i128) -> Values {
        i64::try_from(value).map_or(UNKNOWN, |value| Values { of: [value; N], known: ALL })
    }

    fn zip(&self, other: &Values, f: impl Fn(i64, i64) -> Option<i64>) -> Values {
        let mut found = UNKNOWN;
        for at in members(self.known & other.known) {
            if let Some(value) = f(self.of[at], other.of[at]) {
                found.of[at] = value;
                found.known |= 1 << at;
            }
        }
        found
    }

    /// The sums.
    pub fn add(&self, other: &Values) -> Values {
        self.zip(other, i64::checked_add)
    }

    /// The products.
    pub fn mul(&self, other: &Values) -> Values {
        self.zip(other, i64::checked_mul)
    }

    /// Floored quotients by others that are positive.
    pub fn floor_div(&self, other: &Values) -> Values {
        self.zip(other, |a, b| if b > 0 { a.checked_div_euclid(b) } else { None })
    }

    /// Remainders of these.
    pub fn floor_mod(&self, other: &Values) -> Values {
        self.zip(other, |a, b| if b > 0 { a.checked_rem_euclid(b) } else { None })
    }

    /// Where they are of a type; what is not one of it would wrap.
    fn within(self, dtype: DType) -> Values {
        let Some((least, most)) = dtype.int_range() else { return UNKNOWN };
        let fits = self.in_which(|value| least <= i128::from(value) && i128::from(value) <= most);
        Values { known: fits, ..self }
    }

    /// The examples in which they are known and the condition holds.
    fn in_which(&self, f: impl Fn(i64) -> bool) -> Set {
        members(self.known).filter(|at| f(self.of[*at])).fold(0, |set, at| set | 1 << at)
    }

    fn is_true(&self) -> Set {
        self.in_which(|value| value != 0)
    }

    fn is_false(&self) -> Set {
        self.in_which(|value| value == 0)
    }
}

fn members(set: Set) -> impl Iterator<Item = usize> {
    (0..N).filter(move |at| set >> at & 1 == 1)
}

/// The examples that come to a place, and the variables there. They are followed once somebody asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Examples(Option<Rc<Step>>);

/// The last thing on the way to a place.
#[derive(Debug)]
struct Step {
    outer: Examples,
    /// How many steps are before it.
    n_outer: usize,
    what: What,
    followed: OnceCell<Followed>,
}

#[derive(Debug)]
enum What {
    /// Into a loop of that first value and length: in its first iteration, its last or one between them.
    Loop(Var, Expr, Expr),
    /// Past a name; of memory where it has no value.
    Name(Var, Option<Expr>),
    /// Into a branch whose condition holds.
    Holds(Expr),
    /// Into one whose condition does not.
    Fails(Expr),
    /// To where no example is known to come.
    Nowhere,
}

#[derive(Clone, Copy, Debug)]
struct Followed {
    /// Of the variable that the step is about.
    values: Values,
    coming: Set,
    /// How many loops are around.
    depth: usize,
}

impl Examples {
    fn then(&self, what: What) -> Examples {
        let n_outer = match self.0.as_deref() {
            None => 0,
            Some(Step { what: What::Nowhere, .. }) => return self.clone(),
            Some(step) => step.n_outer + 1,
        };
        let what = if n_outer < MOST_STEPS { what } else { What::Nowhere };
        Examples(Some(Rc::new(Step { outer: self.clone(), n_outer, what, followed: OnceCell::new() })))
    }

    /// Inside a loop.
    pub fn inside(&self, var: &Var, min: &Expr, extent: &Expr) -> Examples {
        self.then(What::Loop(var.clone(), min.clone(), extent.clone()))
    }

    /// Inside a name of the value.
    pub fn naming(&self, var: &Var, value: &Expr) -> Examples {
        self.then(What::Name(var.clone(), Some(value.clone())))
    }

    /// Inside a name of a value from memory.
    pub fn naming_data(&self, var: &Var) -> Examples {
        self.then(What::Name(var.clone(), None))
    }

    /// Where the condition holds.
    pub fn under(&self, cond: &Expr) -> Examples {
        self.then(What::Holds(cond.clone()))
    }

    /// Where it does not.
    pub fn under_not(&self, cond: &Expr) -> Examples {
        self.then(What::Fails(cond.clone()))
    }

    /// Where no example is known to come.
    pub fn nowhere(&self) -> Examples {
        self.then(What::Nowhere)
    }

    /// Whether an expression is known to have several values here.
    pub fn vary(&self, expr: &Expr) -> bool {
        let values = self.values(expr);
        let mut those = members(values.known & self.followed().coming).map(|at| values.of[at]);
        those.next().is_some_and(|first| those.any(|other| other != first))
    }

    /// Whether the index is in `[0, size)` in one of them.
    pub fn is_inside(&self, index: &Expr, shift: i128, size: i128) -> bool {
        let inside = |value: i64| (0..size).contains(&(i128::from(value) + shift));
        let coming = self.followed().coming;
        coming != 0 && self.values(index).in_which(inside) & coming != 0
    }

    /// Whether values here are below 0 in one of them.
    pub fn have_negative(&self, values: &Values) -> bool {
        values.in_which(|value| value < 0) & self.followed().coming != 0
    }

    /// Whether any comes here, as far as is known.
    pub fn come(&self) -> bool {
        self.followed().coming != 0
    }

    /// Whether a step names the variable.
    pub fn name(&self, var: &Var) -> bool {
        let is_in = |e: &Expr| uses_any(e, from_ref(var));
        let steps = std::iter::successors(self.0.as_ref(), |step| step.outer.0.as_ref());
        { steps }.any(|step| match &step.what {
            What::Loop(bound, min, extent) => bound == var || is_in(min) || is_in(extent),
            What::Name(bound, value) => bound == var || value.as_ref().is_some_and(is_in),
            What::Holds(cond) | What::Fails(cond) => is_in(cond),
            What::Nowhere => false,
        })
    }

    fn followed(&self) -> Followed {
        let Some(step) = &self.0 else { return Followed { values: UNKNOWN, coming: ALL, depth: 0 } };
        *step.followed.get_or_init(|| {
            let before = Followed { values: UNKNOWN, ..step.outer.followed() };
            step.outer.follow(&step.what, before)
        })
    }

    fn follow(&self, what: &What, before: Followed) -> Followed {
        let Followed { coming, depth, .. } = before;
        match what {
            What::Loop(_, min, extent) => {
                let (min, mut steps) = (self.values(min), self.values(extent));
                let runs = steps.in_which(|n| n > 0);
                for (at, n) in steps.of.iter_mut().enumerate() {
                    // Outermost loops are over parts of a size, of which small ones have the first alone.
                    let is_first = depth == 0 && at % 4 != 3;
                    *n = if is_first { 0 } else { [0, *n - 1, *n / 2][(at + depth) % 3] };
                }
                let values = min.zip(&steps, i64::checked_add);
                Followed { values, coming: coming & runs, depth: depth + 1 }
            }
            What::Name(_, Some(value)) => Followed { values: self.values(value), ..before },
            What::Name(_, None) => before,
            What::Holds(cond) => Followed { coming: coming & self.values(cond).is_true(), ..before },
            What::Fails(cond) => Followed { coming: coming & self.values(cond).is_false(), ..before },
            What::Nowhere => Followed { coming: 0, ..before },
        }
    }

    fn var(&self, var: &Var) -> Values {
        let mut around = self;
        while let Some(step) = &around.0 {
            match &step.what {
                What::Loop(bound, ..) | What::Name(bound, _) if bound == var => {
                    return around.followed().values;
                }
                _ => around = &step.outer,
            }
        }
        match var.kind() {
            // Sizes of which each could be the greater one.
            VarKind::Size => {
                let turn = var.id().0 as usize;
                Values { of: std::array::from_fn(|at| SIZES[(at + turn) % N]), known: ALL }
                    .within(var.dtype())
            }
            VarKind::Plain | VarKind::Handle => UNKNOWN,
        }
    }

    /// What an expression is in each example; nothing of one that reads memory.
    pub fn values(&self, expr: &Expr) -> Values {
        self.values_of(expr, &mut { MOST_PARTS })
    }

    /// The same, where only so many parts may still be looked at.
    pub fn values_of(&self, expr: &Expr, left: &mut u32) -> Values {
        if *left == 0 || expr.reads_memory() || !expr.ty().is_scalar() || expr.dtype().is_float() {
            return UNKNOWN;
        }
        *left -= 1;
        let expr = without_likely(expr);
        match expr.node() {
            Node::Int(value) => Values::constant(*value),
            Node::Var(var) => self.var(var),
            Node::Binary(op, a, b) => {
                let (a, b) = (self.values_of(a, left), self.values_of(b, left));
                binary(*op, &a, &b).within(expr.dtype())
            }
            Node::Not(a) => {
                let a = self.values_of(a, left);
                a.zip(&a, |a, _| Some(i64::from(a == 0)))
            }
            Node::Cast(a) => self.values_of(a, left).within(expr.dtype()),
            Node::Select(cond, a, b) | Node::IfThenElse(cond, a, b) => {
                let cond = self.values_of(cond, left);
                let (mut found, b) = (self.values_of(a, left), self.values_of(b, left));
                let otherwise = cond.is_false();
                members(otherwise).for_each(|at| found.of[at] = b.of[at]);
                found.known = found.known & cond.is_true() | b.known & otherwise;
                found
            }
            _ => UNKNOWN,
        }
    }
}

fn binary(op: BinaryOp, a: &Values, b: &Values) -> Values {
    let of = |f: fn(i64, i64) -> bool| a.zip(b, |a, b| Some(i64::from(f(a, b))));
    match op {
        BinaryOp::Add => a.add(b),
        BinaryOp::Sub => a.zip(b, i64::checked_sub),
        BinaryOp::Mul => a.mul(b),
        BinaryOp::Min => a.zip(b, |a, b| Some(a.min(b))),
        BinaryOp::Max => a.zip(b, |a, b| Some(a.max(b))),
        BinaryOp::FloorDiv => a.floor_div(b),
        BinaryOp::FloorMod => a.floor_mod(b),
        BinaryOp::Eq => of(|a, b| a == b),
        BinaryOp::Ne => of(|a, b| a != b),
        BinaryOp::Lt => of(|a, b| a < b),
        BinaryOp::Le => of(|a, b| a <= b),
        BinaryOp::Gt => of(|a, b| a > b),
        BinaryOp::Ge => of(|a, b| a >= b),
        BinaryOp::And => of(|a, b| a != 0 && b != 0),
        BinaryOp::Or => of(|a, b| a != 0 || b != 0),
        BinaryOp::Div
        | BinaryOp::TruncMod
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::Shl
        | BinaryOp::Shr => UNKNOWN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simplify::{Analyzer, n_steps};

    fn size(name: &str) -> Var {
        Var::size(name, DType::I32)
    }

    #[test]
    fn examples_are_in_loops_and_branches_and_have_the_values_of_names() {
        let (n, i, q) = (size("n"), size("i"), size("q"));
        let (zero, four) = (Expr::int(0), Expr::int(4));
        let inside = Examples::default().inside(&i, &zero, &n.expr());
        assert!(!inside.have_negative(&inside.values(&i.expr())));
        assert!(!inside.have_negative(&inside.values(&(n.expr() - i.expr() - Expr::int(1)))));
        assert!(inside.have_negative(&inside.values(&(i.expr() - n.expr()))));
        let named = inside.naming(&q, &i.expr().floordiv(four.clone()));
        let rest = i.expr() - q.expr() * four.clone();
        assert!(!named.have_negative(&named.values(&rest)));
        assert!(!named.have_negative(&named.values(&(Expr::int(3) - rest))));
        let below = named.under(&i.expr().lt(four));
        assert!(below.come() && !below.vary(&q.expr()) && named.vary(&q.expr()));
        assert!(!below.under_not(&q.expr().equal(zero.clone())).come());
        assert!(!below.nowhere().come());
        // Nothing is known after many steps, nor of what has many parts.
        let many = (0..=MOST_STEPS).fold(inside.clone(), |inside, _| inside.under(&Expr::bool(true)));
        assert!(!many.come() && !many.inside(&q, &zero, &n.expr()).come());
        let doubled = (0..60).fold(n.expr(), |e, _| e.clone().max(e + Expr::int(1)));
        assert!(!inside.vary(&doubled));
        // Of what would wrap nothing is known, nor of memory.
        let large = Expr::int(i32::MAX) + i.expr() + Expr::int(1);
        assert!(!inside.vary(&large) && !inside.is_inside(&large, 0, i128::MAX));
        let data = inside.naming_data(&q);
        assert!(data.come() && !data.vary(&q.expr()) && !data.under(&q.expr().ge(zero)).come());
    }

    #[test]
    fn what_is_false_in_an_example_takes_no_search_and_what_holds_is_proved_as_before() {
        let (n, i) = (size("n"), size("i"));
        let half = n.expr().floordiv(Expr::int(2));
        let mut known = Analyzer::new();
        known.bind(&i, &Expr::int(0), &half);
        assert!(known.can_prove(&(i.expr() * Expr::int(2)).lt(n.expr())));
        let before = n_steps();
        assert!(!known.can_prove(&i.expr().lt(Expr::int(7))));
        // The comparison and its operands are looked at, and no polynomial.
        assert!(n_steps() - before <= 3, "{}", n_steps() - before);
        // A variable that is bound again has another value than what is known of it.
        known.assume(&i.expr().lt(Expr::int(7)));
        known.bind(&i, &n.expr(), &Expr::int(3));
        assert!(!known.facts.examples.come());
    }
}
