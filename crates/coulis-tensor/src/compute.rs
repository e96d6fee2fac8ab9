//! Computes: a tensor, or a tuple of tensors of one shape, defined by an expression of its indices.

use coulis_ir::visit::for_each_expr;
use coulis_ir::{Buffer, DType, Expr, MemScope, Node, Var};

use crate::axis::{IterKind, IterVar, index_dtype};
use crate::error::TensorError;
use crate::reduction::Reduction;
use crate::registry;
use crate::tensor::{Op, OpKind, Tensor, check_rank, check_shape, check_size, output_buffer};

/// What a compute computes.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// One expression a component.
    Plain(Vec<Expr>),
    /// A fold; one component a state field.
    Reduce(Box<Reduction>),
}

/// One component of a tuple body, for doors that build bodies piece by piece.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// An expression without a reduction.
    Plain(Expr),
    /// A component of a reduction.
    Reduce(Box<Reduction>, usize),
}

impl Term {
    /// The expression, for use inside a larger one; a reduction cannot stand there.
    pub fn into_expr(self, tensor: &str) -> Result<Expr, TensorError> {
        match self {
            Term::Plain(expr) => Ok(expr),
            Term::Reduce(..) => Err(TensorError::NestedReduction { tensor: tensor.to_owned() }),
        }
    }
}

/// What the closure of a compute may return.
pub trait IntoBody {
    /// The body of the compute named `tensor`.
    fn into_body(self, tensor: &str) -> Result<Body, TensorError>;
}

impl IntoBody for Body {
    fn into_body(self, _tensor: &str) -> Result<Body, TensorError> {
        Ok(self)
    }
}

impl IntoBody for Expr {
    fn into_body(self, _tensor: &str) -> Result<Body, TensorError> {
        Ok(Body::Plain(vec![self]))
    }
}

impl IntoBody for Vec<Expr> {
    fn into_body(self, _tensor: &str) -> Result<Body, TensorError> {
        Ok(Body::Plain(self))
    }
}

impl IntoBody for Reduction {
    fn into_body(self, _tensor: &str) -> Result<Body, TensorError> {
        Ok(Body::Reduce(Box::new(self)))
    }
}

impl<T: IntoBody> IntoBody for Result<T, TensorError> {
    fn into_body(self, tensor: &str) -> Result<Body, TensorError> {
        self?.into_body(tensor)
    }
}

impl IntoBody for Vec<Term> {
    fn into_body(self, tensor: &str) -> Result<Body, TensorError> {
        let found = |term: &Term| match term {
            Term::Plain(_) => "no reduction",
            Term::Reduce(..) => "a reduction",
        };
        for (component, term) in self.iter().enumerate() {
            if found(term) != found(&self[0]) {
                let tensor = tensor.to_owned();
                return Err(TensorError::MixedTuple { tensor, component, found: found(term) });
            }
        }
        let mut plain = Vec::new();
        let mut whole: Option<Box<Reduction>> = None;
        for (component, term) in self.into_iter().enumerate() {
            match term {
                Term::Plain(expr) => plain.push(expr),
                Term::Reduce(reduction, index) => {
                    let differs = match &whole {
                        Some(first) => first.first_difference(&reduction),
                        None => None,
                    };
                    let differs = differs.or((index != component).then_some("position"));
                    if let Some(what) = differs {
                        let tensor = tensor.to_owned();
                        return Err(TensorError::DifferentReductions { tensor, component, what });
                    }
                    whole.get_or_insert(reduction);
                }
            }
        }
        match whole {
            Some(reduction) => Ok(Body::Reduce(reduction)),
            None => Ok(Body::Plain(plain)),
        }
    }
}

impl Body {
    /// Types of the components.
    pub fn dtypes(&self) -> Vec<DType> {
        match self {
            Body::Plain(exprs) => exprs.iter().map(Expr::dtype).collect(),
            Body::Reduce(reduction) => reduction.identity.iter().map(Expr::dtype).collect(),
        }
    }

    /// Every expression in which tensors may be read, domains of reduce axes included.
    pub fn exprs(&self) -> Vec<&Expr> {
        match self {
            Body::Plain(exprs) => exprs.iter().collect(),
            Body::Reduce(r) => {
                let doms = r.axes.iter().filter_map(IterVar::dom).flat_map(|(min, extent)| [min, extent]);
                let quick = r.quick.as_ref();
                let lambdas =
                    [Some(&r.combine), r.step.as_ref(), quick.map(|q| &q.step), quick.map(|q| &q.close)];
                let lambdas = lambdas.into_iter().flatten();
                r.sources
                    .iter()
                    .chain(quick.into_iter().flat_map(|q| &q.sources))
                    .chain(&r.condition)
                    .chain(&r.init)
                    .chain(doms)
                    .chain(lambdas.flat_map(|l| &l.body))
                    .collect()
            }
        }
    }
}

/// A tensor of that shape whose element at the axes is the closure's expression or reduction. Axes are named
/// `i`, or `i` and `j`, or `i0`, `i1`, …; [`compute_axes`] names them.
pub fn compute<B: IntoBody>(
    shape: &[Expr],
    name: &str,
    body: impl FnOnce(&[Var]) -> B,
) -> Result<Tensor, TensorError> {
    compute_axes(shape, &default_names(shape.len()), name, body)
}

/// As [`compute`], with names for the axes.
pub fn compute_axes<B: IntoBody, N: AsRef<str>>(
    shape: &[Expr],
    axis_names: &[N],
    name: &str,
    body: impl FnOnce(&[Var]) -> B,
) -> Result<Tensor, TensorError> {
    let op = make(shape, axis_names, None, name, Arity::One, body)?;
    Ok(op.tensors().remove(0))
}

/// Several tensors of one shape from one tuple body; they are named `name.v0`, `name.v1`, ….
pub fn compute_tuple<B: IntoBody>(
    shape: &[Expr],
    name: &str,
    body: impl FnOnce(&[Var]) -> B,
) -> Result<Vec<Tensor>, TensorError> {
    compute_tuple_axes(shape, &default_names(shape.len()), name, body)
}

/// As [`compute_tuple`], with names for the axes.
pub fn compute_tuple_axes<B: IntoBody, N: AsRef<str>>(
    shape: &[Expr],
    axis_names: &[N],
    name: &str,
    body: impl FnOnce(&[Var]) -> B,
) -> Result<Vec<Tensor>, TensorError> {
    Ok(make(shape, axis_names, None, name, Arity::Any, body)?.tensors())
}

/// As [`compute_tuple_axes`], with the strides in elements of every output said, one a dimension.
pub fn compute_tuple_strided<B: IntoBody, N: AsRef<str>>(
    shape: &[Expr],
    axis_names: &[N],
    strides: &[Expr],
    name: &str,
    body: impl FnOnce(&[Var]) -> B,
) -> Result<Vec<Tensor>, TensorError> {
    if strides.len() != shape.len() {
        let (wanted, found) = (shape.len(), strides.len());
        return Err(TensorError::StrideCount { tensor: name.to_owned(), wanted, found });
    }
    Ok(make(shape, axis_names, Some(strides), name, Arity::Any, body)?.tensors())
}

#[derive(PartialEq)]
enum Arity {
    One,
    Any,
}

fn default_names(rank: usize) -> Vec<String> {
    match rank {
        0 => Vec::new(),
        1 => vec!["i".to_owned()],
        2 => vec!["i".to_owned(), "j".to_owned()],
        more => (0..more).map(|d| format!("i{d}")).collect(),
    }
}

fn make<B: IntoBody, N: AsRef<str>>(
    shape: &[Expr],
    axis_names: &[N],
    strides: Option<&[Expr]>,
    name: &str,
    arity: Arity,
    body: impl FnOnce(&[Var]) -> B,
) -> Result<Op, TensorError> {
    check_shape(name, shape)?;
    if axis_names.len() != shape.len() {
        let (wanted, found) = (shape.len(), axis_names.len());
        return Err(TensorError::AxisCount { tensor: name.to_owned(), wanted, found });
    }
    let axes: Vec<IterVar> = shape
        .iter()
        .zip(axis_names)
        .map(|(extent, axis)| {
            let dtype = index_dtype(extent);
            let var = Var::size(axis.as_ref(), dtype);
            IterVar::new(var, IterKind::Data, Expr::int_of(0, dtype), extent.clone().cast(dtype))
        })
        .collect();
    let vars: Vec<Var> = axes.iter().map(|axis| axis.var().clone()).collect();
    let body = body(&vars).into_body(name)?;
    let dtypes = body.dtypes();
    if dtypes.is_empty() || (arity == Arity::One && dtypes.len() != 1) {
        return Err(TensorError::TupleBody { tensor: name.to_owned(), found: dtypes.len() });
    }
    dtypes.iter().try_for_each(|dtype| check_size(name, shape, *dtype))?;
    let inputs = check_body(name, &vars, shape, &body)?;
    let outputs = dtypes
        .iter()
        .enumerate()
        .map(|(component, dtype)| {
            let name = if dtypes.len() == 1 { name.to_owned() } else { format!("{name}.v{component}") };
            match strides {
                None => output_buffer(&name, shape, *dtype),
                Some(strides) => Buffer::new(&name, *dtype, shape.to_vec(), MemScope::Global)
                    .derive(|data| data.strides = strides.to_vec()),
            }
        })
        .collect();
    Ok(Op::new(name, OpKind::Compute { axes, body }, outputs, inputs))
}

/// Checks reads and variables of a body; the operations that it reads.
fn check_body(name: &str, vars: &[Var], shape: &[Expr], body: &Body) -> Result<Vec<Op>, TensorError> {
    if let Body::Plain(exprs) = body {
        for (component, expr) in exprs.iter().enumerate() {
            if expr.lanes() != 1 {
                let tensor = name.to_owned();
                return Err(TensorError::VectorBody { tensor, component, found: expr.ty() });
            }
        }
    }
    let mut known: Vec<&Var> = vars.iter().collect();
    if let Body::Reduce(reduction) = body {
        known.extend(reduction.axes.iter().map(IterVar::var));
    }
    let mut inputs: Vec<Op> = Vec::new();
    let mut fault = None;
    for expr in body.exprs().into_iter().chain(shape) {
        for_each_expr(expr, &mut |e| {
            if fault.is_none() {
                fault = check_node(name, e, &known, &mut inputs).err();
            }
        });
    }
    // What folds such values computes with wider ones.
    let elements: Vec<&Expr> = match body {
        Body::Plain(exprs) => exprs.iter().collect(),
        Body::Reduce(r) => r.sources.iter().chain(&r.condition).chain(&r.init).collect(),
    };
    for expr in elements {
        for_each_expr(expr, &mut |e| {
            if let Node::Binary(op, a, _) = e.node()
                && a.dtype().is_storage_only()
            {
                let wanted = "float16 and wider (`x.astype(\"float32\")` converts)";
                fault.get_or_insert(TensorError::OperandType {
                    operation: op.symbol(),
                    wanted,
                    found: a.dtype(),
                });
            }
        });
    }
    match fault {
        Some(fault) => Err(fault),
        None => Ok(inputs),
    }
}

fn check_node(name: &str, expr: &Expr, known: &[&Var], inputs: &mut Vec<Op>) -> Result<(), TensorError> {
    match expr.node() {
        Node::Var(var) if registry::is_axis(var.id()) && !known.contains(&var) => {
            Err(TensorError::UnlistedAxis { tensor: name.to_owned(), axis: var.name().to_owned() })
        }
        Node::Load(buffer, indices) => {
            check_rank(buffer, indices.len())?;
            for (position, index) in indices.iter().enumerate() {
                if !index.dtype().is_int() || index.lanes() != 1 {
                    let tensor = buffer.name.clone();
                    return Err(TensorError::IndexType { tensor, position, found: index.ty() });
                }
            }
            let op = registry::op_of(buffer.id).ok_or_else(|| TensorError::UnknownBuffer {
                tensor: name.to_owned(),
                buffer: buffer.name.clone(),
            })?;
            if !inputs.contains(&op) {
                inputs.push(op);
            }
            Ok(())
        }
        _ => Ok(()),
    }
}
