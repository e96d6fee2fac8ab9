//! The same call again, side by side, and from the cache: T67, T71, T76 to T78.

use coulis::{DType, DeviceChoice, Request};
use coulis_io::AlignedBytes;

use crate::common::{Special, array, numbers};
use crate::harness::{Compiled, array_of, places, whole};

#[test]
fn mr_t67_twenty_runs_give_the_same_bits() {
    let input = array(DType::F32, &[100_000], &numbers(100_000, Special::Zeros, 6));
    for device in places(100_000, Compiled::Yes) {
        let call = Request { device, ..Request::new(&["sum", "var", "logsumexp"]) };
        let bits = || -> Vec<u32> {
            let outcome = coulis::reduce::run(std::slice::from_ref(&input), &call).unwrap();
            outcome.results.iter().map(|r| r.array.as_slice::<f32>().unwrap()[0].to_bits()).collect()
        };
        let first = bits();
        assert!((0..19).all(|_| bits() == first));
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    let input = array(DType::F32, &[300_000], &numbers(300_000, Special::Zeros, 6));
    let bits = |threads: usize| {
        let call =
            Request { threads: Some(threads), device: DeviceChoice::Cpu, ..Request::new(&["sum", "var"]) };
        let outcome = coulis::reduce::run(std::slice::from_ref(&input), &call).unwrap();
        outcome.results.iter().map(|r| r.array.as_slice::<f32>().unwrap()[0].to_bits()).collect::<Vec<_>>()
    };
    assert_eq!(bits(2), bits(3));
    assert_eq!(bits(2), bits(4));
}

#[test]
fn mr_t71_narrow_integers_sum_in_wide_ones() {
    let input = array_of(DType::U8, &[4], &[0, 1, 2, 3]);
    for device in places(4, Compiled::Yes) {
        let call = Request { device, ..Request::new(&["sum"]) };
        let outcome = coulis::reduce::run(std::slice::from_ref(&input), &call).unwrap();
        assert_eq!(outcome.results[0].array.as_slice::<u64>(), Some(&[6u64][..]));
    }
}

#[test]
fn mr_t76_launching_again_into_the_same_output_does_not_accumulate() {
    let values = whole(50_000, DType::F32, 3);
    for shape in [[1i64, 50_000], [50, 1000], [5000, 10]] {
        let input = array_of(DType::F32, &shape, &values);
        for device in places(input.len(), Compiled::No) {
            let call = Request { device, ..Request::new(&["sum", "max"]).over(&[1]) };
            let prepared = coulis::reduce::prepare(&[coulis::reduce::array_info(&input)], &call).unwrap();
            let mut outputs = prepared.allocate().unwrap();
            prepared.launch(&[&input], &[], &mut outputs).unwrap();
            let first: Vec<Vec<u8>> = outputs.iter().map(|o| o.as_slice().to_vec()).collect();
            for _ in 0..3 {
                prepared.launch(&[&input], &[], &mut outputs).unwrap();
                assert!(outputs.iter().zip(&first).all(|(o, f)| o.as_slice() == &f[..]));
            }
        }
    }
}

#[test]
fn mr_t77_one_prepared_call_runs_on_several_threads_at_once() {
    for n in [1000usize, 400_000] {
        for device in places(n, Compiled::Yes) {
            let inputs: Vec<_> = (0..4)
                .map(|seed| array_of(DType::F32, &[n as i64], &whole(n, DType::F32, seed + 1)))
                .collect();
            let call = Request { device, threads: Some(2), ..Request::new(&["sum", "var"]) };
            let prepared = coulis::reduce::prepare(&[coulis::reduce::array_info(&inputs[0])], &call).unwrap();
            let alone: Vec<Vec<AlignedBytes>> = inputs
                .iter()
                .map(|input| {
                    let mut outputs = prepared.allocate().unwrap();
                    prepared.launch(&[input], &[], &mut outputs).unwrap();
                    outputs
                })
                .collect();
            std::thread::scope(|scope| {
                for (input, alone) in inputs.iter().zip(&alone) {
                    let prepared = &prepared;
                    scope.spawn(move || {
                        for _ in 0..8 {
                            let mut outputs = prepared.allocate().unwrap();
                            prepared.launch(&[input], &[], &mut outputs).unwrap();
                            assert!(outputs.iter().zip(alone).all(|(a, b)| a.as_slice() == b.as_slice()));
                        }
                    });
                }
            });
        }
    }
}

#[test]
fn mr_t78_the_second_call_finds_the_kernel_of_the_first() {
    let input = array_of(DType::F32, &[70, 30], &whole(2100, DType::F32, 3));
    let info = coulis::reduce::array_info(&input);
    for device in places(2100, Compiled::Yes) {
        let call = Request { device, ..Request::new(&["sum", "norm1"]).over(&[0]) };
        let first = coulis::reduce::prepare(std::slice::from_ref(&info), &call).unwrap();
        let again = coulis::reduce::prepare(std::slice::from_ref(&info), &call).unwrap();
        assert!(std::ptr::eq(first.plan(), again.plan()), "one kernel, shared");
        let longer = coulis::ArrayInfo { shape: vec![71, 30], ..info.clone() };
        let other = coulis::reduce::prepare(&[longer], &call).unwrap();
        assert_eq!(first.plan().trace, other.plan().trace, "another length, the same kernel");
    }
}
