//! The rate at which this machine can move memory: the floor that a call is measured against.
//!
//! Two plain read loops (one after another, and four pages side by side, which may be faster above L2) are timed over
//! the same bytes, and the faster one counts. They do nothing with the data but fold it by exclusive or. A call whose
//! results are a good part of what it moves is measured against a loop that copies as many bytes and reads the rest.

use std::hint::black_box;
use std::sync::Mutex;
use std::time::Instant;

use coulis_exec::pool::{Pace, Pool, partition};

use crate::median::median;

/// Words that one step of the linear loop reads: four vectors of 64 bytes.
const STEP: usize = 32;
/// Words of a page of 4 KiB.
const PAGE: usize = 512;

/// Parts a thread takes one after another, and the fewest bytes of one: who has no core for a while leaves some to others.
const PARTS_OF_THREAD: usize = 8;
const PART_BYTES: usize = 32 << 10;

/// Rounds after which the fastest way is known.
const ROUNDS: usize = 5;

/// The fastest way to move memory as a call does: read all of its input, and write as many bytes as its results have.
pub struct Floor<'a> {
    words: &'a [u64],
    /// Where is written.
    out: &'a mut [u64],
    pool: &'a Pool,
    pace: Pace,
    way: Way,
}

/// A loop that reads all words.
type ReadWords = fn(&[u64]) -> u64;
/// A loop that copies all words.
type CopyWords = fn(&[u64], &mut [u64]);

/// One way to move memory.
#[derive(Clone, Copy)]
struct Way {
    read: ReadWords,
    copy: CopyWords,
}

impl<'a> Floor<'a> {
    /// The fastest of all ways on one of the pools: the one with the least median of a few rounds, in each of which all are
    /// timed in turn. Where `out` is larger than the input, the rest is written from the input's begin again.
    pub fn fastest(words: &'a [u64], out: &'a mut [u64], pools: &[&'a Pool]) -> Floor<'a> {
        let out = if words.is_empty() { &mut [] } else { out };
        let copies: &[CopyWords] =
            if out.is_empty() { &[copy_plain] } else { &[copy_plain, copy_past_caches] };
        let mut ways = Vec::new();
        for &pool in pools {
            for read in [read_linear as ReadWords, read_four_pages] {
                ways.extend(copies.iter().map(|&copy| (pool, Way { read, copy }, Vec::new())));
            }
        }
        let mut floor = Floor {
            words,
            out,
            pool: pools[0],
            pace: Pace::new(),
            way: Way { read: read_linear, copy: copy_plain },
        };
        for _ in 0..ROUNDS {
            for (pool, way, seconds) in &mut ways {
                (floor.pool, floor.way) = (pool, *way);
                seconds.push(floor.seconds(1));
            }
        }
        let best = ways.into_iter().map(|(pool, way, seconds)| (median(seconds), pool, way));
        if let Some((_, pool, way)) = best.min_by(|a, b| a.0.total_cmp(&b.0)) {
            (floor.pool, floor.way) = (pool, way);
        }
        floor
    }

    /// Bytes that a call of [`Floor::seconds`] moves.
    pub fn n_bytes(&self) -> usize {
        size_of_val(self.words) + size_of_val(self.out)
    }

    /// Mean seconds of `n` times in a row, at least one. What takes no longer than a clock does is timed several
    /// times at once.
    pub fn seconds(&mut self, n: usize) -> f64 {
        let n = n.max(1);
        let start = Instant::now();
        for _ in 0..n {
            self.once();
        }
        start.elapsed().as_secs_f64() / n as f64
    }

    fn once(&mut self) {
        let n_threads = self.pool.n_threads();
        let n_parts = n_threads * (self.n_bytes() / (n_threads * PART_BYTES)).clamp(1, PARTS_OF_THREAD);
        let (words, way) = (self.words, self.way);
        let n_copied = self.out.len().min(words.len());
        let parts: Vec<Mutex<&mut [u64]>> = {
            let mut rest = &mut self.out[..];
            let n = rest.len() as i64;
            let mut cut = |part: usize| {
                let range = partition(n, n_parts, part);
                let (own, left) = std::mem::take(&mut rest).split_at_mut((range.end - range.start) as usize);
                rest = left;
                Mutex::new(own)
            };
            (0..n_parts).map(&mut cut).collect()
        };
        // A pool fails only when a part panics, and these cannot.
        let _ = self.pool.run(n_parts, &self.pace, &|part| {
            if let Ok(mut own) = parts[part].lock() {
                let from = partition(n_copied as i64, n_parts, part).start as usize;
                for piece in own.chunks_mut(words.len().max(1)) {
                    let from = from.min(words.len() - piece.len());
                    (way.copy)(&words[from..from + piece.len()], piece);
                }
            }
            let read = &words[n_copied..];
            let range = partition(read.len() as i64, n_parts, part);
            black_box((way.read)(&read[range.start as usize..range.end as usize]));
        });
    }
}

/// The whole words inside `bytes`.
pub fn words(bytes: &[u8]) -> &[u64] {
    // SAFETY: any eight initialised bytes are a `u64`.
    let (_, words, _) = unsafe { bytes.align_to::<u64>() };
    words
}

/// The same, to be written.
pub fn words_mut(bytes: &mut [u8]) -> &mut [u64] {
    // SAFETY: any eight initialised bytes are a `u64`, and any `u64` is eight bytes.
    let (_, words, _) = unsafe { bytes.align_to_mut::<u64>() };
    words
}

/// Copies through the caches.
fn copy_plain(from: &[u64], to: &mut [u64]) {
    to.copy_from_slice(from);
}

/// Copies with stores past the caches, where the processor has them.
fn copy_past_caches(from: &[u64], to: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has the feature.
            return unsafe { x86::copy_512(from, to) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has the feature.
            return unsafe { x86::copy_256(from, to) };
        }
    }
    copy_plain(from, to);
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

/// The loops in vectors, written out: a compiler that is left to vectorize them gathers across iterations,
/// which reads at a tenth of the rate.
#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{
        __m256i, __m512i, _mm_sfence, _mm256_loadu_si256, _mm256_setzero_si256, _mm256_storeu_si256,
        _mm256_stream_si256, _mm256_xor_si256, _mm512_loadu_si512, _mm512_setzero_si512, _mm512_storeu_si512,
        _mm512_stream_si512, _mm512_xor_si512,
    };

    use super::PAGE;

    macro_rules! loops {
        ($feature:literal, $vector:ty, $zero:ident, $xor:ident, $load:ident, $store:ident, $stream:ident, $linear:ident, $four_pages:ident, $copy:ident) => {
            /// Copies with stores past the caches, but for what lies before and behind whole vectors of `to`.
            #[target_feature(enable = $feature)]
            pub fn $copy(from: &[u64], to: &mut [u64]) {
                const WORDS: usize = size_of::<$vector>() / 8;
                let from = &from[..to.len()];
                let ahead = to.as_ptr().align_offset(size_of::<$vector>()).min(to.len());
                let behind = ahead + (to.len() - ahead) / WORDS * WORDS;
                to[..ahead].copy_from_slice(&from[..ahead]);
                to[behind..].copy_from_slice(&from[behind..]);
                let (from, to) = (&from[ahead..behind], &mut to[ahead..behind]);
                for (from, to) in from.chunks_exact(WORDS).zip(to.chunks_exact_mut(WORDS)) {
                    // SAFETY: both hold a vector; the load takes any address, and that of the store is aligned.
                    unsafe { $stream(to.as_mut_ptr().cast(), $load(from.as_ptr().cast())) };
                }
                _mm_sfence();
            }

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
        _mm512_stream_si512,
        linear_512,
        four_pages_512,
        copy_512
    );
    loops!(
        "avx2",
        __m256i,
        _mm256_setzero_si256,
        _mm256_xor_si256,
        _mm256_loadu_si256,
        _mm256_storeu_si256,
        _mm256_stream_si256,
        linear_256,
        four_pages_256,
        copy_256
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
        let mut bytes = bytes;
        words_mut(&mut bytes).fill(0);
        assert!(bytes.iter().filter(|byte| **byte != 0).count() <= 1, "of whole words nothing is left");
    }

    #[test]
    fn copies_write_every_word_wherever_it_lies() {
        let from: Vec<u64> = (1..200).collect();
        let copies: [CopyWords; 2] = [copy_plain, copy_past_caches];
        for copy in copies {
            for (begin, n) in (0..9).flat_map(|begin| [0, 1, 7, 8, 9, 64, 100].map(|n| (begin, n))) {
                let mut to = vec![0u64; 120];
                copy(&from[..n], &mut to[begin..begin + n]);
                assert_eq!(to[begin..begin + n], from[..n], "{begin} {n}");
                assert!(to[..begin].iter().chain(&to[begin + n..]).all(|word| *word == 0), "{begin} {n}");
            }
        }
    }

    #[test]
    fn a_floor_reads_the_input_and_writes_what_results_have() {
        let pools = [Pool::global(1), Pool::global(2)];
        let words: Vec<u64> = (0..4096).collect();
        for n_out in [0, 1, 255, 4096, 10000] {
            let mut out = vec![u64::MAX; n_out];
            for pool in pools {
                out.fill(u64::MAX);
                let mut floor = Floor::fastest(&words, &mut out, &[pool]);
                assert_eq!(floor.n_bytes(), 32768 + 8 * n_out);
                assert!(floor.seconds(2) > 0.0);
                assert!(out.iter().all(|word| *word < 4096), "{n_out}");
            }
        }
        let mut out = vec![0; 8];
        assert_eq!(Floor::fastest(&[], &mut out, &pools).n_bytes(), 0);
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
