//! A mapped file that becomes shorter while it is in use. One test, since the list of mapped files is that of the process.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs::OpenOptions;

use coulis_io::{RawSpec, ReadOptions, check_mapped, read};
use coulis_ir::DType;

#[test]
fn a_file_that_is_cut_short_is_named_as_long_as_it_is_mapped_and_once_after_that() {
    let folder = tempfile::tempdir().unwrap();
    let [whole, cut] = ["whole.bin", "cut.bin"].map(|name| folder.path().join(name));
    let said = || check_mapped().map_err(|error| error.to_string());
    for path in [&whole, &cut] {
        std::fs::write(path, [1; 100]).unwrap();
    }
    let options =
        ReadOptions { raw: Some(RawSpec { shape: vec![100], dtype: DType::U8 }), ..Default::default() };
    let arrays = [&whole, &cut].map(|path| read(path, &options).unwrap());
    assert_eq!(said(), Ok(()));
    let resize = |len: u64| OpenOptions::new().write(true).open(&cut).unwrap().set_len(len).unwrap();
    resize(200);
    assert_eq!(said(), Ok(()), "a longer file has all that was mapped");
    resize(60);
    let want =
        format!("`{}` was cut short while it was in use: it had 100 bytes, 60 are there", cut.display());
    // The rest of the page, which no signal tells.
    let sums =
        arrays.each_ref().map(|a| a.as_slice::<u8>().unwrap().iter().map(|&x| u32::from(x)).sum::<u32>());
    assert_eq!(sums, [100, 60]);
    assert_eq!((said(), said()), (Err(want.clone()), Err(want.clone())));
    let [whole, cut] = arrays;
    let copy = cut.clone();
    drop(cut);
    drop(copy);
    assert_eq!((said(), said()), (Err(want), Ok(())));
    drop(whole);
    assert_eq!(said(), Ok(()));
}
