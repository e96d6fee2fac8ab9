//! The forms that seed 003 prints, and the proofs that lowering asks for.

use crate::buffer::{Buffer, MemScope};
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, Intrinsic, Node, Var};
use crate::simplify::Analyzer;

/// Infix text, every operation in parentheses but the left operand of a sum.
fn text(expr: &Expr) -> String {
    let infix = |op: &BinaryOp| match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::FloorDiv => "//",
        BinaryOp::FloorMod => "%",
        BinaryOp::Lt => "<",
        BinaryOp::Le => "<=",
        BinaryOp::Gt => ">",
        BinaryOp::Ge => ">=",
        BinaryOp::Eq => "==",
        BinaryOp::Ne => "!=",
        BinaryOp::And => "and",
        BinaryOp::Or => "or",
        other => panic!("no sign for {other:?}"),
    };
    let closed = |e: &Expr| match e.node() {
        Node::Binary(op, ..) if !matches!(op, BinaryOp::Min | BinaryOp::Max) => format!("({})", text(e)),
        _ => text(e),
    };
    match expr.node() {
        Node::Int(value) => value.to_string(),
        Node::Float(bits) => format!("{:?}", f64::from_bits(*bits)),
        Node::Var(var) => var.name().to_owned(),
        Node::Binary(BinaryOp::Min, a, b) => format!("min({}, {})", text(a), text(b)),
        Node::Binary(BinaryOp::Max, a, b) => format!("max({}, {})", text(a), text(b)),
        Node::Binary(op, a, b) => {
            let product = matches!(a.node(), Node::Binary(BinaryOp::Mul, ..));
            let sum = matches!(a.node(), Node::Binary(BinaryOp::Add | BinaryOp::Sub, ..));
            let additive = matches!(op, BinaryOp::Add | BinaryOp::Sub);
            let comparison = op.is_comparison();
            let left = if product || (sum && (additive || comparison)) { text(a) } else { closed(a) };
            let right_product =
                matches!(b.node(), Node::Binary(BinaryOp::Mul, ..)) && (additive || comparison);
            let right = if right_product { text(b) } else { closed(b) };
            format!("{left} {} {right}", infix(op))
        }
        Node::Not(a) => format!("not {}", text(a)),
        Node::Cast(a) => format!("{}({})", expr.ty(), text(a)),
        Node::Call(Intrinsic::Likely, args) => format!("likely({})", text(&args[0])),
        Node::Load(buffer, indices) => format!("{}[{}]", buffer.name, text(&indices[0])),
        Node::Ramp(base, stride) => format!("ramp({}, {})", text(base), text(stride)),
        Node::Broadcast(a) => format!("all({})", text(a)),
        other => panic!("no text for {other:?}"),
    }
}

struct Names {
    io: Expr,
    ii: Expr,
    ko: Expr,
    ki: Expr,
    n: Expr,
    m: Expr,
    stride: Expr,
    tx: Expr,
    a: Analyzer,
}

/// `io, ii` split a row axis of 128 by 32, `ko, ki` an axis of `m` by 16; `tx` is a thread of 16.
fn names() -> Names {
    let size = |name: &str| Var::size(name, DType::I32);
    let loop_var = |name: &str| Var::new(name, DType::I32);
    let (n, m, stride) = (size("n"), size("m"), loop_var("stride"));
    let (io, ii, ko, ki, tx) =
        (loop_var("io"), loop_var("ii"), loop_var("ko"), loop_var("ki"), loop_var("tx"));
    let mut a = Analyzer::new();
    let zero = Expr::int(0);
    a.bind(&io, &zero, &Expr::int(4));
    a.bind(&ii, &zero, &Expr::int(32));
    a.bind(&ko, &zero, &(m.expr() + 15.into()).floordiv(16.into()));
    a.bind(&ki, &zero, &Expr::int(16));
    a.bind(&tx, &zero, &Expr::int(16));
    Names {
        io: io.expr(),
        ii: ii.expr(),
        ko: ko.expr(),
        ki: ki.expr(),
        n: n.expr(),
        m: m.expr(),
        stride: stride.expr(),
        tx: tx.expr(),
        a,
    }
}

fn c(value: i32) -> Expr {
    Expr::int(value)
}

#[test]
fn index_expressions_take_the_forms_of_the_seed() {
    let Names { io, ii, ko, ki, n, m, stride, tx, a } = names();
    let check = |expr: Expr, want: &str| assert_eq!(text(&a.simplify(&expr)), want);
    let (io, ii, ko, ki, n, m, stride, tx) = (&io, &ii, &ko, &ki, &n, &m, &stride, &tx);
    check(ki + &(ko * &c(16)), "ko * 16 + ki");
    check(&(ii + &(io * &c(32))) * stride, "(io * 32 + ii) * stride");
    check(
        &(&(ii + &(io * &c(32))) * stride) + &(&(ki + &(ko * &c(16))) * stride),
        "(io * 32 + ii) * stride + (ko * 16 + ki) * stride",
    );
    check((m + &c(15)).floordiv(c(16)), "(m + 15) // 16");
    check((&(n * &c(32)) + &c(31)).floordiv(c(32)), "n");
    check((n - &c(1)).floordiv(c(32)), "(n - 1) // 32");
    check(
        &(&(ko + &m.clone().floordiv(c(16))) * &c(16)) + tx,
        "((m // 16) * 16 + ko * 16) + tx".replace("((", "(").replace("16) + tx", "16 + tx").as_str(),
    );
    check(ki * n + io.clone(), "ki * n + io");
    check(ki + &(ko * n), "ki + ko * n");
    check(&(n * m) - &c(2), "n * m - 2");
    check(c(16) * n.clone(), "n * 16");
    check(&(n - &c(2)) * &(n - &c(2)), "(n - 2) * (n - 2)");
    check(io.clone() - io.clone() + c(3) - c(1), "2");
    check(c(5) - io.clone(), "5 - io");
    check((io * &c(2)) * n.clone(), "io * n * 2");
    check((m.clone().floormod(c(16)) + c(15)).floordiv(c(16)), "((m % 16) + 15) // 16");
    check((ii.clone() + io * &c(32)).floordiv(c(64)), "io // 2");
    check((ii.clone() + io * &c(32)).floormod(c(64)), "(io % 2) * 32 + ii");
    check(ii.clone().floordiv(c(8)) * c(8) + ii.clone().floormod(c(8)), "ii");
    check(ii.clone().floordiv(c(4)).floormod(c(2)), "(ii % 8) // 4");
    check((ii.clone() + c(64)).floormod(c(32)), "ii");
    check(m.clone().floordiv(c(4)).floordiv(c(4)), "m // 16");
    check((m.clone().floordiv(c(16)) + c(3)).floordiv(c(4)), "(m + 48) // 64");
}

#[test]
fn guards_take_the_forms_of_the_seed() {
    let Names { io, ii, ko, ki, n, m, tx, a, .. } = names();
    let check = |expr: Expr, want: &str| assert_eq!(text(&a.simplify(&expr)), want);
    let row = &ii + &(&io * &c(32));
    check(row.clone().lt(c(100)), "io * 8 + (ii // 4) < 25");
    check(row.clone().lt(c(96)), "io < 3");
    check(row.clone().lt(c(128)), "1");
    check(row.clone().ge(c(0)), "1");
    check(row.clone().lt(n.clone()), "io * 32 + ii < n");
    check(row.clone().lt(n.clone()).likely(), "likely(io * 32 + ii < n)");
    check((&ki + &(&ko * &c(16))).lt(m.clone()), "ko * 16 + ki < m");
    check(
        (m.clone().floordiv(c(16)) * c(16) + &ko * &c(16) + tx.clone()).lt(m.clone()),
        "(m // 16) * 16 + ko * 16 + tx < m",
    );
    check((&n - &io).gt(c(0)), "n > io");
    check((&io + &c(1)).le(n.clone()), "io < n");
    check((&io * &c(4)).lt(&n * &c(4)), "io < n");
    check((&io + &n).lt(&n + &c(2)), "io < 2");
    check(c(3).gt(io.clone()), "io < 3");
    check((&n * &c(2)).equal(c(7)), "0");
    check(row.clone().lt(n.clone()).and(row.clone().lt(n.clone())), "io * 32 + ii < n");
    check(row.clone().lt(n.clone()).and(row.clone().lt(&n + &c(7))), "io * 32 + ii < n");
    check(row.clone().lt(n.clone()).logical_not(), "io * 32 + ii >= n");
    check(ii.clone().min(c(40)), "ii");
    check((m.clone().floordiv(c(16))).max(c(0)), "m // 16");
    check((&m + &c(15)).floordiv(c(16)).min(m.clone().floordiv(c(16))), "m // 16");
}

#[test]
fn what_lowering_must_prove_is_proved() {
    let size = |name: &str| Var::size(name, DType::I32);
    let (n, m) = (size("n"), size("m"));
    let (i, ko, ki) = (size("i"), size("ko"), size("ki"));
    let mut a = Analyzer::new();
    a.bind(&ko, &c(0), &m.expr().floordiv(c(16)));
    a.bind(&ki, &c(0), &c(16));
    let index = ko.expr() * c(16) + ki.expr();
    assert!(a.can_prove(&index.clone().lt(m.expr())), "the main loop of a partition needs no guard");
    assert!(a.can_prove(&index.clone().ge(c(0))));
    assert!(!a.can_prove(&index.lt(m.expr() - c(1))), "the last element is reached");

    let mut a = Analyzer::new();
    a.bind(&ko, &c(0), &(m.expr() + c(15)).floordiv(c(16)));
    a.bind(&ki, &c(0), &c(16));
    let index = ko.expr() * c(16) + ki.expr();
    assert!(!a.can_prove(&index.clone().lt(m.expr())), "the guard of a ceiling split is needed");
    assert!(a.with(&index.clone().lt(m.expr())).can_prove(&index.lt(m.expr() + c(1))));

    let mut a = Analyzer::new();
    a.bind(&i, &c(0), &n.expr());
    assert!(a.can_prove(&((n.expr() - c(1)).floordiv(c(32)) * c(32)).lt(n.expr())));
    assert!(a.can_prove(&i.expr().floordiv(c(32)).le((n.expr() - c(1)).floordiv(c(32)))));
    assert!(a.can_prove(&n.expr().gt(c(0))), "a loop that runs has iterations");
    assert!(a.can_prove(&(i.expr() * m.expr()).le(n.expr() * m.expr())));
    assert!(!a.can_prove(&(i.expr() * m.expr()).lt(n.expr() * m.expr())));

    // A flattened index of a row-major array lies in the array.
    let mut a = Analyzer::new();
    let k = size("k");
    a.bind(&i, &c(0), &n.expr());
    a.bind(&k, &c(0), &m.expr());
    assert!(a.can_prove(&(i.expr() * m.expr() + k.expr()).lt(n.expr() * m.expr())));
    assert!(a.can_prove(&(i.expr() * m.expr() + k.expr()).floordiv(m.expr()).equal(i.expr())));
    assert!(a.can_prove(&(i.expr() * m.expr() + k.expr()).floormod(m.expr()).equal(k.expr())));

    // How far a row is from the next boundary of accesses.
    let mut a = Analyzer::new();
    a.bind(&i, &c(0), &c(1000));
    for length in [13, 4097, 4098, 4100] {
        let begin = i.expr() * c(length);
        let before = (begin.clone() + c(15)).floordiv(c(16)) * c(16) - begin.clone();
        assert!(a.can_prove(&before.clone().ge(c(0))), "{length}");
        assert!(a.can_prove(&before.clone().lt(c(16))), "{length}");
        assert!(length % 2 == 0 || !a.can_prove(&before.clone().lt(c(15))), "{length}");
        assert!(a.can_prove(&(begin + before).floormod(c(16)).equal(c(0))), "{length}");
    }

    // The tail of a partition, under its guard.
    let mut a = Analyzer::new();
    a.bind(&ko, &c(0), &(m.expr().floormod(c(16)) + c(15)).floordiv(c(16)));
    a.bind(&ki, &c(0), &c(16));
    let tail = m.expr().floordiv(c(16)) * c(16) + ko.expr() * c(16) + ki.expr();
    assert!(!a.can_prove(&tail.clone().lt(m.expr())));
    assert!(a.can_prove(&tail.clone().lt(m.expr() + c(16))));
    assert!(a.with(&tail.clone().lt(m.expr())).can_prove(&tail.lt(m.expr())));
}

#[test]
fn divisibility_is_used_where_it_is_known() {
    let n = Var::size("n", DType::I32);
    let a = Analyzer::new().with(&n.expr().floormod(c(32)).equal(c(0)));
    assert_eq!(text(&a.simplify(&(n.expr() + c(31)).floordiv(c(32)))), "n // 32");
    assert_eq!(text(&a.simplify(&(n.expr().floordiv(c(32)) * c(32)))), "n");
    assert_eq!(text(&a.simplify(&(n.expr() * c(2) + c(3)).floormod(c(32)))), "3");
    assert_eq!(
        text(&a.simplify(&(n.expr() * c(3) + c(40)).floordiv(c(64)))),
        "((n * 3) + 40) // 64".replace("((n * 3)", "(n * 3")
    );
    assert_eq!(a.modular(&(n.expr() * c(2) + c(3))), (64, 3));
    assert!(a.can_prove(&n.expr().not_equal(c(33))));
}

#[test]
fn values_from_memory_are_not_taken_for_indices() {
    let buffer = Buffer::new("W", DType::I32, vec![c(8)], MemScope::Global);
    let x = buffer.at([c(0)]);
    let a = Analyzer::new();
    assert!(!a.can_prove(&x.clone().lt(&x + &c(1))), "the sum may wrap");
    assert_eq!(a.simplify(&(&x - &x)), c(0), "which no difference of equals does");
    let wide = x.clone().cast(DType::I64);
    assert!(a.can_prove(&wide.clone().lt(wide + Expr::int_of(1, DType::I64))));
    let v = Var::new("v", DType::I32);
    assert!(a.can_prove(&v.expr().lt(v.expr() + c(1))));
    let mut a = Analyzer::new();
    a.bind_value(&v, &x);
    assert!(!a.can_prove(&v.expr().lt(v.expr() + c(1))));
    assert!(!a.can_prove(&v.expr().equal(x)), "the memory may have been written since");
}

#[test]
fn floats_keep_their_bits() {
    let x = Var::new("x", DType::F32).expr();
    let f = |v: f64| Expr::float(v, DType::F32);
    let a = Analyzer::new();
    let same = |e: Expr| assert_eq!(a.simplify(&e), e);
    same(&x - &x);
    same(&x * &f(0.0));
    same(&x + &f(0.0));
    same(&x / &f(3.0));
    same(x.clone().equal(x.clone()));
    same(f(f64::INFINITY) - f(f64::INFINITY));
    assert_eq!(a.simplify(&(&x * &f(1.0))), x);
    assert_eq!(a.simplify(&(&x - &f(0.0))), x);
    assert_eq!(a.simplify(&(f(0.1) + f(0.2))), f(f64::from(0.1f32 + 0.2f32)));
    assert_eq!(a.simplify(&Expr::float(1e-300, DType::F64).cast(DType::F32)), f(0.0));
    assert_eq!(a.simplify(&f(f64::NAN).cast(DType::I32)), c(0));
    assert_eq!(a.simplify(&f(3e9).cast(DType::I32)), c(i32::MAX));
    assert_eq!(a.simplify(&c(16_777_217).cast(DType::F32)), f(16_777_216.0));
}

#[test]
fn a_condition_is_used_in_the_arms_it_chooses() {
    let (i, n) = (Var::size("i", DType::I32).expr(), Var::size("n", DType::I32).expr());
    let a = Analyzer::new();
    let arm = i.clone().min(&n - &c(1));
    let got = a.simplify(&Expr::if_then_else(i.clone().lt(n.clone()), arm.clone(), c(0)));
    assert_eq!(got, Expr::if_then_else(i.clone().lt(n.clone()), i.clone(), c(0)));
    let both = Expr::select(i.clone().lt(n), arm, c(0));
    assert_eq!(a.simplify(&both), both, "both arms of a select are evaluated");
}

#[test]
fn vectors_of_indices_stay_ramps() {
    let Names { io, n, a, .. } = names();
    let ramp = Expr::ramp(c(0), c(1), 8);
    let index = (&io * &c(8)).broadcast_to(8) + ramp.clone() * c(2);
    assert_eq!(text(&a.simplify(&index)), "ramp(io * 8, 2)");
    assert!(a.can_prove(&ramp.clone().lt(c(8))));
    assert!(!a.can_prove(&ramp.clone().lt(c(7))));
    assert!(!a.can_prove(&ramp.lt(n)));
}

#[test]
fn bounds_and_classes_are_told() {
    let Names { io, ii, n, a, .. } = names();
    assert_eq!(a.const_bounds(&(&io * &c(32) + ii.clone())), (Some(0), Some(127)));
    assert_eq!(a.const_bounds(&(n.clone() - c(1))), (Some(-1), Some(i128::from(i32::MAX) - 1)));
    assert_eq!(a.const_bounds(&n), (Some(0), None));
    assert!(a.is_within(&(&io * &c(32) + ii.clone()), 0, 127));
    assert!(!a.is_within(&(&io * &c(32) + ii.clone()), 0, 126));
    assert!(!a.is_within(&n, 0, i128::from(i32::MAX) - 1));
    assert_eq!(a.modular(&(&io * &c(32) + c(5))), (32, 5));
}

#[test]
fn quotients_and_remainders_of_a_fused_loop_are_inside() {
    let size = |name: &str| Var::size(name, DType::I32);
    let (n, m) = (size("n"), size("m"));
    for raised in [false, true] {
        let inner = if raised { Expr::max(m.expr(), Expr::int(1)) } else { m.expr() };
        let f = Var::new("f", DType::I32);
        let mut known = Analyzer::new();
        known.bind(&f, &Expr::int(0), &(&n.expr() * &inner));
        let quotient = Expr::binary(BinaryOp::FloorDiv, f.expr(), inner.clone());
        let remainder = Expr::binary(BinaryOp::FloorMod, f.expr(), inner.clone());
        for (value, extent) in [(quotient, n.expr()), (remainder, inner)] {
            assert!(known.can_prove(&Expr::int(0).le(value.clone())), "{raised} {value:?}");
            assert!(known.can_prove(&value.clone().lt(extent)), "{raised} {value:?}");
        }
    }
}

#[test]
fn a_condition_on_an_index_of_few_values_is_decided_in_each_case() {
    let (b, k) = (Var::size("b", DType::I32), Var::size("k", DType::I32));
    let mut a = Analyzer::new();
    a.bind(&b, &c(0), &c(2));
    a.bind(&k, &c(0), &c(4));
    let steps = (c(2) - b.expr() * c(5)).floordiv(c(4));
    // 0 and more for `b` of 0, 64 and more for 1.
    let at = b.expr() * c(320) + steps * c(256) + k.expr();
    let below = |least: i32| at.clone().lt(c(least));
    assert!(!a.simplify(&below(0)).is_int(0), "bounds show it");
    assert!(a.fails_in_each_case(&below(0)));
    assert!(!a.fails_in_each_case(&below(1)));
    assert!(!a.fails_in_each_case(&b.expr().lt(c(0))), "nothing is divided");
}

#[test]
fn words_that_go_on_from_one_group_to_the_next_are_one_piece() {
    let (b, t, s) = (Var::size("b", DType::I32), Var::size("t", DType::I32), Var::size("s", DType::I32));
    let mut a = Analyzer::new();
    for (var, extent) in [(&b, 640), (&t, 256), (&s, 8)] {
        a.bind(var, &c(0), &c(extent));
    }
    // Groups of 10 in rows of 320: the remainder is that of another dividend, of which whole rows have been left out.
    let word = (b.expr() * c(16) + t.expr()).floormod(c(40)) * c(8) + s.expr();
    let piece = |by: i32| {
        let rest = (b.expr() * c(8) + t.expr() * c(8) + s.expr()).floormod(c(by));
        a.simplify(&(word.clone().floordiv(c(by)) * c(by) + rest))
    };
    assert_eq!(piece(10), a.simplify(&word));
    assert_ne!(piece(7), a.simplify(&word), "rows of 320 are no whole groups of 7");
}

#[test]
fn a_quotient_by_a_constant_goes_where_a_condition_says_that_the_rest_is_one_digit() {
    let size = |name: &str| Var::size(name, DType::I32);
    let (row, strip, vector, lane) = (size("row"), size("strip"), size("vector"), size("lane"));
    for length in [14_536, 14_537] {
        let mut a = Analyzer::new();
        for (var, extent) in [(&row, 112), (&strip, 29), (&vector, 8), (&lane, 64)] {
            a.bind(var, &c(0), &c(extent));
        }
        let inside = strip.expr() * c(512) + vector.expr() * c(64) + lane.expr();
        let at = row.expr() * c(length) + inside.clone();
        let (quotient, rest) = (at.clone().floordiv(c(length)), at.floormod(c(length)));
        assert_ne!(a.simplify(&quotient), row.expr(), "29 strips are longer than a row");
        // The guard of the last strip, as it is written where a factor of the strip divides the length, too.
        for guard in [inside.clone().lt(c(length)), a.simplify(&inside.clone().lt(c(length)))] {
            let known = a.with(&guard);
            assert_eq!(known.simplify(&quotient), row.expr(), "{length}");
            assert_eq!(known.simplify(&rest), a.simplify(&inside), "{length}");
        }
        let wide = a.with(&inside.clone().lt(c(length + 1)));
        assert_ne!(wide.simplify(&rest), a.simplify(&inside), "one element more");
    }
}
