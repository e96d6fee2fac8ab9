//! `# test: simulate [warp=64] [orders=N] [max_steps=N] [inout=C] [n=5 ...]`: bare functions run on the simulator. Each
//! accusation stands on its line, as `# error race between lanes: MESSAGE`.
//!
//! Parameters that are written hold nothing before, but those of `inout`, which hold zeros; the others hold small
//! numbers: `i * 7 % 13 - 4` for floats and signed integers, `i * 7 % 13` for unsigned ones. Other words are
//! sizes, strides and scalars by name. The simulator shows accusations in the printed kernel, so the file holds the
//! text as it is printed; `BLESS=1` brings it into that form. A typed error is a fault of the whole file.

use std::collections::HashSet;

use coulis_ir::args::{ArrayInfo, Bindings, compact_strides, eval_index};
use coulis_ir::print::print_kernel;
use coulis_ir::verify::verify;
use coulis_ir::visit::{for_each_expr, for_each_stmt};
use coulis_ir::{Buffer, DType, Expr, Kernel, Param, Stmt, VarId};
use coulis_sim::{Options, SimArg, SimArray};

use super::kernels;
use crate::filetest::{Fault, Found, Kind, Place, Task, Words};

/// The kind.
pub static KIND: Kind = Kind {
    name: "simulate",
    words: &["warp=", "orders=", "max_steps=", "inout=", "*="],
    is_canonical: |_| true,
    run,
};

fn run(task: &Task) -> Result<Found, String> {
    let kernels = match kernels(task.text) {
        Ok(kernels) => kernels,
        Err(found) => return Ok(found),
    };
    let number = |key: &str, default: u64| match task.words.get(key) {
        Some(value) => value.parse::<u64>().map_err(|_| format!("`{key}={value}` is no number")),
        None => Ok(default),
    };
    let defaults = Options::default();
    let options = Options {
        warp: number("warp", 32)? as u32,
        warp_orders: number("orders", 2)? as u32,
        max_steps: number("max_steps", defaults.max_steps)?,
        ..defaults
    };
    let mut found = Found::default();
    let mut texts = Vec::new();
    let mut n_code: usize = 0;
    for kernel in kernels {
        let text = print_kernel(&kernel);
        let listing = simulate(kernel, task.words, &options)?;
        match listing {
            Ok(listing) => {
                let mut at = n_code;
                for line in listing.lines() {
                    match line.trim_start().strip_prefix("# ^^^^ ") {
                        Some(fault) => found.faults.push(Fault {
                            place: Place::Code(at.saturating_sub(1)),
                            text: fault.trim().to_owned(),
                        }),
                        None => at += 1,
                    }
                }
            }
            Err(error) => {
                found.faults.push(Fault { place: Place::Whole, text: format!("simulate: {error}") });
            }
        }
        n_code += text.lines().filter(|l| !l.trim().is_empty()).count();
        texts.push(text);
    }
    found.text = texts.join("\n");
    found.canonical = Some(found.text.clone());
    Ok(found)
}

/// The listing with accusations, or the simulator's error.
fn simulate(
    kernel: Kernel,
    words: &Words,
    options: &Options,
) -> Result<Result<String, coulis_sim::SimError>, String> {
    let checked = verify(kernel).map_err(|faults| faults.to_string())?;
    let kernel = checked.kernel();
    let bindings = sizes(kernel, words)?;
    let written = written(&kernel.body);
    let inout: Vec<&str> = words.get("inout").map_or(Vec::new(), |names| names.split(',').collect());
    let mut memory = Vec::new();
    for param in &kernel.params {
        let Param::Buffer { handle, buffer } = param else { continue };
        let info = array_info(buffer, &bindings)?;
        let reach: i64 = info.shape.iter().zip(&info.strides).map(|(n, s)| (n - 1) * s).sum();
        let is_inout = inout.contains(&Kernel::argument_name(handle));
        let is_output = written.contains(&buffer.data.id());
        let bytes = if is_inout || is_output {
            vec![0; (reach + 1) as usize * info.dtype.bytes()]
        } else {
            (0..=reach).flat_map(|i| element(i, info.dtype)).collect()
        };
        memory.push((info, bytes, is_output && !is_inout));
    }
    let mut buffers = memory.iter_mut();
    let mut args = Vec::new();
    for param in &kernel.params {
        args.push(match param {
            Param::Scalar(var) => SimArg::Scalar(bindings.get(&var.id()).copied().unwrap_or(0)),
            Param::Buffer { .. } => {
                let Some((info, bytes, is_output)) = buffers.next() else { break };
                let array = SimArray::update(bytes, info.clone());
                SimArg::Array(SimArray { initialised: !*is_output, ..array })
            }
        });
    }
    Ok(coulis_sim::run(&checked, &mut args, options).map(|report| report.listing))
}

/// Values of the words that are names of scalars and of free variables of the parameters.
fn sizes(kernel: &Kernel, words: &Words) -> Result<Bindings, String> {
    let mut bindings = Bindings::new();
    let mut bind = |expr: &Expr| {
        for_each_expr(expr, &mut |e| {
            if let Some(var) = e.as_var()
                && let Some(value) = words.get(var.name()).and_then(|v| v.parse().ok())
            {
                bindings.insert(var.id(), value);
            }
        });
    };
    for param in &kernel.params {
        match param {
            Param::Scalar(var) => bind(&var.expr()),
            Param::Buffer { buffer, .. } => buffer.shape.iter().chain(&buffer.strides).for_each(&mut bind),
        }
    }
    Ok(bindings)
}

fn array_info(buffer: &Buffer, bindings: &Bindings) -> Result<ArrayInfo, String> {
    let values =
        |exprs: &[Expr]| exprs.iter().map(|e| eval_index(e, bindings)).collect::<Result<Vec<_>, _>>();
    let missing = |name: String| format!("`{name}=` is missing");
    let shape = values(&buffer.shape).map_err(missing)?;
    let strides = if buffer.strides.is_empty() {
        compact_strides(&shape)
    } else {
        values(&buffer.strides).map_err(missing)?
    };
    Ok(ArrayInfo { dtype: buffer.dtype, shape, strides })
}

fn written(body: &Stmt) -> HashSet<VarId> {
    let mut written = HashSet::new();
    for_each_stmt(body, &mut |stmt| match stmt {
        Stmt::Store { buffer, .. } => {
            written.insert(buffer.data.id());
        }
        Stmt::Atom(call) => written.extend(call.elements().map(|e| e.buffer.data.id())),
        _ => {}
    });
    written
}

fn element(i: i64, dtype: DType) -> Vec<u8> {
    let value = i * 7 % 13;
    match dtype {
        DType::F32 => ((value - 4) as f32).to_le_bytes().to_vec(),
        DType::F64 => ((value - 4) as f64).to_le_bytes().to_vec(),
        DType::F16 => half::f16::from_f32((value - 4) as f32).to_le_bytes().to_vec(),
        DType::BF16 => half::bf16::from_f32((value - 4) as f32).to_le_bytes().to_vec(),
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => value.to_le_bytes()[..dtype.bytes()].to_vec(),
        DType::I8 | DType::I16 | DType::I32 | DType::I64 => {
            (value - 4).to_le_bytes()[..dtype.bytes()].to_vec()
        }
        DType::Bool | DType::F8E4M3 | DType::F8E5M2 => vec![(value % 2) as u8],
    }
}
