//! Normalizations in requests: results that read each element again with the statistics of its row, as softmax
//! does.
//!
//! A request holds either statistics or a normalization. Both take one way through planning, compiling and running.

use std::collections::BTreeMap;
use std::sync::Arc;

use coulis_io::Array;
use coulis_ir::args::ArrayInfo;
use coulis_ir::expr::promoted_dtype;
use coulis_ir::print::{print_expr, print_reducer};
use coulis_ir::{DType, Expr, Lambda};
use coulis_plan::{Map, OutputSpec, Problem, Spec};
use coulis_reducers::{
    Along, Normalization, NormalizationEntry, NormalizationRequest, Product, UserNormalization,
    find_normalization,
};

use crate::error::Error;
use crate::prologue::{Prologue, with_narrow_values};
use crate::reduce::{self, Call, machine_request};
use crate::request::Request;

/// What a request asks for instead of statistics: a map over the elements, with its numbers and the arrays beside them.
#[derive(Clone, Debug)]
pub struct Normalize {
    which: Which,
    parameters: BTreeMap<String, f64>,
    beside: Vec<String>,
}

#[derive(Clone, Debug)]
enum Which {
    Listed(&'static NormalizationEntry),
    Own(Arc<UserNormalization>),
}

impl PartialEq for Normalize {
    /// Equal in everything that a kernel depends on; the caller's own are equal where they are one.
    fn eq(&self, other: &Normalize) -> bool {
        let same = match (&self.which, &other.which) {
            (Which::Listed(a), Which::Listed(b)) => a.name == b.name,
            (Which::Own(a), Which::Own(b)) => Arc::ptr_eq(a, b),
            (Which::Listed(_), Which::Own(_)) | (Which::Own(_), Which::Listed(_)) => false,
        };
        same && self.parameters == other.parameters && self.beside == other.beside
    }
}

impl Normalize {
    /// The normalization of the catalogue, its numbers at their defaults, no arrays beside the elements.
    pub fn named(name: &str) -> Result<Normalize, Error> {
        let which = Which::Listed(find_normalization(name)?);
        Ok(Normalize { which, parameters: BTreeMap::new(), beside: Vec::new() })
    }

    /// A normalization of the caller's own, whose arrays are all to be given.
    pub fn own(normalization: UserNormalization) -> Normalize {
        let beside = normalization.beside.iter().map(|(name, _)| name.clone()).collect();
        Normalize { which: Which::Own(Arc::new(normalization)), parameters: BTreeMap::new(), beside }
    }

    /// The same with a number.
    pub fn with(mut self, name: &str, value: f64) -> Normalize {
        self.parameters.insert(name.to_owned(), value);
        self
    }

    /// The same with arrays of these names, which the call gives behind the inputs, in this order.
    pub fn beside(mut self, names: &[&str]) -> Normalize {
        self.beside = names.iter().map(|name| (*name).to_owned()).collect();
        self
    }

    /// Its name, which is that of the result.
    pub fn name(&self) -> &str {
        match &self.which {
            Which::Listed(entry) => entry.name,
            Which::Own(own) => &own.name,
        }
    }

    /// Whether `ddof` matters.
    fn takes_ddof(&self) -> Result<bool, Error> {
        match &self.which {
            Which::Listed(entry) => Ok(entry.takes_ddof),
            Which::Own(own) => {
                let mut any = false;
                for name in &own.statistics {
                    any |= coulis_reducers::find(name)?.takes_ddof;
                }
                Ok(any)
            }
        }
    }

    /// Number of arrays whose elements are folded; those beside them follow.
    fn n_inputs(&self) -> Result<usize, Error> {
        match &self.which {
            Which::Listed(_) => Ok(1),
            Which::Own(own) => {
                let mut widest = 1;
                for name in &own.statistics {
                    widest = widest.max(coulis_reducers::find(name)?.n_inputs);
                }
                Ok(widest)
            }
        }
    }

    /// `wide` and `result` as in [`NormalizationRequest`]; one's own maps give what they give.
    pub(crate) fn build(
        &self,
        fold: &coulis_reducers::ReducerRequest,
        beside: &[DType],
        wide: bool,
        result: Option<DType>,
    ) -> Result<Normalization, Error> {
        match &self.which {
            Which::Listed(entry) => {
                let parameters = self.parameters.iter().map(|(n, v)| (n.clone(), *v)).collect();
                let beside = self.beside.iter().cloned().zip(beside.iter().copied()).collect();
                let fold = fold.clone();
                Ok(entry.build(&NormalizationRequest { fold, parameters, beside, wide, result })?)
            }
            Which::Own(own) => {
                if let Some(name) = self.parameters.keys().next() {
                    let message = format!("`{}` is your own and takes no parameter `{name}`", own.name);
                    return Err(Error::user("normalize/parameter", message));
                }
                Ok(own.build(fold, beside, result)?)
            }
        }
    }
}

impl Request {
    /// A normalization over all axes, everything else by default.
    pub fn normalizing(normalize: Normalize) -> Request {
        Request { normalize: Some(normalize), ..Request::new(&[]) }
    }
}

/// Checks a request for a normalization against the types, shapes and strides of the inputs and the arrays beside them.
pub(crate) fn check(inputs: &[ArrayInfo], request: &Request, normalize: &Normalize) -> Result<Call, Error> {
    let name = normalize.name();
    check_options(request, normalize)?;
    let n_values = normalize.n_inputs()?;
    let n_inputs = request.prologue.as_ref().map_or(n_values, Prologue::n_inputs);
    let wanted = n_inputs + normalize.beside.len();
    if inputs.len() != wanted {
        let beside = normalize.beside.join(", ");
        let message = format!(
            "`{name}` is to be given {wanted} array(s), {n_inputs} to fold and those beside them ({}), got {}",
            if beside.is_empty() { "none" } else { &beside },
            inputs.len()
        );
        return Err(Error::user("normalize/input", message));
    }
    let (folded, beside) = inputs.split_at(n_inputs);
    let read: Vec<DType> = folded.iter().map(|a| a.dtype).collect();
    let prologue =
        request.prologue.as_ref().map(|prologue| prologue.build(&read, request.acc_dtype)).transpose()?;
    if let Some(map) = prologue.as_ref().filter(|map| map.body.len() != n_values) {
        let message =
            format!("`{name}` is of {n_values} value(s), and the prologue gives {}", map.body.len());
        return Err(Error::user("normalize/prologue", message));
    }
    let prologue = prologue.map(|map| with_narrow_values(map, Some).0);
    // What is folded is the elements, or what the prologue makes of them.
    let dtypes = match &prologue {
        Some(map) => map.body.iter().map(Expr::dtype).collect(),
        None => read.clone(),
    };
    let reducer_request = coulis_reducers::ReducerRequest {
        nan: reduce::nan_of(&dtypes, request),
        inputs: dtypes,
        acc: request.acc_dtype,
        ddof: request.ddof,
        ..machine_request(&inputs[0], request)
    };
    let beside_dtypes: Vec<DType> = beside.iter().map(|a| a.dtype).collect();
    let own = |map: &BTreeMap<String, f64>, plain: f64| of(map, name).unwrap_or(plain) != plain;
    let is_scaled = own(&request.alpha, 1.0) || own(&request.beta, 0.0);
    let wide = is_scaled || of(&request.out_dtypes, name) == Some(DType::F64);
    let result = prologue.as_ref().and_then(|map| result_of_widened(&read, map, request.acc_dtype));
    let plain = normalize.build(&reducer_request, &beside_dtypes, wide, result)?;
    let normalization = match &prologue {
        Some(map) => plain.clone().of_mapped(map),
        None => plain.clone(),
    };
    let named = named_axes(request, inputs[0].shape.len());
    let axes = coulis_plan::problem::resolve_axes(named, inputs[0].shape.len())?;
    let placed = beside.iter().zip(&normalization.beside);
    let placed: Vec<ArrayInfo> = placed
        .map(|(array, extra)| place(array, &extra.name, extra.along, name, &inputs[0].shape, &axes))
        .collect::<Result<_, _>>()?;
    let reducer = normalization.reducer.clone();
    let any_order = reducer.claims.any_order() && reducer.ignores_position();
    let mask = reduce::mask_of(request)?;
    let problem = Problem::of_map(folded, mask.as_ref(), &placed, named, request.order, !any_order)?;
    let is_read = |array| normalization.reads(array);
    let problem = problem.in_order(&read, is_read, mask.is_some(), !any_order, !reduce::has_threads(request));
    let outputs = vec![output(request, &normalization)?];
    let map = Map {
        lambda: normalization.map.clone(),
        beside: beside_dtypes,
        staged: normalization.staged.clone(),
        left_out: normalization.left_out,
    };
    let mut spec = Spec::new(problem, read, mask.is_some(), reducer.clone(), outputs, Some(map));
    if reduce::pays_to_tell(&spec, &reducer, request)
        && let Some(flagged) = plain.flagged()
    {
        let flagged = match &prologue {
            Some(map) => flagged.of_mapped(map),
            None => flagged,
        };
        if let Some(map) = &mut spec.map {
            map.staged = flagged.staged;
        }
        spec = spec.with_flags(flagged.reducer);
    }
    Ok(Call {
        statistics: Vec::new(),
        product: Product { reducer, parts: Vec::new() },
        spec,
        reducer_request,
        inits: Vec::new(),
        names: vec![name.to_owned()],
        prologue,
        normalization: Some(normalization),
    })
}

/// Refuses what statistics take and normalizations do not.
fn check_options(request: &Request, normalize: &Normalize) -> Result<(), Error> {
    let refused = |message: String| Err(Error::user("normalize/option", message));
    let name = normalize.name();
    if let Some(op) = request.ops.first() {
        return refused(format!("a request gives statistics or `{name}`, not both; `{op}` is asked for too"));
    }
    if request.keepdims {
        return refused(format!("`{name}` keeps every axis as it is; there is no `keepdims`"));
    }
    if let Some(op) = request.init.keys().next() {
        return refused(format!("`{name}` takes no initial value, and one is given for `{op}`"));
    }
    if request.ddof != 0.0 && !normalize.takes_ddof()? {
        let takers = coulis_reducers::NORMALIZATIONS.iter().filter(|e| e.takes_ddof).map(|e| e.name);
        return refused(format!(
            "`{name}` takes no ddof, and {} is given; those that do are {}",
            request.ddof,
            takers.collect::<Vec<_>>().join(", ")
        ));
    }
    Ok(())
}

/// The type of the result of what a prologue makes of floats, where it makes of them what they are widened to: that of the arrays.
fn result_of_widened(read: &[DType], prologue: &Lambda, acc_dtype: Option<DType>) -> Option<DType> {
    let own = read.iter().copied().reduce(promoted_dtype).filter(|dtype| dtype.is_float())?;
    let widened = Prologue::element_dtype(own, acc_dtype);
    prologue.body.iter().all(|value| value.dtype() == widened).then_some(own)
}

/// The axes of a row as they are named. The one element of an array without axes is a row, and its first axis and its last
/// one are none, as in PyTorch: so the last axis, by default that of a row, is there in every array.
fn named_axes(request: &Request, rank: usize) -> Option<&[i64]> {
    match request.axes.as_deref() {
        Some([0 | -1]) if rank == 0 => Some(&[]),
        named => named,
    }
}

/// What is given for the result by its name, or for all results.
fn of<V: Copy>(map: &BTreeMap<String, V>, name: &str) -> Option<V> {
    map.get(name).or_else(|| map.get("")).copied()
}

/// The type and the factors of the result.
fn output(request: &Request, normalization: &Normalization) -> Result<OutputSpec, Error> {
    let name = &normalization.name;
    let given = request.out_dtypes.keys().chain(request.alpha.keys()).chain(request.beta.keys());
    if let Some(unknown) = given.into_iter().find(|n| !n.is_empty() && *n != name) {
        let message = format!("`{unknown}` is not the result of this request, which is `{name}`");
        return Err(Error::user("normalize/option", message));
    }
    let dtype = of(&request.out_dtypes, name).unwrap_or(normalization.result.dtype);
    if !dtype.is_float() {
        let message = format!("`{name}` gives a float; {dtype} cannot hold it, the float types can");
        return Err(Error::user("normalize/dtype", message));
    }
    let alpha = of(&request.alpha, name).unwrap_or(1.0);
    let beta = of(&request.beta, name).unwrap_or(0.0);
    Ok(OutputSpec { dtype, alpha, beta })
}

/// The array as one of all axes, with extent 1 along those that it does not have.
fn place(
    array: &ArrayInfo,
    array_name: &str,
    along: Along,
    normalization: &str,
    shape: &[i64],
    axes: &[usize],
) -> Result<ArrayInfo, Error> {
    let own: Vec<usize> = match along {
        Along::All => (0..shape.len()).collect(),
        Along::Reduced => axes.to_vec(),
        Along::Kept => (0..shape.len()).filter(|a| !axes.contains(a)).collect(),
    };
    let wanted: Vec<i64> = own.iter().map(|&a| shape[a]).collect();
    let mut placed =
        ArrayInfo { dtype: array.dtype, shape: vec![1; shape.len()], strides: vec![0; shape.len()] };
    let missing = own.len().checked_sub(array.shape.len());
    let fits = missing.is_some_and(|missing| {
        let pairs = own[missing..].iter().zip(array.shape.iter().zip(&array.strides));
        pairs.fold(true, |fits, (&axis, (&extent, &stride))| {
            placed.shape[axis] = extent;
            placed.strides[axis] = if extent == 1 { 0 } else { stride };
            fits && (extent == 1 || extent == shape[axis])
        })
    });
    if fits {
        return Ok(placed);
    }
    let what = match along {
        Along::All => "all axes",
        Along::Reduced => "the reduced axes",
        Along::Kept => "the kept axes",
    };
    let message = format!(
        "`{array_name}` of `{normalization}` is to have a shape that broadcasts to that of {what}, {wanted:?}, got {:?}",
        array.shape
    );
    Err(Error::user("normalize/shape", message))
}

/// What tells the kernels of a normalization from others.
pub(crate) fn key(normalization: &Normalization) -> String {
    let staged = normalization.staged.iter().flat_map(|staged| {
        let folds = [&staged.first, &staged.second].map(print_reducer);
        folds.into_iter().chain([&staged.kept, &staged.map].map(lambda_key))
    });
    let left_out = format!("{:?}", normalization.left_out);
    let parts = [print_reducer(&normalization.reducer), lambda_key(&normalization.map), left_out];
    parts.into_iter().chain(staged).collect::<Vec<String>>().join("|")
}

/// What tells a lambda from others.
pub(crate) fn lambda_key(lambda: &Lambda) -> String {
    let params: Vec<String> = lambda.params.iter().map(|p| format!("{}:{}", p.name(), p.dtype())).collect();
    let body: Vec<String> = lambda.body.iter().map(print_expr).collect();
    format!("{}|{}", params.join(","), body.join(","))
}

/// The normalization's result for an array, with further arrays behind it as `normalize` names them: of the input's
/// shape and type, `float64` for integers.
///
/// ```
/// use coulis::{Array, Normalize, normalization};
/// let x = Array::from_slice(&[1, 2], &[1f64, 3.0])?;
/// let y = normalization::run(Normalize::named("softmax")?, &[x.clone()], &[-1])?;
/// assert_eq!(y.scalars().map(|v| v.to_f64()).sum::<f64>(), 1.0);
///
/// let weight = Array::from_slice(&[2], &[10f64, 100.0])?;
/// let layer_norm = Normalize::named("layer_norm")?.with("eps", 0.0).beside(&["weight"]);
/// let y = normalization::run(layer_norm, &[x, weight], &[-1])?;
/// assert_eq!(y.scalars().map(|v| v.to_f64()).collect::<Vec<_>>(), [-10.0, 100.0]);
/// # Ok::<(), coulis::Error>(())
/// ```
///
/// Errors: as those of [`crate::reduce::run`].
pub fn run(normalize: Normalize, inputs: &[Array], axes: &[i64]) -> Result<Array, Error> {
    let outcome = reduce::run(inputs, &Request::normalizing(normalize).over(axes))?;
    outcome
        .results
        .into_iter()
        .next()
        .map(|result| result.array)
        .ok_or_else(|| Error::bug("normalize/result", "a normalization gave no result"))
}
