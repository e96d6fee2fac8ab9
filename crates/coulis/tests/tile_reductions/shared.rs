//! Tiles in shared memory, at every scope.

use coulis_ir::{DType, Target};

use crate::build::{Call, Fold, Tile, folds};
use crate::run::check_wins;

const OPS: &[&str] = &["sum", "max", "min"];
const BOTH: &[bool] = &[false, true];

fn check_cta(src: Tile, dst: Tile, axes: &[i64]) {
    let n_threads = if src.size() > 1024 { 128 } else { 32 };
    for fold in folds(OPS, &[DType::F32, DType::F16], BOTH) {
        let call = Call {
            src: src.clone(),
            dst: dst.clone(),
            axes,
            fold,
            n_threads,
            scope: "cta.",
            guard: "",
            options: "",
        };
        for warp in [32, 64] {
            check_wins(&call.in_shared(), &Target::simulated(warp), "shared");
        }
    }
}

#[test]
fn tile_5_1_0_rows_of_a_tile() {
    check_cta(Tile::whole(&[32, 32]), Tile::whole(&[32]), &[-1]);
}

#[test]
fn tile_5_1_1_columns_of_a_tile() {
    check_cta(Tile::whole(&[32, 32]), Tile::whole(&[32]), &[0]);
}

#[test]
fn tile_5_1_2_two_trailing_axes_of_four() {
    check_cta(Tile::whole(&[8, 16, 2, 22]), Tile::whole(&[8, 16]), &[-2, -1]);
}

#[test]
fn tile_5_1_3_a_middle_axis() {
    check_cta(Tile::whole(&[4, 8, 6]), Tile::whole(&[4, 6]), &[1]);
}

#[test]
fn tile_5_1_4_rows_of_seven() {
    check_cta(Tile::whole(&[32, 7]), Tile::whole(&[32]), &[-1]);
}

#[test]
fn tile_5_1_5_parts_of_tiles() {
    check_cta(Tile::part(&[32, 32], &[(1, 5), (1, 8)]), Tile::part(&[32], &[(2, 5)]), &[-1]);
}

fn check_scope(scope: &str, guard: &str, warp: u32) {
    for fold in folds(OPS, &[DType::F32], BOTH) {
        check_one(fold, scope, guard, warp);
    }
}

fn check_one(fold: Fold, scope: &str, guard: &str, warp: u32) {
    let (src, dst) = (Tile::whole(&[4, 8]), Tile::whole(&[4]));
    let call = Call { src, dst, axes: &[-1], fold, n_threads: 256, scope, guard, options: "" };
    check_wins(&call.in_shared(), &Target::simulated(warp), "shared");
}

#[test]
fn tile_5_2_warp_one_warp_of_a_block() {
    check_scope("warp.", "warp_id = T.warp_id([8])\nif warp_id == 5:", 32);
    check_scope("warp.", "warp_id = T.warp_id([4])\nif warp_id == 3:", 64);
}

#[test]
fn tile_5_2_warpgroup_one_warpgroup_of_a_block() {
    check_scope("wg.", "wg_id = T.warpgroup_id([2])\nif wg_id == 0:", 32);
    // Four warps of 64 lanes are the whole block.
    check_scope("wg.", "wg_id = T.warpgroup_id([1])\nif wg_id == 0:", 64);
}

#[test]
fn tile_5_2_thread_one_thread_of_a_block() {
    for warp in [32, 64] {
        check_scope("", "if tid == 65:", warp);
    }
}
