//! Operations on scalar slots: integers in general registers, the rest as one lane.

use coulis_ir::BinaryOp;

use super::asm::{Alu, Cond, RAX, RCX, RDX, Shift};
use super::emit::Emitter;
use super::operand::is_comparison;
use super::vector::Loc;
use crate::code::Slot;
use crate::ops::{Op, Reg};

impl Emitter<'_> {
    pub(super) fn scalar(&mut self, op: Op, d: Slot, args: [Slot; 3]) {
        let [a, b, c] = args.map(|slot| self.slot(slot));
        let d = self.slot(d);
        let asm = &mut self.asm;
        match op {
            Op::Binary(binary, reg) if reg.is_int() && reg.bytes() >= 4 => {
                let bytes = reg.bytes();
                let signed = matches!(reg, Reg::I32 | Reg::I64);
                asm.load(RAX, a, bytes);
                match binary {
                    BinaryOp::Add => asm.alu_mem(Alu::Add, RAX, b, bytes),
                    BinaryOp::Sub => asm.alu_mem(Alu::Sub, RAX, b, bytes),
                    BinaryOp::Mul => asm.imul_mem(RAX, b, bytes),
                    BinaryOp::BitAnd => asm.alu_mem(Alu::And, RAX, b, bytes),
                    BinaryOp::BitOr => asm.alu_mem(Alu::Or, RAX, b, bytes),
                    BinaryOp::BitXor => asm.alu_mem(Alu::Xor, RAX, b, bytes),
                    BinaryOp::Shl | BinaryOp::Shr => {
                        // The machine takes amounts modulo the width.
                        let width = 8 * bytes as i32;
                        asm.load(RCX, b, bytes);
                        if binary == BinaryOp::Shr && signed {
                            asm.alu_imm(Alu::Cmp, RCX, width - 1);
                            asm.mov_imm(RDX, width as u64 - 1);
                            asm.cmov(Cond::Above, RCX, RDX);
                            asm.shift(Shift::Arithmetic, RAX, bytes);
                        } else {
                            let shift = if binary == BinaryOp::Shl { Shift::Left } else { Shift::Right };
                            asm.shift(shift, RAX, bytes);
                            asm.alu_imm(Alu::Cmp, RCX, width);
                            asm.mov_imm(RDX, 0);
                            asm.cmov(Cond::AboveEqual, RAX, RDX);
                        }
                    }
                    BinaryOp::Min | BinaryOp::Max => {
                        asm.load(RCX, b, bytes);
                        asm.alu(Alu::Cmp, RAX, RCX, bytes);
                        let other = match (binary == BinaryOp::Min, signed) {
                            (true, true) => Cond::Greater,
                            (true, false) => Cond::Above,
                            (false, true) => Cond::Less,
                            (false, false) => Cond::Below,
                        };
                        asm.cmov(other, RAX, RCX);
                    }
                    BinaryOp::Eq
                    | BinaryOp::Ne
                    | BinaryOp::Lt
                    | BinaryOp::Le
                    | BinaryOp::Gt
                    | BinaryOp::Ge => {
                        asm.alu_mem(Alu::Cmp, RAX, b, bytes);
                        let holds = match (binary, signed) {
                            (BinaryOp::Eq, _) => Cond::Equal,
                            (BinaryOp::Ne, _) => Cond::NotEqual,
                            (BinaryOp::Lt, true) => Cond::Less,
                            (BinaryOp::Lt, false) => Cond::Below,
                            (_, true) => Cond::LessEqual,
                            (_, false) => Cond::BelowEqual,
                        };
                        asm.set(holds, RAX);
                    }
                    // Others are not native.
                    BinaryOp::And
                    | BinaryOp::Or
                    | BinaryOp::Div
                    | BinaryOp::TruncMod
                    | BinaryOp::FloorDiv
                    | BinaryOp::FloorMod => {}
                }
                asm.store(d, RAX, if is_comparison(binary) { 1 } else { bytes });
            }
            Op::Binary(binary, Reg::Bool) => {
                asm.load(RAX, a, 1);
                asm.load(RCX, b, 1);
                let alu = match binary {
                    BinaryOp::Or | BinaryOp::BitOr => Alu::Or,
                    BinaryOp::BitXor => Alu::Xor,
                    _ => Alu::And,
                };
                asm.alu(alu, RAX, RCX, 4);
                asm.store(d, RAX, 1);
            }
            Op::Not => {
                asm.load(RAX, a, 1);
                asm.alu_imm(Alu::Xor, RAX, 1);
                asm.store(d, RAX, 1);
            }
            Op::Select(bytes) => {
                asm.load(RAX, c, bytes.into());
                asm.load(RCX, b, bytes.into());
                asm.is_zero(a);
                asm.cmov(Cond::NotEqual, RAX, RCX);
                asm.store(d, RAX, bytes.into());
            }
            Op::Cast(from, to)
                if !matches!(from, Reg::F32 | Reg::F64) && (to.is_int() || to == Reg::Bool) =>
            {
                if matches!(from, Reg::I8 | Reg::I16 | Reg::I32) {
                    asm.load_signed(RAX, a, from.bytes());
                } else {
                    asm.load(RAX, a, from.bytes());
                }
                if to == Reg::Bool {
                    asm.test(RAX, RAX, 8);
                    asm.set(Cond::NotEqual, RAX);
                }
                asm.store(d, RAX, to.bytes());
            }
            _ => self.lanes(op, Loc::Mem(d), [a, b, c].map(Loc::Mem), 1),
        }
    }
}
