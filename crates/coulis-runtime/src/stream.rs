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
    ($name:ident, $body:ident, $avx512:ident, $avx2:ident, $doc:expr) => {
        #[doc = $doc]
        pub fn $name(words: &[u64]) -> u64 {
            #[cfg(target_arch = "x86_64")]
            {
                if is_x86_feature_detected!("avx512f") {
                    // SAFETY: the processor has the feature.
                    return unsafe { x86::$avx512(words) };
                }
                if is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has the feature.
                    return unsafe { x86::$avx2(words) };
                }
            }
            $body(words)
        }
    };
}

by_features!(read_linear, linear, linear_512, linear_256, "Exclusive or of all words, front to back.");
by_features!(
    read_four_pages,
    four_pages,
    four_pages_512,
    four_pages_256,
    "Exclusive or of all words, four pages side by side."
);

/// The loops in vectors, written out: a compiler that is left to vectorize them gathers across turns, which reads at a
/// tenth of the rate.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, __m512i, _mm256_loadu_si256, _mm256_setzero_si256, _mm256_storeu_si256, _mm256_xor_si256,
        _mm512_loadu_si512, _mm512_setzero_si512, _mm512_storeu_si512, _mm512_xor_si512,
    };

    use super::PAGE;

    macro_rules! loops {
        ($feature:literal, $vector:ty, $zero:ident, $xor:ident, $load:ident, $store:ident, $linear:ident, $four_pages:ident) => {
            #[target_feature(enable = $feature)]
            pub fn $linear(words: &[u64]) -> u64 {
                const WORDS: usize = size_of::<$vector>() / 8;
                let mut lanes = [$zero(); 8];
                let chunks = words.chunks_exact(8 * WORDS);
                let mut total = chunks.remainder().iter().fold(0, |a, b| a ^ b);
                for chunk in chunks {
                    for (nth, lane) in lanes.iter_mut().enumerate() {
                        // SAFETY: the chunk holds 8 vectors, and the load takes any address.
                        let part = unsafe { $load(chunk.as_ptr().add(nth * WORDS).cast()) };
                        *lane = $xor(*lane, part);
                    }
                }
                for lane in lanes {
                    let mut out = [0u64; WORDS];
                    // SAFETY: `out` is as large as the vector, and the store takes any address.
                    unsafe { $store(out.as_mut_ptr().cast(), lane) };
                    total = out.iter().fold(total, |a, b| a ^ b);
                }
                total
            }

            #[target_feature(enable = $feature)]
            pub fn $four_pages(words: &[u64]) -> u64 {
                const WORDS: usize = size_of::<$vector>() / 8;
                let mut lanes = [$zero(); 8];
                let blocks = words.chunks_exact(4 * PAGE);
                let mut total = $linear(blocks.remainder());
                for block in blocks {
                    for at in (0..PAGE).step_by(2 * WORDS) {
                        for (nth, lane) in lanes.iter_mut().enumerate() {
                            let word = nth / 2 * PAGE + at + nth % 2 * WORDS;
                            // SAFETY: a block holds 4 pages, a page an even number of vectors.
                            let part = unsafe { $load(block.as_ptr().add(word).cast()) };
                            *lane = $xor(*lane, part);
                        }
                    }
                }
                for lane in lanes {
                    let mut out = [0u64; WORDS];
                    // SAFETY: `out` is as large as the vector, and the store takes any address.
                    unsafe { $store(out.as_mut_ptr().cast(), lane) };
                    total = out.iter().fold(total, |a, b| a ^ b);
                }
                total
            }
        };
    }

    loops!(
        "avx512f",
        __m512i,
        _mm512_setzero_si512,
        _mm512_xor_si512,
        _mm512_loadu_si512,
        _mm512_storeu_si512,
        linear_512,
        four_pages_512
    );
    loops!(
        "avx2",
        __m256i,
        _mm256_setzero_si256,
        _mm256_xor_si256,
        _mm256_loadu_si256,
        _mm256_storeu_si256,
        linear_256,
        four_pages_256
    );
}

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
            assert_eq!([linear(&words), four_pages(&words)], [want; 2], "{n}");
            #[cfg(target_arch = "x86_64")]
            if is_x86_feature_detected!("avx2") {
                // SAFETY: the processor has the feature.
                let found = unsafe { [x86::linear_256(&words), x86::four_pages_256(&words)] };
                assert_eq!(found, [want; 2], "{n}");
            }
        }
    }
}
