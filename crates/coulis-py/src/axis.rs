//! Axes in Python: iteration variables of computes, reductions and schedules, and block and thread indices.

use coulis::te::{Body, Expr, IterVar, ThreadTag, body_texts, operators, reduce_axis_of, thread_index};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyTuple};

use crate::error::OrRaise;
use crate::expr::{ExprOp, PrimExpr, expr_of, items_of, wrap};

/// Registers the classes, and the functions as a part of `te`.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<Axis>()?;
    m.add_class::<Range>()?;
    m.add_function(wrap_pyfunction!(reduce_axis, m)?)?;
    m.add_function(wrap_pyfunction!(thread_axis, m)?)
}

/// An iteration variable: an axis of a compute, of a reduction or of a schedule, or a block or thread index.
#[pyclass(name = "IterVar", extends = ExprOp, frozen, module = "coulis.te")]
pub struct Axis {
    /// What it is.
    pub kind: AxisKind,
}

/// What an iteration variable is.
pub enum AxisKind {
    /// An axis.
    Iter(IterVar),
    /// A block or thread index.
    Thread(ThreadTag),
}

impl Axis {
    /// The Python object of an axis.
    pub fn wrap(py: Python<'_>, axis: IterVar) -> PyResult<Bound<'_, Axis>> {
        Bound::new(py, (Axis { kind: AxisKind::Iter(axis) }, ExprOp))
    }

    /// Its variable as an expression.
    pub fn expr(&self) -> Expr {
        match &self.kind {
            AxisKind::Iter(axis) => axis.expr(),
            AxisKind::Thread(tag) => thread_index(*tag).expr(),
        }
    }

    /// The axis, where a reduction is to fold over it.
    fn reduce_axis(&self) -> PyResult<IterVar> {
        match &self.kind {
            AxisKind::Iter(axis) => Ok(axis.clone()),
            AxisKind::Thread(tag) => Err(PyValueError::new_err(format!(
                "a reduction folds over axes of te.reduce_axis, and `{}` is a thread axis",
                tag.name()
            ))),
        }
    }
}

#[pymethods]
impl Axis {
    /// The variable.
    #[getter]
    fn var<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PrimExpr>> {
        wrap(py, self.expr())
    }

    /// Name hint.
    #[getter]
    fn name(&self) -> String {
        match &self.kind {
            AxisKind::Iter(axis) => axis.name().to_owned(),
            AxisKind::Thread(tag) => tag.name().to_owned(),
        }
    }

    /// `Range(min, extent)` of an axis of a compute or a reduction; None for others, whose range follows later.
    #[getter]
    fn dom<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, Range>>> {
        match &self.kind {
            AxisKind::Iter(axis) => {
                let dom = axis.dom().map(|(min, extent)| Range { min: min.clone(), extent: extent.clone() });
                dom.map(|dom| Bound::new(py, dom)).transpose()
            }
            AxisKind::Thread(_) => Ok(None),
        }
    }

    /// `DataPar`, `CommReduce` or `ThreadIndex`.
    #[getter]
    fn iter_type(&self) -> &'static str {
        match &self.kind {
            AxisKind::Iter(axis) => axis.kind().name(),
            AxisKind::Thread(_) => "ThreadIndex",
        }
    }

    /// The block or thread index, as `threadIdx.x`; empty for an axis.
    #[getter]
    fn thread_tag(&self) -> &'static str {
        match &self.kind {
            AxisKind::Iter(_) => "",
            AxisKind::Thread(tag) => tag.name(),
        }
    }

    fn __repr__(&self) -> String {
        match &self.kind {
            AxisKind::Iter(axis) => {
                let dom = axis.dom().map(|(min, extent)| Range { min: min.clone(), extent: extent.clone() });
                let dom = dom.map_or_else(|| "None".to_owned(), |dom| dom.__repr__());
                format!("T.iter_var({}, {dom}, \"{}\", \"\")", axis.name(), axis.kind().name())
            }
            AxisKind::Thread(tag) => {
                let name = tag.name().replace('.', "_");
                format!("T.iter_var({name}, None, \"ThreadIndex\", \"{}\")", tag.name())
            }
        }
    }
}

/// A smallest index and a number of indices.
#[pyclass(frozen, module = "coulis.te")]
pub struct Range {
    min: Expr,
    extent: Expr,
}

#[pymethods]
impl Range {
    /// The smallest index.
    #[getter]
    fn min<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PrimExpr>> {
        wrap(py, self.min.clone())
    }

    /// The number of indices.
    #[getter]
    fn extent<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PrimExpr>> {
        wrap(py, self.extent.clone())
    }

    fn __repr__(&self) -> String {
        let text = |expr: &Expr| body_texts(&Body::Plain(vec![expr.clone()])).concat();
        let end = match (self.min.as_int(), self.extent.as_int()) {
            (Some(0), _) => text(&self.extent),
            (Some(min), Some(extent)) => (min + extent).to_string(),
            _ => text(&(self.min.clone() + self.extent.clone())),
        };
        format!("T.Range({}, {end})", text(&self.min))
    }
}

/// An axis over `[min, end)` to fold over.
#[pyfunction]
fn reduce_axis<'py>(
    py: Python<'py>,
    min: &Bound<'py, PyAny>,
    end: &Bound<'py, PyAny>,
    name: &str,
) -> PyResult<Bound<'py, Axis>> {
    let (min, extent) = operators::range(expr_of(min)?, expr_of(end)?).or_raise()?;
    if !min.dtype().is_int() {
        return Err(PyTypeError::new_err(format!(
            "the domain of `{name}` is of integers, got {}",
            min.dtype()
        )));
    }
    Axis::wrap(py, reduce_axis_of(min, extent, name))
}

/// The block or thread index of that tag.
#[pyfunction]
fn thread_axis<'py>(py: Python<'py>, tag: &str) -> PyResult<Bound<'py, Axis>> {
    let found = ThreadTag::ALL.into_iter().find(|other| other.name() == tag);
    match found {
        Some(tag) => Bound::new(py, (Axis { kind: AxisKind::Thread(tag) }, ExprOp)),
        None => {
            let legal: Vec<&str> = ThreadTag::ALL.iter().map(|tag| tag.name()).collect();
            Err(PyValueError::new_err(format!(
                "there is no thread axis `{tag}`; legal are {}",
                legal.join(", ")
            )))
        }
    }
}

/// The axes that an object names for a reduction, with the words of why not.
pub fn reduce_axes(object: &Bound<'_, PyAny>) -> PyResult<Vec<IterVar>> {
    items_of(object)?
        .iter()
        .map(|item| match item.cast::<Axis>() {
            Ok(axis) => axis.get().reduce_axis(),
            Err(_) => Err(PyTypeError::new_err(format!(
                "a reduction folds over axes of te.reduce_axis, got `{item}` ({})",
                item.get_type().name()?
            ))),
        })
        .collect()
}

/// Whether an object names axes, so that it is no operand: a list, a tuple or an iteration variable.
pub fn is_axes(object: &Bound<'_, PyAny>) -> bool {
    object.is_instance_of::<PyList>() || object.is_instance_of::<PyTuple>() || object.is_instance_of::<Axis>()
}
