//! Reducers that claim less than both laws, and those of which the order of equal values decides which is kept: folded in
//! order, or declined (contracts N9 and N16).

use coulis::text::explain;
use coulis::{Array, TargetChoice};

use crate::{program, refusal, run};

const FIRST: &str =
    "T.comm_reducer(lambda x, y: T.Select(x != T.float32(0), x, y), [T.float32(0)], commutative=False)";

/// The composition of affine maps, of which an element `v` is `v * x + (v + 1)`.
const MAPS: &str = "T.comm_reducer(lambda a, b, c, d: (a * c, a * d + b), [T.float32(1), T.float32(0)], \
                    inputs=(\"float32\", \"int64\"), lift=lambda v, p: (v, v + T.float32(1)), CLAIM)";

/// Rows of zeros but for two elements of each, the later one larger.
fn sparse(rows: usize, n: usize) -> (Array, Vec<f64>) {
    let mut values = vec![0.0f32; rows * n];
    for row in 0..rows {
        values[row * n + n / 4 + row] = 5.0 + row as f32;
        values[row * n + n - 4] = 50.0;
    }
    let wanted = (0..rows).map(|row| 5.0 + row as f64).collect();
    (Array::from_slice(&[rows as i64, n as i64], &values).unwrap(), wanted)
}

/// A call on rows in that memory by `n_threads` threads.
fn rows_in(memory: &str, scope: &str, [rows, n, n_threads]: [usize; 3], reducer: &str) -> String {
    let lines = format!(
        "    T.cta_id([1])\n    tid = T.thread_id([{n_threads}])\n    s = T.alloc_shared([{rows}, {n}], \"float32\")\n    \
         t = T.alloc_shared([{rows}], \"float32\")\n    second = T.alloc_shared([{rows}], \"float32\")\n    \
         Tx.cta.copy(s, A)\n    T.cuda.cta_sync()\n    if tid < 32:\n        REDUCE\n    \
         T.cuda.cta_sync()\n    SAVE"
    );
    let guarded = if scope == "warp." { lines } else { lines.replace("if tid < 32:\n        ", "") };
    let dsts = match (reducer.contains("lambda x, y"), memory) {
        (true, "global") => "(B,)",
        (true, _) => "(t,)",
        (false, "global") => "(B, second)",
        (false, _) => "(t, second)",
    };
    let src = if memory == "global" { "A" } else { "s" };
    let save = if memory == "global" { "pass" } else { "Tx.cta.copy(B, t)" };
    let save = if save == "pass" { "" } else { save };
    let call = format!("Tx.{scope}reduce({dsts}, ({src},), reducer={reducer}, axes=(-1,))");
    program(
        &format!("{rows}, {n}"),
        &format!("{rows},"),
        &guarded.replace("REDUCE", &call).replace("SAVE", save),
    )
}

const PLACES: [(&str, &str); 4] =
    [("global", "cta."), ("shared", "cta."), ("global", "warp."), ("shared", "warp.")];

#[test]
fn tile_reducers_that_do_not_commute_are_folded_in_order() {
    for (memory, scope) in PLACES {
        for size in [[1, 40, 32], [1, 256, 64], [3, 1000, 128], [40, 12, 32]] {
            let (a, wanted) = sparse(size[0].min(4), size[1]);
            let size = [size[0].min(4), size[1], size[2]];
            let text = rows_in(memory, scope, size, FIRST);
            assert_eq!(run(&text, 32, &a), wanted, "{text}");
        }
    }
}

#[test]
fn tile_reducers_of_two_fields_are_folded_in_order() {
    for claim in ["commutative=False", "associative=False", "associative=False, commutative=False"] {
        for (memory, scope) in PLACES {
            for n in [40, 256] {
                let values: Vec<f32> = (0..n).map(|at| [1.0, -1.0, -1.0][at * at % 3]).collect();
                let wanted = values.iter().fold(1.0, |a, v| a * f64::from(*v));
                let text = rows_in(memory, scope, [1, n, 64], &MAPS.replace("CLAIM", claim));
                let a = Array::from_slice(&[1, n as i64], &values).unwrap();
                assert_eq!(run(&text, 32, &a), [wanted], "{text}");
                // The second field, which hangs on the order.
                let shift = values.iter().fold((1.0, 0.0), |(a, b), v| {
                    let v = f64::from(*v);
                    (a * v, a * (v + 1.0) + b)
                });
                let swapped =
                    text.replace("(B, second)", "(second, B)").replace("(t, second)", "(second, t)");
                assert_eq!(run(&swapped, 32, &a), [shift.1], "{swapped}");
            }
        }
    }
}

#[test]
fn tile_the_first_of_equal_values_wins_whatever_folds() {
    let argmax = "T.comm_reducer(lambda a, b, c, d: (T.max(a, c), T.Select(a >= c, b, d)), \
                  [T.float32(\"-inf\"), T.float32(-1)], inputs=(\"float32\", \"int64\"), \
                  lift=lambda v, p: (v, T.Cast(\"float32\", p))CLAIM)";
    for (claim, wanted) in [
        ("", 9.0),
        (", ties=\"first\"", 9.0),
        (", commutative=False", 9.0),
        (", associative=False", 9.0),
        (", commutative=False, ties=\"first\"", 9.0),
    ] {
        for (memory, scope) in PLACES {
            let text = rows_in(memory, scope, [1, 40, 64], &argmax.replace("CLAIM", claim));
            let text = text.replace("(B, second)", "(second, B)").replace("(t, second)", "(second, t)");
            let values: Vec<f32> = (0..40).map(|at| if at == 9 || at == 36 { 8.0 } else { 0.0 }).collect();
            let a = Array::from_slice(&[1, 40], &values).unwrap();
            assert_eq!(run(&text, 32, &a), [wanted], "{text}");
        }
    }
    // The last one, by a combine that keeps the right of equal values.
    let last = argmax.replace("a >= c", "a > c").replace("CLAIM", ", ties=\"last\"");
    let text = rows_in("shared", "cta.", [1, 40, 64], &last).replace("(t, second)", "(second, t)");
    let values: Vec<f32> = (0..40).map(|at| if at == 9 || at == 36 { 8.0 } else { 0.0 }).collect();
    assert_eq!(run(&text, 32, &Array::from_slice(&[1, 40], &values).unwrap()), [36.0]);
}

#[test]
fn tile_threads_and_their_registers_keep_the_order() {
    // A thread's own registers; registers of each lane; one element in each thread of a block.
    let alone = "    T.cta_id([1])\n    T.thread_id([1])\n    s = T.alloc_local([2, 32], \"float32\")\n    t = T.alloc_local([2], \"float32\")\n    \
                 Tx.copy(s, A)\n    Tx.reduce((t,), (s,), reducer=REDUCER, axes=(-1,))\n    Tx.copy(B, t)";
    let lanes = "    T.cta_id([1])\n    tid = T.thread_id([32])\n    \
                 s = T.alloc_buffer([2, 32], \"float32\", scope=\"local\", layout=TileLayout(S[(2, 32) : (1 @ laneid, 1)] + R[16 : 2 @ laneid]))\n    \
                 t = T.alloc_buffer([2], \"float32\", scope=\"local\", layout=TileLayout(S[2 : 1 @ laneid] + R[16 : 2 @ laneid]))\n    \
                 own = s.local(32)\n    total = t.local(1)\n    for i in range(32):\n        own[i] = A[tid % 2, i]\n    \
                 Tx.warp.reduce((t,), (s,), reducer=REDUCER, axes=(-1,))\n    if tid < 2:\n        B[tid] = total[0]";
    let threads = "    T.cta_id([1])\n    tid = T.thread_id([64])\n    \
                   s = T.alloc_buffer([2, 32], \"float32\", scope=\"local\", layout=TileLayout(S[(2, 32) : (STRIDES)]))\n    \
                   t = T.alloc_buffer([2], \"float32\", scope=\"local\", layout=TileLayout(S[2 : GROUP @ tx] + R[32 : MEMBER @ tx]))\n    \
                   own = s.local(1)\n    total = t.local(1)\n    own[0] = A[ROW, ELEMENT]\n    \
                   Tx.cta.reduce((t,), (s,), reducer=REDUCER, axes=(-1,))\n    if ELEMENT == 0:\n        B[ROW] = total[0]";
    let neighbours = [
        ("STRIDES", "32 @ tx, 1 @ tx"),
        ("GROUP", "32"),
        ("MEMBER", "1"),
        ("ROW", "tid // 32"),
        ("ELEMENT", "tid % 32"),
    ];
    let apart = [
        ("STRIDES", "1 @ tx, 2 @ tx"),
        ("GROUP", "1"),
        ("MEMBER", "2"),
        ("ROW", "tid % 2"),
        ("ELEMENT", "tid // 2"),
    ];
    let with = |names: [(&str, &str); 5]| {
        names.iter().fold(threads.to_owned(), |text, (name, value)| text.replace(name, value))
    };
    let (a, wanted) = sparse(2, 32);
    for lines in [alone.to_owned(), lanes.to_owned(), with(neighbours), with(apart)] {
        let text = program("2, 32", "2,", &lines.replace("REDUCER", FIRST));
        assert_eq!(run(&text, 32, &a), wanted, "{text}");
    }
}

#[test]
fn tile_lanes_that_would_fold_out_of_order_decline() {
    let lines = format!(
        "    T.cta_id([1])\n    tid = T.thread_id([64])\n    \
         s = T.alloc_buffer([64], \"float32\", scope=\"local\", layout=TileLayout(S[(2, 32) : (1, 1 @ laneid)]))\n    \
         t = T.alloc_buffer([1], \"float32\", scope=\"local\", layout=TileLayout(S[1 : 1] + R[32 : 1 @ laneid]))\n    \
         own = s.local(2)\n    total = t.local(1)\n    for i in range(2):\n        own[i] = A[tid]\n    \
         Tx.warp.reduce((t,), (s,), reducer={FIRST}, axes=(-1,))\n    B[tid] = total[0]"
    );
    let found = refusal(&program("64,", "64,", &lines));
    let wanted = "laws: wanted a reducer that is associative and commutative, found `comm_reducer`, which is associative alone";
    let row =
        |name: &str| found.lines().find(|line| line.trim_start().starts_with(name)).unwrap_or("").to_owned();
    for name in ["redux_sync", "warp_shuffle ", "local", "shared_tree"] {
        assert!(row(name).contains(wanted), "{name}\n{found}");
    }
    assert!(!row("serial").contains("laws"), "{found}");
}

#[test]
fn tile_blocks_of_a_cluster_combine_their_parts_in_order() {
    let lines = |claim: &str| {
        format!(
            "    T.cluster_id([1])\n    part = T.cta_id_in_cluster([4])\n    T.thread_id([64])\n    \
             t = T.alloc_shared([1], \"float32\")\n    \
             Tx.cluster.reduce((B,), (A[:, part * 64:part * 64 + 64],), reducer={}, axes=(-1,))",
            FIRST.replace("commutative=False", claim)
        )
    };
    for at in [[9, 36], [63, 64], [70, 200], [255, 254]] {
        let mut values = vec![0.0f32; 256];
        values[at[0]] = 5.0;
        values[at[1]] = 7.0;
        let a = Array::from_slice(&[1, 256], &values).unwrap();
        let wanted = if at[0] < at[1] { 5.0 } else { 7.0 };
        assert_eq!(run(&program("1, 256", "1,", &lines("commutative=False")), 32, &a), [wanted], "{at:?}");
    }
    let found = refusal(&program("1, 256", "1,", &lines("associative=False, commutative=False")));
    let wanted = "laws: wanted a reducer that is associative for parts of several blocks, found `comm_reducer`, which claims neither law";
    assert!(found.contains(wanted), "{found}");
}

#[test]
fn tile_an_old_value_stands_before_the_elements() {
    let with = |claim: &str| {
        let lines = format!(
            "    T.cta_id([1])\n    tid = T.thread_id([32])\n    t = T.alloc_shared([1], \"float32\")\n    if tid == 0:\n        t[0] = A[39]\n    \
             T.cuda.cta_sync()\n    Tx.cta.reduce((t,), (A[0:39],), reducer={}, axes=(-1,), accum=True)\n    if tid == 0:\n        B[0] = t[0]",
            FIRST.replace("commutative=False", claim)
        );
        program("40,", "1,", &lines)
    };
    for (old, wanted) in [(3.0, 3.0), (0.0, 5.0)] {
        let mut values = vec![0.0f32; 40];
        (values[9], values[30], values[39]) = (5.0, 7.0, old);
        let a = Array::from_slice(&[40], &values).unwrap();
        assert_eq!(run(&with("commutative=False"), 32, &a), [wanted]);
    }
    let found = refusal(&with("associative=False, commutative=False"));
    let wanted = "laws: wanted a reducer that is associative for `accum=True`, found `comm_reducer`, which claims neither law";
    assert!(found.contains(wanted), "{found}");
}

#[test]
fn tile_instructions_that_fold_by_parts_ask_for_both_laws() {
    let wanted = "laws: wanted a reducer that is associative and commutative";
    for (variant, dtype, combine, identity) in
        [("redux_sync", "int32", "T.max(x, y)", "-2147483648"), ("sm100_packed", "float32", "x + y", "0")]
    {
        let lines = "    T.cta_id([1])\n    T.thread_id([1])\n    s = T.alloc_local([32], \"DT\")\n    t = T.alloc_local([1], \"DT\")\n    \
                     for i in range(32):\n        s[i] = T.Cast(\"DT\", A[i])\n    \
                     Tx.reduce((t,), (s,), reducer=T.comm_reducer(lambda x, y: COMBINE, [T.DT(IDENTITY)]CLAIM), axes=(-1,))\n    B[0] = T.Cast(\"float32\", t[0])";
        let lines = lines.replace("DT", dtype).replace("COMBINE", combine).replace("IDENTITY", identity);
        for (claim, is_asked) in [("", false), (", commutative=False", true)] {
            let text = program("32,", "1,", &lines.replace("CLAIM", claim));
            let target = TargetChoice::Cuda { arch: Some("sm_100a".to_owned()) };
            let table = explain(&text, &target).unwrap()[0].to_string();
            let row = table.lines().find(|line| line.trim_start().starts_with(variant)).unwrap();
            assert_eq!(row.contains(wanted), is_asked, "{table}");
            assert!(
                table.lines().any(|line| line.contains("local") && (line.contains("chosen") || !is_asked)),
                "{table}"
            );
        }
    }
}
