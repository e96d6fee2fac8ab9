//! Tile kernels built in Rust: what the text form says with `T.` and `Tx.`, as calls on a builder.
//!
//! The kernel is the same value that its text reads to, and goes the same way from there:
//! [`Function::of_kernel`](crate::Function::of_kernel) runs it. Statements go to the end of the block that is open.

pub use coulis_ir::stmt::Region;
pub use coulis_ir::stmt::TileOp;
pub use coulis_ir::{
    Attr, Buffer, ExecScope, Expr, Kernel, LoopKind, MemScope, ScopeId, Stmt, SyncKind, TileCall,
};
pub use coulis_layout::TileLayout;

use coulis_ir::{DType, Form, Param, Site, Var};

/// What a tile call may say in addition to its operands.
#[derive(Clone, Debug, Default)]
pub struct CallOptions<'a> {
    /// `dispatch="name"`: the variant that must be taken.
    pub dispatch: Option<&'a str>,
    /// Options that a variant may read, by name: `ftz`, `thread_reduce`, `lanes`, `warps`.
    pub options: &'a [(&'a str, Attr)],
}

/// A tile kernel under construction.
pub struct TileKernel {
    name: String,
    params: Vec<Param>,
    stmts: Vec<Stmt>,
}

/// Constants, `int64` where they need that, as a text's are.
fn extents(shape: &[i64]) -> Vec<Expr> {
    let dtype = |n: i64| if i32::try_from(n).is_ok() { DType::I32 } else { DType::I64 };
    shape.iter().map(|&n| Expr::int_of(i128::from(n), dtype(n))).collect()
}

impl TileKernel {
    /// A kernel without parameters and statements.
    pub fn new(name: &str) -> TileKernel {
        TileKernel { name: name.to_owned(), params: Vec::new(), stmts: Vec::new() }
    }

    /// A buffer parameter, row-major: `name = T.match_buffer(name_ptr, shape, dtype)`.
    pub fn param(&mut self, name: &str, dtype: DType, shape: &[i64]) -> Buffer {
        self.param_laid(name, dtype, shape, None)
    }

    /// A buffer parameter: `name = T.match_buffer(name_ptr, shape, dtype, layout=layout)`.
    pub fn param_laid(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[i64],
        layout: Option<TileLayout>,
    ) -> Buffer {
        let buffer = Buffer::new(name, dtype, extents(shape), MemScope::Global).derive(|b| b.layout = layout);
        let handle = Var::handle(&format!("{name}_ptr"));
        self.params.push(Param::Buffer { handle, buffer: buffer.clone() });
        buffer
    }

    /// `T.device_entry()`: what follows runs on the device.
    pub fn device_entry(&mut self) {
        self.stmts.push(Stmt::DeviceEntry);
    }

    /// Declares scope ids, one name an extent: `names = T.cta_id(extents)`. Without extents they follow from others.
    pub fn ids(&mut self, id: ScopeId, names: &[&str], sizes: &[i64]) -> Vec<Expr> {
        self.ids_of(id, names, extents(sizes))
    }

    /// As [`TileKernel::ids`], with extents that may be expressions of the arguments.
    pub fn ids_of(&mut self, id: ScopeId, names: &[&str], extents: Vec<Expr>) -> Vec<Expr> {
        let vars: Vec<Var> = names.iter().map(|name| Var::new(name, DType::I32)).collect();
        let values = vars.iter().map(Var::expr).collect();
        self.stmts.push(Stmt::ScopeIds { id, vars, extents });
        values
    }

    /// `name = T.alloc_buffer(shape, dtype, scope=scope, layout=layout)`.
    pub fn alloc(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[i64],
        scope: MemScope,
        layout: Option<TileLayout>,
    ) -> Buffer {
        let buffer = Buffer::new(name, dtype, extents(shape), scope).derive(|b| b.layout = layout);
        self.stmts.push(Stmt::AllocBuffer(buffer.clone()));
        buffer
    }

    /// `name = source.view(shape, layout=layout)`: the same memory under another shape and layout.
    pub fn view(&mut self, name: &str, source: &Buffer, shape: &[i64], layout: Option<TileLayout>) -> Buffer {
        self.window(name, source, shape, layout, false)
    }

    /// `name = source.local(shape, layout=layout)`: the calling thread's registers of a tile that is spread over threads.
    pub fn local(
        &mut self,
        name: &str,
        source: &Buffer,
        shape: &[i64],
        layout: Option<TileLayout>,
    ) -> Buffer {
        self.window(name, source, shape, layout, true)
    }

    fn window(
        &mut self,
        name: &str,
        source: &Buffer,
        shape: &[i64],
        layout: Option<TileLayout>,
        local: bool,
    ) -> Buffer {
        let buffer = source.derive(|b| {
            b.name = name.to_owned();
            b.shape = extents(shape);
            b.layout = layout;
        });
        self.stmts.push(Stmt::View { buffer: buffer.clone(), source: source.clone(), local });
        buffer
    }

    /// `Tx.<scope>.copy(dst, src)`.
    pub fn copy(&mut self, scope: ExecScope, dst: Region, src: Region) {
        self.call(TileOp::Copy, scope, vec![dst], vec![src], CallOptions::default());
    }

    /// `Tx.<scope>.reduce(dst, src, reducer=name, axes=axes, accum=accum)`.
    pub fn reduce(
        &mut self,
        scope: ExecScope,
        name: &str,
        [dst, src]: [Region; 2],
        axes: &[i64],
        accum: bool,
    ) {
        let op = TileOp::Reduce { name: name.to_owned(), axes: axes.to_vec(), accum };
        self.call(op, scope, vec![dst], vec![src], CallOptions::default());
    }

    /// Any tile call, of any number of operands.
    pub fn call(
        &mut self,
        op: TileOp,
        scope: ExecScope,
        dsts: Vec<Region>,
        srcs: Vec<Region>,
        with: CallOptions,
    ) {
        let dispatch = with.dispatch.map(str::to_owned);
        let options = with.options.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        let call = TileCall { op, scope, dsts, srcs, dispatch, options, site: Site::default() };
        self.stmts.push(Stmt::Tile(Box::new(call)));
    }

    /// `T.cuda.warp_reduce(value, name, width)`: what `width` neighbouring lanes have, folded; each gets the total.
    pub fn warp_reduce(&mut self, value: Expr, name: &str, width: u32) -> Expr {
        self.across(ExecScope::Warp, value, name, ("lanes", Attr::Int(width.into())))
    }

    /// `T.cuda.cta_reduce(value, name, n_warps, ...)`: what all threads of a block of `n_warps` warps have,
    /// folded; each gets the total. The memory for it is the variant's own.
    pub fn cta_reduce(&mut self, value: Expr, name: &str, n_warps: u32) -> Expr {
        self.across(ExecScope::Cta, value, name, ("warps", Attr::Int(n_warps.into())))
    }

    fn across(&mut self, scope: ExecScope, value: Expr, name: &str, who: (&str, Attr)) -> Expr {
        let register = Buffer::new("across", value.dtype(), extents(&[1]), MemScope::Local);
        self.stmts.push(Stmt::AllocBuffer(register.clone()));
        self.store(&register, [Expr::int(0)], value);
        let op = TileOp::Reduce { name: name.to_owned(), axes: vec![-1], accum: false };
        let whole = || vec![Region::whole(&register)];
        self.call(op, scope, whole(), whole(), CallOptions { dispatch: None, options: &[who] });
        register.at([Expr::int(0)])
    }

    /// `buffer[indices] = value`.
    pub fn store(&mut self, buffer: &Buffer, indices: impl Into<Vec<Expr>>, value: Expr) {
        self.stmts.push(Stmt::store(buffer, indices, value));
    }

    /// A barrier.
    pub fn sync(&mut self, kind: SyncKind) {
        self.stmts.push(Stmt::Sync(kind));
    }

    /// Any other statement.
    pub fn push(&mut self, stmt: Stmt) {
        self.stmts.push(stmt);
    }

    /// `if cond:`
    pub fn under(&mut self, cond: Expr, body: impl FnOnce(&mut TileKernel)) {
        let body = self.block(body);
        self.stmts.push(Stmt::if_(cond, body));
    }

    /// `if cond:` and `else:`
    pub fn either(
        &mut self,
        cond: Expr,
        then: impl FnOnce(&mut TileKernel),
        otherwise: impl FnOnce(&mut TileKernel),
    ) {
        let then = Box::new(self.block(then));
        let otherwise = Some(Box::new(self.block(otherwise)));
        self.stmts.push(Stmt::If { cond, then, otherwise });
    }

    /// `for name in T.serial(extent):`
    pub fn serial(&mut self, name: &str, extent: i64, body: impl FnOnce(&mut TileKernel, Expr)) {
        self.looped(LoopKind::Serial, name, extents(&[extent]).remove(0), body);
    }

    /// A loop of any kind: `T.serial`, `T.unroll`, `T.vectorized`.
    pub fn looped(
        &mut self,
        kind: LoopKind,
        name: &str,
        extent: Expr,
        body: impl FnOnce(&mut TileKernel, Expr),
    ) {
        let var = Var::new(name, extent.dtype());
        let index = var.expr();
        let body = self.block(|kernel| body(kernel, index));
        let first = Expr::int_of(0, extent.dtype());
        self.stmts.push(Stmt::for_(var, first, extent, kind, body));
    }

    /// `for names in T.grid(sizes):`, the first name outermost.
    pub fn grid(&mut self, names: &[&str], sizes: &[i64], body: impl FnOnce(&mut TileKernel, Vec<Expr>)) {
        let sizes = extents(sizes);
        let vars: Vec<Var> =
            names.iter().zip(&sizes).map(|(name, size)| Var::new(name, size.dtype())).collect();
        let indices = vars.iter().map(Var::expr).collect();
        let body = self.block(|kernel| body(kernel, indices));
        let nest = vars.into_iter().zip(sizes).rev();
        self.stmts.push(nest.fold(body, |body, (var, extent)| Stmt::range(var, extent, body)));
    }

    fn block(&mut self, body: impl FnOnce(&mut TileKernel)) -> Stmt {
        let outer = std::mem::take(&mut self.stmts);
        body(self);
        Stmt::seq(std::mem::replace(&mut self.stmts, outer))
    }

    /// The kernel.
    pub fn finish(self) -> Kernel {
        let body = Stmt::seq(self.stmts);
        Kernel { name: self.name, params: self.params, attrs: Default::default(), form: Form::Tiled, body }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_built_kernel_is_what_its_text_reads_to() {
        let text = r#"
@T.prim_func
def rows(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (2, 4, 8), "float32")
    B = T.match_buffer(B_ptr, (2, 4), "float32")
    T.device_entry()
    bx = T.cta_id([2])
    tid = T.thread_id([32])
    s = T.alloc_buffer((4, 8), "float32", scope="shared", layout=TileLayout(S[(4, 8)]))
    t = T.alloc_buffer((4,), "float32", scope="shared")
    Tx.cta.copy(s, A[bx, :, :])
    T.cuda.cta_sync()
    Tx.cta.sum(t, s, axes=(-1,), accum=False)
    for i in T.serial(4):
        if tid == 0:
            B[bx, i] = t[i]
"#;
        let mut k = TileKernel::new("rows");
        let (a, b) = (k.param("A", DType::F32, &[2, 4, 8]), k.param("B", DType::F32, &[2, 4]));
        k.device_entry();
        let bx = k.ids(ScopeId::Cta, &["bx"], &[2]).remove(0);
        let tid = k.ids(ScopeId::Thread, &["tid"], &[32]).remove(0);
        let layout = Some(TileLayout::row_major(&[4, 8]));
        let s = k.alloc("s", DType::F32, &[4, 8], MemScope::Shared, layout);
        let t = k.alloc("t", DType::F32, &[4], MemScope::Shared, None);
        let mut row = Region::whole(&a);
        row.ranges[0] = (bx.clone(), Expr::int(1));
        k.copy(ExecScope::Cta, Region::whole(&s), row);
        k.sync(SyncKind::Cta);
        k.reduce(ExecScope::Cta, "sum", [Region::whole(&t), Region::whole(&s)], &[-1], false);
        k.serial("i", 4, |k, i| {
            k.under(tid.equal(Expr::int(0)), |k| k.store(&b, [bx, i.clone()], t.at([i])));
        });
        let read = coulis_script::parse_module(text).expect("the text is right").remove(0);
        assert_eq!(k.finish(), read);
    }

    #[test]
    fn extents_beyond_int32_are_what_a_text_makes_of_them() {
        let text = r#"
@T.prim_func
def f(A_ptr: T.handle):
    A = T.match_buffer(A_ptr, (4294967300, 2), "int8")
    T.device_entry()
    T.cta_id([1])
    T.thread_id([32])
    for i, j in T.grid(4294967300, 2):
        A[i, j] = T.int8(0)
"#;
        let mut k = TileKernel::new("f");
        let a = k.param("A", DType::I8, &[4_294_967_300, 2]);
        k.device_entry();
        k.ids(ScopeId::Cta, &[], &[1]);
        k.ids(ScopeId::Thread, &[], &[32]);
        k.grid(&["i", "j"], &[4_294_967_300, 2], |k, at| k.store(&a, at, Expr::int_of(0, DType::I8)));
        let read = coulis_script::parse_module(text).expect("the text is right").remove(0);
        assert_eq!(k.finish(), read);
    }

    #[test]
    fn every_construct_of_the_text_has_its_call() {
        let text = r#"
@T.prim_func
def all(A_ptr: T.handle, B_ptr: T.handle):
    A = T.match_buffer(A_ptr, (4, 64), "float32", layout=TileLayout(S[(4, 64) : (1, 4)]))
    B = T.match_buffer(B_ptr, (4, 64), "float32")
    T.device_entry()
    T.cta_id([1])
    wg = T.warpgroup_id([2])
    w = T.warp_id_in_wg([4])
    lane = T.lane_id()
    warp = T.warp_id()
    T.thread_id_in_wg()
    g = T.alloc_buffer((4, 64), "float32", scope="global")
    d = T.alloc_buffer((4, 64), "float32", scope="shared.dyn")
    x = T.alloc_buffer((32, 2), "float32", scope="local", layout=TileLayout(S[(32, 2) : (1 @ laneid, 1)]))
    y = T.alloc_buffer((1,), "float32", scope="local", layout=TileLayout(S[1 : 1] + R[32 : 1 @ laneid]))
    own = x.local(2)
    total = y.local(1)
    turned = d.view(64, 4)
    Tx.cta.copy(d, A, dispatch="fallback")
    T.cuda.cta_sync()
    if wg == 0:
        for i in T.unroll(2):
            own[i] = turned[lane, i]
        Tx.warp.reduce(y, x, reducer="max", axes=(0, 1), accum=False, dispatch="local", thread_reduce=True)
        T.cuda.warp_sync()
        T.cuda.warpgroup_sync(1)
    else:
        for i, j in T.grid(2, 3):
            own[i] = T.Cast("float32", j)
    across = T.alloc_buffer((1,), "float32", scope="local")
    across[0] = own[0]
    Tx.warp.sum(across, across, axes=(-1,), accum=False, lanes=8)
    across_1 = T.alloc_buffer((1,), "float32", scope="local")
    across_1[0] = across[0]
    Tx.cta.sum(across_1, across_1, axes=(-1,), accum=False, warps=8)
    for v in T.vectorized(4):
        g[w, v] = across_1[0]
    Tx.cta.copy(B, g)
"#;
        let mut k = TileKernel::new("all");
        let of = |text: &str| coulis_script::parse_module(text).expect("the text is right").remove(0);
        let columns = TileLayout::sharded(&[(4, 1, "m"), (64, 4, "m")]);
        let a = k.param_laid("A", DType::F32, &[4, 64], Some(columns));
        let b = k.param("B", DType::F32, &[4, 64]);
        k.device_entry();
        k.ids(ScopeId::Cta, &[], &[1]);
        let wg = k.ids(ScopeId::Warpgroup, &["wg"], &[2]).remove(0);
        let w = k.ids(ScopeId::WarpInWarpgroup, &["w"], &[4]).remove(0);
        let lane = k.ids(ScopeId::Lane, &["lane"], &[]).remove(0);
        k.ids(ScopeId::Warp, &["warp"], &[]);
        k.ids(ScopeId::ThreadInWarpgroup, &[], &[]);
        let g = k.alloc("g", DType::F32, &[4, 64], MemScope::Global, None);
        let d = k.alloc("d", DType::F32, &[4, 64], MemScope::SharedDyn, None);
        let lanes = TileLayout::sharded(&[(32, 1, "laneid"), (2, 1, "m")]);
        let x = k.alloc("x", DType::F32, &[32, 2], MemScope::Local, Some(lanes));
        let all = TileLayout::sharded(&[(1, 1, "m")]).replicated(&[(32, 1, "laneid")]);
        let y = k.alloc("y", DType::F32, &[1], MemScope::Local, Some(all));
        let own = k.local("own", &x, &[2], None);
        k.local("total", &y, &[1], None);
        let turned = k.view("turned", &d, &[64, 4], None);
        let fallback = CallOptions { dispatch: Some("fallback"), options: &[] };
        k.call(TileOp::Copy, ExecScope::Cta, vec![Region::whole(&d)], vec![Region::whole(&a)], fallback);
        k.sync(SyncKind::Cta);
        k.either(
            wg.equal(Expr::int(0)),
            |k| {
                k.looped(LoopKind::Unrolled, "i", Expr::int(2), |k, i| {
                    k.store(&own, [i.clone()], turned.at([lane, i]));
                });
                let op = TileOp::Reduce { name: "max".to_owned(), axes: vec![0, 1], accum: false };
                let options = &[("thread_reduce", Attr::Bool(true))];
                let with = CallOptions { dispatch: Some("local"), options };
                k.call(op, ExecScope::Warp, vec![Region::whole(&y)], vec![Region::whole(&x)], with);
                k.sync(SyncKind::Warp);
                k.sync(SyncKind::Warpgroup(1));
            },
            |k| {
                k.grid(&["i", "j"], &[2, 3], |k, at| {
                    k.store(&own, [at[0].clone()], at[1].clone().cast(DType::F32));
                });
            },
        );
        let eight = k.warp_reduce(own.at([Expr::int(0)]), "sum", 8);
        let block = k.cta_reduce(eight, "sum", 8);
        k.looped(LoopKind::Vectorized, "v", Expr::int(4), |k, v| k.store(&g, [w, v], block));
        k.copy(ExecScope::Cta, Region::whole(&b), Region::whole(&g));
        let built = k.finish();
        assert!(
            coulis_ir::struct_eq::kernels_equal(&built, &of(text)),
            "{}",
            coulis_ir::print::print_kernel(&built)
        );
    }
}
