//! What is kept once, and what is refused.

use coulis_ir::Rewalk;

use super::*;
use crate::{ReducerRequest, find};

fn built(names: &[&str], request: &ReducerRequest) -> Product {
    let parts: Vec<(&str, Reducer)> =
        names.iter().map(|n| (*n, find(n).unwrap().build(request).unwrap())).collect();
    product(&parts).unwrap()
}

#[track_caller]
fn check(names: &[&str], dtype: DType, fields: &[&str]) {
    let product = built(names, &ReducerRequest::new(&[dtype]));
    let found: Vec<&str> = product.reducer.fields.iter().map(|f| f.name.as_str()).collect();
    assert_eq!(found, fields, "{names:?} of {dtype}");
}

#[test]
fn equal_state_is_kept_once() {
    check(&["sum", "mean", "var"], DType::F32, &["sum", "count", "pivot", "dev", "devsq"]);
    check(&["mean", "meansq"], DType::F16, &["sum", "count", "sumsq"]);
    check(&["min", "max", "absmax"], DType::F32, &["value", "nan_seen", "max_value", "absmax_value"]);
    check(&["var", "std", "count"], DType::F64, &["count", "pivot", "dev", "devsq"]);
    check(&["sum", "mean"], DType::F64, &["sum", "sum_low", "count"]);
    check(&["sum", "mean"], DType::I16, &["sum", "count"]);
    check(&["sumsq", "norm2", "meansq"], DType::F32, &["sumsq", "count"]);
    check(&["argmax", "maxloc"], DType::F32, &["value", "index"]);
    check(&["argmax", "argmin"], DType::I32, &["value", "index", "argmin_value", "argmin_index"]);
}

#[test]
fn equal_parts_of_runs_are_kept_once_also_where_runs_are_walked_twice() {
    let request = ReducerRequest { twice: true, ..ReducerRequest::new(&[DType::BF16]) };
    let kept = |names: &[&str]| {
        let reducer = built(names, &request).reducer;
        (reducer.arity(), reducer.quick.unwrap().identity.len())
    };
    assert_eq!(kept(&["max"]), (2, 2), "the value, and what tells of NaN");
    assert_eq!(kept(&["argmax"]), (2, 2));
    assert_eq!(kept(&["max", "argmax"]), (4, 3), "one greatest value");
    assert_eq!(kept(&["var", "max"]), (6, 5), "squares tell of NaN");
    assert_eq!(kept(&["sum", "mean", "var", "min", "max", "argmax"]), (10, 7));
}

#[test]
fn what_only_runs_keep_is_kept_by_a_reducer_by_itself() {
    let runs = |names: &[&str]| {
        built(names, &ReducerRequest::new(&[DType::F32])).reducer.quick.map(|q| q.identity.len())
    };
    assert_eq!(runs(&["argmax"]), Some(3), "value, position, and what tells of NaN");
    assert_eq!(runs(&["argmax", "argmin"]), None);
    assert_eq!(runs(&["var", "argmax"]), Some(6), "runs of the variance stay");
    let exact = built(&["argmax"], &ReducerRequest::new(&[DType::I32])).reducer.quick;
    assert_eq!(exact.map(|q| q.identity.len()), Some(2), "there is no NaN");
}

#[test]
fn parts_walk_over_a_run_again_each_for_its_own_reason() {
    let request = ReducerRequest { twice: true, ..ReducerRequest::new(&[DType::BF16]) };
    // How many fields of a run each of its further walks changes.
    let changed = |names: &[&str]| -> Vec<usize> {
        let quick = built(names, &request).reducer.quick.unwrap();
        let n_state = quick.close.params.len() - quick.identity.len();
        let changes = |walk: &Rewalk| {
            let kept = &walk.start.params[n_state..];
            let stays = |i: usize| {
                walk.start.body[i] == kept[i].expr() && walk.step.body[i] == walk.step.params[i].expr()
            };
            (0..kept.len()).filter(|i| !stays(*i)).count()
        };
        quick.rewalks.iter().map(changes).collect()
    };
    assert_eq!(changed(&["var", "argmax"]), [1, 1], "squares, and a position");
    assert_eq!(changed(&["argmax", "var", "argmin"]), [1, 1, 1]);
    assert_eq!(changed(&["var", "std", "mean"]), [1], "one walk for both");
    assert_eq!(changed(&["sum", "max"]), []);
}

#[test]
fn different_state_is_kept_apart() {
    check(&["sum", "sumsq"], DType::F32, &["sum", "sumsq"]);
    check(&["any", "all"], DType::F32, &["flag", "all_flag"]);
    check(
        &["argmax", "argmax_last"],
        DType::I32,
        &["value", "index", "argmax_last_value", "argmax_last_index"],
    );
}

#[test]
fn runs_that_may_be_walked_twice_keep_equal_fields_once_too() {
    for dtype in [DType::F16, DType::BF16] {
        let quick = built(&["sum", "mean", "var"], &ReducerRequest::new(&[dtype])).reducer.quick.unwrap();
        assert_eq!(quick.identity.len(), 4, "sum, count, pivot, squares of {dtype}");
        assert_eq!(quick.rewalks.len(), usize::from(dtype == DType::BF16));
        for walk in &quick.rewalks {
            assert_eq!(walk.start.body.len(), 4);
            assert_eq!(walk.step.params.len(), 8);
            assert_eq!(walk.needed.params.len(), quick.close.params.len());
        }
    }
}

#[test]
fn results_are_named_after_parts() {
    let product = built(&["sum", "maxloc"], &ReducerRequest::new(&[DType::F16]));
    let found: Vec<String> =
        product.reducer.results.iter().map(|r| format!("{} {}", r.name, r.dtype)).collect();
    assert_eq!(found, ["sum float16", "maxloc.value float16", "maxloc.index int64"]);
    assert_eq!(product.parts[1].results, 1..3);
}

#[test]
fn the_product_of_one_reducer_is_that_reducer_with_the_fields_of_runs_that_are_read() {
    for entry in crate::CATALOGUE {
        let request = ReducerRequest::new(&vec![DType::F32; entry.n_inputs]);
        let alone = entry.build(&request).unwrap();
        let product = product(&[(entry.name, alone.clone())]).unwrap().reducer;
        let quick = alone.quick.as_ref().map(QuickStep::condensed);
        let alone = Reducer { results: product.results.clone(), quick, ..alone };
        assert_eq!(product, alone, "{}", entry.name);
    }
}

#[test]
fn what_cannot_be_folded_together_is_refused() {
    let build = |name: &str, request: &ReducerRequest| find(name).unwrap().build(request).unwrap();
    let single = ReducerRequest::new(&[DType::F32]);
    let sum = build("sum", &single);
    let refused = |parts: &[(&str, Reducer)]| product(parts).unwrap_err().to_string();
    assert_eq!(refused(&[]), "a product takes at least one reducer, got none");
    assert_eq!(
        refused(&[("sum", sum.clone()), ("sum", sum.clone())]),
        "`sum` is asked for twice; names in one call are unique"
    );
    let other = build("max", &ReducerRequest::new(&[DType::I32]));
    assert_eq!(
        refused(&[("sum", sum.clone()), ("max", other)]),
        "`max` reads int32, where `sum` reads float32"
    );
    let (one, two) = (single.clone(), ReducerRequest::new(&[DType::F32; 2]));
    let [one, two] = [one, two].map(|request| request.with_nan(NanPolicy::Ignore));
    let (dot, alone) = (build("dot", &two), build("sum", &one));
    let text = "cannot share one read: an element is left out where any input of its statistic is NaN, and `dot` \
                reads one more than `sum`";
    let found = refused(&[("dot", dot.clone()), ("sum", alone.clone())]);
    assert!(found.starts_with("with NaN ignored, `dot` and `sum` ") && found.contains(text), "{found}");
    assert!(refused(&[("sum", alone), ("dot", dot)]).contains(text));
    let ignoring = build("max", &single.with_nan(NanPolicy::Ignore));
    assert_eq!(
        refused(&[("sum", sum), ("max", ignoring)]),
        "`max` and `sum` treat NaN differently; one call has one policy"
    );
}
