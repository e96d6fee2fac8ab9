//! Scenarios T-N1 to T-N10: programs that compute, on the devices of a CPU, and with their stages on threads.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/everywhere.rs"]
mod everywhere;

use std::slice::from_ref;

use coulis::DType;
use coulis::te::{
    Expr, Intrinsic, IterVar, MemScope, Reduction, Schedule, Split, Tensor, TensorError, all, any,
    comm_reducer, compute, compute_tuple, max, min, prod, reduce_axis, sum,
};
use coulis_ir::Attr;
use coulis_ir::eval::Value;
use everywhere::{
    Tolerance, argmax_of, c, f, input, leaf, n, nest_text, number, realized, reference, run_as_scheduled,
    run_everywhere, run_everywhere_with, schedule, small,
};

#[test]
fn te_n1_a_sum_that_starts_at_a_constant() {
    let a = input(&[c(1027)], DType::F32, "A");
    let k = reduce_axis(1027, "k");
    let b = compute(&[], "B", |_| sum(a.at([&k]), from_ref(&k))?.init(vec![f(10.0)])).unwrap();
    let s = schedule(&[b], &[a]);
    run_everywhere(&s, &[&[]]);
    let sums = reference(&s, &[], &small);
    let plain: f64 = sums[0].data.iter().map(|v| v.as_f64()).sum();
    assert_eq!(sums[1].data, [Value::Float(plain + 10.0)]);
    let mut s = s;
    let k = leaf(&s, "B", 0);
    let (_, inner) = s.split("B", &k, Split::Factor(16)).unwrap();
    s.rfactor("B", &inner).unwrap();
    run_everywhere(&s, &[&[]]);
}

#[test]
fn te_n1_sums_in_a_tuple_are_folded_wide_as_one_alone_is() {
    // In float16 itself, ones stop adding up at 2048; the largest is selected, and reads the sum as the program types it.
    let a = input(&[c(2), c(5000)], DType::F16, "A");
    let k = reduce_axis(5000, "k");
    let summed = comm_reducer(
        |x, y| vec![x[0].clone() + y[0].clone(), x[1].clone().max(y[1].clone())],
        |types| vec![Expr::float(0.0, types[0]), Expr::float(f64::NEG_INFINITY, types[1])],
        "summax",
    );
    let both = compute_tuple(from_ref(&c(2)), "B", |i| {
        let element = a.at((&i[0], &k));
        summed.reduce(vec![element.clone(), element], from_ref(&k))
    })
    .unwrap();
    let ones = |_: usize, _: usize, dtype| number(1, dtype);
    let made = || schedule(&both, from_ref(&a));
    assert_eq!(reference(&made(), &[], &ones)[1].data, [Value::Float(5000.0); 2]);
    run_everywhere_with(&made(), &[&[]], &ones, Tolerance::Exact);
    let mut s = made();
    let k = leaf(&s, "B", 1);
    let (_, inner) = s.split("B", &k, Split::Factor(16)).unwrap();
    s.rfactor("B", &inner).unwrap();
    run_everywhere_with(&s, &[&[]], &ones, Tolerance::Exact);
}

#[test]
fn te_n2_a_matrix_product_that_starts_at_a_tensor() {
    let m = n("m");
    let shape = [m.clone(), m.clone()];
    let (a, b, start) =
        (input(&shape, DType::F32, "A"), input(&shape, DType::F32, "C"), input(&shape, DType::F32, "I"));
    let k = reduce_axis(m, "k");
    let t = compute(&shape, "T", |i| {
        sum(a.at((&i[0], &k)) * b.at((&k, &i[1])), from_ref(&k))?.init(vec![start.at(i)])
    })
    .unwrap();
    let mut s = schedule(&[t], &[a, b, start]);
    run_everywhere(&s, &[&[("m", 27)], &[("m", 1)], &[("m", 0)]]);
    let k = leaf(&s, "T", 2);
    let (_, inner) = s.split("T", &k, Split::Factor(4)).unwrap();
    s.rfactor("T", &inner).unwrap();
    run_everywhere(&s, &[&[("m", 27)], &[("m", 1)], &[("m", 0)]]);
}

#[test]
fn te_n3_a_sum_factored_over_parts_that_run_in_parallel() {
    for position in [0, -1] {
        let a = input(&[c(1027)], DType::F32, "A");
        let k = reduce_axis(1027, "k");
        let b = compute(&[], "B", |_| sum(a.at([&k]), from_ref(&k))).unwrap();
        let mut s = schedule(&[b], &[a]);
        let k = leaf(&s, "B", 0);
        let (outer, _) = s.split("B", &k, Split::Nparts(4)).unwrap();
        s.rfactor_at("B", &outer, position).unwrap();
        assert_eq!(realized(&s, "B.rf"), ["4"]);
        run_everywhere(&s, &[&[]]);
        let part = leaf(&s, "B_rf", 0);
        s.parallel("B_rf", &part).unwrap();
        run_everywhere(&s, &[&[]]);
    }
}

#[test]
fn te_n4_the_first_place_of_the_largest_of_each_row() {
    let (m, l) = (n("m"), n("l"));
    let a = input(&[m.clone(), l.clone()], DType::F32, "A");
    let both = argmax_of(&a, 1, "T");
    let mut s = schedule(&both, &[a]);
    let sizes: &[&[(&str, i64)]] = &[&[("m", 12), ("l", 16)], &[("m", 3), ("l", 1)]];
    run_everywhere(&s, sizes);
    let values = reference(&s, sizes[0], &small);
    for row in 0..12 {
        let of_row = &values[0].data[row * 16..(row + 1) * 16];
        let best = of_row.iter().map(|v| v.as_f64()).fold(f64::NEG_INFINITY, f64::max);
        let first = of_row.iter().position(|v| v.as_f64() == best).unwrap();
        assert_eq!(values[1].data[row], Value::Int(first as i128));
    }
    let k = leaf(&s, "T", 1);
    let (_, inner) = s.split("T", &k, Split::Factor(4)).unwrap();
    s.rfactor("T", &inner).unwrap();
    run_everywhere(&s, sizes);
}

#[test]
fn te_n5_a_sum_of_rank_0_and_a_sum_with_it() {
    let a = input(&[c(64)], DType::F32, "A");
    let scale = input(&[], DType::F32, "s");
    let k = reduce_axis(64, "k");
    let t = compute(&[], "C", |_| sum(a.at([&k]) * scale.at(()), from_ref(&k))).unwrap();
    let d = compute(&[], "D", |_| t.at(()) + f(1.0)).unwrap();
    // The executor looks at each access.
    run_everywhere(&schedule(&[d], &[a, scale]), &[&[]]);
}

#[test]
fn te_n6_a_sum_that_feeds_other_stages() {
    let (m, l) = (n("m"), n("l"));
    let a = input(&[m.clone(), l.clone()], DType::F32, "A");
    let k = reduce_axis(l, "k");
    let b = compute(from_ref(&m), "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).unwrap();
    let d = compute(from_ref(&m), "D", |i| b.at(i) * f(2.0)).unwrap();
    let e = compute(from_ref(&m), "E", |i| d.at(i) + b.at(i)).unwrap();
    run_everywhere(&schedule(&[e], &[a]), &[&[("m", 5), ("l", 7)], &[("m", 1), ("l", 0)]]);
}

/// How elements of a row become a result: the reduction of a catalogue row of the reference's library.
type Fold = fn(Expr, &[IterVar]) -> Result<Reduction, TensorError>;

/// `fold` over some axes of a tensor of that shape, with the kept axes as the result's, or extent 1 for reduced ones.
fn library(shape: &[i32], axes: &[usize], keepdims: bool, dtype: DType, map: bool, fold: Fold) -> Schedule {
    let extents: Vec<Expr> = shape.iter().map(|e| c(*e)).collect();
    let a = input(&extents, dtype, "A");
    let mapped = if map {
        let root = |x: Expr| Expr::call1(Intrinsic::Sqrt, Expr::call1(Intrinsic::Exp, x));
        compute(&extents, "M", |i| root(a.at(i))).unwrap()
    } else {
        compute(&extents, "M", |i| a.at(i)).unwrap()
    };
    let folded: Vec<IterVar> = axes.iter().map(|at| reduce_axis(shape[*at], &format!("k{at}"))).collect();
    let kept = |at: &usize| !axes.contains(at);
    let result: Vec<Expr> = (0..shape.len())
        .filter(|at| keepdims || kept(at))
        .map(|at| if kept(&at) { c(shape[at]) } else { c(1) })
        .collect();
    let b = compute(&result, "B", |i| {
        let mut next = i.iter();
        let mut place = Vec::new();
        for at in 0..shape.len() {
            let own = if keepdims || kept(&at) { next.next().map(coulis_ir::Var::expr) } else { None };
            let reduced = axes.iter().position(|axis| *axis == at).map(|j| folded[j].expr());
            place.push(reduced.or(own).unwrap());
        }
        fold(mapped.at(place), &folded)
    })
    .unwrap();
    schedule(&[b], &[a])
}

#[test]
fn te_n7_the_librarys_reductions_over_any_axes() {
    let shapes: [(&[i32], &[usize]); 8] = [
        (&[32], &[0]),
        (&[12, 8, 6], &[0, 1, 2]),
        (&[12, 8, 6], &[]),
        (&[12, 8, 6], &[1]),
        (&[3, 4, 5, 2], &[0, 2]),
        (&[3, 4, 5, 2], &[1, 3]),
        (&[2, 3], &[0]),
        (&[1, 7], &[1]),
    ];
    let folds: [(&str, Fold); 4] = [("sum", sum), ("prod", prod), ("min", min), ("max", max)];
    for (row, (shape, axes)) in shapes.iter().enumerate() {
        for (column, (name, fold)) in folds.iter().enumerate() {
            // Products of many small numbers stay small.
            let fill = |_: usize, at: usize, dtype: DType| match *name {
                "prod" => number(if at.is_multiple_of(5) { -1 } else { 1 }, dtype),
                _ => small(row, at, dtype),
            };
            let dtype = if (row + column).is_multiple_of(2) { DType::F32 } else { DType::F64 };
            let keepdims = row.is_multiple_of(2);
            let s = library(shape, axes, keepdims, dtype, false, *fold);
            run_everywhere_with(&s, &[&[]], &fill, Tolerance::Exact);
            if *name == "sum" {
                let s = library(shape, axes, keepdims, dtype, true, *fold);
                run_everywhere_with(&s, &[&[]], &fill, Tolerance::Relative(1e-5));
            }
        }
        for (odd, fold) in [(false, all as Fold), (true, any as Fold)] {
            let fill =
                |_: usize, at: usize, dtype: DType| number(i128::from(at.is_multiple_of(3) != odd), dtype);
            let s = library(shape, axes, false, DType::Bool, false, fold);
            run_everywhere_with(&s, &[&[]], &fill, Tolerance::Exact);
        }
    }
}

/// The place of the smallest or largest over all axes, counted row by row.
fn place(shape: [i32; 2], largest: bool) -> Schedule {
    let a = input(&[c(shape[0]), c(shape[1])], DType::F64, "A");
    let better = move |x: Expr, y: Expr| if largest { x.gt(y) } else { x.lt(y) };
    let reducer = comm_reducer(
        move |x, y| {
            let first = x[0].clone().lt(y[0].clone()).and(x[1].clone().equal(y[1].clone()));
            let keep = better(x[1].clone(), y[1].clone()).or(first);
            (0..2).map(|i| Expr::select(keep.clone(), x[i].clone(), y[i].clone())).collect()
        },
        move |types| {
            let worst = if largest { f64::NEG_INFINITY } else { f64::INFINITY };
            vec![Expr::int(i32::MAX), Expr::float(worst, types[1])]
        },
        "place",
    );
    let axes = [reduce_axis(shape[0], "k0"), reduce_axis(shape[1], "k1")];
    let both = compute_tuple(&[], "T", |_| {
        let at = axes[0].expr() * c(shape[1]) + axes[1].expr();
        reducer.reduce(vec![at, a.at((&axes[0], &axes[1]))], &axes)
    })
    .unwrap();
    schedule(&both, &[a])
}

#[test]
fn te_n7_places_of_extrema_have_the_extremum() {
    for largest in [false, true] {
        let s = place([6, 7], largest);
        run_everywhere(&s, &[&[]]);
        let values = reference(&s, &[], &small);
        let at = values[1].data[0].as_int().unwrap() as usize;
        assert_eq!(values[0].data[at], values[2].data[0]);
    }
}

#[test]
fn te_n8_one_reduction_has_two_consumers() {
    let (m, l) = (n("m"), n("l"));
    let a = input(&[m.clone(), l.clone()], DType::F32, "A");
    let k = reduce_axis(m, "k");
    let b = compute(from_ref(&l), "B", |i| sum(a.at((&k, &i[0])), from_ref(&k))).unwrap();
    let d = compute(from_ref(&l), "C", |i| b.at(i) + b.at(i)).unwrap();
    let q = compute(from_ref(&l), "D", |i| b.at(i) * b.at(i)).unwrap();
    let e = compute(from_ref(&l), "E", |i| d.at(i) + q.at(i)).unwrap();
    let s = schedule(&[e], &[a]);
    assert_eq!(everywhere::count(&everywhere::nest_text(&s), "for k in"), 1);
    run_everywhere(&s, &[&[("m", 6), ("l", 5)], &[("m", 0), ("l", 2)]]);
}

/// The sums that make a tensor of extents `from` into one that broadcasts to it, of extents `to`.
fn collapse(from: &[&str], to: &[Option<&str>]) -> (Schedule, Tensor) {
    let extents: Vec<Expr> = from.iter().map(|name| n(name)).collect();
    let a = input(&extents, DType::F32, "A");
    let lead = from.len() - to.len();
    let kept = |at: usize| at >= lead && to[at - lead].is_some();
    let folded: Vec<IterVar> = (0..from.len())
        .filter(|at| !kept(*at))
        .map(|at| reduce_axis(extents[at].clone(), &format!("k{at}")))
        .collect();
    let result: Vec<Expr> = to
        .iter()
        .enumerate()
        .map(|(at, name)| if name.is_some() { extents[lead + at].clone() } else { c(1) })
        .collect();
    let b = compute(&result, "B", |i| {
        let mut next = folded.iter();
        let place: Vec<Expr> = (0..from.len())
            .map(|at| if kept(at) { i[at - lead].expr() } else { next.next().unwrap().expr() })
            .collect();
        sum(a.at(place), &folded)
    })
    .unwrap();
    (schedule(from_ref(&b), &[a]), b)
}

#[test]
fn te_n9_sums_to_shapes_that_broadcast_to_the_input() {
    let sizes: &[&[(&str, i64)]] =
        &[&[("p", 2), ("q", 3), ("r", 4)], &[("p", 1), ("q", 1), ("r", 1)], &[("p", 3), ("q", 0), ("r", 2)]];
    let targets: [&[Option<&str>]; 6] = [
        &[Some("q"), Some("r")],
        &[Some("r")],
        &[None, Some("r")],
        &[Some("p"), None, Some("r")],
        &[None, None, None],
        &[],
    ];
    for to in targets {
        let (s, b) = collapse(&["p", "q", "r"], to);
        assert_eq!(b.shape().len(), to.len());
        run_everywhere(&s, sizes);
    }
}

/// Folds the rows of `A`, and what the weighed sum of its results changes by with each element: the program of the one
/// and that of the other, both of `A` and the weights `W`.
type Differentiated = fn(&Tensor, &Tensor) -> (Tensor, Tensor);

const GRADIENT_SHAPE: [i32; 2] = [3, 4];

fn rows_and_columns() -> [Expr; 2] {
    GRADIENT_SHAPE.map(c)
}

/// The sum over rows of a weight times what a row folds to.
fn weighed(rows: &Tensor, w: &Tensor) -> Tensor {
    let r = reduce_axis(GRADIENT_SHAPE[0], "r");
    compute(&[], "L", |_| sum(w.at([&r]) * rows.at([&r]), from_ref(&r))).unwrap()
}

/// The product of the other elements of an element's row.
fn others(a: &Tensor) -> Tensor {
    let k = reduce_axis(GRADIENT_SHAPE[1], "o");
    compute(&rows_and_columns(), "O", |i| {
        prod(a.at((&i[0], &k)), from_ref(&k))?.where_(k.expr().not_equal(i[1].expr()))
    })
    .unwrap()
}

fn squares(a: &Tensor, w: &Tensor) -> (Tensor, Tensor) {
    let k = reduce_axis(GRADIENT_SHAPE[1], "k");
    let rows =
        compute(&[c(GRADIENT_SHAPE[0])], "B", |i| sum(a.at((&i[0], &k)) * a.at((&i[0], &k)), from_ref(&k)));
    let two = Expr::constant(2, DType::F64);
    let gradient = compute(&rows_and_columns(), "G", |i| two.clone() * a.at(i) * w.at([&i[0]]));
    (weighed(&rows.unwrap(), w), gradient.unwrap())
}

fn products(a: &Tensor, w: &Tensor) -> (Tensor, Tensor) {
    let k = reduce_axis(GRADIENT_SHAPE[1], "k");
    let rows = compute(&[c(GRADIENT_SHAPE[0])], "B", |i| prod(a.at((&i[0], &k)), from_ref(&k)));
    let o = others(a);
    let gradient = compute(&rows_and_columns(), "G", |i| o.at(i) * w.at([&i[0]]));
    (weighed(&rows.unwrap(), w), gradient.unwrap())
}

fn maxima(a: &Tensor, w: &Tensor) -> (Tensor, Tensor) {
    let k = reduce_axis(GRADIENT_SHAPE[1], "k");
    let rows = compute(&[c(GRADIENT_SHAPE[0])], "B", |i| max(a.at((&i[0], &k)), from_ref(&k))).unwrap();
    let gradient = compute(&rows_and_columns(), "G", |i| {
        let is_largest = a.at(i).equal(rows.at([&i[0]]));
        Expr::select(is_largest, w.at([&i[0]]), Expr::constant(0, DType::F64))
    });
    (weighed(&rows, w), gradient.unwrap())
}

fn sums_and_products(a: &Tensor, w: &Tensor) -> (Tensor, Tensor) {
    let pair = comm_reducer(
        |x, y| vec![x[0].clone() + y[0].clone(), x[1].clone() * y[1].clone()],
        |types| vec![Expr::constant(0, types[0]), Expr::constant(1, types[1])],
        "sum_prod",
    );
    let k = reduce_axis(GRADIENT_SHAPE[1], "k");
    let both = compute_tuple(&[c(GRADIENT_SHAPE[0])], "T", |i| {
        let x = a.at((&i[0], &k));
        pair.reduce(vec![x.clone(), x], from_ref(&k))
    })
    .unwrap();
    let rows = compute(&[c(GRADIENT_SHAPE[0])], "B", |i| both[0].at(i) + both[1].at(i)).unwrap();
    let (o, one) = (others(a), Expr::constant(1, DType::F64));
    let gradient = compute(&rows_and_columns(), "G", |i| (o.at(i) + one.clone()) * w.at([&i[0]]));
    (weighed(&rows, w), gradient.unwrap())
}

/// Central differences are exact here: each result is a polynomial of degree 2 in each element at most, or a maximum of
/// numbers that are further apart than the step, and all numbers are multiples of 1/16 that 53 bits hold.
#[test]
fn te_n10_gradients_that_are_reductions_are_those_of_small_differences() {
    const STEP: f64 = 0.25;
    let n_elements = GRADIENT_SHAPE.iter().product::<i32>() as usize;
    let plain =
        |arg: usize, at: usize| if arg == 0 { (at * 5 % n_elements) as f64 - 4.0 } else { at as f64 + 1.0 };
    let rows: [Differentiated; 4] = [squares, products, maxima, sums_and_products];
    for differentiated in rows {
        let a = input(&rows_and_columns(), DType::F64, "A");
        let w = input(&[c(GRADIENT_SHAPE[0])], DType::F64, "W");
        let (result, gradient) = differentiated(&a, &w);
        let (forward, backward) =
            (schedule(&[result], &[a.clone(), w.clone()]), schedule(&[gradient], &[a, w]));
        let fill = |arg: usize, at: usize, _: DType| Value::Float(plain(arg, at));
        run_everywhere_with(&forward, &[&[]], &fill, Tolerance::Exact);
        run_everywhere_with(&backward, &[&[]], &fill, Tolerance::Exact);
        let found = &reference(&backward, &[], &fill)[2].data;
        for (at, found) in found.iter().enumerate() {
            let moved = |by: f64| {
                let fill = |arg: usize, other: usize, _: DType| {
                    Value::Float(plain(arg, other) + if (arg, other) == (0, at) { by } else { 0.0 })
                };
                reference(&forward, &[], &fill)[2].data[0].as_f64()
            };
            assert_eq!(found.as_f64(), (moved(STEP) - moved(-STEP)) / (2.0 * STEP), "element {at}");
        }
    }
}

/// Operands whose exact `a * b + c` is next to the middle of two neighbours, by less than `f32` holds.
fn next_to_a_tie(arg: usize, _: usize, dtype: DType) -> Value {
    let f16 = [99.0 / 8192.0, 331.0 / 8192.0, 1.0];
    let bf16 = [9.0 / 16.0, 43.0 / 16.0, -1.0 / f64::from(1 << 30)];
    Value::Float(if dtype == DType::F16 { f16[arg] } else { bf16[arg] })
}

#[test]
fn fused_products_of_narrow_floats_are_rounded_once() {
    for (dtype, want) in [(DType::F16, 1.0 + 1.0 / 1024.0), (DType::BF16, 1.5078125)] {
        for by in [1, 16] {
            let shape = [n("n")];
            let [x, y, z] = ["X", "Y", "Z"].map(|name| input(&shape, dtype, name));
            let b = compute(&shape, "B", |i| Expr::call(Intrinsic::Fma, vec![x.at(i), y.at(i), z.at(i)]))
                .unwrap();
            let mut s = schedule(&[b], &[x, y, z]);
            if by > 1 {
                let i = leaf(&s, "B", 0);
                let (_, lane) = s.split("B", &i, Split::Factor(by)).unwrap();
                s.vectorize("B", &lane).unwrap();
            }
            let sizes: &[(&str, i64)] = &[("n", 37)];
            run_everywhere_with(&s, &[sizes], &next_to_a_tie, Tolerance::Exact);
            let values = reference(&s, sizes, &next_to_a_tie);
            assert!(values[3].data.iter().all(|v| v.as_f64() == want), "{dtype}: {:?}", values[3].data[0]);
        }
    }
}

#[test]
fn several_rows_past_the_end_begin_before_it() {
    for rows in [37, 16, 32, 9] {
        let a = input(&[c(rows), c(5)], DType::F32, "A");
        let k = reduce_axis(5, "k");
        let b = compute(&[c(rows)], "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).unwrap();
        let d = compute(&[c(rows)], "D", |i| Ok(b.at([&i[0]]) + f(1.0))).unwrap();
        let mut s = schedule(&[d], from_ref(&a));
        let i = leaf(&s, "D", 0);
        let (blocks, _) = s.split("D", &i, Split::Factor(16)).unwrap();
        s.compute_at("B", "D", &blocks).unwrap();
        run_everywhere(&s, &[&[]]);
        s.clamp("B").unwrap();
        run_everywhere(&s, &[&[]]);
        let text = nest_text(&s);
        // Fewer rows than a block keep their guard.
        assert_eq!(text.contains("T.min("), rows == 37, "{text}");
    }
}

#[test]
fn a_pragma_for_gpus_changes_nothing_on_a_cpu() {
    let a = input(&[c(16)], DType::F32, "A");
    let b = compute(&[c(16)], "B", |i| a.at(i)).unwrap();
    let d = compute(&[c(16)], "C", |i| b.at(i) + f(1.0)).unwrap();
    let mut s = schedule(&[d], &[a]);
    s.set_scope("B", MemScope::Shared).unwrap();
    s.pragma("B", &leaf(&s, "B", 0), "async_copy", Attr::Int(1)).unwrap();
    run_as_scheduled(&s, &[&[]], &small, Tolerance::Exact);
}
