//! Native code for x86-64 with AVX2 or AVX-512, made from the bytecode.
//!
//! Each instruction is either translated or left to the interpreter, which native code calls for it, so every program has
//! native code and both ways give the same bits, any NaN being one. Source of the plan: a direct emitter makes code as fast
//! as a C compiler's for reductions, without one at run time.

mod asm;
mod bools;
mod emit;
mod functions;
mod gather;
mod iterate;
mod lanes;
mod loops;
mod memory;
mod moves;
mod narrow;
mod operand;
mod plan;
mod scalar;
mod steps;
mod vector;

use std::ops::Range;
use std::sync::atomic::AtomicBool;

use crate::code::Instr;
use crate::compile::Compiled;
use crate::error::ExecError;
use crate::frame::{BaseAt, Frame};
use crate::level::Level;
use crate::pool::Pool;
use crate::program::Program;
use crate::registers::{LINE, Layout};

/// Longer programs stay bytecode: packing registers takes more than linear time.
const MOST_INSTRUCTIONS: usize = 1 << 14;

/// What native code runs on.
#[repr(C)]
pub(crate) struct Context {
    slots: *mut u64,
    arena: *mut u8,
    bases: *mut BaseAt,
    ptrs: *mut *mut u8,
    interrupt: *const AtomicBool,
    program: *const Program,
    frame: *mut Frame,
    pool: *const Pool,
    /// Iterations of a parallel loop that are left to this run of its body.
    count: i64,
    error: Option<ExecError>,
}

type Entry = unsafe extern "sysv64" fn(*mut Context) -> u32;

/// The machine code of a program.
pub(crate) struct Native {
    memory: memory::CodeMemory,
    /// Offsets of the code of the whole program and of the bodies of its parallel loops, by their positions.
    entries: Vec<(Range<usize>, usize)>,
}

/// Whether programs have native code at that level.
pub(crate) fn is_available(level: Level) -> bool {
    isa(level).is_some() && level.is_available() && memory::is_given()
}

fn isa(level: Level) -> Option<asm::Isa> {
    match level {
        Level::Baseline => None,
        Level::Avx2 => Some(asm::Isa::Avx2),
        Level::Avx512 => Some(asm::Isa::Avx512),
    }
}

impl Native {
    /// Translates a program for a machine of that level; `None` for very long ones and those with more memory of a
    /// thread than offsets of 32 bits reach, for levels without native code, and where the system gives no memory for
    /// code.
    pub(crate) fn compile(compiled: &Compiled, layout: &Layout, level: Level) -> Option<Native> {
        let isa = isa(level)?;
        let code = &compiled.code;
        let is_far = i32::try_from(layout.lines.saturating_mul(LINE)).is_err();
        if code.len() > MOST_INSTRUCTIONS || is_far {
            return None;
        }
        let slots = loops::Slots::of(compiled);
        let mut regions = vec![plan::Region { range: 0..code.len(), parallel: None }];
        for (at, instr) in code.iter().enumerate() {
            if let Instr::Parallel { var, wide, id, len, .. } = *instr {
                let parallel = Some(plan::Parallel { id, var, wide });
                regions.push(plan::Region { range: at + 1..at + 1 + len as usize, parallel });
            }
        }
        let mut asm = asm::Asm::new(isa);
        let mut entries = Vec::new();
        for region in &regions {
            let (next, entry) = emit::emit(asm, compiled, layout, &slots, region);
            asm = next;
            entries.push((region.range.clone(), entry));
        }
        let code = asm.finish();
        let memory = memory::CodeMemory::new(&code)?;
        Some(Native { memory, entries })
    }

    /// Runs the instructions `range` if they are a region of their own: the whole program, or the body of a parallel loop
    /// `count` times, its variable being set for the first. `None` where the interpreter has to.
    ///
    /// # Safety
    /// As for [`Program::execute`], of the program that this is the code of.
    pub(crate) unsafe fn run(
        &self,
        program: &Program,
        frame: &mut Frame,
        range: Range<usize>,
        count: i64,
        pool: &Pool,
    ) -> Option<Result<(), ExecError>> {
        let offset = self.entries.iter().find(|(of, _)| *of == range)?.1;
        let mut context = Context {
            slots: frame.slots.as_mut_ptr(),
            arena: frame.arena(),
            bases: frame.bases.as_mut_ptr(),
            ptrs: frame.ptrs.as_mut_ptr(),
            interrupt: frame.interrupt,
            program,
            frame,
            pool,
            count,
            error: None,
        };
        // SAFETY: the offset is that of a function of this type, which touches what the interpreter would.
        let status = unsafe {
            let entry: Entry = std::mem::transmute(self.memory.at(offset));
            entry(&raw mut context)
        };
        Some(match (status, context.error) {
            (emit::NOT_BEGUN, _) => return None,
            (emit::INTERRUPTED, _) => Err(ExecError::Interrupted),
            (_, Some(error)) => Err(error),
            (_, None) => Ok(()),
        })
    }
}

/// Runs instructions on behalf of native code; the result is not 0 after an error.
///
/// # Safety
/// The context is that of a run of native code, which waits.
unsafe extern "sysv64" fn interpret_from_native(context: *mut Context, from: usize, to: usize) -> u32 {
    // SAFETY: native code holds no references; the pointers of the context outlive the run.
    let (context, frame) = unsafe { (&mut *context, &mut *(*context).frame) };
    // SAFETY: the same, and the frame is prepared for this program.
    match unsafe { (*context.program).interpret(frame, from, to, &*context.pool) } {
        Ok(()) => emit::DONE,
        Err(error) => {
            context.error = Some(error);
            emit::FAILED
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use coulis_ir::verify::verify;
    use coulis_ir::{Form, Kernel, Stmt};

    use super::*;

    #[test]
    fn memory_beyond_offsets_of_32_bits_is_the_interpreters() {
        let level = Level::detect();
        if !is_available(level) {
            eprintln!("SKIP memory_beyond_offsets_of_32_bits_is_the_interpreters: no native code");
            return;
        }
        let (name, attrs) = ("nothing".to_owned(), BTreeMap::new());
        let kernel = Kernel { name, params: Vec::new(), attrs, form: Form::Flat, body: Stmt::NOP };
        let mut program = Program::interpreted(&verify(kernel).unwrap(), level).unwrap();
        for (lines, is_native) in [(i32::MAX as usize / LINE, true), (i32::MAX as usize / LINE + 1, false)] {
            program.layout.lines = lines;
            let native = Native::compile(&program.compiled, &program.layout, level);
            assert_eq!(native.is_some(), is_native, "{lines} lines");
        }
    }
}
