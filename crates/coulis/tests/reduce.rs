//! `reduce` against exact answers: every statistic, every strategy, special rows, both ways to run.

mod common;

use common::{Special, array, check, executed, numbers};
use coulis::reduce::array_info;
use coulis::{Array, ArrayInfo, DType, DeviceChoice, NanPolicy, Request, Scalar};

/// Statistics that share state; every other one of one input stands alone.
const SHARED: [&[&str]; 6] = [
    &["sum", "mean", "var", "min", "max"],
    &["prod", "std", "absmax", "count"],
    &["sumsq", "norm1", "norm2", "meansq"],
    &["any", "all", "count_nonzero", "logsumexp"],
    &["argmin", "argmax", "minloc"],
    &["argmin_last", "argmax_last", "maxloc"],
];

/// Every statistic of one input, those that share state together.
fn groups() -> Vec<Vec<&'static str>> {
    let of_one_input = coulis::CATALOGUE.iter().filter(|e| e.n_inputs == 1).map(|e| e.name);
    let alone = of_one_input.filter(|name| !SHARED.concat().contains(name)).map(|name| vec![name]);
    SHARED.iter().map(|group| group.to_vec()).chain(alone).collect()
}

/// Shapes and axes that reach every strategy.
const CASES: &[(&[i64], &[i64])] = &[
    (&[], &[]),
    (&[1], &[0]),
    (&[7], &[0]),
    (&[1000], &[0]),
    (&[37, 129], &[1]),
    (&[300, 16], &[1]),
    (&[129, 37], &[0]),
    (&[100, 3], &[0]),
    (&[5, 40, 6], &[1]),
    (&[4, 6, 8, 10], &[0, 2]),
    (&[0, 4], &[0]),
    (&[4, 0], &[0]),
    (&[3, 5], &[]),
];

#[test]
fn every_statistic_is_exact_on_every_kind_of_shape_when_executed() {
    for (shape, axes) in CASES {
        let n = shape.iter().product::<i64>() as usize;
        for (ops, dtype) in groups().iter().zip([DType::F32, DType::I16].iter().cycle()) {
            let input = array(*dtype, shape, &numbers(n, Special::Zeros, 7));
            check(&[input], &executed(ops, axes))
                .unwrap_or_else(|why| panic!("{ops:?} {shape:?} {axes:?}: {why}"));
        }
    }
}

#[test]
fn variances_of_integers_that_float64_does_not_hold_are_right() {
    let signed = |values: [i64; 4]| Array::from_slice(&[3, 400], &values.repeat(300)).unwrap();
    let unsigned = |values: [u64; 4]| Array::from_slice(&[3, 400], &values.repeat(300)).unwrap();
    let near = 1 << 53;
    let inputs = [
        signed([near, near + 1, near, near + 1]),
        signed([i64::MAX, i64::MAX - 1, i64::MAX - 2, i64::MAX - 7]),
        signed([i64::MIN, i64::MAX, 0, -1]),
        unsigned([u64::MAX, u64::MAX - 1, u64::MAX - 3, u64::MAX]),
        unsigned([0, u64::MAX, 1 << 63, (1 << 63) + 1]),
    ];
    for input in inputs {
        for axes in [&[1i64][..], &[0], &[0, 1]] {
            for device in [DeviceChoice::CpuExecuted, DeviceChoice::Auto] {
                let request = Request { device, ..executed(&["var", "std", "mean"], axes) };
                check(std::slice::from_ref(&input), &request).unwrap_or_else(|why| panic!("{axes:?}: {why}"));
            }
        }
    }
}

#[test]
fn any_byte_but_zero_is_true() {
    let bytes = [0u8, 1, 2, 255].repeat(40);
    let input = Array::from_bytes(DType::Bool, &[160], &bytes).unwrap();
    let ops = ["sum", "argmax", "absmax", "count_nonzero", "mean"];
    for device in [DeviceChoice::CpuExecuted, DeviceChoice::Auto] {
        let request = Request { device, ..Request::new(&ops) };
        let outcome = coulis::reduce::run(std::slice::from_ref(&input), &request).unwrap();
        let found: Vec<f64> =
            outcome.results.iter().map(|r| r.array.scalars().next().unwrap().to_f64()).collect();
        assert_eq!(found, [120.0, 1.0, 1.0, 120.0, 0.75]);
    }
}

#[test]
fn shapes_without_elements_are_answered_wherever_they_have_none() {
    let kinds: [(DType, &[&str]); 3] =
        [(DType::I32, &["count"]), (DType::F64, &["norm2"]), (DType::F16, &["sum", "mean", "var"])];
    for shape in [&[5000, 64, 0][..], &[64, 0], &[5000, 0], &[3, 0, 40], &[0, 3], &[17, 17, 0, 1]] {
        for (dtype, ops) in kinds {
            let input = array(dtype, shape, &[]);
            for device in [DeviceChoice::CpuExecuted, DeviceChoice::Sim { warp: 32, orders: 1 }] {
                for axis in 0..shape.len() as i64 {
                    let request = Request { device: device.clone(), ..executed(ops, &[axis]) };
                    check(std::slice::from_ref(&input), &request)
                        .unwrap_or_else(|why| panic!("{ops:?} of {shape:?} over {axis}: {why}"));
                }
            }
        }
    }
}

#[test]
fn a_mask_that_leaves_nothing_is_refused_by_extrema_alone() {
    let input = array(DType::F32, &[3, 4], &numbers(12, Special::Zeros, 3));
    let mask = Array::from_bools(&[3, 1], &[true, false, true]).unwrap();
    let masked = |ops: &[&str]| Request { where_: Some(mask.clone()), ..executed(ops, &[1]) };
    for op in ["min", "max", "absmax", "argmin", "argmax", "argmin_last", "argmax_last", "minloc", "maxloc"] {
        let error = coulis::reduce::run(std::slice::from_ref(&input), &masked(&[op])).unwrap_err();
        assert_eq!((error.owner, error.code), (coulis::Owner::User, "reduce/empty"), "{op}");
        assert!(error.message.contains("output 1"), "{}", error.message);
    }
    check(std::slice::from_ref(&input), &masked(&["sum", "mean", "count", "any", "prod"])).unwrap();
}

#[test]
fn a_row_of_the_identity_is_not_an_empty_row() {
    let input = Array::from_slice(&[2, 2], &[f32::INFINITY, f32::INFINITY, 1.0, 2.0]).unwrap();
    let mask = Array::from_bools(&[2, 2], &[true, false, true, true]).unwrap();
    let request = Request { where_: Some(mask), ..executed(&["min"], &[1]) };
    let outcome = coulis::reduce::run(&[input], &request).unwrap();
    assert_eq!(outcome.results[0].array.as_slice::<f32>(), Some(&[f32::INFINITY, 1.0][..]));
}

#[test]
fn extrema_of_nothing_but_nan_are_nan_when_nan_is_ignored() {
    let input = Array::from_slice(&[2, 2], &[f32::NAN, f32::NAN, 1.0, f32::NAN]).unwrap();
    for mask in [None, Some(Array::from_bools(&[2, 2], &[true, false, true, true]).unwrap())] {
        let request =
            Request { nan: NanPolicy::Ignore, where_: mask, ..executed(&["min", "max", "absmax"], &[1]) };
        check(std::slice::from_ref(&input), &request).unwrap();
    }
}

/// Shape, axes, statistics and type of a case.
type Compiled<'a> = (&'a [i64], &'a [i64], &'a [&'a str], DType);

#[test]
fn compiled_kernels_give_the_exact_answers_too() {
    let cases: &[Compiled] = &[
        (&[37, 129], &[1], &["sum", "var", "max"], DType::F32),
        (&[129, 37], &[0], &["mean", "argmin"], DType::F16),
        (&[300, 16], &[1], &["logsumexp", "any"], DType::F32),
        (&[5, 40, 6], &[1], &["maxloc", "norm2"], DType::I16),
        (&[1000], &[0], &["sum", "prod"], DType::U8),
        // Rows that fold to a short vector, with rows left over.
        (&[37, 16], &[1], &["sum"], DType::F32),
        (&[41, 64], &[1], &["mean", "meansq"], DType::F16),
        (&[41, 64], &[1], &["sum", "var"], DType::BF16),
        (&[3, 29, 32], &[2], &["sum"], DType::I8),
        // Runs in blocks of pages, rows that lie apart, exponentials in runs.
        (&[2, 300_001], &[1], &["sum", "mean", "var", "min", "max"], DType::F32),
        (&[130, 3, 4096], &[0, 2], &["mean", "var"], DType::F16),
        (&[7, 1003], &[1], &["logsumexp"], DType::BF16),
    ];
    for (shape, axes, ops, dtype) in cases {
        let n = shape.iter().product::<i64>() as usize;
        let input = array(*dtype, shape, &numbers(n, Special::Zeros, 5));
        let request = Request { device: DeviceChoice::Auto, ..executed(ops, axes) };
        check(&[input], &request).unwrap_or_else(|why| panic!("{ops:?} {shape:?} {axes:?}: {why}"));
    }
}

#[test]
fn a_result_that_was_changed_is_refuted_where_it_was_changed() {
    let input = array(DType::F32, &[4, 50], &numbers(200, Special::Zeros, 3));
    let request = executed(&["sum", "argmax"], &[1]);
    let mut outcome = coulis::reduce::run(std::slice::from_ref(&input), &request).unwrap();
    let mut sums = outcome.results[0].array.as_slice::<f32>().unwrap().to_vec();
    sums[2] += 0.01;
    outcome.results[0].array = Array::from_slice(&[4], &sums).unwrap();
    let report = coulis::reduce::verify_outcome(std::slice::from_ref(&input), &request, &outcome).unwrap();
    assert!(!report.is_right());
    assert_eq!(report.results[0].refuted.as_ref().map(|r| r.output), Some(2));
    assert_eq!(report.results[1].refuted, None);
}

/// A request for some of a call's statistics with initial values.
fn starting(ops: &[&str], axes: &[i64], inits: &[(&str, Scalar)]) -> Request {
    let init = inits.iter().map(|(op, value)| ((*op).to_owned(), *value)).collect();
    Request { init, ..executed(ops, axes) }
}

#[test]
fn an_initial_value_is_folded_once_and_into_its_own_statistic() {
    let ops = ["sum", "mean", "max", "min", "absmax", "prod", "any", "all"];
    let float = Scalar::Float;
    let inits = [("sum", float(42.0)), ("max", float(3.5)), ("absmax", float(-9.0)), ("all", float(0.0))];
    for (shape, axes) in CASES {
        let n = shape.iter().product::<i64>() as usize;
        let input = array(DType::F32, shape, &numbers(n, Special::Zeros, 5));
        let mut request = starting(&ops, axes, &inits);
        request.init.insert("min".to_owned(), float(f64::NAN));
        check(&[input], &request).unwrap_or_else(|why| panic!("{shape:?} {axes:?}: {why}"));
    }
    let integers = array(DType::I8, &[3, 40], &numbers(120, Special::Zeros, 5));
    let inits = [("sum", Scalar::Int(-128)), ("min", Scalar::Float(-3.0)), ("prod", Scalar::UInt(2))];
    check(&[integers], &starting(&["sum", "min", "prod", "count"], &[1], &inits)).unwrap();
}

#[test]
fn extrema_of_nothing_are_their_initial_value() {
    let nothing = array(DType::F32, &[2, 0], &[]);
    let values = |request: &Request, input: &Array| -> Vec<f64> {
        let outcome = coulis::reduce::run(std::slice::from_ref(input), request).unwrap();
        outcome.results.iter().flat_map(|r| r.array.scalars().map(Scalar::to_f64)).collect()
    };
    let both = [("max", Scalar::Float(-1.5)), ("min", Scalar::Float(f64::INFINITY))];
    assert_eq!(
        values(&starting(&["max", "min"], &[1], &both), &nothing),
        [-1.5, -1.5, f64::INFINITY, f64::INFINITY]
    );
    let one =
        coulis::reduce::run(std::slice::from_ref(&nothing), &starting(&["max", "min"], &[1], &both[..1]));
    assert!(one.unwrap_err().to_string().contains("`min` of an empty set has no value"));
    let mask = Array::from_bools(&[2, 1], &[true, false]).unwrap();
    let masked = Request { where_: Some(mask), ..starting(&["max"], &[1], &both[..1]) };
    let input = array(DType::F32, &[2, 2], &[-4.0, -3.0, 5.0, 6.0]);
    assert_eq!(values(&masked, &input), [-1.5, -1.5]);
}

#[test]
fn an_initial_value_beyond_the_inputs_type_is_no_infinity() {
    let beyond = [
        (DType::F16, 1e6, "1000000.0", "float16 is 65504.0"),
        (DType::F16, -65520.0, "-65520.0", "float16 is 65504.0"),
        (DType::BF16, 3.4e38, "3.4e38", "bfloat16 is 3.3895313892515355e38"),
        (DType::F8E5M2, 1e5, "100000.0", "float8_e5m2 is 57344.0"),
        (DType::F8E4M3, 1e3, "1000.0", "float8_e4m3 is 448.0"),
        (DType::F8E4M3, f64::NEG_INFINITY, "-inf", "float8_e4m3 is 448.0"),
        (DType::F32, 1e300, "1e300", "float32 is 3.4028234663852886e38"),
    ];
    for (dtype, value, shown, most) in beyond {
        let request = starting(&["max"], &[0], &[("max", Scalar::Float(value))]);
        let error = coulis::reduce::run(&[array(dtype, &[2], &[1.0; 2])], &request).unwrap_err();
        let want = format!(
            "the initial value of `max` is {shown}, and the largest finite value of the input's type {most}"
        );
        assert_eq!((error.code, error.message), ("reduce/init", want));
    }
    let legal = [(DType::F16, f64::INFINITY), (DType::F16, 65519.0), (DType::F64, f64::MAX)];
    for (dtype, value) in legal {
        let request = starting(&["max"], &[0], &[("max", Scalar::Float(value))]);
        let outcome = coulis::reduce::run(&[array(dtype, &[2], &[1.0; 2])], &request).unwrap();
        let want = Scalar::Float(dtype.round_float(value));
        assert_eq!(outcome.results[0].array.scalars().next(), Some(want));
    }
}

#[test]
fn a_weighted_mean_whose_weights_cancel_is_neither_right_nor_wrong() {
    // The sum of the first row's weights is 1, of which rounding in twice the bits of float64 leaves nothing.
    let weights = [[1e40, 1e20, 1.0, -1e40, -1e20], [1.0, 2.0, 3.0, 4.0, 5.0], [1.0, -1.0, 0.0, 0.0, 0.0]];
    let arrays = [array(DType::F64, &[3, 5], &[1.0; 15]), array(DType::F64, &[3, 5], &weights.concat())];
    let request = executed(&["wmean"], &[1]);
    let mut outcome = coulis::reduce::run(&arrays, &request).unwrap();
    for (second, is_right) in [(1.0, true), (1.5, false)] {
        let found = [f64::NAN, second, f64::NAN];
        outcome.results[0].array = array(DType::F64, &[3], &found);
        let report = coulis::reduce::verify_outcome(&arrays, &request, &outcome).unwrap();
        assert_eq!((report.is_right(), report.results[0].n_checked), (is_right, 1));
        let note =
            "2 of 3 outputs of `wmean` were not compared, since no error bound holds for their elements";
        assert_eq!(report.notes, [note]);
    }
}

#[test]
fn sums_that_may_leave_the_range_of_float64_on_the_way_are_neither_right_nor_wrong() {
    let n = 128;
    let row = |of: &dyn Fn(usize) -> f64| (0..n).map(of).collect::<Vec<f64>>();
    let sign = |at: usize| if at.is_multiple_of(2) { 1e308 } else { -1e308 };
    let rows = [row(&|_| 1e308), row(&sign), row(&|at| sign(at) / n as f64), row(&|_| f64::INFINITY)];
    let input = array(DType::F64, &[4, n as i64], &rows.concat());
    let request = executed(&["sum", "mean", "norm1"], &[1]);
    let mut outcome = coulis::reduce::run(std::slice::from_ref(&input), &request).unwrap();
    let report = |outcome: &coulis::Outcome| {
        coulis::reduce::verify_outcome(std::slice::from_ref(&input), &request, outcome).unwrap()
    };
    let found = report(&outcome);
    assert!(found.is_right(), "{found:?}");
    assert!(found.results.iter().all(|result| result.n_checked == 2), "{found:?}");
    assert_eq!(found.notes.len(), 3);
    for wrong in [[0.0, 0.0, 1e300, f64::INFINITY], [0.0, 0.0, 0.0, 1.0]] {
        outcome.results[1].array = array(DType::F64, &[4], &wrong);
        assert!(!report(&outcome).is_right(), "{wrong:?}");
    }
}

#[test]
fn initial_values_that_no_fold_takes_are_refused_by_name() {
    let input = array(DType::I8, &[2, 2], &[1.0; 4]);
    let cases = [
        ("mean", Scalar::Int(1), "`mean` takes no initial value; those that do are "),
        (
            "sum",
            Scalar::Int(128),
            "the initial value of `sum` is to be one of the input's type int8, -128 to 127",
        ),
        ("sum", Scalar::Float(0.5), "the initial value of `sum` is to be one of the input's type int8"),
        ("max", Scalar::Int(1), "an initial value is given for `max`, which is not among"),
    ];
    for (op, value, wanted) in cases {
        let request = starting(&["sum", "mean"], &[1], &[(op, value)]);
        let error = coulis::reduce::run(std::slice::from_ref(&input), &request).unwrap_err();
        assert!(error.to_string().contains(wanted), "{error}");
        assert_eq!((error.owner, error.code), (coulis::Owner::User, "reduce/init"));
    }
    let floats = array(DType::F32, &[2, 2], &[1.0; 4]);
    let ignored =
        Request { nan: NanPolicy::Ignore, ..starting(&["sum"], &[1], &[("sum", Scalar::Float(f64::NAN))]) };
    let error = coulis::reduce::run(&[floats], &ignored).unwrap_err();
    assert!(error.to_string().contains("is NaN, and NaN is ignored"), "{error}");
}

/// The value of an element by its position.
type ValueAt = fn(usize) -> f64;

#[test]
fn runs_stay_within_their_bounds() {
    // Rows by lanes and by pages, columns with whole and cut tiles; no length is a multiple of a run.
    let shapes: [(&[i64], &[i64]); 4] =
        [(&[9_003], &[0]), (&[2, 4099], &[1]), (&[259, 40], &[0]), (&[3, 131, 24], &[0, 1])];
    let values: [(&str, ValueAt); 4] = [
        ("equal values", |_| 0.1),
        ("ascending values", |i| (i % 2000) as f64),
        ("one large value, then ones", |i| if i == 0 { 6e4 } else { 1.0 }),
        ("runs that begin with an outlier", |i| if i % 512 < 32 { -100.0 } else { (i % 7) as f64 }),
    ];
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::I8] {
        for (what, value) in values {
            for (shape, axes) in shapes {
                let n = shape.iter().product::<i64>() as usize;
                let limit = if dtype == DType::I8 { 127.0 } else { 65_000.0 };
                let numbers: Vec<f64> = (0..n).map(|i| value(i).clamp(-128.0, limit)).collect();
                let input = array(dtype, shape, &numbers);
                let request = Request::new(&["sum", "mean", "meansq", "var"]).over(axes);
                check(std::slice::from_ref(&input), &request)
                    .unwrap_or_else(|why| panic!("{what} of {dtype} {shape:?}: {why}"));
            }
        }
    }
}

#[test]
fn sums_of_268_million_elements_stay_within_their_bounds() {
    // Each of 2^14 values counts 2^14 times, by a dimension of stride 0, so that the exact sum is known.
    const SIDE: i64 = 1 << 14;
    let side = SIDE as f64;
    let cases: [(&str, ValueAt); 3] = [
        ("equal values", |_| f64::from(0.1_f32)),
        ("ascending values", |i| i as f64),
        ("one large value, then ones", |i| if i == 0 { 1e8 } else { 1.0 }),
    ];
    for (what, value) in cases {
        let numbers: Vec<f64> = (0..SIDE as usize).map(value).collect();
        let exact = side * numbers.iter().sum::<f64>();
        let bound = 32.0 * f64::from(f32::EPSILON) * exact;
        let base = array(DType::F32, &[SIDE], &numbers);
        for strides in [[0, 1], [1, 0]] {
            let input = base.view(&[SIDE, SIDE], &strides, 0).unwrap();
            for axes in [&[0, 1][..], &[0], &[1]] {
                let request = Request::new(&["sum"]).over(axes);
                let outcome = coulis::reduce::run(std::slice::from_ref(&input), &request).unwrap();
                let parts = outcome.results[0].array.scalars().map(Scalar::to_f64);
                let found: f64 = parts.sum();
                let error = (found - exact).abs();
                assert!(error <= bound, "{what} by {strides:?} over {axes:?}: {found}, not {exact}");
            }
        }
    }
}

#[test]
fn an_integer_result_of_a_float_statistic_is_the_nearest_one_and_of_two_the_even_one() {
    let values = [0.5f64, 1.5, 2.5, -0.5, -1.5, 2.4, 2.6, 300.0, -1e30, f64::INFINITY, f64::NAN];
    let cases = [
        (DType::I8, [0.0, 2.0, 2.0, 0.0, -2.0, 2.0, 3.0, 127.0, -128.0, 127.0, 0.0]),
        (DType::U8, [0.0, 2.0, 2.0, 0.0, 0.0, 2.0, 3.0, 255.0, 0.0, 255.0, 0.0]),
        (DType::I64, [0.0, 2.0, 2.0, 0.0, -2.0, 2.0, 3.0, 300.0, i64::MIN as f64, i64::MAX as f64, 0.0]),
        (DType::Bool, [1.0; 11]),
    ];
    let single: Vec<f32> = values.iter().map(|v| *v as f32).collect();
    let inputs =
        [Array::from_slice(&[11, 1], &values).unwrap(), Array::from_slice(&[11, 1], &single).unwrap()];
    let devices = [DeviceChoice::CpuExecuted, DeviceChoice::Cpu, DeviceChoice::Sim { warp: 32, orders: 1 }];
    for (device, (dtype, want)) in devices.iter().flat_map(|d| cases.iter().map(move |c| (d, c))) {
        for input in &inputs {
            for op in ["sum", "mean", "max"] {
                let mut request = Request { device: device.clone(), ..Request::new(&[op]).over(&[1]) };
                request.out_dtypes.insert(op.to_owned(), *dtype);
                let outcome = coulis::reduce::run(std::slice::from_ref(input), &request).unwrap();
                let found: Vec<f64> = outcome.results[0].array.scalars().map(|v| v.to_f64()).collect();
                assert_eq!(found, want, "{op} as {dtype} on {device:?}");
                let report =
                    coulis::reduce::verify_outcome(std::slice::from_ref(input), &request, &outcome).unwrap();
                assert!(report.is_right(), "{op} as {dtype}: {report:?}");
            }
        }
    }
}

#[test]
fn a_mean_of_integers_as_an_integer_is_rounded_once() {
    let x = Array::from_slice(&[2, 2], &[1i32, 2, -3, -4]).unwrap();
    let mut request = Request::new(&["mean"]).over(&[1]);
    request.out_dtypes.insert("mean".to_owned(), DType::I32);
    let outcome = coulis::reduce::run(&[x], &request).unwrap();
    let found: Vec<f64> = outcome.results[0].array.scalars().map(|v| v.to_f64()).collect();
    assert_eq!(found, [2.0, -4.0]);
}

#[test]
fn no_results_are_computed_everywhere_and_nothing_is_written() {
    let cases: [(&[i64], &[i64]); 8] = [
        (&[0, 5], &[1]),
        (&[5, 0], &[0]),
        (&[0, 0], &[1]),
        (&[0, 3000], &[1]),
        (&[300, 0, 7], &[0, 2]),
        (&[0, 300, 7], &[1]),
        (&[0, 100_000], &[1]),
        (&[100_000, 0], &[0]),
    ];
    let sim = DeviceChoice::Sim { warp: 32, orders: 1 };
    for (shape, axes) in cases {
        let x = Array::from_slice::<f32>(shape, &[]).unwrap();
        for ops in &groups() {
            for device in [sim.clone(), DeviceChoice::CpuExecuted, DeviceChoice::Cpu] {
                let request = Request { device, ..Request::new(ops).over(axes) };
                let outcome = coulis::reduce::run(std::slice::from_ref(&x), &request);
                let outcome = outcome.unwrap_or_else(|e| panic!("{ops:?} of {shape:?} over {axes:?}: {e}"));
                assert!(
                    outcome.results.iter().all(|r| r.array.is_empty()),
                    "{ops:?} of {shape:?} over {axes:?}"
                );
            }
        }
        for name in ["softmax", "layer_norm"] {
            let normalize = coulis::Normalize::named(name).unwrap();
            let request = Request { device: sim.clone(), ..Request::normalizing(normalize).over(axes) };
            let outcome = coulis::reduce::run(std::slice::from_ref(&x), &request).unwrap();
            assert_eq!(outcome.results[0].array.shape(), shape);
        }
    }
}

#[test]
fn a_ddof_that_no_statistic_takes_is_refused() {
    let input = array(DType::F32, &[4], &[1.0, 2.0, 4.0, 8.0]);
    let asked = |ops: &[&str], ddof: f64| {
        let request = Request { ddof, ..Request::new(ops) };
        coulis::reduce::run(std::slice::from_ref(&input), &request).map(|_| ())
    };
    let error = asked(&["sum", "max"], 1.0).unwrap_err();
    assert_eq!(
        error.to_string(),
        "error[reduce/ddof]: ddof 1 is given, and none of the statistics asked for takes one: sum, max; those that do are \
         var, std"
    );
    assert!(asked(&["sum"], f64::NAN).is_err());
    for (ops, ddof) in [(&["sum", "var"][..], 1.0), (&["std"], 2.0), (&["sum"], 0.0), (&["sum"], -0.0)] {
        asked(ops, ddof).unwrap_or_else(|error| panic!("{ops:?}: {error}"));
    }
}

#[test]
fn a_shape_without_its_strides_or_beyond_all_memory_is_refused() {
    let info = ArrayInfo { dtype: DType::F32, shape: vec![2, 3], strides: vec![1] };
    let error = coulis::reduce::check(&[info], &Request::new(&["sum"])).err().unwrap();
    assert_eq!(
        error.to_string(),
        "error[reduce/input]: an array of shape [2, 3] is to have a stride an axis, got the strides [1]"
    );
    let info = ArrayInfo { dtype: DType::F32, shape: vec![1 << 62], strides: vec![0] };
    let error = coulis::reduce::check(&[info], &Request::new(&["sum"])).err().unwrap();
    assert!(error.to_string().starts_with("error[reduce/shape]"), "{error}");
}

#[test]
fn a_prepared_call_runs_on_as_many_arrays_as_it_was_prepared_for() {
    let x = array(DType::F32, &[3, 4], &numbers(12, Special::Zeros, 7));
    let request = executed(&["max", "min"], &[1]);
    let prepared = coulis::reduce::prepare(&[array_info(&x)], &request).unwrap();
    let mut outputs = prepared.allocate().unwrap();
    prepared.launch(&[&x], &[], &mut outputs).unwrap();
    let mut refused = |inputs: &[&Array], priors: &[&Array], n: usize| {
        prepared.launch(inputs, priors, &mut outputs[..n]).unwrap_err().to_string()
    };
    let wanted = |words: &str| format!("error[reduce/launch]: the call was prepared for {words}");
    assert_eq!(refused(&[&x, &x], &[], 1), wanted("1 inputs, got 2"));
    assert_eq!(refused(&[&x], &[&x], 1), wanted("0 priors, got 1"));
    assert_eq!(refused(&[&x], &[], 1), wanted("2 outputs, got 1"));
}
