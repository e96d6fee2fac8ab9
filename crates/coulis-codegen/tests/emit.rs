//! Whole texts of a few small kernels, frozen. `BLESS=1` writes them anew; read every line before you keep one.

#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::PathBuf;

use coulis_codegen::{DIALECTS, EmitError, Options, dialect_named, emit};
use coulis_ir::verify::verify;
use coulis_ir::{
    BinaryOp, Buffer, DType, Expr, Form, Intrinsic, Kernel, LoopKind, MemScope, Param, Stmt, Target, Var,
};

const OPTIONS: Options = Options { vector_bytes: 64, widens_from_memory: true, ends_early: false };

fn kernel(name: &str, params: Vec<Param>, body: Stmt) -> Kernel {
    Kernel { name: name.to_owned(), params, attrs: Default::default(), form: Form::Flat, body }
}

fn param(buffer: &Buffer) -> Param {
    Param::Buffer { handle: Var::handle(&format!("{}_ptr", buffer.name)), buffer: buffer.clone() }
}

fn i64c(value: i128) -> Expr {
    Expr::int_of(value, DType::I64)
}

fn at(buffer: &Buffer, index: Expr) -> Expr {
    Expr::load(buffer.clone(), vec![index])
}

fn ramp(base: Expr, lanes: u32) -> Expr {
    let one = Expr::int_of(1, base.dtype());
    Expr::ramp(base, one, lanes)
}

#[track_caller]
fn check(kernel: Kernel, options: Options) {
    let name = kernel.name.clone();
    let checked = verify(kernel).unwrap_or_else(|faults| panic!("{faults:?}"));
    let dialect = dialect_named("c").unwrap();
    let text = emit(&checked, dialect, options).unwrap().text;
    assert_eq!(text, emit(&checked, dialect, options).unwrap().text, "the same input gives the same text");
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/files/emit/c").join(name + ".c");
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &text).unwrap();
    }
    let frozen = fs::read_to_string(&path).unwrap_or_default();
    assert!(text == frozen, "{} differs; BLESS=1 writes:\n{text}", path.display());
}

/// Row sums of `float32` with a `float64` state of 4 vectors of 16 lanes, rows in parallel, a scalar tail.
fn row_sum() -> Kernel {
    let (n, m) = (Var::size("n", DType::I64), Var::size("m", DType::I64));
    let a = Buffer::new("A", DType::F32, vec![n.expr(), m.expr()], MemScope::Global);
    let o = Buffer::new("O", DType::F32, vec![n.expr()], MemScope::Global);
    let s = Buffer::new("S.rf", DType::F64, vec![Expr::int(64)], MemScope::Local);
    let t = Buffer::new("S", DType::F64, vec![Expr::int(1)], MemScope::Local);
    let (i, ko, u, kt, l) = (
        Var::size("i", DType::I64),
        Var::size("k.o", DType::I64),
        Var::size("u", DType::I64),
        Var::size("k.t", DType::I64),
        Var::size("l", DType::I64),
    );
    let zero = |lanes| Expr::float(0.0, DType::F64).broadcast_to(lanes);
    let unroll = |v: &Var, count, body| Stmt::for_(v.clone(), i64c(0), i64c(count), LoopKind::Unrolled, body);
    let place = ramp(u.expr() * i64c(16), 16);
    let element = ramp(i.expr() * m.expr() + ko.expr() * i64c(64) + u.expr() * i64c(16), 16);
    let main_extent = m.expr().floordiv(i64c(64));
    let body = Stmt::seq([
        unroll(&u, 4, Stmt::store(&s, [place.clone()], zero(16))),
        Stmt::range(
            ko.clone(),
            main_extent.clone(),
            unroll(
                &u,
                4,
                Stmt::store(&s, [place.clone()], at(&s, place.clone()) + at(&a, element).cast(DType::F64)),
            ),
        ),
        Stmt::store(&t, [i64c(0)], zero(1)),
        unroll(&l, 64, Stmt::store(&t, [i64c(0)], at(&t, i64c(0)) + at(&s, l.expr()))),
        Stmt::for_(
            kt.clone(),
            main_extent.clone() * i64c(64),
            m.expr() - main_extent * i64c(64),
            LoopKind::Serial,
            Stmt::store(
                &t,
                [i64c(0)],
                at(&t, i64c(0)) + at(&a, i.expr() * m.expr() + kt.expr()).cast(DType::F64),
            ),
        ),
        Stmt::store(&o, [i.expr()], at(&t, i64c(0)).cast(DType::F32)),
    ]);
    let rows =
        Stmt::for_(i, i64c(0), n.expr(), LoopKind::Parallel, Stmt::allocate(s, Stmt::allocate(t, body)));
    kernel("row_sum", vec![param(&a), param(&o)], rows)
}

#[test]
fn a_row_sum_keeps_its_accumulators_in_registers() {
    check(row_sum(), OPTIONS);
}

#[test]
fn narrower_machines_get_more_parts() {
    let mut narrow = row_sum();
    narrow.name = "row_sum_16_bytes".to_owned();
    check(narrow, Options { vector_bytes: 16, widens_from_memory: true, ends_early: false });
}

#[test]
fn a_part_of_a_short_element_is_added_in_one_operation() {
    let a = Buffer::new("A", DType::BF16, vec![i64c(16)], MemScope::Global);
    let (sums, devs) = (Buffer::new("S", DType::F32, vec![i64c(16)], MemScope::Global), DType::F64);
    let squares = Buffer::new("Q", devs, vec![i64c(16)], MemScope::Global);
    let all = ramp(i64c(0), 16);
    let part = at(&a, all.clone()).cast(DType::F32) * Expr::float(0.0625, DType::F32).broadcast_to(16);
    let old = at(&sums, all.clone());
    let dev = (&part - &old).cast(DType::F64);
    let body = Stmt::seq([
        Stmt::store(&squares, vec![all.clone()], at(&squares, all.clone()) + &dev * &dev),
        Stmt::store(&sums, vec![all], &old + &part),
    ]);
    let params = vec![param(&a), param(&sums), param(&squares)];
    check(kernel("sixteenths", params, body), OPTIONS);
}

#[test]
fn short_elements_widen_by_one_shuffle() {
    let a = Buffer::new("A", DType::BF16, vec![i64c(12)], MemScope::Global);
    let o = Buffer::new("O", DType::F32, vec![i64c(12)], MemScope::Global);
    let copy = |first, lanes| {
        let places = ramp(i64c(first), lanes);
        Stmt::store(&o, vec![places.clone()], at(&a, places).cast(DType::F32))
    };
    let body = Stmt::seq([copy(0, 8), copy(8, 4)]);
    check(kernel("upper_halves", vec![param(&a), param(&o)], body), OPTIONS);
}

#[test]
fn flags_that_fill_a_vector_are_asked_at_once() {
    let flags = Buffer::new("F", DType::I32, vec![i64c(12)], MemScope::Global);
    let o = Buffer::new("O", DType::I32, vec![i64c(4)], MemScope::Global);
    let any = |places: &[i128]| {
        let all = places.iter().map(|&place| at(&flags, i64c(place)));
        let all = all.reduce(|a, b| Expr::binary(BinaryOp::BitOr, a, b)).unwrap();
        all.not_equal(Expr::int_of(0, DType::I32))
    };
    let asked = [&[0, 1, 2, 3, 4, 5, 6, 7][..], &[4, 5, 6, 7], &[0, 1, 2], &[0, 1, 2, 4]];
    let body = asked.iter().enumerate().map(|(i, places)| {
        Stmt::if_(any(places), Stmt::store(&o, vec![i64c(i as i128)], Expr::int_of(1, DType::I32)))
    });
    let params = vec![param(&flags), param(&o)];
    check(kernel("any_of_flags", params, Stmt::seq(body)), OPTIONS);
}

#[test]
fn scalar_code_shares_indices_and_guards_loads() {
    let n = Var::size("n", DType::I32);
    let stride = Var::new("stride", DType::I32);
    let strided = |name: &str| {
        Buffer::new(name, DType::F32, vec![n.expr()], MemScope::Global)
            .derive(|b| b.strides = vec![stride.expr()])
    };
    let (a, o) = (strided("for"), strided("f32"));
    let i = Var::size("i", DType::I32);
    let place = i.expr() * stride.expr();
    let inside = i.expr().lt(n.expr() - Expr::int(1));
    let next = Expr::if_then_else(
        inside,
        at(&a, (i.expr() + Expr::int(1)) * stride.expr()),
        Expr::float(f64::NEG_INFINITY, DType::F32),
    );
    let x = at(&a, place.clone());
    let scaled = Expr::call1(Intrinsic::Exp, x.clone() - x.clone().max(next)) * x;
    let body = Stmt::range(
        i.clone(),
        n.expr(),
        Stmt::if_(at(&a, place.clone()).gt(Expr::float(0.0, DType::F32)), Stmt::store(&o, [place], scaled)),
    );
    check(kernel("scalars", vec![param(&a), param(&o)], body), OPTIONS);
}

#[test]
fn elements_a_few_apart_are_read_in_vectors_that_end_where_they_do() {
    let buffer = |name: &str, dtype| Buffer::new(name, dtype, vec![i64c(64)], MemScope::Global);
    let kinds = [("A", DType::I8, 2), ("B", DType::F32, -1), ("C", DType::F16, 3), ("D", DType::Bool, -2)];
    let inputs = kinds.map(|(name, dtype, step)| (buffer(name, dtype), step));
    let sum = buffer("S", DType::F32);
    let first = |step: i128| i64c(if step < 0 { -7 * step } else { 0 });
    let elements = inputs.iter().map(|(b, step)| {
        let read = at(b, Expr::ramp(first(*step), i64c(*step), 8));
        if b.dtype == DType::F32 { read } else { read.cast(DType::F32) }
    });
    let total = elements.reduce(|a, b| a + b).unwrap();
    // More apart than half as many as there are: one by one.
    let far = at(&inputs[1].0, Expr::ramp(i64c(0), i64c(5), 8));
    let body = Stmt::store(&sum, [ramp(i64c(0), 8)], total + far);
    let params = inputs.iter().map(|(b, _)| param(b)).chain([param(&sum)]).collect();
    check(kernel("every_few", params, body), OPTIONS);
}

#[test]
fn few_halves_and_single_ones_are_widened_by_hardware_that_can() {
    let halves = Buffer::new("A", DType::F16, vec![i64c(5)], MemScope::Global);
    let floats = Buffer::new("S", DType::F32, vec![i64c(5)], MemScope::Global);
    let widened =
        |index: Expr| Stmt::store(&floats, vec![index.clone()], at(&halves, index).cast(DType::F32));
    let body = Stmt::seq([widened(ramp(i64c(0), 4)), widened(i64c(4))]);
    check(kernel("five_halves", vec![param(&halves), param(&floats)], body), OPTIONS);
}

#[test]
fn a_tiled_kernel_is_refused_by_its_form() {
    let mut tiled = row_sum();
    tiled.form = Form::Nest;
    tiled.body = Stmt::NOP;
    let checked = verify(tiled).unwrap_or_else(|faults| panic!("{faults:?}"));
    let refused = emit(&checked, DIALECTS[0], OPTIONS).unwrap_err();
    assert_eq!(refused, EmitError::Form { kernel: "row_sum".to_owned(), found: "Nest" });
}

#[test]
fn an_unknown_dialect_is_answered_with_the_known_ones() {
    let refused = dialect_named("fortran").err().unwrap();
    assert_eq!(refused.to_string(), "no dialect `fortran`; dialects are c, cuda");
}

#[test]
fn options_follow_the_width_of_the_target() {
    for (bytes, want) in [(1, 8), (16, 16), (48, 32), (64, 64), (8192, 64)] {
        let target = Target::cpu(bytes, 1);
        assert_eq!(Options::for_target(&target).vector_bytes, want);
    }
}

#[test]
fn positions_in_narrower_integers_are_counted_in_these() {
    let a = Buffer::new("A", DType::I32, vec![i64c(64)], MemScope::Global);
    let i = Var::size("i", DType::I64);
    let place = ramp(i.expr() * i64c(16), 16);
    let store = Stmt::store(&a, [place.clone()], place.cast(DType::I32));
    let body = Stmt::range(i, i64c(4), store);
    let checked =
        verify(kernel("positions", vec![param(&a)], body)).unwrap_or_else(|faults| panic!("{faults:?}"));
    let text = emit(&checked, dialect_named("c").unwrap(), OPTIONS).unwrap().text;
    assert!(text.contains("i32x16") && !text.contains("i64x8") && !text.contains("convert"), "{text}");
}

/// gcc takes bytes that become wider, or are made of words, apart one by one where it is not told otherwise.
#[test]
fn masks_change_their_width_in_whole_registers() {
    let of = |name: &str, dtype| Buffer::new(name, dtype, vec![i64c(64)], MemScope::Global);
    let text = |from: DType, to: DType| {
        let (a, b, i) = (of("A", from), of("B", to), Var::size("i", DType::I64));
        let place = ramp(i.expr() * i64c(8), 8);
        let below = at(&a, place.clone()).lt(Expr::int_of(0, from).broadcast_to(8));
        let chosen = Expr::select(below, Expr::int_of(5, to), Expr::int_of(7, to));
        let body = Stmt::range(i, i64c(8), Stmt::store(&b, [place], chosen));
        let checked = verify(kernel("masks", vec![param(&a), param(&b)], body));
        let checked = checked.unwrap_or_else(|faults| panic!("{faults:?}"));
        let options = Options { vector_bytes: 32, widens_from_memory: true, ends_early: false };
        emit(&checked, dialect_named("c").unwrap(), options).unwrap().text
    };
    let wider = text(DType::I8, DType::I32);
    assert!(wider.contains("return (m32x8)__builtin_ia32_pmovsxbd256("), "{wider}");
    let narrower = text(DType::I32, DType::I8);
    let steps = "__builtin_convertvector(__builtin_convertvector(a, i16x8), m8x8)";
    assert!(narrower.contains(steps), "{narrower}");
}
