//! What operations take and give: sizes of lanes, and which lanes are bools.

use coulis_ir::{BinaryOp, Intrinsic};

use super::asm::Isa;
use crate::ops::{Op, Reg};

/// A lane of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lane {
    pub bytes: usize,
    pub is_bool: bool,
}

/// The result and the vector operands of an operation. Scalars that are spread are no vector operands.
pub(super) struct Signature {
    pub out: Lane,
    pub args: [Option<Lane>; 3],
}

fn of(reg: Reg) -> Lane {
    Lane { bytes: reg.bytes(), is_bool: reg == Reg::Bool }
}

fn plain(bytes: usize) -> Lane {
    Lane { bytes, is_bool: false }
}

pub(super) fn is_comparison(op: BinaryOp) -> bool {
    use BinaryOp::{Eq, Ge, Gt, Le, Lt, Ne};
    matches!(op, Eq | Ne | Lt | Le | Gt | Ge)
}

/// `None` for operations that native code does not know.
pub(super) fn signature(op: Op) -> Option<Signature> {
    let one = |out, a| Signature { out, args: [Some(a), None, None] };
    Some(match op {
        Op::Binary(binary, reg) => {
            let out = if is_comparison(binary) { of(Reg::Bool) } else { of(reg) };
            Signature { out, args: [Some(of(reg)), Some(of(reg)), None] }
        }
        Op::Not => one(of(Reg::Bool), of(Reg::Bool)),
        Op::Select(bytes) => {
            let lane = plain(bytes.into());
            Signature { out: lane, args: [Some(of(Reg::Bool)), Some(lane), Some(lane)] }
        }
        Op::Copy(bytes) => one(plain(bytes.into()), plain(bytes.into())),
        Op::Broadcast(bytes) | Op::Ramp(bytes) => Signature { out: plain(bytes.into()), args: [None; 3] },
        Op::Cast(from, to) => one(of(to), of(from)),
        Op::Widen(dtype) => one(plain(4), plain(dtype.bytes())),
        Op::Narrow(dtype) => one(plain(dtype.bytes()), plain(4)),
        Op::Round(_) => one(plain(4), plain(4)),
        Op::Call(Intrinsic::IsNan | Intrinsic::IsInf | Intrinsic::IsFinite, reg) => {
            one(of(Reg::Bool), of(reg))
        }
        Op::Call(Intrinsic::Fma, reg) => {
            Signature { out: of(reg), args: [Some(of(reg)), Some(of(reg)), Some(of(reg))] }
        }
        Op::Call(_, reg) => one(of(reg), of(reg)),
        Op::Other => return None,
    })
}

/// Most lanes that native code handles in one instruction: those of a mask.
const MOST_LANES: u32 = 64;

/// Bytes of the lanes that an operation which gives bools looks at; `None` where those are bools themselves.
pub(super) fn compared_bytes(op: Op) -> Option<usize> {
    match op {
        Op::Binary(binary, reg) if is_comparison(binary) => Some(reg.bytes()),
        Op::Cast(reg, Reg::Bool) => Some(reg.bytes()),
        Op::Call(Intrinsic::IsNan | Intrinsic::IsInf | Intrinsic::IsFinite, reg) => Some(reg.bytes()),
        _ => None,
    }
}

/// Whether native code does the operation on so many lanes.
pub(super) fn is_native(op: Op, n: u32, isa: Isa) -> bool {
    // Those round once, which takes an instruction.
    if isa == Isa::Avx2 && matches!(op, Op::Cast(Reg::I64 | Reg::U64, Reg::F32)) {
        return false;
    }
    let Some(signature) = signature(op) else { return false };
    let widest = signature.args.iter().flatten().chain([&signature.out]).map(|lane| lane.bytes).max();
    if n > MOST_LANES || n as usize * widest.unwrap_or(1) > 512 {
        return false;
    }
    let is_float = |reg| matches!(reg, Reg::F32 | Reg::F64);
    match op {
        Op::Binary(binary, reg) => {
            use BinaryOp::{
                Add, And, BitAnd, BitOr, BitXor, Div, Eq, FloorDiv, FloorMod, Ge, Gt, Le, Lt, Max, Min, Mul,
                Ne, Or, Shl, Shr, Sub, TruncMod,
            };
            match binary {
                Add | Sub | Min | Max => reg != Reg::Bool,
                Mul => !matches!(reg, Reg::Bool | Reg::I8 | Reg::U8),
                Div => is_float(reg),
                Eq | Ne | Lt | Le => reg != Reg::Bool,
                And | Or => true,
                BitAnd | BitOr | BitXor => !is_float(reg),
                Shl | Shr => matches!(reg, Reg::I32 | Reg::U32 | Reg::I64 | Reg::U64),
                TruncMod | FloorDiv | FloorMod | Gt | Ge => false,
            }
        }
        Op::Not | Op::Select(_) | Op::Copy(_) | Op::Broadcast(_) => true,
        Op::Ramp(bytes) => bytes >= 4,
        Op::Cast(from, to) => !is_float(from) || is_float(to) || to == Reg::Bool,
        Op::Widen(_) | Op::Narrow(_) | Op::Round(_) => true,
        Op::Call(intrinsic, reg) => match intrinsic {
            Intrinsic::Abs => true,
            Intrinsic::Sqrt
            | Intrinsic::Rsqrt
            | Intrinsic::Floor
            | Intrinsic::Ceil
            | Intrinsic::Trunc
            | Intrinsic::Nearbyint
            | Intrinsic::IsNan
            | Intrinsic::IsInf
            | Intrinsic::IsFinite
            | Intrinsic::Fma => is_float(reg),
            Intrinsic::Exp | Intrinsic::Log => is_float(reg),
            Intrinsic::Exp2
            | Intrinsic::Exp2Ftz
            | Intrinsic::Log2
            | Intrinsic::Tanh
            | Intrinsic::Sigmoid
            | Intrinsic::Erf
            | Intrinsic::Sin
            | Intrinsic::Cos
            | Intrinsic::Pow
            | Intrinsic::Fmod
            | Intrinsic::AddFtz
            | Intrinsic::Max3
            | Intrinsic::Min3
            | Intrinsic::Round
            | Intrinsic::Popcount
            | Intrinsic::Likely => false,
        },
        Op::Other => false,
    }
}
