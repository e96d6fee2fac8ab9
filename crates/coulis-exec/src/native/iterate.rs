//! Loops: those that stand in the program, and the one around the body of a parallel loop.
//!
//! An innermost loop has its counter and the pointers of its addresses in registers. Each loop looks for an interrupt.

use std::collections::HashMap;

use super::Context;
use super::asm::{Alu, Cond, Label, Mem, R15, RAX, RBP, RCX, RDX, Rm, Vec_, enc};
use super::emit::{Cold, Emitter, Pinned};
use super::loops::{Inner, inner};
use super::plan::{Home, Parallel, calls_out};
use super::vector::LOAD;
use crate::code::{Instr, Slot};
use crate::frame::BaseAt;

/// Iterations of an innermost loop between two looks for an interrupt; a power of two.
const ITERATIONS_PER_LOOK: i32 = 1024;

impl Emitter<'_> {
    pub(super) fn begin_loop(
        &mut self,
        at: usize,
        var: Slot,
        min: Slot,
        extent: Slot,
        rest: Slot,
        exit: u32,
    ) {
        let last = at + exit as usize;
        let behind = self.label_of(last + 1);
        self.asm.load(RAX, self.slot(extent), 8);
        self.asm.test(RAX, RAX, 8);
        self.asm.jump_if(Cond::LessEqual, behind);
        let top = self.asm.label();
        let Instr::Next { wide, .. } = self.compiled.code[last] else { return };
        match inner(self.compiled, self.slots, &self.plan, (at, last), (var, wide)) {
            Some(inner) => {
                self.asm.mov(RBP, RAX);
                if !inner.groups.is_empty() {
                    let (slow, back) = (self.asm.label(), behind);
                    self.cold.push(Cold::Loop { label: slow, back, first: at, last });
                    self.point(&inner, min, slow);
                }
                self.inner = Some(inner);
                self.pin_constants(at, last);
            }
            None => self.asm.store(self.slot(rest), RAX, 8),
        }
        self.asm.load(RCX, self.slot(min), 8);
        self.asm.store(self.slot(var), RCX, 8);
        self.asm.bind(top);
        self.loops.push(top);
    }

    /// A constant of the pool in all lanes: in a register where the loop has it in one.
    pub(super) fn pooled(&mut self, at: u32, bytes: u8) -> Rm {
        if let Some(counts) = &mut self.pinned.counts {
            *counts.entry((at, bytes)).or_default() += 1;
        }
        self.pinned.registers.get(&(at, bytes)).map_or(Rm::Pool(at, bytes), |register| Rm::Reg(*register))
    }

    /// Loads the constants that an innermost loop asks for most into the registers that are free in it. The body is
    /// written once to see which those are.
    fn pin_constants(&mut self, first: usize, last: usize) {
        if self.compiled.code[first + 1..last].iter().any(|i| calls_out(i, self.asm.isa)) {
            return;
        }
        let (mark, n_cold, labels) = (self.asm.mark(), self.cold.len(), self.labels.clone());
        self.pinned.counts = Some(HashMap::new());
        for at in first + 1..last {
            self.begin_variables(at);
            self.instr(at);
        }
        self.asm.back_to(&mark);
        self.cold.truncate(n_cold);
        self.labels = labels;
        let mut wanted: Vec<((u32, u8), usize)> =
            self.pinned.counts.take().unwrap_or_default().into_iter().collect();
        wanted.sort_by_key(|(constant, count)| (std::cmp::Reverse(*count), *constant));
        let free = self.plan.free_vectors(first, last);
        for ((constant, _), register) in wanted.into_iter().zip(free) {
            let e = match constant.1 {
                4 => enc(1, 2, 0x58, 0),
                8 => enc(1, 2, 0x59, 1),
                _ => LOAD,
            };
            let (whole, source) = (self.asm.whole(), Rm::Table(constant.0, constant.1));
            self.asm.op(e, whole, Vec_(register), Vec_(0), source);
            self.pinned.registers.insert(constant, Vec_(register));
        }
    }

    /// Begins the iterations of a parallel loop, of which there is at least one; the result is where each starts.
    pub(super) fn begin_iterations(&mut self, parallel: Parallel, not_begun: Label) -> Label {
        let (first, last) = (self.region.range.start - 1, self.region.range.end);
        let top = self.asm.label();
        let found =
            inner(self.compiled, self.slots, &self.plan, (first, last), (parallel.var, parallel.wide));
        if let Some(inner) = found {
            self.asm.load(RBP, Mem::at(R15, std::mem::offset_of!(Context, count) as i32), 8);
            self.point(&inner, parallel.var, not_begun);
            self.inner = Some(inner);
        }
        for v in 0..self.plan.variables.len() {
            if matches!(self.plan.variables[v].home, Home::Outer(_)) {
                self.fetch(v);
            }
        }
        if self.inner.is_some() {
            self.pin_constants(first, last);
        }
        self.asm.bind(top);
        top
    }

    pub(super) fn end_iterations(&mut self, parallel: Parallel, top: Label) {
        let done = self.asm.label();
        let inner = self.close_inner(parallel.var, parallel.wide);
        if inner {
            self.count_down(top, done);
        } else {
            let count = Mem::at(R15, std::mem::offset_of!(Context, count) as i32);
            self.asm.load(RAX, count, 8);
            self.asm.dec(RAX);
            self.asm.jump_if(Cond::LessEqual, done);
            self.asm.store(count, RAX, 8);
        }
        self.look_for_interrupt(top);
        self.asm.bind(done);
    }

    /// Sets the pointers of the groups, or goes to `slow` where an address would be outside.
    fn point(&mut self, inner: &Inner, min: Slot, slow: Label) {
        for group in &inner.groups {
            let affine = &group.affine;
            self.asm.mov_imm(RAX, 0);
            for (factor, slot) in affine.terms.iter().copied().chain([(affine.step, min)]) {
                if factor == 0 {
                    continue;
                }
                self.asm.load(RCX, self.slot(slot), 8);
                if factor != 1 {
                    self.asm.imul_imm(RCX, RCX, factor as i32);
                    self.asm.jump_if(Cond::Overflow, slow);
                }
                self.asm.alu(Alu::Add, RAX, RCX, 8);
                self.asm.jump_if(Cond::Overflow, slow);
            }
            // From the first to the last iteration.
            self.asm.lea(RDX, Mem::at(RBP, -1));
            self.asm.imul_imm(RDX, RDX, affine.step as i32);
            self.asm.jump_if(Cond::Overflow, slow);
            let (low_moves, high_moves) = (affine.step < 0, affine.step > 0);
            let ends = [
                (group.low, low_moves, std::mem::offset_of!(BaseAt, lo), Cond::Less),
                (group.high, high_moves, std::mem::offset_of!(BaseAt, hi), Cond::Greater),
            ];
            for (constant, moves, field, outside) in ends {
                self.asm.mov(RCX, RAX);
                self.asm.alu_imm(Alu::Add, RCX, constant as i32);
                self.asm.jump_if(Cond::Overflow, slow);
                if moves {
                    self.asm.alu(Alu::Add, RCX, RDX, 8);
                    self.asm.jump_if(Cond::Overflow, slow);
                }
                self.asm.alu_mem(Alu::Cmp, RCX, self.base_field(group.base, field), 8);
                self.asm.jump_if(outside, slow);
            }
            self.asm.load(RCX, self.base_field(group.base, std::mem::offset_of!(BaseAt, ptr)), 8);
            self.asm.lea(group.pointer, Mem { base: RCX, index: Some((RAX, group.bytes)), disp: 0 });
        }
    }

    pub(super) fn end_loop(&mut self, var: Slot, rest: Slot, wide: bool) {
        let Some(top) = self.loops.pop() else { return };
        let done = self.asm.label();
        if self.close_inner(var, wide) {
            self.count_down(top, done);
        } else {
            self.asm.load(RAX, self.slot(rest), 8);
            self.asm.dec(RAX);
            self.asm.jump_if(Cond::LessEqual, done);
            self.asm.store(self.slot(rest), RAX, 8);
        }
        self.look_for_interrupt(top);
        self.asm.bind(done);
    }

    /// Goes on to the next index and its addresses. Whether the loop was an innermost one.
    fn close_inner(&mut self, var: Slot, wide: bool) -> bool {
        let inner = self.inner.take();
        self.pinned = Pinned::default();
        for group in inner.iter().flat_map(|inner| &inner.groups) {
            let by = group.affine.step * i64::from(group.bytes);
            if by != 0 {
                self.asm.lea_far(group.pointer, by);
            }
        }
        if inner.as_ref().is_none_or(|inner| inner.needs_variable) {
            self.asm.add_to_mem(self.slot(var), 1, if wide { 8 } else { 4 });
        }
        inner.is_some()
    }

    /// Goes to the top of an innermost loop, or to `done` behind the last iteration; on every so many falls through.
    fn count_down(&mut self, top: Label, done: Label) {
        self.asm.dec(RBP);
        self.asm.jump_if(Cond::LessEqual, done);
        self.asm.test_imm(RBP, ITERATIONS_PER_LOOK - 1);
        self.asm.jump_if(Cond::NotEqual, top);
    }

    fn look_for_interrupt(&mut self, top: Label) {
        self.asm.load(RCX, Mem::at(R15, std::mem::offset_of!(Context, interrupt) as i32), 8);
        self.asm.is_zero(Mem::at(RCX, 0));
        self.asm.jump_if(Cond::Equal, top);
        self.asm.jump(self.interrupted);
    }
}
