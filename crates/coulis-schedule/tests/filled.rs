//! Rows that are copied from their boundaries into longer ones (`filled`): what is refused, and that results stay the same.

mod common;

use std::slice::from_ref;

use common::{check, refusal};
use coulis_ir::{DType, Expr, MemScope};
use coulis_schedule::{Schedule, Split, StageRef};
use coulis_tensor::{compute, max, placeholder, reduce_axis, sum};

/// Five rows of that length less what is folded of each, of the elements as `change` gives them.
fn rows(length: i32, is_sum: bool, change: &dyn Fn(Expr) -> Expr) -> Schedule {
    let shape = [Expr::int(5), Expr::int(length)];
    let a = placeholder(&shape, DType::F32, "A").expect("a tensor");
    let k = reduce_axis(shape[1].clone(), "k");
    let fold = if is_sum { sum } else { max };
    let b = compute(&shape[..1], "B", |i| fold(change(a.at((&i[0], &k))), from_ref(&k))).expect("a tensor");
    let c = compute(&shape, "C", |i| a.at((&i[0], &i[1])) - b.at([&i[0]])).expect("a tensor");
    Schedule::new(from_ref(&c), &[a, c.clone()]).expect("a schedule")
}

fn names(readers: &[&str]) -> Vec<StageRef> {
    readers.iter().map(|reader| StageRef::Name((*reader).to_owned())).collect()
}

#[test]
fn results_are_the_same_with_steps_that_are_vectors_and_several_at_once() {
    for (length, filled) in [(13, 16), (14, 24), (15, 32), (16, 16), (17, 24), (19, 48)] {
        for is_sum in [true, false] {
            let mut s = rows(length, is_sum, &|element| element);
            let a = s.stage("B").expect("a stage").reads()[0].clone();
            let copy = s.filled(&a, MemScope::Global, &names(&["B", "C"]), 4, filled).expect("a copy");
            for stage in [copy, s.stage("C").expect("a stage").id()] {
                let along = s.stage(stage).expect("a stage").leaves()[1].clone();
                let (words, lane) = s.split(stage, &along, Split::Factor(4)).expect("split");
                s.vectorize(stage, &lane).expect("a vector");
                let (_, few) = s.split(stage, &words, Split::Factor(2)).expect("split");
                s.unroll(stage, &few).expect("written out");
            }
            check(&s, &[&[]]);
        }
    }
}

#[test]
fn it_takes_whole_accesses_and_folds_with_an_element_that_changes_nothing() {
    let as_is = |element: Expr| element;
    let fill = |s: &mut Schedule, reader: &str, length, message: &str| {
        let a = s.stage("B").expect("a stage").reads()[0].clone();
        let before = s.trace().clone();
        assert_eq!(refusal(s.filled(&a, MemScope::Shared, &names(&[reader]), 4, length)), message);
        assert_eq!(*s.trace(), before, "a refused step is not recorded");
    };
    let mut s = rows(13, true, &as_is);
    for length in [12, 14] {
        let wanted = "length is to be a whole number of accesses, no shorter than a row";
        fill(&mut s, "B", length, &format!("filled of `A`: {wanted}, got {length}"));
    }
    fill(&mut s, "C", 16, "filled of `A`: readers is to be a fold among them, got none");
    fill(
        &mut rows(13, true, &|element| element + Expr::float(1.0, DType::F32)),
        "B",
        16,
        "filled of `B`: readers is to be folds with an element that changes nothing, got `sum`, which has none",
    );
    let k = s.stage("B").expect("a stage").reduce_axes()[0].clone();
    s.split("B", &k, Split::Factor(2)).expect("k splits");
    fill(
        &mut s,
        "B",
        16,
        "filled of `B`: readers is to be ones whose loops are as they were made, got loops that were scheduled",
    );
}
