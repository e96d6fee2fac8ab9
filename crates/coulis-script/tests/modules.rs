//! Modules of several functions. Whole files are tests of the facade's file runner.

use coulis_ir::print::print_module;
use coulis_script::parse_module;

#[test]
fn several_functions_keep_their_order() {
    let text = "@I.ir_module\nclass Module:\n    @T.prim_func\n    def main(n: T.int32):\n        pass\n\n    \
                @T.prim_func\n    def again(n: T.int32):\n        pass\n";
    let kernels = parse_module(text).expect("two functions");
    assert_eq!(kernels.iter().map(|k| k.name.as_str()).collect::<Vec<_>>(), ["main", "again"]);
    assert_eq!(print_module(&kernels), text);
}

#[test]
fn calls_nested_in_one_another_are_read_once_each() {
    let (open, close) = ("T.exp(".repeat(100), ")".repeat(100));
    let text = format!(
        "@T.prim_func\ndef main(A: T.Buffer((4,), \"float32\")):\n    A[0] = T.fma({open}A[1]{close}, 2, {open}A[2]{close})\n"
    );
    let kernels = parse_module(&text).expect("a function");
    assert_eq!(kernels.len(), 1);
}
