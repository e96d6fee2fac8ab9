//! Special values: NaN, infinities, signed zeros, subnormals, the ends of ranges (T42 to T49).

use coulis::{Array, DType, NanPolicy, Request};
use half::{bf16, f16};

use crate::common::{Special, array, numbers};
use crate::harness::{Compiled, exact_everywhere, number, places};

const FLOATS: [DType; 4] = [DType::F16, DType::BF16, DType::F32, DType::F64];

#[test]
fn mr_t42_scattered_nan_give_the_same_minimum_in_every_plan() {
    for (shape, axes) in [(vec![2000i64], vec![0i64]), (vec![4, 500], vec![1]), (vec![500, 4], vec![0])] {
        for special in [Special::Nan, Special::MostlyNan] {
            let input = array(DType::F32, &shape, &numbers(2000, special, 40));
            for nan in [NanPolicy::Propagate, NanPolicy::Ignore] {
                let call = Request { nan, ..Request::new(&["min", "max", "argmin"]).over(&axes) };
                exact_everywhere(std::slice::from_ref(&input), &call, Compiled::No);
            }
        }
    }
}

#[test]
fn mr_t43_nan_at_each_place_under_both_policies() {
    let ops = ["sum", "mean", "min", "max", "absmax", "var", "any", "count_nonzero"];
    let n = 75usize;
    let places: [&dyn Fn(usize) -> bool; 5] =
        [&|at| at == 0, &|at| at == n / 2, &|at| at == n - 1, &|_| true, &|_| false];
    for dtype in FLOATS {
        for is_nan in places {
            let values: Vec<f64> =
                (0..n).map(|at| if is_nan(at) { f64::NAN } else { (at % 7) as f64 - 3.0 }).collect();
            let input = array(dtype, &[1, n as i64], &values);
            for nan in [NanPolicy::Propagate, NanPolicy::Ignore] {
                let call = Request { nan, ..Request::new(&ops).over(&[1]) };
                exact_everywhere(std::slice::from_ref(&input), &call, Compiled::No);
            }
        }
    }
}

#[test]
fn mr_t44_rows_of_infinities_and_of_both() {
    let rows: [&[f64]; 4] = [
        &[f64::INFINITY, f64::INFINITY, 1.0],
        &[f64::NEG_INFINITY, -1.0, f64::NEG_INFINITY],
        &[f64::INFINITY, f64::NEG_INFINITY, 0.0],
        &[1.0, f64::INFINITY, f64::NAN],
    ];
    let ops = ["sum", "mean", "min", "max", "absmax", "argmin", "argmax", "logsumexp", "norm2"];
    for dtype in FLOATS {
        for row in rows {
            let values: Vec<f64> = row.iter().copied().cycle().take(300).collect();
            let input = array(dtype, &[2, 150], &values);
            exact_everywhere(&[input], &Request::new(&ops).over(&[1]), Compiled::No);
        }
    }
}

#[test]
fn mr_t45_a_mean_with_nan_is_nan_unless_they_are_ignored() {
    let input = array(DType::F16, &[3, 40], &numbers(120, Special::Nan, 4));
    for nan in [NanPolicy::Propagate, NanPolicy::Ignore] {
        let call = Request { nan, ..Request::new(&["mean"]).over(&[1]) };
        exact_everywhere(std::slice::from_ref(&input), &call, Compiled::Yes);
    }
}

#[test]
fn mr_t46_subnormals_stay_and_half_floats_reach_their_ends() {
    let tiny = Array::from_slice(&[64], &[f32::from_bits(1); 64]).unwrap();
    let tiny_half = Array::from_slice(&[64], &[f16::from_bits(1); 64]).unwrap();
    let tiny_brain = Array::from_slice(&[64], &[bf16::from_bits(1); 64]).unwrap();
    let tiny_double = Array::from_slice(&[64], &[f64::from_bits(1); 64]).unwrap();
    for input in [tiny, tiny_half, tiny_brain, tiny_double] {
        exact_everywhere(&[input], &Request::new(&["sum", "max", "min", "mean", "any"]), Compiled::Yes);
    }
    let ends = Array::from_slice(&[3], &[f16::MAX, f16::MAX, f16::from_f32(-65_504.0)]).unwrap();
    exact_everywhere(
        std::slice::from_ref(&ends),
        &Request::new(&["sum", "max", "min", "mean", "absmax"]),
        Compiled::No,
    );
    let over = Array::from_slice(&[2], &[f16::MAX, f16::MAX]).unwrap();
    for device in places(2, Compiled::Yes) {
        let call = Request { device, ..Request::new(&["sum"]) };
        let outcome = coulis::reduce::run(std::slice::from_ref(&over), &call).unwrap();
        assert_eq!(outcome.results[0].array.as_slice::<f16>(), Some(&[f16::INFINITY][..]));
    }
    let zeros = Array::from_slice(&[4], &[0.0f32, -0.0, -0.0, 0.0]).unwrap();
    exact_everywhere(
        &[zeros],
        &Request::new(&["sum", "min", "max", "absmax", "any", "argmin"]),
        Compiled::No,
    );
}

#[test]
fn mr_t47_the_most_negative_integers() {
    let eight = Array::from_slice(&[3], &[i8::MIN, 5, i8::MIN]).unwrap();
    let sixteen = Array::from_slice(&[3], &[i16::MIN, 5, i16::MIN]).unwrap();
    let thirty_two = Array::from_slice(&[3], &[i32::MIN, 5, i32::MIN]).unwrap();
    let sixty_four = Array::from_slice(&[3], &[i64::MIN, 5, 7]).unwrap();
    for input in [eight, sixteen, thirty_two, sixty_four] {
        let ops = ["absmax", "norm1", "sumsq", "min", "norm2", "meansq"];
        exact_everywhere(std::slice::from_ref(&input), &Request::new(&ops), Compiled::Yes);
    }
}

#[test]
fn mr_t48_integer_means_do_not_overflow_and_sums_of_64_bits_wrap() {
    let large = Array::from_slice(&[4], &[i32::MAX; 4]).unwrap();
    exact_everywhere(&[large], &Request::new(&["mean", "var", "sum"]), Compiled::No);
    let larger = Array::from_slice(&[4], &[i64::MAX, i64::MAX, i64::MAX, 5]).unwrap();
    exact_everywhere(std::slice::from_ref(&larger), &Request::new(&["mean", "min"]), Compiled::No);
    let unsigned = Array::from_slice(&[3], &[u64::MAX, u64::MAX, 3]).unwrap();
    for device in places(4, Compiled::Yes) {
        let call = Request { device, ..Request::new(&["sum"]) };
        let signed = coulis::reduce::run(std::slice::from_ref(&larger), &call).unwrap();
        assert_eq!(
            signed.results[0].array.as_slice::<i64>(),
            Some(&[i64::MAX.wrapping_mul(3).wrapping_add(5)][..])
        );
        let found = coulis::reduce::run(std::slice::from_ref(&unsigned), &call).unwrap();
        assert_eq!(found.results[0].array.as_slice::<u64>(), Some(&[1u64][..]));
    }
}

#[test]
fn mr_t49_long_sums_of_narrow_floats() {
    // 70000 ones in bf16 stop at 256 where the accumulator is bf16.
    let n = 70_000usize;
    for dtype in [DType::F16, DType::BF16, DType::F32] {
        let ones = array(dtype, &[n as i64], &vec![1.0; n]);
        for device in places(n, Compiled::Yes) {
            let out = std::collections::BTreeMap::from([(String::new(), DType::F32)]);
            let call = Request { device, out_dtypes: out, ..Request::new(&["sum", "mean"]) };
            let outcome = coulis::reduce::run(std::slice::from_ref(&ones), &call).unwrap();
            let found: Vec<f64> =
                outcome.results.iter().flat_map(|r| r.array.scalars().map(number)).collect();
            assert_eq!(found, [n as f64, 1.0], "{dtype} on {}", outcome.device);
        }
    }
    let tenths = array(DType::F32, &[300_000], &vec![0.1; 300_000]);
    exact_everywhere(&[tenths], &Request::new(&["sum", "mean", "sumsq"]), Compiled::No);
}
