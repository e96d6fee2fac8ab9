//! Reducers of a user's functions.

use crate::entry::widened_dtype;
use crate::wide_state::accumulating;
use coulis_ir::visit::uses_any;
use coulis_ir::{Claims, DType, ErrorBound, Expr, Field, Lambda, NanPolicy, Reducer, Ties, Var};

/// Combines two states, one expression a field.
pub type Combine<'a> = &'a dyn Fn(&[Expr], &[Expr]) -> Vec<Expr>;
/// State of the elements (one an input) at a position. Elements come widened, as [`widened_dtype`] says: bfloat16 as
/// float32, int8 as int64. What is given for a field of a narrower type is converted to it.
pub type Lift<'a> = &'a dyn Fn(&[Expr], &Expr) -> Vec<Expr>;
/// Results of a state.
pub type Finish<'a> = &'a dyn Fn(&[Expr]) -> Vec<Expr>;

/// What a user says of a reducer.
pub struct UserReducer<'a> {
    /// Name for messages and text.
    pub name: String,
    /// Types of the elements, one an input.
    pub inputs: Vec<DType>,
    /// Constants that change nothing when combined, one a field; their types are those that `combine` and `finish` see
    /// fields in. Narrow floats are accumulated in wider fields, whatever else is folded beside them ([`accumulating`]).
    pub identity: Vec<Expr>,
    /// Combines two states.
    pub combine: Combine<'a>,
    /// State of an element; without it the elements, converted to the fields' types, are the state.
    pub lift: Option<Lift<'a>>,
    /// Results of a state; without it the fields are the results.
    pub finish: Option<Finish<'a>>,
    /// What the user claims of `combine`.
    pub claims: Claims,
}

impl<'a> UserReducer<'a> {
    /// An associative and commutative reducer without lift and finish.
    pub fn new(name: &str, inputs: &[DType], identity: Vec<Expr>, combine: Combine<'a>) -> UserReducer<'a> {
        UserReducer {
            name: name.to_owned(),
            inputs: inputs.to_vec(),
            identity,
            combine,
            lift: None,
            finish: None,
            claims: Claims { associative: true, commutative: true, idempotent: false },
        }
    }
}

/// Functions that do not make a reducer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UserReducerError {
    /// A state without fields, or no inputs.
    #[error("reducer `{name}` takes at least one identity and one input")]
    Nothing {
        /// The reducer.
        name: String,
    },
    /// An identity that is not a constant.
    #[error("identity {at} of reducer `{name}` is not a constant")]
    NotConstant {
        /// The reducer.
        name: String,
        /// Which identity, from 0.
        at: usize,
    },
    /// No results.
    #[error("`finish` of reducer `{name}` gives no result")]
    NoResult {
        /// The reducer.
        name: String,
    },
    /// Results that are the same whatever the elements are.
    #[error(
        "`finish` of reducer `{name}` reads no field of the state, so its results are the same for all elements"
    )]
    Unread {
        /// The reducer.
        name: String,
    },
    /// A function that gives another number of values than there are fields.
    #[error("`{function}` of reducer `{name}` gives {found} value(s), the identity has {wanted}")]
    Arity {
        /// The reducer.
        name: String,
        /// `combine` or `lift`.
        function: &'static str,
        /// Number of fields.
        wanted: usize,
        /// Number that it gave.
        found: usize,
    },
    /// A function that gives another type than the field has.
    #[error("`{function}` of reducer `{name}` gives {found} for field {at}, whose identity is {wanted}")]
    Type {
        /// The reducer.
        name: String,
        /// `combine` or `lift`.
        function: &'static str,
        /// Which field, from 0.
        at: usize,
        /// Type of the field.
        wanted: DType,
        /// Type that the function gave.
        found: DType,
    },
}

/// The reducer of a user's functions. Its claims are not checked here: see [`crate::spot_check`].
pub fn comm_reducer(spec: &UserReducer) -> Result<Reducer, UserReducerError> {
    let name = || spec.name.clone();
    if spec.identity.is_empty() || spec.inputs.is_empty() {
        return Err(UserReducerError::Nothing { name: name() });
    }
    let constant = |e: &Expr| e.as_int().is_some() || e.as_float().is_some();
    if let Some(at) = spec.identity.iter().position(|e| !constant(e)) {
        return Err(UserReducerError::NotConstant { name: name(), at });
    }
    let one = spec.identity.len() == 1;
    let suffixed = |base: &str, at: usize| if one { base.to_owned() } else { format!("{base}_{at}") };
    let side = |base: &str| -> Vec<Var> {
        spec.identity.iter().enumerate().map(|(at, e)| Var::new(&suffixed(base, at), e.dtype())).collect()
    };
    let (left, right) = (side("x"), side("y"));
    let exprs = |vars: &[Var]| vars.iter().map(Var::expr).collect::<Vec<_>>();
    let combine = fields(spec, "combine", (spec.combine)(&exprs(&left), &exprs(&right)))?;

    let elements: Vec<Var> = spec.inputs.iter().map(|d| Var::new("v", *d)).collect();
    let position = Var::new("i", DType::I64);
    let lift = match spec.lift {
        Some(lift) => {
            let widened = |v: &Var| v.expr().cast(widened_dtype(v.dtype(), None));
            lift(&elements.iter().map(widened).collect::<Vec<_>>(), &position.expr())
        }
        None => {
            let cast = |(v, e): (&Var, &Expr)| v.expr().cast(e.dtype());
            let extra = elements.iter().skip(spec.identity.len()).map(Var::expr);
            elements.iter().zip(&spec.identity).map(cast).chain(extra).collect()
        }
    };
    // A field that is declared narrower than the elements come is given what they are, converted.
    let narrowed = |(value, field): (Expr, &Expr)| {
        let is_declared = value.dtype() == widened_dtype(field.dtype(), None);
        if is_declared { value.cast(field.dtype()) } else { value }
    };
    let extra = lift.get(spec.identity.len()..).unwrap_or_default().to_vec();
    let lift = lift.into_iter().zip(&spec.identity).map(narrowed).chain(extra).collect();
    let lift = fields(spec, "lift", lift)?;
    let finish = spec.finish.map_or_else(|| exprs(&left), |f| f(&exprs(&left)));
    if finish.is_empty() {
        return Err(UserReducerError::NoResult { name: name() });
    }
    if !finish.iter().any(|e| uses_any(e, &left)) {
        return Err(UserReducerError::Unread { name: name() });
    }
    let result_name = |at: usize| if finish.len() == 1 { "value".to_owned() } else { format!("v{at}") };
    let result = |(at, e): (usize, &Expr)| Field { name: result_name(at), dtype: e.dtype() };
    let results = finish.iter().enumerate().map(result).collect();
    let combine = Lambda { params: left.iter().chain(&right).cloned().collect(), body: combine };
    let finish = Lambda { params: left.clone(), body: finish };
    let field = |(v, e): (&Var, &Expr)| Field { name: v.name().to_owned(), dtype: e.dtype() };
    let declared = Reducer {
        name: name(),
        fields: left.iter().zip(&spec.identity).map(field).collect(),
        identity: spec.identity.clone(),
        lift: Lambda { params: elements.iter().chain([&position]).cloned().collect(), body: lift },
        combine,
        step: None,
        step_needs_ascending: false,
        quick: None,
        settled: None,
        values: None,
        neutral: Vec::new(),
        results,
        finish,
        claims: spec.claims,
        nan: NanPolicy::Propagate,
        ties: Ties::None,
        error: ErrorBound::Exact,
    };
    Ok(accumulating(&declared).unwrap_or(declared))
}

/// The values, checked to be one a field and of its type.
fn fields(
    spec: &UserReducer,
    function: &'static str,
    values: Vec<Expr>,
) -> Result<Vec<Expr>, UserReducerError> {
    let (wanted, found) = (spec.identity.len(), values.len());
    if wanted != found {
        return Err(UserReducerError::Arity { name: spec.name.clone(), function, wanted, found });
    }
    for (at, (value, identity)) in values.iter().zip(&spec.identity).enumerate() {
        let (wanted, found) = (identity.dtype(), value.dtype());
        if wanted != found {
            return Err(UserReducerError::Type { name: spec.name.clone(), function, at, wanted, found });
        }
    }
    Ok(values)
}

#[cfg(test)]
mod tests {
    use coulis_ir::eval::Value;

    use super::*;
    use crate::scalar::Scalar;

    #[test]
    fn a_reducer_of_functions_folds_as_they_say() {
        let mut spec = UserReducer::new("rms", &[DType::F32], vec![Expr::float(0.0, DType::F64)], &|a, b| {
            vec![&a[0] + &b[0]]
        });
        let lift: Lift = &|x, _| vec![&x[0].clone().cast(DType::F64) * &x[0].clone().cast(DType::F64)];
        spec.lift = Some(lift);
        spec.finish = Some(&|s| vec![Expr::call1(coulis_ir::Intrinsic::Sqrt, s[0].clone())]);
        let reducer = comm_reducer(&spec).unwrap();
        let run = Scalar::new(&reducer);
        let row = [vec![Value::Float(3.0)], vec![Value::Float(4.0)]];
        assert_eq!(run.finish(&run.fold(&row).unwrap()).unwrap(), [Value::Float(5.0)]);
    }

    #[test]
    fn a_lift_sees_elements_in_the_type_that_sums_of_them_have() {
        for (dtype, element, square) in [
            (DType::I8, Value::Int(-128), Value::Int(16384)),
            (DType::U8, Value::Int(255), Value::Int(65025)),
            (DType::BF16, Value::Float(1.0078125), Value::Float(1.01568603515625)),
        ] {
            let wide = widened_dtype(dtype, None);
            let mut spec = UserReducer::new("squares", &[dtype], vec![Expr::constant(0, wide)], &|a, b| {
                vec![&a[0] + &b[0]]
            });
            let lift: Lift = &|x, _| vec![&x[0] * &x[0]];
            spec.lift = Some(lift);
            let reducer = comm_reducer(&spec).unwrap();
            assert_eq!(Scalar::new(&reducer).lift(&[element], 0), Ok(vec![square]), "{dtype}");
            spec.identity = vec![Expr::constant(0, dtype)];
            let as_it_is: Lift = &|x, _| vec![x[0].clone()];
            spec.lift = Some(as_it_is);
            let reducer = comm_reducer(&spec).unwrap();
            assert_eq!(Scalar::new(&reducer).lift(&[element], 0), Ok(vec![element]), "{dtype}");
        }
    }

    #[test]
    fn what_makes_no_reducer_is_refused() {
        let refused = |identity: Vec<Expr>, inputs: &[DType], combine: Combine| {
            comm_reducer(&UserReducer::new("r", inputs, identity, combine)).unwrap_err().to_string()
        };
        let zero = || Expr::int(0);
        let first: Combine = &|a, _| vec![a[0].clone()];
        assert_eq!(
            refused(vec![], &[DType::I32], first),
            "reducer `r` takes at least one identity and one input"
        );
        assert_eq!(
            refused(vec![zero(), zero()], &[DType::I32, DType::I32], first),
            "`combine` of reducer `r` gives 1 value(s), the identity has 2"
        );
        assert_eq!(
            refused(vec![zero()], &[DType::I32, DType::I32], first),
            "`lift` of reducer `r` gives 2 value(s), the identity has 1"
        );
        assert_eq!(
            refused(vec![Var::new("k", DType::I32).expr()], &[DType::I32], first),
            "identity 0 of reducer `r` is not a constant"
        );
        assert_eq!(
            refused(vec![zero()], &[DType::I32], &|a, b| vec![a[0].clone().lt(b[0].clone())]),
            "`combine` of reducer `r` gives bool for field 0, whose identity is int32"
        );
        let mut spec = UserReducer::new("r", &[DType::I32], vec![zero()], first);
        let finish: Finish = &|_| vec![Expr::int(7)];
        spec.finish = Some(finish);
        assert_eq!(
            comm_reducer(&spec).unwrap_err().to_string(),
            "`finish` of reducer `r` reads no field of the state, so its results are the same for all elements"
        );
    }
}
