//! Puts a reducer together field by field.
//!
//! A field's expressions are written over three sets of variables: the elements and the position (for the lift),
//! the state (`left`) and another state or a lifted element (`right`).

use coulis_ir::counts::Count;
use coulis_ir::eval::{Env, Value, eval_expr, eval_lambda};
use coulis_ir::visit::uses_any;
use coulis_ir::{
    Claims, DType, ErrorBound, Expr, Field, Lambda, NanPolicy, QuickStep, Reducer, Rewalk, Ties, Var,
};

use crate::entry::{ReducerRequest, compute_dtype};

/// A reducer in the making.
pub(crate) struct Builder<'r> {
    pub(crate) request: &'r ReducerRequest,
    name: &'static str,
    elements: Vec<Var>,
    position: Var,
    fields: Vec<Draft>,
    longest_run: Option<u32>,
    longest_joined: Option<u32>,
    /// Whether a run is to be walked again, over its fields and those of the state.
    rewalk: Option<Expr>,
    /// Whether that walk goes from the last element to the first.
    backwards: bool,
    /// Whether it is given up after that, over the same.
    gives_up: Option<Expr>,
    nan_witness: Option<usize>,
    /// Whether a state says that its runs left their range.
    spoilt: Option<Expr>,
    /// Whether nothing more changes a state.
    settled: Option<Expr>,
    /// What only runs keep.
    notes: Vec<Note>,
    claims: Claims,
    ties: Ties,
    ascending: bool,
    neutral: Vec<Expr>,
}

/// A field of runs that no field of the state stands for.
struct Note {
    kept: Kept,
    run_step: Expr,
}

struct Draft {
    field: Field,
    identity: Expr,
    lift: Expr,
    left: Var,
    right: Var,
    combine: Option<Expr>,
    step: Option<Expr>,
    /// The field as it is kept in a run, where that is not as in the state.
    run: Option<Kept>,
    run_step: Option<Expr>,
    close: Option<Expr>,
    /// The field of a run as the second walk starts, and after an element came again.
    rewalk: Option<(Expr, Expr)>,
}

/// How a run keeps a field.
struct Kept {
    identity: Expr,
    lift: Expr,
    left: Var,
    right: Var,
}

/// A field of the reducer in the making, as the value of either state.
#[derive(Clone)]
pub(crate) struct Slot {
    index: usize,
    /// The field of the left state; in `finish`, of the state.
    pub(crate) left: Expr,
    /// The field of the right state; in a step, of the lifted element.
    pub(crate) right: Expr,
}

impl Slot {
    /// The same beside something else at the right.
    pub(crate) fn beside(&self, right: &Expr) -> Slot {
        Slot { right: right.clone(), ..self.clone() }
    }
}

impl<'r> Builder<'r> {
    /// A reducer without fields, associative and commutative.
    pub(crate) fn new(name: &'static str, request: &'r ReducerRequest) -> Builder<'r> {
        let names = ["x", "w"];
        let elements = request.inputs.iter().zip(names).map(|(d, n)| Var::new(n, *d)).collect();
        Builder {
            request,
            name,
            elements,
            position: Var::new("i", DType::I64),
            fields: Vec::new(),
            longest_run: None,
            longest_joined: None,
            rewalk: None,
            backwards: false,
            gives_up: None,
            nan_witness: None,
            spoilt: None,
            settled: None,
            notes: Vec::new(),
            claims: Claims { associative: true, commutative: true, idempotent: false },
            ties: Ties::None,
            ascending: false,
            neutral: Vec::new(),
        }
    }

    /// The element of input `input` in its compute type.
    pub(crate) fn element(&self, input: usize) -> Expr {
        let var = &self.elements[input];
        var.expr().cast(compute_dtype(var.dtype()))
    }

    /// The position of the element, `int64`.
    pub(crate) fn position(&self) -> Expr {
        self.position.expr()
    }

    /// Whether NaN elements can reach the fold.
    pub(crate) fn sees_nan(&self) -> bool {
        self.request.nan == NanPolicy::Propagate && self.request.has_float()
    }

    /// Adds a field.
    pub(crate) fn field(&mut self, name: &str, identity: Expr, lift: Expr) -> Slot {
        let dtype = identity.dtype();
        let left = Var::new(&format!("a_{name}"), dtype);
        let right = Var::new(&format!("b_{name}"), dtype);
        let slot = Slot { index: self.fields.len(), left: left.expr(), right: right.expr() };
        let field = Field { name: name.to_owned(), dtype };
        self.fields.push(Draft {
            field,
            identity,
            lift,
            left,
            right,
            combine: None,
            step: None,
            run: None,
            run_step: None,
            close: None,
            rewalk: None,
        });
        slot
    }

    /// Says how a field of two states is combined.
    pub(crate) fn combine(&mut self, slot: &Slot, expr: Expr) {
        self.fields[slot.index].combine = Some(expr);
    }

    /// Says how a field changes by one element; without this, as by `combine`.
    pub(crate) fn step(&mut self, slot: &Slot, expr: Expr) {
        self.fields[slot.index].step = Some(expr);
    }

    /// Says that runs keep a field in another form, from which [`Builder::close`] takes it back. `run_step` has to say
    /// how that form changes. The result holds the field of a run: `left` as it is, `right` of the next element.
    pub(crate) fn run_field(&mut self, slot: &Slot, identity: Expr, lift: Expr) -> Slot {
        let draft = &mut self.fields[slot.index];
        let name = &draft.field.name;
        let left = Var::new(&format!("r_{name}"), identity.dtype());
        let right = Var::new(&format!("e_{name}"), identity.dtype());
        let run = Slot { index: slot.index, left: left.expr(), right: right.expr() };
        draft.run = Some(Kept { identity, lift, left, right });
        run
    }

    /// Adds a field that runs keep for themselves: its value before any element, that of one, and how one
    /// more changes it. The result is the field of the run, for [`Builder::rewalk`] and [`Builder::close`].
    pub(crate) fn note(
        &mut self,
        name: &str,
        identity: Expr,
        lift: Expr,
        step: fn(&Expr, &Expr) -> Expr,
    ) -> Expr {
        let [left, right] = ["r", "e"].map(|side| Var::new(&format!("{side}_{name}"), identity.dtype()));
        let (note, run_step) = (left.expr(), step(&left.expr(), &right.expr()));
        self.notes.push(Note { kept: Kept { identity, lift, left, right }, run_step });
        note
    }

    /// The field of the run that is closed.
    pub(crate) fn closed(&self, slot: &Slot) -> Expr {
        match &self.fields[slot.index].run {
            Some(run) => run.left.expr(),
            None => slot.right.clone(),
        }
    }

    /// Says what a field of the state is after a run; without this, as by `combine`.
    pub(crate) fn close(&mut self, slot: &Slot, expr: Expr) {
        self.fields[slot.index].close = Some(expr);
    }

    /// Says how a field changes by one element in runs of at most `max_steps`; without this, as by `step`.
    pub(crate) fn run_step(&mut self, slot: &Slot, expr: Expr, max_steps: u32) {
        self.chained_step(slot, expr, max_steps, 1);
    }

    /// The same for runs of at most `max_chains` such chains.
    pub(crate) fn chained_step(&mut self, slot: &Slot, expr: Expr, max_steps: u32, max_chains: u32) {
        self.fields[slot.index].run_step = Some(expr);
        let least = |known: Option<u32>, n: u32| Some(known.map_or(n, |m| m.min(n)));
        self.longest_run = least(self.longest_run, max_steps);
        self.longest_joined = least(self.longest_joined, max_steps.saturating_mul(max_chains));
    }

    /// Says how a second walk over a run changes a field of it: what it starts from, and how an element that comes again
    /// changes it. `needed`: whether there is to be one. Other fields stay as they are.
    pub(crate) fn rewalk(&mut self, slot: &Slot, needed: Expr, start: Expr, step: Expr) {
        self.fields[slot.index].rewalk = Some((start, step));
        self.rewalk = Some(needed);
    }

    /// Says that the second walk over a run goes from the last element to the first.
    pub(crate) fn backwards(&mut self) {
        self.backwards = true;
    }

    /// Says where a run is given up after its second walk, over its fields: its elements are folded by the step of states.
    pub(crate) fn gives_up(&mut self, condition: Expr) {
        self.gives_up = Some(condition);
    }

    /// Says that in a run the field is NaN exactly when one of the elements is.
    pub(crate) fn nan_witness(&mut self, slot: &Slot) {
        self.nan_witness = Some(slot.index);
    }

    /// Says where a state is to be folded again without runs, over its fields.
    pub(crate) fn spoilt(&mut self, condition: Expr) {
        self.spoilt = Some(condition);
    }

    /// Says which states no further element and no further state changes, over their fields.
    pub(crate) fn settled(&mut self, condition: Expr) {
        self.settled = Some(condition);
    }

    /// Says that folding an element twice does no harm.
    pub(crate) fn idempotent(&mut self) {
        self.claims.idempotent = true;
    }

    /// Says which of equal values wins.
    pub(crate) fn ties(&mut self, ties: Ties) {
        self.ties = ties;
    }

    /// Says that steps and runs need elements in ascending position.
    pub(crate) fn ascending(&mut self) {
        self.ascending = true;
    }

    /// Says that a fold may take this number for no element, where the inputs' types are of floats and have
    /// it; without this, numbers whose states are the identity, if any.
    pub(crate) fn neutral(&mut self, number: f64) {
        let value = Value::Float(number);
        let has = |dtype: &DType| dtype.is_float() && value.rounded(*dtype).same(value);
        if self.request.inputs.iter().all(has) {
            self.neutral = self.request.inputs.iter().map(|dtype| Expr::float(number, *dtype)).collect();
        }
    }

    /// The reducer, with its results: name, default output type, and expression over the `left` slots.
    pub(crate) fn finish(self, error: ErrorBound, results: Vec<(&str, DType, Expr)>) -> Reducer {
        let left: Vec<Var> = self.fields.iter().map(|f| f.left.clone()).collect();
        let right: Vec<Var> = self.fields.iter().map(|f| f.right.clone()).collect();
        let both: Vec<Var> = left.iter().chain(&right).cloned().collect();
        let combine: Vec<Expr> =
            self.fields.iter().map(|f| f.combine.clone().unwrap_or_else(|| f.left.expr())).collect();
        let pick = |chosen: fn(&Draft) -> &Option<Expr>, otherwise: &[Expr]| -> Vec<Expr> {
            let pairs = self.fields.iter().zip(otherwise);
            pairs.map(|(f, e)| chosen(f).clone().unwrap_or_else(|| e.clone())).collect()
        };
        let step = pick(|f| &f.step, &combine);
        let noted = |pick: fn(&Note) -> Expr| self.notes.iter().map(pick);
        let noted_vars = |pick: fn(&Note) -> &Var| self.notes.iter().map(pick).cloned();
        let mut run_step = pick(|f| &f.run_step, &step);
        run_step.extend(noted(|n| n.run_step.clone()));
        let close = pick(|f| &f.close, &combine);
        // A run keeps a field in a variable of its own, or in the one that stands for the right of two states.
        let mut run_left: Vec<Var> =
            self.fields.iter().map(|f| f.run.as_ref().map_or(&f.left, |r| &r.left).clone()).collect();
        run_left.extend(noted_vars(|n| &n.kept.left));
        let mut run_right: Vec<Var> =
            self.fields.iter().map(|f| f.run.as_ref().map_or(&f.right, |r| &r.right).clone()).collect();
        run_right.extend(noted_vars(|n| &n.kept.right));
        let mut closed: Vec<Var> =
            self.fields.iter().map(|f| f.run.as_ref().map_or(&f.right, |r| &r.left).clone()).collect();
        closed.extend(noted_vars(|n| &n.kept.left));
        let run_both: Vec<Var> = run_left.iter().chain(&run_right).cloned().collect();
        let with_run: Vec<Var> = left.iter().chain(&closed).cloned().collect();
        let mut run_identity: Vec<Expr> =
            self.fields.iter().map(|f| f.run.as_ref().map_or(&f.identity, |r| &r.identity).clone()).collect();
        run_identity.extend(noted(|n| n.kept.identity.clone()));
        let mut run_lift: Vec<Expr> =
            self.fields.iter().map(|f| f.run.as_ref().map_or(&f.lift, |r| &r.lift).clone()).collect();
        run_lift.extend(noted(|n| n.kept.lift.clone()));
        let lambda = |params: &[Var], body: Vec<Expr>| Lambda { params: params.to_vec(), body };
        let rewalk = self.rewalk.clone().map(|needed| {
            let pairs = || self.fields.iter().zip(&closed);
            let start = pairs().map(|(f, run)| f.rewalk.as_ref().map_or_else(|| run.expr(), |a| a.0.clone()));
            let step = pairs().map(|(f, run)| f.rewalk.as_ref().map_or_else(|| run.expr(), |a| a.1.clone()));
            // A run that is kept as states are stands at the right where it is closed, at the left where it is folded.
            let as_folded: coulis_ir::hash::FastMap<Var, Expr> =
                closed.iter().cloned().zip(run_left.iter().map(Var::expr)).collect();
            let kept = |(f, e): (&Draft, Expr)| {
                if f.rewalk.is_none() { coulis_ir::visit::substitute_expr(&e, &as_folded) } else { e }
            };
            let step = self.fields.iter().zip(step).map(kept);
            // What only runs keep is for the question whether there is to be a second walk.
            let notes = || noted(|n| n.kept.left.expr());
            Rewalk {
                needed: lambda(&with_run, vec![needed]),
                start: lambda(&with_run, start.chain(notes()).collect()),
                step: lambda(&run_both, step.chain(notes()).collect()),
                backwards: self.backwards,
                gives_up: self.gives_up.map(|condition| lambda(&with_run, vec![condition])),
            }
        });
        let has_step = self.fields.iter().any(|f| f.step.is_some());
        let lift_params: Vec<Var> = self.elements.iter().chain([&self.position]).cloned().collect();
        let reducer = Reducer {
            name: self.name.to_owned(),
            identity: self.fields.iter().map(|f| f.identity.clone()).collect(),
            lift: lambda(&lift_params, self.fields.iter().map(|f| f.lift.clone()).collect()),
            combine: lambda(&both, combine),
            step: has_step.then(|| lambda(&both, step)),
            step_needs_ascending: self.ascending,
            quick: self.longest_run.map(|max_steps| QuickStep {
                identity: run_identity,
                lift: lambda(&lift_params, run_lift),
                step: lambda(&run_both, run_step),
                close: lambda(&with_run, close),
                max_steps,
                max_joined: self.longest_joined.unwrap_or(max_steps),
                rewalks: rewalk.into_iter().collect(),
                spoilt: self.spoilt.map(|condition| lambda(&left, vec![condition])),
                nan_witness: self.nan_witness,
            }),
            settled: self.settled.map(|condition| lambda(&left, vec![condition])),
            values: None,
            neutral: self.neutral,
            finish: lambda(&left, results.iter().map(|(_, _, e)| e.clone()).collect()),
            results: results.iter().map(|(n, d, _)| Field { name: (*n).to_owned(), dtype: *d }).collect(),
            fields: self.fields.into_iter().map(|f| f.field).collect(),
            claims: self.claims,
            nan: self.request.nan,
            ties: self.ties,
            error,
        };
        if reducer.neutral.is_empty() {
            return Reducer { neutral: lifted_to_identity(&reducer, &[]).unwrap_or_default(), ..reducer };
        }
        reducer
    }
}

/// Elements whose states are the identity, in runs as well, but for fields that count: combining with that changes nothing. They are
/// sought among the numbers that identities are made of.
pub(crate) fn lifted_to_identity(reducer: &Reducer, but: &[Count]) -> Option<Vec<Expr>> {
    let (position, elements) = reducer.lift.params.split_last()?;
    let quick = reducer.quick.as_ref();
    let of_runs = quick.map(|quick| (&quick.lift, &quick.identity[..]));
    let lifts = || [(&reducer.lift, &reducer.identity[..])].into_iter().chain(of_runs);
    let is_placed = |lift: &Lambda| lift.body.iter().any(|e| uses_any(e, std::slice::from_ref(position)));
    if quick.is_some_and(|quick| !quick.rewalks.is_empty()) || lifts().any(|(lift, _)| is_placed(lift)) {
        return None;
    }
    let value = |e: &Expr| eval_expr(e, &mut Env::new());
    let candidates = |dtype: DType| -> Vec<Expr> {
        let ends = match dtype.int_range() {
            Some((least, most)) => [least, most].map(|end| Expr::int_of(end, dtype)),
            None if dtype.is_float() => [f64::NEG_INFINITY, f64::INFINITY].map(|end| Expr::float(end, dtype)),
            None => return Vec::new(),
        };
        let numbers = [0, 1].map(|n| Expr::constant(n, dtype));
        let is_there = |e: &Expr| value(e).is_ok_and(|v| v.rounded(dtype).same(v));
        numbers.into_iter().chain(ends.into_iter().filter(is_there)).collect()
    };
    let sought = elements.first().map(|element| candidates(element.dtype()).len())?;
    (0..sought).find_map(|nth| {
        let chosen: Vec<Expr> =
            elements.iter().map(|e| candidates(e.dtype()).get(nth).cloned()).collect::<Option<_>>()?;
        let mut args: Vec<Value> = chosen.iter().map(value).collect::<Result<_, _>>().ok()?;
        args.push(Value::Int(0));
        let is_identity = |(lift, identity): (&Lambda, &[Expr])| {
            let state = eval_lambda(lift, &args).ok()?;
            let wanted: Vec<Value> = identity.iter().map(value).collect::<Result<_, _>>().ok()?;
            let counts = |at: usize| but.iter().any(|count| count.field == at);
            let is_same = |(at, (a, b)): (usize, (&Value, &Value))| counts(at) || a.same(*b);
            (state.len() == wanted.len() && state.iter().zip(&wanted).enumerate().all(is_same)).then_some(())
        };
        lifts().try_for_each(is_identity).map(|()| chosen)
    })
}
