//! Functions called on memory of the caller.

use coulis::te::{Schedule, Tensor, build_with, compute, placeholder, reduce_axis, sum, var};
use coulis::{ArrayInfo, CompileOptions, DType, DeviceChoice, Function, InPlace};
use coulis_io::AlignedBytes;

fn row_sum(device: DeviceChoice) -> Function {
    let (n, m) = (var("n"), var("m"));
    let a = placeholder(&[n.expr(), m.expr()], DType::F32, "A").expect("a placeholder");
    let k = reduce_axis(&m, "k");
    let b: Tensor =
        compute(&[n.expr()], "B", |i| sum(a.at((&i[0], &k)), std::slice::from_ref(&k))).expect("a compute");
    let args = [a, b.clone()];
    let schedule = Schedule::new(&[b], &args).expect("a schedule");
    build_with(
        &schedule,
        &args,
        "row_sum",
        &CompileOptions { device, threads: Some(1), ..CompileOptions::default() },
    )
    .expect("a function")
}

fn info(shape: &[i64], strides: &[i64]) -> ArrayInfo {
    ArrayInfo { dtype: DType::F32, shape: shape.to_vec(), strides: strides.to_vec() }
}

/// The float32 values as memory that is aligned for them.
fn memory(values: &[f32]) -> AlignedBytes {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    AlignedBytes::copy_of(&bytes).expect("memory")
}

/// Sums of rows of `0, 1, ..., 5` seen under strides, written to every second element of four that were 9.
#[track_caller]
fn check(device: DeviceChoice, strides: &[i64], offset: usize, want: [f32; 4]) {
    check_into(device, (strides, offset), (2, 0), want);
}

/// The same, to elements that are that many apart, the first of them at that byte.
#[track_caller]
fn check_into(
    device: DeviceChoice,
    (strides, offset): (&[i64], usize),
    (step, first): (i64, usize),
    want: [f32; 4],
) {
    let function = row_sum(device);
    let (input, mut out) = (memory(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]), memory(&[9.0; 4]));
    let mut arguments = [
        InPlace::Read { info: info(&[2, 3], strides), bytes: input.as_slice(), offset },
        InPlace::Write { info: info(&[2], &[step]), bytes: out.as_mut_slice(), offset: first },
    ];
    function.call_in_place(&mut arguments).expect("a call");
    assert_eq!(out.as_slice(), memory(&want).as_slice());
}

#[test]
fn arrays_are_read_and_written_where_they_are_under_any_strides() {
    let sim = DeviceChoice::Sim { warp: 32, orders: 1 };
    for device in [DeviceChoice::Cpu, DeviceChoice::CpuExecuted, sim] {
        check(device.clone(), &[3, 1], 0, [3.0, 9.0, 12.0, 9.0]);
        check(device.clone(), &[1, 2], 0, [6.0, 9.0, 9.0, 9.0]);
        check(device.clone(), &[-3, -1], 20, [12.0, 9.0, 3.0, 9.0]);
        check_into(device.clone(), (&[3, 1], 0), (-2, 12), [9.0, 12.0, 9.0, 3.0]);
        check_into(device, (&[3, 1], 0), (-1, 4), [12.0, 3.0, 9.0, 9.0]);
    }
}

#[test]
fn memory_that_does_not_fit_is_refused_before_anything_runs() {
    let function = row_sum(DeviceChoice::CpuExecuted);
    let (input, mut out) = (memory(&[1.0; 6]), memory(&[9.0; 2]));
    let mut call = |input_shape: &[i64], input_strides: &[i64], output: ArrayInfo| {
        let mut arguments = [
            InPlace::Read { info: info(input_shape, input_strides), bytes: input.as_slice(), offset: 0 },
            InPlace::Write { info: output, bytes: out.as_mut_slice(), offset: 0 },
        ];
        function.call_in_place(&mut arguments).expect_err("a refusal").to_string()
    };
    let wide = ArrayInfo { dtype: DType::F64, ..info(&[1], &[1]) };
    let refusals = [
        (call(&[2, 3], &[3, 1], info(&[3], &[1])), "error[call/arguments]"),
        (call(&[2, 3], &[3, 1], wide), "error[call/arguments]"),
        (call(&[2, 3], &[3, 1], info(&[2], &[0])), "error[call/strides]"),
        (call(&[2, 4], &[4, 1], info(&[2], &[1])), "error[call/memory]"),
    ];
    for (found, want) in refusals {
        assert!(found.starts_with(want), "{found}");
    }
    let mut swapped = [
        InPlace::Read { info: info(&[2, 3], &[3, 1]), bytes: input.as_slice(), offset: 0 },
        InPlace::Read { info: info(&[2], &[1]), bytes: input.as_slice(), offset: 0 },
    ];
    let found = function.call_in_place(&mut swapped).expect_err("a refusal").to_string();
    assert_eq!(found, "error[call/output]: `B` is an output, and its array may not be written");
    let found = function.call_in_place(&mut swapped[..1]).expect_err("a refusal").to_string();
    assert!(found.starts_with("error[call/arguments]"), "{found}");
}
