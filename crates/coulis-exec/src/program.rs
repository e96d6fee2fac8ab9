//! A compiled kernel and how a run is set up.

use std::sync::{Mutex, PoisonError};

use coulis_ir::args::{Bindings, compact_strides, eval_index, reach};
use coulis_ir::{Checked, Target};

use crate::code::{BaseInfo, Input, Origin, slot_of_int};
use crate::compile::{Compiled, compile};
use crate::error::ExecError;
use crate::frame::{BaseAt, Frame};
use crate::level::Level;
use crate::pool::{Pace, Pool};
use crate::registers::{Layout, lay_out};

/// A kernel as bytecode. It can be run from several threads at a time.
pub struct Program {
    pub(crate) name: String,
    pub(crate) compiled: Compiled,
    pub(crate) layout: Layout,
    #[cfg(target_arch = "x86_64")]
    pub(crate) native: Option<crate::native::Native>,
    frames: Mutex<Vec<Frame>>,
    /// How long its parallel loops take.
    pub(crate) pace: Pace,
}

impl Program {
    /// Compiles a kernel for this machine.
    pub fn compile(kernel: &Checked) -> Result<Program, ExecError> {
        Program::compile_for(kernel, Level::detect())
    }

    /// Compiles a kernel for one level of instructions, which this machine must have. All levels give the same bits, any NaN
    /// being one.
    pub fn compile_for(kernel: &Checked, level: Level) -> Result<Program, ExecError> {
        let program = Program::interpreted(kernel, level)?;
        #[cfg(target_arch = "x86_64")]
        if crate::native::is_available(level) {
            let native = crate::native::Native::compile(&program.compiled, &program.layout, level);
            return Ok(Program { native, ..program });
        }
        Ok(program)
    }

    /// Compiles a kernel for the interpreter alone, as where native code cannot be had. It gives the same bits, any NaN
    /// being one.
    pub fn interpreted(kernel: &Checked, level: Level) -> Result<Program, ExecError> {
        if !level.is_available() {
            return Err(ExecError::Level { level: level.name() });
        }
        let mut compiled = compile(kernel, level)?;
        crate::neighbours::bring_together(&mut compiled);
        let layout = lay_out(&compiled.code, &compiled.ptrs, &compiled.bases, &mut compiled.parallels);
        let name = kernel.kernel().name.clone();
        Ok(Program {
            name,
            compiled,
            layout,
            #[cfg(target_arch = "x86_64")]
            native: None,
            frames: Mutex::new(Vec::new()),
            pace: Pace::new(),
        })
    }

    /// Runs the kernel once, its parallel loops on the threads of `pool`.
    ///
    /// `bindings` give the free variables of the parameters, as [`coulis_ir::args::bind_args`] makes them.
    /// `buffers` hold one pointer for each buffer parameter, to its element `[0, ..., 0]`. Accesses outside of
    /// the declared shapes and strides are errors.
    ///
    /// # Safety
    /// Each pointer is valid for reads of all elements of the buffer's declared type, shape and strides under
    /// `bindings`, and for writes where the kernel stores to it; no other thread writes to what is read or touches
    /// what is written during the call; and buffers that are written do not overlap other buffers.
    pub unsafe fn run(&self, bindings: &Bindings, buffers: &[*mut u8], pool: &Pool) -> Result<(), ExecError> {
        let mut frame = self.take_frame();
        let result = self.prepare(&mut frame, bindings, buffers).and_then(|()| {
            // SAFETY: the frame is prepared, and the caller answers for the buffers.
            unsafe { self.execute(&mut frame, pool) }
        });
        self.give_back(frame);
        result
    }

    pub(crate) fn take_frame(&self) -> Frame {
        let kept = self.frames.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.unwrap_or_else(|| Frame::new(self))
    }

    pub(crate) fn give_back(&self, mut frame: Frame) {
        frame.clear();
        self.frames.lock().unwrap_or_else(PoisonError::into_inner).push(frame);
    }

    fn prepare(&self, frame: &mut Frame, bindings: &Bindings, buffers: &[*mut u8]) -> Result<(), ExecError> {
        let is_argument = |b: &&BaseInfo| matches!(b.origin, Origin::Argument { .. });
        let wanted = self.compiled.bases.iter().filter(is_argument).count();
        if buffers.len() != wanted {
            return Err(ExecError::BufferCount { kernel: self.name.clone(), wanted, found: buffers.len() });
        }
        frame.reset(self);
        for input in &self.compiled.inputs {
            let Input { var, name, dtype, slot } = input;
            let value = bindings.get(var).ok_or_else(|| ExecError::UnboundVar { var: name.clone() })?;
            frame.slots[*slot as usize] = slot_of_int(dtype.wrap_int(i128::from(*value)), dtype.bytes());
        }
        for (info, base) in self.compiled.bases.iter().zip(frame.bases.iter_mut()) {
            if let Origin::Argument { n, .. } = info.origin {
                *base = argument(info, buffers[n], bindings)?;
            }
        }
        Ok(())
    }
}

/// Element `[0, ..., 0]` of an argument and the elements that its shape and strides reach.
fn argument(info: &BaseInfo, ptr: *mut u8, bindings: &Bindings) -> Result<BaseAt, ExecError> {
    let Origin::Argument { shape, strides, .. } = &info.origin else {
        return Ok(BaseAt { ptr, lo: 0, hi: 0 });
    };
    let eval = |e| eval_index(e, bindings).map_err(|var| ExecError::UnboundVar { var });
    let bytes = info.dtype.bytes();
    if !ptr.addr().is_multiple_of(bytes) {
        return Err(ExecError::Misaligned { buffer: info.name.clone(), bytes });
    }
    let shape: Vec<i64> = shape.iter().map(eval).collect::<Result<_, _>>()?;
    let strides: Vec<i64> = if strides.is_empty() {
        compact_strides(&shape)
    } else {
        strides.iter().map(eval).collect::<Result<_, _>>()?
    };
    if shape.iter().any(|&extent| extent <= 0) {
        return Ok(BaseAt { ptr, lo: 0, hi: 0 });
    }
    let (least, most) = (i128::from(i64::MIN), i128::from(i64::MAX));
    let (lo, hi) = reach(&shape, &strides).unwrap_or((least, most));
    Ok(BaseAt { ptr, lo: lo.max(least) as i64, hi: hi.saturating_add(1).min(most) as i64 })
}

/// Whether programs of that level become native code on this machine, so that vectors and registers are those of the
/// processor.
pub fn is_native(level: Level) -> bool {
    #[cfg(target_arch = "x86_64")]
    return crate::native::is_available(level);
    #[cfg(not(target_arch = "x86_64"))]
    {
        let _ = level;
        false
    }
}

/// Facts about the interpreter as a target of the planner: vectors of 4096 bytes, since each vector operation is one
/// interpreted instruction, and registers that are first-level cache.
pub fn target(n_threads: usize) -> Target {
    let n_threads = n_threads.clamp(1, u32::MAX as usize) as u32;
    Target {
        arch: "exec".to_owned(),
        vectors_are_registers: false,
        register_bytes: 24 << 10,
        first_cache_bytes: 0,
        widens_from_memory: false,
        ..Target::cpu(4096, n_threads)
    }
}
