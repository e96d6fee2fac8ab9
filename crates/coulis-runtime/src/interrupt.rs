//! Ctrl-C while a kernel runs: whoever calls from a program that is to go on (Python's prompt, say) has the signal noted
//! for the time of the call, so that the kernel ends early and the program learns of the signal as usual.

use coulis_ir::interrupt;

/// Runs work of this thread that SIGINT ends early: its long loops end with an error. The handler that was
/// there before is called too, so nothing is lost, and is back in its place when this returns. Where the
/// system has no such signal the work just runs.
///
/// One thread of a process does so at a time. Work inside of such work is a part of it.
pub fn interruptible<T>(work: impl FnOnce() -> T) -> T {
    interrupt::watched(|| {
        #[cfg(unix)]
        let _watch = unix::Watch::begin();
        work()
    })
}

#[cfg(unix)]
mod unix {
    use std::mem::MaybeUninit;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use libc::{SA_SIGINFO, SIG_DFL, SIG_IGN, SIGINT, c_int, c_void, sigaction, siginfo_t};

    /// The handler that was there before, and whether it takes three arguments.
    static BEFORE: AtomicUsize = AtomicUsize::new(SIG_IGN);
    static TAKES_THREE: AtomicUsize = AtomicUsize::new(0);

    extern "C" fn note(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
        coulis_ir::interrupt::ask();
        let before = BEFORE.load(Ordering::Relaxed);
        if before == SIG_IGN || before == SIG_DFL {
            return;
        }
        // SAFETY: this is the address of a handler that was registered for this signal with that number of arguments.
        unsafe {
            if TAKES_THREE.load(Ordering::Relaxed) == 1 {
                type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
                std::mem::transmute::<usize, Handler>(before)(signal, info, context);
            } else {
                std::mem::transmute::<usize, extern "C" fn(c_int)>(before)(signal);
            }
        }
    }

    /// While this lives, SIGINT is noted.
    pub struct Watch(Option<sigaction>);

    impl Watch {
        pub fn begin() -> Watch {
            let mut before = MaybeUninit::<sigaction>::zeroed();
            // SAFETY: asks for the handler that is there, and writes it to `before`.
            if unsafe { libc::sigaction(SIGINT, std::ptr::null(), before.as_mut_ptr()) } != 0 {
                return Watch(None);
            }
            // SAFETY: it was written.
            let before = unsafe { before.assume_init() };
            let own_handler = note as extern "C" fn(c_int, *mut siginfo_t, *mut c_void) as usize;
            if before.sa_sigaction == own_handler {
                // Another watch is under way, which calls and puts back what was there before both.
                return Watch(None);
            }
            BEFORE.store(before.sa_sigaction, Ordering::Relaxed);
            TAKES_THREE.store(usize::from(before.sa_flags & SA_SIGINFO != 0), Ordering::Relaxed);
            let mut own = before;
            own.sa_sigaction = own_handler;
            own.sa_flags |= SA_SIGINFO;
            // SAFETY: the handler stores to atomics and calls what was the handler before, as handlers may.
            let is_set = unsafe { libc::sigaction(SIGINT, &raw const own, std::ptr::null_mut()) } == 0;
            Watch(is_set.then_some(before))
        }
    }

    impl Drop for Watch {
        fn drop(&mut self) {
            if let Some(before) = &self.0 {
                // SAFETY: puts back what was there.
                unsafe { libc::sigaction(SIGINT, before, std::ptr::null_mut()) };
            }
        }
    }

    #[cfg(test)]
    mod tests {
        use super::super::interruptible;

        #[test]
        fn a_signal_is_noted_and_the_handler_from_before_hears_of_it_and_is_back_afterwards() {
            extern "C" fn count(_: libc::c_int) {
                HEARD.fetch_add(1, super::Ordering::SeqCst);
            }
            static HEARD: super::AtomicUsize = super::AtomicUsize::new(0);
            // SAFETY: the handler only counts.
            unsafe { libc::signal(super::SIGINT, count as extern "C" fn(libc::c_int) as usize) };
            let noted = interruptible(|| {
                let before = coulis_ir::interrupt::is_asked();
                // SAFETY: a handler is there.
                unsafe { libc::raise(super::SIGINT) };
                (before, coulis_ir::interrupt::is_asked())
            });
            assert_eq!(noted, (false, true));
            // SAFETY: as above.
            unsafe { libc::raise(super::SIGINT) };
            assert_eq!(HEARD.load(super::Ordering::SeqCst), 2);
            let noted = interruptible(|| {
                interruptible(|| ());
                // SAFETY: as above.
                unsafe { libc::raise(super::SIGINT) };
                (coulis_ir::interrupt::is_asked(), interruptible(coulis_ir::interrupt::is_asked))
            });
            assert_eq!(noted, (true, true));
            assert_eq!(HEARD.load(super::Ordering::SeqCst), 3);
        }
    }
}
