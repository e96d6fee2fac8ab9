//! Expressions: constants, variables, sharing, laziness.

use coulis_ir::visit::for_each_expr;
use coulis_ir::{BinaryOp, Buffer, DType, Expr, Intrinsic, Node, Var, VarKind};

use super::{Compiler, Place, Value};
use crate::code::{Input, Instr, Ptr, Slot, slot_of_bytes, slot_of_int};
use crate::error::ExecError;
use crate::ops::{Op, Reg, broadcast, copy, ramp};

impl Compiler {
    /// Compiles an expression, or finds it compiled.
    pub(super) fn expr(&mut self, expr: &Expr) -> Result<Value, ExecError> {
        if let Some(value) = self.known(expr) {
            return Ok(value);
        }
        let value = self.fresh_expr(expr)?;
        self.learn(expr, &value);
        Ok(value)
    }

    pub(super) fn known(&self, expr: &Expr) -> Option<Value> {
        self.scopes.iter().rev().find_map(|scope| scope.values.get(expr)).cloned()
    }

    /// The slot of a scalar expression.
    pub(super) fn scalar(&mut self, expr: &Expr) -> Result<Slot, ExecError> {
        match self.expr(expr)?.place {
            Place::Scalar(slot) => Ok(slot),
            Place::Vector(_) => Err(ExecError::Lanes { wanted: 1, found: expr.lanes() }),
        }
    }

    /// The pointer of a value with `lanes` lanes; a scalar is broadcast.
    pub(super) fn vector(&mut self, value: &Value, reg: Reg, lanes: u32) -> Ptr {
        match value.place {
            Place::Vector(ptr) => ptr,
            Place::Scalar(slot) => {
                let a = self.slot_ptr(slot);
                let d = self.new_register(lanes as usize * reg.bytes());
                let f = broadcast(reg.bytes());
                self.emit(
                    value.scope,
                    Instr::Vector { op: Op::Broadcast(reg.bytes() as u8), f, d, a, b: 0, c: 0, n: lanes },
                );
                d
            }
        }
    }

    /// A copy of a vector value in a register.
    pub(super) fn copied(&mut self, value: Value, expr: &Expr) -> Value {
        let Place::Vector(a) = value.place else { return value };
        let reg = Reg::of(expr.dtype());
        let d = self.new_register(expr.lanes() as usize * reg.bytes());
        let f = copy(reg.bytes());
        self.emit_here(Instr::Vector {
            op: Op::Copy(reg.bytes() as u8),
            f,
            d,
            a,
            b: 0,
            c: 0,
            n: expr.lanes(),
        });
        Value { place: Place::Vector(d), scope: self.current(), reads: value.reads, in_memory: false }
    }

    fn constant_value(&mut self, bits: u64) -> Value {
        let slot = self.constant(bits);
        Value { place: Place::Scalar(slot), scope: 0, reads: Vec::new(), in_memory: false }
    }

    fn fresh_expr(&mut self, expr: &Expr) -> Result<Value, ExecError> {
        let reg = Reg::of(expr.dtype());
        match expr.node() {
            Node::Int(value) => Ok(self.constant_value(slot_of_int(*value, reg.bytes()))),
            Node::Float(bits) => {
                let value = f64::from_bits(*bits);
                Ok(self.constant_value(match reg {
                    Reg::F64 => slot_of_bytes(&value.to_ne_bytes()),
                    _ => slot_of_bytes(&(value as f32).to_ne_bytes()),
                }))
            }
            Node::Var(var) => self.variable(var, expr.lanes()),
            Node::Binary(BinaryOp::And, a, b) if expr.lanes() == 1 && self.may_fail(b) => {
                self.either(a, b, &Expr::bool(false), expr)
            }
            Node::Binary(BinaryOp::Or, a, b) if expr.lanes() == 1 && self.may_fail(b) => {
                self.either(a, &Expr::bool(true), b, expr)
            }
            Node::IfThenElse(cond, a, b) if self.is_harmless(a) && self.is_harmless(b) => {
                self.expr(&Expr::select(cond.clone(), a.clone(), b.clone()))
            }
            Node::IfThenElse(cond, a, b) => self.either(cond, a, b, expr),
            Node::Binary(..) | Node::Not(_) | Node::Cast(_) | Node::Select(..) | Node::Call(..) => {
                self.operation(expr)
            }
            Node::Load(buffer, indices) => self.load(buffer, indices, expr),
            Node::Ramp(base, stride) => self.ramp(base, stride, expr),
            Node::Broadcast(a) => {
                let value = self.expr(a)?;
                let ptr = self.vector(&value, Reg::of(a.dtype()), expr.lanes());
                Ok(Value { place: Place::Vector(ptr), ..value })
            }
            Node::Let(var, value, body) => {
                let value = self.snapshot_with_reads(value)?;
                let reads = value.reads.clone();
                self.bind(var, Value { reads: Vec::new(), ..value });
                let mut body = self.expr(body)?;
                body.scope = body.scope.max(if reads.is_empty() { 0 } else { self.current() });
                body.reads.extend(reads);
                Ok(body)
            }
        }
    }

    /// As a snapshot, but it still says what it was read from.
    fn snapshot_with_reads(&mut self, expr: &Expr) -> Result<Value, ExecError> {
        let value = self.expr(expr)?;
        Ok(if value.in_memory { self.copied(value, expr) } else { value })
    }

    fn variable(&mut self, var: &Var, lanes: u32) -> Result<Value, ExecError> {
        let value = match self.vars.get(&var.id()) {
            Some(value) => value.clone(),
            None if var.kind() == VarKind::Handle
                || !(var.dtype().is_int() || var.dtype() == DType::Bool) =>
            {
                return Err(ExecError::UnboundVar { var: var.name().to_owned() });
            }
            None => {
                let slot = self.new_slot();
                self.inputs.push(Input {
                    var: var.id(),
                    name: var.name().to_owned(),
                    dtype: var.dtype(),
                    slot,
                });
                let value =
                    Value { place: Place::Scalar(slot), scope: 0, reads: Vec::new(), in_memory: false };
                self.vars.insert(var.id(), value.clone());
                value
            }
        };
        match value.place {
            Place::Scalar(_) if lanes > 1 => {
                let ptr = self.vector(&value, Reg::of(var.dtype()), lanes);
                Ok(Value { place: Place::Vector(ptr), ..value })
            }
            Place::Scalar(_) | Place::Vector(_) => Ok(value),
        }
    }

    fn ramp(&mut self, base: &Expr, stride: &Expr, expr: &Expr) -> Result<Value, ExecError> {
        let reg = Reg::of(expr.dtype());
        if !reg.is_int() {
            return Err(ExecError::UnsupportedOp { op: "ramp", ty: expr.ty() });
        }
        let (from, step) = (self.expr(base)?, self.expr(stride)?);
        let (a, b) = match (from.place, step.place) {
            (Place::Scalar(a), Place::Scalar(b)) => (self.slot_ptr(a), self.slot_ptr(b)),
            (Place::Vector(_), _) => return Err(ExecError::Lanes { wanted: 1, found: base.lanes() }),
            (_, Place::Vector(_)) => return Err(ExecError::Lanes { wanted: 1, found: stride.lanes() }),
        };
        let d = self.new_register(expr.lanes() as usize * reg.bytes());
        let scope = self.settled(from.scope.max(step.scope));
        let f = ramp(reg.bytes());
        self.emit(
            scope,
            Instr::Vector { op: Op::Ramp(reg.bytes() as u8), f, d, a, b, c: 0, n: expr.lanes() },
        );
        let reads = [from.reads, step.reads].concat();
        Ok(Value { place: Place::Vector(d), scope, reads, in_memory: false })
    }

    /// Whether evaluating the expression may stop the run: it reads memory of which it is not sure, or
    /// divides by what may be zero.
    pub(super) fn may_fail(&self, expr: &Expr) -> bool {
        let mut fails = false;
        for_each_expr(expr, &mut |e| {
            fails |= match e.node() {
                Node::Load(buffer, indices) => !self.is_there(buffer, indices),
                Node::Binary(..) => e.divisor().is_some_and(|divisor| !divisor.is_nonzero()),
                Node::Int(_)
                | Node::Float(_)
                | Node::Var(_)
                | Node::Not(_)
                | Node::Cast(_)
                | Node::Select(..)
                | Node::IfThenElse(..)
                | Node::Call(..)
                | Node::Ramp(..)
                | Node::Broadcast(_)
                | Node::Let(..) => false,
            };
        });
        fails
    }

    /// Whether the element is one of a local buffer at any time.
    fn is_there(&self, buffer: &Buffer, indices: &[Expr]) -> bool {
        let [index] = indices else { return false };
        let count = self.bufs.get(&buffer.data.id()).and_then(|buf| buf.count);
        let inside = |n: i128| count.is_some_and(|count| (0..i128::from(count)).contains(&n));
        index.as_int().is_some_and(inside)
    }

    /// Whether a scalar side of a choice may be computed where it is not chosen: that fails never and costs less than a
    /// branch.
    fn is_harmless(&self, expr: &Expr) -> bool {
        let mut is_cheap = expr.lanes() == 1;
        for_each_expr(expr, &mut |e| {
            is_cheap &= match e.node() {
                Node::Call(f, _) => {
                    matches!(f, Intrinsic::IsNan | Intrinsic::IsInf | Intrinsic::IsFinite | Intrinsic::Abs)
                }
                Node::Binary(..) => e.divisor().is_none(),
                Node::Let(..) => false,
                Node::Int(_)
                | Node::Float(_)
                | Node::Var(_)
                | Node::Not(_)
                | Node::Cast(_)
                | Node::Select(..)
                | Node::IfThenElse(..)
                | Node::Load(..)
                | Node::Ramp(..)
                | Node::Broadcast(_) => true,
            };
        });
        is_cheap && !self.may_fail(expr)
    }

    /// `cond ? a : b`, only one side computed.
    fn either(&mut self, cond: &Expr, a: &Expr, b: &Expr, expr: &Expr) -> Result<Value, ExecError> {
        let cond = self.scalar(cond)?;
        let (reg, lanes) = (Reg::of(expr.dtype()), expr.lanes());
        let place = if lanes == 1 {
            Place::Scalar(self.new_slot())
        } else {
            Place::Vector(self.new_register(lanes as usize * reg.bytes()))
        };
        let mut reads = Vec::new();
        let mut side = |this: &mut Compiler, arm: &Expr| {
            this.in_scope(true, |this| {
                let value = this.expr(arm)?;
                reads.extend_from_slice(&value.reads);
                let instr = match (place, value.place) {
                    (Place::Scalar(d), Place::Scalar(a)) => Instr::Move { d, a },
                    (Place::Vector(d), _) => {
                        let a = this.vector(&value, reg, lanes);
                        Instr::Vector {
                            op: Op::Copy(reg.bytes() as u8),
                            f: copy(reg.bytes()),
                            d,
                            a,
                            b: 0,
                            c: 0,
                            n: lanes,
                        }
                    }
                    (Place::Scalar(_), Place::Vector(_)) => {
                        return Err(ExecError::Lanes { wanted: 1, found: arm.lanes() });
                    }
                };
                this.emit_here(instr);
                Ok(())
            })
        };
        let then = side(self, a)?;
        let otherwise = side(self, b)?;
        self.emit_branch(cond, then, otherwise);
        // The condition's own reads count as well: the value is forgotten when they change.
        for_each_expr(expr, &mut |e| {
            if let Node::Load(buffer, _) = e.node() {
                reads.push(buffer.data.id());
            }
        });
        reads.sort();
        reads.dedup();
        Ok(Value { place, scope: self.current(), reads, in_memory: false })
    }
}
