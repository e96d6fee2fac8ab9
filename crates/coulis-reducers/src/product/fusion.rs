//! Folds of parts become one: which fields are equal, and what the one reducer does with each.

use coulis_ir::visit::{map_children, uses_any};
use coulis_ir::{
    Claims, DType, ErrorBound, Expr, Field, Intrinsic, Lambda, Node, QuickStep, Reducer, Rewalk, Ties, Var,
};

use super::{Part, Product};

/// A field of the product, its expressions over the product's variables.
struct Merged {
    field: Field,
    left: Var,
    right: Var,
    /// Variables of the field in a run, and in the run's next element.
    run: (Var, Var),
    identity: Expr,
    lift: Expr,
    run_identity: Expr,
    run_lift: Expr,
    folds: Folds,
}

/// Variables of a field that no field of the product is known to equal.
struct Fresh {
    left: Var,
    right: Var,
    run: (Var, Var),
}

/// Everything that says how a field changes.
#[derive(Clone, PartialEq)]
struct Folds {
    combine: Expr,
    step: Expr,
    quick: Expr,
    close: Expr,
    /// The field of a run as each further walk that changes it starts, and after an element came again.
    rewalks: Vec<(Expr, Expr)>,
}

/// One more walk over a run, for some part.
#[derive(PartialEq)]
struct Walked {
    /// Whether the part needs it.
    needed: Expr,
    /// Fields that it changes: as it starts, and after an element came again.
    changes: Vec<(usize, (Expr, Expr))>,
    backwards: bool,
    gives_up: Option<Expr>,
}

/// What a further walk over a run does with a field: as it starts, and after an element came again; `None`
/// where it leaves it be.
type Change = Option<(Expr, Expr)>;

/// What a further walk over a run does with each field, given the fields of the state and the run, and those
/// of the run and an element.
fn changes(walk: &Rewalk, with_run: &[Expr], run_both: &[Expr]) -> Vec<Change> {
    let pairs = walk.start.apply(with_run).into_iter().zip(walk.step.apply(run_both));
    pairs.zip(run_both).map(|(pair, run)| (pair != (run.clone(), run.clone())).then_some(pair)).collect()
}

pub(super) struct Fusion {
    elements: Vec<Var>,
    position: Var,
    fields: Vec<Merged>,
    /// Fields of each part.
    slots: Vec<Vec<usize>>,
    /// Further walks over runs; one that several parts ask for stands once.
    walks: Vec<Walked>,
}

impl Fusion {
    pub(super) fn new(inputs: &[DType]) -> Fusion {
        let names = ["x", "w"];
        let name = |i: usize| names.get(i).map_or_else(|| format!("x{i}"), |n| (*n).to_owned());
        Fusion {
            elements: inputs.iter().enumerate().map(|(i, d)| Var::new(&name(i), *d)).collect(),
            position: Var::new("i", DType::I64),
            fields: Vec::new(),
            slots: Vec::new(),
            walks: Vec::new(),
        }
    }

    /// Adds a part: its fields are matched with equal ones that are there, the others are appended.
    pub(super) fn add(&mut self, name: &str, reducer: &Reducer) {
        let elements: Vec<Expr> =
            self.elements[..reducer.input_dtypes().len()].iter().map(Var::expr).collect();
        let lifts = reducer.lift(&elements, &self.position.expr());
        let (run_identity, run_lifts) = match &reducer.quick {
            Some(quick) => {
                let args: Vec<Expr> = elements.iter().cloned().chain([self.position.expr()]).collect();
                (quick.identity.clone(), quick.lift.apply(&args))
            }
            None => (reducer.identity.clone(), lifts.clone()),
        };
        let fresh: Vec<Fresh> = (reducer.fields.iter().zip(&run_identity))
            .map(|(f, run)| {
                let var = |side: &str, dtype: DType| Var::new(&format!("{side}_{}", f.name), dtype);
                let run = (var("r", run.dtype()), var("e", run.dtype()));
                Fresh { left: var("a", f.dtype), right: var("b", f.dtype), run }
            })
            .collect();
        let mut matched: Vec<Option<usize>> = (0..reducer.arity())
            .map(|at| {
                let alike = |m: &Merged| {
                    m.field.dtype == reducer.fields[at].dtype
                        && m.identity == reducer.identity[at]
                        && m.lift == lifts[at]
                        && m.run_identity == run_identity[at]
                        && m.run_lift == run_lifts[at]
                };
                let named = |m: &Merged| m.field.name.ends_with(&reducer.fields[at].name);
                let all = || self.fields.iter().enumerate().filter(|(_, m)| alike(m));
                all().find(|(_, m)| named(m)).or_else(|| all().next()).map(|(at, _)| at)
            })
            .collect();
        // Matches hold as long as the folds agree under them; drop those that do not until all do.
        let folds = loop {
            let folds = self.folds(reducer, &matched, &fresh);
            let wrong = (0..reducer.arity())
                .find(|at| matched[*at].is_some_and(|m| self.fields[m].folds != folds[*at]));
            match wrong {
                Some(at) => matched[at] = None,
                None => break folds,
            }
        };
        let walks: Vec<(Expr, Vec<Change>, bool, Option<Expr>)> = (reducer.quick.iter())
            .flat_map(|quick| &quick.rewalks)
            .map(|walk| {
                let [with_run, run_both] = self.of_runs(&matched, &fresh);
                let needed = walk.needed.apply(&with_run).remove(0);
                let gives_up = walk.gives_up.as_ref().map(|l| l.apply(&with_run).remove(0));
                (needed, changes(walk, &with_run, &run_both), walk.backwards, gives_up)
            })
            .collect();
        let mut slots = Vec::new();
        for (at, (Fresh { left, right, run }, folds)) in fresh.into_iter().zip(folds).enumerate() {
            slots.push(matched[at].unwrap_or(self.fields.len()));
            if matched[at].is_none() {
                let plain = &reducer.fields[at].name;
                let taken = |name: &str| self.fields.iter().any(|m| m.field.name == name);
                let mut field_name = plain.clone();
                if taken(&field_name) {
                    field_name = format!("{name}_{plain}");
                }
                while taken(&field_name) {
                    field_name.push('_');
                }
                self.fields.push(Merged {
                    field: Field { name: field_name, dtype: reducer.fields[at].dtype },
                    left,
                    right,
                    run,
                    identity: reducer.identity[at].clone(),
                    lift: lifts[at].clone(),
                    run_identity: run_identity[at].clone(),
                    run_lift: run_lifts[at].clone(),
                    folds,
                });
            }
        }
        for (needed, changes, backwards, gives_up) in walks {
            let changes = slots.iter().zip(changes).filter_map(|(slot, change)| Some((*slot, change?)));
            let walked = Walked { needed, changes: changes.collect(), backwards, gives_up };
            if !self.walks.contains(&walked) {
                self.walks.push(walked);
            }
        }
        self.slots.push(slots);
    }

    /// The state and a run, and two runs, over the variables of matched fields and the fresh ones of the others.
    fn of_runs(&self, matched: &[Option<usize>], fresh: &[Fresh]) -> [Vec<Expr>; 2] {
        let side = |pick: fn(&Merged) -> &Var, own: fn(&Fresh) -> &Var| -> Vec<Expr> {
            let pairs = matched.iter().zip(fresh);
            pairs.map(|(m, f)| m.map_or_else(|| own(f).expr(), |m| pick(&self.fields[m]).expr())).collect()
        };
        let run = side(|m| &m.run.0, |f| &f.run.0);
        let with_run = [side(|m| &m.left, |f| &f.left), run.clone()].concat();
        [with_run, [run, side(|m| &m.run.1, |f| &f.run.1)].concat()]
    }

    /// How the part's fields change, over the variables of matched fields and the fresh ones of the others.
    fn folds(&self, reducer: &Reducer, matched: &[Option<usize>], fresh: &[Fresh]) -> Vec<Folds> {
        let side = |pick: fn(&Merged) -> &Var, own: fn(&Fresh) -> &Var| -> Vec<Expr> {
            let pairs = matched.iter().zip(fresh);
            pairs.map(|(m, f)| m.map_or_else(|| own(f).expr(), |m| pick(&self.fields[m]).expr())).collect()
        };
        let (left, right) = (side(|m| &m.left, |f| &f.left), side(|m| &m.right, |f| &f.right));
        let [with_run, run_both] = self.of_runs(matched, fresh);
        let both: Vec<Expr> = left.into_iter().chain(right).collect();
        let combine = reducer.combine.apply(&both);
        let step = reducer.step.as_ref().map_or_else(|| combine.clone(), |s| s.apply(&both));
        let (quick, close) = match &reducer.quick {
            Some(quick) => (quick.step.apply(&run_both), quick.close.apply(&with_run)),
            None => {
                let step = reducer.step.as_ref().unwrap_or(&reducer.combine);
                (step.apply(&run_both), reducer.combine.apply(&with_run))
            }
        };
        let mut rewalks: Vec<Vec<(Expr, Expr)>> = vec![Vec::new(); reducer.arity()];
        for walk in reducer.quick.iter().flat_map(|quick| &quick.rewalks) {
            for (of_field, change) in rewalks.iter_mut().zip(changes(walk, &with_run, &run_both)) {
                of_field.extend(change);
            }
        }
        let all = combine.into_iter().zip(step).zip(quick.into_iter().zip(close)).zip(rewalks);
        all.map(|(((combine, step), (quick, close)), rewalks)| Folds { combine, step, quick, close, rewalks })
            .collect()
    }

    pub(super) fn finish(self, parts: &[(&str, Reducer)]) -> Product {
        let left: Vec<Var> = self.fields.iter().map(|m| m.left.clone()).collect();
        let both: Vec<Var> =
            left.iter().cloned().chain(self.fields.iter().map(|m| m.right.clone())).collect();
        let run: Vec<Var> = self.fields.iter().map(|m| m.run.0.clone()).collect();
        let run_both: Vec<Var> =
            run.iter().cloned().chain(self.fields.iter().map(|m| m.run.1.clone())).collect();
        let with_run: Vec<Var> = left.iter().chain(&run).cloned().collect();
        let over = |params: &[Var], body: Vec<Expr>| Lambda { params: params.to_vec(), body };
        let folded = |pick: fn(&Folds) -> &Expr| -> Vec<Expr> {
            self.fields.iter().map(|m| pick(&m.folds).clone()).collect()
        };
        let (mut results, mut finished, mut out) = (Vec::new(), Vec::new(), Vec::new());
        for ((name, reducer), slots) in parts.iter().zip(&self.slots) {
            let state: Vec<Expr> = slots.iter().map(|s| left[*s].expr()).collect();
            let start = results.len();
            finished.extend(reducer.finish(&state));
            results.extend(reducer.results.iter().map(|r| Field {
                name: if reducer.results.len() == 1 {
                    (*name).to_owned()
                } else {
                    format!("{name}.{}", r.name)
                },
                dtype: r.dtype,
            }));
            let (name, reducer) = ((*name).to_owned(), reducer.clone());
            out.push(Part { name, reducer, fields: slots.clone(), results: start..results.len() });
        }
        let reducers = || parts.iter().map(|(_, r)| r);
        let witnesses: Vec<usize> = (reducers().zip(&self.slots))
            .filter_map(|(r, slots)| Some(slots[r.quick.as_ref()?.nan_witness?]))
            .collect();
        let spoilt = (reducers().zip(&self.slots))
            .filter_map(|(r, slots)| {
                let state: Vec<Expr> = slots.iter().map(|s| left[*s].expr()).collect();
                Some(r.quick.as_ref()?.spoilt.as_ref()?.apply(&state).remove(0))
            })
            .reduce(Expr::or);
        // Nothing changes the state of all parts where nothing changes that of any.
        let settled = (reducers().zip(&self.slots))
            .map(|(r, slots)| {
                let state: Vec<Expr> = slots.iter().map(|s| left[*s].expr()).collect();
                Some(r.settled.as_ref()?.apply(&state).remove(0))
            })
            .reduce(|all, each| Some(all?.and(each?)))
            .flatten();
        let longest_joined = reducers().filter_map(|r| r.quick.as_ref().map(|q| q.max_joined)).min();
        let witness_vars: Vec<Var> = witnesses.iter().map(|w| run[*w].clone()).collect();
        // An element that all of them may take for none.
        let agree = reducers().all(|r| r.neutral == parts[0].1.neutral);
        let lift_params: Vec<Var> = self.elements.iter().chain([&self.position]).cloned().collect();
        let reducer = Reducer {
            name: parts.iter().map(|(n, _)| *n).collect::<Vec<_>>().join("_"),
            fields: self.fields.iter().map(|m| m.field.clone()).collect(),
            identity: self.fields.iter().map(|m| m.identity.clone()).collect(),
            lift: over(&lift_params, self.fields.iter().map(|m| m.lift.clone()).collect()),
            combine: over(&both, folded(|f| &f.combine)),
            step: reducers().any(|r| r.step.is_some()).then(|| over(&both, folded(|f| &f.step))),
            step_needs_ascending: reducers().any(|r| r.step_needs_ascending),
            quick: reducers().filter_map(|r| r.quick.as_ref().map(|q| q.max_steps)).min().map(|max_steps| {
                QuickStep {
                    identity: self.fields.iter().map(|m| m.run_identity.clone()).collect(),
                    lift: over(&lift_params, self.fields.iter().map(|m| m.run_lift.clone()).collect()),
                    step: over(&run_both, folded(|f| &f.quick)),
                    close: over(&with_run, with_one_witness(folded(|f| &f.close), &witness_vars)),
                    max_steps,
                    max_joined: longest_joined.unwrap_or(max_steps),
                    rewalks: (self.walks.iter())
                        .map(|walked| {
                            let change = |pick: fn(&(Expr, Expr)) -> &Expr| -> Vec<Expr> {
                                let mut body: Vec<Expr> = run.iter().map(Var::expr).collect();
                                for (slot, change) in &walked.changes {
                                    body[*slot] = pick(change).clone();
                                }
                                body
                            };
                            Rewalk {
                                needed: over(&with_run, vec![walked.needed.clone()]),
                                start: over(&with_run, change(|(start, _)| start)),
                                step: over(&run_both, change(|(_, came)| came)),
                                backwards: walked.backwards,
                                gives_up: (walked.gives_up.as_ref())
                                    .map(|condition| over(&with_run, vec![condition.clone()])),
                            }
                        })
                        .collect(),
                    spoilt: spoilt.map(|condition| over(&left, vec![condition])),
                    nan_witness: witnesses.first().copied(),
                }
                .condensed()
            }),
            settled: settled.map(|condition| over(&left, vec![condition])),
            values: None,
            neutral: parts[0].1.neutral.iter().filter(|_| agree).cloned().collect(),
            finish: over(&left, finished),
            results,
            claims: Claims {
                associative: reducers().all(|r| r.claims.associative),
                commutative: reducers().all(|r| r.claims.commutative),
                idempotent: reducers().all(|r| r.claims.idempotent),
            },
            nan: parts[0].1.nan,
            ties: reducers().map(|r| r.ties).find(|t| *t != Ties::None).unwrap_or(Ties::None),
            error: reducers().map(|r| r.error).fold(ErrorBound::Exact, looser),
        };
        Product { reducer, parts: out }
    }
}

/// The looser of two bounds of one kind; of different kinds the later one that is not exact. Each part keeps its own.
fn looser(a: ErrorBound, b: ErrorBound) -> ErrorBound {
    let size = |e: ErrorBound| match e {
        ErrorBound::Exact => 0.0,
        ErrorBound::Terms { factor, eps }
        | ErrorBound::Relative { factor, eps }
        | ErrorBound::Length { factor, eps } => factor * eps,
    };
    if size(b) > size(a) { b } else { a }
}

/// The ends of runs, which ask one witness of NaN instead of several: the first that is read for more than that, so that
/// the others need not be kept.
fn with_one_witness(closes: Vec<Expr>, witnesses: &[Var]) -> Vec<Expr> {
    let is_asked = |e: &Expr| {
        matches!(e.node(), Node::Call(Intrinsic::IsNan, args)
        if args[0].as_var().is_some_and(|v| witnesses.contains(v)))
    };
    let otherwise: Vec<Expr> = closes.iter().map(|e| replaced(e, &is_asked, &Expr::bool(false))).collect();
    let is_read = |w: &&Var| otherwise.iter().any(|e| uses_any(e, std::slice::from_ref(*w)));
    let Some(one) = witnesses.iter().find(is_read).or(witnesses.first()) else { return closes };
    let asked = Expr::call1(Intrinsic::IsNan, one.expr());
    closes.iter().map(|e| replaced(e, &is_asked, &asked)).collect()
}

/// `expr` with `by` in place of what is picked.
fn replaced(expr: &Expr, pick: &dyn Fn(&Expr) -> bool, by: &Expr) -> Expr {
    if pick(expr) { by.clone() } else { map_children(expr, &mut |child| replaced(child, pick, by)) }
}
