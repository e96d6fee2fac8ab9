//! The state of a fold in the calling thread's registers: cleared, fed with elements, merged, finished.
//!
//! All components are computed before any is stored (contract N17); an element that does not take part never reaches
//! the fold (contract N2).

use coulis_ir::{Buffer, Element, Expr, Reducer, Stmt};

use crate::reduce::state::{at, register, store_all, value};

/// Registers of one state.
pub(crate) struct Partial<'a> {
    reducer: &'a Reducer,
    /// One register a field.
    pub registers: Vec<Buffer>,
}

impl<'a> Partial<'a> {
    /// New registers, `name0`, `name1`, ...
    pub fn new(reducer: &'a Reducer, name: &str) -> Partial<'a> {
        let fields = reducer.fields.iter().enumerate();
        Partial {
            reducer,
            registers: fields.map(|(i, f)| register(&format!("{name}{i}"), f.dtype)).collect(),
        }
    }

    /// The registers as places.
    pub fn places(&self) -> Vec<Element> {
        self.registers.iter().map(at).collect()
    }

    /// What they hold.
    pub fn values(&self) -> Vec<Expr> {
        self.registers.iter().map(value).collect()
    }

    /// Makes them the state of nothing.
    pub fn clear(&self) -> Stmt {
        let places = self.places();
        Stmt::seq(
            places
                .iter()
                .zip(&self.reducer.identity)
                .map(|(place, none)| Stmt::store(&place.buffer, place.indices.clone(), none.clone())),
        )
    }

    /// Takes in one element of each source, which stands at that position of the reduced axes.
    pub fn take(&self, elements: &[Expr], position: Expr) -> Stmt {
        let lifted = self.reducer.lift(elements, &position);
        let folded = store_all(&self.places(), self.reducer.fold(&self.values(), &lifted));
        match self.reducer.takes_part(elements) {
            Some(cond) => Stmt::if_(cond, folded),
            None => folded,
        }
    }

    /// Takes in another state.
    pub fn merge(&self, right: &[Expr]) -> Stmt {
        store_all(&self.places(), self.reducer.merge(&self.values(), right))
    }

    /// Stores the results; with `accum` what the destinations held takes part, on the left.
    pub fn finish(&self, dsts: &[Element], accum: bool) -> Stmt {
        let results = if accum {
            let fields = dsts.iter().zip(&self.reducer.fields);
            let old: Vec<Expr> = fields
                .map(|(dst, f)| Expr::load(dst.buffer.clone(), dst.indices.clone()).cast(f.dtype))
                .collect();
            self.reducer.merge(&old, &self.values())
        } else {
            self.reducer.finish(&self.values())
        };
        store_all(dsts, results.into_iter().zip(dsts).map(|(x, dst)| x.cast(dst.buffer.dtype)).collect())
    }
}
