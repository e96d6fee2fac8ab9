//! Random statements.

use coulis_ir::reducer::QuickStep;
use coulis_ir::stmt::{Region, Site, TileOp};
use coulis_ir::{
    Attr, Buffer, DType, ExecScope, Expr, Form, Lambda, LoopKind, Reducer, ScopeId, Stmt, SyncKind,
    ThreadTag, Ties, TileCall, Ty, Var,
};

use super::Maker;

impl Maker {
    /// Statements one after another; what they define is forgotten after them.
    pub fn block(&mut self, depth: usize) -> Stmt {
        let (n_vars, n_buffers) = (self.vars.len(), self.buffers.len());
        let mut stmts = Vec::new();
        for _ in 0..self.random.below(4) {
            let stmt = self.stmt(depth);
            if self.random.one_in(8) && self.form != Form::Tiled {
                stmts.push(stmt.clone());
            }
            stmts.push(stmt);
        }
        self.vars.truncate(n_vars);
        self.buffers.truncate(n_buffers);
        if stmts.len() == 1 && self.random.one_in(2) { stmts.remove(0) } else { Stmt::Seq(stmts) }
    }

    /// The body of a statement that binds a variable or a buffer.
    fn inside(&mut self, var: Option<&Var>, buffer: Option<&Buffer>, depth: usize) -> Stmt {
        let (n_vars, n_buffers) = (self.vars.len(), self.buffers.len());
        self.vars.extend(var.cloned());
        if let Some(buffer) = buffer {
            self.buffers.push(buffer.clone());
            if self.random.one_in(2) {
                let alias = self.alias(buffer);
                self.buffers.push(alias);
            }
        }
        let body = self.block(depth);
        self.vars.truncate(n_vars);
        self.buffers.truncate(n_buffers);
        body
    }

    fn stmt(&mut self, depth: usize) -> Stmt {
        if depth == 0 {
            return self.store();
        }
        let depth = depth - 1;
        match self.random.below(if self.form == Form::Tiled { 14 } else { 9 }) {
            0 | 1 => self.store(),
            2 | 3 => self.loop_(depth),
            4 => {
                let cond = self.expr(Ty::scalar(DType::Bool), 2);
                let then = Box::new(self.block(depth));
                let otherwise = self.random.one_in(2).then(|| Box::new(self.block(depth)));
                Stmt::If { cond, then, otherwise }
            }
            5 => {
                let dtype = *self.random.pick(&[DType::I32, DType::I64, DType::F32, DType::Bool]);
                let value = self.expr(Ty::scalar(dtype), 2);
                let var = self.new_var(dtype);
                let body = self.inside(Some(&var), None, depth);
                Stmt::let_(var, value, body)
            }
            6 => {
                let buffer = self.local_buffer();
                let body = self.inside(None, Some(&buffer), depth);
                Stmt::allocate(buffer, body)
            }
            7 => self.annotation(depth),
            8 => {
                let tag = *self.random.pick(&ThreadTag::ALL);
                let extent = self.extent();
                let var = Var::new(tag.name(), extent.dtype());
                let body = self.inside(Some(&var), None, depth);
                Stmt::LaunchThread { tag, var, extent, body: Box::new(body) }
            }
            9 => {
                let id = *self.random.pick(&ScopeId::ALL);
                let extents: Vec<Expr> = (0..self.random.below(3)).map(|_| self.extent()).collect();
                let wanted = if self.random.one_in(2) { 0 } else { extents.len().max(1) };
                let mut vars = Vec::new();
                for i in 0..wanted {
                    vars.push(self.new_var(extents.get(i).map_or(DType::I32, Expr::dtype)));
                }
                self.vars.extend(vars.iter().cloned());
                Stmt::ScopeIds { id, vars, extents }
            }
            10 => {
                let buffer = self.local_buffer();
                self.buffers.push(buffer.clone());
                Stmt::AllocBuffer(buffer)
            }
            11 => self.view(),
            12 => {
                let id = self.random.below(16) as u32;
                Stmt::Sync(*self.random.pick(&[
                    SyncKind::Cluster,
                    SyncKind::Cta,
                    SyncKind::Warp,
                    SyncKind::Warpgroup(id),
                ]))
            }
            _ => self.tile_call(),
        }
    }

    fn store(&mut self) -> Stmt {
        let known: Vec<Buffer> = self.buffers.iter().filter(|b| self.fits(b)).cloned().collect();
        if known.is_empty() {
            return Stmt::NOP;
        }
        let buffer = self.random.pick(&known).clone();
        let vectors = self.form != Form::Nest && buffer.rank() > 0;
        let lanes = if vectors { *self.random.pick(&[1, 1, 4, 16]) } else { 1 };
        let indices = self.indices(&buffer, lanes, 2);
        let value = self.expr(Ty { dtype: buffer.dtype, lanes }, 3);
        Stmt::Store { buffer, indices, value }
    }

    fn extent(&mut self) -> Expr {
        let dtype = *self.random.pick(&[DType::I32, DType::I32, DType::I64]);
        if self.random.one_in(2) {
            return Expr::int_of(self.random.below(64) as i128, dtype);
        }
        self.expr(Ty::scalar(dtype), 2)
    }

    fn loop_(&mut self, depth: usize) -> Stmt {
        let extent = self.extent();
        let dtype = extent.dtype();
        let min = match self.random.below(4) {
            0 => self.expr(Ty::scalar(dtype), 1),
            _ => Expr::int_of(0, dtype),
        };
        let kinds: &[LoopKind] = if self.form == Form::Flat {
            &[LoopKind::Serial, LoopKind::Serial, LoopKind::Parallel, LoopKind::Unrolled]
        } else {
            &[
                LoopKind::Serial,
                LoopKind::Serial,
                LoopKind::Parallel,
                LoopKind::Unrolled,
                LoopKind::Vectorized,
            ]
        };
        let kind = *self.random.pick(kinds);
        let var = self.new_var(dtype);
        let body = self.inside(Some(&var), None, depth);
        Stmt::for_(var, min, extent, kind, body)
    }

    fn annotation(&mut self, depth: usize) -> Stmt {
        let node = match self.random.below(3) {
            0 => None,
            1 if !self.vars.is_empty() => Some(self.random.pick(&self.vars.clone()).clone()),
            _ => Some(Var::new(&self.hint(), DType::I32)),
        };
        let value = match self.random.below(3) {
            0 => Attr::Bool(true),
            1 => Attr::Int(512),
            _ => Attr::Str("hot".to_owned()),
        };
        let body = Box::new(self.inside(None, None, depth));
        Stmt::Annotate { node, key: "pragma_auto_unroll_max_step".to_owned(), value, body }
    }

    fn view(&mut self) -> Stmt {
        if self.buffers.is_empty() {
            return Stmt::NOP;
        }
        let source = self.random.pick(&self.buffers.clone()).clone();
        let other_dtype = self.random.one_in(4);
        let shape = vec![Expr::int(4); 1 + self.random.below(2)];
        let buffer = source.derive(|b| {
            b.name = "window".to_owned();
            b.shape = shape;
            b.strides = Vec::new();
            b.layout = None;
            if other_dtype {
                b.dtype = DType::U8;
            }
        });
        self.buffers.push(buffer.clone());
        Stmt::View { buffer, source, local: self.random.one_in(2) }
    }

    fn tile_call(&mut self) -> Stmt {
        if self.buffers.is_empty() {
            return Stmt::NOP;
        }
        let scopes =
            [ExecScope::Thread, ExecScope::Warp, ExecScope::Warpgroup, ExecScope::Cta, ExecScope::Cluster];
        let scope = *self.random.pick(&scopes);
        let (axes, accum) = (vec![-1; self.random.below(3)], self.random.one_in(2));
        let op = match self.random.below(4) {
            0 => TileOp::Copy,
            1 => TileOp::ReduceBy { reducer: Box::new(self.reducer()), axes, accum },
            _ => {
                let name = (*self.random.pick(&["sum", "max", "min", "logsumexp"])).to_owned();
                TileOp::Reduce { name, axes, accum }
            }
        };
        let n_dsts = if op == TileOp::Copy { 1 } else { 1 + self.random.below(2) };
        let dsts = (0..n_dsts).map(|_| self.region()).collect();
        let srcs = vec![self.region()];
        let dispatch = self.random.one_in(4).then(|| "serial".to_owned());
        let mut options = Vec::new();
        if self.random.one_in(4) {
            options.push(("ftz".to_owned(), Attr::Bool(true)));
        }
        if self.random.one_in(4) {
            options.push(("thread_reduce".to_owned(), Attr::Bool(false)));
        }
        Stmt::Tile(Box::new(TileCall { op, scope, dsts, srcs, dispatch, options, site: Site::default() }))
    }

    fn region(&mut self) -> Region {
        let buffer = self.random.pick(&self.buffers.clone()).clone();
        let mut region = Region::whole(&buffer);
        if self.random.one_in(2) {
            for range in &mut region.ranges {
                let dtype = *self.random.pick(&[DType::I32, DType::I64]);
                match self.random.below(3) {
                    0 => *range = (self.expr(Ty::scalar(dtype), 1), Expr::int_of(1, dtype)),
                    1 => *range = (self.expr(Ty::scalar(dtype), 1), self.expr(Ty::scalar(dtype), 1)),
                    _ => {}
                }
            }
        }
        region
    }

    fn reducer(&mut self) -> Reducer {
        let dtypes: Vec<DType> = (0..1 + self.random.below(2))
            .map(|_| *self.random.pick(&[DType::F32, DType::I64, DType::F64]))
            .collect();
        let twice = [&dtypes[..], &dtypes[..]].concat();
        let combine = self.lambda(&twice, &dtypes);
        let identity = dtypes.iter().map(|&d| Expr::constant(0, d)).collect();
        let mut reducer = Reducer::plain(combine, identity);
        if self.random.one_in(3) {
            reducer.name = "mine".to_owned();
            reducer.fields[0].name = "total".to_owned();
            reducer.lift = self.lambda(&[DType::F16, DType::I64], &dtypes);
            reducer.ties = Ties::Last;
            reducer.claims.idempotent = true;
            reducer.step_needs_ascending = true;
        }
        if self.random.one_in(3) {
            reducer.step = Some(self.lambda(&twice, &dtypes));
            let run = vec![DType::F32; 1 + self.random.below(3)];
            let inputs: Vec<DType> = reducer.lift.params.iter().map(Var::dtype).collect();
            reducer.quick = Some(QuickStep {
                identity: run.iter().map(|&d| Expr::constant(0, d)).collect(),
                lift: self.lambda(&inputs, &run),
                step: self.lambda(&[&run[..], &run[..]].concat(), &run),
                close: self.lambda(&[&dtypes[..], &run[..]].concat(), &dtypes),
                max_steps: 16,
                max_joined: 16,
                rewalks: Vec::new(),
                spoilt: None,
                nan_witness: None,
            });
        }
        if self.random.one_in(3) {
            reducer.finish = self.lambda(&dtypes, &[DType::F32]);
            reducer.results.truncate(1);
            reducer.results[0].dtype = DType::F16;
        }
        reducer
    }

    fn lambda(&mut self, params: &[DType], results: &[DType]) -> Lambda {
        let outer = std::mem::take(&mut self.vars);
        let params: Vec<Var> = params.iter().map(|&d| Var::new(&self.hint(), d)).collect();
        self.vars = params.clone();
        let buffers = std::mem::take(&mut self.buffers);
        let body = results.iter().map(|&d| self.scalar_without_let(d)).collect();
        self.buffers = buffers;
        self.vars = outer;
        Lambda { params, body }
    }

    /// Lambdas compare by substitution, under which a binding inside would be another variable.
    fn scalar_without_let(&mut self, dtype: DType) -> Expr {
        loop {
            let expr = self.expr(Ty::scalar(dtype), 3);
            let mut has_let = false;
            coulis_ir::visit::for_each_expr(&expr, &mut |e| {
                has_let |= matches!(e.node(), coulis_ir::Node::Let(..));
            });
            if !has_let {
                return expr;
            }
        }
    }
}
