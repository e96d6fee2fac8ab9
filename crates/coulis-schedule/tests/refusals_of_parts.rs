//! Refusals of primitives that make stages of the parts of a fold, each with its whole message.

mod common;

use std::slice::from_ref;

use common::check;
use common::fixture::{Fixture, fixture, refused};
use coulis_ir::{DType, Expr, MemScope};
use coulis_schedule::{Schedule, Split, StageRef};
use coulis_tensor::{IterVar, compute, placeholder, reduce_axis, sum};

/// `B[i] = sum of A[i, k]` over rows of `length` elements; the output is `B`.
fn rows(length: i32) -> (Schedule, IterVar) {
    let shape = [Expr::int(5), Expr::int(length)];
    let a = placeholder(&shape, DType::F32, "A").expect("a tensor");
    let k = reduce_axis(shape[1].clone(), "k");
    let b = compute(&shape[..1], "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).expect("a tensor");
    (Schedule::new(from_ref(&b), &[a, b.clone()]).expect("a schedule"), k)
}

#[test]
fn peel_takes_rows_of_constant_length_that_hold_two_accesses_once() {
    let (mut s, k) = rows(7);
    refused(
        &mut s,
        |s| s.peel("B", &k, 4),
        "peel of `B`: axis is to be a loop of a constant number of steps from 0 that holds two accesses, got 7",
    );
    refused(&mut s, |s| s.peel("B", &k, 1), "peel of `B`: lanes is to be at least 2, got 1");
    let i = s.stage("B").expect("a stage").axes()[0].clone();
    let wanted = "takes a reduce axis of `B`, and `i` is a data axis; legal are `k`";
    refused(&mut s, |s| s.peel("B", &i, 2), &format!("peel {wanted}"));
    refused(&mut s, |s| s.cut("B", &i, 2), &format!("cut {wanted}"));
    refused(&mut s, |s| s.overlap("B", &i, 2), &format!("overlap {wanted}"));
    s.peel("B", &k, 3).expect("two accesses of three");
    refused(&mut s, |s| s.peel("B", &k, 3), "peel: `k` is not an axis of `B`; its axes are `i`");
    let Fixture { mut s, k, .. } = fixture();
    refused(
        &mut s,
        |s| s.peel("B", &k, 4),
        "peel of `B`: axis is to be a loop of a constant number of steps from 0 that holds two accesses, got no constant",
    );
    let (mut s, k) = rows(13);
    s.split("B", &k, Split::Factor(2)).expect("k splits");
    let outer = s.stage("B").expect("a stage").leaves()[1].clone();
    let found = "of `B`: stage is to be one whose loops are as they were made, got loops that were scheduled";
    refused(&mut s, |s| s.peel("B", &outer, 4), &format!("peel {found}"));
    refused(&mut s, |s| s.cut("B", &outer, 4), &format!("cut {found}"));
    refused(&mut s, |s| s.overlap("B", &outer, 4), &format!("overlap {found}"));
}

#[test]
fn overlap_takes_folds_of_constant_length_with_a_rest() {
    let (mut s, k) = rows(7);
    refused(&mut s, |s| s.overlap("B", &k, 1), "overlap of `B`: lanes is to be at least 2, got 1");
    let axis =
        "axis is to be a loop of a constant number of steps from 0 that is one vector or more, and a rest";
    let message = |found: &str| format!("overlap of `B`: {axis}, got {found}");
    [7, 8].into_iter().for_each(|lanes| refused(&mut s, |s| s.overlap("B", &k, lanes), &message("7")));
    let Fixture { mut s, k, .. } = fixture();
    refused(&mut s, |s| s.overlap("B", &k, 4), &message("no constant"));
}

#[test]
fn cut_takes_folds_of_constant_length_that_it_leaves_elements_of() {
    let (mut s, k) = rows(7);
    for (length, found) in [(0, "0 of 7"), (7, "7 of 7")] {
        let message = "cut of `B`: length is to be at least 1 and less than all elements, got ";
        refused(&mut s, |s| s.cut("B", &k, length), &format!("{message}{found}"));
    }
    s.cut("B", &k, 6).expect("six and one");
    refused(&mut s, |s| s.cut("B", &k, 3), "cut: `k` is not an axis of `B`; its axes are `i`");
    let Fixture { mut s, k, .. } = fixture();
    let message = "cut of `B`: axis is to be a loop of a constant number of steps from 0, got no constant";
    refused(&mut s, |s| s.cut("B", &k, 4), message);
}

#[test]
fn begin_takes_the_outermost_loop_of_a_fold() {
    let (mut s, k) = rows(7);
    refused(&mut s, |s| s.begin("B", &k, 0), "begin of `B`: length is to be at least 1, got 0");
    s.begin("B", &k, 9).expect("all of them, and none behind");
    let Fixture { mut s, k, .. } = fixture();
    s.begin("B", &k, 4).expect("of any length");
    refused(
        &mut s,
        |s| s.begin("B", &k, 2),
        "begin: `k` is not an axis of `B`, whose own `k` is another one; its axes are `i`, `k`",
    );
}

#[test]
fn from_boundary_takes_rows_of_constant_length_and_readers_of_whole_rows() {
    let (mut s, k) = rows(13);
    let a = s.stage("B").expect("a stage").reads()[0].clone();
    let read_by = |reader: &str| [StageRef::Name(reader.to_owned())];
    let turn = |s: &mut Schedule, lanes, message: &str| {
        refused(s, |s| s.from_boundary(&a, MemScope::Shared, &read_by("B"), lanes), message);
    };
    turn(&mut s, 1, "from_boundary of `A`: lanes is to be at least 2, got 1");
    turn(
        &mut s,
        8,
        "from_boundary of `A`: tensor is to be rows of a constant number of neighbours that hold two accesses, got others",
    );
    refused(
        &mut s,
        |s| s.from_boundary(&a, MemScope::Shared, &[], 4),
        "from_boundary of `A` takes at least one reader, got none; its readers are `B`",
    );
    let (mut turned, _) = rows(13);
    let other = turned.stage("B").expect("a stage").reads()[0].clone();
    let copy = turned.from_boundary(&other, MemScope::Shared, &read_by("B"), 4).expect("a copy");
    refused(
        &mut turned,
        |s| s.compute_inline(copy),
        "compute_inline takes a stage that takes rows from their begin, and `A.shared` is one that takes them from a \
         boundary on",
    );
    refused(
        &mut turned,
        |s| s.cache_write(copy, MemScope::Local),
        "cache_write takes a stage that takes rows from their begin, and `A.shared` is one that takes them from a \
         boundary on",
    );
    s.split("B", &k, Split::Factor(2)).expect("k splits");
    turn(
        &mut s,
        4,
        "from_boundary of `B`: readers is to be ones whose loops are as they were made, got loops that were scheduled",
    );
}

#[test]
fn zip_takes_two_folds_of_as_many_steps_and_what_combines_them() {
    let (mut s, k) = rows(13);
    let (words, ends) = s.peel("B", &k, 4).expect("peeled");
    refused(
        &mut s,
        |s| s.zip("B", words, ends),
        "zip of `B_ends`: second is to be a fold of as many steps from 0 as the first has, got another number",
    );
    refused(
        &mut s,
        |s| s.zip("B", "B", ends),
        "zip of `B`: first is to be a fold without a condition over one loop that is as it was made, got another stage",
    );
    refused(
        &mut s,
        |s| s.zip(words, words, words),
        "zip of `B_words`: stage is to be one that combines the two as their reducer does, got another",
    );
    for stage in [words, ends] {
        let k = s.stage(stage).expect("a stage").reduce_axes()[0].clone();
        let (_, thread) = s.split(stage, &k, Split::Factor(2)).expect("k splits");
        s.rfactor_at(stage, &thread, 1).expect("factored");
    }
    refused(
        &mut s,
        |s| s.zip("B", ends, words),
        "zip of `B`: stage is to be one that combines the two as their reducer does, got another",
    );
    let before = s.clone();
    s.zip("B", words, ends).expect("zipped");
    check(&s, &[&[("n", 3), ("m", 5)]]);
    let gone = "`B_ends` is no stage any more: zip made it a part of `B`; the stages are `B_words_rf`, `B_ends_rf`, `B`";
    let tensor = before.stage(ends).expect("a stage").outputs()[0].clone();
    for asked in [StageRef::Id(ends), StageRef::Name("B_ends".to_owned()), StageRef::Tensor(tensor)] {
        assert_eq!(s.stage(asked).expect_err("gone").to_string(), gone);
    }
    assert_eq!(s.stage_name(ends), "B_ends");
    refused(&mut s, |s| s.compute_inline(ends), gone);
}

#[test]
fn parts_of_a_loop_on_which_another_depends() {
    let shape = [Expr::int(20), Expr::int(20)];
    let a = placeholder(&shape, DType::I32, "A").expect("a tensor");
    let k = reduce_axis(shape[1].clone(), "k");
    let l = reduce_axis(k.expr() + Expr::int(1), "l");
    let both = [k.clone(), l.clone()];
    let triangle = || {
        let b =
            compute(&[Expr::int(1)], "B", |_| sum(a.at([&l.expr(), &k.expr()]), &both)).expect("a tensor");
        Schedule::new(from_ref(&b), &[a.clone(), b.clone()]).expect("a schedule")
    };
    let mut s = triangle();
    s.cut("B", &k, 4).expect("a head and a tail");
    check(&s, &[&[]]);
    let mut s = triangle();
    s.begin("B", &k, 4).expect("a head");
    check(&s, &[&[]]);
    let mut s = triangle();
    s.overlap("B", &k, 8).expect("two vectors and a half");
    check(&s, &[&[]]);
    // The inner loop depends on one that stays.
    let mut s = triangle();
    let (_, inner) = s.split("B", &l, Split::Factor(4)).expect("splits");
    s.rfactor("B", &inner).expect("parts of the inner loop");
    check(&s, &[&[]]);
    let mut s = triangle();
    let wanted = "axis is to be a loop on which no other depends, got `k`, on which the steps of `l` depend";
    refused(&mut s, |s| s.peel("B", &k, 4), &format!("peel of `B`: {wanted}"));
    let wanted =
        "readers is to be ones with no loop that depends on the one along the row, got `l`, which does";
    let readers: [StageRef; 1] = ["B".into()];
    refused(
        &mut s,
        |s| s.from_boundary(&a, MemScope::Local, &readers, 4),
        &format!("from_boundary of `B`: {wanted}"),
    );
    refused(&mut s, |s| s.filled(&a, MemScope::Local, &readers, 4, 24), &format!("filled of `B`: {wanted}"));
    let wanted = "the extent of another axis depends on it, and would be that of none of the partial results";
    refused(&mut s, |s| s.rfactor("B", &k), &format!("rfactor of `B` by `k`: {wanted}"));
}
