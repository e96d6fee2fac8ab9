//! Tensors and operations in Python: `te.placeholder`, `te.compute`, and what they give.
//!
//! A tensor is either one of a program, or the result of a stage that a schedule made (`s.rfactor`, `s.cache_read`),
//! which is known by its place in the schedule. Both answer to the same names.

use std::hash::{DefaultHasher, Hash, Hasher};

use coulis::te::{
    Body, Buffer, Expr, IterVar, Op, OpKind, StageId, StageRef, Tensor as TeTensor, Term, compute_tuple_axes,
    placeholder as make_placeholder,
};
use pyo3::exceptions::{PyIndexError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PySlice, PyTuple};

use crate::axis::Axis;
use crate::error::OrRaise;
use crate::expr::{ExprOp, Reduce, dtype_of, expr_of, exprs_of, items_of, wrap, wrap_measured};
use crate::measure::Measure;
use crate::schedule::Schedule;

/// Registers the classes, and the functions as a part of `te`.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Tensor>()?;
    m.add_class::<Element>()?;
    m.add_class::<Operation>()?;
    m.add_function(wrap_pyfunction!(placeholder, m)?)?;
    m.add_function(wrap_pyfunction!(compute, m)?)
}

/// What computes a tensor.
pub enum Source {
    /// A tensor of a program.
    Program(TeTensor),
    /// A result of a stage.
    Stage(Py<Schedule>, StageId, usize),
}

/// A tensor: an input, a computed tensor, or a part that a schedule made. It is read by its indices, `A[i, k]`.
#[pyclass(frozen, module = "coulis.te")]
pub struct Tensor {
    /// What computes it.
    pub source: Source,
}

impl Tensor {
    /// The Python object of a tensor of a program.
    pub fn wrap(py: Python<'_>, tensor: TeTensor) -> PyResult<Bound<'_, Tensor>> {
        Bound::new(py, Tensor { source: Source::Program(tensor) })
    }

    /// The buffer that backs it.
    pub fn buffer(&self, py: Python<'_>) -> PyResult<Buffer> {
        match &self.source {
            Source::Program(tensor) => Ok(tensor.buffer().clone()),
            Source::Stage(schedule, stage, index) => {
                let schedule = schedule.bind(py).try_borrow()?;
                let outputs = schedule.inner.stage(*stage).or_raise()?.outputs();
                outputs
                    .get(*index)
                    .cloned()
                    .ok_or_else(|| PyIndexError::new_err("the stage has no such result"))
            }
        }
    }

    /// The tensor as an argument or output of a program, where it is one.
    pub fn of_program(&self) -> PyResult<&TeTensor> {
        match &self.source {
            Source::Program(tensor) => Ok(tensor),
            Source::Stage(..) => Err(PyValueError::new_err(
                "a tensor that a schedule made is no argument and no output; legal are placeholders and computed tensors",
            )),
        }
    }

    fn read(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let py = slf.py();
        let (indices, measure) = indices_of(key)?;
        let buffer = slf.get().buffer(py)?;
        let wanted = buffer.rank();
        if indices.len() > wanted || (indices.is_empty() && wanted > 0) {
            return Err(PyIndexError::new_err(format!(
                "`{}` takes {wanted} indices, got {}",
                buffer.name,
                indices.len()
            )));
        }
        let element = Element { buffer, indices, measure };
        if element.is_whole() {
            return Ok(wrap_measured(py, element.read()?, measure)?.into_any().unbind());
        }
        Ok(Bound::new(py, (element, ExprOp))?.into_any().unbind())
    }
}

/// The indices that an object between brackets is.
fn indices_of(key: &Bound<'_, PyAny>) -> PyResult<(Vec<Expr>, Measure)> {
    let items: Vec<Bound<'_, PyAny>> = match key.cast::<PyTuple>() {
        Ok(tuple) => tuple.iter().collect(),
        Err(_) => vec![key.clone()],
    };
    for item in &items {
        if item.is_instance_of::<PySlice>() {
            return Err(PyTypeError::new_err("a tensor is read by its element; slices have no meaning here"));
        }
        // Checked here, so that the message is about indices.
        if !expr_of(item)?.dtype().is_int() {
            return Err(PyTypeError::new_err(format!("an index is an integer expression, got {item}")));
        }
    }
    let measure = Measure::over(&items.iter().collect::<Vec<_>>())?;
    Ok((items.iter().map(expr_of).collect::<PyResult<_>>()?, measure))
}

#[pymethods]
impl Tensor {
    fn __getitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        Tensor::read(slf, key)
    }

    #[pyo3(signature = (*indices))]
    fn __call__(slf: &Bound<'_, Self>, indices: &Bound<'_, PyTuple>) -> PyResult<Py<PyAny>> {
        Tensor::read(slf, indices.as_any())
    }

    fn __iter__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err("a tensor has no elements before the program runs"))
    }

    /// Extents: expressions.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let shape: Vec<_> =
            self.buffer(py)?.shape.iter().map(|e| wrap(py, e.clone())).collect::<PyResult<_>>()?;
        PyList::new(py, shape)
    }

    /// Number of dimensions.
    #[getter]
    fn ndim(&self, py: Python<'_>) -> PyResult<usize> {
        Ok(self.buffer(py)?.rank())
    }

    /// Element type, as a string.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<&'static str> {
        Ok(self.buffer(py)?.dtype.name())
    }

    /// Name hint.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        Ok(self.buffer(py)?.name.clone())
    }

    /// The operation that computes it.
    #[getter]
    fn op(&self, py: Python<'_>) -> Operation {
        match &self.source {
            Source::Program(tensor) => Operation { source: OperationSource::Program(tensor.op().clone()) },
            Source::Stage(schedule, stage, _) => {
                Operation { source: OperationSource::Stage(schedule.clone_ref(py), *stage) }
            }
        }
    }

    /// Which result of its operation it is.
    #[getter]
    fn value_index(&self) -> usize {
        match &self.source {
            Source::Program(tensor) => tensor.index(),
            Source::Stage(_, _, index) => *index,
        }
    }

    fn __eq__(slf: &Bound<'_, Self>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        match other.cast::<Tensor>() {
            Ok(other) => Ok(slf.get().buffer(slf.py())? == other.get().buffer(slf.py())?),
            Err(_) => Ok(false),
        }
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<u64> {
        let mut hasher = DefaultHasher::new();
        self.buffer(py)?.id.hash(&mut hasher);
        Ok(hasher.finish())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let buffer = self.buffer(py)?;
        let shape = coulis::te::body_texts(&Body::Plain(buffer.shape.clone()));
        Ok(format!("Tensor(shape=[{}], dtype={}, name={})", shape.join(", "), buffer.dtype, buffer.name))
    }
}

/// A tensor with its first indices, `A[i]`: an element once it has all of them.
#[pyclass(name = "TensorSlice", extends = ExprOp, frozen, module = "coulis.te")]
pub struct Element {
    buffer: Buffer,
    indices: Vec<Expr>,
    measure: Measure,
}

impl Element {
    /// How large it is.
    pub fn measure(&self) -> Measure {
        self.measure
    }

    fn is_whole(&self) -> bool {
        self.indices.len() == self.buffer.rank()
    }

    /// The element.
    pub fn read(&self) -> PyResult<Expr> {
        if self.is_whole() {
            return Ok(Expr::load(self.buffer.clone(), self.indices.clone()));
        }
        let (wanted, found) = (self.buffer.rank(), self.indices.len());
        Err(PyIndexError::new_err(format!("`{}` takes {wanted} indices, got {found}", self.buffer.name)))
    }
}

#[pymethods]
impl Element {
    fn __getitem__(slf: &Bound<'_, Self>, key: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        let this = slf.get();
        let (rest, measure) = indices_of(key)?;
        let measure = measure.beside(this.measure)?;
        let indices = this.indices.iter().cloned().chain(rest).collect();
        let whole = Element { buffer: this.buffer.clone(), indices, measure };
        if whole.indices.len() < this.buffer.rank() {
            return Ok(Bound::new(slf.py(), (whole, ExprOp))?.into_any().unbind());
        }
        Ok(wrap_measured(slf.py(), whole.read()?, measure)?.into_any().unbind())
    }

    fn __repr__(&self) -> String {
        format!("{}[{} of {} indices]", self.buffer.name, self.indices.len(), self.buffer.rank())
    }
}

/// What computes an operation.
pub enum OperationSource {
    /// An operation of a program.
    Program(Op),
    /// A stage as it is defined now.
    Stage(Py<Schedule>, StageId),
}

/// An operation: its axes, what it computes, and its results.
#[pyclass(frozen, module = "coulis.te")]
pub struct Operation {
    /// What it is.
    pub source: OperationSource,
}

impl Operation {
    /// Axes of the dimensions, axes that are folded away, and the body.
    fn parts(&self, py: Python<'_>) -> PyResult<(Vec<IterVar>, Vec<IterVar>, Option<Body>)> {
        match &self.source {
            OperationSource::Program(op) => {
                let body = match op.kind() {
                    OpKind::Placeholder => None,
                    OpKind::Compute { body, .. } => Some(body.clone()),
                };
                Ok((op.axes().to_vec(), op.reduce_axes().to_vec(), body))
            }
            OperationSource::Stage(schedule, stage) => {
                let schedule = schedule.bind(py).try_borrow()?;
                let stage = schedule.inner.stage(*stage).or_raise()?;
                Ok((stage.axes().to_vec(), stage.reduce_axes().to_vec(), Some(stage.body().clone())))
            }
        }
    }

    /// The tensor that names the operation to a schedule.
    pub fn buffer(&self, py: Python<'_>) -> PyResult<Buffer> {
        let first = match &self.source {
            OperationSource::Program(op) => op.outputs().first().cloned(),
            OperationSource::Stage(schedule, stage) => {
                let schedule = schedule.bind(py).try_borrow()?;
                schedule.inner.stage(*stage).or_raise()?.outputs().first().cloned()
            }
        };
        first.ok_or_else(|| PyValueError::new_err("the operation has no result"))
    }
}

fn wrap_axes(py: Python<'_>, axes: Vec<IterVar>) -> PyResult<Vec<Bound<'_, Axis>>> {
    axes.into_iter().map(|axis| Axis::wrap(py, axis)).collect()
}

#[pymethods]
impl Operation {
    /// Axes of the dimensions, in order.
    #[getter]
    fn axis<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, Axis>>> {
        wrap_axes(py, self.parts(py)?.0)
    }

    /// Axes that are folded away.
    #[getter]
    fn reduce_axis<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, Axis>>> {
        wrap_axes(py, self.parts(py)?.1)
    }

    /// What is computed, one expression or reduction a result; empty for an input.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyAny>>> {
        match self.parts(py)?.2 {
            None => Ok(Vec::new()),
            Some(Body::Plain(exprs)) => {
                exprs.into_iter().map(|expr| Ok(wrap(py, expr)?.into_any())).collect()
            }
            Some(Body::Reduce(reduction)) => (0..reduction.arity())
                .map(|index| Ok(Reduce::wrap(py, (*reduction).clone(), index)?.into_any()))
                .collect(),
        }
    }

    /// Name hint.
    #[getter]
    fn name(&self, py: Python<'_>) -> PyResult<String> {
        match &self.source {
            OperationSource::Program(op) => Ok(op.name().to_owned()),
            OperationSource::Stage(schedule, stage) => {
                let schedule = schedule.bind(py).try_borrow()?;
                Ok(schedule.inner.stage(*stage).or_raise()?.name().to_owned())
            }
        }
    }

    /// Number of results.
    #[getter]
    fn num_outputs(&self, py: Python<'_>) -> PyResult<usize> {
        match &self.source {
            OperationSource::Program(op) => Ok(op.outputs().len()),
            OperationSource::Stage(schedule, stage) => {
                let schedule = schedule.bind(py).try_borrow()?;
                Ok(schedule.inner.stage(*stage).or_raise()?.outputs().len())
            }
        }
    }

    /// A result as a tensor.
    fn output(&self, py: Python<'_>, index: usize) -> PyResult<Tensor> {
        let count = self.num_outputs(py)?;
        let source = match &self.source {
            OperationSource::Program(op) => op.tensor(index).map(Source::Program),
            OperationSource::Stage(schedule, stage) if index < count => {
                Some(Source::Stage(schedule.clone_ref(py), *stage, index))
            }
            OperationSource::Stage(..) => None,
        };
        match source {
            Some(source) => Ok(Tensor { source }),
            None => Err(PyIndexError::new_err(format!(
                "the operation has {count} results, and {index} is not one"
            ))),
        }
    }

    fn __eq__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        match other.cast::<Operation>() {
            Ok(other) => Ok(self.buffer(py)? == other.get().buffer(py)?),
            Err(_) => Ok(false),
        }
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<u64> {
        let mut hasher = DefaultHasher::new();
        self.buffer(py)?.id.hash(&mut hasher);
        Ok(hasher.finish())
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        Ok(format!("Operation({})", self.name(py)?))
    }
}

/// An input: a tensor of that shape.
#[pyfunction]
fn placeholder<'py>(
    py: Python<'py>,
    shape: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<Bound<'py, Tensor>> {
    Tensor::wrap(py, make_placeholder(&exprs_of(shape)?, dtype_of(dtype)?, name).or_raise()?)
}

/// The tensors whose elements `body` gives for one variable a dimension.
#[pyfunction]
fn compute<'py>(
    py: Python<'py>,
    shape: &Bound<'py, PyAny>,
    axis_names: Vec<String>,
    name: &str,
    body: &Bound<'py, PyAny>,
) -> PyResult<Vec<Bound<'py, Tensor>>> {
    let mut raised = None;
    let made = compute_tuple_axes(&exprs_of(shape)?, &axis_names, name, |vars| {
        let vars: Vec<Expr> = vars.iter().map(|var| var.expr()).collect();
        terms(py, vars, body).unwrap_or_else(|error| {
            raised = Some(error);
            Vec::new()
        })
    });
    if let Some(error) = raised {
        return Err(error);
    }
    made.or_raise()?.into_iter().map(|tensor| Tensor::wrap(py, tensor)).collect()
}

/// What the body of a compute gives.
fn terms<'py>(py: Python<'py>, vars: Vec<Expr>, body: &Bound<'py, PyAny>) -> PyResult<Vec<Term>> {
    let vars: Vec<_> = vars.into_iter().map(|var| wrap(py, var)).collect::<PyResult<_>>()?;
    let found = body.call1(PyTuple::new(py, vars)?)?;
    items_of(&found)?
        .iter()
        .map(|item| match item.cast::<Reduce>() {
            Ok(reduce) => {
                let reduce = reduce.get();
                Ok(Term::Reduce(Box::new(reduce.reduction.clone()), reduce.index))
            }
            Err(_) => Ok(Term::Plain(expr_of(item)?)),
        })
        .collect()
}

/// How a schedule finds the stage that an object stands for.
pub fn stage_ref(object: &Bound<'_, PyAny>) -> PyResult<StageRef> {
    let py = object.py();
    if let Ok(tensor) = object.cast::<Tensor>() {
        return Ok(match &tensor.get().source {
            Source::Program(tensor) => StageRef::from(tensor),
            Source::Stage(_, stage, _) => StageRef::Id(*stage),
        });
    }
    if let Ok(op) = object.cast::<Operation>() {
        return Ok(match &op.get().source {
            OperationSource::Program(_) => StageRef::Tensor(op.get().buffer(py)?),
            OperationSource::Stage(_, stage) => StageRef::Id(*stage),
        });
    }
    let found = object.get_type().name()?;
    Err(PyTypeError::new_err(format!("a stage is found by a tensor or an operation, got {found}")))
}
