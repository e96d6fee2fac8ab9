//! From a region of bytecode to machine code: control, addresses, scalars, and calls back to the interpreter.
//!
//! Every scalar slot, pointer and buffer is in the tables of the frame, as the interpreter has them; what is kept in
//! registers besides is the vectors of [`plan`](super::plan) and the pointers of innermost loops. An instruction that is
//! not native is run by the interpreter, with the vectors brought home before. A check that fails is left to the
//! interpreter too, which then finds the error itself.

use std::collections::HashMap;

use coulis_ir::Atom;

use super::asm::{
    Alu, Asm, Cond, Label, Mask, Mem, R12, R13, R14, R15, RAX, RBP, RBX, RCX, RDI, RDX, RSI, RSP, Vec_,
};
use super::gather::together;
use super::loops::{Inner, POINTERS, Slots};
use super::moves::{SMALL, enc_load, enc_store};
use super::plan::{Home, Operand, Place, Plan, Region, calls_out, plan, positions};
use super::{Context, interpret_from_native};
use crate::code::{Base, Instr, Origin, Slot};
use crate::compile::Compiled;
use crate::frame::BaseAt;
use crate::registers::Layout;

/// What native code returns.
pub(super) const DONE: u32 = 0;
/// The error is in the context.
pub(super) const FAILED: u32 = 1;
pub(super) const INTERRUPTED: u32 = 2;
/// An address of a parallel loop would be outside: nothing was done yet.
pub(super) const NOT_BEGUN: u32 = 3;

/// Constants that an innermost loop has in registers.
#[derive(Default)]
pub(super) struct Pinned {
    pub registers: HashMap<(u32, u8), Vec_>,
    /// How often each constant is asked for, while that is counted.
    pub counts: Option<HashMap<(u32, u8), usize>>,
}

/// Code that stands behind the rest because it is seldom run.
pub(super) enum Cold {
    /// So many instructions are given to the interpreter, which fails.
    Fail { label: Label, at: usize, count: usize },
    /// A loop is given to the interpreter as a whole.
    Loop { label: Label, back: Label, first: usize, last: usize },
}

pub(super) struct Emitter<'p> {
    pub asm: Asm,
    pub compiled: &'p Compiled,
    pub slots: &'p Slots,
    pub plan: Plan,
    /// The innermost loop that is being written.
    pub inner: Option<Inner>,
    pub pinned: Pinned,
    /// Whether the result of what is being written is one of its operands.
    pub in_place: bool,
    /// Strided reads that are made together: how many from the first one's position on, and 0 for the others.
    together: HashMap<usize, usize>,
    pub region: &'p Region,
    pub layout: &'p Layout,
    pub labels: HashMap<usize, Label>,
    pub cold: Vec<Cold>,
    exit: Label,
    pub interrupted: Label,
    callout: Label,
    pub loops: Vec<Label>,
}

/// Writes the code of a region; the result is its entry.
pub(super) fn emit(
    asm: Asm,
    compiled: &Compiled,
    layout: &Layout,
    slots: &Slots,
    region: &Region,
) -> (Asm, usize) {
    let mut asm = asm;
    let isa = asm.isa;
    let (exit, interrupted, callout) = (asm.label(), asm.label(), asm.label());
    let plan = plan(compiled, layout, region, asm.isa, &|slot| slots.constant(slot));
    let mut emitter = Emitter {
        asm,
        compiled,
        slots,
        plan,
        inner: None,
        pinned: Pinned::default(),
        in_place: false,
        together: together(compiled, region, isa),
        region,
        layout,
        labels: HashMap::new(),
        cold: Vec::new(),
        exit,
        interrupted,
        callout,
        loops: Vec::new(),
    };
    let entry = emitter.asm.bytes.len();
    emitter.region();
    (emitter.asm, entry)
}

impl Emitter<'_> {
    fn region(&mut self) {
        let asm = &mut self.asm;
        for register in [RBX, RBP, R12, R13, R14, R15] {
            asm.push(register);
        }
        asm.alu_imm(Alu::Sub, RSP, 8);
        asm.mov(R15, RDI);
        for (register, at) in [
            (RBX, std::mem::offset_of!(Context, slots)),
            (R12, std::mem::offset_of!(Context, arena)),
            (R13, std::mem::offset_of!(Context, bases)),
            (R14, std::mem::offset_of!(Context, ptrs)),
        ] {
            asm.load(register, Mem::at(R15, at as i32), 8);
        }
        let not_begun = self.asm.label();
        let top = self.region.parallel.map(|parallel| self.begin_iterations(parallel, not_begun));
        let all = positions(&self.compiled.code, self.region);
        for at in all {
            if let Some(label) = self.labels.get(&at) {
                self.asm.bind(*label);
            }
            self.begin_variables(at);
            self.instr(at);
        }
        if let Some(label) = self.labels.get(&self.region.range.end) {
            self.asm.bind(*label);
        }
        if let (Some(parallel), Some(top)) = (self.region.parallel, top) {
            self.end_iterations(parallel, top);
        }
        self.asm.mov_imm(RAX, DONE.into());
        self.asm.bind(self.exit);
        let asm = &mut self.asm;
        asm.vzeroupper();
        asm.alu_imm(Alu::Add, RSP, 8);
        for register in [R15, R14, R13, R12, RBP, RBX] {
            asm.pop(register);
        }
        asm.ret();
        asm.bind(self.interrupted);
        asm.mov_imm(RAX, INTERRUPTED.into());
        asm.jump(self.exit);
        asm.bind(not_begun);
        asm.mov_imm(RAX, NOT_BEGUN.into());
        asm.jump(self.exit);
        for cold in std::mem::take(&mut self.cold) {
            match cold {
                Cold::Fail { label, at, count } => {
                    self.asm.bind(label);
                    self.call_interpreter(at, at + count);
                    self.asm.mov_imm(RAX, FAILED.into());
                    self.asm.jump(self.exit);
                }
                Cold::Loop { label, back, first, last } => {
                    self.asm.bind(label);
                    self.save(first, true);
                    self.call_interpreter(first, last + 1);
                    self.reload(last);
                    self.asm.jump(back);
                }
            }
        }
        let asm = &mut self.asm;
        asm.bind(self.callout);
        asm.vzeroupper();
        asm.alu_imm(Alu::Sub, RSP, 8);
        asm.mov(RDI, R15);
        asm.mov_imm(RAX, interpret_from_native as *const () as u64);
        asm.call_reg(RAX);
        asm.alu_imm(Alu::Add, RSP, 8);
        asm.ret();
    }

    fn call_interpreter(&mut self, from: usize, to: usize) {
        self.asm.mov_imm(RSI, from as u64);
        self.asm.mov_imm(RDX, to as u64);
        self.asm.call(self.callout);
        self.asm.test(RAX, RAX, 4);
        self.asm.jump_if(Cond::NotEqual, self.exit);
    }

    pub(super) fn label_of(&mut self, at: usize) -> Label {
        let asm = &mut self.asm;
        *self.labels.entry(at).or_insert_with(|| asm.label())
    }

    pub(super) fn slot(&self, slot: Slot) -> Mem {
        Mem::at(RBX, slot as i32 * 8)
    }

    // Vectors at home.

    pub(super) fn home(&mut self, home: Home) -> Mem {
        match home {
            Home::Arena(offset) => Mem::at(R12, offset),
            Home::Outer(ptr) => {
                self.asm.load(RAX, Mem::at(R14, ptr as i32 * 8), 8);
                Mem::at(RAX, 0)
            }
        }
    }

    /// Loads the variables whose interval begins here with a value in memory. What a parallel loop only reads was loaded
    /// before its first iteration.
    pub(super) fn begin_variables(&mut self, at: usize) {
        for v in self.plan.starts.get(&at).cloned().unwrap_or_default() {
            if !matches!(self.plan.variables[v].home, Home::Outer(_)) {
                self.fetch(v);
            }
        }
    }

    pub(super) fn fetch(&mut self, v: usize) {
        let variable = self.plan.variables[v].clone();
        if variable.place == Place::Memory {
            return;
        }
        let mem = self.home(variable.home);
        let width = self.width();
        match &variable.place {
            Place::Memory => {}
            Place::Vectors(registers) => {
                for (part, register) in registers.iter().enumerate() {
                    let bytes = variable.bytes_of(part, width);
                    enc_load(&mut self.asm, Vec_(*register), mem.plus((width * part) as i32), bytes);
                }
            }
            Place::Mask(k) => self.load_mask(Mask(*k), mem, variable.bytes),
            Place::Lanes(registers) => {
                self.load_lanes(registers, mem, variable.bytes, variable.lane_bytes);
            }
        }
    }

    pub(super) fn bring_home(&mut self, v: usize) {
        let variable = self.plan.variables[v].clone();
        let Home::Arena(offset) = variable.home else { return };
        let mem = Mem::at(R12, offset);
        let width = self.width();
        match &variable.place {
            Place::Memory => {}
            Place::Vectors(registers) => {
                for (part, register) in registers.iter().enumerate() {
                    let bytes = variable.bytes_of(part, width);
                    enc_store(&mut self.asm, mem.plus((width * part) as i32), Vec_(*register), bytes);
                }
            }
            Place::Mask(k) => self.store_mask(mem, Mask(*k), variable.bytes),
            Place::Lanes(registers) => {
                self.store_lanes(mem, registers, variable.bytes, variable.lane_bytes);
            }
        }
    }

    /// Whether the variable is brought home right where it is written.
    pub(super) fn writes_through(&self, v: usize) -> bool {
        let variable = &self.plan.variables[v];
        let wanted = |at: &usize| variable.first < *at && *at <= variable.last;
        variable.n_writes == 1 && self.plan.calls.iter().any(wanted)
    }

    /// Brings home what lives at a call, or only what a buffer holds; `all` with what is at home already.
    fn save(&mut self, at: usize, all: bool) {
        for v in 0..self.plan.variables.len() {
            let variable = &self.plan.variables[v];
            let lives = variable.first < at && at <= variable.last
                || variable.first == at && variable.starts_in_memory;
            if lives && variable.n_writes > 0 && (all || !self.writes_through(v)) {
                self.bring_home(v);
            }
        }
    }

    fn reload(&mut self, at: usize) {
        for v in 0..self.plan.variables.len() {
            let variable = &self.plan.variables[v];
            if variable.first <= at && at < variable.last {
                self.fetch(v);
            }
        }
    }

    /// Brings home the variables of a buffer that is about to be accessed another way.
    pub(super) fn save_base(&mut self, base: Base, at: usize) {
        for v in 0..self.plan.variables.len() {
            let variable = &self.plan.variables[v];
            if variable.base == Some(base) && variable.first <= at && at <= variable.last {
                self.bring_home(v);
            }
        }
    }

    pub(super) fn reload_base(&mut self, base: Base, at: usize) {
        for v in 0..self.plan.variables.len() {
            let variable = &self.plan.variables[v];
            if variable.base == Some(base) && variable.first <= at && at < variable.last {
                self.fetch(v);
            }
        }
    }

    // Instructions.

    pub(super) fn instr(&mut self, at: usize) {
        if self.inner.as_ref().is_some_and(|inner| inner.dropped.contains(&at)) {
            return;
        }
        let instr = self.compiled.code[at];
        if calls_out(&instr, self.asm.isa) {
            return self.call_out(at);
        }
        match instr {
            Instr::Vector { op, d, a, b, c, n, .. } => self.vector(at, op, d, [a, b, c], n),
            Instr::Scalar { op, d, a, b, c, .. } => self.scalar(op, d, [a, b, c]),
            Instr::Move { d, a } => {
                self.asm.load(RAX, self.slot(a), 8);
                self.asm.store(self.slot(d), RAX, 8);
            }
            Instr::NonZero { bytes, a, .. } => {
                self.asm.load(RAX, self.slot(a), bytes.into());
                self.asm.test(RAX, RAX, usize::from(bytes).max(4));
                let label = self.failure(at, 1);
                self.asm.jump_if(Cond::Equal, label);
            }
            Instr::Load { d, base, index, bytes } => {
                let mem = self.element(at, base, index, bytes);
                self.save_base(base, at);
                self.asm.load(RDX, mem, bytes.into());
                self.asm.store(self.slot(d), RDX, bytes.into());
            }
            Instr::Store { a, base, index, bytes } => {
                let mem = self.element(at, base, index, bytes);
                self.save_base(base, at);
                self.asm.load(RDX, self.slot(a), bytes.into());
                self.asm.store(mem, RDX, bytes.into());
                self.reload_base(base, at);
            }
            Instr::Address { p, base, index, n, bytes } => self.address(at, p, base, index, n, bytes),
            Instr::Prefetch { base, index, bytes, hint } => self.prefetch(at, hint, (base, index, bytes)),
            Instr::For { var, min, extent, rest, exit } => self.begin_loop(at, var, min, extent, rest, exit),
            Instr::Next { var, rest, wide, .. } => self.end_loop(var, rest, wide),
            Instr::Jump { by } => {
                let label = self.label_of(at + 1 + by as usize);
                self.asm.jump(label);
            }
            Instr::Unless { cond, by } => {
                let label = self.label_of(at + 1 + by as usize);
                self.asm.is_zero(self.slot(cond));
                self.asm.jump_if(Cond::Equal, label);
            }
            Instr::GatherStrided { d, base, index, stride, n, bytes, .. } => match self.together.get(&at) {
                Some(0) => {}
                Some(n_reads) => self.gather_together(at, *n_reads),
                None => self.gather(at, d, base, [index, stride], n, bytes),
            },
            Instr::VecNonZero { .. }
            | Instr::ScatterStrided { .. }
            | Instr::Gather { .. }
            | Instr::Scatter { .. }
            | Instr::Parallel { .. }
            | Instr::Alloc { .. }
            | Instr::Free { .. } => self.call_out(at),
        }
    }

    fn call_out(&mut self, at: usize) {
        self.save(at, false);
        let keeps = self.inner.as_ref().is_some_and(|inner| !inner.groups.is_empty());
        if keeps {
            POINTERS.iter().chain([&SMALL]).for_each(|register| self.asm.push(*register));
        }
        self.asm.mov_imm(RSI, at as u64);
        self.asm.mov_imm(RDX, at as u64 + 1);
        self.asm.call(self.callout);
        if keeps {
            self.asm.pop(SMALL);
            POINTERS.iter().rev().for_each(|register| self.asm.pop(*register));
        }
        self.asm.test(RAX, RAX, 4);
        self.asm.jump_if(Cond::NotEqual, self.exit);
        self.reload(at);
    }

    /// Where to go when one of so many instructions fails.
    pub(super) fn failure(&mut self, at: usize, count: usize) -> Label {
        let label = self.asm.label();
        self.cold.push(Cold::Fail { label, at, count });
        label
    }

    pub(super) fn base_field(&self, base: Base, field: usize) -> Mem {
        Mem::at(R13, (base as usize * size_of::<BaseAt>() + field) as i32)
    }

    /// Index in `rax`; checks `n` elements.
    fn check(&mut self, at: usize, base: Base, n: u32) {
        let label = self.failure(at, 1);
        let (lo, hi) = (std::mem::offset_of!(BaseAt, lo), std::mem::offset_of!(BaseAt, hi));
        self.asm.alu_mem(Alu::Cmp, RAX, self.base_field(base, lo), 8);
        self.asm.jump_if(Cond::Less, label);
        self.asm.load(RCX, self.base_field(base, hi), 8);
        if n > 1 {
            // The end of a buffer is not so near the least integer that this wraps.
            self.asm.alu_imm(Alu::Sub, RCX, n as i32 - 1);
        }
        self.asm.alu(Alu::Cmp, RAX, RCX, 8);
        self.asm.jump_if(Cond::GreaterEqual, label);
    }

    /// The place of one element, which is checked; it takes `rax`.
    fn element(&mut self, at: usize, base: Base, index: Slot, bytes: u8) -> Mem {
        let known = self.slots.constant(index);
        if let (Some(index), Origin::Arena { count }, Some(offset), true) = (
            known,
            &self.compiled.bases[base as usize].origin,
            self.layout.bases[base as usize],
            self.plan.variables.iter().any(|v| v.base == Some(base)),
        ) && (0..*count).contains(&index)
        {
            return Mem::at(R12, offset as i32 + index as i32 * i32::from(bytes));
        }
        self.asm.load(RAX, self.slot(index), 8);
        self.check(at, base, 1);
        self.asm.load(RCX, self.base_field(base, std::mem::offset_of!(BaseAt, ptr)), 8);
        Mem { base: RCX, index: Some((RAX, bytes)), disp: 0 }
    }

    fn address(&mut self, at: usize, p: u32, base: Base, index: Slot, n: u32, bytes: u8) {
        match self.plan.operands.get(&p) {
            Some(Operand::Static(offset, _)) => self.asm.lea(RAX, Mem::at(R12, *offset)),
            Some(Operand::Variable(v)) => {
                let mem = self.home(self.plan.variables[*v].home);
                self.asm.lea(RAX, mem);
            }
            Some(Operand::Dynamic(_) | Operand::Slot(_)) | None => {
                self.asm.load(RAX, self.slot(index), 8);
                self.check(at, base, n);
                self.asm.load(RCX, self.base_field(base, std::mem::offset_of!(BaseAt, ptr)), 8);
                self.asm.lea(RAX, Mem { base: RCX, index: Some((RAX, bytes)), disp: 0 });
            }
        }
        self.asm.store(Mem::at(R14, p as i32 * 8), RAX, 8);
    }

    /// A hint about an element, which need not exist.
    fn prefetch(&mut self, at: usize, hint: Atom, (base, index, bytes): (Base, Slot, u8)) {
        if let Some((pointer, away)) = self.inner.as_ref().and_then(|inner| inner.hints.get(&at)) {
            return self.asm.prefetch(hint, Mem::at(*pointer, *away));
        }
        self.asm.load(RAX, self.slot(index), 8);
        self.asm.load(RCX, self.base_field(base, std::mem::offset_of!(BaseAt, ptr)), 8);
        self.asm.prefetch(hint, Mem { base: RCX, index: Some((RAX, bytes)), disp: 0 });
    }
}
