//! V32 to V34: operands of instructions across threads that have to be constants, and memory that atomics work on.
//!
//! Source: CUDA C++ Programming Guide, warp shuffle functions and atomic functions; PTX ISA, `barrier`.

use super::forms::each_stmt;
use super::{Check, Group, InLaunch, Property, Report};
use crate::atom::{Atom, AtomCall, Signature};
use crate::buffer::MemScope;
use crate::dtype::DType;
use crate::kernel::Kernel;
use crate::print::print_expr;
use crate::stmt::{Stmt, SyncKind};
use crate::target::Target;

/// Named barriers of a block; number 0 is that of all its threads.
const NAMED: std::ops::RangeInclusive<u32> = 1..=15;

pub(super) const GROUP: Group = Group {
    properties: &[
        Property::new(
            "V32",
            "widths of shuffles are constant powers of two, for warps of the machine's length",
        ),
        Property::new("V33", "atomic updates work on shared or global memory of types that machines update"),
        Property::new("V34", "named barriers are 1 to 15, and wait for whole warps"),
    ],
    checks: &[Check::Tree(check_barrier_numbers), Check::Launch(check_atoms)],
};

/// Checks the numbers of named barriers, which are the same on every machine.
fn check_barrier_numbers<'k>(kernel: &'k Kernel, report: &mut Report<'k>) {
    each_stmt(&kernel.body, &mut |stmt| {
        if let Stmt::Sync(SyncKind::Warpgroup(id) | SyncKind::Named { id, .. }) = stmt
            && !NAMED.contains(id)
        {
            let text = format!("named barriers are {} to {}, got {id}", NAMED.start(), NAMED.end());
            report.at(stmt, "V34", text);
        }
    });
}

/// Checks shuffles, atomic updates and who waits at named barriers.
fn check_atoms<'k>(at: &mut InLaunch<'_, 'k>, report: &mut Report<'k>) {
    let InLaunch { launched, target, .. } = *at;
    each_stmt(launched.launch.body, &mut |stmt| match stmt {
        Stmt::Atom(call) => {
            if let Some(text) = width_fault(call, target) {
                report.at(stmt, "V32", text);
            }
            if let Some(text) = update_fault(call) {
                report.at(stmt, "V33", text);
            }
        }
        Stmt::Sync(SyncKind::Named { threads, .. }) => {
            if let Some(text) = named_fault(*threads, target) {
                report.at(stmt, "V34", text);
            }
        }
        _ => {}
    });
}

fn width_fault(call: &AtomCall, target: &Target) -> Option<String> {
    let (Signature::Shuffle, [_, _, _, width, size]) = (call.atom.signature(), &*call.args) else {
        return None;
    };
    let (name, warp) = (call.atom.name(), i128::from(target.warp));
    if size.as_int() != Some(warp) {
        return Some(format!(
            "`{name}` takes the lanes of a warp last, {warp} on {}, got `{}`",
            target.arch,
            print_expr(size)
        ));
    }
    let legal = width.as_int().is_some_and(|w| (1..=warp).contains(&w) && w & (w - 1) == 0);
    (!legal).then(|| {
        let found = print_expr(width);
        format!("the width of `{name}` is a constant power of two up to {warp}, got `{found}`")
    })
}

fn update_fault(call: &AtomCall) -> Option<String> {
    let memory = call.memory.as_ref()?;
    let (name, buffer) = (call.atom.name(), &memory.buffer);
    if matches!(buffer.scope, MemScope::Local | MemScope::Warp) && call.writes_memory() {
        let scope = buffer.scope.name();
        return Some(format!(
            "`{name}` works on memory that threads share, and `{}` is {scope} memory",
            buffer.name
        ));
    }
    let dtype = buffer.dtype;
    let is_word = matches!(dtype, DType::I32 | DType::U32 | DType::I64 | DType::U64);
    let legal = match call.atom {
        Atom::AtomicAdd => is_word || matches!(dtype, DType::F16 | DType::BF16 | DType::F32 | DType::F64),
        Atom::AtomicMin | Atom::AtomicMax => is_word,
        Atom::AtomicExchange | Atom::AtomicCompareSwap => is_word || matches!(dtype, DType::F32 | DType::F64),
        Atom::ShuffleDown
        | Atom::ShuffleUp
        | Atom::ShuffleXor
        | Atom::Shuffle
        | Atom::ActiveMask
        | Atom::Ballot
        | Atom::VoteAny
        | Atom::VoteAll
        | Atom::ReduxAdd
        | Atom::ReduxMin
        | Atom::ReduxMax
        | Atom::ClusterLoad
        | Atom::ThreadFence
        | Atom::Prefetch
        | Atom::PrefetchL2 => true,
    };
    (!legal).then(|| format!("`{name}` does not work on {dtype}, the type of `{}`", buffer.name))
}

fn named_fault(threads: u32, target: &Target) -> Option<String> {
    let (warp, most) = (target.warp.max(1), target.block.threads);
    let legal = threads >= warp && threads.is_multiple_of(warp) && threads <= most;
    (!legal).then(|| {
        format!(
            "a named barrier waits for whole warps of {warp} threads, up to {most}, got {threads} threads"
        )
    })
}
