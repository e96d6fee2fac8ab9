//! Expressions as text, with no more parentheses than Python's precedence needs.

use super::{Printer, float_literal};
use crate::dtype::DType;
use crate::expr::{BinaryOp, Expr, Node};

/// Binding strength of what stands at the top of a text, weakest first, as in Python.
type Strength = u8;

const OR: Strength = 1;
const AND: Strength = 2;
const NOT: Strength = 3;
const COMPARE: Strength = 4;
const BIT_OR: Strength = 5;
const BIT_XOR: Strength = 6;
const BIT_AND: Strength = 7;
const SHIFT: Strength = 8;
const SUM: Strength = 9;
const PRODUCT: Strength = 10;
const SIGN: Strength = 11;
const ATOM: Strength = 12;

/// How an operation is written: between its operands, or as a call.
fn infix(op: BinaryOp) -> Option<(&'static str, Strength)> {
    match op {
        BinaryOp::Add => Some(("+", SUM)),
        BinaryOp::Sub => Some(("-", SUM)),
        BinaryOp::Mul => Some(("*", PRODUCT)),
        BinaryOp::Div => Some(("/", PRODUCT)),
        BinaryOp::FloorDiv => Some(("//", PRODUCT)),
        BinaryOp::FloorMod => Some(("%", PRODUCT)),
        BinaryOp::Eq => Some(("==", COMPARE)),
        BinaryOp::Ne => Some(("!=", COMPARE)),
        BinaryOp::Lt => Some(("<", COMPARE)),
        BinaryOp::Le => Some(("<=", COMPARE)),
        BinaryOp::Gt => Some((">", COMPARE)),
        BinaryOp::Ge => Some((">=", COMPARE)),
        BinaryOp::And => Some(("and", AND)),
        BinaryOp::Or => Some(("or", OR)),
        BinaryOp::BitAnd => Some(("&", BIT_AND)),
        BinaryOp::BitOr => Some(("|", BIT_OR)),
        BinaryOp::BitXor => Some(("^", BIT_XOR)),
        BinaryOp::Shl => Some(("<<", SHIFT)),
        BinaryOp::Shr => Some((">>", SHIFT)),
        BinaryOp::TruncMod | BinaryOp::Min | BinaryOp::Max => None,
    }
}

impl BinaryOp {
    /// The name after `T.` where the operation is written as a call.
    pub const fn call_name(self) -> &'static str {
        match self {
            BinaryOp::Add => "Add",
            BinaryOp::Sub => "Sub",
            BinaryOp::Mul => "Mul",
            BinaryOp::Div => "Div",
            BinaryOp::TruncMod => "truncmod",
            BinaryOp::FloorDiv => "FloorDiv",
            BinaryOp::FloorMod => "FloorMod",
            BinaryOp::Min => "min",
            BinaryOp::Max => "max",
            BinaryOp::Eq => "EQ",
            BinaryOp::Ne => "NE",
            BinaryOp::Lt => "LT",
            BinaryOp::Le => "LE",
            BinaryOp::Gt => "GT",
            BinaryOp::Ge => "GE",
            BinaryOp::And => "And",
            BinaryOp::Or => "Or",
            BinaryOp::BitAnd => "bitwise_and",
            BinaryOp::BitOr => "bitwise_or",
            BinaryOp::BitXor => "bitwise_xor",
            BinaryOp::Shl => "shift_left",
            BinaryOp::Shr => "shift_right",
        }
    }
}

fn is_constant(expr: &Expr) -> bool {
    matches!(expr.node(), Node::Int(_) | Node::Float(_))
}

/// The infix form of this operation on these operands. Operations on two constants are calls, because a Python
/// reader would fold them; so is the integer quotient that rounds toward zero, which Python has no sign for.
fn infix_of(op: BinaryOp, a: &Expr, b: &Expr) -> Option<(&'static str, Strength)> {
    let folds = is_constant(a) && is_constant(b);
    let truncates = op == BinaryOp::Div && !a.dtype().is_float();
    if folds || truncates { None } else { infix(op) }
}

fn strength(expr: &Expr) -> Strength {
    match expr.node() {
        Node::Binary(op, a, b) => infix_of(*op, a, b).map_or(ATOM, |(_, strength)| strength),
        Node::Not(_) => NOT,
        Node::Int(value) if *value < 0 && expr.dtype() == DType::I32 => SIGN,
        Node::Int(_)
        | Node::Float(_)
        | Node::Var(_)
        | Node::Cast(_)
        | Node::Select(..)
        | Node::IfThenElse(..)
        | Node::Call(..)
        | Node::Load(..)
        | Node::Ramp(..)
        | Node::Broadcast(_)
        | Node::Let(..) => ATOM,
    }
}

impl Printer {
    /// The text of an expression.
    pub(super) fn expr(&mut self, expr: &Expr) -> String {
        let mut out = String::new();
        self.write_expr(expr, &mut out);
        out
    }

    /// The texts of expressions.
    pub(super) fn exprs(&mut self, exprs: &[Expr]) -> Vec<String> {
        exprs.iter().map(|e| self.expr(e)).collect()
    }

    fn write_operand(&mut self, expr: &Expr, at_least: Strength, out: &mut String) {
        if strength(expr) >= at_least {
            self.write_expr(expr, out);
        } else {
            out.push('(');
            self.write_expr(expr, out);
            out.push(')');
        }
    }

    fn write_call(&mut self, name: &str, args: &[&Expr], out: &mut String) {
        out.push_str("T.");
        out.push_str(name);
        out.push('(');
        for (i, arg) in args.iter().enumerate() {
            if i > 0 {
                out.push_str(", ");
            }
            self.write_expr(arg, out);
        }
        out.push(')');
    }

    fn write_expr(&mut self, expr: &Expr, out: &mut String) {
        match expr.node() {
            Node::Int(_) | Node::Float(_) => out.push_str(&constant(expr)),
            Node::Var(var) => out.push_str(&self.names.var(var)),
            Node::Binary(op, a, b) => match infix_of(*op, a, b) {
                Some((sign, at)) => {
                    // Comparisons chain in Python, so that neither side may be one.
                    let left = if op.is_comparison() { at + 1 } else { at };
                    self.write_operand(a, left, out);
                    out.push(' ');
                    out.push_str(sign);
                    out.push(' ');
                    self.write_operand(b, at + 1, out);
                }
                None => self.write_call(op.call_name(), &[a, b], out),
            },
            Node::Not(a) => {
                out.push_str("not ");
                self.write_operand(a, NOT, out);
            }
            Node::Cast(a) => {
                out.push_str(&format!("T.Cast(\"{}\", ", expr.ty()));
                self.write_expr(a, out);
                out.push(')');
            }
            Node::Select(c, a, b) => self.write_call("Select", &[c, a, b], out),
            Node::IfThenElse(c, a, b) => self.write_call("if_then_else", &[c, a, b], out),
            Node::Call(intrinsic, args) => {
                let args: Vec<&Expr> = args.iter().collect();
                self.write_call(intrinsic.name(), &args, out);
            }
            Node::Load(buffer, indices) => {
                let name = self.buffer_name(buffer);
                out.push_str(&name);
                out.push_str(&self.indices(indices));
            }
            Node::Ramp(base, stride) => {
                let (base, stride) = (self.expr(base), self.expr(stride));
                out.push_str(&format!("T.Ramp({base}, {stride}, {})", expr.lanes()));
            }
            Node::Broadcast(a) => {
                let a = self.expr(a);
                out.push_str(&format!("T.Broadcast({a}, {})", expr.lanes()));
            }
            Node::Let(var, value, body) => {
                let value = self.expr(value);
                let mark = self.names.mark();
                let name = self.names.define_var(var);
                let body = self.expr(body);
                self.names.release(mark);
                out.push_str(&format!("T.Let({body}, where={{{name}: {value}}})"));
            }
        }
    }

    /// The indices of an access with their brackets; constant-stride ramps print as slices.
    pub(super) fn indices(&mut self, indices: &[Expr]) -> String {
        if indices.is_empty() {
            return "[()]".to_owned();
        }
        let texts: Vec<String> = indices.iter().map(|index| self.index(index)).collect();
        format!("[{}]", texts.join(", "))
    }

    fn index(&mut self, index: &Expr) -> String {
        let Some((start, stop, step)) = as_slice(index) else {
            return self.expr(index);
        };
        let (start, stop) = (self.expr(&start), self.expr(&stop));
        if step.is_int(1) {
            format!("{start}:{stop}")
        } else {
            format!("{start}:{stop}:{}", self.expr(&step))
        }
    }

    /// `min:min + extent`, both ends as text.
    pub(super) fn range_ends(&mut self, min: &Expr, extent: &Expr) -> (String, String) {
        let end = match (min.as_int(), extent.as_int()) {
            (Some(a), Some(b)) => Expr::int_of(a + b, min.dtype()),
            _ if min.ty() == extent.ty() => min + extent,
            _ => extent.clone(),
        };
        (self.expr(min), self.expr(&end))
    }
}

/// Start, stop and step of a ramp that can be written as a slice.
fn as_slice(index: &Expr) -> Option<(Expr, Expr, Expr)> {
    let Node::Ramp(base, stride) = index.node() else {
        return None;
    };
    let step = stride.as_int().filter(|&s| s >= 1)?;
    let (least, most) = base.dtype().int_range()?;
    let length = step.checked_mul(i128::from(index.lanes())).filter(|&l| l <= most)?;
    if index.lanes() < 2 || !base.ty().is_scalar() {
        return None;
    }
    let stop = match base.as_int() {
        Some(start) => {
            let stop = start.checked_add(length).filter(|&s| least <= s && s <= most)?;
            Expr::int_of(stop, base.dtype())
        }
        None => base + &Expr::int_of(length, base.dtype()),
    };
    Some((base.clone(), stop, stride.clone()))
}

/// A constant: `int32` bare, every other type with its constructor.
fn constant(expr: &Expr) -> String {
    let dtype = expr.dtype();
    let one = match expr.node() {
        Node::Int(value) => match dtype {
            DType::I32 => value.to_string(),
            DType::Bool => format!("T.bool({})", if *value == 0 { "False" } else { "True" }),
            _ => format!("T.{dtype}({value})"),
        },
        Node::Float(bits) => format!("T.{dtype}({})", float_literal(f64::from_bits(*bits))),
        _ => String::new(),
    };
    if expr.lanes() == 1 { one } else { format!("T.Broadcast({one}, {})", expr.lanes()) }
}
