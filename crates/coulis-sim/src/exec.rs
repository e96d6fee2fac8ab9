//! The interpreter: runs one warp until it waits, ends, or has had its turn.

mod access;
mod atoms;
mod cluster;

use std::sync::atomic::{AtomicBool, Ordering};

use coulis_ir::SyncKind;

use crate::code::{Code, Instr, Operand, Plan};
use crate::detector::Detector;
use crate::error::SimError;
use crate::lanes::{F1, decode, encode, select};
use crate::memory::Region;
use crate::order::Order;
use crate::report::Counters;
use crate::shadow::Who;
use crate::violation::ViolationKind;
use crate::warp::{Frame, State, Warp};

/// A kernel in execution, in one order.
pub(crate) struct Interpreter<'p, const W: usize> {
    pub(crate) plan: &'p Plan<'p, W>,
    pub(crate) regions: Vec<Region>,
    pub(crate) detector: Detector<'p>,
    pub(crate) order: Order,
    pub(crate) counters: Counters,
    /// Statements that threads may still execute.
    pub(crate) steps_left: u64,
    /// Set where whoever called for the run wants it to stop.
    interrupt: &'static AtomicBool,
    /// Whether the second of two branches goes first.
    pub(crate) swaps_branches: bool,
    /// What blocks of the cluster read of one another.
    pub(crate) remote: cluster::Remote,
    /// Conversions of each region's elements.
    codecs: Vec<(F1<W>, F1<W>)>,
    /// Byte addresses of the accesses of an instruction.
    addresses: Vec<u64>,
}

/// Why a warp stopped for good.
pub(crate) enum Stop {
    /// The limit of statements was reached at this one.
    Steps(u32),
    /// The caller wants it.
    Interrupted,
    /// More barriers and fences than a warp tells apart.
    Barriers,
    /// Something else.
    Error(SimError),
}

impl From<SimError> for Stop {
    fn from(error: SimError) -> Stop {
        Stop::Error(error)
    }
}

impl<'p, const W: usize> Interpreter<'p, W> {
    pub(crate) fn new(
        plan: &'p Plan<'p, W>,
        regions: Vec<Region>,
        detector: Detector<'p>,
        steps: u64,
    ) -> Interpreter<'p, W> {
        let codec = |info: &crate::code::RegionInfo| (decode::<W>(info.dtype), encode::<W>(info.dtype));
        Interpreter {
            plan,
            codecs: plan.regions.iter().map(codec).collect(),
            regions,
            detector,
            order: Order::default(),
            counters: Counters::default(),
            steps_left: steps,
            interrupt: coulis_ir::interrupt::flag(),
            swaps_branches: false,
            remote: cluster::Remote::default(),
            addresses: Vec::new(),
        }
    }

    fn count(&mut self, warp: &Warp<W>) -> Result<(), Stop> {
        let n = u64::from(warp.active.count_ones());
        self.counters.thread_statements += n;
        self.counters.warp_statements += 1;
        self.steps_left = self.steps_left.checked_sub(n).ok_or(Stop::Steps(warp.stmt))?;
        if self.interrupt.load(Ordering::Relaxed) { Err(Stop::Interrupted) } else { Ok(()) }
    }

    /// Reports lanes whose value is decided by nothing.
    fn defined(&mut self, warp: &Warp<W>, a: Operand, what: &str) {
        let lanes = warp.undefined_in(a) & warp.active;
        if lanes != 0 {
            let who = Who { warp: warp.n, lane: lanes.trailing_zeros(), stmt: warp.stmt };
            let thread = self.detector.thread(who.warp, who.lane);
            self.detector.lane(ViolationKind::Undefined, who, 0, || {
                format!("{what} of {thread} comes from a lane that did not take part in the shuffle")
            });
        }
    }

    /// Runs a warp for at most `turn` statements.
    pub(crate) fn run_warp(&mut self, code: &Code<W>, warp: &mut Warp<W>, mut turn: u64) -> Result<(), Stop> {
        while let Some(instr) = code.instrs.get(warp.pc) {
            warp.pc += 1;
            match *instr {
                Instr::Stmt(stmt) => {
                    if turn == 0 {
                        warp.pc -= 1;
                        return Ok(());
                    }
                    turn -= 1;
                    warp.stmt = stmt;
                    self.count(warp)?;
                }
                Instr::Map2 { f, d, a, b } => {
                    let value = f(warp.value(code, a), warp.value(code, b));
                    let undefined = warp.undefined_in(a) | warp.undefined_in(b);
                    warp.registers[d as usize] = value;
                    warp.undefined[d as usize] = undefined;
                }
                Instr::Map1 { f, d, a } => {
                    let value = f(warp.value(code, a));
                    warp.undefined[d as usize] = warp.undefined_in(a);
                    warp.registers[d as usize] = value;
                }
                Instr::Map3 { f, d, a, b, c } => {
                    let value = f(warp.value(code, a), warp.value(code, b), warp.value(code, c));
                    let undefined = warp.undefined_in(a) | warp.undefined_in(b) | warp.undefined_in(c);
                    warp.registers[d as usize] = value;
                    warp.undefined[d as usize] = undefined;
                }
                Instr::Select { d, cond, a, b } => {
                    let value = select(warp.value(code, cond), warp.value(code, a), warp.value(code, b));
                    let (yes, no) = (warp.undefined_in(a), warp.undefined_in(b));
                    let mut undefined = warp.undefined_in(cond);
                    if yes | no != 0 {
                        let taken = warp.holds(code, cond);
                        undefined |= (yes & taken) | (no & !taken);
                    }
                    warp.registers[d as usize] = value;
                    warp.undefined[d as usize] = undefined;
                }
                Instr::Copy { d, a } => {
                    let value = *warp.value(code, a);
                    warp.undefined[d as usize] = warp.undefined_in(a);
                    warp.registers[d as usize] = value;
                }
                Instr::Merge { d, a } => {
                    let value = *warp.value(code, a);
                    let undefined = warp.undefined_in(a);
                    let (active, d) = (warp.active, d as usize);
                    merge(&mut warp.registers[d], &value, active);
                    warp.undefined[d] = (warp.undefined[d] & !active) | (undefined & active);
                }
                Instr::Taint { d, by } => {
                    let undefined = warp.undefined_in(by) & warp.active;
                    warp.undefined[d as usize] |= undefined;
                }
                Instr::Divisor { b } => self.check_divisor(code, warp, b),
                Instr::Written { array, slot, taken } => {
                    let missing = warp.active & !warp.written[slot as usize];
                    let missing = if missing == 0 { 0 } else { missing & warp.holds(code, taken) };
                    if missing != 0 {
                        self.read_unwritten_slot(code, warp, array, slot, missing);
                    }
                }
                Instr::LoadLocal { d, array, at, taken } => {
                    self.load_local(code, warp, d, array, (at, taken))
                }
                Instr::StoreSlot { slot, a } => {
                    let value = *warp.value(code, a);
                    let undefined = warp.undefined_in(a);
                    let (active, slot) = (warp.active, slot as usize);
                    merge(&mut warp.slots[slot], &value, active);
                    warp.written[slot] |= active;
                    warp.slots_undefined[slot] =
                        (warp.slots_undefined[slot] & !active) | (undefined & active);
                }
                Instr::StoreLocal { array, at, a } => self.store_local(code, warp, array, at, a),
                Instr::Forget { array } => {
                    let array = &code.arrays[array as usize];
                    let keep = !warp.active;
                    let slots = array.first as usize..(array.first + array.len) as usize;
                    warp.written[slots].iter_mut().for_each(|mask| *mask &= keep);
                }
                Instr::Load { d, region, at, taken } => self.load(code, warp, d, region, (at, taken)),
                Instr::Store { region, at, from } => self.store(code, warp, region, at, from),
                Instr::If { cond, reports, otherwise, end } => {
                    if reports {
                        self.defined(warp, cond, "the condition");
                    }
                    self.branch(code, warp, (cond, otherwise, end));
                }
                Instr::EndBranch { end } => {
                    if let Some(Frame::Branch { all, waiting, at }) = warp.frames.pop() {
                        if waiting != 0 {
                            warp.frames.push(Frame::Branch { all, waiting: 0, at });
                            warp.active = waiting;
                            warp.pc = at as usize;
                        } else {
                            warp.active = all;
                            warp.pc = end as usize;
                        }
                    }
                }
                Instr::EnterLoop { i, min } => {
                    self.defined(warp, min, "the first value of a loop");
                    let value = *warp.value(code, min);
                    warp.registers[i as usize] = value;
                    warp.undefined[i as usize] = 0;
                    warp.frames.push(Frame::Loop { all: warp.active });
                }
                Instr::TestLoop { i, end, exit, stmt } => {
                    self.defined(warp, end, "the number of turns");
                    let (first, last) = (warp.registers[i as usize], warp.value(code, end));
                    let mut stays = 0;
                    for lane in 0..W {
                        stays |= u64::from((first[lane] as i64) < last[lane] as i64) << lane;
                    }
                    warp.active &= stays;
                    if warp.active != 0 {
                        warp.stmt = stmt;
                        self.count(warp)?;
                    } else if let Some(Frame::Loop { all }) = warp.frames.pop() {
                        warp.active = all;
                        warp.pc = exit as usize;
                    }
                }
                Instr::NextLoop { i, top } => {
                    warp.registers[i as usize].iter_mut().for_each(|v| *v = v.wrapping_add(1));
                    warp.pc = top as usize;
                    if turn == 0 {
                        return Ok(());
                    }
                }
                Instr::Sync(kind) => {
                    if self.sync(warp, kind)? {
                        return Ok(());
                    }
                }
                Instr::Shuffle { shift, d, mask, value, lane, width, size, active } => {
                    let from = atoms::From { value, lane, width, size };
                    self.shuffle(code, warp, shift, d, (mask, active), from);
                }
                Instr::Vote { vote, d, mask, pred, active } => {
                    self.vote(code, warp, vote, d, (mask, active), pred)
                }
                Instr::Redux { fold, d, mask, value, active } => {
                    self.redux(code, warp, fold, d, (mask, active), value);
                }
                Instr::ActiveMask { d } => {
                    warp.asked_diverged = warp.active != warp.full;
                    warp.registers[d as usize] = [warp.active; W];
                    warp.undefined[d as usize] = 0;
                }
                Instr::Atomic { ref update, d, region, at, a, b } => {
                    self.atomic(code, warp, update, d, (region, at), (a, b));
                }
                Instr::ClusterLoad { d, region, at, block } => {
                    self.cluster_load(code, warp, d, region, (at, block));
                }
                Instr::Fence => {
                    self.counters.fences += 1;
                    self.order.fence(warp.n, warp.active);
                    if self.order.is_full(warp.n) {
                        return Err(Stop::Barriers);
                    }
                }
                Instr::End => break,
            }
        }
        warp.state = State::Done;
        Ok(())
    }

    fn branch(&mut self, code: &Code<W>, warp: &mut Warp<W>, (cond, otherwise, end): (Operand, u32, u32)) {
        let all = warp.active;
        let (yes, no) = (warp.holds(code, cond), all & !warp.holds(code, cond));
        let then = warp.pc as u32;
        // A branch without an else waits for nobody.
        let no = if otherwise == end { 0 } else { no };
        let (active, pc, waiting, at) = match (yes, no) {
            (0, 0) => {
                warp.pc = end as usize;
                return;
            }
            (0, no) => (no, otherwise, 0, 0),
            (yes, 0) => (yes, then, 0, 0),
            (yes, no) if self.swaps_branches => (no, otherwise, yes, then),
            (yes, no) => (yes, then, no, otherwise),
        };
        warp.frames.push(Frame::Branch { all, waiting, at });
        warp.active = active;
        warp.pc = pc as usize;
    }

    /// A barrier; the answer is whether the warp waits.
    fn sync(&mut self, warp: &mut Warp<W>, kind: SyncKind) -> Result<bool, Stop> {
        if self.order.is_full(warp.n) {
            return Err(Stop::Barriers);
        }
        if warp.active != warp.full {
            let here = (warp.n, warp.active.trailing_zeros());
            let away = (warp.n, (warp.full & !warp.active).trailing_zeros());
            self.detector.barrier(warp.stmt, None, barrier_name(kind), here, Some(away));
            return Ok(false);
        }
        if kind == SyncKind::Warp {
            self.counters.warp_barriers += 1;
            self.order.warp_barrier(warp.n);
            return Ok(false);
        }
        if let SyncKind::Named { id, threads } = kind
            && (threads == 0 || !threads.is_multiple_of(W as u32))
        {
            let who = Who { warp: warp.n, lane: 0, stmt: warp.stmt };
            let thread = self.detector.thread(who.warp, who.lane);
            self.detector.lane(ViolationKind::BarrierCount, who, 0, || {
                format!("{thread} waits at barrier {id} for {threads} threads; a barrier waits for whole warps, {W} \
                     threads or a multiple")
            });
        }
        warp.state = State::Waiting(kind, warp.stmt);
        Ok(true)
    }

    fn check_divisor(&mut self, code: &Code<W>, warp: &Warp<W>, b: Operand) {
        let zero = warp.active & !warp.holds(code, b);
        if zero != 0 {
            let who = Who { warp: warp.n, lane: zero.trailing_zeros(), stmt: warp.stmt };
            let thread = self.detector.thread(who.warp, who.lane);
            self.detector.lane(ViolationKind::DivisionByZero, who, 0, || {
                format!("{thread} divides an integer by zero")
            });
        }
    }
}

/// The kind of a barrier in messages.
pub(crate) fn barrier_name(kind: SyncKind) -> &'static str {
    match kind {
        SyncKind::Cluster => "cluster",
        SyncKind::Cta => "cta",
        SyncKind::Warp => "warp",
        SyncKind::Warpgroup(_) => "warpgroup",
        SyncKind::Named { .. } => "named",
    }
}

/// Copies the lanes of a mask.
#[inline(always)]
fn merge<const W: usize>(to: &mut [u64; W], from: &[u64; W], mask: u64) {
    for lane in 0..W {
        to[lane] = if mask >> lane & 1 == 1 { from[lane] } else { to[lane] };
    }
}
