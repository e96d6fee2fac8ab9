//! Forced variants, options and forms that the reference takes silently; what the chosen statements cost.

use coulis_ir::{DType, Target};

use crate::build::{Call, Fold, Tile, folds};
use crate::replicas::Lanes;
use crate::run::{Arg, Program, check, check_declines, check_refused, check_wins, chosen, counters, cuda};

fn sim() -> Target {
    Target::simulated(32)
}

/// A sum of tiles in shared memory or in registers.
fn sum(src: &[i64], dst: &[i64], axes: &'static [i64], n_threads: u32) -> Call<'static> {
    let fold = Fold { op: "sum", dtype: DType::F32, accum: false };
    let (src, dst) = (Tile::whole(src), Tile::whole(dst));
    Call { src, dst, axes, fold, n_threads, scope: "cta.", guard: "", options: "" }
}

#[test]
fn tile_shared_forced_unknown() {
    let options = ", dispatch=\"sm100\"";
    let program = Call { options, ..sum(&[4, 8], &[4], &[-1], 32) }.in_shared();
    check_refused(
        &program,
        &sim(),
        "`dispatch=\"sm100\"` names no variant of tile.reduce; there are `redux_sync`, `sm100_packed`",
    );
}

#[test]
fn tile_shared_forced_local() {
    check_declines(
        &sum(&[4, 8], &[4], &[-1], 32).in_shared(),
        "local",
        &sim(),
        "operands: wanted registers with a layout over threads, found `A_smem` in shared memory",
    );
}

#[test]
fn tile_shared_unknown_cfg() {
    for (options, words) in [
        (", foo=1", "has no argument `foo`"),
        (", thread_reduce=1", "`True` or `False`"),
        (", workspace=3", "has no argument `workspace`"),
    ] {
        let program = Call { options, ..sum(&[4, 8], &[4], &[-1], 32) }.in_shared();
        check_refused(&program, &sim(), words);
    }
}

#[test]
fn tile_packed_forced_local() {
    let call = Call { scope: "", ..sum(&[32], &[1], &[-1], 1) };
    let blackwell = Target::cuda("sm_100a").unwrap();
    assert_eq!(check(&call.in_registers(), &blackwell), ["sm100_packed", "local"]);
    let forced = Call { options: ", dispatch=\"local\"", ..call }.in_registers();
    assert_eq!(chosen(&forced, &blackwell), ["local"]);
    assert!(!cuda(&forced, "sm_100a").contains("f32x2"));
}

#[test]
fn tile_packed_2d_to_scalar() {
    // Both axes of a row-major tile are one run of elements, which `local` folds one by one.
    for fold in folds(&["sum", "max", "min"], &[DType::F32], &[false, true]) {
        let call = Call { fold, scope: "", ..sum(&[4, 8], &[1], &[0, 1], 1) };
        check_wins(&call.in_registers(), &Target::cuda("sm_100a").unwrap(), "local");
    }
    let call = Call { scope: "", ..sum(&[4, 8], &[1], &[0, 1], 1) };
    let blackwell = Target::cuda("sm_100a").unwrap();
    check_declines(&call.in_registers(), "sm100_packed", &blackwell, "order: wanted the last axis");
}

#[test]
fn tile_view_nonpow2_stride() {
    // One element a lane, the members of a group six lanes apart.
    let group = |lane: usize, _: usize| match lane < 24 {
        true => (0..4).map(|i| (lane % 6 + 6 * i, 0)).collect(),
        false => Vec::new(),
    };
    let lanes = Lanes {
        warp: 32,
        src: ("(4, 6)", "S[(4, 6) : (6 @ laneid, 1 @ laneid)]", &[0]),
        dst: ("(6,)", "S[6 : 1 @ laneid] + R[4 : 6 @ laneid]", &[0]),
        spans: [1, 1],
        call: "dst, src, axes=(0,)",
        group: &group,
    };
    for own in folds(&["sum", "max", "min"], &[DType::F32], &[true]) {
        let mut program = lanes.program(own);
        if let Some(crate::run::Arg::Out { wants, .. }) = program.args.last_mut() {
            wants.iter_mut().skip(24).for_each(|want| *want = None);
        }
        check_wins(&program, &sim(), "local");
    }
}

#[test]
fn tile_w8_blocks_that_write_the_same_results_are_told_apart() {
    let text = |dst: &str, guard: &str| {
        let indent = if guard.is_empty() { "" } else { "    " };
        format!(
            "@T.prim_func
def main(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (3, 4, 40), \"float32\")
    B = T.match_buffer(B_ptr, (3, 4), \"float32\")
    T.device_entry()
    bx = T.cta_id([3])
    row = T.meta_var(bx)
    T.thread_id([64])
{guard}    {indent}Tx.cta.sum({dst}, A[row, :, :], axes=(-1,), accum=False{{dispatch}})
"
        )
    };
    let values = crate::run::uniform(480, 3, DType::F32);
    let fold = Fold { op: "sum", dtype: DType::F32, accum: false };
    let args = |n: usize| {
        let want = |at: usize| fold.want(&values[at * 40..][..40], 0.0).filter(|_| at < n);
        vec![
            Arg::In { dtype: DType::F32, shape: vec![3, 4, 40], values: values.clone() },
            Arg::Out { dtype: DType::F32, shape: vec![3, 4], wants: (0..12).map(want).collect() },
        ]
    };
    check_wins(&Program { text: text("B[row, :]", ""), args: args(12) }, &sim(), "mixed");
    check_wins(&Program { text: text("B[0, :]", "    if bx == 0:\n"), args: args(4) }, &sim(), "mixed");
    check_declines(
        &Program { text: text("B[0, :]", ""), args: args(0) },
        "mixed",
        &sim(),
        "instances: wanted one block, or results of its own for each, found blocks along `blockIdx.x` that all write `B`",
    );
}

#[test]
fn tile_w1_masks_are_made_from_the_active_set() {
    for (n_threads, mask) in [(32, "(uint)4294967295"), (8, "(uint)255")] {
        let text = cuda(&sum(&[40, 8], &[40], &[-1], n_threads).in_shared(), "sm_90a");
        assert!(text.contains(&format!("__shfl_xor_sync({mask}, ")), "{text}");
        assert!(!text.contains("activemask"), "{text}");
    }
}

#[test]
fn tile_w13_few_rows_are_folded_by_all_warps() {
    // One row of 4096 by 1024 threads: four elements a thread, then 32 states through shared memory.
    let program = sum(&[1, 4096], &[1], &[-1], 1024).in_shared();
    let counted = counters(&program, "shared", &sim());
    assert_eq!(counted.shuffles, 32 * 5 + 5, "{counted:?}");
}

#[test]
fn tile_w14_lanes_that_read_one_row_read_different_banks() {
    let program = sum(&[32, 32], &[32], &[0], 128).in_shared();
    let counted = counters(&program, "shared", &sim());
    assert_eq!((counted.bank_conflicts, counted.shuffles), (0, 0), "{counted:?}");
}

#[test]
fn tile_w14_long_rows_are_read_by_vectors_of_16_bytes() {
    for (dtype, wide) in [(DType::F32, 4), (DType::F16, 8), (DType::F64, 2)] {
        for fold in [Fold { op: "sum", dtype, accum: true }, Fold { op: "max", dtype, accum: false }] {
            let whole = Call { fold, ..sum(&[3, 32 * wide * 2], &[3], &[-1], 96) };
            check_wins(&whole.in_shared(), &sim(), "shared");
            // Rows that begin at an odd place, and of a length that vectors do not divide.
            for part in [[(1, 2), (1, 32 * wide)], [(1, 2), (wide, 32 * wide)], [(0, 3), (0, 32 * wide + 1)]]
            {
                let rows = part[0].1;
                let call = Call {
                    src: Tile::part(&[3, 32 * wide * 2], &part),
                    dst: Tile::part(&[3], &[(0, rows)]),
                    ..Call { fold, ..sum(&[1], &[1], &[-1], 96) }
                };
                check_wins(&call.in_shared(), &sim(), "shared");
            }
        }
        let fold = Fold { op: "sum", dtype, accum: false };
        let requests = |extent: i64| {
            let call = Call { fold, ..sum(&[1, extent], &[1], &[-1], 32) };
            counters(&call.in_shared(), "shared", &sim()).shared_requests
        };
        // Twice the length by vectors costs no more accesses of the fold than one element more by elements.
        assert!(requests(32 * wide * 2) < requests(32 * wide * 2 - 1), "{dtype}");
    }
}

#[test]
fn tile_w18_a_barrier_beside_the_programs_own_is_not_repeated() {
    let text = cuda(&sum(&[4, 8], &[4], &[-1], 32).in_shared(), "sm_90a");
    assert_eq!(text.matches("__syncthreads").count(), 2, "{text}");
    assert_eq!(text.matches("__shfl").count(), 3, "{text}");
    // A block of one thread shuffles nothing.
    let alone = cuda(&Call { scope: "", ..sum(&[4], &[1], &[-1], 1) }.in_registers(), "sm_90a");
    assert!(!alone.contains("__shfl") && !alone.contains("__sync"), "{alone}");
}

#[test]
fn tile_w21_every_thread_copies_its_share_of_a_length_that_does_not_divide() {
    let program = sum(&[4, 8], &[4], &[-1], 32).in_shared();
    let text = cuda(&program, "sm_90a");
    assert!(!text.contains("for ("), "{text}");
    assert_eq!(check(&program, &sim()), ["shared"]);
}
