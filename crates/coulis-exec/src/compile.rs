//! From a Flat kernel to bytecode.
//!
//! Each open statement that repeats or guards its body has a [`Scope`] with the code made so far and the values that
//! are known in it. A pure expression is computed once, in the outermost scope that has its operands: index
//! arithmetic and broadcast constants leave the loops by themselves. An expression that reads memory, or may fail,
//! stays in the scope where it stands, and is forgotten when that memory is written.

mod access;
mod expr;
mod operation;
mod short_loops;

use std::collections::HashMap;

use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::for_each_stmt;
use coulis_ir::{Checked, DType, Expr, Form, LoopKind, Param, Stmt, Var, VarId};

use crate::code::{Base, BaseInfo, Input, Instr, Origin, ParallelInfo, Ptr, PtrKind, Slot};
use crate::error::ExecError;
use crate::level::Level;

/// Allocations of a known size up to this many bytes live in the arena of the thread.
const ARENA_LIMIT: i64 = 1 << 20;

/// Everything that a program is made of.
pub(crate) struct Compiled {
    pub(crate) code: Vec<Instr>,
    pub(crate) slots: Vec<u64>,
    pub(crate) ptrs: Vec<PtrKind>,
    pub(crate) bases: Vec<BaseInfo>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) parallels: Vec<ParallelInfo>,
}

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Scalar(Slot),
    Vector(Ptr),
}

/// A compiled expression.
#[derive(Clone, Debug)]
struct Value {
    place: Place,
    /// Index of the scope from which on it is known.
    scope: usize,
    /// Data pointers of the buffers that it was read from.
    reads: Vec<VarId>,
    /// Whether the place is the memory of a buffer (`reads[0]`) itself, read when the value is used.
    in_memory: bool,
}

#[derive(Default)]
struct Scope {
    /// Whether it runs once at most each time that the scope around it runs.
    is_branch: bool,
    code: Vec<Instr>,
    values: HashMap<Expr, Value>,
    /// Which values were read from a memory: a store looks at those alone.
    readers: HashMap<VarId, Vec<Expr>>,
    /// Pointers to `n` elements of a buffer, by data pointer, index and length.
    addresses: HashMap<(VarId, Expr, u32), Ptr>,
}

#[derive(Clone)]
struct Buf {
    base: Base,
    dtype: DType,
    /// Scope that allocates it; `None` for arguments.
    allocated_in: Option<usize>,
    /// Number of elements of a buffer in the arena.
    count: Option<i64>,
}

struct Compiler {
    level: Level,
    slots: Vec<u64>,
    ptrs: Vec<PtrKind>,
    bases: Vec<BaseInfo>,
    inputs: Vec<Input>,
    parallels: Vec<ParallelInfo>,
    scopes: Vec<Scope>,
    vars: HashMap<VarId, Value>,
    bufs: HashMap<VarId, Buf>,
    constants: HashMap<u64, Slot>,
    slot_ptrs: HashMap<Slot, Ptr>,
    parallel: Option<u32>,
}

/// Compiles a kernel for that level.
pub(crate) fn compile(checked: &Checked, level: Level) -> Result<Compiled, ExecError> {
    let kernel = checked.kernel();
    if kernel.form != Form::Flat {
        return Err(ExecError::NotFlat { kernel: kernel.name.clone(), form: kernel.form.name() });
    }
    let mut compiler = Compiler {
        level,
        slots: Vec::new(),
        ptrs: Vec::new(),
        bases: Vec::new(),
        inputs: Vec::new(),
        parallels: Vec::new(),
        scopes: vec![Scope::default()],
        vars: HashMap::new(),
        bufs: HashMap::new(),
        constants: HashMap::new(),
        slot_ptrs: HashMap::new(),
        parallel: None,
    };
    // Slot 0 and entry 0 stand for operands that are not used.
    let unused = compiler.constant(0);
    compiler.slot_ptr(unused);
    let mut n = 0;
    for param in &kernel.params {
        if let Param::Buffer { buffer, .. } = param {
            let origin = Origin::Argument { n, shape: buffer.shape.clone(), strides: buffer.strides.clone() };
            compiler.add_base(buffer, origin);
            n += 1;
        }
    }
    compiler.stmt(&kernel.body)?;
    let code = compiler.scopes.swap_remove(0).code;
    Ok(Compiled {
        code,
        slots: compiler.slots,
        ptrs: compiler.ptrs,
        bases: compiler.bases,
        inputs: compiler.inputs,
        parallels: compiler.parallels,
    })
}

impl Compiler {
    fn current(&self) -> usize {
        self.scopes.len() - 1
    }

    fn emit(&mut self, scope: usize, instr: Instr) {
        self.scopes[scope].code.push(instr);
    }

    fn emit_here(&mut self, instr: Instr) {
        let here = self.current();
        self.emit(here, instr);
    }

    fn new_slot(&mut self) -> Slot {
        self.slots.push(0);
        (self.slots.len() - 1) as Slot
    }

    fn new_register(&mut self, bytes: usize) -> Ptr {
        self.ptrs.push(PtrKind::Register { bytes });
        (self.ptrs.len() - 1) as Ptr
    }

    /// The slot that always holds those bits.
    fn constant(&mut self, bits: u64) -> Slot {
        if let Some(slot) = self.constants.get(&bits) {
            return *slot;
        }
        let slot = self.new_slot();
        self.slots[slot as usize] = bits;
        self.constants.insert(bits, slot);
        slot
    }

    /// The pointer entry of a slot.
    fn slot_ptr(&mut self, slot: Slot) -> Ptr {
        if let Some(ptr) = self.slot_ptrs.get(&slot) {
            return *ptr;
        }
        self.ptrs.push(PtrKind::Slot(slot));
        let ptr = (self.ptrs.len() - 1) as Ptr;
        self.slot_ptrs.insert(slot, ptr);
        ptr
    }

    fn add_base(&mut self, buffer: &coulis_ir::Buffer, origin: Origin) -> Base {
        let base = self.bases.len() as Base;
        let count = match origin {
            Origin::Arena { count } => Some(count),
            Origin::Argument { .. } | Origin::Heap => None,
        };
        let allocated_in = match origin {
            Origin::Arena { .. } | Origin::Heap => Some(self.current()),
            Origin::Argument { .. } => None,
        };
        self.bases.push(BaseInfo { name: buffer.name.clone(), dtype: buffer.dtype, origin });
        self.bufs.insert(buffer.data.id(), Buf { base, dtype: buffer.dtype, allocated_in, count });
        base
    }

    /// Opens a scope, compiles into it, closes it, and gives its code.
    fn in_scope(
        &mut self,
        is_branch: bool,
        body: impl FnOnce(&mut Self) -> Result<(), ExecError>,
    ) -> Result<Vec<Instr>, ExecError> {
        self.scopes.push(Scope { is_branch, ..Scope::default() });
        let result = body(self);
        let code = self.scopes.pop().map(|scope| scope.code).unwrap_or_default();
        result.map(|()| code)
    }

    /// Where a value belongs that could be had from that scope on: no farther out than it saves work, so that what only a
    /// branch needs is computed there.
    fn settled(&self, scope: usize) -> usize {
        (scope + 1..self.scopes.len()).take_while(|s| self.scopes[*s].is_branch).last().unwrap_or(scope)
    }

    /// Notes what an expression is, in the scope where that is known.
    fn learn(&mut self, expr: &Expr, value: &Value) {
        let scope = &mut self.scopes[value.scope];
        for data in &value.reads {
            scope.readers.entry(*data).or_default().push(expr.clone());
        }
        scope.values.insert(expr.clone(), value.clone());
    }

    /// Forgets everything that was read from that memory.
    fn forget(&mut self, data: VarId) {
        for scope in &mut self.scopes {
            for expr in scope.readers.remove(&data).unwrap_or_default() {
                scope.values.remove(&expr);
            }
        }
    }

    fn forget_stored_in(&mut self, stmt: &Stmt) {
        let mut stored = Vec::new();
        for_each_stmt(stmt, &mut |s| {
            if let Stmt::Store { buffer, .. } = s {
                stored.push(buffer.data.id());
            }
        });
        stored.sort();
        stored.dedup();
        for data in stored {
            self.forget(data);
        }
    }

    /// Gives a variable a value. Values that mention an older binding of the same variable are forgotten.
    fn bind(&mut self, var: &Var, value: Value) {
        if self.vars.insert(var.id(), value).is_some() {
            for scope in &mut self.scopes {
                scope.values.clear();
                scope.readers.clear();
                scope.addresses.clear();
            }
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), ExecError> {
        match stmt {
            Stmt::Seq(stmts) => stmts.iter().try_for_each(|s| self.stmt(s)),
            Stmt::For { var, min, extent, kind, body } if !matches!(var.dtype(), DType::I32 | DType::I64) => {
                self.stmt(&counted_in_64_bits(var, min, extent, *kind, body))
            }
            Stmt::For { var, min, extent, kind, body } => match kind {
                LoopKind::Serial | LoopKind::Unrolled => self.serial_loop(var, min, extent, body),
                LoopKind::Parallel if self.parallel.is_some() => self.serial_loop(var, min, extent, body),
                LoopKind::Parallel => self.parallel_loop(var, min, extent, body),
                LoopKind::Vectorized => Err(ExecError::UnsupportedStmt { stmt: stmt.kind_name() }),
            },
            Stmt::If { cond, then, otherwise } => self.branch(cond, then, otherwise.as_deref()),
            Stmt::Store { buffer, indices, value } => self.store(buffer, indices, value),
            Stmt::Let { var, value, body } => {
                let value = self.snapshot(value)?;
                self.bind(var, value);
                self.stmt(body)
            }
            Stmt::Allocate { buffer, body } => self.allocate(buffer, body),
            Stmt::Annotate { body, .. } => self.stmt(body),
            Stmt::Atom(call) if call.atom.is_hint() => self.hint(call.atom, call.memory.as_ref()),
            Stmt::LaunchThread { .. }
            | Stmt::DeviceEntry
            | Stmt::ScopeIds { .. }
            | Stmt::AllocBuffer(_)
            | Stmt::View { .. }
            | Stmt::Tile(_)
            | Stmt::Atom(_)
            | Stmt::Sync(_) => Err(ExecError::UnsupportedStmt { stmt: stmt.kind_name() }),
        }
    }

    /// The value of an expression, held where no later store can change it.
    fn snapshot(&mut self, expr: &Expr) -> Result<Value, ExecError> {
        let mut value = self.expr(expr)?;
        if value.in_memory {
            value = self.copied(value, expr);
        }
        value.reads.clear();
        Ok(value)
    }

    /// Index variable, first value and number of iterations of a loop, as slots.
    fn loop_slots(
        &mut self,
        var: &Var,
        min: &Expr,
        extent: &Expr,
    ) -> Result<(Slot, Slot, Slot, bool), ExecError> {
        let wide = var.dtype() == DType::I64;
        let min = self.scalar(&min.clone().cast(var.dtype()))?;
        let extent = self.scalar(&extent.clone().cast(DType::I64))?;
        Ok((self.new_slot(), min, extent, wide))
    }

    fn bind_index(&mut self, var: &Var, slot: Slot) {
        let scope = self.current();
        let value = Value { place: Place::Scalar(slot), scope, reads: Vec::new(), in_memory: false };
        self.bind(var, value);
    }

    fn serial_loop(&mut self, var: &Var, min: &Expr, extent: &Expr, body: &Stmt) -> Result<(), ExecError> {
        if let Some(stmt) = self.instead_of_loop(var, min, extent, body) {
            return self.stmt(&stmt);
        }
        let count = extent;
        let (index, min, extent, wide) = self.loop_slots(var, min, extent)?;
        let rest = self.new_slot();
        self.forget_stored_in(body);
        let most = Analyzer::new().const_bounds(count).1;
        let code = self.in_scope(most.is_some_and(|n| n <= 1), |this| {
            this.bind_index(var, index);
            this.stmt(body)
        })?;
        let len = code.len() as u32;
        self.emit_here(Instr::For { var: index, min, extent, rest, exit: len + 1 });
        let here = self.current();
        self.scopes[here].code.extend(code);
        self.emit_here(Instr::Next { var: index, rest, wide, back: len });
        Ok(())
    }

    fn parallel_loop(&mut self, var: &Var, min: &Expr, extent: &Expr, body: &Stmt) -> Result<(), ExecError> {
        let (index, min, extent, wide) = self.loop_slots(var, min, extent)?;
        let id = self.parallels.len() as u32;
        self.parallels.push(ParallelInfo::default());
        self.forget_stored_in(body);
        self.parallel = Some(id);
        let code = self.in_scope(false, |this| {
            this.bind_index(var, index);
            this.stmt(body)
        });
        self.parallel = None;
        let code = code?;
        let len = code.len() as u32;
        self.emit_here(Instr::Parallel { var: index, min, extent, wide, id, len });
        let here = self.current();
        self.scopes[here].code.extend(code);
        Ok(())
    }

    fn branch(&mut self, cond: &Expr, then: &Stmt, otherwise: Option<&Stmt>) -> Result<(), ExecError> {
        let cond = self.scalar(cond)?;
        let then = self.in_scope(true, |this| this.stmt(then))?;
        let otherwise = match otherwise {
            Some(stmt) => self.in_scope(true, |this| this.stmt(stmt))?,
            None => Vec::new(),
        };
        self.emit_branch(cond, then, otherwise);
        Ok(())
    }

    fn emit_branch(&mut self, cond: Slot, then: Vec<Instr>, otherwise: Vec<Instr>) {
        let here = self.current();
        let code = &mut self.scopes[here].code;
        let jump = u32::from(!otherwise.is_empty());
        code.push(Instr::Unless { cond, by: then.len() as u32 + jump });
        code.extend(then);
        if jump == 1 {
            code.push(Instr::Jump { by: otherwise.len() as u32 });
        }
        code.extend(otherwise);
    }

    fn allocate(&mut self, buffer: &coulis_ir::Buffer, body: &Stmt) -> Result<(), ExecError> {
        let one = Expr::int_of(1, DType::I64);
        let count = buffer.shape.iter().fold(one, |n, extent| n * extent.clone().cast(DType::I64));
        let known = coulis_ir::args::eval_index(&count, &HashMap::new()).ok();
        let bytes = buffer.dtype.bytes();
        let fits = known.filter(|n| (0..=ARENA_LIMIT / bytes as i64).contains(n));
        let base = match fits {
            Some(count) => self.add_base(buffer, Origin::Arena { count }),
            None => {
                let count = self.scalar(&count)?;
                let base = self.add_base(buffer, Origin::Heap);
                self.emit_here(Instr::Alloc { base, count, bytes: bytes as u8 });
                base
            }
        };
        if let Some(id) = self.parallel {
            crate::registers::note_own_base(&mut self.parallels[id as usize], base);
        }
        self.stmt(body)?;
        if fits.is_none() {
            self.emit_here(Instr::Free { base });
        }
        // What was read from it or points into it is not known behind the allocation.
        let data = buffer.data.id();
        self.forget(data);
        for scope in &mut self.scopes {
            scope.addresses.retain(|(of, _, _), _| *of != data);
        }
        self.bufs.remove(&data);
        Ok(())
    }
}

/// The loop counted in 64 bits, as the executor counts, whose variable is of another integer type.
fn counted_in_64_bits(var: &Var, min: &Expr, extent: &Expr, kind: LoopKind, body: &Stmt) -> Stmt {
    let index = Var::new(var.name(), DType::I64);
    let long = |e: &Expr| e.clone().cast(DType::I64);
    let body = Stmt::let_(var.clone(), index.expr().cast(var.dtype()), body.clone());
    Stmt::for_(index, long(min), long(extent), kind, body)
}
