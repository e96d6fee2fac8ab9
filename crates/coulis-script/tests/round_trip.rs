//! What is printed is read back as the same kernel, and printing that again gives the same text.

mod generate;

use coulis_ir::print::{print_kernel, print_module};
use coulis_ir::{Form, Kernel};
use coulis_script::parse_module;

#[track_caller]
fn check(kernel: &Kernel, seed: u64) {
    let text = print_kernel(kernel);
    let parsed = match parse_module(&text) {
        Ok(parsed) => parsed,
        Err(error) => panic!("seed {seed}: {error}\n{text}"),
    };
    assert_eq!(parsed.len(), 1, "seed {seed}");
    let again = print_kernel(&parsed[0]);
    assert!(again == text, "seed {seed}\n{text}\n--- printed again:\n{again}");
    assert!(parsed[0] == *kernel, "seed {seed}: another kernel\n{text}\n{kernel:?}\n---\n{:?}", parsed[0]);
}

fn check_seeds(seeds: std::ops::Range<u64>) {
    let mut forms = [0usize; 3];
    for seed in seeds {
        let kernel = generate::kernel(seed);
        forms[match kernel.form {
            Form::Nest => 0,
            Form::Tiled => 1,
            Form::Flat => 2,
        }] += 1;
        check(&kernel, seed);
    }
    assert!(forms.iter().all(|&n| n > 500), "kernels of each form: {forms:?}");
}

#[test]
fn generated_kernels_survive_the_round_trip_0() {
    check_seeds(0..2500);
}

#[test]
fn generated_kernels_survive_the_round_trip_1() {
    check_seeds(2500..5000);
}

#[test]
fn generated_kernels_survive_the_round_trip_2() {
    check_seeds(5000..7500);
}

#[test]
fn generated_kernels_survive_the_round_trip_3() {
    check_seeds(7500..10_000);
}

#[test]
fn modules_of_generated_kernels_survive_too() {
    let kernels: Vec<Kernel> = (0..50).map(generate::kernel).collect();
    let text = print_module(&kernels);
    let parsed = parse_module(&text).expect("a printed module");
    assert_eq!(print_module(&parsed), text);
    assert!(parsed == kernels);
}

#[test]
fn the_generator_makes_text_worth_reading() {
    let mut missing = vec![
        "T.grid(",
        "T.launch_thread(",
        "with T.allocate(",
        "with T.LetStmt(",
        "T.Buffer(",
        ".strides[",
        "data=",
        "T.Ramp(",
        "T.Broadcast(",
        "T.Let(",
        "T.comm_reducer(",
        "Tx.warp.",
        ".view(",
        ".local(",
        "T.attr(\"",
        "(form=\"Nest\")",
        "else:",
        "T.float32(\"nan\")",
        "elem_offset=",
        "is_size_var=True",
    ];
    for seed in 0..20_000 {
        let text = print_kernel(&generate::kernel(seed));
        missing.retain(|needle| !text.contains(needle));
        if missing.is_empty() {
            return;
        }
    }
    panic!("no kernel has {missing:?}");
}
