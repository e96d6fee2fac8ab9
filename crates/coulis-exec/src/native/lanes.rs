//! One piece of an operation: at most a register of lanes of its widest type.

use coulis_ir::{BinaryOp, DType, Intrinsic};

use super::asm::{Enc, Len, Mask, Rm, Vec_, enc};
use super::emit::Emitter;
use super::operand::{is_comparison, signature};
use super::vector::{Loc, TEMP, TEMP_MASK};
use crate::ops::{Op, Reg};

const NONE: Vec_ = Vec_(0);
const ALL: Mask = Mask(0);

/// Predicates of comparisons of floats.
const UNORDERED: u8 = 3;
const FLOAT_NE: u8 = 4;

impl Emitter<'_> {
    pub(super) fn piece(&mut self, op: Op, d: &Loc, args: &[Loc; 3], from: usize, lanes: usize) {
        let Some(signature) = signature(op) else { return };
        let bytes = |i: usize| signature.args[i].map_or(0, |lane| lane.bytes);
        let out = signature.out.bytes;
        let target = self.target(d, from * out, lanes * out);
        match op {
            Op::Binary(binary, reg) if is_comparison(binary) => {
                self.compare(binary, reg, d, args, from, lanes)
            }
            Op::Binary(binary, reg) => {
                let a = self.input(&args[0], from * out, lanes * out, TEMP[1]);
                let a = self.in_register(a, lanes * out, TEMP[1]);
                let b = self.input(&args[1], from * out, lanes * out, TEMP[2]);
                self.arithmetic(binary, reg, target, a, b, lanes);
                self.output(d, from * out, lanes * out, target);
            }
            Op::Select(_) => {
                let on_true = self.input(&args[1], from * out, lanes * out, TEMP[1]);
                let on_false = self.input(&args[2], from * out, lanes * out, TEMP[2]);
                let on_false = self.in_register(on_false, lanes * out, TEMP[2]);
                let mask = self.condition(&args[0], from, lanes);
                let blend = match out {
                    1 => enc(1, 2, 0x66, 0),
                    2 => enc(1, 2, 0x66, 1),
                    4 => enc(1, 2, 0x64, 0),
                    _ => enc(1, 2, 0x64, 1),
                };
                self.asm.vec(blend, Len::of(lanes * out), target, on_false, on_true, mask, false, None);
                self.output(d, from * out, lanes * out, target);
            }
            Op::Copy(_) => {
                let a = self.input(&args[0], from * out, lanes * out, TEMP[0]);
                let a = self.in_register(a, lanes * out, target);
                self.output(d, from * out, lanes * out, a);
            }
            Op::Cast(Reg::Bool, to) => {
                self.spread_bool(to, target, &args[0], from, lanes);
                self.output(d, from * out, lanes * out, target);
            }
            Op::Cast(reg, Reg::Bool) => {
                let size = lanes * reg.bytes();
                let a = self.input(&args[0], from * reg.bytes(), size, TEMP[1]);
                let a = self.in_register(a, size, TEMP[1]);
                let k = self.mask_target(d, from);
                if let Some(pd) = float(reg) {
                    self.zero(TEMP[2]);
                    let e = enc(pd, 1, 0xc2, pd);
                    self.asm.vec(
                        e,
                        Len::of(size),
                        Vec_(k.0),
                        a,
                        Rm::Reg(TEMP[2]),
                        ALL,
                        false,
                        Some(FLOAT_NE),
                    );
                } else {
                    let e = match reg.bytes() {
                        1 => enc(1, 2, 0x26, 0),
                        2 => enc(1, 2, 0x26, 1),
                        4 => enc(1, 2, 0x27, 0),
                        _ => enc(1, 2, 0x27, 1),
                    };
                    self.asm.vec(e, Len::of(size), Vec_(k.0), a, Rm::Reg(a), ALL, false, None);
                }
                self.output_mask(d, from, lanes, k);
            }
            Op::Cast(source, to) => {
                // Short integers become 32-bit ones on their way to floats.
                let first = if source.bytes() < 4 && float(to).is_some() { 4 } else { out };
                let a = self.exact_input(&args[0], from, source.bytes(), lanes, first);
                self.convert(source, to, target, a, lanes);
                self.output(d, from * out, lanes * out, target);
            }
            Op::Widen(dtype) => {
                let a = self.exact_input(&args[0], from, 2, lanes, 4);
                self.widen(dtype, target, a, Len::of(lanes * 4));
                self.output(d, from * 4, lanes * 4, target);
            }
            Op::Narrow(dtype) | Op::Round(dtype) => {
                let a = self.input(&args[0], from * 4, lanes * 4, TEMP[1]);
                let a = self.in_register(a, lanes * 4, TEMP[1]);
                self.narrow(dtype, TEMP[0], a, Len::of(lanes * 4));
                if out == 4 {
                    self.widen(dtype, target, Rm::Reg(TEMP[0]), Len::of(lanes * 4));
                    self.output(d, from * out, lanes * out, target);
                } else {
                    self.output(d, from * out, lanes * out, TEMP[0]);
                }
            }
            Op::Call(intrinsic, reg) => {
                let input = |this: &mut Self, i: usize, temp| {
                    this.input(&args[i], from * bytes(i), lanes * bytes(i), temp)
                };
                let len = Len::of(lanes * bytes(0));
                let a = input(self, 0, TEMP[1]);
                match intrinsic {
                    Intrinsic::IsNan | Intrinsic::IsInf | Intrinsic::IsFinite => {
                        let a = self.in_register(a, lanes * bytes(0), TEMP[1]);
                        let k = self.mask_target(d, from);
                        self.classify(intrinsic, reg, k, a, len, lanes);
                        self.output_mask(d, from, lanes, k);
                        return;
                    }
                    Intrinsic::Fma => {
                        let b = input(self, 1, TEMP[2]);
                        let c = input(self, 2, TEMP[3]);
                        self.fused(reg, target, a, b, c, len);
                    }
                    _ => self.function(intrinsic, reg, target, a, len),
                }
                self.output(d, from * out, lanes * out, target);
            }
            Op::Not | Op::Broadcast(_) | Op::Ramp(_) | Op::Other => {}
        }
    }

    /// An operand of a conversion: memory only where the instruction reads exactly the lanes.
    fn exact_input(&mut self, loc: &Loc, from: usize, bytes: usize, lanes: usize, out: usize) -> Rm {
        if let Loc::Mem(mem) = loc
            && lanes * bytes.max(out) >= 16
            && lanes.is_power_of_two()
        {
            return Rm::Mem(mem.plus((from * bytes) as i32), (lanes * bytes) as u8);
        }
        self.input(loc, from * bytes, lanes * bytes, TEMP[1])
    }

    fn op2(&mut self, e: Enc, len: Len, d: Vec_, a: Vec_, b: Rm) {
        self.asm.vec(e, len, d, a, b, ALL, false, None);
    }

    fn op1(&mut self, e: Enc, len: Len, d: Vec_, b: Rm) {
        self.asm.vec(e, len, d, NONE, b, ALL, false, None);
    }

    fn zero(&mut self, d: Vec_) {
        self.op2(enc(1, 1, 0xef, 0), Len::Z, d, d, Rm::Reg(d));
    }

    /// A constant of 4 or 8 bytes in all lanes.
    pub(super) fn bits(&mut self, bits: u64, bytes: usize) -> Rm {
        let at = self.asm.constant(&bits.to_le_bytes()[..bytes]);
        self.pooled(at, bytes as u8)
    }

    fn arithmetic(&mut self, op: BinaryOp, reg: Reg, d: Vec_, a: Vec_, b: Rm, lanes: usize) {
        let len = Len::of(lanes * reg.bytes());
        if matches!(op, BinaryOp::Shl | BinaryOp::Shr) {
            // Counts wrap.
            let (bytes, w) = (reg.bytes(), u8::from(reg.bytes() == 8));
            let count = self.in_register(b, lanes * bytes, TEMP[2]);
            let most = self.bits(bytes as u64 * 8 - 1, bytes);
            self.op2(enc(1, 1, 0xdb, w), len, TEMP[2], count, most);
            let e = match (op, reg) {
                (BinaryOp::Shl, _) => enc(1, 2, 0x47, w),
                (_, Reg::I32 | Reg::I64) => enc(1, 2, 0x46, w),
                _ => enc(1, 2, 0x45, w),
            };
            return self.op2(e, len, d, a, Rm::Reg(TEMP[2]));
        }
        if let Some(e) = arithmetic(op, reg) {
            self.op2(e, len, d, a, b);
        }
    }

    fn compare(&mut self, op: BinaryOp, reg: Reg, d: &Loc, args: &[Loc; 3], from: usize, lanes: usize) {
        let bytes = reg.bytes();
        let a = self.input(&args[0], from * bytes, lanes * bytes, TEMP[1]);
        let a = self.in_register(a, lanes * bytes, TEMP[1]);
        let b = self.input(&args[1], from * bytes, lanes * bytes, TEMP[2]);
        let k = self.mask_target(d, from);
        let (e, imm) = match float(reg) {
            Some(pd) => {
                let imm = match op {
                    BinaryOp::Eq => 0,
                    BinaryOp::Ne => FLOAT_NE,
                    BinaryOp::Lt => 0x11,
                    _ => 0x12,
                };
                (enc(pd, 1, 0xc2, pd), imm)
            }
            None => {
                let signed = matches!(reg, Reg::I8 | Reg::I16 | Reg::I32 | Reg::I64);
                let op_code = (if bytes <= 2 { 0x3e } else { 0x1e }) | u8::from(signed);
                let imm = match op {
                    BinaryOp::Eq => 0,
                    BinaryOp::Ne => 4,
                    BinaryOp::Lt => 1,
                    _ => 2,
                };
                (enc(1, 3, op_code, u8::from(bytes == 2 || bytes == 8)), imm)
            }
        };
        self.asm.vec(e, Len::of(lanes * bytes), Vec_(k.0), a, b, ALL, false, Some(imm));
        self.output_mask(d, from, lanes, k);
    }

    fn spread_bool(&mut self, to: Reg, d: Vec_, a: &Loc, from: usize, lanes: usize) {
        let k = self.condition(a, from, lanes);
        let len = Len::of(lanes * to.bytes());
        // All bits of the lanes that hold, then 1 of them.
        let spread = match to.bytes() {
            1 => enc(2, 2, 0x28, 0),
            2 => enc(2, 2, 0x28, 1),
            4 => enc(2, 2, 0x38, 0),
            _ => enc(2, 2, 0x38, 1),
        };
        self.op1(spread, len, d, Rm::Reg(Vec_(k.0)));
        match to {
            Reg::F32 => {
                let one = self.bits(1f32.to_bits().into(), 4);
                self.op2(enc(1, 1, 0xdb, 0), len, d, d, one);
            }
            Reg::F64 => {
                let one = self.bits(1f64.to_bits(), 8);
                self.op2(enc(1, 1, 0xdb, 1), len, d, d, one);
            }
            _ => self.op1(absolute(to), len, d, Rm::Reg(d)),
        }
    }

    fn convert(&mut self, from: Reg, to: Reg, d: Vec_, a: Rm, lanes: usize) {
        let wide = Len::of(lanes * from.bytes().max(to.bytes()));
        let signed = matches!(from, Reg::I8 | Reg::I16 | Reg::I32 | Reg::I64);
        match (from, to) {
            (Reg::F32, Reg::F64) => self.op1(enc(0, 1, 0x5a, 0), wide, d, a),
            (Reg::F64, Reg::F32) => self.op1(enc(1, 1, 0x5a, 1), wide, d, a),
            (_, Reg::F32 | Reg::F64) => {
                let is_double = to == Reg::F64;
                let (a, bytes) = if from.bytes() < 4 {
                    self.op1(extend(from.bytes(), 4, signed), Len::of(lanes * 4), TEMP[1], a);
                    (Rm::Reg(TEMP[1]), 4)
                } else {
                    (a, from.bytes())
                };
                // What was extended is never negative where it had no sign.
                let signed = signed || from.bytes() < 4;
                let e = match (bytes, is_double, signed) {
                    (4, false, true) => enc(0, 1, 0x5b, 0),
                    (4, true, true) => enc(2, 1, 0xe6, 0),
                    (_, true, true) => enc(2, 1, 0xe6, 1),
                    (_, false, true) => enc(0, 1, 0x5b, 1),
                    (4, false, false) => enc(3, 1, 0x7a, 0),
                    (4, true, false) => enc(2, 1, 0x7a, 0),
                    (_, true, false) => enc(2, 1, 0x7a, 1),
                    (_, false, false) => enc(3, 1, 0x7a, 1),
                };
                self.op1(e, Len::of(lanes * bytes.max(to.bytes())), d, a);
            }
            _ if to.bytes() > from.bytes() => self.op1(extend(from.bytes(), to.bytes(), signed), wide, d, a),
            _ => {
                let a = self.in_register(a, lanes * from.bytes(), TEMP[1]);
                let e = match (from.bytes(), to.bytes()) {
                    (2, _) => enc(2, 2, 0x30, 0),
                    (4, 1) => enc(2, 2, 0x31, 0),
                    (4, _) => enc(2, 2, 0x33, 0),
                    (_, 1) => enc(2, 2, 0x32, 0),
                    (_, 2) => enc(2, 2, 0x34, 0),
                    _ => enc(2, 2, 0x35, 0),
                };
                // The destination is the operand that may be memory.
                self.asm.vec(e, wide, a, NONE, Rm::Reg(d), ALL, false, None);
            }
        }
    }

    fn widen(&mut self, dtype: DType, d: Vec_, a: Rm, len: Len) {
        if dtype == DType::F16 {
            return self.op1(enc(1, 2, 0x13, 0), len, d, a);
        }
        self.op1(enc(1, 2, 0x33, 0), len, d, a);
        self.asm.vec(enc(1, 1, 0x72, 0), len, Vec_(6), d, Rm::Reg(d), ALL, false, Some(16));
    }

    /// An `f32` register to 16-bit lanes.
    fn narrow(&mut self, dtype: DType, d: Vec_, a: Vec_, len: Len) {
        if dtype == DType::F16 {
            // Every NaN becomes the one of its sign, as in the interpreter.
            let one_nan = TEMP[4];
            let nan = enc(0, 1, 0xc2, 0);
            self.asm.vec(nan, len, Vec_(TEMP_MASK.0), a, Rm::Reg(a), ALL, false, Some(UNORDERED));
            self.op1(enc(2, 1, 0x6f, 0), len, one_nan, Rm::Reg(a));
            let infinite = self.bits(0xff80_0000, 4);
            self.asm.vec(enc(1, 1, 0xdb, 0), len, one_nan, a, infinite, TEMP_MASK, false, None);
            let quiet = self.bits(0x40_0000, 4);
            self.asm.vec(enc(1, 1, 0xeb, 0), len, one_nan, one_nan, quiet, TEMP_MASK, false, None);
            return self.asm.vec(enc(1, 3, 0x1d, 0), len, one_nan, NONE, Rm::Reg(d), ALL, false, Some(0));
        }
        let (high, sum) = (TEMP[3], TEMP[4]);
        let shift = |this: &mut Self, d: Vec_, a: Vec_| {
            this.asm.vec(enc(1, 1, 0x72, 0), len, Vec_(2), d, Rm::Reg(a), ALL, false, Some(16));
        };
        shift(self, high, a);
        let one = self.bits(1, 4);
        self.op2(enc(1, 1, 0xdb, 0), len, sum, high, one);
        let half = self.bits(0x7fff, 4);
        self.op2(enc(1, 1, 0xfe, 0), len, sum, sum, half);
        self.op2(enc(1, 1, 0xfe, 0), len, sum, sum, Rm::Reg(a));
        shift(self, sum, sum);
        // A NaN stays one.
        let nan = enc(0, 1, 0xc2, 0);
        self.asm.vec(nan, len, Vec_(TEMP_MASK.0), a, Rm::Reg(a), ALL, false, Some(UNORDERED));
        let quiet = self.bits(0x40, 4);
        self.asm.vec(enc(1, 1, 0xeb, 0), len, sum, high, quiet, TEMP_MASK, false, None);
        self.asm.vec(enc(2, 2, 0x33, 0), len, sum, NONE, Rm::Reg(d), ALL, false, None);
    }

    fn classify(&mut self, intrinsic: Intrinsic, reg: Reg, k: Mask, a: Vec_, len: Len, lanes: usize) {
        let w = u8::from(reg == Reg::F64);
        // Quiet NaN, signaling NaN, both infinities.
        let (nan, infinite) = (0x81, 0x18);
        let classes = match intrinsic {
            Intrinsic::IsNan => nan,
            Intrinsic::IsInf => infinite,
            _ => nan | infinite,
        };
        self.asm.vec(enc(1, 3, 0x66, w), len, Vec_(k.0), NONE, Rm::Reg(a), ALL, false, Some(classes));
        if intrinsic == Intrinsic::IsFinite {
            self.asm.mask(enc(0, 1, 0x44, 1), false, k, Mask(0), k, None);
            // Bits behind the lanes of a piece are 0.
            let spare = 64 - lanes as u8;
            self.asm.mask(enc(1, 3, 0x33, 1), false, k, Mask(0), k, Some(spare));
            self.asm.mask(enc(1, 3, 0x31, 1), false, k, Mask(0), k, Some(spare));
        }
    }

    fn fused(&mut self, reg: Reg, d: Vec_, a: Rm, b: Rm, c: Rm, len: Len) {
        let w = u8::from(reg == Reg::F64);
        let bytes = 16 << len as usize;
        let b = self.in_register(b, bytes, TEMP[2]);
        if c == Rm::Reg(d) && Rm::Reg(b) != c {
            return self.op2(enc(1, 2, 0xb8, w), len, d, b, a);
        }
        let c = if c == Rm::Reg(d) { Rm::Reg(self.copied(d, TEMP[3])) } else { c };
        let b = if b == d { self.copied(d, TEMP[2]) } else { b };
        let a = self.in_register(a, bytes, d);
        if a != d {
            self.op1(enc(2, 1, 0x6f, 0), Len::Z, d, Rm::Reg(a));
        }
        self.op2(enc(1, 2, 0xa8, w), len, d, b, c);
    }

    fn copied(&mut self, a: Vec_, temp: Vec_) -> Vec_ {
        self.op1(enc(2, 1, 0x6f, 0), Len::Z, temp, Rm::Reg(a));
        temp
    }

    fn function(&mut self, intrinsic: Intrinsic, reg: Reg, d: Vec_, a: Rm, len: Len) {
        let pd = u8::from(reg == Reg::F64);
        let round = |mode: u8| (enc(1, 3, 0x08 | pd, pd), mode | 8);
        let (e, imm) = match intrinsic {
            Intrinsic::Floor => round(1),
            Intrinsic::Ceil => round(2),
            Intrinsic::Trunc => round(3),
            Intrinsic::Nearbyint => round(0),
            Intrinsic::Sqrt => return self.op1(enc(pd, 1, 0x51, pd), len, d, a),
            Intrinsic::Rsqrt => {
                self.op1(enc(pd, 1, 0x51, pd), len, TEMP[1], a);
                let one = self.number(1.0, reg, TEMP[2], len);
                return self.op2(enc(pd, 1, 0x5e, pd), len, d, one, Rm::Reg(TEMP[1]));
            }
            Intrinsic::Abs => match reg {
                Reg::F32 | Reg::F64 => {
                    let bytes = reg.bytes();
                    let a = self.in_register(a, 16 << len as usize, TEMP[1]);
                    let magnitude = self.bits(u64::MAX >> (64 - 8 * bytes + 1), bytes);
                    return self.op2(enc(1, 1, 0xdb, pd), len, d, a, magnitude);
                }
                _ => return self.op1(absolute(reg), len, d, a),
            },
            Intrinsic::Exp => return self.exp(reg, d, a, len),
            Intrinsic::Log => return self.log(reg, d, a, len),
            _ => return,
        };
        self.asm.vec(e, len, d, NONE, a, ALL, false, Some(imm));
    }
}

/// 1 for doubles, 0 for singles: prefix and width bit of their instructions.
fn float(reg: Reg) -> Option<u8> {
    match reg {
        Reg::F32 => Some(0),
        Reg::F64 => Some(1),
        Reg::Bool | Reg::I8 | Reg::I16 | Reg::I32 | Reg::I64 | Reg::U8 | Reg::U16 | Reg::U32 | Reg::U64 => {
            None
        }
    }
}

/// Magnitudes of integers by their size.
fn absolute(reg: Reg) -> Enc {
    match reg.bytes() {
        1 => enc(1, 2, 0x1c, 0),
        2 => enc(1, 2, 0x1d, 0),
        4 => enc(1, 2, 0x1e, 0),
        _ => enc(1, 2, 0x1f, 1),
    }
}

fn extend(from: usize, to: usize, signed: bool) -> Enc {
    let size = match (from, to) {
        (1, 2) => 0,
        (1, 4) => 1,
        (1, _) => 2,
        (2, 4) => 3,
        (2, _) => 4,
        _ => 5,
    };
    enc(1, 2, (if signed { 0x20 } else { 0x30 }) + size, 0)
}

fn arithmetic(op: BinaryOp, reg: Reg) -> Option<Enc> {
    if let Some(pd) = float(reg) {
        let code = match op {
            BinaryOp::Add => 0x58,
            BinaryOp::Mul => 0x59,
            BinaryOp::Sub => 0x5c,
            BinaryOp::Min => 0x5d,
            BinaryOp::Div => 0x5e,
            BinaryOp::Max => 0x5f,
            _ => return None,
        };
        return Some(enc(pd, 1, code, pd));
    }
    let bytes = reg.bytes();
    let signed = matches!(reg, Reg::I8 | Reg::I16 | Reg::I32 | Reg::I64);
    let by_size = |codes: [u8; 4]| match bytes {
        1 => enc(1, 1, codes[0], 0),
        2 => enc(1, 1, codes[1], 0),
        4 => enc(1, 1, codes[2], 0),
        _ => enc(1, 1, codes[3], 1),
    };
    let wide = u8::from(bytes == 8);
    Some(match op {
        BinaryOp::Add => by_size([0xfc, 0xfd, 0xfe, 0xd4]),
        BinaryOp::Sub => by_size([0xf8, 0xf9, 0xfa, 0xfb]),
        BinaryOp::Mul if bytes == 2 => enc(1, 1, 0xd5, 0),
        BinaryOp::Mul => enc(1, 2, 0x40, wide),
        BinaryOp::Min => match (bytes, signed) {
            (1, true) => enc(1, 2, 0x38, 0),
            (2, true) => enc(1, 1, 0xea, 0),
            (1, false) => enc(1, 1, 0xda, 0),
            (2, false) => enc(1, 2, 0x3a, 0),
            (_, true) => enc(1, 2, 0x39, wide),
            (_, false) => enc(1, 2, 0x3b, wide),
        },
        BinaryOp::Max => match (bytes, signed) {
            (1, true) => enc(1, 2, 0x3c, 0),
            (2, true) => enc(1, 1, 0xee, 0),
            (1, false) => enc(1, 1, 0xde, 0),
            (2, false) => enc(1, 2, 0x3e, 0),
            (_, true) => enc(1, 2, 0x3d, wide),
            (_, false) => enc(1, 2, 0x3f, wide),
        },
        BinaryOp::BitAnd => enc(1, 1, 0xdb, wide),
        BinaryOp::BitOr => enc(1, 1, 0xeb, wide),
        BinaryOp::BitXor => enc(1, 1, 0xef, wide),
        _ => return None,
    })
}
