//! Whether what one launch leaves in memory is read by the launch after it block by block: what a block of the second reads
//! was written by those blocks of the first that have its index, and by no others.
//!
//! An index that both write and read by is to be `high + coeff * block + low`, where the one coefficient is
//! more than all that is below it, and what is above it moves by whole periods of `coeff * block + low`. Then
//! an element says which block it belongs to. Bounds come from loops and from the conditions around an
//! access. Anything that is not shown counts as read by others.

use coulis_ir::hash::{FastMap, FastSet};

use coulis_ir::expr::{Expr, Node, Var};
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::{for_each_expr, stmt_children, stmt_exprs, substitute_expr};
use coulis_ir::{Buffer, DType, MemScope, Stmt};

use crate::affine::conjuncts;

/// An access of memory that outlives a launch.
struct Access {
    buffer: Buffer,
    /// The first element, of scalar type.
    index: Expr,
    /// Elements from there on.
    lanes: i128,
    writes: bool,
    known: Analyzer,
}

/// What the threads of a launch execute, and the ranges of its indices.
pub struct Region<'a> {
    /// Indices with their extents.
    pub indices: Vec<(Var, Expr)>,
    /// What is executed.
    pub body: &'a Stmt,
}

/// Whether elements that `first` writes and `second` reads are of one value of `block`, which both have among their indices;
/// and `second` writes nothing that `first` touches. `above` is another index of `first`'s blocks.
pub fn blocks_are_apart(first: &Region, second: &Region, block: &Var, above: Option<&Var>) -> bool {
    let (Some(before), Some(after)) = (accesses(first), accesses(second)) else { return false };
    let touched: FastSet<&Var> = before.iter().map(|a| &a.buffer.data).collect();
    if after.iter().any(|a| a.writes && touched.contains(&a.buffer.data)) {
        return false;
    }
    let read: FastSet<&Var> = after.iter().map(|a| &a.buffer.data).collect();
    let written = before.iter().filter(|a| a.writes && read.contains(&a.buffer.data));
    let mut handed: FastMap<&Var, Vec<&Access>> = FastMap::default();
    for access in written {
        handed.entry(&access.buffer.data).or_default().push(access);
    }
    handed.iter().all(|(data, writes)| {
        let reads = after.iter().filter(|a| a.buffer.data == **data);
        tells_block(&writes.iter().copied().chain(reads).collect::<Vec<_>>(), block, above)
    })
}

/// Whether the index of every access says which value of `block` it was made for; the first is a write.
fn tells_block(all: &[&Access], block: &Var, above: Option<&Var>) -> bool {
    let Some(first) = all.first().and_then(|a| a.known.linear(&a.index)) else { return false };
    let coeff = first.multiplier(block);
    let period = above.map_or(0, |above| first.multiplier(above));
    let period = (period > coeff).then_some(period);
    coeff > 0
        && all.iter().all(|access| {
            let Some(sum) = access.known.linear(&access.index) else { return false };
            if sum.multiplier(block) != coeff || access.buffer.dtype != all[0].buffer.dtype {
                return false;
            }
            let int = |value: i128| Expr::int_of(value, DType::I64);
            let is_high = |c: i128| period.is_some_and(|period| c % period == 0);
            let is_low = |(term, c): &&(Expr, i128)| term.as_var() != Some(block) && !is_high(*c);
            let low = sum.terms.iter().filter(is_low);
            let low =
                low.fold(int(sum.constant), |low, (term, c)| low + term.clone().cast(DType::I64) * int(*c));
            let prove = |cond: Expr| access.known.can_prove(&cond);
            let last = low.clone() + int(access.lanes - 1);
            let within = prove(low.ge(int(0))) && prove(last.clone().lt(int(coeff)));
            let place = last + block.expr().cast(DType::I64) * int(coeff);
            within && period.is_none_or(|period| prove(place.lt(int(period))))
        })
}

/// The accesses of memory that outlives the launch; `None` where some cannot be read.
fn accesses(region: &Region) -> Option<Vec<Access>> {
    let mut known = Analyzer::new();
    for (var, extent) in &region.indices {
        known.bind(var, &Expr::int_of(0, var.dtype()), extent);
    }
    let mut found = Collector { accesses: Vec::new(), values: FastMap::default(), is_opaque: false };
    found.stmt(region.body, &known);
    (!found.is_opaque).then_some(found.accesses)
}

struct Collector {
    accesses: Vec<Access>,
    /// Values of names around.
    values: FastMap<Var, Expr>,
    is_opaque: bool,
}

impl Collector {
    fn stmt(&mut self, stmt: &Stmt, known: &Analyzer) {
        for expr in stmt_exprs(stmt) {
            self.expr(expr, known);
        }
        match stmt {
            Stmt::Store { buffer, indices, .. } => self.access(buffer, indices, known, true),
            Stmt::Let { var, value, body } => {
                let value = substitute_expr(value, &self.values);
                self.values.insert(var.clone(), value);
                self.stmt(body, known);
            }
            Stmt::For { var, min, extent, body, .. } => {
                let mut inside = known.clone();
                let [min, extent] = [min, extent].map(|e| substitute_expr(e, &self.values));
                inside.bind(var, &min, &extent);
                self.stmt(body, &inside);
            }
            Stmt::If { cond, then, otherwise } => {
                let mut inside = known.clone();
                // What memory says may change before the access.
                let parts = conjuncts(&substitute_expr(cond, &self.values));
                for part in parts.iter().filter(|part| !part.reads_memory()) {
                    inside.assume(part);
                }
                self.stmt(then, &inside);
                if let Some(otherwise) = otherwise {
                    self.stmt(otherwise, known);
                }
            }
            Stmt::Atom(call) => {
                self.is_opaque |= call.memory.as_ref().is_some_and(|e| e.buffer.scope == MemScope::Global);
            }
            Stmt::LaunchThread { .. }
            | Stmt::DeviceEntry
            | Stmt::ScopeIds { .. }
            | Stmt::AllocBuffer(_)
            | Stmt::View { .. }
            | Stmt::Tile(_) => self.is_opaque = true,
            Stmt::Seq(_) | Stmt::Allocate { .. } | Stmt::Annotate { .. } | Stmt::Sync(_) => {
                for child in stmt_children(stmt) {
                    self.stmt(child, known);
                }
            }
        }
    }

    fn expr(&mut self, expr: &Expr, known: &Analyzer) {
        let mut loads = Vec::new();
        for_each_expr(expr, &mut |e| {
            // An index that uses a name of the expression itself has an atom without bounds.
            if let Node::Load(buffer, indices) = e.node() {
                loads.push((buffer.clone(), indices.clone()));
            }
        });
        for (buffer, indices) in loads {
            self.access(&buffer, &indices, known, false);
        }
    }

    fn access(&mut self, buffer: &Buffer, indices: &[Expr], known: &Analyzer, writes: bool) {
        if buffer.scope != MemScope::Global {
            return;
        }
        let [index] = indices else {
            self.is_opaque = true;
            return;
        };
        let index = substitute_expr(index, &self.values);
        let lanes = i128::from(index.lanes());
        let index = match index.node() {
            Node::Ramp(base, stride) if stride.is_int(1) => base.clone(),
            _ if lanes == 1 => index,
            _ => {
                self.is_opaque = true;
                return;
            }
        };
        self.accesses.push(Access { buffer: buffer.clone(), index, lanes, writes, known: known.clone() });
    }
}
