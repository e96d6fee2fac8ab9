//! What the pool promises: each part once, whoever runs it; no waiting for a thread that did not begin; no waking for a short launch.

use super::*;

fn count_parts(pool: &Pool, n_parts: usize) -> Vec<usize> {
    let counts: Vec<AtomicUsize> = (0..n_parts).map(|_| AtomicUsize::new(0)).collect();
    pool.run(n_parts, &Pace::new(), &|part| {
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
    pool.run(2, &Pace::new(), &|part| {
        let begin = Instant::now();
        while part == 1 && begin.elapsed() < 50 * SPIN {
            thread::yield_now();
        }
    })
    .unwrap();
    assert_eq!(count_parts(&pool, 2), vec![1; 2]);
}

#[test]
fn the_caller_begins_with_its_own_parts_and_takes_those_that_no_one_begins() {
    /// A worker that never has a core.
    fn absent(shared: &Shared, _: usize) {
        while !shared.stop.load(Ordering::SeqCst) {
            thread::park();
        }
    }
    let pool = Pool::with_workers(3, absent);
    for n_parts in [2, 3, 7, 12] {
        let order = Mutex::new(Vec::new());
        pool.run(n_parts, &Pace::new(), &|part| order.lock().unwrap().push(part)).unwrap();
        assert_eq!(order.into_inner().unwrap(), (0..n_parts).collect::<Vec<_>>());
    }
}

#[test]
fn a_worker_that_comes_takes_the_parts_that_are_left() {
    let pool = Pool::new(2);
    let caller = thread::current().id();
    let taken = AtomicUsize::new(0);
    pool.run(8, &Pace::new(), &|_| {
        if thread::current().id() == caller {
            // The caller stays in its first part until the worker has run all others.
            while taken.load(Ordering::SeqCst) < 7 {
                thread::yield_now();
            }
        } else {
            taken.fetch_add(1, Ordering::SeqCst);
        }
    })
    .unwrap();
    assert_eq!(taken.into_inner(), 7);
}

#[test]
fn short_launches_are_the_callers_alone_until_they_add_up_and_long_ones_wake_the_workers() {
    let pool = Pool::new(2);
    let seat = &pool.shared.seats[1];
    let sleep = || {
        while !seat.parked.load(Ordering::SeqCst) {
            thread::yield_now();
        }
        // Longer than launches that follow one another are apart.
        let begin = Instant::now();
        while begin.elapsed() < 2 * SPIN {}
    };
    let is_woken = |pace: &Pace, work: Duration| {
        pool.shared.core_of_caller.store(usize::MAX, Ordering::SeqCst);
        pool.run(2, pace, &|_| {
            let begin = Instant::now();
            while begin.elapsed() < work {}
        })
        .unwrap();
        pool.shared.core_of_caller.load(Ordering::SeqCst) != usize::MAX
    };
    let (none, pace) = (Duration::ZERO, Pace::new());
    sleep();
    assert!(is_woken(&pace, none), "nothing is known of the first launch");
    (0..40).for_each(|_| pace.note(none));
    // Another program may have the core for longer than a launch takes, but not each time.
    let some = |is_so: &dyn Fn() -> bool| {
        (0..100).any(|_| {
            sleep();
            is_so()
        })
    };
    assert!(some(&|| !is_woken(&pace, none)), "a short one");
    sleep();
    assert!(is_woken(&pace, 2 * ALONE), "what turns out to be long is so at the end of a part");
    let next_of_many = || {
        (0..40).for_each(|_| pace.note(none));
        *pool.launch.lock().unwrap() = Alone { work: ALONE, until: Instant::now() };
        is_woken(&pace, none)
    };
    assert!(some(&next_of_many), "many short ones, one after another, are a long one");
    sleep();
    pace.note(LONG);
    assert!(is_woken(&pace, none), "the last one was long");
}

#[test]
fn ranges_cover_an_extent_once_in_launches_of_any_length() {
    for n_threads in 1..=4 {
        let pool = Pool::new(n_threads);
        for extent in -1..=67i64 {
            for n_ranges_of_thread in [1, PARTS_OF_THREAD] {
                let pace = Pace::new();
                pace.note(if n_ranges_of_thread > 1 { LONG } else { Duration::ZERO });
                let found = Mutex::new(Vec::new());
                let keep = |range: Range<i64>| found.lock().unwrap().push((range.start, range.end));
                pool.spread(extent, &pace, &keep).unwrap();
                let mut found = found.into_inner().unwrap();
                found.sort_unstable();
                let mut next = 0;
                for (start, end) in &found {
                    assert!(*start == next && start < end, "{found:?}");
                    next = *end;
                }
                assert_eq!(next, extent.max(0));
                assert!(found.len() <= n_threads * n_ranges_of_thread);
            }
        }
    }
    assert_eq!([0, 1, 2, 3, 4].map(|nth| halves(0..64, nth, 5)), [0..32, 32..48, 48..56, 56..60, 60..64]);
    assert_eq!(halves(3..9, 0, 1), 3..9);
}

#[test]
fn a_panic_is_an_error_and_the_pool_goes_on() {
    let pool = Pool::new(2);
    let counts = AtomicUsize::new(0);
    let result = pool.run(4, &Pace::new(), &|part| {
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
    pool.run(2, &Pace::new(), &|_| {
        let me = thread::current().id();
        pool.run(3, &Pace::new(), &|_| {
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
