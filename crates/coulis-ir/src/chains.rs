//! Runs in several chains: elements are folded in turn by as many states of a run, which are one where it is closed.
//!
//! Chains share fields that a step leaves be, and each has its own of those that a step adds to: a chain but the first starts
//! from the identity of these. Their sums are added by pairs where the run ends, in the type of the run, so that a run of chains
//! ends as one of a chain does. Which reducers that is legal for is told by the form of their steps, and how many chains keep
//! their bound and their range is what they say ([`QuickStep::max_joined`]). Source: contract N12.

use crate::hash::FastMap;
use crate::visit::{substitute_expr, uses_any};
use crate::{BinaryOp, Expr, Intrinsic, Lambda, Node, QuickStep, Rewalk, Var};

/// What a field of a run in chains is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Joined {
    /// The same in all of them.
    Kept,
    /// The sum of those of all.
    Sum,
}

impl Joined {
    /// How many of it there are.
    pub fn count(self, n_chains: usize) -> usize {
        match self {
            Joined::Kept => 1,
            Joined::Sum => n_chains,
        }
    }
}

/// What each field of a run in chains is; `None` where the fold has no such form, or nothing would be added.
pub fn joined(identity: &[Expr], step: &Lambda, rewalks: &[Rewalk]) -> Option<Vec<Joined>> {
    let n = identity.len();
    let left = &step.params[..n];
    let is_kept = |i: usize| step.body[i] == left[i].expr();
    let own: Vec<Var> = (0..n).filter(|&i| !is_kept(i)).map(|i| left[i].clone()).collect();
    let field = |i: usize| {
        if is_kept(i) {
            return Some(Joined::Kept);
        }
        let now = left[i].expr();
        let adds = match step.body[i].node() {
            Node::Binary(BinaryOp::Add, a, b) => {
                *a == now && !uses_any(b, &own) || *b == now && !uses_any(a, &own)
            }
            Node::Call(Intrinsic::Fma, args) => {
                args[2] == now && !args[..2].iter().any(|e| uses_any(e, &own))
            }
            _ => false,
        };
        let starts_from_zero = identity[i] == Expr::constant(0, identity[i].dtype());
        (adds && starts_from_zero).then_some(Joined::Sum)
    };
    let fields: Vec<Joined> = (0..n).map(field).collect::<Option<_>>()?;
    // A second walk over the elements of a chain only leaves marks, by which the run is given up.
    let only_marks = |walk: &Rewalk| {
        let run = walk.start.params[walk.start.params.len() - n..].iter().map(Var::expr);
        walk.gives_up.is_some() && run.eq(walk.start.body.iter().cloned())
    };
    (fields.contains(&Joined::Sum) && rewalks.iter().all(only_marks)).then_some(fields)
}

/// A lambda over a state and a run as one over a state and a run in chains: in place of each field its variables in them.
pub fn of_chains(lambda: &Lambda, joined: &[Joined], n_chains: usize) -> Lambda {
    let (state, run) = lambda.params.split_at(lambda.params.len() - joined.len());
    let each: Vec<Vec<Var>> = (run.iter().zip(joined))
        .map(|(var, joined)| match joined {
            Joined::Kept => vec![var.clone()],
            Joined::Sum => (0..n_chains).map(|c| var.renamed(&format!("{}_{c}", var.name()))).collect(),
        })
        .collect();
    let sums: FastMap<Var, Expr> =
        run.iter().zip(&each).filter_map(|(var, each)| Some((var.clone(), sum(each)?))).collect();
    let body = lambda.body.iter().map(|e| substitute_expr(e, &sums)).collect();
    Lambda { params: state.iter().chain(each.iter().flatten()).cloned().collect(), body }
}

/// The sum of some variables, by pairs: each is rounded as often as pairs are brought together.
fn sum(vars: &[Var]) -> Option<Expr> {
    match vars {
        [] => None,
        [var] => Some(var.expr()),
        _ => {
            let (first, second) = vars.split_at(vars.len().div_ceil(2));
            Some(sum(first)? + sum(second)?)
        }
    }
}

impl QuickStep {
    /// What each field of a run in chains is; `None` where there are no such runs.
    pub fn joined(&self) -> Option<Vec<Joined>> {
        let fields = joined(&self.identity, &self.step, &self.rewalks);
        fields.filter(|_| self.max_joined > self.max_steps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    fn var(name: &str, dtype: DType) -> Var {
        Var::new(name, dtype)
    }

    /// A pivot, a sum and a sum of squares about the pivot, closed into a sum by `close` of those of the run.
    fn moments(close: impl Fn([Expr; 3]) -> Expr) -> ([Expr; 3], Lambda, Lambda) {
        let f = DType::F32;
        let [p, s, q, x, y, z] = ["p", "s", "q", "x", "y", "z"].map(|name| var(name, f));
        let d = &y.expr() - &p.expr();
        let squares = Expr::call(Intrinsic::Fma, vec![d.clone(), d, q.expr()]);
        let step = Lambda {
            params: vec![p.clone(), s.clone(), q.clone(), x, y.clone(), z],
            body: vec![p.expr(), &s.expr() + &y.expr(), squares],
        };
        let total = var("t", DType::F64);
        let body = vec![&total.expr() + &close([&p, &s, &q].map(Var::expr))];
        ([0, 1, 2].map(|_| Expr::constant(0, f)), step, Lambda { params: vec![total, p, s, q], body })
    }

    #[test]
    fn what_a_step_adds_to_is_joined_by_pairs_in_the_type_of_the_run() {
        let wide = |e: &Expr| e.clone().cast(DType::F64);
        let (identity, step, close) = moments(|[p, s, q]| &(&wide(&p) * &wide(&s)) + &wide(&q));
        let fields = joined(&identity, &step, &[]).expect("it has the form");
        assert_eq!(fields, [Joined::Kept, Joined::Sum, Joined::Sum]);
        let chained = of_chains(&close, &fields, 4);
        let args: Vec<Expr> = chained.params.iter().map(Var::expr).collect();
        let [t, p, s @ .., _, _, _, _] = &args[..] else { panic!("{args:?}") };
        let sum = |of: &[Expr]| wide(&(&(&of[0] + &of[1]) + &(&of[2] + &of[3])));
        assert_eq!(chained.body, [t + &(&(&wide(p) * &sum(s)) + &sum(&args[6..]))]);
    }

    #[test]
    fn a_step_that_reads_what_it_changes_has_no_chains() {
        let wide = |e: Expr| e.cast(DType::F64);
        let (identity, step, _) = moments(|[p, s, q]| &(&wide(p) + &wide(s)) + &wide(q));
        assert!(joined(&identity, &step, &[]).is_some());
        let mut other = step.clone();
        other.body[2] = &step.params[2].expr() + &step.params[1].expr();
        assert_eq!(joined(&identity, &other, &[]), None);
        let from_one = [identity[0].clone(), Expr::constant(1, DType::F32), identity[2].clone()];
        assert_eq!(joined(&from_one, &step, &[]), None);
    }
}
