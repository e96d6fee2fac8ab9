//! The three forms of a kernel, as data, and the permit that the verifier gives.

use crate::expr::Node;
use crate::kernel::Kernel;
use crate::stmt::{LoopKind, Stmt};
use crate::visit::{for_each_expr, for_each_stmt, stmt_exprs};

/// Which nodes may occur in a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Loop nests over buffers with one index a dimension: what a schedule makes.
    Nest,
    /// Kernels with scope ids and cooperative tile calls.
    Tiled,
    /// What emitters and executors take: one-dimensional accesses, vectors, no tile calls.
    Flat,
}

impl Form {
    /// The name in text and errors.
    pub const fn name(self) -> &'static str {
        match self {
            Form::Nest => "Nest",
            Form::Tiled => "Tiled",
            Form::Flat => "Flat",
        }
    }
}

impl Form {
    /// The form that a body has by its nodes: Tiled where scope ids, tile buffers or tile calls occur; else Nest
    /// where an access has not exactly one index, its buffer has strides or an offset, or a loop is vectorised; else Flat. A
    /// body of accesses to compact memory by one index is both Nest and Flat, and is taken for Flat.
    pub fn infer(body: &Stmt) -> Form {
        let (mut is_tiled, mut is_nest) = (false, false);
        for_each_stmt(body, &mut |stmt| {
            match stmt {
                Stmt::DeviceEntry
                | Stmt::ScopeIds { .. }
                | Stmt::AllocBuffer(_)
                | Stmt::View { .. }
                | Stmt::Tile(_) => is_tiled = true,
                Stmt::Store { buffer, indices, .. } => is_nest |= indices.len() != 1 || !buffer.is_plain(),
                Stmt::For { kind, .. } => is_nest |= *kind == LoopKind::Vectorized,
                Stmt::Seq(_)
                | Stmt::If { .. }
                | Stmt::Let { .. }
                | Stmt::Allocate { .. }
                | Stmt::Annotate { .. }
                | Stmt::LaunchThread { .. }
                | Stmt::Atom(_)
                | Stmt::Sync(_) => {}
            }
            for expr in stmt_exprs(stmt) {
                for_each_expr(expr, &mut |e| {
                    if let Node::Load(buffer, indices) = e.node() {
                        is_nest |= indices.len() != 1 || !buffer.is_plain();
                    }
                });
            }
        });
        match (is_tiled, is_nest) {
            (true, _) => Form::Tiled,
            (false, true) => Form::Nest,
            (false, false) => Form::Flat,
        }
    }
}

/// Whether a node may occur: in Nest, in Tiled, in Flat form.
pub type Allowed = [bool; 3];

/// The table of statements and forms. The verifier and the documentation read it.
pub const STMT_FORMS: &[(&str, Allowed)] = &[
    ("seq", [true, true, true]),
    ("for", [true, true, true]),
    ("for vectorized", [true, true, false]),
    ("if", [true, true, true]),
    ("store", [true, true, true]),
    ("let", [true, true, true]),
    ("allocate", [true, true, true]),
    ("annotate", [true, true, true]),
    ("launch_thread", [true, true, true]),
    ("device_entry", [false, true, false]),
    ("scope_ids", [false, true, false]),
    ("alloc_buffer", [false, true, false]),
    ("view", [false, true, false]),
    ("tile call", [false, true, false]),
    ("atom", [true, true, true]),
    ("sync", [true, true, true]),
    ("access with one index a dimension", [true, true, false]),
    ("access by an offset", [true, true, false]),
    ("vector expression", [false, true, true]),
];

impl Stmt {
    /// The name of its row in [`STMT_FORMS`].
    pub fn kind_name(&self) -> &'static str {
        match self {
            Stmt::Seq(_) => "seq",
            Stmt::For { kind: crate::LoopKind::Vectorized, .. } => "for vectorized",
            Stmt::For { .. } => "for",
            Stmt::If { .. } => "if",
            Stmt::Store { .. } => "store",
            Stmt::Let { .. } => "let",
            Stmt::Allocate { .. } => "allocate",
            Stmt::Annotate { .. } => "annotate",
            Stmt::LaunchThread { .. } => "launch_thread",
            Stmt::DeviceEntry => "device_entry",
            Stmt::ScopeIds { .. } => "scope_ids",
            Stmt::AllocBuffer(_) => "alloc_buffer",
            Stmt::View { .. } => "view",
            Stmt::Tile(_) => "tile call",
            Stmt::Atom(_) => "atom",
            Stmt::Sync(_) => "sync",
        }
    }
}

/// Whether the node of that row may occur in `form`; false for an unknown row.
pub fn is_allowed(row: &str, form: Form) -> bool {
    let column = match form {
        Form::Nest => 0,
        Form::Tiled => 1,
        Form::Flat => 2,
    };
    STMT_FORMS.iter().any(|(name, allowed)| *name == row && allowed[column])
}

/// A kernel that the verifier accepted. Only the verifier makes one; emitters and executors take nothing else.
#[derive(Clone, Debug)]
pub struct Checked(Kernel);

impl Checked {
    /// For the verifier only.
    pub(crate) fn permit(kernel: Kernel) -> Checked {
        Checked(kernel)
    }

    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.0
    }
}
