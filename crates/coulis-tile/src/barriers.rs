//! Named barriers of a kernel: which ones the program uses itself, and which ones its variants take.
//!
//! A machine has sixteen barriers a block; number 0 is the barrier of the whole block. Sets of threads that wait side
//! by side need barriers of their own, and calls of one set may share one.

use std::cell::RefCell;
use std::collections::BTreeMap;

/// Barriers of a block.
const N_BARRIERS: u32 = 16;

/// The named barriers of one kernel.
#[derive(Clone, Debug, Default)]
pub struct NamedBarriers {
    used: Vec<u32>,
    taken: RefCell<BTreeMap<(u32, u32), u32>>,
}

impl NamedBarriers {
    /// Those that the program does not use itself.
    pub fn beside(used: Vec<u32>) -> NamedBarriers {
        NamedBarriers { used, taken: RefCell::default() }
    }

    /// The barrier of the `n_threads` threads from `first` on: always the same one for the same threads, and one of their
    /// own; `None` where all are in use.
    pub fn of(&self, first: u32, n_threads: u32) -> Option<u32> {
        let mut taken = self.taken.borrow_mut();
        if let Some(id) = taken.get(&(first, n_threads)) {
            return Some(*id);
        }
        let is_free = |id: &u32| !self.used.contains(id) && !taken.values().any(|other| other == id);
        let id = (1..N_BARRIERS).find(is_free)?;
        taken.insert((first, n_threads), id);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_threads_have_barriers_of_their_own_beside_those_of_the_program() {
        let barriers = NamedBarriers::beside(vec![1, 3]);
        assert_eq!(barriers.of(0, 128), Some(2));
        assert_eq!(barriers.of(128, 128), Some(4));
        assert_eq!(barriers.of(0, 128), Some(2));
        let last = (2..16).filter_map(|i| barriers.of(128 * i, 128)).max();
        assert_eq!((last, barriers.of(4096, 128)), (Some(15), None));
    }
}
