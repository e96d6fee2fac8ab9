//! Packed sums and extrema of three, which `sm_100a` and `sm_103a` have.

use coulis_ir::{DType, Target};

use crate::build::{Call, Tile, folds};
use crate::run::check_wins;

fn check(lengths: &[i64], ops: &[&'static str]) {
    for &n in lengths {
        for fold in folds(ops, &[DType::F32], &[false, true]) {
            let (src, dst) = (Tile::whole(&[n]), Tile::whole(&[1]));
            let call = Call { src, dst, axes: &[-1], fold, n_threads: 1, scope: "", guard: "", options: "" };
            let program = call.in_registers();
            let winner = if n < 8 { "local" } else { "sm100_packed" };
            check_wins(&program, &Target::cuda("sm_100a").unwrap(), winner);
            check_wins(&program, &Target::cuda("sm_103a").unwrap(), winner);
            for other in ["sm_90a", "sm_120a"] {
                check_wins(&program, &Target::cuda(other).unwrap(), "local");
            }
        }
    }
}

#[test]
fn tile_5_6_extrema_of_whole_chunks() {
    check(&[8, 16, 64, 128, 256], &["max", "min"]);
}

#[test]
fn tile_5_6_extrema_of_other_lengths() {
    check(&[7, 10, 15, 100], &["max", "min"]);
}

#[test]
fn tile_5_7_sums_of_whole_chunks() {
    check(&[8, 16, 64, 128, 256], &["sum"]);
}

#[test]
fn tile_5_7_sums_of_other_lengths() {
    check(&[9, 17, 63, 65, 100], &["sum"]);
}
