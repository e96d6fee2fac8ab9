//! Indices as sums of digits: thread indices and loop variables with constant factors, and a rest that all threads share.
//!
//! Where two indices are equal, digits that nothing else reaches are equal too. So they tell which thread an access is of.
//! A thread index that is divided by a constant is two digits, its quotient and its remainder.

use coulis_ir::expr::{BinaryOp, Expr, Node, Var};
use coulis_ir::hash::FastMap;
use coulis_ir::simplify::{Analyzer, gcd};
use coulis_ir::visit::{for_each_expr, substitute_expr};

use crate::affine::split;
use crate::shared_access::{Access, Threads, constant_part};

/// A thread index, or what is left of one that is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// Which of the thread indices.
    pub thread: usize,
    /// What it is divided by.
    pub by: i128,
    /// The quotient or the remainder.
    pub is_quotient: bool,
}

/// The integers from `least` to `most`, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Range {
    /// The first.
    pub least: i128,
    /// The last.
    pub most: i128,
}

impl Range {
    /// The value, where there is one only.
    pub fn as_value(self) -> Option<i128> {
        (self.least == self.most).then_some(self.least)
    }

    /// The least range around both.
    pub fn around(self, other: Range) -> Range {
        Range { least: self.least.min(other.least), most: self.most.max(other.most) }
    }

    /// How many there are.
    fn count(self) -> i128 {
        self.most - self.least + 1
    }

    /// Where quotients and remainders of them lie.
    fn divided(self, by: i128) -> [Range; 2] {
        let quotient = Range { least: self.least.div_euclid(by), most: self.most.div_euclid(by) };
        let remainder = match quotient.as_value() {
            Some(_) => Range { least: self.least.rem_euclid(by), most: self.most.rem_euclid(by) },
            None => Range { least: 0, most: by - 1 },
        };
        [quotient, remainder]
    }
}

/// A part of a thread index with its factor.
#[derive(Clone, Copy)]
struct Digit {
    factor: i128,
    range: Range,
}

/// The digits of one thread index.
struct ThreadDigits {
    /// What the index is divided by; 1 where it is one digit.
    by: i128,
    /// The quotient, and what remains.
    digits: [Digit; 2],
}

impl ThreadDigits {
    /// The same with the index divided by `by`, if it is divided by nothing else.
    fn divided(&self, by: i128) -> Option<[Digit; 2]> {
        if self.by == by {
            return Some(self.digits);
        }
        let whole = self.digits[0];
        let [quotient, remainder] = whole.range.divided(by);
        (self.by == 1).then_some([
            Digit { factor: whole.factor * by, range: quotient },
            Digit { factor: whole.factor, range: remainder },
        ])
    }
}

/// An index as digits.
pub struct Place {
    /// Of each thread index, in the order of the threads.
    threads: Vec<ThreadDigits>,
    /// Loops: factor and extent.
    loops: Vec<(i128, Option<i128>)>,
    constant: i128,
    /// What is neither.
    rest: Expr,
}

impl Place {
    /// The digits of an index of the access; `None` where it is not made of such.
    pub fn of_index(index: &Expr, access: &Access, threads: &Threads, known: &Analyzer) -> Option<Place> {
        let mut rest = known.simplify(index);
        let mut of_threads = Vec::with_capacity(threads.indices.len());
        for (var, extent) in &threads.indices {
            let by = divided_by(&rest, var).unwrap_or(1);
            let mut factors = [0; 2];
            if by == 1 {
                (factors[0], rest) = without(&rest, var)?;
            } else {
                let digits =
                    Range { least: 0, most: extent - 1 }.divided(by).map(|r| (var.fresh(), r.count()));
                rest = in_digits(&rest, var, &digits, known);
                for (factor, (digit, _)) in factors.iter_mut().zip(&digits) {
                    (*factor, rest) = without(&rest, digit)?;
                }
            }
            let [quotient, remainder] = access.range_of(var, *extent).divided(by);
            let quotient = Digit { factor: factors[0], range: quotient };
            let remainder = Digit { factor: factors[1], range: remainder };
            of_threads.push(ThreadDigits { by, digits: [quotient, remainder] });
        }
        let mut loops = Vec::new();
        for (var, extent) in access.loops.iter().chain(&access.around) {
            let factor;
            (factor, rest) = without(&rest, var)?;
            loops.push((factor, *extent));
        }
        let rest = known.simplify(&rest);
        let (rest, constant) = constant_part(&rest);
        let is_shared = !rest.reads_memory() && !threads.tell_apart(&rest);
        is_shared.then_some(Place { threads: of_threads, loops, constant, rest })
    }

    /// Whether the two are never equal, since one is always above the other.
    pub fn is_apart_from(&self, other: &Place) -> bool {
        let ((lo_a, hi_a), (lo_b, hi_b)) = (self.reach(), other.reach());
        let is_below = |hi: Option<i128>, lo: Option<i128>| hi.zip(lo).is_some_and(|(hi, lo)| hi < lo);
        self.rest == other.rest && (is_below(hi_a, lo_b) || is_below(hi_b, lo_a))
    }

    /// The least and the most that it is above what all threads share; `None` where a loop has no known end.
    fn reach(&self) -> (Option<i128>, Option<i128>) {
        let of_threads =
            self.threads.iter().flat_map(|thread| thread.digits).map(|Digit { factor, range }| {
                let (a, b) = (factor * range.least, factor * range.most);
                (Some(a.min(b)), Some(a.max(b)))
            });
        let of_loops = self.loops.iter().filter(|(factor, _)| *factor != 0).map(|(factor, extent)| {
            let last = extent.map(|n| factor * (n - 1).max(0));
            if *factor > 0 { (Some(0), last) } else { (last, Some(0)) }
        });
        let start = (Some(self.constant), Some(self.constant));
        let add = |a: Option<i128>, b: Option<i128>| a.zip(b).map(|(a, b)| a + b);
        of_threads.chain(of_loops).fold(start, |(lo, hi), (least, most)| (add(lo, least), add(hi, most)))
    }

    /// The parts of threads that are equal wherever the two places are.
    pub fn told_with(&self, other: &Place) -> Vec<Part> {
        self.try_told_with(other).unwrap_or_default()
    }

    fn try_told_with(&self, other: &Place) -> Option<Vec<Part>> {
        if self.rest != other.rest {
            return None;
        }
        let mut told = Vec::new();
        let mut digits = Vec::new();
        // What is left of each place beside common digits.
        let mut constants = [self.constant, other.constant];
        for (thread, (a, b)) in self.threads.iter().zip(&other.threads).enumerate() {
            let by = a.by.max(b.by);
            for (at, (a, b)) in a.divided(by)?.into_iter().zip(b.divided(by)?).enumerate() {
                let factor = common_factor(a, b)?;
                for (constant, digit) in constants.iter_mut().zip([a, b]) {
                    *constant += (digit.factor - factor) * digit.range.least;
                }
                let n_values = a.range.around(b.range).count();
                if factor != 0 || n_values == 1 {
                    told.push(Part { thread, by, is_quotient: at == 0 });
                }
                if factor != 0 && n_values > 1 {
                    digits.push((factor.abs(), n_values));
                }
            }
        }
        digits.sort_unstable();
        let Some(&(least, _)) = digits.first() else { return Some(told) };
        // Loops below the threads move within a window, loops above them by whole multiples of a step.
        let is_low =
            |(factor, extent): &(i128, Option<i128>)| extent.is_some_and(|n| factor.abs() * n <= least);
        let mut step: Option<i128> = None;
        for (factor, _) in self.loops.iter().chain(&other.loops).filter(|l| !is_low(l) && l.0 != 0) {
            step = Some(step.map_or(factor.abs(), |s| gcd(s, factor.abs())));
        }
        let window = |place: &Place, constant: i128| {
            let base = step.map_or(constant, |s| constant.rem_euclid(s));
            place.loops.iter().filter(|l| is_low(l)).fold((base, base), |(lo, hi), (factor, extent)| {
                let reach = factor * (extent.unwrap_or(1) - 1).max(0);
                (lo + reach.min(0), hi + reach.max(0))
            })
        };
        let ((lo_a, hi_a), (lo_b, hi_b)) = (window(self, constants[0]), window(other, constants[1]));
        let mut span = hi_a.max(hi_b) - lo_a.min(lo_b) + 1;
        for (factor, n_values) in digits {
            if factor < span {
                return None;
            }
            span += factor * (n_values - 1);
        }
        step.is_none_or(|step| step >= span).then_some(told)
    }
}

/// The factor that two digits have; one that has one value only may have any.
fn common_factor(a: Digit, b: Digit) -> Option<i128> {
    let is_any = |digit: Digit| digit.range.as_value().is_some();
    match (a.factor, b.factor) {
        (x, y) if x == y => Some(x),
        (x, 0) if is_any(b) => Some(x),
        (0, y) if is_any(a) => Some(y),
        (x, _) if is_any(b) => Some(x),
        (_, y) if is_any(a) => Some(y),
        _ => None,
    }
}

/// The constant factor of the variable in the index, and what remains.
fn without(index: &Expr, var: &Var) -> Option<(i128, Expr)> {
    let parts = split(index, var)?;
    Some((parts.coeff.as_int()?, parts.rest))
}

/// The constant that a thread index is divided by in an index.
fn divided_by(index: &Expr, var: &Var) -> Option<i128> {
    let mut found = None;
    for_each_expr(index, &mut |e| {
        if let Node::Binary(BinaryOp::FloorDiv | BinaryOp::FloorMod, x, by) = e.node()
            && x.as_var() == Some(var)
        {
            found = found.or(by.as_int().filter(|by| *by > 1));
        }
    });
    found
}

/// The index where a thread index is its quotient and its remainder.
fn in_digits(index: &Expr, var: &Var, digits: &[(Var, i128); 2], known: &Analyzer) -> Expr {
    let mut known = known.clone();
    for (digit, extent) in digits {
        known.bind(digit, &Expr::int_of(0, digit.dtype()), &Expr::int_of(*extent, digit.dtype()));
    }
    let [(quotient, _), (remainder, by)] = digits;
    let value = quotient.expr() * Expr::int_of(*by, var.dtype()) + remainder.expr();
    known.simplify(&substitute_expr(index, &FastMap::from_iter([(var.clone(), value)])))
}
