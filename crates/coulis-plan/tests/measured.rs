//! Plans that were measured, of calls whose first ones were slow. Measured: `bench/results/h200.md`.

mod common;

use coulis_ir::args::compact_strides;
use coulis_ir::{DType, Target};

use common::{of, planned_for, spec};

#[test]
fn calls_of_a_survey_have_the_plans_that_were_measured() {
    // Few reduced neighbours of each output are columns, few outputs a cluster's.
    let (name, sketch, _) = of("argmax", DType::F16, &[4_000_000, 3, 4], &[0, 2]);
    assert_eq!((name, sketch.beside, sketch.last.blocks), ("gpu_beside", 4, 8));
    let (name, sketch, _) = of("max", DType::F32, &[1_000_000, 7, 9], &[0, 2]);
    assert_eq!((name, sketch.beside, sketch.joined, sketch.lanes), ("gpu_beside", 9, 4, 4));
    assert_ne!(of("sum", DType::U8, &[24, 153_210, 73], &[0, 2]).0, "gpu_beside", "parts for every 24 bytes");
    // Bytes that may be walked again are swept in pieces of 64 KiB.
    let (name, sketch, _) = of("argmax", DType::U8, &[1 << 28], &[0]);
    assert_eq!((name, sketch.threads, sketch.chunks.n, sketch.unroll), ("gpu_rows", 256, 4096, 8));
    // A column of few elements is one run of one thread.
    let (name, sketch, _) = of("mean", DType::BF16, &[9, 14_902_272], &[0]);
    assert_eq!((name, sketch.threads, sketch.run.steps, sketch.unroll), ("gpu_columns", 1, 9, 9));
    // Rows of an odd number of bytes are walked as words, of more parts than others may have.
    let (name, sketch, _) = of("max", DType::U8, &[225, 585_479], &[0]);
    assert_eq!((name, sketch.lanes, sketch.joined), ("gpu_columns", 8, 8));
    // Threads share all rows where some would have a row fewer in each of the pieces that these are.
    let (_, sketch, _) = of("mean", DType::F16, &[4, 37, 218, 4096], &[0, 2]);
    assert!(sketch.chunks.shares_all && sketch.chunks.n == 1, "{sketch:?}");
    // Where pieces are enough for chunks, each of these is of one piece, and as many threads have the rows of one as leave none over.
    let (_, sketch, trace) = of("argmax", DType::F32, &[3, 34, 12_131, 53], &[0, 2]);
    let chunks = sketch.chunks;
    assert!(chunks.cuts_inner && sketch.threads == 7 && chunks.n % 3 == 0, "{trace}");
    assert!(3 * 1733 <= chunks.n * chunks.turns, "{trace}");
    let (_, sketch, _) = of("var", DType::F32, &[7, 64, 4099, 65], &[0, 2]);
    assert_eq!((sketch.chunks.cuts_inner, sketch.chunks.n, sketch.chunks.turns), (true, 7, 1025));
    let (name, sketch, trace) = of("sum", DType::Bool, &[9, 4, 3, 1_242_756], &[0, 3]);
    assert_eq!((name, sketch.chunks.cuts_inner, sketch.chunks.n % 9), ("gpu_rows", true, 0), "{trace}");
    // Chunks of several rows are an index of their own, by which blocks are told that need no guards.
    let (_, sketch, trace) = of("argmax", DType::F16, &[56, 2_393_088], &[1]);
    assert!(sketch.chunks.swept && trace.contains("blockIdx.y"), "{trace}");
    // Several statistics are folded in whole steps.
    let (_, sketch, _) = of("var", DType::U8, &[37, 18_507, 196], &[1]);
    assert!(sketch.chunks.n > 1 && sketch.chunks.turns > 0 && sketch.chunks.turns % sketch.unroll == 0);
    // What is walked again stays in registers, for which blocks are not asked to be many.
    let (_, sketch, _) = of("logsumexp", DType::F32, &[1024, 64, 1024], &[1]);
    assert_eq!((sketch.resident, sketch.lanes, sketch.run.steps), (0, 4, 8));
    // Threads have several strips of columns of which they read little, whose results are whole words.
    let (_, sketch, trace) = of("mean", DType::F16, &[3, 22_369_621], &[0]);
    assert_eq!((sketch.lanes, sketch.tile.together), (1, 8), "{trace}");
    let (_, sketch, trace) = of("sum", DType::BF16, &[4, 16_777_216], &[0]);
    assert_eq!((sketch.lanes, sketch.tile.together), (8, 1), "{trace}");
    assert_eq!(trace.matches("vectorize").count(), 2, "{trace}");
}

/// A machine whose memory is as swift for each thread as that of an H200.
fn swift() -> Target {
    Target { thread_bytes_per_second: 17_750_000, ..Target::cuda("sm_90a").expect("a target") }
}

#[test]
fn where_memory_is_swift_blocks_bring_much_together_at_once() {
    let on = |target: &Target, op: &str, dtype: DType, shape: &[i64]| {
        planned_for(&spec(op, dtype, shape, &compact_strides(shape), &[shape.len() as i64 - 1]), target)
    };
    let other = Target::cuda("sm_90a").expect("a target");
    // Half a mebibyte a block where all blocks run at once then; fewer bytes, in more blocks, where not or elements are wide.
    let parts = |target: &Target, dtype, shape: &[i64]| on(target, "var", dtype, shape).1.chunks.n;
    assert_eq!(
        (parts(&other, DType::F32, &[5, 13_421_772]), parts(&swift(), DType::F32, &[5, 13_421_772])),
        (1639, 103)
    );
    for (dtype, shape) in [(DType::F32, [225, 294_912]), (DType::F64, [27, 621_378])] {
        assert_eq!(parts(&other, dtype, &shape), parts(&swift(), dtype, &shape), "{dtype} {shape:?}");
    }
    // Rows of 16-bit elements that begin at every fourth byte are read from their first boundaries.
    let shape = [1920, 62_502];
    let peeled = |target: &Target, dtype| on(target, "sum", dtype, &shape).1.peeled;
    assert!(peeled(&swift(), DType::BF16) && !peeled(&other, DType::BF16));
    assert!(!peeled(&swift(), DType::F32));
}
