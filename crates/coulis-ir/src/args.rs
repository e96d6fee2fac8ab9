//! Binding of a call's arguments to the free variables of a kernel's parameters.
//!
//! Every executor and launcher uses this one function, so that the checks at a call are the same everywhere.

use std::collections::HashMap;

use coulis_layout::counted;

use crate::dtype::DType;
use crate::expr::{Expr, Node, Var, VarId};
use crate::kernel::{Kernel, Param};
use crate::op::floor_div;
use crate::print::print_expr;
use crate::simplify::Analyzer;
use crate::visit::for_each_expr;

/// What is known of an argument without reading its memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayInfo {
    /// Element type.
    pub dtype: DType,
    /// Extents, one a dimension.
    pub shape: Vec<i64>,
    /// Strides in elements, one a dimension; may be zero or negative.
    pub strides: Vec<i64>,
}

/// One argument, in parameter order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgInfo {
    /// An array, for a buffer parameter.
    Array(ArrayInfo),
    /// An integer, for a scalar parameter.
    Scalar(i64),
}

/// Why arguments do not fit a kernel.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BindError {
    /// Wrong number of arguments.
    #[error("`{kernel}` takes {wanted} arguments, got {found}")]
    Count {
        /// Kernel name.
        kernel: String,
        /// Number of parameters.
        wanted: usize,
        /// Number of arguments.
        found: usize,
    },
    /// A scalar for a buffer, or an array for a scalar.
    #[error("argument `{name}` is to be {wanted}")]
    Kind {
        /// Parameter name.
        name: String,
        /// `an array` or `an integer`.
        wanted: &'static str,
    },
    /// Wrong element type.
    #[error("argument `{name}` is to hold {wanted}, got {found}")]
    Dtype {
        /// Parameter name.
        name: String,
        /// Declared type.
        wanted: DType,
        /// Type of the argument.
        found: DType,
    },
    /// Wrong number of dimensions.
    #[error("argument `{name}` is to have {}, got {found}", counted(wanted, "dimension"))]
    Rank {
        /// Parameter name.
        name: String,
        /// Declared rank.
        wanted: usize,
        /// Rank of the argument.
        found: usize,
    },
    /// An extent or stride that contradicts the declaration or another argument.
    #[error("{part}argument `{name}` is to be {wanted}, got {found}")]
    Value {
        /// Parameter name.
        name: String,
        /// What of it.
        part: Part,
        /// Declared or already bound value.
        wanted: i64,
        /// Value of the argument.
        found: i64,
    },
    /// A declared extent that comes to less than 0, as no array has.
    #[error("{part}argument `{name}` is `{declared}`, which comes to {value}; {legal}")]
    Negative {
        /// Parameter name.
        name: String,
        /// What of it.
        part: Part,
        /// What is declared, as text.
        declared: String,
        /// What that comes to.
        value: i64,
        /// What the sizes in it are to be, and are.
        legal: String,
    },
    /// A declared extent whose value no argument tells.
    #[error("{part}argument `{name}` depends on `{var}`, which no argument determines")]
    Unbound {
        /// Parameter name.
        name: String,
        /// What of it.
        part: Part,
        /// The variable.
        var: String,
    },
    /// A value that does not fit the variable's type.
    #[error("{part}argument `{name}` is {found}, which does not fit `{var}` of type {dtype}")]
    Range {
        /// Parameter name.
        name: String,
        /// What of it.
        part: Part,
        /// The variable.
        var: String,
        /// Its type.
        dtype: DType,
        /// Value of the argument.
        found: i64,
    },
}

/// What of an argument a number is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The argument itself, an integer.
    Whole,
    /// The extent of a dimension.
    Extent(usize),
    /// The stride of a dimension.
    Stride(usize),
}

impl std::fmt::Display for Part {
    /// Words before the name of the argument.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Part::Whole => Ok(()),
            Part::Extent(axis) => write!(f, "extent {axis} of "),
            Part::Stride(axis) => write!(f, "stride {axis} of "),
        }
    }
}

/// Values of variables.
pub type Bindings = HashMap<VarId, i64>;

/// Deduces the free variables of all parameters, and checks every declared extent, stride and type.
///
/// Bare variables are bound first, in parameter order; then compound expressions are evaluated and compared. A
/// stride of a dimension of extent 1 or 0 is not compared, since no access uses it.
pub fn bind_args(kernel: &Kernel, args: &[ArgInfo]) -> Result<Bindings, BindError> {
    if kernel.params.len() != args.len() {
        return Err(BindError::Count {
            kernel: kernel.name.clone(),
            wanted: kernel.params.len(),
            found: args.len(),
        });
    }
    let mut bindings = Bindings::new();
    let mut checks: Vec<Check> = Vec::new();
    for (param, arg) in kernel.params.iter().zip(args) {
        match (param, arg) {
            (Param::Scalar(var), ArgInfo::Scalar(value)) => {
                let at = Check {
                    name: var.name().to_owned(),
                    part: Part::Whole,
                    declared: var.expr(),
                    found: *value,
                };
                bind(&mut bindings, var, &at)?;
            }
            (Param::Scalar(var), ArgInfo::Array(_)) => {
                return Err(BindError::Kind { name: var.name().to_owned(), wanted: "an integer" });
            }
            (Param::Buffer { handle, .. }, ArgInfo::Scalar(_)) => {
                return Err(BindError::Kind {
                    name: Kernel::argument_name(handle).to_owned(),
                    wanted: "an array",
                });
            }
            (Param::Buffer { handle, buffer }, ArgInfo::Array(array)) => {
                let name = Kernel::argument_name(handle);
                if buffer.dtype != array.dtype {
                    return Err(BindError::Dtype {
                        name: name.to_owned(),
                        wanted: buffer.dtype,
                        found: array.dtype,
                    });
                }
                if buffer.rank() != array.shape.len() || buffer.rank() != array.strides.len() {
                    return Err(BindError::Rank {
                        name: name.to_owned(),
                        wanted: buffer.rank(),
                        found: array.shape.len(),
                    });
                }
                for (axis, (declared, &found)) in buffer.shape.iter().zip(&array.shape).enumerate() {
                    checks.push(Check {
                        name: name.to_owned(),
                        part: Part::Extent(axis),
                        declared: declared.clone(),
                        found,
                    });
                }
                let compact = compact_strides(&array.shape);
                for (axis, (&compact, &found)) in compact.iter().zip(&array.strides).enumerate() {
                    let one = array.shape[axis] <= 1;
                    match buffer.strides.get(axis) {
                        Some(declared) => {
                            let free = declared.as_var().is_some();
                            let found = if one && !free { continue } else { found };
                            checks.push(Check {
                                name: name.to_owned(),
                                part: Part::Stride(axis),
                                declared: declared.clone(),
                                found,
                            });
                        }
                        None if !one && !array.shape.contains(&0) && found != compact => {
                            return Err(BindError::Value {
                                name: name.to_owned(),
                                part: Part::Stride(axis),
                                wanted: compact,
                                found,
                            });
                        }
                        None => {}
                    }
                }
            }
        }
    }
    for check in &checks {
        if let Some(var) = check.declared.as_var() {
            bind(&mut bindings, var, check)?;
        }
    }
    for check in &checks {
        let wanted = eval_index(&check.declared, &bindings).map_err(|var| BindError::Unbound {
            name: check.name.clone(),
            part: check.part,
            var,
        })?;
        if wanted < 0 && matches!(check.part, Part::Extent(_)) {
            return Err(BindError::Negative {
                name: check.name.clone(),
                part: check.part,
                declared: print_expr(&check.declared),
                value: wanted,
                legal: where_not_negative(&check.declared, &bindings),
            });
        }
        if wanted != check.found {
            return Err(BindError::Value {
                name: check.name.clone(),
                part: check.part,
                wanted,
                found: check.found,
            });
        }
    }
    Ok(bindings)
}

impl ArrayInfo {
    /// Strides of the array seen in `shape` by NumPy's broadcasting rules; `None` where it does not fit.
    pub fn broadcast_strides(&self, shape: &[i64]) -> Option<Vec<i64>> {
        let missing = shape.len().checked_sub(self.shape.len())?;
        let mut strides = vec![0; missing];
        for ((&extent, &stride), &wanted) in self.shape.iter().zip(&self.strides).zip(&shape[missing..]) {
            match extent {
                _ if extent == wanted => strides.push(stride),
                1 => strides.push(0),
                _ => return None,
            }
        }
        Some(strides)
    }

    /// How far its elements reach; see [`reach`].
    pub fn reach(&self) -> Option<(i128, i128)> {
        reach(&self.shape, &self.strides)
    }

    /// Whether its elements are shown to share no memory: each axis, taken by the size of its steps, steps over all that
    /// those before it reach, forwards or backwards.
    pub fn is_apart(&self) -> bool {
        if self.shape.contains(&0) {
            return true;
        }
        let axes = self.shape.iter().zip(&self.strides).filter(|(extent, _)| **extent > 1);
        let mut axes: Vec<(i128, i128)> =
            axes.map(|(extent, stride)| (i128::from(*stride).abs(), i128::from(*extent))).collect();
        axes.sort_unstable();
        let mut reach = 0i128;
        axes.into_iter().all(|(step, extent)| {
            let is_over = step > reach;
            reach = reach.saturating_add(step * (extent - 1));
            is_over
        })
    }
}

/// Elements from an array's first one to the one at the lowest address, at most 0, and to the one at the highest, at least
/// 0; both 0 where there is none. `None` where they are further apart than 128 bits count, as in no memory.
pub fn reach(shape: &[i64], strides: &[i64]) -> Option<(i128, i128)> {
    if shape.iter().any(|&extent| extent <= 0) {
        return Some((0, 0));
    }
    let (mut lo, mut hi) = (0i128, 0i128);
    for (&extent, &stride) in shape.iter().zip(strides) {
        // Less than 2^126.
        let reach = (i128::from(extent) - 1) * i128::from(stride);
        lo = lo.checked_add(reach.min(0))?;
        hi = hi.checked_add(reach.max(0))?;
    }
    hi.checked_sub(lo)?.checked_add(1)?;
    Some((lo, hi))
}

/// Strides of a compact row-major array of that shape, in elements. Axes of length 0 count as 1, and strides beyond
/// 2^63 - 1, which no array in memory has, as that.
pub fn compact_strides(shape: &[i64]) -> Vec<i64> {
    strides_along(shape, (0..shape.len()).rev())
}

/// Strides of an array without gaps whose axes lie in that order, the outermost first.
pub fn strides_in(shape: &[i64], order: &[usize]) -> Vec<i64> {
    strides_along(shape, order.iter().rev().copied())
}

/// The same by the axes from the innermost on. Steps that no memory has are as large as can be.
fn strides_along(shape: &[i64], axes: impl Iterator<Item = usize>) -> Vec<i64> {
    let (mut strides, mut step) = (vec![1i64; shape.len()], 1i64);
    for axis in axes {
        strides[axis] = step;
        step = step.saturating_mul(shape[axis].max(1));
    }
    strides
}

struct Check {
    name: String,
    part: Part,
    declared: Expr,
    found: i64,
}

fn bind(bindings: &mut Bindings, var: &Var, check: &Check) -> Result<(), BindError> {
    let (lo, hi) = var.dtype().int_range().unwrap_or((i128::from(i64::MIN), i128::from(i64::MAX)));
    if !(lo..=hi).contains(&i128::from(check.found)) {
        return Err(BindError::Range {
            name: check.name.clone(),
            part: check.part,
            var: var.name().to_owned(),
            dtype: var.dtype(),
            found: check.found,
        });
    }
    bindings.entry(var.id()).or_insert(check.found);
    Ok(())
}

/// Where the expression, which is below 0 for these values, would not be: a bound on its variable where it is a multiple of
/// one and a constant.
fn where_not_negative(declared: &Expr, bindings: &Bindings) -> String {
    let value = |var: &Var| bindings.get(&var.id()).copied().unwrap_or_default();
    match Analyzer::new().affine(declared).as_deref() {
        Some([(Some(var), factor), (None, constant)]) if *factor != 0 => {
            let bound = match *factor > 0 {
                true => format!("at least {}", -floor_div(*constant, *factor)),
                false => format!("at most {}", floor_div(*constant, -factor)),
            };
            format!("`{}` is to be {bound}, got {}", var.name(), value(var))
        }
        _ => {
            let mut found: Vec<String> = Vec::new();
            for_each_expr(declared, &mut |e| {
                let of = e.as_var().map(|var| format!("`{}` is {}", var.name(), value(var)));
                found.extend(of.filter(|of| !found.contains(of)));
            });
            format!("it is to be at least 0, and {}", found.join(", "))
        }
    }
}

/// The value of a scalar integer expression of bound variables; the name of an unbound variable (or of an
/// operation that indices do not use) otherwise. A division by zero counts as unbound.
pub fn eval_index(expr: &Expr, bindings: &Bindings) -> Result<i64, String> {
    let wide = eval_wide(expr, bindings).map_err(str::to_owned)?;
    i64::try_from(wide).map_err(|_| OVERFLOW.to_owned())
}

/// The value of a scalar integer expression that no variable decides; `None` of any other, and where [`eval_index`] fails.
pub fn eval_constant(expr: &Expr) -> Option<i64> {
    i64::try_from(eval_wide(expr, &Bindings::new()).ok()?).ok()
}

const OVERFLOW: &str = "overflow";

fn eval_wide<'e>(expr: &'e Expr, bindings: &Bindings) -> Result<i128, &'e str> {
    let truth = i128::from;
    match expr.node() {
        Node::Int(value) => Ok(*value),
        Node::Var(var) => bindings.get(&var.id()).map(|v| i128::from(*v)).ok_or(var.name()),
        Node::Cast(a) => Ok(expr.dtype().wrap_int(eval_wide(a, bindings)?)),
        Node::Not(a) => Ok(truth(eval_wide(a, bindings)? == 0)),
        Node::Select(c, a, b) | Node::IfThenElse(c, a, b) => {
            if eval_wide(c, bindings)? != 0 {
                eval_wide(a, bindings)
            } else {
                eval_wide(b, bindings)
            }
        }
        Node::Binary(op, a, b) => {
            let (x, y) = (eval_wide(a, bindings)?, eval_wide(b, bindings)?);
            match op.on_integers(x, y, 8 * a.dtype().bytes() as u32) {
                Some((value, false)) => Ok(value),
                Some((_, true)) => Err(OVERFLOW),
                None => Err("a division by zero"),
            }
        }
        Node::Call(crate::Intrinsic::Likely, args) => eval_wide(&args[0], bindings),
        _ => Err("a value that is not an index"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compact_strides_of_shapes_that_no_memory_holds_end_at_the_largest() {
        assert_eq!(compact_strides(&[3, 0, 4]), [4, 4, 1]);
        assert_eq!(compact_strides(&[0, 1 << 40, 1 << 40]), [i64::MAX, 1 << 40, 1]);
    }

    #[test]
    fn an_array_is_broadcast_along_axes_of_one_element_and_those_that_it_has_not() {
        let info = ArrayInfo { dtype: DType::F32, shape: vec![3, 1], strides: vec![-2, 7] };
        assert_eq!(info.broadcast_strides(&[5, 3, 4]), Some(vec![0, -2, 0]));
        assert_eq!(info.broadcast_strides(&[3, 1]), Some(vec![-2, 7]));
        assert_eq!(info.broadcast_strides(&[4, 4]), None);
        assert_eq!(info.broadcast_strides(&[3]), None);
    }

    #[test]
    fn elements_reach_as_far_as_128_bits_count() {
        assert_eq!(reach(&[3, 4], &[-4, 1]), Some((-8, 3)));
        assert_eq!(reach(&[], &[]), Some((0, 0)));
        assert_eq!(reach(&[3, 0], &[5, 1]), Some((0, 0)));
        assert_eq!(reach(&[2], &[i64::MIN]), Some((i128::from(i64::MIN), 0)));
        let (extents, strides) = ([(1 << 62) + 1; 16], [1 << 62; 16]);
        assert_eq!(reach(&extents[..7], &strides[..7]), Some((0, 7 << 124)));
        assert_eq!(reach(&extents[..8], &strides[..8]), None);
        assert_eq!(reach(&extents, &strides), None);
        assert_eq!(reach(&[(1 << 62) + 1; 8], &[-1 << 62; 8]), None);
    }

    #[test]
    fn elements_are_apart_where_each_axis_steps_over_those_with_smaller_steps() {
        let is_apart = |shape: &[i64], strides: &[i64]| {
            ArrayInfo { dtype: DType::F32, shape: shape.to_vec(), strides: strides.to_vec() }.is_apart()
        };
        assert!(is_apart(&[3, 4], &[4, 1]) && is_apart(&[3, 4], &[-1, -3]) && is_apart(&[3, 1], &[1, 0]));
        assert!(!is_apart(&[3, 4], &[3, 1]) && !is_apart(&[2], &[0]) && is_apart(&[2, 0], &[0, 0]));
        assert!(!is_apart(&[(1 << 62) + 1; 16], &[1 << 62; 16]));
    }

    #[test]
    fn an_extent_below_0_is_told_of_by_the_sizes_for_which_it_is_not() {
        let (n, m) = (Var::new("n", DType::I32), Var::new("m", DType::I32));
        let bindings = Bindings::from([(n.id(), 2), (m.id(), 5)]);
        let (n, m, c) = (n.expr(), m.expr(), Expr::int);
        for (declared, wanted) in [
            (n.clone() - c(3), "`n` is to be at least 3, got 2"),
            (n.clone() * c(2) - c(5), "`n` is to be at least 3, got 2"),
            (c(3) - m.clone(), "`m` is to be at most 3, got 5"),
            (c(8) - m.clone() * c(3), "`m` is to be at most 2, got 5"),
            (n.clone() - m.clone(), "it is to be at least 0, and `n` is 2, `m` is 5"),
            (
                (n.clone() - c(3)).floordiv(m.clone()) + n - c(2),
                "it is to be at least 0, and `n` is 2, `m` is 5",
            ),
        ] {
            assert_eq!(where_not_negative(&declared, &bindings), wanted, "{}", print_expr(&declared));
        }
    }
}
