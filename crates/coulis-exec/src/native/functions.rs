//! exp and log lane by lane: the steps of `coulis_ir::math` with its constants, one instruction each, so that the bits are
//! the interpreter's.

use coulis_ir::math;

use super::asm::{Enc, Isa, Len, Mask, Rm, Vec_, enc};
use super::bools::Picked;
use super::emit::Emitter;
use super::vector::{LANES, LOAD, TEMP, TEMP_MASK};
use crate::ops::Reg;

const ALL: Mask = Mask(0);

/// The instructions of one float type.
#[derive(Clone, Copy)]
struct Float {
    reg: Reg,
    len: Len,
    pd: u8,
}

impl Float {
    fn new(reg: Reg, len: Len) -> Float {
        Float { reg, len, pd: u8::from(reg == Reg::F64) }
    }

    fn op(self, code: u8) -> Enc {
        enc(self.pd, 1, code, self.pd)
    }

    fn int_add(self) -> Enc {
        if self.pd == 1 { enc(1, 1, 0xd4, 1) } else { enc(1, 1, 0xfe, 0) }
    }

    fn int_sub(self) -> Enc {
        if self.pd == 1 { enc(1, 1, 0xfb, 1) } else { enc(1, 1, 0xfa, 0) }
    }
}

const ADD: u8 = 0x58;
const MUL: u8 = 0x59;
const SUB: u8 = 0x5c;
const MIN: u8 = 0x5d;
const DIV: u8 = 0x5e;
const MAX: u8 = 0x5f;

impl Emitter<'_> {
    /// The constant in all lanes of a register.
    pub(super) fn number(&mut self, value: f64, reg: Reg, temp: Vec_, len: Len) -> Vec_ {
        let (at, bytes) = match reg {
            Reg::F64 => (self.asm.constant(&value.to_le_bytes()), 8),
            _ => (self.asm.constant(&(value as f32).to_le_bytes()), 4),
        };
        let e = if reg == Reg::F64 { enc(1, 2, 0x59, 1) } else { enc(1, 2, 0x58, 0) };
        self.asm.vec(e, len, temp, Vec_(0), Rm::Table(at, bytes), ALL, false, None);
        temp
    }

    fn real(&mut self, value: f64, reg: Reg) -> Rm {
        match reg {
            Reg::F64 => self.bits(value.to_bits(), 8),
            _ => self.bits((value as f32).to_bits().into(), 4),
        }
    }

    fn integer(&mut self, value: u64, reg: Reg) -> Rm {
        self.bits(value, reg.bytes())
    }

    fn step(&mut self, t: Float, e: Enc, d: Vec_, a: Vec_, b: Rm) {
        self.asm.vec(e, t.len, d, a, b, ALL, false, None);
    }

    /// `d = d op value`.
    fn with(&mut self, t: Float, code: u8, d: Vec_, value: f64) {
        let value = self.real(value, t.reg);
        self.step(t, t.op(code), d, d, value);
    }

    /// Shifts lanes by a constant: digits 2, 4 and 6 for right, arithmetic right and left.
    fn shift_lanes(&mut self, t: Float, digit: u8, d: Vec_, a: Vec_, by: u8) {
        let code = if t.pd == 1 && digit != 4 { 0x73 } else { 0x72 };
        self.asm.vec(enc(1, 1, code, t.pd), t.len, Vec_(digit), d, Rm::Reg(a), ALL, false, Some(by));
    }

    pub(super) fn exp(&mut self, reg: Reg, d: Vec_, a: Rm, len: Len) {
        let t = Float::new(reg, len);
        let is_double = reg == Reg::F64;
        let (most, least) = if is_double {
            (math::EXP_MAX_F64, math::EXP_MIN_F64)
        } else {
            (math::EXP_MAX_F32.into(), math::EXP_MIN_F32.into())
        };
        let (x, k, n, p) = (TEMP[1], TEMP[2], TEMP[3], TEMP[4]);
        let bound = self.number(most, reg, p, len);
        self.step(t, t.op(MIN), x, bound, a);
        let gone = self.test(t, x, 0x11, least);
        let bound = self.number(least, reg, p, len);
        self.step(t, t.op(MAX), x, bound, Rm::Reg(x));
        self.exp_of_range(t, is_double, x, k, n, p);
        // p * 2^(k / 2) * 2^(k - k / 2).
        let half = n;
        self.halve(t, half, k);
        self.step(t, t.int_sub(), k, k, Rm::Reg(half));
        let (bias, digits) = if is_double { (1023, 52) } else { (127, 23) };
        for (power, target) in [(half, p), (k, d)] {
            let bias = self.integer(bias, reg);
            self.step(t, t.int_add(), power, power, bias);
            self.shift_lanes(t, 6, power, power, digits);
            if power == k {
                // A product that underflows takes some machines a hundred times as long.
                self.only_where(gone, t, t.op(SUB), k, k, Rm::Reg(k));
            }
            self.step(t, t.op(MUL), target, p, Rm::Reg(power));
        }
    }

    /// Half of small integers, rounded down.
    fn halve(&mut self, t: Float, d: Vec_, a: Vec_) {
        if !(t.pd == 1 && self.asm.isa == Isa::Avx2) {
            return self.shift_lanes(t, 4, d, a, 1);
        }
        // No arithmetic shift of 64 bits: of what is made positive, logically.
        let away = self.integer(1 << 20, t.reg);
        self.step(t, t.int_add(), d, a, away);
        self.shift_lanes(t, 2, d, d, 1);
        let back = self.integer(1 << 19, t.reg);
        self.step(t, t.int_sub(), d, d, back);
    }

    /// e to the x within the range, without its power of two: the exponent in `k`, the rest in `p`.
    fn exp_of_range(&mut self, t: Float, is_double: bool, x: Vec_, k: Vec_, n: Vec_, p: Vec_) {
        let fma = enc(1, 2, 0xa8, t.pd);
        let [inverse, magic, high, low] = if is_double {
            [math::INV_LN2_F64, math::MAGIC_F64, math::LN2_HI_F64, math::LN2_LO_F64]
        } else {
            [math::INV_LN2_F32, math::MAGIC_F32, math::LN2_HI_F32, math::LN2_LO_F32].map(f64::from)
        };
        let magic = self.real(magic, t.reg);
        self.number(inverse, t.reg, k, t.len);
        self.step(t, fma, k, x, magic);
        self.step(t, t.op(SUB), n, k, magic);
        self.step(t, t.int_sub(), k, k, magic);
        self.number(-high, t.reg, p, t.len);
        self.step(t, fma, p, n, Rm::Reg(x));
        let r = x;
        self.number(-low, t.reg, r, t.len);
        self.step(t, fma, r, n, Rm::Reg(p));
        let coefficients: Vec<f64> =
            if is_double { math::EXP_F64.to_vec() } else { math::EXP_F32.map(f64::from).to_vec() };
        let (last, rest) = (coefficients[coefficients.len() - 1], &coefficients[..coefficients.len() - 1]);
        self.number(last, t.reg, p, t.len);
        for c in rest.iter().rev().chain(&[1.0, 1.0]) {
            let c = self.real(*c, t.reg);
            self.step(t, fma, p, r, c);
        }
    }

    pub(super) fn log(&mut self, reg: Reg, d: Vec_, a: Rm, len: Len) {
        let t = Float::new(reg, len);
        let is_double = reg == Reg::F64;
        let x = TEMP[1];
        if a != Rm::Reg(x) {
            self.asm.op(LOAD, len, x, Vec_(0), a);
        }
        let (f, k, s, z, r) = (TEMP[2], TEMP[3], TEMP[4], TEMP[5], TEMP[6]);
        let (least, scale, bias) = if is_double {
            (f64::MIN_POSITIVE, 18_014_398_509_481_984.0, 54.0)
        } else {
            (f32::MIN_POSITIVE.into(), 33_554_432.0, 25.0)
        };
        let one = if is_double { 1f64.to_bits() } else { 1f32.to_bits().into() };
        let root: u64 = if is_double { 0x3fe6_a09e_667f_3bcd } else { 0x3f35_04f3 };
        let (digits, exponent_bias) = if is_double { (52, 1023) } else { (23, 127) };
        let small = self.test(t, x, 0x11, least);
        self.asm.op(LOAD, len, f, Vec_(0), Rm::Reg(x));
        let scale = self.real(scale, reg);
        self.only_where(small, t, t.op(MUL), f, x, scale);
        let away = self.integer(one - root, reg);
        self.step(t, t.int_add(), f, f, away);
        self.shift_lanes(t, 2, k, f, digits);
        let unbiased = self.integer(exponent_bias, reg);
        self.step(t, t.int_sub(), k, k, unbiased);
        if is_double && self.asm.isa == Isa::Avx2 {
            // Small integers are the last digits of a number that is large enough.
            let large = f64::from_bits(0x4338_0000_0000_0000);
            let digits = self.integer(large.to_bits(), reg);
            self.step(t, t.int_add(), k, k, digits);
            self.with(t, SUB, k, large);
        } else {
            let to_float = if is_double { enc(2, 1, 0xe6, 1) } else { enc(0, 1, 0x5b, 0) };
            self.step(t, to_float, k, Vec_(0), Rm::Reg(k));
        }
        let bias = self.real(bias, reg);
        self.only_where(small, t, t.op(SUB), k, k, bias);
        let mantissa = self.integer((1 << digits) - 1, reg);
        self.step(t, enc(1, 1, 0xdb, t.pd), f, f, mantissa);
        let root = self.integer(root, reg);
        self.step(t, t.int_add(), f, f, root);
        self.with(t, SUB, f, 1.0);
        self.number(2.0, reg, s, len);
        self.step(t, t.op(ADD), s, s, Rm::Reg(f));
        self.step(t, t.op(DIV), s, f, Rm::Reg(s));
        self.step(t, t.op(MUL), z, s, Rm::Reg(s));
        let coefficients: Vec<f64> = if is_double {
            math::LOG_F64.to_vec()
        } else {
            math::LOG_F32.iter().map(|c| f64::from(*c)).collect()
        };
        let (last, rest) = (coefficients[coefficients.len() - 1], &coefficients[..coefficients.len() - 1]);
        self.number(last, reg, r, len);
        for c in rest.iter().rev() {
            self.step(t, t.op(MUL), r, z, Rm::Reg(r));
            self.with(t, ADD, r, *c);
        }
        self.step(t, t.op(MUL), r, z, Rm::Reg(r));
        let half_square = z;
        let half = self.real(0.5, reg);
        self.step(t, t.op(MUL), half_square, f, half);
        self.step(t, t.op(MUL), half_square, half_square, Rm::Reg(f));
        self.step(t, t.op(ADD), r, half_square, Rm::Reg(r));
        self.step(t, t.op(MUL), r, s, Rm::Reg(r));
        let (high, low) = if is_double {
            (math::LN2_HI_F64, math::LN2_LO_F64)
        } else {
            (math::LN2_HI_F32.into(), math::LN2_LO_F32.into())
        };
        let low = self.real(low, reg);
        self.step(t, t.op(MUL), s, k, low);
        self.step(t, t.op(ADD), r, r, Rm::Reg(s));
        self.step(t, t.op(SUB), r, half_square, Rm::Reg(r));
        self.step(t, t.op(SUB), r, r, Rm::Reg(f));
        self.with(t, MUL, k, high);
        self.step(t, t.op(SUB), k, k, Rm::Reg(r));
        // 0, infinity, and what is not at least 0.
        let bytes = reg.bytes();
        let is_zero = self.test(t, x, 0, 0.0);
        let value = self.real(f64::NEG_INFINITY, reg);
        self.blend(bytes, len, k, (value, k), is_zero);
        let is_infinite = self.test(t, x, 0, f64::INFINITY);
        self.blend(bytes, len, k, (Rm::Reg(x), k), is_infinite);
        let is_below = self.test(t, x, 0x19, 0.0);
        let value = self.real(f64::NAN, reg);
        self.blend(bytes, len, d, (value, k), is_below);
    }

    /// The lanes where `x` compares so with the constant.
    fn test(&mut self, t: Float, x: Vec_, predicate: u8, value: f64) -> Picked {
        let value = self.real(value, t.reg);
        self.picked_where(t.op(0xc2), t.len, x, value, predicate)
    }

    /// The lanes where a comparison holds.
    pub(super) fn picked_where(&mut self, e: Enc, len: Len, a: Vec_, b: Rm, predicate: u8) -> Picked {
        let (d, picked) = match self.asm.isa {
            Isa::Avx2 => (LANES, Picked::Lanes(LANES)),
            Isa::Avx512 => (Vec_(TEMP_MASK.0), Picked::Mask(TEMP_MASK)),
        };
        self.asm.op_imm(e, len, d, a, b, predicate);
        picked
    }

    /// `d = op(a, b)` in the lanes that are picked; it takes `TEMP[0]`.
    fn only_where(&mut self, picked: Picked, t: Float, e: Enc, d: Vec_, a: Vec_, b: Rm) {
        match picked {
            Picked::Mask(mask) => self.asm.vec(e, t.len, d, a, b, mask, false, None),
            Picked::Lanes(_) => {
                self.asm.op(e, t.len, TEMP[0], a, b);
                self.blend(t.reg.bytes(), t.len, d, (Rm::Reg(TEMP[0]), d), picked);
            }
        }
    }
}
