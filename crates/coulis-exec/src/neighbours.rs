//! Strided reads of neighbouring elements side by side: machine code makes those of a few columns from the same bytes, which
//! it then reads once.

use std::collections::{BTreeMap, HashMap, HashSet};

use coulis_ir::BinaryOp;

use crate::code::{Base, Instr, Ptr, Slot};
use crate::compile::Compiled;
use crate::ops::{Op, Reg};

/// A scalar as a sum: factors of slots, and a constant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Sum {
    terms: BTreeMap<Slot, i64>,
    constant: i64,
}

impl Sum {
    fn plus(mut self, other: &Sum, times: i64) -> Option<Sum> {
        for (slot, factor) in &other.terms {
            let sum = self.terms.entry(*slot).or_default();
            *sum = sum.checked_add(factor.checked_mul(times)?)?;
        }
        self.terms.retain(|_, factor| *factor != 0);
        self.constant = self.constant.checked_add(other.constant.checked_mul(times)?)?;
        Some(self)
    }
}

/// Strided reads whose elements share 16 bytes.
pub(crate) fn n_together(bytes: u8) -> usize {
    match bytes {
        4 => 4,
        8 => 2,
        _ => 1,
    }
}

/// The sums of int64 slots, as far as they can be told.
pub(crate) struct Sums {
    writers: HashMap<Slot, Option<Instr>>,
    values: Vec<u64>,
    inputs: HashSet<Slot>,
}

impl Sums {
    pub(crate) fn of(compiled: &Compiled) -> Sums {
        let mut writers: HashMap<Slot, Option<Instr>> = HashMap::new();
        for instr in &compiled.code {
            for slot in instr.written_slots() {
                writers.entry(slot).and_modify(|w| *w = None).or_insert(Some(*instr));
            }
        }
        let inputs = compiled.inputs.iter().map(|input| input.slot).collect();
        Sums { writers, values: compiled.slots.clone(), inputs }
    }

    fn sum(&self, slot: Slot) -> Sum {
        self.known(slot, 0).unwrap_or_else(|| Sum { terms: BTreeMap::from([(slot, 1)]), constant: 0 })
    }

    fn known(&self, slot: Slot, depth: usize) -> Option<Sum> {
        match self.writers.get(&slot) {
            None if self.inputs.contains(&slot) => None,
            None => Some(Sum { constant: self.values[slot as usize] as i64, ..Sum::default() }),
            Some(Some(Instr::Scalar { op: Op::Binary(op, Reg::I64), a, b, .. })) if depth < 16 => {
                let part = |slot: Slot| {
                    let opaque = || Sum { terms: BTreeMap::from([(slot, 1)]), constant: 0 };
                    self.known(slot, depth + 1).unwrap_or_else(opaque)
                };
                let (a, b) = (part(*a), part(*b));
                match op {
                    BinaryOp::Add => a.plus(&b, 1),
                    BinaryOp::Sub => a.plus(&b, -1),
                    BinaryOp::Mul if b.terms.is_empty() => Sum::default().plus(&a, b.constant),
                    BinaryOp::Mul if a.terms.is_empty() => Sum::default().plus(&b, a.constant),
                    _ => None,
                }
            }
            Some(_) => None,
        }
    }

    /// How many elements the second of two strided reads of the same buffer, stride and length starts behind the first.
    pub(crate) fn distance(&self, first: &Instr, second: &Instr) -> Option<i64> {
        let (
            Instr::GatherStrided { base, index, stride, n, bytes, .. },
            Instr::GatherStrided {
                base: base_2,
                index: index_2,
                stride: stride_2,
                n: n_2,
                bytes: bytes_2,
                ..
            },
        ) = (first, second)
        else {
            return None;
        };
        if (base, stride, n, bytes) != (base_2, stride_2, n_2, bytes_2) {
            return None;
        }
        let between = self.sum(*index_2).plus(&self.sum(*index), -1)?;
        between.terms.is_empty().then_some(between.constant)
    }
}

/// Moves strided reads of neighbouring elements up to the first of them, where nothing in between hinders it.
pub(crate) fn bring_together(compiled: &mut Compiled) {
    if !compiled.code.iter().any(|i| matches!(i, Instr::GatherStrided { .. })) {
        return;
    }
    let sums = Sums::of(compiled);
    let points_into: HashMap<Ptr, Base> = compiled
        .code
        .iter()
        .filter_map(|i| if let Instr::Address { p, base, .. } = i { Some((*p, *base)) } else { None })
        .collect();
    for (from, to) in straight_pieces(&compiled.code) {
        let code = &mut compiled.code[from..to];
        let mut at = 0;
        while at < code.len() {
            let Instr::GatherStrided { base, bytes, .. } = code[at] else {
                at += 1;
                continue;
            };
            let found = neighbours(code, at, &sums, n_together(bytes), &|i| writes(i, base, &points_into));
            for (behind, j) in found.iter().enumerate() {
                code[at + 1 + behind..=*j].rotate_right(1);
            }
            at += 1 + found.len();
        }
    }
}

/// The positions of the reads of the next elements, in order, if all can be made at the position of the first.
fn neighbours(
    code: &[Instr],
    first: usize,
    sums: &Sums,
    wanted: usize,
    hinders: &dyn Fn(&Instr) -> bool,
) -> Vec<usize> {
    let mut found: Vec<usize> = Vec::new();
    let mut written: HashSet<Slot> = HashSet::new();
    for (at, instr) in code.iter().enumerate().skip(first + 1) {
        if found.len() + 1 >= wanted || hinders(instr) {
            break;
        }
        let is_next = sums.distance(&code[first], instr) == Some(found.len() as i64 + 1);
        if is_next && !instr.read_slots().iter().any(|slot| written.contains(slot)) {
            found.push(at);
        }
        written.extend(instr.written_slots());
    }
    if found.len() + 1 == wanted { found } else { Vec::new() }
}

/// Whether the instruction writes to the memory of the buffer, or gives it another.
fn writes(instr: &Instr, base: Base, points_into: &HashMap<Ptr, Base>) -> bool {
    match instr {
        Instr::Vector { d, .. } | Instr::Gather { d, .. } => points_into.get(d) == Some(&base),
        Instr::Store { base: b, .. }
        | Instr::ScatterStrided { base: b, .. }
        | Instr::Scatter { base: b, .. }
        | Instr::Alloc { base: b, .. }
        | Instr::Free { base: b } => *b == base,
        Instr::Scalar { .. }
        | Instr::Move { .. }
        | Instr::NonZero { .. }
        | Instr::VecNonZero { .. }
        | Instr::Load { .. }
        | Instr::Prefetch { .. }
        | Instr::Address { .. }
        | Instr::GatherStrided { .. }
        | Instr::For { .. }
        | Instr::Next { .. }
        | Instr::Jump { .. }
        | Instr::Unless { .. }
        | Instr::Parallel { .. } => false,
    }
}

/// Pieces of code that are left by their end alone and entered at their beginning alone.
pub(crate) fn straight_pieces(code: &[Instr]) -> Vec<(usize, usize)> {
    let mut cuts: HashSet<usize> = HashSet::from([0, code.len()]);
    for (at, instr) in code.iter().enumerate() {
        let target = match *instr {
            Instr::For { exit, .. } => Some(at + 1 + exit as usize),
            Instr::Next { back, .. } => Some(at - back as usize),
            Instr::Jump { by } | Instr::Unless { by, .. } => Some(at + 1 + by as usize),
            Instr::Parallel { len, .. } => Some(at + 1 + len as usize),
            _ => None,
        };
        if let Some(target) = target {
            cuts.extend([at, at + 1, target]);
        }
    }
    let mut cuts: Vec<usize> = cuts.into_iter().collect();
    cuts.sort_unstable();
    cuts.windows(2).map(|pair| (pair[0], pair[1])).collect()
}
