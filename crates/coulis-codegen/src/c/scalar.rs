//! Scalar expressions.

use std::rc::Rc;

use coulis_ir::visit::for_each_expr;
use coulis_ir::{BinaryOp, DType, Expr, Intrinsic, MemScope, Node};

use crate::EmitError;
use crate::c::code::{Code, Prec};
use crate::c::deps;
use crate::c::helper::{Division, Helper, Needs as _};
use crate::c::types::{CTy, VTy};
use crate::c::value::Val;
use crate::c::{Walker, index};

/// Conditionals with arms of at most this many nodes stay inside their expression.
const SMALL_ARM: usize = 12;

impl Walker<'_> {
    pub(super) fn scalar(&mut self, expr: &Expr) -> Result<Val, EmitError> {
        let ty = CTy::carrier(expr.dtype());
        let code = match expr.node() {
            Node::Int(value) => self.dialect.int_literal(*value, expr.dtype()),
            Node::Float(bits) => self.dialect.float_literal(f64::from_bits(*bits), ty),
            Node::Var(var) => {
                let bound = self.f.vars.get(&var.id()).cloned();
                return bound.ok_or_else(|| EmitError::Unbound { name: var.name().to_owned() });
            }
            Node::Binary(op, a, b) => self.scalar_binary(*op, a, b, expr)?,
            Node::Not(a) => {
                let a = self.code(a)?;
                Code { text: format!("!{}", a.at(Prec::Unary)), prec: Prec::Unary }
            }
            Node::Cast(a) => self.scalar_cast(a, expr.dtype())?,
            Node::Select(cond, a, b) => {
                let (cond, a, b) = (self.chosen(cond)?, self.code(a)?, self.code(b)?);
                self.style().conditional(&cond, &a, &b)
            }
            Node::IfThenElse(cond, a, b) => return self.if_then_else(cond, a, b),
            Node::Call(intrinsic, args) => self.scalar_call(*intrinsic, args)?,
            Node::Load(buffer, indices) => {
                let [at] = indices.as_slice() else {
                    return Err(self.bad_shape("a load", format!("{} indices", indices.len())));
                };
                return self.load_scalar(buffer, at);
            }
            Node::Ramp(a, _) | Node::Broadcast(a) => return self.value(a),
            Node::Let(var, value, body) => return self.let_in(var, value, body),
        };
        Ok(Val::scalar(ty, code))
    }

    /// `body` with the variable bound to the value; the value is evaluated once.
    pub(super) fn let_in(
        &mut self,
        var: &coulis_ir::Var,
        value: &Expr,
        body: &Expr,
    ) -> Result<Val, EmitError> {
        let val = self.value(value)?;
        let named = if self.f.inline == 0 { self.declare_val(&val) } else { val };
        self.forget_var(var);
        let outer = self.f.vars.insert(var.id(), named);
        let result = self.value(body)?;
        // Names that were made inside do not depend on what the variable is outside.
        let result = if self.f.inline == 0 { self.declare_val(&result) } else { result };
        self.forget_var(var);
        match outer {
            Some(outer) => self.f.vars.insert(var.id(), outer),
            None => self.f.vars.remove(&var.id()),
        };
        Ok(result)
    }

    fn scalar_binary(&mut self, op: BinaryOp, a: &Expr, b: &Expr, expr: &Expr) -> Result<Code, EmitError> {
        let dtype = a.dtype();
        let ty = CTy::carrier(dtype);
        if matches!(op, BinaryOp::And | BinaryOp::Or) && may_trap(b) && !self.by_lanes() {
            let (then, otherwise) = if op == BinaryOp::And {
                (b.clone(), Expr::bool(false))
            } else {
                (Expr::bool(true), b.clone())
            };
            return Ok(self.if_then_else(a, &then, &otherwise)?.into_code());
        }
        if self.by_lanes()
            && let Some(sum) = self.scalar_sum_of_exact(op, a, b)?
        {
            return Ok(sum);
        }
        if let Some(any) = self.any_set(op, a, b)? {
            return Ok(any);
        }
        let divisor = index::constant(b).filter(|c| *c > 0);
        let is_eager = self.f.eager > 0 && all_loads(b, &mut |e| is_own_register(e) || self.is_remembered(e));
        let (x, y) = if op.is_comparison() || (is_eager && matches!(op, BinaryOp::And | BinaryOp::Or)) {
            (self.place(a)?, self.place(b)?)
        } else if matches!(op, BinaryOp::And | BinaryOp::Or) {
            (self.place(a)?, self.lazily(b)?)
        } else {
            (self.code(a)?, self.code(b)?)
        };
        if matches!(op, BinaryOp::Shl | BinaryOp::Shr) && !self.is_below_width(b) {
            let name = self.defs.helper(Helper::Shift(op, VTy::scalar(ty)))?;
            return Ok(Code::call(&name, &[&x, &y]));
        }
        if self.is_opaque_product(expr, ty) {
            let name = self.defs.helper(Helper::OpaqueProduct(ty))?;
            return Ok(Code::call(&name, &[&x, &y]));
        }
        if self.needs_function(op, ty, expr) {
            let name = self.defs.helper(Helper::Wrap(op, ty))?;
            return Ok(Code::call(&name, &[&x, &y]));
        }
        let style = self.style();
        let name = self.dialect.type_name(ty);
        let infix = |op: &str, prec: Prec, x: &Code, y: &Code| style.infix(op, prec, x, y);
        let narrow =
            |code: Code| if !ty.is_float() && ty.bytes() < 4 { style.cast(name, &code) } else { code };
        let divides = matches!(op, BinaryOp::Div | BinaryOp::TruncMod);
        let is_plain_quotient = divides && (divisor.is_some() || self.is_natural_quotient(a, b));
        let helper = |walker: &mut Walker, helper: Helper| -> Result<Code, EmitError> {
            Ok(Code::call(&walker.defs.helper(helper)?, &[&x, &y]))
        };
        let scalar = VTy::scalar(ty);
        let divide = |walker: &mut Walker, division: Division| -> Result<Code, EmitError> {
            let name = walker.defs.helper(Helper::Divide(division, scalar))?;
            let status = Code::primary("status");
            let args: &[&Code] = if walker.by_lanes() { &[&x, &y] } else { &[&x, &y, &status] };
            Ok(Code::call(&name, args))
        };
        let code = match op {
            BinaryOp::Add => narrow(infix("+", Prec::Sum, &x, &y)),
            BinaryOp::Sub => narrow(infix("-", Prec::Sum, &x, &y)),
            BinaryOp::Mul => narrow(infix("*", Prec::Product, &x, &y)),
            BinaryOp::Div if ty.is_float() => infix("/", Prec::Product, &x, &y),
            BinaryOp::Div if is_plain_quotient => narrow(infix("/", Prec::Product, &x, &y)),
            BinaryOp::Div => divide(self, Division::Div)?,
            BinaryOp::TruncMod | BinaryOp::FloorDiv | BinaryOp::FloorMod if ty.is_float() => {
                return Err(self.unsupported(format!("{op:?} of floats")));
            }
            BinaryOp::TruncMod if is_plain_quotient => narrow(infix("%", Prec::Product, &x, &y)),
            BinaryOp::TruncMod => divide(self, Division::Mod)?,
            BinaryOp::FloorDiv | BinaryOp::FloorMod => {
                let division = if op == BinaryOp::FloorDiv { Division::FloorDiv } else { Division::FloorMod };
                match divisor {
                    Some(c) if c & (c - 1) == 0 && division == Division::FloorDiv => {
                        infix(">>", Prec::Shift, &x, &Code::primary(c.ilog2().to_string()))
                    }
                    Some(c) if c & (c - 1) == 0 => {
                        infix("&", Prec::BitAnd, &x, &Code::primary((c - 1).to_string()))
                    }
                    _ if self.is_natural_quotient(a, b) => {
                        let op = if division == Division::FloorDiv { "/" } else { "%" };
                        narrow(infix(op, Prec::Product, &x, &y))
                    }
                    _ => divide(self, division)?,
                }
            }
            BinaryOp::Min => helper(self, Helper::Min(scalar))?,
            BinaryOp::Max => helper(self, Helper::Max(scalar))?,
            BinaryOp::Eq => infix("==", Prec::Equality, &x, &y),
            BinaryOp::Ne => infix("!=", Prec::Equality, &x, &y),
            BinaryOp::Lt => infix("<", Prec::Relation, &x, &y),
            BinaryOp::Le => infix("<=", Prec::Relation, &x, &y),
            BinaryOp::Gt => infix(">", Prec::Relation, &x, &y),
            BinaryOp::Ge => infix(">=", Prec::Relation, &x, &y),
            BinaryOp::And if is_eager => infix("&", Prec::BitAnd, &x, &y),
            BinaryOp::Or if is_eager => infix("|", Prec::BitOr, &x, &y),
            BinaryOp::And => infix("&&", Prec::And, &x, &y),
            BinaryOp::Or => infix("||", Prec::Or, &x, &y),
            BinaryOp::BitAnd => infix("&", Prec::BitAnd, &x, &y),
            BinaryOp::BitOr => infix("|", Prec::BitOr, &x, &y),
            BinaryOp::BitXor => infix("^", Prec::BitXor, &x, &y),
            BinaryOp::Shl if self.by_lanes() && ty.bytes() >= 4 => infix("<<", Prec::Shift, &x, &y),
            BinaryOp::Shr if self.by_lanes() => infix(">>", Prec::Shift, &x, &y),
            BinaryOp::Shl => style.cast(name, &infix("<<", Prec::Shift, &style.cast(name, &x), &y)),
            BinaryOp::Shr => infix(">>", Prec::Shift, &style.cast(name, &x), &y),
        };
        let rounds = matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div);
        if rounds { self.rounded(code, expr.dtype()) } else { Ok(code) }
    }

    /// An `f32` result rounded to the type that it stands for.
    fn rounded(&mut self, code: Code, dtype: DType) -> Result<Code, EmitError> {
        if !is_storage_float(dtype) {
            return Ok(code);
        }
        let name = self.defs.helper(Helper::Round(VTy::scalar(CTy::F32), dtype))?;
        Ok(Code::call(&name, &[&code]))
    }

    fn scalar_cast(&mut self, a: &Expr, to: DType) -> Result<Code, EmitError> {
        let (source, target) = (CTy::carrier(a.dtype()), CTy::carrier(to));
        if let Node::Binary(_, x, y) = a.node()
            && source != target
            && self.is_opaque_product(a, target)
        {
            let (x, y) = (self.code(x)?, self.code(y)?);
            let name = self.defs.helper(Helper::OpaqueProduct(source))?;
            return Ok(self.cast(target, &Code::call(&name, &[&x, &y])));
        }
        let code = self.code(a)?;
        if to == DType::Bool {
            let zero =
                if source.is_float() { self.dialect.float_literal(0.0, source) } else { Code::primary("0") };
            return Ok(self.style().infix("!=", Prec::Equality, &code, &zero));
        }
        if !target.is_float() && source.is_float() {
            let name = self.defs.helper(Helper::Saturate(VTy::scalar(source), target))?;
            return Ok(Code::call(&name, &[&code]));
        }
        if !is_storage_float(to) {
            return Ok(if source == target { code } else { self.cast(target, &code) });
        }
        // To a narrow float: to f32 without losing what the rounding must know, then one rounding.
        let odd = |walker: &mut Walker, from: CTy, code: Code| -> Result<Code, EmitError> {
            Ok(Code::call(&walker.defs.helper(Helper::Odd(VTy::scalar(from)))?, &[&code]))
        };
        let single = match source {
            CTy::F32 => code,
            CTy::F64 => odd(self, CTy::F64, code)?,
            CTy::Bool | CTy::I8 | CTy::I16 | CTy::U8 | CTy::U16 => self.cast(CTy::F32, &code),
            CTy::I32 | CTy::U32 => {
                let double = self.cast(CTy::F64, &code);
                odd(self, CTy::F64, double)?
            }
            CTy::I64 | CTy::U64 => {
                let double = odd(self, source, code)?;
                odd(self, CTy::F64, double)?
            }
            CTy::M8 | CTy::M16 | CTy::M32 | CTy::M64 => {
                return Err(self.bad_shape("a scalar", source.name()));
            }
        };
        self.rounded(single, to)
    }

    fn scalar_call(&mut self, intrinsic: Intrinsic, args: &[Expr]) -> Result<Code, EmitError> {
        let dtype = args[0].dtype();
        if intrinsic == Intrinsic::Likely || (is_whole(intrinsic) && !dtype.is_float()) {
            return self.code(&args[0]);
        }
        if !dtype.is_float() {
            match intrinsic {
                Intrinsic::IsNan | Intrinsic::IsInf => return Ok(Code::primary("0")),
                Intrinsic::IsFinite => return Ok(Code::primary("1")),
                _ => {}
            }
        }
        if intrinsic == Intrinsic::Fma && is_storage_float(dtype) {
            let codes = args.iter().map(|a| self.code(a)).collect::<Result<Vec<_>, _>>()?;
            let name = self.defs.helper(Helper::Fma(VTy::scalar(CTy::F32), dtype))?;
            return Ok(Code::call(&name, &codes.iter().collect::<Vec<_>>()));
        }
        let codes = args.iter().map(|a| self.code(a)).collect::<Result<Vec<_>, _>>()?;
        let ty = VTy::scalar(CTy::carrier(dtype));
        if let ([_, second, third], Intrinsic::Max3 | Intrinsic::Min3) = (args, intrinsic)
            && second == third
            && self.by_lanes()
            && ty.ty == CTy::F32
        {
            let name = self.defs.helper(Helper::OfTwo(intrinsic))?;
            let call = Code::call(&name, &[&codes[0], &codes[1]]);
            return self.rounded(call, dtype);
        }
        let name = self.defs.helper(Helper::Math(intrinsic, ty))?;
        let call = Code::call(&name, &codes.iter().collect::<Vec<_>>());
        if intrinsic.is_predicate() { Ok(call) } else { self.rounded(call, dtype) }
    }

    fn load_scalar(&mut self, buffer: &coulis_ir::Buffer, at: &Expr) -> Result<Val, EmitError> {
        let ty = CTy::carrier(buffer.dtype);
        if let Some(registers) = self.f.registers.get(&buffer.data.id()) {
            let slot = index::constant(at).and_then(|offset| registers.slots.get(&offset));
            return match slot {
                Some((_, val)) => Ok(val.clone()),
                None => Err(self.bad_shape("an access of registers", format!("index {at:?}"))),
            };
        }
        let at = self.place(at)?;
        let code = self.element(buffer, &at)?;
        Ok(Val::scalar(ty, code))
    }

    /// The element at an index, widened to its carrier.
    pub(super) fn element(&mut self, buffer: &coulis_ir::Buffer, at: &Code) -> Result<Code, EmitError> {
        if is_plain(buffer.dtype) {
            let base = self.base(buffer)?;
            return Ok(Code::primary([&*base, "[", &at.text, "]"].concat()));
        }
        if self.by_lanes() {
            let base = self.base(buffer)?;
            return self.widened(buffer.dtype, &Code::primary([&*base, "[", &at.text, "]"].concat()));
        }
        let address = self.address(buffer, at)?;
        let name = self.defs.helper(Helper::Load(buffer.dtype, 0))?;
        Ok(Code::call(&name, &[&address]))
    }

    /// The pointer of a buffer, of its element type.
    pub(super) fn base(&mut self, buffer: &coulis_ir::Buffer) -> Result<Rc<str>, EmitError> {
        let pointer = self.pointer(buffer)?;
        let element = CTy::memory(buffer.dtype);
        if CTy::memory(pointer.dtype) == element {
            return Ok(pointer.name);
        }
        Ok(format!("(({} *){})", self.dialect.type_name(element), pointer.name).into())
    }

    /// The address of an element.
    pub(super) fn address(&mut self, buffer: &coulis_ir::Buffer, at: &Code) -> Result<Code, EmitError> {
        let base = Code::primary(&*self.base(buffer)?);
        Ok(if at.text == "0" {
            base
        } else {
            Code::infix("+", Prec::Sum, &base, &Code::primary(at.at(Prec::Sum).into_owned()))
        })
    }

    /// Only the taken arm is evaluated.
    pub(super) fn if_then_else(&mut self, cond: &Expr, a: &Expr, b: &Expr) -> Result<Val, EmitError> {
        if self.by_lanes() && is_in_registers(a) && is_in_registers(b) {
            return self.scalar(&Expr::select(cond.clone(), a.clone(), b.clone()));
        }
        let small = self.by_lanes() || (a.lanes() == 1 && fits_inline(a) && fits_inline(b));
        if small || self.f.inline > 0 {
            if a.lanes() != 1 {
                return Err(self.unsupported("a vector conditional inside an expression"));
            }
            let cond = self.place(cond)?;
            self.f.inline += 1;
            let arms = (self.code(a), self.code(b));
            self.f.inline -= 1;
            let (a_code, b_code) = (arms.0?, arms.1?);
            let code = match (a_code.text.as_str(), b_code.text.as_str()) {
                ("1", _) if a.dtype() == DType::Bool && !self.by_lanes() => {
                    Code::infix("||", Prec::Or, &cond, &b_code)
                }
                (_, "0") if a.dtype() == DType::Bool && !self.by_lanes() => {
                    Code::infix("&&", Prec::And, &cond, &a_code)
                }
                _ => self.style().conditional(&cond, &a_code, &b_code),
            };
            return Ok(Val::scalar(CTy::carrier(a.dtype()), code));
        }
        let cond = self.code(cond)?;
        // Both arms are written into the same variables; the first arm says how wide masks are.
        let outer = std::mem::take(&mut self.f.lines);
        let mut lines = [outer.nested(), outer.nested()];
        let mut vals = Vec::new();
        for (arm, text) in [a, b].into_iter().zip(&mut lines) {
            std::mem::swap(&mut self.f.lines, text);
            self.f.memo.push(Default::default());
            self.f.uses.push(deps::count_uses([arm], self.by_lanes()));
            let val = self.value(arm);
            self.f.uses.pop();
            self.f.memo.pop();
            std::mem::swap(&mut self.f.lines, text);
            vals.push(val);
        }
        let (first, second) = match (vals.remove(0), vals.remove(0)) {
            (Ok(first), Ok(second)) => (first, second),
            (Err(error), _) | (_, Err(error)) => return Err(error),
        };
        let [mut then, mut otherwise] = lines;
        std::mem::swap(&mut self.f.lines, &mut otherwise);
        let second = if first.ty != second.ty { self.mask_as(&second, first.ty.bytes())? } else { second };
        std::mem::swap(&mut self.f.lines, &mut otherwise);
        self.f.lines = outer;
        let mut result = first.clone();
        result.uniform = None;
        for ((part, x), y) in result.parts.iter_mut().zip(&first.parts).zip(&second.parts) {
            let spelled = self.spelled(VTy { ty: first.ty, lanes: part.lanes });
            let name = self.namer.fresh("t");
            self.f.lines.statement(format_args!("{spelled} {name}"));
            then.statement(format_args!("{name} = {}", x.code.text));
            otherwise.statement(format_args!("{name} = {}", y.code.text));
            part.code = Code::primary(name);
        }
        self.f.lines.open(format_args!("if ({})", cond.text));
        self.f.lines.append(then);
        self.f.lines.otherwise();
        self.f.lines.append(otherwise);
        self.f.lines.close();
        Ok(result)
    }
}

/// Whether the type lives in memory only, carried as `f32`.
pub fn is_storage_float(dtype: DType) -> bool {
    matches!(dtype, DType::F8E4M3 | DType::F8E5M2 | DType::F16 | DType::BF16)
}

/// Whether an element is used as it stands in memory.
pub(super) fn is_plain(dtype: DType) -> bool {
    !is_storage_float(dtype) && dtype != DType::Bool
}

/// Whether the function leaves integers as they are.
pub(super) fn is_whole(intrinsic: Intrinsic) -> bool {
    matches!(
        intrinsic,
        Intrinsic::Floor | Intrinsic::Ceil | Intrinsic::Round | Intrinsic::Trunc | Intrinsic::Nearbyint
    )
}

/// Whether evaluating it where the program does not may fail: it reads memory.
pub(super) fn may_trap(expr: &Expr) -> bool {
    expr.reads_memory()
}

/// Whether the value comes from registers alone, so that it costs no more than an operation to have it in vain.
pub(super) fn is_in_registers(expr: &Expr) -> bool {
    all_loads(expr, &mut is_own_register)
}

/// Whether an access is of memory that a thread has in its registers.
fn is_own_register(load: &Expr) -> bool {
    let Node::Load(buffer, indices) = load.node() else { return false };
    buffer.scope == MemScope::Local && indices.iter().all(|at| index::constant(at).is_some())
}

/// Whether that holds of each access in the expression.
fn all_loads(expr: &Expr, holds: &mut impl FnMut(&Expr) -> bool) -> bool {
    let mut all = true;
    if expr.reads_memory() {
        for_each_expr(expr, &mut |e| all &= !matches!(e.node(), Node::Load(..)) || holds(e));
    }
    all
}

fn fits_inline(expr: &Expr) -> bool {
    fn size(expr: &Expr, left: &mut usize) -> bool {
        if *left == 0 || expr.lanes() != 1 || matches!(expr.node(), Node::Let(..)) {
            return false;
        }
        *left -= 1;
        expr.children().all(|child| size(child, left))
    }
    size(expr, &mut SMALL_ARM.clone())
}

/// A constant of an integer type or bool, as C takes it.
pub fn int_literal(value: i128, dtype: DType) -> Code {
    match dtype {
        DType::I64 if i32::try_from(value).is_err() => {
            if value == i128::from(i64::MIN) {
                return Code::primary("(-9223372036854775807LL - 1)");
            }
            signed(format!("{value}LL"), value)
        }
        DType::I32 if value == i128::from(i32::MIN) => Code::primary("(-2147483647 - 1)"),
        DType::U32 => Code::primary(format!("{value}u")),
        DType::U64 => Code::primary(format!("{value}ull")),
        _ => signed(value.to_string(), value),
    }
}

fn signed(text: String, value: i128) -> Code {
    Code { text, prec: if value < 0 { Prec::Unary } else { Prec::Primary } }
}

/// A constant of a float type, exactly, as gcc and clang take it.
pub fn float_literal(value: f64, ty: CTy) -> Code {
    let suffix = if ty == CTy::F32 { "f" } else { "" };
    if value.is_nan() {
        return Code::primary(format!("__builtin_nan{suffix}(\"\")"));
    }
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let magnitude = value.abs();
    let text = if magnitude.is_infinite() {
        format!("{sign}__builtin_inf{suffix}()")
    } else if ty == CTy::F32 {
        format!("{sign}{:?}f", magnitude as f32)
    } else {
        format!("{sign}{magnitude:?}")
    };
    Code { text, prec: if sign.is_empty() { Prec::Primary } else { Prec::Unary } }
}
