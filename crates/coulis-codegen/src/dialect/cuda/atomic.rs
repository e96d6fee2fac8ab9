//! Shuffles, votes, atomics, reads of another block's shared memory and the fence.
//!
//! Types of 1 and 2 bytes travel through shuffles as `int`, types that live in memory only as `float`. Atomic sums of
//! `float` are loops of compare-and-swap: the instruction flushes subnormals in global memory (PTX ISA, `atom.add`),
//! which contract N10 forbids. Extrema of floats keep the IR's comparison in the same way.

use coulis_ir::{Atom, DType};

use super::FN;
use crate::EmitError;
use crate::c::code::{Code, Prec};
use crate::c::helper::{Helper, Needs};
use crate::c::types::{CTy, VTy};

/// The value of an atom.
pub fn spell(
    atom: Atom,
    dtype: DType,
    address: Option<&Code>,
    args: &[Code],
    needs: &mut dyn Needs,
) -> Result<Code, EmitError> {
    let unsupported =
        || EmitError::Unsupported { dialect: "cuda", what: format!("`T.{}` of `{dtype}`", atom.name()) };
    let call = |name: &str, args: &[Code]| Code::call(name, &args.iter().collect::<Vec<_>>());
    // The last argument of a shuffle is the warp's size, which the machine knows.
    let shuffle = |name: &str| Ok(call(name, &args[..args.len().min(4)]));
    let vote = |name: &str| {
        let text = format!("({} != 0)", call(name, args).text);
        Ok(Code { text, prec: Prec::Primary })
    };
    match atom {
        Atom::ShuffleDown => shuffle("__shfl_down_sync"),
        Atom::ShuffleUp => shuffle("__shfl_up_sync"),
        Atom::ShuffleXor => shuffle("__shfl_xor_sync"),
        Atom::Shuffle => shuffle("__shfl_sync"),
        Atom::ActiveMask => Ok(Code::primary("__activemask()")),
        Atom::Ballot => Ok(call("__ballot_sync", args)),
        Atom::VoteAny => vote("__any_sync"),
        Atom::VoteAll => vote("__all_sync"),
        Atom::ReduxAdd | Atom::ReduxMin | Atom::ReduxMax => match (atom, dtype) {
            (Atom::ReduxAdd, DType::I32 | DType::U32) => Ok(call("__reduce_add_sync", args)),
            (Atom::ReduxMin, DType::I32 | DType::U32) => Ok(call("__reduce_min_sync", args)),
            (Atom::ReduxMax, DType::I32 | DType::U32) => Ok(call("__reduce_max_sync", args)),
            (Atom::ReduxMin | Atom::ReduxMax, DType::F32) => {
                Ok(call(&needs.helper(Helper::Atomic(atom, dtype))?, args))
            }
            _ => Err(unsupported()),
        },
        Atom::ClusterLoad => {
            let address = address.ok_or_else(unsupported)?;
            let with: Vec<&Code> = std::iter::once(address).chain(args).collect();
            let loaded = Code::call(&needs.helper(Helper::ClusterLoad(dtype))?, &with);
            match dtype {
                DType::Bool => Ok(Code::primary(format!("({} != 0)", loaded.text))),
                DType::F16 | DType::BF16 | DType::F8E4M3 | DType::F8E5M2 => {
                    Ok(Code::call(&needs.helper(Helper::Widen(dtype))?, &[&loaded]))
                }
                DType::I8
                | DType::I16
                | DType::I32
                | DType::I64
                | DType::U8
                | DType::U16
                | DType::U32
                | DType::U64
                | DType::F32
                | DType::F64 => Ok(loaded),
            }
        }
        Atom::ThreadFence => Ok(Code::primary("__threadfence()")),
        Atom::AtomicAdd
        | Atom::AtomicMin
        | Atom::AtomicMax
        | Atom::AtomicExchange
        | Atom::AtomicCompareSwap
        | Atom::Prefetch
        | Atom::PrefetchL2 => {
            let address = address.ok_or_else(unsupported)?;
            update(atom, dtype, address, args, needs)
        }
    }
}

fn update(
    atom: Atom,
    dtype: DType,
    address: &Code,
    args: &[Code],
    needs: &mut dyn Needs,
) -> Result<Code, EmitError> {
    let unsupported =
        || EmitError::Unsupported { dialect: "cuda", what: format!("`T.{}` of `{dtype}`", atom.name()) };
    let function = match atom {
        Atom::AtomicAdd => "atomicAdd",
        Atom::AtomicMin => "atomicMin",
        Atom::AtomicMax => "atomicMax",
        Atom::AtomicExchange => "atomicExch",
        Atom::AtomicCompareSwap => "atomicCAS",
        _ => return Err(unsupported()),
    };
    let with = |name: &str, args: &[Code]| {
        let all: Vec<&Code> = std::iter::once(address).chain(args).collect();
        Code::call(name, &all)
    };
    match dtype {
        DType::I32 | DType::U32 | DType::U64 => Ok(with(function, args)),
        // The machine has sums and exchanges of unsigned 64 bits only, and they are the same.
        DType::I64 if matches!(atom, Atom::AtomicMin | Atom::AtomicMax) => Ok(with(function, args)),
        DType::I64 => {
            let args: Vec<String> =
                args.iter().map(|a| format!("((unsigned long long){})", a.at(Prec::Unary))).collect();
            let text = format!(
                "((long long){function}((unsigned long long*){}, {}))",
                address.text,
                args.join(", ")
            );
            Ok(Code::primary(text))
        }
        DType::F64 if atom == Atom::AtomicAdd => Ok(with(function, args)),
        DType::F32 if atom == Atom::AtomicExchange => Ok(with(function, args)),
        DType::F32 | DType::F64 => {
            let name = needs.helper(Helper::Atomic(atom, dtype))?;
            Ok(with(&name, args))
        }
        DType::Bool
        | DType::I8
        | DType::I16
        | DType::U8
        | DType::U16
        | DType::F8E4M3
        | DType::F8E5M2
        | DType::F16
        | DType::BF16 => Err(unsupported()),
    }
}

/// An update of a float as a loop of compare-and-swap on its bits, or the fold of floats over a warp, which only
/// `sm_100a` and `sm_103a` have.
pub fn define(atom: Atom, dtype: DType, needs: &mut dyn Needs) -> Option<String> {
    let name = Helper::Atomic(atom, dtype).name();
    let redux = |op: &str| {
        format!(
            "{FN} f32 {name}(unsigned int mask, f32 a)
{{
    f32 d;
    asm volatile(\"redux.sync.{op}.NaN.f32 %0, %1, %2;\" : \"=f\"(d) : \"f\"(a), \"r\"(mask));
    return d;
}}
"
        )
    };
    match (atom, dtype) {
        (Atom::ReduxMin, DType::F32) => return Some(redux("min")),
        (Atom::ReduxMax, DType::F32) => return Some(redux("max")),
        _ => {}
    }
    let ty = CTy::carrier(dtype);
    let (value, bits, to_bits, from_bits) = match dtype {
        DType::F32 => ("f32", "u32", "__float_as_uint", "__uint_as_float"),
        DType::F64 => ("f64", "u64", "(u64)__double_as_longlong", "__longlong_as_double"),
        _ => return None,
    };
    let (params, next) = match atom {
        Atom::AtomicAdd => ("v", "now + v".to_owned()),
        Atom::AtomicMin => ("v", format!("{}(now, v)", needs.helper(Helper::Min(VTy::scalar(ty))).ok()?)),
        Atom::AtomicMax => ("v", format!("{}(now, v)", needs.helper(Helper::Max(VTy::scalar(ty))).ok()?)),
        Atom::AtomicExchange => ("v", "v".to_owned()),
        Atom::AtomicCompareSwap => ("expected, v", "now == expected ? v : now".to_owned()),
        _ => return None,
    };
    let params = params.split(", ").map(|p| format!("{value} {p}")).collect::<Vec<_>>().join(", ");
    let next_bits = format!("{to_bits}({next})");
    Some(format!(
        "{FN} {value} {name}({value} *p, {params})
{{
    {bits} *const place = ({bits} *)p;
    {bits} old = *place, seen;
    do {{
        seen = old;
        const {value} now = {from_bits}(seen);
        old = atomicCAS(place, seen, {next_bits});
    }} while (old != seen);
    return {from_bits}(old);
}}
"
    ))
}
