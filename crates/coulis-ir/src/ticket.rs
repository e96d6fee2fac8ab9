//! The block of a launch that ends last, found by tickets.
//!
//! Each block stores what it has to hand over, meets at a barrier, and its first thread publishes all of that with a
//! fence and takes a ticket by an atomic addition; who gets the highest ticket fences again, so that after a second
//! barrier all threads of the block see what the other blocks left. The fence of one thread is enough on either side,
//! as barrier and fence together order what others did before, and one fence costs less than one a thread. The counter is
//! put back to 0 at the end, so that it is filled with zeros once and not before each call. Source: CUDA C++ Programming
//! Guide, memory fence functions; PTX ISA, memory consistency model (causality order).

use crate::atom::{Atom, AtomCall, Element};
use crate::buffer::{Buffer, MemScope};
use crate::dtype::DType;
use crate::expr::Expr;
use crate::kernel::Attr;
use crate::remark::{LEFT_ZERO, ZEROED};
use crate::stmt::{Stmt, SyncKind};

/// Tickets of groups of blocks.
#[derive(Clone, Debug)]
pub struct Tickets {
    counter: Buffer,
    ticket: Buffer,
    is_last: Buffer,
    row: Expr,
    is_first_thread: Option<Expr>,
}

impl Tickets {
    /// Tickets of `n_rows` groups of blocks; the executing block is one of group `row`. `is_first_thread` says whether the
    /// thread is the first of its block; `None` where there is one thread. The names of the memory begin with `name`.
    pub fn new(name: &str, n_rows: Expr, row: Expr, is_first_thread: Option<Expr>) -> Tickets {
        let buffer =
            |what: &str, dtype, n: Expr, scope| Buffer::new(&format!("{name}.{what}"), dtype, vec![n], scope);
        Tickets {
            counter: buffer("counter", DType::U32, n_rows, MemScope::Global),
            ticket: buffer("ticket", DType::U32, Expr::int(1), MemScope::Local),
            is_last: buffer("is_last", DType::Bool, Expr::int(1), MemScope::Shared),
            row,
            is_first_thread,
        }
    }

    /// Whether the executing block is the last of its group, which all its threads know after [`Tickets::around`] took one.
    pub fn is_last(&self) -> Expr {
        self.is_last.at([Expr::int(0)])
    }

    /// Takes a ticket, and then executes `last`, which does nothing in blocks that are not the last; `highest` is the
    /// number of blocks of a group less one.
    pub fn around(&self, highest: &Expr, last: Stmt) -> Stmt {
        let zero = [Expr::int(0)];
        let fence = || {
            let call = AtomCall { atom: Atom::ThreadFence, dst: None, memory: None, args: Vec::new() };
            Stmt::Atom(Box::new(call))
        };
        let place = Element { buffer: self.counter.clone(), indices: vec![self.row.clone()] };
        let take = Stmt::Atom(Box::new(AtomCall {
            atom: Atom::AtomicAdd,
            dst: Some(Element { buffer: self.ticket.clone(), indices: zero.to_vec() }),
            memory: Some(place),
            args: vec![Expr::int_of(1, DType::U32)],
        }));
        let answer = self.ticket.at(zero.clone()).equal(highest.clone());
        let decide = [fence(), take, fence(), Stmt::store(&self.is_last, zero.to_vec(), answer)];
        let reset = Stmt::store(&self.counter, vec![self.row.clone()], Expr::int_of(0, DType::U32));
        let body = Stmt::seq([
            Stmt::Sync(SyncKind::Cta),
            self.by_first_thread(Stmt::seq(decide)),
            Stmt::Sync(SyncKind::Cta),
            last,
            self.by_first_thread(Stmt::if_(self.is_last(), reset)),
        ]);
        Stmt::allocate(self.is_last.clone(), Stmt::allocate(self.ticket.clone(), body))
    }

    /// The memory of the counters around the launch, or around all that uses it.
    pub fn with_counter(self, body: Stmt) -> Stmt {
        let (key, value) = (ZEROED.to_owned(), Attr::Str(LEFT_ZERO.to_owned()));
        Stmt::Annotate { node: None, key, value, body: Box::new(Stmt::allocate(self.counter, body)) }
    }

    fn by_first_thread(&self, body: Stmt) -> Stmt {
        match &self.is_first_thread {
            Some(condition) => Stmt::if_(condition.clone(), body),
            None => body,
        }
    }
}
