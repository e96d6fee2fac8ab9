//! What stands under a condition is evaluated in a vector only where it is total.

mod common;

use common::cpu;
use common::small::{buffer, float, int, size, try_pass, var, vectorized};
use coulis_ir::expr::Expr;
use coulis_ir::print::{print_kernel, print_stmt};
use coulis_ir::{Buffer, DType, MemScope, Stmt};
use coulis_lower::{Options, lower};
use coulis_script::parse_module;

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
    // By an access of a statement behind it, which lanes reach whatever is kept for it.
    let kept = var("kept");
    let is_greater = below(2).and(u.at([at()]).gt(s.at([i()])));
    let behind = |read: &Buffer, at: Expr| {
        let body = [
            Stmt::store(&s, vec![i()], read.at([at])),
            Stmt::store(&t, vec![i()], kept.expr().cast(DType::F32)),
        ];
        Stmt::let_(kept.clone(), Expr::select(is_greater.clone(), int(1), int(0)), Stmt::seq(body))
    };
    assert!(vectorizes(behind(&u, at())));
    assert!(!vectorizes(behind(&u, at() + int(1))));
    // A division that the left side allows.
    let divisor = Buffer::new("D", DType::I32, vec![int(16)], MemScope::Global);
    let d = || divisor.at([i()]);
    let quotient = d().not_equal(int(0)).and(int(8).floordiv(d()).gt(int(2)));
    assert!(!vectorizes(choice(quotient, float(1.0))));
    // One in an arm of a selection, by what may be 0 there and by what is not.
    let o = Buffer::new("O", DType::I32, vec![int(16)], MemScope::Global);
    let by = |divisor: Expr| {
        let arm = Expr::select(d().not_equal(int(0)), int(8).floordiv(divisor), int(0));
        Stmt::store(&o, vec![i()], arm)
    };
    assert!(!vectorizes(by(d())));
    assert!(vectorizes(by(int(3))));
}

#[test]
fn lanes_that_a_cut_loop_keeps_inside_are_read_at_once() {
    // The length of a loop that is cut at a guard has a name, by which the lanes are shown to be inside their memory.
    let text = "
@T.prim_func
def f(A: T.handle, S: T.handle):
    n = T.int32(is_size_var=True)
    A_1 = T.match_buffer(A, (n, 23))
    S_1 = T.match_buffer(S, (n, 16))
    for i in range((n + 7) // 8):
        for j in range(8):
            for k in T.vectorized(16):
                if T.likely(i * 8 + j < n):
                    S_1[i * 8 + j, k] = T.if_then_else(k >= 9, A_1[i * 8 + j, k + 7], T.float32(0))
";
    let kernel = parse_module(text).expect("the text parses").remove(0);
    let options = Options { target: &cpu(), simple_mode: false };
    let printed = print_kernel(&lower(kernel, &options, &mut |_, _| {}).expect("the kernel lowers"));
    assert!(printed.contains("T.Select(T.Ramp(0, 1, 16) >= T.Broadcast(9, 16)"), "{printed}");
    assert!(!printed.contains("if_then_else"), "{printed}");
}

#[test]
fn scalar_selects_that_read_memory_or_divide_become_lazy() {
    let i = var("i");
    let (a, b) = (buffer("A", 4), buffer("B", 4));
    let c = Buffer::new("C", DType::I32, vec![int(4)], MemScope::Global);
    let below = || i.expr().lt(int(2));
    let made = |store: Stmt| print_stmt(&try_pass("rewrite_unsafe_select", store).expect("the pass runs"));
    let read = Expr::select(below(), a.at([i.expr()]), float(0.0));
    let read = made(Stmt::store(&b, vec![i.expr()], read));
    assert_eq!(read.trim(), "B[i] = T.if_then_else(i < 2, A[i], T.float32(0))");
    let by = |divisor: Expr| Expr::select(below(), int(12).floordiv(divisor), int(0));
    let divided = |divisor: Expr| made(Stmt::store(&c, vec![i.expr()], by(divisor)));
    assert_eq!(divided(i.expr()).trim(), "C[i] = T.if_then_else(i < 2, 12 // i, 0)");
    assert_eq!(divided(int(5)).trim(), "C[i] = T.Select(i < 2, T.FloorDiv(12, 5), 0)");
}

#[test]
fn masked_rows_of_strided_arrays_are_vectors() {
    let text = "@T.prim_func
def masked(A: T.handle, W: T.handle, O: T.Buffer((4, 16), \"float32\")):
    n = T.int64(is_size_var=True)
    A_1 = T.match_buffer(A, (T.int64(4), n), strides=(\"stride\", T.int64(1)))
    W_1 = T.match_buffer(W, (T.int64(4), n), \"bool\", strides=(\"stride\", T.int64(1)))
    for i in range(T.int64(4)):
        for k in range((n + T.int64(15)) // T.int64(16)):
            for x in T.vectorized(T.int64(16)):
                if T.likely(k * T.int64(16) + x < n and W_1[i, k * T.int64(16) + x]):
                    O[i, x] = O[i, x] + A_1[i, k * T.int64(16) + x]
";
    let kernel = parse_module(text).expect("the text parses").remove(0);
    let target = cpu();
    let options = Options { target: &target, simple_mode: false };
    let lowered = lower(kernel, &options, &mut |_, _| {}).expect("the kernel lowers");
    let printed = print_kernel(&lowered);
    assert!(printed.contains(" = T.Select(W_1_1["), "{printed}");
}
