//! `alpha`, `beta`, priors and output types: T50 to T53.

use std::collections::BTreeMap;

use coulis::{Array, DType, Request};

use crate::common::{Special, array, numbers};
use crate::harness::{Compiled, exact_everywhere, number, places};

fn by_name(pairs: &[(&str, f64)]) -> BTreeMap<String, f64> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect()
}

#[test]
fn mr_t50_alpha_and_beta_with_a_prior_differing_by_output() {
    for (shape, axes, out) in
        [(vec![6i64, 90], vec![1i64], 6i64), (vec![90, 6], vec![0], 6), (vec![4000], vec![0], 1)]
    {
        let n = shape.iter().product::<i64>() as usize;
        let input = array(DType::F32, &shape, &numbers(n, Special::Zeros, 5));
        let out_shape: Vec<i64> = if axes.len() == shape.len() { Vec::new() } else { vec![out] };
        let prior = array(DType::F32, &out_shape, &numbers(out as usize, Special::Zeros, 6));
        type Factors = &'static [(&'static str, f64)];
        let cases: [(Factors, Factors); 4] = [
            (&[("", 1.0)], &[("", 0.0)]),
            (&[("", 0.5)], &[("", 0.25)]),
            (&[("sum", 2.0), ("max", -1.0)], &[("max", 3.0)]),
            (&[("", 0.0)], &[("sum", -1.0)]),
        ];
        for (alpha, beta) in cases {
            let call = Request {
                alpha: by_name(alpha),
                beta: by_name(beta),
                prior: ["sum", "max"].map(|op| (op.to_owned(), prior.clone())).into(),
                ..Request::new(&["sum", "max"]).over(&axes)
            };
            exact_everywhere(std::slice::from_ref(&input), &call, Compiled::No);
        }
    }
}

#[test]
fn mr_t51_beta_of_zero_never_reads_the_prior_or_the_output() {
    use coulis_io::AlignedBytes;
    let input = array(DType::F32, &[5, 200], &numbers(1000, Special::Zeros, 3));
    let nan = Array::from_slice(&[5], &[f32::NAN; 5]).unwrap();
    let call = Request {
        alpha: by_name(&[("", 2.0)]),
        beta: by_name(&[("", 0.0)]),
        prior: [("sum".to_owned(), nan)].into(),
        ..Request::new(&["sum"]).over(&[1])
    };
    exact_everywhere(std::slice::from_ref(&input), &call, Compiled::No);
    for device in places(1000, Compiled::No) {
        let call = Request { device, ..call.clone() };
        let prepared = coulis::reduce::prepare(&[coulis::reduce::array_info(&input)], &call).unwrap();
        let mut outputs = vec![AlignedBytes::copy_of(&[0xff; 20]).unwrap()];
        prepared.launch(&[&input], &[], &mut outputs).unwrap();
        assert!(outputs[0].as_slice().chunks(4).all(|b| b != [0xff; 4]), "{}", prepared.device_name());
    }
}

#[test]
fn mr_t52_beta_counts_once_where_the_fold_is_split() {
    // Long enough for many parts in every plan.
    let n = 600_000usize;
    let input = array(DType::F32, &[n as i64], &vec![1.0; n]);
    let prior = Array::from_slice(&[], &[1000.0f32]).unwrap();
    for device in places(n, Compiled::Yes) {
        let call = Request {
            device,
            beta: by_name(&[("sum", 2.0)]),
            prior: [("sum".to_owned(), prior.clone())].into(),
            ..Request::new(&["sum"])
        };
        let outcome = coulis::reduce::run(std::slice::from_ref(&input), &call).unwrap();
        assert_eq!(number(outcome.results[0].array.scalars().next().unwrap()), n as f64 + 2000.0);
    }
}

#[test]
fn mr_t53_each_statistic_in_its_own_type() {
    let input = array(DType::BF16, &[12, 77], &numbers(12 * 77, Special::Zeros, 8));
    let out: BTreeMap<String, DType> =
        [("sum", DType::F64), ("mean", DType::F16), ("max", DType::BF16), ("meansq", DType::F32)]
            .map(|(op, dtype)| (op.to_owned(), dtype))
            .into();
    let call =
        Request { out_dtypes: out, ..Request::new(&["sum", "mean", "max", "meansq", "count"]).over(&[1]) };
    exact_everywhere(std::slice::from_ref(&input), &call, Compiled::Yes);
    let outcome = coulis::reduce::run(&[input], &call).unwrap();
    let dtypes: Vec<DType> = outcome.results.iter().map(|r| r.array.dtype()).collect();
    assert_eq!(dtypes, [DType::F64, DType::F16, DType::BF16, DType::F32, DType::I64]);
}
