//! Runs a kernel with launches as a device would: lowered, verified for its machine, and in the simulator.

use std::collections::HashMap;

use coulis_ir::args::ArrayInfo;
use coulis_ir::eval::Value;
use coulis_ir::verify::verify_for;
use coulis_ir::visit::for_each_stmt;
use coulis_ir::{BufferId, Checked, DType, Kernel, Stmt, Target, ThreadTag};
use coulis_lower::{Options, lower};
use coulis_sim::{SimArg, SimArray};
use coulis_tensor::{Array, OpKind, Program};

/// Whether a kernel has launches.
pub fn has_launches(kernel: &Kernel) -> bool {
    let mut found = false;
    for_each_stmt(&kernel.body, &mut |s| {
        found |= matches!(s, Stmt::LaunchThread { tag, .. } if *tag != ThreadTag::VThread);
    });
    found
}

fn bytes(values: &[Value], dtype: DType) -> Vec<u8> {
    let int = |v: &Value| v.as_int().expect("an integer");
    let float = |v: &Value| match v {
        Value::Float(v) => *v,
        Value::Int(v) => *v as f64,
    };
    match dtype {
        DType::I32 => values.iter().flat_map(|v| (int(v) as i32).to_le_bytes()).collect(),
        DType::F32 => values.iter().flat_map(|v| (float(v) as f32).to_le_bytes()).collect(),
        other => panic!("tests of {other} are not here"),
    }
}

/// A kernel as a machine of so many lanes a warp gets it.
pub struct Lowered {
    warp: u32,
    checked: Checked,
    text: String,
}

/// The kernel lowered and verified for a machine.
pub fn lowered(kernel: &Kernel, warp: u32) -> Lowered {
    let target = Target::simulated(warp);
    let options = Options { target: &target, simple_mode: false };
    let flat = lower(kernel.clone(), &options, &mut |_, _| {})
        .unwrap_or_else(|error| panic!("{error}\n{}", coulis_ir::print::print_kernel(kernel)));
    let text = coulis_ir::print::print_kernel(&flat);
    let checked = verify_for(flat, &target).unwrap_or_else(|faults| panic!("{faults}\n{text}"));
    Lowered { warp, checked, text }
}

/// Runs it and compares: `wanted` are the values of all arguments.
pub fn check(program: &Program, lowered: &Lowered, inputs: &HashMap<BufferId, Array>, wanted: &[Array]) {
    let Lowered { warp, checked, text } = lowered;
    let mut memory: Vec<Vec<u8>> = Vec::new();
    for (arg, wanted) in program.args().iter().zip(wanted) {
        let is_input = matches!(arg.op().kind(), OpKind::Placeholder);
        let data = if is_input { &inputs[&arg.buffer().id].data } else { &wanted.data };
        let mut data = bytes(data, arg.dtype());
        if !is_input {
            data.fill(0xa5);
        }
        memory.push(data);
    }
    let mut args: Vec<SimArg> = Vec::new();
    for ((arg, array), memory) in program.args().iter().zip(wanted).zip(&mut memory) {
        let mut strides = vec![1; array.shape.len()];
        for dim in (1..array.shape.len()).rev() {
            strides[dim - 1] = strides[dim] * array.shape[dim].max(1);
        }
        let info = ArrayInfo { dtype: arg.dtype(), shape: array.shape.clone(), strides };
        let is_input = matches!(arg.op().kind(), OpKind::Placeholder);
        let array = if is_input { SimArray::read(memory, info) } else { SimArray::output(memory, info) };
        args.push(SimArg::Array(array));
    }
    let options = coulis_sim::Options { warp: *warp, ..coulis_sim::Options::default() };
    let report =
        coulis_sim::run(checked, &mut args, &options).unwrap_or_else(|error| panic!("{error}\n{text}"));
    drop(args);
    assert!(report.violations.is_empty(), "{}\n{text}", report.listing);
    for ((arg, wanted), found) in program.args().iter().zip(wanted).zip(&memory) {
        let same = *found == bytes(&wanted.data, arg.dtype());
        assert!(same, "`{}` is {found:?}, wanted {:?}\n{text}", arg.name(), wanted.data);
    }
}
