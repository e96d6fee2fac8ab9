//! Sums and counts.
//!
//! Float sums of inputs of at most 32 bits are kept in `float64`: the wider second level of contract N12.
//! Those of inputs of 16 bits or fewer may run in `float32` for 16 steps, those of short integers in 32 bits
//! for as long as these hold. `bfloat16` has the exponents of `float32`, so that few of its largest would
//! overflow there: its runs hold a part of the sum, a sixteenth or that of four chains. That is exact, since the least digit of
//! a `bfloat16` is `2^-133`, and that of a `float32` `2^-149`. `float32` itself has no such room; where it may run so
//! ([`ReducerRequest::narrow`]), a state that is not finite is spoilt and folded again without runs: a run
//! that overflows makes it infinite or NaN, and nothing makes it finite again. A run of 16 errs by at most 15
//! half units of `sum|terms|`, and one of four such chains by 17. Their bound is `32 * 2^-23 * sum|terms|` for up to 2^34 elements in one chain.
//! Sums of `float64` (and sums that are asked to accumulate in it, and statistics of wide integers) keep what
//! each addition rounded off in a second field (error-free addition, Knuth's TwoSum), and may run plainly for
//! 16 steps: the compensated second level. Their bound is `32 * 2^-52 * sum|terms|` for any length. Integer
//! sums wrap.

use coulis_ir::{DType, ErrorBound, Expr, Intrinsic};

use crate::builder::{Builder, Slot};
use crate::entry::{ReducerError, ReducerRequest};

/// Longest plain run of a compensated sum.
const RUN: u32 = 16;
/// Longest run of integers of at most 32 bits, whose sum `float64` holds.
const EXACT_RUN: u32 = 1 << 20;
/// Longest run that counts in bytes.
pub(crate) const BYTE_RUN: u32 = 127;
/// Most chains of such runs, whose sums are added in the type of the run.
pub(crate) const CHAINS: u32 = 4;
/// The same of that request: more than one is for runs that may be given up, as those that are walked again have no room for more
/// of them.
pub(crate) fn chains(request: &ReducerRequest) -> u32 {
    if request.inputs.contains(&DType::BF16) && !request.one_by_one { 1 } else { CHAINS }
}
/// What the terms of [`RUN`] steps of all chains are divided by in runs in `float32`: 1, or a power of two by which their sum stays finite
/// and none loses a digit.
pub(crate) fn headroom(request: &ReducerRequest) -> f64 {
    if request.inputs.contains(&DType::BF16) { f64::from(RUN * chains(request)) } else { 1.0 }
}

/// `expr` times a power of two.
pub(crate) fn scaled(expr: Expr, by: f64) -> Expr {
    if by == 1.0 {
        return expr;
    }
    let by = Expr::float(by, expr.dtype());
    &expr * &by
}

/// Distance from 1 to the next `float32`.
pub(crate) const EPS32: f64 = f32::EPSILON as f64;

/// How a sum is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accumulator {
    /// In an integer type, wrapping.
    Wrapping(DType),
    /// In `float64`, promising the error of `float32`.
    Wider,
    /// In two `float64` fields, promising the error of `float64`.
    Compensated,
}

impl Accumulator {
    /// Type of the terms and of the sum.
    pub(crate) fn dtype(self) -> DType {
        match self {
            Accumulator::Wrapping(dtype) => dtype,
            Accumulator::Wider | Accumulator::Compensated => DType::F64,
        }
    }

    /// Bound of the error of a sum.
    pub(crate) fn error(self) -> ErrorBound {
        match self {
            Accumulator::Wrapping(_) => ErrorBound::Exact,
            Accumulator::Wider => ErrorBound::Terms { factor: 32.0, eps: EPS32 },
            Accumulator::Compensated => ErrorBound::Terms { factor: 32.0, eps: f64::EPSILON },
        }
    }

    /// Bound of the error of a float computed from a sum.
    pub(crate) fn statistic_error(self) -> ErrorBound {
        match self {
            Accumulator::Wrapping(_) => Accumulator::Compensated.error(),
            Accumulator::Wider | Accumulator::Compensated => self.error(),
        }
    }
}

/// The accumulator of a reducer whose result is an integer for integers. Source: contract N4.
pub(crate) fn integral(op: &'static str, request: &ReducerRequest) -> Result<Accumulator, ReducerError> {
    let input = request.promoted();
    if request.has_float() {
        return of_floats(op, request);
    }
    match request.acc {
        None if request.inputs.iter().all(|d| d.is_unsigned_int()) => Ok(Accumulator::Wrapping(DType::U64)),
        None => Ok(Accumulator::Wrapping(DType::I64)),
        Some(acc) if acc.is_int() => Ok(Accumulator::Wrapping(acc)),
        Some(DType::F32 | DType::F64) => Ok(Accumulator::Compensated),
        Some(acc) => {
            let legal = "int8 to int64, uint8 to uint64, float32, float64";
            Err(ReducerError::Accumulator { op, input, acc, legal })
        }
    }
}

/// The accumulator of a reducer whose result is a float whatever the input. `term_bits`: width of the terms of
/// integers; those of at most 16 bits are summed exactly, in the same field as `sum` has.
pub(crate) fn statistic(
    op: &'static str,
    request: &ReducerRequest,
    term_bits: usize,
) -> Result<Accumulator, ReducerError> {
    if request.has_float() {
        return of_floats(op, request);
    }
    match request.acc {
        None if term_bits <= 16 => integral(op, request),
        None | Some(DType::F32 | DType::F64) => Ok(Accumulator::Compensated),
        Some(acc) => {
            let legal = "float32, float64";
            Err(ReducerError::Accumulator { op, input: request.promoted(), acc, legal })
        }
    }
}

fn of_floats(op: &'static str, request: &ReducerRequest) -> Result<Accumulator, ReducerError> {
    let input = request.promoted();
    match request.acc {
        None if request.inputs.contains(&DType::F64) => Ok(Accumulator::Compensated),
        None | Some(DType::F32) => Ok(Accumulator::Wider),
        Some(DType::F64) => Ok(Accumulator::Compensated),
        Some(acc) => Err(ReducerError::Accumulator { op, input, acc, legal: "float32, float64" }),
    }
}

/// Default type of a sum: `int64` or `uint64` for integers, the input's for floats.
pub(crate) fn sum_result(request: &ReducerRequest) -> DType {
    match request.promoted() {
        dtype if dtype.is_float() => dtype,
        _ if request.inputs.iter().all(|d| d.is_unsigned_int()) => DType::U64,
        _ => DType::I64,
    }
}

/// Default type of a statistic: `float64` for integers, the input's for floats.
pub(crate) fn statistic_result(request: &ReducerRequest) -> DType {
    let dtype = request.promoted();
    if dtype.is_float() { dtype } else { DType::F64 }
}

/// How many elements are multiplied in a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Degree {
    /// None: a term is an element, or its magnitude.
    One,
    /// Two.
    Two,
}

/// A narrower type in which a sum is kept in runs, and their greatest length, where there is one. Products of
/// `bfloat16` would overflow `float32` where their sum and its root do not.
fn narrow(request: &ReducerRequest, accumulator: Accumulator, degree: Degree) -> Option<(DType, u32)> {
    let (inputs, bytes) = (&request.inputs, request.inputs.iter().map(|d| d.bytes()).max()?);
    match accumulator {
        Accumulator::Compensated => {
            let bits = 8 * bytes as u32 * if degree == Degree::Two { 2 } else { 1 };
            (!request.has_float() && bits <= 32).then_some((DType::I64, EXACT_RUN))
        }
        Accumulator::Wider => {
            let holds = if degree == Degree::One {
                bytes <= 2 || bytes <= 4 && request.narrow
            } else {
                bytes <= 2 && !inputs.contains(&DType::BF16)
            };
            holds.then_some((DType::F32, RUN))
        }
        Accumulator::Wrapping(wide) => {
            let bits = 8 * bytes as u32 * if degree == Degree::Two { 2 } else { 1 };
            let is_bool = inputs.iter().all(|d| *d == DType::Bool);
            match bits {
                _ if wide.bytes() < 8 || bits > 16 => None,
                _ if request.long && is_bool => Some((DType::I8, BYTE_RUN)),
                8 if request.long => Some((DType::I16, 1 << (15 - bits))),
                _ => Some((DType::I32, 1 << (31 - bits))),
            }
        }
    }
}

/// The type in which a sum of few elements is kept from end to end, as a run of so many would be, and what its terms are divided by;
/// `None` where they may be too many. One after another, as many floats as the chains of a run fold err by 63 half units.
fn of_few(request: &ReducerRequest, accumulator: Accumulator, degree: Degree) -> Option<(DType, f64)> {
    let (dtype, max_steps) = narrow(request, accumulator, degree)?;
    let n = request.few?;
    if !dtype.is_float() {
        return (n <= max_steps.into()).then_some((dtype, 1.0));
    }
    let (most, divisor) = (i64::from(RUN * CHAINS), f64::from(RUN * CHAINS));
    let is_bf16 = request.inputs.contains(&DType::BF16);
    let may_leave_range = request.inputs.iter().any(|d| d.bytes() > 2);
    (n <= most && !may_leave_range).then_some((dtype, if is_bf16 { divisor } else { 1.0 }))
}

/// Fields that hold a sum.
pub(crate) struct Total {
    sum: Slot,
    low: Option<Slot>,
    /// Type of the sum.
    wide: DType,
    /// What the terms were divided by.
    divisor: f64,
}

impl Total {
    /// Adds the fields of the sum of a term, which `term` writes in the type that it is given.
    pub(crate) fn add(
        builder: &mut Builder,
        name: &str,
        term: &dyn Fn(&Builder, DType) -> Expr,
        degree: Degree,
        accumulator: Accumulator,
    ) -> Total {
        let wide = accumulator.dtype();
        if accumulator != Accumulator::Compensated
            && let Some((dtype, divisor)) = of_few(builder.request, accumulator, degree)
        {
            let lift = scaled(term(builder, dtype), 1.0 / divisor);
            let sum = builder.field(name, Expr::constant(0, dtype), lift);
            builder.combine(&sum, &sum.left + &sum.right);
            return Total { sum, low: None, wide, divisor };
        }
        let zero = Expr::constant(0, wide);
        let lift = term(builder, wide);
        let sum = builder.field(name, zero.clone(), lift);
        if accumulator != Accumulator::Compensated {
            builder.combine(&sum, &sum.left + &sum.right);
            if let Some((dtype, max_steps)) = narrow(builder.request, accumulator, degree) {
                let divisor = if dtype.is_float() { headroom(builder.request) } else { 1.0 };
                let lift = scaled(term(builder, dtype), 1.0 / divisor);
                let run = builder.run_field(&sum, Expr::constant(0, dtype), lift);
                let max_chains = if dtype.is_float() { chains(builder.request) } else { 1 };
                builder.chained_step(&sum, &run.left + &run.right, max_steps, max_chains);
                builder.close(&sum, &sum.left + &scaled(run.left.cast(wide), divisor));
                if dtype.is_float() && builder.request.inputs.iter().any(|d| d.bytes() > 2) {
                    // A run of elements near the end of the range may leave it where their sum does not.
                    builder.spoilt(Expr::call1(Intrinsic::IsFinite, sum.left.clone()).logical_not());
                }
            }
            return Total { sum, low: None, wide, divisor: 1.0 };
        }
        let low = builder.field(&format!("{name}_low"), zero.clone(), zero);
        let (total, lost) = two_sum(&sum.left, &sum.right);
        builder.combine(&sum, total);
        builder.combine(&low, &(&low.left + &low.right) + &lost);
        builder.step(&low, &low.left + &lost);
        if let Some((dtype, max_steps)) = narrow(builder.request, accumulator, degree) {
            let lift = term(builder, dtype);
            let run = builder.run_field(&sum, Expr::constant(0, dtype), lift);
            builder.run_step(&sum, &run.left + &run.right, max_steps);
            builder.run_step(&low, low.left.clone(), max_steps);
            let (total, lost) = two_sum(&sum.left, &run.left.cast(wide));
            builder.close(&sum, total);
            builder.close(&low, &low.left + &lost);
        } else {
            builder.run_step(&sum, &sum.left + &sum.right, RUN);
            builder.run_step(&low, low.left.clone(), RUN);
        }
        Total { sum, low: Some(low), wide, divisor: 1.0 }
    }

    /// The sum of integers less a product of two, `float64`: exact but for one rounding, where `float64`
    /// holds the factors, and a sum that wraps too.
    pub(crate) fn less(&self, a: &Expr, b: &Expr) -> Expr {
        let sum = self.sum.left.clone().cast(DType::F64);
        let Some(low) = &self.low else { return fma(&negative(a), b, &sum) };
        let product = a * b;
        let lost = fma(a, b, &negative(&product));
        &(&sum - &product) + &(&low.left - &lost)
    }

    /// The sum over a number of elements: in `float32` where few were summed in it, which is as exact as that, else in `float64`.
    pub(crate) fn over(&self, n: &Expr) -> Expr {
        let sum = &self.sum.left;
        if sum.dtype() == DType::F32 {
            // What is divided by comes first: the sum may be out of range, and the mean is not.
            return sum / &scaled(n.clone().cast(DType::F32), 1.0 / self.divisor);
        }
        &self.value().cast(DType::F64) / &n.clone().cast(DType::F64)
    }

    /// The sum of the state, in the accumulator's type.
    pub(crate) fn value(&self) -> Expr {
        let sum = &self.sum.left;
        match &self.low {
            None => scaled(sum.clone().cast(self.wide), self.divisor),
            Some(low) => compensated(sum, &low.left),
        }
    }
}

/// The square of the element, taken after widening: of integers of at most 16 bits, in 32 bits, which hold it.
pub(crate) fn square(builder: &Builder, dtype: DType) -> Expr {
    let x = builder.element(0);
    let holds = match x.dtype() {
        DType::I8 | DType::U8 | DType::I16 => DType::I32,
        DType::U16 => DType::U32,
        _ => dtype,
    };
    let x = x.cast(if dtype.bytes() <= 4 { dtype } else { holds });
    (&x * &x).cast(dtype)
}

/// A compensated sum. What was rounded off is NaN where the sum is not finite.
pub(crate) fn compensated(sum: &Expr, low: &Expr) -> Expr {
    Expr::select(Expr::call1(Intrinsic::IsFinite, sum.clone()), sum + low, sum.clone())
}

/// `a * b + c`, rounded once.
pub(crate) fn fma(a: &Expr, b: &Expr, c: &Expr) -> Expr {
    Expr::call(Intrinsic::Fma, vec![a.clone(), b.clone(), c.clone()])
}

/// `-a` of a float.
pub(crate) fn negative(a: &Expr) -> Expr {
    &Expr::float(0.0, a.dtype()) - a
}

/// The rounded sum and what rounding took off, exactly; six additions, no order of magnitudes assumed.
pub(crate) fn two_sum(a: &Expr, b: &Expr) -> (Expr, Expr) {
    let sum = a + b;
    let b_part = &sum - a;
    let a_part = &sum - &b_part;
    let lost = &(a - &a_part) + &(b - &b_part);
    (sum, lost)
}

/// Adds the field that counts elements, `int64`.
pub(crate) fn add_count(builder: &mut Builder) -> Slot {
    let count = builder.field("count", Expr::constant(0, DType::I64), Expr::constant(1, DType::I64));
    builder.combine(&count, &count.left + &count.right);
    let run = builder.run_field(&count, Expr::int(0), Expr::int(1));
    builder.run_step(&count, &run.left + &run.right, 1 << 30);
    builder.close(&count, &count.left + &run.left.cast(DType::I64));
    count
}

/// Magnitude of an element in `dtype`, taken after widening (contract N4). In an unsigned type the magnitude of a
/// negative element is that of the element, not of what it wraps to.
pub(crate) fn magnitude(element: Expr, dtype: DType) -> Expr {
    let wide = element.clone().cast(dtype);
    if !dtype.is_unsigned_int() {
        return Expr::call1(Intrinsic::Abs, wide);
    }
    if !element.dtype().is_signed_int() {
        return wide;
    }
    let negative = element.clone().lt(Expr::constant(0, element.dtype()));
    let negated = &Expr::constant(0, dtype) - &wide;
    Expr::select(negative, negated, wide)
}
