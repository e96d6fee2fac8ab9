//! Normalizations (softmax, the norms, and callers' own) against references in `float64`: shapes, views, axes,
//! dtypes, special values and options, on every way to run.

#![allow(clippy::unwrap_used)]

mod common;
#[path = "common/normalizations.rs"]
mod meaning;

use std::sync::Arc;

use common::{Lie, Special, array, length_and_lie, numbers, view};
use coulis::reduce::{array_info, plan};
use coulis::te::{Expr, Intrinsic};
use coulis::{
    Along, Array, DType, DeviceChoice, NORMALIZATIONS, NanPolicy, Normalize, Request, UserNormalization,
};
use coulis_reducers::NormalizationEntry;
use meaning::{Case, values};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// The names of the catalogue.
fn names() -> Vec<&'static str> {
    NORMALIZATIONS.iter().map(|entry| entry.name).collect()
}

const EXECUTED: DeviceChoice = DeviceChoice::CpuExecuted;
const SIMULATED: DeviceChoice = DeviceChoice::Sim { warp: 32, orders: 2 };

#[derive(Clone, Debug)]
struct Random {
    entry: &'static NormalizationEntry,
    dtype: DType,
    axes: Vec<(i64, Lie, bool)>,
    order_seed: u64,
    special: Special,
    nan: NanPolicy,
    /// Which axes a mask has, if there is one, and in how many eighths elements take part.
    mask: Option<(u8, u8)>,
    /// Type of the first array beside the elements, where it is given.
    first: Option<DType>,
    /// Whether the other ones are.
    others: bool,
    /// Every number, where they are given.
    number: Option<f64>,
    scaled: bool,
    prior: bool,
    out: Option<DType>,
    seed: u64,
}

fn random(most: i64) -> impl Strategy<Value = Random> {
    let (length, lie) = length_and_lie();
    let special = vec![Special::Zeros, Special::Nan, Special::All, Special::MostlyNan];
    let weight = vec![DType::F32, DType::F16, DType::F64, DType::I8];
    let out = vec![DType::F32, DType::F64, DType::F16];
    (
        prop::sample::select(NORMALIZATIONS),
        prop_oneof![Just(DType::F32), prop::sample::select(DType::ALL.to_vec())],
        prop::collection::vec((length, lie, any::<bool>()), 1..5),
        any::<u64>(),
        (
            prop::sample::select(special),
            prop::bool::weighted(0.2),
            prop::option::weighted(0.3, (any::<u8>(), 1u8..9)),
        ),
        (prop::option::of(prop::sample::select(weight)), any::<bool>()),
        prop::option::of(prop::sample::select(vec![0.01, 1.0])),
        (prop::bool::weighted(0.2), prop::bool::weighted(0.2)),
        prop::option::weighted(0.2, prop::sample::select(out)),
        any::<u64>(),
    )
        .prop_map(
            move |(entry, dtype, mut axes, order_seed, values, beside, number, scaled, out, seed)| {
                while axes.iter().map(|a| a.0.max(1)).product::<i64>() > most {
                    axes.iter_mut().for_each(|a| a.0 = if a.0 > 3 { a.0 / 2 + 1 } else { a.0 });
                }
                let nan = if values.1 { NanPolicy::Ignore } else { NanPolicy::Propagate };
                Random {
                    entry,
                    dtype,
                    axes,
                    order_seed,
                    special: values.0,
                    nan,
                    mask: values.2,
                    first: beside.0,
                    others: beside.1,
                    number,
                    scaled: scaled.0,
                    prior: scaled.1,
                    out,
                    seed,
                }
            },
        )
}

impl Random {
    fn check(&self, device: &DeviceChoice) -> Result<(), String> {
        let shape: Vec<i64> = self.axes.iter().map(|a| a.0).collect();
        let lies: Vec<Lie> = self.axes.iter().map(|a| a.1).collect();
        let mut order: Vec<usize> = (0..shape.len()).collect();
        if self.order_seed % 2 == 1 {
            let place = |axis: &usize| (self.order_seed >> (8 * axis + 8)) & 0xff;
            order.sort_by_key(place);
        }
        let x = view(self.dtype, &shape, &order, &lies, |n| numbers(n, self.special, self.seed));
        let axes: Vec<usize> = (0..shape.len()).filter(|&a| self.axes[a].2).collect();
        let mut case = Case { nan: self.nan, out: self.out, ..Case::new(self.entry.name, &axes) };
        case.set =
            self.number.iter().flat_map(|v| self.entry.parameters.iter().map(|p| (p.name, *v))).collect();
        for (nth, extra) in self.entry.beside.iter().enumerate() {
            let dtype = if nth == 0 { self.first } else { self.others.then_some(DType::F32) };
            let Some(dtype) = dtype else { continue };
            let is_own = |a: &usize| match extra.along {
                Along::Reduced => axes.contains(a),
                Along::Kept => !axes.contains(a),
                Along::All => true,
            };
            let own: Vec<i64> = (0..shape.len()).filter(is_own).map(|a| shape[a]).collect();
            let n = own.iter().product::<i64>() as usize;
            let values = numbers(n, Special::Zeros, self.seed ^ (nth as u64 + 1));
            case.beside.push((extra.name, array(dtype, &own, &values)));
        }
        if let Some((axes, eighths)) = self.mask {
            let length = |(axis, n): (usize, &i64)| if axes >> axis & 1 == 0 { 1 } else { *n };
            let own: Vec<i64> = shape.iter().enumerate().map(length).collect();
            let n = own.iter().product::<i64>() as usize;
            let drawn = numbers(n, Special::Zeros, self.seed ^ 0xf1a6);
            let flags: Vec<f64> =
                drawn.iter().map(|v| f64::from(v.to_bits() >> 49 & 7 < u64::from(eighths))).collect();
            case.where_ = Some(array(DType::Bool, &own, &flags));
        }
        if self.scaled {
            case.alpha = -1.5;
        }
        if self.prior {
            let float = if self.dtype.is_float() { self.dtype } else { DType::F64 };
            let out = self.out.unwrap_or(float);
            case.prior = Some(array(out, &shape, &numbers(x.len(), Special::Zeros, self.seed ^ 3)));
        }
        case.check(&x, device)
    }
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        rng_seed: RngSeed::Fixed(54),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(150))]
    #[test]
    fn random_calls_executed_are_within_their_bounds(case in random(4000)) {
        prop_assert_eq!(case.check(&EXECUTED), Ok(()));
    }
}

proptest! {
    #![proptest_config(config(8))]
    #[test]
    fn random_calls_compiled_are_within_their_bounds(case in random(4000)) {
        prop_assert_eq!(case.check(&DeviceChoice::Cpu), Ok(()));
    }
}

proptest! {
    #![proptest_config(config(30))]
    #[test]
    fn random_calls_simulated_are_within_their_bounds(case in random(500)) {
        prop_assert_eq!(case.check(&SIMULATED), Ok(()));
    }
}

fn rows(dtype: DType, shape: &[i64]) -> Array {
    let n = shape.iter().product::<i64>() as usize;
    array(dtype, shape, &numbers(n, Special::Zeros, 7))
}

#[test]
fn every_axis_of_a_shape_is_normalised() {
    let x = rows(DType::F32, &[3, 34, 9]);
    for axes in [&[0usize][..], &[1], &[2], &[0, 1], &[1, 2], &[0, 2], &[0, 1, 2], &[]] {
        for name in names() {
            assert_eq!(Case::new(name, axes).check(&x, &EXECUTED), Ok(()), "{axes:?}");
        }
        assert_eq!(Case::new("layer_norm", axes).check(&x, &SIMULATED), Ok(()), "{axes:?}");
    }
}

#[test]
fn a_result_whose_dimensions_are_permuted_and_short_is_stored_once() {
    // Strides of the result of 1 and 3 with extents of 3 and 17: as constants beside any extents they would be of one element.
    let x = rows(DType::F32, &[120_000]).view(&[17, 2, 3, 1], &[-8, -2, 544, 272], 600).unwrap();
    for axes in [[3], [1]] {
        for device in [&SIMULATED, &EXECUTED] {
            assert_eq!(Case::new("softmax", &axes).check(&x, device), Ok(()), "{axes:?}");
        }
    }
}

#[test]
fn results_that_are_neighbours_across_the_elements_are_right() {
    // Transposed, and the middle axis innermost; whole blocks of vectors and of elements, and rests of both.
    for (name, shape, strides, axes) in [
        ("softmax", [1, 512, 128], [1, 1, 512], &[1usize][..]),
        ("layer_norm", [1, 131, 517], [1, 1, 131], &[2]),
        ("softmax", [3, 130, 171], [171 * 130, 1, 130], &[0, 2]),
    ] {
        let x = rows(DType::F32, &[shape.iter().product()]).view(&shape, &strides, 0).unwrap();
        assert_eq!(Case::new(name, axes).check(&x, &DeviceChoice::Cpu), Ok(()), "{shape:?} {axes:?}");
    }
    // A MiB, by threads.
    let x = rows(DType::F32, &[515 * 523]).view(&[515, 523], &[1, 515], 0).unwrap();
    let (one, warps) = (DeviceChoice::Sim { warp: 32, orders: 1 }, DeviceChoice::Sim { warp: 64, orders: 1 });
    assert_eq!(Case::new("softmax", &[1]).check(&x, &one), Ok(()));
    assert_eq!(Case::new("layer_norm", &[0]).check(&x, &warps), Ok(()));
}

#[test]
fn groups_of_neighbouring_channels_are_columns_that_are_folded_with_each_other() {
    // Channels behind pixels: each group has a few neighbours of every pixel.
    for (at, (dtype, shape)) in [
        (DType::BF16, [2, 700, 5, 10]),
        (DType::F32, [1, 900, 8, 4]),
        (DType::F16, [3, 300, 3, 7]),
        (DType::BF16, [1, 1100, 4, 16]),
    ]
    .into_iter()
    .enumerate()
    {
        let x = rows(dtype, &shape);
        for name in ["layer_norm", "softmax"] {
            let device = DeviceChoice::Sim { warp: if at % 2 == 0 { 32 } else { 64 }, orders: 2 };
            let request = Request {
                device: device.clone(),
                ..Request::normalizing(Normalize::named(name).unwrap()).over(&[1, 3])
            };
            let planned = plan(&[array_info(&x)], &request).unwrap();
            assert_eq!(planned.name, "gpu_beside", "{name} {dtype} {shape:?}: {}", planned.trace);
            assert_eq!(Case::new(name, &[1, 3]).check(&x, &device), Ok(()), "{dtype} {shape:?}");
        }
    }
}

#[test]
fn rows_and_columns_that_are_no_whole_vectors_are_right() {
    // Shorter than a vector, where several rows are mapped as one piece of memory, and longer, whose last vector begins in the one before
    // it; blocks of rows with a rest, in all three places of the axis.
    for (turn, length) in [2, 3, 5, 7, 9, 15, 17, 23, 47].into_iter().enumerate() {
        let dtype = [DType::F32, DType::BF16, DType::F64][turn % 3];
        for (shape, axis) in [([1, 331, length], 1), ([1, 331, length], 2), ([9, 71, length], 1)] {
            let x = rows(dtype, &shape);
            for name in ["softmax", "log_softmax"] {
                assert_eq!(
                    Case::new(name, &[axis]).check(&x, &DeviceChoice::Cpu),
                    Ok(()),
                    "{shape:?} {axis}"
                );
            }
        }
    }
}

#[test]
fn long_rows_and_few_of_them_are_right() {
    for (shape, axes) in [([1, 60_000], [1usize]), ([3, 30_000], [1]), ([30_000, 3], [0]), ([900, 40], [0])] {
        let x = rows(DType::F32, &shape);
        assert_eq!(Case::new("softmax", &axes).check(&x, &EXECUTED), Ok(()), "{shape:?}");
        assert_eq!(Case::new("softmax", &axes).check(&x, &DeviceChoice::Cpu), Ok(()), "{shape:?}");
    }
}

#[test]
fn shifts_of_parts_that_each_exceed_another_a_little_do_not_drift_apart() {
    for (n, device) in [(1u32 << 12, EXECUTED), (1 << 17, SIMULATED)] {
        // Whichever bits of a position tell lanes, threads and blocks, the half that has the bit is so much greater.
        let rises: Vec<f64> = (0..n).map(|at| 8.0 * f64::from((at >> 2).count_ones())).collect();
        let x = array(DType::F32, &[1, n.into()], &rises);
        assert_eq!(Case::new("softmax", &[1]).check(&x, &device), Ok(()), "{n}");
    }
}

#[test]
fn infinities_and_nan_are_as_in_the_composed_form() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let x =
        Array::from_slice(&[5, 2], &[inf, 1.0, -inf, -inf, nan, 1.0, -inf, 1.0, 1000.0, -1000.0]).unwrap();
    let run = |name| {
        let request = Request::normalizing(Normalize::named(name).unwrap()).over(&[1]);
        let request = Request { device: EXECUTED, ..request };
        values(&coulis::reduce::run(std::slice::from_ref(&x), &request).unwrap().results[0].array)
    };
    let softmax = run("softmax");
    assert!(softmax[..6].iter().all(|v| v.is_nan()), "{softmax:?}");
    assert_eq!(softmax[6..], [0.0, 1.0, 1.0, 0.0]);
    let log = run("log_softmax");
    assert!(log[..6].iter().all(|v| v.is_nan()), "{log:?}");
    assert_eq!(log[6..], [f64::NEG_INFINITY, 0.0, 0.0, -2000.0]);
}

#[test]
fn an_array_without_axes_is_a_row_of_one_element() {
    let x = array(DType::F32, &[], &[3.0]);
    let of = |name, axis: i64| {
        let found =
            coulis::normalization::run(Normalize::named(name).unwrap(), std::slice::from_ref(&x), &[axis]);
        found.map(|found| (found.shape().to_vec(), values(&found)))
    };
    for axis in [0, -1] {
        assert_eq!(of("softmax", axis).unwrap(), (vec![], vec![1.0]));
        assert_eq!(of("log_softmax", axis).unwrap(), (vec![], vec![0.0]));
        assert_eq!(of("layer_norm", axis).unwrap(), (vec![], vec![0.0]));
    }
    assert_eq!(
        of("softmax", 1).unwrap_err().to_string(),
        "error[reduce/axis]: axis 1 is out of range: the array is a scalar and has no axes"
    );
}

#[test]
fn an_array_without_elements_gives_one_without_elements() {
    for shape in [[0, 3], [3, 0], [0, 0]] {
        for axis in [0, 1] {
            let x = Array::from_slice::<f32>(&shape, &[]).unwrap();
            let y = coulis::normalization::run(Normalize::named("softmax").unwrap(), &[x], &[axis]).unwrap();
            assert_eq!((y.shape(), y.len()), (&shape[..], 0));
        }
    }
}

/// A normalization of one's own: the distance from the smallest element in parts of the range, times a gain.
fn in_range() -> UserNormalization {
    UserNormalization {
        name: "in_range".to_owned(),
        statistics: vec!["min".to_owned(), "max".to_owned()],
        beside: vec![("gain".to_owned(), Along::All)],
        left_out: None,
        map: Arc::new(|x, s, extra| (&x[0] - &s[0]) / (&s[1] - &s[0]) * extra[0].clone()),
    }
}

#[test]
fn a_normalization_of_ones_own_reads_statistics_and_arrays() {
    let x = Array::from_slice(&[2, 3], &[1f32, 2.0, 5.0, 0.0, 10.0, 5.0]).unwrap();
    let gain = Array::from_slice(&[2, 1], &[1f64, 100.0]).unwrap();
    for device in [EXECUTED, SIMULATED] {
        let request = Request { device, ..Request::normalizing(Normalize::own(in_range())).over(&[1]) };
        let outcome = coulis::reduce::run(&[x.clone(), gain.clone()], &request).unwrap();
        assert_eq!(outcome.results[0].name, "in_range");
        assert_eq!(values(&outcome.results[0].array), [0.0, 0.25, 1.0, 0.0, 100.0, 50.0]);
    }
}

#[test]
fn wrong_requests_say_what_is_legal() {
    let x = rows(DType::F32, &[4, 6]);
    let refused = |inputs: &[Array], request: Request| {
        let request = Request { device: EXECUTED, ..request };
        coulis::reduce::run(inputs, &request).map(|_| ()).unwrap_err().to_string()
    };
    let takers: Vec<&str> = NORMALIZATIONS.iter().filter(|e| e.takes_ddof).map(|e| e.name).collect();
    let softmax = || Request::normalizing(Normalize::named("softmax").unwrap()).over(&[1]);
    let one = std::slice::from_ref(&x);
    assert_eq!(
        Normalize::named("softmin").unwrap_err().to_string(),
        format!(
            "error[normalize/request]: unknown normalization `softmin`; legal ones are {}",
            names().join(", ")
        )
    );
    assert_eq!(
        refused(one, Request { ops: vec!["sum".to_owned()], ..softmax() }),
        "error[normalize/option]: a request gives statistics or `softmax`, not both; `sum` is asked for too"
    );
    assert_eq!(
        refused(one, Request { ddof: 1.0, ..softmax() }),
        format!(
            "error[normalize/option]: `softmax` takes no ddof, and 1 is given; those that do are {}",
            takers.join(", ")
        )
    );
    assert_eq!(
        refused(one, softmax().over(&[2])),
        "error[reduce/axis]: axis 2 is out of range: the array has 2 dimensions, legal axes are -2 to 1"
    );
    assert_eq!(
        refused(&[x.clone(), x.clone()], softmax()),
        "error[normalize/input]: `softmax` is to be given 1 array(s), 1 to fold and those beside them (none), got 2"
    );
    let layer = Normalize::named("layer_norm").unwrap().beside(&["weight"]);
    assert_eq!(
        refused(&[x.clone(), rows(DType::F32, &[4])], Request::normalizing(layer).over(&[1])),
        "error[normalize/shape]: `weight` of `layer_norm` is to have a shape that broadcasts to that of the reduced \
         axes, [6], got [4]"
    );
    let mut ints = softmax();
    ints.out_dtypes.insert(String::new(), DType::I32);
    assert_eq!(
        refused(one, ints),
        "error[normalize/dtype]: `softmax` gives a float; int32 cannot hold it, the float types can"
    );
    let condition = UserNormalization {
        left_out: None,
        map: Arc::new(|x, _, _| Expr::call1(Intrinsic::IsNan, x[0].clone())),
        beside: Vec::new(),
        ..in_range()
    };
    assert_eq!(
        refused(one, Request::normalizing(Normalize::own(condition))),
        "error[normalize/request]: the map of `in_range` is to give a float scalar, got bool"
    );
}

/// Rows of numbers that their squares, or the inverse of their root mean square, do not fit: as they are, and times powers
/// of two that leave all digits.
#[test]
fn norms_without_eps_do_not_depend_on_the_magnitude_of_the_elements() {
    let long: Vec<f64> = (0..150).map(|i| f64::from((i * 37) % 101 - 40)).collect();
    let rows: [&[f64]; 3] = [&[1.0, 2.0, -3.0, 6.0], &[5.0, 7.0, 5.0], &long];
    let single = [-149, -140, -126, -100, 0, 90];
    let double = [-1074, -1060, -1022, -600, -500, -300, 0, 300];
    let half = [-24, -10, 0];
    for device in [EXECUTED, DeviceChoice::Cpu, SIMULATED] {
        for name in ["rms_norm", "layer_norm"] {
            for row in rows {
                let exact = {
                    let n = row.len() as f64;
                    let mean = if name == "rms_norm" { 0.0 } else { row.iter().sum::<f64>() / n };
                    let root = (row.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
                    row.iter().map(|v| (v - mean) / root).collect::<Vec<f64>>()
                };
                for (dtype, unit, exponents) in [
                    (DType::F32, f64::from(f32::EPSILON), &single[..]),
                    (DType::F64, f64::EPSILON, &double),
                    (DType::F16, 2f64.powi(-10), &half),
                ] {
                    for exponent in exponents {
                        let by = |v: &f64| v * 2f64.powi(exponent / 2) * 2f64.powi(exponent - exponent / 2);
                        let x =
                            array(dtype, &[1, row.len() as i64], &row.iter().map(by).collect::<Vec<f64>>());
                        let request = Request {
                            device: device.clone(),
                            ..Request::normalizing(Normalize::named(name).unwrap().with("eps", 0.0))
                                .over(&[1])
                        };
                        let outcome = coulis::reduce::run(&[x], &request).unwrap();
                        let found = values(&outcome.results[0].array);
                        let err = found.iter().zip(&exact).map(|(f, e)| (f - e).abs() / (1.0 + e.abs()));
                        let worst =
                            err.map(|e| if e.is_nan() { f64::INFINITY } else { e }).fold(0.0, f64::max);
                        // The mean is at most as large as the deviations here.
                        assert!(
                            worst <= 16.0 * unit,
                            "{name} of {dtype} times 2^{exponent} on {device:?}: {found:?} {exact:?}"
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn rows_of_equal_elements_have_no_norm_about_the_mean_without_eps_and_are_0_with_one() {
    for (dtype, eps, values_of) in [
        (DType::F32, 0.0, [0.0, 1e30]),
        (DType::F64, 0.0, [0.0, 1e300]),
        (DType::F32, 1e-300, [1e-44, 3e38]),
        (DType::F64, 1e-310, [1e-320, 1e300]),
    ] {
        for value in values_of {
            let x = array(dtype, &[1, 3], &[value; 3]);
            let normalize = Normalize::named("layer_norm").unwrap().with("eps", eps);
            let found = values(&coulis::normalization::run(normalize, &[x], &[1]).unwrap());
            let is_right = |v: &f64| if eps == 0.0 { v.is_nan() } else { *v == 0.0 };
            assert!(found.iter().all(is_right), "{dtype} {value:e} with {eps:e}: {found:?}");
        }
    }
    // The mean of so many is not one of them.
    for (n, value) in [(65, 0.1), (65, -3000.1), (7, 1e-300)] {
        let x = array(DType::F64, &[1, n], &vec![value; n as usize]);
        let normalize = Normalize::named("layer_norm").unwrap().with("eps", 0.0);
        let found = values(&coulis::normalization::run(normalize, &[x], &[1]).unwrap());
        assert!(found.iter().all(|v| v.is_nan()), "{n} of {value:e}: {found:?}");
    }
}

/// Elements of each type that reaches the end of the range of `float32`, whose differences leave it.
#[test]
fn differences_beyond_the_range_of_float32_are_no_infinities() {
    let large = [3e38, -3e38, -3e38, -3e38, 1.0, 2.0, 3.0, 4.0, 3e38, 3e38, 3e38, 3e38];
    for device in [EXECUTED, DeviceChoice::Cpu, SIMULATED] {
        for dtype in [DType::F32, DType::BF16] {
            let x = array(dtype, &[3, 4], &large);
            let bias = array(DType::F32, &[4], &[0.5, -1.0, 2.0, 0.0]);
            for name in ["layer_norm", "batch_norm"] {
                for eps in [None, Some(0.0), Some(1e-70)] {
                    let beside = (name == "layer_norm").then(|| ("bias", bias.clone()));
                    // Rows of equal elements have no norm without `eps`.
                    let x = if eps == Some(0.0) { x.view(&[2, 4], &[4, 1], 0).unwrap() } else { x.clone() };
                    let set = eps.map(|eps| ("eps", eps)).into_iter().collect();
                    let case = Case { set, beside: beside.into_iter().collect(), ..Case::new(name, &[1]) };
                    assert_eq!(case.check(&x, &device), Ok(()), "{dtype} {eps:?}");
                }
            }
            let plain = Case::new("log_softmax", &[1]);
            for case in [
                plain.clone(),
                Case { out: Some(DType::F64), ..plain.clone() },
                Case { alpha: -0.5, ..plain.clone() },
                Case { alpha: 0.25, out: Some(DType::F64), ..plain.clone() },
                Case { prior: Some(array(dtype, &[3, 4], &[3e38; 12])), ..plain },
            ] {
                assert_eq!(case.check(&x, &device), Ok(()), "{dtype} {case:?}");
            }
        }
        let x = array(DType::F32, &[1, 2], &[3e38, -3e38]);
        let mut request = Case { out: Some(DType::F64), ..Case::new("log_softmax", &[1]) }.request(&device);
        let wide = |request: &Request| {
            values(&coulis::reduce::run(std::slice::from_ref(&x), request).unwrap().results[0].array)
        };
        assert_eq!(wide(&request), [0.0, -2.0 * f64::from(3e38f32)]);
        request.alpha.insert(String::new(), -0.5);
        request.out_dtypes.clear();
        assert_eq!(wide(&request), [0.0, f64::from(3e38f32)]);
        // A weight of one row takes the result where only `alpha` brings it back.
        let x = array(DType::F32, &[1, 4], &[2.0, 0.0, 0.0, 0.0]);
        let beside = vec![("weight", array(DType::F32, &[4], &[3e38; 4]))];
        let case = Case { beside, set: vec![("eps", 0.0)], alpha: 0.5, ..Case::new("rms_norm", &[1]) };
        assert_eq!(case.check(&x, &device), Ok(()));
    }
}

/// Quotients of exponentials that `float32` does not hold, or holds only a few bits of.
#[test]
fn softmax_that_is_scaled_or_of_float64_keeps_small_quotients() {
    let row = [100.0, -100.0, 0.0, 12.5];
    let total: f64 = row.iter().map(|v| (v - 100f64).exp()).sum();
    for device in [EXECUTED, DeviceChoice::Cpu, SIMULATED] {
        for dtype in [DType::F32, DType::BF16, DType::F16] {
            let x = array(dtype, &[2, 4], &[row, row].concat());
            for alpha in [1.0, 1e30] {
                let case = Case { alpha, out: Some(DType::F64), ..Case::new("softmax", &[1]) };
                let outcome = coulis::reduce::run(std::slice::from_ref(&x), &case.request(&device)).unwrap();
                let found = values(&outcome.results[0].array);
                for (at, found) in found.iter().enumerate() {
                    let apart = (row[at % 4] - 100f64).abs();
                    let want = (-apart).exp() / total * alpha;
                    let bound = f64::from(f32::EPSILON) * (40.0 + 2.0 * apart) * want;
                    assert!((found - want).abs() <= bound, "{dtype} {found:e} {want:e} {device:?}");
                }
            }
        }
    }
}

#[test]
fn softmax_of_wide_integers_subtracts_before_it_rounds() {
    let near = [0i64, 1, -3, 1, 0, -20];
    let want = |name: &str| {
        let x = Array::from_slice(&[1, 6], &near.map(|v| v as f64)).unwrap();
        values(&coulis::normalization::run(Normalize::named(name).unwrap(), &[x], &[1]).unwrap())
    };
    let signed = |base: i64| Array::from_slice(&[1, 6], &near.map(|v| base + v)).unwrap();
    let inputs = [
        signed(1 << 60),
        signed(i64::MAX - 1),
        signed(i64::MIN + 20),
        Array::from_slice(&[1, 6], &near.map(|v| (u64::MAX - 1).wrapping_add_signed(v))).unwrap(),
    ];
    for device in [EXECUTED, DeviceChoice::Cpu, SIMULATED] {
        for name in ["softmax", "log_softmax"] {
            let request = Request {
                device: device.clone(),
                ..Request::normalizing(Normalize::named(name).unwrap()).over(&[1])
            };
            for x in &inputs {
                let outcome = coulis::reduce::run(std::slice::from_ref(x), &request).unwrap();
                let found = values(&outcome.results[0].array);
                let right =
                    found.iter().zip(want(name)).all(|(f, w)| (f - w).abs() <= 64.0 * f64::EPSILON * w.abs());
                assert!(right, "{name} on {device:?}: {found:?} {:?}", want(name));
            }
            let ends = Array::from_slice(&[1, 2], &[i64::MIN, i64::MAX]).unwrap();
            let found = values(&coulis::reduce::run(&[ends], &request).unwrap().results[0].array);
            let apart = [-(u64::MAX as f64), 0.0].map(|v| if name == "softmax" { v.exp() } else { v });
            assert_eq!(found, apart, "{name} on {device:?}");
        }
    }
}
