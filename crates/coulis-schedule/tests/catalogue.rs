//! Every primitive's example in the catalogue, executed: the loops before, the call, the loops after.

mod common;

use std::slice::from_ref;

use coulis_ir::{BinaryOp, DType, Expr, ThreadTag};
use coulis_schedule::{Arg, GridFinish, PRIMITIVES, Schedule, Split, Step};
use coulis_tensor::{Tensor, compute, placeholder, reduce_axis, sum, var};

/// Reads `a, b = s[B].f(x, 4, k=1, "t", [B, C])`.
fn step(line: &str) -> Step {
    let (results, call) = line.split_once(" = ").map_or(("", line), |(r, c)| (r, c));
    let (head, args) = call.split_once('(').expect("a call");
    let (object, primitive) = head.rsplit_once('.').expect("a method");
    let object = object.strip_prefix("s[").map(|o| o.trim_end_matches(']').to_owned());
    let arg = |text: &str| -> Arg {
        if let Ok(value) = text.parse() {
            Arg::Int(value)
        } else if let Some(name) = text.strip_prefix("s[") {
            Arg::Stage(name.trim_end_matches(']').to_owned())
        } else if let Some(names) = text.strip_prefix('[') {
            let names = names.trim_end_matches(']').split(';');
            Arg::List(names.map(|name| Arg::Name(name.to_owned())).collect())
        } else if text.starts_with('"') {
            Arg::Str(text.trim_matches('"').to_owned())
        } else if let Some((name, limit)) = text.split_once(" < ") {
            let named = |name: &str| Box::new(Arg::Name(name.to_owned()));
            Arg::Binary(BinaryOp::Lt, named(name), named(limit))
        } else {
            Arg::Name(text.to_owned())
        }
    };
    let (mut positional, mut options) = (Vec::new(), Vec::new());
    // A list is one argument.
    let args = match args.split_once('[') {
        Some((before, after)) => {
            let (list, after) = after.split_once(']').expect("the end of the list");
            format!("{before}[{}]{after}", list.replace(", ", ";"))
        }
        None => args.to_owned(),
    };
    for text in args.trim_end_matches(')').split(", ").filter(|t| !t.is_empty()) {
        match text.split_once('=') {
            Some((name, value)) => options.push((name.to_owned(), arg(value))),
            None => positional.push(arg(text)),
        }
    }
    let results = results.split(", ").filter(|r| !r.is_empty()).map(str::to_owned).collect();
    Step::new(results, object, primitive, positional, options)
}

fn schedule(output: Tensor, inputs: &[Tensor]) -> Schedule {
    let args: Vec<Tensor> = inputs.iter().cloned().chain([output.clone()]).collect();
    Schedule::new(&[output], &args).expect("a schedule")
}

/// `B[i, j] = A[i, j]`, of as many dimensions as there are extents.
fn copy(shape: &[Expr]) -> Schedule {
    let a = placeholder(shape, DType::F32, "A").expect("a tensor");
    let b = compute(shape, "B", |i| a.at(i)).expect("a tensor");
    schedule(b, &[a])
}

/// `B[i] = A[i] + 1`.
fn plus_one() -> Schedule {
    let n = var("n").expr();
    let a = placeholder(std::slice::from_ref(&n), DType::F32, "A").expect("a tensor");
    let b = compute(&[n], "B", |i| a.at([&i[0]]) + Expr::float(1.0, DType::F32)).expect("a tensor");
    schedule(b, &[a])
}

/// `B[i] = A[i] * 2`, then `C[i] = B[i] + 1`.
fn chain(shape: &[Expr]) -> Schedule {
    let a = placeholder(shape, DType::F32, "A").expect("a tensor");
    let b = compute(shape, "B", |i| a.at(i) * Expr::float(2.0, DType::F32)).expect("a tensor");
    let c = compute(shape, "C", |i| b.at(i) + Expr::float(1.0, DType::F32)).expect("a tensor");
    schedule(c, &[a])
}

fn example(primitive: &str) -> Schedule {
    let (n, m) = (var("n").expr(), var("m").expr());
    match primitive {
        "split" | "parallel" | "bind" | "set_store_predicate" => copy(&[n]),
        "tile" | "reorder" => copy(&[n, m]),
        "fuse" => copy(&[n, Expr::int(8)]),
        "unroll" | "pragma" => copy(&[Expr::int(4)]),
        "vectorize" => copy(&[Expr::int(8)]),
        "compute_at" | "compute_inline" => chain(&[n]),
        "compute_root" => {
            let mut s = chain(&[n]);
            s.compute_inline("B").expect("inlined");
            s
        }
        "cache_read" | "cache_write" => plus_one(),
        "set_scope" => chain(&[Expr::int(16)]),
        "join" => chain(&[n, Expr::int(8)]),
        "storage_align" => chain(&[Expr::int(16), Expr::int(32)]),
        "grid_finish" => {
            let a = placeholder(from_ref(&m), DType::F32, "A").expect("a tensor");
            let k = reduce_axis(m, "k");
            let b = compute(&[], "B", |_| sum(a.at([&k]), from_ref(&k))).expect("a tensor");
            let mut s = schedule(b, &[a]);
            let (outer, _) = s.split("B", &k, Split::Factor(32)).expect("k splits");
            s.bind("B", &outer, ThreadTag::BlockX).expect("bound");
            s.grid_finish("B", GridFinish::LastBlock).expect("finished");
            s
        }
        "clamp" => {
            let mut s = chain(&[Expr::int(11)]);
            let i = s.stage("C").expect("a stage").axes()[0].clone();
            let (_, inner) = s.split("C", &i, Split::Factor(4)).expect("i splits");
            s.compute_at("B", "C", &inner).expect("attached");
            s
        }
        "double_buffer" => {
            let mut s = chain(&[n]);
            let i = s.stage("C").expect("a stage").axes()[0].clone();
            s.compute_at("B", "C", &i).expect("attached");
            s
        }
        "from_first" => {
            let a = placeholder(&[Expr::int(4)], DType::F32, "A").expect("a tensor");
            let k = reduce_axis(Expr::int(4), "k");
            let b = compute(&[], "B", |_| sum(a.at([&k]), from_ref(&k))).expect("a tensor");
            schedule(b, &[a])
        }
        "peel" => {
            let a = placeholder(&[Expr::int(5), Expr::int(13)], DType::F32, "A").expect("a tensor");
            let k = reduce_axis(Expr::int(13), "k");
            let b =
                compute(&[Expr::int(5)], "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).expect("a tensor");
            schedule(b, &[a])
        }
        "from_boundary" | "filled" => {
            let a = placeholder(&[Expr::int(5), Expr::int(13)], DType::F32, "A").expect("a tensor");
            let k = reduce_axis(Expr::int(13), "k");
            let b =
                compute(&[Expr::int(5)], "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).expect("a tensor");
            let shape = [Expr::int(5), Expr::int(13)];
            let c = compute(&shape, "C", |i| a.at((&i[0], &i[1])) - b.at([&i[0]])).expect("a tensor");
            schedule(c, &[a])
        }
        "zip" => {
            let mut s = example("peel");
            let k = s.stage("B").expect("a stage").reduce_axes()[0].clone();
            let (words, ends) = s.peel("B", &k, 4).expect("peeled");
            for stage in [words, ends] {
                let k = s.stage(stage).expect("a stage").reduce_axes()[0].clone();
                let (_, thread) = s.split(stage, &k, Split::Factor(2)).expect("k splits");
                s.rfactor_at(stage, &thread, 1).expect("factored");
            }
            s
        }
        "rfactor" => {
            let a = placeholder(&[n.clone(), m.clone()], DType::F32, "A").expect("a tensor");
            let k = reduce_axis(m, "k");
            let b = compute(&[n], "B", |i| sum(a.at((&i[0], &k)), std::slice::from_ref(&k)));
            let mut s = schedule(b.expect("a tensor"), &[a]);
            s.split("B", &k, Split::Factor(16)).expect("k splits");
            s
        }
        "in_runs" => {
            let a = placeholder(&[n.clone(), m.clone()], DType::F16, "A").expect("a tensor");
            let k = reduce_axis(m, "k");
            let sum = coulis_reducers::find("sum").expect("a reducer");
            let sum = sum.build(&coulis_reducers::ReducerRequest::new(&[DType::F16])).expect("built");
            let b = compute(&[n], "B", |i| {
                coulis_tensor::reduce_at(&sum, &[a.at((&i[0], &k))], k.expr(), std::slice::from_ref(&k))
            });
            let mut s = schedule(b.expect("a tensor"), &[a]);
            s.split("B", &k, Split::Factor(16)).expect("k splits");
            s
        }
        other => panic!("the catalogue has `{other}`, and it has no example here"),
    }
}

#[test]
fn every_example_does_what_it_shows() {
    let mut faults = String::new();
    let mut compare = |what: &str, found: &str, wanted: &str| {
        if found.trim_end() != wanted {
            faults.push_str(&format!("{what}, found:\n{found}\nwanted:\n{wanted}\n\n"));
        }
    };
    for entry in PRIMITIVES {
        let mut s = example(entry.name);
        let n_before = s.trace().steps().len();
        compare(&format!("before {}", entry.name), &common::body(&s), entry.before);
        s.apply(step(entry.call)).unwrap_or_else(|e| panic!("{}: {e}", entry.call));
        compare("the step", &s.trace().steps()[n_before].to_string(), entry.call);
        compare(&format!("after {}", entry.name), &common::body(&s), entry.after);
    }
    assert!(faults.is_empty(), "{faults}");
}

#[test]
fn every_example_keeps_the_meaning() {
    for entry in PRIMITIVES {
        let mut s = example(entry.name);
        s.apply(step(entry.call)).unwrap_or_else(|e| panic!("{}: {e}", entry.call));
        common::check(&s, &[&[("n", 1), ("m", 1)], &[("n", 5), ("m", 3)], &[("n", 33), ("m", 9)]]);
    }
}

#[test]
fn names_given_by_a_hand_written_trace_are_understood() {
    let mut s = copy(&[var("n").expr()]);
    for line in
        ["io, ii = s[B].split(i, factor=4)", "s[B].reorder(ii, io)", "iii, iio = s[B].split(ii, nparts=2)"]
    {
        s.apply(step(line)).unwrap_or_else(|e| panic!("{line}: {e}"));
    }
    assert_eq!(
        s.trace().to_string(),
        "i_outer, i_inner = s[B].split(i, factor=4)\n\
         s[B].reorder(i_inner, i_outer)\n\
         i_inner_outer, i_inner_inner = s[B].split(i_inner, nparts=2)\n"
    );
    common::check(&s, &[&[("n", 11)]]);
}

#[test]
fn signatures_and_examples_name_their_primitive() {
    for entry in PRIMITIVES {
        let call = format!(".{}(", entry.name);
        assert!(entry.signature.contains(&call) && entry.call.contains(&call), "{}", entry.name);
    }
}

#[test]
fn a_stage_whose_dimensions_are_joined_is_found_by_the_tensor_it_once_made() {
    let (n, m) = (Expr::int(4), Expr::int(6));
    let a = placeholder(&[n.clone(), m.clone()], DType::F32, "A").unwrap();
    let one = Expr::float(1.0, DType::F32);
    let x = compute(&[n.clone(), m.clone()], "X", |i| a.at([&i[0], &i[1]]) + one.clone()).unwrap();
    let y = compute(&[n, m], "Y", |i| x.at([&i[0], &i[1]]) * one.clone()).unwrap();
    let mut s = Schedule::new(std::slice::from_ref(&y), &[a, y.clone()]).unwrap();
    let [i, j] = [0, 1].map(|at| x.op().axes()[at].clone());
    let joined = s.join(&x, &i, &j).unwrap();
    let (outer, _) = s.split(&x, &joined, Split::Factor(8)).unwrap();
    assert_eq!(s.stage(&x).unwrap().name(), "X");
    s.parallel(&x, &outer).unwrap();
}
