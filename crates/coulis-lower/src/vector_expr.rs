//! Vectors in place of scalars: what an expression of one lane is for all lanes at once.

use coulis_ir::hash::FastMap;

use coulis_ir::expr::{BinaryOp, Expr, Intrinsic, Node, Var};
use coulis_ir::visit::{map_children, substitute_expr};

use crate::affine::{difference, product, split, sum, uses};
use crate::eager::Eager;

/// The expression has no vector form; the statement that holds it runs lane by lane.
#[derive(Clone, Copy, Debug)]
pub struct NotAVector;

/// `lanes` iterations of a variable that starts at 0.
#[derive(Clone, Debug)]
pub struct Lanes {
    /// The variable.
    pub var: Var,
    /// Its number of values.
    pub count: u32,
}

impl Lanes {
    /// The element index of every lane: a ramp, or a scalar where all lanes read one element.
    pub fn index(&self, index: &Expr) -> Result<Expr, NotAVector> {
        let parts = split(index, &self.var).ok_or(NotAVector)?;
        if parts.coeff.is_int(0) {
            return Ok(parts.rest);
        }
        Ok(Expr::ramp(parts.rest, parts.coeff, self.count))
    }

    /// The value in every lane; a scalar where it is the same in all. What is evaluated under a condition that lanes
    /// differ in must be total `here`.
    pub fn value(&self, expr: &Expr, here: &Eager) -> Result<Expr, NotAVector> {
        self.go(expr, here, &mut FastMap::default())
    }

    /// [`Lanes::value`], broadcast if it is a scalar.
    pub fn vector(&self, expr: &Expr, here: &Eager) -> Result<Expr, NotAVector> {
        Ok(self.value(expr, here)?.broadcast_to(self.count))
    }

    fn go(&self, expr: &Expr, here: &Eager, memo: &mut FastMap<Expr, Expr>) -> Result<Expr, NotAVector> {
        if let Some(done) = memo.get(expr) {
            return Ok(done.clone());
        }
        let new = self.rewrite(expr, here, memo)?;
        memo.insert(expr.clone(), new.clone());
        Ok(new)
    }

    fn rewrite(&self, expr: &Expr, here: &Eager, memo: &mut FastMap<Expr, Expr>) -> Result<Expr, NotAVector> {
        match expr.node() {
            Node::Int(_) | Node::Float(_) => Ok(expr.clone()),
            Node::Var(var) if *var == self.var => {
                let (zero, one) = (Expr::int_of(0, var.dtype()), Expr::int_of(1, var.dtype()));
                Ok(Expr::ramp(zero, one, self.count))
            }
            Node::Var(_) => Ok(expr.clone()),
            Node::Load(buffer, indices) => match indices.as_slice() {
                [index] => Ok(Expr::load(buffer.clone(), vec![self.index(index)?])),
                _ => Err(NotAVector),
            },
            Node::Binary(BinaryOp::And | BinaryOp::Or, a, b)
                if uses(expr, &self.var) && !here.beside(a).is_total(b) =>
            {
                Err(NotAVector)
            }
            Node::Binary(op, a, b) => {
                let (x, y) = (self.go(a, here, memo)?, self.go(b, here, memo)?);
                Ok(binary(*op, x, y))
            }
            Node::Call(Intrinsic::Likely, args) if uses(expr, &self.var) => self.go(&args[0], here, memo),
            Node::Select(cond, a, b) if expr.decider().is_some() && uses(expr, &self.var) => {
                self.go(&Expr::if_then_else(cond.clone(), a.clone(), b.clone()), here, memo)
            }
            Node::IfThenElse(cond, a, b) if uses(expr, &self.var) => {
                let here_too = here.beside(cond);
                if !here_too.is_total(a) || !here_too.is_total(b) {
                    return Err(NotAVector);
                }
                Ok(Expr::select(self.go(cond, here, memo)?, self.go(a, here, memo)?, self.go(b, here, memo)?))
            }
            Node::Let(var, value, body) => {
                let inlined = substitute_expr(body, &FastMap::from_iter([(var.clone(), value.clone())]));
                self.go(&inlined, here, memo)
            }
            Node::Ramp(..) | Node::Broadcast(_) => Err(NotAVector),
            Node::Not(_) | Node::Cast(_) | Node::Select(..) | Node::IfThenElse(..) | Node::Call(..) => {
                let mut failed = None;
                let new = map_children(expr, &mut |child| match self.go(child, here, memo) {
                    Ok(done) => done,
                    Err(e) => {
                        failed = Some(e);
                        child.clone()
                    }
                });
                failed.map_or(Ok(new), Err)
            }
        }
    }
}

/// `a op b`, with sums and products of integer ramps and scalars kept as ramps.
fn binary(op: BinaryOp, a: Expr, b: Expr) -> Expr {
    let lanes = a.lanes().max(b.lanes());
    if lanes == 1 {
        return Expr::binary(op, a, b);
    }
    let parts = |e: &Expr| match e.node() {
        Node::Ramp(base, stride) => Some((base.clone(), stride.clone())),
        _ if e.lanes() == 1 => Some((e.clone(), Expr::int_of(0, e.dtype()))),
        _ => None,
    };
    if a.dtype().is_int()
        && let (Some((base, stride)), Some((base2, stride2))) = (parts(&a), parts(&b))
    {
        let folded = match op {
            BinaryOp::Add => Some((sum(base, base2), sum(stride, stride2))),
            BinaryOp::Sub => Some((difference(base, base2), difference(stride, stride2))),
            BinaryOp::Mul if b.lanes() == 1 => Some((product(base, b.clone()), product(stride, b.clone()))),
            BinaryOp::Mul if a.lanes() == 1 => Some((product(base2, a.clone()), product(stride2, a.clone()))),
            _ => None,
        };
        if let Some((base, stride)) = folded {
            return if stride.is_int(0) { base } else { Expr::ramp(base, stride, lanes) };
        }
    }
    Expr::binary(op, a, b)
}
