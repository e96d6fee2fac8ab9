//! What is remembered of each element of memory that a kernel writes: who wrote it last, and who has read it since.

use coulis_ir::hash::FastMap;

use crate::order::{MANY, Now, Order, Spot, Stamp};

/// Readers of one element that are not ordered among each other and are told apart. Further ones are not kept.
const MAX_READERS: usize = 64;

/// A conflict: the earlier access, its statement, and whether it was a write.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Conflict {
    pub(crate) stamp: Stamp,
    pub(crate) stmt: u32,
    pub(crate) was_write: bool,
}

/// What is wrong with an access.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Finding {
    Fine,
    Unwritten,
    Race(Conflict),
}

/// The thread that accesses now.
#[derive(Clone, Copy)]
pub(crate) struct Who {
    pub(crate) warp: u32,
    pub(crate) lane: u32,
    pub(crate) stmt: u32,
}

/// Last writes and reads of each element of a region.
pub(crate) struct Shadow {
    region: u32,
    /// Whether the memory is of one block, so that what blocks did to it that do not run now does not count.
    of_block: bool,
    writes: Vec<(u64, u32)>,
    /// A stamp, perhaps of several warps; or, where the lowest bit is set, a place in `crowds`.
    reads: Vec<(u64, u32)>,
    crowds: Vec<Vec<(Stamp, u32)>>,
    free: Vec<u32>,
    /// The last stores that are no updates, of elements that were updated since. Updates are in any order with each other,
    /// so that to come after one of them is not to come after what that one came after.
    stored: FastMap<usize, (Stamp, u32)>,
}

impl Shadow {
    pub(crate) fn new(region: u32, of_block: bool, len: usize, is_written: bool) -> Shadow {
        let first = if is_written { Stamp::host() } else { Stamp::NONE };
        Shadow {
            region,
            of_block,
            writes: vec![(first.0, 0); len],
            reads: vec![(0, 0); len],
            crowds: Vec::new(),
            free: Vec::new(),
            stored: FastMap::default(),
        }
    }

    /// The last write of an element, if it was a thread's.
    pub(crate) fn writer(&self, at: usize) -> Option<(Stamp, u32)> {
        let (stamp, stmt) = self.writes[at];
        (Stamp(stamp).serial() > crate::order::HOST).then_some((Stamp(stamp), stmt))
    }

    fn spot(&self, at: usize, serial: u32) -> Spot {
        (self.region, at as u64, if self.of_block { serial } else { 0 })
    }

    /// The write that counts for a thread that runs now.
    #[inline(always)]
    fn write_at(&self, at: usize, order: &Order) -> Stamp {
        let stamp = Stamp(self.writes[at].0);
        if self.of_block && !order.is_running(stamp.serial()) { Stamp::NONE } else { stamp }
    }

    /// A read now.
    #[inline(always)]
    pub(crate) fn read(&mut self, at: usize, who: Who, now: &Now) -> Finding {
        let me = now.stamp(who.lane);
        let write = self.write_at(at, now.order);
        if write.is_none() {
            return Finding::Unwritten;
        }
        let (read, stmt) = &mut self.reads[at];
        if *read == now.many.0 {
            // Several lanes of the warp have read it, and this is one more.
            *stmt = who.stmt;
        } else if *read != me.0 {
            self.note_read(at, me, who, now.order);
        }
        match now.is_after_barrier(write) {
            true => Finding::Fine,
            false => self.after_write(at, write, who, now.order),
        }
    }

    #[inline(never)]
    fn after_write(&self, at: usize, write: Stamp, who: Who, order: &Order) -> Finding {
        if write.is_atomic() && order.knows_updates(self.spot(at, order.first()), who.warp, who.lane) {
            return Finding::Fine;
        }
        self.after_one((write, self.writes[at].1), who, order)
    }

    /// An access after one that wrote.
    fn after_one(&self, (stamp, stmt): (Stamp, u32), who: Who, order: &Order) -> Finding {
        if self.is_past(stamp, order) || order.ordered(stamp, who.warp, who.lane) {
            return Finding::Fine;
        }
        Finding::Race(Conflict { stamp, stmt, was_write: true })
    }

    fn is_past(&self, stamp: Stamp, order: &Order) -> bool {
        stamp.is_none()
            || stamp.serial() < order.launch_base()
            || (self.of_block && !order.is_running(stamp.serial()))
    }

    fn note_read(&mut self, at: usize, me: Stamp, who: Who, order: &Order) {
        let (word, stmt) = self.reads[at];
        if order.is_crowd_of_now(Stamp(word)) {
            return;
        }
        if word & 1 == 1 {
            self.join_crowd((word >> 1) as usize, me, who, order);
            return;
        }
        let old = Stamp(word);
        let same_warp = old.serial() == me.serial() && old.warp() == me.warp();
        if self.is_past(old, order) || order.ordered(old, who.warp, who.lane) {
            self.reads[at] = (me.0, who.stmt);
        } else if same_warp {
            self.reads[at] = (together(old, me).0, who.stmt);
        } else if let Some(crowd) = order.crowd(old, me) {
            self.reads[at] = (crowd.0, who.stmt);
        } else {
            let place = self.free.pop().unwrap_or_else(|| {
                self.crowds.push(Vec::new());
                self.crowds.len() as u32 - 1
            });
            let crowd = &mut self.crowds[place as usize];
            crowd.clear();
            crowd.extend([(old, stmt), (me, who.stmt)]);
            self.reads[at] = (u64::from(place) << 1 | 1, 0);
        }
    }

    fn join_crowd(&mut self, place: usize, me: Stamp, who: Who, order: &Order) {
        let crowd = &mut self.crowds[place];
        if let Some(own) = crowd.iter_mut().find(|(s, _)| s.serial() == me.serial() && s.warp() == me.warp())
        {
            let is_past = order.ordered(own.0, who.warp, who.lane);
            *own = (if is_past { me } else { together(own.0, me) }, who.stmt);
            return;
        }
        let of_block = self.of_block;
        crowd.retain(|(s, _)| {
            let past = s.serial() < order.launch_base() || (of_block && !order.is_running(s.serial()));
            !past && !order.ordered(*s, who.warp, who.lane)
        });
        if crowd.len() < MAX_READERS {
            crowd.push((me, who.stmt));
        }
    }

    /// A store or an atomic update now. An update reads too.
    #[inline(always)]
    pub(crate) fn write(&mut self, at: usize, who: Who, now: &Now, is_atomic: bool) -> Finding {
        let (me, order) = (now.stamp(who.lane), now.order);
        let write = self.write_at(at, order);
        let mut finding = Finding::Fine;
        if write.is_none() {
            if is_atomic {
                finding = Finding::Unwritten;
            }
        } else if is_atomic && write.is_atomic() {
            if let Some(store) = self.stored.get(&at) {
                finding = self.after_one(*store, who, order);
            }
        } else if !now.is_after_barrier(write) {
            finding = self.after_write(at, write, who, order);
        }
        if self.reads[at].0 != 0 {
            if finding == Finding::Fine {
                finding = self.after_reads(at, who, order);
            }
            // Another update need not come after this one, so it is to come after the reads itself.
            if !is_atomic {
                self.forget_reads(at);
            }
        }
        if write.is_atomic() != is_atomic {
            self.note_store(at, write, order);
        }
        self.writes[at] = (if is_atomic { me.atomic() } else { me }.0, who.stmt);
        finding
    }

    fn forget_reads(&mut self, at: usize) {
        if self.reads[at].0 & 1 == 1 {
            self.free.push((self.reads[at].0 >> 1) as u32);
        }
        self.reads[at] = (0, 0);
    }

    /// Updates begin after `write`, which those after the first have to come after too, or end.
    #[inline(never)]
    fn note_store(&mut self, at: usize, write: Stamp, order: &Order) {
        if write.is_atomic() || self.is_past(write, order) {
            self.stored.remove(&at);
        } else {
            self.stored.insert(at, (write, self.writes[at].1));
        }
    }

    fn after_reads(&self, at: usize, who: Who, order: &Order) -> Finding {
        let (word, stmt) = self.reads[at];
        let single = [(Stamp(word), stmt)];
        let readers = if word & 1 == 1 { &self.crowds[(word >> 1) as usize][..] } else { &single };
        for (read, stmt) in readers {
            if !self.is_past(*read, order) && !order.ordered(*read, who.warp, who.lane) {
                let stamp = read.by_other_than(order.in_block(who.warp));
                return Finding::Race(Conflict { stamp, stmt: *stmt, was_write: false });
            }
        }
        Finding::Fine
    }
}

/// Two reads of different lanes of one warp, without a barrier between them, as one. What is ordered after it is ordered
/// after both.
fn together(old: Stamp, new: Stamp) -> Stamp {
    Stamp::new(new.serial(), new.warp(), MANY, new.time().max(old.time()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::order::FIRST_SERIAL;

    fn who(warp: u32, lane: u32) -> Who {
        Who { warp, lane, stmt: 0 }
    }

    fn start() -> (Shadow, Order) {
        let mut order = Order::default();
        order.begin_launch(FIRST_SERIAL, false);
        order.begin_blocks(FIRST_SERIAL, 1, 3);
        (Shadow::new(0, true, 1, false), order)
    }

    #[test]
    fn readers_of_several_warps_are_one_crowd_until_the_next_barrier() {
        let (mut shadow, mut order) = start();
        order.begin_launch(FIRST_SERIAL, true);
        shadow.write(0, who(0, 0), &order.now(0), false);
        for writer in 0..3 {
            order.barrier(&[0, 1, 2]);
            for warp in 0..3 {
                assert_eq!(shadow.read(0, who(warp, warp), &order.now(warp)), Finding::Fine);
            }
            let finding = shadow.write(0, who(writer, 0), &order.now(writer), false);
            let Finding::Race(conflict) = finding else { panic!("{finding:?}") };
            assert_ne!(conflict.stamp.warp(), writer);
        }
        order.barrier(&[0, 1, 2]);
        for warp in 0..3 {
            assert_eq!(shadow.read(0, who(warp, 2), &order.now(warp)), Finding::Fine);
        }
        order.barrier(&[0, 1, 2]);
        assert_eq!(shadow.write(0, who(1, 0), &order.now(1), false), Finding::Fine);
    }

    #[test]
    fn a_write_races_with_every_reader_since_the_last_write() {
        for reader in 0..3 {
            let (mut shadow, mut order) = start();
            assert_eq!(shadow.read(0, who(0, 0), &order.now(0)), Finding::Unwritten);
            assert_eq!(shadow.write(0, who(0, 0), &order.now(0), false), Finding::Fine);
            order.barrier(&[0, 1, 2]);
            for warp in 0..3 {
                assert_eq!(shadow.read(0, who(warp, 1), &order.now(warp)), Finding::Fine);
            }
            let others: Vec<u32> = (0..3).filter(|w| *w != reader).collect();
            order.barrier(&others);
            let finding = shadow.write(0, who(others[0], 1), &order.now(others[0]), false);
            let Finding::Race(conflict) = finding else { panic!("{finding:?}") };
            assert_eq!((conflict.stamp.warp(), conflict.was_write), (reader, false));
        }
    }

    #[test]
    fn lanes_that_read_together_are_all_remembered() {
        let (mut shadow, mut order) = start();
        shadow.write(0, who(0, 0), &order.now(0), false);
        order.warp_barrier(0);
        assert_eq!(shadow.read(0, who(0, 0), &order.now(0)), Finding::Fine);
        assert_eq!(shadow.read(0, who(0, 1), &order.now(0)), Finding::Fine);
        assert!(matches!(shadow.write(0, who(0, 1), &order.now(0), false), Finding::Race(_)));
        order.warp_barrier(0);
        assert_eq!(shadow.write(0, who(0, 5), &order.now(0), false), Finding::Fine);
    }

    #[test]
    fn atomic_updates_do_not_race_with_each_other_but_with_plain_accesses() {
        let (mut shadow, mut order) = start();
        shadow.write(0, who(0, 0), &order.now(0), false);
        order.barrier(&[0, 1, 2]);
        assert_eq!(shadow.write(0, who(0, 0), &order.now(0), true), Finding::Fine);
        assert_eq!(shadow.write(0, who(1, 0), &order.now(1), true), Finding::Fine);
        assert!(matches!(shadow.read(0, who(2, 0), &order.now(2)), Finding::Race(_)));
    }

    #[test]
    fn updates_race_with_the_store_before_the_updates_that_come_after_it() {
        for is_ordered in [false, true] {
            let (mut shadow, mut order) = start();
            shadow.write(0, who(0, 0), &order.now(0), false);
            if is_ordered {
                order.barrier(&[0, 1, 2]);
            }
            // Of the thread that stored, and of a thread that does not know of it.
            assert_eq!(shadow.write(0, who(0, 0), &order.now(0), true), Finding::Fine);
            let found = shadow.write(0, who(1, 0), &order.now(1), true);
            match found {
                Finding::Race(conflict) => assert!(!is_ordered && conflict.was_write),
                found => assert!(is_ordered && found == Finding::Fine),
            }
            // A later store takes the place of the first.
            order.barrier(&[0, 1, 2]);
            assert_eq!(shadow.write(0, who(2, 0), &order.now(2), false), Finding::Fine);
            order.barrier(&[0, 1, 2]);
            for warp in 0..3 {
                assert_eq!(shadow.write(0, who(warp, 0), &order.now(warp), true), Finding::Fine);
            }
        }
    }

    #[test]
    fn updates_race_with_reads_before_the_updates_of_their_thread() {
        let (mut shadow, mut order) = start();
        shadow.write(0, who(0, 0), &order.now(0), false);
        order.barrier(&[0, 1, 2]);
        assert_eq!(shadow.read(0, who(1, 0), &order.now(1)), Finding::Fine);
        assert_eq!(shadow.write(0, who(1, 0), &order.now(1), true), Finding::Fine);
        let Finding::Race(conflict) = shadow.write(0, who(2, 0), &order.now(2), true) else { panic!() };
        assert_eq!((conflict.stamp.warp(), conflict.was_write), (1, false));
        order.barrier(&[0, 1, 2]);
        assert_eq!(shadow.write(0, who(2, 0), &order.now(2), true), Finding::Fine);
    }
}
