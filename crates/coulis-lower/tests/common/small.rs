//! Small kernels and single passes over them, in few words.

use std::collections::BTreeMap;

use coulis_ir::expr::{Expr, Var};
use coulis_ir::{Buffer, DType, Form, Kernel, LoopKind, MemScope, Stmt, Target};
use coulis_lower::{LowerError, Options, PASSES};

use super::cpu;

/// A kernel without parameters.
pub fn kernel(body: Stmt, form: Form) -> Kernel {
    Kernel { name: "main".to_owned(), params: Vec::new(), attrs: BTreeMap::new(), form, body }
}

/// What the pass of that name makes of such a body, for the machine.
pub fn try_pass_for(target: &Target, name: &str, body: Stmt) -> Result<Stmt, LowerError> {
    let options = Options { target, simple_mode: false };
    let pass = PASSES.iter().find(|p| p.name == name).expect("a pass of that name");
    Ok((pass.run)(kernel(body, pass.from), &options)?.body)
}

/// The same for a processor.
pub fn try_pass(name: &str, body: Stmt) -> Result<Stmt, LowerError> {
    try_pass_for(&cpu(), name, body)
}

/// A variable of type `int32`.
pub fn var(name: &str) -> Var {
    Var::new(name, DType::I32)
}

/// A size of type `int32`.
pub fn size(name: &str) -> Expr {
    Var::size(name, DType::I32).expr()
}

/// A constant of type `int32`.
pub fn int(value: i32) -> Expr {
    Expr::int(value)
}

/// A constant of type `float32`.
pub fn float(value: f64) -> Expr {
    Expr::float(value, DType::F32)
}

/// So many elements of type `float32` in global memory.
pub fn buffer(name: &str, extent: impl Into<Expr>) -> Buffer {
    Buffer::new(name, DType::F32, vec![extent.into()], MemScope::Global)
}

/// A loop of so many lanes.
pub fn vectorized(var: &Var, lanes: i32, body: Stmt) -> Stmt {
    Stmt::for_(var.clone(), int(0), int(lanes), LoopKind::Vectorized, body)
}

/// Compares what passes make of a body, one after another, with its text.
#[track_caller]
pub fn check(passes: &[&str], body: Stmt, want: &str) {
    let found = passes.iter().fold(body, |body, name| try_pass(name, body).expect("the pass runs"));
    let got = coulis_ir::print::print_stmt(&found);
    assert_eq!(got.trim_end(), want.trim(), "found:\n{got}");
}
