//! Scenarios T-E1 to T-S2: what tensor expressions mean and look like. Those of refusals are in `coulis-tensor`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/everywhere.rs"]
mod everywhere;

use std::slice::from_ref;

use coulis::te::{
    Body, Expr, comm_reducer, compute, compute_tuple, prod, reduce_axis, reduce_axis_of, sum, var_of,
};
use coulis::{DType, text};
use coulis_ir::eval::Value;
use coulis_ir::print::print_kernel;
use everywhere::{
    c, count, f, flat_text, input, n, nest, nest_text, realized, reference, run_everywhere, schedule, small,
};

#[test]
fn te_e1_an_outer_product_of_two_symbolic_matrices() {
    let (m, k, l) = (n("m"), n("k"), n("l"));
    let a = input(&[m.clone(), l.clone()], DType::F32, "A");
    let b = input(&[k.clone(), l.clone()], DType::F32, "B");
    let t = compute(&[m.clone(), k.clone(), l.clone()], "T", |i| a.at((&i[0], &i[2])) * b.at((&i[1], &i[2])))
        .unwrap();
    assert_eq!(t.shape(), [m, k, l]);
    assert_eq!(t, t.op().tensor(0).unwrap());
    assert_ne!(t, compute(&[c(1)], "T", |_| c(0)).unwrap());
    let one = compute(&[], "One", |_| t.at((0, 0, 0)).cast(DType::I32)).unwrap();
    assert_eq!((one.dtype(), one.shape().len()), (DType::I32, 0));
    let s = schedule(&[t, one], &[a, b]);
    run_everywhere(&s, &[&[("m", 3), ("k", 4), ("l", 5)], &[("m", 1), ("k", 1), ("l", 1)]]);
}

#[test]
fn te_e2_a_sum_with_a_scale_of_rank_0_has_rank_0() {
    let m = n("m");
    let a = input(from_ref(&m), DType::F32, "A");
    let scale = input(&[], DType::F32, "s");
    let k = reduce_axis(m, "k");
    let t = compute(&[], "C", |_| sum(a.at([&k]) * scale.at(()), from_ref(&k))).unwrap();
    assert_eq!(t.shape(), []);
    run_everywhere(&schedule(&[t], &[a, scale]), &[&[("m", 7)], &[("m", 0)], &[("m", 1)]]);
}

#[test]
fn te_e3_two_axes_are_given_as_an_array_or_as_a_list() {
    let (m, l) = (n("m"), n("l"));
    let a = input(&[m.clone(), l.clone()], DType::F32, "A");
    let axes = || [reduce_axis(m.clone(), "k1"), reduce_axis(l.clone(), "k2")];
    let (x, y) = (axes(), axes());
    let b = compute(&[], "B", |_| sum(a.at((&x[0], &x[1])), &[x[0].clone(), x[1].clone()])).unwrap();
    let list = y.to_vec();
    let d = compute(&[], "D", |_| sum(a.at((&y[0], &y[1])), &list)).unwrap();
    run_everywhere(&schedule(&[b, d], &[a]), &[&[("m", 3), ("l", 4)], &[("m", 0), ("l", 4)]]);
}

#[test]
fn te_e4_a_users_sum_folds_an_axis_and_plain_scalars() {
    let m = n("m");
    let mysum = comm_reducer(
        |x, y| vec![x[0].clone() + y[0].clone()],
        |types| vec![Expr::constant(0, types[0])],
        "mysum",
    );
    let a = input(&[m.clone(), m.clone()], DType::F32, "A");
    let k = reduce_axis(m.clone(), "k");
    let b = compute(from_ref(&m), "B", |i| mysum.reduce(vec![a.at((&i[0], &k))], from_ref(&k))).unwrap();
    assert!(matches!(b.op().kind(), coulis::te::OpKind::Compute { body: Body::Reduce(_), .. }));
    assert_eq!(mysum.fold(f(1.0), f(2.0)), [f(1.0) + f(2.0)]);
    run_everywhere(&schedule(&[b], &[a]), &[&[("m", 5)], &[("m", 1)]]);
}

#[test]
fn te_e5_a_shifted_read_is_folded_and_its_text_reads_back_the_same() {
    let (m, l) = (n("m"), n("l"));
    let a = input(&[m.clone(), l.clone()], DType::F32, "A");
    let k = reduce_axis(l - c(1), "rv");
    let b = compute(from_ref(&m), "B", |i| sum(a.at((&i[0], k.expr() + c(1))), from_ref(&k))).unwrap();
    let s = schedule(&[b], &[a]);
    let kernel = nest(&s);
    let first = print_kernel(&kernel);
    let read = coulis_script::parse_module(&first).unwrap();
    assert_eq!(read, [kernel]);
    assert_eq!(print_kernel(&read[0]), first);
    let again = coulis::te::Schedule::replay(s.program(), s.trace().steps()).unwrap();
    assert_eq!(nest_text(&again), nest_text(&s));
    run_everywhere(&s, &[&[("m", 3), ("l", 4)], &[("m", 2), ("l", 1)]]);
    assert!(!text::compile(&first, &coulis::CompileOptions::default()).unwrap().is_empty());
}

#[test]
fn te_e6_a_tuple_of_sums_with_a_condition_has_two_outputs() {
    let m = n("m");
    let a = input(&[m.clone(), c(9)], DType::I32, "A");
    let pair = comm_reducer(
        |x, y| (0..2).map(|i| x[i].clone() + y[i].clone()).collect(),
        |types| types.iter().map(|t| Expr::constant(0, *t)).collect(),
        "pair",
    );
    let k = reduce_axis(9, "k");
    let both = compute_tuple(from_ref(&m), "B", |i| {
        let x = a.at((&i[0], &k));
        pair.reduce(vec![x.clone(), x * c(2)], from_ref(&k))?.where_(k.expr().floormod(c(2)).equal(c(0)))
    })
    .unwrap();
    assert_eq!(both.len(), 2);
    run_everywhere(&schedule(&both, &[a]), &[&[("m", 5)], &[("m", 1)]]);
}

#[test]
fn te_e7_a_tuple_attached_for_the_consumer_of_one_component_is_realized_whole() {
    let m = n("m");
    let a = input(&[m.clone(), c(4)], DType::F32, "A");
    let t = compute_tuple(&[m.clone(), c(4)], "T", |i| {
        vec![a.at((&i[0], &i[1])) * f(2.0), a.at((&i[0], &i[1])) * f(3.0)]
    })
    .unwrap();
    let d = compute(&[m, c(4)], "D", |i| t[0].at(i) + f(1.0)).unwrap();
    let mut s = schedule(from_ref(&d), &[a]);
    let row = d.op().axes()[0].clone();
    s.compute_at("T", "D", &row).unwrap();
    let text = nest_text(&s);
    assert_eq!(
        (realized(&s, "T.v0"), realized(&s, "T.v1")),
        (vec!["1".into(), "4".into()], vec!["1".into(), "4".into()]),
        "{text}"
    );
    run_everywhere(&s, &[&[("m", 3)], &[("m", 1)]]);
}

#[test]
fn te_e9_names_are_made_unique_and_any_body_is_accepted() {
    let m = n("m");
    let a = input(from_ref(&m), DType::F32, "A");
    let at = input(from_ref(&m), DType::I32, "P");
    let first = compute(from_ref(&m), "B", |i| a.at(i) + f(1.0)).unwrap();
    let second = compute(from_ref(&m), "B", |i| first.at(i) * f(2.0)).unwrap();
    let constant = compute(from_ref(&m), "K", |_| f(7.0)).unwrap();
    let scalar = compute(&[], "S", |_| f(1.0) + f(2.0)).unwrap();
    let sum_ = compute(&[], "R", |_| scalar.at(()) + f(1.0)).unwrap();
    // A place that comes from data.
    let taken = compute(from_ref(&m), "G", |i| {
        let index = at.at(i).floormod(m.clone());
        a.at([index])
    })
    .unwrap();
    let s = schedule(&[second, constant, sum_, taken], &[a, at]);
    let text = print_kernel(&nest(&s));
    let read = coulis_script::parse_module(&text).unwrap();
    assert_eq!(print_kernel(&read[0]), text, "names are unique");
    assert!(text.contains("B_1"), "{text}");
    run_everywhere(&s, &[&[("m", 5)], &[("m", 1)]]);
}

#[test]
fn te_e10_a_tuple_update_is_computed_before_it_is_stored() {
    // The value first: its store would be read by the next component's update.
    for value in [0, 1] {
        let place = 1 - value;
        let m = n("m");
        let a = input(&[m.clone(), c(6)], DType::F32, "A");
        let argmax = comm_reducer(
            move |x, y| {
                let keep = x[value].clone().ge(y[value].clone());
                (0..2).map(|i| Expr::select(keep.clone(), x[i].clone(), y[i].clone())).collect()
            },
            |types| {
                let least = |t: &DType| match t.is_float() {
                    true => Expr::float(f64::NEG_INFINITY, *t),
                    false => Expr::constant(-1, *t),
                };
                types.iter().map(least).collect()
            },
            "argmax",
        );
        let k = reduce_axis(6, "k");
        let both = compute_tuple(from_ref(&m), "B", |i| {
            let mut sources = vec![k.expr(), k.expr()];
            sources[value] = a.at((&i[0], &k));
            argmax.reduce(sources, from_ref(&k))
        })
        .unwrap();
        let s = schedule(&both, &[a]);
        let text = nest_text(&s);
        let update = text.split("for k in").nth(1).unwrap();
        let at = |part: &str| update.find(part).unwrap_or_else(|| panic!("no `{part}` in\n{text}"));
        if value == 0 {
            let named = at(": T.int32 = ");
            assert!(named < at("B_v0[i] = "), "the name comes before the first store:\n{text}");
        } else {
            assert!(at(&format!("B_v{place}[i] = ")) < at(&format!("B_v{value}[i] = ")), "{text}");
        }
        run_everywhere(&s, &[&[("m", 4)]]);
    }
}

#[test]
fn te_e11_a_matrix_product_with_indices_of_32_and_of_64_bits() {
    for dtype in [DType::I32, DType::I64] {
        let size = |name: &str| var_of(name, dtype).expr();
        let (m, k, l) = (size("m"), size("k"), size("l"));
        let a = input(&[m.clone(), k.clone()], DType::F32, "A");
        let b = input(&[k.clone(), l.clone()], DType::F32, "B");
        let r = reduce_axis(k, "k");
        let t = compute(&[m, l], "C", |i| sum(a.at((&i[0], &r)) * b.at((&r, &i[1])), from_ref(&r))).unwrap();
        assert!(t.op().axes().iter().chain(t.op().reduce_axes()).all(|axis| axis.dtype() == dtype));
        let s = schedule(&[t], &[a, b]);
        let text = nest_text(&s);
        assert_eq!(count(&text, "C[i, j] = "), 2, "start and update:\n{text}");
        run_everywhere(&s, &[&[("m", 4), ("k", 5), ("l", 3)], &[("m", 1), ("k", 0), ("l", 2)]]);
    }
}

#[test]
fn te_s1_combiners_are_simplified_and_tuples_of_which_one_component_is_used_are_right() {
    let m = n("m");
    let a = input(&[m.clone(), c(5)], DType::I32, "A");
    // A choice in the combiner whose condition a data axis decides: `i >= 0`.
    let k = reduce_axis(5, "k");
    let b = compute(from_ref(&m), "B", |i| {
        let row = i[0].expr();
        let odd = comm_reducer(
            move |x, y| {
                let both = x[0].clone() + y[0].clone();
                vec![Expr::select(row.clone().ge(Expr::int(0)), both.clone(), both * Expr::int(3))]
            },
            |_| vec![Expr::int(0)],
            "odd",
        );
        odd.reduce(vec![a.at((&i[0], &k))], from_ref(&k))
    })
    .unwrap();
    let s = schedule(&[b], from_ref(&a));
    let text = flat_text(&s);
    assert_eq!(count(&text, "T.Select") + count(&text, "T.if_then_else"), 0, "{text}");
    run_everywhere(&s, &[&[("m", 4)]]);
    // Sum and product of which only one is read, and five sums of which the third is.
    let fold = |arity: usize| {
        comm_reducer(
            move |x, y| {
                let of =
                    |i: usize| if i == 1 { x[i].clone() * y[i].clone() } else { x[i].clone() + y[i].clone() };
                (0..arity).map(of).collect()
            },
            move |_| (0..arity).map(|i| Expr::int(i32::from(i == 1))).collect(),
            "fold",
        )
    };
    for (arity, used) in [(2, 0), (2, 1), (5, 2)] {
        let k = reduce_axis(5, "k");
        let all = compute_tuple(from_ref(&m), "T", |i| {
            fold(arity).reduce((0..arity).map(|j| a.at((&i[0], &k)) + c(j as i32)).collect(), from_ref(&k))
        })
        .unwrap();
        let d = compute(from_ref(&m), "D", |i| all[used].at(i) * c(2)).unwrap();
        run_everywhere(&schedule(&[d], from_ref(&a)), &[&[("m", 4)], &[("m", 1)]]);
    }
}

#[test]
fn te_s2_reductions_that_are_less_than_they_look() {
    let a = input(&[c(4)], DType::I32, "A");
    let k = reduce_axis(4, "k");
    // Always true inside the source: k + j.
    let b = compute(&[c(3)], "B", |j| {
        let both = k.expr() + j[0].expr();
        sum(Expr::select(k.expr().ge(c(0)), both, c(100)), from_ref(&k))
    })
    .unwrap();
    let s = schedule(&[b], &[]);
    let text = flat_text(&s);
    assert_eq!(count(&text, "T.Select"), 0, "{text}");
    run_everywhere(&s, &[&[]]);
    // No axis: the source itself; with a false condition, the start.
    let d = compute(&[c(4)], "D", |i| sum(a.at(i), &[])).unwrap();
    let e =
        compute(&[c(4)], "E", |i| sum(a.at(i), &[])?.where_(Expr::bool(false))?.init(vec![c(9)])).unwrap();
    let s = schedule(&[d, e.clone()], &[a]);
    run_everywhere(&s, &[&[]]);
    assert_eq!(reference(&s, &[], &small)[2].data, [Value::Int(9); 4]);
    // k // 10 for k < 10 is 0 everywhere.
    let k = reduce_axis(10, "k");
    let z = compute(&[], "Z", |_| sum(k.expr().floordiv(c(10)), from_ref(&k))).unwrap();
    let s = schedule(&[z], &[]);
    assert_eq!(count(&flat_text(&s), "// 10"), 0, "{}", flat_text(&s));
    run_everywhere(&s, &[&[]]);
    assert_eq!(reference(&s, &[], &small)[0].data, [Value::Int(0)]);
    // A start of an axis, and the product of what it takes.
    let k = reduce_axis_of(1, 4, "k");
    let p = compute(&[], "P", |_| prod(k.expr(), from_ref(&k))).unwrap();
    let s = schedule(&[p], &[]);
    run_everywhere(&s, &[&[]]);
    assert_eq!(reference(&s, &[], &small)[0].data, [Value::Int(24)]);
}
