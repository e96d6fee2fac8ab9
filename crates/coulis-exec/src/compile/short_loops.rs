//! Loops that need not be one: short ones whose iterations touch elements of their own become statements on vectors, other
//! short ones are written out, and a loop that adds the same number again and again becomes one addition.
//!
//! The ends of vectors whose length is no multiple of a register's arrive as such loops. As vectors they stay in registers,
//! and the loop around them is an innermost one.

use std::collections::{HashMap, HashSet};

use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::{for_each_expr, map_children, rewrite_exprs, substitute_expr, uses_any};
use coulis_ir::{BinaryOp, Buffer, DType, Expr, MemScope, Node, Stmt, Var, VarId};

use super::Compiler;
use super::access::{Access, shape_of};

/// Most iterations that become lanes.
const MOST_LANES: i64 = 16;
/// Most iterations that are written out, and most statements that each of them may have.
const MOST_COPIES: i64 = 4;
const MOST_STATEMENTS: usize = 8;

/// One step of an iteration: a store, or a name for a value, which is kept in an element of its own.
enum Step {
    Store { buffer: Buffer, index: Expr, value: Expr },
    Name { var: Var, value: Expr },
}

impl Step {
    fn value(&self) -> &Expr {
        match self {
            Step::Store { value, .. } | Step::Name { value, .. } => value,
        }
    }
}

/// What tells a load from others.
type Place = (VarId, Expr);

impl Compiler {
    /// A statement that does what the loop does, if there is a better one.
    pub(super) fn instead_of_loop(&self, var: &Var, min: &Expr, extent: &Expr, body: &Stmt) -> Option<Stmt> {
        let n = extent.as_int().and_then(|n| i64::try_from(n).ok()).filter(|n| *n > 0)?;
        if var.dtype() != DType::I64 {
            return None;
        }
        if let Some(sums) = repeated_sums(var, n, body) {
            return Some(sums);
        }
        if n > MOST_LANES {
            return None;
        }
        let lanes = if n > 1 { self.on_vectors(var, min, n, body) } else { None };
        lanes.or_else(|| (n <= MOST_COPIES).then(|| written_out(var, min, n, body)).flatten())
    }

    fn on_vectors(&self, var: &Var, min: &Expr, n: i64, body: &Stmt) -> Option<Stmt> {
        let mut steps = Vec::new();
        collect(body, &mut HashMap::new(), &mut steps)?;
        let mut stored: HashMap<VarId, Expr> = HashMap::new();
        for step in &steps {
            if let Step::Store { buffer, index, .. } = step {
                let known = stored.insert(buffer.data.id(), index.clone());
                if index.reads_memory() || known.is_some_and(|other| other != *index) {
                    return None;
                }
            }
        }
        let mut sure = HashSet::new();
        for step in &steps {
            let mut is_alike = true;
            for_each_expr(step.value(), &mut |e| {
                is_alike &= e.lanes() == 1 && !matches!(e.node(), Node::Let(..));
                if let Node::Load(buffer, indices) = e.node() {
                    is_alike &= stored.get(&buffer.data.id()).is_none_or(|own| indices[..] == [own.clone()]);
                }
            });
            if !is_alike {
                return None;
            }
            note_sure_loads(step.value(), &mut sure);
        }
        let lanes = n as u32;
        let ramp = |from: Expr| Expr::ramp(from, Expr::int_of(1, DType::I64), lanes);
        let mut map = HashMap::from([(var.clone(), ramp(min.clone()))]);
        let mut names = Vec::new();
        let mut done = Vec::new();
        for step in &steps {
            let value = self.without_choices(step.value(), (var, min, n), &sure)?;
            let value = with_plain_places(&substitute_expr(&value, &map)).broadcast_to(lanes);
            if has_scattered_load(&value) {
                return None;
            }
            match step {
                Step::Store { buffer, index, .. } => {
                    let index = plain_place(&substitute_expr(index, &map));
                    if !matches!(shape_of(&index), Access::Contiguous(_)) {
                        return None;
                    }
                    done.push(Stmt::store(buffer, vec![index], value));
                }
                Step::Name { var, .. } => {
                    let extent = Expr::int_of(n.into(), DType::I64);
                    let own = Buffer::new(var.name(), var.dtype(), vec![extent], MemScope::Local);
                    let all = vec![ramp(Expr::int_of(0, DType::I64))];
                    done.push(Stmt::store(&own, all.clone(), value));
                    map.insert(var.clone(), Expr::load(own.clone(), all));
                    names.push(own);
                }
            }
        }
        Some(names.into_iter().fold(Stmt::seq(done), |body, own| Stmt::allocate(own, body)))
    }

    /// The expression with both sides of each choice computed; `None` where one side must not be.
    fn without_choices(&self, expr: &Expr, loop_: (&Var, &Expr, i64), sure: &HashSet<Place>) -> Option<Expr> {
        let mut is_safe = true;
        let sides: &[&Expr] = match expr.node() {
            Node::IfThenElse(_, a, b) => &[a, b],
            Node::Binary(BinaryOp::And | BinaryOp::Or, _, b) => &[b],
            Node::Int(_)
            | Node::Float(_)
            | Node::Var(_)
            | Node::Not(_)
            | Node::Cast(_)
            | Node::Select(..)
            | Node::Binary(..)
            | Node::Call(..)
            | Node::Load(..)
            | Node::Ramp(..)
            | Node::Broadcast(_)
            | Node::Let(..) => &[],
        };
        for side in sides {
            for_each_expr(side, &mut |e| match e.node() {
                Node::Load(buffer, indices) => {
                    let place = (buffer.data.id(), indices[0].clone());
                    is_safe &= sure.contains(&place) || self.is_inside(buffer, &indices[0], loop_);
                }
                Node::Binary(..) => is_safe &= e.divisor().is_none(),
                Node::Int(_)
                | Node::Float(_)
                | Node::Var(_)
                | Node::Not(_)
                | Node::Cast(_)
                | Node::Select(..)
                | Node::IfThenElse(..)
                | Node::Call(..)
                | Node::Ramp(..)
                | Node::Broadcast(_)
                | Node::Let(..) => {}
            });
        }
        if !is_safe {
            return None;
        }
        let mut all = true;
        let new = map_children(expr, &mut |child| {
            let new = self.without_choices(child, loop_, sure);
            all &= new.is_some();
            new.unwrap_or_else(|| child.clone())
        });
        let new = match new.node() {
            Node::IfThenElse(c, a, b) => Expr::select(c.clone(), a.clone(), b.clone()),
            _ => new,
        };
        all.then_some(new)
    }

    /// Whether the element is one of a local buffer in each iteration.
    fn is_inside(&self, buffer: &Buffer, index: &Expr, (var, min, n): (&Var, &Expr, i64)) -> bool {
        let Some(count) = self.bufs.get(&buffer.data.id()).and_then(|buf| buf.count) else { return false };
        let mut analyzer = Analyzer::new();
        analyzer.bind(var, min, &Expr::int_of(n.into(), DType::I64));
        let (lo, hi) = analyzer.const_bounds(index);
        lo.is_some_and(|lo| lo >= 0) && hi.is_some_and(|hi| hi < count.into())
    }
}

/// The index with its base simplified.
fn plain_place(index: &Expr) -> Expr {
    let one = Expr::int_of(1, DType::I64);
    let (at, stride) = match shape_of(index) {
        Access::Contiguous(at) => (at, one),
        Access::Strided(at, stride) => (at, stride),
        Access::Repeated(_) | Access::Indexed => return index.clone(),
    };
    let analyzer = Analyzer::new();
    Expr::ramp(analyzer.simplify(&at), analyzer.simplify(&stride), index.lanes())
}

fn with_plain_places(expr: &Expr) -> Expr {
    match expr.node() {
        Node::Load(buffer, indices) if indices[0].lanes() > 1 => {
            Expr::load(buffer.clone(), vec![plain_place(&indices[0])])
        }
        _ => map_children(expr, &mut with_plain_places),
    }
}

fn has_scattered_load(expr: &Expr) -> bool {
    let mut found = false;
    for_each_expr(expr, &mut |e| {
        if let Node::Load(_, indices) = e.node() {
            found |= indices[0].lanes() > 1 && matches!(shape_of(&indices[0]), Access::Indexed);
        }
    });
    found
}

/// The steps of an iteration, names of values that read no memory put in their places; `None` for other statements.
fn collect(stmt: &Stmt, names: &mut HashMap<Var, Expr>, steps: &mut Vec<Step>) -> Option<()> {
    match stmt {
        Stmt::Seq(stmts) => stmts.iter().try_for_each(|s| collect(s, names, steps)),
        Stmt::Store { buffer, indices, value } => {
            let [index] = &indices[..] else { return None };
            let (index, value) = (substitute_expr(index, names), substitute_expr(value, names));
            steps.push(Step::Store { buffer: buffer.clone(), index, value });
            Some(())
        }
        Stmt::Let { var, value, body } => {
            let value = substitute_expr(value, names);
            if value.reads_memory() {
                names.remove(var);
                steps.push(Step::Name { var: var.clone(), value });
            } else {
                names.insert(var.clone(), value);
            }
            collect(body, names, steps)
        }
        _ => None,
    }
}

/// Notes the loads that each evaluation of the expression makes.
fn note_sure_loads(expr: &Expr, sure: &mut HashSet<Place>) {
    if let Node::Load(buffer, indices) = expr.node() {
        sure.insert((buffer.data.id(), indices[0].clone()));
    }
    match expr.node() {
        Node::IfThenElse(first, ..) | Node::Binary(BinaryOp::And | BinaryOp::Or, first, _) => {
            note_sure_loads(first, sure);
        }
        Node::Int(_)
        | Node::Float(_)
        | Node::Var(_)
        | Node::Not(_)
        | Node::Cast(_)
        | Node::Select(..)
        | Node::Binary(..)
        | Node::Call(..)
        | Node::Load(..)
        | Node::Ramp(..)
        | Node::Broadcast(_)
        | Node::Let(..) => expr.children().for_each(|child| note_sure_loads(child, sure)),
    }
}

/// The iterations one after another.
fn written_out(var: &Var, min: &Expr, n: i64, body: &Stmt) -> Option<Stmt> {
    let mut steps = Vec::new();
    collect(body, &mut HashMap::new(), &mut steps)?;
    let is_store = |step: &Step| matches!(step, Step::Store { .. });
    if steps.len() > MOST_STATEMENTS || !steps.iter().all(is_store) {
        return None;
    }
    let analyzer = Analyzer::new();
    let mut done = Vec::new();
    for i in 0..n {
        let at = analyzer.simplify(&(min.clone() + Expr::int_of(i.into(), DType::I64)));
        let map = HashMap::from([(var.clone(), at)]);
        for step in &steps {
            let Step::Store { buffer, index, value } = step else { continue };
            let (index, value) = (substitute_expr(index, &map), substitute_expr(value, &map));
            let mut store = Stmt::store(buffer, vec![index], value);
            rewrite_exprs(&mut store, &mut |e| Some(with_plain_indices(e, &analyzer)));
            done.push(store);
        }
    }
    Some(Stmt::seq(done))
}

/// The expression with its integer parts simplified.
fn with_plain_indices(expr: &Expr, analyzer: &Analyzer) -> Expr {
    if expr.dtype() == DType::I64 && !expr.reads_memory() {
        return analyzer.simplify(expr);
    }
    map_children(expr, &mut |child| with_plain_indices(child, analyzer))
}

/// A loop of nothing but integer additions of what does not change, as one addition each: sums wrap, so that the order is
/// the same to them.
fn repeated_sums(var: &Var, n: i64, body: &Stmt) -> Option<Stmt> {
    let mut steps = Vec::new();
    collect(body, &mut HashMap::new(), &mut steps)?;
    let mut done = Vec::new();
    for step in &steps {
        let Step::Store { buffer, index, value } = step else { return None };
        let Node::Binary(BinaryOp::Add, a, b) = value.node() else { return None };
        let is_own = |e: &Expr| {
            matches!(e.node(), Node::Load(of, indices)
            if of.data.id() == buffer.data.id() && indices[..] == [index.clone()])
        };
        let (own, summand) = if is_own(a) { (a, b) } else { (b, a) };
        let changes = |e: &Expr| e.reads_memory() || uses_any(e, std::slice::from_ref(var));
        if !is_own(own) || !value.dtype().is_int() || changes(summand) || changes(index) {
            return None;
        }
        let times = value.dtype().wrap_int(n.into());
        let total = summand.clone() * Expr::int_of(times, value.dtype()).broadcast_to(value.lanes());
        done.push(Stmt::store(buffer, vec![index.clone()], own.clone() + total));
    }
    Some(Stmt::seq(done))
}
