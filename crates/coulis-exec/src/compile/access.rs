//! Loads and stores: contiguous, strided, repeated and general vector accesses, and scalars.

use coulis_ir::{Atom, Buffer, DType, Element, Expr, Node, VarId};

use super::operation::stored_as_computed;
use super::{Buf, Compiler, Place, Value};
use crate::code::{Instr, Ptr, PtrKind};
use crate::error::ExecError;
use crate::ops::{Op, Reg, copy, gather, gather_strided, narrow, scatter, scatter_strided, widen};

impl Compiler {
    fn buf(&self, buffer: &Buffer) -> Result<Buf, ExecError> {
        let name = || buffer.name.clone();
        let found = self.bufs.get(&buffer.data.id()).cloned();
        let buf = found.ok_or_else(|| ExecError::UnknownBuffer { buffer: name() })?;
        if buf.dtype != buffer.dtype {
            return Err(ExecError::AliasType { buffer: name(), wanted: buf.dtype, found: buffer.dtype });
        }
        Ok(buf)
    }

    fn one_index<'e>(buffer: &Buffer, indices: &'e [Expr]) -> Result<&'e Expr, ExecError> {
        match indices {
            [index] => Ok(index),
            _ => Err(ExecError::IndexCount { buffer: buffer.name.clone(), found: indices.len() }),
        }
    }

    pub(super) fn load(
        &mut self,
        buffer: &Buffer,
        indices: &[Expr],
        expr: &Expr,
    ) -> Result<Value, ExecError> {
        let index = Self::one_index(buffer, indices)?;
        let buf = self.buf(buffer)?;
        let (reg, lanes) = (Reg::of(expr.dtype()), expr.lanes());
        let bytes = buf.dtype.bytes() as u8;
        let reads = |value: &Value| {
            let mut reads = value.reads.clone();
            reads.retain(|r| *r != buffer.data.id());
            reads.insert(0, buffer.data.id());
            reads
        };
        let scope = self.current();
        if lanes == 1 {
            let at = self.expr(&index.clone().cast(DType::I64))?;
            let slot = self.scalar(&index.clone().cast(DType::I64))?;
            let d = self.new_slot();
            self.emit_here(Instr::Load { d, base: buf.base, index: slot, bytes });
            let mut place = Place::Scalar(d);
            if let Some(fns) = widen(buf.dtype, self.level) {
                let wide = self.new_slot();
                self.emit_here(Instr::Scalar { op: fns.op, f: fns.scalar, d: wide, a: d, b: 0, c: 0 });
                place = Place::Scalar(wide);
            }
            return Ok(Value { place, scope, reads: reads(&at), in_memory: false });
        }
        let raw = match shape_of(index) {
            Access::Repeated(at) => {
                let one = self.expr(&Expr::load(buffer.clone(), vec![at]))?;
                let ptr = self.vector(&one, reg, lanes);
                return Ok(Value { place: Place::Vector(ptr), ..one });
            }
            Access::Contiguous(at) => {
                let at = at.cast(DType::I64);
                let value = self.expr(&at)?;
                let p = self.address(buffer, &buf, &at, lanes)?;
                Value { place: Place::Vector(p), scope, reads: reads(&value), in_memory: true }
            }
            Access::Strided(at, stride) => {
                let (at, stride) = (at.cast(DType::I64), stride.cast(DType::I64));
                let (v, w) = (self.expr(&at)?, self.expr(&stride)?);
                let (index, stride) = (self.scalar(&at)?, self.scalar(&stride)?);
                let d = self.new_register(lanes as usize * buf.dtype.bytes());
                let f = gather_strided(buf.dtype.bytes());
                self.emit_here(Instr::GatherStrided { f, d, base: buf.base, index, stride, n: lanes, bytes });
                let both = Value { reads: [v.reads, w.reads].concat(), ..v };
                Value { place: Place::Vector(d), scope, reads: reads(&both), in_memory: false }
            }
            Access::Indexed => {
                let value = self.expr(&index.clone().cast(DType::I64))?;
                let at = self.vector(&value, Reg::I64, lanes);
                let d = self.new_register(lanes as usize * buf.dtype.bytes());
                let f = gather(buf.dtype.bytes());
                self.emit_here(Instr::Gather { f, d, base: buf.base, at, n: lanes });
                Value { place: Place::Vector(d), scope, reads: reads(&value), in_memory: false }
            }
        };
        Ok(match (widen(buf.dtype, self.level), raw.place) {
            (Some(fns), Place::Vector(a)) => {
                let d = self.new_register(lanes as usize * reg.bytes());
                self.emit_here(Instr::Vector { op: fns.op, f: fns.vector, d, a, b: 0, c: 0, n: lanes });
                Value { place: Place::Vector(d), in_memory: false, ..raw }
            }
            (Some(_), Place::Scalar(_)) | (None, _) => raw,
        })
    }

    /// A hint about an element. One whose index is not easily had is left out.
    pub(super) fn hint(&mut self, hint: Atom, place: Option<&Element>) -> Result<(), ExecError> {
        let Some(Element { buffer, indices }) = place else { return Ok(()) };
        let (index, buf) = (Self::one_index(buffer, indices)?, self.buf(buffer)?);
        if !self.may_fail(index) {
            let index = self.scalar(&index.clone().cast(DType::I64))?;
            let bytes = buf.dtype.bytes() as u8;
            self.emit_here(Instr::Prefetch { base: buf.base, index, bytes, hint });
        }
        Ok(())
    }

    /// The pointer entry of `lanes` elements from `at`, an int64 expression.
    fn address(&mut self, buffer: &Buffer, buf: &Buf, at: &Expr, lanes: u32) -> Result<Ptr, ExecError> {
        let key = (buffer.data.id(), at.clone(), lanes);
        if let Some(ptr) = self.scopes.iter().rev().find_map(|scope| scope.addresses.get(&key)) {
            return Ok(*ptr);
        }
        let index = self.scalar(at)?;
        let p = self.ptrs.len() as Ptr;
        self.ptrs.push(PtrKind::Address);
        // An address that cannot be out of bounds belongs where its buffer is allocated.
        let inside = |n: i64, count: i64| 0 <= n && n + i64::from(lanes) <= count;
        let sure = match (at.as_int().and_then(|n| i64::try_from(n).ok()), buf.count, buf.allocated_in) {
            (Some(n), Some(count), Some(scope)) if inside(n, count) => Some(scope),
            _ => None,
        };
        let scope = sure.unwrap_or(self.current());
        let bytes = buf.dtype.bytes() as u8;
        self.emit(scope, Instr::Address { p, base: buf.base, index, n: lanes, bytes });
        self.scopes[scope].addresses.insert(key, p);
        Ok(p)
    }

    pub(super) fn store(&mut self, buffer: &Buffer, indices: &[Expr], value: &Expr) -> Result<(), ExecError> {
        let index = Self::one_index(buffer, indices)?;
        let buf = self.buf(buffer)?;
        let lanes = index.lanes();
        if value.lanes() != 1 && value.lanes() != lanes {
            return Err(ExecError::Lanes { wanted: lanes, found: value.lanes() });
        }
        if Reg::of(value.dtype()) != Reg::of(buffer.dtype) || value.dtype() != buffer.dtype {
            return Err(ExecError::UnsupportedOp { op: "a store into another type", ty: value.ty() });
        }
        let data = buffer.data.id();
        if lanes == 1 {
            let mut a = self.scalar(self.before_rounding(value))?;
            let index = self.scalar(&index.clone().cast(DType::I64))?;
            if let Some(fns) = narrow(buf.dtype, self.level) {
                let d = self.new_slot();
                self.emit_here(Instr::Scalar { op: fns.op, f: fns.scalar, d, a, b: 0, c: 0 });
                a = d;
            }
            self.emit_here(Instr::Store { a, base: buf.base, index, bytes: buf.dtype.bytes() as u8 });
        } else {
            let value = value.clone().broadcast_to(lanes);
            self.vector_store(buffer, &buf, index, &value)?;
        }
        self.forget(data);
        Ok(())
    }

    fn vector_store(
        &mut self,
        buffer: &Buffer,
        buf: &Buf,
        index: &Expr,
        value: &Expr,
    ) -> Result<(), ExecError> {
        let (lanes, size) = (value.lanes(), buf.dtype.bytes());
        let (base, bytes) = (buf.base, size as u8);
        let data = buffer.data.id();
        if let Access::Contiguous(at) = shape_of(index) {
            let d = self.address(buffer, buf, &at.cast(DType::I64), lanes)?;
            let local = buf.allocated_in.is_some() && stored_as_computed(buf.dtype);
            if local && self.operation_into(value, d, data)? {
                return Ok(());
            }
            let a = self.narrowed(value, data)?;
            let f = copy(size);
            self.emit_here(Instr::Vector { op: Op::Copy(size as u8), f, d, a, b: 0, c: 0, n: lanes });
            return Ok(());
        }
        let a = self.narrowed(value, data)?;
        let (at, stride) = match shape_of(index) {
            Access::Strided(at, stride) => (at, stride),
            Access::Repeated(at) => (at, Expr::int_of(0, DType::I64)),
            Access::Contiguous(at) => (at, Expr::int_of(1, DType::I64)),
            Access::Indexed => {
                let at = self.expr(&index.clone().cast(DType::I64))?;
                let at = self.vector(&at, Reg::I64, lanes);
                self.emit_here(Instr::Scatter { f: scatter(size), a, base, at, n: lanes });
                return Ok(());
            }
        };
        let (index, stride) = (self.scalar(&at.cast(DType::I64))?, self.scalar(&stride.cast(DType::I64))?);
        self.emit_here(Instr::ScatterStrided {
            f: scatter_strided(size),
            a,
            base,
            index,
            stride,
            n: lanes,
            bytes,
        });
        Ok(())
    }

    /// What a conversion to a float of 8 or 16 bits rounds, where storing that float rounds it just so.
    fn before_rounding<'e>(&self, value: &'e Expr) -> &'e Expr {
        match value.node() {
            Node::Cast(a)
                if narrow(value.dtype(), self.level).is_some() && Reg::of(a.dtype()) == Reg::F32 =>
            {
                a
            }
            _ => value,
        }
    }

    /// A vector in the form that memory holds, to be stored in the memory `data`. Lanes that lie there are copied first:
    /// stores go piece by piece, and a lane that was not read yet may be where an earlier one is stored.
    fn narrowed(&mut self, value: &Expr, data: VarId) -> Result<Ptr, ExecError> {
        let computed = self.before_rounding(value);
        let mut compiled = self.expr(computed)?;
        if compiled.in_memory && compiled.reads.contains(&data) {
            compiled = self.copied(compiled, computed);
        }
        let a = self.vector(&compiled, Reg::of(computed.dtype()), value.lanes());
        let Some(fns) = narrow(value.dtype(), self.level) else { return Ok(a) };
        let d = self.new_register(value.lanes() as usize * value.dtype().bytes());
        self.emit_here(Instr::Vector { op: fns.op, f: fns.vector, d, a, b: 0, c: 0, n: value.lanes() });
        Ok(d)
    }
}

/// How the lanes of a vector index follow each other.
pub(super) enum Access {
    /// `at`, `at + 1`, ...
    Contiguous(Expr),
    /// `at`, `at + stride`, ...
    Strided(Expr, Expr),
    /// `at` in every lane.
    Repeated(Expr),
    /// Anything else.
    Indexed,
}

pub(super) fn shape_of(index: &Expr) -> Access {
    match coulis_ir::index::as_ramp(index) {
        Some((at, stride)) if stride.is_int(0) => Access::Repeated(at),
        Some((at, stride)) if stride.is_int(1) => Access::Contiguous(at),
        Some((at, stride)) => Access::Strided(at, stride),
        None => Access::Indexed,
    }
}

#[cfg(test)]
mod tests {
    use coulis_ir::{Form, Kernel, MemScope, Param, Stmt, Var, verify};

    use super::*;
    use crate::level::Level;

    #[test]
    fn a_conversion_that_is_stored_is_rounded_once() {
        for dtype in [DType::F8E4M3, DType::F8E5M2, DType::F16, DType::BF16] {
            let int = |value: i64| Expr::int_of(value.into(), DType::I64);
            let array = |name, dtype| Buffer::new(name, dtype, vec![int(16)], MemScope::Global);
            let (given, out) = (array("A", DType::F32), array("O", dtype));
            let param =
                |buffer: &Buffer| Param::Buffer { handle: Var::handle(&buffer.name), buffer: buffer.clone() };
            let store = |at: Expr| Stmt::store(&out, vec![at.clone()], given.at(vec![at]).cast(dtype));
            let kernel = Kernel {
                name: "test".to_owned(),
                params: [&given, &out].map(param).to_vec(),
                attrs: Default::default(),
                form: Form::Flat,
                body: Stmt::seq([store(Expr::ramp(int(0), int(1), 8)), store(int(8))]),
            };
            let compiled = super::super::compile(&verify::verify(kernel).unwrap(), Level::Avx2).unwrap();
            let ops: Vec<Op> = compiled
                .code
                .iter()
                .filter_map(|instr| match instr {
                    Instr::Vector { op, .. } | Instr::Scalar { op, .. } => Some(*op),
                    _ => None,
                })
                .filter(|op| matches!(op, Op::Round(_) | Op::Narrow(_)))
                .collect();
            assert_eq!(ops, [Op::Narrow(dtype), Op::Narrow(dtype)]);
        }
    }
}
