//! How fast the simulator is: thread statements a second of a row sum and of a matrix product in shared memory.
//!
//! `cargo run --release -p coulis-sim --example sim_bench`

use std::error::Error;
use std::time::Instant;

use coulis_ir::args::{ArrayInfo, compact_strides};
use coulis_ir::{DType, verify::verify};
use coulis_sim::{Options, SimArg, SimArray};

const ROW_SUM: &str = r#"
@T.prim_func
def row_sum(A: T.Buffer((262144,), "float32"), B: T.Buffer((256,), "float32")):
    bx = T.launch_thread("blockIdx.x", 256)
    tx = T.launch_thread("threadIdx.x", 256)
    x = T.allocate([1], "float32", "local")
    s = T.allocate([256], "float32", "shared")
    x[0] = T.float32(0)
    for k in range(4):
        if k * 256 + tx < 1024:
            x[0] = x[0] + A[bx * 1024 + (k * 256 + tx)]
    s[tx] = x[0]
    for i in range(8):
        T.cuda.cta_sync()
        if tx < 128 >> i:
            s[tx] = s[tx] + s[tx + (128 >> i)]
    if tx == 0:
        B[bx] = s[0]
"#;

const PRODUCT: &str = r#"
@T.prim_func
def product(A: T.Buffer((65536,), "float32"), B: T.Buffer((65536,), "float32"), C: T.Buffer((65536,), "float32")):
    by = T.launch_thread("blockIdx.y", 16)
    bx = T.launch_thread("blockIdx.x", 16)
    ty = T.launch_thread("threadIdx.y", 16)
    tx = T.launch_thread("threadIdx.x", 16)
    a = T.allocate([256], "float32", "shared")
    b = T.allocate([256], "float32", "shared")
    x = T.allocate([1], "float32", "local")
    x[0] = T.float32(0)
    for k in range(16):
        a[ty * 16 + tx] = A[(by * 16 + ty) * 256 + (k * 16 + tx)]
        b[ty * 16 + tx] = B[(k * 16 + ty) * 256 + (bx * 16 + tx)]
        T.cuda.cta_sync()
        for i in range(16):
            x[0] = x[0] + a[ty * 16 + i] * b[i * 16 + tx]
        T.cuda.cta_sync()
    C[(by * 16 + ty) * 256 + (bx * 16 + tx)] = x[0]
"#;

const STREAM: &str = r#"
@T.prim_func
def polynomial(A: T.Buffer((65536,), "float32"), B: T.Buffer((65536,), "float32")):
    bx = T.launch_thread("blockIdx.x", 256)
    tx = T.launch_thread("threadIdx.x", 256)
    x = T.allocate([1], "float32", "local")
    x[0] = T.float32(1)
    for k in range(64):
        x[0] = x[0] * A[bx * 256 + tx] + T.float32(0.5)
    B[bx * 256 + tx] = x[0]
"#;

fn main() -> Result<(), Box<dyn Error>> {
    for (text, sizes) in
        [(ROW_SUM, &[262_144, 256][..]), (PRODUCT, &[65_536, 65_536, 65_536]), (STREAM, &[65_536, 65_536])]
    {
        let kernel = coulis_script::parse_module(text)?.remove(0);
        let checked = verify(kernel)?;
        let mut memory: Vec<Vec<u8>> = sizes
            .iter()
            .map(|n| (0..*n).flat_map(|i: i64| ((i % 17) as f32 / 16.0).to_le_bytes()).collect())
            .collect();
        let n_inputs = sizes.len() - 1;
        let mut args: Vec<SimArg<'_>> = memory
            .iter_mut()
            .zip(sizes)
            .enumerate()
            .map(|(n, (bytes, size))| {
                let shape = vec![*size];
                let info = ArrayInfo { dtype: DType::F32, strides: compact_strides(&shape), shape };
                SimArg::Array(if n < n_inputs {
                    SimArray::read(bytes, info)
                } else {
                    SimArray::output(bytes, info)
                })
            })
            .collect();
        let options = Options { warp_orders: 1, ..Options::default() };
        let start = Instant::now();
        let report = coulis_sim::run(&checked, &mut args, &options)?;
        let seconds = start.elapsed().as_secs_f64();
        let rate = report.counters.thread_statements as f64 / seconds / 1e6;
        println!(
            "{:<12} {:>12} thread statements in {seconds:.3} s: {rate:.1} million a second, {} violations",
            report.kernel,
            report.counters.thread_statements,
            report.violations.len()
        );
    }
    Ok(())
}
