//! One mistake a row, with the whole message: what is wrong with a file is said, never guessed at, never a panic.

#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::path::{Path, PathBuf};

use coulis_io::{Array, RawSpec, ReadOptions, read, write_npy, write_npz};
use coulis_ir::DType;

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// A file named `name` with these bytes in a folder that lives as long as the answer.
fn file(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

/// The message about `path`, with the path itself written as FILE.
fn message(path: &Path, options: &ReadOptions) -> String {
    let error = read(path, options).unwrap_err();
    error.to_string().replace(&path.display().to_string(), "FILE")
}

#[track_caller]
fn check(name: &str, bytes: &[u8], want: &str) {
    let (_folder, path) = file(name, bytes);
    assert_eq!(message(&path, &ReadOptions::default()), want);
}

/// A version 1.0 file with this dictionary and `n_data` bytes of data.
fn npy(dictionary: &str, n_data: usize) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((dictionary.len() as u16).to_le_bytes());
    bytes.extend(dictionary.as_bytes());
    bytes.resize(bytes.len() + n_data, 0);
    bytes
}

#[track_caller]
fn check_dictionary(dictionary: &str, n_data: usize, want: &str) {
    check("a.npy", &npy(dictionary, n_data), want);
}

const DTYPES: &str = "supported are bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, float64, \
                      float8_e4m3, float8_e5m2";

#[test]
fn a_missing_file_is_named() {
    assert_eq!(message(Path::new("no/such.npy"), &ReadOptions::default()), "no file at `FILE`");
    assert_eq!(message(Path::new("no/such.xyz"), &ReadOptions::default()), "no file at `FILE`");
}

#[test]
fn a_folder_is_not_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    std::fs::create_dir(&path).unwrap();
    assert_eq!(message(&path, &ReadOptions::default()), "`FILE` is a folder, a file was expected");
}

#[cfg(unix)]
#[test]
fn a_device_cannot_be_mapped() {
    let spec = RawSpec { shape: vec![1], dtype: DType::U8 };
    assert_eq!(
        message(Path::new("/dev/null"), &ReadOptions { key: None, raw: Some(spec) }),
        "`FILE` is not a regular file, and only a regular file can be mapped"
    );
}

#[cfg(unix)]
#[test]
fn a_path_through_a_file_is_unreadable() {
    let (_folder, path) = file("a.npy", b"");
    assert_eq!(message(&path.join("b.npy"), &ReadOptions::default()), "cannot read `FILE`: not a directory");
}

#[test]
fn an_unknown_extension_lists_the_known_ones() {
    assert!(coulis_io::extensions().starts_with(".npy, .npz, .safetensors"));
    check(
        "a.txt",
        b"1",
        &format!(
            "cannot tell the format of `FILE` from its extension; read are {}, and any file when a raw shape and \
             dtype are given",
            coulis_io::extensions()
        ),
    );
}

#[test]
fn a_dtype_of_which_the_file_says_the_width_alone_is_not_guessed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/float8_e4m3.npy");
    assert_eq!(
        message(&path, &ReadOptions::default()),
        "`FILE` holds elements of type `<V1`, as which NumPy writes several types of 8 bits, so nobody knows which; \
         keep them in .safetensors, which names it, or give the bytes as a raw file with --raw-shape and --raw-dtype"
    );
    for descr in ["|V2", "V2"] {
        let message = format!(
            "`FILE` holds elements of type `{descr}`, as which NumPy writes several types of 16 bits, so nobody knows \
             which; keep them in .safetensors, which names it, or give the bytes as a raw file with --raw-shape and \
             --raw-dtype"
        );
        let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': (1,)}}");
        check("a.npy", &npy(&header, 2), &message);
    }
}

#[test]
fn headers_that_are_none_are_refused() {
    check("a.npy", b"", "`FILE` is not a .npy file: it does not begin with the format's signature");
    check("a.npy", b"1,2\n", "`FILE` is not a .npy file: it does not begin with the format's signature");
    check("a.npy", b"\x93NUM", "`FILE` is not a .npy file: its header takes 10 bytes and the file has 4");
    check(
        "a.npy",
        b"\x93NUMPY\x09\x01\x10\x00",
        "`FILE` is not a .npy file: its format version is 9.1; 1.0, 2.0 and 3.0 are read",
    );
    check(
        "a.npy",
        b"\x93NUMPY\x01\x00\x40\x00{'descr'",
        "`FILE` is not a .npy file: its header takes 74 bytes and the file has 18",
    );
}

#[test]
fn dictionaries_that_are_none_are_refused() {
    check_dictionary(
        "[]",
        0,
        "`FILE` is not a .npy file: its header is not understood at byte 0: expected `{`",
    );
    check_dictionary("{}", 0, "`FILE` is not a .npy file: its header has no key `descr`");
    check_dictionary(
        "{'descr': '<f4', 'shape': (1,)}",
        4,
        "`FILE` is not a .npy file: its header has no key `fortran_order`",
    );
    check_dictionary(
        "{'descr': '<f4', 'descr': '<f4'}",
        4,
        "`FILE` is not a .npy file: its header has the key `descr` twice",
    );
    check_dictionary("{'size': 3}", 4, "`FILE` is not a .npy file: its header has the unknown key `size`");
    check_dictionary(
        "{'fortran_order': None}",
        4,
        "`FILE` is not a .npy file: its header is not understood at byte 22: expected True or False",
    );
    check_dictionary(
        "{'shape': (3)}",
        4,
        "`FILE` is not a .npy file: its header is not understood at byte 13: expected a tuple; one length is written `(n,)`",
    );
}

#[test]
fn lengths_that_cannot_be_are_refused() {
    let with_shape = |shape: &str| format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}");
    check_dictionary(
        &with_shape("(-1,)"),
        4,
        "`FILE` is not a .npy file: its shape has the length -1, which is not an integer from 0 to 2^63 - 1",
    );
    check_dictionary(
        &with_shape("(9223372036854775808,)"),
        4,
        "`FILE` is not a .npy file: its shape has the length 9223372036854775808, which is not an integer from 0 to \
         2^63 - 1",
    );
    check_dictionary(
        &with_shape("(4294967296, 4294967296)"),
        4,
        "`FILE` has an impossible shape: the shape [4294967296, 4294967296] of float32 has more than 2^63 - 1 bytes",
    );
    check_dictionary(
        &with_shape("(0, 4294967296, 4294967296)"),
        0,
        "`FILE` has an impossible shape: the shape [0, 4294967296, 4294967296] of float32 has more than 2^63 - 1 bytes",
    );
    check_dictionary(
        &with_shape(&format!("({})", "1,".repeat(65))),
        4,
        "`FILE` has an impossible shape: 65 axes; at most 64 are supported",
    );
    check_dictionary(
        &with_shape("(2305843009213693951,)"),
        4,
        "`FILE` is truncated: its header promises 9223372036854775804 bytes of data, 4 are there",
    );
}

#[test]
fn data_one_byte_short_is_truncated_and_exact_data_is_not() {
    let dictionary = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }";
    check_dictionary(
        dictionary,
        23,
        "`FILE` is truncated: its header promises 24 bytes of data, 23 are there",
    );
    let (_folder, path) = file("a.npy", &npy(dictionary, 24));
    assert_eq!(read(path, &ReadOptions::default()).unwrap().shape(), [2, 3]);
}

#[test]
fn dtypes_outside_the_ir_are_unsupported() {
    for (name, dtype) in [
        ("complex.npy", "<c16"),
        ("longdouble.npy", "<f16"),
        ("structured.npy", "[('a', '<f4'), ('b', '<i4', (2,))]"),
        ("text.npy", "<U2"),
        ("object.npy", "|O"),
    ] {
        assert_eq!(
            message(&data(name), &ReadOptions::default()),
            format!("`FILE` holds elements of type `{dtype}`, which is unsupported; {DTYPES}")
        );
    }
}

#[test]
fn a_missing_key_and_no_key_list_the_members() {
    let with_key = |key: &str| ReadOptions { key: Some(key.to_owned()), raw: None };
    assert_eq!(
        message(&data("two_stored.npz"), &with_key("c")),
        "`FILE` has no member `c`; its members are `a`, `b`"
    );
    assert_eq!(
        message(&data("two_stored.npz"), &ReadOptions::default()),
        "`FILE` has 2 members and no key was given; its members are `a`, `b`"
    );
    assert_eq!(
        message(&data("three.safetensors"), &with_key("weights")),
        "`FILE` has no member `weights`; its members are `a`, `b`, `mask`"
    );
    assert_eq!(
        message(&data("bool.npy"), &with_key("a")),
        "a key (`a`) was given, but `FILE` is a .npy file, which holds one array"
    );
}

#[test]
fn more_than_five_members_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("many.npz");
    let one = Array::from_slice(&[], &[1_i32]).unwrap();
    let members: Vec<(String, Array)> = (0..7).map(|i| (format!("m{i}"), one.clone())).collect();
    write_npz(&path, &members).unwrap();
    assert_eq!(
        message(&path, &ReadOptions::default()),
        "`FILE` has 7 members and no key was given; its members are `m0`, `m1`, `m2`, `m3`, `m4` and 2 more"
    );
}

#[test]
fn archives_without_arrays_and_broken_archives_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("none.npz");
    write_npz(&path, &[]).unwrap();
    assert_eq!(message(&path, &ReadOptions::default()), "`FILE` holds no array");
    check("a.npz", b"not a zip", "`FILE` is not a .npz file: it does not begin with the format's signature");
    let whole = std::fs::read(data("two_stored.npz")).unwrap();
    let (_folder, cut) = file("a.npz", &whole[..whole.len() / 2]);
    assert_eq!(
        message(&cut, &ReadOptions::default()),
        "`FILE` is not a .npz file: its directory is broken: it is not whole at the end of the file, which may be cut off"
    );
}

#[test]
fn an_archive_with_two_members_of_one_name_is_refused() {
    let renamed = |name: &str| {
        let mut bytes = std::fs::read(data(name)).unwrap();
        while let Some(at) = bytes.windows(5).position(|window| window == b"b.npy") {
            bytes[at] = b'a';
        }
        bytes
    };
    let bytes = renamed("two_stored.npz");
    check("a.npz", &bytes, "`FILE` is not a .npz file: it has two members named `a.npy`");
}

#[test]
fn a_deflated_member_with_a_changed_byte_never_gives_other_values() {
    let whole = std::fs::read(data("one_deflated.npz")).unwrap();
    let sound = read(data("one_deflated.npz"), &ReadOptions::default()).unwrap();
    let mut n_unpack = 0;
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 0x55;
        let (_folder, path) = file("a.npz", &changed);
        match read(&path, &ReadOptions::default()) {
            Ok(array) => assert_eq!(array.as_bytes(), sound.as_bytes(), "byte {at}"),
            Err(error) => n_unpack += usize::from(error.to_string().contains("` cannot be unpacked: ")),
        }
    }
    assert!(n_unpack > 10, "{n_unpack}");
}

#[test]
fn safetensors_headers_that_lie_are_refused() {
    check(
        "a.safetensors",
        b"\x01\x02",
        "`FILE` is not a .safetensors file: its header takes 8 bytes and the file has 2",
    );
    check(
        "a.safetensors",
        b"\xff\x00\x00\x00\x00\x00\x00\x00{}",
        "`FILE` is not a .safetensors file: its header takes 263 bytes and the file has 10",
    );
    let header = br#"{"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    bytes.extend([0; 12]);
    let (_folder, path) = file("a.safetensors", &bytes);
    let said = message(&path, &ReadOptions::default());
    assert!(said.starts_with("`FILE` is not a .safetensors file: its directory is broken: "), "{said}");
    // No bytes at all, and strides that no integer holds.
    let header = br#"{"a":{"dtype":"F32","shape":[0,1099511627776,1099511627776],"data_offsets":[0,0]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    check(
        "a.safetensors",
        &bytes,
        "`FILE` has an impossible shape: the shape [0, 1099511627776, 1099511627776] of float32 has more than 2^63 - \
         1 bytes",
    );
    // Names in the words of the library that reads headers stay as they are written.
    let header = br#"{"a":{"dtype":"Q4","shape":[1],"data_offsets":[0,4]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    bytes.extend([0; 4]);
    let (_folder, path) = file("a.safetensors", &bytes);
    let said = message(&path, &ReadOptions::default());
    assert!(said.contains("`Q4`") && said.contains("`F32`"), "{said}");
}

#[test]
fn a_safetensors_header_with_a_name_twice_is_refused() {
    let header = br#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"\u0061":{"dtype":"I32","shape":[1],"data_offsets":[0,4]}}"#;
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    bytes.extend([0; 4]);
    check("a.safetensors", &bytes, "`FILE` is not a .safetensors file: it has two members named `a`");
}

#[test]
fn a_raw_file_has_exactly_the_size_of_its_shape() {
    let (_folder, path) = file("a.bin", &[0; 12]);
    let with_shape = |shape: &[i64]| ReadOptions {
        key: None,
        raw: Some(RawSpec { shape: shape.to_vec(), dtype: DType::F32 }),
    };
    assert_eq!(read(&path, &with_shape(&[3, 1])).unwrap().strides(), [1, 1]);
    assert_eq!(
        message(&path, &with_shape(&[2, 2])),
        "`FILE` has 12 bytes; float32 of shape [2, 2] needs exactly 16"
    );
    assert_eq!(
        message(&path, &with_shape(&[-1])),
        "`FILE` has an impossible shape: axis 0 has length -1; a length is at least 0"
    );
}

#[test]
fn a_table_with_a_word_in_it_is_refused() {
    check(
        "a.csv",
        b"x,y\n1,two\n",
        "`FILE` is not a table of numbers: line 2, field 2 is `two`, which is not a number",
    );
}

#[test]
fn a_failed_write_leaves_nothing_and_keeps_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let one = Array::from_slice(&[], &[1_i32]).unwrap();
    let nowhere = folder.path().join("no/such/a.npy");
    assert_eq!(
        write_npy(&nowhere, &one).unwrap_err().to_string(),
        format!("cannot write `{}`: no such file or directory", nowhere.display())
    );
    let path = folder.path().join("a.npz");
    std::fs::write(&path, "before").unwrap();
    let twice = [("a".to_owned(), one.clone()), ("a".to_owned(), one.clone())];
    write_npz(&path, &twice).unwrap_err();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "before");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no temporary file stays");
    assert!(
        write_npy(folder.path(), &one).unwrap_err().to_string().ends_with("exists and is not a regular file")
    );
}

#[test]
fn a_stored_member_whose_bytes_are_not_those_that_were_written_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npz");
    let array = Array::from_slice(&[1000], &[7i32; 1000]).unwrap();
    write_npz(&path, &[("a".to_owned(), array)]).unwrap();
    let whole = std::fs::read(&path).unwrap();
    assert!(read(&path, &ReadOptions::default()).is_ok());
    for at in [200, 1000, 4000] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        let found = message(&path, &ReadOptions::default());
        assert_eq!(found, "member `a` of `FILE` cannot be unpacked: Invalid checksum", "byte {at}");
    }
}

#[cfg(unix)]
#[test]
fn what_is_written_to_a_link_goes_to_the_file_behind_it() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("inner")).unwrap();
    symlink("second.npy", at("first.npy")).unwrap();
    symlink("inner/file.npy", at("second.npy")).unwrap();
    symlink("loop.npy", at("loop.npy")).unwrap();
    let array = Array::from_slice(&[2], &[3.0f32, 4.0]).unwrap();
    for _ in 0..2 {
        write_npy(at("first.npy"), &array).unwrap();
        assert!(std::fs::symlink_metadata(at("first.npy")).unwrap().is_symlink());
        assert!(std::fs::symlink_metadata(at("inner/file.npy")).unwrap().is_file());
        assert!(read(at("first.npy"), &ReadOptions::default()).unwrap().scalars().eq(array.scalars()));
    }
    assert!(write_npy(at("loop.npy"), &array).unwrap_err().to_string().contains("too many symbolic links"));
}

#[test]
#[cfg(unix)]
fn a_file_keeps_its_permissions_and_one_that_is_not_to_be_written_is_kept() {
    use std::os::unix::fs::PermissionsExt as _;
    let one = Array::from_slice(&[], &[1_i32]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let mode = || std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
    for kept in [0o600, 0o640, 0o666] {
        std::fs::write(&path, b"before").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(kept)).unwrap();
        write_npy(&path, &one).unwrap();
        assert_eq!(mode(), kept);
    }
    std::fs::write(&path, b"before").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o400)).unwrap();
    let refused = write_npy(&path, &one).unwrap_err().to_string();
    assert_eq!(refused, format!("cannot write `{}`: permission denied", path.display()));
    assert_eq!((mode(), std::fs::read(&path).unwrap().as_slice()), (0o400, b"before".as_slice()));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
