//! Shared memory that is more than a kernel's text may declare is asked for at launch.
//!
//! Compilers take 48 KiB of arrays of a block; a machine has more of it for launches that ask. Where the arrays of
//! a launch together are more than a text may declare, all of them become memory that is sized at launch. Whether the
//! machine has that much is the verifier's to say (V25). Source: CUDA C++ Programming Guide, dynamic shared memory.
//! Order: after `hoist_allocations`, which makes some arrays and moves the others to the top of their launch, and after
//! `finish_in_last_block`, which makes one more.

use coulis_ir::hash::FastMap;

use coulis_ir::visit::for_each_stmt;
use coulis_ir::{Buffer, Form, Kernel, MemScope, Stmt};

use crate::binders::redirect_accesses;
use crate::pass::{LowerError, Options, Pass};
use crate::walk::map_children;

/// The pass.
pub const PASS: Pass = Pass {
    name: "size_shared_memory",
    from: Form::Flat,
    to: Form::Flat,
    run: size_shared_memory,
    doc: "asks for the shared memory of a block at launch, where it is more than a text may declare",
};

/// Has large shared memory sized at launch.
pub fn size_shared_memory(kernel: Kernel, options: &Options) -> Result<Kernel, LowerError> {
    if !options.target.has_threads() {
        return Ok(kernel);
    }
    let body = launches(kernel.body, u64::from(options.target.block.shared_bytes));
    Ok(Kernel { body, ..kernel })
}

/// Looks at each outermost launch.
fn launches(stmt: Stmt, declared: u64) -> Stmt {
    match stmt {
        Stmt::LaunchThread { .. } if bytes_of_arrays(&stmt) > declared => sized_at_launch(stmt),
        Stmt::LaunchThread { .. } => stmt,
        other => map_children(other, &mut |s| launches(s, declared)),
    }
}

/// Bytes of all shared arrays of constant size.
fn bytes_of_arrays(stmt: &Stmt) -> u64 {
    let mut total = 0u64;
    for_each_stmt(stmt, &mut |s| {
        if let Stmt::Allocate { buffer, .. } = s
            && buffer.scope == MemScope::Shared
        {
            let extent = |e: &coulis_ir::Expr| e.as_int().and_then(|n| u64::try_from(n.max(0)).ok());
            let elements = buffer.shape.iter().try_fold(1u64, |n, e| n.checked_mul(extent(e)?));
            let bytes = elements.and_then(|n| n.checked_mul(buffer.dtype.bytes() as u64));
            total = total.saturating_add(bytes.unwrap_or(0));
        }
    });
    total
}

fn sized_at_launch(stmt: Stmt) -> Stmt {
    let Stmt::Allocate { buffer, body } = stmt else {
        return map_children(stmt, &mut sized_at_launch);
    };
    let body = sized_at_launch(*body);
    if buffer.scope != MemScope::Shared {
        return Stmt::allocate(buffer, body);
    }
    let at_launch = |b: &Buffer| b.derive(|d| d.scope = MemScope::SharedDyn);
    let data = buffer.data.clone();
    let sized = at_launch(&buffer);
    let mut windows = FastMap::from_iter([(buffer.id, sized.clone())]);
    let body = redirect_accesses(body, &data, &mut |b, index| {
        (windows.entry(b.id).or_insert_with(|| at_launch(b)).clone(), index.clone())
    });
    Stmt::allocate(sized, body)
}
