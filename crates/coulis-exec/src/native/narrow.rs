//! The float types of 8 and 16 bits as machine code: memory form to `f32` lanes and back, with the steps of `ops::narrow`.

use coulis_ir::DType;

use super::asm::{Isa, Len, Rm, Vec_, enc};
use super::emit::Emitter;
use super::lanes::{ALL, NONE, UNORDERED, extend};
use super::vector::{Loc, TEMP, TEMP_MASK};
use crate::ops::{NAN_BYTE, ToByte};

/// Digits of shifts by constants.
const RIGHT: u8 = 2;
const LEFT: u8 = 6;

impl Emitter<'_> {
    /// 8- or 16-bit lanes to an `f32` register.
    pub(super) fn widen(&mut self, dtype: DType, d: Vec_, a: Rm, len: Len) {
        match dtype {
            DType::F8E5M2 => {
                // The upper half of a binary16.
                let half = half_of(len);
                self.op1(extend(1, 2, false), half, d, a);
                self.shift_words(half, d, 8);
                self.halves_to_floats(d, Rm::Reg(d), len);
            }
            DType::F8E4M3 => {
                self.e4m3_to_halves(d, a, half_of(len));
                self.scaled_to_floats(d, Rm::Reg(d), len);
            }
            DType::F16 => self.halves_to_floats(d, a, len),
            _ => {
                self.op1(enc(1, 2, 0x33, 0), len, d, a);
                self.shift_doublewords(LEFT, len, d, d, 16);
            }
        }
    }

    /// Bytes of an `e4m3` operand, whose steps are on 16-bit lanes, to `f32` lanes: twice as many at once as there are in
    /// a register of those.
    pub(super) fn widen_e4m3(&mut self, d: &Loc, a: &Loc, from: usize, lanes: usize) {
        let halves = TEMP[3];
        let a = self.exact_input(a, from, 1, lanes, 2);
        self.e4m3_to_halves(halves, a, Len::of(lanes * 2));
        let halves = Loc::Vectors(vec![halves.0], lanes * 2);
        for first in (0..lanes).step_by(self.width() / 4) {
            let count = (lanes - first).min(self.width() / 4);
            let target = self.target(d, (from + first) * 4, count * 4);
            let part = self.input(&halves, first * 2, count * 2, TEMP[2]);
            self.scaled_to_floats(target, part, Len::of(count * 4));
            self.output(d, (from + first) * 4, count * 4, target);
        }
    }

    /// `e4m3` to binary16, whose exponent has one bit more: the value divided by 2^8. A product of `f32` would take
    /// subnormal numbers, which are slow.
    fn e4m3_to_halves(&mut self, d: Vec_, a: Rm, len: Len) {
        let (nan, and) = (TEMP[2], enc(1, 1, 0xdb, 0));
        self.op1(extend(1, 2, true), len, d, a);
        self.shift_words(len, d, 7);
        let magnitude = self.bits(0x3f80_3f80, 4);
        self.op2(and, len, nan, d, magnitude);
        let without_copy_of_sign = self.bits(0xbf80_bf80, 4);
        self.op2(and, len, d, d, without_copy_of_sign);
        // The largest magnitude becomes the NaN without a payload.
        let (largest, away) = (0x3f80, 0x7e00 - 0x3f80);
        let (equal, add) = (enc(1, 1, 0x75, 0), enc(1, 1, 0xfd, 0));
        let largest = self.words(largest);
        let away = self.words(away);
        match self.asm.isa {
            Isa::Avx2 => {
                self.op2(equal, len, nan, nan, largest);
                self.op2(and, len, nan, nan, away);
                self.op2(add, len, d, d, Rm::Reg(nan));
            }
            Isa::Avx512 => {
                self.op2(equal, len, Vec_(TEMP_MASK.0), nan, largest);
                self.asm.vec(add, len, d, d, away, TEMP_MASK, false, None);
            }
        }
    }

    /// What [`Self::e4m3_to_halves`] gave to the values.
    fn scaled_to_floats(&mut self, d: Vec_, a: Rm, len: Len) {
        self.halves_to_floats(d, a, len);
        let scale = self.bits(256f32.to_bits().into(), 4);
        self.op2(enc(0, 1, 0x59, 0), len, d, d, scale);
    }

    fn halves_to_floats(&mut self, d: Vec_, a: Rm, len: Len) {
        self.op1(enc(1, 2, 0x13, 0), len, d, a);
    }

    /// A constant of 2 bytes in all lanes: no instruction on those spreads an operand.
    fn words(&mut self, bits: u16) -> Rm {
        match self.asm.isa {
            Isa::Avx2 => self.bits(bits.into(), 2),
            Isa::Avx512 => Rm::Table(self.asm.constant(&bits.to_le_bytes().repeat(32)), 64),
        }
    }

    fn shift_words(&mut self, len: Len, d: Vec_, by: u8) {
        self.asm.vec(enc(1, 1, 0x71, 0), len, Vec_(LEFT), d, Rm::Reg(d), ALL, false, Some(by));
    }

    fn shift_doublewords(&mut self, digit: u8, len: Len, d: Vec_, a: Vec_, by: u8) {
        self.asm.vec(enc(1, 1, 0x72, 0), len, Vec_(digit), d, Rm::Reg(a), ALL, false, Some(by));
    }

    /// An `f32` register to 8- or 16-bit lanes.
    pub(super) fn narrow(&mut self, dtype: DType, d: Vec_, a: Vec_, len: Len) {
        match dtype {
            DType::F8E5M2 => self.narrow_to_byte(&ToByte::E5M2, d, a, len),
            DType::F8E4M3 => self.narrow_to_byte(&ToByte::E4M3, d, a, len),
            DType::F16 => self.narrow_to_half(d, a, len),
            _ => self.narrow_to_bf16(d, a, len),
        }
    }

    fn narrow_to_byte(&mut self, to: &ToByte, d: Vec_, a: Vec_, len: Len) {
        let (magnitude, subnormal, code) = (TEMP[2], TEMP[3], TEMP[4]);
        let (and, or, add) = (enc(1, 1, 0xdb, 0), enc(1, 1, 0xeb, 0), enc(1, 1, 0xfe, 0));
        let all_but_sign = self.bits(0x7fff_ffff, 4);
        self.op2(and, len, magnitude, a, all_but_sign);
        let magic = self.bits(to.magic.into(), 4);
        self.op2(enc(0, 1, 0x58, 0), len, subnormal, magnitude, magic);
        self.op2(enc(1, 1, 0xfa, 0), len, subnormal, subnormal, magic);
        self.shift_doublewords(RIGHT, len, code, magnitude, to.shift as u8);
        let one = self.bits(1, 4);
        self.op2(and, len, code, code, one);
        self.op2(add, len, code, code, Rm::Reg(magnitude));
        let rounding = self.bits(to.to_round().into(), 4);
        self.op2(add, len, code, code, rounding);
        self.shift_doublewords(RIGHT, len, code, code, to.shift as u8);
        let overflow = self.bits(to.overflow.into(), 4);
        self.op2(enc(1, 2, 0x3b, 0), len, code, code, overflow);
        let normal = self.bits(to.normal.into(), 4);
        let is_less = 0x11;
        let is_small = self.picked_where(enc(0, 1, 0xc2, 0), len, magnitude, normal, is_less);
        self.blend(4, len, code, (Rm::Reg(subnormal), code), is_small);
        if to.overflow != NAN_BYTE {
            let is_nan = self.picked_where(enc(0, 1, 0xc2, 0), len, a, Rm::Reg(a), UNORDERED);
            let nan = self.bits(NAN_BYTE.into(), 4);
            self.blend(4, len, code, (nan, code), is_nan);
        }
        let sign = magnitude;
        self.shift_doublewords(RIGHT, len, sign, a, 24);
        let first_bit = self.bits(0x80, 4);
        self.op2(and, len, sign, sign, first_bit);
        self.op2(or, len, code, code, Rm::Reg(sign));
        self.low_lanes(d, code, 1, len);
    }

    fn narrow_to_half(&mut self, d: Vec_, a: Vec_, len: Len) {
        // Every NaN becomes the one of its sign, as in the interpreter.
        let one_nan = TEMP[4];
        let is_nan = self.picked_where(enc(0, 1, 0xc2, 0), len, a, Rm::Reg(a), UNORDERED);
        let infinite = self.bits(0xff80_0000, 4);
        self.op2(enc(1, 1, 0xdb, 0), len, one_nan, a, infinite);
        let quiet = self.bits(0x40_0000, 4);
        self.op2(enc(1, 1, 0xeb, 0), len, one_nan, one_nan, quiet);
        self.blend(4, len, one_nan, (Rm::Reg(one_nan), a), is_nan);
        self.asm.op_imm(enc(1, 3, 0x1d, 0), len, one_nan, NONE, Rm::Reg(d), 0);
    }

    fn narrow_to_bf16(&mut self, d: Vec_, a: Vec_, len: Len) {
        let (high, sum) = (TEMP[3], TEMP[4]);
        self.shift_doublewords(RIGHT, len, high, a, 16);
        let one = self.bits(1, 4);
        self.op2(enc(1, 1, 0xdb, 0), len, sum, high, one);
        let half = self.bits(0x7fff, 4);
        self.op2(enc(1, 1, 0xfe, 0), len, sum, sum, half);
        self.op2(enc(1, 1, 0xfe, 0), len, sum, sum, Rm::Reg(a));
        self.shift_doublewords(RIGHT, len, sum, sum, 16);
        // A NaN stays one.
        let is_nan = self.picked_where(enc(0, 1, 0xc2, 0), len, a, Rm::Reg(a), UNORDERED);
        let quiet = self.bits(0x40, 4);
        self.op2(enc(1, 1, 0xeb, 0), len, high, high, quiet);
        self.blend(4, len, sum, (Rm::Reg(high), sum), is_nan);
        self.low_lanes(d, sum, 2, len);
    }

    /// The low bytes of 32-bit lanes side by side.
    fn low_lanes(&mut self, d: Vec_, a: Vec_, bytes: usize, len: Len) {
        match self.asm.isa {
            Isa::Avx2 => self.low_parts(d, a, (4, bytes), (16 << len as usize) / 4),
            Isa::Avx512 => {
                let e = if bytes == 1 { enc(2, 2, 0x31, 0) } else { enc(2, 2, 0x33, 0) };
                self.asm.op(e, len, a, NONE, Rm::Reg(d));
            }
        }
    }
}

/// The length of as many 16-bit lanes as there are 32-bit ones.
fn half_of(len: Len) -> Len {
    if len == Len::Z { Len::Y } else { Len::X }
}
