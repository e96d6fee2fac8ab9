//! `local`: a thread folds its own registers; threads of a warp fold further by shuffles where the layout spreads what is
//! reduced over lanes.
//!
//! At thread scope each thread folds every output by itself. At warp and warpgroup scope, and in a block whose tiles have
//! several elements a thread, registers and lanes are those that the layouts name. Every thread that the destination's
//! layout names gets the result. There is no barrier, before or after.
//!
//! Source: seed 001.

use coulis_ir::{Element, ExecScope, Expr, MemScope, Stmt};

use crate::block::constant;
use crate::call::Operand;
use crate::facts::Facts;
use crate::need::{
    ALL_THREADS, ANY_ORDER, NO_LANES, Need, OLD_VALUE, SHUFFLES, SIZES, THREADS, WITHIN_BLOCK, wanted,
};
use crate::overlap::APART;
use crate::reduce::lanes::{Lanes, digit_of, mask_below};
use crate::reduce::shuffle::received;
use crate::reduce::state::State;
use crate::reduce::view::View;
use crate::reduce::walk::{affine, is_private, repeat};
use crate::reduce::{Instructions, threadwise};
use crate::rounding::Steps;
use crate::variant::{Emitted, Numerics, Refusal, Variant};

/// The variant.
pub const VARIANT: Variant = Variant {
    name: "local",
    aliases: &[],
    doc: "threads fold their registers, then lanes by shuffles where the layout spreads what is reduced",
    priority: 10,
    needs: &[
        &THREADS,
        &SCOPE,
        &REGISTERS,
        &NO_LANES,
        &THREAD_REDUCE,
        &ALL_THREADS,
        &SIZES,
        &APART,
        &LAYOUTS,
        &LAWS,
        &SHUFFLES,
    ],
    numerics: Numerics {
        flushes_where_allowed: false,
        order: "ascending registers, then lanes at doubling distances",
        longest_chain: "`registers - 1`, and `ceil(log2(lanes))` for each digit of the lanes that fold",
    },
    steps,
    inputs: &[
        (
            "scope",
            "thread: every output by the thread itself; warp, warpgroup and cta: registers first, then lanes by the layouts",
        ),
        (
            "layout",
            "strides and extents of thread axes give the shuffles: exclusive or for powers of two, halving distances \
             otherwise",
        ),
        (
            "destination's replica",
            "who gets the result: all threads that folded, some of them, the first, or an element for each",
        ),
        (
            "`thread_reduce=`",
            "`False` keeps a partial result for each lane of the destination, `True` folds those too",
        ),
        (
            "axes, slices",
            "any axes, negative ones too; parts of registers, and of threads where they are whole",
        ),
        ("`accum=True`", "the old value is combined once, after the fold"),
    ],
    emit,
};

/// One thread, a warp, a warpgroup or a block. Tiles with one element in each thread of a block are for the variants that
/// know groups of threads.
const SCOPE: Need = Need {
    name: "scope",
    doc: "One thread, a warp, a warpgroup or a block. Tiles with one element in each thread of a block are for the \
          variants that know groups of threads.",
    check: |facts| match facts.scope {
        ExecScope::Warp | ExecScope::Warpgroup | ExecScope::Cta if facts.groups.is_ok() => {
            wanted("several elements a thread, or lanes of a warp", "one element in each thread of the block")
        }
        ExecScope::Thread | ExecScope::Warp | ExecScope::Warpgroup | ExecScope::Cta => Ok(()),
        ExecScope::Cluster => (WITHIN_BLOCK.check)(facts),
    },
};

/// Operands are in registers: of one thread at thread scope, spread over threads at others.
const REGISTERS: Need = Need {
    name: "operands",
    doc: "Operands stand in registers: of one thread at thread scope, spread over threads at others.",
    check: |facts| {
        let is_thread = facts.scope == ExecScope::Thread;
        let fits = |o: &&Operand| o.scope() == MemScope::Local && o.is_spread != is_thread;
        match facts.srcs.iter().chain(&facts.dsts).find(|o| !fits(o)) {
            None => Ok(()),
            Some(other) => {
                let what = match is_thread {
                    true => "registers of one thread",
                    false => "registers with a layout over threads",
                };
                let (name, memory) = (&other.tile().name, other.scope().name());
                let spread = if other.is_spread { ", spread over threads" } else { "" };
                wanted(what, format!("`{name}` in {memory} memory{spread}"))
            }
        }
    },
};

/// A thread alone has nobody to fold with.
const THREAD_REDUCE: Need = Need {
    name: "thread_reduce",
    doc: "A thread alone has nobody to fold with.",
    check: |facts| match (facts.scope, facts.options.thread_reduce) {
        (ExecScope::Thread, Some(true)) => {
            wanted("a scope of several threads", "`thread_reduce=True` at thread scope")
        }
        _ => Ok(()),
    },
};

/// The layouts say which registers and lanes fold into which.
const LAYOUTS: Need = Need {
    name: "layouts",
    doc: "The layouts say which registers and lanes fold into which.",
    check: |facts| {
        let rests = facts.scope == ExecScope::Thread
            || facts.srcs.iter().chain(&facts.dsts).any(is_private)
            || facts.participants().is_err();
        if rests || (REGISTERS.check)(facts).is_err() || (SCOPE.check)(facts).is_err() {
            return Ok(());
        }
        match View::of(facts) {
            Ok(_) => Ok(()),
            Err(found) => wanted("results where the layouts put what they are made of", found),
        }
    },
};

/// Lanes that fold further do so out of the elements' order.
const LAWS: Need = Need {
    name: "laws",
    doc: "The reducer claims to be associative and commutative where lanes fold further, out of the elements' order; a \
          thread folds its registers in order.",
    check: |facts| match View::of(facts) {
        Ok(view) if !view.folds.is_empty() => (ANY_ORDER.check)(facts),
        _ => (OLD_VALUE.check)(facts),
    },
};

/// The combinations of a call that `local` takes.
pub(crate) fn steps(facts: &Facts) -> Result<Steps, String> {
    if facts.scope == ExecScope::Thread {
        return threadwise::steps(facts);
    }
    let view = View::of(facts)?;
    let lanes = view.folds.iter().map(|digit| Steps::tree(digit.extent.into()));
    Ok(lanes.fold(Steps::chain(view.n_elements.into()), |inner, outer| outer.over(inner)))
}

fn emit(facts: &Facts) -> Result<Emitted, Refusal> {
    match facts.scope {
        ExecScope::Thread => threadwise::emit_by(facts, Instructions::default()),
        _ => emit_by(facts, Instructions::default()),
    }
}

/// The statements for several threads, whole warps and neighbours by their instructions where there are some.
pub(crate) fn emit_by(facts: &Facts, by: Instructions) -> Result<Emitted, Refusal> {
    let view = View::of(facts).map_err(Refusal::Bug)?;
    let together = facts.participants().map_err(Refusal::Bug)?;
    let rank = together.rank(facts.block);
    let warp = facts.target.warp;
    let state = State::new(facts.reducer);
    let halves = by.halves.map_or_else(Vec::new, |by| by.registers());
    let received = by.redux.map_or_else(|| received(facts.reducer), |redux| redux.received());
    let lanes = Lanes {
        mask: mask_below(view.n_threads, &rank, warp),
        lane: rank.clone(),
        warp,
        received: &received,
        redux: by.redux,
    };
    let body = repeat("p", view.n_outputs, |p| {
        let by_pairs = by.halves.map(|by| {
            let (src, at) = (&facts.srcs[0], &view.srcs[0]);
            by.fold(&state, &halves, ("q", view.n_elements / by.lanes), |q, lane| {
                src.register.at([at.neighbour(p, &affine(q, by.lanes, &constant(0)), lane)])
            })
        });
        let one_by_one = |q: &Expr| {
            let own = facts.srcs.iter().zip(&view.srcs);
            let elements: Vec<Expr> = own.map(|(src, at)| src.register.at([at.index(p, q)])).collect();
            state.take(&elements, view.position(q, &rank))
        };
        let gather = by_pairs.unwrap_or_else(|| repeat("q", view.n_elements, one_by_one));
        let mut stmts = vec![state.clear(), gather];
        for digit in &view.folds {
            stmts.extend(lanes.fold(&state, *digit));
        }
        let places: Vec<Element> = facts
            .dsts
            .iter()
            .zip(&view.dsts)
            .map(|(dst, at)| Element {
                buffer: dst.register.clone(),
                indices: vec![at.index(p, &constant(0))],
            })
            .collect();
        let finish = state.finish_onto(&places, facts.accum);
        let holds = view.first.iter().map(|d| digit_of(&rank, *d).equal(constant(0))).reduce(Expr::and);
        stmts.push(match holds {
            Some(cond) => Stmt::if_(cond, finish),
            None => finish,
        });
        Stmt::seq(stmts)
    });
    let body = match view.n_threads == together.n_threads {
        true => body,
        false => Stmt::if_(rank.lt(constant(view.n_threads)), body),
    };
    let registers = received.iter().filter(|_| !view.folds.is_empty()).chain(&state.registers).chain(&halves);
    Ok(Emitted { registers: registers.cloned().collect(), shared: Vec::new(), body })
}
