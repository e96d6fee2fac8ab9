//! Results of a normalization against its own definition in `float64`, evaluated expression by expression: no plan,
//! no kernel, no vectors. A result is right if it is the rounding of a number within the normalization's bound.

use coulis_io::{AlignedBytes, Array};
use coulis_ir::eval::Value;
use coulis_reducers::Normalization;

use super::reference::Verdict;
use crate::error::Error;
use crate::reduce::Prepared;
use crate::verify::{Reference, in_text, is_near, value};

/// Elements of rows that are compared, and rows at least.
const BUDGET: i64 = 1 << 16;
const FEWEST_ROWS: usize = 2;

/// Compares evenly spread rows of a launch's result.
pub(super) fn check(
    prepared: &Prepared,
    normalization: &Normalization,
    input: &Array,
    outputs: Vec<AlignedBytes>,
) -> Result<Verdict, Error> {
    let call = prepared.call();
    let (problem, spec) = (&call.spec.problem, &call.spec.outputs[0]);
    let Some(bound) = &normalization.bound else {
        return Ok(Verdict::OutOfReach {
            why: format!("`{}` states no bound of its error", normalization.name),
        });
    };
    let [bytes] = <[AlignedBytes; 1]>::try_from(outputs)
        .map_err(|all| Error::bug("bench/map", format!("{} results of a normalization", all.len())))?;
    let arrays = [input.clone(), prepared.result(spec.dtype, bytes)?];
    let rows = Reference::new(call, &arrays, None);
    let exact = prepared.in_float64()?;
    let n_rows = problem.n_outputs as usize;
    let budget = usize::try_from(BUDGET / problem.reduce_len.max(1)).unwrap_or(FEWEST_ROWS);
    let n_checked = budget.max(FEWEST_ROWS).min(n_rows);
    for nth in 0..n_checked {
        let row = if n_checked == 1 { 0 } else { nth * (n_rows - 1) / (n_checked - 1) };
        let views = rows.views(row)?;
        let elements: Vec<Value> = views[0].scalars().map(value).collect();
        let wanted = exact
            .evaluate(&elements, &[], &|_| true)
            .map_err(|why| Error::bug("bench/map", why.to_string()))?;
        for (at, (found, (want, scale))) in views[1].scalars().map(value).zip(wanted).enumerate() {
            let allowed = bound.factor * bound.eps * scale;
            if !is_near(found, want, allowed, spec.dtype) {
                let why = format!(
                    "found {}, exact {want:e}, allowed distance {allowed:e} before rounding, element {at} of its row",
                    in_text(found)
                );
                return Ok(Verdict::Refuted { result: normalization.name.clone(), output: row, why });
            }
        }
    }
    Ok(Verdict::Verified { checked: n_checked, of: n_rows })
}
