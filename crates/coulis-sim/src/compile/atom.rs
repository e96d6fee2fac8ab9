//! Atoms: shuffles, votes, atomic updates, reads of other blocks, fences.

use coulis_ir::{Atom, AtomCall, BinaryOp, DType};

use super::{Compiler, depends_on};
use crate::code::{Instr, Operand, Shift, Update, Vote};
use crate::error::SimError;
use crate::lanes::{F2, binary, extremum};

/// What an atom does. The one place that tells atoms apart, so that a new one is not taken for another.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Meaning {
    Shuffle(Shift),
    ActiveMask,
    Vote(Vote),
    /// Folds the values of lanes.
    Redux(BinaryOp),
    /// Folds a value into memory.
    Fold(BinaryOp),
    Exchange,
    CompareSwap,
    ClusterLoad,
    Fence,
    Nothing,
}

const fn meaning(atom: Atom) -> Meaning {
    match atom {
        Atom::ShuffleDown => Meaning::Shuffle(Shift::Down),
        Atom::ShuffleUp => Meaning::Shuffle(Shift::Up),
        Atom::ShuffleXor => Meaning::Shuffle(Shift::Xor),
        Atom::Shuffle => Meaning::Shuffle(Shift::To),
        Atom::ActiveMask => Meaning::ActiveMask,
        Atom::Ballot => Meaning::Vote(Vote::Ballot),
        Atom::VoteAny => Meaning::Vote(Vote::Any),
        Atom::VoteAll => Meaning::Vote(Vote::All),
        Atom::ReduxAdd => Meaning::Redux(BinaryOp::Add),
        Atom::ReduxMin => Meaning::Redux(BinaryOp::Min),
        Atom::ReduxMax => Meaning::Redux(BinaryOp::Max),
        Atom::AtomicAdd => Meaning::Fold(BinaryOp::Add),
        Atom::AtomicMin => Meaning::Fold(BinaryOp::Min),
        Atom::AtomicMax => Meaning::Fold(BinaryOp::Max),
        Atom::AtomicExchange => Meaning::Exchange,
        Atom::AtomicCompareSwap => Meaning::CompareSwap,
        Atom::ClusterLoad => Meaning::ClusterLoad,
        Atom::ThreadFence => Meaning::Fence,
        Atom::Prefetch | Atom::PrefetchL2 => Meaning::Nothing,
    }
}

/// A call that the simulator has no instruction for.
fn unsupported(call: &AtomCall, dtype: DType) -> SimError {
    SimError::UnsupportedOp { op: call.atom.name().to_owned(), ty: coulis_ir::Ty::scalar(dtype) }
}

impl<'k, const W: usize> Compiler<'k, '_, W> {
    pub(super) fn atom(&mut self, call: &AtomCall) -> Result<(), SimError> {
        if matches!(meaning(call.atom), Meaning::Nothing) {
            return Ok(());
        }
        let args = call.args.iter().map(|a| self.scalar(a)).collect::<Result<Vec<_>, _>>()?;
        let wanted = call.atom.signature().arity();
        if args.len() != wanted {
            let op = format!("{} of {} arguments", call.atom.name(), args.len());
            return Err(SimError::UnsupportedOp { op, ty: coulis_ir::Ty::scalar(DType::I32) });
        }
        let active = call.args.first().is_some_and(|mask| depends_on(mask, &self.from_active));
        let d = self.new_registers(1);
        let needs = || unsupported(call, DType::I32);
        match meaning(call.atom) {
            Meaning::Shuffle(shift) => {
                let &[mask, value, lane, width, size] = &args[..] else { return Err(needs()) };
                self.emit(Instr::Shuffle { shift, d, mask, value, lane, width, size, active });
            }
            Meaning::ActiveMask => self.emit(Instr::ActiveMask { d }),
            Meaning::Vote(vote) => {
                let &[mask, pred] = &args[..] else { return Err(needs()) };
                self.emit(Instr::Vote { vote, d, mask, pred, active });
            }
            Meaning::Redux(op) => {
                let &[mask, value] = &args[..] else { return Err(needs()) };
                let dtype = call.args[1].dtype();
                let fold = redux(op, dtype).ok_or_else(|| unsupported(call, dtype))?;
                self.emit(Instr::Redux { fold, d, mask, value, active });
            }
            Meaning::Fold(op) => {
                let fold = |dtype| binary::<W>(op, dtype).map(Update::Fold);
                self.update(call, &args, d, fold)?;
            }
            Meaning::Exchange => self.update(call, &args, d, |_| Some(Update::Exchange))?,
            Meaning::CompareSwap => self.update(call, &args, d, |_| Some(Update::CompareSwap))?,
            Meaning::ClusterLoad => {
                let (&[block], Some(memory)) = (&args[..], &call.memory) else {
                    let op = format!("{} without memory", call.atom.name());
                    return Err(SimError::UnsupportedOp { op, ty: coulis_ir::Ty::scalar(DType::I32) });
                };
                let at = self.index(&memory.buffer, &memory.indices)?[0];
                let region = self.region(&memory.buffer)?;
                if !self.regions[region as usize].is_shared() {
                    let (buffer, scope) = (memory.buffer.name.clone(), memory.buffer.scope.name());
                    return Err(SimError::Scope { buffer, scope });
                }
                self.emit(Instr::ClusterLoad { d, region, at, block });
            }
            Meaning::Fence => {
                self.emit(Instr::Fence);
                return Ok(());
            }
            Meaning::Nothing => return Ok(()),
        }
        if let Some(dst) = &call.dst {
            let at = self.index(&dst.buffer, &dst.indices)?;
            self.store(&dst.buffer, &at, &[Operand::register(d)])?;
        }
        Ok(())
    }

    /// An update of memory; `update` says which one for memory of that type, if there is one.
    fn update(
        &mut self,
        call: &AtomCall,
        args: &[Operand],
        d: u32,
        update: impl FnOnce(DType) -> Option<Update<W>>,
    ) -> Result<(), SimError> {
        let (Some(memory), Some(&a)) = (&call.memory, args.first()) else {
            return Err(unsupported(call, DType::U32));
        };
        let dtype = memory.buffer.dtype;
        let update = update(dtype).ok_or_else(|| unsupported(call, dtype))?;
        let at = self.index(&memory.buffer, &memory.indices)?[0];
        let region = self.region(&memory.buffer)?;
        let b = args.get(1).copied().unwrap_or(a);
        self.emit(Instr::Atomic { update, d, region, at, a, b });
        Ok(())
    }
}

/// What folds the lanes of a warp; floats have extrema only.
fn redux<const W: usize>(op: BinaryOp, dtype: DType) -> Option<F2<W>> {
    match (op, dtype.is_float()) {
        (_, false) => binary(op, dtype),
        (BinaryOp::Min, true) => extremum(false, dtype),
        (BinaryOp::Max, true) => extremum(true, dtype),
        (_, true) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_atoms_do_the_same_and_hints_do_nothing() {
        let meanings = Atom::ALL.map(meaning);
        for (at, one) in meanings.iter().enumerate() {
            let atom = Atom::ALL[at];
            assert_eq!(*one == Meaning::Nothing, atom.is_hint(), "{}", atom.name());
            assert!(atom.is_hint() || !meanings[..at].contains(one), "{}", atom.name());
        }
    }
}
