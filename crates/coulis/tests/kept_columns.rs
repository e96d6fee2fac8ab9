//! Columns that a map reads again stay on the chip: each element is read from memory once, whatever the panels are like, and
//! the simulator has nothing to say against the kernels.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "common/kept.rs"]
mod kept;
#[path = "common/normalizations.rs"]
mod meaning;

use common::{Lie, Special, numbers, view};
use coulis::{DType, DeviceChoice};
use coulis_ir::{BlockLimits, Target};

use coulis_plan::choose;
use kept::{assert_read_once, panels};
use meaning::Case;

const STRATEGY: &str = "gpu_kept_columns";

/// A machine of one multiprocessor, so that small arrays have blocks enough, and of so little shared memory that no panel of them is
/// kept there.
fn one() -> Target {
    let simulated = Target::simulated(32);
    let block = BlockLimits { shared_dyn_bytes: 16 << 10, ..simulated.block };
    Target { n_threads: 2048, block, ..simulated }
}

#[test]
fn each_element_of_a_column_that_fits_is_read_once() {
    // Columns of one thread and of several, which deal the columns of their words among each other where these are several; words of
    // several lanes and of one; panels of less than a strip, of one, and of more, the last of which lack rows or columns.
    let cases = [
        (DType::F32, vec![21, 700], 0),
        (DType::F32, vec![3, 21, 72], 1),
        (DType::F32, vec![5, 8, 3], 1),
        (DType::F32, vec![40, 3, 5], 1),
        (DType::F32, vec![130, 64], 0),
        (DType::F32, vec![2, 301, 33], 1),
        (DType::F32, vec![600, 40], 0),
        // More threads above each other than one index of a block may count.
        (DType::F32, vec![4200, 4], 0),
        (DType::F64, vec![100, 36], 0),
        (DType::F64, vec![2, 37, 7], 1),
        (DType::BF16, vec![64, 264], 0),
        (DType::BF16, vec![2, 150, 34], 1),
        (DType::F16, vec![500, 24], 0),
        (DType::F16, vec![33, 65], 0),
    ];
    let names = ["softmax", "layer_norm", "log_softmax", "rms_norm"].into_iter().cycle();
    for ((dtype, shape, axis), second) in cases.into_iter().zip(names.skip(1)) {
        let x = panels(dtype, &shape, Special::Zeros);
        for name in ["softmax", second] {
            let trace = assert_read_once(STRATEGY, &one(), name, (&x, &[axis]));
            assert!(trace.contains("cache_read(A, \"local\""), "{name} of {dtype} {shape:?}:\n{trace}");
        }
    }
}

#[test]
fn columns_too_long_for_a_block_are_kept_by_the_blocks_of_a_cluster() {
    for (dtype, shape) in [(DType::F32, [2100, 16]), (DType::F32, [4096, 16]), (DType::F64, [2200, 8])] {
        let x = panels(dtype, &shape, Special::Zeros);
        for name in ["softmax", "layer_norm"] {
            let trace = assert_read_once(STRATEGY, &one(), name, (&x, &[0]));
            assert!(trace.contains("\"clusterCtaIdx.y\")"), "{name} of {dtype} {shape:?}:\n{trace}");
        }
    }
}

#[test]
fn strips_are_as_wide_as_registers_and_multiprocessors_allow() {
    let h100 = Target::cuda("sm_90a").unwrap();
    let before = Target::cuda("sm_89").unwrap();
    for (name, dtype, shape, strategy, (tile, threads, parts)) in [
        ("softmax", DType::F32, vec![12, 21, 262_144], STRATEGY, (256, 2, 1)),
        ("softmax", DType::F32, vec![64, 1 << 20], STRATEGY, (128, 4, 1)),
        ("softmax", DType::F32, vec![1024, 1 << 16], STRATEGY, (32, 64, 1)),
        ("layer_norm", DType::F32, vec![1023, 1 << 16], STRATEGY, (32, 32, 1)),
        ("softmax", DType::F32, vec![64, 1000, 1024], STRATEGY, (32, 64, 1)),
        ("softmax", DType::F32, vec![2048, 1 << 15], STRATEGY, (16, 128, 1)),
        ("softmax", DType::F32, vec![4096, 1 << 14], STRATEGY, (32, 32, 8)),
        ("softmax", DType::BF16, vec![120, 1 << 20], STRATEGY, (128, 8, 1)),
        ("softmax", DType::BF16, vec![1023, 1 << 17], STRATEGY, (32, 64, 1)),
        // Few columns are narrower strips, so that more multiprocessors have some.
        ("softmax", DType::F32, vec![100, 4096], STRATEGY, (16, 12, 1)),
    ] {
        let axis = shape.len() as i64 - 2;
        let spec = kept::spec(name, dtype, &shape, axis);
        let choice = choose(&spec, &h100).unwrap();
        let found = (choice.sketch.tile.width, choice.sketch.threads, choice.sketch.chunks.n);
        assert_eq!(
            (choice.strategy.name, found),
            (strategy, (tile, threads, parts)),
            "{name} {dtype} {shape:?}"
        );
        assert_eq!(choose(&spec, &before).unwrap().sketch.chunks.n.min(2), if parts > 1 { 2 } else { 1 });
    }
    // Longer ones, and such as a block cannot hold that are narrow or few, are read twice.
    for (dtype, shape) in
        [(DType::F32, [20_000, 4096]), (DType::BF16, [4096, 1 << 15]), (DType::F32, [8192, 64])]
    {
        let choice = choose(&kept::spec("softmax", dtype, &shape, 0), &h100).unwrap();
        assert_eq!(choice.strategy.name, "gpu_columns", "{dtype} {shape:?}");
    }
}

#[test]
fn weights_views_specials_and_several_reduced_axes_are_right() {
    for warp in [32, 64] {
        let device = DeviceChoice::Sim { warp, orders: 2 };
        for lie in [[Lie::Dense, Lie::Gap(1)], [Lie::Dense, Lie::Backward], [Lie::Gap(3), Lie::Dense]] {
            for n in [40, 33] {
                let x = view(DType::F32, &[n, 36], &[0, 1], &lie, |n| numbers(n, Special::Zeros, 3));
                for name in ["softmax", "rms_norm"] {
                    assert_eq!(Case::new(name, &[0]).check(&x, &device), Ok(()), "{lie:?} {n}");
                }
            }
        }
        for special in [Special::Nan, Special::All, Special::MostlyNan] {
            let x = panels(DType::F32, &[3, 70, 12], special);
            for name in ["softmax", "log_softmax", "layer_norm"] {
                assert_eq!(Case::new(name, &[1]).check(&x, &device), Ok(()), "{name} {special:?}");
            }
        }
        let x = panels(DType::F32, &[3, 4, 5, 12], Special::Zeros);
        for axes in [&[0usize, 2][..], &[1], &[1, 2], &[0, 1, 2]] {
            assert_eq!(Case::new("softmax", axes).check(&x, &device), Ok(()), "{axes:?}");
            let beside: Vec<i64> = axes.iter().map(|&a| x.shape()[a]).collect();
            let beside = vec![("weight", panels(DType::F64, &beside, Special::Zeros))];
            let case = Case { beside, set: vec![("eps", 0.1)], ..Case::new("layer_norm", axes) };
            assert_eq!(case.check(&x, &device), Ok(()), "{axes:?}");
        }
    }
}
