//! How much work coulis itself does from a call to a text, by counts that are the same on every machine.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::slice::from_ref;

use coulis::bench::{Workload, parse_suite, stages};
use coulis::te::{Schedule, Split, compute, placeholder, reduce_axis, sum, var};
use coulis::{DType, TargetChoice, compile_schedule};
use coulis_ir::simplify::n_steps;

/// Which of the two loops of a split is split again.
#[derive(Clone, Copy, Debug)]
enum Next {
    Outer,
    Inner,
}

/// Steps of analysis for a sum of rows of symbolic length, whose reduce axis is split so many times.
fn steps_of_splits(n_splits: usize, next: Next, by: &dyn Fn(usize) -> Split) -> u64 {
    let (n, m) = (var("n"), var("m"));
    let a = placeholder(&[n.expr(), m.expr()], DType::F32, "A").unwrap();
    let k = reduce_axis(m.expr(), "k");
    let row = |i: &[coulis::te::Var]| sum(a.at([i[0].expr(), k.var().expr()]), from_ref(&k)).unwrap();
    let b = compute(&[n.expr()], "B", row).unwrap();
    let args = [a, b.clone()];
    let mut schedule = Schedule::new(from_ref(&b), &args).unwrap();
    let mut axis = k.clone();
    for at in 0..n_splits {
        let (outer, inner) = schedule.split("B", &axis, by(at)).unwrap();
        axis = match next {
            Next::Outer => outer,
            Next::Inner => inner,
        };
    }
    let target = TargetChoice::Cpu.facts().unwrap();
    let before = n_steps();
    compile_schedule(&schedule, &args, "rows", &target).unwrap();
    n_steps() - before
}

#[test]
fn many_splits_of_an_axis_of_symbolic_length_take_work_in_proportion() {
    let primes = |at: usize| Split::Factor([3, 5, 7, 2][at % 4]);
    let cases: [(Next, &dyn Fn(usize) -> Split); 3] =
        [(Next::Outer, &|_| Split::Factor(2)), (Next::Inner, &primes), (Next::Inner, &|_| Split::Nparts(2))];
    for (next, by) in cases {
        let (few, many) = (steps_of_splits(4, next, by), steps_of_splits(12, next, by));
        assert!(many <= 5 * few, "{next:?}: {few} steps for 4 splits, {many} for 12");
    }
}

/// A workload of the benchmarks.
fn workload(id: &str) -> Workload {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/workloads.json");
    let suite = parse_suite(&std::fs::read_to_string(file).unwrap()).unwrap();
    suite.into_iter().find(|workload| workload.id == id).unwrap()
}

/// Compares with steps of analysis and lines of text as they are now, each with a tenth more as room.
fn check_limits(target: &TargetChoice, limits: &[(&str, u64, u64)]) {
    for (id, steps, lines) in limits {
        check_limit(&workload(id), target, (*steps, *lines));
    }
}

fn check_limit(workload: &Workload, target: &TargetChoice, (steps, lines): (u64, u64)) {
    let found = stages(workload, target).unwrap();
    let n_lines = found.text.lines().count() as u64;
    let within = |found: u64, limit: u64| found <= limit + limit / 10;
    assert!(
        within(found.n_steps(), steps) && within(n_lines, lines),
        "`{}`: {} steps, {n_lines} lines, where {steps} and {lines} are known",
        workload.id,
        found.n_steps()
    );
}

#[test]
fn plans_for_gpus_take_so_many_steps_and_give_so_many_lines() {
    let limits = [
        ("row_sum_f32", 509, 104),
        ("softmax_rows_f32", 1822, 327),
        ("batchnorm_stats_f16", 1694, 724),
        ("nhwc_channel_f16", 1939, 694),
        ("image_stats_f32", 2904, 886),
        ("full_stats_f32", 1948, 886),
    ];
    check_limits(&TargetChoice::Cuda { arch: None }, &limits);
}

#[test]
fn plans_for_cpus_of_sizes_that_are_not_known_take_so_many_steps_and_give_so_many_lines() {
    // What vectors of 64 bytes take where memory is read front to back, or pages side by side, and a fifth as much again.
    let limits = [
        ("full_sum_f32", 6170, 870),
        ("full_argmax_f32", 8230, 1530),
        ("full_stats_f32", 5290, 2040),
        // By vectors of 32 bytes, which take whole lines.
        ("nhwc_channel_f16", 5730, 1200),
        ("short_rows_f32", 1250, 550),
    ];
    check_limits(&TargetChoice::Cpu, &limits);
}

#[test]
fn columns_that_are_no_whole_strips_take_few_steps_and_give_few_lines() {
    // A branch for whole strips, vectors past the last column and whole ones past the cut were 1000 lines more. How strips are cut goes
    // with the machine, so these have a fifth as room, and the first what parts of a fold take.
    let five = r#"["sum", "mean", "var", "min", "max"]"#;
    let limits = [(five, 8280, 1770), (r#"["mean", "var", "argmax", "argmin"]"#, 12_450, 2800)];
    for (ops, steps, lines) in limits {
        let id = format!("{ops} of 5000 columns").replace('"', "");
        let suite = format!(
            r#"{{"workloads": [{{"id": "{id}", "dtype": "float32", "shape": [600, 5000], "axes": [0], "ops": {ops}}}]}}"#
        );
        let workload = parse_suite(&suite).unwrap().remove(0);
        check_limit(&workload, &TargetChoice::Cpu, (steps, lines));
    }
}

#[test]
fn the_last_block_of_short_rows_takes_few_steps_and_gives_few_lines() {
    // Written out, as the others are, it was two thirds of the lines and nine tenths of the time of a C compiler.
    let limits = [
        (33, "float16", r#"["argmax"]"#, 47330, 1960),
        (33, "int8", r#"["argmax"]"#, 2470, 1090),
        (33, "float16", r#"["sum", "mean", "var", "min", "max", "argmax"]"#, 46420, 2260),
    ];
    for (length, dtype, ops, steps, lines) in limits {
        let id = format!("{ops} of rows of {length} {dtype}").replace('"', "");
        let suite = format!(
            r#"{{"workloads": [{{"id": "{id}", "dtype": "{dtype}", "shape": [4194304, {length}], "axes": [1], "ops": {ops}}}]}}"#
        );
        let workload = parse_suite(&suite).unwrap().remove(0);
        check_limit(&workload, &TargetChoice::Cpu, (steps, lines));
    }
}
