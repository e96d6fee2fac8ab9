//! Plans as text: what is printed runs again to the same bits, and an edited plan still gives right results.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
#[path = "common/normalizations.rs"]
mod meaning;

use std::collections::BTreeMap;

use common::{Special, array, check, executed, numbers};
use coulis::reduce::{array_info, kernel, plan, prepare, run};
use coulis::text::{compile_one, emit_cuda, print_kernel};
use coulis::{
    Arguments, Array, CompileOptions, DType, DeviceChoice, Normalize, Request, TargetChoice, Value,
};

/// What a call is of.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    /// Statistics of floats.
    Floats,
    /// Those of bools that settle early.
    Bools,
    /// Softmax, which takes two folds.
    Softmax,
}

/// A call for each strategy of the catalogue: shape, axes, and what it is of.
const CALLS: &[(&str, &[i64], &[i64], Of)] = &[
    ("near_rows", &[300, 128], &[1], Of::Softmax),
    // No cache holds it.
    ("rows_apart", &[64, 64, 512], &[0, 2], Of::Floats),
    ("short_rows", &[3000, 6], &[1], Of::Floats),
    ("settled_rows", &[100, 5000], &[1], Of::Bools),
    // Runs by any vectors make it up: a cut, whose length counts vectors, would not follow their number.
    ("rows", &[9, 4096], &[1], Of::Floats),
    ("short_columns", &[9000, 3, 2], &[1], Of::Floats),
    ("interleaved", &[5000, 3], &[0], Of::Floats),
    ("near_columns", &[9, 24, 1024], &[1], Of::Softmax),
    ("columns", &[700, 600], &[0], Of::Floats),
    ("scalar", &[5], &[0], Of::Floats),
];

const OPS: [&str; 4] = ["sum", "var", "max", "argmin"];

/// The request of a call: these statistics, those of them that bools settle, or softmax.
fn request(of: Of, ops: &[&str], axes: &[i64]) -> Request {
    let settle: Vec<&str> =
        ops.iter().copied().filter(|op| op.contains("max") || op.contains("min")).collect();
    match of {
        Of::Floats => executed(ops, axes),
        Of::Bools => executed(&settle, axes),
        Of::Softmax => {
            let softmax = Request::normalizing(Normalize::named("softmax").unwrap()).over(axes);
            Request { device: executed(ops, axes).device, ..softmax }
        }
    }
}

/// The input of a call. Rows of bools begin with up to 1500 that are false.
fn input(of: Of, shape: &[i64], seed: u64) -> coulis::Array {
    let n = shape.iter().product::<i64>() as usize;
    let drawn = numbers(n, Special::Zeros, seed);
    if of != Of::Bools {
        return array(DType::F32, shape, &drawn);
    }
    let length = shape[shape.len() - 1] as usize;
    let flag = |(at, v): (usize, &f64)| f64::from(at % length >= at / length * 37 % 1500 && *v > 0.5);
    array(DType::Bool, shape, &drawn.iter().enumerate().map(flag).collect::<Vec<f64>>())
}

fn bytes(request: &Request, input: &coulis::Array) -> Vec<Vec<u8>> {
    let outcome = run(std::slice::from_ref(input), request).unwrap();
    outcome.results.iter().map(|r| r.array.as_bytes().unwrap().to_vec()).collect()
}

#[test]
fn a_printed_plan_runs_again_to_the_same_bits() {
    for (name, shape, axes, of) in CALLS {
        let input = input(*of, shape, 17);
        let request = request(*of, &OPS, axes);
        let planned = plan(&[array_info(&input)], &request).unwrap();
        assert_eq!(planned.name, *name, "{shape:?}\n{}", planned.reasons.join("\n"));
        let replayed = Request { plan: Some(planned.trace.clone()), ..request.clone() };
        let again = plan(&[array_info(&input)], &replayed).unwrap();
        assert_eq!(again.trace, planned.trace, "{name}");
        assert_eq!(bytes(&request, &input), bytes(&replayed, &input), "{name}\n{}", planned.trace);
    }
}

#[test]
fn a_printed_kernel_runs_to_the_bits_of_the_reduction() {
    for (name, shape, axes, of) in CALLS {
        let input = input(*of, shape, 17);
        let infos = [array_info(&input)];
        let here = request(*of, &["sum", "argmin"], axes);
        let (printed, _) = kernel(&infos, &here).unwrap();
        let options = CompileOptions { device: here.device.clone(), ..CompileOptions::default() };
        let function = compile_one(&print_kernel(&printed), &options).unwrap();
        let values = BTreeMap::from([("A".to_owned(), Value::from(&input))]);
        let called = function.call_named(&Arguments { values, random: None }).unwrap();
        let results = called.buffers.iter().filter(|buffer| buffer.name != "A");
        // Results of columns have their dimensions in another order than memory has.
        let in_memory = |array: &coulis::Array| {
            let (bytes, first) = array.storage();
            bytes[first..][..array.len() * array.dtype().bytes()].to_vec()
        };
        let found: Vec<Vec<u8>> = results.map(|result| in_memory(&result.array)).collect();
        assert_eq!(found, bytes(&here, &input), "{name}");
        // For a machine that is not here, where it is text of blocks of threads.
        let there = Request { device: DeviceChoice::Elsewhere { arch: "sm_90a".to_owned() }, ..here };
        let (printed, target) = kernel(&infos, &there).unwrap();
        assert_eq!(target.arch, "sm_90a");
        let choice = TargetChoice::Cuda { arch: Some(target.arch) };
        let cuda = emit_cuda(&print_kernel(&printed), &choice).unwrap();
        assert!(cuda.contains("reduce_kernel"), "{name}: {cuda}");
        let refused = prepare(&infos, &there).err().unwrap().to_string();
        assert!(refused.contains("was made for sm_90a"), "{refused}");
    }
}

#[test]
fn the_calls_hold_every_strategy() {
    let names: Vec<&str> = CALLS.iter().map(|c| c.0).collect();
    let of_loops = |s: &&&coulis_plan::Strategy| s.machine == coulis_plan::Machine::Loops;
    let all: Vec<&str> = coulis_plan::STRATEGIES.iter().filter(of_loops).map(|s| s.name).collect();
    assert_eq!(names, all);
}

/// The trace with every factor of at least 4 changed.
fn edited(trace: &str, change: fn(i64) -> i64) -> String {
    let mut text = String::new();
    let mut rest = trace;
    while let Some(at) = rest.find("factor=") {
        let (before, after) = rest.split_at(at + "factor=".len());
        let digits = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        text += before;
        let factor: i64 = after[..digits].parse().unwrap();
        text += &if factor >= 4 { change(factor) } else { factor }.to_string();
        rest = &after[digits..];
    }
    text + rest
}

#[test]
fn an_edited_plan_gives_right_results() {
    for (name, shape, axes, of) in CALLS {
        let input = input(*of, shape, 18);
        let request = request(*of, &["sum", "max", "argmax"], axes);
        let trace = plan(&[array_info(&input)], &request).unwrap().trace;
        let changes: [fn(i64) -> i64; 2] = [|f| f / 2, |f| f + f / 4];
        for change in changes {
            let other = edited(&trace, change);
            assert_eq!(trace == other, *name == "scalar", "{name}:\n{trace}");
            let request = Request { plan: Some(other.clone()), ..request.clone() };
            if *of == Of::Softmax {
                let axes: Vec<usize> = axes.iter().map(|axis| *axis as usize).collect();
                let case =
                    meaning::Case { plan: Some(other.clone()), ..meaning::Case::new("softmax", &axes) };
                case.check(&input, &request.device).unwrap();
                continue;
            }
            check(std::slice::from_ref(&input), &request)
                .unwrap_or_else(|why| panic!("{name}: {why}\n{other}"));
        }
    }
}

#[test]
fn a_plan_of_another_shape_is_refused_with_the_step_that_does_not_fit() {
    let request = executed(&["sum"], &[1]);
    let of = |shape: &[i64]| {
        let n = shape.iter().product::<i64>() as usize;
        array(DType::F32, shape, &numbers(n, Special::Zeros, 17))
    };
    let trace = plan(&[array_info(&of(&[64, 64]))], &request).unwrap().trace;
    let replayed = Request { plan: Some(trace), axes: None, ..request };
    let error = run(&[of(&[100_000])], &replayed).unwrap_err().to_string();
    assert!(
        error.starts_with("error[plan]: step ") && error.contains("of the plan does not fit this call"),
        "{error}"
    );
}

/// A plan of one layout runs on another and is right there, or is refused as a plan.
#[test]
fn a_plan_of_another_layout_is_right_or_does_not_fit() {
    let memory = array(DType::F32, &[4 * 6 * 5], &numbers(120, Special::Zeros, 17));
    let views = [[30, 5, 1], [1, 4, 24], [5, 20, 1], [0, 5, 1], [1, 0, 4]];
    let views = views.map(|strides| memory.view(&[4, 6, 5], &strides, 0).unwrap());
    let mut misfits = 0;
    for axis in [0, 1, 2] {
        let request = executed(&["sum"], &[axis]);
        for made_for in &views {
            let trace = plan(&[array_info(made_for)], &request).unwrap().trace;
            for view in &views {
                let replayed = Request { plan: Some(trace.clone()), ..request.clone() };
                if let Err(error) = prepare(&[array_info(view)], &replayed) {
                    assert!(error.code == "plan" && error.message.contains("fit this call"), "{error}");
                    misfits += 1;
                    continue;
                }
                check(std::slice::from_ref(view), &replayed).unwrap();
            }
        }
    }
    println!("{misfits} of 75 do not fit");
}

#[test]
fn a_trace_that_stores_only_some_results_is_refused() {
    let input = array(DType::F32, &[9, 5000], &numbers(45_000, Special::Zeros, 17));
    let request = executed(&["max"], &[1]);
    let trace = plan(&[array_info(&input)], &request).unwrap().trace;
    let output = trace.split("s[").nth(1).and_then(|rest| rest.split(']').next()).unwrap();
    let restricted = format!("{}\ns[{output}].set_store_predicate(ax0 == 0)\n", trace.trim_end());
    let replayed = Request { plan: Some(restricted), ..request };
    let error = run(&[input], &replayed).unwrap_err().to_string();
    assert!(error.contains("the trace stores only some results of"), "{error}");
}

#[test]
fn a_plan_whose_rows_are_parted_among_threads_of_one_block_gives_right_results() {
    // A planner's trace with the blocks made threads: one result, counted in int64, by threads that int32 counts.
    let trace = "k0_outer, k0_inner = s[S].split(k0, factor=4)
k0_outer_outer, k0_outer_inner = s[S].split(k0_outer, factor=32)
S_rf = s.rfactor(S, k0_outer_inner)
k0_outer_outer_outer, k0_outer_outer_inner = s[S_rf].split(k0_outer_outer, factor=2)
s[S_rf].unroll(k0_inner)
s[S].bind(k0_outer_inner_v, \"threadIdx.x\")
s[S_rf].compute_at(s[S], k0_outer_inner_v)
A_local = s.cache_read(A, \"local\", [S_rf])
s[A_local].compute_at(s[S_rf], k0_outer_outer_inner)
W_local = s.cache_read(W, \"local\", [S_rf])
s[W_local].compute_at(s[S_rf], k0_outer_outer_inner)
singleton = s[O].fuse()
singleton_outer, singleton_inner = s[O].split(singleton, factor=8)
s[O].bind(singleton_outer, \"threadIdx.x\")
s[S].compute_at(s[O], singleton_inner)
";
    let values: Vec<i32> = (0..320).collect();
    let taken: Vec<u8> = values.iter().map(|v| u8::from(v % 3 == 0)).collect();
    let input = Array::from_slice(&[320], &values).unwrap();
    let request = Request {
        where_: Some(Array::from_bytes(DType::Bool, &[320], &taken).unwrap()),
        plan: Some(trace.to_owned()),
        device: DeviceChoice::Sim { warp: 32, orders: 1 },
        ..Request::new(&["sum"])
    };
    let found = run(&[input], &request).unwrap();
    let sum: i32 = values.iter().filter(|v| *v % 3 == 0).sum();
    assert_eq!(found.results[0].array.scalars().next().unwrap().to_f64(), f64::from(sum));
}
