//! Tensors and the operations that make them.
//!
//! A shape that contains a bare variable makes a strided, broadcastable buffer with fresh stride variables, since
//! such a tensor may be an argument of any layout; a shape of constants and compound expressions is compact.
//! Source: seed 003.

use std::fmt;
use std::sync::Arc;

use coulis_ir::buffer::{MOST_BYTES, oversize};
use coulis_ir::{Buffer, BufferData, BufferId, DType, Expr, MemScope, Var};

use crate::axis::{IterVar, index_dtype};
use crate::compute::Body;
use crate::error::TensorError;
use crate::registry;

/// What an operation is.
#[derive(Clone, Debug)]
pub enum OpKind {
    /// An input.
    Placeholder,
    /// Values computed from other tensors.
    Compute {
        /// One axis a dimension.
        axes: Vec<IterVar>,
        /// What is computed.
        body: Body,
    },
}

pub(crate) struct OpData {
    name: String,
    kind: OpKind,
    outputs: Vec<Buffer>,
    inputs: Vec<Op>,
}

impl Drop for OpData {
    fn drop(&mut self) {
        for output in &self.outputs {
            registry::remove_op(output.id);
        }
    }
}

/// An operation; equal when it is the same one.
#[derive(Clone)]
pub struct Op(Arc<OpData>);

impl Op {
    pub(crate) fn new(name: &str, kind: OpKind, outputs: Vec<Buffer>, inputs: Vec<Op>) -> Op {
        let op = Op(Arc::new(OpData { name: name.to_owned(), kind, outputs, inputs }));
        for output in &op.0.outputs {
            registry::add_op(output.id, Arc::downgrade(&op.0));
        }
        op
    }

    pub(crate) fn from_data(data: Arc<OpData>) -> Op {
        Op(data)
    }

    /// Name hint.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// What it is.
    pub fn kind(&self) -> &OpKind {
        &self.0.kind
    }

    /// Buffers of the results; one, or one a component of a tuple.
    pub fn outputs(&self) -> &[Buffer] {
        &self.0.outputs
    }

    /// The operations it reads, in order of first read.
    pub fn inputs(&self) -> &[Op] {
        &self.0.inputs
    }

    /// Result `index` as a tensor.
    pub fn tensor(&self, index: usize) -> Option<Tensor> {
        (index < self.0.outputs.len()).then(|| Tensor { op: self.clone(), index })
    }

    /// All results.
    pub fn tensors(&self) -> Vec<Tensor> {
        (0..self.0.outputs.len()).map(|index| Tensor { op: self.clone(), index }).collect()
    }

    /// Axes of the dimensions; empty for a placeholder.
    pub fn axes(&self) -> &[IterVar] {
        match &self.0.kind {
            OpKind::Placeholder => &[],
            OpKind::Compute { axes, .. } => axes,
        }
    }

    /// Axes that are folded away; empty for anything but a reduction.
    pub fn reduce_axes(&self) -> &[IterVar] {
        match &self.0.kind {
            OpKind::Compute { body: Body::Reduce(reduction), .. } => &reduction.axes,
            OpKind::Placeholder | OpKind::Compute { .. } => &[],
        }
    }
}

impl PartialEq for Op {
    fn eq(&self, other: &Op) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Op {}

impl fmt::Debug for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Op({})", self.0.name)
    }
}

/// One result of an operation.
#[derive(Clone, PartialEq, Eq)]
pub struct Tensor {
    op: Op,
    index: usize,
}

impl Tensor {
    /// The operation that makes it.
    pub fn op(&self) -> &Op {
        &self.op
    }

    /// Which of the operation's results it is.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Name hint: the operation's, with `.v0`, `.v1`, … for the components of a tuple.
    pub fn name(&self) -> &str {
        &self.buffer().name
    }

    /// The buffer that backs it.
    pub fn buffer(&self) -> &Buffer {
        &self.op.0.outputs[self.index]
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.buffer().dtype
    }

    /// Extents.
    pub fn shape(&self) -> &[Expr] {
        &self.buffer().shape
    }

    /// The element at `indices`: an array, a tuple of mixed index types, or `()` for a tensor without dimensions.
    /// A wrong number of indices is reported by the compute that the expression becomes part of.
    pub fn at(&self, indices: impl Indices) -> Expr {
        self.buffer().at(indices.into_exprs())
    }

    /// The element at `indices`, or why there is none.
    pub fn try_at(&self, indices: impl Indices) -> Result<Expr, TensorError> {
        let indices = indices.into_exprs();
        check_rank(self.buffer(), indices.len())?;
        Ok(self.buffer().at(indices))
    }
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({})", self.name())
    }
}

pub(crate) fn check_rank(buffer: &Buffer, found: usize) -> Result<(), TensorError> {
    if buffer.rank() == found {
        return Ok(());
    }
    Err(TensorError::IndexCount { tensor: buffer.name.clone(), wanted: buffer.rank(), found })
}

/// What may stand between the brackets of a read.
pub trait Indices {
    /// One expression a dimension.
    fn into_exprs(self) -> Vec<Expr>;
}

impl<T: Into<Expr>, const N: usize> Indices for [T; N] {
    fn into_exprs(self) -> Vec<Expr> {
        self.into_iter().map(Into::into).collect()
    }
}

impl Indices for Vec<Expr> {
    fn into_exprs(self) -> Vec<Expr> {
        self
    }
}

impl Indices for &[Expr] {
    fn into_exprs(self) -> Vec<Expr> {
        self.to_vec()
    }
}

impl Indices for &[Var] {
    fn into_exprs(self) -> Vec<Expr> {
        self.iter().map(Var::expr).collect()
    }
}

impl Indices for () {
    fn into_exprs(self) -> Vec<Expr> {
        Vec::new()
    }
}

macro_rules! tuple_indices {
    ($($t:ident),+) => {
        impl<$($t: Into<Expr>),+> Indices for ($($t,)+) {
            #[allow(non_snake_case)]
            fn into_exprs(self) -> Vec<Expr> {
                let ($($t,)+) = self;
                vec![$($t.into()),+]
            }
        }
    };
}

tuple_indices!(A);
tuple_indices!(A, B);
tuple_indices!(A, B, C);
tuple_indices!(A, B, C, D);
tuple_indices!(A, B, C, D, E);
tuple_indices!(A, B, C, D, E, F);

/// An input of that shape. Extents are integer expressions; a bare variable among them gives the tensor fresh
/// stride variables named `stride`.
pub fn placeholder(shape: &[Expr], dtype: DType, name: &str) -> Result<Tensor, TensorError> {
    check_shape(name, shape)?;
    check_size(name, shape, dtype)?;
    let buffer = output_buffer(name, shape, dtype);
    single(Op::new(name, OpKind::Placeholder, vec![buffer], Vec::new()))
}

/// An input of that shape and those strides, in elements, one a dimension. Strides may be zero or negative; the
/// argument's pointer is that of the element at index 0 in every dimension.
pub fn placeholder_strided(
    shape: &[Expr],
    strides: &[Expr],
    dtype: DType,
    name: &str,
) -> Result<Tensor, TensorError> {
    check_shape(name, shape)?;
    check_size(name, shape, dtype)?;
    if shape.len() != strides.len() {
        return Err(TensorError::StrideCount {
            tensor: name.to_owned(),
            wanted: shape.len(),
            found: strides.len(),
        });
    }
    check_integers(name, "stride", strides)?;
    let buffer = Buffer::new(name, dtype, shape.to_vec(), MemScope::Global)
        .derive(|data| data.strides = strides.to_vec());
    single(Op::new(name, OpKind::Placeholder, vec![buffer], Vec::new()))
}

fn single(op: Op) -> Result<Tensor, TensorError> {
    Ok(Tensor { op, index: 0 })
}

/// The buffer of a tensor of that shape.
pub(crate) fn output_buffer(name: &str, shape: &[Expr], dtype: DType) -> Buffer {
    let strided = shape.iter().any(|extent| extent.as_var().is_some());
    let strides = if strided {
        shape.iter().map(|extent| Var::new("stride", index_dtype(extent)).expr()).collect()
    } else {
        Vec::new()
    };
    Buffer::from_data(BufferData {
        id: BufferId(0),
        name: name.to_owned(),
        data: Var::handle(name),
        dtype,
        shape: shape.to_vec(),
        strides,
        elem_offset: Expr::int(0),
        scope: MemScope::Global,
        align: 64,
        layout: None,
        auto_broadcast: strided,
    })
}

pub(crate) fn check_shape(tensor: &str, shape: &[Expr]) -> Result<(), TensorError> {
    check_integers(tensor, "extent", shape)?;
    for (axis, extent) in shape.iter().enumerate() {
        if let Some(value) = extent.as_int().filter(|v| *v < 0) {
            return Err(TensorError::NegativeExtent { tensor: tensor.to_owned(), axis, value });
        }
    }
    Ok(())
}

/// Refuses extents of more bytes than are counted.
pub(crate) fn check_size(tensor: &str, shape: &[Expr], dtype: DType) -> Result<(), TensorError> {
    match oversize(shape, dtype) {
        Some(found) => Err(TensorError::TooLarge { tensor: tensor.to_owned(), found, limit: MOST_BYTES }),
        None => Ok(()),
    }
}

fn check_integers(tensor: &str, what: &'static str, exprs: &[Expr]) -> Result<(), TensorError> {
    for (axis, expr) in exprs.iter().enumerate() {
        if !expr.dtype().is_int() || expr.lanes() != 1 {
            return Err(TensorError::NotAnInteger {
                tensor: tensor.to_owned(),
                what,
                axis,
                found: expr.ty(),
            });
        }
    }
    Ok(())
}
