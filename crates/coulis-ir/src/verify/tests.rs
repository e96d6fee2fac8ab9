//! For each property a kernel that has it and one that has not, and the form of the report.

use std::collections::{BTreeMap, BTreeSet};

use super::{FIRST_FOR_A_TARGET, Property, properties, verify};
use crate::buffer::{Buffer, MemScope};
use crate::dtype::{DType, Ty};
use crate::expr::{BinaryOp, Expr, Intrinsic, Node, Var};
use crate::form::Form;
use crate::kernel::{Kernel, Param};
use crate::print::print_kernel;
use crate::stmt::{LoopKind, ScopeId, Stmt, SyncKind, ThreadTag};

fn c(value: i32) -> Expr {
    Expr::int(value)
}

fn f(value: f64) -> Expr {
    Expr::float(value, DType::F32)
}

fn var(name: &str) -> Var {
    Var::new(name, DType::I32)
}

/// `A` of `shape`, float32.
fn array(name: &str, shape: &[Expr]) -> Buffer {
    Buffer::new(name, DType::F32, shape.to_vec(), MemScope::Global)
}

fn kernel(form: Form, buffers: &[&Buffer], body: Stmt) -> Kernel {
    let params = buffers
        .iter()
        .map(|b| Param::Buffer { handle: Var::handle(&format!("{}_ptr", b.name)), buffer: Buffer::clone(b) });
    Kernel { name: "main".to_owned(), params: params.collect(), attrs: BTreeMap::new(), form, body }
}

/// Verifies, and compares the ids of all faults.
#[track_caller]
fn check(what: &str, kernel: Kernel, wanted: &[&str]) {
    let text = print_kernel(&kernel);
    match verify(kernel) {
        Ok(_) => assert!(wanted.is_empty(), "{what}: accepted, wanted {wanted:?}\n{text}"),
        Err(faults) => {
            let codes: Vec<&str> = faults.faults.iter().map(|f| f.code).collect();
            assert_eq!(codes, wanted, "{what}:\n{}", faults.listing);
            let bare: String = faults
                .listing
                .lines()
                .filter(|l| !l.trim_start().starts_with("# ^^^^ error"))
                .map(|l| format!("{l}\n"))
                .collect();
            assert_eq!(bare, text, "{what}: the listing is the kernel and comments");
            let comments = faults.listing.lines().filter(|l| l.contains("# ^^^^ error")).count();
            assert_eq!(comments, codes.len(), "{what}: one comment a fault\n{}", faults.listing);
        }
    }
}

/// `(property, what, kernel, faults)`; an empty list of faults is a passing case.
type Case = (&'static str, &'static str, Kernel, &'static [&'static str]);

fn flat(buffers: &[&Buffer], body: Stmt) -> Kernel {
    kernel(Form::Flat, buffers, body)
}

fn form_cases() -> Vec<Case> {
    let (a, i) = (array("A", &[c(8)]), var("i"));
    let vector_loop =
        || Stmt::for_(i.clone(), c(0), c(8), LoopKind::Vectorized, Stmt::store(&a, [i.expr()], f(0.0)));
    let ramp_store = || Stmt::store(&a, [Expr::ramp(c(0), c(1), 8)], f(0.0).broadcast_to(8));
    vec![
        ("V1", "vectorized loop in Nest", kernel(Form::Nest, &[&a], vector_loop()), &[]),
        ("V1", "vectorized loop in Flat", flat(&[&a], vector_loop()), &["V1"]),
        ("V1", "device entry in Flat", flat(&[&a], Stmt::DeviceEntry), &["V1"]),
        ("V2", "ramp in Flat", flat(&[&a], ramp_store()), &[]),
        ("V2", "ramp in Nest", kernel(Form::Nest, &[&a], ramp_store()), &["V2"]),
    ]
}

fn type_cases() -> Vec<Case> {
    let a = array("A", &[c(8)]);
    let m = array("M", &[c(2), c(4)]);
    let store = |value: Expr| flat(&[&a], Stmt::store(&a, [c(0)], value));
    let raw = |node: Node, dtype: DType| Expr::new(node, Ty::scalar(dtype));
    let mixed = raw(Node::Binary(BinaryOp::Add, f(1.0), c(1)), DType::F32);
    let truth = raw(Node::Binary(BinaryOp::Lt, f(1.0), f(2.0)), DType::F32);
    let wide = raw(Node::Int(300), DType::U8).cast(DType::F32);
    let bits = Expr::binary(BinaryOp::BitAnd, f(1.0), f(2.0));
    let i = var("i");
    let long = Var::new("j", DType::I64);
    let loop_over = |v: &Var, extent: Expr| {
        flat(&[&a], Stmt::for_(v.clone(), Expr::int_of(0, v.dtype()), extent, LoopKind::Serial, Stmt::NOP))
    };
    let branch = |cond: Expr| flat(&[&a], Stmt::if_(cond, Stmt::store(&a, [c(0)], f(1.0))));
    let four = |v: Expr| v.broadcast_to(4);
    let ramp = || Expr::ramp(c(0), c(1), 4);
    vec![
        ("V3", "sum of float32", store(f(1.0) + f(2.0)), &[]),
        ("V3", "sum of float32 and int32", store(mixed), &["V3"]),
        ("V3", "comparison that says float32", store(truth), &["V3"]),
        ("V3", "uint8 constant of 300", store(wide), &["V3"]),
        ("V3", "bits of floats", store(bits), &["V3"]),
        ("V3", "exp of float32", store(Expr::call1(Intrinsic::Exp, f(1.0))), &[]),
        ("V3", "exp of int32", store(Expr::call1(Intrinsic::Exp, c(1)).cast(DType::F32)), &["V3"]),
        (
            "V4",
            "one index a dimension in Nest",
            kernel(Form::Nest, &[&m], Stmt::store(&m, [c(1), c(3)], f(0.0))),
            &[],
        ),
        (
            "V4",
            "one index for two dimensions in Nest",
            kernel(Form::Nest, &[&m], Stmt::store(&m, [c(1)], f(0.0))),
            &["V4"],
        ),
        ("V4", "one index in Flat", flat(&[&m], Stmt::store(&m, [c(7)], f(0.0))), &[]),
        ("V4", "two indices in Flat", flat(&[&m], Stmt::store(&m, [c(1), c(3)], f(0.0))), &["V4"]),
        ("V4", "float index", flat(&[&a], Stmt::store(&a, [f(0.0)], f(0.0))), &["V4"]),
        ("V5", "float32 into float32", store(f(0.0)), &[]),
        ("V5", "int32 into float32", store(c(0)), &["V5"]),
        ("V5", "four lanes into four", flat(&[&a], Stmt::store(&a, [ramp()], four(f(0.0)))), &[]),
        (
            "V5",
            "eight lanes into four",
            flat(&[&a], Stmt::store(&a, [ramp()], f(0.0).broadcast_to(8))),
            &["V5"],
        ),
        ("V5", "four lanes into one", flat(&[&a], Stmt::store(&a, [c(0)], four(f(0.0)))), &["V5"]),
        ("V6", "bool condition", branch(Expr::bool(true)), &[]),
        ("V6", "int32 condition", branch(c(1)), &["V6"]),
        ("V6", "float extent", loop_over(&i, f(4.0)), &["V6", "V7"]),
        ("V7", "int32 loop", loop_over(&i, c(4)), &[]),
        ("V7", "int64 loop of int32 extent", loop_over(&long, c(4)), &["V7"]),
        ("V7", "int64 name of an int32", flat(&[&a], Stmt::let_(long.clone(), c(4), Stmt::NOP)), &["V7"]),
    ]
}

fn scope_cases() -> Vec<Case> {
    let n = Var::size("n", DType::I32);
    let a = array("A", &[n.expr()]);
    let (i, j) = (var("i"), var("j"));
    let at = |index: &Var| Stmt::store(&a, [index.expr()], f(0.0));
    let local = Buffer::new("t", DType::F32, vec![c(1)], MemScope::Local);
    let alias = local.derive(|b| b.name = "t_1".to_owned());
    let fill = |b: &Buffer| Stmt::store(b, [c(0)], f(0.0));
    let twice = Stmt::range(i.clone(), c(2), Stmt::range(i.clone(), n.expr(), at(&i)));
    let beside =
        Stmt::seq([Stmt::range(i.clone(), n.expr(), at(&i)), Stmt::range(i.clone(), n.expr(), at(&i))]);
    let after = Stmt::seq([Stmt::allocate(local.clone(), fill(&local)), fill(&local)]);
    let let_value = Expr::let_in(j.clone(), c(1), j.expr() + i.expr()).cast(DType::F32);
    vec![
        ("V8", "loop variable and size", flat(&[&a], Stmt::range(i.clone(), n.expr(), at(&i))), &[]),
        ("V8", "variable of no loop", flat(&[&a], Stmt::range(i.clone(), n.expr(), at(&j))), &["V8"]),
        (
            "V8",
            "variable after its loop",
            flat(&[&a], Stmt::seq([Stmt::range(i.clone(), n.expr(), at(&i)), at(&i)])),
            &["V8"],
        ),
        (
            "V8",
            "let in an expression",
            flat(&[&a], Stmt::range(i.clone(), n.expr(), Stmt::store(&a, [i.expr()], let_value))),
            &[],
        ),
        ("V9", "two loops beside each other", flat(&[&a], beside), &[]),
        ("V9", "a loop inside itself", flat(&[&a], twice), &["V9"]),
        ("V10", "alias of an allocation", flat(&[&a], Stmt::allocate(local.clone(), fill(&alias))), &[]),
        ("V10", "allocation that has ended", flat(&[&a], after), &["V10"]),
        ("V10", "buffer of nobody", flat(&[&a], fill(&array("C", &[c(1)]))), &["V10"]),
    ]
}

fn loop_and_bound_cases() -> Vec<Case> {
    let n = Var::size("n", DType::I32);
    let (a, s) = (array("A", &[c(8)]), array("S", &[n.expr()]));
    let (i, j) = (var("i"), var("j"));
    let unrolled = |extent: Expr| {
        flat(
            &[&s],
            Stmt::for_(i.clone(), c(0), extent, LoopKind::Unrolled, Stmt::store(&s, [i.expr()], f(0.0))),
        )
    };
    let over = |extent: Expr, index: Expr| {
        flat(&[&a], Stmt::range(i.clone(), extent, Stmt::store(&a, [index], f(0.0))))
    };
    let guarded = |bound: i32| {
        let store = Stmt::store(&a, [i.expr()], f(0.0));
        flat(&[&a], Stmt::range(i.clone(), c(16), Stmt::if_(i.expr().lt(c(bound)), store)))
    };
    let between = |first: i32, end: i32| {
        let inside = i.expr().ge(c(first)).and(i.expr().lt(c(end)));
        let in_value = Expr::if_then_else(inside.clone(), a.at([c(-2)]), f(0.0));
        let in_value = Stmt::store(&a, [i.expr()], in_value);
        let in_arm = Stmt::if_(inside.likely(), Stmt::store(&a, [c(-2)], f(0.0)));
        flat(&[&a], Stmt::range(i.clone(), c(8), Stmt::seq([in_value, in_arm])))
    };
    // Run where `n` is above 3 and below the end.
    let apart = |end: i32| {
        let store = Stmt::store(&a, [j.expr() - c(8)], f(0.0));
        let inner = Stmt::range(j.clone(), c(end) - n.expr(), store);
        flat(&[&a, &s], Stmt::range(i.clone(), n.expr() - c(3), inner))
    };
    // A loop that ends where rows but the first would begin it, under a condition that the first row does not meet.
    let dead = |rows: Expr, end: i32| {
        let begin = (i.expr() * c(6)).min(c(6));
        let store = Stmt::store(&a, [j.expr() + c(8)], f(0.0));
        let inner = Stmt::range(j.clone(), c(end) - begin, Stmt::if_(i.expr().gt(c(0)), store));
        flat(&[&a, &s], Stmt::range(i.clone(), rows, inner))
    };
    let parts = |first: i32| {
        let half = (i.expr() * c(2) + j.expr().floordiv(c(2))).lt(c(3));
        let cond = half.and((i.expr() * c(4) + j.expr()).ge(c(first)));
        let store = Stmt::if_(cond, Stmt::store(&a, [c(-2)], f(0.0)));
        flat(&[&a], Stmt::range(i.clone(), c(2), Stmt::range(j.clone(), c(4), store)))
    };
    // A row whose length an array holds, eight elements at a time.
    let ragged = |weighed: &Expr| {
        let z = Buffer::new("Z", DType::I32, vec![c(8)], MemScope::Global);
        let (at, name) = (i.expr() * c(8) + c(8), var("at"));
        let store = Stmt::store(&a, [name.expr()], f(0.0));
        let store = Stmt::if_(weighed.clone().lt(z.at([i.expr()])), store);
        let body = Stmt::let_(name, at, store);
        flat(&[&a, &z], Stmt::range(i.clone(), z.at([c(0)]), body))
    };
    let nested = |outer: i32| {
        let store = Stmt::store(&a, [i.expr() * c(2) + j.expr()], f(0.0));
        flat(&[&a], Stmt::range(i.clone(), c(outer), Stmt::range(j.clone(), c(2), store)))
    };
    let vector =
        |base: i32| flat(&[&a], Stmt::store(&a, [Expr::ramp(c(base), c(1), 4)], f(0.0).broadcast_to(4)));
    let lazy = |select: bool| {
        let (cond, far) = (n.expr().lt(c(3)), a.at([c(9)]));
        let value = if select {
            Expr::select(cond, far, f(0.0))
        } else {
            Expr::if_then_else(cond, a.at([n.expr() + c(3)]), f(0.0))
        };
        flat(&[&a, &s], Stmt::store(&a, [c(0)], value))
    };
    let strided = |stride: i32, index: i32| {
        let whole = array("M", &[c(3), c(2)]).derive(|b| b.strides = vec![c(stride), c(1)]);
        let alias = whole.derive(|b| (b.shape, b.strides) = (vec![c(stride * 3)], Vec::new()));
        flat(&[&whole], Stmt::store(&alias, [c(index)], f(0.0)))
    };
    let rows = array("M", &[c(2), c(4)]);
    let row = |index: i32| kernel(Form::Nest, &[&rows], Stmt::store(&rows, [c(index), c(3)], f(0.0)));
    vec![
        ("V11", "unrolled four times", unrolled(c(4)), &[]),
        ("V11", "unrolled n times", unrolled(n.expr()), &["V11"]),
        ("V12", "last element", over(c(8), i.expr()), &[]),
        ("V12", "one past the last", over(c(9), i.expr()), &["V12"]),
        ("V12", "one before the first", over(c(8), i.expr() - c(1)), &["V12"]),
        ("V12", "a loop that never runs", over(c(0), c(8)), &[]),
        ("V12", "guarded", guarded(8), &[]),
        ("V12", "guarded too late, which is not checked", guarded(9), &[]),
        ("V12", "in loops of which one never runs where the other does", apart(3), &[]),
        ("V12", "in loops of which both run for some sizes", apart(6), &["V12"]),
        ("V12", "in a loop that never runs where a condition in it holds", dead(c(5), 6), &[]),
        ("V12", "in one that runs where the condition holds", dead(c(5), 7), &["V12"]),
        (
            "V12",
            "in a loop of any number of rows that never runs where a condition in it holds",
            dead(n.expr(), 6),
            &[],
        ),
        (
            "V12",
            "in one that runs where the condition holds, for any number of rows",
            dead(n.expr(), 7),
            &["V12"],
        ),
        ("V12", "under conditions that exclude each other", between(3, 2), &[]),
        ("V12", "under conditions that do not", between(1, 2), &["V12", "V12"]),
        ("V12", "under conditions that no iteration meets", parts(6), &[]),
        ("V12", "under conditions that one iteration meets", parts(5), &["V12"]),
        ("V12", "where an element says how far to go", ragged(&(i.expr() * c(8) + c(8))), &[]),
        ("V12", "where an element says something else", ragged(&c(0)), &["V12"]),
        ("V12", "two loops that fit", nested(4), &[]),
        ("V12", "two loops that do not", nested(5), &["V12"]),
        ("V12", "last of a broadcast view, whose alias has size 0", strided(0, 1), &[]),
        ("V12", "past a broadcast view", strided(0, 2), &["V12"]),
        ("V12", "last of overlapping rows, past the size of the alias", strided(1, 3), &[]),
        ("V12", "past overlapping rows", strided(1, 4), &["V12"]),
        ("V12", "vector to the end", vector(4), &[]),
        ("V12", "vector past the end", vector(5), &["V12"]),
        ("V12", "arm that is not evaluated", lazy(false), &[]),
        ("V12", "arm of a select", lazy(true), &["V12"]),
        ("V12", "last row", row(1), &[]),
        ("V12", "row past the last", row(2), &["V12"]),
    ]
}

fn race_cases() -> Vec<Case> {
    let n = Var::size("n", DType::I32);
    let (a, out) = (array("A", &[n.expr()]), array("B", &[n.expr()]));
    let (i, k) = (var("i"), var("k"));
    let parallel =
        |body: Stmt| flat(&[&a, &out], Stmt::for_(i.clone(), c(0), n.expr(), LoopKind::Parallel, body));
    let put = |index: Expr| Stmt::store(&out, [index], f(1.0));
    let fold = |index: Expr| Stmt::store(&out, [index.clone()], out.at([index]) + a.at([i.expr()]));
    let copy = |to: Expr, from: Expr| Stmt::store(&out, [to], out.at([from]));
    let at_most = |n_iterations: i32| {
        let extent = (c(4 * n_iterations - 2) - n.expr()).floordiv(c(4)) + c(1);
        let all = Stmt::range(k.clone(), c(3) - n.expr(), put(k.expr()));
        flat(&[&a, &out], Stmt::for_(i.clone(), c(0), extent, LoopKind::Parallel, all))
    };
    let local = Buffer::new("t", DType::F32, vec![c(1)], MemScope::Local);
    let own = Stmt::allocate(local.clone(), Stmt::store(&local, [c(0)], local.at([c(0)]) + f(1.0)));
    let outside = Stmt::allocate(
        local.clone(),
        Stmt::for_(i.clone(), c(0), n.expr(), LoopKind::Parallel, Stmt::store(&local, [c(0)], f(1.0))),
    );
    let through_let = Stmt::let_(k.clone(), i.expr() * c(2), put(k.expr()));
    let through_memory = {
        let at = Buffer::new("at", DType::I32, vec![c(1)], MemScope::Local);
        Stmt::allocate(at.clone(), Stmt::seq([Stmt::store(&at, [c(0)], i.expr()), put(at.at([c(0)]))]))
    };
    vec![
        ("V13", "each its own element", parallel(put(i.expr())), &[]),
        ("V13", "all the first element", parallel(put(c(0))), &["V13"]),
        (
            "V13",
            "an inner loop over all",
            parallel(Stmt::range(k.clone(), n.expr(), put(k.expr()))),
            &["V13"],
        ),
        ("V13", "two iterations one element", parallel(put(i.expr().floordiv(c(2)))), &["V13"]),
        ("V13", "only one iteration stores", parallel(Stmt::if_(i.expr().equal(c(0)), put(c(0)))), &[]),
        ("V13", "at most one iteration for any size", at_most(1), &[]),
        ("V13", "at most two iterations", at_most(2), &["V13"]),
        ("V13", "through a name", parallel(through_let), &[]),
        ("V13", "through memory of its own", parallel(through_memory), &[]),
        ("V13", "every third one element", parallel(put(i.expr().floormod(c(3)))), &["V13"]),
        ("V13", "every thousandth", parallel(put(i.expr().floormod(c(1000)))), &["V13"]),
        ("V13", "a remainder by all that there are", parallel(put(i.expr().floormod(n.expr()))), &[]),
        ("V13", "the last elements one", parallel(put(Expr::max(i.expr(), c(5)))), &["V13"]),
        ("V13", "in another order", parallel(put(n.expr() - i.expr() - c(1))), &[]),
        ("V13", "reads from the other end", parallel(copy(n.expr() - i.expr() - c(1), i.expr())), &["V13"]),
        (
            "V13",
            "neighbours that the next iteration stores too",
            parallel(Stmt::range(k.clone(), c(2), put(i.expr() + k.expr()))),
            &["V13"],
        ),
        (
            "V13",
            "neighbours of each iteration",
            parallel(Stmt::range(k.clone(), c(2), put(i.expr() * c(2) + k.expr()))),
            &[],
        ),
        (
            "V13",
            "some iterations store to one element",
            parallel(Stmt::if_(i.expr().lt(c(4)), put(i.expr().floordiv(c(2))))),
            &["V13"],
        ),
        ("V13", "memory allocated outside", flat(&[&a], outside.clone()), &["V13"]),
        ("V13", "reads what the one before stores", parallel(copy(i.expr() + c(1), i.expr())), &["V13"]),
        (
            "V13",
            "reads what the third after stores",
            parallel(copy(i.expr() * c(2), i.expr() * c(2) + c(6))),
            &["V13"],
        ),
        ("V13", "reads what none stores", parallel(copy(i.expr() * c(2), i.expr() * c(2) + c(1))), &[]),
        ("V13", "reads what it stores itself", parallel(copy(i.expr(), i.expr())), &[]),
        (
            "V13",
            "one iteration reads",
            parallel(Stmt::if_(i.expr().equal(c(0)), copy(i.expr(), i.expr() + c(1)))),
            &[],
        ),
        (
            "V13",
            "reads past all that is stored",
            flat(
                &[&a, &out],
                Stmt::for_(i.clone(), c(0), c(4), LoopKind::Parallel, copy(i.expr(), i.expr() + c(4))),
            ),
            &[],
        ),
        ("V14", "fold into its own element", parallel(fold(i.expr())), &[]),
        ("V14", "fold into memory of its own", parallel(own), &[]),
        ("V14", "fold into one element", parallel(fold(c(0))), &["V14"]),
    ]
}

fn thread_cases() -> Vec<Case> {
    let a = array("A", &[c(4096)]);
    let (x, y, b) = (var("tx"), var("ty"), var("bx"));
    let launch = |tag: ThreadTag, v: &Var, extent: i32, body: Stmt| Stmt::LaunchThread {
        tag,
        var: v.clone(),
        extent: c(extent),
        body: Box::new(body),
    };
    let block = |nx: i32, ny: i32, body: Stmt| {
        let inner = launch(ThreadTag::ThreadY, &y, ny, body);
        flat(&[&a], launch(ThreadTag::BlockX, &b, 4, launch(ThreadTag::ThreadX, &x, nx, inner)))
    };
    let barrier = || Stmt::Sync(SyncKind::Cta);
    let ids = |id: ScopeId, v: &Var, extent: i32| Stmt::ScopeIds {
        id,
        vars: vec![v.clone()],
        extents: vec![c(extent)],
    };
    let tile =
        |stmts: Vec<Stmt>| kernel(Form::Tiled, &[&a], Stmt::seq([vec![Stmt::DeviceEntry], stmts].concat()));
    let on_sign = |v: &Var, sync: SyncKind| Stmt::if_(a.at([v.expr()]).lt(f(0.0)), Stmt::Sync(sync));
    let again = launch(ThreadTag::ThreadX, &x, 8, launch(ThreadTag::ThreadX, &y, 8, Stmt::NOP));
    vec![
        ("V20", "1024 threads", block(32, 32, Stmt::NOP), &[]),
        ("V20", "1056 threads", block(32, 33, Stmt::NOP), &["V20"]),
        ("V20", "2048 threads in a tile program", tile(vec![ids(ScopeId::Thread, &x, 2048)]), &["V20"]),
        ("V21", "barrier of all threads", block(8, 8, barrier()), &[]),
        ("V21", "barrier of some blocks", block(8, 8, Stmt::if_(b.expr().lt(c(2)), barrier())), &[]),
        ("V21", "barrier of some threads", block(8, 8, Stmt::if_(x.expr().lt(c(2)), barrier())), &["V21"]),
        (
            "V21",
            "barrier in a loop of different lengths",
            block(8, 8, Stmt::range(var("k"), x.expr(), barrier())),
            &["V21"],
        ),
        (
            "V21",
            "cta barrier under data of a thread",
            tile(vec![ids(ScopeId::Thread, &x, 256), on_sign(&x, SyncKind::Cta)]),
            &["V21"],
        ),
        (
            "V21",
            "warp barrier of some warps",
            tile(vec![ids(ScopeId::Warp, &x, 8), on_sign(&x, SyncKind::Warp)]),
            &[],
        ),
        (
            "V21",
            "warp barrier of some lanes",
            tile(vec![ids(ScopeId::Lane, &x, 32), on_sign(&x, SyncKind::Warp)]),
            &["V21"],
        ),
        ("V22", "x and y", block(8, 8, Stmt::NOP), &[]),
        ("V22", "x inside x", flat(&[&a], again), &["V22"]),
    ]
}

#[test]
fn each_property_is_told_from_its_opposite() {
    let cases =
        [form_cases(), type_cases(), scope_cases(), loop_and_bound_cases(), race_cases(), thread_cases()]
            .concat();
    let (mut passing, mut failing) = (BTreeSet::new(), BTreeSet::new());
    for (property, what, kernel, wanted) in cases {
        check(&format!("{property}, {what}"), kernel, wanted);
        if wanted.is_empty() {
            passing.insert(property)
        } else {
            failing.insert(property)
        };
    }
    for Property { id, .. } in properties().take_while(|p| p.id != FIRST_FOR_A_TARGET) {
        assert!(passing.contains(id) && failing.contains(id), "{id} lacks a passing or a failing case");
    }
}

#[test]
fn all_faults_are_listed_each_under_its_line() {
    let a = array("A", &[c(8)]);
    let (i, j) = (var("i"), var("j"));
    let body = Stmt::range(
        i.clone(),
        c(9),
        Stmt::seq([Stmt::store(&a, [i.expr()], f(0.0)), Stmt::store(&a, [j.expr()], f(0.0))]),
    );
    let faults = verify(flat(&[&a], body)).expect_err("two faults");
    let want = "\
@T.prim_func
def main(A_ptr: T.handle):
    A = T.match_buffer(A_ptr, (8,))
    for i in range(9):
        A[i] = T.float32(0)
        # ^^^^ error V12: index `i` of `A` comes to 8, and legal ones are 0 to 7
        A[j] = T.float32(0)
        # ^^^^ error V8: `j` is not defined here; parameters, loops and bindings around a statement define names
";
    assert_eq!(faults.listing, want);
    assert_eq!(
        faults.to_string(),
        "kernel `main` has 2 faults: V12: index `i` of `A` comes to 8, and legal ones are 0 to 7"
    );
}

#[test]
fn of_a_long_listing_what_is_around_the_first_faults_is_shown() {
    let a = array("A", &[c(8)]);
    let store = |at: i32| Stmt::store(&a, [c(at)], f(0.0));
    let of = |n: i32, faulty: &[i32]| {
        let stores = (0..n).map(|at| store(if faulty.contains(&at) { 8 } else { 0 }));
        verify(flat(&[&a], Stmt::seq(stores))).unwrap_err()
    };
    let short = of(20, &[3]);
    assert_eq!(short.excerpt(), short.listing.trim_end());
    let excerpt = of(1000, &[300, 303, 999]).excerpt();
    let left_out: Vec<&str> = excerpt.lines().filter(|line| line.starts_with("...")).collect();
    assert_eq!(left_out, ["... 291 lines", "... 684 lines"], "{excerpt}");
    assert_eq!(excerpt.lines().filter(|line| line.contains("# ^^^^ error")).count(), 3);
    assert!(excerpt.starts_with("@T.prim_func") && excerpt.lines().count() < 40, "{excerpt}");
}
