//! Every reducer of the catalogue, and reducers of several sources, by every variant that takes the call.

use std::fmt::Write;

use coulis::CATALOGUE;
use coulis_ir::eval::{Env, Value, eval_expr};
use coulis_ir::{DType, Expr, Lambda, Reducer, Target};
use coulis_reducers::find;

use crate::run::{Arg, Program, Want, check_wins, eps, uniform};

fn evaluated(lambda: &Lambda, args: &[Value]) -> Vec<Value> {
    let mut env = Env::new();
    for (param, arg) in lambda.params.iter().zip(args) {
        env.set(param, *arg);
    }
    lambda.body.iter().map(|e| eval_expr(e, &mut env).unwrap()).collect()
}

/// The results of a fold, one element after the other.
fn folded(reducer: &Reducer, elements: &[Vec<Value>]) -> Vec<Value> {
    let constant = |e: &Expr| eval_expr(e, &mut Env::new()).unwrap();
    let mut state: Vec<Value> = reducer.identity.iter().map(constant).collect();
    for (at, own) in elements.iter().enumerate() {
        let lifted = evaluated(&reducer.lift, &[&own[..], &[Value::Int(at as i128)]].concat());
        state = evaluated(reducer.step.as_ref().unwrap_or(&reducer.combine), &[state, lifted].concat());
    }
    evaluated(&reducer.finish, &state)
}

fn number(value: Value) -> f64 {
    match value {
        Value::Int(v) => v as f64,
        Value::Float(v) => v,
    }
}

/// Where tiles live, and who folds.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Shared memory, and the threads of a scope, under a condition.
    Shared {
        n_threads: usize,
        scope: &'static str,
        guard: &'static str,
    },
    Global {
        n_threads: usize,
    },
    Registers,
    Lanes,
    /// The blocks of a cluster, each with a part of the rows.
    Cluster {
        n_blocks: usize,
        n_threads: usize,
        /// Memory of the sources: `shared` or `global`.
        from: &'static str,
        /// Memory of the results: `shared`, `global` or `local`.
        to: &'static str,
    },
}

fn program(
    reducer: &Reducer,
    text_of_reducer: &str,
    inputs: &[DType],
    [rows, n]: [usize; 2],
    place: Place,
) -> Program {
    let outputs: Vec<DType> = reducer.results.iter().map(|field| field.dtype).collect();
    let params: Vec<String> = (0..inputs.len()).map(|i| format!("A{i}_ptr: T.handle")).collect();
    let results: Vec<String> = (0..outputs.len()).map(|i| format!("B{i}_ptr: T.handle")).collect();
    let mut text = format!("@T.prim_func\ndef main({}, {}):\n", params.join(", "), results.join(", "));
    let mut line = |of: String| writeln!(text, "    {of}").unwrap();
    for (i, d) in inputs.iter().enumerate() {
        line(format!("A{i} = T.match_buffer(A{i}_ptr, ({rows}, {n}), \"{d}\")"));
    }
    for (i, d) in outputs.iter().enumerate() {
        line(format!("B{i} = T.match_buffer(B{i}_ptr, ({rows},), \"{d}\")"));
    }
    line("T.device_entry()".to_owned());
    match place {
        Place::Cluster { n_blocks, .. } => {
            line("T.cluster_id([1])".to_owned());
            line(format!("part = T.cta_id_in_cluster([{n_blocks}])"));
        }
        _ => line("T.cta_id([1])".to_owned()),
    }
    let threads = match place {
        Place::Shared { n_threads, .. } | Place::Global { n_threads } | Place::Cluster { n_threads, .. } => {
            n_threads
        }
        Place::Registers => 1,
        Place::Lanes => 32,
    };
    line(format!("tid = T.thread_id([{threads}])"));
    let scope = match place {
        Place::Global { .. } => "cta.",
        Place::Shared { scope, .. } => {
            for (i, d) in inputs.iter().enumerate() {
                line(format!("a{i} = T.alloc_buffer(({rows}, {n}), \"{d}\", scope=\"shared\")"));
                line(format!("Tx.cta.copy(a{i}, A{i})"));
            }
            for (i, d) in outputs.iter().enumerate() {
                line(format!("b{i} = T.alloc_buffer(({rows},), \"{d}\", scope=\"shared\")"));
            }
            line("T.cuda.cta_sync()".to_owned());
            scope
        }
        Place::Cluster { n_blocks, from, to, .. } => {
            let own = n / n_blocks;
            if from == "shared" {
                for (i, d) in inputs.iter().enumerate() {
                    line(format!("a{i} = T.alloc_buffer(({rows}, {own}), \"{d}\", scope=\"shared\")"));
                    line(format!("Tx.cta.copy(a{i}, A{i}[0:{rows}, part * {own}:part * {own} + {own}])"));
                }
                line("T.cuda.cta_sync()".to_owned());
            }
            if to != "global" {
                for (i, d) in outputs.iter().enumerate() {
                    line(format!("b{i} = T.alloc_buffer(({rows},), \"{d}\", scope=\"{to}\")"));
                }
            }
            "cluster."
        }
        Place::Registers => {
            for (i, d) in inputs.iter().enumerate() {
                line(format!("a{i} = T.alloc_buffer(({rows}, {n}), \"{d}\", scope=\"local\")"));
                line(format!("for i, j in T.grid({rows}, {n}):"));
                line(format!("    a{i}[i, j] = A{i}[i, j]"));
            }
            for (i, d) in outputs.iter().enumerate() {
                line(format!("b{i} = T.alloc_buffer(({rows},), \"{d}\", scope=\"local\")"));
            }
            ""
        }
        Place::Lanes => {
            // Element j of a row is in lane j % 32, register j // 32.
            line("lane = T.lane_id([32])".to_owned());
            let own = rows * (n / 32);
            for (i, d) in inputs.iter().enumerate() {
                line(format!(
                    "a{i} = T.alloc_buffer(({rows}, {n}), \"{d}\", scope=\"local\", layout=TileLayout(S[({rows}, {}, \
                     32) : ({}, 1, 1 @ laneid)]))",
                    n / 32,
                    n / 32
                ));
                line(format!("a{i}_own = a{i}.local({own})"));
                line(format!("for r in T.serial({own}):"));
                line(format!("    a{i}_own[r] = A{i}[r // {}, r % {} * 32 + lane]", n / 32, n / 32));
            }
            for (i, d) in outputs.iter().enumerate() {
                line(format!(
                    "b{i} = T.alloc_buffer(({rows},), \"{d}\", scope=\"local\", layout=TileLayout(S[({rows},) : \
                     (1,)] + R[32 : 1 @ laneid]))"
                ));
                line(format!("b{i}_own = b{i}.local({rows})"));
            }
            "warp."
        }
    };
    let all = |name: &str, n: usize| match n {
        1 => format!("{name}0"),
        n => format!("({})", (0..n).map(|i| format!("{name}{i}")).collect::<Vec<_>>().join(", ")),
    };
    let (to, from) = match place {
        Place::Global { .. } => ("B", "A"),
        Place::Cluster { from, to, .. } => {
            (if to == "global" { "B" } else { "b" }, if from == "global" { "A" } else { "a" })
        }
        Place::Shared { .. } | Place::Registers | Place::Lanes => ("b", "a"),
    };
    let (dsts, mut srcs) = (all(to, outputs.len()), all(from, inputs.len()));
    if let Place::Cluster { n_blocks, from: "global", .. } = place {
        let own = n / n_blocks;
        let part = |i| format!("A{i}[0:{rows}, part * {own}:part * {own} + {own}]");
        srcs = format!("({},)", (0..inputs.len()).map(part).collect::<Vec<_>>().join(", "));
    }
    let mut indent = "";
    if let Place::Shared { guard, .. } = place {
        guard.lines().for_each(|own| line(own.to_owned()));
        indent = if guard.is_empty() { "" } else { "    " };
    }
    line(format!(
        "{indent}Tx.{scope}reduce({dsts}, {srcs}, reducer={text_of_reducer}, axes=(-1,), accum=False{{dispatch}})"
    ));
    if !indent.is_empty() {
        line("T.cuda.cta_sync()".to_owned());
    }
    for i in 0..outputs.len() {
        match place {
            Place::Global { .. } | Place::Cluster { to: "global", .. } => {}
            // The last block and thread have what all have.
            Place::Cluster { n_blocks, n_threads, to: "local", .. } => {
                line(format!("if part == {} and tid == {}:", n_blocks - 1, n_threads - 1));
                line(format!("    for i in T.serial({rows}):"));
                line(format!("        B{i}[i] = b{i}[i]"));
            }
            Place::Cluster { n_blocks, .. } => {
                line(format!("if part == {}:", n_blocks - 1));
                line(format!("    Tx.cta.copy(B{i}, b{i})"));
            }
            Place::Shared { .. } => line(format!("Tx.cta.copy(B{i}, b{i})")),
            Place::Registers => {
                line(format!("for i in T.serial({rows}):"));
                line(format!("    B{i}[i] = b{i}[i]"));
            }
            Place::Lanes => {
                line("if lane == 7:".to_owned());
                line(format!("    for i in T.serial({rows}):"));
                line(format!("        B{i}[i] = b{i}_own[i]"));
            }
        }
    }

    let values: Vec<Vec<f64>> =
        inputs.iter().enumerate().map(|(i, d)| uniform(rows * n, 20 + i as u64, *d)).collect();
    let value = |d: DType, v: f64| match d {
        d if d.is_float() => Value::Float(v),
        _ => Value::Int(v as i128),
    };
    let mut wants: Vec<Vec<Want>> = vec![Vec::new(); outputs.len()];
    for row in 0..rows {
        let element =
            |at: usize| inputs.iter().zip(&values).map(|(d, v)| value(*d, v[row * n + at])).collect();
        let elements: Vec<Vec<Value>> = (0..n).map(element).collect();
        for ((found, wants), d) in folded(reducer, &elements).into_iter().zip(&mut wants).zip(&outputs) {
            let exact = number(found);
            let tolerance = if d.is_float() { (1e-5 + eps(*d)) * exact.abs().max(1.0) } else { 0.0 };
            wants.push(Some((exact, tolerance)));
        }
    }
    let sources = inputs.iter().zip(values);
    let shape = |extents: &[usize]| extents.iter().map(|n| *n as i64).collect::<Vec<i64>>();
    let mut args: Vec<Arg> =
        sources.map(|(d, values)| Arg::In { dtype: *d, shape: shape(&[rows, n]), values }).collect();
    args.extend(outputs.iter().zip(wants).map(|(d, wants)| Arg::Out {
        dtype: *d,
        shape: shape(&[rows]),
        wants,
    }));
    Program { text, args }
}

/// One thread folds four of its registers.
pub fn in_one_thread(reducer: &Reducer, name: &str, inputs: &[DType]) -> Program {
    program(reducer, &format!("\"{name}\""), inputs, [1, 4], Place::Registers)
}

/// A name, or names joined by `+`: all of them at once, with shared parts kept once.
pub fn named(name: &str, inputs: &[DType]) -> Option<Reducer> {
    if !name.contains('+') {
        return coulis::tile_reducer(name, inputs);
    }
    let part = |one| Some((one, find(one).ok()?.build(&coulis_reducers::ReducerRequest::new(inputs)).ok()?));
    let parts = name.split('+').map(part).collect::<Option<Vec<(&str, Reducer)>>>()?;
    Some(coulis_reducers::product(&parts).unwrap().reducer)
}

fn check_everywhere(reducer: &Reducer, text: &str, inputs: &[DType]) {
    let target = Target::simulated(32);
    for (sizes, place, winner) in [
        ([3, 37], Place::Shared { n_threads: 64, scope: "cta.", guard: "" }, "shared"),
        ([1, 300], Place::Shared { n_threads: 160, scope: "cta.", guard: "" }, "shared"),
        ([2, 21], Place::Registers, "local"),
        ([2, 96], Place::Lanes, "local"),
    ] {
        check_wins(&program(reducer, text, inputs, sizes, place), &target, winner);
    }
}

fn check_catalogue(dtype: DType, part: usize) {
    for entry in CATALOGUE.iter().skip(part).step_by(3) {
        let inputs = vec![dtype; entry.n_inputs];
        let Some(reducer) = coulis::tile_reducer(entry.name, &inputs) else {
            assert!(find(entry.name).unwrap().build(&coulis_reducers::ReducerRequest::new(&inputs)).is_err());
            continue;
        };
        check_everywhere(&reducer, &format!("\"{}\"", entry.name), &inputs);
    }
}

/// The same in the narrower scopes, and from global memory to global memory.
fn check_in_every_scope(reducer: &Reducer, text: &str, inputs: &[DType]) {
    let place = |n_threads, scope, guard| Place::Shared { n_threads, scope, guard };
    for (sizes, place, winner) in [
        ([3, 70], place(256, "wg.", "wg_id = T.warpgroup_id([2])\nif wg_id == 1:"), "shared"),
        ([3, 37], place(96, "warp.", "warp_id = T.warp_id([3])\nif warp_id == 2:"), "shared"),
        ([2, 9], place(40, "", "if tid == 3:"), "shared"),
        ([2, 100], Place::Global { n_threads: 96 }, "mixed"),
    ] {
        let program = program(reducer, text, inputs, sizes, place);
        for warp in [32, 64] {
            // The ids of the texts are those of warps of 32 lanes.
            if warp == 32 || matches!(place, Place::Global { .. }) {
                check_wins(&program, &Target::simulated(warp), winner);
            }
        }
    }
}

#[test]
fn tile_products_of_reducers_fold_everywhere() {
    for name in ["mean+var+max", "sum+mean", "argmax+min+logsumexp", "maxloc+count_nonzero"] {
        let inputs = [DType::F32];
        let reducer = named(name, &inputs).unwrap();
        assert!(reducer.results.len() > 1);
        check_everywhere(&reducer, &format!("\"{name}\""), &inputs);
        check_in_every_scope(&reducer, &format!("\"{name}\""), &inputs);
    }
}

#[test]
fn tile_tuples_fold_in_every_scope() {
    for name in ["var", "minloc", "argmax_last", "sum"] {
        let reducer = named(name, &[DType::F32]).unwrap();
        check_in_every_scope(&reducer, &format!("\"{name}\""), &[DType::F32]);
    }
    for name in ["dot", "wmean"] {
        let reducer = named(name, &[DType::F32; 2]).unwrap();
        check_in_every_scope(&reducer, &format!("\"{name}\""), &[DType::F32; 2]);
    }
}

#[test]
fn tile_every_first_reducer_of_three_folds_everywhere() {
    check_catalogue(DType::F32, 0);
}

#[test]
fn tile_every_second_reducer_of_three_folds_everywhere() {
    check_catalogue(DType::F32, 1);
}

#[test]
fn tile_every_third_reducer_of_three_folds_everywhere() {
    check_catalogue(DType::F32, 2);
}

#[test]
fn tile_reducers_of_other_types_fold_everywhere() {
    for (name, dtype) in [
        ("sum", DType::I8),
        ("max", DType::I32),
        ("argmin", DType::U64),
        ("any", DType::I32),
        ("mean", DType::I16),
        ("sum", DType::BF16),
    ] {
        let reducer = coulis::tile_reducer(name, &[dtype]).unwrap();
        check_everywhere(&reducer, &format!("\"{name}\""), &[dtype]);
    }
}

/// The blocks of clusters of several sizes, from and to every memory that they fold.
fn check_in_clusters(reducer: &Reducer, text: &str, inputs: &[DType]) {
    let target = Target::simulated(32);
    for (sizes, n_blocks, n_threads, from, to) in [
        ([3, 4 * 37], 4, 64, "shared", "shared"),
        ([1, 2 * 300], 2, 160, "global", "global"),
        ([2, 3 * 9], 3, 33, "shared", "local"),
        ([70, 8 * 5], 8, 32, "shared", "global"),
        ([2, 6], 1, 1, "shared", "shared"),
    ] {
        let place = Place::Cluster { n_blocks, n_threads, from, to };
        check_wins(&program(reducer, text, inputs, sizes, place), &target, "cluster_shared");
    }
}

/// Every third reducer of the catalogue.
fn check_catalogue_in_clusters(part: usize) {
    for entry in CATALOGUE.iter().skip(part).step_by(3) {
        let inputs = vec![DType::F32; entry.n_inputs];
        let Some(reducer) = coulis::tile_reducer(entry.name, &inputs) else { continue };
        check_in_clusters(&reducer, &format!("\"{}\"", entry.name), &inputs);
    }
}

#[test]
fn tile_every_first_reducer_of_three_folds_in_clusters() {
    check_catalogue_in_clusters(0);
}

#[test]
fn tile_every_second_reducer_of_three_folds_in_clusters() {
    check_catalogue_in_clusters(1);
}

#[test]
fn tile_every_third_reducer_of_three_folds_in_clusters() {
    check_catalogue_in_clusters(2);
}

#[test]
fn tile_products_and_other_types_fold_in_clusters() {
    for name in ["mean+var+max", "argmax+min+logsumexp"] {
        let inputs = [DType::F32];
        check_in_clusters(&named(name, &inputs).unwrap(), &format!("\"{name}\""), &inputs);
    }
    for (name, dtype) in [
        ("sum", DType::I8),
        ("max", DType::BF16),
        ("argmin", DType::U64),
        ("any", DType::I32),
        ("mean", DType::F64),
    ] {
        let reducer = coulis::tile_reducer(name, &[dtype]).unwrap();
        check_in_clusters(&reducer, &format!("\"{name}\""), &[dtype]);
    }
}

#[test]
fn tile_a_reducer_of_two_sources_keeps_its_components_together() {
    let text = "T.comm_reducer(lambda x, i, y, j: (\
                T.Select(x > y or (x == y and i < j), x, y), T.Select(x > y or (x == y and i < j), i, j)), \
                [T.float32(\"-inf\"), T.int64(-1)])";
    let inputs = [DType::F32, DType::I64];
    // The text's reducer, read from a kernel that has it.
    let kernel = format!(
        "@T.prim_func
def main(A: T.Buffer((4,), \"float32\"), I: T.Buffer((4,), \"int64\"), B: T.Buffer((1,), \"float32\"), J: T.Buffer((1,), \"int64\")):
    T.device_entry(); T.cta_id([1]); T.thread_id([1])
    Tx.reduce((B, J), (A, I), reducer={text}, axes=(0,), accum=False)
"
    );
    let kernel = coulis_script::parse_module(&kernel).unwrap().remove(0);
    let mut found = None;
    coulis_ir::visit::for_each_stmt(&kernel.body, &mut |stmt| {
        if let coulis_ir::Stmt::Tile(call) = stmt
            && let coulis_ir::stmt::TileOp::ReduceBy { reducer, .. } = &call.op
        {
            found = Some((**reducer).clone());
        }
    });
    check_everywhere(&found.unwrap(), text, &inputs);
}
