//! `reduce` against exact answers: every statistic, random shapes, strides, dtypes and values.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use coulis::{Array, DType, NanPolicy, Request};
use coulis_io::Scalar;
use coulis_ir::eval::Value;
use coulis_reducers::exact::{Exact, reference, tolerance};

fn value(scalar: Scalar) -> Value {
    match scalar {
        Scalar::Bool(v) => Value::Int(i128::from(v)),
        Scalar::Int(v) => Value::Int(i128::from(v)),
        Scalar::UInt(v) => Value::Int(i128::from(v)),
        Scalar::Float(v) => Value::Float(v),
    }
}

/// An array of `dtype` from small numbers; floats keep NaN and infinities.
fn array(dtype: DType, shape: &[i64], values: &[f64]) -> Array {
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

/// Elements of each output, in position order, by the definition of a reduction.
fn rows(input: &Array, axes: &[usize]) -> Vec<Vec<Value>> {
    let shape = input.shape();
    let kept: Vec<usize> = (0..shape.len()).filter(|a| !axes.contains(a)).collect();
    let n_out: i64 = kept.iter().map(|&a| shape[a]).product();
    let mut rows = vec![Vec::new(); n_out as usize];
    let mut index = vec![0i64; shape.len()];
    for scalar in input.scalars() {
        let at = kept.iter().fold(0, |at, &a| at * shape[a] + index[a]);
        rows[at as usize].push(value(scalar));
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            if index[axis] < shape[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
    rows
}

fn agrees(
    found: Value,
    exact: &Exact,
    bound: coulis_ir::ErrorBound,
    n: usize,
    dtype: DType,
) -> Result<(), String> {
    let want = exact.value;
    let (f, w) = match (found, want) {
        (Value::Int(f), Value::Int(w)) if f == w => return Ok(()),
        (Value::Float(f), Value::Float(w)) => (f, w),
        _ => return Err(format!("found {found:?}, exact {want:?}")),
    };
    let rounded = dtype.round_float(w);
    if (f.is_nan() && w.is_nan()) || f == rounded {
        return Ok(());
    }
    let error = (f - w).abs();
    let allowed = tolerance(bound, exact, n) + coulis_reducers::exact::rounding_error(w.abs(), dtype);
    if error <= allowed || (rounded.is_infinite() && f.is_infinite() && rounded == f) {
        return Ok(());
    }
    Err(format!("found {f:e}, exact {w:e}, error {error:e}, allowed {allowed:e}"))
}

/// Runs all statistics of one input that accept the case, together, and compares each with the exact answer.
fn check(input: &Array, axes: &[usize], nan: NanPolicy, threads: usize) -> Result<(), String> {
    let rows = rows(input, axes);
    let dtype = input.dtype();
    let empty = rows.iter().any(Vec::is_empty);
    let all_nan = nan == NanPolicy::Ignore
        && rows.iter().any(|r| r.iter().all(|v| matches!(v, Value::Float(f) if f.is_nan())));
    let entries: Vec<_> = coulis::CATALOGUE
        .iter()
        .filter(|e| e.n_inputs == 1)
        .filter(|e| !(empty && e.empty == coulis_reducers::Empty::Refused))
        .filter(|e| !(all_nan && e.empty_index_is_error()))
        .collect();
    let ops: Vec<&str> = entries.iter().map(|e| e.name).collect();
    let axes_i: Vec<i64> = axes.iter().map(|a| *a as i64).collect();
    let request = Request { nan, threads: Some(threads), ..Request::new(&ops).over(&axes_i) };
    let outcome = coulis::reduce::run(std::slice::from_ref(input), &request).map_err(|e| e.to_string())?;
    let mut results = outcome.results.iter();
    for entry in entries {
        let own = coulis_reducers::Request::new(&[dtype]).with_nan(nan);
        let reducer = entry.build(&own).map_err(|e| e.to_string())?;
        for slot in 0..reducer.results.len() {
            let result = results.next().ok_or("a result is missing")?;
            let found: Vec<Value> = result.array.scalars().map(value).collect();
            if found.len() != rows.len() {
                return Err(format!("{}: {} outputs, wanted {}", result.name, found.len(), rows.len()));
            }
            for (at, row) in rows.iter().enumerate() {
                let elements: Vec<Vec<Value>> = row.iter().map(|v| vec![*v]).collect();
                let exact =
                    reference(entry, &own, &elements).map_err(|e| format!("{}: {e:?}", entry.name))?;
                agrees(found[at], &exact[slot], reducer.error, row.len(), result.array.dtype()).map_err(
                    |why| {
                        format!(
                            "{} of {dtype} {:?} over {axes:?}, output {at} ({}): {why}\n{}",
                            result.name,
                            input.shape(),
                            outcome.plan.name,
                            outcome.plan.trace
                        )
                    },
                )?;
            }
        }
    }
    Ok(())
}

fn numbers(n: usize, special: bool, seed: u64) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..n)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let unit = (state >> 11) as f64 / (1u64 << 53) as f64;
            match state % 97 {
                0 if special => f64::NAN,
                1 if special => f64::INFINITY,
                2 if special => f64::NEG_INFINITY,
                3 => -0.0,
                4 => 0.0,
                _ => (unit - 0.5) * 8.0,
            }
        })
        .collect()
}

#[test]
fn every_plan_gives_the_exact_answers() {
    let cases: &[(&[i64], &[usize])] = &[
        (&[], &[]),
        (&[1], &[0]),
        (&[7], &[0]),
        (&[1000], &[0]),
        (&[37, 129], &[1]),
        (&[300, 16], &[1]),
        (&[129, 37], &[0]),
        (&[100, 3], &[0]),
        (&[5, 40, 6], &[1]),
        (&[4, 6, 8, 10], &[0, 2]),
        (&[0, 4], &[0]),
        (&[4, 0], &[0]),
        (&[3, 5], &[]),
    ];
    for (shape, axes) in cases {
        let n = shape.iter().product::<i64>() as usize;
        for dtype in [DType::F32, DType::I16] {
            let input = array(dtype, shape, &numbers(n, false, 7));
            check(&input, axes, NanPolicy::Propagate, 2).unwrap();
        }
    }
}
