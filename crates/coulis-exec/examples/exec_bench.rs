//! Measures the executor: GB/s of input of a few reductions over 64 MiB (half of that for float16), for several
//! numbers of lanes. The best of 25 runs counts, so that other work on the machine disturbs little.
//!
//! `cargo run --release -p coulis-exec --example exec_bench`

use std::time::Instant;

use coulis_exec::{Level, Pool, Program};
use coulis_ir::args::{ArgInfo, ArrayInfo, bind_args};
use coulis_ir::kernel::{Kernel, Param};
use coulis_ir::{Buffer, DType, Expr, Form, Intrinsic, LoopKind, MemScope, Stmt, Var, verify};

const N: i64 = 16 << 20;
const RUNS: u32 = 25;

fn i64c(value: i64) -> Expr {
    Expr::int_of(i128::from(value), DType::I64)
}

fn ramp(base: Expr, lanes: u32) -> Expr {
    Expr::ramp(base, i64c(1), lanes)
}

/// `unroll` accumulators of `lanes` lanes over contiguous parts; `step(old, x)` is the fold.
fn kernel(
    name: &str,
    dtype: DType,
    state: DType,
    init: f64,
    lanes: u32,
    parts: i64,
    step: &dyn Fn(Expr, Expr) -> Expr,
) -> Kernel {
    let a = Buffer::new("A", dtype, vec![i64c(N)], MemScope::Global);
    let o = Buffer::new("O", state, vec![i64c(parts * i64::from(lanes))], MemScope::Global);
    let s = Buffer::new("S", state, vec![i64c(i64::from(lanes))], MemScope::Local);
    let (p, k) = (Var::size("p", DType::I64), Var::size("k", DType::I64));
    let each = N / parts;
    let at = p.expr() * i64c(each) + k.expr() * i64c(i64::from(lanes));
    let all = ramp(i64c(0), lanes);
    let first = Expr::float(init, state).broadcast_to(lanes);
    let x = a.at(vec![ramp(at, lanes)]);
    let fold = Stmt::store(&s, vec![all.clone()], step(s.at(vec![all.clone()]), x));
    let out = Stmt::store(&o, vec![ramp(p.expr() * i64c(i64::from(lanes)), lanes)], s.at(vec![all.clone()]));
    let body = Stmt::allocate(
        s.clone(),
        Stmt::seq([
            Stmt::store(&s, vec![all], first),
            Stmt::range(k, i64c(each / i64::from(lanes)), fold),
            out,
        ]),
    );
    let body = Stmt::for_(p, i64c(0), i64c(parts), LoopKind::Parallel, body);
    let params = [a, o].map(|buffer| Param::Buffer { handle: Var::handle(&buffer.name), buffer });
    Kernel {
        name: name.to_owned(),
        params: params.to_vec(),
        attrs: Default::default(),
        form: Form::Flat,
        body,
    }
}

fn measure(kernel: Kernel, level: Level, parts: i64, lanes: u32, bytes: usize) {
    let infos: Vec<ArgInfo> = kernel
        .param_buffers()
        .zip([N, parts * i64::from(lanes)])
        .map(|(b, n)| ArgInfo::Array(ArrayInfo { dtype: b.dtype, shape: vec![n], strides: vec![1] }))
        .collect();
    let bindings = bind_args(&kernel, &infos).expect("arguments fit");
    let name = kernel.name.clone();
    let program =
        Program::compile_for(&verify::verify(kernel).expect("a legal kernel"), level).expect("compiles");
    let mut input = vec![0u64; N as usize * bytes / 8];
    for (i, word) in input.iter_mut().enumerate() {
        *word = if bytes == 2 { 0x3c00_3c00_3c00_3c00 } else { 0x3f80_0000_3f80_0000 ^ (i as u64 & 0xff) };
    }
    let mut output = vec![0u64; (parts * i64::from(lanes)) as usize];
    let buffers = [input.as_mut_ptr().cast::<u8>(), output.as_mut_ptr().cast::<u8>()];
    for threads in [1, 2] {
        let pool = Pool::global(threads);
        let (before, mut best) = (cpu_seconds(), f64::INFINITY);
        for _ in 0..RUNS {
            let start = Instant::now();
            // SAFETY: both vectors are as long as the bindings say.
            unsafe { program.run(&bindings, &buffers, pool) }.expect("runs");
            best = best.min(start.elapsed().as_secs_f64());
        }
        let gigabytes = (N as usize * bytes) as f64 / 1e9;
        let mean = (cpu_seconds() - before) / f64::from(RUNS);
        let (rate, cpu_rate) = (gigabytes / best, gigabytes / mean);
        let level = level.name();
        println!(
            "{name:12} {level:9} lanes {lanes:5} threads {threads}: {rate:6.1} GB/s, {cpu_rate:6.1} GB per CPU second"
        );
    }
}

/// CPU time of the process, where the system tells it; else 0.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|ns| ns.parse::<f64>().ok()).unwrap_or(0.0) / 1e9
}

/// Name, input type, state type, start, fold.
type Case<'c> = (&'c str, DType, DType, f64, &'c dyn Fn(Expr, Expr) -> Expr);

fn main() {
    let cases: [Case; 6] = [
        ("sum f32->f64", DType::F32, DType::F64, 0.0, &|s, x| s + x.cast(DType::F64)),
        ("sum f32", DType::F32, DType::F32, 0.0, &|s, x| s + x),
        ("max", DType::F32, DType::F32, f64::NEG_INFINITY, &|s, x| x.max(s)),
        ("sumsq", DType::F32, DType::F64, 0.0, &|s, x| {
            let x = x.cast(DType::F64);
            s + x.clone() * x
        }),
        ("sum f16->f32", DType::F16, DType::F32, 0.0, &|s, x| s + x.cast(DType::F32)),
        ("sum exp", DType::F32, DType::F32, 0.0, &|s, x| s + Expr::call1(Intrinsic::Exp, x)),
    ];
    for (name, dtype, state, init, step) in cases {
        for level in Level::ALL.into_iter().filter(|l| l.is_available()) {
            for lanes in [512, 1024, 4096] {
                let kernel = kernel(name, dtype, state, init, lanes, 2, step);
                measure(kernel, level, 2, lanes, dtype.bytes());
            }
        }
    }
}
