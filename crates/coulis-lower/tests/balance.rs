//! Sums of loops that mostly add, given to the multipliers of a machine that has those beside its adders.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::cpu;
use coulis_ir::print::print_kernel;
use coulis_ir::verify::verify;
use coulis_ir::{Form, Kernel, Target};
use coulis_lower::{Options, PASSES};
use coulis_script::parse_module;

/// A loop over vectors of `dtype` that adds to `s` and steps `q`, both of type `state`.
fn kernel(dtype: &str, state: &str, steps: [&str; 2]) -> Kernel {
    let [sum, other] = steps;
    let text = format!(
        "@T.prim_func
def main(A: T.Buffer((512,), \"{dtype}\"), O: T.Buffer((16,), \"{state}\")):
    s = T.allocate([16], \"{state}\", \"local\")
    q = T.allocate([16], \"{state}\", \"local\")
    s[0:16] = T.Broadcast(T.{state}(0), 16)
    q[0:16] = T.Broadcast(T.{state}(0), 16)
    for k in range(32):
        s[0:16] = {sum}
        q[0:16] = {other}
    O[0:16] = s[0:16] + q[0:16]
"
    );
    let kernel = parse_module(&text).unwrap_or_else(|error| panic!("{error}\n{text}")).remove(0);
    assert_eq!(kernel.form, Form::Flat);
    kernel
}

fn balanced(kernel: Kernel, target: &Target) -> Kernel {
    let pass = PASSES.iter().find(|p| p.name == "balance_adders").unwrap();
    (pass.run)(kernel, &Options { target, simple_mode: false }).unwrap()
}

/// The line that adds to `s` after the pass, which leaves a kernel that the verifier accepts.
#[track_caller]
fn sum_line(kernel: Kernel, target: &Target) -> String {
    let kernel = balanced(kernel, target);
    let text = print_kernel(&kernel);
    verify(kernel).unwrap_or_else(|faults| panic!("{}", faults.listing));
    let line = text.lines().skip_while(|l| !l.contains("for k in")).find(|l| l.contains("s[0:16] = "));
    line.unwrap().trim().to_owned()
}

fn zen() -> Target {
    Target { separate_adders: true, ..cpu() }
}

/// A vector of the array in the type of the states.
const WIDE: &str = "T.Cast(\"float64x16\", A[k * 16:k * 16 + 16])";

#[test]
fn a_sum_beside_conversions_and_differences_is_moved() {
    let sum = format!("s[0:16] + {WIDE}");
    let shifted = format!("{WIDE} - T.Broadcast(T.float64(1), 16)");
    let kernel = kernel("float32", "float64", [&sum, &format!("T.fma({shifted}, {shifted}, q[0:16])")]);
    let moved = format!("s[0:16] = T.fma({WIDE}, T.Broadcast(T.float64(1), 16), s[0:16])");
    assert_eq!(sum_line(kernel.clone(), &zen()), moved);
    assert_eq!(sum_line(kernel, &cpu()), format!("s[0:16] = {sum}"));
}

#[test]
fn a_sum_stays_where_adders_are_not_the_busier_or_do_nothing_else() {
    let (whole, half) = ("A[k * 16:k * 16 + 16]", "T.Cast(\"float32x16\", A[k * 16:k * 16 + 16])");
    let cases = [
        // Memory limits a sum, whose minimum takes the multipliers.
        ("float64", "float64", whole, format!("T.min({whole}, q[0:16])")),
        // The squares of halves are exact and added by the multipliers.
        ("float16", "float32", half, format!("q[0:16] + {half} * {half}")),
        ("float64", "float64", whole, format!("T.exp({whole}) - (q[0:16] - {whole})")),
    ];
    for (dtype, state, x, other) in cases {
        let before = kernel(dtype, state, [&format!("s[0:16] + {x}"), &other]);
        let text = print_kernel(&before);
        assert_eq!(print_kernel(&balanced(before, &zen())), text);
    }
}

#[test]
fn what_stands_beside_a_loop_in_a_loop_stays() {
    // Of the same steps in both, those of the inner loop are most of the time.
    let steps = format!("s[0:16] = s[0:16] + {WIDE}");
    let shift = format!("q[0:16] = {WIDE} - T.Broadcast(T.float64(1), 16)");
    let text = format!(
        "@T.prim_func
def main(A: T.Buffer((512,), \"float32\"), O: T.Buffer((16,), \"float64\")):
    s = T.allocate([16], \"float64\", \"local\")
    q = T.allocate([16], \"float64\", \"local\")
    s[0:16] = T.Broadcast(T.float64(0), 16)
    for k in range(32):
        {steps}
        {shift}
        for j in range(8):
            {steps}
            {shift}
    O[0:16] = s[0:16] + q[0:16]
"
    );
    let kernel = parse_module(&text).unwrap_or_else(|error| panic!("{error}\n{text}")).remove(0);
    let got = print_kernel(&balanced(kernel, &zen()));
    let (outer, inner) = got.split_once("for j in").unwrap();
    assert!(!outer.contains("T.fma(") && inner.contains("T.fma("), "{got}");
}
