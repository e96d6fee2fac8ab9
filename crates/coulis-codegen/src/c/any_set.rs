//! Flags in memory of which it is asked whether any is set.
//!
//! A compiler takes a vector that was just stored apart for that, element by element; machines have an instruction that asks all
//! lanes at once.

use coulis_ir::{BinaryOp, Buffer, Expr, Node};

use crate::EmitError;
use crate::c::code::Code;
use crate::c::helper::{Helper, Needs as _};
use crate::c::types::{CTy, VTy};
use crate::c::{Walker, index};

impl Walker<'_> {
    /// Whether `a` is not `b`, where that is to ask whether any of some neighbours in memory is set that fill a vector.
    pub(super) fn any_set(&mut self, op: BinaryOp, a: &Expr, b: &Expr) -> Result<Option<Code>, EmitError> {
        if op != BinaryOp::Ne || b.as_int() != Some(0) || !a.dtype().is_int() || self.by_lanes() {
            return Ok(None);
        }
        let mut flags = Vec::new();
        let Some((buffer, first)) = collect(a, &mut flags).then(|| neighbours(&flags)).flatten() else {
            return Ok(None);
        };
        let vector = VTy::vector(CTy::memory(buffer.dtype), flags.len() as u32);
        let is_one = matches!(vector.bytes(), 16 | 32) && vector.bytes() <= self.options.vector_bytes;
        if !is_one || !flags.len().is_power_of_two() || self.f.registers.contains_key(&buffer.data.id()) {
            return Ok(None);
        }
        let address = self.address(buffer, &Code::primary(first.to_string()))?;
        let name = self.defs.helper(Helper::AnySet(vector))?;
        Ok(Some(Code::call(&name, &[&address])))
    }
}

/// Adds the elements of which an expression is the bitwise or, in the order of the text; whether it is one of elements at constant
/// places alone.
fn collect<'e>(expr: &'e Expr, flags: &mut Vec<(&'e Buffer, i64)>) -> bool {
    match expr.node() {
        Node::Binary(BinaryOp::BitOr, a, b) => collect(a, flags) && collect(b, flags),
        Node::Load(buffer, indices) if expr.lanes() == 1 && buffer.dtype == expr.dtype() => {
            let at = indices.first().filter(|_| indices.len() == 1).and_then(index::constant);
            flags.extend(at.map(|at| (buffer, at)));
            at.is_some()
        }
        _ => false,
    }
}

/// The memory and the first place of elements that lie one after another.
fn neighbours<'e>(flags: &[(&'e Buffer, i64)]) -> Option<(&'e Buffer, i64)> {
    let (buffer, first) = *flags.first()?;
    let follows = |(i, (other, at)): (usize, &(&Buffer, i64))| {
        other.data == buffer.data && other.dtype == buffer.dtype && *at == first + i as i64
    };
    flags.iter().enumerate().all(follows).then_some((buffer, first))
}
