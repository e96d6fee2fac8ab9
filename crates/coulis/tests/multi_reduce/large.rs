//! Counts at and beyond what 32 bits hold, over zero-stride views: T4 to T7, T19, T20.

use std::collections::BTreeMap;

use coulis::{Array, DType, DeviceChoice, Request, Scalar};

use crate::common::executed;
use crate::harness::{Compiled, number, places, repeated};

fn ones(n: usize) -> Array {
    Array::from_slice(&[n as i64], &vec![1i8; n]).unwrap()
}

/// The results of a request on each device that has the memory and the time for a large view.
fn each(input: &Array, call: &Request, judge: impl Fn(&[f64])) {
    for device in places(usize::MAX, Compiled::Yes) {
        let call = Request { device, threads: None, ..call.clone() };
        let outcome = coulis::reduce::run(std::slice::from_ref(input), &call).unwrap();
        let found: Vec<f64> =
            outcome.results.iter().map(|r| number(r.array.scalars().next().unwrap())).collect();
        judge(&found);
    }
}

#[test]
fn mr_t4_powers_of_two_up_to_two_to_the_32() {
    let row = ones(1 << 20);
    for power in [16, 20, 24, 28, 32] {
        let input = match power {
            16 => ones(1 << 16),
            _ => repeated(&row, 1 << (power - 20)),
        };
        each(&input, &Request::new(&["sum", "count"]), |found| {
            assert_eq!(found, [(1u64 << power) as f64; 2]);
        });
    }
}

#[test]
fn mr_t5_counts_near_the_limits_of_32_bit_indices_with_an_initial_value() {
    // 2^31 - 2 = 42966 * 49981, 2^32 - 1 = 65535 * 65537, and 2^32 - 1 + 2_000_000 = 4296967295 = 5 * 859393459.
    for (rows, columns) in [(42_966i64, 49_981i64), (65_537, 65_535)] {
        let row: Vec<i16> = (0..columns).map(|i| (i % 1000) as i16).collect();
        let sum_of_row: i64 = row.iter().map(|v| i64::from(*v)).sum();
        let input = repeated(&Array::from_slice(&[columns], &row).unwrap(), rows);
        let init = BTreeMap::from([("sum".to_owned(), Scalar::Int(42))]);
        each(&input, &Request { init, ..Request::new(&["sum", "max"]) }, |found| {
            assert_eq!(found, [(sum_of_row * rows + 42) as f64, 999.0]);
        });
    }
}

#[test]
fn mr_t6_as_many_ones_as_the_sum_says() {
    let row = ones(1 << 20);
    for times in [1 << 10, 1 << 11, 1 << 13] {
        each(&repeated(&row, times), &Request::new(&["sum"]), |found| {
            assert_eq!(found, [(times << 20) as f64])
        });
    }
    each(&repeated(&ones(65_535), 65_537), &Request::new(&["sum"]), |found| {
        assert_eq!(found, [4_294_967_295.0]);
    });
}

#[test]
fn mr_t7_multiples_of_the_largest_int32() {
    const MAX: i64 = i32::MAX as i64;
    let one = ones(1);
    let whole = one.view(&[MAX], &[0], 0).unwrap();
    let pair = Array::from_slice(&[2], &[1i8, 2]).unwrap().view(&[MAX, 2], &[0, 1], 0).unwrap();
    for (input, want) in [(whole, MAX), (pair, 3 * MAX)] {
        // One element after another takes minutes where it is not compiled.
        let call = Request { device: DeviceChoice::CpuCompiled, ..Request::new(&["sum"]) };
        match coulis::reduce::run(std::slice::from_ref(&input), &call) {
            Ok(outcome) => {
                assert_eq!(number(outcome.results[0].array.scalars().next().unwrap()), want as f64)
            }
            Err(why) => println!("SKIP: {why}"),
        }
    }
}

#[test]
fn mr_t19_more_than_two_to_the_31_elements_of_small_extents() {
    let mut row = vec![0i8; 46_342];
    row[46_000] = 7;
    let row = Array::from_slice(&[46_342], &row).unwrap();
    let input = repeated(&row, 46_342);
    each(&input, &Request::new(&["max", "sum"]), |found| assert_eq!(found, [7.0, 7.0 * 46_342.0]));
    let columns = Request::new(&["max"]).over(&[0]);
    for device in places(usize::MAX, Compiled::Yes) {
        let call = Request { device, ..columns.clone() };
        let outcome = coulis::reduce::run(std::slice::from_ref(&input), &call).unwrap();
        let found = outcome.results[0].array.as_slice::<i8>().unwrap();
        assert!(found.iter().enumerate().all(|(at, v)| *v == if at == 46_000 { 7 } else { 0 }));
    }
}

#[test]
fn mr_t20_a_stride_times_an_extent_beyond_32_bits() {
    use std::os::unix::fs::FileExt;
    // Rows 2^31 + 5 elements apart in a mapped file of holes: only the pages that are written exist.
    let stride = (1i64 << 31) + 5;
    let file = tempfile::NamedTempFile::new().unwrap();
    let length = 2 * stride + 64;
    file.as_file().set_len(length as u64).unwrap();
    for row in 0..3 {
        file.as_file().write_all_at(&[row as u8 + 1; 64], (row * stride) as u64).unwrap();
    }
    let spec = coulis::RawSpec { dtype: DType::U8, shape: vec![length] };
    let options = coulis::ReadOptions { raw: Some(spec), ..coulis::ReadOptions::default() };
    let rows = coulis::read(file.path(), &options).unwrap().view(&[3, 64], &[stride, 1], 0).unwrap();
    for device in [DeviceChoice::CpuExecuted, DeviceChoice::Auto] {
        let call = Request { device, ..executed(&["sum", "max"], &[1]) };
        let outcome = coulis::reduce::run(std::slice::from_ref(&rows), &call).unwrap();
        assert_eq!(outcome.results[0].array.as_slice::<u64>(), Some(&[64, 128, 192][..]));
        assert_eq!(outcome.results[1].array.as_slice::<u8>(), Some(&[1, 2, 3][..]));
        let columns = Request { axes: Some(vec![0]), ..call };
        let outcome = coulis::reduce::run(std::slice::from_ref(&rows), &columns).unwrap();
        assert_eq!(outcome.results[0].array.as_slice::<u64>(), Some(&[6; 64][..]));
    }
}
