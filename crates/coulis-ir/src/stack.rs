//! A stack that suits a statement.
//!
//! Statements are walked by plain recursion, and a stack that runs out cannot be caught. Allocations and bindings lie in
//! each other, so a kernel of many statistics is hundreds of statements deep where its text is flat: more than the stack of
//! a thread holds that was started for something else.

use std::cell::Cell;

use crate::simplify::{count_steps, n_steps};
use crate::stmt::Stmt;
use crate::visit::stmt_children;

/// Deepest statement that every thread has a stack for.
const SHALLOW: usize = 64;
/// Bytes of the stack for a level of it, with a margin for builds that are not optimized.
const LEVEL: usize = 64 << 10;
/// Times as deep as it is that a statement may become in work on it.
const GROWTH: usize = 2;

thread_local! {
    static ROOM: Cell<usize> = const { Cell::new(SHALLOW) };
}

/// Deepest statement that this thread has a stack for.
pub fn room() -> usize {
    ROOM.get()
}

/// How many statements lie in each other, at least 1.
pub fn depth(stmt: &Stmt) -> usize {
    fn within(mut stmt: &Stmt, mut left: usize) -> Option<usize> {
        let mut above = 0;
        loop {
            left = left.checked_sub(1)?;
            above += 1;
            let mut children = stmt_children(stmt);
            let Some(first) = children.next() else { return Some(above) };
            let Some(second) = children.next() else {
                stmt = first;
                continue;
            };
            let mut all = [first, second].into_iter().chain(children);
            let below = all.try_fold(0, |deepest, child| Some(within(child, left)?.max(deepest)))?;
            return Some(above + below);
        }
    }
    if let Some(depth) = within(stmt, room()) {
        return depth;
    }
    let (mut deepest, mut left) = (0, vec![(stmt, 1)]);
    while let Some((stmt, depth)) = left.pop() {
        deepest = deepest.max(depth);
        left.extend(stmt_children(stmt).map(|child| (child, depth + 1)));
    }
    deepest
}

/// Does work on a statement of that [`depth`]: on the stack of the caller, or on one that is large enough for it and for
/// one that becomes a little deeper, so that work in steps is given to one thread as a whole. Where the system has none,
/// the caller's has to do. Steps of analysis are counted as the caller's.
pub fn with_stack_for<T: Send>(depth: usize, work: impl FnOnce() -> T + Send) -> T {
    if depth <= room() {
        return work();
    }
    let (room, before) = (depth + SHALLOW, n_steps());
    // Taken by whoever does it, which is the caller if no thread starts.
    let work = std::sync::Mutex::new(Some(work));
    let take = || work.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    let done = std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("coulis-deep".to_owned());
        let counted = || {
            ROOM.set(room);
            count_steps(before);
            (take().map(|work| work()), n_steps() - before)
        };
        let worker = builder.stack_size(GROWTH * room * LEVEL).spawn_scoped(scope, counted);
        match worker.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok((done, steps))) => {
                count_steps(steps);
                done
            }
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => {
                let own = ROOM.replace(room);
                let done = take().map(|work| work());
                ROOM.set(own);
                done
            }
        }
    });
    match done {
        Some(done) => done,
        None => unreachable!("the work is done once, by the thread or by the caller"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buffer, DType, Expr, MemScope};

    #[test]
    fn deep_work_has_a_stack_of_its_own_and_shallow_work_the_callers() {
        let nested = |n: usize| {
            (0..n).fold(Stmt::NOP, |body, _| {
                Stmt::allocate(Buffer::new("t", DType::F32, vec![Expr::int(1)], MemScope::Local), body)
            })
        };
        assert_eq!(depth(&nested(500)), 501);
        let name = |depth: usize| with_stack_for(depth, || std::thread::current().name().map(str::to_owned));
        let own = std::thread::current().name().map(str::to_owned);
        assert_eq!(name(SHALLOW), own);
        assert_eq!(name(SHALLOW + 1).as_deref(), Some("coulis-deep"));
    }

    #[test]
    fn deep_work_in_steps_stays_on_one_thread_until_it_is_deeper_than_that_has_a_stack_for() {
        let thread = |depth: usize| with_stack_for(depth, || std::thread::current().id());
        let outer = std::thread::current().id();
        let (first, steps) = with_stack_for(SHALLOW + 1, || {
            (std::thread::current().id(), [SHALLOW, 2 * SHALLOW + 1, 2 * SHALLOW + 2].map(thread))
        });
        assert_ne!(first, outer);
        assert_eq!(steps[..2], [first, first]);
        assert_ne!(steps[2], first);
        assert_eq!((thread(SHALLOW), room()), (outer, SHALLOW));
    }

    #[test]
    fn steps_of_analysis_are_counted_as_the_callers() {
        let before = n_steps();
        let simplified = |depth: usize| {
            let outside = n_steps();
            with_stack_for(depth, || {
                assert_eq!(n_steps(), outside);
                let sum = Expr::int(1) + crate::Var::new("n", DType::I32).expr();
                crate::simplify::Analyzer::new().simplify(&sum)
            });
            n_steps()
        };
        let shallow = simplified(1);
        assert!(before < shallow && shallow < simplified(SHALLOW + 1));
    }

    #[test]
    #[should_panic(expected = "of the work")]
    fn a_panic_is_the_callers() {
        with_stack_for(SHALLOW + 1, || panic!("of the work"));
    }
}
