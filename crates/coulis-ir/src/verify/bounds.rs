//! V12: no access that is carried out is outside its buffer, as far as constants tell.
//!
//! Two things are found: an index whose every value is outside, wherever it stands, unless the conditions
//! or loops around are known to exclude each other, or conditions weigh the index against elements of memory, as in the sum of a
//! row whose length an array holds; and an index that reaches outside in some iteration of loops that
//! certainly run, under no condition. The second looks at sums of constant multiples of loop variables, whose
//! ends are reached exactly.

use crate::hash::{FastMap, Seen};

use std::rc::Rc;

use smallvec::{SmallVec, smallvec};

use super::suspects::{Suspects, suspects};
use super::{Check, Group, Property, Report};
use crate::atom::Atom;
use crate::buffer::Buffer;
use crate::eval::{Env, Value, eval_expr};
use crate::expr::{BinaryOp, Expr, Node, Var, VarId};
use crate::form::Form;
use crate::kernel::Kernel;
use crate::print::print_expr;
use crate::simplify::{Analyzer, without_likely};
use crate::stmt::Stmt;
use crate::visit::{for_each_expr, substitute_expr};

pub(super) const GROUP: Group = Group {
    properties: &[Property::new(
        "V12",
        "no access is certain to be outside its buffer, where the extents are constants",
    )],
    checks: &[Check::Values(check_bounds)],
};

/// Checks loads and stores; regions of tile calls are not looked at.
fn check_bounds<'k>(kernel: &'k Kernel, report: &mut Report<'k>) {
    let place = Place {
        analyzer: Rc::default(),
        ranges: Rc::default(),
        blocks: Rc::default(),
        certain: true,
        conditions: Rc::default(),
        names: Rc::default(),
    };
    let strided = kernel.param_buffers().filter(|b| !b.strides.is_empty());
    let sizes = Sizes { form: kernel.form, spans: strided.map(|b| (b.data.id(), span(b))).collect() };
    let suspects = suspects(&kernel.body, &sizes);
    // The extents of scope ids are not complete yet.
    let cluster_blocks = (kernel.form != Form::Tiled).then_some(1);
    Walk { sizes, suspects, cluster_blocks, report }.stmt(&kernel.body, &place);
}

/// Most values of loops that are tried to tell whether conditions exclude each other.
const MOST_POINTS: i128 = 4096;

/// What is known at a statement.
#[derive(Clone)]
struct Place {
    analyzer: Rc<Analyzer>,
    /// First and last value of loop variables of constant range.
    ranges: Rc<FastMap<VarId, (i128, i128)>>,
    /// Indices of blocks, and whether they are of a block in its cluster: these two kinds follow from one another.
    blocks: Rc<FastMap<VarId, bool>>,
    /// Whether control comes here for every value of the loops around.
    certain: bool,
    /// What holds where control comes here, outermost first: conditions, and that loops around have iterations where
    /// their number is no constant.
    conditions: Rc<Vec<Expr>>,
    /// Values of the names around, which may use those farther out.
    names: Rc<FastMap<Var, Expr>>,
}

impl Place {
    /// Under a condition of which it is not known whether it holds.
    fn under(&self, condition: Expr) -> Place {
        let mut inner = Place { certain: false, ..self.clone() };
        Rc::make_mut(&mut inner.conditions).push(condition);
        inner
    }

    /// Whether conditions around, or the ranges of loops that all have iterations, exclude each other, so that control
    /// never comes here.
    fn is_never_reached(&self) -> bool {
        let mut known = (*self.analyzer).clone();
        if self.conditions.iter().any(|condition| never_holds(condition, &mut known))
            || known.contradicts_itself()
        {
            return true;
        }
        // What memory holds may have changed since it got a name.
        let whole = self.conditions.iter().map(|condition| self.unnamed(condition));
        let whole: Vec<Expr> = whole.filter(|condition| !condition.reads_memory()).collect();
        // What is known farther in may exclude what is said farther out: that a loop has an iteration, say.
        whole.iter().any(|condition| known.can_refute(condition)) || self.is_met_nowhere(&whole)
    }

    /// Inside a name of the value.
    fn naming(&self, var: &Var, value: &Expr) -> Place {
        let mut inner = self.clone();
        Rc::make_mut(&mut inner.names).insert(var.clone(), value.clone());
        Rc::make_mut(&mut inner.analyzer).bind_value(var, value);
        inner
    }

    /// The expression in terms of what is no name.
    fn unnamed(&self, expr: &Expr) -> Expr {
        let mut found = expr.clone();
        loop {
            let next = substitute_expr(&found, &self.names);
            if next == found {
                return found;
            }
            found = next;
        }
    }

    /// Whether a condition around says of a variable of the index how it compares with elements of memory.
    fn is_weighed_against_data(&self, index: &Expr) -> bool {
        let mut used = Vec::new();
        for_each_expr(&self.unnamed(index), &mut |e| used.extend(e.as_var().cloned()));
        self.conditions.iter().any(|condition| {
            let whole = self.unnamed(condition);
            whole.reads_memory() && names_any_outside_loads(&whole, &used)
        })
    }

    /// Whether no values of the loops around meet those of the conditions that are on them alone, where there are few values
    /// to try.
    fn is_met_nowhere(&self, whole: &[Expr]) -> bool {
        let mut vars: Vec<(Var, (i128, i128))> = Vec::new();
        let mut conditions = Vec::new();
        for condition in whole {
            let (mut used, mut is_of_loops) = (Vec::new(), true);
            for_each_expr(condition, &mut |e| {
                let Some(var) = e.as_var() else { return };
                match self.ranges.get(&var.id()) {
                    Some(range) => used.push((var.clone(), *range)),
                    None => is_of_loops = false,
                }
            });
            if is_of_loops {
                conditions.push(condition);
                used.into_iter().for_each(|of| {
                    if !vars.contains(&of) {
                        vars.push(of)
                    }
                });
            }
        }
        let count = |(first, last): (i128, i128)| last - first + 1;
        let n_points = vars.iter().try_fold(1i128, |n, (_, range)| n.checked_mul(count(*range)));
        let Some(n_points) = n_points.filter(|n| !conditions.is_empty() && *n <= MOST_POINTS) else {
            return false;
        };
        (0..n_points).all(|mut point| {
            let mut env = Env::new();
            for (var, range) in &vars {
                env.set(var, Value::Int(range.0 + point % count(*range)));
                point /= count(*range);
            }
            conditions.iter().any(|condition| eval_expr(condition, &mut env) == Ok(Value::Int(0)))
        })
    }

    /// Inside a loop; `None` where it never runs.
    fn inside(&self, var: &Var, min: &Expr, extent: &Expr) -> Option<Place> {
        let (min, extent) = (self.analyzer.simplify(min), self.analyzer.simplify(extent));
        let mut inner = self.clone();
        match (min.as_int(), extent.as_int()) {
            (_, Some(n)) if n <= 0 => return None,
            (Some(first), Some(n)) => {
                Rc::make_mut(&mut inner.ranges).insert(var.id(), (first, first + n - 1));
            }
            (_, Some(_)) => inner.certain = false,
            (_, None) => inner = inner.under(Expr::int_of(0, extent.dtype()).lt(extent.clone())),
        }
        Rc::make_mut(&mut inner.analyzer).bind(var, &min, &extent);
        Some(inner)
    }
}

/// What the indices of a kernel's accesses must be below.
pub(super) struct Sizes {
    pub form: Form,
    /// Elements from the first to past the last of parameters with strides, by their pointers. The printed size of
    /// their one-dimensional aliases says nothing: it is 0 for a broadcast view.
    pub spans: FastMap<VarId, Option<i128>>,
}

impl Sizes {
    /// Of each index of a buffer, where that is a constant.
    pub fn of(&self, buffer: &Buffer) -> SmallVec<[Option<i128>; 4]> {
        match self.form {
            Form::Flat => smallvec![match self.spans.get(&buffer.data.id()) {
                Some(span) => *span,
                None => flat_size(buffer),
            }],
            Form::Nest | Form::Tiled => buffer.shape.iter().map(Expr::as_int).collect(),
        }
    }
}

struct Walk<'r, 'k> {
    sizes: Sizes,
    /// All else needs no look.
    suspects: Suspects,
    /// Blocks of the cluster around the statement, where their number is a constant.
    cluster_blocks: Option<i128>,
    report: &'r mut Report<'k>,
}

impl<'k> Walk<'_, 'k> {
    fn stmt(&mut self, stmt: &'k Stmt, place: &Place) {
        if !self.suspects.are_in(stmt) {
            return;
        }
        for expr in crate::visit::stmt_exprs(stmt).into_iter().filter(|expr| expr.reads_memory()) {
            self.expr(stmt, expr, place, &mut Seen::default());
        }
        match stmt {
            Stmt::Seq(stmts) => stmts.iter().for_each(|s| self.stmt(s, place)),
            Stmt::For { var, min, extent, body, .. } => {
                if let Some(inner) = place.inside(var, min, extent) {
                    self.stmt(body, &inner);
                }
            }
            Stmt::LaunchThread { tag, var, extent, body } => {
                let outer = self.cluster_blocks;
                if tag.is_of_cluster() {
                    self.cluster_blocks = outer.zip(extent.as_int()).and_then(|(n, m)| n.checked_mul(m));
                }
                if let Some(mut inner) = place.inside(var, &Expr::int_of(0, extent.dtype()), extent) {
                    if tag.is_of_grid() {
                        Rc::make_mut(&mut inner.blocks).insert(var.id(), tag.is_of_cluster());
                    }
                    self.stmt(body, &inner);
                }
                self.cluster_blocks = outer;
            }
            Stmt::If { cond, then, otherwise } => {
                let cond = place.analyzer.simplify(cond);
                let otherwise_holds = || cond.clone().logical_not();
                match cond.as_int() {
                    Some(0) => otherwise.iter().for_each(|branch| self.stmt(branch, place)),
                    Some(_) => self.stmt(then, place),
                    None => {
                        self.stmt(then, &place.under(cond.clone()));
                        let place = otherwise.as_ref().map(|branch| (branch, place.under(otherwise_holds())));
                        place.into_iter().for_each(|(branch, place)| self.stmt(branch, &place));
                    }
                }
            }
            Stmt::Store { buffer, indices, .. } => self.access(stmt, buffer, indices, place),
            // A hint may be about memory beyond the buffer: what is fetched there is not looked at.
            Stmt::Atom(call) if call.atom.is_hint() => {}
            Stmt::Atom(call) => {
                call.elements().for_each(|e| self.access(stmt, &e.buffer, &e.indices, place));
                if let (Atom::ClusterLoad, [block]) = (call.atom, &call.args[..]) {
                    self.block(stmt, block, place);
                }
            }
            Stmt::Let { value, body, .. } if value.dtype().is_float() => self.stmt(body, place),
            Stmt::Let { var, value, body } => self.stmt(body, &place.naming(var, value)),
            Stmt::Allocate { body, .. } | Stmt::Annotate { body, .. } => self.stmt(body, place),
            Stmt::DeviceEntry
            | Stmt::ScopeIds { .. }
            | Stmt::AllocBuffer(_)
            | Stmt::View { .. }
            | Stmt::Tile(_)
            | Stmt::Sync(_) => {}
        }
    }

    fn expr<'e>(&mut self, stmt: &'k Stmt, expr: &'e Expr, place: &Place, seen: &mut Seen<(&'e Expr, bool)>) {
        if !expr.reads_memory() || expr.may_be_shared() && !seen.insert((expr, place.certain)) {
            return;
        }
        match expr.node() {
            Node::IfThenElse(cond, a, b) => {
                self.expr(stmt, cond, place, seen);
                let cond = place.analyzer.simplify(cond);
                match cond.as_int() {
                    Some(0) => self.expr(stmt, b, place, seen),
                    Some(_) => self.expr(stmt, a, place, seen),
                    None => {
                        self.expr(stmt, a, &place.under(cond.clone()), seen);
                        self.expr(stmt, b, &place.under(cond.logical_not()), seen);
                    }
                }
            }
            Node::Binary(op @ (BinaryOp::And | BinaryOp::Or), a, b) => {
                self.expr(stmt, a, place, seen);
                let holds = if *op == BinaryOp::And { a.clone() } else { a.clone().logical_not() };
                self.expr(stmt, b, &place.under(holds), seen);
            }
            Node::Let(var, value, body) => {
                self.expr(stmt, value, place, seen);
                self.expr(stmt, body, &place.naming(var, value), &mut Seen::default());
            }
            Node::Load(buffer, indices) => {
                indices.iter().for_each(|i| self.expr(stmt, i, place, seen));
                self.access(stmt, buffer, indices, place);
            }
            _ => expr.each_child(|child| self.expr(stmt, child, place, seen)),
        }
    }

    /// The block of a cluster whose memory is read.
    fn block(&mut self, stmt: &'k Stmt, block: &Expr, place: &Place) {
        let Some(n) = self.cluster_blocks else { return };
        if let Some(value) = value_outside(block, n, place).filter(|_| !place.is_never_reached()) {
            let text = print_expr(block);
            let message =
                format!("block `{text}` of the cluster comes to {value}, and legal ones are 0 to {}", n - 1);
            self.report.at(stmt, "V12", message);
        }
    }

    fn access(&mut self, stmt: &'k Stmt, buffer: &Buffer, indices: &[Expr], place: &Place) {
        let sizes = self.sizes.of(buffer);
        for (index, size) in indices.iter().zip(sizes) {
            let Some(size) = size else { continue };
            let is_certain = |_: &i128| !place.is_never_reached() && !place.is_weighed_against_data(index);
            if let Some(value) = value_outside(index, size, place).filter(is_certain) {
                let (name, text) = (&buffer.name, print_expr(index));
                let message = format!(
                    "index `{text}` of `{name}` comes to {value}, and legal ones are 0 to {}",
                    size - 1
                );
                let message = match size {
                    0 => format!("`{name}` has no elements"),
                    ..0 => format!("`{name}` has an extent of {size}, and so no elements"),
                    _ => message,
                };
                self.report.at(stmt, "V12", message);
            }
        }
    }
}

/// Whether the condition is known not to hold; what is known then holds it too.
fn never_holds(condition: &Expr, known: &mut Analyzer) -> bool {
    if let Node::Binary(BinaryOp::And, a, b) = without_likely(condition).node() {
        return never_holds(a, known) || never_holds(b, known);
    }
    let never = known.can_refute(condition);
    known.assume(condition);
    never
}

/// Whether one of the variables stands in the expression, and not only in an index of what it reads.
fn names_any_outside_loads(expr: &Expr, vars: &[Var]) -> bool {
    match expr.node() {
        Node::Load(..) => false,
        Node::Var(var) => vars.contains(var),
        _ => expr.children().any(|child| names_any_outside_loads(child, vars)),
    }
}

/// Number of elements of a compact buffer of constant extents.
fn flat_size(buffer: &Buffer) -> Option<i128> {
    if !buffer.strides.is_empty() {
        return None;
    }
    buffer.shape.iter().try_fold(1i128, |size, extent| size.checked_mul(extent.as_int()?))
}

/// Elements from the first to past the last of a buffer of constant extents and strides that runs forwards.
fn span(buffer: &Buffer) -> Option<i128> {
    let mut last = 0i128;
    for (extent, stride) in buffer.shape.iter().zip(&buffer.strides) {
        let (extent, stride) = (extent.as_int()?, stride.as_int().filter(|s| *s >= 0)?);
        if extent == 0 {
            return Some(0);
        }
        last = last.checked_add((extent - 1).checked_mul(stride)?)?;
    }
    Some(last + 1)
}

/// The index of the first lane, and how far that of the last one is from it; `None` of lanes that are no steps.
pub(super) fn lanes_of(index: &Expr) -> Option<(&Expr, i128)> {
    match index.node() {
        Node::Ramp(base, stride) => {
            Some((base, stride.as_int()?.checked_mul(i128::from(index.lanes()) - 1)?))
        }
        Node::Broadcast(base) => Some((base, 0)),
        _ => (index.lanes() == 1).then_some((index, 0)),
    }
}

/// A value outside `[0, size)` that the index certainly takes, or that bounds all the values it takes.
fn value_outside(index: &Expr, size: i128, place: &Place) -> Option<i128> {
    let (base, last_lane) = lanes_of(index)?;
    let outside = |v: &i128| *v < 0 || *v >= size;
    let shifts = [0, last_lane];
    if let Some(value) = base.as_int() {
        return shifts.map(|shift| value.saturating_add(shift)).into_iter().find(outside);
    }
    // Most indices are inside by the ranges of what they are made of.
    let range = place.analyzer.interval(base);
    let (least, most) = (last_lane.min(0), last_lane.max(0));
    if let (Some(lo), Some(hi)) = (range.lo, range.hi)
        && lo.saturating_add(least) >= 0
        && hi.saturating_add(most) < size
    {
        return None;
    }
    let base = place.analyzer.simplify(base);
    if let Some((lo, hi)) = reached(&base, place) {
        return [lo, hi].iter().flat_map(|end| shifts.map(|s| end.saturating_add(s))).find(outside);
    }
    let (lo, hi) = place.analyzer.const_bounds(&base);
    shifts.into_iter().find_map(|shift| {
        let low = lo.map(|v| v.saturating_add(shift)).filter(|v| *v >= size);
        low.or_else(|| hi.map(|v| v.saturating_add(shift)).filter(|v| *v < 0))
    })
}

/// The least and the greatest value of a sum of loop variables, both of which it takes.
fn reached(base: &Expr, place: &Place) -> Option<(i128, i128)> {
    if !place.certain {
        return None;
    }
    let mut ends = (0i128, 0i128);
    let terms = place.analyzer.affine(base)?;
    let has = |of_cluster: bool| {
        let var = |(var, _): &(Option<Var>, i128)| var.as_ref().and_then(|v| place.blocks.get(&v.id()));
        terms.iter().any(|term| var(term) == Some(&of_cluster))
    };
    if has(true) && has(false) {
        return None;
    }
    for (var, coeff) in terms {
        let (first, last) = match var {
            Some(var) => *place.ranges.get(&var.id())?,
            None => (1, 1),
        };
        let (a, b) = (first.checked_mul(coeff)?, last.checked_mul(coeff)?);
        ends = (ends.0.checked_add(a.min(b))?, ends.1.checked_add(a.max(b))?);
    }
    Some(ends)
}
