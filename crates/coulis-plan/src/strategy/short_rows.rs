//! `short_rows`: a few neighbouring elements a row, and very many rows.
//!
//! Vectors run along the rows, one row a lane, and the few elements of a row are written out one by one. No lane is
//! ever folded with another.

use coulis_ir::Attr;
use coulis_schedule::{Schedule, ScheduleError, Split};

use super::steps::{Site, place, stage_of};
use super::{Decline, Facts, Machine, SHORT, Sketch, Strategy};
use crate::program::{Spec, Statement};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "short_rows",
    machine: Machine::Loops,
    keeps_order: false,
    summary: "one row a lane; the few elements of a row are written out one by one",
    propose,
    schedule,
};

/// How far ahead rows are asked for.
const AHEAD_BYTES: i64 = 4 << 10;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let Some((extent, _, true)) = facts.inner() else {
        return Err(Decline::new("a reduced innermost dimension", "a kept one, or none"));
    };
    if extent > SHORT {
        return Err(Decline::new("at most 32 elements in the innermost dimension", extent));
    }
    let lanes = facts.lanes();
    match facts.dim_from_end(1) {
        Some((rows, _, false)) if rows >= lanes => {}
        Some((rows, _, false)) => {
            return Err(Decline::new("as many rows as lanes", format!("{rows} rows, {lanes} lanes")));
        }
        Some((_, _, true)) | None => {
            return Err(Decline::new("rows next to the innermost dimension", "none"));
        }
    }
    let ahead = facts.ahead(AHEAD_BYTES, lanes * extent * facts.spec.inputs[0].bytes() as i64);
    let mut sketch = Sketch { lanes, ahead, ..facts.plain() };
    if let Some(last) = sketch.constant.last_mut() {
        *last = true;
    }
    Ok(sketch)
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let n_kept = spec.n_kept();
    let (state, output) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?);
    let rows = s.stage(output)?.leaves()[n_kept - 1].clone();
    let (block, lane) = s.split(output, &rows, Split::Factor(sketch.lanes))?;
    s.vectorize(output, &lane)?;
    if sketch.parallel {
        let outermost = s.stage(output)?.leaves()[0].clone();
        s.parallel(output, &outermost)?;
    }
    if sketch.ahead > 0 {
        s.pragma(output, &block, "prefetch", Attr::Int(sketch.ahead))?;
    }
    place(s, state, Some(&Site { stage: output, at: block }))?;
    let leaves = s.stage(state)?.leaves().to_vec();
    let (kept, reduce) = leaves.split_at(n_kept);
    let mut order = kept[..n_kept - 1].to_vec();
    order.extend(reduce.iter().cloned());
    order.push(kept[n_kept - 1].clone());
    s.reorder(state, &order)?;
    s.vectorize(state, &kept[n_kept - 1])?;
    match reduce.last() {
        Some(inner) => s.unroll(state, inner),
        None => Ok(()),
    }
}
