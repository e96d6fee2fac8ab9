//! The state in which narrow floats are accumulated: contract N4, for reducers and for tensor expressions.

use coulis_ir::hash::FastMap;
use coulis_ir::visit::map_children;
use coulis_ir::{BinaryOp, DType, Expr, Intrinsic, Lambda, Node, Reducer, Var};

use crate::entry::compute_dtype;

/// The same state with those fields wider that a fold would round at each element.
#[derive(Clone, Debug)]
pub struct WideState {
    /// State of two states.
    pub combine: Lambda,
    /// The state that changes nothing.
    pub identity: Vec<Expr>,
    /// The type of each field.
    dtypes: Vec<DType>,
}

impl WideState {
    /// The state of this combine and identity with its accumulators as wide as contract N4 has them: floats of fewer than 32
    /// bits that are computed with, and all fields of types that values are only stored in, are `float32`. Fields that are
    /// only selected, as extrema are, keep their type. `None` where no field changes.
    pub fn of(combine: &Lambda, identity: &[Expr]) -> Option<WideState> {
        let is_accumulator = |(e, folded): (&Expr, &Expr)| {
            e.dtype().is_storage_only() || is_narrow(e.dtype()) && !is_selected(folded)
        };
        let fields = identity.iter().zip(&combine.body);
        let dtypes: Vec<DType> = (fields.clone())
            .map(|pair| if is_accumulator(pair) { compute_dtype(pair.0.dtype()) } else { pair.0.dtype() })
            .collect();
        if dtypes.iter().zip(identity).all(|(dtype, e)| *dtype == e.dtype()) {
            return None;
        }
        let wide = WideState { combine: combine.clone(), identity: Vec::new(), dtypes };
        let params = wide.params(&combine.params);
        let mut reading = Reading::new(&combine.params, &params);
        let folded = |((value, declared), dtype): ((&Expr, &Expr), &DType)| match value.node() {
            _ if is_narrow(*dtype) => reading.selected(value),
            // The conversion to the field's declared type.
            Node::Cast(unrounded) if is_narrow(declared.dtype()) => reading.widened(unrounded).cast(*dtype),
            _ => reading.widened(value).cast(*dtype),
        };
        let body = combine.body.iter().zip(identity).zip(&wide.dtypes).map(folded).collect();
        let identity = wide.values(identity);
        Some(WideState { combine: Lambda { params, body }, identity, ..wide })
    }

    /// Values of the state's fields, in their types.
    pub fn values(&self, values: &[Expr]) -> Vec<Expr> {
        let typed = |(e, dtype): (&Expr, &DType)| match e.node() {
            Node::Float(bits) => Expr::float(f64::from_bits(*bits), *dtype),
            _ => e.clone().cast(*dtype),
        };
        values.iter().zip(&self.dtypes).map(typed).collect()
    }

    /// Results of a state: what is computed with wide fields is as wide, for whoever stores it to round once.
    pub fn finish(&self, finish: &Lambda) -> Lambda {
        let params = self.params(&finish.params);
        let mut reading = Reading::new(&finish.params, &params);
        let body = finish.body.iter().map(|e| reading.widened(e)).collect();
        Lambda { params, body }
    }

    /// Parameters that are states, one after another, in the types of the fields.
    fn params(&self, declared: &[Var]) -> Vec<Var> {
        let typed = |(p, dtype): (&Var, &DType)| match p.dtype() == *dtype {
            true => p.clone(),
            false => Var::new(p.name(), *dtype),
        };
        declared.iter().zip(self.dtypes.iter().cycle()).map(typed).collect()
    }
}

/// The same reducer with its accumulators as wide as contract N4 has them: see [`WideState`]. The results are converted to
/// their own types once, by whoever stores them. What is only cheaper than to combine, steps and short runs, is for the
/// state that is declared and goes. `None` where the state is as it should be: extrema, integers, wider floats.
pub fn accumulating(reducer: &Reducer) -> Option<Reducer> {
    let wide = WideState::of(&reducer.combine, &reducer.identity)?;
    let mut fields = reducer.fields.clone();
    fields.iter_mut().zip(&wide.dtypes).for_each(|(field, dtype)| field.dtype = *dtype);
    let lift = Lambda { params: reducer.lift.params.clone(), body: wide.values(&reducer.lift.body) };
    Some(Reducer {
        fields,
        lift,
        finish: wide.finish(&reducer.finish),
        combine: wide.combine,
        identity: wide.identity,
        step: None,
        step_needs_ascending: false,
        quick: None,
        ..reducer.clone()
    })
}

fn is_narrow(dtype: DType) -> bool {
    dtype.is_float() && compute_dtype(dtype) != dtype
}

/// Whether a value is always one of those that it is made of, so that nothing is rounded.
fn is_selected(value: &Expr) -> bool {
    match value.node() {
        Node::Var(_) | Node::Float(_) | Node::Int(_) | Node::Load(..) => true,
        Node::Select(_, a, b)
        | Node::IfThenElse(_, a, b)
        | Node::Binary(BinaryOp::Min | BinaryOp::Max, a, b) => is_selected(a) && is_selected(b),
        Node::Call(Intrinsic::Max3 | Intrinsic::Min3, args) => args.iter().all(is_selected),
        Node::Binary(..)
        | Node::Call(..)
        | Node::Not(_)
        | Node::Cast(_)
        | Node::Ramp(..)
        | Node::Broadcast(_)
        | Node::Let(..) => false,
    }
}

/// Expressions over declared parameters, read over wide ones.
struct Reading {
    /// What stands for a variable.
    wide: FastMap<Var, Expr>,
    /// What was widened.
    memo: FastMap<Expr, Expr>,
}

impl Reading {
    fn new(declared: &[Var], params: &[Var]) -> Reading {
        let pairs = declared.iter().zip(params).filter(|(old, new)| old != new);
        let wide = pairs.map(|(old, new)| (old.clone(), new.expr())).collect();
        Reading { wide, memo: FastMap::default() }
    }

    /// The same choice among values of a narrow type, which stay in it.
    fn selected(&mut self, value: &Expr) -> Expr {
        match value.node() {
            Node::Select(cond, a, b) => Expr::select(self.widened(cond), self.selected(a), self.selected(b)),
            Node::IfThenElse(cond, a, b) => {
                Expr::if_then_else(self.widened(cond), self.selected(a), self.selected(b))
            }
            Node::Var(var) if self.wide.contains_key(var) => self.widened(value).cast(value.dtype()),
            _ => map_children(value, &mut |e| self.selected(e)),
        }
    }

    /// The expression with all narrow floats in it computed with as they accumulate. A conversion to a narrow type rounds.
    fn widened(&mut self, expr: &Expr) -> Expr {
        if let Some(known) = self.memo.get(expr) {
            return known.clone();
        }
        let dtype = if expr.dtype().is_float() { compute_dtype(expr.dtype()) } else { expr.dtype() };
        let wide = match expr.node() {
            Node::Var(var) => self.wide.get(var).unwrap_or(expr).clone().cast(dtype),
            Node::Float(bits) => Expr::float(f64::from_bits(*bits), dtype),
            Node::Let(var, value, body) => {
                let value = self.widened(value);
                let bound = match value.dtype() == var.dtype() {
                    true => var.clone(),
                    false => Var::new(var.name(), value.dtype()),
                };
                self.wide.insert(var.clone(), bound.expr());
                Expr::let_in(bound, value, self.widened(body))
            }
            // An index is of no float.
            Node::Load(..) => expr.clone().cast(dtype),
            _ => map_children(expr, &mut |e| self.widened(e)).cast(dtype),
        };
        self.memo.insert(expr.clone(), wide.clone());
        wide
    }
}

#[cfg(test)]
mod tests {
    use coulis_ir::eval::{Value, eval_lambda};

    use super::*;

    fn combine(dtypes: &[DType], body: impl Fn(&[Expr], &[Expr]) -> Vec<Expr>) -> Lambda {
        let side = |name: &str| -> Vec<Var> { dtypes.iter().map(|d| Var::new(name, *d)).collect() };
        let exprs = |vars: &[Var]| vars.iter().map(Var::expr).collect::<Vec<_>>();
        let (x, y) = (side("x"), side("y"));
        let body = body(&exprs(&x), &exprs(&y));
        Lambda { params: [x, y].concat(), body }
    }

    fn types(state: &WideState) -> Vec<DType> {
        state.identity.iter().map(Expr::dtype).collect()
    }

    #[test]
    fn what_is_computed_with_is_wide_and_what_is_selected_is_as_it_was() {
        let zero = |dtypes: &[DType]| dtypes.iter().map(|d| Expr::constant(0, *d)).collect::<Vec<_>>();
        let (f16, bf16, f8, f32) = (DType::F16, DType::BF16, DType::F8E4M3, DType::F32);
        let dtypes = [f16, bf16, f8, DType::F64, DType::I8];
        let lambda = combine(&dtypes, |x, y| {
            let larger = x[0].clone().gt(y[0].clone());
            vec![
                &(&x[0] * &y[0]) + &x[0],
                Expr::select(larger, x[1].clone(), y[1].clone()),
                x[2].clone().max(y[2].clone()),
                &x[3] + &y[3],
                &x[4] + &y[4],
            ]
        });
        let wide = WideState::of(&lambda, &zero(&dtypes)).expect("a wide state");
        assert_eq!(types(&wide), [f32, bf16, f32, DType::F64, DType::I8]);
        let params: Vec<DType> = wide.combine.params.iter().map(Var::dtype).collect();
        assert_eq!(params, [types(&wide), types(&wide)].concat());
        let of_body: Vec<DType> = wide.combine.body.iter().map(Expr::dtype).collect();
        assert_eq!(of_body, types(&wide));
        let state = [2049.0, 1.0, 3.0, 1.0].map(Value::Float);
        let args = [&state[..], &[Value::Int(1)], &state, &[Value::Int(1)]].concat();
        // In float16, 2049 is 2048, and 2048 times that is no number.
        assert_eq!(eval_lambda(&wide.combine, &args).expect("values")[0], Value::Float(2049.0 * 2050.0));

        let largest = combine(&[f16], |x, y| vec![x[0].clone().max(y[0].clone())]);
        assert!(WideState::of(&largest, &zero(&[f16])).is_none());
        let sum = combine(&[f32], |x, y| vec![&x[0] + &y[0]]);
        assert!(WideState::of(&sum, &zero(&[f32])).is_none());
    }

    #[test]
    fn conversions_round_but_for_the_one_to_the_declared_type() {
        let one = Expr::float(1.0, DType::F16);
        let once = combine(&[DType::F16], |x, y| {
            let sum = &x[0].clone().cast(DType::F32) + &y[0].clone().cast(DType::F32);
            vec![sum.cast(DType::F16)]
        });
        let twice = combine(&[DType::F16], |x, y| {
            let sum = &x[0].clone().cast(DType::F32) + &y[0].clone().cast(DType::F32);
            vec![&sum.cast(DType::F16) * &one]
        });
        for (lambda, wanted) in [(once, 2049.0), (twice, 2048.0)] {
            let wide = WideState::of(&lambda, &[Expr::float(0.0, DType::F16)]).expect("a wide state");
            let found = eval_lambda(&wide.combine, &[Value::Float(2048.0), Value::Float(1.0)]);
            assert_eq!(found, Ok(vec![Value::Float(wanted)]));
        }
    }

    #[test]
    fn results_and_names_within_them_are_as_wide_as_the_state() {
        let lambda = combine(&[DType::F16], |x, y| vec![&x[0] + &y[0]]);
        let wide = WideState::of(&lambda, &[Expr::float(0.0, DType::F16)]).expect("a wide state");
        let (state, half) = (Var::new("s", DType::F16), Var::new("half", DType::F16));
        let value = &state.expr() * &Expr::float(0.5, DType::F16);
        let named = Expr::let_in(half.clone(), value, &half.expr() + &half.expr());
        let is_large = state.expr().gt(Expr::float(2048.0, DType::F16));
        let finish = wide.finish(&Lambda { params: vec![state], body: vec![named, is_large] });
        let found = eval_lambda(&finish, &[Value::Float(2049.0)]);
        assert_eq!(found.expect("values")[0], Value::Float(2049.0));
        assert_eq!(finish.body[0].dtype(), DType::F32);
        assert_eq!(eval_lambda(&finish, &[Value::Float(2049.0)]).expect("values")[1], Value::Int(1));
    }

    #[test]
    fn a_reducer_accumulates_wide_without_what_was_for_its_declared_state() {
        let lambda = combine(&[DType::F16], |x, y| vec![&x[0] * &y[0]]);
        let declared = Reducer::plain(lambda.clone(), vec![Expr::float(1.0, DType::F16)]);
        let declared = Reducer { step: Some(lambda), step_needs_ascending: true, ..declared };
        let wide = accumulating(&declared).expect("a wide state");
        assert_eq!((wide.fields[0].dtype, wide.results[0].dtype), (DType::F32, DType::F16));
        assert_eq!((wide.input_dtypes(), wide.step.is_none()), (vec![DType::F16], true));
        let run = crate::scalar::Scalar::new(&wide);
        let row = vec![vec![Value::Float(256.0)], vec![Value::Float(512.0)], vec![Value::Float(0.5)]];
        assert_eq!(run.finish(&run.fold(&row).unwrap()).unwrap(), [Value::Float(65536.0)]);
        assert!(accumulating(&wide).is_none());
    }

    #[test]
    fn reducers_of_the_catalogue_accumulate_as_wide_as_they_are_to() {
        for entry in crate::CATALOGUE {
            for dtype in DType::ALL {
                let request = crate::ReducerRequest::new(&vec![dtype; entry.n_inputs]);
                let Ok(reducer) = entry.build(&request) else { continue };
                assert!(accumulating(&reducer).is_none(), "{} of {dtype}", entry.name);
            }
        }
    }
}
