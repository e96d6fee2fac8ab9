//! What variants look at: a tile call with its reducer, its registers, and the groups of threads that it folds.

use coulis_ir::stmt::{Region, TileOp};
use coulis_ir::{Buffer, DType, ExecScope, MemScope, Reducer, Target, TileCall};
use coulis_layout::TileLayout;

use crate::block::Block;
use crate::error::TileError;
use crate::groups::Groups;

/// One operand of a call: the tile, and the register of the calling thread that holds its element.
#[derive(Clone, Debug)]
pub struct Operand {
    /// The tile as the call names it.
    pub tile: Buffer,
    /// The calling thread's own memory of it, one-dimensional.
    pub register: Buffer,
}

/// A reduction as variants see it.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// The machine.
    pub target: &'a Target,
    /// Who executes the call together.
    pub scope: ExecScope,
    /// The threads of the block.
    pub block: &'a Block,
    /// The reducer.
    pub reducer: &'a Reducer,
    /// Whether the destinations' old values take part.
    pub accum: bool,
    /// Sources, one an input of the reducer.
    pub srcs: Vec<Operand>,
    /// Destinations, one a result.
    pub dsts: Vec<Operand>,
    /// The groups that fold, or what was found instead of registers with one element a thread.
    pub groups: Result<Groups, String>,
}

impl<'a> Facts<'a> {
    /// The facts of a reduction. `register` gives the calling thread's own memory of a tile, where it has one.
    ///
    /// # Errors
    /// Where the call is no reduction, or is wrong whatever the variant.
    pub fn of(
        call: &'a TileCall,
        target: &'a Target,
        block: &'a Block,
        register: &dyn Fn(&Buffer) -> Option<Buffer>,
    ) -> Result<Facts<'a>, TileError> {
        let (reducer, axes, accum) = match &call.op {
            TileOp::ReduceBy { reducer, axes, accum } => (&**reducer, axes, *accum),
            TileOp::Reduce { name, .. } => {
                let types: Vec<&str> = call.srcs.iter().map(|r| r.buffer.dtype.name()).collect();
                return Err(TileError::Reducer { name: name.clone(), types: types.join(", ") });
            }
            TileOp::Copy => return Err(TileError::Unsupported { what: "a tile copy".to_owned() }),
        };
        let inputs = reducer.input_dtypes();
        let name = || reducer.name.clone();
        for (what, wanted, found) in [
            ("sources", inputs.len(), call.srcs.len()),
            ("destinations", reducer.results.len(), call.dsts.len()),
        ] {
            if wanted != found {
                return Err(TileError::Count { reducer: name(), what, wanted, found });
            }
        }
        for (at, (region, &wanted)) in call.srcs.iter().zip(&inputs).enumerate() {
            let found = region.buffer.dtype;
            if found != wanted {
                let buffer = region.buffer.name.clone();
                let (wanted, found) = (wanted.name(), found.name());
                return Err(TileError::SourceType { reducer: name(), at, wanted, buffer, found });
            }
        }
        if accum && !is_own_result(reducer) {
            return Err(TileError::Accum { reducer: name() });
        }
        let operand = |region: &Region| Operand {
            tile: region.buffer.clone(),
            register: register(&region.buffer).unwrap_or_else(|| region.buffer.clone()),
        };
        let reduced = reduced_dims(axes, call.srcs.first().map_or(0, |r| r.buffer.rank()))?;
        let groups = groups_of(call, &reduced, block, target, register);
        Ok(Facts {
            target,
            scope: call.scope,
            block,
            reducer,
            accum,
            srcs: call.srcs.iter().map(operand).collect(),
            dsts: call.dsts.iter().map(operand).collect(),
            groups,
        })
    }
}

/// Whether results are the state, rounded to their types.
fn is_own_result(reducer: &Reducer) -> bool {
    reducer.finish.body.iter().cloned().eq(reducer.finish.params.iter().map(coulis_ir::Var::expr))
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
            Ok(at) if at < rank && !dims.contains(&at) => dims.push(at),
            _ => return Err(TileError::Axis { axis, rank }),
        }
    }
    dims.sort_unstable();
    Ok(dims)
}

fn groups_of(
    call: &TileCall,
    reduced: &[usize],
    block: &Block,
    target: &Target,
    register: &dyn Fn(&Buffer) -> Option<Buffer>,
) -> Result<Groups, String> {
    match call.scope {
        ExecScope::Cta => {}
        ExecScope::Warp if block.n_threads() <= target.warp => {}
        ExecScope::Warp => return Err(format!("warp scope in a block of {} threads", block.n_threads())),
        ExecScope::Thread | ExecScope::Warpgroup | ExecScope::Cluster => {
            return Err(format!("{} scope", call.scope.name()));
        }
    }
    // In a block of one warp the lane is the thread.
    let axis = match call.scope {
        ExecScope::Warp if call.srcs.iter().any(|r| uses_axis(&r.buffer, "laneid")) => "laneid",
        _ => "tx",
    };
    let mut groups: Option<Groups> = None;
    for region in &call.srcs {
        let layout = distributed(region, register)?;
        let shape = constant_shape(&region.buffer)?;
        let found = Groups::of(layout, &shape, reduced, axis, block.n_threads())?;
        if groups.as_ref().is_some_and(|first| *first != found) {
            return Err("sources of different layouts".to_owned());
        }
        groups = Some(found);
    }
    let groups = groups.ok_or("no source")?;
    for region in &call.dsts {
        let layout = distributed(region, register)?;
        if !groups.gives_totals_to(layout, axis) {
            let name = &region.buffer.name;
            return Err(format!("`{name}` with `{layout}`, which is not a total a group"));
        }
    }
    Ok(groups)
}

fn uses_axis(buffer: &Buffer, axis: &str) -> bool {
    buffer.layout.as_ref().is_some_and(|layout| layout.axes().contains(&axis))
}

fn distributed<'r>(
    region: &'r Region,
    register: &dyn Fn(&Buffer) -> Option<Buffer>,
) -> Result<&'r TileLayout, String> {
    let buffer = &region.buffer;
    if buffer.scope != MemScope::Local {
        return Err(format!("`{}` in {} memory", buffer.name, buffer.scope.name()));
    }
    let Some(layout) = &buffer.layout else {
        return Err(format!("`{}` without a layout", buffer.name));
    };
    if *region != Region::whole(buffer) {
        return Err(format!("a part of `{}`", buffer.name));
    }
    match register(buffer) {
        Some(own) if own.shape.len() == 1 && own.shape[0].is_int(1) => Ok(layout),
        Some(own) => Err(format!("`{}` of {:?} elements a thread", buffer.name, own.shape)),
        None => Err(format!("`{}`, which has no registers", buffer.name)),
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
