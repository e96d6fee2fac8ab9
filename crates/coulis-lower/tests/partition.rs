//! Loops that are cut at likely guards, as text.

mod common;

use common::small::{buffer, check, float, int, size, try_pass, var, vectorized};
use coulis_ir::print::print_stmt;
use coulis_ir::{LoopKind, Stmt};

#[test]
fn te_p1_a_likely_guard_cuts_its_loop_and_the_loop_inside() {
    let (m, ko, ki) = (size("m"), var("ko"), var("ki"));
    let (a, b) = (buffer("A", m.clone()), buffer("B", 16));
    let k = ko.expr() * int(16) + ki.expr();
    let store = Stmt::store(&b, vec![ki.expr()], a.at([k.clone()]));
    let body = Stmt::if_(k.lt(m.clone()).likely(), store);
    let outer = (m + int(15)).floordiv(int(16));
    let nest = Stmt::range(ko, outer, Stmt::range(ki, int(16), body));
    check(
        &["partition_loops", "simplify"],
        nest,
        "
for ko, ki in T.grid(m // 16, 16):
    B[ki] = A[ko * 16 + ki]
for ko, ki in T.grid((m % 16 + 15) // 16, m - m // 16 * 16):
    B[ki] = A[m // 16 * 16 + ki]
",
    );
}

#[test]
fn a_guard_from_below_is_cut_off_in_front() {
    let (n, i) = (size("n"), var("i"));
    let (a, b) = (buffer("A", n.clone()), buffer("B", n.clone()));
    let inside = i.expr().ge(int(3)).likely();
    let body = Stmt::seq([
        Stmt::store(&b, vec![i.expr()], float(0.0)),
        Stmt::if_(inside, Stmt::store(&b, vec![i.expr()], a.at([i.expr() - int(3)]))),
    ]);
    check(
        &["partition_loops", "simplify"],
        Stmt::range(i, n, body),
        "
i_cut: T.int32 = T.min(3, n)
for i in range(i_cut):
    B[i] = T.float32(0)
for i in range(n - i_cut):
    B[i_cut + i] = T.float32(0)
    B[i_cut + i] = A[i_cut + i - 3]
",
    );
}

#[test]
fn past_the_point_where_a_guard_fails_nothing_is_left_of_the_loop() {
    // A tile of 32 by 4 of which part is outside: whole steps, at most one cut step, and no empty ones.
    let (n, io, ii) = (size("n"), var("io"), var("ii"));
    let b = buffer("B", n.clone());
    let i = io.expr() * int(4) + ii.expr();
    let body = Stmt::if_(i.clone().lt(n).likely(), Stmt::store(&b, vec![i], float(0.0)));
    let inner = Stmt::for_(ii, int(0), int(4), LoopKind::Unrolled, body);
    check(
        &["partition_loops", "simplify"],
        Stmt::range(io, int(32), inner),
        "
io_cut: T.int32 = T.min(n // 4, 32)
io_cut_1: T.int32 = T.min((n + 3) // 4, 32)
for io in range(io_cut):
    for ii in T.unroll(4):
        B[io * 4 + ii] = T.float32(0)
for io in range(io_cut_1 - io_cut):
    ii_cut: T.int32 = T.max(T.min(n - io_cut * 4 - io * 4, 4), 0)
    for ii in range(ii_cut):
        B[io_cut * 4 + io * 4 + ii] = T.float32(0)
",
    );
}

#[test]
fn a_parallel_loop_gets_a_branch_on_its_index() {
    let (n, io, ii) = (size("n"), var("io"), var("ii"));
    let b = buffer("B", n.clone());
    let i = io.expr() * int(4) + ii.expr();
    let body = Stmt::if_(i.clone().lt(n.clone()).likely(), Stmt::store(&b, vec![i], float(0.0)));
    let outer = (n + int(3)).floordiv(int(4));
    let body = Stmt::for_(ii, int(0), int(4), LoopKind::Unrolled, body);
    let nest = Stmt::for_(io, int(0), outer, LoopKind::Parallel, body);
    check(
        &["partition_loops", "simplify"],
        nest,
        "
for io in T.parallel((n + 3) // 4):
    if io < n // 4:
        for ii in T.unroll(4):
            B[io * 4 + ii] = T.float32(0)
    else:
        ii_cut: T.int32 = T.min(n - io * 4, 4)
        for ii in range(ii_cut):
            B[io * 4 + ii] = T.float32(0)
",
    );
}

#[test]
fn strips_by_threads_have_no_branch_for_what_their_vectors_are_cut_at_and_past_that_none_is_whole() {
    let (n, io, iv, lane) = (size("n"), var("io"), var("iv"), var("lane"));
    let b = buffer("B", n.clone());
    let i = io.expr() * int(64) + iv.expr() * int(8) + lane.expr();
    let body = Stmt::if_(i.clone().lt(n.clone()).likely(), Stmt::store(&b, vec![i], float(0.0)));
    let vectors = Stmt::range(iv, int(8), vectorized(&lane, 8, body));
    check(
        &["partition_loops", "simplify", "vectorize_loops", "simplify"],
        Stmt::for_(io, int(0), (n + int(63)).floordiv(int(64)), LoopKind::Parallel, vectors),
        "
for io in T.parallel((n + 63) // 64):
    iv_cut: T.int32 = T.min(n // 8 - io * 8, 8)
    iv_cut_1: T.int32 = T.min((n + 7) // 8 - io * 8, 8)
    for iv in range(iv_cut):
        B[io * 64 + iv * 8:io * 64 + iv * 8 + 8] = T.Broadcast(T.float32(0), 8)
    for iv in range(iv_cut_1 - iv_cut):
        if io * 64 + iv_cut * 8 + iv * 8 + 7 >= n:
            lane_n: T.int32 = T.max(n - iv_cut * 8 - iv * 8 - io * 64, 0)
            for lane_s in range(lane_n):
                B[io * 64 + iv_cut * 8 + iv * 8 + lane_s] = T.float32(0)
",
    );
}

#[test]
fn a_vector_past_a_cut_that_bounds_its_lanes_from_afar_may_be_whole() {
    // Remainders are below 5, and no lane's is 4 here: from the cut on, where one could fail, all of them may pass.
    let (n, iv, lane) = (size("n"), var("iv"), var("lane"));
    let b = buffer("B", n.clone());
    let place = iv.expr() * int(4) + (lane.expr() * int(5)).floormod(int(5));
    let at = iv.expr() * int(4) + lane.expr();
    let body = Stmt::if_(place.lt(n).likely(), Stmt::store(&b, vec![at], float(0.0)));
    let nest = Stmt::range(iv, int(8), vectorized(&lane, 4, body));
    let found = try_pass("partition_loops", nest).expect("the pass runs");
    assert!(!print_stmt(&found).contains("not "), "{}", print_stmt(&found));
}

#[test]
fn guards_over_different_ranges_of_one_variable_stay() {
    // The same comparison holds under one inner loop for longer than under the other.
    let (n, i, j) = (size("n"), var("i"), var("j"));
    let b = buffer("B", n.clone());
    let at = i.expr() * int(8) + j.expr();
    let cond = at.clone().lt(n.clone()).likely();
    let body = |extent| {
        let store = Stmt::store(&b, vec![at.clone()], float(0.0));
        Stmt::for_(j.clone(), int(0), int(extent), LoopKind::Unrolled, Stmt::if_(cond.clone(), store))
    };
    let nest = Stmt::range(i.clone(), n.clone(), Stmt::seq([body(8), body(4)]));
    let want = print_stmt(&nest);
    check(&["partition_loops"], nest, &want);
}
