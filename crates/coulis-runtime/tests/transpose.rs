//! Groups of strided loads that the C emitter reads as contiguous vectors and transposes.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use std::sync::Arc;

use coulis_ir::{Buffer, Checked, DType, Expr, LoopKind, MemScope, Stmt, Var};
use coulis_runtime::{Cpu, CpuKind, CpuOptions, Device};
use support::{Random, decode, device, flat, run_kernel};

/// Types, each with the strides and lanes that are tried. Narrow floats take long to compile.
const CASES: [(DType, &[i64], &[u32]); 9] = [
    (DType::F32, &[2, 4, 8, 16], &[4, 8, 16]),
    (DType::F32, &[4, 32], &[2, 12, 32]),
    (DType::F64, &[2, 4, 8, 16], &[4, 8, 16]),
    (DType::I32, &[4, 16], &[8, 16]),
    (DType::U64, &[4, 16], &[2, 8]),
    (DType::I16, &[2, 8], &[8, 16, 32]),
    (DType::U8, &[2, 4, 16], &[8, 16, 64]),
    (DType::Bool, &[4], &[16]),
    (DType::F16, &[2, 4], &[8]),
];

fn int(value: i64) -> Expr {
    Expr::int_of(i128::from(value), DType::I64)
}

fn ramp(base: Expr, stride: i64, lanes: u32) -> Expr {
    Expr::ramp(base, int(stride), lanes)
}

fn buffer(name: &str, dtype: DType, n: i64) -> Buffer {
    Buffer::new(name, dtype, vec![int(n)], MemScope::Global)
}

fn executor() -> Arc<dyn Device> {
    Cpu::open(&CpuOptions { kind: CpuKind::Executed, n_threads: Some(2), ..CpuOptions::default() }).unwrap().0
}

fn source(checked: &Checked) -> String {
    device().compile(checked).unwrap().source().unwrap().to_owned()
}

/// Whether vectors are made one by one, of elements or of what lies around them.
fn has_lists(text: &str) -> bool {
    ["{A[", "{cx_load", "{-(i8)", "cx_load_every"].iter().any(|list| text.contains(list))
}

/// Loads of the first so many elements of rows of a length into as many lanes as there are rows.
#[derive(Clone, Copy)]
struct Shape {
    stride: i64,
    width: i64,
    lanes: u32,
}

#[test]
fn every_row_arrives_in_its_lane() {
    for (dtype, strides, lanes) in CASES {
        let of_stride =
            |&stride: &i64| lanes.iter().map(move |&lanes| Shape { stride, width: stride, lanes });
        check(dtype, &strides.iter().flat_map(of_stride).collect::<Vec<_>>(), true);
    }
}

#[test]
fn every_row_of_a_tile_arrives_in_its_lane() {
    let tile = |stride: i64, width: i64, lanes: u32| Shape { stride, width, lanes };
    check(DType::F32, &[tile(37, 8, 16), tile(64, 12, 8), tile(48, 2, 4)], true);
    check(DType::F64, &[tile(33, 6, 8), tile(5, 2, 4)], true);
    check(DType::F16, &[tile(49, 16, 16), tile(100, 4, 8)], true);
    check(DType::BF16, &[tile(49, 12, 16)], true);
    check(DType::U8, &[tile(40, 24, 64), tile(300, 16, 16)], true);
    check(DType::Bool, &[tile(40, 8, 16)], true);
    check(DType::I16, &[tile(35, 8, 32)], true);
    // What is left of a piece goes one by one.
    check(DType::F32, &[tile(37, 7, 16)], false);
}

/// Runs stores of such loads, two rounds of each, and compares their results; `no_lists`: that none is an element list.
#[track_caller]
fn check(dtype: DType, shapes: &[Shape], no_lists: bool) {
    const ROUNDS: i64 = 2;
    let span = |shape: &Shape| shape.stride * i64::from(shape.lanes);
    let stored = |shape: &Shape| shape.width * i64::from(shape.lanes);
    let largest = shapes.iter().map(span).max().unwrap();
    let total = shapes.iter().map(stored).sum::<i64>() * ROUNDS;
    let (a, o) = (buffer("A", dtype, largest * ROUNDS + 1), buffer("O", dtype, total));
    let (mut stmts, mut wanted, mut first) = (Vec::new(), Vec::new(), 0);
    for shape in shapes {
        let &Shape { stride, width, lanes } = shape;
        let round = Var::new("round", DType::I64);
        let (span, stored, count) = (span(shape), stored(shape), i64::from(lanes));
        let row = |j: i64| {
            let from = ramp(round.expr() * int(span) + int(j + 1), stride, lanes);
            let to = ramp(round.expr() * int(stored) + int(first + j * count), 1, lanes);
            Stmt::store(&o, [to], Expr::load(a.clone(), vec![from]))
        };
        // Not in order, so that a group begins at any member.
        let rows = Stmt::seq((0..width).map(|j| row((j + width / 2) % width)));
        stmts.push(Stmt::for_(round.clone(), int(0), int(ROUNDS), LoopKind::Serial, rows));
        for round in 0..ROUNDS {
            for j in 0..width {
                wanted.extend((0..count).map(|lane| round * span + 1 + j + lane * stride));
            }
        }
        first += stored * ROUNDS;
    }
    let body = Stmt::seq(stmts);
    let buffers = [a.clone(), o.clone()];
    let text = source(&flat("test", &buffers, body.clone()));
    assert_eq!(!has_lists(&text), no_lists, "{dtype}: of element lists in\n{text}");
    let n_elements = (largest * ROUNDS + 1) as usize;
    let input = Random::new(29).array(dtype, n_elements);
    let data = vec![input.clone(), vec![0; total as usize * dtype.bytes()]];
    let output = run_kernel(&device(), &buffers, body.clone(), data.clone()).remove(1);
    let executed = run_kernel(&executor(), &buffers, body, data).remove(1);
    assert!(output == executed, "{dtype}: the executor has other bits");
    for (at, &from) in wanted.iter().enumerate() {
        let (x, y) = (decode(dtype, &output, at), decode(dtype, &input, from as usize));
        assert!(x.same(y), "{dtype}: element {at} is {x:?}, want {y:?} from {from}");
    }
}

#[test]
fn a_store_between_the_members_is_seen() {
    let a = buffer("A", DType::F32, 32);
    let o = buffer("O", DType::F32, 32);
    let load = |j: i64| Expr::load(a.clone(), vec![ramp(int(j), 4, 8)]);
    let mut stmts = Vec::new();
    for j in 0..4 {
        stmts.push(Stmt::store(&o, [ramp(int(j * 8), 1, 8)], load(j)));
        if j == 1 {
            let ones = Expr::float(1.0, DType::F32).broadcast_to(8);
            stmts.push(Stmt::store(&a, [ramp(int(16), 1, 8)], ones));
        }
    }
    let body = Stmt::seq(stmts);
    let input: Vec<f32> = (0..32).map(|i| 100.0 + i as f32).collect();
    let data = vec![support::encode(&input), vec![0; 128]];
    let [compiled, executed] = [device(), executor()]
        .map(|device| run_kernel(&device, &[a.clone(), o.clone()], body.clone(), data.clone()));
    assert_eq!(compiled, executed);
}

#[test]
fn what_not_all_members_read_is_not_read() {
    let a = buffer("A", DType::F32, 64);
    let o = buffer("O", DType::F32, 64);
    let n = Var::new("n", DType::I64);
    let load = |j: i64| Expr::load(a.clone(), vec![ramp(int(j), 4, 8)]);
    let store = |j: i64| Stmt::store(&o, [ramp(int(j * 8), 1, 8)], load(j));
    let sometimes =
        |stmt| Stmt::if_(Expr::load(o.clone(), vec![int(0)]).gt(Expr::float(0.0, DType::F32)), stmt);
    let once = |stmts: Vec<Stmt>| Stmt::for_(n.clone(), int(0), int(2), LoopKind::Serial, Stmt::seq(stmts));
    let cases = [
        ("a member is missing", once(vec![store(0), store(1), store(3)]), true),
        ("a member is conditional", once(vec![store(0), sometimes(store(1)), store(2), store(3)]), true),
        ("all are there", once(vec![store(0), store(1), store(2), store(3)]), false),
        ("four others that follow each other", once(vec![store(4), store(1), store(2), store(3)]), false),
    ];
    for (what, body, lists) in cases {
        let text = source(&flat("test", &[a.clone(), o.clone()], body));
        assert_eq!(has_lists(&text), lists, "{what}:\n{text}");
    }
}
