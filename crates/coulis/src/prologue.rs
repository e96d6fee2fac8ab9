//! Prologues: statistics of an expression over the inputs' elements, computed as they are read.
//!
//! A prologue becomes part of the reducers' lift, so it runs in the one read of the inputs: a sum of squared differences
//! reads both arrays once and writes nothing in between (contract N1).

use std::sync::Arc;

use coulis_ir::simplify::narrow_integers;
use coulis_ir::{DType, Expr, Lambda, Var};

use crate::error::Error;
use crate::statistic::computed_in_storage;

/// The expressions of the elements of all inputs.
pub type PrologueFn = dyn Fn(&[Expr]) -> Vec<Expr> + Send + Sync;

/// What statistics fold in place of the elements of the inputs: one expression an input of theirs.
///
/// ```
/// use coulis::te::Expr;
/// use coulis::{Array, Prologue, Request, reduce};
/// let (x, y) = (Array::from_slice(&[3], &[1f32, 2.0, 3.0])?, Array::from_slice(&[3], &[0f32, 4.0, 3.0])?);
/// let difference = Prologue::new(2, |v: &[Expr]| vec![&v[0] - &v[1]]);
/// let request = Request { prologue: Some(difference), ..Request::new(&["sumsq", "absmax"]) };
/// let outcome = reduce::run(&[x, y], &request)?;
/// assert_eq!(outcome.results[0].array.scalars().next().map(|v| v.to_f64()), Some(5.0));
/// # Ok::<(), coulis::Error>(())
/// ```
#[derive(Clone)]
pub struct Prologue {
    n_inputs: usize,
    map: Map,
}

#[derive(Clone)]
enum Map {
    /// For elements of any types.
    Function(Arc<PrologueFn>),
    /// For elements that are widened to the types of its parameters.
    Expressions(Arc<Lambda>),
}

impl std::fmt::Debug for Prologue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Prologue(of {} inputs)", self.n_inputs)
    }
}

impl PartialEq for Prologue {
    /// Functions are equal where they are one, expressions where they are the same of the same elements.
    fn eq(&self, other: &Prologue) -> bool {
        match (&self.map, &other.map) {
            (Map::Function(a), Map::Function(b)) => Arc::ptr_eq(a, b),
            (Map::Expressions(a), Map::Expressions(b)) => a == b,
            (Map::Function(_), Map::Expressions(_)) | (Map::Expressions(_), Map::Function(_)) => false,
        }
    }
}

impl Prologue {
    /// The expressions that `map` gives of the elements of `n_inputs` inputs, which come widened to
    /// [`Prologue::element_dtype`].
    pub fn new(n_inputs: usize, map: impl Fn(&[Expr]) -> Vec<Expr> + Send + Sync + 'static) -> Prologue {
        Prologue { n_inputs, map: Map::Function(Arc::new(map)) }
    }

    /// These expressions of the variables `elements`, one an input, which are of the inputs' types as
    /// [`Prologue::element_dtype`] widens them.
    pub fn of(elements: Vec<Var>, values: Vec<Expr>) -> Prologue {
        let n_inputs = elements.len();
        Prologue { n_inputs, map: Map::Expressions(Arc::new(Lambda { params: elements, body: values })) }
    }

    /// The type in which the expressions see elements of an input: that in which sums of them are kept,
    /// `float32` for narrower floats, `int64` and `uint64` for integers, where `acc_dtype` does not ask for
    /// another. `bool` stays.
    pub fn element_dtype(input: DType, acc_dtype: Option<DType>) -> DType {
        coulis_reducers::widened_dtype(input, acc_dtype)
    }

    /// Number of arrays that it reads.
    pub(crate) fn n_inputs(&self) -> usize {
        self.n_inputs
    }

    /// The map of inputs of these types.
    pub(crate) fn build(&self, inputs: &[DType], acc_dtype: Option<DType>) -> Result<Lambda, Error> {
        let refused = |message: String| Err(Error::user("reduce/prologue", message));
        if inputs.len() != self.n_inputs {
            return refused(format!("the prologue reads {} array(s), got {}", self.n_inputs, inputs.len()));
        }
        let params: Vec<Var> =
            inputs.iter().enumerate().map(|(i, dtype)| Var::new(&format!("x{i}"), *dtype)).collect();
        let widened: Vec<DType> =
            inputs.iter().map(|input| Prologue::element_dtype(*input, acc_dtype)).collect();
        let elements: Vec<Expr> =
            params.iter().zip(&widened).map(|(param, dtype)| param.expr().cast(*dtype)).collect();
        let body = match &self.map {
            Map::Function(map) => map(&elements),
            Map::Expressions(lambda) => {
                let wanted: Vec<DType> = lambda.params.iter().map(Var::dtype).collect();
                if wanted != widened {
                    let message = format!(
                        "the prologue reads elements of {wanted:?}, got {inputs:?}, which are widened to {widened:?}"
                    );
                    return refused(message);
                }
                lambda.apply(&elements)
            }
        };
        if !(1..=2).contains(&body.len()) {
            return refused(format!("a prologue gives one or two values, got {}", body.len()));
        }
        if let Some(found) = computed_in_storage(&body) {
            return refused(format!("the prologue computes `{found}`"));
        }
        for value in &body {
            if value.lanes() != 1 {
                return refused(format!("a prologue gives scalars, got {}", value.ty()));
            }
        }
        let lambda = Lambda { params, body };
        match lambda.stranger() {
            Some(name) => refused(format!("the prologue uses `{name}`, which is none of its elements")),
            None => Ok(lambda),
        }
    }
}

/// The map with integers computed in types as narrow as their values allow ([`narrow_integers`]). `fold` says what folds
/// values of such types; where there is nothing that does, they are widened to those that the map gave.
pub(crate) fn with_narrow_values<F>(
    map: Lambda,
    fold: impl FnOnce(Vec<DType>) -> Option<F>,
) -> (Lambda, Option<F>) {
    let narrow: Vec<Expr> = map.body.iter().map(narrow_integers).collect();
    // Two values that go into one statistic are of one type.
    let holds_all = |dtype: &DType| {
        let (least, most) = dtype.int_range().unwrap_or((0, 0));
        let mut ranges = narrow.iter().map(|value| value.dtype().int_range());
        ranges.all(|range| range.is_some_and(|(lo, hi)| least <= lo && hi <= most))
    };
    let are_wide = map.body.iter().all(|value| value.dtype().is_int() && value.dtype().bytes() == 8);
    let common = HOLDERS.into_iter().find(holds_all).filter(|_| are_wide);
    let fold = common.and_then(|dtype| fold(vec![dtype; narrow.len()]));
    let dtype_of = |old: &Expr| common.filter(|_| fold.is_some()).unwrap_or(old.dtype());
    let body = narrow.into_iter().zip(&map.body).map(|(new, old)| new.cast(dtype_of(old))).collect();
    (Lambda { params: map.params, body }, fold)
}

/// Types of integers of fewer than 64 bits, the narrowest first.
const HOLDERS: [DType; 6] = [DType::I8, DType::U8, DType::I16, DType::U16, DType::I32, DType::U32];
