//! Statements.

use coulis_ir::remark::{ASYNC_COPY, ROLLED, STREAM, is_pragma};
use coulis_ir::visit::{for_each_stmt, stmt_children, written_memory};
use coulis_ir::{Attr, Buffer, DType, Expr, LoopKind, MemScope, Node, Stmt, Var, VarId};

use crate::EmitError;
use crate::c::code::{Code, Prec};
use crate::c::deps;
use crate::c::helper::{Helper, Needs as _};
use crate::c::scalar::{is_plain, is_storage_float, may_trap};
use crate::c::slots::{Slot, slots_in};
use crate::c::strided::strided;
use crate::c::types::{CTy, VTy, part_lanes};
use crate::c::value::{Part, Parts, Val};
use crate::c::vector::offset;
use crate::c::{Pointer, Registers, Walker, index};
use crate::dialect::DialectKind;

/// Arrays of up to this many bytes live on the stack; larger ones are allocated.
const STACK_BYTES: i64 = 16 * 1024;

/// What a compiler is told of a loop whose iterations it is not to write out.
const STAYS_A_LOOP: &str = "#pragma unroll 1";

/// Branches in a loop's body from which on it stays a loop: NVIDIA's assembler else writes several copies of loops that are
/// unrolled already, of which it moves nothing across a branch, and takes most of a second for them.
const MANY_BRANCHES: usize = 16;

impl Walker<'_> {
    /// A statement in a block of its own: names do not leave it.
    pub(super) fn block(&mut self, stmt: &Stmt) -> Result<(), EmitError> {
        let mut exprs = Vec::new();
        direct_exprs(stmt, &mut exprs);
        self.f.uses.push(deps::count_uses(&exprs, self.by_lanes()));
        self.f.memo.push(Default::default());
        let n_arrays = self.f.arrays.len();
        let result = self.stmt(stmt);
        for data in self.f.arrays.drain(n_arrays..) {
            self.f.pointers.remove(&data);
        }
        self.f.memo.pop();
        self.f.uses.pop();
        result
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<(), EmitError> {
        match stmt {
            Stmt::Seq(stmts) => stmts.iter().try_for_each(|s| self.stmt(s)),
            Stmt::For { var, min, extent, kind, body } => {
                let pragma = match kind {
                    LoopKind::Unrolled => Some("#pragma unroll"),
                    LoopKind::Serial if n_branches(body) >= MANY_BRANCHES => Some(STAYS_A_LOOP),
                    LoopKind::Serial | LoopKind::Parallel | LoopKind::Vectorized => None,
                };
                self.for_(var, [min, extent], *kind, pragma, body)
            }
            Stmt::If { cond, then, otherwise } => self.if_(cond, then, otherwise.as_deref()),
            Stmt::Store { buffer, indices, value } => match indices.as_slice() {
                [at] => self.store(buffer, at, value),
                _ => Err(self.bad_shape("a store", format!("{} indices", indices.len()))),
            },
            Stmt::Let { var, value, body } => {
                self.let_(var, value)?;
                self.stmt(body)
            }
            Stmt::Allocate { buffer, body } => self.allocate(buffer, body),
            Stmt::Annotate { key, value, body, .. } if is_pragma(key, STREAM) && *value != Attr::Int(0) => {
                let outer = std::mem::replace(&mut self.f.streams, true);
                let result = self.stmt(body);
                self.f.streams = outer;
                result
            }
            Stmt::Annotate { key, value, body, .. }
                if is_pragma(key, ASYNC_COPY) && *value != Attr::Int(0) && self.by_lanes() =>
            {
                let outer = self.f.copies.replace(false);
                let result = self.stmt(body);
                if std::mem::replace(&mut self.f.copies, outer) == Some(true) {
                    let wait = self.defs.helper(Helper::WaitForCopies)?;
                    self.f.lines.statement(&format!("{wait}()"));
                }
                result
            }
            Stmt::Annotate { key, body, .. } => match &**body {
                Stmt::For { var, min, extent, kind: LoopKind::Serial, body } if key == ROLLED => {
                    self.for_(var, [min, extent], LoopKind::Serial, Some(STAYS_A_LOOP), body)
                }
                body => self.stmt(body),
            },
            Stmt::Atom(call) => self.atom(call),
            Stmt::Sync(kind) => self.barrier(*kind),
            Stmt::LaunchThread { .. }
            | Stmt::DeviceEntry
            | Stmt::ScopeIds { .. }
            | Stmt::AllocBuffer(_)
            | Stmt::View { .. }
            | Stmt::Tile(_) => Err(self.unsupported(format!("`{}`", stmt.kind_name()))),
        }
    }

    /// Binds the variable to the value.
    fn let_(&mut self, var: &Var, value: &Expr) -> Result<(), EmitError> {
        if !self.by_lanes() {
            let val = self.value(value)?;
            return self.bind(var, val);
        }
        if value.lanes() > 1 {
            return self.bind_lanes(var, value);
        }
        self.note_block(var, value);
        let is_data = self.holds_data(value);
        if is_data {
            self.f.data_vars.insert(var.id());
        }
        let val = if is_data || value.dtype().is_float() {
            self.value(value)?
        } else {
            Val::scalar(CTy::carrier(value.dtype()), self.place(value)?)
        };
        self.facts = self.facts.with_value(var, value);
        self.bind(var, val)
    }

    /// A new constant of the variable's name.
    pub(super) fn bind(&mut self, var: &Var, mut val: Val) -> Result<(), EmitError> {
        for part in &mut val.parts {
            let spelled = self.spelled(VTy { ty: val.ty, lanes: part.lanes });
            let name = self.namer.fresh(var.name());
            let constant = self.style().constant;
            self.f.lines.statement_of(&[constant, &spelled, " ", &name, " = ", &part.code.text]);
            part.code = Code::primary(name);
        }
        // What uses a variable of one value may have been named before the variable was.
        if !self.offsets.is_known(var.id()) {
            self.forget_var(var);
        }
        self.f.vars.insert(var.id(), val);
        Ok(())
    }

    fn if_(&mut self, cond: &Expr, then: &Stmt, otherwise: Option<&Stmt>) -> Result<(), EmitError> {
        let code = self.place(cond)?;
        self.f.lines.open(format_args!("if {}", self.style().condition(&code)));
        if self.by_lanes() && !may_trap(cond) {
            let within = self.facts.with(cond);
            let outer = std::mem::replace(&mut self.facts, within);
            let result = self.block(then);
            self.facts = outer;
            result?;
        } else {
            self.block(then)?;
        }
        if let Some(otherwise) = otherwise {
            self.f.lines.otherwise();
            self.block(otherwise)?;
        }
        self.f.lines.close();
        Ok(())
    }

    /// A loop; compilers for lanes are told what `pragma` says.
    fn for_(
        &mut self,
        var: &Var,
        [min, extent]: [&Expr; 2],
        kind: LoopKind,
        pragma: Option<&str>,
        body: &Stmt,
    ) -> Result<(), EmitError> {
        match index::constant(extent) {
            Some(count) if count <= 0 => return Ok(()),
            Some(1) => {
                let val = Val::scalar(CTy::carrier(var.dtype()), self.place(min)?);
                self.bind(var, val)?;
                return self.block(body);
            }
            _ => {}
        }
        match kind {
            LoopKind::Parallel if !self.f.parallel => return self.parallel_loop(var, min, extent, body),
            LoopKind::Serial | LoopKind::Parallel | LoopKind::Unrolled => {}
            LoopKind::Vectorized => return Err(self.unsupported("vectorized loops; they are lowered first")),
        }
        let start = self.place(min)?;
        let last = index::end(min, extent);
        let end = self.place(&last)?;
        if !self.by_lanes() {
            return self.serial_loop(var, &start, end, body);
        }
        // The bound is evaluated every time: it must not read what the body may write.
        let end =
            if may_trap(&last) { self.declare(VTy::scalar(CTy::carrier(var.dtype())), &end) } else { end };
        if let Some(pragma) = pragma {
            self.f.lines.line(pragma);
        }
        let within = self.facts.with_range(var, min, extent);
        let outer = std::mem::replace(&mut self.facts, within);
        let result = self.serial_loop(var, &start, end, body);
        self.facts = outer;
        result
    }

    /// `for (var = start; var < end; ++var)`.
    pub(super) fn serial_loop(
        &mut self,
        var: &Var,
        start: &Code,
        end: Code,
        body: &Stmt,
    ) -> Result<(), EmitError> {
        let ty = CTy::carrier(var.dtype());
        let end = if self.by_lanes() { end } else { self.simple(ty, end) };
        for data in written_memory(body) {
            self.forget_memory(data);
        }
        self.forget_var(var);
        let promoted = if self.by_lanes() { Vec::new() } else { self.promote_for_loop(body)? };
        let name = self.namer.fresh(var.name());
        self.f.vars.insert(var.id(), Val::scalar(ty, Code::primary(name.clone())));
        let bound = end.at(Prec::Sum);
        let goes_on = if self.options.ends_early && has_loop(body) { " && !*interrupt" } else { "" };
        self.f.lines.open(format_args!(
            "for ({} {name} = {}; {name} < {bound}{goes_on}; ++{name})",
            self.dialect.type_name(ty),
            start.text
        ));
        self.block(body)?;
        self.f.lines.close();
        self.forget_var(var);
        for buffer in promoted {
            self.write_back(&buffer)?;
        }
        Ok(())
    }

    fn store(&mut self, buffer: &Buffer, at: &Expr, value: &Expr) -> Result<(), EmitError> {
        let lanes = at.lanes().max(value.lanes());
        let result = if lanes == 1 {
            self.store_scalar(buffer, at, value)
        } else if at.lanes() == 1 {
            Err(self.bad_shape("a store", format!("{} lanes to one place", value.lanes())))
        } else if self.by_lanes() {
            self.store_lanes(buffer, at, &value.clone().broadcast_to(lanes))
        } else {
            self.store_vector(buffer, at, &value.clone().broadcast_to(lanes))
        };
        self.forget_memory(buffer.data.id());
        result
    }

    fn store_scalar(&mut self, buffer: &Buffer, at: &Expr, value: &Expr) -> Result<(), EmitError> {
        let code = self.code(value)?;
        if let Some(registers) = self.f.registers.get(&buffer.data.id()) {
            let slot = index::constant(at).and_then(|offset| registers.slots.get(&offset));
            let Some((_, val)) = slot else {
                return Err(self.bad_shape("an access of registers", format!("index {at:?}")));
            };
            let name = val.code().text.clone();
            self.f.lines.statement_of(&[&name, " = ", &code.text]);
            return Ok(());
        }
        self.settle_copies(buffer)?;
        let at = self.place(at)?;
        self.store_element(buffer, &at, &code)
    }

    pub(super) fn store_element(&mut self, buffer: &Buffer, at: &Code, code: &Code) -> Result<(), EmitError> {
        if is_plain(buffer.dtype) || buffer.dtype == DType::Bool {
            let base = self.base(buffer)?;
            self.f.lines.statement_of(&[&*base, "[", &at.text, "] = ", &code.text]);
            return Ok(());
        }
        if self.by_lanes() {
            let base = self.base(buffer)?;
            let bits = self.bits(buffer.dtype, code)?;
            self.f.lines.statement_of(&[&*base, "[", &at.text, "] = ", &bits.text]);
            return Ok(());
        }
        let address = self.address(buffer, at)?;
        let name = self.defs.helper(Helper::Store(buffer.dtype, 0))?;
        self.f.lines.statement(&Code::call(&name, &[&address, code]).text);
        Ok(())
    }

    fn store_vector(&mut self, buffer: &Buffer, at: &Expr, value: &Expr) -> Result<(), EmitError> {
        let registers = self.f.registers.get(&buffer.data.id()).cloned();
        let mut val =
            if registers.is_some() { self.value(value)? } else { self.stored(value, buffer.dtype)? };
        if buffer.dtype == DType::Bool {
            let slot = index::constant_place(at).map(|(offset, _)| offset);
            let bytes =
                registers.as_ref().and_then(|r| r.slots.get(&slot?)).map_or(1, |(slot, _)| slot.mask_bytes);
            val = self.mask_as(&val, bytes)?;
        }
        // The parts are stored one after another: what a later part reads must not have been overwritten.
        if val.parts.len() > 1 && self.reads_elsewhere(value, buffer, at) {
            val = self.declare_val(&val);
        }
        if let Some(registers) = registers {
            let place = index::constant_place(at);
            let slot = place.and_then(|(offset, _)| registers.slots.get(&offset));
            let Some((_, variable)) = slot else {
                return Err(self.bad_shape("an access of registers", format!("index {at:?}")));
            };
            for (target, source) in variable.parts.iter().zip(&val.parts) {
                self.f.lines.statement(format_args!("{} = {}", target.code.text, source.code.text));
            }
            return Ok(());
        }
        let index_ty = CTy::carrier(at.dtype());
        match index::as_ramp(at) {
            Some((base, stride)) if index::constant(&stride) == Some(1) => {
                let base = self.code(&base)?;
                let base = if val.parts.len() == 1 { base } else { self.simple(index_ty, base) };
                let mut first = 0;
                for part in &val.parts {
                    let address = self.address(buffer, &offset(&base, first))?;
                    let helper = self.store_of(buffer, part.lanes);
                    let name = self.defs.helper(helper)?;
                    self.f.lines.statement(&Code::call(&name, &[&address, &part.code]).text);
                    first += part.lanes;
                }
                Ok(())
            }
            ramp => {
                let places = match ramp {
                    Some((base, stride)) => {
                        let step = index::constant(&stride);
                        let (base, stride) = (self.code(&base)?, self.code(&stride)?);
                        let (base, stride) = (self.simple(index_ty, base), self.simple(index_ty, stride));
                        strided(&base, &stride, step, at.lanes())
                    }
                    None => self.lane_codes(at)?,
                };
                if is_storage_float(buffer.dtype) && val.parts.iter().all(|part| part.lanes >= 4) {
                    return self.store_converted(buffer, &places, &val);
                }
                let val = self.declare_val(&val);
                let lanes = val.parts.iter().flat_map(|p| (0..p.lanes).map(move |lane| (p, lane)));
                for ((part, lane), place) in lanes.zip(&places) {
                    let element = if buffer.dtype == DType::Bool {
                        let name = self.defs.helper(Helper::Lane(val.part_ty(part)))?;
                        Code::call(&name, &[&part.code, &Code::primary(lane.to_string())])
                    } else {
                        Code::primary(format!("{}[{lane}]", part.code.text))
                    };
                    self.store_element(buffer, place, &element)?;
                }
                Ok(())
            }
        }
    }

    /// How a vector of so many lanes is stored: results go past the caches where a remark on the loop says so, which only a
    /// CPU's compiler is told.
    fn store_of(&mut self, buffer: &Buffer, lanes: u32) -> Helper {
        let bytes = CTy::memory(buffer.dtype).bytes() * lanes;
        let is_result = buffer.scope == MemScope::Global && buffer.dtype != DType::Bool;
        let is_cpu = matches!(self.dialect.kind(), DialectKind::Cpu(_));
        if self.f.streams && is_cpu && is_result && matches!(bytes, 16 | 32 | 64) {
            self.f.streamed = true;
            return Helper::Stream(buffer.dtype, lanes);
        }
        Helper::Store(buffer.dtype, lanes)
    }

    /// The end of a function that may have stored past the caches: its caller sees all that it stored.
    pub(super) fn drain(&mut self) -> Result<(), EmitError> {
        if std::mem::take(&mut self.f.streamed) {
            let name = self.defs.helper(Helper::Drain)?;
            self.f.lines.statement(format_args!("{name}()"));
        }
        Ok(())
    }

    /// Whether the value reads the buffer's memory at another index than `at`.
    pub(super) fn reads_elsewhere(&mut self, value: &Expr, buffer: &Buffer, at: &Expr) -> bool {
        if !value.reads_memory() || !self.deps.of(value).reads.contains(&buffer.data.id()) {
            return false;
        }
        let mut elsewhere = false;
        coulis_ir::visit::for_each_expr(value, &mut |e| {
            if let Node::Load(source, indices) = e.node()
                && source.data == buffer.data
            {
                elsewhere |= source.dtype != buffer.dtype || indices.as_slice() != [at.clone()];
            }
        });
        elsewhere
    }

    fn allocate(&mut self, buffer: &Buffer, body: &Stmt) -> Result<(), EmitError> {
        if let DialectKind::Gpu(gpu) = self.dialect.kind() {
            self.allocate_on_device(gpu, buffer)?;
            return self.stmt(body);
        }
        let data = buffer.data.id();
        let length = buffer.shape.iter().try_fold(1i64, |n, e| n.checked_mul(index::constant(e)?.max(0)));
        let element = CTy::memory(buffer.dtype);
        let bytes = length.and_then(|n| n.checked_mul(i64::from(element.bytes())));
        self.forget_memory(data);
        let fits = bytes.is_some_and(|bytes| bytes <= STACK_BYTES);
        if !fits || (buffer.scope == MemScope::Global && bytes.is_none_or(|bytes| bytes > 4096)) {
            return self.allocate_on_heap(buffer, body);
        }
        let name = self.namer.fresh(&buffer.name);
        let pointer = Pointer { name: name.as_str().into(), dtype: buffer.dtype };
        self.f.pointers.insert(data, pointer);
        if let Some(slots) = self.slots.of_allocation(body, data) {
            let registers = self.declare_registers(buffer, slots, None)?;
            self.f.registers.insert(data, registers);
            let result = self.stmt(body);
            self.f.registers.remove(&data);
            self.f.pointers.remove(&data);
            return result;
        }
        let array = self.dialect.local_array(element.name(), &name, length.unwrap_or(0).max(1) as u64);
        self.f.lines.statement(&array);
        self.f.arrays.push(data);
        self.stmt(body)
    }

    fn allocate_on_heap(&mut self, buffer: &Buffer, body: &Stmt) -> Result<(), EmitError> {
        let element = CTy::memory(buffer.dtype).name();
        let mut length = Code::primary("1");
        for extent in &buffer.shape {
            let wide = index::fold(&extent.clone().cast(DType::I64));
            let code = self.code(&wide)?;
            length = if length.text == "1" { code } else { Code::infix("*", Prec::Product, &length, &code) };
        }
        let (alloc, free) = (self.defs.helper(Helper::Alloc)?, self.defs.helper(Helper::Free)?);
        let fail = self.defs.helper(Helper::Fail)?;
        let name = self.namer.fresh(&buffer.name);
        let size = Code::primary(format!("(i64)sizeof({element})"));
        let call = Code::call(&alloc, &[&length, &size]);
        self.f.lines.statement(format_args!("{element} *const {name} = ({element} *){}", call.text));
        let pointer = Pointer { name: name.as_str().into(), dtype: buffer.dtype };
        self.f.pointers.insert(buffer.data.id(), pointer);
        self.f.lines.open(format_args!("if ({name})"));
        self.block(body)?;
        self.f.lines.statement(format_args!("{free}({name})"));
        self.f.lines.otherwise();
        let is_negative = Code::infix("<", Prec::Relation, &length, &Code::primary("0"));
        self.f.lines.statement(format_args!("{fail}(status, {} ? 3 : 1)", is_negative.text));
        self.f.lines.close();
        self.f.pointers.remove(&buffer.data.id());
        Ok(())
    }

    /// Moves local arrays, of which the loop accesses constant places only, to registers; the arrays moved.
    fn promote_for_loop(&mut self, body: &Stmt) -> Result<Vec<Buffer>, EmitError> {
        let mut promoted = Vec::new();
        let arrays = self.f.arrays.iter().filter(|data| !self.f.registers.contains_key(data));
        let arrays: Vec<VarId> = arrays.copied().collect();
        if arrays.is_empty() {
            return Ok(promoted);
        }
        for (data, buffer, slots) in slots_in(body, &arrays) {
            let registers = self.declare_registers(&buffer, slots, Some(()))?;
            self.f.registers.insert(data, registers);
            // The first values were loaded before the loop and are not those of its later turns.
            self.forget_memory(data);
            promoted.push(buffer);
        }
        Ok(promoted)
    }

    /// One variable a slot, holding the array's contents, or zero where there is no array.
    fn declare_registers(
        &mut self,
        buffer: &Buffer,
        slots: std::collections::BTreeMap<i64, Slot>,
        array: Option<()>,
    ) -> Result<Registers, EmitError> {
        let pointer = self.pointer(buffer)?;
        let mut registers = Registers { slots: Default::default() };
        for (first, slot) in slots {
            let ty = match (buffer.dtype, slot.lanes) {
                (DType::Bool, 1) => CTy::Bool,
                (DType::Bool, _) => CTy::mask(slot.mask_bytes),
                _ => CTy::carrier(buffer.dtype),
            };
            let hint = format!("{}_{first}", pointer.name);
            let mut parts = Parts::new();
            if slot.lanes == 1 {
                let start = match array {
                    Some(()) => self.element(buffer, &Code::primary(first.to_string()))?.text,
                    None => "0".to_owned(),
                };
                let name = self.namer.fresh(&hint);
                self.f.lines.statement(format_args!("{} {name} = {start}", ty.name()));
                parts.push(Part { lanes: 0, code: Code::primary(name) });
            } else {
                let loaded = match array {
                    Some(()) => {
                        let at = Expr::ramp(
                            Expr::int_of(i128::from(first), DType::I64),
                            Expr::int_of(1, DType::I64),
                            slot.lanes,
                        );
                        let val = self.value(&Expr::load(buffer.clone(), vec![at]))?;
                        Some(if buffer.dtype == DType::Bool {
                            self.mask_as(&val, slot.mask_bytes)?
                        } else {
                            val
                        })
                    }
                    None => None,
                };
                let widths = part_lanes(slot.lanes, ty.bytes(), self.options.vector_bytes);
                for (position, lanes) in widths.into_iter().enumerate() {
                    let start = match &loaded {
                        Some(val) => val.parts[position].code.text.clone(),
                        None => "{0}".to_owned(),
                    };
                    let name = self.namer.fresh(&hint);
                    let spelled = self.defs.ty(VTy::vector(ty, lanes));
                    self.f.lines.statement(format_args!("{spelled} {name} = {start}"));
                    parts.push(Part { lanes, code: Code::primary(name) });
                }
            }
            registers.slots.insert(first, (slot, Val { ty, parts, uniform: None }));
        }
        Ok(registers)
    }

    /// Stores registers that the loop changed to their array again.
    fn write_back(&mut self, buffer: &Buffer) -> Result<(), EmitError> {
        let Some(registers) = self.f.registers.remove(&buffer.data.id()) else { return Ok(()) };
        self.forget_memory(buffer.data.id());
        for (first, (slot, val)) in registers.slots {
            if !slot.stored {
                continue;
            }
            if slot.lanes == 1 {
                self.store_element(buffer, &Code::primary(first.to_string()), val.code())?;
                continue;
            }
            let val = if buffer.dtype == DType::Bool { self.mask_as(&val, 1)? } else { val };
            let mut at = first;
            for part in &val.parts {
                let address = self.address(buffer, &Code::primary(at.to_string()))?;
                let name = self.defs.helper(Helper::Store(buffer.dtype, part.lanes))?;
                self.f.lines.statement(&Code::call(&name, &[&address, &part.code]).text);
                at += i64::from(part.lanes);
            }
        }
        Ok(())
    }
}

/// Whether a loop stands in a statement.
fn has_loop(stmt: &Stmt) -> bool {
    let mut found = false;
    for_each_stmt(stmt, &mut |s| found |= matches!(s, Stmt::For { .. }));
    found
}

/// Branches of a statement.
fn n_branches(stmt: &Stmt) -> usize {
    let mut n = 0;
    for_each_stmt(stmt, &mut |s| n += usize::from(matches!(s, Stmt::If { .. })));
    n
}

/// The expressions that a block evaluates itself, those of nested blocks aside.
fn direct_exprs(stmt: &Stmt, found: &mut Vec<Expr>) {
    match stmt {
        Stmt::For { min, extent, .. } => {
            found.push(min.clone());
            found.push(index::end(min, extent));
        }
        Stmt::If { cond, .. } => found.push(cond.clone()),
        Stmt::Store { indices, value, .. } => {
            found.push(value.clone());
            for at in indices {
                match index::as_ramp(at) {
                    Some((base, stride)) => found.extend([base, stride]),
                    None => found.push(at.clone()),
                }
            }
        }
        Stmt::Let { value, body, .. } => {
            found.push(value.clone());
            direct_exprs(body, found);
        }
        Stmt::Seq(_) | Stmt::Allocate { .. } | Stmt::Annotate { .. } => {
            stmt_children(stmt).for_each(|child| direct_exprs(child, found));
        }
        Stmt::LaunchThread { .. }
        | Stmt::DeviceEntry
        | Stmt::ScopeIds { .. }
        | Stmt::AllocBuffer(_)
        | Stmt::View { .. }
        | Stmt::Tile(_)
        | Stmt::Sync(_) => {}
        Stmt::Atom(call) => found.extend(call.exprs().into_iter().cloned()),
    }
}
