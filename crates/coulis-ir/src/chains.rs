//! Runs in several chains: elements are folded in turn by as many states of a run, which are one where it is closed.
//!
//! Chains share fields that a step leaves be, and each has its own of those that a step adds to: a chain but the first starts
//! from the identity of these. Their sums are added where the run is closed, those of floats in the wider type that they are
//! read in, which neither overflows nor adds to what chains rounded. Which reducers that is legal for is told by the form of their
//! steps, and how many chains keep their bound is what they say ([`QuickStep::max_joined`]). Source: contract N12.

use crate::hash::FastMap;
use crate::visit::{for_each_expr, map_children, uses_any};
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
pub fn joined(identity: &[Expr], step: &Lambda, close: &Lambda, rewalks: &[Rewalk]) -> Option<Vec<Joined>> {
    let n = identity.len();
    let (left, n_state) = (&step.params[..n], close.params.len() - n);
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
        let dtype = identity[i].dtype();
        let is_wide = || close.body.iter().all(|e| is_read_wide(e, &close.params[n_state + i]));
        let starts_from_zero = identity[i] == Expr::constant(0, dtype);
        (adds && starts_from_zero && (dtype.is_int() || is_wide())).then_some(Joined::Sum)
    };
    let fields: Vec<Joined> = (0..n).map(field).collect::<Option<_>>()?;
    // A second walk over the elements of a chain only leaves marks, by which the run is given up.
    let only_marks = |walk: &Rewalk| {
        let run = walk.start.params[n_state..].iter().map(Var::expr);
        walk.gives_up.is_some() && run.eq(walk.start.body.iter().cloned())
    };
    (fields.contains(&Joined::Sum) && rewalks.iter().all(only_marks)).then_some(fields)
}

/// Whether an expression reads a variable only in a wider type, or asks whether it is NaN.
fn is_read_wide(expr: &Expr, var: &Var) -> bool {
    let mut all = expr.as_var() != Some(var);
    for_each_expr(expr, &mut |e: &Expr| {
        all &= is_wide(e, var) || is_asked(e, var) || e.children().all(|child| child.as_var() != Some(var));
    });
    all
}

fn is_wide(expr: &Expr, var: &Var) -> bool {
    let widens =
        expr.dtype().is_float() == var.dtype().is_float() && expr.dtype().bytes() > var.dtype().bytes();
    matches!(expr.node(), Node::Cast(inner) if inner.as_var() == Some(var)) && widens
}

fn is_asked(expr: &Expr, var: &Var) -> bool {
    matches!(expr.node(), Node::Call(Intrinsic::IsNan, args) if args[0].as_var() == Some(var))
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
    let sums: Vec<(&Var, &[Var])> = (run.iter().zip(&each))
        .filter(|(var, each)| each[..] != [(*var).clone()])
        .map(|(var, each)| (var, &each[..]))
        .collect();
    let mut done = FastMap::default();
    let body = lambda.body.iter().map(|e| with_sums(e, &sums, &mut done)).collect();
    Lambda { params: state.iter().chain(each.iter().flatten()).cloned().collect(), body }
}

/// An expression with sums over chains in place of variables, by what is done already.
fn with_sums(expr: &Expr, sums: &[(&Var, &[Var])], done: &mut FastMap<Expr, Expr>) -> Expr {
    if let Some(known) = done.get(expr) {
        return known.clone();
    }
    let over = |each: &[Var], of: &dyn Fn(&Var) -> Expr, join: fn(Expr, Expr) -> Expr| {
        each.iter().map(of).reduce(join).unwrap_or_else(|| expr.clone())
    };
    for (var, each) in sums {
        if is_wide(expr, var) {
            return over(each, &|v| v.expr().cast(expr.dtype()), |a, b| a + b);
        }
        if is_asked(expr, var) {
            return over(each, &|v| Expr::call1(Intrinsic::IsNan, v.expr()), Expr::or);
        }
        if expr.as_var() == Some(*var) {
            return over(each, &Var::expr, |a, b| a + b);
        }
    }
    let new = map_children(expr, &mut |child| with_sums(child, sums, done));
    done.insert(expr.clone(), new.clone());
    new
}

impl QuickStep {
    /// What each field of a run in chains is; `None` where there are no such runs.
    pub fn joined(&self) -> Option<Vec<Joined>> {
        let fields = joined(&self.identity, &self.step, &self.close, &self.rewalks);
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
    fn what_a_step_adds_to_is_joined_in_the_type_that_it_is_read_in() {
        let wide = |e: &Expr| e.clone().cast(DType::F64);
        let (identity, step, close) = moments(|[p, s, q]| &(&wide(&p) * &wide(&s)) + &wide(&q));
        let fields = joined(&identity, &step, &close, &[]).expect("it has the form");
        assert_eq!(fields, [Joined::Kept, Joined::Sum, Joined::Sum]);
        let chained = of_chains(&close, &fields, 2);
        let args: Vec<Expr> = chained.params.iter().map(Var::expr).collect();
        let [t, p, s, s2, q, q2] = &args[..] else { panic!("{args:?}") };
        let sum = |a: &Expr, b: &Expr| &wide(a) + &wide(b);
        assert_eq!(chained.body, [t + &(&(&wide(p) * &sum(s, s2)) + &sum(q, q2))]);
    }

    #[test]
    fn a_sum_that_is_read_as_it_is_would_be_rounded_once_more() {
        let (identity, step, close) = moments(|[p, s, q]| (&(&p * &s) + &q).cast(DType::F64));
        assert_eq!(joined(&identity, &step, &close, &[]), None);
        // Whether it is NaN is asked of each.
        let wide = |e: Expr| e.cast(DType::F64);
        let (identity, step, close) = moments(|[p, s, q]| {
            let is_nan = Expr::call1(Intrinsic::IsNan, q.clone());
            Expr::select(is_nan, wide(p), &wide(s) + &wide(q))
        });
        let fields = joined(&identity, &step, &close, &[]).expect("it has the form");
        let asked = crate::print::print_expr(&of_chains(&close, &fields, 3).body[0]);
        assert_eq!(asked.matches("isnan(").count(), 3, "{asked}");
    }

    #[test]
    fn a_step_that_reads_what_it_changes_has_no_chains() {
        let wide = |e: Expr| e.cast(DType::F64);
        let (identity, step, close) = moments(|[p, s, q]| &(&wide(p) + &wide(s)) + &wide(q));
        assert!(joined(&identity, &step, &close, &[]).is_some());
        let mut other = step.clone();
        other.body[2] = &step.params[2].expr() + &step.params[1].expr();
        assert_eq!(joined(&identity, &other, &close, &[]), None);
        let from_one = [identity[0].clone(), Expr::constant(1, DType::F32), identity[2].clone()];
        assert_eq!(joined(&from_one, &step, &close, &[]), None);
    }
}
