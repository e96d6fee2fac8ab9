//! Rows that a map reads again stay on the chip: each element is read from memory once, of whatever length rows are and
//! wherever they are kept, and the simulator has nothing to say against the kernels.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "common/kept.rs"]
mod kept;
#[path = "common/normalizations.rs"]
mod meaning;

use common::{Lie, Special, array, numbers, view};
use coulis::{Array, DType, DeviceChoice, Normalize, Request, SimReport};
use coulis_ir::{BlockLimits, Target};
use coulis_plan::{Map, Sketch, Spec, choose};
use kept::SIMULATED;
use meaning::{Case, values};

fn rows(dtype: DType, shape: &[i64]) -> Array {
    let n = shape.iter().product::<i64>() as usize;
    array(dtype, shape, &numbers(n, Special::Zeros, 11))
}

/// The normalization over the last axis.
fn spec(name: &str, dtype: DType, shape: &[i64]) -> Spec {
    kept::spec(name, dtype, shape, -1)
}

/// The normalization over the last axis on a machine of these facts, as [`kept::by`].
fn on(target: &Target, name: &str, x: &Array) -> (String, Array, SimReport) {
    by("gpu_kept_rows", target, name, x)
}

/// The same where another strategy is to be the planner's choice.
fn by(strategy: &str, target: &Target, name: &str, x: &Array) -> (String, Array, SimReport) {
    kept::by(strategy, target, name, (x, &[-1]))
}

fn softmax(x: &Array) -> Vec<f64> {
    let n = *x.shape().last().unwrap() as usize;
    let mut result = Vec::new();
    for row in values(x).chunks(n) {
        let greatest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = row.iter().map(|v| (v - greatest).exp()).sum();
        result.extend(row.iter().map(|v| (v - greatest).exp() / sum));
    }
    result
}

/// How far the nearest value of the type may be from a number, as a part of it, and of numbers next to zero.
fn rounding(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::F16 => (2f64.powi(-11), 2f64.powi(-25)),
        DType::BF16 => (2f64.powi(-8), 2f64.powi(-134)),
        _ => (2f64.powi(-24), 2f64.powi(-150)),
    }
}

/// Asserts that `found` is the softmax of each row of `x`, within its stated error and the rounding to its type. What is
/// subtracted of elements is one that none of these exceeds by more than 8.
#[track_caller]
fn assert_softmax(x: &Array, found: &Array, what: &str) {
    let n = *x.shape().last().unwrap() as usize;
    let (part, least) = rounding(found.dtype());
    let (found, want, x) = (values(found), softmax(x), values(x));
    for ((found, want), row) in found.chunks(n).zip(want.chunks(n)).zip(x.chunks(n)) {
        let greatest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        for ((found, want), v) in found.iter().zip(want).zip(row) {
            let stated = 2f64.powi(-23) * (40.0 + 2.0 * (greatest - v + 8.0));
            let allowed = want * (stated + part * (1.0 + stated)) + least;
            assert!((found - want).abs() <= allowed, "{found} {want}: {what}");
        }
    }
}

/// A machine on which few elements of a row fit into the registers of a thread, and few rows are enough.
fn small() -> Target {
    Target { n_threads: 2048, register_bytes: 64, ..Target::simulated(32) }
}

#[test]
fn narrow_rows_have_as_few_threads_as_leave_none_idle() {
    let h100 = Target::cuda("sm_90a").unwrap();
    for (name, length, strategy, threads) in [
        ("softmax", 72, "gpu_kept_rows", 2),
        ("softmax", 136, "gpu_kept_rows", 4),
        ("layer_norm", 312, "gpu_kept_rows", 8),
        ("softmax", 608, "gpu_kept_rows", 16),
        ("softmax", 1024, "gpu_kept_rows", 32),
        ("softmax", 1032, "gpu_kept_rows", 32),
        ("softmax", 4104, "gpu_kept_rows", 128),
        // Rows that begin anywhere go through slabs where what is done with an element is little, or they are short.
        ("softmax", 129, "gpu_kept_slabs", 4),
        ("softmax", 255, "gpu_kept_rows", 16),
        ("rms_norm", 255, "gpu_kept_slabs", 8),
        ("layer_norm", 601, "gpu_kept_slabs", 16),
        ("layer_norm", 701, "gpu_kept_rows", 32),
    ] {
        let choice = choose(&spec(name, DType::BF16, &[100_000, length]), &h100).unwrap();
        assert_eq!((choice.strategy.name, choice.sketch.threads), (strategy, threads), "{name} of {length}");
    }
}

#[test]
fn rows_of_a_slab_that_would_meet_in_banks_are_read_far_apart() {
    let one = Target { n_threads: 2048, ..Target::simulated(32) };
    for (length, is_dealt) in [(105, false), (129, true)] {
        let x = rows(DType::BF16, &[300, length]);
        let (trace, result, report) = by("gpu_kept_slabs", &one, "softmax", &x);
        assert_eq!(trace.contains("i0_c_inner_i0_c_outer_fused"), is_dealt, "{length}: {trace}");
        assert!(report.violations.is_empty(), "{length}: {:?}", report.violations);
        let wanted = softmax(&x);
        let far = values(&result).iter().zip(&wanted).any(|(a, b)| (a - b).abs() > 0.01 * b);
        assert!(!far, "{length}");
    }
}

#[test]
fn each_element_of_a_row_that_fits_is_read_once() {
    let plain = Target::simulated(32);
    let cases = [
        (plain.clone(), "\"local\"", DType::F32, [3, 1024]),
        (plain.clone(), "\"local\"", DType::F32, [3, 1023]),
        (plain.clone(), "\"local\"", DType::F32, [5, 1000]),
        (plain.clone(), "\"local\"", DType::F32, [70, 64]),
        (plain.clone(), "\"local\"", DType::F32, [300, 3]),
        (plain.clone(), "\"local\"", DType::F64, [3, 700]),
        (plain.clone(), "\"local\"", DType::BF16, [2, 4096]),
        (plain.clone(), "\"local\"", DType::F16, [9, 96]),
        (plain, "\"local\"", DType::F16, [9, 97]),
        (small(), "\"shared.dyn\"", DType::F32, [2, 4096]),
        (small(), "\"shared.dyn\"", DType::F32, [2, 4100]),
        (small(), "\"shared.dyn\"", DType::F32, [2, 3001]),
        (small(), "\"shared.dyn\"", DType::BF16, [2, 5000]),
    ];
    for (target, scope, dtype, shape) in cases {
        let x = rows(dtype, &shape);
        let names: &[&str] = if shape[1] == 1023 { &["softmax", "layer_norm"] } else { &["softmax"] };
        for &name in names {
            let (trace, result, report) = on(&target, name, &x);
            let what = format!("{name} of {dtype} {shape:?}:\n{trace}");
            assert!(trace.contains(&format!("cache_read(A, {scope}")), "{what}");
            assert!(report.is_clean(), "{what}\n{report}");
            let counters = &report.counters;
            assert_eq!(counters.global_loads.bytes, x.n_bytes(), "{what}");
            assert_eq!(counters.global_stores.bytes, x.n_bytes(), "{what}");
            if name == "softmax" {
                assert_softmax(&x, &result, &what);
            }
        }
    }
}

/// A machine whose blocks hold so few elements that rows are dealt to the blocks of clusters.
fn few_bytes(warp: u32) -> Target {
    let plain = Target::simulated(warp);
    Target { block: BlockLimits { shared_dyn_bytes: 16 << 10, ..plain.block }, ..small() }
}

#[test]
fn rows_too_long_for_a_block_are_kept_by_the_blocks_of_a_cluster() {
    // Whether parts are whole turns, or of single elements, so that nothing is read twice.
    for (dtype, shape, is_once) in [
        (DType::F32, [2, 4096], true),
        (DType::F32, [3, 4100], false),
        (DType::F32, [2, 3601], true),
        (DType::BF16, [2, 8192], true),
        (DType::BF16, [2, 9000], false),
        (DType::BF16, [3, 4501], true),
        (DType::F64, [2, 2048], true),
    ] {
        let x = rows(dtype, &shape);
        for name in ["softmax", "layer_norm"] {
            let (trace, result, report) = on(&few_bytes(32), name, &x);
            let what = format!("{name} of {dtype} {shape:?}:\n{trace}");
            assert!(trace.contains("\"clusterCtaIdx.y\")"), "{what}");
            assert!(report.is_clean(), "{what}\n{report}");
            let (loads, stores) = (report.counters.global_loads.bytes, report.counters.global_stores.bytes);
            assert!(loads == x.n_bytes() || !is_once && loads < 2 * x.n_bytes(), "{loads} bytes: {what}");
            assert_eq!(stores, x.n_bytes(), "{what}");
            if name == "softmax" {
                assert_softmax(&x, &result, &what);
            }
        }
    }
}

#[test]
fn rows_that_begin_anywhere_are_kept_from_their_boundaries_by_the_blocks_of_a_cluster() {
    // As many rows as there are distances to a boundary; the last access of a row has all remainders.
    for length in [7201, 7507, 7949, 8191] {
        let x = rows(DType::BF16, &[9, length]);
        for (name, primitive) in
            [("softmax", "filled"), ("rms_norm", "from_boundary"), ("layer_norm", "from_boundary")]
        {
            let (trace, result, report) = on(&few_bytes(32), name, &x);
            let what = format!("{name} of {length}:\n{trace}");
            assert!(trace.contains(&format!(".{primitive}(A, \"shared.dyn\"")), "{what}");
            assert!(trace.contains("\"clusterCtaIdx.y\")"), "{what}");
            assert!(report.is_clean(), "{what}\n{report}");
            assert_eq!(report.counters.global_stores.bytes, x.n_bytes(), "{what}");
            assert!(report.counters.global_loads.bytes < 2 * x.n_bytes(), "{what}");
            // Of eight neighbours each, but for a row's last words.
            let words = x.n_bytes() / 16;
            let few = (report.counters.global_loads.requests, report.counters.global_stores.requests);
            assert!(few.0 < words / 8 && few.1 < words / 8, "{few:?} requests for {words} words: {what}");
            let (of_block, other, _) = on(&small(), name, &x);
            assert!(!of_block.contains("from_boundary"), "{of_block}");
            // Both are rounded to the type after an error that is small beside that.
            let digits = 2.0 * rounding(x.dtype()).0 + 2f64.powi(-16);
            let pairs = values(&result).into_iter().zip(values(&other));
            let wrong = pairs.filter(|(found, want)| (found - want).abs() > digits * want.abs()).count();
            assert_eq!(wrong, 0, "{what}");
            if name == "softmax" {
                assert_softmax(&x, &result, &what);
            }
        }
    }
}

/// Rows of numbers, and such as have NaN or infinities at either end, or nothing but -inf, or one number besides.
fn special_rows(dtype: DType, length: usize) -> Array {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    let mut all = numbers(9 * length, Special::Zeros, 12);
    for (row, values) in all.chunks_mut(length).enumerate() {
        match row {
            1 => values[length - 1] = nan,
            2 => values[0] = nan,
            3 => values[length - 1] = inf,
            4 => values.fill(-inf),
            5 => {
                values.fill(-inf);
                values[length - 2] = -3.0;
            }
            6 => values[..length / 2].fill(-inf),
            7 => values.fill(-1e4),
            _ => {}
        }
    }
    array(dtype, &[9, length as i64], &all)
}

#[test]
fn rows_that_begin_anywhere_are_filled_up_where_an_element_changes_no_fold() {
    // The last access of a row has all remainders, and rows lack much and little of the accesses of all threads.
    for (dtype, length) in [
        (DType::BF16, 7201),
        (DType::F16, 7949),
        (DType::BF16, 8186),
        (DType::F32, 3601),
        (DType::F32, 3942),
        (DType::F32, 4091),
    ] {
        let x = special_rows(dtype, length);
        for name in ["softmax", "log_softmax"] {
            let (trace, result, report) = on(&few_bytes(32), name, &x);
            let what = format!("{name} of {dtype} {length}:\n{trace}");
            assert!(trace.contains(".filled(A, \"shared.dyn\""), "{what}");
            assert!(report.is_clean(), "{what}\n{report}");
            let counters = &report.counters;
            assert_eq!(counters.global_loads.bytes, x.n_bytes(), "{what}");
            assert_eq!(counters.global_stores.bytes, x.n_bytes(), "{what}");
            let (other_trace, other, _) = on(&small(), name, &x);
            assert!(!other_trace.contains("filled"), "{other_trace}");
            let digits = 2.0 * rounding(dtype).0 + 2f64.powi(-16);
            for (at, (found, want)) in values(&result).into_iter().zip(values(&other)).enumerate() {
                let is_near = (found - want).abs() <= digits * want.abs().max(1e-30);
                assert!(
                    found == want || found.is_nan() && want.is_nan() || is_near,
                    "{at}: {found} {want}: {what}"
                );
            }
        }
    }
}

#[test]
fn clusters_are_as_small_as_leaves_several_blocks_to_a_multiprocessor() {
    let h100 = Target::cuda("sm_90a").unwrap();
    let before = Target::cuda("sm_89").unwrap();
    for (dtype, length, strategy, parts, threads) in [
        // One block that has a multiprocessor for itself, as long as it leaves a part of the first cache.
        (DType::F32, 47_001, "gpu_kept_rows", 1, 1024),
        (DType::F32, 50_256, "gpu_kept_rows", 4, 416),
        (DType::F32, 50_257, "gpu_kept_rows", 4, 640),
        (DType::F32, 60_000, "gpu_kept_rows", 4, 320),
        // The last part of three turns by 352 threads would lack five of its twelve words.
        (DType::F32, 128_256, "gpu_kept_rows", 8, 512),
        (DType::F32, 500_000, "gpu_rows", 1, 512),
        // Two blocks to a multiprocessor, or one; narrow rows of single elements that would be alone there
        // are dealt at once.
        (DType::BF16, 50_000, "gpu_kept_rows", 1, 512),
        (DType::BF16, 65_536, "gpu_kept_rows", 1, 1024),
        (DType::BF16, 65_537, "gpu_kept_rows", 4, 288),
        (DType::BF16, 80_001, "gpu_kept_rows", 4, 320),
        (DType::BF16, 128_257, "gpu_kept_rows", 4, 512),
        (DType::BF16, 150_001, "gpu_kept_rows", 8, 320),
        (DType::BF16, 100_352, "gpu_kept_rows", 4, 160),
        (DType::BF16, 128_256, "gpu_kept_rows", 4, 256),
    ] {
        let spec = spec("softmax", dtype, &[4096, length]);
        let choice = choose(&spec, &h100).unwrap();
        let found = (choice.strategy.name, choice.sketch.chunks.n, choice.sketch.threads);
        assert_eq!(found, (strategy, parts, threads), "{dtype} {length}");
        assert_eq!(choose(&spec, &before).unwrap().sketch.chunks.n, 1, "{dtype} {length} without clusters");
    }
}

#[test]
fn parts_of_single_elements_leave_room_in_the_first_cache() {
    let h100 = Target::cuda("sm_90a").unwrap();
    for (name, length, parts, threads) in [
        ("rms_norm", 50_257, 8, 288),
        ("rms_norm", 80_001, 8, 512),
        ("rms_norm", 60_001, 8, 384),
        // By 384 threads the last part would lack all turns after the first sixteen and one of these.
        ("rms_norm", 57_001, 4, 448),
        // Nowhere such parts.
        ("rms_norm", 120_001, 8, 320),
        // A large state takes more registers.
        ("layer_norm", 50_257, 4, 416),
    ] {
        let choice = choose(&spec(name, DType::F32, &[4096, length]), &h100).unwrap();
        let found = (choice.strategy.name, choice.sketch.chunks.n, choice.sketch.threads);
        assert_eq!(found, ("gpu_kept_rows", parts, threads), "{name} of {length}");
    }
}

#[test]
fn filled_rows_are_dealt_to_those_threads_that_have_the_fewest_accesses_besides() {
    let h100 = Target::cuda("sm_90a").unwrap();
    for (name, dtype, length, dealt) in [
        // All five accesses of a thread are one step, or eight are two.
        ("softmax", DType::F32, 50_257, Some((4, 640, 5))),
        ("log_softmax", DType::F32, 80_001, Some((8, 512, 5))),
        // The last part of 8 x 352 threads would lack more than one access of five.
        ("softmax", DType::F32, 54_001, Some((4, 448, 8))),
        ("softmax", DType::F32, 90_001, Some((8, 352, 8))),
        ("softmax", DType::BF16, 65_537, Some((4, 288, 8))),
        ("softmax", DType::F16, 200_001, Some((8, 416, 8))),
        // Eight parts would be small, four those of too many threads.
        ("softmax", DType::BF16, 150_001, None),
        // Rows that are whole accesses, folds with counts, and wide elements.
        ("softmax", DType::F32, 128_256, None),
        ("rms_norm", DType::BF16, 65_537, None),
        ("softmax", DType::F64, 40_001, None),
    ] {
        let spec = spec(name, dtype, &[4096, length]);
        let choice = choose(&spec, &h100).unwrap();
        let Sketch { chunks, threads, lanes, map, .. } = choice.sketch;
        let what = format!("{name} of {dtype} {length}");
        match dealt {
            None => assert_eq!(map.filled, 0, "{what}"),
            Some((parts, of_block, turns)) => {
                assert_eq!(
                    (chunks.n, threads, map.filled),
                    (parts, of_block, parts * of_block * turns * lanes),
                    "{what}"
                );
            }
        }
        let without = Map {
            lambda: spec.map.clone().unwrap().lambda,
            beside: Vec::new(),
            staged: None,
            left_out: None,
        };
        let nan = coulis_ir::NanPolicy::Ignore;
        let reducer = coulis_ir::Reducer { nan, ..spec.reducer.clone() };
        let ignoring =
            Spec::new(spec.problem.clone(), vec![dtype], false, reducer, spec.outputs.clone(), Some(without));
        assert_eq!(choose(&ignoring, &h100).unwrap().sketch.map.filled, 0, "{what} without NaN");
    }
}

#[test]
fn no_block_of_a_cluster_is_without_words() {
    let h100 = Target::cuda("sm_90a").unwrap();
    for dtype in [DType::F32, DType::F64, DType::BF16] {
        for length in (40_000..250_000).step_by(997).flat_map(|n| [n, n / 8 * 8]) {
            let choice = choose(&spec("softmax", dtype, &[4096, length]), &h100).unwrap();
            let Sketch { chunks, threads, lanes, .. } = choice.sketch;
            let turns = (length + lanes * threads - 1) / (lanes * threads);
            let of_part = (turns + chunks.n - 1) / chunks.n;
            let found = (turns + of_part - 1) / of_part;
            assert!(chunks.n == 1 || found == chunks.n, "{dtype} {length}: {threads} threads, {turns} turns");
        }
    }
}

/// A machine on which few rows are work for every multiprocessor.
fn few_units(warp: u32) -> Target {
    Target { n_threads: 2048, ..Target::simulated(warp) }
}

#[test]
fn rows_that_begin_anywhere_go_through_slabs_by_whole_accesses() {
    // Rows of one thread and rows of several, over widths of accesses; none fills its last block.
    let cases = [
        (DType::F32, [131, 2]),
        (DType::F32, [300, 13]),
        (DType::F32, [70, 63]),
        (DType::F32, [13, 65]),
        (DType::F32, [9, 127]),
        (DType::F32, [2100, 3]),
        (DType::F16, [261, 20]),
        (DType::BF16, [67, 33]),
        (DType::BF16, [70, 65]),
        (DType::BF16, [19, 103]),
        (DType::F64, [65, 7]),
        (DType::F64, [11, 127]),
    ];
    let names = ["softmax", "layer_norm", "log_softmax"].into_iter().cycle();
    for ((dtype, shape), second) in cases.into_iter().zip(names) {
        let x = rows(dtype, &shape);
        let lanes = 16 / dtype.bytes() as i64;
        for (name, warp) in [("softmax", 32), (second, 64)] {
            let (trace, result, report) = by("gpu_kept_slabs", &few_units(warp), name, &x);
            let what = format!("{name} of {dtype} {shape:?}:\n{trace}");
            assert!(report.is_clean(), "{what}\n{report}");
            let counters = &report.counters;
            assert_eq!(counters.global_loads.bytes, x.n_bytes(), "{what}");
            assert_eq!(counters.global_stores.bytes, x.n_bytes(), "{what}");
            // Blocks of 64 rows and more have a whole number of warps' accesses; what is left is less than one block's.
            let accesses = shape[0] * shape[1] / lanes;
            let most = (accesses / i64::from(warp) + 64) as u64;
            assert!(counters.global_stores.requests <= most, "{what}\n{report}");
            if name == "softmax" {
                assert_softmax(&x, &result, &what);
            }
        }
    }
}

#[test]
fn infinities_and_nan_stay_in_their_rows_of_a_slab() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    for n in [5usize, 67] {
        let odd = [(1, inf), (2, -inf), (3, nan)];
        let mut elements = numbers(70 * n, Special::Zeros, 5);
        for (row, value) in odd {
            elements[row * n + n / 2] = value;
        }
        elements[4 * n..5 * n].fill(-inf);
        let x = array(DType::F32, &[70, n as i64], &elements);
        let (_, result, report) = by("gpu_kept_slabs", &few_units(32), "softmax", &x);
        assert!(report.is_clean(), "{report}");
        let found = values(&result);
        for (row, found) in found.chunks(n).enumerate() {
            if [1, 3, 4].contains(&row) {
                assert!(found.iter().all(|v| v.is_nan()), "{n} {row}: {found:?}");
            } else {
                let sum: f64 = found.iter().sum();
                assert!((sum - 1.0).abs() < 1e-5, "{n} {row}: {found:?}");
            }
        }
        assert_eq!(found[2 * n + n / 2], 0.0);
    }
}

#[test]
fn accesses_are_of_sixteen_bytes_where_rows_allow_them() {
    let report = |shape: [i64; 2]| on(&Target::simulated(32), "softmax", &rows(DType::F32, &shape)).2;
    let counters = report([4, 1024]).counters;
    assert_eq!(counters.global_loads.requests, 4 * 1024 / 128);
    assert_eq!(counters.global_stores.requests, 4 * 1024 / 128);
    // Rows of 250 words end within the last turn of a warp.
    assert_eq!(report([4, 1000]).counters.global_loads.requests, 4 * 1024 / 128);
}

#[test]
fn rows_of_every_length_are_right_on_both_widths_of_warps() {
    let names = ["softmax", "log_softmax", "layer_norm", "rms_norm"].into_iter().cycle();
    let lengths = [1, 2, 3, 5, 8, 31, 32, 33, 64, 65, 127, 129, 260, 1027];
    for ((n, name), dtype) in
        lengths.into_iter().zip(names).zip([DType::F32, DType::F16, DType::F32].iter().cycle())
    {
        for warp in [32, 64] {
            let x = rows(*dtype, &[3, n]);
            let case = Case::new(name, &[1]).check(&x, &DeviceChoice::Sim { warp, orders: 2 });
            assert_eq!(case, Ok(()), "{dtype} {n} {warp}");
        }
    }
}

#[test]
fn weights_views_and_several_reduced_axes_are_right() {
    let device = DeviceChoice::Sim { warp: 32, orders: 2 };
    let lies = [[Lie::Dense, Lie::Gap(1)], [Lie::Dense, Lie::Backward], [Lie::Gap(3), Lie::Dense]];
    for lie in lies {
        for n in [40, 33] {
            let x = view(DType::F32, &[3, n], &[0, 1], &lie, |n| numbers(n, Special::Zeros, 3));
            for name in ["softmax", "rms_norm"] {
                assert_eq!(Case::new(name, &[1]).check(&x, &device), Ok(()), "{lie:?} {n}");
            }
        }
    }
    let x = rows(DType::F32, &[2, 3, 4, 12]);
    for axes in [&[1usize, 3][..], &[0, 3], &[0, 2, 3], &[2, 3]] {
        assert_eq!(Case::new("softmax", axes).check(&x, &device), Ok(()), "{axes:?}");
        let beside: Vec<i64> = axes.iter().map(|&a| x.shape()[a]).collect();
        let beside = vec![("weight", rows(DType::F64, &beside))];
        let case = Case { beside, set: vec![("eps", 0.1)], ..Case::new("layer_norm", axes) };
        assert_eq!(case.check(&x, &device), Ok(()), "{axes:?}");
    }
}

#[test]
fn infinities_and_nan_are_as_in_the_composed_form() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    for n in [2usize, 40, 1025] {
        let filled = |first: f64, rest: f64| [vec![first], vec![rest; n - 1]].concat();
        let all =
            [filled(inf, 1.0), filled(-inf, -inf), filled(nan, 1.0), filled(-inf, 1.0), filled(1e3, -1e3)];
        let x = array(DType::F32, &[5, n as i64], &all.concat());
        let run = |name| {
            let request = Request::normalizing(Normalize::named(name).unwrap()).over(&[1]);
            let request = Request { device: SIMULATED, ..request };
            values(&coulis::reduce::run(std::slice::from_ref(&x), &request).unwrap().results[0].array)
        };
        let rest = 1.0 / (n - 1) as f64;
        for (name, wanted) in
            [("softmax", [(0.0, rest), (1.0, 0.0)]), ("log_softmax", [(-inf, rest.ln()), (0.0, -2000.0)])]
        {
            let found = run(name);
            assert!(found[..3 * n].iter().all(|v| v.is_nan()), "{name} {n}");
            for (row, (first, rest)) in found[3 * n..].chunks(n).zip(wanted) {
                assert_eq!(row[0], first, "{name} {n}");
                assert!(
                    row[1..].iter().all(|v| (v - rest).abs() <= 1e-6 * rest.abs()),
                    "{name} {n}: {row:?}"
                );
            }
        }
    }
}
