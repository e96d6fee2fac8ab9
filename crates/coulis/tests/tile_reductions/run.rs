//! Runs a program with a tile call by every variant that accepts the call: in the simulator under several orders of
//! warps, and on a GPU where there is one.

use coulis::TargetChoice;
use coulis::text::emit_cuda;
use coulis_ir::args::{ArgInfo, ArrayInfo, bind_args, compact_strides};
use coulis_ir::stmt::TileOp;
use coulis_ir::visit::rewrite_stmt;
use coulis_ir::{Checked, DType, Kernel, Stmt, Target};
use coulis_lower::{LowerError, Options, explain_tiles, lower, resolve_reducers};
use coulis_runtime::{Device, Window};
use coulis_script::parse_module;
use coulis_sim::{Counters, SimArg, SimArray};
use coulis_tile::{Accuracy, COPIES, REDUCTIONS, TileError, Verdict};
use half::{bf16, f16};

use crate::gpu::gpu;

/// What is wanted of an element: the exact value, and how far the result may be from it; `None` where anything goes.
pub type Want = Option<(f64, f64)>;

/// An argument.
#[derive(Clone, Debug)]
pub enum Arg {
    In { dtype: DType, shape: Vec<i64>, values: Vec<f64> },
    Out { dtype: DType, shape: Vec<i64>, wants: Vec<Want> },
}

/// A program; `{dispatch}` in its text stands for a forced variant, or nothing.
#[derive(Clone, Debug)]
pub struct Program {
    pub text: String,
    pub args: Vec<Arg>,
}

/// Orders of warps that the simulator tries.
const ORDERS: u32 = 4;

fn encode(value: f64, dtype: DType) -> Vec<u8> {
    match dtype {
        DType::F16 => f16::from_f64(value).to_le_bytes().to_vec(),
        DType::BF16 => bf16::from_f64(value).to_le_bytes().to_vec(),
        DType::F32 => (value as f32).to_le_bytes().to_vec(),
        DType::F64 => value.to_le_bytes().to_vec(),
        DType::F8E4M3 | DType::F8E5M2 => panic!("no encoding of {dtype} here"),
        DType::Bool => vec![u8::from(value != 0.0)],
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
            (value as i64).to_le_bytes()[..dtype.bytes()].to_vec()
        }
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => {
            (value as u64).to_le_bytes()[..dtype.bytes()].to_vec()
        }
    }
}

fn decode(bytes: &[u8], dtype: DType) -> f64 {
    let mut wide = [0; 16];
    wide[..dtype.bytes()].copy_from_slice(&bytes[..dtype.bytes()]);
    let bits = u128::from_le_bytes(wide);
    match dtype {
        DType::F16 => f16::from_bits(bits as u16).to_f64(),
        DType::BF16 => bf16::from_bits(bits as u16).to_f64(),
        DType::F32 => f64::from(f32::from_bits(bits as u32)),
        DType::F64 => f64::from_bits(bits as u64),
        _ => dtype.wrap_int(bits as i128) as f64,
    }
}

/// The value after it was stored in a type.
pub fn rounded(value: f64, dtype: DType) -> f64 {
    decode(&encode(value, dtype), dtype)
}

/// A relative rounding error of a type.
pub fn eps(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        DType::F32 => 2f64.powi(-23),
        DType::F64 => 2f64.powi(-52),
        _ => 0.0,
    }
}

/// Numbers from 0 to 1, the same for the same seed.
pub fn uniform(n: usize, seed: u64, dtype: DType) -> Vec<f64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f64 / (1u64 << 24) as f64
    };
    (0..n)
        .map(|_| rounded(if dtype.is_float() { next() } else { (next() * 19.0).floor() - 9.0 }, dtype))
        .collect()
}

/// Why a program has no kernel.
#[derive(Debug)]
pub enum Refused {
    /// The forced variant declines; the table.
    Declined(String),
    /// No variant accepts, or the call is wrong; the message.
    Error(String),
}

/// Variants that every call of a program is forced to, one for reductions and one for copies.
#[derive(Clone, Copy, Debug, Default)]
struct Forced<'a> {
    reductions: Option<&'a str>,
    copies: Option<&'a str>,
}

/// The kernel of a program, its calls forced where their text forces nothing.
fn kernel_of(program: &Program, forced: Forced) -> Result<Kernel, Refused> {
    let text = program.text.replace("{dispatch}", "");
    let error = |e: String| Refused::Error(format!("{e}\n{text}"));
    let kernel = parse_module(&text).map_err(|e| error(e.to_string()))?.remove(0);
    let kernel = resolve_reducers(kernel, &crate::catalogue::named).map_err(|e| error(e.to_string()))?;
    let body = rewrite_stmt(kernel.body, &mut |_| None, &mut |stmt| {
        let Stmt::Tile(mut call) = stmt else { return stmt };
        let name = if call.op == TileOp::Copy { forced.copies } else { forced.reductions };
        call.dispatch = call.dispatch.or(name.map(str::to_owned));
        Stmt::Tile(call)
    });
    Ok(Kernel { body, ..kernel })
}

/// The kernel with `variant` forced for its reductions, or the best one.
pub fn lowered(program: &Program, variant: Option<&str>, target: &Target) -> Result<Checked, Refused> {
    lowered_as(program, Forced { reductions: variant, copies: None }, target)
}

fn lowered_as(program: &Program, forced: Forced, target: &Target) -> Result<Checked, Refused> {
    let text = &program.text;
    let options = Options { target, simple_mode: false };
    let flat = || Ok(lower(kernel_of(program, forced)?, &options, &mut |_, _| {}));
    match flat()? {
        Ok(kernel) => match coulis_ir::verify::verify_for(kernel, target) {
            Ok(checked) => Ok(checked),
            // Memory of a thread beyond its registers is slow, and no fault of a program that asks for it.
            Err(faults) if faults.faults.iter().all(|fault| fault.code == "V26") => {
                Ok(coulis_ir::verify::verify(flat()?.unwrap()).unwrap())
            }
            Err(faults) => panic!("{faults}\n{}\n{text}", faults.listing),
        },
        Err(LowerError::Call { error: error @ TileError::Forced { .. }, .. }) => {
            Err(Refused::Declined(error.to_string()))
        }
        Err(error) => Err(Refused::Error(format!("{error}\n{text}"))),
    }
}

/// The variants that the calls of the program get when nothing is forced.
pub fn chosen(program: &Program, target: &Target) -> Vec<&'static str> {
    let kernel = kernel_of(program, Forced::default()).unwrap_or_else(|e| panic!("{e:?}"));
    let calls = explain_tiles(&kernel, target).unwrap_or_else(|e| panic!("{e}"));
    let names = calls.iter().filter_map(|(_, rows)| rows.iter().find(|row| row.verdict == Verdict::Chosen));
    names.map(|row| row.name).filter(|name| REDUCTIONS.iter().any(|v| v.name == *name)).collect()
}

/// What is stated of the numbers of each variant that accepts the program's only reduction, best first.
pub fn accuracies(program: &Program, target: &Target) -> Vec<(&'static str, Accuracy)> {
    let kernel = kernel_of(program, Forced::default()).unwrap_or_else(|e| panic!("{e:?}"));
    let calls = explain_tiles(&kernel, target).unwrap_or_else(|e| panic!("{e}"));
    calls.iter().flat_map(|(_, rows)| rows).filter_map(|row| Some((row.name, row.accuracy?))).collect()
}

/// What the program gives in its last argument with `variant` for its reductions.
#[track_caller]
pub fn measured(program: &Program, variant: &str, target: &Target) -> Vec<f64> {
    let free = |arg: &Arg| match arg {
        Arg::Out { dtype, shape, wants } => {
            Arg::Out { dtype: *dtype, shape: shape.clone(), wants: vec![None; wants.len()] }
        }
        given @ Arg::In { .. } => given.clone(),
    };
    let program = Program { text: program.text.clone(), args: program.args.iter().map(free).collect() };
    let kernel = lowered(&program, Some(variant), target).unwrap_or_else(|e| panic!("{e:?}"));
    let (_, arrays) = simulate(&program, &kernel, target.warp, variant);
    let last = arrays.last().unwrap_or_else(|| panic!("no argument"));
    last.0.chunks(last.1.dtype.bytes()).map(|bytes| decode(bytes, last.1.dtype)).collect()
}

/// Runs one variant, which has to accept.
#[track_caller]
pub fn check_variant(program: &Program, variant: &str, target: &Target) {
    check_accepted(program, variant, target).unwrap_or_else(|e| panic!("{e:?}"));
}

/// Runs one variant, where it accepts.
#[track_caller]
pub fn check_accepted(program: &Program, variant: &str, target: &Target) -> Result<(), Refused> {
    let kernel = lowered(program, Some(variant), target)?;
    simulate(program, &kernel, target.warp, variant);
    Ok(())
}

/// Whether the simulator is left out, which has run the programs already: for runs under a tool that slows them down.
fn is_for_gpu_only() -> bool {
    std::env::var_os("COULIS_TEST_GPU_ONLY").is_some()
}

/// Runs every variant that accepts; their names, best first.
#[track_caller]
pub fn check(program: &Program, target: &Target) -> Vec<&'static str> {
    let mut ran = Vec::new();
    for variant in REDUCTIONS {
        match lowered(program, Some(variant.name), target) {
            Ok(kernel) => {
                if !is_for_gpu_only() {
                    simulate(program, &kernel, target.warp, variant.name);
                }
                ran.push(variant.name);
            }
            Err(Refused::Declined(_)) => {}
            Err(Refused::Error(message)) => panic!("{message}"),
        }
    }
    // Which of two variants of one priority does a call would be chance.
    let mut priorities: Vec<u32> =
        REDUCTIONS.iter().filter(|v| ran.contains(&v.name)).map(|v| v.priority).collect();
    priorities.dedup();
    assert_eq!(priorities.len(), ran.len(), "{ran:?}\n{}", program.text);
    // Copies by each of their variants, beside the best reduction.
    if is_for_gpu_only() {
        on_gpu(program);
        return ran;
    }
    for copies in std::iter::once(None).chain(COPIES.iter().map(|v| Some(v.name))) {
        match lowered_as(program, Forced { reductions: None, copies }, target) {
            Ok(kernel) => {
                simulate(program, &kernel, target.warp, copies.unwrap_or("the chosen variants"));
            }
            Err(Refused::Declined(_)) if copies.is_some() => {}
            Err(other) => panic!("{other:?}"),
        }
        if !program.text.contains(".copy(") {
            break;
        }
    }
    on_gpu(program);
    ran
}

/// What the simulator counts of the program with `variant` for its reductions.
#[track_caller]
pub fn counters(program: &Program, variant: &str, target: &Target) -> Counters {
    match lowered(program, Some(variant), target) {
        Ok(kernel) => simulate(program, &kernel, target.warp, variant).0,
        Err(other) => panic!("{other:?}"),
    }
}

/// The CUDA text of the program.
pub fn cuda(program: &Program, arch: &str) -> String {
    let target = TargetChoice::Cuda { arch: Some(arch.to_owned()) };
    emit_cuda(&program.text.replace("{dispatch}", ""), &target).unwrap()
}

/// As [`check`], with the variant that has to win.
#[track_caller]
pub fn check_wins(program: &Program, target: &Target, winner: &str) {
    let ran = check(program, target);
    assert!(ran.contains(&winner), "{ran:?}\n{}", program.text);
    let chosen = chosen(program, target);
    assert!(!chosen.is_empty() && chosen.iter().all(|name| *name == winner), "{chosen:?}\n{}", program.text);
}

/// That the variant declines, with these words.
#[track_caller]
pub fn check_declines(program: &Program, variant: &str, target: &Target, words: &str) {
    match lowered(program, Some(variant), target) {
        Err(Refused::Declined(table)) => {
            let row = table.lines().find(|line| line.trim_start().starts_with(variant)).unwrap_or("");
            assert!(row.contains(words), "{row}\nwanted: {words}");
        }
        other => panic!("{variant} on {}: {other:?}", program.text),
    }
}

/// That the program is refused whatever the variant, with these words.
#[track_caller]
pub fn check_refused(program: &Program, target: &Target, words: &str) {
    match lowered(program, None, target) {
        Err(Refused::Error(message)) => assert!(message.contains(words), "{message}\nwanted: {words}"),
        other => panic!("{}: {other:?}", program.text),
    }
}

fn info(dtype: DType, shape: &[i64]) -> ArrayInfo {
    ArrayInfo { dtype, shape: shape.to_vec(), strides: compact_strides(shape) }
}

/// The bytes of an argument.
type Memory = (Vec<u8>, ArrayInfo);

fn memory(arg: &Arg) -> Memory {
    match arg {
        Arg::In { dtype, shape, values } => {
            (values.iter().flat_map(|v| encode(*v, *dtype)).collect(), info(*dtype, shape))
        }
        Arg::Out { dtype, shape, wants } => (vec![0xa5; wants.len() * dtype.bytes()], info(*dtype, shape)),
    }
}

#[track_caller]
fn compare(program: &Program, memory: &[(Vec<u8>, ArrayInfo)], what: &str) {
    for (arg, (bytes, _)) in program.args.iter().zip(memory) {
        let Arg::Out { dtype, wants, .. } = arg else { continue };
        for (at, want) in wants.iter().enumerate() {
            let Some((value, tolerance)) = want else { continue };
            let found = decode(&bytes[at * dtype.bytes()..], *dtype);
            let fits =
                (found - value).abs() <= *tolerance || found == *value || (found.is_nan() && value.is_nan());
            assert!(fits, "{what}: result {at} is {found}, not {value} within {tolerance}\n{}", program.text);
        }
    }
}

#[track_caller]
fn simulate(program: &Program, kernel: &Checked, warp: u32, variant: &str) -> (Counters, Vec<Memory>) {
    let mut arrays: Vec<(Vec<u8>, ArrayInfo)> = program.args.iter().map(memory).collect();
    let mut args = Vec::new();
    for (arg, (bytes, info)) in program.args.iter().zip(&mut arrays) {
        args.push(SimArg::Array(match arg {
            Arg::In { .. } => SimArray::read(bytes, info.clone()),
            Arg::Out { .. } => SimArray::output(bytes, info.clone()),
        }));
    }
    let options = coulis_sim::Options { warp, warp_orders: ORDERS, ..coulis_sim::Options::default() };
    let listing = || coulis_ir::print::print_kernel(kernel.kernel());
    let report = coulis_sim::run(kernel, &mut args, &options)
        .unwrap_or_else(|e| panic!("{variant}: {e}\n{}", listing()));
    drop(args);
    assert!(report.violations.is_empty(), "{variant}: {:?}\n{}", report.violations, report.listing);
    compare(program, &arrays, variant);
    (report.counters, arrays)
}

#[track_caller]
fn on_gpu(program: &Program) {
    let Some(device) = gpu() else { return };
    for variant in REDUCTIONS {
        let Ok(kernel) = lowered(program, Some(variant.name), &device.target()) else { continue };
        let executable = device.compile(&kernel).unwrap_or_else(|e| panic!("{}: {e}", variant.name));
        let mut arrays: Vec<(Vec<u8>, ArrayInfo)> = program.args.iter().map(memory).collect();
        let infos: Vec<ArgInfo> = arrays.iter().map(|(_, info)| ArgInfo::Array(info.clone())).collect();
        let bindings = bind_args(kernel.kernel(), &infos).unwrap_or_else(|e| panic!("{e}"));
        let mut windows: Vec<Window> =
            arrays.iter_mut().map(|(bytes, info)| Window::write(bytes, 0, info).unwrap()).collect();
        coulis_runtime::call(&*executable, &bindings, &mut windows)
            .unwrap_or_else(|e| panic!("{} on a GPU: {e}", variant.name));
        drop(windows);
        compare(program, &arrays, &format!("{} on a GPU", variant.name));
    }
}
