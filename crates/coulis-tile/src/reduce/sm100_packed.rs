//! `sm100_packed`: one thread folds `float32` registers two sums or three extrema an instruction.
//!
//! Sums keep eight partial sums, chunk by chunk of eight elements, and add pairs at once; what is left over
//! is added to the first; three additions of pairs and one of two numbers end it. Extrema keep four, each of
//! which takes in two elements at once. `sm_100a` and `sm_103a` have both instructions; other machines split
//! them, and `local` does as well there. Packed sums flush subnormal numbers exactly where the call says
//! `ftz=True`; extrema keep NaN.
//!
//! Source: seed 002; the association of a sum is the seed's: element `i` goes to lane `i % 8`, then ((0+2)+(4+6)) +
//! ((1+3)+(5+7)), the destination's old value and leftovers to lane 0.

use coulis_ir::{
    BinaryOp, Buffer, DType, ExecScope, Expr, Intrinsic, MemScope, Reducer, Stmt, TargetKind, Var,
};

use crate::block::constant;
use crate::facts::{Facts, finishes_nothing};
use crate::need::{ANY_ORDER, NO_LANES, NO_THREAD_REDUCE, Need, SIZES, wanted};
use crate::overlap::APART;
use crate::reduce::state::lifts_nothing;
use crate::reduce::walk::{Walk, affine, in_lanes, is_private, repeat};
use crate::rounding::Steps;
use crate::variant::{Emitted, Numerics, Refusal, Variant};

/// The variant.
pub const VARIANT: Variant = Variant {
    name: "sm100_packed",
    aliases: &["packed_add_sum", "3input_maxmin"],
    doc: "one thread folds float32 registers, two sums or three extrema an instruction",
    priority: 20,
    needs: &[
        &SCOPE,
        &REGISTERS,
        &ARCHITECTURE,
        &REDUCER,
        &ANY_ORDER,
        &NO_LANES,
        &NO_THREAD_REDUCE,
        &SIZES,
        &APART,
        &ORDER,
        &LENGTH,
    ],
    numerics: Numerics {
        flushes_where_allowed: true,
        order: "eight sums or four extrema, chunk by chunk, then a tree",
        longest_chain: "sums: `n // 8 + n % 8 + 2` for `n` elements; extrema round nothing",
    },
    steps,
    inputs: &[
        (
            "reducer",
            "`sum`: pairs of sums by `add.rn.f32x2`; `max`, `min`: three sources an instruction, NaN kept",
        ),
        (
            "length",
            "whole chunks of eight are folded in a loop, what is left over is added to the first partial; below 8 \
             the call is for `local`",
        ),
        ("`ftz=True`", "the packed additions are `add.rn.ftz.f32x2`; without it nothing is flushed"),
        ("`accum=True`", "the old value joins the first partial"),
        ("shape", "one scalar an output; rows of a row-major tile are folded one after another"),
        ("architecture", "`sm_100a` and `sm_103a`; others split both instructions, and `local` does as well"),
    ],
    emit,
};

/// Elements of a chunk.
const CHUNK: u32 = 8;

const SCOPE: Need = Need {
    name: "scope",
    doc: "One thread folds.",
    check: |facts| match facts.scope {
        ExecScope::Thread => Ok(()),
        other => wanted("thread", other.name()),
    },
};

const REGISTERS: Need = Need {
    name: "operands",
    doc: "Operands stand in registers of the thread.",
    check: |facts| match facts.srcs.iter().chain(&facts.dsts).find(|o| !is_private(o)) {
        Some(other) => {
            let (name, memory) = (&other.tile().name, other.scope().name());
            let spread = if other.is_spread { ", spread over threads" } else { "" };
            wanted("registers of one thread", format!("`{name}` in {memory} memory{spread}"))
        }
        None => Ok(()),
    },
};

const ARCHITECTURE: Need = Need {
    name: "architecture",
    doc: "The machine has both instructions.",
    check: |facts| {
        let arch = facts.target.arch.as_str();
        match facts.target.kind == TargetKind::Cuda && ["sm_100a", "sm_103a"].contains(&arch) {
            true => Ok(()),
            false => wanted("sm_100a or sm_103a", arch),
        }
    },
};

const REDUCER: Need = Need {
    name: "reducer",
    doc: "The reducer is a sum, max or min of `float32`.",
    check: |facts| match Fold::of(facts.reducer) {
        Some(_) => Ok(()),
        None => {
            let types: Vec<&str> = facts.reducer.input_dtypes().iter().map(|d| d.name()).collect();
            wanted(
                "a sum, max or min of float32",
                format!("`{}` of {}", facts.reducer.name, types.join(", ")),
            )
        }
    },
};

/// Elements of an output follow one another.
const ORDER: Need = Need {
    name: "order",
    doc: "Elements of an output follow one another.",
    check: |facts| {
        let rank = facts.srcs.first().map_or(0, |src| src.tile().rank());
        let is_plain = facts.srcs.iter().all(|src| crate::facts::is_row_major(src.tile()));
        let rests = facts.srcs.iter().any(|src| src.is_spread);
        match rests || (facts.reduced[..] == [rank.wrapping_sub(1)] && is_plain) {
            true => Ok(()),
            false => {
                wanted("the last axis of a row-major tile", format!("axes {:?} of {rank}", facts.reduced))
            }
        }
    },
};

const LENGTH: Need = Need {
    name: "length",
    doc: "There is at least one chunk of eight elements.",
    check: |facts| match Walk::of(facts) {
        Ok(walk) if walk.n_elements() < CHUNK => {
            wanted(format!("at least {CHUNK} elements"), walk.n_elements().to_string())
        }
        _ => Ok(()),
    },
};

/// What folds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fold {
    Sum,
    Extremum(Intrinsic),
}

impl Fold {
    fn of(reducer: &Reducer) -> Option<Fold> {
        let is_single = reducer.fields.len() == 1 && reducer.fields[0].dtype == DType::F32;
        if !is_single || !lifts_nothing(reducer) || !finishes_nothing(reducer) {
            return None;
        }
        let (x, y) = (Var::new("x", DType::F32).expr(), Var::new("y", DType::F32).expr());
        let found = reducer.merge(std::slice::from_ref(&x), std::slice::from_ref(&y));
        let of_three = |intrinsic| Expr::call(intrinsic, vec![x.clone(), y.clone(), y.clone()]);
        match &found[..] {
            [e] if *e == Expr::binary(BinaryOp::Add, x.clone(), y.clone()) => Some(Fold::Sum),
            [e] if *e == of_three(Intrinsic::Max3) => Some(Fold::Extremum(Intrinsic::Max3)),
            [e] if *e == of_three(Intrinsic::Min3) => Some(Fold::Extremum(Intrinsic::Min3)),
            _ => None,
        }
    }
}

/// The elements of one output.
struct Source<'a> {
    facts: &'a Facts<'a>,
    walk: &'a Walk,
    output: &'a Expr,
}

impl Source<'_> {
    /// Element `q`.
    fn at(&self, q: &Expr) -> Expr {
        let place = self.facts.srcs[0].element(&self.walk.coords(self.output, q));
        Expr::load(place.buffer, place.indices)
    }
}

fn steps(facts: &Facts) -> Result<Steps, String> {
    let n = u64::from(Walk::of(facts)?.n_elements());
    let chunk = u64::from(CHUNK);
    // The first partial takes in a chunk each and what is left over; then three levels of a tree.
    Ok(Steps { longest: (n / chunk).saturating_sub(1) + n % chunk + 3, elements: n })
}

fn emit(facts: &Facts) -> Result<Emitted, Refusal> {
    let walk = Walk::of(facts).map_err(Refusal::Bug)?;
    let fold =
        Fold::of(facts.reducer).ok_or_else(|| Refusal::Bug("a reducer that is not packed".to_owned()))?;
    let n_partials = if fold == Fold::Sum { CHUNK } else { CHUNK / 2 };
    let partials = Buffer::new("partial", DType::F32, vec![constant(n_partials)], MemScope::Local);
    let body = repeat("p", walk.n_outputs(), |p| {
        let source = Source { facts, walk: &walk, output: p };
        let dst = &walk.outputs(facts, p)[0];
        let old = facts.accum.then(|| Expr::load(dst.buffer.clone(), dst.indices.clone()).cast(DType::F32));
        let (stmts, total) = match fold {
            Fold::Sum => sum(&partials, &source, old, walk.n_elements()),
            Fold::Extremum(intrinsic) => extremum(intrinsic, &partials, &source, old, walk.n_elements()),
        };
        let store = Stmt::store(&dst.buffer, dst.indices.clone(), total.cast(dst.buffer.dtype));
        Stmt::seq(stmts.into_iter().chain([store]))
    });
    Ok(Emitted { registers: vec![partials], shared: Vec::new(), body })
}

fn sum(partials: &Buffer, source: &Source, old: Option<Expr>, n: u32) -> (Vec<Stmt>, Expr) {
    let one = |at: u32| partials.at([constant(at)]);
    let plus = |at: &Expr, lane: &Expr| affine(at, 1, lane);
    let ftz = source.facts.options.ftz;
    let add = |to: u32, what: &dyn Fn(&Expr) -> Expr| {
        in_lanes(2, |lane| {
            let place = plus(lane, &constant(to));
            let (own, what) = (partials.at([place.clone()]), what(lane));
            let sum = if ftz { Expr::call(Intrinsic::AddFtz, vec![own, what]) } else { own + what };
            Stmt::store(partials, [place], sum)
        })
    };
    let mut stmts: Vec<Stmt> = (0..CHUNK)
        .step_by(2)
        .map(|at| {
            in_lanes(2, |lane| {
                let place = plus(lane, &constant(at));
                Stmt::store(partials, [place.clone()], source.at(&place))
            })
        })
        .collect();
    if let Some(old) = old {
        stmts.push(Stmt::store(partials, [constant(0)], one(0) + old));
    }
    if n >= 2 * CHUNK {
        stmts.push(repeat("chunk", n / CHUNK - 1, |c| {
            let first = affine(c, CHUNK, &constant(CHUNK));
            Stmt::seq(
                (0..CHUNK)
                    .step_by(2)
                    .map(|at| add(at, &|lane| source.at(&plus(&plus(&first, &constant(at)), lane)))),
            )
        }));
    }
    if !n.is_multiple_of(CHUNK) {
        stmts.push(repeat("rest", n % CHUNK, |r| {
            let at = affine(r, 1, &constant(n - n % CHUNK));
            Stmt::store(partials, [constant(0)], one(0) + source.at(&at))
        }));
    }
    for (to, from) in [(0, 2), (4, 6), (0, 4)] {
        stmts.push(add(to, &|lane| partials.at([plus(lane, &constant(from))])));
    }
    (stmts, one(0) + one(1))
}

fn extremum(
    of_three: Intrinsic,
    partials: &Buffer,
    source: &Source,
    old: Option<Expr>,
    n: u32,
) -> (Vec<Stmt>, Expr) {
    let one = |at: u32| partials.at([constant(at)]);
    let of = |a: Expr, b: Expr, c: Expr| Expr::call(of_three, vec![a, b, c]);
    let two = |first: &Expr| [source.at(first), source.at(&affine(first, 1, &constant(1)))];
    let mut stmts: Vec<Stmt> = (0..CHUNK / 2)
        .map(|at| {
            let [a, b] = two(&constant(2 * at));
            let third = if at == 0 { old.clone() } else { None };
            Stmt::store(partials, [constant(at)], of(a, b.clone(), third.unwrap_or(b)))
        })
        .collect();
    if n >= 2 * CHUNK {
        stmts.push(repeat("chunk", n / CHUNK - 1, |c| {
            let first = affine(c, CHUNK, &constant(CHUNK));
            Stmt::seq((0..CHUNK / 2).map(|at| {
                let [a, b] = two(&affine(&first, 1, &constant(2 * at)));
                Stmt::store(partials, [constant(at)], of(one(at), a, b))
            }))
        }));
    }
    if !n.is_multiple_of(CHUNK) {
        stmts.push(repeat("rest", n % CHUNK, |r| {
            let x = source.at(&affine(r, 1, &constant(n - n % CHUNK)));
            Stmt::store(partials, [constant(0)], of(one(0), x.clone(), x))
        }));
    }
    (stmts, of(of(one(0), one(1), one(1)), one(2), one(3)))
}
