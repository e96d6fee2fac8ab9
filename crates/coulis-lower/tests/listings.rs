//! The listings of seed 003 that a CPU prints, line for line, from hand-built nests.

mod common;

use std::collections::BTreeMap;
use std::path::Path;

use common::lowered;
use common::small::{int, var};
use coulis_ir::expr::{Expr, Var};
use coulis_ir::print::print_module;
use coulis_ir::{Buffer, DType, Form, Kernel, MemScope, Param, Stmt, ThreadTag};

#[track_caller]
fn check(file: &str, params: Vec<Param>, body: Stmt) {
    let kernel = Kernel { name: "main".to_owned(), params, attrs: BTreeMap::new(), form: Form::Nest, body };
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/files/lower").join(file);
    let text = std::fs::read_to_string(path).expect("the golden is there");
    let want: String = text.lines().filter(|l| !l.starts_with('#')).map(|l| format!("{l}\n")).collect();
    let flat = lowered(&kernel, true);
    assert_eq!(flat.form, Form::Flat);
    let got = print_module(&[flat]);
    assert_eq!(got, want, "found:\n{got}\nwanted:\n{want}");
}

/// A parameter whose shape is made of bare variables: it has strides.
fn strided(name: &str, shape: &[&Expr]) -> (Param, Buffer) {
    let shape: Vec<Expr> = shape.iter().map(|e| (*e).clone()).collect();
    let buffer = Buffer::new(name, DType::F32, shape, MemScope::Global).derive(|b| {
        b.strides = b.shape.iter().map(|_| var("stride").expr()).collect();
        b.auto_broadcast = true;
    });
    (Param::Buffer { handle: Var::handle(name), buffer: buffer.clone() }, buffer)
}

fn compact(name: &str, shape: Vec<Expr>) -> (Param, Buffer) {
    let buffer = Buffer::new(name, DType::F32, shape, MemScope::Global);
    (Param::Buffer { handle: Var::handle(name), buffer: buffer.clone() }, buffer)
}

fn zero() -> Expr {
    Expr::float(0.0, DType::F32)
}

/// `buffer[at] = buffer[at] + value`
fn add_to(buffer: &Buffer, at: Vec<Expr>, value: Expr) -> Stmt {
    Stmt::store(buffer, at.clone(), buffer.at(at) + value)
}

fn ceildiv(extent: &Expr, by: i32) -> Expr {
    (extent.clone() + int(by - 1)).floordiv(int(by))
}

#[test]
fn listing_1_is_the_default_schedule() {
    let (n, m) = (var("n").expr(), var("m").expr());
    let ((pa, a), (pb, b)) = (strided("A", &[&n, &m]), strided("B", &[&n]));
    let (i, k) = (var("i"), var("k"));
    let update = add_to(&b, vec![i.expr()], a.at([i.expr(), k.expr()]));
    let row = Stmt::seq([Stmt::store(&b, vec![i.expr()], zero()), Stmt::range(k, m, update)]);
    check("listing_1_default.py", vec![pa, pb], Stmt::range(i, n, row));
}

#[test]
fn listing_2_splits_both_axes() {
    let (n, m) = (var("n").expr(), var("m").expr());
    let ((pa, a), (pb, b)) = (strided("A", &[&n, &m]), strided("B", &[&n]));
    let (io, ii, ko, ki) = (var("i.outer"), var("i.inner"), var("k.outer"), var("k.inner"));
    let i = ii.expr() + io.expr() * int(32);
    let k = ki.expr() + ko.expr() * int(16);
    let row = i.clone().lt(n.clone()).likely();
    let init = Stmt::if_(row.clone(), Stmt::store(&b, vec![i.clone()], zero()));
    let update = add_to(&b, vec![i.clone()], a.at([i, k.clone()]));
    let update = Stmt::if_(row, Stmt::if_(k.lt(m.clone()).likely(), update));
    let update = Stmt::range(ko, ceildiv(&m, 16), Stmt::range(ki, int(16), update));
    let body = Stmt::range(io, ceildiv(&n, 32), Stmt::range(ii, int(32), Stmt::seq([init, update])));
    check("listing_2_both_axes_split.py", vec![pa, pb], body);
}

#[test]
fn listing_3_binds_rows_to_threads() {
    let (n, m) = (var("n").expr(), var("m").expr());
    let ((pa, a), (pb, b)) = (strided("A", &[&n, &m]), strided("B", &[&n]));
    let (bx, tx, ko, ki) = (var("blockIdx.x"), var("threadIdx.x"), var("k.outer"), var("k.inner"));
    let i = tx.expr() + bx.expr() * int(32);
    let k = ki.expr() + ko.expr() * int(16);
    let row = i.clone().lt(n.clone()).likely();
    let init = Stmt::if_(row.clone(), Stmt::store(&b, vec![i.clone()], zero()));
    let update = add_to(&b, vec![i.clone()], a.at([i, k.clone()]));
    let update = Stmt::if_(row, Stmt::if_(k.lt(m.clone()).likely(), update));
    let update = Stmt::range(ko, ceildiv(&m, 16), Stmt::range(ki, int(16), update));
    let launch = |tag, var, extent, body| Stmt::LaunchThread { tag, var, extent, body: Box::new(body) };
    let body = launch(ThreadTag::ThreadX, tx, int(32), Stmt::seq([init, update]));
    let body = launch(ThreadTag::BlockX, bx, ceildiv(&n, 32), body);
    check("listing_3_bound_to_threads.py", vec![pa, pb], body);
}

#[test]
fn listing_4_factors_the_reduction() {
    let (n, m) = (var("n").expr(), var("m").expr());
    let ((pa, a), (pb, b)) = (strided("A", &[&n, &m]), strided("B", &[&n]));
    let rf = Buffer::new("B.rf", DType::F32, vec![int(16), n.clone()], MemScope::Global);
    let (ki, i, ko) = (var("k.inner"), var("i"), var("k.outer"));
    let k = ki.expr() + ko.expr() * int(16);
    let at = vec![ki.expr(), i.expr()];
    let update = add_to(&rf, at.clone(), a.at([i.expr(), k.clone()]));
    let update = Stmt::if_(k.lt(m.clone()).likely(), update);
    let partial = Stmt::seq([Stmt::store(&rf, at, zero()), Stmt::range(ko, ceildiv(&m, 16), update)]);
    let partial = Stmt::range(ki, int(16), Stmt::range(i, n.clone(), partial));
    let (ax0, kv) = (var("ax0"), var("k.inner.v"));
    let fold = add_to(&b, vec![ax0.expr()], rf.at([kv.expr(), ax0.expr()]));
    let total = Stmt::seq([Stmt::store(&b, vec![ax0.expr()], zero()), Stmt::range(kv, int(16), fold)]);
    let body = Stmt::allocate(rf, Stmt::seq([partial, Stmt::range(ax0, n, total)]));
    check("listing_4_rfactor.py", vec![pa, pb], body);
}

#[test]
fn listing_7_is_a_convolution() {
    let n = var("n").expr();
    let (pi, input) = strided("Input", &[&n, &n]);
    let (pf, filter) = compact("Filter", vec![int(3), int(3)]);
    let size = n.clone() - int(2);
    let (po, output) = compact("Output", vec![size.clone(), size.clone()]);
    let (i, j, di, dj) = (var("i"), var("j"), var("di"), var("dj"));
    let at = vec![i.expr(), j.expr()];
    let product = input.at([i.expr() + di.expr(), j.expr() + dj.expr()]) * filter.at([di.expr(), dj.expr()]);
    let update = add_to(&output, at.clone(), product);
    let update = Stmt::range(di, int(3), Stmt::range(dj, int(3), update));
    let cell = Stmt::seq([Stmt::store(&output, at, zero()), update]);
    let body = Stmt::range(i, size.clone(), Stmt::range(j, size, cell));
    check("listing_7_convolution.py", vec![pi, pf, po], body);
}
