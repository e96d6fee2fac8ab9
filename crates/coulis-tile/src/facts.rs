//! What variants of reductions look at: a tile call with its reducer, and the groups of threads that it folds.

use coulis_ir::stmt::TileOp;
use coulis_ir::{BinaryOp, Buffer, DType, ExecScope, Expr, MemScope, Node, Reducer, TileCall};
use coulis_layout::TileLayout;

use crate::call::{Call, Operand};
use crate::error::TileError;
use crate::groups::Groups;
use crate::rounding::holds;

/// A reduction as variants see it.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// What every call has.
    pub call: Call<'a>,
    /// The reducer.
    pub reducer: &'a Reducer,
    /// Whether the destinations' old values take part.
    pub accum: bool,
    /// The reduced dimensions of the sources, ascending.
    pub reduced: Vec<usize>,
    /// The groups that fold, or what was found instead of registers with one element a thread.
    pub groups: Result<Groups, String>,
}

impl<'a> std::ops::Deref for Facts<'a> {
    type Target = Call<'a>;

    fn deref(&self) -> &Call<'a> {
        &self.call
    }
}

impl<'a> Facts<'a> {
    /// The facts of a reduction.
    ///
    /// # Errors
    /// Where the call is no reduction, or is wrong whatever the variant.
    pub fn of(tile: &'a TileCall, call: Call<'a>) -> Result<Facts<'a>, TileError> {
        let (reducer, axes, accum) = match &tile.op {
            TileOp::ReduceBy { reducer, axes, accum } => (&**reducer, axes, *accum),
            TileOp::Reduce { name, .. } => {
                let types: Vec<&str> = tile.srcs.iter().map(|r| r.buffer.dtype.name()).collect();
                return Err(TileError::Reducer { name: name.clone(), types: types.join(", ") });
            }
            TileOp::Copy => return Err(TileError::Unsupported { what: "a copy as a reduction".to_owned() }),
        };
        let inputs = reducer.input_dtypes();
        let name = || reducer.name.clone();
        for (what, wanted, found) in [
            ("source", inputs.len(), call.srcs.len()),
            ("destination", reducer.results.len(), call.dsts.len()),
        ] {
            if wanted != found {
                return Err(TileError::Count { reducer: name(), what, wanted, found });
            }
        }
        for (at, (src, &wanted)) in call.srcs.iter().zip(&inputs).enumerate() {
            let found = src.tile().dtype;
            if found != wanted {
                let buffer = src.tile().name.clone();
                let (wanted, found) = (wanted.name(), found.name());
                return Err(TileError::SourceType { reducer: name(), at, wanted, buffer, found });
            }
        }
        if accum && !is_own_result(reducer) {
            return Err(TileError::Accum { reducer: name() });
        }
        for (dst, field) in call.dsts.iter().zip(&reducer.fields).filter(|_| accum) {
            let found = dst.tile().dtype;
            if !takes_old(reducer, field.dtype, found) {
                let (reducer, buffer) = (name(), dst.tile().name.clone());
                let (state, found) = (field.dtype.name(), found.name());
                return Err(TileError::AccumType { reducer, state, buffer, found });
            }
        }
        let reduced = reduced_dims(axes, call.srcs.first().map_or(0, |src| src.tile().rank()))?;
        let groups = match (call.options.lanes, call.options.warps) {
            _ if call.scope == ExecScope::Cluster => Err("cluster scope".to_owned()),
            (Some(n_lanes), None) => groups_of_lanes(&call, n_lanes),
            (None, Some(n_warps)) => groups_of_warps(&call, n_warps),
            (None, None) => groups_of(&call, &reduced),
            (Some(_), Some(_)) => Err("both `lanes=` and `warps=`".to_owned()),
        };
        Ok(Facts { call, reducer, accum, reduced, groups })
    }
}

/// Whether results are the state, rounded to their types.
fn is_own_result(reducer: &Reducer) -> bool {
    reducer.finish.body.iter().cloned().eq(reducer.finish.params.iter().map(coulis_ir::Var::expr))
}

/// Whether a field of a state takes what a destination holds: each value; of sums and products what wraps to the same integer, or is
/// rounded to the type of float in which they are made.
fn takes_old(reducer: &Reducer, field: DType, dst: DType) -> bool {
    let is_ring = |e: &Expr| matches!(e.node(), Node::Binary(BinaryOp::Add | BinaryOp::Mul, ..));
    let is_of_ring = reducer.combine.body.iter().all(is_ring);
    match (field.int_range(), dst.int_range()) {
        (Some(_), Some(_)) if is_of_ring && field.bytes() >= dst.bytes() => true,
        (Some((lo, hi)), Some((least, greatest))) => lo <= least && greatest <= hi,
        (Some(_), None) => false,
        (None, _) => is_of_ring || holds(field, dst),
    }
}

/// Whether a state is its own result, type and all.
pub(crate) fn finishes_nothing(reducer: &Reducer) -> bool {
    let types = |fields: &[coulis_ir::Field]| fields.iter().map(|f| f.dtype).collect::<Vec<DType>>();
    is_own_result(reducer) && types(&reducer.fields) == types(&reducer.results)
}

/// The dimensions that axes name, ascending; negative ones count from the end.
fn reduced_dims(axes: &[i64], rank: usize) -> Result<Vec<usize>, TileError> {
    let mut dims = Vec::with_capacity(axes.len());
    for &axis in axes {
        let at = if axis < 0 { axis + rank as i64 } else { axis };
        match usize::try_from(at) {
            Ok(at) if at < rank && dims.contains(&at) => return Err(TileError::AxisTwice { axis, rank }),
            Ok(at) if at < rank => dims.push(at),
            _ => return Err(TileError::Axis { axis, rank }),
        }
    }
    dims.sort_unstable();
    Ok(dims)
}

/// The one group of a call whose operands are one register a thread, in a block of `n_warps` warps.
fn groups_of_warps(call: &Call, n_warps: u32) -> Result<Groups, String> {
    let n_threads = call.block.n_threads();
    if n_warps.checked_mul(call.target.warp) != Some(n_threads) {
        return Err(format!(
            "{n_warps} warps of {} lanes in a block of {n_threads} threads",
            call.target.warp
        ));
    }
    groups_of_lanes(call, n_threads)
}

/// The groups of a call whose operands are one register a thread.
fn groups_of_lanes(call: &Call, n_lanes: u32) -> Result<Groups, String> {
    let most = call.scope_threads().min(call.block.n_threads());
    if n_lanes > most {
        return Err(format!("groups of {n_lanes} threads in {} of {most}", call.scope.name()));
    }
    for operand in call.srcs.iter().chain(&call.dsts) {
        let tile = operand.tile();
        let is_one = tile.scope == MemScope::Local && !operand.is_spread && tile.shape == [Expr::int(1)];
        if !is_one {
            return Err(format!("`{}`, which is not one register a thread", tile.name));
        }
    }
    Groups::of_lanes(n_lanes, call.block.n_threads())
}

fn groups_of(call: &Call, reduced: &[usize]) -> Result<Groups, String> {
    let n_threads = call.block.n_threads();
    match call.scope {
        ExecScope::Cta => {}
        // In a block of one warp the lane is the thread.
        ExecScope::Warp if n_threads <= call.target.warp => {}
        ExecScope::Warp => return Err(format!("warp scope in a block of {n_threads} threads")),
        ExecScope::Thread | ExecScope::Warpgroup | ExecScope::Cluster => {
            return Err(format!("{} scope", call.scope.name()));
        }
    }
    let axis = "tx";
    let mut groups: Option<Groups> = None;
    for src in &call.srcs {
        let layout = distributed(src)?;
        let shape = constant_shape(src.tile())?;
        let found = Groups::of(layout, &shape, reduced, axis, n_threads)?;
        if groups.as_ref().is_some_and(|first| *first != found) {
            return Err("sources of different layouts".to_owned());
        }
        groups = Some(found);
    }
    let groups = groups.ok_or("no source")?;
    for dst in &call.dsts {
        let layout = distributed(dst)?;
        if !groups.gives_totals_to(layout, axis) {
            let name = &dst.tile().name;
            return Err(format!("`{name}` with `{layout}`, which is not a total a group"));
        }
    }
    Ok(groups)
}

fn distributed(operand: &Operand) -> Result<&TileLayout, String> {
    let buffer = operand.tile();
    if buffer.scope != MemScope::Local {
        return Err(format!("`{}` in {} memory", buffer.name, buffer.scope.name()));
    }
    let Some(layout) = &buffer.layout else {
        return Err(format!("`{}` without a layout", buffer.name));
    };
    if !operand.is_whole() {
        return Err(format!("a part of `{}`", buffer.name));
    }
    match &operand.register.shape[..] {
        [one] if operand.is_spread && one.is_int(1) => Ok(layout),
        [n] if operand.is_spread => {
            let n = n.as_int().map_or_else(|| "several".to_owned(), |n| n.to_string());
            Err(format!("`{}` of {n} elements a thread", buffer.name))
        }
        _ => Err(format!("`{}`, which has no registers", buffer.name)),
    }
}

fn constant_shape(buffer: &Buffer) -> Result<Vec<i64>, String> {
    let extent = |e: &coulis_ir::Expr| e.as_int().and_then(|n| i64::try_from(n).ok());
    let shape = buffer.shape.iter().map(extent).collect::<Option<Vec<i64>>>();
    shape.ok_or_else(|| format!("`{}` of a size that is not constant", buffer.name))
}

/// Whether a buffer's layout, where it has one, is row-major over memory.
pub fn is_row_major(buffer: &Buffer) -> bool {
    let Some(layout) = &buffer.layout else { return true };
    constant_shape(buffer).is_ok_and(|shape| layout.canonical() == TileLayout::row_major(&shape).canonical())
}
