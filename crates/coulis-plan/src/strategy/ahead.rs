//! How far ahead plans ask for memory.

use coulis_ir::remark::PREFETCH_NEAR_BYTES;

use super::{Facts, PAGE_BYTES};

/// Bytes of a first cache into which columns ask.
const NEAR_CACHE_BYTES: u64 = 48 << 10;
/// Bytes of vector operations a byte of input up to which a walk waits for memory.
const QUICK_BYTES: i64 = 10;

impl Facts<'_> {
    /// Iterations of `bytes` bytes each that make `distance` bytes, at least 1: how far ahead of a loop memory is asked
    /// for. 0 where the input fits into the caches, and where vectors are longer than cache lines by far, since such
    /// a target does not run single loads.
    pub fn ahead(&self, distance: i64, bytes: i64) -> i64 {
        if self.is_in_memory() && self.target.vectors_are_registers {
            (distance / bytes.max(1)).max(1)
        } else {
            0
        }
    }

    /// As [`Facts::ahead`] of memory that is read front to back: 0 also where hardware asks for it by itself, unless steps are what takes
    /// the time. Then loads come too seldom to be followed.
    pub fn ahead_of_walk(&self, distance: i64, bytes: i64) -> i64 {
        let runs = self.runs(i64::MAX);
        let operations = runs.operations * i64::from(self.target.vector_bytes);
        let is_quick = operations <= QUICK_BYTES * runs.lanes * self.spec.inputs[0].bytes() as i64;
        if self.target.reads_ahead && is_quick { 0 } else { self.ahead(distance, bytes) }
    }

    /// How far ahead rows that end amid their lines ask, in bytes: where hardware follows walks, into the second cache, from which it goes
    /// on by itself. Hints into the first, which such rows give in bursts, keep the places that loads need there (on Zen 4 they took half as
    /// long again).
    pub fn ahead_by_bytes(&self, distance: i64) -> i64 {
        if self.target.reads_ahead { distance.max(PREFETCH_NEAR_BYTES + PAGE_BYTES) } else { distance }
    }

    /// How far ahead memory is asked for that is read front to back, in bytes: a machine that reads one page as fast as several
    /// side by side has as much on its way in the one.
    pub fn ahead_front_to_back(&self) -> i64 {
        if self.reads_front_to_back() { 2 * PAGE_BYTES } else { PAGE_BYTES }
    }

    /// Whether the first cache holds what columns ask for beside their states: one of 48 KiB does (Zen 5), with one of 32 KiB (Zen 4)
    /// such columns took twice as long.
    pub fn asks_near(&self) -> bool {
        self.reads_front_to_back() && self.target.first_cache_bytes >= NEAR_CACHE_BYTES
    }

    /// Whether memory is read fastest front to back.
    pub fn reads_front_to_back(&self) -> bool {
        self.target.pages == 1
    }
}
