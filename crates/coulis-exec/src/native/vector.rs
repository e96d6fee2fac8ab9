//! Vector operations as machine code: in pieces of lanes that fit a register at the widest type that takes part.

use super::asm::{Asm, Enc, Gpr, Len, Mask, Mem, R11, R12, R14, RAX, RBP, RBX, RCX, RDX, Rm, Vec_, enc};
use super::emit::Emitter;
use super::loops::POINTERS;
use super::operand::{Lane, signature};
use super::plan::{Operand, Place};
use crate::code::Ptr;
use crate::ops::Op;

/// Registers for passing values.
pub(super) const TEMP: [Vec_; 7] = [Vec_(25), Vec_(26), Vec_(27), Vec_(28), Vec_(29), Vec_(30), Vec_(31)];
/// A general register for pieces of one or two bytes.
pub(super) const SMALL: Gpr = R11;
/// Mask registers for passing values.
pub(super) const TEMP_MASK: Mask = Mask(6);
const COMBINED: Mask = Mask(7);
/// The bytes of a piece that is no power of two.
const ODD: Mask = Mask(5);

/// Where the lanes of an operand are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Loc {
    Vectors(Vec<u8>, usize),
    Mask(Mask),
    Mem(Mem),
}

const LOAD: Enc = enc(2, 1, 0x6f, 0);
const STORE: Enc = enc(2, 1, 0x7f, 0);

/// Picks so many bytes of a register.
fn pick_bytes(asm: &mut Asm, bytes: usize) {
    asm.mov_imm(SMALL, (1 << bytes) - 1);
    asm.mask_gpr(enc(3, 1, 0x92, 1), ODD.0, SMALL.0);
}

/// Loads so many bytes; the rest of the register is 0.
pub(super) fn enc_load(asm: &mut Asm, d: Vec_, mem: Mem, bytes: usize) {
    match bytes {
        _ if !bytes.is_power_of_two() => {
            pick_bytes(asm, bytes);
            asm.vec(
                enc(3, 1, 0x6f, 0),
                Len::of(bytes),
                d,
                Vec_(0),
                Rm::bytes_at(mem, bytes),
                ODD,
                true,
                None,
            );
        }
        1 | 2 => {
            asm.load(SMALL, mem, bytes);
            asm.vec(enc(1, 1, 0x6e, 0), Len::X, d, Vec_(0), Rm::Reg(Vec_(SMALL.0)), Mask(0), false, None);
        }
        4 => asm.vec(enc(1, 1, 0x6e, 0), Len::X, d, Vec_(0), Rm::Mem(mem, 4), Mask(0), false, None),
        8 => asm.vec(enc(2, 1, 0x7e, 1), Len::X, d, Vec_(0), Rm::Mem(mem, 8), Mask(0), false, None),
        _ => {
            if asm.holds(d, mem, bytes) {
                return;
            }
            asm.vec(LOAD, Len::of(bytes), d, Vec_(0), Rm::Mem(mem, bytes as u8), Mask(0), false, None);
            // Other registers are set anew for each operand.
            if POINTERS.contains(&mem.base) {
                asm.note_loaded(d, mem, bytes);
            }
        }
    }
}

/// Stores so many bytes.
pub(super) fn enc_store(asm: &mut Asm, mem: Mem, a: Vec_, bytes: usize) {
    asm.forget_loaded();
    match bytes {
        _ if !bytes.is_power_of_two() => {
            pick_bytes(asm, bytes);
            asm.vec(
                enc(3, 1, 0x7f, 0),
                Len::of(bytes),
                a,
                Vec_(0),
                Rm::bytes_at(mem, bytes),
                ODD,
                false,
                None,
            );
        }
        1 | 2 => {
            asm.vec(enc(1, 1, 0x7e, 0), Len::X, a, Vec_(0), Rm::Reg(Vec_(SMALL.0)), Mask(0), false, None);
            asm.store(mem, SMALL, bytes);
        }
        4 => asm.vec(enc(1, 1, 0x7e, 0), Len::X, a, Vec_(0), Rm::Mem(mem, 4), Mask(0), false, None),
        8 => asm.vec(enc(1, 1, 0xd6, 1), Len::X, a, Vec_(0), Rm::Mem(mem, 8), Mask(0), false, None),
        _ => asm.vec(STORE, Len::of(bytes), a, Vec_(0), Rm::Mem(mem, bytes as u8), Mask(0), false, None),
    }
}

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
            return self.on_masks(op, &d, &args, n);
        }
        let widest = lanes.iter().filter(|l| !l.is_bool).map(|l| l.bytes).max().unwrap_or(1);
        let group = (64 / widest).min(n);
        for from in (0..n).step_by(group) {
            self.piece(op, &d, &args, from, group.min(n - from));
        }
    }

    /// A piece of an operand as a register or as memory; small pieces are loaded into `temp`.
    pub(super) fn input(&mut self, loc: &Loc, from: usize, bytes: usize, temp: Vec_) -> Rm {
        match loc {
            Loc::Mem(mem) => {
                let mem = mem.plus(from as i32);
                if bytes < 16 || !bytes.is_power_of_two() {
                    enc_load(&mut self.asm, temp, mem, bytes);
                    Rm::Reg(temp)
                } else {
                    self.asm.holder(mem, bytes).map_or(Rm::Mem(mem, bytes as u8), Rm::Reg)
                }
            }
            Loc::Vectors(registers, total) => {
                let part = (*total).min(64);
                let register = Vec_(registers[from / part]);
                let away = from % part;
                self.extract(register, away, bytes, temp)
            }
            // Masks are taken by `condition`.
            Loc::Mask(_) => Rm::Reg(temp),
        }
    }

    fn extract(&mut self, register: Vec_, away: usize, bytes: usize, temp: Vec_) -> Rm {
        if away == 0 {
            return Rm::Reg(register);
        }
        let asm = &mut self.asm;
        if bytes > 16 {
            let e = enc(1, 3, 0x3b, 1);
            asm.vec(e, Len::Z, register, Vec_(0), Rm::Reg(temp), Mask(0), false, Some((away / 32) as u8));
            return Rm::Reg(temp);
        }
        let mut source = register;
        if away >= 16 {
            let e = enc(1, 3, 0x39, 0);
            asm.vec(e, Len::Z, register, Vec_(0), Rm::Reg(temp), Mask(0), false, Some((away / 16) as u8));
            source = temp;
        }
        if !away.is_multiple_of(16) {
            let e = enc(1, 1, 0x73, 0);
            asm.vec(e, Len::X, Vec_(3), temp, Rm::Reg(source), Mask(0), false, Some((away % 16) as u8));
        }
        Rm::Reg(temp)
    }

    /// The register that a piece of the result is best computed in.
    pub(super) fn target(&self, d: &Loc, from: usize, bytes: usize) -> Vec_ {
        match d {
            Loc::Vectors(registers, total) => {
                let part = (*total).min(64);
                let is_whole = from.is_multiple_of(part) && bytes >= part.min(total - from);
                if is_whole { Vec_(registers[from / part]) } else { TEMP[0] }
            }
            Loc::Mem(_) | Loc::Mask(_) => TEMP[0],
        }
    }

    /// Puts a piece of the result where it belongs.
    pub(super) fn output(&mut self, d: &Loc, from: usize, bytes: usize, value: Vec_) {
        match d {
            Loc::Mem(mem) => enc_store(&mut self.asm, mem.plus(from as i32), value, bytes),
            Loc::Vectors(registers, total) => {
                let part = (*total).min(64);
                let register = Vec_(registers[from / part]);
                let away = from % part;
                let asm = &mut self.asm;
                if away == 0 {
                    if register != value {
                        asm.vec(
                            LOAD,
                            Len::of(bytes),
                            register,
                            Vec_(0),
                            Rm::Reg(value),
                            Mask(0),
                            false,
                            None,
                        );
                    }
                    return;
                }
                let (e, imm) = match bytes {
                    17.. => (enc(1, 3, 0x3a, 1), away / 32),
                    9..=16 => (enc(1, 3, 0x38, 0), away / 16),
                    _ => return self.insert_small(register, away, bytes, value, part),
                };
                let len = Len::of(part);
                asm.vec(e, len, register, register, Rm::Reg(value), Mask(0), false, Some(imm as u8));
            }
            Loc::Mask(_) => {}
        }
    }

    /// Fills the lanes of a register from a piece of less than 16 bytes.
    fn insert_small(&mut self, register: Vec_, away: usize, bytes: usize, value: Vec_, part: usize) {
        // Every piece is spread over its whole register, and a mask of bytes picks its place.
        let spread = match bytes {
            5.. => enc(1, 2, 0x59, 1),
            3..=4 => enc(1, 2, 0x58, 0),
            2 => enc(1, 2, 0x79, 0),
            _ => enc(1, 2, 0x78, 0),
        };
        let picked = ((1u64 << bytes) - 1) << away;
        self.asm.mov_imm(SMALL, picked);
        self.asm.mask_gpr(enc(3, 1, 0x92, 1), TEMP_MASK.0, SMALL.0);
        let asm = &mut self.asm;
        asm.vec(spread, Len::of(part), TEMP[6], Vec_(0), Rm::Reg(value), Mask(0), false, None);
        let move_bytes = enc(3, 1, 0x6f, 0);
        asm.vec(move_bytes, Len::of(part), register, Vec_(0), Rm::Reg(TEMP[6]), TEMP_MASK, false, None);
    }

    /// The mask of lanes of a bool operand from a lane on.
    pub(super) fn condition(&mut self, loc: &Loc, from: usize, lanes: usize) -> Mask {
        match loc {
            Loc::Mask(k) if from == 0 => *k,
            Loc::Mask(k) => {
                let shift = enc(1, 3, 0x31, 1);
                self.asm.mask(shift, false, TEMP_MASK, Mask(0), *k, Some(from as u8));
                // An instruction of two operands has no first one.
                TEMP_MASK
            }
            Loc::Mem(_) | Loc::Vectors(..) => {
                let rm = self.input(loc, from, lanes, TEMP[5]);
                let register = self.in_register(rm, lanes, TEMP[5]);
                let test = enc(1, 2, 0x26, 0);
                self.asm.vec(
                    test,
                    Len::of(lanes),
                    Vec_(TEMP_MASK.0),
                    register,
                    Rm::Reg(register),
                    Mask(0),
                    false,
                    None,
                );
                TEMP_MASK
            }
        }
    }

    pub(super) fn in_register(&mut self, rm: Rm, bytes: usize, temp: Vec_) -> Vec_ {
        match rm {
            Rm::Reg(register) => register,
            Rm::Mem(mem, _) => {
                enc_load(&mut self.asm, temp, mem, bytes);
                temp
            }
            Rm::Pool(..) | Rm::Table(..) => {
                self.asm.vec(LOAD, Len::of(bytes), temp, Vec_(0), rm, Mask(0), false, None);
                temp
            }
        }
    }

    /// The mask register that a comparison of a piece is best made in.
    pub(super) fn mask_target(&self, d: &Loc, from: usize) -> Mask {
        match d {
            Loc::Mask(k) if from == 0 => *k,
            _ => TEMP_MASK,
        }
    }

    /// Puts the bools of a piece where they belong. The bits behind its lanes are 0.
    pub(super) fn output_mask(&mut self, d: &Loc, from: usize, lanes: usize, value: Mask) {
        match d {
            Loc::Mask(k) => {
                if from > 0 {
                    let shift = enc(1, 3, 0x33, 1);
                    self.asm.mask(shift, false, COMBINED, Mask(0), value, Some(from as u8));
                    self.asm.mask(enc(0, 1, 0x45, 1), true, *k, *k, COMBINED, None);
                } else if *k != value {
                    self.asm.mask(enc(0, 1, 0x90, 1), false, *k, Mask(0), value, None);
                }
            }
            Loc::Mem(mem) => self.store_mask(mem.plus(from as i32), value, lanes),
            Loc::Vectors(..) => {
                let ones = self.asm.constant(&[1; 64]);
                let target = self.target(d, from, lanes);
                let load = enc(3, 1, 0x6f, 0);
                self.asm.vec(load, Len::of(lanes), target, Vec_(0), Rm::Table(ones, 64), value, true, None);
                self.output(d, from, lanes, target);
            }
        }
    }

    /// Operations whose operands are bools alone.
    fn on_masks(&mut self, op: Op, d: &Loc, args: &[Loc; 3], n: usize) {
        use coulis_ir::BinaryOp;
        let a = self.condition(&args[0], 0, n);
        let a = if a == TEMP_MASK {
            self.asm.mask(enc(0, 1, 0x90, 1), false, COMBINED, Mask(0), a, None);
            COMBINED
        } else {
            a
        };
        let target = self.mask_target(d, 0);
        match op {
            Op::Not => self.asm.mask(enc(0, 1, 0x44, 1), false, target, Mask(0), a, None),
            Op::Binary(binary, _) => {
                let b = self.condition(&args[1], 0, n);
                let op = match binary {
                    BinaryOp::Or | BinaryOp::BitOr => 0x45,
                    BinaryOp::BitXor => 0x47,
                    _ => 0x41,
                };
                self.asm.mask(enc(0, 1, op, 1), true, target, a, b, None);
            }
            _ => {}
        }
        self.output_mask(d, 0, n, target);
    }

    fn broadcast(&mut self, d: &Loc, a: &Loc, bytes: usize, n: usize) {
        let Loc::Mem(mem) = a else { return };
        let piece = (n * bytes).min(64);
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
        self.asm.vec(e, Len::of(piece), target, Vec_(0), Rm::Mem(mem, bytes as u8), Mask(0), false, None);
    }

    /// The int64 that a scalar operand always is.
    fn always(&self, loc: &Loc) -> Option<i64> {
        let Loc::Mem(Mem { base: RBX, index: None, disp }) = loc else { return None };
        self.slots.constant(*disp as u32 / 8)
    }

    fn ramp(&mut self, d: &Loc, args: &[Loc; 3], bytes: usize, n: usize) {
        let (Loc::Mem(first), Loc::Mem(step)) = (&args[0], &args[1]) else { return };
        let piece = (n * bytes).min(64);
        let (len, w) = (Len::of(piece), u8::from(bytes == 8));
        self.spread(TEMP[1], *first, bytes, piece);
        let known = self.always(&args[1]);
        if known.is_none() {
            self.spread(TEMP[2], *step, bytes, piece);
        }
        for from in (0..n * bytes).step_by(piece) {
            let lane = |i: usize| ((from / bytes + i) as i64).wrapping_mul(known.unwrap_or(1));
            let table: Vec<u8> =
                (0..64 / bytes).flat_map(|i| lane(i).to_le_bytes()[..bytes].to_vec()).collect();
            let table = Rm::Table(self.asm.constant(&table), 64);
            let size = piece.min(n * bytes - from);
            let target = self.target(d, from, size);
            let asm = &mut self.asm;
            let mut away = table;
            if known.is_none() {
                asm.vec(enc(1, 2, 0x40, w), len, TEMP[3], TEMP[2], table, Mask(0), false, None);
                away = Rm::Reg(TEMP[3]);
            }
            let add = if w == 1 { enc(1, 1, 0xd4, 1) } else { enc(1, 1, 0xfe, 0) };
            asm.vec(add, len, target, TEMP[1], away, Mask(0), false, None);
            self.output(d, from, size, target);
        }
    }
}
