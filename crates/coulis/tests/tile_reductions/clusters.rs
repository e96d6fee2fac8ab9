//! Calls of a cluster: several clusters, several axes, `accum`, loops; and what is declined, with the need's name.

use coulis_ir::{DType, Target};

use crate::run::{Arg, Program, Want, check_declines, check_refused, check_wins, uniform};

fn sim() -> Target {
    Target::simulated(32)
}

/// A program on `A` of 16 rows by 64 that leaves sums of some rows' parts in `B`.
fn program(body: &str, n_results: usize, wanted: impl Fn(&[f64], usize) -> f64) -> Program {
    let values = uniform(16 * 64, 7, DType::I32);
    let wants: Vec<Want> = (0..n_results).map(|at| Some((wanted(&values, at), 0.0))).collect();
    let lines: String = body.lines().map(|line| format!("    {}\n", line.trim_end())).collect();
    let text = format!(
        "@T.prim_func\ndef main(A: T.Buffer((16, 64), \"int32\"), B: T.Buffer(({n_results},), \"int32\")):\n    T.device_entry()\n{lines}"
    );
    let args = vec![
        Arg::In { dtype: DType::I32, shape: vec![16, 64], values },
        Arg::Out { dtype: DType::I32, shape: vec![n_results as i64], wants },
    ];
    Program { text, args }
}

fn row(values: &[f64], row: usize) -> f64 {
    values[row * 64..(row + 1) * 64].iter().sum()
}

#[test]
fn tile_every_cluster_of_a_grid_folds_for_itself() {
    let body = "bx = T.cta_id([16])\npart = T.cta_id_in_cluster([4])\nT.thread_id([32])
Tx.cluster.sum(B[bx // 4], A[bx // 4, part * 16:part * 16 + 16], axes=(-1,), accum=False{dispatch})";
    check_wins(&program(body, 4, row), &sim(), "cluster_shared");
}

#[test]
fn tile_a_cluster_of_one_block_folds_all_there_is() {
    let body = "n = T.cluster_id([4])\npart = T.cta_id_in_cluster([1])\nT.thread_id([32])
Tx.cluster.sum(B[n], A[n, part * 64:part * 64 + 64], axes=(-1,), accum=False{dispatch})";
    check_wins(&program(body, 4, row), &sim(), "cluster_shared");
}

#[test]
fn a_text_that_names_scope_ids_is_lowered_for_a_machine_with_threads() {
    let body =
        "bx = T.cta_id([16])\nT.thread_id([32])\nTx.cta.sum(B[bx], A[bx, 0:64], axes=(-1,), accum=False)";
    let lowered = coulis::text::lower(&program(body, 16, row).text, None, None).unwrap();
    assert!(lowered.contains("T.launch_thread(\"threadIdx.x\", 32)"), "{lowered}");
}

#[test]
fn tile_blocks_of_a_cluster_of_two_axes_fold_in_the_order_of_their_numbers() {
    // Blocks (x, y) of a 2 by 2 cluster are numbers x + 2 * y.
    let body = "cx, cy = T.cluster_id([2, 2])\npx, py = T.cta_id_in_cluster([2, 2])\nT.thread_id([16, 2])
Tx.cluster.sum(B[cx + 2 * cy], A[cx + 2 * cy, (px + 2 * py) * 16:(px + 2 * py) * 16 + 16], axes=(-1,), accum=False{dispatch})";
    check_wins(&program(body, 4, row), &sim(), "cluster_shared");
    let first = body
        .replace("Tx.cluster.sum(", "Tx.cluster.reduce(")
        .replace(", axes", ", reducer=\"argmax\", axes")
        .replace("B[cx + 2 * cy]", "b");
    let first = first.replace("Tx.", "b = T.alloc_buffer((1,), \"int64\", scope=\"local\")\nTx.")
        + "\nif px == 1 and py == 1:\n    B[cx + 2 * cy] = T.Cast(\"int32\", b[0])";
    let first = first.replace("T.thread_id([16, 2])", "T.thread_id([1])");
    let place = |values: &[f64], row: usize| {
        let own = &values[row * 64..(row + 1) * 64];
        let most = own.iter().copied().fold(f64::MIN, f64::max);
        own.iter().position(|v| *v == most).unwrap_or(0) as f64
    };
    check_wins(&program(&first, 4, place), &sim(), "cluster_shared");
}

#[test]
fn tile_a_cluster_folds_again_and_again_onto_old_values() {
    let body = "part = T.cta_id_in_cluster([2])\nT.cluster_id([1])\ntid = T.thread_id([32])
s = T.alloc_buffer((32,), \"int32\", scope=\"shared\")
t = T.alloc_buffer((1,), \"int32\", scope=\"shared\")
if tid == 0:
    t[0] = 5
for i in T.serial(16):
    T.cuda.cta_sync()
    Tx.cta.copy(s, A[i, part * 32:part * 32 + 32])
    T.cuda.cta_sync()
    Tx.cluster.sum(t, s, axes=(-1,), accum=True{dispatch})
if part == 1:
    Tx.cta.copy(B, t)";
    let whole = |values: &[f64], _: usize| 5.0 + values.iter().sum::<f64>();
    check_wins(&program(body, 1, whole), &sim(), "cluster_shared");
}

#[test]
fn tile_clusters_may_be_guarded_by_their_number() {
    let body = "n = T.cluster_id([4])\npart = T.cta_id_in_cluster([2])\nT.thread_id([32])
if n < 3:
    Tx.cluster.sum(B[n], A[n, part * 32:part * 32 + 32], axes=(-1,), accum=False{dispatch})
else:
    Tx.cluster.max(B[n], A[n, part * 32:part * 32 + 32], axes=(-1,), accum=False{dispatch})";
    let wanted = |values: &[f64], at: usize| match at {
        3 => values[3 * 64..4 * 64].iter().copied().fold(f64::MIN, f64::max),
        at => row(values, at),
    };
    check_wins(&program(body, 4, wanted), &sim(), "cluster_shared");
}

/// A call in one cluster of `blocks` blocks, all of it but the regions.
fn call(blocks: u32, guard: &str, dst: &str, src: &str) -> Program {
    let indent = if guard.is_empty() { "" } else { "    " };
    let body = format!(
        "T.cluster_id([1])\npart = T.cta_id_in_cluster([{blocks}])\ntid = T.thread_id([32])
s = T.alloc_buffer((16,), \"int32\", scope=\"shared\")
t = T.alloc_buffer((1,), \"int32\", scope=\"shared\")
r = T.alloc_buffer((1,), \"int32\", scope=\"local\")
l = T.alloc_buffer((16,), \"int32\", scope=\"local\")
{guard}
{indent}Tx.cluster.sum({dst}, {src}, axes=(-1,), accum=False{{dispatch}})"
    );
    program(&body, 16, |_, _| 0.0)
}

#[test]
fn tile_calls_that_no_cluster_does_are_declined_by_name() {
    for (program, words) in [
        (call(2, "", "B[0]", "A[0, 0:16]"), "operands: wanted a part of its own for each block"),
        (call(2, "", "B[part]", "s"), "operands: wanted one place for the results of a cluster"),
        (
            call(2, "", "t", "l"),
            "operands: wanted sources in shared or global memory, found `l` in local memory",
        ),
        (
            call(2, "if part == 0:", "t", "s"),
            "active threads: wanted all threads of the scope, found a cluster of 2 ctas",
        ),
        (call(2, "if tid < 16:", "t", "s"), "active threads: wanted all threads of the scope"),
        (call(9, "", "t", "s"), "clusters: wanted at most 8 ctas in a cluster, found 9"),
        (call(2, "", "B[0:2]", "s"), "sizes"),
    ] {
        check_declines(&program, "cluster_shared", &sim(), words);
    }
    for option in ["lanes=2", "warps=1"] {
        let mut program = call(2, "", "t", "s");
        program.text = program.text.replace("accum=False", &format!("accum=False, {option}"));
        check_declines(&program, "cluster_shared", &sim(), &format!("lanes: wanted tiles, found `{option}`"));
    }
    for target in ["sm_80", "sm_89"] {
        let words =
            format!("clusters: wanted a machine with clusters, as sm_90 and later have, found {target}");
        let program = call(2, "", "t", "s");
        check_declines(&program, "cluster_shared", &Target::cuda(target).unwrap(), &words);
    }
    // Two clusters that write one element.
    let body = "n = T.cluster_id([2])\npart = T.cta_id_in_cluster([2])\nT.thread_id([32])
Tx.cluster.sum(B[0], A[n, part * 32:part * 32 + 32], axes=(-1,), accum=False{dispatch})";
    let words = "instances: wanted one block, or results of its own for each";
    check_declines(&program(body, 1, row), "cluster_shared", &sim(), words);
}

#[test]
fn tile_extents_of_clusters_that_contradict_each_other_are_refused() {
    let with = |ids: &str| {
        let call = "Tx.cluster.sum(B[0], A[0, part * 16:part * 16 + 16], axes=(-1,), accum=False{dispatch})";
        program(&format!("{ids}\nT.thread_id([32])\n{call}"), 1, row)
    };
    for (ids, words) in [
        (
            "T.cta_id([6])\npart = T.cta_id_in_cluster([4])",
            "non-divisible extents: 6 blocks along x are not whole clusters of 4",
        ),
        (
            "T.cta_id([8])\nT.cluster_id([3])\npart = T.cta_id_in_cluster([4])",
            "inconsistent extents: a grid has 8 blocks along x by `T.cta_id`, and 12 by `T.cluster_id` and \
             `T.cta_id_in_cluster`",
        ),
        ("part = T.cluster_id([3])", "the size of the clusters of `T.cluster_id` follows from nothing"),
        ("part = T.cta_id_in_cluster([4])", "the number of blocks follows from nothing"),
    ] {
        check_refused(&with(ids), &sim(), words);
    }
}
