//! The threads of a block that reach a call.
//!
//! A condition that depends on the thread's number alone is decided thread by thread, so that any form of guard is
//! known exactly. One that also depends on values of the run is not decided; what is known of it is how many
//! consecutive threads it never tells apart, and a scope of at most that many threads comes whole or not at all.

use coulis_ir::hash::FastMap;

/// The threads of a block that reach a call, as far as conditions around it are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActiveSet {
    /// Whether each thread passes every condition that its number decides.
    threads: Vec<bool>,
    /// Whether all do.
    is_everyone: bool,
    /// Conditions that values of the run decide, with the number of consecutive threads, aligned at multiples of it,
    /// for which they come out alike.
    undecided: Vec<(String, u32)>,
    /// Conditions that keep some thread away, as text.
    guards: Vec<String>,
}

impl ActiveSet {
    /// All threads of a block.
    pub fn all(n_threads: u32) -> ActiveSet {
        let threads = vec![true; n_threads as usize];
        ActiveSet { threads, is_everyone: true, undecided: Vec::new(), guards: Vec::new() }
    }

    /// The threads among these that pass a condition, whose text is `cond`.
    pub fn restricted(&self, cond: &str, passes: &[bool]) -> ActiveSet {
        let mut new = self.clone();
        for (active, passes) in new.threads.iter_mut().zip(passes) {
            *active &= passes;
        }
        new.is_everyone &= new.threads.iter().all(|comes| *comes);
        if new.threads != self.threads {
            new.guards.push(cond.to_owned());
        }
        new
    }

    /// The same under a condition that the run decides, alike for `grain` consecutive threads.
    pub fn under(&self, cond: &str, grain: u32) -> ActiveSet {
        let mut new = self.clone();
        new.undecided.push((cond.to_owned(), grain.max(1)));
        new
    }

    /// Threads of the block.
    pub fn n_threads(&self) -> u32 {
        self.threads.len() as u32
    }

    /// Whether the thread may reach the call.
    pub fn may_come(&self, thread: u32) -> bool {
        self.threads.get(thread as usize).copied().unwrap_or(false)
    }

    /// Whether every thread of the block reaches the call whenever one does.
    pub fn is_whole(&self) -> bool {
        self.split_by(|_| 0).is_none()
    }

    /// Why the sets of threads that `set_of` numbers do not each come whole or not at all; `None` where they do.
    pub fn split_by(&self, set_of: impl Fn(u32) -> u32) -> Option<String> {
        if self.undecided.is_empty() && self.is_everyone {
            return None;
        }
        let mut first: FastMap<u32, (u32, bool)> = FastMap::default();
        for thread in 0..self.n_threads() {
            let comes = self.may_come(thread);
            let (leader, known) = *first.entry(set_of(thread)).or_insert((thread, comes));
            if known != comes {
                return Some(self.reason());
            }
            if !comes {
                continue;
            }
            if let Some((cond, _)) = self.undecided.iter().find(|(_, grain)| thread / grain != leader / grain)
            {
                return Some(format!("`{cond}`, which may differ between them"));
            }
        }
        None
    }

    /// The guards as a phrase.
    fn reason(&self) -> String {
        match self.guards.last() {
            Some(cond) => format!("only those with `{cond}`"),
            None => "only some of them".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn below(n: u32, limit: u32) -> ActiveSet {
        let passes: Vec<bool> = (0..n).map(|t| t < limit).collect();
        ActiveSet::all(n).restricted("tid < limit", &passes)
    }

    #[test]
    fn a_guard_splits_the_scopes_that_it_cuts() {
        let set = below(128, 32);
        assert!(!set.is_whole());
        assert!(set.split_by(|t| t / 32).is_none());
        assert_eq!(set.split_by(|t| t / 64).unwrap(), "only those with `tid < limit`");
        assert!(below(128, 128).is_whole());
    }

    #[test]
    fn a_condition_of_the_run_leaves_whole_what_it_does_not_tell_apart() {
        let set = ActiveSet::all(128).under("row < n", 32);
        assert!(set.split_by(|t| t / 32).is_none());
        assert!(set.split_by(|t| t / 16).is_none());
        assert!(set.split_by(|t| t / 64).unwrap().contains("`row < n`"));
        assert!(ActiveSet::all(32).under("row < n", 32).is_whole());
    }

    #[test]
    fn a_thread_that_never_comes_is_not_split_off_by_the_run() {
        assert!(below(64, 32).under("row < n", 32).split_by(|t| t / 32).is_none());
    }
}
