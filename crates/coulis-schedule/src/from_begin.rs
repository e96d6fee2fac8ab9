//! Positions in runs, counted from where a thread's run begins.
//!
//! Where rows are walked as one, the lanes of a thread stand in different rows, so that each of them would count the
//! position of every element for itself, in registers of its own. What differs is the same in all of a run: runs keep
//! the rest, which all lanes share, and the difference is added where they are closed. It is legal for a field that
//! is only handed on, compared with another of its kind, and asked whether it is negative, which says that there is
//! no position.

use coulis_ir::hash::FastMap;
use coulis_ir::visit::{substitute_expr, uses_any};
use coulis_ir::{BinaryOp, Expr, Node, Rewalk, Var};
use coulis_tensor::QuickFold;

use crate::fold;
use crate::infer::{self, Loop};
use crate::nest::Builder;
use crate::stage::Stage;

/// A field of runs that is counted from their begin.
pub(crate) struct FromBegin {
    /// Which one.
    pub(crate) field: usize,
    /// What an element has in place of its position, over the loops.
    pub(crate) source: Expr,
    /// What is to be added, over the loops around the run and the data axes.
    pub(crate) base: Expr,
}

impl FromBegin {
    /// The field of a run as it would be otherwise.
    pub(crate) fn restored(&self, run: &Expr) -> Expr {
        let is_none = run.clone().lt(fold::int(0, run.dtype()));
        Expr::select(is_none, run.clone(), run.clone() + fold::cast(&self.base, run.dtype()))
    }
}

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

/// Whether a field of runs is a position everywhere before they are closed.
fn is_position(quick: &QuickFold, field: usize) -> bool {
    let n = quick.identity.len();
    let n_state = quick.close.params.len() - n;
    let hands_on = |body: &[Expr], positions: &[Var]| {
        body.iter().enumerate().all(|(at, e)| match kind(e, positions) {
            Some(Kind::Position) => at == field,
            Some(Kind::Nowhere) => true,
            Some(Kind::Same) => at != field,
            None => false,
        })
    };
    let of_both = |params: &[Var]| [params[field].clone(), params[n + field].clone()];
    let of_run = |params: &[Var]| [params[n_state + field].clone()];
    let is_kept = |rewalk: &Rewalk| {
        let needed = kind(&rewalk.needed.body[0], &of_run(&rewalk.needed.params));
        needed == Some(Kind::Same)
            && hands_on(&rewalk.start.body, &of_run(&rewalk.start.params))
            && hands_on(&rewalk.step.body, &of_both(&rewalk.step.params))
    };
    kind(&quick.identity[field], &[]) == Some(Kind::Nowhere)
        && hands_on(&quick.step.body, &of_both(&quick.step.params))
        && quick.rewalks.iter().all(is_kept)
}

impl Builder<'_> {
    /// The fields of a thread's runs that are counted from their begin: positions of which lanes have different ones,
    /// by what is the same for all elements of a run. `along`: the loops of a run over the reduced axes; `lanes`:
    /// those over data axes.
    pub(crate) fn counted_from_begin(
        &self,
        stage: &Stage,
        quick: &QuickFold,
        along: &[&Loop],
        lanes: &[&Loop],
    ) -> Vec<FromBegin> {
        let at = self.at(stage);
        if self.launches.of(at.root).is_empty() || along.iter().any(|l| stage.origin(&l.leaf).data) {
            return Vec::new();
        }
        let vars: Vec<Var> = lanes.iter().map(|l| l.var.clone()).collect();
        let begin: FastMap<Var, Expr> =
            along.iter().map(|l| (l.var.clone(), fold::int(0, l.var.dtype()))).collect();
        let reduced: FastMap<Var, Expr> = (stage.reduce_axes().iter())
            .filter_map(|axis| Some((axis.var().clone(), at.absolutes.get(axis.var())?.clone())))
            .map(|(var, value)| (var, substitute_expr(&value, &begin)))
            .collect();
        let mut known = at.known.clone();
        infer::bind(&mut known, &at.loops);
        let is_natural = |e: &Expr| known.can_prove(&e.clone().ge(fold::int(0, e.dtype())));
        let counted = |field: usize| {
            let source = &quick.sources[field];
            let position = match source.node() {
                Node::Cast(position) => position,
                _ => source,
            };
            let are_ints = [source, position].iter().all(|e| e.dtype().is_int() && e.lanes() == 1);
            if !are_ints || source.reads_memory() || !is_position(quick, field) {
                return None;
            }
            let here = substitute_expr(position, &at.absolutes);
            let first = substitute_expr(&here, &begin);
            let since = known.simplify(&(here - first.clone()));
            let is_shared = uses_any(&first, &vars) && !uses_any(&since, &vars);
            (is_shared && is_natural(&since) && is_natural(&first)).then(|| FromBegin {
                field,
                source: fold::cast(&since, source.dtype()),
                base: substitute_expr(position, &reduced),
            })
        };
        (0..quick.identity.len()).filter_map(counted).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coulis_ir::DType;

    #[test]
    fn a_position_may_be_handed_on_compared_with_its_kind_and_asked_whether_there_is_one() {
        let [old, new, value] = ["old", "new", "value"].map(|name| Var::new(name, DType::I32));
        let positions = [old.clone(), new.clone()];
        let (a, b, v) = (old.expr(), new.expr(), value.expr());
        let zero = || fold::int(0, DType::I32);
        let none = fold::int(-1, DType::I32);
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
        check(a.clone().lt(fold::int(7, DType::I32)), None);
        check(a.clone().cast(DType::I64), None);
    }
}
