//! coulis' own exp, log and erf: the constants and the algorithms that every device uses.
//!
//! Contract N15 asks for the same functions on every device, within 2 ulp. The algorithms use only additions,
//! multiplications, divisions, selections and bit moves, one rounding each, and fused operations in the exponential
//! of f32 only, so any device that follows the same steps gets the same bits; emitters print these constants.
//!
//! exp(x): `n = round(x / ln 2)` by adding and subtracting a magic number, `r = (x - n*LN2_HI) - n*LN2_LO`,
//! `p = 1 + (r + r*r*P(r))`, and `p * 2^(n/2) * 2^(n - n/2)`, so that subnormal results round once and overflow
//! gives infinity. In f32 the sum that makes `n`, both steps of `r` and `p = 1 + r*(1 + r*P(r))` are fused. `P`
//! interpolates `(exp(r) - 1 - r) / r^2` at Chebyshev nodes of `[-0.347, 0.347]`; its error is 0.07 ulp (f32) and
//! 0.001 ulp (f64).
//!
//! log(x): `x = 2^k * m` with `m` in `[sqrt(1/2), sqrt(2))`, `f = m - 1`, `s = f / (2 + f)`, `z = s*s`,
//! `R = z*(2/3 + z*(2/5 + z*(2/7 + ...)))`, and
//! `k*LN2_HI - ((f*f/2 - (s*(f*f/2 + R) + k*LN2_LO)) - f)`. The split around `f*f/2` is that of K. C. Ng's
//! log in FDLIBM; the series of the inverse hyperbolic tangent replaces its minimax polynomial.
//!
//! erf(x): the series `2/sqrt(pi) * exp(-x^2) * sum (2x^2)^n x / (1*3*...*(2n+1))` below 2.5, above it 1 minus
//! the continued fraction of erfc (Abramowitz and Stegun 7.1.6 and 7.1.14). Always in f64.

/// Upper part of ln 2 with 12 significant bits, so that its product with an exponent is exact in f32.
pub const LN2_HI_F32: f32 = 0.692_871_1;
/// The rest of ln 2.
pub const LN2_LO_F32: f32 = 0.000_276_086_82;
/// 1 / ln 2.
pub const INV_LN2_F32: f32 = std::f32::consts::LOG2_E;
/// 1.5 * 2^23: adding and subtracting it rounds to an integer, half to even.
pub const MAGIC_F32: f32 = 12_582_912.0;
/// Above this exp is infinite; arguments are clamped to it.
pub const EXP_MAX_F32: f32 = 89.0;
/// Below this exp is 0; arguments are clamped to it.
pub const EXP_MIN_F32: f32 = -104.0;
/// Coefficients of `P`, constant first.
pub const EXP_F32: [f32; 5] = [0.5, 0.166_665_76, 0.041_666_552, 0.008_363_247, 0.001_392_626_8];
/// 2/3, 2/5, 2/7, 2/9.
pub const LOG_F32: [f32; 4] = [2.0 / 3.0, 2.0 / 5.0, 2.0 / 7.0, 2.0 / 9.0];

/// Upper part of ln 2 with 21 significant bits, so that its product with an exponent is exact in f64.
pub const LN2_HI_F64: f64 = 0.693_146_705_627_441_4;
/// The rest of ln 2.
pub const LN2_LO_F64: f64 = 4.749_325_039_031_672_6e-7;
/// 1 / ln 2.
pub const INV_LN2_F64: f64 = std::f64::consts::LOG2_E;
/// 1.5 * 2^52: adding and subtracting it rounds to an integer, half to even.
pub const MAGIC_F64: f64 = 6_755_399_441_055_744.0;
/// Above this exp is infinite; arguments are clamped to it.
pub const EXP_MAX_F64: f64 = 710.0;
/// Below this exp is 0; arguments are clamped to it.
pub const EXP_MIN_F64: f64 = -746.0;
/// Coefficients of `P`, constant first.
pub const EXP_F64: [f64; 11] = [
    0.5,
    0.166_666_666_666_666_7,
    0.041_666_666_666_666_67,
    0.008_333_333_333_326_07,
    0.001_388_888_888_888_370_3,
    0.000_198_412_698_750_489_05,
    2.480_158_732_571_076e-5,
    2.755_725_511_097_889e-6,
    2.755_727_343_657_049e-7,
    2.510_533_724_466_521e-8,
    2.091_477_283_224_809e-9,
];
/// 2/3, 2/5, ..., 2/21.
pub const LOG_F64: [f64; 10] = [
    2.0 / 3.0,
    2.0 / 5.0,
    2.0 / 7.0,
    2.0 / 9.0,
    2.0 / 11.0,
    2.0 / 13.0,
    2.0 / 15.0,
    2.0 / 17.0,
    2.0 / 19.0,
    2.0 / 21.0,
];

/// e to the x, within 1.1 ulp (f32) or 1.6 ulp (f64, as measured); subnormal results are kept.
#[inline(always)]
pub fn exp_f32(x: f32) -> f32 {
    let x = if x > EXP_MAX_F32 { EXP_MAX_F32 } else { x };
    let x = if x < EXP_MIN_F32 { EXP_MIN_F32 } else { x };
    let shifted = x.mul_add(INV_LN2_F32, MAGIC_F32);
    let n = shifted - MAGIC_F32;
    let k = (shifted.to_bits() as i32).wrapping_sub(MAGIC_F32.to_bits() as i32);
    let r = n.mul_add(-LN2_LO_F32, n.mul_add(-LN2_HI_F32, x));
    let [c0, c1, c2, c3, c4] = EXP_F32;
    let poly = r.mul_add(r.mul_add(r.mul_add(r.mul_add(c4, c3), c2), c1), c0);
    let p = r.mul_add(r.mul_add(poly, 1.0), 1.0);
    let half = k >> 1;
    let power = |e: i32| f32::from_bits((e.wrapping_add(127) as u32) << 23);
    p * power(half) * power(k.wrapping_sub(half))
}

/// e to the x, within 1.1 ulp (f32) or 1.6 ulp (f64, as measured); subnormal results are kept.
#[inline(always)]
pub fn exp_f64(x: f64) -> f64 {
    let x = if x > EXP_MAX_F64 { EXP_MAX_F64 } else { x };
    let x = if x < EXP_MIN_F64 { EXP_MIN_F64 } else { x };
    let shifted = x * INV_LN2_F64 + MAGIC_F64;
    let n = shifted - MAGIC_F64;
    let k = (shifted.to_bits() as i64).wrapping_sub(MAGIC_F64.to_bits() as i64) as i32;
    let r = (x - n * LN2_HI_F64) - n * LN2_LO_F64;
    let c = &EXP_F64;
    let low = c[0] + r * (c[1] + r * (c[2] + r * (c[3] + r * (c[4] + r * c[5]))));
    let poly = low + (r * r * r) * (r * r * r) * (c[6] + r * (c[7] + r * (c[8] + r * (c[9] + r * c[10]))));
    let p = 1.0 + (r + r * r * poly);
    let half = k >> 1;
    let power = |e: i32| f64::from_bits((i64::from(e).wrapping_add(1023) as u64) << 52);
    p * power(half) * power(k.wrapping_sub(half))
}

/// Natural logarithm, within 1.1 ulp (f32) or 1.6 ulp (f64, as measured); NaN below 0, minus infinity at 0.
#[inline(always)]
pub fn log_f32(x: f32) -> f32 {
    let tiny = x < f32::MIN_POSITIVE;
    let scaled = if tiny { x * 33_554_432.0 } else { x };
    let bias = if tiny { 25.0f32 } else { 0.0 };
    let bits = scaled.to_bits().wrapping_add(0x3f80_0000 - 0x3f35_04f3);
    let k = ((bits >> 23) as i32 - 127) as f32 - bias;
    let f = f32::from_bits((bits & 0x007f_ffff) + 0x3f35_04f3) - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let c = &LOG_F32;
    let r = z * (c[0] + z * (c[1] + z * (c[2] + z * c[3])));
    let half_square = 0.5 * f * f;
    let y = k * LN2_HI_F32 - ((half_square - (s * (half_square + r) + k * LN2_LO_F32)) - f);
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    let y = if x == f32::INFINITY { x } else { y };
    if x >= 0.0 { y } else { f32::NAN }
}

/// Natural logarithm, within 1.1 ulp (f32) or 1.6 ulp (f64, as measured); NaN below 0, minus infinity at 0.
#[inline(always)]
pub fn log_f64(x: f64) -> f64 {
    let tiny = x < f64::MIN_POSITIVE;
    let scaled = if tiny { x * 18_014_398_509_481_984.0 } else { x };
    let bias = if tiny { 54.0f64 } else { 0.0 };
    let bits = scaled.to_bits().wrapping_add(0x3ff0_0000_0000_0000 - 0x3fe6_a09e_667f_3bcd);
    let k = f64::from((bits >> 52) as i32 - 1023) - bias;
    let f = f64::from_bits((bits & 0x000f_ffff_ffff_ffff) + 0x3fe6_a09e_667f_3bcd) - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let mut sum = LOG_F64[9];
    for c in LOG_F64[..9].iter().rev() {
        sum = c + z * sum;
    }
    let r = z * sum;
    let half_square = 0.5 * f * f;
    let y = k * LN2_HI_F64 - ((half_square - (s * (half_square + r) + k * LN2_LO_F64)) - f);
    let y = if x == 0.0 { f64::NEG_INFINITY } else { y };
    let y = if x == f64::INFINITY { x } else { y };
    if x >= 0.0 { y } else { f64::NAN }
}

/// The error function, within 4 ulp.
pub fn erf_f64(x: f64) -> f64 {
    let a = x.abs();
    if x.is_nan() || a >= 6.0 {
        return if x.is_nan() { x } else { 1f64.copysign(x) };
    }
    if a < 2.5 {
        let square = 2.0 * a * a;
        let (mut term, mut sum, mut odd) = (a, a, 1.0);
        while term > sum * 1e-17 {
            odd += 2.0;
            term *= square / odd;
            sum += term;
        }
        return (sum * std::f64::consts::FRAC_2_SQRT_PI * exp_f64(-a * a)).copysign(x);
    }
    let mut fraction = a;
    for n in (1..=60).rev() {
        fraction = a + f64::from(n) * 0.5 / fraction;
    }
    let erfc = exp_f64(-a * a) * 0.5 * std::f64::consts::FRAC_2_SQRT_PI / fraction;
    (1.0 - erfc).copysign(x)
}

/// The nearest f32 toward odd: exact values as they are, others to the neighbour whose last bit is 1. Rounding the
/// result to nearest in a type of at most 22 significant bits equals rounding `x` once (S. Boldo and
/// G. Melquiond, "Emulation of FMA and correctly rounded sums: proved algorithms using rounding to odd", 2008).
#[inline(always)]
pub fn f64_to_f32_odd(x: f64) -> f32 {
    let near = x as f32;
    let bits = near.to_bits();
    let back = f64::from(near);
    let inexact = back != x && !x.is_nan();
    let even = bits & 1 == 0;
    let step = if back.abs() > x.abs() { bits.wrapping_sub(1) } else { bits.wrapping_add(1) };
    f32::from_bits(if inexact && even { step } else { bits })
}

/// The nearest f64 toward odd of an integer; see [`f64_to_f32_odd`].
#[inline(always)]
pub fn i128_to_f64_odd(x: i128) -> f64 {
    let near = x as f64;
    let bits = near.to_bits();
    let back = near as i128;
    let even = bits & 1 == 0;
    let step = if back.unsigned_abs() > x.unsigned_abs() { bits - 1 } else { bits + 1 };
    f64::from_bits(if back != x && even { step } else { bits })
}

/// `value` with its last bit odd where `rest`, what is missing to the exact value, is not zero. Rounding that to at
/// most 51 bits gives the rounding of the exact value.
#[inline(always)]
pub fn to_odd(value: f64, rest: f64) -> f64 {
    if rest == 0.0 || !value.is_finite() || value.to_bits() & 1 == 1 {
        return value;
    }
    let away = (rest > 0.0) == (value > 0.0);
    f64::from_bits(if away { value.to_bits() + 1 } else { value.to_bits() - 1 })
}

/// `x * y + z` of values whose product is exact in f64, rounded to odd.
#[inline(always)]
pub fn fma_odd(x: f64, y: f64, z: f64) -> f64 {
    let product = x * y;
    let sum = product + z;
    let z_part = sum - product;
    let rest = (product - (sum - z_part)) + (z - z_part);
    if rest.is_nan() { sum } else { to_odd(sum, rest) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ulps_f32(got: f32, want: f64) -> f64 {
        if f64::from(got) == want || (got.is_nan() && want.is_nan()) || got == want as f32 {
            return 0.0;
        }
        let unit = f64::from((want as f32).abs().max(f32::MIN_POSITIVE).next_up())
            - f64::from((want as f32).abs().max(f32::MIN_POSITIVE));
        (f64::from(got) - want).abs() / unit
    }

    fn ulps_f64(got: f64, want: f64) -> f64 {
        if got == want || (got.is_nan() && want.is_nan()) {
            return 0.0;
        }
        let size = want.abs().max(f64::MIN_POSITIVE);
        (got - want).abs() / (size.next_up() - size)
    }

    #[test]
    fn exp_and_log_of_f32_are_within_eleven_tenths_of_an_ulp() {
        let mut worst = (0.0f64, 0.0f64);
        let mut x = -105.0f32;
        while x < 90.0 {
            worst.0 = worst.0.max(ulps_f32(exp_f32(x), f64::from(x).exp()));
            x += 0.000_771;
        }
        for step in 0..200_000u32 {
            let x = f32::from_bits(step * 10_687);
            worst.1 = worst.1.max(ulps_f32(log_f32(x), f64::from(x).ln()));
            let near_one = 0.5 + step as f32 * 5e-6;
            worst.1 = worst.1.max(ulps_f32(log_f32(near_one), f64::from(near_one).ln()));
        }
        assert!(worst.0 < 1.1 && worst.1 < 1.1, "{worst:?}");
    }

    #[test]
    fn exp_and_log_of_f64_are_within_two_ulp_of_the_platform() {
        let mut worst = (0.0f64, 0.0f64);
        for step in 0..300_000u64 {
            let x = -747.0 + step as f64 * 0.004_861;
            worst.0 = worst.0.max(ulps_f64(exp_f64(x), x.exp()));
            let x = f64::from_bits(step * 30_744_573_456_182);
            worst.1 = worst.1.max(ulps_f64(log_f64(x), x.ln()));
            let near_one = 0.5 + step as f64 * 3.3e-6;
            worst.1 = worst.1.max(ulps_f64(log_f64(near_one), near_one.ln()));
        }
        assert!(worst.0 < 1.6 && worst.1 < 1.6, "{worst:?}");
    }

    #[test]
    fn special_values_are_those_of_ieee() {
        for (x, e, l) in [
            (0.0, 1.0, f64::NEG_INFINITY),
            (-0.0, 1.0, f64::NEG_INFINITY),
            (f64::INFINITY, f64::INFINITY, f64::INFINITY),
            (f64::NEG_INFINITY, 0.0, f64::NAN),
            (f64::NAN, f64::NAN, f64::NAN),
            (1.0, std::f64::consts::E, 0.0),
            (-1.0, (-1.0f64).exp(), f64::NAN),
            (1e300, f64::INFINITY, 1e300f64.ln()),
        ] {
            assert!(ulps_f64(exp_f64(x), e) < 1.6, "exp {x}");
            assert!(ulps_f64(log_f64(x), l) < 1.6, "log {x}");
            assert!(ulps_f32(exp_f32(x as f32), f64::from(e as f32)) < 1.6, "exp_f32 {x}");
            let l = if x > 1e299 { f64::INFINITY } else { l };
            assert!(ulps_f32(log_f32(x as f32), f64::from(l as f32)) < 1.0, "log_f32 {x}");
        }
        assert_eq!(exp_f32(-103.0), 1e-45, "the least subnormal is kept");
    }

    #[test]
    fn erf_agrees_with_the_tables_of_abramowitz_and_stegun() {
        for (x, want) in [
            (0.0, 0.0),
            (0.1, 0.112_462_916_018_284_9),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (2.0, 0.995_322_265_018_952_7),
            (3.0, 0.999_977_909_503_001_4),
            (7.0, 1.0),
        ] {
            assert!((erf_f64(x) - want).abs() < 1e-15, "erf {x} is {}", erf_f64(x));
            assert_eq!(erf_f64(-x), -erf_f64(x));
        }
        assert!(erf_f64(f64::NAN).is_nan());
        let below = erf_f64(2.5f64.next_down());
        assert!((erf_f64(2.5) - below).abs() < 1e-15, "the two formulas meet");
    }

    #[test]
    fn rounding_to_odd_keeps_what_the_second_rounding_must_know() {
        let tie_and_a_bit = 1.0 + 2f64.powi(-11) + 2f64.powi(-50);
        assert_eq!(half::f16::from_f32(f64_to_f32_odd(tie_and_a_bit)).to_f32(), 1.0 + 2f32.powi(-10));
        let below_a_tie = 1.0 + 2f64.powi(-11) - 2f64.powi(-50);
        assert_eq!(half::f16::from_f32(f64_to_f32_odd(below_a_tie)).to_f32(), 1.0);
        for exact in [0.0, -0.0, 1.5, f64::INFINITY, -1e30f32 as f64] {
            assert_eq!(f64::from(f64_to_f32_odd(exact)).to_bits(), exact.to_bits());
        }
        assert!(f64_to_f32_odd(f64::NAN).is_nan());
        assert_eq!(f64_to_f32_odd(1e300), f32::MAX);
        assert_eq!(i128_to_f64_odd((1 << 62) + 1), 2f64.powi(62).next_up());
        assert_eq!(i128_to_f64_odd(-(1 << 62) - 1), -(2f64.powi(62).next_up()));
        assert_eq!(i128_to_f64_odd(12345), 12345.0);
    }
}
