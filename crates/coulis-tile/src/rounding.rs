//! How far the results of a call may be from the exact ones: what `explain` states next to each variant that
//! accepts.
//!
//! A tile call fixes the order in which its elements are combined, and with it the error (contract N12). A
//! sum of floats in which no element passes more than `d` additions on its way to the result is within `d u /
//! (1 - d u)` of the sum of magnitudes, where `u` is half the distance from 1 to the next number of the
//! accumulator's type. Source: N. Higham, Accuracy and Stability of Numerical Algorithms, section 4.2.
//! Additions of an identity round nothing and are not counted.
//!
//! Whether a reducer is such a sum is read off its expressions, as is whether it rounds at all.

use std::fmt;

use coulis_ir::visit::for_each_expr;
use coulis_ir::{BinaryOp, DType, ErrorBound, Expr, Intrinsic, Lambda, Node, Reducer};
use coulis_layout::counted;

use crate::facts::Facts;

/// Combinations that a variant makes of the elements of one result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Steps {
    /// Combinations that an element passes at most on its way to the result.
    pub longest: u64,
    /// Elements of the result.
    pub elements: u64,
}

impl Steps {
    /// One element after the other.
    pub fn chain(elements: u64) -> Steps {
        Steps { longest: elements.saturating_sub(1), elements }
    }

    /// Halves fold into halves.
    pub fn tree(elements: u64) -> Steps {
        Steps { longest: u64::from(elements.max(1).next_power_of_two().ilog2()), elements }
    }

    /// Each of the elements is itself the result of `inner`.
    pub fn over(self, inner: Steps) -> Steps {
        Steps { longest: self.longest + inner.longest, elements: self.elements * inner.elements }
    }
}

/// How far a result may be from the exact one, where nothing overflows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rounding {
    /// Nothing is rounded: integers, extrema, positions.
    Exact,
    /// A sum of floats.
    Sum {
        /// Additions that an element passes at most.
        additions: u64,
        /// The type in which they are made.
        accumulator: DType,
    },
    /// A product of floats: each multiplication rounds all of it.
    Product {
        /// Multiplications in all.
        multiplications: u64,
        /// The type in which they are made.
        accumulator: DType,
    },
    /// What the reducer claims for any order.
    Claimed(ErrorBound),
    /// A reducer whose combination rounds in a way of its own.
    Combinations {
        /// Combinations that an element passes at most.
        combinations: u64,
    },
}

/// What is stated of a variant for a call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Accuracy {
    /// Combinations, without that of the old value.
    pub steps: Steps,
    /// The bound, that of the old value included.
    pub rounding: Rounding,
    /// The narrower type in which the result is stored, where there is one: one rounding more.
    pub stored: Option<DType>,
    /// Whether subnormal numbers count as 0.
    pub flushes: bool,
}

impl Accuracy {
    /// The bound of a call that makes these steps, in a variant that flushes subnormal numbers where it may.
    pub fn of(facts: &Facts, steps: Steps, flushes_where_allowed: bool) -> Accuracy {
        let with_old = u64::from(facts.accum);
        let rounding = match Kind::of(facts.reducer) {
            Kind::Exact => Rounding::Exact,
            Kind::Sum(accumulator) => match steps.longest + with_old {
                0 => Rounding::Exact,
                additions => Rounding::Sum { additions, accumulator },
            },
            Kind::Product(accumulator) => match (steps.elements + with_old).saturating_sub(1) {
                0 => Rounding::Exact,
                multiplications => Rounding::Product { multiplications, accumulator },
            },
            Kind::Claimed(bound) => Rounding::Claimed(bound),
            Kind::Other => Rounding::Combinations { combinations: steps.longest + with_old },
        };
        // Where nothing was rounded before, results are elements.
        let keeps = |to: DType, result: DType| match rounding {
            Rounding::Exact => facts.srcs.iter().all(|src| holds(to, src.tile().dtype)),
            Rounding::Sum { .. }
            | Rounding::Product { .. }
            | Rounding::Claimed(_)
            | Rounding::Combinations { .. } => holds(to, result),
        };
        let stored = facts.dsts.iter().map(|dst| dst.tile().dtype).zip(&facts.reducer.finish.body);
        let narrowed =
            stored.filter(|(to, from)| to.is_float() && !keeps(*to, from.dtype())).map(|(to, _)| to);
        let flushes = flushes_where_allowed && facts.options.ftz && rounding != Rounding::Exact;
        Accuracy { steps, rounding, stored: narrowed.min_by_key(|dtype| digits(*dtype)), flushes }
    }

    /// The factor of the bound, before the rounding to the stored type; `None` where none is stated.
    pub fn factor(&self) -> Option<f64> {
        let of = |n: u64, dtype: DType| {
            let rounded = n as f64 * (0.5 * epsilon(dtype));
            (rounded < 1.0).then(|| rounded / (1.0 - rounded))
        };
        match self.rounding {
            Rounding::Exact | Rounding::Claimed(ErrorBound::Exact) => Some(0.0),
            Rounding::Sum { additions, accumulator } => of(additions, accumulator),
            Rounding::Product { multiplications, accumulator } => of(multiplications, accumulator),
            Rounding::Claimed(ErrorBound::Terms { factor, eps } | ErrorBound::Relative { factor, eps }) => {
                Some(factor * eps)
            }
            Rounding::Claimed(ErrorBound::Length { factor, eps }) => {
                Some(factor * eps * self.steps.elements as f64)
            }
            Rounding::Combinations { .. } => None,
        }
    }

    /// What the factor is multiplied with, as text.
    pub fn scale(&self) -> &'static str {
        match self.rounding {
            Rounding::Exact | Rounding::Combinations { .. } => "1",
            Rounding::Sum { .. } => "sum|x|",
            Rounding::Claimed(ErrorBound::Terms { .. }) => "sum|terms|",
            Rounding::Claimed(ErrorBound::Relative { .. }) => "max(1, |exact|)",
            Rounding::Product { .. } | Rounding::Claimed(ErrorBound::Length { .. } | ErrorBound::Exact) => {
                "|exact|"
            }
        }
    }
}

impl fmt::Display for Accuracy {
    /// `at most 3 additions in a chain, |error| <= 1.8e-7 * sum|x|`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at_most = |n: u64, what: &str| format!("at most {}", counted(n, what));
        let text = match self.rounding {
            Rounding::Exact => "exact".to_owned(),
            Rounding::Sum { additions, .. } => format!("{} in a chain", at_most(additions, "addition")),
            Rounding::Product { multiplications, .. } => at_most(multiplications, "multiplication"),
            Rounding::Claimed(_) => "in any order".to_owned(),
            Rounding::Combinations { combinations } => {
                format!("{} in a chain, each as it rounds", at_most(combinations, "combination"))
            }
        };
        f.write_str(&text)?;
        match (self.rounding, self.factor()) {
            (Rounding::Exact | Rounding::Combinations { .. }, _) => {}
            (_, Some(factor)) => write!(f, ", |error| <= {} * {}", upwards(factor), self.scale())?,
            (_, None) => f.write_str(", too many for a bound")?,
        }
        if self.flushes {
            f.write_str(", subnormal numbers as 0")?;
        }
        match self.stored {
            Some(dtype) => write!(f, ", then rounded to {}", dtype.name()),
            None => Ok(()),
        }
    }
}

/// A bound in two digits, rounded up.
fn upwards(bound: f64) -> String {
    if bound <= 0.0 {
        return "0".to_owned();
    }
    let exponent = bound.log10().floor() as i32 - 1;
    let mut digits = (bound / 10f64.powi(exponent)).ceil();
    let mut exponent = exponent + 1;
    if digits >= 100.0 {
        (digits, exponent) = (10.0, exponent + 1);
    }
    format!("{:.1}e{exponent}", digits / 10.0)
}

/// What a reducer does to floats.
enum Kind {
    Exact,
    Sum(DType),
    Product(DType),
    Claimed(ErrorBound),
    Other,
}

impl Kind {
    fn of(reducer: &Reducer) -> Kind {
        let is_plain = |lambda: &Lambda| !lambda.body.iter().any(rounds);
        let converts = is_plain(&reducer.lift) && is_plain(&reducer.finish);
        if converts && is_plain(&reducer.combine) {
            return Kind::Exact;
        }
        let n = reducer.fields.len();
        let (left, right) = reducer.combine.params.split_at(n.min(reducer.combine.params.len()));
        // The fields that round, each of them by this operation on its two sides.
        let all_by = |op: BinaryOp| -> Option<Vec<DType>> {
            let sides = left.iter().zip(right).map(|(x, y)| (x.expr(), y.expr()));
            let mut found = Vec::new();
            for (part, (x, y)) in reducer.combine.body.iter().zip(sides) {
                let wanted = [(x.clone(), y.clone()), (y, x)]
                    .map(|(a, b)| (a.ty() == b.ty()).then(|| Expr::binary(op, a, b)));
                if wanted.iter().flatten().any(|e| e == part) {
                    found.push(part.dtype());
                } else if rounds(part) {
                    return None;
                }
            }
            Some(found)
        };
        let coarsest =
            |types: Vec<DType>| types.into_iter().filter(|d| d.is_float()).min_by_key(|d| digits(*d));
        if converts && let Some(dtype) = all_by(BinaryOp::Add).and_then(coarsest) {
            return Kind::Sum(dtype);
        }
        if converts
            && n == 1
            && let Some(dtype) = all_by(BinaryOp::Mul).and_then(coarsest)
        {
            return Kind::Product(dtype);
        }
        match reducer.error {
            ErrorBound::Exact => Kind::Other,
            claimed
            @ (ErrorBound::Terms { .. } | ErrorBound::Relative { .. } | ErrorBound::Length { .. }) => {
                Kind::Claimed(claimed)
            }
        }
    }
}

/// Whether a float of the expression may be rounded.
fn rounds(expr: &Expr) -> bool {
    let mut found = false;
    for_each_expr(expr, &mut |e| {
        found |= e.dtype().is_float()
            && match e.node() {
                Node::Binary(op, ..) => !matches!(op, BinaryOp::Min | BinaryOp::Max),
                Node::Cast(from) => !holds(e.dtype(), from.dtype()),
                Node::Call(intrinsic, _) => !matches!(
                    intrinsic,
                    Intrinsic::Max3
                        | Intrinsic::Min3
                        | Intrinsic::Abs
                        | Intrinsic::Floor
                        | Intrinsic::Ceil
                        | Intrinsic::Round
                        | Intrinsic::Trunc
                        | Intrinsic::Nearbyint
                        | Intrinsic::Likely
                ),
                _ => false,
            };
    });
    found
}

/// Significant binary digits of a type's numbers.
fn digits(dtype: DType) -> u32 {
    match dtype {
        DType::Bool => 1,
        DType::I8 => 7,
        DType::U8 => 8,
        DType::I16 => 15,
        DType::U16 => 16,
        DType::I32 => 31,
        DType::U32 => 32,
        DType::I64 => 63,
        DType::U64 => 64,
        DType::F8E5M2 => 3,
        DType::F8E4M3 => 4,
        DType::BF16 => 8,
        DType::F16 => 11,
        DType::F32 => 24,
        DType::F64 => 53,
    }
}

/// Whether the float type `to` has every number of `from`.
pub fn holds(to: DType, from: DType) -> bool {
    let range = |dtype: DType| match dtype {
        DType::F8E4M3 | DType::F8E5M2 | DType::F16 => 1,
        DType::BF16 | DType::F32 => 2,
        DType::F64 => 3,
        DType::Bool | DType::I8 | DType::U8 | DType::I16 | DType::U16 => 1,
        DType::I32 | DType::U32 | DType::I64 | DType::U64 => 2,
    };
    to == from || (digits(to) >= digits(from) && range(to) >= range(from))
}

/// Distance from 1 to the next number of a float type.
fn epsilon(dtype: DType) -> f64 {
    2f64.powi(1 - digits(dtype) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_is_rounded_up() {
        for (bound, text) in [
            (0.0, "0"),
            (3.0 * 2f64.powi(-24), "1.8e-7"),
            (1.0, "1.0e0"),
            (9.97e-8, "1.0e-7"),
            (31.0 * 2f64.powi(-53), "3.5e-15"),
        ] {
            assert_eq!(upwards(bound), text);
        }
    }

    #[test]
    fn steps_over_steps_add_up() {
        assert_eq!(Steps::tree(20).over(Steps::chain(3)), Steps { longest: 7, elements: 60 });
        assert_eq!((Steps::chain(1).longest, Steps::tree(1).longest, Steps::tree(0).longest), (0, 0, 0));
    }

    #[test]
    fn a_type_holds_narrower_ones() {
        for (to, from, holds_all) in [
            (DType::F32, DType::F16, true),
            (DType::F32, DType::I32, false),
            (DType::F64, DType::U32, true),
            (DType::F64, DType::I64, false),
            (DType::F16, DType::BF16, false),
            (DType::F16, DType::U16, false),
            (DType::F16, DType::F8E5M2, true),
            (DType::BF16, DType::F8E4M3, true),
        ] {
            assert_eq!(holds(to, from), holds_all, "{to} {from}");
        }
    }
}
