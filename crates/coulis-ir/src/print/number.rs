//! Numbers as text.
//!
//! Floats print with up to 17 significant digits, which name a `float64` exactly; trailing zeros are dropped, and
//! very large or small ones take an exponent. This is C's `%.17g`, as in the listings of seed 003.

/// The digits of a finite float, or `"inf"`, `"-inf"`, `"nan"` with their quotation marks.
pub fn float_literal(value: f64) -> String {
    if value.is_nan() {
        return "\"nan\"".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "\"inf\"" } else { "\"-inf\"" }.to_owned();
    }
    if value == 0.0 {
        return if value.is_sign_negative() { "-0.0" } else { "0" }.to_owned();
    }
    let sign = if value < 0.0 { "-" } else { "" };
    let scientific = format!("{:.16e}", value.abs());
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
    let digits = match digits.trim_end_matches('0') {
        "" => "0",
        significant => significant,
    };
    if !(-4..17).contains(&exponent) {
        let (first, rest) = digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        let exponent_sign = if exponent < 0 { '-' } else { '+' };
        return format!("{sign}{first}{point}{rest}e{exponent_sign}{:02}", exponent.abs());
    }
    if exponent < 0 {
        let zeros = "0".repeat(usize::try_from(-exponent - 1).unwrap_or(0));
        return format!("{sign}0.{zeros}{digits}");
    }
    let whole = usize::try_from(exponent + 1).unwrap_or(1);
    if digits.len() <= whole {
        return format!("{sign}{digits}{}", "0".repeat(whole - digits.len()));
    }
    format!("{sign}{}.{}", &digits[..whole], &digits[whole..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_print_as_c_prints_them_with_17_digits() {
        for (value, want) in [
            (0.0, "0"),
            (-0.0, "-0.0"),
            (1.0, "1"),
            (-2.5, "-2.5"),
            (1024.0, "1024"),
            (1.0 / 3.0, "0.33333333333333331"),
            (f64::from(-f32::MAX), "-3.4028234663852886e+38"),
            (1e16, "10000000000000000"),
            (1e17, "1e+17"),
            (0.0001, "0.0001"),
            (0.00001, "1.0000000000000001e-05"),
            (5e-324, "4.9406564584124654e-324"),
            (f64::INFINITY, "\"inf\""),
            (f64::NEG_INFINITY, "\"-inf\""),
            (f64::NAN, "\"nan\""),
        ] {
            assert_eq!(float_literal(value), want);
        }
    }

    #[test]
    fn every_finite_float_is_read_back_exactly() {
        let mut bits = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..20_000 {
            bits = bits.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            let value = f64::from_bits(bits);
            if value.is_finite() {
                let text = float_literal(value);
                assert_eq!(text.parse::<f64>().map(f64::to_bits), Ok(value.to_bits()), "{text}");
            }
        }
    }
}
