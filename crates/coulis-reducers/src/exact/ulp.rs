//! Distances in units of the last place.

use coulis_ir::DType;
use coulis_ir::eval::Value;
use coulis_ir::float8;

/// Number of values of the type between two: 0 when equal, 1 for neighbours; 0.0 and -0.0 are equal, and so
/// are two NaNs; `u64::MAX` between a NaN and a number. Values that are not of the type are rounded to it
/// first. For integers the difference.
pub fn ulp_distance(a: Value, b: Value, dtype: DType) -> u64 {
    let (a, b) = (a.cast(dtype), b.cast(dtype));
    match (a, b) {
        (Value::Int(x), Value::Int(y)) => u64::try_from(x.abs_diff(y)).unwrap_or(u64::MAX),
        _ if a.is_nan() && b.is_nan() => 0,
        _ if a.is_nan() || b.is_nan() => u64::MAX,
        _ => rank(a.as_f64(), dtype).abs_diff(rank(b.as_f64(), dtype)),
    }
}

/// Place of a value in the order of its type; 0 for zeros.
fn rank(value: f64, dtype: DType) -> i64 {
    let magnitude = value.abs();
    let code = match dtype {
        DType::F64 => magnitude.to_bits() as i64,
        DType::F32 => i64::from((magnitude as f32).to_bits()),
        DType::F16 => i64::from(half::f16::from_f64(magnitude).to_bits()),
        DType::BF16 => i64::from(half::bf16::from_f64(magnitude).to_bits()),
        DType::F8E4M3 => i64::from(float8::f64_to_e4m3(magnitude)),
        DType::F8E5M2 => i64::from(float8::f64_to_e5m2(magnitude)),
        DType::Bool
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64 => magnitude as i64,
    };
    if value < 0.0 { -code } else { code }
}

/// Largest error that one rounding of a number of this magnitude to the type can make: half a unit of the last
/// place, of the next binade to be safe; 0 for integers.
pub fn rounding_error(magnitude: f64, dtype: DType) -> f64 {
    let (precision, least) = match dtype {
        DType::F64 => (53, -1074),
        DType::F32 => (24, -149),
        DType::F16 => (11, -24),
        DType::BF16 => (8, -133),
        DType::F8E4M3 => (4, -9),
        DType::F8E5M2 => (3, -16),
        DType::Bool
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64 => return 0.0,
    };
    magnitude.abs() * 2f64.powi(-precision) + 2f64.powi(least)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_apart_across_binades_and_zero() {
        let check = |a: f64, b: f64, dtype, want| {
            assert_eq!(ulp_distance(Value::Float(a), Value::Float(b), dtype), want, "{a} {b} {dtype}");
        };
        check(1.0, f64::from(1f32.next_up()), DType::F32, 1);
        check(2.0, f64::from(2f32.next_down()), DType::F32, 1);
        check(-0.0, 0.0, DType::F64, 0);
        check(-5e-324, 5e-324, DType::F64, 2);
        check(1.0, 1.0 + 2f64.powi(-10), DType::F16, 1);
        check(1.0, 1.0 + 2f64.powi(-7), DType::BF16, 1);
        check(1.0, 1.125, DType::F8E4M3, 1);
        check(f64::NAN, f64::NAN, DType::F32, 0);
        check(f64::NAN, 1.0, DType::F32, u64::MAX);
        check(f64::from(f32::MAX), f64::INFINITY, DType::F32, 1);
    }

    #[test]
    fn integers_are_as_far_apart_as_their_difference() {
        assert_eq!(ulp_distance(Value::Int(-3), Value::Int(4), DType::I8), 7);
        assert_eq!(
            ulp_distance(Value::Int(i64::MIN.into()), Value::Int(i64::MAX.into()), DType::I64),
            u64::MAX
        );
    }

    #[test]
    fn a_rounding_stays_within_its_error() {
        for dtype in [DType::F8E4M3, DType::F8E5M2, DType::F16, DType::BF16, DType::F32] {
            for k in 0..2000 {
                let value = 0.001 * f64::from(k) * 1.01f64.powi(k % 100);
                let error = (dtype.round_float(value) - value).abs();
                assert!(error <= rounding_error(value, dtype), "{value} {dtype}");
            }
        }
    }
}
