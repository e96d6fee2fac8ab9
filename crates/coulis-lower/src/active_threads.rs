//! Which threads of a block, and blocks of a cluster, reach a place in a kernel, from the conditions and loops around it.

use coulis_ir::hash::{FastMap, FastSet};

use coulis_ir::eval::{Env, Value, eval_expr};
use coulis_ir::expr::{BinaryOp, Expr, Node, Var};
use coulis_ir::print::print_expr;
use coulis_ir::simplify::Analyzer;
use coulis_ir::visit::{for_each_expr, substitute_expr, uses_any};
use coulis_ir::{DType, ThreadTag};
use coulis_tile::{ActiveSet, Block};

/// What stands around a statement.
#[derive(Default)]
pub(crate) struct Around {
    guards: Vec<Guard>,
    /// Values of names, without loads.
    names: FastMap<Var, Expr>,
    /// Names of values that come from memory.
    loaded: FastSet<Var>,
}

enum Guard {
    /// The condition, and whether it holds or fails here.
    Cond(Expr, bool),
    /// The extent of a loop.
    Extent(Expr),
}

impl Around {
    /// Enters a branch whose condition holds, or fails.
    pub(crate) fn under(&mut self, cond: &Expr, holds: bool) {
        self.guards.push(Guard::Cond(cond.clone(), holds));
    }

    /// Enters a loop of that extent.
    pub(crate) fn looped(&mut self, extent: &Expr) {
        self.guards.push(Guard::Extent(extent.clone()));
    }

    /// Leaves the innermost condition or loop.
    pub(crate) fn leave(&mut self) {
        self.guards.pop();
    }

    /// Whether a loop stands around.
    pub(crate) fn is_in_loop(&self) -> bool {
        self.guards.iter().any(|guard| matches!(guard, Guard::Extent(_)))
    }

    /// Notes the value of a name.
    pub(crate) fn name(&mut self, var: &Var, value: &Expr) {
        let value = substitute_expr(value, &self.names);
        if self.is_loaded(&value) {
            self.loaded.insert(var.clone());
        } else {
            self.names.insert(var.clone(), value);
        }
    }

    /// Whether nothing tells the values of an index apart: no condition around looks at it, and none of these values.
    pub(crate) fn is_unseen(&self, index: &Var, values: &[&Expr]) -> bool {
        let sees = |expr: &Expr| {
            let value = substitute_expr(expr, &self.names);
            self.is_loaded(&value) || uses_any(&value, std::slice::from_ref(index))
        };
        let guards = self.guards.iter().map(|guard| match guard {
            Guard::Cond(expr, _) | Guard::Extent(expr) => expr,
        });
        !guards.chain(values.iter().copied()).any(sees)
    }

    /// The condition, or the extent of a loop, by which blocks of a cluster may part ways.
    pub(crate) fn splits_cluster(&self, launches: &[(ThreadTag, Var, Expr)]) -> Option<String> {
        let guards = self.guards.iter().map(|guard| match guard {
            Guard::Cond(expr, _) | Guard::Extent(expr) => expr,
        });
        let split = guards.into_iter().find(|expr| self.differs_in_cluster(expr, launches))?;
        Some(format!("`{}`, which may differ between them", print_expr(split)))
    }

    /// Whether a value may differ between blocks of a cluster.
    pub(crate) fn differs_in_cluster(&self, expr: &Expr, launches: &[(ThreadTag, Var, Expr)]) -> bool {
        let value = substitute_expr(expr, &self.names);
        if self.is_loaded(&value) {
            return true;
        }
        let mut known = Analyzer::new();
        let mut split = FastMap::default();
        let mut places = Vec::new();
        for (tag, var, extent) in launches.iter().filter(|(tag, ..)| tag.is_of_cluster()) {
            let Some(size) = extent.as_int().filter(|n| *n > 1) else { continue };
            let place = Var::size("place", DType::I32);
            known.bind(&place, &Expr::int(0), &Expr::int_of(size, DType::I32));
            split.insert(var.clone(), place.expr().cast(var.dtype()));
            let grid = launches.iter().find(|(other, ..)| Some(*other) == tag.grid_tag());
            if let Some((_, block, grid)) = grid {
                // The number of the cluster, and the block's place in it.
                let number = Var::size("number", block.dtype());
                let size = Expr::int_of(size, block.dtype());
                let clusters = grid.clone().cast(block.dtype()).floordiv(size.clone());
                known.bind(&number, &Expr::int_of(0, block.dtype()), &clusters);
                split.insert(block.clone(), number.expr() * size + place.expr().cast(block.dtype()));
            }
            places.push(place);
        }
        uses_any(&known.simplify(&substitute_expr(&value, &split)), &places)
    }

    /// The value for each thread of a block, where what else is in it is taken for 0; `None` where memory is read.
    pub(crate) fn values(
        &self,
        expr: &Expr,
        block: &Block,
        launches: &[(ThreadTag, Var, Expr)],
    ) -> Option<Vec<Value>> {
        let value = substitute_expr(expr, &self.names);
        if self.is_loaded(&value) {
            return None;
        }
        let mut env = Env::new();
        for_each_expr(&value, &mut |e| {
            if let Some(var) = e.as_var() {
                env.set(var, Value::Int(0));
            }
        });
        let of = Of { around: self, block, launches, warp: 1 };
        of.for_threads(&value, env)
    }

    fn is_loaded(&self, expr: &Expr) -> bool {
        let mut loads = false;
        for_each_expr(expr, &mut |e| {
            loads |=
                matches!(e.node(), Node::Load(..)) || e.as_var().is_some_and(|v| self.loaded.contains(v));
        });
        loads
    }

    /// The threads of the block that come. `launches` are all hardware indices around.
    pub(crate) fn active(&self, block: &Block, launches: &[(ThreadTag, Var, Expr)], warp: u32) -> ActiveSet {
        let mut set = ActiveSet::all(block.n_threads());
        let of = Of { around: self, block, launches, warp };
        for guard in &self.guards {
            set = match guard {
                Guard::Cond(cond, holds) => {
                    of.parts(cond, *holds).iter().fold(set, |set, part| of.decide(set, part, *holds))
                }
                Guard::Extent(extent) => of.undecided(set, extent),
            };
        }
        set
    }
}

/// A question about one call.
struct Of<'a> {
    around: &'a Around,
    block: &'a Block,
    launches: &'a [(ThreadTag, Var, Expr)],
    warp: u32,
}

impl Of<'_> {
    /// The conditions that all hold (or all fail) where this one holds (or fails).
    fn parts(&self, cond: &Expr, holds: bool) -> Vec<Expr> {
        match cond.node() {
            Node::Binary(BinaryOp::And, a, b) if holds => [self.parts(a, true), self.parts(b, true)].concat(),
            Node::Binary(BinaryOp::Or, a, b) if !holds => {
                [self.parts(a, false), self.parts(b, false)].concat()
            }
            Node::Call(coulis_ir::Intrinsic::Likely, args) if args.len() == 1 => self.parts(&args[0], holds),
            _ => vec![cond.clone()],
        }
    }

    fn decide(&self, set: ActiveSet, cond: &Expr, holds: bool) -> ActiveSet {
        let value = substitute_expr(cond, &self.around.names);
        if self.is_uniform(&value) {
            return set;
        }
        match self.passes(&value, holds) {
            Some(passes) => {
                let text = print_expr(cond);
                set.restricted(&if holds { text } else { format!("not ({text})") }, &passes)
            }
            None => self.undecided(set, cond),
        }
    }

    fn undecided(&self, set: ActiveSet, expr: &Expr) -> ActiveSet {
        let value = substitute_expr(expr, &self.around.names);
        if self.is_uniform(&value) { set } else { set.under(&print_expr(expr), self.grain(&value)) }
    }

    /// Whether the value is one for all threads of a block.
    fn is_uniform(&self, expr: &Expr) -> bool {
        let mut differs = self.around.is_loaded(expr);
        for_each_expr(expr, &mut |e| differs |= e.as_var().is_some_and(|v| self.is_index(v)));
        !differs
    }

    fn is_index(&self, var: &Var) -> bool {
        self.launches.iter().any(|(tag, own, _)| own == var && tag.is_thread())
    }

    /// For each thread whether the condition holds (or fails), where its number decides.
    fn passes(&self, cond: &Expr, holds: bool) -> Option<Vec<bool>> {
        let values = self.for_threads(cond, Env::new())?;
        Some(values.iter().map(|value| value.is_true() == holds).collect())
    }

    /// The value for each thread, where its number and `env` decide.
    fn for_threads(&self, expr: &Expr, mut env: Env) -> Option<Vec<Value>> {
        let mut value_for = |thread: u32| {
            for (index, weight) in self.block.indices() {
                let value = thread / weight % index.extent;
                env.set(&index.var, Value::Int(i128::from(value)));
            }
            for (_, var, extent) in self.launches {
                if extent.is_int(1) {
                    env.set(var, Value::Int(0));
                }
            }
            eval_expr(expr, &mut env).ok()
        };
        (0..self.block.n_threads()).map(&mut value_for).collect()
    }

    /// Consecutive threads, aligned at multiples of their number, for which the value is surely the same.
    fn grain(&self, expr: &Expr) -> u32 {
        if self.around.is_loaded(expr) {
            return 1;
        }
        let n_threads = self.block.n_threads();
        let varying: Vec<(&coulis_tile::ThreadIndex, u32)> =
            self.block.indices().filter(|(index, _)| index.extent > 1).collect();
        // Indices that the value does not look at may run freely.
        let mut used = Vec::new();
        for_each_expr(expr, &mut |e| used.extend(e.as_var().cloned()));
        let first = varying.iter().find(|(index, _)| used.contains(&index.var));
        let Some((index, weight)) = first else { return n_threads };
        let mut wide = [4 * self.warp, self.warp].into_iter().chain([64, 32, 16, 8, 4, 2]);
        let zero = Expr::int_of(0, index.var.dtype());
        let constant = |n: u32| Expr::int_of(i128::from(n), index.var.dtype());
        let alike = |n: &u32| {
            if *n >= index.extent || !index.extent.is_multiple_of(*n) {
                return false;
            }
            let (high, low) = (Var::size("high", index.var.dtype()), Var::size("low", index.var.dtype()));
            let mut known = Analyzer::new();
            known.bind(&high, &zero, &constant(index.extent / n));
            known.bind(&low, &zero, &constant(*n));
            let number = high.expr() * constant(*n) + low.expr();
            let split = substitute_expr(expr, &FastMap::from_iter([(index.var.clone(), number)]));
            !coulis_ir::visit::uses_any(&known.simplify(&split), &[low])
        };
        weight * wide.find(alike).unwrap_or(1)
    }
}
