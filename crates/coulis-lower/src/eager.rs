//! What may be evaluated where the condition that it stands under does not hold.
//!
//! The right side of `and` and `or`, the sides of `if_then_else` and those of a `Select` that divide are evaluated only
//! where their condition lets them be. A vector evaluates them in every lane, which is legal for what cannot fail: accesses
//! inside their memory, and divisions by what is not zero. This is the one place that decides it, also for the body of a
//! branch on data.

use coulis_ir::expr::{Expr, Node};
use coulis_ir::hash::{FastSet, Seen};
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::{for_each_expr, stmt_children, stmt_exprs};
use coulis_ir::{Buffer, Stmt};

use crate::element_place::is_element;
use crate::simplify::{with_condition, with_let, with_loop};

/// Whether this node by itself may stop the program: an integer division by anything but a constant other than 0.
pub fn may_trap(expr: &Expr) -> bool {
    expr.divisor().is_some_and(|divisor| divisor.as_int().is_none_or(|divisor| divisor == 0))
}

/// What is known not to fail at a place, whatever conditions follow.
#[derive(Clone)]
pub struct Eager<'a> {
    known: &'a Analyzer,
    /// Parameters of the kernel, one-dimensional aliases of whose memory are accessed.
    params: &'a [Buffer],
    /// Places that are accessed here in any case, as extents and index: what is inside one memory is inside all of its size.
    accessed: FastSet<(Vec<Expr>, Vec<Expr>)>,
    /// Divisors of what is computed here in any case.
    divisors: FastSet<Expr>,
}

impl<'a> Eager<'a> {
    /// Nothing but what is known of the variables.
    pub fn new(known: &'a Analyzer) -> Eager<'a> {
        Eager { known, params: &[], accessed: FastSet::default(), divisors: FastSet::default() }
    }

    /// The same in a kernel of these parameters.
    pub fn of(self, params: &'a [Buffer]) -> Eager<'a> {
        Eager { params, ..self }
    }

    /// Beside that, what is accessed and computed where the expression is.
    pub fn beside(&self, expr: &Expr) -> Eager<'a> {
        let mut here = self.clone();
        here.add(expr, &mut Seen::default());
        here
    }

    /// Beside that, an element that is accessed here.
    pub fn beside_access(&self, buffer: &Buffer, indices: &[Expr]) -> Eager<'a> {
        let mut here = self.clone();
        here.accessed.insert((buffer.shape.clone(), indices.to_vec()));
        here
    }

    /// Beside that, what a statement accesses and computes in any case, by indices and divisors that no memory tells, as it may
    /// store to that first.
    pub fn beside_stmt(&self, stmt: &Stmt) -> Eager<'a> {
        let mut later = Eager::new(self.known);
        later.add_stmt(stmt);
        let mut here = self.clone();
        let stays = |e: &Expr| !e.reads_memory();
        here.accessed.extend(later.accessed.into_iter().filter(|(_, indices)| indices.iter().all(stays)));
        here.divisors.extend(later.divisors.into_iter().filter(stays));
        here
    }

    fn add_stmt(&mut self, stmt: &Stmt) {
        match stmt {
            Stmt::Seq(stmts) => stmts.iter().for_each(|s| self.add_stmt(s)),
            Stmt::Allocate { body, .. } | Stmt::Annotate { body, .. } => self.add_stmt(body),
            Stmt::Let { value, body, .. } => {
                self.add(value, &mut Seen::default());
                self.add_stmt(body);
            }
            Stmt::Store { buffer, indices, value } => {
                indices.iter().chain([value]).for_each(|e| self.add(e, &mut Seen::default()));
                self.accessed.insert((buffer.shape.clone(), indices.clone()));
            }
            Stmt::If { cond, .. } => self.add(cond, &mut Seen::default()),
            // A loop may have no iteration, and what follows others need not be reached by all lanes.
            _ => {}
        }
    }

    fn add<'e>(&mut self, expr: &'e Expr, seen: &mut Seen<&'e Expr>) {
        if expr.may_be_shared() && !seen.insert(expr) {
            return;
        }
        if let Some(first) = expr.decider() {
            return self.add(first, seen);
        }
        if let Node::Load(buffer, indices) = expr.node() {
            self.accessed.insert((buffer.shape.clone(), indices.clone()));
        }
        self.divisors.extend(expr.divisor().cloned());
        expr.each_child(|child| self.add(child, seen));
    }

    /// Whether the expression has a value here, with all that stands under conditions in it.
    pub fn is_total(&self, expr: &Expr) -> bool {
        let mut total = true;
        for_each_expr(expr, &mut |e| {
            total = total
                && match e.node() {
                    Node::Load(buffer, indices) => self.is_inside(buffer, indices),
                    _ => e.divisor().is_none_or(|divisor| self.is_not_zero(divisor)),
                };
        });
        total
    }

    /// Whether each quotient in the expression is by what is not zero here; its elements are not looked at.
    pub fn has_quotients(&self, expr: &Expr) -> bool {
        let mut has_all = true;
        for_each_expr(expr, &mut |e| {
            has_all = has_all && e.divisor().is_none_or(|divisor| self.is_not_zero(divisor));
        });
        has_all
    }

    /// Whether nothing that the statement does fails here, where what its own conditions on memory keep out is done too.
    /// What stands under conditions inside its values is looked at where these are made vectors.
    pub fn has_all_of(&self, stmt: &Stmt) -> bool {
        let under = |known: &Analyzer, body: &Stmt| Eager { known, ..self.clone() }.has_all_of(body);
        let place = match stmt {
            Stmt::Store { buffer, indices, .. } => self.is_inside(buffer, indices),
            _ => true,
        };
        let own = stmt_exprs(stmt).into_iter().all(|e| self.has_value(e, &mut Seen::default()));
        place
            && own
            && match stmt {
                Stmt::For { var, min, extent, body, .. } => {
                    under(&with_loop(self.known, var, min, extent), body)
                }
                Stmt::Let { var, value, body } => under(&with_let(self.known, var, value), body),
                Stmt::If { cond, then, otherwise } => {
                    let other = || with_condition(self.known, &cond.clone().logical_not());
                    under(&with_condition(self.known, cond), then)
                        && otherwise.as_ref().is_none_or(|body| under(&other(), body))
                }
                _ => stmt_children(stmt).all(|body| self.has_all_of(body)),
            }
    }

    /// Whether what the expression computes in any case has a value here.
    fn has_value<'e>(&self, expr: &'e Expr, seen: &mut Seen<&'e Expr>) -> bool {
        if expr.may_be_shared() && !seen.insert(expr) {
            return true;
        }
        if let Some(first) = expr.decider() {
            return self.has_value(first, seen);
        }
        match expr.node() {
            Node::Load(buffer, indices) if !self.is_inside(buffer, indices) => return false,
            _ if !expr.divisor().is_none_or(|divisor| self.is_not_zero(divisor)) => return false,
            _ => {}
        }
        expr.children().all(|child| self.has_value(child, seen))
    }

    fn is_not_zero(&self, divisor: &Expr) -> bool {
        match divisor.as_int() {
            Some(divisor) => divisor != 0,
            None => {
                self.divisors.contains(divisor)
                    || self.known.can_prove(&divisor.clone().not_equal(Expr::int_of(0, divisor.dtype())))
            }
        }
    }

    fn is_inside(&self, buffer: &Buffer, indices: &[Expr]) -> bool {
        let is_within = |index: &Expr, extent: &Expr| {
            let constants = extent.as_int().is_some_and(|extent| self.known.is_within(index, 0, extent - 1));
            constants || {
                let (at, extent) = Expr::promoted(index.clone(), extent.clone());
                let zero = Expr::int_of(0, at.dtype());
                self.known.can_prove(&at.clone().ge(zero)) && self.known.can_prove(&at.lt(extent))
            }
        };
        self.accessed.contains(&(buffer.shape.clone(), indices.to_vec()))
            || (indices.len() == buffer.shape.len()
                && indices.iter().zip(&buffer.shape).all(|(index, extent)| is_within(index, extent)))
            || matches!(indices, [place] if self.param_of(buffer).is_some_and(|param| {
                is_element(param, place, self.known, &is_within)
            }))
    }

    /// The parameter with strides whose memory the alias is.
    fn param_of(&self, alias: &Buffer) -> Option<&Buffer> {
        let is_it = |param: &&Buffer| param.data == alias.data && param.dtype == alias.dtype;
        self.params.iter().find(is_it).filter(|param| !param.strides.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use coulis_ir::{DType, MemScope, Var};

    use super::*;

    #[test]
    fn a_division_may_trap_unless_its_divisor_is_a_constant_other_than_0() {
        let [a, b] = ["a", "b"].map(|name| Var::new(name, DType::I64).expr());
        let by = |divisor: i128| a.clone().floordiv(Expr::int_of(divisor, DType::I64));
        assert!(!may_trap(&by(3)) && !may_trap(&by(-1)));
        assert!(may_trap(&by(0)) && may_trap(&a.clone().floormod(b)));
        assert!(!may_trap(&(a.clone().cast(DType::F64) / Expr::float(0.0, DType::F64))));
    }

    #[test]
    fn accesses_are_total_where_ranges_or_accesses_of_the_same_size_vouch_for_them() {
        let (i, n) = (Var::new("i", DType::I32), Var::size("n", DType::I32).expr());
        let [a, b] = ["a", "b"].map(|name| Buffer::new(name, DType::F32, vec![n.clone()], MemScope::Global));
        let small = Buffer::new("s", DType::F32, vec![Expr::int(8)], MemScope::Local);
        let mut known = Analyzer::new();
        known.bind(&i, &Expr::int(0), &Expr::int(8));
        let (here, at) = (Eager::new(&known), i.expr());
        assert!(
            here.is_total(&small.at([at.clone()])) && !here.is_total(&small.at([at.clone() + Expr::int(1)]))
        );
        assert!(!here.is_total(&a.at([at.clone()])));
        assert!(here.beside(&b.at([at.clone()])).is_total(&a.at([at.clone()])));
        let guard = at.clone().lt(n.clone());
        let lazy = Expr::if_then_else(guard, b.at([at.clone()]), Expr::float(0.0, DType::F32));
        assert!(!here.beside(&lazy).is_total(&a.at([at.clone()])), "what is lazy itself vouches for nothing");
        let quotient = at.clone().floordiv(n.clone() - Expr::int(1));
        assert!(!here.is_total(&quotient) && here.beside(&quotient).is_total(&quotient));
        let zero = Expr::float(0.0, DType::F32);
        let store = Stmt::store(&small, vec![at.clone()], quotient.clone().cast(DType::F32));
        assert!(!here.has_all_of(&store) && here.beside(&quotient).has_all_of(&store));
        let j = Var::new("j", DType::I32);
        let over = |n: i32| {
            let of_j = Stmt::store(&small, vec![j.expr()], small.at([at.clone()]));
            Stmt::range(j.clone(), Expr::int(n), of_j)
        };
        assert!(here.has_all_of(&over(8)) && !here.has_all_of(&over(9)));
        let guarded = |cond: Expr| Stmt::if_(cond, Stmt::store(&a, vec![at.clone()], zero.clone()));
        assert!(here.has_all_of(&guarded(at.clone().lt(n.clone()))));
        assert!(!here.has_all_of(&guarded(small.at([at.clone()]).lt(zero.clone()))));
        assert!(here.beside_access(&b, std::slice::from_ref(&at)).is_total(&a.at([at])));
    }

    #[test]
    fn what_a_statement_accesses_in_any_case_is_total_before_it() {
        let (i, n) = (Var::new("i", DType::I32), Var::size("n", DType::I32).expr());
        let of = |name, dtype| Buffer::new(name, dtype, vec![n.clone()], MemScope::Global);
        let [a, places] = [of("a", DType::F32), of("p", DType::I32)];
        let (known, at) = (Analyzer::new(), vec![i.expr()]);
        let (here, x) = (Eager::new(&known), a.at(at.clone()));
        let small = Buffer::new("s", DType::F32, vec![Expr::int(8)], MemScope::Local);
        let store = |value: Expr| Stmt::store(&small, vec![Expr::int(0)], value);
        let both = Stmt::seq([Stmt::NOP, store(x.clone())]);
        assert!(!here.is_total(&x) && here.beside_stmt(&both).is_total(&x));
        assert!(here.beside_stmt(&Stmt::let_(Var::new("v", DType::F32), x.clone(), Stmt::NOP)).is_total(&x));
        let zero = Expr::float(0.0, DType::F32);
        let is_last = i.expr().lt(Expr::int(7));
        let lazy = Expr::if_then_else(is_last.clone(), x.clone(), zero.clone());
        let seldom = [Stmt::if_(is_last, store(x.clone())), store(lazy)];
        assert!(seldom.iter().all(|stmt| !here.beside_stmt(stmt).is_total(&x)));
        // It may store to what tells the place.
        let told = a.at([places.at(at.clone())]);
        assert!(!here.beside_stmt(&store(told.clone())).is_total(&told));
    }

    #[test]
    fn accesses_are_total_where_each_index_of_a_strided_parameter_is_within() {
        let [i, k, stride] = ["i", "k", "stride"].map(|name| Var::new(name, DType::I32));
        let n = Var::size("n", DType::I32).expr();
        let [rows, cols] = [Expr::int(4), n.clone()];
        let param = Buffer::new("a", DType::F32, vec![rows.clone(), cols], MemScope::Global)
            .derive(|b| b.strides = vec![stride.expr(), Expr::int(1)]);
        let alias = param.derive(|b| {
            b.shape = vec![rows * stride.expr()];
            b.strides = Vec::new();
        });
        let mut known = Analyzer::new();
        known.bind(&i, &Expr::int(0), &Expr::int(4));
        known.bind(&k, &Expr::int(0), &n);
        let at = |i: Expr, k: Expr| alias.at([k + i * stride.expr()]);
        let params = [param];
        let here = Eager::new(&known).of(&params);
        assert!(here.is_total(&at(i.expr(), k.expr())));
        assert!(!Eager::new(&known).is_total(&at(i.expr(), k.expr())));
        assert!(!here.is_total(&at(i.expr() + Expr::int(1), k.expr())));
        assert!(!here.is_total(&at(i.expr(), k.expr() + Expr::int(1))));
        assert!(!here.is_total(&at(i.expr(), k.expr() * stride.expr())));
    }
}
