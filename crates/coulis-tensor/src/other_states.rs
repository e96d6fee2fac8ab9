//! The same fold with another state than the program writes: a wider one, and one that knows places.
//!
//! Results stay those of the program. Whoever makes loops of a fold asks for these: contracts N4 and N9.

use coulis_ir::visit::uses_any;
use coulis_ir::{Claims, DType, Expr, Var};
use coulis_reducers::{NO_PLACE, WideState, placed_combine};

use crate::axis::IterVar;
use crate::reduction::{Reduction, position_in};

impl Reduction {
    /// The same fold with its accumulators as wide as contract N4 has them: see [`WideState`]. The results are converted to
    /// their own types once, by whoever stores them. What is only cheaper than to combine, steps and short runs, is for the
    /// state that is declared and goes. `None` where the state is as it should be: extrema, integers, wider floats.
    pub fn accumulating(&self) -> Option<Reduction> {
        let wide = WideState::of(&self.combine, &self.identity)?;
        Some(Reduction {
            sources: wide.values(&self.sources),
            init: wide.values(&self.init),
            combine: wide.combine,
            identity: wide.identity,
            step: None,
            step_needs_ascending: false,
            quick: None,
            settled: None,
            ..self.clone()
        })
    }

    /// The same fold with its results in any order of its points, of a reducer that selects one of two states and tells left
    /// from right only where it could select either: one more field says where the state's element stands, and the state
    /// that stands first is taken as the left one. The new field is the last one, and no result. `None` of other reducers,
    /// and where positions do not ascend with the axes as listed, since an extent depends on another axis.
    pub fn in_any_order(&self) -> Option<Reduction> {
        let of_axes: Vec<Var> = self.axes.iter().map(|axis| axis.var().clone()).collect();
        let is_even = |axis: &IterVar| axis.dom().is_none_or(|(_, extent)| !uses_any(extent, &of_axes));
        if !self.claims.associative || self.step.is_some() || !self.axes.iter().all(is_even) {
            return None;
        }
        let combine = placed_combine(&self.combine, self.arity())?;
        let before = |values: &[Expr]| -> Vec<Expr> {
            values.iter().cloned().chain([Expr::int_of(NO_PLACE.into(), DType::I64)]).collect()
        };
        let sources = self.sources.iter().cloned().chain([position_in(&self.axes)]).collect();
        Some(Reduction {
            combine,
            identity: before(&self.identity),
            sources,
            init: if self.init.is_empty() { Vec::new() } else { before(&self.init) },
            settled: None,
            claims: Claims { commutative: true, ..self.claims },
            ..self.clone()
        })
    }
}
