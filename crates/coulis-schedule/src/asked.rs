//! Questions about states side by side: whether a condition holds of any of them.
//!
//! States in the lanes of vectors are asked together, by flags that are brought together by halves.

use coulis_ir::hash::FastMap;
use coulis_ir::visit::{for_each_expr, substitute_expr};
use coulis_ir::{BinaryOp, Buffer, DType, Expr, Lambda, LoopKind, MemScope, Node, Stmt, Var};

use crate::error::ScheduleError;
use crate::fold;
use crate::infer::Loop;
use crate::nest::Builder;
use crate::stage::Stage;
use crate::stores::{Purpose, likely, nested};

/// Most totals of a run, or vectors of them, that are asked one by one whether they need a second walk.
const MOST_ASKED: usize = 16;
/// Fewer lanes, or as many, are asked one by one.
const FEWEST_LANES: i128 = 4;
/// Lanes of a vector that are asked as they are, and their bytes: more are brought together by halves first.
const LAST_LANES: i128 = 8;
const LAST_BYTES: i128 = 32;

/// Whether a condition holds in some iteration of these loops; `None` where that is long to say.
pub(crate) fn any_of(condition: &Expr, loops: &[&Loop]) -> Option<Expr> {
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
/// memory of a few numbers, `memory` where it is given, and the condition on these.
pub(crate) fn any_lane(
    condition: &Expr,
    loops: &[&Loop],
    memory: Option<&Buffer>,
) -> Option<(Buffer, Vec<Stmt>, Expr)> {
    let (lane, others) = loops.split_last()?;
    let n_lanes = lane.extent.as_int().filter(|n| *n > FEWEST_LANES && n & (n - 1) == 0)?;
    let condition = any_of(condition, others)?;
    let dtype = memory.map_or_else(|| flag_dtype(&condition), |memory| memory.dtype);
    let own = || Buffer::new("asked", dtype, vec![lane.extent.clone()], MemScope::Local);
    let asked = memory.cloned().unwrap_or_else(own);
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
    let most = LAST_LANES.min(LAST_BYTES / asked.dtype.bytes() as i128);
    while left > most && left % 2 == 0 {
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
}
