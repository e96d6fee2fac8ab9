//! Normalizations: maps that read the elements of a row again, beside the finished statistics of the row.
//!
//! A normalization is data, as a reducer is: the fold whose results it reads, arrays that stand beside the elements, and the
//! expression of one element's result. Plans read a row a second time while it is in a cache or in registers where that
//! is possible, and after all rows where it is not; nothing depends on which normalization it is. Sources: contract
//! N1; J. L. Ba, J. R. Kiros and G. E. Hinton, "Layer normalization", 2016; M. Milakov and N. Gimelshein, "Online
//! normalizer calculation for softmax", 2018.

use coulis_ir::eval::{EvalError, Value, eval_expr, eval_lambda};
use coulis_ir::visit::uses_any;
use coulis_ir::{DType, Expr, Field, Lambda, NanPolicy, Reducer, Var};

use crate::catalogue::find;
use crate::entry::{ReducerError, ReducerRequest, UnknownReducer};
use crate::exact::{ExactMapFn, MappedRow};
use crate::flagged;
use crate::product::{ProductError, product};
use crate::shape::spread::{difference, is_wide};
use crate::shape::total::{EPS32, statistic_result};
use crate::staged::Staged;

/// The axes that an array beside the elements has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Along {
    /// The reduced axes, in their order: one value a position in a row, as the weights of a layer norm.
    Reduced,
    /// The kept axes, in their order: one value a row, as the weights of a batch norm.
    Kept,
    /// All axes; it broadcasts to the shape of the elements.
    All,
}

/// An array that is read beside the elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beside {
    /// Name, unique in the normalization.
    pub name: String,
    /// The axes that it has.
    pub along: Along,
    /// Type of its elements.
    pub dtype: DType,
}

/// How far a result may be from the exact one: `|computed - exact| <= factor * eps * scale`, plus the rounding to the
/// output type. `scale` has the parameters of the map.
#[derive(Clone, Debug)]
pub struct MapBound {
    /// The factor.
    pub factor: f64,
    /// Distance from 1 to the next value of the type in which the map computes.
    pub eps: f64,
    /// What the error is proportional to.
    pub scale: Lambda,
}

/// A normalization for elements of given types.
#[derive(Clone, Debug)]
pub struct Normalization {
    /// Name, as in the catalogue or as the caller gave it.
    pub name: String,
    /// The fold of a row. What its `finish` gives is what the map reads of the row.
    pub reducer: Reducer,
    /// Arrays that are read beside the elements.
    pub beside: Vec<Beside>,
    /// The result of one element. Parameters: the elements of the inputs, what the fold gives, the arrays beside them.
    pub map: Lambda,
    /// The same in two folds, which machines without blocks of threads may run in place of the one; `None` where there are none.
    pub staged: Option<Staged>,
    /// Name and default output type of the result, which `map` gives in the type it computes in.
    pub result: Field,
    /// Bound of the result's error, where one is stated.
    pub bound: Option<MapBound>,
    /// The result of an element that a mask leaves out; `None` where that is mapped as others are.
    pub left_out: Option<f64>,
    /// The first of the statistics that has no value of a row without elements, if one has none.
    pub refuses_empty: Option<&'static str>,
}

/// A number that a normalization takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Name.
    pub name: &'static str,
    /// Its value where none is given; `None` is the distance from 1 to the next value of the input's type.
    pub default: Option<f64>,
    /// What it is for, as a phrase.
    pub meaning: &'static str,
}

/// An array that a normalization of the catalogue takes; none has to be given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BesideEntry {
    /// Name.
    pub name: &'static str,
    /// The axes that it has.
    pub along: Along,
    /// What it is for, as a phrase.
    pub meaning: &'static str,
}

/// What a call asks of a normalization.
#[derive(Clone, Debug, PartialEq)]
pub struct NormalizationRequest {
    /// What it asks of the fold.
    pub fold: ReducerRequest,
    /// Parameters that are given, by name.
    pub parameters: Vec<(String, f64)>,
    /// Arrays that are given, by name, and their types.
    pub beside: Vec<(String, DType)>,
    /// Whether results are scaled before they are rounded, or rounded to `float64`. The map gives them in
    /// `float64` then, where what is beyond the range of `float32` is no infinity.
    pub wide: bool,
    /// Type of the result where it does not follow from what is folded, as of narrow elements that a prologue widens.
    pub result: Option<DType>,
}

impl NormalizationRequest {
    /// A request of everything by default, of this fold.
    pub fn new(fold: ReducerRequest) -> NormalizationRequest {
        NormalizationRequest { fold, parameters: Vec::new(), beside: Vec::new(), wide: false, result: None }
    }

    /// The type of the result unless another is asked for: that of the elements, `float64` of integers.
    fn result_dtype(&self) -> DType {
        self.result.unwrap_or_else(|| statistic_result(&self.fold))
    }

    /// The number of that name: the one that is given, or the default of those that are declared.
    pub fn parameter(&self, declared: &[Parameter], name: &str) -> f64 {
        let given = self.parameters.iter().find(|(n, _)| n == name).map(|(_, v)| *v);
        let default = || declared.iter().find(|p| p.name == name).and_then(|p| p.default);
        given.or_else(default).unwrap_or_else(|| epsilon(self.result_dtype()))
    }
}

/// One normalization of the catalogue.
pub struct NormalizationEntry {
    /// Name in every door.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// Special values and the error bound, as sentences for the documentation.
    pub details: &'static str,
    /// Numbers that it takes.
    pub parameters: &'static [Parameter],
    /// Arrays that it takes.
    pub beside: &'static [BesideEntry],
    /// Whether `ddof` matters.
    pub takes_ddof: bool,
    /// The result of an element that a mask leaves out; `None` where that is mapped as others are, by the statistics of those
    /// that take part.
    pub left_out: Option<f64>,
    /// A call in Python and what it prints, for the documentation; the package's tests run it.
    pub example: &'static str,
    pub(crate) make: fn(&Parts) -> Result<Draft, NormalizationError>,
    pub(crate) exact: ExactMapFn,
}

impl std::fmt::Debug for NormalizationEntry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "NormalizationEntry({})", self.name)
    }
}

/// A request that a normalization does not take.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum NormalizationError {
    /// No normalization of that name.
    #[error("unknown normalization `{name}`; legal ones are {legal}")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The catalogue's names.
        legal: String,
    },
    /// A number or an array that the normalization does not have.
    #[error("`{normalization}` takes no {what} `{name}`; it takes {legal}")]
    NoSuch {
        /// The normalization.
        normalization: String,
        /// `parameter` or `array`.
        what: &'static str,
        /// The name that was given.
        name: String,
        /// Those that it has.
        legal: String,
    },
    /// A parameter that is no finite number of at least 0.
    #[error("`{parameter}` of `{normalization}` is to be a finite number of at least 0, got {value}")]
    Parameter {
        /// The normalization.
        normalization: String,
        /// The parameter.
        parameter: String,
        /// The value that was given.
        value: f64,
    },
    /// The expression of an element's result is no number that can be rounded to the output type.
    #[error("the map of `{normalization}` is to give a float scalar, got {found}")]
    Result {
        /// The normalization.
        normalization: String,
        /// The type of the expression.
        found: String,
    },
    /// An expression over variables of its surroundings.
    #[error("the map of `{normalization}` uses `{found}`, which is none of its parameters")]
    Stranger {
        /// The normalization.
        normalization: String,
        /// The variable.
        found: String,
    },
    /// A map that reads no statistic of its row.
    #[error(
        "the map of `{normalization}` reads none of its statistics ({statistics}), so there is nothing to fold"
    )]
    Unread {
        /// The normalization.
        normalization: String,
        /// What it could read.
        statistics: String,
    },
    /// A statistic that the catalogue does not have.
    #[error(transparent)]
    Statistic(#[from] UnknownReducer),
    /// A statistic that does not take the request.
    #[error(transparent)]
    Reducer(#[from] ReducerError),
    /// Statistics that cannot be folded together.
    #[error(transparent)]
    Product(#[from] ProductError),
}

impl Normalization {
    /// The same with folds that have one more input, a bool: whether an element takes part. `None` where nothing is known that may stand
    /// for one that does not.
    pub fn flagged(&self) -> Option<Normalization> {
        let told = |staged: &Staged| {
            let first = flagged::of_one(&staged.first)?;
            Some(Staged { first, ..staged.clone() })
        };
        let staged = self.staged.as_ref().and_then(told);
        Some(Normalization { reducer: flagged::of_one(&self.reducer)?, staged, ..self.clone() })
    }

    /// The same of what `map` gives of the elements, in place of the elements.
    #[must_use]
    pub fn of_mapped(self, map: &Lambda) -> Normalization {
        let staged = self.staged.map(|staged| Staged {
            first: staged.first.of_mapped(map),
            kept: staged.kept.of_mapped(map),
            ..staged
        });
        Normalization {
            reducer: self.reducer.of_mapped(map),
            bound: self.bound.map(|bound| MapBound { scale: bound.scale.of_mapped(map), ..bound }),
            map: self.map.of_mapped(map),
            staged,
            ..self
        }
    }

    /// Whether the fold or the map reads that one of the elements.
    pub fn reads(&self, element: usize) -> bool {
        self.reducer.reads(element) || self.map.reads(element)
    }

    /// The results of a row by this definition, evaluated expression by expression, and the scale of each one's error
    /// where a bound is stated, else 0. `beside`: for each of the arrays, a value an element. `takes_part`: whether a mask lets the
    /// element at a position take part.
    pub fn evaluate(
        &self,
        elements: &[Value],
        beside: &[Vec<Value>],
        takes_part: &dyn Fn(usize) -> bool,
    ) -> Result<Vec<(f64, f64)>, EvalError> {
        let reducer = &self.reducer;
        let start = reducer.identity.iter().map(|e| eval_expr(e, &mut Default::default()));
        let mut state: Vec<Value> = start.collect::<Result<_, _>>()?;
        for (position, element) in elements.iter().enumerate() {
            if !takes_part(position) || reducer.nan == NanPolicy::Ignore && element.is_nan() {
                continue;
            }
            let lifted = eval_lambda(&reducer.lift, &[*element, Value::Int(position as i128)])?;
            state = eval_lambda(&reducer.combine, &[state, lifted].concat())?;
        }
        let of_row = eval_lambda(&reducer.finish, &state)?;
        let mut results = Vec::with_capacity(elements.len());
        for (at, element) in elements.iter().enumerate() {
            if let Some(result) = self.left_out.filter(|_| !takes_part(at)) {
                results.push((result, 0.0));
                continue;
            }
            let beside = beside.iter().map(|values| values[at]);
            let args: Vec<Value> =
                [*element].into_iter().chain(of_row.iter().copied()).chain(beside).collect();
            let result = eval_lambda(&self.map, &args)?[0].as_f64();
            let scale = match &self.bound {
                Some(bound) => eval_lambda(&bound.scale, &args)?[0].as_f64(),
                None => 0.0,
            };
            results.push((result, scale));
        }
        Ok(results)
    }
}

impl NormalizationEntry {
    /// The exact results of a row, in `float64`, one an element; they owe nothing to the normalization's expressions.
    ///
    /// `beside`: the arrays that are given, by name, with a value for each element. `takes_part`: whether a mask lets the element
    /// at a position take part. The request says the rest.
    pub fn reference(
        &self,
        request: &NormalizationRequest,
        elements: &[f64],
        beside: &[(&str, Vec<f64>)],
        takes_part: &dyn Fn(usize) -> bool,
    ) -> Vec<f64> {
        let is_folded = |(at, v): &(usize, &f64)| {
            takes_part(*at) && (request.fold.nan == NanPolicy::Propagate || !v.is_nan())
        };
        let folded = elements.iter().enumerate().filter(is_folded).map(|(_, v)| *v).collect();
        let value = |p: &Parameter| (p.name, request.parameter(self.parameters, p.name));
        let parameters = self.parameters.iter().map(value).collect();
        let results =
            (self.exact)(&MappedRow { elements, folded, ddof: request.fold.ddof, parameters, beside });
        let chosen = |(at, result): (usize, f64)| self.left_out.filter(|_| !takes_part(at)).unwrap_or(result);
        results.into_iter().enumerate().map(chosen).collect()
    }

    /// The normalization for a request.
    pub fn build(&self, request: &NormalizationRequest) -> Result<Normalization, NormalizationError> {
        let legal = |names: Vec<&str>| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let no_such = |what, name: &str, names| NormalizationError::NoSuch {
            normalization: self.name.to_owned(),
            what,
            name: name.to_owned(),
            legal: legal(names),
        };
        for (name, value) in &request.parameters {
            if !self.parameters.iter().any(|p| p.name == name) {
                let names = self.parameters.iter().map(|p| p.name).collect();
                return Err(no_such("parameter", name, names));
            }
            if !(value.is_finite() && *value >= 0.0) {
                let (normalization, parameter) = (self.name.to_owned(), name.clone());
                return Err(NormalizationError::Parameter { normalization, parameter, value: *value });
            }
        }
        let known = |name: &str| self.beside.iter().find(|e| e.name == name);
        if let Some((name, _)) = request.beside.iter().find(|(name, _)| known(name).is_none()) {
            return Err(no_such("array", name, self.beside.iter().map(|e| e.name).collect()));
        }
        let along = |name: &str| known(name).map_or(Along::All, |e| e.along);
        let beside: Vec<Beside> = request
            .beside
            .iter()
            .map(|(name, dtype)| Beside { name: name.clone(), along: along(name), dtype: *dtype })
            .collect();
        let parts = Parts::new(self.name, request, beside, self.parameters);
        let draft = (self.make)(&parts)?;
        Ok(Normalization { left_out: self.left_out, ..parts.finish(draft)? })
    }
}

/// What a normalization is made from: the variables of its map, and the numbers that were given.
pub(crate) struct Parts<'a> {
    name: String,
    pub(crate) request: &'a NormalizationRequest,
    declared: &'static [Parameter],
    elements: Vec<Var>,
    beside: Vec<(Beside, Var)>,
}

/// A normalization in the making.
pub(crate) struct Draft {
    /// The fold; what its `finish` gives is put through `rows`.
    pub(crate) reducer: Reducer,
    /// What the map reads of a row, made from the results of the fold.
    pub(crate) rows: Vec<Expr>,
    /// The variables that stand for `rows` in the map.
    pub(crate) row_vars: Vec<Var>,
    /// The result of one element.
    pub(crate) value: Expr,
    /// The same in two folds.
    pub(crate) staged: Option<Staged>,
    /// Factor and scale of the error.
    pub(crate) bound: Option<(f64, Expr)>,
}

impl<'a> Parts<'a> {
    pub(crate) fn new(
        name: &str,
        request: &'a NormalizationRequest,
        beside: Vec<Beside>,
        declared: &'static [Parameter],
    ) -> Parts<'a> {
        let inputs = &request.fold.inputs;
        let element = |(i, dtype): (usize, &DType)| Var::new(&format!("x{i}"), *dtype);
        let elements = inputs.iter().enumerate().map(element).collect();
        let beside = beside.into_iter().map(|e| (e.clone(), Var::new(&e.name, e.dtype))).collect();
        Parts { name: name.to_owned(), request, declared, elements, beside }
    }

    /// The type in which the map computes: `float32` for floats of at most 32 bits unless `float64` is asked for as
    /// accumulator, else `float64`.
    pub(crate) fn compute(&self) -> DType {
        let promoted = self.request.fold.promoted();
        let narrow =
            promoted.is_float() && promoted != DType::F64 && self.request.fold.acc != Some(DType::F64);
        if narrow { DType::F32 } else { DType::F64 }
    }

    /// The type in which the map gives its result: that in which it computes, or `float64` where that is asked for.
    pub(crate) fn result(&self) -> DType {
        if self.request.wide { DType::F64 } else { self.compute() }
    }

    /// The element of an input in the compute type.
    pub(crate) fn element(&self, input: usize) -> Expr {
        self.elements[input].expr().cast(self.compute())
    }

    /// A variable of the map that stands for a value of the row to be taken off the elements, and the value;
    /// and what is left of the element of the first input, in the type of the result: two numbers of `float32` may
    /// differ by more than one of them holds. Integers of 64 bits are subtracted as they are.
    pub(crate) fn less(&self, name: &str, value: Expr) -> (Var, Expr, Expr) {
        let own = self.elements[0].expr();
        if !is_wide(own.dtype()) || value.dtype() != own.dtype() {
            let (var, of_row) = self.row(name, value);
            let [element, less] = [self.element(0), var.expr()].map(|e| e.cast(self.result()));
            let rest = &element - &less;
            return (var, of_row, rest);
        }
        let var = Var::new(name, own.dtype());
        let rest = difference(&own, &var.expr());
        (var, value, rest)
    }

    /// An array beside the elements, in the type of the result, where it is given.
    pub(crate) fn beside(&self, name: &str) -> Option<Expr> {
        let found = self.beside.iter().find(|(e, _)| e.name == name);
        found.map(|(_, var)| var.expr().cast(self.result()))
    }

    /// The number that was given, or the default.
    pub(crate) fn parameter(&self, name: &str) -> f64 {
        self.request.parameter(self.declared, name)
    }

    /// The statistics of the catalogue, folded together, and one expression a result, in the precision of the state.
    pub(crate) fn statistics(&self, names: &[&str]) -> Result<(Reducer, Vec<Expr>), NormalizationError> {
        let mut parts = Vec::new();
        for name in names {
            let entry = find(name)?;
            let read = self.request.fold.inputs.iter().copied().take(entry.n_inputs).collect();
            let own = ReducerRequest { inputs: read, ..self.request.fold.clone() };
            parts.push((*name, entry.build(&own)?));
        }
        let reducer = product(&parts)?.reducer;
        let results = reducer.finish.body.clone();
        Ok((reducer, results))
    }

    /// As [`Parts::statistics`]; then the same statistics of the elements times a power of two, folded beside. Of one
    /// input of floats.
    pub(crate) fn statistics_beside_scaled(
        &self,
        names: &[&str],
        by: f64,
    ) -> Result<(Reducer, Vec<Expr>), NormalizationError> {
        let x = Var::new("x", self.request.fold.inputs[0]);
        let map = Lambda { body: vec![&x.expr() * &Expr::float(by, x.dtype())], params: vec![x] };
        let scaled_names: Vec<String> = names.iter().map(|name| format!("{name}_scaled")).collect();
        let mut parts = Vec::new();
        for name in names {
            parts.push((*name, find(name)?.build(&self.request.fold)?));
        }
        for (name, scaled) in names.iter().zip(&scaled_names) {
            parts.push((scaled, find(name)?.build(&self.request.fold)?.of_mapped(&map)));
        }
        let reducer = product(&parts)?.reducer;
        let results = reducer.finish.body.clone();
        Ok((reducer, results))
    }

    /// A variable of the map that stands for a value of the row in the compute type, and the value.
    pub(crate) fn row(&self, name: &str, value: Expr) -> (Var, Expr) {
        (Var::new(name, self.compute()), value.cast(self.compute()))
    }

    pub(crate) fn finish(self, draft: Draft) -> Result<Normalization, NormalizationError> {
        let Draft { reducer, rows, row_vars, value, staged, bound } = draft;
        let value = if self.request.wide { value.cast(DType::F64) } else { value };
        if !value.dtype().is_float() || value.lanes() != 1 {
            let found = value.ty().to_string();
            return Err(NormalizationError::Result { normalization: self.name, found });
        }
        let vars_beside = self.beside.iter().map(|(_, var)| var);
        let params: Vec<Var> = self.elements.iter().chain(&row_vars).chain(vars_beside).cloned().collect();
        let map = Lambda { params, body: vec![value] };
        if let Some(found) = map.stranger() {
            return Err(NormalizationError::Stranger { normalization: self.name, found });
        }
        if !uses_any(&map.body[0], &row_vars) {
            let names: Vec<&str> = row_vars.iter().map(Var::name).collect();
            return Err(NormalizationError::Unread {
                normalization: self.name,
                statistics: names.join(", "),
            });
        }
        let results = row_vars.iter().zip(&rows);
        let results =
            results.map(|(var, e)| Field { name: var.name().to_owned(), dtype: e.dtype() }).collect();
        let finish = Lambda { params: reducer.finish.params.clone(), body: rows };
        let eps = if self.compute() == DType::F32 { EPS32 } else { f64::EPSILON };
        Ok(Normalization {
            result: Field { name: self.name.clone(), dtype: self.request.result_dtype() },
            reducer: Reducer { name: self.name.clone(), finish, results, ..reducer },
            beside: self.beside.into_iter().map(|(array, _)| array).collect(),
            bound: bound.map(|(factor, scale)| MapBound {
                factor,
                eps,
                scale: Lambda { params: map.params.clone(), body: vec![scale] },
            }),
            map,
            staged,
            left_out: None,
            refuses_empty: None,
            name: self.name,
        })
    }
}

/// Distance from 1 to the next value of a float type.
fn epsilon(dtype: DType) -> f64 {
    match dtype {
        DType::F8E5M2 => 0.25,
        DType::F8E4M3 => 0.125,
        DType::F16 => 2f64.powi(-10),
        DType::BF16 => 2f64.powi(-7),
        DType::F32 => EPS32,
        DType::F64
        | DType::Bool
        | DType::I8
        | DType::I16
        | DType::I32
        | DType::I64
        | DType::U8
        | DType::U16
        | DType::U32
        | DType::U64 => f64::EPSILON,
    }
}
