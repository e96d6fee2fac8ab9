//! Schedules run on every device that takes them, against the reference evaluator.
//!
//! Inputs are small whole numbers unless a test says otherwise, so that sums are exact in any order and results are
//! compared bit for bit. Outputs start as junk and have junk behind them that has to stay.

#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses its part, and fails by panicking")]

use std::collections::HashMap;
use std::slice::from_ref;
use std::sync::{Arc, OnceLock};

use coulis::te::{
    Expr, IterVar, Schedule, Split, Tensor, Var, build_nest, comm_reducer, compute, compute_tuple,
    placeholder, reduce_axis, var,
};
use coulis_io::AlignedBytes;
use coulis_ir::args::{ArgInfo, ArrayInfo, Bindings, bind_args, compact_strides};
use coulis_ir::eval::Value;
use coulis_ir::print::{print_kernel, print_stmt};
use coulis_ir::visit::for_each_stmt;
use coulis_ir::{DType, Kernel, Stmt, Target, ThreadTag};
use coulis_runtime::{Cpu, CpuKind, CpuOptions, Device, Window};
use coulis_sim::{SimArg, SimArray, SimError};
use coulis_tensor::{Array, OpKind, evaluate};
use half::{bf16, f16};

#[path = "gpu.rs"]
mod gpu;
use gpu::gpu;

/// Sizes by name.
pub type Sizes<'a> = &'a [(&'a str, i64)];

/// The element of an argument, by the argument's position, the element's, and the type.
pub type Fill<'a> = &'a dyn Fn(usize, usize, DType) -> Value;

/// How far results may be from the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// The same values.
    Exact,
    /// That part of the larger of 1 and the reference.
    Relative(f64),
}

/// Bytes behind each output, which nobody may touch.
const FENCE: usize = 256;
/// What outputs and fences are filled with.
const JUNK: u8 = 0xa5;

/// Devices that run kernels which are written for the CPU.
fn cpu_devices() -> &'static [Arc<dyn Device>] {
    static DEVICES: OnceLock<Vec<Arc<dyn Device>>> = OnceLock::new();
    DEVICES.get_or_init(|| {
        let options = CpuOptions { kind: CpuKind::Executed, n_threads: Some(2), ..CpuOptions::default() };
        vec![Cpu::open(&options).unwrap().0]
    })
}

/// A size.
pub fn n(name: &str) -> Expr {
    var(name).expr()
}

/// An int32 constant.
pub fn c(value: i32) -> Expr {
    Expr::int(value)
}

/// A float32 constant.
pub fn f(value: f64) -> Expr {
    Expr::float(value, DType::F32)
}

/// An input.
pub fn input(shape: &[Expr], dtype: DType, name: &str) -> Tensor {
    placeholder(shape, dtype, name).unwrap()
}

/// The default schedule of the outputs, inputs first among the arguments.
pub fn schedule(outputs: &[Tensor], inputs: &[Tensor]) -> Schedule {
    let args: Vec<Tensor> = inputs.iter().chain(outputs).cloned().collect();
    Schedule::new(outputs, &args).unwrap()
}

/// `B = A + 1`, `C = B * 2`.
pub fn chain(shape: &[Expr]) -> Schedule {
    let a = input(shape, DType::F32, "A");
    let b = compute(shape, "B", |i| a.at(i) + f(1.0)).unwrap();
    let d = compute(shape, "C", |i| b.at(i) * f(2.0)).unwrap();
    schedule(&[d], &[a])
}

/// Place and value of the largest of each row of `a`, the first place of equal ones; `value` says at which component the
/// value is.
pub fn argmax_of(a: &Tensor, value: usize, name: &str) -> Vec<Tensor> {
    let place = 1 - value;
    let argmax = comm_reducer(
        move |x, y| {
            let first = x[place].clone().lt(y[place].clone()).and(x[value].clone().equal(y[value].clone()));
            let keep = x[value].clone().gt(y[value].clone()).or(first);
            (0..2).map(|i| Expr::select(keep.clone(), x[i].clone(), y[i].clone())).collect()
        },
        move |types| {
            let mut identity = vec![Expr::int(i32::MAX); 2];
            identity[value] = match types[value].int_range() {
                Some((least, _)) => Expr::int_of(least, types[value]),
                None => Expr::float(f64::NEG_INFINITY, types[value]),
            };
            identity
        },
        "argmax",
    );
    let (rows, k) = (&a.shape()[0], reduce_axis(a.shape()[1].clone(), "k"));
    let of_row = |i: &[Var]| {
        let mut sources = vec![k.expr(), k.expr()];
        sources[value] = a.at((&i[0], &k));
        argmax.reduce(sources, from_ref(&k))
    };
    compute_tuple(from_ref(rows), name, of_row).unwrap()
}

/// The loops of a stage, by name.
pub fn leaves(s: &Schedule, stage: &str) -> Vec<String> {
    s.stage(stage).unwrap().leaves().iter().map(|a| a.name().to_owned()).collect()
}

/// A loop of a stage, by its position.
pub fn leaf(s: &Schedule, stage: &str, at: usize) -> IterVar {
    s.stage(stage).unwrap().leaves()[at].clone()
}

/// The loop nest.
pub fn nest(s: &Schedule) -> Kernel {
    build_nest(s, s.program().args(), "main").unwrap()
}

/// The text of the loop nest's body.
pub fn nest_text(s: &Schedule) -> String {
    print_stmt(&nest(s).body)
}

/// The lowered kernel for the executor.
pub fn flat(s: &Schedule) -> Kernel {
    let device = &cpu_devices()[0];
    let lowered = coulis::compile_schedule(s, s.program().args(), "main", &device.target()).unwrap();
    lowered.checked.kernel().clone()
}

/// The text of the kernel that is lowered for a GPU.
pub fn gpu_text(s: &Schedule) -> String {
    let target = Target::cuda("sm_90a").unwrap();
    let lowered = coulis::compile_schedule(s, s.program().args(), "main", &target)
        .unwrap_or_else(|e| panic!("{e}\n{}", e.help.join("\n")));
    print_kernel(lowered.checked.kernel())
}

/// The text of the lowered kernel.
pub fn flat_text(s: &Schedule) -> String {
    print_kernel(&flat(s))
}

/// Extents of the memory that the nest allocates for a stage.
pub fn realized(s: &Schedule, name: &str) -> Vec<String> {
    let mut found = None;
    for_each_stmt(&nest(s).body, &mut |stmt| {
        if let Stmt::Allocate { buffer, .. } = stmt
            && buffer.name == name
        {
            found = Some(buffer.shape.iter().map(coulis_ir::print::print_expr).collect());
        }
    });
    found.unwrap_or_else(|| panic!("`{name}` is not allocated:\n{}", nest_text(s)))
}

/// How often a text occurs in another.
pub fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

/// Whole numbers from -3 to 3, of which sums are exact.
pub fn small(arg: usize, at: usize, dtype: DType) -> Value {
    let mixed = (arg as u64 + 1).wrapping_mul(0x9e37_79b9).wrapping_add(at as u64).wrapping_mul(0x85eb_ca6b);
    let value = i128::from((mixed >> 7) % 7) - 3;
    number(value, dtype)
}

/// A whole number as a value of the type.
pub fn number(value: i128, dtype: DType) -> Value {
    match dtype {
        DType::Bool => Value::Int(i128::from(value > 0)),
        d if d.is_float() => Value::Float(value as f64),
        d if d.is_unsigned_int() => Value::Int(value + 3),
        _ => Value::Int(value),
    }
}

/// The schedule gives the reference's answers on every device, for each set of sizes. Where it is one for the CPU, its
/// program also runs on threads, as [`on_threads`] schedules it.
#[track_caller]
pub fn run_everywhere(s: &Schedule, sizes: &[Sizes]) {
    run_everywhere_with(s, sizes, &small, Tolerance::Exact);
}

/// As [`run_everywhere`], with inputs and tolerance said.
#[track_caller]
pub fn run_everywhere_with(s: &Schedule, sizes: &[Sizes], fill: Fill, tolerance: Tolerance) {
    run_as_scheduled(s, sizes, fill, tolerance);
    if !has_launches(&nest(s)) {
        run_as_scheduled(&on_threads(s), sizes, fill, tolerance);
    }
}

/// The schedule itself on every device that takes it.
#[track_caller]
pub fn run_as_scheduled(s: &Schedule, sizes: &[Sizes], fill: Fill, tolerance: Tolerance) {
    for sizes in sizes {
        let case = Case::new(s, sizes, fill);
        if has_launches(&nest(s)) {
            for warp in [32, 64] {
                case.simulate(&Target::simulated(warp), warp, tolerance);
            }
            if let Some(gpu) = gpu() {
                case.run_on(&**gpu, tolerance);
            }
        } else {
            for device in cpu_devices() {
                case.run_on(&**device, tolerance);
                // As one thread.
                case.simulate(&device.target(), 32, tolerance);
            }
        }
    }
}

/// A schedule of the same program with every stage on threads: the first data loop on blocks, 32 of the last one a block,
/// or 32 parts of a reduction to one element.
#[track_caller]
pub fn on_threads(s: &Schedule) -> Schedule {
    let mut s = Schedule::of(s.program());
    let stages: Vec<_> = s.stages().iter().map(|stage| (stage.id(), stage.axes().len())).collect();
    for (stage, n_data) in stages {
        let leaves = s.stage(stage).unwrap().leaves().to_vec();
        let parts = |s: &mut Schedule, at: usize| {
            let (outer, inner) = s.split(stage, &leaves[at], Split::Factor(32))?;
            s.bind(stage, &inner, ThreadTag::ThreadX).map(|()| outer)
        };
        match (n_data, leaves.len()) {
            (0, n_leaves) => {
                // What has no loop, and a reducer without the laws, stay on one thread.
                let mut folded = s.clone();
                if n_leaves > 0 && parts(&mut folded, n_leaves - 1).is_ok() {
                    s = folded;
                } else {
                    let one = s.fuse(stage, &[]).unwrap();
                    s.bind(stage, &one, ThreadTag::ThreadX).unwrap();
                }
            }
            (1, _) => {
                let outer = parts(&mut s, 0).unwrap();
                s.bind(stage, &outer, ThreadTag::BlockX).unwrap();
            }
            (n, _) => {
                parts(&mut s, n - 1).unwrap();
                s.bind(stage, &leaves[0], ThreadTag::BlockX).unwrap();
            }
        }
    }
    s
}

/// Runs a schedule on threads in the simulator, with warps of that many lanes; whether there is a kernel of it, which a
/// schedule may turn out not to have when it is lowered.
#[track_caller]
pub fn run_on_threads(s: &Schedule, sizes: Sizes, warp: u32) -> bool {
    let target = Target::simulated(warp);
    match coulis::compile_schedule(s, s.program().args(), "main", &target) {
        Err(error) if error.owner != coulis::Owner::Bug => false,
        _ => {
            let case = Case::new(s, sizes, &small);
            case.simulate(&target, warp, Tolerance::Exact);
            if let Some(gpu) = gpu() {
                case.run_on(&**gpu, Tolerance::Exact);
            }
            true
        }
    }
}

/// Whether a kernel is written for blocks of threads.
fn has_launches(kernel: &Kernel) -> bool {
    let mut found = false;
    for_each_stmt(&kernel.body, &mut |stmt| found |= matches!(stmt, Stmt::LaunchThread { .. }));
    found
}

/// What the reference makes of a program, argument by argument.
pub fn reference(s: &Schedule, sizes: Sizes, fill: Fill) -> Vec<Array> {
    Case::new(s, sizes, fill).wanted
}

/// A schedule with sizes, inputs and the answers.
struct Case<'s> {
    schedule: &'s Schedule,
    what: String,
    wanted: Vec<Array>,
}

impl<'s> Case<'s> {
    fn new(schedule: &'s Schedule, sizes: Sizes, fill: Fill) -> Case<'s> {
        let program = schedule.program();
        let mut bindings = Bindings::new();
        for arg in program.args() {
            for extent in arg.shape() {
                coulis_ir::visit::for_each_expr(extent, &mut |e| {
                    if let Some(var) = e.as_var()
                        && let Some((_, size)) = sizes.iter().find(|(name, _)| *name == var.name())
                    {
                        bindings.insert(var.id(), *size);
                    }
                });
            }
        }
        let mut inputs = HashMap::new();
        for (position, arg) in program.args().iter().enumerate() {
            if matches!(arg.op().kind(), OpKind::Placeholder) {
                let extent = |e: &Expr| coulis_ir::args::eval_index(e, &bindings).unwrap();
                let shape: Vec<i64> = arg.shape().iter().map(extent).collect();
                let n = shape.iter().product::<i64>() as usize;
                let data = (0..n).map(|at| fill(position, at, arg.dtype())).collect();
                inputs.insert(arg.buffer().id, Array { shape, data });
            }
        }
        let wanted = evaluate(program, &inputs, &bindings).unwrap();
        Case { schedule, what: format!("{sizes:?}\n{}", schedule.trace()), wanted }
    }

    #[track_caller]
    fn run_on(&self, device: &dyn Device, tolerance: Tolerance) {
        let args = self.schedule.program().args();
        let lowered = coulis::compile_schedule(self.schedule, args, "main", &device.target())
            .unwrap_or_else(|e| panic!("{}: {e}", self.what));
        let kernel = lowered.checked.kernel();
        let what = || format!("on {} at {}\n{}", device.name(), self.what, print_kernel(kernel));
        let executable = device.compile(&lowered.checked).unwrap_or_else(|e| panic!("{}: {e}", what()));
        let infos = self.infos();
        let infos_of_args: Vec<ArgInfo> = infos.iter().cloned().map(ArgInfo::Array).collect();
        let bindings = bind_args(kernel, &infos_of_args).unwrap_or_else(|e| panic!("{}: {e}", what()));
        let mut memory = self.memory();
        let mut windows: Vec<Window> = memory
            .iter_mut()
            .zip(&infos)
            .map(|(bytes, info)| Window::write(bytes.as_mut_slice(), 0, info).unwrap())
            .collect();
        coulis_runtime::call(&*executable, &bindings, &mut windows)
            .unwrap_or_else(|e| panic!("{}: {e}", what()));
        drop(windows);
        self.compare(&memory, tolerance).unwrap_or_else(|error| panic!("{error} {}", what()));
    }

    /// Runs the kernel for the target in the simulator, which is to find no violation.
    #[track_caller]
    fn simulate(&self, target: &Target, warp: u32, tolerance: Tolerance) {
        let args = self.schedule.program().args();
        let lowered = coulis::compile_schedule(self.schedule, args, "main", target)
            .unwrap_or_else(|e| panic!("{}: {e}\n{}", self.what, e.help.join("\n")));
        let kernel = lowered.checked.kernel();
        let what = || format!("in warps of {warp} at {}\n{}", self.what, print_kernel(kernel));
        let mut memory = self.memory();
        let mut arguments: Vec<SimArg> = args
            .iter()
            .zip(memory.iter_mut().zip(self.infos()))
            .map(|(arg, (bytes, info))| {
                SimArg::Array(match arg.op().kind() {
                    OpKind::Placeholder => SimArray::read(bytes.as_slice(), info),
                    OpKind::Compute { .. } => SimArray::output(bytes.as_mut_slice(), info),
                })
            })
            .collect();
        let options = coulis_sim::Options { warp, ..coulis_sim::Options::default() };
        let report = match coulis_sim::run(&lowered.checked, &mut arguments, &options) {
            Ok(report) => report,
            // Memory whose size a loop of the CPU decides.
            Err(SimError::Unknown { .. }) if !target.has_threads() => return,
            Err(error) => panic!("{error} {}", what()),
        };
        drop(arguments);
        assert!(report.violations.is_empty(), "{:#?} {}", report.violations, what());
        self.compare(&memory, tolerance).unwrap_or_else(|error| panic!("{error} {}", what()));
    }

    /// What callers say of the arguments.
    fn infos(&self) -> Vec<ArrayInfo> {
        let info = |(arg, array): (&Tensor, &Array)| ArrayInfo {
            dtype: arg.dtype(),
            shape: array.shape.clone(),
            strides: compact_strides(&array.shape),
        };
        self.schedule.program().args().iter().zip(&self.wanted).map(info).collect()
    }

    /// Inputs, and junk for outputs, each with a fence behind it.
    fn memory(&self) -> Vec<AlignedBytes> {
        let of = |(arg, array): (&Tensor, &Array)| {
            let mut bytes = encode(arg.dtype(), &array.data);
            if !matches!(arg.op().kind(), OpKind::Placeholder) {
                bytes.fill(JUNK);
            }
            bytes.resize(bytes.len() + FENCE, JUNK);
            AlignedBytes::copy_of(&bytes).unwrap()
        };
        self.schedule.program().args().iter().zip(&self.wanted).map(of).collect()
    }

    /// Whether the memory holds the answers, and fences stand.
    fn compare(&self, memory: &[AlignedBytes], tolerance: Tolerance) -> Result<(), String> {
        for ((arg, bytes), wanted) in self.schedule.program().args().iter().zip(memory).zip(&self.wanted) {
            let (data, fence) = bytes.as_slice().split_at(bytes.as_slice().len() - FENCE);
            if fence.iter().any(|b| *b != JUNK) {
                return Err(format!("past the end of `{}`", arg.name()));
            }
            let found = decode(arg.dtype(), data);
            for (at, (found, wanted)) in found.iter().zip(&wanted.data).enumerate() {
                if !is_near(*found, *wanted, tolerance) {
                    return Err(format!("`{}` element {at}: {found:?}, wanted {wanted:?}", arg.name()));
                }
            }
        }
        Ok(())
    }
}

/// Runs schedules as one compiled kernel that does one after the other, and compares with the reference bit for bit;
/// else the position of the schedule that is wrong, and how.
pub fn run_compiled_together(
    device: &Arc<dyn Device>,
    schedules: &[(&Schedule, Vec<(&str, i64)>)],
) -> Result<(), (usize, String)> {
    let cases: Vec<Case> = schedules.iter().map(|(s, sizes)| Case::new(s, sizes, &small)).collect();
    let mut whole: Option<Kernel> = None;
    for case in &cases {
        let args = case.schedule.program().args();
        let lowered = coulis::compile_schedule(case.schedule, args, "main", &device.target()).unwrap();
        let kernel = lowered.checked.kernel().clone();
        whole = Some(match whole {
            None => kernel,
            Some(mut all) => {
                all.params.extend(kernel.params);
                all.body = Stmt::seq([all.body, kernel.body]);
                all
            }
        });
    }
    let checked =
        coulis_ir::verify::verify(whole.unwrap()).unwrap_or_else(|faults| panic!("{}", faults.listing));
    let executable = device.compile(&checked).unwrap_or_else(|e| panic!("{e}"));
    let infos: Vec<ArrayInfo> = cases.iter().flat_map(Case::infos).collect();
    let infos_of_args: Vec<ArgInfo> = infos.iter().cloned().map(ArgInfo::Array).collect();
    let bindings = bind_args(checked.kernel(), &infos_of_args).unwrap();
    let mut memory: Vec<AlignedBytes> = cases.iter().flat_map(Case::memory).collect();
    let mut windows: Vec<Window> = memory
        .iter_mut()
        .zip(&infos)
        .map(|(bytes, info)| Window::write(bytes.as_mut_slice(), 0, info).unwrap())
        .collect();
    coulis_runtime::call(&*executable, &bindings, &mut windows).unwrap_or_else(|e| panic!("{e}"));
    drop(windows);
    let mut rest = &memory[..];
    for (at, case) in cases.iter().enumerate() {
        let (own, others) = rest.split_at(case.wanted.len());
        case.compare(own, Tolerance::Exact).map_err(|what| (at, format!("{what}, at {}", case.what)))?;
        rest = others;
    }
    Ok(())
}

fn is_near(found: Value, wanted: Value, tolerance: Tolerance) -> bool {
    match (found, wanted, tolerance) {
        (Value::Float(a), Value::Float(b), Tolerance::Relative(part)) if a.is_finite() && b.is_finite() => {
            (a - b).abs() <= part * b.abs().max(1.0)
        }
        // Zeros of both signs are one value here.
        (Value::Float(a), Value::Float(b), _) => a == b || (a.is_nan() && b.is_nan()),
        (a, b, _) => a.same(b),
    }
}

/// Values as memory.
fn encode(dtype: DType, data: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(data.len() * dtype.bytes());
    for value in data {
        match (dtype, value) {
            (DType::F16, v) => bytes.extend(f16::from_f64(v.as_f64()).to_le_bytes()),
            (DType::BF16, v) => bytes.extend(bf16::from_f64(v.as_f64()).to_le_bytes()),
            (DType::F32, v) => bytes.extend((v.as_f64() as f32).to_le_bytes()),
            (DType::F64, v) => bytes.extend(v.as_f64().to_le_bytes()),
            (_, v) => bytes.extend(&v.as_int().unwrap().to_le_bytes()[..dtype.bytes()]),
        }
    }
    bytes
}

/// Memory as values.
fn decode(dtype: DType, bytes: &[u8]) -> Vec<Value> {
    let value = |b: &[u8]| {
        let mut raw = [0u8; 8];
        raw[..b.len()].copy_from_slice(b);
        let bits = u64::from_le_bytes(raw);
        match dtype {
            DType::F16 => Value::Float(f16::from_bits(bits as u16).to_f64()),
            DType::BF16 => Value::Float(bf16::from_bits(bits as u16).to_f64()),
            DType::F32 => Value::Float(f64::from(f32::from_bits(bits as u32))),
            DType::F64 => Value::Float(f64::from_bits(bits)),
            DType::Bool => Value::Int(i128::from(bits)),
            _ => Value::Int(dtype.wrap_int(i128::from(bits))),
        }
    };
    bytes.chunks_exact(dtype.bytes()).map(value).collect()
}
