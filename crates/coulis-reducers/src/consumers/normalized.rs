//! What the norms share: elements less an offset, times a factor of the row, times a weight, plus a bias.

use coulis_ir::{DType, ErrorBound, Expr, Intrinsic, Reducer, Var};

use crate::consumer::{ConsumerError, Draft, Parameter, Parts};

/// The number that norms add under the root.
pub(super) const fn eps(default: Option<f64>) -> Parameter {
    Parameter {
        name: "eps",
        default,
        meaning: "is added under the root, so that constant rows have a quotient",
    }
}

/// Bound of the result's own operations and of the mean, in units of the scale.
const OF_MEAN: f64 = 40.0;

/// The map of a row whose elements have this offset, if any, and this mean square about it.
fn normalized(
    parts: &Parts,
    reducer: Reducer,
    offset: Option<Expr>,
    square: Expr,
    square_error: ErrorBound,
) -> Draft {
    let compute = parts.compute();
    let under_root = square.cast(DType::F64) + Expr::float(parts.parameter("eps"), DType::F64);
    let root = Expr::call1(Intrinsic::Sqrt, under_root);
    let (factor, factor_of_row) = parts.row("factor", &Expr::constant(1, DType::F64) / &root);
    let x = parts.element(0);
    let size = |e: &Expr| Expr::call1(Intrinsic::Abs, e.clone());
    let mut rows: Vec<(Var, Expr)> = Vec::new();
    let (deviation, mut scale) = match offset {
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
    scale = scale * factor.expr() + Expr::constant(1, compute);
    let mut value = &deviation * &factor.expr();
    rows.push((factor, factor_of_row));
    if let Some(weight) = parts.extra("weight") {
        value = &value * &weight;
        scale = scale * size(&weight);
    }
    if let Some(bias) = parts.extra("bias") {
        value = &value + &bias;
        scale = scale + size(&bias);
    }
    let of_square = match square_error {
        ErrorBound::Terms { factor, .. } | ErrorBound::Relative { factor, .. } => factor,
        ErrorBound::Exact | ErrorBound::Length { .. } => 0.0,
    };
    let (row_vars, rows) = rows.into_iter().unzip();
    Draft { reducer, rows, row_vars, value, bound: Some((OF_MEAN + of_square / 2.0, scale)) }
}

/// The map of a row less its mean, over its standard deviation.
pub(super) fn about_mean(parts: &Parts) -> Result<Draft, ConsumerError> {
    let (reducer, results) = parts.statistics(&["mean", "var"])?;
    let (variance, _) = parts.statistics(&["var"])?;
    let [mean, square] = [results[0].clone(), results[1].clone()];
    Ok(normalized(parts, reducer, Some(mean), square, variance.error))
}

/// The map of a row over the root of its mean square.
pub(super) fn about_zero(parts: &Parts) -> Result<Draft, ConsumerError> {
    let (reducer, results) = parts.statistics(&["meansq"])?;
    let error = reducer.error;
    Ok(normalized(parts, reducer, None, results[0].clone(), error))
}
