//! Programs of tiles from text to an answer in the simulator: scope ids and their extents, guards, layouts and windows,
//! copies, and what is refused of reductions of one value a thread.
//!
//! Names begin with `tile_` and, where they stand for a row of the table of cases, its number.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod memory;
mod order;

use std::collections::BTreeMap;

use coulis::text::{compile_one, explain, lower};
use coulis::{Arguments, Array, CompileOptions, DeviceChoice, Scalar, TargetChoice, Value};

const ORDERS: u32 = 4;

/// `B` after a run of the program on `A`, under several orders of warps.
#[track_caller]
fn run(text: &str, warp: u32, a: &Array) -> Vec<f64> {
    let options =
        CompileOptions { device: DeviceChoice::Sim { warp, orders: ORDERS }, ..CompileOptions::default() };
    let function = compile_one(text, &options).unwrap_or_else(|e| panic!("{e}\n{text}"));
    let values = BTreeMap::from([("A".to_owned(), Value::from(a))]);
    let called = function.call_named(&Arguments { values, random: None }).unwrap();
    let report = called.report.unwrap();
    assert!(report.is_clean(), "{}{report}", report.listing);
    let b = called.buffers.iter().find(|b| b.name == "B").unwrap();
    b.array.scalars().map(Scalar::to_f64).collect()
}

/// The error of the program.
#[track_caller]
fn refusal(text: &str) -> String {
    let options =
        CompileOptions { device: DeviceChoice::Sim { warp: 32, orders: 1 }, ..CompileOptions::default() };
    match compile_one(text, &options) {
        Ok(_) => panic!("accepted:\n{text}"),
        Err(error) => error.to_string(),
    }
}

/// `start, start + 1, ...` as float32.
fn counting(shape: &[i64], start: f32) -> Array {
    let n = shape.iter().product::<i64>();
    Array::from_slice(shape, &(0..n).map(|v| v as f32 + start).collect::<Vec<_>>()).unwrap()
}

/// A program of one block: parameters of these shapes, then the lines of the device.
fn program(a: &str, b: &str, lines: &str) -> String {
    let lines: String = lines.trim_matches('\n').lines().map(|line| format!("{line}\n")).collect();
    format!(
        "@T.prim_func\ndef program(A_ptr: T.handle, B_ptr: T.handle):\n    A = T.match_buffer(A_ptr, ({a}), \"float32\")\n    \
         B = T.match_buffer(B_ptr, ({b}), \"float32\")\n    T.device_entry()\n{lines}"
    )
}

#[test]
fn tile_5_10_masks_name_the_lanes_and_text_asks_for_no_active_mask() {
    let lines = "    T.cta_id([1])\n    tid = T.thread_id([64])\n    B[tid] = T.cuda.warp_sum(A[tid], 8)";
    let target = TargetChoice::Cuda { arch: Some("sm_90a".to_owned()) };
    let text = coulis::text::emit_cuda(&program("64,", "64,", lines), &target).unwrap();
    // Whole warps come: of several groups in one the mask names all lanes.
    assert!(text.contains("__shfl_down_sync(") && text.contains("= (uint)4294967295;"), "{text}");
    assert!(!text.contains("activemask"), "{text}");
}

#[test]
fn tile_5_10_widths_and_scratch_are_checked() {
    let with = |call: &str| {
        let lines = format!(
            "    T.cta_id([1])\n    tid = T.thread_id([128])\n    scratch = T.alloc_shared([2], \"float32\")\n    B[tid] = {call}"
        );
        refusal(&program("128,", "128,", &lines))
    };
    for (call, wanted) in [
        (
            "T.cuda.warp_sum(A[tid], 3)",
            "a width: found 3; legal: powers of two from 2 to the lanes of a warp, which are 32, or 64 on some machines",
        ),
        ("T.cuda.warp_sum(A[tid], 1)", "a width: found 1"),
        ("T.cuda.warp_sum(A[tid], 64)", "groups of 64 threads in warp of 32"),
        ("T.cuda.cta_sum(A[tid], 4, scratch.data)", "found 2 elements; legal: at least 4 elements"),
        ("T.cuda.cta_sum(A[tid], 2, scratch.data)", "2 warps of 32 lanes in a block of 128 threads"),
        ("T.cuda.cta_sum(A[tid], 2, A)", "a buffer in shared memory"),
    ] {
        let found = with(call);
        assert!(found.contains(wanted), "{call}\n{found}");
    }
}

/// The launches of a program that declares these ids.
fn launches(ids: &str) -> Result<String, String> {
    let lines: String = ids.split("; ").map(|id| format!("    {id}\n")).collect();
    let text = program("1,", "1,", &format!("{lines}    B[0] = A[0]"));
    let target = TargetChoice::Cuda { arch: None };
    let text = lower(&text, Some("resolve_scope_ids"), Some(&target)).map_err(|e| e.to_string())?;
    let launch = |line: &str| {
        let (_, rest) = line.split_once("T.launch_thread(\"")?;
        let (tag, extent) = rest.trim_end_matches(')').split_once("\", ")?;
        Some(format!("{tag}={extent}"))
    };
    Ok(text.lines().filter_map(launch).collect::<Vec<_>>().join(" "))
}

#[test]
fn tile_extents_of_the_thread_hierarchy_follow_from_each_other() {
    for (ids, wanted) in [
        ("T.cta_id([2, 3]); T.thread_id([32])", "blockIdx.x=2 blockIdx.y=3 threadIdx.x=32"),
        ("T.cta_id([1]); T.thread_id([8, 4, 2])", "blockIdx.x=1 threadIdx.x=8 threadIdx.y=4 threadIdx.z=2"),
        ("T.cta_id([1]); T.warp_id([4]); T.lane_id([32])", "blockIdx.x=1 threadIdx.x=128"),
        (
            "T.cta_id([1]); T.warpgroup_id([2]); T.warp_id_in_wg([4]); T.lane_id([32])",
            "blockIdx.x=1 threadIdx.x=256",
        ),
        (
            "T.cta_id([1]); T.warpgroup_id([1]); T.warp_id_in_wg([1]); T.lane_id([32])",
            "blockIdx.x=1 threadIdx.x=32",
        ),
        ("T.cta_id([1]); T.warpgroup_id([2]); T.thread_id_in_wg([128])", "blockIdx.x=1 threadIdx.x=256"),
        ("T.cta_id([1]); T.thread_id([64]); w = T.warp_id(); T.lane_id()", "blockIdx.x=1 threadIdx.x=64"),
        ("T.cta_id([1]); T.thread_id([16]); T.warp_id([1])", "blockIdx.x=1 threadIdx.x=16"),
    ] {
        assert_eq!(launches(ids).as_deref(), Ok(wanted), "{ids}");
    }
}

#[test]
fn tile_extents_that_contradict_each_other_are_refused() {
    for (ids, wanted) in [
        (
            "T.cta_id([1]); T.thread_id([64]); T.warp_id([4])",
            "inconsistent extents: a block has 64 threads by `T.thread_id`, and 128 by `T.warp_id([4])` of 32 lanes",
        ),
        (
            "T.cta_id([1]); T.thread_id([64]); T.lane_id([16])",
            "inconsistent extents: `T.lane_id` declares 16, and there are 32",
        ),
        (
            "T.cta_id([1]); T.thread_id([48]); T.lane_id([32])",
            "non-divisible extents: 48 threads are not whole warps of 32 lanes",
        ),
        ("T.cta_id([1])", "declare a thread extent"),
        ("T.cta_id([1]); T.lane_id([32])", "declare a thread extent"),
        ("T.thread_id([32])", "declare it by `T.cta_id([...])`"),
        ("T.cta_id([1]); T.thread_id([32]); T.thread_id([64])", "declared twice, with different extents"),
        ("T.cta_id([1, 1, 1, 1]); T.thread_id([32])", "at most 3 extents, got 4"),
    ] {
        let found = launches(ids).unwrap_err();
        assert!(found.contains(wanted), "{ids}\n{found}");
    }
    let under = program(
        "1,",
        "1,",
        "    T.cta_id([1])\n    T.thread_id([32])\n    if A[0] > 0.0:\n        w = T.warp_id([1])\n        B[0] = 1.0",
    );
    assert!(refusal(&under).contains("`T.warp_id` stands under a loop or condition"), "{}", refusal(&under));
    let late = "@T.prim_func\ndef late(B: T.Buffer((1,), \"float32\")):\n    T.thread_id([1])\n    T.device_entry()\n    T.cta_id([1])\n    B[0] = 1.0\n";
    assert!(refusal(late).contains("before `T.device_entry()`"), "{}", refusal(late));
}

#[test]
fn tile_every_scope_id_counts_what_it_is_named_for() {
    let lines = r#"
    bx, by = T.cta_id([2, 3])
    wg = T.warpgroup_id([2])
    warp = T.warp_id([8])
    w = T.warp_id_in_wg([4])
    t = T.thread_id_in_wg([128])
    lane = T.lane_id([32])
    tid = T.thread_id([256])
    block = T.meta_var(by * 2 + bx)
    if wg * 128 + t == tid and warp * 32 + lane == tid and wg * 4 + w == warp:
        B[block, tid] = A[0] + T.Cast("float32", block * 256 + tid)
    else:
        B[block, tid] = T.float32(-1)
"#;
    let found = run(&program("1,", "6, 256", lines), 32, &counting(&[1], 0.0));
    assert_eq!(found, (0..6 * 256).map(f64::from).collect::<Vec<_>>());
}

#[test]
fn tile_guards_decide_which_threads_come() {
    let with = |guard: &str, width: u32| {
        let lines = format!(
            "    T.cta_id([1])\n    warp = T.warp_id([2])\n    lane = T.lane_id([32])\n    x = T.alloc_local([1], \"float32\")\n    \
             at = T.meta_var(warp * 32 + lane)\n    x[0] = T.float32(0)\n    {guard}:\n        x[0] = T.cuda.warp_sum(A[at], {width})\n    \
             B[at] = x[0]"
        );
        program("64,", "64,", &lines)
    };
    for (guard, width, comes) in [
        ("if warp == 1", 32, (|t| t >= 32) as fn(usize) -> bool),
        ("if lane < 8", 8, |t| t % 32 < 8),
        ("if lane < 8 or lane >= 24", 8, |t| !(8..24).contains(&(t % 32))),
        ("if lane % 4 < 2", 2, |t| t % 4 < 2),
        ("if not (warp == 0 and lane < 16)", 16, |t| t >= 16),
        ("for i in T.serial(warp + 1)", 32, |_| true),
    ] {
        let found = run(&with(guard, width), 32, &counting(&[64], 0.0));
        let width = width as usize;
        let total = |t: usize| (t / width * width..t / width * width + width).map(|v| v as f64).sum::<f64>();
        let wanted: Vec<f64> = (0..64).map(|t| if comes(t) { total(t) } else { 0.0 }).collect();
        assert_eq!(found, wanted, "{guard}");
    }
    for (guard, width, wanted) in [
        ("if lane < 4", 8, "active threads: wanted all threads of a group, found only those with"),
        ("if lane % 2 == 0", 2, "active threads: wanted all threads of a group"),
        ("for i in T.serial(lane)", 2, "active threads: wanted all threads of a group"),
        ("if A[at] > 0.0", 32, "which may differ between them"),
    ] {
        let found = refusal(&with(guard, width));
        assert!(found.contains(wanted), "{guard}\n{found}");
        assert!(found.contains("call on sim: Tx.warp.sum("), "{found}");
    }
}

#[test]
fn tile_errors_of_calls_name_their_line_and_column() {
    let with = |call: &str| {
        let lines = format!(
            "    T.cta_id([1])\n    tid = T.thread_id([64])\n    s = T.alloc_shared([4, 8], \"float32\")\n    t = T.alloc_shared([4], \"float32\")\n    if tid < 32:\n        {call}\n    B[0] = A[0]"
        );
        refusal(&program("32,", "1,", &lines))
    };
    for (call, wanted) in [
        (
            "Tx.warp.sum(t, s, axes=(2,))",
            "line 11, column 9: axis 2 is reduced, and the source has 2 dimensions",
        ),
        (
            "Tx.warp.sum(t, s, dispatch=\"fast\")",
            "line 11, column 9: `dispatch=\"fast\"` names no variant of tile.reduce",
        ),
        ("Tx.cta.sum(t, s)", "line 11, column 9: no variant of tile.reduce accepts the call"),
        ("Tx.warp.copy(t, s)", "line 11, column 9: no variant of tile.copy accepts the call"),
        (
            "Tx.warp.reduce(t, s, reducer=\"no_such\")",
            "line 11, column 9: the reducer `no_such` of a tile call is not known",
        ),
        ("Tx.warp.copy(t[0:9], t[0:9])", "line 11, column 9: dimension 0 of `t` has 4 elements"),
        (
            "B[0] = T.float32(2) * T.cuda.warp_sum(A[tid], 64)",
            "line 11, column 31: no variant of tile.reduce",
        ),
        (
            "Tx.warp.reduce(t, s, reducer=T.comm_reducer(lambda x, y: x - y, [T.float32(0)]))",
            "line 11, column 9: ",
        ),
    ] {
        let found = with(call);
        assert!(found.contains(wanted), "{call}\n{found}");
    }
}

#[test]
fn tile_copies_of_registers_are_for_one_thread() {
    let lines = |scope: &str| {
        format!(
            "    T.cta_id([1])\n    tid = T.thread_id([4])\n    x = T.alloc_local([2, 3], \"float32\")\n    \
             Tx{scope}.copy(x, A[tid, :, :])\n    Tx.copy(B[tid, :, :], x)"
        )
    };
    let text = |scope: &str| program("4, 2, 3", "4, 2, 3", &lines(scope));
    let found = run(&text(""), 32, &counting(&[4, 2, 3], 0.0));
    assert_eq!(found, (0..24).map(f64::from).collect::<Vec<_>>());
    let refused = refusal(&text(".cta"));
    assert!(refused.contains("operands: wanted memory that all threads of the scope share"), "{refused}");
}

#[test]
fn tile_copies_that_do_not_fit_are_refused_by_need() {
    let with = |copy: &str| {
        let lines = format!(
            "    T.cta_id([1])\n    tid = T.thread_id([64])\n    s = T.alloc_shared([4, 8], \"float32\")\n    h = T.alloc_shared([4, 8], \"float16\")\n    {copy}\n    B[0] = A[0]"
        );
        refusal(&program("32,", "1,", &lines))
    };
    for (copy, wanted) in [
        ("Tx.cta.copy(s, A)", "extents: wanted the same extents, found (32) to (4, 8)"),
        ("Tx.cta.copy(s, h)", "types: wanted one element type, found float16 to float32"),
        (
            "Tx.cta.copy(s[0:5, :], s)",
            "dimension 0 of `s` has 4 elements, and a tile call names those from 0 to 5",
        ),
        (
            "Tx.cta.copy(s, s, dispatch=\"shared\")",
            "names no variant of tile.copy; there are `vec_auto`, `fallback`",
        ),
    ] {
        let found = with(copy);
        assert!(found.contains(wanted), "{copy}\n{found}");
    }
    let half = "    T.cta_id([1])\n    tid = T.thread_id([64])\n    s = T.alloc_shared([32], \"float32\")\n    if tid < 16:\n        Tx.cta.copy(s, A)\n    B[0] = A[0]";
    let found = refusal(&program("32,", "1,", half));
    assert!(
        found.contains(
            "active threads: wanted all threads of the scope, found a cta of 64 threads of which come \
                            only those with `tid < 16`"
        ),
        "{found}"
    );
}

#[test]
fn tile_the_program_of_the_page_on_tiles_sums_rows() {
    let page = include_str!("../../../../docs/tiles.md");
    let text = page.split("```python\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let wanted: Vec<f64> = (0..8).map(|row| (0..64).map(|at| f64::from(row * 64 + at)).sum()).collect();
    assert_eq!(run(text, 32, &counting(&[8, 64], 0.0)), wanted);
    let unordered = text.replace("    T.cuda.cta_sync()\n", "");
    let options = CompileOptions {
        device: DeviceChoice::Sim { warp: 32, orders: ORDERS },
        ..CompileOptions::default()
    };
    let values = BTreeMap::from([("A".to_owned(), Value::from(&counting(&[8, 64], 0.0)))]);
    let function = compile_one(&unordered, &options).unwrap();
    let report = function.call_named(&Arguments { values, random: None }).unwrap().report.unwrap();
    assert!(report.to_string().contains("race between"), "{report}");
}

#[test]
fn tile_reducers_that_break_their_laws_are_refused() {
    let with = |combine: &str| {
        let reducer = format!("T.comm_reducer(lambda x, y: {combine}, [T.float32(0)])");
        let lines = format!(
            "    T.cta_id([1])\n    T.thread_id([32])\n    s = T.alloc_shared([4, 8], \"float32\")\n    t = T.alloc_shared([4], \"float32\")\n    Tx.cta.copy(s, A)\n    Tx.cta.reduce(t, s, reducer={reducer}, axes=(1,))\n    Tx.cta.copy(B, t)"
        );
        program("4, 8", "4,", &lines)
    };
    assert_eq!(run(&with("x + y"), 32, &counting(&[4, 8], 0.0)), [28.0, 92.0, 156.0, 220.0]);
    let found = refusal(&with("x - y"));
    assert!(found.contains("is refuted: \"combine(identity, a) equals a\" fails for a = "), "{found}");
}

#[test]
fn tile_reducers_of_states_whose_fields_belong_together_are_taken() {
    // Means with their counts: two negative counts that cancel each other, which no fold meets, would refute
    // any such combine.
    let merged = "((x0 * x1 + y0 * y1) / T.max(x1 + y1, T.float32(1)), x1 + y1)";
    let with = |combine: &str| {
        let reducer =
            format!("T.comm_reducer(lambda x0, x1, y0, y1: {combine}, [T.float32(0), T.float32(0)])");
        let lines = format!(
            "    T.cta_id([1])\n    T.thread_id([32])\n    s = T.alloc_shared([4, 8], \"float32\")\n    n = T.alloc_shared([4, 8], \"float32\")\n    t = T.alloc_shared([4], \"float32\")\n    m = T.alloc_shared([4], \"float32\")\n    Tx.cta.copy(s, A)\n    Tx.cta.copy(n, A)\n    Tx.cta.reduce((t, m), (s, n), reducer={reducer}, axes=(1,))\n    Tx.cta.copy(B, t)"
        );
        program("4, 8", "4,", &lines)
    };
    let squares_by_sums = |row: u32| {
        let values: Vec<f64> = (0..8).map(|at| f64::from(row * 8 + at)).collect();
        values.iter().map(|v| v * v).sum::<f64>() / values.iter().sum::<f64>()
    };
    for (found, row) in run(&with(merged), 32, &counting(&[4, 8], 0.0)).iter().zip(0..4) {
        assert!((found - squares_by_sums(row)).abs() < 1e-4, "{found}");
    }
}

#[test]
fn tile_reducers_of_narrow_floats_are_folded_in_float32_and_rounded_once() {
    // In memory of the block, in one thread's registers, and in those of a warp's lanes.
    let shared = r#"
    T.cta_id([1])
    tid = T.thread_id([64])
    s = T.alloc_shared([64], "DT")
    o = T.alloc_shared([1], "DT")
    s[tid] = T.Cast("DT", A[tid])
    if tid == 0:
        o[0] = T.DT(OLD)
    T.cuda.cta_sync()
    Tx.cta.reduce(o, s, REDUCER)
    T.cuda.cta_sync()
    if tid == 0:
        B[0] = T.Cast("float32", o[0])
"#;
    let registers = r#"
    T.cta_id([1])
    T.thread_id([1])
    s = T.alloc_local([64], "DT")
    o = T.alloc_local([1], "DT")
    for i in range(64):
        s[i] = T.Cast("DT", A[i])
    o[0] = T.DT(OLD)
    Tx.reduce(o, s, REDUCER)
    B[0] = T.Cast("float32", o[0])
"#;
    let lanes = r#"
    T.cta_id([1])
    lane = T.lane_id([32])
    T.thread_id([32])
    s = T.alloc_buffer((1, 64), "DT", scope="local", layout=TileLayout(S[(1, 2, 32) : (2, 1, 1 @ laneid)]))
    own = s.local(2)
    o = T.alloc_buffer((1,), "DT", scope="local", layout=TileLayout(S[(1,) : (1,)] + R[32 : 1 @ laneid]))
    whole = o.local(1)
    for i in range(2):
        own[i] = T.Cast("DT", A[i * 32 + lane])
    whole[0] = T.DT(OLD)
    Tx.warp.reduce(o, s, REDUCER)
    if lane == 0:
        B[0] = T.Cast("float32", whole[0])
"#;
    let values =
        |of: &dyn Fn(usize) -> f32| Array::from_slice(&[64], &(0..64).map(of).collect::<Vec<_>>()).unwrap();
    // Two to the 20th is no float16, and the whole product is.
    let powers = values(&|at| {
        if at < 20 {
            2.0
        } else if at < 30 {
            0.5
        } else {
            1.0
        }
    });
    let large = values(&|_| 57344.0);
    let product = "reducer=T.comm_reducer(lambda x, y: x * y, [T.DT(1)]), axes=(-1,)";
    let mean = "reducer=T.comm_reducer(lambda x, y: x + y, [T.DT(0)], finish=lambda s: s * T.DT(0.015625)), axes=(-1,)";
    // What is only selected stays as it is, and so does a state that is wide already.
    let largest = "reducer=T.comm_reducer(lambda x, y: T.max(x, y), [T.DT(\"-inf\")]), axes=(-1,)";
    // An old value takes part before the one rounding.
    let with_old = format!("{product}, accum=True");
    let many = values(&|at| if at < 20 { 2.0 } else { 1.0 });
    for dtype in ["float16", "bfloat16"] {
        for lines in [shared, registers, lanes] {
            for (reducer, a, wanted) in [
                (product, &powers, 1024.0),
                (mean, &large, 57344.0),
                (largest, &powers, 2.0),
                (&with_old, &many, 1024.0),
            ] {
                let lines =
                    lines.replace("REDUCER", reducer).replace("DT", dtype).replace("OLD", "0.0009765625");
                let found = run(&program("64,", "1,", &lines), 32, a);
                assert_eq!(found, [wanted], "{dtype}\n{lines}");
            }
        }
    }
}

#[test]
fn tile_windows_show_the_registers_of_one_thread() {
    let lines = r#"
    T.cta_id([1])
    lane = T.lane_id([32])
    T.thread_id([32])
    tile = T.alloc_buffer((32, 2, 2), "float32", scope="local", layout=TileLayout(S[(32, 2, 2) : (1 @ laneid, 2, 4)]))
    raw = tile.local(7)
    mine = tile.local(2, 2, layout=tile.layout.storage())
    for i, j in T.grid(2, 2):
        mine[i, j] = A[lane, i * 2 + j]
    B[lane, 0] = raw[0]
    B[lane, 1] = raw[4]
    B[lane, 2] = raw[2]
    B[lane, 3] = raw[6]
"#;
    let found = run(&program("32, 4", "32, 4", lines), 32, &counting(&[32, 4], 0.0));
    assert_eq!(found, (0..128).map(f64::from).collect::<Vec<_>>());
    for (from, to, wanted) in [
        (
            "raw = tile.local(7)",
            "raw = tile.local(8)",
            "a window `raw` other than all 7 elements of a thread",
        ),
        ("raw[0]", "tile[lane, 0, 0]", "`tile` is spread over threads"),
        ("(32, 2, 2), \"float32\"", "(32, 2, 4), \"float32\"", "`tile` has 256 elements, and its layout"),
    ] {
        let text = program("32, 4", "32, 4", &lines.replace(from, to));
        let found = refusal(&text);
        assert!(found.contains(wanted), "{found}");
    }
}

#[test]
fn tile_tables_name_the_call_and_every_variant() {
    let lines = "    T.cta_id([1])\n    T.thread_id([32])\n    s = T.alloc_shared([32], \"float32\")\n    Tx.cta.copy(s, A[0:32])\n    B[0] = A[0]";
    let target = TargetChoice::Cuda { arch: Some("sm_100a".to_owned()) };
    let tables = explain(&program("33,", "1,", lines), &target).unwrap();
    let texts: Vec<String> = tables.iter().map(ToString::to_string).collect();
    assert_eq!(
        texts,
        ["program on sm_100a: Tx.cta.copy(s, A[0:32])\n  vec_auto  10  chosen\n  fallback   0  accepts\n"]
    );
}

#[test]
fn tile_scalars_that_are_assigned_again_are_registers() {
    let lines = r#"
    T.cta_id([1])
    tid = T.thread_id([8])
    total: T.float32 = T.float32(0)
    steps: T.int32 = 0
    twice: T.float32 = A[tid] * T.float32(2)
    for i in T.serial(4):
        if i <= tid:
            total += A[i] + twice
            steps = steps + 1
    B[tid] = total + T.Cast("float32", steps)
"#;
    let found = run(&program("8,", "8,", lines), 32, &counting(&[8], 1.0));
    let want = |t: usize| {
        let n = (t + 1).min(4);
        (0..n).map(|i| (i + 1) as f64 + 2.0 * (t + 1) as f64).sum::<f64>() + n as f64
    };
    assert_eq!(found, (0..8).map(want).collect::<Vec<_>>());
    // What is printed reads back, with the register written out.
    let text = program("8,", "8,", lines);
    let printed = coulis::text::canonical(&text).unwrap();
    assert!(printed.contains("total = T.alloc_buffer((1,), \"float32\", scope=\"local\")"), "{printed}");
    assert_eq!(coulis::text::canonical(&printed).unwrap(), printed);
    let wrong = text.replace("steps = steps + 1", "steps = steps + T.float32(1)");
    assert!(refusal(&wrong).contains("float32"), "{}", refusal(&wrong));
    let while_ = text.replace("for i in T.serial(4):", "while steps < 4:");
    assert!(
        refusal(&while_).contains("legal here: an assignment, a call, `for`, `if`"),
        "{}",
        refusal(&while_)
    );
}

#[test]
fn tile_tiles_that_32_bits_do_not_reach_are_indexed_by_64() {
    let lines = "    bx = T.cta_id([70000])\n    T.thread_id([256])\n    Tx.cta.sum(B[bx], A[bx, :], axes=(-1,), accum=False)";
    let target = TargetChoice::Cuda { arch: Some("sm_90a".to_owned()) };
    let of = |columns: i64| {
        coulis::text::emit_cuda(&program(&format!("70000, {columns}"), "70000,", lines), &target).unwrap()
    };
    // 70000 * 30679 elements are more than 2^31 - 1, and 70000 * 30678 are not.
    let (wide, narrow) = (of(30_679), of(30_678));
    assert!(wide.contains("((int64_t)((int)blockIdx.x)) * (int64_t)30679"), "{wide}");
    assert!(narrow.contains("((int)blockIdx.x) * 30678") && !narrow.contains("int64_t"), "{narrow}");
}

#[test]
fn tile_an_old_value_is_one_that_the_state_holds_or_refused() {
    let with = |call: &str, src: &str, dst: &str| {
        let lines = r#"
    T.cta_id([1])
    tid = T.thread_id([32])
    s = T.alloc_shared([8], "SRC")
    t = T.alloc_shared([1], "DST")
    if tid < 8:
        s[tid] = T.Cast("SRC", A[tid])
    if tid == 0:
        t[0] = T.Cast("DST", T.float32(-5))
    T.cuda.cta_sync()
    Tx.cta.CALL(t, s, axes=(0,), accum=True)
    T.cuda.cta_sync()
    if tid == 0:
        B[0] = T.Cast("float32", t[0])
"#;
        program("8,", "1,", &lines.replace("CALL", call).replace("SRC", src).replace("DST", dst))
    };
    for (call, src, dst, wanted) in [
        ("sum", "uint8", "int32", 31.0),
        ("sum", "int8", "int64", 31.0),
        ("sum", "float32", "float64", 31.0),
        ("sum", "float32", "int32", 31.0),
        ("min", "int16", "int8", -5.0),
        ("max", "float32", "float16", 8.0),
    ] {
        assert_eq!(run(&with(call, src, dst), 32, &counting(&[8], 1.0)), [wanted], "{call} {src} {dst}");
    }
    for (call, src, dst, state) in [
        ("sum", "uint8", "float32", "uint64"),
        ("min", "uint8", "int32", "uint8"),
        ("max", "int8", "uint8", "int8"),
        ("max", "int32", "float32", "int32"),
        ("max", "float32", "float64", "float32"),
    ] {
        let found = refusal(&with(call, src, dst));
        let wanted = format!("takes a destination whose values its state of {state} holds, and `t` is {dst}");
        assert!(found.contains(&wanted), "{found}");
    }
}
