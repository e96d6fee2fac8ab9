//! Where violations are written down: who a lane is, and how a fault is described.

use crate::code::RegionInfo;
use crate::order::{MANY, Stamp};
use crate::shadow::{Conflict, Finding, Who};
use crate::violation::{Thread, ViolationKind, Violations};

/// What is found during one order of a kernel, and where in the launch things are now.
pub(crate) struct Detector<'p> {
    pub(crate) violations: Violations,
    pub(crate) infos: &'p [RegionInfo],
    pub(crate) launch: u32,
    /// Serial number of the launch's first block.
    pub(crate) base: u32,
    /// Serial number of the first block that runs now.
    pub(crate) serial: u32,
    /// Warps of a block.
    pub(crate) n_warps: u32,
    pub(crate) grid: [u32; 3],
    pub(crate) cluster: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) lanes: u32,
}

/// The digits of a number, x first.
fn spread(n: u32, [x, y, _]: [u32; 3]) -> [u32; 3] {
    [n % x.max(1), n / x.max(1) % y.max(1), n / (x.max(1) * y.max(1))]
}

/// Numbers that keep violations about local memory apart from those about regions.
const LOCAL: u32 = 1 << 20;

impl Detector<'_> {
    /// The thread of a lane of one of the warps that run now.
    pub(crate) fn thread(&self, warp: u32, lane: u32) -> Thread {
        let n_warps = self.n_warps.max(1);
        self.thread_of(self.serial_of(warp), warp % n_warps, lane)
    }

    /// The serial number of a warp's block.
    fn serial_of(&self, warp: u32) -> u32 {
        self.serial + warp / self.n_warps.max(1)
    }

    /// The position in the grid of a block: clusters follow one another, and in each its blocks.
    pub(crate) fn block_of(&self, serial: u32) -> [u32; 3] {
        let size = self.cluster.iter().product::<u32>().max(1);
        let nth = serial.saturating_sub(self.base);
        let clusters = std::array::from_fn(|axis| self.grid[axis] / self.cluster[axis].max(1));
        let (cluster, place) = (spread(nth / size, clusters), spread(nth % size, self.cluster));
        std::array::from_fn(|axis| cluster[axis] * self.cluster[axis] + place[axis])
    }

    fn thread_of(&self, serial: u32, warp: u32, lane: u32) -> Thread {
        let lane = if lane == MANY { 0 } else { lane };
        Thread {
            launch: self.launch,
            block: self.block_of(serial),
            thread: spread(warp * self.lanes + lane, self.block),
            lane,
        }
    }

    fn element(&self, region: u32, at: usize) -> i64 {
        let info = &self.infos[region as usize];
        let at = if info.copies > 1 { at % info.len.max(1) } else { at };
        at as i64 - info.before
    }

    /// A fault of one lane.
    pub(crate) fn lane(
        &mut self,
        kind: ViolationKind,
        who: Who,
        about: u32,
        message: impl FnOnce() -> String,
    ) {
        let thread = self.thread(who.warp, who.lane);
        self.violations.record(kind, (who.stmt, None), about, || (vec![thread], message()));
    }

    pub(crate) fn out_of_bounds(&mut self, who: Who, region: u32, index: i64) {
        let info = &self.infos[region as usize];
        let (first, last) = (-info.before, info.len as i64 - info.before - 1);
        let thread = self.thread(who.warp, who.lane);
        self.violations.record(ViolationKind::OutOfBounds, (who.stmt, None), region, || {
            let name = &info.name;
            let text = if info.len == 0 {
                format!("{thread} accesses element {index} of `{name}`, which has none")
            } else if (first..=last).contains(&index) {
                format!(
                    "{thread} accesses element {index} of `{name}`, which is in a gap that its strides leave"
                )
            } else {
                format!("{thread} accesses element {index} of `{name}`, whose elements are {first} to {last}")
            };
            (vec![thread], text)
        });
    }

    pub(crate) fn local_out_of_bounds(&mut self, who: Who, array: u32, name: &str, len: u32, index: i64) {
        let thread = self.thread(who.warp, who.lane);
        self.violations.record(ViolationKind::OutOfBounds, (who.stmt, None), LOCAL + array, || {
            let text = format!("{thread} accesses element {index} of `{name}`, which has {len}");
            (vec![thread], text)
        });
    }

    pub(crate) fn local_unwritten(&mut self, who: Who, array: u32, name: &str, index: i64) {
        let thread = self.thread(who.warp, who.lane);
        self.violations.record(ViolationKind::Unwritten, (who.stmt, None), LOCAL + array, || {
            (vec![thread], format!("{thread} reads element {index} of `{name}`, which it has not written"))
        });
    }

    pub(crate) fn unwritten(&mut self, who: Who, region: u32, at: usize) {
        let (thread, index) = (self.thread(who.warp, who.lane), self.element(region, at));
        let name = &self.infos[region as usize].name;
        self.violations.record(ViolationKind::Unwritten, (who.stmt, None), region, || {
            (vec![thread], format!("{thread} reads element {index} of `{name}`, which nothing has written"))
        });
    }

    /// What a look at the shadow memory found.
    pub(crate) fn finding(&mut self, finding: Finding, who: Who, region: u32, at: usize, is_write: bool) {
        match finding {
            Finding::Fine => {}
            Finding::Unwritten => self.unwritten(who, region, at),
            Finding::Race(conflict) => self.race(conflict, who, region, at, is_write),
        }
    }

    fn race(&mut self, conflict: Conflict, who: Who, region: u32, at: usize, is_write: bool) {
        let Conflict { stamp, stmt, was_write } = conflict;
        let of_block = self.infos[region as usize].is_shared();
        let kind = if stamp.serial() != self.serial_of(who.warp) {
            if of_block { ViolationKind::ClusterRace } else { ViolationKind::BlockRace }
        } else if stamp.warp() != who.warp % self.n_warps.max(1) {
            ViolationKind::WarpRace
        } else {
            ViolationKind::LaneRace
        };
        let threads = [self.thread(who.warp, who.lane), self.other(stamp)];
        let index = self.element(region, at);
        let name = &self.infos[region as usize].name;
        self.violations.record(kind, (who.stmt, Some(stmt)), region, || {
            let [me, other] = threads;
            let verb = |write: bool| if write { "writes" } else { "reads" };
            let what = match kind {
                ViolationKind::BlockRace => "no fence with an atomic operation orders them",
                ViolationKind::ClusterRace => "no barrier of the cluster orders them",
                _ => "no barrier orders them",
            };
            let (first, second) = (verb(was_write), verb(is_write));
            let text = format!("{other} {first} and {me} {second} element {index} of `{name}`, and {what}");
            (threads.to_vec(), text)
        });
    }

    fn other(&self, stamp: Stamp) -> Thread {
        self.thread_of(stamp.serial(), stamp.warp(), stamp.lane())
    }

    /// A read of the shared memory of a block that is not in the cluster.
    pub(crate) fn no_such_block(&mut self, who: Who, region: u32, block: i64) {
        let n_blocks: u32 = self.cluster.iter().product();
        let thread = self.thread(who.warp, who.lane);
        self.lane(ViolationKind::OutOfBounds, who, region, || {
            format!("{thread} reads memory of block {block} of its cluster, which has {n_blocks}")
        });
    }

    /// A read of the shared memory of a block that may have ended.
    pub(crate) fn ended_block(&mut self, who: Who, region: u32, block: u32) {
        let (thread, owner) = (self.thread(who.warp, who.lane), self.block_of(self.serial + block));
        let name = &self.infos[region as usize].name;
        let text = format!(
            "{thread} reads `{name}` of block {owner:?}, and no barrier of the cluster keeps that block from ending before"
        );
        self.lane(ViolationKind::EndedBlock, who, region, || text);
    }

    /// A named barrier at which warps wait that are not to wait for each other.
    pub(crate) fn barrier_of_two(&mut self, stmt: u32, other: u32, id: u32, here: u32, there: u32) {
        let threads = vec![self.thread(here, 0), self.thread(there, 0)];
        self.violations.record(ViolationKind::BarrierOfTwo, (stmt, Some(other)), 0, || {
            let text = format!(
                "{} and {} of another group both use barrier {id}, which opens when enough threads of either came",
                threads[0], threads[1]
            );
            (threads, text)
        });
    }

    /// A barrier of `name` that `here` reached and `missing` did not.
    pub(crate) fn barrier(
        &mut self,
        stmt: u32,
        other: Option<u32>,
        name: &str,
        here: (u32, u32),
        missing: Option<(u32, u32)>,
    ) {
        let mut threads = vec![self.thread(here.0, here.1)];
        threads.extend(missing.map(|(warp, lane)| self.thread(warp, lane)));
        self.violations.record(ViolationKind::Barrier, (stmt, other), 0, || {
            let here = threads[0];
            let text = match (threads.get(1), other) {
                (Some(away), Some(_)) => {
                    format!("{here} waits at a {name} barrier, and {away} at another barrier")
                }
                (Some(away), None) => format!("{here} waits at a {name} barrier that {away} does not reach"),
                (None, _) => format!("{here} waits at a {name} barrier for more threads than the block has"),
            };
            (threads, text)
        });
    }
}
