//! A stack that suits a statement.
//!
//! Statements are walked by plain recursion, and a stack that runs out cannot be caught. Allocations and bindings lie in
//! each other, so a kernel of many statistics is hundreds of statements deep where its text is flat: more than the stack of
//! a thread holds that was started for something else.

use crate::simplify::{count_steps, n_steps};
use crate::stmt::Stmt;
use crate::visit::stmt_children;

/// Deepest statement that every thread has a stack for.
const SHALLOW: usize = 64;
/// Bytes of the stack for a level of it, with a margin for builds that are not optimized.
const LEVEL: usize = 64 << 10;
/// Times as deep as it is that a statement may become in work on it.
const GROWTH: usize = 2;

/// How many statements lie in each other, at least 1.
pub fn depth(stmt: &Stmt) -> usize {
    let (mut deepest, mut left) = (0, vec![(stmt, 1)]);
    while let Some((stmt, depth)) = left.pop() {
        deepest = deepest.max(depth);
        left.extend(stmt_children(stmt).map(|child| (child, depth + 1)));
    }
    deepest
}

/// Does work on a statement of that [`depth`]: on the stack of the caller, or on one that is large enough for it. Where the
/// system has none, the caller's has to do. Steps of analysis are counted as the caller's.
pub fn with_stack_for<T: Send>(depth: usize, work: impl FnOnce() -> T + Send) -> T {
    if depth <= SHALLOW {
        return work();
    }
    // Taken by whoever does it, which is the caller if no thread starts.
    let work = std::sync::Mutex::new(Some(work));
    let take = || work.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
    let done = std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().name("coulis-deep".to_owned());
        let counted = || (take().map(|work| work()), n_steps());
        let worker = builder.stack_size(GROWTH * depth * LEVEL).spawn_scoped(scope, counted);
        match worker.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok((done, steps))) => {
                count_steps(steps);
                done
            }
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(_) => take().map(|work| work()),
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
    fn steps_of_analysis_are_counted_as_the_callers() {
        let before = n_steps();
        let simplified = |depth: usize| {
            with_stack_for(depth, || {
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
