//! The things of the last so many frames, found by hash: what a search for copies of packets remembers.
//!
//! The things lie one after the other in a ring, in the order they came; beside it a table leads from a hash to places in the
//! ring. What is forgotten, and when, is a matter of the frames alone: neither of the hashes, which differ from run to run,
//! nor of what else has come.

use std::collections::VecDeque;

use hashbrown::HashTable;

#[derive(Clone, Copy, Debug)]
struct Thing<T> {
    hash: u64,
    frame: u64,
    thing: T,
}

/// Remembers things for so many frames.
#[derive(Clone, Debug)]
pub(super) struct Recent<T> {
    /// Lower halves of running numbers.
    index: HashTable<u32>,
    ring: VecDeque<Thing<T>>,
    /// Running number of the ring's first thing.
    first: u32,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self { index: HashTable::new(), ring: VecDeque::new(), first: 0 }
    }
}

impl<T: Copy> Recent<T> {
    /// Forgets what came before a frame.
    pub fn forget_before(&mut self, frame: u64) {
        while let Some(oldest) = self.ring.front().filter(|oldest| oldest.frame < frame) {
            let first = self.first;
            if let Ok(entry) = self.index.find_entry(oldest.hash, |number| *number == first) {
                entry.remove();
            }
            self.ring.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }

    /// The oldest thing under `hash` that `is_it` holds of.
    pub fn find(&self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<&T> {
        let places = self.index.iter_hash(hash).map(|number| number.wrapping_sub(self.first));
        let found =
            places.filter(|place| self.at(*place).is_some_and(|known| known.hash == hash && is_it(&known.thing)));
        found.min().and_then(|place| self.at(place)).map(|known| &known.thing)
    }

    /// Adds a thing that came with a frame.
    pub fn add(&mut self, hash: u64, frame: u64, thing: T) {
        let number = self.first.wrapping_add(self.ring.len() as u32);
        self.ring.push_back(Thing { hash, frame, thing });
        let (ring, first) = (&self.ring, self.first);
        let hash_of = |number: &u32| ring.get(number.wrapping_sub(first) as usize).map_or(0, |known| known.hash);
        self.index.insert_unique(hash, number, hash_of);
    }

    /// Asks for the memory that [`Self::find`] and [`Self::add`] will need for a hash. Asked for several hashes in a row, it
    /// comes for all of them in the time of one.
    pub fn touch(&self, hash: u64) -> u32 {
        self.index.iter_hash(hash).next().copied().unwrap_or(0)
    }

    fn at(&self, place: u32) -> Option<&Thing<T>> {
        self.ring.get(place as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes of which every ninth is like the one before.
    fn hash_of(number: u64) -> u64 {
        (number - u64::from(number % 9 == 0)).wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn everything_is_found_for_so_many_frames_and_nothing_after_them() {
        let mut recent = Recent::default();
        for number in 1..=10_000_u64 {
            recent.forget_before(number.saturating_sub(500));
            recent.add(hash_of(number), number, number);
            let is = |number: u64| recent.find(hash_of(number), |found| *found == number) == Some(&number);
            assert!((number.saturating_sub(500).max(1)..=number).all(is) && (number <= 501 || !is(number - 501)));
        }
    }

    #[test]
    fn of_equal_ones_the_oldest_is_found() {
        let mut recent = Recent::default();
        for number in 0..8 {
            recent.add(5, number, number);
        }
        assert_eq!(recent.find(5, |_| true), Some(&0));
        assert_eq!(recent.find(5, |number| *number > 3), Some(&4));
        recent.forget_before(2);
        assert_eq!(recent.find(5, |_| true), Some(&2));
    }

    #[test]
    fn running_numbers_may_wrap() {
        let mut recent = Recent { first: u32::MAX - 100, ..Recent::default() };
        for number in 1..400_u64 {
            recent.forget_before(number.saturating_sub(32));
            recent.add(hash_of(number), number, number);
            assert_eq!(recent.find(hash_of(number), |found| *found == number), Some(&number));
            assert_eq!(recent.index.len(), recent.ring.len());
        }
    }
}
