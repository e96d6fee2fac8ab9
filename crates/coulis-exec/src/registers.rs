//! Places of vector registers in the arena: a linear scan over live ranges.
//!
//! Small arenas stay in the first-level cache, which is what makes wide vectors cheap. A register that is written
//! before a loop and read in it lives to the end of the loop.

use std::collections::BTreeSet;

use crate::code::{Base, BaseInfo, Instr, Origin, ParallelInfo, Ptr, PtrKind};

/// Alignment and granularity of everything in the arena.
pub(crate) const LINE: usize = 64;

/// Where everything in the arena lies.
#[derive(Debug, Default)]
pub(crate) struct Layout {
    /// Byte offset of each pointer entry that is a register.
    pub(crate) registers: Vec<Option<usize>>,
    /// Byte offset of each buffer that lives in the arena.
    pub(crate) bases: Vec<Option<usize>>,
    /// Size of the arena in lines.
    pub(crate) lines: usize,
}

#[derive(Clone, Copy)]
struct Range {
    ptr: Ptr,
    first: usize,
    last: usize,
}

/// Lays out registers and buffers, and completes what is known of the parallel loops.
pub(crate) fn lay_out(
    code: &[Instr],
    ptrs: &[PtrKind],
    bases: &[BaseInfo],
    parallels: &mut [ParallelInfo],
) -> Layout {
    let ranges = live_ranges(code, ptrs);
    let mut layout = Layout { registers: vec![None; ptrs.len()], bases: vec![None; bases.len()], lines: 0 };
    // (offset, lines, busy until), in lines.
    let mut places: Vec<(usize, usize, usize)> = Vec::new();
    for range in &ranges {
        let PtrKind::Register { bytes } = ptrs[range.ptr as usize] else { continue };
        let lines = bytes.div_ceil(LINE);
        let free = places.iter_mut().find(|(_, size, until)| *size == lines && *until < range.first);
        let offset = match free {
            Some((offset, _, until)) => {
                *until = range.last;
                *offset
            }
            None => {
                let offset = layout.lines;
                layout.lines += lines;
                places.push((offset, lines, range.last));
                offset
            }
        };
        layout.registers[range.ptr as usize] = Some(offset * LINE);
    }
    for (place, base) in layout.bases.iter_mut().zip(bases) {
        if let Origin::Arena { count } = base.origin {
            *place = Some(layout.lines * LINE);
            layout.lines += (count as usize * base.dtype.bytes()).div_ceil(LINE).max(1);
        }
    }
    note_outer_registers(code, &ranges, parallels);
    note_outer_scalars(code, ptrs, parallels);
    layout
}

fn live_ranges(code: &[Instr], ptrs: &[PtrKind]) -> Vec<Range> {
    let mut found: Vec<Option<Range>> = vec![None; ptrs.len()];
    for (at, instr) in code.iter().enumerate() {
        let (written, read) = instr.vector_operands();
        for ptr in read.into_iter().chain(written) {
            if let PtrKind::Register { .. } = ptrs[ptr as usize] {
                let range = found[ptr as usize].get_or_insert(Range { ptr, first: at, last: at });
                range.last = at;
            }
        }
    }
    let mut ranges: Vec<Range> = found.into_iter().flatten().collect();
    for (start, end) in loops(code) {
        for range in &mut ranges {
            if range.first < start && start <= range.last && range.last < end {
                range.last = end;
            }
        }
    }
    ranges.sort_by_key(|r| r.first);
    ranges
}

/// First and last position of each loop, inner ones before outer ones.
fn loops(code: &[Instr]) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = code
        .iter()
        .enumerate()
        .filter_map(|(at, instr)| match instr {
            Instr::For { exit, .. } => Some((at, at + *exit as usize)),
            Instr::Parallel { len, .. } => Some((at, at + *len as usize)),
            _ => None,
        })
        .collect();
    found.sort_by_key(|(_, end)| *end);
    found
}

fn note_outer_registers(code: &[Instr], ranges: &[Range], parallels: &mut [ParallelInfo]) {
    for (at, instr) in code.iter().enumerate() {
        if let Instr::Parallel { id, .. } = instr {
            let crosses = |r: &&Range| r.first < at && at < r.last;
            parallels[*id as usize].outer_registers = ranges.iter().filter(crosses).map(|r| r.ptr).collect();
        }
    }
}

/// Notes what the bodies of parallel loops need of the frame that launches them, vector registers aside.
fn note_outer_scalars(code: &[Instr], ptrs: &[PtrKind], parallels: &mut [ParallelInfo]) {
    for (at, instr) in code.iter().enumerate() {
        let Instr::Parallel { id, min, var, len, .. } = *instr else { continue };
        let body = &code[at + 1..at + 1 + len as usize];
        let mut slots = BTreeSet::from([min]);
        let mut addresses = BTreeSet::new();
        for instr in body {
            slots.extend(instr.read_slots());
            let (written, read) = instr.vector_operands();
            for ptr in read.into_iter().chain(written) {
                match ptrs[ptr as usize] {
                    PtrKind::Slot(slot) => slots.extend([slot]),
                    PtrKind::Address => addresses.extend([ptr]),
                    PtrKind::Register { .. } => {}
                }
            }
        }
        slots.remove(&var);
        for instr in body {
            instr.written_slots().iter().for_each(|slot| _ = slots.remove(slot));
            if let Instr::Address { p, .. } = instr {
                addresses.remove(p);
            }
        }
        let info = &mut parallels[id as usize];
        info.outer_slots = slots.into_iter().collect();
        info.outer_addresses = addresses.into_iter().collect();
    }
}

/// Adds a buffer to those that each thread of a parallel loop has for itself.
pub(crate) fn note_own_base(parallel: &mut ParallelInfo, base: Base) {
    parallel.own_bases.push(base);
}
