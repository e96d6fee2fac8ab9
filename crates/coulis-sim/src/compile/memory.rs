//! Loads and stores.

use coulis_ir::{BinaryOp, Buffer, DType, Expr};

use super::{Compiler, Place};
use crate::code::{Instr, Operand, Source};
use crate::error::SimError;

impl<'k, const W: usize> Compiler<'k, '_, W> {
    fn place(&self, buffer: &Buffer) -> Result<Place, SimError> {
        let found = self.places.get(&buffer.data.id()).copied();
        let (place, dtype) = found.ok_or_else(|| SimError::Undeclared { name: buffer.name.clone() })?;
        if dtype != buffer.dtype {
            let buffer_name = buffer.name.clone();
            return Err(SimError::AliasType { buffer: buffer_name, wanted: dtype, found: buffer.dtype });
        }
        Ok(place)
    }

    /// The index of each vector lane, as a 64-bit integer.
    pub(super) fn index(&mut self, buffer: &Buffer, indices: &[Expr]) -> Result<Vec<Operand>, SimError> {
        match indices {
            [index] => self.expr(index),
            _ => Err(SimError::UnsupportedOp {
                op: format!("access of `{}` with {} indices", buffer.name, indices.len()),
                ty: coulis_ir::Ty::scalar(DType::I64),
            }),
        }
    }

    /// The slot of a constant index that is inside the array.
    fn slot(&self, array: u32, at: Operand) -> Option<u32> {
        let info = &self.code.arrays[array as usize];
        let index = self.constant_value(at)?;
        (index < u64::from(info.len)).then(|| info.first + index as u32)
    }

    pub(super) fn load(&mut self, buffer: &Buffer, at: &[Operand]) -> Result<Vec<Operand>, SimError> {
        let taken = self.taken(at.len())?;
        match self.place(buffer)? {
            Place::Region(region) => {
                let d = self.new_registers(at.len() as u32);
                let (at, taken) = (self.span(at), self.span(&taken));
                self.emit(Instr::Load { d, region, at, taken });
                Ok((d..d + at.len).map(Operand::register).collect())
            }
            Place::Local(array) => Ok(at
                .iter()
                .zip(taken)
                .map(|(at, taken)| match self.slot(array, *at) {
                    Some(slot) => {
                        self.emit(Instr::Written { array, slot, taken });
                        Operand::slot(slot)
                    }
                    None => {
                        let d = self.new_registers(1);
                        self.emit(Instr::LoadLocal { d, array, at: *at, taken });
                        Operand::register(d)
                    }
                })
                .collect()),
        }
    }

    /// For each of so many lanes, whether the choices around take what is read there.
    pub(super) fn taken(&mut self, lanes: usize) -> Result<Vec<Operand>, SimError> {
        let taken = self.taken.clone();
        let any = match taken.as_slice() {
            [] => self.constant(1),
            [first, rest @ ..] if taken.len() != lanes => {
                rest.iter().try_fold(*first, |any, one| self.binary(BinaryOp::Or, DType::Bool, any, *one))?
            }
            _ => return Ok(taken),
        };
        Ok(vec![any; lanes])
    }

    pub(super) fn store(
        &mut self,
        buffer: &Buffer,
        at: &[Operand],
        from: &[Operand],
    ) -> Result<(), SimError> {
        match self.place(buffer)? {
            Place::Region(region) => {
                let (at, from) = (self.span(at), self.span(from));
                self.emit(Instr::Store { region, at, from });
            }
            Place::Local(array) => {
                // All values are read before one is written.
                let mut kept = from.to_vec();
                if at.len() > 1 {
                    for value in kept.iter_mut().filter(|v| matches!(v.source(), Source::Slot(_))) {
                        let d = self.new_registers(1);
                        self.emit(Instr::Copy { d, a: *value });
                        *value = Operand::register(d);
                    }
                }
                for (at, a) in at.iter().zip(kept) {
                    match self.slot(array, *at) {
                        Some(slot) => self.emit(Instr::StoreSlot { slot, a }),
                        None => self.emit(Instr::StoreLocal { array, at: *at, a }),
                    }
                }
            }
        }
        Ok(())
    }

    /// The region of memory that several threads see.
    pub(super) fn region(&self, buffer: &Buffer) -> Result<u32, SimError> {
        match self.place(buffer)? {
            Place::Region(region) => Ok(region),
            Place::Local(_) => {
                let (buffer, scope) = (buffer.name.clone(), buffer.scope.name());
                Err(SimError::Scope { buffer, scope })
            }
        }
    }
}
