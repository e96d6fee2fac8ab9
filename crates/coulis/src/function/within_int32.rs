//! Whether the int32 arithmetic of a kernel stays within int32 for the sizes of a call.
//!
//! Sizes of tensor expressions are int32, and a schedule computes with them: a split by `f` gives
//! `(n + (f - 1)) // f` iterations and the place `outer * f + inner`, either of which may be too large though
//! `n` is small. The simplifier takes indices as mathematical integers (contract N6: a check at launch
//! vouches for that), and this is the check. It walks the kernel with the sizes as numbers and every loop
//! variable as a range. Guards are not taken into account, so the answer may be no where all goes well; the
//! 64-bit twin that runs then is right in either case. A kernel without a twin computes as its text says, except for the
//! sizes of its own memory: those that leave their type are refused, since accesses are proved by extents, not by
//! what their product comes to.

use std::collections::HashMap;

use coulis_ir::args::Bindings;
use coulis_ir::expr::VarId;
use coulis_ir::floor_div;
use coulis_ir::visit::{stmt_children, stmt_exprs};
use coulis_ir::{BinaryOp, Buffer, DType, Expr, Intrinsic, Kernel, Node, Stmt, Var};

/// A value's least and greatest.
type Range = (i128, i128);

/// Elements of a buffer whose sizes are int32, at most: index arithmetic then stays inside 32 bits.
pub(super) const MAX_ELEMENTS_INT32: i128 = 1 << 30;

/// Whether no int32 expression of sizes, constants and loop variables leaves int32, and the kernel's own memory is of a
/// size that int32 reaches.
pub(super) fn stays_within_int32(kernel: &Kernel, bindings: &Bindings) -> bool {
    let walk = Walk::over(kernel, bindings);
    walk.within.int32 && walk.too_large.is_none()
}

/// Memory of the kernel's own whose size leaves its type.
pub(super) struct TooLarge {
    /// What is allocated.
    pub(super) buffer: Buffer,
    /// Type of its extents.
    pub(super) dtype: DType,
}

/// The first memory of the kernel's own that is too large for the type of its extents, for these sizes.
pub(super) fn first_too_large(kernel: &Kernel, bindings: &Bindings) -> Option<TooLarge> {
    Walk::over(kernel, bindings).too_large
}

/// What was within its type so far.
#[derive(Clone, Copy)]
struct Within {
    int32: bool,
    int64: bool,
}

struct Walk {
    known: HashMap<VarId, Range>,
    within: Within,
    too_large: Option<TooLarge>,
}

impl Walk {
    fn over(kernel: &Kernel, bindings: &Bindings) -> Walk {
        let known =
            bindings.iter().map(|(var, value)| (*var, (i128::from(*value), i128::from(*value)))).collect();
        let mut walk = Walk { known, within: Within { int32: true, int64: true }, too_large: None };
        walk.stmt(&kernel.body);
        walk
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::For { var, min, extent, body, .. } => {
                let (min, extent) = (self.expr(min), self.expr(extent));
                self.turns(var, min, extent, body);
            }
            Stmt::LaunchThread { var, extent, body, .. } => {
                let extent = self.expr(extent);
                self.turns(var, Some((0, 0)), extent, body);
            }
            Stmt::Let { var, value, body } => {
                let value = self.expr(value);
                self.bind(var, value);
                self.stmt(body);
            }
            Stmt::Allocate { buffer, body } => {
                self.allocation(buffer);
                self.stmt(body);
            }
            _ => {
                for expr in stmt_exprs(stmt) {
                    self.expr(expr);
                }
                for child in stmt_children(stmt) {
                    self.stmt(child);
                }
            }
        }
    }

    /// The body of a loop, unless it has no iterations.
    fn turns(&mut self, var: &Var, min: Option<Range>, extent: Option<Range>, body: &Stmt) {
        if matches!(extent, Some((_, most)) if most <= 0) {
            return;
        }
        let range = min.zip(extent).and_then(|(min, extent)| Some((min.0, min.1.checked_add(extent.1 - 1)?)));
        let range = self.checked(range, var.dtype());
        self.bind(var, range);
        self.stmt(body);
    }

    /// Memory of extents that are not all constants is to be of a size that the type of the extents reaches.
    fn allocation(&mut self, buffer: &Buffer) {
        let around = std::mem::replace(&mut self.within, Within { int32: true, int64: true });
        let mut elements = 1i128;
        for extent in &buffer.shape {
            let most = self.expr(extent).map_or(0, |(_, most)| most.max(0));
            elements = elements.saturating_mul(most);
        }
        let is_narrow = buffer.shape.iter().any(|e| e.as_int().is_none() && e.dtype() == DType::I32);
        let bytes = elements.saturating_mul(buffer.dtype.bytes() as i128);
        let beyond_int32 = is_narrow && (!self.within.int32 || elements >= MAX_ELEMENTS_INT32);
        let beyond_int64 = !self.within.int64 || bytes > i128::from(i64::MAX);
        if (beyond_int32 || beyond_int64) && self.too_large.is_none() {
            let dtype = if beyond_int64 { DType::I64 } else { DType::I32 };
            self.too_large = Some(TooLarge { buffer: buffer.clone(), dtype });
        }
        self.within.int32 &= around.int32;
        self.within.int64 &= around.int64;
    }

    fn bind(&mut self, var: &Var, value: Option<Range>) {
        match value {
            Some(range) => self.known.insert(var.id(), range),
            None => self.known.remove(&var.id()),
        };
    }

    fn checked(&mut self, range: Option<Range>, dtype: DType) -> Option<Range> {
        let (least, most) = range?;
        let is_within = |(lo, hi): Range| lo <= least && most <= hi;
        if dtype == DType::I32 {
            self.within.int32 &= is_within((i128::from(i32::MIN), i128::from(i32::MAX)));
        }
        let is_kept = is_within((i128::from(i64::MIN), i128::from(i64::MAX)));
        self.within.int64 &= is_kept;
        range.filter(|_| is_kept)
    }

    /// The range of an integer that depends on sizes and loop variables only.
    fn expr(&mut self, expr: &Expr) -> Option<Range> {
        let range = match expr.node() {
            Node::Int(value) => Some((*value, *value)),
            Node::Var(var) => self.known.get(&var.id()).copied(),
            Node::Binary(op, a, b) => {
                let (a, b) = (self.expr(a), self.expr(b));
                a.zip(b).and_then(|(a, b)| binary(*op, a, b))
            }
            Node::Cast(a) => self.expr(a).filter(|_| expr.dtype().is_int()),
            Node::Select(cond, a, b) | Node::IfThenElse(cond, a, b) => {
                self.expr(cond);
                let (a, b) = (self.expr(a), self.expr(b));
                a.zip(b).map(|(a, b)| (a.0.min(b.0), a.1.max(b.1)))
            }
            Node::Ramp(base, stride) => {
                let (base, stride) = (self.expr(base), self.expr(stride));
                let last = i128::from(expr.lanes()) - 1;
                let span = stride.and_then(|stride| binary(BinaryOp::Mul, stride, (0, last)));
                base.zip(span).and_then(|(base, span)| binary(BinaryOp::Add, base, span))
            }
            Node::Broadcast(a) => self.expr(a),
            Node::Let(var, value, body) => {
                let value = self.expr(value);
                self.bind(var, value);
                self.expr(body)
            }
            Node::Call(Intrinsic::Likely, args) => self.expr(&args[0]),
            Node::Not(_) | Node::Call(..) | Node::Load(..) | Node::Float(_) => {
                for child in expr.children() {
                    self.expr(child);
                }
                None
            }
        };
        self.checked(range, expr.dtype())
    }
}

/// What an operation makes of ranges; `None` for operations that indices do not use, and for divisors that may be 0.
fn binary(op: BinaryOp, a: Range, b: Range) -> Option<Range> {
    let corners = |of: &dyn Fn(i128, i128) -> i128| {
        let all = [of(a.0, b.0), of(a.0, b.1), of(a.1, b.0), of(a.1, b.1)];
        all.iter().fold((all[0], all[0]), |(least, most), &v| (least.min(v), most.max(v)))
    };
    let divides = b.0 > 0 || b.1 < 0;
    let size = b.0.abs().max(b.1.abs()) - 1;
    match op {
        BinaryOp::Add => Some((a.0.checked_add(b.0)?, a.1.checked_add(b.1)?)),
        BinaryOp::Sub => Some((a.0.checked_sub(b.1)?, a.1.checked_sub(b.0)?)),
        BinaryOp::Mul => Some(corners(&|x, y| x.saturating_mul(y))),
        BinaryOp::Div if divides => Some(corners(&|x, y| x / y)),
        BinaryOp::FloorDiv if divides => Some(corners(&floor_div)),
        BinaryOp::TruncMod if divides => {
            Some((if a.0 < 0 { (-size).max(a.0) } else { 0 }, if a.1 > 0 { size.min(a.1) } else { 0 }))
        }
        BinaryOp::FloorMod if b.0 > 0 => Some((0, if a.0 >= 0 { size.min(a.1) } else { size })),
        BinaryOp::Min => Some((a.0.min(b.0), a.1.min(b.1))),
        BinaryOp::Max => Some((a.0.max(b.0), a.1.max(b.1))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use coulis_ir::args::{ArgInfo, ArrayInfo, bind_args};
    use coulis_schedule::{Schedule, build_nest};
    use coulis_tensor::{compute, placeholder, reduce_axis, sum, var};

    use super::*;

    #[test]
    fn turns_of_a_fused_loop_count_though_the_memory_behind_them_is_small() {
        let (n, m) = (var("n"), var("m"));
        let a = placeholder(&[n.expr(), m.expr()], DType::F32, "A").unwrap();
        let (i, k) = (reduce_axis(n.expr(), "i"), reduce_axis(m.expr(), "k"));
        let b = compute(&[Expr::int(1)], "B", |_| sum(a.at((&i, &k)), &[i.clone(), k.clone()])).unwrap();
        let args = [a, b.clone()];
        let mut schedule = Schedule::new(&args[1..], &args).unwrap();
        schedule.fuse(&b, &[i, k]).unwrap();
        let kernel = build_nest(&schedule, &args, "fused").unwrap();
        let array = |shape: &[i64]| {
            let strides = vec![0; shape.len()];
            ArgInfo::Array(ArrayInfo { dtype: DType::F32, shape: shape.to_vec(), strides })
        };
        for (extent, within) in [(40_000, true), (46_340, true), (46_341, false), (50_000, false)] {
            let bindings = bind_args(&kernel, &[array(&[extent, extent]), array(&[1])]).unwrap();
            assert_eq!(stays_within_int32(&kernel, &bindings), within, "{extent}");
        }
    }

    #[test]
    fn ranges_hold_every_value_and_are_no_wider_for_single_ones() {
        use BinaryOp::{Add, Div, FloorDiv, FloorMod, Max, Min, Mul, Sub, TruncMod};
        let exact = |op, x: i128, y: i128| match op {
            Add => x + y,
            Sub => x - y,
            Mul => x * y,
            Div => x / y,
            TruncMod => x % y,
            FloorDiv => floor_div(x, y),
            FloorMod => x - y * floor_div(x, y),
            Min => x.min(y),
            _ => x.max(y),
        };
        for op in [Add, Sub, Mul, Div, TruncMod, FloorDiv, FloorMod, Min, Max] {
            for (a0, a1) in (-5..=5).flat_map(|lo| (lo..=5).map(move |hi| (lo, hi))) {
                for (b0, b1) in (-4..=4).flat_map(|lo| (lo..=4).map(move |hi| (lo, hi))) {
                    let Some((least, most)) = binary(op, (a0, a1), (b0, b1)) else { continue };
                    for (x, y) in (a0..=a1).flat_map(|x| (b0..=b1).map(move |y| (x, y))) {
                        let value = exact(op, x, y);
                        assert!(least <= value && value <= most, "{op:?} {x} {y} {least} {most}");
                    }
                }
            }
        }
    }
}
