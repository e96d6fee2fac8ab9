//! Expressions: one operand a vector lane.

use std::collections::HashMap;

use coulis_ir::visit::for_each_read;
use coulis_ir::{BinaryOp, DType, Expr, MemScope, Node, Var};

use super::Compiler;
use crate::code::{Instr, Operand, Source, is_harmless};
use crate::error::SimError;
use crate::lanes::{Call, F1, F2, F3, binary, call, cast, not};

impl<'k, const W: usize> Compiler<'k, '_, W> {
    /// The value of an operand that is a constant.
    pub(super) fn constant_value(&self, operand: Operand) -> Option<u64> {
        match operand.source() {
            Source::Constant(n) => Some(self.code.constants[n][0]),
            Source::Register(_) | Source::Slot(_) => None,
        }
    }

    /// The operand of a scalar.
    pub(super) fn scalar(&mut self, expr: &Expr) -> Result<Operand, SimError> {
        let all = self.expr(expr)?;
        Ok(all[0])
    }

    /// The operands of an expression, one a vector lane.
    pub(super) fn expr(&mut self, expr: &Expr) -> Result<Vec<Operand>, SimError> {
        if let Some(found) = self.memo.iter().rev().find_map(|scope| scope.get(expr)) {
            return Ok(found.clone());
        }
        let operands = self.node(expr)?;
        if let Some(scope) = self.memo.last_mut() {
            scope.insert(expr.clone(), operands.clone());
        }
        Ok(operands)
    }

    fn node(&mut self, expr: &Expr) -> Result<Vec<Operand>, SimError> {
        let lanes = expr.lanes() as usize;
        Ok(match expr.node() {
            Node::Int(value) => vec![self.constant(*value as u64)],
            Node::Float(bits) => {
                let wide = self.constant(*bits);
                vec![self.map1(cast::<W>(DType::F64, expr.dtype()), wide)]
            }
            Node::Var(var) => vec![self.var(var)?],
            Node::Binary(op, a, b) if self.stops_early(*op, b) => vec![self.short_circuit(*op, a, b)?],
            Node::Binary(op, a, b) => {
                let (x, y) = (self.expr(a)?, self.expr(b)?);
                let pairs = x.into_iter().zip(y);
                pairs.map(|(x, y)| self.binary(*op, a.dtype(), x, y)).collect::<Result<_, _>>()?
            }
            Node::Not(a) => self.expr(a)?.into_iter().map(|x| self.map1(not, x)).collect(),
            Node::Cast(a) => {
                let f = cast::<W>(a.dtype(), expr.dtype());
                self.expr(a)?.into_iter().map(|x| self.map1(f, x)).collect()
            }
            Node::Select(c, a, b) if lanes > 1 || expr.decider().is_none() => {
                let c = self.expr(c)?;
                let a = self.side(a, |_, i| c[i])?;
                let b = self.side(b, |s, i| s.map1(not, c[i]))?;
                (0..lanes).map(|i| self.choose(c[i], a[i], b[i])).collect()
            }
            Node::Select(c, a, b) | Node::IfThenElse(c, a, b) => {
                let cond = self.scalar(c)?;
                let d = self.new_registers(1);
                let arms = if is_private(a) && is_private(b) { Arms::Private } else { Arms::Shared };
                self.either((cond, d), arms, |s| s.scalar(a), |s| s.scalar(b))?;
                vec![Operand::register(d)]
            }
            Node::Call(intrinsic, args) => {
                let f = call::<W>(*intrinsic, args[0].dtype());
                let f = f.ok_or_else(|| unsupported(intrinsic.name(), &args[0]))?;
                let args = args.iter().map(|a| self.expr(a)).collect::<Result<Vec<_>, _>>()?;
                let arg = |n: usize, i: usize| args.get(n).map_or(args[0][i], |a| a[i]);
                (0..lanes)
                    .map(|i| match f {
                        Call::Same => arg(0, i),
                        Call::One(f) => self.map1(f, arg(0, i)),
                        Call::Two(f) => self.map2(f, arg(0, i), arg(1, i)),
                        Call::Three(f) => self.map3(f, [arg(0, i), arg(1, i), arg(2, i)]),
                    })
                    .collect()
            }
            Node::Load(buffer, indices) => {
                let at = self.index(buffer, indices)?;
                self.load(buffer, &at)?
            }
            Node::Ramp(base, stride) => {
                let dtype = expr.dtype();
                let (base, stride) = (self.scalar(base)?, self.scalar(stride)?);
                let mut out = vec![base];
                for _ in 1..lanes {
                    let last = out[out.len() - 1];
                    out.push(self.binary(BinaryOp::Add, dtype, last, stride)?);
                }
                out
            }
            Node::Broadcast(a) => vec![self.scalar(a)?; lanes],
            Node::Let(var, value, body) => {
                let value = self.scalar(value)?;
                let value = self.kept(value);
                let shadowed = self.vars.insert(var.id(), value);
                self.memo.push(HashMap::new());
                let result = self.expr(body);
                self.memo.pop();
                match shadowed {
                    Some(old) => self.vars.insert(var.id(), old),
                    None => self.vars.remove(&var.id()),
                };
                result?
            }
        })
    }

    /// One side of a choice: it is evaluated in each lane, and used where the choice takes it. So memory that nothing has
    /// written may be read in the others, as where a vector reads the neighbours of an edge.
    fn side(
        &mut self,
        side: &Expr,
        takes: impl Fn(&mut Self, usize) -> Operand,
    ) -> Result<Vec<Operand>, SimError> {
        let mut reads = false;
        for_each_read(side, &mut |_, _| reads = true);
        if !reads {
            return self.expr(side);
        }
        let around = self.taken(side.lanes() as usize)?.into_iter().enumerate();
        let taken = around.map(|(i, around)| {
            let here = takes(self, i);
            self.binary(BinaryOp::And, DType::Bool, around, here)
        });
        let taken = taken.collect::<Result<_, _>>()?;
        let around = std::mem::replace(&mut self.taken, taken);
        self.memo.push(HashMap::new());
        let value = self.expr(side);
        self.memo.pop();
        self.taken = around;
        value
    }

    /// The value where local memory may change before it is used.
    fn kept(&mut self, a: Operand) -> Operand {
        match a.source() {
            Source::Slot(_) => {
                let d = self.new_registers(1);
                self.emit(Instr::Copy { d, a });
                Operand::register(d)
            }
            Source::Register(_) | Source::Constant(_) => a,
        }
    }

    fn var(&mut self, var: &Var) -> Result<Operand, SimError> {
        if let Some(found) = self.vars.get(&var.id()) {
            return Ok(*found);
        }
        let value = self.bindings.get(&var.id()).copied();
        let value = value.ok_or_else(|| SimError::Undeclared { name: var.name().to_owned() })?;
        Ok(self.constant(var.dtype().wrap_int(i128::from(value)) as u64))
    }

    /// Whether the second operand is looked at only where the first does not decide, as the text of `and` and `or` has it.
    fn stops_early(&self, op: BinaryOp, b: &Expr) -> bool {
        if !matches!(op, BinaryOp::And | BinaryOp::Or) || b.lanes() != 1 || b.dtype() != DType::Bool {
            return false;
        }
        let mut harmless = true;
        coulis_ir::visit::for_each_expr(b, &mut |e| harmless &= is_harmless(e));
        !harmless
    }

    fn short_circuit(&mut self, op: BinaryOp, a: &Expr, b: &Expr) -> Result<Operand, SimError> {
        let cond = self.scalar(a)?;
        let d = self.new_registers(1);
        let decided = self.constant(u64::from(op == BinaryOp::Or));
        let arms = if is_private(b) { Arms::Private } else { Arms::Shared };
        match op {
            BinaryOp::And => self.either((cond, d), arms, |s| s.scalar(b), |_| Ok(decided))?,
            _ => self.either((cond, d), arms, |_| Ok(decided), |s| s.scalar(b))?,
        }
        Ok(Operand::register(d))
    }

    /// Two ways to a value, each under its part of the active lanes. Which one is taken decides more than the value
    /// where the arms look at memory of others; else a value that is decided by nothing is no worse than its parts.
    fn either(
        &mut self,
        (cond, d): (Operand, u32),
        arms: Arms,
        then: impl FnOnce(&mut Self) -> Result<Operand, SimError>,
        otherwise: impl FnOnce(&mut Self) -> Result<Operand, SimError>,
    ) -> Result<(), SimError> {
        let merge = |s: &mut Self, value: &mut dyn FnMut(&mut Self) -> Result<Operand, SimError>| {
            s.memo.push(HashMap::new());
            let a = value(s)?;
            s.memo.pop();
            s.emit(Instr::Merge { d, a });
            Ok(())
        };
        let (mut then, mut otherwise) = (Some(then), Some(otherwise));
        let missing = || SimError::UnsupportedStmt { stmt: "if" };
        self.branch(
            cond,
            arms,
            |s| merge(s, &mut |s| then.take().ok_or_else(missing)?(s)),
            |s| merge(s, &mut |s| otherwise.take().ok_or_else(missing)?(s)),
        )?;
        if arms == Arms::Private {
            self.emit(Instr::Taint { d, by: cond });
        }
        Ok(())
    }

    pub(super) fn binary(
        &mut self,
        op: BinaryOp,
        dtype: DType,
        a: Operand,
        b: Operand,
    ) -> Result<Operand, SimError> {
        let f = binary::<W>(op, dtype).ok_or_else(|| SimError::UnsupportedOp {
            op: format!("{op:?}"),
            ty: coulis_ir::Ty::scalar(dtype),
        })?;
        let value = self.constant_value(b);
        if op.is_division() && !dtype.is_float() && value.is_none_or(|v| v == 0) {
            self.emit(Instr::Divisor { b });
        }
        Ok(self.map2(f, a, b))
    }

    fn map1(&mut self, f: F1<W>, a: Operand) -> Operand {
        if let Some(a) = self.constant_value(a) {
            return self.constant(f(&[a; W])[0]);
        }
        let d = self.new_registers(1);
        self.emit(Instr::Map1 { f, d, a });
        Operand::register(d)
    }

    fn map2(&mut self, f: F2<W>, a: Operand, b: Operand) -> Operand {
        if let (Some(a), Some(b)) = (self.constant_value(a), self.constant_value(b)) {
            return self.constant(f(&[a; W], &[b; W])[0]);
        }
        let d = self.new_registers(1);
        self.emit(Instr::Map2 { f, d, a, b });
        Operand::register(d)
    }

    fn choose(&mut self, cond: Operand, a: Operand, b: Operand) -> Operand {
        if let Some(cond) = self.constant_value(cond) {
            return if cond != 0 { a } else { b };
        }
        let d = self.new_registers(1);
        self.emit(Instr::Select { d, cond, a, b });
        Operand::register(d)
    }

    fn map3(&mut self, f: F3<W>, [a, b, c]: [Operand; 3]) -> Operand {
        let values = (self.constant_value(a), self.constant_value(b), self.constant_value(c));
        if let (Some(a), Some(b), Some(c)) = values {
            return self.constant(f(&[a; W], &[b; W], &[c; W])[0]);
        }
        let d = self.new_registers(1);
        self.emit(Instr::Map3 { f, d, a, b, c });
        Operand::register(d)
    }
}

fn unsupported(op: &str, arg: &Expr) -> SimError {
    SimError::UnsupportedOp { op: op.to_owned(), ty: arg.ty() }
}

/// What is behind a branch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Arms {
    /// Values of the thread's own, which cannot fail.
    Private,
    /// Effects, or memory that other threads see.
    Shared,
}

/// Whether a value is made of the thread's own memory at constant places, by operations that cannot fail.
fn is_private(expr: &Expr) -> bool {
    let own = match expr.node() {
        Node::Load(buffer, indices) => {
            buffer.scope == MemScope::Local && indices.iter().all(|i| i.as_int().is_some())
        }
        Node::IfThenElse(..) => true,
        _ => is_harmless(expr),
    };
    own && expr.children().all(is_private)
}
