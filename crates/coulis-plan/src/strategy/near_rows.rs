//! `near_rows`: a map in two folds, of rows that stay in the first cache with what is kept of them.
//!
//! Three walks over each row: the first fold; what is kept of each element, which the second fold takes; and the map. What is as
//! quickly computed as read is not kept, and computed anew by the second fold and the map. Both folds are
//! those of `rows`, of a row that is in a cache. Rows that leave it are read once, and what is kept of them computed twice.

use coulis_schedule::{Schedule, ScheduleError, Split, StageId};

use super::map_steps::{folds, keeps_elements, map_row, root, saves_functions};
use super::rows;
use super::steps::{Made, Site, ask_ahead, place, site, split_vectors, stage_of};
use super::{Decline, Facts, Machine, Sketch, Strategy, floor_pow2};
use crate::problem::{Dim, Problem, Role};
use crate::program::{Spec, Statement};
use coulis_ir::Attr;
use coulis_ir::remark::{PREFETCH, PREFETCH_L2};

/// The catalogue's entry.
pub static STRATEGY: Strategy = Strategy {
    name: "near_rows",
    machine: Machine::Loops,
    keeps_order: false,
    summary: "rows that stay in the first cache, in two folds: what is kept of an element is computed once",
    propose,
    schedule,
};

/// Bytes of a row and of what is kept of it that the first cache holds beside what else is there.
const NEAR_BYTES: i64 = 64 << 10;
/// The same where it is not kept, and the row is read again from there by each of three walks.
const ANEW_BYTES: i64 = 16 << 10;
/// Rows of fewer elements end as long as they are walked. Where no function is saved, one fold is as quick up to a vector, and up
/// to two where elements are converted.
const SHORTEST: i64 = 16;
/// Rows that are taken together, at most, and at least where the cache holds as many, and bytes of what is kept of them: the end of
/// one fold is a chain of operations that wait for each other, beside which those of the next row run where nothing else stands
/// between them.
const TOGETHER: i64 = 8;
const TWO: i64 = 2;
const TWO_BYTES: i64 = 8 << 10;
const TOGETHER_BYTES: i64 = 4 << 10;
/// Elements of more bytes than are asked for before they are read do not go into the first cache, which would lose others.
const FIRST_CACHE_BYTES: i64 = 8 << 10;
/// Folds of fewer vectors are one chain: those of rows that are taken together run side by side.
const OF_A_CHAIN: i64 = 16;
/// Pieces of work that are left for each thread.
const PIECES: i64 = 8;

fn propose(facts: &Facts) -> Result<Sketch, Decline> {
    let Some([first_spec, second_spec]) = folds(facts.spec) else {
        return Err(Decline::new("a map in two folds", "one of one fold"));
    };
    facts.lies_as_elements()?;
    let Some((extent, 1, true)) = facts.inner().filter(|_| facts.spec.n_reduced() == 1 && facts.has_rows())
    else {
        return Err(Decline::new("rows of neighbours, and several", "others"));
    };
    let bytes = |spec: &Spec| extent.saturating_mul(spec.element_bytes());
    let keeps = keeps_elements(facts.spec);
    let of_row = bytes(&first_spec).saturating_add(if keeps { bytes(&second_spec) } else { 0 });
    if of_row > if keeps { NEAR_BYTES } else { ANEW_BYTES } {
        return Err(Decline::new("rows that the first cache holds", format!("{of_row} bytes")));
    }
    if !facts.target.vectors_are_registers {
        return Err(Decline::new("vectors that are registers", facts.target.vector_bytes));
    }
    let of_one_row = |spec: &Spec| {
        let spec = Spec { problem: one_row(&spec.problem), ..spec.clone() };
        let facts = Facts { spec: &spec, target: facts.target, room: facts.room };
        let most_beside = if extent <= OF_A_CHAIN * facts.lanes() { 1 } else { i64::MAX };
        // Lanes that are brought together by halves are vectors, of which several rows have the ends under way.
        Ok(Sketch { by_halves: true, ..rows::sketch(&facts, most_beside)? })
    };
    let first = of_one_row(&first_spec)?;
    let shortest = match saves_functions(facts.spec) {
        true => SHORTEST,
        false => SHORTEST.max(if keeps { 2 } else { 1 } * first.lanes + 1),
    };
    if extent < shortest {
        return Err(Decline::new(
            format!("rows of {SHORTEST} elements at least, or of more than a vector or two"),
            extent,
        ));
    }
    let mut constant = facts.plain().constant;
    if let Some(last) = constant.last_mut() {
        *last = true;
    }
    let mut second = Sketch { whole: facts.plain().whole, constant, ..of_one_row(&second_spec)? };
    let together = together(facts, bytes(&second_spec));
    // Memory is asked for while what is kept is computed: the walk before it is as fast as memory is.
    let word = if keeps { facts.map_lanes() } else { second.lanes * second.unroll * second.run.chains };
    second.ahead.steps =
        facts.ahead(together * bytes(&first_spec), word * facts.spec.inputs[0].bytes() as i64);
    second.map.together = together;
    Ok(Sketch { first: Some(Box::new(first)), ..second }.with_map_inside(true))
}

/// Rows that are taken together, where so many bytes are kept of each.
fn together(facts: &Facts, bytes: i64) -> i64 {
    let rows = facts.spec.problem.dims.iter().rfind(|d| !d.is_reduced()).map_or(1, |d| d.extent);
    let for_threads = facts.spec.problem.n_outputs / (PIECES * i64::from(facts.target.n_threads.max(1)));
    let most = if facts.parallel() { for_threads.min(TOGETHER) } else { TOGETHER };
    let fewest = if TWO * bytes <= TWO_BYTES { TWO } else { 1 };
    floor_pow2((TOGETHER_BYTES / bytes.max(1)).max(fewest).min(most).min(rows))
}

/// The problem of one of its rows.
fn one_row(problem: &Problem) -> Problem {
    let row = problem.dims.iter().filter(|d| d.is_reduced()).cloned();
    let strides = row.clone().map(|d| vec![0; d.strides.len()]).next().unwrap_or_default();
    let one = Dim { extent: 1, strides, role: Role::Kept { out_stride: 0 } };
    Problem { dims: [one].into_iter().chain(row).collect(), n_outputs: 1, ..problem.clone() }
}

fn schedule(s: &mut Schedule, stmt: &Statement, spec: &Spec, sketch: &Sketch) -> Result<(), ScheduleError> {
    let n_kept = spec.n_kept();
    let (Some(of_first), Some(first), Some([first_spec, second_spec])) =
        (&sketch.first, &stmt.first, folds(spec))
    else {
        return Ok(());
    };
    let (state, first_state) = (stage_of(s, &stmt.state)?, stage_of(s, &first.state)?);
    let (first_output, kept) = (stage_of(s, &first.output)?, stage_of(s, &first.kept)?);
    let keeps = keeps_elements(spec);
    if !keeps {
        s.compute_inline(kept)?;
    }
    let first_made = rows::fold_whole(s, first_state, &first_spec, of_first)?;
    let mut of_second = sketch.clone();
    of_second.ahead.steps = 0;
    let made = rows::fold_whole(s, state, &second_spec, &of_second)?;
    let root = root(s, stmt, sketch)?;
    if sketch.map.together > 1 {
        let row = s.stage(root)?.leaves()[n_kept - 1].clone();
        s.split(root, &row, Split::Factor(sketch.map.together))?;
    }
    let site = site(s, root, n_kept, sketch.whole.parallel, sketch.whole.outer_is_long)?;
    place_fold(s, first_state, &first_made, n_kept, site.as_ref())?;
    s.compute_inline(first_output)?;
    let hint = |lanes: i64| {
        let bytes = sketch.ahead.steps * lanes * spec.inputs[0].bytes() as i64;
        if bytes <= FIRST_CACHE_BYTES { PREFETCH } else { PREFETCH_L2 }
    };
    if keeps {
        place(s, kept, site.as_ref())?;
        let inner = s.stage(kept)?.leaves()[spec.problem.dims.len() - 1].clone();
        let (word, _) = split_vectors(s, kept, &inner, sketch.map.lanes)?;
        if sketch.ahead.steps > 0 {
            s.pragma(kept, &word, hint(sketch.map.lanes), Attr::Int(sketch.ahead.steps))?;
        }
    } else {
        ask_ahead(s, made.reads, hint(sketch.lanes * sketch.unroll * sketch.run.chains), sketch.ahead.steps)?;
    }
    place_fold(s, state, &made, n_kept, site.as_ref())?;
    map_row(s, stmt, site.as_ref(), sketch)?;
    if sketch.map.together < TOGETHER {
        return Ok(());
    }
    let output = stage_of(s, &stmt.output)?;
    let row = s.stage(output)?.leaves()[n_kept - 1].clone();
    s.vectorize(output, &row)
}

/// Places a fold of rows at `site`, and what it is made of in its loop over rows.
fn place_fold(
    s: &mut Schedule,
    state: StageId,
    made: &Made,
    n_kept: usize,
    site: Option<&Site>,
) -> Result<(), ScheduleError> {
    place(s, state, site)?;
    let row = s.stage(state)?.leaves()[n_kept - 1].clone();
    let of_row = Site { stage: state, at: row };
    made.stages.iter().try_for_each(|&stage| place(s, stage, Some(&of_row)))
}

#[cfg(test)]
pub(super) mod tests {
    use coulis_ir::args::{ArrayInfo, compact_strides};
    use coulis_ir::{DType, Target};
    use coulis_reducers::{NormalizationRequest, ReducerRequest, find_normalization};

    use super::*;
    use crate::order::Order;
    use crate::plan::{choose, replay};
    use crate::program::{Map, OutputSpec};

    pub fn cpu() -> Target {
        Target { register_bytes: 512, pages: 1, ..Target::cpu(32, 2) }
    }

    pub fn spec(name: &str, fold: ReducerRequest, shape: &[i64], axis: i64) -> Spec {
        spec_of(name, fold, (shape, &compact_strides(shape)), axis)
    }

    pub fn spec_of(name: &str, fold: ReducerRequest, (shape, strides): (&[i64], &[i64]), axis: i64) -> Spec {
        let dtype = fold.inputs[0];
        let info = ArrayInfo { dtype, shape: shape.to_vec(), strides: strides.to_vec() };
        let problem =
            Problem::of_map(std::slice::from_ref(&info), None, &[], Some(&[axis]), Order::RowMajor, false)
                .unwrap();
        let request = NormalizationRequest::new(fold);
        let of = find_normalization(name).unwrap().build(&request).unwrap();
        let map = Map { lambda: of.map, beside: Vec::new(), staged: of.staged, left_out: None };
        Spec::new(problem, vec![dtype], false, of.reducer, vec![OutputSpec::plain(dtype)], Some(map))
    }

    pub fn strategy(name: &str, dtype: DType, shape: &[i64], axis: i64) -> &'static str {
        let spec = spec(name, ReducerRequest::new(&[dtype]), shape, axis);
        choose(&spec, &cpu()).unwrap().strategy.name
    }

    #[test]
    fn rows_that_a_near_cache_holds_are_folded_twice() {
        assert_eq!(strategy("softmax", DType::F32, &[4096, 1024], 1), "near_rows");
        assert_eq!(strategy("softmax", DType::BF16, &[40, 100], 1), "near_rows");
        assert_eq!(strategy("softmax", DType::F64, &[3, 5, 100], -1), "near_rows");
        assert_eq!(strategy("softmax", DType::F32, &[64, 65_536], 1), "rows", "a long row");
        assert_eq!(strategy("softmax", DType::F32, &[1024, 512], 0), "near_columns");
        assert_eq!(strategy("softmax", DType::F32, &[4096, 8], 1), "short_rows");
        assert_eq!(strategy("softmax", DType::I64, &[4096, 1024], 1), "rows", "no two folds");
    }

    #[test]
    fn differences_are_computed_anew_where_that_is_quicker_than_to_read_them() {
        assert_eq!(strategy("log_softmax", DType::F32, &[4096, 4096], 1), "near_rows");
        assert_eq!(strategy("log_softmax", DType::F32, &[4096, 4097], 1), "rows", "all of a first cache");
        assert_eq!(strategy("log_softmax", DType::BF16, &[4096, 8192], 1), "near_rows");
        assert_eq!(strategy("softmax", DType::BF16, &[4096, 16], 1), "near_rows");
        assert_eq!(
            strategy("log_softmax", DType::BF16, &[4096, 31], 1),
            "short_rows",
            "less than two vectors"
        );
        let kept = |dtype: DType| {
            let spec = spec("log_softmax", ReducerRequest::new(&[dtype]), &[4096, 1000], 1);
            let choice = choose(&spec, &cpu()).unwrap();
            let planned = crate::plan::schedule(&spec, choice.strategy, &choice.sketch).unwrap();
            let trace = planned.schedule.trace().to_string();
            assert!(trace.contains("prefetch"), "{trace}");
            !trace.contains("s[K].compute_inline()")
        };
        assert_eq!([DType::F32, DType::F64].map(kept), [false; 2]);
        assert_eq!([DType::F16, DType::BF16, DType::I32].map(kept), [true; 3], "converted");
    }

    #[test]
    fn what_is_kept_is_computed_once_an_element() {
        let spec = spec("softmax", ReducerRequest::new(&[DType::F32]), &[4096, 1000], 1);
        let choice = choose(&spec, &cpu()).unwrap();
        let planned = crate::plan::schedule(&spec, choice.strategy, &choice.sketch).unwrap();
        let kernel =
            coulis_schedule::build_nest(&planned.schedule, planned.statement.program.args(), "reduce")
                .unwrap();
        let text = coulis_ir::print::print_kernel(&kernel);
        assert_eq!(text.matches("T.exp").count(), 1, "{text}");
        let again =
            replay(&spec, &choice.sketch, choice.strategy.machine, planned.schedule.trace().steps()).unwrap();
        assert_eq!(again.schedule.trace().to_string(), planned.schedule.trace().to_string());
    }
}
