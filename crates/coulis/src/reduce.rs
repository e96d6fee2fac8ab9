//! `reduce`: arrays in, statistics out, in one read.

mod bound_kernel;
mod compiled;
mod launch;
mod memo;
mod narrow;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use coulis_io::{Array, ShapeError, check_shape};
use coulis_ir::args::ArrayInfo;
use coulis_ir::eval::Value;
use coulis_ir::expr::promoted_dtype;
use coulis_ir::{DType, Expr, Lambda, NanPolicy, Reducer};
use coulis_plan::{OutputSpec, Problem, ResultForm, Spec};
use coulis_reducers::{Normalization, Product};
use coulis_runtime::Rates;

pub(crate) use self::compiled::{choose, planned_for};
pub(crate) use self::memo::forget as forget_prepared;

use self::bound_kernel::{Alignment, BoundKernel};
use self::compiled::Chosen;
use crate::device::{self, Opened};
use crate::error::Error;
use crate::init::{inits, with_inits};
use crate::normalization;
use crate::prologue::with_narrow_values;
use crate::request::{NamedArray, Outcome, PlanInfo, Request};
use crate::statistic::Statistic;

pub use crate::empty::Doubt;
pub use crate::verify::verify_outcome;

/// A checked request: what is folded, and what becomes of it.
#[derive(Clone)]
pub struct Call {
    pub(crate) statistics: Vec<Statistic>,
    pub(crate) product: Product,
    pub(crate) spec: Spec,
    pub(crate) reducer_request: coulis_reducers::ReducerRequest,
    /// One a statistic.
    pub(crate) inits: Vec<Option<Value>>,
    /// Result names, one an output.
    pub(crate) names: Vec<String>,
    /// What is folded in place of the inputs' elements.
    pub(crate) prologue: Option<Lambda>,
    /// What is asked for instead of statistics; there are none then.
    pub(crate) normalization: Option<Normalization>,
}

/// Checks a request against the inputs' types, shapes and strides; reads no data.
pub fn check(inputs: &[ArrayInfo], request: &Request) -> Result<Call, Error> {
    if inputs.is_empty() {
        return Err(Error::user("reduce/input", "reduce takes at least one array, got none"));
    }
    if let Some(found) = inputs.iter().find(|info| info.strides.len() != info.shape.len()) {
        let message = format!(
            "an array of shape {:?} is to have a stride an axis, got the strides {:?}",
            found.shape, found.strides
        );
        return Err(Error::user("reduce/input", message));
    }
    for info in inputs {
        if let Err(error @ ShapeError::Overflow { .. }) = check_shape(info.dtype, &info.shape) {
            return Err(Error::user("reduce/shape", error));
        }
    }
    if let Some(normalize) = &request.normalize {
        return normalization::check(inputs, request, normalize);
    }
    let statistics = statistics_of(request)?;
    let read: Vec<DType> = inputs.iter().map(|a| a.dtype).collect();
    let prologue =
        request.prologue.as_ref().map(|prologue| prologue.build(&read, request.acc_dtype)).transpose()?;
    // What is folded is the elements, or what the prologue makes of them.
    let dtypes = match &prologue {
        Some(map) => map.body.iter().map(Expr::dtype).collect(),
        None => read.clone(),
    };
    let widest = statistics.iter().map(Statistic::n_inputs).max().unwrap_or(1);
    if dtypes.len() > widest {
        let given = if prologue.is_some() { "values are made" } else { "arrays are given" };
        let message = format!("{} {given}, and the statistics asked for read {widest}", dtypes.len());
        return Err(Error::user("reduce/input", message));
    }
    let nan = nan_of(&dtypes, request);
    let mut reducer_request = coulis_reducers::ReducerRequest {
        inputs: dtypes,
        acc: request.acc_dtype,
        ddof: request.ddof,
        nan,
        ..machine_request(&inputs[0], request)
    };
    let mut product = product_of(&statistics, &reducer_request)?;
    let result_dtypes = dtypes_of_results(&product);
    let prologue = prologue.map(|map| {
        let (map, narrow) = with_narrow_values(map, |inputs| {
            let own = coulis_reducers::ReducerRequest { inputs, ..reducer_request.clone() };
            narrow_product(&statistics, request, &own, &result_dtypes).map(|product| (own, product))
        });
        if let Some(narrow) = narrow {
            (reducer_request, product) = narrow;
        }
        map
    });
    let keeps_laws = product.reducer.claims.any_order();
    let any_order = keeps_laws && product.parts.iter().all(|p| p.reducer.ignores_position());
    let mask = mask_of(request)?;
    let form = ResultForm { keepdims: request.keepdims, order: request.order };
    let mut problem = Problem::new(inputs, mask.as_ref(), request.axes.as_deref(), form, !any_order)?;
    if keeps_laws {
        problem = problem.for_vectors(!has_threads(request));
    }
    let of_read = |reducer: Reducer| match &prologue {
        Some(map) => reducer.of_mapped(map),
        None => reducer,
    };
    let is_read = |array| of_read(product.reducer.clone()).reads(array);
    problem = problem.in_order(&read, is_read, mask.is_some(), !any_order, !has_threads(request));
    if any_order && has_threads(request) {
        problem = problem.in_one_piece(&read, mask.is_some());
    }
    if product.reducer.step_needs_ascending && !problem.positions_ascend() {
        reducer_request = reducer_request.in_any_order();
        product = product_of(&statistics, &reducer_request)?;
    }
    let folded = reducer_request.inputs[0];
    let inits = inits(request, &statistics, folded)?;
    check_rows(&problem, &inputs[0].shape, &statistics, &inits)?;
    let names: Vec<String> = product.reducer.results.iter().map(|f| f.name.clone()).collect();
    // What is folded is wide; results of floats have the inputs' type all the same.
    let narrow = prologue.as_ref().and_then(|_| read.iter().copied().reduce(promoted_dtype));
    let narrow = narrow.filter(|dtype| dtype.is_float() && dtype.bytes() < 4);
    let outputs = outputs(request, &statistics, &product, &result_dtypes, narrow)?;
    let reducer = of_read(with_inits(&product, &inits, folded));
    let mut spec = Spec::new(problem, read, mask.is_some(), reducer, outputs, None);
    if pays_to_tell(&spec, &product.reducer, request)
        && are_listed(&statistics)
        && let Some(flagged) = product.flagged()
    {
        spec = spec.with_flags(of_read(flagged));
    }
    narrow::refuse(&statistics, &product, &spec)?;
    let call =
        Call { statistics, product, spec, reducer_request, inits, names, prologue, normalization: None };
    crate::empty::check_positions(&call)?;
    Ok(call)
}

/// What becomes of NaN among elements of these types. Of integers none is NaN.
pub(crate) fn nan_of(dtypes: &[DType], request: &Request) -> NanPolicy {
    if dtypes.iter().any(|d| d.is_float()) { request.nan } else { NanPolicy::Propagate }
}

/// The mask of a request.
pub(crate) fn mask_of(request: &Request) -> Result<Option<ArrayInfo>, Error> {
    let mask = request.where_.as_ref().map(array_info);
    if let Some(found) = mask.as_ref().filter(|m| m.dtype != DType::Bool) {
        let message = format!(
            "`where` is to be of bool, which elements take part, got {} of shape {:?}; a comparison gives bool, as \
             `x != 0` does",
            found.dtype, found.shape
        );
        return Err(Error::user("reduce/where", message));
    }
    Ok(mask)
}

/// The statistics of a request, one at least.
fn statistics_of(request: &Request) -> Result<Vec<Statistic>, Error> {
    if request.ops.is_empty() {
        return Err(Error::user("reduce/op", "no statistic is asked for").with_help(legal_ops()));
    }
    let mut statistics = Vec::new();
    for op in &request.ops {
        statistics.push(Statistic::find(op, &request.reducers)?);
    }
    if request.ddof != 0.0 && !statistics.iter().any(Statistic::takes_ddof) {
        let takers = coulis_reducers::CATALOGUE.iter().filter(|e| e.takes_ddof).map(|e| e.name);
        let message = format!(
            "ddof {} is given, and none of the statistics asked for takes one: {}; those that do are {}",
            request.ddof,
            request.ops.join(", "),
            takers.collect::<Vec<_>>().join(", ")
        );
        return Err(Error::user("reduce/ddof", message));
    }
    Ok(statistics)
}

/// Refuses rows without elements, where a statistic has no value of none.
fn check_rows(
    problem: &Problem,
    shape: &[i64],
    statistics: &[Statistic],
    inits: &[Option<Value>],
) -> Result<(), Error> {
    let has_answer =
        |(statistic, init): &(&Statistic, &Option<Value>)| !statistic.refuses_empty() || init.is_some();
    if problem.reduce_len == 0
        && problem.n_outputs > 0
        && let Some((statistic, _)) = statistics.iter().zip(inits).find(|pair| !has_answer(pair))
    {
        let message = format!(
            "`{}` of an empty set has no value: the reduced axes {:?} of shape {:?} hold no elements",
            statistic.name(),
            problem.axes,
            shape
        );
        return Err(Error::user("reduce/empty", message));
    }
    Ok(())
}

/// Whether the device that a request names runs kernels in blocks of threads.
pub(crate) fn has_threads(request: &Request) -> bool {
    device::open(request).is_ok_and(|device| device.target().has_threads())
}

/// What machines ask of reducers: positions as narrow as they kernel; with threads in blocks, runs that walk twice over
/// what is in registers, and with vectors, narrow runs of a sum that stands alone.
pub(crate) fn machine_request(input: &ArrayInfo, request: &Request) -> coulis_reducers::ReducerRequest {
    let plain = coulis_reducers::ReducerRequest::new(&[]);
    let has_threads = has_threads(request);
    let axes = coulis_plan::problem::resolve_axes(request.axes.as_deref(), input.shape.len());
    match axes {
        Ok(axes) => {
            let length = axes.iter().try_fold(1i64, |n, &axis| n.checked_mul(input.shape[axis]));
            let mut plain = plain.with_length(length.unwrap_or(i64::MAX));
            let drops_nan = request.nan == NanPolicy::Ignore && input.dtype.is_float();
            plain.leaves_out = !has_threads && (request.where_.is_some() || drops_nan);
            // An initial value is one more.
            let one_more = i64::from(!request.init.is_empty());
            plain.few = length.filter(|_| !has_threads).and_then(|n| n.checked_add(one_more));
            let is_columns = keeps_innermost(input, &axes);
            // Columns' states are in memory, and to fold elements into them would take the registers of runs.
            let by_vectors = || if is_columns { plain.clone() } else { plain.clone().with_runs_given_up() };
            match request.ops.len() {
                // One statistic of columns, which threads fold each from end to end.
                1 if has_threads && is_columns => plain.with_two_walks().with_positions_in_passing(),
                _ if has_threads => plain.with_two_walks(),
                1 if is_long(input, &axes) => by_vectors().with_narrow_runs().with_long_runs(),
                1 => by_vectors().with_narrow_runs(),
                _ => by_vectors(),
            }
        }
        Err(_) => plain,
    }
}

/// Fewer elements of a result next to each other are no long run.
const LONG: i64 = 512;

/// Whether many elements of each result stand next to each other in memory.
fn is_long(input: &ArrayInfo, axes: &[usize]) -> bool {
    let mut along: Vec<usize> = (0..input.shape.len()).filter(|&axis| input.shape[axis] > 1).collect();
    along.sort_by_key(|&axis| input.strides[axis].unsigned_abs());
    let (mut length, mut next) = (1i64, None);
    for axis in along {
        let follows = next.is_none_or(|stride| input.strides[axis].unsigned_abs() == stride);
        if !follows || !axes.contains(&axis) {
            break;
        }
        length = length.saturating_mul(input.shape[axis]);
        next = Some(input.strides[axis].unsigned_abs().saturating_mul(input.shape[axis].unsigned_abs()));
    }
    length >= LONG
}

/// Whether the elements next to each other in memory are those of several results.
fn keeps_innermost(input: &ArrayInfo, axes: &[usize]) -> bool {
    let along = (0..input.shape.len()).filter(|&axis| input.shape[axis] > 1);
    along.min_by_key(|&axis| input.strides[axis].unsigned_abs()).is_some_and(|axis| !axes.contains(&axis))
}

fn legal_ops() -> String {
    let names: Vec<&str> = coulis_reducers::CATALOGUE.iter().map(|e| e.name).collect();
    format!("legal statistics are {}", names.join(", "))
}

/// The reducer of all statistics together, each of which reads as many of the inputs as it takes.
fn product_of(statistics: &[Statistic], request: &coulis_reducers::ReducerRequest) -> Result<Product, Error> {
    let mut parts: Vec<(&str, Reducer)> = Vec::new();
    for statistic in statistics {
        let read = request.inputs.get(..statistic.n_inputs()).unwrap_or(&request.inputs);
        let own = coulis_reducers::ReducerRequest { inputs: read.to_vec(), ..request.clone() };
        parts.push((statistic.name(), statistic.build(&own)?));
    }
    Ok(coulis_reducers::product(&parts)?)
}

/// The same of integers in fewer bits than a prologue gives them in, where no result tells: integers of any type are added up
/// and compared alike, and an initial value, an accumulator and a reducer of the caller's own are of the types they are asked in.
fn narrow_product(
    statistics: &[Statistic],
    request: &Request,
    narrow: &coulis_reducers::ReducerRequest,
    result_dtypes: &[DType],
) -> Option<Product> {
    if !request.init.is_empty() || request.acc_dtype.is_some() || !are_listed(statistics) {
        return None;
    }
    let product = product_of(statistics, narrow).ok()?;
    let alike = |(own, wide): (&DType, &DType)| own == wide || own.is_int() && wide.is_int();
    dtypes_of_results(&product).iter().zip(result_dtypes).all(alike).then_some(product)
}

fn dtypes_of_results(product: &Product) -> Vec<DType> {
    product.reducer.results.iter().map(|result| result.dtype).collect()
}

/// Whether elements that take no part are better folded as something that changes nothing than passed over. On machines with threads in
/// blocks what tells positions of some elements from others takes longer than what runs save.
pub(crate) fn pays_to_tell(spec: &Spec, reducer: &Reducer, request: &Request) -> bool {
    spec.passes_over() && !(reducer.step_needs_ascending && has_threads(request))
}

/// Whether none is of the caller's own.
fn are_listed(statistics: &[Statistic]) -> bool {
    statistics.iter().all(|s| matches!(s, Statistic::Listed(_)))
}

/// Types and factors of the outputs, as the request has them. `dtypes`: the types of the results by themselves.
/// `narrow`: the type of results that would be `float32` otherwise.
fn outputs(
    request: &Request,
    statistics: &[Statistic],
    product: &Product,
    dtypes: &[DType],
    narrow: Option<DType>,
) -> Result<Vec<OutputSpec>, Error> {
    let known = |name: &String| name.is_empty() || request.ops.contains(name);
    let given = request.out_dtypes.keys().chain(request.alpha.keys()).chain(request.beta.keys());
    if let Some(name) = given.into_iter().find(|n| !known(n)) {
        let message = format!("`{name}` is not among the statistics asked for: {}", request.ops.join(", "));
        return Err(Error::user("reduce/option", message));
    }
    let mut specs = Vec::new();
    for (statistic, part) in statistics.iter().zip(&product.parts) {
        fn of<V: Copy>(map: &std::collections::BTreeMap<String, V>, name: &str) -> Option<V> {
            map.get(name).or_else(|| map.get("")).copied()
        }
        let alpha = of(&request.alpha, statistic.name()).unwrap_or(1.0);
        let beta = of(&request.beta, statistic.name()).unwrap_or(0.0);
        for at in part.results.clone() {
            let result = &product.reducer.results[at];
            // The type asked for is that of the value; what comes with it, as a position does, keeps its own. What the results of the
            // caller's own reducers are is not known: it is that of all.
            let is_value = at == part.results.start || matches!(statistic, Statistic::Own(_));
            let asked = if is_value { of(&request.out_dtypes, statistic.name()) } else { None };
            let own = narrow.filter(|_| dtypes[at] == DType::F32).unwrap_or(dtypes[at]);
            let dtype = asked.unwrap_or(own);
            let scaled = alpha != 1.0 || beta != 0.0;
            if scaled && !dtype.is_float() {
                let way = match is_value {
                    true => "ask for a float output type",
                    false => "ask for the value by a statistic that gives it alone",
                };
                let message = format!(
                    "`{}` gives {dtype}, which alpha and beta cannot scale without loss; {way}",
                    result.name
                );
                return Err(Error::user("reduce/scale", message));
            }
            specs.push(OutputSpec { dtype, alpha, beta });
        }
    }
    Ok(specs)
}

impl Call {
    /// Names and types of the results.
    pub fn results(&self) -> impl Iterator<Item = (&str, DType)> {
        self.names.iter().map(String::as_str).zip(self.spec.outputs.iter().map(|output| output.dtype))
    }
}

/// What is known of an array without its data.
pub fn array_info(array: &Array) -> ArrayInfo {
    ArrayInfo { dtype: array.dtype(), shape: array.shape().to_vec(), strides: array.strides().to_vec() }
}

/// A call that is ready to run: planned, compiled, its sizes bound. Cloning shares it.
#[derive(Clone)]
pub struct Prepared(Arc<Parts>);

struct Parts {
    request: Request,
    call: Call,
    /// The kernel for memory whose first elements are where every access may begin.
    kernel: BoundKernel,
    device: Arc<Opened>,
    /// Those for other memory, once they were needed.
    others: Mutex<HashMap<Alignment, Arc<BoundKernel>>>,
}

/// What a plan would be, without compiling it.
pub fn plan(inputs: &[ArrayInfo], request: &Request) -> Result<PlanInfo, Error> {
    let call = check(inputs, request)?;
    let device = device::open(request)?;
    compiled::recorded_or_own(request, |request| {
        let chosen = choose(&call, request, &device)?;
        Ok(compiled::schedule(&call, request, chosen)?.info)
    })
}

/// The kernel of a call as its schedule makes it, before any pass; and the machine that it is for. As text it
/// goes through the same passes as in [`prepare`].
pub fn kernel(
    inputs: &[ArrayInfo],
    request: &Request,
) -> Result<(coulis_ir::Kernel, coulis_ir::Target), Error> {
    let call = check(inputs, request)?;
    let device = device::open(request)?;
    let kernel = compiled::recorded_or_own(request, |request| {
        compiled::schedule(&call, request, choose(&call, request, &device)?)?.nest()
    })?;
    Ok((kernel, device.target().clone()))
}

/// As [`kernel`], for a machine with those facts in place of the request's device.
pub fn kernel_for(
    inputs: &[ArrayInfo],
    request: &Request,
    target: &coulis_ir::Target,
) -> Result<coulis_ir::Kernel, Error> {
    let call = check(inputs, request)?;
    compiled::schedule(&call, request, Chosen::own(&call, target)?)?.nest()
}

/// What a call has to move, and how long that takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prediction {
    /// Bytes: every input once, every output once.
    pub bytes: u64,
    /// How long that takes; `None` for a machine whose rate is not known, since it is not here.
    pub time: Option<PredictedTime>,
}

/// How long the bytes of a call take at the stream rate. Kernels that are bound by arithmetic or by many
/// short rows take longer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PredictedTime {
    /// Seconds.
    pub seconds: f64,
    /// The stream rate of arrays of that size, in bytes a second: that of the best plain read loop, which is measured once
    /// a machine and kept in the cache; of a GPU, what the clock and the width of its memory give.
    pub bytes_per_second: f64,
    /// Whether nothing is faster: the bytes are so many that they come from memory, not from a cache.
    pub is_least: bool,
}

/// Predicts bytes and time of a call; moves none of its data.
pub fn predict(inputs: &[ArrayInfo], request: &Request) -> Result<Prediction, Error> {
    let call = check(inputs, request)?;
    let device = device::open(request)?;
    let size = |info: &ArrayInfo| {
        let n: u64 = info.shape.iter().map(|&extent| extent.max(0) as u64).product();
        n.saturating_mul(info.dtype.bytes() as u64)
    };
    let bytes = inputs.iter().chain(&call.spec.output_infos()).map(size).fold(0, u64::saturating_add);
    let target = device.target();
    let time = if target.has_threads() {
        device.memory_bytes_per_second().map(|rate| {
            let bytes_per_second = rate as f64;
            // A part of the bytes may be in the cache.
            PredictedTime { seconds: bytes as f64 / bytes_per_second, bytes_per_second, is_least: false }
        })
    } else {
        let rates = Rates::of_machine(target.n_threads as usize, crate::machine::cache_dir().as_deref());
        Some(PredictedTime {
            seconds: rates.seconds(bytes),
            bytes_per_second: rates.bytes_per_second(bytes),
            is_least: rates.is_least(bytes),
        })
    };
    Ok(Prediction { bytes, time })
}

/// Plans and compiles a call, or finds it among those done before.
pub fn prepare(inputs: &[ArrayInfo], request: &Request) -> Result<Prepared, Error> {
    memo::prepared(inputs, request, || prepare_anew(inputs, request))
}

fn prepare_anew(inputs: &[ArrayInfo], request: &Request) -> Result<Prepared, Error> {
    let call = check(inputs, request)?;
    let device = device::open(request)?;
    let compiled = compiled::compile(&call, request, &device)?;
    let kernel = BoundKernel::new(compiled, &call.spec)?;
    let (request, others) = (request.without_data(), Mutex::default());
    Ok(Prepared(Arc::new(Parts { request, call, kernel, device, others })))
}

impl Prepared {
    /// How it runs.
    pub fn plan(&self) -> &PlanInfo {
        &self.0.kernel.compiled.info
    }

    /// The source that was compiled, where the device compiles source.
    pub fn source(&self) -> Option<&str> {
        self.0.kernel.compiled.executable.source()
    }

    /// The kernel that runs. It is planned and lowered again, since a kernel from the disk comes without it.
    pub fn kernel(&self) -> Result<coulis_ir::Kernel, Error> {
        let (call, device) = (&self.0.call, &self.0.device);
        compiled::recorded_or_own(&self.0.request, |request| {
            let planned = compiled::schedule(call, request, choose(call, request, device)?)?;
            Ok(planned.lower(device)?.checked.kernel().clone())
        })
    }

    /// How the kernel came to be, and how long it took.
    pub fn compile_info(&self) -> &coulis_runtime::Info {
        self.0.kernel.compiled.executable.info()
    }

    /// Name of the device.
    pub fn device_name(&self) -> &str {
        self.0.device.name()
    }

    /// Threads that run it side by side.
    pub fn n_threads(&self) -> usize {
        self.0.device.target().n_threads as usize
    }

    /// What the caller should know of the device.
    pub fn notices(&self) -> Vec<String> {
        self.0.device.notices()
    }

    /// The normalization of the request, computed in `float64`.
    pub(crate) fn in_float64(&self) -> Result<Normalization, Error> {
        let call = self.call();
        let Some(normalize) = &self.0.request.normalize else {
            return Err(Error::bug("reduce/normalization", "statistics are no normalization"));
        };
        let fold = coulis_reducers::ReducerRequest { acc: Some(DType::F64), ..call.reducer_request.clone() };
        let beside = call.spec.map.as_ref().map_or(&[][..], |map| &map.beside);
        normalize.build(&fold, beside, false, None)
    }

    /// The checked request.
    pub(crate) fn call(&self) -> &Call {
        &self.0.call
    }

    /// What the kernel went through on its way here.
    pub fn route(&self) -> &[String] {
        &self.0.kernel.compiled.route
    }
}

/// Reduces `inputs` (one array, or two of one shape for statistics of two inputs).
pub fn run(inputs: &[Array], request: &Request) -> Result<Outcome, Error> {
    let infos: Vec<ArrayInfo> = inputs.iter().map(array_info).collect();
    let prepared = prepare(&infos, request)?;
    let Call { spec, names, .. } = &prepared.0.call;
    let fits = |name: &&String| names.contains(name) || name.is_empty() && names.len() == 1;
    if let Some(unknown) = request.prior.keys().find(|name| !fits(name)) {
        let found = match unknown.is_empty() {
            true => "without a name, as a .npy has none, of a call with several results".to_owned(),
            false => format!("for `{unknown}`, which is no result"),
        };
        let message = format!("a prior is given {found}; results are {}", names.join(", "));
        return Err(Error::user("reduce/prior", message));
    }
    let mut priors = Vec::new();
    for (name, output) in names.iter().zip(&spec.outputs).filter(|(_, o)| o.beta != 0.0) {
        priors.push(prepared.prior(request, name, output)?);
    }
    let mut outputs = prepared.allocate()?;
    let arrays = prepared.as_read(inputs.iter().collect(), request.where_.as_ref());
    let start = Instant::now();
    prepared.launch(&arrays, &priors.iter().collect::<Vec<_>>(), &mut outputs)?;
    let seconds = start.elapsed().as_secs_f64();
    let mut results = Vec::new();
    let mut bytes: u64 = inputs.iter().map(Array::n_bytes).sum();
    for ((name, output), owned) in prepared.0.call.names.iter().zip(&spec.outputs).zip(outputs) {
        let array = prepared.result(output.dtype, owned)?;
        bytes += array.n_bytes();
        results.push(NamedArray { name: name.clone(), array });
    }
    prepared.check_results(request, inputs[0].shape(), &results)?;
    Ok(Outcome {
        results,
        plan: prepared.0.kernel.compiled.info.clone(),
        seconds,
        bytes,
        device: prepared.0.device.name().to_owned(),
        axes: spec.problem.axes.clone(),
        notices: prepared.0.device.notices(),
    })
}
