//! A small thread pool for parallel loops: parts that are cut beforehand and taken by whoever is there, short spin, park.
//!
//! It exists because launches must cost microseconds and results must repeat. What a part is never depends on who runs it, so results
//! repeat; who runs it does: a thread begins with parts of its own, which are the same in each launch (warm caches), and then takes
//! those that no other has begun. So a thread that has no core, because another program has it, delays a launch by no more than the
//! part that it is in, and one that did not begin delays it not at all. A pool that spins long after a call disturbs its neighbours,
//! so idle threads spin for at most [`SPIN`] and then park; to wake them costs the caller some microseconds, which launches that are
//! shorter save ([`Pace`]). Source: contract N13; the measurements that ask for "short spin, park", and `bench/results/cpu-amd-epyc-kernels.md`.

use std::any::Any;
use std::cell::Cell;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::thread::{self, JoinHandle, Thread};
use std::time::{Duration, Instant};

use self::place::Place;

mod place;
#[cfg(test)]
mod tests;

/// How long an idle thread looks for work before it parks, and the longest pause between launches that follow one another.
pub const SPIN: Duration = Duration::from_micros(20);
/// Work that the caller does alone, in launches that follow one another, before it wakes threads that are parked: about what that
/// costs, so that no one pays for it more than twice.
const ALONE: Duration = Duration::from_micros(20);
/// Work of one thread from which on parked threads are woken at once.
const LONG: Duration = Duration::from_micros(60);
/// How long a thread that has run its own parts waits for one that is at its own before it takes some of them: what they read may be in
/// the other's cache.
const PATIENCE: Duration = Duration::from_micros(2);
/// Parts into which [`Pool::spread`] cuts what a thread is to do: halves of what is left, so that who comes late finds half of it.
const PARTS_OF_THREAD: usize = 5;

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

/// How long the launches of a kernel take, as far as is known: by that the pool decides whether parked threads are worth waking at
/// once. Nothing is known at first, and they are.
pub struct Pace(AtomicU64);

impl Pace {
    /// Nothing is known.
    pub const fn new() -> Pace {
        Pace(AtomicU64::new(u64::MAX))
    }

    fn is_long(&self) -> bool {
        u128::from(self.0.load(Ordering::Relaxed)) >= LONG.as_nanos()
    }

    /// A launch was this much work of one thread. A kernel may have loops of several lengths; the longest of the last ones counts.
    fn note(&self, work: Duration) {
        let known = self.0.load(Ordering::Relaxed);
        let known = if known == u64::MAX { 0 } else { known / 2 };
        self.0.store(known.max(work.as_nanos() as u64), Ordering::Relaxed);
    }
}

impl Default for Pace {
    fn default() -> Pace {
        Pace::new()
    }
}

/// Threads that run the parts of parallel loops.
///
/// The parts of thread `t` are those of `partition(n_parts, n_threads, t)`, the caller being thread 0. A thread runs its own first,
/// in their order, and then those of others that no one has begun. Launches from different threads take turns; a launch from inside a
/// part runs all its parts on the calling thread.
pub struct Pool {
    shared: Arc<Shared>,
    launch: Mutex<Alone>,
    handles: Vec<JoinHandle<()>>,
    /// Forks that this process had seen when the threads were started.
    n_forks: usize,
}

/// What the callers of late did while the other threads were parked.
struct Alone {
    /// Work since the last pause of more than [`SPIN`].
    work: Duration,
    /// When the last launch ended.
    until: Instant,
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

/// What one thread and those that work for it look at. Aligned so that two do not share a cache line.
#[repr(align(128))]
struct Seat {
    job: AtomicPtr<Job>,
    parked: AtomicBool,
    /// The first of the thread's parts that no one has begun.
    next: AtomicUsize,
}

struct Shared {
    /// One a thread, that of the caller first.
    seats: Vec<Seat>,
    /// Workers that have not finished the current job, nor been told that they are too late.
    pending: AtomicUsize,
    /// The core that the caller was on, plus 1; 0 is not known.
    core_of_caller: AtomicUsize,
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
        Pool::with_workers(n_threads, work)
    }

    /// A pool whose workers live so.
    fn with_workers(n_threads: usize, life: fn(&Shared, usize)) -> Pool {
        let seat = || Seat {
            job: AtomicPtr::new(ptr::null_mut()),
            parked: AtomicBool::new(false),
            next: AtomicUsize::new(0),
        };
        let shared = Arc::new(Shared {
            seats: (0..n_threads.max(1)).map(|_| seat()).collect(),
            pending: AtomicUsize::new(0),
            core_of_caller: AtomicUsize::new(0),
            waiter_parked: AtomicBool::new(false),
            waiter: Mutex::new(None),
            stop: AtomicBool::new(false),
        });
        let mut handles = Vec::new();
        for thread_idx in 1..shared.seats.len() {
            let shared = Arc::clone(&shared);
            let name = format!("coulis-{thread_idx}");
            match thread::Builder::new().name(name).spawn(move || life(&shared, thread_idx)) {
                Ok(handle) => handles.push(handle),
                Err(_) => break,
            }
        }
        let n_forks = N_FORKS.load(Ordering::SeqCst);
        let alone = Alone { work: Duration::ZERO, until: Instant::now() };
        Pool { shared, launch: Mutex::new(alone), handles, n_forks }
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

    /// Calls `f` for ranges that cover `0..extent`, each index once, and waits for all. A thread has a contiguous piece of it, of a
    /// launch that is long in shorter and shorter ranges. An extent below 1 is no call.
    pub fn spread(&self, extent: i64, pace: &Pace, f: &(dyn Fn(Range<i64>) + Sync)) -> Result<(), PoolError> {
        let n_threads = self.n_threads().min(usize::try_from(extent).unwrap_or(0));
        let n_of_thread = if pace.is_long() { PARTS_OF_THREAD } else { 1 };
        self.run(n_threads * n_of_thread, pace, &|part| {
            let own = partition(extent, n_threads, part / n_of_thread);
            let range = halves(own, part % n_of_thread, n_of_thread);
            if !range.is_empty() {
                f(range);
            }
        })
    }

    /// Calls `f(part)` once for each `part` in `0..n_parts` and waits for all. A panic in a part becomes an error
    /// after all parts have ended.
    pub fn run(&self, n_parts: usize, pace: &Pace, f: &(dyn Fn(usize) + Sync)) -> Result<(), PoolError> {
        let n_threads = self.n_threads().min(n_parts);
        // SAFETY: only the lifetime changes; `run` returns after every worker is done with the job, so the pointer
        // is not used after `f` ends.
        let f: *const (dyn Fn(usize) + Sync) =
            unsafe { std::mem::transmute::<&(dyn Fn(usize) + Sync), &'static (dyn Fn(usize) + Sync)>(f) };
        let job = Job { f, n_parts, n_threads, failure: Mutex::new(None) };
        let has_threads = n_threads > 1 && self.n_forks == N_FORKS.load(Ordering::Relaxed);
        if !has_threads || INSIDE_PART.get() {
            job.run_all();
            return job.outcome();
        }
        let mut alone = lock(&self.launch);
        self.shared.offer(&job);
        let sleepers = self.sleepers(n_threads);
        if sleepers {
            self.run_among_sleepers(&job, pace, &mut alone);
        } else {
            job.run_as(0, &self.shared, &mut || {});
        }
        self.shared.wait_for_workers(n_threads);
        drop(alone);
        job.outcome()
    }

    /// Whether one of the first threads is parked.
    fn sleepers(&self, n_threads: usize) -> bool {
        self.shared.seats[1..n_threads].iter().any(|seat| seat.parked.load(Ordering::SeqCst))
    }

    fn wake(&self, n_threads: usize) {
        self.shared.core_of_caller.store(place::core().map_or(0, |core| core + 1), Ordering::SeqCst);
        for (seat, handle) in self.shared.seats[1..n_threads].iter().zip(&self.handles) {
            if seat.parked.load(Ordering::SeqCst) {
                handle.thread().unpark();
            }
        }
    }

    /// The caller's share of a launch that finds threads parked: they are woken when that is worth it.
    fn run_among_sleepers(&self, job: &Job, pace: &Pace, alone: &mut Alone) {
        let begin = Instant::now();
        if begin.duration_since(alone.until) > SPIN {
            alone.work = Duration::ZERO;
        }
        let before = alone.work;
        let is_worth = |since: Instant| before + since.elapsed() >= ALONE;
        let mut is_alone = !pace.is_long() && !is_worth(begin);
        if !is_alone {
            self.wake(job.n_threads);
        }
        job.run_as(0, &self.shared, &mut || {
            if is_alone && is_worth(begin) {
                is_alone = false;
                self.wake(job.n_threads);
            }
        });
        alone.until = Instant::now();
        let took = alone.until.duration_since(begin);
        let n_took_part = if is_alone { 1 } else { job.n_threads as u32 };
        alone.work = if is_alone { before + took } else { Duration::ZERO };
        pace.note(took * n_took_part);
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
    /// Runs one part. A panic is caught and noted.
    fn run_part(&self, part: usize) {
        // SAFETY: `Pool::run` keeps `f` alive until every thread that has the job has reported its end.
        let f = unsafe { &*self.f };
        if let Err(payload) = catch_unwind(AssertUnwindSafe(|| f(part))) {
            let mut failure = lock(&self.failure);
            if failure.as_ref().is_none_or(|(first, _)| part < *first) {
                *failure = Some((part, panic_message(&*payload)));
            }
        }
    }

    /// All parts, on this thread.
    fn run_all(&self) {
        let was_inside = INSIDE_PART.replace(true);
        (0..self.n_parts).for_each(|part| self.run_part(part));
        INSIDE_PART.set(was_inside);
    }

    /// Runs the parts of one thread and then those of the others, as far as no one has begun them. `between` is called after each.
    fn run_as(&self, thread_idx: usize, shared: &Shared, between: &mut dyn FnMut()) {
        let was_inside = INSIDE_PART.replace(true);
        self.run_parts_of(thread_idx, shared, between);
        if thread_idx > 0 || !shared.are_soon_done(self.n_threads) {
            for nth in 1..self.n_threads {
                let owner = (thread_idx + nth) % self.n_threads;
                let own = self.parts_of(owner);
                // The caller has begun its first part, and others are left alone with what is in their caches.
                let is_begun = owner == 0 && own.len() == 1;
                let next = &shared.seats[owner].next;
                let is_left = || next.load(Ordering::Relaxed) < own.end;
                let is_at_it = || shared.seats[owner].job.load(Ordering::Relaxed).is_null();
                if !is_begun && is_left() && !(is_at_it() && spin_until(PATIENCE, || !is_left())) {
                    self.run_parts_of(owner, shared, between);
                }
            }
        }
        INSIDE_PART.set(was_inside);
    }

    /// Runs the parts of a thread that no one has begun.
    fn run_parts_of(&self, owner: usize, shared: &Shared, between: &mut dyn FnMut()) {
        let (next, end) = (&shared.seats[owner].next, self.parts_of(owner).end);
        loop {
            let part = next.fetch_add(1, Ordering::Relaxed);
            if part >= end {
                return;
            }
            self.run_part(part);
            between();
            if part + 1 == end {
                return;
            }
        }
    }

    fn parts_of(&self, thread_idx: usize) -> Range<usize> {
        let own = partition(self.n_parts as i64, self.n_threads, thread_idx);
        own.start as usize..own.end as usize
    }

    fn outcome(self) -> Result<(), PoolError> {
        match self.failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            None => Ok(()),
            Some((part, message)) => Err(PoolError::PartPanicked { part, message }),
        }
    }
}

impl Shared {
    /// Puts a job before the workers that it is for.
    fn offer(&self, job: &Job) {
        self.pending.store(job.n_threads - 1, Ordering::Relaxed);
        let seats = &self.seats[..job.n_threads];
        // All of them before the first worker has the job, since it may soon look for parts of the others.
        for (thread_idx, seat) in seats.iter().enumerate() {
            seat.next.store(job.parts_of(thread_idx).start, Ordering::Relaxed);
        }
        for seat in &seats[1..] {
            seat.job.store(ptr::from_ref(job).cast_mut(), Ordering::Release);
        }
        // Before it is asked who is parked: who parks looks for a job after it says so.
        fence(Ordering::SeqCst);
    }

    /// Whether those that took the job end within [`PATIENCE`], and all did.
    fn are_soon_done(&self, n_threads: usize) -> bool {
        let is_done = || self.pending.load(Ordering::SeqCst) == 0;
        let took_it = |seat: &Seat| seat.job.load(Ordering::Relaxed).is_null();
        is_done() || self.seats[1..n_threads].iter().all(took_it) && spin_until(PATIENCE, is_done)
    }

    /// Waits for those that took the job, when every part has been begun. Those that did not will not.
    fn wait_for_workers(&self, n_threads: usize) {
        let done = || self.pending.load(Ordering::SeqCst) == 0;
        if done() {
            return;
        }
        for seat in &self.seats[1..n_threads] {
            if !seat.job.swap(ptr::null_mut(), Ordering::SeqCst).is_null() {
                self.pending.fetch_sub(1, Ordering::SeqCst);
            }
        }
        if spin_until(SPIN, done) {
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

/// The life of a worker.
fn work(shared: &Shared, thread_idx: usize) {
    let seat = &shared.seats[thread_idx];
    let is_called = || !seat.job.load(Ordering::SeqCst).is_null() || shared.stop.load(Ordering::SeqCst);
    let mut place = Place::of_this_thread();
    loop {
        if !spin_until(SPIN, is_called) {
            seat.parked.store(true, Ordering::SeqCst);
            while !is_called() {
                thread::park();
            }
            seat.parked.store(false, Ordering::SeqCst);
            // Who wakes a thread is busy; a core that both had would do the work of one.
            if let Some(core) = shared.core_of_caller.load(Ordering::SeqCst).checked_sub(1) {
                place.leave(core);
            }
        }
        if shared.stop.load(Ordering::SeqCst) {
            return;
        }
        let job = seat.job.swap(ptr::null_mut(), Ordering::SeqCst);
        if job.is_null() {
            continue;
        }
        // SAFETY: the launching thread keeps the job alive until `pending` has been decreased below.
        unsafe { &*job }.run_as(thread_idx, shared, &mut || {});
        if shared.pending.fetch_sub(1, Ordering::SeqCst) == 1
            && shared.waiter_parked.load(Ordering::SeqCst)
            && let Some(waiter) = &*lock(&shared.waiter)
        {
            waiter.unpark();
        }
    }
}

/// Whether the condition came true within a time.
fn spin_until(time: Duration, condition: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    loop {
        for _ in 0..32 {
            if condition() {
                return true;
            }
            std::hint::spin_loop();
        }
        if start.elapsed() > time {
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

/// Part `nth` of `n` of a range: the first half, half of the rest and so on, and what is left.
fn halves(range: Range<i64>, nth: usize, n: usize) -> Range<i64> {
    let mut left = range;
    for _ in 0..nth {
        left.start = middle(&left);
    }
    let end = if nth + 1 < n { middle(&left) } else { left.end };
    left.start..end
}

/// Where the first half of a range ends, which is the longer one.
fn middle(range: &Range<i64>) -> i64 {
    range.end - (range.end - range.start) / 2
}
