//! Vectors of integers that are known.

use coulis_ir::DType;

use crate::c::Walker;
use crate::c::code::{Code, Prec};
use crate::c::helper::Needs as _;
use crate::c::scalar::int_literal;
use crate::c::types::{CTy, VTy, part_lanes};
use crate::c::value::{Part, Parts, Val};

impl Walker<'_> {
    /// Integers that are known, as a list.
    pub(super) fn known_integers(&mut self, lanes: &[i128], dtype: DType) -> Val {
        let ty = CTy::carrier(dtype);
        let mut parts = Parts::new();
        let mut first = 0;
        for n in part_lanes(lanes.len() as u32, ty.bytes(), self.options.vector_bytes) {
            let name = self.defs.ty(VTy::vector(ty, n));
            let of = &lanes[first..first + n as usize];
            let list: Vec<String> = of.iter().map(|value| int_literal(*value, dtype).text).collect();
            let code = Code { text: format!("({name}){{{}}}", list.join(", ")), prec: Prec::Unary };
            parts.push(Part { lanes: n, code });
            first += n as usize;
        }
        Val { ty, parts, uniform: None }
    }
}
