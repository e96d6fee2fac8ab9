//! Normalizations that a caller defines.

use std::sync::Arc;

use coulis_ir::{DType, Expr, Var};

use crate::catalogue::find;
use crate::entry::ReducerRequest;
use crate::normalization::{
    Along, Beside, Draft, Normalization, NormalizationError, NormalizationRequest, Parts,
};

/// The expression of an element's result: of the elements (one an input), the results of the statistics, and the arrays
/// beside them, all in the type in which the map computes.
pub type MapFn = dyn Fn(&[Expr], &[Expr], &[Expr]) -> Expr + Send + Sync;

/// A normalization of the caller's own: an expression over the element, finished statistics of its row, and further arrays.
#[derive(Clone)]
pub struct UserNormalization {
    /// Name of the result.
    pub name: String,
    /// Statistics of the catalogue that the map reads, in the order in which it gets their results.
    pub statistics: Vec<String>,
    /// Arrays beside the elements and the axes that they have; all are to be given.
    pub beside: Vec<(String, Along)>,
    /// The result of an element that a mask leaves out; `None` where that is mapped as others are.
    pub left_out: Option<f64>,
    /// The result of one element.
    pub map: Arc<MapFn>,
}

impl std::fmt::Debug for UserNormalization {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "UserNormalization({} of {})", self.name, self.statistics.join(", "))
    }
}

impl UserNormalization {
    /// The normalization for elements of these types; `beside` are the types of the arrays beside them, in order, `result` is as in
    /// [`NormalizationRequest`].
    pub fn build(
        &self,
        fold: &ReducerRequest,
        beside: &[DType],
        result: Option<DType>,
    ) -> Result<Normalization, NormalizationError> {
        let declared = self.beside.iter().zip(beside);
        let beside: Vec<Beside> = declared
            .map(|((name, along), dtype)| Beside { name: name.clone(), along: *along, dtype: *dtype })
            .collect();
        let given = beside.iter().map(|e| (e.name.clone(), e.dtype)).collect();
        let plain = NormalizationRequest::new(fold.clone());
        let request = NormalizationRequest { beside: given, result, ..plain };
        let parts = Parts::new(&self.name, &request, beside, &[]);
        let names: Vec<&str> = self.statistics.iter().map(String::as_str).collect();
        let (reducer, results) = parts.statistics(&names)?;
        let rows: Vec<(Var, Expr)> =
            results.into_iter().enumerate().map(|(i, e)| parts.row(&format!("s{i}"), e)).collect();
        let (row_vars, rows): (Vec<Var>, Vec<Expr>) = rows.into_iter().unzip();
        let elements: Vec<Expr> = (0..request.fold.inputs.len()).map(|i| parts.element(i)).collect();
        let statistics: Vec<Expr> = row_vars.iter().map(Var::expr).collect();
        let beside: Vec<Expr> = self.beside.iter().filter_map(|(name, _)| parts.beside(name)).collect();
        let value = (self.map)(&elements, &statistics, &beside);
        let made = parts.finish(Draft { reducer, rows, row_vars, value, staged: None, bound: None })?;
        let mut refuses_empty = None;
        for name in names {
            let entry = find(name)?;
            refuses_empty = refuses_empty.or(entry.has_no_value_of_none().then_some(entry.name));
        }
        Ok(Normalization { left_out: self.left_out, refuses_empty, ..made })
    }
}
