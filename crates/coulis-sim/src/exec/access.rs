//! Loads and stores of all active lanes.

use super::{Interpreter, merge};
use crate::code::{Code, Operand, Span};
use crate::order::each;
use crate::shadow::{Finding, Who};
use crate::traffic::{bank_conflicts, count_global};
use crate::warp::Warp;

/// Whether an instruction reads or writes.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Load,
    Store,
}

impl<const W: usize> Interpreter<'_, W> {
    pub(super) fn load(
        &mut self,
        code: &Code<W>,
        warp: &mut Warp<W>,
        d: u32,
        region: u32,
        (at, taken): (Span, Span),
    ) {
        let indices = &code.operands[at.start as usize..][..at.len as usize];
        let taken = &code.operands[taken.start as usize..][..taken.len as usize];
        let memory = &mut self.regions[region as usize];
        let decode = self.codecs[region as usize].0;
        let undefined = indices.iter().fold(0, |mask, at| mask | warp.undefined_in(*at)) & warp.active;
        self.addresses.clear();
        let width = memory.width as u64;
        let mut row = indices.len() > 1;
        let now = self.order.now(warp.n);
        let first = memory.first_of(warp.block);
        for (n, operand) in indices.iter().enumerate() {
            let index = warp.value(code, *operand);
            let mut places = [0; W];
            let mut inside = 0;
            for lane in each(warp.active) {
                let index = index[lane as usize] as i64;
                match memory.element(index) {
                    Some(at) => {
                        places[lane as usize] = first + at;
                        inside |= 1 << lane;
                    }
                    None => {
                        let who = Who { warp: warp.n, lane, stmt: warp.stmt };
                        self.detector.out_of_bounds(who, region, index);
                        row = false;
                    }
                }
            }
            if let Some(shadow) = &mut memory.shadow {
                for lane in each(inside) {
                    let (at, who) = (places[lane as usize], Who { warp: warp.n, lane, stmt: warp.stmt });
                    let finding = shadow.read(at, who, &now);
                    let is_used =
                        finding != Finding::Unwritten || warp.holds(code, taken[n]) >> lane & 1 != 0;
                    if finding != Finding::Fine && is_used {
                        self.detector.finding(finding, who, region, at, false);
                    }
                }
            } else if !memory.is_initialised {
                for lane in each(inside & warp.holds(code, taken[n])) {
                    let who = Who { warp: warp.n, lane, stmt: warp.stmt };
                    self.detector.unwritten(who, region, places[lane as usize]);
                }
            }
            let mut raw = [u64::MAX; W];
            memory.gather(inside, &places, &mut raw);
            self.addresses.extend(each(inside).map(|lane| (places[lane as usize] - first) as u64 * width));
            warp.registers[d as usize + n] = decode(&raw);
            warp.undefined[d as usize + n] = 0;
        }
        self.count_access(region, Way::Load, indices.len(), row);
        if undefined != 0 {
            indices.iter().for_each(|at| self.defined(warp, *at, "an index"));
        }
    }

    pub(super) fn store(&mut self, code: &Code<W>, warp: &mut Warp<W>, region: u32, at: Span, from: Span) {
        let indices = &code.operands[at.start as usize..][..at.len as usize];
        let values = &code.operands[from.start as usize..][..from.len as usize];
        for (at, value) in indices.iter().zip(values) {
            self.defined(warp, *at, "an index");
            self.defined(warp, *value, "a value that is stored");
        }
        let memory = &mut self.regions[region as usize];
        let encode = self.codecs[region as usize].1;
        self.addresses.clear();
        let width = memory.width as u64;
        let mut row = indices.len() > 1;
        let now = self.order.now(warp.n);
        let first = memory.first_of(warp.block);
        for (operand, value) in indices.iter().zip(values) {
            let index = *warp.value(code, *operand);
            let raw = encode(warp.value(code, *value));
            for lane in each(warp.active) {
                let who = Who { warp: warp.n, lane, stmt: warp.stmt };
                let index = index[lane as usize] as i64;
                let Some(at) = memory.element(index) else {
                    self.detector.out_of_bounds(who, region, index);
                    row = false;
                    continue;
                };
                let place = first + at;
                if let Some(shadow) = &mut memory.shadow {
                    let finding = shadow.write(place, who, &now, false);
                    if finding != Finding::Fine {
                        self.detector.finding(finding, who, region, place, true);
                    }
                }
                memory.set(place, raw[lane as usize]);
                self.addresses.push(at as u64 * width);
            }
        }
        self.count_access(region, Way::Store, indices.len(), row);
    }

    /// Counts the accesses in `addresses`: `n` elements of each thread, element by element. `row` says that no access
    /// is missing, so that elements that lie side by side can be taken for one wide access.
    fn count_access(&mut self, region: u32, way: Way, n: usize, row: bool) {
        let memory = &self.regions[region as usize];
        let mut bytes = memory.width as u64;
        let per_element = self.addresses.len() / n.max(1);
        if per_element == 0 {
            return;
        }
        let side_by_side = row
            && (0..per_element).all(|lane| {
                let first = self.addresses[lane];
                (1..n).all(|i| self.addresses[i * per_element + lane] == first + i as u64 * bytes)
            });
        if side_by_side {
            self.addresses.truncate(per_element);
            bytes *= n as u64;
        }
        let parts = self.addresses.chunks(if n == 1 || side_by_side { usize::MAX } else { per_element });
        for part in parts {
            if memory.is_shared {
                self.counters.shared_requests += 1;
                self.counters.bank_conflicts += bank_conflicts(part, bytes);
            } else if way == Way::Load {
                count_global(&mut self.counters.global_loads, part, bytes);
            } else {
                count_global(&mut self.counters.global_stores, part, bytes);
            }
        }
    }

    pub(super) fn read_unwritten_slot(
        &mut self,
        code: &Code<W>,
        warp: &Warp<W>,
        array: u32,
        slot: u32,
        lanes: u64,
    ) {
        let info = &code.arrays[array as usize];
        let who = Who { warp: warp.n, lane: lanes.trailing_zeros(), stmt: warp.stmt };
        self.detector.local_unwritten(who, array, &info.name, i64::from(slot - info.first));
    }

    pub(super) fn load_local(
        &mut self,
        code: &Code<W>,
        warp: &mut Warp<W>,
        d: u32,
        array: u32,
        (at, taken): (Operand, Operand),
    ) {
        self.defined(warp, at, "an index");
        let info = &code.arrays[array as usize];
        let index = *warp.value(code, at);
        let (mut value, mut undefined) = ([u64::MAX; W], 0);
        for lane in each(warp.active) {
            let who = Who { warp: warp.n, lane, stmt: warp.stmt };
            let at = index[lane as usize];
            if at >= u64::from(info.len) {
                self.detector.local_out_of_bounds(who, array, &info.name, info.len, at as i64);
                continue;
            }
            let slot = (u64::from(info.first) + at) as usize;
            if warp.written[slot] >> lane & 1 == 0 && warp.holds(code, taken) >> lane & 1 != 0 {
                self.detector.local_unwritten(who, array, &info.name, at as i64);
            }
            value[lane as usize] = warp.slots[slot][lane as usize];
            undefined |= warp.slots_undefined[slot] & (1 << lane);
        }
        warp.registers[d as usize] = value;
        warp.undefined[d as usize] = undefined;
    }

    pub(super) fn store_local(
        &mut self,
        code: &Code<W>,
        warp: &mut Warp<W>,
        array: u32,
        at: Operand,
        a: Operand,
    ) {
        self.defined(warp, at, "an index");
        let info = &code.arrays[array as usize];
        let (index, value) = (*warp.value(code, at), *warp.value(code, a));
        let undefined = warp.undefined_in(a);
        for lane in each(warp.active) {
            let at = index[lane as usize];
            if at >= u64::from(info.len) {
                let who = Who { warp: warp.n, lane, stmt: warp.stmt };
                self.detector.local_out_of_bounds(who, array, &info.name, info.len, at as i64);
                continue;
            }
            let (slot, bit) = ((u64::from(info.first) + at) as usize, 1 << lane);
            merge(&mut warp.slots[slot], &value, bit);
            warp.written[slot] |= bit;
            warp.slots_undefined[slot] = (warp.slots_undefined[slot] & !bit) | (undefined & bit);
        }
    }
}
