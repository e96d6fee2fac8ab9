//! A sum of `float64` values without any rounding: a fixed-point number wide enough for every exponent.

use super::Double;

/// Weight of the lowest bit is `2^-1074`; 66 digits hold every finite `float64`, the rest 2^60 of them.
const DIGITS: usize = 69;
/// Digits take this many additions before their carries must be passed on.
const BEFORE_CARRY: u32 = 1 << 29;

/// An exact sum.
#[derive(Clone, Debug)]
pub struct ExactSum {
    /// Signed digits of 32 bits, lowest first, with room for carries.
    digits: [i64; DIGITS],
    additions: u32,
    nan: bool,
    above: bool,
    below: bool,
    /// Sum of the magnitudes below [`LARGE`].
    small: f64,
    /// That of the others, divided by [`LARGE`], so that it does not overflow.
    large: f64,
}

/// See [`ExactSum::magnitude`].
const LARGE: f64 = (1u128 << 100) as f64;

impl Default for ExactSum {
    fn default() -> ExactSum {
        ExactSum {
            digits: [0; DIGITS],
            additions: 0,
            nan: false,
            above: false,
            below: false,
            small: 0.0,
            large: 0.0,
        }
    }
}

impl ExactSum {
    /// Zero.
    pub fn new() -> ExactSum {
        ExactSum::default()
    }

    /// Adds a value; infinities and NaN are remembered.
    pub fn add(&mut self, value: f64) {
        let magnitude = value.abs();
        if magnitude < LARGE {
            self.small += magnitude;
        } else {
            self.large += magnitude / LARGE;
        }
        self.add_signed(value);
    }

    /// Adds a value, but no magnitude.
    fn add_signed(&mut self, value: f64) {
        if !value.is_finite() {
            self.nan |= value.is_nan();
            self.above |= value == f64::INFINITY;
            self.below |= value == f64::NEG_INFINITY;
            return;
        }
        let bits = value.abs().to_bits();
        let exponent = (bits >> 52) as usize;
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, shift) =
            if exponent == 0 { (fraction, 0) } else { (fraction | 1 << 52, exponent - 1) };
        let mut wide = u128::from(mantissa) << (shift % 32);
        let mut digit = shift / 32;
        while wide != 0 {
            let part = (wide & 0xffff_ffff) as i64;
            self.digits[digit] += if value < 0.0 { -part } else { part };
            wide >>= 32;
            digit += 1;
        }
        self.additions += 1;
        if self.additions == BEFORE_CARRY {
            self.carry();
        }
    }

    /// Adds `a * b` exactly, unless the product overflows or its low part is below the smallest `float64`.
    pub fn add_product(&mut self, a: f64, b: f64) {
        let product = a * b;
        self.add(product);
        if product.is_finite() {
            self.add_signed(a.mul_add(b, -product));
        }
    }

    /// Adds an integer exactly.
    pub fn add_int(&mut self, value: i128) {
        let sign = if value < 0 { -1.0 } else { 1.0 };
        let (mut rest, mut weight) = (value.unsigned_abs(), 1.0);
        while rest != 0 {
            self.add(sign * weight * (rest & 0xffff_ffff) as f64);
            rest >>= 32;
            weight *= 4_294_967_296.0;
        }
    }

    /// Sum of the magnitudes of what was added, in plain `float64`.
    pub fn magnitude(&self) -> f64 {
        self.magnitude_over(1.0)
    }

    /// The same over a number of at least 1, also where the sum alone would overflow.
    pub fn magnitude_over(&self, n: f64) -> f64 {
        self.small / n + self.large / n * LARGE
    }

    /// Whether some order of adding what was added, all of it finite, leaves the range of `float64` on the way.
    pub fn may_overflow(&self) -> bool {
        let is_finite = !(self.nan || self.above || self.below);
        is_finite && self.magnitude().is_infinite()
    }

    /// Brings every digit but the highest into `0..2^32`.
    fn carry(&mut self) {
        let mut carry = 0;
        for digit in &mut self.digits[..DIGITS - 1] {
            let total = *digit + carry;
            *digit = total & 0xffff_ffff;
            carry = total >> 32;
        }
        self.digits[DIGITS - 1] += carry;
        self.additions = 0;
    }

    /// The sum, rounded once to nearest even.
    pub fn value(&self) -> f64 {
        if self.nan || (self.above && self.below) {
            return f64::NAN;
        }
        if self.above || self.below {
            return if self.above { f64::INFINITY } else { f64::NEG_INFINITY };
        }
        let mut sum = self.clone();
        sum.carry();
        let negative = sum.digits[DIGITS - 1] < 0;
        if negative {
            sum.digits.iter_mut().for_each(|d| *d = -*d);
            sum.carry();
        }
        let magnitude = sum.round();
        if negative { -magnitude } else { magnitude }
    }

    /// The value of non-negative, carried digits.
    fn round(&self) -> f64 {
        let Some(top) = self.digits.iter().rposition(|d| *d != 0) else {
            return 0.0;
        };
        let highest = 32 * top + 63 - self.digits[top].leading_zeros() as usize;
        let lowest = highest.saturating_sub(52);
        let bit = |at: usize| (self.digits[at / 32] >> (at % 32)) & 1 == 1;
        let mut mantissa = (lowest..=highest).rev().fold(0u64, |m, at| m << 1 | u64::from(bit(at)));
        let half = lowest > 0 && bit(lowest - 1);
        let more = || (0..lowest - 1).any(bit);
        if half && (mantissa & 1 == 1 || more()) {
            mantissa += 1;
        }
        // A mantissa without its top bit is subnormal and `lowest` is 0; a carry out of the top moves the exponent.
        let bits = if mantissa < 1 << 52 { mantissa } else { ((lowest as u64) << 52) + mantissa };
        if bits >= f64::INFINITY.to_bits() { f64::INFINITY } else { f64::from_bits(bits) }
    }

    /// The sum over a number, in twice the precision, also where the sum alone would overflow.
    pub fn over(&self, divisor: Double) -> Double {
        let sum = self.double();
        let is_far_from_overflow = sum.high.abs() < 2f64.powi(1000);
        if is_far_from_overflow || sum.high.is_nan() || self.above || self.below {
            return sum / divisor;
        }
        // The sum over 2^128. What that drops is far below the digits of such a sum.
        let mut shifted = self.clone();
        shifted.carry();
        shifted.digits.copy_within(4.., 0);
        shifted.digits[DIGITS - 4..].fill(0);
        shifted.double() / divisor * Double::from(2f64.powi(128))
    }

    /// The sum in twice the precision.
    pub fn double(&self) -> Double {
        let high = self.value();
        if !high.is_finite() {
            return Double::from(high);
        }
        let mut rest = self.clone();
        rest.add(-high);
        Double { high, low: rest.value() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(values: &[f64], want: f64) {
        let mut sum = ExactSum::new();
        values.iter().for_each(|v| sum.add(*v));
        let got = sum.value();
        assert!(got == want || (got.is_nan() && want.is_nan()), "{values:?}: {got} is not {want}");
        let mut negated = ExactSum::new();
        values.iter().for_each(|v| negated.add(-*v));
        assert!(negated.value() == -want || want.is_nan());
    }

    #[test]
    fn one_value_is_itself() {
        for value in [0.0, 1.0, f64::MAX, f64::MIN_POSITIVE, 5e-324, 0.1, 1e-310, 2f64.powi(52) + 1.0] {
            check(&[value], value);
        }
    }

    #[test]
    fn nothing_is_lost_between_large_and_small() {
        check(&[1e308, 1e-308, -1e308], 1e-308);
        check(&[f64::MAX, f64::MAX, -f64::MAX], f64::MAX);
        check(&[f64::MAX, f64::MAX], f64::INFINITY);
        check(&[1.0, 1e100, 1.0, -1e100], 2.0);
        check(&[5e-324, 5e-324], 1e-323);
    }

    #[test]
    fn rounding_is_to_even_with_everything_below_counted() {
        let half = f64::EPSILON / 2.0;
        check(&[1.0, half], 1.0);
        check(&[1.0 + f64::EPSILON, half], 1.0 + 2.0 * f64::EPSILON);
        check(&[1.0, half, 5e-324], 1.0 + f64::EPSILON);
        check(&[2.0, -half / 2.0], 2.0);
        check(&[2.0 - f64::EPSILON, half], 2.0);
    }

    #[test]
    fn infinities_and_nan_behave_as_in_ieee_sums() {
        check(&[f64::INFINITY, 1.0], f64::INFINITY);
        check(&[f64::INFINITY, f64::NEG_INFINITY], f64::NAN);
        check(&[f64::NAN, 1.0], f64::NAN);
    }

    #[test]
    fn integers_and_products_are_exact() {
        let mut sum = ExactSum::new();
        sum.add_int(i128::from(i64::MAX));
        sum.add_int(-i128::from(i64::MAX) + 1);
        sum.add_product(1.0 + f64::EPSILON, 1.0 + f64::EPSILON);
        sum.add(-1.0);
        sum.add(-1.0 - 2.0 * f64::EPSILON);
        assert_eq!(sum.value(), f64::EPSILON * f64::EPSILON);
    }

    #[test]
    fn quotients_of_sums_beyond_the_greatest_number_are_right() {
        let over = |values: &[f64], n: f64| {
            let mut sum = ExactSum::new();
            values.iter().for_each(|v| sum.add(*v));
            (sum.over(n.into()).value(), sum.magnitude_over(n))
        };
        let max = f64::MAX;
        assert_eq!(over(&[max, max, max, max], 4.0), (max, max));
        assert_eq!(over(&[-max, -max], 2.0), (-max, max));
        assert_eq!(over(&[max, max, -max], 3.0), (max / 3.0, max));
        assert_eq!(over(&[max, 0.5], 1.0), (max, max));
        assert_eq!(over(&[f64::INFINITY, 1.0], 2.0).0, f64::INFINITY);
        assert_eq!(over(&[1.0, 2.0], 2.0), (1.5, 1.5));
        let row = [vec![max], vec![0.1; 18]].concat();
        assert_eq!(over(&row, 19.0).0, max / 19.0);
        let mut plain = ExactSum::new();
        row.iter().for_each(|v| plain.add(v / 1024.0));
        assert_eq!(over(&row, 19.0).0, plain.over(19.0.into()).value() * 1024.0);
    }

    #[test]
    fn finite_values_whose_magnitudes_add_up_to_an_infinity_may_overflow() {
        let check = |values: &[f64], want: bool| {
            let mut sum = ExactSum::new();
            values.iter().for_each(|v| sum.add(*v));
            assert_eq!(sum.may_overflow(), want, "{values:?}");
        };
        check(&[f64::MAX], false);
        check(&[f64::MAX / 2.0, -f64::MAX / 2.0], false);
        check(&[f64::MAX, -f64::MAX], true);
        check(&[f64::INFINITY, 1.0], false);
        check(&[f64::NAN, f64::MAX, f64::MAX], false);
        check(&[], false);
    }

    #[test]
    fn twice_the_precision_holds_what_one_value_cannot() {
        let mut sum = ExactSum::new();
        sum.add(1.0);
        sum.add(1e-20);
        assert_eq!(sum.double(), Double { high: 1.0, low: 1e-20 });
    }
}
