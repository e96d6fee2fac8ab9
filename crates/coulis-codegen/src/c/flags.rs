//! Bytes that are only asked whether they are zero, for machines whose words hold several elements.
//!
//! An element that is a bool, or a byte that is compared with 0, chooses between 0 and 1 or all ones: flags and counts. A
//! condition of its own for each byte is a register of which threads have few, so the choice is made of the word: the highest
//! bit of each byte says whether it is zero, three operations for all of them, and one more repeats it over a register. Words
//! of bools that are copied are not taken apart either.

use coulis_ir::{BinaryOp, Buffer, DType, Expr, Node};

use crate::EmitError;
use crate::c::Walker;
use crate::c::code::{Code, Prec};
use crate::c::helper::{Helper, Needs as _};
use crate::c::lanes::{contiguous, is_byte, unconditional};
use crate::c::types::CTy;
use crate::dialect::Word;

/// A vector that is one number where a byte is not zero, and 0 where it is.
pub(super) struct Choice {
    expr: Expr,
    /// The load of the bytes.
    pub(super) element: Expr,
    /// Whether the number is 1; else it is -1.
    is_one: bool,
}

/// Those in a value that are evaluated whatever happens.
pub(super) fn choices(value: &Expr) -> Vec<Choice> {
    let mut found = Vec::new();
    unconditional(value, &mut |e| found.extend(Choice::of(e)));
    found
}

impl Choice {
    fn of(expr: &Expr) -> Option<Choice> {
        let choice = |element: &Expr, is_one| Choice { expr: expr.clone(), element: element.clone(), is_one };
        let dtype = expr.dtype();
        if dtype == DType::Bool || !dtype.is_int() {
            return None;
        }
        match expr.node() {
            Node::Cast(of) if of.dtype() == DType::Bool => Some(choice(load_of_bytes(of)?, true)),
            Node::Select(condition, set, otherwise) => {
                let is_one = match (constant(set)?, constant(otherwise)?) {
                    (1, 0) => true,
                    (-1, 0) => false,
                    _ => return None,
                };
                Some(choice(non_zero(condition)?, is_one))
            }
            _ => None,
        }
    }
}

/// The load of bytes of which a condition asks whether they are not zero.
fn non_zero(condition: &Expr) -> Option<&Expr> {
    match condition.node() {
        Node::Load(..) if condition.dtype() == DType::Bool => load_of_bytes(condition),
        Node::Binary(BinaryOp::Ne, x, zero) if constant(zero) == Some(0) => match x.node() {
            // No number of a byte becomes zero in another type.
            Node::Cast(of) => load_of_bytes(of),
            _ => load_of_bytes(x),
        },
        _ => None,
    }
}

fn load_of_bytes(expr: &Expr) -> Option<&Expr> {
    let is_load = matches!(expr.node(), Node::Load(..));
    (is_load && (is_byte(expr.dtype()) || expr.dtype() == DType::Bool)).then_some(expr)
}

/// The integer in all lanes.
fn constant(expr: &Expr) -> Option<i128> {
    match expr.node() {
        Node::Broadcast(of) => of.as_int(),
        _ => expr.as_int(),
    }
}

impl Walker<'_> {
    /// Remembers a lane of a choice by an element of a word.
    pub(super) fn choose(
        &mut self,
        choice: &Choice,
        lane: u32,
        word: Word,
        name: &str,
        element: u32,
    ) -> Result<(), EmitError> {
        let per_field = word.field.bytes();
        if per_field != 4 {
            return Ok(());
        }
        let mask = self.defs.helper(Helper::NonZero(element % per_field))?;
        let mask = Code::call(&mask, &[&word.part(name, element / per_field)]);
        let code = match choice.is_one {
            true => Code { text: format!("-{}", mask.text), prec: Prec::Unary },
            false => mask,
        };
        let ty = CTy::carrier(choice.expr.dtype());
        let code = if ty.bytes() == 8 || !ty.is_signed() { self.cast(ty, &code) } else { code };
        let scalar = self.lane(&choice.expr, lane);
        self.remember(scalar, ty, code);
        Ok(())
    }

    /// Copies bools by words, each byte made 0 or 1; whether that is what the store does.
    pub(super) fn copy_flags(&mut self, buffer: &Buffer, at: &Expr, value: &Expr) -> Result<bool, EmitError> {
        let Node::Load(source, indices) = value.node() else { return Ok(false) };
        let ([from], [DType::Bool, DType::Bool]) = (indices.as_slice(), [source.dtype, buffer.dtype]) else {
            return Ok(false);
        };
        let (Some(from), Some(to)) = (contiguous(from), contiguous(at)) else { return Ok(false) };
        let words = (self.word(source, &from, at.lanes()), self.word(buffer, &to, at.lanes()));
        let (Some((word, width)), Some((_, wide))) = words else { return Ok(false) };
        // Lanes that overlap are copied one after another.
        if width != wide || word.field.bytes() != 4 || source.data == buffer.data {
            return Ok(false);
        }
        let ones = self.defs.helper(Helper::Ones)?;
        for first in (0..at.lanes()).step_by(width as usize) {
            let read = self.word_read(source, &from, first, word)?;
            let name = self.namer.fresh(&format!("{}_word", source.name));
            self.f.lines.statement(format_args!("{} {name} = {read}", word.name));
            let fields: Vec<String> =
                (0..word.fields).map(|field| Code::call(&ones, &[&word.part(&name, field)]).text).collect();
            let made = match word.fields {
                1 => fields.join(""),
                _ => format!("{}({})", word.make, fields.join(", ")),
            };
            let address = self.word_address(buffer, &to, first, word)?;
            self.f.lines.statement(format_args!("{address} = {made}"));
        }
        Ok(true)
    }
}
