//! What closes a run that is the only one of its state: the state before it is the identity, whose zeros, infinities and counts
//! leave little of what brings a run together with others.
//!
//! The rules are those of real numbers beside an identity, not of floats: 0 takes part in no sum, and what it scales is 0. They
//! keep the value of a state, as an identity is to change none (contract N16), where what 0 scales is finite. A state whose run
//! is not, keeps its own infinity or NaN. Of zeros the sign may be another (contract N10).

use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::change_children;
use coulis_ir::{BinaryOp, Expr, Intrinsic, Node};

/// The expression, in which identities stand as constants, without what they annul.
pub(crate) fn beside_identity(expr: &Expr) -> Expr {
    let analyzer = Analyzer::new();
    let mut now = analyzer.simplify(expr);
    while let Some(fewer) = annulled(&now) {
        now = analyzer.simplify(&fewer);
    }
    now
}

/// The expression with rules applied from the operands up, where one applies.
fn annulled(expr: &Expr) -> Option<Expr> {
    let rebuilt = change_children(expr, &mut annulled);
    by_rule(rebuilt.as_ref().unwrap_or(expr)).or(rebuilt)
}

fn by_rule(expr: &Expr) -> Option<Expr> {
    match expr.node() {
        Node::Binary(BinaryOp::Add, a, b) if is_zero(a) => Some(b.clone()),
        Node::Binary(BinaryOp::Add | BinaryOp::Sub, a, b) if is_zero(b) => Some(a.clone()),
        Node::Binary(BinaryOp::Sub, a, b) if a == b => Some(Expr::constant(0, expr.dtype())),
        Node::Binary(BinaryOp::Mul, a, b) if is_zero(a) || is_zero(b) => {
            Some(Expr::constant(0, expr.dtype()))
        }
        Node::Call(Intrinsic::Fma, args) if args[..2].iter().any(is_zero) => Some(args[2].clone()),
        // In this order a NaN stays.
        Node::Binary(BinaryOp::Max, a, b) if is_float(a, f64::NEG_INFINITY) => Some(b.clone()),
        Node::Binary(BinaryOp::Min, a, b) if is_float(a, f64::INFINITY) => Some(b.clone()),
        _ => None,
    }
}

fn is_zero(expr: &Expr) -> bool {
    expr.lanes() == 1 && (expr.is_int(0) || is_float(expr, 0.0))
}

fn is_float(expr: &Expr, value: f64) -> bool {
    matches!(expr.node(), Node::Float(bits) if f64::from_bits(*bits) == value)
}

#[cfg(test)]
mod tests {
    use coulis_ir::eval::Value;
    use coulis_ir::{DType, Lambda, Reducer};
    use coulis_reducers::scalar::Scalar;
    use coulis_reducers::{CATALOGUE, ReducerRequest};

    use super::*;

    /// The reducer with runs that are closed into its identity alone.
    fn of_runs_alone(reducer: &Reducer) -> Option<Reducer> {
        let mut alone = reducer.clone();
        let quick = alone.quick.as_mut()?;
        let run = quick.close.params[reducer.identity.len()..].iter().map(coulis_ir::Var::expr);
        let closed = quick.close.apply(&reducer.identity.iter().cloned().chain(run).collect::<Vec<_>>());
        let body = closed.iter().map(beside_identity).collect();
        quick.close = Lambda { params: quick.close.params.clone(), body };
        Some(alone)
    }

    #[test]
    fn a_run_alone_is_closed_into_what_it_is_beside_the_identity() {
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        let rows: &[&[f64]] = &[
            &[1.5],
            &[-0.0, -0.0],
            &[3.0, -7.25, 100.0, 0.5, -2.0],
            &[1e30, -1e30, 1e-30],
            &[2.0, inf, 1.0],
            &[inf, inf],
            &[-inf, 1.0, -inf],
            &[inf, 1.0, -inf],
            &[-inf],
            &[nan, 1.0],
            &[1.0, nan, inf],
        ];
        let mut tried = 0;
        for entry in CATALOGUE {
            for dtype in [DType::F16, DType::F32, DType::F64, DType::I32] {
                let request = ReducerRequest::new(&vec![dtype; entry.n_inputs]);
                let Ok(reducer) = entry.build(&request) else { continue };
                let Some(alone) = of_runs_alone(&reducer) else { continue };
                for row in rows {
                    let value = |x: f64| match dtype.is_float() {
                        true => Value::Float(dtype.round_float(x)),
                        false => Value::Int(if x.is_finite() { x as i128 } else { 7 }),
                    };
                    let elements: Vec<Vec<Value>> =
                        row.iter().map(|x| vec![value(*x); entry.n_inputs]).collect();
                    let elements: Vec<(&[Value], i64)> =
                        elements.iter().enumerate().map(|(at, e)| (&e[..], at as i64)).collect();
                    let results = |reducer: &Reducer| {
                        let fold = Scalar::new(reducer);
                        fold.finish(&fold.run(&fold.identity()?, &elements)?)
                    };
                    let (got, want) = (results(&alone).unwrap(), results(&reducer).unwrap());
                    for (got, want) in got.iter().zip(&want) {
                        let is_same = got.as_f64() == want.as_f64() || got.is_nan() && want.is_nan();
                        assert!(is_same, "{} of {dtype} {row:?}: {got:?} is not {want:?}", entry.name);
                    }
                    tried += 1;
                }
            }
        }
        assert!(tried > 300, "only {tried} runs");
    }

    #[test]
    fn an_identity_leaves_nothing_of_a_sum_and_its_order_keeps_a_nan() {
        let x = coulis_ir::Var::new("x", DType::F64).expr();
        let zero = Expr::float(0.0, DType::F64);
        let infinity = Expr::float(f64::NEG_INFINITY, DType::F64);
        assert_eq!(beside_identity(&(&zero + &(&x * &zero))), zero);
        assert_eq!(beside_identity(&Expr::call(Intrinsic::Fma, vec![zero.clone(), x.clone(), x.clone()])), x);
        assert_eq!(beside_identity(&infinity.clone().max(x.clone())), x);
        let keeps_x_last = x.clone().max(infinity);
        assert_eq!(beside_identity(&keeps_x_last), keeps_x_last);
    }
}
