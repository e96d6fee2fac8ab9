//! Splits whose last inner loop begins among the points of the one before it: what they make, that results stay the same, and what is
//! refused.

mod common;

use std::slice::from_ref;

use common::fixture::refused;
use common::{check, refusal};
use coulis_ir::print::print_kernel;
use coulis_ir::{DType, Expr, MemScope, ThreadTag};
use coulis_schedule::{Arg, Schedule, Split, Step, build_nest};
use coulis_tensor::{Tensor, compute, placeholder, reduce_axis, sum, var};

/// Rows that are divided by their sums, of that length.
fn rows(length: Expr) -> (Schedule, Tensor, Tensor) {
    let shape = [Expr::int(5), length];
    let a = placeholder(&shape, DType::F32, "A").expect("a tensor");
    let k = reduce_axis(shape[1].clone(), "k");
    let b = compute(&shape[..1], "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).expect("a tensor");
    let c = compute(&shape, "C", |i| a.at((&i[0], &i[1])) / b.at([&i[0]])).expect("a tensor");
    (Schedule::new(from_ref(&c), &[a, c.clone()]).expect("a schedule"), b, c)
}

fn text(s: &Schedule) -> String {
    print_kernel(&build_nest(s, s.program().args(), "f").expect("a kernel"))
}

#[test]
fn the_last_loop_ends_with_the_axis_and_has_no_guard() {
    let (mut s, _, c) = rows(Expr::int(13));
    let along = c.op().axes()[1].clone();
    let (words, lane) = s.split(&c, &along, Split::Overlap(4)).expect("split");
    s.vectorize(&c, &lane).expect("a vector");
    let made = text(&s);
    assert!(made.contains("C[i, T.min(j_outer * 4, 9) + j_inner] ="), "{made}");
    assert!(!made.contains("likely"), "{made}");
    let trace = s.trace().to_string();
    assert!(trace.contains("s[C].split(j, factor=4, overlap=True)"), "{trace}");
    check(&s, &[&[]]);
    s.unroll(&c, &words).expect("written out");
    check(&s, &[&[]]);
    for whole in [4, 12] {
        let (mut s, _, c) = rows(Expr::int(whole));
        s.split(&c, &c.op().axes()[1], Split::Overlap(4)).expect("split");
        let made = text(&s);
        assert!(!made.contains("T.min") && !made.contains("likely"), "{made}");
        check(&s, &[&[]]);
    }
}

#[test]
fn rows_of_any_length_are_covered_once_split_and_split_again() {
    let n = var("n");
    let sizes: &[&[(&str, i64)]] =
        &[&[("n", 0)], &[("n", 1)], &[("n", 3)], &[("n", 4)], &[("n", 5)], &[("n", 11)]];
    let (mut s, _, c) = rows(n.expr());
    s.split(&c, &c.op().axes()[1], Split::Overlap(4)).expect("split");
    assert!(text(&s).contains("likely"), "rows may be shorter than a vector");
    check(&s, sizes);
    let (mut s, b, c) = rows(n.expr());
    let (tile, within) = s.split(&c, &c.op().axes()[1], Split::Overlap(6)).expect("split");
    s.split(&c, &within, Split::Overlap(4)).expect("split");
    s.compute_at(&b, &c, &tile).expect("attached");
    s.set_scope(&b, MemScope::Local).expect("local");
    check(&s, sizes);
}

#[test]
fn what_is_attached_has_the_points_of_its_tile() {
    for length in [6, 7, 11, 13] {
        let shape = [Expr::int(3), Expr::int(length)];
        let a = placeholder(&shape, DType::F32, "A").expect("a tensor");
        let k = reduce_axis(Expr::int(3), "k");
        let b = compute(&shape[1..], "B", |i| sum(a.at((&k, &i[0])), from_ref(&k))).expect("a tensor");
        let c =
            compute(&shape[1..], "C", |i| b.at([&i[0]]) * Expr::float(2.0, DType::F32)).expect("a tensor");
        let mut s = Schedule::new(from_ref(&c), &[a, c.clone()]).expect("a schedule");
        let (tile, lane) = s.split(&c, &c.op().axes()[0], Split::Overlap(6)).expect("split");
        s.vectorize(&c, &lane).expect("a vector");
        s.compute_at(&b, &c, &tile).expect("attached");
        let made = text(&s);
        assert!(made.contains("B = T.allocate([6]") && !made.contains("likely"), "{made}");
        check(&s, &[&[]]);
    }
}

#[test]
fn points_that_are_computed_twice_are_computed_by_one_thread() {
    let (mut s, b, c) = rows(Expr::int(13));
    let k = b.op().reduce_axes()[0].clone();
    let want = "split of `B`: overlap is to be a loop over elements, in their own order, of a stage that folds nothing, got a fold, \
                which would take elements twice";
    refused(&mut s, |s| s.split(&b, &k, Split::Overlap(4)), want);
    let (words, lane) = s.split(&c, &c.op().axes()[1], Split::Overlap(4)).expect("split");
    // Iteration 1 of the lanes in the first word and iteration 0 in the last one may be one point.
    for said in
        [refusal(s.clone().parallel(&c, &lane)), refusal(s.clone().bind(&c, &lane, ThreadTag::ThreadX))]
    {
        assert!(said.contains("`j_inner`, which overlaps"), "{said}");
    }
    for (what, is_refused) in [
        ("parallel", s.clone().parallel(&c, &words).map_err(|e| e.to_string())),
        ("vectorize", s.clone().vectorize(&c, &words).map_err(|e| e.to_string())),
        ("bind", s.clone().bind(&c, &words, ThreadTag::ThreadX).map_err(|e| e.to_string())),
    ] {
        let said = is_refused.expect_err(what);
        assert!(said.contains("`j_outer`, which overlaps") && said.starts_with(what), "{said}");
    }
    let all = s.fuse(&c, &[c.op().axes()[0].clone(), words]).expect("fused");
    assert!(refusal(s.clone().parallel(&c, &all)).contains("which overlaps"));
    let (outer, _) = s.split(&c, &all, Split::Factor(2)).expect("split");
    assert!(refusal(s.clone().parallel(&c, &outer)).contains("which overlaps"));
    assert!(refusal(s.clone().cache_write(&c, MemScope::Local)).contains("split with overlap=True"));
    check(&s, &[&[]]);
}

#[test]
fn it_is_written_with_a_factor_and_as_true_or_false() {
    let step = |options: Vec<(&str, Arg)>| {
        let options = options.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        Step::new(Vec::new(), Some("C".to_owned()), "split", vec![Arg::Name("j".to_owned())], options)
    };
    let (mut s, ..) = rows(Expr::int(13));
    let said = refusal(s.apply(step(vec![("nparts", Arg::Int(2)), ("overlap", Arg::Bool(true))])));
    assert!(said.ends_with("`overlap` goes with a factor"), "{said}");
    let said = refusal(s.apply(step(vec![("factor", Arg::Int(2)), ("overlap", Arg::Int(1))])));
    assert!(said.ends_with("`overlap` is to be True or False, got 1"), "{said}");
    s.apply(step(vec![("factor", Arg::Int(2)), ("overlap", Arg::Bool(false))])).expect("a plain split");
    assert!(text(&s).contains("likely"));
}
