//! The compiler that a process names, which it may do at any time.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::ffi::OsStr;

use coulis::reduce::{array_info, prepare};
use coulis::{Array, DeviceChoice, Request, machine};

#[test]
fn a_compiler_that_is_named_counts_for_calls_that_were_made_before() {
    let x = Array::from_slice(&[3, 4], &[1f32; 12]).unwrap();
    let request = Request::new(&["sum"]);
    let device = || prepare(&[array_info(&x)], &request).unwrap().device_name().to_owned();
    let found = device();
    if machine::check(&DeviceChoice::CpuCompiled).is_err() {
        eprintln!(
            "SKIP a_compiler_that_is_named_counts_for_calls_that_were_made_before: there is no compiler"
        );
        return;
    }
    assert_eq!(found, "cpu_c");
    machine::use_compiler(Some(OsStr::new("/nonexistent")));
    assert_eq!(device(), "cpu_exec");
    machine::use_compiler(None);
    assert_eq!(device(), "cpu_c");
}
