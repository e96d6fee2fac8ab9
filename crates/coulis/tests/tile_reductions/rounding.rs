//! What `explain` states of the error of each variant: the longest chain of combinations, counted by running it, and the
//! bound that follows from it, which exact sums keep.

use coulis_ir::{DType, Target};
use coulis_tile::{Accuracy, Rounding};

use crate::build::{Call, Fold, Tile};
use crate::replicas::{Lanes, all_lanes};
use crate::run::{Arg, Program, accuracies, check_variant, measured};

/// A state is the number of combinations on the longest way to it; -1 is the state of nothing.
const DEPTH: &str =
    "T.comm_reducer(lambda x, y: T.Select(x < 0, y, T.Select(y < 0, x, T.max(x, y) + 1)), [T.int32(-1)])";

const COUNTED: Fold = Fold { op: "sum", dtype: DType::I32, accum: false };

/// Runs the program, which folds `int32`, by every variant with [`DEPTH`] for its reducer: what comes out is the longest
/// chain that is stated. Names of the variants.
#[track_caller]
fn check_chains(program: &Program, target: &Target) -> Vec<&'static str> {
    let text = program.text.replace("sum(", "reduce(").replace("axes=", &format!("reducer={DEPTH}, axes="));
    let old = f64::from(u8::from(text.contains("accum=True")));
    let with = |depth: f64| {
        let own = |arg: &Arg| match arg {
            Arg::In { dtype, shape, values } => {
                Arg::In { dtype: *dtype, shape: shape.clone(), values: vec![0.0; values.len()] }
            }
            Arg::Out { dtype, shape, wants } => {
                let wants = wants.iter().map(|want| want.map(|_| (depth, 0.0))).collect();
                Arg::Out { dtype: *dtype, shape: shape.clone(), wants }
            }
        };
        Program { text: text.clone(), args: program.args.iter().map(own).collect() }
    };
    let stated = accuracies(&with(0.0), target);
    for (name, accuracy) in &stated {
        check_variant(&with(accuracy.steps.longest as f64 + old), name, target);
    }
    stated.into_iter().map(|(name, _)| name).collect()
}

#[test]
fn tile_the_stated_chain_is_the_longest_one_in_shared_memory() {
    let warps = "warp_id = T.warp_id([4])\nif warp_id == 2:";
    for (src, dst, axes, n_threads, scope, guard) in [
        (&[4, 8][..], &[4][..], &[-1][..], 32, "cta.", ""),
        (&[1, 1024], &[1], &[-1], 256, "cta.", ""),
        (&[1, 4096], &[1], &[-1], 1024, "cta.", ""),
        (&[2, 300], &[2], &[-1], 160, "cta.", ""),
        (&[3, 37], &[3], &[-1], 48, "cta.", ""),
        (&[32, 32], &[32], &[0], 32, "cta.", ""),
        (&[4, 1], &[4], &[-1], 32, "cta.", ""),
        (&[4, 40], &[4], &[-1], 128, "warp.", warps),
        (&[4, 40], &[4], &[-1], 64, "", "if tid == 5:"),
    ] {
        for accum in [false, true] {
            let (fold, src, dst) = (Fold { accum, ..COUNTED }, Tile::whole(src), Tile::whole(dst));
            let call = Call { src, dst, axes, fold, n_threads, scope, guard, options: "" };
            assert_eq!(check_chains(&call.in_shared(), &Target::simulated(32)), ["shared"]);
        }
    }
}

#[test]
fn tile_the_stated_chain_is_the_longest_one_in_registers() {
    for (src, dst, axes) in
        [(&[4][..], &[1][..], &[0][..]), (&[37], &[1], &[0]), (&[1], &[1], &[0]), (&[3, 4, 5], &[4], &[0, 2])]
    {
        for accum in [false, true] {
            let (fold, src, dst) = (Fold { accum, ..COUNTED }, Tile::whole(src), Tile::whole(dst));
            let call = Call { src, dst, axes, fold, n_threads: 1, scope: "", guard: "", options: "" };
            assert_eq!(check_chains(&call.in_registers(), &Target::simulated(32)), ["local"]);
        }
    }
}

#[test]
fn tile_the_stated_chain_is_the_longest_one_over_lanes() {
    for (shape, src, dst, registers) in [
        ("(32, 3)", "S[(32, 3) : (1 @ laneid, 1)]", "S[1 : 1] + R[32 : 1 @ laneid]", 3),
        ("(20, 2)", "S[(20, 2) : (1 @ laneid, 1)]", "S[1 : 1] + R[20 : 1 @ laneid]", 2),
        ("(32, 1)", "S[(32, 1) : (1 @ laneid, 1)]", "S[1 : 1] + R[32 : 1 @ laneid]", 1),
    ] {
        let own: Vec<usize> = (0..registers).collect();
        let lanes = Lanes {
            warp: 32,
            src: (shape, src, &own),
            dst: ("(1,)", dst, &[0]),
            spans: [registers, 1],
            call: "dst, src, axes=(0, 1)",
            group: &|_, _| all_lanes(32, 0),
        };
        for accum in [false, true] {
            let mut program = lanes.program(Fold { accum, ..COUNTED });
            if shape.starts_with("(20") {
                // Lanes from 20 on hold nothing.
                program.text = program.text.replace("B[lane", "if lane < 20:\n        B[lane");
                if let Some(Arg::Out { wants, .. }) = program.args.last_mut() {
                    wants[20..].fill(None);
                }
            }
            let names = check_chains(&program, &Target::simulated(32));
            assert!(!names.is_empty(), "{}", program.text);
        }
    }
}

/// Threads of a block hold an element each; groups are the rows or the columns of `[rows, n]` threads.
fn groups(rows: u32, n: u32, columns: bool) -> Program {
    let threads = rows * n;
    let (part, total) = match columns {
        false => (
            format!(
                "[{rows}, {n}], \"int32\", scope=\"local\", layout=TileLayout(S[({rows}, {n}) : ({n} @ tx, 1 @ tx)])"
            ),
            format!("{rows}, layout=TileLayout(S[({rows},) : ({n} @ tx,)] + R[({n},) : (1 @ tx,)])"),
        ),
        true => (
            format!(
                "[{n}, {rows}], \"int32\", scope=\"local\", layout=TileLayout(S[({n}, {rows}) : ({rows} @ tx, 1 @ tx)])"
            ),
            format!("{rows}, layout=TileLayout(S[({rows},) : (1 @ tx,)] + R[({n},) : ({rows} @ tx,)])"),
        ),
    };
    let axis = if columns { 0 } else { 1 };
    let text = format!(
        "@T.prim_func
def main(A: T.Buffer(({threads},), \"int32\"), B: T.Buffer(({threads},), \"int32\")):
    tx = T.launch_thread(\"threadIdx.x\", {threads})
    part = T.alloc_buffer({part})
    mine = part.local(1)
    mine[0] = A[tx]
    total = part.view({total})
    Tx.cta.sum(total, part, axes=({axis},), accum=False{{dispatch}})
    whole = total.local(1)
    B[tx] = whole[0]
"
    );
    let shape = vec![i64::from(threads)];
    let args = vec![
        Arg::In { dtype: DType::I32, shape: shape.clone(), values: vec![0.0; threads as usize] },
        Arg::Out { dtype: DType::I32, shape, wants: vec![Some((0.0, 0.0)); threads as usize] },
    ];
    Program { text, args }
}

#[test]
fn tile_the_stated_chain_is_the_longest_one_of_groups_of_threads() {
    for (rows, n, columns, names) in [
        (6, 1, false, &["alone", "serial"][..]),
        (4, 8, false, &["warp_shuffle", "shared_tree", "serial"]),
        (2, 11, false, &["warp_shuffle", "shared_tree", "serial"]),
        (3, 32, false, &["warp_shuffle", "shared_tree", "serial"]),
        (2, 96, false, &["warp_shuffle_two_stage", "shared_tree", "serial"]),
        (1, 160, false, &["warp_shuffle_two_stage", "shared_tree", "serial"]),
        (8, 4, true, &["shared_tree", "serial"]),
        (5, 7, true, &["shared_tree", "serial"]),
    ] {
        assert_eq!(check_chains(&groups(rows, n, columns), &Target::simulated(32)), names);
    }
}

/// Lengths of rows, and threads that fold them in shared memory.
const SUMS: [(i64, u32); 5] = [(8, 32), (100, 32), (1000, 96), (4096, 256), (4096, 1024)];

fn in_shared(n: i64, n_threads: u32, fold: Fold) -> Program {
    let (src, dst) = (Tile::whole(&[1, n]), Tile::whole(&[1]));
    Call { src, dst, axes: &[-1], fold, n_threads, scope: "cta.", guard: "", options: "" }.in_shared()
}

fn in_registers(n: i64, fold: Fold) -> Program {
    let (src, dst) = (Tile::whole(&[n]), Tile::whole(&[1]));
    Call { src, dst, axes: &[-1], fold, n_threads: 1, scope: "", guard: "", options: "" }.in_registers()
}

/// The program with other elements: one large, all others so small that an addition to it loses each of them.
fn adversarial(program: &Program) -> Program {
    let mut program = program.clone();
    if let Some(Arg::In { values, .. }) = program.args.first_mut() {
        values.fill(1.0);
        values[0] = 2f64.powi(24);
    }
    program
}

#[test]
fn tile_sums_of_floats_keep_the_stated_bound() {
    let fold = Fold { op: "sum", dtype: DType::F32, accum: false };
    let (plain, packs) = (Target::simulated(32), Target::cuda("sm_100a").unwrap());
    let programs = SUMS
        .iter()
        .map(|&(n, threads)| (n, in_shared(n, threads, fold), &plain))
        .chain([8, 37, 100, 256].iter().map(|&n| (n, in_registers(n, fold), &packs)));
    for (n, program, target) in programs {
        for (program, is_hard) in [(program.clone(), false), (adversarial(&program), true)] {
            let Some(Arg::In { values, .. }) = program.args.first() else { panic!("no input") };
            let (exact, magnitudes) =
                (values.iter().sum::<f64>(), values.iter().map(|v| v.abs()).sum::<f64>());
            for (name, accuracy) in accuracies(&program, target) {
                let error = (measured(&program, name, target)[0] - exact).abs();
                let bound = accuracy.factor().unwrap() * magnitudes;
                assert!(error <= bound, "{name} of {n}: {error} beyond {accuracy}\n{}", program.text);
                // Each addition to the large one loses 1, and no more than what is combined first is spared.
                if is_hard && name == "local" {
                    assert_eq!(error, (n - 1) as f64, "{name}: {accuracy}");
                }
            }
        }
    }
}

fn accuracy_of(program: &Program, variant: &str, target: &Target) -> Accuracy {
    let all = accuracies(program, target);
    all.iter().find(|(name, _)| *name == variant).unwrap_or_else(|| panic!("{all:?}")).1
}

#[test]
fn tile_bounds_are_stated_in_words() {
    let fold = |op, dtype, accum| Fold { op, dtype, accum };
    let packs = Target::cuda("sm_100a").unwrap();
    for (program, variant, text) in [
        (
            in_registers(4, fold("sum", DType::F32, false)),
            "local",
            "at most 3 additions in a chain, |error| <= 1.8e-7 * sum|x|",
        ),
        (
            in_registers(4, fold("sum", DType::F32, true)),
            "local",
            "at most 4 additions in a chain, |error| <= 2.4e-7 * sum|x|",
        ),
        (
            in_registers(32, fold("sum", DType::F32, false)),
            "sm100_packed",
            "at most 6 additions in a chain, |error| <= 3.6e-7 * sum|x|",
        ),
        (in_registers(1, fold("sum", DType::F32, false)), "local", "exact"),
        (in_registers(4, fold("max", DType::F16, true)), "local", "exact"),
        (in_registers(4, fold("sum", DType::I8, false)), "local", "exact"),
        (
            in_registers(4, fold("sum", DType::F16, false)),
            "local",
            "at most 3 additions in a chain, |error| <= 1.8e-7 * sum|x|, then rounded to float16",
        ),
        (
            in_registers(4, fold("sum", DType::F64, false)),
            "local",
            "at most 3 additions in a chain, |error| <= 3.4e-16 * sum|x|",
        ),
        (
            in_registers(4, fold("prod", DType::F32, false)),
            "local",
            "at most 3 multiplications, |error| <= 1.8e-7 * |exact|",
        ),
        (
            in_shared(1024, 256, fold("sum", DType::F32, false)),
            "shared",
            "at most 11 additions in a chain, |error| <= 6.6e-7 * sum|x|",
        ),
    ] {
        let named = program.text.replace("prod(", "reduce(").replace("axes=", "reducer=\"prod\", axes=");
        let program =
            if program.text.contains("prod(") { Program { text: named, ..program } } else { program };
        assert_eq!(accuracy_of(&program, variant, &packs).to_string(), text);
    }
    let flushed = in_registers(16, fold("sum", DType::F32, false));
    let flushed = Program { text: flushed.text.replace("{dispatch}", ", ftz=True{dispatch}"), ..flushed };
    for (variant, text) in [
        (
            "sm100_packed",
            "at most 4 additions in a chain, |error| <= 2.4e-7 * sum|x|, subnormal numbers as 0",
        ),
        ("local", "at most 15 additions in a chain, |error| <= 9.0e-7 * sum|x|"),
    ] {
        assert_eq!(accuracy_of(&flushed, variant, &packs).to_string(), text);
    }
}

#[test]
fn tile_reducers_that_round_nothing_are_exact_and_no_others() {
    let target = Target::simulated(32);
    for entry in coulis::CATALOGUE {
        for dtype in [DType::F32, DType::F16, DType::I32] {
            let inputs = vec![dtype; entry.n_inputs];
            let Some(reducer) = coulis::tile_reducer(entry.name, &inputs) else { continue };
            let program = crate::catalogue::in_one_thread(&reducer, entry.name, &inputs);
            let rounding = accuracy_of(&program, "local", &target).rounding;
            let is_exact = reducer.error == coulis_ir::ErrorBound::Exact;
            assert_eq!(rounding == Rounding::Exact, is_exact, "{} of {dtype}: {rounding:?}", entry.name);
            assert!(!matches!(rounding, Rounding::Combinations { .. }), "{} of {dtype}", entry.name);
        }
    }
}

#[test]
fn tile_a_reducer_of_a_user_states_how_often_it_combines() {
    let program = in_registers(5, Fold { op: "sum", dtype: DType::F32, accum: false });
    for (body, stated) in
        [("x + y", "at most 4 additions in a chain, |error| <= 2.4e-7 * sum|x|"), ("T.max(x, y)", "exact")]
    {
        let reducer = format!("reducer=T.comm_reducer(lambda x, y: {body}, [T.float32(0)]), axes=");
        let text = program.text.replace("sum(", "reduce(").replace("axes=", &reducer);
        let own = Program { text, ..program.clone() };
        assert_eq!(accuracy_of(&own, "local", &Target::simulated(32)).to_string(), stated);
    }
}
