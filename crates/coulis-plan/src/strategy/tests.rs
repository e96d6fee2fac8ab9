//! What strategies decide for CPUs.

use super::*;
use crate::order::ResultForm;
use crate::plan::{choose, schedule};
use crate::problem::Problem;
use crate::program::OutputSpec;
use coulis_ir::args::{ArrayInfo, compact_strides};
use coulis_ir::print::print_kernel;
use coulis_ir::{DType, Expr};
use coulis_reducers::ReducerRequest;
use coulis_schedule::build_nest;

fn trace(shape: &[i64], axes: &[i64], vector_bytes: u32) -> String {
    trace_of(shape, axes, vector_bytes, 4)
}

pub fn cpu(vector_bytes: u32, pages: u32) -> Target {
    let vectors_are_registers = vector_bytes <= 64;
    Target { vectors_are_registers, register_bytes: 2048, pages, ..Target::cpu(vector_bytes, 2) }
}

fn trace_of(shape: &[i64], axes: &[i64], vector_bytes: u32, pages: u32) -> String {
    let target = cpu(vector_bytes, pages);
    let (spec, sketch, strategy) = planned("sum", shape, axes, &target);
    schedule(&spec, strategy, &sketch).unwrap().schedule.trace().to_string()
}

pub fn planned(op: &str, shape: &[i64], axes: &[i64], target: &Target) -> (Spec, Sketch, &'static Strategy) {
    planned_for(&ReducerRequest::new(&[DType::F32]).with_length(1 << 20), op, shape, axes, target)
}

fn problem_of(input: &ArrayInfo, axes: &[i64]) -> Problem {
    Problem::new(std::slice::from_ref(input), None, Some(axes), ResultForm::default(), true).unwrap()
}

pub fn planned_for(
    request: &ReducerRequest,
    op: &str,
    shape: &[i64],
    axes: &[i64],
    target: &Target,
) -> (Spec, Sketch, &'static Strategy) {
    let dtype = request.inputs[0];
    let input = ArrayInfo { dtype, shape: shape.to_vec(), strides: compact_strides(shape) };
    let problem = problem_of(&input, axes);
    let reducer = coulis_reducers::find(op).unwrap().build(request).unwrap();
    let outputs = vec![OutputSpec::plain(reducer.results[0].dtype)];
    let spec = Spec::new(problem, vec![dtype], false, reducer, outputs, None);
    let choice = choose(&spec, target).unwrap();
    (spec, choice.sketch, choice.strategy)
}

#[test]
fn rows_of_several_dimensions_have_runs_of_elements_that_are_as_wide_where_these_leave_no_rest() {
    let narrow = ReducerRequest::new(&[DType::F32]).with_narrow_runs();
    let run =
        |length: i64| planned_for(&narrow, "sum", &[20, 50_001, length], &[0, 2], &cpu(64, 1)).1.run.steps;
    assert_eq!((run(1237), run(1024), run(1280 + 7), run(16_384)), (1, 16, 4, 16));
    assert_eq!(run(100_001), 16, "a long row");
}

#[test]
fn rows_are_cut_behind_their_whole_runs() {
    let narrow = ReducerRequest::new(&[DType::F32]).with_narrow_runs();
    let of = |shape: &[i64], vector_bytes: u32| {
        let axis = shape.len() as i64 - 1;
        let sketch = planned_for(&narrow, "sum", shape, &[axis], &cpu(vector_bytes, 1)).1;
        (sketch.head.length, sketch.run.steps, sketch.constant.last() == Some(&true))
    };
    let rows = |length: i64| of(&[50_001, length], 32);
    // Four vectors of 8 side by side.
    assert_eq!(rows(257), (256, 8, true));
    assert_eq!(rows(384), (0, 12, true), "one run of all");
    assert_eq!(rows(1009), (960, 15, true), "two runs, and a vector and an element");
    assert_eq!(rows(1024), (0, 16, true));
    assert_eq!(rows(8192 + 31), (0, 16, false), "so long that the rest does not matter");
    assert_eq!(of(&[1009], 32), (0, 1, false), "a length by itself");
    assert_eq!(of(&[50_001, 1009], 1 << 20).0, 0, "vectors that are no registers");
    let trace = trace_of(&[50_001, 1009], &[1], 32, 1);
    assert!(trace.contains("s.overlap(S, k0, 8)") && trace.contains("s.cut(S_rf, k0_outer, "), "{trace}");
    assert!(!trace_of(&[50_001, 1024], &[1], 32, 1).contains(".cut("));
}

/// Four chains of vectors of one register each, in place of two of two registers: runs that are twice as long.
#[test]
fn variances_of_short_floats_run_in_chains_of_one_register() {
    let target = Target { register_bytes: 512, ..cpu(32, 1) };
    for dtype in [DType::F16, DType::BF16] {
        let request = ReducerRequest::new(&[dtype]).with_runs_given_up();
        let planned = |length: i64| {
            let (spec, sketch, strategy) = planned_for(&request, "var", &[50_001, length], &[1], &target);
            schedule(&spec, strategy, &sketch).unwrap();
            sketch
        };
        let of = |length: i64| {
            let sketch = planned(length);
            (sketch.lanes, sketch.unroll, sketch.head.length, sketch.run.steps, sketch.run.chains)
        };
        assert_eq!(of(4096), (8, 1, 0, 64, 4), "runs that make up a row");
        assert_eq!(of(1000), (8, 1, 960, 60, 4), "runs that are even shorter, and a rest");
        assert_eq!(of(256), (8, 1, 0, 32, 4), "one run");
        // What is behind the last run is one of a chain.
        for length in (256..9000).step_by(61) {
            let sketch = planned(length);
            let head = sketch.head.length;
            assert!(head == 0 || (length - head) / sketch.lanes <= 16, "{length}: {sketch:?}");
        }
        // Steps of short rows are one chain, where a run holds all of them by one register.
        let short = |length: i64| {
            let sketch = planned_for(&request, "sum", &[50_001, length], &[1], &target).1;
            (sketch.head.length, sketch.head.lanes, sketch.run.steps)
        };
        assert_eq!([64, 200].map(short), [(64, 8, 8), (192, 16, 12)]);
    }
}

#[test]
fn narrow_columns_that_registers_hold_are_walked_row_by_row() {
    let of = |op: &str, columns: i64, pages: u32| {
        let sketch = planned(op, &[64, 4096, columns], &[1], &cpu(64, pages)).1;
        let Tile { width, written_out, .. } = sketch.tile;
        (width, sketch.unroll, width / sketch.lanes <= written_out, sketch.ahead.steps)
    };
    assert_eq!(of("sum", 128, 1), (128, 1, true, 16), "two pages ahead");
    assert_eq!(of("sum", 256, 1), (128, 1, true, 8), "two tiles of a row");
    assert_eq!(of("sum", 512, 1), (512, 8, false, 0), "more of them");
    assert_eq!(of("sum", 64, 1), (64, 8, true, 2), "few vectors, several rows a visit");
    assert_eq!(of("sum", 256, 4).0, 256, "pages side by side");
}

#[test]
fn tiles_around_which_a_dimension_is_reduced_are_folded_together() {
    let narrow = ReducerRequest::new(&[DType::F32]).with_narrow_runs();
    let of = |shape: [i64; 4], axes: &[i64], pages: u32| {
        let sketch = planned_for(&narrow, "sum", &shape, axes, &cpu(64, pages)).1;
        (sketch.tile.together, sketch.constant.iter().rev().nth(2) == Some(&true))
    };
    assert_eq!(of([16, 512, 64, 128], &[0, 2], 1), (32, true), "states of 1 KiB each");
    assert_eq!(of([16, 520, 64, 128], &[0, 2], 1), (8, true), "tiles that make up the dimension");
    assert_eq!(of([16, 128, 512, 128], &[0, 2], 1), (8, true), "parts for all threads");
    assert_eq!(of([16, 64, 512, 128], &[0, 2], 1), (1, false), "too few for that");
    assert_eq!(of([16, 16, 512, 512], &[0, 2], 1), (1, false), "too few of them");
    assert_eq!(of([16, 512, 64, 128], &[2], 1).0, 1, "nothing reduced around them");
    assert_eq!(of([16, 512, 64, 128], &[0, 2], 4).0, 1, "pages side by side");
    assert_eq!(of([4, 16, 16, 128], &[0, 2], 1).0, 1, "an input in a cache");
    assert_eq!(of([16, 1024, 64, 96], &[0, 2], 1).0, 32, "tiles of any width");
    let (spec, sketch, strategy) = planned_for(&narrow, "sum", &[16, 512, 64, 128], &[0, 2], &cpu(64, 1));
    let trace = schedule(&spec, strategy, &sketch).unwrap().schedule.trace().to_string();
    assert!(trace.contains(".reorder(k0, i0, k1_outer, i1_outer, k1_inner, "), "{trace}");
}

#[test]
fn visits_with_runs_of_narrow_columns_ask_for_a_few_lines_at_a_time() {
    let narrow = ReducerRequest::new(&[DType::F32]).with_narrow_runs();
    let of = |columns: i64, pages: u32| {
        let shape = [64, 4096, columns];
        let sketch = planned_for(&narrow, "sum", &shape, &[1], &cpu(64, pages)).1;
        (sketch.run.steps, sketch.tile.width / sketch.lanes <= sketch.tile.written_out, sketch.ahead.rows)
    };
    assert_eq!(of(32, 1), (16, true, 2), "two vectors, a page ahead");
    assert_eq!(of(64, 1), (16, false, 2), "a loop over four, two pages ahead");
    assert_eq!(of(256, 1), (16, false, 1), "the next visit");
    assert!(of(64, 4).1, "pages side by side");
}

#[test]
fn tiles_of_wide_columns_are_longer_where_memory_is_read_front_to_back() {
    let tile = |pages: u32| planned("sum", &[1024, 1 << 16], &[0], &cpu(64, pages)).1.tile.width;
    assert_eq!([tile(1), tile(4)], [1 << 14, 1 << 13]);
}

#[test]
fn threads_read_whole_rows_where_memory_is_read_front_to_back() {
    let of = |shape: [i64; 2], pages: u32| {
        let sketch = planned("sum", &shape, &[0], &cpu(64, pages)).1;
        (sketch.tile.width, sketch.chunks.n)
    };
    let wide = [4096, 1 << 14];
    assert_eq!([of(wide, 1), of(wide, 4)], [(1 << 14, 8), (1 << 13, 1)]);
    let parts = [1 << 14, 1 << 12, 1 << 10].map(|rows| of([rows, 1 << 14], 1).1);
    assert_eq!(parts, [16, 8, 4], "parts that read 256 bytes for each byte of their states");
    assert_eq!(of([1024, 1 << 15], 1), (1 << 14, 1), "two tiles that could be no wider");
    assert_eq!(of([256, 1 << 10], 1), (512, 1), "an input in a cache");
    let spread = |shape: &[i64]| trace_of(shape, &[0], 64, 1).matches(".parallel(").count();
    assert_eq!(spread(&wide), 2, "many partial states");
    assert_eq!(spread(&[1 << 20, 32]), 1, "few of them");
}

#[test]
fn short_rows_whose_steps_wait_are_walked_side_by_side() {
    let target = cpu(64, 1);
    let of = |op: &str, rows: i64| {
        let sketch = planned(op, &[rows, 1024], &[1], &target).1;
        (sketch.rows, sketch.joined, sketch.unroll)
    };
    let (near, far) = (1 << 11, 1 << 16);
    assert_eq!(of("argmax", near), (8, 4, 1), "as many rows as registers hold");
    assert_eq!(of("argmax", far), (8, 1, 2), "memory is read front to back");
    assert_eq!([of("logsumexp", near), of("logsumexp", far)], [(8, 2, 1); 2], "steps that wait within");
    assert_eq!(of("sum", near), (8, 1, 4), "states that are brought together cheaply");
    assert_eq!(of("var", near).1, 1, "steps that wait for nothing");
}

#[test]
fn visits_of_many_statistics_are_not_written_out() {
    let visit = |ops: &[&'static str]| {
        let input = ArrayInfo { dtype: DType::I64, shape: vec![100_000, 20], strides: vec![20, 1] };
        let problem = problem_of(&input, &[0]);
        let request = ReducerRequest::new(&[DType::I64]);
        let built = |op: &&'static str| (*op, coulis_reducers::find(op).unwrap().build(&request).unwrap());
        let parts: Vec<(&str, Reducer)> = ops.iter().map(built).collect();
        let reducer = coulis_reducers::product(&parts).unwrap().reducer;
        let outputs = reducer.results.iter().map(|r| OutputSpec::plain(r.dtype)).collect();
        let spec = Spec::new(problem, vec![DType::I64], false, reducer, outputs, None);
        let choice = choose(&spec, &cpu(64, 1)).unwrap();
        (choice.strategy.name, choice.sketch.unroll)
    };
    assert_eq!(visit(&["mean", "min", "argmax"]), ("interleaved", 8));
    let many = coulis_reducers::CATALOGUE.iter().filter(|entry| entry.n_inputs == 1).map(|entry| entry.name);
    assert_eq!(visit(&many.collect::<Vec<_>>()), ("interleaved", 1));
}

#[test]
fn short_rows_are_one_run_where_it_holds_them() {
    let half = ReducerRequest::new(&[DType::F32]).with_length(1 << 20);
    let run =
        |op: &str, length: i64| planned_for(&half, op, &[50_001, length], &[1], &cpu(64, 1)).1.run.steps;
    assert_eq!([run("var", 7), run("argmax", 7), run("argmax", 31)], [7, 7, 31]);
}

#[test]
fn steps_of_a_short_outermost_dimension_are_parts_where_they_are_enough() {
    let cut = |n_threads: u32, images: i64, channels: i64| {
        let target = Target { n_threads, ..cpu(32, 1) };
        let (_, sketch, strategy) = planned("sum", &[images, channels, 1 << 20], &[0, 2], &target);
        assert_eq!(strategy.name, "rows");
        (sketch.chunks.n, sketch.chunks.cuts_inner)
    };
    assert_eq!([cut(16, 32, 3), cut(16, 128, 3), cut(16, 200, 3)], [(32, false), (128, false), (200, false)]);
    assert_eq!(cut(16, 31, 3), (128, true), "too few parts");
    assert_eq!(cut(16, 1000, 3), (128, false));
    assert_eq!([cut(2, 4, 3), cut(2, 16, 3), cut(2, 3, 3)], [(4, false), (16, false), (16, true)]);
}

#[test]
fn rows_of_few_blocks_are_cut_into_fewer_parts() {
    let cut = |n_threads: u32, rows: i64, length: i64| {
        let target = Target { n_threads, ..cpu(32, 1) };
        let narrow = ReducerRequest::new(&[DType::F32]).with_narrow_runs();
        let (_, sketch, strategy) = planned_for(&narrow, "sum", &[rows, length], &[1], &target);
        assert_eq!(strategy.name, "rows");
        (sketch.chunks.n, sketch.run.steps * sketch.lanes * sketch.unroll)
    };
    // Blocks of 512 elements: 2000 of them, 400, 200.
    assert_eq!([cut(16, 5, 1_024_000), cut(16, 5, 204_800)], [(128, 512), (64, 512)]);
    assert_eq!([cut(16, 11, 102_400), cut(16, 200, 102_400)], [(32, 512), (1, 512)]);
}

#[test]
fn short_rows_are_folded_by_vectors_as_far_as_these_go() {
    let of = |op: &str, length: i64| {
        let (_, sketch, strategy) = planned(op, &[50_001, length], &[1], &cpu(32, 1));
        (strategy.name, sketch.head.length, sketch.head.lanes, sketch.tile.width, sketch.run.steps)
    };
    assert_eq!(of("sum", 7), ("short_rows", 0, 1, 1, 1), "one row a lane");
    assert_eq!(of("sum", 16), ("short_rows", 16, 4, 4, 1), "whole vectors");
    assert_eq!(of("sum", 33), ("short_rows", 32, 4, 4, 1));
    assert_eq!(of("max", 127), ("short_rows", 120, 8, 8, 15));
    assert_eq!([of("max", 255).1, of("sum", 255).1], [248, 248]);
    assert_eq!(of("max", 256).0, "rows");
    assert_eq!(of("prod", 45), ("short_rows", 40, 8, 4, 5), "a run");
    assert_eq!(of("prod", 91), ("short_rows", 80, 8, 4, 5), "runs of as many vectors each");
    assert_eq!(of("logsumexp", 45), ("short_rows", 0, 1, 1, 15), "runs of one row a lane");
    assert_eq!(of("logsumexp", 97), ("short_rows", 96, 8, 4, 12));
    assert_eq!(
        [of("sum", 99).2, of("sum", 101).2],
        [4, 8],
        "two short vectors whose steps wait for each other"
    );
    let short = trace(&[50_001, 33], &[1], 32);
    assert!(short.contains("s.cut(S, k0, 32)"), "one element, with one row a lane: {short}");
    let short = trace(&[50_001, 35], &[1], 32);
    assert!(short.contains("s.overlap(S, k0, 4)") && short.contains("s.cut(S_rf, k0_outer, 8)"), "{short}");
    assert!(!trace(&[50_001, 32], &[1], 32).contains(".cut("));
    let written_out =
        |op: &str, length: i64| planned(op, &[50_001, length], &[1], &cpu(32, 1)).1.tile.written_out;
    assert_eq!([written_out("sum", 251), written_out("var", 251)], [31, 0], "text of few operations");
}

#[test]
fn nothing_counts_the_steps_of_runs_that_make_up_rows() {
    let knows = |shape: &[i64], axes: &[i64]| {
        let sketch = planned("var", shape, axes, &cpu(64, 1)).1;
        sketch.run.steps > 1 && sketch.constant.last() == Some(&true)
    };
    assert!(knows(&[64, 16, 1 << 15], &[0, 2]) && !knows(&[64, 16, (1 << 15) + 8], &[0, 2]));
    assert!(!knows(&[1 << 20], &[0]), "a length by itself");
}

#[test]
fn a_second_walk_that_every_run_needs_is_not_asked_for() {
    let kernel = |op: &str| {
        let (spec, sketch, strategy) = planned(op, &[2048, 1024], &[1], &cpu(64, 1));
        let schedule = schedule(&spec, strategy, &sketch).unwrap().schedule;
        build_nest(&schedule, schedule.program().args(), "reduce").map(|nest| print_kernel(&nest)).unwrap()
    };
    let text = kernel("logsumexp");
    assert!(text.contains("_again") && !text.contains("asked"), "{text}");
    assert!(kernel("argmax").contains("asked"), "only runs with the winner are walked again");
    assert!(kernel("prod").contains("asked"), "only runs with elements that are far from 1");
}

#[test]
fn walks_that_hardware_follows_by_itself_do_not_ask_unless_steps_take_the_time() {
    let follows = Target { reads_ahead: true, first_cache_bytes: 32 << 10, ..cpu(64, 1) };
    let asks = |op: &str, shape: &[i64], axes: &[i64], target: &Target| {
        let (spec, sketch, strategy) = planned(op, shape, axes, target);
        schedule(&spec, strategy, &sketch).unwrap().schedule.trace().to_string().contains("prefetch")
    };
    for shape in [[1 << 12, 1 << 14], [50001, 1237], [1 << 22, 16], [2_000_001, 33]] {
        assert!(!asks("sum", &shape, &[1], &follows), "{shape:?}");
        assert!(asks("sum", &shape, &[1], &cpu(64, 1)), "{shape:?}, of a machine that does not");
    }
    assert!(asks("logsumexp", &[1 << 12, 1 << 14], &[1], &follows), "exponentials take the time");
    assert!(asks("sum", &[1 << 14, 1 << 12], &[0], &follows), "columns are many walks");
}

#[test]
fn short_rows_are_folded_by_halves_where_the_machine_works_by_halves() {
    let by_halves = Target { halves_vectors: true, ..cpu(64, 1) };
    let folded = |op: &str, dtype: DType, length: i64, target: &Target| {
        let request = ReducerRequest::new(&[dtype]).with_length(1 << 20);
        planned_for(&request, op, &[1 << 20, length], &[1], target).1.tile.width
    };
    for (op, dtype, length, whole, halves) in [
        ("sum", DType::F32, 16, 8, 4),
        ("sum", DType::F32, 12, 8, 4),
        ("sum", DType::F32, 64, 8, 8),
        ("sum", DType::F16, 16, 8, 8),
        ("sum", DType::F16, 64, 8, 4),
        ("sum", DType::F16, 200, 8, 8),
        ("sum", DType::I8, 16, 8, 4),
        ("sum", DType::I8, 8, 8, 1),
        ("sum", DType::F64, 32, 8, 8),
        ("max", DType::I32, 24, 16, 8),
        ("max", DType::I32, 64, 16, 16),
    ] {
        assert_eq!(folded(op, dtype, length, &cpu(64, 1)), whole, "{op} of {length} {dtype}");
        assert_eq!(folded(op, dtype, length, &by_halves), halves, "{op} of {length} {dtype}, by halves");
    }
}

#[test]
fn plans_ask_ahead_for_memory_but_not_for_caches() {
    for (shape, axes, pragma) in [
        (vec![1 << 24], vec![0], "prefetch"),
        (vec![1 << 14, 1 << 10], vec![1], "prefetch_bytes"),
        (vec![50001, 1237], vec![1], "prefetch_bytes"),
        (vec![1 << 10, 1 << 14], vec![0], "prefetch_l2"),
        (vec![1 << 20, 16], vec![1], "prefetch"),
        (vec![256, 1024, 196], vec![0, 2], "prefetch"),
    ] {
        let asks = |text: String| {
            for other in ["prefetch", "prefetch_l2", "prefetch_bytes"].iter().filter(|key| **key != pragma) {
                assert!(!text.contains(&format!("{other:?}")), "{text}");
            }
            text.matches(&format!("{pragma:?}")).count()
        };
        assert_eq!(asks(trace(&shape, &axes, 64)), 1, "{shape:?}");
        assert_eq!(asks(trace(&shape, &axes, 1 << 14)), 0, "{shape:?} by the executor");
        let small: Vec<i64> = shape.iter().map(|n| (n / 64).max(16)).collect();
        assert_eq!(asks(trace(&small, &axes, 64)), 0, "{small:?}");
    }
    // Columns ask into a first cache that holds what they ask for.
    for (kib, pages, pragma) in [(48, 1, "prefetch"), (48, 4, "prefetch_l2"), (32, 1, "prefetch_l2")] {
        let target = Target { first_cache_bytes: kib << 10, ..cpu(64, pages) };
        for shape in [[1 << 10, 1 << 14], [1 << 18, 256], [1 << 22, 16]] {
            let (spec, sketch, strategy) = planned("sum", &shape, &[0], &target);
            let text = schedule(&spec, strategy, &sketch).unwrap().schedule.trace().to_string();
            assert!(text.contains(&format!("{pragma:?}")), "{shape:?}, {kib} KiB, {pages} pages: {text}");
        }
    }
}

#[test]
fn rows_that_push_each_other_out_of_the_first_cache_are_read_by_whole_lines() {
    let lanes = |dtype: DType, vector_bytes: u32| {
        let request = ReducerRequest::new(&[dtype]).with_length(1 << 18);
        planned_for(&request, "mean", &[1 << 18, 256], &[0], &cpu(vector_bytes, 4)).1.lanes
    };
    assert_eq!(lanes(DType::F16, 32), 32);
    assert_eq!(lanes(DType::F32, 32), 8);
    assert_eq!(lanes(DType::F16, 64), 32);
}

#[test]
fn results_that_no_cache_keeps_are_stored_past_them() {
    let streams =
        |shape: &[i64], axes: &[i64], bytes| trace(shape, axes, bytes).matches("\"stream\"").count();
    // Four caches of 1 MiB hold 2^20 results and no more, and 64 hold no 16 elements of each.
    for (n, wanted) in [(1 << 20, 0), ((1 << 20) + (1 << 14), 1)] {
        assert_eq!(streams(&[n, 16], &[1], 64), wanted, "{n} short rows");
        assert_eq!(streams(&[16, n], &[0], 64), wanted, "{n} columns");
        assert_eq!(streams(&[8, n], &[0], 64), 0, "{n} columns that the caches of all threads hold");
        assert_eq!(streams(&[n, 16], &[1], 1 << 14), 0, "{n} short rows by the executor");
    }
    assert_eq!(streams(&[1 << 14, 1 << 10], &[1], 64), 0, "few results");
}

#[test]
fn pages_are_walked_side_by_side_where_the_machine_reads_them_so() {
    let first_split = |shape: &[i64], axes: &[i64], pages: u32| {
        let text = trace_of(shape, axes, 64, pages);
        text.lines().find(|line| line.contains("split(k0")).unwrap_or_default().to_owned()
    };
    // Rows of 64 KiB: blocks of so many pages, or vectors front to back.
    assert!(first_split(&[1 << 10, 1 << 14], &[1], 4).ends_with("split(k0, factor=4096)"));
    assert!(first_split(&[1 << 10, 1 << 14], &[1], 1).ends_with("split(k0, factor=64)"));
    // Short rows: one loop more over the pages of a group of blocks.
    let splits = |pages| trace_of(&[1 << 20, 16], &[1], 64, pages).matches("split(i0").count();
    assert_eq!([splits(4), splits(1)], [3, 1]);
    // Narrow columns: rows a page apart in one visit.
    let apart = |pages| trace_of(&[1 << 20, 32], &[0], 64, pages).matches("split(k0").count();
    assert_eq!([apart(4), apart(1)], [3, 2]);
}

#[test]
fn long_rows_of_reducers_that_settle_are_asked_every_few_pages() {
    let request = ReducerRequest::new(&[DType::F32]);
    let of = |op: &str, shape: &[i64], vector_bytes: u32, pages: u32| {
        let axes = [shape.len() as i64 - 1];
        let sketch = planned_for(&request, op, shape, &axes, &cpu(vector_bytes, pages)).1;
        (sketch.early_exit.every, sketch.early_exit.rounds)
    };
    let rows = [1 << 10, 1 << 14];
    assert_eq!(of("any", &rows, 64, 1), (32, 1), "8 KiB of blocks of 256 bytes");
    assert_eq!(of("any", &rows, 64, 4), (1, 1), "blocks of four pages");
    assert_eq!(
        [of("sum", &rows, 64, 1), of("any", &rows, 1 << 14, 1)],
        [(0, 1); 2],
        "a sum, and the executor"
    );
    // Flags from 4 KiB on, after their first elements.
    assert_eq!([1 << 13, 1 << 10, (1 << 10) - 1].map(|n| of("all", &[64, n], 64, 1).0), [32, 32, 0]);
    // One output: rounds of 8 MiB, and at most 64 of them.
    let rounds = |n: i64| of("any", &[n], 64, 1).1;
    assert_eq!([rounds(1 << 21), rounds(1 << 22), rounds((1 << 24) - 1), rounds(1 << 34)], [1, 2, 4, 64]);
    assert_eq!(of("any", &[2, 1 << 22], 64, 1).1, 1, "rows wait for each other");
}

#[test]
fn long_rows_that_begin_anywhere_are_split_behind_their_first_boundaries() {
    let cuda = Target::cuda("sm_90a").unwrap();
    let peeled = |dtype: DType, shape: &[i64], start: i64| {
        let request = ReducerRequest::new(&[dtype]);
        let (spec, ..) = planned_for(&request, "sum", shape, &[shape.len() as i64 - 1], &cuda);
        let sketch = choose(&spec.with_offsets(&[start]), &cuda).unwrap().sketch;
        assert!(sketch.chunks.n > 1, "{shape:?}");
        (sketch.peeled, sketch.lanes)
    };
    assert_eq!(peeled(DType::I8, &[1 << 28], 5), (true, 16));
    assert_eq!(peeled(DType::I8, &[1 << 28], 16), (false, 16));
    assert_eq!(peeled(DType::BF16, &[7, (1 << 22) + 1], 0), (true, 8));
    assert_eq!(peeled(DType::F32, &[1 << 26], 1), (false, 1), "accesses of four bytes");
}

#[test]
fn elements_that_may_end_a_call_with_an_error_are_all_looked_at() {
    let int = DType::I32;
    let input = ArrayInfo { dtype: int, shape: vec![1 << 20], strides: vec![1] };
    let asks = |by: fn(Expr) -> Expr| {
        let x = coulis_ir::Var::new("x", int);
        let values = coulis_ir::Lambda { body: vec![Expr::int(12).floordiv(by(x.expr()))], params: vec![x] };
        let request = ReducerRequest::new(&[int]);
        let reducer = coulis_reducers::find("any").unwrap().build(&request).unwrap().of_mapped(&values);
        let problem = problem_of(&input, &[0]);
        let outputs = vec![OutputSpec::plain(DType::Bool)];
        let spec = Spec::new(problem, vec![int], false, reducer, outputs, None);
        choose(&spec, &cpu(64, 1)).unwrap().sketch.early_exit.every
    };
    assert!(asks(|_| Expr::int(5)) > 0);
    assert_eq!(asks(|x| x), 0, "an element may be zero");
}

#[test]
fn short_rows_fold_to_a_vector_where_they_hold_several_whole_ones() {
    for (extent, folds) in [(4, false), (7, false), (8, true), (15, true), (16, true), (20, true), (32, true)]
    {
        let folded = |vector_bytes| trace(&[1 << 20, extent], &[1], vector_bytes).contains("rfactor");
        assert_eq!(folded(64), folds, "{extent}");
        assert_eq!(
            folded(32),
            extent >= 8,
            "{extent} by half as many lanes, of which there are to be two vectors"
        );
        assert!(!folded(1 << 14), "{extent} by the executor");
    }
}

#[test]
fn lanes_of_short_rows_are_folded_in_pairs_where_one_instruction_takes_every_other_of_two_vectors() {
    let in_pairs = |op: &str, dtype: DType, target: &Target| {
        let request = ReducerRequest::new(&[dtype]).with_length(32).with_few(32);
        planned_for(&request, op, &[1 << 20, 32], &[1], target).1.head.in_pairs
    };
    let by_halves = Target { halves_vectors: true, ..cpu(64, 1) };
    for (op, dtype, folds) in [
        ("sum", DType::F32, true),
        ("sum", DType::BF16, true),
        ("mean", DType::I8, true),
        ("max", DType::F16, true),
        ("max", DType::I8, false),
        ("var", DType::F32, false),
    ] {
        assert_eq!(in_pairs(op, dtype, &cpu(64, 1)), folds, "{op} of {dtype}");
        assert!(!in_pairs(op, dtype, &cpu(32, 1)) && !in_pairs(op, dtype, &by_halves), "{op} of {dtype}");
    }
}

#[test]
fn rows_too_long_to_be_written_out_come_into_lanes_by_tiles_where_that_is_less_than_to_fold_fields() {
    let tiled = |op: &str, extent: i64| {
        let (_, sketch, strategy) = planned(op, &[1 << 20, extent], &[1], &cpu(64, 1));
        (strategy.name, sketch.head.length, sketch.head.lanes == 1)
    };
    assert_eq!(tiled("var", 40), ("short_rows", 0, true), "whole tiles");
    assert_eq!(tiled("var", 49), ("short_rows", 48, true), "and an element behind them");
    assert_eq!(tiled("var", 32), ("short_rows", 0, true), "written out");
    assert_eq!(tiled("sum", 49), ("short_rows", 48, false), "one field: by vectors along the row");
    assert!(!tiled("var", 200).2, "so long that fields are the lesser part");
}

#[test]
fn short_rows_in_memory_are_read_from_several_pages_where_these_make_up_all_rows() {
    let pages = |rows: i64, extent: i64| {
        let text = trace(&[rows, extent], &[1], 64);
        text.contains("split(i0_outer, factor=")
    };
    assert!(pages(1 << 20, 16) && pages(1 << 20, 8));
    assert!(!pages((1 << 20) + 16, 16), "a rest");
    assert!(!pages(1 << 20, 12), "rows that make up no page");
    assert!(!pages(1 << 8, 16), "an input in the caches");
}

#[test]
fn rows_side_by_side_ask_for_what_lies_behind_all_of_them() {
    let ahead = |columns: i64| {
        let sketch = planned("logsumexp", &[1 << 14, columns], &[1], &cpu(64, 1)).1;
        (sketch.joined, sketch.ahead.steps, sketch.ahead.bytes)
    };
    assert_eq!(ahead(512), (2, 0, 8 << 10), "two pages");
    assert_eq!(ahead(4096), (2, 0, 32 << 10), "two rows");
    assert_eq!(ahead(1 << 15), (1, 64, 0), "a row by itself");
}

#[test]
fn rows_that_lie_apart_are_folded_in_the_order_of_memory() {
    let of = |shape: &[i64], axes: &[i64]| {
        let (_, sketch, strategy) = planned("var", shape, axes, &cpu(64, 1));
        (strategy.name, sketch.tile.width, sketch.chunks.n, sketch.of_rows.map(|rows| rows.are_short))
    };
    let apart = |tile: i64, chunks: i64, are_short: bool| ("rows_apart", tile, chunks, Some(are_short));
    assert_eq!(of(&[257, 1024, 196], &[0, 2]), apart(512, 1, true), "a tile a thread, any number of images");
    assert_eq!(of(&[256, 1024, 784], &[0, 2]), apart(512, 1, false), "rows that are not short");
    let odd = "an odd number of vectors: parts of images";
    assert_eq!(of(&[250, 336, 784], &[0, 2]), apart(336, 10, false), "{odd}");
    assert_eq!(of(&[251, 336, 784], &[0, 2]), apart(336, 16, false), "{odd}, not all of one length");
    let follow = "few short rows, behind which the next ones lie";
    assert_eq!(of(&[1 << 18, 16, 16], &[0, 2]), apart(16, 16, true), "{follow}");
    assert_eq!(of(&[1 << 12, 120, 49], &[0, 2]), apart(120, 16, true), "{follow}, half as many lanes");
    assert_eq!(of(&[256, 1000, 784], &[0, 2]), apart(1000, 16, false), "eight lanes for all outputs");
    assert_eq!(of(&[4, 250, 336, 784], &[1, 3]).0, "rows", "a kept dimension around images");
    for (shape, why) in [
        ([256, 1002, 784], "a number of outputs that 4 does not divide"),
        ([256, 8, 784], "fewer outputs than lanes"),
        ([16, 512, 1 << 15], "rows that are long by themselves"),
        ([8, 64, 784], "a cache holds the elements"),
    ] {
        assert_ne!(of(&shape, &[0, 2]).0, "rows_apart", "{why}");
    }
}

#[test]
fn rows_that_lie_apart_have_a_plan_on_every_machine() {
    for (vector_bytes, pages) in [(16, 1), (32, 1), (64, 1), (32, 4), (64, 4)] {
        for length in [7, 49, 196, 1000, 4096] {
            for op in ["sum", "var", "logsumexp"] {
                for (images, channels) in [(1 << 12, 64), (63, 2048)] {
                    let target = cpu(vector_bytes, pages);
                    let shape = [images, channels, length];
                    let (spec, sketch, strategy) = planned(op, &shape, &[0, 2], &target);
                    let planned = schedule(&spec, strategy, &sketch)
                        .unwrap_or_else(|error| panic!("{op} of {shape:?} by {}: {error}", strategy.name));
                    build_nest(&planned.schedule, planned.schedule.program().args(), "reduce").unwrap();
                }
            }
        }
    }
}
