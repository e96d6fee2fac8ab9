//! Lanes that lie a stride apart: both ends are checked, then the elements are brought together in registers, 16 bytes by
//! 16 bytes.

use std::collections::HashMap;

use super::asm::{Alu, Cond, Isa, Len, Mask, Mem, R11, R12, RAX, RCX, RDX, Rm, Vec_, enc};
use super::emit::Emitter;
use super::moves::{SMALL, enc_load};
use super::plan::{Operand, Region, calls_out, is_own, positions};
use super::vector::{Loc, TEMP};
use crate::code::{Base, Instr, Origin, Ptr, Slot};
use crate::compile::Compiled;
use crate::frame::BaseAt;
use crate::neighbours::{Sums, n_together, straight_pieces};

/// Farthest that the last lane may be in an instruction.
const FARTHEST: i64 = 1 << 30;

/// Where the lanes of a gather are.
#[derive(Clone, Copy)]
enum Lanes {
    /// From a place on, so many bytes apart.
    Apart(Mem, i32),
    /// From `rax` on, `rcx` bytes apart, with three times that in `rdx`.
    Counted,
}

/// Strided reads of neighbouring elements that stand side by side.
pub(super) fn together(compiled: &Compiled, region: &Region, isa: Isa) -> HashMap<usize, usize> {
    let code = &compiled.code[..region.range.end];
    let is_read = |i: &Instr| matches!(i, Instr::GatherStrided { .. }) && !calls_out(i, isa);
    let mut found = HashMap::new();
    if !code.iter().any(is_read) {
        return found;
    }
    let sums = Sums::of(compiled);
    let all = positions(&compiled.code, region);
    let pieces = straight_pieces(&compiled.code);
    let end_of = |at: usize| pieces.iter().find(|(_, to)| at < *to).map_or(0, |(_, to)| *to);
    for at in all.into_iter().filter(|at| is_read(&code[*at])) {
        let Instr::GatherStrided { n, bytes, .. } = code[at] else { continue };
        let count = n_together(bytes);
        let is_next = |i: usize| {
            let next = code.get(at + i).filter(|_| at + i < end_of(at));
            next.is_some_and(|next| sums.distance(&code[at], next) == Some(i as i64))
        };
        if count > 1
            && (n as usize).is_multiple_of(count)
            && !found.contains_key(&at)
            && (1..count).all(is_next)
        {
            found.insert(at, count);
            found.extend((1..count).map(|i| (at + i, 0)));
        }
    }
    found
}

impl Emitter<'_> {
    /// `places` are the slots of the first index and of the stride.
    pub(super) fn gather(&mut self, at: usize, d: Ptr, base: Base, places: [Slot; 2], n: u32, bytes: u8) {
        self.save_base(base, at);
        let lanes = self.find_lanes(at, 1, base, places, (n, bytes));
        let target = self.locate(d, SMALL);
        let (n, bytes) = (n as usize, usize::from(bytes));
        for first in (0..n).step_by(self.width() / bytes) {
            let count = (self.width() / bytes).min(n - first);
            let register = self.target(&target, first * bytes, count * bytes);
            self.bring_together(register, lanes, first..first + count, bytes);
            self.output(&target, first * bytes, count * bytes, register);
        }
        self.after_gather(d);
    }

    /// Strided reads of neighbouring elements from that position on: each 16 bytes that hold an element of
    /// each are read once, and the elements of the rows change places with those of the columns.
    pub(super) fn gather_together(&mut self, at: usize, n_reads: usize) {
        let reads = self.compiled.code[at..at + n_reads].to_vec();
        let Instr::GatherStrided { base, index, stride, n, bytes, .. } = reads[0] else { return };
        let written = reads.iter().filter_map(|read| read.vector_operands().0);
        let places: Vec<(Ptr, Loc)> = written.map(|d| (d, self.locate(d, SMALL))).collect();
        self.save_base(base, at);
        let lanes = self.find_lanes(at, n_reads, base, [index, stride], (n, bytes));
        let n = n as usize;
        let bytes = usize::from(bytes);
        let n_rows = self.width() / bytes;
        for first in (0..n).step_by(n_rows) {
            let count = n_rows.min(n - first);
            let len = Len::of(count * bytes);
            for lane in first..first + count {
                let mem = self.lane(lanes, lane);
                let (part, register) = ((lane - first) / n_reads, TEMP[1 + (lane - first) % n_reads]);
                let asm = &mut self.asm;
                if part == 0 {
                    enc_load(asm, register, mem, 16);
                } else {
                    let together = enc(1, 3, 0x38, 0);
                    let quarter = Rm::Mem(mem, 16);
                    asm.vec(together, len, register, register, quarter, Mask(0), false, Some(part as u8));
                }
            }
            let singles = [enc(0, 1, 0x14, 0), enc(0, 1, 0x15, 0)];
            let pairs = [enc(1, 1, 0x14, 1), enc(1, 1, 0x15, 1)];
            let [a, b, c, d] = [TEMP[1], TEMP[2], TEMP[3], TEMP[4]];
            let mut halves = [(a, b), (a, b)];
            if n_reads == 4 {
                let asm = &mut self.asm;
                for (low, (x, y)) in [(TEMP[5], (a, b)), (TEMP[6], (c, d))] {
                    asm.vec(singles[0], len, low, x, Rm::Reg(y), Mask(0), false, None);
                    asm.vec(singles[1], len, x, x, Rm::Reg(y), Mask(0), false, None);
                }
                halves = [(TEMP[5], TEMP[6]), (a, c)];
            }
            for (column, (_, place)) in places.iter().enumerate() {
                let (x, y) = halves[column / 2];
                let register = self.target(place, first * bytes, count * bytes);
                self.asm.vec(pairs[column % 2], len, register, x, Rm::Reg(y), Mask(0), false, None);
                self.output(place, first * bytes, count * bytes, register);
            }
        }
        for (d, _) in places {
            self.after_gather(d);
        }
    }

    fn after_gather(&mut self, d: Ptr) {
        if let Some(Operand::Variable(v)) = self.plan.operands.get(&d).copied()
            && self.writes_through(v)
        {
            self.bring_home(v);
        }
    }

    /// The lanes of the first of so many reads of neighbouring elements, all of which are checked.
    fn find_lanes(
        &mut self,
        at: usize,
        n_reads: usize,
        base: Base,
        places: [Slot; 2],
        (n, bytes): (u32, u8),
    ) -> Lanes {
        if let Some((pointer, away, apart)) = self.inner.as_ref().and_then(|inner| inner.gathers.get(&at)) {
            return Lanes::Apart(Mem::at(*pointer, *away), *apart);
        }
        let known = places.map(|slot| self.slots.constant(slot));
        let apart = known[1]
            .and_then(|stride| stride.checked_mul(bytes.into()))
            .filter(|apart| apart.checked_mul(n.into()).is_some_and(|reach| reach.abs() < FARTHEST));
        if let (Some(index), Some(stride), Some(apart)) = (known[0], known[1], apart)
            && let Some(offset) = self.own_place(base)
            && let Origin::Arena { count } = self.compiled.bases[base as usize].origin
            && (0..count).contains(&index)
            && (0..count).contains(&(index + stride * (i64::from(n) - 1)))
            && (0..count).contains(&(index + n_reads as i64 - 1))
            && (0..count).contains(&(index + stride * (i64::from(n) - 1) + n_reads as i64 - 1))
        {
            let first = offset as i64 + index * i64::from(bytes);
            return Lanes::Apart(Mem::at(R12, first as i32), apart as i32);
        }
        let label = self.failure(at, n_reads);
        let [index, stride] = places.map(|slot| self.slot(slot));
        self.asm.load(RAX, index, 8);
        let field = |field: usize| self.base_field(base, field);
        let (lo, hi) = (field(std::mem::offset_of!(BaseAt, lo)), field(std::mem::offset_of!(BaseAt, hi)));
        let ptr = field(std::mem::offset_of!(BaseAt, ptr));
        if let (Some(stride), Some(apart)) = (known[1], apart) {
            let reach = stride * (i64::from(n) - 1);
            self.asm.mov(RDX, RAX);
            self.asm.alu_imm(Alu::Add, RDX, reach.min(0) as i32);
            self.asm.jump_if(Cond::Overflow, label);
            self.asm.alu_mem(Alu::Cmp, RDX, lo, 8);
            self.asm.jump_if(Cond::Less, label);
            // The end of a buffer is not so near the least integer that this wraps.
            self.asm.load(RDX, hi, 8);
            self.asm.alu_imm(Alu::Sub, RDX, reach.max(0) as i32 + n_reads as i32 - 1);
            self.asm.alu(Alu::Cmp, RAX, RDX, 8);
            self.asm.jump_if(Cond::GreaterEqual, label);
            self.asm.load(RDX, ptr, 8);
            self.asm.lea(RAX, Mem { base: RDX, index: Some((RAX, bytes)), disp: 0 });
            return Lanes::Apart(Mem::at(RAX, 0), apart as i32);
        }
        self.asm.load(RCX, stride, 8);
        self.asm.imul_imm(RDX, RCX, n as i32 - 1);
        self.asm.jump_if(Cond::Overflow, label);
        self.asm.alu(Alu::Add, RDX, RAX, 8);
        self.asm.jump_if(Cond::Overflow, label);
        for end in [RAX, RDX] {
            self.asm.alu_mem(Alu::Cmp, end, lo, 8);
            self.asm.jump_if(Cond::Less, label);
            self.asm.load(R11, hi, 8);
            self.asm.alu_imm(Alu::Sub, R11, n_reads as i32 - 1);
            self.asm.alu(Alu::Cmp, end, R11, 8);
            self.asm.jump_if(Cond::GreaterEqual, label);
        }
        self.asm.load(RDX, ptr, 8);
        self.asm.lea(RAX, Mem { base: RDX, index: Some((RAX, bytes)), disp: 0 });
        self.asm.imul_imm(RCX, RCX, bytes.into());
        self.asm.lea(RDX, Mem { base: RCX, index: Some((RCX, 2)), disp: 0 });
        Lanes::Counted
    }

    /// Where a buffer of this region alone lies in the arena.
    fn own_place(&self, base: Base) -> Option<usize> {
        self.layout.bases[base as usize].filter(|_| is_own(self.compiled, self.region, base))
    }

    /// Fills a register with some of the lanes, which come in order.
    fn bring_together(&mut self, d: Vec_, lanes: Lanes, which: std::ops::Range<usize>, bytes: usize) {
        let (len, quarter) = (Len::of(which.len() * bytes), 16 / bytes);
        let insert = match bytes {
            8 => enc(0, 1, 0x16, 0),
            4 => enc(1, 3, 0x22, 0),
            2 => enc(1, 1, 0xc4, 0),
            _ => enc(1, 3, 0x20, 0),
        };
        for (part, from) in which.clone().step_by(quarter).enumerate() {
            let register = if part == 0 { d } else { TEMP[1] };
            for lane in from..which.end.min(from + quarter) {
                let mem = self.lane(lanes, lane);
                if lane == from {
                    enc_load(&mut self.asm, register, mem, bytes);
                    continue;
                }
                let imm = (bytes < 8).then_some((lane - from) as u8);
                let element = Rm::Mem(mem, bytes as u8);
                self.asm.vec(insert, Len::X, register, register, element, Mask(0), false, imm);
            }
            if part > 0 {
                let together = enc(1, 3, 0x38, 0);
                let quarter = Rm::Reg(register);
                self.asm.vec(together, len, d, d, quarter, Mask(0), false, Some(part as u8));
            }
        }
    }

    fn lane(&mut self, lanes: Lanes, lane: usize) -> Mem {
        match lanes {
            Lanes::Apart(from, apart) => from.plus(lane as i32 * apart),
            Lanes::Counted => {
                if lane > 0 && lane.is_multiple_of(4) {
                    self.asm.lea(RAX, Mem { base: RAX, index: Some((RCX, 4)), disp: 0 });
                }
                let index = [None, Some((RCX, 1)), Some((RCX, 2)), Some((RDX, 1))][lane % 4];
                Mem { base: RAX, index, disp: 0 }
            }
        }
    }
}
