//! How fast this machine reads arrays of several sizes, kept on the disk: what times are predicted from.
//!
//! A rate is that of the best plain read loop ([`crate::stream`]) with as many threads as the call has. Arrays that fit a
//! cache are read faster, so it is measured for a few sizes; between two of them the larger one's holds.

use std::path::Path;
use std::time::Instant;

use coulis_exec::Pool;

use crate::cache::{Cache, Key};
use crate::features;
use crate::stream::Floor;

/// Bytes that are read, ascending: inside the first, second and third level of a usual cache, and far above; of a build
/// without optimisation, whose loops are slow, the first two.
const SIZES: &[u64] =
    if cfg!(debug_assertions) { &[16 << 10, 512 << 10] } else { &[16 << 10, 512 << 10, 8 << 20, 128 << 20] };
/// Part of the key: raised when the measurement changes.
const VERSION: &str = if cfg!(debug_assertions) { "slow stream rates 1" } else { "stream rates 1" };

/// Seconds to read arrays of some sizes.
#[derive(Clone, Debug, PartialEq)]
pub struct Rates {
    /// Bytes and seconds, ascending by bytes; not empty.
    points: Vec<(u64, f64)>,
}

impl Rates {
    /// Those of this machine with `n_threads` threads: from the folder, else measured (a fifth of a second)
    /// and kept there.
    pub fn of_machine(n_threads: usize, dir: Option<&Path>) -> Rates {
        let key =
            Key::of(&[VERSION.as_bytes(), features::fingerprint().as_bytes(), &n_threads.to_le_bytes()]);
        let kept = dir.and_then(|dir| Cache::words_in(dir, &key));
        if let Some(rates) = kept.and_then(|words| Rates::read(&String::from_utf8(words).ok()?)) {
            return rates;
        }
        let rates = measured(Pool::global(n_threads));
        if let Some(dir) = dir {
            Cache::open(Some(dir)).0.keep_words(&key, rates.write().as_bytes());
        }
        rates
    }

    /// Seconds to read that number of bytes.
    pub fn seconds(&self, bytes: u64) -> f64 {
        let (size, seconds) = self.point(bytes);
        seconds * bytes as f64 / size as f64
    }

    /// Bytes a second, for arrays of that number of bytes.
    pub fn bytes_per_second(&self, bytes: u64) -> f64 {
        let (size, seconds) = self.point(bytes);
        size as f64 / seconds
    }

    /// Whether nothing reads that number of bytes faster: they come from memory, since they are no fewer than
    /// the most that was measured. Fewer bytes may be in a cache that is faster than the next larger size
    /// says, and a build without optimisation measures its own slowness.
    pub fn is_least(&self, bytes: u64) -> bool {
        !cfg!(debug_assertions) && self.points.last().is_some_and(|(size, _)| bytes >= *size)
    }

    fn point(&self, bytes: u64) -> (u64, f64) {
        let at = self.points.iter().find(|(size, _)| bytes <= *size).or(self.points.last());
        at.copied().unwrap_or((1, f64::INFINITY))
    }

    fn write(&self) -> String {
        self.points.iter().map(|(size, seconds)| format!("{size} {seconds:e}\n")).collect()
    }

    fn read(text: &str) -> Option<Rates> {
        let point = |line: &str| -> Option<(u64, f64)> {
            let (size, seconds) = line.split_once(' ')?;
            let point: (u64, f64) = (size.parse().ok()?, seconds.parse().ok()?);
            (point.0 > 0 && point.1 > 0.0).then_some(point)
        };
        let points = text.lines().map(point).collect::<Option<Vec<_>>>()?;
        let is_ladder = !points.is_empty() && points.is_sorted_by(|a, b| a.0 < b.0);
        is_ladder.then_some(Rates { points })
    }
}

/// The best of a few measurements of each size, on memory that was touched.
fn measured(pool: &Pool) -> Rates {
    let largest = SIZES[SIZES.len() - 1] as usize / 8;
    let words: Vec<u64> = (0..largest as u64).collect();
    let point = |size: u64| {
        let mut floor = Floor::fastest(&words[..size as usize / 8], &mut [], &[pool]);
        let start = Instant::now();
        let mut best = f64::INFINITY;
        let mut n = 0;
        // The largest array is read a few times, the small ones often, and never for long.
        while n < 2 || (n < 20 && start.elapsed().as_millis() < 20) {
            best = best.min(floor.seconds(2));
            n += 1;
        }
        (size, best.max(1e-9))
    };
    Rates { points: SIZES.iter().copied().map(point).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates() -> Rates {
        Rates { points: vec![(1000, 1e-6), (10_000, 2e-5)] }
    }

    #[test]
    fn the_rate_is_that_of_the_next_size_up_and_the_last_one_above() {
        let close =
            |bytes, wanted: f64| assert!((rates().seconds(bytes) / wanted - 1.0).abs() < 1e-9, "{bytes}");
        close(500, 5e-7);
        close(1000, 1e-6);
        close(1001, 1001.0 * 2e-9);
        close(10_000, 2e-5);
        close(1_000_000, 2e-3);
        assert_eq!(rates().seconds(0), 0.0);
    }

    #[test]
    fn rates_are_kept_and_measured_once() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().join("c");
        let first = Rates::of_machine(1, Some(&dir));
        assert_eq!(Rates::of_machine(1, Some(&dir)), first);
        assert!(first.points.iter().all(|(_, seconds)| *seconds > 0.0));
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
    }

    #[test]
    fn words_that_are_no_rates_are_none() {
        assert_eq!(Rates::read(&rates().write()), Some(rates()));
        for text in ["", "1000", "1000 -1\n", "0 1\n", "1000 1\n500 1\n", "a b\n"] {
            assert_eq!(Rates::read(text), None, "{text:?}");
        }
    }
}
