//! The same fold with another state than the program writes: a wider one, and one that knows places.
//!
//! Results stay those of the program. Whoever makes loops of a fold asks for these: contracts N4 and N9.

use coulis_ir::hash::FastMap;
use coulis_ir::visit::{substitute_expr, uses_any};
use coulis_ir::{BinaryOp, Claims, DType, Expr, Lambda, Node, Var};
use coulis_reducers::WideState;

use crate::axis::IterVar;
use crate::reduction::{Reduction, position_in};

impl Reduction {
    /// The same fold with its accumulators as wide as contract N4 has them: see [`WideState`]. The results are converted to
    /// their own types once, by whoever stores them. What is only cheaper than to combine, steps and short runs, is for the
    /// state that is declared and goes. `None` where the state is as it should be: extrema, integers, wider floats.
    pub fn accumulating(&self) -> Option<Reduction> {
        let wide = WideState::of(&self.combine, &self.identity)?;
        Some(Reduction {
            sources: wide.values(&self.sources),
            init: wide.values(&self.init),
            combine: wide.combine,
            identity: wide.identity,
            step: None,
            step_needs_ascending: false,
            quick: None,
            settled: None,
            ..self.clone()
        })
    }

    /// The same fold with its results in any order of its points, of a reducer that selects one of two states and tells left
    /// from right only where it could select either: one more field says where the state's element stands, and the state
    /// that stands first is taken as the left one. The new field is the last one, and no result. `None` of other reducers,
    /// and where positions do not ascend with the axes as listed, since an extent depends on another axis.
    pub fn in_any_order(&self) -> Option<Reduction> {
        let n = self.arity();
        let (left, right) = self.combine.params.split_at_checked(n)?;
        let mut selects: Option<Expr> = None;
        for (field, value) in self.combine.body.iter().enumerate() {
            let (l, r) = (left.get(field), right.get(field));
            let (condition, a, b) = match value.node() {
                Node::Select(condition, a, b) | Node::IfThenElse(condition, a, b) => (condition, a, b),
                // The value of either.
                Node::Binary(BinaryOp::Min | BinaryOp::Max, a, b) if a.as_var() == l && b.as_var() == r => {
                    continue;
                }
                _ => return None,
            };
            let keeps_left = match (a.as_var(), b.as_var()) {
                (a, b) if a == l && b == r => condition.clone(),
                (a, b) if a == r && b == l => condition.clone().logical_not(),
                _ => return None,
            };
            if selects.get_or_insert_with(|| keeps_left.clone()) != &keeps_left {
                return None;
            }
        }
        let of_axes: Vec<Var> = self.axes.iter().map(|axis| axis.var().clone()).collect();
        let is_even = |axis: &IterVar| axis.dom().is_none_or(|(_, extent)| !uses_any(extent, &of_axes));
        if !self.claims.associative || self.step.is_some() || !self.axes.iter().all(is_even) {
            return None;
        }
        let keeps_left = selects?;
        let swapped: FastMap<Var, Expr> = (left.iter().zip(right))
            .flat_map(|(l, r)| [(l.clone(), r.expr()), (r.clone(), l.expr())])
            .collect();
        let keeps_right = substitute_expr(&keeps_left, &swapped);
        let [x, y] = ["x_position", "y_position"].map(|name| Var::new(name, DType::I64));
        let in_order = x.expr().le(y.expr()).and(keeps_left);
        let keep = in_order.or(x.expr().gt(y.expr()).and(keeps_right.logical_not()));
        let pairs = left.iter().chain([&x]).zip(right.iter().chain([&y]));
        let select = |(field, (l, r)): (usize, (&Var, &Var))| match self.combine.body.get(field) {
            Some(value) if matches!(value.node(), Node::Binary(..)) => value.clone(),
            _ => Expr::select(keep.clone(), l.expr(), r.expr()),
        };
        let body = pairs.enumerate().map(select).collect();
        let params = left.iter().chain([&x]).chain(right).chain([&y]).cloned().collect();
        // What a fold starts from stands before all elements.
        let before = |values: &[Expr]| -> Vec<Expr> {
            values.iter().cloned().chain([Expr::int_of(-1, DType::I64)]).collect()
        };
        let sources = self.sources.iter().cloned().chain([position_in(&self.axes)]).collect();
        Some(Reduction {
            combine: Lambda { params, body },
            identity: before(&self.identity),
            sources,
            init: if self.init.is_empty() { Vec::new() } else { before(&self.init) },
            settled: None,
            claims: Claims { commutative: true, ..self.claims },
            ..self.clone()
        })
    }
}
