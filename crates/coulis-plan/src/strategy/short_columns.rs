//! `short_columns`: a few short columns side by side, and very many such groups, as the channels of small images are.
//!
//! Vectors run along the groups, one group a lane: each column's elements are written out one by one, in the order in which they lie in
//! memory, and each column has its own vector of states. Elements that are next to each other are loaded together and brought into
//! lanes in tiles, as those of short rows are, of which the group is one. Nothing is folded between lanes.

use coulis_schedule::{Schedule, ScheduleError, Split};
use coulis_tensor::IterVar;

use super::columns::NARROWEST;
use super::steps::{Site, place, stage_of};
use super::{Decline, Facts, Machine, Sketch, Strategy, calls_functions, state_bytes};
use crate::program::{Spec, Statement};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "short_columns",
    machine: Machine::Loops,
    keeps_order: false,
    summary: "one group of a few short columns a lane; their elements are written out one by one",
    propose,
    schedule,
};

/// Elements of a group, at most: all are written out.
const MOST_ELEMENTS: i64 = 64;
/// Bytes of a state, at most: one column is folded after another, so that a vector of its states stays in registers.
const MOST_STATE_BYTES: i64 = 64;
/// Columns that make up more than a vector's half, as this divisor says, are swift enough as vectors along them.
const PART: i64 = 2;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let Some((columns, 1, false)) = facts.inner() else {
        return Err(Decline::new("a dense kept innermost dimension", "another, or none"));
    };
    let Some((steps, step, true)) = facts.dim_from_end(1) else {
        return Err(Decline::new("a reduced dimension next to the innermost", "a kept one, or none"));
    };
    let Some((groups, apart, false)) = facts.dim_from_end(2) else {
        return Err(Decline::new("a kept dimension around both", "a reduced one, or none"));
    };
    let group = columns * steps;
    if step != columns || apart != group {
        return Err(Decline::new("groups without gaps", "gaps"));
    }
    if group > MOST_ELEMENTS || facts.spec.problem.reduce_len != steps {
        return Err(Decline::new(
            format!("at most {MOST_ELEMENTS} elements in a group, which are all that its outputs fold"),
            group,
        ));
    }
    let lanes = facts.lanes();
    if columns * PART > lanes || columns >= NARROWEST {
        return Err(Decline::new(
            format!("fewer than {NARROWEST} columns, which make up half a vector at most"),
            columns,
        ));
    }
    let bytes = state_bytes(&facts.spec.reducer);
    if bytes > MOST_STATE_BYTES || calls_functions(&facts.spec.reducer.combine) {
        return Err(Decline::new(
            format!("a state of at most {MOST_STATE_BYTES} bytes, and no functions"),
            bytes,
        ));
    }
    if groups < lanes {
        return Err(Decline::new("as many groups as lanes", groups));
    }
    let mut sketch = Sketch { lanes, ..facts.plain() };
    let n_dims = sketch.constant.len();
    sketch.constant[n_dims - 1] = true;
    sketch.constant[n_dims - 2] = true;
    Ok(sketch)
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let (state, output) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?);
    let n_kept = spec.n_kept();
    let leaves = s.stage(output)?.leaves().to_vec();
    let [group, column] = &leaves[n_kept - 2..n_kept] else { return Ok(()) };
    let (block, lane) = s.split(output, group, Split::Factor(sketch.lanes))?;
    s.reorder(output, &[block, column.clone(), lane.clone()])?;
    s.vectorize(output, &lane)?;
    s.unroll(output, column)?;
    if sketch.whole.parallel {
        let outermost = s.stage(output)?.leaves()[0].clone();
        s.parallel(output, &outermost)?;
    }
    // The states of a column lie lane beside lane.
    place(s, state, Some(&Site { stage: output, at: column.clone() }))?;
    let leaves = s.stage(state)?.leaves().to_vec();
    let (kept, reduce) = leaves.split_at(n_kept);
    let [outer @ .., group, column] = kept else { return Ok(()) };
    let order: Vec<IterVar> = outer.iter().chain(reduce).chain([column, group]).cloned().collect();
    s.reorder(state, &order)?;
    s.vectorize(state, group)?;
    for written_out in reduce.iter().chain([column]) {
        s.unroll(state, written_out)?;
    }
    s.from_first(state)
}
