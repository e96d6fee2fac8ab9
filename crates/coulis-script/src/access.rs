//! Indices, slices and regions of buffers.

use coulis_ir::simplify::Analyzer;
use coulis_ir::stmt::Region;
use coulis_ir::{BinaryOp, Buffer, Expr, Node, Ty};

use crate::error::{ParseErrorKind, Parsed};
use crate::expr::{same_lanes, type_fault};
use crate::func::Reader;
use crate::tree::{Sign, Term, TermKind};

impl Reader<'_> {
    /// An indexed value: an element or vector of a buffer, or one of `X.strides[0]`, `X.shape[0]`.
    pub(crate) fn subscript(&mut self, term: &Term, base: &Term, indices: &[Term]) -> Parsed<Expr> {
        if let TermKind::Attribute(buffer, field) = &base.kind
            && (field == "strides" || field == "shape")
        {
            let buffer = self.buffer(buffer)?;
            let list = if field == "strides" { &buffer.strides } else { &buffer.shape };
            let [index] = self.exactly(term, field, indices)?;
            let at: usize = index.fitting("a dimension", "non-negative integers")?;
            return list.get(at).cloned().ok_or_else(|| {
                let legal = format!("less than {}", list.len());
                index.fault(ParseErrorKind::Range { what: "a dimension", found: at.to_string(), legal })
            });
        }
        let buffer = self.buffer_or_view(base)?;
        let indices = self.indices(term, &buffer, indices)?;
        Ok(Expr::load(buffer, indices))
    }

    /// A buffer's name, or a view made on the spot (`total.local(1)`), which is declared before the statement.
    pub(crate) fn buffer_or_view(&mut self, term: &Term) -> Parsed<Buffer> {
        if let TermKind::Call(callee, args, keywords) = &term.kind
            && let TermKind::Attribute(source, method) = &callee.kind
            && (method == "local" || method == "view")
        {
            let name = format!("{}_{method}", source.name()?);
            let view = self.view(term, &name, source, method == "local", args, keywords)?;
            let coulis_ir::Stmt::View { buffer, .. } = &view else {
                return Err(term.unexpected("a buffer"));
            };
            let buffer = buffer.clone();
            self.pending.push(view);
            return Ok(buffer);
        }
        self.buffer(term)
    }

    /// The indices of an access to `buffer`: one a dimension, or one in all.
    pub(crate) fn indices(&mut self, term: &Term, buffer: &Buffer, indices: &[Term]) -> Parsed<Vec<Expr>> {
        let indices = match indices {
            [Term { kind: TermKind::Tuple(items), .. }] => items,
            _ => indices,
        };
        let rank = buffer.rank();
        if indices.len() != rank && indices.len() != 1 {
            let what = format!("indices of `{}`", buffer.name);
            let wanted = if rank == 1 { "1".to_owned() } else { format!("{rank}, or 1 in all") };
            return Err(term.fault(ParseErrorKind::Count { what, wanted, found: indices.len() }));
        }
        let mut found: Vec<Expr> = Vec::new();
        let mut vector = Ty::scalar(coulis_ir::DType::I32);
        for index in indices {
            let value = self.index(index)?;
            same_lanes(index, vector, value.ty())?;
            if value.lanes() > 1 {
                vector = value.ty();
            }
            found.push(value);
        }
        Ok(found)
    }

    fn index(&mut self, index: &Term) -> Parsed<Expr> {
        let TermKind::Slice(start, stop, step) = &index.kind else {
            let value = self.expr(index)?;
            if !value.dtype().is_int() {
                return Err(type_fault(index, "an index", value.ty(), "integers"));
            }
            return Ok(value);
        };
        let (Some(start), Some(stop)) = (start, stop) else {
            return Err(index.unexpected("a slice with both ends, `start:stop` or `start:stop:step`"));
        };
        let (start, extent) = self.ends(start, stop)?;
        let stride = match step {
            None => Expr::int_of(1, start.dtype()),
            Some(step) => self.scalar_int_as(step, start.dtype(), "a step")?,
        };
        let lanes = match (extent.as_int(), stride.as_int()) {
            (Some(length), Some(step)) if step >= 1 && length >= 1 && length % step == 0 => {
                u32::try_from(length / step).ok()
            }
            _ => None,
        };
        match lanes {
            Some(lanes) => Ok(Expr::ramp(start, stride, lanes)),
            None => Err(index.unexpected(
                "a slice whose length is a constant multiple of a constant step, as in `k:k + 256:16`",
            )),
        }
    }

    /// `start` and `stop - start`, of one type. A stop written `start + extent` gives that extent; a difference that is
    /// a number for all values of its variables (`k * 5 + 1:k * 5 + 17`) gives the number.
    pub(crate) fn ends(&mut self, start: &Term, stop: &Term) -> Parsed<(Expr, Expr)> {
        if let TermKind::Binary(Sign::Add, again, extent) = &stop.kind
            && start.literal_int().is_none()
            && again.reads_as(start)
        {
            let first = self.scalar_int(start, "a start")?;
            let extent = self.scalar_int_as(extent, first.dtype(), "an extent")?;
            return Ok((first, extent));
        }
        let (first, last) = if start.literal_int().is_some() {
            let last = self.scalar_int(stop, "an end")?;
            (self.scalar_int_as(start, last.dtype(), "a start")?, last)
        } else {
            let first = self.scalar_int(start, "a start")?;
            let last = self.scalar_int_as(stop, first.dtype(), "an end")?;
            (first, last)
        };
        let extent = match (first.as_int(), last.as_int(), last.node()) {
            (Some(a), Some(b), _) => Expr::int_of(b - a, first.dtype()),
            (_, _, Node::Binary(BinaryOp::Add, a, extent)) if *a == first => extent.clone(),
            _ => {
                let difference = &last - &first;
                let constant = Analyzer::new().simplify(&difference).as_int();
                constant.map_or(difference, |n| Expr::int_of(n, first.dtype()))
            }
        };
        Ok((first, extent))
    }

    /// A region: a whole buffer, or `A[0:4, i, :]`.
    pub(crate) fn region(&mut self, term: &Term) -> Parsed<Region> {
        let TermKind::Subscript(base, indices) = &term.kind else {
            return Ok(Region::whole(&self.buffer_or_view(term)?));
        };
        let buffer = self.buffer_or_view(base)?;
        let indices = match &indices[..] {
            [Term { kind: TermKind::Tuple(items), .. }] => items,
            more => more,
        };
        if indices.len() != buffer.rank() {
            let what = format!("indices of `{}`", buffer.name);
            let wanted = buffer.rank().to_string();
            return Err(term.fault(ParseErrorKind::Count { what, wanted, found: indices.len() }));
        }
        let mut ranges = Vec::new();
        for (index, whole) in indices.iter().zip(&buffer.shape) {
            ranges.push(match &index.kind {
                TermKind::Slice(_, _, Some(step)) => {
                    return Err(step.unexpected("a region without a step"));
                }
                TermKind::Slice(None, None, None) => (Expr::int(0), whole.clone()),
                TermKind::Slice(Some(start), Some(stop), None) => self.ends(start, stop)?,
                TermKind::Slice(None, Some(stop), None) => {
                    let stop = self.scalar_int(stop, "an end")?;
                    (Expr::int_of(0, stop.dtype()), stop)
                }
                TermKind::Slice(Some(start), None, None) => {
                    let start = self.scalar_int_as(start, whole.dtype(), "a start")?;
                    let extent = match (start.as_int(), whole.as_int()) {
                        (Some(a), Some(b)) => Expr::int_of(b - a, start.dtype()),
                        _ => whole - &start,
                    };
                    (start, extent)
                }
                _ => {
                    let at = self.scalar_int(index, "an index")?;
                    let one = Expr::int_of(1, at.dtype());
                    (at, one)
                }
            });
        }
        Ok(Region { buffer, ranges })
    }
}
