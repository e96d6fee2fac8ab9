//! Conditions decided value by value: those on an index of few values that stands in them both whole and
//! divided, as that of a few blocks which share the steps of a loop. Bounds of the two parts, each by itself,
//! say too little.

use super::Analyzer;
use crate::expr::{BinaryOp, Expr, Node, Var};
use crate::hash::FastMap;
use crate::visit::{for_each_expr, substitute_expr};

/// Most values that are tried.
const FEW: i128 = 8;

impl Analyzer {
    /// Whether the bool expression fails for every value of such an index. `false` means not shown, as where there is none.
    pub fn fails_in_each_case(&self, cond: &Expr) -> bool {
        let mut divided: Vec<Var> = Vec::new();
        for_each_expr(cond, &mut |e| {
            if let Node::Binary(BinaryOp::FloorDiv | BinaryOp::FloorMod, dividend, _) = e.node() {
                each_variable(dividend, &mut |var| divided.push(var.clone()));
            }
        });
        divided.iter().any(|index| {
            let mut n_uses = 0;
            each_variable(cond, &mut |var| n_uses += usize::from(var == index));
            let (Some(least), Some(most)) = self.const_bounds(&index.expr()) else { return false };
            let fails = |value: i128| {
                let value = Expr::int_of(value, index.dtype());
                let case = substitute_expr(cond, &FastMap::from_iter([(index.clone(), value)]));
                self.simplify(&case).is_int(0)
            };
            n_uses > 1 && most - least < FEW && (least..=most).all(fails)
        })
    }
}

fn each_variable(expr: &Expr, see: &mut impl FnMut(&Var)) {
    for_each_expr(expr, &mut |e| {
        if let Node::Var(var) = e.node() {
            see(var);
        }
    });
}
