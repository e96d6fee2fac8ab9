//! Axes that run over the blocks of a cluster: data axes, reduce axes with and without threads of a block, states of several
//! components, in the simulator, which looks at the order of what blocks read of one another.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/everywhere.rs"]
mod everywhere;

use std::slice::from_ref;

use ThreadTag::{BlockX, ClusterX, ClusterY, ThreadX, ThreadY};
use coulis::DType;
use coulis::te::{Expr, IterVar, Schedule, Split, comm_reducer, compute, compute_tuple, reduce_axis, sum};
use coulis_ir::{MemScope, Target, ThreadTag};
use everywhere::{c, f, gpu_text, input, leaf, n, run_everywhere, schedule};

/// `B[i] = sum of A[i, k]` for `cols` columns, and `i`, `k`.
fn row_sums(cols: i32) -> (Schedule, IterVar, IterVar) {
    let a = input(&[n("m"), c(cols)], DType::I32, "A");
    let k = reduce_axis(cols, "k");
    let b = compute(from_ref(&n("m")), "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).unwrap();
    let s = schedule(&[b], &[a]);
    let (i, k) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
    (s, i, k)
}

const ROWS: [(&str, i64); 1] = [("m", 5)];

#[test]
fn blocks_of_a_cluster_and_their_threads_fold_a_row() {
    for (tag, parts, cols) in [(ClusterX, 2, 256), (ClusterX, 4, 300), (ClusterY, 8, 777), (ClusterY, 3, 5)] {
        let (mut s, i, k) = row_sums(cols);
        let (part, rest) = s.split("B", &k, Split::Nparts(parts)).unwrap();
        let (_, thread) = s.split("B", &rest, Split::Factor(32)).unwrap();
        for (axis, tag) in [(&i, BlockX), (&part, tag), (&thread, ThreadX)] {
            s.bind("B", axis, tag).unwrap();
        }
        run_everywhere(&s, &[&ROWS, &[("m", 1)]]);
    }
}

#[test]
fn an_axis_on_blocks_runs_over_clusters() {
    let (mut s, i, k) = row_sums(64);
    let (part, _) = s.split("B", &k, Split::Nparts(4)).unwrap();
    s.bind("B", &i, BlockX).unwrap();
    s.bind("B", &part, ClusterX).unwrap();
    let text = gpu_text(&s);
    assert!(text.contains("T.launch_thread(\"blockIdx.x\", m_1 * 4)"), "{text}");
    assert!(text.contains("T.launch_thread(\"clusterCtaIdx.x\", 4)"), "{text}");
    // One thread a block, with a part each.
    run_everywhere(&s, &[&ROWS]);
}

#[test]
fn threads_that_have_rows_of_their_own_fold_each_with_its_like() {
    let (mut s, i, k) = row_sums(90);
    let (block, row) = s.split("B", &i, Split::Factor(8)).unwrap();
    let (row, beside) = s.split("B", &row, Split::Factor(2)).unwrap();
    let (part, _) = s.split("B", &k, Split::Nparts(2)).unwrap();
    for (axis, tag) in [(&block, BlockX), (&row, ThreadY), (&beside, ThreadX), (&part, ClusterY)] {
        s.bind("B", axis, tag).unwrap();
    }
    run_everywhere(&s, &[&ROWS, &[("m", 16)]]);
    // The same where threads fold too, beside those that have rows.
    let (mut s, i, k) = row_sums(90);
    let (block, row) = s.split("B", &i, Split::Factor(4)).unwrap();
    let (part, rest) = s.split("B", &k, Split::Nparts(2)).unwrap();
    let (_, thread) = s.split("B", &rest, Split::Factor(16)).unwrap();
    for (axis, tag) in [(&block, BlockX), (&row, ThreadY), (&thread, ThreadX), (&part, ClusterY)] {
        s.bind("B", axis, tag).unwrap();
    }
    run_everywhere(&s, &[&ROWS]);
}

#[test]
fn data_axes_are_dealt_to_the_blocks_of_a_cluster() {
    let a = input(&[n("m"), c(50)], DType::F32, "A");
    let b = compute(&[n("m"), c(50)], "B", |i| a.at(i) + f(1.0)).unwrap();
    let mut s = schedule(&[b], &[a]);
    let (i, j) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
    let (part, rest) = s.split("B", &j, Split::Nparts(3)).unwrap();
    for (axis, tag) in [(&i, BlockX), (&part, ClusterX), (&rest, ThreadX)] {
        s.bind("B", axis, tag).unwrap();
    }
    run_everywhere(&s, &[&ROWS]);
}

#[test]
fn states_of_two_components_are_folded_by_clusters() {
    let a = input(&[n("m"), c(200)], DType::I32, "A");
    let k = reduce_axis(200, "k");
    let first_greatest = comm_reducer(
        |x, y| {
            let tie = x[0].clone().equal(y[0].clone()).and(x[1].clone().lt(y[1].clone()));
            let keep = x[0].clone().gt(y[0].clone()).or(tie);
            (0..2).map(|f| Expr::select(keep.clone(), x[f].clone(), y[f].clone())).collect()
        },
        |_| vec![c(i32::MIN), c(i32::MAX)],
        "first_greatest",
    );
    let both = compute_tuple(from_ref(&n("m")), "M", |i| {
        first_greatest.reduce(vec![a.at((&i[0], &k)), k.expr()], from_ref(&k))
    });
    let mut s = schedule(&both.unwrap(), &[a]);
    let stage = s.stages()[0].id();
    let (i, k) = (s.stage(stage).unwrap().leaves()[0].clone(), s.stage(stage).unwrap().leaves()[1].clone());
    let (part, rest) = s.split(stage, &k, Split::Nparts(4)).unwrap();
    let (_, thread) = s.split(stage, &rest, Split::Factor(16)).unwrap();
    for (axis, tag) in [(&i, BlockX), (&part, ClusterX), (&thread, ThreadX)] {
        s.bind(stage, axis, tag).unwrap();
    }
    run_everywhere(&s, &[&ROWS]);
}

#[test]
fn what_is_attached_inside_an_axis_on_blocks_lies_where_its_cluster_asks() {
    let a = input(&[n("m"), c(96)], DType::I32, "A");
    let k = reduce_axis(96, "k");
    let b = compute(from_ref(&n("m")), "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).unwrap();
    let mut s = schedule(&[b], from_ref(&a));
    let (i, k) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
    let (part, rest) = s.split("B", &k, Split::Nparts(4)).unwrap();
    let (thread, turn) = s.split("B", &rest, Split::Nparts(8)).unwrap();
    let (turn, _) = s.split("B", &turn, Split::Factor(2)).unwrap();
    for (axis, tag) in [(&i, BlockX), (&part, ClusterX), (&thread, ThreadX)] {
        s.bind("B", axis, tag).unwrap();
    }
    let copy = s.cache_read(&a, MemScope::Local, &["B".into()]).unwrap();
    s.compute_at(copy, "B", &turn).unwrap();
    run_everywhere(&s, &[&ROWS, &[("m", 1)], &[("m", 16)]]);
}

#[test]
fn machines_without_clusters_and_clusters_that_are_too_large_are_refused() {
    for (arch, parts, words) in [
        ("sm_80", 2, "clusters: wanted a machine with clusters, as sm_90 and later have, found sm_80"),
        ("sm_90a", 16, "clusters: wanted at most 8 ctas in a cluster, found 16"),
    ] {
        let (mut s, i, k) = row_sums(64);
        let (part, _) = s.split("B", &k, Split::Nparts(parts)).unwrap();
        s.bind("B", &i, BlockX).unwrap();
        s.bind("B", &part, ClusterX).unwrap();
        let target = Target::cuda(arch).unwrap();
        let error = coulis::compile_schedule(&s, s.program().args(), "main", &target).unwrap_err();
        let text = format!("{error} {:?}", error.help);
        assert!(text.contains(words), "{text}");
    }
}

#[test]
fn clusters_that_only_deal_data_are_refused_alike() {
    for (arch, parts, words) in [
        ("sm_80", 2, "V35: sm_80 has no clusters"),
        ("sm_90a", 16, "V35: a cluster has 1 to 8 blocks on sm_90a, got 16"),
    ] {
        let a = input(&[n("m"), c(64)], DType::F32, "A");
        let b = compute(&[n("m"), c(64)], "B", |i| a.at(i) + f(1.0)).unwrap();
        let mut s = schedule(&[b], &[a]);
        let j = leaf(&s, "B", 1);
        let (part, _) = s.split("B", &j, Split::Nparts(parts)).unwrap();
        s.bind("B", &part, ClusterX).unwrap();
        let target = Target::cuda(arch).unwrap();
        let error = coulis::compile_schedule(&s, s.program().args(), "main", &target).unwrap_err();
        assert!(error.to_string().contains(words), "{error}");
        assert_ne!(error.owner, coulis::Owner::Bug, "{error}");
    }
}

#[test]
fn the_trace_says_the_index_and_is_read_back() {
    let (mut s, i, k) = row_sums(64);
    let (part, _) = s.split("B", &k, Split::Nparts(2)).unwrap();
    s.bind("B", &i, BlockX).unwrap();
    s.bind("B", &part, ClusterY).unwrap();
    let text = s.trace().to_string();
    assert!(text.contains("s[B].bind(k_outer, \"clusterCtaIdx.y\")"), "{text}");
    let mut again = Schedule::of(s.program());
    for step in coulis::parse_trace(&text).unwrap() {
        again.apply(step).unwrap();
    }
    assert_eq!(gpu_text(&again), gpu_text(&s));
}
