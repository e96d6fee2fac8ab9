//! The reference evaluator against answers worked out by hand.

use std::collections::HashMap;
use std::slice::from_ref;

use coulis_ir::args::Bindings;
use coulis_ir::eval::Value;
use coulis_ir::{BinaryOp, DType, Expr};
use coulis_reducers::{ReducerRequest, find};
use coulis_tensor::{
    Array, Program, Tensor, comm_reducer, compute, compute_tuple, evaluate, max, min, placeholder, reduce,
    reduce_axis, reduce_axis_of, sum, var,
};

fn floats(shape: &[i64], data: &[f64]) -> Array {
    Array { shape: shape.to_vec(), data: data.iter().copied().map(Value::Float).collect() }
}

/// Values of the outputs for one input.
fn run(outputs: &[Tensor], input: &Tensor, data: Array) -> Vec<Vec<Value>> {
    let args: Vec<Tensor> = [input.clone()].into_iter().chain(outputs.iter().cloned()).collect();
    let program = Program::new(outputs, &args).expect("a program");
    let inputs = HashMap::from([(input.buffer().id, data)]);
    let values = evaluate(&program, &inputs, &Bindings::new()).expect("values");
    values.into_iter().skip(1).map(|a| a.data).collect()
}

fn rows() -> (Expr, Expr, Tensor) {
    let (n, m) = (var("n").expr(), var("m").expr());
    let a = placeholder(&[n.clone(), m.clone()], DType::F32, "A").expect("a tensor");
    (n, m, a)
}

#[test]
fn row_sums_with_a_condition_and_a_start() {
    let (n, m, a) = rows();
    let k = reduce_axis(m, "k");
    let odd = k.expr().floormod(Expr::int(2)).equal(Expr::int(1));
    let b = compute(from_ref(&n), "B", |i| {
        sum(a.at((&i[0], &k)), from_ref(&k))?.where_(odd)?.init(vec![Expr::float(100.0, DType::F32)])
    })
    .expect("a tensor");
    let out = run(&[b], &a, floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]));
    assert_eq!(out, [vec![Value::Float(102.0), Value::Float(105.0)]]);
}

#[test]
fn empty_rows_give_the_identity() {
    let (n, m, a) = rows();
    let k = reduce_axis(m, "k");
    let b = compute(from_ref(&n), "B", |i| max(a.at((&i[0], &k)), from_ref(&k))).expect("a tensor");
    let out = run(&[b], &a, floats(&[2, 0], &[]));
    assert_eq!(out, [vec![Value::Float(f64::NEG_INFINITY); 2]]);
}

#[test]
fn te_fault_n2_a_nan_reaches_extrema_wherever_it_stands() {
    for at in 0..3 {
        let (n, m, a) = rows();
        let fold = |name, reducer: fn(_, &[_]) -> _| {
            let k = reduce_axis(m.clone(), "k");
            compute(from_ref(&n), name, |i| reducer(a.at((&i[0], &k)), from_ref(&k))).expect("a tensor")
        };
        let (b, c) = (fold("B", max), fold("C", min));
        let mut data = [1.0, 2.0, 3.0];
        data[at] = f64::NAN;
        let out = run(&[b, c], &a, floats(&[1, 3], &data));
        assert!(out[0][0].is_nan() && out[1][0].is_nan(), "NaN at {at}: {out:?}");
    }
}

#[test]
fn te_fault_n2_a_row_of_minus_infinity_has_that_maximum() {
    let (n, m, a) = rows();
    let k = reduce_axis(m, "k");
    let b = compute(from_ref(&n), "B", |i| max(a.at((&i[0], &k)), from_ref(&k))).expect("a tensor");
    let out = run(&[b], &a, floats(&[1, 2], &[f64::NEG_INFINITY; 2]));
    assert_eq!(out, [vec![Value::Float(f64::NEG_INFINITY)]]);
}

#[test]
fn argmax_as_a_tuple_in_both_orders_of_components() {
    for value_first in [false, true] {
        let (n, m, a) = rows();
        let k = reduce_axis(m, "k");
        let (at_value, at_index) = if value_first { (0, 1) } else { (1, 0) };
        let argmax = comm_reducer(
            move |l, r| {
                let keep = Expr::binary(BinaryOp::Ge, l[at_value].clone(), r[at_value].clone());
                (0..2).map(|f| Expr::select(keep.clone(), l[f].clone(), r[f].clone())).collect()
            },
            move |types| {
                let mut identity = vec![Expr::int(-1); 2];
                identity[at_value] = Expr::float(f64::NEG_INFINITY, types[at_value]);
                identity
            },
            "argmax",
        );
        let both = compute_tuple(from_ref(&n), "B", |i| {
            let mut sources = vec![k.expr(); 2];
            sources[at_value] = a.at((&i[0], &k));
            argmax.reduce(sources, from_ref(&k))
        })
        .expect("tensors");
        let out = run(&both, &a, floats(&[2, 3], &[1.0, 7.0, 7.0, 9.0, 5.0, 6.0]));
        assert_eq!(out[at_index], [Value::Int(1), Value::Int(0)]);
        assert_eq!(out[at_value], [Value::Float(7.0), Value::Float(9.0)]);
    }
}

#[test]
fn catalogue_reducers_see_positions_over_several_axes() {
    let (n, m, a) = rows();
    let (i, k) = (reduce_axis(n, "i"), reduce_axis(m, "k"));
    let argmax = find("argmax").expect("in the catalogue");
    let argmax = argmax.build(&ReducerRequest::new(&[DType::F32])).expect("takes float32");
    let state = compute_tuple(&[], "S", |_| reduce(&argmax, &[a.at((&i, &k))], &[i.clone(), k.clone()]))
        .expect("tensors");
    let o = compute(&[], "O", |_| argmax.finish(&state.iter().map(|s| s.at(())).collect::<Vec<_>>()))
        .expect("a tensor");
    let out = run(&[o], &a, floats(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 9.0, 6.0]));
    assert_eq!(out, [vec![Value::Int(4)]]);
}

#[test]
fn axes_may_start_late_and_depend_on_others() {
    let n = var("n").expr();
    let a = placeholder(from_ref(&n), DType::F32, "A").expect("a tensor");
    let b = compute(from_ref(&n), "B", |i| {
        let k = reduce_axis_of(1, i[0].expr(), "k");
        sum(a.at([&k]), &[k])
    })
    .expect("a tensor");
    let out = run(&[b], &a, floats(&[4], &[1.0, 2.0, 4.0, 8.0]));
    assert_eq!(out, [vec![0.0, 2.0, 6.0, 14.0].into_iter().map(Value::Float).collect::<Vec<_>>()]);
}

#[test]
fn reads_outside_a_tensor_are_errors_here() {
    let n = var("n").expr();
    let a = placeholder(from_ref(&n), DType::F32, "A").expect("a tensor");
    let b = compute(from_ref(&n), "B", |i| a.at([i[0].expr() + Expr::int(1)])).expect("a tensor");
    let program = Program::new(from_ref(&b), &[a.clone(), b.clone()]).expect("a program");
    let inputs = HashMap::from([(a.buffer().id, floats(&[2], &[1.0, 2.0]))]);
    let message = evaluate(&program, &inputs, &Bindings::new()).expect_err("outside").to_string();
    assert_eq!(message, "an element of `B`: index [2] is outside buffer `A`");
    let message = evaluate(&program, &HashMap::new(), &Bindings::new()).expect_err("no input").to_string();
    assert_eq!(message, "input `A` is to be given with 1 dimension and as many elements as its extents say");
}
