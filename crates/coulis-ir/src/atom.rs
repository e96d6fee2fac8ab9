//! Atoms: machine instructions with an effect, or whose result depends on other threads.
//!
//! Expressions are pure, so each of these is a statement of its own ([`crate::Stmt::Atom`]): shuffles between
//! the lanes of a warp, votes, folds of a warp in one instruction, atomic updates of memory, reads of another
//! block's shared memory, the fence that publishes writes to the whole device, and the hint that memory will
//! be read. The simulator gives them their meaning, a dialect their spelling; a dialect without one refuses
//! it. Source: the intrinsics of seeds 001 to 003; CUDA C++ Programming Guide, warp functions, atomic
//! functions, memory fences, distributed shared memory.

use crate::buffer::Buffer;
use crate::dtype::DType;
use crate::expr::Expr;
use crate::visit::StmtExprs;

/// Which instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Atom {
    /// The value of lane `lane + delta` of the caller's part of the warp; the caller's own beyond its end.
    ShuffleDown,
    /// The value of lane `lane - delta` of the caller's part of the warp; the caller's own before its start.
    ShuffleUp,
    /// The value of lane `lane ^ mask` of the warp; the caller's own where that lane is in a later part.
    ShuffleXor,
    /// The value of lane `index mod width` of the caller's part of the warp.
    Shuffle,
    /// Bits of the lanes that happen to execute this together. It is no statement that others will arrive.
    ActiveMask,
    /// Bits of the named lanes whose predicate holds.
    Ballot,
    /// Whether the predicate holds for any named lane.
    VoteAny,
    /// Whether the predicate holds for all named lanes.
    VoteAll,
    /// The sum of the named lanes' values.
    ReduxAdd,
    /// The smallest of the named lanes' values; of floats NaN where one is NaN.
    ReduxMin,
    /// The largest of the named lanes' values; of floats NaN where one is NaN.
    ReduxMax,
    /// Adds to memory; gives the old value.
    AtomicAdd,
    /// Keeps the smaller value in memory; gives the old value.
    AtomicMin,
    /// Keeps the larger value in memory; gives the old value.
    AtomicMax,
    /// Replaces the value in memory; gives the old value.
    AtomicExchange,
    /// Replaces the value in memory where it equals the first argument by the second; gives the old value.
    AtomicCompareSwap,
    /// Reads what stands at the place in the shared memory of another block of the cluster, which its number says: x
    /// fastest, from 0.
    ClusterLoad,
    /// Makes the caller's earlier writes visible to the whole device before its later ones.
    ThreadFence,
    /// Says that the place will be read soon. It changes nothing, and the place may lie outside the buffer.
    Prefetch,
    /// The same, soon enough for the second-level cache.
    PrefetchL2,
}

impl Atom {
    /// Every atom.
    pub const ALL: [Atom; 20] = [
        Atom::ShuffleDown,
        Atom::ShuffleUp,
        Atom::ShuffleXor,
        Atom::Shuffle,
        Atom::ActiveMask,
        Atom::Ballot,
        Atom::VoteAny,
        Atom::VoteAll,
        Atom::ReduxAdd,
        Atom::ReduxMin,
        Atom::ReduxMax,
        Atom::AtomicAdd,
        Atom::AtomicMin,
        Atom::AtomicMax,
        Atom::AtomicExchange,
        Atom::AtomicCompareSwap,
        Atom::ClusterLoad,
        Atom::ThreadFence,
        Atom::Prefetch,
        Atom::PrefetchL2,
    ];

    /// The name in text, after `T.`.
    pub const fn name(self) -> &'static str {
        match self {
            Atom::ShuffleDown => "tvm_warp_shuffle_down",
            Atom::ShuffleUp => "tvm_warp_shuffle_up",
            Atom::ShuffleXor => "tvm_warp_shuffle_xor",
            Atom::Shuffle => "tvm_warp_shuffle",
            Atom::ActiveMask => "tvm_warp_activemask",
            Atom::Ballot => "cuda.ballot_sync",
            Atom::VoteAny => "cuda.any_sync",
            Atom::VoteAll => "cuda.all_sync",
            Atom::ReduxAdd => "cuda.redux_add_sync",
            Atom::ReduxMin => "cuda.redux_min_sync",
            Atom::ReduxMax => "cuda.redux_max_sync",
            Atom::AtomicAdd => "cuda.atomic_add",
            Atom::AtomicMin => "cuda.atomic_min",
            Atom::AtomicMax => "cuda.atomic_max",
            Atom::AtomicExchange => "cuda.atomic_exch",
            Atom::AtomicCompareSwap => "cuda.atomic_cas",
            Atom::ClusterLoad => "cuda.cluster_load",
            Atom::ThreadFence => "cuda.thread_fence",
            Atom::Prefetch => "prefetch",
            Atom::PrefetchL2 => "prefetch_l2",
        }
    }

    /// The atom of that name in text.
    pub fn from_name(name: &str) -> Option<Atom> {
        Atom::ALL.into_iter().find(|atom| atom.name() == name)
    }

    /// What its arguments are.
    pub const fn signature(self) -> Signature {
        match self {
            Atom::ShuffleDown | Atom::ShuffleUp | Atom::ShuffleXor | Atom::Shuffle => Signature::Shuffle,
            Atom::ActiveMask => Signature::Mask,
            Atom::Ballot => Signature::Ballot,
            Atom::VoteAny | Atom::VoteAll => Signature::Vote,
            Atom::ReduxAdd | Atom::ReduxMin | Atom::ReduxMax => Signature::Redux,
            Atom::AtomicAdd | Atom::AtomicMin | Atom::AtomicMax | Atom::AtomicExchange => Signature::Update,
            Atom::AtomicCompareSwap => Signature::Exchange,
            Atom::ClusterLoad => Signature::Remote,
            Atom::ThreadFence => Signature::Fence,
            Atom::Prefetch | Atom::PrefetchL2 => Signature::Hint,
        }
    }

    /// Whether it changes nothing, so that it may be about memory that is not there.
    pub const fn is_hint(self) -> bool {
        matches!(self.signature(), Signature::Hint)
    }
}

/// What an atom takes and gives. A mask has one bit a lane: uint32 for warps of 32 lanes, uint64 for warps of 64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signature {
    /// `(mask, value, lane, width, warp size)`, all of int32 but mask and value; gives the type of the value, which has
    /// at most 8 bytes. `width` is a power of two up to the warp size: the length of a part of the warp.
    Shuffle,
    /// No arguments; gives a mask.
    Mask,
    /// `(mask, predicate)`; gives a mask.
    Ballot,
    /// `(mask, predicate)`; gives a bool.
    Vote,
    /// `(mask, value)`; gives the type of the value: int32 or uint32, and float32 for extrema.
    Redux,
    /// `(memory, value)`; gives the type of the memory, whose old value it is.
    Update,
    /// `(memory, expected, value)`; as `Update`.
    Exchange,
    /// `(memory, block)`, the block of int32; gives the type of the memory, which it does not change.
    Remote,
    /// No arguments, no result.
    Fence,
    /// `(memory)`; no result.
    Hint,
}

impl Signature {
    /// Number of arguments beside the memory.
    pub const fn arity(self) -> usize {
        match self {
            Signature::Shuffle => 5,
            Signature::Mask | Signature::Fence | Signature::Hint => 0,
            Signature::Ballot | Signature::Vote | Signature::Redux | Signature::Exchange => 2,
            Signature::Update | Signature::Remote => 1,
        }
    }

    /// Whether it works on a place in memory.
    pub const fn has_memory(self) -> bool {
        matches!(self, Signature::Update | Signature::Exchange | Signature::Remote | Signature::Hint)
    }

    /// The type of its result for arguments of these types, where it has one.
    pub fn result(self, args: &[DType], memory: Option<DType>, mask: DType) -> Option<DType> {
        match self {
            Signature::Shuffle | Signature::Redux => args.get(1).copied(),
            Signature::Mask => Some(mask),
            Signature::Ballot => args.first().copied(),
            Signature::Vote => Some(DType::Bool),
            Signature::Update | Signature::Exchange | Signature::Remote => memory,
            Signature::Fence | Signature::Hint => None,
        }
    }
}

/// One element of a buffer.
#[derive(Clone, Debug, PartialEq)]
pub struct Element {
    /// The buffer.
    pub buffer: Buffer,
    /// One index a dimension; one in all in Flat form.
    pub indices: Vec<Expr>,
}

/// An atom with its operands.
#[derive(Clone, Debug, PartialEq)]
pub struct AtomCall {
    /// Which.
    pub atom: Atom,
    /// Where the result goes; `None` drops it.
    pub dst: Option<Element>,
    /// The memory that an atomic update works on, that a block reads of another one, or that a hint is about.
    pub memory: Option<Element>,
    /// The arguments in the order of its [`Signature`], without the memory.
    pub args: Vec<Expr>,
}

impl AtomCall {
    /// The places that it writes, then reads as memory: the destination and the memory.
    pub fn elements(&self) -> impl Iterator<Item = &Element> {
        self.dst.iter().chain(&self.memory)
    }

    /// Whether it changes its memory.
    pub fn writes_memory(&self) -> bool {
        match self.atom.signature() {
            Signature::Update | Signature::Exchange => true,
            Signature::Shuffle
            | Signature::Mask
            | Signature::Ballot
            | Signature::Vote
            | Signature::Redux
            | Signature::Remote
            | Signature::Fence
            | Signature::Hint => false,
        }
    }

    /// Its expressions: indices of destination and memory, then arguments.
    pub fn exprs(&self) -> StmtExprs<'_> {
        self.elements().flat_map(|e| &e.indices).chain(&self.args).collect()
    }

    /// The same, to be changed.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let elements = self.dst.iter_mut().chain(&mut self.memory);
        elements.flat_map(|e| &mut e.indices).chain(&mut self.args)
    }
}
