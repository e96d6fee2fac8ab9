//! Arguments: what fits, what is refused, and arguments that share memory.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::cell::Cell;

use coulis_ir::args::ArrayInfo;
use coulis_ir::verify::verify;
use coulis_ir::{Checked, DType};
use coulis_sim::{Memory, Options, SimArg, SimArray, SimError, ViolationKind, check, run};

const COPY: &str = r#"
@T.prim_func
def copy(A_ptr: T.handle, B_ptr: T.handle):
    n, s = T.int32(), T.int32()
    A = T.match_buffer(A_ptr, (n,), "int32", strides=(s,))
    B = T.match_buffer(B_ptr, (n,), "int32", strides=(s,))
    tx = T.launch_thread("threadIdx.x", n)
    A_1 = T.Buffer((n,), "int32", data=A.data)
    B_1 = T.Buffer((n,), "int32", data=B.data)
    B_1[tx * s] = A_1[tx * s] + 1
"#;

fn copy() -> Checked {
    verify(coulis_script::parse_module(COPY).unwrap().remove(0)).unwrap()
}

fn info(n: i64, stride: i64) -> ArrayInfo {
    ArrayInfo { dtype: DType::I32, shape: vec![n], strides: vec![stride] }
}

fn ints(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

/// Copies within one memory: both arrays have `n` elements `stride` apart, from these bytes on.
fn copy_within(bytes: &mut [u8], n: i64, stride: i64, from: usize, to: usize) -> Vec<ViolationKind> {
    let cells = Cell::from_mut(bytes).as_slice_of_cells();
    let at = |offset: usize, initialised: bool| {
        SimArg::Array(SimArray { info: info(n, stride), memory: Memory::Write(cells), offset, initialised })
    };
    let report = run(&copy(), &mut [at(from, true), at(to, false)], &Options::default()).unwrap();
    report.violations.iter().map(|a| a.kind).collect()
}

#[test]
fn arguments_that_share_elements_are_a_violation_where_one_is_written() {
    let mut bytes = ints(&[1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(copy_within(&mut bytes, 4, 1, 0, 12), [ViolationKind::Overlap]);
    let mut bytes = ints(&[1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(copy_within(&mut bytes, 4, 1, 0, 16), []);
    assert_eq!(bytes, ints(&[1, 2, 3, 4, 2, 3, 4, 5]));
}

#[test]
fn interleaved_arguments_share_no_element_and_keep_each_other() {
    let mut bytes = ints(&[1, 20, 3, 40, 5, 60, 7, 80]);
    assert_eq!(copy_within(&mut bytes, 4, 2, 0, 4), []);
    assert_eq!(bytes, ints(&[1, 2, 3, 4, 5, 6, 7, 8]));
}

#[test]
fn a_negative_stride_leads_back_from_the_offset() {
    let mut bytes = ints(&[1, 2, 3, 0, 0, 0]);
    assert_eq!(copy_within(&mut bytes, 3, -1, 8, 20), []);
    assert_eq!(bytes, ints(&[1, 2, 3, 2, 3, 4]));
}

#[test]
fn no_elements_launch_nothing() {
    let (a, mut b) = (Vec::new(), Vec::new());
    let mut args =
        [SimArg::Array(SimArray::read(&a, info(0, 1))), SimArg::Array(SimArray::output(&mut b, info(0, 1)))];
    let report = run(&copy(), &mut args, &Options::default()).unwrap();
    assert!(report.is_clean());
    assert_eq!(report.counters.thread_statements, 0);
}

#[test]
fn arguments_that_do_not_fit_are_refused_and_unchanged() {
    let a = ints(&[1, 2, 3]);
    let mut b = ints(&[0, 0, 0]);
    let check = |a: &[u8], b: &mut [u8], n: i64, options: &Options| {
        let mut args =
            [SimArg::Array(SimArray::read(a, info(n, 1))), SimArg::Array(SimArray::output(b, info(n, 1)))];
        run(&copy(), &mut args, options).unwrap_err()
    };
    let options = Options::default();
    let error = check(&a, &mut b, 4, &options);
    assert!(matches!(error, SimError::Memory { held: 12, last: 16, .. }), "{error}");
    let error = check(&a, &mut b, 3, &Options { warp: 16, ..options.clone() });
    assert_eq!(error, SimError::Warp { found: 16 });
    let error = check(&a, &mut b, 3, &Options { max_steps: 2, ..options.clone() });
    assert!(matches!(error, SimError::Steps { steps: 2, .. }), "{error}");
    let mut read_only =
        [SimArg::Array(SimArray::read(&a, info(3, 1))), SimArg::Array(SimArray::read(&b, info(3, 1)))];
    let error = run(&copy(), &mut read_only, &options).unwrap_err();
    assert_eq!(error, SimError::ReadOnly { name: "B".to_owned() });
    assert!(matches!(run(&copy(), &mut [], &options), Err(SimError::Bind(_))));
    let many = ints(&vec![0; 2000]);
    let mut out = ints(&vec![0; 2000]);
    let error = check(&many, &mut out, 2000, &options);
    assert_eq!(error, SimError::BlockThreads { found: 2000, limit: 1024 });
    assert_eq!(b, ints(&[0, 0, 0]));
}

#[test]
fn the_same_run_gives_the_same_report() {
    let text = COPY.replace("B_1[tx * s] =", "B_1[tx // 2 * s] =");
    let kernel = verify(coulis_script::parse_module(&text).unwrap().remove(0)).unwrap();
    let a = ints(&[1; 100]);
    let once = || {
        let mut b = ints(&[0; 100]);
        let mut args = [
            SimArg::Array(SimArray::read(&a, info(100, 1))),
            SimArg::Array(SimArray::output(&mut b, info(100, 1))),
        ];
        run(&kernel, &mut args, &Options { warp_orders: 4, ..Options::default() }).unwrap()
    };
    let first = once();
    assert!(!first.is_clean());
    assert_eq!(first, once());
}

#[test]
fn memory_that_no_run_would_give_is_refused_before_one() {
    let refusal = |scope: &str, size: &str| {
        let text = format!(
            r#"
@T.prim_func
def k(B_ptr: T.handle):
    B = T.match_buffer(B_ptr, (8,), "int32")
    B_1 = T.Buffer((8,), "int32", data=B.data)
    for i in range(8):
        t = T.allocate([{size}], "int32", "{scope}")
        t_1 = T.Buffer(({size},), "int32", data=t, scope="{scope}")
        t_1[0] = 1
        B_1[i] = t_1[0]
"#
        );
        let kernel = verify(coulis_script::parse_module(&text).unwrap().remove(0)).unwrap();
        check(&kernel).unwrap_err().to_string()
    };
    assert_eq!(
        refusal("warp", "8"),
        "the simulator has no memory of scope warp, which `t` asks for; legal are global, shared, shared.dyn and local"
    );
    assert_eq!(
        refusal("local", "i + 1"),
        "the size of `t` is to be made of the sizes of arguments, which are known when the kernel starts, and depends on `i`"
    );
}
