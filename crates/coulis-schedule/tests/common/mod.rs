//! Runs a schedule's kernel one scalar at a time and compares with the reference evaluator. A kernel with launches runs
//! in the simulator too, lowered for warps of 32 and of 64 lanes.

#![allow(dead_code, reason = "each test file uses a part")]

pub mod fixture;
pub mod machine;
pub mod random;
pub mod simulated;

use std::collections::HashMap;

use coulis_ir::args::Bindings;
use coulis_ir::eval::Value;
use coulis_ir::{DType, Kernel};
use coulis_schedule::{Schedule, ScheduleError, build_nest};
use coulis_tensor::{Array, OpKind, Program, evaluate};

use machine::Machine;
use simulated::Lowered;

/// Sizes by name.
pub type Sizes<'a> = &'a [(&'a str, i64)];

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
    if simulated::has_launches(&kernel) {
        let text = text(&kernel);
        let read = coulis_script::parse_module(&text).unwrap_or_else(|e| panic!("{e}\n{text}"));
        assert_eq!(coulis_ir::print::print_kernel(&read[0]), text, "what is read prints otherwise");
        assert!(read[0] == kernel, "another kernel is read than was printed:\n{text}");
    }
    kernel
}

/// Whether the schedule computes what the program says, for sizes by name.
#[track_caller]
pub fn check(schedule: &Schedule, sizes: &[Sizes]) {
    let kernel = kernel(schedule);
    let warps = if simulated::has_launches(&kernel) { &[32, 64][..] } else { &[] };
    let lowered: Vec<Lowered> = warps.iter().map(|warp| simulated::lowered(&kernel, *warp)).collect();
    for sizes in sizes {
        check_one(schedule.program(), &kernel, sizes, &lowered);
    }
}

#[track_caller]
fn check_one(program: &Program, kernel: &Kernel, sizes: Sizes, lowered: &[Lowered]) {
    let mut bindings = Bindings::new();
    let mut machine = Machine::new();
    for arg in program.args() {
        for extent in arg.shape() {
            if let Some(var) = extent.as_var() {
                let found = sizes.iter().find(|(name, _)| *name == var.name());
                let size = found.unwrap_or_else(|| panic!("no size for {}", var.name())).1;
                bindings.insert(var.id(), size);
                machine.set(var, Value::Int(i128::from(size)));
            }
        }
    }
    let mut inputs = HashMap::new();
    for (seed, arg) in program.args().iter().enumerate() {
        machine.allocate(arg.buffer());
        if !matches!(arg.op().kind(), OpKind::Placeholder) {
            continue;
        }
        let cell = machine.global.get_mut(&arg.buffer().data).expect("allocated");
        let data: Vec<Value> = (0..cell.data.len()).map(|at| element(seed, at, arg.dtype())).collect();
        cell.data = data.iter().copied().map(Some).collect();
        let shape = cell.shape.iter().map(|e| *e as i64).collect();
        inputs.insert(arg.buffer().id, Array { shape, data });
    }
    let wanted = evaluate(program, &inputs, &bindings).expect("the reference has a value");
    let _shown = Shown { kernel, sizes };
    machine.execute(&kernel.body);
    for lowered in lowered {
        simulated::check(program, lowered, &inputs, &wanted);
    }
    for (arg, wanted) in program.args().iter().zip(wanted) {
        let found = &machine.global[&arg.buffer().data];
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

/// Shows the kernel where running it fails.
struct Shown<'a> {
    kernel: &'a Kernel,
    sizes: Sizes<'a>,
}

impl Drop for Shown<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("at {:?} of\n{}", self.sizes, text(self.kernel));
        }
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
