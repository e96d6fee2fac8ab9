//! What one call of a module launches, decided on the host: sizes, offsets, arguments, and whether the device takes it.
//!
//! Needs no GPU, so every rule is tested without one. A grid with an extent of 0 launches nothing. Temporaries share
//! one piece of memory. Source: fault G4 (docs/sources.md) for empty grids; CUDA C++ Programming Guide for limits.

use coulis_codegen::{KernelArg, KernelLaunch, Module};
use coulis_ir::args::{Bindings, eval_index};
use coulis_ir::{DType, Expr};

use crate::cuda::context::Limits;

/// Alignment of each temporary, that of fresh device memory.
const ALIGNMENT: u64 = 256;

/// Why arguments make no launch.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LaunchError {
    /// A variable that no argument determines, or an operation without a value.
    #[error("{what} of `{kernel}` has no value: {reason}")]
    NoValue {
        /// Kernel name.
        kernel: String,
        /// Which number.
        what: &'static str,
        /// The variable, or what went wrong.
        reason: String,
    },
    /// A grid or block that the device does not take.
    #[error("{what} {axis} of `{kernel}` is {found}; the device takes {lo} to {hi}")]
    Extent {
        /// Kernel name.
        kernel: String,
        /// `grid` or `block`.
        what: &'static str,
        /// `x`, `y` or `z`.
        axis: char,
        /// The extent.
        found: i64,
        /// Least legal one.
        lo: i64,
        /// Largest legal one.
        hi: i64,
    },
    /// A grid that is not whole clusters.
    #[error(
        "grid {axis} of `{kernel}` is {found}, which is no multiple of the {cluster} blocks of a cluster"
    )]
    Cluster {
        /// Kernel name.
        kernel: String,
        /// `x`, `y` or `z`.
        axis: char,
        /// Blocks.
        found: u32,
        /// Blocks of a cluster.
        cluster: u32,
    },
    /// Too many threads in a block.
    #[error("a block of `{kernel}` has {found} threads; the device takes {limit}")]
    Threads {
        /// Kernel name.
        kernel: String,
        /// Threads.
        found: i64,
        /// Threads at most.
        limit: u32,
    },
    /// Too much shared memory.
    #[error("a block of `{kernel}` asks for {found} bytes of shared memory; the device has {limit}")]
    Shared {
        /// Kernel name.
        kernel: String,
        /// Bytes.
        found: i64,
        /// Bytes at most.
        limit: u32,
    },
    /// A size below 0 or beyond 64 bits.
    #[error("temporary `{name}` of `{kernel}` has no size: {found}")]
    Temporary {
        /// Kernel name.
        kernel: String,
        /// Buffer name.
        name: String,
        /// What was computed.
        found: String,
    },
    /// A scalar that its type does not hold.
    #[error("a scalar of `{kernel}` is {found}, which {dtype} does not hold")]
    Scalar {
        /// Kernel name.
        kernel: String,
        /// Its type.
        dtype: DType,
        /// Its value.
        found: i64,
    },
    /// A pointer with less alignment than the text counts on.
    #[error("argument `{buffer}` of `{kernel}` is to be aligned to {bytes} bytes")]
    Misaligned {
        /// Kernel name.
        kernel: String,
        /// Buffer name.
        buffer: String,
        /// Alignment.
        bytes: u32,
    },
    /// A module that refers to what it does not have.
    #[error("`{kernel}` refers to {what} {index}, which its module does not have")]
    NoSuch {
        /// Kernel name.
        kernel: String,
        /// `parameter` or `temporary`.
        what: &'static str,
        /// Its position.
        index: usize,
    },
}

/// Everything that one call puts on a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Bytes of all temporaries but the counters; 0 where nothing is launched.
    pub workspace_bytes: u64,
    /// Bytes of the counters: temporaries that are zero before a call and that it leaves so. Memory of a stream's own
    /// serves them call after call.
    pub counter_bytes: u64,
    /// Offsets and lengths in the workspace that are filled with zeros first.
    pub zeroed: Vec<(u64, u64)>,
    /// The launches in order.
    pub launches: Vec<Launch>,
}

/// One launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Position of the kernel in its module.
    pub kernel: usize,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of shared memory sized at launch.
    pub shared_bytes: u32,
    /// Arguments in order.
    pub args: Vec<Arg>,
}

/// An argument of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg {
    /// The data pointer of a buffer parameter.
    Parameter(usize),
    /// An offset into the workspace.
    Workspace(u64),
    /// An offset into the counters.
    Counters(u64),
    /// A number; the first bytes are the ones of its type, since numbers are little-endian.
    Scalar([u8; 8]),
}

/// Plans a call of `module`.
pub fn plan(
    name: &str,
    module: &Module,
    n_parameters: usize,
    bindings: &Bindings,
    limits: &Limits,
) -> Result<Plan, LaunchError> {
    Planner { name, module, n_parameters, bindings, limits }.plan()
}

fn no_value(kernel: &str, what: &'static str, reason: String) -> LaunchError {
    LaunchError::NoValue { kernel: kernel.to_owned(), what, reason }
}

struct Planner<'a> {
    name: &'a str,
    module: &'a Module,
    n_parameters: usize,
    bindings: &'a Bindings,
    limits: &'a Limits,
}

/// Where a temporary is, and its bytes.
type Placed = (Arg, u64);

impl Planner<'_> {
    fn plan(&self) -> Result<Plan, LaunchError> {
        let (spans, [workspace_bytes, counter_bytes]) = self.workspace()?;
        let places: Vec<Arg> = spans.iter().map(|(place, _)| *place).collect();
        let mut launches = Vec::new();
        for (index, kernel) in self.module.kernels.iter().enumerate() {
            launches.extend(self.launch(index, kernel, &places)?);
        }
        if launches.is_empty() {
            return Ok(Plan { workspace_bytes: 0, counter_bytes: 0, zeroed: Vec::new(), launches });
        }
        let zeroed =
            self.module.temporaries.iter().zip(spans).filter_map(
                |(temporary, (place, length))| match place {
                    Arg::Workspace(offset) if temporary.zeroed && length > 0 => Some((offset, length)),
                    _ => None,
                },
            );
        Ok(Plan { workspace_bytes, counter_bytes, zeroed: zeroed.collect(), launches })
    }

    fn value(&self, what: &'static str, expr: &Expr) -> Result<i64, LaunchError> {
        eval_index(expr, self.bindings).map_err(|reason| no_value(self.name, what, reason))
    }

    /// Where the temporaries are and how long, and the lengths of workspace and counters.
    fn workspace(&self) -> Result<(Vec<Placed>, [u64; 2]), LaunchError> {
        let (mut spans, mut ends) = (Vec::new(), [0u64; 2]);
        for temporary in &self.module.temporaries {
            let bytes =
                eval_index(&temporary.bytes, self.bindings).map(|bytes| (u64::try_from(bytes), bytes));
            let refused = |found: String| LaunchError::Temporary {
                kernel: self.name.to_owned(),
                name: temporary.buffer.name.clone(),
                found,
            };
            let bytes = match bytes {
                Ok((Ok(bytes), _)) => bytes,
                Ok((Err(_), negative)) => return Err(refused(negative.to_string())),
                Err(reason) => return Err(refused(reason)),
            };
            let end = &mut ends[usize::from(temporary.left_zero)];
            let place = if temporary.left_zero { Arg::Counters(*end) } else { Arg::Workspace(*end) };
            spans.push((place, bytes));
            let next = end.checked_add(bytes).and_then(|end| end.checked_next_multiple_of(ALIGNMENT));
            *end = next.ok_or_else(|| refused("overflow".to_owned()))?;
        }
        Ok((spans, ends))
    }

    /// The launch of a kernel; `None` where its grid is empty.
    fn launch(
        &self,
        index: usize,
        kernel: &KernelLaunch,
        places: &[Arg],
    ) -> Result<Option<Launch>, LaunchError> {
        let block = self.extents(kernel, "block", &kernel.block, self.limits.block, 1)?;
        let threads: i64 = block.iter().map(|&extent| i64::from(extent)).product();
        if threads > i64::from(self.limits.threads) {
            let (kernel, limit) = (kernel.name.clone(), self.limits.threads);
            return Err(LaunchError::Threads { kernel, found: threads, limit });
        }
        let grid = self.extents(kernel, "grid", &kernel.grid, self.limits.grid, 0)?;
        if grid.contains(&0) {
            return Ok(None);
        }
        let cut = (0..3).find(|&axis| !grid[axis].is_multiple_of(kernel.cluster[axis].max(1)));
        if let Some(axis) = cut {
            return Err(LaunchError::Cluster {
                kernel: kernel.name.clone(),
                axis: ['x', 'y', 'z'][axis],
                found: grid[axis],
                cluster: kernel.cluster[axis],
            });
        }
        let shared = self.value("shared memory", &kernel.dynamic_shared_bytes)?;
        let limit = self.limits.shared_bytes_opt_in;
        let shared_bytes = u32::try_from(shared).ok().filter(|bytes| *bytes <= limit);
        let shared_bytes = shared_bytes.ok_or_else(|| LaunchError::Shared {
            kernel: kernel.name.clone(),
            found: shared,
            limit,
        })?;
        let args = kernel.args.iter().map(|arg| self.arg(kernel, arg, places)).collect::<Result<_, _>>()?;
        Ok(Some(Launch { kernel: index, grid, block, shared_bytes, args }))
    }

    fn extents(
        &self,
        kernel: &KernelLaunch,
        what: &'static str,
        extents: &[Expr; 3],
        limits: [u32; 3],
        lo: i64,
    ) -> Result<[u32; 3], LaunchError> {
        let mut found = [0u32; 3];
        // A grid that is empty along one axis is empty, however long the others are.
        let mut refused = None;
        for (axis, (extent, limit)) in extents.iter().zip(limits).enumerate() {
            // Less than no blocks are none.
            let value = self.value(what, extent)?;
            let value = if lo == 0 { value.max(0) } else { value };
            let is_legal = lo <= value && value <= i64::from(limit);
            match u32::try_from(value) {
                Ok(legal) if is_legal => found[axis] = legal,
                Ok(_) | Err(_) => {
                    found[axis] = u32::MAX;
                    refused.get_or_insert(LaunchError::Extent {
                        kernel: kernel.name.clone(),
                        what,
                        axis: ['x', 'y', 'z'][axis],
                        found: value,
                        lo,
                        hi: i64::from(limit),
                    });
                }
            }
        }
        match refused {
            Some(error) if !found.contains(&0) => Err(error),
            Some(_) | None => Ok(found),
        }
    }

    fn arg(&self, kernel: &KernelLaunch, arg: &KernelArg, places: &[Arg]) -> Result<Arg, LaunchError> {
        let no_such = |what, index| LaunchError::NoSuch { kernel: kernel.name.clone(), what, index };
        match arg {
            KernelArg::Parameter(index) if *index < self.n_parameters => Ok(Arg::Parameter(*index)),
            KernelArg::Parameter(index) => Err(no_such("parameter", *index)),
            KernelArg::Temporary(index) => {
                places.get(*index).copied().ok_or_else(|| no_such("temporary", *index))
            }
            KernelArg::Scalar { value, dtype } => {
                let found = self.value("a scalar", value)?;
                let holds = dtype.int_range().is_some_and(|(lo, hi)| (lo..=hi).contains(&i128::from(found)));
                if !holds {
                    let kernel = kernel.name.clone();
                    return Err(LaunchError::Scalar { kernel, dtype: *dtype, found });
                }
                Ok(Arg::Scalar(found.to_le_bytes()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cuda::probe;
    use coulis_codegen::Temporary;
    use coulis_ir::{Buffer, MemScope, Target, Var};

    fn limits() -> Limits {
        Limits::of_target(&Target::cuda("sm_90a").unwrap())
    }

    /// The plan of a module of one kernel that `edit` changes, for `n`.
    fn plan_of(edit: impl Fn(&mut Module, Expr), n: i64) -> Result<Plan, LaunchError> {
        let size = Var::size("n", DType::I64);
        let one = || [Expr::int(1), Expr::int(1), Expr::int(1)];
        let kernel = KernelLaunch {
            name: "k".to_owned(),
            grid: one(),
            cluster: [1; 3],
            block: one(),
            args: Vec::new(),
            dynamic_shared_bytes: Expr::int(0),
        };
        let mut module = Module {
            text: String::new(),
            functions: Vec::new(),
            kernels: vec![kernel],
            temporaries: Vec::new(),
            alignments: Vec::new(),
        };
        edit(&mut module, size.expr());
        plan("k", &module, 1, &Bindings::from([(size.id(), n)]), &limits())
    }

    fn message(result: Result<Plan, LaunchError>) -> String {
        result.map(|plan| format!("{plan:?}")).unwrap_err().to_string()
    }

    #[test]
    fn grids_are_legal_up_to_their_limits_and_not_beyond() {
        for (axis, limit) in [(0, i64::from(i32::MAX)), (1, 65535), (2, 65535)] {
            let at = |n| plan_of(|module, size| module.kernels[0].grid[axis] = size, n);
            assert_eq!(at(limit).unwrap().launches[0].grid[axis], limit as u32);
            let found = message(at(limit + 1));
            let name = ['x', 'y', 'z'][axis];
            assert_eq!(found, format!("grid {name} of `k` is {}; the device takes 0 to {limit}", limit + 1));
            assert!(at(0).unwrap().launches.is_empty() && at(-1).unwrap().launches.is_empty());
        }
    }

    #[test]
    fn grids_are_whole_clusters() {
        let at = |n| {
            let edit = |module: &mut Module, size: Expr| {
                module.kernels[0].grid[1] = size;
                module.kernels[0].cluster = [1, 4, 1];
            };
            plan_of(edit, n)
        };
        assert!(at(8).is_ok() && at(0).unwrap().launches.is_empty());
        let found = message(at(6));
        assert_eq!(found, "grid y of `k` is 6, which is no multiple of the 4 blocks of a cluster");
    }

    #[test]
    fn an_empty_grid_launches_nothing_and_needs_no_memory() {
        let edit = |module: &mut Module, size: Expr| {
            module.kernels[0].grid = [size.clone(), Expr::int(70_000), Expr::int(1)];
            module.temporaries.push(temporary(Expr::int(100), true));
        };
        let plan = plan_of(edit, 0).unwrap();
        assert_eq!((plan.launches.len(), plan.workspace_bytes, plan.zeroed.len()), (0, 0, 0));
        assert!(plan_of(edit, 1).is_err(), "the other axis is too long");
    }

    #[test]
    fn blocks_are_legal_up_to_their_limits_and_not_beyond() {
        let cube =
            |n| plan_of(|module, size| module.kernels[0].block = [size, Expr::int(8), Expr::int(8)], n);
        assert_eq!(cube(16).unwrap().launches[0].block, [16, 8, 8]);
        assert_eq!(message(cube(17)), "a block of `k` has 1088 threads; the device takes 1024");
        assert_eq!(message(cube(0)), "block x of `k` is 0; the device takes 1 to 1024");
        let deep = |n| plan_of(|module, size| module.kernels[0].block[2] = size, n);
        assert!(deep(64).is_ok());
        assert_eq!(message(deep(65)), "block z of `k` is 65; the device takes 1 to 64");
    }

    #[test]
    fn shared_memory_is_legal_up_to_its_limit_and_not_beyond() {
        let at = |n| plan_of(|module, size| module.kernels[0].dynamic_shared_bytes = size, n);
        assert_eq!(at(227 << 10).unwrap().launches[0].shared_bytes, 227 << 10);
        assert_eq!(
            message(at((227 << 10) + 1)),
            "a block of `k` asks for 232449 bytes of shared memory; the device has 232448"
        );
    }

    fn temporary(bytes: Expr, zeroed: bool) -> Temporary {
        Temporary {
            buffer: Buffer::new("t", DType::U8, vec![bytes.clone()], MemScope::Global),
            bytes,
            zeroed,
            left_zero: false,
        }
    }

    #[test]
    fn temporaries_share_one_aligned_workspace() {
        let edit = |module: &mut Module, size: Expr| {
            module.temporaries =
                vec![temporary(size.clone(), false), temporary(Expr::int(4), true), temporary(size, false)];
            module.kernels[0].args = (0..3).map(KernelArg::Temporary).collect();
        };
        let plan = plan_of(edit, 300).unwrap();
        let offsets = [Arg::Workspace(0), Arg::Workspace(512), Arg::Workspace(768)];
        assert_eq!(plan.launches[0].args, offsets);
        assert_eq!((plan.workspace_bytes, plan.zeroed), (1280, vec![(512, 4)]));
        assert_eq!(message(plan_of(edit, -1)), "temporary `t` of `k` has no size: -1");
        assert!(message(plan_of(edit, i64::MAX)).contains("no size"));
    }

    #[test]
    fn what_calls_leave_zero_is_filled_by_no_call() {
        let edit = |module: &mut Module, size: Expr| {
            let counter = Temporary { left_zero: true, ..temporary(Expr::int(4), true) };
            module.temporaries = vec![counter.clone(), temporary(size, false), counter];
            module.kernels[0].args = (0..3).map(KernelArg::Temporary).collect();
        };
        let plan = plan_of(edit, 300).unwrap();
        assert_eq!(plan.launches[0].args, [Arg::Counters(0), Arg::Workspace(0), Arg::Counters(256)]);
        assert_eq!((plan.workspace_bytes, plan.counter_bytes, plan.zeroed), (512, 512, Vec::new()));
    }

    #[test]
    fn scalars_are_checked_against_their_types() {
        let at = |dtype, n| {
            let edit = |module: &mut Module, value: Expr| {
                module.kernels[0].args = vec![KernelArg::Scalar { value, dtype }];
            };
            plan_of(edit, n)
        };
        assert_eq!(at(DType::I32, -2).unwrap().launches[0].args, [Arg::Scalar((-2i64).to_le_bytes())]);
        assert!(at(DType::I32, i64::from(i32::MAX)).is_ok());
        assert_eq!(
            message(at(DType::I32, 1 << 31)),
            "a scalar of `k` is 2147483648, which int32 does not hold"
        );
        assert!(at(DType::I64, i64::MAX).is_ok());
        assert!(at(DType::U8, 256).is_err());
        assert!(at(DType::F32, 1).is_err());
    }

    #[test]
    fn what_a_module_does_not_have_and_what_nothing_binds_is_told() {
        let args = |arg: KernelArg| plan_of(|module, _| module.kernels[0].args = vec![arg.clone()], 1);
        assert!(args(KernelArg::Parameter(0)).is_ok());
        assert_eq!(
            message(args(KernelArg::Parameter(1))),
            "`k` refers to parameter 1, which its module does not have"
        );
        assert!(message(args(KernelArg::Temporary(0))).contains("temporary 0"));
        let unbound = Var::size("m", DType::I32);
        let found = plan_of(|module, _| module.kernels[0].grid[0] = unbound.expr(), 1);
        assert_eq!(message(found), "grid of `k` has no value: m");
    }

    #[test]
    fn every_probe_has_a_plan_for_a_small_size() {
        for (name, module) in probe::modules() {
            let bindings: Bindings = module.kernels[0]
                .args
                .iter()
                .filter_map(|arg| match arg {
                    KernelArg::Scalar { value, .. } => value.as_var().map(|var| (var.id(), 5)),
                    KernelArg::Parameter(_) | KernelArg::Temporary(_) => None,
                })
                .collect();
            let planned = plan(name, &module, 3, &bindings, &limits()).unwrap();
            assert_eq!(planned.launches.len(), module.kernels.len(), "{name}");
        }
    }
}
