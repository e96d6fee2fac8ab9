//! Short runs of a reduction: memory of their own, their start, the loop that folds one, and its end in the total.
//!
//! The first element of a run starts it, the others step, so that a step may count on an element before it. The first
//! iteration of the run's loop is written by itself; a condition on the loops in it tells the first element, and goes
//! where they are unrolled, as one on all loops does where the run's own is unrolled. Source: contract N12.

use coulis_ir::hash::FastMap;

use coulis_ir::visit::{for_each_expr, substitute_expr, substitute_stmt, uses_any};
use coulis_ir::{
    BinaryOp, Buffer, DType, Expr, Intrinsic, Lambda, LoopKind, MemScope, Node, Rewalk, Stmt, Var,
};
use coulis_tensor::{QuickFold, Reduction};

use crate::error::ScheduleError;
use crate::fold;
use crate::from_begin::FromBegin;
use crate::infer::Loop;
use crate::nest::Builder;
use crate::schedule::Values;
use crate::stage::Stage;
use crate::stores::{Point, Purpose, likely, nested, output_names, store_all};

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
    };
    let rewalks = quick.rewalks.iter().map(of_walk).collect();
    let (step, close) = (of_both(&quick.step), of_run(&quick.close, &quick.close.body));
    let (identity, sources) = (pick(&quick.identity), pick(&quick.sources));
    let (max_steps, spoilt) = (quick.max_steps, quick.spoilt.clone());
    (QuickFold { identity, sources, step, close, max_steps, rewalks, spoilt }, kept)
}

/// Most totals of a run, or vectors of them, that are asked one by one whether they need a second walk.
const MOST_ASKED: usize = 16;
/// Lanes of a vector that are brought together one by one.
const LAST_LANES: i128 = 4;

/// Whether a condition holds in some iteration of these loops; `None` where that is long to say.
fn any_of(condition: &Expr, loops: &[&Loop]) -> Option<Expr> {
    let mut each = vec![condition.clone()];
    for l in loops {
        let extent = usize::try_from(l.extent.as_int()?).ok()?;
        if each.len().saturating_mul(extent) > MOST_ASKED {
            return None;
        }
        let at = |i: usize| FastMap::from_iter([(l.var.clone(), fold::int(i as i128, l.var.dtype()))]);
        each = each.iter().flat_map(|e| (0..extent).map(move |i| substitute_expr(e, &at(i)))).collect();
    }
    each.into_iter().reduce(Expr::or)
}

/// The same where the last of the loops is over the lanes of vectors: statements that bring the lanes together by halves in
/// memory of a few numbers, and the condition on these.
fn any_lane(condition: &Expr, loops: &[&Loop]) -> Option<(Buffer, Vec<Stmt>, Expr)> {
    let (lane, others) = loops.split_last()?;
    let n_lanes = lane.extent.as_int().filter(|n| *n > LAST_LANES && n & (n - 1) == 0)?;
    let condition = any_of(condition, others)?;
    let dtype = flag_dtype(&condition);
    let asked = Buffer::new("asked", dtype, vec![lane.extent.clone()], MemScope::Local);
    let asks = by_lanes(&asked, &lane.var, n_lanes, &|l| {
        flag(substitute_expr(&condition, &FastMap::from_iter([(lane.var.clone(), l.clone())])), dtype)
    });
    let (folds, any) = any_set(&asked, &lane.var, n_lanes)?;
    Some((asked, [asks].into_iter().chain(folds).collect(), any))
}

/// The type of flags that are as wide as what a condition reads, at most 32 bits.
fn flag_dtype(condition: &Expr) -> DType {
    let mut bytes = 1;
    for_each_expr(condition, &mut |e: &Expr| {
        if matches!(e.node(), Node::Load(..)) {
            bytes = bytes.max(e.dtype().bytes());
        }
    });
    match bytes {
        1 => DType::I8,
        2 => DType::I16,
        _ => DType::I32,
    }
}

/// The type of flags that are as wide as the fields of the states that a condition is of.
pub(crate) fn flags_of(condition: &Lambda) -> DType {
    match condition.params.iter().map(|p| p.dtype().bytes()).max() {
        Some(1) => DType::I8,
        Some(2) => DType::I16,
        Some(8) => DType::I64,
        _ => DType::I32,
    }
}

/// 1 where the condition holds, else 0.
fn flag(condition: Expr, dtype: DType) -> Expr {
    Expr::select(condition, Expr::int_of(1, dtype), Expr::int_of(0, dtype))
}

/// Stores a value of each lane into the first `n_lanes` places.
fn by_lanes(asked: &Buffer, lane: &Var, n_lanes: i128, value: &dyn Fn(&Expr) -> Expr) -> Stmt {
    let var = lane.renamed(&format!("{}_asked", lane.name()));
    let store = Stmt::store(asked, vec![var.expr()], value(&var.expr()));
    let (first, n) = (fold::int(0, lane.dtype()), fold::int(n_lanes, lane.dtype()));
    Stmt::for_(var, first, n, LoopKind::Vectorized, store)
}

/// Statements that bring flags together by halves, and whether any was set; `None` where there are many that have no half.
fn any_set(asked: &Buffer, lane: &Var, n_lanes: i128) -> Option<(Vec<Stmt>, Expr)> {
    let at = |place: &Expr| Expr::load(asked.clone(), vec![place.clone()]);
    let mut stmts = Vec::new();
    let mut left = n_lanes;
    while left > LAST_LANES && left % 2 == 0 {
        left /= 2;
        let half = fold::int(left, lane.dtype());
        let or = |l: &Expr| Expr::binary(BinaryOp::BitOr, at(l), at(&fold::add(l, &half)));
        stmts.push(by_lanes(asked, lane, left, &or));
    }
    let last = (0..left).filter(|_| left <= MOST_ASKED as i128).map(|i| at(&fold::int(i, lane.dtype())));
    let any = last.reduce(|a, b| Expr::binary(BinaryOp::BitOr, a, b))?;
    Some((stmts, any.not_equal(Expr::int_of(0, asked.dtype))))
}

/// What asks states whether a condition holds of any.
pub(crate) struct Asked {
    memory: Buffer,
    asks: Vec<Stmt>,
    any: Expr,
}

impl Asked {
    /// Asks, then does what `of` makes of the answer.
    pub(crate) fn then(self, of: impl FnOnce(Expr) -> Stmt) -> Stmt {
        let then = of(self.any);
        Stmt::allocate(self.memory, Stmt::seq(self.asks.into_iter().chain([then])))
    }
}

impl Builder<'_> {
    /// The fold in runs, then `again`, which is the fold from its start without runs, where some state is
    /// spoilt. `None` where states are not asked: those of threads, and those in the lanes of vectors that
    /// have no half.
    pub(crate) fn unless_spoilt(
        &self,
        stage: &Stage,
        spoilt: &Lambda,
        common: usize,
        in_runs: Stmt,
        again: Stmt,
    ) -> Result<Option<Stmt>, ScheduleError> {
        let dtype =
            if spoilt.params.iter().any(|p| p.dtype().bytes() == 8) { DType::I64 } else { DType::I32 };
        let asked = self.any_state(stage, common, (spoilt, dtype), "_spoilt")?;
        Ok(asked.map(|asked| Stmt::seq([in_runs, asked.then(|any| Stmt::if_(any, again))])))
    }

    /// Whether a condition holds of any state of the loops at `common` and after, by flags of that type. `None` where states
    /// are not asked: those of threads, and those in the lanes of vectors that have no half.
    pub(crate) fn any_state(
        &self,
        stage: &Stage,
        common: usize,
        (condition, dtype): (&Lambda, DType),
        suffix: &str,
    ) -> Result<Option<Asked>, ScheduleError> {
        let at = self.at(stage);
        let mut data = at.loops[common..].iter().filter(|l| stage.origin(&l.leaf).data && !l.is_unit());
        let lane = data.next_back().filter(|l| stage.kind_of(&l.leaf) == LoopKind::Vectorized);
        let n_lanes = lane.map_or(Some(1), |l| l.extent.as_int());
        let (Some(n_lanes), true) = (n_lanes, self.launches.of(at.root).is_empty()) else { return Ok(None) };
        let place = lane.map_or_else(|| Var::new("lane", DType::I64), |l| l.var.clone());
        let asked = Buffer::new("asked", dtype, vec![fold::int(n_lanes, place.dtype())], MemScope::Local);
        let Some((folds, any)) = any_set(&asked, &place, n_lanes) else { return Ok(None) };
        let asks = self.data_nest(stage, common, suffix, &mut |point, loops| {
            let own = loops.last().filter(|_| lane.is_some());
            let own = vec![own.map_or_else(|| fold::int(0, place.dtype()), |l| l.var.expr())];
            let state = self.results(stage, point.offsets);
            let here = flag(condition.apply(&state).remove(0), dtype);
            let both = Expr::binary(BinaryOp::BitOr, asked.at(own.clone()), here);
            let guards = self.guards_of(stage, point, Purpose::Data);
            Ok(nested(likely(guards), Stmt::store(&asked, own, both)))
        })?;
        let none = by_lanes(&asked, &place, n_lanes, &|_| Expr::int_of(0, dtype));
        let asks = [none, asks].into_iter().chain(folds).collect();
        Ok(Some(Asked { memory: asked, asks, any }))
    }

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

    /// Fields of the state that only count steps, where each run has as many and all runs of a state come one
    /// after another: what they are before a run, by the loops around it. A field that is read so is no
    /// longer waited for, and is the same in all lanes.
    fn counts_before(
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
        let are_known = r.init.is_empty()
            && self.launches.of(at.root).is_empty()
            && around.iter().all(is_in_order)
            && self.is_all_or_nothing(stage, &around)?;
        if !are_known {
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

    /// One run: the loop at `run_at` and those in it, between its start and its end.
    pub(crate) fn run(
        &self,
        stage: &Stage,
        r: &Reduction,
        quick: &QuickFold,
        run_at: usize,
    ) -> Result<Stmt, ScheduleError> {
        Run::new(self, stage, r, quick, run_at)?.built()
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
    names: Vec<String>,
    buffers: Vec<Buffer>,
    /// What is folded, one a field.
    sources: Vec<Expr>,
    from_begin: Vec<FromBegin>,
    /// Fields of the total that are known before the run.
    before: Vec<Option<Expr>>,
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
            builder.counts_before(stage, r, &quick.close, run_at)?
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
        let memory = |(start, name): (&Expr, &String)| {
            Buffer::new(&format!("{name}_run"), start.dtype(), shape.clone(), MemScope::Local)
        };
        let buffers: Vec<Buffer> = quick.identity.iter().zip(&names).map(memory).collect();
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
            names,
            buffers,
            sources,
            from_begin,
            before,
        })
    }

    fn built(self) -> Result<Stmt, ScheduleError> {
        let mut folds = self.folds()?;
        for rewalk in &self.quick.rewalks {
            folds = self.walked_again(rewalk, folds)?;
        }
        let start = self.builder.data_nest(self.stage, self.run_at, "_run", &mut |point, _| {
            Ok(self.store(point.offsets, &self.quick.identity))
        })?;
        let body = Stmt::seq([start, folds, self.closed()?]);
        Ok(self.buffers.into_iter().rev().fold(body, |body, buffer| Stmt::allocate(buffer, body)))
    }

    /// Its place in the memory of the run, at those offsets of the axes.
    fn place(&self, offsets: &Values) -> Vec<Expr> {
        let places: Vec<Expr> = self.lanes.iter().map(|l| offsets[l.leaf.var()].clone()).collect();
        if places.is_empty() { vec![Expr::int(0)] } else { places }
    }

    fn state(&self, offsets: &Values) -> Vec<Expr> {
        let place = self.place(offsets);
        self.buffers.iter().map(|b| b.at(place.clone())).collect()
    }

    fn total(&self, offsets: &Values) -> Vec<Expr> {
        self.builder.results(self.stage, offsets)
    }

    fn store(&self, offsets: &Values, values: &[Expr]) -> Stmt {
        store_all(&self.names, &self.buffers, &self.place(offsets), values)
    }

    /// Expressions of the stage's axes where its loops are.
    fn here(&self, exprs: &[Expr]) -> Vec<Expr> {
        let absolutes = &self.builder.at(self.stage).absolutes;
        exprs.iter().map(|e| substitute_expr(e, absolutes)).collect()
    }

    /// Stores a state where the loops are, if the element takes part.
    fn stored(&self, values: &[Expr]) -> Stmt {
        let at = self.builder.at(self.stage);
        let store = self.store(&at.offsets, values);
        match self.condition {
            Some(condition) => Stmt::if_(substitute_expr(condition, &at.absolutes), store),
            None => store,
        }
    }

    /// Stores the state after one more element, by a step of a fold.
    fn stepped(&self, step: &Lambda) -> Stmt {
        let state = self.state(&self.builder.at(self.stage).offsets);
        self.stored(&self.here(&step.apply(&[&state[..], &self.sources].concat())))
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
        let first = substitute_stmt(loops_from(run_at + 1, self.start_or_step(&others))?, &zero);
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

    /// `folds`, then one more walk over the elements where it is needed.
    fn walked_again(&self, rewalk: &Rewalk, folds: Stmt) -> Result<Stmt, ScheduleError> {
        let (builder, stage, at) = (self.builder, self.stage, self.builder.at(self.stage));
        let both = |offsets: &Values| [self.total(offsets), self.state(offsets)].concat();
        let needed = self.here(&rewalk.needed.apply(&both(&at.offsets))).remove(0);
        let start = builder.data_nest(stage, self.run_at, "_again", &mut |point, _| {
            let guards = builder.guards_of(stage, point, Purpose::Data);
            let started = rewalk.start.apply(&both(point.offsets));
            Ok(nested(likely(guards), self.store(point.offsets, &started)))
        })?;
        let walk = builder.guarded(stage, self.stepped(&rewalk.step))?;
        let backwards = if rewalk.backwards { &self.reduced[..] } else { &[] };
        let walk = builder.walked(stage, self.run_at, stage.leaves.len(), walk, backwards)?;
        let walk = Stmt::seq([start, walk]);
        if needed.as_int() == Some(1) {
            return Ok(Stmt::seq([folds, walk]));
        }
        // Each of several totals may need it or not; a walk in vain does no harm.
        let by_lanes = self.lanes.last().is_some_and(|l| stage.kind_of(&l.leaf) == LoopKind::Vectorized)
            && builder.launches.of(at.root).is_empty();
        let walk = match by_lanes.then(|| any_lane(&needed, &self.lanes)).flatten() {
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

    /// The run closed into the total.
    fn closed(&self) -> Result<Stmt, ScheduleError> {
        let (builder, stage) = (self.builder, self.stage);
        builder.data_nest(stage, self.run_at, "_close", &mut |point: &Point, _| {
            let totals = self.total(point.offsets).into_iter().zip(&self.before);
            let total = totals.map(|(total, known)| known.clone().unwrap_or(total));
            let mut state = self.state(point.offsets);
            for counted in &self.from_begin {
                state[counted.field] = counted.restored(&state[counted.field]);
            }
            let closed = self.quick.close.apply(&total.chain(state).collect::<Vec<_>>());
            let closed: Vec<Expr> = closed.iter().map(|e| substitute_expr(e, point.absolutes)).collect();
            let guards = builder.guards_of(stage, point, Purpose::Data);
            let store = builder.store_results(stage, point.offsets, &closed);
            Ok(nested(builder.one_of_many(stage).into_iter().chain(likely(guards)), store))
        })
    }
}
