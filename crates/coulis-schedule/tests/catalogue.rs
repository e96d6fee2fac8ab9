//! Every primitive's example in the catalogue, executed: the loops before, the call, the loops after.

mod common;

use coulis_ir::{BinaryOp, DType, Expr};
use coulis_schedule::{Arg, PRIMITIVES, Schedule, Split, Step};
use coulis_tensor::{compute, placeholder};

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

#[test]
fn every_example_does_what_it_shows() {
    let mut faults = String::new();
    let mut compare = |what: &str, found: &str, wanted: &str| {
        if found.trim_end() != wanted {
            faults.push_str(&format!("{what}, found:\n{found}\nwanted:\n{wanted}\n\n"));
        }
    };
    for entry in PRIMITIVES {
        let mut s = (entry.example)();
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
        let mut s = (entry.example)();
        s.apply(step(entry.call)).unwrap_or_else(|e| panic!("{}: {e}", entry.call));
        common::check(&s, &[&[("n", 1), ("m", 1)], &[("n", 5), ("m", 3)], &[("n", 33), ("m", 9)]]);
    }
}

#[test]
fn names_given_by_a_hand_written_trace_are_understood() {
    let split = PRIMITIVES.iter().find(|entry| entry.name == "split").expect("a primitive");
    let mut s = (split.example)();
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
