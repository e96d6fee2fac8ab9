//! Any bytes are an array or an error, and every element of an array is readable.

#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(array) = coulis_io::parse_npy(bytes) {
        assert_eq!(array.scalars().count(), array.len());
    }
});
