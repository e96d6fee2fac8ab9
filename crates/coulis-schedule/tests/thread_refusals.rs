//! Every refusal of a schedule on threads, with its whole message.

mod common;

use std::slice::from_ref;

use ThreadTag::{BlockX, BlockY, ClusterX, ClusterY, ThreadX, ThreadY, ThreadZ, VThread};
use common::{check, refusal};
use coulis_ir::{Claims, DType, Expr, MemScope, ThreadTag, Var};
use coulis_schedule::{Arg, GridFinish, Schedule, Split, Step, build_nest};
use coulis_tensor::{
    IterVar, Tensor, comm_reducer, compute, compute_axes, compute_tuple, placeholder, reduce_axis, sum, var,
};

struct Fixture {
    s: Schedule,
    b: Tensor,
    c: Tensor,
    i: IterVar,
    k: IterVar,
    r: IterVar,
}

/// `B[i] = sum of A[i, k]`, `C[r] = B[r] + 1`; the output is `C`.
fn fixture() -> Fixture {
    let (n, m) = (var("n").expr(), var("m").expr());
    let a = placeholder(&[n.clone(), m.clone()], DType::I32, "A").expect("a tensor");
    let k = reduce_axis(m, "k");
    let b = compute(from_ref(&n), "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).expect("a tensor");
    let c = compute_axes(from_ref(&n), &["r"], "C", |i| b.at([&i[0]]) + Expr::int(1)).expect("a tensor");
    let s = Schedule::new(from_ref(&c), &[a, c.clone()]).expect("a schedule");
    let (i, r) = (b.op().axes()[0].clone(), c.op().axes()[0].clone());
    Fixture { s, b, c, i, k, r }
}

#[track_caller]
fn built(s: &Schedule) -> String {
    refusal(build_nest(s, s.program().args(), "main"))
}

/// Binds an axis split by 4: outer to blocks, inner to threads.
fn rows(s: &mut Schedule, t: &Tensor, axis: &IterVar) -> (IterVar, IterVar) {
    let (outer, inner) = s.split(t, axis, Split::Factor(4)).expect("splits");
    s.bind(t, &outer, BlockX).expect("bound");
    s.bind(t, &inner, ThreadX).expect("bound");
    (outer, inner)
}

#[test]
fn te_fault_c6_two_axes_on_one_index() {
    let Fixture { mut s, b, i, k, .. } = fixture();
    s.bind(&b, &i, ThreadX).expect("bound");
    let want = "bind: `i` of `B` is bound to threadIdx.x already, and `k` on the same index would visit only a \
                diagonal; fuse the two, or take another index";
    assert_eq!(refusal(s.bind(&b, &k, ThreadX)), want);
}

#[test]
fn an_axis_that_is_bound_is_taken() {
    let Fixture { mut s, b, i, .. } = fixture();
    s.bind(&b, &i, BlockX).expect("bound");
    let want = |what: &str| {
        format!("{what}: `i` of `B` is bound to a thread index already; do this before, or to another axis")
    };
    assert_eq!(refusal(s.bind(&b, &i, BlockY)), want("bind"));
    assert_eq!(refusal(s.split(&b, &i, Split::Factor(4))), want("split"));
    assert_eq!(refusal(s.parallel(&b, &i)), want("parallel"));
    assert_eq!(refusal(s.vectorize(&b, &i)), want("vectorize"));
    assert_eq!(refusal(s.unroll(&b, &i)), want("unroll"));
}

#[test]
fn an_index_that_is_none() {
    let Fixture { mut s, .. } = fixture();
    let args = vec![Arg::Name("i".to_owned()), Arg::Str("threadIdx.w".to_owned())];
    let step = Step::new(Vec::new(), Some("B".to_owned()), "bind", args, Vec::new());
    let want = "there is no thread index `threadIdx.w`; legal are blockIdx.x, blockIdx.y, blockIdx.z, \
                clusterCtaIdx.x, clusterCtaIdx.y, clusterCtaIdx.z, threadIdx.x, threadIdx.y, threadIdx.z, vthread";
    assert_eq!(refusal(s.apply(step)), want);
    let args = vec![Arg::Str("atomics".to_owned())];
    let step = Step::new(Vec::new(), Some("B".to_owned()), "grid_finish", args, Vec::new());
    let want = "there is no grid_finish `atomics`; legal are second_kernel, last_block";
    assert_eq!(refusal(s.apply(step)), want);
}

#[test]
fn an_axis_fused_from_data_and_reduce_axes() {
    let Fixture { mut s, b, i, k, .. } = fixture();
    let both = s.fuse(&b, &[i, k]).expect("fused");
    let want = "bind: `i_k_fused` of `B` is fused from data and reduce axes, so its threads neither own elements nor \
                share one; bind before fusing";
    assert_eq!(refusal(s.bind(&b, &both, ThreadX)), want);
}

#[test]
fn numbers_of_threads_that_are_not_known_or_too_many() {
    let Fixture { s, b, c, i, k, r } = fixture();
    let mut unknown = s.clone();
    unknown.bind(&c, &r, BlockX).expect("bound");
    unknown.bind(&b, &i, BlockX).expect("bound");
    let mut large = unknown.clone();
    unknown.bind(&b, &k, ThreadX).expect("bound");
    let want = "`k` of `B` is bound to threadIdx.x, which takes a constant extent of at least 1, and its extent is \
                m; split it and bind the inner part";
    assert_eq!(built(&unknown), want);
    let (rest, kx) = large.split(&b, &k, Split::Factor(64)).expect("splits");
    let (_, ky) = large.split(&b, &rest, Split::Factor(32)).expect("splits");
    large.bind(&b, &kx, ThreadX).expect("bound");
    large.bind(&b, &ky, ThreadY).expect("bound");
    let want = "the launch of `B` has 2048 threads a block (threadIdx.y 32, threadIdx.x 64), and at most 1024 are legal";
    assert_eq!(built(&large), want);
    let mut deep = s;
    rows(&mut deep, &c, &r);
    deep.bind(&b, &i, BlockX).expect("bound");
    let (_, kz) = deep.split(&b, &k, Split::Factor(128)).expect("splits");
    deep.bind(&b, &kz, ThreadZ).expect("bound");
    let want = "the launch of `B` has 128 threads a block (threadIdx.z 128), and at most 64 are legal";
    assert_eq!(built(&deep), want);
}

#[test]
fn clusters_of_more_blocks_than_any_gpu_has() {
    let Fixture { mut s, b, c, i, k, r } = fixture();
    s.bind(&c, &r, BlockX).expect("bound");
    s.bind(&b, &i, BlockX).expect("bound");
    let of = |x: i64, y: i64| {
        let mut s = s.clone();
        let (kx, rest) = s.split(&b, &k, Split::Nparts(x)).expect("splits");
        let (ky, _) = s.split(&b, &rest, Split::Nparts(y)).expect("splits");
        s.bind(&b, &kx, ClusterX).expect("bound");
        s.bind(&b, &ky, ClusterY).expect("bound");
        s
    };
    common::kernel(&of(8, 2));
    let want = "the launch of `B` has 18 blocks a cluster (clusterCtaIdx.x 9, clusterCtaIdx.y 2), and at most 16 are legal";
    assert_eq!(built(&of(9, 2)), want);
}

#[test]
fn stages_of_one_launch_that_want_different_numbers_of_threads() {
    let Fixture { mut s, b, c, k, r, .. } = fixture();
    let (outer, _) = rows(&mut s, &c, &r);
    let (_, inner) = s.split(&b, &k, Split::Factor(8)).expect("splits");
    s.bind(&b, &inner, ThreadX).expect("bound");
    s.compute_at(&b, &c, &outer).expect("attached");
    s.set_scope(&b, MemScope::Shared).expect("shared");
    let want = "`k_inner` of `B` has extent 8 and `r_inner` of `C` has 4, and both are bound to threadIdx.x of one \
                launch; split one to the extent of the other";
    assert_eq!(built(&s), want);
}

#[test]
fn memory_that_its_threads_do_not_share() {
    let Fixture { mut s, b, c, i, r, .. } = fixture();
    let (outer, _) = s.split(&c, &r, Split::Factor(4)).expect("splits");
    s.bind(&c, &outer, BlockX).expect("bound");
    s.compute_at(&b, &c, &outer).expect("attached");
    let unbound = s.clone();
    s.bind(&b, &i, ThreadX).expect("bound");
    check(&s, &[&[("n", 9), ("m", 3)]]);
    s.set_scope(&b, MemScope::Local).expect("local");
    let want = "`i` of `B` is bound to threadIdx.x, and `B` lives in local memory, of which each index of \
                threadIdx.x has its own, so most of it would stay unwritten; set_scope(\"shared\"), or leave the \
                axis unbound";
    assert_eq!(built(&s), want);
    let mut s = unbound.clone();
    s.set_scope(&b, MemScope::Global).expect("global");
    let want = "`B` is computed inside a launch and lives in global memory, which every block would write; \
                set_scope(\"shared\") or \"local\", or compute it at the root";
    assert_eq!(built(&s), want);
    let want = "results of a stage in warp memory are not supported; legal are `global`, `shared`, `shared.dyn`, `local`";
    assert_eq!(s.set_scope(&b, MemScope::Warp).expect_err("warp").to_string(), want);
    assert_eq!(s.cache_write(&c, MemScope::Warp).expect_err("warp").to_string(), want);
    assert_eq!(s.cache_read(&b, MemScope::Warp, &[(&c).into()]).expect_err("warp").to_string(), want);
}

#[test]
fn an_attached_stage_over_blocks() {
    let Fixture { mut s, b, c, i, r, .. } = fixture();
    let (outer, _) = s.split(&c, &r, Split::Factor(4)).expect("splits");
    s.bind(&c, &outer, BlockX).expect("bound");
    s.compute_at(&b, &c, &outer).expect("attached");
    s.bind(&b, &i, BlockY).expect("bound");
    let want = "`i` of `B` is bound to blockIdx.y, and `B` is computed inside a launch, where every block computes \
                its own part; bind it to a thread index, or compute `B` at the root";
    assert_eq!(built(&s), want);
}

#[test]
fn an_index_that_chooses_the_element_and_folds() {
    let Fixture { mut s, b, c, k, r, .. } = fixture();
    let (_, inner) = rows(&mut s, &c, &r);
    let (_, ki) = s.split(&b, &k, Split::Factor(4)).expect("splits");
    s.bind(&b, &ki, ThreadX).expect("bound");
    s.compute_at(&b, &c, &inner).expect("attached");
    let want = "`k_inner` of `B` is reduced over threadIdx.x, which also chooses the element that each thread needs, \
                so threads would not fold one element together; take another index";
    assert_eq!(built(&s), want);
}

#[test]
fn virtual_threads_do_not_reduce_together() {
    let Fixture { mut s, b, c, i, k, r } = fixture();
    s.bind(&c, &r, BlockX).expect("bound");
    let (block, v) = s.split(&b, &i, Split::Factor(2)).expect("splits");
    s.bind(&b, &block, BlockX).expect("bound");
    s.bind(&b, &v, VThread).expect("bound");
    let (_, ki) = s.split(&b, &k, Split::Factor(4)).expect("splits");
    s.bind(&b, &ki, ThreadX).expect("bound");
    let want = "`i_inner` of `B` is bound to vthread, and `B` is reduced across threads inside; virtual threads do \
                not reduce together, so leave it unbound or unroll it";
    assert_eq!(built(&s), want);
}

#[test]
fn a_data_loop_inside_what_threads_fold() {
    let Fixture { mut s, b, c, i, k, r } = fixture();
    s.bind(&c, &r, BlockX).expect("bound");
    let (block, row) = s.split(&b, &i, Split::Factor(2)).expect("splits");
    s.bind(&b, &block, BlockX).expect("bound");
    let (_, ki) = s.split(&b, &k, Split::Factor(4)).expect("splits");
    s.bind(&b, &ki, ThreadX).expect("bound");
    check(&s, &[&[("n", 3), ("m", 9)]]);
    s.reorder(&b, &[ki, row]).expect("reordered");
    let want = "`i_inner` of `B` is a data axis inside the reduce axes, and `k_inner` is bound to threadIdx.x, so a \
                thread would need a state for each of its iterations; reorder it outside of the reduce axes, or bind \
                it";
    assert_eq!(built(&s), want);
}

#[test]
fn a_cooperative_step_that_not_all_threads_reach() {
    let n = var("n").expr();
    let a = placeholder(&[n.clone(), n.clone()], DType::I32, "A").expect("a tensor");
    let k = reduce_axis(n.clone(), "k");
    let b = compute(from_ref(&n), "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).expect("a tensor");
    let c = compute_axes(from_ref(&n), &["r"], "C", |i| {
        let h = reduce_axis(i[0].expr() + Expr::int(1), "h");
        sum(b.at([&h]), from_ref(&h))
    })
    .expect("a tensor");
    let mut s = Schedule::new(from_ref(&c), &[a, c.clone()]).expect("a schedule");
    let (r, h) = (c.op().axes()[0].clone(), c.op().reduce_axes()[0].clone());
    let (outer, inner) = s.split(&c, &r, Split::Factor(4)).expect("splits");
    s.bind(&c, &outer, BlockX).expect("bound");
    s.bind(&c, &inner, ThreadY).expect("bound");
    let (_, ki) = s.split(&b, &k, Split::Factor(4)).expect("splits");
    s.bind(&b, &ki, ThreadX).expect("bound");
    s.compute_at(&b, &c, &h).expect("attached");
    let want = "`B` is reduced across threads inside the loop `h` of `C`, whose extent blockIdx_x * 4 + threadIdx_y \
                + 1 differs between threads, so not all of them would arrive; take a loop of equal extent";
    assert_eq!(built(&s), want);
}

#[test]
fn a_root_stage_on_no_index_beside_one_that_is() {
    let Fixture { mut s, c, r, .. } = fixture();
    rows(&mut s, &c, &r);
    let want = "`B` runs on no block or thread index, and `C` does; bind an axis of each stage at the root (fuse() \
                makes one where there is none)";
    assert_eq!(built(&s), want);
}

#[test]
fn memory_that_ends_before_it_is_read_or_has_no_known_size() {
    let Fixture { mut s, b, c, i, r, .. } = fixture();
    s.bind(&c, &r, BlockX).expect("bound");
    s.bind(&b, &i, BlockX).expect("bound");
    s.set_scope(&b, MemScope::Shared).expect("shared");
    let want = "`B` lives in shared memory, which ends with its launch, before its readers run; compute it inside a \
                launch with compute_at, or set_scope(\"global\")";
    assert_eq!(built(&s), want);

    let Fixture { mut s, b, c, r, .. } = fixture();
    let (outer, _) = s.split(&c, &r, Split::Nparts(4)).expect("splits");
    s.bind(&c, &outer, BlockX).expect("bound");
    s.compute_at(&b, &c, &outer).expect("attached");
    let want = "`B` lives in shared memory, which takes constant extents, and needs (n + 3) // 4 elements along `i`; \
                attach it deeper, or split so that the part is constant";
    assert_eq!(built(&s), want);
}

#[test]
fn dynamic_memory_whose_size_depends_on_an_index_of_the_launch() {
    let n = var("n").expr();
    let a = placeholder(from_ref(&n), DType::I32, "A").expect("a tensor");
    let t = compute(from_ref(&n), "T", |i| a.at(i) + Expr::int(1)).expect("a tensor");
    let read = |i: &[Var], at: usize| t.at([&i[at].expr().floordiv(Expr::int(1 + at as i32))]);
    let u = compute(&[n.clone(), n], "U", |i| read(i, 0) + read(i, 1)).expect("a tensor");
    let mut s = Schedule::new(from_ref(&u), &[a, u.clone()]).expect("a schedule");
    let row = u.op().axes()[0].clone();
    s.bind(&u, &row, BlockX).expect("bound");
    s.compute_at(&t, &u, &row).expect("attached");
    s.set_scope(&t, MemScope::SharedDyn).expect("dynamic");
    let want = "`T` lives in shared.dyn memory, which takes extents made of sizes of arguments, and needs \
                T.max(blockIdx_x, (n - 1) // 2) + 1 elements along `i`; attach it deeper, or split so that the part is \
                constant";
    assert_eq!(built(&s), want);
}

#[test]
fn cpu_loops_in_a_launch() {
    let Fixture { mut s, b, c, i, r, .. } = fixture();
    s.bind(&c, &r, BlockX).expect("bound");
    let (outer, inner) = s.split(&b, &i, Split::Factor(4)).expect("splits");
    s.bind(&b, &outer, BlockX).expect("bound");
    s.parallel(&b, &inner).expect("parallel");
    let want = "`i_inner` of `B` is parallel, which is for CPU threads, inside a launch; bind it";
    assert_eq!(built(&s), want);
}

#[test]
fn a_grid_without_a_finish_and_a_finish_without_a_grid() {
    let Fixture { mut s, b, c, k, r, i } = fixture();
    s.bind(&c, &r, BlockX).expect("bound");
    s.bind(&b, &i, BlockY).expect("bound");
    let mut none = s.clone();
    none.grid_finish(&b, GridFinish::LastBlock).expect("taken note of");
    let want = "grid_finish of `B`: none of its reduce axes is bound to a block index, and there is no launch before it, of \
                as many threads and by the same block indices but that of the axis, whose last block could do its own; bind one to \
                blockIdx, or as many threads in both";
    assert_eq!(built(&none), want);
    let (outer, _) = s.split(&b, &k, Split::Factor(4)).expect("splits");
    s.bind(&b, &outer, BlockX).expect("bound");
    let want = "`k_outer` of `B` is reduced over blockIdx.x; say with grid_finish(\"second_kernel\") or \
                grid_finish(\"last_block\") how the blocks' parts come together";
    assert_eq!(built(&s), want);
    let want = "grid_finish takes a reduction, and `C` is no reduction";
    assert_eq!(refusal(s.grid_finish(&c, GridFinish::SecondKernel)), want);
}

#[test]
fn te_fault_c12_a_reducer_without_the_laws_stays_on_one_thread() {
    let n = var("n").expr();
    let a = placeholder(&[n.clone(), Expr::int(8)], DType::I32, "A").expect("a tensor");
    let k = reduce_axis(8, "k");
    let claims = Claims { associative: false, commutative: false, idempotent: false };
    let minus =
        comm_reducer(|l, r| vec![l[0].clone() - r[0].clone()], |t| vec![Expr::int_of(0, t[0])], "minus")
            .claims(claims);
    let b = compute(from_ref(&n), "B", |i| minus.reduce(vec![a.at((&i[0], &k))], from_ref(&k)));
    let b = b.expect("a tensor");
    let mut s = Schedule::new(from_ref(&b), &[a, b.clone()]).expect("a schedule");
    s.bind(&b, &b.op().axes()[0].clone(), BlockX).expect("bound");
    check(&s, &[&[("n", 3)]]);
    s.bind(&b, &k, ThreadX).expect("bound");
    let want = "bind of `B` changes the order of the fold, and its reducer `minus` does not claim to be associative \
                and commutative";
    assert_eq!(built(&s), want);
}

#[test]
fn double_buffering_of_what_has_no_loop() {
    let Fixture { mut s, b, c, .. } = fixture();
    s.double_buffer(&b).expect("taken note of");
    let want = "double_buffer: `B` is computed at the root, where no loop fills it again; attach it in a loop with \
                compute_at";
    assert_eq!(built(&s), want);
    let want = "double_buffer: `C` is an argument and the caller gives its memory";
    assert_eq!(refusal(s.double_buffer(&c)), want);
}

#[test]
fn blocks_that_depend_on_other_loops() {
    let n = var("n").expr();
    let a = placeholder(&[n.clone(), n.clone()], DType::I32, "A").expect("a tensor");
    let b = compute(from_ref(&n), "B", |i| {
        let k = reduce_axis(i[0].expr() + Expr::int(1), "k");
        sum(a.at((&i[0], &k)), from_ref(&k))
    })
    .expect("a tensor");
    let mut s = Schedule::new(from_ref(&b), &[a, b.clone()]).expect("a schedule");
    s.bind(&b, &b.op().reduce_axes()[0].clone(), BlockX).expect("bound");
    s.grid_finish(&b, GridFinish::SecondKernel).expect("taken note of");
    let want = "`k` of `B` is bound to blockIdx.x, whose extent is known before the launch, and its extent is i + 1; \
                bind an axis whose extent depends on sizes alone";
    assert_eq!(built(&s), want);
}

#[test]
fn a_predicate_on_what_is_folded_away() {
    let Fixture { mut s, b, c, i, k, r } = fixture();
    s.bind(&c, &r, BlockX).expect("bound");
    s.bind(&b, &i, BlockX).expect("bound");
    let (outer, ki) = s.split(&b, &k, Split::Factor(4)).expect("splits");
    s.bind(&b, &ki, ThreadX).expect("bound");
    s.set_store_predicate(&b, outer.expr().equal(Expr::int(0))).expect("taken note of");
    let want = "set_store_predicate of `B` takes a condition of its axes, thread indices and sizes, and this one \
                uses `k_outer`, which is folded away where the result is stored";
    assert_eq!(built(&s), want);
}

#[test]
fn blocks_of_a_cluster_finish_nothing_of_the_grid() {
    let Fixture { mut s, b, c, i, k, r } = fixture();
    let (outer, inner) = s.split(&b, &k, Split::Factor(4)).expect("splits");
    s.bind(&b, &i, BlockX).expect("bound");
    s.bind(&b, &outer, BlockY).expect("bound");
    s.bind(&b, &inner, ClusterX).expect("bound");
    s.grid_finish(&b, GridFinish::SecondKernel).expect("a finish");
    rows(&mut s, &c, &r);
    let want = "`B` is finished by grid_finish, and its launch has clusters along clusterCtaIdx.x, whose blocks end \
                together; bind clusterCtaIdx.x to nothing there, or fold over it alone";
    assert_eq!(built(&s), want);
}

#[test]
fn what_is_computed_inside_a_launch_is_not_dealt_to_its_blocks() {
    let Fixture { mut s, b, c, i, r, .. } = fixture();
    let (_, inner) = s.split(&c, &r, Split::Factor(8)).expect("splits");
    let outer = s.stage(&c).expect("a stage").leaves()[0].clone();
    s.bind(&c, &outer, BlockX).expect("bound");
    s.bind(&c, &inner, ClusterX).expect("bound");
    s.set_scope(&b, MemScope::Shared).expect("a scope");
    s.compute_at(&b, &c, &outer).expect("attached");
    let (_, part) = s.split(&b, &i, Split::Factor(8)).expect("splits");
    s.bind(&b, &part, ClusterY).expect("bound");
    let want = "`i_inner` of `B` is bound to clusterCtaIdx.y, and `B` is computed inside a launch, where every block \
                computes its own part; bind it to a thread index, or compute `B` at the root";
    assert_eq!(built(&s), want);
}

#[test]
fn an_argument_inside_a_launch_is_computed_by_one_block_and_so_is_its_whole_stage() {
    let eight = Expr::int(8);
    let a = placeholder(from_ref(&eight), DType::I32, "A").expect("a tensor");
    let b = compute_tuple(from_ref(&eight), "B", |i| vec![a.at([&i[0]]), a.at([&i[0]]) + Expr::int(1)])
        .expect("tensors");
    let c = compute(&[eight.clone(), eight], "C", |i| b[0].at([&i[0]]) + b[1].at([&i[0]])).expect("a tensor");
    let made = |tag: ThreadTag, kept: &[Tensor]| {
        let args: Vec<Tensor> = [&a, &c].into_iter().chain(kept).cloned().collect();
        let mut s = Schedule::new(from_ref(&c), &args).expect("a schedule");
        let axes = c.op().axes().to_vec();
        s.bind(&c, &axes[1], tag).expect("bound");
        s.compute_at(&b[0], &c, &axes[0]).expect("attached");
        s
    };
    let want = "compute_at: `B` is an argument and computed at `i` of `C`, where every block would compute it; compute \
                it at the root";
    assert_eq!(built(&made(BlockX, &b)), want);
    let want = "compute_at: `B` is an argument and computed at `i` of `C`, where a launch has no memory for those of its \
                results that are no arguments; compute it at the root";
    assert_eq!(built(&made(ThreadX, &b[..1])), want);
    let whole = made(ThreadX, &b);
    build_nest(&whole, whole.program().args(), "main").expect("a nest");
}
