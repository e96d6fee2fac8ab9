//! Extrema of 16-bit floats, found two at a time on a machine that has operations for that.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::cpu;
use coulis_ir::print::print_kernel;
use coulis_ir::verify::verify;
use coulis_ir::{Form, Kernel, Target};
use coulis_lower::{Options, PASSES};
use coulis_script::parse_module;

/// What another statistic does at each step.
const OTHER: &str = "q[0] = q[0] + T.float32(1)";

/// A thread that reads 8 elements of its own, and ends with these lines, behind each of which another statistic does something.
fn kernel(dtype: &str, lines: &[String]) -> Kernel {
    let lines: Vec<&str> = lines.iter().flat_map(|line| [line, OTHER]).collect();
    kernel_of(dtype, &lines)
}

/// The same of these lines alone.
fn kernel_of(dtype: &str, lines: &[&str]) -> Kernel {
    let text = format!(
        "@T.prim_func
def main(A: T.Buffer((256,), \"{dtype}\"), O: T.Buffer((32,), \"float32\")):
    with T.launch_thread(\"threadIdx.x\", 32) as threadIdx_x:
        a = T.allocate([8], \"{dtype}\", \"local\")
        s = T.allocate([8], \"float32\", \"local\")
        q = T.allocate([1], \"float32\", \"local\")
        a[0:8] = A[threadIdx_x * 8:threadIdx_x * 8 + 8]
        {}
        O[threadIdx_x] = s[0]
",
        lines.join("\n        ")
    );
    let kernel = parse_module(&text).unwrap_or_else(|error| panic!("{error}\n{text}")).remove(0);
    assert_eq!(kernel.form, Form::Flat);
    kernel
}

/// The lines between the load of the elements and the store of the result, after the pass, but for those of the other statistic.
#[track_caller]
fn paired(dtype: &str, lines: &[String], target: &Target) -> Vec<String> {
    lines_after(kernel(dtype, lines), target).into_iter().filter(|line| line != OTHER).collect()
}

#[track_caller]
fn lines_after(kernel: Kernel, target: &Target) -> Vec<String> {
    let pass = PASSES.iter().find(|p| p.name == "pair_extrema").unwrap();
    let kernel = (pass.run)(kernel, &Options { target, simple_mode: false }).unwrap();
    let text = print_kernel(&kernel);
    verify(kernel).unwrap_or_else(|faults| panic!("{}", faults.listing));
    let body = text.lines().map(str::trim).skip_while(|l| !l.starts_with("a[0:8] = ")).skip(1);
    let mut lines: Vec<String> = body.map(str::to_owned).collect();
    assert_eq!(lines.pop().unwrap(), "O[threadIdx_x] = s[0]");
    lines
}

fn gpu() -> Target {
    Target::cuda("sm_90a").unwrap()
}

/// Steps over those elements, the first of which starts the state.
fn steps(of: &str, elements: impl IntoIterator<Item = usize>) -> Vec<String> {
    let widened = |k: usize| format!("T.Cast(\"float32\", a[{k}])");
    let line = |(nth, k)| match nth {
        0 => format!("s[0] = {}", widened(k)),
        _ => format!("s[0] = T.{of}(s[0], {0}, {0})", widened(k)),
    };
    elements.into_iter().enumerate().map(line).collect()
}

#[test]
fn neighbours_are_taken_two_at_a_time() {
    for (dtype, of) in [("bfloat16", "min3"), ("float16", "max3")] {
        let pair = |at: usize| format!("a[T.int64({at}):T.int64({})]", at + 2);
        let now = "s_pair[T.int64(0):T.int64(2)]";
        let half = |at: usize| format!("T.Cast(\"float32\", s_pair[T.int64({at})])");
        let step = |at: usize| format!("{now} = T.{of}({now}, {0}, {0})", pair(at));
        let wanted = [
            format!("{now} = {}", pair(0)),
            step(2),
            step(4),
            step(6),
            format!("s[0] = T.{of}({0}, {1}, {1})", half(0), half(1)),
        ];
        assert_eq!(paired(dtype, &steps(of, 0..8), &gpu()), wanted);
    }
}

#[test]
fn a_state_that_has_elements_takes_the_pairs_at_the_end() {
    let lines = [vec!["s[0] = T.float32(0)".to_owned()], steps("max3", 0..9).split_off(1)].concat();
    // Elements 1 to 8 of memory that has one more: pairs begin at even places.
    let lines: Vec<String> = lines.iter().map(|l| l.replace("a[8]", "a[0]")).collect();
    assert_eq!(paired("bfloat16", &lines, &gpu()), lines);
    let lines: Vec<String> =
        [vec!["s[0] = T.float32(0)".to_owned()], steps("max3", [1].into_iter().chain(0..8)).split_off(1)]
            .concat();
    let found = paired("bfloat16", &lines, &gpu());
    assert_eq!(found.len(), 6, "{found:?}");
    assert!(found[5].starts_with("s[0] = T.max3(s[0], T.max3(T.Cast"), "{}", found[5]);
}

#[test]
fn lanes_of_a_vector_stay_lanes() {
    let widened = "T.Cast(\"float32x2\", A[threadIdx_x * 8 + {}:threadIdx_x * 8 + {} + 2])";
    let at = |k: usize| widened.replace("{}", &k.to_string());
    let lines: Vec<String> = (0..3)
        .map(|k| match k {
            0 => format!("s[0:2] = {}", at(0)),
            _ => format!("s[0:2] = T.min3(s[0:2], {0}, {0})", at(2 * k)),
        })
        .collect();
    let found = paired("bfloat16", &lines, &gpu());
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(found[1].starts_with("s_pair[0:2] = T.min3(s_pair[0:2], A["), "{}", found[1]);
    assert_eq!(found[3], "s[0:2] = T.Cast(\"float32x2\", s_pair[0:2])");
}

#[test]
fn steps_stay_where_something_stands_between_them_or_they_are_few() {
    let all = || steps("max3", 0..8);
    let with = |at: usize, line: &str| {
        let mut lines = all();
        lines.insert(at, line.to_owned());
        lines
    };
    let cases = [
        // The state is read, or written.
        with(4, "O[threadIdx_x] = s[0]"),
        with(4, "s[0] = T.float32(1)"),
        // The first of a pair is other than when its turn came.
        with(5, "a[4] = T.bfloat16(0)"),
        // Two minima of one state, and too few pairs for it.
        [steps("max3", 0..4), steps("min3", 0..6).split_off(2)].concat(),
        steps("max3", 0..6),
        // Neighbours that share no word of two.
        steps("max3", [1, 2, 3, 4, 5, 6, 7, 0]),
    ];
    for lines in cases {
        assert_eq!(paired("bfloat16", &lines, &gpu()), lines);
    }
    // An extremum alone.
    let alone = all();
    let lines: Vec<&str> = alone.iter().map(String::as_str).collect();
    assert_eq!(lines_after(kernel_of("bfloat16", &lines), &gpu()), alone);
    assert_eq!(paired("bfloat16", &all(), &cpu()), all());
    assert_eq!(paired("bfloat16", &all(), &Target::simulated(64)), all());
}

#[test]
fn what_stands_between_steps_stays_there() {
    let mut lines = steps("max3", 0..8);
    lines.insert(5, "s[1] = T.float32(1)".to_owned());
    // The state's memory is written, if another element of it.
    assert_eq!(paired("float16", &lines, &gpu()), lines);
    let mut lines = steps("max3", 0..8);
    lines.insert(6, "a[0] = T.float16(0)".to_owned());
    let found = paired("float16", &lines, &gpu());
    assert_eq!(found.len(), 6, "{found:?}");
    assert_eq!(found[3], "a[0] = T.float16(0)");
}
