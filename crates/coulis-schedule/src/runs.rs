//! Short runs of a reduction: memory of their own, their start, the loop that folds one, and its end in the total.
//!
//! The first element of a run starts it, the others step, so that a step may count on an element before it. The first
//! iteration of the run's loop is written by itself; a condition on the loops in it tells the first element, and goes
//! where they are unrolled, as one on all loops does where the run's own is unrolled. Source: contract N12.

use coulis_ir::hash::FastMap;

use coulis_ir::visit::{substitute_expr, substitute_stmt, uses_any};
use coulis_ir::{
    BinaryOp, Buffer, DType, Expr, Intrinsic, Lambda, LoopKind, MemScope, Node, Rewalk, Stmt, Var,
};
use coulis_tensor::{QuickFold, Reduction};

use crate::error::ScheduleError;
use crate::fold;
use crate::infer::Loop;
use crate::nest::Builder;
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
    let asked = Buffer::new("asked", DType::I32, vec![lane.extent.clone()], MemScope::Local);
    let asks = by_lanes(&asked, &lane.var, n_lanes, &|l| {
        flag(substitute_expr(&condition, &FastMap::from_iter([(lane.var.clone(), l.clone())])), DType::I32)
    });
    let (folds, any) = any_set(&asked, &lane.var, n_lanes)?;
    Some((asked, [asks].into_iter().chain(folds).collect(), any))
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
        let at = self.at(stage);
        let mut data = at.loops[common..].iter().filter(|l| stage.origin(&l.leaf).data && !l.is_unit());
        let lane = data.next_back().filter(|l| stage.kind_of(&l.leaf) == LoopKind::Vectorized);
        let n_lanes = lane.map_or(Some(1), |l| l.extent.as_int());
        let (Some(n_lanes), true) = (n_lanes, self.launches.of(at.root).is_empty()) else { return Ok(None) };
        let dtype =
            if spoilt.params.iter().any(|p| p.dtype().bytes() == 8) { DType::I64 } else { DType::I32 };
        let place = lane.map_or_else(|| Var::new("lane", DType::I64), |l| l.var.clone());
        let asked = Buffer::new("asked", dtype, vec![fold::int(n_lanes, place.dtype())], MemScope::Local);
        let Some((folds, any)) = any_set(&asked, &place, n_lanes) else { return Ok(None) };
        let asks = self.data_nest(stage, common, "_spoilt", &mut |point, loops| {
            let own = loops.last().filter(|_| lane.is_some());
            let own = vec![own.map_or_else(|| fold::int(0, place.dtype()), |l| l.var.expr())];
            let state = self.results(stage, point.offsets);
            let here = flag(spoilt.apply(&state).remove(0), dtype);
            let both = Expr::binary(BinaryOp::BitOr, asked.at(own.clone()), here);
            let guards = self.guards_of(stage, point, Purpose::Data);
            Ok(nested(likely(guards), Stmt::store(&asked, own, both)))
        })?;
        let none = by_lanes(&asked, &place, n_lanes, &|_| Expr::int_of(0, dtype));
        let asked_then = [none, asks].into_iter().chain(folds).chain([Stmt::if_(any, again)]);
        Ok(Some(Stmt::seq([in_runs, Stmt::allocate(asked, Stmt::seq(asked_then))])))
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
        let at = self.at(stage);
        let sub = |exprs: &[Expr]| -> Vec<Expr> {
            exprs.iter().map(|e| substitute_expr(e, &at.absolutes)).collect()
        };
        let along = &at.loops[run_at];
        let reduced: Vec<&Loop> = (at.loops[run_at..].iter())
            .filter(|l| !l.is_unit() && l.launched().is_none() && stage.origin(&l.leaf).reduce)
            .collect();
        let is_whole = r.condition.is_none() && self.is_all_or_nothing(stage, &reduced)?;
        let n_steps = reduced.iter().map(|l| l.extent.as_int()).product::<Option<i128>>();
        let (quick, kept) = match n_steps.filter(|_| is_whole) {
            Some(n_steps) => counted(quick, n_steps),
            None => (quick.clone(), (0..quick.identity.len()).collect()),
        };
        let before = if is_whole {
            self.counts_before(stage, r, &quick.close, run_at)?
        } else {
            vec![None; r.identity.len()]
        };
        // One state of a run for each iteration of the data loops in it; threads have their own.
        let lanes: Vec<&Loop> = (at.loops[run_at..].iter())
            .filter(|l| !l.is_unit() && l.launched().is_none() && stage.origin(&l.leaf).data)
            .collect();
        let mut shape: Vec<Expr> = lanes.iter().map(|l| l.extent.clone()).collect();
        if shape.is_empty() {
            shape.push(Expr::int(1));
        }
        let place = |offsets: &crate::schedule::Values| -> Vec<Expr> {
            let places: Vec<Expr> = lanes.iter().map(|l| offsets[l.leaf.var()].clone()).collect();
            if places.is_empty() { vec![Expr::int(0)] } else { places }
        };
        let names = output_names(stage);
        let run_names: Vec<String> = (kept.into_iter())
            .map(|i| names.get(i).cloned().unwrap_or_else(|| format!("{}_{i}", names[0])))
            .collect();
        let buffers: Vec<Buffer> = (quick.identity.iter().zip(&run_names))
            .map(|(start, name)| {
                Buffer::new(&format!("{name}_run"), start.dtype(), shape.clone(), MemScope::Local)
            })
            .collect();
        let places = place(&at.offsets);
        let state = buffers.iter().map(|b| b.at(places.clone()));
        let from_begin = self.counted_from_begin(stage, &quick, &reduced, &lanes);
        let mut sources = sub(&quick.sources);
        from_begin.iter().for_each(|counted| sources[counted.field] = counted.source.clone());
        let stepped = quick.step.apply(&state.chain(sources.iter().cloned()).collect::<Vec<_>>());
        let stored = |values: &[Expr]| -> Stmt {
            let store = store_all(&run_names, &buffers, &places, values);
            match &r.condition {
                Some(condition) => Stmt::if_(substitute_expr(condition, &at.absolutes), store),
                None => store,
            }
        };
        let inside = |stores: Stmt| -> Result<Stmt, ScheduleError> {
            self.loops(stage, run_at + 1, stage.leaves.len(), self.guarded(stage, stores)?)
        };
        // Starts the run where all of these loops begin, else steps.
        let start_or_step = |loops: &[&Loop]| -> Stmt {
            let is_zero =
                |l: &&Loop| fold::compare(BinaryOp::Eq, &l.var.expr(), &fold::int(0, l.var.dtype()));
            match loops.iter().map(is_zero).reduce(Expr::and) {
                Some(is_first) => Stmt::If {
                    cond: is_first,
                    then: Box::new(stored(&sources)),
                    otherwise: Some(Box::new(stored(&sub(&stepped)))),
                },
                None => stored(&sources),
            }
        };
        let others: Vec<&Loop> = reduced.iter().filter(|l| l.var != along.var).copied().collect();
        let is_plain = reduced.len() > others.len()
            && stage.kind_of(&along.leaf) == LoopKind::Serial
            && !stage.origin(&along.leaf).data;
        let folds = if others.is_empty() || is_plain {
            let one = fold::int(1, along.var.dtype());
            let zero = FastMap::from_iter([(along.var.clone(), fold::int(0, along.var.dtype()))]);
            let first = substitute_stmt(inside(start_or_step(&others))?, &zero);
            let steps = if along.is_unit() {
                Stmt::NOP
            } else {
                let rest = Loop { extent: fold::sub(&along.extent, &one), ..along.clone() };
                // A loop of one iteration is not written, and its variable with it.
                let second = if rest.is_unit() { one } else { fold::add(&along.var.expr(), &one) };
                let next = FastMap::from_iter([(along.var.clone(), second)]);
                self.one_loop(stage, &rest, substitute_stmt(inside(stored(&sub(&stepped)))?, &next))?
            };
            Stmt::seq([first, steps])
        } else {
            self.loops(stage, run_at, stage.leaves.len(), self.guarded(stage, start_or_step(&reduced))?)?
        };
        let mut folds = folds;
        for rewalk in &quick.rewalks {
            let totals = self.results(stage, &at.offsets).into_iter();
            let runs = buffers.iter().map(|b| b.at(places.clone()));
            let both: Vec<Expr> = totals.chain(runs.clone()).collect();
            let needed = sub(&rewalk.needed.apply(&both)).remove(0);
            let start = self.data_nest(stage, run_at, "_again", &mut |point, _| {
                let totals = self.results(stage, point.offsets).into_iter();
                let runs = buffers.iter().map(|b| b.at(place(point.offsets)));
                let started = rewalk.start.apply(&totals.chain(runs).collect::<Vec<_>>());
                let guards = self.guards_of(stage, point, Purpose::Data);
                Ok(nested(likely(guards), store_all(&run_names, &buffers, &place(point.offsets), &started)))
            })?;
            let by_lanes = lanes.last().is_some_and(|l| stage.kind_of(&l.leaf) == LoopKind::Vectorized)
                && self.launches.of(at.root).is_empty();
            let came = rewalk.step.apply(&runs.chain(sources.iter().cloned()).collect::<Vec<_>>());
            let walk = self.guarded(stage, stored(&sub(&came)))?;
            let backwards = if rewalk.backwards { &reduced[..] } else { &[] };
            let walk = Stmt::seq([start, self.walked(stage, run_at, stage.leaves.len(), walk, backwards)?]);
            // Each of several totals may need it or not; a walk in vain does no harm.
            folds = if needed.as_int() == Some(1) {
                Stmt::seq([folds, walk])
            } else if let Some((asked, stmts, needed)) = by_lanes.then(|| any_lane(&needed, &lanes)).flatten()
            {
                let walk = Stmt::if_(needed, walk);
                Stmt::seq([folds, Stmt::allocate(asked, Stmt::seq(stmts.into_iter().chain([walk])))])
            } else if let Some(needed) = any_of(&needed, &lanes) {
                Stmt::seq([folds, Stmt::if_(needed, walk)])
            } else {
                Stmt::seq([folds, walk])
            };
        }
        let start = self.data_nest(stage, run_at, "_run", &mut |point, _| {
            Ok(store_all(&run_names, &buffers, &place(point.offsets), &quick.identity))
        })?;
        let close = self.data_nest(stage, run_at, "_close", &mut |point: &Point, _| {
            let totals = self.results(stage, point.offsets).into_iter().zip(&before);
            let total = totals.map(|(stored, known)| known.clone().unwrap_or(stored));
            let mut runs: Vec<Expr> = buffers.iter().map(|b| b.at(place(point.offsets))).collect();
            for counted in &from_begin {
                runs[counted.field] = counted.restored(&runs[counted.field]);
            }
            let closed = quick.close.apply(&total.chain(runs).collect::<Vec<_>>());
            let closed: Vec<Expr> = closed.iter().map(|e| substitute_expr(e, point.absolutes)).collect();
            let guards = self.guards_of(stage, point, Purpose::Data);
            let store = self.store_results(stage, point.offsets, &closed);
            Ok(nested(self.one_of_many(stage).into_iter().chain(likely(guards)), store))
        })?;
        let body = Stmt::seq([start, folds, close]);
        Ok(buffers.into_iter().rev().fold(body, |body, buffer| Stmt::allocate(buffer, body)))
    }
}
