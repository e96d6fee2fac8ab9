//! Which of two measured constants a machine wants, by how swift its memory is: by both, reading was timed beside what threads do with
//! what they read. Measured: `bench/results/h200.md`.

use super::Facts;

/// Bytes that memory gives each thread of the machine a second from which on it is swift: between what it gives those of an H100 and of
/// an H200, on which the constants of either were measured.
const SWIFT: u64 = 15_000_000;

impl Facts<'_> {
    /// Whether memory is swift beside the threads that it gives bytes to, so that what these do besides reading is less hidden behind it.
    pub fn has_swift_memory(&self) -> bool {
        self.target.thread_bytes_per_second >= SWIFT
    }

    /// What was measured where memory is swift, or else where it is not.
    pub fn by_memory<T>(&self, swift: T, other: T) -> T {
        if self.has_swift_memory() { swift } else { other }
    }
}
