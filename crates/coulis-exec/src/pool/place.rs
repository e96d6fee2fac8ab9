//! Where a worker may run.
//!
//! A system that wakes a thread while its cores are busy may put it on the core of the thread that woke it, and leave it there: then two
//! threads do the work of one in turns. A worker that finds itself there leaves for the other cores that it may use; on those it
//! gets its share beside other programs.

/// The core that this thread is on, where the system tells.
pub fn core() -> Option<usize> {
    #[cfg(target_os = "linux")]
    // SAFETY: it takes nothing.
    return usize::try_from(unsafe { libc::sched_getcpu() }).ok();
    #[cfg(not(target_os = "linux"))]
    None
}

#[cfg(not(target_os = "linux"))]
pub use self::elsewhere::Place;
#[cfg(target_os = "linux")]
pub use self::linux::Place;

#[cfg(target_os = "linux")]
mod linux {
    /// A set of cores, a bit each, as large as the C library's.
    pub type Cores = [u64; size_of::<libc::cpu_set_t>() / 8];

    /// The cores that a worker may use.
    pub struct Place {
        /// Those that it was given by whoever rules the process; `None` where there are more than a set holds.
        given: Option<Cores>,
        /// Those of them that it last chose.
        chosen: Option<Cores>,
    }

    impl Place {
        /// Of the calling thread.
        pub fn of_this_thread() -> Place {
            Place { given: own(), chosen: None }
        }

        /// Moves the calling thread off a core if it is there and may use another one.
        pub fn leave(&mut self, core: usize) {
            if super::core() != Some(core) {
                return;
            }
            let now = own();
            if now != self.chosen {
                // Someone else has ruled since.
                self.given = now;
            }
            let Some(mut rest) = self.given else { return };
            if let Some(word) = rest.get_mut(core / 64) {
                *word &= !(1 << (core % 64));
            }
            if rest.iter().any(|word| *word != 0) && choose(&rest) {
                self.chosen = Some(rest);
            }
        }
    }

    /// The cores that the calling thread may use.
    pub fn own() -> Option<Cores> {
        let mut cores = Cores::default();
        // SAFETY: the set is as large as is said, and the kernel writes it only.
        let found = unsafe { libc::sched_getaffinity(0, size_of::<Cores>(), cores.as_mut_ptr().cast()) };
        (found == 0).then_some(cores)
    }

    /// Lets the calling thread use these cores only; whether the system does.
    pub fn choose(cores: &Cores) -> bool {
        // SAFETY: the set is as large as is said, and the kernel reads it only.
        unsafe { libc::sched_setaffinity(0, size_of::<Cores>(), cores.as_ptr().cast()) == 0 }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    /// Nothing is known of cores.
    pub struct Place;

    impl Place {
        /// Of the calling thread.
        pub fn of_this_thread() -> Place {
            Place
        }

        /// Nothing can be done.
        pub fn leave(&mut self, _core: usize) {}
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use super::linux::{Cores, Place, choose, own};
    use super::*;

    /// What a thread may use after it left the core that it is on, where it was given `n` cores at most.
    fn after(n: usize, rule: impl Fn(&mut Place, &Cores) + Sync) -> (usize, Cores, Cores) {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let mut given = own().unwrap();
                let mut left = n;
                for word in &mut given {
                    for bit in 0..64 {
                        let is_kept = *word >> bit & 1 == 1 && left > 0;
                        left -= usize::from(is_kept);
                        *word &= !(u64::from(!is_kept) << bit);
                    }
                }
                assert!(choose(&given));
                let mut place = Place::of_this_thread();
                rule(&mut place, &given);
                let mut core = core().unwrap();
                place.leave(core);
                // The system may have moved it between the two lines above, but not each time.
                for _ in 0..100 {
                    if own().unwrap()[core / 64] >> (core % 64) & 1 == 1 {
                        core = super::core().unwrap();
                        place.leave(core);
                    }
                }
                (core, given, own().unwrap())
            });
            thread.join().unwrap()
        })
    }

    fn count(cores: &Cores) -> u32 {
        cores.iter().map(|word| word.count_ones()).sum()
    }

    #[test]
    fn a_thread_leaves_a_core_for_the_others_that_it_was_given() {
        let (core, given, now) = after(2, |_, _| {});
        if count(&given) > 1 {
            assert_eq!(count(&now), 1);
            assert_eq!(now[core / 64] >> (core % 64) & 1, 0);
        }
    }

    #[test]
    fn a_thread_with_one_core_stays_and_no_one_leaves_a_core_of_others() {
        let (_, given, now) = after(1, |_, _| {});
        assert_eq!(now, given);
        let (_, given, now) = after(1, |place, _| place.leave(usize::MAX));
        assert_eq!(now, given);
    }

    #[test]
    fn a_core_that_was_left_is_used_again_when_another_one_is_left() {
        // It leaves the first core, and then that to which it went.
        let (core, given, now) = after(2, |place, _| place.leave(super::core().unwrap()));
        if count(&given) > 1 {
            assert_eq!(now[core / 64] >> (core % 64) & 1, 0);
            assert_eq!(count(&now), 1);
        }
    }

    #[test]
    fn a_thread_that_someone_gives_one_core_stays_there() {
        let ruled = std::sync::Mutex::new(None);
        let (_, _, now) = after(2, |place, given| {
            place.leave(super::core().unwrap());
            // The core that it left, if it did.
            let mut one = *given;
            one.iter_mut().zip(own().unwrap()).for_each(|(word, other)| *word &= !other);
            if choose(&one) {
                *ruled.lock().unwrap() = Some(one);
            }
        });
        if let Some(ruled) = ruled.into_inner().unwrap() {
            assert_eq!(now, ruled);
        }
    }
}
