//! What can go wrong while a tensor expression is built, by message; and what is accepted.

use std::slice::from_ref;

use coulis_ir::{DType, Expr, Var};
use coulis_tensor::{
    Body, OpKind, Program, Reduction, Tensor, TensorError, Term, all, any, comm_reducer, compute,
    compute_axes, compute_tuple, max, min, placeholder, placeholder_strided, prod, reduce_axis,
    reduce_axis_of, sum, var, var_of,
};

fn matrix() -> (Expr, Expr, Tensor) {
    let (n, m) = (var("n").expr(), var("m").expr());
    let a = placeholder(&[n.clone(), m.clone()], DType::F32, "A").expect("a tensor");
    (n, m, a)
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, TensorError>, want: &str) {
    assert_eq!(result.expect_err("a refusal").to_string(), want);
}

#[test]
fn bare_sizes_make_strided_tensors_and_others_compact_ones() {
    let (n, _, a) = matrix();
    let strides: Vec<&str> =
        a.buffer().strides.iter().map(|s| s.as_var().expect("a variable").name()).collect();
    assert_eq!(strides, ["stride", "stride"]);
    assert!(a.buffer().auto_broadcast);
    let compact = placeholder(&[n - Expr::int(2), Expr::int(3)], DType::F32, "X").expect("a tensor");
    assert!(compact.buffer().strides.is_empty() && !compact.buffer().auto_broadcast);
    let scalar = placeholder(&[], DType::F32, "s").expect("a tensor");
    assert_eq!(scalar.buffer().rank(), 0);
}

#[test]
fn said_strides_may_be_negative_or_zero() {
    let a =
        placeholder_strided(&[Expr::int(4), Expr::int(5)], &[Expr::int(-5), Expr::int(0)], DType::I8, "A")
            .expect("a tensor");
    assert_eq!(a.buffer().strides, [Expr::int(-5), Expr::int(0)]);
    let result = placeholder_strided(&[Expr::int(4)], &[], DType::I8, "A");
    refused(result, "`A` has 1 dimension and takes as many strides, got 0");
}

#[test]
fn extents_are_integers_of_at_least_0() {
    placeholder(&[Expr::int(0)], DType::F32, "A").expect("0 is legal");
    refused(placeholder(&[Expr::int(-1)], DType::F32, "A"), "extent 0 of `A` is to be at least 0, got -1");
    refused(
        placeholder(&[Expr::float(1.0, DType::F32)], DType::F32, "A"),
        "extent 0 of `A` is to be an integer, got float32",
    );
}

#[test]
fn tensors_have_no_more_bytes_than_are_counted() {
    let shape = |extents: &[i128]| -> Vec<Expr> {
        extents.iter().map(|extent| Expr::int_of(*extent, DType::I64)).collect()
    };
    let of = |extents: &[i128], dtype| placeholder(&shape(extents), dtype, "A");
    of(&[1 << 31, 1 << 29], DType::I32).expect("2 ** 62 bytes");
    of(&[0, 1 << 62, 1 << 62], DType::I32).expect("no bytes");
    let limit = "which is more than 9223372036854775807 bytes, the most that is legal";
    refused(of(&[4, 1 << 62], DType::F32), &format!("`A` has 4 * 4611686018427387904 of float32, {limit}"));
    refused(of(&[1 << 61], DType::F32), &format!("`A` has 2305843009213693952 of float32, {limit}"));
    let huge = [i128::from(i64::MAX); 5];
    assert!(of(&huge, DType::I8).is_err());
    let strided = placeholder_strided(&shape(&[1 << 62, 4]), &shape(&[0, 0]), DType::I32, "A");
    refused(strided, &format!("`A` has 4611686018427387904 * 4 of int32, {limit}"));
    let made = compute(&shape(&[1 << 62]), "B", |_| Expr::int(1));
    refused(made, &format!("`B` has 4611686018427387904 of int32, {limit}"));
}

#[test]
fn axes_take_the_type_of_their_extent() {
    for dtype in [DType::I32, DType::I64] {
        let n = var_of("n", dtype).expr();
        let k = reduce_axis(n.clone(), "k");
        let b = compute(&[n], "B", |i| Expr::constant(0, DType::F32) + i[0].expr().cast(DType::F32));
        assert_eq!(b.expect("a tensor").op().axes()[0].dtype(), dtype);
        assert_eq!(k.dtype(), dtype);
    }
}

#[test]
fn te_fault_n2_identities_are_true_ones() {
    let k = reduce_axis(3, "k");
    let axes = from_ref(&k);
    let of = |r: Result<Reduction, TensorError>| r.expect("a reduction").identity[0].clone();
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let x = Expr::constant(2, dtype);
        assert_eq!(of(max(x.clone(), axes)), Expr::float(f64::NEG_INFINITY, dtype));
        assert_eq!(of(min(x.clone(), axes)), Expr::float(f64::INFINITY, dtype));
        assert_eq!(of(sum(x.clone(), axes)), Expr::float(0.0, dtype));
        assert_eq!(of(prod(x, axes)), Expr::float(1.0, dtype));
    }
    for (dtype, low, high) in [(DType::I8, -128, 127), (DType::U8, 0, 255)] {
        let x = Expr::constant(2, dtype);
        assert_eq!(of(max(x.clone(), axes)), Expr::int_of(low, dtype));
        assert_eq!(of(min(x, axes)), Expr::int_of(high, dtype));
    }
    assert_eq!(of(all(Expr::bool(true), axes)), Expr::bool(true));
    assert_eq!(of(any(Expr::bool(true), axes)), Expr::bool(false));
    assert_eq!(of(sum(Expr::bool(true), axes)).dtype(), DType::Bool);
    refused(all(Expr::int(1), axes), "`all` does not take int32");
}

#[test]
fn te_e8_reductions_stand_alone() {
    let (n, m, a) = matrix();
    let k = reduce_axis(m.clone(), "k");
    let total = || sum(a.at((0, &k)), from_ref(&k)).expect("a reduction");
    let term = || Term::Reduce(Box::new(total()), 0);
    compute(from_ref(&n), "B", |_| total()).expect("a reduction alone");
    compute(&[n.clone(), m.clone()], "B", |i| a.at(i) + Expr::float(1.0, DType::F32)).expect("no reduction");
    refused(
        term().into_expr("B"),
        "a reduction is to be the whole body of `B`; compute the reduction in a tensor of its own and read that one",
    );
    refused(
        compute_tuple(from_ref(&n), "B", |_| vec![term(), Term::Plain(Expr::int(0))]),
        "component 1 of `B` is no reduction, and component 0 is not; either all are reductions or none",
    );
    let other = reduce_axis(m, "k2");
    let second = sum(a.at((0, &other)), from_ref(&other)).expect("a reduction");
    refused(
        compute_tuple(from_ref(&n), "B", |_| vec![term(), Term::Reduce(Box::new(second), 1)]),
        "component 1 of `B` differs in its sources; the components of a tuple reduction share sources, axes, \
         combiner and condition: fold them with one tuple reducer",
    );
}

#[test]
fn te_fault_c10_and_te_fault_c11_axes_of_a_reduction() {
    let (n, m, a) = matrix();
    let k = reduce_axis(m.clone(), "k");
    refused(
        sum(a.at((0, &k)), &[k.clone(), k.clone()]),
        "`sum` is given the reduce axis `k` twice; each axis is folded once",
    );
    let b = compute(from_ref(&n), "B", |i| a.at((&i[0], 0))).expect("a tensor");
    refused(
        sum(a.at((0, &k)), &[b.op().axes()[0].clone()]),
        "`sum` folds over reduce axes, and `i` is a data axis; make it with reduce_axis",
    );
    let k2 = reduce_axis(m, "k2");
    refused(
        compute(from_ref(&n), "C", |i| sum(a.at((&i[0], &k2)), from_ref(&k))),
        "the body of `C` reads the axis `k2`, which is neither one of its dimensions nor in the list of reduce axes",
    );
    compute(from_ref(&n), "D", |_| sum(Expr::float(1.0, DType::F32), from_ref(&k)))
        .expect("an axis that the source does not use counts");
    compute(from_ref(&n), "E", |i| sum(a.at((&i[0], 0)), &[])).expect("no axis is the source itself");
}

#[test]
fn one_axis_belongs_to_one_compute() {
    let (n, m, a) = matrix();
    let k = reduce_axis(m, "k");
    let fold = |name| compute(from_ref(&n), name, |i| sum(a.at((&i[0], &k)), from_ref(&k)));
    let (b, c) = (fold("B").expect("a tensor"), fold("C").expect("a tensor"));
    let outputs = [b.clone(), c.clone()];
    refused(
        Program::new(&outputs, &[a.clone(), b, c]),
        "reduce axis `k` belongs to `B` and to `C`; give each compute an axis of its own",
    );
}

#[test]
fn initial_values() {
    let (n, m, a) = matrix();
    let k = reduce_axis(m, "k");
    let start = placeholder(from_ref(&n), DType::F32, "I").expect("a tensor");
    let total = || sum(a.at((0, &k)), from_ref(&k)).expect("a reduction");
    total().init(vec![Expr::float(10.0, DType::F32)]).expect("a constant");
    total().init(vec![start.at([0])]).expect("an element");
    refused(total().init(vec![]), "`sum` folds 1 sources and takes as many initial values, got 0");
    refused(total().init(vec![Expr::int(1)]), "initial value 0 of `sum` is to be float32, got int32");
    let two = start.at([0]) + start.at([1]);
    let want = "initial value 0 of `sum` is to be a constant or one element of a tensor";
    refused(total().init(vec![two]), want);
    let want =
        "initial value 0 of `sum` reads at the reduce axis `k`, and a fold starts once; legal are data axes";
    refused(total().init(vec![start.at([&k])]), want);
}

#[test]
fn conditions_are_bools() {
    let (_, m, a) = matrix();
    let k = reduce_axis(m, "k");
    let total = sum(a.at((0, &k)), from_ref(&k)).expect("a reduction");
    refused(total.where_(Expr::int(1)), "the condition of `sum` is to be bool, got int32");
}

#[test]
fn reads_take_one_index_a_dimension() {
    let (n, _, a) = matrix();
    let want = "`A` takes 2 indices, got 1";
    refused(compute(from_ref(&n), "B", |i| a.at([&i[0]])), want);
    refused(a.try_at([0]), want);
    let want = "index 1 of `A` is to be an integer, got float32";
    refused(compute(from_ref(&n), "B", |i| a.at((&i[0], Expr::float(0.0, DType::F32)))), want);
    let loose = coulis_ir::Buffer::new("X", DType::F32, vec![n.clone()], coulis_ir::MemScope::Global);
    let want = "the body of `B` reads `X`, which is no tensor of this program";
    refused(compute(from_ref(&n), "B", |i| loose.at([i[0].expr()])), want);
}

#[test]
fn reducers_of_a_user() {
    let (_, m, a) = matrix();
    let k = reduce_axis(m, "k");
    let pair = |results: usize, identities: usize| {
        comm_reducer(
            move |x, y| (0..results).map(|f| x[f % x.len()].clone() + y[f % y.len()].clone()).collect(),
            move |types| vec![Expr::constant(0, types[0]); identities],
            "pair",
        )
    };
    let sources = vec![a.at((0, &k)); 2];
    let made = pair(2, 2).params("l", "r").reduce(sources.clone(), from_ref(&k)).expect("a reduction");
    let names: Vec<&str> = made.combine.params.iter().map(Var::name).collect();
    assert_eq!(names, ["l_0", "l_1", "r_0", "r_1"]);
    refused(
        pair(1, 2).reduce(sources.clone(), from_ref(&k)),
        "`pair` has 2 identities, 1 results and 2 sources; all three are to be equal",
    );
    refused(
        pair(2, 3).reduce(sources, from_ref(&k)),
        "`pair` has 3 identities, 2 results and 2 sources; all three are to be equal",
    );
    let typed = comm_reducer(
        |x, y| vec![x[0].clone() * y[0].clone()],
        |_| vec![Expr::float(1.0, DType::F64)],
        "product",
    );
    refused(
        typed.reduce(vec![a.at((0, &k))], from_ref(&k)),
        "source 0 of `product` is float32, and the state is float64; cast it",
    );
    let minus =
        || comm_reducer(|x, y| vec![x[0].clone() - y[0].clone()], |t| vec![Expr::constant(0, t[0])], "minus");
    let error =
        minus().reduce(vec![a.at((0, &k))], from_ref(&k)).expect_err("it has no identity").to_string();
    assert!(
        error.starts_with("`minus` is refuted: \"combine(identity, a) equals a\" fails for a = "),
        "{error}"
    );
    let none = coulis_ir::Claims { associative: false, commutative: false, idempotent: false };
    assert!(minus().claims(none).reduce(vec![a.at((0, &k))], from_ref(&k)).is_ok(), "nothing is claimed");
    // Chan's merge of means and counts is right for counts, not for two numbers that cancel each other: sources of one
    // element each have a count of 1, and are tried as they are.
    let mean = || {
        let merge = |x: &[Expr], y: &[Expr]| {
            let count = x[1].clone() + y[1].clone();
            let total = x[0].clone() * x[1].clone() + y[0].clone() * y[1].clone();
            let no_less_than_one = count.clone().max(Expr::float(1.0, DType::F32));
            vec![total / no_less_than_one, count]
        };
        comm_reducer(merge, |t| vec![Expr::float(0.0, t[0]), Expr::float(0.0, t[1])], "mean")
    };
    assert!(mean().reduce(vec![a.at((0, &k)), Expr::float(1.0, DType::F32)], from_ref(&k)).is_ok());
    let error = mean().reduce(vec![a.at((0, &k)), Expr::float(0.5, DType::F32)], from_ref(&k));
    assert!(error.is_err(), "counts of a half are not added up before they reach 1");
    // One of equal values is kept, the left one: folded in order, whatever makes them equal.
    let argmax = || {
        let keep = |x: &[Expr], y: &[Expr]| {
            let left = x[1].clone().ge(y[1].clone());
            (0..2).map(|nth| Expr::select(left.clone(), x[nth].clone(), y[nth].clone())).collect()
        };
        let identity = |t: &[DType]| vec![Expr::int(-1), Expr::float(f64::NEG_INFINITY, t[1])];
        comm_reducer(keep, identity, "argmax")
    };
    let element = a.at((0, &k));
    let zero = Expr::float(0.0, DType::F32);
    let values = [
        element.clone(),
        element.clone().max(zero.clone()),
        element.gt(zero.clone()).cast(DType::F32),
        k.expr().floormod(Expr::int(3)).cast(DType::F32),
        zero,
    ];
    for value in values {
        let made = argmax().reduce(vec![k.expr(), value], from_ref(&k)).expect("a reduction");
        assert!(made.claims.associative && !made.claims.commutative, "{:?}", made.sources);
    }
    let one =
        comm_reducer(|x, y| vec![x[0].clone() + y[0].clone()], |t| vec![Expr::constant(1, t[0])], "one");
    let error = one.reduce(vec![a.at((0, &k))], from_ref(&k)).expect_err("1 is no identity").to_string();
    assert!(error.contains("identity"), "{error}");
    // What the combiner takes from its surroundings is a number like others, and what has no value claims nothing.
    let n = Var::new("n", DType::F32);
    let scaled = |by: Expr| {
        let combine = move |x: &[Expr], y: &[Expr]| vec![x[0].clone() + y[0].clone() * by.clone()];
        comm_reducer(combine, |t| vec![Expr::constant(0, t[0])], "scaled")
            .reduce(vec![a.at((0, &k))], from_ref(&k))
    };
    let error = scaled(n.expr() + Expr::float(1.0, DType::F32)).expect_err("not commutative").to_string();
    assert!(error.contains("`scaled` is refuted"), "{error}");
    let [made, nowhere] =
        [n.expr() / n.expr(), Expr::int(1).floordiv(Expr::int(0)).cast(DType::F32)].map(scaled);
    let made = made.expect("n over n is 1").claims;
    assert!(made.associative && made.commutative);
    assert_eq!(nowhere.expect("refuted by nothing").claims, none);
    let folded = pair(1, 1).fold(Expr::int(2), Expr::int(3));
    assert_eq!(folded, [Expr::int(2) + Expr::int(3)]);
}

#[test]
fn bodies_and_their_names() {
    let (n, m, a) = matrix();
    refused(
        compute(from_ref(&n), "B", |_| vec![Expr::int(0), Expr::int(1)]),
        "the body of `B` has 2 components; one makes a tensor, and a tuple of two or more makes as many tensors",
    );
    refused(
        compute_axes(&[n.clone(), m.clone()], &["i"], "B", |i| a.at(i)),
        "`B` has 2 dimensions and takes as many axis names, got 1",
    );
    refused(
        compute(from_ref(&n), "B", |_| Expr::int(0).broadcast_to(4)),
        "component 0 of `B` is int32x4; bodies are scalar expressions",
    );
    let pair = compute_tuple(&[n, m], "P", |i| vec![a.at(i), Expr::int(0)]).expect("tensors");
    let names: Vec<&str> = pair.iter().map(Tensor::name).collect();
    assert_eq!(names, ["P.v0", "P.v1"]);
    assert_eq!([pair[0].dtype(), pair[1].dtype()], [DType::F32, DType::I32]);
    let axes: Vec<&str> = pair[0].op().axes().iter().map(|a| a.name()).collect();
    assert_eq!(axes, ["i", "j"]);
}

#[test]
fn programs_list_what_they_need() {
    let (n, _, a) = matrix();
    let b = compute(from_ref(&n), "B", |i| a.at((&i[0], 0))).expect("a tensor");
    let c = compute(from_ref(&n), "C", |i| b.at(i)).expect("a tensor");
    let program = Program::new(from_ref(&c), &[a.clone(), c.clone()]).expect("a program");
    let order: Vec<&str> = program.ops().iter().map(|op| op.name()).collect();
    assert_eq!(order, ["A", "B", "C"]);
    refused(
        Program::new(from_ref(&c), from_ref(&c)),
        "`A` is read and is not among the arguments; they are `C`",
    );
    refused(
        Program::new(from_ref(&c), &[a.clone(), b.clone()]),
        "output `C` is not among the arguments; they are `A`, `B`",
    );
    refused(Program::new(from_ref(&a), from_ref(&a)), "`A` is an input; outputs are computed tensors");
    refused(
        Program::new(from_ref(&b), &[a.clone(), b.clone(), c.clone()]),
        "argument `C` takes no part in the outputs",
    );
    refused(
        Program::new(from_ref(&b), &[a.clone(), b.clone(), a.clone()]),
        "`A` is among the arguments twice",
    );
    refused(Program::new(&[], from_ref(&a)), "a program has at least one output");
    // Arguments that nobody reads come behind the others.
    let u = placeholder(&[var("t").expr()], DType::F32, "U").expect("a tensor");
    let further = program.with_args(&[u.clone(), c.clone(), a.clone(), b.clone()]).expect("a program");
    let args: Vec<&str> = further.args().iter().map(Tensor::name).collect();
    assert_eq!(args, ["A", "C", "U", "B"]);
    let d = compute(from_ref(&n), "D", |i| u.at(i)).expect("a tensor");
    refused(program.with_args(&[d]), "argument `D` takes no part in the outputs");
}

#[test]
fn an_operation_keeps_its_inputs_alive() {
    let n = var("n").expr();
    let c = {
        let a = placeholder(from_ref(&n), DType::F32, "A").expect("a tensor");
        let b = compute(from_ref(&n), "B", |i| a.at(i)).expect("a tensor");
        compute(from_ref(&n), "C", |i| b.at(i)).expect("a tensor")
    };
    let names: Vec<&str> = c.op().inputs()[0].inputs().iter().map(|op| op.name()).collect();
    assert_eq!(names, ["A"]);
    assert!(matches!(c.op().kind(), OpKind::Compute { body: Body::Plain(_), .. }));
    assert_eq!(reduce_axis_of(1, n, "k").dom().expect("a domain").0, &Expr::int(1));
}
