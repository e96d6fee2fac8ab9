//! A normalization in two folds, of what is kept of each element.
//!
//! One fold that finds what the map takes off the elements while it sums what is left of them has to correct its sum as that moves,
//! and to compute of each element what the map then computes again. In two folds nothing is corrected, and that is computed once:
//! the first finds what is taken off, each element is
//! made into a value that is kept, the second folds these values, and the map reads them in place of the elements. That
//! is one more walk over a row, and pays where a row and what is kept of it are in a near cache, and computing it
//! takes longer than to read it, or corrections do. Source: as of [`crate::normalization`]; the "safe softmax" of M. Milakov and N. Gimelshein.

use coulis_ir::eval::{EvalError, Value, eval_expr, eval_lambda};
use coulis_ir::{Lambda, Reducer};

/// The two folds and what stands between and behind them. Its results have the error bound of the normalization.
#[derive(Clone, Debug)]
pub struct Staged {
    /// The fold of the elements. What its `finish` gives is what `kept` reads of the row.
    pub first: Reducer,
    /// What is kept of an element: one value. Parameters: the elements of the inputs, what the first fold gives.
    pub kept: Lambda,
    /// The fold of what is kept. What its `finish` gives is what the map reads of the row.
    pub second: Reducer,
    /// What is kept of an element that a mask leaves out, as something that adds nothing to the second fold.
    pub absent: f64,
    /// The result of one element. Parameters: what is kept of it, what the second fold gives, the arrays beside the elements.
    pub map: Lambda,
}

impl Staged {
    /// The results of a row by this definition, evaluated expression by expression.
    pub fn evaluate(&self, elements: &[Value], beside: &[Vec<Value>]) -> Result<Vec<f64>, EvalError> {
        let of_row = fold(&self.first, elements)?;
        let kept = |x: &Value| -> Result<Value, EvalError> {
            Ok(eval_lambda(&self.kept, &[&[*x], &of_row[..]].concat())?[0])
        };
        let kept: Vec<Value> = elements.iter().map(kept).collect::<Result<_, _>>()?;
        let of_row = fold(&self.second, &kept)?;
        let result = |(at, kept): (usize, &Value)| {
            let beside = beside.iter().map(|values| values[at]);
            let args: Vec<Value> = [*kept].into_iter().chain(of_row.iter().copied()).chain(beside).collect();
            Ok(eval_lambda(&self.map, &args)?[0].as_f64())
        };
        kept.iter().enumerate().map(result).collect()
    }
}

/// What a reducer gives of elements that are all folded.
fn fold(reducer: &Reducer, elements: &[Value]) -> Result<Vec<Value>, EvalError> {
    let start = reducer.identity.iter().map(|e| eval_expr(e, &mut Default::default()));
    let mut state: Vec<Value> = start.collect::<Result<_, _>>()?;
    for (position, element) in elements.iter().enumerate() {
        let lifted = eval_lambda(&reducer.lift, &[*element, Value::Int(position as i128)])?;
        state = eval_lambda(&reducer.combine, &[state, lifted].concat())?;
    }
    eval_lambda(&reducer.finish, &state)
}

#[cfg(test)]
mod tests {
    use coulis_ir::DType;

    use crate::{NORMALIZATIONS, NormalizationRequest, ReducerRequest};
    use coulis_ir::eval::Value;

    const INF: f64 = f64::INFINITY;

    /// Rows as they come, and those whose exponentials or differences leave the range of their type.
    fn rows() -> Vec<Vec<f64>> {
        let even: Vec<f64> = (0..100).map(|i| f64::from(i * 37 % 100) / 10.0 - 5.0).collect();
        let with = |value: f64| even.iter().copied().chain([value]).collect::<Vec<f64>>();
        vec![
            vec![0.0; 40],
            even.clone(),
            (0..60).map(|i| -2.0 * f64::from(i)).collect(),
            vec![0.0, -87.0, -100.0, -103.0, -104.0, -700.0, -745.0],
            vec![-3e38, 3e38, 0.0],
            vec![-3e38, -3e38],
            vec![1.0, -INF, 2.0],
            vec![-INF, -INF],
            with(INF),
            with(-INF),
            with(f64::NAN),
            vec![f64::NAN, -INF],
            vec![INF, INF, -INF],
            vec![1.5],
        ]
    }

    #[test]
    fn two_folds_give_what_is_stated_of_one() {
        let mut staged_names = Vec::new();
        for entry in NORMALIZATIONS {
            for dtype in DType::ALL {
                let request = NormalizationRequest::new(ReducerRequest::new(&[dtype]));
                let normalization = entry.build(&request).unwrap();
                let (Some(staged), Some(bound)) = (&normalization.staged, &normalization.bound) else {
                    continue;
                };
                staged_names.push(entry.name);
                for row in rows() {
                    let elements: Vec<Value> = row.iter().map(|v| Value::Float(*v).cast(dtype)).collect();
                    let rounded: Vec<f64> = elements.iter().map(|v| v.as_f64()).collect();
                    let exact = entry.reference(&request, &rounded, &[], &|_| true);
                    let found = staged.evaluate(&elements, &[]).unwrap();
                    let scales = normalization.evaluate(&elements, &[], &|_| true).unwrap();
                    // What results below the least normal number are rounded by, as an exponential and as a product.
                    let least = if bound.eps > 1e-10 { 2f64.powi(-148) } else { 2f64.powi(-1073) };
                    for ((found, exact), (_, scale)) in found.iter().zip(&exact).zip(&scales) {
                        let allowed = bound.factor * bound.eps * scale + least;
                        let same = found == exact || found.is_nan() && exact.is_nan();
                        let is_right = same || (found - exact).abs() <= allowed;
                        assert!(is_right, "{} of {dtype}, {row:?}: {found:e}, wanted {exact:e}", entry.name);
                    }
                }
            }
        }
        staged_names.dedup();
        assert_eq!(staged_names, ["softmax", "log_softmax"]);
    }

    #[test]
    fn wide_results_and_ignored_nan_are_left_to_one_fold() {
        for name in ["softmax", "log_softmax"] {
            are_left_to_one_fold(name);
        }
    }

    fn are_left_to_one_fold(name: &str) {
        let entry = crate::find_normalization(name).unwrap();
        let is_staged = |fold: ReducerRequest, wide: bool| {
            let request = NormalizationRequest { wide, ..NormalizationRequest::new(fold) };
            entry.build(&request).unwrap().staged.is_some()
        };
        let plain = ReducerRequest::new(&[DType::F32]);
        let ignoring = ReducerRequest { nan: coulis_ir::NanPolicy::Ignore, ..plain.clone() };
        assert!(is_staged(plain.clone(), false));
        assert!(!is_staged(plain.clone(), true));
        assert!(!is_staged(ignoring, false));
        assert!(!is_staged(plain.with_two_walks(), false));
        assert!(!is_staged(ReducerRequest::new(&[DType::I64]), false));
    }
}
