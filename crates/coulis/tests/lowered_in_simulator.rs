//! Kernels whose barriers, launches and guards lowering makes, run in the simulator: no violation, and the right values.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use coulis::text::{compile, emit_cuda, lower as lower_text};
use coulis::{CompileOptions, DeviceChoice, TargetChoice};
use coulis_ir::args::{ArrayInfo, compact_strides};
use coulis_ir::print::print_module;
use coulis_ir::{DType, Form, Kernel, Target};
use coulis_lower::{Options, lower};
use coulis_script::parse_module;
use coulis_sim::{SimArg, SimArray};

fn info(shape: &[i64]) -> ArrayInfo {
    ArrayInfo { dtype: DType::F32, strides: compact_strides(shape), shape: shape.to_vec() }
}

fn bytes(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// What the kernel `(A, B, scalars...)` leaves in `B`.
fn run(kernel: Kernel, a: (&[i64], &[f32]), b: &[i64], scalars: &[i64]) -> Vec<f32> {
    let target = Target::cuda("sm_90a").unwrap();
    let flat = lower(kernel, &Options { target: &target, simple_mode: false }, &mut |_, _| {}).unwrap();
    let checked = coulis_ir::verify::verify(flat).unwrap_or_else(|e| panic!("{e}\n{}", e.listing));
    let input = bytes(a.1);
    let mut output = vec![0; b.iter().product::<i64>() as usize * 4];
    let mut args = vec![
        SimArg::Array(SimArray::read(&input, info(a.0))),
        SimArg::Array(SimArray::output(&mut output, info(b))),
    ];
    args.extend(scalars.iter().map(|&s| SimArg::Scalar(s)));
    let options = coulis_sim::Options { warp_orders: 4, ..coulis_sim::Options::default() };
    let report = coulis_sim::run(&checked, &mut args, &options).unwrap();
    assert!(report.violations.is_empty(), "{:?}\n{}", report.violations, report.listing);
    drop(args);
    output.chunks(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect()
}

fn parsed(text: &str, form: Form) -> Kernel {
    let kernel = parse_module(text).unwrap_or_else(|e| panic!("{e}\n{text}")).remove(0);
    Kernel { form, ..kernel }
}

fn small(n: usize) -> Vec<f32> {
    (0..n).map(|i| ((i * 7919 + 13) % 31) as f32 - 15.0).collect()
}

#[test]
fn te_g14_the_kernel_of_seed_003_sums_rows_of_any_size() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../coulis-schedule/tests/listings");
    for (file, form) in [("6_tiled.py", Form::Tiled), ("3.py", Form::Nest)] {
        let text = std::fs::read_to_string(root.join(file)).unwrap();
        for (n, m) in [(128, 128), (100, 100), (1, 1), (37, 5), (33, 48), (3, 0), (64, 15)] {
            let values = small(n * m);
            let found = run(parsed(&text, form), (&[n as i64, m as i64], &values), &[n as i64], &[]);
            let want: Vec<f32> = (0..n).map(|i| values[i * m..(i + 1) * m].iter().sum()).collect();
            assert_eq!(found, want, "{file} of {n} x {m}");
        }
    }
}

/// A tile that 64 threads fill, and of which each reads what a thread of the other warp wrote, `n` times.
fn turned(mark: &str) -> String {
    format!(
        r#"
@T.prim_func(form="Nest")
def turned(A: T.Buffer((8, 64), "float32"), B: T.Buffer((64,), "float32"), n: T.int32):
    tx = T.launch_thread("threadIdx.x", 64)
    x = T.allocate([1], "float32", "local")
    x[0] = T.float32(0)
    for k in range(n):
        with T.attr(None, "{mark}", 1):
            s = T.allocate([64], "float32", "shared")
            s[tx] = A[k, tx]
            x[0] = x[0] * T.float32(2) + s[63 - tx]
    B[tx] = x[0]
"#
    )
}

#[test]
fn a_tile_that_is_filled_in_turns_is_waited_for() {
    let values = small(8 * 64);
    for mark in ["double_buffer", "pragma_nothing"] {
        for n in 0..=8usize {
            let found = run(parsed(&turned(mark), Form::Nest), (&[8, 64], &values), &[64], &[n as i64]);
            let want: Vec<f32> =
                (0..64).map(|t| (0..n).fold(0.0, |x, k| x * 2.0 + values[k * 64 + 63 - t])).collect();
            assert_eq!(found, want, "{mark}, {n} turns");
        }
    }
}

#[test]
fn two_reductions_in_a_loop_do_not_meet_in_shared_memory() {
    let text = r#"
@T.prim_func
def rows(A: T.Buffer((6, 2, 26), "float32"), B: T.Buffer((6, 2), "float32")):
    ty = T.launch_thread("threadIdx.y", 2)
    tx = T.launch_thread("threadIdx.x", 26)
    for k in range(6):
        r = T.alloc_buffer([2, 26], "float32", scope="local", layout=TileLayout(S[(2, 26) : (26 @ tx, 1 @ tx)]))
        mine = r.local(1)
        mine[0] = A[k, ty, tx]
        total = r.view(2, layout=TileLayout(S[2 : 26 @ tx] + R[26 : 1 @ tx]))
        Tx.cta.reduce(total, r, reducer=T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), axes=(1,))
        whole = total.local(1)
        if tx == 0:
            B[k, ty] = whole[0]
"#;
    let values = small(6 * 52);
    for dispatch in ["", ", dispatch=\"serial\""] {
        let text = text.replace("axes=(1,))", &format!("axes=(1,){dispatch})"));
        let found = run(parsed(&text, Form::Tiled), (&[6, 2, 26], &values), &[6, 2], &[]);
        let want: Vec<f32> = values.chunks(26).map(|row| row.iter().sum()).collect();
        assert_eq!(found, want);
    }
}

#[test]
fn launches_that_were_siblings_share_their_tile() {
    let text = r#"
@T.prim_func(form="Nest")
def shared(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
    bx = T.launch_thread("blockIdx.x", 4)
    s = T.allocate([64], "float32", "shared")
    with T.launch_thread("threadIdx.x", 64) as t:
        s[t] = A[bx * 64 + t]
    with T.launch_thread("vthread", 1) as v:
        with T.launch_thread("threadIdx.x", 64) as u:
            B[bx * 64 + u] = s[63 - u] + s[(u + 1) % 64]
"#;
    let values = small(256);
    let found = run(parsed(text, Form::Nest), (&[256], &values), &[256], &[]);
    let want: Vec<f32> = (0..256)
        .map(|i| {
            let (block, t) = (i / 64 * 64, i % 64);
            values[block + 63 - t] + values[block + (t + 1) % 64]
        })
        .collect();
    assert_eq!(found, want);
}

#[test]
fn the_text_for_the_simulator_is_that_of_its_warps() {
    let text = "@T.prim_func
def f(A: T.Buffer((64,), \"float32\"), B: T.Buffer((1,), \"float32\")):
    T.device_entry()
    T.cta_id([1])
    T.thread_id([64])
    T.warp_id([1])
    Tx.warp.sum(B, A)
";
    let target = |warp: u32| TargetChoice::Sim { warp };
    let shown = lower_text(text, None, Some(&target(64))).unwrap();
    let function = compile(
        text,
        &CompileOptions { device: DeviceChoice::Sim { warp: 64, orders: 1 }, ..CompileOptions::default() },
    )
    .unwrap();
    assert_eq!(shown, print_module(&[function[0].kernel().clone()]));
    // A warp of 32 lanes is not all of the block.
    assert!(lower_text(text, None, Some(&target(32))).is_err());
    let error = lower_text(text, None, Some(&target(16))).unwrap_err().to_string();
    assert!(error.contains("warps of 32 or 64 lanes"), "{error}");
    let error = emit_cuda(text, &target(64)).unwrap_err().to_string();
    assert_eq!(error, "error[emit/target]: CUDA text is for warps of 32 lanes, and the target has 64");
}
