//! The state of one warp.

use crate::code::{Code, Operand, Source};

/// Where control returns to.
#[derive(Clone, Copy)]
pub(crate) enum Frame {
    /// All lanes of a branch, those that wait for the other part, and where it begins.
    Branch { all: u64, waiting: u64, at: u32 },
    /// All lanes of a loop.
    Loop { all: u64 },
}

/// What a warp can do next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    /// At a barrier: which one, and its statement.
    Waiting(coulis_ir::SyncKind, u32),
    Done,
}

/// One warp.
pub(crate) struct Warp<const W: usize> {
    /// Number among the warps of the blocks that run together.
    pub(crate) n: u32,
    /// Number of its block among them.
    pub(crate) block: usize,
    /// Lanes that exist.
    pub(crate) full: u64,
    pub(crate) active: u64,
    pub(crate) pc: usize,
    pub(crate) stmt: u32,
    pub(crate) state: State,
    pub(crate) frames: Vec<Frame>,
    pub(crate) registers: Vec<[u64; W]>,
    /// Lanes of each register that hold nothing defined.
    pub(crate) undefined: Vec<u64>,
    pub(crate) slots: Vec<[u64; W]>,
    pub(crate) slots_undefined: Vec<u64>,
    /// Lanes for which each element of local memory was written.
    pub(crate) written: Vec<u64>,
    /// Whether the active lanes were last asked for while others were elsewhere.
    pub(crate) asked_diverged: bool,
}

impl<const W: usize> Warp<W> {
    /// A warp of that number, in a block of that one, whose first `n_lanes` lanes exist.
    pub(crate) fn new(n: u32, block: u32, n_lanes: u32, code: &Code<W>) -> Warp<W> {
        let full = if n_lanes >= 64 { u64::MAX } else { (1 << n_lanes) - 1 };
        let (n_registers, n_slots) = (code.n_registers as usize, code.n_slots as usize);
        Warp {
            n,
            block: block as usize,
            full,
            active: full,
            pc: 0,
            stmt: 0,
            state: State::Ready,
            frames: Vec::new(),
            registers: vec![[0; W]; n_registers],
            undefined: vec![0; n_registers],
            slots: vec![[0; W]; n_slots],
            slots_undefined: vec![0; n_slots],
            written: vec![0; n_slots],
            asked_diverged: false,
        }
    }

    /// Makes a used warp ready for the next block.
    pub(crate) fn restart(&mut self) {
        self.active = self.full;
        self.pc = 0;
        self.state = if self.full == 0 { State::Done } else { State::Ready };
        self.frames.clear();
        self.undefined.fill(0);
        self.slots_undefined.fill(0);
        self.written.fill(0);
        self.slots.fill([u64::MAX; W]);
        self.asked_diverged = false;
    }

    /// The value of an operand in all lanes.
    #[inline(always)]
    pub(crate) fn value<'a>(&'a self, code: &'a Code<W>, a: Operand) -> &'a [u64; W] {
        match a.source() {
            Source::Register(n) => &self.registers[n],
            Source::Constant(n) => &code.constants[n],
            Source::Slot(n) => &self.slots[n],
        }
    }

    /// The lanes for which it is not defined.
    #[inline(always)]
    pub(crate) fn undefined_in(&self, a: Operand) -> u64 {
        match a.source() {
            Source::Register(n) => self.undefined[n],
            Source::Constant(_) => 0,
            Source::Slot(n) => self.slots_undefined[n],
        }
    }

    /// The active lanes for which it holds.
    #[inline(always)]
    pub(crate) fn holds(&self, code: &Code<W>, cond: Operand) -> u64 {
        let values = self.value(code, cond);
        let mut mask = 0;
        for (lane, value) in values.iter().enumerate() {
            mask |= u64::from(*value != 0) << lane;
        }
        mask & self.active
    }
}
