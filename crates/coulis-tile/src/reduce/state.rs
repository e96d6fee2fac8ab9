//! The state of a reduction in the calling thread's registers, and the statements that every variant shares.
//!
//! Where an element is its own state and a state its own result, the destination's registers are the state, so that a
//! kernel whose source and destination are the same registers needs no others. All components of a state are computed
//! before any is stored (contract N17).

use coulis_ir::visit::for_each_expr;
use coulis_ir::{
    Atom, AtomCall, BinaryOp, Buffer, DType, Element, Expr, MemScope, NanPolicy, Node, Reducer, Stmt, Var,
};

use crate::block::constant;
use crate::facts::{Facts, finishes_nothing};
use crate::groups::Groups;

/// Registers of the calling thread that hold its state.
pub struct State<'a> {
    facts: &'a Facts<'a>,
    member: Expr,
    /// One register a field.
    pub registers: Vec<Buffer>,
    /// Registers to declare: those of the state where it has its own, and of the destinations' old values.
    pub declared: Vec<Buffer>,
    in_place: bool,
    old: Vec<Buffer>,
}

impl<'a> State<'a> {
    /// Bytes of one state.
    pub fn bytes(reducer: &Reducer) -> u64 {
        reducer.fields.iter().map(|field| field.dtype.bytes() as u64).sum()
    }

    /// The state of the calling thread.
    pub fn new(facts: &'a Facts<'a>, groups: &Groups) -> State<'a> {
        let reducer = facts.reducer;
        let in_place = lifts_nothing(reducer) && finishes_nothing(reducer) && {
            let types = facts.dsts.iter().map(|dst| dst.register.dtype);
            types.eq(reducer.fields.iter().map(|field| field.dtype))
        };
        let mut declared = Vec::new();
        let mut declare = |name: String, dtype: DType| {
            let buffer = register(&name, dtype);
            declared.push(buffer.clone());
            buffer
        };
        let registers = match in_place {
            true => facts.dsts.iter().map(|dst| dst.register.clone()).collect(),
            false => {
                let fields = reducer.fields.iter().enumerate();
                fields.map(|(i, field)| declare(format!("state{i}"), field.dtype)).collect()
            }
        };
        let old = match facts.accum {
            true => {
                let fields = reducer.fields.iter().enumerate();
                fields.map(|(i, field)| declare(format!("old{i}"), field.dtype)).collect()
            }
            false => Vec::new(),
        };
        State { facts, member: groups.member(facts.block), registers, declared, in_place, old }
    }

    /// Puts the state of the calling thread's own element in its registers.
    pub fn begin(&self) -> Vec<Stmt> {
        let facts = self.facts;
        let mut stmts = Vec::new();
        for (old, dst) in self.old.iter().zip(&facts.dsts) {
            stmts.push(set(old, value(&dst.register).cast(old.dtype)));
        }
        if self.in_place {
            let moves =
                self.registers.iter().zip(&facts.srcs).filter(|(to, src)| to.data != src.register.data);
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
        stmts.push(store_all(&self.places(), lifted));
        stmts
    }

    /// Puts the results of the registers' states in the destinations.
    pub fn end(&self) -> Vec<Stmt> {
        let dsts: Vec<Element> = self.facts.dsts.iter().map(|dst| at(&dst.register)).collect();
        let results = if self.facts.accum {
            let old: Vec<Expr> = self.old.iter().map(value).collect();
            self.facts.reducer.merge(&old, &self.values())
        } else if self.in_place {
            return Vec::new();
        } else {
            self.facts.reducer.finish(&self.values())
        };
        let results = results.into_iter().zip(&dsts).map(|(x, dst)| x.cast(dst.buffer.dtype)).collect();
        vec![store_all(&dsts, results)]
    }

    /// The registers as places.
    pub fn places(&self) -> Vec<Element> {
        self.registers.iter().map(at).collect()
    }

    /// The values of the registers.
    pub fn values(&self) -> Vec<Expr> {
        self.registers.iter().map(value).collect()
    }

    /// Replaces the state at `places`, whose values are `left`, by itself combined with `right`.
    pub fn merge(&self, places: &[Element], left: &[Expr], right: &[Expr]) -> Stmt {
        store_all(places, self.facts.reducer.merge(left, right))
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
    pub fn fold(&self, state: &State) -> Vec<Stmt> {
        let mut stmts = Vec::new();
        let decides = decides(state.facts.reducer);
        // A lane without a partner receives what no lane gave, and its own total is read by nobody. Where values decide,
        // it receives its own instead, or does not combine.
        let width = if decides && self.n_lanes.is_power_of_two() { self.n_lanes } else { self.warp };
        let mut distance = self.n_lanes.next_power_of_two() / 2;
        while distance > 0 {
            let delta = constant(distance);
            for (to, from) in self.received.iter().zip(&state.registers) {
                let sent = value(from).cast(to.dtype);
                let widths = [width, self.warp];
                stmts.push(shuffle(Atom::ShuffleDown, to, &self.mask, sent, delta.clone(), widths));
            }
            let received: Vec<Expr> =
                self.received.iter().zip(&state.registers).map(|(r, s)| value(r).cast(s.dtype)).collect();
            let merge = state.merge(&state.places(), &state.values(), &received);
            stmts.push(if 2 * distance > self.n_lanes {
                Stmt::if_((self.member.clone() + delta).lt(constant(self.n_lanes)), merge)
            } else if decides && width != self.n_lanes {
                Stmt::if_(self.member.clone().lt(delta), merge)
            } else {
                merge
            });
            distance /= 2;
        }
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
