//! How much this process has read from disks, which is how far the walk over a mapped file has come.
//!
//! A kernel that walks a mapped file runs in one call and reports nothing; the pages that it touches are read by the
//! system on its behalf and counted. Source: proc(5), `/proc/pid/io`, `read_bytes`.

use std::fs;

/// Bytes that the system has read from disks for this process, mapped pages included. Nothing where the system keeps no such
/// count; pages that were in memory already are not part of it.
pub fn bytes_from_disk() -> Option<u64> {
    count_of(&fs::read_to_string("/proc/self/io").ok()?)
}

/// The count in the text that the system gives.
fn count_of(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("read_bytes:")).and_then(|n| n.trim().parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_found_by_its_name() {
        let text = "rchar: 10\nwchar: 20\nread_bytes: 4096\nwrite_bytes: 7\n";
        assert_eq!(count_of(text), Some(4096));
        assert_eq!(count_of("rchar: 10\n"), None);
        assert_eq!(count_of("read_bytes: many\n"), None);
    }
}
