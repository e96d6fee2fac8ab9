//! `vec_auto`: the threads of the scope copy vectors, side by side, round after round.
//!
//! A vector is the widest of 16, 8, 4, 2 bytes or one element that the alignment of both operands, their
//! layouts and the number of elements allow, such that every thread copies as many. No barrier stands inside.
//! Source: the reference's variant of this name.

use coulis_ir::{DType, Expr, LoopKind, Stmt, Var};

use super::{ADDRESSABLE, CopyFacts, CopyOp, SAME_EXTENTS, SAME_TYPE, TOGETHER, digits, no_steps};
use crate::block::constant;
use crate::need::{Need, wanted};
use crate::overlap::COPY_APART;
use crate::variant::{Emitted, Numerics, Refusal, Variant};

/// The variant.
pub const VARIANT: Variant<CopyOp> = Variant {
    name: "vec_auto",
    aliases: &[],
    doc: "vectors of up to 16 bytes, side by side over the threads",
    priority: 10,
    needs: &[&SAME_TYPE, &SAME_EXTENTS, &ADDRESSABLE, &TOGETHER, &COPY_APART, &DIVIDES],
    numerics: Numerics { flushes_where_allowed: false, order: "no arithmetic", longest_chain: "0" },
    steps: no_steps,
    inputs: &[
        ("alignment", "the widest vector of 16, 8, 4 or 2 bytes, or one element, that both operands allow"),
        ("threads", "neighbouring threads copy neighbouring vectors, round after round"),
        ("scope", "no barrier inside"),
    ],
    emit,
};

/// The number of elements is a constant multiple of the number of threads.
const DIVIDES: Need<CopyOp> = Need {
    name: "elements",
    doc: "The number of elements is a constant multiple of the number of threads.",
    check: |facts| {
        let Ok(together) = facts.participants() else { return Ok(()) };
        let n_threads = i64::from(together.n_threads);
        let asked = || format!("a multiple of {n_threads}, one share a thread");
        match facts.src().size() {
            Some(n) if n % n_threads == 0 => Ok(()),
            Some(n) => wanted(asked(), n.to_string()),
            None => wanted(asked(), "a number that is not constant"),
        }
    },
};

fn emit(facts: &CopyFacts) -> Result<Emitted, Refusal> {
    let together = facts.participants().map_err(Refusal::Bug)?;
    let n_threads = i64::from(together.n_threads);
    let size = facts.src().size().ok_or_else(|| Refusal::Bug("a size that is not constant".to_owned()))?;
    let lanes = n_lanes(facts, size / n_threads);
    let mut extents = facts.extents();
    let innermost = extents.pop();
    if let Some(extent) = innermost.as_ref().and_then(Expr::as_int) {
        extents.push(Expr::int_of(extent / i128::from(lanes), DType::I32));
    }
    let (round, lane) = (Var::size("round", DType::I32), Var::size("lane", DType::I32));
    let vector = match n_threads {
        1 => round.expr(),
        _ => round.expr() * constant(together.n_threads) + together.rank(facts.block),
    };
    let mut coords = digits(&vector, &extents);
    let wide = Expr::int_of(i128::from(lanes), DType::I32);
    let step = if lanes == 1 {
        facts.step(&coords)
    } else {
        if let Some(last) = coords.last_mut() {
            *last = last.clone() * wide.clone() + lane.expr();
        }
        Stmt::for_(lane, constant(0), wide, LoopKind::Vectorized, facts.step(&coords))
    };
    let rounds = Expr::int_of(i128::from(size / n_threads / lanes), DType::I32);
    Ok(Emitted { registers: Vec::new(), shared: Vec::new(), body: Stmt::range(round, rounds, step) })
}

/// Elements of one vector, where each thread copies `share` elements.
fn n_lanes(facts: &CopyFacts, share: i64) -> i64 {
    let bytes = facts.src().tile().dtype.bytes() as i64;
    let innermost = facts.extents().last().and_then(Expr::as_int).unwrap_or(1);
    let mut lanes = (16 / bytes).max(1);
    while lanes > 1 {
        let fits = share % lanes == 0 && innermost % i128::from(lanes) == 0;
        if fits && facts.src().is_aligned(lanes) && facts.dst().is_aligned(lanes) {
            break;
        }
        lanes /= 2;
    }
    lanes
}
