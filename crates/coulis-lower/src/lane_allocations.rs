//! Memory that a vectorized loop allocates: each lane has its own, interleaved with that of the others.

use coulis_ir::buffer::BufferId;
use coulis_ir::expr::{Expr, Var};
use coulis_ir::hash::FastMap;
use coulis_ir::{Buffer, Stmt};

use crate::affine::{product, sum, widen};
use crate::binders::redirect_accesses;
use crate::walk::map_children;

/// Gives every lane its own copy of the buffers that the body allocates: element `i` of lane `l` is `i * lanes + l`.
pub fn expand_allocations(stmt: Stmt, lane: &Var, count: i128) -> Stmt {
    match stmt {
        Stmt::Allocate { buffer, body } => {
            let body = expand_allocations(*body, lane, count);
            let widened = |b: &Buffer| {
                let extent = b.shape.first().cloned().unwrap_or_else(|| Expr::int(1));
                let n = Expr::int_of(count, extent.dtype());
                vec![product(extent, n)]
            };
            let new = Buffer::new(&buffer.name, buffer.dtype, widened(&buffer), buffer.scope);
            let mut views: FastMap<BufferId, Buffer> = FastMap::from_iter([(buffer.id, new.clone())]);
            let body = redirect_accesses(body, &buffer.data, &mut |b, index| {
                let view = views.entry(b.id).or_insert_with(|| {
                    b.derive(|d| {
                        d.data = new.data.clone();
                        d.shape = widened(b);
                    })
                });
                let dtype = index.dtype();
                let dtype = if dtype.bytes() < lane.dtype().bytes() { lane.dtype() } else { dtype };
                let scaled = product(widen(index.clone(), dtype), Expr::int_of(count, dtype));
                (view.clone(), sum(scaled, widen(lane.expr(), dtype)))
            });
            Stmt::allocate(new, body)
        }
        other => map_children(other, &mut |s| expand_allocations(s, lane, count)),
    }
}
