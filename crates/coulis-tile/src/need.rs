//! Needs: what a variant asks of a call, each with a name, so that a refusal says what was wanted and what was found.

use coulis_ir::{ExecScope, MemScope, Reducer};

use crate::call::Operand;
use crate::dispatch::Op;
use crate::reduce::ReduceOp;
use crate::reduce::cooperative;
use crate::reduce::state::State;
use crate::reduce::walk::Walk;

/// A need that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decline {
    /// Name of the need.
    pub need: &'static str,
    /// What the variant wants.
    pub wanted: String,
    /// What the call has.
    pub found: String,
}

/// How a need is checked.
pub type Check<O> = fn(&<O as Op>::Facts<'_>) -> Answer;

/// One thing that a variant asks of a call.
pub struct Need<O: Op = ReduceOp> {
    /// Name, as in tables.
    pub name: &'static str,
    /// What has to hold, in one sentence.
    pub doc: &'static str,
    /// `Err((wanted, found))` where the call has it not. A need that rests on another one that failed holds.
    pub check: Check<O>,
}

/// The answer of a need.
pub type Answer = Result<(), (String, String)>;

/// The answer of a need that failed.
pub fn wanted(wanted: impl Into<String>, found: impl Into<String>) -> Answer {
    Err((wanted.into(), found.into()))
}

/// The machine runs blocks of threads.
pub const THREADS: Need = Need {
    name: "machine",
    doc: "The machine runs blocks of threads.",
    check: |facts| match facts.target.has_threads() {
        true => Ok(()),
        false => wanted("a machine with blocks of threads", "the cpu"),
    },
};

/// Every thread of the scope holds one element of every operand in a register, and gets its group's total there.
pub const SPREAD: Need = Need {
    name: "operands",
    doc: "Every thread of the scope holds one element of every operand in a register, and gets its group's total there.",
    check: |facts| match &facts.groups {
        Ok(_) => Ok(()),
        Err(found) => wanted("one element a thread, in registers", found.clone()),
    },
};

/// A group is one thread.
pub const ALONE: Need = Need {
    name: "group",
    doc: "A group is one thread.",
    check: |facts| match &facts.groups {
        Ok(groups) if groups.size() != 1 => wanted("groups of 1 thread", threads(groups.size())),
        _ => Ok(()),
    },
};

/// Groups have more than one thread.
pub const SEVERAL: Need = Need {
    name: "group",
    doc: "Groups have more than one thread.",
    check: |facts| match &facts.groups {
        Ok(groups) if groups.size() == 1 => wanted("groups of at least 2 threads", "1 thread"),
        _ => Ok(()),
    },
};

/// The threads of a group are consecutive.
pub const CONSECUTIVE: Need = Need {
    name: "order",
    doc: "The threads of a group are consecutive.",
    check: |facts| match &facts.groups {
        Ok(groups) if !groups.is_consecutive() => {
            wanted("consecutive threads in a group", "a group whose threads lie apart")
        }
        _ => Ok(()),
    },
};

/// Every group lies within one warp.
pub const WITHIN_WARPS: Need = Need {
    name: "warps",
    doc: "Every group lies within one warp.",
    check: |facts| match &facts.groups {
        Ok(groups) if !groups.is_within_warps(facts.target.warp, facts.block.n_threads()) => wanted(
            format!("groups within one warp of {} lanes", facts.target.warp),
            format!("groups of {} in a block of {}", threads(groups.size()), facts.block.n_threads()),
        ),
        _ => Ok(()),
    },
};

/// A group is several whole warps, at most as many as a warp has lanes.
pub const WHOLE_WARPS: Need = Need {
    name: "warps",
    doc: "A group is several whole warps, at most as many as a warp has lanes.",
    check: |facts| {
        let warp = facts.target.warp;
        match &facts.groups {
            Ok(groups)
                if !groups.size().is_multiple_of(warp)
                    || groups.size() <= warp
                    || groups.size() > warp * warp =>
            {
                wanted(format!("groups of 2 to {warp} whole warps of {warp} lanes"), threads(groups.size()))
            }
            _ => Ok(()),
        }
    },
};

/// Every group comes whole or not at all.
pub const WHOLE_GROUPS: Need = Need {
    name: "active threads",
    doc: "Every group comes whole or not at all.",
    check: |facts| match &facts.groups {
        Ok(groups) => match facts.active.split_by(|thread| groups.first_of(thread)) {
            Some(found) => wanted("all threads of a group", found),
            None => Ok(()),
        },
        Err(_) => Ok(()),
    },
};

/// All threads of the block come.
pub const WHOLE_BLOCK: Need = Need {
    name: "active threads",
    doc: "All threads of the block come.",
    check: |facts| match facts.active.split_by(|_| 0) {
        Some(found) => wanted(format!("all {}", threads(facts.block.n_threads())), found),
        None => Ok(()),
    },
};

/// The state of a group's member fits in a shuffle: every field has at most 8 bytes.
pub const SHUFFLES: Need = Need {
    name: "types",
    doc: "The state of a group's member fits in a shuffle: every field has at most 8 bytes.",
    check: |facts| match facts.reducer.fields.iter().find(|f| f.dtype.bytes() > 8) {
        Some(field) => wanted("state fields of at most 8 bytes", field.dtype.name()),
        None => Ok(()),
    },
};

/// The states of all threads fit in the shared memory of a block.
pub const SHARED_STATES: Need = Need {
    name: "shared memory",
    doc: "The states of all threads fit in the shared memory of a block.",
    check: |facts| {
        let limit = u64::from(facts.target.block.shared_dyn_bytes);
        let bytes = State::bytes(facts.reducer) * u64::from(facts.block.n_threads());
        if bytes <= limit {
            return Ok(());
        }
        wanted(format!("states of at most {limit} bytes in all"), format!("{bytes} bytes"))
    },
};

/// The operands are no lanes that the call numbers itself.
pub const NO_LANES: Need = Need {
    name: "lanes",
    doc: "The operands are no lanes that the call numbers itself.",
    check: |facts| match (facts.options.lanes, facts.options.warps) {
        (Some(n), _) => wanted("tiles", format!("`lanes={n}`")),
        (None, Some(n)) => wanted("tiles", format!("`warps={n}`")),
        (None, None) => Ok(()),
    },
};

/// The call says nothing of lanes that share a result.
pub const NO_THREAD_REDUCE: Need = Need {
    name: "thread_reduce",
    doc: "The call says nothing of lanes that share a result.",
    check: |facts| match facts.options.thread_reduce {
        Some(_) => wanted("a call without `thread_reduce`", "one with it"),
        None => Ok(()),
    },
};

/// The scope is a block or a part of one.
pub const WITHIN_BLOCK: Need = Need {
    name: "scope",
    doc: "The scope is a block or a part of one.",
    check: |facts| match facts.scope {
        ExecScope::Thread | ExecScope::Warp | ExecScope::Warpgroup | ExecScope::Cta => Ok(()),
        ExecScope::Cluster => wanted("one thread, a warp, a warpgroup or a cta", "a cluster"),
    },
};

/// All threads of each instance of the scope that comes do come, and instances are alike.
pub const ALL_THREADS: Need = Need {
    name: "active threads",
    doc: "All threads of each instance of the scope that comes do come, and instances are alike.",
    check: |facts| match facts.participants() {
        // A grid without clusters is another need's.
        Err(_) if facts.scope == ExecScope::Cluster && facts.cluster.is_none() => Ok(()),
        Err(found) => wanted("all threads of the scope", found),
        Ok(_) => Ok(()),
    },
};

/// Extents are constants, those of sources the same, and each destination has as many elements as there are results.
/// Tiles that are spread over threads answer for their sizes by their layouts.
pub const SIZES: Need = Need {
    name: "sizes",
    doc: "Extents are constants, those of sources the same, and each destination has as many elements as there are \
          results. Tiles that are spread over threads answer for their sizes by their layouts.",
    check: |facts| {
        if facts.srcs.iter().chain(&facts.dsts).any(|operand| operand.is_spread) {
            return Ok(());
        }
        match Walk::of(facts) {
            Ok(_) => Ok(()),
            Err(found) => wanted("constant extents, and an element for each result", found),
        }
    },
};

/// Results in memory that threads share are written by one instance of the scope, or each has results of its own; those
/// in global memory by one block.
pub const ONE_WRITER: Need = Need {
    name: "instances",
    doc: "Results in memory that threads share are written by one instance of the scope, or each has results of its \
          own; those in global memory by one block.",
    check: |facts| {
        let Ok(together) = facts.participants() else { return Ok(()) };
        let fixed = |operand: &&Operand| {
            let is_seen = !matches!(operand.scope(), MemScope::Local | MemScope::Warp);
            is_seen && operand.region.ranges.iter().all(|(min, _)| min.as_int().is_some())
        };
        let is_global = |operand: &&Operand| operand.scope() == MemScope::Global;
        if let (Some(tag), Some(dst)) = (facts.repeated_along, facts.dsts.iter().find(is_global)) {
            let found = format!("blocks along `{}` that all write `{}`", tag.name(), dst.tile().name);
            return wanted("one block, or results of its own for each", found);
        }
        match facts.dsts.iter().find(fixed) {
            Some(dst) if together.instances.len() > 1 => {
                let (n, scope) = (together.instances.len(), facts.scope.name());
                let found = format!("{n} {scope}s that all write `{}`", dst.tile().name);
                wanted(format!("one {scope}, or results of its own for each"), found)
            }
            _ => Ok(()),
        }
    },
};

/// The threads of the scope can wait for one another.
pub const BARRIER: Need = Need {
    name: "barrier",
    doc: "The threads of the scope can wait for one another.",
    check: |facts| match (facts.participants(), facts.sync()) {
        (Ok(_), Err(found)) => wanted("a barrier of the scope", found),
        _ => Ok(()),
    },
};

/// What several warps exchange fits in the shared memory of a block.
pub const STAGING: Need = Need {
    name: "shared memory",
    doc: "What several warps exchange fits in the shared memory of a block.",
    check: |facts| {
        let Ok(bytes) = cooperative::shared_bytes(facts) else { return Ok(()) };
        let limit = u64::from(facts.target.block.shared_bytes);
        match bytes <= limit {
            true => Ok(()),
            false => wanted(format!("states of at most {limit} bytes in all"), format!("{bytes} bytes")),
        }
    },
};

/// The reducer claims both laws: elements are folded in parts, and out of their order (contract N16).
pub const ANY_ORDER: Need = Need {
    name: "laws",
    doc: "The reducer claims to be associative and commutative: elements are folded in parts, and out of their order.",
    check: |facts| match facts.reducer.claims.any_order() {
        true => Ok(()),
        false => wanted("a reducer that is associative and commutative", claimed(facts.reducer)),
    },
};

/// Elements are folded one after another; an old value stands before them, and is combined with their total by the
/// associative law (contract N16).
pub const OLD_VALUE: Need = Need {
    name: "laws",
    doc: "The reducer claims to be associative where an old value takes part, which is combined with the total; \
          without both laws elements are folded in order.",
    check: |facts| match facts.accum && !facts.reducer.claims.associative {
        false => Ok(()),
        true => wanted("a reducer that is associative for `accum=True`", claimed(facts.reducer)),
    },
};

/// What a reducer claims of its laws, in words.
pub(crate) fn claimed(reducer: &Reducer) -> String {
    let laws = match (reducer.claims.associative, reducer.claims.commutative) {
        (true, true) => "which claims both laws",
        (true, false) => "which is associative alone",
        (false, true) => "which is commutative alone",
        (false, false) => "which claims neither law",
    };
    format!("`{}`, {laws}", reducer.name)
}

fn threads(n: u32) -> String {
    if n == 1 { "1 thread".to_owned() } else { format!("{n} threads") }
}

#[cfg(test)]
mod tests {
    #[test]
    fn one_thread_is_singular() {
        assert_eq!((super::threads(1), super::threads(2)), ("1 thread".to_owned(), "2 threads".to_owned()));
    }
}
