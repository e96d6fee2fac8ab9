//! Plans beside the planner's: which decisions of a strategy a search may change, and to what.
//!
//! A search changes what the planner decided and leaves what it derived from the problem: which accesses are
//! aligned, which extents are written into the kernel. So a change that was found for one shape is a plan of
//! every shape that the same strategy takes, or is refused here; that it computes the same is the schedule
//! primitives' matter.

use coulis_ir::Target;

use crate::strategy::{Ahead, Chunks, Keep, MOST_CHUNKS, Machine, Run, Sketch, Tile};

/// A decision that may be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Knob {
    /// Steps of the runs of a quick step; 1 is no runs.
    Run,
    /// Vectors or accesses side by side.
    Unroll,
    /// Parts that the reduced elements are folded in.
    Chunks,
    /// Threads that fold one output together.
    Threads,
    /// Outputs that one block folds.
    Rows,
    /// Kept elements that are folded together.
    Tile,
    /// Iterations by which memory is asked for ahead.
    Ahead,
    /// The same of the loop around the rows of an output.
    RowsAhead,
    /// Bytes by which rows with ends are asked for ahead.
    BytesAhead,
}

/// Decisions that are not the planner's, by knob, ascending; each knob at most once.
pub type Changes = Vec<(Knob, i64)>;

impl Knob {
    /// Every knob, in the order in which a search turns them.
    pub const ALL: [Knob; 9] = [
        Knob::Chunks,
        Knob::Unroll,
        Knob::Threads,
        Knob::Rows,
        Knob::Tile,
        Knob::Run,
        Knob::Ahead,
        Knob::RowsAhead,
        Knob::BytesAhead,
    ];

    /// Its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Knob::Run => "run",
            Knob::Unroll => "unroll",
            Knob::Chunks => "chunks",
            Knob::Threads => "threads",
            Knob::Rows => "rows",
            Knob::Tile => "tile",
            Knob::Ahead => "ahead",
            Knob::RowsAhead => "rows_ahead",
            Knob::BytesAhead => "bytes_ahead",
        }
    }

    /// The knob of that name.
    pub fn named(name: &str) -> Option<Knob> {
        Knob::ALL.into_iter().find(|knob| knob.name() == name)
    }

    fn field(self, sketch: &mut Sketch) -> &mut i64 {
        match self {
            Knob::Run => &mut sketch.run.steps,
            Knob::Unroll => &mut sketch.unroll,
            Knob::Chunks => &mut sketch.chunks.n,
            Knob::Threads => &mut sketch.threads,
            Knob::Rows => &mut sketch.rows,
            Knob::Tile => &mut sketch.tile.width,
            Knob::Ahead => &mut sketch.ahead.steps,
            Knob::RowsAhead => &mut sketch.ahead.rows,
            Knob::BytesAhead => &mut sketch.ahead.bytes,
        }
    }

    /// Values worth a try beside the one that a sketch has, the nearest first. Some are no plans: [`changed`] says so.
    pub fn values(self, sketch: &Sketch) -> Vec<i64> {
        let now = *self.field(&mut sketch.clone());
        let around = |values: &[i64]| values.iter().copied().filter(|v| *v != now).collect::<Vec<i64>>();
        match self {
            // Longer runs would be no runs of the reducer's step.
            Knob::Run if now > 1 => vec![1],
            Knob::Run => Vec::new(),
            Knob::Unroll => around(&[2 * now, now / 2, 4 * now]),
            Knob::Chunks if now > 1 => around(&[2 * now, now / 2, 4 * now, now / 4, 1]),
            Knob::Chunks => vec![2, 4, 8, 16],
            Knob::Threads | Knob::Tile if now > 1 => around(&[2 * now, now / 2, 4 * now]),
            Knob::Threads | Knob::Tile => Vec::new(),
            Knob::Rows => around(&[2 * now, now / 2, 4 * now]),
            Knob::Ahead | Knob::RowsAhead | Knob::BytesAhead if now > 0 => {
                around(&[0, 2 * now, now / 2, 4 * now])
            }
            Knob::Ahead | Knob::RowsAhead | Knob::BytesAhead => Vec::new(),
        }
    }
}

/// Most copies of a loop's body.
const MOST_COPIES: i64 = 64;

/// The planner's decisions with changes; `None` where that is no plan for the target.
pub fn changed(target: &Target, proposed: &Sketch, changes: &[(Knob, i64)]) -> Option<Sketch> {
    let mut sketch = proposed.clone();
    for &(knob, value) in changes {
        *knob.field(&mut sketch) = value;
    }
    if sketch.chunks.n != proposed.chunks.n && sketch.map.keep != Keep::Nothing {
        // The parts of a row that is kept are of the blocks of a cluster; what one block keeps is not cut.
        if proposed.chunks.n == 1 || sketch.chunks.n > i64::from(target.cluster_blocks) {
            return None;
        }
    } else {
        // A row that is folded in parts has no loop in which a map could follow it.
        sketch.map.inside &= sketch.chunks.n == proposed.chunks.n;
    }
    // Tiles that are folded together are whole rows, and not in parts.
    if sketch.chunks.n != proposed.chunks.n || sketch.tile.width != proposed.tile.width {
        sketch.tile.together = 1;
    }
    // Chunks are whole steps of what they were planned for.
    let of_steps = |sketch: &Sketch| [sketch.chunks.n, sketch.unroll, sketch.threads];
    if of_steps(&sketch) != of_steps(proposed) {
        sketch.chunks.turns = 0;
        sketch.chunks.cuts_inner &= Machine::of(target) == Machine::Loops;
    }
    // Nor does one whose ends are folded apart end in another launch, and what is kept of a row for its second fold is not cut.
    if (sketch.peeled || sketch.first.is_some()) && sketch.chunks.n != proposed.chunks.n {
        return None;
    }
    let Sketch {
        lanes,
        unroll,
        ahead: Ahead { steps, near: _, rows: rows_ahead, bytes },
        run: Run { steps: run, chains: _, asks_first: _, is_all: _ },
        tile: Tile { width: tile, together: _, written_out: _, overlaps: _ },
        chunks:
            Chunks { n: chunks, turns: _, shares_all: _, in_turn: _, of_pieces: _, swept: _, cuts_inner: _ },
        threads,
        rows,
        pages: _,
        by_halves: _,
        early_exit: _,
        head: _,
        last: _,
        whole: _,
        peeled: _,
        resident: _,
        joined: _,
        beside: _,
        map: _,
        copies: _,
        of_rows: _,
        first: _,
        constant: _,
    } = &sketch;
    let positive = [*unroll, *run, *tile, *chunks, *threads, *rows].iter().all(|value| *value >= 1);
    let at_most = *unroll <= MOST_COPIES && *chunks <= MOST_CHUNKS;
    // A run is as long as the planner found right, or none; on the CPU steps that are unrolled are whole runs.
    let whole_runs = Machine::of(target) == Machine::Threads || *unroll == proposed.unroll;
    let of_runs = *run == 1 || (*run == proposed.run.steps && whole_runs);
    let of_tiles = *tile == proposed.tile.width || tile % lanes == 0;
    let in_block = match Machine::of(target) {
        Machine::Loops => *threads == proposed.threads && *rows == proposed.rows,
        Machine::Threads => {
            let side_by_side = (tile / lanes).max(1).saturating_mul(*rows);
            side_by_side.saturating_mul(*threads) <= i64::from(target.block.threads)
        }
    };
    let is_plan = positive
        && at_most
        && of_runs
        && of_tiles
        && in_block
        && [*steps, *rows_ahead, *bytes].iter().all(|n| *n >= 0);
    is_plan.then_some(sketch)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::constants::Constants;
    use crate::strategy::{MapSketch, Pages, WholeCall};
    use coulis_ir::{BlockLimits, TargetKind};

    fn target(kind: TargetKind) -> Target {
        let threads = if kind == TargetKind::Cpu { 0 } else { 1024 };
        Target {
            kind,
            arch: "x".to_owned(),
            warp: if kind == TargetKind::Cpu { 1 } else { 32 },
            register_bytes: 1024,
            block: BlockLimits { threads, ..BlockLimits::default() },
            ..Target::cpu(16, 1 << 16)
        }
    }

    fn sketch() -> Sketch {
        Sketch {
            lanes: 4,
            unroll: 4,
            pages: Pages { apart: 4, of_each: 1 },
            whole: WholeCall { parallel: true, ..WholeCall::SMALL },
            threads: 256,
            ..Sketch::neutral(Constants { extents: vec![true], strides: false })
        }
    }

    #[test]
    fn every_knob_has_a_name_of_its_own_that_finds_it() {
        for knob in Knob::ALL {
            assert_eq!(Knob::named(knob.name()), Some(knob));
        }
        assert_eq!(Knob::named("lanes"), None, "which accesses are aligned is no decision");
    }

    #[test]
    fn a_knob_offers_other_values_than_it_has() {
        for run in [1, 16] {
            let ahead = Ahead { steps: 2, ..Ahead::NONE };
            let (run, chunks, tile) = (Run::of(run), Chunks::of(8), Tile::of(128));
            let sketch = Sketch { run, chunks, tile, ahead, ..sketch() };
            for knob in Knob::ALL {
                let now = *knob.field(&mut sketch.clone());
                assert!(knob.values(&sketch).iter().all(|value| *value != now), "{knob:?}");
            }
        }
    }

    #[test]
    fn what_is_no_plan_is_refused() {
        let gpu = target(TargetKind::Cuda);
        let with = |sketch: &Sketch, changes: &[(Knob, i64)]| changed(&gpu, sketch, changes).is_some();
        assert!(with(&sketch(), &[(Knob::Unroll, 8), (Knob::Threads, 512)]));
        assert!(with(&sketch(), &[(Knob::Rows, 4)]));
        assert!(!with(&sketch(), &[(Knob::Rows, 8)]), "2048 threads");
        assert!(!with(&sketch(), &[(Knob::Unroll, 0)]));
        assert!(!with(&sketch(), &[(Knob::Chunks, MOST_CHUNKS + 1)]));
        let kept = |chunks: i64| {
            let map = MapSketch { inside: true, keep: Keep::Shared, ..MapSketch::default() };
            Sketch { chunks: Chunks::of(chunks), map, ..sketch() }
        };
        let clusters = Target { cluster_blocks: 8, ..target(TargetKind::Cuda) };
        let dealt = |of: &Target, from: i64, to: i64| changed(of, &kept(from), &[(Knob::Chunks, to)]);
        assert!(dealt(&clusters, 2, 8).is_some_and(|sketch| sketch.map.inside));
        assert!(dealt(&clusters, 2, 16).is_none(), "more blocks than a cluster has");
        assert!(dealt(&gpu, 2, 4).is_none(), "no clusters");
        assert!(dealt(&clusters, 1, 2).is_none(), "a row of one block");
        let in_runs = Sketch { run: Run::of(16), ..sketch() };
        assert!(with(&in_runs, &[(Knob::Unroll, 8)]));
        assert!(!with(&in_runs, &[(Knob::Run, 8)]));
        assert!(with(&in_runs, &[(Knob::Run, 1), (Knob::Unroll, 8)]));
        let tiled = Sketch { tile: Tile::of(128), threads: 8, ..sketch() };
        assert!(with(&tiled, &[(Knob::Tile, 256)]) && !with(&tiled, &[(Knob::Tile, 130)]));
        let cpu = target(TargetKind::Cpu);
        assert!(changed(&cpu, &sketch(), &[(Knob::Unroll, 2)]).is_some());
        assert!(changed(&cpu, &in_runs, &[(Knob::Unroll, 8)]).is_none());
        assert!(changed(&cpu, &sketch(), &[(Knob::Threads, 2)]).is_none());
    }

    #[test]
    fn rows_that_are_kept_for_a_second_fold_are_not_cut() {
        let cpu = target(TargetKind::Cpu);
        let two = Sketch { first: Some(Box::new(sketch())), ..sketch() };
        assert!(changed(&cpu, &two, &[(Knob::Chunks, 2)]).is_none());
        assert!(changed(&cpu, &two, &[(Knob::Unroll, 2)]).is_some());
        assert!(changed(&cpu, &sketch(), &[(Knob::Chunks, 2)]).is_some());
    }
}
