//! A small interpreter of Nest and Flat kernels, to compare meanings before and after lowering.
//!
//! It is slow and strict: reading past a buffer, or deciding by an unwritten value, fails the test. Numbers are
//! integers or `float64`; the tests use values whose sums are exact.

#![allow(dead_code, reason = "each test file uses a part")]

pub mod small;

use std::collections::HashMap;

use coulis_ir::expr::{BinaryOp, Expr, Intrinsic, Node, Var};
use coulis_ir::{Buffer, DType, Kernel, Param, Stmt, Target};
use coulis_lower::{Options, lower};

/// A scalar value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Val {
    /// Integer or bool.
    Int(i128),
    /// Float.
    Float(f64),
    /// Never written.
    Unwritten,
}

/// An argument: flat memory, shape and strides; or a scalar.
#[derive(Clone, Debug)]
pub struct Array {
    /// Elements.
    pub data: Vec<Val>,
    /// Extents.
    pub shape: Vec<i128>,
    /// Strides in elements.
    pub strides: Vec<i128>,
}

/// A CPU.
pub fn cpu() -> Target {
    Target::cpu(64, 2)
}

/// The kernel lowered, and accepted by the verifier.
pub fn lowered(kernel: &Kernel, simple_mode: bool) -> Kernel {
    let target = cpu();
    let options = Options { target: &target, simple_mode };
    let flat = lower(kernel.clone(), &options, &mut |_, _| {}).expect("the kernel lowers");
    match coulis_ir::verify::verify(flat) {
        Ok(checked) => checked.kernel().clone(),
        Err(faults) => panic!("{faults}:\n{}", faults.listing),
    }
}

/// The memory of all arguments after a run.
pub fn run(kernel: &Kernel, args: &[Array]) -> Vec<Array> {
    let mut machine = Machine::default();
    for (param, arg) in kernel.params.iter().zip(args) {
        let Param::Buffer { buffer, .. } = param else { panic!("arrays only") };
        for (declared, found) in
            buffer.shape.iter().zip(&arg.shape).chain(buffer.strides.iter().zip(&arg.strides))
        {
            if let Some(var) = declared.as_var() {
                machine.vars.insert(var.clone(), Val::Int(*found));
            }
        }
        machine.memory.insert(buffer.data.clone(), arg.data.clone());
    }
    machine.stmt(&kernel.body);
    let mut out = args.to_vec();
    for (param, arg) in kernel.params.iter().zip(&mut out) {
        let Param::Buffer { buffer, .. } = param else { continue };
        arg.data = machine.memory[&buffer.data].clone();
    }
    out
}

#[derive(Default)]
struct Machine {
    vars: HashMap<Var, Val>,
    memory: HashMap<Var, Vec<Val>>,
}

impl Machine {
    fn int(&self, expr: &Expr) -> i128 {
        match self.eval(expr).as_slice() {
            [Val::Int(value)] => *value,
            other => panic!("{expr:?} is {other:?}"),
        }
    }

    fn places(&self, buffer: &Buffer, indices: &[Expr]) -> Vec<usize> {
        let columns: Vec<Vec<Val>> = indices.iter().map(|e| self.eval(e)).collect();
        let lanes = columns.iter().map(Vec::len).max().unwrap_or(1);
        let size = self.memory.get(&buffer.data).unwrap_or_else(|| panic!("{buffer:?} is not alive")).len();
        (0..lanes)
            .map(|lane| {
                let mut at = 0;
                let mut compact = 1;
                for (axis, column) in columns.iter().enumerate().rev() {
                    let Val::Int(index) = column[lane.min(column.len() - 1)] else { panic!("index") };
                    let stride = buffer.strides.get(axis).map_or(compact, |s| self.int(s));
                    if buffer.rank() > 1 {
                        let extent = self.int(&buffer.shape[axis]);
                        assert!((0..extent).contains(&index), "{buffer:?}: index {index} of {extent}");
                        compact *= extent;
                    }
                    at += index * stride;
                }
                assert!((0..size as i128).contains(&at), "{buffer:?}[{indices:?}]: {at} of {size}");
                at as usize
            })
            .collect()
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Seq(stmts) => stmts.iter().for_each(|s| self.stmt(s)),
            Stmt::For { var, min, extent, body, .. } => {
                let (min, extent) = (self.int(min), self.int(extent));
                for i in min..min + extent.max(0) {
                    self.vars.insert(var.clone(), Val::Int(i));
                    self.stmt(body);
                }
            }
            Stmt::If { cond, then, otherwise } => {
                if self.int(cond) != 0 {
                    self.stmt(then);
                } else if let Some(s) = otherwise {
                    self.stmt(s);
                }
            }
            Stmt::Store { buffer, indices, value } => {
                let values = self.eval(value);
                let places = self.places(buffer, indices);
                assert!(values.len() == places.len() || values.len() == 1);
                for (lane, at) in places.into_iter().enumerate() {
                    let value = values[lane.min(values.len() - 1)];
                    self.memory.get_mut(&buffer.data).expect("alive")[at] = value;
                }
            }
            Stmt::Let { var, value, body } => {
                let value = self.eval(value);
                assert_eq!(value.len(), 1);
                self.vars.insert(var.clone(), value[0]);
                self.stmt(body);
            }
            Stmt::Allocate { buffer, body } => {
                let size: i128 = buffer.shape.iter().map(|e| self.int(e)).product();
                self.memory.insert(buffer.data.clone(), vec![Val::Unwritten; size as usize]);
                self.stmt(body);
                self.memory.remove(&buffer.data);
            }
            Stmt::Annotate { body, .. } => self.stmt(body),
            other => panic!("{other:?}"),
        }
    }

    fn eval(&self, expr: &Expr) -> Vec<Val> {
        let lanes = expr.lanes() as usize;
        let at = |v: &[Val], lane: usize| v[lane.min(v.len() - 1)];
        match expr.node() {
            Node::Int(value) => vec![Val::Int(*value)],
            Node::Float(bits) => vec![Val::Float(f64::from_bits(*bits))],
            Node::Var(var) => vec![*self.vars.get(var).unwrap_or_else(|| panic!("{var:?} is unbound"))],
            Node::Binary(op, a, b) => {
                let (x, y) = (self.eval(a), self.eval(b));
                (0..lanes).map(|l| binary(*op, expr.dtype(), at(&x, l), at(&y, l))).collect()
            }
            Node::Not(a) => map(self.eval(a), |v| Val::Int(i128::from(truth(v) == 0))),
            Node::Cast(a) => map(self.eval(a), |v| match (v, expr.dtype().is_float()) {
                (Val::Int(v), true) => Val::Float(v as f64),
                (Val::Int(v), false) => Val::Int(expr.dtype().wrap_int(v)),
                (Val::Float(v), true) => Val::Float(v),
                (Val::Float(v), false) => Val::Int(v as i128),
                (Val::Unwritten, _) => Val::Unwritten,
            }),
            Node::Select(c, a, b) => {
                let (c, a, b) = (self.eval(c), self.eval(a), self.eval(b));
                (0..lanes).map(|l| if truth(at(&c, l)) != 0 { at(&a, l) } else { at(&b, l) }).collect()
            }
            Node::IfThenElse(c, a, b) => {
                if self.int(c) != 0 {
                    self.eval(a)
                } else {
                    self.eval(b)
                }
            }
            Node::Call(Intrinsic::Likely, args) => self.eval(&args[0]),
            Node::Call(other, _) => panic!("{other:?}"),
            Node::Load(buffer, indices) => {
                let memory = &self.memory[&buffer.data];
                self.places(buffer, indices).into_iter().map(|at| memory[at]).collect()
            }
            Node::Ramp(base, stride) => {
                let (base, stride) = (self.int(base), self.int(stride));
                (0..lanes).map(|l| Val::Int(base + l as i128 * stride)).collect()
            }
            Node::Broadcast(a) => vec![self.eval(a)[0]; lanes],
            Node::Let(..) => panic!("{expr:?}"),
        }
    }
}

fn map(values: Vec<Val>, f: impl Fn(Val) -> Val) -> Vec<Val> {
    values.into_iter().map(f).collect()
}

fn truth(value: Val) -> i128 {
    match value {
        Val::Int(v) => v,
        other => panic!("decided by {other:?}"),
    }
}

fn binary(op: BinaryOp, dtype: DType, a: Val, b: Val) -> Val {
    let flag = |b: bool| Val::Int(i128::from(b));
    match (a, b) {
        (Val::Unwritten, _) | (_, Val::Unwritten) => Val::Unwritten,
        (Val::Float(x), Val::Float(y)) => match op {
            BinaryOp::Add => Val::Float(x + y),
            BinaryOp::Sub => Val::Float(x - y),
            BinaryOp::Mul => Val::Float(x * y),
            BinaryOp::Div => Val::Float(x / y),
            BinaryOp::Max => Val::Float(if x > y { x } else { y }),
            BinaryOp::Min => Val::Float(if x < y { x } else { y }),
            BinaryOp::Lt => flag(x < y),
            BinaryOp::Le => flag(x <= y),
            BinaryOp::Gt => flag(x > y),
            BinaryOp::Ge => flag(x >= y),
            BinaryOp::Eq => flag(x == y),
            BinaryOp::Ne => flag(x != y),
            other => panic!("{other:?} of floats"),
        },
        (Val::Int(x), Val::Int(y)) => {
            let floor = |x: i128, y: i128| coulis_ir::floor_div(x, y);
            match op {
                BinaryOp::Add => Val::Int(dtype.wrap_int(x + y)),
                BinaryOp::Sub => Val::Int(dtype.wrap_int(x - y)),
                BinaryOp::Mul => Val::Int(dtype.wrap_int(x * y)),
                BinaryOp::Div => Val::Int(x / y),
                BinaryOp::TruncMod => Val::Int(x % y),
                BinaryOp::FloorDiv => Val::Int(floor(x, y)),
                BinaryOp::FloorMod => Val::Int(x - y * floor(x, y)),
                BinaryOp::Min => Val::Int(x.min(y)),
                BinaryOp::Max => Val::Int(x.max(y)),
                BinaryOp::Lt => flag(x < y),
                BinaryOp::Le => flag(x <= y),
                BinaryOp::Gt => flag(x > y),
                BinaryOp::Ge => flag(x >= y),
                BinaryOp::Eq => flag(x == y),
                BinaryOp::Ne => flag(x != y),
                BinaryOp::And => flag(x != 0 && y != 0),
                BinaryOp::Or => flag(x != 0 || y != 0),
                other => panic!("{other:?} of integers"),
            }
        }
        _ => panic!("{a:?} {op:?} {b:?}"),
    }
}
