//! Arrays, numbers and random cases that the tests of `reduce` share.

#![allow(dead_code, clippy::unwrap_used)]

use coulis::{Array, DType, DeviceChoice, NanPolicy, Order, Request, Scalar};
use proptest::prelude::{Just, Strategy, prop_oneof};

/// An array of `dtype` from small numbers; floats keep NaN and infinities.
pub fn array(dtype: DType, shape: &[i64], values: &[f64]) -> Array {
    let n = shape.iter().product::<i64>() as usize;
    let values = &values[..n];
    let ints =
        |lo: f64| values.iter().map(|v| if v.is_finite() { v.max(lo) as i64 } else { 3 }).collect::<Vec<_>>();
    let signed = ints(-100.0);
    let unsigned = ints(0.0);
    match dtype {
        DType::Bool => Array::from_bools(shape, &values.iter().map(|v| *v > 0.0).collect::<Vec<_>>()),
        DType::I8 => Array::from_slice(shape, &signed.iter().map(|v| *v as i8).collect::<Vec<_>>()),
        DType::I16 => Array::from_slice(shape, &signed.iter().map(|v| *v as i16).collect::<Vec<_>>()),
        DType::I32 => Array::from_slice(shape, &signed.iter().map(|v| *v as i32).collect::<Vec<_>>()),
        DType::I64 => Array::from_slice(shape, &signed),
        DType::U8 => Array::from_slice(shape, &unsigned.iter().map(|v| *v as u8).collect::<Vec<_>>()),
        DType::U16 => Array::from_slice(shape, &unsigned.iter().map(|v| *v as u16).collect::<Vec<_>>()),
        DType::U32 => Array::from_slice(shape, &unsigned.iter().map(|v| *v as u32).collect::<Vec<_>>()),
        DType::U64 => Array::from_slice(shape, &unsigned.iter().map(|v| *v as u64).collect::<Vec<_>>()),
        DType::F8E4M3 => {
            let bytes: Vec<u8> = values.iter().map(|v| coulis_ir::float8::f64_to_e4m3(*v)).collect();
            Array::from_bytes(dtype, shape, &bytes)
        }
        DType::F8E5M2 => {
            let bytes: Vec<u8> = values.iter().map(|v| coulis_ir::float8::f64_to_e5m2(*v)).collect();
            Array::from_bytes(dtype, shape, &bytes)
        }
        DType::F16 => {
            Array::from_slice(shape, &values.iter().map(|v| half::f16::from_f64(*v)).collect::<Vec<_>>())
        }
        DType::BF16 => {
            Array::from_slice(shape, &values.iter().map(|v| half::bf16::from_f64(*v)).collect::<Vec<_>>())
        }
        DType::F32 => Array::from_slice(shape, &values.iter().map(|v| *v as f32).collect::<Vec<_>>()),
        DType::F64 => Array::from_slice(shape, values),
    }
    .unwrap()
}

/// Which special values are among the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// Zeros of both signs.
    Zeros,
    /// NaN too.
    Nan,
    /// NaN and infinities too.
    All,
    /// Nearly all NaN.
    MostlyNan,
    /// Five whole numbers, each by the dozen.
    Few,
}

/// Numbers of magnitude up to 4, reproducible.
pub fn numbers(n: usize, special: Special, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let unit = (state >> 11) as f64 / (1u64 << 53) as f64;
        match (state % 97, special) {
            (0..90, Special::MostlyNan) | (0, Special::Nan | Special::All) => f64::NAN,
            (1, Special::All) => f64::INFINITY,
            (2, Special::All) => f64::NEG_INFINITY,
            (_, Special::Few) => (unit * 5.0).floor() - 2.0,
            (3, _) => -0.0,
            (4, _) => 0.0,
            _ => (unit - 0.5) * 8.0,
        }
    };
    (0..n).map(|_| next()).collect()
}

/// How an axis lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lie {
    /// As the others leave it.
    Dense,
    /// Backwards.
    Backward,
    /// Every element of it is the same.
    Repeated,
    /// With this many unused places after each.
    Gap(i64),
}

/// Random lengths of an axis, and how it lies.
pub fn length_and_lie() -> (impl Strategy<Value = i64>, impl Strategy<Value = Lie>) {
    let length = prop_oneof![1 => Just(0i64), 2 => Just(1), 8 => 2i64..8, 4 => 8i64..40, 2 => 60i64..140];
    let lie = prop_oneof![
        6 => Just(Lie::Dense),
        1 => Just(Lie::Backward),
        1 => Just(Lie::Repeated),
        1 => (1i64..4).prop_map(Lie::Gap)
    ];
    (length, lie)
}

/// A view of `dtype`: axis `order[last]` is innermost in memory.
pub fn view(
    dtype: DType,
    shape: &[i64],
    order: &[usize],
    lies: &[Lie],
    numbers: impl Fn(usize) -> Vec<f64>,
) -> Array {
    let mut strides = vec![0; shape.len()];
    let (mut run, mut start) = (1, 2);
    for &axis in order.iter().rev() {
        let length = shape[axis].max(1);
        let step = match lies[axis] {
            Lie::Dense => run,
            Lie::Backward => {
                start += (length - 1) * run;
                -run
            }
            Lie::Repeated => 0,
            Lie::Gap(gap) => run + gap,
        };
        strides[axis] = step;
        if step != 0 {
            run = step.abs() * length;
        }
    }
    let n = run + start + 2;
    array(dtype, &[n], &numbers(n as usize)).view(shape, &strides, start).unwrap()
}

/// Whether some output has no elements under the mask, and whether some has nothing but NaN.
pub fn empties(input: &Array, axes: &[usize], mask: Option<&Array>) -> (bool, bool) {
    let shape = input.shape();
    let kept: Vec<usize> = (0..shape.len()).filter(|a| !axes.contains(a)).collect();
    let n_out: i64 = kept.iter().map(|&a| shape[a]).product();
    let mut rows = vec![(0, 0); n_out as usize];
    let mut index = vec![0i64; shape.len()];
    let mut masks = mask.map(|m| {
        let missing = shape.len() - m.shape().len();
        let strides: Vec<i64> =
            (0..shape.len())
                .map(|a| {
                    if a < missing || m.shape()[a - missing] != shape[a] {
                        0
                    } else {
                        m.strides()[a - missing]
                    }
                })
                .collect();
        m.view(shape, &strides, 0).unwrap().scalars().collect::<Vec<_>>().into_iter()
    });
    for scalar in input.scalars() {
        let at = kept.iter().fold(0, |at, &a| at * shape[a] + index[a]) as usize;
        if masks.as_mut().is_none_or(|m| m.next() == Some(Scalar::Bool(true))) {
            rows[at].0 += 1;
            rows[at].1 += usize::from(!matches!(scalar, Scalar::Float(v) if v.is_nan()));
        }
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    (rows.iter().any(|r| r.0 == 0), rows.iter().any(|r| r.1 == 0))
}

/// Runs the request and compares every output with the exact one. Where some output has no value, wants the error.
pub fn check(inputs: &[Array], request: &Request) -> Result<(), String> {
    let rank = inputs[0].shape().len();
    let axes: Vec<usize> = match &request.axes {
        None => (0..rank).collect(),
        Some(axes) => axes.iter().map(|a| a.rem_euclid(rank as i64) as usize).collect(),
    };
    let (no_element, no_number) = empties(&inputs[0], &axes, request.where_.as_ref());
    let entry = |op: &String| coulis_reducers::find(op).expect("it is in the catalogue");
    let is_position = |op: &String| entry(op).empty_index_is_error();
    let is_extremum = |op: &String| entry(op).needs_init_when_empty() && !request.init.contains_key(op);
    let refused = (no_element && request.ops.iter().any(|op| is_position(op) || is_extremum(op)))
        || (no_number && request.nan == NanPolicy::Ignore && request.ops.iter().any(is_position));
    let outcome = match coulis::reduce::run(inputs, request) {
        Err(error) if refused && error.code == "reduce/empty" => return Ok(()),
        Err(error) => return Err(error.to_string()),
        Ok(_) if refused => return Err("an output without elements was not refused".to_owned()),
        Ok(outcome) => outcome,
    };
    let kept = |a: &usize| !axes.contains(a);
    let shape: Vec<i64> = match request.keepdims {
        true => (0..rank).map(|a| if kept(&a) { inputs[0].shape()[a] } else { 1 }).collect(),
        false => (0..rank).filter(kept).map(|a| inputs[0].shape()[a]).collect(),
    };
    let report = coulis::reduce::verify_outcome(inputs, request, &outcome).map_err(|e| e.to_string())?;
    for (result, verified) in outcome.results.iter().zip(&report.results) {
        if result.array.shape() != shape {
            return Err(format!("{}: shape {:?}, wanted {shape:?}", result.name, result.array.shape()));
        }
        if request.order == Order::RowMajor && !result.array.is_row_major() {
            return Err(format!("{}: strides {:?}", result.name, result.array.strides()));
        }
        if verified.n_checked != result.array.len() {
            return Err(format!("{}: {} outputs compared", result.name, verified.n_checked));
        }
        if let Some(refutation) = &verified.refuted {
            return Err(format!(
                "{} on {} by {}: {refutation:?}\n{}",
                result.name, outcome.device, outcome.plan.name, outcome.plan.trace
            ));
        }
    }
    Ok(())
}

/// The request of these statistics over these axes, executed.
pub fn executed(ops: &[&str], axes: &[i64]) -> Request {
    Request { device: DeviceChoice::CpuExecuted, threads: Some(2), ..Request::new(ops).over(axes) }
}
