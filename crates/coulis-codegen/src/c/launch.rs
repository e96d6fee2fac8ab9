//! Modules: the launches of a kernel as functions, and what the host passes to them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use coulis_ir::device::{HostProgram, Launch, host_program};
use coulis_ir::hash::Seen;
use coulis_ir::remark::{LEFT_ZERO, RESIDENT, ZEROED, is_pragma};
use coulis_ir::visit::{for_each_expr, for_each_load, for_each_stmt, stmt_exprs, substitute_expr};
use coulis_ir::{Attr, Buffer, DType, Expr, Kernel, MemScope, Node, Param, Stmt, ThreadTag, Var, VarId};

use crate::c::code::{Code, Lines};
use crate::c::deps::captures;
use crate::c::helper::{Helper, Needs};
use crate::c::names::{Namer, sanitised};
use crate::c::scalar::is_plain;
use crate::c::types::CTy;
use crate::c::value::Val;
use crate::c::{Frame, Pointer, Walker, buffer_param, index};
use crate::dialect::GpuDialect;
use crate::{Dialect, EmitError, KernelArg, KernelLaunch, Module, Options, Temporary};

/// Every array in memory that is sized at launch begins at a multiple of so many bytes.
const DYNAMIC_ALIGN: i64 = 16;

/// The blocks' and threads' positions, in the order of a launch.
const BLOCKS: [ThreadTag; 3] = [ThreadTag::BlockX, ThreadTag::BlockY, ThreadTag::BlockZ];
const THREADS: [ThreadTag; 3] = [ThreadTag::ThreadX, ThreadTag::ThreadY, ThreadTag::ThreadZ];

/// Emits a Flat kernel of launches.
pub fn emit_module(kernel: &Kernel, dialect: &dyn Dialect) -> Result<Module, EmitError> {
    let program = host_program(kernel)?;
    let options = Options { vector_bytes: 16, widens_from_memory: false, ends_early: false };
    let mut walker = Walker::new(kernel, dialect, options, Namer::new(dialect.reserved()));
    let gpu = walker.gpu("launches; it gives functions for a CPU")?;
    for size in kernel.param_buffers().flat_map(|b| &b.shape) {
        if size.lanes() == 1 && size.dtype().is_int() {
            let zero = Expr::int_of(0, size.dtype());
            walker.facts = walker.facts.with(&size.clone().ge(zero));
        }
    }
    let mut host = HashMap::new();
    for (var, value) in &program.lets {
        let value = substitute_expr(value, &host);
        host.insert(var.clone(), value);
    }
    let mut names = walker.namer.anew();
    let entries: Vec<String> = program
        .launches
        .iter()
        .map(|_| names.fresh(&format!("{}_kernel", sanitised(&kernel.name))))
        .collect();
    let mut kernels = Vec::new();
    let (mut functions, mut places) = (String::new(), Vec::new());
    let mut earlier = Traffic::default();
    for (nth, (launch, entry)) in program.launches.iter().zip(&entries).enumerate() {
        walker.namer = walker.namer.anew();
        entries.iter().for_each(|name| drop(walker.namer.fresh(name)));
        let facts = walker.facts.clone();
        let order = Order { earlier: &earlier, is_first: nth == 0, is_last: nth + 1 == entries.len() };
        let Written { text, launch: written, traffic } =
            walker.launch(gpu, launch, entry, &program, &host, &order)?;
        earlier.add(&traffic);
        walker.facts = facts;
        let start = functions.len();
        if start > 0 {
            functions.push('\n');
        }
        functions.push_str(&text);
        places.push(start..functions.len());
        kernels.push(written);
    }
    let body = used_definitions(&walker.defs.texts, &functions) + &functions;
    let text = gpu.prelude(&body) + &body;
    let before = text.len() - functions.len();
    let functions = places.into_iter().map(|place| place.start + before..place.end + before).collect();
    let zeroed = zeroed(&kernel.body);
    let temporaries = program
        .temporaries
        .iter()
        .map(|buffer| Temporary {
            buffer: buffer.clone(),
            bytes: bytes_of(buffer, &host),
            zeroed: zeroed.contains_key(&buffer.data.id()),
            left_zero: zeroed.get(&buffer.data.id()) == Some(&true),
        })
        .collect();
    let alignment =
        |b: &Buffer| walker.alignments.get(&b.data.id()).copied().unwrap_or(1).max(b.dtype.bytes() as u32);
    let alignments = kernel.param_buffers().map(alignment).collect();
    Ok(Module { text, functions, kernels, temporaries, alignments })
}

/// The definitions that the functions refer to, by way of one another or not, in order.
fn used_definitions(definitions: &[(String, String)], functions: &str) -> String {
    let mut kept = String::new();
    for (name, definition) in definitions.iter().rev() {
        let call = format!("{name}(");
        if functions.contains(&call) || kept.contains(&call) {
            kept.insert_str(0, definition);
        }
    }
    kept
}

/// Allocations under a remark that they begin as zeros, and whether it says that they are left so.
fn zeroed(body: &Stmt) -> BTreeMap<VarId, bool> {
    let mut found = BTreeMap::new();
    for_each_stmt(body, &mut |s| {
        if let Stmt::Annotate { key, value, body, .. } = s
            && key == ZEROED
            && *value != Attr::Bool(false)
        {
            let mut at = &**body;
            while let Stmt::Annotate { body, .. } = at {
                at = body;
            }
            if let Stmt::Allocate { buffer, .. } = at {
                found.insert(buffer.data.id(), *value == Attr::Str(LEFT_ZERO.to_owned()));
            }
        }
    });
    found
}

/// How many blocks a multiprocessor is to hold, where a remark on a loop says so; the least of several.
fn resident(body: &Stmt) -> Option<i64> {
    let mut found: Option<i64> = None;
    for_each_stmt(body, &mut |s| {
        if let Stmt::Annotate { key, value: Attr::Int(blocks), .. } = s
            && is_pragma(key, RESIDENT)
            && *blocks > 0
        {
            found = Some(found.map_or(*blocks, |least| least.min(*blocks)));
        }
    });
    found
}

/// The size of a buffer, over variables that arguments bind.
fn bytes_of(buffer: &Buffer, host: &HashMap<Var, Expr>) -> Expr {
    let size = Expr::int_of(buffer.dtype.bytes() as i128, DType::I64);
    let bytes = buffer.shape.iter().fold(size, |n, extent| n * extent.clone().cast(DType::I64));
    index::fold(&substitute_expr(&bytes, host))
}

/// What no dialect has.
const OPEN_CLUSTER: &str = "clusters of a size that is not constant";

/// Where a launch stands among those of its module.
struct Order<'a> {
    /// What the launches before it do with memory.
    earlier: &'a Traffic,
    is_first: bool,
    is_last: bool,
}

/// A launch as a function.
struct Written {
    text: String,
    launch: KernelLaunch,
    /// What its threads do with memory.
    traffic: Traffic,
}

/// A parameter of a kernel.
enum Source {
    Memory { data: VarId, dtype: DType, arg: KernelArg },
    Number { var: Var, arg: KernelArg },
}

impl Walker<'_> {
    fn launch(
        &mut self,
        gpu: &dyn GpuDialect,
        launch: &Launch,
        entry: &str,
        program: &HostProgram,
        host: &HashMap<Var, Expr>,
        order: &Order,
    ) -> Result<Written, EmitError> {
        self.f = Frame { lines: Lines::in_function(self.style().indent), ..Frame::default() };
        let mut positions = Vec::new();
        for (tags, slots) in [(BLOCKS, &launch.grid), (BLOCKS, &launch.cluster), (THREADS, &launch.block)] {
            for (tag, (var, extent)) in tags.into_iter().zip(slots) {
                let Some(var) = var else { continue };
                let ty = CTy::carrier(var.dtype());
                let mut index = gpu.thread_index(tag, ty);
                if std::ptr::eq(slots, &launch.cluster) {
                    index = Code::primary(format!("({} % {})", index.text, self.cluster_extent(extent)?));
                }
                self.f.vars.insert(var.id(), Val::scalar(ty, index));
                if !std::ptr::eq(slots, &launch.block) {
                    self.f.block_vars.insert(var.id());
                }
                self.facts = self.facts.with_range(var, &Expr::int_of(0, extent.dtype()), extent);
                positions.push(var.id());
            }
        }
        let sources = self.sources(launch, program, host, &positions)?;
        let mut traffic = Traffic::of(launch.body);
        self.f.by_vectors = std::mem::take(&mut traffic.by_vectors);
        self.f.as_bytes = std::mem::take(&mut traffic.as_bytes);
        let communicating = traffic.communicating();
        // Where one memory is read and written, no pointer is said to be alone: an optimiser that makes one load of a
        // chosen pointer out of a choice between two loads may take the path for read-only memory with it (seen with
        // NVRTC 13: `ld.global.nc` of an element that the thread has just stored).
        let has_update = sources.iter().any(|(_, source)| match source {
            Source::Memory { data, .. } => traffic.is_update(data),
            Source::Number { .. } => false,
        });
        let mut parameters = Vec::new();
        let mut args = Vec::new();
        for (hint, source) in sources {
            let name = self.namer.fresh(&hint);
            match source {
                Source::Memory { data, dtype, arg } => {
                    let element = self.dialect.type_name(CTy::memory(dtype));
                    let is_alone =
                        !has_update && !communicating.contains(&data) && !order.is_shared(&traffic, &data);
                    if is_alone && !traffic.writes(&data) {
                        self.f.only_read.insert(data);
                    }
                    parameters.push(gpu.pointer(element, &name, is_alone));
                    self.f.pointers.insert(data, Pointer { name: name.into(), dtype });
                    args.push(arg);
                }
                Source::Number { var, arg } => {
                    let ty = CTy::carrier(var.dtype());
                    parameters.push(format!("{} {name}", self.dialect.type_name(ty)));
                    self.f.vars.insert(var.id(), Val::scalar(ty, Code::primary(name)));
                    args.push(arg);
                }
            }
        }
        // A launch after another begins while that one ends, and waits before it does anything else: one that begins sooner was up to
        // three times as slow, most likely as it has its place on the few multiprocessors with room then (`bench/results/h200.md`).
        // Nothing waits in vain: all blocks of the one before are on the device when they have said so.
        if !order.is_first {
            let name = self.defs.helper(Helper::WaitForLaunch)?;
            self.f.lines.statement(format_args!("{name}()"));
        }
        self.block(launch.body)?;
        if !order.is_last {
            let name = self.defs.helper(Helper::LetNextBegin)?;
            self.f.lines.statement(format_args!("{name}()"));
        }
        let dynamic = std::mem::take(&mut self.f.dynamic);
        let cluster = match launch.has_clusters() {
            true => Some(launch.cluster_extents().ok_or_else(|| self.unsupported(OPEN_CLUSTER.to_owned()))?),
            false => None,
        };
        let resident = resident(launch.body);
        let mut text = gpu.kernel_head(entry, launch.n_threads(), resident, cluster, &parameters);
        text.push_str(" {\n");
        if !dynamic.is_empty() {
            let mut first = Lines::in_function(self.style().indent);
            first.statement(gpu.dynamic_shared().0);
            text.push_str(&first.into_text());
        }
        text.push_str(&std::mem::take(&mut self.f.lines).into_text());
        text.push_str("}\n");
        let extents = |slots: &[(Option<Var>, Expr); 3]| {
            [0, 1, 2].map(|axis: usize| index::fold(&substitute_expr(&slots[axis].1, host)))
        };
        let launch = KernelLaunch {
            name: entry.to_owned(),
            grid: extents(&launch.grid),
            cluster: cluster.unwrap_or([1; 3]).map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
            block: extents(&launch.block),
            args,
            dynamic_shared_bytes: index::fold(&substitute_expr(&dynamic_bytes(&dynamic), host)),
        };
        Ok(Written { text, launch, traffic })
    }

    /// Blocks of a cluster along an axis, as text.
    fn cluster_extent(&self, extent: &Expr) -> Result<i128, EmitError> {
        extent.as_int().ok_or_else(|| self.unsupported(OPEN_CLUSTER.to_owned()))
    }

    /// What the body uses from outside: pointers first, then numbers, each by name; equal names in order of first use.
    fn sources(
        &self,
        launch: &Launch,
        program: &HostProgram,
        host: &HashMap<Var, Expr>,
        positions: &[VarId],
    ) -> Result<Vec<(String, Source)>, EmitError> {
        let used = captures(launch.body, &Var::new("", DType::I64));
        let mut pointers = Vec::new();
        for data in used.data {
            let mut params = self.kernel.params.iter().filter_map(buffer_param).enumerate();
            if let Some((position, (handle, buffer))) = params.find(|(_, (_, b))| b.data.id() == data) {
                let arg = KernelArg::Parameter(position);
                let source = Source::Memory { data, dtype: buffer.dtype, arg };
                pointers.push((Kernel::argument_name(handle).to_owned(), source));
                continue;
            }
            let temporary = program.temporaries.iter().position(|b| b.data.id() == data);
            let Some(position) = temporary else { continue };
            let buffer = &program.temporaries[position];
            let source = Source::Memory { data, dtype: buffer.dtype, arg: KernelArg::Temporary(position) };
            pointers.push((buffer.name.clone(), source));
        }
        let mut vars: Vec<Var> = used.vars.into_iter().filter(|v| !positions.contains(&v.id())).collect();
        for (_, extent) in launch.grid.iter().chain(&launch.block) {
            for_each_expr(extent, &mut |e| {
                if let Node::Var(var) = e.node()
                    && !vars.contains(var)
                {
                    vars.push(var.clone());
                }
            });
        }
        let mut numbers = Vec::new();
        for var in vars {
            let known = host.contains_key(&var) || self.is_bound_by_arguments(&var);
            if !known {
                return Err(EmitError::Unbound { name: var.name().to_owned() });
            }
            let value = host.get(&var).cloned().unwrap_or_else(|| var.expr());
            let arg = KernelArg::Scalar { value, dtype: var.dtype() };
            numbers.push((var.name().to_owned(), Source::Number { var, arg }));
        }
        pointers.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
        numbers.sort_by(|a, b| a.0.as_bytes().cmp(b.0.as_bytes()));
        Ok(pointers.into_iter().chain(numbers).collect())
    }

    fn is_bound_by_arguments(&self, var: &Var) -> bool {
        let mut found = false;
        let mut look = |expr: &Expr| for_each_expr(expr, &mut |e| found |= e.as_var() == Some(var));
        for param in &self.kernel.params {
            match param {
                Param::Scalar(scalar) => look(&scalar.expr()),
                Param::Buffer { buffer, .. } => {
                    buffer
                        .shape
                        .iter()
                        .chain(&buffer.strides)
                        .chain([&buffer.elem_offset])
                        .for_each(&mut look);
                }
            }
        }
        found
    }

    /// The declaration of memory inside a launch.
    pub(super) fn allocate_on_device(
        &mut self,
        gpu: &dyn GpuDialect,
        buffer: &Buffer,
    ) -> Result<(), EmitError> {
        let length = buffer.shape.iter().try_fold(1i64, |n, e| n.checked_mul(index::constant(e)?.max(0)));
        let element = self.dialect.type_name(CTy::memory(buffer.dtype));
        let name = self.namer.fresh(&buffer.name);
        let of_constant_size = || {
            let length = length.map(|n| n.max(1) as u64);
            length.ok_or_else(|| {
                self.unsupported(format!("array `{}` of a size that is not constant", buffer.name))
            })
        };
        match buffer.scope {
            MemScope::Local => {
                let stays = !is_plain(buffer.dtype) || self.f.as_bytes.contains(&buffer.data.id());
                let held = self.dialect.held(CTy::memory(buffer.dtype));
                let element = if stays { element } else { self.dialect.type_name(held) };
                let array = self.dialect.local_array(element, &name, of_constant_size()?);
                self.f.lines.statement(&array);
            }
            MemScope::Shared => {
                let has_vectors = self.f.by_vectors.contains(&buffer.data.id());
                let align = if has_vectors { DYNAMIC_ALIGN as u32 } else { 1 };
                let array = gpu.shared_array(element, &name, of_constant_size()?, align);
                self.f.lines.statement(&array);
            }
            MemScope::SharedDyn => {
                let offset = dynamic_bytes(&self.f.dynamic);
                let offset = self.place(&index::fold(&offset))?;
                let memory = gpu.dynamic_shared().1;
                let start = match offset.text.as_str() {
                    "(int64_t)0" | "0" => memory.to_owned(),
                    text => format!("({memory} + {text})"),
                };
                self.f.lines.statement(format_args!("{element}* {name} = ({element}*){start}"));
                self.f.dynamic.push(buffer.clone());
            }
            MemScope::Global | MemScope::Warp => {
                let what =
                    format!("`{}` memory inside a launch (buffer `{}`)", buffer.scope.name(), buffer.name);
                return Err(self.unsupported(what));
            }
        }
        self.f.pointers.insert(buffer.data.id(), Pointer { name: name.into(), dtype: buffer.dtype });
        self.forget_memory(buffer.data.id());
        Ok(())
    }
}

/// The bytes of those arrays one after another, each rounded up.
fn dynamic_bytes(buffers: &[Buffer]) -> Expr {
    let align = || Expr::int_of(i128::from(DYNAMIC_ALIGN), DType::I64);
    buffers.iter().fold(Expr::int_of(0, DType::I64), |total, buffer| {
        let up = bytes_of(buffer, &HashMap::new()) + Expr::int_of(i128::from(DYNAMIC_ALIGN - 1), DType::I64);
        index::fold(&(total + up.floordiv(align()) * align()))
    })
}

impl Order<'_> {
    /// Whether the launch shares memory with one before it, where one of them writes. A pointer to such memory is not said
    /// to be alone: its loads could be moved to before the wait.
    fn is_shared(&self, traffic: &Traffic, data: &VarId) -> bool {
        self.earlier.writes(data) || (self.earlier.read.contains(data) && traffic.writes(data))
    }
}

/// What the threads of a launch do with each memory.
#[derive(Default)]
struct Traffic {
    read: BTreeSet<VarId>,
    written: BTreeSet<VarId>,
    atomic: BTreeSet<VarId>,
    /// Memory that is loaded from or stored to by vectors.
    by_vectors: BTreeSet<VarId>,
    /// The type by which each memory was named first.
    types: BTreeMap<VarId, DType>,
    /// Memory that is named by several types, or by address.
    as_bytes: BTreeSet<VarId>,
    /// Whether the body has barriers or atoms.
    meets: bool,
}

impl Traffic {
    fn of(body: &Stmt) -> Traffic {
        let mut traffic = Traffic::default();
        let mut seen = Seen::default();
        for_each_stmt(body, &mut |s| {
            for expr in stmt_exprs(s) {
                for_each_load(expr, &mut seen, &mut |buffer, lanes| {
                    traffic.name(buffer);
                    traffic.read.insert(buffer.data.id());
                    if lanes > 1 {
                        traffic.by_vectors.insert(buffer.data.id());
                    }
                });
            }
            match s {
                Stmt::Store { buffer, indices, .. } => {
                    traffic.name(buffer);
                    traffic.written.insert(buffer.data.id());
                    if indices.iter().any(|at| at.lanes() > 1) {
                        traffic.by_vectors.insert(buffer.data.id());
                    }
                }
                Stmt::Allocate { buffer, .. } => traffic.name(buffer),
                Stmt::Atom(call) if !call.atom.is_hint() => {
                    traffic.meets = true;
                    traffic.as_bytes.extend(call.memory.iter().map(|e| e.buffer.data.id()));
                    traffic.written.extend(call.dst.iter().map(|e| e.buffer.data.id()));
                    traffic.atomic.extend(call.memory.iter().map(|e| e.buffer.data.id()));
                }
                Stmt::Sync(_) => traffic.meets = true,
                _ => {}
            }
        });
        traffic
    }

    fn name(&mut self, buffer: &Buffer) {
        let data = buffer.data.id();
        if *self.types.entry(data).or_insert(buffer.dtype) != buffer.dtype {
            self.as_bytes.insert(data);
        }
    }

    /// Takes in what another launch does.
    fn add(&mut self, other: &Traffic) {
        self.read.extend(&other.read);
        self.written.extend(&other.written);
        self.atomic.extend(&other.atomic);
        self.meets |= other.meets;
    }

    /// Whether the memory is stored to, by an atomic or otherwise.
    fn writes(&self, data: &VarId) -> bool {
        self.written.contains(data) || self.atomic.contains(data)
    }

    /// Whether the memory is both loaded from and stored to.
    fn is_update(&self, data: &VarId) -> bool {
        self.read.contains(data) && self.written.contains(data)
    }

    /// Memory by which threads tell each other something: atomics work on it, or it is both read and written in a
    /// body that has barriers or atoms.
    fn communicating(&self) -> BTreeSet<VarId> {
        let mut found = self.atomic.clone();
        if self.meets {
            found.extend(self.read.intersection(&self.written));
        }
        found
    }
}
