//! What the norms share: elements less an offset, times a factor of the row, times a weight, plus a bias.

use coulis_ir::{DType, ErrorBound, Expr, Intrinsic, Reducer, Var};

use crate::exact::MappedRow;
use crate::normalization::{Draft, NormalizationError, Parameter, Parts};
use crate::shape::total::{fma, negative, scaled};

/// The number that norms add under the root.
pub(super) const fn eps(default: Option<f64>) -> Parameter {
    Parameter { name: "eps", default, meaning: "added under the root, so that constant rows have a quotient" }
}

/// Bound of the result's own operations and of the mean, in units of the scale.
const OF_MEAN: f64 = 40.0;

/// Roots below which a row is scaled up, as the square of a root, and what it is multiplied by then: so that squares do not
/// underflow, and neither the quotient by the root overflows nor the mean loses digits. What `float32` holds has squares in
/// `float64`.
struct Scaling {
    below: f64,
    by: f64,
}

/// The scaling of rows in a type in which maps compute.
fn scaling(compute: DType) -> Scaling {
    let power = |exponent: i32| 2f64.powi(exponent);
    if compute == DType::F32 {
        Scaling { below: power(-200), by: power(100) }
    } else {
        Scaling { below: power(-1000), by: power(600) }
    }
}

/// What elements are multiplied by where they need not be scaled up: a power of two by which the difference
/// of any two of them is finite, and the inverse of the greatest root is a normal number. Narrower elements
/// than `float32` and `bfloat16` are far from the end of the range in which maps compute, and squares of
/// `float64` leave it first.
fn headroom(parts: &Parts) -> f64 {
    let reaches = matches!(parts.request.fold.inputs[0], DType::F32 | DType::BF16);
    if reaches && parts.compute() == DType::F32 { 0.25 } else { 1.0 }
}

/// What a row's elements are multiplied by.
enum By {
    /// The same for all rows.
    All(f64),
    /// What rows need.
    Row(Expr),
}

/// What a row's elements are multiplied by; what is taken off them then, if anything; and the mean square
/// about that, all of it in `float64` and scaled.
struct Moments {
    by: By,
    offset: Option<Expr>,
    under_root: Expr,
}

impl Moments {
    /// Of the mean, if it is taken off, and the mean square; and of the same two of the elements scaled up.
    fn of(parts: &Parts, plain: (Option<Expr>, Expr), beside: Option<(Option<Expr>, Expr)>) -> Moments {
        let float = |v: f64| Expr::float(v, DType::F64);
        let wide = |e: Expr| e.cast(DType::F64);
        let eps = parts.parameter("eps");
        let Scaling { below, by } = scaling(parts.compute());
        let (offset, square) = (plain.0.map(wide), wide(plain.1));
        let under_root = &square + &float(eps);
        // Nothing is taken off that a difference could overflow by.
        let room = if offset.is_some() { headroom(parts) } else { 1.0 };
        if !is_scaled(parts) {
            let offset = offset.map(|offset| scaled(offset, room));
            return Moments { by: By::All(room), offset, under_root: scaled(under_root, room * room) };
        }
        if let Some((scaled_offset, scaled_square)) = beside {
            let scaled_square = wide(scaled_square);
            let fits = Expr::call1(Intrinsic::IsFinite, scaled_square.clone());
            let is_small = square.lt(float(below)).and(fits);
            let choose = |scaled: Expr, plain: Expr| Expr::select(is_small.clone(), scaled, plain);
            let offset = offset.zip(scaled_offset).map(|(plain, scaled)| choose(wide(scaled), plain));
            let under_root = choose(&scaled_square + &float(eps * by * by), under_root);
            return Moments { by: By::Row(choose(float(by), float(1.0))), offset, under_root };
        }
        // A row with a mean that is not small has deviations that are not, unless there are none.
        let mut is_small = under_root.clone().lt(float(below));
        if let Some(offset) = &offset {
            let size = Expr::call1(Intrinsic::Abs, offset.clone());
            is_small = is_small.and(size.lt(float(1.0)));
        }
        let by = Expr::select(is_small, float(by), float(room));
        let under_root = &(&under_root * &by) * &by;
        Moments { offset: offset.map(|offset| &offset * &by), under_root, by: By::Row(by) }
    }
}

/// Whether `eps` is so small that rows of small elements are to be scaled up.
fn is_scaled(parts: &Parts) -> bool {
    parts.parameter("eps") < scaling(parts.compute()).below
}

/// Statistics of a row, folded together.
struct Folded {
    reducer: Reducer,
    /// Of the elements as they are.
    plain: Vec<Expr>,
    /// Of the elements scaled up, where these are folded too.
    scaled: Option<Vec<Expr>>,
}

impl Folded {
    fn new(parts: &Parts, names: &[&str]) -> Result<Folded, NormalizationError> {
        // Squares of narrower elements do not underflow in `float64`.
        if !is_scaled(parts) || parts.request.fold.inputs != [DType::F64] {
            let (reducer, plain) = parts.statistics(names)?;
            return Ok(Folded { reducer, plain, scaled: None });
        }
        let (reducer, mut plain) = parts.statistics_beside_scaled(names, scaling(DType::F64).by)?;
        let scaled = Some(plain.split_off(names.len()));
        Ok(Folded { reducer, plain, scaled })
    }
}

/// The map of a row of these moments.
fn normalized(parts: &Parts, reducer: Reducer, moments: Moments, square_error: ErrorBound) -> Draft {
    let compute = parts.compute();
    let one = Expr::constant(1, DType::F64);
    let mut factor = &one / &Expr::call1(Intrinsic::Sqrt, moments.under_root);
    let rows_differ = matches!(moments.by, By::Row(_));
    if compute == DType::F32 && rows_differ {
        // Of a root that is not 0 it is finite.
        let most = Expr::float(f64::from(f32::MAX), DType::F64);
        let is_beyond = factor.clone().gt(most.clone()).and(Expr::call1(Intrinsic::IsFinite, factor.clone()));
        factor = Expr::select(is_beyond, most, factor);
    }
    if rows_differ {
        // Nothing is added under the root, or next to nothing. Of equal elements the mean is not always one of them, and
        // what is left of one would be infinite in one row and NaN in another.
        let nan = Expr::float(f64::NAN, DType::F64);
        factor = Expr::select(Expr::call1(Intrinsic::IsFinite, factor.clone()), factor, nan);
    }
    let (factor, factor_of_row) = parts.row("factor", factor);
    let size = |e: &Expr| Expr::call1(Intrinsic::Abs, e.clone());
    let mut rows: Vec<(Var, Expr)> = Vec::new();
    let own = parts.element(0);
    let (x, all) = match moments.by {
        By::All(by) => (scaled(own.clone(), by), by),
        By::Row(by) => {
            let (by, by_of_row) = parts.row("by", by);
            let x = &own * &by.expr();
            rows.push((by, by_of_row));
            (x, 1.0)
        }
    };
    let (deviation, scale) = match moments.offset {
        Some(offset) if all != 1.0 => {
            // The multiplication is part of the subtraction.
            let (less, less_of_row) = parts.row("less", negative(&offset));
            let both = size(&x) + size(&less.expr());
            let deviation = fma(&own, &Expr::float(all, compute), &less.expr());
            rows.push((less, less_of_row));
            (deviation, both)
        }
        Some(offset) => {
            let (mean, mean_of_row) = parts.row("mean", offset);
            let both = size(&x) + size(&mean.expr());
            let deviation = &x - &mean.expr();
            rows.push((mean, mean_of_row));
            (deviation, both)
        }
        None => (x.clone(), size(&x)),
    };
    // The mean errs in proportion to the mean magnitude, which is at most that of the mean and the deviation together.
    let scale = scale * factor.expr() + Expr::constant(1, compute);
    let mut value = (&deviation * &factor.expr()).cast(parts.result());
    let mut scale = scale.cast(parts.result());
    rows.push((factor, factor_of_row));
    if let Some(weight) = parts.beside("weight") {
        value = &value * &weight;
        scale = scale * size(&weight);
    }
    if let Some(bias) = parts.beside("bias") {
        value = &value + &bias;
        scale = scale + size(&bias);
    }
    let of_square = match square_error {
        ErrorBound::Terms { factor, .. } | ErrorBound::Relative { factor, .. } => factor,
        ErrorBound::Exact | ErrorBound::Length { .. } => 0.0,
    };
    let (row_vars, rows) = rows.into_iter().unzip();
    Draft { reducer, rows, row_vars, value, staged: None, bound: Some((OF_MEAN + of_square / 2.0, scale)) }
}

/// The map of a row less its mean, over its standard deviation.
pub(super) fn about_mean(parts: &Parts) -> Result<Draft, NormalizationError> {
    let Folded { reducer, plain, scaled } = Folded::new(parts, &["mean", "var"])?;
    let (variance, _) = parts.statistics(&["var"])?;
    let pair = |results: Vec<Expr>| (Some(results[0].clone()), results[1].clone());
    let moments = Moments::of(parts, pair(plain), scaled.map(pair));
    Ok(normalized(parts, reducer, moments, variance.error))
}

/// The map of a row over the root of its mean square.
pub(super) fn about_zero(parts: &Parts) -> Result<Draft, NormalizationError> {
    let Folded { reducer, plain, scaled } = Folded::new(parts, &["meansq"])?;
    let (square, _) = parts.statistics(&["meansq"])?;
    let alone = |results: Vec<Expr>| (None, results[0].clone());
    let moments = Moments::of(parts, alone(plain), scaled.map(alone));
    Ok(normalized(parts, reducer, moments, square.error))
}

/// What [`about_mean`] computes, by definition.
pub(super) fn exact_about_mean(row: &MappedRow) -> Vec<f64> {
    let mean = row.mean(|v| v);
    let n = row.folded.len() as f64;
    let variance = row.mean(|v| (v - mean) * (v - mean)) * (n / (n - row.ddof));
    exact_normalized(row, mean, variance)
}

/// What [`about_zero`] computes, by definition.
pub(super) fn exact_about_zero(row: &MappedRow) -> Vec<f64> {
    exact_normalized(row, 0.0, row.mean(|v| v * v))
}

fn exact_normalized(row: &MappedRow, offset: f64, square: f64) -> Vec<f64> {
    let root = (square + row.parameter("eps")).sqrt();
    let of = |(at, v): (usize, &f64)| {
        (v - offset) / root * row.beside("weight", at, 1.0) + row.beside("bias", at, 0.0)
    };
    row.elements.iter().enumerate().map(of).collect()
}
