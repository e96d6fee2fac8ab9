//! Atoms and barriers.

use coulis_ir::atom::{AtomCall, Element, Signature};
use coulis_ir::{Atom, Buffer, SyncKind};

use crate::EmitError;
use crate::c::Walker;
use crate::c::code::Code;
use crate::dialect::GpuDialect;

impl Walker<'_> {
    pub(super) fn atom(&mut self, call: &AtomCall) -> Result<(), EmitError> {
        if call.atom.is_hint() {
            return call.memory.iter().try_for_each(|place| self.prefetch(call.atom, place));
        }
        let gpu = self.gpu(&format!("`T.{}`", call.atom.name()))?;
        self.check_mask(gpu, call)?;
        let mut args = Vec::new();
        for (position, arg) in call.args.iter().enumerate() {
            // The lanes of a shuffle are indices, its value is not; so is the number of a block.
            let is_index = match call.atom.signature() {
                Signature::Shuffle => position >= 2,
                Signature::Remote => true,
                Signature::Mask
                | Signature::Ballot
                | Signature::Vote
                | Signature::Redux
                | Signature::Update
                | Signature::Exchange
                | Signature::Fence
                | Signature::Hint => false,
            };
            args.push(if is_index { self.place(arg)? } else { self.code(arg)? });
        }
        let address = match &call.memory {
            Some(element) => {
                let (buffer, at) = self.element_of(element)?;
                Some(Code::primary(format!("&{}[{}]", self.base(&buffer)?, at.text)))
            }
            None => None,
        };
        let moved = call.memory.as_ref().map(|element| element.buffer.dtype);
        let dtype = moved.or_else(|| call.args.get(1).map(|value| value.dtype()));
        let dtype = dtype.unwrap_or(coulis_ir::DType::U32);
        let value = gpu.atom(call.atom, dtype, address.as_ref(), &args, &mut self.defs)?;
        match &call.dst {
            Some(element) => {
                let (buffer, at) = self.element_of(element)?;
                self.store_element(&buffer, &at, &value)?;
            }
            None => self.f.lines.statement(&value.text),
        }
        // Other threads may have written since memory was read.
        self.forget_all_memory();
        Ok(())
    }

    /// Masks have one bit a lane of the machine's warps.
    fn check_mask(&self, gpu: &dyn GpuDialect, call: &AtomCall) -> Result<(), EmitError> {
        let mask = match call.atom.signature() {
            Signature::Shuffle | Signature::Ballot | Signature::Vote | Signature::Redux => {
                call.args.first().map(|mask| mask.dtype())
            }
            Signature::Mask => call.dst.as_ref().map(|dst| dst.buffer.dtype),
            Signature::Update
            | Signature::Exchange
            | Signature::Remote
            | Signature::Fence
            | Signature::Hint => None,
        };
        match mask {
            Some(found) if found != gpu.mask() => {
                Err(self.unsupported(format!("`T.{}` with a mask of {found}", call.atom.name())))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn barrier(&mut self, kind: SyncKind) -> Result<(), EmitError> {
        let text = self.gpu("barriers")?.barrier(kind)?;
        self.f.lines.statement(&text);
        self.forget_all_memory();
        Ok(())
    }

    /// The hint that a place will be read, where the dialect has one.
    fn prefetch(&mut self, hint: Atom, place: &Element) -> Result<(), EmitError> {
        let (buffer, at) = self.element_of(place)?;
        let address = self.address(&buffer, &at)?;
        if let Some(hint) = self.dialect.prefetch(hint, &address.text) {
            self.f.lines.statement(&hint);
        }
        Ok(())
    }

    fn element_of(&mut self, element: &Element) -> Result<(Buffer, Code), EmitError> {
        let [at] = element.indices.as_slice() else {
            return Err(self.bad_shape("an element", format!("{} indices", element.indices.len())));
        };
        Ok((element.buffer.clone(), self.place(at)?))
    }
}
