//! Reducers as data: what a fold is, without a word on how it runs.
//!
//! A reducer has state fields; each field has an identity, a lift from the elements, and a combine of two states.
//! `finish` turns a state into results. A product of reducers is a reducer whose fields are the union of the
//! parts' fields, equal ones kept once. Source: contract N16, seeds 003 and 004.

use crate::dtype::DType;
use crate::expr::{Expr, Intrinsic, Node, Var};
use crate::hash::FastMap;
use crate::visit::{for_each_expr, substitute_expr, uses_any};

/// One component of a state.
#[derive(Clone, Debug, PartialEq)]
pub struct Field {
    /// Name, unique in the reducer: `sum`, `count`, `index`.
    pub name: String,
    /// Type in which it is kept.
    pub dtype: DType,
}

/// Expressions of parameters: one result an expression.
#[derive(Clone, Debug)]
pub struct Lambda {
    /// Parameters.
    pub params: Vec<Var>,
    /// Results.
    pub body: Vec<Expr>,
}

/// How a reducer treats NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NanPolicy {
    /// A NaN element makes the result NaN (or is found by a position reducer).
    Propagate,
    /// NaN elements count as absent.
    Ignore,
}

/// Which position wins among equal values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ties {
    /// The result has no position.
    None,
    /// The smallest index.
    First,
    /// The largest index.
    Last,
}

/// What a reducer claims of its combine. Claims of a user's reducer are spot-checked (contract N16).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claims {
    /// `(a . b) . c == a . (b . c)`, up to rounding for floats.
    pub associative: bool,
    /// `a . b == b . a`, up to rounding for floats.
    pub commutative: bool,
    /// `a . a == a`: folding an element twice does no harm.
    pub idempotent: bool,
}

impl Claims {
    /// Whether elements may be folded in any order and in any parts; others come one after another (contract N16).
    pub const fn any_order(self) -> bool {
        self.associative && self.commutative
    }
}

/// How far a result may be from the exact one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ErrorBound {
    /// No rounding at all: integers (modulo their width), extrema, positions, bools.
    Exact,
    /// `|computed - exact| <= factor * eps * scale` plus the rounding of the output. For sums `scale` is the sum of
    /// the terms' magnitudes and `factor` at most 32 (contract N12); a reducer's documentation says what else it is.
    Terms {
        /// The factor.
        factor: f64,
        /// Distance from 1 to the next value of the accumulator's nominal type: `2^-23` or `2^-52`.
        eps: f64,
    },
    /// `|computed - exact| <= factor * eps * max(1, |exact|)` plus the rounding of the output.
    Relative {
        /// The factor.
        factor: f64,
        /// As in `Terms`.
        eps: f64,
    },
    /// `|computed - exact| <= factor * n * eps * |exact|` plus the rounding of the output, for `n` elements.
    Length {
        /// The factor.
        factor: f64,
        /// As in `Terms`.
        eps: f64,
    },
}

/// A cheaper fold that keeps the error bound only in short runs, as the first of the two levels of contract N12:
/// start a run from the `lift` of its first element, step until it holds at most `max_steps`, then `close` it into the
/// total. A run of no elements is the identity; steps from there are right, though perhaps not within the bound. The
/// state of a run has fields of its own, often fewer than the reducer's and of narrower types.
#[derive(Clone, Debug)]
pub struct QuickStep {
    /// State of a run of no elements, one constant a field of the run.
    pub identity: Vec<Expr>,
    /// State of a run of one element. Parameters as those of the reducer's `lift`.
    pub lift: Lambda,
    /// State of a run after one more element. Parameters: the fields of the run, then those of its `lift`.
    pub step: Lambda,
    /// The reducer's state after a run. Parameters: the fields of the state, then those of the run.
    pub close: Lambda,
    /// Elements of the longest run, at least 1.
    pub max_steps: u32,
    /// Elements of the longest run that is made of several chains of at most `max_steps` each ([`crate::chains`]), at least
    /// `max_steps`.
    pub max_joined: u32,
    /// What more walks over the elements of a run, one after another, add before it is closed.
    pub rewalks: Vec<Rewalk>,
    /// Whether runs left their range: one bool. Where it holds of a state that runs were closed into, all
    /// that it is the state of is folded again without runs. Parameters: the fields of the state. `None`
    /// where runs never do.
    pub spoilt: Option<Lambda>,
    /// A field of the run that is NaN exactly when one of its elements is, where there is one: of several reducers
    /// folded together one such field does for all. A hint, no part of the meaning.
    pub nan_witness: Option<usize>,
}

impl PartialEq for QuickStep {
    /// Equal in meaning.
    fn eq(&self, other: &QuickStep) -> bool {
        self.identity == other.identity
            && self.lift == other.lift
            && self.step == other.step
            && self.close == other.close
            && self.max_steps == other.max_steps
            && self.rewalks == other.rewalks
            && self.spoilt == other.spoilt
    }
}

impl QuickStep {
    /// The same fold with fields of the run that are equal at all times kept once, and without those that nothing reads.
    pub fn condensed(&self) -> QuickStep {
        let n = self.identity.len();
        let n_state = self.close.params.len() - n;
        // The field that each is equal to, itself or an earlier one.
        let mut same: Vec<usize> = (0..n).collect();
        // The results of lambdas over two runs, and over a state and a run, by fields that are not equal to an earlier one.
        let of_runs = |lambda: &Lambda, at: usize, same: &[usize]| renamed(lambda, at, [0, n], same);
        let of_state =
            |lambda: &Lambda, at: usize, same: &[usize]| renamed(lambda, at, [n_state, n_state], same);
        for i in 1..n {
            let equal = (0..i).filter(|&j| same[j] == j).find(|&j| {
                let mut with = same.clone();
                with[i] = j;
                self.identity[i] == self.identity[j]
                    && self.lift.body[i] == self.lift.body[j]
                    && of_runs(&self.step, i, &with) == of_runs(&self.step, j, &with)
                    && self.rewalks.iter().all(|walk| {
                        of_state(&walk.start, i, &with) == of_state(&walk.start, j, &with)
                            && of_runs(&walk.step, i, &with) == of_runs(&walk.step, j, &with)
                    })
            });
            same[i] = equal.unwrap_or(i);
        }
        let over_runs =
            |lambda: &Lambda| -> Vec<Expr> { (0..n).map(|i| of_runs(lambda, i, &same)).collect() };
        let over_state = |lambda: &Lambda| -> Vec<Expr> {
            (0..lambda.body.len()).map(|i| of_state(lambda, i, &same)).collect()
        };
        let (steps, closes) = (over_runs(&self.step), over_state(&self.close));
        let walked =
            self.rewalks.iter().map(|a| [over_state(&a.needed), over_state(&a.start), over_runs(&a.step)]);
        let rewalked: Vec<[Vec<Expr>; 3]> = walked.collect();
        // Whether a result reads a field of the run.
        let from_state =
            |lambda: &Lambda, expr: &Expr, i: usize| uses_any(expr, &lambda.params[n_state + i..][..1]);
        let from_runs = |lambda: &Lambda, expr: &Expr, i: usize| {
            uses_any(expr, &[lambda.params[i].clone(), lambda.params[n + i].clone()])
        };
        let walks = || self.rewalks.iter().zip(&rewalked);
        let is_asked = |i: usize| {
            closes.iter().any(|e| from_state(&self.close, e, i))
                || walks().any(|(a, [needed, ..])| needed.iter().any(|e| from_state(&a.needed, e, i)))
                || self.rewalks.iter().flat_map(|a| &a.gives_up).any(|l| from_state(l, &over_state(l)[0], i))
        };
        let is_read = |by: usize, i: usize| {
            from_runs(&self.step, &steps[by], i)
                || walks().any(|(a, [_, starts, comes])| {
                    from_state(&a.start, &starts[by], i) || from_runs(&a.step, &comes[by], i)
                })
        };
        let mut live: Vec<bool> = (0..n).map(is_asked).collect();
        while let Some(read) = (0..n).find(|&i| !live[i] && (0..n).any(|j| live[j] && is_read(j, i))) {
            live[read] = true;
        }
        if !live.contains(&true) {
            return self.clone();
        }
        let kept: Vec<usize> = (0..n).filter(|&i| live[i]).collect();
        let pick = |exprs: &[Expr]| -> Vec<Expr> { kept.iter().map(|&i| exprs[i].clone()).collect() };
        let vars = |params: &[Var], first: usize| -> Vec<Var> {
            kept.iter().map(|&i| params[first + i].clone()).collect()
        };
        let run_params = |l: &Lambda| [vars(&l.params, 0), vars(&l.params, n)].concat();
        let state_params = |l: &Lambda| [l.params[..n_state].to_vec(), vars(&l.params, n_state)].concat();
        QuickStep {
            identity: pick(&self.identity),
            lift: Lambda { params: self.lift.params.clone(), body: pick(&self.lift.body) },
            step: Lambda { params: run_params(&self.step), body: pick(&steps) },
            max_steps: self.max_steps,
            max_joined: self.max_joined,
            rewalks: walks()
                .map(|(walk, [needed, starts, comes])| Rewalk {
                    needed: Lambda { params: state_params(&walk.needed), body: needed.clone() },
                    start: Lambda { params: state_params(&walk.start), body: pick(starts) },
                    step: Lambda { params: run_params(&walk.step), body: pick(comes) },
                    backwards: walk.backwards,
                    gives_up: walk
                        .gives_up
                        .as_ref()
                        .map(|lambda| Lambda { params: state_params(lambda), body: over_state(lambda) }),
                })
                .collect(),
            close: Lambda { params: state_params(&self.close), body: closes },
            spoilt: self.spoilt.clone(),
            nan_witness: self.nan_witness.and_then(|w| kept.iter().position(|&i| i == same[w])),
        }
    }
}

/// A result of a lambda whose parameters from each of two on are the fields of a run, by the fields that
/// those are the same as.
fn renamed(lambda: &Lambda, at: usize, firsts: [usize; 2], same: &[usize]) -> Expr {
    let pairs = firsts.iter().flat_map(|&first| {
        same.iter()
            .enumerate()
            .filter(|(i, j)| i != *j)
            .map(move |(i, &j)| (lambda.params[first + i].clone(), lambda.params[first + j].expr()))
    });
    substitute_expr(&lambda.body[at], &pairs.collect::<FastMap<_, _>>())
}

/// One more walk over the elements of a short run, by what the walks before it found: where the greatest is,
/// or what all are to be scaled by. It is for elements that are still in registers, or for what is seldom
/// needed. A walk that is not needed does no harm.
#[derive(Clone, Debug, PartialEq)]
pub struct Rewalk {
    /// Whether the run needs it: one bool. Parameters: the fields of the state, then those of the run.
    pub needed: Lambda,
    /// State of the run before its first element comes again. Parameters: as those of `needed`.
    pub start: Lambda,
    /// State of the run after an element came again. Parameters: the fields of the run, then those of its `lift`.
    pub step: Lambda,
    /// Whether elements come from the last to the first.
    pub backwards: bool,
    /// Whether the run is given up after that walk: its elements are folded into the state by the reducer's own step, and
    /// it is not closed. One bool, of the parameters of `needed`, which holds of no run that needs no walk; `None` where
    /// no run is.
    pub gives_up: Option<Lambda>,
}

impl Rewalk {
    /// Whether every run needs it.
    pub fn is_always(&self) -> bool {
        self.needed.body[0].is_int(1)
    }
}

/// A fold of elements into results. All lambdas are over scalars; vectors apply them lane by lane.
#[derive(Clone, Debug)]
pub struct Reducer {
    /// Name, as in the catalogue or as the user gave it.
    pub name: String,
    /// State.
    pub fields: Vec<Field>,
    /// The state that changes nothing, one constant a field.
    pub identity: Vec<Expr>,
    /// State of one element. Parameters: the elements of the inputs, then the position (`int64`, row-major over
    /// the reduced axes taken ascending).
    pub lift: Lambda,
    /// State of two states. Parameters: the fields of the left state, then those of the right.
    pub combine: Lambda,
    /// State after one more element; equals `combine(state, lift(element, position))` within the error bound, and
    /// is cheaper. Parameters: the fields of the state, then those of `lift`. `None` where combine is as cheap.
    pub step: Option<Lambda>,
    /// Whether `step` and `quick` are right only if elements come in ascending position; `combine` never
    /// needs that. States of interleaved elements (lanes, threads) may be combined in any order.
    pub step_needs_ascending: bool,
    /// A still cheaper fold for short runs, where there is one. No plan has to use it.
    pub quick: Option<QuickStep>,
    /// Whether a state is settled: one bool. Where it holds, no further element and no further state changes it, and a
    /// fold may end there; where `step_needs_ascending`, none whose elements are all behind those of the state. Parameters: the
    /// fields of the state. `None` where that is known of no state.
    pub settled: Option<Lambda>,
    /// What is folded in place of the elements, where that is something else. Parameters: the elements. The lifts have it
    /// inside; the NaN policy looks at it.
    pub values: Option<Lambda>,
    /// Elements, one an input, that may stand anywhere in a fold any number of times: the results stay within
    /// the error bound of those without them, the same where they are exact. Empty where none are known.
    pub neutral: Vec<Expr>,
    /// Results of a state. Parameters: the fields.
    pub finish: Lambda,
    /// Name and default output type of each result. `finish` gives results in the precision of the state, so that
    /// `alpha` and `beta` come before the one rounding to the output type (contract N1); casting is the caller's.
    pub results: Vec<Field>,
    /// What holds of `combine`.
    pub claims: Claims,
    /// NaN policy that the lambdas implement.
    pub nan: NanPolicy,
    /// Which of equal values wins.
    pub ties: Ties,
    /// Bound of the results' error.
    pub error: ErrorBound,
}

impl Lambda {
    /// The results with `args` in place of the parameters. Scalars beside vectors are broadcast.
    pub fn apply(&self, args: &[Expr]) -> Vec<Expr> {
        assert_eq!(self.params.len(), args.len(), "a lambda of {} parameters", self.params.len());
        let map: FastMap<Var, Expr> = self.params.iter().cloned().zip(args.iter().cloned()).collect();
        self.body.iter().map(|e| substitute_expr(e, &map)).collect()
    }

    /// Whether some result depends on that parameter.
    pub fn reads(&self, param: usize) -> bool {
        let own = &self.params[param..=param];
        self.body.iter().any(|e| uses_any(e, own))
    }

    /// The lambda of what `map` gives, which stands in place of the first parameters; those behind them are passed on.
    pub fn of_mapped(&self, map: &Lambda) -> Lambda {
        let behind = &self.params[map.body.len()..];
        let args: Vec<Expr> = map.body.iter().cloned().chain(behind.iter().map(Var::expr)).collect();
        Lambda { params: map.params.iter().chain(behind).cloned().collect(), body: self.apply(&args) }
    }

    /// The name of a variable or of memory that the body reads and that is none of the parameters, if there is one.
    pub fn stranger(&self) -> Option<String> {
        let mut found = None;
        for value in &self.body {
            for_each_expr(value, &mut |e| match e.node() {
                Node::Var(var) if !self.params.contains(var) => found = Some(var.name().to_owned()),
                Node::Load(buffer, _) => found = Some(buffer.name.clone()),
                _ => {}
            });
        }
        found
    }
}

impl PartialEq for Lambda {
    /// Equal up to the names and identities of parameters.
    fn eq(&self, other: &Lambda) -> bool {
        let types = |l: &Lambda| l.params.iter().map(Var::dtype).collect::<Vec<_>>();
        let args: Vec<Expr> = self.params.iter().map(Var::expr).collect();
        types(self) == types(other) && self.body == other.apply(&args)
    }
}

impl PartialEq for Reducer {
    /// Equal in meaning-bearing parts: everything but the documentation-only `error`.
    fn eq(&self, other: &Reducer) -> bool {
        self.name == other.name
            && self.fields == other.fields
            && self.identity == other.identity
            && self.lift == other.lift
            && self.combine == other.combine
            && self.step == other.step
            && self.step_needs_ascending == other.step_needs_ascending
            && self.quick == other.quick
            && self.settled == other.settled
            && self.neutral == other.neutral
            && self.results == other.results
            && self.finish == other.finish
            && self.claims == other.claims
            && self.nan == other.nan
            && self.ties == other.ties
    }
}

impl Reducer {
    /// The same for elements that come in any order of positions: without a step and runs that need them to ascend.
    pub fn in_any_order(self) -> Reducer {
        if !self.step_needs_ascending {
            return self;
        }
        Reducer { step: None, quick: None, step_needs_ascending: false, ..self }
    }

    /// The fold of elements as they are: a state is an element, one field an identity, and is the result too.
    /// Claims to be associative and commutative.
    pub fn plain(combine: Lambda, identity: Vec<Expr>) -> Reducer {
        let dtypes: Vec<DType> = identity.iter().map(Expr::dtype).collect();
        let vars = |prefix: &str| -> Vec<Var> {
            dtypes.iter().enumerate().map(|(i, &d)| Var::new(&format!("{prefix}{i}"), d)).collect()
        };
        let as_is = |vars: &[Var]| vars.iter().map(Var::expr).collect::<Vec<_>>();
        let (elements, state) = (vars("x"), vars("s"));
        let lift_body = as_is(&elements);
        let mut lift_params = elements;
        lift_params.push(Var::new("position", DType::I64));
        let fields: Vec<Field> =
            dtypes.iter().enumerate().map(|(i, &dtype)| Field { name: format!("v{i}"), dtype }).collect();
        let eps = if dtypes.contains(&DType::F64) { f64::EPSILON } else { f64::from(f32::EPSILON) };
        let is_float = dtypes.iter().any(|d| d.is_float());
        Reducer {
            name: "comm_reducer".to_owned(),
            results: fields.clone(),
            fields,
            identity,
            lift: Lambda { params: lift_params, body: lift_body },
            combine,
            step: None,
            step_needs_ascending: false,
            quick: None,
            settled: None,
            values: None,
            neutral: Vec::new(),
            finish: Lambda { body: as_is(&state), params: state },
            claims: Claims { associative: true, commutative: true, idempotent: false },
            nan: NanPolicy::Propagate,
            ties: Ties::None,
            error: if is_float { ErrorBound::Terms { factor: 32.0, eps } } else { ErrorBound::Exact },
        }
    }

    /// Number of state fields.
    pub fn arity(&self) -> usize {
        self.fields.len()
    }

    /// Types of the elements, one an input.
    pub fn input_dtypes(&self) -> Vec<DType> {
        self.lift.params.iter().rev().skip(1).rev().map(Var::dtype).collect()
    }

    /// Whether no field looks at where an element is.
    pub fn ignores_position(&self) -> bool {
        let position = &self.lift.params[self.lift.params.len() - 1..];
        !self.lift.body.iter().any(|e| uses_any(e, position))
    }

    /// The state of one element. `elements`: one an input; `position`: `int64`.
    pub fn lift(&self, elements: &[Expr], position: &Expr) -> Vec<Expr> {
        let args: Vec<Expr> = elements.iter().chain([position]).cloned().collect();
        self.lift.apply(&args)
    }

    /// The fold of what `map` gives of each element, in place of the elements. Its parameters are the elements as they are
    /// read, its results of the types that this reducer folds; what lifts take behind these is passed on.
    pub fn of_mapped(self, map: &Lambda) -> Reducer {
        let quick = self.quick.map(|quick| QuickStep { lift: quick.lift.of_mapped(map), ..quick });
        Reducer {
            lift: self.lift.of_mapped(map),
            quick,
            values: Some(map.clone()),
            neutral: Vec::new(),
            ..self
        }
    }

    /// Whether the fold reads that one of the elements: a lift does, or the condition under which they take part.
    pub fn reads(&self, element: usize) -> bool {
        let own = &self.lift.params[element..=element];
        let n_elements = self.lift.params.len() - 1;
        let elements: Vec<Expr> = self.lift.params[..n_elements].iter().map(Var::expr).collect();
        self.lift.reads(element)
            || self.quick.as_ref().is_some_and(|quick| quick.lift.reads(element))
            || self.takes_part(&elements).is_some_and(|condition| uses_any(&condition, own))
    }

    /// The condition under which an element takes part in the fold: under [`NanPolicy::Ignore`], that no input's
    /// element, or nothing of what is folded in its place, is NaN; `None` where every element does. Plans mask with it as
    /// with `where` (contract N2).
    pub fn takes_part(&self, elements: &[Expr]) -> Option<Expr> {
        match self.nan {
            NanPolicy::Propagate => None,
            NanPolicy::Ignore => self
                .values
                .as_ref()
                .map_or_else(|| elements.to_vec(), |values| values.apply(elements))
                .iter()
                .filter(|e| e.dtype().is_float())
                .map(|e| {
                    let wide = if e.dtype().bytes() < 4 { e.clone().cast(DType::F32) } else { e.clone() };
                    Expr::call1(Intrinsic::IsNan, wide).logical_not()
                })
                .reduce(Expr::and),
        }
    }

    /// Results of a state.
    pub fn finish(&self, state: &[Expr]) -> Vec<Expr> {
        self.finish.apply(state)
    }

    /// The state after one more lifted element: `step` where there is one, else `combine`.
    pub fn fold(&self, state: &[Expr], lifted: &[Expr]) -> Vec<Expr> {
        let lambda = self.step.as_ref().unwrap_or(&self.combine);
        let args: Vec<Expr> = state.iter().chain(lifted).cloned().collect();
        lambda.apply(&args)
    }

    /// The state of two states.
    pub fn merge(&self, left: &[Expr], right: &[Expr]) -> Vec<Expr> {
        let args: Vec<Expr> = left.iter().chain(right).cloned().collect();
        self.combine.apply(&args)
    }
}
