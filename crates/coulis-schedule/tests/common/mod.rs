//! Runs a schedule's kernel one scalar at a time and compares with the reference evaluator.
//!
//! Iterations of parallel and vectorized loops run last to first, so that an order they must not have is found.
//! Reading what was never written, and any index outside a buffer, fails the test.

#![allow(dead_code, reason = "each test file uses a part")]

use std::collections::HashMap;

use coulis_ir::args::Bindings;
use coulis_ir::eval::{Env, EvalError, Value, eval_expr};
use coulis_ir::{Buffer, BufferId, DType, Expr, Kernel, LoopKind, Stmt, Var};
use coulis_schedule::{Schedule, ScheduleError, build_nest};
use coulis_tensor::{Array, OpKind, Program, evaluate};

/// Sizes by name.
pub type Sizes<'a> = &'a [(&'a str, i64)];

struct Cell {
    shape: Vec<i128>,
    data: Vec<Option<Value>>,
}

impl Cell {
    fn at(&self, name: &str, indices: &[i128]) -> usize {
        assert_eq!(indices.len(), self.shape.len(), "{name}: rank");
        let mut at = 0;
        for (index, extent) in indices.iter().zip(&self.shape) {
            assert!((0..*extent).contains(index), "{name}{indices:?} is outside {:?}", self.shape);
            at = at * *extent as usize + *index as usize;
        }
        at
    }
}

#[derive(Default)]
struct Machine {
    vars: HashMap<Var, Value>,
    memory: HashMap<BufferId, Cell>,
    names: HashMap<BufferId, String>,
}

impl Machine {
    fn eval(&self, expr: &Expr) -> Value {
        let mut read = |buffer: &Buffer, indices: &[i128]| -> Result<Value, EvalError> {
            let cell = self.memory.get(&buffer.id).unwrap_or_else(|| panic!("{buffer:?} is not alive"));
            let at = cell.at(&buffer.name, indices);
            Ok(cell.data[at].unwrap_or_else(|| panic!("{buffer:?}{indices:?} is unwritten")))
        };
        let mut env = Env::with_memory(&mut read);
        for (var, value) in &self.vars {
            env.set(var, *value);
        }
        eval_expr(expr, &mut env).unwrap_or_else(|e| panic!("{expr:?}: {e}"))
    }

    fn int(&self, expr: &Expr) -> i128 {
        self.eval(expr).as_int().expect("an integer")
    }

    fn allocate(&mut self, buffer: &Buffer) {
        let shape: Vec<i128> = buffer.shape.iter().map(|e| self.int(e)).collect();
        let size: i128 = shape.iter().map(|e| (*e).max(0)).product();
        self.memory.insert(buffer.id, Cell { shape, data: vec![None; size as usize] });
    }

    fn run(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Seq(stmts) => stmts.iter().for_each(|s| self.run(s)),
            Stmt::For { var, min, extent, kind, body } => {
                let (min, extent) = (self.int(min), self.int(extent));
                let mut order: Vec<i128> = (min..min + extent.max(0)).collect();
                if matches!(kind, LoopKind::Parallel | LoopKind::Vectorized) {
                    order.reverse();
                }
                for i in order {
                    self.vars.insert(var.clone(), Value::Int(i));
                    self.run(body);
                }
                self.vars.remove(var);
            }
            Stmt::If { cond, then, otherwise } => {
                if self.eval(cond).is_true() {
                    self.run(then);
                } else if let Some(otherwise) = otherwise {
                    self.run(otherwise);
                }
            }
            Stmt::Store { buffer, indices, value } => {
                let indices: Vec<i128> = indices.iter().map(|i| self.int(i)).collect();
                assert_eq!(value.dtype(), buffer.dtype, "{buffer:?}: type of the value");
                let value = self.eval(value);
                let cell =
                    self.memory.get_mut(&buffer.id).unwrap_or_else(|| panic!("{buffer:?} is not alive"));
                let at = cell.at(&buffer.name, &indices);
                cell.data[at] = Some(value);
            }
            Stmt::Let { var, value, body } => {
                let value = self.eval(value);
                self.vars.insert(var.clone(), value);
                self.run(body);
                self.vars.remove(var);
            }
            Stmt::Allocate { buffer, body } => {
                self.allocate(buffer);
                self.run(body);
                self.memory.remove(&buffer.id);
            }
            Stmt::Annotate { body, .. } => self.run(body),
            other => panic!("{} does not occur in Nest form", other.kind_name()),
        }
    }
}

/// Deterministic small values, whose sums are exact.
fn element(seed: usize, at: usize, dtype: DType) -> Value {
    let mixed = (seed as u64 + 1).wrapping_mul(0x9e37_79b9).wrapping_add(at as u64).wrapping_mul(0x85eb_ca6b);
    let small = i128::from((mixed >> 7) % 7) - 3;
    match dtype {
        DType::Bool => Value::Int(i128::from(small > 0)),
        d if d.is_float() => Value::Float(small as f64),
        d if d.is_unsigned_int() => Value::Int(small + 3),
        _ => Value::Int(small),
    }
}

/// The kernel of the schedule, which a replay of its trace must give too.
#[track_caller]
pub fn kernel(schedule: &Schedule) -> Kernel {
    let program = schedule.program();
    let kernel = build_nest(schedule, program.args(), "main").expect("the nest is built");
    let again = Schedule::replay(program, schedule.trace().steps()).expect("the trace replays");
    assert_eq!(again.trace().to_string(), schedule.trace().to_string());
    let again = build_nest(&again, program.args(), "main").expect("the replayed nest is built");
    assert!(again == kernel, "a replay gives another kernel:\n{}", schedule.trace());
    kernel
}

/// Whether the schedule computes what the program says, for sizes by name.
#[track_caller]
pub fn check(schedule: &Schedule, sizes: &[Sizes]) {
    let kernel = kernel(schedule);
    for sizes in sizes {
        check_one(schedule.program(), &kernel, sizes);
    }
}

#[track_caller]
fn check_one(program: &Program, kernel: &Kernel, sizes: Sizes) {
    let mut bindings = Bindings::new();
    let mut machine = Machine::default();
    for arg in program.args() {
        for extent in arg.shape() {
            if let Some(var) = extent.as_var() {
                let found = sizes.iter().find(|(name, _)| *name == var.name());
                let size = found.unwrap_or_else(|| panic!("no size for {}", var.name())).1;
                bindings.insert(var.id(), size);
                machine.vars.insert(var.clone(), Value::Int(i128::from(size)));
            }
        }
    }
    let mut inputs = HashMap::new();
    for (seed, arg) in program.args().iter().enumerate() {
        machine.allocate(arg.buffer());
        if !matches!(arg.op().kind(), OpKind::Placeholder) {
            continue;
        }
        let cell = machine.memory.get_mut(&arg.buffer().id).expect("allocated");
        let data: Vec<Value> = (0..cell.data.len()).map(|at| element(seed, at, arg.dtype())).collect();
        cell.data = data.iter().copied().map(Some).collect();
        let shape = cell.shape.iter().map(|e| *e as i64).collect();
        inputs.insert(arg.buffer().id, Array { shape, data });
    }
    let wanted = evaluate(program, &inputs, &bindings).expect("the reference has a value");
    machine.run(&kernel.body);
    for (arg, wanted) in program.args().iter().zip(wanted) {
        let found = &machine.memory[&arg.buffer().id];
        let unwritten = found.data.iter().position(Option::is_none);
        assert_eq!(unwritten, None, "`{}` is unwritten there at {sizes:?}\n{}", arg.name(), text(kernel));
        let found: Vec<Value> = found.data.iter().copied().flatten().collect();
        let same = found.iter().zip(&wanted.data).all(|(a, b)| a.same(*b));
        assert!(
            same && found.len() == wanted.data.len(),
            "`{}` at {sizes:?}: found {found:?}, wanted {:?}\n{}",
            arg.name(),
            wanted.data,
            text(kernel)
        );
    }
}

/// The text of the kernel.
pub fn text(kernel: &Kernel) -> String {
    coulis_ir::print::print_kernel(kernel)
}

/// The text of the body of the schedule's kernel, without the lines that declare.
#[track_caller]
pub fn body(schedule: &Schedule) -> String {
    coulis_ir::print::print_stmt(&kernel(schedule).body)
}

/// The message of a refusal.
#[track_caller]
pub fn refusal<T: std::fmt::Debug>(result: Result<T, ScheduleError>) -> String {
    result.expect_err("a refusal").to_string()
}
