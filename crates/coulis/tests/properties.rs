//! Random calls of `reduce` against exact answers: shapes, views, axes, masks, dtypes, values and options.

mod common;

use std::collections::BTreeMap;

use common::{Lie, Special, array, check, length_and_lie, numbers, view};
use coulis::{Array, DType, DeviceChoice, NanPolicy, Order, Request};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// A random call of one input.
#[derive(Clone, Debug)]
struct Case {
    dtype: DType,
    axes: Vec<Axis>,
    order_seed: u64,
    ops: Vec<&'static str>,
    special: Special,
    nan: NanPolicy,
    mask: Option<u8>,
    keepdims: bool,
    ddof: f64,
    alpha: f64,
    beta: f64,
    out: Option<DType>,
    threads: usize,
    seed: u64,
}

#[derive(Clone, Copy, Debug)]
struct Axis {
    length: i64,
    lie: Lie,
    reduced: bool,
    negative: bool,
}

fn axis() -> impl Strategy<Value = Axis> {
    let (length, lie) = length_and_lie();
    (length, lie, any::<bool>(), any::<bool>()).prop_map(|(length, lie, reduced, negative)| Axis {
        length,
        lie,
        reduced,
        negative,
    })
}

fn ops() -> impl Strategy<Value = Vec<&'static str>> {
    let names: Vec<&'static str> =
        coulis::CATALOGUE.iter().filter(|e| e.n_inputs == 1).map(|e| e.name).collect();
    prop::sample::subsequence(names, 1..4).prop_shuffle()
}

fn case() -> impl Strategy<Value = Case> {
    let special = [Special::Zeros, Special::Nan, Special::All, Special::MostlyNan, Special::Few];
    let special = prop::sample::select(special.to_vec());
    let nan = prop::sample::select(vec![NanPolicy::Propagate, NanPolicy::Ignore]);
    let out = prop::option::weighted(0.3, prop::sample::select(vec![DType::F64, DType::F32, DType::F16]));
    let factor = || prop_oneof![3 => Just(None), 1 => Just(Some(-0.5)), 1 => Just(Some(3.0))];
    (
        (prop::sample::select(DType::ALL.to_vec()), prop::collection::vec(axis(), 0..5), any::<u64>(), ops()),
        (special, nan, prop::option::weighted(0.4, 0u8..16), any::<bool>()),
        (prop::sample::select(vec![0.0, 1.0, 2.5]), factor(), factor(), out, 1usize..3, any::<u64>()),
    )
        .prop_map(|((dtype, axes, order_seed, ops), (special, nan, mask, keepdims), rest)| {
            let (ddof, alpha, beta, out, threads, seed) = rest;
            let scaled = alpha.is_some() || beta.is_some();
            Case {
                dtype,
                axes: limited(axes),
                order_seed,
                ops,
                special,
                nan,
                mask,
                keepdims,
                ddof,
                alpha: alpha.unwrap_or(1.0),
                beta: beta.unwrap_or(0.0),
                out: out.or(scaled.then_some(DType::F64)),
                threads,
                seed,
            }
        })
}

/// The same with lengths cut down until exact arithmetic takes no time.
fn limited(mut axes: Vec<Axis>) -> Vec<Axis> {
    while axes.iter().map(|a| a.length.max(1)).product::<i64>() > 6000 {
        for axis in &mut axes {
            axis.length = if axis.length > 3 { axis.length / 2 + 1 } else { axis.length };
        }
    }
    axes
}

impl Case {
    fn input(&self) -> Array {
        let shape: Vec<i64> = self.axes.iter().map(|a| a.length).collect();
        let lies: Vec<Lie> = self.axes.iter().map(|a| a.lie).collect();
        let mut order: Vec<usize> = (0..shape.len()).collect();
        if self.order_seed % 2 == 1 {
            let by = (self.order_seed >> 8) as usize % order.len().max(1);
            order.rotate_left(by);
            if self.order_seed & 4 != 0 {
                order.reverse();
            }
        }
        view(self.dtype, &shape, &order, &lies, |n| numbers(n, self.special, self.seed))
    }

    /// A mask that has the bits' axes and is broadcast along the others.
    fn mask(&self) -> Option<Array> {
        let bits = self.mask?;
        let extents = self.axes.iter().enumerate();
        let shape: Vec<i64> = extents.map(|(i, a)| if bits >> i & 1 == 1 { a.length } else { 1 }).collect();
        let skip = shape.iter().take_while(|&&n| n == 1).count() * usize::from(self.seed & 1 == 1);
        let shape = &shape[skip..];
        let n = shape.iter().product::<i64>() as usize;
        Some(array(DType::Bool, shape, &numbers(n, Special::Zeros, self.seed ^ 99)))
    }

    fn request(&self) -> Request {
        let rank = self.axes.len() as i64;
        let reduced = self.axes.iter().enumerate().filter(|(_, a)| a.reduced);
        let axes = reduced.map(|(i, a)| if a.negative { i as i64 - rank } else { i as i64 });
        let axes: Vec<i64> = axes.collect();
        let mut ops = self.ops.clone();
        if self.out.is_some() {
            // Positions stay integers; bools and counts may be stored as anything.
            ops.retain(|op| !coulis_reducers::find(op).is_ok_and(|entry| entry.empty_index_is_error()));
            if ops.is_empty() {
                ops.push("sum");
            }
        }
        let mut request = Request { device: DeviceChoice::CpuExecuted, ..Request::new(&ops).over(&axes) };
        let all = |v: f64| BTreeMap::from([(String::new(), v)]);
        request.where_ = self.mask();
        request.nan = self.nan;
        request.keepdims = self.keepdims;
        request.order = if self.order_seed & 2 == 0 { Order::RowMajor } else { Order::OfInput };
        if ops.iter().any(|op| coulis_reducers::find(op).is_ok_and(|entry| entry.takes_ddof)) {
            request.ddof = self.ddof;
        }
        request.threads = Some(self.threads);
        request.out_dtypes = self.out.map(|d| BTreeMap::from([(String::new(), d)])).unwrap_or_default();
        request.alpha = all(self.alpha);
        request.beta = all(self.beta);
        if self.beta != 0.0 {
            let shape: Vec<i64> = self
                .axes
                .iter()
                .filter(|a| !a.reduced || self.keepdims)
                .map(|a| if a.reduced { 1 } else { a.length })
                .collect();
            let n = shape.iter().product::<i64>() as usize;
            let prior =
                array(self.out.unwrap_or(DType::F64), &shape, &numbers(n, Special::Zeros, self.seed ^ 5));
            request.prior = ops.iter().map(|op| ((*op).to_owned(), prior.clone())).collect();
        }
        request
    }
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: None,
        rng_seed: RngSeed::Fixed(11),
        max_shrink_iters: 60,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn random_calls_give_the_exact_answers(case in case()) {
        let result = check(&[case.input()], &case.request());
        prop_assert!(result.is_ok(), "{}\n{case:?}", result.unwrap_err());
    }
}

proptest! {
    #![proptest_config(config(40))]

    #[test]
    fn random_calls_of_two_inputs_give_the_exact_answers(case in case(), broadcast in 0u8..16) {
        let first = case.input();
        let shape: Vec<i64> = first.shape().iter().enumerate()
            .map(|(i, &n)| if broadcast >> i & 1 == 1 { 1 } else { n })
            .collect();
        let n = shape.iter().product::<i64>() as usize;
        let weights: Vec<f64> = numbers(n, Special::Zeros, case.seed ^ 3).iter().map(|v| v.abs() + 0.25).collect();
        let second = array(case.dtype, &shape, &weights);
        let case = Case { ops: vec!["dot", "wmean"], mask: case.mask, ..case };
        let result = check(&[first, second], &case.request());
        prop_assert!(result.is_ok(), "{}\n{case:?}", result.unwrap_err());
    }
}

proptest! {
    #![proptest_config(config(10))]

    #[test]
    fn random_calls_give_the_exact_answers_when_compiled(case in case()) {
        let request = Request { device: DeviceChoice::Auto, ..case.request() };
        let result = check(&[case.input()], &request);
        prop_assert!(result.is_ok(), "{}\n{case:?}", result.unwrap_err());
    }
}
