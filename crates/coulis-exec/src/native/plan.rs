//! Which vectors live in registers: intervals over the bytecode, packed by weight.
//!
//! A variable is a vector register of the bytecode, or elements of a local buffer whose place is known. Each has a home
//! in memory, where calls out of native code find it. A variable has one machine register (or several, or a mask) for
//! all of its interval or none at all; inner loops come first.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;

use super::asm::Isa;
use super::operand::{Lane, compared_bytes, is_native, signature};
use crate::code::{Base, Instr, Origin, Ptr, PtrKind, Slot};
use crate::compile::Compiled;
use crate::registers::Layout;

/// Mask registers that variables may have, from 1 on.
const MASKS: Range<u8> = 1..5;

/// Most lanes that native code gathers one by one.
pub(super) const MOST_GATHERED: u32 = 64;

/// Code that runs on one frame: all of the program but the bodies of parallel loops, or one such body.
pub(super) struct Region {
    pub range: Range<usize>,
    pub parallel: Option<Parallel>,
}

/// The loop that a body belongs to.
#[derive(Clone, Copy)]
pub(super) struct Parallel {
    pub id: u32,
    pub var: Slot,
    pub wide: bool,
}

/// Where a variable lies in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Home {
    /// That many bytes into the arena of the frame.
    Arena(i32),
    /// Where the table of pointers says: in the frame that launched this loop. It is only read.
    Outer(Ptr),
}

/// Where a variable lives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Memory,
    Vectors(Vec<u8>),
    Mask(u8),
    /// Bools as lanes of ones and zeros.
    Lanes(Vec<u8>),
}

#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub home: Home,
    pub base: Option<Base>,
    pub bytes: usize,
    pub first: usize,
    pub last: usize,
    /// Whether the interval begins with a value in memory.
    pub starts_in_memory: bool,
    pub n_writes: usize,
    pub place: Place,
    /// Bytes of a lane of bools that are lanes of ones and zeros.
    pub lane_bytes: usize,
    is_mask: bool,
    fits: bool,
    weight: f64,
    /// In each outermost loop, accesses that a register makes cheaper less those that it makes dearer, by how
    /// often they are run.
    gains: BTreeMap<usize, f64>,
}

impl Variable {
    /// Bytes that lie in its register of that number.
    pub(super) fn bytes_of(&self, part: usize, register_bytes: usize) -> usize {
        register_bytes.min(self.bytes - register_bytes * part)
    }

    fn count(&mut self, nest: Option<usize>, gain: f64) {
        if let Some(nest) = nest {
            *self.gains.entry(nest).or_default() += gain;
        }
    }

    /// Whether registers make any loop cheaper, or none dearer: which of the loops runs longest is not known.
    fn gains_by_registers(&self) -> bool {
        self.gains.values().any(|gain| *gain > 0.0) || self.gains.values().all(|gain| *gain >= 0.0)
    }
}

/// What a pointer entry is in this region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operand {
    Variable(usize),
    /// Bytes into the arena of the frame, and the buffer that lies there.
    Static(i32, Base),
    /// What the table of pointers says, in a buffer.
    Dynamic(Base),
    /// A scalar slot.
    Slot(u32),
}

pub(super) struct Plan {
    pub isa: Isa,
    pub variables: Vec<Variable>,
    pub operands: HashMap<Ptr, Operand>,
    /// Positions of calls out of native code.
    pub calls: Vec<usize>,
    /// Variables whose interval begins at a position with a value in memory.
    pub starts: HashMap<usize, Vec<usize>>,
}

/// One access of an instruction to a vector operand.
struct Access {
    at: usize,
    ptr: Ptr,
    /// Bytes that it covers and its lane; `None` in calls.
    lane: Option<(usize, Lane)>,
    writes: bool,
}

/// The instructions of a region, by position.
pub(super) fn positions(code: &[Instr], region: &Region) -> Vec<usize> {
    let mut found = Vec::new();
    let mut at = region.range.start;
    while at < region.range.end {
        found.push(at);
        at += 1;
        if let Instr::Parallel { len, .. } = code[at - 1] {
            at += len as usize;
        }
    }
    found
}

pub(super) fn plan(
    compiled: &Compiled,
    layout: &Layout,
    region: &Region,
    isa: Isa,
    constant: &dyn Fn(u32) -> Option<i64>,
) -> Plan {
    let code = &compiled.code;
    let at = positions(code, region);
    let mut accesses = Vec::new();
    let mut calls = Vec::new();
    for &pc in &at {
        collect(&code[pc], pc, isa, &mut accesses, &mut calls);
        if let Instr::Parallel { id, .. } = code[pc] {
            let read = &compiled.parallels[id as usize].outer_registers;
            accesses.extend(read.iter().map(|ptr| Access { at: pc, ptr: *ptr, lane: None, writes: false }));
        }
    }
    let mut plan =
        Plan { isa, variables: Vec::new(), operands: HashMap::new(), calls, starts: HashMap::new() };
    let statics = plan.name_operands(compiled, layout, region, &at, constant);
    plan.make_variables(compiled, layout, region, &accesses, &statics);
    let blocks = blocks(code, &at);
    plan.measure(code, region, &at, &accesses, &blocks);
    plan.choose_lanes(code, &at);
    plan.pack();
    for (v, variable) in plan.variables.iter().enumerate().filter(|(_, v)| v.starts_in_memory) {
        plan.starts.entry(variable.first).or_default().push(v);
    }
    plan
}

/// Adds the accesses of an instruction to vectors, and its position if native code calls out for it.
fn collect(instr: &Instr, at: usize, isa: Isa, accesses: &mut Vec<Access>, calls: &mut Vec<usize>) {
    if let Instr::Vector { op, d, a, b, c, n, .. } = *instr
        && is_native(op, n, isa)
        && let Some(signature) = signature(op)
    {
        let access =
            |ptr, lane: Lane, writes| Access { at, ptr, lane: Some((lane.bytes * n as usize, lane)), writes };
        for (ptr, lane) in [a, b, c].into_iter().zip(signature.args) {
            accesses.extend(lane.map(|lane| access(ptr, lane, false)));
        }
        accesses.push(access(d, signature.out, true));
        return;
    }
    if let Instr::GatherStrided { d, n, bytes, .. } = *instr
        && !calls_out(instr, isa)
    {
        let lane = Lane { bytes: bytes.into(), is_bool: false };
        accesses.push(Access { at, ptr: d, lane: Some((lane.bytes * n as usize, lane)), writes: true });
        return;
    }
    let (written, read) = instr.vector_operands();
    accesses.extend(read.into_iter().map(|ptr| Access { at, ptr, lane: None, writes: false }));
    accesses.extend(written.map(|ptr| Access { at, ptr, lane: None, writes: true }));
    if calls_out(instr, isa) {
        calls.push(at);
    }
}

/// Whether the interpreter runs the instruction even where the rest is native.
pub(super) fn calls_out(instr: &Instr, isa: Isa) -> bool {
    match *instr {
        Instr::Vector { op, n, .. } => !is_native(op, n, isa),
        Instr::Scalar { op, .. } => !is_native(op, 1, isa),
        Instr::GatherStrided { n, .. } => n > MOST_GATHERED,
        Instr::VecNonZero { .. }
        | Instr::ScatterStrided { .. }
        | Instr::Gather { .. }
        | Instr::Scatter { .. }
        | Instr::Parallel { .. }
        | Instr::Alloc { .. }
        | Instr::Free { .. } => true,
        Instr::Move { .. }
        | Instr::NonZero { .. }
        | Instr::Load { .. }
        | Instr::Store { .. }
        | Instr::Address { .. }
        | Instr::Prefetch { .. }
        | Instr::For { .. }
        | Instr::Next { .. }
        | Instr::Jump { .. }
        | Instr::Unless { .. } => false,
    }
}

/// A loop, or a piece that a jump may leave out: first and last position.
struct Block {
    first: usize,
    last: usize,
    repeats: bool,
}

fn blocks(code: &[Instr], positions: &[usize]) -> Vec<Block> {
    let mut found = Vec::new();
    for &at in positions {
        match code[at] {
            Instr::For { exit, .. } => {
                found.push(Block { first: at, last: at + exit as usize, repeats: true });
            }
            Instr::Unless { by, .. } | Instr::Jump { by } => {
                found.push(Block { first: at, last: at + by as usize, repeats: false });
            }
            _ => {}
        }
    }
    found.sort_by_key(|block| block.last - block.first);
    found
}

impl Plan {
    /// Says what each pointer entry that an address sets is; the elements of local buffers with a known place come back.
    fn name_operands(
        &mut self,
        compiled: &Compiled,
        layout: &Layout,
        region: &Region,
        positions: &[usize],
        constant: &dyn Fn(u32) -> Option<i64>,
    ) -> HashMap<Ptr, (Base, i32, usize)> {
        let mut statics = HashMap::new();
        for &at in positions {
            let Instr::Address { p, base, index, n, bytes } = compiled.code[at] else { continue };
            self.operands.insert(p, Operand::Dynamic(base));
            let (Origin::Arena { count }, Some(offset)) =
                (&compiled.bases[base as usize].origin, layout.bases[base as usize])
            else {
                continue;
            };
            let Some(index) = constant(index) else { continue };
            if is_own(compiled, region, base) && 0 <= index && index + i64::from(n) <= *count {
                let at = offset as i32 + index as i32 * i32::from(bytes);
                self.operands.insert(p, Operand::Static(at, base));
                statics.insert(p, (base, at, n as usize * usize::from(bytes)));
            }
        }
        statics
    }

    fn make_variables(
        &mut self,
        compiled: &Compiled,
        layout: &Layout,
        region: &Region,
        accesses: &[Access],
        statics: &HashMap<Ptr, (Base, i32, usize)>,
    ) {
        let outer = |ptr: Ptr| {
            let info = region.parallel.map(|p| &compiled.parallels[p.id as usize]);
            info.is_some_and(|info| info.outer_registers.contains(&ptr))
        };
        let mut of_elements: HashMap<(i32, usize), usize> = HashMap::new();
        for access in accesses {
            let Some((bytes, lane)) = access.lane else { continue };
            let ptr = access.ptr;
            let known = match (compiled.ptrs[ptr as usize], statics.get(&ptr)) {
                (PtrKind::Slot(slot), _) => {
                    self.operands.insert(ptr, Operand::Slot(slot));
                    continue;
                }
                (PtrKind::Register { .. }, _) => match self.operands.get(&ptr) {
                    Some(Operand::Variable(v)) => Some(*v),
                    _ => None,
                },
                (PtrKind::Address, Some((_, offset, size))) => {
                    let overlaps =
                        |(at, len): (i32, usize)| at < offset + *size as i32 && *offset < at + len as i32;
                    if let Some(v) = of_elements.get(&(*offset, *size)) {
                        self.operands.insert(ptr, Operand::Variable(*v));
                        Some(*v)
                    } else if of_elements.keys().any(|other| overlaps(*other)) {
                        continue;
                    } else {
                        None
                    }
                }
                (PtrKind::Address, None) => continue,
            };
            let v = known.unwrap_or(self.variables.len());
            if known.is_none() {
                let (home, base) = match statics.get(&ptr) {
                    Some((base, offset, size)) => {
                        of_elements.insert((*offset, *size), v);
                        (Home::Arena(*offset), Some(*base))
                    }
                    None if outer(ptr) => (Home::Outer(ptr), None),
                    None => (Home::Arena(layout.registers[ptr as usize].unwrap_or(0) as i32), None),
                };
                self.operands.insert(ptr, Operand::Variable(v));
                self.variables.push(Variable {
                    home,
                    base,
                    bytes,
                    first: usize::MAX,
                    last: 0,
                    starts_in_memory: false,
                    n_writes: 0,
                    place: Place::Memory,
                    lane_bytes: 1,
                    is_mask: true,
                    fits: bytes <= 512,
                    weight: 0.0,
                    gains: BTreeMap::new(),
                });
            }
            let variable = &mut self.variables[v];
            variable.fits &= variable.bytes == bytes;
            variable.is_mask &= lane.is_bool;
        }
    }

    /// Intervals and weights.
    fn measure(
        &mut self,
        code: &[Instr],
        region: &Region,
        positions: &[usize],
        accesses: &[Access],
        blocks: &[Block],
    ) {
        let width = self.isa.register_bytes();
        let depth = |at: usize| blocks.iter().filter(|b| b.repeats && b.first < at && at < b.last).count();
        let weight_at = |at: usize| 8f64.powi(depth(at) as i32);
        // The outermost loop that stands around it: blocks come by size.
        let around = |at: usize| blocks.iter().rev().find(|b| b.repeats && b.first < at && at < b.last);
        let nest_of = |at: usize| around(at).map(|b| b.first);
        for access in accesses {
            let (weight, nest) = (weight_at(access.at), nest_of(access.at));
            match self.operands.get(&access.ptr) {
                Some(Operand::Variable(v)) => {
                    let variable = &mut self.variables[*v];
                    let is_first = access.at < variable.first;
                    if is_first {
                        variable.starts_in_memory = !access.writes || access.lane.is_none();
                    }
                    variable.first = variable.first.min(access.at);
                    variable.last = variable.last.max(access.at);
                    variable.n_writes += usize::from(access.writes);
                    if access.lane.is_some() {
                        variable.weight += weight / variable.bytes.div_ceil(width) as f64;
                        variable.count(nest, weight);
                    }
                }
                Some(Operand::Static(_, base) | Operand::Dynamic(base)) => {
                    self.touch(*base, access.at, weight, nest)
                }
                Some(Operand::Slot(_)) | None => {}
            }
        }
        for &at in positions {
            match code[at] {
                Instr::Load { base, .. }
                | Instr::Store { base, .. }
                | Instr::GatherStrided { base, .. }
                | Instr::ScatterStrided { base, .. }
                | Instr::Gather { base, .. }
                | Instr::Scatter { base, .. } => self.touch(base, at, weight_at(at), nest_of(at)),
                _ => {}
            }
        }
        for variable in &mut self.variables {
            if let Home::Outer(_) = variable.home {
                variable.first = region.range.start;
                variable.last = region.range.end;
                variable.starts_in_memory = true;
            }
            for block in blocks {
                let (first, last) = (variable.first, variable.last);
                if last < block.first || block.last < first {
                    continue;
                }
                let inside = block.first < first && last <= block.last;
                let crosses = first <= block.first && last <= block.last && block.repeats;
                if crosses && block.first < last {
                    variable.last = variable.last.max(block.last);
                } else if block.first < first
                    && (variable.base.is_some() && (!inside || variable.starts_in_memory))
                {
                    // Elements of a buffer may have a value from before, or from the iteration before.
                    variable.first = block.first;
                    variable.last = variable.last.max(block.last);
                    variable.starts_in_memory = true;
                }
            }
        }
    }

    /// A variable whose buffer is accessed another way lives while it is, and goes home and comes back each
    /// time, which takes what a register saves at an access of its own.
    fn touch(&mut self, base: Base, at: usize, weight: f64, nest: Option<usize>) {
        for variable in self.variables.iter_mut().filter(|v| v.base == Some(base)) {
            variable.count(nest, -weight);
            if at < variable.first {
                variable.first = at;
                variable.starts_in_memory = true;
            }
            variable.last = variable.last.max(at);
        }
    }

    /// Vector registers that no variable has between those positions.
    pub(super) fn free_vectors(&self, first: usize, last: usize) -> Vec<u8> {
        let has = |v: &Variable, register: &u8| match &v.place {
            Place::Vectors(registers) | Place::Lanes(registers) => registers.contains(register),
            Place::Memory | Place::Mask(_) => false,
        };
        let lives = |v: &&Variable| v.first <= last && first <= v.last;
        (0..self.isa.n_vectors())
            .filter(|r| !self.variables.iter().filter(lives).any(|v| has(v, r)))
            .collect()
    }

    /// Bools have lanes as wide as what they come from: what is compared, or the bools that they are made of.
    fn choose_lanes(&mut self, code: &[Instr], positions: &[usize]) {
        let variable_of = |plan: &Plan, ptr: Ptr| match plan.operands.get(&ptr) {
            Some(Operand::Variable(v)) => Some(*v),
            _ => None,
        };
        for &at in positions {
            let Instr::Vector { op, d, a, b, .. } = code[at] else { continue };
            let Some(v) = variable_of(self, d).filter(|v| self.variables[*v].is_mask) else { continue };
            let of_operands = [a, b].into_iter().filter_map(|ptr| variable_of(self, ptr));
            let bytes = compared_bytes(op)
                .or_else(|| of_operands.map(|v| self.variables[v].lane_bytes).max())
                .unwrap_or(1);
            let variable = &mut self.variables[v];
            variable.lane_bytes = variable.lane_bytes.max(bytes);
        }
    }

    fn pack(&mut self) {
        let is_wanted = |v: &usize| self.variables[*v].fits && self.variables[*v].gains_by_registers();
        let mut order: Vec<usize> = (0..self.variables.len()).filter(is_wanted).collect();
        order.sort_by(|a, b| self.variables[*b].weight.total_cmp(&self.variables[*a].weight).then(a.cmp(b)));
        let mut busy: Vec<Vec<(usize, usize)>> = vec![Vec::new(); 32];
        let mut busy_masks: Vec<Vec<(usize, usize)>> = vec![Vec::new(); 8];
        let is_free = |busy: &[(usize, usize)], first: usize, last: usize| {
            busy.iter().all(|(f, l)| *l < first || last < *f)
        };
        for v in order {
            let variable = &mut self.variables[v];
            let (first, last) = (variable.first, variable.last);
            if variable.is_mask && self.isa == Isa::Avx512 {
                let found = MASKS.clone().find(|k| is_free(&busy_masks[*k as usize], first, last));
                if let Some(k) = found {
                    busy_masks[k as usize].push((first, last));
                    variable.place = Place::Mask(k);
                }
                continue;
            }
            let bytes = if variable.is_mask { variable.bytes * variable.lane_bytes } else { variable.bytes };
            let wanted = bytes.div_ceil(self.isa.register_bytes());
            let found: Vec<u8> = (0..self.isa.n_vectors())
                .filter(|r| is_free(&busy[*r as usize], first, last))
                .take(wanted)
                .collect();
            if found.len() == wanted {
                found.iter().for_each(|r| busy[*r as usize].push((first, last)));
                variable.place = if variable.is_mask { Place::Lanes(found) } else { Place::Vectors(found) };
            }
        }
    }
}

/// Whether the buffer is one of this region alone.
pub(super) fn is_own(compiled: &Compiled, region: &Region, base: Base) -> bool {
    let own = |id: usize| compiled.parallels[id].own_bases.contains(&base);
    match region.parallel {
        Some(parallel) => own(parallel.id as usize),
        None => {
            let inside_of_any = (0..compiled.parallels.len()).any(own);
            !inside_of_any && !is_used_in_parallel(compiled, base)
        }
    }
}

fn is_used_in_parallel(compiled: &Compiled, base: Base) -> bool {
    let points_there = |instr: &Instr| match instr {
        Instr::Address { p, base: b, .. } if *b == base => Some(*p),
        _ => None,
    };
    let pointers: Vec<Ptr> = compiled.code.iter().filter_map(points_there).collect();
    let mut end = 0;
    compiled.code.iter().enumerate().any(|(at, instr)| {
        if let Instr::Parallel { len, .. } = instr {
            end = at + 1 + *len as usize;
        }
        let (written, read) = instr.vector_operands();
        let reached = read.into_iter().chain(written).any(|ptr| pointers.contains(&ptr));
        at < end && (reached || instr.base() == Some(base))
    })
}

#[cfg(test)]
mod tests;
