//! Vectors of bools: bits of a mask register where there are those, else lanes of ones or zeros as wide as what was
//! compared. In memory they are bytes, 0 or 1.

use coulis_ir::BinaryOp;

use super::asm::{Isa, Len, Mask, Mem, Rm, Vec_, enc};
use super::emit::Emitter;
use super::lanes::extend;
use super::moves::{SMALL, enc_load, enc_store};
use super::vector::{LANES, Loc, TEMP, TEMP_MASK};
use crate::ops::Op;

/// A mask that is put together.
const COMBINED: Mask = Mask(7);

/// Lanes that are picked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Picked {
    Mask(Mask),
    /// Lanes of a register that are all ones or all zeros.
    Lanes(Vec_),
}

impl Emitter<'_> {
    /// The lanes of a bool operand from a lane on, for lanes of so many bytes.
    pub(super) fn condition(&mut self, loc: &Loc, from: usize, lanes: usize, bytes: usize) -> Picked {
        match self.asm.isa {
            Isa::Avx2 => Picked::Lanes(self.condition_in_lanes(loc, from, lanes, bytes)),
            Isa::Avx512 => Picked::Mask(self.condition_in_mask(loc, from, lanes)),
        }
    }

    fn condition_in_mask(&mut self, loc: &Loc, from: usize, lanes: usize) -> Mask {
        match loc {
            Loc::Mask(k) if from == 0 => *k,
            Loc::Mask(k) => {
                let shift = enc(1, 3, 0x31, 1);
                self.asm.mask(shift, false, TEMP_MASK, Mask(0), *k, Some(from as u8));
                // An instruction of two operands has no first one.
                TEMP_MASK
            }
            Loc::Mem(_) | Loc::Vectors(..) | Loc::Lanes { .. } => {
                let rm = self.input(loc, from, lanes, TEMP[5]);
                let register = self.in_register(rm, lanes, TEMP[5]);
                let test = enc(1, 2, 0x26, 0);
                self.asm.op(test, Len::of(lanes), Vec_(TEMP_MASK.0), register, Rm::Reg(register));
                TEMP_MASK
            }
        }
    }

    fn condition_in_lanes(&mut self, loc: &Loc, from: usize, lanes: usize, bytes: usize) -> Vec_ {
        if let Loc::Lanes { registers, bytes: own, total } = loc {
            let whole = Loc::Vectors(registers.clone(), *total);
            let piece = self.input(&whole, from * own, lanes * own, TEMP[5]);
            let piece = self.in_register(piece, lanes * own, TEMP[5]);
            return self.resized(LANES, piece, (*own, bytes), lanes);
        }
        let rm = self.input(loc, from, lanes, TEMP[5]);
        self.spread_bytes(LANES, rm, lanes, bytes);
        LANES
    }

    /// Bytes that are 0 or 1 to lanes of zeros or ones; it takes `TEMP[5]`.
    fn spread_bytes(&mut self, d: Vec_, a: Rm, lanes: usize, bytes: usize) {
        let len = Len::of(lanes * bytes);
        let mut wide = a;
        if bytes > 1 {
            self.asm.op(extend(1, bytes, false), len, d, Vec_(0), a);
            wide = Rm::Reg(d);
        } else if a == Rm::Reg(TEMP[5]) {
            self.copy(d, TEMP[5]);
            wide = Rm::Reg(d);
        }
        let minus = [0xf8, 0xf9, 0xfa, 0xfb][bytes.ilog2() as usize];
        self.asm.op(enc(1, 1, 0xef, 0), Len::Y, TEMP[5], TEMP[5], Rm::Reg(TEMP[5]));
        self.asm.op(enc(1, 1, minus, 0), len, d, TEMP[5], wide);
    }

    /// Lanes of ones or zeros at another width: in `d` unless nothing changes.
    fn resized(&mut self, d: Vec_, a: Vec_, (from, to): (usize, usize), lanes: usize) -> Vec_ {
        if from == to {
            return a;
        }
        if from < to {
            self.asm.op(extend(from, to, true), Len::of(lanes * to), d, Vec_(0), Rm::Reg(a));
        } else {
            self.low_parts(d, a, (from, to), lanes);
        }
        d
    }

    /// The low parts of lanes side by side, where no instruction brings them together; it takes `TEMP[6]`.
    pub(super) fn low_parts(&mut self, d: Vec_, a: Vec_, (from, to): (usize, usize), lanes: usize) {
        let half = 16 / from * to;
        let byte = |i: usize| {
            let (upper, within) = (i / 16, i % 16);
            let at = if upper == 0 { Some(within) } else { within.checked_sub(half) };
            at.filter(|at| *at < half).map_or(0x80, |at| (at / to * from + at % to) as u8)
        };
        let table: Vec<u8> = (0..32).map(byte).collect();
        let table = Rm::Table(self.asm.constant(&table), 32);
        let shuffle = enc(1, 2, 0x00, 0);
        if lanes * from <= 16 {
            return self.asm.op(shuffle, Len::X, d, a, table);
        }
        self.asm.op(shuffle, Len::Y, d, a, table);
        self.asm.op_imm(enc(1, 3, 0x39, 0), Len::Y, d, Vec_(0), Rm::Reg(TEMP[6]), 1);
        self.asm.op(enc(1, 1, 0xeb, 0), Len::X, d, d, Rm::Reg(TEMP[6]));
    }

    /// `picked ? on_true : on_false` in lanes of so many bytes.
    pub(super) fn blend(
        &mut self,
        bytes: usize,
        len: Len,
        d: Vec_,
        (on_true, on_false): (Rm, Vec_),
        picked: Picked,
    ) {
        match picked {
            Picked::Lanes(lanes) => self.asm.blend_by_lanes(bytes, len, d, on_false, on_true, lanes),
            Picked::Mask(mask) => {
                let blend = match bytes {
                    1 => enc(1, 2, 0x66, 0),
                    2 => enc(1, 2, 0x66, 1),
                    4 => enc(1, 2, 0x64, 0),
                    _ => enc(1, 2, 0x64, 1),
                };
                self.asm.vec(blend, len, d, on_false, on_true, mask, false, None);
            }
        }
    }

    /// What a comparison of a piece with lanes of so many bytes is best made in.
    pub(super) fn picked_target(&self, d: &Loc, from: usize, lanes: usize, bytes: usize) -> Picked {
        match (self.asm.isa, d) {
            (Isa::Avx512, Loc::Mask(k)) if from == 0 => Picked::Mask(*k),
            (Isa::Avx512, _) => Picked::Mask(TEMP_MASK),
            (Isa::Avx2, Loc::Lanes { registers, bytes: own, total }) if *own == bytes => {
                let whole = Loc::Vectors(registers.clone(), *total);
                Picked::Lanes(self.target(&whole, from * bytes, lanes * bytes))
            }
            (Isa::Avx2, _) => Picked::Lanes(TEMP[0]),
        }
    }

    /// Puts the bools of a piece where they belong; `bytes` is how wide their lanes are.
    pub(super) fn output_picked(&mut self, d: &Loc, from: usize, lanes: usize, value: Picked, bytes: usize) {
        match value {
            Picked::Mask(k) => self.output_mask(d, from, lanes, k),
            Picked::Lanes(register) => self.output_lanes(d, from, lanes, register, bytes),
        }
    }

    fn output_lanes(&mut self, d: &Loc, from: usize, lanes: usize, value: Vec_, bytes: usize) {
        if let Loc::Lanes { registers, bytes: own, total } = d {
            let value = self.resized(TEMP[5], value, (bytes, *own), lanes);
            let whole = Loc::Vectors(registers.clone(), *total);
            return self.output(&whole, from * own, lanes * own, value);
        }
        let value = self.resized(TEMP[5], value, (bytes, 1), lanes);
        // The magnitude of what is -1 or 0.
        self.asm.op(enc(1, 2, 0x1c, 0), Len::of(lanes), TEMP[5], Vec_(0), Rm::Reg(value));
        self.output(d, from, lanes, TEMP[5]);
    }

    /// The bits behind the lanes of a piece are not looked at.
    fn output_mask(&mut self, d: &Loc, from: usize, lanes: usize, value: Mask) {
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
            Loc::Vectors(..) | Loc::Lanes { .. } => {
                let ones = self.asm.constant(&[1; 64]);
                let target = self.target(d, from, lanes);
                let load = enc(3, 1, 0x6f, 0);
                self.asm.vec(load, Len::of(lanes), target, Vec_(0), Rm::Table(ones, 64), value, true, None);
                self.output(d, from, lanes, target);
            }
        }
    }

    pub(super) fn load_mask(&mut self, k: Mask, mem: Mem, n: usize) {
        enc_load(&mut self.asm, TEMP[5], mem, n);
        let test = enc(1, 2, 0x26, 0);
        self.asm.op(test, Len::of(n), Vec_(k.0), TEMP[5], Rm::Reg(TEMP[5]));
    }

    pub(super) fn store_mask(&mut self, mem: Mem, k: Mask, n: usize) {
        if n == 1 {
            self.asm.mask_gpr(enc(0, 1, 0x93, 0), SMALL.0, k.0);
            self.asm.alu_imm(super::asm::Alu::And, SMALL, 1);
            self.asm.store(mem, SMALL, 1);
            return;
        }
        let ones = self.asm.constant(&[1; 64]);
        let load = enc(3, 1, 0x6f, 0);
        self.asm.vec(load, Len::of(n), TEMP[5], Vec_(0), Rm::Table(ones, 64), k, true, None);
        enc_store(&mut self.asm, mem, TEMP[5], n);
    }

    /// Loads `n` bools into registers whose lanes have so many bytes.
    pub(super) fn load_lanes(&mut self, registers: &[u8], mem: Mem, n: usize, bytes: usize) {
        let each = self.width() / bytes;
        for (part, register) in registers.iter().enumerate() {
            let lanes = each.min(n - part * each);
            enc_load(&mut self.asm, TEMP[5], mem.plus((part * each) as i32), lanes);
            self.spread_bytes(Vec_(*register), Rm::Reg(TEMP[5]), lanes, bytes);
        }
    }

    pub(super) fn store_lanes(&mut self, mem: Mem, registers: &[u8], n: usize, bytes: usize) {
        let each = self.width() / bytes;
        for (part, register) in registers.iter().enumerate() {
            let lanes = each.min(n - part * each);
            self.output_lanes(&Loc::Mem(mem), part * each, lanes, Vec_(*register), bytes);
        }
    }

    /// Operations whose operands are bools alone.
    pub(super) fn on_bools(&mut self, op: Op, d: &Loc, args: &[Loc; 3], n: usize) {
        let widths = [d, &args[0], &args[1]].map(|loc| match loc {
            Loc::Lanes { bytes, .. } => *bytes,
            Loc::Mask(_) | Loc::Mem(_) | Loc::Vectors(..) => 1,
        });
        let bytes = if widths[0] > 1 { widths[0] } else { widths[1] };
        let widest = widths.into_iter().max().unwrap_or(1);
        let step = match self.asm.isa {
            Isa::Avx2 => (self.width() / widest).min(n),
            Isa::Avx512 => n,
        };
        for from in (0..n).step_by(step) {
            let lanes = step.min(n - from);
            let a = self.condition(&args[0], from, lanes, bytes);
            let a = self.kept(a);
            let target = self.picked_target(d, from, lanes, bytes);
            let b = match op {
                Op::Binary(..) => Some(self.condition(&args[1], from, lanes, bytes)),
                _ => None,
            };
            self.logic(op, target, a, b);
            self.output_picked(d, from, lanes, target, bytes);
        }
    }

    /// The same where the next condition does not overwrite it.
    fn kept(&mut self, picked: Picked) -> Picked {
        match picked {
            Picked::Mask(TEMP_MASK) => {
                self.asm.mask(enc(0, 1, 0x90, 1), false, COMBINED, Mask(0), TEMP_MASK, None);
                Picked::Mask(COMBINED)
            }
            Picked::Lanes(lanes) if lanes == LANES || lanes == TEMP[5] => {
                self.copy(TEMP[4], lanes);
                Picked::Lanes(TEMP[4])
            }
            Picked::Mask(_) | Picked::Lanes(_) => picked,
        }
    }

    fn logic(&mut self, op: Op, d: Picked, a: Picked, b: Option<Picked>) {
        let which = match op {
            Op::Binary(BinaryOp::Or | BinaryOp::BitOr, _) => 0,
            Op::Binary(BinaryOp::BitXor, _) => 1,
            _ => 2,
        };
        match (d, a, b) {
            (Picked::Mask(d), Picked::Mask(a), Some(Picked::Mask(b))) => {
                let code = [0x45, 0x47, 0x41][which];
                self.asm.mask(enc(0, 1, code, 1), true, d, a, b, None);
            }
            (Picked::Mask(d), Picked::Mask(a), _) => {
                self.asm.mask(enc(0, 1, 0x44, 1), false, d, Mask(0), a, None);
            }
            (Picked::Lanes(d), Picked::Lanes(a), Some(Picked::Lanes(b))) => {
                let code = [0xeb, 0xef, 0xdb][which];
                self.asm.op(enc(1, 1, code, 0), Len::Y, d, a, Rm::Reg(b));
            }
            (Picked::Lanes(d), Picked::Lanes(a), _) => self.inverted(d, a),
            // One set of instructions has one kind.
            (Picked::Mask(_), Picked::Lanes(_), _) | (Picked::Lanes(_), Picked::Mask(_), _) => {}
        }
    }

    /// All bits the other way round; it takes `TEMP[5]`.
    pub(super) fn inverted(&mut self, d: Vec_, a: Vec_) {
        self.asm.op(enc(1, 1, 0x76, 0), Len::Y, TEMP[5], TEMP[5], Rm::Reg(TEMP[5]));
        self.asm.op(enc(1, 1, 0xef, 0), Len::Y, d, a, Rm::Reg(TEMP[5]));
    }
}
