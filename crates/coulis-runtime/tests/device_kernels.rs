//! Every kernel of the device list on every machine that there is: the simulator and the first GPU against the executor;
//! and their texts through NVRTC, where it was fetched. What is missing is skipped with
//! the test's name.

#![allow(clippy::unwrap_used, reason = "tests")]

#[path = "../../coulis-codegen/tests/device_kernels/mod.rs"]
mod device_kernels;
mod support;

use std::sync::Arc;

use coulis_codegen::{dialect_named, emit_module};
use coulis_ir::args::{ArrayInfo, Bindings};
use coulis_ir::verify::verify;
use coulis_ir::{Buffer, Checked, DType};
use coulis_runtime::cuda::CudaCompiler;
use coulis_runtime::{Cpu, CpuKind, CpuOptions, Cuda, CudaOptions, Device, Environment, Executable, Span};
use coulis_script::parse_module;
use coulis_sim::{Options, SimArg, SimArray};
use device_kernels::{DeviceKernel, N, kernels};
use support::{Random, bits_of, decode, launch};

#[track_caller]
fn checked(name: &str, text: &str) -> Checked {
    let kernel = parse_module(text).unwrap_or_else(|error| panic!("{name}: {error}\n{text}")).remove(0);
    verify(kernel).unwrap_or_else(|faults| panic!("{name}: {faults}"))
}

fn executor() -> Arc<dyn Device> {
    let options = CpuOptions { kind: CpuKind::Executed, n_threads: Some(1), ..CpuOptions::default() };
    Cpu::open(&options).unwrap().0
}

/// What the kernel's buffers hold before it runs.
fn before(buffers: &[Buffer]) -> Vec<Vec<u8>> {
    let mut random = Random::new(77);
    let fill = |b: &Buffer| {
        if b.name.starts_with('A') { random.array(b.dtype, N) } else { vec![0u8; N * b.dtype.bytes()] }
    };
    buffers.iter().map(fill).collect()
}

/// What the twin leaves.
fn expected(device: &Arc<dyn Device>, kernel: &DeviceKernel) -> Vec<Vec<u8>> {
    let host = checked(&kernel.name, &kernel.host);
    let buffers: Vec<Buffer> = host.kernel().param_buffers().cloned().collect();
    let mut data = before(&buffers);
    let executable = device.compile(&host).unwrap_or_else(|error| panic!("{}: {error}", kernel.name));
    launch(&*executable, &Bindings::new(), &mut data).unwrap();
    data
}

/// Bits of floats as integers that are ordered as the values are.
fn ordered(bits: u64, dtype: DType) -> i128 {
    let top = 1u64 << (8 * dtype.bytes() - 1);
    if bits & top != 0 { -i128::from(bits ^ top) } else { i128::from(bits) }
}

/// The first elements that differ by more than the kernel allows, in words.
fn differences(kernel: &DeviceKernel, buffer: &Buffer, got: &[u8], want: &[u8]) -> Vec<String> {
    let dtype = buffer.dtype;
    let differs = |i: &usize| {
        let (x, y) = (bits_of(got, dtype, *i), bits_of(want, dtype, *i));
        if x == y {
            return false;
        }
        let both_nan = decode(dtype, got, *i).is_nan() && decode(dtype, want, *i).is_nan();
        let distance = (ordered(x, dtype) - ordered(y, dtype)).unsigned_abs();
        !(both_nan || (dtype.is_float() && distance <= u128::from(kernel.ulps)))
    };
    let say = |i: usize| {
        let (x, y) = (decode(dtype, got, i), decode(dtype, want, i));
        format!("{}: element {i} of `{}` is {x:?}, the twin's {y:?}", kernel.name, buffer.name)
    };
    (0..N).filter(differs).map(say).take(3).collect()
}

#[test]
fn the_simulator_and_the_executor_agree_on_everything_that_devices_spell() {
    let device = executor();
    let mut wrong = Vec::new();
    for kernel in kernels() {
        let on_device = checked(&kernel.name, &kernel.device);
        let buffers: Vec<Buffer> = on_device.kernel().param_buffers().cloned().collect();
        let mut data = before(&buffers);
        let info = |b: &Buffer| ArrayInfo { dtype: b.dtype, shape: vec![N as i64], strides: vec![1] };
        let mut args: Vec<SimArg<'_>> = buffers
            .iter()
            .zip(&mut data)
            .map(|(b, bytes)| match b.name.as_bytes()[0] {
                b'A' => SimArg::Array(SimArray::read(bytes, info(b))),
                b'O' => SimArg::Array(SimArray::output(bytes, info(b))),
                _ => SimArg::Array(SimArray::update(bytes, info(b))),
            })
            .collect();
        let report = coulis_sim::run(&on_device, &mut args, &Options::default())
            .unwrap_or_else(|error| panic!("{}: {error}", kernel.name));
        wrong.extend(report.violations.iter().take(2).map(|a| format!("{}: {a}", kernel.name)));
        drop(args);
        for ((buffer, got), want) in buffers.iter().zip(&data).zip(&expected(&device, &kernel)) {
            wrong.extend(differences(&kernel, buffer, got, want));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Memory that begins at a multiple of what words want.
struct Aligned {
    memory: Vec<u8>,
    begin: usize,
    bytes: usize,
}

impl Aligned {
    fn new(content: &[u8]) -> Aligned {
        let mut memory = vec![0u8; content.len() + 256];
        let begin = memory.as_ptr().align_offset(256);
        memory[begin..begin + content.len()].copy_from_slice(content);
        Aligned { memory, begin, bytes: content.len() }
    }

    fn content(&self) -> &[u8] {
        &self.memory[self.begin..self.begin + self.bytes]
    }
}

#[test]
fn the_first_gpu_and_the_executor_agree_on_everything_that_devices_spell() {
    let cuda = match Cuda::open(0, &CudaOptions::default()) {
        Ok((cuda, _)) => cuda,
        Err(error) => {
            println!("SKIP the_first_gpu_and_the_executor_agree_on_everything_that_devices_spell: {error}");
            return;
        }
    };
    let device = executor();
    let mut wrong = Vec::new();
    for kernel in kernels() {
        let on_device = checked(&kernel.name, &kernel.device);
        let buffers: Vec<Buffer> = on_device.kernel().param_buffers().cloned().collect();
        let mut data: Vec<Aligned> = before(&buffers).iter().map(|bytes| Aligned::new(bytes)).collect();
        let spans: Vec<Span> = data
            .iter_mut()
            .zip(&buffers)
            .map(|(array, buffer)| Span {
                first: array.memory[array.begin..].as_mut_ptr(),
                before: 0,
                after: array.bytes,
                is_written: !buffer.name.starts_with('A'),
            })
            .collect();
        let executable = cuda.prepare(&on_device).unwrap_or_else(|error| panic!("{}: {error}", kernel.name));
        // SAFETY: each span is the whole of a buffer of its own, and the kernels stay within their buffers.
        unsafe { executable.launch_on_host(&Bindings::new(), &spans) }
            .unwrap_or_else(|error| panic!("{}: {error}", kernel.name));
        for ((buffer, got), want) in buffers.iter().zip(&data).zip(&expected(&device, &kernel)) {
            wrong.extend(differences(&kernel, buffer, got.content(), want));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The compiler, where NVRTC is found.
fn compiler(test: &str) -> Option<CudaCompiler> {
    // These tests are about compiling, whatever the rest of the suite runs without.
    let environment = Environment { coulis_cuda_path: None, ..Environment::of_process() };
    let options = CudaOptions { environment: Some(environment), ..CudaOptions::default() };
    let search = options.search();
    if let Err(error) = search.find_nvrtc() {
        println!("SKIP {test}: {error}");
        return None;
    }
    Some(CudaCompiler::open(&search, None).0)
}

/// For the first architecture that has paired sums; and for the oldest where a text differs between them.
#[test]
fn everything_that_the_dialect_spells_compiles() {
    let Some(compiler) = compiler("everything_that_the_dialect_spells_compiles") else { return };
    let dialect = dialect_named("cuda").unwrap();
    for kernel in kernels() {
        let text = emit_module(&checked(&kernel.name, &kernel.device), dialect).unwrap().text;
        let archs = match (text.contains("__CUDA_ARCH__"), text.contains("__cluster_dims__")) {
            (_, true) => &["sm_100a", "sm_90a"][..],
            (true, false) => &["sm_100a", "sm_80"],
            (false, false) => &["sm_100a"],
        };
        for arch in archs {
            let compiled = compiler.cubin(&kernel.name, &text, arch);
            assert!(compiled.is_ok(), "{} for {arch}: {}\n{text}", kernel.name, compiled.unwrap_err());
        }
    }
}
