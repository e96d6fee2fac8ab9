//! The host's part of a kernel: memory, values that it computes, launches.

use std::collections::HashMap;

use coulis_ir::args::{Bindings, compact_strides, eval_index, reach};
use coulis_ir::device::{Launch, has_launches, host_program};
use coulis_ir::remark::{LEFT_ZERO, ZEROED};
use coulis_ir::target::BlockLimits;
use coulis_ir::visit::written_memory;
use coulis_ir::{Attr, Buffer, Checked, DType, Expr, Kernel, MAX_CLUSTER_BLOCKS, Param, Stmt, Var, VarId};

use super::{Compiler, Place, from_active_mask};
use crate::code::{Code, Instr, LaunchCode, Operand, Plan, RegionInfo, RegionKind};
use crate::error::SimError;
use crate::order::{FIRST_SERIAL, MAX_SERIAL};

/// Memory and launches of a kernel whose free variables have these values.
pub(crate) fn plan<'k, const W: usize>(
    kernel: &'k Checked,
    bindings: Bindings,
    limits: &BlockLimits,
) -> Result<Plan<'k, W>, SimError> {
    crate::run::check(kernel)?;
    let kernel = kernel.kernel();
    let mut host = Host { bindings, places: HashMap::new(), regions: Vec::new() };
    host.arguments(kernel)?;
    let mut bodies = Vec::new();
    let mut zeroed = HashMap::new();
    let launches = if has_launches(&kernel.body) {
        let program = host_program(kernel)?;
        for (var, value) in &program.lets {
            let value = host.value(value, "the value", var.name())?;
            host.bindings.insert(var.id(), value);
        }
        launch_bodies(&kernel.body, &mut bodies, &mut zeroed, None);
        for buffer in &program.temporaries {
            host.temporary(buffer, zeroed.get(&buffer.data.id()).copied())?;
        }
        program.launches
    } else {
        bodies.push(&kernel.body);
        let one = || [(None, Expr::int(1)), (None, Expr::int(1)), (None, Expr::int(1))];
        vec![Launch { grid: one(), cluster: one(), block: one(), body: &kernel.body }]
    };
    let written = written_memory(&kernel.body);
    for param in &kernel.params {
        if let Param::Buffer { buffer, .. } = param
            && let Some((Place::Region(region), _)) = host.places.get(&buffer.data.id())
        {
            host.regions[*region as usize].is_written = written.contains(&buffer.data.id());
        }
    }
    let mut plan = Plan { regions: Vec::new(), launches: Vec::new(), stmts: Vec::new() };
    let mut n_blocks = i128::from(FIRST_SERIAL);
    for (launch, body) in launches.iter().zip(bodies) {
        let first = host.regions.len();
        let compiled = host.launch::<W>(launch, body, &mut plan.stmts)?;
        fits_in_block(&kernel.name, &compiled.block, &host.regions[first..], limits)?;
        let copies = compiled.cluster.iter().product::<u32>() as usize;
        for region in host.regions[first..].iter_mut().filter(|region| region.is_shared()) {
            region.copies = copies;
        }
        n_blocks += compiled.grid.iter().map(|n| i128::from(*n)).product::<i128>();
        if n_blocks > i128::from(MAX_SERIAL) {
            return Err(SimError::GridBlocks { found: n_blocks, limit: MAX_SERIAL });
        }
        plan.launches.push(compiled);
    }
    plan.regions = host.regions;
    Ok(plan)
}

/// The bodies of the launches in order, in place, so that violations can name their statements; and the pointers of
/// temporaries that are zero at the start, with whether they are said to be left so.
fn launch_bodies<'k>(
    stmt: &'k Stmt,
    bodies: &mut Vec<&'k Stmt>,
    zeroed: &mut HashMap<VarId, bool>,
    mark: Option<bool>,
) {
    match stmt {
        Stmt::Seq(stmts) => stmts.iter().for_each(|s| launch_bodies(s, bodies, zeroed, mark)),
        Stmt::Allocate { buffer, body } => {
            if let Some(left_zero) = mark {
                zeroed.insert(buffer.data.id(), left_zero);
            }
            launch_bodies(body, bodies, zeroed, None);
        }
        Stmt::Annotate { key, value, body, .. } if key == ZEROED => {
            launch_bodies(body, bodies, zeroed, Some(*value == Attr::Str(LEFT_ZERO.to_owned())));
        }
        Stmt::Annotate { body, .. } | Stmt::Let { body, .. } => launch_bodies(body, bodies, zeroed, mark),
        Stmt::LaunchThread { body, .. } => {
            let mut at = body.as_ref();
            while let Stmt::LaunchThread { body, .. } = at {
                at = body;
            }
            bodies.push(at);
        }
        Stmt::For { .. }
        | Stmt::If { .. }
        | Stmt::Store { .. }
        | Stmt::DeviceEntry
        | Stmt::ScopeIds { .. }
        | Stmt::AllocBuffer(_)
        | Stmt::View { .. }
        | Stmt::Tile(_)
        | Stmt::Atom(_)
        | Stmt::Sync(_) => {}
    }
}

/// Refuses a block of more threads, or of more shared memory, than the machine's blocks have.
fn fits_in_block(
    kernel: &str,
    block: &[u32; 3],
    regions: &[RegionInfo],
    limits: &BlockLimits,
) -> Result<(), SimError> {
    let found: i128 = block.iter().map(|n| i128::from(*n)).product();
    if found > i128::from(limits.threads) {
        return Err(SimError::BlockThreads { found, limit: limits.threads });
    }
    let bytes = |region: &RegionInfo| region.len as i128 * region.dtype.bytes() as i128;
    let of_text = |region: &&RegionInfo| matches!(region.kind, RegionKind::Shared { at_launch: false });
    let declared: Vec<&RegionInfo> = regions.iter().filter(of_text).collect();
    let all: Vec<&RegionInfo> = regions.iter().filter(|region| region.is_shared()).collect();
    // What the text declares may not be more than a block has without asking; with what is asked for, it may.
    for (which, kind, limit) in [
        (&declared, "whose size is known when it is compiled", limits.shared_bytes),
        (&all, "in all", limits.shared_dyn_bytes),
    ] {
        let found: i128 = which.iter().map(|region| bytes(region)).sum();
        if found > i128::from(limit) {
            let one = |region: &&RegionInfo| format!("`{}` of {}", region.name, bytes(region));
            let buffers = which.iter().map(one).collect::<Vec<_>>().join(", ");
            return Err(SimError::SharedMemory { kernel: kernel.to_owned(), kind, found, limit, buffers });
        }
    }
    Ok(())
}

struct Host {
    bindings: Bindings,
    places: HashMap<VarId, (Place, DType)>,
    regions: Vec<RegionInfo>,
}

impl Host {
    fn value(&self, expr: &Expr, what: &'static str, name: &str) -> Result<i64, SimError> {
        let unknown = |reason| SimError::Unknown { what, name: name.to_owned(), reason };
        eval_index(expr, &self.bindings).map_err(unknown)
    }

    fn add(&mut self, buffer: &Buffer, region: RegionInfo) {
        self.places.insert(buffer.data.id(), (Place::Region(self.regions.len() as u32), buffer.dtype));
        self.regions.push(region);
    }

    fn arguments(&mut self, kernel: &Kernel) -> Result<(), SimError> {
        for (n, param) in kernel.params.iter().enumerate() {
            let Param::Buffer { handle, buffer } = param else { continue };
            let name = Kernel::argument_name(handle).to_owned();
            let values = |exprs: &[Expr], what| {
                exprs.iter().map(|e| self.value(e, what, &name)).collect::<Result<Vec<_>, _>>()
            };
            let shape = values(&buffer.shape, "the extent")?;
            let strides = if buffer.strides.is_empty() {
                compact_strides(&shape)
            } else {
                values(&buffer.strides, "the stride")?
            };
            let (lo, hi) = reach(&shape, &strides).unwrap_or((i128::from(i64::MIN), i128::from(i64::MAX)));
            let elements = if shape.iter().any(|n| *n <= 0) { 0 } else { hi - lo + 1 };
            let (Ok(len), Ok(before)) = (usize::try_from(elements), i64::try_from(-lo)) else {
                return Err(SimError::Size { buffer: name, elements });
            };
            let kind = RegionKind::Argument { n, shape, strides };
            let dtype = buffer.dtype;
            self.add(buffer, RegionInfo { name, dtype, kind, len, before, copies: 1, is_written: false });
        }
        Ok(())
    }

    fn temporary(&mut self, buffer: &Buffer, zeros: Option<bool>) -> Result<(), SimError> {
        let mut total = 1i128;
        for extent in &buffer.shape {
            total = total.saturating_mul(i128::from(self.value(extent, "the size", &buffer.name)?));
        }
        let fits = usize::try_from(total).ok().filter(|n| *n <= 1 << 40);
        let len = fits.ok_or_else(|| SimError::Size { buffer: buffer.name.clone(), elements: total })?;
        let kind = RegionKind::Temporary { zeroed: zeros.is_some(), left_zero: zeros == Some(true) };
        let (name, dtype) = (buffer.name.clone(), buffer.dtype);
        self.add(buffer, RegionInfo { name, dtype, kind, len, before: 0, copies: 1, is_written: true });
        Ok(())
    }

    fn extents(&self, slots: &[(Option<Var>, Expr); 3], kind: &str) -> Result<[u32; 3], SimError> {
        let mut out = [0; 3];
        for (at, (slot, out)) in slots.iter().zip(&mut out).enumerate() {
            let name = format!("{kind}.{}", ["x", "y", "z"][at]);
            let n = self.value(&slot.1, "the extent", &name)?;
            let found = i128::from(n);
            *out = u32::try_from(n.max(0)).map_err(|_| SimError::GridBlocks { found, limit: MAX_SERIAL })?;
        }
        Ok(out)
    }

    fn launch<'k, const W: usize>(
        &mut self,
        launch: &Launch,
        body: &'k Stmt,
        stmts: &mut Vec<&'k Stmt>,
    ) -> Result<LaunchCode<W>, SimError> {
        let grid = self.extents(&launch.grid, "blockIdx")?;
        let cluster = self.extents(&launch.cluster, "clusterCtaIdx")?;
        let blocks: i128 = cluster.iter().map(|n| i128::from(*n)).product();
        let is_cut = grid.iter().zip(cluster).any(|(grid, cluster)| cluster == 0 || grid % cluster != 0);
        if is_cut || blocks > i128::from(MAX_CLUSTER_BLOCKS) {
            return Err(SimError::Cluster { cluster, grid, limit: MAX_CLUSTER_BLOCKS });
        }
        let block = self.extents(&launch.block, "threadIdx")?;
        let code = Code {
            instrs: Vec::new(),
            operands: Vec::new(),
            constants: Vec::new(),
            arrays: Vec::new(),
            n_registers: 0,
            n_slots: 0,
            thread_registers: [None; 3],
            block_registers: [None; 3],
            cluster_registers: [None; 3],
        };
        let mut compiler = Compiler {
            code,
            constant_index: HashMap::new(),
            next: 0,
            vars: HashMap::new(),
            places: self.places.clone(),
            memo: vec![HashMap::new()],
            taken: Vec::new(),
            bindings: &self.bindings,
            regions: &mut self.regions,
            stmts,
            from_active: from_active_mask(body),
        };
        let bind = |c: &mut Compiler<'k, '_, W>, slots: &[(Option<Var>, Expr); 3]| {
            let mut out = [None; 3];
            for ((var, _), out) in slots.iter().zip(&mut out) {
                if let Some(var) = var {
                    let register = c.new_registers(1);
                    c.vars.insert(var.id(), Operand::register(register));
                    *out = Some(register);
                }
            }
            out
        };
        compiler.code.block_registers = bind(&mut compiler, &launch.grid);
        compiler.code.cluster_registers = bind(&mut compiler, &launch.cluster);
        compiler.code.thread_registers = bind(&mut compiler, &launch.block);
        compiler.hoist(body)?;
        compiler.body(body)?;
        compiler.emit(Instr::End);
        Ok(LaunchCode { grid, cluster, block, code: compiler.code })
    }
}
