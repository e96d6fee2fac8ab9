//! The elements of a reduction of addressable operands: outputs and the elements of each, counted row-major.

use coulis_ir::{DType, Element, Expr, LoopKind, MemScope, Stmt, Var};

use crate::block::constant;
use crate::call::Operand;
use crate::facts::Facts;

/// Outputs `0..n_outputs`, each of elements `0..n_elements`: row-major over the spatial and the reduced dimensions.
pub(crate) struct Walk {
    extents: Vec<i64>,
    reduced: Vec<usize>,
}

impl Walk {
    /// The walk of a call, or what was found instead of constant, matching extents.
    pub fn of(facts: &Facts) -> Result<Walk, String> {
        let extents = |operand: &Operand| {
            let name = &operand.tile().name;
            operand.extents().ok_or_else(|| format!("`{name}`, whose extents are not constant"))
        };
        let first = facts.srcs.first().ok_or("no source")?;
        let of_first = extents(first)?;
        for src in &facts.srcs[1..] {
            let other = extents(src)?;
            if other != of_first {
                return Err(format!("sources of extents {of_first:?} and {other:?}"));
            }
        }
        let walk = Walk { extents: of_first, reduced: facts.reduced.clone() };
        // Elements are counted in `int32`.
        let most = i32::MAX.unsigned_abs();
        for (n, what) in [(walk.n_outputs(), "results"), (walk.n_elements(), "elements of a result")] {
            if n > most {
                return Err(format!("extents {:?} of more than {most} {what}", walk.extents));
            }
        }
        for dst in &facts.dsts {
            let own = extents(dst)?;
            let size: i64 = own.iter().product();
            if size != i64::from(walk.n_outputs()) {
                let name = &dst.tile().name;
                return Err(format!("`{name}` of {own:?} for {} results", walk.n_outputs()));
            }
        }
        Ok(walk)
    }

    fn size_of(&self, reduced: bool) -> u32 {
        let dims = self.extents.iter().enumerate().filter(|(d, _)| self.reduced.contains(d) == reduced);
        let size = dims.map(|(_, n)| i128::from(*n)).fold(1i128, i128::saturating_mul);
        u32::try_from(size).unwrap_or(u32::MAX)
    }

    /// Number of results.
    pub fn n_outputs(&self) -> u32 {
        self.size_of(false)
    }

    /// Elements of each.
    pub fn n_elements(&self) -> u32 {
        self.size_of(true)
    }

    /// Whether consecutive outputs, and not consecutive elements of one, are neighbours along the last dimension.
    pub fn is_last_kept(&self) -> bool {
        let last = self.extents.iter().rposition(|n| *n > 1);
        last.is_some_and(|d| !self.reduced.contains(&d))
    }

    /// Whether the elements of an output come in runs of `n` neighbours along the last dimension.
    pub fn has_runs_of(&self, n: u32) -> bool {
        let is_last = self.extents.len().checked_sub(1).is_some_and(|last| self.reduced.contains(&last));
        is_last && self.extents.last().is_some_and(|extent| extent % i64::from(n) == 0)
    }

    /// Coordinates of element `q` of output `p` in a source.
    pub fn coords(&self, p: &Expr, q: &Expr) -> Vec<Expr> {
        let part = |reduced: bool| -> Vec<i64> {
            let dims = self.extents.iter().enumerate().filter(|(d, _)| self.reduced.contains(d) == reduced);
            dims.map(|(_, n)| *n).collect()
        };
        let mut spatial = digits(p, &part(false)).into_iter();
        let mut reduced = digits(q, &part(true)).into_iter();
        let of = |d: usize| if self.reduced.contains(&d) { reduced.next() } else { spatial.next() };
        (0..self.extents.len()).map(of).map(|c| c.unwrap_or_else(|| constant(0))).collect()
    }

    /// The values of element `q` of output `p`, one a source.
    pub fn elements(&self, facts: &Facts, p: &Expr, q: &Expr) -> Vec<Expr> {
        let coords = self.coords(p, q);
        facts.srcs.iter().map(|src| src.value(&coords)).collect()
    }

    /// The places of output `p`, one a destination.
    pub fn outputs(&self, facts: &Facts, p: &Expr) -> Vec<Element> {
        let place = |dst: &Operand| dst.element(&digits(p, &dst.extents().unwrap_or_default()));
        facts.dsts.iter().map(place).collect()
    }
}

/// A number as row-major digits of these extents.
pub(crate) fn digits(number: &Expr, extents: &[i64]) -> Vec<Expr> {
    let outermost = extents.iter().position(|n| *n > 1);
    let mut weight: i64 = extents.iter().product();
    let mut found = Vec::with_capacity(extents.len());
    for (at, &extent) in extents.iter().enumerate() {
        if extent <= 1 {
            found.push(constant(0));
            continue;
        }
        weight /= extent;
        let quotient = if weight <= 1 { number.clone() } else { number.clone().floordiv(int(weight)) };
        found.push(if Some(at) == outermost { quotient } else { quotient.floormod(int(extent)) });
    }
    found
}

/// Coordinates that many elements further along the last dimension.
pub(crate) fn moved(mut coords: Vec<Expr>, by: &Expr) -> Vec<Expr> {
    if let Some(last) = coords.last_mut() {
        *last = affine(last, 1, by);
    }
    coords
}

/// An `int32` constant.
pub(crate) fn int(value: i64) -> Expr {
    Expr::int_of(i128::from(value), DType::I32)
}

/// A loop of `n` steps; one step stands alone, with index 0.
pub(crate) fn repeat(name: &str, n: u32, body: impl FnOnce(&Expr) -> Stmt) -> Stmt {
    if n == 1 {
        return body(&constant(0));
    }
    let var = Var::new(name, DType::I32);
    let body = body(&var.expr());
    Stmt::range(var, constant(n), body)
}

/// Does `body` in lanes 0 to `n - 1` at once; `n` is at least 2.
pub(crate) fn in_lanes(n: u32, body: impl FnOnce(&Expr) -> Stmt) -> Stmt {
    let lane = Var::size("v", DType::I32);
    let body = body(&lane.expr());
    Stmt::for_(lane, constant(0), constant(n), LoopKind::Vectorized, body)
}

/// `a * factor + b` without zeros and ones.
pub(crate) fn affine(a: &Expr, factor: u32, b: &Expr) -> Expr {
    let scaled = crate::block::scaled(a.clone(), factor);
    match (scaled.is_int(0), b.is_int(0)) {
        (true, _) => b.clone(),
        (false, true) => scaled,
        (false, false) => scaled + b.clone(),
    }
}

/// Whether a thread can address an operand by itself.
pub(crate) fn is_private(operand: &Operand) -> bool {
    operand.scope() == MemScope::Local && !operand.is_spread
}
