//! Extrema of 16-bit floats, two elements an instruction.

use coulis_ir::{DType, Target};

use crate::build::{Call, Fold, Tile, folds};
use crate::replicas::{Lanes, all_lanes};
use crate::run::{Arg, Program, check, check_declines, check_wins, cuda};
use crate::seeds::sass;
use crate::views::accumulator;

const HALVES: &[DType] = &[DType::F16, DType::BF16];
const EXTREMA: &[&str] = &["max", "min"];

fn hopper() -> Target {
    Target::cuda("sm_90a").unwrap()
}

fn registers(shape: &[i64], axes: &[i64], kept: &[i64], fold: Fold) -> Program {
    let (src, dst) = (Tile::whole(shape), Tile::whole(kept));
    Call { src, dst, axes, fold, n_threads: 1, scope: "", guard: "", options: "" }.in_registers()
}

fn shared([rows, n]: [i64; 2], n_threads: u32, fold: Fold) -> Program {
    let (src, dst) = (Tile::whole(&[rows, n]), Tile::whole(&[rows]));
    Call { src, dst, axes: &[-1], fold, n_threads, scope: "cta.", guard: "", options: "" }.in_shared()
}

#[test]
fn tile_w15_registers_of_16_bits_are_folded_in_pairs() {
    for fold in folds(EXTREMA, HALVES, &[false, true]) {
        for n in [4, 8, 12, 64, 100] {
            check_wins(&registers(&[n], &[0], &[1], fold), &hopper(), "packed_halves");
        }
        for (shape, axes, kept) in
            [(&[4, 8][..], &[-1][..], &[4][..]), (&[3, 4, 6], &[0, 2], &[4]), (&[2, 2, 2], &[1, 2], &[2])]
        {
            check_wins(&registers(shape, axes, kept, fold), &hopper(), "packed_halves");
        }
    }
    let fold = Fold { op: "max", dtype: DType::F16, accum: false };
    for arch in ["sm_80", "sm_100a", "sm_120a"] {
        check_wins(&registers(&[32], &[0], &[1], fold), &Target::cuda(arch).unwrap(), "packed_halves");
    }
}

#[test]
fn tile_w15_rows_of_16_bits_in_shared_memory_are_folded_in_pairs() {
    for fold in folds(EXTREMA, HALVES, &[false, true]) {
        for (extents, n_threads) in [([4, 512], 128), ([1, 1024], 128), ([3, 128], 32), ([2, 768], 100)] {
            check_wins(&shared(extents, n_threads, fold), &hopper(), "packed_halves");
        }
    }
}

#[test]
fn tile_w15_registers_of_16_bits_spread_over_a_warp_are_folded_in_pairs() {
    let all = |_: usize, _: usize| (0..8).flat_map(|register| all_lanes(32, register)).collect();
    let own = |lane: usize, _: usize| (0..8).map(|register| (lane, register)).collect();
    let places: Vec<usize> = (0..8).collect();
    let gaps: Vec<usize> = (0..8).map(|i| i / 4 + i % 4 * 2).collect();
    let to_all = ("(1,)", "S[1 : 1] + R[32 : 1 @ laneid]", &[0usize][..], "dst, src, axes=(0, 1)");
    let to_each = ("(32,)", "S[32 : 1 @ laneid]", &[0][..], "dst, src, axes=(1,)");
    for (layout, at) in
        [("S[(32, 8) : (1 @ laneid, 1)]", &places), ("S[(32, 2, 4) : (1 @ laneid, 1, 2)]", &gaps)]
    {
        for ((shape, dst, to, call), group) in
            [(to_all, &all as &dyn Fn(usize, usize) -> Vec<(usize, usize)>), (to_each, &own)]
        {
            let src = ("(32, 8)", layout, &at[..]);
            let lanes = Lanes { warp: 32, src, dst: (shape, dst, to), spans: [8, 1], call, group };
            for fold in folds(EXTREMA, HALVES, &[false, true]) {
                check_wins(&lanes.program(fold), &hopper(), "packed_halves");
            }
        }
    }
}

#[test]
fn tile_w15_accumulators_of_16_bits_are_folded_in_pairs() {
    for fold in folds(EXTREMA, HALVES, &[false, true]) {
        check_wins(&accumulator(fold, [1, 4], false), &hopper(), "packed_halves");
    }
}

#[test]
fn tile_w15_what_pairs_do_not_fold_is_declined_by_name() {
    let max = Fold { op: "max", dtype: DType::F16, accum: false };
    let of = |n: i64, fold: Fold| registers(&[n], &[0], &[1], fold);
    let declines = |program: &Program, words: &str| {
        check_declines(program, "packed_halves", &hopper(), words);
    };
    declines(&of(7, max), "runs: wanted runs of 2 neighbours in every thread, at least 4 elements in all");
    declines(&of(2, max), "found elements one by one");
    declines(&of(3, max), "found elements one by one");
    declines(&registers(&[4, 8], &[0], &[8], max), "found elements one by one");
    declines(&shared([8, 64], 256, max), "found 2 elements a thread");
    declines(
        &of(32, Fold { op: "sum", ..max }),
        "reducer: wanted max or min of float16 or bfloat16, found `sum`",
    );
    declines(&of(32, Fold { dtype: DType::F32, ..max }), "reducer: wanted max or min of float16 or bfloat16");
    check_declines(&of(32, max), "packed_halves", &Target::simulated(32), "sm_80 or later, found sim");
    assert_eq!(check(&of(32, max), &Target::simulated(32)), ["local"]);
}

#[test]
fn tile_w15_pairs_keep_nan_infinities_and_zeros() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    for (op, dtype) in [("max", DType::F16), ("min", DType::F16), ("max", DType::BF16), ("min", DType::BF16)]
    {
        let worst = if op == "max" { -inf } else { inf };
        let mut rows: Vec<(Vec<f64>, f64)> = vec![(vec![worst; 16], worst), (vec![-worst; 16], -worst)];
        rows.push(((0..16).map(|i| if i % 3 == 0 { -0.0 } else { 0.0 }).collect(), 0.0));
        for at in [0, 1, 7, 8, 15] {
            rows.push(((0..16).map(|i| if i == at { nan } else { f64::from(i) - 8.0 }).collect(), nan));
            let end = if op == "max" { 96.0 } else { -96.0 };
            rows.push(((0..16).map(|i| if i == at { end } else { f64::from(i) - 8.0 }).collect(), end));
        }
        let tiny = if dtype == DType::F16 { 2f64.powi(-24) } else { 2f64.powi(-133) };
        let end = if op == "max" { tiny } else { -tiny };
        rows.push(((0..16).map(|i| if i == 5 { end } else { 0.0 }).collect(), end));
        for (own, want) in rows {
            let mut program = registers(&[16], &[0], &[1], Fold { op, dtype, accum: false });
            for arg in &mut program.args {
                match arg {
                    Arg::In { values, .. } => values.clone_from(&own),
                    Arg::Out { wants, .. } => wants.fill(Some((want, 0.0))),
                }
            }
            check_wins(&program, &hopper(), "packed_halves");
        }
    }
}

#[test]
fn tile_w15_the_text_and_the_machine_code_have_the_instruction() {
    for (op, dtype, arch, wanted) in [
        ("max", DType::F16, "sm_90a", "max.NaN.f16x2"),
        ("min", DType::F16, "sm_80", "min.NaN.f16x2"),
        ("max", DType::BF16, "sm_100a", "max.NaN.bf16x2"),
        ("min", DType::BF16, "sm_90a", "min.NaN.bf16x2"),
    ] {
        let program = registers(&[64], &[0], &[1], Fold { op, dtype, accum: false });
        let text = cuda(&program, arch);
        assert!(text.contains(wanted), "{text}");
        let Some(sass) = sass("tile_w15_the_text_and_the_machine_code", &program, arch) else { return };
        // Two or, from `sm_90` on, three pairs an instruction: at least 16 of them for 64 elements.
        assert!(sass.matches("HMNMX").count() >= 16, "{arch} {op} {dtype}\n{sass}");
    }
}
