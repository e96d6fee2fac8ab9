//! What a fold and a map read of the arrays of a call.

use coulis_ir::Expr;
use coulis_tensor::Tensor;

use crate::one_piece::Part;
use crate::program::constant;

/// So many further; as it is where that is no further.
pub(crate) fn behind(at: &Expr, offset: i64) -> Expr {
    match at.as_int() {
        _ if offset == 0 => at.clone(),
        Some(known) => constant(known as i64 + offset),
        None => at.clone() + constant(offset),
    }
}

/// What a fold and a map read.
pub(crate) struct Elements<'a> {
    /// One a value of an element.
    pub tensors: &'a [Tensor],
    /// Elements in each row of these that are before the first.
    pub offsets: &'a [i64],
    /// Which elements take part.
    pub mask: Option<&'a Tensor>,
    /// The dimensions of each of these, and then of the mask, in their order.
    pub of: &'a [Vec<usize>],
    /// What the innermost of them is to each, and then to the mask; nothing where it is one to all.
    pub parts: &'a [Vec<Part>],
}

impl Elements<'_> {
    /// One element, by its index in each dimension of the problem.
    pub fn at(&self, index: &[Expr]) -> Vec<Expr> {
        let at = |(array, (tensor, offset)): (usize, (&Tensor, &i64))| {
            let mut own = self.place(array, index);
            if let Some(in_row) = own.last_mut() {
                *in_row = behind(in_row, *offset);
            }
            tensor.at(own)
        };
        self.tensors.iter().zip(self.offsets).enumerate().map(at).collect()
    }

    /// Whether one element takes part, where a mask says so.
    pub fn takes_part(&self, index: &[Expr]) -> Option<Expr> {
        self.mask.map(|mask| mask.at(self.place(self.tensors.len(), index)))
    }

    /// Where one element is in an array, in whose dimensions the innermost one may be several.
    fn place(&self, array: usize, index: &[Expr]) -> Vec<Expr> {
        let mut own: Vec<Expr> = self.of[array].iter().map(|&d| index[d].clone()).collect();
        if let Some(parts) = self.parts.get(array).filter(|parts| !parts.is_empty())
            && let Some(step) = own.pop()
        {
            let part = |part: &Part| {
                let turn =
                    if part.every == 1 { step.clone() } else { step.clone().floordiv(constant(part.every)) };
                turn.floormod(constant(part.extent))
            };
            own.extend(parts.iter().map(part));
        }
        own
    }
}
