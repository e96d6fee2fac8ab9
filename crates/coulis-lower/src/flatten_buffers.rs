//! Every access becomes one-dimensional.
//!
//! A parameter with more than one dimension, or with strides, is accessed through a one-dimensional alias of its
//! memory: `strides[0] * shape[0]` elements where it has strides, the product of its extents otherwise. Allocated
//! buffers become one-dimensional themselves; their printed size is simplified, that of their views is not.
//! An extent that is not known to be at least 0 counts for 0 where it is less: the loops over it do not run, and memory
//! of less than no elements is none. Memory of a small constant size is aligned to the largest power of two that is at
//! most its size in bytes.
//!
//! Source: seed 003, all listings. `bool` stays `bool`, where the reference stores `int8`.

use coulis_ir::hash::FastMap;

use coulis_ir::buffer::BufferId;
use coulis_ir::expr::{Expr, Node, Var, VarId};
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::{any_stmt, rewrite_stmt, stmt_children};
use coulis_ir::{Buffer, DType, Form, Kernel, Param, Stmt};

use crate::affine::{product, sum, uses};
use crate::pass::{LowerError, Options, Pass};
use crate::simplify::{with_let, with_loop, with_sizes};
use crate::walk::Rewriter;

/// The pass.
pub const PASS: Pass = Pass {
    name: "flatten_buffers",
    from: Form::Nest,
    to: Form::Nest,
    run: flatten_buffers,
    doc: "makes every access one-dimensional, through aliases where buffers have strides or several dimensions",
};

/// Makes every access one-dimensional.
pub fn flatten_buffers(kernel: Kernel, _: &Options) -> Result<Kernel, LowerError> {
    let mut flat = Flattener::default();
    let params = kernel.params.into_iter().map(|param| flat.parameter(param)).collect();
    let kernel = Kernel { params, ..kernel };
    if any_stmt(&kernel.body, &mut |s| matches!(s, Stmt::Allocate { .. })) {
        flat.allocations(&kernel.body, &mut Around::of(&kernel));
    }
    let flat = std::cell::RefCell::new(flat);
    let mut exprs = Rewriter::new(Expr::reads_memory, |e: &Expr| match e.node() {
        Node::Load(buffer, indices) => {
            let mut flat = flat.borrow_mut();
            let index = flat.index(buffer, indices);
            Some(Expr::load(flat.view(buffer), vec![index]))
        }
        _ => None,
    });
    let body = rewrite_stmt(kernel.body, &mut |e| exprs.of(e), &mut |s| match s {
        Stmt::Store { buffer, indices, value } => {
            let mut flat = flat.borrow_mut();
            let index = flat.index(&buffer, &indices);
            Stmt::Store { buffer: flat.view(&buffer), indices: vec![index], value }
        }
        Stmt::Atom(mut call) => {
            for element in call.dst.iter_mut().chain(&mut call.memory) {
                let mut flat = flat.borrow_mut();
                element.indices = vec![flat.index(&element.buffer, &element.indices)];
                element.buffer = flat.view(&element.buffer);
            }
            Stmt::Atom(call)
        }
        Stmt::Allocate { buffer, body } => {
            Stmt::Allocate { buffer: flat.borrow_mut().allocated(&buffer), body }
        }
        other => other,
    });
    Ok(Kernel { body, ..kernel })
}

/// Position of an element in the memory of its buffer, by its strides, or row-major where it has none.
pub fn flat_index(buffer: &Buffer, indices: &[Expr]) -> Expr {
    let dtype = index_dtype(buffer, indices);
    let mut total: Option<Expr> = None;
    for (axis, index) in indices.iter().enumerate() {
        let index = crate::affine::widen(index.clone(), dtype);
        total = Some(match (total, buffer.strides.get(axis)) {
            (total, Some(stride)) => {
                let term = product(index, crate::affine::widen(stride.clone(), dtype));
                total.map_or(term.clone(), |t| sum(t, term))
            }
            (None, None) => index,
            (Some(t), None) => {
                let extent = crate::affine::widen(buffer.shape[axis].clone(), dtype);
                sum(product(t, extent), index)
            }
        });
    }
    total.unwrap_or_else(|| Expr::int(0))
}

/// Whether constants alone say that 32-bit indices do not reach the last element (contract N6).
fn is_wide(buffer: &Buffer) -> bool {
    let constants = |of: &[Expr]| of.iter().map(Expr::as_int).collect::<Option<Vec<i128>>>();
    let (Some(shape), Some(strides)) = (constants(&buffer.shape), constants(&buffer.strides)) else {
        return false;
    };
    let reach = match strides.is_empty() {
        true => shape.iter().product(),
        false => shape.iter().zip(&strides).map(|(n, s)| (n - 1).max(0) * s.abs()).sum::<i128>(),
    };
    reach > i128::from(i32::MAX)
}

/// The widest type among indices, extents and strides, and wide enough for what constants say.
fn index_dtype(buffer: &Buffer, indices: &[Expr]) -> DType {
    if is_wide(buffer) {
        return DType::I64;
    }
    let symbolic = buffer.shape.iter().chain(&buffer.strides).filter(|e| e.as_int().is_none());
    indices
        .iter()
        .chain(symbolic)
        .map(Expr::dtype)
        .reduce(coulis_ir::expr::promoted_dtype)
        .unwrap_or(DType::I32)
}

/// Number of elements from the first to past the last, as the text shows it: not simplified.
fn flat_extent(buffer: &Buffer) -> Expr {
    match (buffer.strides.first(), buffer.shape.first()) {
        (Some(stride), Some(extent)) => {
            let (stride, extent) = Expr::promoted(stride.clone(), extent.clone());
            product(stride, extent)
        }
        (_, None) => Expr::int(1),
        (None, Some(first)) if is_wide(buffer) => {
            let sizes = buffer.shape[1..].iter().filter_map(Expr::as_int);
            let all = first.as_int().unwrap_or(1) * sizes.product::<i128>();
            Expr::int_of(all, DType::I64)
        }
        (None, Some(first)) => buffer.shape[1..].iter().fold(first.clone(), |total, extent| {
            let (total, extent) = Expr::promoted(total, extent.clone());
            product(total, extent)
        }),
    }
}

/// `wanted`, halved until it is at most the constant size in bytes.
fn fitting_align(wanted: u32, extent: &Expr, dtype: DType) -> u32 {
    let Some(n) = extent.as_int() else { return wanted };
    let bytes = (n * dtype.bytes() as i128).max(dtype.bytes() as i128);
    let mut align = wanted;
    while align > 1 && i128::from(align) > bytes {
        align /= 2;
    }
    align
}

fn promoted_sum(a: Expr, b: Expr) -> Expr {
    let (a, b) = Expr::promoted(a, b);
    sum(a, b)
}

#[derive(Default)]
struct Flattener {
    views: FastMap<BufferId, Buffer>,
    allocated: FastMap<BufferId, Buffer>,
    /// Offsets of the parameters that have one, by their memory.
    offsets: FastMap<VarId, Expr>,
}

/// What is known of extents of memory where it will be allocated: it moves out of all branches, and out of the loops and
/// lets whose names it does not use.
struct Around {
    /// Nothing but that arguments have no extent below 0.
    outside: Analyzer,
    /// The loops and lets around, and what is known inside of each.
    inside: Vec<(Var, Analyzer)>,
}

impl Around {
    fn of(kernel: &Kernel) -> Around {
        Around { outside: with_sizes(kernel), inside: Vec::new() }
    }

    fn last(&self) -> &Analyzer {
        self.inside.last().map_or(&self.outside, |(_, known)| known)
    }

    /// The extents of memory, each at least 0.
    fn raised(&self, shape: &[Expr]) -> Vec<Expr> {
        let of_shape = |var: &Var| shape.iter().any(|extent| uses(extent, var));
        let place = self.inside.iter().rev().find(|(var, _)| of_shape(var));
        let known = place.map_or(&self.outside, |(_, known)| known);
        let raise = |extent: &Expr| {
            let zero = Expr::int_of(0, extent.dtype());
            let is_natural = extent.as_int().is_some() || known.can_prove(&extent.clone().ge(zero.clone()));
            if is_natural { extent.clone() } else { extent.clone().max(zero) }
        };
        shape.iter().map(raise).collect()
    }
}

impl Flattener {
    /// A parameter without its offset: texts and executors count from its first element.
    fn parameter(&mut self, param: Param) -> Param {
        match param {
            Param::Buffer { handle, buffer } if !buffer.elem_offset.is_int(0) => {
                let plain = buffer.derive(|b| b.elem_offset = Expr::int(0));
                self.offsets.insert(buffer.data.id(), buffer.elem_offset.clone());
                if buffer.rank() == 1 && buffer.strides.is_empty() {
                    self.views.insert(buffer.id, plain.clone());
                }
                Param::Buffer { handle, buffer: plain }
            }
            other => other,
        }
    }

    /// Elements from the first one of the parameter or the allocation whose memory it is to that of a buffer; `None` for none.
    fn away(&self, buffer: &Buffer) -> Option<Expr> {
        let offset = &buffer.elem_offset;
        match self.offsets.get(&buffer.data.id()) {
            Some(first) if first == offset => None,
            Some(first) => {
                let (offset, first) = Expr::promoted(offset.clone(), first.clone());
                Some(offset - first)
            }
            None => (!offset.is_int(0)).then(|| offset.clone()),
        }
    }

    /// The place of an element in its memory.
    fn index(&self, buffer: &Buffer, indices: &[Expr]) -> Expr {
        let index = flat_index(buffer, indices);
        self.away(buffer).map_or(index.clone(), |away| promoted_sum(away, index))
    }

    /// Makes the one-dimensional form of every allocation, and the view through which it is accessed.
    fn allocations(&mut self, stmt: &Stmt, around: &mut Around) {
        let inner = match stmt {
            Stmt::For { var, min, extent, .. } => Some((var, with_loop(around.last(), var, min, extent))),
            Stmt::LaunchThread { var, extent, .. } => {
                let min = Expr::int_of(0, var.dtype());
                Some((var, with_loop(around.last(), var, &min, extent)))
            }
            Stmt::Let { var, value, .. } => Some((var, with_let(around.last(), var, value))),
            _ => None,
        };
        let n_around = around.inside.len();
        around.inside.extend(inner.map(|(var, known)| (var.clone(), known)));
        if let Stmt::Allocate { buffer, .. } = stmt {
            self.allocation(buffer, around);
        }
        for child in stmt_children(stmt) {
            self.allocations(child, around);
        }
        around.inside.truncate(n_around);
    }

    fn allocation(&mut self, buffer: &Buffer, around: &Around) {
        let raised = around.raised(&buffer.shape);
        let shown = match raised == buffer.shape {
            true => flat_extent(buffer),
            false => flat_extent(&buffer.derive(|b| b.shape = raised)),
        };
        let size = Analyzer::new().simplify(&shown);
        let align = fitting_align(buffer.align, &size, buffer.dtype);
        let unchanged = buffer.shape == [size.clone()] && buffer.align == align;
        let flat = if unchanged {
            buffer.clone()
        } else {
            buffer.derive(|b| {
                b.shape = vec![size.clone()];
                b.align = align;
            })
        };
        let view = if shown == size { flat.clone() } else { flat.derive(|b| b.shape = vec![shown.clone()]) };
        self.allocated.insert(buffer.id, flat);
        self.views.insert(buffer.id, view);
    }

    fn allocated(&self, buffer: &Buffer) -> Buffer {
        self.allocated.get(&buffer.id).unwrap_or(buffer).clone()
    }

    /// The one-dimensional buffer through which `buffer` is accessed: itself where that is what it is.
    fn view(&mut self, buffer: &Buffer) -> Buffer {
        if buffer.rank() == 1 && buffer.is_plain() && !self.views.contains_key(&buffer.id) {
            return buffer.clone();
        }
        let away = self.away(buffer);
        let make = || {
            buffer.derive(|b| {
                let extent = flat_extent(buffer);
                b.shape = vec![away.map_or(extent.clone(), |away| promoted_sum(away, extent))];
                b.strides = Vec::new();
                b.elem_offset = Expr::int(0);
            })
        };
        self.views.entry(buffer.id).or_insert_with(make).clone()
    }
}
