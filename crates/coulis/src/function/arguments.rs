//! What a call's arguments say: sizes, shapes of outputs, and whether they are legal.

use std::collections::BTreeMap;

use coulis_ir::args::{self, ArgInfo, ArrayInfo, BindError, Bindings, compact_strides, eval_index};
use coulis_ir::{Buffer, DType, Kernel, Param, Var};

use super::within_int32::{MAX_ELEMENTS_INT32, TooLarge, first_too_large};
use super::{Parameter, Value};
use crate::error::Error;
use crate::reduce::array_info;

/// Bare variables of shapes.
pub(super) fn size_vars(kernel: &Kernel) -> Vec<Var> {
    kernel.param_buffers().flat_map(|b| &b.shape).filter_map(|e| e.as_var().cloned()).collect()
}

/// Refuses a value of the wrong kind, type or rank, before outputs are sized from the values.
pub(super) fn check_given(parameters: &[Parameter], given: &[Option<Value>]) -> Result<(), Error> {
    for (facts, value) in parameters.iter().zip(given) {
        let name = facts.name.clone();
        let error = match (facts.rank, value) {
            (_, None) | (None, Some(Value::Int(_))) => continue,
            (Some(_), Some(Value::Int(_))) => BindError::Kind { name, wanted: "an array" },
            (None, Some(Value::Array(_))) => BindError::Kind { name, wanted: "an integer" },
            (Some(_), Some(Value::Array(array))) if array.dtype() != facts.dtype => {
                BindError::Dtype { name, wanted: facts.dtype, found: array.dtype() }
            }
            (Some(wanted), Some(Value::Array(array))) if array.shape().len() != wanted => {
                BindError::Rank { name, wanted, found: array.shape().len() }
            }
            (Some(_), Some(Value::Array(_))) => continue,
        };
        return Err(Error::user("call/arguments", error));
    }
    Ok(())
}

/// What the given values say of the sizes; `bind_args` says later whether they agree.
pub(super) fn known_sizes(
    kernel: &Kernel,
    parameters: &[Parameter],
    given: &[Option<Value>],
    sizes: &BTreeMap<String, i64>,
) -> Bindings {
    let mut known = Bindings::new();
    let mut learn = |var: Option<&Var>, value: i64| {
        if let Some(var) = var {
            known.entry(var.id()).or_insert(value);
        }
    };
    for ((param, facts), given) in kernel.params.iter().zip(parameters).zip(given) {
        match (param, given) {
            (Param::Scalar(var), Some(Value::Int(value))) => learn(Some(var), *value),
            (Param::Buffer { buffer, .. }, Some(Value::Array(array))) => {
                buffer.shape.iter().zip(array.shape()).for_each(|(e, v)| learn(e.as_var(), *v));
                if !facts.is_written {
                    buffer.strides.iter().zip(array.strides()).for_each(|(e, v)| learn(e.as_var(), *v));
                }
            }
            (Param::Scalar(_), _) | (Param::Buffer { .. }, _) => {}
        }
    }
    for var in size_vars(kernel) {
        if let Some(value) = sizes.get(var.name()) {
            learn(Some(&var), *value);
        }
    }
    known
}

/// What the binder receives of one argument.
pub(super) fn argument_info(
    param: &Param,
    facts: &Parameter,
    given: Option<&Value>,
    known: &Bindings,
    is_random: bool,
) -> Result<ArgInfo, Error> {
    let name = &facts.name;
    let buffer = match (param, given) {
        (_, Some(Value::Int(value))) => return Ok(ArgInfo::Scalar(*value)),
        (Param::Scalar(var), None) => match known.get(&var.id()) {
            Some(value) => return Ok(ArgInfo::Scalar(*value)),
            None => return Err(Error::user("call/missing", format!("parameter `{name}` has no value"))),
        },
        (_, Some(Value::Array(array))) if !facts.is_written => return Ok(ArgInfo::Array(array_info(array))),
        (Param::Scalar(_), Some(Value::Array(array))) => return Ok(ArgInfo::Array(array_info(array))),
        (Param::Buffer { buffer, .. }, Some(Value::Array(array))) => {
            let strides = strides_of(buffer, array.shape(), known);
            return Ok(ArgInfo::Array(ArrayInfo {
                dtype: array.dtype(),
                shape: array.shape().to_vec(),
                strides,
            }));
        }
        (Param::Buffer { buffer, .. }, None) => buffer,
    };
    if facts.is_read && !facts.is_written && !is_random {
        return Err(Error::user("call/missing", format!("parameter `{name}` is read and has no value")));
    }
    let mut shape = Vec::new();
    for (axis, extent) in buffer.shape.iter().enumerate() {
        shape.push(eval_index(extent, known).map_err(|var| {
            let message = format!(
                "extent {axis} of `{name}` depends on `{var}`, which no argument determines; give `{name}`, or a number \
                 for `{var}` (`--arg {var}=NUMBER`)"
            );
            Error::user("call/missing", message)
        })?);
    }
    if let Some(extent) = shape.iter().find(|e| **e < 0) {
        return Err(Error::user(
            "call/shape",
            format!("`{name}` would have the extent {extent}; legal are 0 and more"),
        ));
    }
    let strides = strides_of(buffer, &shape, known);
    Ok(ArgInfo::Array(ArrayInfo { dtype: buffer.dtype, shape, strides }))
}

/// The strides that memory of ours gets: as declared, row-major where the declaration leaves them open.
fn strides_of(buffer: &Buffer, shape: &[i64], known: &Bindings) -> Vec<i64> {
    let compact = compact_strides(shape);
    let declared = |axis: usize| buffer.strides.get(axis).and_then(|e| eval_index(e, known).ok());
    compact.iter().enumerate().map(|(axis, &stride)| declared(axis).unwrap_or(stride)).collect()
}

/// Refuses a size that contradicts the arguments.
pub(super) fn check_sizes(
    kernel: &Kernel,
    sizes: &BTreeMap<String, i64>,
    bindings: &Bindings,
) -> Result<(), Error> {
    for var in size_vars(kernel) {
        let (given, bound) = (sizes.get(var.name()), bindings.get(&var.id()));
        if let (Some(given), Some(bound)) = (given, bound)
            && given != bound
        {
            let message =
                format!("size `{}` is given as {given}, and the arguments make it {bound}", var.name());
            return Err(Error::user("call/size", message));
        }
    }
    Ok(())
}

/// Whether indices of 32 bits reach every element of the arrays.
pub(super) fn reaches_with_int32(infos: &[ArgInfo]) -> bool {
    infos.iter().all(|info| match info {
        ArgInfo::Array(info) => reach(info) < MAX_ELEMENTS_INT32,
        ArgInfo::Scalar(_) => true,
    })
}

/// Refuses sizes for which the kernel's own memory is larger than the type of its extents says.
pub(super) fn check_own_memory(kernel: &Kernel, bindings: &Bindings) -> Result<(), Error> {
    let Some(TooLarge { buffer, dtype }) = first_too_large(kernel, bindings) else { return Ok(()) };
    let name = &buffer.name;
    Err(match dtype {
        DType::I64 => {
            let message = format!("`{name}` would have more bytes than int64 counts; make its sizes less");
            Error::unsupported("call/memory", message)
        }
        _ => {
            let message = format!(
                "`{name}` would have more elements than int32 sizes reach, which are at most {MAX_ELEMENTS_INT32}; \
                 make its sizes int64"
            );
            Error::unsupported("call/int32", message)
        }
    })
}

/// Distance from the first element to the last; at least that of indices, which count elements that share memory too.
fn reach(info: &ArrayInfo) -> i128 {
    let strides: Vec<i64> = info.strides.iter().map(|&stride| if stride == 0 { 1 } else { stride }).collect();
    args::reach(&info.shape, &strides).map_or(i128::MAX, |(lo, hi)| hi - lo)
}

/// Refuses outputs whose elements share memory, and sizes that 32-bit indices do not reach.
pub(super) fn check_reach(kernel: &Kernel, parameters: &[Parameter], infos: &[ArgInfo]) -> Result<(), Error> {
    let is_narrow = size_vars(kernel).iter().any(|var| var.dtype() == DType::I32);
    for (facts, info) in parameters.iter().zip(infos) {
        let ArgInfo::Array(info) = info else { continue };
        let name = &facts.name;
        if is_narrow {
            let reach = reach(info);
            if reach >= MAX_ELEMENTS_INT32 {
                let message = format!(
                    "`{name}` spans {} elements, and with int32 sizes at most {MAX_ELEMENTS_INT32} are supported; \
                     make its sizes int64",
                    reach.saturating_add(1)
                );
                return Err(Error::unsupported("call/int32", message));
            }
        }
        if facts.is_written && !info.is_apart() {
            let message = format!(
                "output `{name}` of shape {:?} has the strides {:?}; elements of an output are to lie apart",
                info.shape, info.strides
            );
            return Err(Error::user("call/strides", message));
        }
    }
    Ok(())
}
