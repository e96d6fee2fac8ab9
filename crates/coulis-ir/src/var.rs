//! Variables: loop indices, sizes, strides, parameters, arguments of lambdas, and data pointers.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::dtype::{DType, Ty};
use crate::expr::{Expr, Node};

/// Identity of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct VarId(pub u64);

/// What kind of thing a variable stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VarKind {
    /// A scalar whose sign is not known.
    Plain,
    /// A scalar that is at least 0: a size or an index.
    Size,
    /// A pointer; its dtype field is not looked at.
    Handle,
}

/// A variable: a loop index, a size, a stride, a parameter, a lambda's argument, or a data pointer.
#[derive(Clone)]
pub struct Var(Arc<VarData>);

struct VarData {
    id: VarId,
    name: String,
    dtype: DType,
    kind: VarKind,
}

static NEXT_VAR: AtomicU64 = AtomicU64::new(1);

impl Var {
    fn make(name: &str, dtype: DType, kind: VarKind) -> Var {
        let id = VarId(NEXT_VAR.fetch_add(1, Ordering::Relaxed));
        Var(Arc::new(VarData { id, name: name.to_owned(), dtype, kind }))
    }

    /// A new scalar of unknown sign.
    pub fn new(name: &str, dtype: DType) -> Var {
        Var::make(name, dtype, VarKind::Plain)
    }

    /// A new scalar that analysis may take as at least 0.
    pub fn size(name: &str, dtype: DType) -> Var {
        Var::make(name, dtype, VarKind::Size)
    }

    /// A new pointer.
    pub fn handle(name: &str) -> Var {
        Var::make(name, DType::U64, VarKind::Handle)
    }

    /// A new variable of the same name, type and kind.
    pub fn fresh(&self) -> Var {
        Var::make(&self.0.name, self.0.dtype, self.0.kind)
    }

    /// A new variable of the same type and kind with another name.
    pub fn renamed(&self, name: &str) -> Var {
        Var::make(name, self.0.dtype, self.0.kind)
    }

    /// Identity.
    pub fn id(&self) -> VarId {
        self.0.id
    }

    /// Name hint.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Type of the scalar.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// What it stands for.
    pub fn kind(&self) -> VarKind {
        self.0.kind
    }

    /// This variable as an expression.
    pub fn expr(&self) -> Expr {
        Expr::new(Node::Var(self.clone()), Ty::scalar(self.0.dtype))
    }
}

impl PartialEq for Var {
    fn eq(&self, other: &Var) -> bool {
        self.0.id == other.0.id
    }
}

impl Eq for Var {}

impl PartialOrd for Var {
    fn partial_cmp(&self, other: &Var) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Var {
    fn cmp(&self, other: &Var) -> std::cmp::Ordering {
        self.0.id.cmp(&other.0.id)
    }
}

impl Hash for Var {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.id.hash(state);
    }
}

impl fmt::Debug for Var {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}#{}", self.0.name, self.0.id.0)
    }
}

impl From<&Var> for Expr {
    fn from(var: &Var) -> Expr {
        var.expr()
    }
}

impl From<Var> for Expr {
    fn from(var: Var) -> Expr {
        var.expr()
    }
}
