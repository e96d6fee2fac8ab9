//! Runs of kernels on the simulator with arguments that follow from their parameters.
//!
//! Parameters that are written hold nothing before, unless they are said to be read too: then they hold zeros. The
//! others hold small numbers: `i * 7 % 13 - 4` for floats and signed integers, `i * 7 % 13` for unsigned ones. Strides
//! that nothing gives are compact.

use std::collections::HashSet;

use coulis_ir::args::{ArrayInfo, Bindings, compact_strides, eval_index};
use coulis_ir::verify::verify;
use coulis_ir::visit::{for_each_expr, for_each_stmt};
use coulis_ir::{Buffer, DType, Expr, Kernel, Param, Stmt, VarId};
use coulis_sim::{Options, SimArg, SimArray, SimError, SimReport};

/// How kernels are run.
pub struct Setup<'a> {
    /// Values of sizes, strides and scalars by name.
    pub value: &'a dyn Fn(&str) -> Option<i64>,
    /// Names of parameters that are written and hold values before.
    pub inout: &'a [&'a str],
    /// Options of the simulator.
    pub options: &'a Options,
}

/// What a run gave.
pub struct Done {
    /// Violations and counters.
    pub report: SimReport,
    /// Bytes of the written parameters, in order.
    #[allow(dead_code, reason = "each test file uses its part")]
    pub outputs: Vec<Vec<u8>>,
}

/// Runs a kernel; what the verifier refuses or a missing size is an `Err`.
pub fn simulate(kernel: Kernel, setup: &Setup) -> Result<Result<Done, SimError>, String> {
    let checked = verify(kernel).map_err(|faults| faults.to_string())?;
    let kernel = checked.kernel();
    let bindings = bindings(kernel, setup.value);
    let written = written(&kernel.body);
    let mut memory = Vec::new();
    for (handle, buffer) in buffers(kernel) {
        let info = array_info(buffer, &bindings)?;
        let reach: i64 = info.shape.iter().zip(&info.strides).map(|(n, s)| (n - 1) * s).sum();
        let is_inout = setup.inout.contains(&handle);
        let is_output = written.contains(&buffer.data.id());
        let bytes = if is_output {
            vec![0; (reach + 1) as usize * info.dtype.bytes()]
        } else {
            (0..=reach).flat_map(|i| element(i, info.dtype)).collect()
        };
        memory.push((info, bytes, is_output, is_inout));
    }
    let mut places = memory.iter_mut();
    let mut args = Vec::new();
    for param in &kernel.params {
        args.push(match param {
            Param::Scalar(var) => SimArg::Scalar(bindings.get(&var.id()).copied().unwrap_or(0)),
            Param::Buffer { .. } => {
                let Some((info, bytes, is_output, is_inout)) = places.next() else { break };
                let array = SimArray::update(bytes, info.clone());
                SimArg::Array(SimArray { initialised: !*is_output || *is_inout, ..array })
            }
        });
    }
    let report = coulis_sim::run(&checked, &mut args, setup.options);
    let outputs = memory.into_iter().filter(|m| m.2).map(|m| m.1).collect();
    Ok(report.map(|report| Done { report, outputs }))
}

fn buffers(kernel: &Kernel) -> impl Iterator<Item = (&str, &Buffer)> {
    kernel.params.iter().filter_map(|param| match param {
        Param::Buffer { handle, buffer } => Some((Kernel::argument_name(handle), buffer)),
        Param::Scalar(_) => None,
    })
}

/// Values of scalars and of free variables of the parameters.
fn bindings(kernel: &Kernel, value: &dyn Fn(&str) -> Option<i64>) -> Bindings {
    let mut bindings = Bindings::new();
    let mut bind = |expr: &Expr| {
        for_each_expr(expr, &mut |e| {
            if let Some(var) = e.as_var()
                && let Some(value) = value(var.name())
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
    bindings
}

fn array_info(buffer: &Buffer, bindings: &Bindings) -> Result<ArrayInfo, String> {
    let missing = |name: String| format!("`{name}=` is missing");
    let shape = buffer.shape.iter().map(|e| eval_index(e, bindings).map_err(missing));
    let shape = shape.collect::<Result<Vec<_>, _>>()?;
    let mut strides = compact_strides(&shape);
    for (stride, declared) in strides.iter_mut().zip(&buffer.strides) {
        *stride = eval_index(declared, bindings).unwrap_or(*stride);
    }
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
