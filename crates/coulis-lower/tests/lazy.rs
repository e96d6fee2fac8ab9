//! What stands under a condition is evaluated in a vector only where it is total.

mod common;

use common::small::{buffer, float, int, size, try_pass, var, vectorized};
use coulis_ir::expr::Expr;
use coulis_ir::print::print_stmt;
use coulis_ir::{Buffer, DType, MemScope, Stmt};

#[test]
fn what_a_condition_guards_is_not_read_for_lanes_that_it_excludes() {
    let (b, x) = (var("b"), var("x"));
    let i = || b.expr() * int(4) + x.expr();
    let (a, s, t) = (buffer("A", 16), buffer("S", 16), buffer("T", 24));
    let local = Buffer::new("L", DType::F32, vec![int(16)], MemScope::Local);
    let lanes = |store: Stmt| Stmt::range(b.clone(), int(4), vectorized(&x, 4, store));
    let vectorizes = |store: Stmt| {
        let done = try_pass("vectorize_loops", lanes(store)).expect("the pass runs");
        !print_stmt(&done).contains("x_s")
    };
    let choice =
        |cond: Expr, value: Expr| Stmt::store(&s, vec![i()], Expr::if_then_else(cond, value, float(0.0)));
    let below = |distance: i32| (i() + int(distance)).lt(int(16));
    let positive = |value: Expr| float(0.0).lt(value);
    let ahead = |of: &Buffer| of.at([i() + int(2)]);
    // Out of bounds for lanes that the left side excludes, under `and`, `or` and in all memory.
    assert!(!vectorizes(choice(below(2).and(positive(ahead(&a))), float(1.0))));
    assert!(!vectorizes(choice(below(2).logical_not().or(positive(ahead(&a))), float(1.0))));
    assert!(!vectorizes(choice(below(2), ahead(&a))));
    assert!(!vectorizes(choice(below(2), ahead(&local))));
    // Inside for all lanes, by their ranges or by an access of as many elements.
    assert!(vectorizes(choice(below(2).and(positive(ahead(&t))), float(1.0))));
    assert!(vectorizes(choice(positive(s.at([i()])).and(positive(a.at([i()]))), a.at([i()]))));
    assert!(vectorizes(choice(positive(s.at([i()])), local.at([i()]))));
    let (n, m) = (size("n"), var("m"));
    let [u, v] = ["U", "V"].map(|name| buffer(name, n.clone()));
    let at = || m.expr() + x.expr();
    let both = positive(u.at([at()])).and(positive(v.at([at()])));
    assert!(vectorizes(Stmt::store(&s, vec![i()], Expr::if_then_else(both, v.at([at()]), float(0.0)))));
    // A division that the left side allows.
    let divisor = Buffer::new("D", DType::I32, vec![int(16)], MemScope::Global);
    let d = || divisor.at([i()]);
    let quotient = d().not_equal(int(0)).and(int(8).floordiv(d()).gt(int(2)));
    assert!(!vectorizes(choice(quotient, float(1.0))));
}
