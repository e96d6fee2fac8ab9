//! Tile calls of scheduled reductions, from text to Flat form.

use coulis_ir::print::print_module;
use coulis_ir::{Form, Kernel, Target};
use coulis_lower::{Options, lower};
use coulis_script::parse_module;
use std::path::Path;

fn parsed(text: &str) -> Kernel {
    parse_module(text).unwrap_or_else(|e| panic!("{e}\n{text}")).remove(0)
}

fn lowered(kernel: Kernel, target: &Target) -> Kernel {
    let options = Options { target, simple_mode: false };
    let flat = lower(kernel, &options, &mut |_, _| {}).unwrap_or_else(|e| panic!("{e}"));
    match coulis_ir::verify::verify(flat) {
        Ok(checked) => checked.kernel().clone(),
        Err(faults) => panic!("{faults}:\n{}", faults.listing),
    }
}

#[track_caller]
fn check_golden(file: &str, kernel: Kernel) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/files/lower").join(file);
    // The header makes the file a test of the file runner too, which reads it back.
    let got = format!("# test: parse canonical\n{}", print_module(&[kernel]));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &got).expect("the golden is written");
    }
    let want = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(got, want, "found:\n{got}\nwanted:\n{want}");
}

#[test]
fn listing_6_folds_by_shuffles_within_half_a_warp() {
    // What the schedule of seed 003 builds: rows split by 32, the factored axis of 16 on `threadIdx.x`.
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../coulis-schedule/tests/listings/6_tiled.py");
    let kernel = parsed(&std::fs::read_to_string(built).expect("the schedule's golden is there"));
    assert_eq!(kernel.form, Form::Tiled);
    let flat = lowered(kernel, &Target::cuda("sm_90a").unwrap());
    let program = coulis_ir::device::host_program(&flat).unwrap();
    assert_eq!(program.launches[0].n_threads(), Some(512));
    check_golden("listing_6_cross_thread.py", flat);
}

#[test]
fn blocks_whose_rows_are_all_there_take_a_branch_without_guards() {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../coulis-schedule/tests/listings/3.py");
    let text = std::fs::read_to_string(built).expect("the schedule's golden is there");
    // One-dimensional accesses are of both forms, and text is taken for the later one.
    let kernel = Kernel { form: Form::Nest, ..parsed(&text) };
    let flat = lowered(kernel, &Target::cuda("sm_90a").expect("known"));
    check_golden("listing_3_for_cuda.py", flat);
}

/// Rows of `x` threads, `y` of them, each folded into one total of `dtype`.
fn rows(y: u32, x: u32, dtype: &str, reducer: &str, options: &str) -> String {
    format!(
        r#"
@T.prim_func
def rows(A: T.Buffer(({y}, {x}), "{dtype}"), B: T.Buffer(({y},), "{dtype}")):
    ty = T.launch_thread("threadIdx.y", {y})
    tx = T.launch_thread("threadIdx.x", {x})
    red_buf0 = T.alloc_buffer([{y}, {x}], "{dtype}", scope="local", layout=TileLayout(S[({y}, {x}) : ({x} @ tx, 1 @ tx)]))
    mine = red_buf0.local(1)
    mine[0] = A[ty, tx]
    total = red_buf0.view({y}, layout=TileLayout(S[{y} : {x} @ tx] + R[{x} : 1 @ tx]))
    Tx.cta.reduce(total, red_buf0, reducer={reducer}, axes=(1,), accum=False{options})
    whole = total.local(1)
    if tx == 0:
        B[ty] = whole[0]
"#
    )
}

const SUM: &str = "T.comm_reducer(lambda x, y: x + y, [T.float32(0)])";
const MAX_OF_I8: &str = "T.comm_reducer(lambda x, y: T.max(x, y), [T.int8(-128)])";

#[test]
fn whole_texts_of_the_variants_are_frozen() {
    let hopper = Target::cuda("sm_90a").expect("known");
    for (file, text, target) in [
        ("reduce_warp_of_20.py", rows(1, 20, "float32", SUM, ""), &hopper),
        ("reduce_carried_by_int32.py", rows(4, 8, "int8", MAX_OF_I8, ""), &hopper),
        ("reduce_two_stage.py", rows(2, 96, "float32", SUM, ""), &hopper),
        ("reduce_shared_tree.py", rows(16, 26, "float32", SUM, ""), &hopper),
        (
            "reduce_shared_tree_of_warps.py",
            rows(2, 64, "float32", SUM, ", dispatch=\"shared_tree\""),
            &hopper,
        ),
        ("reduce_serial.py", rows(2, 5, "float32", SUM, ", dispatch=\"serial\""), &hopper),
        ("reduce_wave_of_64.py", rows(4, 64, "float32", SUM, ""), &Target::simulated(64)),
    ] {
        check_golden(file, lowered(parsed(&text), target));
    }
}

/// A combination of that many products.
fn combination_of(n_products: usize) -> String {
    let products: Vec<String> =
        (0..n_products).map(|n| format!("x * T.float32({n}.5) + y * T.float32({n}.5)")).collect();
    format!("T.comm_reducer(lambda x, y: {}, [T.float32(0)])", products.join(" + "))
}

#[test]
fn a_tree_of_long_combinations_is_a_loop_and_one_of_short_ones_is_written_out() {
    let hopper = Target::cuda("sm_90a").expect("known");
    let text =
        |y, x, reducer: &str| print_module(&[lowered(parsed(&rows(y, x, "float32", reducer, "")), &hopper)]);
    let n_shuffles = |text: &str| text.matches("T.tvm_warp_shuffle_down(").count();
    let short = text(2, 32, SUM);
    assert!(n_shuffles(&short) == 5 && !short.contains("rolled"), "{short}");
    let long = text(2, 32, &combination_of(8));
    assert!(n_shuffles(&long) == 1 && long.contains("T.attr(None, \"rolled\", T.bool(True))"), "{long}");
    assert!(long.contains("for step in range(5)") && long.contains("16 >> step"), "{long}");
    // Where the lanes are no power of two, the first step looks who is there, and the others are the loop.
    let uneven = text(1, 20, &combination_of(8));
    assert_eq!(n_shuffles(&uneven), 2, "{uneven}");
    assert!(uneven.contains("for step in range(4)") && uneven.contains("8 >> step"), "{uneven}");
    // Members that are no neighbours fold in shared memory, 8 slots at a step.
    let columns = |reducer: &str| {
        let text = rows(8, 4, "float32", reducer, "")
            .replace("view(8,", "view(4,")
            .replace("TileLayout(S[8 : 4 @ tx] + R[4 : 1 @ tx])", "TileLayout(S[4 : 1 @ tx] + R[8 : 4 @ tx])")
            .replace("axes=(1,)", "axes=(0,)")
            .replace("T.Buffer((8,)", "T.Buffer((4,)")
            .replace("if tx == 0:\n        B[ty]", "if ty == 0:\n        B[tx]");
        print_module(&[lowered(parsed(&text), &hopper)])
    };
    assert!(columns(&combination_of(8)).contains("for set in range(7)"), "{}", columns(&combination_of(8)));
    assert!(!columns(SUM).contains("rolled"), "{}", columns(SUM));
    // In shared memory partners are found by exclusive or.
    let text = r#"
@T.prim_func
def shared_rows(A: T.Buffer((4, 8), "float32"), B: T.Buffer((4,), "float32")):
    T.device_entry(); T.cta_id([1]); T.thread_id([32])
    rows = T.alloc_buffer((4, 8), "float32", scope="shared", layout=TileLayout(S[(4, 8)]))
    totals = T.alloc_buffer((4,), "float32", scope="shared", layout=TileLayout(S[(4,)]))
    Tx.cta.copy(rows, A); T.cuda.cta_sync()
    Tx.cta.reduce(totals, rows, reducer=REDUCER, axes=(1,), accum=False)
    T.cuda.cta_sync()
    Tx.cta.copy(B, totals)
"#;
    let apart = |reducer: &str| {
        let text = print_module(&[lowered(parsed(&text.replace("REDUCER", reducer)), &hopper)]);
        (text.matches("T.tvm_warp_shuffle_xor(").count(), text.contains("1 << step"))
    };
    assert_eq!((apart(SUM), apart(&combination_of(8))), ((3, false), (1, true)));
}

#[test]
fn explain_says_what_each_variant_wanted_and_found() {
    let target = Target::cuda("sm_90a").expect("known");
    let rows = |text: &str| {
        let found = coulis_lower::explain_tiles(&parsed(text), &target).unwrap_or_else(|e| panic!("{e}"));
        coulis_tile::variant::table(&found[0].1)
    };
    assert_eq!(
        rows(&rows_of(26)),
        "  redux_sync              25  declined  architecture: wanted sm_100a or sm_103a for floats, found sm_90a; reducer: \
           wanted a sum of integers that is stored in at most 32 bits, or an extremum of at most 32 bits, found \
           `comm_reducer` with a state of float32; lanes: wanted whole warps of 32 lanes that fold, found a call that none \
           of `warp_shuffle`, `local`, `shared` and `mixed` takes\n  \
           sm100_packed            20  declined  scope: wanted thread, found cta; operands: wanted registers of one thread, \
           found `red_buf0` in local memory, spread over threads; architecture: wanted sm_100a or sm_103a, found sm_90a\n  \
           alone                   20  declined  group: wanted groups of 1 thread, found 26 threads\n  \
           warp_shuffle            20  declined  warps: wanted groups within one warp of 32 lanes, found groups of 26 \
           threads in a block of 416\n  \
           warp_shuffle_two_stage  20  declined  warps: wanted groups of 2 to 32 whole warps of 32 lanes, found 26 threads\n  \
           packed_halves           15  declined  reducer: wanted max or min of float16 or bfloat16, found `comm_reducer` of \
           float32; runs: wanted runs of 2 neighbours in every thread, at least 4 elements in all, found a call that none of `local`, \
           `shared` and `mixed` takes\n  \
           local                   10  declined  scope: wanted several elements a thread, or lanes of a warp, found one element \
           in each thread of the block\n  \
           shared                  10  declined  operands: wanted tiles in shared memory, found `red_buf0` in local memory\n  \
           shared_tree             10  chosen    at most 5 additions in a chain, |error| <= 3.0e-7 * sum|x|\n  \
           mixed                    5  declined  operands: wanted tiles that a thread can address, found `red_buf0`, spread \
           over threads\n  \
           cluster_shared           5  declined  scope: wanted a cluster, found a cta\n  \
           serial                   0  accepts   at most 25 additions in a chain, |error| <= 1.5e-6 * sum|x|"
    );
    let table = rows(&rows_of(32));
    assert!(table.contains("warp_shuffle            20  chosen    at most 5 additions"), "{table}");
    assert!(table.contains("shared_tree             10  accepts   at most 5 additions"), "{table}");
}

fn rows_of(x: u32) -> String {
    rows(16, x, "float32", SUM, "")
}

#[test]
fn calls_that_cannot_be_done_are_refused_with_what_was_found() {
    let good = rows(16, 26, "float32", SUM, "");
    for (from, to, message) in [
        (
            "accum=False",
            "accum=False, dispatch=\"warp\"",
            "names no variant of tile.reduce; there are `redux_sync`, `sm100_packed`, `alone`",
        ),
        ("accum=False", "accum=False, dispatch=\"warp_shuffle\"", "forces a variant that declines the call"),
        ("axes=(1,)", "axes=(2,)", "axis 2 is reduced, and the source has 2 dimensions"),
        (
            "axes=(1,)",
            "axes=(1, -1)",
            "axis -1 of the source's 2 dimensions is named twice among the reduced ones",
        ),
        ("axes=(1,)", "axes=(2,)", "call on sm_90a: Tx.cta.reduce("),
        ("axes=(1,)", "axes=(0,)", "which is not a total a group"),
        (SUM, "\"sum\"", "the reducer `sum` of a tile call is not known for the element types float32"),
        ("mine[0] = A[ty, tx]", "red_buf0[0, 0] = A[ty, tx]", "`red_buf0` is spread over threads"),
        (
            "T.launch_thread(\"threadIdx.x\", 26)",
            "T.launch_thread(\"threadIdx.x\", 13)",
            "416 elements on 208 threads",
        ),
        (
            "    Tx.cta.reduce",
            "    if tx < 20:\n      Tx.cta.reduce",
            "active threads: wanted all 416 threads, found only those with `tx < 20`",
        ),
        ("Tx.cta", "Tx.warp", "warp scope in a block of 416 threads"),
        ("Tx.cta", "Tx", "thread scope"),
        ("scope=\"local\"", "scope=\"shared\"", "a distributed tile, `red_buf0`, in shared memory"),
    ] {
        let text = good.replace(from, to);
        assert_ne!(text, good, "{from}");
        let target = Target::cuda("sm_90a").expect("known");
        let options = Options { target: &target, simple_mode: false };
        let error = lower(parsed(&text), &options, &mut |_, _| {}).map(|_| ()).expect_err(&text);
        assert!(error.to_string().contains(message), "{error}\nwanted: {message}");
    }
}

#[test]
fn more_elements_than_are_counted_are_refused() {
    for (extents, results, found) in [
        (
            "1, 1152921504606846976",
            1,
            "extents [1, 1152921504606846976] of more than 2147483647 elements of a result",
        ),
        ("4294967297, 2", 4, "extents [4294967297, 2] of more than 2147483647 results"),
    ] {
        let text = format!(
            "@T.prim_func\ndef f(A: T.Buffer(({extents}), \"float32\"), B: T.Buffer(({results},), \"float32\")):\n    T.device_entry()\n    T.cta_id([1])\n    T.thread_id([128])\n    Tx.cta.reduce(B, A, reducer={SUM}, axes=(-1,), accum=False)\n"
        );
        let target = Target::cuda("sm_90a").expect("known");
        let options = Options { target: &target, simple_mode: false };
        let kernel = coulis_script::parse_module(&text).expect("a kernel").remove(0);
        let error = lower(kernel, &options, &mut |_, _| {}).map(|_| ()).expect_err(&text).to_string();
        assert!(error.contains(found), "{error}");
    }
}

#[test]
fn a_block_of_an_unknown_size_is_refused() {
    let text = rows(1, 26, "float32", SUM, "")
        .replace("B: T.Buffer((1,), \"float32\")", "B: T.Buffer((1,), \"float32\"), n: T.int32");
    let text = text.replace("T.launch_thread(\"threadIdx.x\", 26)", "T.launch_thread(\"threadIdx.x\", n)");
    let target = Target::cuda("sm_90a").expect("known");
    let options = Options { target: &target, simple_mode: false };
    let error = lower(parsed(&text), &options, &mut |_, _| {}).map(|_| ()).expect_err(&text);
    assert_eq!(
        error.to_string(),
        "threads that work together need a constant number of `threadIdx.x`, got `n`"
    );
}

#[test]
fn parts_that_differ_between_threads_of_one_call_are_refused() {
    let text = r#"
@T.prim_func
def diagonal(A: T.Buffer((8, 256), "float32"), B: T.Buffer((8,), "float32")):
  tx = T.launch_thread("threadIdx.x", 128)
  Tx.cta.copy(B[0:8], A[0:8, tx])
"#;
    let target = Target::cuda("sm_90a").expect("known");
    let options = Options { target: &target, simple_mode: false };
    let error =
        lower(parsed(text), &options, &mut |_, _| {}).map(|_| ()).expect_err("one place for each thread");
    let wanted = "the part of `A` begins at `tx` along dimension 1, which differs between threads";
    assert!(error.to_string().contains(wanted), "{error}");
    // What is one for the threads of a warp is a place of a warp's call, and of no block's.
    let by_warps = text.replace("A[0:8, tx]", "A[0:8, tx // 32]");
    assert!(lower(parsed(&by_warps), &options, &mut |_, _| {}).is_err());
    let of_warps = by_warps.replace("Tx.cta", "Tx.warp");
    lower(parsed(&of_warps), &options, &mut |_, _| {}).map(|_| ()).expect("one place for each warp");
}
