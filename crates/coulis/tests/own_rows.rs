//! Short rows that a map reads again from where they lie: of transposed and sliced arrays, whose results lie otherwise than their
//! elements. Each element is read once, and the simulator has nothing to say against the kernels.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "common/kept.rs"]
mod kept;
#[path = "common/normalizations.rs"]
mod meaning;

use common::{Special, array, numbers};
use coulis::reduce::{array_info, plan};
use coulis::{Array, DType};
use coulis_ir::Target;
use coulis_plan::choose;
use meaning::{Case, is_right, values};

/// A view of memory of made-up numbers.
fn view(dtype: DType, shape: &[i64], strides: &[i64], special: Special) -> Array {
    let before: i64 = shape.iter().zip(strides).map(|(n, stride)| (n - 1) * (-stride).max(0)).sum();
    let reach: i64 = shape.iter().zip(strides).map(|(n, stride)| (n - 1) * stride.abs()).sum();
    let n = reach + 1;
    array(dtype, &[n], &numbers(n as usize, special, 5 + n as u64)).view(shape, strides, before).unwrap()
}

#[test]
fn rows_are_read_once_from_where_they_lie_and_results_leave_as_one_piece() {
    // Transposed arrays, slices, steps either way, several kept dimensions, the last of which is shorter than a block.
    let cases: [(DType, &[i64], &[i64]); 8] = [
        (DType::F16, &[517, 7], &[1, 517]),
        (DType::F32, &[517, 4], &[5, 1]),
        (DType::BF16, &[300, 3], &[-7, 2]),
        (DType::F64, &[300, 5], &[1, 303]),
        (DType::F32, &[3, 300, 6], &[1800, 1, 300]),
        (DType::F32, &[9, 3, 89, 3], &[801, 267, 1, 89]),
        (DType::BF16, &[300, 64], &[65, 1]),
        (DType::F32, &[300, 64], &[1, 300]),
    ];
    for (turn, (dtype, shape, strides)) in cases.into_iter().enumerate() {
        let name = ["softmax", "layer_norm", "rms_norm", "log_softmax"][turn % 4];
        let x = view(dtype, shape, strides, [Special::Zeros, Special::All, Special::Nan][turn % 3]);
        let target = Target { n_threads: 2048, ..Target::simulated(if turn % 2 == 0 { 32 } else { 64 }) };
        let (trace, result, report) = kept::by("gpu_own_rows", &target, name, (&x, &[-1]));
        let what = format!("{name} of {dtype} {shape:?} by {strides:?}:\n{trace}");
        assert!(report.is_clean(), "{what}\n{report}");
        let bytes = shape.iter().product::<i64>() as u64 * dtype.bytes() as u64;
        assert_eq!(report.counters.global_loads.bytes, bytes, "{what}");
        assert_eq!(report.counters.global_stores.bytes, bytes, "{what}");
        let exact = Case::new(name, &[shape.len() - 1]).exact(&x);
        for (at, (found, exact)) in values(&result).into_iter().zip(exact).enumerate() {
            assert!(is_right(found, exact, dtype), "{at}: {found} {exact:?}: {what}");
        }
    }
}

#[test]
fn maps_that_lie_apart_from_their_folds_go_on_from_one_row_to_the_next() {
    // Odd columns, also in panels; odd rows.
    let cases: [(&str, DType, &[i64], i64); 8] = [
        ("gpu_columns", DType::F16, &[600, 67], 0),
        ("gpu_columns", DType::BF16, &[521, 65], 0),
        ("gpu_columns", DType::F32, &[530, 71], 0),
        ("gpu_columns", DType::F16, &[2, 550, 69], 1),
        ("gpu_columns", DType::F32, &[3, 519, 65], 1),
        ("gpu_columns", DType::BF16, &[514, 129], 0),
        ("gpu_rows", DType::F16, &[3, 17001], 1),
        ("gpu_rows", DType::F32, &[2, 9001], 1),
    ];
    for (turn, (strategy, dtype, shape, axis)) in cases.into_iter().enumerate() {
        let name = ["softmax", "log_softmax"][turn % 2];
        let n = shape.iter().product::<i64>() as usize;
        let special = [Special::Zeros, Special::All, Special::Nan][turn % 3];
        let x = array(dtype, shape, &numbers(n, special, turn as u64));
        // What the last block of a row does is a warp's.
        let are_rows = strategy == "gpu_rows";
        let warp = if are_rows || turn % 2 == 0 { 32 } else { 64 };
        let target =
            Target { n_threads: if are_rows { 1 << 15 } else { 1 << 14 }, ..Target::simulated(warp) };
        let (trace, result, report) = kept::by(strategy, &target, name, (&x, &[axis]));
        let what = format!("{name} of {dtype} {shape:?}:\n{trace}");
        assert!(report.is_clean(), "{what}\n{report}");
        let is_fused = strategy == "gpu_rows"
            || trace.contains("s[O].fuse(k0, i")
            || trace.contains("s[O].fuse(i0, k0, i1)");
        assert!(is_fused && trace.contains("s[O].vectorize("), "{what}");
        // Results come with the kept dimensions first.
        let found = values(&result);
        let length = shape[axis as usize] as usize;
        let inner = shape[axis as usize + 1..].iter().product::<i64>() as usize;
        for (at, exact) in Case::new(name, &[axis as usize]).exact(&x).into_iter().enumerate() {
            let (row, element) = (at / inner / length * inner + at % inner, at / inner % length);
            let found = found[row * length + element];
            assert!(is_right(found, exact, dtype), "{at}: {found} {exact:?}: {what}");
        }
    }
}

#[test]
fn results_that_are_columns_of_rows_that_were_read_are_stored_side_by_side() {
    let cases: [(DType, &[i64], &[i64]); 4] = [
        (DType::BF16, &[50, 300], &[1, 74]),
        (DType::F32, &[29, 300], &[1, 29]),
        (DType::F16, &[6, 300], &[1, 6]),
        (DType::F64, &[5, 300], &[2, 11]),
    ];
    for (turn, (dtype, shape, strides)) in cases.into_iter().enumerate() {
        let x = view(dtype, shape, strides, Special::Zeros);
        let name = ["softmax", "rms_norm"][turn % 2];
        let target = Target { n_threads: 2048, ..Target::simulated(32) };
        let (trace, result, report) = kept::by("gpu_own_rows", &target, name, (&x, &[0]));
        let what = format!("{name} of {dtype} {shape:?} by {strides:?}:\n{trace}");
        assert!(report.is_clean(), "{what}\n{report}");
        let found = values(&result);
        for (at, exact) in Case::new(name, &[0]).exact(&x).into_iter().enumerate() {
            let n = shape[1] as usize;
            let found = found[at % n * shape[0] as usize + at / n];
            assert!(is_right(found, exact, dtype), "{at}: {found} {exact:?}: {what}");
        }
    }
}

#[test]
fn results_that_lie_in_another_order_of_rows_leave_as_pieces() {
    let cases: [(DType, &[i64], &[i64]); 3] = [
        (DType::BF16, &[45, 37, 4], &[1, 180, 45]),
        (DType::F32, &[70, 33, 3], &[1, 210, 70]),
        (DType::F16, &[3, 65, 9, 5], &[2925, 1, 325, 65]),
    ];
    for (turn, (dtype, shape, strides)) in cases.into_iter().enumerate() {
        let x = view(dtype, shape, strides, Special::Zeros);
        let name = ["softmax", "rms_norm"][turn % 2];
        let target = Target { n_threads: 2048, ..Target::simulated(32) };
        let (trace, result, report) = kept::by("gpu_own_rows", &target, name, (&x, &[-1]));
        let what = format!("{name} of {dtype} {shape:?} by {strides:?}:\n{trace}");
        assert!(report.is_clean(), "{what}\n{report}");
        // The program's results are in the order of memory, which is that of the last but one axis and then the one before.
        let found = values(&result);
        let (n, next, width) = (shape.len(), shape[shape.len() - 2], shape[shape.len() - 1]);
        let near = shape[n - 3];
        for (at, exact) in Case::new(name, &[n - 1]).exact(&x).into_iter().enumerate() {
            let (e, rest) = (at as i64 % width, at as i64 / width);
            let (a, b, panel) = (rest / next % near, rest % next, rest / next / near);
            let found = found[(((panel * next + b) * near + a) * width + e) as usize];
            assert!(is_right(found, exact, dtype), "{at}: {found} {exact:?}: {what}");
        }
    }
}

#[test]
fn requests_of_many_short_rows_are_answered_so() {
    let x = view(DType::F32, &[132 * 256 + 5, 3], &[1, 132 * 256 + 5], Special::All);
    let weight = array(DType::F32, &[3], &[0.5, -3.0, 1.0]);
    let case = Case { beside: vec![("weight", weight)], ..Case::new("layer_norm", &[1]) };
    let plan =
        plan(&[array_info(&x), array_info(&case.beside[0].1)], &case.request(&kept::SIMULATED)).unwrap();
    assert_eq!(plan.name, "gpu_own_rows");
    case.check(&x, &kept::SIMULATED).unwrap();
    // Slabs that begin anywhere.
    for (dtype, width, start) in [(DType::F32, 3, 1), (DType::BF16, 5, 3), (DType::F16, 8, 2)] {
        let n = 132 * 64 + 5;
        let values = numbers((n * width + start) as usize, Special::Zeros, 3);
        let x = array(dtype, &[n * width + start], &values).view(&[n, width], &[width, 1], start).unwrap();
        Case::new("softmax", &[1]).check(&x, &kept::SIMULATED).unwrap();
    }
    // Rows of whole accesses, and few rows, are others'.
    let plan = |shape: &[i64]| {
        let spec = kept::spec("softmax", DType::F32, shape, -1);
        choose(&spec, &Target::simulated(32)).unwrap().strategy.name
    };
    assert_eq!((plan(&[100_000, 8]), plan(&[100_000, 3])), ("gpu_kept_rows", "gpu_kept_slabs"));
    assert_ne!(plan(&[100, 3]), "gpu_own_rows");
}
