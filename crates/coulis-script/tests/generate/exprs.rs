//! Random expressions of a wanted type.

use coulis_ir::{BinaryOp, Buffer, DType, Expr, Form, Intrinsic, Node, Ty, Var};

use super::Maker;

const SCALARS: [DType; 8] =
    [DType::I32, DType::I64, DType::U8, DType::U64, DType::F32, DType::F64, DType::F16, DType::Bool];

impl Maker {
    /// An expression of type `ty`, at most `depth` deep.
    pub fn expr(&mut self, ty: Ty, depth: usize) -> Expr {
        if depth == 0 || self.random.one_in(5) {
            return self.leaf(ty);
        }
        let depth = depth - 1;
        match self.random.below(12) {
            0 => self.load(ty, depth).unwrap_or_else(|| self.leaf(ty)),
            1 => {
                let from = Ty { dtype: *self.random.pick(&SCALARS), lanes: ty.lanes };
                self.expr(from, depth).cast(ty.dtype)
            }
            2 => {
                let cond = self.expr(ty.with_dtype(DType::Bool), depth);
                let (a, b) = (self.expr(ty, depth), self.expr(ty, depth));
                Expr::select(cond, a, b)
            }
            3 if ty.is_scalar() => {
                let cond = self.expr(Ty::scalar(DType::Bool), depth);
                let (a, b) = (self.expr(ty, depth), self.expr(ty, depth));
                Expr::if_then_else(cond, a, b)
            }
            4 if ty.is_scalar() => {
                let dtype = *self.random.pick(&SCALARS);
                let value = self.expr(Ty::scalar(dtype), depth);
                let var = self.new_var(dtype);
                self.vars.push(var.clone());
                let body = self.expr(ty, depth);
                self.vars.pop();
                Expr::let_in(var, value, body)
            }
            _ if ty.dtype == DType::Bool => self.bool_expr(ty, depth),
            5 | 6 if ty.dtype.is_float() => self.intrinsic(ty, depth),
            _ => {
                let op = *self.random.pick(operations(ty.dtype));
                Expr::binary(op, self.expr(ty, depth), self.expr(ty, depth))
            }
        }
    }

    fn bool_expr(&mut self, ty: Ty, depth: usize) -> Expr {
        match self.random.below(6) {
            0 => self.expr(ty, depth).logical_not(),
            1 => self.expr(ty, depth).and(self.expr(ty, depth)),
            2 => self.expr(ty, depth).or(self.expr(ty, depth)),
            3 => self.expr(ty, depth).likely(),
            4 => {
                let predicate = *self.random.pick(&[Intrinsic::IsNan, Intrinsic::IsInf, Intrinsic::IsFinite]);
                Expr::call1(predicate, self.expr(ty.with_dtype(DType::F32), depth))
            }
            _ => {
                let of = ty.with_dtype(*self.random.pick(&SCALARS));
                let compare =
                    [BinaryOp::Eq, BinaryOp::Ne, BinaryOp::Lt, BinaryOp::Le, BinaryOp::Gt, BinaryOp::Ge];
                Expr::binary(*self.random.pick(&compare), self.expr(of, depth), self.expr(of, depth))
            }
        }
    }

    fn intrinsic(&mut self, ty: Ty, depth: usize) -> Expr {
        let intrinsic = *self.random.pick(&Intrinsic::ALL);
        if intrinsic.is_predicate() || intrinsic == Intrinsic::Popcount {
            return self.leaf(ty);
        }
        let args = (0..intrinsic.arity()).map(|_| self.expr(ty, depth)).collect();
        Expr::call(intrinsic, args)
    }

    fn leaf(&mut self, ty: Ty) -> Expr {
        if ty.lanes > 1 {
            let scalar = Ty::scalar(ty.dtype);
            if ty.dtype.is_int() && self.random.one_in(2) {
                let (base, stride) = (self.leaf(scalar), self.leaf(scalar));
                return Expr::ramp(base, stride, ty.lanes);
            }
            let value = self.leaf(scalar);
            return Expr::new(Node::Broadcast(value), ty);
        }
        let known: Vec<Var> = self.vars.iter().filter(|v| v.dtype() == ty.dtype).cloned().collect();
        if !known.is_empty() && !self.random.one_in(3) {
            return self.random.pick(&known).expr();
        }
        self.constant(ty.dtype)
    }

    fn constant(&mut self, dtype: DType) -> Expr {
        let Some((least, most)) = dtype.int_range() else {
            let bits = self.random.next();
            let value = match self.random.below(8) {
                0 => f64::INFINITY,
                1 => f64::NEG_INFINITY,
                2 => f64::NAN,
                3 => -0.0,
                4 => f64::from_bits(bits),
                5 => f64::from(f32::from_bits(bits as u32)),
                _ => (bits % 16) as f64 - 4.0,
            };
            return Expr::float(value, dtype);
        };
        let value = match self.random.below(8) {
            0 => least,
            1 => most,
            _ => (self.random.below(40) as i128 - 8).clamp(least, most),
        };
        Expr::int_of(value, dtype)
    }

    /// An element or vector of some buffer of that element type.
    fn load(&mut self, ty: Ty, depth: usize) -> Option<Expr> {
        let known: Vec<Buffer> =
            self.buffers.iter().filter(|b| b.dtype == ty.dtype && self.fits(b)).cloned().collect();
        if known.is_empty() || (ty.lanes > 1 && self.form == Form::Nest) {
            return None;
        }
        let buffer = self.random.pick(&known).clone();
        if buffer.rank() == 0 && ty.lanes > 1 {
            return None;
        }
        let indices = self.indices(&buffer, ty.lanes, depth);
        Some(Expr::load(buffer, indices))
    }

    /// Whether the form allows accesses with one index a dimension of the buffer.
    pub fn fits(&self, buffer: &Buffer) -> bool {
        self.form != Form::Flat || buffer.rank() == 1
    }

    /// One index a dimension; the last is a vector where lanes are wanted.
    pub fn indices(&mut self, buffer: &Buffer, lanes: u32, depth: usize) -> Vec<Expr> {
        let mut indices: Vec<Expr> = Vec::new();
        for dim in 0..buffer.rank() {
            let dtype = *self.random.pick(&[DType::I32, DType::I32, DType::I64]);
            let is_last = dim + 1 == buffer.rank();
            if lanes == 1 || !is_last {
                indices.push(self.expr(Ty::scalar(dtype), depth.min(2)));
            } else if self.random.one_in(4) {
                indices.push(self.expr(Ty { dtype, lanes }, depth.min(2)));
            } else {
                let base = self.expr(Ty::scalar(dtype), depth.min(2));
                let stride = Expr::int_of(1 + self.random.below(3) as i128, dtype);
                indices.push(Expr::ramp(base, stride, lanes));
            }
        }
        indices
    }
}

fn operations(dtype: DType) -> &'static [BinaryOp] {
    const FLOAT: &[BinaryOp] =
        &[BinaryOp::Add, BinaryOp::Sub, BinaryOp::Mul, BinaryOp::Div, BinaryOp::Min, BinaryOp::Max];
    const INT: &[BinaryOp] = &[
        BinaryOp::Add,
        BinaryOp::Sub,
        BinaryOp::Mul,
        BinaryOp::Div,
        BinaryOp::TruncMod,
        BinaryOp::FloorDiv,
        BinaryOp::FloorMod,
        BinaryOp::Min,
        BinaryOp::Max,
        BinaryOp::BitAnd,
        BinaryOp::BitOr,
        BinaryOp::BitXor,
        BinaryOp::Shl,
        BinaryOp::Shr,
    ];
    if dtype.is_float() { FLOAT } else { INT }
}
