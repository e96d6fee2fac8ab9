//! Reads of the shared memory of other blocks of a cluster, which have to be over before those blocks end.

use std::collections::BTreeMap;

use super::Interpreter;
use crate::code::{Code, Operand};
use crate::order::each;
use crate::shadow::{Finding, Who};
use crate::warp::Warp;

/// What blocks of the cluster that runs now read of one another, and which of them have ended.
#[derive(Default)]
pub(crate) struct Remote {
    /// By the block that was read, the warp that read and its statement: when it did last, which lane, and of which region.
    reads: BTreeMap<(u32, u32, u32), (u32, u32, u32)>,
    ended: Vec<bool>,
}

impl Remote {
    /// A cluster of `n_blocks` blocks begins.
    pub(crate) fn begin(&mut self, n_blocks: u32) {
        self.reads.clear();
        self.ended.clear();
        self.ended.resize(n_blocks as usize, false);
    }
}

impl<const W: usize> Interpreter<'_, W> {
    pub(super) fn cluster_load(
        &mut self,
        code: &Code<W>,
        warp: &mut Warp<W>,
        d: u32,
        region: u32,
        (at, block): (Operand, Operand),
    ) {
        self.defined(warp, at, "an index");
        self.defined(warp, block, "the number of a block");
        self.counters.shared_requests += 1;
        let (index, blocks) = (*warp.value(code, at), *warp.value(code, block));
        let memory = &mut self.regions[region as usize];
        let decode = self.codecs[region as usize].0;
        let (now, time) = (self.order.now(warp.n), self.order.time(warp.n));
        let mut raw = [u64::MAX; W];
        for lane in each(warp.active) {
            let who = Who { warp: warp.n, lane, stmt: warp.stmt };
            let (index, block) = (index[lane as usize] as i64, blocks[lane as usize] as i64);
            let Some(ended) = usize::try_from(block).ok().and_then(|block| self.remote.ended.get(block))
            else {
                self.detector.no_such_block(who, region, block);
                continue;
            };
            let Some(at) = memory.element(index) else {
                self.detector.out_of_bounds(who, region, index);
                continue;
            };
            let owner = block as usize;
            if owner != warp.block {
                if *ended {
                    self.detector.ended_block(who, region, owner as u32);
                }
                self.remote.reads.insert((owner as u32, warp.n, warp.stmt), (time, lane, region));
            }
            let place = memory.first_of(owner) + at;
            if let Some(shadow) = &mut memory.shadow {
                let finding = shadow.read(place, who, &now);
                if finding != Finding::Fine {
                    self.detector.finding(finding, who, region, place, false);
                }
            }
            raw[lane as usize] = memory.get(place);
        }
        warp.registers[d as usize] = decode(&raw);
        warp.undefined[d as usize] = 0;
    }

    /// A block has ended, which has those warps: reports reads of its memory that none of them knows to be over.
    pub(crate) fn end_of_block(&mut self, block: u32, warps: std::ops::Range<u32>) {
        if let Some(ended) = self.remote.ended.get_mut(block as usize) {
            *ended = true;
        }
        let of_block = self.remote.reads.range((block, 0, 0)..(block + 1, 0, 0));
        for ((_, reader, stmt), (time, lane, region)) in of_block {
            if !warps.clone().any(|warp| self.order.knows(warp, *reader, *time)) {
                let who = Who { warp: *reader, lane: *lane, stmt: *stmt };
                self.detector.ended_block(who, *region, block);
            }
        }
    }
}
