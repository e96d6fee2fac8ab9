//! Whether the iterations of a loop touch disjoint memory, so that they may run side by side.
//!
//! For every piece of memory that the body writes, all accesses must be `coeff * lane + rest` with one
//! coefficient, and no two lanes may meet: the inner loops move an access either by whole multiples of all
//! lanes together, or by less than one lane's step; or, without inner loops, two accesses are further apart
//! than all lanes together. Anything that is not shown disjoint counts as dependent.

use coulis_ir::hash::FastMap;

use coulis_ir::expr::{Expr, Node, Var};
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::{for_each_expr, stmt_children, stmt_exprs};
use coulis_ir::{Buffer, Stmt};

use crate::affine::{difference, split, uses};

struct Access {
    buffer: Buffer,
    index: Expr,
    writes: bool,
    /// Extents of the loops inside the body around the access, constant ones only.
    loops: Vec<(Var, Option<i128>)>,
}

/// Whether no two of the `lanes` iterations of `lane` touch the same element of memory that the body writes.
pub fn lanes_are_independent(body: &Stmt, lane: &Var, lanes: i128, known: &Analyzer) -> bool {
    let mut found = Collector::default();
    found.stmt(body, &mut Vec::new());
    if found.opaque {
        return false;
    }
    let mut by_data: FastMap<Var, Vec<&Access>> = FastMap::default();
    for access in &found.accesses {
        by_data.entry(access.buffer.data.clone()).or_default().push(access);
    }
    by_data.values().filter(|all| all.iter().any(|a| a.writes)).all(|all| {
        let same_window = all.iter().all(|a| {
            a.buffer.dtype == all[0].buffer.dtype && a.buffer.elem_offset == all[0].buffer.elem_offset
        });
        let through_lets = all.iter().any(|a| found.lets.iter().any(|v| uses(&a.index, v)));
        same_window && !through_lets && disjoint(all, lane, lanes, known)
    })
}

#[derive(Default)]
struct Collector {
    accesses: Vec<Access>,
    lets: Vec<Var>,
    opaque: bool,
}

impl Collector {
    fn stmt(&mut self, stmt: &Stmt, loops: &mut Vec<(Var, Option<i128>)>) {
        for expr in stmt_exprs(stmt) {
            self.expr(expr, loops);
        }
        match stmt {
            Stmt::Store { buffer, indices, .. } => match indices.as_slice() {
                [index] => self.accesses.push(Access {
                    buffer: buffer.clone(),
                    index: index.clone(),
                    writes: true,
                    loops: loops.clone(),
                }),
                _ => self.opaque = true,
            },
            Stmt::Let { var, .. } => self.lets.push(var.clone()),
            Stmt::LaunchThread { .. }
            | Stmt::DeviceEntry
            | Stmt::ScopeIds { .. }
            | Stmt::AllocBuffer(_)
            | Stmt::View { .. }
            | Stmt::Tile(_)
            | Stmt::Atom(_)
            | Stmt::Sync(_) => self.opaque = true,
            Stmt::Seq(_)
            | Stmt::For { .. }
            | Stmt::If { .. }
            | Stmt::Allocate { .. }
            | Stmt::Annotate { .. } => {}
        }
        if let Stmt::For { var, extent, .. } = stmt {
            loops.push((var.clone(), extent.as_int()));
        }
        for child in stmt_children(stmt) {
            self.stmt(child, loops);
        }
        if let Stmt::For { .. } = stmt {
            loops.pop();
        }
    }

    fn expr(&mut self, expr: &Expr, loops: &[(Var, Option<i128>)]) {
        for_each_expr(expr, &mut |e| match e.node() {
            Node::Load(buffer, indices) => match indices.as_slice() {
                [index] => self.accesses.push(Access {
                    buffer: buffer.clone(),
                    index: index.clone(),
                    writes: false,
                    loops: loops.to_vec(),
                }),
                _ => self.opaque = true,
            },
            Node::Let(var, ..) => self.lets.push(var.clone()),
            Node::Ramp(..) | Node::Broadcast(_) => self.opaque = true,
            _ => {}
        });
    }
}

fn disjoint(all: &[&Access], lane: &Var, lanes: i128, known: &Analyzer) -> bool {
    let Some(first) = split(&all[0].index, lane) else { return false };
    if first.coeff.is_int(0) {
        return false;
    }
    let in_loops = all.iter().any(|a| a.loops.iter().any(|(v, _)| uses(&a.index, v)));
    if !in_loops && all.iter().all(|a| a.index == all[0].index) {
        // One element a lane; a symbolic step is a stride of an output, which is not 0.
        return true;
    }
    let Some(step) = first.coeff.as_int().map(i128::abs) else { return false };
    let period = step * lanes;
    let mut base: Option<Expr> = None;
    let mut offsets = Vec::new();
    let mut spread = 0i128;
    for access in all {
        let Some(parts) = split(&access.index, lane) else { return false };
        if parts.coeff != first.coeff {
            return false;
        }
        let mut rest = parts.rest;
        for (var, extent) in &access.loops {
            let Some(by_loop) = split(&rest, var) else { return false };
            let Some(coeff) = by_loop.coeff.as_int() else { return false };
            rest = by_loop.rest;
            if coeff % period != 0 {
                let Some(extent) = extent else { return false };
                spread += coeff.abs() * (extent - 1).max(0);
            }
        }
        let base = base.get_or_insert_with(|| rest.clone());
        let Some(offset) = known.simplify(&difference(rest, base.clone())).as_int() else { return false };
        offsets.push(offset);
    }
    // Offsets of two accesses modulo the period, centred around 0.
    let centred = |d: i128| {
        let r = d.rem_euclid(period);
        r.min(period - r)
    };
    offsets.iter().all(|a| {
        offsets.iter().all(|b| {
            let apart = centred(a - b);
            // Without loops offsets are all that there is between them.
            if !in_loops && (a - b).abs() >= period {
                return true;
            }
            spread + apart < step || (spread == 0 && apart % step != 0)
        })
    })
}

/// Whether an expression that reads `memory` has the same value at all its uses in `bodies`: no store to what it
/// reads comes before a use.
pub fn outlives_stores(memory: &[Var], bodies: &[&Stmt], uses_it: &dyn Fn(&Stmt) -> bool) -> bool {
    struct Walk<'a> {
        memory: &'a [Var],
        uses_it: &'a dyn Fn(&Stmt) -> bool,
        changed: bool,
        sound: bool,
    }
    impl Walk<'_> {
        fn stmt(&mut self, stmt: &Stmt) {
            self.sound &= !(self.changed && (self.uses_it)(stmt));
            if let Stmt::Store { buffer, .. } = stmt {
                self.changed |= self.memory.contains(&buffer.data);
            }
            // A store in a loop comes before the uses of the next iteration.
            let times = if matches!(stmt, Stmt::For { .. }) { 2 } else { 1 };
            for _ in 0..times {
                stmt_children(stmt).for_each(|s| self.stmt(s));
            }
        }
    }
    if memory.is_empty() {
        return true;
    }
    let mut walk = Walk { memory, uses_it, changed: false, sound: true };
    bodies.iter().for_each(|s| walk.stmt(s));
    walk.sound
}
