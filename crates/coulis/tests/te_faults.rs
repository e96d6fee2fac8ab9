//! Faults of the reference, as docs/sources.md lists them: for each the right answer, or the refusal. Those
//! of refusals alone are where their messages are tested, in `coulis-tensor` and `coulis-schedule`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/everywhere.rs"]
mod everywhere;

use std::slice::from_ref;

use coulis::DType;
use coulis::te::{
    Expr, Intrinsic, Schedule, Split, Tensor, build, comm_reducer, compute, compute_axes, compute_tuple, max,
    min, reduce_axis, sum, var_of,
};
use coulis::{Owner, Request, Value as Argument};
use coulis_ir::eval::Value;
use coulis_ir::{Claims, ThreadTag, Var};
use everywhere::{
    Tolerance, argmax_of, c, chain, f, flat_text, input, leaf, n, nest_text, number, reference,
    run_everywhere, run_everywhere_with, schedule, small,
};

const SIZES: &[&[(&str, i64)]] = &[&[("n", 6), ("m", 13)], &[("n", 1), ("m", 1)], &[("n", 3), ("m", 16)]];

/// Place and value of the largest of each row; `value` says at which component the value is.
fn argmax(value: usize) -> Schedule {
    let (rows, columns) = (n("n"), n("m"));
    let a = input(&[rows.clone(), columns.clone()], DType::F32, "A");
    schedule(&argmax_of(&a, value, "T"), &[a])
}

#[test]
fn te_fault_c1_components_of_a_tuple_do_not_read_what_the_update_has_stored() {
    for value in [0, 1] {
        let s = argmax(value);
        run_everywhere(&s, SIZES);
        let mut split = argmax(value);
        let k = leaf(&split, "T", 1);
        let (_, inner) = split.split("T", &k, Split::Factor(4)).unwrap();
        run_everywhere(&split, SIZES);
        split.rfactor("T", &inner).unwrap();
        run_everywhere(&split, SIZES);
        // The places are those of a plain search.
        let values = reference(&s, SIZES[0], &small);
        for row in 0..6 {
            let of_row: Vec<f64> =
                values[0].data[row * 13..(row + 1) * 13].iter().map(|v| v.as_f64()).collect();
            let best = of_row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            let first = of_row.iter().position(|v| *v == best).unwrap();
            assert_eq!(values[2 - value].data[row], Value::Int(first as i128), "value first: {}", value == 0);
        }
    }
}

#[test]
fn te_fault_c2_no_start_value_is_written_past_the_end_of_an_argument() {
    let (rows, columns) = (n("n"), n("m"));
    let a = input(&[rows.clone(), columns.clone()], DType::F32, "A");
    let k = reduce_axis(columns, "k");
    let b = compute(from_ref(&rows), "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).unwrap();
    let d = compute_axes(from_ref(&rows), &["r"], "C", |i| b.at([&i[0]]) + f(1.0)).unwrap();
    // B is an argument too, so that its memory ends where its shape says: bytes behind it are looked at.
    let args = [a, b, d.clone()];
    let mut s = Schedule::new(from_ref(&d), &args).unwrap();
    let r = leaf(&s, "C", 0);
    let (outer, _) = s.split("C", &r, Split::Factor(8)).unwrap();
    s.compute_at("B", "C", &outer).unwrap();
    run_everywhere(&s, SIZES);
}

/// Row sums where the element is above 0, by what is done to the loops.
fn sums_of_positives() -> Schedule {
    let (rows, columns) = (n("n"), n("m"));
    let a = input(&[rows.clone(), columns.clone()], DType::F32, "A");
    let k = reduce_axis(columns, "k");
    let b = compute(from_ref(&rows), "B", |i| {
        let x = a.at((&i[0], &k));
        sum(x.clone(), from_ref(&k))?.where_(x.gt(f(0.0)))
    })
    .unwrap();
    schedule(&[b], &[a])
}

#[test]
fn te_fault_c3_a_condition_holds_in_every_schedule() {
    run_everywhere(&sums_of_positives(), SIZES);
    let mut s = sums_of_positives();
    let k = leaf(&s, "B", 1);
    let (_, inner) = s.split("B", &k, Split::Factor(4)).unwrap();
    run_everywhere(&s, SIZES);
    s.rfactor("B", &inner).unwrap();
    run_everywhere(&s, SIZES);
}

#[test]
fn te_fault_c4_both_halves_of_a_split_reduce_axis_are_guarded() {
    // 50 by 16, both halves factored out: 4 times 16 partial sums, of which 14 have no element.
    let a = input(&[c(3), c(50)], DType::F32, "A");
    let k = reduce_axis(50, "k");
    let b = compute(&[c(3)], "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).unwrap();
    let mut s = schedule(&[b], &[a]);
    let k = leaf(&s, "B", 1);
    let (_, inner) = s.split("B", &k, Split::Factor(16)).unwrap();
    s.rfactor("B", &inner).unwrap();
    let rest = s.stage("B_rf").unwrap().leaves().iter().find(|a| a.name().contains("outer")).unwrap().clone();
    s.rfactor("B_rf", &rest).unwrap();
    run_everywhere(&s, &[&[]]);
}

#[test]
fn te_fault_c12_ties_do_not_depend_on_the_schedule() {
    // All elements alike: the first place, whatever the order of the fold.
    let same = |_: usize, _: usize, dtype: DType| number(2, dtype);
    for by in [Split::Factor(3), Split::Nparts(4)] {
        for which in [0, 1] {
            let mut s = argmax(1);
            let k = leaf(&s, "T", 1);
            let (outer, inner) = s.split("T", &k, by.clone()).unwrap();
            s.rfactor("T", if which == 0 { &outer } else { &inner }).unwrap();
            run_everywhere_with(&s, SIZES, &same, Tolerance::Exact);
        }
    }
    // A reducer that claims no laws is not factored.
    let a = input(&[c(8)], DType::F32, "A");
    let minus =
        comm_reducer(|x, y| vec![x[0].clone() - y[0].clone()], |t| vec![Expr::constant(0, t[0])], "minus")
            .claims(Claims { associative: false, commutative: false, idempotent: false });
    let k = reduce_axis(8, "k");
    let b = compute(&[], "B", |_| minus.reduce(vec![a.at([&k])], from_ref(&k))).unwrap();
    let mut s = schedule(&[b], &[a]);
    let k = leaf(&s, "B", 0);
    let error = s.rfactor("B", &k).unwrap_err().to_string();
    assert!(error.contains("does not claim to be associative and commutative"), "{error}");
}

#[test]
fn te_fault_c13_a_partial_fusion_covers_exactly_what_is_read() {
    let (rows, columns) = (n("n"), n("m"));
    for (by, at) in [(5, 0), (7, 0), (16, 0), (5, 1)] {
        let a = input(&[rows.clone(), columns.clone(), c(3)], DType::F32, "A");
        let b = compute(&[rows.clone(), columns.clone(), c(3)], "B", |i| a.at(i) + f(1.0)).unwrap();
        let d = compute(&[rows.clone(), columns.clone(), c(3)], "C", |i| b.at(i) * f(2.0)).unwrap();
        let mut s = schedule(&[d], &[a]);
        let pair = [leaf(&s, "C", at), leaf(&s, "C", at + 1)];
        let fused = s.fuse("C", &pair).unwrap();
        let (outer, _) = s.split("C", &fused, Split::Factor(by)).unwrap();
        s.compute_at("B", "C", &outer).unwrap();
        run_everywhere(&s, SIZES);
    }
}

/// `B[i] = fold of A[i, k]`, with a start and an end of the schedule.
fn rows_of(
    fold: fn(Expr, &[coulis::te::IterVar]) -> Result<coulis::te::Reduction, coulis::te::TensorError>,
) -> Schedule {
    let (rows, columns) = (n("n"), n("m"));
    let a = input(&[rows.clone(), columns.clone()], DType::F32, "A");
    let k = reduce_axis(columns, "k");
    let b = compute(from_ref(&rows), "B", |i| fold(a.at((&i[0], &k)), from_ref(&k))).unwrap();
    schedule(&[b], &[a])
}

#[test]
fn te_fault_n1_constants_are_what_was_written_and_identities_are_limits() {
    let pi = std::f64::consts::PI;
    let a = input(&[c(3)], DType::F64, "A");
    let b = compute(&[c(3)], "B", |i| a.at(i) * Expr::float(pi, DType::F64)).unwrap();
    let s = schedule(&[b], &[a]);
    assert!(flat_text(&s).contains("T.float64(3.1415926535897931)"), "{}", flat_text(&s));
    run_everywhere(&s, &[&[]]);
    // A row of the largest finite number has that minimum.
    let huge = |_: usize, _: usize, _: DType| Value::Float(f64::from(f32::MAX));
    let s = rows_of(min);
    run_everywhere_with(&s, SIZES, &huge, Tolerance::Exact);
    assert_eq!(reference(&s, SIZES[1], &huge)[1].data, [Value::Float(f64::from(f32::MAX))]);
}

#[test]
fn te_fault_n2_infinities_and_nan_come_through_extrema_wherever_they_stand() {
    for (name, special) in [("-inf", f64::NEG_INFINITY), ("inf", f64::INFINITY), ("nan", f64::NAN)] {
        for fold in [max, min] {
            let all = |_: usize, _: usize, _: DType| Value::Float(special);
            let one = |_: usize, at: usize, _: DType| {
                Value::Float(if at.is_multiple_of(5) { special } else { 1.0 })
            };
            let mut s = rows_of(fold);
            for step in 0..3 {
                run_everywhere_with(&s, SIZES, &all, Tolerance::Exact);
                run_everywhere_with(&s, SIZES, &one, Tolerance::Exact);
                let found = reference(&s, SIZES[1], &all)[1].data[0];
                assert!(found.same(Value::Float(special)), "{name}: {found:?}");
                let k = leaf(&s, "B", 1);
                if step == 0 {
                    s.split("B", &k, Split::Factor(4)).unwrap();
                } else if step == 1 {
                    let inner = leaf(&s, "B", 2);
                    s.rfactor("B", &inner).unwrap();
                }
            }
        }
    }
}

#[test]
fn te_fault_n3_floats_are_not_computed_as_if_they_were_numbers() {
    let a = input(&[c(4)], DType::F32, "A");
    let x = |i: &[coulis_ir::Var]| a.at(i);
    let bodies: [fn(Expr) -> Expr; 6] = [
        |x| x.clone() - x,
        |x| x * f(0.0),
        |x| (x + f(1e8)) - f(1e8),
        |x| x / f(3.0),
        |x| x * f(-1.0),
        |x| Expr::call1(Intrinsic::Sqrt, x.clone() * x),
    ];
    let outputs: Vec<Tensor> = bodies
        .iter()
        .enumerate()
        .map(|(at, body)| compute(&[c(4)], &format!("B{at}"), |i| body(x(i))).unwrap())
        .collect();
    let s = schedule(&outputs, from_ref(&a));
    let values = [f64::NAN, f64::INFINITY, 1.0, -0.3];
    let fill = |_: usize, at: usize, _: DType| Value::Float(f64::from(values[at] as f32));
    run_everywhere_with(&s, &[&[]], &fill, Tolerance::Exact);
    let found = reference(&s, &[], &fill);
    assert!(found[1].data[1].is_nan(), "inf - inf");
    assert!(found[2].data[0].is_nan() && found[2].data[1].is_nan(), "nan * 0 and inf * 0");
    assert_eq!(found[3].data[2], Value::Float(0.0), "1 is lost beside 1e8");
}

#[test]
fn te_fault_n4_sums_of_small_types_are_what_the_user_writes_and_wide_by_default_in_reduce() {
    // In a program the type is the source's, so that the user widens.
    let rows = n("n");
    for (dtype, wide) in [(DType::I8, DType::I32), (DType::F16, DType::F32)] {
        let a = input(&[rows.clone(), c(100)], dtype, "A");
        let k = reduce_axis(100, "k");
        let b = compute(from_ref(&rows), "B", |i| sum(a.at((&i[0], &k)).cast(wide), from_ref(&k))).unwrap();
        assert_eq!(b.dtype(), wide);
        let fill = |_: usize, _: usize, dtype: DType| number(100, dtype);
        let s = schedule(&[b], &[a]);
        run_everywhere_with(&s, &[&[("n", 3)]], &fill, Tolerance::Exact);
        assert_eq!(reference(&s, &[("n", 1)], &fill)[1].data[0].as_f64(), 10_000.0);
    }
    let hundred = coulis::Array::from_slice(&[100], &[100i8; 100]).unwrap();
    let outcome = coulis::reduce::run(&[hundred], &Request::new(&["sum"])).unwrap();
    assert_eq!(outcome.results[0].array.scalars().next().unwrap().to_f64(), 10_000.0);
}

#[test]
fn te_fault_n5_sizes_that_32_bits_do_not_hold_are_refused_or_64_bit() {
    let total = |dtype: DType| {
        let (rows, columns) = (var_of("n", dtype).expr(), var_of("m", dtype).expr());
        let a = input(&[rows.clone(), columns], DType::I8, "A");
        let k = reduce_axis(Expr::int_of(2, dtype), "k");
        let b = compute(from_ref(&rows), "B", |i| sum(a.at((&i[0], &k)), from_ref(&k))).unwrap();
        let args = [a, b.clone()];
        build(&Schedule::new(from_ref(&b), &args).unwrap(), &args, "total").unwrap()
    };
    // 4 rows of 2^30 columns, all one element: 2^32 places that only 64 bits count.
    let one = coulis::Array::from_slice(&[1], &[3i8]).unwrap();
    let huge = one.view(&[4, 1 << 30], &[0, 0], 0).unwrap();
    let found = total(DType::I64).call(&[Argument::from(&huge)]).unwrap();
    assert_eq!(found[0].array.scalars().map(|v| v.to_f64()).collect::<Vec<_>>(), [6.0; 4]);
    match total(DType::I32).call(&[Argument::from(&huge)]) {
        Ok(found) => {
            assert_eq!(found[0].array.scalars().map(|v| v.to_f64()).collect::<Vec<_>>(), [6.0; 4]);
        }
        Err(error) => assert_eq!(error.owner, Owner::Unsupported, "{error}"),
    }
}

#[test]
fn te_fault_n5_arithmetic_on_elements_wraps_in_int32_however_large_another_array_is() {
    let (rows, columns) = (n("n"), n("m"));
    let a = input(&[rows.clone(), columns], DType::I8, "A");
    let b = input(from_ref(&rows), DType::I32, "B");
    let table = input(&[c(7)], DType::I32, "L");
    let (one, seven) = (coulis::Array::from_slice(&[1], &[0i8]).unwrap(), [0, 1, 2, 3, 4, 5, 6]);
    let near_end = coulis::Array::from_slice(&[3], &[i32::MAX - 1; 3]).unwrap();
    let seven = coulis::Array::from_slice(&[7], &seven).unwrap();
    let check = |name: &str, value: &dyn Fn(&Expr, Expr) -> Expr, want: [f64; 3]| {
        let o = compute(from_ref(&rows), "O", |i| {
            let value = value(&i[0].expr(), b.at(i));
            let zero = a.at((&i[0], &c(0))).cast(value.dtype());
            value + zero
        })
        .unwrap();
        let args = [a.clone(), b.clone(), table.clone(), o.clone()];
        let function = build(&Schedule::new(from_ref(&o), &args).unwrap(), &args, "main").unwrap();
        for columns in [4, 1 << 30] {
            let a = one.view(&[3, columns], &[0, 0], 0).unwrap();
            let found = function
                .call(&[Argument::from(&a), Argument::from(&near_end), Argument::from(&seven)])
                .unwrap();
            let found: Vec<f64> = found[0].array.scalars().map(|v| v.to_f64()).collect();
            assert_eq!(found, want, "{name} with {columns} columns");
        }
    };
    let (end, least) = (f64::from(i32::MAX), f64::from(i32::MIN));
    let overflows = |i: &Expr, b: Expr| Expr::select((i.clone() + b.clone()).lt(b), c(1), c(0));
    check("comparison", &overflows, [0.0, 0.0, 1.0]);
    check("int64", &|i, b| (i.clone() + b).cast(DType::I64), [end - 1.0, end, least]);
    check("float64", &|i, b| (i.clone() + b).cast(DType::F64), [end - 1.0, end, least]);
    check("quotient", &|i, b| (i.clone() * b).floordiv(c(2)), [0.0, 1_073_741_823.0, -2.0]);
    check("size", &|_, b| (rows.clone() * b).floordiv(c(2)), [1_073_741_821.0; 3]);
    let clamped = |i: &Expr, b: Expr| table.at([(i.clone() + b).min(c(6)).max(c(0))]);
    check("index", &clamped, [6.0, 6.0, 0.0]);
    let named = |i: &Expr, b: Expr| {
        let sum = var_of("s", DType::I32);
        let above = Expr::select(sum.expr().gt(i.clone()), c(1), c(0));
        Expr::let_in(sum, i.clone() + b, above)
    };
    check("name", &named, [1.0, 1.0, 0.0]);
}

#[test]
fn te_fault_n6_a_schedule_gives_the_same_bits_each_time() {
    let values = |_: usize, at: usize, _: DType| {
        let bits = (at as u32).wrapping_mul(0x9e37_79b9) >> 9 | 0x3f80_0000;
        Value::Float(f64::from(f32::from_bits(bits)) - 1.5)
    };
    let mut s = rows_of(sum);
    let k = leaf(&s, "B", 1);
    let (_, inner) = s.split("B", &k, Split::Factor(8)).unwrap();
    s.rfactor("B", &inner).unwrap();
    let i = leaf(&s, "B_rf", 0);
    s.parallel("B_rf", &i).unwrap();
    let args = s.program().args();
    let function = build(&s, args, "main").unwrap();
    let data: Vec<f32> = (0..5 * 1001).map(|at| values(0, at, DType::F32).as_f64() as f32).collect();
    let a = coulis::Array::from_slice(&[5, 1001], &data).unwrap();
    let call = || {
        let found = function.call(&[Argument::from(&a)]).unwrap();
        found[0].array.scalars().map(|v| v.to_f64().to_bits()).collect::<Vec<_>>()
    };
    let first = call();
    for _ in 0..20 {
        assert_eq!(call(), first);
    }
    // And it is near the sum of all orders.
    run_everywhere_with(&s, &[&[("n", 5), ("m", 1001)]], &values, Tolerance::Relative(1e-5));
    assert!(!nest_text(&s).is_empty());
}

#[test]
fn components_of_an_attached_tuple_are_each_where_they_are_read_and_kept() {
    let sizes: &[&[(&str, i64)]] = &[&[("n", 9), ("m", 6)], &[("n", 1), ("m", 1)]];
    for (folds, read, factor) in [(false, 0, 1), (false, 1, 4), (true, 0, 4), (true, 1, 1), (true, 1, 4)] {
        for kept in [&[][..], &[0], &[1], &[0, 1]] {
            let (rows, columns) = (n("n"), n("m"));
            let a = input(&[rows.clone(), columns.clone()], DType::F32, "A");
            let k = reduce_axis(columns, "k");
            let both = if folds {
                let sums = comm_reducer(
                    |x, y| vec![x[0].clone() + y[0].clone(), x[1].clone() + y[1].clone()],
                    |types| types.iter().map(|ty| Expr::constant(0, *ty)).collect(),
                    "sums",
                );
                compute_tuple(from_ref(&rows), "T", |i| {
                    let x = a.at((&i[0], &k));
                    sums.reduce(vec![x.clone(), x * f(2.0)], from_ref(&k))
                })
            } else {
                let first = |i: &coulis_ir::Var| a.at([&i.expr(), &c(0)]);
                compute_tuple(from_ref(&rows), "T", |i| vec![first(&i[0]) + f(1.0), first(&i[0]) * f(2.0)])
            }
            .unwrap();
            let d = compute(from_ref(&rows), "C", |i| both[read].at([&i[0]]) * f(10.0)).unwrap();
            let mut args = vec![a, d.clone()];
            args.extend(kept.iter().map(|at: &usize| both[*at].clone()));
            let mut s = Schedule::new(from_ref(&d), &args).unwrap();
            run_everywhere(&s, sizes);
            let i = leaf(&s, "C", 0);
            let (outer, _) = s.split("C", &i, Split::Factor(factor)).unwrap();
            s.compute_at("T", "C", &outer).unwrap();
            run_everywhere(&s, sizes);
        }
    }
}

#[test]
fn dimensions_of_two_integer_types_are_joined_in_the_wider_one() {
    for (outer, inner) in [(DType::I64, DType::I32), (DType::I32, DType::I64)] {
        let shape = [var_of("n", outer).expr(), var_of("m", inner).expr()];
        let made = || {
            let mut s = chain(&shape);
            let (i, j) = (leaf(&s, "B", 0), leaf(&s, "B", 1));
            let both = s.join("B", &i, &j).unwrap();
            (s, both)
        };
        let (mut s, both) = made();
        assert_eq!(both.dtype(), DType::I64);
        s.split("B", &both, Split::Factor(4)).unwrap();
        run_everywhere(&s, SIZES);
        let (mut s, both) = made();
        s.bind("B", &both, ThreadTag::BlockX).unwrap();
        let i = leaf(&s, "C", 0);
        s.bind("C", &i, ThreadTag::BlockX).unwrap();
        run_everywhere(&s, SIZES);
        let text = coulis_ir::print::print_kernel(&everywhere::nest(&s));
        assert!(coulis_script::parse_module(&text).is_ok(), "{text}");
    }
}

#[test]
fn a_stage_inside_a_loop_over_two_dimensions_reads_no_row_before_the_first() {
    for (length, factor) in [(2, 2), (5, 4), (17, 3), (17, 4)] {
        for size in [Var::new("n", DType::I32), Var::size("n", DType::I32)] {
            let a = input(&[c(length)], DType::F32, "A");
            let w = input(&[size.expr()], DType::F32, "W");
            let k = reduce_axis(&size, "k");
            let p = compute(&[c(length)], "P", |i| a.at(i) * f(2.0)).unwrap();
            let r = compute(&[c(length)], "R", |i| sum(p.at(i) * w.at([&k]), from_ref(&k))).unwrap();
            let mut s = schedule(&[r], &[a, w]);
            let (i, k) = (leaf(&s, "R", 0), leaf(&s, "R", 1));
            let both = s.fuse("R", &[i, k]).unwrap();
            let (_, inner) = s.split("R", &both, Split::Factor(factor)).unwrap();
            s.compute_at("P", "R", &inner).unwrap();
            run_everywhere(&s, &[&[("n", 7)], &[("n", 1)], &[("n", 0)]]);
        }
    }
}
