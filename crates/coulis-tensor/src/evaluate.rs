//! The reference evaluator: a program on small concrete inputs, by naive loops and scalar evaluation.
//!
//! It shares nothing with schedules and executors but the meaning of expressions, and is what they are tested
//! against. A fold starts from the start value and takes the points of its axes in row-major order.

use std::collections::HashMap;

use coulis_ir::args::{Bindings, eval_index};
use coulis_ir::eval::{Env, EvalError, Value, eval_expr};
use coulis_ir::{Buffer, BufferId, Expr, Var, counted};

use crate::axis::IterVar;
use crate::compute::Body;
use crate::program::Program;
use crate::reduction::Reduction;
use crate::tensor::{Op, OpKind};

/// A concrete tensor, row-major.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Extents.
    pub shape: Vec<i64>,
    /// Elements; as many as the product of the extents.
    pub data: Vec<Value>,
}

/// Why a program has no value on some inputs.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum EvaluateError {
    /// An input that was not given, or whose size does not fit its shape.
    #[error(
        "input `{tensor}` is to be given with {} and as many elements as its extents say",
        counted(rank, "dimension")
    )]
    Input {
        /// The input.
        tensor: String,
        /// Its number of dimensions.
        rank: usize,
    },
    /// An extent that the inputs' shapes do not determine.
    #[error("an extent of `{tensor}` depends on `{var}`, which no input determines")]
    Extent {
        /// The tensor.
        tensor: String,
        /// What is not known.
        var: String,
    },
    /// An expression without a value.
    #[error("an element of `{tensor}`: {source}")]
    Element {
        /// The tensor.
        tensor: String,
        /// Why it has no value.
        source: EvalError,
    },
}

impl Array {
    /// Position of an element.
    fn at(&self, indices: &[i128]) -> Option<usize> {
        let mut at = 0usize;
        for (index, extent) in indices.iter().zip(&self.shape) {
            if *index < 0 || *index >= i128::from(*extent) {
                return None;
            }
            at = at * *extent as usize + *index as usize;
        }
        Some(at)
    }
}

/// The values of every argument of the program, in order. `inputs` holds those of the placeholders; sizes follow
/// from their shapes, and `sizes` adds those that no shape tells.
pub fn evaluate(
    program: &Program,
    inputs: &HashMap<BufferId, Array>,
    sizes: &Bindings,
) -> Result<Vec<Array>, EvaluateError> {
    let mut memory: HashMap<BufferId, Array> = HashMap::new();
    let mut bindings = sizes.clone();
    for op in program.ops().iter().filter(|op| matches!(op.kind(), OpKind::Placeholder)) {
        let buffer = &op.outputs()[0];
        let wrong = || EvaluateError::Input { tensor: buffer.name.clone(), rank: buffer.rank() };
        let array = inputs.get(&buffer.id).ok_or_else(wrong)?;
        let size: i64 = array.shape.iter().product();
        if array.shape.len() != buffer.rank() || array.data.len() as i64 != size {
            return Err(wrong());
        }
        for (declared, found) in buffer.shape.iter().zip(&array.shape) {
            if let Some(var) = declared.as_var() {
                bindings.entry(var.id()).or_insert(*found);
            }
        }
        memory.insert(buffer.id, array.clone());
    }
    for op in program.ops() {
        if let OpKind::Compute { axes, body } = op.kind() {
            let results = compute(op, axes, body, &memory, &bindings, program)?;
            memory.extend(op.outputs().iter().map(|o| o.id).zip(results));
        }
    }
    let unused = Array { shape: Vec::new(), data: Vec::new() };
    let given = |id: &BufferId| memory.get(id).or_else(|| inputs.get(id)).cloned();
    Ok(program.args().iter().map(|a| given(&a.buffer().id).unwrap_or_else(|| unused.clone())).collect())
}

/// One operation on the values of those before it.
struct Evaluator<'a> {
    tensor: &'a str,
    memory: &'a HashMap<BufferId, Array>,
    sizes: Vec<(Var, Value)>,
}

fn compute(
    op: &Op,
    axes: &[IterVar],
    body: &Body,
    memory: &HashMap<BufferId, Array>,
    bindings: &Bindings,
    program: &Program,
) -> Result<Vec<Array>, EvaluateError> {
    let shape: Vec<i64> = op.outputs()[0]
        .shape
        .iter()
        .map(|extent| {
            // Less than no points are none.
            let extent = eval_index(extent, bindings).map(|extent| extent.max(0));
            extent.map_err(|var| EvaluateError::Extent { tensor: op.name().to_owned(), var })
        })
        .collect::<Result<_, _>>()?;
    let shapes = program.ops().iter().flat_map(Op::outputs).flat_map(|b| &b.shape);
    let mut sizes = Vec::new();
    for extent in shapes {
        coulis_ir::visit::for_each_expr(extent, &mut |e| {
            if let Some(var) = e.as_var()
                && let Some(value) = bindings.get(&var.id())
            {
                sizes.push((var.clone(), Value::Int(i128::from(*value))));
            }
        });
    }
    let evaluator = Evaluator { tensor: op.name(), memory, sizes };
    let mut results = vec![Array { shape: shape.clone(), data: Vec::new() }; op.outputs().len()];
    let n_points: i64 = shape.iter().product();
    for point in 0..n_points {
        let mut rest = point;
        let mut at = vec![0i64; shape.len()];
        for (slot, extent) in at.iter_mut().zip(&shape).rev() {
            *slot = rest % extent;
            rest /= extent;
        }
        let point: Vec<(Var, Value)> = axes
            .iter()
            .zip(&at)
            .map(|(axis, index)| (axis.var().clone(), Value::Int(i128::from(*index))))
            .collect();
        let values = match body {
            Body::Plain(exprs) => evaluator.all(exprs, &point)?,
            Body::Reduce(reduction) => match reduction.accumulating() {
                None => evaluator.fold(reduction, &point)?,
                Some(wide) => {
                    let values = evaluator.fold(&wide, &point)?;
                    values
                        .into_iter()
                        .zip(op.outputs())
                        .map(|(value, output)| value.cast(output.dtype))
                        .collect()
                }
            },
        };
        for (result, value) in results.iter_mut().zip(values) {
            result.data.push(value);
        }
    }
    Ok(results)
}

impl Evaluator<'_> {
    fn all(&self, exprs: &[Expr], bound: &[(Var, Value)]) -> Result<Vec<Value>, EvaluateError> {
        exprs.iter().map(|e| self.one(e, bound)).collect()
    }

    fn one(&self, expr: &Expr, bound: &[(Var, Value)]) -> Result<Value, EvaluateError> {
        let mut read = |buffer: &Buffer, indices: &[i128]| {
            let outside =
                || EvalError::OutOfBounds { buffer: buffer.name.clone(), indices: indices.to_vec() };
            let array = self
                .memory
                .get(&buffer.id)
                .ok_or_else(|| EvalError::NoMemory { buffer: buffer.name.clone() })?;
            array.at(indices).map(|at| array.data[at]).ok_or_else(outside)
        };
        let mut env = Env::with_memory(&mut read);
        for (var, value) in self.sizes.iter().chain(bound) {
            env.set(var, *value);
        }
        eval_expr(expr, &mut env)
            .map_err(|source| EvaluateError::Element { tensor: self.tensor.to_owned(), source })
    }

    fn fold(&self, r: &Reduction, point: &[(Var, Value)]) -> Result<Vec<Value>, EvaluateError> {
        let mut state = self.all(r.start(), point)?;
        let mut bound = point.to_vec();
        self.fold_axes(r, &r.axes, &mut bound, &mut state)?;
        Ok(state)
    }

    fn fold_axes(
        &self,
        r: &Reduction,
        axes: &[IterVar],
        bound: &mut Vec<(Var, Value)>,
        state: &mut Vec<Value>,
    ) -> Result<(), EvaluateError> {
        let Some((axis, inner)) = axes.split_first() else {
            return self.step(r, bound, state);
        };
        let Some((min, extent)) = axis.dom() else { return Ok(()) };
        let min = self.one(min, bound)?.as_int().unwrap_or(0);
        let extent = self.one(extent, bound)?.as_int().unwrap_or(0);
        for index in min..min + extent.max(0) {
            bound.push((axis.var().clone(), Value::Int(index)));
            self.fold_axes(r, inner, bound, state)?;
            bound.pop();
        }
        Ok(())
    }

    fn step(
        &self,
        r: &Reduction,
        bound: &[(Var, Value)],
        state: &mut Vec<Value>,
    ) -> Result<(), EvaluateError> {
        if let Some(condition) = &r.condition
            && !self.one(condition, bound)?.is_true()
        {
            return Ok(());
        }
        let sources = self.all(&r.sources, bound)?;
        let values = state.iter().chain(&sources).copied();
        let lambda = &r.combine;
        let args: Vec<(Var, Value)> =
            bound.iter().cloned().chain(lambda.params.iter().cloned().zip(values)).collect();
        *state = self.all(&lambda.body, &args)?;
        Ok(())
    }
}
