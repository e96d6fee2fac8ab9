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
