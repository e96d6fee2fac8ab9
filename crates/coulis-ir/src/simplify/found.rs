//! What an analyzer found out, in memory that goes from one to the next.

use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;

use super::interval::Interval;
use super::modular::Class;
use super::poly::{Atom, Poly};
use crate::expr::{Expr, VarId};
use crate::hash::{FastMap, Table};

/// What was found out about one expression, as far as it was asked for.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub simplified: Option<Expr>,
    pub interval: Option<Interval>,
    /// Its polynomial where arithmetic can look into it.
    pub expanded: Option<Option<Rc<Poly>>>,
    /// Its polynomial where it is an atom.
    pub leaf: Option<Rc<Poly>>,
    pub class: Option<Class>,
    pub holds_data: Option<bool>,
    pub open_divisors: Option<Rc<Vec<Expr>>>,
}

/// What was found out about an atom, as far as it was asked for.
#[derive(Debug, Default)]
pub(super) struct AtomFound {
    pub interval: Option<Interval>,
    /// How early a proof replaces it.
    pub rank: Option<(usize, u32)>,
}

/// What was found out under the present facts.
#[derive(Debug, Default)]
pub(super) struct Caches {
    /// Variables whose bounds, class or origin was asked for.
    pub looked_at: Table<VarId, ()>,
    pub exprs: Table<Expr, Found>,
    pub atoms: Table<Rc<Atom>, AtomFound>,
    /// Polynomials that were to be shown at least 0, and whether they were.
    pub proved: FastMap<Poly, bool>,
    pub facts: Option<Rc<Vec<Poly>>>,
}

impl Caches {
    /// Forgets all and keeps the memory.
    fn clear(&mut self) {
        let Caches { looked_at, exprs, atoms, proved, facts } = self;
        looked_at.clear();
        exprs.clear();
        atoms.clear();
        proved.clear();
        *facts = None;
    }
}

/// What was found out, in memory that another has left: analyzers come and go by the hundred with every
/// kernel, and memory that was used just now is still near.
#[derive(Debug)]
pub(super) struct FoundOut(RefCell<Caches>);

/// Empty caches of analyzers that are gone, at most.
const SPARE_CACHES: usize = 16;

/// Entries from which on memory is given back.
const MANY_ENTRIES: usize = 1 << 12;

thread_local! {
    static SPARE: RefCell<Vec<Caches>> = const { RefCell::new(Vec::new()) };
}

impl Default for FoundOut {
    fn default() -> FoundOut {
        let spare = SPARE.try_with(|spare| spare.borrow_mut().pop()).ok().flatten();
        FoundOut(RefCell::new(spare.unwrap_or_default()))
    }
}

impl Drop for FoundOut {
    fn drop(&mut self) {
        let caches = self.0.get_mut();
        if caches.exprs.capacity() == 0 || caches.exprs.capacity() > MANY_ENTRIES {
            return;
        }
        caches.clear();
        let caches = std::mem::take(caches);
        // Where the thread ends, there is nobody to leave it to.
        let _ = SPARE.try_with(|spare| {
            let mut spare = spare.borrow_mut();
            if spare.len() < SPARE_CACHES {
                spare.push(caches);
            }
        });
    }
}

impl Deref for FoundOut {
    type Target = RefCell<Caches>;

    fn deref(&self) -> &RefCell<Caches> {
        &self.0
    }
}
