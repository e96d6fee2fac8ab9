//! The rate at which this machine can read memory: the floor that a reduction is measured against.
//!
//! Two plain read loops (one after another, and four pages side by side, which is faster above L2) are timed over
//! the same bytes, and the faster one counts. They do nothing with the data but fold it by exclusive or.

use std::hint::black_box;
use std::time::Instant;

use coulis_exec::pool::{Pool, partition};

/// Words that one step of the linear loop reads: four vectors of 64 bytes.
const STEP: usize = 32;
/// Words of a page of 4 KiB.
const PAGE: usize = 512;

/// Best seconds to read all of `words`, of both loops, `rounds` times each, on the threads of `pool`.
pub fn best_read_seconds(words: &[u64], pool: &Pool, rounds: usize) -> f64 {
    (0..rounds.max(1)).map(|_| mean_read_seconds(words, pool, 1)).fold(f64::INFINITY, f64::min)
}

/// Mean seconds of a read of all of `words` over `n_reads` reads in a row, by the faster of both loops. Reads that take
/// no longer than a clock does are timed several at a time.
pub fn mean_read_seconds(words: &[u64], pool: &Pool, n_reads: usize) -> f64 {
    let n_reads = n_reads.max(1);
    let mut best = f64::INFINITY;
    for read in [read_linear as fn(&[u64]) -> u64, read_four_pages] {
        let start = Instant::now();
        for _ in 0..n_reads {
            read_parallel(words, pool, read);
        }
        best = best.min(start.elapsed().as_secs_f64() / n_reads as f64);
    }
    best
}

/// The whole words inside `bytes`.
pub fn words(bytes: &[u8]) -> &[u64] {
    // SAFETY: any eight initialised bytes are a `u64`.
    let (_, words, _) = unsafe { bytes.align_to::<u64>() };
    words
}

/// Reads everything once with one of the loops.
fn read_parallel(words: &[u64], pool: &Pool, read: fn(&[u64]) -> u64) {
    let n_parts = pool.n_threads();
    // A pool fails only when a part panics, and these cannot.
    let _ = pool.run(n_parts, &|part| {
        let range = partition(words.len() as i64, n_parts, part);
        black_box(read(&words[range.start as usize..range.end as usize]));
    });
}

macro_rules! by_features {
    ($name:ident, $body:ident, $doc:expr) => {
        #[doc = $doc]
        pub fn $name(words: &[u64]) -> u64 {
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f")]
                fn avx512(words: &[u64]) -> u64 {
                    $body(words)
                }
                #[target_feature(enable = "avx2")]
                fn avx2(words: &[u64]) -> u64 {
                    $body(words)
                }
                if is_x86_feature_detected!("avx512f") {
                    // SAFETY: the processor has the feature.
                    return unsafe { avx512(words) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has the feature.
                    return unsafe { avx2(words) };
                }
            }
            $body(words)
        }
    };
}

by_features!(read_linear, linear, "Exclusive or of all words, front to back.");
by_features!(read_four_pages, four_pages, "Exclusive or of all words, four pages side by side.");

#[inline(always)]
fn linear(words: &[u64]) -> u64 {
    let mut lanes = [0u64; STEP];
    let chunks = words.chunks_exact(STEP);
    let mut total = chunks.remainder().iter().fold(0, |a, b| a ^ b);
    for chunk in chunks {
        for (lane, word) in lanes.iter_mut().zip(chunk) {
            *lane ^= word;
        }
    }
    for lane in lanes {
        total ^= lane;
    }
    total
}

#[inline(always)]
fn four_pages(words: &[u64]) -> u64 {
    let mut lanes = [0u64; STEP];
    let blocks = words.chunks_exact(4 * PAGE);
    let mut total = linear(blocks.remainder());
    for block in blocks {
        for at in (0..PAGE).step_by(8) {
            for page in 0..4 {
                let words = &block[page * PAGE + at..page * PAGE + at + 8];
                for (lane, word) in lanes[page * 8..page * 8 + 8].iter_mut().zip(words) {
                    *lane ^= word;
                }
            }
        }
    }
    for lane in lanes {
        total ^= lane;
    }
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_that_lie_whole_in_the_bytes() {
        let whole = [1u64, 2, 3];
        let bytes: Vec<u8> = whole.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let found = words(&bytes);
        assert!(found.len() >= 2);
        assert!(found.iter().all(|word| bytes.windows(8).any(|w| w == word.to_ne_bytes())));
        assert!(words(&bytes[..7]).is_empty());
    }

    #[test]
    fn both_loops_read_every_word() {
        for n in [0, 1, 31, 32, 2047, 2048, 2049, 5000] {
            let words: Vec<u64> = (0..n).map(|i| (i as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
            let want = words.iter().fold(0, |a, b| a ^ b);
            assert_eq!(read_linear(&words), want, "{n}");
            assert_eq!(read_four_pages(&words), want, "{n}");
        }
    }
}
