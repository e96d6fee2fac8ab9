//! Any text is kernels or an error, and what is read prints as text that is read as the same kernels.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _ = coulis_script::parse_calls(text);
    let Ok(kernels) = coulis_script::parse_module(text) else { return };
    for kernel in kernels {
        let printed = coulis_ir::print::print_kernel(&kernel);
        let again = coulis_script::parse_module(&printed);
        assert!(again.is_ok_and(|again| again.len() == 1 && coulis_ir::print::print_kernel(&again[0]) == printed));
    }
});
