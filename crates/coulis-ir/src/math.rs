//! coulis' own exp, log, logistic function and erf: the constants and the algorithms that every device uses.
//!
//! Contract N15 asks for the same functions on every device, within 2 ulp. The algorithms use only additions,
//! multiplications, divisions, selections and bit moves, one rounding each, and fused operations in the exponential
//! only, so any device that follows the same steps gets the same bits; emitters print these constants.
//!
//! exp(x): `n = round(x / ln 2)` by adding and subtracting a magic number, `r = (x - n*LN2_HI) - n*LN2_LO`,
//! `p = 1 + r*(1 + r*P(r))`, and `p * 2^(n/2) * 2^(n - n/2)`, so that subnormal results round once and overflow
//! gives infinity; where the result is 0 the last factor is, as a product that underflows takes some CPUs a hundred times as long. The sum that makes `n`, both steps of `r` and each step of `p` are fused. `P`
//! interpolates `(exp(r) - 1 - r) / r^2` at Chebyshev nodes of `[-0.347, 0.347]`; its error is 0.07 ulp (f32) and
//! 0.001 ulp (f64).
//!
//! log(x): `x = 2^k * m` with `m` in `[sqrt(1/2), sqrt(2))`, `f = m - 1`, `s = f / (2 + f)`, `z = s*s`,
//! `R = z*(2/3 + z*(2/5 + z*(2/7 + ...)))`, and
//! `k*LN2_HI - ((f*f/2 - (s*(f*f/2 + R) + k*LN2_LO)) - f)`. The split around `f*f/2` is that of K. C. Ng's
//! log in FDLIBM; the series of the inverse hyperbolic tangent replaces its minimax polynomial.
//!
//! sigmoid(x): with `e = exp(-|x|)`, which does not overflow, `1 / (1 + e)` or, below 0, `e / (1 + e)`; what
//! the rounding of the sum and of the quotient leaves is divided in turn and added, so that the error of `e`
//! is all that remains beside the last rounding.
//!
//! erf(x): `x + x*N(x^2)` below 1, `1 - exp(-x^2) * T(4/(4 + x) - 0.6)` from 1 to 6, 1 beyond. `N` interpolates
//! `erf(x)/x - 1` and `T` interpolates `exp(x^2) * erfc(x)` at Chebyshev nodes of these ranges; their errors are below
//! 0.001 and 0.02 ulp of the result. Always in f64.

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
/// Exponentials of arguments that an expression keeps from exceeding this, `exp(min(64, x))`, take fewer operations of CPUs,
/// and have the same bits.
pub const EXP_CAP: f64 = 64.0;
/// Those that are kept from falling below this too, `exp(max(-87, min(64, x)))`, take fewer still, and none is subnormal, which
/// some CPUs take a hundred times as long for.
pub const EXP_FLOOR_F32: f32 = -87.0;
/// See [`EXP_FLOOR_F32`].
pub const EXP_FLOOR_F64: f64 = -708.0;
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

/// Coefficients of `N`, constant first.
pub const ERF_NEAR: [f64; 13] = [
    0.1283791670955126,
    -0.3761263890318375,
    0.11283791670954879,
    -0.026866170645076792,
    0.0052239776248180145,
    -0.000854832698083379,
    0.0001205533111164271,
    -1.4925595266831182e-05,
    1.6461000484121368e-06,
    -1.6350312701054695e-07,
    1.4659775274047436e-08,
    -1.1372848856791674e-09,
    5.957176147748911e-11,
];
/// Coefficients of `T`, constant first.
pub const ERF_FAR: [f64; 16] = [
    0.19907263099386563,
    0.7406496495729165,
    1.397277139151998,
    2.25980465337651,
    3.118928775684599,
    3.629804501773033,
    3.4780692456959006,
    2.6141622706671876,
    1.3667256736872953,
    0.2797001811704219,
    -0.25168184434205326,
    -0.2420149652944037,
    -0.02590109578668378,
    0.08444556862815777,
    0.03658645230434391,
    -0.02432422461806007,
];

/// e to the x, within 1.1 ulp (f32) or 1.6 ulp (f64, as measured); subnormal results are kept.
#[inline(always)]
pub fn exp_f32(x: f32) -> f32 {
    let x = if x > EXP_MAX_F32 { EXP_MAX_F32 } else { x };
    let is_gone = x < EXP_MIN_F32;
    let x = if is_gone { EXP_MIN_F32 } else { x };
    let shifted = x.mul_add(INV_LN2_F32, MAGIC_F32);
    let n = shifted - MAGIC_F32;
    let k = (shifted.to_bits() as i32).wrapping_sub(MAGIC_F32.to_bits() as i32);
    let r = n.mul_add(-LN2_LO_F32, n.mul_add(-LN2_HI_F32, x));
    let [c0, c1, c2, c3, c4] = EXP_F32;
    let poly = r.mul_add(r.mul_add(r.mul_add(r.mul_add(c4, c3), c2), c1), c0);
    let p = r.mul_add(r.mul_add(poly, 1.0), 1.0);
    let half = k >> 1;
    let power = |e: i32| f32::from_bits((e.wrapping_add(127) as u32) << 23);
    p * power(half) * if is_gone { 0.0 } else { power(k.wrapping_sub(half)) }
}

/// e to the x, within 1.1 ulp (f32) or 1.6 ulp (f64, as measured); subnormal results are kept.
#[inline(always)]
pub fn exp_f64(x: f64) -> f64 {
    let x = if x > EXP_MAX_F64 { EXP_MAX_F64 } else { x };
    let is_gone = x < EXP_MIN_F64;
    let x = if is_gone { EXP_MIN_F64 } else { x };
    let shifted = x.mul_add(INV_LN2_F64, MAGIC_F64);
    let n = shifted - MAGIC_F64;
    let k = (shifted.to_bits() as i64).wrapping_sub(MAGIC_F64.to_bits() as i64) as i32;
    let r = n.mul_add(-LN2_LO_F64, n.mul_add(-LN2_HI_F64, x));
    let poly = EXP_F64.iter().rev().skip(1).fold(EXP_F64[10], |poly, c| r.mul_add(poly, *c));
    let p = r.mul_add(r.mul_add(poly, 1.0), 1.0);
    let half = k >> 1;
    let power = |e: i32| f64::from_bits((i64::from(e).wrapping_add(1023) as u64) << 52);
    p * power(half) * if is_gone { 0.0 } else { power(k.wrapping_sub(half)) }
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

macro_rules! sigmoid {
    ($name:ident, $float:ty, $exp:ident) => {
        /// `1 / (1 + exp(-x))`, within 1.5 ulp as measured; subnormal results are kept.
        #[inline(always)]
        pub fn $name(x: $float) -> $float {
            let e = $exp(-x.abs());
            let sum = 1.0 + e;
            let top = if x < 0.0 { e } else { 1.0 };
            let quotient = top / sum;
            let rest = (-quotient).mul_add(sum, top) - quotient * (e - (sum - 1.0));
            let reciprocal = if x < 0.0 { 1.0 - quotient } else { quotient };
            quotient + rest * reciprocal
        }
    };
}

sigmoid!(sigmoid_f32, f32, exp_f32);
sigmoid!(sigmoid_f64, f64, exp_f64);

fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |sum, c| c + x * sum)
}

/// The error function, within 1.5 ulp as measured.
pub fn erf_f64(x: f64) -> f64 {
    let a = x.abs();
    if a < 1.0 {
        x + x * polynomial(&ERF_NEAR, x * x)
    } else if a < 6.0 {
        (1.0 - exp_f64(-a * a) * polynomial(&ERF_FAR, 4.0 / (a + 4.0) - 0.6)).copysign(x)
    } else if x.is_nan() {
        x
    } else {
        1f64.copysign(x)
    }
}

/// Coefficients of `P` and `Q`, constant first, of which `tanh(x) = x + x**3 * P(x**2) / Q(x**2)` below 5/8.
/// Source: S. L. Moshier, Cephes mathematical library, `tanh`.
pub const TANH_TOP: [f64; 3] = [-1614.6876844170845, -99.28772310019186, -0.9643991794250523];
/// See [`TANH_TOP`].
pub const TANH_BELOW: [f64; 4] = [4844.063053251255, 2235.4883906010045, 112.81167849163293, 1.0];

/// The hyperbolic tangent, within 1.5 ulp as measured: a quotient of polynomials near 0, `1 - 2t / (1 + t)` with
/// `t = exp(-2|x|)` elsewhere.
pub fn tanh_f64(x: f64) -> f64 {
    let a = x.abs();
    if a < 0.625 {
        let z = x * x;
        return (x + x * (z * (polynomial(&TANH_TOP, z) / polynomial(&TANH_BELOW, z)))).copysign(x);
    }
    let t = exp_f64(-2.0 * a);
    (1.0 - 2.0 * t / (1.0 + t)).copysign(x)
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

    /// A number of twice the digits: its rounding, and what is left of it.
    type Two = (f64, f64);

    /// The error function and `1 / (1 + exp(-x))` to twice the digits of `float64`, by mpmath 1.3 with 300 bits.
    const REFERENCE: [(f64, Two, Two); 47] = [
        (1e-300, (1.1283791670955126e-300, -1.495728e-317), (0.5, 0.0)),
        (1e-09, (1.1283791670955127e-09, -1.624992790279848e-26), (0.50000000025, -2.068509273422303e-17)),
        (0.0625, (0.07043197772238707, 4.502285385811322e-18), (0.5156199157230156, 5.231403527275056e-17)),
        (0.4375, (0.463898135749933, -2.081342854423416e-17), (0.6076631698328916, 3.2500891076313676e-17)),
        (
            0.7499,
            (0.7110913357245858, -1.5799221593137978e-18),
            (0.6791569092856066, -2.7561496821622543e-17),
        ),
        (0.99999, (0.8426966418332298, 7.164832215519294e-18), (0.7310566125061296, -4.0871321334252565e-17)),
        (1.0, (0.8427007929497149, -2.4801011789118602e-17), (0.7310585786300049, -1.679727399649845e-17)),
        (1.0256, (0.8530578504388212, -4.514572376733982e-17), (0.7360619752822015, 4.661341531351762e-18)),
        (1.0001, (0.8427422995485203, 1.3349771582088852e-17), (0.7310782393690344, 2.2597915859368094e-17)),
        (1.1, (0.8802050695740817, -3.550744643146631e-18), (0.7502601055951176, 4.404736705333772e-17)),
        (1.375, (0.9481700727820903, 1.071691533519912e-17), (0.7981867777396212, -4.1658169910450487e-17)),
        (1.5, (0.9661051464753108, -3.3867031441680696e-17), (0.8175744761936437, 8.506488503282418e-18)),
        (1.9, (0.9927904292352575, -4.272839049231346e-17), (0.8698915256370021, 2.1281149234726597e-17)),
        (2.2465777, (0.9985126511649366, 1.785658588581436e-17), (0.9043549254554041, 4.489447442427373e-18)),
        (2.5, (0.999593047982555, 4.6925151097042234e-17), (0.9241418199787564, 8.549720986121e-18)),
        (2.9, (0.9999589021219005, 1.310480248450443e-17), (0.9478464369215822, 4.698798666593195e-17)),
        (3.3, (0.9999969422902035, 3.418688300158856e-17), (0.9644288107273639, -3.992634414087213e-17)),
        (4.1, (0.9999999932999724, -1.0282631893969006e-17), (0.9836975006285591, -4.1886440729119577e-17)),
        (5.5, (0.9999999999999927, -3.03759554483649e-17), (0.9959298622841039, 2.2041136809855822e-17)),
        (5.9, (0.9999999999999999, 3.911820462701088e-17), (0.9972680392369889, 1.7351749570961995e-17)),
        (
            0.8097722033566125,
            (0.7478698848766854, -3.695610210644787e-17),
            (0.6920609600937273, 4.9462045735571664e-17),
        ),
        (
            0.9643230860389482,
            (0.8273565047453626, 2.753401398407677e-17),
            (0.7239865235400474, -2.0289822506976303e-18),
        ),
        (
            1.0337516352354057,
            (0.8562438774902906, 3.6603538095993035e-18),
            (0.7376425818296974, 1.286809755275789e-17),
        ),
        (
            1.2251853689101655,
            (0.916846329966717, -3.227685952516589e-17),
            (0.7729747904621622, -3.724398984593394e-17),
        ),
        (
            0.9618681471619099,
            (0.8262608727472724, -8.944449712086604e-18),
            (0.7234956833593876, -7.96682467421955e-18),
        ),
        (
            1.1990224956650422,
            (0.9100523412732849, -3.309133193860998e-17),
            (0.7683508452699441, -4.9838253178279166e-17),
        ),
        (
            0.03770679676869916,
            (0.04252740778530349, 5.76622051917043e-19),
            (0.5094255824422301, -5.326673227167706e-17),
        ),
        (
            0.605309450691537,
            (0.6080225946145308, 3.8360279619163865e-17),
            (0.6468700833375416, -4.3650323203635697e-17),
        ),
        (
            -4.7167835849915685,
            (-0.9999999999745135, 6.49847841735928e-18),
            (0.008864615396875724, -5.400782232479165e-19),
        ),
        (
            -3.244872765684621,
            (-0.9999955450411279, -1.163082931645673e-17),
            (0.03751156497797104, 7.385397899307856e-19),
        ),
        (
            -4.504502458753113,
            (-0.9999999998113762, 1.0465638563329559e-17),
            (0.010938125445715704, -8.3616434285314715e-19),
        ),
        (
            -0.5660298232657218,
            (-0.5765713379990491, -3.684294778324417e-17),
            (0.36215342617795093, -9.24093625950765e-18),
        ),
        (-331.0029882086038, (-1.0, 0.0), (1.7669681752051072e-144, 7.891136403628007e-161)),
        (-176.36811867078208, (-1.0, 0.0), (2.5368762206136693e-77, -1.1638142613593054e-93)),
        (-382.91379716897166, (-1.0, 0.0), (5.0425573344976525e-167, -1.6406022125990696e-183)),
        (-403.88912561003, (-1.0, 0.0), (3.91905579796125e-176, -3.134628246543482e-192)),
        (
            -14.11436176428703,
            (-1.0, 1.2076369924632407e-88),
            (7.416692069221204e-07, -4.5663489571768906e-23),
        ),
        (-155.62721132237448, (-1.0, 0.0), (2.5820276502597807e-68, 1.2904847219457587e-85)),
        (-199.24024437772167, (-1.0, 0.0), (2.958429972026421e-87, 1.434794896985599e-103)),
        (-641.8600334069436, (-1.0, 0.0), (1.7527877814421762e-279, 3.558645488872987e-296)),
        (-88.7, (-1.0, 0.0), (3.006626321563833e-39, 2.86866069021096e-55)),
        (-100.3, (-1.0, 0.0), (2.7559000653565687e-44, -2.3861443862681946e-60)),
        (-709.9, (-1.0, 0.0), (4.947061357598873e-309, -0.0)),
        (-740.1, (-1.0, 0.0), (3.8e-322, -0.0)),
        (-17.666903119886506, (-1.0, 0.0), (2.1250123259693798e-08, 1.2099998926842548e-24)),
        (
            -3.4470124,
            (-0.9999989108770058, 3.352353111350051e-17),
            (0.030858080983806303, -1.0571537565070402e-18),
        ),
        (
            -0.34612566,
            (-0.3755091330300362, 9.588633752033491e-18),
            (0.41432225265876205, -1.4843113147848994e-17),
        ),
    ];

    /// Numbers, and their hyperbolic tangents to twice the digits: those of many random ones where it errs most.
    const TANH: [(f64, f64, f64); 11] = [
        (0.0002662410707529326, 0.0002662410644621614, 2.7099074989207056e-20),
        (0.07742143370065935, 0.07726711364498813, 6.90609233724722e-18),
        (0.29271431412460114, 0.28463114941583717, 2.5956779876400908e-17),
        (0.48421348370939044, 0.449611696049185, 1.8819663332509795e-17),
        (0.5149479190282475, 0.4737914027393951, 1.3014806998604624e-17),
        (0.6309192308075221, 0.5586848527099216, -4.286956121166096e-17),
        (0.6718100391575649, 0.5861692633314827, -3.959711393018923e-17),
        (0.8150026901321266, 0.672340751635136, -1.7099762105705826e-17),
        (1.0364551661511552, 0.7764843818273811, -1.5895699396073684e-17),
        (2.012522987375814, 0.9649017404614114, 5.225410072505595e-17),
        (9.74200703219371, 0.9999999930939424, -5.549791247712343e-17),
    ];

    /// Distance from a value of twice the digits, in units of the last place of its rounding.
    fn ulps_of_two(got: f64, (high, low): Two) -> f64 {
        let size = high.abs().max(f64::MIN_POSITIVE);
        ((got - high) - low).abs() / (size.next_up() - size)
    }

    #[test]
    fn erf_and_the_logistic_function_are_within_two_ulp() {
        for (x, erf, sigmoid) in REFERENCE {
            let found = [ulps_of_two(erf_f64(x), erf), ulps_of_two(sigmoid_f64(x), sigmoid)];
            assert!(found.iter().all(|ulps| *ulps < 1.5), "{x:e}: {found:?}");
            assert_eq!(erf_f64(-x), -erf_f64(x));
            // Of narrower numbers the nearest of theirs is at hand.
            let single = x as f32;
            let want = sigmoid_f64(f64::from(single));
            assert!(ulps_f32(sigmoid_f32(single), want) < 1.5, "{single:e}");
        }
    }

    #[test]
    fn the_hyperbolic_tangent_is_within_one_and_a_half_ulp() {
        for (x, high, low) in TANH {
            assert!(ulps_of_two(tanh_f64(x), (high, low)) < 1.5, "{x:e}");
            assert_eq!(tanh_f64(-x), -tanh_f64(x));
        }
        assert!(tanh_f64(f64::NAN).is_nan() && tanh_f64(-0.0).is_sign_negative());
        for (x, want) in [(f64::INFINITY, 1.0), (-800.0, -1.0), (5e-324, 5e-324), (1e-200, 1e-200)] {
            assert_eq!(tanh_f64(x), want);
        }
    }

    #[test]
    fn the_logistic_function_keeps_its_least_values() {
        assert_eq!(sigmoid_f32(-103.0), 1e-45);
        assert_eq!(sigmoid_f64(-745.0), 5e-324);
        for (x, want) in [(f64::INFINITY, 1.0), (f64::NEG_INFINITY, 0.0), (0.0, 0.5), (-0.0, 0.5)] {
            assert_eq!((sigmoid_f64(x), f64::from(sigmoid_f32(x as f32))), (want, want));
        }
        assert!(sigmoid_f64(f64::NAN).is_nan() && sigmoid_f32(f32::NAN).is_nan());
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
