//! Kernels: a function of buffers and scalars with one body.

use std::collections::BTreeMap;

use crate::buffer::Buffer;
use crate::expr::Var;
use crate::form::Form;
use crate::stmt::Stmt;

/// A value of an attribute or option.
#[derive(Clone, Debug, PartialEq)]
pub enum Attr {
    /// `T.bool(True)`
    Bool(bool),
    /// An integer.
    Int(i64),
    /// A string.
    Str(String),
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub enum Param {
    /// A pointer, matched to a buffer. Free variables in the buffer's shape, strides and offset are deduced from
    /// the argument.
    Buffer {
        /// The handle as the function's signature names it.
        handle: Var,
        /// What it is matched to. Bounds of every access come from here.
        buffer: Buffer,
    },
    /// A scalar.
    Scalar(Var),
}

/// A kernel in one of the three forms.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// Function name.
    pub name: String,
    /// Parameters in order.
    pub params: Vec<Param>,
    /// Function attributes, printed as `T.func_attr`.
    pub attrs: BTreeMap<String, Attr>,
    /// Which nodes may occur; see [`Form`].
    pub form: Form,
    /// The body.
    pub body: Stmt,
}

impl Kernel {
    /// The buffers of the parameters, in order.
    pub fn param_buffers(&self) -> impl Iterator<Item = &Buffer> {
        self.params.iter().filter_map(|p| match p {
            Param::Buffer { buffer, .. } => Some(buffer),
            Param::Scalar(_) => None,
        })
    }

    /// The name by which users give the argument of a buffer parameter: the handle's without a trailing `_ptr`.
    pub fn argument_name(handle: &Var) -> &str {
        handle.name().strip_suffix("_ptr").unwrap_or(handle.name())
    }
}

impl PartialEq for Kernel {
    /// Equal up to the identity of variables and buffers; names count, ids do not.
    fn eq(&self, other: &Kernel) -> bool {
        crate::struct_eq::kernels_equal(self, other)
    }
}
