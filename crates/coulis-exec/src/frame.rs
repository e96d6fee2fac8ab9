//! The memory of one thread that runs bytecode: slots, table of pointers, table of buffers, arena.

use std::sync::atomic::AtomicBool;

use coulis_ir::interrupt;

use crate::code::{Origin, PtrKind};
use crate::program::Program;
use crate::registers::LINE;

/// 64 bytes, aligned.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Line([u8; LINE]);

/// Zeroed memory for at least `bytes` bytes; `None` when there is not that much.
pub(crate) fn lines(bytes: usize) -> Option<Box<[Line]>> {
    let n = bytes.div_ceil(LINE);
    let mut memory = Vec::new();
    memory.try_reserve_exact(n).ok()?;
    memory.resize(n, Line([0; LINE]));
    Some(memory.into_boxed_slice())
}

/// Element 0 of a buffer, and the elements `[lo, hi)` that exist.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct BaseAt {
    pub(crate) ptr: *mut u8,
    pub(crate) lo: i64,
    pub(crate) hi: i64,
}

pub(crate) struct Frame {
    pub(crate) slots: Box<[u64]>,
    pub(crate) ptrs: Box<[*mut u8]>,
    pub(crate) bases: Box<[BaseAt]>,
    pub(crate) heap: Box<[Option<Box<[Line]>>]>,
    /// Set where whoever called for the run wants it to stop.
    pub(crate) interrupt: &'static AtomicBool,
    arena: Box<[Line]>,
    /// The parallel loop whose outer vector registers the table of pointers leads to.
    entered: Option<u32>,
}

// SAFETY: the pointers lead into the frame's own boxes, or into memory that the caller of a run lends for its
// duration; nothing in it depends on the thread.
unsafe impl Send for Frame {}

impl Frame {
    /// A frame whose constants, registers and arena buffers are in place. Nothing else is set.
    pub(crate) fn new(program: &Program) -> Frame {
        let compiled = &program.compiled;
        let mut frame = Frame {
            slots: compiled.slots.clone().into_boxed_slice(),
            ptrs: vec![std::ptr::null_mut(); compiled.ptrs.len()].into_boxed_slice(),
            bases: vec![BaseAt { ptr: std::ptr::null_mut(), lo: 0, hi: 0 }; compiled.bases.len()]
                .into_boxed_slice(),
            heap: compiled.bases.iter().map(|_| None).collect(),
            interrupt: interrupt::flag(),
            arena: vec![Line([0; LINE]); program.layout.lines].into_boxed_slice(),
            entered: None,
        };
        let slots = frame.slots.as_mut_ptr();
        for (ptr, kind) in frame.ptrs.iter_mut().zip(&compiled.ptrs) {
            if let PtrKind::Slot(slot) = kind {
                *ptr = slots.wrapping_add(*slot as usize).cast();
            }
        }
        frame.place_registers(program);
        frame.reset(program);
        frame
    }

    fn place_in_arena(&mut self, program: &Program, base: usize) {
        if let (Origin::Arena { count }, Some(offset)) =
            (&program.compiled.bases[base].origin, program.layout.bases[base])
        {
            let arena = self.arena.as_mut_ptr().cast::<u8>();
            self.bases[base] = BaseAt { ptr: arena.wrapping_add(offset), lo: 0, hi: *count };
        }
    }

    /// Makes a used frame as good as a new one. Constants are never written to, and other slots are before they are read.
    pub(crate) fn reset(&mut self, program: &Program) {
        self.interrupt = interrupt::flag();
        for base in 0..program.compiled.bases.len() {
            self.place_in_arena(program, base);
        }
        if self.entered.take().is_some() {
            self.place_registers(program);
        }
    }

    fn place_registers(&mut self, program: &Program) {
        let arena = self.arena.as_mut_ptr().cast::<u8>();
        for (ptr, place) in self.ptrs.iter_mut().zip(&program.layout.registers) {
            if let Some(offset) = place {
                *ptr = arena.wrapping_add(*offset);
            }
        }
    }

    /// Makes this the frame of one thread of a parallel loop: what the launching frame knows is known here; what the
    /// body allocates or computes is this frame's own.
    pub(crate) fn enter(&mut self, program: &Program, parent: &Frame, parallel: u32) {
        let info = &program.compiled.parallels[parallel as usize];
        self.interrupt = parent.interrupt;
        for slot in &info.outer_slots {
            self.slots[*slot as usize] = parent.slots[*slot as usize];
        }
        self.bases.copy_from_slice(&parent.bases);
        for base in &info.own_bases {
            self.place_in_arena(program, *base as usize);
        }
        if self.entered.replace(parallel).is_some_and(|other| other != parallel) {
            self.place_registers(program);
        }
        for ptr in &info.outer_addresses {
            self.ptrs[*ptr as usize] = parent.ptrs[*ptr as usize];
        }
        for ptr in &info.outer_registers {
            self.ptrs[*ptr as usize] = parent.ptrs[*ptr as usize];
        }
    }

    /// The memory of vector registers and local buffers.
    pub(crate) fn arena(&mut self) -> *mut u8 {
        self.arena.as_mut_ptr().cast()
    }

    /// Drops what the last run allocated on the heap.
    pub(crate) fn clear(&mut self) {
        self.heap.iter_mut().for_each(|memory| *memory = None);
    }
}
