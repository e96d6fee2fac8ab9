//! Reductions of one value a thread: `T.cuda.warp_reduce(v, "sum", width=32)`, `T.cuda.cta_reduce(v, "sum",
//! n_warps, scratch)`, and their short forms `warp_sum`, `cta_max` and the like.
//!
//! Each is read as a tile call on one register a thread: the value goes into the register before the
//! statement that uses it, the call folds the registers of `lanes` neighbours, or of `warps` warps, and the
//! register is the result. So there is one mechanism for what crosses threads. The scratch memory of
//! `cta_reduce` must be there and large enough; variants allocate their own. Source: the intrinsics next to
//! the tile primitives of seeds 000 to 002.

use coulis_ir::stmt::{Region, TileOp};
use coulis_ir::{Attr, Buffer, ExecScope, Expr, MemScope, Stmt, TileCall};

use crate::error::{ParseErrorKind, Parsed};
use crate::expr::type_fault;
use crate::func::{Reader, missing};
use crate::tree::{Keyword, Keywords, Term, TermKind};

/// Lanes of the widest warp.
const MAX_WIDTH: i64 = 64;

/// Warps of a block.
const MAX_WARPS: i64 = 32;

/// Which of the functions.
#[derive(Clone, Copy)]
pub(crate) struct Across {
    scope: ExecScope,
    /// The reducer; an argument where the name does not say it.
    reducer: Option<&'static str>,
}

impl Across {
    /// The function of that name after `T.cuda.`.
    pub(crate) fn from_name(name: &str) -> Option<Across> {
        let (scope, name) = match name.split_once('_')? {
            ("warp", name) => (ExecScope::Warp, name),
            ("cta", name) => (ExecScope::Cta, name),
            _ => return None,
        };
        let reducer = match name {
            "reduce" => None,
            "sum" => Some("sum"),
            "max" => Some("max"),
            "min" => Some("min"),
            _ => return None,
        };
        Some(Across { scope, reducer })
    }
}

impl Reader<'_> {
    /// The result of such a call; what it takes is put before the statement.
    pub(crate) fn across(
        &mut self,
        term: &Term,
        path: &str,
        call: Across,
        args: &[Term],
        keywords: &[Keyword],
    ) -> Parsed<Expr> {
        let mut keywords = Keywords::new(path, keywords);
        let mut args = args.iter();
        let value = args.next().or_else(|| keywords.take("value"));
        let value_term = value.ok_or_else(|| missing(term, path, "a value"))?;
        let name = match call.reducer {
            Some(name) => name.to_owned(),
            None => {
                let op = args.next().or_else(|| keywords.take("op"));
                op.ok_or_else(|| missing(term, path, "a reducer, as \"sum\""))?.str()?.to_owned()
            }
        };
        let option = if call.scope == ExecScope::Warp {
            let width = args.next().or_else(|| keywords.take("width"));
            ("lanes", power_of_two(width, "a width", 32, MAX_WIDTH)?)
        } else {
            let warps = args.next().or_else(|| keywords.take("num_warps"));
            let warps_term = warps.ok_or_else(|| missing(term, path, "a number of warps"))?;
            let warps = power_of_two(Some(warps_term), "a number of warps", 1, MAX_WARPS)?;
            let scratch = args.next().or_else(|| keywords.take("scratch_ptr"));
            let scratch = scratch.or_else(|| keywords.take("scratch"));
            self.scratch(scratch.ok_or_else(|| missing(term, path, "shared memory"))?, warps)?;
            ("warps", warps)
        };
        keywords.done()?;
        if let Some(more) = args.next() {
            return Err(more.unexpected("no further argument"));
        }
        let value = self.expr(value_term)?;
        if value.lanes() != 1 {
            return Err(type_fault(value_term, "a value that is reduced", value.ty(), "scalars"));
        }
        let register = Buffer::new("across", value.dtype(), vec![Expr::int(1)], MemScope::Local);
        let whole = vec![Region::whole(&register)];
        let tile = TileCall {
            op: TileOp::Reduce { name, axes: vec![-1], accum: false },
            scope: call.scope,
            dsts: whole.clone(),
            srcs: whole,
            dispatch: None,
            options: vec![(option.0.to_owned(), Attr::Int(option.1))],
            site: self.site(term),
        };
        let result = register.at([Expr::int(0)]);
        self.pending.push(Stmt::AllocBuffer(register.clone()));
        self.pending.push(Stmt::store(&register, [Expr::int(0)], value));
        self.pending.push(Stmt::Tile(Box::new(tile)));
        Ok(result)
    }

    /// Checks the shared memory that a call may stage in: `X`, `X.data`, `X.ptr_to([i])`, `T.address_of(X[i])`.
    fn scratch(&mut self, term: &Term, n_warps: i64) -> Parsed<()> {
        let pointer = |term: &Term| -> Option<Term> {
            match &term.kind {
                TermKind::Attribute(base, field) if field == "data" => Some((**base).clone()),
                TermKind::Call(callee, args, _) => match (&callee.kind, &args[..]) {
                    (TermKind::Attribute(base, method), [_]) if method == "ptr_to" => Some((**base).clone()),
                    (TermKind::Attribute(_, method), [Term { kind: TermKind::Subscript(base, _), .. }])
                        if method == "address_of" =>
                    {
                        Some((**base).clone())
                    }
                    _ => None,
                },
                _ => None,
            }
        };
        let name = pointer(term).unwrap_or_else(|| term.clone());
        let buffer = self.buffer(&name)?;
        if !matches!(buffer.scope, MemScope::Shared | MemScope::SharedDyn) {
            return Err(name.unexpected("a buffer in shared memory"));
        }
        let size = buffer.shape.iter().try_fold(1i128, |n, e| n.checked_mul(e.as_int()?));
        if size.is_some_and(|n| n < i128::from(n_warps)) {
            let legal = format!("at least {n_warps} elements, one a warp");
            let found = format!("{} elements", size.unwrap_or(0));
            return Err(name.fault(ParseErrorKind::Range { what: "the scratch memory", found, legal }));
        }
        Ok(())
    }
}

/// A power of two from `least` (2 for widths) to `most`; `usual` where none is given.
fn power_of_two(term: Option<&Term>, what: &'static str, usual: i64, most: i64) -> Parsed<i64> {
    let Some(term) = term else { return Ok(usual) };
    let least = if most == MAX_WIDTH { 2 } else { 1 };
    let legal = "a power of two";
    let value: i64 = term.fitting(what, legal)?;
    if value >= least && value <= most && value & (value - 1) == 0 {
        return Ok(value);
    }
    let legal = match most {
        MAX_WIDTH => {
            format!("powers of two from {least} to the lanes of a warp, which are 32, or 64 on some machines")
        }
        _ => format!("powers of two from {least} to {most}"),
    };
    Err(term.fault(ParseErrorKind::Range { what, found: value.to_string(), legal }))
}
