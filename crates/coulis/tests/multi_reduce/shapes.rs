//! Sizes and shapes: full reductions (T1 to T9 but for the large ones) and reductions over axes (T10 to T18).

use std::collections::BTreeMap;

use coulis::{Array, DType, Request, Scalar};

use crate::common::executed;
use crate::harness::{Compiled, Whole, array_of, full_sizes, number, places, usual, whole};

const FULL: &[&str] = &["sum", "min", "max", "argmax"];

#[test]
fn mr_t1_full_reductions_of_one_of_five_million_and_of_random_counts_of_each_dtype() {
    let dtypes = [
        DType::U8,
        DType::I8,
        DType::I16,
        DType::U16,
        DType::I32,
        DType::I64,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
    ];
    for (at, dtype) in dtypes.into_iter().enumerate() {
        for n in [1, 5 + 577 * at as i64, 4999 - at as i64] {
            Whole::new(dtype, &[n], &[0], FULL).check(Compiled::No);
        }
    }
    for (dtype, n) in [(DType::I8, 5_000_000), (DType::F16, 5_000_000), (DType::F32, 3_141_592)] {
        Whole::new(dtype, &[n], &[0], FULL).check(Compiled::Yes);
    }
    Whole { out: Some(DType::I32), ..Whole::new(DType::I8, &[70_001], &[0], &["sum", "max"]) }
        .check(Compiled::Yes);
}

#[test]
fn mr_t2_nothing_gives_the_documented_value_or_a_refusal() {
    let empty = Array::from_slice::<f32>(&[0], &[]).unwrap();
    for device in places(0, Compiled::Yes) {
        let run = |ops: &[&str], init: Option<f64>| {
            let init: BTreeMap<String, Scalar> = init
                .map(|v| ops.iter().map(|op| ((*op).to_owned(), Scalar::Float(v))).collect())
                .unwrap_or_default();
            let call = Request { device: device.clone(), init, ..Request::new(ops) };
            coulis::reduce::run(std::slice::from_ref(&empty), &call)
        };
        let values = |outcome: coulis::Outcome| -> Vec<f64> {
            outcome.results.iter().flat_map(|r| r.array.scalars().map(number).collect::<Vec<_>>()).collect()
        };
        let found = values(run(&["sum", "prod", "count", "any", "all", "norm1", "norm2"], None).unwrap());
        assert_eq!(found, [0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.0]);
        assert!(values(run(&["mean", "var"], None).unwrap()).iter().all(|v| v.is_nan()));
        assert_eq!(values(run(&["sum", "min", "max"], Some(3.0)).unwrap()), [3.0, 3.0, 3.0]);
        for op in ["min", "max", "absmax", "argmin", "argmax", "minloc"] {
            assert_eq!(run(&[op], None).unwrap_err().code, "reduce/empty", "{op}");
        }
    }
}

#[test]
fn mr_t3_sizes_around_the_tiles_of_plans() {
    for tile in [8, 16, 32, 64, 256, 1024, 2048, 4096] {
        for n in [tile - 1, tile, tile + 1] {
            Whole::new(DType::F32, &[n], &[0], &["sum", "max"]).check(Compiled::No);
        }
    }
    for n in [65_535, 65_537, 262_143, 262_145, 1_048_577] {
        Whole::new(DType::F32, &[n], &[0], &["sum", "max"]).check(Compiled::No);
    }
}

#[test]
fn mr_t8_sizes_by_dtype() {
    let ladders: [(DType, &[u32]); 4] = [
        (DType::U8, &[2, 4, 5, 6]),
        (DType::U16, &[4, 8, 12, 14]),
        (DType::U32, &[16, 20]),
        (DType::U64, &[16, 21]),
    ];
    for (dtype, powers) in ladders {
        for power in powers {
            Whole::new(dtype, &[1 << power], &[0], FULL).check(Compiled::No);
        }
    }
    Whole::new(DType::Bool, &[4000], &[0], &["sum", "count"]).check(Compiled::No);
    Whole::new(DType::F16, &[4096], &[0], &["mean", "meansq"]).check(Compiled::No);
}

#[test]
fn mr_t9_prime_sizes() {
    for n in [2, 3, 31, 37, 127, 257, 1009, 65_537, 1_000_003] {
        Whole::new(DType::F32, &[n], &[0], FULL).check(Compiled::No);
    }
    let long = usual(&[16_777_259])[0];
    Whole::new(DType::F32, &[long], &[0], FULL).check(Compiled::Yes);
}

#[test]
fn mr_t10_nine_sets_of_axes_of_one_tensor() {
    let sets: [&[i64]; 9] =
        [&[0, 1, 2, 3], &[0, 1, 2], &[0, 1, 3], &[0, 2, 3], &[1, 2, 3], &[0], &[1], &[2], &[3]];
    let ops = ["min", "max", "absmax", "sum", "mean", "norm2"];
    let long = if full_sizes() { 280 } else { 28 };
    for (at, axes) in sets.into_iter().enumerate() {
        Whole::new(DType::F32, &[64, 4, long, 82], axes, &ops).check(Compiled::No);
        let dtypes = [DType::F64, DType::I8, DType::F16, DType::BF16];
        let small = Whole::new(dtypes[at % 4], &[7, 4, 28, 82], axes, &ops[..3]);
        small.check(Compiled::No);
        Whole::new(dtypes[(at + 1) % 4], &[4, 3, 9, 11], axes, &ops).check(Compiled::No);
    }
}

#[test]
fn mr_t11_batch_norm_shapes_of_several_ranks() {
    let cases: [(&[i64], &[i64]); 4] = [
        (&[16, 64, 32, 960], &[0, 1, 2]),
        (&[16, 64, 960], &[0, 1]),
        (&[16, 64, 32, 2, 960], &[0, 1, 2, 3]),
        (&[3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3, 3], &[0, 1, 2]),
    ];
    for (shape, axes) in cases {
        Whole::new(DType::F32, &usual(shape), axes, &["mean", "var"]).check(Compiled::No);
    }
}

#[test]
fn mr_t12_one_or_two_axes_of_large_tensors() {
    let cases: [(&[i64], &[i64]); 3] =
        [(&[64, 320, 80, 4, 128], &[3, 4]), (&[16, 8, 128, 256], &[0, 1, 2]), (&[16, 64, 32, 960], &[0])];
    for (shape, axes) in cases {
        Whole::new(DType::F32, &usual(shape), axes, &["sum", "absmax"]).check(Compiled::No);
    }
}

#[test]
fn mr_t13_mean_and_mean_of_squares_of_the_fused_examples() {
    for shape in [[600, 28, 28, 256], [8000, 4, 4, 4], [32, 19, 7, 512], [32, 7, 7, 512]] {
        let shape = usual(&shape);
        let case = Whole::new(DType::F16, &shape, &[1, 2, 3], &["mean", "meansq"]);
        Whole { out: Some(DType::F32), acc: Some(DType::F32), ..case }.check(Compiled::Yes);
    }
    let small = Whole::new(DType::F16, &[6, 7, 7, 16], &[1, 2, 3], &["mean", "meansq"]);
    Whole { out: Some(DType::F32), ..small }.check(Compiled::No);
}

#[test]
fn mr_t14_unit_extents_and_kept_channels() {
    let cases: [(&[i64], &[i64]); 8] = [
        (&[1, 1, 1, 1], &[0, 1, 2, 3]),
        (&[1, 1, 1, 1], &[1]),
        (&[4, 4, 4, 4], &[0, 2, 3]),
        (&[32, 32, 32, 32], &[0, 2, 3]),
        (&[128, 16, 3, 1024], &[0, 1, 2]),
        (&[128, 16, 6, 512], &[0, 1, 2]),
        (&[1, 1, 1, 300], &[3]),
        (&[1, 300, 1, 1], &[1]),
    ];
    for (shape, axes) in cases {
        Whole::new(DType::F32, &usual(shape), axes, &["mean", "var", "max"]).check(Compiled::No);
    }
}

#[test]
fn mr_t15_two_and_three_dimensions_and_both_image_layouts() {
    let cases: [(&[i64], &[i64]); 8] = [
        (&[1000, 3, 1000], &[0, 2]),
        (&[70, 2, 3, 5000], &[0, 3]),
        (&[64, 32], &[1]),
        (&[1024, 512], &[1]),
        (&[128, 128, 8], &[1, 2]),
        (&[512, 1024, 16], &[2]),
        (&[32, 256, 16, 16], &[2, 3]),
        (&[16, 32, 32, 128], &[1, 2]),
    ];
    for (shape, axes) in cases {
        Whole::new(DType::F32, &usual(shape), axes, &["sum", "sumsq", "max"]).check(Compiled::No);
    }
}

#[test]
fn mr_t16_nothing_is_written_behind_the_outputs() {
    use coulis_io::AlignedBytes;
    const FENCE: usize = 512;
    for n_rows in [1i64, 65, 192, 193] {
        let shape = [n_rows, 29];
        let values = whole((n_rows * 29) as usize, DType::F32, 3);
        let input = array_of(DType::F32, &shape, &values);
        for device in places(input.len(), Compiled::No) {
            let call = Request { device, ..Request::new(&["sum", "max"]).over(&[1]) };
            let prepared = coulis::reduce::prepare(&[coulis::reduce::array_info(&input)], &call).unwrap();
            let own = 4 * n_rows as usize;
            let mut outputs: Vec<AlignedBytes> =
                (0..2).map(|_| AlignedBytes::copy_of(&vec![0xa5; own + FENCE]).unwrap()).collect();
            prepared.launch(&[&input], &[], &mut outputs).unwrap();
            for output in &outputs {
                let (written, fence) = output.as_slice().split_at(own);
                assert!(fence.iter().all(|b| *b == 0xa5), "{n_rows} rows on {}", prepared.device_name());
                assert!(written.chunks(4).all(|b| b != [0xa5; 4]), "an output was left unwritten");
            }
        }
    }
}

#[test]
fn columns_of_every_width_are_right_in_chunks_of_rows_that_are_walked_as_one() {
    let changes = vec![(coulis::PlanKnob::Chunks, 3)];
    for (at, dtype) in [DType::I8, DType::F16, DType::F32, DType::F64].into_iter().enumerate() {
        for columns in [2i64, 3, 5, 6, 7, 8, 12, 17] {
            let shape = [260 - 8 * columns + at as i64, columns];
            let n = (shape[0] * shape[1]) as usize;
            let input = [array_of(dtype, &shape, &whole(n, dtype, columns as u64))];
            for warp in [32, 64] {
                let call = Request {
                    device: coulis::DeviceChoice::Sim { warp, orders: 1 },
                    tuned: coulis::Tuned::As { strategy: "gpu_columns".to_owned(), changes: changes.clone() },
                    ..Request::new(&["sum", "max"]).over(&[0])
                };
                crate::common::check(&input, &call).unwrap_or_else(|why| panic!("{dtype} {shape:?}: {why}"));
            }
        }
    }
}

#[test]
fn mr_t17_odd_extents_on_both_sides() {
    for odd in [3i64, 7, 11, 33] {
        for (shape, axis) in [([odd, 65], 1), ([65, odd], 1), ([odd, 65], 0), ([65, odd], 0)] {
            Whole::new(DType::F32, &shape, &[axis], &["sum", "min"]).check(Compiled::No);
            Whole::new(DType::BF16, &shape, &[axis], &["max", "argmin"]).check(Compiled::No);
        }
    }
}

#[test]
fn mr_t18_degenerate_and_skinny_shapes() {
    for shape in [[2000i64, 1], [1, 2000], [2, 1000], [1000, 2]] {
        for axis in [0, 1] {
            Whole::new(DType::F32, &shape, &[axis], &["sum", "max", "argmax"]).check(Compiled::No);
        }
    }
    let long = usual(&[10_000_000])[0];
    for shape in [[2, long / 2], [long / 2, 2]] {
        for axis in [0, 1] {
            Whole::new(DType::F32, &shape, &[axis], &["sum", "max"]).check(Compiled::Yes);
        }
    }
    let no_row = Array::from_slice::<f32>(&[0, 4], &[]).unwrap();
    let outcome = coulis::reduce::run(&[no_row], &executed(&["sum", "max"], &[1])).unwrap();
    assert!(outcome.results.iter().all(|r| r.array.is_empty()), "no outputs, no error");
    let no_column = Array::from_slice::<f32>(&[4, 0], &[]).unwrap();
    let outcome = coulis::reduce::run(std::slice::from_ref(&no_column), &executed(&["sum"], &[1])).unwrap();
    assert_eq!(outcome.results[0].array.as_slice::<f32>(), Some(&[0.0f32; 4][..]));
    assert!(coulis::reduce::run(&[no_column], &executed(&["max"], &[1])).is_err());
}
