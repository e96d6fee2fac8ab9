//! Arrays of small whole numbers, their statistics in exact integers, and the devices that a case runs on.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use coulis::{Array, DType, DeviceChoice, Request, Scalar};
use coulis_ir::eval::Value;

use crate::common;

/// Elements up to which a case runs in the simulator, with warps of 32 lanes.
const SIMULATED: usize = 3000;
/// The same with warps of 64 lanes too.
const SIMULATED_WIDE: usize = 1200;
/// Elements up to which a case runs at full size in every run of the tests; `COULIS_FULL_SIZES` lifts the limit.
const USUAL: i64 = 2_000_000;

/// Whether a case is worth the time of a C compiler beside the other devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiled {
    Yes,
    No,
}

/// The GPU, where there is one.
fn gpu() -> Option<DeviceChoice> {
    static GPU: OnceLock<bool> = OnceLock::new();
    let probe = || {
        let one = Array::from_slice(&[1], &[1.0f32]).unwrap();
        let call = Request { device: DeviceChoice::Cuda(0), ..Request::new(&["sum"]) };
        let found = coulis::reduce::run(&[one], &call);
        if let Err(why) = &found {
            println!("SKIP on a GPU: {why}");
        }
        found.is_ok()
    };
    GPU.get_or_init(probe).then_some(DeviceChoice::Cuda(0))
}

/// The devices for a case of so many elements.
pub fn places(n_elements: usize, compiled: Compiled) -> Vec<DeviceChoice> {
    let mut places = vec![DeviceChoice::CpuExecuted];
    if compiled == Compiled::Yes {
        places.push(DeviceChoice::Auto);
    }
    if n_elements <= SIMULATED {
        places.push(DeviceChoice::Sim { warp: 32, orders: 2 });
    }
    if n_elements <= SIMULATED_WIDE {
        places.push(DeviceChoice::Sim { warp: 64, orders: 1 });
    }
    places.extend(gpu());
    places
}

/// Runs the request on each device and compares all results with exact ones.
pub fn exact_everywhere(inputs: &[Array], request: &Request, compiled: Compiled) {
    for device in places(inputs[0].len(), compiled) {
        let call = Request { device: device.clone(), threads: Some(2), ..request.clone() };
        let shape = inputs[0].shape();
        common::check(inputs, &call)
            .unwrap_or_else(|why| panic!("{:?} of {shape:?} over {:?}: {why}", call.ops, call.axes));
    }
}

/// Whether shapes are to be as large as the scenario says; that takes hours on a machine of two cores.
pub fn full_sizes() -> bool {
    std::env::var_os("COULIS_FULL_SIZES").is_some()
}

/// The shape with its first long axis cut until the array has at most [`USUAL`] elements.
pub fn usual(shape: &[i64]) -> Vec<i64> {
    let mut shape = shape.to_vec();
    if full_sizes() {
        return shape;
    }
    while shape.iter().product::<i64>() > USUAL {
        let longest = (0..shape.len()).max_by_key(|&axis| shape[axis]).unwrap_or(0);
        shape[longest] = (shape[longest] / 2).max(1);
    }
    shape
}

/// Whole numbers from -5 to 4 as `dtype` holds them: negative ones are 0 where there is no sign, and bools are 0 or 1.
pub fn whole(n: usize, dtype: DType, seed: u64) -> Vec<i64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 33) as i64 % 10 - 5
    };
    let kept = |v: i64| match dtype.int_range() {
        None if dtype.is_float() => v,
        None => i64::from(v > 0),
        Some((0, 1)) => i64::from(v > 0),
        Some((lo, _)) => v.max(lo.max(-100) as i64),
    };
    (0..n).map(|_| kept(next())).collect()
}

/// The array of those numbers.
pub fn array_of(dtype: DType, shape: &[i64], values: &[i64]) -> Array {
    common::array(dtype, shape, &values.iter().map(|v| *v as f64).collect::<Vec<_>>())
}

/// Statistics of one row of whole numbers.
#[derive(Clone, Copy, Debug)]
pub struct Moments {
    n: i64,
    sum: i64,
    sum_of_squares: i64,
    norm1: i64,
    min: (i64, i64),
    max: (i64, i64),
    last_min: i64,
    last_max: i64,
}

impl Moments {
    const NONE: Moments = Moments {
        n: 0,
        sum: 0,
        sum_of_squares: 0,
        norm1: 0,
        min: (i64::MAX, -1),
        max: (i64::MIN, -1),
        last_min: -1,
        last_max: -1,
    };

    fn add(&mut self, v: i64) {
        let at = self.n;
        self.n += 1;
        self.sum += v;
        self.sum_of_squares += v * v;
        self.norm1 += v.abs();
        if v <= self.min.0 {
            self.last_min = at;
        }
        if v >= self.max.0 {
            self.last_max = at;
        }
        if v < self.min.0 {
            self.min = (v, at);
        }
        if v > self.max.0 {
            self.max = (v, at);
        }
    }

    /// The statistic of that name.
    pub fn of(&self, op: &str) -> f64 {
        let n = self.n as f64;
        match op {
            "sum" => self.sum as f64,
            "mean" => self.sum as f64 / n,
            "var" => (self.sum_of_squares as f64 - (self.sum as f64 / n) * self.sum as f64) / n,
            "sumsq" => self.sum_of_squares as f64,
            "meansq" => self.sum_of_squares as f64 / n,
            "norm1" => self.norm1 as f64,
            "norm2" => (self.sum_of_squares as f64).sqrt(),
            "min" => self.min.0 as f64,
            "max" => self.max.0 as f64,
            "absmax" => self.min.0.abs().max(self.max.0.abs()) as f64,
            "argmin" => self.min.1 as f64,
            "argmax" => self.max.1 as f64,
            "argmin_last" => self.last_min as f64,
            "argmax_last" => self.last_max as f64,
            "count" => n,
            other => panic!("no moment gives `{other}`"),
        }
    }
}

/// The moments of each output, row-major.
pub fn moments(values: &[i64], shape: &[i64], axes: &[i64]) -> Vec<Moments> {
    let rank = shape.len();
    let is_kept = |axis: usize| !axes.iter().any(|a| a.rem_euclid(rank as i64) as usize == axis);
    let mut strides = vec![0usize; rank];
    let mut n_out = 1;
    for axis in (0..rank).rev().filter(|a| is_kept(*a)) {
        strides[axis] = n_out;
        n_out *= shape[axis] as usize;
    }
    let mut rows = vec![Moments::NONE; n_out];
    let mut index = vec![0i64; rank];
    let mut out = 0;
    for &v in values {
        rows[out].add(v);
        for axis in (0..rank).rev() {
            index[axis] += 1;
            out += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            out -= strides[axis] * index[axis] as usize;
            index[axis] = 0;
        }
    }
    rows
}

/// A number, whatever its type.
pub fn number(scalar: Scalar) -> f64 {
    match scalar {
        Scalar::Bool(v) => f64::from(u8::from(v)),
        Scalar::Int(v) => v as f64,
        Scalar::UInt(v) => v as f64,
        Scalar::Float(v) => v,
    }
}

/// A problem of whole numbers: shape, axes, type, statistics.
pub struct Whole<'a> {
    pub shape: &'a [i64],
    pub axes: &'a [i64],
    pub dtype: DType,
    pub ops: &'a [&'a str],
    /// Output type of every statistic; by default the statistic's own.
    pub out: Option<DType>,
    /// Accumulator type.
    pub acc: Option<DType>,
}

impl<'a> Whole<'a> {
    pub fn new(dtype: DType, shape: &'a [i64], axes: &'a [i64], ops: &'a [&'a str]) -> Whole<'a> {
        Whole { shape, axes, dtype, ops, out: None, acc: None }
    }

    fn request(&self) -> Request {
        let out_dtypes = self.out.map(|d| BTreeMap::from([(String::new(), d)])).unwrap_or_default();
        Request {
            out_dtypes,
            acc_dtype: self.acc,
            threads: Some(2),
            ..Request::new(self.ops).over(self.axes)
        }
    }

    /// Runs it on each device and compares with the moments: whole results exactly, others within two units in the last
    /// place of the output type.
    pub fn check(&self, compiled: Compiled) {
        let n = self.shape.iter().product::<i64>() as usize;
        let values = whole(n, self.dtype, 1 + n as u64);
        let input = array_of(self.dtype, self.shape, &values);
        let rows = moments(&values, self.shape, self.axes);
        for device in places(n, compiled) {
            let call = Request { device, ..self.request() };
            let outcome = coulis::reduce::run(std::slice::from_ref(&input), &call).unwrap_or_else(|why| {
                panic!("{:?} of {:?} over {:?}: {why}", self.ops, self.shape, self.axes)
            });
            for (op, result) in self.ops.iter().zip(&outcome.results) {
                assert_eq!(result.array.len(), rows.len(), "{op}");
                let dtype = result.array.dtype();
                for (at, (row, found)) in rows.iter().zip(result.array.scalars()).enumerate() {
                    let (want, found) = (row.of(op), number(found));
                    let rounded = Value::Float(want).cast(dtype).as_f64();
                    let slack = if want.fract() == 0.0 { 0.0 } else { 2.0 * unit(dtype) * want.abs() };
                    assert!(
                        found == rounded || (found - want).abs() <= slack,
                        "{op} of {} {:?} over {:?}, output {at} on {} by {}: found {found}, wanted {want}",
                        self.dtype,
                        self.shape,
                        self.axes,
                        outcome.device,
                        outcome.plan.name
                    );
                }
            }
        }
    }
}

/// Distance from 1 to the next value.
fn unit(dtype: DType) -> f64 {
    match dtype {
        DType::F64 => f64::EPSILON,
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        _ => f64::from(f32::EPSILON),
    }
}

/// A zero-stride view: so many copies of the array, along a new first axis.
pub fn repeated(row: &Array, times: i64) -> Array {
    let shape: Vec<i64> = [times].into_iter().chain(row.shape().iter().copied()).collect();
    let strides: Vec<i64> = [0].into_iter().chain(row.strides().iter().copied()).collect();
    row.view(&shape, &strides, 0).unwrap()
}
