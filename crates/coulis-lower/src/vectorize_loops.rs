//! Loops marked `vectorized` become ramps, broadcasts and vector operations.
//!
//! All lanes of one statement run before the next statement, which is legal because lanes were shown to touch disjoint memory; a
//! loop whose lanes were not (a sum into one cell) becomes a serial loop, its variable renamed `x_s`, and so does any single
//! statement without a vector form (a gather through an index array). Where threads keep arrays in registers, what such a statement
//! reads and stores side by side stays vectors (`lane_accesses.rs`).
//!
//! Guards. A branch whose condition does not depend on the lane stays, and a value that such a condition
//! chooses is stored under a branch. One that bounds the lane (`k * 16 + lane < m`) runs the whole vector
//! where all lanes pass; otherwise the passing lanes are covered by shorter vectors and at last by single
//! elements (where threads keep arrays in registers, by one guarded statement each, or by a loop of many
//! lanes that choose none of these); with another side for the lanes that do not pass, all lanes go one after another where one of
//! them does not. In simple mode such a loop becomes serial, as the reference has it. One that reads memory by the lane becomes a
//! select of new and old value in each store under it, where every lane may do what is under it: where all accesses are inside
//! whatever the branch says. What `and`, `or` or a choice evaluate under a condition that lanes differ in has to be total in every
//! lane (`eager.rs`), or lanes go one after another.
//!
//! Lets. A variable holds a scalar, so a let of a lane-dependent value is put in the place of its uses. Where a store
//! between would change what it reads (a tuple state, all of whose components are computed before any is stored),
//! the value waits in a local buffer of one element a lane, which compilers keep in a register.
//!
//! Buffers that the body allocates get one copy a lane, interleaved.

use std::cell::RefCell;

use coulis_ir::expr::{Expr, Node, Var};
use coulis_ir::hash::FastMap;
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::{
    any_stmt, for_each_expr, for_each_stmt, stmt_exprs, substitute_expr, substitute_stmt,
};
use coulis_ir::{Buffer, Form, Kernel, LoopKind, MemScope, Stmt};

use crate::affine::{conjuncts, product, sum, uses, widen};
use crate::binders::{copy_with, substituted};
use crate::eager::Eager;
use crate::independent::{lanes_are_independent, outlives_stores};
use crate::lane_accesses::{between_accesses, has_neighbours};
use crate::lane_allocations::expand_allocations;
use crate::lane_guards::{Part, classify, has_data_guard, has_lane_guard};
use crate::pass::{LowerError, Options, Pass};
use crate::place_barriers::without_remarks;
use crate::simplify::{with_condition, with_let, with_loop, with_turns};
use crate::vector_expr::{Lanes, NotAVector};
use crate::walk::{map_children, try_map_children};

/// The pass.
pub const PASS: Pass = Pass {
    name: "vectorize_loops",
    from: Form::Nest,
    to: Form::Flat,
    run: vectorize_loops,
    doc: "turns vectorized loops into vector operations, with shorter vectors where a guard cuts the lanes",
};

/// Most lanes of one vector.
pub const MAX_LANES: i128 = 1 << 16;

/// Most lanes that are written out one by one.
const WRITTEN_OUT: u32 = 16;

/// Lanes from which on those that pass are a loop where threads have none of their own memory in it: each guarded statement
/// by itself takes a compiler as long as a whole vector.
const MANY_LANES: u32 = 8;

/// Turns vectorized loops into vector operations.
pub fn vectorize_loops(kernel: Kernel, options: &Options) -> Result<Kernel, LowerError> {
    let kernel = Kernel { body: without_remarks(kernel.body), ..kernel };
    if !any_stmt(&kernel.body, &mut is_vectorized) {
        return Ok(kernel);
    }
    let params: Vec<Buffer> = kernel.param_buffers().cloned().collect();
    let within = Within { params: &params, options, cuts: RefCell::default() };
    let body = within.walk(kernel.body, &Analyzer::new())?;
    Ok(Kernel { body, ..kernel })
}

/// The kernel that loops are in.
struct Within<'k> {
    params: &'k [Buffer],
    options: &'k Options<'k>,
    /// Where loops are cut around branches on data: the names that are extents of their parts, with their values.
    cuts: RefCell<FastMap<Var, Expr>>,
}

fn is_vectorized(stmt: &Stmt) -> bool {
    matches!(stmt, Stmt::For { kind: LoopKind::Vectorized, .. })
}

impl Within<'_> {
    fn walk(&self, stmt: Stmt, known: &Analyzer) -> Result<Stmt, LowerError> {
        match stmt {
            Stmt::For { var, min, extent, kind: LoopKind::Vectorized, body } => {
                self.vectorized((&var, &min, &extent), *body, known)
            }
            Stmt::For { var, min, extent, kind, body } => {
                let cut = extent.as_var().and_then(|name| self.cuts.borrow().get(name).cloned());
                let inner = match cut {
                    Some(cut) => with_turns(known, &var, &min, &cut),
                    None => with_loop(known, &var, &min, &extent),
                };
                let body = self.walk(*body, &inner)?;
                Ok(Stmt::for_(var, min, extent, kind, body))
            }
            Stmt::LaunchThread { tag, var, extent, body } => {
                let inner = with_loop(known, &var, &Expr::int_of(0, var.dtype()), &extent);
                let body = Box::new(self.walk(*body, &inner)?);
                Ok(Stmt::LaunchThread { tag, var, extent, body })
            }
            Stmt::Let { var, value, body } => {
                let mut inner = with_let(known, &var, &value);
                if !value.reads_memory() && has_data_guard(&body) {
                    inner.bind_value(&var, &value);
                    self.cuts.borrow_mut().insert(var.clone(), value.clone());
                }
                let body = self.walk(*body, &inner)?;
                Ok(Stmt::let_(var, value, body))
            }
            Stmt::If { cond, then, otherwise } => {
                let then = Box::new(self.walk(*then, &with_condition(known, &cond))?);
                let fails = with_condition(known, &cond.clone().logical_not());
                let otherwise = otherwise.map(|s| self.walk(*s, &fails).map(Box::new)).transpose()?;
                Ok(Stmt::If { cond, then, otherwise })
            }
            other => try_map_children(other, &mut |s| self.walk(s, known)),
        }
    }

    fn vectorized(
        &self,
        (var, min, extent): (&Var, &Expr, &Expr),
        body: Stmt,
        known: &Analyzer,
    ) -> Result<Stmt, LowerError> {
        let name = || var.name().to_owned();
        let Some(count) = extent.as_int() else {
            let extent = coulis_ir::print::print_expr(extent);
            return Err(LowerError::VectorizeExtent { var: name(), extent });
        };
        if count > MAX_LANES {
            return Err(LowerError::VectorizeLanes { var: name(), found: count, limit: MAX_LANES });
        }
        if count <= 0 {
            return Ok(Stmt::NOP);
        }
        if any_stmt(&body, &mut is_vectorized) {
            return self.walk(serial(var, min, extent, body), known);
        }
        if count == 1 {
            return Ok(substituted(body, &FastMap::from_iter([(var.clone(), min.clone())])));
        }
        let lane = var.fresh();
        let position = sum(min.clone(), lane.expr());
        let inner = substitute_stmt(body.clone(), &FastMap::from_iter([(var.clone(), position)]));
        let inner = inline_index_lets(inner);
        let inner = expand_allocations(inner, &lane, count);
        let known =
            with_loop(known, &lane, &Expr::int_of(0, lane.dtype()), &Expr::int_of(count, lane.dtype()));
        let lanes = Lanes { var: lane, count: count as u32 };
        let guarded = self.options.simple_mode && has_lane_guard(&inner, &lanes);
        if guarded || !lanes_are_independent(&inner, &lanes.var, count, &known) {
            return Ok(serial(var, min, extent, body));
        }
        let by_lane = self.options.target.has_threads() && lanes.count <= WRITTEN_OUT;
        Ok(Vectorizer { known, by_lane, params: self.params }.stmt(&inner, &lanes, None))
    }
}

/// The loop run one iteration after another, its variable renamed.
fn serial(var: &Var, min: &Expr, extent: &Expr, body: Stmt) -> Stmt {
    let new = var.renamed(&format!("{}_s", var.name()));
    let body = substituted(body, &FastMap::from_iter([(var.clone(), new.expr())]));
    Stmt::for_(new, min.clone(), extent.clone(), LoopKind::Serial, body)
}

/// Puts lets of values that read no memory in the place of their uses, so that indices show what they are.
fn inline_index_lets(stmt: Stmt) -> Stmt {
    match stmt {
        Stmt::Let { var, value, body } if loads_of(&value).is_empty() => {
            inline_index_lets(substituted(*body, &FastMap::from_iter([(var, value)])))
        }
        other => map_children(other, &mut inline_index_lets),
    }
}

/// Data pointers of the memory that the expression reads.
fn loads_of(expr: &Expr) -> Vec<Var> {
    let mut found = Vec::new();
    for_each_expr(expr, &mut |e| {
        if let Node::Load(buffer, _) = e.node() {
            found.push(buffer.data.clone());
        }
    });
    found
}

/// Lengths of the shorter vectors that cover part of `lanes` lanes, ending with 1. Each divides the one before. Where it is known
/// how many lanes they cover they are halves of each other, as those that are not needed vanish.
fn shorter(lanes: u32, is_known: bool) -> Vec<u32> {
    let mut chain = Vec::new();
    let mut last = lanes;
    while last > 1 {
        let wanted = match last {
            _ if is_known => last / 2,
            64.. => last / 8,
            9.. => last / 4,
            _ => 1,
        };
        last = (1..=wanted).rev().find(|n| last.is_multiple_of(*n)).unwrap_or(1);
        chain.push(last);
    }
    chain
}

struct Vectorizer<'k> {
    known: Analyzer,
    params: &'k [Buffer],
    /// Whether passing lanes are covered by one guarded statement each. Where threads keep arrays in registers these have
    /// no address, so that none of their elements may be chosen by a variable.
    by_lane: bool,
}

impl<'k> Vectorizer<'k> {
    /// The same where more is known.
    fn under(&self, known: Analyzer) -> Vectorizer<'k> {
        Vectorizer { known, ..*self }
    }

    /// What may be evaluated here whatever a condition says.
    fn eager(&self) -> Eager<'_> {
        Eager::new(&self.known).of(self.params)
    }

    /// The same where a condition holds.
    fn where_holds(&self, cond: &Expr) -> Vectorizer<'k> {
        self.under(with_condition(&self.known, cond))
    }

    /// The statement for all lanes; `mask` tells, lane by lane, whether its stores happen.
    fn stmt(&self, stmt: &Stmt, lanes: &Lanes, mask: Option<&Expr>) -> Stmt {
        self.try_stmt(stmt, lanes, mask).unwrap_or_else(|NotAVector| {
            let body = match mask {
                Some(mask) => Stmt::if_(mask.clone(), stmt.clone()),
                None => stmt.clone(),
            };
            let dtype = lanes.var.dtype();
            let (zero, count) = (Expr::int_of(0, dtype), Expr::int_of(i128::from(lanes.count), dtype));
            serial(&lanes.var, &zero, &count, body)
        })
    }

    fn try_stmt(&self, stmt: &Stmt, lanes: &Lanes, mask: Option<&Expr>) -> Result<Stmt, NotAVector> {
        match stmt {
            Stmt::Seq(stmts) => Ok(Stmt::seq(stmts.iter().map(|s| self.stmt(s, lanes, mask)))),
            Stmt::For { var, min, extent, kind, body } => {
                if uses(min, &lanes.var) || uses(extent, &lanes.var) {
                    return Err(NotAVector);
                }
                let inner = self.under(with_loop(&self.known, var, min, extent));
                Ok(Stmt::for_(var.clone(), min.clone(), extent.clone(), *kind, inner.stmt(body, lanes, mask)))
            }
            Stmt::If { cond, then, otherwise } => self.branch(cond, then, otherwise.as_deref(), lanes, mask),
            Stmt::Store { buffer, indices, value } => {
                let [index] = indices.as_slice() else { return Err(NotAVector) };
                let at = lanes.index(index)?;
                if at.lanes() == 1 {
                    return Err(NotAVector);
                }
                if let Node::IfThenElse(cond, a, b) = value.node()
                    && !uses(cond, &lanes.var)
                {
                    let store = |value: &Expr| Stmt::store(buffer, indices.clone(), value.clone());
                    return Ok(Stmt::If {
                        cond: cond.clone(),
                        then: Box::new(self.where_holds(cond).stmt(&store(a), lanes, mask)),
                        otherwise: Some(Box::new(self.stmt(&store(b), lanes, mask))),
                    });
                }
                // Lanes whose stores do not happen have their old element read, so that the place is accessed in any case.
                let here = self.eager().beside_access(buffer, indices).beside(value);
                let mut value = match (lanes.vector(value, &here), mask) {
                    (Err(NotAVector), None) if self.by_lane && has_neighbours(&at) => {
                        return Ok(between_accesses(buffer, at, value, lanes, &here));
                    }
                    (made, _) => made?,
                };
                if let Some(mask) = mask {
                    let old = Expr::load(buffer.clone(), vec![at.clone()]);
                    value = Expr::select(lanes.vector(mask, &here)?, value, old);
                }
                Ok(Stmt::store(buffer, vec![at], value))
            }
            Stmt::Let { var, value, body } => {
                if !uses(value, &lanes.var) {
                    return Ok(Stmt::let_(var.clone(), value.clone(), self.stmt(body, lanes, mask)));
                }
                let uses_it = |s: &Stmt| stmt_exprs(s).into_iter().any(|e| uses(e, var));
                let here = self.eager().beside(value).beside_stmt(body);
                self.with_value((var.name(), value), &here, &[body], &uses_it, lanes, |value| {
                    let map = FastMap::from_iter([(var.clone(), value)]);
                    self.stmt(&substitute_stmt((**body).clone(), &map), lanes, mask)
                })
            }
            Stmt::Allocate { buffer, body } => {
                Ok(Stmt::allocate(buffer.clone(), self.stmt(body, lanes, mask)))
            }
            Stmt::Annotate { node, key, value, body } => Ok(Stmt::Annotate {
                node: node.clone(),
                key: key.clone(),
                value: value.clone(),
                body: Box::new(self.stmt(body, lanes, mask)),
            }),
            Stmt::LaunchThread { .. }
            | Stmt::DeviceEntry
            | Stmt::ScopeIds { .. }
            | Stmt::AllocBuffer(_)
            | Stmt::View { .. }
            | Stmt::Tile(_)
            | Stmt::Atom(_)
            | Stmt::Sync(_) => Err(NotAVector),
        }
    }

    /// `make(value)`, where the value is computed before `bodies` even if they store to what it reads: by itself
    /// where no store comes between it and its uses, from a local buffer otherwise.
    fn with_value(
        &self,
        (name, value): (&str, &Expr),
        here: &Eager,
        bodies: &[&Stmt],
        uses_it: &dyn Fn(&Stmt) -> bool,
        lanes: &Lanes,
        make: impl FnOnce(Expr) -> Stmt,
    ) -> Result<Stmt, NotAVector> {
        if outlives_stores(&loads_of(value), bodies, uses_it) {
            return Ok(make(value.clone()));
        }
        let dtype = lanes.var.dtype();
        let extent = Expr::int_of(i128::from(lanes.count), dtype);
        let buffer = Buffer::new(name, value.dtype(), vec![extent], MemScope::Local);
        let at = Expr::ramp(Expr::int_of(0, dtype), Expr::int_of(1, dtype), lanes.count);
        let keep = Stmt::store(&buffer, vec![at], lanes.vector(value, here)?);
        let rest = make(buffer.at(vec![lanes.var.expr()]));
        Ok(Stmt::allocate(buffer, Stmt::seq([keep, rest])))
    }

    fn branch(
        &self,
        cond: &Expr,
        then: &Stmt,
        otherwise: Option<&Stmt>,
        lanes: &Lanes,
        mask: Option<&Expr>,
    ) -> Result<Stmt, NotAVector> {
        if !uses(cond, &lanes.var) {
            return Ok(Stmt::If {
                cond: cond.clone(),
                then: Box::new(self.where_holds(cond).stmt(then, lanes, mask)),
                otherwise: otherwise.map(|s| Box::new(self.stmt(s, lanes, mask))),
            });
        }
        let mut parts = conjuncts(cond);
        let mut then = then;
        if otherwise.is_none() {
            while let Stmt::If { cond, then: inner, otherwise: None } = then {
                if !uses(cond, &lanes.var) {
                    break;
                }
                parts.extend(conjuncts(cond));
                then = inner;
            }
        }
        let (mut same, mut bounds, mut data) = (Vec::new(), Vec::new(), Vec::new());
        for part in parts {
            match classify(&part, lanes) {
                Part::Same => same.push(part),
                Part::Below(bound) => bounds.push(bound),
                Part::Data => data.push(part),
                Part::Other => return Err(NotAVector),
            }
        }
        if let (Some(_), [bound], true) = (otherwise, &bounds[..], same.is_empty() && data.is_empty()) {
            return Ok(self.one_side_or_lanes(bound, (cond, then, otherwise), lanes, mask));
        }
        if otherwise.is_some() && !(same.is_empty() && bounds.is_empty()) {
            return Err(NotAVector);
        }
        let masked = match data.into_iter().reduce(Expr::and) {
            Some(cond) => Stmt::If {
                cond,
                then: Box::new(then.clone()),
                otherwise: otherwise.map(|s| Box::new(s.clone())),
            },
            None => then.clone(),
        };
        let same = same.into_iter().reduce(Expr::and);
        let here =
            same.as_ref().map_or_else(|| self.under(self.known.clone()), |same| self.where_holds(same));
        let inner = match bounds.into_iter().reduce(smaller) {
            Some(bound) => here.cut(&bound, &masked, lanes, mask),
            None => here.select(&masked, lanes, mask)?,
        };
        Ok(match same {
            Some(cond) => Stmt::if_(cond, inner),
            None => inner,
        })
    }

    /// A branch with another side, on lanes below a bound: all lanes at once where all are, else one after another.
    fn one_side_or_lanes(
        &self,
        bound: &Expr,
        (cond, then, otherwise): (&Expr, &Stmt, Option<&Stmt>),
        lanes: &Lanes,
        mask: Option<&Expr>,
    ) -> Stmt {
        let all = bound.clone().ge(Expr::int_of(i128::from(lanes.count), bound.dtype()));
        let at_once = self.where_holds(&all).stmt(then, lanes, mask);
        if self.known.can_prove(&all) {
            return at_once;
        }
        let whole = Stmt::If {
            cond: cond.clone(),
            then: Box::new(then.clone()),
            otherwise: otherwise.map(|s| Box::new(s.clone())),
        };
        let body = match mask {
            Some(mask) => Stmt::if_(mask.clone(), whole),
            None => whole,
        };
        let dtype = lanes.var.dtype();
        let (zero, count) = (Expr::int_of(0, dtype), Expr::int_of(i128::from(lanes.count), dtype));
        let one_by_one = serial(&lanes.var, &zero, &count, body);
        Stmt::If { cond: all, then: Box::new(at_once), otherwise: Some(Box::new(one_by_one)) }
    }

    /// A branch on data: both sides run, and every store selects.
    fn select(&self, branch: &Stmt, lanes: &Lanes, mask: Option<&Expr>) -> Result<Stmt, NotAVector> {
        let Stmt::If { cond, then, otherwise } = branch else {
            return Ok(self.stmt(branch, lanes, mask));
        };
        let bodies: Vec<&Stmt> = [Some(&**then), otherwise.as_deref()].into_iter().flatten().collect();
        let here = self.eager().beside(cond);
        if !bodies.iter().all(|body| here.has_all_of(body)) {
            return Err(NotAVector);
        }
        lanes.value(cond, &here)?;
        let is_store = |s: &Stmt| matches!(s, Stmt::Store { .. });
        self.with_value(("taken", cond), &here, &bodies, &is_store, lanes, |cond| {
            let with = |side: Expr| match mask {
                Some(mask) => mask.clone().and(side),
                None => side,
            };
            let yes = self.stmt(then, lanes, Some(&with(cond.clone())));
            let no = otherwise.as_ref().map(|s| self.stmt(s, lanes, Some(&with(cond.logical_not()))));
            Stmt::seq([Some(yes), no].into_iter().flatten())
        })
    }

    /// The body for the lanes below `bound` only.
    fn cut(&self, bound: &Expr, body: &Stmt, lanes: &Lanes, mask: Option<&Expr>) -> Stmt {
        let dtype = lanes.var.dtype();
        let wide = |n: i128| Expr::int_of(n, bound.dtype());
        if self.known.can_prove(&bound.clone().le(wide(0))) {
            return Stmt::NOP;
        }
        if self.known.can_prove(&bound.clone().ge(wide(lanes.count.into()))) {
            return self.stmt(body, lanes, mask);
        }
        // What is compared with each lane may lie beyond them; what is counted may not.
        let passing = match self.by_lane {
            true => bound.clone(),
            false => bound.clone().min(wide(lanes.count.into())).max(wide(0)),
        };
        let passing = self.known.simplify(&passing);
        let (passing, dtype) = match self.by_lane {
            true => (passing, bound.dtype()),
            false => (widen(passing, dtype), dtype),
        };
        let int = |n: u32| Expr::int_of(i128::from(n), dtype);
        let name = format!("{}_n", lanes.var.name());
        let n = if self.by_lane { Var::new(&name, dtype) } else { Var::size(&name, dtype) };
        let mut pieces = Vec::new();
        let mut covered = lanes.count;
        let in_a_loop = self.by_lane && lanes.count >= MANY_LANES && !selects_registers(body, &lanes.var);
        if in_a_loop {
            let lane = lanes.var.renamed(&format!("{}_s", lanes.var.name()));
            let map = FastMap::from_iter([(lanes.var.clone(), lane.expr())]);
            let mask = mask.map(|m| substitute_expr(m, &map));
            let passes = widen(lane.expr(), dtype).lt(n.expr());
            let passes = mask.map_or(passes.clone(), |mask| passes.and(mask));
            let count = Expr::int_of(i128::from(lanes.count), lanes.var.dtype());
            pieces.push(Stmt::rolled(lane, count, Stmt::if_(passes, copy_with(body, &map))));
        }
        for lane in 0..if self.by_lane && !in_a_loop { lanes.count } else { 0 } {
            let at = Expr::int_of(i128::from(lane), lanes.var.dtype());
            let map = FastMap::from_iter([(lanes.var.clone(), at)]);
            let mask = mask.map(|m| substitute_expr(m, &map));
            let passes = int(lane).lt(n.expr());
            let passes = mask.map_or(passes.clone(), |mask| passes.and(mask));
            pieces.push(Stmt::if_(passes, copy_with(body, &map)));
        }
        let is_known = passing.as_int().is_some();
        for length in if self.by_lane { Vec::new() } else { shorter(lanes.count, is_known) } {
            let (start, left) = if covered == lanes.count {
                (int(0), n.expr())
            } else {
                let start = product(n.expr().floordiv(int(covered)), int(covered));
                (start, n.expr().floormod(int(covered)))
            };
            let piece = lanes.var.renamed(&format!("{}_s", lanes.var.name()));
            let times = if length == 1 { left } else { left.floordiv(int(length)) };
            let first = sum(start, product(piece.expr(), int(length)));
            let inner = Lanes { var: lanes.var.fresh(), count: length };
            let at = if length == 1 { first } else { sum(first, inner.var.expr()) };
            let passing_at = at.clone();
            let map = FastMap::from_iter([(lanes.var.clone(), at)]);
            let copy = copy_with(body, &map);
            let mask = mask.map(|m| substitute_expr(m, &map));
            let part = match (length, mask) {
                (1, Some(mask)) => Stmt::if_(mask, copy),
                (1, None) => copy,
                (_, mask) => {
                    let of_lane = |n: i128| Expr::int_of(n, inner.var.dtype());
                    let known = with_loop(&self.known, &inner.var, &of_lane(0), &of_lane(length.into()));
                    let mut known = known
                        .with(&int(0).le(passing_at.clone()))
                        .with(&passing_at.clone().lt(passing.clone()));
                    if has_data_guard(&copy) {
                        // Of what is below the least of several, that it is below what bounds the lanes.
                        let (at, most) = Expr::promoted(passing_at, bound.clone());
                        known.assume(&at.lt(most));
                    }
                    self.under(known).stmt(&copy, &inner, mask.as_ref())
                }
            };
            pieces.push(Stmt::range(piece, times, part));
            covered = length;
        }
        let pieces = Stmt::seq(pieces);
        if self.known.can_prove(&bound.clone().lt(wide(lanes.count.into()))) {
            return Stmt::let_(n, passing, pieces);
        }
        let all_lanes = bound.clone().ge(wide(lanes.count.into()));
        let whole = Box::new(self.where_holds(&all_lanes).stmt(body, lanes, mask));
        let count = int(lanes.count);
        let all_pass = if self.by_lane { n.expr().ge(count) } else { n.expr().equal(count) };
        let choice = Stmt::If { cond: all_pass, then: whole, otherwise: Some(Box::new(pieces)) };
        Stmt::let_(n, passing, choice)
    }
}

/// Whether an element of a thread's own memory is chosen by the variable: such memory is registers only where none is.
fn selects_registers(body: &Stmt, lane: &Var) -> bool {
    let is_own = |buffer: &Buffer, indices: &[Expr]| {
        buffer.scope == MemScope::Local && indices.iter().any(|index| uses(index, lane))
    };
    let mut found = false;
    for_each_stmt(body, &mut |s| {
        found |= match s {
            Stmt::Store { buffer, indices, .. } => is_own(buffer, indices),
            Stmt::Allocate { .. } | Stmt::Atom(_) => true,
            _ => false,
        };
        for expr in stmt_exprs(s) {
            for_each_expr(expr, &mut |e| {
                found |= matches!(e.node(), Node::Load(buffer, indices) if is_own(buffer, indices));
            });
        }
    });
    found
}

fn smaller(a: Expr, b: Expr) -> Expr {
    let (a, b) = Expr::promoted(a, b);
    a.min(b)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shorter_vectors_divide_one_another_and_end_with_one() {
        assert_eq!(shorter(1024, false), [128, 16, 4, 1]);
        assert_eq!(shorter(16, false), [4, 1]);
        assert_eq!(shorter(8, false), [1]);
        assert_eq!(shorter(16, true), [8, 4, 2, 1]);
        for lanes in 2..=512 {
            for is_known in [false, true] {
                let mut last = lanes;
                for n in shorter(lanes, is_known) {
                    assert!(last % n == 0 && n < last);
                    last = n;
                }
                assert_eq!(last, 1);
            }
        }
    }
}
