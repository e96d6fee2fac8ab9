//! Outputs that fold pieces of neighbours apart from each other: slices of every width and begin, channels of images of odd
//! size, permuted arrays whose positions do not follow memory; in memory that is aligned and that is not. The simulator
//! finds no violation.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{Special, array, check, numbers};

use coulis::reduce::{array_info, plan};
use coulis::{Array, DType, DeviceChoice, Normalize, Request};

/// A view of memory of made-up numbers.
fn view(dtype: DType, shape: &[i64], strides: &[i64], start: i64, special: Special) -> Array {
    let reach: i64 = shape.iter().zip(strides).map(|(n, stride)| (n - 1) * stride.abs()).sum();
    let before: i64 = shape.iter().zip(strides).map(|(n, stride)| (n - 1) * (-stride).max(0)).sum();
    let n = reach + start + 1;
    array(dtype, &[n], &numbers(n as usize, special, 11 + n as u64))
        .view(shape, strides, start + before)
        .unwrap()
}

#[track_caller]
fn exact(x: &Array, ops: &[&str], axes: &[i64], warp: u32) -> String {
    let request = Request { device: DeviceChoice::Sim { warp, orders: 1 }, ..Request::new(ops).over(axes) };
    let name = plan(&[array_info(x)], &request).unwrap().name;
    let of = format!("{ops:?} over {axes:?} of {} {:?} by {:?}", x.dtype(), x.shape(), x.strides());
    check(std::slice::from_ref(x), &request).unwrap_or_else(|why| panic!("{of}: {why}"));
    name
}

const KINDS: [(DType, &[&str]); 6] = [
    (DType::I8, &["sum", "count_nonzero"]),
    (DType::F32, &["sum", "var", "argmax"]),
    (DType::F16, &["mean", "var"]),
    (DType::I64, &["argmin_last", "min"]),
    (DType::BF16, &["logsumexp"]),
    (DType::F16, &["sum", "mean", "var", "min", "max", "argmax"]),
];

#[test]
fn rows_of_a_slice_are_folded_together_wherever_it_begins() {
    let mut n_pieces = 0;
    for (turn, width) in [3, 9, 31, 129, 146].into_iter().enumerate() {
        for (at, (gap, start)) in [(1, 0), (1, 1), (7, 3), (16, 0)].into_iter().enumerate() {
            let (dtype, ops) = KINDS[(turn + at) % KINDS.len()];
            let special = [Special::Zeros, Special::All, Special::Nan][(turn + 2 * at) % 3];
            let warp = if at % 2 == 0 { 32 } else { 64 };
            let x = view(dtype, &[41, width], &[width + gap, 1], start, special);
            n_pieces += i64::from(exact(&x, ops, &[0, 1], warp) == "gpu_pieces");
            exact(&x, ops, &[1], warp);
            exact(&x, ops, &[0], warp);
        }
    }
    // Crops of images: pieces of several dimensions.
    for (dtype, ops) in KINDS {
        let crop = view(dtype, &[3, 2, 7, 129], &[3200, 1600, 200, 1], 5, Special::Zeros);
        exact(&crop, ops, &[0, 1, 2, 3], 32);
        exact(&crop, ops, &[0, 2, 3], 32);
    }
    assert!(n_pieces >= 14, "{n_pieces} of 20");
}

#[test]
fn channels_of_odd_images_are_folded_as_whole_pieces() {
    for (turn, (dtype, ops)) in KINDS.into_iter().enumerate() {
        for (at, image) in [[7, 7], [13, 17], [5, 41]].into_iter().enumerate() {
            let shape = [6, 3, image[0], image[1]];
            let n = shape.iter().product::<i64>() as usize;
            let x = array(dtype, &shape, &numbers(n, Special::Zeros, (turn + at) as u64));
            assert_eq!(exact(&x, ops, &[0, 2, 3], 32), "gpu_pieces", "{dtype} {shape:?}");
        }
    }
}

#[test]
fn few_reduced_neighbours_are_columns_that_are_folded_with_each_other_at_the_end() {
    let mut n_beside = 0;
    for (turn, (dtype, ops)) in KINDS.into_iter().enumerate() {
        for (at, (shape, strides)) in [
            ([1, 700, 3, 4], [8400, 12, 4, 1]),
            ([1, 900, 2, 4], [0, 24, 12, 1]),
            ([1, 300, 7, 9], [0, 63, 9, 1]),
            ([3, 410, 5, 2], [4100, 10, 2, 1]),
            ([2, 500, 1, 13], [0, 20, 17, 1]),
            ([1, 800, 33, 3], [0, 99, 3, 1]),
        ]
        .into_iter()
        .enumerate()
        {
            let special = [Special::Zeros, Special::All, Special::Nan][(turn + at) % 3];
            let x = view(dtype, &shape, &strides, [0, 1, 4][(turn + 2 * at) % 3], special);
            let warp = if at % 2 == 0 { 32 } else { 64 };
            n_beside += i64::from(exact(&x, ops, &[1, 3], warp) == "gpu_beside");
            n_beside += i64::from(exact(&x, ops, &[0, 1, 3], warp) == "gpu_beside");
        }
    }
    assert!(n_beside >= 40, "{n_beside} of 72");
}

#[test]
fn columns_in_pieces_that_lie_apart_are_cut_into_pieces_or_parts_of_them() {
    let mut n_cut = 0;
    for (turn, (dtype, ops)) in KINDS.into_iter().enumerate() {
        for (at, (shape, gap)) in
            [([3, 2, 509, 53], 0), ([7, 1, 521, 17], 3), ([2, 3, 700, 40], 0), ([4, 1, 263, 130], 1)]
                .into_iter()
                .enumerate()
        {
            let [_, panels, rows, columns] = shape;
            let panel = rows * columns + gap;
            let special = [Special::Zeros, Special::All, Special::Nan][(turn + at) % 3];
            let warp = if at % 2 == 0 { 32 } else { 64 };
            let x = view(dtype, &shape, &[panels * panel, panel, columns, 1], at as i64, special);
            exact(&x, ops, &[0, 2], warp);
            let device = DeviceChoice::Sim { warp, orders: 1 };
            let request = Request { device, ..Request::new(ops).over(&[0, 2]) };
            n_cut += usize::from(
                plan(&[array_info(&x)], &request).unwrap().trace.contains(".fuse(k0, k1_outer_outer)"),
            );
        }
    }
    assert!(n_cut >= 10, "{n_cut} of 24");
}

#[test]
fn positions_of_permuted_arrays_are_theirs_and_not_those_of_memory() {
    for (shape, strides) in
        [([4, 500], [1, 4]), ([33, 60], [1, 33]), ([60, 33], [-33, 1]), ([2, 300], [1, 3])]
    {
        for ops in [&["argmax"][..], &["sum", "argmin_last", "argmax"]] {
            for dtype in [DType::I8, DType::BF16] {
                exact(&view(dtype, &shape, &strides, 0, Special::All), ops, &[0, 1], 32);
            }
        }
    }
}

#[test]
fn rows_that_begin_behind_a_boundary_are_read_from_it() {
    for (turn, start) in [1, 2, 3, 5, 8, 13].into_iter().enumerate() {
        for (at, length) in [70, 1029].into_iter().enumerate() {
            let (dtype, ops) = KINDS[(turn + 2 * at) % KINDS.len()];
            let x = view(dtype, &[5, length], &[length, 1], start, Special::Zeros);
            for axes in [&[1][..], &[0], &[0, 1]] {
                exact(&x, ops, axes, 32);
            }
        }
    }
}

#[test]
fn slabs_of_short_rows_begin_anywhere() {
    for (turn, start) in [1, 2, 3, 5, 8, 13].into_iter().enumerate() {
        for (at, length) in [2, 7, 33, 64].into_iter().enumerate() {
            let (dtype, ops) = KINDS[(turn + 2 * at) % KINDS.len()];
            exact(&view(dtype, &[700, length], &[length, 1], start, Special::Zeros), ops, &[1], 32);
        }
    }
    // Rows of whole accesses, set apart in shared memory.
    for (dtype, start) in [(DType::I16, 2), (DType::F32, 2), (DType::I8, 4)] {
        for width in [8, 16] {
            exact(
                &view(dtype, &[2000, width], &[width, 1], start, Special::Zeros),
                &["sum", "max"],
                &[1],
                32,
            );
        }
    }
}

#[test]
fn pieces_whose_elements_run_backwards_are_read_one_by_one() {
    for (shape, strides) in [([41, 129], [-150, -1]), ([41, 129], [150, -1]), ([41, 129], [300, -2])] {
        for (dtype, ops) in KINDS {
            exact(&view(dtype, &shape, &strides, 3, Special::Zeros), ops, &[0, 1], 32);
        }
    }
}

#[test]
fn long_rows_that_begin_behind_a_boundary_are_folded_in_chunks_from_it() {
    for (turn, (dtype, ops)) in KINDS.into_iter().enumerate() {
        for (shape, strides, start) in
            [(&[150_001][..], &[1][..], 1), (&[3, 40_001], &[40_001, 1], 5), (&[2, 70_002], &[70_009, 1], 3)]
        {
            let x =
                view(dtype, shape, strides, start, [Special::Zeros, Special::All, Special::Nan][turn % 3]);
            let axes = [shape.len() as i64 - 1];
            exact(&x, ops, &axes, if turn % 2 == 0 { 32 } else { 64 });
        }
    }
}

#[test]
fn many_results_across_their_elements_are_folded_by_blocks_along_both() {
    for (turn, (dtype, ops)) in KINDS.into_iter().enumerate() {
        for n in [2, 5] {
            let x = view(dtype, &[n, 67, 42], &[2814, 1, 67], [0, 1, 3][turn % 3], Special::Zeros);
            assert_eq!(exact(&x, ops, &[0], if turn % 2 == 0 { 32 } else { 64 }), "gpu_across");
        }
        exact(&view(dtype, &[1, 67, 42], &[1, 1, 67], 0, Special::All), ops, &[0], 32);
    }
}

#[test]
fn maps_of_rows_of_one_element_are_one_launch() {
    for (op, of) in [
        ("softmax", [1.0, 1.0]),
        ("log_softmax", [0.0, 0.0]),
        ("layer_norm", [0.0, 0.0]),
        ("rms_norm", [1.0, -1.0]),
    ] {
        let x = array(DType::F32, &[1400, 1], &[[3.0, -2.0]; 700].concat());
        let device = DeviceChoice::Sim { warp: 32, orders: 1 };
        let request = Request { device, ..Request::normalizing(Normalize::named(op).unwrap()).over(&[-1]) };
        let trace = plan(&[array_info(&x)], &request).unwrap().trace;
        assert!(trace.contains("s[F].compute_at(s[O]"), "{op}: {trace}");
        let found = coulis::reduce::run(std::slice::from_ref(&x), &request).unwrap();
        let values: Vec<f64> = found.results[0].array.scalars().map(|v| v.to_f64()).collect();
        let are_right = values.iter().zip([of; 700].concat()).all(|(a, b)| (a - b).abs() < 1e-6);
        assert!(are_right, "{op}: {:?}", &values[..4]);
    }
}
