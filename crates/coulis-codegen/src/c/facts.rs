//! What is known of variables where text is written, worked out when something asks: most branches and names
//! are written without a question.

use std::cell::OnceCell;
use std::rc::Rc;

use coulis_ir::simplify::Analyzer;
use coulis_ir::{Expr, Var};

/// Facts in the order of the text, outer ones first.
#[derive(Clone, Debug, Default)]
pub struct Facts(Rc<Known>);

#[derive(Debug, Default)]
struct Known {
    /// The last fact, and those before it.
    last: Option<(Fact, Facts)>,
    analyzer: OnceCell<Analyzer>,
}

#[derive(Debug)]
enum Fact {
    /// The condition holds.
    Holds(Expr),
    /// The variable is in `[min, min + extent)`.
    InRange(Var, Expr, Expr),
    /// The variable is equal to the value.
    IsValue(Var, Expr),
}

impl Facts {
    /// The analyzer that knows them.
    pub fn analyzer(&self) -> &Analyzer {
        self.0.analyzer.get_or_init(|| {
            let Some((fact, before)) = &self.0.last else { return Analyzer::new() };
            let mut known = before.analyzer().clone();
            match fact {
                Fact::Holds(cond) => known.assume(cond),
                Fact::InRange(var, min, extent) => known.bind(var, min, extent),
                Fact::IsValue(var, value) => known.bind_value(var, value),
            }
            known
        })
    }

    fn and(&self, fact: Fact) -> Facts {
        Facts(Rc::new(Known { last: Some((fact, self.clone())), analyzer: OnceCell::new() }))
    }

    /// With a condition that holds.
    pub fn with(&self, cond: &Expr) -> Facts {
        self.and(Fact::Holds(cond.clone()))
    }

    /// With a variable in `[min, min + extent)`.
    pub fn with_range(&self, var: &Var, min: &Expr, extent: &Expr) -> Facts {
        self.and(Fact::InRange(var.clone(), min.clone(), extent.clone()))
    }

    /// With a variable that is equal to the value.
    pub fn with_value(&self, var: &Var, value: &Expr) -> Facts {
        self.and(Fact::IsValue(var.clone(), value.clone()))
    }
}

#[cfg(test)]
mod tests {
    use coulis_ir::DType;

    use super::*;

    #[test]
    fn what_is_known_inside_is_not_known_outside_whoever_asks_first() {
        let (i, n) = (Var::new("i", DType::I32), Var::new("n", DType::I32));
        let outside = Facts::default().with_range(&i, &Expr::int(0), &Expr::int(10));
        let inside = outside.with(&i.expr().lt(Expr::int(4))).with_value(&n, &(i.expr() * Expr::int(2)));
        let check = |facts: &Facts, var: &Var, want| {
            assert_eq!(facts.analyzer().const_bounds(&var.expr()), want);
        };
        for _ in 0..2 {
            check(&inside, &n, (Some(0), Some(6)));
            check(&outside, &n, (None, None));
            check(&inside, &i, (Some(0), Some(3)));
            check(&outside, &i, (Some(0), Some(9)));
            check(&Facts::default(), &i, (None, None));
        }
    }
}
