//! A reducer run on values, one element at a time: slow, and exactly what its lambdas say.

use std::collections::HashMap;

use coulis_ir::eval::{Env, EvalError, Value, eval_binary, eval_call, eval_expr, eval_lambda};
use coulis_ir::{BinaryOp, DType, Expr, Intrinsic, Lambda, Node, Reducer, Rewalk, Var};

/// A state: one value a field.
pub type State = Vec<Value>;

/// Runs a reducer's lambdas on values.
#[derive(Clone, Debug)]
pub struct Scalar<'r> {
    reducer: &'r Reducer,
    lift: Tape<'r>,
    combine: Tape<'r>,
    step: Tape<'r>,
    quick: Option<Quick<'r>>,
    settled: Option<Tape<'r>>,
    finish: Tape<'r>,
}

/// The lambdas of short runs.
#[derive(Clone, Debug)]
struct Quick<'r> {
    identity: &'r [Expr],
    lift: Tape<'r>,
    step: Tape<'r>,
    close: Tape<'r>,
    rewalks: Vec<Walk<'r>>,
    spoilt: Option<Tape<'r>>,
}

/// The lambdas of one more walk over a run.
#[derive(Clone, Debug)]
struct Walk<'r> {
    needed: Tape<'r>,
    start: Tape<'r>,
    step: Tape<'r>,
    backwards: bool,
    gives_up: Option<Tape<'r>>,
}

impl<'r> Walk<'r> {
    fn new(walk: &'r Rewalk) -> Walk<'r> {
        Walk {
            needed: Tape::new(&walk.needed),
            start: Tape::new(&walk.start),
            step: Tape::new(&walk.step),
            backwards: walk.backwards,
            gives_up: walk.gives_up.as_ref().map(Tape::new),
        }
    }
}

impl<'r> Scalar<'r> {
    /// Runs this reducer.
    pub fn new(reducer: &'r Reducer) -> Scalar<'r> {
        let step = reducer.step.as_ref().unwrap_or(&reducer.combine);
        Scalar {
            reducer,
            lift: Tape::new(&reducer.lift),
            combine: Tape::new(&reducer.combine),
            step: Tape::new(step),
            quick: reducer.quick.as_ref().map(|q| Quick {
                identity: &q.identity,
                lift: Tape::new(&q.lift),
                step: Tape::new(&q.step),
                close: Tape::new(&q.close),
                rewalks: q.rewalks.iter().map(Walk::new).collect(),
                spoilt: q.spoilt.as_ref().map(Tape::new),
            }),
            settled: reducer.settled.as_ref().map(Tape::new),
            finish: Tape::new(&reducer.finish),
        }
    }

    /// The reducer.
    pub fn reducer(&self) -> &'r Reducer {
        self.reducer
    }

    /// The state that changes nothing.
    pub fn identity(&self) -> Result<State, EvalError> {
        self.reducer.identity.iter().map(|e| eval_expr(e, &mut Env::new())).collect()
    }

    /// The state of one element.
    pub fn lift(&self, element: &[Value], position: i64) -> Result<State, EvalError> {
        let mut args = element.to_vec();
        args.push(Value::Int(i128::from(position)));
        self.lift.run(&args)
    }

    /// The state of two states.
    pub fn combine(&self, left: &[Value], right: &[Value]) -> Result<State, EvalError> {
        self.combine.run(&[left, right].concat())
    }

    /// The state after one more lifted element.
    pub fn step(&self, state: &[Value], lifted: &[Value]) -> Result<State, EvalError> {
        self.step.run(&[state, lifted].concat())
    }

    /// The state after a short run of elements, each with its position; by `step` and `combine` where the reducer has
    /// no cheaper fold. The caller keeps to the longest run.
    pub fn run(&self, state: &[Value], elements: &[(&[Value], i64)]) -> Result<State, EvalError> {
        let one_by_one = || {
            let run = elements.iter().try_fold(self.identity()?, |run, (element, position)| {
                self.step(&run, &self.lift(element, *position)?)
            })?;
            self.combine(state, &run)
        };
        let Some(quick) = &self.quick else { return one_by_one() };
        let lift = |(element, position): &(&[Value], i64)| {
            quick.lift.run(&[element, &[Value::Int(i128::from(*position))][..]].concat())
        };
        let lifted: Vec<State> = elements.iter().map(lift).collect::<Result<_, _>>()?;
        let mut run: State = match lifted.first() {
            Some(first) => first.clone(),
            None => quick.identity.iter().map(|e| eval_expr(e, &mut Env::new())).collect::<Result<_, _>>()?,
        };
        for lifted in lifted.iter().skip(1) {
            run = quick.step.run(&[&run[..], lifted].concat())?;
        }
        for walk in &quick.rewalks {
            if !walk.needed.run(&[state, &run[..]].concat())?[0].is_true() {
                continue;
            }
            run = walk.start.run(&[state, &run[..]].concat())?;
            let mut order: Vec<&State> = lifted.iter().collect();
            if walk.backwards {
                order.reverse();
            }
            for lifted in order {
                run = walk.step.run(&[&run[..], lifted].concat())?;
            }
            if let Some(gives_up) = &walk.gives_up
                && gives_up.run(&[state, &run[..]].concat())?[0].is_true()
            {
                return one_by_one();
            }
        }
        let closed = quick.close.run(&[state, &run[..]].concat())?;
        match &quick.spoilt {
            Some(spoilt) if spoilt.run(&closed)?[0].is_true() => one_by_one(),
            Some(_) | None => Ok(closed),
        }
    }

    /// Whether it is known of a state that nothing more changes it.
    pub fn is_settled(&self, state: &[Value]) -> Result<bool, EvalError> {
        match &self.settled {
            Some(settled) => Ok(settled.run(state)?[0].is_true()),
            None => Ok(false),
        }
    }

    /// Results of a state.
    pub fn finish(&self, state: &[Value]) -> Result<Vec<Value>, EvalError> {
        self.finish.run(state)
    }

    /// Whether an element takes part in the fold.
    pub fn takes_part(&self, element: &[Value]) -> Result<bool, EvalError> {
        let vars: Vec<Var> = self.reducer.input_dtypes().into_iter().map(|d| Var::new("x", d)).collect();
        let exprs: Vec<Expr> = vars.iter().map(Var::expr).collect();
        let Some(cond) = self.reducer.takes_part(&exprs) else {
            return Ok(true);
        };
        let mut env = Env::new();
        vars.iter().zip(element).for_each(|(var, value)| env.set(var, *value));
        Ok(eval_expr(&cond, &mut env)?.is_true())
    }

    /// The state of a row, stepped in order; elements that do not take part are passed over.
    pub fn fold(&self, row: &[Vec<Value>]) -> Result<State, EvalError> {
        let mut state = self.identity()?;
        for (at, element) in row.iter().enumerate() {
            if self.takes_part(element)? {
                state = self.step(&state, &self.lift(element, at as i64)?)?;
            }
        }
        Ok(state)
    }
}

/// A lambda flattened: each operation names the places of its operands, shared ones computed once.
#[derive(Clone, Debug)]
struct Tape<'r> {
    lambda: &'r Lambda,
    /// `None` where the lambda has a node that this form does not hold; then the lambda itself is evaluated.
    ops: Option<Vec<Op>>,
    results: Vec<usize>,
}

#[derive(Clone, Debug)]
enum Op {
    Constant(Value),
    Param(usize),
    Binary(BinaryOp, usize, usize, DType),
    Not(usize),
    Cast(usize, DType),
    Select(usize, usize, usize),
    Call(Intrinsic, Vec<usize>, DType),
}

impl<'r> Tape<'r> {
    fn new(lambda: &'r Lambda) -> Tape<'r> {
        let (mut ops, mut places) = (Vec::new(), HashMap::new());
        let results: Option<Vec<usize>> =
            lambda.body.iter().map(|e| place(e, &lambda.params, &mut ops, &mut places)).collect();
        match results {
            Some(results) => Tape { lambda, ops: Some(ops), results },
            None => Tape { lambda, ops: None, results: Vec::new() },
        }
    }

    fn run(&self, args: &[Value]) -> Result<Vec<Value>, EvalError> {
        let Some(ops) = &self.ops else {
            return eval_lambda(self.lambda, args);
        };
        let mut values: Vec<Value> = Vec::with_capacity(ops.len());
        for op in ops {
            let value = match op {
                Op::Constant(value) => *value,
                Op::Param(at) => args[*at],
                Op::Binary(op, a, b, dtype) => eval_binary(*op, values[*a], values[*b], *dtype)?,
                Op::Not(a) => Value::Int(i128::from(!values[*a].is_true())),
                Op::Cast(a, dtype) => values[*a].cast(*dtype),
                Op::Select(c, a, b) => values[if values[*c].is_true() { *a } else { *b }],
                Op::Call(intrinsic, args, dtype) => {
                    let args: Vec<Value> = args.iter().map(|a| values[*a]).collect();
                    eval_call(*intrinsic, &args, *dtype)?
                }
            };
            values.push(value);
        }
        Ok(self.results.iter().map(|at| values[*at]).collect())
    }
}

/// The place of an expression's value, its operations appended unless they are there already.
fn place(expr: &Expr, params: &[Var], ops: &mut Vec<Op>, places: &mut HashMap<Expr, usize>) -> Option<usize> {
    if let Some(at) = places.get(expr) {
        return Some(*at);
    }
    let mut of = |e: &Expr| place(e, params, ops, places);
    let op = match expr.node() {
        Node::Int(value) => Op::Constant(Value::Int(*value)),
        Node::Float(bits) => Op::Constant(Value::Float(f64::from_bits(*bits))),
        Node::Var(var) => Op::Param(params.iter().position(|p| p == var)?),
        Node::Binary(op, a, b) => Op::Binary(*op, of(a)?, of(b)?, a.dtype()),
        Node::Not(a) => Op::Not(of(a)?),
        Node::Cast(a) => Op::Cast(of(a)?, expr.dtype()),
        Node::Select(c, a, b) => Op::Select(of(c)?, of(a)?, of(b)?),
        Node::Call(intrinsic, args) => {
            let dtype = args[0].dtype();
            Op::Call(*intrinsic, args.iter().map(of).collect::<Option<Vec<_>>>()?, dtype)
        }
        // These evaluate lazily, bind variables, read memory or are vectors.
        Node::IfThenElse(..) | Node::Let(..) | Node::Load(..) | Node::Ramp(..) | Node::Broadcast(_) => {
            return None;
        }
    };
    ops.push(op);
    places.insert(expr.clone(), ops.len() - 1);
    Some(ops.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CATALOGUE, ReducerRequest};

    #[test]
    fn a_tape_gives_what_the_lambda_gives() {
        for entry in CATALOGUE {
            let reducer = entry.build(&ReducerRequest::new(&vec![DType::F32; entry.n_inputs])).unwrap();
            let run = Scalar::new(&reducer);
            let state = |v: f64| run.lift(&vec![Value::Float(v); entry.n_inputs], 3).unwrap();
            for (a, b) in [(1.5, -2.0), (f64::NAN, 1.0), (0.0, f64::INFINITY)] {
                let args = [state(a), state(b)].concat();
                for tape in [&run.combine, &run.step] {
                    assert!(tape.ops.is_some(), "{}", entry.name);
                    let (got, want) = (tape.run(&args).unwrap(), eval_lambda(tape.lambda, &args).unwrap());
                    assert!(
                        got.iter().zip(&want).all(|(g, w)| g.same(*w)),
                        "{}: {got:?} {want:?}",
                        entry.name
                    );
                }
            }
        }
    }

    #[test]
    fn a_lambda_that_divides_lazily_is_evaluated_lazily() {
        let x = Var::new("x", DType::I32);
        let zero = || Expr::int(0);
        let guarded = Expr::if_then_else(x.expr().equal(zero()), zero(), Expr::int(6) / x.expr());
        let lambda = Lambda { params: vec![x], body: vec![guarded] };
        let tape = Tape::new(&lambda);
        assert_eq!(tape.run(&[Value::Int(0)]), Ok(vec![Value::Int(0)]));
        assert_eq!(tape.run(&[Value::Int(2)]), Ok(vec![Value::Int(3)]));
    }
}
