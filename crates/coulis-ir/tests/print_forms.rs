//! How single expressions and statements print.

use coulis_ir::print::{print_expr, print_reducer, print_stmt};
use coulis_ir::stmt::{Region, Site, TileOp};
use coulis_ir::{
    BinaryOp, Buffer, DType, ExecScope, Expr, Intrinsic, Lambda, LoopKind, MemScope, Reducer, ScopeId, Stmt,
    SyncKind, TileCall, Var,
};

#[track_caller]
fn check(expr: Expr, want: &str) {
    assert_eq!(print_expr(&expr), want);
}

#[track_caller]
fn check_stmt(stmt: Stmt, want: &[&str]) {
    assert_eq!(print_stmt(&stmt).lines().collect::<Vec<_>>(), want);
}

fn var(name: &str) -> Expr {
    Var::new(name, DType::I32).expr()
}

fn long(value: i128) -> Expr {
    Expr::int_of(value, DType::I64)
}

#[test]
fn parentheses_follow_pythons_precedence() {
    let (a, b, c) = (var("a"), var("b"), var("c"));
    check(&(&a + &b) + &c, "a + b + c");
    check(&a + &(&b + &c), "a + (b + c)");
    check(&(&a + &b) * &c, "(a + b) * c");
    check(&a - &(&b * &c), "a - b * c");
    check((&a * &b).floordiv(c.clone()), "a * b // c");
    check(a.clone().floormod(&b * &c), "a % (b * c)");
    let less = a.clone().lt(b.clone());
    check(less.clone().equal(less.clone()), "(a < b) == (a < b)");
    check(less.clone().or(less.clone().and(less.clone()).logical_not()), "a < b or not (a < b and a < b)");
    check(less.clone().logical_not().equal(less), "(not a < b) == (a < b)");
    let bits = |op, a: &Expr, b: &Expr| Expr::binary(op, a.clone(), b.clone());
    check(bits(BinaryOp::BitAnd, &bits(BinaryOp::BitOr, &a, &b), &c), "(a | b) & c");
    check(bits(BinaryOp::BitXor, &bits(BinaryOp::Shl, &a, &b), &c), "a << b ^ c");
    check(bits(BinaryOp::Shr, &a, &(&b + &c)), "a >> b + c");
}

#[test]
fn constants_name_their_type_unless_int32() {
    check(Expr::int(-3), "-3");
    check(long(16), "T.int64(16)");
    check(Expr::bool(true), "T.bool(True)");
    check(Expr::float(f64::NEG_INFINITY, DType::F32), "T.float32(\"-inf\")");
    check(Expr::float(0.1, DType::F64), "T.float64(0.10000000000000001)");
    check(Expr::float(1.5, DType::BF16), "T.bfloat16(1.5)");
    check(Expr::int(1) + Expr::int(2), "T.Add(1, 2)");
}

#[test]
fn what_python_has_no_sign_for_is_a_call() {
    let (a, b) = (var("a"), var("b"));
    check(a.clone().max(b.clone()), "T.max(a, b)");
    check(&a / &b, "T.Div(a, b)");
    check(Expr::binary(BinaryOp::TruncMod, a.clone(), b.clone()), "T.truncmod(a, b)");
    check(Expr::select(a.clone().lt(b.clone()), a.clone(), b.clone()), "T.Select(a < b, a, b)");
    check(Expr::call1(Intrinsic::Exp, a.clone().cast(DType::F32)), "T.exp(T.Cast(\"float32\", a))");
    let t = Var::new("t", DType::I32);
    check(Expr::let_in(t.clone(), a, &t.expr() * &t.expr()), "T.Let(t * t, where={t: a})");
}

#[test]
fn vectors_print_as_slices_ramps_and_broadcasts() {
    let x = Buffer::new("X", DType::F32, vec![Expr::int(64)], MemScope::Global);
    let k = var("k");
    let ramp = |base: Expr, stride: i32, lanes| x.at([Expr::ramp(base, Expr::int(stride), lanes)]);
    check(ramp(Expr::int(0), 1, 16), "X[0:16]");
    check(ramp(k.clone(), 16, 16), "X[k:k + 256:16]");
    check(ramp(&k * &Expr::int(4), 1, 4), "X[k * 4:k * 4 + 4]");
    check(ramp(k.clone(), -1, 4), "X[T.Ramp(k, -1, 4)]");
    check(ramp(Expr::int(i32::MAX), 1, 4), "X[T.Ramp(2147483647, 1, 4)]");
    check(x.at([Expr::ramp(long(0), long(2), 4)]), "X[T.int64(0):T.int64(8):T.int64(2)]");
    check(ramp(Expr::int(0), 1, 16).cast(DType::F64), "T.Cast(\"float64x16\", X[0:16])");
    check(ramp(Expr::int(0), 1, 2) + x.at([k]), "X[0:2] + T.Broadcast(X[k], 2)");
}

#[test]
fn loops_print_their_kind_and_bounds() {
    let i = Var::new("i", DType::I32);
    let n = var("n");
    let nop = || Stmt::NOP;
    let loop_ = |min: Expr, extent: Expr, kind| Stmt::for_(i.clone(), min, extent, kind, nop());
    check_stmt(loop_(Expr::int(0), n.clone(), LoopKind::Parallel), &["for i in T.parallel(n):", "    pass"]);
    check_stmt(
        loop_(Expr::int(2), Expr::int(3), LoopKind::Unrolled),
        &["for i in T.unroll(2, 5):", "    pass"],
    );
    check_stmt(loop_(n.clone(), n, LoopKind::Serial), &["for i in range(n, n + n):", "    pass"]);
    let wide = Var::new("i", DType::I64);
    check_stmt(Stmt::range(wide, long(16), nop()), &["for i in range(T.int64(16)):", "    pass"]);
    let j = Var::new("j", DType::I32);
    let triangle = Stmt::range(i.clone(), Expr::int(8), Stmt::range(j, i.expr(), nop()));
    check_stmt(triangle, &["for i in range(8):", "    for j in range(i):", "        pass"]);
}

#[test]
fn scoping_statements_are_flat_at_the_end_of_a_block_and_blocks_before() {
    let acc = Buffer::new("acc", DType::F64, vec![Expr::int(4)], MemScope::Local);
    let store = Stmt::store(&acc, [Expr::int(0)], Expr::float(1.0, DType::F64));
    let alloc = Stmt::allocate(acc, store);
    check_stmt(
        Stmt::Seq(vec![alloc.clone(), alloc]),
        &[
            "with T.allocate([4], \"float64\", \"local\") as acc:",
            "    acc[0] = T.float64(1)",
            "acc = T.allocate([4], \"float64\", \"local\")",
            "acc[0] = T.float64(1)",
        ],
    );
}

#[test]
fn an_alias_is_declared_inside_the_allocation_it_looks_at() {
    let raw = Buffer::new("acc", DType::F32, vec![Expr::int(4)], MemScope::Local);
    let view = raw.derive(|b| b.shape = vec![Expr::int(2), Expr::int(2)]);
    let store = Stmt::store(&view, [Expr::int(0), Expr::int(1)], Expr::float(1.0, DType::F32));
    let i = Var::new("i", DType::I32);
    let alloc = Stmt::allocate(raw, Stmt::range(i, Expr::int(2), store));
    let block = |head: &str| {
        [
            head,
            "    for i in range(2):",
            "        acc_1 = T.Buffer((2, 2), data=acc, scope=\"local\")",
            "        acc_1[0, 1] = T.float32(1)",
        ]
        .map(str::to_owned)
    };
    let text = print_stmt(&Stmt::Seq(vec![alloc.clone(), alloc, Stmt::Sync(SyncKind::Cta)]));
    let head = "with T.allocate([4], \"float32\", \"local\") as acc:";
    let want: Vec<String> = [&block(head)[..], &block(head)[..], &["T.cuda.cta_sync()".to_owned()]].concat();
    assert_eq!(text.lines().collect::<Vec<_>>(), want);
}

#[test]
fn tile_programs_print_in_their_own_spelling() {
    let a = Buffer::new("A", DType::F32, vec![Expr::int(4), Expr::int(8)], MemScope::Shared);
    let b = Buffer::new("B", DType::F32, vec![Expr::int(4)], MemScope::Shared);
    let reduce = |name: &str, scope| {
        let op = TileOp::Reduce { name: name.to_owned(), axes: vec![-1], accum: false };
        let (dsts, srcs) = (vec![Region::whole(&b)], vec![Region::whole(&a)]);
        Stmt::Tile(Box::new(TileCall {
            op,
            scope,
            dsts,
            srcs,
            dispatch: None,
            options: vec![],
            site: Site::default(),
        }))
    };
    let i = var("i");
    let part =
        Region { buffer: a.clone(), ranges: vec![(i.clone(), Expr::int(1)), (Expr::int(0), Expr::int(8))] };
    let copy = TileCall {
        op: TileOp::Copy,
        scope: ExecScope::Warpgroup,
        dsts: vec![part],
        srcs: vec![Region { buffer: b.clone(), ranges: vec![(i, Expr::int(2))] }],
        dispatch: Some("vec".to_owned()),
        options: vec![("ftz".to_owned(), coulis_ir::Attr::Bool(true))],
        site: Site::default(),
    };
    let bx = Var::new("bx", DType::I32);
    check_stmt(
        Stmt::Seq(vec![
            Stmt::DeviceEntry,
            Stmt::ScopeIds { id: ScopeId::Cta, vars: vec![bx], extents: vec![Expr::int(2)] },
            Stmt::ScopeIds { id: ScopeId::Lane, vars: vec![], extents: vec![] },
            Stmt::AllocBuffer(a.clone()),
            Stmt::AllocBuffer(b.clone()),
            reduce("sum", ExecScope::Cta),
            reduce("logsumexp", ExecScope::Thread),
            Stmt::Tile(Box::new(copy)),
            Stmt::Sync(SyncKind::Warpgroup(3)),
        ]),
        &[
            "T.device_entry()",
            "bx = T.cta_id([2])",
            "T.lane_id()",
            "A = T.alloc_buffer((4, 8), \"float32\", scope=\"shared\")",
            "B = T.alloc_buffer((4,), \"float32\", scope=\"shared\")",
            "Tx.cta.sum(B, A, axes=(-1,), accum=False)",
            "Tx.reduce(B, A, reducer=\"logsumexp\", axes=(-1,), accum=False)",
            "Tx.warpgroup.copy(A[i, :], B[i:i + 2], dispatch=\"vec\", ftz=True)",
            "T.cuda.warpgroup_sync(3)",
        ],
    );
}

#[test]
fn a_plain_reducer_prints_as_in_seed_003() {
    let (x, y) = (Var::new("x", DType::F32), Var::new("y", DType::F32));
    let body = vec![x.expr() + y.expr()];
    let sum = Reducer::plain(Lambda { params: vec![x, y], body }, vec![Expr::float(0.0, DType::F32)]);
    assert_eq!(print_reducer(&sum), "T.comm_reducer(lambda x, y: x + y, [T.float32(0)])");
}

#[test]
fn a_window_declared_in_one_block_is_an_alias_in_another() {
    let raw = Buffer::new("A", DType::F32, vec![Expr::int(8)], MemScope::Global);
    let window = raw.derive(|b| b.shape = vec![Expr::int(4)]);
    let store = || Stmt::store(&window, [Expr::int(0)], Expr::float(1.0, DType::F32));
    let view = Stmt::View { buffer: window.clone(), source: raw.clone(), local: false };
    let cond = Expr::bool(true);
    check_stmt(
        Stmt::Seq(vec![
            Stmt::AllocBuffer(raw.clone()),
            Stmt::if_(cond.clone(), Stmt::Seq(vec![view, store()])),
            Stmt::if_(cond, store()),
        ]),
        &[
            "A = T.alloc_buffer((8,), \"float32\")",
            "if T.bool(True):",
            "    A_1 = A.view(4)",
            "    A_1[0] = T.float32(1)",
            "if T.bool(True):",
            "    A_1 = T.Buffer((4,), \"float32\", data=A.data)",
            "    A_1[0] = T.float32(1)",
        ],
    );
}
