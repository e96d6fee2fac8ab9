//! What the planner decides for machines with blocks of threads.

mod common;

use coulis_ir::args::{ArrayInfo, compact_strides};
use coulis_ir::{BlockLimits, DType, Target};
use coulis_plan::{Problem, ResultForm, Room, Spec, choose, schedule};
use coulis_schedule::build_nest;

use common::{of, planned, spec};

/// The nest of a plan, or why there is none.
fn planned_and_built(spec: &Spec) -> Result<(), String> {
    let choice = choose(spec, &Target::cuda("sm_90a").expect("a target")).map_err(|e| e.to_string())?;
    let planned = schedule(spec, choice.strategy, &choice.sketch).map_err(|e| e.to_string())?;
    let args = planned.schedule.program().args();
    build_nest(&planned.schedule, args, "reduce").map(|_| ()).map_err(|e| e.to_string())
}

#[test]
fn small_extents_on_all_sides_have_a_plan_that_can_be_launched() {
    let lengths = [2, 5, 17, 65, 130, 1000];
    for (a, b, c) in
        lengths.iter().flat_map(|a| lengths.iter().flat_map(move |b| lengths.map(|c| (*a, *b, c))))
    {
        if a * b * c > 200_000 {
            continue;
        }
        for axes in [&[0][..], &[1], &[2], &[0, 2]] {
            let shape = [a, b, c];
            let of_op =
                |op, dtype| planned_and_built(&spec(op, dtype, &shape, &compact_strides(&shape), axes));
            for (op, dtype) in [("sum", DType::F32), ("var", DType::I8)] {
                of_op(op, dtype)
                    .unwrap_or_else(|why| panic!("{op} of {dtype} {shape:?} over {axes:?}: {why}"));
            }
        }
    }
}

#[test]
fn a_row_shorter_than_a_warp_has_no_threads_beyond_its_words() {
    let rows = spec("sum", DType::F32, &[200, 160], &[160, 1], &[1]);
    for warp in [32, 64] {
        let choice = choose(&rows, &Target::simulated(warp)).expect("a plan");
        let words = 160 / choice.sketch.lanes;
        assert_eq!((choice.strategy.name, words), ("gpu_rows", 40));
        assert_eq!(choice.sketch.threads, 32, "warps of {warp} lanes");
    }
}

#[test]
fn one_access_takes_as_many_neighbours_as_every_row_allows() {
    for (dtype, shape, axes, lanes) in [
        (DType::F32, vec![1 << 14, 1 << 14], vec![1], 4),
        (DType::BF16, vec![1 << 14, 1 << 14], vec![1], 8),
        (DType::I8, vec![1 << 30], vec![0], 16),
        (DType::F64, vec![1 << 27], vec![0], 2),
        (DType::F32, vec![(1 << 27) + 1], vec![0], 4),
        (DType::F32, vec![1 << 12, 16382], vec![1], 2),
        (DType::F32, vec![1 << 12, 16381], vec![1], 1),
        (DType::F32, vec![1 << 14, 1 << 14], vec![0], 4),
        (DType::F32, vec![1 << 14, 1237], vec![0], 4),
        (DType::F32, vec![8, 1237], vec![0], 1),
    ] {
        let (_, sketch, trace) = of("sum", dtype, &shape, &axes);
        assert_eq!(sketch.lanes, lanes, "{dtype} {shape:?} {axes:?}");
        assert_eq!(trace.contains("vectorize"), lanes > 1, "{trace}");
    }
    for (apart, lanes) in [(8192, 4), (8194, 2), (8193, 1)] {
        let with_gaps = planned(&spec("sum", DType::F32, &[4096, 4096], &[1, apart], &[0]));
        assert_eq!(with_gaps.1.lanes, lanes, "rows {apart} apart");
    }
}

#[test]
fn rows_that_begin_anywhere_are_read_by_whole_accesses_as_one_piece() {
    for (dtype, shape, name, rows) in [
        (DType::F32, [1 << 24, 7], "gpu_short_rows", 256),
        (DType::F32, [1 << 20, 63], "gpu_short_rows", 128),
        (DType::I8, [1 << 24, 2], "gpu_short_rows", 256),
        (DType::F64, [1 << 20, 63], "gpu_odd_rows", 32),
        (DType::F32, [1 << 20, 64], "gpu_short_rows", 128),
        (DType::F32, [8000, 64], "gpu_rows", 16),
        (DType::F32, [100_003, 1237], "gpu_odd_rows", 4),
        (DType::F16, [200_003, 301], "gpu_odd_rows", 16),
        (DType::F32, [100_003, 1240], "gpu_rows", 4),
        (DType::F64, [100_003, 4001], "gpu_rows", 1),
    ] {
        let (found, sketch, trace) = of("sum", dtype, &shape, &[1]);
        assert_eq!((found, sketch.rows), (name, rows), "{dtype} {shape:?}");
        assert_eq!(trace.contains("\"shared\""), name != "gpu_rows", "{trace}");
        // Rows together begin where an access may.
        let bytes = rows * shape[1] * dtype.bytes() as i64;
        assert!(name == "gpu_rows" || (bytes % 16 == 0 && trace.contains("vectorize")), "{trace}");
    }
}

#[test]
fn long_rows_of_narrow_elements_that_begin_anywhere_are_read_from_their_first_boundaries() {
    for (dtype, shape, is_peeled) in [
        (DType::I8, vec![60_000, 4097], true),
        (DType::I8, vec![240_000, 1023], true),
        (DType::I8, vec![400_000, 513], true),
        // A third of the last turn would be idle; short rows.
        (DType::I8, vec![300_000, 701], false),
        (DType::I8, vec![600_000, 301], false),
        (DType::I8, vec![60_000, 4100], false),
        (DType::F16, vec![200_003, 1009], true),
        (DType::BF16, vec![1920, 62_501], true),
        (DType::BF16, vec![1920, 62_502], false),
        (DType::F32, vec![4000, 15_001], false),
        // Few rows are split over blocks, and so is a whole array, which begins at a boundary.
        (DType::I8, vec![4, 1_000_001], true),
        (DType::I8, vec![1_000_001], false),
    ] {
        let axis = shape.len() as i64 - 1;
        let (found, sketch, trace) = of("sum", dtype, &shape, &[axis]);
        assert_eq!(sketch.peeled, is_peeled, "{dtype} {shape:?}");
        assert_eq!(trace.contains(".peel("), is_peeled, "{trace}");
        assert!(!is_peeled || (found == "gpu_rows" && sketch.lanes == 16 / dtype.bytes() as i64), "{trace}");
    }
}

#[test]
fn few_threads_share_a_row_of_narrow_elements_and_many_one_that_is_long() {
    for (dtype, shape, threads) in [
        (DType::F32, [16_384, 16_384], 1024),
        (DType::F32, [16_384, 4096], 256),
        (DType::F32, [600, 200_704], 896),
        (DType::BF16, [16_384, 32_768], 1024),
    ] {
        assert_eq!(of("sum", dtype, &shape, &[1]).1.threads, threads, "{dtype} {shape:?}");
    }
    assert_eq!(of("var", DType::F32, &[16_384, 16_384], &[1]).1.threads, 512);
}

#[test]
fn few_threads_share_a_row_whose_states_are_work_to_bring_together() {
    for (op, dtype, width, name, threads) in [
        ("var", DType::F32, 128, "gpu_rows", 8),
        ("var", DType::F32, 1024, "gpu_rows", 32),
        ("var", DType::F16, 256, "gpu_rows", 4),
        ("logsumexp", DType::BF16, 256, "gpu_rows", 4),
        ("logsumexp", DType::BF16, 1024, "gpu_rows", 16),
        ("sum", DType::BF16, 256, "gpu_rows", 16),
        ("sum", DType::BF16, 512, "gpu_rows", 32),
        ("var", DType::F32, 301, "gpu_odd_rows", 8),
        ("var", DType::F32, 1009, "gpu_odd_rows", 32),
        ("var", DType::F16, 1009, "gpu_odd_rows", 8),
        ("logsumexp", DType::BF16, 301, "gpu_odd_rows", 4),
        ("sum", DType::F32, 301, "gpu_odd_rows", 32),
        ("sum", DType::I8, 65, "gpu_odd_rows", 1),
        // Threads of neighbouring rows would meet in banks.
        ("var", DType::F16, 1025, "gpu_rows", 16),
    ] {
        let rows = 240_000_000 / (width * dtype.bytes() as i64);
        let (found, sketch, _) = of(op, dtype, &[rows, width], &[1]);
        assert_eq!((found, sketch.threads), (name, threads), "{op} of {width} {dtype}");
        assert!(sketch.threads * sketch.rows >= 128, "{op} of {width} {dtype}: {} rows", sketch.rows);
    }
    // Few rows leave the machine threads to spare.
    assert_eq!(of("var", DType::F32, &[1000, 1024], &[1]).1.threads, 64);
}

#[test]
fn elements_that_a_second_walk_of_a_run_may_read_are_few() {
    let shape = [60_000, 4096];
    let mut once = spec("argmax", DType::I8, &shape, &compact_strides(&shape), &[1]);
    once.reducer.quick = None;
    let request = coulis_reducers::ReducerRequest::new(&[DType::I8]).with_two_walks();
    let reducer = coulis_reducers::find("argmax").expect("a statistic").build(&request).expect("a reducer");
    let twice = Spec { reducer, ..once.clone() };
    assert_eq!((planned(&once).1.unroll, planned(&twice).1.unroll), (4, 2));
}

/// Six statistics at once have a large state; variances of `bfloat16` are walked again.
#[test]
fn rows_of_large_states_are_folded_by_few_threads_and_split_into_as_many_blocks_as_run_at_once() {
    let planned_of = |ops: &[&str], dtype: DType, shape: &[i64], axis: i64| {
        let request = coulis_reducers::ReducerRequest::new(&[dtype]).with_two_walks();
        let build =
            |op: &str| coulis_reducers::find(op).expect("a statistic").build(&request).expect("a reducer");
        let parts: Vec<_> = ops.iter().map(|op| (*op, build(op))).collect();
        let reducer = coulis_reducers::product(&parts).expect("a product").reducer;
        let plain = spec("sum", dtype, shape, &compact_strides(shape), &[axis]);
        planned(&Spec { reducer, ..plain }).1
    };
    let six = ["sum", "mean", "var", "min", "max", "argmax"];
    for (dtype, shape, threads) in [
        (DType::BF16, [65_536, 4096], 32),
        (DType::BF16, [16_384, 16_384], 64),
        (DType::BF16, [16_384, 32_768], 128),
        (DType::F32, [65_536, 4096], 64),
        (DType::F32, [16_384, 16_384], 128),
        // All rows at once, also where the words that are asked for first take registers.
        (DType::BF16, [2048, 131_072], 32),
        (DType::BF16, [1000, 131_072], 64),
        (DType::BF16, [3696, 65_536], 32),
        // Not all of them have the registers.
        (DType::BF16, [3697, 65_536], 128),
        (DType::F32, [4096, 32_768], 128),
    ] {
        let found = planned_of(&six, dtype, &shape, 1);
        assert_eq!((found.threads, found.chunks.n), (threads, 1), "{dtype} {shape:?}");
    }
    let whole = [1 << 29];
    assert_eq!(planned_of(&six, DType::BF16, &whole, 0).chunks.n, 1024);
    assert_eq!(planned_of(&["mean", "var"], DType::BF16, &whole, 0).chunks.n, 1024);
    // What no walk follows is swept, and a cluster folds what that leaves.
    let swept = |ops: &[&str], dtype: DType, shape: &[i64], axis: i64| {
        let found = planned_of(ops, dtype, shape, axis);
        (found.chunks.swept, found.threads, found.chunks.n, found.last.blocks)
    };
    assert_eq!(swept(&["mean", "var"], DType::F16, &whole, 0), (true, 512, 4096, 8));
    assert_eq!(swept(&six, DType::F32, &[1 << 28], 0), (true, 512, 4096, 8));
    assert_eq!(swept(&six, DType::I64, &[1 << 27], 0), (true, 512, 2048, 8));
    // Pieces are long beside large states, however many outputs there are.
    assert_eq!(swept(&six, DType::F32, &[8, 1 << 25], 1), (true, 512, 1024, 1));
    // Narrow elements that runs are walked again for are work.
    assert_eq!(swept(&["sum", "argmax"], DType::I8, &[1 << 30], 0), (false, 512, 2048, 1));
}

/// What of a large input is in few rows is folded piece by piece in the order of memory.
#[test]
fn large_inputs_of_few_rows_are_swept() {
    for (op, dtype, shape, axes, threads, unroll, chunks) in [
        // As many pieces as are alike, and the last one shorter where none are.
        ("sum", DType::F16, vec![600, 200_704], vec![1], 448, 4, 14),
        ("sum", DType::F32, vec![60_211_200], vec![0], 512, 4, 7350),
        ("sum", DType::F32, vec![60_000_013], vec![0], 512, 4, 7325),
        // What does not pass the caches, by as many threads as a block has, and no more parts than a block folds.
        ("sum", DType::F32, vec![1 << 28], vec![0], 1024, 4, 1 << 14),
        ("sum", DType::F32, vec![8, 1 << 25], vec![1], 1024, 4, 1 << 11),
        // Where states are not small, by fewer, as they are where elements that pass the caches are wide: clusters fold the parts.
        ("sum", DType::F64, vec![1 << 27], vec![0], 512, 4, 1 << 14),
        ("sum", DType::F64, vec![30_000_000], vec![0], 256, 4, 14_649),
        ("var", DType::F32, vec![1 << 28], vec![0], 512, 4, 1 << 13),
        // Pieces that lie apart: one a block.
        ("var", DType::F16, vec![256, 128, 64, 64], vec![0, 2, 3], 256, 2, 256),
        ("var", DType::F16, vec![128, 256, 56, 56], vec![0, 2, 3], 128, 4, 128),
    ] {
        let (name, found, trace) = of(op, dtype, &shape, &axes);
        let what = (found.chunks.swept, found.threads, found.unroll, found.chunks.n);
        assert_eq!((name, what), ("gpu_rows", (true, threads, unroll, chunks)), "{op} {shape:?}: {trace}");
        assert!(!found.chunks.in_turn, "{trace}");
    }
    for (op, dtype, shape, axes) in [
        ("sum", DType::F32, vec![1 << 14, 1 << 14], vec![1]),
        ("sum", DType::F32, vec![1 << 23], vec![0]),
        // Pieces of 16 KiB beside states of 32 bytes and more.
        ("var", DType::F32, vec![256, 256, 64, 64], vec![0, 2, 3]),
        // Combinations that call functions are folded by few.
        ("logsumexp", DType::BF16, vec![1000, 120_000], vec![1]),
        // Pieces of a kibibyte.
        ("sum", DType::F32, vec![1 << 14, 16, 256], vec![0, 2]),
    ] {
        let (_, found, trace) = of(op, dtype, &shape, &axes);
        assert!(!found.chunks.swept, "{op} {dtype} {shape:?}: {trace}");
    }
}

#[test]
fn pieces_of_no_whole_number_of_turns_are_dealt_evenly_where_memory_is_swift() {
    let plain = Target::cuda("sm_90a").expect("a target");
    let swift = Target { thread_bytes_per_second: 18_000_000, ..plain.clone() };
    for (op, dtype, shape, threads, rows, chunks) in [
        // As many blocks as run at once; of many outputs several times as many.
        ("var", DType::F32, [256, 64, 12_544], 224, 1, 8),
        ("var", DType::F32, [256, 256, 3136], 196, 1, 4),
        ("var", DType::BF16, [256, 512, 784], 98, 1, 4),
        // Accesses of half a vector's width, of two outputs by a block.
        ("var", DType::F16, [256, 1024, 196], 49, 2, 4),
        // As many images for each chunk.
        ("var", DType::F32, [100, 300, 1320], 165, 1, 10),
    ] {
        let spec = spec(op, dtype, &shape, &compact_strides(&shape), &[0, 2]);
        let choice = choose(&spec, &swift).expect("a plan");
        let found = &choice.sketch;
        let what = (found.chunks.of_pieces, found.threads, found.rows, found.chunks.n);
        assert_eq!((choice.strategy.name, what), ("gpu_rows", (true, threads, rows, chunks)), "{shape:?}");
        schedule(&spec, choice.strategy, found).expect("a schedule");
        assert!(!choose(&spec, &plain).expect("a plan").sketch.chunks.of_pieces, "{shape:?}");
    }
    // Whole turns already; a prime number of accesses; sums, for which blocks that sweep memory are as fast.
    for (op, shape) in [("var", [256, 128, 4096]), ("var", [256, 128, 4 * 1511]), ("sum", [256, 256, 3136])] {
        let spec = spec(op, DType::F32, &shape, &compact_strides(&shape), &[0, 2]);
        assert!(!choose(&spec, &swift).expect("a plan").sketch.chunks.of_pieces, "{op} {shape:?}");
    }
}

/// Elements that are more than the second-level cache, but not many times as many, leave it before what else is there.
#[test]
fn elements_pass_the_caches_where_they_are_a_few_times_what_these_hold() {
    for (op, shape, axes, passes) in [
        ("sum", vec![64 << 20], vec![0], true),
        ("sum", vec![(72 << 20) + 4], vec![0], false),
        ("sum", vec![(16 << 20) - 4], vec![0], false),
        ("sum", vec![16 << 20], vec![0], true),
        ("sum", vec![1 << 14, 4096], vec![1], true),
        ("sum", vec![1 << 14, 4096], vec![0], false),
    ] {
        let trace = of(op, DType::F32, &shape, &axes).2;
        assert_eq!(trace.contains("\"stream\""), passes, "{op} {shape:?}: {trace}");
    }
    // What a few times is depends on the machine's cache.
    for (shape, mib, passes) in [(16 << 20, 126, false), (100 << 20, 126, true), (100 << 20, 50, false)] {
        let target = Target { shared_cache_bytes: mib << 20, ..Target::cuda("sm_100a").expect("a target") };
        let sum = spec("sum", DType::F32, &[shape], &[1], &[0]);
        let sketch = choose(&sum, &target).expect("a plan").sketch;
        assert_eq!(sketch.whole.streams, passes, "{shape} elements past {mib} MiB");
    }
    // A run that is walked again has its words in registers, but finds those of one row of several of a block
    // in the first cache.
    let walked = |shape: &[i64]| {
        let request = coulis_reducers::ReducerRequest::new(&[DType::F32]).with_two_walks();
        let reducer =
            coulis_reducers::find("argmax").expect("a statistic").build(&request).expect("a reducer");
        let (strides, last) = (compact_strides(shape), shape.len() as i64 - 1);
        planned(&Spec { reducer, ..spec("sum", DType::F32, shape, &strides, &[last]) }).1
    };
    for shape in [[60_000_000], [60_000_013]] {
        let found = walked(&shape);
        assert!(found.whole.streams && found.chunks.swept, "{found:?}");
    }
    let several = walked(&[468_751, 128]);
    assert!(several.rows > 1 && !several.whole.streams, "{several:?}");
}

/// Positions of narrow columns are noted in one run from end to end; wider elements, and threads without
/// registers for such a run, fold states.
#[test]
fn narrow_columns_whose_steps_are_work_are_one_run() {
    let of = |dtype: DType, shape: &[i64]| {
        let request = coulis_reducers::ReducerRequest::new(&[dtype]).with_length(1 << 30).with_two_walks();
        let reducer = coulis_reducers::find("argmax").expect("a statistic");
        let reducer = reducer.build(&request.with_positions_in_passing()).expect("a reducer");
        planned(&Spec { reducer, ..spec("sum", dtype, shape, &compact_strides(shape), &[0]) })
    };
    for (dtype, shape, one_run, lanes) in [
        (DType::F16, [1_875_000, 64], true, 8),
        (DType::I16, [1_875_000, 64], true, 8),
        (DType::I8, [3_750_000, 64], true, 8),
        (DType::I8, [34_285_714, 7], true, 8),
        (DType::F16, [17_142_857, 7], false, 8),
        (DType::F32, [937_500, 64], false, 4),
    ] {
        let (name, found, trace) = of(dtype, &shape);
        assert_eq!(
            (name, found.run.is_all, found.lanes),
            ("gpu_columns", one_run, lanes),
            "{dtype}: {trace}"
        );
        assert_eq!(trace.contains("in_runs"), one_run, "{dtype}: {trace}");
    }
}

/// Runs of several fields in accesses of four bytes are of sixteen elements, of which as many bytes are in flight as of others, and
/// those of bytes in light states, by half as many threads; threads of the largest blocks have no registers for long runs of narrow elements that are always walked again.
#[test]
fn runs_are_as_long_as_their_accesses_and_registers_want() {
    const FIVE: &[&str] = &["sum", "mean", "var", "min", "max"];
    let of = |ops: &[&str], dtype: DType, shape: &[i64]| {
        let request = coulis_reducers::ReducerRequest::new(&[dtype]).with_length(1 << 30).with_two_walks();
        let part =
            |op: &&str| coulis_reducers::find(op).expect("a statistic").build(&request).expect("a reducer");
        let parts: Vec<_> = ops.iter().map(|op| (*op, part(op))).collect();
        let reducer = coulis_reducers::product(&parts).expect("a product").reducer;
        planned(&Spec { reducer, ..spec("sum", dtype, shape, &compact_strides(shape), &[0]) }).1
    };
    for (ops, dtype, shape, run) in [
        (FIVE, DType::F16, [1_875_000, 64], 16),
        (FIVE, DType::I8, [3_750_000, 64], 16),
        (FIVE, DType::I8, [60, 3_750_000], 8),
        (FIVE, DType::F32, [937_500, 64], 8),
        (&["sum", "max"], DType::I8, [251_407, 1001], 16),
        (&["all", "count_nonzero"], DType::Bool, [240_000, 1000], 16),
        (&["sum"], DType::I8, [35_951_177, 7], 8),
        (&["mean", "var"], DType::I8, [3_750_000, 64], 8),
        (&["logsumexp"], DType::F16, [1_875_000, 64], 8),
        (&["logsumexp"], DType::F16, [17_142_857, 7], 4),
        (&["logsumexp"], DType::F32, [8_571_428, 7], 8),
    ] {
        assert_eq!(of(ops, dtype, &shape).run.steps, run, "{ops:?} of {shape:?} {dtype}");
    }
    let bytes = of(&["all", "count_nonzero"], DType::Bool, &[240_000, 1000]);
    assert_eq!((bytes.resident, bytes.chunks.n), (2, 132));
    // Blocks of 224 threads, three to a multiprocessor in place of two.
    let joined = of(FIVE, DType::F16, &[17_142_857, 7]);
    assert_eq!((joined.joined, joined.lanes, joined.threads, joined.chunks.n), (2, 2, 32, 396));
    // Blocks that are all of a launch have registers as few of them are waited for at the end.
    for (shape, resident) in [
        ([3000, 20_000], 5),
        ([3750, 16_000], 4),
        ([1000, 60_000], 5),
        ([2500, 24_000], 0),
        ([300, 20_000], 0),
        ([12_000, 5000], 0),
    ] {
        assert_eq!(of(FIVE, DType::F32, &shape).resident, resident, "{shape:?}");
    }
    // Guards at the end of a row would leave few words under way.
    for (columns, resident) in [(20_000, 4), (20_480, 0)] {
        assert_eq!(of(&["sum"], DType::F32, &[3000, columns]).resident, resident, "{columns}");
    }
}

/// Threads that have much to do fold the last rows of a slab again rather than look at each element whether it is there.
#[test]
fn rows_past_the_last_of_a_slab_are_folded_again_where_states_have_several_fields() {
    for (op, dtype, is_clamped) in
        [("logsumexp", DType::BF16, true), ("var", DType::F32, true), ("sum", DType::F32, false)]
    {
        let (name, _, trace) = of(op, dtype, &[398_671, 301], &[1]);
        assert_eq!((name, trace.contains("clamp")), ("gpu_odd_rows", is_clamped), "{op}: {trace}");
    }
}

#[test]
fn pieces_of_a_row_that_lie_apart_are_taken_in_turn() {
    let (name, sketch, trace) = of("var", DType::F16, &[512, 128, 64, 64], &[0, 2, 3]);
    assert!(
        name == "gpu_rows" && sketch.chunks.in_turn && !sketch.chunks.swept && sketch.chunks.n > 1,
        "{trace}"
    );
    let (_, sketch, _) = of("sum", DType::F32, &[128, 3, 1024, 1024], &[0, 2, 3]);
    assert!(!sketch.chunks.in_turn && sketch.chunks.n > 1, "long pieces");
}

#[test]
fn what_is_counted_under_a_mask_is_not_read() {
    for (shape, axis) in [(vec![4096i64, 4096], 1), (vec![4096, 4096], 0), (vec![1 << 24], 0)] {
        let array = |dtype| ArrayInfo { dtype, shape: shape.clone(), strides: compact_strides(&shape) };
        let (input, mask) = (array(DType::F32), array(DType::Bool));
        let problem = Problem::new(
            std::slice::from_ref(&input),
            Some(&mask),
            Some(&[axis]),
            ResultForm::default(),
            true,
        )
        .expect("a problem");
        let counting =
            Spec { problem, mask: true, ..spec("count", DType::F32, &shape, &input.strides, &[axis]) };
        let (_, _, trace) = planned(&counting);
        assert!(!trace.contains("cache_read(A"), "{trace}");
    }
}

#[test]
fn narrow_sums_run_in_a_narrow_type_and_others_run_where_that_pays() {
    for (op, dtype, run) in
        [("sum", DType::F32, 1), ("sum", DType::BF16, 16), ("sum", DType::I8, 64), ("var", DType::F32, 16)]
    {
        let (_, sketch, trace) = of(op, dtype, &[1 << 14, 1 << 14], &[1]);
        assert_eq!(sketch.run.steps, run, "{op} of {dtype}");
        assert_eq!(trace.contains("in_runs"), run > 1, "{trace}");
    }
}

#[test]
fn rows_of_no_whole_number_of_accesses_are_walked_several_as_one() {
    for (dtype, shape, axis, lanes, joined) in [
        (DType::F32, vec![1 << 20, 7], 0, 4, 4),
        (DType::F32, vec![1 << 20, 6], 0, 4, 2),
        (DType::F32, vec![1 << 20, 2], 0, 4, 2),
        (DType::F32, vec![1 << 20, 8], 0, 4, 1),
        (DType::F16, vec![1 << 20, 33], 0, 8, 8),
        (DType::I8, vec![1 << 20, 63], 0, 8, 8),
        (DType::F64, vec![1 << 20, 3], 0, 2, 2),
        // Rows of each outer index begin where an access may, or where half of one may.
        (DType::F32, vec![64, 4096, 7], 1, 4, 4),
        (DType::F32, vec![64, 4098, 7], 1, 2, 2),
        (DType::F32, vec![64, 4097, 7], 1, 1, 1),
    ] {
        let (name, sketch, trace) = of("sum", dtype, &shape, &[axis]);
        assert_eq!(name, "gpu_columns");
        assert_eq!((sketch.lanes, sketch.joined), (lanes, joined), "{dtype} {shape:?}");
        assert_eq!(trace.contains(".join("), joined > 1, "{trace}");
    }
    let (_, sketch, _) = of("sum", DType::I8, &[256, 1 << 20 | 1], &[0]);
    assert_eq!(sketch.joined, 1, "partial states would take as long as the input");
}

#[test]
fn blocks_of_columns_are_as_many_as_run_at_once_and_strips_are_alike() {
    for (op, shape, axis, tile, blocks) in [
        ("sum", vec![1 << 14, 1 << 14], 0, 128, 512),
        ("sum", vec![1 << 23, 32], 0, 32, 528),
        ("sum", vec![256, 4096, 256], 1, 128, 512),
        // 66 accesses are two strips of 33, not three of which the last is 2.
        ("sum", vec![1 << 14, 264], 0, 132, 512),
        ("var", vec![1 << 14, 1 << 14], 0, 64, 512),
    ] {
        let (_, sketch, _) = of(op, DType::F32, &shape, &[axis]);
        let outer: i64 = shape[..axis as usize].iter().product();
        let n_strips = outer * ((shape[shape.len() - 1] + sketch.tile.width - 1) / sketch.tile.width);
        assert_eq!((sketch.tile.width, n_strips * sketch.chunks.n), (tile, blocks), "{op} of {shape:?}");
    }
    let (_, sketch, trace) = of("sum", DType::F32, &[100_000, 5, 13], &[1]);
    assert!(sketch.rows > 1 && trace.contains("threadIdx.z"), "{trace}");
}

#[test]
fn joined_columns_of_large_arrays_are_folded_by_few_threads_of_a_multiprocessor() {
    for (dtype, shape, strips, chunks) in [
        (DType::F32, [31_457_281, 2], 1, 264),
        (DType::F32, [20_971_521, 3], 1, 264),
        // Blocks that would leave many states are as large as they may be.
        (DType::F32, [8_987_795, 7], 1, 132),
        (DType::F32, [1_906_501, 33], 1, 132),
        (DType::F64, [953_251, 33], 1, 132),
        (DType::F16, [3_813_003, 33], 1, 132),
        (DType::I8, [35_951_177, 7], 1, 132),
        // A little is asked for at once by as many as there are.
        (DType::F32, [3_000_001, 7], 1, 528),
        // Strips that are few more than multiprocessors.
        (DType::F32, [7001, 9001], 141, 2),
    ] {
        let (_, sketch, _) = of("sum", dtype, &shape, &[0]);
        let n_strips = (shape[1] * sketch.joined + sketch.tile.width - 1) / sketch.tile.width;
        assert!(sketch.joined > 1, "{dtype} {shape:?}");
        assert_eq!((n_strips, sketch.chunks.n), (strips, chunks), "{dtype} {shape:?}");
    }
}

/// Whole rows in a block begin where lines of memory do, and so do strips of rows that are walked as one,
/// where what brings their states together is little.
#[test]
fn strips_of_joined_columns_of_large_arrays_begin_where_lines_of_memory_do() {
    for (op, dtype, shape, joined) in [
        ("sum", DType::F16, [125_703, 1001], 64),
        ("sum", DType::I8, [251_407, 1001], 128),
        ("sum", DType::F32, [62_353, 1009], 32),
        ("sum", DType::F16, [124_800, 1002], 32),
        // One strip, two of them, large states, more states than a part of the input, and a small array.
        ("sum", DType::F16, [3_813_003, 33], 8),
        ("sum", DType::F16, [984_251, 127], 8),
        ("var", DType::F32, [62_353, 1009], 2),
        ("sum", DType::F16, [31_242, 4001], 8),
        ("sum", DType::F16, [20_000, 1001], 8),
    ] {
        let (_, sketch, trace) = of(op, dtype, &shape, &[0]);
        assert_eq!(sketch.joined, joined, "{op} of {dtype} {shape:?}");
        // Many rows that were joined are shared by threads of the second launch.
        assert_eq!(trace.contains("threadIdx.z"), joined > 8, "{trace}");
        let n_strips = (shape[1] * sketch.joined + sketch.tile.width - 1) / sketch.tile.width;
        let rows = if n_strips == 1 { sketch.threads } else { 1 };
        let bytes = sketch.tile.width * rows * dtype.bytes() as i64;
        assert!(bytes % 128 == 0 || joined <= 8 && n_strips > 1, "{op} of {dtype} {shape:?}");
    }
    // What is done with the bytes of words would be done before all words have come.
    for (dtype, resident) in [(DType::I8, 4), (DType::F32, 0)] {
        assert_eq!(of("sum", dtype, &[3_932_161, 64], &[0]).1.resident, resident, "{dtype}");
    }
}

#[test]
fn few_outputs_are_split_so_that_every_multiprocessor_has_work() {
    for (shape, axes, name, least, most) in [
        (vec![1 << 28], vec![0], "gpu_rows", 1056, 1 << 14),
        (vec![8, 1 << 25], vec![1], "gpu_rows", 132, 1 << 14),
        (vec![1 << 23, 32], vec![0], "gpu_columns", 512, 1 << 14),
        (vec![1 << 14, 1 << 14], vec![1], "gpu_rows", 1, 1),
        (vec![1 << 14, 1 << 14], vec![0], "gpu_columns", 2, 64),
        (vec![4096], vec![0], "gpu_rows", 1, 1),
    ] {
        let (found, sketch, _) = of("sum", DType::F32, &shape, &axes);
        assert_eq!(found, name, "{shape:?}");
        assert!((least..=most).contains(&sketch.chunks.n), "{shape:?}: {} chunks", sketch.chunks.n);
    }
}

#[test]
fn the_fewer_registers_a_thread_has_the_less_it_keeps() {
    let h100 = Target::cuda("sm_90a").expect("a target");
    let of = |op, shape: &[i64], axis| spec(op, DType::F16, shape, &compact_strides(shape), &[axis]);
    let room = |spec: &Spec, registers: u32| {
        let target = Target { block: BlockLimits { registers, ..h100.block }, ..h100.clone() };
        let choice = choose(spec, &target).expect("a plan");
        assert_eq!(choice.room.remark().is_some(), choice.room != Room::Ample);
        assert_eq!(choice.sketch.last.in_memory, choice.room == Room::InMemory);
        (choice.room, choice.strategy.name)
    };
    let mut all = Vec::new();
    for op in ["var", "logsumexp", "argmax", "prod", "minloc"] {
        for spec in [of(op, &[4096, 512], 0), of(op, &[512, 4096], 1)] {
            let met: Vec<Room> = (0..64).rev().map(|registers| room(&spec, registers).0).collect();
            assert!(met.is_sorted(), "{op}: {met:?}");
            all.extend(met);
        }
    }
    assert!(Room::ALL.iter().all(|room| all.contains(room)), "{all:?}");
    let rows = of("var", &[512, 4096], 1);
    let names: Vec<_> = [255, 8, 1].map(|registers| room(&rows, registers).1).into();
    assert_eq!(names, ["gpu_rows", "gpu_outputs", "gpu_outputs"]);
}
