//! `near_columns`: a map in two folds, of columns side by side that stay in a near cache with what is kept of them.
//!
//! The tile of `columns`, a few vectors wide, is walked as `near_rows` walks a row: the first fold; what is kept of each element,
//! which the second fold takes; and the map. What is kept lies in one piece, where the rows of a tile may push each other out of a
//! cache.

use std::ops::Range;

use coulis_schedule::{Schedule, ScheduleError, Split};

use super::columns::{NARROWEST, fold_tile, overlapped_tile, spread_tiles, tile_loops};
use super::map_steps::{folds, keeps_elements, root, saves_functions};
use super::steps::{Site, place, stage_of, stream_results};
use super::{Decline, Facts, Machine, Run, Sketch, Strategy, Tile, ceil_div, floor_pow2};
use crate::program::{Spec, Statement};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "near_columns",
    machine: Machine::Loops,
    keeps_order: false,
    summary: "columns side by side that stay in a near cache, in two folds: what is kept of an element is computed once",
    propose,
    schedule,
};

/// Bytes of a tile and of what is kept of it: half of a second cache.
const NEAR_BYTES: i64 = 512 << 10;
/// Vectors of a tile: so many that they make up a row exactly, else the fewest.
const WIDTHS: Range<i64> = 8..16;
/// Rows that a visit of a state folds, at most.
const ROWS_A_VISIT: i64 = 8;
/// So many rows are folded several a visit as fast in one fold.
const MANY_ROWS: i64 = 64;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let Some(specs) = folds(facts.spec) else {
        return Err(Decline::new("a map in two folds", "one of one fold"));
    };
    facts.lies_as_elements()?;
    let Some((extent, _, false)) = facts.inner().filter(|_| facts.has_rows()) else {
        return Err(Decline::new("a kept innermost dimension, and a reduced one", "others"));
    };
    if extent < NARROWEST {
        return Err(Decline::new(format!("at least {NARROWEST} outputs side by side"), extent));
    }
    if !facts.target.vectors_are_registers {
        return Err(Decline::new("vectors that are registers", facts.target.vector_bytes));
    }
    let rows = facts.spec.problem.reduce_len;
    if !saves_functions(facts.spec) && rows >= MANY_ROWS {
        return Err(Decline::new(
            "functions that two folds save, or rows that one fold takes one by one",
            rows,
        ));
    }
    let [first, second] = specs.each_ref().map(|spec| {
        let facts = Facts { spec, target: facts.target, room: facts.room };
        fold(&facts, extent)
    });
    let lanes = first.lanes.max(second.lanes).max(facts.map_lanes().min(floor_pow2(extent)));
    let mut tiles = WIDTHS.map(|n| n * facts.map_lanes());
    let even = tiles.clone().find(|tile| tile % lanes == 0 && extent % tile == 0);
    let overlapped = overlapped_tile(facts, extent, lanes);
    let tile = overlapped.or(even).or(tiles.next()).unwrap_or(lanes).min(ceil_div(extent, lanes) * lanes);
    let held = if keeps_elements(facts.spec) { &specs[..] } else { &specs[..1] };
    let of_element: i64 = held.iter().map(Spec::element_bytes).sum();
    let bytes = facts.spec.problem.reduce_len.saturating_mul(tile * of_element);
    if bytes > NEAR_BYTES {
        return Err(Decline::new("tiles of columns that a near cache holds", format!("{bytes} bytes")));
    }
    let n_tiles = facts.spec.problem.n_outputs / extent * ceil_div(extent, tile);
    if facts.parallel() && n_tiles < i64::from(facts.target.n_threads) {
        return Err(Decline::new("a tile for each thread", n_tiles));
    }
    let mut sketch = facts.plain();
    for (constant, dim) in sketch.constant.iter_mut().zip(&facts.spec.problem.dims) {
        *constant = dim.is_reduced();
    }
    if let Some(last) = sketch.constant.last_mut() {
        *last = overlapped.is_some() || extent <= tile || extent % tile == 0;
    }
    let Sketch { whole, constant, .. } = sketch;
    let first = Some(Box::new(Sketch { tile: Tile::of(tile), ..first }));
    let tile = Tile { overlaps: overlapped.is_some(), ..Tile::of(tile) };
    Ok(Sketch { first, tile, whole, constant, ..second }.with_map_inside(true))
}

/// How one of the folds walks a tile.
fn fold(facts: &Facts, extent: i64) -> Sketch {
    let rows = facts.dim_from_end(1).filter(|(.., reduced)| *reduced).map_or(1, |(rows, ..)| rows);
    let visit = (1..=ROWS_A_VISIT).rev().find(|n| rows % n == 0).unwrap_or(1);
    let runs = facts.runs(visit);
    let unroll = if runs.steps > 1 { runs.steps } else { visit };
    Sketch { lanes: runs.lanes.min(floor_pow2(extent)), unroll, run: Run::of(runs.steps), ..facts.plain() }
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let n_kept = spec.n_kept();
    let (Some(of_first), Some(first)) = (&sketch.first, &stmt.first) else { return Ok(()) };
    let (state, finished) = (stage_of(s, &stmt.state)?, stage_of(s, &stmt.output)?);
    let (first_state, kept) = (stage_of(s, &first.state)?, stage_of(s, &first.kept)?);
    let first_output = stage_of(s, &first.output)?;
    let keeps = keeps_elements(spec);
    if !keeps {
        s.compute_inline(kept)?;
    }
    let root = root(s, stmt, sketch)?;
    let of_map = Sketch { lanes: sketch.map.lanes, ..sketch.clone() };
    let mut at = tile_loops(s, root, n_kept, &of_map)?;
    if sketch.whole.parallel {
        at = spread_tiles(s, root, n_kept, at, sketch)?;
    }
    stream_results(s, root, sketch)?;
    let site = Site { stage: root, at };
    fold_tile(s, first_state, n_kept, spec, of_first, of_first.unroll, None)?;
    s.compute_inline(first_output)?;
    fold_tile(s, state, n_kept, spec, sketch, sketch.unroll, None)?;
    place(s, first_state, Some(&site))?;
    for stage in keeps.then_some(kept).into_iter().chain([finished]) {
        // What is kept of the elements lies as they do: the innermost loop is that along the tile.
        if let Some(inner) = s.stage(stage)?.leaves().last().cloned() {
            let (_, lane) = s.split(stage, &inner, Split::Factor(sketch.map.lanes))?;
            s.vectorize(stage, &lane)?;
        }
        place(s, stage, Some(&site))?;
    }
    place(s, state, Some(&site))
}

#[cfg(test)]
mod tests {
    use coulis_ir::DType;

    use crate::plan::{choose, replay, schedule};
    use crate::strategy::near_rows::tests::{cpu, spec, strategy};
    use coulis_reducers::ReducerRequest;

    #[test]
    fn columns_that_a_near_cache_holds_are_folded_twice_where_that_saves_something() {
        assert_eq!(strategy("softmax", DType::F32, &[32, 100_000], 0), "near_columns");
        assert_eq!(strategy("softmax", DType::BF16, &[64, 21, 3000], 1), "near_columns");
        assert_eq!(strategy("softmax", DType::F64, &[1000, 4194], 0), "near_columns");
        assert_eq!(strategy("softmax", DType::F32, &[1024, 4096], 0), "near_columns");
        assert_eq!(strategy("softmax", DType::F32, &[1025, 4096], 0), "columns", "beyond 512 KiB a tile");
        assert_eq!(strategy("softmax", DType::F32, &[100_000, 8], 0), "columns", "long columns");
        assert_eq!(strategy("softmax", DType::F32, &[50, 7], 0), "interleaved", "fewer than 8 side by side");
        assert_eq!(strategy("softmax", DType::I64, &[32, 1000], 0), "columns", "no two folds");
        assert_eq!(strategy("log_softmax", DType::F32, &[63, 1000], 0), "near_columns");
        assert_eq!(
            strategy("log_softmax", DType::F32, &[64, 1000], 0),
            "columns",
            "runs, and no function saved"
        );
    }

    #[test]
    fn tiles_make_up_a_row_where_some_width_does() {
        let tile = |dtype: DType, shape: &[i64]| {
            let spec = spec("softmax", ReducerRequest::new(&[dtype]), shape, 0);
            let sketch = choose(&spec, &cpu()).unwrap().sketch;
            (sketch.tile.width, sketch.constant.last() == Some(&true))
        };
        assert_eq!(tile(DType::F32, &[20, 4096]), (64, true));
        assert_eq!(tile(DType::F32, &[20, 3000]), (120, true));
        assert_eq!(tile(DType::F32, &[20, 3001]), (64, false));
        assert_eq!(tile(DType::F32, &[20, 17]), (24, true));
        assert_eq!(tile(DType::F64, &[20, 4096]), (32, true));
    }

    #[test]
    fn what_is_kept_of_a_tile_lies_as_its_elements_do() {
        let text_of = |name: &str| {
            let spec = spec(name, ReducerRequest::new(&[DType::F32]), &[40, 4096], 0);
            let choice = choose(&spec, &cpu()).unwrap();
            let planned = schedule(&spec, choice.strategy, &choice.sketch).unwrap();
            let again =
                replay(&spec, &choice.sketch, choice.strategy.machine, planned.schedule.trace().steps())
                    .unwrap();
            assert_eq!(again.schedule.trace().to_string(), planned.schedule.trace().to_string());
            let args = planned.statement.program.args();
            let kernel = coulis_schedule::build_nest(&planned.schedule, args, "reduce").unwrap();
            coulis_ir::print::print_kernel(&kernel)
        };
        let text = text_of("softmax");
        assert_eq!(text.matches("T.exp").count(), 1, "{text}");
        assert!(text.contains("K = T.allocate([T.int64(40), T.int64(64)]"), "{text}");
        // A difference is computed anew.
        let text = text_of("log_softmax");
        assert!(!text.contains("K = T.allocate"), "{text}");
    }
}
