//! Stores past the caches: the same bits in the same places, whether these are aligned or not.

#![allow(clippy::unwrap_used, reason = "tests")]

mod support;

use coulis_ir::{Attr, Buffer, DType, Expr, LoopKind, MemScope, Stmt, Var};
use support::{Random, device, flat, run_kernel};

const ROWS: i64 = 40;

fn int(value: i64) -> Expr {
    Expr::int_of(i128::from(value), DType::I64)
}

fn under(key: &str, value: i64, body: Stmt) -> Stmt {
    Stmt::Annotate { node: None, key: key.to_owned(), value: Attr::Int(value), body: Box::new(body) }
}

/// Copies rows of so many lanes to places that begin at `first`.
fn copy(dtype: DType, lanes: u32, first: i64) -> (Vec<Buffer>, Stmt) {
    let n = ROWS * i64::from(lanes);
    let buffer = |name: &str, n: i64| Buffer::new(name, dtype, vec![int(n)], MemScope::Global);
    let (a, o) = (buffer("A", n), buffer("O", n + first + 1));
    let row = Var::new("row", DType::I64);
    let at = |first: i64| Expr::ramp(row.expr() * int(i64::from(lanes)) + int(first), int(1), lanes);
    let store = Stmt::store(&o, [at(first)], Expr::load(a.clone(), vec![at(0)]));
    (vec![a, o], Stmt::for_(row, int(0), int(ROWS), LoopKind::Parallel, store))
}

#[test]
fn stores_past_the_caches_write_what_others_write() {
    for dtype in [DType::F32, DType::F64, DType::I8, DType::F16, DType::BF16] {
        for (lanes, first) in [(16, 0), (16, 3), (8, 8), (4, 1), (48, 0)] {
            let (buffers, body) = copy(dtype, lanes, first);
            let n = (ROWS * i64::from(lanes)) as usize * dtype.bytes();
            let input = Random::new(31).array(dtype, ROWS as usize * lanes as usize);
            let data = vec![input, vec![0x55; n + (first as usize + 1) * dtype.bytes()]];
            let plain = run_kernel(&device(), &buffers, body.clone(), data.clone()).remove(1);
            let streamed = run_kernel(&device(), &buffers, under("pragma_stream", 1, body), data).remove(1);
            assert!(plain == streamed, "{dtype} by {lanes} from {first}");
        }
    }
}

#[test]
fn only_what_is_asked_for_goes_past_the_caches_and_is_drained() {
    let text = |body: &Stmt, buffers: &[Buffer]| {
        device().compile(&flat("test", buffers, body.clone())).unwrap().source().unwrap().to_owned()
    };
    let (buffers, body) = copy(DType::F32, 16, 0);
    let asked = text(&under("pragma_stream", 1, body.clone()), &buffers);
    assert!(asked.contains("cx_stream_f32"), "{asked}");
    assert_eq!(asked.matches("    cx_drain();").count(), 1, "{asked}");
    for other in [body.clone(), under("pragma_stream", 0, body.clone()), under("pragma_other", 1, body)] {
        let text = text(&other, &buffers);
        assert!(!text.contains("cx_stream") && !text.contains("cx_drain"), "{text}");
    }
}
