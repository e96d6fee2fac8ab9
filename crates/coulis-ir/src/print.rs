//! The printer of the text form.

use crate::expr::Expr;
use crate::kernel::Kernel;
use crate::stmt::Stmt;

/// A module of one kernel, as `print(lower(...))` shows it.
pub fn print_module(kernels: &[Kernel]) -> String {
    format!("{kernels:?}")
}

/// A bare function.
pub fn print_kernel(kernel: &Kernel) -> String {
    format!("{kernel:?}")
}

/// A statement by itself; free names print by their hints.
pub fn print_stmt(stmt: &Stmt) -> String {
    format!("{stmt:?}")
}

/// An expression by itself; free names print by their hints.
pub fn print_expr(expr: &Expr) -> String {
    format!("{expr:?}")
}
