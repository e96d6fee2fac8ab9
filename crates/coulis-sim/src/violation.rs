//! Violations: what a kernel does that a GPU does not promise to do, with the statement and the threads.

use std::collections::HashMap;
use std::fmt;

/// What a kernel does that it may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ViolationKind {
    /// Two lanes of a warp access one place, one of them writes, and no barrier orders them.
    LaneRace,
    /// Two warps of a block do.
    WarpRace,
    /// Two blocks do, and no fence with an atomic operation orders them.
    BlockRace,
    /// Two blocks of a cluster do in the shared memory of one, and no barrier of the cluster orders them.
    ClusterRace,
    /// Another block's shared memory is read, and that block may have ended.
    EndedBlock,
    /// Memory is read that nothing wrote.
    Unwritten,
    /// A value decides what is done, or leaves the thread, that a shuffle took from a lane that did not give one.
    Undefined,
    /// An access is outside its buffer.
    OutOfBounds,
    /// A barrier is not reached by all threads that it waits for.
    Barrier,
    /// Two groups of threads wait at one barrier of the machine, which lets mixed ones go.
    BarrierOfTwo,
    /// A named barrier waits for threads that are no whole warps.
    BarrierCount,
    /// The mask of a shuffle or vote lacks the lane that executes it.
    MaskLacksCaller,
    /// The mask names a lane that the block does not have.
    MaskNamesAbsent,
    /// The mask names a lane that is elsewhere in the program.
    MaskNamesDiverged,
    /// Lanes that name each other have different masks.
    MasksDiffer,
    /// The width of a shuffle is no power of two up to the warp's lanes, or its warp size is not the machine's.
    ShuffleWidth,
    /// A shuffle by a distance that is negative or no less than the warp's lanes, of which machines make different things.
    ShuffleDistance,
    /// The lanes that happen to be active are taken for the lanes that take part.
    ActiveMask,
    /// The result depends on the order in which warps or blocks run.
    WarpOrder,
    /// An argument that is written shares memory with another.
    Overlap,
    /// Memory that the kernel says it leaves zero, for the next call, is not.
    NotLeftZero,
    /// An integer is divided by zero.
    DivisionByZero,
}

impl ViolationKind {
    /// Every kind.
    pub const ALL: [ViolationKind; 22] = [
        ViolationKind::LaneRace,
        ViolationKind::WarpRace,
        ViolationKind::BlockRace,
        ViolationKind::ClusterRace,
        ViolationKind::EndedBlock,
        ViolationKind::Unwritten,
        ViolationKind::Undefined,
        ViolationKind::OutOfBounds,
        ViolationKind::Barrier,
        ViolationKind::BarrierOfTwo,
        ViolationKind::BarrierCount,
        ViolationKind::MaskLacksCaller,
        ViolationKind::MaskNamesAbsent,
        ViolationKind::MaskNamesDiverged,
        ViolationKind::MasksDiffer,
        ViolationKind::ShuffleWidth,
        ViolationKind::ShuffleDistance,
        ViolationKind::ActiveMask,
        ViolationKind::WarpOrder,
        ViolationKind::Overlap,
        ViolationKind::NotLeftZero,
        ViolationKind::DivisionByZero,
    ];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            ViolationKind::LaneRace => "race between lanes",
            ViolationKind::WarpRace => "race between warps",
            ViolationKind::BlockRace => "race between blocks",
            ViolationKind::ClusterRace => "race between blocks of a cluster",
            ViolationKind::EndedBlock => "read of a block that may have ended",
            ViolationKind::Unwritten => "read of unwritten memory",
            ViolationKind::Undefined => "use of an undefined value",
            ViolationKind::OutOfBounds => "access out of bounds",
            ViolationKind::Barrier => "barrier not reached by all",
            ViolationKind::BarrierOfTwo => "barrier of two groups",
            ViolationKind::BarrierCount => "count of a barrier",
            ViolationKind::MaskLacksCaller => "mask lacks the caller",
            ViolationKind::MaskNamesAbsent => "mask names an absent lane",
            ViolationKind::MaskNamesDiverged => "mask names a diverged lane",
            ViolationKind::MasksDiffer => "masks differ",
            ViolationKind::ShuffleWidth => "width of a shuffle",
            ViolationKind::ShuffleDistance => "distance of a shuffle",
            ViolationKind::ActiveMask => "active lanes taken for a mask",
            ViolationKind::WarpOrder => "result depends on the order of warps",
            ViolationKind::Overlap => "overlapping arguments",
            ViolationKind::NotLeftZero => "memory not left zero",
            ViolationKind::DivisionByZero => "division by zero",
        }
    }
}

/// One thread of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Thread {
    /// Launch, counted from 0.
    pub launch: u32,
    /// `blockIdx`, x first.
    pub block: [u32; 3],
    /// `threadIdx`, x first.
    pub thread: [u32; 3],
    /// Lane of its warp.
    pub lane: u32,
}

impl fmt::Display for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [bx, by, bz] = self.block;
        let [tx, ty, tz] = self.thread;
        write!(f, "thread ({tx}, {ty}, {tz}) of block ({bx}, {by}, {bz})")?;
        if self.launch > 0 { write!(f, " of launch {}", self.launch) } else { Ok(()) }
    }
}

/// A place in the printed kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Site {
    /// The statement's first line, as printed.
    pub statement: String,
    /// Its line in the printed kernel, counted from 1.
    pub line: usize,
}

/// One violation. The same fault of the same statements is one violation with a count.
#[derive(Clone, Debug, PartialEq)]
pub struct Violation {
    /// What it is about.
    pub kind: ViolationKind,
    /// The statement.
    pub site: Site,
    /// The other statement, where two are in conflict.
    pub other: Option<Site>,
    /// The threads of the first case: the one that executed the statement, then others.
    pub threads: Vec<Thread>,
    /// What happened, of the first case.
    pub message: String,
    /// How often, over all threads.
    pub count: u64,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Site { statement, line } = &self.site;
        write!(f, "{}: line {line}, `{statement}`: {}", self.kind.name(), self.message)?;
        if let Some(other) = &self.other {
            write!(f, "; the other is line {}, `{}`", other.line, other.statement)?;
        }
        if self.count > 1 { write!(f, " ({} times)", self.count) } else { Ok(()) }
    }
}

/// A violation before its statements are printed; statements are numbers of the compiled kernel.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) kind: ViolationKind,
    pub(crate) stmt: u32,
    pub(crate) other: Option<u32>,
    pub(crate) threads: Vec<Thread>,
    pub(crate) message: String,
    pub(crate) count: u64,
}

/// The violations of a run, in the order in which they were found.
#[derive(Clone, Debug, Default)]
pub(crate) struct Violations {
    index: HashMap<(ViolationKind, u32, Option<u32>, u32), usize>,
    pub(crate) cases: Vec<Case>,
}

impl Violations {
    /// Counts a case of the same kind, statements and `about` (a buffer, say); `describe` is asked for the first only.
    pub(crate) fn record(
        &mut self,
        kind: ViolationKind,
        stmts: (u32, Option<u32>),
        about: u32,
        describe: impl FnOnce() -> (Vec<Thread>, String),
    ) {
        let next = self.cases.len();
        let at = *self.index.entry((kind, stmts.0, stmts.1, about)).or_insert(next);
        if at == next {
            let (threads, message) = describe();
            self.cases.push(Case { kind, stmt: stmts.0, other: stmts.1, threads, message, count: 0 });
        }
        self.cases[at].count += 1;
    }

    /// Adds what another order of the same kernel has and this one has not.
    pub(crate) fn join(&mut self, other: Violations) {
        let Violations { index, cases } = other;
        let mut keys: Vec<_> = index.into_iter().collect();
        keys.sort_by_key(|(_, at)| *at);
        for ((key, _), case) in keys.into_iter().zip(cases) {
            let next = self.cases.len();
            if *self.index.entry(key).or_insert(next) == next {
                self.cases.push(case);
            }
        }
    }
}
