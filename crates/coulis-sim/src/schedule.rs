//! Who runs when: launches one after the other, blocks one at a time, warps until they wait or have had their turn.
//!
//! Only one block runs at a time, to its end, so a block that waits for a later one never ends (the limit of
//! statements stops it). In the first order blocks and warps go by their numbers; in others they are shuffled, a
//! warp's turn ends after a few statements, and lanes that diverge take the second branch first.

use std::collections::BTreeMap;

use coulis_ir::SyncKind;

use crate::code::{Code, LaunchCode};
use crate::exec::{Machine, Stop, barrier_name};
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

impl<'p, const W: usize> Machine<'p, W> {
    /// Runs all launches; without a source of chance, in ascending order.
    pub(crate) fn run(&mut self, mut chance: Option<Chance>) -> Result<(), Stop> {
        let plan = self.plan;
        let mut base = FIRST_SERIAL;
        for (n, launch) in plan.launches.iter().enumerate() {
            let n_blocks: u32 = launch.grid.iter().product();
            let n_threads: u32 = launch.block.iter().product();
            self.court.launch = n as u32;
            self.court.base = base;
            self.court.grid = launch.grid;
            self.court.block = launch.block;
            self.order.begin_launch(base, launch.code.has_block_barriers_only());
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
        let mut warps: Vec<Warp<W>> = (0..n_threads.div_ceil(lanes))
            .map(|n| Warp::new(n, (n_threads - n * lanes).min(lanes), code))
            .collect();
        for warp in &mut warps {
            for (axis, register) in code.thread_registers.iter().enumerate() {
                if let Some(register) = register {
                    for lane in 0..lanes {
                        let thread = self.court.thread(warp.n, lane).thread[axis];
                        warp.registers[*register as usize][lane as usize] = u64::from(thread);
                    }
                }
            }
        }
        let blocks = chance.as_mut().map(|chance| chance.permutation(n_blocks));
        for i in 0..n_blocks {
            let block = blocks.as_ref().map_or(i, |order| order[i as usize]);
            self.court.serial = base + block;
            self.swaps_branches = chance.as_mut().is_some_and(|chance| chance.below(4) > 0);
            self.order.begin_block(base + block, warps.len());
            let [x, y, _] = launch.grid;
            let at = [block % x, block / x % y, block / (x * y)];
            for warp in &mut warps {
                warp.restart();
                for (register, at) in code.block_registers.iter().zip(at) {
                    if let Some(register) = register {
                        warp.registers[*register as usize] = [u64::from(at); W];
                    }
                }
            }
            self.block(code, &mut warps, chance)?;
        }
        Ok(())
    }

    fn block(
        &mut self,
        code: &Code<W>,
        warps: &mut [Warp<W>],
        chance: &mut Option<Chance>,
    ) -> Result<(), Stop> {
        let mut next = 0;
        let mut arrivals = Arrivals::new();
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
                    self.arrive(&mut arrivals, at as u32, kind, stmt);
                    self.release(warps, at, kind);
                    next = at;
                }
                State::Done => next = at,
            }
        }
    }

    /// Accuses a barrier of the machine that stands for two barriers of the program, where nothing keeps them apart: it opens when
    /// enough threads of either came. Source: PTX ISA, `barrier{.cta}`.
    fn arrive(&mut self, arrivals: &mut Arrivals, warp: u32, kind: SyncKind, stmt: u32) {
        let (id, who) = match kind {
            SyncKind::Warpgroup(id) => (id, Some(warp / 4)),
            SyncKind::Named { id, .. } => (id, None),
            SyncKind::Cta | SyncKind::Warp => return,
        };
        for ((other_id, other_warp), (other_who, stamp, other)) in arrivals.iter() {
            if *other_id == id && *other_who != who && !self.order.ordered(*stamp, warp, 0) {
                self.court.barrier_of_two(stmt, *other, id, warp, *other_warp);
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
        let members: Vec<usize> = match kind {
            SyncKind::Cta | SyncKind::Warp => (0..warps.len()).collect(),
            SyncKind::Warpgroup(_) => (at / 4 * 4..at / 4 * 4 + 4).collect(),
            SyncKind::Named { threads, .. } => {
                let here: Vec<usize> = (0..warps.len()).filter(|i| waits(&warps[*i])).collect();
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
                    self.court.barrier(first, Some(stmt), barrier_name(kind), here, Some(away));
                }
                Some(_) => {}
            }
        }
        self.counters.barriers += members.len() as u64;
        let members: Vec<u32> = members.iter().map(|i| *i as u32).collect();
        self.order.barrier(&members);
    }

    /// No warp can go on: accuses the barrier that the first waiting warp is at, and lets it go.
    fn stuck(&mut self, warps: &mut [Warp<W>]) {
        let waiting = |w: &Warp<W>| match w.state {
            State::Waiting(kind, stmt) => Some((kind, stmt)),
            State::Ready | State::Done => None,
        };
        let Some((first, (kind, stmt))) = warps.iter().enumerate().find_map(|(i, w)| Some((i, waiting(w)?)))
        else {
            return;
        };
        let same: Vec<usize> =
            (0..warps.len()).filter(|i| waiting(&warps[*i]) == Some((kind, stmt))).collect();
        let counts = |i: &usize| match kind {
            SyncKind::Warpgroup(_) => i / 4 == first / 4,
            SyncKind::Cta | SyncKind::Warp | SyncKind::Named { .. } => true,
        };
        let away = (0..warps.len()).filter(counts).find(|i| !same.contains(i));
        let other = away.and_then(|i| waiting(&warps[i])).map(|(_, stmt)| stmt);
        let name = barrier_name(kind);
        self.court.barrier(stmt, other, name, (first as u32, 0), away.map(|i| (i as u32, 0)));
        self.let_go(warps, &same);
    }
}
