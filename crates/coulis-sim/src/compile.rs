//! From a checked kernel and the values of its sizes to bytecode.
//!
//! Sizes are constants here, since a kernel is compiled for each run. Arithmetic of values that do not change in a loop
//! is done before it, by a walk of the simulator's own.

mod atom;
mod expr;
mod host;
mod memory;

use std::collections::{HashMap, HashSet};

use coulis_ir::args::{Bindings, eval_index};
use coulis_ir::visit::{for_each_expr, for_each_stmt, stmt_exprs};
use coulis_ir::{Atom, BinaryOp, DType, Expr, MemScope, Node, Stmt, Var, VarId};

use self::expr::Arms;
use crate::code::{Code, Instr, LocalArray, Operand, RegionInfo, RegionKind, Span, is_harmless};
use crate::error::SimError;

pub(crate) use host::plan;

/// What a data pointer leads to.
#[derive(Clone, Copy)]
enum Place {
    Region(u32),
    Local(u32),
}

struct Compiler<'k, 'p, const W: usize> {
    code: Code<W>,
    constant_index: HashMap<u64, Operand>,
    next: u32,
    vars: HashMap<VarId, Operand>,
    places: HashMap<VarId, (Place, DType)>,
    /// Values of expressions, innermost scope last.
    memo: Vec<HashMap<Expr, Vec<Operand>>>,
    /// Conditions, one a vector lane, under which the choices around take what is evaluated; none where there is no choice.
    taken: Vec<Operand>,
    bindings: &'p Bindings,
    regions: &'p mut Vec<RegionInfo>,
    stmts: &'p mut Vec<&'k Stmt>,
    /// Data pointers and names whose values come from the active mask.
    from_active: HashSet<VarId>,
}

impl<'k, const W: usize> Compiler<'k, '_, W> {
    fn emit(&mut self, instr: Instr<W>) {
        self.code.instrs.push(instr);
    }

    fn here(&self) -> u32 {
        self.code.instrs.len() as u32
    }

    fn new_registers(&mut self, n: u32) -> u32 {
        let first = self.next;
        self.next += n;
        self.code.n_registers = self.code.n_registers.max(self.next);
        first
    }

    fn constant(&mut self, bits: u64) -> Operand {
        let constants = &mut self.code.constants;
        *self.constant_index.entry(bits).or_insert_with(|| {
            constants.push([bits; W]);
            Operand::constant(constants.len() as u32 - 1)
        })
    }

    fn span(&mut self, operands: &[Operand]) -> Span {
        let start = self.code.operands.len() as u32;
        self.code.operands.extend_from_slice(operands);
        Span { start, len: operands.len() as u32 }
    }

    /// Begins a statement that violations name.
    fn begin(&mut self, stmt: &'k Stmt) -> u32 {
        let id = self.stmts.len() as u32;
        self.stmts.push(stmt);
        self.emit(Instr::Stmt(id));
        id
    }

    fn body(&mut self, stmt: &'k Stmt) -> Result<(), SimError> {
        match stmt {
            Stmt::Seq(stmts) => stmts.iter().try_for_each(|s| self.body(s)),
            Stmt::Annotate { body, .. } => self.body(body),
            Stmt::For { var, min, extent, body, .. } => self.loop_(stmt, var, min, extent, body),
            Stmt::If { cond, then, otherwise } => {
                let saved = self.enter();
                self.begin(stmt);
                let cond = self.scalar(cond)?;
                self.leave(saved);
                let otherwise = |c: &mut Self| otherwise.as_ref().map_or(Ok(()), |s| c.body(s));
                self.branch(cond, Arms::Shared, |c| c.body(then), otherwise)
            }
            Stmt::Store { buffer, indices, value } => self.simple(stmt, |c| {
                let mut from = c.expr(value)?;
                let at = c.index(buffer, indices)?;
                if from.len() == 1 {
                    from = vec![from[0]; at.len()];
                }
                c.store(buffer, &at, &from)
            }),
            Stmt::Let { var, value, body } => {
                let d = self.new_registers(1);
                self.simple(stmt, |c| {
                    let a = c.scalar(value)?;
                    c.emit(Instr::Copy { d, a });
                    Ok(())
                })?;
                self.vars.insert(var.id(), Operand::register(d));
                self.body(body)?;
                self.vars.remove(&var.id());
                self.next = d;
                Ok(())
            }
            Stmt::Allocate { buffer, body } => {
                match buffer.scope {
                    MemScope::Local => {
                        let len = self.known_size(buffer)?;
                        let array = self.code.arrays.len() as u32;
                        let first = self.code.n_slots;
                        let total = i128::from(first) + len as i128;
                        if total >= 1 << 24 {
                            return Err(SimError::Size {
                                buffer: buffer.name.clone(),
                                elements: len as i128,
                            });
                        }
                        self.code.arrays.push(LocalArray {
                            name: buffer.name.clone(),
                            first,
                            len: len as u32,
                        });
                        self.code.n_slots = total as u32;
                        self.places.insert(buffer.data.id(), (Place::Local(array), buffer.dtype));
                        self.emit(Instr::Forget { array });
                    }
                    MemScope::Shared | MemScope::SharedDyn => {
                        let at_launch = buffer.scope == MemScope::SharedDyn;
                        self.add_region(buffer, RegionKind::Shared { at_launch })?;
                    }
                    MemScope::Global => {
                        self.add_region(buffer, RegionKind::Temporary { zeroed: false, left_zero: false })?;
                    }
                    MemScope::Warp => {
                        let (buffer, scope) = (buffer.name.clone(), buffer.scope.name());
                        return Err(SimError::Scope { buffer, scope });
                    }
                }
                self.body(body)
            }
            Stmt::Atom(call) => self.simple(stmt, |c| c.atom(call)),
            Stmt::Sync(kind) => self.simple(stmt, |c| {
                c.emit(Instr::Sync(*kind));
                Ok(())
            }),
            Stmt::LaunchThread { .. }
            | Stmt::DeviceEntry
            | Stmt::ScopeIds { .. }
            | Stmt::AllocBuffer(_)
            | Stmt::View { .. }
            | Stmt::Tile(_) => Err(SimError::UnsupportedStmt { stmt: stmt.kind_name() }),
        }
    }

    /// A statement without others inside; its registers are free again after it.
    fn simple(
        &mut self,
        stmt: &'k Stmt,
        compile: impl FnOnce(&mut Self) -> Result<(), SimError>,
    ) -> Result<(), SimError> {
        let saved = self.enter();
        self.begin(stmt);
        compile(self)?;
        self.leave(saved);
        Ok(())
    }

    fn enter(&mut self) -> u32 {
        self.memo.push(HashMap::new());
        self.next
    }

    fn leave(&mut self, saved: u32) {
        self.memo.pop();
        self.next = saved;
    }

    /// Two branches, each under its part of the active lanes.
    fn branch(
        &mut self,
        cond: Operand,
        arms: Arms,
        then: impl FnOnce(&mut Self) -> Result<(), SimError>,
        otherwise: impl FnOnce(&mut Self) -> Result<(), SimError>,
    ) -> Result<(), SimError> {
        let at = self.here() as usize;
        let reports = arms == Arms::Shared;
        self.emit(Instr::If { cond, reports, otherwise: 0, end: 0 });
        then(self)?;
        let first_end = self.here() as usize;
        self.emit(Instr::EndBranch { end: 0 });
        let start = self.here();
        otherwise(self)?;
        let second_end = self.here();
        if second_end > start {
            self.emit(Instr::EndBranch { end: 0 });
        }
        let after = self.here();
        self.code.instrs[at] = Instr::If { cond, reports, otherwise: start, end: after };
        self.code.instrs[first_end] = Instr::EndBranch { end: after };
        if second_end > start {
            self.code.instrs[second_end as usize] = Instr::EndBranch { end: after };
        }
        Ok(())
    }

    fn loop_(
        &mut self,
        stmt: &'k Stmt,
        var: &Var,
        min: &Expr,
        extent: &Expr,
        body: &'k Stmt,
    ) -> Result<(), SimError> {
        let saved = self.enter();
        let id = self.begin(stmt);
        // What is read from memory for the bounds may be another value in the body.
        self.memo.push(HashMap::new());
        let first = self.scalar(min)?;
        let extent = self.scalar(extent)?;
        self.memo.pop();
        let last = self.binary(BinaryOp::Add, DType::I64, first, extent)?;
        let i = self.new_registers(1);
        self.hoist(body)?;
        self.emit(Instr::EnterLoop { i, min: first });
        let top = self.here();
        self.emit(Instr::TestLoop { i, end: last, exit: 0, stmt: id });
        self.vars.insert(var.id(), Operand::register(i));
        self.body(body)?;
        self.vars.remove(&var.id());
        self.emit(Instr::NextLoop { i, top });
        let exit = self.here();
        self.code.instrs[top as usize] = Instr::TestLoop { i, end: last, exit, stmt: id };
        self.leave(saved);
        Ok(())
    }

    /// Computes now what the body would compute again and again: arithmetic of names that are bound here.
    fn hoist(&mut self, body: &Stmt) -> Result<(), SimError> {
        let mut found = Vec::new();
        let mut seen = HashMap::new();
        for_each_stmt(body, &mut |stmt| {
            for expr in stmt_exprs(stmt) {
                self.invariant_parts(expr, &mut seen, &mut found);
            }
        });
        for expr in found {
            self.expr(&expr)?;
        }
        Ok(())
    }

    /// Adds the largest parts of an expression that are known here; the answer is whether all of it is.
    fn invariant_parts(&self, expr: &Expr, seen: &mut HashMap<Expr, bool>, found: &mut Vec<Expr>) -> bool {
        if let Some(known) = seen.get(expr) {
            return *known;
        }
        let known = match expr.node() {
            Node::Var(var) => self.vars.contains_key(&var.id()) || self.bindings.contains_key(&var.id()),
            _ => {
                let children: Vec<&Expr> = expr.children().collect();
                let parts: Vec<bool> =
                    children.iter().map(|c| self.invariant_parts(c, seen, found)).collect();
                let known = is_harmless(expr) && parts.iter().all(|p| *p);
                if !known {
                    let with_work = |e: &&&Expr| !e.is_leaf();
                    let kept = children.iter().zip(&parts).filter(|(_, p)| **p).map(|(c, _)| c);
                    found.extend(kept.filter(with_work).map(|c| (*c).clone()));
                }
                known
            }
        };
        seen.insert(expr.clone(), known);
        known
    }

    fn known_size(&self, buffer: &coulis_ir::Buffer) -> Result<usize, SimError> {
        let mut total = 1i128;
        for extent in &buffer.shape {
            let n = eval_index(extent, self.bindings).map_err(|reason| SimError::Unknown {
                what: "the size",
                name: buffer.name.clone(),
                reason,
            })?;
            total = total.saturating_mul(i128::from(n));
        }
        let fits = usize::try_from(total).ok().filter(|n| *n <= 1 << 40);
        fits.ok_or_else(|| SimError::Size { buffer: buffer.name.clone(), elements: total })
    }

    fn add_region(&mut self, buffer: &coulis_ir::Buffer, kind: RegionKind) -> Result<(), SimError> {
        let len = self.known_size(buffer)?;
        let (name, dtype) = (buffer.name.clone(), buffer.dtype);
        self.places.insert(buffer.data.id(), (Place::Region(self.regions.len() as u32), dtype));
        self.regions.push(RegionInfo { name, dtype, kind, len, before: 0, copies: 1, is_written: true });
        Ok(())
    }
}

/// The data pointers and names of a launch whose values come from the active mask.
fn from_active_mask(body: &Stmt) -> HashSet<VarId> {
    let mut tainted = HashSet::new();
    loop {
        let before = tainted.len();
        for_each_stmt(body, &mut |stmt| match stmt {
            Stmt::Atom(call) if call.atom == Atom::ActiveMask => {
                tainted.extend(call.dst.iter().map(|dst| dst.buffer.data.id()));
            }
            Stmt::Store { buffer, value, .. } if depends_on(value, &tainted) => {
                tainted.insert(buffer.data.id());
            }
            Stmt::Let { var, value, .. } if depends_on(value, &tainted) => {
                tainted.insert(var.id());
            }
            _ => {}
        });
        if tainted.len() == before {
            return tainted;
        }
    }
}

/// Whether an expression reads one of these names or memories.
fn depends_on(expr: &Expr, tainted: &HashSet<VarId>) -> bool {
    let mut found = false;
    for_each_expr(expr, &mut |e| match e.node() {
        Node::Var(var) => found |= tainted.contains(&var.id()),
        Node::Load(buffer, _) => found |= tainted.contains(&buffer.data.id()),
        _ => {}
    });
    found
}
