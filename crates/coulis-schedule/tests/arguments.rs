//! Arguments of primitives: what names a stage, and which values pragmas take.

mod common;

use common::fixture::{Fixture, fixture, refused};
use common::refusal;
use coulis_ir::Attr;
use coulis_ir::print::print_kernel;
use coulis_schedule::{Arg, StageId, StageRef, Step, build_nest};
use coulis_tensor::Tensor;

#[test]
fn a_list_of_tensors_names_the_stage_that_makes_them_all() {
    let Fixture { mut s, b, c, .. } = fixture();
    let cache = |tensors: &[&Tensor]| {
        let tensors = tensors.iter().map(|t| Arg::Tensor(t.buffer().clone())).collect();
        let args = vec![Arg::List(tensors), Arg::Str("local".to_owned())];
        Step::new(Vec::new(), None, "cache_write", args, Vec::new())
    };
    let want = "cache_write is called as `s.cache_write(stage, scope)`, and `stage` is to be one stage, got ";
    let error = refusal(s.apply(cache(&[&b, &c])));
    assert!(error.starts_with(want), "{error}");
    let error = refusal(s.apply(cache(&[])));
    assert!(error.contains("`stage` is to be a stage, got "), "{error}");
    let mut one = s.clone();
    s.apply(cache(&[&b, &b])).expect("one stage");
    one.apply(Step::new(
        Vec::new(),
        None,
        "cache_write",
        vec![Arg::Tensor(b.buffer().clone()), Arg::Str("local".to_owned())],
        Vec::new(),
    ))
    .expect("one stage");
    assert_eq!(s.trace().to_string(), one.trace().to_string());
}

#[test]
fn an_id_that_no_stage_has_stands_for_none() {
    let Fixture { mut s, .. } = fixture();
    let id = StageId(99);
    assert_eq!(s.stage_name(id), "StageId(99)");
    let want = "there is no stage `StageId(99)`; the stages are `B`, `C`";
    refused(&mut s, |s| s.compute_root(StageRef::Id(id)), want);
}

#[test]
fn a_pragma_takes_a_value_of_its_kind() {
    let Fixture { mut s, b, i, .. } = fixture();
    let of = |value: &str| Attr::Str(value.to_owned());
    for (key, value, want) in [
        ("unroll", Attr::Int(4), "1 or left out, got 4"),
        ("vectorize", of("yes"), "1 or left out, got \"yes\""),
        ("auto_unroll_max_step", of("16"), "a number of steps of at least 0, got \"16\""),
        ("auto_unroll_max_step", Attr::Int(-1), "a number of steps of at least 0, got -1"),
        ("unroll_explicit", Attr::Int(2), "0 or 1, got 2"),
        ("prefetch", Attr::Bool(true), "a number of iterations of at least 0, got True"),
        ("stream", Attr::Int(-1), "0 or 1, got -1"),
        ("resident", Attr::Int(0), "a number of blocks of at least 1, got 0"),
    ] {
        let want = format!("pragma of `B`: the value of `{key}` is to be {want}");
        refused(&mut s, |s| s.pragma(&b, &i, key, value), &want);
    }
    for (key, value, want) in [
        ("auto_unroll_max_step", Attr::Int(0), "pragma_auto_unroll_max_step\", 0"),
        ("unroll_explicit", Attr::Bool(false), "pragma_unroll_explicit\", 0"),
        ("prefetch", Attr::Int(0), "pragma_prefetch\", 0"),
        ("stream", Attr::Bool(true), "pragma_stream\", 1"),
        ("resident", Attr::Int(1), "pragma_resident\", 1"),
        // A remark of the user's own may say anything.
        ("mine", of("x"), "pragma_mine\", \"x\""),
    ] {
        let mut s = s.clone();
        s.pragma(&b, &i, key, value).expect(want);
        let args = s.program().args().to_vec();
        let nest = build_nest(&s, &args, "main").expect("a nest");
        let text = print_kernel(&nest);
        assert!(text.contains(want), "{text}");
    }
}
