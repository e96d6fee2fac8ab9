//! One piece of an operation: at most a register of lanes of its widest type.

use coulis_ir::{BinaryOp, DType, Intrinsic};

use super::asm::{Enc, Isa, Len, Mask, Rm, Vec_, enc};
use super::bools::Picked;
use super::emit::Emitter;
use super::operand::{is_comparison, signature};
use super::vector::{Loc, TEMP};
use crate::ops::{Op, Reg};

pub(super) const NONE: Vec_ = Vec_(0);
pub(super) const ALL: Mask = Mask(0);

/// Predicates of comparisons of floats.
pub(super) const UNORDERED: u8 = 3;
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
                let on_false = self.input(&args[2], from * out, lanes * out, TEMP[2]);
                let on_false = self.in_register(on_false, lanes * out, TEMP[2]);
                let on_true = self.input(&args[1], from * out, lanes * out, TEMP[1]);
                let picked = self.condition(&args[0], from, lanes, out);
                self.blend(out, Len::of(lanes * out), target, (on_true, on_false), picked);
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
                let picked = self.picked_target(d, from, lanes, reg.bytes());
                if float(reg).is_some() {
                    self.zero(TEMP[2]);
                    self.compare_floats(reg, FLOAT_NE, picked, a, Rm::Reg(TEMP[2]), Len::of(size));
                } else {
                    self.not_zero(reg, picked, a, Len::of(size));
                }
                self.output_picked(d, from, lanes, picked, reg.bytes());
            }
            Op::Cast(source, to) => {
                // Short integers become 32-bit ones on their way to floats.
                let first = if source.bytes() < 4 && float(to).is_some() { 4 } else { out };
                let a = self.exact_input(&args[0], from, source.bytes(), lanes, first);
                self.convert(source, to, target, a, lanes);
                self.output(d, from * out, lanes * out, target);
            }
            Op::Widen(DType::F8E4M3) => self.widen_e4m3(d, &args[0], from, lanes),
            Op::Widen(dtype) => {
                // What bytes are widened to first.
                let first = if dtype.bytes() == 1 { 2 } else { 4 };
                let a = self.exact_input(&args[0], from, dtype.bytes(), lanes, first);
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
                        let picked = self.picked_target(d, from, lanes, reg.bytes());
                        self.classify(intrinsic, reg, picked, a, len, lanes);
                        self.output_picked(d, from, lanes, picked, reg.bytes());
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
    pub(super) fn exact_input(
        &mut self,
        loc: &Loc,
        from: usize,
        bytes: usize,
        lanes: usize,
        out: usize,
    ) -> Rm {
        if let Loc::Mem(mem) = loc
            && lanes * bytes.max(out) >= 16
            && lanes.is_power_of_two()
        {
            return Rm::Mem(mem.plus((from * bytes) as i32), (lanes * bytes) as u8);
        }
        self.input(loc, from * bytes, lanes * bytes, TEMP[1])
    }

    pub(super) fn op2(&mut self, e: Enc, len: Len, d: Vec_, a: Vec_, b: Rm) {
        self.asm.op(e, len, d, a, b);
    }

    pub(super) fn op1(&mut self, e: Enc, len: Len, d: Vec_, b: Rm) {
        self.asm.op(e, len, d, NONE, b);
    }

    fn zero(&mut self, d: Vec_) {
        let whole = self.asm.whole();
        self.op2(enc(1, 1, 0xef, 0), whole, d, d, Rm::Reg(d));
    }

    /// A constant of 4 or 8 bytes in all lanes.
    pub(super) fn bits(&mut self, bits: u64, bytes: usize) -> Rm {
        let one = &bits.to_le_bytes()[..bytes];
        match self.asm.isa {
            // No instruction spreads an operand.
            Isa::Avx2 => {
                let at = self.asm.constant(&one.repeat(32 / bytes));
                self.pooled(at, 32)
            }
            Isa::Avx512 => {
                let at = self.asm.constant(one);
                self.pooled(at, bytes as u8)
            }
        }
    }

    pub(super) fn arithmetic(&mut self, op: BinaryOp, reg: Reg, d: Vec_, a: Vec_, b: Rm, lanes: usize) {
        let len = Len::of(lanes * reg.bytes());
        if matches!(op, BinaryOp::Shl | BinaryOp::Shr) {
            // The instructions take amounts as the operation does.
            let (bytes, w) = (reg.bytes(), u8::from(reg.bytes() == 8));
            let count = self.in_register(b, lanes * bytes, TEMP[2]);
            let e = match (op, reg) {
                (BinaryOp::Shl, _) => enc(1, 2, 0x47, w),
                (_, Reg::I64) if self.asm.isa == Isa::Avx2 => return self.shift_signed(len, d, a, count),
                (_, Reg::I32 | Reg::I64) => enc(1, 2, 0x46, w),
                _ => enc(1, 2, 0x45, w),
            };
            return self.op2(e, len, d, a, Rm::Reg(count));
        }
        if self.asm.isa == Isa::Avx2
            && matches!(reg, Reg::I64 | Reg::U64)
            && matches!(op, BinaryOp::Mul | BinaryOp::Min | BinaryOp::Max)
        {
            return self.wide_arithmetic(op, reg, d, a, b, len);
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
        let picked = self.picked_target(d, from, lanes, bytes);
        let len = Len::of(lanes * bytes);
        if float(reg).is_some() {
            let predicate = match op {
                BinaryOp::Eq => 0,
                BinaryOp::Ne => FLOAT_NE,
                BinaryOp::Lt => 0x11,
                _ => 0x12,
            };
            self.compare_floats(reg, predicate, picked, a, b, len);
        } else {
            self.compare_integers(op, reg, picked, a, b, len);
        }
        self.output_picked(d, from, lanes, picked, bytes);
    }

    /// The register that an instruction that compares writes to.
    fn register_of(picked: Picked) -> Vec_ {
        match picked {
            Picked::Mask(k) => Vec_(k.0),
            Picked::Lanes(register) => register,
        }
    }

    fn compare_floats(&mut self, reg: Reg, predicate: u8, d: Picked, a: Vec_, b: Rm, len: Len) {
        let pd = u8::from(reg == Reg::F64);
        self.asm.op_imm(enc(pd, 1, 0xc2, pd), len, Self::register_of(d), a, b, predicate);
    }

    fn compare_integers(&mut self, op: BinaryOp, reg: Reg, d: Picked, a: Vec_, b: Rm, len: Len) {
        let bytes = reg.bytes();
        match d {
            Picked::Lanes(d) => self.compare_in_lanes(op, reg, d, a, b, len),
            Picked::Mask(k) => {
                let op_code = (if bytes <= 2 { 0x3e } else { 0x1e }) | u8::from(is_signed(reg));
                let predicate = match op {
                    BinaryOp::Eq => 0,
                    BinaryOp::Ne => 4,
                    BinaryOp::Lt => 1,
                    _ => 2,
                };
                let e = enc(1, 3, op_code, u8::from(bytes == 2 || bytes == 8));
                self.asm.op_imm(e, len, Vec_(k.0), a, b, predicate);
            }
        }
    }

    /// The lanes of integers that are not 0.
    fn not_zero(&mut self, reg: Reg, d: Picked, a: Vec_, len: Len) {
        match d {
            Picked::Mask(k) => {
                let e = match reg.bytes() {
                    1 => enc(1, 2, 0x26, 0),
                    2 => enc(1, 2, 0x26, 1),
                    4 => enc(1, 2, 0x27, 0),
                    _ => enc(1, 2, 0x27, 1),
                };
                self.op2(e, len, Vec_(k.0), a, Rm::Reg(a));
            }
            Picked::Lanes(d) => {
                self.zero(TEMP[2]);
                self.compare_in_lanes(BinaryOp::Ne, reg, d, a, Rm::Reg(TEMP[2]), len);
            }
        }
    }

    fn spread_bool(&mut self, to: Reg, d: Vec_, a: &Loc, from: usize, lanes: usize) {
        let len = Len::of(lanes * to.bytes());
        let k = match self.condition(a, from, lanes, to.bytes()) {
            Picked::Mask(k) => k,
            Picked::Lanes(ones) => {
                let one = self.bits(one_of(to), to.bytes());
                return self.op2(enc(1, 1, 0xdb, 0), len, d, ones, one);
            }
        };
        // All bits of the lanes that hold, then 1 of them.
        let spread = match to.bytes() {
            1 => enc(2, 2, 0x28, 0),
            2 => enc(2, 2, 0x28, 1),
            4 => enc(2, 2, 0x38, 0),
            _ => enc(2, 2, 0x38, 1),
        };
        self.op1(spread, len, d, Rm::Reg(Vec_(k.0)));
        if let Some(pd) = float(to) {
            let one = self.bits(one_of(to), to.bytes());
            return self.op2(enc(1, 1, 0xdb, pd), len, d, d, one);
        }
        self.op1(absolute(to), len, d, Rm::Reg(d));
    }

    fn convert(&mut self, from: Reg, to: Reg, d: Vec_, a: Rm, lanes: usize) {
        let wide = Len::of(lanes * from.bytes().max(to.bytes()));
        let signed = is_signed(from);
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
                if self.asm.isa == Isa::Avx2 && (bytes == 8 || !signed) {
                    let len = Len::of(lanes * bytes.max(to.bytes()));
                    return self.convert_in_steps((bytes, signed), is_double, d, a, len);
                }
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
                if self.asm.isa == Isa::Avx2 {
                    return match to.bytes() == from.bytes() {
                        true => self.copy(d, a),
                        false => self.low_parts(d, a, (from.bytes(), to.bytes()), lanes),
                    };
                }
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

    fn classify(&mut self, intrinsic: Intrinsic, reg: Reg, d: Picked, a: Vec_, len: Len, lanes: usize) {
        let w = u8::from(reg == Reg::F64);
        let k = match d {
            Picked::Mask(k) => k,
            Picked::Lanes(_) => return self.classify_in_lanes(intrinsic, reg, d, a, len),
        };
        // Quiet NaN, signaling NaN, both infinities.
        let (nan, infinite) = (0x81, 0x18);
        let classes = match intrinsic {
            Intrinsic::IsNan => nan,
            Intrinsic::IsInf => infinite,
            _ => nan | infinite,
        };
        self.asm.op_imm(enc(1, 3, 0x66, w), len, Vec_(k.0), NONE, Rm::Reg(a), classes);
        if intrinsic == Intrinsic::IsFinite {
            self.asm.mask(enc(0, 1, 0x44, 1), false, k, Mask(0), k, None);
            // Bits behind the lanes of a piece are 0.
            let spare = 64 - lanes as u8;
            self.asm.mask(enc(1, 3, 0x33, 1), false, k, Mask(0), k, Some(spare));
            self.asm.mask(enc(1, 3, 0x31, 1), false, k, Mask(0), k, Some(spare));
        }
    }

    fn classify_in_lanes(&mut self, intrinsic: Intrinsic, reg: Reg, d: Picked, a: Vec_, len: Len) {
        if intrinsic == Intrinsic::IsNan {
            return self.compare_floats(reg, UNORDERED, d, a, Rm::Reg(a), len);
        }
        let (bytes, infinity) = (reg.bytes(), infinity_of(reg));
        let magnitude = self.bits(u64::MAX >> (64 - 8 * bytes + 1), bytes);
        self.op2(enc(1, 1, 0xdb, 0), len, TEMP[2], a, magnitude);
        let infinity = self.bits(infinity, bytes);
        // Equal to it, or less and no NaN.
        let predicate = if intrinsic == Intrinsic::IsInf { 0 } else { 0x11 };
        self.compare_floats(reg, predicate, d, TEMP[2], infinity, len);
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
            self.copy(d, a);
        }
        self.op2(enc(1, 2, 0xa8, w), len, d, b, c);
    }

    fn copied(&mut self, a: Vec_, temp: Vec_) -> Vec_ {
        self.copy(temp, a);
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
                Reg::I64 if self.asm.isa == Isa::Avx2 => return self.absolute_in_steps(d, a, len),
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

pub(super) fn is_signed(reg: Reg) -> bool {
    matches!(reg, Reg::I8 | Reg::I16 | Reg::I32 | Reg::I64)
}

/// The bits of 1.
fn one_of(reg: Reg) -> u64 {
    match reg {
        Reg::F32 => 1f32.to_bits().into(),
        Reg::F64 => 1f64.to_bits(),
        _ => 1,
    }
}

fn infinity_of(reg: Reg) -> u64 {
    match reg {
        Reg::F64 => f64::INFINITY.to_bits(),
        _ => f32::INFINITY.to_bits().into(),
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

pub(super) fn extend(from: usize, to: usize, signed: bool) -> Enc {
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
    let signed = is_signed(reg);
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
