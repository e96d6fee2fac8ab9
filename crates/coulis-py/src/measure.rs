//! How large an expression may grow.
//!
//! Expressions are walked through by functions that call themselves, and shared parts are walked through each time. A loop
//! of Python makes one that is too deep or too large for that in a moment; it is refused as it grows.

use coulis::te::MOST_WRITTEN;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::expr::PrimExpr;
use crate::tensor::Element;

/// How large an expression is when it is written out. Parts that are shared count each time, as they do for a program.
#[derive(Clone, Copy, Debug)]
pub struct Measure {
    depth: u32,
    nodes: u64,
}

impl Measure {
    /// A variable, a constant, or a number of Python.
    pub const LEAF: Measure = Measure { depth: 1, nodes: 1 };
    /// What a program may hold; far more than one that anybody wrote, and few enough to be walked through.
    const MOST: Measure = Measure { depth: 1000, nodes: MOST_WRITTEN };

    fn of(object: &Bound<'_, PyAny>) -> Measure {
        match (object.cast::<PrimExpr>(), object.cast::<Element>()) {
            (Ok(expr), _) => expr.get().measure,
            (_, Ok(element)) => element.get().measure(),
            (Err(_), Err(_)) => Measure::LEAF,
        }
    }

    /// The measure of an operation on those operands.
    pub fn over(operands: &[&Bound<'_, PyAny>]) -> PyResult<Measure> {
        let whole = operands.iter().map(|operand| Measure::of(operand)).fold(
            Measure { depth: 0, nodes: 1 },
            |whole, part| Measure {
                depth: whole.depth.max(part.depth),
                nodes: whole.nodes.saturating_add(part.nodes),
            },
        );
        Measure { depth: whole.depth + 1, ..whole }.checked()
    }

    /// Of two parts together.
    pub fn beside(self, other: Measure) -> PyResult<Measure> {
        let nodes = self.nodes.saturating_add(other.nodes);
        Measure { depth: self.depth.max(other.depth), nodes }.checked()
    }

    /// The same, `steps` operations deeper.
    pub fn deeper(self, steps: usize) -> PyResult<Measure> {
        let steps = u32::try_from(steps).unwrap_or(u32::MAX);
        Measure { depth: self.depth.saturating_add(steps), ..self }.checked()
    }

    fn checked(self) -> PyResult<Measure> {
        let Measure { depth, nodes } = self;
        if depth <= Measure::MOST.depth && nodes <= Measure::MOST.nodes {
            return Ok(self);
        }
        Err(PyValueError::new_err(format!(
            "an expression is at most {} operations deep and {} in all, and this one has {depth} and {nodes}; \
             compute a part of it in a tensor of its own",
            Measure::MOST.depth,
            Measure::MOST.nodes
        )))
    }
}
