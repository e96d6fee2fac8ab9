//! `settled_rows`: positions in rows of bools, and other states of several fields, which their first elements settle as a rule.
//!
//! The first elements of several rows are folded one row a lane, in tiles, as those of short rows are. What is left of a row is folded by
//! vectors along it, in runs, and only where the first elements do not settle it, nor runs before. Measured: `bench/results`.

use std::ops::RangeInclusive;

use coulis_ir::DType;
use coulis_schedule::{Schedule, ScheduleError, Split, StageId};
use coulis_tensor::IterVar;

use super::steps::{Parts, Site, fold_by_vectors, place, same_axis, stage_of};
use super::{Decline, Facts, Machine, PAGE_BYTES, Run, Sketch, Strategy};
use crate::program::{Spec, Statement};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "settled_rows",
    machine: Machine::Loops,
    keeps_order: false,
    summary: "the first elements of rows of bools come into lanes by tiles, and what is left of a row is folded where that does not \
              settle it",
    propose,
    schedule,
};

/// Rows of so many elements: of shorter ones the first elements are much, and longer ones ask on their way whether they are settled.
const LENGTHS: RangeInclusive<i64> = 641..=32 << 10;
/// First elements of a row, of which a line of memory has as many.
const FIRST: i64 = 64;
/// Elements of a tile.
const TILE: i64 = 16;
/// Vectors side by side of rows that are longer than a run.
const SIDE_BY_SIDE: i64 = 4;
/// Longest run.
const LONGEST: i64 = 255;
/// Steps after which a row is asked where there are no runs.
const MOST_STEPS: i64 = 128;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let spec = facts.spec;
    let Some((extent, 1, true)) = facts.inner().filter(|inner| LENGTHS.contains(&inner.0)) else {
        let (shortest, longest) = (LENGTHS.start(), LENGTHS.end());
        let wanted = format!("a dense reduced innermost dimension of {shortest} to {longest} elements");
        return Err(Decline::new(wanted, "another"));
    };
    let are_bools = spec.inputs == [DType::Bool] && !spec.mask && spec.map.is_none();
    if !are_bools || !facts.may_settle() || spec.reducer.fields.len() < 2 {
        return Err(Decline::new("states of several fields that bools settle, without a mask", "others"));
    }
    let runs = facts.runs(LONGEST);
    match facts.dim_from_end(1) {
        Some((rows, _, false)) if rows >= runs.lanes && spec.problem.reduce_len == extent => {}
        Some(_) | None => return Err(Decline::new("as many rows as lanes, of one dimension", "others")),
    }
    let (lanes, run) = (runs.lanes, runs.steps);
    let chunk_turns = if run > 1 { run } else { MOST_STEPS };
    let unroll = if extent > FIRST + chunk_turns * lanes { SIDE_BY_SIDE } else { 1 };
    let ahead = facts.ahead(2 * PAGE_BYTES, lanes * unroll);
    let mut sketch = Sketch { lanes, run: Run::of(run), unroll, ..facts.plain() };
    sketch.chunks.turns = chunk_turns;
    sketch.early_exit.first = FIRST;
    sketch.ahead.steps = ahead;
    let n_dims = sketch.constant.len();
    sketch.constant[n_dims - 1] = true;
    Ok(sketch)
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let (state, output) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?);
    let n_kept = spec.n_kept();
    let elements = s.stage(state)?.reduce_axes()[0].clone();
    let first = s.begin(state, &elements, sketch.early_exit.first)?;
    let rest = s.stage(state)?.reduce_axes()[0].clone();
    let step = sketch.lanes * sketch.unroll;
    let (run, within) = s.split(state, &rest, Split::Factor(sketch.chunks.turns * step))?;
    let whole = s.rfactor(state, &run)?;
    let (_, of_step) = s.split(whole, &same_axis(s, whole, &within)?, Split::Factor(step))?;
    let (side, lane) = if sketch.unroll > 1 {
        let (side, lane) = s.split(whole, &of_step, Split::Factor(sketch.lanes))?;
        (Some(side), lane)
    } else {
        (None, of_step)
    };
    let parts =
        Parts { lane: &lane, block: None, side: side.as_ref(), page: None, rows: None, outermost: None };
    let made = fold_by_vectors(s, whole, &parts, n_kept + 1, sketch)?;

    let rows = s.stage(output)?.leaves()[n_kept - 1].clone();
    let (block, row) = s.split(output, &rows, Split::Factor(sketch.lanes))?;
    if sketch.whole.parallel {
        let outermost = s.stage(output)?.leaves()[0].clone();
        s.parallel(output, &outermost)?;
    }
    place(s, first, Some(&Site { stage: output, at: block }))?;
    fold_first(s, first, n_kept, sketch)?;
    place(s, state, Some(&Site { stage: output, at: row }))?;
    let run = s.stage(state)?.reduce_axes()[0].clone();
    s.until_settled(state, &run)?;
    let of_run = Site { stage: state, at: run };
    made.stages.iter().chain([&whole]).try_for_each(|stage| place(s, *stage, Some(&of_run)))
}

/// Has the first elements of rows folded one row a lane, in tiles.
fn fold_first(s: &mut Schedule, first: StageId, n_kept: usize, sketch: &Sketch) -> Result<(), ScheduleError> {
    let elements = s.stage(first)?.reduce_axes()[0].clone();
    let (tiles, within) = s.split(first, &elements, Split::Factor(TILE))?;
    let row = s.stage(first)?.leaves()[n_kept - 1].clone();
    let order: [IterVar; 3] = [tiles.clone(), within.clone(), row.clone()];
    s.reorder(first, &order)?;
    s.vectorize(first, &row)?;
    s.unroll(first, &within)?;
    if sketch.run.steps > 1 { s.in_runs(first, &tiles) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use coulis_ir::DType;
    use coulis_reducers::ReducerRequest;

    use super::*;
    use crate::strategy::near_rows::tests::cpu;
    use crate::strategy::tests::planned_for;

    #[test]
    fn positions_in_rows_of_bools_ask_first_elements() {
        let vectors = |op: &str, dtype: DType, rows: i64, extent: i64| {
            let request = ReducerRequest::new(&[dtype]).with_length(extent);
            let (_, sketch, strategy) = planned_for(&request, op, &[rows, extent], &[1], &cpu());
            (strategy.name == STRATEGY.name).then_some(sketch.unroll)
        };
        assert_eq!(vectors("argmax", DType::Bool, 1000, 4096), Some(1), "one run");
        assert_eq!(vectors("argmin", DType::Bool, 32, 5000), Some(4), "several");
        assert_eq!(vectors("argmax", DType::Bool, 1000, 640), None, "short rows");
        assert_eq!(vectors("argmax", DType::Bool, 1000, 40_000), None, "rows that ask on their way");
        assert_eq!(vectors("argmax", DType::Bool, 31, 5000), None, "fewer rows than lanes");
        assert_eq!(
            vectors("argmax_last", DType::Bool, 1000, 4096),
            None,
            "nothing is settled before the end"
        );
        assert_eq!(
            vectors("argmax", DType::U8, 1000, 4096),
            None,
            "bytes, of which few are the greatest there is"
        );
        assert_eq!(vectors("any", DType::Bool, 1000, 4096), None, "no position");
    }
}
