//! Devices, random data and small kernels for the tests of this crate.

#![allow(dead_code, reason = "each test file uses its part")]

use std::sync::{Arc, OnceLock};

use coulis_ir::args::Bindings;
use coulis_ir::eval::Value;
use coulis_ir::hash::FastMap;
use coulis_ir::verify::verify;
use coulis_ir::{Buffer, Checked, DType, Expr, Form, Kernel, LoopKind, MemScope, Param, Stmt, Var, float8};
use coulis_runtime::{Cpu, CpuKind, CpuOptions, Device, Environment};

/// The environment of this process, in which a compiler is looked for whatever the rest of the test suite runs
/// without: these tests are about compiling.
pub fn with_compiler() -> Environment {
    Environment { coulis_cc: None, ..Environment::of_process() }
}

/// The compiling device, with a cache of this process alone.
pub fn device() -> Arc<dyn Device> {
    static DEVICE: OnceLock<(Arc<dyn Device>, tempfile::TempDir)> = OnceLock::new();
    DEVICE.get_or_init(|| open(with_compiler())).0.clone()
}

/// The same for the least processor of its kind.
pub fn baseline() -> Arc<dyn Device> {
    static DEVICE: OnceLock<(Arc<dyn Device>, tempfile::TempDir)> = OnceLock::new();
    let environment = || Environment { coulis_cpu: Some("baseline".into()), ..with_compiler() };
    DEVICE.get_or_init(|| open(environment())).0.clone()
}

fn open(environment: Environment) -> (Arc<dyn Device>, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let options = CpuOptions {
        kind: CpuKind::Compiled,
        cache_dir: Some(dir.path().join("cache")),
        n_threads: Some(2),
        environment: Some(environment),
        ..CpuOptions::default()
    };
    (Cpu::open(&options).unwrap().0, dir)
}

/// A small generator: the same numbers on each machine.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, n: usize) -> usize {
        (self.next() >> 33) as usize % n
    }

    /// Elements of `dtype`, special values among them.
    pub fn array(&mut self, dtype: DType, n: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        for _ in 0..n {
            let raw = self.next();
            let special =
                [0.0, -0.0, 1.0, -1.0, 0.5, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 65504.0, 1e-40, -3e9];
            let float = match self.below(3) {
                0 => special[self.below(special.len())],
                1 => (raw % 2001) as f64 / 8.0 - 125.0,
                _ => f64::from_bits(raw),
            };
            match dtype {
                DType::Bool => bytes.push((raw & 1) as u8),
                DType::F32 if raw & 1 == 0 => bytes.extend(f32::from_bits((raw >> 32) as u32).to_le_bytes()),
                DType::F32 => bytes.extend((float as f32).to_le_bytes()),
                DType::F64 => bytes.extend(float.to_le_bytes()),
                _ => {
                    let small = (raw % 17) as i64 - 8;
                    let value = if self.below(3) == 0 { small as u64 } else { raw };
                    bytes.extend(&value.to_le_bytes()[..dtype.bytes()]);
                }
            }
        }
        bytes
    }
}

pub trait Element: Copy {
    fn bytes(self) -> Vec<u8>;
}

impl Element for f32 {
    fn bytes(self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }
}

impl Element for f64 {
    fn bytes(self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }
}

impl Element for i64 {
    fn bytes(self) -> Vec<u8> {
        self.to_le_bytes().to_vec()
    }
}

pub fn encode<T: Element>(values: &[T]) -> Vec<u8> {
    values.iter().flat_map(|v| v.bytes()).collect()
}

pub fn bits_of(bytes: &[u8], dtype: DType, i: usize) -> u64 {
    let width = dtype.bytes();
    let mut raw = [0u8; 8];
    raw[..width].copy_from_slice(&bytes[i * width..(i + 1) * width]);
    u64::from_le_bytes(raw)
}

/// The value of element `i`.
pub fn decode(dtype: DType, bytes: &[u8], i: usize) -> Value {
    let bits = bits_of(bytes, dtype, i);
    match dtype {
        DType::F8E4M3 => Value::Float(f64::from(float8::e4m3_to_f32(bits as u8))),
        DType::F8E5M2 => Value::Float(f64::from(float8::e5m2_to_f32(bits as u8))),
        DType::F16 => Value::Float(half_to_f64(bits as u16)),
        DType::BF16 => Value::Float(f64::from(f32::from_bits((bits as u32) << 16))),
        DType::F32 => Value::Float(f64::from(f32::from_bits(bits as u32))),
        DType::F64 => Value::Float(f64::from_bits(bits)),
        DType::U64 => Value::Int(i128::from(bits)),
        _ => Value::Int(dtype.wrap_int(i128::from(bits))),
    }
}

fn half_to_f64(bits: u16) -> f64 {
    let sign = if bits & 0x8000 != 0 { -1.0 } else { 1.0 };
    let (exponent, mantissa) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    match exponent {
        31 if mantissa != 0.0 => f64::NAN,
        31 => sign * f64::INFINITY,
        0 => sign * mantissa * 2f64.powi(-24),
        _ => sign * (1.0 + mantissa / 1024.0) * 2f64.powi(exponent - 15),
    }
}

pub fn flat(name: &str, buffers: &[Buffer], body: Stmt) -> Checked {
    let params = buffers
        .iter()
        .map(|buffer| Param::Buffer {
            handle: Var::handle(&format!("{}_ptr", buffer.name)),
            buffer: buffer.clone(),
        })
        .collect();
    let kernel = Kernel { name: name.to_owned(), params, attrs: Default::default(), form: Form::Flat, body };
    verify(kernel).unwrap_or_else(|faults| panic!("{}\n{:?}", faults.listing, faults.faults))
}

/// Runs a kernel of constant shapes on the bytes of its buffers, which it returns.
pub fn run_kernel(
    device: &Arc<dyn Device>,
    buffers: &[Buffer],
    body: Stmt,
    mut data: Vec<Vec<u8>>,
) -> Vec<Vec<u8>> {
    let executable = device.compile(&flat("test", buffers, body)).unwrap_or_else(|error| panic!("{error}"));
    launch(&*executable, &Bindings::new(), &mut data).unwrap();
    data
}

/// Runs on copies that are aligned to 64 bytes.
pub fn launch(
    executable: &dyn coulis_runtime::Executable,
    bindings: &Bindings,
    data: &mut [Vec<u8>],
) -> Result<(), coulis_runtime::RuntimeError> {
    let mut copies: Vec<Vec<u64>> =
        data.iter().map(|bytes| vec![0u64; bytes.len().div_ceil(8) + 1]).collect();
    let mut pointers = Vec::new();
    for (copy, bytes) in copies.iter_mut().zip(data.iter()) {
        let pointer = copy.as_mut_ptr().cast::<u8>();
        // SAFETY: the copy is at least as long.
        unsafe { pointer.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        pointers.push(pointer);
    }
    // SAFETY: the kernels of these tests stay within their buffers.
    let result = unsafe { executable.launch(bindings, &pointers) }.map(drop);
    for (pointer, bytes) in pointers.iter().zip(data.iter_mut()) {
        // SAFETY: as above.
        unsafe { bytes.as_mut_ptr().copy_from_nonoverlapping(*pointer, bytes.len()) };
    }
    result
}

/// `out[k][i] = exprs[k](inputs[..][i])` for `n` elements, `lanes` at a time with a scalar tail.
pub fn run_elementwise(
    device: &Arc<dyn Device>,
    vars: &[Var],
    exprs: &[Expr],
    inputs: &[Vec<u8>],
    n: usize,
    lanes: u32,
) -> Vec<Vec<u8>> {
    let shape = || vec![Expr::int_of(n as i128, DType::I64)];
    let sources: Vec<Buffer> =
        vars.iter().map(|v| Buffer::new(v.name(), v.dtype(), shape(), MemScope::Global)).collect();
    let targets: Vec<Buffer> = exprs
        .iter()
        .enumerate()
        .map(|(k, e)| Buffer::new(&format!("out{k}"), e.dtype(), shape(), MemScope::Global))
        .collect();
    let int = |v: usize| Expr::int_of(v as i128, DType::I64);
    let at = |place: Expr| {
        let map: FastMap<_, _> = vars
            .iter()
            .zip(&sources)
            .map(|(var, source)| (var.clone(), Expr::load(source.clone(), vec![place.clone()])))
            .collect();
        let stores = exprs.iter().zip(&targets).map(|(expr, target)| {
            Stmt::store(target, [place.clone()], coulis_ir::visit::substitute_expr(expr, &map))
        });
        Stmt::seq(stores.collect::<Vec<_>>())
    };
    let i = Var::size("i", DType::I64);
    let whole = n / lanes as usize * lanes as usize;
    let main = if lanes == 1 {
        Stmt::NOP
    } else {
        let base = i.expr() * int(lanes as usize);
        Stmt::for_(
            i.clone(),
            int(0),
            int(n / lanes as usize),
            LoopKind::Parallel,
            at(Expr::ramp(base, int(1), lanes)),
        )
    };
    let start = if lanes == 1 { 0 } else { whole };
    let t = Var::size("t", DType::I64);
    let tail = Stmt::for_(t.clone(), int(start), int(n - start), LoopKind::Serial, at(t.expr()));
    let buffers: Vec<Buffer> = sources.iter().chain(&targets).cloned().collect();
    let mut data: Vec<Vec<u8>> = inputs.to_vec();
    data.extend(exprs.iter().map(|e| vec![0u8; n * e.dtype().bytes()]));
    run_kernel(device, &buffers, Stmt::seq([main, tail]), data).split_off(vars.len())
}
