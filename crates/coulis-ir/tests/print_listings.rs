//! The printer gives the listings of seed 003, line for line.

mod listings;

use coulis_ir::print::{print_kernel, print_module};
use coulis_ir::{Attr, Kernel};

#[track_caller]
fn check(kernel: Kernel, file: &str) {
    let path = format!("{}/../../tests/files/parse/{file}.py", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("the golden file");
    let want: String = text.lines().filter(|l| !l.starts_with('#')).map(|l| format!("{l}\n")).collect();
    assert_eq!(print_module(&[kernel]), want, "{file}");
}

#[test]
fn listing_1_default_schedule() {
    check(listings::default(), "seed003_1_default");
}

#[test]
fn listing_2_both_axes_split() {
    check(listings::split(), "seed003_2_split");
}

#[test]
fn listing_3_bound_to_threads() {
    check(listings::bound(), "seed003_3_bound");
}

#[test]
fn listing_4_rfactor() {
    check(listings::rfactor(), "seed003_4_rfactor");
}

#[test]
fn listing_7_convolution() {
    check(listings::convolution(), "seed003_7_convolution");
}

#[test]
fn attributes_print_first_with_sorted_keys() {
    let mut kernel = listings::default();
    kernel.attrs.insert("tir.noalias".to_owned(), Attr::Bool(true));
    kernel.attrs.insert("global_symbol".to_owned(), Attr::Str("main".to_owned()));
    kernel.attrs.insert("big".to_owned(), Attr::Int(1 << 40));
    let text = print_kernel(&kernel);
    let want = r#"    T.func_attr({"big": T.int64(1099511627776), "global_symbol": "main", "tir.noalias": T.bool(True)})"#;
    assert_eq!(text.lines().nth(2), Some(want));
}

#[test]
fn two_buildings_of_one_kernel_are_equal_and_different_kernels_are_not() {
    assert_eq!(listings::rfactor(), listings::rfactor());
    assert_ne!(listings::default(), listings::split());
}
