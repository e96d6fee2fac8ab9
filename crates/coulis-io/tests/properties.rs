//! Round trips of random arrays, and random damage to sound files: an answer or an error, never a panic.

#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use coulis_io::{Array, NpyHeader, ReadOptions, Scalar, parse_npy, read, read_all, write_npy, write_npz};
use coulis_ir::DType;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};

/// A runner with a fixed seed, so that a failure repeats.
fn runner(cases: u32) -> TestRunner {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

fn dtypes() -> impl Strategy<Value = DType> {
    proptest::sample::select(DType::ALL.to_vec())
}

/// Arrays of every dtype and of rank 0 to 4 with random bytes, lengths 0 and 1 included; bools are 0 or 1.
fn arrays() -> impl Strategy<Value = Array> {
    (dtypes(), proptest::collection::vec(0_i64..5, 0..5)).prop_flat_map(|(dtype, shape)| {
        let n_bytes = shape.iter().product::<i64>() as usize * dtype.bytes();
        proptest::collection::vec(any::<u8>(), n_bytes).prop_map(move |mut bytes| {
            if dtype == DType::Bool {
                bytes.iter_mut().for_each(|byte| *byte &= 1);
            }
            Array::from_bytes(dtype, &shape, &bytes).unwrap()
        })
    })
}

fn bits(array: &Array) -> Vec<u64> {
    let bits_of = |scalar| match scalar {
        Scalar::Bool(value) => u64::from(value),
        Scalar::Int(value) => value as u64,
        Scalar::UInt(value) => value,
        Scalar::Float(value) => value.to_bits(),
    };
    array.scalars().map(bits_of).collect()
}

#[test]
fn an_npy_file_gives_back_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let check = |array: Array| {
        for array in [array.clone(), array.transposed()] {
            write_npy(&path, &array).unwrap();
            let back = read(&path, &ReadOptions::default()).unwrap();
            prop_assert_eq!((back.dtype(), back.shape()), (array.dtype(), array.shape()));
            prop_assert_eq!(bits(&back), bits(&array));
            prop_assert_eq!(back.is_mapped(), !array.is_empty());
        }
        Ok(())
    };
    runner(300).run(&arrays(), check).unwrap();
}

#[test]
fn an_npz_file_gives_back_what_was_written_and_stays_mapped() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npz");
    let check = |arrays: Vec<Array>| {
        let members: Vec<(String, Array)> =
            arrays.into_iter().enumerate().map(|(i, array)| (format!("m{i}.part"), array)).collect();
        write_npz(&path, &members).unwrap();
        let back = read_all(&path).unwrap();
        prop_assert_eq!(back.len(), members.len());
        for ((name, array), (back_name, back)) in members.iter().zip(&back) {
            prop_assert_eq!(name, back_name);
            prop_assert_eq!((back.dtype(), back.shape()), (array.dtype(), array.shape()));
            prop_assert_eq!(bits(back), bits(array));
            prop_assert_eq!(back.is_mapped(), !array.is_empty());
        }
        Ok(())
    };
    runner(100).run(&proptest::collection::vec(arrays(), 0..4), check).unwrap();
}

/// Touches every element, so that a wrong bound would be seen by the sanitizers and by the bounds checks.
fn touch(array: &Array) {
    assert_eq!(array.scalars().count(), array.len());
}

/// Damage: bytes overwritten at relative positions, then a cut.
type Damage = (Vec<(u16, u8)>, u16);

fn damages() -> impl Strategy<Value = Damage> {
    (
        proptest::collection::vec((any::<u16>(), any::<u8>()), 0..4),
        prop_oneof![3 => Just(u16::MAX), 1 => any::<u16>()],
    )
}

fn damaged(whole: &[u8], (changes, cut): &Damage) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for &(at, byte) in changes {
        let at = usize::from(at) % bytes.len();
        bytes[at] = byte;
    }
    if *cut != u16::MAX {
        bytes.truncate(usize::from(*cut) % (whole.len() + 1));
    }
    bytes
}

#[test]
fn damaged_files_give_an_answer_or_an_error() {
    let data = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let folder = tempfile::tempdir().unwrap();
    for name in
        ["fortran_f8.npy", "big_endian_i4.npy", "two_stored.npz", "one_deflated.npz", "three.safetensors"]
    {
        let whole = std::fs::read(data.join(name)).unwrap();
        let path = folder.path().join(name);
        let check = |damage: Damage| {
            std::fs::write(&path, damaged(&whole, &damage)).unwrap();
            for (_, array) in read_all(&path).unwrap_or_default() {
                touch(&array);
            }
            Ok(())
        };
        runner(250).run(&damages(), check).unwrap();
    }
}

#[test]
fn random_header_text_gives_an_answer_or_an_error() {
    let words = proptest::sample::select(vec![
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        ":",
        ",",
        "'",
        "'descr'",
        "'shape'",
        "'fortran_order'",
        "True",
        "'<f4'",
        "3",
        "-1",
        "L",
        "99999999999999999999",
        " ",
        "\\",
        "'V2'",
        "(2,)",
    ]);
    let check = |words: Vec<&str>| {
        let text = words.concat();
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes.resize(bytes.len() + 64, 0);
        if let Ok(array) = parse_npy(&bytes) {
            touch(&array);
        }
        Ok(())
    };
    runner(5000).run(&proptest::collection::vec(words, 0..16), check).unwrap();
}

/// Where both readers understand a header, they say the same; npyz knows no `bfloat16` and no Python 2 `L`.
#[test]
fn headers_are_read_as_the_npyz_crate_reads_them() {
    let whole =
        std::fs::read(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/fortran_f8.npy"))
            .unwrap();
    let mut n_both = 0;
    let mut check_bytes = |bytes: &[u8]| {
        let ours = NpyHeader::parse(bytes, std::path::Path::new("a.npy"));
        let theirs = npyz::NpyHeader::from_reader(bytes);
        let (Ok(ours), Ok(theirs)) = (ours, theirs) else { return };
        let shape: Vec<i64> = theirs.shape().iter().map(|&length| length as i64).collect();
        assert_eq!(ours.shape, shape);
        assert_eq!(ours.is_fortran, theirs.order() == npyz::Order::Fortran);
        if let npyz::DType::Plain(plain) = theirs.dtype() {
            assert_eq!(plain.num_bytes(), Some(ours.dtype.bytes()));
            assert_eq!(
                ours.is_big_endian,
                plain.endianness() == npyz::Endianness::Big && ours.dtype.bytes() > 1
            );
        }
        n_both += 1;
    };
    for descr in ["<f2", "<f4", ">f8", "|b1", "|i1", ">i2", "<u8", "=i4", "<V2"] {
        for order in ["True", "False"] {
            for shape in ["()", "(3,)", "( 2 , 0)", "(4,5,6,)"] {
                let text =
                    format!("{{ 'shape':{shape}, \"descr\" : '{descr}' , 'fortran_order': {order}}}\n");
                let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
                bytes.extend((text.len() as u32).to_le_bytes());
                bytes.extend(text.as_bytes());
                check_bytes(&bytes);
            }
        }
    }
    // Every single-byte change of the dictionary's text to every other printable byte.
    for at in 10..whole.len() - 48 {
        for byte in (b' '..=b'~').step_by(2) {
            let mut bytes = whole.clone();
            bytes[at] = byte;
            check_bytes(&bytes);
        }
    }
    assert!(n_both > 150, "{n_both}");
}

#[test]
fn views_stay_inside_their_array() {
    let base = Array::from_slice(&[24], &(0..24).collect::<Vec<i32>>()).unwrap();
    let lengths = proptest::collection::vec(0_i64..5, 0..4);
    let strides = proptest::collection::vec(-8_i64..8, 3);
    let check = |(shape, strides, start): (Vec<i64>, Vec<i64>, i64)| {
        let strides = &strides[..shape.len()];
        let reached = |pick: fn(i64, i64) -> i64| {
            start + shape.iter().zip(strides).map(|(n, s)| pick(0, (n - 1) * s)).sum::<i64>()
        };
        let fits = shape.contains(&0) || (0 <= reached(i64::min) && reached(i64::max) < 24);
        let view = base.view(&shape, strides, start);
        prop_assert_eq!(view.is_ok(), fits);
        if let Ok(view) = view {
            let copy = view.to_row_major().unwrap();
            prop_assert_eq!(bits(&copy), bits(&view));
            prop_assert!(copy.is_row_major());
        }
        Ok(())
    };
    runner(2000).run(&(lengths, strides, -4_i64..28), check).unwrap();
}
