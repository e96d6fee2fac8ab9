//! Loops that stay loops: what passes make of them, and which they make.

mod common;

use common::small::{int, size, try_pass, try_pass_for, var, vectorized};
use coulis_ir::expr::{Expr, Var};
use coulis_ir::print::print_stmt;
use coulis_ir::{Attr, Buffer, DType, LoopKind, MemScope, Stmt, Target};

/// The text of what the pass makes of the body on a GPU.
fn passed(name: &str, body: Stmt) -> String {
    let target = Target::cuda("sm_90a").expect("known");
    print_stmt(&try_pass_for(&target, name, body).expect("the pass runs"))
}

fn memory(name: &str, extent: Expr, scope: MemScope) -> Buffer {
    Buffer::new(name, DType::F32, vec![extent], scope)
}

#[test]
fn on_a_gpu_many_lanes_that_pass_are_a_loop_and_few_or_those_of_registers_are_written_out() {
    let copied = |lanes: i32, scope: MemScope| {
        let (n, x) = (Var::size("n", DType::I32).expr(), var("x"));
        let s = memory("S", int(lanes), scope);
        let store = Stmt::store(&s, vec![x.expr()], memory("A", n.clone(), MemScope::Global).at([x.expr()]));
        let guarded = Stmt::if_(x.expr().lt(n).likely(), store);
        let body = Stmt::for_(x, int(0), int(lanes), LoopKind::Vectorized, guarded);
        passed("vectorize_loops", body)
    };
    assert_eq!(
        copied(8, MemScope::Shared).trim_end(),
        "
x_n: T.int32 = n
if x_n >= 8:
    S[0:8] = A[0:8]
else:
    with T.attr(None, \"rolled\", T.bool(True)):
        for x_s in range(8):
            if x_s < x_n:
                S[x_s] = A[x_s]"
            .trim_start()
    );
    for written_out in [copied(4, MemScope::Shared), copied(8, MemScope::Local)] {
        assert!(!written_out.contains("rolled") && written_out.contains("if 3 < x_n"), "{written_out}");
    }
}

#[test]
fn a_loop_that_is_to_stay_one_is_not_unrolled_with_those_around_it() {
    let (i, step) = (var("i"), var("step"));
    let b = memory("B", int(4), MemScope::Global);
    let kept =
        Stmt::rolled(step.clone(), int(2), Stmt::store(&b, vec![step.expr()], Expr::float(0.0, DType::F32)));
    let around = Stmt::for_(i, int(0), int(2), LoopKind::Unrolled, kept);
    let body = Stmt::Annotate {
        node: None,
        key: "pragma_auto_unroll_max_step".to_owned(),
        value: Attr::Int(64),
        body: Box::new(around),
    };
    let text = passed("unroll_loops", body);
    assert_eq!(text.matches("for step in range(2)").count(), 2, "{text}");
}

#[test]
fn steps_over_vectors_with_guarded_lanes_stay_a_loop_past_the_cut_unless_registers_are_many_or_told_apart_by_the_step()
 {
    let summed = |told_apart: bool, n_kept: i32| {
        let (m, n) = (Var::size("m", DType::I32), Var::size("n", DType::I32));
        let (k, step, lane) = (var("k"), var("step"), var("lane"));
        let at = k.expr() * int(32) + step.expr() * int(8) + lane.expr();
        let kept = memory("S", int(n_kept), MemScope::Local);
        let place = if told_apart { step.expr() * int(8) + lane.expr() } else { lane.expr() };
        let sum = kept.at([place.clone()]) + memory("A", n.expr(), MemScope::Global).at([at.clone()]);
        let guarded = Stmt::if_(at.lt(n.expr()).likely(), Stmt::store(&kept, vec![place], sum));
        let vector = Stmt::for_(lane, int(0), int(8), LoopKind::Vectorized, guarded);
        let steps = Stmt::for_(step, int(0), int(4), LoopKind::Unrolled, vector);
        passed("partition_loops", Stmt::range(k, m.expr(), steps))
    };
    let text = summed(false, 8);
    let (main, rest) = text.split_once("rolled").unwrap_or_else(|| panic!("{text}"));
    assert!(main.contains("T.unroll(4)") && !main.contains("T.likely"), "{text}");
    assert!(rest.contains("for step in range(4)") && rest.contains("T.likely"), "{text}");
    assert!(summed(false, 12).contains("rolled") && !summed(false, 13).contains("rolled"));
    assert!(!summed(true, 8).contains("rolled"));
}

#[test]
fn on_a_cpu_steps_whose_guards_are_only_on_lanes_are_a_loop_in_the_part_that_keeps_these() {
    // Rows of three elements, one row a lane. Where not all lanes pass they never make a whole vector.
    let (n, block, k, lane) = (size("n"), var("block"), var("k"), var("lane"));
    let s = memory("S", int(4), MemScope::Local);
    let row = block.expr() * int(4) + lane.expr();
    let element = memory("A", n.clone() * int(3), MemScope::Global).at([row.clone() * int(3) + k.expr()]);
    let sum = Stmt::store(&s, vec![lane.expr()], s.at([lane.expr()]) + element);
    let guarded = Stmt::if_(row.lt(n.clone()).likely(), sum);
    let steps = Stmt::for_(k, int(0), int(3), LoopKind::Unrolled, vectorized(&lane, 4, guarded));
    let blocks = (n + int(3)).floordiv(int(4));
    let nest = Stmt::for_(block, int(0), blocks, LoopKind::Parallel, steps);
    let passes = ["partition_loops", "vectorize_loops", "unroll_loops", "simplify_flat"];
    let made = |body, name: &&str| try_pass(name, body).expect("the pass runs");
    let text = print_stmt(&passes.iter().fold(nest, made));
    assert_eq!(
        text.trim_end(),
        "
for block in T.parallel((n + 3) // 4):
    if block < n // 4:
        S[0:4] = S[0:4] + A[block * 12:block * 12 + 12:3]
        S[0:4] = S[0:4] + A[block * 12 + 1:block * 12 + 1 + 12:3]
        S[0:4] = S[0:4] + A[block * 12 + 2:block * 12 + 2 + 12:3]
    else:
        for k in range(3):
            lane_n: T.int32 = n - block * 4
            for lane_s in range(lane_n):
                S[lane_s] = S[lane_s] + A[block * 12 + lane_s * 3 + k]"
            .trim_start()
    );
}
