//! Softmax.

use coulis_ir::{DType, Expr, Field, Intrinsic, Lambda, NanPolicy, Reducer, Var};

use crate::catalogue::logsumexp;
use crate::exact::MappedRow;
use crate::exact::mapped_row::sum;
use crate::normalization::{Draft, NormalizationEntry, NormalizationError, Parts};
use crate::shape::spread::is_wide;
use crate::staged::Staged;

/// `exp(x) / sum(exp(x))` without overflow.
pub static ENTRY: NormalizationEntry = NormalizationEntry {
    name: "softmax",
    summary: "Exponentials of the elements over the sum of the row's exponentials.",
    details: "Computed as `exp(x - shift) / sum(exp(x - shift))`, shift and sum being the state of `logsumexp`: an element \
              that no other exceeds by more than 2, or 2 more for each time that parts of the row were brought together; \
              on a CPU, of rows and columns that near caches hold, the greatest and a sum of their own, so that each exponential is taken once. \
              A row that holds NaN or +inf, or nothing but -inf, gives NaN. An element that `where` leaves out gives 0, whatever else its row holds. \
              Integers of 64 bits are subtracted before anything is rounded. Where the result is scaled or of `float64`, \
              so is the exponential: what `float32` does not hold is not 0 then. The error is at most \
              `eps * (40 + 2 * |x - shift|)` times the result, with `eps` of `float32` for elements of at most 32 \
              bits, else of `float64`; and what results below the least normal number are rounded by.",
    parameters: &[],
    beside: &[],
    takes_ddof: false,
    left_out: Some(0.0),
    example: ">>> import coulis, numpy as np\n\
              >>> coulis.softmax(np.array([[0.0, 0.0, -np.inf]]))\n\
              array([[0.5, 0.5, 0. ]])",
    make,
    exact,
};

/// Bound of the relative error where `x` is the shift: of the sum 26 units, of the exponential 2, or 4 as a
/// square, of the inverse, of the products and of what is brought together at the end less than 10.
pub(super) const FACTOR: f64 = 40.0;

/// Whether a row's exponentials have no quotients: it holds +inf, or nothing but -inf. The shift tells it, or of -inf the sum,
/// where runs kept the shift finite.
pub(super) fn no_quotient(shift: &Expr, total: &Expr) -> Expr {
    let is_inf = |e: &Expr| Expr::call1(Intrinsic::IsInf, e.clone());
    let is_empty = total.clone().equal(Expr::constant(0, total.dtype()));
    let of_sum = is_inf(total).or(is_empty);
    if shift.dtype().is_float() { is_inf(shift).or(of_sum) } else { of_sum }
}

/// A row's greatest element, and the sum of the exponentials of what elements are less than it; `None` where a row's
/// exponentials have no quotients.
pub(super) fn exact_shift_and_sum(row: &MappedRow) -> Option<(f64, f64)> {
    let max = row.folded.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let is_nan = row.folded.iter().any(|v| v.is_nan());
    (!is_nan && max.is_finite()).then(|| (max, sum(row.folded.iter().map(|v| (v - max).exp()))))
}

fn exact(row: &MappedRow) -> Vec<f64> {
    let of_row = exact_shift_and_sum(row);
    let of = |v: &f64| of_row.map_or(f64::NAN, |(max, total)| (v - max).exp() / total);
    row.elements.iter().map(of).collect()
}

/// Each exponential is taken once: it is kept, summed with the others, and divided by their sum.
const FOLDS: TwoFolds = TwoFolds {
    kept: logsumexp::capped_exp,
    absent: 0.0,
    exponential: Expr::clone,
    of_row: ("scale", |total| &Expr::constant(1, total.dtype()) / total),
    value: |e, scale| e * scale,
};

fn make(parts: &Parts) -> Result<Draft, NormalizationError> {
    let (reducer, shift, total) = logsumexp::shift_and_sum(&parts.request.fold)?;
    let one = Expr::constant(1, total.dtype());
    let nan = Expr::float(f64::NAN, total.dtype());
    let scale = Expr::select(no_quotient(&shift, &total), nan, &one / &total);
    let (shift, of_row, d) = parts.less("shift", shift);
    let (scale, scale_of_row) = parts.row("scale", scale);
    let value = scaled_exp(parts, &d, &scale.expr().cast(parts.result()));
    let more = Expr::call1(Intrinsic::Abs, d) * Expr::float(0.05, parts.result());
    let bound = &value * &(&Expr::constant(1, parts.result()) + &more);
    Ok(Draft {
        reducer,
        rows: vec![of_row, scale_of_row],
        row_vars: vec![shift, scale],
        value,
        staged: FOLDS.staged(parts)?,
        bound: Some((FACTOR, bound)),
    })
}

/// What two folds make of a row: the first finds its greatest element, the second sums the exponentials of what elements are less
/// than it.
pub(super) struct TwoFolds {
    /// What is kept of an element, of what it is less than the greatest.
    pub(super) kept: fn(&Expr) -> Expr,
    /// What is kept of one that is left out, whose exponential adds nothing to those of others.
    pub(super) absent: f64,
    /// Its exponential, of what is kept of it.
    pub(super) exponential: fn(&Expr) -> Expr,
    /// What the map reads of the row, and its name, of the sum.
    pub(super) of_row: (&'static str, fn(&Expr) -> Expr),
    /// The result, of what is kept of an element and what is read of its row.
    pub(super) value: fn(&Expr, &Expr) -> Expr,
}

impl TwoFolds {
    /// No exponential is more than 1, and that of the greatest is: a row whose greatest is infinite has a NaN among its differences.
    /// Integers of 64 bits, and results that `float64` is asked for, are left to the one fold.
    pub(super) fn staged(self, parts: &Parts) -> Result<Option<Staged>, NormalizationError> {
        let request = &parts.request.fold;
        let keeps_all = request.nan == NanPolicy::Propagate && !parts.request.wide;
        if request.twice || !keeps_all || is_wide(request.inputs[0]) {
            return Ok(None);
        }
        let dtype = parts.compute();
        let (x, shift) = (Var::new("x", request.inputs[0]), Var::new("shift", dtype));
        let kept = (self.kept)(&(&x.expr().cast(dtype) - &shift.expr()));
        let (name, of_row) = self.of_row;
        let [e, row] = ["e", name].map(|name| Var::new(name, dtype));
        let exponential = Lambda { body: vec![(self.exponential)(&e.expr())], params: vec![e.clone()] };
        let (fold, total) = logsumexp::sum_of_exponentials(request, dtype)?;
        let finish = Lambda { body: vec![of_row(&total).cast(dtype)], ..fold.finish.clone() };
        let results = vec![Field { name: name.to_owned(), dtype }];
        let value = (self.value)(&e.expr(), &row.expr());
        Ok(Some(Staged {
            first: logsumexp::greatest(request, dtype),
            kept: Lambda { params: vec![x, shift], body: vec![kept] },
            absent: self.absent,
            second: Reducer { finish, results, ..fold.of_mapped(&exponential) },
            map: Lambda { params: vec![e, row], body: vec![value] },
        }))
    }
}

/// `exp(d) * scale`, in the type of the result: a quotient that `float32` holds to a few bits, if at all, has all bits of
/// `float64`. Of narrow elements on machines with threads it is a square: of `exp(d / 2)`, which is
/// normal for all `d` whose exponential is more than zero, so that such a machine's power of two, of a
/// product with `1 / ln 4`, does as it comes. The factors are multiplied so that only the last product may be
/// subnormal. For each unit of `d` the product's rounding adds 0.6 units, and the power's 2 units count
/// twice.
fn scaled_exp(parts: &Parts, d: &Expr, scale: &Expr) -> Expr {
    let request = &parts.request.fold;
    if !request.twice {
        // Where `d` is +inf the scale is NaN.
        return &logsumexp::capped_exp(d) * scale;
    }
    if !(parts.result() == DType::F32 && logsumexp::are_narrow(request)) {
        return &Expr::call1(Intrinsic::Exp, d.clone()) * scale;
    }
    let half = Expr::float(std::f64::consts::LOG2_E / 2.0, DType::F32);
    let root = Expr::call1(Intrinsic::Exp2Ftz, d * &half);
    &(&root * scale) * &root
}

#[cfg(test)]
mod tests {
    use coulis_ir::Node;
    use coulis_ir::visit::for_each_expr;

    use super::*;
    use crate::entry::ReducerRequest;
    use crate::normalization::NormalizationRequest;

    #[test]
    fn exponentials_of_narrow_elements_are_squares_where_powers_of_two_are_single_operations() {
        let (wide, narrow) = (ReducerRequest::new(&[DType::F32]), ReducerRequest::new(&[DType::BF16]));
        for (fold, wanted) in [
            (wide.clone(), Intrinsic::Exp),
            (narrow.clone(), Intrinsic::Exp),
            (wide.with_two_walks(), Intrinsic::Exp),
            (narrow.clone().with_two_walks(), Intrinsic::Exp2Ftz),
            (ReducerRequest { acc: Some(DType::F64), ..narrow.with_two_walks() }, Intrinsic::Exp),
        ] {
            let request = NormalizationRequest::new(fold);
            let normalization = ENTRY.build(&request).expect("a normalization");
            let mut found = Vec::new();
            for_each_expr(&normalization.map.body[0], &mut |e: &Expr| match e.node() {
                Node::Call(intrinsic, _) if !found.contains(intrinsic) => found.push(*intrinsic),
                _ => {}
            });
            assert_eq!(found, [wanted]);
        }
    }
}
