//! The tensor expression of a reduction: one fold into a state, one element-wise compute from the state to results; where a
//! map reads the elements again, a third compute of its result for each of them.
//!
//! Extents and strides are symbols, so that one kernel serves every shape of a kind; the planner makes a constant of
//! what the loop nest hangs on (short extents, unit and broadcast strides, and strides that follow from those).

use coulis_ir::counts::Count;
use coulis_ir::{DType, Expr, Lambda, NanPolicy, Reducer, Var};
use coulis_reducers::Staged;
use coulis_tensor::{IterVar, Program, Tensor, TensorError};

use crate::constants::Constants;
use crate::counts::{counts, without};
use crate::elements::{Elements, behind};
use crate::in_order::{InOrder, Read};
use crate::problem::{Dim, Problem, Role};
use crate::scale::scale;

/// One result of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct OutputSpec {
    /// Type in which it is stored; rounded once.
    pub dtype: DType,
    /// Factor of the finished result.
    pub alpha: f64,
    /// Factor of the prior content; 0 never reads it.
    pub beta: f64,
}

impl OutputSpec {
    /// The finished result as it is.
    pub fn plain(dtype: DType) -> OutputSpec {
        OutputSpec { dtype, alpha: 1.0, beta: 0.0 }
    }
}

/// A map that reads the elements again, beside what the fold gave of their row. Its result is the call's one output.
#[derive(Clone, Debug)]
pub struct Map {
    /// The result of one element. Parameters: the elements of the inputs, the results of the fold, one element of each
    /// array beside them.
    pub lambda: Lambda,
    /// Types of the arrays beside the elements.
    pub beside: Vec<DType>,
    /// The same results by two folds, which a plan may take in place of the one; the first takes flags where the one does.
    pub staged: Option<Staged>,
    /// The result of an element that the mask leaves out; `None` where that is mapped as others are.
    pub left_out: Option<f64>,
}

/// All that a kernel is made from, but for the machine.
#[derive(Clone, Debug)]
pub struct Spec {
    /// What is folded over what.
    pub problem: Problem,
    /// Types of the inputs, in order.
    pub inputs: Vec<DType>,
    /// Elements by which each input begins behind an address that every access may have; kernels then have it begin there, with so
    /// many more in each row.
    pub offsets: Vec<i64>,
    /// Whether a mask (bool, the last array of the problem's strides) says which elements take part.
    pub mask: bool,
    /// Whether lifts take, behind the elements, whether the element takes part; where they do not, a condition passes over others.
    pub flagged: bool,
    /// The fold; a product of reducers where several statistics are asked for. Its `finish` takes the fields of `counts`
    /// too, each where it stood.
    pub reducer: Reducer,
    /// Fields that are not folded, as they only count and every element takes part.
    pub counts: Vec<Count>,
    /// One a result of the reducer's `finish`; of a map the one result.
    pub outputs: Vec<OutputSpec>,
    /// What becomes of the elements once their row is folded; `None` where the results of the fold are all that is asked.
    pub map: Option<Map>,
}

/// The program and the handles that a schedule needs.
pub struct Statement {
    /// The program: stage `S` folds, stage `O` finishes. Where there is a map, stage `F` finishes and `O` maps. Where there are two
    /// folds, stage `G` is the first, `H` finishes it, and `K` is what is kept of the elements, which `S` folds and `O` maps. Where a
    /// map reads the results of a row beside each element of it, stage `R` is these.
    pub program: Program,
    /// The inputs, then the mask if there is one, each as the fold reads it; without those to which the innermost dimension is several,
    /// of which no access takes neighbours.
    pub inputs: Vec<Tensor>,
    /// Those of them that are copies; stages of their own, named after the array.
    pub in_order: Vec<InOrder>,
    /// What is before the fold, where there are two.
    pub first: Option<FirstFold>,
    /// Component 0 of the state.
    pub state: Tensor,
    /// Component 0 of the finished results.
    pub output: Tensor,
    /// The result of the map, whose dimensions are the kept ones, then the reduced ones.
    pub map: Option<Tensor>,
    /// Component 0 of the finished results beside each element, where the map reads them so; its dimensions are those of the problem, in
    /// their order.
    pub spread: Option<Tensor>,
}

/// The first of two folds, and what is made of the elements by what it gives.
pub struct FirstFold {
    /// Component 0 of its state.
    pub state: Tensor,
    /// Component 0 of its finished results.
    pub output: Tensor,
    /// What is kept of the elements, whose dimensions are those of the problem, in their order.
    pub kept: Tensor,
}

/// Names of the dimensions in text: kept ones `i0`, `i1`, …, reduced ones `k0`, `k1`, …, outermost first.
pub fn axis_names(problem: &Problem) -> Vec<String> {
    let (mut kept, mut reduced) = (0, 0);
    let name = |dim: &Dim| {
        let (letter, count) = if dim.is_reduced() { ("k", &mut reduced) } else { ("i", &mut kept) };
        *count += 1;
        format!("{letter}{}", *count - 1)
    };
    problem.dims.iter().map(name).collect()
}

pub(crate) fn constant(value: i64) -> Expr {
    Expr::int_of(i128::from(value), DType::I64)
}

/// A stride that the kernel counts on is a constant; others are symbols bound at the call.
fn stride_expr(fixed: Option<i64>) -> Expr {
    fixed.map_or_else(|| Var::new("stride", DType::I64).expr(), constant)
}

/// Makes the program, of one fold or of two, in which so much is written into the kernel. `spreads`: a map reads the results of a row
/// beside each of its elements.
pub fn build(
    spec: &Spec,
    constants: &Constants,
    folds: Folds,
    spreads: bool,
) -> Result<Statement, TensorError> {
    let dims = &spec.problem.dims;
    let names = axis_names(&spec.problem);
    let extents: Vec<Expr> = dims
        .iter()
        .zip(&names)
        .zip(&constants.extents)
        .map(|((dim, name), &is_constant)| {
            if is_constant {
                constant(dim.extent)
            } else {
                Var::size(&format!("n_{name}"), DType::I64).expr()
            }
        })
        .collect();
    let given = spec.problem.given_dims();
    let placeholder = |array: usize, dtype: DType, name: &str| {
        let fixed = |d| constants.stride(&given, array, d);
        let mut strides: Vec<Expr> = (0..dims.len()).map(|d| stride_expr(fixed(d))).collect();
        let mut extents = extents.clone();
        let parts = &spec.problem.parts[array];
        if !parts.is_empty() {
            extents.pop();
            strides.pop();
            extents.extend(parts.iter().map(|part| constant(part.extent)));
            strides.extend(parts.iter().map(|part| constant(part.stride)));
        }
        if let Some(row) = extents.last_mut() {
            *row = behind(row, spec.offset(array));
        }
        coulis_tensor::placeholder_strided(&extents, &strides, dtype, name)
    };
    let mut given = Vec::new();
    for (i, &dtype) in spec.inputs.iter().enumerate() {
        given.push(placeholder(i, dtype, ["A", "B", "C", "D"].get(i).copied().unwrap_or("X"))?);
    }
    if spec.mask {
        given.push(placeholder(spec.inputs.len(), DType::Bool, "W")?);
    }
    let read = Read::of(&given, &spec.problem, (&extents, &names))?;
    let (inputs, mask) = read.tensors.split_at(spec.inputs.len());
    let mask = mask.first();

    let of_role = |reduced: bool| (0..dims.len()).filter(move |&d| dims[d].is_reduced() == reduced);
    let kept: Vec<usize> = of_role(false).collect();
    let reduced: Vec<usize> = of_role(true).collect();
    let shape = Shape { spec, extents: &extents, names: &names, constants, kept, reduced, spreads };
    let beside_types = spec.map.iter().flat_map(|map| &map.beside).enumerate();
    let beside: Vec<Tensor> = beside_types
        .map(|(i, &dtype)| placeholder(spec.n_read() + i, dtype, &format!("E{i}")))
        .collect::<Result<_, _>>()?;
    let staged = spec.map.as_ref().and_then(|map| map.staged.as_ref()).filter(|_| folds == Folds::Two);
    let (first, state, results) = match (&spec.map, staged) {
        (_, Some(staged)) => {
            let first = shape.first(staged, inputs, mask, &read.of)?;
            let all: Vec<usize> = (0..dims.len()).collect();
            let of: Vec<Vec<usize>> = [all].into_iter().chain(read.of.last().cloned()).collect();
            let kept = Elements {
                tensors: std::slice::from_ref(&first.kept),
                offsets: &[0],
                mask: None,
                of: &of,
                parts: &[],
            };
            let state = shape.fold(&staged.second, &kept, "S")?;
            let finish = |values: &[Expr]| staged.second.finish(values);
            let left_out = spec.map.as_ref().and_then(|map| map.left_out);
            let kept = Elements { mask, ..kept };
            let results = shape.map(&staged.map, left_out, &kept, (&state, &finish), &beside)?;
            (Some(first), state, results)
        }
        (map, None) => {
            let elements =
                Elements { tensors: inputs, offsets: &spec.offsets, mask, of: &read.of, parts: &read.parts };
            let state = shape.fold(&spec.reducer, &elements, "S")?;
            let finish = |values: &[Expr]| spec.reducer.finish(&shape.all_fields(values));
            let results = match map {
                None => shape.finish(&state)?,
                Some(map) => {
                    let results = (&state[..], &finish as Finish<'_>);
                    shape.map(&map.lambda, map.left_out, &elements, results, &beside)?
                }
            };
            (None, state, results)
        }
    };
    let Results { finished, output, priors, spread } = results;
    let outputs = output.as_ref().map_or(&finished[..], std::slice::from_ref);
    let args: Vec<Tensor> = given.iter().chain(&beside).chain(&priors).chain(outputs).cloned().collect();
    let program = Program::new(outputs, &args)?;
    let in_whole = read.tensors.into_iter().zip(&read.parts).filter(|(_, parts)| parts.is_empty());
    Ok(Statement {
        program,
        inputs: in_whole.map(|(input, _)| input).collect(),
        in_order: read.in_order,
        first,
        state: state[0].clone(),
        output: finished[0].clone(),
        map: output,
        spread,
    })
}

/// How many folds a program has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Folds {
    /// The reducer's.
    One,
    /// Those of a map that is staged.
    Two,
}

/// The results of a fold, of what is folded.
type Finish<'a> = &'a dyn Fn(&[Expr]) -> Vec<Expr>;

/// The dimensions of a program in the making.
struct Shape<'a> {
    spec: &'a Spec,
    extents: &'a [Expr],
    names: &'a [String],
    constants: &'a Constants,
    kept: Vec<usize>,
    reduced: Vec<usize>,
    /// Whether a map reads the results of a row beside each of its elements.
    spreads: bool,
}

/// What is computed from the state.
struct Results {
    /// The results of the fold.
    finished: Vec<Tensor>,
    /// The result of the map.
    output: Option<Tensor>,
    priors: Vec<Tensor>,
    /// The results of the fold beside each element, if the map reads them there.
    spread: Option<Tensor>,
}

impl Shape<'_> {
    fn extents(&self, dims: &[usize]) -> Vec<Expr> {
        dims.iter().map(|&d| self.extents[d].clone()).collect()
    }

    fn names(&self, dims: &[usize]) -> Vec<&str> {
        dims.iter().map(|&d| self.names[d].as_str()).collect()
    }

    /// The prior of each output that reads one.
    fn priors(&self, dims: &[usize], strides: &[Expr]) -> Result<Vec<Option<Tensor>>, TensorError> {
        let extents = self.extents(dims);
        let prior = |(i, output): (usize, &OutputSpec)| {
            let name = format!("P{i}");
            let prior = || coulis_tensor::placeholder_strided(&extents, strides, output.dtype, &name);
            (output.beta != 0.0).then(prior).transpose()
        };
        self.spec.outputs.iter().enumerate().map(prior).collect()
    }

    /// The dimensions of a map's result: the kept ones, then the reduced ones.
    fn map_order(&self) -> Vec<usize> {
        [&self.kept[..], &self.reduced[..]].concat()
    }

    /// The fold of the elements of each output.
    fn fold(&self, reducer: &Reducer, elements: &Elements, name: &str) -> Result<Vec<Tensor>, TensorError> {
        let dims = &self.spec.problem.dims;
        let axis = |&d: &usize| coulis_tensor::reduce_axis(self.extents[d].clone(), &self.names[d]);
        let axes: Vec<IterVar> = self.reduced.iter().map(axis).collect();
        let (extents, names) = (self.extents(&self.kept), self.names(&self.kept));
        coulis_tensor::compute_tuple_axes(&extents, &names, name, |vars| {
            let mut index = vec![constant(0); dims.len()];
            for (&d, var) in self.kept.iter().zip(vars) {
                index[d] = var.expr();
            }
            for (&d, axis) in self.reduced.iter().zip(&axes) {
                index[d] = axis.expr();
            }
            let mut values = elements.at(&index);
            let masked = elements.takes_part(&index);
            let mut condition = [masked, reducer.takes_part(&values)].into_iter().flatten().reduce(Expr::and);
            if self.spec.flagged {
                values.extend(condition.take());
            }
            let position = position(dims, &self.reduced, &axes);
            let fold = coulis_tensor::reduce_at(reducer, &values, position, &axes)?;
            match condition {
                Some(condition) => fold.where_(condition),
                None => Ok(fold),
            }
        })
    }

    /// The first of two folds, and what is kept of the elements by what it gives.
    fn first(
        &self,
        staged: &Staged,
        inputs: &[Tensor],
        mask: Option<&Tensor>,
        of: &[Vec<usize>],
    ) -> Result<FirstFold, TensorError> {
        let all: Vec<usize> = (0..self.spec.problem.dims.len()).collect();
        let elements = Elements { tensors: inputs, offsets: &self.spec.offsets, mask, of, parts: &[] };
        let state = self.fold(&staged.first, &elements, "G")?;
        let finished = self.finished("H", &state, &|values| staged.first.finish(values))?;
        let (extents, names) = (self.extents(&all), self.names(&all));
        let kept = coulis_tensor::compute_tuple_axes(&extents, &names, "K", |vars| {
            let index: Vec<Expr> = vars.iter().map(Var::expr).collect();
            let row: Vec<Expr> = self.kept.iter().map(|&d| index[d].clone()).collect();
            let of_row = finished.iter().map(|t| t.at(row.clone()));
            let kept = staged.kept.apply(&elements.at(&index).into_iter().chain(of_row).collect::<Vec<_>>());
            let absent = |value: &Expr| Expr::float(staged.absent, value.dtype());
            match elements.takes_part(&index) {
                Some(part) => {
                    kept.into_iter().map(|e| Expr::select(part.clone(), e.clone(), absent(&e))).collect()
                }
                None => kept,
            }
        })?;
        Ok(FirstFold { state: state[0].clone(), output: finished[0].clone(), kept: kept[0].clone() })
    }

    /// Of the variables of a map's result, the index in each dimension of the problem, and that of the row.
    fn element(&self, vars: &[Var]) -> (Vec<Expr>, Vec<Expr>) {
        let own: Vec<Expr> = vars.iter().map(Var::expr).collect();
        let mut index = own.clone();
        self.map_order().iter().zip(&own).for_each(|(&d, of_dim)| index[d] = of_dim.clone());
        (index, own[..self.kept.len()].to_vec())
    }

    /// The results of a fold as they are.
    fn finished(&self, name: &str, state: &[Tensor], finish: Finish<'_>) -> Result<Vec<Tensor>, TensorError> {
        let (extents, names) = (self.extents(&self.kept), self.names(&self.kept));
        coulis_tensor::compute_tuple_axes(&extents, &names, name, |vars| {
            let at: Vec<Expr> = vars.iter().map(Var::expr).collect();
            finish(&state.iter().map(|t| t.at(at.clone())).collect::<Vec<_>>())
        })
    }

    /// All fields of the state of an output, those that are known without a fold too.
    fn all_fields(&self, folded: &[Expr]) -> Vec<Expr> {
        let mut values = folded.to_vec();
        for count in &self.spec.counts {
            values.insert(count.field, known_count(count, &self.spec.reducer, &self.extents(&self.reduced)));
        }
        values
    }

    /// The results of the fold, scaled and rounded.
    fn finish(&self, state: &[Tensor]) -> Result<Results, TensorError> {
        let (extents, names) = (self.extents(&self.kept), self.names(&self.kept));
        let fixed = |&d: &usize| self.constants.result_stride(&self.spec.problem.dims, d);
        let strides: Vec<Expr> = self.kept.iter().map(|d| stride_expr(fixed(d))).collect();
        let priors = self.priors(&self.kept, &strides)?;
        let finished = coulis_tensor::compute_tuple_strided(&extents, &names, &strides, "O", |vars| {
            let at: Vec<Expr> = vars.iter().map(Var::expr).collect();
            let folded: Vec<Expr> = state.iter().map(|t| t.at(at.clone())).collect();
            let values = self.all_fields(&folded);
            let finished = self.spec.reducer.finish(&values).into_iter().zip(&self.spec.outputs).zip(&priors);
            finished
                .map(|((value, output), prior)| {
                    scale(value, output, prior.as_ref().map(|p| p.at(at.clone())))
                })
                .collect::<Vec<Expr>>()
        })?;
        Ok(Results { finished, output: None, priors: priors.into_iter().flatten().collect(), spread: None })
    }

    /// The stride of the map's result that the kernel may count on, behind `n_beside` arrays that it reads. As constants, 1 and 3 are
    /// of elements apart only if so few lie a stride of 1 apart; as a symbol, the latter is of elements apart by what it is.
    fn fixed_result_stride(&self, n_beside: usize, d: usize) -> Option<i64> {
        let dims = &self.spec.problem.dims;
        let result = self.spec.n_read() + n_beside;
        let size = |d: usize| dims[d].strides[result].unsigned_abs();
        let is_apart = size(d) <= 1 || (0..dims.len()).all(|o| size(o) >= size(d) || self.constants[o]);
        self.constants.stride(dims, result, d).filter(|_| is_apart)
    }

    /// The results of the fold as they are, and those of the map, or what stands for elements that are left out, scaled and rounded.
    fn map(
        &self,
        lambda: &Lambda,
        left_out: Option<f64>,
        elements: &Elements,
        (state, finish): (&[Tensor], Finish<'_>),
        beside: &[Tensor],
    ) -> Result<Results, TensorError> {
        let finished = self.finished("F", state, finish)?;
        let dims = self.map_order();
        let strides: Vec<Expr> =
            dims.iter().map(|&d| stride_expr(self.fixed_result_stride(beside.len(), d))).collect();
        let priors = self.priors(&dims, &strides)?;
        let (extents, names) = (self.extents(&dims), self.names(&dims));
        let spread = self.spreads.then(|| {
            let all: Vec<usize> = (0..self.names.len()).collect();
            coulis_tensor::compute_tuple_axes(&self.extents(&all), &self.names(&all), "R", |vars| {
                let row: Vec<Expr> = self.kept.iter().map(|&d| vars[d].expr()).collect();
                finished.iter().map(|t| t.at(row.clone())).collect::<Vec<Expr>>()
            })
        });
        let spread = spread.transpose()?;
        let outputs = coulis_tensor::compute_tuple_strided(&extents, &names, &strides, "O", |vars| {
            let own: Vec<Expr> = vars.iter().map(Var::expr).collect();
            let (at, row) = self.element(vars);
            let takes_part = elements.takes_part(&at).zip(left_out);
            let chosen = |value: Expr| match &takes_part {
                Some((part, left_out)) => {
                    let left_out = Expr::float(*left_out, value.dtype());
                    Expr::select(part.clone(), value, left_out)
                }
                None => value,
            };
            let elements = elements.at(&at).into_iter();
            let of_row: Vec<Expr> = match &spread {
                Some(spread) => spread.iter().map(|t| t.at(at.clone())).collect(),
                None => finished.iter().map(|t| t.at(row.clone())).collect(),
            };
            let beside = beside.iter().map(|t| t.at(at.clone()));
            let args: Vec<Expr> = elements.chain(of_row).chain(beside).collect();
            let values = lambda.apply(&args).into_iter().zip(&self.spec.outputs).zip(&priors);
            values
                .map(|((value, output), prior)| {
                    scale(chosen(value), output, prior.as_ref().map(|p| p.at(own.clone())))
                })
                .collect::<Vec<Expr>>()
        })?;
        let output = outputs.into_iter().next();
        let spread = spread.and_then(|spread| spread.into_iter().next());
        Ok(Results { finished, output, priors: priors.into_iter().flatten().collect(), spread })
    }
}

/// What a field that only counts comes to.
fn known_count(count: &Count, reducer: &Reducer, extents: &[Expr]) -> Expr {
    let each = Expr::int_of(count.each, DType::I64);
    let dtype = reducer.finish.params[count.field].dtype();
    extents.iter().fold(each, |product, extent| product * extent.clone()).cast(dtype)
}

/// Position of the current element, row-major over the reduced axes taken ascending.
fn position(dims: &[Dim], reduced: &[usize], axes: &[IterVar]) -> Expr {
    reduced
        .iter()
        .zip(axes)
        .map(|(&d, axis)| match dims[d].role {
            Role::Reduced { position_stride: 1 } => axis.expr(),
            Role::Reduced { position_stride } => axis.expr() * constant(position_stride),
            Role::Kept { .. } => constant(0),
        })
        .reduce(|a, b| a + b)
        .unwrap_or_else(|| constant(0))
}

impl Spec {
    /// Number of arrays that the fold reads: the inputs and the mask.
    pub fn n_read(&self) -> usize {
        self.inputs.len() + usize::from(self.mask)
    }

    /// Type of an array that the fold reads.
    pub fn dtype_read(&self, array: usize) -> DType {
        self.inputs.get(array).copied().unwrap_or(DType::Bool)
    }

    /// Bytes of one element of all inputs together.
    pub fn element_bytes(&self) -> i64 {
        self.inputs.iter().map(|dtype| dtype.bytes() as i64).sum()
    }

    /// Bytes of an element of the widest input.
    pub fn widest_bytes(&self) -> i64 {
        self.inputs.iter().map(|dtype| dtype.bytes() as i64).max().unwrap_or(1)
    }

    /// Bytes of an element of the narrowest input.
    pub fn narrowest_bytes(&self) -> i64 {
        self.inputs.iter().map(|dtype| dtype.bytes() as i64).min().unwrap_or(1)
    }

    /// Bytes of one result of all outputs together.
    pub fn result_bytes(&self) -> i64 {
        self.outputs.iter().map(|output| output.dtype.bytes() as i64).sum()
    }

    /// Bytes of a result of the widest output.
    pub fn widest_result_bytes(&self) -> i64 {
        self.outputs.iter().map(|output| output.dtype.bytes() as i64).max().unwrap_or(1)
    }

    /// Elements of each output.
    pub fn n_results(&self) -> i64 {
        let of_each = if self.map.is_some() { self.problem.reduce_len } else { 1 };
        self.problem.n_outputs.saturating_mul(of_each)
    }

    /// A spec, without fields that only count where every element takes part, and without steps and runs that the order of
    /// memory does not allow.
    pub fn new(
        problem: Problem,
        inputs: Vec<DType>,
        mask: bool,
        reducer: Reducer,
        outputs: Vec<OutputSpec>,
        map: Option<Map>,
    ) -> Spec {
        let reducer = if problem.positions_ascend() { reducer } else { reducer.in_any_order() };
        let all_take_part = !mask && reducer.nan == NanPolicy::Propagate;
        let counts = if all_take_part { counts(&reducer) } else { Vec::new() };
        let reducer = without(reducer, &counts);
        let offsets = vec![0; inputs.len()];
        Spec { problem, inputs, offsets, mask, flagged: false, reducer, counts, outputs, map }
    }

    /// The same by a reducer of the same states whose lifts take whether an element takes part; see [`Spec::flagged`].
    #[must_use]
    pub fn with_flags(self, flagged: Reducer) -> Spec {
        let Reducer { lift, quick, neutral, .. } =
            if self.problem.positions_ascend() { flagged } else { flagged.in_any_order() };
        Spec { flagged: true, reducer: Reducer { lift, quick, neutral, ..self.reducer }, ..self }
    }

    /// Whether a condition passes over elements that take no part.
    pub fn passes_over(&self) -> bool {
        !self.flagged && (self.mask || self.reducer.nan == NanPolicy::Ignore)
    }

    /// The same where inputs begin so many elements behind addresses that every access may have. Nothing is known of one whose
    /// elements along the innermost dimension are no neighbours, as no access takes several of them, and of one that runs
    /// backwards, as nothing need be before its last row.
    #[must_use]
    pub fn with_offsets(&self, offsets: &[i64]) -> Spec {
        let dims = &self.problem.dims;
        let are_next = |array: usize| {
            self.problem.given[array].is_empty()
                && dims.last().is_some_and(|row| row.strides[array] == 1)
                && dims.iter().all(|dim| dim.strides[array] >= 0)
        };
        let known = |(array, &offset): (usize, &i64)| if are_next(array) { offset } else { 0 };
        Spec { offsets: offsets.iter().enumerate().map(known).collect(), ..self.clone() }
    }

    /// Elements by which an array of the problem begins behind such an address, as far as kernels know; 0 of all but inputs.
    pub fn offset(&self, array: usize) -> i64 {
        self.offsets.get(array).copied().unwrap_or(0)
    }

    /// Number of kept dimensions.
    pub fn n_kept(&self) -> usize {
        self.problem.dims.iter().filter(|d| !d.is_reduced()).count()
    }

    /// Number of reduced dimensions.
    pub fn n_reduced(&self) -> usize {
        self.problem.dims.len() - self.n_kept()
    }

    /// Pieces that an output folds, each of which is the innermost reduced dimension.
    pub fn n_pieces(&self) -> i64 {
        let reduced = self.problem.dims.iter().filter(|dim| dim.is_reduced());
        reduced.rev().skip(1).map(|dim| dim.extent).product()
    }
}
