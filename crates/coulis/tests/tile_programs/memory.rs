//! Memory of a program: parameters, buffers of each scope, layouts, parts, and operands that share elements.

use coulis::text::emit_cuda;
use coulis::{Owner, TargetChoice};

use crate::{counting, program, refusal, run};

#[test]
fn tile_parameters_go_through_their_layouts() {
    let text = |layout: &str| {
        let lines = "    T.cta_id([1]); T.thread_id([32])\n    s = T.alloc_shared([4, 8], \"float32\")\n    Tx.cta.copy(s, A)\n    \
                     T.cuda.cta_sync()\n    Tx.cta.copy(B, s)";
        let a = "A = T.match_buffer(A_ptr, (4, 8), \"float32\"";
        let text = program("4, 8", "4, 8", lines);
        assert!(text.contains(a), "{text}");
        text.replace(a, &format!("{a}, layout={layout}"))
    };
    let found = |layout: &str| run(&text(layout), 32, &counting(&[4, 8], 0.0));
    let wanted = |place: fn(usize, usize) -> usize| -> Vec<f64> {
        (0..32).map(|at| place(at / 8, at % 8) as f64).collect()
    };
    assert_eq!(found("TileLayout(S[(4, 8)])"), wanted(|r, c| 8 * r + c));
    assert_eq!(found("TileLayout(S[(4, 8) : (1, 4)])"), wanted(|r, c| r + 4 * c));
    assert_eq!(
        found("TileLayout(S[(2, 2, 2, 4) : (16, 4, 8, 1)])"),
        wanted(|r, c| 16 * (r / 2) + 4 * (r % 2) + 8 * (c / 4) + c % 4)
    );
    assert_eq!(found("ComposeLayout(0, 2, 3, TileLayout(S[(4, 8)]))"), wanted(|r, c| 8 * r + (c ^ r)));
    // What is written goes there, too.
    let out = text("TileLayout(S[(4, 8)])").replace(
        "B_ptr, (4, 8), \"float32\"",
        "B_ptr, (4, 8), \"float32\", layout=TileLayout(S[(4, 8) : (1, 4)])",
    );
    assert_eq!(
        run(&out, 32, &counting(&[4, 8], 0.0)),
        wanted(|r, c| {
            let at = 8 * r + c;
            at % 4 * 8 + at / 4
        })
    );
    for (layout, wanted) in [
        ("TileLayout(S[(4, 8) : (16, 1)])", "the window `A` reaches over 56 elements, and `A` has 32"),
        ("TileLayout(S[(4, 8) : (1, 1)])", "of `A` have one address"),
        ("TileLayout(S[(4, 4) : (1, 4)])", "`A` has 32 elements, and its layout"),
        (
            "TileLayout(S[(4, 8) : (1 @ laneid, 1)])",
            "a parameter, `A`, that is spread over threads, is not supported",
        ),
    ] {
        assert!(refusal(&text(layout)).contains(wanted), "{layout}\n{}", refusal(&text(layout)));
    }
}

#[test]
fn tile_buffers_of_each_scope_and_loops_of_each_kind() {
    let lines = r#"
    bx = T.cta_id([2])
    tid = T.thread_id([64])
    g = T.alloc_buffer((2, 64), "float32", scope="global")
    s = T.alloc_buffer((64,), "float32", scope="shared")
    d = T.alloc_buffer((64,), "float32", scope="shared.dyn")
    x = T.alloc_buffer((8,), "float32", scope="local")
    turned = d.view(8, 8, layout=TileLayout(S[(8, 8) : (1, 8)]))
    for i in T.serial(4):
        x[i] = A[bx, tid]
    for i in T.unroll(4):
        x[i + 4] = x[i] + T.Cast("float32", i)
    g[bx, tid] = x[7]
    T.cuda.cta_sync()
    if tid % 16 == 0:
        for v in T.vectorized(16):
            s[tid + v] = g[bx, tid + v]
    T.cuda.cta_sync()
    if tid == 5:
        for i, j in T.grid(8, 8):
            turned[j, i] = s[i * 8 + j]
    T.cuda.cta_sync()
    B[bx, tid] = d[tid]
"#;
    let found = run(&program("2, 64", "2, 64", lines), 32, &counting(&[2, 64], 0.0));
    assert_eq!(found, (0..128).map(|at| f64::from(at + 3)).collect::<Vec<_>>());
}

#[test]
fn tile_parts_whose_ends_differ_by_a_number_have_that_extent() {
    let lines = "    T.cta_id([1]); tid = T.thread_id([4])\n    x = T.alloc_local([40], \"float32\")\n    y = T.alloc_local([1], \"float32\")\n    \
                 Tx.copy(x, A[tid, :])\n    for k in T.serial(4):\n        Tx.max(y, x[k * 5 + 1:k * 5 + 17])\n    B[tid] = y[0]";
    let found = run(&program("4, 40", "4,", lines), 32, &counting(&[4, 40], 0.0));
    assert_eq!(found, [31.0, 71.0, 111.0, 151.0]);
}

#[test]
fn tile_operands_that_share_elements_are_told_apart() {
    let with = |n_threads: u32, alloc: &str, call: &str, result: &str| {
        let scope = if n_threads == 1 { "" } else { ".cta" };
        let lines = format!(
            "    T.cta_id([1])\n    T.thread_id([{n_threads}])\n    s = {alloc}([8, 8], \"float32\")\n    v = s.view(4, 16)\n    \
             Tx{scope}.copy(s, A)\n    T.cuda.cta_sync()\n    Tx{scope}.{call}\n    T.cuda.cta_sync()\n    Tx{scope}.copy(B, {result})"
        );
        program("8, 8", "8,", &lines)
    };
    let one = |call: &str, result: &str| with(1, "T.alloc_local", call, result);
    let block = |call: &str, result: &str| with(64, "T.alloc_shared", call, result);
    let row = |r: i32| (0..8).map(|c| f64::from(8 * r + c)).sum::<f64>();
    let rows: Vec<f64> = (0..8).map(row).collect();
    let columns: Vec<f64> = (0..8).map(|c| (0..8).map(|r| f64::from(8 * r + c)).sum()).collect();
    let input = counting(&[8, 8], 0.0);
    // In the place of their own elements, and apart.
    assert_eq!(run(&one("sum(s[:, 3:4], s, axes=(1,))", "s[:, 3]"), 32, &input), rows);
    assert_eq!(run(&one("sum(s[2:3, :], s, axes=(0,))", "s[2, :]"), 32, &input), columns);
    let apart = one("sum(s[0:1, 0:4], s[4:8, :], axes=(1,))", "s[0, :]");
    assert_eq!(run(&apart, 32, &input)[..4], rows[4..]);
    let moved = block("copy(s[0:4, :], s[4:8, :])", "s[0, :]");
    assert_eq!(run(&moved, 32, &input)[0], 32.0);
    assert_eq!(run(&one("copy(s[0:4, :], s[0:4, :])", "s[0, :]"), 32, &input)[7], 7.0);
    assert_eq!(run(&one("copy(v[0, 0:8], s[1, :])", "s[0, :]"), 32, &input)[7], 15.0);
    for text in [
        one("sum(s[1, :], s, axes=(1,))", "s[1, :]"),
        block("sum(s[1, :], s, axes=(1,))", "s[1, :]"),
        block("sum(s[:, 3:4], s, axes=(1,))", "s[:, 3]"),
        one("sum(v[1, 0:8], s, axes=(1,))", "s[1, :]"),
    ] {
        let found = refusal(&text);
        assert!(found.contains("overlap: wanted results apart from elements, found"), "{text}\n{found}");
    }
    for text in [
        one("copy(s[2:6, :], s[0:4, :])", "s[1, :]"),
        block("copy(s[2:6, :], s[0:4, :])", "s[1, :]"),
        one("copy(v[0, 4:12], s[0, :])", "s[1, :]"),
    ] {
        let found = refusal(&text);
        assert!(found.contains("overlap: wanted a destination apart from its source"), "{text}\n{found}");
    }
}

#[test]
fn tile_layouts_in_which_elements_share_an_address_are_refused() {
    for (layout, wanted) in [
        ("TileLayout(S[(4, 8) : (4, 1)])", Some("elements [0, 4] and [1, 0] of `s` have one address")),
        ("TileLayout(S[(4, 8) : (2, 3)])", Some("elements [0, 2] and [3, 0] of `s` have one address")),
        (
            "ComposeLayout(1, 2, 0, TileLayout(S[(4, 8) : (8, 1)]))",
            Some("elements [0, 0] and [0, 2] of `s` have one"),
        ),
        (
            "ComposeLayout(40, 30, 40, TileLayout(S[(4, 8) : (8, 1)]))",
            Some("layouts have at most 2147483647"),
        ),
        ("TileLayout(S[(4, 8) : (1, 4)])", None),
        ("TileLayout(S[(4, 8) : (2, 9)])", None),
        ("ComposeLayout(1, 2, 1, TileLayout(S[(4, 8) : (8, 1)]))", None),
        ("ComposeLayout(0, 2, 3, TileLayout(S[(4, 8) : (8, 1)]))", None),
    ] {
        let lines = format!(
            "    T.cta_id([1])\n    T.thread_id([32])\n    s = T.alloc_buffer([4, 8], \"float32\", scope=\"shared\", layout={layout})\n    Tx.cta.copy(s, A)\n    Tx.cta.copy(B, s)"
        );
        let text = program("4, 8", "4, 8", &lines);
        match wanted {
            Some(wanted) => {
                let found = refusal(&text);
                assert!(found.contains(wanted), "{layout}\n{found}");
            }
            None => {
                let wanted: Vec<f64> = (0..32).map(f64::from).collect();
                assert_eq!(run(&text, 32, &counting(&[4, 8], 0.0)), wanted, "{layout}");
            }
        }
    }
}

#[test]
fn tile_copies_go_through_layouts_swizzles_and_parts() {
    for warp in [32, 64] {
        for option in ["", ", dispatch=\"fallback\""] {
            let lines = format!(
                r#"
    T.cta_id([1]); T.thread_id([256]); wg = T.warpgroup_id()
    s = T.alloc_buffer((16, 32), "float32", scope="shared.dyn", layout=ComposeLayout(2, 3, 3, TileLayout(S[(16, 32)])))
    t = T.alloc_buffer((16, 32), "float32", scope="shared", layout=TileLayout(S[(16, 32) : (1, 16)]))
    u = T.alloc_buffer((16, 32), "float32", scope="shared")
    Tx.cta.copy(s, A{option})
    T.cuda.cta_sync()
    Tx.cta.copy(t[3:16, :], s[3:16, :]{option})
    Tx.cta.copy(t[0:3, :], s[0:3, :]{option})
    T.cuda.cta_sync()
    if wg == 0:
        Tx.wg.copy(u[:, 0:8], t[:, 0:8]{option})
        Tx.wg.copy(u[:, 8:32], t[:, 8:32]{option})
    T.cuda.cta_sync()
    Tx.cta.copy(B[0:8, 1, :], u[0:8, :]{option})
    Tx.cta.copy(B[0:8, 0, :], u[8:16, :]{option})
"#
            );
            let found = run(&program("16, 32", "8, 2, 32", &lines), warp, &counting(&[16, 32], 0.0));
            let place = |at: usize| (1 - at / 32 % 2) * 256 + at / 64 * 32 + at % 32;
            assert_eq!(found, (0..512).map(|at| place(at) as f64).collect::<Vec<_>>());
        }
    }
}

#[test]
fn tile_layouts_and_windows_that_memory_does_not_have_are_refused() {
    let with = |line: &str| {
        let lines = format!(
            "    T.cta_id([1])\n    tid = T.thread_id([64])\n    s = T.alloc_shared([64], \"float32\")\n    {line}\n    \
             if tid < 2:\n        v[tid, 0] = A[tid]\n    B[tid] = A[tid]"
        );
        program("64,", "64,", &lines)
    };
    let alloc = |layout: &str| {
        format!("v = T.alloc_buffer((2, 1), \"float32\", scope=\"shared\", layout=TileLayout({layout}))")
    };
    let steps = "the strides and offsets of a layout are to be at least 0, and `v` has the layout";
    let wide = "`v` has a layout of 9223372036854775807 elements, and layouts have at most 2147483647";
    for (line, wanted) in [
        (alloc("S[(2, 1) : (-1, 1)]"), steps),
        (alloc("S[(2, 1) : (-1, 1)] + 1"), steps),
        (alloc("S[(2, 1) : (9223372036854775807, 1)]"), wide),
        (
            "v = s.view(2, 32, layout=TileLayout(S[(2, 32) : (64, 1)]))".to_owned(),
            "the window `v` reaches over 96 elements, and `s` has 64",
        ),
        (
            "v = s.view(2, 31)".to_owned(),
            "the window `v` has 62 elements, and `s` has 64; without a layout both are to have as many",
        ),
    ] {
        let found = refusal(&with(&line));
        assert!(found.contains(wanted), "{line}\n{found}");
    }
    assert!(refusal(&with("v = s.view(2, 32)\n    T.cuda.warpgroup_sync(16)")).contains("V34"));
    assert_eq!(
        run(&with("v = s.view(2, 32)"), 32, &counting(&[64], 0.0)),
        (0..64).map(f64::from).collect::<Vec<_>>()
    );
}

#[test]
fn tile_programs_are_printed_for_machines_that_have_their_memory() {
    let lines = "    T.cta_id([1])\n    tid = T.thread_id([64])\n    s = T.alloc_shared([50000], \"float32\")\n    s[tid] = A[tid]\n    \
                 B[tid] = s[tid]";
    let text = program("64,", "64,", lines);
    let on = |arch: &str| emit_cuda(&text, &TargetChoice::Cuda { arch: Some(arch.to_owned()) });
    assert!(on("sm_90a").is_ok());
    let found = on("sm_80").unwrap_err();
    assert_eq!(found.owner, Owner::User);
    assert!(found.to_string().contains("V25"), "{found}");
}
