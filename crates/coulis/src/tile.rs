//! Tile kernels built in Rust: what the text form says with `T.` and `Tx.`, as calls on a builder.
//!
//! The kernel is the same value that its text reads to, and goes the same way from there:
//! [`Function::of_kernel`](crate::Function::of_kernel) runs it. Statements go to the end of the block that is open.

pub use coulis_ir::stmt::Region;
pub use coulis_ir::{Buffer, ExecScope, Expr, Kernel, MemScope, ScopeId, Stmt, SyncKind, TileCall};
pub use coulis_layout::TileLayout;

use coulis_ir::stmt::TileOp;
use coulis_ir::{DType, Form, Param, Var};

/// A tile kernel under construction.
pub struct TileKernel {
    name: String,
    params: Vec<Param>,
    stmts: Vec<Stmt>,
}

fn extents(shape: &[i64]) -> Vec<Expr> {
    shape.iter().map(|n| Expr::int_of(i128::from(*n), DType::I32)).collect()
}

impl TileKernel {
    /// A kernel without parameters and statements.
    pub fn new(name: &str) -> TileKernel {
        TileKernel { name: name.to_owned(), params: Vec::new(), stmts: Vec::new() }
    }

    /// A buffer parameter, row-major: `name = T.match_buffer(name_ptr, shape, dtype)`.
    pub fn param(&mut self, name: &str, dtype: DType, shape: &[i64]) -> Buffer {
        let buffer = Buffer::new(name, dtype, extents(shape), MemScope::Global);
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
        let vars: Vec<Var> = names.iter().map(|name| Var::new(name, DType::I32)).collect();
        let values = vars.iter().map(Var::expr).collect();
        self.stmts.push(Stmt::ScopeIds { id, vars, extents: extents(sizes) });
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
        self.call(TileOp::Copy, scope, dst, src);
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
        self.call(op, scope, dst, src);
    }

    fn call(&mut self, op: TileOp, scope: ExecScope, dst: Region, src: Region) {
        let (dsts, srcs) = (vec![dst], vec![src]);
        let call = TileCall { op, scope, dsts, srcs, dispatch: None, options: Vec::new() };
        self.stmts.push(Stmt::Tile(Box::new(call)));
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

    /// `for name in T.serial(extent):`
    pub fn serial(&mut self, name: &str, extent: i64, body: impl FnOnce(&mut TileKernel, Expr)) {
        let var = Var::new(name, DType::I32);
        let index = var.expr();
        let body = self.block(|kernel| body(kernel, index));
        self.stmts.push(Stmt::range(var, Expr::int_of(i128::from(extent), DType::I32), body));
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
}
