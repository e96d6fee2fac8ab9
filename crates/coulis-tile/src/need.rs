//! Needs: what a variant asks of a call, each with a name, so that a refusal says what was wanted and what was found.

use crate::dispatch::{Op, ReduceOp};
use crate::reduce::state::State;

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
    check: |facts| match facts.target.has_threads() {
        true => Ok(()),
        false => wanted("a machine with blocks of threads", "the cpu"),
    },
};

/// Every thread of the scope holds one element of every operand in a register, and gets its group's total there.
pub const SPREAD: Need = Need {
    name: "operands",
    check: |facts| match &facts.groups {
        Ok(_) => Ok(()),
        Err(found) => wanted("one element a thread, in registers", found.clone()),
    },
};

/// A group is one thread.
pub const ALONE: Need = Need {
    name: "group",
    check: |facts| match &facts.groups {
        Ok(groups) if groups.size() != 1 => wanted("groups of 1 thread", threads(groups.size())),
        _ => Ok(()),
    },
};

/// Groups have more than one thread.
pub const SEVERAL: Need = Need {
    name: "group",
    check: |facts| match &facts.groups {
        Ok(groups) if groups.size() == 1 => wanted("groups of at least 2 threads", "1 thread"),
        _ => Ok(()),
    },
};

/// The threads of a group are consecutive.
pub const CONSECUTIVE: Need = Need {
    name: "order",
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
    check: |facts| match facts.active.split_by(|_| 0) {
        Some(found) => wanted(format!("all {}", threads(facts.block.n_threads())), found),
        None => Ok(()),
    },
};

/// The state of a group's member fits in a shuffle: every field has at most 8 bytes.
pub const SHUFFLES: Need = Need {
    name: "types",
    check: |facts| match facts.reducer.fields.iter().find(|f| f.dtype.bytes() > 8) {
        Some(field) => wanted("state fields of at most 8 bytes", field.dtype.name()),
        None => Ok(()),
    },
};

/// The states of all threads fit in the shared memory of a block.
pub const SHARED_STATES: Need = Need {
    name: "shared memory",
    check: |facts| {
        let limit = u64::from(facts.target.block.shared_dyn_bytes);
        let bytes = State::bytes(facts.reducer) * u64::from(facts.block.n_threads());
        if bytes <= limit {
            return Ok(());
        }
        wanted(format!("states of at most {limit} bytes in all"), format!("{bytes} bytes"))
    },
};

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
