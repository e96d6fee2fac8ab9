//! The exact results of one output after the other, by whichever way reaches them.
//!
//! Rows of ordinary length are held in memory and answered by the catalogue's exact functions; long ones from moments, and
//! by the catalogue again where a statistic does not follow from those and the row still fits.

use coulis_io::{Array, Scalar};
use coulis_ir::NanPolicy;
use coulis_ir::eval::Value;
use coulis_reducers::exact::{Exact, Refused, reference_at};

use super::moments::moments_of;
use crate::error::Error;
use crate::reduce::{Call, array_info};
use crate::statistic::Statistic;

/// Rows longer than this are answered from moments where that is possible.
pub(crate) const LONG: i64 = 1 << 18;
/// Longest row that is held in memory.
const MAX_ROW: i64 = 1 << 24;

/// A statistic whose exact result is out of reach.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum OutOfReach {
    /// A reducer of the caller's own.
    #[error("`{name}` is a reducer of your own, whose exact answer nobody stated")]
    Own {
        /// Its name.
        name: String,
    },
    /// A long row, and a statistic or elements that moments do not reach.
    #[error(
        "`{name}` of a row of {len} elements cannot be verified: rows of more than {MAX_ROW} can for finite \
         elements, one input, no initial value and default accumulators, and not for `prod`"
    )]
    Long {
        /// The statistic.
        name: String,
        /// The row's length.
        len: i64,
    },
}

/// The exact results of a statistic, or why the row has none.
pub(crate) type Answer = Result<Vec<Exact>, Refused>;

/// The exact results of one output.
pub(crate) struct Answers {
    /// One a statistic: the number of elements that take part, the initial value among them, and the results.
    pub(crate) of: Vec<(usize, Answer)>,
}

/// The arrays of a call as rows.
pub(crate) struct Reference<'a> {
    call: &'a Call,
    arrays: Vec<(&'a Array, Vec<i64>)>,
    has_mask: bool,
    kept: Vec<(usize, i64)>,
    reduced: Vec<(usize, i64)>,
    /// See [`LONG`].
    long: i64,
}

impl<'a> Reference<'a> {
    /// Of a call on these arrays.
    pub(crate) fn new(call: &'a Call, inputs: &'a [Array], mask: Option<&'a Array>) -> Reference<'a> {
        let shape = inputs[0].shape();
        let axes = &call.spec.problem.axes;
        let of_role =
            |role: bool| (0..shape.len()).filter(move |a| axes.contains(a) == role).map(|a| (a, shape[a]));
        let arrays = inputs.iter().chain(mask).map(|array| (array, broadcast_strides(array, shape)));
        Reference {
            call,
            arrays: arrays.collect(),
            has_mask: mask.is_some(),
            kept: of_role(false).collect(),
            reduced: of_role(true).collect(),
            long: LONG,
        }
    }

    /// The same with another length from which on rows are long.
    #[cfg(test)]
    pub(crate) fn long_from(self, long: i64) -> Reference<'a> {
        Reference { long, ..self }
    }

    /// The views of an output's row, one an array.
    pub(crate) fn views(&self, output: usize) -> Result<Vec<Array>, Error> {
        let lengths: Vec<i64> = self.reduced.iter().map(|r| r.1).collect();
        let mut index = vec![0i64; self.kept.len()];
        let mut rest = output as i64;
        for (at, &(_, length)) in self.kept.iter().enumerate().rev() {
            index[at] = rest % length;
            rest /= length;
        }
        let mut views = Vec::new();
        for (array, strides) in &self.arrays {
            let start = self.kept.iter().zip(&index).map(|(&(axis, _), i)| i * strides[axis]).sum();
            let own: Vec<i64> = self.reduced.iter().map(|&(axis, _)| strides[axis]).collect();
            views.push(array.view(&lengths, &own, start)?);
        }
        Ok(views)
    }

    /// The elements of a row that the mask leaves, with their positions.
    fn elements(&self, views: &[Array]) -> Vec<(i64, Vec<Value>)> {
        let n = self.reduced.iter().map(|r| r.1).product::<i64>();
        let mut columns: Vec<_> = views.iter().map(Array::scalars).collect();
        let mut row = Vec::new();
        for position in 0..n {
            let mut element: Vec<Value> = columns.iter_mut().filter_map(Iterator::next).map(value).collect();
            let is_in = if self.has_mask { element.pop().is_some_and(Value::is_true) } else { true };
            if is_in {
                row.push((position, element));
            }
        }
        row
    }

    /// The exact results of an output.
    ///
    /// Errors inside: a statistic that cannot be answered for such a row.
    pub(crate) fn answers(&self, output: usize) -> Result<Result<Answers, OutOfReach>, Error> {
        let call = self.call;
        let len = call.spec.problem.reduce_len;
        let is_empty = self.reduced.iter().any(|r| r.1 == 0);
        let views = if is_empty { Vec::new() } else { self.views(output)? };
        let drops_nan = call.reducer_request.nan == NanPolicy::Ignore;
        let of_one = if self.has_mask { 2 } else { 1 };
        let moments = if len > self.long && views.len() == of_one {
            moments_of(&views, self.has_mask, drops_nan)
        } else {
            None
        };
        let mut elements: Option<Vec<(i64, Vec<Value>)>> = is_empty.then(Vec::new);
        let mut of = Vec::new();
        let parts = call.statistics.iter().zip(&call.product.parts);
        for ((statistic, part), init) in parts.zip(&call.inits) {
            let Statistic::Listed(entry) = statistic else {
                return Ok(Err(OutOfReach::Own { name: statistic.name().to_owned() }));
            };
            let own = coulis_reducers::ReducerRequest {
                inputs: part.reducer.input_dtypes(),
                ..call.reducer_request.clone()
            };
            let short_cut = moments.as_ref().filter(|_| init.is_none());
            if let Some((moments, answer)) = short_cut.and_then(|m| Some((m, entry.answer_from(m, &own)?))) {
                of.push((moments.n, Ok(answer)));
                continue;
            }
            if len > MAX_ROW {
                return Ok(Err(OutOfReach::Long { name: entry.name.to_owned(), len }));
            }
            let row = elements.get_or_insert_with(|| self.elements(&views));
            let n = row.len() + usize::from(init.is_some());
            let read = |(at, e): &(i64, Vec<Value>)| (*at, e[..entry.n_inputs].to_vec());
            // An initial value is one more element, which has no position.
            let row = row.iter().map(read).chain(init.map(|value| (-1, vec![value]))).collect();
            of.push((n, reference_at(entry, &own, row)));
        }
        Ok(Ok(Answers { of }))
    }
}

/// Strides of an array of a checked call, seen in the shape of its first input.
pub(crate) fn broadcast_strides(array: &Array, shape: &[i64]) -> Vec<i64> {
    array_info(array).broadcast_strides(shape).expect("the arrays of a checked call broadcast")
}

pub(crate) fn value(scalar: Scalar) -> Value {
    match scalar {
        Scalar::Bool(v) => Value::Int(i128::from(v)),
        Scalar::Int(v) => Value::Int(i128::from(v)),
        Scalar::UInt(v) => Value::Int(i128::from(v)),
        Scalar::Float(v) => Value::Float(v),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reduce::{array_info, check};
    use crate::request::Request;

    fn call(array: &Array, request: &Request) -> Call {
        check(&[array_info(array)], request).unwrap()
    }

    #[test]
    fn a_row_is_gathered_by_its_output() {
        let values: Vec<f32> = (0..24).map(|v| v as f32).collect();
        let array = [Array::from_slice(&[2, 3, 4], &values).unwrap()];
        let of = |axes: &[i64], at| -> Vec<f64> {
            let call = call(&array[0], &Request::new(&["sum"]).over(axes));
            let reference = Reference::new(&call, &array, None);
            let views = reference.views(at).unwrap();
            reference.elements(&views).iter().map(|(_, e)| e[0].as_f64()).collect()
        };
        assert_eq!(of(&[1], 5), [13.0, 17.0, 21.0]);
        assert_eq!(of(&[0, 2], 2), [8.0, 9.0, 10.0, 11.0, 20.0, 21.0, 22.0, 23.0]);
    }

    #[test]
    fn long_rows_are_answered_as_short_ones_are_also_through_masks() {
        let values: Vec<f32> = (0..600).map(|v| ((v * 37) % 101) as f32 - 50.5).collect();
        let array = [Array::from_slice(&[20, 30], &values).unwrap()];
        let bits: Vec<bool> = (0..600).map(|v| v % 7 != 0).collect();
        let mask = Array::from_bools(&[20, 30], &bits).unwrap();
        let mut request =
            Request::new(&["sum", "mean", "var", "min", "argmax", "logsumexp", "maxloc", "prod"]);
        request.ddof = 1.0;
        for axes in [&[0][..], &[1], &[0, 1]] {
            let mut request = request.clone().over(axes);
            for masked in [false, true] {
                request.where_ = masked.then(|| mask.clone());
                let call = call(&array[0], &request);
                let where_ = request.where_.as_ref();
                let short = Reference::new(&call, &array, where_);
                let long = Reference::new(&call, &array, where_).long_from(1);
                for output in 0..call.spec.problem.n_outputs as usize {
                    let of = |reference: &Reference<'_>| reference.answers(output).unwrap().unwrap().of;
                    for ((n, a), (m, b)) in of(&short).into_iter().zip(of(&long)) {
                        assert_eq!(n, m);
                        for (a, b) in a.unwrap().iter().zip(&b.unwrap()) {
                            let (x, y) = (a.value.as_f64(), b.value.as_f64());
                            let close = a.value.same(b.value) || (x - y).abs() <= 1e-14 * x.abs();
                            assert!(close, "{axes:?} {masked} {x} {y}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn rows_that_fit_nowhere_are_out_of_reach_where_moments_do_not_answer() {
        let one = Array::from_slice(&[1], &[2.0f32]).unwrap();
        let row = [one.view(&[MAX_ROW + 1], &[0], 0).unwrap()];
        let call = call(&row[0], &Request::new(&["prod"]));
        let reference = Reference::new(&call, &row, None).long_from(i64::MAX);
        let found = reference.answers(0).unwrap().err().unwrap();
        assert_eq!(found, OutOfReach::Long { name: "prod".to_owned(), len: MAX_ROW + 1 });
    }
}
