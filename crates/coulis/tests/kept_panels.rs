//! Panels of columns that a map reads again, in shared memory: they are copied and mapped as one piece of memory by the widest accesses,
//! whatever their rows are, and the simulator has nothing to say against the kernels.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "common/kept.rs"]
mod kept;
#[path = "common/normalizations.rs"]
mod meaning;

use common::{Lie, Special, numbers, view};
use coulis::{Array, DType, DeviceChoice};
use coulis_ir::Target;
use coulis_plan::{choose, schedule};
use kept::{assert_read_once, panels};
use meaning::Case;

const STRATEGY: &str = "gpu_kept_panels";

/// A machine of one multiprocessor, so that small arrays have blocks enough.
fn one(warp: u32) -> Target {
    Target { n_threads: 2048, ..Target::simulated(warp) }
}

#[test]
fn each_element_of_a_panel_is_read_once_by_the_widest_accesses() {
    // Odd rows, and some that narrower accesses divide; a panel by itself and several; fewer rows than threads above each other, and
    // numbers of them that these do not divide; more columns than a warp has threads, and fewer; strips of panels that are too large.
    let cases = [
        (DType::F32, vec![3, 64, 49], 1, 16),
        (DType::F32, vec![130, 66], 0, 16),
        (DType::F32, vec![2, 300, 36], 1, 16),
        (DType::F64, vec![2, 151, 22], 1, 16),
        (DType::BF16, vec![2, 96, 49], 1, 16),
        (DType::BF16, vec![2, 101, 44], 1, 8),
        (DType::F16, vec![8, 40, 169], 1, 16),
        (DType::F16, vec![3000, 3], 0, 16),
        (DType::F16, vec![131, 264], 0, 16),
        (DType::F32, vec![140, 448], 0, 16),
    ];
    let names = ["layer_norm", "softmax", "rms_norm", "log_softmax"].into_iter().cycle();
    for (turn, ((dtype, shape, axis, bytes), name)) in cases.into_iter().zip(names).enumerate() {
        let x = panels(dtype, &shape, [Special::Zeros, Special::All, Special::Nan][turn % 3]);
        let target = one(if turn % 2 == 0 { 32 } else { 64 });
        let trace = assert_read_once(STRATEGY, &target, name, (&x, &[axis]));
        let what = format!("{name} of {dtype} {shape:?}:\n{trace}");
        assert!(!trace.contains("clusterCtaIdx"), "{what}");
        let rows = if axis == 0 { "ax0_ax1_fused" } else { "ax1_ax2_fused" };
        let lanes = bytes / dtype.bytes();
        assert!(trace.contains(&format!("s[A_shared].split({rows}, factor={lanes})")), "{what}");
    }
}

#[test]
fn panels_too_large_for_a_block_are_those_of_a_cluster() {
    // Of whole panels and of strips.
    let cases = [
        (DType::F32, [768, 49], "softmax"),
        (DType::BF16, [1024, 81], "layer_norm"),
        (DType::F32, [1216, 35], "layer_norm"),
        (DType::BF16, [1048, 192], "softmax"),
        (DType::F32, [900, 96], "layer_norm"),
    ];
    for (dtype, shape, name) in cases {
        let x = panels(dtype, &shape, Special::Zeros);
        let trace = assert_read_once(STRATEGY, &one(32), name, (&x, &[0]));
        assert!(trace.contains("\"clusterCtaIdx.y\")"), "{name} of {dtype} {shape:?}:\n{trace}");
    }
}

#[test]
fn neighbours_that_are_folded_together_are_columns_of_panels() {
    // Groups of channels behind the pixels of images: of a whole panel, of strips, of parts of a cluster; a group of whole warps and one
    // of none; more rows than threads divide; groups that accesses go over.
    let cases = [
        (DType::F32, vec![2, 64, 4, 40], "layer_norm"),
        (DType::BF16, vec![2, 100, 8, 20], "rms_norm"),
        (DType::F16, vec![2, 120, 4, 10], "layer_norm"),
        (DType::BF16, vec![1, 600, 64, 10], "layer_norm"),
        (DType::F32, vec![1, 512, 16, 20], "softmax"),
        (DType::F32, vec![1, 2048, 8, 10], "layer_norm"),
        (DType::F64, vec![2, 77, 6, 3], "log_softmax"),
        (DType::BF16, vec![3, 90, 16, 3], "softmax"),
    ];
    for (turn, (dtype, shape, name)) in cases.into_iter().enumerate() {
        let x = panels(dtype, &shape, [Special::Zeros, Special::All, Special::Nan][turn % 3]);
        let target = one(if turn % 2 == 0 { 32 } else { 64 });
        let trace = assert_read_once(STRATEGY, &target, name, (&x, &[1, 3]));
        let groups = if shape[0] == 1 { "i0_inner" } else { "i1_inner" };
        let bound = format!("s[F].bind({groups}, \"threadIdx.y\")");
        assert!(trace.contains(&bound), "{name} {shape:?}:\n{trace}");
    }
}

#[test]
fn panels_are_whole_where_several_fit_else_strips_or_parts() {
    let h100 = Target::cuda("sm_90a").unwrap();
    for (name, dtype, shape, found) in [
        // Images of 7 x 7, 14 x 14, 28 x 28.
        ("layer_norm", DType::BF16, vec![512, 768, 49], Some((49, 8, 1))),
        ("layer_norm", DType::F32, vec![512, 768, 49], Some((49, 8, 2))),
        ("layer_norm", DType::BF16, vec![512, 384, 196], Some((196, 1, 2))),
        ("layer_norm", DType::F32, vec![512, 384, 196], Some((196, 1, 4))),
        ("rms_norm", DType::BF16, vec![512, 384, 196], Some((196, 2, 2))),
        ("layer_norm", DType::BF16, vec![256, 192, 784], Some((112, 2, 1))),
        ("softmax", DType::BF16, vec![8, 150, 1 << 14], Some((128, 1, 1))),
        ("softmax", DType::F32, vec![256, 1 << 18], Some((64, 6, 1))),
        ("rms_norm", DType::BF16, vec![128, 3072, 64], Some((64, 8, 4))),
        // Parts of strips.
        ("layer_norm", DType::BF16, vec![96, 2048, 128], Some((64, 4, 4))),
        ("softmax", DType::BF16, vec![33, 960, 784], Some((112, 2, 2))),
        ("softmax", DType::BF16, vec![32, 768, 1024], None),
        ("softmax", DType::F32, vec![49, 1280, 400], None),
        ("softmax", DType::F32, vec![307, 1280, 64], None),
        // As few parts as make a block for each multiprocessor.
        ("layer_norm", DType::BF16, vec![64, 1536, 49], Some((49, 4, 4))),
        // Short columns of whole accesses, columns of more than four blocks, few of them, and small panels are for others.
        ("softmax", DType::F32, vec![16, 21, 1 << 18], None),
        ("layer_norm", DType::F32, vec![256, 512, 196], None),
        ("layer_norm", DType::F32, vec![401, 320, 196], None),
        ("softmax", DType::F32, vec![20, 768, 49], None),
        ("softmax", DType::BF16, vec![100_000, 20, 49], None),
        ("softmax", DType::BF16, vec![404, 192, 324], None),
        ("softmax", DType::BF16, vec![404, 140, 324], None),
        // Rows of single narrow elements.
        ("softmax", DType::BF16, vec![500, 301, 49], None),
    ] {
        let axis = shape.len() as i64 - 2;
        let choice = choose(&kept::spec(name, dtype, &shape, axis), &h100).unwrap();
        let sketch = (choice.sketch.tile.width, choice.sketch.threads, choice.sketch.chunks.n);
        let of_panels = (choice.strategy.name == STRATEGY).then_some(sketch);
        assert_eq!(of_panels, found, "{name} {dtype} {shape:?}: {}", choice.strategy.name);
    }
}

#[test]
fn groups_are_whole_panels_strips_of_them_or_parts() {
    let h100 = Target::cuda("sm_90a").unwrap();
    for (dtype, shape, found) in [
        // Columns, threads above each other, parts: images of 8 x 8, 16 x 16, 32 x 32, 64 x 64.
        (DType::BF16, [64, 64, 32, 40], Some((320, 1, 1))),
        (DType::F32, [64, 64, 32, 40], Some((160, 1, 1))),
        (DType::F32, [32, 256, 32, 40], Some((40, 4, 1))),
        (DType::BF16, [16, 1024, 32, 20], Some((80, 4, 2))),
        (DType::F32, [16, 4096, 32, 10], Some((40, 8, 8))),
        // Too long for a cluster; fewer blocks than multiprocessors; parts of unlike numbers of rows.
        (DType::BF16, [8, 16384, 32, 8], None),
        (DType::BF16, [2, 4096, 32, 10], None),
        (DType::BF16, [13, 1193, 24, 64], None),
    ] {
        let choice = choose(&kept::spec_over("layer_norm", dtype, &shape, &[1, 3]), &h100).unwrap();
        let sketch = (choice.sketch.tile.width, choice.sketch.threads, choice.sketch.chunks.n);
        let of_panels = (choice.strategy.name == STRATEGY).then_some(sketch);
        assert_eq!(of_panels, found, "{dtype} {shape:?}: {}", choice.strategy.name);
    }
}

/// The case by the plan that this strategy has on a machine of one multiprocessor: that of the simulator has more than small arrays have
/// blocks for.
#[track_caller]
fn by_panels(case: Case, x: &Array, warp: u32) -> Case {
    let axes: Vec<i64> = case.axes.iter().map(|axis| *axis as i64).collect();
    let spec = kept::spec_over(case.name, x.dtype(), x.shape(), &axes);
    let choice = choose(&spec, &one(warp)).unwrap();
    assert_eq!(choice.strategy.name, STRATEGY, "{} of {} {:?}", case.name, x.dtype(), x.shape());
    let trace = schedule(&spec, choice.strategy, &choice.sketch).unwrap().schedule.trace().to_string();
    Case { plan: Some(trace), ..case }
}

#[test]
fn weights_views_and_specials_are_right() {
    for warp in [32, 64] {
        let device = DeviceChoice::Sim { warp, orders: 2 };
        for (n, columns) in [(200, 49), (150, 97)] {
            for lie in [[Lie::Dense, Lie::Gap(1)], [Lie::Dense, Lie::Dense], [Lie::Backward, Lie::Dense]] {
                let x = view(DType::F32, &[n, columns], &[0, 1], &lie, |n| numbers(n, Special::Zeros, 3));
                assert_eq!(Case::new("layer_norm", &[0]).check(&x, &device), Ok(()), "{lie:?} {n}");
            }
            for special in [Special::Nan, Special::All] {
                let x = panels(DType::BF16, &[2, n, columns], special);
                let case = by_panels(Case::new("softmax", &[1]), &x, warp);
                assert_eq!(case.check(&x, &device), Ok(()), "{special:?} {n}");
                let beside = vec![("weight", panels(DType::F32, &[n], Special::Zeros))];
                let case = Case { beside, set: vec![("eps", 0.1)], ..Case::new("layer_norm", &[1]) };
                assert_eq!(by_panels(case, &x, warp).check(&x, &device), Ok(()), "{special:?} {n}");
            }
        }
        for special in [Special::Nan, Special::All] {
            let x = panels(DType::F16, &[2, 96, 4, 12], special);
            let beside = vec![("weight", panels(DType::F32, &[96, 12], Special::Zeros))];
            let case = Case { beside, set: vec![("eps", 0.1)], ..Case::new("layer_norm", &[1, 3]) };
            assert_eq!(by_panels(case, &x, warp).check(&x, &device), Ok(()), "{special:?}");
        }
    }
}
