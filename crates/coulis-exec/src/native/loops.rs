//! Innermost loops whose addresses grow by a constant: checked once before the loop, then one pointer for all addresses
//! of a buffer that keep their distance.

use std::collections::{HashMap, HashSet};

use coulis_ir::BinaryOp;

use super::asm::{Gpr, R8, R9, R10, RDI, RSI};
use super::plan::{Operand, Plan, calls_out};
use crate::code::{Base, Instr, Ptr, PtrKind, Slot};
use crate::compile::Compiled;
use crate::ops::{Op, Reg};

/// Registers for pointers of innermost loops.
pub(super) const POINTERS: [Gpr; 5] = [RSI, RDI, R8, R9, R10];

/// A sum of scalars that do not change in the loop, times factors, plus the loop variable times `step`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Affine {
    pub terms: Vec<(i64, Slot)>,
    pub step: i64,
    pub constant: i64,
}

/// Addresses of a buffer that differ by constants.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub base: Base,
    pub affine: Affine,
    pub bytes: u8,
    /// Least element and end of the elements that one iteration touches, from the address of constant 0.
    pub low: i64,
    pub high: i64,
    pub pointer: Gpr,
}

/// An innermost loop.
#[derive(Clone, Debug, Default)]
pub(super) struct Inner {
    pub groups: Vec<Group>,
    /// Pointer entries that are a constant away from the pointer of a group.
    pub addresses: HashMap<Ptr, (Gpr, i32)>,
    /// The same of the places that hints are about, by position.
    pub hints: HashMap<usize, (Gpr, i32)>,
    /// The same of the first elements of strided reads, by position, and how many bytes the next ones are away.
    pub gathers: HashMap<usize, (Gpr, i32, i32)>,
    /// Positions of instructions that are not needed any more.
    pub dropped: HashSet<usize>,
    /// Whether the loop variable is read by what remains.
    pub needs_variable: bool,
}

/// What is known of the scalar slots of a program.
pub(super) struct Slots {
    /// Position of the only instruction that writes the slot; `None` for several.
    writers: HashMap<Slot, Option<usize>>,
    inputs: HashSet<Slot>,
    values: Vec<u64>,
}

impl Slots {
    pub(super) fn of(compiled: &Compiled) -> Slots {
        let mut writers: HashMap<Slot, Option<usize>> = HashMap::new();
        for (at, instr) in compiled.code.iter().enumerate() {
            for slot in instr.written_slots() {
                writers.entry(slot).and_modify(|w| *w = None).or_insert(Some(at));
            }
        }
        let inputs = compiled.inputs.iter().map(|input| input.slot).collect();
        Slots { writers, inputs, values: compiled.slots.clone() }
    }

    /// The int64 that the slot always holds.
    pub(super) fn constant(&self, slot: Slot) -> Option<i64> {
        let changes = self.writers.contains_key(&slot) || self.inputs.contains(&slot);
        (!changes).then(|| self.values[slot as usize] as i64)
    }

    /// How many elements below the first one an instruction reaches, where the last one ends, and how far the
    /// lanes are apart.
    fn reach(&self, instr: &Instr) -> Option<(i64, i64, i32)> {
        match *instr {
            Instr::Address { n, .. } => Some((0, n.into(), 1)),
            Instr::GatherStrided { stride, n, .. } => {
                let stride = self.constant(stride).filter(|s| s.abs() < FARTHEST_APART)?;
                let last = stride * (i64::from(n) - 1);
                Some(((-last).max(0), last.max(0) + 1, stride as i32))
            }
            _ => None,
        }
    }

    fn affine(&self, code: &[Instr], slot: Slot, inner: (usize, usize), var: Slot) -> Option<Affine> {
        if slot == var {
            return Some(Affine { step: 1, ..Affine::default() });
        }
        if let Some(constant) = self.constant(slot) {
            return Some(Affine { constant, ..Affine::default() });
        }
        let writer = match self.writers.get(&slot) {
            Some(writer) => Some((*writer)?),
            None => None,
        };
        let Some(at) = writer.filter(|at| inner.0 <= *at && *at <= inner.1) else {
            return Some(Affine { terms: vec![(1, slot)], ..Affine::default() });
        };
        let Instr::Scalar { op: Op::Binary(op, Reg::I64), a, b, .. } = code[at] else { return None };
        let (a, b) = (self.affine(code, a, inner, var)?, self.affine(code, b, inner, var)?);
        match op {
            BinaryOp::Add => a.plus(&b, 1),
            BinaryOp::Sub => a.plus(&b, -1),
            BinaryOp::Mul if b.is_constant() => Affine::default().plus(&a, b.constant),
            BinaryOp::Mul if a.is_constant() => Affine::default().plus(&b, a.constant),
            BinaryOp::Shl if b.is_constant() && (0..31).contains(&b.constant) => {
                Affine::default().plus(&a, 1 << b.constant)
            }
            _ => None,
        }
    }
}

/// Lanes that are farther apart are found one by one.
const FARTHEST_APART: i64 = 1 << 16;

/// Larger factors are not worth the care for their overflow.
const MOST: i64 = 1 << 30;

impl Affine {
    fn is_constant(&self) -> bool {
        self.terms.is_empty() && self.step == 0
    }

    fn plus(mut self, other: &Affine, times: i64) -> Option<Affine> {
        let product = |x: i64| x.checked_mul(times).filter(|p| p.abs() <= MOST);
        for (factor, slot) in &other.terms {
            let factor = product(*factor)?;
            match self.terms.iter_mut().find(|(_, s)| s == slot) {
                Some((f, _)) => *f = f.checked_add(factor).filter(|f| f.abs() <= MOST)?,
                None => self.terms.push((factor, *slot)),
            }
        }
        self.terms.retain(|(factor, _)| *factor != 0);
        self.terms.sort_by_key(|(_, slot)| *slot);
        self.step = self.step.checked_add(product(other.step)?).filter(|s| s.abs() <= MOST)?;
        self.constant = self.constant.checked_add(product(other.constant)?).filter(|c| c.abs() <= MOST)?;
        Some(self)
    }
}

/// The loop over what lies between those positions; `None` where it holds another loop.
pub(super) fn inner(
    compiled: &Compiled,
    slots: &Slots,
    plan: &Plan,
    (first, last): (usize, usize),
    (var, wide): (Slot, bool),
) -> Option<Inner> {
    let code = &compiled.code;
    let body = first + 1..last;
    let nested = |i: &Instr| {
        matches!(i, Instr::For { .. } | Instr::Parallel { .. } | Instr::Alloc { .. } | Instr::Free { .. })
    };
    if code[body.clone()].iter().any(nested) {
        return None;
    }
    let mut inner = Inner::default();
    if wide {
        inner.find_groups(compiled, slots, plan, (first, last), var);
        inner.place_hints(compiled, slots, first, last, var);
    }
    inner.drop_unneeded(compiled, first, last, var);
    Some(inner)
}

impl Inner {
    fn find_groups(
        &mut self,
        compiled: &Compiled,
        slots: &Slots,
        plan: &Plan,
        (first, last): (usize, usize),
        var: Slot,
    ) {
        let isa = plan.isa;
        let has_place =
            |p: Ptr| matches!(plan.operands.get(&p), Some(Operand::Variable(_) | Operand::Static(..)));
        let code = &compiled.code;
        let mut called: HashSet<Ptr> = HashSet::new();
        for instr in code[first + 1..last].iter().filter(|i| calls_out(i, isa)) {
            let (written, read) = instr.vector_operands();
            called.extend(written.into_iter().chain(read));
        }
        for at in first + 1..last {
            let (base, index, bytes) = match code[at] {
                Instr::Address { p, base, index, bytes, .. } if !called.contains(&p) && !has_place(p) => {
                    (base, index, bytes)
                }
                Instr::GatherStrided { base, index, bytes, .. } if !calls_out(&code[at], isa) => {
                    (base, index, bytes)
                }
                _ => continue,
            };
            let Some((below, above, apart)) = slots.reach(&code[at]) else { continue };
            let Some(mut affine) = slots.affine(code, index, (first, last), var) else { continue };
            let constant = std::mem::take(&mut affine.constant);
            let (low, high) = (constant - below, constant + above);
            let Ok(away) = i32::try_from(constant * i64::from(bytes)) else { continue };
            let same = |g: &&mut Group| g.base == base && g.affine == affine && g.bytes == bytes;
            let pointer = if let Some(group) = self.groups.iter_mut().find(same) {
                group.low = group.low.min(low);
                group.high = group.high.max(high);
                group.pointer
            } else if let Some(pointer) = POINTERS.get(self.groups.len()) {
                self.groups.push(Group { base, affine, bytes, low, high, pointer: *pointer });
                *pointer
            } else {
                continue;
            };
            if let Instr::Address { p, .. } = code[at] {
                self.addresses.insert(p, (pointer, away));
                self.dropped.insert(at);
            } else {
                self.gathers.insert(at, (pointer, away, apart * i32::from(bytes)));
            }
        }
    }

    /// Hints near the addresses of a group take its pointer; others would cost more than they bring.
    fn place_hints(&mut self, compiled: &Compiled, slots: &Slots, first: usize, last: usize, var: Slot) {
        for at in first + 1..last {
            let Instr::Prefetch { base, index, bytes, .. } = compiled.code[at] else { continue };
            let place = slots.affine(&compiled.code, index, (first, last), var).and_then(|mut affine| {
                let constant = std::mem::take(&mut affine.constant);
                let group = self.groups.iter().find(|g| g.base == base && g.affine == affine)?;
                Some((group.pointer, i32::try_from(constant * i64::from(bytes)).ok()?))
            });
            match place {
                Some(place) => {
                    self.hints.insert(at, place);
                }
                None => {
                    self.dropped.insert(at);
                }
            }
        }
    }

    /// Drops scalar instructions whose results only dropped instructions read.
    fn drop_unneeded(&mut self, compiled: &Compiled, first: usize, last: usize, var: Slot) {
        let code = &compiled.code;
        let mut needed: HashSet<Slot> = HashSet::new();
        for (at, instr) in code.iter().enumerate() {
            if at <= first || last <= at {
                needed.extend(instr.read_slots());
                needed.extend(slot_operands(compiled, instr));
            }
        }
        needed.remove(&var);
        for at in (first + 1..last).rev() {
            let instr = &code[at];
            if let Instr::Scalar { d, .. } = instr
                && !needed.contains(d)
            {
                self.dropped.insert(at);
            }
            let is_pointed = self.hints.contains_key(&at) || self.gathers.contains_key(&at);
            if !self.dropped.contains(&at) && !is_pointed {
                needed.extend(instr.read_slots());
                needed.extend(slot_operands(compiled, instr));
            }
        }
        self.needs_variable = needed.contains(&var);
    }
}

/// Slots that an instruction reads through its pointers.
fn slot_operands(compiled: &Compiled, instr: &Instr) -> Vec<Slot> {
    let (_, read) = instr.vector_operands();
    let slot = |p: Ptr| match compiled.ptrs[p as usize] {
        PtrKind::Slot(slot) => Some(slot),
        PtrKind::Register { .. } | PtrKind::Address => None,
    };
    read.into_iter().filter_map(slot).collect()
}
