//! Folds of whole warps by one instruction: integers on every CUDA machine, floats where the machine has them.

use coulis_ir::{DType, Target};

use crate::build::{Call, Fold, Tile, folds};
use crate::replicas::{Lanes, all_lanes};
use crate::run::{Arg, Program, check, check_declines, check_wins, counters, cuda};
use crate::seeds::sass;

const ALL: &[&str] = &["sum", "max", "min"];
const INTEGERS: &[DType] = &[DType::I32, DType::U32, DType::I8, DType::U16];

fn hopper() -> Target {
    Target::cuda("sm_90a").unwrap()
}

fn shared(fold: Fold, [rows, n]: [i64; 2], n_threads: u32) -> Call<'static> {
    let (src, dst) = (Tile::whole(&[rows, n]), Tile::whole(&[rows]));
    Call { src, dst, axes: &[-1], fold, n_threads, scope: "cta.", guard: "", options: "" }
}

#[test]
fn tile_w16_rows_of_integers_in_shared_memory_fold_by_one_instruction_a_warp() {
    for fold in folds(ALL, INTEGERS, &[false, true]) {
        check_wins(&shared(fold, [5, 32], 64).in_shared(), &hopper(), "redux_sync");
    }
    for fold in folds(ALL, &[DType::I32], &[true]) {
        for (extents, n_threads) in [([3, 100], 96), ([1, 1000], 256), ([2, 512], 128)] {
            check_wins(&shared(fold, extents, n_threads).in_shared(), &hopper(), "redux_sync");
        }
    }
    let fold = Fold { op: "sum", dtype: DType::I32, accum: false };
    let counted = counters(&shared(fold, [4, 32], 128).in_shared(), "redux_sync", &hopper());
    assert_eq!((counted.reduxes, counted.shuffles), (4, 0), "{counted:?}");
}

fn whole_warp<'a>(group: &'a dyn Fn(usize, usize) -> Vec<(usize, usize)>) -> Lanes<'a> {
    Lanes {
        warp: 32,
        src: ("(32, 4)", "S[(32, 4) : (1 @ laneid, 1)]", &[0, 1, 2, 3]),
        dst: ("(4,)", "S[4 : 1] + R[32 : 1 @ laneid]", &[0, 1, 2, 3]),
        spans: [4, 4],
        call: "dst, src, axes=(0,)",
        group,
    }
}

#[test]
fn tile_w16_registers_of_a_warp_fold_by_one_instruction_each() {
    let group = |_: usize, register: usize| all_lanes(32, register);
    for fold in folds(ALL, INTEGERS, &[false, true]) {
        check_wins(&whole_warp(&group).program(fold), &hopper(), "redux_sync");
    }
    for fold in folds(&["max", "min"], &[DType::F32, DType::F16, DType::BF16], &[false, true]) {
        let program = whole_warp(&group).program(fold);
        check_wins(&program, &Target::cuda("sm_100a").unwrap(), "redux_sync");
        check_wins(&program, &Target::cuda("sm_103a").unwrap(), "redux_sync");
        check_wins(&program, &hopper(), "local");
    }
}

#[test]
fn tile_w16_what_the_instruction_does_not_fold_is_declined_by_name() {
    let group = |_: usize, register: usize| all_lanes(32, register);
    let of = |op, dtype| whole_warp(&group).program(Fold { op, dtype, accum: false });
    let declines = |program: &Program, arch: &str, words: &str| {
        check_declines(program, "redux_sync", &Target::cuda(arch).unwrap(), words);
    };
    declines(
        &of("max", DType::F32),
        "sm_90a",
        "architecture: wanted sm_100a or sm_103a for floats, found sm_90a",
    );
    declines(&of("max", DType::F32), "sm_120a", "sm_100a or sm_103a for floats");
    declines(
        &of("sum", DType::F32),
        "sm_100a",
        "reducer: wanted a sum of integers that is stored in at most 32 bits",
    );
    declines(&of("sum", DType::I64), "sm_90a", "reducer: wanted a sum of integers");
    declines(&of("max", DType::I64), "sm_90a", "with a state of int64");
    let fold = Fold { op: "max", dtype: DType::I32, accum: false };
    declines(
        &shared(fold, [4, 8], 32).in_shared(),
        "sm_90a",
        "lanes: wanted whole warps of 32 lanes that fold, found 8 lanes",
    );
    let alone = Call { scope: "", n_threads: 1, ..shared(fold, [1, 32], 1) };
    declines(&alone.in_registers(), "sm_90a", "found one thread");
    for warp in [32, 64] {
        check_declines(
            &of("max", DType::I32),
            "redux_sync",
            &Target::simulated(warp),
            "sm_80 or later, found sim",
        );
        if warp == 32 {
            assert_eq!(check(&of("max", DType::I32), &Target::simulated(warp)), ["local"]);
        }
    }
}

#[test]
fn tile_w16_sums_wrap_and_extrema_keep_nan_and_infinities() {
    let group = |_: usize, register: usize| all_lanes(32, register);
    let with = |op: &'static str, dtype, value: &dyn Fn(usize) -> f64, want: f64| {
        let mut program = whole_warp(&group).program(Fold { op, dtype, accum: false });
        for arg in &mut program.args {
            match arg {
                Arg::In { values, .. } => (0..values.len()).for_each(|at| values[at] = value(at)),
                Arg::Out { wants, .. } => wants.fill(Some((want, 0.0))),
            }
        }
        program
    };
    let most = f64::from(i32::MAX);
    let wrapped = with("sum", DType::I32, &|_| most, f64::from(i32::MAX.wrapping_mul(32)));
    check_wins(&wrapped, &hopper(), "redux_sync");
    let blackwell = Target::cuda("sm_100a").unwrap();
    let infinite = with("max", DType::F32, &|_| f64::NEG_INFINITY, f64::NEG_INFINITY);
    check_wins(&infinite, &blackwell, "redux_sync");
    // One lane has a NaN in each of its registers.
    let nan = with("min", DType::F32, &|at| if at / 4 == 19 { f64::NAN } else { at as f64 }, f64::NAN);
    check_wins(&nan, &blackwell, "redux_sync");
}

#[test]
fn tile_w16_the_text_and_the_machine_code_have_the_instruction() {
    let group = |_: usize, register: usize| all_lanes(32, register);
    for (op, dtype, arch, wanted) in [
        ("max", DType::I32, "sm_90a", "__reduce_max_sync("),
        ("min", DType::U32, "sm_80", "__reduce_min_sync("),
        ("sum", DType::I32, "sm_90a", "__reduce_add_sync("),
        ("max", DType::F32, "sm_100a", "redux.sync.max.NaN.f32"),
        ("min", DType::F32, "sm_103a", "redux.sync.min.NaN.f32"),
    ] {
        let program = whole_warp(&group).program(Fold { op, dtype, accum: false });
        let text = cuda(&program, arch);
        assert!(text.contains(wanted) && !text.contains("__shfl"), "{text}");
        let Some(sass) = sass("tile_w16_the_text_and_the_machine_code", &program, arch) else { return };
        assert!(sass.matches("REDUX").count() >= 4 && !sass.contains("SHFL"), "{arch} {op} {dtype}\n{sass}");
    }
}
