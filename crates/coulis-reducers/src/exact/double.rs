//! Numbers of about 106 bits as the unevaluated sum of two `float64`.
//!
//! Source: T. J. Dekker, "A floating-point technique for extending the available precision", 1971.

use std::ops::{Add, Div, Mul, Sub};

/// `high + low`, with `low` at most half a unit of the last place of `high`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Double {
    /// The value rounded to `float64`.
    pub high: f64,
    /// What rounding left.
    pub low: f64,
}

impl From<f64> for Double {
    fn from(high: f64) -> Double {
        Double { high, low: 0.0 }
    }
}

impl From<i128> for Double {
    fn from(value: i128) -> Double {
        let high = value as f64;
        Double { high, low: value.wrapping_sub(high as i128) as f64 }
    }
}

fn two_sum(a: f64, b: f64) -> Double {
    let high = a + b;
    let b_part = high - a;
    let low = (a - (high - b_part)) + (b - b_part);
    Double { high, low: if high.is_finite() { low } else { 0.0 } }
}

impl Double {
    /// Zero.
    pub const ZERO: Double = Double { high: 0.0, low: 0.0 };

    /// The nearest `float64`.
    pub fn value(self) -> f64 {
        self.high
    }

    /// Square root; NaN below zero.
    pub fn sqrt(self) -> Double {
        let root = self.high.sqrt();
        if root == 0.0 || !root.is_finite() {
            return Double::from(root);
        }
        let square = Double::from(root) * Double::from(root);
        two_sum(root, (self - square).high / (2.0 * root))
    }
}

impl Add for Double {
    type Output = Double;

    fn add(self, other: Double) -> Double {
        let sum = two_sum(self.high, other.high);
        let low = two_sum(self.low, other.low);
        let sum = two_sum(sum.high, sum.low + low.high);
        two_sum(sum.high, sum.low + low.low)
    }
}

impl Sub for Double {
    type Output = Double;

    fn sub(self, other: Double) -> Double {
        self + Double { high: -other.high, low: -other.low }
    }
}

impl Mul for Double {
    type Output = Double;

    fn mul(self, other: Double) -> Double {
        let high = self.high * other.high;
        if !high.is_finite() {
            return Double::from(high);
        }
        let low = self.high.mul_add(other.high, -high) + (self.high * other.low + self.low * other.high);
        two_sum(high, low)
    }
}

impl Div for Double {
    type Output = Double;

    fn div(self, other: Double) -> Double {
        let first = self.high / other.high;
        if !first.is_finite() || first == 0.0 || !other.high.is_finite() {
            return Double::from(first);
        }
        let rest = self - other * Double::from(first);
        let second = rest.high / other.high;
        let rest = rest - other * Double::from(second);
        two_sum(first, second) + Double::from(rest.high / other.high)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: Double, b: Double) {
        let difference = a - b;
        assert!(difference.high.abs() <= 1e-30 * b.high.abs(), "{a:?} is not {b:?}");
    }

    #[test]
    fn a_quotient_times_its_divisor_is_the_dividend() {
        let (a, b) = (Double::from(1.0), Double { high: 3.0, low: 1e-17 });
        close(a / b * b, a);
    }

    #[test]
    fn the_square_of_a_root_is_the_number() {
        let two = Double::from(2.0);
        close(two.sqrt() * two.sqrt(), two);
        assert_eq!(Double::ZERO.sqrt(), Double::ZERO);
    }

    #[test]
    fn large_integers_are_held_exactly() {
        let value = (1i128 << 80) + 1;
        assert_eq!(Double::from(value), Double { high: 2f64.powi(80), low: 1.0 });
    }

    #[test]
    fn infinities_stay_infinities() {
        assert_eq!((Double::from(f64::INFINITY) + Double::from(1.0)).value(), f64::INFINITY);
        assert_eq!((Double::from(f64::MAX) * Double::from(2.0)).value(), f64::INFINITY);
    }
}
