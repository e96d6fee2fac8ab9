//! The state of a fold in the calling thread's registers, and the statements that every variant shares.
//!
//! A state is cleared and fed with elements, or begins as the state of one element (`own_element.rs`); states are merged,
//! and finished. All components are computed before any is stored (contract N17); an element that does not take part
//! never reaches the fold (contract N2).

use coulis_ir::{Buffer, DType, Element, Expr, MemScope, NanPolicy, Reducer, Stmt, Var};

/// Registers of one state.
pub struct State<'a> {
    /// The reducer.
    pub reducer: &'a Reducer,
    /// One register a field.
    pub registers: Vec<Buffer>,
}

impl<'a> State<'a> {
    /// Bytes of one state.
    pub fn bytes(reducer: &Reducer) -> u64 {
        reducer.fields.iter().map(|field| field.dtype.bytes() as u64).sum()
    }

    /// New registers, `state0`, `state1`, ...
    pub fn new(reducer: &'a Reducer) -> State<'a> {
        State { reducer, registers: registers_of(reducer, "state") }
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
        Stmt::seq(self.registers.iter().zip(&self.reducer.identity).map(|(to, none)| set(to, none.clone())))
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
        self.merge_at(&self.places(), &self.values(), right)
    }

    /// Replaces the state at `places`, whose values are `left`, by itself combined with `right`, whose
    /// components are read before anything is asked of them: a combination may want one only where another
    /// says so, and would be a branch for each read.
    pub fn merge_at(&self, places: &[Element], left: &[Expr], right: &[Expr]) -> Stmt {
        let [_, _, ..] = right else { return store_all(places, self.reducer.merge(left, right)) };
        let names: Vec<Var> =
            right.iter().enumerate().map(|(i, x)| Var::new(&format!("other{i}"), x.dtype())).collect();
        let read: Vec<Expr> = names.iter().map(Var::expr).collect();
        let merged = store_all(places, self.reducer.merge(left, &read));
        names.into_iter().zip(right).rev().fold(merged, |body, (name, x)| Stmt::let_(name, x.clone(), body))
    }

    /// Stores the results; `old` states take part on the left, where there are any.
    pub fn finish(&self, dsts: &[Element], old: Option<&[Expr]>) -> Stmt {
        let results = match old {
            Some(old) => self.reducer.merge(old, &self.values()),
            None => self.reducer.finish(&self.values()),
        };
        store_all(dsts, results.into_iter().zip(dsts).map(|(x, dst)| x.cast(dst.buffer.dtype)).collect())
    }

    /// As [`State::finish`]; with `accum` what the destinations hold is the old state.
    pub fn finish_onto(&self, dsts: &[Element], accum: bool) -> Stmt {
        let held = dsts.iter().zip(&self.reducer.fields);
        let old: Option<Vec<Expr>> = accum.then(|| {
            held.map(|(dst, f)| Expr::load(dst.buffer.clone(), dst.indices.clone()).cast(f.dtype)).collect()
        });
        self.finish(dsts, old.as_deref())
    }
}

/// Whether an element is its own state, type and all.
pub(crate) fn lifts_nothing(reducer: &Reducer) -> bool {
    let inputs = reducer.lift.params.len() - 1;
    let params = reducer.lift.params[..inputs].iter().map(Var::expr);
    reducer.nan == NanPolicy::Propagate
        && reducer.lift.body.iter().cloned().eq(params)
        && reducer.input_dtypes().into_iter().eq(reducer.fields.iter().map(|f| f.dtype))
}

/// Registers for a state, `name0`, `name1`, ...
pub fn registers_of(reducer: &Reducer, name: &str) -> Vec<Buffer> {
    let fields = reducer.fields.iter().enumerate();
    fields.map(|(i, field)| register(&format!("{name}{i}"), field.dtype)).collect()
}

/// One register of the calling thread.
pub fn register(name: &str, dtype: DType) -> Buffer {
    Buffer::new(name, dtype, vec![Expr::int(1)], MemScope::Local)
}

/// The place of a register.
pub fn at(register: &Buffer) -> Element {
    Element { buffer: register.clone(), indices: vec![Expr::int(0)] }
}

/// The value of a register.
pub fn value(register: &Buffer) -> Expr {
    register.at([Expr::int(0)])
}

/// Stores a register.
pub fn set(register: &Buffer, value: Expr) -> Stmt {
    Stmt::store(register, [Expr::int(0)], value)
}

/// Stores values at places, all computed before the first is stored.
pub fn store_all(places: &[Element], values: Vec<Expr>) -> Stmt {
    let store = |place: &Element, value: Expr| Stmt::store(&place.buffer, place.indices.clone(), value);
    if let ([place], [value]) = (places, &values[..]) {
        return store(place, value.clone());
    }
    let names: Vec<Var> =
        values.iter().enumerate().map(|(i, v)| Var::new(&format!("new{i}"), v.dtype())).collect();
    let stores = Stmt::seq(places.iter().zip(&names).map(|(place, name)| store(place, name.expr())));
    names.into_iter().zip(values).rev().fold(stores, |body, (name, value)| Stmt::let_(name, value, body))
}
