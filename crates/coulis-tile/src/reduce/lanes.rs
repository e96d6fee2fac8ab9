//! Folds over lanes of a warp, for lanes that lie any number apart.
//!
//! Members of a group differ in digits of their number. Where a digit's extent and distance are powers of two, partners
//! are found by exclusive or and all members end up with the total; otherwise the first member collects it at halving
//! distances and hands it out. Masks name the lanes that execute the fold, made from their numbers, never asked of
//! the machine.

use coulis_ir::{Atom, BinaryOp, Buffer, DType, Expr, Stmt, Var};

use crate::block::constant;
use crate::groups::Digit;
use crate::reduce::redux_sync::Redux;
use crate::reduce::shuffle::{is_long, mask_dtype, mask_of, shuffle};
use crate::reduce::state::{State, set, value};

/// Lanes that execute folds together.
pub(crate) struct Lanes<'a> {
    /// The mask.
    pub mask: Expr,
    /// Number of the calling lane, counted from the first of its warp or from a multiple of a warp's lanes before it.
    pub lane: Expr,
    /// Lanes of a warp.
    pub warp: u32,
    /// Registers for what comes from other lanes, one a field.
    pub received: &'a [Buffer],
    /// The instruction that folds a whole warp at once, where there is one.
    pub redux: Option<Redux>,
}

/// The mask of the calling thread's warp, where the first `n_threads` threads of the scope execute together and `rank`
/// numbers them.
pub(crate) fn mask_below(n_threads: u32, rank: &Expr, warp: u32) -> Expr {
    let first = |n: u32| mask_of(n, &constant(0), warp);
    let rest = n_threads % warp;
    match (n_threads / warp, rest) {
        (0, _) => first(rest),
        (_, 0) => first(warp),
        (whole, _) => Expr::select(rank.clone().lt(constant(whole * warp)), first(warp), first(rest))
            .cast(mask_dtype(warp)),
    }
}

impl Lanes<'_> {
    /// The fold over the members that differ in one digit; afterwards each has the total.
    pub fn fold(&self, state: &State, digit: Digit) -> Vec<Stmt> {
        if let Some(redux) = self.redux.filter(|_| digit == Digit { extent: self.warp, stride: 1 }) {
            return redux.fold(&self.mask, &state.registers, self.received);
        }
        if digit.extent.is_power_of_two() && digit.stride.is_power_of_two() {
            return self.by_exclusive_or(state, digit);
        }
        self.by_halves(state, digit)
    }

    fn bring(&self, atom: Atom, state: &State, lane: &Expr, width: u32) -> Vec<Stmt> {
        let parts = self.received.iter().zip(&state.registers);
        let one = |(to, from): (&Buffer, &Buffer)| {
            let sent = value(from).cast(to.dtype);
            shuffle(atom, to, &self.mask, sent, lane.clone(), [width, self.warp])
        };
        parts.map(one).collect()
    }

    fn received(&self, state: &State) -> Vec<Expr> {
        self.received.iter().zip(&state.registers).map(|(r, s)| value(r).cast(s.dtype)).collect()
    }

    fn by_exclusive_or(&self, state: &State, digit: Digit) -> Vec<Stmt> {
        let width = (digit.extent * digit.stride).min(self.warp);
        let step = |distance: Expr| {
            let mut stmts = self.bring(Atom::ShuffleXor, state, &distance, width);
            stmts.push(state.merge(&self.received(state)));
            stmts
        };
        let n_steps = digit.extent.ilog2();
        if n_steps > 1 && is_long(state.reducer) {
            let number = Var::new("step", DType::I32);
            let distance = Expr::binary(BinaryOp::Shl, constant(digit.stride), number.expr());
            return vec![Stmt::rolled(number, constant(n_steps), Stmt::seq(step(distance)))];
        }
        (0..n_steps).flat_map(|number| step(constant(digit.stride << number))).collect()
    }

    fn by_halves(&self, state: &State, digit: Digit) -> Vec<Stmt> {
        let Digit { extent, stride } = digit;
        let member = crate::reduce::lanes::digit_of(&self.lane, digit);
        let mut stmts = Vec::new();
        let mut live = extent;
        while live > 1 {
            let distance = live.next_power_of_two() / 2;
            // The lanes behind the last one are asked for no more than they have.
            let from = (self.lane.clone() + constant(distance * stride)).floormod(constant(self.warp));
            let takes = member.clone().lt(constant(live - distance));
            let from = Expr::select(takes.clone(), from, self.lane.clone().floormod(constant(self.warp)));
            stmts.extend(self.bring(Atom::Shuffle, state, &from, self.warp));
            stmts.push(Stmt::if_(takes, state.merge(&self.received(state))));
            live = distance;
        }
        let first = (self.lane.clone() - crate::block::scaled(member, stride)).floormod(constant(self.warp));
        stmts.extend(self.bring(Atom::Shuffle, state, &first, self.warp));
        for (register, carried) in state.registers.iter().zip(self.received) {
            stmts.push(set(register, value(carried).cast(register.dtype)));
        }
        stmts
    }
}

/// The digit of a thread's number, `int32`.
pub(crate) fn digit_of(number: &Expr, digit: Digit) -> Expr {
    let quotient = match digit.stride {
        1 => number.clone(),
        stride => number.clone().floordiv(constant(stride)),
    };
    quotient.floormod(constant(digit.extent))
}
