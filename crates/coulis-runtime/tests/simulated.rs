//! The simulator as a device: results in the buffers, a report of each launch.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use coulis_ir::args::{ArgInfo, ArrayInfo, bind_args};
use coulis_ir::verify::verify;
use coulis_ir::{Checked, DType};
use coulis_runtime::{Device, Outputs, RuntimeError, Sim, SimOptions, Window, call};
use coulis_sim::{SimError, SimReport, ViolationKind};

const SUMS: &str = r#"
@T.prim_func
def sums(A_ptr: T.handle, B_ptr: T.handle):
    n = T.int32()
    A = T.match_buffer(A_ptr, (n, 64), "int32", strides=(T.int32(-64), 1))
    B = T.match_buffer(B_ptr, (n,), "int32")
    bx = T.launch_thread("blockIdx.x", n)
    tx = T.launch_thread("threadIdx.x", 64)
    s = T.allocate([64], "int32", "shared")
    A_1 = T.Buffer((64,), "int32", data=A.data)
    s[tx] = A_1[tx - bx * 64]
    for i in range(6):
        T.cuda.cta_sync()
        if tx < 32 >> i:
            s[tx] = s[tx] + s[tx + (32 >> i)]
    if tx == 0:
        B[bx] = s[0]
"#;

fn checked(text: &str) -> Checked {
    verify(coulis_script::parse_module(text).unwrap().remove(0)).unwrap()
}

/// The outputs of three rows, given last row first, and the report.
fn run(text: &str, options: &SimOptions) -> (Result<Option<SimReport>, RuntimeError>, Vec<i32>) {
    let kernel = checked(text);
    let device = Sim::open(options);
    let executable = device.compile(&kernel).unwrap();
    let a = ArrayInfo { dtype: DType::I32, shape: vec![3, 64], strides: vec![-64, 1] };
    let b = ArrayInfo { dtype: DType::I32, shape: vec![3], strides: vec![1] };
    let bindings =
        bind_args(kernel.kernel(), &[ArgInfo::Array(a.clone()), ArgInfo::Array(b.clone())]).unwrap();
    let mut words: Vec<u64> = vec![0; 96];
    let rows: Vec<u8> = (0..192i32).flat_map(|i| (i / 64 * 1000 + i % 64).to_le_bytes()).collect();
    for (word, bytes) in words.iter_mut().zip(rows.chunks_exact(8)) {
        *word = u64::from_le_bytes(bytes.try_into().unwrap());
    }
    // SAFETY: numbers are bytes.
    let memory = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), 768) };
    let mut out = [0i32; 3];
    // SAFETY: as above, and nothing else looks at them meanwhile.
    let bytes = unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast::<u8>(), 12) };
    let mut windows = [Window::read(memory, 512, &a).unwrap(), Window::write(bytes, 0, &b).unwrap()];
    let result = call(executable.as_ref(), &bindings, &mut windows);
    (result, out.to_vec())
}

#[test]
fn results_are_in_the_buffers_and_the_launch_gives_a_report() {
    let (result, out) = run(SUMS, &SimOptions::default());
    let report = result.unwrap().unwrap();
    assert_eq!(out, [130_016, 66_016, 2_016]);
    assert!(report.is_clean(), "{}", report.listing);
    let counters = &report.counters;
    assert_eq!((counters.blocks, counters.threads), (3, 192));
    assert_eq!((counters.global_loads.requests, counters.global_loads.sectors), (6, 24));
    assert!(report.to_string().contains("global load efficiency"), "{report}");
}

#[test]
fn a_kernel_with_violations_still_gives_results() {
    let (result, _) = run(&SUMS.replace("        T.cuda.cta_sync()\n", ""), &SimOptions::default());
    let report = result.unwrap().unwrap();
    assert!(report.violations.iter().any(|a| a.kind == ViolationKind::WarpRace), "{report}");
}

#[test]
fn outputs_may_hold_values() {
    let text = SUMS.replace("B[bx] = s[0]", "B[bx] = B[bx] + s[0]");
    let (result, _) = run(&text, &SimOptions::default());
    assert_eq!(result.unwrap().unwrap().violations[0].kind, ViolationKind::Unwritten);
    let (result, out) = run(&text, &SimOptions { outputs: Outputs::Hold, ..SimOptions::default() });
    let report = result.unwrap().unwrap();
    assert!(report.is_clean(), "{}", report.listing);
    assert_eq!(out, [130_016, 66_016, 2_016]);
}

#[test]
fn a_kernel_that_does_not_end_is_an_error_that_names_the_statement() {
    let mut options = SimOptions::default();
    options.run.max_steps = 500;
    let (result, out) = run(SUMS, &options);
    let stopped = |e: &RuntimeError| matches!(e, RuntimeError::Sim(SimError::Steps { steps: 500, .. }));
    assert!(result.as_ref().is_err_and(stopped), "{result:?}");
    assert_eq!(out, [0; 3], "arguments are unchanged");
}

#[test]
fn windows_are_one_a_parameter_and_may_be_written_where_the_kernel_stores() {
    let kernel = checked(SUMS);
    let executable = Sim::open(&SimOptions::default()).compile(&kernel).unwrap();
    let info = ArrayInfo { dtype: DType::I32, shape: vec![1], strides: vec![1] };
    let words = [0u64; 1];
    // SAFETY: numbers are bytes.
    let memory = unsafe { std::slice::from_raw_parts(words.as_ptr().cast::<u8>(), 8) };
    let mut windows: Vec<Window> = (0..2).map(|_| Window::read(memory, 0, &info).unwrap()).collect();
    let refused = |windows: &mut [Window]| {
        call(executable.as_ref(), &Default::default(), windows).unwrap_err().to_string()
    };
    assert_eq!(refused(&mut windows), "`sums` writes `B`, and its memory is given to be read only");
    assert_eq!(refused(&mut windows[..1]), "`sums` takes 2 buffers, got 1");
}
