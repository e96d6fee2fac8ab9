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
use crate::program::{Folds, Spec, Statement};
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
mod steps;
mod swift;
mod waves;
mod work;

pub use copies::copy_in_order;
pub use map_steps::{Across, Keep, MapSketch, map_after};
pub use rows_apart::OfRows;
pub use runs::Runs;
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

/// What a strategy decides: everything that makes one kernel differ from another of the same program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sketch {
    /// Elements of one vector operation.
    pub lanes: i64,
    /// Independent vectors folded side by side; where a tile is folded, the rows that each visit of a state folds.
    pub unroll: i64,
    /// Elements from one of the vectors folded side by side to the next; their own number of lanes unless pages are
    /// walked side by side.
    pub apart: i64,
    /// Pages that each of the vectors folded side by side takes elements from in turn; 1 unless pages are walked side by
    /// side.
    pub pages: i64,
    /// Whether lanes are brought together by halves, in few steps that wait for each other, rather than in few
    /// operations.
    pub by_halves: bool,
    /// Whether the lanes of short rows are folded two neighbours at a time, rather than brought side by side first.
    pub in_pairs: bool,
    /// Iterations of the innermost folding loop by which memory is asked for before it is read; 0 asks for none.
    pub ahead: i64,
    /// Whether columns ask for it into the first cache rather than into the second.
    pub near: bool,
    /// The same in iterations of the loop around those of a row, where rows of one output lie apart; 0 asks for none.
    pub rows_ahead: i64,
    /// Bytes by which rows that are not all whole vectors, or are walked side by side, are asked for before they are read; 0 asks for
    /// none.
    pub bytes_ahead: i64,
    /// Steps of the runs that the reducer's quick step folds; 1 is no runs.
    pub run: i64,
    /// Chains of each run, which are closed together.
    pub chains: i64,
    /// Whether a thread asks for all words of a loop step before it folds any, as runs end in branches that no read is moved before.
    pub asks_first: bool,
    /// Whether instead all that a thread folds is one run.
    pub one_run: bool,
    /// Blocks after each of which a fold asks whether its state is settled; 0 never asks.
    pub asks_every: i64,
    /// Elements of each row that are folded before its state is asked for the first time; 0 is none.
    pub asked_first: i64,
    /// Parts of a fold that are folded one after another, each in chunks by all threads, as long as the state is not settled; 1 is
    /// all at once.
    pub rounds: i64,
    /// Elements of each row that are folded by vectors along it, where those behind them are folded apart, and of each short row that
    /// are before those of several rows are brought side by side; 0 is none.
    pub head: i64,
    /// Elements of such a vector; 1 where they are brought side by side in tiles.
    pub head_lanes: i64,
    /// Whether the elements behind those of a short row are folded by such vectors too, the last of which they end, and not with one
    /// row a lane; whether the last of the tiles of a row begins in the one before it.
    pub overlaps: bool,
    /// Elements of the kept dimension that are folded together, where one is tiled; lanes of the vector that a row is folded to before
    /// it is brought side by side with others.
    pub tile: i64,
    /// Tiles along the kept dimension around a tile's rows that are folded together, so that dimensions that are reduced around that
    /// one are walked in the order of memory; on machines with blocks of threads, strips of columns of which each thread has some. 1 is
    /// each by itself.
    pub tiles_together: i64,
    /// Vectors of a tile that are written out one by one, so that registers may hold their states, and of a short row; those of one
    /// that has more are a loop.
    pub written_out: i64,
    /// Parts that the reduced elements are folded in, each by a thread of its own; 1 is no split.
    pub chunks: i64,
    /// Turns of each of them but the last, where these are to be whole steps, on machines with blocks of threads; 0 is as many for each.
    pub chunk_turns: i64,
    /// Whether accesses begin at the first boundary of each row, and what is before it and behind the last is folded apart; of rows that
    /// are kept, what is before it follows at the end.
    pub peeled: bool,
    /// Whether threads that share a fold take every so many steps of all reduced dimensions, rather than of the innermost, of which
    /// some would have one fewer: each step of a run would then be one under a condition, and read when those before it are folded.
    pub shares_all: bool,
    /// Whether steps are dealt to those in turn, rather than as many neighbours to each.
    pub in_turn: bool,
    /// Whether threads take all of a piece before the next, and chunks are whole pieces, rather than turns of them.
    pub of_pieces: bool,
    /// Whether blocks sweep memory: each folds one piece, all of whose accesses it asks for at once or in few turns, in the order of
    /// memory.
    pub swept: bool,
    /// Whether chunks are parts of the innermost reduced dimension, rather than of the outermost; on machines with blocks of threads,
    /// each of one index of those around it, so that no condition on its end comes between the reads of a chunk.
    pub cuts_inner: bool,
    /// Threads that fold one output together, on machines with blocks of threads.
    pub threads: i64,
    /// Outputs that one block folds, on machines with blocks of threads; on others, outputs whose last lanes are folded
    /// together, each output in a lane.
    pub rows: i64,
    /// How a map that reads the elements again is scheduled.
    pub map: MapSketch,
    /// How arrays that are put in order before they are read are copied.
    pub copies: Vec<Across>,
    /// How rows are folded whose states are folded into those of outputs; `None` where elements are.
    pub of_rows: Option<Box<OfRows>>,
    /// How the first of two folds is scheduled, where there are two; the others say how the second is.
    pub first: Option<Box<Sketch>>,
    /// Rows that are walked as one, where one alone is no whole number of accesses; 1 is each by itself. On machines without
    /// blocks of threads, rows that are walked side by side: of several outputs where these end together, else of one.
    pub joined: i64,
    /// Reduced neighbours each of which is folded as if it were kept, and with those beside it at the end; 1 is none.
    pub beside: i64,
    /// Blocks that a multiprocessor is to hold, for which the compiler leaves registers; 0 is as many as come.
    pub resident: i64,
    /// Threads by which the block that ends last folds the parts of a fold; 0 is a second launch for that.
    pub last_threads: i64,
    /// Blocks, a cluster, that fold the parts of an output together in that second launch.
    pub last_blocks: i64,
    /// Whether what passes through the caches is kept out of them: results that are stored, on machines with blocks of threads
    /// elements that are read.
    pub streams: bool,
    /// Whether states are in memory, and a launch of its own finishes them, on machines with blocks of threads.
    pub in_memory: bool,
    /// Whether the outer loop is spread over threads.
    pub parallel: bool,
    /// Whether the outermost kept loop alone has work for all threads.
    pub outer_is_long: bool,
    /// What of the dimensions is written into the kernel.
    pub constant: Constants,
}

impl Sketch {
    /// How many folds the program has.
    pub fn folds(&self) -> Folds {
        if self.first.is_some() { Folds::Two } else { Folds::One }
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

    /// A sketch without vectors, threads or constants.
    pub fn plain(&self) -> Sketch {
        Sketch {
            lanes: 1,
            unroll: 1,
            apart: 1,
            pages: 1,
            by_halves: false,
            in_pairs: false,
            ahead: 0,
            near: self.asks_near(),
            rows_ahead: 0,
            bytes_ahead: 0,
            run: 1,
            chains: 1,
            one_run: false,
            asks_first: false,
            asks_every: 0,
            asked_first: 0,
            rounds: 1,
            head: 0,
            head_lanes: 1,
            overlaps: false,
            tile: 1,
            tiles_together: 1,
            written_out: 0,
            chunks: 1,
            chunk_turns: 0,
            peeled: false,
            shares_all: false,
            in_turn: false,
            of_pieces: false,
            swept: false,
            cuts_inner: false,
            threads: 1,
            rows: 1,
            map: MapSketch::default(),
            copies: Vec::new(),
            of_rows: None,
            first: None,
            joined: 1,
            beside: 1,
            resident: 0,
            last_threads: 0,
            last_blocks: 1,
            streams: self.streams(),
            in_memory: !self.room.has_state(),
            parallel: self.parallel(),
            outer_is_long: self.outer_is_long(),
            constant: Constants {
                // What begins behind a boundary has a row that is longer by that, of which nothing tells the length.
                extents: vec![self.spec.offsets.iter().any(|o| *o != 0); self.spec.problem.dims.len()],
                strides: Machine::of(self.target) == Machine::Threads,
            },
        }
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
