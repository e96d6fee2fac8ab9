//! Index arithmetic that a statement computes twice is bound to a name, `cse_var_1`, `cse_var_2`, and so on.
//!
//! From the outermost statement inwards, the largest computations of a statement are looked at first. One that
//! occurs at least twice, and whose variables are all loop indices, lets or scalar parameters, is bound around the
//! statement; one that is bound already is replaced; of any other, the parts are looked at. What has no variable in it, as
//! a constant that is no number, is for the compiler. A loop or branch reports
//! only what two of its header and bodies share, so that nothing moves out of a branch for the branch's sake.
//! Computations that read memory or call functions are left, as are those over sizes, strides and thread indices:
//! this is what seed 003's listings 2 and 3 show. Unlike the reference nothing is bound inside a condition. Names nest, so
//! that a statement is in at most 256 of them; what is computed beyond stays as it is.

use coulis_ir::hash::{self, FastMap, roomy_map};
use std::collections::BTreeMap;
use std::rc::Rc;

use coulis_ir::expr::{Expr, Node, Var};
use coulis_ir::visit::{change_children, for_each_expr, rewrite_exprs, stmt_children, stmt_exprs};
use coulis_ir::{Form, Kernel, Param, Stmt};

use crate::eager::may_trap;
use crate::pass::{LowerError, Options, Pass};

/// The pass.
pub const PASS: Pass = Pass {
    name: "eliminate_common_subexpressions",
    from: Form::Flat,
    to: Form::Flat,
    run: eliminate_common_subexpressions,
    doc: "binds index arithmetic that a statement computes twice to a name",
};

/// Names around one statement. Each is a level of nesting, of which a text has at most 1000, and a stack not many more.
const MOST_NAMES: usize = 256;

/// Binds repeated index arithmetic to names.
pub fn eliminate_common_subexpressions(kernel: Kernel, _: &Options) -> Result<Kernel, LowerError> {
    let scalars = kernel.params.iter().filter_map(|p| match p {
        Param::Scalar(var) => Some(var.clone()),
        Param::Buffer { .. } => None,
    });
    let mut names =
        Names { scope: scalars.collect(), tables: roomy_map(), facts: roomy_map(), ..Names::default() };
    let body = names.visit(kernel.body, Around::Decides, None);
    Ok(Kernel { body, ..kernel })
}

/// Computations and how often they occur, in order of first occurrence.
type Table = hash::Table<Expr, usize>;

/// What is counted in a statement, and in those below it in their order.
struct Counted {
    table: Rc<Table>,
    below: Vec<Counted>,
}

#[derive(Default)]
struct Names {
    /// Variables that a binding may use.
    scope: Vec<Var>,
    /// Values that have a name here.
    bound: Vec<(Expr, Var)>,
    n_made: usize,
    tables: FastMap<Expr, Rc<Table>>,
    /// The table of what has no operands.
    nothing: Rc<Table>,
    facts: FastMap<Expr, Fact>,
}

/// What is known of an expression by itself.
#[derive(Clone, Copy)]
struct Fact {
    /// Nodes in it, shared ones once a path, saturating.
    size: usize,
    /// Whether it consists of arithmetic on scalars only.
    plain: bool,
}

/// What stands directly around a statement.
#[derive(Clone, Copy, PartialEq)]
enum Around {
    /// Something that names were looked for in, with the same variables in scope and everything in this statement counted:
    /// what could be named here was named there.
    Includes,
    /// A loop, a name or a branch: there may be something to find.
    Decides,
}

impl Names {
    /// `counted`: of the statement as it is, where that is known.
    fn visit(&mut self, stmt: Stmt, around: Around, counted: Option<Counted>) -> Stmt {
        let outer = (self.scope.len(), self.bound.len());
        let (named, bindings, counted) = match around {
            Around::Includes => (FastMap::default(), Vec::new(), counted),
            Around::Decides => {
                let counted = counted.unwrap_or_else(|| self.of_stmt(&stmt));
                let (named, bindings) = self.name_parts(&counted.table);
                // Where nothing is replaced, what stands below is as it was counted.
                let below = Some(counted.below).filter(|_| named.is_empty());
                (named, bindings, below.map(|below| Counted { table: Rc::default(), below }))
            }
        };
        let stmt = replace_in(stmt, &named);
        let mut below = counted.map(|counted| counted.below.into_iter());
        let mut next = || below.as_mut().and_then(Iterator::next);
        let stmt = match stmt {
            Stmt::For { var, min, extent, kind, body } => {
                self.scope.push(var.clone());
                Stmt::for_(var, min, extent, kind, self.visit(*body, Around::Decides, next()))
            }
            Stmt::Let { var, value, body } => {
                self.scope.push(var.clone());
                self.bound.push((value.clone(), var.clone()));
                Stmt::let_(var, value, self.visit(*body, Around::Decides, next()))
            }
            branch @ Stmt::If { .. } => {
                crate::walk::map_children(branch, &mut |s| self.visit(s, Around::Decides, next()))
            }
            other => crate::walk::map_children(other, &mut |s| self.visit(s, Around::Includes, next())),
        };
        self.scope.truncate(outer.0);
        self.bound.truncate(outer.1);
        // Later bindings are smaller, and earlier ones use them: they go outside.
        bindings.into_iter().fold(stmt, |body, (var, value)| {
            let parts = change_children(&value, &mut |child| replace(child, &named, &mut FastMap::default()));
            Stmt::let_(var, parts.unwrap_or(value), body)
        })
    }

    /// The names that stand for computations of a statement, old ones and new ones, and the new ones' values.
    fn name_parts(&mut self, table: &Table) -> (FastMap<Expr, Expr>, Vec<(Var, Expr)>) {
        let mut named = FastMap::default();
        let mut made = Vec::new();
        let mut work = Work::default();
        for (expr, count) in table {
            work.add(expr, *count, self.fact(expr).size);
        }
        while let Some(group) = work.pop_largest() {
            let (mut wanted, mut others) = (Vec::new(), Vec::new());
            for (expr, count) in group {
                if let Some((_, var)) = self.bound.iter().find(|(value, _)| *value == expr) {
                    named.insert(expr, var.expr());
                } else if count >= 2 && self.bound.len() + wanted.len() < MOST_NAMES && self.may_bind(&expr) {
                    wanted.push(expr);
                } else {
                    others.push((expr, count));
                }
            }
            if wanted.len() > 1 {
                wanted.sort_by_cached_key(coulis_ir::print::print_expr);
            }
            for expr in wanted {
                self.n_made += 1;
                let var = Var::new(&format!("cse_var_{}", self.n_made), expr.dtype());
                self.scope.push(var.clone());
                self.bound.push((expr.clone(), var.clone()));
                named.insert(expr.clone(), var.expr());
                made.push((var, expr.clone()));
                others.push((expr, 1));
            }
            for (expr, count) in others {
                for child in expr.children() {
                    for (part, _) in self.of_expr(child).iter() {
                        work.add(part, count, self.fact(part).size);
                    }
                }
            }
        }
        (named, made)
    }

    fn may_bind(&self, expr: &Expr) -> bool {
        let (mut legal, mut varies) = (true, false);
        for_each_expr(expr, &mut |e| {
            legal &= !may_trap(e) && e.as_var().is_none_or(|v| self.scope.contains(v));
            varies |= e.as_var().is_some();
        });
        legal && varies
    }

    fn fact(&mut self, expr: &Expr) -> Fact {
        if let Some(fact) = self.facts.get(expr) {
            return *fact;
        }
        let parts: Vec<Fact> = expr.children().map(|c| self.fact(c)).collect();
        let own = match expr.node() {
            Node::Int(_)
            | Node::Float(_)
            | Node::Var(_)
            | Node::Binary(..)
            | Node::Not(_)
            | Node::Cast(_)
            | Node::Select(..) => expr.ty().is_scalar(),
            Node::Call(..)
            | Node::Load(..)
            | Node::IfThenElse(..)
            | Node::Ramp(..)
            | Node::Broadcast(_)
            | Node::Let(..) => false,
        };
        let fact = Fact {
            size: parts.iter().fold(1, |n: usize, p| n.saturating_add(p.size)),
            plain: own && parts.iter().all(|p| p.plain),
        };
        self.facts.insert(expr.clone(), fact);
        fact
    }

    /// The largest computations in an expression that may get a name.
    fn of_expr(&mut self, expr: &Expr) -> Rc<Table> {
        if expr.is_leaf() {
            return self.nothing.clone();
        }
        if let Some(table) = self.tables.get(expr) {
            return table.clone();
        }
        let mut table = Table::default();
        if self.fact(expr).plain {
            table.push(expr.clone(), 1);
        } else {
            for child in expr.children() {
                for (part, count) in self.of_expr(child).iter() {
                    *table.entry(part) += count;
                }
            }
        }
        let table = Rc::new(table);
        self.tables.insert(expr.clone(), table.clone());
        table
    }

    fn of_stmt(&mut self, stmt: &Stmt) -> Counted {
        let header: Vec<Rc<Table>> = stmt_exprs(stmt).into_iter().map(|e| self.of_expr(e)).collect();
        let below: Vec<Counted> = stmt_children(stmt).map(|s| self.of_stmt(s)).collect();
        let parts = || header.iter().chain(below.iter().map(|counted| &counted.table));
        let only_shared = match stmt {
            Stmt::For { .. } | Stmt::If { .. } => true,
            Stmt::Seq(_)
            | Stmt::Store { .. }
            | Stmt::Let { .. }
            | Stmt::Allocate { .. }
            | Stmt::Annotate { .. }
            | Stmt::LaunchThread { .. }
            | Stmt::DeviceEntry
            | Stmt::ScopeIds { .. }
            | Stmt::AllocBuffer(_)
            | Stmt::View { .. }
            | Stmt::Tile(_)
            | Stmt::Atom(_)
            | Stmt::Sync(_) => false,
        };
        let parts: Vec<&Rc<Table>> = parts().filter(|table| !table.is_empty()).collect();
        let table = match (parts.as_slice(), only_shared) {
            ([], _) | ([_], true) => self.nothing.clone(),
            ([one], false) => Rc::clone(one),
            (all, false) => {
                let mut table = Table::default();
                for (expr, count) in all.iter().flat_map(|table| table.iter()) {
                    *table.entry(expr) += count;
                }
                Rc::new(table)
            }
            (all, true) => {
                // In how many parts, and how often in all.
                let mut found: hash::Table<Expr, (usize, usize)> = hash::Table::default();
                for (expr, count) in all.iter().flat_map(|table| table.iter()) {
                    let (n_parts, total) = found.entry(expr);
                    *n_parts += 1;
                    *total += count;
                }
                let mut table = Table::default();
                for (expr, (_, total)) in found.into_iter().filter(|(_, (n_parts, _))| *n_parts > 1) {
                    table.push(expr, total);
                }
                Rc::new(table)
            }
        };
        Counted { table, below }
    }
}

/// Computations by size, with how often each occurs.
#[derive(Default)]
struct Work {
    by_size: BTreeMap<usize, Table>,
}

impl Work {
    fn add(&mut self, expr: &Expr, count: usize, size: usize) {
        *self.by_size.entry(size).or_default().entry(expr) += count;
    }

    /// All computations of the largest size. What is added later is smaller.
    fn pop_largest(&mut self) -> Option<Table> {
        self.by_size.pop_last().map(|(_, group)| group)
    }
}

fn replace_in(mut stmt: Stmt, named: &FastMap<Expr, Expr>) -> Stmt {
    if !named.is_empty() {
        let mut memo = FastMap::default();
        rewrite_exprs(&mut stmt, &mut |e| replace(e, named, &mut memo));
    }
    stmt
}

/// The expression with names in place of what they stand for, the largest first, where there is one in it.
fn replace(expr: &Expr, named: &FastMap<Expr, Expr>, memo: &mut FastMap<Expr, Option<Expr>>) -> Option<Expr> {
    if expr.is_leaf() {
        // What is named is a computation.
        return None;
    }
    if let Some(name) = named.get(expr) {
        return Some(name.clone());
    }
    let is_shared = expr.may_be_shared();
    if is_shared && let Some(done) = memo.get(expr) {
        return done.clone();
    }
    let new = change_children(expr, &mut |child| replace(child, named, memo));
    if is_shared {
        memo.insert(expr.clone(), new.clone());
    }
    new
}
