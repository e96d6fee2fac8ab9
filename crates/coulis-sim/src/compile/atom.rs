//! Atoms: shuffles, votes, atomic updates, reads of other blocks, fences.

use coulis_ir::{Atom, AtomCall, BinaryOp, DType, Signature};

use super::{Compiler, depends_on};
use crate::code::{Instr, Operand, Update};
use crate::error::SimError;
use crate::lanes::{F2, binary, extremum};

impl<'k, const W: usize> Compiler<'k, '_, W> {
    pub(super) fn atom(&mut self, call: &AtomCall) -> Result<(), SimError> {
        if call.atom.is_hint() {
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
        match (call.atom.signature(), &args[..]) {
            (Signature::Shuffle, &[mask, value, lane, width, size]) => {
                let atom = call.atom;
                self.emit(Instr::Shuffle { atom, d, mask, value, lane, width, size, active });
            }
            (Signature::Mask, _) => self.emit(Instr::ActiveMask { d }),
            (Signature::Ballot | Signature::Vote, &[mask, pred]) => {
                self.emit(Instr::Vote { atom: call.atom, d, mask, pred, active });
            }
            (Signature::Redux, &[mask, value]) => {
                let fold = redux(call)?;
                self.emit(Instr::Redux { fold, d, mask, value, active });
            }
            (Signature::Update | Signature::Exchange, _) => self.update(call, &args, d)?,
            (Signature::Remote, &[block]) => {
                let Some(memory) = &call.memory else {
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
            (
                Signature::Fence
                | Signature::Hint
                | Signature::Shuffle
                | Signature::Ballot
                | Signature::Vote
                | Signature::Redux
                | Signature::Remote,
                _,
            ) => {
                self.emit(Instr::Fence);
                return Ok(());
            }
        }
        if let Some(dst) = &call.dst {
            let at = self.index(&dst.buffer, &dst.indices)?;
            self.store(&dst.buffer, &at, &[Operand::register(d)])?;
        }
        Ok(())
    }

    fn update(&mut self, call: &AtomCall, args: &[Operand], d: u32) -> Result<(), SimError> {
        let unsupported = |dtype| SimError::UnsupportedOp {
            op: call.atom.name().to_owned(),
            ty: coulis_ir::Ty::scalar(dtype),
        };
        let Some(memory) = &call.memory else { return Err(unsupported(DType::U32)) };
        let dtype = memory.buffer.dtype;
        let fold = |op| binary::<W>(op, dtype).map(Update::Fold).ok_or_else(|| unsupported(dtype));
        let update = match call.atom {
            Atom::AtomicAdd => fold(BinaryOp::Add)?,
            Atom::AtomicMin => fold(BinaryOp::Min)?,
            Atom::AtomicMax => fold(BinaryOp::Max)?,
            Atom::AtomicExchange => Update::Exchange,
            Atom::AtomicCompareSwap => Update::CompareSwap,
            Atom::ShuffleDown
            | Atom::ShuffleUp
            | Atom::ShuffleXor
            | Atom::Shuffle
            | Atom::ActiveMask
            | Atom::Ballot
            | Atom::VoteAny
            | Atom::VoteAll
            | Atom::ReduxAdd
            | Atom::ReduxMin
            | Atom::ReduxMax
            | Atom::ClusterLoad
            | Atom::ThreadFence
            | Atom::Prefetch
            | Atom::PrefetchL2 => return Err(unsupported(dtype)),
        };
        let at = self.index(&memory.buffer, &memory.indices)?[0];
        let region = self.region(&memory.buffer)?;
        let (a, b) = (args[0], args.get(1).copied().unwrap_or(args[0]));
        self.emit(Instr::Atomic { update, d, region, at, a, b });
        Ok(())
    }
}

/// What folds the lanes of a warp.
fn redux<const W: usize>(call: &AtomCall) -> Result<F2<W>, SimError> {
    let dtype = call.args.get(1).map_or(DType::I32, coulis_ir::Expr::dtype);
    let fold = match (call.atom, dtype.is_float()) {
        (Atom::ReduxAdd, false) => binary(BinaryOp::Add, dtype),
        (Atom::ReduxMin, false) => binary(BinaryOp::Min, dtype),
        (Atom::ReduxMax, false) => binary(BinaryOp::Max, dtype),
        (Atom::ReduxMin, true) => extremum(false, dtype),
        (Atom::ReduxMax, true) => extremum(true, dtype),
        _ => None,
    };
    fold.ok_or_else(|| SimError::UnsupportedOp {
        op: call.atom.name().to_owned(),
        ty: coulis_ir::Ty::scalar(dtype),
    })
}
