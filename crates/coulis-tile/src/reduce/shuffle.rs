//! What crosses lanes of a warp: masks, carriers, shuffles, and trees of them over neighbours.

use coulis_ir::hash::FastSet;
use coulis_ir::visit::for_each_expr;
use coulis_ir::{Atom, AtomCall, BinaryOp, Buffer, DType, Expr, Node, Reducer, Stmt, Var};

use crate::block::constant;
use crate::reduce::state::{State, at, register, set, value};

/// The type of 4 or 8 bytes in which a shuffle carries a value without loss.
pub fn carrier(dtype: DType) -> DType {
    match dtype {
        DType::Bool | DType::I8 | DType::I16 | DType::I32 => DType::I32,
        DType::U8 | DType::U16 | DType::U32 => DType::U32,
        DType::F8E4M3 | DType::F8E5M2 | DType::F16 | DType::BF16 | DType::F32 => DType::F32,
        DType::I64 => DType::I64,
        DType::U64 => DType::U64,
        DType::F64 => DType::F64,
    }
}

/// The type of a mask with one bit a lane.
pub fn mask_dtype(warp: u32) -> DType {
    if warp <= 32 { DType::U32 } else { DType::U64 }
}

/// The mask of `n_lanes` lanes from `first` on, which lies in the warp.
pub fn mask_of(n_lanes: u32, first: &Expr, warp: u32) -> Expr {
    let dtype = mask_dtype(warp);
    let bits = Expr::int_of((1i128 << n_lanes) - 1, dtype);
    if first.is_int(0) {
        return bits;
    }
    Expr::binary(BinaryOp::Shl, bits, first.clone().cast(dtype))
}

/// Operations and fields of a step from which on trees are loops: written out, five steps of several
/// statistics are most of a kernel's text and of the time that its compiler takes, and a loop's own
/// instructions are few next to theirs.
const LONG: usize = 22;

/// Whether bringing and combining a state takes many operations.
pub(crate) fn is_long(reducer: &Reducer) -> bool {
    let mut operations = FastSet::default();
    for part in &reducer.combine.body {
        for_each_expr(part, &mut |e| {
            if !e.is_leaf() {
                operations.insert(e.clone());
            }
        });
    }
    operations.len() + reducer.fields.len() >= LONG
}

/// Whether values decide what the combination of two states does: then a lane must not combine what no lane gave.
fn decides(reducer: &Reducer) -> bool {
    let is_plain = |expr: &Expr| match expr.node() {
        Node::Int(_) | Node::Float(_) | Node::Var(_) | Node::Cast(_) => true,
        Node::Binary(op, ..) => matches!(
            op,
            BinaryOp::Add
                | BinaryOp::Sub
                | BinaryOp::Mul
                | BinaryOp::Min
                | BinaryOp::Max
                | BinaryOp::BitAnd
                | BinaryOp::BitOr
                | BinaryOp::BitXor
        ),
        _ => false,
    };
    let mut decides = false;
    for part in &reducer.combine.body {
        for_each_expr(part, &mut |e| decides |= !is_plain(e));
    }
    decides
}

/// `dst = shuffle(mask, value, lane, width, warp)`.
pub(crate) fn shuffle(
    atom: Atom,
    dst: &Buffer,
    mask: &Expr,
    value: Expr,
    lane: Expr,
    [width, warp]: [u32; 2],
) -> Stmt {
    let args = vec![mask.clone(), value, lane, constant(width), constant(warp)];
    Stmt::Atom(Box::new(AtomCall { atom, dst: Some(at(dst)), memory: None, args }))
}

/// A tree of shuffles over consecutive lanes: after it the first lane has the state of all.
pub struct ShuffleTree<'a> {
    /// The lanes that take part in the calling thread's tree, at least 1.
    pub n_lanes: u32,
    /// The calling thread's place among them.
    pub member: Expr,
    /// Value of the mask.
    pub mask: Expr,
    /// Lanes of a warp.
    pub warp: u32,
    /// Registers for what comes from other lanes, one a field, of the carriers' types.
    pub received: &'a [Buffer],
}

impl ShuffleTree<'_> {
    /// The shuffles and combinations, at halving distances.
    ///
    /// Distances at which all lanes do the same are a loop where a combination is long ([`is_long`]).
    pub fn fold(&self, state: &State) -> Vec<Stmt> {
        let mut stmts = Vec::new();
        let mut distance = self.n_lanes.next_power_of_two() / 2;
        if !self.n_lanes.is_power_of_two() {
            stmts.extend(self.step(state, constant(distance)));
            distance /= 2;
        }
        let n_steps = distance.checked_ilog2().map_or(0, |log| log + 1);
        if n_steps > 1 && is_long(state.reducer) {
            let step = Var::new("step", DType::I32);
            let delta = Expr::binary(BinaryOp::Shr, constant(distance), step.expr());
            let body = Stmt::seq(self.step(state, delta));
            stmts.push(Stmt::rolled(step, constant(n_steps), body));
            return stmts;
        }
        while distance > 0 {
            stmts.extend(self.step(state, constant(distance)));
            distance /= 2;
        }
        stmts
    }

    /// The shuffles from that distance, and the combination with what they bring.
    fn step(&self, state: &State, delta: Expr) -> Vec<Stmt> {
        let decides = decides(state.reducer);
        // A lane without a partner receives what no lane gave, and its own total is read by nobody. Where values decide,
        // it receives its own instead, or does not combine.
        let width = if decides && self.n_lanes.is_power_of_two() { self.n_lanes } else { self.warp };
        let mut stmts = Vec::new();
        for (to, from) in self.received.iter().zip(&state.registers) {
            let sent = value(from).cast(to.dtype);
            let widths = [width, self.warp];
            stmts.push(shuffle(Atom::ShuffleDown, to, &self.mask, sent, delta.clone(), widths));
        }
        let received: Vec<Expr> =
            self.received.iter().zip(&state.registers).map(|(r, s)| value(r).cast(s.dtype)).collect();
        let merge = state.merge(&received);
        let is_first = |distance: i128| 2 * distance > i128::from(self.n_lanes);
        stmts.push(if delta.as_int().is_some_and(is_first) {
            Stmt::if_((self.member.clone() + delta).lt(constant(self.n_lanes)), merge)
        } else if decides && width != self.n_lanes {
            Stmt::if_(self.member.clone().lt(delta), merge)
        } else {
            merge
        });
        stmts
    }

    /// Gives every lane the state of lane `first`.
    pub fn broadcast(&self, state: &State, first: &Expr) -> Vec<Stmt> {
        let mut stmts = Vec::new();
        for (carried, own) in self.received.iter().zip(&state.registers) {
            // A type that shuffles carry as it is needs no second register.
            let to = if carried.dtype == own.dtype { own } else { carried };
            let sent = value(own).cast(carried.dtype);
            stmts.push(shuffle(Atom::Shuffle, to, &self.mask, sent, first.clone(), [self.warp; 2]));
            if carried.dtype != own.dtype {
                stmts.push(set(own, value(carried).cast(own.dtype)));
            }
        }
        stmts
    }
}

/// Registers for what shuffles bring, one a field.
pub fn received(reducer: &Reducer) -> Vec<Buffer> {
    let fields = reducer.fields.iter().enumerate();
    fields.map(|(i, field)| register(&format!("t{i}"), carrier(field.dtype))).collect()
}
