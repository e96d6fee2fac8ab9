//! Widens int32 sizes and indices to int64: the twin of a kernel, for arrays that 32-bit indices do not reach.
//!
//! Sizes of tensor expressions are int32, as in the reference. At a launch whose arrays are larger than that the kernel's
//! twin runs instead. Every int32 variable becomes an int64 one, and so does the arithmetic on them alone. Elements of
//! memory keep their types, so a position that is stored as int32 is still cut there, and so does arithmetic that holds an
//! element: it wraps as int32 in the twin too, with the variables in it cut to int32. Only the sums and products that an
//! index, a loop's range or a size is itself are computed in int64 whatever they hold. No pass of the list: who launches
//! asks for it, on the kernel before lowering.

use coulis_ir::hash::FastMap;

use coulis_ir::buffer::BufferId;
use coulis_ir::stmt::TileOp;
use coulis_ir::visit::{for_each_expr, map_children, uses_any};
use coulis_ir::{BinaryOp, Buffer, DType, Element, Expr, Kernel, Node, Param, Stmt, Var};

/// The kernel with int64 in place of int32 in its sizes and indices, those of threads too; `None` for a tile program, whose
/// scope ids are int32.
pub fn widen_index_types(kernel: &Kernel) -> Option<Kernel> {
    let mut widening = Widening { vars: FastMap::default(), data: Vec::new(), buffers: FastMap::default() };
    for param in &kernel.params {
        match param {
            Param::Scalar(var) => drop(widening.var(var)),
            Param::Buffer { buffer, .. } => {
                let exprs = buffer.shape.iter().chain(&buffer.strides).chain([&buffer.elem_offset]);
                for expr in exprs {
                    for_each_expr(expr, &mut |e| {
                        e.as_var().map(|var| widening.var(var));
                    });
                }
            }
        }
    }
    let param = |widening: &mut Widening, param: &Param| match param {
        Param::Scalar(var) => Param::Scalar(widening.var(var)),
        Param::Buffer { handle, buffer } => {
            Param::Buffer { handle: handle.clone(), buffer: widening.buffer(buffer) }
        }
    };
    let params = kernel.params.iter().map(|p| param(&mut widening, p)).collect();
    let body = widening.stmt(&kernel.body)?;
    Some(Kernel { name: kernel.name.clone(), params, attrs: kernel.attrs.clone(), form: kernel.form, body })
}

struct Widening {
    vars: FastMap<Var, Var>,
    /// Names of int32 values that hold elements; they stay.
    data: Vec<Var>,
    buffers: FastMap<BufferId, Buffer>,
}

fn is_int32(expr: &Expr) -> bool {
    expr.dtype() == DType::I32 && expr.lanes() == 1
}

impl Widening {
    /// The variable that stands for one; of another type it stays.
    fn var(&mut self, var: &Var) -> Var {
        if var.dtype() != DType::I32 || self.data.contains(var) {
            return var.clone();
        }
        let wide = || match var.kind() {
            coulis_ir::VarKind::Size => Var::size(var.name(), DType::I64),
            coulis_ir::VarKind::Plain | coulis_ir::VarKind::Handle => Var::new(var.name(), DType::I64),
        };
        self.vars.entry(var.clone()).or_insert_with(wide).clone()
    }

    fn buffer(&mut self, buffer: &Buffer) -> Buffer {
        if let Some(known) = self.buffers.get(&buffer.id) {
            return known.clone();
        }
        let shape: Vec<Expr> = buffer.shape.iter().map(|e| self.index(e)).collect();
        let strides: Vec<Expr> = buffer.strides.iter().map(|e| self.index(e)).collect();
        let elem_offset = self.index(&buffer.elem_offset);
        let wide = buffer.derive(|b| {
            b.shape = shape;
            b.strides = strides;
            b.elem_offset = elem_offset;
        });
        self.buffers.insert(buffer.id, wide.clone());
        wide
    }

    /// A tile or a window on one: its shape is that of its layout, which counts threads and no elements of arrays.
    fn tile(&mut self, buffer: &Buffer) -> Buffer {
        if buffer.shape.iter().all(|extent| extent.as_int().is_some()) {
            self.buffers.entry(buffer.id).or_insert_with(|| buffer.clone());
        }
        self.buffer(buffer)
    }

    /// Whether the value hangs on a variable that was widened.
    fn is_wider(&self, expr: &Expr) -> bool {
        let mut found = false;
        for_each_expr(expr, &mut |e| found |= e.as_var().is_some_and(|var| self.vars.contains_key(var)));
        found
    }

    /// Whether an element of memory is in the value.
    fn holds_data(&self, expr: &Expr) -> bool {
        expr.reads_memory() || uses_any(expr, &self.data)
    }

    /// An index or size: in int64 where it was in int32.
    fn index(&mut self, expr: &Expr) -> Expr {
        if is_int32(expr) { self.place(expr) } else { self.same(expr) }
    }

    /// The int64 of an int32 index: the sums and products that it is are not cut, whatever they hold.
    fn place(&mut self, expr: &Expr) -> Expr {
        match expr.node() {
            Node::Binary(op @ (BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul), a, b) => {
                let (a, b) = (self.place(a), self.place(b));
                Expr::binary(*op, a, b)
            }
            // An index that was cut to 32 bits is not cut.
            Node::Cast(a) if a.dtype() == DType::I64 && self.is_wider(a) => self.same(a),
            _ => self.wide(expr),
        }
    }

    /// A name for a value, which becomes an int64 one where the value is an int32 one that holds no element.
    fn named(&mut self, var: &Var, value: &Expr) -> (Var, Expr) {
        if var.dtype() != DType::I32 {
            return (var.clone(), self.same(value));
        }
        if self.holds_data(value) {
            let value = self.same(value);
            self.data.push(var.clone());
            return (var.clone(), value);
        }
        let value = self.wide(value);
        (self.var(var), value)
    }

    /// The int64 of an int32 value.
    fn wide(&mut self, expr: &Expr) -> Expr {
        match expr.node() {
            _ if self.holds_data(expr) => self.same(expr).cast(DType::I64),
            Node::Int(value) => Expr::int_of(*value, DType::I64),
            Node::Var(var) => self.var(var).expr(),
            Node::Binary(op, a, b) if is_int32(a) => {
                let (a, b) = (self.wide(a), self.wide(b));
                Expr::binary(*op, a, b)
            }
            Node::Select(c, a, b) => {
                let (c, a, b) = (self.same(c), self.wide(a), self.wide(b));
                Expr::select(c, a, b)
            }
            Node::IfThenElse(c, a, b) => {
                let (c, a, b) = (self.same(c), self.wide(a), self.wide(b));
                Expr::if_then_else(c, a, b)
            }
            Node::Cast(a) if a.dtype() == DType::I64 && self.is_wider(a) => self.same(a),
            Node::Let(var, value, body) => {
                let (var, value) = self.named(var, value);
                Expr::let_in(var, value, self.wide(body))
            }
            _ => self.same(expr).cast(DType::I64),
        }
    }

    /// The value in its own type, made from what was widened.
    fn same(&mut self, expr: &Expr) -> Expr {
        match expr.node() {
            Node::Var(_) | Node::Binary(..) | Node::Select(..) | Node::IfThenElse(..) | Node::Let(..)
                if is_int32(expr) && self.is_wider(expr) && !self.holds_data(expr) =>
            {
                self.wide(expr).cast(DType::I32)
            }
            Node::Binary(op, a, b) if op.is_comparison() && is_int32(a) => {
                let (a, b) = (self.wide(a), self.wide(b));
                Expr::binary(*op, a, b)
            }
            Node::Cast(a) if is_int32(a) && self.is_wider(a) && !self.holds_data(a) => {
                let wide = self.wide(a);
                if expr.dtype() == DType::I64 { wide } else { wide.cast(expr.dtype()) }
            }
            Node::Load(buffer, indices) => {
                let (buffer, indices) =
                    (self.buffer(buffer), indices.iter().map(|i| self.index(i)).collect::<Vec<_>>());
                Expr::load(buffer, indices)
            }
            Node::Let(var, value, body) => {
                let (var, value) = self.named(var, value);
                Expr::let_in(var, value, self.same(body))
            }
            _ => map_children(expr, &mut |e| self.same(e)),
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Option<Stmt> {
        Some(match stmt {
            Stmt::Seq(stmts) => Stmt::Seq(stmts.iter().map(|s| self.stmt(s)).collect::<Option<_>>()?),
            Stmt::For { var, min, extent, kind, body } => {
                let (min, extent, var) = (self.index(min), self.index(extent), self.var(var));
                Stmt::For { var, min, extent, kind: *kind, body: Box::new(self.stmt(body)?) }
            }
            Stmt::If { cond, then, otherwise } => Stmt::If {
                cond: self.same(cond),
                then: Box::new(self.stmt(then)?),
                otherwise: match otherwise {
                    Some(other) => Some(Box::new(self.stmt(other)?)),
                    None => None,
                },
            },
            Stmt::Store { buffer, indices, value } => Stmt::Store {
                buffer: self.buffer(buffer),
                indices: indices.iter().map(|i| self.index(i)).collect(),
                value: self.same(value),
            },
            Stmt::Let { var, value, body } => {
                let (var, value) = self.named(var, value);
                Stmt::Let { var, value, body: Box::new(self.stmt(body)?) }
            }
            Stmt::Allocate { buffer, body } => {
                Stmt::Allocate { buffer: self.buffer(buffer), body: Box::new(self.stmt(body)?) }
            }
            Stmt::Annotate { node, key, value, body } => Stmt::Annotate {
                node: node.clone(),
                key: key.clone(),
                value: value.clone(),
                body: Box::new(self.stmt(body)?),
            },
            Stmt::LaunchThread { tag, var, extent, body } => {
                let (extent, var) = (self.index(extent), self.var(var));
                Stmt::LaunchThread { tag: *tag, var, extent, body: Box::new(self.stmt(body)?) }
            }
            Stmt::AllocBuffer(buffer) => Stmt::AllocBuffer(self.tile(buffer)),
            Stmt::View { buffer, source, local } => {
                Stmt::View { buffer: self.tile(buffer), source: self.tile(source), local: *local }
            }
            Stmt::Tile(call) => {
                let mut call = call.clone();
                for region in call.dsts.iter_mut().chain(&mut call.srcs) {
                    region.buffer = self.tile(&region.buffer);
                }
                if let TileOp::ReduceBy { reducer, .. } = &mut call.op {
                    // What is folded keeps its type, also where it is a position.
                    let combine = &mut reducer.combine;
                    combine.body = combine.body.iter().map(|e| self.same(e)).collect();
                }
                Stmt::Tile(call)
            }
            Stmt::Atom(call) => {
                let mut call = call.clone();
                for element in call.dst.iter_mut().chain(&mut call.memory) {
                    let indices = element.indices.iter().map(|i| self.index(i)).collect();
                    *element = Element { indices, buffer: self.buffer(&element.buffer) };
                }
                call.args = call.args.iter().map(|e| self.same(e)).collect();
                Stmt::Atom(call)
            }
            Stmt::Sync(kind) => Stmt::Sync(*kind),
            Stmt::DeviceEntry | Stmt::ScopeIds { .. } => return None,
        })
    }
}
