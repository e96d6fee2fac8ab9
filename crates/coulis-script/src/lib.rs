//! Reads the text form: kernels in the TVMScript dialect of coulis, and schedule traces.
//!
//! Text is parsed as Python and never executed. [`parse_module`] gives kernels whose text is what was read
//! (`coulis_ir::print` and this crate are each other's inverse); [`parse_calls`] gives the lines of a trace as plain
//! calls for whoever knows the primitives. `docs/dialect.md` has the grammar.
//!
//! [`syntax`] turns Python into the small tree of [`tree`] and is the only place that knows the Python parser.

#![forbid(unsafe_code)]

mod access;
mod across;
mod buffers;
mod calls;
mod error;
mod expr;
mod func;
mod layout;
mod module;
mod names;
mod nesting;
mod reducer;
mod stmt;
mod syntax;
mod tile;
mod tree;

pub use calls::{Call, Object, Value, parse_calls};
pub use error::{ParseError, ParseErrorKind};
pub use module::parse_module;
