//! A small thread pool for parallel loops: static partition, short spin, park.
//!
//! It exists because launches must cost microseconds and parts must go to the same threads in each run (repeatable
//! results, warm caches). A pool that spins long after a call disturbs its neighbours, so idle threads spin for at
//! most [`SPIN`] and then park. Source: contract N13; the measurements that ask for "static partition, short spin,
//! park".

use std::any::Any;
use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

/// How long an idle thread looks for work before it parks.
pub const SPIN: Duration = Duration::from_micros(20);

/// Why a launch failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// A part panicked; the other parts ran to their ends.
    #[error("part {part} of a parallel loop panicked: {message}")]
    PartPanicked {
        /// The part; the smallest one when several panicked.
        part: usize,
        /// The panic's message.
        message: String,
    },
}

/// Threads that run the parts of parallel loops.
///
/// Part `p` is run by thread `p % n_threads`, the caller being thread 0. Launches from different threads take
/// turns; a launch from inside a part runs all its parts on the calling thread.
pub struct Pool {
    shared: Arc<Shared>,
    launch: Mutex<()>,
    handles: Vec<JoinHandle<()>>,
    /// Forks that this process had seen when the threads were started.
    n_forks: usize,
}

/// Forks after which this process is the child.
static N_FORKS: AtomicUsize = AtomicUsize::new(0);

/// To be called in the child of a fork. The threads of its pools are the parent's, so the child's launches run all
/// parts on the calling thread, with the same results. No launch may be under way at the fork.
pub fn forked() {
    N_FORKS.fetch_add(1, Ordering::SeqCst);
}

/// One launch, on the launching thread's stack. It is alive until `Shared::pending` is 0.
struct Job {
    f: *const (dyn Fn(usize) + Sync),
    n_parts: usize,
    n_threads: usize,
    failure: Mutex<Option<(usize, String)>>,
}

/// What a worker looks at. Aligned so that two workers do not share a cache line.
#[repr(align(128))]
struct Mailbox {
    job: AtomicPtr<Job>,
    parked: AtomicBool,
}

struct Shared {
    mailboxes: Vec<Mailbox>,
    /// Workers that have not finished the current job.
    pending: AtomicUsize,
    waiter_parked: AtomicBool,
    waiter: Mutex<Option<Thread>>,
    stop: AtomicBool,
}

thread_local! {
    static INSIDE_PART: Cell<bool> = const { Cell::new(false) };
}

impl Pool {
    /// A pool of `n_threads` threads, the caller of [`Pool::run`] included; 0 counts as 1. Threads that the system
    /// refuses to start are left out.
    pub fn new(n_threads: usize) -> Pool {
        let n_workers = n_threads.max(1) - 1;
        let mailbox = || Mailbox { job: AtomicPtr::new(ptr::null_mut()), parked: AtomicBool::new(false) };
        let shared = Arc::new(Shared {
            mailboxes: (0..n_workers).map(|_| mailbox()).collect(),
            pending: AtomicUsize::new(0),
            waiter_parked: AtomicBool::new(false),
            waiter: Mutex::new(None),
            stop: AtomicBool::new(false),
        });
        let mut handles = Vec::new();
        for worker in 0..n_workers {
            let shared = Arc::clone(&shared);
            let name = format!("coulis-{}", worker + 1);
            match thread::Builder::new().name(name).spawn(move || work(&shared, worker)) {
                Ok(handle) => handles.push(handle),
                Err(_) => break,
            }
        }
        let n_forks = N_FORKS.load(Ordering::SeqCst);
        Pool { shared, launch: Mutex::new(()), handles, n_forks }
    }

    /// The process-wide pool of `n_threads` threads. Each size asked for makes one pool, which is never dropped.
    pub fn global(n_threads: usize) -> &'static Pool {
        static POOLS: OnceLock<Mutex<Vec<(usize, &'static Pool)>>> = OnceLock::new();
        let wanted = n_threads.max(1);
        let mut pools = lock(POOLS.get_or_init(Mutex::default));
        if let Some((_, pool)) = pools.iter().find(|(n, _)| *n == wanted) {
            return pool;
        }
        let pool: &'static Pool = Box::leak(Box::new(Pool::new(wanted)));
        pools.push((wanted, pool));
        pool
    }

    /// Threads that take part, the caller included.
    pub fn n_threads(&self) -> usize {
        self.handles.len() + 1
    }

    /// Calls `f(part)` once for each `part` in `0..n_parts` and waits for all. A panic in a part becomes an error
    /// after all parts have ended.
    pub fn run(&self, n_parts: usize, f: &(dyn Fn(usize) + Sync)) -> Result<(), PoolError> {
        let n_threads = self.n_threads().min(n_parts);
        // SAFETY: only the lifetime changes; `run` returns after every worker is done with the job, so the pointer
        // is not used after `f` ends.
        let f: *const (dyn Fn(usize) + Sync) =
            unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(f) };
        let job = Job { f, n_parts, n_threads: n_threads.max(1), failure: Mutex::new(None) };
        let has_threads = n_threads > 1 && self.n_forks == N_FORKS.load(Ordering::Relaxed);
        if !has_threads || INSIDE_PART.get() {
            let alone = Job { n_threads: 1, ..job };
            alone.run_parts_of(0);
            return alone.outcome();
        }
        let turn = lock(&self.launch);
        let shared = &*self.shared;
        shared.pending.store(n_threads - 1, Ordering::SeqCst);
        let address = ptr::from_ref(&job).cast_mut();
        for (mailbox, handle) in shared.mailboxes.iter().zip(&self.handles).take(n_threads - 1) {
            mailbox.job.store(address, Ordering::SeqCst);
            if mailbox.parked.load(Ordering::SeqCst) {
                handle.thread().unpark();
            }
        }
        job.run_parts_of(0);
        shared.wait_for_workers();
        drop(turn);
        job.outcome()
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        for handle in self.handles.drain(..) {
            handle.thread().unpark();
            // A worker catches the panics of parts, so it ends normally.
            let _ = handle.join();
        }
    }
}

impl Job {
    /// Runs the parts of one thread. Panics are caught and noted.
    fn run_parts_of(&self, thread_idx: usize) {
        // SAFETY: `Pool::run` keeps `f` alive until this thread has reported the end of its parts.
        let f = unsafe { &*self.f };
        let was_inside = INSIDE_PART.replace(true);
        for part in (thread_idx..self.n_parts).step_by(self.n_threads) {
            if let Err(payload) = catch_unwind(AssertUnwindSafe(|| f(part))) {
                let mut failure = lock(&self.failure);
                if failure.as_ref().is_none_or(|(first, _)| part < *first) {
                    *failure = Some((part, panic_message(&*payload)));
                }
            }
        }
        INSIDE_PART.set(was_inside);
    }

    fn outcome(self) -> Result<(), PoolError> {
        match self.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(()),
            Some((part, message)) => Err(PoolError::PartPanicked { part, message }),
        }
    }
}

impl Shared {
    fn wait_for_workers(&self) {
        let done = || self.pending.load(Ordering::SeqCst) == 0;
        if spin_until(done) {
            return;
        }
        *lock(&self.waiter) = Some(thread::current());
        self.waiter_parked.store(true, Ordering::SeqCst);
        while !done() {
            thread::park();
        }
        self.waiter_parked.store(false, Ordering::SeqCst);
    }
}

/// The life of worker `worker`, which is thread `worker + 1` of its pool.
fn work(shared: &Shared, worker: usize) {
    let mailbox = &shared.mailboxes[worker];
    let called = || !mailbox.job.load(Ordering::SeqCst).is_null() || shared.stop.load(Ordering::SeqCst);
    loop {
        if !spin_until(called) {
            mailbox.parked.store(true, Ordering::SeqCst);
            while !called() {
                thread::park();
            }
            mailbox.parked.store(false, Ordering::SeqCst);
        }
        let job = mailbox.job.swap(ptr::null_mut(), Ordering::SeqCst);
        if job.is_null() {
            return;
        }
        // SAFETY: the launching thread keeps the job alive until `pending` has been decreased below.
        unsafe { &*job }.run_parts_of(worker + 1);
        if shared.pending.fetch_sub(1, Ordering::SeqCst) == 1
            && shared.waiter_parked.load(Ordering::SeqCst)
            && let Some(waiter) = &*lock(&shared.waiter)
        {
            waiter.unpark();
        }
    }
}

/// Whether the condition came true within [`SPIN`].
fn spin_until(condition: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    loop {
        for _ in 0..32 {
            if condition() {
                return true;
            }
            std::hint::spin_loop();
        }
        if start.elapsed() > SPIN {
            return false;
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a message".to_owned()
    }
}

/// Part `part` of `0..extent` cut into `n_parts` contiguous parts whose lengths differ by at most 1, longer ones
/// first. An extent below 1 gives empty parts.
pub fn partition(extent: i64, n_parts: usize, part: usize) -> Range<i64> {
    let (extent, n, part) = (extent.max(0) as u64, n_parts.max(1) as u64, part as u64);
    let (each, longer) = (extent / n, extent % n);
    let start = part * each + part.min(longer);
    let len = each + u64::from(part < longer);
    let end = start + len;
    start as i64..end as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count_parts(pool: &Pool, n_parts: usize) -> Vec<usize> {
        let counts: Vec<AtomicUsize> = (0..n_parts).map(|_| AtomicUsize::new(0)).collect();
        pool.run(n_parts, &|part| {
            counts[part].fetch_add(1, Ordering::SeqCst);
        })
        .unwrap();
        counts.iter().map(|c| c.load(Ordering::SeqCst)).collect()
    }

    #[test]
    fn every_part_runs_exactly_once_for_any_number_of_threads_and_parts() {
        for n_threads in 0..=5 {
            let pool = Pool::new(n_threads);
            assert_eq!(pool.n_threads(), n_threads.max(1));
            for n_parts in 0..=12 {
                assert_eq!(count_parts(&pool, n_parts), vec![1; n_parts]);
            }
        }
    }

    #[test]
    fn many_launches_in_a_row_and_from_several_threads_all_complete() {
        let pool = Pool::new(3);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..500 {
                        assert_eq!(count_parts(&pool, 4), vec![1; 4]);
                    }
                });
            }
        });
    }

    #[test]
    fn workers_wake_after_they_have_parked() {
        let pool = Pool::new(2);
        for _ in 0..5 {
            assert_eq!(count_parts(&pool, 2), vec![1; 2]);
            let begin = Instant::now();
            while begin.elapsed() < 20 * SPIN {
                thread::yield_now();
            }
        }
    }

    #[test]
    fn a_caller_parks_through_a_long_part_of_a_worker() {
        let pool = Pool::new(2);
        pool.run(2, &|part| {
            let begin = Instant::now();
            while part == 1 && begin.elapsed() < 50 * SPIN {
                thread::yield_now();
            }
        })
        .unwrap();
        assert_eq!(count_parts(&pool, 2), vec![1; 2]);
    }

    #[test]
    fn a_part_always_runs_on_the_same_thread() {
        let pool = Pool::new(3);
        let run = || {
            let names = Mutex::new(vec![String::new(); 7]);
            pool.run(7, &|part| {
                let name = thread::current().name().unwrap_or("caller").to_owned();
                names.lock().unwrap()[part] = name;
            })
            .unwrap();
            names.into_inner().unwrap()
        };
        let first = run();
        assert_eq!(first[1], "coulis-1");
        assert_eq!(first[1], first[4]);
        assert_eq!(first, run());
    }

    #[test]
    fn a_panic_is_an_error_and_the_pool_goes_on() {
        let pool = Pool::new(2);
        let counts = AtomicUsize::new(0);
        let result = pool.run(4, &|part| {
            counts.fetch_add(1, Ordering::SeqCst);
            assert!(part != 1 && part != 2, "part {part} is bad");
        });
        assert_eq!(result, Err(PoolError::PartPanicked { part: 1, message: "part 1 is bad".to_owned() }));
        assert_eq!(counts.into_inner(), 4);
        assert_eq!(count_parts(&pool, 3), vec![1; 3]);
    }

    #[test]
    fn a_launch_inside_a_part_runs_on_that_thread() {
        let pool = Pool::new(2);
        let total = AtomicUsize::new(0);
        pool.run(2, &|_| {
            let me = thread::current().id();
            pool.run(3, &|_| {
                assert_eq!(thread::current().id(), me);
                total.fetch_add(1, Ordering::SeqCst);
            })
            .unwrap();
        })
        .unwrap();
        assert_eq!(total.into_inner(), 6);
    }

    #[test]
    fn the_global_pool_is_one_for_each_size() {
        assert!(ptr::eq(Pool::global(2), Pool::global(2)));
        assert!(ptr::eq(Pool::global(0), Pool::global(1)));
        assert_eq!(Pool::global(3).n_threads(), 3);
    }

    #[test]
    fn parts_are_contiguous_cover_the_extent_and_differ_by_at_most_one() {
        for extent in -1..=40i64 {
            for n_parts in 1..=9 {
                let mut next = 0;
                for part in 0..n_parts {
                    let range = partition(extent, n_parts, part);
                    assert_eq!(range.start, next);
                    let len = range.end - range.start;
                    let each = extent.max(0) / n_parts as i64;
                    assert!(len == each || len == each + 1);
                    next = range.end;
                }
                assert_eq!(next, extent.max(0));
            }
        }
        assert_eq!(partition(i64::MAX, 2, 1).end, i64::MAX);
    }
}
