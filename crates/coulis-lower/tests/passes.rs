//! What single passes do to small kernels, as text.

mod common;

use common::small::{buffer, check, float, int, size, try_pass, try_pass_for, var, vectorized};
use coulis_ir::expr::{Expr, Var};
use coulis_ir::print::print_stmt;
use coulis_ir::{Attr, Buffer, DType, Form, Kernel, LoopKind, MemScope, Param, Stmt, Target};
use coulis_lower::{Options, PASSES, lower_and};

#[test]
fn every_pass_takes_the_form_that_the_one_before_leaves() {
    assert_eq!(PASSES[0].from, Form::Tiled);
    assert!(PASSES.windows(2).all(|pair| pair[0].to == pair[1].from));
    assert_eq!(PASSES[PASSES.len() - 1].to, Form::Flat);
    for (at, pass) in PASSES.iter().enumerate() {
        assert!(PASSES[..at].iter().all(|other| other.name != pass.name), "{} is listed twice", pass.name);
    }
}

#[test]
fn passes_over_a_deep_kernel_and_what_follows_share_one_thread_with_a_stack_for_it() {
    let a = buffer("A", 2);
    let body = (0..100).fold(Stmt::store(&a, vec![int(0)], float(1.0)), |body, _| {
        Stmt::allocate(Buffer::new("t", DType::F32, vec![int(1)], MemScope::Local), body)
    });
    let params = vec![Param::Buffer { handle: Var::handle("A"), buffer: a }];
    let kernel =
        Kernel { name: "deep".to_owned(), params, attrs: Default::default(), form: Form::Nest, body };
    let target = common::cpu();
    let options = Options { target: &target, simple_mode: false };
    let here = || std::thread::current().id();
    let mut threads = Vec::new();
    let last = lower_and(kernel, &options, &mut |_, _| threads.push(here()), |_| here()).expect("it lowers");
    assert_eq!(threads.len(), PASSES.len());
    assert_ne!(last, here());
    assert!(threads.iter().all(|thread| *thread == last), "{threads:?}");
}

#[test]
fn small_allocations_are_aligned_to_their_size() {
    for (extent, align) in [(1, 4), (4, 16), (9, 32), (16, 64), (100, 64)] {
        let local = Buffer::new("t", DType::F32, vec![int(extent)], MemScope::Local);
        let body = Stmt::allocate(local.clone(), Stmt::store(&local, vec![int(0)], float(1.0)));
        let Stmt::Allocate { buffer, body } = try_pass("flatten_buffers", body).expect("flattens") else {
            panic!("the allocation is gone");
        };
        assert_eq!(buffer.align, align, "{extent} elements");
        let Stmt::Store { buffer: stored, .. } = *body else { panic!("the store is gone") };
        assert_eq!(stored, buffer);
    }
}

#[test]
fn vectorized_loops_become_ramps() {
    let (lane, k) = (var("lane"), var("k"));
    let (a, s) = (buffer("A", size("m")), buffer("S", 8));
    let add = s.at([lane.expr()]) + a.at([k.expr() * int(8) + lane.expr()]);
    let body = vectorized(&lane, 8, Stmt::store(&s, vec![lane.expr()], add));
    check(
        &["vectorize_loops", "simplify_flat"],
        Stmt::range(k, size("n"), body),
        "
for k in range(n):
    S[0:8] = S[0:8] + A[k * 8:k * 8 + 8]
",
    );
}

#[test]
fn a_sum_into_one_cell_stays_serial() {
    let x = var("x");
    let (a, s) = (buffer("A", 8), buffer("S", 1));
    let add = Stmt::store(&s, vec![int(0)], s.at([int(0)]) + a.at([x.expr()]));
    check(
        &["vectorize_loops"],
        vectorized(&x, 8, add),
        "
for x_s in range(8):
    S[0] = S[0] + A[x_s]
",
    );
}

#[test]
fn lanes_that_read_what_a_neighbour_writes_stay_serial() {
    let x = var("x");
    let s = buffer("S", 9);
    let shift = Stmt::store(&s, vec![x.expr() + int(1)], s.at([x.expr()]));
    check(
        &["vectorize_loops"],
        vectorized(&x, 8, shift),
        "
for x_s in range(8):
    S[x_s + 1] = S[x_s]
",
    );
}

#[test]
fn a_branch_on_data_becomes_a_select() {
    let x = var("x");
    let (a, s) = (buffer("A", 4), buffer("S", 4));
    let store = Stmt::store(&s, vec![x.expr()], s.at([x.expr()]) + float(1.0));
    let body = Stmt::if_(float(0.0).lt(a.at([x.expr()])), store);
    check(
        &["vectorize_loops"],
        vectorized(&x, 4, body),
        "
S[0:4] = T.Select(T.Broadcast(T.float32(0), 4) < A[0:4], S[0:4] + T.Broadcast(T.float32(1), 4), S[0:4])
",
    );
}

#[test]
fn a_guard_on_lanes_runs_whole_or_in_shorter_vectors() {
    let (n, x) = (size("n"), var("x"));
    let (a, s) = (buffer("A", n.clone()), buffer("S", 16));
    let store = Stmt::store(&s, vec![x.expr()], a.at([x.expr()]));
    let body = Stmt::if_(x.expr().lt(n).likely(), store);
    check(
        &["vectorize_loops", "simplify_flat"],
        vectorized(&x, 16, body),
        "
x_n: T.int32 = T.min(n, 16)
if x_n == 16:
    S[0:16] = A[0:16]
else:
    for x_s in range(x_n // 4):
        S[x_s * 4:x_s * 4 + 4] = A[x_s * 4:x_s * 4 + 4]
    for x_s in range(x_n % 4):
        S[x_n // 4 * 4 + x_s] = A[x_n // 4 * 4 + x_s]
",
    );
}

#[test]
fn what_is_not_side_by_side_is_read_lane_by_lane_between_vectors_where_threads_have_registers() {
    let (x, g) = (var("x"), Target::cuda("sm_90a").unwrap());
    let (a, f, o) = (buffer("A", 100), buffer("F", 5), buffer("O", 100));
    let column = |i: Expr| i.floormod(int(5));
    let value = a.at([x.expr() + int(40)]) * f.at([column(x.expr() + int(40))]);
    let body = vectorized(&x, 4, Stmt::store(&o, vec![x.expr() + int(40)], value));
    let found = try_pass_for(&g, "vectorize_loops", body.clone()).unwrap();
    let found = try_pass_for(&g, "simplify_flat", found).unwrap();
    assert_eq!(
        coulis_ir::print::print_stmt(&found).trim_end(),
        "\
O_lanes = T.allocate([4], \"float32\", \"local\")
A_lanes = T.allocate([4], \"float32\", \"local\")
A_lanes[0:4] = A[40:44]
O_lanes[0] = A_lanes[0] * F[0]
O_lanes[1] = A_lanes[1] * F[1]
O_lanes[2] = A_lanes[2] * F[2]
O_lanes[3] = A_lanes[3] * F[3]
O[40:44] = O_lanes[0:4]"
    );
    // Without registers of threads the statement runs lane by lane.
    check(
        &["vectorize_loops"],
        body,
        "
for x_s in range(4):
    O[x_s + 40] = A[x_s + 40] * F[(x_s + 40) % 5]
",
    );
}

#[test]
fn a_tuple_state_waits_in_a_buffer_until_all_parts_are_computed() {
    let x = var("x");
    let (s, t) = (buffer("S", 4), buffer("R", 4));
    let (v, w) = (Var::new("v", DType::F32), Var::new("w", DType::F32));
    let (old_s, old_t) = (s.at([x.expr()]), t.at([x.expr()]));
    let stores =
        Stmt::seq([Stmt::store(&s, vec![x.expr()], v.expr()), Stmt::store(&t, vec![x.expr()], w.expr())]);
    let body = Stmt::let_(v, old_t.clone(), Stmt::let_(w, old_s, stores));
    check(
        &["vectorize_loops", "hoist_allocations"],
        vectorized(&x, 4, body),
        "
w = T.allocate([4], \"float32\", \"local\")
w[0:4] = S[0:4]
S[0:4] = R[0:4]
R[0:4] = w[0:4]
",
    );
}

#[test]
fn buffers_allocated_under_lanes_get_a_copy_each() {
    let x = var("x");
    let (a, s) = (buffer("A", 4), buffer("S", 4));
    let t = Buffer::new("t", DType::F32, vec![int(2)], MemScope::Local);
    let body = Stmt::seq([
        Stmt::store(&t, vec![int(1)], a.at([x.expr()])),
        Stmt::store(&s, vec![x.expr()], t.at([int(1)])),
    ]);
    check(
        &["vectorize_loops", "simplify_flat"],
        vectorized(&x, 4, Stmt::allocate(t, body)),
        "
t = T.allocate([8], \"float32\", \"local\")
t[4:8] = A[0:4]
S[0:4] = t[4:8]
",
    );
}

#[test]
fn loops_that_cannot_be_vectorized_or_unrolled_are_refused_by_name() {
    let n = size("n");
    let b = buffer("B", n.clone());
    let nest = |kind, extent: Expr| {
        let i = var("i");
        Stmt::for_(i.clone(), int(0), extent, kind, Stmt::store(&b, vec![i.expr()], float(0.0)))
    };
    let message = |pass, kind, extent| try_pass(pass, nest(kind, extent)).expect_err("refused").to_string();
    assert_eq!(
        message("vectorize_loops", LoopKind::Vectorized, n.clone()),
        "vectorizing loop `i` needs a constant extent, got `n`"
    );
    assert_eq!(
        message("unroll_loops", LoopKind::Unrolled, n.clone()),
        "unrolling loop `i` needs a constant extent, got `n`"
    );
    assert_eq!(
        message("vectorize_loops", LoopKind::Vectorized, int(65537)),
        "vectorizing loop `i` gives 65537 lanes, and at most 65536 are legal"
    );
    assert!(try_pass("vectorize_loops", nest(LoopKind::Vectorized, int(65536))).is_ok());
    assert_eq!(
        message("unroll_loops", LoopKind::Unrolled, int(65537)),
        "unrolling loop `i` gives 65537 statements, and at most 65536 are legal"
    );
}

#[test]
fn a_pragma_unrolls_constant_loops_up_to_its_number_of_steps() {
    for (max, unrolled) in [(3, false), (4, true)] {
        let i = var("i");
        let b = buffer("B", 4);
        let nest = Stmt::range(i.clone(), int(4), Stmt::store(&b, vec![i.expr()], float(0.0)));
        let body = Stmt::Annotate {
            node: None,
            key: "pragma_auto_unroll_max_step".to_owned(),
            value: Attr::Int(max),
            body: Box::new(nest),
        };
        let found = try_pass("unroll_loops", body).expect("unrolls");
        assert_eq!(matches!(found, Stmt::Seq(_)), unrolled, "{max} steps");
    }
}

#[test]
fn te_p7_branches_leave_loops_that_do_not_decide_them() {
    let (n, i, k) = (size("n"), var("i"), var("k"));
    let b = buffer("B", n.clone());
    let store = Stmt::store(&b, vec![i.expr()], float(0.0));
    let inner = Stmt::range(k, int(4), Stmt::if_(i.expr().lt(int(5)), store));
    check(
        &["hoist_ifs"],
        Stmt::range(i, n, inner),
        "
for i in range(n):
    if i < 5:
        for k in range(4):
            B[i] = T.float32(0)
",
    );
}

#[test]
fn quotients_of_a_fused_loop_are_computed_once_an_iteration() {
    let (n, f, j) = (size("n"), var("f"), var("j"));
    let (a, b) = (buffer("A", n.clone() * int(8)), buffer("B", n.clone() * int(8)));
    let tiles = (n.clone() + int(7)).floordiv(int(8));
    let index = f.expr().floormod(tiles.clone()) * int(8) + j.expr();
    let body = Stmt::store(&b, vec![index], a.at([f.expr().floordiv(tiles.clone()) * int(8) + j.expr()]));
    check(
        &["name_quotients"],
        Stmt::range(f, int(4) * tiles, Stmt::range(j, int(8), body)),
        "
for f in range(4 * ((n + 7) // 8)):
    f_mod: T.int32 = f % ((n + 7) // 8)
    f_div: T.int32 = f // ((n + 7) // 8)
    for j in range(8):
        B[f_mod * 8 + j] = A[f_div * 8 + j]
",
    );
}

#[test]
fn a_quotient_by_what_may_be_zero_stays_where_it_is() {
    let (n, d, f) = (size("n"), size("d"), var("f"));
    let b = buffer("B", n.clone());
    let store = Stmt::store(&b, vec![f.expr().floordiv(d.clone())], float(0.0));
    let nest = Stmt::range(f, n, Stmt::if_(int(0).lt(d), store));
    let want = print_stmt(&nest);
    check(&["name_quotients"], nest, &want);
}

#[test]
fn allocations_stay_inside_parallel_loops() {
    let (i, k) = (var("i"), var("k"));
    let b = buffer("B", 4);
    let t = Buffer::new("t", DType::F32, vec![int(1)], MemScope::Local);
    let body = Stmt::seq([
        Stmt::store(&t, vec![int(0)], float(0.0)),
        Stmt::store(&b, vec![i.expr()], t.at([int(0)])),
    ]);
    let body = Stmt::range(k, int(3), Stmt::allocate(t, body));
    check(
        &["hoist_allocations"],
        Stmt::for_(i, int(0), int(4), LoopKind::Parallel, body),
        "
for i in T.parallel(4):
    t = T.allocate([1], \"float32\", \"local\")
    for k in range(3):
        t[0] = T.float32(0)
        B[i] = t[0]
",
    );
}

#[test]
fn statements_without_effect_disappear() {
    let (i, x) = (var("i"), var("x"));
    let (b, t) = (buffer("B", 4), buffer("t", 4));
    let same = Stmt::store(&b, vec![i.expr()], b.at([i.expr()]));
    let kept = Stmt::store(&b, vec![int(0)], float(1.0));
    let body = Stmt::seq([
        Stmt::range(i.clone(), int(4), Stmt::if_(i.expr().lt(int(2)), same)),
        Stmt::allocate(t, Stmt::let_(x, int(3) + size("n"), kept)),
    ]);
    check(&["remove_noop"], body, "B[0] = T.float32(1)");
}

#[test]
fn te_p8_a_larger_common_part_is_named_by_a_smaller_one() {
    let (i, j) = (var("i"), var("j"));
    let b = buffer("B", 4);
    let small = i.expr() * int(8);
    let large = small.clone() + j.expr() * int(4);
    let value = (b.at([large.clone()]) + b.at([large.clone()])) * b.at([small.clone()]);
    let nest = Stmt::range(i, int(4), Stmt::range(j, int(4), Stmt::store(&b, vec![large], value)));
    check(
        &["eliminate_common_subexpressions"],
        nest,
        "
for i, j in T.grid(4, 4):
    cse_var_2: T.int32 = i * 8
    cse_var_1: T.int32 = cse_var_2 + j * 4
    B[cse_var_1] = (B[cse_var_1] + B[cse_var_1]) * B[cse_var_2]
",
    );
}

#[test]
fn likely_is_dropped_at_the_end() {
    let i = var("i");
    let b = buffer("B", 4);
    let body = Stmt::if_(i.expr().lt(int(2)).likely(), Stmt::store(&b, vec![i.expr()], float(0.0)));
    check(
        &["drop_likely"],
        body,
        "
if i < 2:
    B[i] = T.float32(0)
",
    );
}

#[test]
fn names_of_shared_computations_nest_only_so_deep() {
    let (i, n) = (var("i"), size("n"));
    let (from, to) = (buffer("A", n.clone() * int(4096)), buffer("B", n.clone()));
    // Every copy computes an index twice, that of no other copy.
    let copies = (0..3000).map(|k| {
        let at = i.expr() * int(4096) + int(k);
        let element = Expr::load(from.clone(), vec![at]);
        Stmt::store(&to, [i.expr()], element.clone() * element)
    });
    let body = Stmt::for_(i.clone(), int(0), n, LoopKind::Serial, Stmt::seq(copies));
    let mut found = try_pass("eliminate_common_subexpressions", body).unwrap();
    let mut names = 0;
    while let Stmt::For { body, .. } | Stmt::Let { body, .. } = found {
        names += 1;
        found = *body;
    }
    assert!((100..500).contains(&names), "{names} names nest");
}

#[test]
fn a_quotient_in_an_extent_of_memory_stays_there() {
    let (n, i) = (size("n"), var("i"));
    let b = buffer("B", n.clone());
    let t = Buffer::new("t", DType::F32, vec![i.expr().floormod(n.clone()) + int(1)], MemScope::Global);
    let store = Stmt::store(&b, vec![i.expr().floormod(n.clone())], t.at([int(0)]));
    let nest = Stmt::range(i, n, Stmt::allocate(t, store));
    check(
        &["name_quotients"],
        nest,
        "
for i in range(n):
    i_mod: T.int32 = i % n
    t = T.allocate([i % n + 1], \"float32\", \"global\")
    B[i_mod] = t[0]
",
    );
}

#[test]
fn a_branch_that_divides_by_what_is_0_where_its_loop_does_not_run_stays_in_it() {
    let (n, m, f, k) = (size("n"), size("m"), var("f"), var("k"));
    let b = buffer("B", n.clone());
    let guarded = |by: &Expr| {
        Stmt::if_(f.expr().floordiv(by.clone()).lt(int(3)), Stmt::store(&b, vec![k.expr()], float(0.0)))
    };
    let inner = |by: &Expr| Stmt::range(k.clone(), n.clone(), guarded(by));
    let nest = Stmt::range(f.clone(), int(8), inner(&n));
    let want = print_stmt(&nest);
    check(&["hoist_ifs"], nest, &want);
    // Both sizes are positive where a loop over their product runs.
    check(
        &["hoist_ifs"],
        Stmt::range(f.clone(), n.clone() * m.clone(), inner(&m)),
        "
for f in range(n * m):
    if f // m < 3:
        for k in range(n):
            B[k] = T.float32(0)
",
    );
}

#[test]
fn memory_of_what_may_be_less_than_no_elements_counts_as_none() {
    let (n, i) = (size("n"), var("i"));
    let t = |extent: Expr| Buffer::new("t", DType::F32, vec![extent, int(4)], MemScope::Global);
    let of = |extent: Expr| {
        let t = t(extent);
        let body = Stmt::allocate(t.clone(), Stmt::store(&t, vec![int(0), int(1)], float(1.0)));
        let Stmt::For { body, .. } =
            try_pass("flatten_buffers", Stmt::range(i.clone(), n.clone(), body)).expect("flattens")
        else {
            panic!("the loop is gone");
        };
        let Stmt::Allocate { buffer, .. } = *body else { panic!("the allocation is gone") };
        coulis_ir::print::print_expr(&buffer.shape[0])
    };
    assert_eq!(of(n.clone() - int(2)), "T.max(n - 2, 0) * 4");
    // It leaves the loop, so that the loop does not say that it runs.
    assert_eq!(of(n.clone() - int(1)), "T.max(n - 1, 0) * 4");
    assert_eq!(of(n.clone()), "n * 4");
    assert_eq!(of(n.clone() - i.expr()), "n * 4 - i * 4");
}

#[test]
fn a_loop_is_not_cut_where_a_quotient_by_a_size_says_unless_the_size_is_positive_there() {
    let (n, m, i, k) = (size("n"), size("m"), var("i"), var("k"));
    let b = buffer("B", n.clone());
    let guard = k.expr().lt(m.floordiv(n.clone())).likely();
    let store = Stmt::store(&b, vec![k.expr()], float(0.0));
    let inner = Stmt::range(k, n.clone(), Stmt::if_(guard, store));
    let want = print_stmt(&inner);
    check(&["partition_loops"], inner.clone(), &want);
    check(
        &["partition_loops"],
        Stmt::range(i, n, inner),
        "
for i in range(n):
    k_cut: T.int32 = T.min(m // n, n)
    for k in range(k_cut):
        B[k] = T.float32(0)
",
    );
}

#[test]
fn memory_whose_extent_divides_by_what_may_be_0_stays_where_it_is_not() {
    let (n, k) = (size("n"), var("k"));
    let b = buffer("B", n.clone());
    let under = |extent: Expr, around: &dyn Fn(Stmt) -> Stmt| {
        let t = Buffer::new("t", DType::F32, vec![extent], MemScope::Global);
        let store = Stmt::store(&b, vec![int(0)], t.at([int(0)]));
        around(Stmt::allocate(t, store))
    };
    let looped = |body: Stmt| Stmt::range(k.clone(), n.clone(), body);
    let branch = |body: Stmt| Stmt::if_(n.clone().gt(int(0)), body);
    let by_size = || int(8).floordiv(n.clone()) + int(1);
    for around in [&looped as &dyn Fn(Stmt) -> Stmt, &branch] {
        let nest = under(by_size(), around);
        let want = print_stmt(&nest);
        check(&["hoist_allocations"], nest, &want);
        let moved = try_pass("hoist_allocations", under(n.clone() * int(8), around)).expect("the pass runs");
        assert!(matches!(moved, Stmt::Allocate { .. }), "{}", print_stmt(&moved));
    }
}
