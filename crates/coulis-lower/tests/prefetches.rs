//! What loops under a prefetch pragma ask for, as text.

mod common;

use common::small::{buffer, float, int, size, try_pass, var};
use coulis_ir::expr::{Expr, Var};
use coulis_ir::print::print_stmt;
use coulis_ir::{Attr, DType, Stmt};

#[track_caller]
fn check(body: Stmt, want: &str) {
    let got = print_stmt(&try_pass("insert_prefetches", body).expect("the pass runs"));
    assert_eq!(got.trim_end(), want.trim(), "found:\n{got}");
}

fn under_prefetch(distance: i64, loop_: Stmt) -> Stmt {
    under("pragma_prefetch", distance, loop_)
}

fn under(key: &str, distance: i64, loop_: Stmt) -> Stmt {
    let (key, value) = (key.to_owned(), Attr::Int(distance));
    Stmt::Annotate { node: None, key, value, body: Box::new(loop_) }
}

#[test]
fn a_loop_asks_for_each_line_of_a_later_iteration_once() {
    let (m, k) = (size("m"), var("k"));
    let (a, b) = (buffer("A", m.clone()), buffer("B", 96));
    let ramp = |base: Expr| Expr::ramp(base, int(1), 16);
    // Two neighbouring vectors, half a line beyond a third, and one elsewhere.
    let at = |offset: i32| k.expr() * int(256) + int(offset);
    let stores = [8, 24, 32, 136]
        .map(|offset| Stmt::store(&b, vec![ramp(int(0))], Expr::load(a.clone(), vec![ramp(at(offset))])));
    let body = Stmt::range(k.clone(), m.floordiv(int(256)), Stmt::seq(stores));
    check(
        under_prefetch(2, body),
        "
for k in range(m // 256):
    T.prefetch(A[k * 256 + 520])
    T.prefetch(A[k * 256 + 536])
    T.prefetch(A[k * 256 + 552])
    T.prefetch(A[k * 256 + 648])
    B[0:16] = A[k * 256 + 8:k * 256 + 8 + 16]
    B[0:16] = A[k * 256 + 24:k * 256 + 24 + 16]
    B[0:16] = A[k * 256 + 32:k * 256 + 32 + 16]
    B[0:16] = A[k * 256 + 136:k * 256 + 136 + 16]
",
    );
}

#[test]
fn lines_are_asked_for_into_the_second_level_cache() {
    let (m, k) = (size("m"), var("k"));
    let (a, b) = (buffer("A", m.clone()), buffer("B", 1));
    let read = Stmt::store(&b, vec![int(0)], Expr::load(a, vec![k.expr() * int(32)]));
    check(
        under("pragma_prefetch_l2", 3, Stmt::range(k.clone(), m.floordiv(int(32)), read)),
        "
for k in range(m // 32):
    T.prefetch_l2(A[k * 32 + 96])
    B[0] = A[k * 32]
",
    );
}

#[test]
fn rows_walked_side_by_side_are_asked_for_a_line_further_ahead_each() {
    let (m, k) = (size("m"), var("k"));
    let (a, b) = (buffer("A", m.clone()), buffer("B", 16));
    let ramp = |base: Expr| Expr::ramp(base, int(1), 16);
    // Two rows of a known distance and one of another, of which each iteration reads `step` elements.
    let text = |key: &str, step: i32| {
        let rows = [k.expr() * int(step), k.expr() * int(step) + int(1024), k.expr() * int(step) + m.clone()];
        let reads =
            rows.map(|row| Stmt::store(&b, vec![ramp(int(0))], Expr::load(a.clone(), vec![ramp(row)])));
        let body = Stmt::range(k.clone(), int(64), Stmt::seq(reads));
        print_stmt(&try_pass("insert_prefetches", under(key, 4, body)).expect("the pass runs"))
    };
    let lines = |text: String| {
        let hints = text.lines().filter(|line| line.contains("T.prefetch"));
        hints.map(|line| line.trim().to_owned()).collect::<Vec<_>>()
    };
    let near =
        ["T.prefetch(A[k * 16 + 64])", "T.prefetch(A[k * 16 + 1104])", "T.prefetch(A[k * 16 + m + 96])"];
    assert_eq!(lines(text("pragma_prefetch", 16)), near);
    let far = [
        "T.prefetch_l2(A[k * 16 + 64])",
        "T.prefetch_l2(A[k * 16 + 1088])",
        "T.prefetch_l2(A[k * 16 + m + 64])",
    ];
    assert_eq!(lines(text("pragma_prefetch_l2", 16)), far);
    // What is a line behind a piece that the next iteration does not follow is no part of a row.
    let pieces =
        ["T.prefetch(A[k * 32 + 128])", "T.prefetch(A[k * 32 + 1152])", "T.prefetch(A[k * 32 + m + 128])"];
    assert_eq!(lines(text("pragma_prefetch", 32)), pieces);
}

#[test]
fn what_lies_some_bytes_behind_is_asked_for_once_in_all_parts_of_an_iteration() {
    let (m, k) = (size("m"), var("k"));
    let (a, b) = (buffer("A", m.clone()), buffer("B", 16));
    let ramp = |base: Expr| Expr::ramp(base, int(1), 16);
    let at = |e: Expr| Stmt::store(&b, vec![ramp(int(0))], Expr::load(a.clone(), vec![ramp(e)]));
    let row = || k.expr() * int(100);
    let rest = |v: &Var| row() + v.expr() * int(16) + int(16);
    let [first, again, apart] = ["u", "v", "w"].map(var);
    let loop_ = |v: &Var, n: i32, body: Stmt| Stmt::range(v.clone(), int(n), body);
    let body = Stmt::seq([
        at(row()),
        loop_(&first, 4, at(rest(&first))),
        loop_(&again, 5, at(row() + again.expr() * int(16))),
        // What it reads besides lies behind the others.
        loop_(&apart, 2, at(rest(&apart) + int(48))),
    ]);
    let rows =
        |bytes: i64| under("pragma_prefetch_bytes", bytes, Stmt::range(k.clone(), m.clone(), body.clone()));
    check(
        rows(4096),
        "
for k in range(m):
    T.prefetch(A[k * 100 + 1024])
    B[0:16] = A[k * 100:k * 100 + 16]
    for u in range(4):
        T.prefetch(A[k * 100 + u * 16 + 1040])
        B[0:16] = A[k * 100 + u * 16 + 16:k * 100 + u * 16 + 16 + 16]
    for v in range(5):
        B[0:16] = A[k * 100 + v * 16:k * 100 + v * 16 + 16]
    for w in range(2):
        T.prefetch(A[k * 100 + w * 16 + 1088])
        B[0:16] = A[k * 100 + w * 16 + 16 + 48:k * 100 + w * 16 + 16 + 48 + 16]
",
    );
    let text = |bytes: i64| print_stmt(&try_pass("insert_prefetches", rows(bytes)).expect("the pass runs"));
    assert_eq!(text(16 << 10).matches("T.prefetch(").count(), 3);
    assert_eq!(text((16 << 10) + 4).matches("T.prefetch_l2(").count(), 3, "not into the first-level cache");
    assert!(!text(0).contains("prefetch"));
}

#[test]
fn pieces_of_rows_that_are_one_stretch_together_are_asked_for_front_to_back() {
    let (m, k, v) = (size("m"), var("k"), var("v"));
    let (a, b) = (buffer("A", m.clone()), buffer("B", 16));
    // Two rows of `row` elements in each iteration, of which a turn of the loop below reads a line each.
    let rows = |row: i32| {
        let ramp = |base: Expr| Expr::ramp(base, int(1), 16);
        let at = |r: i32| k.expr() * int(2 * row) + v.expr() * int(16) + int(r * row + 8);
        let stores =
            [0, 1].map(|r| Stmt::store(&b, vec![ramp(int(0))], Expr::load(a.clone(), vec![ramp(at(r))])));
        under_prefetch(
            1,
            Stmt::range(k.clone(), m.clone(), Stmt::range(v.clone(), int(4), Stmt::seq(stores))),
        )
    };
    check(
        rows(64),
        "
for k, v in T.grid(m, 4):
    T.prefetch(A[k * 128 + v * 32 + 200])
    T.prefetch(A[k * 128 + v * 32 + 216])
    B[0:16] = A[k * 128 + v * 16 + 8:k * 128 + v * 16 + 8 + 16]
    B[0:16] = A[k * 128 + v * 16 + 72:k * 128 + v * 16 + 72 + 16]
",
    );
    // There is something between these rows.
    check(
        rows(80),
        "
for k, v in T.grid(m, 4):
    T.prefetch(A[k * 160 + v * 16 + 168])
    T.prefetch(A[k * 160 + v * 16 + 248])
    B[0:16] = A[k * 160 + v * 16 + 8:k * 160 + v * 16 + 8 + 16]
    B[0:16] = A[k * 160 + v * 16 + 88:k * 160 + v * 16 + 88 + 16]
",
    );
}

#[test]
fn hints_stand_in_the_innermost_loop_that_reads_and_leave_out_what_is_written_or_unknown_ahead() {
    let (m, k, v) = (size("m"), var("k"), var("v"));
    let (a, b, index) = (buffer("A", m.clone()), buffer("B", m.clone()), buffer("J", m.clone()));
    let gathered = index.at([k.expr()]).cast(DType::I32);
    let inner = Stmt::range(
        v.clone(),
        int(8),
        Stmt::store(&b, vec![v.expr()], b.at([k.expr()]) + a.at([k.expr() * int(8) + v.expr()])),
    );
    let either = Stmt::If {
        cond: k.expr().lt(int(3)),
        then: Box::new(Stmt::store(&b, vec![int(0)], a.at([k.expr()]))),
        otherwise: Some(Box::new(Stmt::store(&b, vec![int(1)], float(0.0)))),
    };
    let body = Stmt::seq([inner, either, Stmt::store(&b, vec![int(2)], a.at([gathered]))]);
    check(
        under_prefetch(1, Stmt::range(k, m, body)),
        "
for k in range(m):
    T.prefetch(J[k + 1])
    for v in range(8):
        T.prefetch(A[k * 8 + v + 8])
        B[v] = B[k] + A[k * 8 + v]
    if k < 3:
        T.prefetch(A[k + 1])
        B[0] = A[k]
    else:
        B[1] = T.float32(0)
    B[2] = A[T.Cast(\"int32\", J[k])]
",
    );
}

#[test]
fn strided_vectors_ask_for_every_row_and_too_many_lines_are_not_asked_for() {
    let (n, k) = (size("n"), var("k"));
    let (a, b) = (buffer("A", n.clone()), buffer("B", 64));
    let rows = |stride: Expr, lanes: u32| {
        let at = Expr::ramp(k.expr(), stride, lanes);
        let to = Expr::ramp(int(0), int(1), lanes);
        let store = Stmt::store(&b, vec![to], Expr::load(a.clone(), vec![at]));
        under_prefetch(4, Stmt::range(k.clone(), n.clone(), store))
    };
    check(
        rows(n.clone(), 2),
        "
for k in range(n):
    T.prefetch(A[k + 4])
    T.prefetch(A[k + n + 20])
    B[0:2] = A[T.Ramp(k, n, 2)]
",
    );
    let found = try_pass("insert_prefetches", rows(int(100), 65)).expect("the pass runs");
    assert!(!print_stmt(&found).contains("prefetch"));
}
