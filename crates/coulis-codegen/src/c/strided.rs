//! Loads of elements that do not lie next to each other.
//!
//! Those that lie a few apart, either way, are read as the vectors of neighbours that have them, and a shuffle brings them
//! together; others are read one by one.

use coulis_ir::{Buffer, DType, Expr};

use crate::EmitError;
use crate::c::code::{Code, Prec};
use crate::c::helper::{Helper, Needs as _};
use crate::c::scalar::is_storage_float;
use crate::c::types::{CTy, VTy};
use crate::c::value::{Part, Parts, Val};
use crate::c::vector::offset;
use crate::c::{Walker, index};

impl Walker<'_> {
    /// The elements at `base + i * stride` for all lanes `i`, in parts of so many lanes.
    pub(super) fn load_strided(
        &mut self,
        buffer: &Buffer,
        (base, stride): (&Code, &Expr),
        at: &Expr,
        ty: CTy,
        widths: &[u32],
    ) -> Result<Val, EmitError> {
        let step = index::constant(stride);
        if let Some(step) = step.filter(|step| widths.iter().all(|n| is_near(*n, *step))) {
            let (mut parts, mut first) = (Parts::new(), 0);
            for &n in widths {
                let address = self.address(buffer, &further(base, step * i64::from(first)))?;
                let name = self.defs.helper(Helper::LoadEvery(buffer.dtype, n, step as i32))?;
                parts.push(Part { lanes: n, code: Code::call(&name, &[&address]) });
                first += n;
            }
            return Ok(Val { ty, parts, uniform: None });
        }
        let stride = self.code(stride)?;
        let stride = self.simple(CTy::carrier(at.dtype()), stride);
        let places = strided(base, &stride, step, at.lanes());
        self.collect(buffer, &places, ty, widths)
    }

    /// The elements at any indices.
    pub(super) fn gather(
        &mut self,
        buffer: &Buffer,
        at: &Expr,
        ty: CTy,
        widths: &[u32],
    ) -> Result<Val, EmitError> {
        let places = self.lane_codes(at)?;
        self.collect(buffer, &places, ty, widths)
    }

    fn collect(
        &mut self,
        buffer: &Buffer,
        places: &[Code],
        ty: CTy,
        widths: &[u32],
    ) -> Result<Val, EmitError> {
        // Bits are collected before all are converted at once.
        let converts = is_storage_float(buffer.dtype);
        let element_ty = if converts { CTy::memory(buffer.dtype) } else { ty };
        let mut parts = Parts::new();
        let mut places = places.iter();
        for &n in widths {
            let mut elements = Vec::new();
            for place in places.by_ref().take(n as usize) {
                if converts {
                    let base = self.base(buffer)?;
                    elements.push([&*base, "[", &place.text, "]"].concat());
                    continue;
                }
                let element = self.element(buffer, place)?;
                elements.push(if buffer.dtype == DType::Bool {
                    format!("-(i8){}", element.text)
                } else {
                    element.text
                });
            }
            let name = self.defs.ty(VTy::vector(element_ty, n));
            let text = format!("({name}){{{}}}", elements.join(", "));
            let mut code = Code { text, prec: Prec::Unary };
            if converts {
                code = Code::call(&self.defs.helper(Helper::WidenAll(buffer.dtype, n))?, &[&code]);
            }
            parts.push(Part { lanes: n, code });
        }
        Ok(Val { ty, parts, uniform: None })
    }
}

/// Indices `base + i * stride`.
pub(super) fn strided(base: &Code, stride: &Code, step: Option<i64>, lanes: u32) -> Vec<Code> {
    (0..lanes)
        .map(|lane| match (step, lane) {
            (_, 0) => base.clone(),
            (Some(step), _) => further(base, step * i64::from(lane)),
            (None, 1) => Code::infix("+", Prec::Sum, base, stride),
            (None, _) => {
                let distance = Code::infix("*", Prec::Product, &Code::primary(lane.to_string()), stride);
                Code::infix("+", Prec::Sum, base, &distance)
            }
        })
        .collect()
}

/// `base + distance`.
fn further(base: &Code, distance: i64) -> Code {
    match u32::try_from(distance) {
        Ok(first) => offset(base, first),
        Err(_) => Code::infix("-", Prec::Sum, base, &Code::primary((-distance).to_string())),
    }
}

/// Whether so many elements that lie `step` apart are read in vectors of neighbours: no more of these than half of the
/// elements.
fn is_near(lanes: u32, step: i64) -> bool {
    lanes > 1 && step != 0 && 2 * step.abs() <= i64::from(lanes)
}
