//! Every refusal, with its whole message; and that a refused step leaves the schedule as it was.

mod common;

use std::slice::from_ref;

use common::fixture::{Fixture, fixture, refused};
use common::{check, refusal};
use coulis_ir::{Attr, Claims, DType, Expr, MemScope};
use coulis_schedule::{Arg, Schedule, ScheduleError, Split, Step, build_nest};
use coulis_tensor::{
    comm_reducer, compute, compute_axes, placeholder, reduce_axis, reduce_axis_of, sum, var,
};

#[test]
fn te_fault_c7_factors_below_one_and_beyond_the_index() {
    let Fixture { mut s, b, k, .. } = fixture();
    for (by, want) in [
        (Split::Factor(0), "split of `k` takes a factor of at least 1, got 0"),
        (Split::Factor(-3), "split of `k` takes a factor of at least 1, got -3"),
        (Split::Nparts(0), "split of `k` takes a number of parts of at least 1, got 0"),
        (
            Split::Factor(1 << 31),
            "split of `k` takes a factor of at most 2147483647, since its index is int32, got 2147483648",
        ),
        (
            Split::Nparts(1 << 40),
            "split of `k` takes a number of parts of at most 2147483647, since its index is int32, got 1099511627776",
        ),
    ] {
        refused(&mut s, |s| s.split(&b, &k, by), want);
    }
    // What is rounded up to a multiple of it stays in 64 bits.
    let (most, l) = (i64::MAX / 2, reduce_axis(Expr::int_of(5, DType::I64), "l"));
    let a = placeholder(&[Expr::int_of(5, DType::I64)], DType::I32, "A").expect("a tensor");
    let long = compute(&[Expr::int(1)], "L", |_| sum(a.at([&l]), from_ref(&l))).expect("a tensor");
    let mut of_long = Schedule::new(from_ref(&long), &[a, long.clone()]).expect("a schedule");
    let want =
        format!("split of `l` takes a factor of at most {most}, since its index is int64, got {}", most + 1);
    refused(&mut of_long, |s| s.split(&long, &l, Split::Factor(most + 1)), &want);
    of_long.split(&long, &l, Split::Factor(most)).expect("the largest is legal");
    s.split(&b, &k, Split::Factor(1)).expect("1 is legal");
    check(&s, &[&[("n", 3), ("m", 5)]]);
}

#[test]
fn factors_that_are_no_sizes() {
    let Fixture { mut s, b, i, k, .. } = fixture();
    let want = "split of `k` takes an integer factor of constants and sizes, and this one uses `i`";
    refused(&mut s, |s| s.split(&b, &k, Split::FactorExpr(i.expr())), want);
}

#[test]
fn axes_that_are_gone_or_of_another_stage() {
    let Fixture { mut s, b, c, i, k } = fixture();
    s.split(&b, &k, Split::Factor(4)).expect("k splits");
    let want = "split: `k` of `B` was split into `k_outer` and `k_inner`; the axes are now `i`, `k_outer`, `k_inner`";
    refused(&mut s, |s| s.split(&b, &k, Split::Factor(4)), want);
    let want = "unroll: `i` is not an axis of `C`; its axes are `r`";
    refused(&mut s, |s| s.unroll(&c, &i), want);
    let j = compute(&[Expr::int(3)], "D", |_| Expr::int(0)).expect("a tensor");
    refused(&mut s, |s| s.compute_root(&j), "there is no stage `D`; the stages are `B`, `C`");
}

#[test]
fn te_fault_c8_threads_and_lanes_on_reduce_axes() {
    let Fixture { mut s, b, i, k, .. } = fixture();
    let want = "parallel takes a data axis of `B`, and `k` is a reduce axis; legal are `i`";
    refused(&mut s, |s| s.parallel(&b, &k), want);
    let want = "vectorize takes a data axis of `B`, and `k` is a reduce axis; legal are `i`";
    refused(&mut s, |s| s.vectorize(&b, &k), want);
    let want = "pragma takes a data axis of `B`, and `k` is a reduce axis; legal are `i`";
    refused(&mut s, |s| s.pragma(&b, &k, "vectorize", Attr::Int(1)), want);
    let fused = s.fuse(&b, &[i, k]).expect("a data axis fuses with a reduce axis");
    check(&s, &[&[("n", 3), ("m", 5)], &[("n", 1), ("m", 1)]]);
    let want = "parallel takes a data axis of `B`, and `i_k_fused` is a reduce axis; legal are none";
    refused(&mut s, |s| s.parallel(&b, &fused), want);
}

#[test]
fn te_c3_fuse_of_anything_but_neighbours() {
    let Fixture { mut s, b, i, k, .. } = fixture();
    let (ko, ki) = s.split(&b, &k, Split::Factor(4)).expect("k splits");
    let want = "fuse takes neighbours in loop order, and `k_inner` does not follow `i` in `B`; the order is `i`, \
                `k_outer`, `k_inner`";
    refused(&mut s, |s| s.fuse(&b, &[i.clone(), ki.clone()]), want);
    let want = "fuse takes neighbours in loop order, and `k_outer` does not follow `k_inner` in `B`; the order is \
                `i`, `k_outer`, `k_inner`";
    refused(&mut s, |s| s.fuse(&b, &[ki.clone(), ko.clone()]), want);
    let want = "fuse names `k_inner` of `B` twice; each axis stands once";
    refused(&mut s, |s| s.fuse(&b, &[ki.clone(), ki.clone()]), want);
    let want = "reorder names `i` of `B` twice; each axis stands once";
    refused(&mut s, |s| s.reorder(&b, &[i.clone(), i.clone()]), want);
    let want = "tile names `i` of `B` twice; each axis stands once";
    refused(&mut s, |s| s.tile(&b, &i, &i, 2, 2), want);
}

#[test]
fn loops_that_are_marked_already() {
    let Fixture { mut s, b, i, .. } = fixture();
    s.parallel(&b, &i).expect("parallel");
    let want = "split: `i` of `B` is parallel already; do this before, or to another axis";
    refused(&mut s, |s| s.split(&b, &i, Split::Factor(4)), want);
}

#[test]
fn te_fault_c9_a_loop_outside_of_what_its_extent_needs() {
    let n = var("n").expr();
    let a = placeholder(&[n.clone(), n.clone()], DType::F32, "A").expect("a tensor");
    let b = compute(from_ref(&n), "B", |i| {
        let k = reduce_axis(i[0].expr() + Expr::int(1), "k");
        sum(a.at((&i[0], &k)), from_ref(&k))
    })
    .expect("a triangular sum");
    let mut s = Schedule::new(from_ref(&b), &[a, b.clone()]).expect("a schedule");
    let (i, k) = (b.op().axes()[0].clone(), b.op().reduce_axes()[0].clone());
    check(&s, &[&[("n", 6)]]);
    let message = refusal(s.reorder(&b, &[k.clone(), i.clone()]));
    assert_eq!(message, "reorder: the extent of `k` of `B` depends on `i`, which is to stay outside of it");
    let message = refusal(s.fuse(&b, &[i.clone(), k.clone()]));
    assert_eq!(message, "fuse: the extent of `k` of `B` depends on `i`, which is to stay outside of it");
    let message = refusal(s.rfactor(&b, &k));
    assert_eq!(
        message,
        "rfactor of `B` by `k`: its extent depends on another axis, so the partial results have no shape; split it \
         and factor the inner axis"
    );
    s.split(&b, &i, Split::Factor(4)).expect("i splits");
    let (_, inner) = s.split(&b, &k, Split::Factor(4)).expect("k splits");
    check(&s, &[&[("n", 6)], &[("n", 1)], &[("n", 13)]]);
    s.rfactor(&b, &inner).expect("the inner part factors");
    check(&s, &[&[("n", 6)], &[("n", 1)], &[("n", 13)]]);
}

#[test]
fn outputs_stay_at_the_root() {
    let Fixture { mut s, b, c, i, .. } = fixture();
    let want = "compute_inline: `C` is an output, and outputs are computed at the root; legal are `B`";
    refused(&mut s, |s| s.compute_inline(&c), want);
    let want = "compute_at: `C` is an output, and outputs are computed at the root; legal are `B`";
    refused(&mut s, |s| s.compute_at(&c, &b, &i), want);
    let want = "set_scope: `C` is an argument and lives in global memory";
    refused(&mut s, |s| s.set_scope(&c, MemScope::Local), want);
    let want = "compute_inline takes a stage without a reduction, and `B` is a reduction";
    refused(&mut s, |s| s.compute_inline(&b), want);
    let r = c.op().axes()[0].clone();
    let want = "storage_align: `C` is an argument and the caller lays it out";
    refused(&mut s, |s| s.storage_align(&c, &r, 4, 0), want);
}

#[test]
fn an_axis_of_another_stage_that_has_the_name_of_one() {
    let Fixture { mut s, b, i, .. } = fixture();
    let other = reduce_axis(5, "k");
    let want = "split: `k` is not an axis of `B`, whose own `k` is another one; its axes are `i`, `k`";
    refused(&mut s, |s| s.split(&b, &other, Split::Factor(2)), want);
    let want = "split: `r` is not an axis of `B`; its axes are `i`, `k`";
    refused(&mut s, |s| s.split(&b, &reduce_axis(5, "r"), Split::Factor(2)), want);
    s.split(&b, &i, Split::Factor(2)).expect("its own");
}

#[test]
fn te_c9_attaching_where_nobody_reads() {
    let Fixture { mut s, b, c, i, .. } = fixture();
    let want = "compute_at: `B` is itself computed inside `B`";
    refused(&mut s, |s| s.compute_at(&b, &b, &i), want);
    let r = c.op().axes()[0].clone();
    let cached = s.cache_read(&b, MemScope::Global, &[(&c).into()]).expect("a copy");
    s.compute_at(&b, cached, &s.stage(cached).expect("a stage").axes()[0].clone()).expect("attached");
    let message = refusal(s.compute_at(cached, &b, &i));
    assert_eq!(message, "compute_at: `B` is itself computed inside `B_global`");
    s.compute_at(cached, &c, &r).expect("attached");
    check(&s, &[&[("n", 3), ("m", 5)]]);
}

#[test]
fn consumers_outside_the_loop() {
    let n = var("n").expr();
    let a = placeholder(from_ref(&n), DType::F32, "A").expect("a tensor");
    let two = Expr::float(2.0, DType::F32);
    let b = compute(from_ref(&n), "B", |i| a.at(i) * two.clone()).expect("a tensor");
    let c = compute(from_ref(&n), "C", |i| b.at(i) + two.clone()).expect("a tensor");
    let d = compute(from_ref(&n), "D", |i| b.at(i) + c.at(i)).expect("a tensor");
    let args = [a, d.clone()];
    let mut s = Schedule::new(from_ref(&d), &args).expect("a schedule");
    let i = d.op().axes()[0].clone();
    s.compute_at(&b, &d, &i).expect("one of its readers");
    let message = refusal(build_nest(&s, &args, "main"));
    assert_eq!(
        message,
        "compute_at: `C` reads `B` outside the loop `i` of `D`; legal parents hold all of `C`, `D`"
    );
    s.compute_at(&c, &d, &i).expect("attached");
    check(&s, &[&[("n", 5)]]);
    let message =
        refusal(s.compute_at(&b, &c, &c.op().axes()[0].clone()).and_then(|()| build_nest(&s, &args, "main")));
    assert_eq!(
        message,
        "compute_at: `D` reads `B` outside the loop `i` of `C`; legal parents hold all of `C`, `D`"
    );
}

#[test]
fn factoring_what_cannot_be_factored() {
    let Fixture { mut s, b, c, i, k } = fixture();
    let want = "rfactor takes a reduce axis of `B`, and `i` is a data axis; legal are `k`";
    refused(&mut s, |s| s.rfactor(&b, &i), want);
    let r = c.op().axes()[0].clone();
    let want = "rfactor takes a reduction, and `C` is no reduction";
    refused(&mut s, |s| s.rfactor(&c, &r), want);
    for (found, legal) in [(-3, false), (-2, true), (1, true), (2, false)] {
        let mut copy = s.clone();
        let result = copy.rfactor_at(&b, &k, found);
        if legal {
            result.expect("a legal position");
            check(&copy, &[&[("n", 3), ("m", 5)]]);
        } else {
            let want = format!("rfactor of `B` takes a factor_axis from -2 to 1, got {found}");
            assert_eq!(refusal(result), want);
        }
    }
    let (_, ki) = s.split(&b, &k, Split::Factor(2)).expect("k splits");
    let leaves = s.stage(&b).expect("a stage").leaves().to_vec();
    s.fuse(&b, &[leaves[0].clone(), leaves[1].clone()]).expect("i and k_outer fuse");
    let want = "rfactor of `B` by `k_inner`: it is fused with a data axis; fuse after factoring";
    refused(&mut s, |s| s.rfactor(&b, &ki), want);
}

#[test]
fn te_fault_c12_factoring_a_reducer_without_the_laws() {
    let n = var("n").expr();
    let a = placeholder(from_ref(&n), DType::F32, "A").expect("a tensor");
    let minus = comm_reducer(
        |x, y| vec![x[0].clone() - y[0].clone()],
        |types| vec![Expr::constant(0, types[0])],
        "minus",
    )
    .claims(Claims { associative: false, commutative: false, idempotent: false });
    let k = reduce_axis(n, "k");
    let b = compute(&[], "B", |_| minus.reduce(vec![a.at([&k])], from_ref(&k))).expect("a tensor");
    let mut s = Schedule::new(from_ref(&b), &[a, b.clone()]).expect("a schedule");
    let message = refusal(s.rfactor(&b, &k));
    assert_eq!(
        message,
        "rfactor of `B` changes the order of the fold, and its reducer `minus` does not claim to be associative and \
         commutative"
    );
    check(&s, &[&[("n", 5)]]);
}

#[test]
fn rewriting_a_stage_that_holds_others() {
    let Fixture { mut s, b, c, .. } = fixture();
    let r = c.op().axes()[0].clone();
    s.compute_at(&b, &c, &r).expect("attached");
    let want = "cache_write: `B` is computed at axes of `C`, which this replaces; do this first";
    refused(&mut s, |s| s.cache_write(&c, MemScope::Local), want);
}

#[test]
fn cache_write_after_the_reduce_axis_is_split() {
    let Fixture { mut s, b, k, .. } = fixture();
    s.split(&b, &k, Split::Factor(4)).expect("k splits");
    let want = "cache_write: the reduce axis `k` of `B` is scheduled already; do this first";
    refused(&mut s, |s| s.cache_write(&b, MemScope::Local), want);
}

#[test]
fn cache_read_for_somebody_who_does_not_read() {
    let Fixture { mut s, b, .. } = fixture();
    let want = "cache_read: `B` does not read `B`; its readers are `C`";
    refused(&mut s, |s| s.cache_read(&b, MemScope::Local, &[(&b).into()]), want);
    let want = "cache_read of `B` takes at least one reader, got none; its readers are `C`";
    refused(&mut s, |s| s.cache_read(&b, MemScope::Local, &[]), want);
    let other = placeholder(&[Expr::int(3)], DType::F32, "X").expect("a tensor");
    let want = "cache_read: `X` is no tensor of this program";
    refused(&mut s, |s| s.cache_read(&other, MemScope::Local, &[(&b).into()]), want);
}

#[test]
fn vector_and_unrolled_loops_of_unknown_extent() {
    let Fixture { s, c, .. } = fixture();
    let r = c.op().axes()[0].clone();
    for (kind, want) in [
        (
            "vectorize",
            "`r` of `C` is vectorized, which takes a constant extent, and its extent is n; split it",
        ),
        ("unroll", "`r` of `C` is unrolled, which takes a constant extent, and its extent is n; split it"),
    ] {
        let mut s = s.clone();
        s.pragma(&c, &r, kind, Attr::Int(1)).expect("marked");
        assert_eq!(refusal(build_nest(&s, s.program().args(), "main")), want);
    }
}

#[test]
fn a_stage_inside_a_vector_loop() {
    let Fixture { mut s, b, c, .. } = fixture();
    let r = c.op().axes()[0].clone();
    let (_, lane) = s.split(&c, &r, Split::Factor(4)).expect("r splits");
    s.vectorize(&c, &lane).expect("lanes");
    s.compute_at(&b, &c, &lane).expect("attached");
    let want = "`B` is computed inside `r_inner` of `C`, which is vectorized; attach it outside of that loop";
    assert_eq!(refusal(build_nest(&s, s.program().args(), "main")), want);
}

#[test]
fn te_fault_c2_start_values_stay_inside_an_argument_that_is_attached() {
    let (n, m) = (var("n").expr(), var("m").expr());
    let a = placeholder(&[n.clone(), m.clone()], DType::F32, "A").expect("a tensor");
    let k = reduce_axis(m, "k");
    let b = compute(from_ref(&n), "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).expect("a tensor");
    let c = compute_axes(from_ref(&n), &["r"], "C", |i| b.at([&i[0]])).expect("a tensor");
    let args = [a, b.clone(), c.clone()];
    let mut s = Schedule::new(from_ref(&c), &args).expect("a schedule");
    let (outer, _) = s.split(&c, &c.op().axes()[0].clone(), Split::Factor(8)).expect("r splits");
    s.compute_at(&b, &c, &outer).expect("attached");
    check(&s, &[&[("n", 5), ("m", 3)], &[("n", 8), ("m", 3)], &[("n", 13), ("m", 0)]]);
}

#[test]
fn steps_that_are_written_wrong() {
    let Fixture { mut s, .. } = fixture();
    let step = |object: Option<&str>, name: &str, args: Vec<Arg>, options: Vec<(&str, Arg)>| {
        let options = options.into_iter().map(|(n, a)| (n.to_owned(), a)).collect();
        Step::new(Vec::new(), object.map(str::to_owned), name, args, options)
    };
    let k = || Arg::Name("k".to_owned());
    let names: Vec<&str> = coulis_schedule::PRIMITIVES.iter().map(|entry| entry.name).collect();
    let every = format!("there is no primitive `skew`; the primitives are {}", names.join(", "));
    for (call, want) in [
        (
            step(Some("B"), "split", vec![k()], vec![]),
            "split is called as `s[B].split(axis, factor=None, nparts=None, overlap=False)`, and neither factor nor nparts is \
             given; one is needed",
        ),
        (
            step(Some("B"), "split", vec![k()], vec![("factor", Arg::Int(2)), ("nparts", Arg::Int(2))]),
            "split is called as `s[B].split(axis, factor=None, nparts=None, overlap=False)`, and both factor and nparts are given; \
             one is needed",
        ),
        (
            step(Some("B"), "split", vec![k()], vec![("parts", Arg::Int(2))]),
            "split is called as `s[B].split(axis, factor=None, nparts=None, overlap=False)`, and `parts` is no option of it",
        ),
        (
            step(Some("B"), "unroll", vec![Arg::Int(3)], vec![]),
            "unroll is called as `s[B].unroll(axis)`, and `axis` is to be an axis, got 3",
        ),
        (
            step(None, "unroll", vec![k()], vec![]),
            "unroll is called as `s[B].unroll(axis)`, and it is called on a stage",
        ),
        (
            step(Some("B"), "unroll", vec![k(), k()], vec![]),
            "unroll is called as `s[B].unroll(axis)`, and 2 arguments were given",
        ),
        (
            step(Some("B"), "set_scope", vec![Arg::Str("shard".to_owned())], vec![]),
            "there is no scope `shard`; the scopes are `global`, `shared`, `shared.dyn`, `local`",
        ),
        (step(Some("B"), "skew", vec![k()], vec![]), &every),
        (step(Some("X"), "unroll", vec![k()], vec![]), "there is no stage `X`; the stages are `B`, `C`"),
        (
            step(Some("B"), "unroll", vec![Arg::Name("z".to_owned())], vec![]),
            "unroll: `z` is not an axis of `B`; its axes are `i`, `k`",
        ),
    ] {
        refused(&mut s, |s| s.apply(call), want);
    }
}

#[test]
fn values_that_mean_nothing() {
    let n = Expr::int(8);
    let a = placeholder(&[n.clone(), n.clone()], DType::F32, "A").expect("a tensor");
    let b = compute(&[n.clone(), n.clone()], "B", |i| a.at(i)).expect("a tensor");
    let c = compute(&[n.clone(), n], "C", |i| b.at(i)).expect("a tensor");
    let mut s = Schedule::new(from_ref(&c), &[a, c.clone()]).expect("a schedule");
    let axes = b.op().axes().to_vec();
    let mut refuse = |call: &mut dyn FnMut(&mut Schedule) -> Result<(), ScheduleError>, want: &str| {
        refused(&mut s, |s| call(s), want);
    };
    refuse(
        &mut |s| s.storage_align(&b, &axes[0], 0, 0),
        "storage_align of `B`: factor is to be at least 1, got 0",
    );
    refuse(
        &mut |s| s.storage_align(&b, &axes[0], 4, 4),
        "storage_align of `B`: offset is to be from 0 to less than factor, got 4",
    );
    let wanted = "factor is to be such that the padded extent fits its type and the bytes are counted";
    for (factor, offset) in [(1 << 31, 1), (1 << 31, 7), (i64::MAX, i64::MAX - 1)] {
        refuse(
            &mut |s| s.storage_align(&b, &axes[0], factor, offset),
            &format!("storage_align of `B`: {wanted}, got {factor}"),
        );
    }
    refuse(
        &mut |s| s.storage_align(&b, &axes[1], 4, 1),
        "storage_align of any dimension but the last but one is not supported yet",
    );
    refuse(
        &mut |s| s.pragma(&b, &axes[0], "two words", Attr::Int(1)),
        "pragma of `B`: key is to be a word of letters, digits and `_`, got `two words`",
    );
}

#[test]
fn sizes_that_no_argument_tells() {
    let m = var("m").expr();
    let wide = m.clone() * Expr::int(2);
    let a = placeholder(from_ref(&wide), DType::F32, "A").expect("a tensor");
    let k = reduce_axis_of(Expr::int(0), m, "k");
    let b = compute(&[], "B", |_| sum(a.at([&k]), from_ref(&k))).expect("a tensor");
    let args = [a, b.clone()];
    let s = Schedule::new(from_ref(&b), &args).expect("a schedule");
    let message = refusal(build_nest(&s, &args, "main"));
    assert_eq!(message, "`m` is used in `main` and no argument's shape or stride determines it");
}

#[test]
fn runs_of_what_has_none_or_of_other_loops() {
    let Fixture { mut s, b, c, k, .. } = fixture();
    let r = c.op().axes()[0].clone();
    refused(&mut s, |s| s.in_runs(&c, &r), "in_runs takes a reduction, and `C` is no reduction");
    refused(&mut s, |s| s.from_first(&c), "from_first takes a reduction, and `C` is no reduction");
    let want = "clamp of `B`: stage is to be one that is attached in a loop of another, got one that is not";
    refused(&mut s, |s| s.clamp(&b), want);
    let want = "in_runs takes a reducer with a quick step, and `B` is one without";
    refused(&mut s, |s| s.in_runs(&b, &k), want);
    let n = var("n").expr();
    let a = placeholder(&[n.clone(), Expr::int(64), Expr::int(8)], DType::F16, "A").expect("a tensor");
    let (k, l) = (reduce_axis(Expr::int(64), "k"), reduce_axis(Expr::int(8), "l"));
    let sum = coulis_reducers::find("sum").expect("a reducer");
    let sum = sum.build(&coulis_reducers::ReducerRequest::new(&[DType::F16])).expect("built");
    let d = compute(from_ref(&n), "D", |i| {
        let at = a.at((&i[0], &k, &l));
        coulis_tensor::reduce_at(&sum, &[at], k.expr() * Expr::int(8) + l.expr(), &[k.clone(), l.clone()])
    });
    let d = d.expect("a tensor");
    let mut s = Schedule::new(from_ref(&d), &[a, d.clone()]).expect("a schedule");
    let legal = "a reduce loop that with those in it has a constant number of steps, up to the longest run of the reducer";
    let found = refusal(s.in_runs(&d, &k));
    let why = "512 steps, where the longest run is 16";
    assert_eq!(found, format!("in_runs of `D`: axis is to be {legal}, got {why}"));
    let (_, ki) = s.split(&d, &k, Split::Factor(4)).expect("k splits");
    let found = refusal(s.in_runs(&d, &ki));
    let why = "32 steps, where the longest run is 16";
    assert_eq!(found, format!("in_runs of `D`: axis is to be {legal}, got {why}"));
    let (_, few) = s.split(&d, &ki, Split::Factor(2)).expect("k splits again");
    s.in_runs(&d, &few).expect("2 times 8 steps are a run");
    check(&s, &[&[("n", 3)]]);
    let i = d.op().axes()[0].clone();
    assert!(s.in_runs(&d, &i).is_err(), "{i:?} is no reduce axis");
    s.in_runs(&d, &l).expect("8 steps are a run");
    check(&s, &[&[("n", 3)]]);
    let found = refusal(s.in_runs_of_chains(&d, &l, Some(&few)));
    let why = "for chains no reduce loop in it";
    assert_eq!(found, format!("in_runs of `D`: axis is to be {legal}, got {why}"));
}
