//! Steps for maps that read the elements again once their row is folded.
//!
//! Where a strategy folds a row at a time, the map of a row is the tail of the row's loop, and reads it from the nearest
//! cache (`inside`). Otherwise the finished results of all rows lie in memory and the map is a nest, or a launch, of its own.

use coulis_ir::{DType, MemScope, Reducer, ThreadTag};
use coulis_schedule::{Schedule, ScheduleError, Split, StageId};
use coulis_tensor::IterVar;

use super::steps::{Site, place, split_vectors, stage_of, stream_results};
use super::{
    CACHE_LINE_BYTES, Decline, Facts, Machine, NARROW, PAGE_BYTES, PARALLEL_BYTES, Sketch, calls_functions,
    floor_pow2, gcd,
};
use crate::constants::{Constants, NEAR};
use crate::problem::Dim;
use crate::program::{Map, OutputSpec, Spec, Statement};

/// How a map is scheduled; all of it is without meaning where there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct MapSketch {
    /// Whether the map of a row follows its fold at once.
    pub inside: bool,
    /// Elements of one vector operation.
    pub lanes: i64,
    /// Whether the vectors of a nest of its own go on from one row to the next, as elements and results each are one piece of memory.
    pub joined: bool,
    /// Accesses of each thread of a nest of its own, on machines with threads.
    pub each: i64,
    /// Outer loops of a nest of its own that are spread over threads as one.
    pub fused: usize,
    /// Parts of the last of them, where they are too few by themselves; 1 is no split.
    pub parts: i64,
    /// The dimension along which results are neighbours, where elements are not.
    pub across: Option<usize>,
    /// Rows that are taken together: where there are two folds, each step of all of them before the next; where vectors of a nest of its
    /// own go on from one row to the next, those of a block, on machines with loops. 0 is one.
    pub together: i64,
    /// Where a row is kept between its fold and its map.
    pub keep: Keep,
    /// Elements of a row where it is kept, of which those behind its own change no fold; 0 is as many as it has.
    pub filled: i64,
}

/// Memory in which a row stays from its fold to its map.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Keep {
    /// None: the map reads it as the fold did.
    #[default]
    Nothing,
    /// Registers of the threads.
    Registers,
    /// Memory of the block, or of each of the blocks that have parts of the row.
    Shared,
}

/// Threads of a block that maps elements.
const BLOCK: i64 = 256;
/// Accesses of each, at most.
pub const MOST_OF_THREAD: i64 = 8;
/// Pieces of work that a nest of its own is spread over threads in, at least.
const PIECES: i64 = 64;
/// Elements side by side of which a vector of results each is stored, where results are neighbours along another dimension: what lies
/// in the lines of their elements is read before these leave the cache.
pub const SIDE_BY_SIDE: i64 = 64;
/// Vectors of results of a strip that a thread stores.
const STRIP_VECTORS: i64 = 8;
/// Bytes of neighbours among those that are loaded together and put into vectors of their own in registers.
pub const PIECE_BYTES: i64 = 16;
/// Threads of a block along the dimension of results where that is not the elements', and the others, along that of the elements, whose
/// words are lines that the first cache keeps until all are read.
pub const ACROSS: i64 = 32;
/// See [`ACROSS`].
pub const ALONG: i64 = BLOCK / ACROSS;
/// Vectors of a block of rows that are mapped as one, at least.
const FEWEST_VECTORS: i64 = 4;
/// Longest rows of which a block maps several, whose results are neighbours then.
const LONGEST_OF_SEVERAL: i64 = 128;
/// Bytes of results from which on a map of its own pays on machines with threads.
const MANY_BYTES: i64 = 1 << 20;

impl MapSketch {
    /// Whether the results of a row are brought beside each of its elements, so that vectors of several rows read them.
    pub fn spreads(&self) -> bool {
        self.joined && self.together > 1
    }
}

impl Facts<'_> {
    /// That results of a map lie as its elements do, so that it may follow each row.
    pub fn lies_as_elements(&self) -> Result<(), Decline> {
        match self.across() {
            None => Ok(()),
            Some(_) => {
                Err(Decline::new("results that lie as the elements do", "others, which are stored apart"))
            }
        }
    }

    /// The map, where it can follow each row and its results lie as the elements do.
    pub fn map_of_rows(&self, wanted: &'static str) -> Result<&Map, Decline> {
        self.lies_as_elements()?;
        let map = self.spec.map.as_ref().filter(|_| self.has_rows());
        map.ok_or_else(|| Decline::new(wanted, "no map of what is folded"))
    }

    /// Whether a map can follow each row: where there are loops over rows, and in a row, and results lie as elements do.
    pub fn has_rows(&self) -> bool {
        let n_kept = self.spec.n_kept();
        0 < n_kept && n_kept < self.spec.problem.dims.len() && self.across().is_none()
    }

    /// The dimension along which results of a map are neighbours, where that is not the innermost of the elements and results stored in the
    /// order of the elements cost much: on machines with loops, where the lines of those beside each other are more than stay in half of
    /// the first cache until they are full; on machines with threads, where each is an access of its own.
    pub fn across(&self) -> Option<usize> {
        let map = self.spec.map.as_ref().filter(|_| self.target.vectors_are_registers)?;
        let dims = &self.spec.problem.dims;
        let result = self.spec.n_read() + map.beside.len();
        let width = self.spec.widest_result_bytes();
        let bytes = self.spec.n_results().saturating_mul(width);
        let last = dims.last().filter(|last| last.strides[0].unsigned_abs() <= NEAR)?;
        let stride = last.strides[result].saturating_abs().saturating_mul(width);
        let (is_costly, fewest) = match Machine::of(self.target) {
            Machine::Loops => {
                // Lines a stride apart share the sets of a cache whose ways are as long as a page.
                let ways = (self.target.first_cache_bytes as i64 / PAGE_BYTES).max(1);
                let held = ways * (PAGE_BYTES / gcd(stride, PAGE_BYTES).max(CACHE_LINE_BYTES));
                (bytes >= PARALLEL_BYTES && 2 * last.extent > held, self.map_lanes())
            }
            Machine::Threads => {
                let shortest = if last.is_reduced() { LONGEST_OF_SEVERAL + 1 } else { ACROSS };
                (bytes >= MANY_BYTES && last.extent >= shortest, ACROSS)
            }
        };
        let is_wide = |dim: &Dim| dim.strides[result] == 1 && dim.extent >= fewest;
        dims.iter().position(is_wide).filter(|_| stride > width && is_costly)
    }

    /// The sketch with what a nest of the map's own is to be.
    pub fn with_map(&self, sketch: Sketch) -> Sketch {
        let Some(map) = &self.spec.map else { return sketch };
        let dims = &self.spec.problem.dims;
        let Some((last, outer)) = dims.split_last() else { return sketch };
        let n_arrays = self.spec.n_read() + map.beside.len() + 1;
        let lanes = match Machine::of(self.target) {
            Machine::Loops => self.map_lanes().min(floor_pow2(last.extent)),
            Machine::Threads if sketch.peeled => sketch.lanes,
            Machine::Threads => self.word_lanes_of(n_arrays, &sketch.constant),
        };
        let across = self.across();
        let lanes = match Machine::of(self.target) {
            _ if across.is_none() => lanes,
            Machine::Loops => self.map_lanes(),
            Machine::Threads => self.word_lanes(&sketch.constant),
        };
        let is_nest = Machine::of(self.target) == Machine::Threads && across.is_none() && !sketch.map.inside;
        let of_piece = if is_nest { self.lanes_of_piece(&sketch.constant) } else { 1 };
        let joined = of_piece > self.word_lanes_of(n_arrays, &sketch.constant);
        let lanes = if joined { of_piece } else { lanes };
        let block = if sketch.map.inside { None } else { self.joined_rows(&sketch.constant) };
        let joined = joined || block.is_some();
        let lanes = if block.is_some() { self.map_lanes() } else { lanes };
        let together = block.unwrap_or(sketch.map.together);
        // Narrow accesses are several a thread: blocks of so little begin no sooner than others end.
        let widest = self.spec.widest_bytes();
        let each = match Machine::of(self.target) {
            // Vectors of wide elements are as fast by single ones, whose lines are near, and in some shapes faster.
            Machine::Loops if widest >= NARROW as i64 => 1,
            Machine::Loops => PIECE_BYTES / widest,
            Machine::Threads => {
                (i64::from(self.target.vector_bytes) / (lanes * widest)).clamp(1, MOST_OF_THREAD)
            }
        };
        let mut pieces = 1i64;
        let fused = outer.iter().take_while(|dim| {
            let more = pieces < PIECES;
            pieces = pieces.saturating_mul(dim.extent);
            more
        });
        let fused = fused.count();
        let parts = if fused == outer.len() && pieces < PIECES { PIECES } else { 1 };
        let parts = if last.extent >= parts * lanes { parts } else { 1 };
        let map = MapSketch { lanes, joined, each, fused, parts, across, together, ..sketch.map };
        Sketch { map, ..sketch }
    }

    /// Rows of a block whose elements are mapped as one piece of memory, on machines with loops: of rows that are shorter than a vector, as
    /// many as make up a few vectors.
    fn joined_rows(&self, constants: &Constants) -> Option<i64> {
        let map = self.spec.map.as_ref().filter(|map| map.beside.is_empty() && self.across().is_none())?;
        let dims = &self.spec.problem.dims;
        let [.., before, last] = &dims[..] else { return None };
        let (length, lanes) = (last.extent, self.map_lanes());
        let is_plain = self.spec.outputs.iter().all(|output| output.beta == 0.0);
        let result = self.spec.n_read() + map.beside.len();
        let mut arrays = (0..self.spec.n_read()).chain([result]);
        let is_dense = arrays.all(|at| last.strides[at] == 1 && before.strides[at] == length);
        let are_loops = Machine::of(self.target) == Machine::Loops && self.target.vectors_are_registers;
        // The vectors of a row by itself, of which two overlap where one does not hold it, against what brings its results beside them.
        let of_row = if length.count_ones() == 1 { 1 } else { 2 };
        let dear = [calls_functions(&map.lambda), self.spec.inputs[0].bytes() < NARROW];
        let most = dear.map(|is_so| if is_so { lanes / 4 } else { 0 }).iter().sum::<i64>() * of_row;
        if !is_plain || !is_dense || !are_loops || !constants[dims.len() - 1] || !(2..most).contains(&length)
        {
            return None;
        }
        let mut rows = lanes / (length & length.wrapping_neg());
        while rows * length < FEWEST_VECTORS * lanes {
            rows *= 2;
        }
        (before.extent >= 2 * rows).then_some(rows)
    }

    /// Lanes that fill a vector with values of the type in which the map computes.
    pub fn map_lanes(&self) -> i64 {
        let computed = self.spec.map.iter().flat_map(|map| &map.lambda.body).map(|e| e.dtype().bytes());
        i64::from(self.target.vector_bytes) / computed.max().unwrap_or(1) as i64
    }
}

impl Sketch {
    /// The same with a map, if there is one, that follows each row at once or not.
    pub fn with_map_inside(self, inside: bool) -> Sketch {
        Sketch { map: MapSketch { inside, ..self.map }, ..self }
    }

    /// The same with a map that follows each row at once and reads it where it is kept.
    pub fn with_map_kept(self, keep: Keep) -> Sketch {
        Sketch { map: MapSketch { inside: true, keep, ..self.map }, ..self }
    }
}

/// The two folds of a map, each as a fold by itself: that of the elements, and that of what is kept of them in the order of its
/// dimensions.
pub fn folds(spec: &Spec) -> Option<[Spec; 2]> {
    let staged = spec.map.as_ref()?.staged.as_ref()?;
    let of = |reducer: &Reducer, inputs: Vec<DType>, is_first: bool| Spec {
        offsets: vec![0; inputs.len()],
        inputs,
        mask: is_first && spec.mask,
        flagged: is_first && spec.flagged,
        counts: Vec::new(),
        outputs: reducer.results.iter().map(|field| OutputSpec::plain(field.dtype)).collect(),
        reducer: reducer.clone(),
        map: None::<Map>,
        problem: spec.problem.clone(),
    };
    let kept = staged.kept.body.iter().map(|e| e.dtype()).collect();
    Some([of(&staged.first, spec.inputs.clone(), true), of(&staged.second, kept, false)])
}

/// Whether two folds call functions of an element once that one fold and its map call twice.
pub fn saves_functions(spec: &Spec) -> bool {
    let staged = spec.map.as_ref().and_then(|map| map.staged.as_ref());
    staged.is_some_and(|staged| calls_functions(&staged.kept))
}

/// Whether what two folds keep of an element is in memory between them: where it takes longer to compute than to read, as functions
/// do and conversions.
pub fn keeps_elements(spec: &Spec) -> bool {
    let staged = spec.map.as_ref().and_then(|map| map.staged.as_ref());
    let converts = staged.is_some_and(|staged| {
        staged.kept.body.iter().any(|kept| spec.inputs.iter().any(|dtype| *dtype != kept.dtype()))
    });
    converts || saves_functions(spec)
}

/// The stage whose loops over kept dimensions run the rows: that of the map where it follows each row, else that of the
/// finished results.
pub fn root(s: &Schedule, stmt: &Statement, sketch: &Sketch) -> Result<StageId, ScheduleError> {
    match &stmt.map {
        Some(map) if sketch.map.inside => stage_of(s, map),
        Some(_) | None => stage_of(s, &stmt.output),
    }
}

/// Finishes a row at `site`, a loop of the map's stage, and maps it by vectors; nothing where the map is not inside.
pub fn map_row(
    s: &mut Schedule,
    stmt: &Statement,
    site: Option<&Site>,
    sketch: &Sketch,
) -> Result<(), ScheduleError> {
    let (Some(map), true) = (&stmt.map, sketch.map.inside) else { return Ok(()) };
    let (map, finished) = (stage_of(s, map)?, stage_of(s, &stmt.output)?);
    place(s, finished, site)?;
    let Some(inner) = s.stage(map)?.leaves().last().cloned() else { return Ok(()) };
    if sketch.map.lanes > 1 {
        split_vectors(s, map, &inner, sketch.map.lanes)?;
    }
    stream_results(s, map, sketch)
}

/// A nest of its own for the map, if there is one, after all rows.
pub fn map_after(
    s: &mut Schedule,
    stmt: &Statement,
    spec: &Spec,
    sketch: &Sketch,
    machine: Machine,
) -> Result<(), ScheduleError> {
    let Some(map) = &stmt.map else { return Ok(()) };
    let stage = stage_of(s, map)?;
    let mut loops = in_memory_order(s, stage, spec)?;
    if let Some(results) = sketch.map.across {
        let MapSketch { lanes, each, .. } = sketch.map;
        let across =
            Across { lanes, each, shares: Shares::Vectors, overlaps: false, parallel: sketch.whole.parallel };
        return nest_across(s, stage, loops, results, across, machine);
    }
    let Some(inner) = loops.pop() else {
        return match machine {
            Machine::Loops => Ok(()),
            Machine::Threads => {
                let one = s.fuse(stage, &[])?;
                s.bind(stage, &one, ThreadTag::BlockX)
            }
        };
    };
    loops.push(inner.clone());
    s.reorder(stage, &loops)?;
    loops.pop();
    let MapSketch { lanes, joined, each, fused, parts, .. } = sketch.map;
    let mut word = inner;
    if let Some(spread) = &stmt.spread {
        let Some(before) = loops.pop() else { return Ok(()) };
        let (block, row) = s.split(stage, &before, Split::Factor(sketch.map.together))?;
        word = s.fuse(stage, &[row, word])?;
        spread_rows(s, stage_of(s, spread)?, &Site { stage, at: block.clone() }, sketch)?;
        loops.push(block);
    } else if joined && !loops.is_empty() {
        loops.push(word);
        word = s.fuse(stage, &loops)?;
        loops.clear();
    }
    if lanes > 1 {
        // Vectors that threads share begin where the one before them ends.
        word = if machine == Machine::Loops && parts == 1 {
            split_vectors(s, stage, &word, lanes)?.0
        } else {
            let (words, lane) = s.split(stage, &word, Split::Factor(lanes))?;
            s.vectorize(stage, &lane)?;
            words
        };
    }
    match machine {
        Machine::Loops => {
            let mut spread = loops[..fused].to_vec();
            if parts > 1 {
                spread.push(s.split(stage, &word, Split::Nparts(parts))?.0);
            }
            stream_results(s, stage, sketch)?;
            match &spread[..] {
                [] => Ok(()),
                _ if !sketch.whole.parallel => Ok(()),
                [only] => s.parallel(stage, only),
                several => {
                    let all = s.fuse(stage, several)?;
                    s.parallel(stage, &all)
                }
            }
        }
        Machine::Threads => {
            loops.push(word.clone());
            let all = if loops.len() > 1 { s.fuse(stage, &loops)? } else { word };
            let (block, mut thread) = s.split(stage, &all, Split::Factor(BLOCK * each.max(1)))?;
            if each > 1 {
                let (turn, own) = s.split(stage, &thread, Split::Factor(BLOCK))?;
                s.unroll(stage, &turn)?;
                thread = own;
            }
            s.bind(stage, &block, ThreadTag::BlockX)?;
            s.bind(stage, &thread, ThreadTag::ThreadX)
        }
    }
}

/// Brings the results of the rows of a block beside their elements, by the longest vectors that a row has.
fn spread_rows(s: &mut Schedule, spread: StageId, site: &Site, sketch: &Sketch) -> Result<(), ScheduleError> {
    place(s, spread, Some(site))?;
    let Some(inner) = s.stage(spread)?.leaves().last().cloned() else { return Ok(()) };
    let length = inner.length().unwrap_or(1);
    let lanes = floor_pow2(length).min(sketch.map.lanes);
    let vector = if lanes > 1 { Some(split_vectors(s, spread, &inner, lanes)?.0) } else { None };
    vector.map_or(Ok(()), |vector| s.unroll(spread, &vector))
}

/// How results are stored that are neighbours along another dimension than the elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Across {
    /// Elements of a vector of results, and on machines with threads of a word of elements.
    pub lanes: i64,
    /// Words of each thread, on machines with threads; on others, elements whose vectors of results are brought together in registers.
    pub each: i64,
    /// What threads share, on others.
    pub shares: Shares,
    /// Whether the last vector of results begins in the one before it: of what one thread stores.
    pub overlaps: bool,
    /// Whether that is spread over threads.
    pub parallel: bool,
}

/// What threads that run loops share of elements whose results lie across them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shares {
    /// Vectors of results, and blocks of the elements of each: a thread reads on along memory, which suits what is computed of it.
    Vectors,
    /// Strips of a few vectors of results, each with all elements, a block at a time.
    Strips,
    /// Blocks of elements, each with all results: a copy writes on along memory then.
    Blocks,
}

/// The nest of results that are neighbours along one dimension, of elements that are along the innermost: vectors of results, of
/// [`SIDE_BY_SIDE`] elements in turn; or threads of a block along both, a word of elements each.
pub fn nest_across(
    s: &mut Schedule,
    stage: StageId,
    mut loops: Vec<IterVar>,
    results: usize,
    across: Across,
    machine: Machine,
) -> Result<(), ScheduleError> {
    let Some(inner) = loops.pop() else { return Ok(()) };
    let (results, lanes) = (loops.remove(results), across.lanes);
    match machine {
        Machine::Loops => {
            let (block, element) = s.split(stage, &inner, Split::Factor(SIDE_BY_SIDE))?;
            let by = if across.overlaps { Split::Overlap(lanes) } else { Split::Factor(lanes) };
            let mut within = vec![element.clone()];
            if across.each > 1 {
                let (piece, element) = s.split(stage, &element, Split::Factor(across.each))?;
                within = vec![piece, element];
            }
            let lane = match across.shares {
                Shares::Vectors => {
                    let (vector, lane) = s.split(stage, &results, by)?;
                    loops.extend([vector, block]);
                    lane
                }
                Shares::Strips => {
                    let (strip, result) = s.split(stage, &results, Split::Factor(STRIP_VECTORS * lanes))?;
                    let (vector, lane) = s.split(stage, &result, Split::Factor(lanes))?;
                    loops.push(strip);
                    within.splice(0..0, [block, vector]);
                    lane
                }
                Shares::Blocks => {
                    let (vector, lane) = s.split(stage, &results, by)?;
                    loops.push(block);
                    within.insert(0, vector);
                    lane
                }
            };
            s.vectorize(stage, &lane)?;
            let element = within.last().cloned().filter(|_| across.each > 1);
            within.push(lane);
            s.reorder(stage, &[&loops[..], &within[..]].concat())?;
            element.map_or(Ok(()), |element| s.unroll(stage, &element))?;
            if across.parallel {
                let all = s.fuse(stage, &loops)?;
                s.parallel(stage, &all)?;
            }
            Ok(())
        }
        Machine::Threads => {
            let (strip, result) = s.split(stage, &results, Split::Factor(ACROSS))?;
            let each = across.each.max(1);
            let (block, within) = s.split(stage, &inner, Split::Factor(ALONG * lanes * each))?;
            let (mut word, lane) = s.split(stage, &within, Split::Factor(lanes))?;
            loops.extend([strip, block]);
            let mut turns = Vec::new();
            if each > 1 {
                let (turn, own) = s.split(stage, &word, Split::Factor(ALONG))?;
                s.unroll(stage, &turn)?;
                turns.push(turn);
                word = own;
            }
            let own = [word.clone(), result.clone(), lane.clone()];
            s.reorder(stage, &[&loops[..], &turns[..], &own[..]].concat())?;
            if lanes > 1 {
                s.vectorize(stage, &lane)?;
            }
            let all = s.fuse(stage, &loops)?;
            s.bind(stage, &all, ThreadTag::BlockX)?;
            s.bind(stage, &word, ThreadTag::ThreadY)?;
            s.bind(stage, &result, ThreadTag::ThreadX)
        }
    }
}

/// The loops of the map's stage, which stand kept ones first, as their dimensions lie in memory.
fn in_memory_order(s: &Schedule, stage: StageId, spec: &Spec) -> Result<Vec<IterVar>, ScheduleError> {
    let leaves = s.stage(stage)?.leaves();
    let (kept, reduced) = leaves.split_at(spec.n_kept());
    let (mut kept, mut reduced) = (kept.iter(), reduced.iter());
    let dims = spec.problem.dims.iter();
    Ok(dims.filter_map(|d| if d.is_reduced() { reduced.next() } else { kept.next() }).cloned().collect())
}

/// Threads side by side along a row map it as they folded it, each a word of neighbours at a time.
pub fn map_row_by_threads(
    s: &mut Schedule,
    stmt: &Statement,
    row: &IterVar,
    sketch: &Sketch,
) -> Result<(), ScheduleError> {
    let Some(map) = &stmt.map else { return Ok(()) };
    let (map, finished) = (stage_of(s, map)?, stage_of(s, &stmt.output)?);
    s.set_scope(finished, MemScope::Local)?;
    s.compute_at(finished, map, row)?;
    let Some(mut word) = s.stage(map)?.leaves().last().cloned() else { return Ok(()) };
    if sketch.map.lanes > 1 {
        let (words, lane) = s.split(map, &word, Split::Factor(sketch.map.lanes))?;
        s.vectorize(map, &lane)?;
        word = words;
    }
    if sketch.threads > 1 {
        let (_, thread) = s.split(map, &word, Split::Factor(sketch.threads))?;
        s.bind(map, &thread, ThreadTag::ThreadX)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use coulis_ir::DType;
    use coulis_reducers::ReducerRequest;

    use crate::plan::{choose, schedule};
    use crate::strategy::near_rows::tests::{cpu, spec, spec_of};

    #[test]
    fn results_across_the_elements_are_stored_as_vectors_of_their_own_where_lines_would_leave_the_cache() {
        let trace = |shape: &[i64], strides: &[i64], axis: i64| {
            let spec = spec_of("softmax", ReducerRequest::new(&[DType::F32]), (shape, strides), axis);
            let choice = choose(&spec, &cpu()).unwrap();
            let trace =
                schedule(&spec, choice.strategy, &choice.sketch).unwrap().schedule.trace().to_string();
            (trace, choice.sketch.map.across)
        };
        for axis in [0, 1] {
            let (text, across) = trace(&[2048, 2048], &[1, 2048], axis);
            assert_eq!(across, Some(0), "{text}");
            let (along, inner) = if axis == 0 { ("i0", "k0") } else { ("k0", "i0") };
            assert!(text.contains(&format!("s[O].split({along}, factor=8)")), "{text}");
            assert!(text.contains(&format!("s[O].split({inner}, factor=64)")), "{text}");
            assert_eq!(trace(&[2048, 2048], &[2048, 1], axis).1, None, "results lie as elements do");
            assert_eq!(trace(&[128, 256], &[1, 128], axis).1, None, "few results");
        }
        let threads = |shape: &[i64], strides: &[i64], axis: i64| {
            let spec = spec_of("softmax", ReducerRequest::new(&[DType::F32]), (shape, strides), axis);
            choose(&spec, &coulis_ir::Target::cuda("sm_90a").unwrap()).unwrap().sketch.map
        };
        let map = threads(&[2048, 2048], &[1, 2048], 1);
        assert_eq!((map.across, map.inside, map.lanes), (Some(0), false, 4));
        assert_eq!(threads(&[2048, 2048], &[2048, 1], 1).across, None);
        assert_eq!(
            threads(&[64, 64, 3136], &[200_704, 1, 64], 1).across,
            None,
            "short rows, several a block"
        );
        assert_eq!(threads(&[64, 64, 3136], &[200_704, 1, 64], 2).across, Some(1));
        // Channels behind pixels, in the order of which results are: few channels, unless their planes are whole pages apart.
        assert_eq!(trace(&[64, 64, 3136], &[200_704, 1, 64], 1).1, None);
        assert_eq!(trace(&[64, 64, 4096], &[262_144, 1, 64], 1).1, Some(1));
    }

    #[test]
    fn maps_of_rows_shorter_than_a_vector_are_one_piece_of_memory_where_they_are_dear() {
        let block = |name: &str, dtype: DType, shape: &[i64], axis: i64| {
            let spec = spec(name, ReducerRequest::new(&[dtype]), shape, axis);
            let map = choose(&spec, &cpu()).unwrap().sketch.map;
            map.spreads().then_some((map.together, map.lanes))
        };
        assert_eq!(block("softmax", DType::F32, &[100_000, 3], 1), Some((16, 8)), "six vectors");
        assert_eq!(block("softmax", DType::F32, &[100_000, 3], 0), Some((16, 8)));
        assert_eq!(block("softmax", DType::F32, &[100_000, 4], 1), None, "a vector of each row");
        assert_eq!(block("log_softmax", DType::F32, &[100_000, 3], 1), None, "no function");
        assert_eq!(block("log_softmax", DType::BF16, &[100_000, 3], 1), Some((16, 8)), "conversions");
        assert_eq!(block("softmax", DType::BF16, &[100_000, 7], 1), Some((8, 8)), "both");
        assert_eq!(block("softmax", DType::BF16, &[100_000, 8], 1), None, "whole vectors");
        assert_eq!(block("softmax", DType::F32, &[31, 3], 1), None, "fewer than two blocks");
    }
}
