//! Folds that are split over blocks: whole arrays, few rows, strips of columns, columns whose rows are walked as one, and
//! arrays small enough for their last block to fold the parts; over kinds of statistics and of lengths. The simulator
//! finds no violation, under several orders of warps.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Special, array, check, numbers};
use coulis::bench::{Workload, stages};
use coulis::reduce::{array_info, plan};
use coulis::te::Expr;
use coulis::{
    Array, DType, DeviceChoice, OwnReducer, PlanKnob, Request, Scalar, TargetChoice, Tuned, UserReducer,
    comm_reducer,
};
use coulis_ir::args::{ArrayInfo, compact_strides};

fn made(dtype: DType, shape: &[i64], seed: u64) -> Array {
    let n = shape.iter().product::<i64>() as usize;
    array(dtype, shape, &numbers(n, Special::Zeros, seed))
}

fn simulated(ops: &[&str], axes: &[i64], warp: u32) -> Request {
    Request { device: DeviceChoice::Sim { warp, orders: 2 }, ..Request::new(ops).over(axes) }
}

fn split(request: Request, strategy: &str, chunks: i64) -> Request {
    let changes = vec![(PlanKnob::Chunks, chunks)];
    Request { tuned: Tuned::As { strategy: strategy.to_owned(), changes }, ..request }
}

/// How a fold is split.
struct Class {
    strategy: &'static str,
    shape: &'static [i64],
    axes: &'static [i64],
    chunks: &'static [i64],
    in_last_block: bool,
}

const CLASSES: [Class; 6] = [
    // Parts for a lane, for some lanes, for a warp and a bit, and for several turns of a warp.
    Class { strategy: "gpu_rows", shape: &[12_011], axes: &[0], chunks: &[2, 9, 33], in_last_block: true },
    Class { strategy: "gpu_rows", shape: &[40_000], axes: &[0], chunks: &[50], in_last_block: true },
    Class { strategy: "gpu_rows", shape: &[9, 100, 16], axes: &[0, 1, 2], chunks: &[3], in_last_block: true },
    Class { strategy: "gpu_rows", shape: &[3, 24_006], axes: &[1], chunks: &[2, 7], in_last_block: true },
    Class { strategy: "gpu_columns", shape: &[601, 64], axes: &[0], chunks: &[3, 8], in_last_block: false },
    Class { strategy: "gpu_columns", shape: &[611, 33], axes: &[0], chunks: &[4], in_last_block: false },
];

const KINDS: [(DType, &[&str]); 5] = [
    (DType::F32, &["sum"]),
    (DType::F32, &["argmax"]),
    (DType::F16, &["mean", "var"]),
    (DType::BF16, &["logsumexp"]),
    (DType::F32, &["sum", "mean", "var", "min", "max", "argmax"]),
];

#[test]
fn parts_of_every_kind_come_together_exactly_in_a_second_launch_and_in_the_last_block() {
    for (turn, class) in CLASSES.iter().enumerate() {
        for (seed, (dtype, ops)) in KINDS.into_iter().enumerate() {
            let chunks = class.chunks[(seed + turn) % class.chunks.len()];
            let warp = if (seed + turn) % 3 == 2 { 64 } else { 32 };
            let input = [made(dtype, class.shape, seed as u64)];
            let request = split(simulated(ops, class.axes, warp), class.strategy, chunks);
            let trace = plan(&[array_info(&input[0])], &request).unwrap().trace;
            assert_eq!(trace.contains("grid_finish(\"last_block\")"), class.in_last_block, "{trace}");
            let what = || format!("{ops:?} of {:?} in {chunks} parts, warps of {warp}", class.shape);
            check(&input, &request).unwrap_or_else(|why| panic!("{}: {why}", what()));
        }
    }
}

#[test]
fn what_the_planner_splits_by_itself_is_exact() {
    let cases: [(&[i64], &[i64], bool); 10] = [
        (&[4096], &[0], false),
        (&[40_001], &[0], true),
        (&[1 << 16], &[0], true),
        // Rows of several outputs, a strip of columns, strips that are whole and one that is not, rows walked as one.
        (&[5, 40_001], &[1], true),
        (&[3, 2, 20_000], &[2], true),
        (&[1_100, 64], &[0], true),
        (&[300, 1024], &[0], true),
        (&[500, 1000], &[0], false),
        (&[2_000, 33], &[0], true),
        (&[3, 1_000, 96], &[1], true),
    ];
    for (shape, axes, in_last_block) in cases {
        let input = [made(DType::F32, shape, 3)];
        let request = simulated(&["sum", "max"], axes, 32);
        let trace = plan(&[array_info(&input[0])], &request).unwrap().trace;
        assert_eq!(trace.contains("grid_finish(\"last_block\")"), in_last_block, "{shape:?}: {trace}");
        check(&input, &request).unwrap_or_else(|why| panic!("{shape:?}: {why}"));
        let ops = vec!["sum".to_owned(), "max".to_owned()];
        let workload = Workload::new("split", DType::F32, shape.to_vec(), Some(axes.to_vec()), ops);
        let text = stages(&workload, &TargetChoice::Cuda { arch: None }).unwrap().text;
        let is_one = shape.iter().product::<i64>() <= 4096 || in_last_block;
        assert_eq!(text.matches("__global__").count(), if is_one { 1 } else { 2 }, "{shape:?}");
    }
}

/// A plan of a large input, and what it is tried on.
struct Swept {
    dtype: DType,
    ops: &'static [&'static str],
    /// What is planned.
    large: &'static [i64],
    /// What is folded, in so many pieces.
    shape: &'static [i64],
    pieces: i64,
}

const TWO: &[&str] = &["mean", "meansq"];
const FIVE: &[&str] = &["sum", "mean", "var", "min", "max"];
const SIX: &[&str] = &["sum", "mean", "var", "min", "max", "argmax"];
const NORM: &[&str] = &["mean", "var"];

const SWEPT: [Swept; 9] = [
    Swept { dtype: DType::F16, ops: TWO, large: &[600, 200_704], shape: &[3, 43_008], pieces: 3 },
    Swept { dtype: DType::F16, ops: TWO, large: &[600, 200_704], shape: &[2, 40_000], pieces: 3 },
    Swept { dtype: DType::F32, ops: &["sum"], large: &[60_000_013], shape: &[20_011], pieces: 3 },
    Swept { dtype: DType::I8, ops: &["sum"], large: &[1 << 30], shape: &[170_001], pieces: 5 },
    Swept { dtype: DType::F32, ops: &["argmax"], large: &[60_000_000], shape: &[20_000], pieces: 3 },
    Swept { dtype: DType::F32, ops: FIVE, large: &[60_000_013], shape: &[30_003], pieces: 4 },
    Swept { dtype: DType::BF16, ops: SIX, large: &[1 << 26], shape: &[40_000], pieces: 3 },
    Swept { dtype: DType::F16, ops: NORM, large: &[256, 128, 64, 64], shape: &[4, 3, 64, 64], pieces: 4 },
    Swept { dtype: DType::F16, ops: NORM, large: &[128, 256, 56, 56], shape: &[3, 2, 56, 56], pieces: 3 },
];

/// The plans of large inputs, with fewer pieces and over fewer elements: pieces that are alike and not, one
/// after another and apart, parts for a few lanes and for more than a block.
#[test]
fn pieces_of_a_sweep_come_together_exactly() {
    for (turn, Swept { dtype, ops, large, shape, pieces }) in SWEPT.into_iter().enumerate() {
        let axes: &[i64] = match large.len() {
            1 => &[0],
            2 => &[1],
            _ => &[0, 2, 3],
        };
        let request = simulated(ops, axes, if turn % 3 == 2 { 64 } else { 32 });
        let info = ArrayInfo { dtype, shape: large.to_vec(), strides: compact_strides(large) };
        let trace = plan(&[info], &request).unwrap().trace;
        let (before, after) = trace.split_once("nparts=").unwrap_or_else(|| panic!("{ops:?}: {trace}"));
        let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
        let planned: i64 = after[..after.len() - rest.len()].parse().unwrap();
        assert!(planned >= 14, "{ops:?} of {large:?}: {trace}");
        let input = [made(dtype, shape, turn as u64)];
        let request = Request { plan: Some(format!("{before}nparts={pieces}{rest}")), ..request };
        check(&input, &request).unwrap_or_else(|why| panic!("{ops:?} of {shape:?}: {why}\n{trace}"));
    }
}

/// Plans of large inputs of columns: blocks of many whole rows, bytes of words, and rows that are walked as
/// one for the sake of lines of memory, whose states threads along a third index bring together.
const LARGE_COLUMNS: [Swept; 7] = [
    Swept { dtype: DType::F16, ops: &["sum"], large: &[3_813_003, 33], shape: &[2_403, 33], pieces: 3 },
    Swept { dtype: DType::I8, ops: &["sum", "max"], large: &[8_118_007, 31], shape: &[2_001, 31], pieces: 2 },
    Swept { dtype: DType::F32, ops: NORM, large: &[1_906_501, 33], shape: &[1_201, 33], pieces: 2 },
    Swept { dtype: DType::I8, ops: &["sum"], large: &[3_932_161, 64], shape: &[1_501, 64], pieces: 3 },
    Swept { dtype: DType::F16, ops: &["sum"], large: &[415_000, 301], shape: &[1_301, 43], pieces: 2 },
    Swept { dtype: DType::I8, ops: &["sum", "max"], large: &[830_000, 301], shape: &[1_503, 21], pieces: 2 },
    Swept { dtype: DType::F32, ops: &["max"], large: &[62_353, 1009], shape: &[701, 69], pieces: 3 },
];

#[test]
fn columns_of_large_plans_come_together_exactly() {
    for (turn, Swept { dtype, ops, large, shape, pieces }) in LARGE_COLUMNS.into_iter().enumerate() {
        let request = simulated(ops, &[0], if turn % 3 == 2 { 64 } else { 32 });
        let info = ArrayInfo { dtype, shape: large.to_vec(), strides: compact_strides(large) };
        let trace = plan(&[info], &request).unwrap().trace;
        // The chunks are those of the split before the first stage of partial states.
        let (before, after) = trace.split_once("\nS_rf = ").unwrap_or_else(|| panic!("{ops:?}: {trace}"));
        let (head, chunks) = before.rsplit_once('=').unwrap();
        assert!(chunks.trim_end_matches(')').parse::<i64>().unwrap() >= 2, "{ops:?} of {large:?}: {trace}");
        assert_eq!(trace.contains("threadIdx.z"), large[1] > 64, "{ops:?} of {large:?}: {trace}");
        let input = [made(dtype, shape, turn as u64)];
        let request = Request { plan: Some(format!("{head}={pieces})\nS_rf = {after}")), ..request };
        check(&input, &request).unwrap_or_else(|why| panic!("{ops:?} of {shape:?}: {why}\n{trace}"));
    }
}

/// The largest difference between two elements, which takes the least and the largest of them.
fn spread() -> OwnReducer {
    let least = |v: i64| Expr::int_of(i128::from(v), DType::I64);
    let lift = |v: &[Expr], _: &Expr| vec![v[0].clone().cast(DType::I64), v[0].clone().cast(DType::I64)];
    let combine =
        |a: &[Expr], b: &[Expr]| vec![a[0].clone().min(b[0].clone()), a[1].clone().max(b[1].clone())];
    let finish = |s: &[Expr]| vec![s[1].clone() - s[0].clone()];
    let identity = vec![least(i64::MAX), least(i64::MIN)];
    let user = UserReducer {
        lift: Some(&lift),
        finish: Some(&finish),
        ..UserReducer::new("spread", &[DType::I32], identity, &combine)
    };
    OwnReducer::new(comm_reducer(&user).unwrap()).unwrap()
}

#[test]
fn a_made_up_reducer_is_finished_in_the_last_block_too() {
    for (n, chunks) in [(5_000usize, 4), (30_000, 90)] {
        let values: Vec<i32> = (0..n as i32).map(|i| i.wrapping_mul(7919) % 10_007 - i % 13).collect();
        let input = Array::from_slice(&[n as i64], &values).unwrap();
        let request = Request { reducers: vec![spread()], ..simulated(&["spread", "sum"], &[0], 32) };
        let request = split(request, "gpu_rows", chunks);
        let outcome = coulis::reduce::run(std::slice::from_ref(&input), &request).unwrap();
        let found: Vec<Scalar> = outcome.results.iter().flat_map(|r| r.array.scalars()).collect();
        let range = values.iter().max().unwrap() - values.iter().min().unwrap();
        let sum: i64 = values.iter().map(|v| i64::from(*v)).sum();
        assert_eq!(found, [Scalar::Int(range.into()), Scalar::Int(sum)], "{n} in {chunks} parts");
    }
}
