//! The interpreter.

use std::ops::Range;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, PoisonError};

use crate::code::{Instr, Slot};
use crate::error::ExecError;
use crate::frame::{BaseAt, Frame, lines};
use crate::pool::Pool;
use crate::program::Program;

/// The frame of the thread that launches a parallel loop. It waits while others read.
struct Parent(*const Frame);

// SAFETY: the launching thread does not touch the frame while the parts run, and they only read it.
unsafe impl Sync for Parent {}

impl Program {
    /// Runs the whole program.
    ///
    /// # Safety
    /// The frame is prepared for this program, and its buffers are as the caller of [`Program::run`] promised.
    /// Every index in the instructions was made by the compiler for tables of these sizes.
    pub(crate) unsafe fn execute(&self, frame: &mut Frame, pool: &Pool) -> Result<(), ExecError> {
        let to = self.compiled.code.len();
        #[cfg(target_arch = "x86_64")]
        if let Some(native) = &self.native {
            // SAFETY: the caller promises the same, and the code is this program's.
            if let Some(result) = unsafe { native.run(self, frame, 0..to, 1, pool) } {
                return result;
            }
        }
        // SAFETY: by the contract.
        unsafe { self.interpret(frame, 0, to, pool) }
    }

    /// Runs iterations of a parallel loop on a frame of their own.
    ///
    /// # Safety
    /// As for [`Program::execute`]; the frame was entered.
    unsafe fn iterations(
        &self,
        frame: &mut Frame,
        loop_: &ParallelLoop,
        which: Range<i64>,
        pool: &Pool,
    ) -> Result<(), ExecError> {
        let first = frame.slots[loop_.min as usize];
        let var = loop_.var as usize;
        frame.slots[var] = first;
        // SAFETY: the slot is in the table.
        unsafe { add_to_index(&mut frame.slots[var], which.start, loop_.wide) };
        #[cfg(target_arch = "x86_64")]
        if let Some(native) = &self.native {
            let count = which.end - which.start;
            // SAFETY: the caller promises the same, and the code is this program's.
            let result = unsafe { native.run(self, frame, loop_.body.clone(), count, pool) };
            if let Some(result) = result {
                return result;
            }
        }
        for i in which {
            if frame.interrupt.load(Ordering::Relaxed) {
                return Err(ExecError::Interrupted);
            }
            frame.slots[var] = first;
            // SAFETY: the slot is in the table; the frame is prepared.
            unsafe {
                add_to_index(&mut frame.slots[var], i, loop_.wide);
                self.interpret(frame, loop_.body.start, loop_.body.end, pool)?;
            }
        }
        Ok(())
    }

    /// Runs the instructions `[from, to)` one by one; the bodies of parallel loops natively where there is native code.
    ///
    /// # Safety
    /// As for [`Program::execute`].
    pub(crate) unsafe fn interpret(
        &self,
        frame: &mut Frame,
        from: usize,
        to: usize,
        pool: &Pool,
    ) -> Result<(), ExecError> {
        let code = &self.compiled.code[..to];
        let slots = frame.slots.as_mut_ptr();
        let ptrs = frame.ptrs.as_mut_ptr();
        let bases = frame.bases.as_mut_ptr();
        let interrupt = frame.interrupt;
        let slot = |s: Slot| slots.wrapping_add(s as usize);
        // SAFETY (all blocks below): slots, pointers and bases are in their tables by the contract above; accesses
        // to buffers are checked against the base's bounds before they are made; vector operands are as long as
        // their instruction says, since the compiler made both.
        let int = |s: Slot| unsafe { *slot(s).cast::<i64>() };
        let ptr = |p: u32| unsafe { *ptrs.wrapping_add(p as usize) };
        let base = |b: u32| unsafe { *bases.wrapping_add(b as usize) };
        let mut pc = from;
        while let Some(instr) = code.get(pc) {
            pc += 1;
            match *instr {
                Instr::Scalar { f, d, a, b, c, .. } => unsafe { f(slot(d), slot(a), slot(b), slot(c)) },
                Instr::Vector { f, d, a, b, c, n, .. } => unsafe {
                    f(ptr(d), ptr(a), ptr(b), ptr(c), n as usize)
                },
                Instr::Move { d, a } => unsafe { *slot(d) = *slot(a) },
                Instr::Load { d, base: b, index, bytes } => {
                    let at = self.element(b, base(b), int(index), bytes)?;
                    let d = slot(d).cast::<u8>();
                    unsafe { copy_element(at, d, bytes) };
                }
                Instr::Store { a, base: b, index, bytes } => {
                    let at = self.element(b, base(b), int(index), bytes)?;
                    let a = slot(a).cast::<u8>();
                    unsafe { copy_element(a, at, bytes) };
                }
                Instr::Address { p, base: b, index, n, bytes } => {
                    let at = base(b);
                    self.check_span(b, at, int(index), 1, n)?;
                    let offset = (int(index) as isize).wrapping_mul(isize::from(bytes));
                    unsafe { *ptrs.wrapping_add(p as usize) = at.ptr.wrapping_offset(offset) };
                }
                Instr::For { var, min, extent, rest, exit } => {
                    let n = int(extent);
                    if n <= 0 {
                        pc += exit as usize;
                    } else {
                        unsafe {
                            *slot(var) = *slot(min);
                            *slot(rest).cast::<i64>() = n;
                        }
                    }
                }
                Instr::Next { var, rest, wide, back } => {
                    let left = int(rest) - 1;
                    if left > 0 {
                        if interrupt.load(Ordering::Relaxed) {
                            return Err(ExecError::Interrupted);
                        }
                        unsafe {
                            *slot(rest).cast::<i64>() = left;
                            add_to_index(slot(var), 1, wide);
                        }
                        pc -= back as usize + 1;
                    }
                }
                Instr::Prefetch { .. } => {}
                Instr::Jump { by } => pc += by as usize,
                Instr::Unless { cond, by } => {
                    if unsafe { *slot(cond).cast::<u8>() } == 0 {
                        pc += by as usize;
                    }
                }
                Instr::GatherStrided { f, d, base: b, index, stride, n, bytes } => {
                    let at = base(b);
                    self.check_span(b, at, int(index), int(stride), n)?;
                    let from = at.ptr.wrapping_offset((int(index) as isize).wrapping_mul(isize::from(bytes)));
                    unsafe { f(ptr(d), from, int(stride) as isize, n as usize) };
                }
                Instr::ScatterStrided { f, a, base: b, index, stride, n, bytes } => {
                    let at = base(b);
                    self.check_span(b, at, int(index), int(stride), n)?;
                    let into = at.ptr.wrapping_offset((int(index) as isize).wrapping_mul(isize::from(bytes)));
                    unsafe { f(into, ptr(a), int(stride) as isize, n as usize) };
                }
                Instr::Gather { f, d, base: b, at, n } => {
                    let from = base(b);
                    let indices = ptr(at).cast::<i64>();
                    let bad = unsafe { f(ptr(d), from.ptr, indices, n as usize, from.lo, from.hi) };
                    if let Some(lane) = bad {
                        return Err(self.out_of_bounds(b, from, unsafe { *indices.add(lane) }));
                    }
                }
                Instr::Scatter { f, a, base: b, at, n } => {
                    let into = base(b);
                    let indices = ptr(at).cast::<i64>();
                    let bad = unsafe { f(into.ptr, ptr(a), indices, n as usize, into.lo, into.hi) };
                    if let Some(lane) = bad {
                        return Err(self.out_of_bounds(b, into, unsafe { *indices.add(lane) }));
                    }
                }
                Instr::NonZero { any_zero, a, .. } => {
                    if unsafe { any_zero(slot(a).cast(), 1) } {
                        return Err(ExecError::DivisionByZero);
                    }
                }
                Instr::VecNonZero { any_zero, a, n } => {
                    if unsafe { any_zero(ptr(a), n as usize) } {
                        return Err(ExecError::DivisionByZero);
                    }
                }
                Instr::Parallel { var, min, extent, wide, id, len } => {
                    let body = pc..pc + len as usize;
                    let loop_ = ParallelLoop { var, min, wide, id, extent: int(extent), body: body.clone() };
                    unsafe { self.parallel(frame, &loop_, pool)? };
                    pc = body.end;
                }
                Instr::Alloc { base: b, count, bytes } => {
                    let count = int(count);
                    let wanted = usize::try_from(count).ok().and_then(|n| n.checked_mul(usize::from(bytes)));
                    let refused = || ExecError::Allocation { buffer: self.base_name(b), count };
                    let mut memory = wanted.and_then(lines).ok_or_else(refused)?;
                    let ptr = memory.as_mut_ptr().cast();
                    frame.heap[b as usize] = Some(memory);
                    unsafe { *bases.wrapping_add(b as usize) = BaseAt { ptr, lo: 0, hi: count } };
                }
                Instr::Free { base: b } => {
                    unsafe {
                        *bases.wrapping_add(b as usize) = BaseAt { ptr: std::ptr::null_mut(), lo: 0, hi: 0 };
                    }
                    frame.heap[b as usize] = None;
                }
            }
        }
        Ok(())
    }

    /// # Safety
    /// As for [`Program::execute`].
    unsafe fn parallel(&self, frame: &mut Frame, loop_: &ParallelLoop, pool: &Pool) -> Result<(), ExecError> {
        let failure: Mutex<Option<(i64, ExecError)>> = Mutex::new(None);
        let keep = |at: i64, error: ExecError| {
            let mut first = failure.lock().unwrap_or_else(PoisonError::into_inner);
            if first.as_ref().is_none_or(|(other, _)| at < *other) {
                *first = Some((at, error));
            }
        };
        let parent = Parent(frame);
        let parent = &parent;
        pool.spread(loop_.extent, &self.pace, &|which| {
            // SAFETY: the launching thread waits in `pool.spread`, so the frame lives and does not change.
            let parent = unsafe { &*parent.0 };
            let mut own = self.take_frame();
            own.enter(self, parent, loop_.id);
            let at = which.start;
            // SAFETY: the frame is prepared by `enter`.
            if let Err(error) = unsafe { self.iterations(&mut own, loop_, which, pool) } {
                keep(at, error);
            }
            self.give_back(own);
        })?;
        match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some((_, error)) => Err(error),
            None => Ok(()),
        }
    }

    fn base_name(&self, base: u32) -> String {
        self.compiled.bases[base as usize].name.clone()
    }

    #[cold]
    fn out_of_bounds(&self, base: u32, at: BaseAt, index: i64) -> ExecError {
        ExecError::OutOfBounds { buffer: self.base_name(base), index, lo: at.lo, hi: at.hi }
    }

    /// The address of one element.
    #[inline(always)]
    fn element(&self, base: u32, at: BaseAt, index: i64, bytes: u8) -> Result<*mut u8, ExecError> {
        if index < at.lo || at.hi <= index {
            return Err(self.out_of_bounds(base, at, index));
        }
        Ok(at.ptr.wrapping_offset((index as isize).wrapping_mul(isize::from(bytes))))
    }

    /// Checks `n` elements from `index`, `stride` apart; `n` is at least 1.
    #[inline(always)]
    fn check_span(&self, base: u32, at: BaseAt, index: i64, stride: i64, n: u32) -> Result<(), ExecError> {
        let reach = stride.checked_mul(i64::from(n) - 1);
        let last = reach.and_then(|reach| index.checked_add(reach)).unwrap_or(i64::MAX);
        for end in [index, last] {
            if end < at.lo || at.hi <= end {
                return Err(self.out_of_bounds(base, at, end));
            }
        }
        Ok(())
    }
}

struct ParallelLoop {
    var: Slot,
    min: Slot,
    wide: bool,
    id: u32,
    extent: i64,
    body: Range<usize>,
}

/// # Safety
/// The slot holds an index: an int64 when `wide`, else an int32.
#[inline(always)]
unsafe fn add_to_index(slot: *mut u64, by: i64, wide: bool) {
    // SAFETY: by the contract.
    unsafe {
        if wide {
            let var = slot.cast::<i64>();
            *var = (*var).wrapping_add(by);
        } else {
            let var = slot.cast::<i32>();
            *var = (*var).wrapping_add(by as i32);
        }
    }
}

/// # Safety
/// Both are valid for `bytes` bytes: 1, 2, 4 or 8.
#[inline(always)]
unsafe fn copy_element(from: *const u8, to: *mut u8, bytes: u8) {
    // SAFETY: by the contract; a slot is aligned to 8, an element to its size.
    unsafe {
        match bytes {
            1 => *to = *from,
            2 => *to.cast::<u16>() = *from.cast::<u16>(),
            4 => *to.cast::<u32>() = *from.cast::<u32>(),
            _ => *to.cast::<u64>() = *from.cast::<u64>(),
        }
    }
}
