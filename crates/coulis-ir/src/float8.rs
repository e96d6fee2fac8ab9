//! Conversions of the two OCP 8-bit float formats.
//!
//! Source: OCP 8-bit Floating Point Specification 1.0. `e4m3` has bias 7, no infinities, NaN `0x7f`, largest finite
//! value 448; out-of-range values become NaN. `e5m2` has bias 15 and IEEE infinities.

/// The value of an `e4m3` byte.
pub fn e4m3_to_f32(bits: u8) -> f32 {
    decode(bits, 4, 3, 7, false)
}

/// The value of an `e5m2` byte.
pub fn e5m2_to_f32(bits: u8) -> f32 {
    decode(bits, 5, 2, 15, true)
}

/// The nearest `e4m3`, ties to even; magnitudes that round above 448 and infinities become NaN.
pub fn f64_to_e4m3(value: f64) -> u8 {
    encode(value, e4m3_to_f32, 0x7e, 0x7f)
}

/// The nearest `e5m2`, ties to even; magnitudes that round above 57344 become infinities.
pub fn f64_to_e5m2(value: f64) -> u8 {
    encode(value, e5m2_to_f32, 0x7b, 0x7c)
}

fn decode(bits: u8, exp_bits: u32, man_bits: u32, bias: i32, ieee: bool) -> f32 {
    let sign = if bits & 0x80 != 0 { -1.0f32 } else { 1.0 };
    let exp_mask = (1u8 << exp_bits) - 1;
    let exp = (bits >> man_bits) & exp_mask;
    let man = bits & ((1 << man_bits) - 1);
    let man_max = (1u8 << man_bits) - 1;
    if exp == exp_mask && ieee {
        return if man == 0 { sign * f32::INFINITY } else { f32::NAN };
    }
    if exp == exp_mask && man == man_max {
        return f32::NAN;
    }
    let scale = 1.0 / f32::from(1u16 << man_bits);
    if exp == 0 {
        sign * f32::from(man) * scale * 2f32.powi(1 - bias)
    } else {
        sign * (1.0 + f32::from(man) * scale) * 2f32.powi(i32::from(exp) - bias)
    }
}

/// Encodes by search over the ordered magnitudes `0..=largest`; `overflow` is the code above the largest finite.
fn encode(value: f64, decode: fn(u8) -> f32, largest: u8, overflow: u8) -> u8 {
    let sign = if value.is_sign_negative() { 0x80 } else { 0 };
    if value.is_nan() {
        return 0x7f | sign;
    }
    let magnitude = value.abs();
    let mut code = (0..=largest).rev().find(|&c| f64::from(decode(c)) <= magnitude).unwrap_or(0);
    let below = f64::from(decode(code));
    let step = if code == largest {
        f64::from(decode(largest)) - f64::from(decode(largest - 1))
    } else {
        f64::from(decode(code + 1)) - below
    };
    let excess = magnitude - below;
    if excess > step / 2.0 || (excess == step / 2.0 && code & 1 == 1) {
        code = if code == largest { overflow } else { code + 1 };
    }
    code | sign
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_survives_a_round_trip() {
        for code in 0..=255u8 {
            for (decode, encode) in [
                (e4m3_to_f32 as fn(u8) -> f32, f64_to_e4m3 as fn(f64) -> u8),
                (e5m2_to_f32 as fn(u8) -> f32, f64_to_e5m2 as fn(f64) -> u8),
            ] {
                let value = decode(code);
                if value.is_nan() {
                    assert!(decode(encode(f64::from(value))).is_nan());
                } else {
                    assert_eq!(encode(f64::from(value)), code, "{value}");
                }
            }
        }
    }

    #[test]
    fn limits_are_those_of_the_standard() {
        assert_eq!(e4m3_to_f32(0x7e), 448.0);
        assert_eq!(e5m2_to_f32(0x7b), 57344.0);
        assert!(e4m3_to_f32(f64_to_e4m3(1e9)).is_nan());
        assert_eq!(e5m2_to_f32(f64_to_e5m2(1e9)), f32::INFINITY);
        assert_eq!(f64_to_e4m3(464.0), 0x7e, "a tie at the top goes to the even code");
    }
}
