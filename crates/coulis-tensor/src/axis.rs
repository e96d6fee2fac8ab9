//! Size variables and iteration variables.
//!
//! An iteration variable is a variable with a domain and a kind. Those of a reduction are made here; those of the
//! data come with a compute, and a schedule makes more. Source: seed 003 (`te.var`, `te.reduce_axis`).

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use coulis_ir::{DType, Expr, Var};

use crate::registry;

/// A new `int32` variable of unknown sign, as `te.var` makes one; it prints as `T.int32()`. As an extent it is at
/// least 0 whatever its kind, since shapes are checked at the call.
pub fn var(name: &str) -> Var {
    Var::new(name, DType::I32)
}

/// A new size of an integer type; it is at least 0.
pub fn var_of(name: &str, dtype: DType) -> Var {
    Var::size(name, dtype)
}

/// What an axis runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IterKind {
    /// A dimension of the result: iterations are independent.
    Data,
    /// A dimension that is folded away, or a fusion with one.
    Reduce,
}

impl IterKind {
    /// The name in listings: `DataPar` or `CommReduce`.
    pub const fn name(self) -> &'static str {
        match self {
            IterKind::Data => "DataPar",
            IterKind::Reduce => "CommReduce",
        }
    }

    /// The words in errors: `data axis` or `reduce axis`.
    pub const fn words(self) -> &'static str {
        match self {
            IterKind::Data => "data axis",
            IterKind::Reduce => "reduce axis",
        }
    }
}

/// An iteration variable; equal when it is the same one.
#[derive(Clone)]
pub struct IterVar(Arc<IterVarData>);

struct IterVarData {
    var: Var,
    kind: IterKind,
    dom: Option<(Expr, Expr)>,
}

impl IterVar {
    /// A new axis of domain `[min, min + extent)`.
    pub fn new(var: Var, kind: IterKind, min: Expr, extent: Expr) -> IterVar {
        registry::add_axis(var.id());
        IterVar(Arc::new(IterVarData { var, kind, dom: Some((min, extent)) }))
    }

    /// A new axis whose domain follows from the axes it is made from.
    pub fn derived(var: Var, kind: IterKind) -> IterVar {
        registry::add_axis(var.id());
        IterVar(Arc::new(IterVarData { var, kind, dom: None }))
    }

    /// The variable.
    pub fn var(&self) -> &Var {
        &self.0.var
    }

    /// The variable as an expression.
    pub fn expr(&self) -> Expr {
        self.0.var.expr()
    }

    /// Name hint.
    pub fn name(&self) -> &str {
        self.0.var.name()
    }

    /// Type of the index.
    pub fn dtype(&self) -> DType {
        self.0.var.dtype()
    }

    /// What it runs over.
    pub fn kind(&self) -> IterKind {
        self.0.kind
    }

    /// `(min, extent)` of an axis of a compute; `None` for an axis that a schedule made.
    pub fn dom(&self) -> Option<(&Expr, &Expr)> {
        self.0.dom.as_ref().map(|(min, extent)| (min, extent))
    }

    /// Steps from 0 on, where they are a constant.
    pub fn length(&self) -> Option<i64> {
        let (min, extent) = self.dom()?;
        extent.as_int().filter(|_| min.is_int(0)).and_then(|n| i64::try_from(n).ok())
    }
}

impl Drop for IterVarData {
    fn drop(&mut self) {
        registry::remove_axis(self.var.id());
    }
}

impl PartialEq for IterVar {
    fn eq(&self, other: &IterVar) -> bool {
        self.0.var == other.0.var
    }
}

impl Eq for IterVar {}

impl Hash for IterVar {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.var.hash(state);
    }
}

impl fmt::Debug for IterVar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({:?})", self.kind().name(), self.0.var)
    }
}

impl From<&IterVar> for Expr {
    fn from(axis: &IterVar) -> Expr {
        axis.expr()
    }
}

impl From<IterVar> for Expr {
    fn from(axis: IterVar) -> Expr {
        axis.expr()
    }
}

/// A reduce axis over `[0, extent)`. Its type is that of the extent. The extent may be symbolic, and may depend on
/// data axes and on tensor reads.
pub fn reduce_axis(extent: impl Into<Expr>, name: &str) -> IterVar {
    let extent = extent.into();
    reduce_axis_of(Expr::int_of(0, index_dtype(&extent)), extent, name)
}

/// A reduce axis over `[min, min + extent)`, of nothing where a constant extent is negative; the wider type of the two is its type.
pub fn reduce_axis_of(min: impl Into<Expr>, extent: impl Into<Expr>, name: &str) -> IterVar {
    let (min, extent) = Expr::promoted(min.into(), extent.into());
    let dtype = index_dtype(&extent);
    let is_negative = extent.as_int().is_some_and(|extent| extent < 0);
    let extent = if is_negative { Expr::int_of(0, dtype) } else { extent };
    IterVar::new(Var::size(name, dtype), IterKind::Reduce, min.cast(dtype), extent.cast(dtype))
}

/// The type of an index that runs to `extent`: its own, `int32` where it is not a signed integer of 32 or 64 bits.
pub(crate) fn index_dtype(extent: &Expr) -> DType {
    match extent.dtype() {
        DType::I64 | DType::U64 | DType::U32 => DType::I64,
        DType::Bool
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::U8
        | DType::U16
        | DType::F8E4M3
        | DType::F8E5M2
        | DType::F16
        | DType::BF16
        | DType::F32
        | DType::F64 => DType::I32,
    }
}
