//! The things of the last so many frames, found by hash: what a search for copies of packets remembers.
//!
//! The things lie one after the other in a ring, in the order they came; beside it a table of sets leads from a hash to places
//! in the ring. Each set is one cache line, so that looking something up that is not there, and noting it, reads one line from
//! anywhere and writes the ring's next: the tables of many connections do not fit into a processor's cache. What finds no room
//! in its set is kept in a list, so that nothing is forgotten before its time, whatever the hashes are: they differ from run
//! to run.

use std::collections::VecDeque;

/// Places of one set.
const WAYS: usize = 8;
/// Sets at first; there are always at least four places for each thing, so that few sets are full.
const FEWEST_SETS: usize = 64;
const PLACES_EACH: usize = 4;
/// Places that are listed beside full sets at most. Hashes that are spread need a few; only things that are all under one hash
/// need more, and each of them would be looked at for each packet.
const MOST_CROWDED: usize = 64;

/// Where in the ring something is: nowhere, once the ring is past it.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// The lower half of its hash.
    tag: u32,
    /// The lower half of its running number, from 1.
    number: u32,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Set([Place; WAYS]);

#[derive(Clone, Copy, Debug)]
struct Thing<T> {
    hash: u64,
    frame: u64,
    thing: T,
}

/// Remembers things until they are to be forgotten.
#[derive(Clone, Debug)]
pub(super) struct Recent<T> {
    sets: Vec<Set>,
    /// Places that found no room in their sets; very few.
    crowded: Vec<Place>,
    ring: VecDeque<Thing<T>>,
    /// Running number of the ring's first thing.
    first: u32,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self { sets: Vec::new(), crowded: Vec::new(), ring: VecDeque::new(), first: 1 }
    }
}

impl<T: Copy> Recent<T> {
    /// Forgets what came before a frame.
    pub fn forget_before(&mut self, frame: u64) {
        while self.ring.front().is_some_and(|known| known.frame < frame) {
            self.ring.pop_front();
            self.first = self.first.wrapping_add(1);
        }
        if self.ring.is_empty() && self.sets.len() > FEWEST_SETS {
            // A busy time is over: nobody may come here any more.
            *self = Self { first: self.first, ..Self::default() };
        }
    }

    /// The oldest thing under `hash` that `is_it` holds of.
    pub fn find(&self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<&T> {
        let set = self.sets.get(self.set_of(hash))?;
        let mut found: Option<usize> = None;
        for place in set.0.iter().chain(&self.crowded).filter(|place| place.tag == hash as u32) {
            let at = self.at(place);
            if self.ring.get(at).is_some_and(|known| known.hash == hash && is_it(&known.thing)) {
                found = Some(found.map_or(at, |oldest| oldest.min(at)));
            }
        }
        found.and_then(|at| self.ring.get(at)).map(|known| &known.thing)
    }

    /// Adds a thing that came with a frame.
    pub fn add(&mut self, hash: u64, frame: u64, thing: T) {
        self.ring.push_back(Thing { hash, frame, thing });
        if self.ring.len() * PLACES_EACH > self.sets.len() * WAYS {
            let sets = (self.sets.len() * 2).max(FEWEST_SETS);
            self.sets.clear();
            self.sets.resize(sets, Set::default());
            self.crowded.clear();
            (0..self.ring.len()).for_each(|at| self.note(at));
        } else {
            self.note(self.ring.len() - 1);
        }
    }

    /// Enters what lies at a place of the ring.
    fn note(&mut self, at: usize) {
        let Some(hash) = self.ring.get(at).map(|known| known.hash) else { return };
        let (first, count) = (self.first, self.ring.len());
        let is_free = |place: &Place| place.number.wrapping_sub(first) as usize >= count || place.number == 0;
        let noted = Place { tag: hash as u32, number: first.wrapping_add(at as u32) };
        let set = self.set_of(hash);
        match self.sets[set].0.iter_mut().find(|place| is_free(place)) {
            Some(place) => *place = noted,
            None => {
                self.crowded.retain(|place| !is_free(place));
                if self.crowded.len() == MOST_CROWDED {
                    self.crowded.remove(0);
                }
                self.crowded.push(noted);
            }
        }
    }

    /// Asks for the memory that [`Self::find`] and [`Self::add`] will need for a hash. Asked for several hashes in a row, it
    /// comes for all of them in the time of one.
    pub fn touch(&self, hash: u64) -> u32 {
        self.sets.get(self.set_of(hash)).map_or(0, |set| set.0[0].tag)
    }

    /// Where in the ring a place points; beyond it where that is forgotten.
    fn at(&self, place: &Place) -> usize {
        place.number.wrapping_sub(self.first) as usize
    }

    fn set_of(&self, hash: u64) -> usize {
        (hash >> 32) as usize & self.sets.len().saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hashes of which every ninth is like the one before.
    fn hash_of(number: u64) -> u64 {
        (number - u64::from(number.is_multiple_of(9))).wrapping_mul(0x9e37_79b9_7f4a_7c15)
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
    fn few_sets_are_full_and_memory_is_given_back() {
        let mut recent = Recent::default();
        for number in 1..=5_000_u64 {
            recent.add(hash_of(number), number, number);
        }
        assert!(recent.sets.len() * WAYS >= 5_000 * PLACES_EACH && recent.crowded.len() < 100);
        recent.forget_before(4_990);
        assert_eq!(recent.find(hash_of(4_988), |_| true), None);
        assert_eq!(recent.find(hash_of(4_991), |_| true), Some(&4_991));
        recent.forget_before(6_000);
        assert_eq!((recent.sets.capacity(), recent.ring.capacity()), (0, 0));
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
    fn very_many_under_one_hash_are_not_all_looked_at() {
        let mut recent = Recent::default();
        for number in 0..5_000 {
            recent.add(5, number, number);
        }
        assert!(recent.crowded.len() <= MOST_CROWDED);
        assert_eq!(recent.find(5, |number| *number == 4_999), Some(&4_999));
    }

    #[test]
    fn running_numbers_may_wrap() {
        let mut recent = Recent { first: u32::MAX - 100, ..Recent::default() };
        for number in 1..400_u64 {
            recent.forget_before(number.saturating_sub(32));
            recent.add(hash_of(number), number, number);
            assert_eq!(recent.find(hash_of(number), |found| *found == number), Some(&number));
        }
    }
}
