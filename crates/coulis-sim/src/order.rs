//! Which access happened before which: clocks of warps, and what fences with atomic operations publish.
//!
//! Each warp counts its barriers and fences; an access is stamped with the count. A barrier makes what its
//! warps did before it known to each of them, lanes included. Across blocks, and between warps without a
//! barrier, an atomic update after a fence of the same thread publishes what that thread knew at the fence,
//! and what threads knew at theirs that met it at a barrier in between; a thread whose later update of the
//! same place finds it there knows it too, and barriers pass that on. Nothing else orders accesses: neither
//! shuffles nor votes, and no two lanes of a warp without a barrier between them. The warps of all blocks of
//! a cluster are numbered together here, block after block, and a barrier of the cluster is one of all of
//! them. Source: CUDA C++ Programming Guide, memory fence functions, and warp synchronisation since compute
//! capability 7.0; vector clocks as in FastTrack (Flanagan, Freund 2009).

use std::collections::HashMap;
use std::rc::Rc;

/// Serial numbers below this are not those of blocks.
pub(crate) const FIRST_SERIAL: u32 = 2;
/// The serial number of what the host wrote.
pub(crate) const HOST: u32 = 1;
/// Blocks that are told apart.
pub(crate) const MAX_SERIAL: u32 = (1 << 27) - 1;
/// Barriers and fences of one warp that are told apart.
pub(crate) const MAX_TIME: u32 = (1 << 24) - 1;
/// The lane of an access that several lanes of a warp made.
pub(crate) const MANY: u32 = 64;
/// Lanes from here on say that several warps made the access: this one plus a warp, in addition to the warp
/// of the stamp.
const CROWD: u32 = 96;

/// Who accessed a place, and when: serial number of the block, warp, lane, time of the warp, and whether atomically.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stamp(pub(crate) u64);

impl Stamp {
    pub(crate) const NONE: Stamp = Stamp(0);

    pub(crate) fn new(serial: u32, warp: u32, lane: u32, time: u32) -> Stamp {
        let (serial, warp, lane) = (u64::from(serial), u64::from(warp), u64::from(lane));
        Stamp(serial << 37 | warp << 32 | lane << 25 | u64::from(time) << 1)
    }

    pub(crate) fn host() -> Stamp {
        Stamp::new(HOST, 0, 0, 0)
    }

    /// The same access by another lane.
    #[inline(always)]
    fn with_lane(self, lane: u32) -> Stamp {
        Stamp((self.0 & !(127 << 25)) | u64::from(lane) << 25)
    }

    pub(crate) fn atomic(self) -> Stamp {
        Stamp(self.0 | 1)
    }

    pub(crate) fn is_none(self) -> bool {
        self.0 == 0
    }

    pub(crate) fn serial(self) -> u32 {
        (self.0 >> 37) as u32
    }

    pub(crate) fn warp(self) -> u32 {
        (self.0 >> 32) as u32 & 31
    }

    pub(crate) fn lane(self) -> u32 {
        (self.0 >> 25) as u32 & 127
    }

    pub(crate) fn time(self) -> u32 {
        (self.0 >> 1) as u32 & MAX_TIME
    }

    /// Reads of a place by two warps or more; `time` counts barriers of the block.
    fn crowd(serial: u32, warps: (u32, u32), time: u32) -> Stamp {
        Stamp::new(serial, warps.0, CROWD + warps.1, time)
    }

    /// Whether several warps made the access.
    pub(crate) fn is_crowd(self) -> bool {
        self.lane() >= CROWD
    }

    /// Of an access that several warps made, that of one of them that is not `warp`; any other as it is.
    pub(crate) fn by_other_than(self, warp: u32) -> Stamp {
        if !self.is_crowd() {
            return self;
        }
        let other = if self.warp() == warp { self.lane() - CROWD } else { self.warp() };
        Stamp::new(self.serial(), other, MANY, self.time())
    }

    pub(crate) fn is_atomic(self) -> bool {
        self.0 & 1 == 1
    }
}

/// A place in memory: region, element, and the block for memory of a block.
pub(crate) type Spot = (u32, u64, u32);

/// How many updates of which logs a thread has found.
type Known = Vec<(u32, u32)>;

fn learn(known: &mut Known, log: u32, upto: u32) {
    match known.iter_mut().find(|(other, _)| *other == log) {
        Some((_, old)) => *old = (*old).max(upto),
        None => known.push((log, upto)),
    }
}

/// What a thread knew at a fence.
#[derive(Clone)]
struct Fence {
    time: u32,
    synced: u32,
    seen: Rc<[u32]>,
    known: Rc<Known>,
}

/// Fences by warp and lane.
type Fences = HashMap<(u32, u32), Fence>;

/// An atomic update that published what its thread knew at a fence, and what threads of its block knew at theirs that
/// met it at a barrier since.
struct Release {
    at: u32,
    warp: u32,
    lane: u32,
    fence: Option<Fence>,
    met: Rc<Fences>,
}

/// The publishing updates of one place, in the order in which they happened.
#[derive(Default)]
struct Log {
    n: u32,
    releases: Vec<Release>,
    by_serial: HashMap<u32, Vec<u32>>,
    /// What all releases so far knew of other logs.
    passed_on: Known,
}

/// Order of the accesses of a cluster of blocks, or a block alone, and of those of a launch.
#[derive(Default)]
pub(crate) struct Order {
    /// Serial number of the first block that runs now.
    serial: u32,
    /// Blocks that run now: those of one cluster, whose serial numbers follow one another.
    n_blocks: u32,
    /// Warps of a block.
    n_warps: u32,
    launch_base: u32,
    /// Whether barriers of the whole block and of warps are all that orders accesses in this launch.
    has_block_barriers_only: bool,
    /// Barriers of the block so far.
    epoch: u32,
    now: Vec<u32>,
    synced: Vec<u32>,
    /// For each warp, the time up to which it knows each warp.
    seen: Vec<u32>,
    fences: Fences,
    /// Whether there are fences that no barrier has passed on.
    has_new_fences: bool,
    /// For each warp, the fences that barriers passed on to it.
    met: Vec<Rc<Fences>>,
    known: Vec<Known>,
    lane_known: Vec<(u32, u32, u32, u32)>,
    logs: Vec<Log>,
    log_of: HashMap<Spot, u32>,
}

/// A warp at one time.
pub(crate) struct Now<'o> {
    pub(crate) order: &'o Order,
    /// Its number.
    warp: u32,
    /// The stamp of accesses by several of its lanes.
    pub(crate) many: Stamp,
    synced: u32,
    seen: &'o [u32],
}

impl Now<'_> {
    /// The stamp of a lane's access.
    #[inline(always)]
    pub(crate) fn stamp(&self, lane: u32) -> Stamp {
        self.many.with_lane(lane)
    }

    /// Whether a barrier alone orders an access of one warp before what any lane does now. Where it does not, something
    /// else may ([`Order::ordered`]).
    #[inline(always)]
    pub(crate) fn is_after_barrier(&self, before: Stamp) -> bool {
        let Some(warp) = self.order.number(before) else {
            return before.serial() < self.order.launch_base;
        };
        let known = match warp == self.warp {
            true => self.synced,
            false => self.seen.get(warp as usize).copied().unwrap_or(0),
        };
        before.time() < known
    }
}

impl Order {
    /// Begins a launch whose blocks have serial numbers from `base`; everything before it is known.
    pub(crate) fn begin_launch(&mut self, base: u32, has_block_barriers_only: bool) {
        self.launch_base = base;
        self.has_block_barriers_only = has_block_barriers_only;
        self.logs.clear();
        self.log_of.clear();
    }

    /// Begins the blocks of a cluster, with `n_warps` warps in each.
    pub(crate) fn begin_blocks(&mut self, serial: u32, n_blocks: u32, n_warps: usize) {
        self.serial = serial;
        self.n_blocks = n_blocks;
        self.n_warps = n_warps as u32;
        let n_warps = n_warps * n_blocks as usize;
        self.epoch = 1;
        self.now.clear();
        self.now.resize(n_warps, 1);
        self.synced.clear();
        self.synced.resize(n_warps, 0);
        self.seen.clear();
        self.seen.resize(n_warps * n_warps, 0);
        self.fences.clear();
        self.has_new_fences = false;
        self.met.clear();
        self.met.resize_with(n_warps, Rc::default);
        self.known.iter_mut().for_each(Vec::clear);
        self.known.resize_with(n_warps, Vec::new);
        self.lane_known.clear();
    }

    /// Serial number of the first block that runs now.
    #[inline(always)]
    pub(crate) fn first(&self) -> u32 {
        self.serial
    }

    /// Whether the block runs now.
    #[inline(always)]
    pub(crate) fn is_running(&self, serial: u32) -> bool {
        serial.wrapping_sub(self.serial) < self.n_blocks
    }

    /// The number among the warps that run now of the one that made an access.
    #[inline(always)]
    fn number(&self, stamp: Stamp) -> Option<u32> {
        let block = stamp.serial().wrapping_sub(self.serial);
        (block < self.n_blocks).then(|| block * self.n_warps + stamp.warp())
    }

    /// Serial number of the first block of the cluster that a block of this launch is in.
    fn first_of(&self, serial: u32) -> u32 {
        serial - serial.saturating_sub(self.launch_base) % self.n_blocks.max(1)
    }

    /// A stamp of a warp.
    #[inline(always)]
    fn stamp(&self, warp: u32, lane: u32, time: u32) -> Stamp {
        match self.n_blocks {
            1 => Stamp::new(self.serial, warp, lane, time),
            _ => Stamp::new(self.serial + warp / self.n_warps, warp % self.n_warps, lane, time),
        }
    }

    /// The number in its block of a warp.
    #[inline(always)]
    pub(crate) fn in_block(&self, warp: u32) -> u32 {
        if self.n_blocks == 1 { warp } else { warp % self.n_warps }
    }

    /// Whether a warp, at the time of its last barrier, knew of what another one did until `time`.
    pub(crate) fn knows(&self, warp: u32, other: u32, time: u32) -> bool {
        time < self.seen[warp as usize * self.now.len() + other as usize]
    }

    /// The time of a warp.
    pub(crate) fn time(&self, warp: u32) -> u32 {
        self.now[warp as usize]
    }

    pub(crate) fn launch_base(&self) -> u32 {
        self.launch_base
    }

    /// What every access of a warp is compared with until its next barrier or fence.
    #[inline]
    pub(crate) fn now(&self, warp: u32) -> Now<'_> {
        let (w, n) = (warp as usize, self.now.len());
        Now {
            order: self,
            warp,
            many: self.stamp(warp, MANY, self.now[w]),
            synced: self.synced[w],
            seen: &self.seen[w * n..][..n],
        }
    }

    /// Two reads of different warps, not ordered, as one, where barriers of the block are all that can order them
    /// before anything else.
    pub(crate) fn crowd(&self, old: Stamp, new: Stamp) -> Option<Stamp> {
        let is_one = self.has_block_barriers_only && old.serial() == new.serial();
        is_one.then(|| Stamp::crowd(self.serial, (old.warp(), new.warp()), self.epoch))
    }

    /// Whether that is an access of several warps since the block's last barrier.
    #[inline]
    pub(crate) fn is_crowd_of_now(&self, stamp: Stamp) -> bool {
        stamp.is_crowd() && stamp.serial() == self.serial && stamp.time() == self.epoch
    }

    /// Whether a warp's count is at its end.
    pub(crate) fn is_full(&self, warp: u32) -> bool {
        self.now[warp as usize] >= MAX_TIME
    }

    /// All lanes of these warps met a barrier.
    pub(crate) fn barrier(&mut self, warps: &[u32]) {
        let n = self.now.len();
        self.epoch += 1;
        for warp in warps {
            self.warp_barrier(*warp);
        }
        let mut joined = vec![0; n];
        let mut known = Known::new();
        for &warp in warps {
            for (to, from) in joined.iter_mut().zip(&self.seen[warp as usize * n..][..n]) {
                *to = (*to).max(*from);
            }
            joined[warp as usize] = self.now[warp as usize];
            self.known[warp as usize].iter().for_each(|(log, upto)| learn(&mut known, *log, *upto));
        }
        for &warp in warps {
            self.seen[warp as usize * n..][..n].copy_from_slice(&joined);
            self.known[warp as usize].clone_from(&known);
        }
        if self.has_new_fences {
            self.pass_on_fences(warps);
        }
    }

    /// What threads of these warps fenced, they know of each other now.
    fn pass_on_fences(&mut self, warps: &[u32]) {
        let mut all = Fences::new();
        for warp in warps {
            all.extend(self.met[*warp as usize].iter().map(|(who, fence)| (*who, fence.clone())));
        }
        let own = self.fences.iter().filter(|((warp, _), _)| warps.contains(warp));
        all.extend(own.map(|(who, fence)| (*who, fence.clone())));
        self.has_new_fences = warps.len() < self.now.len();
        let all = Rc::new(all);
        for warp in warps {
            self.met[*warp as usize] = all.clone();
        }
    }

    /// The lanes of a warp met a barrier of their own.
    pub(crate) fn warp_barrier(&mut self, warp: u32) {
        let w = warp as usize;
        self.now[w] += 1;
        self.synced[w] = self.now[w];
        if !self.lane_known.is_empty() {
            for (_, _, log, upto) in self.lane_known.iter().filter(|(other, ..)| *other == warp) {
                learn(&mut self.known[w], *log, *upto);
            }
            self.lane_known.retain(|(other, ..)| *other != warp);
        }
    }

    /// These lanes executed a fence.
    pub(crate) fn fence(&mut self, warp: u32, lanes: u64) {
        let (w, n) = (warp as usize, self.now.len());
        self.now[w] += 1;
        let seen: Rc<[u32]> = self.seen[w * n..][..n].into();
        for lane in each(lanes) {
            let mut known = self.known[w].clone();
            for (other, l, log, upto) in &self.lane_known {
                if (*other, *l) == (warp, lane) {
                    learn(&mut known, *log, *upto);
                }
            }
            let (time, synced) = (self.now[w], self.synced[w]);
            let fence = Fence { time, synced, seen: seen.clone(), known: Rc::new(known) };
            self.fences.insert((warp, lane), fence);
        }
        self.has_new_fences = true;
    }

    /// A lane updated a place atomically: it publishes what it knew at its last fence, and learns what is there.
    pub(crate) fn update(&mut self, spot: Spot, warp: u32, lane: u32) {
        let (fence, met) = (self.fences.get(&(warp, lane)), &self.met[warp as usize]);
        let publishes = fence.is_some() || !met.is_empty();
        let id = match (self.log_of.get(&spot), publishes) {
            (Some(id), _) => *id,
            (None, false) => return,
            (None, true) => {
                let id = self.logs.len() as u32;
                self.logs.push(Log::default());
                self.log_of.insert(spot, id);
                id
            }
        };
        let log = &mut self.logs[id as usize];
        if publishes {
            for fence in fence.into_iter().chain(met.values()) {
                fence.known.iter().for_each(|(other, upto)| learn(&mut log.passed_on, *other, *upto));
            }
            log.by_serial.entry(self.serial).or_default().push(log.releases.len() as u32);
            log.releases.push(Release { at: log.n, warp, lane, fence: fence.cloned(), met: met.clone() });
        }
        log.n += 1;
        let upto = log.n;
        match self.lane_known.iter_mut().find(|(w, l, log, _)| (*w, *l, *log) == (warp, lane, id)) {
            Some((.., old)) => *old = upto,
            None => self.lane_known.push((warp, lane, id, upto)),
        }
    }

    /// Whether `before` is ordered before what this lane does now.
    #[inline]
    pub(crate) fn ordered(&self, before: Stamp, warp: u32, lane: u32) -> bool {
        let serial = before.serial();
        if serial < self.launch_base {
            return true;
        }
        let w = warp as usize;
        if let Some(other) = self.number(before) {
            let plain = if before.is_crowd() {
                before.time() < self.epoch
            } else if other == warp {
                before.lane() == lane || before.time() < self.synced[w]
            } else {
                before.time() < self.seen[w * self.now.len() + other as usize]
            };
            if plain {
                return true;
            }
        }
        !self.logs.is_empty() && self.published(before, warp, lane)
    }

    /// Whether an atomic update at this place is known, since all updates of the place are.
    pub(crate) fn knows_updates(&self, spot: Spot, warp: u32, lane: u32) -> bool {
        let Some(id) = self.log_of.get(&spot) else { return false };
        let n = self.logs[*id as usize].n;
        self.known_logs(warp, lane).iter().any(|(log, upto)| log == id && *upto >= n)
    }

    fn known_logs(&self, warp: u32, lane: u32) -> Known {
        let mut known = self.known[warp as usize].clone();
        for (w, l, log, upto) in &self.lane_known {
            if (*w, *l) == (warp, lane) {
                learn(&mut known, *log, *upto);
            }
        }
        known
    }

    /// Whether a publishing update that this lane knows, directly or through others, was after `before`.
    fn published(&self, before: Stamp, warp: u32, lane: u32) -> bool {
        let mut open = self.known_logs(warp, lane);
        let mut next = 0;
        while let Some(&(id, upto)) = open.get(next) {
            next += 1;
            let log = &self.logs[id as usize];
            let first = self.first_of(before.serial());
            let own = log.by_serial.get(&first).map_or(&[][..], Vec::as_slice);
            let releases = own.iter().map(|at| &log.releases[*at as usize]);
            let writer = ((before.serial() - first) * self.n_warps + before.warp(), before.lane());
            let time = before.time();
            if releases.take_while(|release| release.at < upto).any(|release| covers(release, writer, time)) {
                return true;
            }
            if log.releases.last().is_some_and(|release| release.at < upto) {
                for (other, upto) in &log.passed_on {
                    if !open.iter().any(|(log, old)| log == other && old >= upto) {
                        open.push((*other, *upto));
                    }
                }
            }
        }
        false
    }
}

/// Whether what a release publishes includes an access by a warp and lane of the same cluster.
fn covers(release: &Release, writer: (u32, u32), at: u32) -> bool {
    let own = release.fence.as_ref().map(|fence| ((release.warp, release.lane), fence));
    // Most often the thread itself fenced; looking at everybody's fences comes last.
    own.is_some_and(|(who, fence)| is_before(writer, at, who, fence))
        || release.met.get(&writer).is_some_and(|fence| is_before(writer, at, writer, fence))
        || release.met.iter().any(|(who, fence)| is_before(writer, at, *who, fence))
}

/// Whether a thread knew of an access of its cluster at a fence.
fn is_before(writer: (u32, u32), at: u32, (warp, lane): (u32, u32), fence: &Fence) -> bool {
    if writer.0 != warp {
        return fence.seen.get(writer.0 as usize).is_some_and(|seen| at < *seen);
    }
    at < fence.synced || (writer.1 == lane && at < fence.time)
}

/// The lanes of a mask, ascending.
#[inline(always)]
pub(crate) fn each(mut mask: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        if mask == 0 {
            return None;
        }
        let lane = mask.trailing_zeros();
        mask &= mask - 1;
        Some(lane)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_warps() -> Order {
        let mut order = Order::default();
        order.begin_launch(FIRST_SERIAL, false);
        order.begin_blocks(FIRST_SERIAL, 1, 2);
        order
    }

    #[test]
    fn a_barrier_orders_warps_and_lanes_and_nothing_else_does() {
        let mut order = two_warps();
        let first = order.now(0).stamp(3);
        assert!(order.ordered(first, 0, 3) && !order.ordered(first, 0, 4) && !order.ordered(first, 1, 3));
        order.warp_barrier(0);
        assert!(order.ordered(first, 0, 4) && !order.ordered(first, 1, 3));
        order.barrier(&[0, 1]);
        assert!(order.ordered(first, 1, 3));
        let second = order.now(0).stamp(3);
        assert!(!order.ordered(second, 1, 3) && !order.ordered(second, 0, 4));
    }

    #[test]
    fn a_fence_before_an_atomic_update_publishes_to_later_blocks() {
        let publishes = |fenced: bool| {
            let mut order = two_warps();
            let write = order.now(0).stamp(0);
            if fenced {
                order.fence(0, 1);
            }
            let late = order.now(0).stamp(0);
            order.update((7, 0, 0), 0, 0);
            order.begin_blocks(FIRST_SERIAL + 1, 1, 2);
            assert!(!order.ordered(write, 0, 0));
            order.fence(0, 1);
            order.update((7, 0, 0), 0, 0);
            let direct = order.ordered(write, 0, 0);
            assert!(!order.ordered(write, 1, 5), "only the lane that asked knows");
            assert!(!order.ordered(late, 0, 0), "a write after the fence is not published");
            order.barrier(&[0, 1]);
            assert_eq!(order.ordered(write, 1, 5), direct);
            direct
        };
        assert!(publishes(true));
        assert!(!publishes(false));
    }

    #[test]
    fn a_stamp_gives_back_its_parts() {
        let stamp = Stamp::new(MAX_SERIAL, 31, MANY, MAX_TIME).atomic();
        assert_eq!(
            (stamp.serial(), stamp.warp(), stamp.lane(), stamp.time()),
            (MAX_SERIAL, 31, MANY, MAX_TIME)
        );
        assert!(stamp.is_atomic() && !stamp.is_none());
    }
}
