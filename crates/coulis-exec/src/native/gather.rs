//! Lanes that lie a stride apart: both ends are checked, then each element is copied home on its own.

use super::asm::{Alu, Cond, Mem, R14, RAX, RCX, RDX};
use super::emit::Emitter;
use super::plan::Operand;
use super::vector::SMALL;
use crate::code::{Base, Ptr, Slot};
use crate::frame::BaseAt;

impl Emitter<'_> {
    /// `places` are the slots of the first index and of the stride.
    pub(super) fn gather(&mut self, at: usize, d: Ptr, base: Base, places: [Slot; 2], n: u32, bytes: u8) {
        self.save_base(base, at);
        let label = self.failure(at);
        let [index, stride] = places.map(|slot| self.slot(slot));
        self.asm.load(RAX, index, 8);
        self.asm.load(RCX, stride, 8);
        self.asm.imul_imm(RDX, RCX, n as i32 - 1);
        self.asm.jump_if(Cond::Overflow, label);
        self.asm.alu(Alu::Add, RDX, RAX, 8);
        self.asm.jump_if(Cond::Overflow, label);
        for end in [RAX, RDX] {
            let (lo, hi) = (std::mem::offset_of!(BaseAt, lo), std::mem::offset_of!(BaseAt, hi));
            self.asm.alu_mem(Alu::Cmp, end, self.base_field(base, lo), 8);
            self.asm.jump_if(Cond::Less, label);
            self.asm.alu_mem(Alu::Cmp, end, self.base_field(base, hi), 8);
            self.asm.jump_if(Cond::GreaterEqual, label);
        }
        self.asm.load(RDX, self.base_field(base, std::mem::offset_of!(BaseAt, ptr)), 8);
        self.asm.lea(RAX, Mem { base: RDX, index: Some((RAX, bytes)), disp: 0 });
        self.asm.imul_imm(RCX, RCX, bytes.into());
        // What is gathered is a register of the bytecode; its place is in the table.
        self.asm.load(RDX, Mem::at(R14, d as i32 * 8), 8);
        for lane in 0..n as i32 {
            self.asm.load(SMALL, Mem::at(RAX, 0), bytes.into());
            self.asm.store(Mem::at(RDX, lane * i32::from(bytes)), SMALL, bytes.into());
            self.asm.lea(RAX, Mem { base: RAX, index: Some((RCX, 1)), disp: 0 });
        }
        if let Some(Operand::Variable(v)) = self.plan.operands.get(&d).copied() {
            self.fetch(v);
        }
    }
}
