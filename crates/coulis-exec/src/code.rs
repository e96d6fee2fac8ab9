//! The bytecode: scalar registers are 8-byte slots, vector operands are entries of a table of pointers.
//!
//! A vector operand is a vector register (a fixed place in the arena), the memory of a buffer (its entry is set by
//! [`Instr::Address`]) or a scalar slot that is to be broadcast. Jumps are relative, so that pieces of code can be
//! joined.

use coulis_ir::{Atom, DType, Expr, VarId};

use crate::ops::{GatherFn, Op, ScalarFn, ScatterFn, StridedFn, VecFn};

/// A scalar register.
pub(crate) type Slot = u32;
/// An entry of the table of pointers.
pub(crate) type Ptr = u32;
/// An entry of the table of buffers.
pub(crate) type Base = u32;

/// One instruction. Indices into memory count elements; slots named `index`, `stride`, `extent`, `rest` and `count`
/// hold an `i64`.
#[derive(Clone, Copy)]
pub(crate) enum Instr {
    Scalar {
        op: Op,
        f: ScalarFn,
        d: Slot,
        a: Slot,
        b: Slot,
        c: Slot,
    },
    Move {
        d: Slot,
        a: Slot,
    },
    /// Fails when the divisor is 0.
    NonZero {
        any_zero: unsafe fn(*const u8, usize) -> bool,
        a: Slot,
        bytes: u8,
    },
    VecNonZero {
        any_zero: unsafe fn(*const u8, usize) -> bool,
        a: Ptr,
        n: u32,
    },
    Load {
        d: Slot,
        base: Base,
        index: Slot,
        bytes: u8,
    },
    Store {
        a: Slot,
        base: Base,
        index: Slot,
        bytes: u8,
    },
    /// Says that an element, which need not exist, will be read.
    Prefetch {
        base: Base,
        index: Slot,
        bytes: u8,
        /// Into which cache.
        hint: Atom,
    },
    /// Points at `n` elements from `index`.
    Address {
        p: Ptr,
        base: Base,
        index: Slot,
        n: u32,
        bytes: u8,
    },
    Vector {
        op: Op,
        f: VecFn,
        d: Ptr,
        a: Ptr,
        b: Ptr,
        c: Ptr,
        n: u32,
    },
    GatherStrided {
        f: StridedFn,
        d: Ptr,
        base: Base,
        index: Slot,
        stride: Slot,
        n: u32,
        bytes: u8,
    },
    ScatterStrided {
        f: StridedFn,
        a: Ptr,
        base: Base,
        index: Slot,
        stride: Slot,
        n: u32,
        bytes: u8,
    },
    Gather {
        f: GatherFn,
        d: Ptr,
        base: Base,
        at: Ptr,
        n: u32,
    },
    Scatter {
        f: ScatterFn,
        a: Ptr,
        base: Base,
        at: Ptr,
        n: u32,
    },
    /// Sets up a loop, or skips `exit` instructions when there is nothing to do.
    For {
        var: Slot,
        min: Slot,
        extent: Slot,
        rest: Slot,
        exit: u32,
    },
    /// Goes `back` when iterations are left. `var` is an int64 when `wide`, else an int32.
    Next {
        var: Slot,
        rest: Slot,
        wide: bool,
        back: u32,
    },
    Jump {
        by: u32,
    },
    /// Jumps when the bool is 0.
    Unless {
        cond: Slot,
        by: u32,
    },
    /// Runs the following `len` instructions for every index, spread over threads, then skips them.
    Parallel {
        var: Slot,
        min: Slot,
        extent: Slot,
        wide: bool,
        id: u32,
        len: u32,
    },
    Alloc {
        base: Base,
        count: Slot,
        bytes: u8,
    },
    Free {
        base: Base,
    },
}

/// What a pointer table entry points at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PtrKind {
    /// A scalar slot of the frame.
    Slot(Slot),
    /// A vector register of that many bytes.
    Register { bytes: usize },
    /// Set by [`Instr::Address`].
    Address,
}

/// Where a buffer's memory comes from.
#[derive(Clone, Debug)]
pub(crate) enum Origin {
    /// The n-th buffer argument, of those extents and strides (none for compact). Index 0 is element `[0, ..., 0]`;
    /// an offset from the data pointer is the caller's business, as in the flattening of accesses.
    Argument { n: usize, shape: Vec<Expr>, strides: Vec<Expr> },
    /// A fixed place of the arena.
    Arena { count: i64 },
    /// [`Instr::Alloc`].
    Heap,
}

/// A buffer of the program.
#[derive(Clone, Debug)]
pub(crate) struct BaseInfo {
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) origin: Origin,
}

/// A scalar that comes from the bindings.
#[derive(Clone, Debug)]
pub(crate) struct Input {
    pub(crate) var: VarId,
    pub(crate) name: String,
    pub(crate) dtype: DType,
    pub(crate) slot: Slot,
}

/// What a thread needs to know to run the body of a parallel loop on a frame of its own.
#[derive(Clone, Debug, Default)]
pub(crate) struct ParallelInfo {
    /// Buffers that are allocated in the body.
    pub(crate) own_bases: Vec<Base>,
    /// Vector registers that are written before the loop and read in it.
    pub(crate) outer_registers: Vec<Ptr>,
    /// Slots that the loop reads and does not write.
    pub(crate) outer_slots: Vec<Slot>,
    /// Entries that lead into buffers, set before the loop and used in it.
    pub(crate) outer_addresses: Vec<Ptr>,
}

impl Instr {
    /// The vector operand that is written and those that are read.
    pub(crate) fn vector_operands(&self) -> (Option<Ptr>, Vec<Ptr>) {
        match *self {
            Instr::Vector { d, a, b, c, .. } => (Some(d), vec![a, b, c]),
            Instr::VecNonZero { a, .. } | Instr::ScatterStrided { a, .. } => (None, vec![a]),
            Instr::GatherStrided { d, .. } => (Some(d), Vec::new()),
            Instr::Gather { d, at, .. } => (Some(d), vec![at]),
            Instr::Scatter { a, at, .. } => (None, vec![a, at]),
            Instr::Scalar { .. }
            | Instr::Move { .. }
            | Instr::NonZero { .. }
            | Instr::Load { .. }
            | Instr::Store { .. }
            | Instr::Prefetch { .. }
            | Instr::Address { .. }
            | Instr::For { .. }
            | Instr::Next { .. }
            | Instr::Jump { .. }
            | Instr::Unless { .. }
            | Instr::Parallel { .. }
            | Instr::Alloc { .. }
            | Instr::Free { .. } => (None, Vec::new()),
        }
    }

    /// The scalar slots that are written.
    pub(crate) fn written_slots(&self) -> Vec<Slot> {
        match *self {
            Instr::Scalar { d, .. } | Instr::Move { d, .. } | Instr::Load { d, .. } => vec![d],
            Instr::For { var, rest, .. } | Instr::Next { var, rest, .. } => vec![var, rest],
            Instr::Parallel { var, .. } => vec![var],
            Instr::Vector { .. }
            | Instr::NonZero { .. }
            | Instr::VecNonZero { .. }
            | Instr::Store { .. }
            | Instr::Prefetch { .. }
            | Instr::Address { .. }
            | Instr::GatherStrided { .. }
            | Instr::ScatterStrided { .. }
            | Instr::Gather { .. }
            | Instr::Scatter { .. }
            | Instr::Jump { .. }
            | Instr::Unless { .. }
            | Instr::Alloc { .. }
            | Instr::Free { .. } => Vec::new(),
        }
    }

    /// The scalar slots that are read, but for those behind pointers.
    pub(crate) fn read_slots(&self) -> Vec<Slot> {
        match *self {
            Instr::Scalar { a, b, c, .. } => vec![a, b, c],
            Instr::Move { a, .. } | Instr::NonZero { a, .. } => vec![a],
            Instr::Load { index, .. } | Instr::Address { index, .. } | Instr::Prefetch { index, .. } => {
                vec![index]
            }
            Instr::Store { a, index, .. } => vec![a, index],
            Instr::GatherStrided { index, stride, .. } | Instr::ScatterStrided { index, stride, .. } => {
                vec![index, stride]
            }
            Instr::For { min, extent, .. } | Instr::Parallel { min, extent, .. } => vec![min, extent],
            Instr::Unless { cond, .. } => vec![cond],
            Instr::Alloc { count, .. } => vec![count],
            Instr::Next { .. }
            | Instr::Vector { .. }
            | Instr::VecNonZero { .. }
            | Instr::Gather { .. }
            | Instr::Scatter { .. }
            | Instr::Jump { .. }
            | Instr::Free { .. } => Vec::new(),
        }
    }

    /// The buffer that is accessed or pointed into.
    pub(crate) fn base(&self) -> Option<Base> {
        match *self {
            Instr::Load { base, .. }
            | Instr::Store { base, .. }
            | Instr::Address { base, .. }
            | Instr::Prefetch { base, .. }
            | Instr::GatherStrided { base, .. }
            | Instr::ScatterStrided { base, .. }
            | Instr::Gather { base, .. }
            | Instr::Scatter { base, .. }
            | Instr::Alloc { base, .. }
            | Instr::Free { base } => Some(base),
            Instr::Scalar { .. }
            | Instr::Move { .. }
            | Instr::NonZero { .. }
            | Instr::VecNonZero { .. }
            | Instr::Vector { .. }
            | Instr::For { .. }
            | Instr::Next { .. }
            | Instr::Jump { .. }
            | Instr::Unless { .. }
            | Instr::Parallel { .. } => None,
        }
    }
}

/// A slot that holds those bytes first.
pub(crate) fn slot_of_bytes(bytes: &[u8]) -> u64 {
    let mut slot = [0u8; 8];
    slot[..bytes.len()].copy_from_slice(bytes);
    u64::from_ne_bytes(slot)
}

/// A slot that holds an integer or bool of `bytes` bytes.
pub(crate) fn slot_of_int(value: i128, bytes: usize) -> u64 {
    match bytes {
        1 => slot_of_bytes(&(value as u8).to_ne_bytes()),
        2 => slot_of_bytes(&(value as u16).to_ne_bytes()),
        4 => slot_of_bytes(&(value as u32).to_ne_bytes()),
        _ => slot_of_bytes(&(value as u64).to_ne_bytes()),
    }
}
