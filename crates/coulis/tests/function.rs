//! Functions of the `te` and text doors: what a call gives, and what it refuses; and that the three doors share one way.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use coulis::te::{
    Expr, Schedule, Split, Tensor, build, build_with, compute, listing, placeholder, reduce_axis, sum, var,
    var_of,
};
use coulis::{
    Arguments, Array, CompileOptions, DType, DeviceChoice, Function, Owner, Request, Value, reduce, text,
};

struct RowSum {
    args: [Tensor; 2],
    schedule: Schedule,
}

fn row_sum() -> RowSum {
    let (n, m) = (var("n"), var("m"));
    let a = placeholder(&[n.expr(), m.expr()], DType::F32, "A").unwrap();
    let k = reduce_axis(&m, "k");
    let b = compute(&[n.expr()], "B", |i| sum(a.at((&i[0], &k)), std::slice::from_ref(&k))).unwrap();
    let schedule = Schedule::new(std::slice::from_ref(&b), &[a.clone(), b.clone()]).unwrap();
    RowSum { args: [a, b], schedule }
}

fn function() -> Function {
    let RowSum { args, schedule } = row_sum();
    build(&schedule, &args, "row_sum").unwrap()
}

fn floats(shape: &[i64], values: &[f32]) -> Array {
    Array::from_slice(shape, values).unwrap()
}

fn counting(shape: &[i64]) -> Array {
    let n = shape.iter().product::<i64>();
    floats(shape, &(0..n).map(|v| v as f32).collect::<Vec<_>>())
}

fn only(text: &str) -> Function {
    let mut functions = text::compile(text, &CompileOptions::default()).unwrap();
    assert_eq!(functions.len(), 1);
    functions.remove(0)
}

fn values(array: &Array) -> Vec<f64> {
    array.scalars().map(coulis::Scalar::to_f64).collect()
}

#[test]
fn a_function_takes_arrays_of_any_strides_and_sizes() {
    let function = function();
    assert_eq!(function.notices().len(), usize::from(function.device() == "cpu_exec"));
    let rows = counting(&[2, 3]);
    let backwards = rows.view(&[2, 3], &[-3, -1], 5).unwrap();
    let repeated = rows.view(&[4, 3], &[0, 1], 0).unwrap();
    let cases = [
        (rows.clone(), vec![3.0, 12.0]),
        (rows.transposed(), vec![3.0, 5.0, 7.0]),
        (backwards, vec![12.0, 3.0]),
        (repeated, vec![3.0; 4]),
        (counting(&[1, 1]), vec![0.0]),
        (counting(&[3, 0]), vec![0.0; 3]),
        (counting(&[0, 3]), vec![]),
    ];
    for (input, wanted) in cases {
        let found = function.call(&[Value::from(&input)]).unwrap();
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), values(&found[0].array)), ("B", wanted), "{input:?}");
    }
}

#[test]
fn arguments_that_do_not_fit_are_refused_by_name() {
    let function = function();
    let doubles = Array::from_slice(&[2, 2], &[0.0f64; 4]).unwrap();
    let cases: [(&[Value], &str); 4] = [
        (&[], "error[call/count]: `row_sum` takes 1 inputs (A), got 0"),
        (&[Value::Int(3)], "error[call/arguments]: argument `A` is to be an array"),
        (&[Value::from(&doubles)], "error[call/arguments]: argument `A` is to hold float32, got float64"),
        (
            &[Value::from(&counting(&[4]))],
            "error[call/arguments]: argument `A` is to have 2 dimensions, got 1",
        ),
    ];
    for (inputs, wanted) in cases {
        assert_eq!(function.call(inputs).unwrap_err().to_string(), wanted);
    }
}

#[test]
fn a_function_with_int32_sizes_runs_its_twin_where_they_do_not_reach() {
    let first_three = |dtype: DType| {
        let (n, m) = (var_of("n", dtype), var_of("m", dtype));
        let a = placeholder(&[n.expr(), m.expr()], DType::I8, "A").unwrap();
        let k = reduce_axis(Expr::int_of(3, dtype), "k");
        let b = compute(&[n.expr()], "B", |i| sum(a.at((&i[0], &k)), std::slice::from_ref(&k))).unwrap();
        let mut schedule = Schedule::new(std::slice::from_ref(&b), &[a.clone(), b.clone()]).unwrap();
        let (_, inner) = schedule.split(&b, &k, Split::Factor(2)).unwrap();
        schedule.rfactor(&b, &inner).unwrap();
        build(&schedule, &[a, b], "first_three").unwrap()
    };
    let seven = Array::from_slice(&[1], &[7i8]).unwrap();
    for extents in [[2, 2_000_000_000], [2, 1 << 30], [3, 1 << 31], [1, 1 << 40]] {
        let far = seven.view(&extents, &[0, 0], 0).unwrap();
        for dtype in [DType::I64, DType::I32] {
            let found = first_three(dtype).call(&[Value::from(&far)]).unwrap();
            assert_eq!(values(&found[0].array), vec![21.0; extents[0] as usize], "{dtype} {extents:?}");
        }
    }
}

#[test]
fn a_schedule_whose_arithmetic_leaves_int32_runs_the_twin_though_the_sizes_are_small() {
    let (n, m) = (var("n"), var("m"));
    let a = placeholder(&[n.expr(), m.expr()], DType::F32, "A").unwrap();
    for factor in [7, (1 << 30) + 1, (1 << 31) - 4, (1 << 31) - 1] {
        let k = reduce_axis(m.expr(), "k");
        let b = compute(&[n.expr()], "B", |i| sum(a.at((&i[0], &k)), std::slice::from_ref(&k))).unwrap();
        let mut schedule = Schedule::new(std::slice::from_ref(&b), &[a.clone(), b.clone()]).unwrap();
        let rows = schedule.stage(&b).unwrap().leaves()[0].clone();
        schedule.split(&b, &rows, Split::Factor(factor)).unwrap();
        schedule.split(&b, &k, Split::Factor(factor)).unwrap();
        for device in [DeviceChoice::Auto, DeviceChoice::CpuExecuted] {
            let options = CompileOptions { device, ..CompileOptions::default() };
            let function = build_with(&schedule, &[a.clone(), b.clone()], "rows", &options).unwrap();
            let ones = Array::from_slice(&[5, 3], &[1f32; 15]).unwrap();
            let found = function.call(&[Value::from(&ones)]).unwrap();
            assert_eq!(values(&found[0].array), vec![3.0; 5], "{factor}");
        }
    }
}

#[test]
fn a_function_on_threads_with_int32_sizes_runs_its_twin_where_they_do_not_reach() {
    use coulis_ir::ThreadTag::{BlockX, ThreadX, ThreadY};
    let (n, m) = (var("n"), var("m"));
    let a = placeholder(&[n.expr(), m.expr()], DType::I8, "A").unwrap();
    let k = reduce_axis(Expr::int(3), "k");
    let b = compute(&[n.expr()], "B", |i| {
        let last = m.expr() - Expr::int(1) - k.expr();
        sum(a.at([i[0].expr(), last]), std::slice::from_ref(&k))
    })
    .unwrap();
    let mut schedule = Schedule::new(std::slice::from_ref(&b), &[a.clone(), b.clone()]).unwrap();
    let rows = schedule.stage(&b).unwrap().leaves()[0].clone();
    let (block, row) = schedule.split(&b, &rows, Split::Factor(2)).unwrap();
    schedule.bind(&b, &block, BlockX).unwrap();
    schedule.bind(&b, &row, ThreadY).unwrap();
    let (_, lane) = schedule.split(&b, &k, Split::Factor(2)).unwrap();
    schedule.bind(&b, &lane, ThreadX).unwrap();
    let seven = Array::from_slice(&[1], &[7i8]).unwrap();
    let mut devices =
        vec![DeviceChoice::Sim { warp: 32, orders: 1 }, DeviceChoice::Sim { warp: 64, orders: 1 }];
    match coulis_runtime::Cuda::open(0, &coulis_runtime::CudaOptions::default()) {
        Ok(_) => devices.push(DeviceChoice::Cuda(0)),
        Err(error) => println!("SKIP on a GPU: {error}"),
    }
    for device in devices {
        let options = CompileOptions { device, ..CompileOptions::default() };
        let function = build_with(&schedule, &[a.clone(), b.clone()], "last_three", &options).unwrap();
        for extents in [[3, 5], [3, 1 << 31], [1, (1 << 40) + 1]] {
            let far = seven.view(&extents, &[0, 0], 0).unwrap();
            let found = function.call(&[Value::from(&far)]).unwrap();
            assert_eq!(values(&found[0].array), vec![21.0; extents[0] as usize], "{extents:?}");
        }
    }
}

#[test]
fn elements_beyond_32_bits_are_found_and_positions_are_cut_where_they_are_stored() {
    // Columns 2^31 apart of an array whose strides say so; only its first elements are in memory.
    let (n, m) = (var("n"), var("m"));
    let a = placeholder(&[n.expr(), m.expr()], DType::I32, "A").unwrap();
    let far = |i: &coulis::te::Var| i.expr() + m.expr() - Expr::int(2);
    let b = compute(&[Expr::int(2)], "B", |i| a.at([Expr::int(0), far(&i[0])]) + far(&i[0])).unwrap();
    let schedule = Schedule::new(std::slice::from_ref(&b), &[a.clone(), b.clone()]).unwrap();
    let function = build(&schedule, &[a, b], "far").unwrap();
    let columns = (1i64 << 31) + 5;
    let array = Array::from_slice(&[1], &[1i32]).unwrap().view(&[1, columns], &[0, 0], 0).unwrap();
    let found = function.call(&[Value::from(&array)]).unwrap();
    let wanted = [columns - 2, columns - 1].map(|position| f64::from((position as i32).wrapping_add(1)));
    assert_eq!(values(&found[0].array), wanted);
}

#[test]
fn an_output_may_be_given_and_is_copied() {
    const ADD: &str = "
@T.prim_func
def add(A_ptr: T.handle, B_ptr: T.handle):
    n = T.int32()
    A = T.match_buffer(A_ptr, (n,), \"float32\")
    B = T.match_buffer(B_ptr, (n,), \"float32\")
    for i in range(n):
        B[i] = B[i] + A[i]
";
    let function = only(ADD);
    let start = floats(&[3], &[10.0, 20.0, 30.0]);
    let values_of = [("A".to_owned(), Value::from(&counting(&[3]))), ("B".to_owned(), Value::from(&start))];
    let arguments = Arguments { values: values_of.into(), random: None };
    let found = function.call_named(&arguments).unwrap();
    let names: Vec<&str> = found.buffers.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["A", "B"]);
    assert_eq!(values(&found.buffers[1].array), [10.0, 21.0, 32.0]);
    assert_eq!(values(&start), [10.0, 20.0, 30.0]);
    // Another length of the same size is refused.
    let wrong = [("A".to_owned(), Value::from(&counting(&[2]))), ("B".to_owned(), Value::from(&start))];
    let error = function.call_named(&Arguments { values: wrong.into(), random: None }).unwrap_err();
    assert_eq!(error.to_string(), "error[call/arguments]: extent 0 of argument `B` is to be 2, got 3");
}

#[test]
fn an_extent_that_comes_to_less_than_0_is_refused_by_the_size_that_it_takes() {
    const SHORTER: &str = "@T.prim_func
def shorter(a: T.handle, b: T.handle):
    n = T.int32()
    A = T.match_buffer(a, (n,))
    B = T.match_buffer(b, (n - 3,))
    for i in range(n - 3):
        B[i] = A[i] + A[i + 3]
";
    let function = only(SHORTER);
    for (of_a, of_b, wanted) in [
        (3, 0, None),
        (2, 0, Some("is `n - 3`, which comes to -1; `n` is to be at least 3, got 2")),
        (2, 1, Some("is `n - 3`, which comes to -1; `n` is to be at least 3, got 2")),
        (3, 1, Some("is to be 0, got 1")),
    ] {
        let (a, b) = (counting(&[of_a]), counting(&[of_b]));
        let values = [("a".to_owned(), Value::from(&a)), ("b".to_owned(), Value::from(&b))];
        let found = function.call_named(&Arguments { values: values.into(), random: None });
        let found = found.err().map(|e| e.to_string());
        let wanted = wanted.map(|w| format!("error[call/arguments]: extent 0 of argument `b` {w}"));
        assert_eq!(found, wanted, "{of_a} {of_b}");
    }
}

#[test]
fn random_inputs_take_their_shape_from_sizes_and_repeat() {
    let function = function();
    let sizes = [("n".to_owned(), Value::Int(3)), ("m".to_owned(), Value::Int(5))];
    let arguments = Arguments { values: sizes.into(), random: Some(7) };
    let (first, again) = (function.call_named(&arguments).unwrap(), function.call_named(&arguments).unwrap());
    assert_eq!(values(&first.buffers[0].array), values(&again.buffers[0].array));
    let rows: Vec<f64> = values(&first.buffers[0].array).chunks(5).map(|row| row.iter().sum()).collect();
    let close = rows.iter().zip(values(&first.buffers[1].array)).all(|(a, b)| (a - b).abs() < 1e-5);
    assert!(close && rows.iter().any(|v| v.abs() > 1e-3), "{rows:?}");
    let error = function.call_named(&Arguments { random: None, ..arguments.clone() }).unwrap_err();
    assert_eq!(error.to_string(), "error[call/missing]: parameter `A` is read and has no value");
    let unsized_ = Arguments { values: [("n".to_owned(), Value::Int(3))].into(), random: Some(7) };
    let error = function.call_named(&unsized_).unwrap_err().to_string();
    assert_eq!(
        error,
        "error[call/missing]: extent 1 of `A` depends on `m`, which no argument determines; give `A`, or a number for \
         `m` (`--arg m=NUMBER`)"
    );
    let unknown = Arguments { values: [("C".to_owned(), Value::Int(3))].into(), random: None };
    let error = function.call_named(&unknown).unwrap_err().to_string();
    assert_eq!(error, "error[call/name]: `row_sum` has no parameter `C`; parameters are A, B");
}

#[test]
fn a_name_that_several_parameters_have_chooses_none() {
    let copy = "@T.prim_func
def copy(A_ptr: T.handle, A: T.handle):
    x = T.match_buffer(A_ptr, (2,), \"int32\")
    y = T.match_buffer(A, (2,), \"int32\")
    for i in range(2):
        y[i] = x[i]
";
    let function = only(copy);
    let arguments = Arguments { values: [("A".to_owned(), Value::Int(3))].into(), random: Some(7) };
    let error = function.call_named(&arguments).unwrap_err().to_string();
    let want = "error[call/name]: `copy` has several parameters named `A`, of which a name chooses none; rename all but one";
    assert_eq!(error, want);
}

#[test]
fn functions_whose_names_become_one_identifier_are_refused() {
    let function = |name: &str| {
        format!(
            "@T.prim_func\ndef {name}(A_ptr: T.handle):\n    A = T.match_buffer(A_ptr, (2,), \"int32\")\n    {}",
            "i = T.launch_thread(\"threadIdx.x\", 2)\n    A[i] = i\n"
        )
    };
    let cuda = coulis::TargetChoice::Cuda { arch: Some("sm_90a".to_owned()) };
    let emit = |names: [&str; 2]| coulis::text::emit_cuda(&names.map(function).concat(), &cuda);
    assert!(emit(["a", "b"]).unwrap().contains("b_kernel"));
    let want = |name: &str| {
        format!(
            "error[emit/name]: functions `\u{e9}` and `\u{e8}` both become `{name}`; give one another name"
        )
    };
    assert_eq!(emit(["\u{e9}", "\u{e8}"]).unwrap_err().to_string(), want("v___kernel"));
    let serial = |name: &str| function(name).replace("T.launch_thread(\"threadIdx.x\", 2)", "1");
    let error = coulis::text::emit_c(&["\u{e9}", "\u{e8}"].map(serial).concat()).unwrap_err().to_string();
    assert_eq!(error, want("coulis__"));
}

/// Reads `A` one element further than its loop says.
const OUTSIDE: &str = "
@T.prim_func
def shift(A_ptr: T.handle, B_ptr: T.handle):
    n = T.int32()
    A = T.match_buffer(A_ptr, (n,), \"float32\")
    B = T.match_buffer(B_ptr, (n,), \"float32\")
    for i in range(n):
        B[i] = A[i + 1]
";

#[test]
fn a_kernel_that_may_reach_outside_is_executed_and_each_index_is_looked_at() {
    let function = only(OUTSIDE);
    assert_eq!(function.device(), "cpu_exec");
    assert_eq!(
        function.notices(),
        [
            "not compiled but executed with a check of each index, since `A[i + 1]` is not shown to stay inside"
        ]
    );
    let error = function.call(&[Value::from(&counting(&[4]))]).unwrap_err();
    assert_eq!(error.owner, Owner::User);
    assert_eq!(error.to_string(), "error[run/bounds]: index 4 of `A` is outside of [0, 4)");
    let inside = only(&OUTSIDE.replace("A[i + 1]", "T.if_then_else(i + 1 < n, A[i + 1], T.float32(0))"));
    let found = inside.call(&[Value::from(&counting(&[4]))]).unwrap();
    assert_eq!(values(&found[0].array), [1.0, 2.0, 3.0, 0.0]);
    assert!(!inside.notices().iter().any(|n| n.contains("stay inside")));
}

#[test]
fn kernels_that_nothing_here_runs_are_refused_as_unsupported() {
    let scalar = OUTSIDE.replace("B_ptr: T.handle)", "B_ptr: T.handle, x: T.float32)");
    let threads = OUTSIDE.replace(
        "for i in range(n):\n        B[i] = A[i + 1]",
        "i = T.launch_thread(\"blockIdx.x\", n)\n    B[i] = A[i]",
    );
    let ids = OUTSIDE.replace(
        "for i in range(n):\n        B[i] = A[i + 1]",
        "T.device_entry()\n    i = T.cta_id([n])\n    B[i] = A[i]",
    );
    let cases = [
        (ids, "error[lower]: kernels with scope ids run in blocks of threads, which the cpu has not"),
        (
            scalar,
            "error[function/scalar]: scalar parameter `x` of type float32 cannot be given yet; legal are integers, \
             or a buffer of one element",
        ),
        (
            threads,
            "error[function/threads]: kernel `shift` is written for blocks of threads, and the CPU runs loops; legal \
             devices are sim and cuda",
        ),
    ];
    for (text, wanted) in cases {
        let error = text::compile(&text, &CompileOptions::default()).err().expect("a refusal");
        assert_eq!((error.owner, error.to_string().as_str()), (Owner::Unsupported, wanted));
    }
}

#[test]
fn outputs_whose_elements_share_memory_are_refused() {
    let text = OUTSIDE.replace("A[i + 1]", "A[i]").replace(
        "B = T.match_buffer(B_ptr, (n,), \"float32\")",
        "B = T.match_buffer(B_ptr, (n,), \"float32\", strides=(0,))",
    );
    let error = only(&text).call(&[Value::from(&counting(&[4]))]).unwrap_err().to_string();
    let wanted = "error[call/strides]: output `B` of shape [4] has the strides [0]; elements of an output are to lie \
                  apart";
    assert_eq!(error, wanted);
}

#[test]
fn listings_run_as_the_schedules_they_are_printed_from() {
    let RowSum { args, mut schedule } = row_sum();
    let (_, inner) = schedule.split(&args[1], &args[1].op().reduce_axes()[0], Split::Factor(16)).unwrap();
    schedule.rfactor(&args[1], &inner).unwrap();
    let function = only(&listing(&schedule, &args, "main").unwrap());
    let input = counting(&[5, 37]);
    let wanted = build(&schedule, &args, "main").unwrap().call(&[Value::from(&input)]).unwrap();
    let found = function.call(&[Value::from(&input)]).unwrap();
    assert_eq!(values(&found[0].array), values(&wanted[0].array));
}

#[test]
fn schedules_are_shown_to_stay_inside_and_so_are_compiled() {
    let device = function().device();
    type Apply = fn(&mut Schedule, &Tensor);
    let schedules: [(&str, Apply); 7] = [
        ("default", |_, _| ()),
        ("fused", |s, b| {
            s.fuse(b, &[b.op().axes()[0].clone(), b.op().reduce_axes()[0].clone()]).unwrap();
        }),
        ("fused and split", |s, b| {
            let both = s.fuse(b, &[b.op().axes()[0].clone(), b.op().reduce_axes()[0].clone()]).unwrap();
            s.split(b, &both, Split::Factor(64)).unwrap();
        }),
        ("split", |s, b| {
            s.split(b, &b.op().reduce_axes()[0], Split::Factor(16)).unwrap();
            s.split(b, &b.op().axes()[0], Split::Factor(32)).unwrap();
        }),
        ("rfactor at its root", |s, b| {
            let (_, inner) = s.split(b, &b.op().reduce_axes()[0], Split::Factor(16)).unwrap();
            s.rfactor(b, &inner).unwrap();
        }),
        ("rfactor inside, vectorized", |s, b| {
            let (_, inner) = s.split(b, &b.op().reduce_axes()[0], Split::Factor(16)).unwrap();
            let factored = s.rfactor(b, &inner).unwrap();
            let row = s.stage(b).unwrap().axes()[0].clone();
            s.compute_at(factored, b, &row).unwrap();
            let lanes = s.stage(factored).unwrap().axes()[0].clone();
            let k = s.stage(factored).unwrap().reduce_axes()[0].clone();
            s.reorder(factored, &[k, lanes.clone()]).unwrap();
            s.vectorize(factored, &lanes).unwrap();
        }),
        ("parallel rows", |s, b| {
            let (outer, _) = s.split(b, &b.op().axes()[0], Split::Factor(8)).unwrap();
            s.parallel(b, &outer).unwrap();
        }),
    ];
    let input = counting(&[13, 37]);
    let wanted: Vec<f64> = values(&input).chunks(37).map(|row| row.iter().sum()).collect();
    for (name, apply) in schedules {
        let RowSum { args, mut schedule } = row_sum();
        apply(&mut schedule, &args[1]);
        let function = build(&schedule, &args, "row_sum").unwrap();
        assert_eq!(function.device(), device, "{name}: {:?}", function.notices());
        assert_eq!(values(&function.call(&[Value::from(&input)]).unwrap()[0].array), wanted, "{name}");
    }
}

#[test]
fn a_second_window_on_memory_is_looked_at_too() {
    // The alias says that it has twice the elements that `A` has.
    let text = "
@T.prim_func
def far(A_ptr: T.handle, B_ptr: T.handle):
    n = T.int32()
    A = T.match_buffer(A_ptr, (n,), \"float32\")
    B = T.match_buffer(B_ptr, (n,), \"float32\")
    A_1 = T.Buffer((n * 2,), data=A.data)
    for i in range(n):
        B[i] = A_1[i + n]
";
    let error = only(text).call(&[Value::from(&counting(&[4]))]).unwrap_err();
    assert_eq!((error.owner, error.code), (Owner::User, "run/bounds"));
}

#[test]
fn faults_of_a_program_are_the_users() {
    let a = placeholder(&[Expr::int(10)], DType::F32, "A").unwrap();
    let b = compute(&[Expr::int(10)], "B", |i| a.at([i[0].expr() + Expr::int(5)])).unwrap();
    let schedule = Schedule::new(std::slice::from_ref(&b), &[a.clone(), b.clone()]).unwrap();
    let error = build(&schedule, &[a, b], "f").err().expect("a refusal");
    assert_eq!((error.owner, error.code), (Owner::User, "schedule"));
}

#[test]
fn the_three_doors_go_one_way() {
    // The same row sum through all doors: crates and passes in the order in which the kernel met them.
    let input = coulis::ArrayInfo { dtype: DType::F32, shape: vec![64, 64], strides: vec![64, 1] };
    let prepared = reduce::prepare(&[input], &Request::new(&["sum"]).over(&[1])).unwrap();
    let by_reduce = prepared.route();

    let te = function();
    let RowSum { args, schedule } = row_sum();
    let nest = coulis::te::build_nest(&schedule, &args, "row_sum").unwrap();
    let text = only(&coulis_ir::print::print_module(&[nest]));

    assert_eq!(by_reduce, te.route());
    assert_eq!(by_reduce[0], "schedule/build_nest");
    assert_eq!(&by_reduce[1..], text.route());

    let passes = coulis_lower::PASSES.iter().map(|p| format!("lower/{}", p.name));
    let device = te.device();
    assert!(device == "cpu_c" || device == "cpu_exec");
    let wanted: Vec<String> = passes.chain(["ir/verify".to_owned(), format!("runtime/{device}")]).collect();
    assert_eq!(&by_reduce[1..], wanted);
    let crates: std::collections::BTreeSet<&str> =
        by_reduce.iter().filter_map(|step| step.split('/').next()).collect();
    assert_eq!(crates.into_iter().collect::<Vec<_>>(), ["ir", "lower", "runtime", "schedule"]);
}

#[test]
fn sums_of_narrow_floats_are_folded_wide_and_rounded_once() {
    // In float16 itself, ones stop adding up at 2048, and so they do in bfloat16 at 256.
    let row_sum = |dtype: DType, is_factored: bool| {
        let (n, m) = (var("n"), var("m"));
        let a = placeholder(&[n.expr(), m.expr()], dtype, "A").unwrap();
        let k = reduce_axis(&m, "k");
        let b = compute(&[n.expr()], "B", |i| sum(a.at((&i[0], &k)), std::slice::from_ref(&k))).unwrap();
        let mut schedule = Schedule::new(std::slice::from_ref(&b), &[a.clone(), b.clone()]).unwrap();
        if is_factored {
            let (_, inner) = schedule.split(&b, &k, Split::Factor(16)).unwrap();
            schedule.rfactor(&b, &inner).unwrap();
        }
        build(&schedule, &[a, b], "row_sum").unwrap()
    };
    for is_factored in [false, true] {
        let ones = Array::from_slice(&[2, 5000], &vec![half::f16::ONE; 10_000]).unwrap();
        let found = row_sum(DType::F16, is_factored).call(&[Value::from(&ones)]).unwrap();
        assert_eq!((found[0].array.dtype(), values(&found[0].array)), (DType::F16, vec![5000.0; 2]));
        let ones = Array::from_slice(&[1, 4096], &vec![half::bf16::ONE; 4096]).unwrap();
        let found = row_sum(DType::BF16, is_factored).call(&[Value::from(&ones)]).unwrap();
        assert_eq!((found[0].array.dtype(), values(&found[0].array)), (DType::BF16, vec![4096.0]));
    }
}

/// Goes through memory of its own, of which the text says no size but `n * m`.
const THROUGH: &str = "
@T.prim_func
def through(A_ptr: T.handle, B_ptr: T.handle):
    n, m = T.int32(), T.int32()
    A = T.match_buffer(A_ptr, (n,), \"float32\")
    B = T.match_buffer(B_ptr, (m,), \"float32\")
    C = T.alloc_buffer((n, m), \"float32\")
    for i in range(n):
        for j in range(m):
            C[i, j] = A[i]
    for i in range(n):
        for j in range(m):
            B[j] = C[i, j]
";

#[test]
fn memory_of_a_texts_own_is_as_large_as_its_extents_say_or_refused() {
    let narrow = only(THROUGH);
    let call = |function: &Function, n: i64, m: i64| {
        let a = Value::from(&counting(&[n]));
        let values = [("A".to_owned(), a), ("m".to_owned(), Value::Int(m))].into();
        function.call_named(&Arguments { values, random: None })
    };
    let found = call(&narrow, 3, 2).unwrap();
    assert_eq!(values(&found.buffers[1].array), [2.0, 2.0]);
    let error = call(&narrow, 1 << 16, 1 << 16).unwrap_err();
    assert_eq!(error.owner, Owner::Unsupported);
    let wanted = "error[call/int32]: `C` would have more elements than int32 sizes reach, which are at most \
                  1073741824; make its sizes int64";
    assert_eq!(error.to_string(), wanted);
    let wide = THROUGH.replace("T.int32()", "T.int64()").replace("(n, m), ", "(n, m, n * n, m * m), ");
    let wide = only(&wide.replace("C[i, j]", "C[i, j, 0, 0]"));
    assert_eq!(values(&call(&wide, 3, 2).unwrap().buffers[1].array), [2.0, 2.0]);
    let wanted = "error[call/memory]: `C` would have more bytes than int64 counts; make its sizes less";
    assert_eq!(call(&wide, 1 << 12, 1 << 10).unwrap_err().to_string(), wanted);
}

#[test]
fn memory_that_hints_are_about_is_not_written() {
    let function = only(
        "@T.prim_func
def doubled(A: T.Buffer((4,), \"float32\"), B: T.Buffer((4,), \"float32\")):
    for i in range(4):
        T.prefetch(A[i + 2])
        B[i] = A[i] * T.float32(2)
",
    );
    let written: Vec<bool> = function.parameters().iter().map(|p| p.is_written).collect();
    assert_eq!(written, [false, true]);
    let found = function.call(&[Value::from(&counting(&[4]))]).unwrap();
    assert_eq!(values(&found[0].array), [0.0, 2.0, 4.0, 6.0]);
}
