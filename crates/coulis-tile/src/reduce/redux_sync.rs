//! `redux_sync`: whole warps fold their lanes by one instruction.
//!
//! Machines from `sm_80` on fold 32-bit integers over a warp in one instruction, `redux.sync`, where shuffles take five
//! and as many combinations; `sm_100a` and `sm_103a` also find the largest and smallest of `float32`, NaN kept. All
//! lanes get the result. What is folded within a thread, between warps, and where results go is that of the variant
//! that would take the call otherwise: `warp_shuffle`, `local`, `shared` or `mixed`.
//!
//! A sum of integers is accumulated in 64 bits (contract N4) and stored in the type that the program
//! declares. Where that has at most 32 bits, the low 32 bits of the sum decide it, so that the instruction,
//! which wraps at 32 bits, gives the same. Source: PTX ISA, `redux.sync`.

use coulis_ir::{Atom, AtomCall, BinaryOp, Buffer, DType, ExecScope, Expr, Intrinsic, Stmt, TargetKind, Var};

use crate::facts::Facts;
use crate::groups::Digit;
use crate::need::{ANY_ORDER, Need, THREADS, wanted};
use crate::reduce::state::{at, register, set, value};
use crate::reduce::view::View;
use crate::reduce::{Instructions, cooperative, local, mixed, shared, warp_shuffle};
use crate::rounding::Steps;
use crate::variant::{Emitted, Numerics, Refusal, Variant};

/// The variant.
pub const VARIANT: Variant = Variant {
    name: "redux_sync",
    aliases: &[],
    doc: "whole warps fold integers, and on sm_100a extrema of float32, by one instruction",
    priority: 25,
    needs: &[&THREADS, &ARCHITECTURE, &REDUCER, &ANY_ORDER, &WHOLE_WARPS],
    numerics: Numerics {
        flushes_where_allowed: false,
        order: "each lane its elements ascending, then all lanes at once, then warps; exact",
        longest_chain: "as for the variant that would take the call otherwise; nothing is rounded",
    },
    steps,
    inputs: &[
        ("reducer", "`sum` of integers, `max`, `min`, `and` and `or` of bools; one instruction each"),
        ("type", "integers of up to 4 bytes and bools travel as 32 bits; sums where results have at most 32"),
        (
            "architecture",
            "integers from `sm_80` on; `float32` and narrower floats on `sm_100a` and `sm_103a`",
        ),
        ("operands, axes, `accum=True`", "as for `warp_shuffle`, `local`, `shared` and `mixed`"),
        ("lanes", "groups of less than a warp are folded by shuffles"),
    ],
    emit,
};

/// The machine has the instruction.
const ARCHITECTURE: Need = Need {
    name: "architecture",
    doc: "The machine has the instruction: sm_80 or later for integers, sm_100a or sm_103a for float32.",
    check: |facts| {
        let is_cuda = facts.target.kind == TargetKind::Cuda && facts.target.arch.starts_with("sm_");
        let has_floats = ["sm_100a", "sm_103a"].contains(&facts.target.arch.as_str());
        let of_floats = facts.reducer.fields.iter().any(|field| field.dtype.is_float());
        match (is_cuda, of_floats && !has_floats) {
            (true, false) => Ok(()),
            (true, true) => wanted("sm_100a or sm_103a for floats", facts.target.arch.as_str()),
            (false, _) => wanted("sm_80 or later", facts.target.arch.as_str()),
        }
    },
};

/// The instruction does what the reducer does.
const REDUCER: Need = Need {
    name: "reducer",
    doc: "The state is one value that the instruction folds: a sum of integers that is stored in at most 32 bits, or \
          an extremum.",
    check: |facts| match Redux::of(facts) {
        Some(_) => Ok(()),
        None => {
            let types: Vec<&str> = facts.reducer.fields.iter().map(|field| field.dtype.name()).collect();
            wanted(
                "a sum of integers that is stored in at most 32 bits, or an extremum of at most 32 bits",
                format!("`{}` with a state of {}", facts.reducer.name, types.join(", ")),
            )
        }
    },
};

/// All lanes of a warp fold together.
const WHOLE_WARPS: Need = Need {
    name: "lanes",
    doc: "All lanes of a warp fold together, in a call that `warp_shuffle`, `local`, `shared` or `mixed` takes.",
    check: |facts| match Form::of(facts) {
        Ok(_) => Ok(()),
        Err(found) => wanted(format!("whole warps of {} lanes that fold", facts.target.warp), found),
    },
};

/// The instruction for a reducer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Redux {
    atom: Atom,
    /// The type in which states are folded.
    carrier: DType,
}

impl Redux {
    /// The instruction that folds the states of a call, where there is one.
    pub fn of(facts: &Facts) -> Option<Redux> {
        let reducer = facts.reducer;
        let [field] = &reducer.fields[..] else { return None };
        let dtype = field.dtype;
        let (x, y) = (Var::new("x", dtype).expr(), Var::new("y", dtype).expr());
        let found = reducer.merge(std::slice::from_ref(&x), std::slice::from_ref(&y));
        let is = |wanted: Expr| found == [wanted];
        let by = |op: BinaryOp| {
            is(Expr::binary(op, x.clone(), y.clone())) || is(Expr::binary(op, y.clone(), x.clone()))
        };
        let of_three = |intrinsic| is(Expr::call(intrinsic, vec![x.clone(), y.clone(), y.clone()]));
        let word = match dtype {
            DType::Bool | DType::U8 | DType::U16 | DType::U32 => Some(DType::U32),
            DType::I8 | DType::I16 | DType::I32 => Some(DType::I32),
            DType::I64 | DType::U64 | DType::F8E4M3 | DType::F8E5M2 | DType::F16 | DType::BF16 => None,
            DType::F32 | DType::F64 => None,
        };
        if dtype.is_int() && by(BinaryOp::Add) {
            let is_narrow = |dst: &crate::Operand| dst.tile().dtype.is_int() && dst.tile().dtype.bytes() <= 4;
            let carrier = word.unwrap_or(DType::U32);
            return facts.dsts.iter().all(is_narrow).then_some(Redux { atom: Atom::ReduxAdd, carrier });
        }
        if let Some(carrier) = word {
            let is_bool = dtype == DType::Bool;
            let is_max = by(BinaryOp::Max) || (is_bool && by(BinaryOp::Or));
            let is_min = by(BinaryOp::Min) || (is_bool && by(BinaryOp::And));
            let atom = if is_max { Atom::ReduxMax } else { Atom::ReduxMin };
            return (is_max || is_min).then_some(Redux { atom, carrier });
        }
        let carrier = DType::F32;
        match dtype {
            DType::F32 if of_three(Intrinsic::Max3) => Some(Redux { atom: Atom::ReduxMax, carrier }),
            DType::F32 if of_three(Intrinsic::Min3) => Some(Redux { atom: Atom::ReduxMin, carrier }),
            _ => None,
        }
    }

    /// The register for the result.
    pub fn received(&self) -> Vec<Buffer> {
        vec![register("t0", self.carrier)]
    }

    /// Folds the states of the lanes that the mask names; afterwards each has the total.
    pub fn fold(&self, mask: &Expr, states: &[Buffer], received: &[Buffer]) -> Vec<Stmt> {
        let mut stmts = Vec::new();
        for (state, total) in states.iter().zip(received) {
            let args = vec![mask.clone(), value(state).cast(self.carrier)];
            let call = AtomCall { atom: self.atom, dst: Some(at(total)), memory: None, args };
            stmts.push(Stmt::Atom(Box::new(call)));
            stmts.push(set(state, value(total).cast(state.dtype)));
        }
        stmts
    }
}

/// The variant that has the rest of the call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// One element a thread, as for `warp_shuffle`.
    Groups,
    /// Tiles spread over registers, as for `local`.
    Registers,
    /// Tiles in memory, as for `shared` and `mixed`.
    Memory,
}

impl Form {
    /// The form of a call, or what was found instead of whole warps.
    fn of(facts: &Facts) -> Result<Form, String> {
        let warp = facts.target.warp;
        if facts.scope == ExecScope::Thread {
            return Err("one thread".to_owned());
        }
        let takes = |variant: &Variant| variant.declines(facts).is_empty();
        if takes(&warp_shuffle::VARIANT) {
            let size = facts.groups.as_ref().map_or(0, |groups| groups.size());
            return if size == warp { Ok(Form::Groups) } else { Err(format!("groups of {size} threads")) };
        }
        if takes(&local::VARIANT) {
            let view = View::of(facts)?;
            return match &view.folds[..] {
                [one] if *one == (Digit { extent: warp, stride: 1 }) => Ok(Form::Registers),
                [] => Err("no lanes to fold".to_owned()),
                all => Err(format!("groups of {} threads", all.iter().map(|d| d.extent).product::<u32>())),
            };
        }
        if takes(&shared::VARIANT) || takes(&mixed::VARIANT) {
            let lanes = cooperative::Plan::of(facts)?.lanes;
            return if lanes == warp { Ok(Form::Memory) } else { Err(format!("{lanes} lanes an output")) };
        }
        Err("a call that none of `warp_shuffle`, `local`, `shared` and `mixed` takes".to_owned())
    }
}

fn steps(facts: &Facts) -> Result<Steps, String> {
    match Form::of(facts)? {
        Form::Groups => Ok(Steps::tree(facts.target.warp.into())),
        Form::Registers => local::steps(facts),
        Form::Memory => cooperative::steps(facts),
    }
}

fn emit(facts: &Facts) -> Result<Emitted, Refusal> {
    let redux =
        Redux::of(facts).ok_or_else(|| Refusal::Bug("a reducer without its instruction".to_owned()))?;
    let by = Instructions { redux: Some(redux), halves: None };
    match Form::of(facts).map_err(Refusal::Bug)? {
        Form::Groups => warp_shuffle::emit_by(facts, Some(redux)),
        Form::Registers => local::emit_by(facts, by),
        Form::Memory => cooperative::emit_by(facts, by),
    }
}
