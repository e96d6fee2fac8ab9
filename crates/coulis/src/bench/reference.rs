//! Results of a benchmark against exact ones ([`crate::verify`]), evenly spread outputs where there are too many.

use coulis_io::{AlignedBytes, Array};
use coulis_ir::eval::Value;

use super::normalization_reference;
use crate::error::Error;
use crate::reduce::Prepared;
use crate::verify::{LONG, Reference, in_text, judge, value};

/// What became of a check.
#[derive(Clone, Debug, PartialEq)]
pub enum Verdict {
    /// Every output that was compared is right.
    Verified {
        /// Outputs that were compared.
        checked: usize,
        /// Outputs there are.
        of: usize,
    },
    /// A result is wrong.
    Refuted {
        /// Name of the result.
        result: String,
        /// Position of the output, row-major.
        output: usize,
        /// What was found, what is right, and what distance is allowed.
        why: String,
    },
    /// The reference does not reach so far.
    OutOfReach {
        /// What it lacks.
        why: String,
    },
}

impl Verdict {
    /// Whether all that was compared is right.
    pub fn is_verified(&self) -> bool {
        match self {
            Verdict::Verified { .. } => true,
            Verdict::Refuted { .. } | Verdict::OutOfReach { .. } => false,
        }
    }
}

/// Elements of outputs of ordinary length that are compared.
const BUDGET: i64 = 1 << 20;
/// Elements of long outputs that are compared.
const LONG_BUDGET: i64 = 1 << 26;

/// Compares the outputs of a launch.
pub(super) fn check(
    prepared: &Prepared,
    input: &Array,
    outputs: Vec<AlignedBytes>,
) -> Result<Verdict, Error> {
    let call = prepared.call();
    if let Some(normalization) = &call.normalization {
        return normalization_reference::check(prepared, normalization, input, outputs);
    }
    let problem = &call.spec.problem;
    let n_outputs = problem.n_outputs as usize;
    let mut found: Vec<Vec<Value>> = Vec::new();
    for (output, bytes) in call.spec.outputs.iter().zip(outputs) {
        let array = prepared.result(output.dtype, bytes)?;
        found.push(array.scalars().map(value).collect());
    }
    let len = problem.reduce_len;
    let budget = if len > LONG { LONG_BUDGET } else { BUDGET };
    let n_checked = usize::try_from(budget / len.max(1)).unwrap_or(1).max(2).min(n_outputs);
    let reference = Reference::new(call, std::slice::from_ref(input), None);
    for nth in 0..n_checked {
        let at = if n_checked == 1 { 0 } else { nth * (n_outputs - 1) / (n_checked - 1) };
        let answers = match reference.answers(at)? {
            Ok(answers) => answers,
            Err(why) => return Ok(Verdict::OutOfReach { why: why.to_string() }),
        };
        for ((n, exact), part) in answers.of.iter().zip(&call.product.parts) {
            let exact = match exact {
                Ok(exact) => exact,
                Err(why) => return Ok(Verdict::OutOfReach { why: why.to_string() }),
            };
            for (slot, exact) in part.results.clone().zip(exact) {
                let (one, spec) = (found[slot][at], &call.spec.outputs[slot]);
                if let Some((exact, allowed)) = judge(one, exact, part.reducer.error, *n, spec, None).why {
                    let why = format!(
                        "found {}, exact {exact}, allowed distance {allowed:e} before rounding",
                        in_text(one)
                    );
                    return Ok(Verdict::Refuted { result: call.names[slot].clone(), output: at, why });
                }
            }
        }
    }
    Ok(Verdict::Verified { checked: n_checked, of: n_outputs })
}
