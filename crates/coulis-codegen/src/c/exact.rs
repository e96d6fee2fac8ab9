//! Sums of which one operand is a product that is exact: an operation fewer.
//!
//! An element of 16 bits times a power of two from `2^-16` to 1 is a `float32`: its least digit is `2^-133` at
//! least, and that of a `float32` `2^-149`. A product of two `float16` is one too: it has 22 digits, the least of them
//! `2^-48`. A product of two `float32` is a `float64`, with 48 digits, the least of them `2^-298`. So adding such a product
//! gives the same bits whether it is rounded before or not, and a machine that multiplies and adds in one operation may, under
//! contract N15 too. It is how runs of `bfloat16` keep a sixteenth of their sum for no more than the sum.

use coulis_ir::{BinaryOp, DType, Expr, Intrinsic, Node};

use crate::EmitError;
use crate::c::Walker;
use crate::c::code::{Code, Prec};
use crate::c::helper::{Helper, Needs as _};
use crate::c::types::{CTy, VTy};
use crate::c::value::{Part, Parts, Val};

/// The least factor that leaves every digit of an element of 16 bits in a `float32`.
const LEAST_FACTOR: f64 = 1.0 / 65536.0;

impl Walker<'_> {
    /// A sum or difference of vectors one of which is an exact product, if it is one.
    pub(super) fn sum_of_exact(
        &mut self,
        op: BinaryOp,
        a: &Expr,
        b: &Expr,
    ) -> Result<Option<Val>, EmitError> {
        let Some(Exact { factors: [x, factor], other, is_negated }) = Exact::of(op, a, b) else {
            return Ok(None);
        };
        let (element, factor, other) = (self.named(x)?, self.value(factor)?, self.value(other)?);
        if [&factor, &other].iter().any(|v| v.parts.len() != element.parts.len()) {
            return Ok(None);
        }
        let mut sum = Val { ty: element.ty, parts: Parts::new(), uniform: None };
        for ((x, by), other) in element.parts.iter().zip(&factor.parts).zip(&other.parts) {
            let add = self.defs.helper(Helper::AddExact(element.part_ty(x)))?;
            let other = if is_negated { negative(&other.code) } else { other.code.clone() };
            sum.parts.push(Part { lanes: x.lanes, code: Code::call(&add, &[&x.code, &by.code, &other]) });
        }
        Ok(Some(sum))
    }

    /// The same of scalars, for machines that always multiply and add in one operation.
    pub(super) fn scalar_sum_of_exact(
        &mut self,
        op: BinaryOp,
        a: &Expr,
        b: &Expr,
    ) -> Result<Option<Code>, EmitError> {
        let Some(Exact { factors: [x, factor], other, is_negated }) = Exact::of(op, a, b) else {
            return Ok(None);
        };
        let ty = CTy::carrier(other.dtype());
        let (x, factor, other) = (self.code(x)?, self.code(factor)?, self.code(other)?);
        let other = if is_negated { negative(&other) } else { other };
        let name = self.defs.helper(Helper::Math(Intrinsic::Fma, VTy::scalar(ty)))?;
        Ok(Some(Code::call(&name, &[&x, &factor, &other])))
    }

    /// A value under a name, since the product is likely to be used once more.
    fn named(&mut self, expr: &Expr) -> Result<Val, EmitError> {
        if self.f.inline > 0 || self.known(expr).is_some() {
            return self.value(expr);
        }
        let val = self.value(expr)?;
        let named = self.declare_val(&val);
        if let Some(table) = self.f.memo.last_mut() {
            table.insert(expr.clone(), named.clone());
        }
        Ok(named)
    }
}

/// Whether a sum or difference is written as one operation for an exact product in it.
pub fn is_of_exact(op: BinaryOp, a: &Expr, b: &Expr) -> bool {
    Exact::of(op, a, b).is_some()
}

fn negative(code: &Code) -> Code {
    Code { text: format!("-{}", code.at(Prec::Unary)), prec: Prec::Unary }
}

/// A sum of an exact product and something else, or of the negative of that.
struct Exact<'e> {
    factors: [&'e Expr; 2],
    other: &'e Expr,
    is_negated: bool,
}

impl Exact<'_> {
    fn of<'e>(op: BinaryOp, a: &'e Expr, b: &'e Expr) -> Option<Exact<'e>> {
        let (factors, other, is_negated) = match (op, exact_product(a), exact_product(b)) {
            (BinaryOp::Add, Some(factors), _) => (factors, b, false),
            (BinaryOp::Add, None, Some(factors)) => (factors, a, false),
            (BinaryOp::Sub, Some(factors), _) => (factors, b, true),
            _ => return None,
        };
        Some(Exact { factors, other, is_negated })
    }
}

/// The factors of a product of two widened `float16` or, in `float64`, of two widened floats of at most 32 bits, or of an element of
/// 16 bits, widened, and a power of two.
fn exact_product(expr: &Expr) -> Option<[&Expr; 2]> {
    let Node::Binary(BinaryOp::Mul, x, factor) = expr.node() else { return None };
    let is_short = |e: &Expr| {
        let Node::Cast(element) = e.node() else { return false };
        match expr.dtype() {
            DType::F32 => element.dtype() == DType::F16,
            DType::F64 => element.dtype().is_float() && element.dtype().bytes() <= 4,
            _ => false,
        }
    };
    if is_short(x) && is_short(factor) {
        return Some([x, factor]);
    }
    let Node::Cast(element) = x.node() else { return None };
    let by = match factor.node() {
        Node::Broadcast(by) => by.as_float()?,
        _ => factor.as_float()?,
    };
    let is_power = by.to_bits() << 12 == 0 && (LEAST_FACTOR..=1.0).contains(&by);
    let is_short = matches!(element.dtype(), DType::F16 | DType::BF16);
    (is_short && expr.dtype() == DType::F32 && is_power).then_some([x, factor])
}
