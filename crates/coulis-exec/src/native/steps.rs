//! Operations that AVX2 has no instruction for, in several: comparisons of integers, 64-bit integers, and their conversions.

use coulis_ir::BinaryOp;

use super::asm::{Len, Rm, Vec_, enc};
use super::emit::Emitter;
use super::lanes::is_signed;
use super::vector::TEMP;
use crate::ops::Reg;

impl Emitter<'_> {
    /// Lanes of ones where a comparison of integers holds; it takes `TEMP[3]` to `TEMP[5]`.
    pub(super) fn compare_in_lanes(&mut self, op: BinaryOp, reg: Reg, d: Vec_, a: Vec_, b: Rm, len: Len) {
        let bytes = reg.bytes();
        if matches!(op, BinaryOp::Eq | BinaryOp::Ne) {
            let equal = [enc(1, 1, 0x74, 0), enc(1, 1, 0x75, 0), enc(1, 1, 0x76, 0), enc(1, 2, 0x29, 0)];
            self.op2(equal[bytes.ilog2() as usize], len, d, a, b);
            if op == BinaryOp::Ne {
                self.inverted(d, d);
            }
            return;
        }
        let (mut a, mut b) = (a, self.in_register(b, 16 << len as usize, TEMP[2]));
        if !is_signed(reg) {
            // The order of signed integers is that of unsigned ones moved by a half.
            let half = self.bits(1 << (8 * bytes - 1), bytes);
            self.op2(enc(1, 1, 0xef, 0), len, TEMP[3], a, half);
            self.op2(enc(1, 1, 0xef, 0), len, TEMP[4], Vec_(b.0), half);
            (a, b) = (TEMP[3], TEMP[4]);
        }
        let greater = [enc(1, 1, 0x64, 0), enc(1, 1, 0x65, 0), enc(1, 1, 0x66, 0), enc(1, 2, 0x37, 0)];
        let greater = greater[bytes.ilog2() as usize];
        if op == BinaryOp::Lt {
            self.op2(greater, len, d, b, Rm::Reg(a));
        } else {
            self.op2(greater, len, d, a, Rm::Reg(b));
            self.inverted(d, d);
        }
    }

    /// Products, minima and maxima of 64-bit integers.
    pub(super) fn wide_arithmetic(&mut self, op: BinaryOp, reg: Reg, d: Vec_, a: Vec_, b: Rm, len: Len) {
        let b = self.in_register(b, 16 << len as usize, TEMP[2]);
        if op == BinaryOp::Mul {
            // The low halves' product, and both mixed products in the upper half.
            let (product, high) = (enc(1, 1, 0xf4, 0), |this: &mut Self, d: Vec_, a: Vec_| {
                this.asm.op_imm(enc(1, 1, 0x73, 0), len, Vec_(2), d, Rm::Reg(a), 32);
            });
            high(self, TEMP[3], a);
            self.op2(product, len, TEMP[3], TEMP[3], Rm::Reg(b));
            high(self, TEMP[4], b);
            self.op2(product, len, TEMP[4], TEMP[4], Rm::Reg(a));
            self.op2(enc(1, 1, 0xd4, 0), len, TEMP[3], TEMP[3], Rm::Reg(TEMP[4]));
            self.asm.op_imm(enc(1, 1, 0x73, 0), len, Vec_(6), TEMP[3], Rm::Reg(TEMP[3]), 32);
            self.op2(product, len, TEMP[4], a, Rm::Reg(b));
            return self.op2(enc(1, 1, 0xd4, 0), len, d, TEMP[3], Rm::Reg(TEMP[4]));
        }
        let is_less = TEMP[6];
        self.compare_in_lanes(BinaryOp::Lt, reg, is_less, a, Rm::Reg(b), len);
        let (on_less, otherwise) = if op == BinaryOp::Min { (a, b) } else { (b, a) };
        self.asm.blend_by_lanes(8, len, d, otherwise, Rm::Reg(on_less), is_less);
    }

    /// Shifts 64-bit integers right by the counts in `TEMP[2]` and keeps their signs.
    pub(super) fn shift_signed(&mut self, len: Len, d: Vec_, a: Vec_, count: Vec_) {
        let exclusive = enc(1, 1, 0xef, 0);
        self.op2(exclusive, Len::Y, TEMP[3], TEMP[3], Rm::Reg(TEMP[3]));
        self.op2(enc(1, 2, 0x37, 0), len, TEMP[3], TEMP[3], Rm::Reg(a));
        self.op2(exclusive, len, TEMP[4], a, Rm::Reg(TEMP[3]));
        self.op2(enc(1, 2, 0x45, 1), len, TEMP[4], TEMP[4], Rm::Reg(count));
        self.op2(exclusive, len, d, TEMP[4], Rm::Reg(TEMP[3]));
    }

    /// Magnitudes of 64-bit integers.
    pub(super) fn absolute_in_steps(&mut self, d: Vec_, a: Rm, len: Len) {
        let a = self.in_register(a, 16 << len as usize, TEMP[1]);
        self.op2(enc(1, 1, 0xef, 0), Len::Y, TEMP[2], TEMP[2], Rm::Reg(TEMP[2]));
        self.op2(enc(1, 2, 0x37, 0), len, TEMP[2], TEMP[2], Rm::Reg(a));
        self.op2(enc(1, 1, 0xef, 0), len, TEMP[3], a, Rm::Reg(TEMP[2]));
        self.op2(enc(1, 1, 0xfb, 0), len, d, TEMP[3], Rm::Reg(TEMP[2]));
    }

    /// Integers of 64 bits, or of 32 without a sign, to floats; `f32` from 32 bits only. Each half becomes a float exactly,
    /// so that their sum is rounded once.
    pub(super) fn convert_in_steps(
        &mut self,
        (bytes, signed): (usize, bool),
        is_double: bool,
        d: Vec_,
        a: Rm,
        len: Len,
    ) {
        let two_52 = 0x4330_0000_0000_0000u64;
        if bytes == 8 {
            let a = self.in_register(a, 16 << len as usize, TEMP[1]);
            // The upper half is the end of 2^84, moved by a half where it has a sign.
            let (end, away) = match signed {
                true => (0x4530_0000_8000_0000u64, 2f64.powi(84) + 2f64.powi(63) + 2f64.powi(52)),
                false => (0x4530_0000_0000_0000, 2f64.powi(84) + 2f64.powi(52)),
            };
            self.asm.op_imm(enc(1, 1, 0x73, 0), len, Vec_(2), TEMP[3], Rm::Reg(a), 32);
            let end = self.bits(end, 8);
            self.op2(enc(1, 1, 0xef, 0), len, TEMP[3], TEMP[3], end);
            let away = self.bits(away.to_bits(), 8);
            self.op2(enc(1, 1, 0x5c, 1), len, TEMP[3], TEMP[3], away);
            let low = self.bits(two_52, 8);
            self.asm.op_imm(enc(1, 3, 0x02, 0), len, TEMP[4], a, low, 0xaa);
            return self.op2(enc(1, 1, 0x58, 1), len, d, TEMP[3], Rm::Reg(TEMP[4]));
        }
        if is_double {
            self.op1(enc(1, 2, 0x35, 0), len, TEMP[3], a);
            let end = self.bits(two_52, 8);
            self.op2(enc(1, 1, 0xeb, 0), len, TEMP[3], TEMP[3], end);
            return self.op2(enc(1, 1, 0x5c, 1), len, d, TEMP[3], end);
        }
        let a = self.in_register(a, 16 << len as usize, TEMP[1]);
        let to_float = enc(0, 1, 0x5b, 0);
        self.asm.op_imm(enc(1, 1, 0x72, 0), len, Vec_(2), TEMP[3], Rm::Reg(a), 16);
        self.op1(to_float, len, TEMP[3], Rm::Reg(TEMP[3]));
        let scale = self.bits(65536f32.to_bits().into(), 4);
        self.op2(enc(0, 1, 0x59, 0), len, TEMP[3], TEMP[3], scale);
        let low = self.bits(0xffff, 4);
        self.op2(enc(1, 1, 0xdb, 0), len, TEMP[4], a, low);
        self.op1(to_float, len, TEMP[4], Rm::Reg(TEMP[4]));
        self.op2(enc(0, 1, 0x58, 0), len, d, TEMP[3], Rm::Reg(TEMP[4]));
    }
}
