//! How one element is written: exactly for programs, shortly for people.

use coulis::{DType, Scalar};

/// The element as JSON: exact, NaN and infinities as strings.
pub fn json(scalar: Scalar) -> String {
    match scalar {
        Scalar::Float(value) if !value.is_finite() => format!("\"{}\"", exact(scalar)),
        _ => exact(scalar),
    }
}

/// The element as the shortest text that reads back as the same `float64`, integer or truth value.
pub fn exact(scalar: Scalar) -> String {
    match scalar {
        Scalar::Bool(value) => value.to_string(),
        Scalar::Int(value) => value.to_string(),
        Scalar::UInt(value) => value.to_string(),
        Scalar::Float(value) if value.is_nan() => "NaN".to_owned(),
        Scalar::Float(value) if value.is_infinite() => {
            if value > 0.0 { "Infinity" } else { "-Infinity" }.to_owned()
        }
        Scalar::Float(value) => format!("{value:?}"),
    }
}

/// The element as the shortest text that reads back as the same value of `dtype`.
pub fn short(scalar: Scalar, dtype: DType) -> String {
    let Scalar::Float(value) = scalar else { return exact(scalar) };
    if !value.is_finite() {
        return exact(scalar);
    }
    let fits = |text: &str| text.parse::<f64>().is_ok_and(|read| dtype.round_float(read) == value);
    let shortest = (0..17).map(|digits| format!("{value:.digits$e}")).find(|text| fits(text));
    match shortest.and_then(|text| text.parse::<f64>().ok()) {
        Some(rounded) => format!("{rounded:?}"),
        None => exact(scalar),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_numbers_are_exact_and_special_values_are_strings() {
        for (scalar, want) in [
            (Scalar::Float(f64::NAN), "\"NaN\""),
            (Scalar::Float(f64::INFINITY), "\"Infinity\""),
            (Scalar::Float(f64::NEG_INFINITY), "\"-Infinity\""),
            (Scalar::Float(-0.0), "-0.0"),
            (Scalar::Float(1e300), "1e300"),
            (Scalar::Float(f64::from(0.1_f32)), "0.10000000149011612"),
            (Scalar::Bool(true), "true"),
            (Scalar::UInt(u64::MAX), "18446744073709551615"),
            (Scalar::Int(i64::MIN), "-9223372036854775808"),
        ] {
            assert_eq!(json(scalar), want);
        }
    }

    #[test]
    fn short_numbers_have_the_digits_of_their_own_type() {
        for (value, dtype, want) in [
            (f64::from(0.1_f32), DType::F32, "0.1"),
            (0.1, DType::F64, "0.1"),
            (DType::F16.round_float(0.1), DType::F16, "0.1"),
            (0.30000000000000004, DType::F64, "0.30000000000000004"),
            (0.0, DType::F32, "0.0"),
            (16777216.0, DType::F32, "16777216.0"),
            (f64::INFINITY, DType::F32, "Infinity"),
        ] {
            assert_eq!(short(Scalar::Float(value), dtype), want);
        }
    }
}
