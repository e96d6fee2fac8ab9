//! Lanewise operations: arithmetic, comparisons, conversions, choices and functions.

use coulis_ir::{BinaryOp, DType, Expr, Intrinsic, Node, VarId};

use super::{Compiler, Place, Value};
use crate::code::{Instr, Ptr};
use crate::error::ExecError;
use crate::ops::{
    Call, Fns, Reg, Signedness, any_zero, binary, call, cast, fma, not, round_from_f64, round_in_f32, select,
    to_f64_odd,
};

/// An operation that is one step: its functions and operands.
pub(super) struct Step {
    fns: Fns,
    args: Vec<(Value, Reg)>,
    out: Reg,
    /// Whether it has to stay where it stands.
    pinned: bool,
}

impl Compiler {
    pub(super) fn operation(&mut self, expr: &Expr) -> Result<Value, ExecError> {
        if let Some(ramp) = expr.as_narrow_ramp() {
            return self.expr(&ramp);
        }
        if let Node::Cast(a) = expr.node() {
            return self.conversion(a, expr);
        }
        if let Node::Call(Intrinsic::Fma, args) = expr.node()
            && let Some(fns) = fma(expr.dtype(), self.level)
        {
            // A sum in `f32` would round before the rounding to 8 or 16 bits.
            let args: Result<Vec<_>, _> = args.iter().map(|a| self.expr(a).map(|v| (v, Reg::F32))).collect();
            return Ok(self.apply(&Step { fns, args: args?, out: Reg::F32, pinned: false }, expr.lanes()));
        }
        let value = match self.step(expr)? {
            Ok(step) => self.apply(&step, expr.lanes()),
            Err(same) => return Ok(same),
        };
        Ok(match round_in_f32(expr.dtype(), self.level) {
            Some(fns) if needs_rounding(expr) => self.then(fns, value, Reg::F32, Reg::F32, expr.lanes()),
            _ => value,
        })
    }

    /// Compiles the operands. The inner result is the value itself where nothing is to be done.
    fn step(&mut self, expr: &Expr) -> Result<Result<Step, Value>, ExecError> {
        let out = Reg::of(expr.dtype());
        Ok(match expr.node() {
            Node::Binary(op, a, b) => {
                if let Some(cheaper) = strength_reduced(*op, a, b) {
                    return self.step(&cheaper);
                }
                let reg = Reg::of(a.dtype());
                let unsupported = || ExecError::UnsupportedOp { op: op.symbol(), ty: a.ty() };
                let (fns, swap) = binary(*op, reg, self.level).ok_or_else(unsupported)?;
                let (x, y) = (self.expr(a)?, self.expr(b)?);
                let pinned = expr.divisor().is_some_and(|divisor| !divisor.is_nonzero());
                if pinned {
                    self.check_divisor(&y, reg, b.lanes());
                }
                let args = if swap { vec![(y, reg), (x, reg)] } else { vec![(x, reg), (y, reg)] };
                Ok(Step { fns, args, out, pinned })
            }
            Node::Not(a) => {
                let x = self.expr(a)?;
                Ok(Step { fns: not(self.level), args: vec![(x, Reg::Bool)], out, pinned: false })
            }
            Node::Select(cond, a, b) => {
                let fns = select(out.bytes(), self.level);
                let (c, x, y) = (self.expr(cond)?, self.expr(a)?, self.expr(b)?);
                Ok(Step { fns, args: vec![(c, Reg::Bool), (x, out), (y, out)], out, pinned: false })
            }
            Node::Call(intrinsic, args) => {
                let reg = Reg::of(args[0].dtype());
                let unsupported = || ExecError::UnsupportedOp { op: intrinsic.name(), ty: args[0].ty() };
                match call(*intrinsic, reg, self.level).ok_or_else(unsupported)? {
                    Call::Same => Err(self.expr(&args[0])?),
                    Call::Apply(fns) => {
                        let args = args
                            .iter()
                            .map(|a| self.expr(a).map(|v| (v, reg)))
                            .collect::<Result<Vec<_>, _>>()?;
                        Ok(Step { fns, args, out, pinned: false })
                    }
                }
            }
            Node::Cast(a) => {
                let from = Reg::of(a.dtype());
                let x = self.expr(a)?;
                match cast(from, out, self.level) {
                    Some(fns) => Ok(Step { fns, args: vec![(x, from)], out, pinned: false }),
                    None => Err(x),
                }
            }
            Node::Int(_)
            | Node::Float(_)
            | Node::Var(_)
            | Node::IfThenElse(..)
            | Node::Load(..)
            | Node::Ramp(..)
            | Node::Broadcast(_)
            | Node::Let(..) => Err(self.expr(expr)?),
        })
    }

    /// Conversions, which need a second step where the target is a float type of 8 or 16 bits.
    fn conversion(&mut self, a: &Expr, expr: &Expr) -> Result<Value, ExecError> {
        let (from, to, lanes) = (Reg::of(a.dtype()), expr.dtype(), expr.lanes());
        let Some(round) = round_in_f32(to, self.level) else {
            return Ok(match self.step(expr)? {
                Ok(step) => self.apply(&step, lanes),
                Err(same) => same,
            });
        };
        let x = self.expr(a)?;
        if from == Reg::F32 {
            return Ok(self.then(round, x, Reg::F32, Reg::F32, lanes));
        }
        let wide = match from {
            Reg::I64 => self.then(to_f64_odd(Signedness::Signed, self.level), x, from, Reg::F64, lanes),
            Reg::U64 => self.then(to_f64_odd(Signedness::Unsigned, self.level), x, from, Reg::F64, lanes),
            _ => match cast(from, Reg::F64, self.level) {
                Some(fns) => self.then(fns, x, from, Reg::F64, lanes),
                None => x,
            },
        };
        let round = round_from_f64(to, self.level).unwrap_or(round);
        Ok(self.then(round, wide, Reg::F64, Reg::F32, lanes))
    }

    /// One more operation of one operand on a value.
    fn then(&mut self, fns: Fns, value: Value, from: Reg, out: Reg, lanes: u32) -> Value {
        self.apply(&Step { fns, args: vec![(value, from)], out, pinned: false }, lanes)
    }

    fn check_divisor(&mut self, value: &Value, reg: Reg, lanes: u32) {
        let any_zero = any_zero(reg.bytes());
        let instr = match value.place {
            Place::Scalar(a) => Instr::NonZero { any_zero, a, bytes: reg.bytes() as u8 },
            Place::Vector(a) => Instr::VecNonZero { any_zero, a, n: lanes },
        };
        self.emit_here(instr);
    }

    /// The scope in which an operation on those operands belongs, and what it has read.
    fn belongs(&self, step: &Step) -> (usize, Vec<VarId>) {
        let mut reads: Vec<VarId> = step.args.iter().flat_map(|(v, _)| v.reads.iter().copied()).collect();
        reads.sort();
        reads.dedup();
        let pinned = step.pinned || !reads.is_empty();
        let scope = step.args.iter().map(|(v, _)| v.scope).max().unwrap_or(0);
        (if pinned { self.current() } else { self.settled(scope) }, reads)
    }

    fn apply(&mut self, step: &Step, lanes: u32) -> Value {
        let (scope, reads) = self.belongs(step);
        let place = if lanes == 1 {
            let mut slots = [0; 3];
            for (slot, (value, _)) in slots.iter_mut().zip(&step.args) {
                if let Place::Scalar(s) = value.place {
                    *slot = s;
                }
            }
            let d = self.new_slot();
            let [a, b, c] = slots;
            self.emit(scope, Instr::Scalar { op: step.fns.op, f: step.fns.scalar, d, a, b, c });
            Place::Scalar(d)
        } else {
            let [a, b, c] = self.pointers(step, lanes);
            let d = self.new_register(lanes as usize * step.out.bytes());
            self.emit(scope, Instr::Vector { op: step.fns.op, f: step.fns.vector, d, a, b, c, n: lanes });
            Place::Vector(d)
        };
        Value { place, scope, reads, in_memory: false }
    }

    fn pointers(&mut self, step: &Step, lanes: u32) -> [Ptr; 3] {
        let mut ptrs = [0; 3];
        for (ptr, (value, reg)) in ptrs.iter_mut().zip(&step.args) {
            *ptr = self.vector(value, *reg, lanes);
        }
        ptrs
    }

    /// Computes a vector straight into the local memory `d` of `data`, where that is possible: one operation, whose
    /// operands do not lie in that memory or are exactly `d`.
    pub(super) fn operation_into(&mut self, expr: &Expr, d: Ptr, data: VarId) -> Result<bool, ExecError> {
        let one_step = match expr.node() {
            Node::Binary(..) | Node::Not(_) | Node::Select(..) | Node::Call(..) | Node::Cast(_) => {
                round_in_f32(expr.dtype(), self.level).is_none()
            }
            Node::Int(_)
            | Node::Float(_)
            | Node::Var(_)
            | Node::IfThenElse(..)
            | Node::Load(..)
            | Node::Ramp(..)
            | Node::Broadcast(_)
            | Node::Let(..) => false,
        };
        if !one_step || self.known(expr).is_some() {
            return Ok(false);
        }
        let Ok(step) = self.step(expr)? else { return Ok(false) };
        let (scope, _) = self.belongs(&step);
        if scope != self.current() {
            return Ok(false);
        }
        let mut in_place = None;
        for (at, (value, _)) in step.args.iter().enumerate() {
            if value.in_memory && value.reads.contains(&data) {
                let form = step.fns.in_place[at];
                if in_place.is_some() || value.place != Place::Vector(d) || form.is_none() {
                    return Ok(false);
                }
                in_place = form;
            }
        }
        let [a, b, c] = self.pointers(&step, expr.lanes());
        let f = in_place.unwrap_or(step.fns.vector);
        self.emit_here(Instr::Vector { op: step.fns.op, f, d, a, b, c, n: expr.lanes() });
        Ok(true)
    }
}

/// Whether the result of the operation may have more digits than the type of 8 or 16 bits.
fn needs_rounding(expr: &Expr) -> bool {
    !matches!(expr.node(), Node::Binary(BinaryOp::Min | BinaryOp::Max, ..) | Node::Select(..) | Node::Not(_))
}

/// Floored division by a power of two as a shift, its remainder as a mask.
fn strength_reduced(op: BinaryOp, a: &Expr, b: &Expr) -> Option<Expr> {
    let divisor = match b.node() {
        Node::Int(value) => *value,
        Node::Broadcast(inner) => inner.as_int()?,
        _ => return None,
    };
    let usable = divisor > 0 && divisor & (divisor - 1) == 0 && a.dtype().is_int();
    if !usable {
        return None;
    }
    let constant = |value| Expr::int_of(value, a.dtype()).broadcast_to(a.lanes());
    match op {
        BinaryOp::FloorDiv => {
            Some(Expr::binary(BinaryOp::Shr, a.clone(), constant(i128::from(divisor.trailing_zeros()))))
        }
        BinaryOp::FloorMod => Some(Expr::binary(BinaryOp::BitAnd, a.clone(), constant(divisor - 1))),
        _ => None,
    }
}

/// Whether a register holds the type's values without a change: types that are stored as they are computed.
pub(super) fn stored_as_computed(dtype: DType) -> bool {
    Reg::of(dtype).bytes() == dtype.bytes()
}
