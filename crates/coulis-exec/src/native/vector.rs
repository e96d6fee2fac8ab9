//! Vector operations as machine code: in pieces of lanes that fit a register at the widest type that takes part.

use coulis_ir::{BinaryOp, DType};

use super::asm::{Enc, Gpr, Len, Mask, Mem, R12, R14, RAX, RBP, RBX, RCX, RDX, Rm, Vec_, enc};
use super::emit::Emitter;
use super::operand::{Lane, signature};
use super::plan::{Operand, Place};
use crate::code::Ptr;
use crate::ops::{Op, Reg};

/// Registers for passing values.
pub(super) const TEMP: [Vec_; 7] = [Vec_(25), Vec_(26), Vec_(27), Vec_(28), Vec_(29), Vec_(30), Vec_(31)];
/// Mask registers for passing values.
pub(super) const TEMP_MASK: Mask = Mask(6);
/// The same where there are none: a register of lanes of ones and zeros.
pub(super) const LANES: Vec_ = Vec_(24);

/// Where the lanes of an operand are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Loc {
    /// Registers, and bytes in all.
    Vectors(Vec<u8>, usize),
    Mask(Mask),
    /// Bools as lanes of ones and zeros: registers, bytes of a lane, and bytes in all.
    Lanes {
        registers: Vec<u8>,
        bytes: usize,
        total: usize,
    },
    Mem(Mem),
}

pub(super) const LOAD: Enc = enc(2, 1, 0x6f, 0);
pub(super) const STORE: Enc = enc(2, 1, 0x7f, 0);

impl Emitter<'_> {
    /// A vector instruction on pointer entries.
    pub(super) fn vector(&mut self, at: usize, op: Op, d: Ptr, args: [Ptr; 3], n: u32) {
        let Some(signature) = signature(op) else { return };
        // What lies in a buffer beside its variables is read and written in memory.
        let elsewhere = |this: &Self, ptr: Ptr| match this.plan.operands.get(&ptr) {
            Some(Operand::Static(_, base) | Operand::Dynamic(base)) => Some(*base),
            _ => None,
        };
        for (ptr, _) in args.iter().zip(signature.args).filter(|(_, lane)| lane.is_some()) {
            if let Some(base) = elsewhere(self, *ptr) {
                self.save_base(base, at);
            }
        }
        let written = elsewhere(self, d);
        if let Some(base) = written {
            self.save_base(base, at);
        }
        let mut locs = [Loc::Mem(Mem::at(RAX, 0)), Loc::Mem(Mem::at(RAX, 0)), Loc::Mem(Mem::at(RAX, 0))];
        let spread = matches!(op, Op::Broadcast(_) | Op::Ramp(_));
        for (i, pointer) in [RCX, RDX, RAX].into_iter().enumerate() {
            if signature.args[i].is_some() || spread && i < 2 {
                locs[i] = self.locate(args[i], pointer);
            }
        }
        let place = match self.plan.operands.get(&d) {
            Some(Operand::Variable(v)) => Some(*v),
            _ => None,
        };
        // The pointer of a result in memory is loaded last: `rax` is used for small pieces, so it goes to a register
        // that no operand took.
        let taken = |gpr| locs.iter().any(|l| matches!(l, Loc::Mem(mem) if mem.base == gpr));
        let free = if !taken(RDX) { RDX } else { RBP };
        let spill = free == RBP;
        let needs_pointer = self.needs_pointer(d);
        if needs_pointer && spill {
            self.asm.push(RBP);
        }
        let target = self.locate(d, free);
        self.lanes(op, target, locs, n);
        if needs_pointer && spill {
            self.asm.pop(RBP);
        }
        if let Some(v) = place
            && self.writes_through(v)
        {
            self.bring_home(v);
        }
        if let Some(base) = written {
            self.reload_base(base, at);
        }
    }

    fn needs_pointer(&self, ptr: Ptr) -> bool {
        let in_loop = self.inner.as_ref().is_some_and(|inner| inner.addresses.contains_key(&ptr));
        !in_loop && matches!(self.plan.operands.get(&ptr), Some(Operand::Dynamic(_)) | None)
    }

    /// Where a pointer entry's lanes are; `gpr` is used where the pointer must be loaded.
    pub(super) fn locate(&mut self, ptr: Ptr, gpr: Gpr) -> Loc {
        if let Some((pointer, away)) = self.inner.as_ref().and_then(|inner| inner.addresses.get(&ptr)) {
            return Loc::Mem(Mem::at(*pointer, *away));
        }
        match self.plan.operands.get(&ptr).copied() {
            Some(Operand::Variable(v)) => {
                let variable = self.plan.variables[v].clone();
                match variable.place {
                    Place::Vectors(registers) => Loc::Vectors(registers, variable.bytes),
                    Place::Mask(k) => Loc::Mask(Mask(k)),
                    Place::Lanes(registers) => {
                        let bytes = variable.lane_bytes;
                        Loc::Lanes { registers, bytes, total: variable.bytes * bytes }
                    }
                    Place::Memory => match variable.home {
                        super::plan::Home::Arena(offset) => Loc::Mem(Mem::at(R12, offset)),
                        super::plan::Home::Outer(outer) => self.through_table(outer, gpr),
                    },
                }
            }
            Some(Operand::Static(offset, _)) => Loc::Mem(Mem::at(R12, offset)),
            Some(Operand::Slot(slot)) => Loc::Mem(self.slot(slot)),
            Some(Operand::Dynamic(_)) => self.through_table(ptr, gpr),
            None => match self.compiled.ptrs[ptr as usize] {
                crate::code::PtrKind::Slot(slot) => Loc::Mem(self.slot(slot)),
                _ => self.through_table(ptr, gpr),
            },
        }
    }

    fn through_table(&mut self, ptr: Ptr, gpr: Gpr) -> Loc {
        self.asm.load(gpr, Mem::at(R14, ptr as i32 * 8), 8);
        Loc::Mem(Mem::at(gpr, 0))
    }

    /// An operation on operands whose places are known.
    pub(super) fn lanes(&mut self, op: Op, d: Loc, args: [Loc; 3], n: u32) {
        let Some(signature) = signature(op) else { return };
        let n = n as usize;
        match op {
            Op::Broadcast(bytes) => return self.broadcast(&d, &args[0], bytes.into(), n),
            Op::Ramp(bytes) => return self.ramp(&d, &args, bytes.into(), n),
            _ => {}
        }
        let lanes: Vec<Lane> = signature.args.iter().flatten().copied().chain([signature.out]).collect();
        if lanes.iter().all(|lane| lane.is_bool) {
            return self.on_bools(op, &d, &args, n);
        }
        let widest = lanes.iter().filter(|l| !l.is_bool).map(|l| l.bytes).max().unwrap_or(1);
        let widest = [&d, &args[0]].iter().fold(widest, |widest, loc| match loc {
            Loc::Lanes { bytes, .. } => widest.max(*bytes),
            Loc::Vectors(..) | Loc::Mask(_) | Loc::Mem(_) => widest,
        });
        let group = (self.width() / steps_on(op).unwrap_or(widest)).min(n);
        self.in_place = matches!(d, Loc::Vectors(..)) && args.contains(&d);
        for from in (0..n).step_by(group) {
            self.piece(op, &d, &args, from, group.min(n - from));
        }
        self.in_place = false;
    }

    fn broadcast(&mut self, d: &Loc, a: &Loc, bytes: usize, n: usize) {
        let Loc::Mem(mem) = a else { return };
        let piece = (n * bytes).min(self.width());
        let target = self.target(d, 0, piece);
        self.spread(target, *mem, bytes, piece);
        for from in (0..n * bytes).step_by(piece) {
            self.output(d, from, piece.min(n * bytes - from), target);
        }
    }

    /// One element in all lanes.
    fn spread(&mut self, target: Vec_, mem: Mem, bytes: usize, piece: usize) {
        let e = match bytes {
            8 => enc(1, 2, 0x59, 1),
            4 => enc(1, 2, 0x58, 0),
            2 => enc(1, 2, 0x79, 0),
            _ => enc(1, 2, 0x78, 0),
        };
        self.asm.op(e, Len::of(piece), target, Vec_(0), Rm::Mem(mem, bytes as u8));
    }

    /// The int64 that a scalar operand always is.
    fn always(&self, loc: &Loc) -> Option<i64> {
        let Loc::Mem(Mem { base: RBX, index: None, disp }) = loc else { return None };
        self.slots.constant(*disp as u32 / 8)
    }

    fn ramp(&mut self, d: &Loc, args: &[Loc; 3], bytes: usize, n: usize) {
        let (Loc::Mem(first), Loc::Mem(step)) = (&args[0], &args[1]) else { return };
        let width = self.width();
        let piece = (n * bytes).min(width);
        let reg = if bytes == 8 { Reg::I64 } else { Reg::I32 };
        self.spread(TEMP[1], *first, bytes, piece);
        let known = self.always(&args[1]);
        if known.is_none() {
            // Products of 64-bit integers take the second and the following ones for themselves.
            self.spread(TEMP[5], *step, bytes, piece);
        }
        for from in (0..n * bytes).step_by(piece) {
            let lane = |i: usize| ((from / bytes + i) as i64).wrapping_mul(known.unwrap_or(1));
            let table: Vec<u8> =
                (0..width / bytes).flat_map(|i| lane(i).to_le_bytes()[..bytes].to_vec()).collect();
            let table = Rm::Table(self.asm.constant(&table), width as u8);
            let size = piece.min(n * bytes - from);
            let target = self.target(d, from, size);
            let mut away = table;
            if known.is_none() {
                self.arithmetic(BinaryOp::Mul, reg, TEMP[3], TEMP[5], table, piece / bytes);
                away = Rm::Reg(TEMP[3]);
            }
            self.arithmetic(BinaryOp::Add, reg, target, TEMP[1], away, piece / bytes);
            self.output(d, from, size, target);
        }
    }
}

/// Bytes of the lanes that most steps of an operation are on, where those are not its widest ones.
fn steps_on(op: Op) -> Option<usize> {
    matches!(op, Op::Widen(DType::F8E4M3)).then_some(2)
}
