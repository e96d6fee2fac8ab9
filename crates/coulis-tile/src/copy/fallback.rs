//! `fallback`: the threads of the scope copy one element each, round after round.
//!
//! Takes any extents and layouts. Element `p` in row-major order is copied by thread `p % T` in round `p // T`; no
//! barrier stands inside. Source: the reference's variant of this name, in which one thread copies everything.

use coulis_ir::{DType, Expr, Stmt, Var};

use super::{ADDRESSABLE, CopyFacts, CopyOp, SAME_EXTENTS, SAME_TYPE, TOGETHER, digits, no_steps};
use crate::block::constant;
use crate::overlap::COPY_APART;
use crate::variant::{Emitted, Numerics, Refusal, Variant};

/// The variant.
pub const VARIANT: Variant<CopyOp> = Variant {
    name: "fallback",
    aliases: &[],
    doc: "one element a thread, round after round",
    priority: 0,
    needs: &[&SAME_TYPE, &SAME_EXTENTS, &ADDRESSABLE, &TOGETHER, &COPY_APART],
    numerics: Numerics { flushes_where_allowed: false, order: "no arithmetic", longest_chain: "0" },
    steps: no_steps,
    inputs: &[
        ("extents", "any, constant or not; the last round is guarded where they do not divide"),
        ("layouts", "any that a thread can address, swizzles too"),
        ("scope", "no barrier inside"),
    ],
    emit,
};

fn emit(facts: &CopyFacts) -> Result<Emitted, Refusal> {
    let together = facts.participants().map_err(Refusal::Bug)?;
    let extents: Vec<Expr> = facts.extents().into_iter().map(|e| e.cast(DType::I32)).collect();
    let n_threads = together.n_threads;
    let body = if n_threads == 1 {
        let vars: Vec<Var> = (0..extents.len()).map(|i| Var::size(&format!("i{i}"), DType::I32)).collect();
        let coords: Vec<Expr> = vars.iter().map(Var::expr).collect();
        let step = facts.step(&coords);
        vars.into_iter().zip(extents).rev().fold(step, |body, (var, extent)| Stmt::range(var, extent, body))
    } else {
        let count = extents.iter().cloned().reduce(|a, b| a * b).unwrap_or_else(|| constant(1));
        let round = Var::size("round", DType::I32);
        let rank = together.rank(facts.block);
        let n_rounds = match count.as_int() {
            Some(n) => Expr::int_of((n + i128::from(n_threads) - 1) / i128::from(n_threads), DType::I32),
            None => (count.clone() + constant(n_threads - 1)).floordiv(constant(n_threads)),
        };
        let at = round.expr() * constant(n_threads) + rank;
        let step = facts.step(&digits(&at, &extents));
        let divides = count.as_int().is_some_and(|n| n % i128::from(n_threads) == 0);
        let step = if divides { step } else { Stmt::if_(at.lt(count), step) };
        Stmt::range(round, n_rounds, step)
    };
    Ok(Emitted { registers: Vec::new(), shared: Vec::new(), body })
}
