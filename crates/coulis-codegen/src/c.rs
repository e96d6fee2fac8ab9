//! The walker: C-family text from a Flat kernel.
//!
//! Sharing: an expression that occurs more than once in the statements of a block is named at its first use and
//! found again until a store to memory that it reads, or a new binding of a variable that it uses. What only one arm
//! of a conditional evaluates is never moved out of it.
//!
//! Registers: a local buffer whose accesses in a region are all at constant places becomes one variable a place
//! there: for its whole life if possible, else for the loops for which it is. Compilers do this for scalars, but
//! not for vectors of accumulators (gcc 12 keeps storing them).

mod any_set;
mod atom;
mod by_twos;
pub mod code;
mod deps;
pub mod elementary;
mod exact;
mod facts;
mod flags;
pub mod helper;
mod index;
mod known;
mod lanes;
mod launch;
pub mod names;
mod offsets;
mod parallel;
mod place;
pub mod plain;
pub mod scalar;
mod slots;
mod stmt;
mod strided;
pub mod style;
mod transpose;
pub mod types;
mod value;
mod vector;

use coulis_ir::hash::FastMap;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::rc::Rc;

use coulis_ir::expr::Names;
use coulis_ir::{Buffer, DType, Expr, Kernel, Node, Param, Var, VarId};

use crate::c::code::{Code, Lines};
use crate::c::deps::DepsTable;
use crate::c::facts::Facts;
use crate::c::helper::{Helper, Needs};
use crate::c::names::Namer;
use crate::c::offsets::Offsets;
use crate::c::slots::{Slot, SlotTable};
use crate::c::style::{Style, Vectors};
use crate::c::types::{CTy, VTy};
use crate::c::value::Val;
use crate::dialect::{CpuDialect, DialectKind, GpuDialect};
use crate::{Dialect, EmitError, Options, Source};

pub use launch::emit_module;

/// The types and helpers that the text uses.
struct Definitions<'a> {
    dialect: &'a dyn Dialect,
    types: BTreeSet<VTy>,
    unaligned: BTreeSet<VTy>,
    defined: FastMap<Helper, String>,
    /// Names and definitions, each after those that it refers to.
    texts: Vec<(String, String)>,
}

impl Needs for Definitions<'_> {
    fn helper(&mut self, helper: Helper) -> Result<String, EmitError> {
        if let Some(name) = self.defined.get(&helper) {
            return Ok(name.clone());
        }
        let dialect = self.dialect;
        let text = dialect.helper(helper, self)?;
        let name = helper.name();
        self.texts.push((name.clone(), text));
        self.defined.insert(helper, name.clone());
        Ok(name)
    }

    fn ty(&mut self, ty: VTy) -> String {
        if ty.lanes > 0 {
            self.types.insert(ty);
        }
        ty.name()
    }

    fn unaligned(&mut self, ty: VTy) -> String {
        self.types.insert(ty);
        self.unaligned.insert(ty);
        format!("{}_u", ty.name())
    }

    fn dialect(&self) -> &dyn Dialect {
        self.dialect
    }
}

/// Type of the address of the byte that ends loops early.
const INTERRUPT: &str = "const volatile u8 *const";

/// Memory in the function that is being written.
#[derive(Clone, Debug)]
struct Pointer {
    name: Rc<str>,
    dtype: DType,
}

/// A buffer's constant places as variables.
#[derive(Clone, Debug)]
struct Registers {
    slots: BTreeMap<i64, (Slot, Val)>,
}

/// The function that is being written.
#[derive(Default)]
struct Frame {
    lines: Lines,
    vars: FastMap<VarId, Val>,
    pointers: FastMap<VarId, Pointer>,
    /// Local arrays in order of declaration.
    arrays: Vec<VarId>,
    registers: FastMap<VarId, Registers>,
    /// Named expressions, one table a block.
    memo: Vec<FastMap<Expr, Val>>,
    /// How often expressions occur, one table a block.
    uses: Vec<FastMap<Expr, u32>>,
    /// Above 0 while text is written that must stay inside one expression.
    inline: u32,
    /// Above 0 while a condition is written whose operands may all be evaluated.
    eager: u32,
    /// Above 0 while an index, a bound or a condition is written: their arithmetic stays within its type.
    places: u32,
    /// Whether this is the body of a parallel loop.
    parallel: bool,
    /// Whether results go past the caches here, and whether some did in this function.
    streams: bool,
    /// Where words copied into shared memory are under way until the statement ends: whether any is.
    copies: Option<bool>,
    streamed: bool,
    /// Variables that hold what was read from memory.
    data_vars: BTreeSet<VarId>,
    /// Variables of the lanes of vector variables.
    lane_vars: FastMap<VarId, Vec<Var>>,
    /// The scalar expressions of lanes, where several expressions share one.
    lane_memo: FastMap<(Expr, u32), Expr>,
    /// The bits, in the lowest bytes of 32, of pairs of 8-bit floats that were widened together, by the pair's name.
    pairs: FastMap<String, Code>,
    /// Buffers in memory that is sized at launch, in order.
    dynamic: Vec<Buffer>,
    /// Memory that the launch accesses by vectors.
    by_vectors: BTreeSet<VarId>,
    /// Memory that is more to the launch than elements of one type.
    as_bytes: BTreeSet<VarId>,
    /// Memory that is only read while the launch runs.
    only_read: BTreeSet<VarId>,
    /// Indices of blocks and of clusters, and variables that are made of them.
    block_vars: BTreeSet<VarId>,
}

/// The state of an emission.
pub struct Walker<'a> {
    kernel: &'a Kernel,
    dialect: &'a dyn Dialect,
    options: Options,
    namer: Namer,
    defs: Definitions<'a>,
    deps: DepsTable,
    slots: SlotTable,
    offsets: Offsets,
    /// Finished bodies of parallel loops.
    functions: String,
    entry: String,
    /// What is known of variables, where the dialect asks.
    facts: Facts,
    /// Bytes by which accesses in words want each buffer's memory aligned.
    alignments: BTreeMap<VarId, u32>,
    f: Frame,
}

/// Emits a Flat kernel.
pub fn emit_kernel(kernel: &Kernel, dialect: &dyn Dialect, options: Options) -> Result<Source, EmitError> {
    let mut namer = Namer::new(dialect.reserved());
    let entry = namer.fresh(&format!("coulis_{}", kernel.name));
    let mut walker = Walker::new(kernel, dialect, options, namer);
    walker.entry = entry;
    let cpu = walker.cpu()?;
    walker.kernel(cpu)
}

/// The variables that a call's arguments determine, in the order in which parameters name them.
fn free_vars(kernel: &Kernel) -> Vec<Var> {
    let mut vars: Vec<Var> = Vec::new();
    let mut add = |expr: &Expr| {
        coulis_ir::visit::for_each_expr(expr, &mut |e| {
            if let Node::Var(var) = e.node()
                && !vars.contains(var)
            {
                vars.push(var.clone());
            }
        });
    };
    for param in &kernel.params {
        match param {
            Param::Scalar(var) => add(&var.expr()),
            Param::Buffer { buffer, .. } => {
                buffer.shape.iter().chain(&buffer.strides).for_each(&mut add);
                add(&buffer.elem_offset);
            }
        }
    }
    vars
}

impl<'a> Walker<'a> {
    fn new(kernel: &'a Kernel, dialect: &'a dyn Dialect, options: Options, namer: Namer) -> Walker<'a> {
        Walker {
            kernel,
            dialect,
            options,
            namer,
            defs: Definitions {
                dialect,
                types: BTreeSet::new(),
                unaligned: BTreeSet::new(),
                defined: FastMap::default(),
                texts: Vec::new(),
            },
            deps: DepsTable::default(),
            slots: SlotTable::default(),
            offsets: Offsets::default(),
            functions: String::new(),
            entry: String::new(),
            facts: Facts::default(),
            alignments: BTreeMap::new(),
            f: Frame { lines: Lines::in_function(dialect.style().indent), ..Frame::default() },
        }
    }

    fn cpu(&self) -> Result<&'a dyn CpuDialect, EmitError> {
        match self.dialect.kind() {
            DialectKind::Cpu(cpu) => Ok(cpu),
            DialectKind::Gpu(_) => Err(self.unsupported("functions for a CPU; it gives modules of launches")),
        }
    }

    fn gpu(&self, what: &str) -> Result<&'a dyn GpuDialect, EmitError> {
        match self.dialect.kind() {
            DialectKind::Gpu(gpu) => Ok(gpu),
            DialectKind::Cpu(_) => Err(self.unsupported(what)),
        }
    }

    fn style(&self) -> &'static Style {
        self.dialect.style()
    }

    /// Whether vectors are written lane by lane, and sharing is the compiler's.
    fn by_lanes(&self) -> bool {
        self.style().vectors == Vectors::Lanes
    }
}

impl Walker<'_> {
    fn kernel(mut self, cpu: &dyn CpuDialect) -> Result<Source, EmitError> {
        let body = index::expand(self.kernel.body.clone());
        self.offsets = Offsets::of(&body);
        let scalars = free_vars(self.kernel);
        let mut buffers = Vec::new();
        let used = deps::captures(&body, &Var::new("", DType::I64));
        for (position, param) in
            self.kernel.params.iter().filter_map(buffer_param).enumerate().collect::<Vec<_>>()
        {
            let (handle, buffer) = param;
            buffers.push(Kernel::argument_name(handle).to_owned());
            if !used.data.contains(&buffer.data.id()) || self.f.pointers.contains_key(&buffer.data.id()) {
                continue;
            }
            let name = self.namer.fresh(Kernel::argument_name(handle));
            let element = CTy::memory(buffer.dtype).name();
            self.f.lines.statement(format_args!("{element} *const {name} = ({element} *)buf[{position}]"));
            let pointer = Pointer { name: name.into(), dtype: buffer.dtype };
            self.f.pointers.insert(buffer.data.id(), pointer);
        }
        for (position, var) in scalars.iter().enumerate() {
            if !used.vars.contains(var) {
                continue;
            }
            let name = self.namer.fresh(var.name());
            let ty = CTy::carrier(var.dtype());
            self.f.lines.statement(format_args!(
                "const {} {name} = ({})scalar[{position}]",
                ty.name(),
                ty.name()
            ));
            self.f.vars.insert(var.id(), Val::scalar(ty, Code::primary(name)));
        }
        self.f.lines.statement("i32 failed = 0, *const status = &failed");
        if self.options.ends_early {
            self.f.lines.statement(format_args!("{INTERRUPT} interrupt = *({INTERRUPT} *)pool"));
        }
        self.block(&body)?;
        self.drain()?;
        self.f.lines.statement("return failed");
        let ends_early = self.options.ends_early;
        let source = Source { text: self.text(cpu), entry: self.entry.clone(), buffers, scalars, ends_early };
        Ok(source)
    }

    fn text(&mut self, cpu: &dyn CpuDialect) -> String {
        let mut text = String::new();
        let _ =
            writeln!(text, "/* {}: kernel `{}` */", self.dialect.name(), names::sanitised(&self.kernel.name));
        text.push_str(cpu.prelude());
        for ty in &self.defs.types {
            let _ = writeln!(text, "{}", cpu.vector_type(*ty));
        }
        for ty in &self.defs.unaligned {
            let _ = writeln!(text, "{}", cpu.unaligned_type(*ty, &format!("{}_u", ty.name())));
        }
        for (_, definition) in &self.defs.texts {
            text.push_str(definition);
        }
        text.push_str(&self.functions);
        let body = std::mem::take(&mut self.f.lines).into_text();
        let head = cpu.entry_head(&self.entry);
        let _ = write!(text, "\n{head}\n{{\n{body}}}\n");
        text
    }

    /// The value of an expression; named if it is shared or long.
    fn value(&mut self, expr: &Expr) -> Result<Val, EmitError> {
        if let Some(known) = self.known(expr) {
            return Ok(known);
        }
        if let Some(val) = self.transposed(expr)? {
            return Ok(val);
        }
        let val = if expr.lanes() == 1 { self.scalar(expr)? } else { self.vector(expr)? };
        if self.f.inline > 0 || !self.deserves_name(expr, &val) {
            return Ok(val);
        }
        let named = self.declare_val(&val);
        if let Some(table) = self.f.memo.last_mut() {
            table.insert(expr.clone(), named.clone());
        }
        Ok(named)
    }

    /// The text of a scalar expression.
    fn code(&mut self, expr: &Expr) -> Result<Code, EmitError> {
        Ok(self.value(expr)?.into_code())
    }

    fn known(&self, expr: &Expr) -> Option<Val> {
        self.f.memo.iter().rev().find_map(|table| table.get(expr)).cloned()
    }

    fn uses(&self, expr: &Expr) -> u32 {
        self.f.uses.last().and_then(|table| table.get(expr)).copied().unwrap_or(0)
    }

    fn deserves_name(&mut self, expr: &Expr, val: &Val) -> bool {
        let leaf = matches!(expr.node(), Node::Int(_) | Node::Float(_) | Node::Var(_) | Node::Let(..));
        let register = matches!(expr.node(), Node::Load(b, _) if self.f.registers.contains_key(&b.data.id()));
        if leaf || register {
            return false;
        }
        if val.parts.iter().any(|part| part.code.text.len() > self.style().long) {
            return true;
        }
        if self.by_lanes() {
            // What is written twice is read twice by the compiler's front end, and decided twice where it is a choice.
            let is_long = val.code().text.len() > self.style().repeatable;
            return is_long && self.uses(expr) > 1 && self.holds_data(expr);
        }
        let cheap = expr.lanes() == 1
            && !expr.dtype().is_float()
            && val.code().text.len() <= 12
            && !matches!(expr.node(), Node::Load(..));
        self.uses(expr) > 1 && !cheap
    }

    /// Forgets named expressions that read that memory.
    fn forget_memory(&mut self, data: VarId) {
        let deps = &mut self.deps;
        for table in self.f.memo.iter_mut().filter(|table| !table.is_empty()) {
            table.retain(|expr, _| !expr.reads_memory() || !deps.of(expr).reads.contains(&data));
        }
    }

    /// Forgets all named expressions that read memory.
    fn forget_all_memory(&mut self) {
        for table in &mut self.f.memo {
            table.retain(|expr, _| !expr.reads_memory());
        }
    }

    /// Forgets named expressions that use the variable.
    fn forget_var(&mut self, var: &Var) {
        let (deps, names) = (&mut self.deps, Names::of(var));
        for table in self.f.memo.iter_mut().filter(|table| !table.is_empty()) {
            table.retain(|expr, _| !expr.names().may_meet(names) || !deps.of(expr).vars.contains(&var.id()));
        }
    }

    fn pointer(&self, buffer: &Buffer) -> Result<Pointer, EmitError> {
        let found = self.f.pointers.get(&buffer.data.id()).cloned();
        found.ok_or_else(|| EmitError::UnknownBuffer { name: buffer.name.clone() })
    }

    fn unsupported(&self, what: impl Into<String>) -> EmitError {
        EmitError::Unsupported { dialect: self.dialect.name(), what: what.into() }
    }

    fn bad_shape(&self, what: &'static str, found: impl Into<String>) -> EmitError {
        EmitError::Shape { kernel: self.kernel.name.clone(), what, found: found.into() }
    }
}

fn buffer_param(param: &Param) -> Option<(&Var, &Buffer)> {
    match param {
        Param::Buffer { handle, buffer } => Some((handle, buffer)),
        Param::Scalar(_) => None,
    }
}
