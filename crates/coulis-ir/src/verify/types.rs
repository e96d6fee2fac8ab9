//! V3 to V7: types of operands, accesses, stores, conditions and names.

use crate::hash::{FastSet, roomy_set};

use super::forms::each_stmt;
use super::{Check, Group, Property, Report};
use crate::atom::{Atom, AtomCall, Signature};
use crate::buffer::Buffer;
use crate::dtype::{DType, Ty};
use crate::expr::{Expr, Intrinsic, Node, VarKind};
use crate::form::Form;
use crate::kernel::Kernel;
use crate::print::print_expr;
use crate::stmt::Stmt;
use crate::visit::stmt_exprs;

/// A fault of one expression.
type Flaw = (&'static str, String);

pub(super) const GROUP: Group = Group {
    properties: &[
        Property::new(
            "V3",
            "operands and results have the types that the operation takes and gives; constants fit their type",
        ),
        Property::new(
            "V4",
            "accesses have the number of indices that form and buffer ask for, of integer types; in Flat form no buffer has an \
             offset",
        ),
        Property::new("V5", "stored values have the buffer's element type and the lanes of the index"),
        Property::new(
            "V6",
            "conditions are scalar bools; loop, launch and allocation extents are scalar integers",
        ),
        Property::new("V7", "a name has the type of the value it is bound to"),
    ],
    checks: &[Check::Tree(check_types)],
};

/// Checks every expression once, and what statements do with them.
fn check_types<'k>(kernel: &'k Kernel, report: &mut Report<'k>) {
    let mut checker = Checker { form: kernel.form, seen: roomy_set() };
    let is_flat = kernel.form == Form::Flat;
    if let Some(moved) = kernel.param_buffers().find(|b| is_flat && !b.elem_offset.is_int(0)) {
        let text = format!(
            "parameter `{}` has an offset, which Nest and Tiled form take and Flat does not",
            moved.name
        );
        report.at(&kernel.body, "V4", text);
    }
    each_stmt(&kernel.body, &mut |stmt| {
        for expr in stmt_exprs(stmt) {
            checker.expr(expr, &mut |(code, message)| report.at(stmt, code, message));
        }
        for (code, message) in checker.stmt(stmt) {
            report.at(stmt, code, message);
        }
    });
}

struct Checker<'k> {
    form: Form,
    /// Expressions that were looked at, as far as several may have them as operands or they have flaws.
    seen: FastSet<&'k Expr>,
}

impl<'k> Checker<'k> {
    fn expr(&mut self, expr: &'k Expr, report: &mut impl FnMut(Flaw)) {
        let is_shared = expr.may_be_shared();
        if is_shared && !self.seen.insert(expr) {
            return;
        }
        for child in expr.children() {
            self.expr(child, report);
        }
        let of_access = match expr.node() {
            Node::Load(buffer, indices) => self.access(buffer, indices),
            _ => None,
        };
        let of_node = node_flaw(expr);
        if (of_access.is_some() || of_node.is_some()) && (is_shared || self.seen.insert(expr)) {
            of_access.into_iter().chain(of_node).for_each(report);
        }
    }

    /// The number and types of indices.
    fn access(&self, buffer: &Buffer, indices: &[Expr]) -> Option<Flaw> {
        let wanted = match self.form {
            Form::Flat => 1,
            Form::Nest | Form::Tiled => buffer.rank(),
        };
        if indices.len() != wanted {
            let found = indices.len();
            let form = self.form.name();
            let text =
                format!("an access of `{}` in {form} form takes {wanted} indices, got {found}", buffer.name);
            return Some(("V4", text));
        }
        if self.form == Form::Flat && !buffer.elem_offset.is_int(0) {
            let name = &buffer.name;
            let text =
                format!("`{name}` has an offset, and an access in Flat form is by its place in the memory");
            return Some(("V4", text));
        }
        let lanes = indices.iter().map(Expr::lanes).max().unwrap_or(1);
        let bad = indices.iter().find(|i| !i.dtype().is_int() || (i.lanes() != 1 && i.lanes() != lanes))?;
        Some(("V4", format!("`{}` of type {} is no index of `{}`", print_expr(bad), bad.ty(), buffer.name)))
    }

    fn stmt(&self, stmt: &Stmt) -> Vec<Flaw> {
        let mut flaws = Vec::new();
        let extent = |e: &Expr, flaws: &mut Vec<Flaw>| {
            if !e.ty().is_scalar() || !e.dtype().is_int() {
                flaws.push((
                    "V6",
                    format!("an extent is a scalar integer, got `{}` of type {}", print_expr(e), e.ty()),
                ));
            }
        };
        match stmt {
            Stmt::For { var, min, extent: n, .. } => {
                extent(min, &mut flaws);
                extent(n, &mut flaws);
                for e in [min, n].into_iter().filter(|e| e.dtype() != var.dtype()) {
                    let (name, wanted) = (var.name(), var.dtype());
                    flaws.push((
                        "V7",
                        format!("`{name}` is {wanted} and its range has an end of type {}", e.ty()),
                    ));
                }
            }
            Stmt::If { cond, .. } if cond.ty() != Ty::scalar(DType::Bool) => {
                flaws.push(("V6", format!("a condition is a scalar bool, got {}", cond.ty())));
            }
            Stmt::Store { buffer, indices, value } => {
                flaws.extend(self.access(buffer, indices));
                let lanes = indices.iter().map(Expr::lanes).max().unwrap_or(1);
                if value.dtype() != buffer.dtype {
                    let (name, wanted) = (&buffer.name, buffer.dtype);
                    flaws.push(("V5", format!("`{name}` holds {wanted}, and the value is {}", value.ty())));
                } else if value.lanes() != lanes && value.lanes() != 1 {
                    let (name, found) = (&buffer.name, value.lanes());
                    flaws.push((
                        "V5",
                        format!("{lanes} elements of `{name}` are stored, and the value has {found} lanes"),
                    ));
                }
            }
            Stmt::Let { var, value, .. } if value.ty() != Ty::scalar(var.dtype()) => {
                flaws.push((
                    "V7",
                    format!("`{}` is {} and its value is {}", var.name(), var.dtype(), value.ty()),
                ));
            }
            Stmt::Atom(call) => flaws.extend(self.atom(call)),
            Stmt::LaunchThread { extent: n, .. } => extent(n, &mut flaws),
            Stmt::ScopeIds { extents, .. } => extents.iter().for_each(|e| extent(e, &mut flaws)),
            Stmt::Allocate { buffer, .. } | Stmt::AllocBuffer(buffer) => {
                buffer.shape.iter().for_each(|e| extent(e, &mut flaws));
            }
            Stmt::Seq(_)
            | Stmt::If { .. }
            | Stmt::Let { .. }
            | Stmt::Annotate { .. }
            | Stmt::DeviceEntry
            | Stmt::View { .. }
            | Stmt::Tile(_)
            | Stmt::Sync(_) => {}
        }
        flaws
    }
}

impl Checker<'_> {
    /// Operands and result of an atom.
    fn atom(&self, call: &AtomCall) -> Option<Flaw> {
        if let Some(flaw) = call.elements().find_map(|e| self.access(&e.buffer, &e.indices)) {
            return Some(flaw);
        }
        let (name, signature) = (call.atom.name(), call.atom.signature());
        let v3 = |text: String| Some(("V3", text));
        if call.args.len() != signature.arity() || call.memory.is_some() != signature.has_memory() {
            let memory = if signature.has_memory() { " beside its memory" } else { "" };
            return v3(format!(
                "`{name}` takes {} arguments{memory}, got {}",
                signature.arity(),
                call.args.len()
            ));
        }
        if let Some(bad) = call.exprs().into_iter().find(|e| !e.ty().is_scalar()) {
            return v3(format!("`{name}` takes scalars, got `{}` of type {}", print_expr(bad), bad.ty()));
        }
        let types: Vec<DType> = call.args.iter().map(Expr::dtype).collect();
        let is_mask = |d: DType| matches!(d, DType::U32 | DType::U64);
        let memory = call.memory.as_ref().map(|e| e.buffer.dtype);
        let wrong = match signature {
            Signature::Shuffle => !is_mask(types[0]) || types[2..].iter().any(|d| *d != DType::I32),
            Signature::Ballot | Signature::Vote => !is_mask(types[0]) || types[1] != DType::Bool,
            Signature::Redux => {
                let is_word = matches!(types[1], DType::I32 | DType::U32);
                let is_extremum = call.atom != Atom::ReduxAdd && types[1] == DType::F32;
                !is_mask(types[0]) || !(is_word || is_extremum)
            }
            Signature::Update | Signature::Exchange => types.iter().any(|d| Some(*d) != memory),
            Signature::Remote => types[0] != DType::I32,
            Signature::Mask | Signature::Fence | Signature::Hint => false,
        };
        if wrong {
            let types: Vec<&str> = types.iter().map(|d| d.name()).collect();
            return v3(format!("`{name}` does not take ({})", types.join(", ")));
        }
        let found = call.dst.as_ref()?.buffer.dtype;
        match signature.result(&types, memory, found) {
            Some(gives) if gives == found && (signature != Signature::Mask || is_mask(found)) => None,
            Some(gives) => Some(("V5", format!("`{name}` gives {gives}, and its destination holds {found}"))),
            None => v3(format!("`{name}` gives nothing")),
        }
    }
}

/// What is wrong with one node whose operands are right.
fn node_flaw(expr: &Expr) -> Option<Flaw> {
    let ty = expr.ty();
    let v3 = |text: String| Some(("V3", format!("{text} in `{}`", print_expr(expr))));
    let gives = |wanted: Ty, what: &str| {
        if ty == wanted { None } else { v3(format!("{what} gives {wanted}, and the node says {ty}")) }
    };
    if ty.lanes == 0 {
        return Some(("V3", "a vector has at least 1 lane".to_owned()));
    }
    match expr.node() {
        Node::Int(value) => {
            let fits = ty.dtype.int_range().is_some_and(|(lo, hi)| (lo..=hi).contains(value));
            if fits && ty.is_scalar() { None } else { v3(format!("{value} is no constant of type {ty}")) }
        }
        Node::Float(bits) => {
            let value = f64::from_bits(*bits);
            let rounded = ty.dtype.round_float(value);
            let fits = ty.is_scalar() && ty.dtype.is_float() && (rounded == value || value.is_nan());
            if fits { None } else { v3(format!("{value} is no constant of type {ty}")) }
        }
        Node::Var(var) if var.kind() == VarKind::Handle => v3(format!("`{}` is a pointer", var.name())),
        Node::Var(var) => gives(Ty::scalar(var.dtype()), "the variable"),
        Node::Binary(op, a, b) => {
            if a.ty() != b.ty() {
                return v3(format!("operands of types {} and {}", a.ty(), b.ty()));
            }
            if !op.takes(a.dtype()) {
                return v3(format!("{op:?} does not take {}", a.dtype()));
            }
            gives(if op.is_comparison() { a.ty().with_dtype(DType::Bool) } else { a.ty() }, "the operation")
        }
        Node::Not(a) if a.dtype() != DType::Bool => v3(format!("`not` takes a bool, got {}", a.ty())),
        Node::Not(a) => gives(a.ty(), "`not`"),
        Node::Cast(a) => gives(a.ty().with_dtype(ty.dtype), "a cast"),
        Node::Select(cond, a, b) | Node::IfThenElse(cond, a, b) => {
            let lazy = matches!(expr.node(), Node::IfThenElse(..));
            if cond.dtype() != DType::Bool || cond.lanes() != if lazy { 1 } else { ty.lanes } {
                return v3(format!("a condition of type {}", cond.ty()));
            }
            if a.ty() != b.ty() {
                return v3(format!("arms of types {} and {}", a.ty(), b.ty()));
            }
            gives(a.ty(), "the choice")
        }
        Node::Call(intrinsic, args) => call_flaw(*intrinsic, args, ty).and_then(v3),
        Node::Load(buffer, indices) => {
            let lanes = indices.iter().map(Expr::lanes).max().unwrap_or(1);
            gives(Ty { dtype: buffer.dtype, lanes }, "the access")
        }
        Node::Ramp(base, stride) => {
            if base.ty() != stride.ty() || !base.ty().is_scalar() || !base.dtype().is_int() {
                return v3(format!(
                    "a ramp takes two integers of one type, got {} and {}",
                    base.ty(),
                    stride.ty()
                ));
            }
            gives(Ty { dtype: base.dtype(), lanes: ty.lanes }, "the ramp")
        }
        Node::Broadcast(a) if !a.ty().is_scalar() => {
            v3(format!("a broadcast takes a scalar, got {}", a.ty()))
        }
        Node::Broadcast(a) => gives(Ty { dtype: a.dtype(), lanes: ty.lanes }, "the broadcast"),
        Node::Let(var, value, _) if value.ty() != Ty::scalar(var.dtype()) => {
            Some(("V7", format!("`{}` is {} and its value is {}", var.name(), var.dtype(), value.ty())))
        }
        Node::Let(_, _, body) => gives(body.ty(), "the body"),
    }
}

fn call_flaw(intrinsic: Intrinsic, args: &[Expr], ty: Ty) -> Option<String> {
    let name = intrinsic.name();
    if args.len() != intrinsic.arity() {
        return Some(format!("`{name}` takes {} arguments, got {}", intrinsic.arity(), args.len()));
    }
    let first = args.first()?.ty();
    if let Some(other) = args.iter().find(|a| a.ty() != first) {
        return Some(format!("arguments of types {first} and {}", other.ty()));
    }
    let legal = match intrinsic {
        Intrinsic::Likely => first.dtype == DType::Bool,
        Intrinsic::Popcount => first.dtype.is_int(),
        Intrinsic::Abs => first.dtype != DType::Bool,
        _ => first.dtype.is_float(),
    };
    if !legal {
        return Some(format!("`{name}` does not take {}", first.dtype));
    }
    let wanted = if intrinsic.is_predicate() { first.with_dtype(DType::Bool) } else { first };
    (ty != wanted).then(|| format!("`{name}` gives {wanted}, and the node says {ty}"))
}
