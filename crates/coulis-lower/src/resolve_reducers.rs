//! Named reducers of tile calls become the reducers themselves.
//!
//! Lowering knows no catalogue, so whoever has one gives a look-up. `Tx.sum(...)` of two `float16` sources becomes
//! `Tx.reduce(...)` by what the look-up gives for the name and these types. This is a step before [`crate::lower`], not
//! a pass: kernels without named reducers are left as they are.

use coulis_ir::stmt::TileOp;
use coulis_ir::visit::rewrite_stmt;
use coulis_ir::{DType, Kernel, Reducer, Stmt};
use coulis_tile::TileError;

use crate::pass::LowerError;

/// Gives the reducer of a name for sources of these types, or `None` where there is none.
pub type Lookup<'a> = &'a dyn Fn(&str, &[DType]) -> Option<Reducer>;

/// Puts reducers in the place of their names.
///
/// # Errors
/// Where the look-up has no answer.
pub fn resolve_reducers(kernel: Kernel, lookup: Lookup) -> Result<Kernel, LowerError> {
    let mut error = None;
    let body = rewrite_stmt(kernel.body, &mut |_| None, &mut |stmt| {
        let Stmt::Tile(mut call) = stmt else { return stmt };
        if let TileOp::Reduce { name, axes, accum } = &call.op {
            let types: Vec<DType> = call.srcs.iter().map(|src| src.buffer.dtype).collect();
            match lookup(name, &types) {
                Some(reducer) => {
                    let (axes, accum) = (axes.clone(), *accum);
                    call.op = TileOp::ReduceBy { reducer: Box::new(reducer), axes, accum };
                }
                None => {
                    let types: Vec<&str> = types.iter().map(|d| d.name()).collect();
                    let found = TileError::Reducer { name: name.clone(), types: types.join(", ") };
                    error.get_or_insert(LowerError::Tile { site: call.site, error: found });
                }
            }
        }
        Stmt::Tile(call)
    });
    match error {
        Some(error) => Err(error),
        None => Ok(Kernel { body, ..kernel }),
    }
}
