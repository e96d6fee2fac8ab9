//! Files that NumPy, ml_dtypes and safetensors wrote (`tests/data/make.py`) are read as those programs read them.

#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::path::PathBuf;

use coulis_io::{Array, ReadOptions, Scalar, keys, read, read_all};
use coulis_ir::DType;

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn values(array: &Array) -> Vec<f64> {
    array.scalars().map(Scalar::to_f64).collect()
}

fn by_key(name: &str, key: &str) -> Array {
    read(data(name), &ReadOptions { key: Some(key.to_owned()), raw: None }).unwrap()
}

#[track_caller]
fn check(name: &str, dtype: DType, shape: &[i64], strides: &[i64], want: &[f64]) {
    let array = read(data(name), &ReadOptions::default()).unwrap();
    assert_eq!((array.dtype(), array.shape(), array.strides()), (dtype, shape, strides), "{name}");
    assert_eq!(values(&array), want, "{name}");
    assert_eq!(array.as_ptr() as usize % dtype.bytes(), 0, "{name}");
}

const GRID: [f64; 6] = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];

#[test]
fn npy_files_of_every_kind_are_read() {
    check("row_major_f4.npy", DType::F32, &[2, 3], &[3, 1], &GRID);
    check("fortran_f8.npy", DType::F64, &[2, 3], &[1, 2], &GRID);
    check("big_endian_i4.npy", DType::I32, &[2, 3], &[3, 1], &[-3.0, -2.0, -1.0, 0.0, 1.0, 2.0]);
    check("bool.npy", DType::Bool, &[2, 3], &[3, 1], &[1.0, 0.0, 1.0, 0.0, 1.0, 0.0]);
    check("f2.npy", DType::F16, &[2, 3], &[3, 1], &GRID);
    check("bfloat16.npy", DType::BF16, &[2, 3], &[3, 1], &GRID);
    check("float8_e5m2.npy", DType::F8E5M2, &[2, 3], &[3, 1], &GRID);
    check("scalar_u8.npy", DType::U8, &[], &[], &[7.0]);
    check("empty_i8.npy", DType::I64, &[0, 4], &[4, 1], &[]);
    check("version_2.npy", DType::U16, &[2, 3], &[3, 1], &GRID);
    check("version_3.npy", DType::U16, &[2, 3], &[3, 1], &GRID);
}

#[test]
fn fortran_order_and_row_major_order_are_mapped_without_a_copy() {
    for name in ["row_major_f4.npy", "fortran_f8.npy"] {
        assert!(read(data(name), &ReadOptions::default()).unwrap().is_mapped(), "{name}");
    }
}

#[test]
fn stored_members_of_an_npz_are_found_by_key() {
    assert_eq!(keys(data("two_stored.npz")).unwrap(), ["a", "b"]);
    let (a, b) = (by_key("two_stored.npz", "a"), by_key("two_stored.npz", "b"));
    assert_eq!((a.dtype(), values(&a)), (DType::F32, GRID.to_vec()));
    assert_eq!((b.dtype(), values(&b)), (DType::I8, vec![0.0, 1.0, 0.0, 1.0, 0.0, 1.0]));
    assert!(b.is_mapped(), "one-byte elements need no alignment");
}

#[test]
fn the_only_member_needs_no_key_and_deflated_ones_are_inflated() {
    let array = read(data("one_deflated.npz"), &ReadOptions::default()).unwrap();
    assert_eq!((array.dtype(), array.shape()), (DType::F64, &[20_i64, 3][..]));
    assert_eq!(values(&array), GRID.repeat(10));
}

#[test]
fn safetensors_members_are_found_by_key() {
    let all = read_all(data("three.safetensors")).unwrap();
    let names: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["a", "b", "mask"]);
    assert_eq!(values(&all[0].1), GRID);
    assert_eq!((all[1].1.dtype(), values(&all[1].1)), (DType::BF16, GRID.to_vec()));
    assert_eq!((all[2].1.dtype(), values(&all[2].1)), (DType::Bool, vec![0.0, 0.0, 0.0, 1.0, 1.0, 1.0]));
}
