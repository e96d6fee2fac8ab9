//! The state of a thread that holds one element.
//!
//! Where an element is its own state and a state its own result, the destination's registers are the state, so that a
//! kernel whose source and destination are the same registers needs no others.

use coulis_ir::{Buffer, DType, Element, Expr, NanPolicy, Stmt};

use crate::facts::{Facts, finishes_nothing};
use crate::groups::Groups;
use crate::reduce::state::{State, at, lifts_nothing, registers_of, set, store_all, value};

/// The calling thread's element as a state.
pub struct OwnElement<'a> {
    facts: &'a Facts<'a>,
    member: Expr,
    /// The state.
    pub state: State<'a>,
    /// Registers to declare: those of the state where it has its own, and of the destinations' old values.
    pub declared: Vec<Buffer>,
    in_place: bool,
    old: Vec<Buffer>,
}

impl<'a> OwnElement<'a> {
    /// The element of the calling thread.
    pub fn new(facts: &'a Facts<'a>, groups: &Groups) -> OwnElement<'a> {
        let reducer = facts.reducer;
        let in_place = lifts_nothing(reducer) && finishes_nothing(reducer) && {
            let types = facts.dsts.iter().map(|dst| dst.register.dtype);
            types.eq(reducer.fields.iter().map(|field| field.dtype))
        };
        let state = match in_place {
            true => State { reducer, registers: facts.dsts.iter().map(|dst| dst.register.clone()).collect() },
            false => State::new(reducer),
        };
        let old = if facts.accum { registers_of(reducer, "old") } else { Vec::new() };
        let own = state.registers.iter().filter(|_| !in_place);
        let declared = own.chain(&old).cloned().collect();
        OwnElement { facts, member: groups.member(facts.block), state, declared, in_place, old }
    }

    /// Puts the state of the element in the registers.
    pub fn begin(&self) -> Vec<Stmt> {
        let facts = self.facts;
        let mut stmts = Vec::new();
        for (old, dst) in self.old.iter().zip(&facts.dsts) {
            stmts.push(set(old, value(&dst.register).cast(old.dtype)));
        }
        if self.in_place {
            let moves =
                self.state.registers.iter().zip(&facts.srcs).filter(|(to, src)| to.data != src.register.data);
            let (to, from): (Vec<_>, Vec<_>) = moves.map(|(to, src)| (at(to), value(&src.register))).unzip();
            stmts.push(store_all(&to, from));
            return stmts;
        }
        let elements: Vec<Expr> = facts.srcs.iter().map(|src| value(&src.register)).collect();
        let mut lifted = facts.reducer.lift(&elements, &self.member.clone().cast(DType::I64));
        if facts.reducer.nan == NanPolicy::Ignore
            && let Some(takes_part) = facts.reducer.takes_part(&elements)
        {
            let identity = facts.reducer.identity.iter().cloned();
            lifted = lifted
                .into_iter()
                .zip(identity)
                .map(|(x, none)| Expr::if_then_else(takes_part.clone(), x, none))
                .collect();
        }
        stmts.push(store_all(&self.state.places(), lifted));
        stmts
    }

    /// Puts the result in the destinations.
    pub fn end(&self) -> Vec<Stmt> {
        if self.in_place && !self.facts.accum {
            return Vec::new();
        }
        let dsts: Vec<Element> = self.facts.dsts.iter().map(|dst| at(&dst.register)).collect();
        let old: Option<Vec<Expr>> = self.facts.accum.then(|| self.old.iter().map(value).collect());
        vec![self.state.finish(&dsts, old.as_deref())]
    }
}
