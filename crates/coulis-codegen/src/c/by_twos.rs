//! 8-bit floats on GPUs, which convert them two at a time: a pair is named once, and its halves are the elements.

use coulis_ir::{Buffer, DType, Expr, MemScope};

use crate::EmitError;
use crate::c::Walker;
use crate::c::code::{Code, Prec};
use crate::c::helper::{Helper, Needs as _};
use crate::c::lanes::unrounded;
use crate::c::scalar::is_storage_float;
use crate::c::types::CTy;
use crate::dialect::Word;

/// Whether elements are floats of one byte.
pub(super) fn is_storage_byte(dtype: DType) -> bool {
    is_storage_float(dtype) && dtype.bytes() == 1
}

impl Walker<'_> {
    /// All elements of a word, widened to their carrier.
    pub(super) fn unpacked_all(
        &mut self,
        dtype: DType,
        word: Word,
        name: &str,
        width: u32,
    ) -> Result<Vec<Code>, EmitError> {
        if !is_storage_byte(dtype) || width % 2 == 1 {
            return (0..width).map(|element| self.unpacked(dtype, word, name, element)).collect();
        }
        let mut codes = Vec::new();
        let per_field = word.field.bytes();
        for element in (0..width).step_by(2) {
            let field = word.part(name, element / per_field);
            let bits = self.shifted(&field, 8 * (element % per_field));
            codes.extend(self.two(dtype, name, bits)?);
        }
        Ok(codes)
    }

    /// Names neighbours that a load reads of a thread's own memory.
    pub(super) fn read_by_twos(&mut self, load: &Expr, buffer: &Buffer) -> Result<(), EmitError> {
        let is_own = buffer.scope == MemScope::Local && self.pair_word(DType::F32).is_some();
        if !is_own || !is_storage_byte(buffer.dtype) || load.lanes() % 2 == 1 {
            return Ok(());
        }
        for lane in (0..load.lanes()).step_by(2) {
            let mut bits = Vec::new();
            for lane in [lane, lane + 1] {
                let scalar = self.lane(load, lane);
                let code = self.code(&scalar)?;
                let byte = self.bits(buffer.dtype, &code)?;
                bits.push(self.cast(CTy::U32, &byte));
            }
            let high = self.style().infix("<<", Prec::Shift, &bits[1], &Code::primary("8"));
            let both = self.style().infix("|", Prec::BitOr, &bits[0], &high);
            for (lane, code) in (lane..).zip(self.two(buffer.dtype, &buffer.name, both)?) {
                let scalar = self.lane(load, lane);
                self.remember(scalar, CTy::F32, code);
            }
        }
        Ok(())
    }

    /// The two values of the lowest bytes, under a name.
    fn two(&mut self, dtype: DType, of: &str, bits: Code) -> Result<[Code; 2], EmitError> {
        let Some(pair) = self.pair_word(DType::F32) else {
            return Err(self.bad_shape("a pair", "no word of two"));
        };
        let widened = Code::call(&self.defs.helper(Helper::WidenAll(dtype, 2))?, &[&bits]);
        let name = self.namer.fresh(&format!("{of}_pair"));
        self.f.lines.statement(format_args!("{} {name} = {}", pair.name, widened.text));
        let halves = [pair.part(&name, 0), pair.part(&name, 1)];
        self.f.pairs.insert(name, bits);
        Ok(halves)
    }

    /// The bits of half of a pair that was only widened.
    pub(super) fn bits_of_one(&self, code: &Code) -> Option<Code> {
        let (name, half) = code.text.rsplit_once('.')?;
        let bits = self.f.pairs.get(name)?;
        let byte = self.shifted(bits, if half == "x" { 0 } else { 8 });
        Some(self.cast(CTy::U8, &byte))
    }

    /// Two values as they stand in memory, in the lowest bytes of 32 bits: those of one pair that was only widened as they were.
    pub(super) fn bits_of_two(&mut self, dtype: DType, a: &Code, b: &Code) -> Result<Code, EmitError> {
        if let (Some(pair), Some(other)) = (a.text.strip_suffix(".x"), b.text.strip_suffix(".y"))
            && pair == other
            && let Some(bits) = self.f.pairs.get(pair)
        {
            return Ok(self.style().infix("&", Prec::BitAnd, bits, &Code::primary("0xffff")));
        }
        let narrow = self.defs.helper(Helper::NarrowAll(dtype, 2))?;
        Ok(Code::call(&narrow, &[&unrounded(dtype, a), &unrounded(dtype, b)]))
    }

    fn shifted(&self, bits: &Code, by: u32) -> Code {
        match by {
            0 => bits.clone(),
            _ => self.style().infix(">>", Prec::Shift, bits, &Code::primary(by.to_string())),
        }
    }
}
