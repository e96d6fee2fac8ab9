//! Shuffles, votes and atomic updates of all active lanes.

use super::Interpreter;
use crate::code::{Code, Operand, Shift, Update, Vote};
use crate::lanes::{F2, one};
use crate::order::each;
use crate::shadow::{Finding, Who};
use crate::violation::ViolationKind;
use crate::warp::Warp;

/// Operands of a shuffle in addition to the mask.
pub(super) struct From {
    pub(super) value: Operand,
    pub(super) lane: Operand,
    pub(super) width: Operand,
    pub(super) size: Operand,
}

impl<const W: usize> Interpreter<'_, W> {
    /// Looks at the masks of a shuffle or vote, and gives for each lane the lanes that take part with it.
    fn partners(&mut self, code: &Code<W>, warp: &Warp<W>, (mask, from_active): (Operand, bool)) -> [u64; W] {
        self.defined(warp, mask, "the mask");
        let masks = warp.value(code, mask);
        let (stmt, active) = (warp.stmt, warp.active);
        let who = |lanes: u64| Who { warp: warp.n, lane: lanes.trailing_zeros(), stmt };
        if from_active && warp.asked_diverged {
            let me = who(active);
            let thread = self.detector.thread(me.warp, me.lane);
            self.detector.lane(ViolationKind::ActiveMask, me, 0, || {
                format!(
                    "{thread} takes the lanes that were active for the lanes that take part, and others were \
                         elsewhere then"
                )
            });
        }
        let mut partners = [active; W];
        let mut open = active;
        while open != 0 {
            let first = open.trailing_zeros();
            let mask = masks[first as usize];
            let same = each(open).filter(|l| masks[*l as usize] == mask).fold(0u64, |m, l| m | 1 << l);
            open &= !same;
            let lacking = same & !mask;
            let (absent, diverged) = (mask & !warp.full, mask & warp.full & !active);
            let different = mask & active & !same;
            for lane in each(same) {
                partners[lane as usize] = if lacking >> lane & 1 == 1 { active } else { mask & active };
            }
            if lacking | absent | diverged | different == 0 {
                continue;
            }
            let other = |lanes: u64| self.detector.thread(warp.n, lanes.trailing_zeros());
            let faults = [
                (lacking, ViolationKind::MaskLacksCaller, lacking, String::new()),
                (
                    absent,
                    ViolationKind::MaskNamesAbsent,
                    same,
                    format!("lane {}, which the block does not have", absent.trailing_zeros()),
                ),
                (
                    diverged,
                    ViolationKind::MaskNamesDiverged,
                    same,
                    format!("{}, which is elsewhere in the program", other(diverged)),
                ),
                (
                    different,
                    ViolationKind::MasksDiffer,
                    same,
                    format!(
                        "{}, whose mask is {:#x}",
                        other(different),
                        masks[different.trailing_zeros() as usize % W]
                    ),
                ),
            ];
            for (found, kind, lanes, named) in faults {
                if found == 0 {
                    continue;
                }
                let me = who(lanes);
                let thread = self.detector.thread(me.warp, me.lane);
                self.detector.lane(kind, me, 0, || match kind {
                    ViolationKind::MaskLacksCaller => {
                        format!("the mask {mask:#x} of {thread} lacks its own lane {}", me.lane)
                    }
                    _ => format!("the mask {mask:#x} of {thread} names {named}"),
                });
            }
        }
        partners
    }

    pub(super) fn shuffle(
        &mut self,
        code: &Code<W>,
        warp: &mut Warp<W>,
        shift: Shift,
        d: u32,
        mask: (Operand, bool),
        from: From,
    ) {
        self.counters.shuffles += 1;
        let partners = self.partners(code, warp, mask);
        self.defined(warp, from.lane, "the lane");
        let (value, lanes) = (*warp.value(code, from.value), *warp.value(code, from.lane));
        let (widths, sizes) = (*warp.value(code, from.width), *warp.value(code, from.size));
        let undefined_value = warp.undefined_in(from.value);
        let undefined_lane = warp.undefined_in(from.lane);
        let (mut result, mut undefined) = ([u64::MAX; W], 0u64);
        for lane in each(warp.active) {
            let l = lane as usize;
            let mut width = widths[l] as i64;
            if !(1..=W as i64).contains(&width) || width & (width - 1) != 0 || sizes[l] != W as u64 {
                let who = Who { warp: warp.n, lane, stmt: warp.stmt };
                let (thread, size) = (self.detector.thread(warp.n, lane), sizes[l] as i64);
                self.detector.lane(ViolationKind::ShuffleWidth, who, 0, || {
                    format!("{thread} shuffles with width {width} in warps of {size}; warps have {W} lanes, and a \
                             width is a power of two up to that")
                });
                width = W as i64;
            }
            let (me, mut by) = (i64::from(lane), lanes[l] as i64);
            let start = me & !(width - 1);
            let is_distance = match shift {
                Shift::Down | Shift::Up | Shift::Xor => true,
                Shift::To => false,
            };
            if is_distance && !(0..W as i64).contains(&by) {
                // What is not defined was told of.
                if undefined_lane >> lane & 1 == 0 {
                    let who = Who { warp: warp.n, lane, stmt: warp.stmt };
                    let thread = self.detector.thread(warp.n, lane);
                    self.detector.lane(ViolationKind::ShuffleDistance, who, 0, || {
                        format!(
                            "{thread} shuffles by {by} in a warp of {W} lanes; distances are 0 to {}",
                            W - 1
                        )
                    });
                }
                by = 0;
            }
            let (source, is_in_part) = match shift {
                Shift::Down => (me + by, me - start + by < width),
                Shift::Up => (me - by, me - start >= by),
                Shift::Xor => (me ^ by, (me ^ by) < start + width),
                Shift::To => (start + by.rem_euclid(width), true),
            };
            let source = if is_in_part { source } else { me };
            let takes_part = (0..W as i64).contains(&source) && partners[l] >> source & 1 == 1;
            if takes_part || source == me {
                result[l] = value[source as usize];
                undefined |= (undefined_value >> source & 1) << lane;
            } else {
                undefined |= 1 << lane;
            }
        }
        warp.registers[d as usize] = result;
        warp.undefined[d as usize] = undefined;
    }

    pub(super) fn vote(
        &mut self,
        code: &Code<W>,
        warp: &mut Warp<W>,
        vote: Vote,
        d: u32,
        mask: (Operand, bool),
        pred: Operand,
    ) {
        self.counters.votes += 1;
        let partners = self.partners(code, warp, mask);
        self.defined(warp, pred, "the predicate");
        let holds = warp.holds(code, pred);
        let mut result = [0; W];
        for (lane, result) in result.iter_mut().enumerate() {
            let named = partners[lane];
            *result = match vote {
                Vote::Any => u64::from(holds & named != 0),
                Vote::All => u64::from(holds & named == named),
                Vote::Ballot => holds & named,
            };
        }
        warp.registers[d as usize] = result;
        warp.undefined[d as usize] = 0;
    }

    /// The fold of the values of all lanes that the mask names, lowest first.
    pub(super) fn redux(
        &mut self,
        code: &Code<W>,
        warp: &mut Warp<W>,
        fold: F2<W>,
        d: u32,
        mask: (Operand, bool),
        value: Operand,
    ) {
        self.counters.reduxes += 1;
        let partners = self.partners(code, warp, mask);
        let values = *warp.value(code, value);
        let undefined_value = warp.undefined_in(value);
        let (mut result, mut undefined) = ([u64::MAX; W], 0u64);
        for lane in each(warp.active) {
            let named = partners[lane as usize];
            let total = each(named).map(|l| values[l as usize]).reduce(|a, b| one(fold, a, b));
            result[lane as usize] = total.unwrap_or(values[lane as usize]);
            undefined |= u64::from(undefined_value & named != 0) << lane;
        }
        warp.registers[d as usize] = result;
        warp.undefined[d as usize] = undefined;
    }

    pub(super) fn atomic(
        &mut self,
        code: &Code<W>,
        warp: &mut Warp<W>,
        update: &Update<W>,
        d: u32,
        (region, at): (u32, Operand),
        (a, b): (Operand, Operand),
    ) {
        for (operand, what) in
            [(at, "an index"), (a, "a value that is stored"), (b, "a value that is stored")]
        {
            self.defined(warp, operand, what);
        }
        self.counters.atomics += u64::from(warp.active.count_ones());
        let (decode, encode) = self.codecs[region as usize];
        let index = *warp.value(code, at);
        let (a, b) = (*warp.value(code, a), *warp.value(code, b));
        let mut result = [u64::MAX; W];
        let mut lanes: Vec<u32> = each(warp.active).collect();
        if self.swaps_branches {
            lanes.reverse();
        }
        for lane in lanes {
            let l = lane as usize;
            let who = Who { warp: warp.n, lane, stmt: warp.stmt };
            let memory = &mut self.regions[region as usize];
            let Some(at) = memory.element(index[l] as i64) else {
                self.detector.out_of_bounds(who, region, index[l] as i64);
                continue;
            };
            let at = memory.first_of(warp.block) + at;
            if let Some(shadow) = &mut memory.shadow {
                let finding = shadow.write(at, who, &self.order.now(warp.n), true);
                if finding != Finding::Fine {
                    self.detector.finding(finding, who, region, at, true);
                }
            }
            let block = if memory.is_shared { self.order.first() } else { 0 };
            self.order.update((region, at as u64, block), warp.n, lane);
            let old = decode(&[memory.get(at); W])[0];
            let new = match update {
                Update::Fold(f) => one(*f, old, a[l]),
                Update::Exchange => a[l],
                Update::CompareSwap if old == a[l] => b[l],
                Update::CompareSwap => old,
            };
            memory.set(at, encode(&[new; W])[0]);
            result[l] = old;
        }
        warp.registers[d as usize] = result;
        warp.undefined[d as usize] = 0;
    }
}
