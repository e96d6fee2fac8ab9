//! The intermediate representation of coulis: what every door, pass, executor and emitter shares.
//!
//! One [`Kernel`] goes through three [`Form`]s (Nest, Tiled, Flat). Expressions are pure and interned; effects live
//! in statements only; buffers carry a scope and a layout. A kernel that the verifier accepted is a [`Checked`]
//! one, and emitters and executors take nothing else.

#![forbid(unsafe_code)]

pub mod args;
pub mod atom;
pub mod buffer;
pub mod chains;
pub mod counts;
pub mod device;
pub mod dtype;
pub mod eval;
pub mod expr;
pub mod float8;
pub mod form;
pub mod hash;
pub mod index;
pub mod interrupt;
pub mod kernel;
pub mod math;
pub mod op;
pub mod position;
pub mod print;
pub mod reducer;
pub mod remark;
pub mod simplify;
pub mod stack;
pub mod stmt;
pub mod struct_eq;
pub mod target;
pub mod ticket;
pub mod var;
pub mod verify;
pub mod visit;

pub use atom::{Atom, AtomCall, Element, Signature};
pub use buffer::{Buffer, BufferData, BufferId, MemScope};
pub use dtype::{DType, Ty};
pub use expr::{Expr, Node};
pub use form::{Checked, Form};
pub use kernel::{Attr, Kernel, Param};
pub use op::{BinaryOp, Intrinsic, floor_div};
pub use reducer::{Claims, ErrorBound, Field, Lambda, NanPolicy, QuickStep, Reducer, Rewalk, Ties};
pub use stmt::{
    ExecScope, LoopKind, MAX_BLOCK_THREADS, MAX_CLUSTER_BLOCKS, Role, ScopeId, Site, Stmt, SyncKind,
    ThreadTag, TileCall,
};
pub use target::{BlockLimits, Multiprocessor, Target, TargetKind};
pub use var::{Var, VarId, VarKind};

pub use coulis_layout::{counted, quoted_names};
