//! Rows of columns, several of which may be walked as one, and whose elements may be reduced neighbours.

use coulis_schedule::{Schedule, ScheduleError, Split, StageId};

use super::access::{MEMORY_LINE_BYTES, WORD_BYTES};
use super::gpu_steps::{Fold, split_turns, widest_access};
use super::steps::same_axis;
use super::{Decline, Facts, Sketch, ceil_div, gcd, state_bytes};
use crate::constants::Constants;

/// Fewest rows that are several joined.
const FEWEST: i64 = 16;
/// The part of the input's bytes that the partial states of rows that are joined take at most.
const PARTIAL: i64 = 64;
/// The same where accesses would be of less than a word otherwise, and of reduced neighbours.
const PARTIAL_OF_WORDS: i64 = 16;
/// The same of reduced neighbours that would be read by accesses of less than a word.
const PARTIAL_OF_ELEMENTS: i64 = 8;
/// The same where they are whole lines.
const PARTIAL_OF_LINES: i64 = 128;
/// Bytes of a state that is light: bringing many of them together at the end costs less than lines that are read by two blocks.
pub const LIGHT_STATE: i64 = 12;
/// Bytes of input from which on there are threads enough, and a second launch costs less than blocks that wait.
pub const LARGE: i64 = 96 << 20;
/// Most strips of a row whose chunks take rows in turn.
pub const MOST_BESIDE: i64 = 2;
/// Most bytes of reduced neighbours: longer ones are enough for a warp.
const BESIDE_BYTES: i64 = 128;
/// How many times as far apart as they are long reduced neighbours lie, at most, so that little else is read.
const FARTHEST: i64 = 4;

/// What lies side by side in memory, and is folded column by column.
pub struct Row {
    /// Columns.
    pub extent: i64,
    /// Reduced neighbours that are columns by themselves; 1 is none.
    pub beside: i64,
    /// Dimensions of it.
    n_inner: usize,
    /// Whether it has no gaps.
    is_dense: bool,
}

impl Row {
    /// The innermost dimension, where that is kept.
    pub fn kept(facts: &Facts) -> Option<Row> {
        let (extent, _, false) = facts.inner()? else { return None };
        Some(Row { extent, beside: 1, n_inner: 1, is_dense: true })
    }

    /// The innermost dimension, where it is reduced, with the kept one around it.
    pub fn with_reduced(facts: &Facts) -> Result<Row, Decline> {
        let spec = facts.spec;
        let dims = &spec.problem.dims;
        let wanted = "few reduced neighbours within a kept dimension, and a reduced one around both";
        let [outer @ .., kept, inner] = &dims[..] else {
            return Err(Decline::new(wanted, "fewer dimensions"));
        };
        let is_around = outer.iter().any(|dim| dim.is_reduced());
        if !inner.is_reduced() || kept.is_reduced() || !is_around || inner.extent < 2 {
            return Err(Decline::new(wanted, "others"));
        }
        let beside = inner.extent;
        let widest = spec.widest_bytes();
        if beside.saturating_mul(widest) > BESIDE_BYTES {
            return Err(Decline::new(
                format!("at most {BESIDE_BYTES} bytes of reduced neighbours"),
                beside.saturating_mul(widest),
            ));
        }
        let mut arrays = 0..spec.n_read();
        let is_near =
            |a: usize| inner.strides[a] == 1 && (beside..=FARTHEST * beside).contains(&kept.strides[a]);
        if !arrays.clone().all(is_near) {
            return Err(Decline::new("neighbours near those of the next output", "others"));
        }
        // Pieces that are read element by element are slow however they are folded.
        let is_word = facts.word_lanes(&facts.constants(false)) * widest >= WORD_BYTES;
        let part = if is_word { PARTIAL_OF_WORDS } else { PARTIAL_OF_ELEMENTS };
        let partial =
            spec.problem.n_outputs.saturating_mul(beside).saturating_mul(state_bytes(&spec.reducer));
        if partial > facts.input_bytes() / part {
            return Err(Decline::new("many elements for each partial state", "fewer"));
        }
        let is_dense = arrays.all(|a| kept.strides[a] == beside);
        Ok(Row { extent: kept.extent.saturating_mul(beside), beside, n_inner: 2, is_dense })
    }

    /// Neighbours that one access takes in any row.
    pub fn word_lanes(&self, facts: &Facts, constant: &Constants) -> i64 {
        let of = match self.is_dense {
            true => (self.n_inner, self.extent),
            false => (1, self.beside),
        };
        facts.word_lanes_in(facts.spec.n_read(), constant, of)
    }

    /// Lanes of an access, and how many rows are walked as one, where rows lie one after another and one alone is no whole number
    /// of accesses: as many as are whole accesses, or whole lines where states are light and rows are several strips; `None` where
    /// that does not help.
    pub fn joined(&self, facts: &Facts, constant: &Constants, most_lanes: i64) -> Option<(i64, i64)> {
        let spec = facts.spec;
        let dims = &spec.problem.dims;
        let (outer, inner) = dims.split_at(dims.len() - self.n_inner);
        let (rows, outermost) = outer.split_last().filter(|(rows, _)| rows.is_reduced())?;
        let arrays = 0..spec.n_read();
        let chained = |a: usize| {
            let is_last = inner.last().is_some_and(|last| last.strides[a] == 1);
            self.is_dense && is_last && rows.strides[a] == self.extent && spec.offset(a) == 0
        };
        if !arrays.clone().all(chained) {
            return None;
        }
        let widest = spec.widest_bytes();
        let most = widest_access(facts).min(most_lanes);
        let begins = |lanes: i64| {
            arrays.clone().all(|a| {
                (0..outermost.len()).all(|d| constant.stride(dims, a, d).is_some_and(|s| s % lanes == 0))
            })
        };
        let state = state_bytes(&spec.reducer);
        let enough = |joined: i64, part: i64| {
            let partial = spec.problem.n_outputs.saturating_mul(self.beside * joined).saturating_mul(state);
            rows.extent / joined >= FEWEST && partial <= facts.input_bytes() / part
        };
        let suits = |lanes: i64, part: i64| enough(lanes / gcd(self.extent, lanes), part) && begins(lanes);
        let halves =
            || std::iter::successors(Some(most), |lanes| Some(lanes / 2)).take_while(|lanes| *lanes > 1);
        let is_word = |lanes: &i64| lanes * widest >= WORD_BYTES;
        let in_words = || halves().filter(is_word).find(|lanes| suits(*lanes, PARTIAL_OF_WORDS));
        let lanes = halves().find(|lanes| suits(*lanes, PARTIAL));
        let lanes = lanes.filter(is_word).or_else(in_words).or(lanes)?;
        let joined = lanes / gcd(self.extent, lanes);
        if joined == 1 {
            return None;
        }
        // Strips of whole lines begin where lines do, so that no line is read by two blocks; rows of few strips are read
        // nearly as one piece anyway.
        let line = MEMORY_LINE_BYTES / widest;
        let of_lines = line / gcd(self.extent, line);
        let strips = ceil_div(self.extent * joined / lanes, 2 * i64::from(facts.target.warp));
        let is_light = facts.input_bytes() >= LARGE && state <= LIGHT_STATE;
        let by_lines = strips > MOST_BESIDE && is_light && enough(of_lines, PARTIAL_OF_LINES) && begins(line);
        Some((lanes, if by_lines { of_lines } else { joined }))
    }
}

/// Splits the reduce loops of a state whose rows are walked as one, or have reduced neighbours: threads take every so many rows, in
/// chunks. The stages that are left to fold what lies side by side, each of those of the next one, and the fold of what threads
/// share, whose last data loop is a whole row.
pub fn split_joined(
    s: &mut Schedule,
    state: StageId,
    n_kept: usize,
    sketch: &Sketch,
) -> Result<(Vec<StageId>, Fold), ScheduleError> {
    let mut reduce = s.stage(state)?.reduce_axes().to_vec();
    let neighbour = if sketch.beside > 1 { reduce.pop() } else { None };
    let (outer, innermost) = reduce.split_at(reduce.len() - 1);
    let (mut long, mut row) = (innermost[0].clone(), None);
    if sketch.joined > 1 {
        let (rows, of_rows) = s.split(state, &long, Split::Factor(sketch.joined))?;
        (long, row) = (rows, Some(of_rows));
    }
    let mut turns = outer.to_vec();
    if sketch.chunks.shares_all {
        turns.push(long);
        long = s.fuse(state, &turns)?;
        turns.clear();
    }
    let (mut turn, thread) = s.split(state, &long, Split::Factor(sketch.threads))?;
    if !turns.is_empty() {
        turns.push(turn);
        turn = s.fuse(state, &turns)?;
    }
    let (chunk, turn) = split_turns(s, state, &turn, sketch)?;
    let mut stage = s.rfactor_at(state, &chunk, 0)?;
    let mut folded = Vec::new();
    // The chunk is before the kept dimensions, rows that are joined before the last of them and neighbours behind it.
    for (axis, at) in [(row, n_kept), (neighbour, n_kept + 1)] {
        let Some(axis) = axis else { continue };
        let axis = same_axis(s, stage, &axis)?;
        folded.push(stage);
        stage = s.rfactor_at(stage, &axis, (at + folded.len() - 1) as i64)?;
    }
    while s.stage(stage)?.axes().len() > n_kept + 1 {
        let dims = s.stage(stage)?.axes().to_vec();
        s.join(stage, &dims[n_kept], &dims[n_kept + 1])?;
    }
    let (turn, thread) = (same_axis(s, stage, &turn)?, same_axis(s, stage, &thread)?);
    Ok((folded, Fold { stage, n_kept: n_kept + 1, turn, thread, lane: None, ends: None }))
}
