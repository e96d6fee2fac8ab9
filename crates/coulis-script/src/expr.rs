//! Expressions.
//!
//! Operands have one type; only a bare literal takes the type of what it is next to. Nothing is folded, so
//! that what is read prints as it was.

use coulis_ir::{Atom, BinaryOp, DType, Expr, Intrinsic, Node, Ty, Var};

use crate::across::Across;
use crate::error::{ParseErrorKind, Parsed};
use crate::func::{Reader, missing};
use crate::names::Entity;
use crate::tree::{Keyword, Keywords, Sign, Term, TermKind};

/// The binary operation that a function of the dialect is.
fn binary_call(name: &str) -> Option<BinaryOp> {
    match name {
        "truncdiv" => Some(BinaryOp::Div),
        "floordiv" => Some(BinaryOp::FloorDiv),
        "floormod" => Some(BinaryOp::FloorMod),
        "Min" => Some(BinaryOp::Min),
        "Max" => Some(BinaryOp::Max),
        _ => BinaryOp::ALL.into_iter().find(|op| op.call_name() == name),
    }
}

fn intrinsic(name: &str) -> Option<Intrinsic> {
    let name = if name == "abs" { "fabs" } else { name };
    Intrinsic::ALL.into_iter().find(|i| i.name() == name)
}

impl Reader<'_> {
    /// An expression; a bare literal is `int32` (`int64` where it does not fit), `float32` or `bool`.
    pub(crate) fn expr(&mut self, term: &Term) -> Parsed<Expr> {
        match &term.kind {
            TermKind::Int(_) => int_literal(term),
            TermKind::Float(value) => Ok(Expr::float(*value, DType::F32)),
            TermKind::Bool(value) => Ok(Expr::bool(*value)),
            TermKind::Name(_) => match self.lookup(term)? {
                Entity::Var(var) => Ok(var.expr()),
                Entity::Meta(value) => Ok(value.clone()),
                Entity::Scalar(register) => Ok(register.at([Expr::int(0)])),
                Entity::Buffer(_) => Err(term.unexpected("a value; index the buffer")),
                Entity::Handle(_) | Entity::Thread(..) => Err(term.unexpected("a value")),
            },
            TermKind::Neg(inner) => match (term.literal_int(), term.literal_float()) {
                (Some(_), _) => int_literal(term),
                (_, Some(value)) => Ok(Expr::float(value, DType::F32)),
                _ => {
                    let value = self.expr(inner)?;
                    if value.dtype() == DType::Bool {
                        return Err(type_fault(inner, "an operand of `-`", value.ty(), "numbers"));
                    }
                    let minus_one = Expr::constant(-1, value.dtype());
                    Ok(Expr::binary(BinaryOp::Mul, value, minus_one))
                }
            },
            TermKind::Not(inner) => Ok(self.condition(inner)?.logical_not()),
            TermKind::Binary(sign, a, b) => self.infix(term, *sign, a, b),
            TermKind::Conditional { cond, then, otherwise } => {
                self.choice(term, [cond, then, otherwise], Expr::if_then_else)
            }
            TermKind::Call(..) => match term.call() {
                Some((path, args, keywords)) => self.call(term, &path, args, keywords),
                None => Err(term.unexpected("a value")),
            },
            TermKind::Subscript(base, indices) => self.subscript(term, base, indices),
            TermKind::Attribute(base, name) if name == "elem_offset" => {
                Ok(self.buffer(base)?.elem_offset.clone())
            }
            TermKind::Str(_)
            | TermKind::None
            | TermKind::Attribute(..)
            | TermKind::Tuple(_)
            | TermKind::List(_)
            | TermKind::Dict(_)
            | TermKind::Lambda(..)
            | TermKind::Slice(..) => Err(term.unexpected("a value")),
        }
    }

    /// An expression; a bare literal takes type `dtype`.
    pub(crate) fn expr_as(&mut self, term: &Term, dtype: DType) -> Parsed<Expr> {
        match literal_as(term, dtype) {
            Some(constant) => constant,
            None => self.expr(term),
        }
    }

    /// Two operands of one element type, vectors of one length next to scalars.
    fn operands(&mut self, a: &Term, b: &Term) -> Parsed<(Expr, Expr)> {
        let (x, y) = match (is_literal(a), is_literal(b)) {
            (true, false) => {
                let y = self.expr(b)?;
                (self.expr_as(a, y.dtype())?, y)
            }
            (false, true) => {
                let x = self.expr(a)?;
                let y = self.expr_as(b, x.dtype())?;
                (x, y)
            }
            (true, true) => {
                let x = self.expr(a)?;
                let y = self.expr_as(b, x.dtype()).or_else(|_| self.expr(b))?;
                (x, y)
            }
            (false, false) => (self.expr(a)?, self.expr(b)?),
        };
        if x.dtype() != y.dtype() {
            return Err(type_fault(b, "the right operand", y.ty(), &format!("{} as on the left", x.dtype())));
        }
        same_lanes(b, x.ty(), y.ty())?;
        Ok((x, y))
    }

    fn infix(&mut self, term: &Term, sign: Sign, a: &Term, b: &Term) -> Parsed<Expr> {
        let op = match sign {
            Sign::Add => BinaryOp::Add,
            Sign::Sub => BinaryOp::Sub,
            Sign::Mul => BinaryOp::Mul,
            Sign::Div => BinaryOp::Div,
            Sign::FloorDiv => BinaryOp::FloorDiv,
            Sign::FloorMod => BinaryOp::FloorMod,
            Sign::BitAnd => BinaryOp::BitAnd,
            Sign::BitOr => BinaryOp::BitOr,
            Sign::BitXor => BinaryOp::BitXor,
            Sign::Shl => BinaryOp::Shl,
            Sign::Shr => BinaryOp::Shr,
            Sign::And => BinaryOp::And,
            Sign::Or => BinaryOp::Or,
            Sign::Eq => BinaryOp::Eq,
            Sign::Ne => BinaryOp::Ne,
            Sign::Lt => BinaryOp::Lt,
            Sign::Le => BinaryOp::Le,
            Sign::Gt => BinaryOp::Gt,
            Sign::Ge => BinaryOp::Ge,
            Sign::At => return Err(term.unexpected("a value; `@` belongs to layouts")),
        };
        let (x, y) = self.operands(a, b)?;
        if sign == Sign::Div && !x.dtype().is_float() {
            let legal = "floats; integers divide by `//` or `T.Div`";
            return Err(type_fault(term, "operands of `/`", x.ty(), legal));
        }
        self.binary(term, op, x, y)
    }

    /// The operation on operands that agree, if it exists for their type.
    fn binary(&self, term: &Term, op: BinaryOp, x: Expr, y: Expr) -> Parsed<Expr> {
        let ty = x.ty();
        if op.takes(ty.dtype) {
            return Ok(Expr::binary(op, x, y));
        }
        let legal: Vec<&str> = DType::ALL.into_iter().filter(|d| op.takes(*d)).map(DType::name).collect();
        Err(type_fault(term, "operands of this operation", ty, &legal.join(", ")))
    }

    /// A scalar or vector bool.
    pub(crate) fn condition(&mut self, term: &Term) -> Parsed<Expr> {
        let cond = self.expr(term)?;
        if cond.dtype() == DType::Bool {
            Ok(cond)
        } else {
            Err(type_fault(term, "a condition", cond.ty(), "bool"))
        }
    }

    /// A scalar of an integer type.
    pub(crate) fn scalar_int(&mut self, term: &Term, what: &str) -> Parsed<Expr> {
        let value = self.expr(term)?;
        if value.dtype().is_int() && value.lanes() == 1 {
            Ok(value)
        } else {
            Err(type_fault(term, what, value.ty(), "scalar integers"))
        }
    }

    /// A scalar of an integer type, next to another.
    pub(crate) fn scalar_int_as(&mut self, term: &Term, dtype: DType, what: &str) -> Parsed<Expr> {
        let value = self.expr_as(term, dtype)?;
        if value.ty() == Ty::scalar(dtype) {
            Ok(value)
        } else {
            Err(type_fault(term, what, value.ty(), dtype.name()))
        }
    }

    fn choice(
        &mut self,
        term: &Term,
        [cond, a, b]: [&Term; 3],
        make: fn(Expr, Expr, Expr) -> Expr,
    ) -> Parsed<Expr> {
        let cond_value = self.condition(cond)?;
        let (x, y) = self.operands(a, b)?;
        let lanes = x.lanes().max(y.lanes());
        same_lanes(term, cond_value.ty(), Ty { dtype: x.dtype(), lanes })?;
        Ok(make(cond_value, x.broadcast_to(lanes), y.broadcast_to(lanes)))
    }

    fn call(&mut self, term: &Term, path: &str, args: &[Term], keywords: &[Keyword]) -> Parsed<Expr> {
        const LEGAL: &str =
            "the functions of `T` that have a value: constants, `T.max`, `T.Cast`, `T.Select`, `T.exp`, ...";
        let unknown = || term.fault(ParseErrorKind::UnknownFunction { name: path.to_owned(), legal: LEGAL });
        let name = path.strip_prefix("T.").ok_or_else(unknown)?;
        if let Some(call) = name.strip_prefix("cuda.").and_then(Across::from_name) {
            return self.across(term, path, call, args, keywords);
        }
        if Atom::from_name(name).is_some() {
            return Err(term.fault(ParseErrorKind::AtomInside { name: path.to_owned() }));
        }
        if name == "Let" {
            return self.let_in(term, args, keywords);
        }
        Keywords::new(path, keywords).done()?;
        if let Ok(dtype) = name.parse::<DType>() {
            let [value] = self.exactly(term, path, args)?;
            return self.constant(value, dtype);
        }
        if let Some(op) = binary_call(name) {
            let [a, b] = self.exactly(term, path, args)?;
            let (x, y) = self.operands(a, b)?;
            return self.binary(term, op, x, y);
        }
        if let Some(intrinsic) = intrinsic(name) {
            return self.intrinsic(term, path, intrinsic, args);
        }
        match name {
            "Cast" | "cast" => {
                let [a, b] = self.exactly(term, path, args)?;
                // `T.Cast(dtype, value)`, and `T.cast(value, dtype)` as in later versions.
                let (to, value) = if matches!(a.kind, TermKind::Str(_)) { (a, b) } else { (b, a) };
                let value = self.expr(value)?;
                let ty = vector_type(to)?;
                if ty.lanes != value.lanes() {
                    let legal = format!("{} lanes as the value has", value.lanes());
                    return Err(type_fault(to, "the type of a cast", ty, &legal));
                }
                Ok(value.cast(ty.dtype))
            }
            "Select" => {
                let [c, a, b] = self.exactly(term, path, args)?;
                self.choice(term, [c, a, b], Expr::select)
            }
            "if_then_else" => {
                let [c, a, b] = self.exactly(term, path, args)?;
                self.choice(term, [c, a, b], Expr::if_then_else)
            }
            "Not" => {
                let [a] = self.exactly(term, path, args)?;
                Ok(self.condition(a)?.logical_not())
            }
            "Ramp" => {
                let [base, stride, lanes] = self.exactly(term, path, args)?;
                let base = self.scalar_int(base, "the base of a ramp")?;
                let stride = self.scalar_int_as(stride, base.dtype(), "the stride of a ramp")?;
                Ok(Expr::ramp(base, stride, lane_count(lanes)?))
            }
            "Broadcast" => {
                let [value, lanes] = self.exactly(term, path, args)?;
                let value = self.expr(value)?;
                if value.lanes() != 1 {
                    return Err(type_fault(term, "what is broadcast", value.ty(), "scalars"));
                }
                let ty = Ty { dtype: value.dtype(), lanes: lane_count(lanes)? };
                Ok(Expr::new(Node::Broadcast(value), ty))
            }
            _ => Err(unknown()),
        }
    }

    fn intrinsic(&mut self, term: &Term, path: &str, intrinsic: Intrinsic, args: &[Term]) -> Parsed<Expr> {
        if args.len() != intrinsic.arity() {
            let what = format!("arguments of `{path}`");
            let wanted = intrinsic.arity().to_string();
            return Err(term.fault(ParseErrorKind::Count { what, wanted, found: args.len() }));
        }
        if intrinsic == Intrinsic::Likely {
            return Ok(self.condition(&args[0])?.likely());
        }
        // Literals take the type of the others; those are read once, or nested calls would take exponential time.
        let typed = args.iter().map(|a| (!is_literal(a)).then(|| self.expr(a)).transpose());
        let typed: Vec<Option<Expr>> = typed.collect::<Parsed<_>>()?;
        let dtype = match typed.iter().flatten().next() {
            Some(value) => value.dtype(),
            None => self.expr(&args[0])?.dtype(),
        };
        let values = typed.into_iter().zip(args).map(|(value, arg)| match value {
            Some(value) => Ok(value),
            None => self.expr_as(arg, dtype),
        });
        let values: Vec<Expr> = values.collect::<Parsed<_>>()?;
        let lanes = values.iter().map(Expr::lanes).max().unwrap_or(1);
        for (value, arg) in values.iter().zip(args) {
            let fits = value.dtype() == dtype && (value.lanes() == lanes || value.lanes() == 1);
            if !fits {
                let legal = Ty { dtype, lanes }.to_string();
                return Err(type_fault(arg, &format!("an argument of `{path}`"), value.ty(), &legal));
            }
        }
        Ok(Expr::call(intrinsic, values.into_iter().map(|v| v.broadcast_to(lanes)).collect()))
    }

    /// `T.Let(body, where={v: value})`.
    fn let_in(&mut self, term: &Term, args: &[Term], keywords: &[Keyword]) -> Parsed<Expr> {
        let [body] = self.exactly(term, "T.Let", args)?;
        let mut keywords = Keywords::new("T.Let", keywords);
        let bindings =
            keywords.take("where").ok_or_else(|| missing(term, "T.Let", "`where={name: value}`"))?;
        keywords.done()?;
        let TermKind::Dict(items) = &bindings.kind else {
            return Err(bindings.unexpected("`{name: value}`"));
        };
        let mark = self.scope.mark();
        let mut bound = Vec::new();
        for (name, value) in items {
            let value_term = value;
            let value = self.expr(value)?;
            if value.lanes() != 1 {
                return Err(type_fault(value_term, "a bound value", value.ty(), "scalars"));
            }
            let var = Var::new(name.name()?, value.dtype());
            self.scope.define(name.name()?, Entity::Var(var.clone()));
            bound.push((var, value));
        }
        let body = self.expr(body);
        self.scope.release(mark);
        Ok(bound.into_iter().rev().fold(body?, |body, (var, value)| Expr::let_in(var, value, body)))
    }

    /// `T.int64(16)`, `T.float32("inf")`, `T.bool(True)`; anything but a literal is converted.
    fn constant(&mut self, value: &Term, dtype: DType) -> Parsed<Expr> {
        match (&value.kind, dtype) {
            (TermKind::Bool(b), DType::Bool) => Ok(Expr::bool(*b)),
            (TermKind::Str(text), _) if dtype.is_float() => {
                let value = match text.as_str() {
                    "inf" => f64::INFINITY,
                    "-inf" => f64::NEG_INFINITY,
                    "nan" => f64::NAN,
                    _ => return Err(value.unexpected("a number, \"inf\", \"-inf\" or \"nan\"")),
                };
                Ok(Expr::float(value, dtype))
            }
            _ => match literal_as(value, dtype) {
                Some(constant) => constant,
                None => {
                    let inner = self.expr(value)?;
                    Ok(inner.cast(dtype))
                }
            },
        }
    }
}

/// A bare integer: `int32`, or `int64` where it does not fit.
fn int_literal(term: &Term) -> Parsed<Expr> {
    let value = term.integer()?;
    let fits = |dtype: DType| dtype.int_range().is_some_and(|(least, most)| least <= value && value <= most);
    [DType::I32, DType::I64].into_iter().find(|&d| fits(d)).map(|d| Expr::int_of(value, d)).ok_or_else(|| {
        let legal = "integers of 64 bits with sign; larger ones as `T.uint64(...)`".to_owned();
        term.fault(ParseErrorKind::Range { what: "an integer", found: value.to_string(), legal })
    })
}

fn is_literal(term: &Term) -> bool {
    term.literal_int().is_some() || term.literal_float().is_some()
}

/// A bare literal in type `dtype`; `None` where it is not one, or is of another kind than `dtype`.
fn literal_as(term: &Term, dtype: DType) -> Option<Parsed<Expr>> {
    if let Some(value) = term.literal_float() {
        return dtype.is_float().then(|| Ok(Expr::float(value, dtype)));
    }
    let value = term.literal_int()?;
    let Some((least, most)) = dtype.int_range() else {
        return Some(Ok(Expr::float(value as f64, dtype)));
    };
    if least <= value && value <= most {
        return Some(Ok(Expr::int_of(value, dtype)));
    }
    let legal = format!("{dtype}: {least} to {most}");
    Some(Err(term.fault(ParseErrorKind::Range { what: "an integer", found: value.to_string(), legal })))
}

/// A type by name, with lanes: `float32`, `float32x8`.
fn vector_type(term: &Term) -> Parsed<Ty> {
    let text = term.str()?;
    if let Ok(dtype) = text.parse::<DType>() {
        return Ok(Ty::scalar(dtype));
    }
    let (name, lanes) = text.rsplit_once('x').unwrap_or((text, "1"));
    let dtype = name.parse::<DType>().map_err(|error| term.fault(ParseErrorKind::DType(error)))?;
    match lanes.parse::<u32>() {
        Ok(lanes) if lanes >= 1 => Ok(Ty { dtype, lanes }),
        _ => Err(term.fault(ParseErrorKind::Range {
            what: "a number of lanes",
            found: lanes.to_owned(),
            legal: format!("1 to {}", u32::MAX),
        })),
    }
}

/// A number of lanes.
fn lane_count(term: &Term) -> Parsed<u32> {
    let lanes: u32 = term.fitting("a number of lanes", "1 to 4294967295")?;
    if lanes == 0 {
        let legal = "1 to 4294967295".to_owned();
        return Err(term.fault(ParseErrorKind::Range {
            what: "a number of lanes",
            found: "0".to_owned(),
            legal,
        }));
    }
    Ok(lanes)
}

/// Refuses vectors of two lengths; a scalar fits any.
pub(crate) fn same_lanes(term: &Term, a: Ty, b: Ty) -> Parsed<()> {
    if a.lanes == b.lanes || a.lanes == 1 || b.lanes == 1 {
        return Ok(());
    }
    Err(type_fault(term, "a vector", b, &format!("{} lanes or a scalar", a.lanes)))
}

pub(crate) fn type_fault(term: &Term, what: &str, found: Ty, legal: &str) -> Box<crate::error::Fault> {
    let kind =
        ParseErrorKind::Type { what: what.to_owned(), found: found.to_string(), legal: legal.to_owned() };
    term.fault(kind)
}
