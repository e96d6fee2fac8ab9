//! `T.cuda.warp_reduce` and `T.cuda.cta_reduce`, by every variant that folds one register a thread.

use coulis_ir::{DType, Target};

use crate::build::Fold;
use crate::run::{Arg, Program, check_wins};

/// A block whose threads hold `start`, `start + 1`, ...; each gets the total of its `size` neighbours.
fn program(lines: &str, n: usize, start: usize, op: &'static str, size: usize) -> Program {
    let text = format!(
        "@T.prim_func
def main(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, ({n},), \"float32\")
    B = T.match_buffer(B_ptr, ({n},), \"float32\")
    T.device_entry()
    T.cta_id([1])
    tid = T.thread_id([{n}])
{lines}"
    );
    let values: Vec<f64> = (start..start + n).map(|v| v as f64).collect();
    let fold = Fold { op, dtype: DType::F32, accum: false };
    let exact = |(value, _): (f64, f64)| (value, 0.0);
    let wants = (0..n).map(|at| fold.want(&values[at / size * size..][..size], 0.0).map(exact)).collect();
    let shape = vec![n as i64];
    let args = vec![
        Arg::In { dtype: DType::F32, shape: shape.clone(), values },
        Arg::Out { dtype: DType::F32, shape, wants },
    ];
    Program { text, args }
}

#[test]
fn tile_5_10_warp_reduce_gives_every_lane_the_total_of_its_neighbours() {
    let cases = [("sum", 32, 0), ("sum", 8, 0), ("max", 4, 0), ("min", 32, 1), ("sum", 2, 1)];
    let widths = [2, 4, 8, 16, 32].map(|width| ("sum", width, 0));
    for (op, width, start) in cases.into_iter().chain(widths) {
        for call in
            [format!("warp_{op}(A[tid], {width})"), format!("warp_reduce(A[tid], \"{op}\", width={width})")]
        {
            let program = program(&format!("    B[tid] = T.cuda.{call}\n"), 64, start, op, width);
            for warp in [32, 64] {
                check_wins(&program, &Target::simulated(warp), "warp_shuffle");
            }
        }
    }
}

#[test]
fn tile_5_10_cta_reduce_gives_every_thread_the_total_of_the_block() {
    let cases = [("sum", 4), ("sum", 8), ("max", 4), ("min", 4), ("sum", 1)];
    let warps = [1, 2, 4, 8, 16].map(|n_warps| ("sum", n_warps));
    for (op, n_warps) in cases.into_iter().chain(warps) {
        for warp in [32, 64] {
            let lines = format!(
                "    scratch = T.alloc_shared([{n_warps}], \"float32\")\n    \
                 B[tid] = T.cuda.cta_reduce(A[tid], \"{op}\", {n_warps}, scratch.data)\n"
            );
            let n = n_warps * warp;
            let program = program(&lines, n, 1, op, n);
            let winner = if n_warps == 1 { "warp_shuffle" } else { "warp_shuffle_two_stage" };
            check_wins(&program, &Target::simulated(warp as u32), winner);
        }
    }
}

#[test]
fn tile_w10_cta_reduce_twice_same_scratch() {
    let lines = "    scratch = T.alloc_shared([4], \"float32\")
    for i in T.serial(3):
        first = T.cuda.cta_sum(A[tid], 4, scratch.data)
        B[tid] = first + T.cuda.cta_max(A[tid], 4, T.address_of(scratch[0]))
";
    let mut program = program(lines, 128, 0, "sum", 128);
    if let Some(Arg::Out { wants, .. }) = program.args.last_mut() {
        wants.fill(Some((127.0 * 64.0 + 127.0, 0.0)));
    }
    check_wins(&program, &Target::simulated(32), "warp_shuffle_two_stage");
}
