//! A branch whose bodies begin alike.

use coulis_ir::struct_eq::stmts_equal;
use coulis_ir::{Expr, Stmt};

/// A branch on what its bodies do not change. What both begin with stands once, in front of it: the iterations that need no
/// guard in either are most of the work, and writing them twice is most of the time that a compiler takes for the text.
pub fn branch(cond: Expr, then: Stmt, otherwise: Stmt) -> Stmt {
    let steps = |stmt: Stmt| match stmt {
        Stmt::Seq(stmts) => stmts,
        other => vec![other],
    };
    let (mut before, mut otherwise) = (steps(then), steps(otherwise));
    let n_alike = before.iter().zip(&otherwise).take_while(|(a, b)| stmts_equal(a, b)).count();
    // Something is left to decide.
    let n_alike = n_alike.min(before.len().saturating_sub(1)).min(otherwise.len().saturating_sub(1));
    let then = Box::new(Stmt::seq(before.split_off(n_alike)));
    let otherwise = Some(Box::new(Stmt::seq(otherwise.split_off(n_alike))));
    before.push(Stmt::If { cond, then, otherwise });
    Stmt::seq(before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use coulis_ir::print::print_stmt;
    use coulis_ir::{Buffer, DType, MemScope, Var};

    #[test]
    fn what_both_bodies_begin_with_stands_once_in_front_of_the_branch() {
        let int = |n: i32| Expr::int(n);
        let b = Buffer::new("B", DType::I32, vec![int(64)], MemScope::Global);
        // Each with a variable of its own.
        let fill = |n: i32, value: i32| {
            let i = Var::new("i", DType::I32);
            Stmt::range(i.clone(), int(n), Stmt::store(&b, vec![i.expr()], int(value)))
        };
        let block = Var::new("block", DType::I32);
        let text = |then: Vec<Stmt>, otherwise: Vec<Stmt>| {
            print_stmt(&branch(block.expr().lt(int(3)), Stmt::seq(then), Stmt::seq(otherwise)))
        };
        let shared = text(vec![fill(8, 1), fill(4, 2)], vec![fill(8, 1), fill(3, 2), fill(1, 3)]);
        assert!(
            shared.starts_with("for i in range(8):") && shared.matches("range(8)").count() == 1,
            "{shared}"
        );
        assert_eq!(shared.matches("if block < 3:").count(), 1, "{shared}");
        // Loops of other lengths or values are not alike, and a body that is all alike keeps its last statement.
        assert!(
            text(vec![fill(8, 1), fill(4, 2)], vec![fill(8, 2), fill(4, 2)]).starts_with("if block < 3:")
        );
        assert!(text(vec![fill(8, 1)], vec![fill(8, 1), fill(1, 3)]).starts_with("if block < 3:"));
        assert!(text(Vec::new(), vec![fill(8, 1)]).starts_with("if block < 3:"));
    }
}
