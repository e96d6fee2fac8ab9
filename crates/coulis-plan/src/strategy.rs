//! The catalogue of strategies: how a kind of problem is scheduled on a kind of machine.
//!
//! A strategy looks at the [`Facts`] of a call and either sketches what it would do or says which need is not met;
//! the first of the slice that accepts is taken. It then writes the sketch as primitives of a schedule. Nothing here
//! asks for an op's name or for a particular shape: what counts is which dimension is contiguous, how long it is,
//! and how many bytes a state has.

use std::ops::RangeInclusive;

use coulis_ir::visit::uses_any;
use coulis_ir::{Reducer, Target};
use coulis_schedule::{Schedule, ScheduleError};

use crate::constants::Constants;
use crate::program::{Spec, Statement};
use crate::room::Room;
use work::{stepped, work_of};

mod access;
mod ahead;
mod cluster;
mod columns;
mod copies;
mod gpu_across;
mod gpu_beside;
mod gpu_columns;
mod gpu_even;
mod gpu_finish;
mod gpu_kept_columns;
mod gpu_kept_panels;
mod gpu_kept_rows;
mod gpu_kept_slabs;
mod gpu_odd_rows;
mod gpu_outputs;
mod gpu_own_rows;
mod gpu_pieces;
mod gpu_rows;
mod gpu_short_rows;
mod gpu_steps;
mod gpu_sweep;
mod interleaved;
mod joined;
mod kept;
mod map_steps;
mod near_columns;
mod near_rows;
mod rows;
mod rows_apart;
mod runs;
mod scalar;
mod settled;
mod settled_rows;
mod short_columns;
mod short_rows;
mod sketch;
mod steps;
mod swift;
mod waves;
mod work;

pub use copies::copy_in_order;
pub use map_steps::{Across, Keep, MapSketch, map_after};
pub use rows_apart::OfRows;
pub use runs::Runs;
pub use sketch::{Ahead, Chunks, EarlyExit, LastFold, Pages, RowHead, Run, Sketch, Tile, WholeCall};
pub use work::{calls_functions, work};

/// Every strategy, in order of preference.
pub static STRATEGIES: &[&Strategy] = &[
    &near_rows::STRATEGY,
    &rows_apart::STRATEGY,
    &short_rows::STRATEGY,
    &settled_rows::STRATEGY,
    &rows::STRATEGY,
    &short_columns::STRATEGY,
    &interleaved::STRATEGY,
    &near_columns::STRATEGY,
    &columns::STRATEGY,
    &scalar::STRATEGY,
    &gpu_kept_slabs::STRATEGY,
    &gpu_own_rows::STRATEGY,
    &gpu_kept_rows::STRATEGY,
    &gpu_kept_panels::STRATEGY,
    &gpu_kept_columns::STRATEGY,
    &gpu_short_rows::STRATEGY,
    &gpu_odd_rows::STRATEGY,
    &gpu_beside::STRATEGY,
    &gpu_pieces::STRATEGY,
    &gpu_rows::STRATEGY,
    &gpu_across::STRATEGY,
    &gpu_columns::STRATEGY,
    &gpu_outputs::STRATEGY,
];

/// A way to schedule a kind of problem.
pub struct Strategy {
    /// Name in plans and explanations.
    pub name: &'static str,
    /// The machines that it writes schedules for.
    pub machine: Machine,
    /// Whether it folds elements one by one in the order of memory, as reducers need that do not claim to be associative
    /// and commutative.
    pub keeps_order: bool,
    /// One sentence: what it is for and how it walks.
    pub summary: &'static str,
    /// What it would do, or the need that is not met.
    pub propose: fn(&Facts) -> Result<Sketch, Decline>,
    /// The sketch as primitives.
    pub schedule: fn(&mut Schedule, &Statement, &Spec, &Sketch) -> Result<(), ScheduleError>,
}

/// What runs the iterations of outer loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// A few threads that run loops of vectors.
    Loops,
    /// Many threads in blocks.
    Threads,
}

impl Machine {
    /// That of a target.
    pub fn of(target: &Target) -> Machine {
        if target.has_threads() { Machine::Threads } else { Machine::Loops }
    }
}

/// A need that is not met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decline {
    /// What the strategy needs.
    pub wanted: String,
    /// What the problem has.
    pub found: String,
}

impl Decline {
    pub(crate) fn new(wanted: impl Into<String>, found: impl std::fmt::Display) -> Decline {
        Decline { wanted: wanted.into(), found: found.to_string() }
    }
}

/// What strategies decide from.
pub struct Facts<'a> {
    /// The call.
    pub spec: &'a Spec,
    /// The machine.
    pub target: &'a Target,
    /// What a thread may keep, on machines with blocks of threads.
    pub room: Room,
}

/// Work below which a second thread costs more than it brings, in bytes of input.
const PARALLEL_BYTES: i64 = 256 << 10;
/// Bytes of a line of a CPU's cache.
pub(crate) const CACHE_LINE_BYTES: i64 = 64;
/// Bytes of a page of memory.
const PAGE_BYTES: i64 = 4096;
/// Fewer bytes of results, or as many as so many caches of a thread hold, are no reason to look at the memory that they go to.
const FAR_BYTES: i64 = 4 << 20;
const FAR_CACHES: i64 = 4;
/// What the caches of all threads hold at most, in caches of one.
const SHARED_CACHES: i64 = 64;
/// Elements of fewer bytes are more work for threads than for memory.
const NARROW: usize = 4;
/// Bytes of elements that are more than the cache that all blocks of threads share holds, and not many times as many, in parts of
/// `PASSING_PARTS` of it: more are read a little slower when they leave it first. Measured: 64 to 288 MiB where it has 50,
/// `bench/results/h100-experiments.md`.
const PASSING: RangeInclusive<u64> = 32..=144;
const PASSING_PARTS: u64 = 25;
/// Most parts of a fold.
pub(crate) const MOST_CHUNKS: i64 = 1 << 14;
/// Extents up to this may be written into a kernel and unrolled.
pub const SHORT: i64 = 32;

impl Facts<'_> {
    /// The innermost dimension's extent, stride of the first input, and whether it is reduced.
    pub fn inner(&self) -> Option<(i64, i64, bool)> {
        self.dim_from_end(0)
    }

    /// As [`Facts::inner`], `back` dimensions further out.
    pub fn dim_from_end(&self, back: usize) -> Option<(i64, i64, bool)> {
        let dims = &self.spec.problem.dims;
        let dim = dims.get(dims.len().checked_sub(back + 1)?)?;
        Some((dim.extent, dim.strides[0], dim.is_reduced()))
    }

    /// The reduced dimension that is innermost in memory, and its place among the dimensions.
    pub fn innermost_reduced(&self) -> Option<(usize, &crate::Dim)> {
        self.spec.problem.dims.iter().enumerate().rfind(|(_, dim)| dim.is_reduced())
    }

    /// Lanes that fill a vector of the target: of the first input's type, or twice the widest state's, whichever is
    /// fewer, so that no more than two registers hold one component of a state.
    pub fn lanes(&self) -> i64 {
        self.lanes_of(widest_field(&self.spec.reducer))
    }

    fn lanes_of(&self, widest: usize) -> i64 {
        let input = self.spec.inputs[0].bytes();
        i64::from(self.target.vector_bytes) / input.max(widest / 2).max(1) as i64
    }

    /// Whether results are many, and most are in no cache any more when all are made, as elements and results pass through:
    /// storing them past the caches then costs nothing later, and saves the read of what they overwrite. On machines with blocks of
    /// threads, whether elements are more than their cache holds but not many times as many: what else is there, partial states
    /// too, then stays there and is not written to memory meanwhile.
    pub fn streams(&self) -> bool {
        if Machine::of(self.target) == Machine::Threads {
            let bytes = self.input_bytes().unsigned_abs();
            let of_cache = |parts: &u64| self.target.shared_cache_bytes / PASSING_PARTS * parts;
            return of_cache(PASSING.start()) <= bytes && bytes <= of_cache(PASSING.end());
        }
        let problem = &self.spec.problem;
        let of_an_output = if self.spec.map.is_some() { problem.reduce_len } else { 1 };
        let bytes = problem.n_outputs.saturating_mul(of_an_output).saturating_mul(self.spec.result_bytes());
        let cache = self.target.cache_bytes as i64;
        let are_many = bytes > FAR_BYTES.max(FAR_CACHES * cache);
        let passes_through = self.input_bytes().saturating_add(bytes) > SHARED_CACHES * cache;
        // A line of which one vector is stored past the caches and the next one into them goes to memory more than once.
        let last = problem.dims.last().map_or(1, |last| last.extent.max(1));
        let is_of_vectors = self.spec.map.is_none() || last % self.map_lanes().min(floor_pow2(last)) == 0;
        are_many && passes_through && is_of_vectors && self.target.vectors_are_registers
    }

    /// Independent vectors that the registers hold beside the operands, at most 4: those of four leave half of them to
    /// operands, those of two a quarter.
    pub fn unroll(&self, lanes: i64) -> i64 {
        self.unroll_of(lanes, state_bytes(&self.spec.reducer))
    }

    /// The same of states of so many bytes.
    pub fn unroll_of(&self, lanes: i64, state_bytes: i64) -> i64 {
        let state = lanes * state_bytes;
        let quarter = i64::from(self.target.register_bytes) / 4;
        [(4, 2), (2, 3)].into_iter().find(|(u, room)| u * state <= room * quarter).map_or(1, |(u, _)| u)
    }

    /// Bytes of input.
    pub fn input_bytes(&self) -> i64 {
        let n = self.spec.problem.n_outputs.saturating_mul(self.spec.problem.reduce_len);
        n.saturating_mul(self.spec.element_bytes())
    }

    /// Whether the input is in memory: the cache of a thread holds less than half of it.
    pub fn is_in_memory(&self) -> bool {
        self.input_bytes() > 2 * self.target.cache_bytes as i64
    }

    /// Whether threads are worth their launch.
    pub fn parallel(&self) -> bool {
        self.target.n_threads > 1 && self.input_bytes() >= PARALLEL_BYTES
    }

    /// Whether the outermost kept dimension alone has work for all threads.
    pub fn outer_is_long(&self) -> bool {
        let outermost = self.spec.problem.dims.iter().find(|d| !d.is_reduced());
        outermost.is_some_and(|d| d.extent >= 8 * i64::from(self.target.n_threads))
    }

    /// Parts, about even, to split a fold of `len` steps into when there are `n_independent` pieces of work without that.
    pub fn chunks(&self, n_independent: i64, len: i64) -> i64 {
        let wanted = 8 * i64::from(self.target.n_threads);
        if !self.parallel() || n_independent >= wanted || self.input_bytes() < 4 * PARALLEL_BYTES {
            return 1;
        }
        // A fixed number, not the machine's: results then do not depend on the number of threads.
        let chunks = if self.target.n_threads <= 4 { 16 } else { 128 };
        let is_even = len >= chunks && len % chunks == 0;
        if len >= 4 * chunks || is_even { chunks } else { 1 }
    }

    /// The same of the outermost of several reduced dimensions, between whose steps others lie: where it is short, each step is a
    /// part if that makes enough of them, as parts of an inner dimension are read in pieces.
    pub fn chunks_of_outermost(&self, n_independent: i64, len: i64) -> i64 {
        let most = self.chunks(n_independent, i64::MAX);
        match self.chunks(n_independent, len) {
            1 if most > 1 && len < 4 * most && 4 * len.saturating_mul(n_independent) >= 3 * most => len,
            chunks => chunks,
        }
    }

    /// The same of the blocks of a row: fewer parts where it is too short for the usual ones, and few rows are there for all threads.
    pub fn chunks_of_blocks(&self, n_independent: i64, len: i64) -> i64 {
        let most = self.chunks(n_independent, i64::MAX);
        match self.chunks(n_independent, len) {
            1 if 2 * n_independent <= most => {
                let fewer = [2, 4, 8].map(|by| most / by);
                fewer.into_iter().find(|chunks| len >= 4 * chunks).unwrap_or(1)
            }
            chunks => chunks,
        }
    }

    /// Parts to split a fold of `turns` turns into, each of `fewest` at least, when there are `n_blocks` blocks without
    /// that: enough for every multiprocessor to have its fill of blocks `waves` times over, so that none waits long for
    /// the last; a power of two where that leaves no part shorter than others.
    pub fn block_chunks(&self, n_blocks: i64, turns: i64, fewest: i64, waves: i64) -> i64 {
        let fill = (i64::from(self.target.n_threads) / 256).max(1);
        if n_blocks.saturating_mul(2) >= fill {
            return 1;
        }
        let most = (turns / fewest).max(1);
        let wanted = ceil_div(fill * waves, n_blocks.max(1)).min(most).clamp(1, MOST_CHUNKS);
        [2 * floor_pow2(wanted), floor_pow2(wanted)]
            .into_iter()
            .find(|n| *n <= most && turns % n == 0)
            .unwrap_or(wanted)
    }

    /// Whether elements matter to the fold, and not only how many there are.
    pub fn reads_elements(&self) -> bool {
        let lift = &self.spec.reducer.lift;
        lift.body.iter().any(|value| uses_any(value, &lift.params[..self.spec.inputs.len()]))
    }

    /// Every extent and stride: kernels for blocks of threads are written for a shape, so that they have no guard that it does not
    /// need, and accesses as wide as the array allows. The outermost kept one stays a symbol where it does not matter to the kernel, which is `free`.
    pub fn constants(&self, free: bool) -> Constants {
        let dims = &self.spec.problem.dims;
        let extents = (0..dims.len()).map(|d| d > 0 || !free || dims[0].is_reduced()).collect();
        Constants { extents, ..self.plain().constant }
    }

    /// Threads that fold one output of `bytes` bytes, at most `most`, which is a power of two, at least `fewest`: so many that
    /// bringing their states together and finishing the output is at most `per_byte` work for a byte, in bytes that operations
    /// make. Each thread combines two states as often as there are half as many left, for which what it is handed counts twice.
    /// Where there are few outputs the machine has threads to spare, and none are saved.
    pub fn gathering_threads(&self, most: i64, fewest: i64, bytes: i64, per_byte: i64) -> i64 {
        let reducer = &self.spec.reducer;
        let combined = work(&reducer.combine) as i64 + 2 * state_bytes(reducer);
        let finished = work(&reducer.finish) as i64;
        let gathering = |threads: i64| threads * (i64::from(threads.ilog2()) * combined + finished);
        let allowed = bytes.saturating_mul(per_byte);
        let are_enough = |threads: i64| {
            self.spec.problem.n_outputs.saturating_mul(threads) >= self.target.n_threads.into()
        };
        let mut threads = most;
        while threads > fewest.max(1) && gathering(threads) > allowed && are_enough(threads / 2) {
            threads /= 2;
        }
        threads
    }

    /// Whether elements are narrow, so that threads have much to do for a byte.
    pub fn is_narrow(&self) -> bool {
        self.spec.inputs.iter().all(|d| d.bytes() < NARROW)
    }

    /// The longest run of the reducer's quick step that is `lanes` elements in each of a power of two of steps, at most
    /// `steps` of them. 1 is no runs: where there is no such step, or a run keeps as much as a state and is too short to
    /// pay for its end.
    pub fn short_run(&self, lanes: i64, steps: i64) -> i64 {
        self.run_of(lanes * floor_pow2((self.longest_run() / lanes).clamp(1, steps)))
    }

    /// A run of the reducer's quick step of all of `steps` single elements, or of pieces of them that are as long as each other
    /// but for the last; 1 as of [`Facts::run_of`].
    pub fn even_run(&self, steps: i64) -> i64 {
        self.run_of(even_turns(steps, self.longest_run()))
    }

    /// A run of so many elements; 1 where there is none, or it does not pay.
    pub fn run_of(&self, run: i64) -> i64 {
        /// A run that keeps as much as a state saves a little at each element, and costs a combination.
        const PAYS: i64 = 16;
        let reducer = &self.spec.reducer;
        let has_runs = !self.spec.passes_over() && self.room.has_runs();
        let Some(quick) = reducer.quick.as_ref().filter(|_| has_runs) else { return 1 };
        let bytes: i64 = quick.identity.iter().map(|e| e.dtype().bytes() as i64).sum();
        let pays = bytes < state_bytes(reducer) || run >= PAYS;
        if run <= i64::from(quick.max_steps) && pays { run } else { 1 }
    }

    /// Whether all `steps` elements that a thread folds are better one run: the reducer knows runs of that length, whose steps are
    /// less work than those of states as long as a second walk finds nothing wrong, and elements are more work than reading them.
    pub fn is_one_run(&self, steps: i64) -> bool {
        let reducer = &self.spec.reducer;
        let step = reducer.step.as_ref().unwrap_or(&reducer.combine);
        let has_runs = !self.spec.passes_over() && self.room.has_runs();
        let Some(quick) = reducer.quick.as_ref().filter(|_| has_runs && self.may_rewalk()) else {
            return false;
        };
        let is_less = work_of(&stepped(&quick.step, &quick.lift)) < work_of(&stepped(step, &reducer.lift));
        self.is_narrow() && steps <= i64::from(quick.max_steps) && is_less
    }
}

/// Bytes of one state.
pub fn state_bytes(reducer: &Reducer) -> i64 {
    reducer.fields.iter().map(|f| f.dtype.bytes() as i64).sum()
}

/// Bytes of the widest component of a state.
fn widest_field(reducer: &Reducer) -> usize {
    reducer.fields.iter().map(|f| f.dtype.bytes()).max().unwrap_or(1)
}

/// The largest power of two up to `n`, at least 1.
pub fn floor_pow2(n: i64) -> i64 {
    1 << n.max(1).ilog2()
}

/// The fewest at a time, at most `most`, in which `n` take no more turns than by `most`: the last turn is nearly full then.
pub fn even_turns(n: i64, most: i64) -> i64 {
    ceil_div(n.max(1), ceil_div(n.max(1), most.max(1)))
}

/// The greatest common divisor of magnitudes.
pub fn gcd(a: i64, b: i64) -> i64 {
    coulis_ir::simplify::gcd(a.into(), b.into()) as i64
}

/// `a / b` rounded up, for `a` at least 0 and `b` at least 1.
pub fn ceil_div(a: i64, b: i64) -> i64 {
    a / b + i64::from(a % b != 0)
}

#[cfg(test)]
mod tests;
