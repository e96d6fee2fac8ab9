//! Random well-typed kernels of all three forms, from a seed.

mod exprs;
mod stmts;

use coulis_ir::buffer::BufferData;
use coulis_ir::{Attr, Buffer, DType, Expr, Form, Kernel, MemScope, Param, Stmt, Var};

/// The generator of Steele, Lea and Flood's SplitMix64.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Less than `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    /// True once in `n` times.
    pub fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

/// What a kernel being made has in scope.
pub struct Maker {
    pub random: Random,
    pub form: Form,
    pub vars: Vec<Var>,
    pub buffers: Vec<Buffer>,
}

/// A kernel; the same one for the same seed.
pub fn kernel(seed: u64) -> Kernel {
    let mut random = Random::new(seed);
    let form = *random.pick(&[Form::Flat, Form::Nest, Form::Tiled]);
    let mut maker = Maker { random, form, vars: Vec::new(), buffers: Vec::new() };
    let params = maker.params();
    let mut attrs = std::collections::BTreeMap::new();
    for key in ["global_symbol", "tir.noalias", "depth", "wide"] {
        if maker.random.one_in(6) {
            let value = match key {
                "global_symbol" => Attr::Str("ma\"in\\".to_owned()),
                "tir.noalias" => Attr::Bool(maker.random.one_in(2)),
                "depth" => Attr::Int(-3),
                _ => Attr::Int(i64::MIN),
            };
            attrs.insert(key.to_owned(), value);
        }
    }
    let body = maker.body();
    Kernel { name: "main".to_owned(), params, attrs, form, body }
}

impl Maker {
    /// A name hint: few, so that they collide, some of them no identifiers.
    pub fn hint(&mut self) -> String {
        let hints = ["i", "k", "k.outer", "n", "A", "B.rf", "T", "S", "lambda", "x_1", "stride", "0"];
        (*self.random.pick(&hints)).to_owned()
    }

    pub fn new_var(&mut self, dtype: DType) -> Var {
        let hint = self.hint();
        if self.random.one_in(3) { Var::size(&hint, dtype) } else { Var::new(&hint, dtype) }
    }

    fn params(&mut self) -> Vec<Param> {
        let mut params = Vec::new();
        for _ in 0..1 + self.random.below(4) {
            if self.random.one_in(4) {
                let dtype = *self.random.pick(&[DType::I32, DType::I64, DType::F32, DType::Bool, DType::U8]);
                let var = self.new_var(dtype);
                self.vars.push(var.clone());
                params.push(Param::Scalar(var));
            } else {
                params.push(self.buffer_param());
            }
        }
        params
    }

    fn buffer_param(&mut self) -> Param {
        let index = *self.random.pick(&[DType::I32, DType::I32, DType::I64]);
        let rank = self.random.below(4);
        let mut shape = Vec::new();
        for _ in 0..rank {
            shape.push(self.extent_of_param(index));
        }
        let name = self.hint();
        let dtype = *self.random.pick(&[
            DType::F32,
            DType::F32,
            DType::F64,
            DType::F16,
            DType::I32,
            DType::I64,
            DType::Bool,
        ]);
        let data = Buffer::new(&name, dtype, shape, MemScope::Global);
        let simple = self.random.one_in(2);
        let buffer = data.derive(|b| {
            b.data = Var::handle(&name);
            if !simple {
                self.rare_fields(b, index);
            }
        });
        let handle =
            if self.random.one_in(3) { Var::handle(&format!("{name}_ptr")) } else { Var::handle(&name) };
        self.buffers.push(buffer.clone());
        if self.form == Form::Flat || self.random.one_in(4) {
            for _ in 0..1 + self.random.below(2) {
                let alias = self.alias(&buffer);
                self.buffers.push(alias);
            }
        }
        Param::Buffer { handle, buffer }
    }

    fn extent_of_param(&mut self, index: DType) -> Expr {
        let known: Vec<Var> = self.vars.iter().filter(|v| v.dtype() == index).cloned().collect();
        match self.random.below(5) {
            0 | 1 => Expr::int_of(1 + self.random.below(64) as i128, index),
            2 if !known.is_empty() => self.random.pick(&known).expr(),
            3 => {
                let var = self.new_var(index);
                self.vars.push(var.clone());
                var.expr() - Expr::int_of(2, index)
            }
            _ => {
                let var = self.new_var(index);
                self.vars.push(var.clone());
                var.expr()
            }
        }
    }

    fn rare_fields(&mut self, b: &mut BufferData, index: DType) {
        if self.random.one_in(2) {
            for extent in b.shape.clone() {
                let stride = match self.random.below(5) {
                    0 => extent,
                    1 => Expr::int_of(self.random.below(9) as i128, index),
                    2 => self.new_var(DType::I64).expr(),
                    _ => Var::new("stride", index).expr(),
                };
                // A stride is a name of the parameter, which the body may use.
                self.vars.extend(stride.as_var().cloned());
                b.strides.push(stride);
            }
        }
        if self.random.one_in(5) {
            let var = self.new_var(index);
            self.vars.push(var.clone());
            b.elem_offset = var.expr();
        }
        if self.random.one_in(5) {
            b.align = *self.random.pick(&[4, 16, 128]);
        }
        b.auto_broadcast = self.random.one_in(3);
        if self.random.one_in(6) {
            b.layout = Some(coulis_layout::TileLayout::row_major(&[4, 8]));
        }
    }

    /// Another window on the same memory, one-dimensional in Flat form.
    pub fn alias(&mut self, of: &Buffer) -> Buffer {
        let index = of.shape.first().map_or(DType::I32, Expr::dtype);
        let flat = self.form == Form::Flat || self.random.one_in(2);
        let size = of.shape.iter().cloned().reduce(|a, b| a * b).unwrap_or_else(|| Expr::int_of(1, index));
        let renamed = self.random.one_in(3).then(|| self.hint());
        let small = self.random.one_in(4);
        of.derive(|b| {
            if flat {
                b.shape = vec![size];
            }
            b.strides = Vec::new();
            b.elem_offset = if small { Expr::int(4) } else { Expr::int(0) };
            b.layout = None;
            if let Some(name) = renamed {
                b.name = name;
            }
        })
    }

    /// A new buffer for an allocation.
    pub fn local_buffer(&mut self) -> Buffer {
        let rank = if self.form == Form::Flat { 1 } else { self.random.below(3) };
        let mut shape = Vec::new();
        for _ in 0..rank {
            shape.push(Expr::int(1 + self.random.below(64) as i32));
        }
        let name = self.hint();
        let dtype = *self.random.pick(&[DType::F32, DType::F64, DType::I64, DType::Bool, DType::BF16]);
        let scope = *self.random.pick(&MemScope::ALL);
        let align = *self.random.pick(&[64, 64, 64, 16]);
        let has_layout = self.random.one_in(6);
        Buffer::new(&name, dtype, shape, scope).derive(|b| {
            b.data = Var::handle(&name);
            b.align = align;
            if has_layout {
                let mut layout = coulis_layout::TileLayout::row_major(&[32]);
                layout.shard[0].step.axis = "laneid".to_owned();
                layout.replica = coulis_layout::TileLayout::row_major(&[2, 3]).shard;
                layout.offset = vec![coulis_layout::AxisStride { stride: -5, axis: "warpid".to_owned() }];
                b.layout = Some(layout);
            }
        })
    }

    fn body(&mut self) -> Stmt {
        let mut stmts = Vec::new();
        if self.form == Form::Tiled {
            stmts.push(Stmt::DeviceEntry);
        }
        let depth = 1 + self.random.below(3);
        stmts.push(self.block(depth));
        if self.form == Form::Nest && self.random.one_in(2) {
            // Shows its form by itself, where the decorator need not say it.
            let buffer = Buffer::new("grid", DType::F32, vec![Expr::int(2), Expr::int(2)], MemScope::Local);
            let store = Stmt::store(&buffer, [Expr::int(0), Expr::int(1)], Expr::float(0.5, DType::F32));
            stmts.push(Stmt::allocate(buffer, store));
        }
        Stmt::Seq(stmts)
    }
}
