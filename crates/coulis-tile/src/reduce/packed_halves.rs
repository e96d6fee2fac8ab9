//! `packed_halves`: threads find extrema of 16-bit floats two elements an instruction.
//!
//! NVIDIA's machines from `sm_80` on take the larger or smaller of two pairs of `float16` or `bfloat16` at
//! once, NaN kept, and need no conversion for it; `local` and `shared` convert every element to `float32`
//! first. The elements that a thread folds by itself are folded in pairs; what crosses lanes is one
//! `float32`, as in those variants. Nothing is rounded, so that the result is theirs. Sums accumulate in
//! `float32` (contract N4) and are not for this variant.
//!
//! Everything else of a call, who folds what and where results go, is that of the variant that would take it
//! otherwise: `local`, `shared` or `mixed`. Source: PTX ISA, `max.NaN.f16x2`, `max.NaN.bf16x2`.

use coulis_ir::{Buffer, DType, ExecScope, Expr, Intrinsic, MemScope, Reducer, Stmt, TargetKind, Var};

use crate::block::constant;
use crate::facts::{Facts, is_row_major};
use crate::need::{ANY_ORDER, Need, THREADS, wanted};
use crate::reduce::state::State;
use crate::reduce::view::View;
use crate::reduce::walk::{Walk, affine, in_lanes, repeat};
use crate::reduce::{Instructions, cooperative, local, mixed, shared, threadwise};
use crate::rounding::Steps;
use crate::variant::{Emitted, Numerics, Refusal, Variant};

/// The variant.
pub const VARIANT: Variant = Variant {
    name: "packed_halves",
    aliases: &[],
    doc: "threads find extrema of 16-bit floats, two elements an instruction",
    priority: 15,
    needs: &[&THREADS, &ARCHITECTURE, &REDUCER, &ANY_ORDER, &RUNS],
    numerics: Numerics {
        flushes_where_allowed: false,
        order: "each thread its elements in up to eight places, then those, then as the variant that would take the \
                call otherwise; exact",
        longest_chain: "as for the variant that would take the call otherwise; nothing is rounded",
    },
    steps,
    inputs: &[
        ("reducer", "`max` and `min`; sums accumulate in float32 and are for other variants"),
        ("type", "`float16` by `max.NaN.f16x2`, `bfloat16` by `max.NaN.bf16x2`"),
        (
            "length",
            "neighbouring elements in runs of 8, 4 or 2 are folded at once; a thread with fewer than 4 elements \
             leaves them to other variants",
        ),
        ("operands, axes, `accum=True`", "as for `local`, `shared` and `mixed`"),
    ],
    emit,
};

/// Most elements that are folded at once: those of a vector of 16 bytes.
const MOST_LANES: u32 = 8;

/// Fewest elements of a thread that are worth a pair.
const FEWEST_ELEMENTS: u32 = 4;

/// The machine has the instruction.
const ARCHITECTURE: Need = Need {
    name: "architecture",
    doc: "The machine has the instruction: sm_80 or later.",
    check: |facts| match facts.target.kind == TargetKind::Cuda && facts.target.arch.starts_with("sm_") {
        true => Ok(()),
        false => wanted("sm_80 or later", facts.target.arch.as_str()),
    },
};

/// The instruction does what the reducer does.
const REDUCER: Need = Need {
    name: "reducer",
    doc: "The reducer is max or min of `float16` or `bfloat16`, NaN kept.",
    check: |facts| match extremum(facts.reducer) {
        Some(_) => Ok(()),
        None => {
            let types: Vec<&str> = facts.reducer.input_dtypes().iter().map(|d| d.name()).collect();
            wanted(
                "max or min of float16 or bfloat16",
                format!("`{}` of {}", facts.reducer.name, types.join(", ")),
            )
        }
    },
};

/// Every thread folds elements that stand side by side.
const RUNS: Need = Need {
    name: "runs",
    doc: "Every thread folds at least 4 elements, in runs of at least 2 neighbours, in a call that `local`, `shared` \
          or `mixed` takes.",
    check: |facts| match Form::of(facts) {
        Ok(_) => Ok(()),
        Err(found) => wanted("runs of 2 neighbours in every thread, at least 4 elements in all", found),
    },
};

/// The operation of three and the type of the elements, where the reducer is an extremum of 16-bit floats.
fn extremum(reducer: &Reducer) -> Option<(Intrinsic, DType)> {
    let ([field], [input @ (DType::F16 | DType::BF16)]) = (&reducer.fields[..], &reducer.input_dtypes()[..])
    else {
        return None;
    };
    let element = Var::new("element", *input).expr();
    let lifted = reducer.lift(std::slice::from_ref(&element), &Var::new("position", DType::I64).expr());
    let is_plain = lifted == [element.clone().cast(field.dtype)] && reducer.takes_part(&[element]).is_none();
    let (x, y) = (Var::new("x", field.dtype).expr(), Var::new("y", field.dtype).expr());
    let (left, right) = (std::slice::from_ref(&x), std::slice::from_ref(&y));
    let does = |of: &Intrinsic| {
        let wanted = [Expr::call(*of, vec![x.clone(), y.clone(), y.clone()])];
        reducer.merge(left, right) == wanted && reducer.fold(left, right) == wanted
    };
    let of = [Intrinsic::Max3, Intrinsic::Min3].into_iter().find(does)?;
    is_plain.then_some((of, *input))
}

/// A fold of neighbours by pairs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Halves {
    of: Intrinsic,
    dtype: DType,
    /// Neighbours that are folded at once, a power of two of at least 2.
    pub lanes: u32,
}

impl Halves {
    /// Registers for the lanes, and for each half of those before.
    pub fn registers(&self) -> Vec<Buffer> {
        let mut registers = Vec::new();
        let mut n = self.lanes;
        while n > 1 {
            registers.push(Buffer::new(
                &format!("halves{n}"),
                self.dtype,
                vec![constant(n)],
                MemScope::Local,
            ));
            n /= 2;
        }
        registers
    }

    /// Takes what `n` steps read into a cleared state; `element` is what a step, `step` by name, reads in a lane.
    pub fn fold(
        &self,
        state: &State,
        registers: &[Buffer],
        (step, n): (&str, u32),
        element: impl Fn(&Expr, &Expr) -> Expr,
    ) -> Stmt {
        let Some(all) = registers.first() else { return Stmt::NOP };
        let of_two = |a: Expr, b: Expr| Expr::call(self.of, vec![a, b.clone(), b]);
        let each = |value: &dyn Fn(&Expr) -> Expr| {
            in_lanes(self.lanes, |lane| Stmt::store(all, [lane.clone()], value(lane)))
        };
        let mut stmts = vec![each(&|lane| element(&constant(0), lane))];
        if n > 1 {
            stmts.push(repeat(step, n - 1, |t| {
                let t = affine(t, 1, &constant(1));
                each(&|lane| of_two(all.at([lane.clone()]), element(&t, lane)))
            }));
        }
        let mut live = self.lanes;
        for pair in registers.windows(2) {
            live /= 2;
            stmts.push(in_lanes(live, |lane| {
                let [low, high] = [0, live].map(|first| pair[0].at([affine(lane, 1, &constant(first))]));
                Stmt::store(&pair[1], [lane.clone()], of_two(low, high))
            }));
        }
        for (two, lane) in registers.last().into_iter().flat_map(|two| [(two, 0), (two, 1)]) {
            stmts.push(state.take(&[two.at([constant(lane)])], Expr::int_of(0, DType::I64)));
        }
        Stmt::seq(stmts)
    }
}

/// The variant that has the rest of the call, and the neighbours that a thread reads at once.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// One thread, as for each of the three.
    Thread(u32),
    /// Tiles spread over registers, as for `local`.
    Registers(u32),
    /// Tiles in memory that several threads share, as for `shared` and `mixed`.
    Memory(u32),
}

impl Form {
    /// The form of a call, or what was found instead of neighbours.
    fn of(facts: &Facts) -> Result<Form, String> {
        let takes = |variant: &Variant| variant.declines(facts).is_empty();
        let in_memory = takes(&shared::VARIANT) || takes(&mixed::VARIANT);
        if !in_memory && !takes(&local::VARIANT) {
            return Err("a call that none of `local`, `shared` and `mixed` takes".to_owned());
        }
        let (own, lanes) = match facts.scope {
            ExecScope::Thread => {
                let walk = Walk::of(facts)?;
                let is_plain =
                    facts.srcs.iter().all(|src| src.tile().strides.is_empty() && is_row_major(src.tile()));
                let n = if is_plain { widest(walk.n_elements(), |n| walk.has_runs_of(n)) } else { 1 };
                (walk.n_elements(), n)
            }
            _ if in_memory => {
                let plan = cooperative::Plan::of(facts)?;
                (Walk::of(facts)?.n_elements() / (plan.lanes * plan.parts), plan.vector)
            }
            _ => {
                let view = View::of(facts)?;
                (view.n_elements, widest(view.n_elements, |n| view.srcs.iter().all(|src| src.has_runs_of(n))))
            }
        };
        match (lanes, own >= FEWEST_ELEMENTS) {
            (1, _) => Err("elements one by one".to_owned()),
            (_, false) => Err(format!("{own} elements a thread")),
            (n, true) if facts.scope == ExecScope::Thread => Ok(Form::Thread(n)),
            (n, true) if in_memory => Ok(Form::Memory(n)),
            (n, true) => Ok(Form::Registers(n)),
        }
    }
}

/// The most neighbours, of which there are runs and at least two of these.
fn widest(n_elements: u32, has_runs_of: impl Fn(u32) -> bool) -> u32 {
    let mut n = MOST_LANES;
    while n > 1 && !(2 * n <= n_elements && has_runs_of(n)) {
        n /= 2;
    }
    n
}

fn steps(facts: &Facts) -> Result<Steps, String> {
    match Form::of(facts)? {
        Form::Thread(_) => threadwise::steps(facts),
        Form::Registers(_) => local::steps(facts),
        Form::Memory(_) => cooperative::steps(facts),
    }
}

fn emit(facts: &Facts) -> Result<Emitted, Refusal> {
    let (of, dtype) = extremum(facts.reducer)
        .ok_or_else(|| Refusal::Bug("a reducer without its instruction".to_owned()))?;
    let by = |lanes| Instructions { redux: None, halves: Some(Halves { of, dtype, lanes }) };
    match Form::of(facts).map_err(Refusal::Bug)? {
        Form::Thread(lanes) => threadwise::emit_by(facts, by(lanes)),
        Form::Registers(lanes) => local::emit_by(facts, by(lanes)),
        Form::Memory(lanes) => cooperative::emit_by(facts, by(lanes)),
    }
}
