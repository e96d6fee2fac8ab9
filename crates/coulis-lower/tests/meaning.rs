//! Lowering keeps the meaning of a kernel: random nests run before and after, on the test interpreter.

mod common;

use std::collections::BTreeMap;

use common::{Array, Val, lowered, run};
use coulis_ir::expr::{Expr, Var};
use coulis_ir::{Buffer, DType, Form, Kernel, LoopKind, MemScope, Param, Stmt};
use proptest::prelude::*;

/// How an axis is cut in loops.
#[derive(Clone, Debug)]
struct Cut {
    /// Inner extent, or no split.
    factor: Option<i32>,
    outer: LoopKind,
    inner: LoopKind,
}

/// What the loops around the update do to its state.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Body {
    /// `B[i] += A[i, k]`
    Sum,
    /// `if A[i, k] > 3: B[i] += A[i, k]`, a guard on data.
    Where,
    /// `B[i], C[i] = argmax` with both components computed before either is stored.
    ArgMax,
    /// As `ArgMax`, stored under a guard on data that reads the state.
    GuardedArgMax,
    /// `t = A[i, k] * 2` in a buffer allocated in the loops, then `B[i] += t`.
    Temporary,
}

#[derive(Clone, Debug)]
struct Nest {
    i: Cut,
    k: Cut,
    /// Whether the loops of `k` are outside those of `i`.
    k_first: bool,
    /// Whether the inner loops of both come after the outer loops of both.
    tiled: bool,
    strided: bool,
    dtype: DType,
    body: Body,
}

/// The loops of an axis, its index, and its guard where it is split.
fn loops_of(axis: &str, extent: &Expr, cut: &Cut) -> (Vec<(Var, Expr, LoopKind)>, Expr, Option<Expr>) {
    let Some(factor) = cut.factor else {
        let var = Var::new(axis, DType::I32);
        return (vec![(var.clone(), extent.clone(), cut.outer)], var.expr(), None);
    };
    let (outer, inner) =
        (Var::new(&format!("{axis}.outer"), DType::I32), Var::new(&format!("{axis}.inner"), DType::I32));
    let n = (extent.clone() + Expr::int(factor - 1)).floordiv(Expr::int(factor));
    let index = outer.expr() * Expr::int(factor) + inner.expr();
    let guard = index.clone().lt(extent.clone()).likely();
    let loops = vec![(outer, n, cut.outer), (inner, Expr::int(factor), cut.inner)];
    (loops, index, Some(guard))
}

fn wrap(loops: &[(Var, Expr, LoopKind)], body: Stmt) -> Stmt {
    loops.iter().rev().fold(body, |body, (var, extent, kind)| {
        Stmt::for_(var.clone(), Expr::int(0), extent.clone(), *kind, body)
    })
}

fn guarded(guards: [&Option<Expr>; 2], body: Stmt) -> Stmt {
    guards.into_iter().flatten().rev().fold(body, |body, g| Stmt::if_(g.clone(), body))
}

fn input(name: &str, shape: &[&Expr], dtype: DType, strided: bool) -> (Param, Buffer) {
    let shape: Vec<Expr> = shape.iter().map(|e| (*e).clone()).collect();
    let strides = shape.iter().map(|_| Var::new("stride", DType::I32).expr()).collect();
    let buffer = Buffer::new(name, dtype, shape, MemScope::Global);
    let buffer = if strided { buffer.derive(|b| b.strides = strides) } else { buffer };
    (Param::Buffer { handle: Var::handle(name), buffer: buffer.clone() }, buffer)
}

fn kernel_of(nest: &Nest) -> Kernel {
    let (n, m) = (Var::size("n", DType::I32).expr(), Var::size("m", DType::I32).expr());
    let (a_param, a) = input("A", &[&n, &m], nest.dtype, nest.strided);
    let (b_param, b) = input("B", &[&n], nest.dtype, nest.strided);
    let (c_param, c) = input("C", &[&n], DType::I32, false);
    let i0 = Var::new("i", DType::I32);
    let least = Expr::constant(-100, nest.dtype);
    let init = Stmt::range(
        i0.clone(),
        n.clone(),
        Stmt::seq([
            Stmt::store(
                &b,
                vec![i0.expr()],
                if nest.body == Body::Sum { Expr::constant(0, nest.dtype) } else { least },
            ),
            Stmt::store(&c, vec![i0.expr()], Expr::int(-1)),
        ]),
    );
    let (i_loops, i, i_guard) = loops_of("i", &n, &nest.i);
    let (k_loops, k, k_guard) = loops_of("k", &m, &nest.k);
    let (x, state, place) = (a.at([i.clone(), k.clone()]), b.at([i.clone()]), c.at([i.clone()]));
    let add = |value: Expr| Stmt::store(&b, vec![i.clone()], state.clone() + value);
    let tuple = |lets: bool| {
        let better = state.clone().lt(x.clone());
        let value = Expr::select(better.clone(), x.clone(), state.clone());
        let index = Expr::select(better, k.clone(), place.clone());
        if lets {
            let (v, w) = (Var::new("v0", nest.dtype), Var::new("v1", DType::I32));
            let stores = Stmt::seq([
                Stmt::store(&b, vec![i.clone()], v.expr()),
                Stmt::store(&c, vec![i.clone()], w.expr()),
            ]);
            Stmt::let_(v, value, Stmt::let_(w, index, stores))
        } else {
            Stmt::if_(
                state.clone().lt(x.clone()),
                Stmt::seq([
                    Stmt::store(&b, vec![i.clone()], x.clone()),
                    Stmt::store(&c, vec![i.clone()], k.clone()),
                ]),
            )
        }
    };
    let body = match nest.body {
        Body::Sum => add(x),
        Body::Where => Stmt::if_(Expr::constant(3, nest.dtype).lt(x.clone()), add(x)),
        Body::ArgMax => tuple(true),
        Body::GuardedArgMax => tuple(false),
        Body::Temporary => {
            let t = Buffer::new("t", nest.dtype, vec![Expr::int(1)], MemScope::Local);
            let keep = Stmt::store(&t, vec![Expr::int(0)], x * Expr::constant(2, nest.dtype));
            Stmt::allocate(t.clone(), Stmt::seq([keep, add(t.at([Expr::int(0)]))]))
        }
    };
    let (first, second) = if nest.k_first { (k_loops, i_loops) } else { (i_loops, k_loops) };
    let mut loops = Vec::new();
    if nest.tiled && first.len() == 2 && second.len() == 2 {
        loops.extend([first[0].clone(), second[0].clone(), first[1].clone(), second[1].clone()]);
    } else {
        loops.extend(first);
        loops.extend(second);
    }
    let update = wrap(&loops, guarded([&i_guard, &k_guard], body));
    Kernel {
        name: "main".to_owned(),
        params: vec![a_param, b_param, c_param],
        attrs: BTreeMap::new(),
        form: Form::Nest,
        body: Stmt::seq([init, update]),
    }
}

fn array(shape: &[i128], dtype: DType, gap: i128, seed: u64) -> Array {
    let mut strides = vec![gap; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis].max(1) + (gap - 1);
    }
    let size = shape.iter().zip(&strides).map(|(n, s)| (n - 1).max(0) * s).sum::<i128>() + 1;
    let size = if shape.contains(&0) { 0 } else { size };
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
    let data = (0..size)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let v = (state % 17) as i128 - 8;
            if dtype.is_float() { Val::Float(v as f64) } else { Val::Int(v) }
        })
        .collect();
    Array { data, shape: shape.to_vec(), strides }
}

fn cut(reduce: bool) -> impl Strategy<Value = Cut> {
    let outer = prop_oneof![Just(LoopKind::Serial), Just(LoopKind::Serial), Just(LoopKind::Parallel)];
    let inner = prop_oneof![Just(LoopKind::Serial), Just(LoopKind::Unrolled), Just(LoopKind::Vectorized)];
    let factor = prop_oneof![
        Just(None),
        prop_oneof![Just(1), Just(2), Just(3), Just(4), Just(5), Just(16)].prop_map(Some)
    ];
    (factor, outer, inner).prop_map(move |(factor, outer, inner)| Cut {
        factor,
        outer: if reduce { LoopKind::Serial } else { outer },
        inner,
    })
}

fn nest() -> impl Strategy<Value = Nest> {
    let body = prop_oneof![
        Just(Body::Sum),
        Just(Body::Where),
        Just(Body::ArgMax),
        Just(Body::GuardedArgMax),
        Just(Body::Temporary)
    ];
    let dtype = prop_oneof![Just(DType::F64), Just(DType::I64)];
    (cut(false), cut(true), any::<bool>(), any::<bool>(), any::<bool>(), dtype, body).prop_map(
        |(i, k, k_first, tiled, strided, dtype, body)| Nest { i, k, k_first, tiled, strided, dtype, body },
    )
}

/// Lowers once and runs on every set of arguments.
fn check(kernel: &Kernel, calls: &[Vec<Array>]) {
    for simple in [true, false] {
        let flat = lowered(kernel, simple);
        for args in calls {
            let (want, got) = (run(kernel, args), run(&flat, args));
            for (w, g) in want.iter().zip(&got) {
                assert_eq!(
                    w.data,
                    g.data,
                    "simple mode {simple}:\n{}",
                    coulis_ir::print::print_kernel(&flat)
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 40,
        failure_persistence: None,
        rng_seed: proptest::test_runner::RngSeed::Fixed(7),
        ..ProptestConfig::default()
    })]

    #[test]
    fn lowering_keeps_the_meaning_of_split_and_vectorized_reductions(
        nest in nest(),
        sizes in proptest::collection::vec((0i128..20, 0i128..20), 4),
        gap in 1i128..3,
        seed in any::<u64>()
    ) {
        let gap = if nest.strided { gap } else { 1 };
        let calls: Vec<Vec<Array>> = sizes
            .into_iter()
            .chain([(16, 16), (0, 5), (5, 0)])
            .map(|(n, m)| {
                vec![
                    array(&[n, m], nest.dtype, gap, seed),
                    array(&[n], nest.dtype, gap, seed ^ 1),
                    array(&[n], DType::I32, 1, seed ^ 2),
                ]
            })
            .collect();
        check(&kernel_of(&nest), &calls);
    }
}

/// A row sum with `unrolled * lanes` partial sums in a local buffer, as the CPU plans make it.
fn factored_sum(unrolled: i32, lanes: i32) -> Kernel {
    let (n, m) = (Var::size("n", DType::I32).expr(), Var::size("m", DType::I32).expr());
    let (a_param, a) = input("A", &[&n, &m], DType::F64, false);
    let (b_param, b) = input("B", &[&n], DType::F64, false);
    let step = unrolled * lanes;
    let s = Buffer::new("S.rf", DType::F64, vec![Expr::int(unrolled), Expr::int(lanes)], MemScope::Local);
    let var = |name: &str| Var::new(name, DType::I32);
    let (i, ko) = (var("i"), var("k.outer"));
    let zero = Expr::float(0.0, DType::F64);
    let nest = |body: &dyn Fn(Expr, Expr) -> Stmt, kinds: [LoopKind; 2]| {
        let (u, l) = (var("u"), var("l"));
        let inner = body(u.expr(), l.expr());
        let inner = Stmt::for_(l, Expr::int(0), Expr::int(lanes), kinds[1], inner);
        Stmt::for_(u, Expr::int(0), Expr::int(unrolled), kinds[0], inner)
    };
    let kinds = [LoopKind::Unrolled, LoopKind::Vectorized];
    let init = nest(&|u, l| Stmt::store(&s, vec![u, l], zero.clone()), kinds);
    let update = nest(
        &|u, l| {
            let k = ko.expr() * Expr::int(step) + u.clone() * Expr::int(lanes) + l.clone();
            let add = a.at([i.expr(), k.clone()]) + s.at([u.clone(), l.clone()]);
            Stmt::if_(k.lt(m.clone()).likely(), Stmt::store(&s, vec![u, l], add))
        },
        kinds,
    );
    let update = Stmt::range(ko.clone(), (m + Expr::int(step - 1)).floordiv(Expr::int(step)), update);
    let fold = nest(
        &|u, l| Stmt::store(&b, vec![i.expr()], b.at([i.expr()]) + s.at([u, l])),
        [LoopKind::Serial, LoopKind::Serial],
    );
    let row = Stmt::seq([init, update, Stmt::store(&b, vec![i.expr()], zero.clone()), fold]);
    let body = Stmt::for_(i.clone(), Expr::int(0), n, LoopKind::Parallel, Stmt::allocate(s.clone(), row));
    Kernel {
        name: "main".to_owned(),
        params: vec![a_param, b_param],
        attrs: BTreeMap::new(),
        form: Form::Nest,
        body,
    }
}

#[test]
fn a_factored_row_sum_is_right_at_every_length() {
    for (unrolled, lanes) in [(1, 4), (4, 4), (2, 16), (1, 64)] {
        let kernel = factored_sum(unrolled, lanes);
        let step = i128::from(unrolled * lanes);
        let lengths = (0..2 * step + 3).filter(|m| step <= 16 || m % 7 < 2);
        let calls: Vec<Vec<Array>> =
            lengths.map(|m| vec![array(&[3, m], DType::F64, 1, 5), array(&[3], DType::F64, 1, 6)]).collect();
        check(&kernel, &calls);
    }
}
