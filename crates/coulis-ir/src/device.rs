//! What runs on the host and what on the device: the launches of a Flat kernel, in order.
//!
//! In a Flat kernel for a machine with threads, launches stand outermost: global memory that lives across
//! launches, then one chain of `launch_thread` a device kernel, blocks, blocks of a cluster and threads in
//! any order, whose body has none. Emitters and the simulator read the same list. Source: seed 003, whose
//! functions become `NAME_kernel`, `NAME_kernel_1`, ....

use crate::buffer::{Buffer, MemScope};
use crate::expr::{Expr, Var};
use crate::kernel::Kernel;
use crate::stmt::{Stmt, ThreadTag};
use crate::visit::stmt_children;

/// One launch of a grid of blocks.
#[derive(Clone, Debug)]
pub struct Launch<'k> {
    /// Variables of `blockIdx.x`, `.y`, `.z` where the body has them, and extents (1 where not launched).
    pub grid: [(Option<Var>, Expr); 3],
    /// Variables of `clusterCtaIdx.x`, `.y`, `.z` where the body has them, and extents (1 where not launched).
    pub cluster: [(Option<Var>, Expr); 3],
    /// Variables of `threadIdx.x`, `.y`, `.z` where the body has them, and extents (1 where not launched).
    pub block: [(Option<Var>, Expr); 3],
    /// What each thread executes.
    pub body: &'k Stmt,
}

impl Launch<'_> {
    /// Threads of a block, where its extents are constants.
    pub fn n_threads(&self) -> Option<i128> {
        self.block.iter().try_fold(1i128, |n, (_, extent)| n.checked_mul(extent.as_int()?))
    }

    /// Whether its blocks run in clusters.
    pub fn has_clusters(&self) -> bool {
        self.cluster.iter().any(|(var, _)| var.is_some())
    }

    /// Blocks of a cluster along x, y and z, where the extents are constants.
    pub fn cluster_extents(&self) -> Option<[i128; 3]> {
        let [x, y, z] = &self.cluster;
        Some([x.1.as_int()?, y.1.as_int()?, z.1.as_int()?])
    }
}

/// Whether a statement launches blocks of threads.
pub fn has_launches(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::LaunchThread { .. }) || stmt_children(stmt).any(has_launches)
}

/// Whether a statement names scope ids, which become indices of launches.
pub fn names_scope_ids(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::ScopeIds { .. }) || stmt_children(stmt).any(names_scope_ids)
}

/// What the host does for one call of a kernel.
#[derive(Clone, Debug, Default)]
pub struct HostProgram<'k> {
    /// Global memory that lives while the launches run, beside the parameters; its contents start unwritten.
    pub temporaries: Vec<Buffer>,
    /// Values that the host computes first, each from parameters and the ones before.
    pub lets: Vec<(Var, Expr)>,
    /// The launches, in order.
    pub launches: Vec<Launch<'k>>,
}

/// Why a kernel is no program of launches.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DeviceError {
    /// A statement that no thread executes.
    #[error(
        "a {stmt} of `{kernel}` stands outside every launch; bind an axis of each stage to a block or thread index"
    )]
    OutsideLaunch {
        /// Kernel name.
        kernel: String,
        /// Kind of statement.
        stmt: &'static str,
    },
    /// A launch that is not outermost.
    #[error("`{tag}` of `{kernel}` is launched inside other statements of a device kernel")]
    NotOutermost {
        /// Kernel name.
        kernel: String,
        /// Which index.
        tag: &'static str,
    },
    /// One index launched twice in a chain.
    #[error("`{tag}` of `{kernel}` is launched inside a launch of itself")]
    Twice {
        /// Kernel name.
        kernel: String,
        /// Which index.
        tag: &'static str,
    },
}

/// The launches of a Flat kernel.
///
/// # Errors
/// Where a statement is outside every launch, or a launch inside other statements.
pub fn host_program(kernel: &Kernel) -> Result<HostProgram<'_>, DeviceError> {
    host_parts(kernel).map(|parts| parts.program).map_err(|(_, error)| error)
}

/// A host program beside the statements that it is made of.
pub(crate) struct HostParts<'k> {
    /// The program.
    pub program: HostProgram<'k>,
    /// The chain of each launch, its outermost index first.
    pub chains: Vec<Vec<&'k Stmt>>,
}

/// As [`host_program`], with the statements; a fault comes with the statement that it is about.
pub(crate) fn host_parts(kernel: &Kernel) -> Result<HostParts<'_>, (&Stmt, DeviceError)> {
    let mut parts = HostParts { program: HostProgram::default(), chains: Vec::new() };
    host(&kernel.body, kernel, &mut parts)?;
    Ok(parts)
}

fn host<'k>(
    stmt: &'k Stmt,
    kernel: &Kernel,
    parts: &mut HostParts<'k>,
) -> Result<(), (&'k Stmt, DeviceError)> {
    match stmt {
        Stmt::Seq(stmts) => stmts.iter().try_for_each(|s| host(s, kernel, parts)),
        Stmt::Allocate { buffer, body } if buffer.scope == MemScope::Global => {
            parts.program.temporaries.push(buffer.clone());
            host(body, kernel, parts)
        }
        Stmt::Let { var, value, body } => {
            parts.program.lets.push((var.clone(), value.clone()));
            host(body, kernel, parts)
        }
        Stmt::Annotate { body, .. } => host(body, kernel, parts),
        Stmt::LaunchThread { .. } => chain(stmt, kernel, parts),
        other => {
            let kernel = kernel.name.clone();
            Err((other, DeviceError::OutsideLaunch { kernel, stmt: other.kind_name() }))
        }
    }
}

/// Adds the launch whose chain begins at `stmt`.
fn chain<'k>(
    stmt: &'k Stmt,
    kernel: &Kernel,
    parts: &mut HostParts<'k>,
) -> Result<(), (&'k Stmt, DeviceError)> {
    let one = || [(None, Expr::int(1)), (None, Expr::int(1)), (None, Expr::int(1))];
    let not_outermost =
        |tag: ThreadTag| DeviceError::NotOutermost { kernel: kernel.name.clone(), tag: tag.name() };
    let mut launch = Launch { grid: one(), cluster: one(), block: one(), body: stmt };
    let mut links = Vec::new();
    let mut at = stmt;
    while let Stmt::LaunchThread { tag, var, extent, body } = at {
        let slot = match tag {
            ThreadTag::BlockX => &mut launch.grid[0],
            ThreadTag::BlockY => &mut launch.grid[1],
            ThreadTag::BlockZ => &mut launch.grid[2],
            ThreadTag::ClusterX => &mut launch.cluster[0],
            ThreadTag::ClusterY => &mut launch.cluster[1],
            ThreadTag::ClusterZ => &mut launch.cluster[2],
            ThreadTag::ThreadX => &mut launch.block[0],
            ThreadTag::ThreadY => &mut launch.block[1],
            ThreadTag::ThreadZ => &mut launch.block[2],
            ThreadTag::VThread => return Err((at, not_outermost(*tag))),
        };
        if slot.0.is_some() {
            return Err((at, DeviceError::Twice { kernel: kernel.name.clone(), tag: tag.name() }));
        }
        *slot = (Some(var.clone()), extent.clone());
        links.push(at);
        at = body;
    }
    if let Some((inner, tag)) = inner_launch(at) {
        return Err((inner, not_outermost(tag)));
    }
    launch.body = at;
    parts.program.launches.push(launch);
    parts.chains.push(links);
    Ok(())
}

/// The first launch in a body.
fn inner_launch(stmt: &Stmt) -> Option<(&Stmt, ThreadTag)> {
    if let Stmt::LaunchThread { tag, .. } = stmt {
        return Some((stmt, *tag));
    }
    stmt_children(stmt).find_map(inner_launch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dtype::DType;
    use crate::form::Form;

    fn launch(tag: ThreadTag, extent: i32, body: Stmt) -> Stmt {
        let var = Var::new("t", DType::I32);
        Stmt::LaunchThread { tag, var, extent: Expr::int(extent), body: Box::new(body) }
    }

    fn kernel(body: Stmt) -> Kernel {
        Kernel { name: "f".to_owned(), params: Vec::new(), attrs: Default::default(), form: Form::Flat, body }
    }

    #[test]
    fn launches_are_listed_in_order_with_their_extents_and_memory() {
        let partial = Buffer::new("partial", DType::F32, vec![Expr::int(4)], MemScope::Global);
        let store = Stmt::store(&partial, vec![Expr::int(0)], Expr::float(1.0, DType::F32));
        let first = launch(ThreadTag::BlockX, 4, launch(ThreadTag::ThreadX, 32, store.clone()));
        let second = launch(ThreadTag::ThreadY, 8, store);
        let kernel = kernel(Stmt::allocate(partial, Stmt::seq([first, second])));
        let program = host_program(&kernel).unwrap();
        assert_eq!(program.temporaries.len(), 1);
        let threads: Vec<_> = program.launches.iter().map(Launch::n_threads).collect();
        assert_eq!(threads, [Some(32), Some(8)]);
        assert!(program.launches[0].grid[0].1.is_int(4) && program.launches[1].grid[0].1.is_int(1));
    }

    #[test]
    fn a_store_outside_every_launch_is_refused() {
        let a = Buffer::new("A", DType::F32, vec![Expr::int(4)], MemScope::Global);
        let store = Stmt::store(&a, vec![Expr::int(0)], Expr::float(1.0, DType::F32));
        let err = host_program(&kernel(store)).unwrap_err();
        assert!(matches!(err, DeviceError::OutsideLaunch { stmt: "store", .. }), "{err}");
    }

    #[test]
    fn a_launch_inside_a_loop_is_refused() {
        let inner = launch(ThreadTag::ThreadX, 32, Stmt::NOP);
        let looped = Stmt::range(Var::new("i", DType::I32), Expr::int(3), inner);
        let err = host_program(&kernel(launch(ThreadTag::BlockX, 2, looped))).unwrap_err();
        assert!(matches!(err, DeviceError::NotOutermost { tag: "threadIdx.x", .. }), "{err}");
    }
}
