//! Arithmetic that stays within its type and arithmetic that may not; quotients that need no care.
//!
//! Indices, bounds of loops and conditions on them are shown to fit (or checked before a launch); what is computed
//! from memory, and what is stored, wraps as the IR says. Where the compiler leaves sums beyond the range of a
//! signed type undefined, the two are told apart here.

use coulis_ir::{BinaryOp, Expr, Node, Var};

use crate::EmitError;
use crate::c::Walker;
use crate::c::code::Code;
use crate::c::style::Overflow;
use crate::c::types::CTy;

impl Walker<'_> {
    /// The text of an index, a bound or a condition.
    pub(super) fn place(&mut self, expr: &Expr) -> Result<Code, EmitError> {
        self.f.places += 1;
        let code = self.code(expr);
        self.f.places -= 1;
        code
    }

    /// The second operand of an operation that may not evaluate it.
    pub(super) fn lazily(&mut self, expr: &Expr) -> Result<Code, EmitError> {
        let lazy = u32::from(self.by_lanes());
        self.f.inline += lazy;
        let code = self.place(expr);
        self.f.inline -= lazy;
        code
    }

    /// The condition of a value. Threads of a warp that go the same way are worth more than an operand that is not
    /// evaluated, so there `and` and `or` evaluate what lies in registers; a branch would part them, and end each
    /// stretch of instructions that the compiler may reorder.
    pub(super) fn chosen(&mut self, expr: &Expr) -> Result<Code, EmitError> {
        let eager = u32::from(self.by_lanes());
        self.f.eager += eager;
        let code = self.place(expr);
        self.f.eager -= eager;
        code
    }

    /// A cast.
    pub(super) fn cast(&self, ty: CTy, code: &Code) -> Code {
        self.style().cast(self.dialect.type_name(ty), code)
    }

    /// Whether the value depends on memory.
    pub(super) fn holds_data(&mut self, expr: &Expr) -> bool {
        if expr.reads_memory() || self.f.data_vars.is_empty() {
            return expr.reads_memory();
        }
        self.deps.of(expr).vars.iter().any(|var| self.f.data_vars.contains(var))
    }

    /// Whether it has an index of a block in it, so that other blocks have other values.
    pub(super) fn is_of_block(&mut self, expr: &Expr) -> bool {
        self.deps.of(expr).vars.iter().any(|var| self.f.block_vars.contains(var))
    }

    /// Keeps in mind what a variable is made of.
    pub(super) fn note_block(&mut self, var: &Var, value: &Expr) {
        if self.is_of_block(value) {
            self.f.block_vars.insert(var.id());
        }
    }

    /// Whether the product, which is taken to the type `to` as it is or widened, is one that the compiler is
    /// not to look into.
    pub(super) fn is_opaque_product(&mut self, product: &Expr, to: CTy) -> bool {
        self.style().opaque_wide_products
            && matches!(to, CTy::I64 | CTy::U64)
            && product.dtype().is_int()
            && product.dtype().bytes() >= 4
            && matches!(product.node(), Node::Binary(BinaryOp::Mul, ..))
            && self.holds_data(product)
    }

    /// Whether the operation is a function of its own: it may leave the range of its type and the compiler
    /// does not define what happens then.
    pub(super) fn needs_function(&mut self, op: BinaryOp, ty: CTy, expr: &Expr) -> bool {
        let undefined = match op {
            BinaryOp::Add | BinaryOp::Sub => matches!(ty, CTy::I32 | CTy::I64),
            // 16-bit factors are multiplied as `int`.
            BinaryOp::Mul => matches!(ty, CTy::I32 | CTy::I64 | CTy::U16),
            BinaryOp::Shl => matches!(ty, CTy::I32 | CTy::I64),
            _ => false,
        };
        if !undefined || self.style().overflow == Overflow::Wraps {
            return false;
        }
        if self.f.places > 0 && !self.holds_data(expr) {
            return false;
        }
        !matches!(self.facts.analyzer().const_bounds(expr), (Some(_), Some(_)))
    }

    /// Whether the amount of a shift is known to be at least 0 and less than the width of its type.
    pub(super) fn is_below_width(&self, amount: &Expr) -> bool {
        let width = 8 * amount.dtype().bytes() as i128;
        let amount = match amount.node() {
            Node::Broadcast(one) => one,
            _ => amount,
        };
        if let Some(amount) = amount.as_int() {
            return (0..width).contains(&amount);
        }
        let (lo, hi) = self.facts.analyzer().const_bounds(amount);
        (amount.dtype().is_unsigned_int() || lo.is_some_and(|lo| lo >= 0)) && hi.is_some_and(|hi| hi < width)
    }

    /// Whether the quotient of the machine is the floored one, and is defined: no negative operand, no zero divisor.
    pub(super) fn is_natural_quotient(&self, a: &Expr, b: &Expr) -> bool {
        if !self.by_lanes() || !a.dtype().is_int() {
            return false;
        }
        let zero = || Expr::int_of(0, a.dtype());
        let known = self.facts.analyzer();
        known.can_prove(&a.clone().ge(zero())) && known.can_prove(&b.clone().gt(zero()))
    }
}
