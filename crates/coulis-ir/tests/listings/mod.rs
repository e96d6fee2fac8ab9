//! The kernels of seed 003's listings, built by hand.

use coulis_ir::buffer::BufferData;
use coulis_ir::{Buffer, DType, Expr, Form, Kernel, LoopKind, MemScope, Param, Stmt, ThreadTag, Var};

pub fn int_var(name: &str) -> Var {
    Var::new(name, DType::I32)
}

fn zero() -> Expr {
    Expr::float(0.0, DType::F32)
}

/// A parameter of bare sizes: strided by fresh variables, broadcastable.
fn strided(name: &str, shape: &[&Var]) -> Buffer {
    Buffer::new(name, DType::F32, shape.iter().map(|v| v.expr()).collect(), MemScope::Global).derive(
        |b: &mut BufferData| {
            b.data = Var::handle(name);
            b.strides = shape.iter().map(|_| int_var("stride").expr()).collect();
            b.auto_broadcast = true;
        },
    )
}

/// The one-dimensional window of `extent` elements on a buffer.
fn flat(buffer: &Buffer, extent: Expr) -> Buffer {
    buffer.derive(|b| {
        b.shape = vec![extent];
        b.strides = Vec::new();
    })
}

fn param(buffer: &Buffer) -> Param {
    Param::Buffer { handle: Var::handle(&buffer.name), buffer: buffer.clone() }
}

fn kernel(params: Vec<Param>, body: Stmt) -> Kernel {
    Kernel { name: "main".to_owned(), params, attrs: Default::default(), form: Form::Flat, body }
}

/// What listings 1 to 4 share.
struct RowSum {
    n: Expr,
    m: Expr,
    a: Buffer,
    b: Buffer,
    a_flat: Buffer,
    b_flat: Buffer,
}

impl RowSum {
    fn new() -> RowSum {
        let (n, m) = (int_var("n"), int_var("m"));
        let (a, b) = (strided("A", &[&n, &m]), strided("B", &[&n]));
        let a_flat = flat(&a, &a.strides[0] * &n.expr());
        let b_flat = flat(&b, &b.strides[0] * &n.expr());
        RowSum { n: n.expr(), m: m.expr(), a, b, a_flat, b_flat }
    }

    fn out_index(&self, i: &Expr) -> Expr {
        i * &self.b.strides[0]
    }

    fn element(&self, i: &Expr, k: &Expr) -> Expr {
        self.a_flat.at([&(i * &self.a.strides[0]) + &(k * &self.a.strides[1])])
    }

    fn init(&self, i: &Expr) -> Stmt {
        Stmt::store(&self.b_flat, [self.out_index(i)], zero())
    }

    fn update(&self, i: &Expr, term: Expr) -> Stmt {
        let index = self.out_index(i);
        Stmt::store(&self.b_flat, [index.clone()], self.b_flat.at([index]) + term)
    }

    fn kernel(&self, body: Stmt) -> Kernel {
        kernel(vec![param(&self.a), param(&self.b)], body)
    }
}

fn ceil_div(n: &Expr, by: i32) -> Expr {
    (n + &Expr::int(by - 1)).floordiv(Expr::int(by))
}

fn times_plus(outer: &Var, by: i32, inner: &Var) -> Expr {
    outer.expr() * Expr::int(by) + inner.expr()
}

pub fn default() -> Kernel {
    let s = RowSum::new();
    let (i, k) = (int_var("i"), int_var("k"));
    let update = s.update(&i.expr(), s.element(&i.expr(), &k.expr()));
    let body = Stmt::seq([s.init(&i.expr()), Stmt::range(k, s.m.clone(), update)]);
    s.kernel(Stmt::range(i, s.n.clone(), body))
}

pub fn split() -> Kernel {
    let s = RowSum::new();
    let (io, ii, ko, ki) = (int_var("i.outer"), int_var("i.inner"), int_var("k.outer"), int_var("k.inner"));
    let (row, column) = (times_plus(&io, 32, &ii), times_plus(&ko, 16, &ki));
    let row_guard = row.clone().lt(s.n.clone()).likely();
    let cse = int_var("cse_var_1");
    let update = Stmt::let_(cse.clone(), row.clone(), s.update(&cse.expr(), s.element(&cse.expr(), &column)));
    let update = Stmt::if_(column.lt(s.m.clone()).likely(), update);
    let update = Stmt::range(ko, ceil_div(&s.m, 16), Stmt::range(ki, Expr::int(16), update));
    let body = Stmt::seq([Stmt::if_(row_guard.clone(), s.init(&row)), Stmt::if_(row_guard, update)]);
    s.kernel(Stmt::range(io, ceil_div(&s.n, 32), Stmt::range(ii, Expr::int(32), body)))
}

pub fn bound() -> Kernel {
    let s = RowSum::new();
    let (bx, tx, ko, ki) =
        (int_var("blockIdx.x"), int_var("threadIdx.x"), int_var("k.outer"), int_var("k.inner"));
    let (row, column) = (times_plus(&bx, 32, &tx), times_plus(&ko, 16, &ki));
    let row_guard = row.clone().lt(s.n.clone()).likely();
    let update = Stmt::if_(column.clone().lt(s.m.clone()).likely(), s.update(&row, s.element(&row, &column)));
    let update = Stmt::if_(row_guard.clone(), update);
    let update = Stmt::range(ko, ceil_div(&s.m, 16), Stmt::range(ki, Expr::int(16), update));
    let body = Stmt::seq([Stmt::if_(row_guard, s.init(&row)), update]);
    let launch = |tag, var, extent, body| Stmt::LaunchThread { tag, var, extent, body: Box::new(body) };
    let body = launch(ThreadTag::ThreadX, tx, Expr::int(32), body);
    s.kernel(launch(ThreadTag::BlockX, bx, ceil_div(&s.n, 32), body))
}

pub fn rfactor() -> Kernel {
    let s = RowSum::new();
    let rf = Buffer::new("B.rf", DType::F32, vec![&s.n * &Expr::int(16)], MemScope::Global);
    let view = flat(&rf, &Expr::int(16) * &s.n);
    let (ki, i, ko) = (int_var("k.inner"), int_var("i"), int_var("k.outer"));
    let (ax0, kv) = (int_var("ax0"), int_var("k.inner.v"));
    let at = &(&ki.expr() * &s.n) + &i.expr();
    let column = times_plus(&ko, 16, &ki);
    let update = Stmt::store(&view, [at.clone()], view.at([at.clone()]) + s.element(&i.expr(), &column));
    let update = Stmt::range(ko, ceil_div(&s.m, 16), Stmt::if_(column.lt(s.m.clone()).likely(), update));
    let first = Stmt::seq([Stmt::store(&view, [at], zero()), update]);
    let first = Stmt::range(ki, Expr::int(16), Stmt::range(i, s.n.clone(), first));
    let partial = view.at([&(&kv.expr() * &s.n) + &ax0.expr()]);
    let second = Stmt::range(kv, Expr::int(16), s.update(&ax0.expr(), partial));
    let second = Stmt::range(ax0.clone(), s.n.clone(), Stmt::seq([s.init(&ax0.expr()), second]));
    s.kernel(Stmt::allocate(rf, Stmt::seq([first, second])))
}

pub fn convolution() -> Kernel {
    let n = int_var("n");
    let m = n.expr() - Expr::int(2);
    let input = strided("Input", &[&n, &n]);
    let three = Expr::int(3);
    let filter = Buffer::new("Filter", DType::F32, vec![three.clone(), three.clone()], MemScope::Global);
    let output = Buffer::new("Output", DType::F32, vec![m.clone(), m.clone()], MemScope::Global);
    let input_flat = flat(&input, &input.strides[0] * &n.expr());
    let filter_flat = flat(&filter, Expr::int(9));
    let output_flat = flat(&output, &m * &m);
    let (i, j, di, dj) = (int_var("i"), int_var("j"), int_var("di"), int_var("dj"));
    let at = &(&i.expr() * &m) + &j.expr();
    let row = &(i.expr() + di.expr()) * &input.strides[0];
    let column = &(j.expr() + dj.expr()) * &input.strides[1];
    let product = input_flat.at([row + column]) * filter_flat.at([times_plus(&di, 3, &dj)]);
    let update = Stmt::store(&output_flat, [at.clone()], output_flat.at([at.clone()]) + product);
    let update = Stmt::range(di, three.clone(), Stmt::range(dj, three, update));
    let body = Stmt::seq([Stmt::store(&output_flat, [at], zero()), update]);
    let body = Stmt::for_(i, Expr::int(0), m.clone(), LoopKind::Serial, Stmt::range(j, m, body));
    kernel(vec![param(&input), param(&filter), param(&output)], body)
}
