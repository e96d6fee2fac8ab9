//! Hash tables for passes: fast, and the same in every run.
//!
//! Passes look up interned expressions, variables and statements many times for each that they rewrite, and their keys come
//! from no stranger. So the hasher is one multiplication a word, and not one that resists chosen keys.

use std::borrow::Borrow;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A map of a pass.
pub type FastMap<K, V> = HashMap<K, V, BuildHasherDefault<FastHasher>>;

/// A set of a pass.
pub type FastSet<K> = HashSet<K, BuildHasherDefault<FastHasher>>;

/// A map with room for as many entries as a pass over a kernel makes as a rule: growing to as many takes
/// longer than filling it.
pub fn roomy_map<K, V>() -> FastMap<K, V> {
    FastMap::with_capacity_and_hasher(ROOMY, Default::default())
}

/// As [`roomy_map`], a set.
pub fn roomy_set<K>() -> FastSet<K> {
    FastSet::with_capacity_and_hasher(ROOMY, Default::default())
}

/// What fills a table of 512 places.
const ROOMY: usize = 448;

/// What was seen of a small thing, an expression or a statement, most of which have few parts: these need no memory of their
/// own.
#[derive(Clone, Debug)]
pub struct Seen<K> {
    /// Each key at one of some places from that of its hash on.
    few: [Option<K>; PLACES],
    many: FastSet<K>,
}

/// Places for a few keys, a power of two.
const PLACES: usize = 32;

/// Places at which one key may stand.
const TRIED: usize = 8;

impl<K> Default for Seen<K> {
    fn default() -> Self {
        Seen { few: [const { None }; PLACES], many: FastSet::default() }
    }
}

impl<K: Eq + Hash> Seen<K> {
    /// Adds a key; whether it was not there.
    #[inline]
    pub fn insert(&mut self, key: K) -> bool {
        let mut hasher = FastHasher::default();
        key.hash(&mut hasher);
        let first = hasher.finish() as usize;
        for tried in 0..TRIED {
            match &mut self.few[first.wrapping_add(tried) % PLACES] {
                Some(known) if *known == key => return false,
                Some(_) => {}
                free => {
                    *free = Some(key);
                    return true;
                }
            }
        }
        self.insert_beyond(key)
    }

    #[cold]
    fn insert_beyond(&mut self, key: K) -> bool {
        if self.many.is_empty() {
            self.many.reserve(MANY);
        }
        self.many.insert(key)
    }
}

/// Keys that a table of many has room for from the first, since growing to as many by doubling takes longer than filling it.
const MANY: usize = 56;

/// A map whose entries stand in the order in which they came, each at a position that does not change. Maps
/// of few entries, which most are, need no hash and one piece of memory.
#[derive(Debug)]
pub struct Table<K, V> {
    entries: Vec<(K, V)>,
    /// Positions, once there are more than a few.
    places: FastMap<K, usize>,
}

/// Entries that are looked through one by one.
const FEW: usize = 8;

impl<K: Clone, V: Clone> Clone for Table<K, V> {
    /// With room for what the copy gets that the other has not.
    fn clone(&self) -> Self {
        let mut entries = Vec::with_capacity(self.entries.len() + 2);
        entries.extend_from_slice(&self.entries);
        Table { entries, places: self.places.clone() }
    }
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Table { entries: Vec::new(), places: FastMap::default() }
    }
}

impl<K: Clone + Eq + Hash, V> Table<K, V> {
    /// Number of entries.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The values, in the order in which they came.
    pub fn values(&self) -> impl Iterator<Item = &V> {
        self.entries.iter().map(|(_, value)| value)
    }

    /// Takes all entries away and keeps the memory.
    pub fn clear(&mut self) {
        self.entries.clear();
        self.places.clear();
    }

    /// How many entries there is memory for.
    pub fn capacity(&self) -> usize {
        self.entries.capacity()
    }

    /// Where the key stands.
    pub fn position<Q: Eq + Hash + ?Sized>(&self, key: &Q) -> Option<usize>
    where
        K: Borrow<Q>,
    {
        if self.entries.len() <= FEW {
            return self.entries.iter().position(|(known, _)| known.borrow() == key);
        }
        self.places.get(key).copied()
    }

    /// The value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        Some(&self.entries[self.position(key)?].1)
    }

    /// All entries.
    pub fn iter(&self) -> std::slice::Iter<'_, (K, V)> {
        self.entries.iter()
    }

    /// The entry at a position.
    pub fn at(&self, position: usize) -> Option<&(K, V)> {
        self.entries.get(position)
    }

    /// The value at a position, to be changed.
    pub fn at_mut(&mut self, position: usize) -> Option<&mut V> {
        self.entries.get_mut(position).map(|(_, value)| value)
    }

    /// Whether the key is there.
    pub fn contains_key(&self, key: &K) -> bool {
        self.position(key).is_some()
    }

    /// Gives a key its value, in the place of the one it had.
    pub fn insert(&mut self, key: K, value: V) {
        match self.position(&key) {
            Some(at) => self.entries[at].1 = value,
            None => drop(self.push(key, value)),
        }
    }

    /// The value of a key, which gets the default where it has none.
    pub fn entry(&mut self, key: &K) -> &mut V
    where
        V: Default,
    {
        let at = match self.position(key) {
            Some(at) => at,
            None => self.push(key.clone(), V::default()),
        };
        &mut self.entries[at].1
    }

    /// Adds an entry whose key is not there; its position.
    pub fn push(&mut self, key: K, value: V) -> usize {
        let at = self.entries.len();
        if at == self.entries.capacity() {
            self.entries.reserve(FEW.max(at));
        }
        if at > FEW {
            self.places.insert(key.clone(), at);
        } else if at == FEW {
            self.places.reserve(MANY);
            let known = self.entries.iter().map(|(key, _)| key).chain([&key]);
            self.places.extend(known.cloned().zip(0..));
        }
        self.entries.push((key, value));
        at
    }
}

impl<K, V> IntoIterator for Table<K, V> {
    type Item = (K, V);
    type IntoIter = std::vec::IntoIter<(K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.into_iter()
    }
}

impl<'t, K, V> IntoIterator for &'t Table<K, V> {
    type Item = &'t (K, V);
    type IntoIter = std::slice::Iter<'t, (K, V)>;

    fn into_iter(self) -> Self::IntoIter {
        self.entries.iter()
    }
}

/// Folds each word into the hash by a product of twice the width, whose halves are joined: every bit of the word reaches low
/// and high bits of the hash, both of which tables use.
#[derive(Clone, Copy, Debug, Default)]
pub struct FastHasher(u64);

/// An odd number with no pattern: the golden ratio's fraction in 64 bits.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

impl FastHasher {
    fn fold(&mut self, word: u64) {
        let product = u128::from(self.0.rotate_left(29) ^ word ^ 0x5851_f42d_4c95_7f2d) * u128::from(FACTOR);
        self.0 = (product as u64) ^ ((product >> 64) as u64);
    }
}

impl Hasher for FastHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.fold(u64::from_le_bytes(word) ^ ((chunk.len() as u64) << 56));
        }
    }

    fn write_u8(&mut self, value: u8) {
        self.fold(value.into());
    }

    fn write_u32(&mut self, value: u32) {
        self.fold(value.into());
    }

    fn write_u64(&mut self, value: u64) {
        self.fold(value);
    }

    fn write_u128(&mut self, value: u128) {
        self.fold(value as u64);
        self.fold((value >> 64) as u64);
    }

    fn write_usize(&mut self, value: usize) {
        self.fold(value as u64);
    }

    fn write_isize(&mut self, value: isize) {
        self.fold(value as u64);
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use super::*;

    #[test]
    fn keys_that_differ_in_few_bits_spread_over_low_and_high_bits() {
        let table: FastSet<u64> = FastSet::default();
        for shift in [0, 4, 12, 40] {
            let hashes = (0..256u64).map(|n| table.hasher().hash_one(n << shift));
            let (mut low, mut high) = (FastSet::default(), FastSet::default());
            for hash in hashes {
                low.insert(hash & 0xff);
                high.insert(hash >> 56);
            }
            // As many as random hashes hit are 162 of 256.
            assert!(low.len() > 140 && high.len() > 140, "{shift}: {} {}", low.len(), high.len());
        }
    }

    #[test]
    fn what_was_seen_is_known_again_whether_it_is_one_of_few_or_of_many() {
        let mut seen = Seen::default();
        assert!((0..100).all(|n| seen.insert(n)));
        assert!((0..100).all(|n| !seen.insert(n)));
        assert!(seen.insert(100));
    }

    #[test]
    fn a_table_of_few_or_of_many_finds_what_was_put_in_at_its_position() {
        let mut table: Table<u64, u64> = Table::default();
        assert!(table.is_empty() && table.get(&0).is_none());
        for n in 0..3 * FEW as u64 {
            assert_eq!(table.position(&n), None);
            table.insert(n, n);
            *table.entry(&n) += 100;
            for known in 0..=n {
                assert_eq!(table.position(&known), Some(known as usize));
                assert_eq!(table.get(&known), Some(&(known + 100)));
            }
            assert_eq!(table.len() as u64, n + 1);
            assert!(table.iter().map(|(key, _)| *key).eq(0..=n));
        }
        table.insert(3, 7);
        assert_eq!((table.at(3), table.len()), (Some(&(3, 7)), 3 * FEW));
        assert_eq!(*table.entry(&1000), 0);
        assert_eq!(table.position(&1000), Some(3 * FEW));
    }

    #[test]
    fn bytes_of_different_length_differ() {
        let table: FastSet<&str> = FastSet::default();
        assert_ne!(table.hasher().hash_one("a"), table.hasher().hash_one("a\0"));
        assert_ne!(table.hasher().hash_one(""), table.hasher().hash_one("\0"));
    }
}
