//! Places in memory: one index from the first element, as Flat kernels have it, against what a buffer's shape and strides
//! reach.
//!
//! A kernel that was lowered and kept as text reaches a parameter through windows of one dimension. With strides that only
//! a call knows such a place is a sum of products, `i * stride_0 + j * stride_1`. It is inside, whatever the strides are,
//! where each factor is inside its dimension.

use std::collections::HashMap;

use coulis_ir::index::as_ramp;
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::{for_each_expr, for_each_stmt, stmt_exprs, substitute_expr, uses_any};
use coulis_ir::{Buffer, DType, Expr, Kernel, Node, Stmt, Var, VarId};

use super::is_below;

/// The memory of parameters and allocations, by data pointer.
#[derive(Default)]
pub struct Memories {
    of: HashMap<VarId, Memory>,
    /// Names of sums and products of indices, with what they stand for.
    names: HashMap<Var, Expr>,
}

/// What the elements of a buffer take up.
struct Memory {
    dtype: DType,
    shape: Vec<Expr>,
    reach: Reach,
}

enum Reach {
    /// All places from 0 to below this one.
    Compact(Expr),
    Strided(Strided),
}

/// A place is what lies between the ends of some dimensions, and steps along others.
struct Strided {
    /// The least and the greatest place along the dimensions whose strides have a known sign.
    ends: (Expr, Expr),
    /// Strides of which nothing is known, with the greatest number of steps along each.
    free: Vec<(Var, Expr)>,
}

impl Memories {
    /// `known`: what holds at the beginning of the kernel.
    pub fn of(kernel: &Kernel, known: &Analyzer) -> Memories {
        let mut of = HashMap::new();
        for buffer in kernel.param_buffers().filter(|b| b.elem_offset.is_int(0)) {
            if let Some(reach) = Reach::of(buffer, known) {
                let memory = Memory { dtype: buffer.dtype, shape: buffer.shape.clone(), reach };
                of.insert(buffer.data.id(), memory);
            }
        }
        for_each_stmt(&kernel.body, &mut |stmt| {
            if let Stmt::Allocate { buffer, .. } = stmt
                && buffer.strides.is_empty()
            {
                let reach = Reach::Compact(product(&buffer.shape));
                let memory = Memory { dtype: buffer.dtype, shape: buffer.shape.clone(), reach };
                of.insert(buffer.data.id(), memory);
            }
        });
        Memories { of, names: index_names(kernel) }
    }

    /// The expression without names for sums and products.
    pub fn spelled_out(&self, expr: &Expr) -> Expr {
        substitute_expr(expr, &self.names)
    }

    /// Whether an access by its place in the memory is shown to stay inside.
    pub fn reach(&self, buffer: &Buffer, indices: &[Expr], known: &Analyzer) -> bool {
        let is_plain = buffer.strides.is_empty() && buffer.elem_offset.is_int(0);
        let ([index], Some(memory)) = (indices, self.of.get(&buffer.data.id())) else { return false };
        // A product of extents below 0 is no number of elements.
        let is_shape = |e: &Expr| known.can_prove(&Expr::int_of(0, e.dtype()).le(e.clone()));
        let fits = is_plain
            && memory.dtype == buffer.dtype
            && (memory.shape.len() == 1 || memory.shape.iter().all(is_shape));
        fits && ends(index).is_some_and(|ends| {
            ends.iter().all(|end| match &memory.reach {
                Reach::Compact(size) => {
                    is_below(known, end, size)
                        || is_below(known, &self.spelled_out(end), &self.spelled_out(size))
                }
                Reach::Strided(strided) => {
                    let is_there = |n: &Expr| known.can_prove(&Expr::int_of(0, n.dtype()).lt(n.clone()));
                    strided.holds(&self.spelled_out(end), known) && memory.shape.iter().all(is_there)
                }
            })
        })
    }
}

impl Reach {
    /// `None` where a stride is neither a variable of its own nor of a known sign.
    fn of(buffer: &Buffer, known: &Analyzer) -> Option<Reach> {
        if buffer.strides.is_empty() {
            return Some(Reach::Compact(product(&buffer.shape)));
        }
        let zero = Expr::int_of(0, DType::I64);
        let mut strided = Strided { ends: (zero.clone(), zero.clone()), free: Vec::new() };
        for (stride, extent) in buffer.strides.iter().zip(&buffer.shape) {
            let steps = extent.clone().cast(DType::I64) - Expr::int_of(1, DType::I64);
            let is_shape = |var: &Var| buffer.shape.iter().any(|e| uses_any(e, std::slice::from_ref(var)));
            if let Some(var) = stride.as_var().filter(|var| !is_shape(var)) {
                match strided.free.iter_mut().find(|(of, _)| of == var) {
                    Some((_, all)) => *all = all.clone() + steps,
                    None => strided.free.push((var.clone(), steps)),
                }
                continue;
            }
            let stride = stride.clone().cast(DType::I64);
            let (low, high) = &mut strided.ends;
            let end = if known.can_prove(&zero.clone().le(stride.clone())) {
                high
            } else if known.can_prove(&stride.clone().le(zero.clone())) {
                low
            } else {
                return None;
            };
            *end = end.clone() + steps * stride;
        }
        Some(Reach::Strided(strided))
    }
}

impl Strided {
    /// Whether the place is one that the dimensions reach, if each has an element.
    fn holds(&self, place: &Expr, known: &Analyzer) -> bool {
        let place = &place.clone().cast(DType::I64);
        let with = |steps: Option<&Var>| {
            let value = |var: &Var| Expr::int_of(i128::from(steps == Some(var)), var.dtype());
            let map: HashMap<Var, Expr> =
                self.free.iter().map(|(var, _)| (var.clone(), value(var))).collect();
            substitute_expr(place, &map)
        };
        let rest = known.simplify(&with(None));
        let mut total = rest.clone();
        for (stride, most) in &self.free {
            let steps = known.simplify(&(with(Some(stride)) - rest.clone()));
            if !is_between(known, &steps, &Expr::int_of(0, DType::I64), most) {
                return false;
            }
            total = total + steps * stride.expr().cast(DType::I64);
        }
        // Only a sum of products is what became of it.
        known.can_prove(&place.clone().equal(total)) && is_between(known, &rest, &self.ends.0, &self.ends.1)
    }
}

fn is_between(known: &Analyzer, place: &Expr, low: &Expr, high: &Expr) -> bool {
    known.can_prove(&low.clone().le(place.clone())) && known.can_prove(&place.clone().le(high.clone()))
}

fn product(shape: &[Expr]) -> Expr {
    let sizes = shape.iter().map(|e| if shape.len() == 1 { e.clone() } else { e.clone().cast(DType::I64) });
    sizes.reduce(|a, b| a * b).unwrap_or(Expr::int_of(1, DType::I64))
}

/// The indices between which those of all lanes are: the first and the last of a ramp; `None` where that cannot be told.
pub fn ends(index: &Expr) -> Option<Vec<Expr>> {
    if index.lanes() == 1 {
        return Some(vec![index.clone()]);
    }
    let (first, stride) = as_ramp(index)?;
    let steps = Expr::int_of(i128::from(index.lanes()) - 1, stride.dtype());
    Some(vec![first.clone(), first + stride * steps])
}

/// Names that stand for one expression of integers without memory, spelled out.
fn index_names(kernel: &Kernel) -> HashMap<Var, Expr> {
    let mut bound: Vec<(Var, Expr)> = Vec::new();
    for_each_stmt(&kernel.body, &mut |stmt| {
        if let Stmt::Let { var, value, .. } = stmt {
            bound.push((var.clone(), value.clone()));
        }
        for expr in stmt_exprs(stmt) {
            for_each_expr(expr, &mut |e| {
                if let Node::Let(var, value, _) = e.node() {
                    bound.push((var.clone(), value.clone()));
                }
            });
        }
    });
    let mut n_bound: HashMap<Var, usize> = HashMap::new();
    bound.iter().for_each(|(var, _)| *n_bound.entry(var.clone()).or_default() += 1);
    let mut names = HashMap::new();
    for (var, value) in bound {
        let is_index = value.lanes() == 1 && value.dtype().is_int() && !value.reads_memory();
        if is_index && n_bound[&var] == 1 && value.dtype() == var.dtype() {
            let value = substitute_expr(&value, &names);
            names.insert(var, value);
        }
    }
    names
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use crate::inside::first_unproven;

    /// What is not shown of a kernel with parameters `A` of 64 elements, `B` of 4 times 16, `C` of n times m with unknown
    /// strides, and `D` of n times m.
    fn unproven(body: &str) -> Option<String> {
        let body = body.trim_matches('\n').replace('\n', "\n    ");
        let text = format!(
            "@T.prim_func
def kept(A: T.Buffer((64,), \"float32\"), B: T.Buffer((4, 16), \"float32\"), C_ptr: T.handle, D_ptr: T.handle):
    n, m = T.int32(), T.int32()
    C = T.match_buffer(C_ptr, (n, m), \"float32\", strides=(\"s\", \"s\"))
    D = T.match_buffer(D_ptr, (n, m), \"float32\")
    B_1 = T.Buffer((64,), \"float32\", data=B.data)
    C_1 = T.Buffer((C.strides[0] * n,), \"float32\", data=C.data)
    D_1 = T.Buffer((n * m,), \"float32\", data=D.data)
    {body}
"
        );
        first_unproven(
            &coulis_script::parse_module(&text).unwrap_or_else(|e| panic!("{text}\n{e:?}")).remove(0),
        )
    }

    #[track_caller]
    fn check(body: &str, wanted: Option<&str>) {
        assert_eq!(unproven(body).as_deref(), wanted, "{body}");
    }

    #[test]
    fn slices_are_inside_where_their_first_and_last_elements_are() {
        check("A[0:8] = A[56:64]", None);
        check("A[0:8] = A[57:65]", Some("`A[T.Ramp(57, 1, 8)]`"));
        check("A[0:8] = A[T.Ramp(7, -1, 8)]", None);
        check("A[0:8] = A[T.Ramp(6, -1, 8)]", Some("`A[T.Ramp(6, -1, 8)]`"));
        check("for i in range(4):\n    A[i * 16:i * 16 + 16] = A[0:16]", None);
        check("for i in range(5):\n    A[i * 16:i * 16 + 16] = A[0:16]", Some("`A[T.Ramp(i * 16, 1, 16)]`"));
    }

    #[test]
    fn windows_reach_what_their_memory_has_and_not_what_they_say() {
        check("for i, j in T.grid(4, 16):\n    B_1[i * 16 + j] = T.float32(0)", None);
        check("for i, j in T.grid(4, 17):\n    B_1[i * 16 + j] = T.float32(0)", Some("`B_1[i * 16 + j]`"));
        let larger = "B_2 = T.Buffer((100,), \"float32\", data=B.data)\n";
        check(&format!("{larger}for i in range(64):\n    B_2[i] = B_1[0]"), None);
        check(&format!("{larger}for i in range(65):\n    B_2[i] = B_1[0]"), Some("`B_2[i]`"));
        check("for i, j in T.grid(n, m):\n    D_1[i * m + j] = T.float32(0)", None);
        check("for i, j in T.grid(n, m):\n    D_1[j * m + i] = T.float32(0)", Some("`D_1[j * m + i]`"));
        check(
            "t = T.allocate([4, 16], \"float32\", \"global\")
t_1 = T.Buffer((64,), \"float32\", data=t.data)
for i in range(64):
    t_1[i] = A[i]",
            None,
        );
    }

    #[test]
    fn places_by_unknown_strides_are_inside_where_each_step_is() {
        let each = |place: &str| format!("for i, j in T.grid(n, m):\n    C_1[{place}] = T.float32(0)");
        check(&each("i * C.strides[0] + j * C.strides[1]"), None);
        check(&each("(n - 1 - i) * C.strides[0] + j * C.strides[1]"), None);
        check(&each("i * C.strides[0]"), None);
        check(&each("j * C.strides[0]"), Some("`C_1[j * s]`"));
        check(&each("i * C.strides[0] + 1"), Some("`C_1[i * s + 1]`"));
        check(&each("(i + 1) * C.strides[0]"), Some("`C_1[(i + 1) * s]`"));
        check(&each("i * C.strides[0] * C.strides[0]"), Some("`C_1[i * s * s]`"));
        // Where there is no row, there is no first element.
        check("C_1[0] = T.float32(0)", Some("`C_1[0]`"));
        // A name for a part of the place.
        check(
            "for i, j in T.grid(n, m):
    row: T.int32 = i * C.strides[0]
    C_1[row + j * C.strides[1]] = T.float32(0)",
            None,
        );
        check(
            "for j in range(m):
    cut: T.int32 = T.max(T.min(n, (n + 1) // 2), 0)
    for i in range(cut):
        C_1[i * C.strides[0] + j * C.strides[1]] = T.float32(0)",
            None,
        );
        check(
            "for i, j in T.grid(n, m):
    row: T.int32 = i * C.strides[1]
    C_1[row + j * C.strides[1]] = T.float32(0)",
            Some("`C_1[row + j * s]`"),
        );
    }
}
