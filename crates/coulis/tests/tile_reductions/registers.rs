//! Registers of one thread.

use coulis_ir::{DType, Target};

use crate::build::{Call, Tile, folds};
use crate::run::check_wins;

fn check_thread(src: &[i64], dst: &[i64], axes: &[i64], winner_on_sm_100: &str) {
    for fold in folds(&["sum", "max", "min"], &[DType::F32], &[false, true]) {
        let (src, dst) = (Tile::whole(src), Tile::whole(dst));
        let call = Call { src, dst, axes, fold, n_threads: 1, scope: "", guard: "", options: "" };
        let program = call.in_registers();
        check_wins(&program, &Target::simulated(32), "local");
        check_wins(&program, &Target::simulated(64), "local");
        check_wins(&program, &Target::cuda("sm_90a").unwrap(), "local");
        check_wins(&program, &Target::cuda("sm_100a").unwrap(), winner_on_sm_100);
    }
}

#[test]
fn tile_5_3_one_element() {
    check_thread(&[1], &[1], &[0], "local");
}

#[test]
fn tile_5_3_four_elements() {
    check_thread(&[4], &[1], &[0], "local");
}

#[test]
fn tile_5_3_seven_elements_are_one_too_few_for_packing() {
    check_thread(&[7], &[1], &[0], "local");
    check_thread(&[8], &[1], &[0], "sm100_packed");
}

#[test]
fn tile_5_3_sixteen_elements() {
    check_thread(&[16], &[1], &[0], "sm100_packed");
}

#[test]
fn tile_5_3_thirty_two_elements() {
    check_thread(&[32], &[1], &[0], "sm100_packed");
}

#[test]
fn tile_5_3_columns() {
    check_thread(&[4, 8], &[8], &[0], "local");
}

#[test]
fn tile_5_3_rows() {
    check_thread(&[4, 8], &[4], &[1], "sm100_packed");
}

#[test]
fn tile_5_3_outer_and_inner_axis() {
    check_thread(&[3, 4, 5], &[4], &[0, 2], "local");
}

#[test]
fn tile_5_3_last_axis_of_three() {
    check_thread(&[2, 3, 4], &[2, 3], &[-1], "local");
}

#[test]
fn tile_5_3_first_axis_of_three() {
    check_thread(&[2, 3, 4], &[3, 4], &[0], "local");
}
