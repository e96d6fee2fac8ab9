//! T-P6: int64 indices become int32 where the machine has threads and all that is computed from them is shown to fit.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::cpu;
use coulis_ir::print::print_kernel;
use coulis_ir::verify::verify;
use coulis_ir::{Form, Target};
use coulis_lower::{Options, PASSES};
use coulis_script::parse_module;

/// The kernel after the pass, for a GPU.
fn narrowed(text: &str, target: &Target) -> String {
    let kernel = parse_module(text).unwrap_or_else(|error| panic!("{error}\n{text}")).remove(0);
    assert_eq!(kernel.form, Form::Flat);
    let pass = PASSES.iter().find(|p| p.name == "narrow_index_types").unwrap();
    let kernel = (pass.run)(kernel, &Options { target, simple_mode: false }).unwrap();
    let text = print_kernel(&kernel);
    verify(kernel).unwrap_or_else(|faults| panic!("{}", faults.listing));
    text
}

/// A sum of that many elements a thread, of 64 threads; `size` declares what the extent is made of.
fn sum_of(extent: &str, index: &str) -> String {
    format!(
        "@T.prim_func
def main(A_ptr: T.handle, B: T.Buffer((64,), \"float32\"), P: T.Buffer((64,), \"int64\")):
    n = T.int64(is_size_var=True)
    A = T.match_buffer(A_ptr, (n,), \"float32\")
    tx = T.launch_thread(\"threadIdx.x\", T.int64(64))
    B[tx] = T.float32(0)
    for k in range({extent}):
        B[tx] = B[tx] + A[{index}]
    P[tx] = tx * T.int64(2)
"
    )
}

#[test]
fn te_p6_loops_of_a_sum_have_the_type_that_is_proven() {
    let gpu = Target::cuda("sm_90a").unwrap();
    // Extent, index, whether `k` and `tx` are then int32.
    let cases = [
        ("T.int64(64)", "tx * T.int64(64) + k", true, true),
        ("T.int64(65536)", "k", true, true),
        ("T.int64(65536)", "tx * T.int64(65536) + k", true, true),
        ("T.int64(65536)", "k * T.int64(65536) + tx", false, false),
        ("T.int64(2147483647)", "k", true, true),
        ("T.int64(2147483648)", "k", false, true),
        ("n", "k", false, true),
        ("n", "tx * n + k", false, false),
    ];
    for (extent, index, loop_is_narrow, thread_is_narrow) in cases {
        let text = narrowed(&sum_of(extent, index), &gpu);
        let wide_loop = text.contains("for k in range(T.int64(") || text.contains("for k in range(n)");
        let wide_thread = text.contains("T.launch_thread(\"threadIdx.x\", T.int64(64))");
        assert_eq!(
            (!wide_loop, !wide_thread),
            (loop_is_narrow, thread_is_narrow),
            "{extent} {index}\n{text}"
        );
        // What is stored keeps its type.
        let stored = if thread_is_narrow { "T.Cast(\"int64\", tx * 2)" } else { "tx * T.int64(2)" };
        assert!(text.contains(&format!("P[tx] = {stored}")), "{text}");
    }
}

#[test]
fn te_p6_a_cpu_keeps_its_64_bits() {
    let text = sum_of("T.int64(64)", "tx * T.int64(64) + k");
    let before = print_kernel(&parse_module(&text).unwrap()[0]);
    assert_eq!(narrowed(&text, &cpu()), before);
}

#[test]
fn a_value_in_memory_keeps_what_it_is_compared_with_in_64_bits() {
    let gpu = Target::cuda("sm_90a").unwrap();
    let text = "@T.prim_func
def main(A: T.Buffer((64,), \"float32\"), L: T.Buffer((1,), \"int64\")):
    tx = T.launch_thread(\"threadIdx.x\", T.int64(64))
    for k in range(T.int64(8)):
        if tx < L[T.int64(0)]:
            A[tx] = A[k]
";
    let found = narrowed(text, &gpu);
    assert!(found.contains("for k in range(8):") && found.contains("T.int64(64)"), "{found}");
}
