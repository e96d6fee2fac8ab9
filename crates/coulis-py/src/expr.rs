//! Symbolic values in Python: expressions with operators, and what Python values mean as operands.
//!
//! Everything that stands for a number in an expression derives from [`ExprOp`], which has the operators: expressions,
//! iteration variables, and elements of tensors. Types are brought together and checked by `coulis::te::operators`; here
//! is only the spelling. `a == b` of two expressions is an expression too, whose truth is whether they are the same one.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

use coulis::DType;
use coulis::te::{BinaryOp, Body, Expr, Intrinsic, Node, Reduction, TensorError, Var, body_texts, operators};
use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyAttributeError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyTuple};

use crate::array;
use crate::axis::Axis;
use crate::error::OrRaise;
use crate::measure::Measure;
use crate::te::power;
use crate::tensor::Element;

/// Registers the classes, and the functions as a part of `te`.
pub fn register(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add_class::<ExprOp>()?;
    m.add_class::<PrimExpr>()?;
    m.add_class::<Reduce>()?;
    m.add_function(wrap_pyfunction!(call, m)?)?;
    m.add_function(wrap_pyfunction!(binary, m)?)?;
    m.add_function(wrap_pyfunction!(joined, m)?)?;
    m.add_function(wrap_pyfunction!(choose, m)?)?;
    m.add_function(wrap_pyfunction!(cast, m)?)?;
    m.add_function(wrap_pyfunction!(constant, m)?)?;
    m.add_function(wrap_pyfunction!(variable, m)?)?;
    m.add_function(wrap_pyfunction!(limit, m)?)
}

/// What stands for a number in an expression: it has the operators.
#[pyclass(subclass, frozen, module = "coulis.te")]
pub struct ExprOp;

/// An expression: a variable, a constant, or an operation. Immutable; equal ones are one object underneath.
#[pyclass(extends = ExprOp, frozen, module = "coulis.te")]
pub struct PrimExpr {
    /// The expression.
    pub expr: Expr,
    /// How large it is.
    pub measure: Measure,
}

/// A component of a reduction: the whole body of a compute, and no operand.
#[pyclass(extends = ExprOp, frozen, module = "coulis.te")]
pub struct Reduce {
    /// The reduction.
    pub reduction: Reduction,
    /// Which component.
    pub index: usize,
}

impl Reduce {
    /// The Python object of a component.
    pub fn wrap(py: Python<'_>, reduction: Reduction, index: usize) -> PyResult<Bound<'_, Reduce>> {
        Bound::new(py, (Reduce { reduction, index }, ExprOp))
    }
}

/// The Python object of an expression.
pub fn wrap(py: Python<'_>, expr: Expr) -> PyResult<Bound<'_, PrimExpr>> {
    wrap_measured(py, expr, Measure::LEAF)
}

/// The Python object of an expression of that size.
pub fn wrap_measured(py: Python<'_>, expr: Expr, measure: Measure) -> PyResult<Bound<'_, PrimExpr>> {
    Bound::new(py, (PrimExpr { expr, measure }, ExprOp))
}

/// The element type that an object names in an expression: what it names elsewhere, but for the words that have 32 bits in
/// TVM's programs and 64 in NumPy's.
pub fn dtype_of(object: &Bound<'_, PyAny>) -> PyResult<DType> {
    match object.extract::<String>() {
        Ok(word) if ["int", "uint", "float"].contains(&word.as_str()) => Err(PyTypeError::new_err(format!(
            "`{word}` has 32 bits in TVM and 64 in NumPy; legal are `{word}32`, `{word}64` and the other names with bits"
        ))),
        _ => array::dtype(object),
    }
}

/// The expression that an object is; `None` for an object that has no meaning in one.
pub fn maybe_expr(object: &Bound<'_, PyAny>) -> PyResult<Option<Expr>> {
    if let Ok(expr) = object.cast::<PrimExpr>() {
        return Ok(Some(expr.get().expr.clone()));
    }
    if let Ok(axis) = object.cast::<Axis>() {
        return Ok(Some(axis.get().expr()));
    }
    if let Ok(element) = object.cast::<Element>() {
        return element.get().read().map(Some);
    }
    if let Ok(reduce) = object.cast::<Reduce>() {
        let reducer = reduce.get().reduction.name.clone();
        return Err(TensorError::ReductionAsOperand { reducer }).or_raise();
    }
    if let Ok(value) = object.cast::<PyBool>() {
        return Ok(Some(Expr::bool(value.is_true())));
    }
    if object.is_instance_of::<PyFloat>() {
        return Ok(Some(Expr::float(object.extract()?, DType::F32)));
    }
    // A scalar of NumPy, other than those that are Python's own.
    if object.hasattr("dtype")? && object.getattr("ndim").is_ok_and(|n| n.eq(0).unwrap_or(false)) {
        let dtype = dtype_of(&object.getattr("dtype")?)?;
        let value = maybe_expr(&object.call_method0("item")?)?;
        return Ok(value.map(|value| operators::convert(value, dtype)));
    }
    let Some(value) = int64(object)? else { return Ok(None) };
    let dtype = if i32::try_from(value).is_ok() { DType::I32 } else { DType::I64 };
    Ok(Some(Expr::int_of(i128::from(value), dtype)))
}

/// The integer that an object is, if it is one.
pub fn int64(object: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if !object.hasattr("__index__")? {
        return Ok(None);
    }
    // Arrays have the method, and are integers only where they have no axes.
    let Ok(index) = object.call_method0("__index__") else { return Ok(None) };
    let fits = index
        .extract()
        .map_err(|_| PyValueError::new_err(format!("the integer {index} does not fit into int64")));
    fits.map(Some)
}

/// The expression that an object is.
pub fn expr_of(object: &Bound<'_, PyAny>) -> PyResult<Expr> {
    match maybe_expr(object)? {
        Some(expr) => Ok(expr),
        None => {
            let found = object.get_type().name()?;
            Err(PyTypeError::new_err(format!("an expression, an axis or a number is wanted, got {found}")))
        }
    }
}

/// The expressions that a list or tuple holds; those of one object where it is neither.
pub fn exprs_of(object: &Bound<'_, PyAny>) -> PyResult<Vec<Expr>> {
    items_of(object)?.iter().map(expr_of).collect()
}

/// The items of a list or tuple, else the object alone.
pub fn items_of<'py>(object: &Bound<'py, PyAny>) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let is_list = object.is_instance_of::<pyo3::types::PyList>() || object.is_instance_of::<PyTuple>();
    if is_list { object.try_iter()?.collect() } else { Ok(vec![object.clone()]) }
}

/// Two operands. A number of Python takes the width of a `float64` next to it, so that it is not rounded
/// before.
fn pair(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<Option<(Expr, Expr)>> {
    let beside = |number: &Bound<'_, PyAny>, expr: Expr, other: &Expr| -> PyResult<Expr> {
        if number.is_instance_of::<PyFloat>() && other.dtype() == DType::F64 {
            return Ok(Expr::float(number.extract()?, DType::F64));
        }
        Ok(expr)
    };
    match (maybe_expr(a)?, maybe_expr(b)?) {
        (Some(x), Some(y)) => Ok(Some((beside(a, x.clone(), &y)?, beside(b, y, &x)?))),
        _ => Ok(None),
    }
}

/// Two operands that are to be there.
fn operands(a: &Bound<'_, PyAny>, b: &Bound<'_, PyAny>) -> PyResult<(Expr, Expr)> {
    match pair(a, b)? {
        Some(both) => Ok(both),
        None => Ok((expr_of(a)?, expr_of(b)?)),
    }
}

/// `a op b` as a Python object, or Python's sign that there is no such operation.
fn operate<'py>(op: BinaryOp, a: &Bound<'py, PyAny>, b: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    match pair(a, b)? {
        Some((x, y)) => {
            let made = operators::binary(op, x, y).or_raise()?;
            Ok(wrap_measured(a.py(), made, Measure::over(&[a, b])?)?.into_any())
        }
        None => Ok(a.py().NotImplemented().into_bound(a.py())),
    }
}

/// What `make` makes of an expression.
fn made_of<'py>(
    a: &Bound<'py, PyAny>,
    make: impl FnOnce(Expr) -> Result<Expr, TensorError>,
) -> PyResult<Bound<'py, PrimExpr>> {
    wrap_measured(a.py(), make(expr_of(a)?).or_raise()?, Measure::over(&[a])?)
}

/// `a / b`: of floats only, since integers have several quotients.
fn divide<'py>(a: &Bound<'py, PyAny>, b: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    if let (Some(x), Some(y)) = (maybe_expr(a)?, maybe_expr(b)?)
        && !x.dtype().is_float()
        && !y.dtype().is_float()
    {
        return Err(PyTypeError::new_err(
            "`/` of integers has no one meaning; write `//` or te.floordiv for the floor, te.truncdiv for the \
             quotient toward zero, or cast",
        ));
    }
    operate(BinaryOp::Div, a, b)
}

type Object<'py> = Bound<'py, PyAny>;

#[pymethods]
impl ExprOp {
    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        operate(BinaryOp::Add, slf.as_any(), other)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        operate(BinaryOp::Add, other, slf.as_any())
    }

    fn __sub__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        operate(BinaryOp::Sub, slf.as_any(), other)
    }

    fn __rsub__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        operate(BinaryOp::Sub, other, slf.as_any())
    }

    fn __mul__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        operate(BinaryOp::Mul, slf.as_any(), other)
    }

    fn __rmul__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        operate(BinaryOp::Mul, other, slf.as_any())
    }

    fn __truediv__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        divide(slf.as_any(), other)
    }

    fn __rtruediv__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        divide(other, slf.as_any())
    }

    fn __floordiv__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        operate(BinaryOp::FloorDiv, slf.as_any(), other)
    }

    fn __rfloordiv__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        operate(BinaryOp::FloorDiv, other, slf.as_any())
    }

    fn __mod__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        operate(BinaryOp::FloorMod, slf.as_any(), other)
    }

    fn __rmod__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        operate(BinaryOp::FloorMod, other, slf.as_any())
    }

    fn __and__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        operate(BinaryOp::BitAnd, slf.as_any(), other)
    }

    fn __rand__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        operate(BinaryOp::BitAnd, other, slf.as_any())
    }

    fn __or__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        operate(BinaryOp::BitOr, slf.as_any(), other)
    }

    fn __ror__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        operate(BinaryOp::BitOr, other, slf.as_any())
    }

    fn __xor__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        operate(BinaryOp::BitXor, slf.as_any(), other)
    }

    fn __rxor__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        operate(BinaryOp::BitXor, other, slf.as_any())
    }

    fn __lshift__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        operate(BinaryOp::Shl, slf.as_any(), other)
    }

    fn __rlshift__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        operate(BinaryOp::Shl, other, slf.as_any())
    }

    fn __rshift__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        operate(BinaryOp::Shr, slf.as_any(), other)
    }

    fn __rrshift__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        operate(BinaryOp::Shr, other, slf.as_any())
    }

    fn __neg__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PrimExpr>> {
        made_of(slf.as_any(), operators::negative)
    }

    fn __invert__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PrimExpr>> {
        made_of(slf.as_any(), operators::not)
    }

    fn __abs__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PrimExpr>> {
        made_of(slf.as_any(), |x| operators::call(Intrinsic::Abs, vec![x]))
    }

    /// Small whole powers are products, as NumPy's; others are `te.power`.
    fn __pow__<'py>(
        slf: &Bound<'py, Self>,
        exponent: &Object<'py>,
        modulo: Option<&Object<'py>>,
    ) -> PyResult<Object<'py>> {
        if modulo.is_some() {
            return Err(PyTypeError::new_err("a power of expressions takes no modulus"));
        }
        let whole = exponent.is_instance_of::<PyInt>().then(|| exponent.extract::<u32>().ok()).flatten();
        match whole.filter(|n| (1..=MAX_PRODUCT).contains(n)) {
            Some(n) => (1..n).try_fold(slf.clone().into_any(), |product, _| product.mul(slf)),
            None => power(slf.as_any(), exponent),
        }
    }

    fn __rpow__<'py>(
        slf: &Bound<'py, Self>,
        base: &Object<'py>,
        _modulo: Option<&Object<'py>>,
    ) -> PyResult<Object<'py>> {
        power(base, slf.as_any())
    }

    fn __richcmp__<'py>(slf: &Bound<'py, Self>, other: &Object<'py>, op: CompareOp) -> PyResult<Object<'py>> {
        let op = match op {
            CompareOp::Lt => BinaryOp::Lt,
            CompareOp::Le => BinaryOp::Le,
            CompareOp::Eq => BinaryOp::Eq,
            CompareOp::Ne => BinaryOp::Ne,
            CompareOp::Gt => BinaryOp::Gt,
            CompareOp::Ge => BinaryOp::Ge,
        };
        operate(op, slf.as_any(), other)
    }

    fn __hash__(slf: &Bound<'_, Self>) -> PyResult<u64> {
        let mut hasher = DefaultHasher::new();
        expr_of(slf.as_any())?.hash(&mut hasher);
        Ok(hasher.finish())
    }

    /// `self == other` as an expression.
    fn equal<'py>(slf: &Bound<'py, Self>, other: &Object<'py>) -> PyResult<Object<'py>> {
        operate(BinaryOp::Eq, slf.as_any(), other)
    }

    /// The same value in another element type.
    fn astype<'py>(slf: &Bound<'py, Self>, dtype: &Object<'py>) -> PyResult<Bound<'py, PrimExpr>> {
        let dtype = dtype_of(dtype)?;
        made_of(slf.as_any(), |x| Ok(operators::convert(x, dtype)))
    }

    /// Element type, as a string.
    #[getter]
    fn dtype(slf: &Bound<'_, Self>) -> PyResult<&'static str> {
        Ok(expr_of(slf.as_any())?.dtype().name())
    }
}

#[pymethods]
impl PrimExpr {
    /// Name of a variable.
    #[getter]
    fn name(&self) -> PyResult<&str> {
        match self.expr.as_var() {
            Some(var) => Ok(var.name()),
            None => Err(PyAttributeError::new_err("only a variable has a name")),
        }
    }

    /// Value of a constant.
    #[getter]
    fn value<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match (self.expr.as_int(), self.expr.as_float()) {
            (Some(value), _) if self.expr.dtype() == DType::Bool => {
                Ok(PyBool::new(py, value != 0).to_owned().into_any())
            }
            (Some(value), _) => Ok(value.into_pyobject(py)?.into_any()),
            (None, Some(value)) => Ok(value.into_pyobject(py)?.into_any()),
            (None, None) => Err(PyAttributeError::new_err("only a constant has a value")),
        }
    }

    /// Whether the other is the same expression.
    fn same_as(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<PrimExpr>().is_ok_and(|other| other.get().expr == self.expr)
    }

    fn __bool__(&self) -> PyResult<bool> {
        match self.expr.node() {
            Node::Int(value) => Ok(*value != 0),
            Node::Binary(BinaryOp::Eq, a, b) => Ok(a == b),
            Node::Binary(BinaryOp::Ne, a, b) => Ok(a != b),
            _ => Err(PyValueError::new_err(
                "an expression is neither true nor false before the program runs; write te.all, te.any, `~` or \
                 te.if_then_else in place of and, or, not and if",
            )),
        }
    }

    fn __int__(&self) -> PyResult<i128> {
        self.expr.as_int().ok_or_else(|| PyTypeError::new_err("only an integer constant is an int"))
    }

    fn __float__(&self) -> PyResult<f64> {
        match self.expr.node() {
            Node::Int(value) => Ok(*value as f64),
            Node::Float(value) => Ok(f64::from_bits(*value)),
            _ => Err(PyTypeError::new_err(
                "an expression has no value before the program runs; te.sqrt, te.exp and their like take expressions",
            )),
        }
    }

    fn __index__(&self) -> PyResult<i128> {
        self.__int__()
    }

    fn __repr__(&self) -> String {
        body_texts(&Body::Plain(vec![self.expr.clone()])).concat()
    }
}

/// Factors of a power that is written as a product.
const MAX_PRODUCT: u32 = 8;

#[pymethods]
impl Reduce {
    /// Element type, as a string.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.reduction.identity[self.index].dtype().name()
    }

    /// Which component of the reduction it is.
    #[getter]
    fn value_index(&self) -> usize {
        self.index
    }

    /// The axes that are folded away.
    #[getter]
    fn axis<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, Axis>>> {
        self.reduction.axes.iter().map(|axis| Axis::wrap(py, axis.clone())).collect()
    }

    fn __repr__(&self) -> String {
        body_texts(&Body::Reduce(Box::new(self.reduction.clone()))).swap_remove(self.index)
    }
}

/// A function of expressions, by its name in text.
#[pyfunction]
#[pyo3(signature = (name, *args))]
fn call<'py>(py: Python<'py>, name: &str, args: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PrimExpr>> {
    let intrinsic = Intrinsic::ALL.into_iter().find(|i| i.name() == name);
    let Some(intrinsic) = intrinsic else {
        return Err(PyValueError::new_err(format!("there is no function `{name}`")));
    };
    let args: Vec<Object<'py>> = args.iter().collect();
    let measure = Measure::over(&args.iter().collect::<Vec<_>>())?;
    let args = args.iter().map(expr_of).collect::<PyResult<_>>()?;
    wrap_measured(py, operators::call(intrinsic, args).or_raise()?, measure)
}

/// An operation of two expressions, by name: `+`, `truncdiv`, `max`, ….
#[pyfunction]
fn binary<'py>(
    py: Python<'py>,
    name: &str,
    a: &Object<'py>,
    b: &Object<'py>,
) -> PyResult<Bound<'py, PrimExpr>> {
    let op = match name {
        "add" => BinaryOp::Add,
        "subtract" => BinaryOp::Sub,
        "multiply" => BinaryOp::Mul,
        "div" | "truncdiv" => BinaryOp::Div,
        "truncmod" => BinaryOp::TruncMod,
        "floordiv" => BinaryOp::FloorDiv,
        "floormod" => BinaryOp::FloorMod,
        "min" => BinaryOp::Min,
        "max" => BinaryOp::Max,
        other => return Err(PyValueError::new_err(format!("there is no operation `{other}`"))),
    };
    let measure = Measure::over(&[a, b])?;
    let (a, b) = operands(a, b)?;
    wrap_measured(py, operators::binary(op, a, b).or_raise()?, measure)
}

/// Whether `all` or `any` of the conditions hold.
#[pyfunction]
#[pyo3(signature = (name, *conditions))]
fn joined<'py>(
    py: Python<'py>,
    name: &str,
    conditions: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PrimExpr>> {
    let op = if name == "all" { BinaryOp::And } else { BinaryOp::Or };
    let all: Vec<Object<'py>> = conditions.iter().collect();
    // They are joined one after another, each join a step deeper.
    let measure = Measure::over(&all.iter().collect::<Vec<_>>())?.deeper(all.len());
    let mut conditions = all.into_iter();
    let Some(first) = conditions.next() else {
        return Err(PyTypeError::new_err(format!("te.{name} takes at least one condition")));
    };
    let mut whole = expr_of(&first)?;
    // That a condition alone is a bool shows where it is joined with itself.
    operators::binary(op, whole.clone(), whole.clone()).or_raise()?;
    for condition in conditions {
        whole = operators::binary(op, whole, expr_of(&condition)?).or_raise()?;
    }
    wrap_measured(py, whole, measure?)
}

/// `cond ? a : b`: `select` evaluates both, `if_then_else` the taken one.
#[pyfunction]
fn choose<'py>(
    py: Python<'py>,
    name: &str,
    cond: &Object<'py>,
    a: &Object<'py>,
    b: &Object<'py>,
) -> PyResult<Bound<'py, PrimExpr>> {
    let measure = Measure::over(&[cond, a, b])?;
    let (cond, (a, b)) = (expr_of(cond)?, operands(a, b)?);
    let made = match name {
        "select" => operators::select(cond, a, b),
        "if_then_else" => operators::if_then_else(cond, a, b),
        other => return Err(PyValueError::new_err(format!("there is no choice `{other}`"))),
    };
    wrap_measured(py, made.or_raise()?, measure)
}

/// The value in another element type.
#[pyfunction]
fn cast<'py>(py: Python<'py>, dtype: &Object<'py>, value: &Object<'py>) -> PyResult<Bound<'py, PrimExpr>> {
    let measure = Measure::over(&[value])?;
    wrap_measured(py, operators::convert(expr_of(value)?, dtype_of(dtype)?), measure)
}

/// A constant; of its own type where none is named.
#[pyfunction]
#[pyo3(signature = (value, dtype=None))]
fn constant<'py>(
    py: Python<'py>,
    value: &Object<'py>,
    dtype: Option<&Object<'py>>,
) -> PyResult<Bound<'py, PrimExpr>> {
    let expr = match dtype {
        None => expr_of(value)?,
        Some(dtype) => crate::constant::fitted(value, dtype_of(dtype)?, "the constant")?,
    };
    if expr.as_int().is_none() && expr.as_float().is_none() {
        return Err(PyTypeError::new_err(format!("a constant of that type cannot be made from {value}")));
    }
    wrap(py, expr)
}

/// A new variable; a size is known to be at least 0.
#[pyfunction]
fn variable<'py>(
    py: Python<'py>,
    name: &str,
    dtype: &Object<'py>,
    is_size: bool,
) -> PyResult<Bound<'py, PrimExpr>> {
    let dtype = dtype_of(dtype)?;
    let var = if is_size { Var::size(name, dtype) } else { Var::new(name, dtype) };
    wrap(py, var.expr())
}

/// The smallest or the largest finite value of a type: `min` or `max`.
#[pyfunction]
fn limit<'py>(py: Python<'py>, which: &str, dtype: &Object<'py>) -> PyResult<Bound<'py, PrimExpr>> {
    let (lo, hi) = operators::limits(dtype_of(dtype)?);
    wrap(py, if which == "min" { lo } else { hi })
}
