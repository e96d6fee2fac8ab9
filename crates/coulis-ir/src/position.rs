//! Fields of runs that are positions: told from what is done with them, and kept in another type.
//!
//! A position that is only handed on, compared with another of its kind, and asked whether it is negative, which says
//! that there is none, may be counted from anywhere while a run lasts, in any type that holds the counts. That is less
//! work where the count is the same for all lanes, or as wide as the values that choose among positions: their comparisons
//! are masks of that width.

use crate::dtype::DType;
use crate::expr::{Expr, Node};
use crate::hash::FastMap;
use crate::op::BinaryOp;
use crate::reducer::{Lambda, QuickStep, Rewalk};
use crate::var::Var;
use crate::visit::{for_each_expr, map_children, substitute_expr, uses_any};

/// What an expression is if positions are counted from elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// The same.
    Same,
    /// A negative number, which stands for no position.
    Nowhere,
    /// A position, or no position.
    Position,
}

/// What it is where these variables are positions; `None` where that cannot be said.
fn kind(expr: &Expr, positions: &[Var]) -> Option<Kind> {
    if let Some(value) = expr.as_int() {
        return Some(if value < 0 { Kind::Nowhere } else { Kind::Same });
    }
    if !uses_any(expr, positions) {
        return Some(Kind::Same);
    }
    match expr.node() {
        Node::Var(_) => Some(Kind::Position),
        Node::Binary(BinaryOp::Lt | BinaryOp::Ge, a, zero) if zero.is_int(0) => {
            kind(a, positions).map(|_| Kind::Same)
        }
        Node::Binary(op, a, b) => {
            let both = [kind(a, positions)?, kind(b, positions)?];
            let are_positions = both.iter().all(|k| *k == Kind::Position);
            (op.is_comparison() && are_positions || !both.contains(&Kind::Position)).then_some(Kind::Same)
        }
        Node::Select(condition, a, b) => {
            let is_told = kind(condition, positions)? != Kind::Position;
            let either = [kind(a, positions)?, kind(b, positions)?];
            match (either.contains(&Kind::Position), either.contains(&Kind::Same)) {
                (true, true) => None,
                (true, false) => is_told.then_some(Kind::Position),
                (false, _) => is_told.then_some(Kind::Same),
            }
        }
        _ => {
            let mut is_same = true;
            expr.each_child(|child| is_same &= kind(child, positions).is_some_and(|k| k != Kind::Position));
            is_same.then_some(Kind::Same)
        }
    }
}

/// What of a quick step is done before a run is closed.
#[derive(Clone, Copy, Debug)]
pub struct RunParts<'a> {
    /// State of a run of no elements, one constant a field.
    pub identity: &'a [Expr],
    /// State of a run after one more element.
    pub step: &'a Lambda,
    /// What more walks over its elements add.
    pub rewalks: &'a [Rewalk],
    /// Fields of the state that runs are closed into.
    pub n_state: usize,
}

impl RunParts<'_> {
    /// The parameters of walks that are the field of one run, and of steps that are that of two.
    fn of_walk(&self, lambda: &Lambda, field: usize) -> [Var; 1] {
        [lambda.params[self.n_state + field].clone()]
    }

    fn of_step(&self, lambda: &Lambda, field: usize) -> [Var; 2] {
        [lambda.params[field].clone(), lambda.params[self.identity.len() + field].clone()]
    }

    /// Whether a field of runs is a position everywhere before they are closed.
    pub fn is_position(&self, field: usize) -> bool {
        let hands_on = |body: &[Expr], positions: &[Var]| {
            body.iter().enumerate().all(|(at, e)| match kind(e, positions) {
                Some(Kind::Position) => at == field,
                Some(Kind::Nowhere) => true,
                Some(Kind::Same) => at != field,
                None => false,
            })
        };
        let is_kept = |rewalk: &Rewalk| {
            let needed = kind(&rewalk.needed.body[0], &self.of_walk(&rewalk.needed, field));
            let is_same = |l: &Lambda| kind(&l.body[0], &self.of_walk(l, field)) == Some(Kind::Same);
            needed == Some(Kind::Same)
                && rewalk.gives_up.as_ref().is_none_or(is_same)
                && hands_on(&rewalk.start.body, &self.of_walk(&rewalk.start, field))
                && hands_on(&rewalk.step.body, &self.of_step(&rewalk.step, field))
        };
        kind(&self.identity[field], &[]) == Some(Kind::Nowhere)
            && hands_on(&self.step.body, &self.of_step(self.step, field))
            && self.rewalks.iter().all(is_kept)
    }

    /// The type in which vectors best count a field that is a position: as wide as the values that choose, where those are
    /// no wider than it. `None` where the field's own type is best.
    pub fn counter(&self, field: usize) -> Option<DType> {
        let own = self.identity[field].dtype();
        if !own.is_signed_int() || !self.is_position(field) {
            return None;
        }
        let Node::Select(condition, ..) = self.step.body[field].node() else { return None };
        let positions = self.of_step(self.step, field);
        let mut widest = 0;
        for_each_expr(condition, &mut |e: &Expr| {
            if let Node::Var(var) = e.node()
                && !positions.contains(var)
            {
                widest = widest.max(var.dtype().bytes());
            }
        });
        let counter = match widest {
            1 => DType::I8,
            2 => DType::I16,
            4 => DType::I32,
            _ => return None,
        };
        (counter.bytes() <= own.bytes()).then_some(counter)
    }

    /// The same with a field that is a position of another signed type: identity, step and walks. `None` where that
    /// cannot be said.
    pub fn retyped(&self, field: usize, dtype: DType) -> Option<(Expr, Lambda, Vec<Rewalk>)> {
        let of_walk = |lambda: &Lambda| retyped(lambda, &self.of_walk(lambda, field), field, dtype);
        let of_step = |lambda: &Lambda| retyped(lambda, &self.of_step(lambda, field), field, dtype);
        let walks = self.rewalks.iter().map(|walk| {
            Some(Rewalk {
                needed: retyped(&walk.needed, &self.of_walk(&walk.needed, field), usize::MAX, dtype)?,
                start: of_walk(&walk.start)?,
                step: of_step(&walk.step)?,
                backwards: walk.backwards,
                gives_up: match &walk.gives_up {
                    Some(lambda) => Some(retyped(lambda, &self.of_walk(lambda, field), usize::MAX, dtype)?),
                    None => None,
                },
            })
        });
        let walks: Option<Vec<Rewalk>> = walks.collect();
        Some((nowhere(&self.identity[field], dtype)?, of_step(self.step)?, walks?))
    }
}

impl QuickStep {
    /// What is done before a run is closed.
    pub fn run_parts(&self) -> RunParts<'_> {
        let n_state = self.close.params.len() - self.identity.len();
        RunParts { identity: &self.identity, step: &self.step, rewalks: &self.rewalks, n_state }
    }

    /// The longest run in which positions are counted in the types that vectors do that best in.
    pub fn most_counted(&self) -> i64 {
        let parts = self.run_parts();
        let counters = (0..self.identity.len()).filter_map(|at| parts.counter(at));
        counters.map(most_counted).min().unwrap_or(i64::MAX)
    }

    /// The types of the fields of runs of at most so many steps on vectors: positions are counted in those of the values
    /// that choose among them.
    pub fn vector_dtypes(&self, max_steps: i64) -> Vec<DType> {
        let parts = self.run_parts();
        let of = |(at, e): (usize, &Expr)| {
            let counter = parts.counter(at).filter(|counter| max_steps <= most_counted(*counter));
            counter.unwrap_or_else(|| e.dtype())
        };
        self.identity.iter().enumerate().map(of).collect()
    }
}

/// The steps that a signed type counts, from 0 on.
pub fn most_counted(dtype: DType) -> i64 {
    1i64.checked_shl(8 * dtype.bytes() as u32 - 1).filter(|most| *most > 0).unwrap_or(i64::MAX)
}

/// A lambda with parameters, and one of its results, of another type.
fn retyped(lambda: &Lambda, positions: &[Var], field: usize, dtype: DType) -> Option<Lambda> {
    let new: FastMap<Var, Expr> =
        positions.iter().map(|var| (var.clone(), Var::new(var.name(), dtype).expr())).collect();
    let body = lambda.body.iter().enumerate().map(|(at, e)| {
        let expr = of_type(e, positions, &new, dtype)?;
        if at == field && expr.dtype() != dtype { nowhere(&expr, dtype) } else { Some(expr) }
    });
    let body: Option<Vec<Expr>> = body.collect();
    let params = lambda.params.iter();
    let params = params.map(|p| new.get(p).and_then(Expr::as_var).unwrap_or(p).clone()).collect();
    Some(Lambda { params, body: body? })
}

/// A negative constant in another signed type.
fn nowhere(expr: &Expr, dtype: DType) -> Option<Expr> {
    expr.as_int().filter(|value| *value < 0).map(|_| Expr::constant(-1, dtype))
}

/// An expression whose positions are variables of another type; `None` where something else would have to be.
fn of_type(expr: &Expr, positions: &[Var], new: &FastMap<Var, Expr>, dtype: DType) -> Option<Expr> {
    if !uses_any(expr, positions) {
        return Some(expr.clone());
    }
    let both = |a: &Expr, b: &Expr| {
        let [a, b] = [of_type(a, positions, new, dtype)?, of_type(b, positions, new, dtype)?];
        let beside = |e: &Expr| e.as_int().map(|value| Expr::constant(value.max(-1), dtype));
        match (a.dtype() == dtype, b.dtype() == dtype) {
            (true, false) => beside(&b).map(|b| (a, b)),
            (false, true) => beside(&a).map(|a| (a, b)),
            (true, true) | (false, false) => Some((a, b)),
        }
    };
    Some(match expr.node() {
        Node::Var(_) => substitute_expr(expr, new),
        Node::Binary(op, a, b) => {
            let (a, b) = both(a, b)?;
            Expr::binary(*op, a, b)
        }
        Node::Select(condition, a, b) => {
            let (a, b) = both(a, b)?;
            Expr::select(of_type(condition, positions, new, dtype)?, a, b)
        }
        _ => {
            let mut fails = false;
            let expr = map_children(expr, &mut |child| {
                of_type(child, positions, new, dtype).unwrap_or_else(|| {
                    fails = true;
                    child.clone()
                })
            });
            return (!fails).then_some(expr);
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_may_be_handed_on_compared_with_its_kind_and_asked_whether_there_is_one() {
        let [old, new, value] = ["old", "new", "value"].map(|name| Var::new(name, DType::I32));
        let positions = [old.clone(), new.clone()];
        let (a, b, v) = (old.expr(), new.expr(), value.expr());
        let zero = || Expr::constant(0, DType::I32);
        let none = Expr::constant(-1, DType::I32);
        let is_none = || a.clone().lt(zero());
        let check = |expr: Expr, want| assert_eq!(kind(&expr, &positions), want, "{expr:?}");
        check(Expr::select(is_none().or(v.clone().gt(zero())), b.clone(), a.clone()), Some(Kind::Position));
        check(Expr::select(v.clone().gt(zero()), b.clone(), none.clone()), Some(Kind::Position));
        check(b.clone().lt(a.clone()).and(v.clone().gt(zero())), Some(Kind::Same));
        check(Expr::select(b.clone().lt(a.clone()), v.clone(), zero()), Some(Kind::Same));
        check(none, Some(Kind::Nowhere));
        // A number is no position, and neither is what is made of one.
        check(Expr::select(is_none(), b.clone(), v.clone()), None);
        check(Expr::select(is_none(), b.clone(), zero()), None);
        check(a.clone() + b.clone(), None);
        check(a.clone().lt(v.clone()), None);
        check(a.clone().lt(Expr::constant(7, DType::I32)), None);
        check(a.clone().cast(DType::I64), None);
    }
}
