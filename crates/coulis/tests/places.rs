//! Kernel text whose buffers have strides and offsets, compiled, executed and in the simulator.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use coulis::{Arguments, Array, CompileOptions, DeviceChoice, Value, text};

fn counting(n: i64) -> Array {
    Array::from_slice(&[n], &(0..n).map(|v| v as f32).collect::<Vec<_>>()).unwrap()
}

/// The results of a kernel of parameters `A` and `B`, four elements, by every way that kernels run on this machine.
#[track_caller]
fn check(declarations: &str, load: &str, input: &Array, wanted: [f64; 4]) {
    let text = format!(
        "
@T.prim_func
def f(A_ptr: T.handle, B_ptr: T.handle):
    n = T.int64()
    s = T.int64()
    B = T.match_buffer(B_ptr, (4,), \"float32\")
{}
    for i in range(4):
        B[i] = {load}
",
        declarations.lines().map(|line| format!("    {}", line.trim())).collect::<Vec<_>>().join("\n")
    );
    for device in [DeviceChoice::Cpu, DeviceChoice::Sim { warp: 32, orders: 1 }] {
        let options = CompileOptions { device, ..CompileOptions::default() };
        let function = text::compile(&text, &options).unwrap_or_else(|e| panic!("{e}\n{text}")).remove(0);
        let results = function.call(&[Value::from(input)]).unwrap_or_else(|e| panic!("{e}\n{text}"));
        let values: Vec<f64> = results[0].array.scalars().map(coulis::Scalar::to_f64).collect();
        assert_eq!(values, wanted, "{:?}\n{text}", options.device);
    }
}

#[test]
fn an_element_of_a_buffer_with_strides_is_by_its_strides_though_it_has_one_index() {
    let every_other = counting(8).view(&[4], &[2], 0).unwrap();
    let declared = "A = T.match_buffer(A_ptr, (n,), \"float32\", strides=(s,))";
    check(declared, "A[i]", &every_other, [0.0, 2.0, 4.0, 6.0]);
    let backwards = counting(8).view(&[4], &[-2], 7).unwrap();
    check(declared, "A[i]", &backwards, [7.0, 5.0, 3.0, 1.0]);
    let broadcast = counting(8).view(&[4], &[0], 3).unwrap();
    check(declared, "A[i]", &broadcast, [3.0; 4]);
    let constant = "A = T.match_buffer(A_ptr, (n,), \"float32\", strides=(2,))";
    check(constant, "A[i] + A[0]", &every_other, [0.0, 2.0, 4.0, 6.0]);
}

#[test]
fn an_offset_of_a_parameter_moves_nothing_but_what_others_count_from() {
    let (rows, all) = (counting(16).view(&[4, 4], &[4, 1], 0).unwrap(), counting(16));
    let of_rows =
        |offset: &str| format!("A = T.match_buffer(A_ptr, (4, 4), \"float32\", elem_offset={offset})");
    for offset in ["0", "7", "100000000000", "-1000000", "s"] {
        check(&of_rows(offset), "A[i, 1]", &rows, [1.0, 5.0, 9.0, 13.0]);
    }
    let second = |first: &str, at: &str, strides: &str| {
        format!(
            "A = T.match_buffer(A_ptr, (16,), \"float32\", elem_offset={first})
             C = T.Buffer((4,), \"float32\", data=A.data, elem_offset={at}{strides})"
        )
    };
    check(&second("0", "4", ""), "C[i]", &all, [4.0, 5.0, 6.0, 7.0]);
    check(&second("7", "11", ""), "C[i] + A[0]", &all, [4.0, 5.0, 6.0, 7.0]);
    check(&second("7", "8", ", strides=(3,)"), "C[i]", &all, [1.0, 4.0, 7.0, 10.0]);
}

#[test]
fn random_memory_holds_dimensions_that_run_backwards() {
    let text = "
@T.prim_func
def f(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (4, 4), \"float32\", strides=(-4, 1))
    B = T.match_buffer(B_ptr, (4,), \"float32\")
    for i in range(4):
        B[i] = A[i, 0]
";
    for device in [DeviceChoice::Cpu, DeviceChoice::Sim { warp: 32, orders: 1 }] {
        let options = CompileOptions { device, ..CompileOptions::default() };
        let function = text::compile(text, &options).unwrap().remove(0);
        let called = function.call_named(&Arguments { random: Some(7), ..Arguments::default() }).unwrap();
        let values =
            |at: usize| called.buffers[at].array.scalars().map(coulis::Scalar::to_f64).collect::<Vec<_>>();
        let first_column: Vec<f64> = values(0).into_iter().step_by(4).collect();
        assert_eq!((called.buffers[0].array.strides(), values(1)), (&[-4, 1][..], first_column));
    }
}

/// What a text of these declarations and this statement is refused with.
fn refusal(decorator: &str, declarations: &str, store: &str) -> String {
    let text = format!("{decorator}\ndef f(A_ptr: T.handle):\n    {declarations}\n    {store}\n");
    text::compile(&text, &CompileOptions::default()).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn flat_form_has_no_offsets_and_a_buffer_no_extent_below_0() {
    let moved = "A = T.match_buffer(A_ptr, (4,), \"float32\", elem_offset=7)";
    let message = refusal("@T.prim_func(form=\"Flat\")", moved, "A[0] = T.float32(1)");
    assert!(message.contains("parameter `A` has an offset, which Nest and Tiled form take"), "{message}");
    let plain = "A = T.match_buffer(A_ptr, (8,), \"float32\")
    C = T.Buffer((4,), \"float32\", data=A.data, elem_offset=4)";
    let message = refusal("@T.prim_func(form=\"Flat\")", plain, "C[0] = T.float32(1)");
    assert!(message.contains("`C` has an offset, and an access in Flat form is by its place"), "{message}");
    let below = "A = T.match_buffer(A_ptr, (-3,), \"float32\")";
    let message = refusal("@T.prim_func", below, "A[0] = T.float32(1)");
    assert!(message.contains("an extent of a buffer: found -3; legal: at least 0"), "{message}");
}
