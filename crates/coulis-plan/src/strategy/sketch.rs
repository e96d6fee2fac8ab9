//! What a strategy decides, decision by decision.
//!
//! A number that stands alone is a field of a [`Sketch`]; those that answer one question are a struct with a neutral value, which
//! [`Facts::plain`] has, so that a strategy names what it decides and leaves the rest.

use super::{Across, Facts, Machine, MapSketch, OfRows};
use crate::constants::Constants;
use crate::program::Folds;

/// What a strategy decides: everything that makes one kernel differ from another of the same program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Sketch {
    /// Elements of one vector operation.
    pub lanes: i64,
    /// Independent vectors folded side by side; where a tile is folded, the rows that each visit of a state folds.
    pub unroll: i64,
    /// Where in memory these lie.
    pub pages: Pages,
    /// Whether lanes are brought together by halves, in few steps that wait for each other, rather than in few
    /// operations.
    pub by_halves: bool,
    /// What memory is asked for before it is read.
    pub ahead: Ahead,
    /// The runs that the reducer's quick step folds.
    pub run: Run,
    /// When a fold asks whether its state is settled.
    pub early_exit: EarlyExit,
    /// What of a row is folded by vectors along it.
    pub head: RowHead,
    /// What of the kept dimension is folded together.
    pub tile: Tile,
    /// The parts that the reduced elements are folded in.
    pub chunks: Chunks,
    /// What folds the states of these together.
    pub last: LastFold,
    /// What follows from the size of the call.
    pub whole: WholeCall,
    /// Whether accesses begin at the first boundary of each row, and what is before it and behind the last is folded apart; of rows that
    /// are kept, what is before it follows at the end.
    pub peeled: bool,
    /// Threads that fold one output together, on machines with blocks of threads.
    pub threads: i64,
    /// Outputs that one block folds, on machines with blocks of threads; on others, outputs whose last lanes are folded
    /// together, each output in a lane.
    pub rows: i64,
    /// Blocks that a multiprocessor is to hold, for which the compiler leaves registers; 0 is as many as come.
    pub resident: i64,
    /// Rows that are walked as one, where one alone is no whole number of accesses; 1 is each by itself. On machines without
    /// blocks of threads, rows that are walked side by side: of several outputs where these end together, else of one.
    pub joined: i64,
    /// Reduced neighbours each of which is folded as if it were kept, and with those beside it at the end; 1 is none.
    pub beside: i64,
    /// How a map that reads the elements again is scheduled.
    pub map: MapSketch,
    /// How arrays that are put in order before they are read are copied.
    pub copies: Vec<Across>,
    /// How rows are folded whose states are folded into those of outputs; `None` where elements are.
    pub of_rows: Option<Box<OfRows>>,
    /// How the first of two folds is scheduled, where there are two; the others say how the second is.
    pub first: Option<Box<Sketch>>,
    /// What of the dimensions is written into the kernel.
    pub constant: Constants,
}

/// Where the vectors that are folded side by side lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Pages {
    /// Elements from one of them to the next; their own number of lanes unless pages are walked side by side.
    pub apart: i64,
    /// Pages that each of them takes elements from in turn; 1 unless pages are walked side by side.
    pub of_each: i64,
}

impl Pages {
    /// No pages side by side.
    pub const ONE: Pages = Pages { apart: 1, of_each: 1 };
}

/// What memory is asked for before it is read; 0 asks for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ahead {
    /// That of so many iterations of the innermost folding loop later.
    pub steps: i64,
    /// Whether columns ask for it into the first cache rather than into the second.
    pub near: bool,
    /// The same in iterations of the loop around those of a row, where rows of one output lie apart.
    pub rows: i64,
    /// The same in bytes, of rows that are not all whole vectors, or are walked side by side.
    pub bytes: i64,
}

impl Ahead {
    /// Nothing is asked for.
    pub const NONE: Ahead = Ahead { steps: 0, near: false, rows: 0, bytes: 0 };
}

/// The runs that the reducer's quick step folds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    /// Steps of each; 1 is no runs.
    pub steps: i64,
    /// Chains of each, which are closed together.
    pub chains: i64,
    /// Whether a thread asks for all words of a loop step before it folds any, as runs end in branches that no read is moved before.
    pub asks_first: bool,
    /// Whether instead all that a thread folds is one run.
    pub is_all: bool,
}

impl Run {
    /// No runs.
    pub const NONE: Run = Run { steps: 1, chains: 1, asks_first: false, is_all: false };

    /// Runs of so many steps, of one chain.
    pub fn of(steps: i64) -> Run {
        Run { steps, ..Run::NONE }
    }
}

/// When a fold asks whether its state is settled, so that nothing that follows changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EarlyExit {
    /// Blocks after each of which it asks; 0 never asks.
    pub every: i64,
    /// Elements of each row that are folded before it asks for the first time; 0 is none.
    pub first: i64,
    /// Parts that are folded one after another, each in chunks by all threads, as long as the state is not settled; 1 is all at
    /// once.
    pub rounds: i64,
}

impl EarlyExit {
    /// It never asks.
    pub const NONE: EarlyExit = EarlyExit { every: 0, first: 0, rounds: 1 };
}

/// What of a row is folded by vectors along it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RowHead {
    /// Elements of each row, where those behind them are folded apart, and of each short row that are before those of several rows are
    /// brought side by side; 0 is none.
    pub length: i64,
    /// Elements of such a vector; 1 where they are brought side by side in tiles.
    pub lanes: i64,
    /// Whether the elements behind those of a short row are folded by such vectors too, the last of which they end, and not with one
    /// row a lane.
    pub overlaps: bool,
    /// Whether the lanes of short rows are folded two neighbours at a time, rather than brought side by side first.
    pub in_pairs: bool,
}

impl RowHead {
    /// Nothing of it apart from the rest.
    pub const NONE: RowHead = RowHead { length: 0, lanes: 1, overlaps: false, in_pairs: false };
}

/// What of the kept dimension is folded together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tile {
    /// Elements of it; lanes of the vector that a row is folded to before it is brought side by side with others.
    pub width: i64,
    /// Tiles along the kept dimension around a tile's rows that are folded together, so that dimensions that are reduced around that
    /// one are walked in the order of memory; on machines with blocks of threads, strips of columns of which each thread has some. 1 is
    /// each by itself.
    pub together: i64,
    /// Vectors of a tile that are written out one by one, so that registers may hold their states, and of a short row; those of one
    /// that has more are a loop.
    pub written_out: i64,
    /// Whether the last of the tiles of a row begins in the one before it.
    pub overlaps: bool,
}

impl Tile {
    /// No tiles.
    pub const NONE: Tile = Tile { width: 1, together: 1, written_out: 0, overlaps: false };

    /// Tiles of so many elements, each by itself.
    pub fn of(width: i64) -> Tile {
        Tile { width, ..Tile::NONE }
    }
}

/// The parts that the reduced elements are folded in, and how steps are dealt to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Chunks {
    /// Parts, each folded by a thread of its own; 1 is no split.
    pub n: i64,
    /// Turns of each of them but the last, where these are to be whole steps, on machines with blocks of threads; 0 is as many for each.
    pub turns: i64,
    /// Whether threads that share a fold take every so many steps of all reduced dimensions, rather than of the innermost, of which
    /// some would have one fewer: each step of a run would then be one under a condition, and read when those before it are folded.
    pub shares_all: bool,
    /// Whether steps are dealt to chunks in turn, rather than as many neighbours to each.
    pub in_turn: bool,
    /// Whether threads take all of a piece before the next, and chunks are whole pieces, rather than turns of them.
    pub of_pieces: bool,
    /// Whether blocks sweep memory: each folds one piece, all of whose accesses it asks for at once or in few turns, in the order of
    /// memory.
    pub swept: bool,
    /// Whether chunks are parts of the innermost reduced dimension, rather than of the outermost; on machines with blocks of threads,
    /// each of one index of those around it, so that no condition on its end comes between the reads of a chunk.
    pub cuts_inner: bool,
}

impl Chunks {
    /// No split.
    pub const ONE: Chunks = Chunks {
        n: 1,
        turns: 0,
        shares_all: false,
        in_turn: false,
        of_pieces: false,
        swept: false,
        cuts_inner: false,
    };

    /// So many parts of the outermost reduced dimension, of neighbouring steps.
    pub fn of(n: i64) -> Chunks {
        Chunks { n, ..Chunks::ONE }
    }
}

/// What folds the states of parts together, on machines with blocks of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LastFold {
    /// Threads by which the block that ends last does; 0 is a second launch for that.
    pub threads: i64,
    /// Blocks, a cluster, that fold those of an output together in that second launch.
    pub blocks: i64,
    /// Whether states are in memory, and a launch of its own finishes them.
    pub in_memory: bool,
}

impl LastFold {
    /// A second launch of single blocks.
    pub const LAUNCH: LastFold = LastFold { threads: 0, blocks: 1, in_memory: false };
}

/// What follows from the size of a call, and is not decided for a fold within it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct WholeCall {
    /// Whether the outer loop is spread over threads.
    pub parallel: bool,
    /// Whether the outermost kept loop alone has work for all threads.
    pub outer_is_long: bool,
    /// Whether what passes through the caches is kept out of them: results that are stored, on machines with blocks of threads
    /// elements that are read.
    pub streams: bool,
}

impl WholeCall {
    /// One thread does what is in the caches.
    pub const SMALL: WholeCall = WholeCall { parallel: false, outer_is_long: false, streams: false };
}

impl Sketch {
    /// One thread that folds element by element, with that written into the kernel.
    pub(crate) fn neutral(constant: Constants) -> Sketch {
        Sketch {
            lanes: 1,
            unroll: 1,
            pages: Pages::ONE,
            by_halves: false,
            ahead: Ahead::NONE,
            run: Run::NONE,
            early_exit: EarlyExit::NONE,
            head: RowHead::NONE,
            tile: Tile::NONE,
            chunks: Chunks::ONE,
            last: LastFold::LAUNCH,
            whole: WholeCall::SMALL,
            peeled: false,
            threads: 1,
            rows: 1,
            resident: 0,
            joined: 1,
            beside: 1,
            map: MapSketch::default(),
            copies: Vec::new(),
            of_rows: None,
            first: None,
            constant,
        }
    }

    /// How many folds the program has.
    pub fn folds(&self) -> Folds {
        if self.first.is_some() { Folds::Two } else { Folds::One }
    }
}

impl Facts<'_> {
    /// A sketch without vectors, threads or constants.
    pub fn plain(&self) -> Sketch {
        let constant = Constants {
            // What begins behind a boundary has a row that is longer by that, of which nothing tells the length.
            extents: vec![self.spec.offsets.iter().any(|o| *o != 0); self.spec.problem.dims.len()],
            strides: Machine::of(self.target) == Machine::Threads,
        };
        Sketch {
            ahead: Ahead { near: self.asks_near(), ..Ahead::NONE },
            last: LastFold { in_memory: !self.room.has_state(), ..LastFold::LAUNCH },
            whole: WholeCall {
                parallel: self.parallel(),
                outer_is_long: self.outer_is_long(),
                streams: self.streams(),
            },
            ..Sketch::neutral(constant)
        }
    }
}
