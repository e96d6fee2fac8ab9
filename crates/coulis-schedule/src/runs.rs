//! Short runs of a reduction: memory of their own, their start, the loop that folds one, and its end in the total.
//!
//! The first element of a run starts it, the others step, so that a step may count on an element before it. The first
//! iteration of the run's loop is written by itself; a condition on the loops in it tells the first element, and goes
//! where they are unrolled, as one on all loops does where the run's own is unrolled. Iterations of a loop in it may fold
//! chains of their own, which are joined where the run is closed ([`coulis_ir::chains`]). Source: contract N12.

use coulis_ir::chains::{Joined, joined, of_chains};
use coulis_ir::hash::FastMap;
use coulis_ir::visit::{each_child_mut, substitute_expr, substitute_stmt, uses_any};
use coulis_ir::{
    BinaryOp, Buffer, DType, Element, Expr, Intrinsic, Lambda, LoopKind, MemScope, Node, Rewalk, Stmt, Var,
};
use coulis_tensor::{QuickFold, Reduction};

use crate::alone::beside_identity;
use crate::asked::{any_lane, any_of};
use crate::error::ScheduleError;
use crate::fold;
use crate::from_begin::FromBegin;
use crate::infer::Loop;
use crate::nest::Builder;
use crate::schedule::Values;
use crate::stage::{Attach, Stage};
use crate::stores::{Point, Purpose, likely, nested, output_names, store_each, unlikely};

/// The loop of the stage whose executions are runs, where runs keep the meaning: a condition on elements leaves
/// some out, which a run does not expect.
pub(crate) fn position(stage: &Stage, r: &Reduction) -> Option<usize> {
    let at = stage.leaves.iter().position(|l| stage.attrs.get(l.var()).is_some_and(|a| a.is_run))?;
    r.condition.as_ref().is_none_or(is_guard).then_some(at)
}

/// Whether a condition only keeps loops within their extents.
pub(crate) fn is_guard(condition: &Expr) -> bool {
    match condition.node() {
        Node::Binary(BinaryOp::And, a, b) => is_guard(a) && is_guard(b),
        Node::Call(Intrinsic::Likely, _) => true,
        _ => false,
    }
}

/// The fold without fields that only count the steps of a run, of which there are `n_steps`, and which fields are left.
fn counted(quick: &QuickFold, n_steps: i128) -> (QuickFold, Vec<usize>) {
    let n = quick.identity.len();
    let n_state = quick.close.params.len() - n;
    let (left, right) = quick.step.params.split_at(n);
    let count = |i: usize| {
        let each = quick.sources[i].as_int().filter(|_| quick.identity[i].is_int(0))?;
        let is_alone =
            (0..n).all(|j| j == i || !uses_any(&quick.step.body[j], &[left[i].clone(), right[i].clone()]));
        let adds = quick.step.body[i] == left[i].expr() + right[i].expr();
        let stays = quick.rewalks.iter().all(|walk| {
            let (now, next) =
                (&walk.start.params[n_state + i], [&walk.step.params[i], &walk.step.params[n + i]]);
            let is_alone = (0..n).all(|j| j == i || !uses_any(&walk.step.body[j], &next.map(Var::clone)));
            is_alone && walk.start.body[i] == now.expr() && walk.step.body[i] == next[0].expr()
        });
        (is_alone && adds && stays).then(|| Expr::int_of(each * n_steps, quick.identity[i].dtype()))
    };
    let counts: Vec<Option<Expr>> = (0..n).map(count).collect();
    let kept: Vec<usize> = (0..n).filter(|&i| counts[i].is_none()).collect();
    if kept.is_empty() {
        return (quick.clone(), (0..n).collect());
    }
    let pick = |exprs: &[Expr]| -> Vec<Expr> { kept.iter().map(|&i| exprs[i].clone()).collect() };
    let vars = |params: &[Var]| -> Vec<Var> { kept.iter().map(|&i| params[i].clone()).collect() };
    // Of the state and the run, which counts as many steps as are known.
    let of_run = |lambda: &Lambda, body: &[Expr]| -> Lambda {
        let (state, run) = lambda.params.split_at(n_state);
        let known: FastMap<Var, Expr> = (run.iter().zip(&counts))
            .filter_map(|(var, count)| Some((var.clone(), count.clone()?)))
            .collect();
        let body = body.iter().map(|e| substitute_expr(e, &known)).collect();
        Lambda { params: [state.to_vec(), vars(run)].concat(), body }
    };
    let of_both = |lambda: &Lambda| -> Lambda {
        let (left, right) = lambda.params.split_at(n);
        Lambda { params: [vars(left), vars(right)].concat(), body: pick(&lambda.body) }
    };
    let of_walk = |walk: &Rewalk| Rewalk {
        needed: of_run(&walk.needed, &walk.needed.body),
        start: of_run(&walk.start, &pick(&walk.start.body)),
        step: of_both(&walk.step),
        backwards: walk.backwards,
        gives_up: walk.gives_up.as_ref().map(|lambda| of_run(lambda, &lambda.body)),
    };
    let rewalks = quick.rewalks.iter().map(of_walk).collect();
    let (step, close) = (of_both(&quick.step), of_run(&quick.close, &quick.close.body));
    let (identity, sources) = (pick(&quick.identity), pick(&quick.sources));
    let (max_steps, max_joined, spoilt) = (quick.max_steps, quick.max_joined, quick.spoilt.clone());
    (QuickFold { identity, sources, step, close, max_steps, max_joined, rewalks, spoilt }, kept)
}

impl Builder<'_> {
    /// Whether all elements along the reduced loops take part or none does: guards only keep data axes within the tensor,
    /// so that the state of which they leave out everything is that of no point.
    fn is_all_or_nothing(&self, stage: &Stage, reduced: &[&Loop]) -> Result<bool, ScheduleError> {
        let along: Vec<Var> = reduced.iter().map(|l| l.var.clone()).collect();
        if self.guards(stage).iter().any(|g| g.is_reduce || uses_any(&g.condition, &along)) {
            return Ok(false);
        }
        let mut inside = &self.guarded(stage, Stmt::NOP)?;
        while let Stmt::If { cond, then, otherwise: None } = inside {
            if !matches!(cond.node(), Node::Call(Intrinsic::Likely, _)) {
                return Ok(false);
            }
            inside = &**then;
        }
        Ok(*inside == Stmt::NOP)
    }

    /// What is known of the state before a run, by the loops around it: all of it where the run is the only one of its state, else
    /// fields that only count steps, where each run has as many and all runs of a state come one after another. A field that is
    /// read so is no longer waited for, and is the same in all lanes.
    fn known_before(
        &self,
        stage: &Stage,
        r: &Reduction,
        close: &Lambda,
        run_at: usize,
    ) -> Result<Vec<Option<Expr>>, ScheduleError> {
        let at = self.at(stage);
        let none = vec![None; r.identity.len()];
        let around: Vec<&Loop> =
            at.loops[..run_at].iter().filter(|l| stage.origin(&l.leaf).reduce && !l.is_unit()).collect();
        let is_in_order = |l: &&Loop| {
            !stage.origin(&l.leaf).data
                && l.thread.is_none()
                && !l.extent.reads_memory()
                && matches!(stage.kind_of(&l.leaf), LoopKind::Serial | LoopKind::Unrolled)
        };
        let are_known =
            r.init.is_empty() && around.iter().all(is_in_order) && self.is_all_or_nothing(stage, &around)?;
        if !are_known {
            return Ok(none);
        }
        if around.is_empty() {
            return Ok(r.identity.iter().cloned().map(Some).collect());
        }
        if !self.launches.of(at.root).is_empty() {
            return Ok(none);
        }
        // The runs before this one.
        let nth = |dtype: DType| -> Expr {
            around.iter().fold(fold::int(0, dtype), |nth, l| {
                fold::add(&fold::mul(&nth, &fold::cast(&l.extent, dtype)), &fold::cast(&l.var.expr(), dtype))
            })
        };
        let count = |i: usize| {
            let (now, dtype) = (close.params[i].expr(), r.identity[i].dtype());
            let Node::Binary(BinaryOp::Add, left, each) = close.body[i].node() else { return None };
            let each = match each.node() {
                Node::Cast(each) => each.as_int()?,
                _ => each.as_int()?,
            };
            let adds = *left == now && r.identity[i].is_int(0);
            adds.then(|| fold::mul(&nth(dtype), &fold::int(each, dtype)))
        };
        Ok((0..r.identity.len()).map(count).collect())
    }

    /// One run: the loop at `run_at` and those in it, between its start and its end. `one_by_one`: what folds an element
    /// without runs.
    pub(crate) fn run(
        &self,
        stage: &Stage,
        r: &Reduction,
        quick: &QuickFold,
        run_at: usize,
        one_by_one: &Stmt,
    ) -> Result<Stmt, ScheduleError> {
        Run::new(self, stage, r, quick, run_at)?.built(one_by_one)
    }
}

/// A run that is being built: the loop at `run_at` and those in it.
struct Run<'b> {
    builder: &'b Builder<'b>,
    stage: &'b Stage,
    condition: Option<&'b Expr>,
    quick: QuickFold,
    run_at: usize,
    /// Loops of the fold in it.
    reduced: Vec<&'b Loop>,
    /// Loops of data in it: each of their iterations has a state of its own, as threads have anyway.
    lanes: Vec<&'b Loop>,
    chains: Option<Chains<'b>>,
    names: Vec<String>,
    buffers: Vec<Buffer>,
    /// What is folded, one a field.
    sources: Vec<Expr>,
    from_begin: Vec<FromBegin>,
    /// Fields of the total that are known before the run.
    before: Vec<Option<Expr>>,
}

/// The chains of a run: iterations of one of its loops.
struct Chains<'b> {
    along: &'b Loop,
    n: usize,
    /// What each field is.
    joined: Vec<Joined>,
}

impl<'b> Run<'b> {
    fn new(
        builder: &'b Builder<'b>,
        stage: &'b Stage,
        r: &'b Reduction,
        quick: &QuickFold,
        run_at: usize,
    ) -> Result<Run<'b>, ScheduleError> {
        let at = builder.at(stage);
        let inner = || at.loops[run_at..].iter().filter(|l| !l.is_unit() && l.launched().is_none());
        let reduced: Vec<&Loop> = inner().filter(|l| stage.origin(&l.leaf).reduce).collect();
        let lanes: Vec<&Loop> = inner().filter(|l| stage.origin(&l.leaf).data).collect();
        let is_whole = r.condition.is_none() && builder.is_all_or_nothing(stage, &reduced)?;
        let n_steps = reduced.iter().map(|l| l.extent.as_int()).product::<Option<i128>>();
        let (quick, kept) = match n_steps.filter(|_| is_whole) {
            Some(n_steps) => counted(quick, n_steps),
            None => (quick.clone(), (0..quick.identity.len()).collect()),
        };
        let before = if is_whole {
            builder.known_before(stage, r, &quick.close, run_at)?
        } else {
            vec![None; r.identity.len()]
        };
        let mut shape: Vec<Expr> = lanes.iter().map(|l| l.extent.clone()).collect();
        if shape.is_empty() {
            shape.push(Expr::int(1));
        }
        let outputs = output_names(stage);
        let names: Vec<String> = (kept.into_iter())
            .map(|i| outputs.get(i).cloned().unwrap_or_else(|| format!("{}_{i}", outputs[0])))
            .collect();
        let (quick, from_begin) = builder.counted_from_begin(stage, quick, &reduced, &lanes);
        let chains = inner().find(|l| stage.attrs.get(l.leaf.var()).is_some_and(|a| a.is_chain));
        let chains = chains.and_then(|along| {
            let joined = joined(&quick.identity, &quick.step, &quick.rewalks)?;
            Some(Chains { along, n: usize::try_from(along.extent.as_int()?).ok()?, joined })
        });
        let memory = |(at, (start, name)): (usize, (&Expr, &String))| {
            let own = chains.as_ref().filter(|chains| chains.joined[at] == Joined::Sum);
            let shape = own.map(|chains| chains.along.extent.clone()).into_iter().chain(shape.clone());
            Buffer::new(&format!("{name}_run"), start.dtype(), shape.collect(), MemScope::Local)
        };
        let buffers: Vec<Buffer> = quick.identity.iter().zip(&names).enumerate().map(memory).collect();
        let mut sources: Vec<Expr> =
            quick.sources.iter().map(|e| substitute_expr(e, &at.absolutes)).collect();
        from_begin.iter().for_each(|counted| sources[counted.field] = counted.source.clone());
        let condition = r.condition.as_ref();
        Ok(Run {
            builder,
            stage,
            condition,
            quick,
            run_at,
            reduced,
            lanes,
            chains,
            names,
            buffers,
            sources,
            from_begin,
            before,
        })
    }

    fn built(self, one_by_one: &Stmt) -> Result<Stmt, ScheduleError> {
        let (mut folds, mut end) = (self.folds()?, self.closed()?);
        for rewalk in &self.quick.rewalks {
            match &rewalk.gives_up {
                Some(gives_up) => end = self.unless_given_up(rewalk, gives_up, end, one_by_one)?,
                None => folds = self.walked_again(rewalk, folds)?,
            }
        }
        let start = self.builder.data_nest(self.stage, self.run_at, "_run", &mut |point, _| {
            let all = (0..self.chains.as_ref().map_or(1, |chains| chains.n)).map(|nth| {
                let chain =
                    self.chains.as_ref().map(|chains| fold::int(nth as i128, chains.along.var.dtype()));
                self.store(&self.elements(point.offsets, chain.as_ref()), &self.quick.identity)
            });
            Ok(Stmt::seq(all))
        })?;
        let body = nested(self.conditions_of_first(), Stmt::seq([start, folds, end]));
        Ok(self.buffers.into_iter().rev().fold(body, |body, buffer| Stmt::allocate(buffer, body)))
    }

    /// What holds where the run has any element at all, in loops that no threads share: that the first of its loops is one.
    fn conditions_of_first(&self) -> Vec<Expr> {
        let at = self.builder.at(self.stage);
        if !self.builder.launches.of(at.root).is_empty() {
            return Vec::new();
        }
        let known = at.known_inside();
        let zero = |l: &&Loop| (l.var.clone(), fold::int(0, l.var.dtype()));
        let first = Values::from_iter(self.lanes.iter().chain(&self.reduced).map(zero));
        let of_first = |condition: Expr| {
            let Node::Binary(BinaryOp::Lt, place, end) = condition.node() else { return None };
            let [own, all] = [place, end].map(|e| substitute_expr(e, &first));
            let is_least = all == *end && own != *place && fold::proves(&known, BinaryOp::Ge, place, &own);
            let holds = known.simplify(&fold::compare(BinaryOp::Lt, &own, &all));
            (is_least && !holds.is_int(1)).then(|| holds.likely())
        };
        let guards = self.builder.guards(self.stage).into_iter().map(|guard| guard.condition);
        let of_elements = self.condition.iter().flat_map(|condition| unlikely(condition));
        guards.chain(of_elements.map(|e| substitute_expr(&e, &at.absolutes))).filter_map(of_first).collect()
    }

    /// Its place in the memory of the run, at those offsets of the axes.
    fn place(&self, offsets: &Values) -> Vec<Expr> {
        let places: Vec<Expr> = self.lanes.iter().map(|l| offsets[l.leaf.var()].clone()).collect();
        if places.is_empty() { vec![Expr::int(0)] } else { places }
    }

    /// Where its fields are, in that chain.
    fn elements(&self, offsets: &Values, chain: Option<&Expr>) -> Vec<Element> {
        let place = self.place(offsets);
        let element = |buffer: &Buffer| {
            let own = chain.filter(|_| buffer.shape.len() > place.len()).cloned();
            Element { buffer: buffer.clone(), indices: own.into_iter().chain(place.clone()).collect() }
        };
        self.buffers.iter().map(element).collect()
    }

    /// The chain that the loops are at.
    fn chain(&self, offsets: &Values) -> Option<Expr> {
        self.chains.as_ref().map(|chains| offsets[chains.along.leaf.var()].clone())
    }

    /// What an expression over a state and a run makes of a state and this run, all chains of which are joined.
    fn ended(&self, lambda: &Lambda, total: Vec<Expr>, offsets: &Values) -> Vec<Expr> {
        let Some(chains) = &self.chains else {
            let run = self.elements(offsets, None).into_iter().map(|e| e.buffer.at(e.indices));
            return lambda.apply(&total.into_iter().chain(run).collect::<Vec<_>>());
        };
        let of = |nth: usize| self.elements(offsets, Some(&fold::int(nth as i128, chains.along.var.dtype())));
        let all: Vec<Vec<Element>> = (0..chains.n).map(of).collect();
        let field = |(at, joined): (usize, &Joined)| {
            let each =
                all[..joined.count(chains.n)].iter().map(move |e| e[at].buffer.at(e[at].indices.clone()));
            each.collect::<Vec<_>>()
        };
        let run = chains.joined.iter().enumerate().flat_map(field);
        of_chains(lambda, &chains.joined, chains.n).apply(&total.into_iter().chain(run).collect::<Vec<_>>())
    }

    /// The state before the run.
    fn total(&self, offsets: &Values) -> Vec<Expr> {
        let stored = self.builder.results(self.stage, offsets).into_iter().zip(&self.before);
        stored.map(|(field, known)| known.clone().unwrap_or(field)).collect()
    }

    /// Whether no other run goes into the state.
    fn is_alone(&self) -> bool {
        self.before.iter().all(Option::is_some)
    }

    fn store(&self, elements: &[Element], values: &[Expr]) -> Stmt {
        store_each(&self.names, elements, values)
    }

    /// Expressions of the stage's axes where its loops are.
    fn here(&self, exprs: &[Expr]) -> Vec<Expr> {
        let absolutes = &self.builder.at(self.stage).absolutes;
        exprs.iter().map(|e| substitute_expr(e, absolutes)).collect()
    }

    /// Stores a state where the loops are, if the element takes part.
    fn stored(&self, values: &[Expr]) -> Stmt {
        let at = self.builder.at(self.stage);
        let store = self.store(&self.elements(&at.offsets, self.chain(&at.offsets).as_ref()), values);
        match self.condition {
            Some(condition) => Stmt::if_(substitute_expr(condition, &at.absolutes), store),
            None => store,
        }
    }

    /// Stores the state after one more element, by a step of a fold.
    fn stepped(&self, step: &Lambda) -> Stmt {
        let offsets = &self.builder.at(self.stage).offsets;
        let state = self.elements(offsets, self.chain(offsets).as_ref()).into_iter();
        let both = state.map(|e| e.buffer.at(e.indices)).chain(self.sources.iter().cloned());
        self.stored(&self.here(&step.apply(&both.collect::<Vec<_>>())))
    }

    /// Starts the run where all of these loops begin, else steps.
    fn start_or_step(&self, loops: &[&Loop]) -> Stmt {
        let is_zero = |l: &&Loop| fold::compare(BinaryOp::Eq, &l.var.expr(), &fold::int(0, l.var.dtype()));
        match loops.iter().map(is_zero).reduce(Expr::and) {
            Some(is_first) => Stmt::If {
                cond: is_first,
                then: Box::new(self.stored(&self.sources)),
                otherwise: Some(Box::new(self.stepped(&self.quick.step))),
            },
            None => self.stored(&self.sources),
        }
    }

    /// The loops that fold the elements.
    fn folds(&self) -> Result<Stmt, ScheduleError> {
        let (builder, stage, run_at) = (self.builder, self.stage, self.run_at);
        let along = &builder.at(stage).loops[run_at];
        let loops_from =
            |from, stores| builder.loops(stage, from, stage.leaves.len(), builder.guarded(stage, stores)?);
        let others: Vec<&Loop> = self.reduced.iter().filter(|l| l.var != along.var).copied().collect();
        let is_plain = self.reduced.len() > others.len()
            && stage.kind_of(&along.leaf) == LoopKind::Serial
            && !stage.origin(&along.leaf).data;
        if !others.is_empty() && !is_plain {
            return loops_from(run_at, self.start_or_step(&self.reduced));
        }
        let one = fold::int(1, along.var.dtype());
        let zero = FastMap::from_iter([(along.var.clone(), fold::int(0, along.var.dtype()))]);
        let first = match self.chains_inside() {
            // One that begins a vector apart from others needs no condition in it.
            Some(chains) => {
                let others: Vec<&Loop> = others.into_iter().filter(|l| l.var != chains.along.var).collect();
                let of = |nth: usize| -> Result<Stmt, ScheduleError> {
                    let at = fold::int(nth as i128, chains.along.var.dtype());
                    let start =
                        if nth == 0 { self.start_or_step(&others) } else { self.stepped(&self.quick.step) };
                    let at = FastMap::from_iter([(chains.along.var.clone(), at)]);
                    Ok(substitute_stmt(substitute_stmt(loops_from(run_at + 2, start)?, &at), &zero))
                };
                Stmt::seq((0..chains.n).map(of).collect::<Result<Vec<_>, _>>()?)
            }
            None => substitute_stmt(loops_from(run_at + 1, self.start_or_step(&others))?, &zero),
        };
        if along.is_unit() {
            return Ok(Stmt::seq([first, Stmt::NOP]));
        }
        let rest = Loop { extent: fold::sub(&along.extent, &one), ..along.clone() };
        // A loop of one iteration is not written, and its variable with it.
        let second = if rest.is_unit() { one } else { fold::add(&along.var.expr(), &one) };
        let next = FastMap::from_iter([(along.var.clone(), second)]);
        let step = substitute_stmt(loops_from(run_at + 1, self.stepped(&self.quick.step))?, &next);
        Ok(Stmt::seq([first, builder.one_loop(stage, &rest, step)?]))
    }

    /// Chains of a loop right inside that of the run which is unrolled, and at which no other stage is computed.
    fn chains_inside(&self) -> Option<&Chains<'b>> {
        let chains = self.chains.as_ref()?;
        let leaf = &chains.along.leaf;
        let is_inside = self.builder.at(self.stage).loops[self.run_at + 1].leaf == *leaf;
        let is_here =
            |s: &Stage| matches!(&s.attach, Attach::At(at, axis) if *at == self.stage.id && axis == leaf);
        let is_alone = !self.builder.schedule.stages.iter().any(|s| is_here(s));
        let is_unrolled = self.stage.kind_of(leaf) == LoopKind::Unrolled;
        (is_inside && is_alone && is_unrolled).then_some(chains)
    }

    /// `folds`, then one more walk over the elements where it is needed.
    fn walked_again(&self, rewalk: &Rewalk, folds: Stmt) -> Result<Stmt, ScheduleError> {
        let walk = self.walk(rewalk)?;
        if rewalk.is_always() {
            return Ok(Stmt::seq([folds, walk]));
        }
        // Each of several totals may need it or not; a walk in vain does no harm.
        let needed = self.asked(&rewalk.needed);
        let walk = match self.lanes_ask().then(|| any_lane(&needed, &self.lanes, None)).flatten() {
            Some((asked, stmts, needed)) => {
                let walk = Stmt::if_(needed, walk);
                Stmt::allocate(asked, Stmt::seq(stmts.into_iter().chain([walk])))
            }
            None => match any_of(&needed, &self.lanes) {
                Some(needed) => Stmt::if_(needed, walk),
                None => walk,
            },
        };
        Ok(Stmt::seq([folds, walk]))
    }

    /// One more walk over the elements, from its start.
    fn walk(&self, rewalk: &Rewalk) -> Result<Stmt, ScheduleError> {
        let (builder, stage) = (self.builder, self.stage);
        // Chains start with what they are.
        let start = match &self.chains {
            Some(_) => Stmt::NOP,
            None => builder.data_nest(stage, self.run_at, "_again", &mut |point, _| {
                let guards = builder.guards_of(stage, point, Purpose::Data);
                let started = self.ended(&rewalk.start, self.total(point.offsets), point.offsets);
                Ok(nested(likely(guards), self.store(&self.elements(point.offsets, None), &started)))
            })?,
        };
        let walk = builder.guarded(stage, self.stepped(&rewalk.step))?;
        let backwards = if rewalk.backwards { &self.reduced[..] } else { &[] };
        let walk = builder.walked(stage, self.run_at, stage.leaves.len(), walk, backwards)?;
        Ok(Stmt::seq([start, walk]))
    }

    /// The end of a run, or its elements one by one, where some total gives it up after a walk that is needed for that.
    fn unless_given_up(
        &self,
        rewalk: &Rewalk,
        gives_up: &Lambda,
        end: Stmt,
        one_by_one: &Stmt,
    ) -> Result<Stmt, ScheduleError> {
        let n_loops = self.stage.leaves.len();
        let again = self.builder.walked(self.stage, self.run_at, n_loops, one_by_one.clone(), &[])?;
        let (walk, again) = (self.rolled(self.walk(rewalk)?), self.rolled(again));
        let either = |cond: Expr| Stmt::If {
            cond,
            then: Box::new(again.clone()),
            otherwise: Some(Box::new(end.clone())),
        };
        let (needed, gives_up) = (self.asked(&rewalk.needed), self.asked(gives_up));
        if let Some((asked, asks, any)) =
            self.lanes_ask().then(|| any_lane(&needed, &self.lanes, None)).flatten()
            && let Some((_, asks_again, _)) = any_lane(&gives_up, &self.lanes, Some(&asked))
        {
            // Flags that are set say who needs the walk, and after it who is given up.
            let walk = Stmt::if_(any.clone(), Stmt::seq([walk].into_iter().chain(asks_again)));
            return Ok(Stmt::allocate(asked, Stmt::seq(asks.into_iter().chain([walk, either(any)]))));
        }
        Ok(match (any_of(&needed, &self.lanes), any_of(&gives_up, &self.lanes)) {
            (Some(needed), Some(gives_up)) => Stmt::seq([Stmt::if_(needed, walk), either(gives_up)]),
            _ => again,
        })
    }

    /// What is seldom run, with loops over elements that are not written out.
    fn rolled(&self, mut walk: Stmt) -> Stmt {
        let chains = self.chains.as_ref().map(|chains| &chains.along.var);
        let of_run: Vec<&Var> = self.reduced.iter().map(|l| &l.var).filter(|v| Some(*v) != chains).collect();
        roll(&mut walk, &of_run);
        walk
    }

    /// Whether a condition on the total and the run holds, where the loops are.
    fn asked(&self, condition: &Lambda) -> Expr {
        let offsets = &self.builder.at(self.stage).offsets;
        self.here(&self.ended(condition, self.total(offsets), offsets)).remove(0)
    }

    /// Whether states are in the lanes of vectors, which are asked together.
    fn lanes_ask(&self) -> bool {
        let last = self.lanes.last();
        last.is_some_and(|l| self.stage.kind_of(&l.leaf) == LoopKind::Vectorized)
            && self.builder.launches.of(self.builder.at(self.stage).root).is_empty()
    }

    /// What closes the run, of fields as runs keep them here.
    fn restored(&self) -> Lambda {
        let mut close = self.quick.close.clone();
        let n_state = close.params.len() - self.buffers.len();
        for counted in &self.from_begin {
            let here = Var::new("counted", self.buffers[counted.field].dtype);
            let otherwise = std::mem::replace(&mut close.params[n_state + counted.field], here.clone());
            let restored = FastMap::from_iter([(otherwise, counted.restored(&here.expr()))]);
            close.body = close.body.iter().map(|e| substitute_expr(e, &restored)).collect();
        }
        close
    }

    /// The run closed into the total.
    fn closed(&self) -> Result<Stmt, ScheduleError> {
        let (builder, stage) = (self.builder, self.stage);
        builder.data_nest(stage, self.run_at, "_close", &mut |point: &Point, _| {
            let mut closed = self.ended(&self.restored(), self.total(point.offsets), point.offsets);
            if self.is_alone() {
                closed = closed.iter().map(beside_identity).collect();
            }
            let closed: Vec<Expr> = closed.iter().map(|e| substitute_expr(e, point.absolutes)).collect();
            let guards = builder.guards_of(stage, point, Purpose::Data);
            let store = builder.store_results(stage, point.offsets, &closed);
            Ok(nested(builder.one_of_many(stage).into_iter().chain(likely(guards)), store))
        })
    }
}

/// Has loops over these variables run as loops.
fn roll(stmt: &mut Stmt, loops: &[&Var]) {
    if let Stmt::For { var, kind, .. } = stmt
        && *kind == LoopKind::Unrolled
        && loops.contains(&&*var)
    {
        *kind = LoopKind::Serial;
    }
    each_child_mut(stmt, &mut |child| roll(child, loops));
}
