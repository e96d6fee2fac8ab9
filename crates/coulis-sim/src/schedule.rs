//! Who runs when: launches one after the other, blocks or clusters one at a time, warps until they wait or
//! have had their turn.
//!
//! Only one block, or the blocks of one cluster, run at a time, to their end, so a block that waits for a
//! later one never ends (the limit of statements stops it). In the first order blocks and warps go by their
//! numbers; in others they are shuffled, a warp's turn ends after a few statements, and lanes that diverge
//! take the second branch first.

use std::collections::BTreeMap;

use coulis_ir::SyncKind;

use crate::code::{Code, LaunchCode};
use crate::exec::{Interpreter, Stop, barrier_name};
use crate::order::{FIRST_SERIAL, Stamp};
use crate::warp::{State, Warp};

/// Statements after which a warp lets others run in the first order: enough to end, unless it waits for them.
const LONG_TURN: u64 = 1 << 20;

/// Random numbers for other orders (Marsaglia's xorshift).
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Chance {
        Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 32) as usize) % n.max(1)
    }

    fn permutation(&mut self, n: u32) -> Vec<u32> {
        let mut all: Vec<u32> = (0..n).collect();
        for i in (1..all.len()).rev() {
            all.swap(i, self.below(i + 1));
        }
        all
    }
}

/// For a named barrier and a warp: the warpgroup that it was a barrier of, when the warp came last, and at which statement.
type Arrivals = BTreeMap<(u32, u32), (Option<u32>, Stamp, u32)>;

impl<'p, const W: usize> Interpreter<'p, W> {
    /// Runs all launches; without a source of chance, in ascending order.
    pub(crate) fn run(&mut self, mut chance: Option<Chance>) -> Result<(), Stop> {
        let plan = self.plan;
        let mut base = FIRST_SERIAL;
        for (n, launch) in plan.launches.iter().enumerate() {
            let n_blocks: u32 = launch.grid.iter().product();
            let n_threads: u32 = launch.block.iter().product();
            self.detector.launch = n as u32;
            self.detector.base = base;
            self.detector.grid = launch.grid;
            self.detector.cluster = launch.cluster;
            self.detector.block = launch.block;
            self.detector.n_warps = n_threads.div_ceil(W as u32);
            let n_in_cluster: u32 = launch.cluster.iter().product();
            let block_barriers_only = n_in_cluster == 1 && launch.code.has_block_barriers_only();
            self.order.begin_launch(base, block_barriers_only);
            self.counters.launches += 1;
            self.counters.blocks += u64::from(n_blocks);
            self.counters.threads += u64::from(n_blocks) * u64::from(n_threads);
            if n_threads > 0 {
                self.grid(launch, base, n_blocks, n_threads, &mut chance)?;
            }
            base += n_blocks;
        }
        Ok(())
    }

    fn grid(
        &mut self,
        launch: &LaunchCode<W>,
        base: u32,
        n_blocks: u32,
        n_threads: u32,
        chance: &mut Option<Chance>,
    ) -> Result<(), Stop> {
        let lanes = W as u32;
        let code = &launch.code;
        let n_warps = n_threads.div_ceil(lanes);
        let n_in_cluster: u32 = launch.cluster.iter().product();
        let warp = |n: u32| {
            let n_lanes = (n_threads - n % n_warps * lanes).min(lanes);
            Warp::new(n, n / n_warps, n_lanes, code)
        };
        let mut warps: Vec<Warp<W>> = (0..n_warps * n_in_cluster).map(warp).collect();
        for warp in &mut warps {
            for (axis, register) in code.thread_registers.iter().enumerate() {
                if let Some(register) = register {
                    for lane in 0..lanes {
                        let thread = self.detector.thread(warp.n, lane).thread[axis];
                        warp.registers[*register as usize][lane as usize] = u64::from(thread);
                    }
                }
            }
        }
        let n_clusters = n_blocks / n_in_cluster;
        let clusters = chance.as_mut().map(|chance| chance.permutation(n_clusters));
        for i in 0..n_clusters {
            let cluster = clusters.as_ref().map_or(i, |order| order[i as usize]);
            let first = base + cluster * n_in_cluster;
            self.detector.serial = first;
            self.swaps_branches = chance.as_mut().is_some_and(|chance| chance.below(4) > 0);
            self.order.begin_blocks(first, n_in_cluster, n_warps as usize);
            self.remote.begin(n_in_cluster);
            for warp in &mut warps {
                warp.restart();
                let block = self.detector.block_of(first + warp.block as u32);
                let place = std::array::from_fn(|axis| block[axis] % launch.cluster[axis]);
                for (registers, at) in [(&code.block_registers, block), (&code.cluster_registers, place)] {
                    for (register, at) in registers.iter().zip(at) {
                        if let Some(register) = register {
                            warp.registers[*register as usize] = [u64::from(at); W];
                        }
                    }
                }
            }
            self.blocks(code, &mut warps, chance)?;
        }
        Ok(())
    }

    /// Runs the blocks of a cluster, or a block alone.
    fn blocks(
        &mut self,
        code: &Code<W>,
        warps: &mut [Warp<W>],
        chance: &mut Option<Chance>,
    ) -> Result<(), Stop> {
        let mut next = 0;
        let n_blocks = warps.last().map_or(0, |warp| warp.block + 1);
        let mut arrivals: Vec<Arrivals> = vec![Arrivals::new(); n_blocks];
        loop {
            let n_ready = warps.iter().filter(|w| w.state == State::Ready).count();
            if n_ready == 0 {
                if warps.iter().all(|w| w.state == State::Done) {
                    return Ok(());
                }
                self.stuck(warps);
                continue;
            }
            let (skip, turn) = match chance {
                Some(chance) => (chance.below(n_ready), 1 + chance.below(200) as u64),
                None => (0, LONG_TURN),
            };
            // Without chance warps take turns, so that one that waits for another sees it run.
            let ready = (0..warps.len()).map(|i| (next + i) % warps.len());
            let Some(at) = ready.filter(|i| warps[*i].state == State::Ready).nth(skip) else { continue };
            self.run_warp(code, &mut warps[at], turn)?;
            match warps[at].state {
                State::Ready => next = at + 1,
                State::Waiting(kind, stmt) => {
                    self.arrive(&mut arrivals[warps[at].block], warps, (at as u32, kind, stmt));
                    self.release(warps, at, kind);
                    next = at;
                }
                State::Done => {
                    let own = block_of(warps, at);
                    if n_blocks > 1 && warps[own.clone()].iter().all(|w| w.state == State::Done) {
                        self.end_of_block(warps[at].block as u32, own.start as u32..own.end as u32);
                    }
                    next = at;
                }
            }
        }
    }

    /// Records a barrier of the machine that stands for two barriers of the program, where nothing keeps them apart:
    /// it opens when enough threads of either came. Source: PTX ISA, `barrier{.cta}`. Warps of one group wait for
    /// each other at a time; one that was let go before did not wait for this one.
    fn arrive(
        &mut self,
        arrivals: &mut Arrivals,
        warps: &[Warp<W>],
        (warp, kind, stmt): (u32, SyncKind, u32),
    ) {
        let (id, who) = match kind {
            SyncKind::Warpgroup(id) => (id, Some(self.order.in_block(warp) / 4)),
            SyncKind::Named { id, .. } => (id, None),
            SyncKind::Cluster | SyncKind::Cta | SyncKind::Warp => return,
        };
        for ((other_id, other_warp), (other_who, stamp, other)) in arrivals.iter() {
            let was_let_go = || {
                let other = warps.get(*other_warp as usize).map(|w| w.state);
                !matches!(other, Some(State::Waiting(SyncKind::Named { id: at, .. }, _)) if at == id)
            };
            let is_other = *other_who != who || who.is_none() && was_let_go();
            if *other_id == id && is_other && !self.order.ordered(*stamp, warp, 0) {
                self.detector.barrier_of_two(stmt, *other, id, warp, *other_warp);
            }
        }
        arrivals.insert((id, warp), (who, self.order.now(warp).stamp(0), stmt));
    }

    /// Lets a barrier go that the warp `at` was the last to reach.
    fn release(&mut self, warps: &mut [Warp<W>], at: usize, kind: SyncKind) {
        let waits = |w: &Warp<W>| match (w.state, kind) {
            (State::Waiting(SyncKind::Named { id, .. }, _), SyncKind::Named { id: other, .. }) => id == other,
            (State::Waiting(found, _), _) => found == kind,
            _ => false,
        };
        let own = block_of(warps, at);
        let members: Vec<usize> = match kind {
            SyncKind::Cluster => (0..warps.len()).collect(),
            SyncKind::Cta | SyncKind::Warp => own.collect(),
            SyncKind::Warpgroup(_) => {
                let first = own.start + (at - own.start) / 4 * 4;
                if first + 4 > own.end {
                    return;
                }
                (first..first + 4).collect()
            }
            SyncKind::Named { threads, .. } => {
                let here: Vec<usize> = own.filter(|i| waits(&warps[*i])).collect();
                if here.len() * W < threads as usize {
                    return;
                }
                here
            }
        };
        if !members.iter().all(|i| warps.get(*i).is_some_and(waits)) {
            return;
        }
        self.let_go(warps, &members);
    }

    fn let_go(&mut self, warps: &mut [Warp<W>], members: &[usize]) {
        let mut first = None;
        for i in members {
            let State::Waiting(kind, stmt) = warps[*i].state else { continue };
            warps[*i].state = State::Ready;
            match first {
                None => first = Some((*i, stmt)),
                Some((other, first)) if first != stmt => {
                    let (here, away) = ((other as u32, 0), (*i as u32, 0));
                    self.detector.barrier(first, Some(stmt), barrier_name(kind), here, Some(away));
                }
                Some(_) => {}
            }
        }
        self.counters.barriers += members.len() as u64;
        let members: Vec<u32> = members.iter().map(|i| *i as u32).collect();
        self.order.barrier(&members);
    }

    /// No warp can go on: records the barrier that the first waiting warp is at, and lets it go.
    fn stuck(&mut self, warps: &mut [Warp<W>]) {
        let waiting = |w: &Warp<W>| match w.state {
            State::Waiting(kind, stmt) => Some((kind, stmt)),
            State::Ready | State::Done => None,
        };
        let Some((first, (kind, stmt))) = warps.iter().enumerate().find_map(|(i, w)| Some((i, waiting(w)?)))
        else {
            return;
        };
        let own = match kind {
            SyncKind::Cluster => 0..warps.len(),
            SyncKind::Cta | SyncKind::Warp | SyncKind::Warpgroup(_) | SyncKind::Named { .. } => {
                block_of(warps, first)
            }
        };
        let same: Vec<usize> = own.clone().filter(|i| waiting(&warps[*i]) == Some((kind, stmt))).collect();
        let counts = |i: &usize| match kind {
            SyncKind::Warpgroup(_) => (i - own.start) / 4 == (first - own.start) / 4,
            SyncKind::Cluster | SyncKind::Cta | SyncKind::Warp | SyncKind::Named { .. } => true,
        };
        let away = own.clone().filter(counts).find(|i| !same.contains(i));
        let other = away.and_then(|i| waiting(&warps[i])).map(|(_, stmt)| stmt);
        let name = barrier_name(kind);
        self.detector.barrier(stmt, other, name, (first as u32, 0), away.map(|i| (i as u32, 0)));
        self.let_go(warps, &same);
    }
}

/// The warps of the block that a warp is in.
fn block_of<const W: usize>(warps: &[Warp<W>], at: usize) -> std::ops::Range<usize> {
    let block = warps[at].block;
    let first = warps[..at].iter().rposition(|w| w.block != block).map_or(0, |before| before + 1);
    let end = warps[at..].iter().position(|w| w.block != block).map_or(warps.len(), |n| at + n);
    first..end
}
