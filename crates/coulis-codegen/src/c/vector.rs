//! Vector expressions.

use coulis_ir::math::{EXP_CAP, EXP_FLOOR_F32, EXP_FLOOR_F64};
use coulis_ir::simplify::element_range;
use coulis_ir::{BinaryOp, Buffer, DType, Expr, Intrinsic, Node};

use crate::EmitError;
use crate::c::code::{Code, Prec};
use crate::c::elementary::BYTES_OF_SCALEF;
use crate::c::helper::{Comparison, Division, Helper, Needs as _, SHORT};
use crate::c::scalar::{float_literal, is_storage_float, is_whole};
use crate::c::types::{CTy, VTy, part_lanes};
use crate::c::value::{Part, Parts, Step, Val};
use crate::c::{Walker, index};

/// Bytes of a mask of which nothing says how wide it is to be.
const MASK_BYTES: u32 = 4;

impl Walker<'_> {
    pub(super) fn vector(&mut self, expr: &Expr) -> Result<Val, EmitError> {
        let lanes = expr.lanes();
        if let Node::Binary(..) | Node::Cast(_) = expr.node()
            && let Some(known) = expr.constant_lanes()
        {
            return Ok(self.known_integers(&known, expr.dtype()));
        }
        match expr.node() {
            Node::Int(_) | Node::Float(_) => Err(self.bad_shape("a vector", "a constant of many lanes")),
            Node::Var(var) => {
                let bound = self.f.vars.get(&var.id()).cloned();
                bound.ok_or_else(|| EmitError::Unbound { name: var.name().to_owned() })
            }
            Node::Broadcast(a) => {
                let code = self.code(a)?;
                if a.dtype() == DType::Bool {
                    self.splat_mask(code, MASK_BYTES, lanes)
                } else {
                    self.splat(CTy::carrier(a.dtype()), code, lanes)
                }
            }
            Node::Ramp(base, stride) => self.ramp(base, stride, lanes),
            Node::Binary(op, a, b) => self.vector_binary(*op, a, b, expr),
            Node::Not(a) => {
                let a = self.value(a)?;
                let mut flipped = a.clone();
                flipped.uniform = None;
                for part in &mut flipped.parts {
                    part.code = Code { text: format!("~{}", part.code.at(Prec::Unary)), prec: Prec::Unary };
                }
                Ok(flipped)
            }
            Node::Cast(a) => match expr.as_narrow_ramp() {
                Some(ramp) => self.value(&ramp),
                None => self.vector_cast(a, expr.dtype()),
            },
            Node::Select(cond, a, b) => self.select(cond, a, b),
            Node::IfThenElse(cond, a, b) => self.if_then_else(cond, a, b),
            Node::Call(intrinsic, args) => self.vector_call(*intrinsic, args),
            Node::Load(buffer, indices) => {
                let [at] = indices.as_slice() else {
                    return Err(self.bad_shape("a load", format!("{} indices", indices.len())));
                };
                self.load_vector(buffer, at)
            }
            Node::Let(var, value, body) => self.let_in(var, value, body),
        }
    }

    fn ramp(&mut self, base: &Expr, stride: &Expr, lanes: u32) -> Result<Val, EmitError> {
        let ty = CTy::carrier(base.dtype());
        if ty.is_float() || ty == CTy::Bool {
            return Err(self.bad_shape("a ramp", format!("{}", base.dtype())));
        }
        let base = self.code(base)?;
        let step = index::constant(stride);
        let stride = self.code(stride)?;
        let base = self.simple(ty, base);
        let stride = self.simple(ty, stride);
        let mut parts = Parts::new();
        let mut first = 0i64;
        for n in part_lanes(lanes, ty.bytes(), self.options.vector_bytes) {
            let vector = VTy::vector(ty, n);
            let name = self.defs.ty(vector);
            let splat = self.defs.helper(Helper::Splat(vector))?;
            let list = |scale: i64| {
                let lanes: Vec<String> =
                    (first..first + i64::from(n)).map(|i| (i * scale).to_string()).collect();
                Code { text: format!("({name}){{{}}}", lanes.join(", ")), prec: Prec::Unary }
            };
            let start = Code::call(&splat, &[&base]);
            let offsets = match step {
                Some(step) => list(step),
                None => Code::infix("*", Prec::Product, &Code::call(&splat, &[&stride]), &list(1)),
            };
            parts.push(Part { lanes: n, code: Code::infix("+", Prec::Sum, &start, &offsets) });
            first += i64::from(n);
        }
        Ok(Val { ty, parts, uniform: None })
    }

    fn vector_binary(&mut self, op: BinaryOp, a: &Expr, b: &Expr, expr: &Expr) -> Result<Val, EmitError> {
        if a.dtype() == DType::Bool {
            return self.mask_binary(op, a, b);
        }
        if let Some(sum) = self.sum_of_exact(op, a, b)? {
            return Ok(sum);
        }
        let divisor = match b.node() {
            Node::Broadcast(c) => index::constant(c).filter(|c| *c > 0 && c & (c - 1) == 0),
            _ => None,
        };
        let (x, y) = (self.value(a)?, self.value(b)?);
        let ty = x.ty;
        let infix = |op: &'static str, prec: Prec| {
            move |_: &mut Walker, _: VTy, a: &Code, b: &Code| Ok(Code::infix(op, prec, a, b))
        };
        let helper = |make: fn(VTy) -> Helper| {
            move |walker: &mut Walker, v: VTy, a: &Code, b: &Code| {
                Ok(Code::call(&walker.defs.helper(make(v))?, &[a, b]))
            }
        };
        let divide = |division: Division| {
            move |walker: &mut Walker, v: VTy, a: &Code, b: &Code| {
                let name = walker.defs.helper(Helper::Divide(division, v))?;
                Ok(Code::call(&name, &[a, b, &Code::primary("status")]))
            }
        };
        let compare = |comparison: Comparison| {
            move |walker: &mut Walker, v: VTy, a: &Code, b: &Code| {
                Ok(Code::call(&walker.defs.helper(Helper::Compare(comparison, v))?, &[a, b]))
            }
        };
        let mask = CTy::mask(ty.bytes());
        let float = ty.is_float();
        let val = match op {
            BinaryOp::Add => self.zip_parts(&x, &y, ty, infix("+", Prec::Sum))?,
            BinaryOp::Sub => self.zip_parts(&x, &y, ty, infix("-", Prec::Sum))?,
            BinaryOp::Mul => self.zip_parts(&x, &y, ty, infix("*", Prec::Product))?,
            BinaryOp::Div if float => self.zip_parts(&x, &y, ty, infix("/", Prec::Product))?,
            BinaryOp::TruncMod | BinaryOp::FloorDiv | BinaryOp::FloorMod if float => {
                return Err(self.unsupported(format!("{op:?} of floats")));
            }
            BinaryOp::FloorDiv if divisor.is_some() => {
                let shift = Code::primary(divisor.map_or(0, |c| c.ilog2()).to_string());
                self.zip_parts(&x, &y, ty, |_, _, a, _| Ok(Code::infix(">>", Prec::Shift, a, &shift)))?
            }
            BinaryOp::FloorMod if divisor.is_some() => {
                let low = Code::primary(divisor.map_or(0, |c| c - 1).to_string());
                self.zip_parts(&x, &y, ty, |_, _, a, _| Ok(Code::infix("&", Prec::BitAnd, a, &low)))?
            }
            BinaryOp::Div => self.zip_parts(&x, &y, ty, divide(Division::Div))?,
            BinaryOp::TruncMod => self.zip_parts(&x, &y, ty, divide(Division::Mod))?,
            BinaryOp::FloorDiv => self.zip_parts(&x, &y, ty, divide(Division::FloorDiv))?,
            BinaryOp::FloorMod => self.zip_parts(&x, &y, ty, divide(Division::FloorMod))?,
            BinaryOp::Min => self.zip_parts(&x, &y, ty, helper(Helper::Min))?,
            BinaryOp::Max => self.zip_parts(&x, &y, ty, helper(Helper::Max))?,
            BinaryOp::Eq => self.zip_parts(&x, &y, mask, compare(Comparison::Eq))?,
            BinaryOp::Ne => self.zip_parts(&x, &y, mask, compare(Comparison::Ne))?,
            BinaryOp::Lt => self.zip_parts(&x, &y, mask, compare(Comparison::Lt))?,
            BinaryOp::Le => self.zip_parts(&x, &y, mask, compare(Comparison::Le))?,
            BinaryOp::Gt => self.zip_parts(&x, &y, mask, compare(Comparison::Gt))?,
            BinaryOp::Ge => self.zip_parts(&x, &y, mask, compare(Comparison::Ge))?,
            BinaryOp::And | BinaryOp::Or => {
                return Err(self.bad_shape("a logical operation", format!("operands of {}", a.dtype())));
            }
            BinaryOp::BitAnd => self.zip_parts(&x, &y, ty, infix("&", Prec::BitAnd))?,
            BinaryOp::BitOr => self.zip_parts(&x, &y, ty, infix("|", Prec::BitOr))?,
            BinaryOp::BitXor => self.zip_parts(&x, &y, ty, infix("^", Prec::BitXor))?,
            BinaryOp::Shl | BinaryOp::Shr if !self.is_below_width(b) => {
                self.zip_parts(&x, &y, ty, |walker, v, a, b| {
                    Ok(Code::call(&walker.defs.helper(Helper::Shift(op, v))?, &[a, b]))
                })?
            }
            BinaryOp::Shl => self.zip_parts(&x, &y, ty, infix("<<", Prec::Shift))?,
            BinaryOp::Shr => self.zip_parts(&x, &y, ty, infix(">>", Prec::Shift))?,
        };
        let rounds = matches!(op, BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div);
        if rounds { self.round_vector(val, expr.dtype()) } else { Ok(val) }
    }

    fn round_vector(&mut self, val: Val, dtype: DType) -> Result<Val, EmitError> {
        if !is_storage_float(dtype) {
            return Ok(val);
        }
        self.map_parts(&val, CTy::F32, |v| Helper::Round(v, dtype))
    }

    /// Operations on bools, at the wider of the two masks.
    fn mask_binary(&mut self, op: BinaryOp, a: &Expr, b: &Expr) -> Result<Val, EmitError> {
        let (x, y) = (self.value(a)?, self.value(b)?);
        let (x, y) = self.same_masks(x, y)?;
        let ty = x.ty;
        let infix = |op: &'static str, prec: Prec| {
            move |_: &mut Walker, _: VTy, a: &Code, b: &Code| Ok(Code::infix(op, prec, a, b))
        };
        let unlike = self.zip_parts(&x, &y, ty, infix("^", Prec::BitXor))?;
        match op {
            BinaryOp::And | BinaryOp::Min => self.zip_parts(&x, &y, ty, infix("&", Prec::BitAnd)),
            BinaryOp::Or | BinaryOp::Max => self.zip_parts(&x, &y, ty, infix("|", Prec::BitOr)),
            BinaryOp::Ne => Ok(unlike),
            BinaryOp::Eq => {
                let mut same = unlike;
                for part in &mut same.parts {
                    part.code = Code { text: format!("~{}", part.code.at(Prec::Primary)), prec: Prec::Unary };
                }
                Ok(same)
            }
            BinaryOp::Add
            | BinaryOp::Sub
            | BinaryOp::Mul
            | BinaryOp::Div
            | BinaryOp::TruncMod
            | BinaryOp::FloorDiv
            | BinaryOp::FloorMod
            | BinaryOp::Lt
            | BinaryOp::Le
            | BinaryOp::Gt
            | BinaryOp::Ge
            | BinaryOp::BitAnd
            | BinaryOp::BitOr
            | BinaryOp::BitXor
            | BinaryOp::Shl
            | BinaryOp::Shr => Err(self.bad_shape("an operation on bools", format!("{op:?}"))),
        }
    }

    fn same_masks(&mut self, x: Val, y: Val) -> Result<(Val, Val), EmitError> {
        let bytes = match (&x.uniform, &y.uniform) {
            (Some(_), None) => y.ty.bytes(),
            (None, Some(_)) => x.ty.bytes(),
            _ => x.ty.bytes().max(y.ty.bytes()),
        };
        Ok((self.mask_as(&x, bytes)?, self.mask_as(&y, bytes)?))
    }

    fn select(&mut self, cond: &Expr, a: &Expr, b: &Expr) -> Result<Val, EmitError> {
        let mask = self.value(cond)?;
        let (mut x, mut y) = (self.value(a)?, self.value(b)?);
        if a.dtype() == DType::Bool {
            (x, y) = self.same_masks(x, y)?;
        }
        let mask = self.mask_as(&mask, x.ty.bytes())?;
        let ty = x.ty;
        let mut parts = Parts::new();
        for ((m, p), q) in mask.parts.iter().zip(&x.parts).zip(&y.parts) {
            let name = self.defs.helper(Helper::Select(VTy { ty, lanes: p.lanes }))?;
            parts.push(Part { lanes: p.lanes, code: Code::call(&name, &[&m.code, &p.code, &q.code]) });
        }
        Ok(Val { ty, parts, uniform: None })
    }

    fn vector_call(&mut self, intrinsic: Intrinsic, args: &[Expr]) -> Result<Val, EmitError> {
        let dtype = args[0].dtype();
        if intrinsic == Intrinsic::Likely || (is_whole(intrinsic) && !dtype.is_float()) {
            return self.value(&args[0]);
        }
        let lanes = args[0].lanes();
        if !dtype.is_float() {
            match intrinsic {
                Intrinsic::IsNan | Intrinsic::IsInf => {
                    return self.splat_mask(Code::primary("0"), MASK_BYTES, lanes);
                }
                Intrinsic::IsFinite => return self.splat_mask(Code::primary("1"), MASK_BYTES, lanes),
                _ => {}
            }
        }
        let vals = args.iter().map(|a| self.value(a)).collect::<Result<Vec<_>, _>>()?;
        let ty = vals[0].ty;
        // The helper rounds to the type itself.
        let is_once = intrinsic == Intrinsic::Fma && is_storage_float(dtype);
        let mut parts = Parts::new();
        for (position, part) in vals[0].parts.iter().enumerate() {
            let shape = vals[0].part_ty(part);
            let helper = match intrinsic {
                _ if is_once => Helper::Fma(shape, dtype),
                Intrinsic::Exp if is_bounded(&args[0]) => Helper::ExpBounded(shape),
                Intrinsic::Exp if shape.bytes() < BYTES_OF_SCALEF && is_capped(&args[0]) => {
                    Helper::ExpCapped(shape)
                }
                _ => Helper::Math(intrinsic, shape),
            };
            let name = self.defs.helper(helper)?;
            let codes: Vec<&Code> = vals.iter().map(|v| &v.parts[position].code).collect();
            parts.push(Part { lanes: part.lanes, code: Code::call(&name, &codes) });
        }
        if intrinsic.is_predicate() {
            return Ok(Val { ty: CTy::mask(ty.bytes()), parts, uniform: None });
        }
        if is_once {
            return Ok(Val { ty, parts, uniform: None });
        }
        self.round_vector(Val { ty, parts, uniform: None }, dtype)
    }

    /// What a store of a vector to memory of that type writes: it rounds by itself, so what is cast for it needs not be rounded before.
    pub(super) fn stored(&mut self, value: &Expr, memory: DType) -> Result<Val, EmitError> {
        match value.node() {
            Node::Cast(a)
                if is_storage_float(memory) && a.dtype() != DType::Bool && self.known(value).is_none() =>
            {
                let exact = self.value(a)?;
                self.single_for_rounding(&exact)
            }
            _ => self.value(value),
        }
    }

    fn vector_cast(&mut self, a: &Expr, to: DType) -> Result<Val, EmitError> {
        let target = CTy::carrier(to);
        if let Some(val) = self.load_and_widen(a, to)? {
            return Ok(val);
        }
        let val = self.value(a)?;
        if to == DType::Bool {
            let zero = if val.ty.is_float() { float_literal(0.0, val.ty) } else { Code::primary("0") };
            let mut mask = Val { ty: CTy::mask(val.ty.bytes()), parts: Parts::new(), uniform: None };
            for part in &val.parts {
                let vector = val.part_ty(part);
                let zeros = Code::call(&self.defs.helper(Helper::Splat(vector))?, &[&zero]);
                let differs = self.defs.helper(Helper::Compare(Comparison::Ne, vector))?;
                let code = Code::call(&differs, &[&part.code, &zeros]);
                mask.parts.push(Part { lanes: part.lanes, code });
            }
            return Ok(mask);
        }
        if a.dtype() == DType::Bool {
            return self.mask_to_number(&val, to);
        }
        if is_storage_float(to) {
            let single = self.single_for_rounding(&val)?;
            return self.round_vector(single, to);
        }
        if let Some(code) = val.uniform.clone()
            && !target.is_float()
            && !val.ty.is_float()
        {
            return self.splat(target, Code::cast(target.name(), &code), a.lanes());
        }
        if is_short(a) && target == CTy::F64 {
            return self.step(&val, Step::Short);
        }
        self.convert_val(&val, target)
    }

    /// 0 or 1 in each lane.
    fn mask_to_number(&mut self, mask: &Val, to: DType) -> Result<Val, EmitError> {
        let target = CTy::carrier(to);
        let wide = self.mask_as(mask, target.bytes())?;
        let mut ones = Val { ty: target, parts: Parts::new(), uniform: None };
        for part in &wide.parts {
            let vector = VTy { ty: target, lanes: part.lanes };
            let [one, zero] = if target.is_float() {
                [1.0, 0.0].map(|value| float_literal(value, target))
            } else {
                ["1", "0"].map(Code::primary)
            };
            let splat = self.defs.helper(Helper::Splat(vector))?;
            let select = self.defs.helper(Helper::Select(vector))?;
            let lanes = [one, zero].map(|value| Code::call(&splat, &[&value]));
            let code = Code::call(&select, &[&part.code, &lanes[0], &lanes[1]]);
            ones.parts.push(Part { lanes: part.lanes, code });
        }
        Ok(ones)
    }

    /// As `f32`, inexact results rounded to odd.
    fn single_for_rounding(&mut self, val: &Val) -> Result<Val, EmitError> {
        match val.ty {
            CTy::F32 => Ok(val.clone()),
            CTy::F64 => self.step(val, Step::Odd(CTy::F32)),
            CTy::Bool | CTy::I8 | CTy::I16 | CTy::U8 | CTy::U16 => self.convert_val(val, CTy::F32),
            CTy::I32 | CTy::U32 => {
                let double = self.convert_val(val, CTy::F64)?;
                self.step(&double, Step::Odd(CTy::F32))
            }
            CTy::I64 | CTy::U64 => {
                let double = self.step(val, Step::Odd(CTy::F64))?;
                self.step(&double, Step::Odd(CTy::F32))
            }
            CTy::M8 | CTy::M16 | CTy::M32 | CTy::M64 => Err(self.bad_shape("a cast", val.ty.name())),
        }
    }

    /// To a type that arithmetic knows, as casts do.
    fn convert_val(&mut self, val: &Val, to: CTy) -> Result<Val, EmitError> {
        let from = val.ty;
        if from == to {
            return Ok(val.clone());
        }
        match (from.is_float(), to.is_float()) {
            (true, true) => self.step(val, Step::Convert(to)),
            (false, false) => {
                // Pieces of byte vectors are slow to cut, those of wider ones are not.
                let through = matches!((from.bytes(), to.bytes()), (1, 8));
                let middle = if from.is_signed() { CTy::I32 } else { CTy::U32 };
                let val = if through { self.step(val, Step::Convert(middle))? } else { val.clone() };
                self.step(&val, Step::Convert(to))
            }
            (false, true) => {
                let val =
                    if from.bytes() < 4 { self.step(val, Step::Convert(CTy::I32))? } else { val.clone() };
                self.step(&val, Step::Convert(to))
            }
            (true, false) => self.saturate(val, to),
        }
    }

    fn saturate(&mut self, val: &Val, to: CTy) -> Result<Val, EmitError> {
        if from_needs_double(val.ty, to) {
            let double = self.step(val, Step::Convert(CTy::F64))?;
            return self.step(&double, Step::Saturate(to));
        }
        if to.bytes() == val.ty.bytes() {
            return self.step(val, Step::Saturate(to));
        }
        // A narrower integer: its limits are exact in the float type, and NaN passes both comparisons.
        let (low, high) = match to {
            CTy::I8 => (-128.0, 127.0),
            CTy::I16 => (-32768.0, 32767.0),
            CTy::I32 => (f64::from(i32::MIN), f64::from(i32::MAX)),
            CTy::U8 => (0.0, 255.0),
            CTy::U16 => (0.0, 65535.0),
            CTy::U32 => (0.0, f64::from(u32::MAX)),
            CTy::Bool
            | CTy::I64
            | CTy::U64
            | CTy::F32
            | CTy::F64
            | CTy::M8
            | CTy::M16
            | CTy::M32
            | CTy::M64 => {
                return Err(self.bad_shape("a cast", format!("{} to {}", val.ty.name(), to.name())));
            }
        };
        let mut clamped = val.clone();
        clamped.uniform = None;
        for part in &mut clamped.parts {
            let v = VTy { ty: val.ty, lanes: part.lanes };
            let (min, max) = (self.defs.helper(Helper::Min(v))?, self.defs.helper(Helper::Max(v))?);
            let splat = self.defs.helper(Helper::Splat(v))?;
            let bound = |value: f64| Code::call(&splat, &[&float_literal(value, val.ty)]);
            let upper = Code::call(&min, &[&bound(high), &part.code]);
            part.code = Code::call(&max, &[&bound(low), &upper]);
        }
        let whole = self.step(&clamped, Step::Saturate(CTy::signed(val.ty.bytes())))?;
        self.step(&whole, Step::Convert(to))
    }

    /// A conversion of a load to a wider type reads each part where it is needed: cheaper than cutting vectors, also
    /// where the whole is read for something else, unless what is read has to be converted twice.
    fn load_and_widen(&mut self, a: &Expr, to: DType) -> Result<Option<Val>, EmitError> {
        let Node::Load(buffer, indices) = a.node() else { return Ok(None) };
        let (source, target) = (CTy::carrier(buffer.dtype), CTy::carrier(to));
        let n_parts = |ty: CTy| part_lanes(a.lanes(), ty.bytes(), self.options.vector_bytes).len();
        let cuts = !is_storage_float(buffer.dtype) && n_parts(source) < n_parts(target);
        let wanted = is_plain_widening(source, target)
            && buffer.dtype != DType::Bool
            && !is_storage_float(to)
            && (cuts || self.uses(a) <= 1 && self.known(a).is_none())
            && !self.f.registers.contains_key(&buffer.data.id());
        let [at] = indices.as_slice() else { return Ok(None) };
        let Some((base, stride)) = index::as_ramp(at) else { return Ok(None) };
        if !wanted || index::constant(&stride) != Some(1) {
            return Ok(None);
        }
        let base = self.code(&base)?;
        let base = self.simple(CTy::carrier(at.dtype()), base);
        let mut parts = Parts::new();
        let mut first = 0;
        for n in part_lanes(a.lanes(), target.bytes(), self.options.vector_bytes) {
            let address = self.address(buffer, &offset(&base, first))?;
            let load = self.defs.helper(Helper::Load(buffer.dtype, n))?;
            let piece = Val {
                ty: source,
                parts: smallvec::smallvec![Part { lanes: n, code: Code::call(&load, &[&address]) }],
                uniform: None,
            };
            // Lanes of a small piece convert in one step from bytes to eight bytes.
            let converted = if source.is_float() == target.is_float() {
                self.step(&piece, Step::Convert(target))?
            } else {
                self.convert_val(&piece, target)?
            };
            parts.extend(converted.parts);
            first += n;
        }
        Ok(Some(Val { ty: target, parts, uniform: None }))
    }

    fn load_vector(&mut self, buffer: &Buffer, at: &Expr) -> Result<Val, EmitError> {
        if let Some(registers) = self.f.registers.get(&buffer.data.id()) {
            let place = index::constant_place(at);
            let slot = place.and_then(|(offset, _)| registers.slots.get(&offset));
            return match slot {
                Some((_, val)) => Ok(val.clone()),
                None => Err(self.bad_shape("an access of registers", format!("index {at:?}"))),
            };
        }
        let carrier = CTy::carrier(buffer.dtype);
        let ty = if buffer.dtype == DType::Bool { CTy::M8 } else { carrier };
        let widths = part_lanes(at.lanes(), ty.bytes(), self.options.vector_bytes);
        let Some((base, stride)) = index::as_ramp(at) else { return self.gather(buffer, at, ty, &widths) };
        let step = index::constant(&stride);
        if step == Some(0) {
            let base = self.code(&base)?;
            let element = self.element(buffer, &base)?;
            return if buffer.dtype == DType::Bool {
                self.splat_mask(element, MASK_BYTES, at.lanes())
            } else {
                self.splat(carrier, element, at.lanes())
            };
        }
        let index_ty = CTy::carrier(at.dtype());
        let base = self.code(&base)?;
        let base = if step == Some(1) && widths.len() == 1 { base } else { self.simple(index_ty, base) };
        let mut parts = Parts::new();
        let mut first = 0;
        if step == Some(1) {
            for n in widths {
                let address = self.address(buffer, &offset(&base, first))?;
                let name = self.defs.helper(Helper::Load(buffer.dtype, n))?;
                parts.push(Part { lanes: n, code: Code::call(&name, &[&address]) });
                first += n;
            }
            return Ok(Val { ty, parts, uniform: None });
        }
        self.load_strided(buffer, (&base, &stride), at, ty, &widths)
    }

    /// The lanes of a vector as scalars.
    pub(super) fn lane_codes(&mut self, expr: &Expr) -> Result<Vec<Code>, EmitError> {
        let val = self.value(expr)?;
        let mut lanes = Vec::new();
        for part in &val.parts {
            let whole = self.simple_vector(val.part_ty(part), part.code.clone());
            lanes.extend(
                (0..part.lanes).map(|lane| Code::primary(format!("{}[{lane}]", whole.at(Prec::Primary)))),
            );
        }
        Ok(lanes)
    }
}

/// `base + first`.
pub(super) fn offset(base: &Code, first: u32) -> Code {
    match (first, base.text.parse::<i64>()) {
        (0, _) => base.clone(),
        (_, Ok(value)) => Code::primary((value + i64::from(first)).to_string()),
        (_, Err(_)) => Code::infix("+", Prec::Sum, base, &Code::primary(first.to_string())),
    }
}

/// Whether an exponential of this is one of [`exp_capped`](super::elementary::exp_capped): of a minimum that a constant caps.
fn is_capped(x: &Expr) -> bool {
    has_bound(x, BinaryOp::Min, &|cap, _| cap <= EXP_CAP)
}

/// Whether it is one of [`exp_bounded`](super::elementary::exp_bounded): of a maximum with a constant, of what is capped.
fn is_bounded(x: &Expr) -> bool {
    let floor = if x.dtype() == DType::F64 { EXP_FLOOR_F64 } else { EXP_FLOOR_F32.into() };
    has_bound(x, BinaryOp::Max, &|bound, rest| bound >= floor && bound <= EXP_CAP && is_capped(rest))
}

/// Whether an expression is the minimum, or maximum, of a constant and something of which that holds.
fn has_bound(x: &Expr, op: BinaryOp, holds: &dyn Fn(f64, &Expr) -> bool) -> bool {
    let number = |e: &Expr| match e.node() {
        Node::Broadcast(value) => value.as_float(),
        _ => e.as_float(),
    };
    match x.node() {
        Node::Binary(found, a, b) if *found == op => {
            [(a, b), (b, a)].into_iter().any(|(bound, rest)| number(bound).is_some_and(|c| holds(c, rest)))
        }
        _ => false,
    }
}

fn is_plain_widening(source: CTy, target: CTy) -> bool {
    target != CTy::Bool && source.bytes() < target.bytes() && (target.is_float() || !source.is_float())
}

/// Whether all elements are integers of 64 bits that are short.
fn is_short(expr: &Expr) -> bool {
    CTy::carrier(expr.dtype()).is_long()
        && element_range(expr).is_some_and(|(least, most)| -SHORT <= least && most <= SHORT)
}

/// Whether a saturating conversion must go through `f64`: the integer is wider than the float.
fn from_needs_double(from: CTy, to: CTy) -> bool {
    from == CTy::F32 && to.bytes() == 8
}
