//! Tile calls of scheduled reductions, from text to Flat form.

use coulis_ir::print::print_module;
use coulis_ir::{Form, Kernel, Target};
use coulis_lower::{Options, lower};
use coulis_script::parse_module;
use std::path::Path;

/// Listing 6 of seed 003 before dispatch: rows split by 32, the factored axis of 16 on `threadIdx.x`.
const LISTING_6: &str = r#"
@T.prim_func
def default_function(A: T.handle, B: T.handle):
    n, m = T.int32(), T.int32()
    A_1 = T.match_buffer(A, (n, m), strides=("stride", "stride"), buffer_type="auto")
    B_1 = T.match_buffer(B, (n,), strides=("stride",), buffer_type="auto")
    blockIdx_x = T.launch_thread("blockIdx.x", (n + 31) // 32)
    threadIdx_y = T.launch_thread("threadIdx.y", 32)
    threadIdx_x = T.launch_thread("threadIdx.x", 16)
    B_rf = T.allocate([1], "float32", "local")
    B_rf[0] = T.float32(0)
    for k_outer in range((m + 15) // 16):
        if T.likely(blockIdx_x * 32 + threadIdx_y < n):
            if T.likely(k_outer * 16 + threadIdx_x < m):
                B_rf[0] = B_rf[0] + A_1[blockIdx_x * 32 + threadIdx_y, k_outer * 16 + threadIdx_x]
    red_buf0 = T.alloc_buffer([32, 16], "float32", scope="local", layout=TileLayout(S[(32, 16) : (16 @ tx, 1 @ tx)]))
    mine = red_buf0.local(1)
    mine[0] = B_rf[0]
    total = red_buf0.view(32, layout=TileLayout(S[32 : 16 @ tx] + R[16 : 1 @ tx]))
    Tx.cta.reduce(total, red_buf0, reducer=T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), axes=(1,), accum=False)
    whole = total.local(1)
    if threadIdx_x == 0 and blockIdx_x * 32 + threadIdx_y < n:
        B_1[blockIdx_x * 32 + threadIdx_y] = whole[0]
"#;

fn parsed(text: &str) -> Kernel {
    parse_module(text).unwrap_or_else(|e| panic!("{e}\n{text}")).remove(0)
}

fn lowered(kernel: Kernel, target: &Target) -> Kernel {
    let options = Options { target, simple_mode: false };
    let flat = lower(kernel, &options, &mut |_, _| {}).unwrap_or_else(|e| panic!("{e}"));
    match coulis_ir::verify::verify(flat) {
        Ok(checked) => checked.kernel().clone(),
        Err(faults) => panic!("{faults}:\n{}", faults.listing),
    }
}

#[track_caller]
fn check_golden(file: &str, kernel: Kernel) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/files/lower").join(file);
    let got = print_module(&[kernel]);
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &got).expect("the golden is written");
    }
    let want = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(got, want, "found:\n{got}\nwanted:\n{want}");
}

#[test]
fn listing_6_folds_by_shuffles_within_half_a_warp() {
    let kernel = parsed(LISTING_6);
    assert_eq!(kernel.form, Form::Tiled);
    let flat = lowered(kernel, &Target::cuda("sm_90a").unwrap());
    let program = coulis_ir::device::host_program(&flat).unwrap();
    assert_eq!(program.launches[0].n_threads(), Some(512));
    check_golden("listing_6_cross_thread.py", flat);
}
