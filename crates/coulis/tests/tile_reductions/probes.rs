//! Calls that the reference accepts and gets wrong: the right answer, or a refusal that says what is wanted.

use coulis_ir::{DType, Target};

use crate::build::{Call, Fold, Tile, folds};
use crate::replicas::{Lanes, all_lanes};
use crate::run::{Arg, Program, check, check_declines, check_refused, check_wins, uniform};
use crate::views::Rows;

const F32: &[DType] = &[DType::F32];
const ALL: &[&str] = &["sum", "max", "min"];

fn sim() -> Target {
    Target::simulated(32)
}

fn fold(op: &'static str, accum: bool) -> Fold {
    Fold { op, dtype: DType::F32, accum }
}

/// A call on tiles in shared memory by a block of threads.
fn shared(src: &[i64], dst: &[i64], axes: &'static [i64], n_threads: u32) -> Call<'static> {
    let (src, dst) = (Tile::whole(src), Tile::whole(dst));
    Call { src, dst, axes, fold: fold("sum", false), n_threads, scope: "cta.", guard: "", options: "" }
}

fn check_shared(call: Call) {
    for own in folds(ALL, &[DType::F32, DType::F16, DType::I32], &[false, true]) {
        for warp in [32, 64] {
            let part = Call { fold: own, src: call.src.clone(), dst: call.dst.clone(), ..call };
            check_wins(&part.in_shared(), &Target::simulated(warp), "shared");
        }
    }
}

#[test]
fn tile_w4_shared_threads48_len32() {
    check_shared(shared(&[5, 32], &[5], &[-1], 48));
}

#[test]
fn tile_w4_shared_threads12_len5_accum() {
    check_shared(shared(&[3, 5], &[3], &[-1], 12));
}

#[test]
fn tile_w4_shared_threads24_len32() {
    check_shared(shared(&[4, 32], &[4], &[-1], 24));
}

#[test]
fn tile_w4_shared_any_number_of_threads_folds_any_length() {
    for n_threads in [1, 2, 3, 7, 31, 33, 63, 65, 96, 100, 160, 257] {
        for (rows, n) in [(1, 1), (1, 37), (3, 64), (40, 3), (2, 200)] {
            let call = shared(&[rows, n], &[rows], &[-1], n_threads);
            check_wins(&call.in_shared(), &sim(), "shared");
            let turned = Call { src: Tile::whole(&[n, rows]), axes: &[0], ..call };
            check_wins(&turned.in_shared(), &sim(), "shared");
        }
    }
}

#[test]
fn tile_w5_shared_divergent_cta() {
    let call = Call { guard: "if tid < 16:", ..shared(&[4, 8], &[4], &[-1], 32) };
    check_declines(&call.in_shared(), "shared", &sim(), "active threads: wanted all threads of the scope");
}

#[test]
fn tile_w5_shared_warp_scope_16_threads() {
    check_shared(Call { scope: "warp.", ..shared(&[32, 8], &[32], &[-1], 16) });
}

#[test]
fn tile_w6_shared_wg_unguarded_two_wgs() {
    let text = "@T.prim_func
def main(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (2, 4, 8), \"float32\")
    B = T.match_buffer(B_ptr, (2, 4), \"float32\")
    T.device_entry()
    T.cta_id([1])
    T.thread_id([256])
    wg = T.warpgroup_id([2])
    A_smem = T.alloc_buffer((2, 4, 8), \"float32\", scope=\"shared\")
    B_smem = T.alloc_buffer((2, 4), \"float32\", scope=\"shared\")
    Tx.cta.copy(A_smem, A)
    T.cuda.cta_sync()
    Tx.wg.sum(B_smem[wg, :], A_smem[wg, :, :], axes=(-1,), accum=False{dispatch})
    T.cuda.cta_sync()
    Tx.cta.copy(B, B_smem)
";
    let values = uniform(64, 1, DType::F32);
    let wants = values.chunks(8).map(|row| fold("sum", false).want(row, 0.0)).collect();
    let args = vec![
        Arg::In { dtype: DType::F32, shape: vec![2, 4, 8], values },
        Arg::Out { dtype: DType::F32, shape: vec![2, 4], wants },
    ];
    check_wins(&Program { text: text.to_owned(), args: args.clone() }, &sim(), "shared");
    // The program's own barrier 1 is left to it.
    let own = text.replace(
        "T.cuda.cta_sync()\n    Tx.wg",
        "T.cuda.cta_sync()\n    if wg == 0:\n        T.cuda.warpgroup_sync(1)\n    Tx.wg",
    );
    check_wins(&Program { text: own, args }, &sim(), "shared");
}

#[test]
fn tile_w7_local_dst_too_small() {
    let call = Call { scope: "", ..shared(&[4, 8], &[2], &[-1], 1) };
    check_declines(
        &no_answer(&call),
        "local",
        &sim(),
        "sizes: wanted constant extents, and an element for each result, found `B_local` of [2] for 4 results",
    );
}

#[test]
fn tile_w7_local_default_axes_oob() {
    let call = Call { scope: "", ..shared(&[4, 8], &[1], &[-1], 1) };
    let mut program = no_answer(&call);
    program.text = program.text.replace(", axes=(-1,)", "");
    check_declines(&program, "local", &sim(), "`B_local` of [1] for 4 results");
}

/// The program of a call that has no answer.
fn no_answer(call: &Call) -> Program {
    let whole = Call { axes: &[], dst: call.src.clone(), src: call.src.clone(), ..*call };
    let (from, to) = (crate::build::tuple(&call.src.shape), crate::build::tuple(&call.dst.shape));
    let mut program = whole.in_registers();
    program.text = program
        .text
        .replace(&format!("B_local = T.alloc_buffer({from}"), &format!("B_local = T.alloc_buffer({to}"));
    program.text = program.text.replace("axes=()", &format!("axes={}", crate::build::tuple(call.axes)));
    // Only the call is asked for.
    let end = program.text.find("    Tx.").unwrap();
    let line_end = end + program.text[end..].find('\n').unwrap() + 1;
    program.text.truncate(line_end);
    program
}

fn replicated(
    group: &dyn Fn(usize, usize) -> Vec<(usize, usize)>,
    src: &str,
    dst: &str,
    call: &str,
    n: [usize; 2],
    accum: bool,
) {
    let (from, to): (Vec<usize>, Vec<usize>) = ((0..n[0]).collect(), (0..n[1]).collect());
    let shape = match n[0] {
        1 => "(32,)".to_owned(),
        n => format!("(32, {n})"),
    };
    let dst_shape = format!("({},)", n[1]);
    let lanes =
        Lanes { warp: 32, src: (&shape, src, &from), dst: (&dst_shape, dst, &to), spans: n, call, group };
    for op in ALL {
        check_wins(&lanes.program(fold(op, accum)), &sim(), "local");
    }
}

#[test]
fn tile_w7_lane_replica_accum() {
    let dst = "S[1 : 1] + R[32 : 1 @ laneid]";
    replicated(&|_, _| all_lanes(32, 0), "S[32 : 1 @ laneid]", dst, "dst, src, axes=(-1,)", [1, 1], true);
}

#[test]
fn tile_w7_lane_replica_slice() {
    let (src, dst) = ("S[(32, 4) : (1 @ laneid, 1)]", "S[2 : 1] + R[32 : 1 @ laneid]");
    replicated(&|_, r| all_lanes(32, r + 1), src, dst, "dst, src[:, 1:3], axes=(0,)", [4, 2], false);
}

#[test]
fn tile_w7_lane_replica_fold_local() {
    let (src, dst) = ("S[(32, 4) : (1 @ laneid, 1)]", "S[1 : 1] + R[32 : 1 @ laneid]");
    let group = |_: usize, _: usize| (0..4).flat_map(|r| all_lanes(32, r)).collect();
    replicated(&group, src, dst, "dst, src, axes=(0, 1)", [4, 1], false);
}

#[test]
fn tile_w2_lane_replica_strided() {
    // Lanes l, l + 8, l + 16 and l + 24 share a result.
    let group = |lane: usize, _: usize| (0..4).map(|i| (lane % 8 + 8 * i, 0)).collect();
    let lanes = Lanes {
        warp: 32,
        src: ("(4, 8)", "S[(4, 8) : (8 @ laneid, 1 @ laneid)]", &[0]),
        dst: ("(8,)", "S[8 : 1 @ laneid] + R[4 : 8 @ laneid]", &[0]),
        spans: [1, 1],
        call: "dst, src, axes=(0,)",
        group: &group,
    };
    for own in folds(ALL, F32, &[false, true]) {
        check_wins(&lanes.program(own), &sim(), "local");
    }
}

#[test]
fn tile_w2_lane_replica_in_half_warp_branch() {
    let group = |_: usize, _: usize| all_lanes(32, 0);
    let lanes = Lanes {
        warp: 32,
        src: ("(32,)", "S[32 : 1 @ laneid]", &[0]),
        dst: ("(1,)", "S[1 : 1] + R[32 : 1 @ laneid]", &[0]),
        spans: [1, 1],
        call: "dst, src, axes=(-1,)",
        group: &group,
    };
    let mut program = lanes.program(fold("sum", false));
    program.text = program.text.replace("    Tx.warp", "    if lane < 16:\n        Tx.warp");
    check_declines(&program, "local", &sim(), "active threads: wanted all threads of the scope");
}

/// Rows of registers of one warp.
fn rows<'a>(n_rows: i64, inner: &'a [i64], kept: &'a [i64], axes: &'a [i64]) -> Rows<'a> {
    let ids = "T.thread_id([32])\nrow = T.lane_id([32])";
    Rows { n_rows, axis: "laneid", ids, scope: "warp.", inner, kept, axes, part: None }
}

#[test]
fn tile_w7_view_slice_partial_lane() {
    let mut program = rows(32, &[4], &[1], &[-1]).program(fold("sum", false));
    program.text = program.text.replace("B_reg, A_reg", "B_reg[0:16, :], A_reg[0:16, :]");
    check_declines(&program, "local", &sim(), "some of the threads of dimension 0");
}

#[test]
fn tile_w7_view_spatial_src_offset() {
    let part: &[(i64, i64)] = &[(2, 2), (0, 8)];
    let rows = Rows { part: Some(part), ..rows(32, &[4, 8], &[2, 1], &[-1]) };
    for own in folds(ALL, F32, &[false, true]) {
        check_wins(&rows.program(own), &sim(), "local");
    }
}

#[test]
fn tile_w7_transposed_lanes_are_told_apart() {
    let group = |_: usize, _: usize| Vec::new();
    let lanes = Lanes {
        warp: 32,
        src: ("(8, 4, 2)", "S[(8, 4, 2) : (4 @ laneid, 1 @ laneid, 1)]", &[0, 1]),
        dst: ("(8, 4)", "S[(8, 4) : (1 @ laneid, 8 @ laneid)]", &[0]),
        spans: [2, 1],
        call: "dst, src, axes=(-1,)",
        group: &group,
    };
    check_declines(&lanes.program(fold("sum", false)), "local", &sim(), "puts results in other threads");
}

#[test]
fn tile_w11_view_slice_single() {
    // One of four slices of a dimension that lanes and registers share.
    let src = "S[(4, 8, 4) : (1, 4 @ laneid, 1 @ laneid)]";
    for start in [0, 8, 16, 24] {
        let group = |lane: usize, _: usize| (0..4).map(|i| (lane / 4 * 4 + i, start / 8)).collect();
        let call = format!("dst, src[{start}:{}, :], axes=(-1,)", start + 8);
        let lanes = Lanes {
            warp: 32,
            src: ("(32, 4)", src, &[0, 1, 2, 3]),
            dst: ("(8,)", "S[8 : 4 @ laneid] + R[4 : 1 @ laneid]", &[0]),
            spans: [4, 1],
            call: &call,
            group: &group,
        };
        check_wins(&lanes.program(fold("sum", false)), &sim(), "local");
    }
}

#[test]
fn tile_w3_view_nonpow2_lanes() {
    // Six lanes of a warp; the others have nothing.
    for (extent, stride, lanes_of) in [(6usize, 1usize, 6usize), (3, 2, 6), (5, 3, 15), (7, 1, 28)] {
        let spatial = lanes_of / extent;
        let (src, dst) = match stride {
            1 if spatial > 1 => (
                format!("S[({spatial}, {extent}) : ({extent} @ laneid, 1 @ laneid)]"),
                format!("S[{spatial} : {extent} @ laneid] + R[{extent} : 1 @ laneid]"),
            ),
            1 => (
                format!("S[(1, {extent}) : (1, 1 @ laneid)]"),
                format!("S[1 : 1] + R[{extent} : 1 @ laneid]"),
            ),
            _ => (
                format!("S[({stride}, {extent}) : (1 @ laneid, {stride} @ laneid)]"),
                format!("S[{stride} : 1 @ laneid] + R[{extent} : {stride} @ laneid]"),
            ),
        };
        let shape = format!("({spatial}, {extent})");
        let dst_shape = format!("({spatial},)");
        let group = |lane: usize, _: usize| {
            if lane >= lanes_of {
                return Vec::new();
            }
            let of = if stride == 1 { lane / extent } else { lane % stride };
            (0..extent).map(|i| (if stride == 1 { of * extent + i } else { of + i * stride }, 0)).collect()
        };
        let lanes = Lanes {
            warp: 32,
            src: (&shape, &src, &[0]),
            dst: (&dst_shape, &dst, &[0]),
            spans: [1, 1],
            call: "dst, src, axes=(-1,)",
            group: &group,
        };
        for own in folds(ALL, F32, &[true]) {
            let mut program = lanes.program(own);
            if let Some(Arg::Out { wants, .. }) = program.args.last_mut() {
                wants.iter_mut().skip(lanes_of).for_each(|want| *want = None);
            }
            check_wins(&program, &sim(), "local");
        }
    }
}

#[test]
fn tile_view_mismatch() {
    let program = rows(32, &[4, 8], &[4, 2], &[-1]).program_without_answer(fold("sum", false));
    check_declines(
        &program,
        "local",
        &sim(),
        "layouts: wanted results where the layouts put what they are made of",
    );
}

#[test]
fn tile_view_no_layout_thread_axis() {
    let mut program = rows(32, &[4], &[1], &[-1]).program(fold("sum", false));
    program.text = program.text.replace("Tx.warp.", "Tx.");
    check_declines(
        &program,
        "local",
        &sim(),
        "operands: wanted registers of one thread, found `A_reg` in local memory, spread over threads",
    );
    program.text = program
        .text
        .replace("Tx.sum", "Tx.warp.sum")
        .replace("A_own[i] = A[row, i]", "A_reg[row, i] = A[row, i]");
    check_refused(&program, &sim(), "is spread over threads");
}

#[test]
fn tile_view_dst_dropped_dim() {
    for own in folds(ALL, F32, &[false, true]) {
        check_wins(&rows(32, &[4, 8], &[4], &[-1]).program(own), &sim(), "local");
    }
}

#[test]
fn tile_view_dropped_middle() {
    for own in folds(ALL, F32, &[false, true]) {
        check_wins(&rows(32, &[4, 8], &[8], &[1]).program(own), &sim(), "local");
    }
}

#[test]
fn tile_shared_axes_empty() {
    check_wins(&shared(&[4, 8], &[4, 8], &[], 32).in_shared(), &sim(), "shared");
}

#[test]
fn tile_shared_axes_dup() {
    let mut program = shared(&[4, 8], &[4], &[-1], 32).in_shared();
    program.text = program.text.replace("axes=(-1,)", "axes=(1, -1)");
    check_refused(&program, &sim(), "is named twice among the reduced ones");
}

#[test]
fn tile_a_grid_without_clusters_folds_none() {
    let text = "@T.prim_func
def main(A: T.Buffer((4, 64), \"float32\"), B: T.Buffer((4,), \"float32\")):
    T.device_entry(); T.cta_id([1])
    T.thread_id([64])
    s = T.alloc_buffer([4, 64], \"float32\", scope=\"shared\")
    t = T.alloc_buffer([4], \"float32\", scope=\"shared\")
    Tx.cta.copy(s, A)
    T.cuda.cta_sync()
    Tx.cluster.sum(t, s, axes=(-1,), accum=False{dispatch})
    Tx.cta.copy(B, t)
";
    let program = Program { text: text.to_owned(), args: Vec::new() };
    let target = Target::cuda("sm_90a").unwrap();
    let words = "scope: wanted one thread, a warp, a warpgroup or a cta, found a cluster";
    for variant in ["shared", "mixed", "local"] {
        check_declines(&program, variant, &target, words);
    }
    for variant in ["alone", "warp_shuffle", "warp_shuffle_two_stage", "shared_tree", "serial"] {
        check_declines(&program, variant, &target, "one element a thread, in registers, found cluster scope");
    }
    let words = "scope: wanted blocks in clusters, by `T.cta_id_in_cluster`, found a grid without clusters";
    check_declines(&program, "cluster_shared", &target, words);
    for option in ["lanes=32", "warps=2"] {
        let own = Program {
            text: text.replace("accum=False", &format!("accum=False, {option}")),
            args: Vec::new(),
        };
        check_refused(&own, &target, "no variant of tile.reduce accepts the call");
    }
}

#[test]
fn tile_packed_axes_empty() {
    let call = Call { scope: "", ..shared(&[32], &[1], &[], 1) };
    check_declines(&no_answer(&call), "sm100_packed", &Target::cuda("sm_100a").unwrap(), "sizes");
}

#[test]
fn tile_shared_dst_transposed_size() {
    check_shared(shared(&[2, 6, 4], &[3, 4], &[-1], 32));
}

#[test]
fn tile_shared_swizzled_src() {
    let mut program = shared(&[32, 32], &[32], &[-1], 32).in_shared();
    let plain =
        "A_smem = T.alloc_buffer((32, 32), \"float32\", scope=\"shared\", layout=TileLayout(S[(32, 32)]))";
    let swizzled = "A_smem = T.alloc_buffer((32, 32), \"float32\", scope=\"shared\", layout=ComposeLayout(2, 3, 3, \
                    TileLayout(S[(32, 32)])))";
    assert!(program.text.contains(plain));
    program.text = program.text.replace(plain, swizzled);
    check_wins(&program, &sim(), "shared");
}

#[test]
fn tile_shared_loop_region() {
    let mut program = shared(&[32, 32], &[32], &[-1], 32).in_shared();
    program.text = program.text.replace(
        "    Tx.cta.sum(B_smem, A_smem",
        "    for s in T.serial(4):\n        Tx.cta.sum(B_smem[s * 8:s * 8 + 8], A_smem[s * 8:s * 8 + 8, :]",
    );
    check_wins(&program, &sim(), "shared");
}

#[test]
fn tile_shared_threads32_len1() {
    check_shared(shared(&[40, 1], &[40], &[-1], 32));
}

#[test]
fn tile_shared_warp_thread64() {
    for n_threads in [64, 128] {
        let call = Call {
            scope: "warp.",
            guard: "warp_id = T.warp_id([2])\nif warp_id == 1:",
            ..shared(&[40, 8], &[40], &[-1], 64)
        };
        let guard = format!("warp_id = T.warp_id([{}])\nif warp_id == 1:", n_threads / 32);
        check_wins(&Call { n_threads, guard: &guard, ..call }.in_shared(), &sim(), "shared");
    }
}

#[test]
fn tile_w13_shared_one_long_row_t1024() {
    for own in folds(ALL, F32, &[false, true]) {
        let call = Call { fold: own, ..shared(&[1, 4096], &[1], &[-1], 1024) };
        check_wins(&call.in_shared(), &sim(), "shared");
        check_wins(&call.in_shared(), &Target::simulated(64), "shared");
    }
}

#[test]
fn tile_w14_shared_first_axis_128() {
    check_shared(shared(&[32, 32], &[32], &[0], 128));
}

#[test]
fn tile_thread_reduce_is_for_registers() {
    let named = Call { options: ", thread_reduce=True", ..shared(&[4, 8], &[4], &[-1], 32) }.in_shared();
    check_declines(&named, "shared", &sim(), "thread_reduce");
}

#[test]
fn tile_packed_forced() {
    let call = Call { scope: "", ..shared(&[32], &[1], &[-1], 1) };
    let hopper = Target::cuda("sm_90a").unwrap();
    check_declines(
        &call.in_registers(),
        "sm100_packed",
        &hopper,
        "architecture: wanted sm_100a or sm_103a, found sm_90a",
    );
    let blackwell = Target::cuda("sm_100a").unwrap();
    assert_eq!(check(&call.in_registers(), &blackwell), ["sm100_packed", "local"]);
    for alias in ["packed_add_sum", "3input_maxmin"] {
        assert!(crate::run::lowered(&call.in_registers(), Some(alias), &blackwell).is_ok(), "{alias}");
    }
}

#[test]
fn tile_packed_2d_src_and_parts_at_any_place() {
    let blackwell = Target::cuda("sm_100a").unwrap();
    for own in folds(ALL, F32, &[false, true]) {
        for start in 0..4 {
            let src = Tile::part(&[3, 24], &[(1, 2), (start, 19)]);
            let dst = Tile::part(&[5], &[(start, 2)]);
            let call = Call { fold: own, src, dst, scope: "", ..shared(&[1], &[1], &[-1], 1) };
            check_wins(&call.in_registers(), &blackwell, "sm100_packed");
        }
        let one = Call { fold: own, scope: "", ..shared(&[1, 32], &[1], &[-1], 1) };
        check_wins(&one.in_registers(), &blackwell, "sm100_packed");
        let all = Call { fold: own, scope: "", ..shared(&[4, 8], &[1], &[0, 1], 1) };
        check_wins(&all.in_registers(), &blackwell, "local");
    }
}

#[test]
fn tile_w8_results_of_several_instances_are_told_apart() {
    for (scope, n) in [("warp.", "4 warps"), ("", "128 threads")] {
        let own = Call { scope, ..shared(&[4, 8], &[4], &[-1], 128) };
        let found = format!("{n} that all write `B_smem`");
        check_declines(&own.in_shared(), "shared", &sim(), &found);
    }
}

#[test]
fn tile_w9_identities_are_infinities_and_nan_is_kept() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let rows: [([f64; 8], &str, f64); 6] = [
        ([-inf; 8], "max", -inf),
        ([inf; 8], "min", inf),
        ([1.0, 2.0, nan, 4.0, 5.0, 6.0, 7.0, 8.0], "max", nan),
        ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, nan], "min", nan),
        ([nan, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0], "max", nan),
        ([1e-40, 1e-41, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], "sum", 1.1e-40),
    ];
    for (values, op, want) in rows {
        let replace = |mut program: Program| {
            for arg in &mut program.args {
                match arg {
                    Arg::In { values: own, .. } => own.clone_from(&values.to_vec()),
                    Arg::Out { wants, .. } => wants.fill(Some((want, 1e-45))),
                }
            }
            program
        };
        let op = ALL.iter().find(|o| **o == op).unwrap();
        let call = Call { fold: fold(op, false), ..shared(&[1, 8], &[1], &[-1], 32) };
        check_wins(&replace(call.in_shared()), &sim(), "shared");
        let call = Call { scope: "", n_threads: 1, ..call };
        check_wins(&replace(call.in_registers()), &sim(), "local");
        check_wins(&replace(call.in_registers()), &Target::cuda("sm_100a").unwrap(), "sm100_packed");
    }
}

#[test]
fn tile_mixed_shared_to_local_and_global_to_global() {
    // One thread folds shared memory into its registers; a block folds global memory into global memory.
    let mut program = shared(&[4, 8], &[4], &[-1], 32).in_shared();
    program.text = program.text.replace(
        "    Tx.cta.sum(B_smem, A_smem, axes=(-1,), accum=False{dispatch})",
        "    if tid == 3:
        mine = T.alloc_buffer((4,), \"float32\", scope=\"local\")
        Tx.sum(mine, A_smem, axes=(-1,), accum=False{dispatch})
        for i in T.serial(4):
            B_smem[i] = mine[i]",
    );
    check_wins(&program, &sim(), "mixed");
    for n_threads in [32, 100, 256] {
        let own = shared(&[4, 200], &[4], &[-1], n_threads).in_shared();
        let (head, _) = own.text.split_once("    A_smem").unwrap();
        let text = format!("{head}    Tx.cta.sum(B, A, axes=(-1,), accum=False{{dispatch}})\n");
        check_wins(&Program { text, args: own.args }, &sim(), "mixed");
    }
    let half = shared(&[64, 24], &[64], &[-1], 64).in_shared();
    let (head, tail) = half.text.split_once("    Tx.cta.copy(A_smem, A)\n").unwrap();
    let text = format!("{head}{}", tail.replace("B_smem, A_smem", "B_smem, A"));
    check_wins(&Program { text, args: half.args }, &sim(), "mixed");
}
