//! Threads of a scope fold addressable tiles together, results going to memory that they share.
//!
//! The threads are `parts * rows * lanes`: `rows` outputs are folded at once, each by `lanes` neighbouring lanes of a
//! warp in `parts` sets. Lanes fold by shuffles; sets through shared memory, in one step more. Threads that are too many
//! do nothing. Where neighbouring outputs are neighbours in memory, each lane has an output of its own: then no
//! shuffles are needed, and lanes that read one row read different banks. The same goes for reducers that claim less than
//! both laws, whose elements one lane folds in order (contract N16).
//!
//! Source: seed 000, which has one set and up to 32 lanes an output whatever the number of outputs, and threads in
//! multiples of the lanes.

use coulis_ir::{Buffer, Claims, DType, Element, ExecScope, Expr, MemScope, Stmt};

use crate::block::{constant, scaled};
use crate::facts::Facts;
use crate::groups::Digit;
use crate::need::{
    ALL_THREADS, BARRIER, NO_LANES, NO_THREAD_REDUCE, Need, OLD_VALUE, ONE_WRITER, SHUFFLES, SIZES, STAGING,
    THREADS, WITHIN_BLOCK,
};
use crate::overlap::APART;
use crate::reduce::lanes::{Lanes, mask_below};
use crate::reduce::shuffle::received;
use crate::reduce::state::{State, store_all};
use crate::reduce::walk::{Walk, affine, in_lanes, moved, repeat};
use crate::reduce::{Instructions, element, shared_states, threadwise};
use crate::rounding::Steps;
use crate::variant::{Emitted, Numerics, Refusal};

/// What a fold by the threads of a scope needs, in addition to what its variant says of the operands.
pub(crate) const fn needs(operands: &'static Need) -> [&'static Need; 13] {
    [
        &THREADS,
        &WITHIN_BLOCK,
        operands,
        &NO_LANES,
        &NO_THREAD_REDUCE,
        &ALL_THREADS,
        &SIZES,
        &OLD_VALUE,
        &APART,
        &ONE_WRITER,
        &BARRIER,
        &STAGING,
        &SHUFFLES,
    ]
}

/// How such a fold rounds.
pub(crate) const NUMERICS: Numerics = Numerics {
    flushes_where_allowed: false,
    order: "each lane every so many elements or vectors ascending, then lanes at doubling distances, then warps; one \
            lane all elements ascending where the reducer claims less than both laws",
    longest_chain: "`ceil(n / (lanes * sets)) - 1 + log2(lanes)` for `n` elements; of several sets, `ceil(sets / \
                    lanes) - 1 + ceil(log2(min(sets, lanes)))` more",
};

/// Bytes of the widest vector.
const VECTOR_BYTES: u32 = 16;

/// Fewest elements for which a thread of its own is worth a second step.
const FEWEST_A_PART: u32 = 4;

/// Who folds what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Neighbouring lanes that fold an output, a power of two of at most a warp.
    pub lanes: u32,
    /// Outputs at once.
    pub rows: u32,
    /// Sets of lanes an output.
    pub parts: u32,
    /// Neighbouring elements that a lane reads at once.
    pub vector: u32,
}

impl Plan {
    /// The plan of a call for several threads, or what was found instead.
    pub fn of(facts: &Facts) -> Result<Plan, String> {
        let (walk, together) = (Walk::of(facts)?, facts.participants()?);
        let plan = Plan::of_walk(&walk, together.n_threads, facts.target.warp, facts.reducer.claims);
        let widest = facts.srcs.iter().map(|src| src.tile().dtype.bytes() as u32).max().unwrap_or(1);
        let mut vector = (VECTOR_BYTES / widest).max(1);
        // Every lane of a warp has as many whole vectors, all of one row.
        let fits = |n: u32| {
            plan.lanes == facts.target.warp
                && walk.n_elements().is_multiple_of(plan.lanes * plan.parts * n)
                && walk.has_runs_of(n)
                && facts.srcs.iter().all(|src| src.is_aligned(i64::from(n)))
        };
        while vector > 1 && !fits(vector) {
            vector /= 2;
        }
        Ok(Plan { vector, ..plan })
    }

    /// The plan for a walk by `n_threads` threads in warps of `warp` lanes, reading element by element.
    fn of_walk(walk: &Walk, n_threads: u32, warp: u32, claims: Claims) -> Plan {
        let (n_outputs, n_elements) = (walk.n_outputs().max(1), walk.n_elements().max(1));
        let most = (1 << n_threads.ilog2()).min(warp);
        let across = walk.is_last_kept() && n_outputs >= most.div_ceil(2);
        let lanes = if across || !claims.any_order() { 1 } else { n_elements.next_power_of_two().min(most) };
        let slots = n_threads / lanes;
        // Sets begin at whole warps, so that no warp has lanes of two that part ways.
        let of_a_set = u64::from(n_outputs) * u64::from(lanes);
        let is_whole = of_a_set < u64::from(warp) || of_a_set.is_multiple_of(u64::from(warp));
        let parts = if is_whole && claims.any_order() { slots / n_outputs } else { 1 };
        let parts = parts.min(n_elements / (lanes * FEWEST_A_PART)).max(1);
        match parts {
            1 => Plan {
                lanes,
                rows: slots.min(n_outputs.next_multiple_of(if lanes < warp { warp / lanes } else { 1 })),
                parts: 1,
                vector: 1,
            },
            parts => Plan { lanes, rows: n_outputs, parts, vector: 1 },
        }
    }

    /// Threads that take part.
    pub fn n_threads(&self) -> u32 {
        self.lanes * self.rows * self.parts
    }
}

/// Bytes of shared memory that the plan of a call needs for itself.
pub(crate) fn shared_bytes(facts: &Facts) -> Result<u64, String> {
    let (plan, together) = (Plan::of(facts)?, facts.participants()?);
    let slots = if plan.parts == 1 { 0 } else { plan.rows * plan.parts * together.instances.len() as u32 };
    Ok(State::bytes(facts.reducer) * u64::from(slots))
}

/// The combinations of a call.
pub(crate) fn steps(facts: &Facts) -> Result<Steps, String> {
    if facts.scope == ExecScope::Thread {
        return threadwise::steps(facts);
    }
    let (plan, n_elements) = (Plan::of(facts)?, Walk::of(facts)?.n_elements());
    let own = Steps::chain(n_elements.div_ceil(plan.lanes * plan.parts).into());
    let first = Steps::tree(plan.lanes.into()).over(own);
    let all = match plan.parts {
        1 => first,
        parts => {
            // Lanes beyond the sets have nothing, and what is combined with nothing is not rounded.
            let sets = Steps::chain(parts.div_ceil(plan.lanes).into());
            Steps::tree(parts.min(plan.lanes).into()).over(sets).over(first)
        }
    };
    Ok(Steps { elements: n_elements.into(), ..all })
}

/// The statements. Every thread of the scope passes one barrier of it after the results are stored.
pub(crate) fn emit(facts: &Facts) -> Result<Emitted, Refusal> {
    match facts.scope {
        ExecScope::Thread => threadwise::emit_by(facts, Instructions::default()),
        _ => emit_by(facts, Instructions::default()),
    }
}

/// The statements for several threads, whole warps and neighbours by their instructions where there are some.
pub(crate) fn emit_by(facts: &Facts, by: Instructions) -> Result<Emitted, Refusal> {
    let walk = Walk::of(facts).map_err(Refusal::Bug)?;
    let Fold { registers, shared, mut stmts, sync, .. } =
        fold(facts, by, &constant(0), &|state, p| state.finish_onto(&walk.outputs(facts, p), facts.accum))?;
    stmts.push(sync);
    Ok(Emitted { registers, shared, body: Stmt::seq(stmts) })
}

/// A fold by the threads of a scope, up to what becomes of the totals.
pub(crate) struct Fold<'a> {
    /// The state that holds a total where it is complete.
    pub state: State<'a>,
    /// Registers to declare.
    pub registers: Vec<Buffer>,
    /// Shared memory that it uses.
    pub shared: Vec<Buffer>,
    /// The statements, without a barrier at the end.
    pub stmts: Vec<Stmt>,
    /// The barrier of the scope.
    pub sync: Stmt,
}

/// The fold. The first element is at position `begin` of its group; what one thread does with the total of
/// output `p` when it is complete is `close`.
pub(crate) fn fold<'a>(
    facts: &Facts<'a>,
    by: Instructions,
    begin: &Expr,
    close: &dyn Fn(&State, &Expr) -> Stmt,
) -> Result<Fold<'a>, Refusal> {
    let bug = Refusal::Bug;
    let (walk, together) = (Walk::of(facts).map_err(bug)?, facts.participants().map_err(bug)?);
    let warp = facts.target.warp;
    let plan = Plan::of(facts).map_err(bug)?;
    let rank = together.rank(facts.block);
    let (sync, inner) = (facts.sync().map_err(bug)?, facts.block_sync().map_err(bug)?);
    let state = State::new(facts.reducer);
    let received = by.redux.map_or_else(|| received(facts.reducer), |redux| redux.received());
    let Plan { lanes, rows, parts, vector } = plan;
    let (lane, slot) = (low(&rank, lanes, together.n_threads), high(&rank, lanes));
    let (row, part) = match parts {
        1 => (slot.clone(), constant(0)),
        _ => (slot.clone().floormod(constant(rows)), slot.clone().floordiv(constant(rows))),
    };
    let fold = |n_threads: u32| -> Vec<Stmt> {
        let mask = mask_below(n_threads, &rank, warp);
        let together = Lanes { mask, lane: rank.clone(), warp, received: &received, redux: by.redux };
        together.fold(&state, Digit { extent: lanes, stride: 1 })
    };
    let by_first_lane = |stmt: Stmt| match lanes {
        1 => stmt,
        _ => Stmt::if_(lane.clone().equal(constant(0)), stmt),
    };
    let below = |index: &Expr, n: u32, is_sure: bool, stmt: Stmt| match is_sure {
        true => stmt,
        false => Stmt::if_(index.clone().lt(constant(n)), stmt),
    };

    let (n_outputs, n_elements) = (walk.n_outputs(), walk.n_elements());
    let halves = by.halves.map_or_else(Vec::new, |by| by.registers());
    let vectors: Vec<Buffer> = match (vector, by.halves) {
        (1, _) | (_, Some(_)) => Vec::new(),
        (n, None) => facts
            .srcs
            .iter()
            .map(|src| Buffer::new("vector", src.tile().dtype, vec![constant(n)], MemScope::Local))
            .collect(),
    };
    let staging = match parts {
        1 => Vec::new(),
        _ => shared_states("red_staging", facts.reducer, rows * parts * together.instances.len() as u32),
    };
    // Every instance that may come has states of its own.
    let base = match &together.instances[..] {
        [_] => constant(0),
        all => {
            let number = together.number(facts.block);
            let place = all.iter().enumerate().rev().map(|(at, instance)| (at as u32, *instance));
            place.fold(constant(0), |rest, (at, instance)| match at {
                0 => rest,
                _ => Expr::select(number.clone().equal(constant(instance)), constant(at), rest),
            })
        }
    };
    let staged = |slot: &Expr| affine(&base, rows * parts, slot);
    let at = |index: &Expr| -> Vec<Element> { staging.iter().map(|b: &Buffer| element(b, index)).collect() };

    let first = repeat("step", n_outputs.div_ceil(rows), |step| {
        let p = affine(step, rows, &row);
        let steps = n_elements.div_ceil(lanes * parts * vector);
        let by_pairs = by.halves.map(|by| {
            by.fold(&state, &halves, ("t", steps), |t, v| {
                let q = affine(&affine(&affine(t, parts, &part), lanes, &lane), vector, &constant(0));
                facts.srcs[0].value(&moved(walk.coords(&p, &q), v))
            })
        });
        let one_by_one = |t: &Expr| {
            if vector > 1 {
                let q = affine(&affine(&affine(t, parts, &part), lanes, &lane), vector, &constant(0));
                return take_vector(facts, &walk, &state, &vectors, [&p, &q, begin]);
            }
            let q = affine(&affine(t, parts, &part), lanes, &lane);
            let position = affine(&q, 1, begin).cast(DType::I64);
            let take = state.take(&walk.elements(facts, &p, &q), position);
            below(&q, n_elements, n_elements.is_multiple_of(lanes * parts), take)
        };
        let gather = by_pairs.unwrap_or_else(|| repeat("t", steps, one_by_one));
        let is_sure = n_outputs.is_multiple_of(rows);
        let mut stmts = vec![state.clear(), below(&p, n_outputs, is_sure, gather)];
        stmts.extend(fold(plan.n_threads()));
        stmts.push(by_first_lane(match parts {
            1 => below(&p, n_outputs, is_sure, close(&state, &p)),
            _ => store_all(&at(&staged(&slot)), state.values()),
        }));
        Stmt::seq(stmts)
    });
    let mut body = vec![below(&rank, plan.n_threads(), plan.n_threads() == together.n_threads, first)];
    if parts > 1 {
        body.push(inner);
        let gather = repeat("t", parts.div_ceil(lanes), |t| {
            let j = affine(t, lanes, &lane);
            let from = staged(&affine(&j, rows, &row));
            let states: Vec<Expr> = staging.iter().map(|b| b.at([from.clone()])).collect();
            below(&j, parts, parts.is_multiple_of(lanes), state.merge(&states))
        });
        let mut second = vec![state.clear(), gather];
        second.extend(fold(rows * lanes));
        second.push(by_first_lane(close(&state, &row)));
        body.push(Stmt::if_(rank.clone().lt(constant(rows * lanes)), Stmt::seq(second)));
    }
    let registers = received
        .iter()
        .filter(|_| lanes > 1)
        .chain(&state.registers)
        .chain(&vectors)
        .chain(&halves)
        .cloned()
        .collect();
    Ok(Fold { state, registers, shared: staging, stmts: body, sync })
}

/// Reads elements `q` and on of output `p`, one vector of each source, and takes them in one after another; the first of
/// them is at position `begin + q`.
fn take_vector(
    facts: &Facts,
    walk: &Walk,
    state: &State,
    vectors: &[Buffer],
    [p, q, begin]: [&Expr; 3],
) -> Stmt {
    let Some(n) = vectors.first().and_then(|v| v.shape[0].as_int()).and_then(|n| u32::try_from(n).ok())
    else {
        return Stmt::NOP;
    };
    let coords = walk.coords(p, q);
    let mut stmts = Vec::new();
    for (src, to) in facts.srcs.iter().zip(vectors) {
        stmts.push(in_lanes(n, |v| Stmt::store(to, [v.clone()], src.value(&moved(coords.clone(), v)))));
    }
    for at in 0..n {
        let elements: Vec<Expr> = vectors.iter().map(|v| v.at([constant(at)])).collect();
        let position = affine(&affine(q, 1, &constant(at)), 1, begin).cast(DType::I64);
        stmts.push(state.take(&elements, position));
    }
    Stmt::seq(stmts)
}

/// `rank % lanes`.
fn low(rank: &Expr, lanes: u32, n_threads: u32) -> Expr {
    match lanes {
        1 => constant(0),
        n if n == n_threads => rank.clone(),
        n => rank.clone().floormod(constant(n)),
    }
}

/// `rank // lanes`.
fn high(rank: &Expr, lanes: u32) -> Expr {
    match lanes {
        1 => scaled(rank.clone(), 1),
        n => rank.clone().floordiv(constant(n)),
    }
}
