//! The last so many things, found by hash: what a search for copies of packets remembers.
//!
//! The things lie one after the other in a ring, in the order they came; beside it a table of sets leads from a hash to its
//! places in the ring. Each set is one cache line, so that looking something up that is not there, and noting it, reads one
//! line from anywhere and writes the ring's next: the tables of many connections do not fit into a processor's cache.

/// Places of one set.
pub(super) const WAYS: usize = 8;

/// Where in the ring something is.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// The lower half of its hash.
    tag: u32,
    /// The lower half of its running number, from 1; 0 = free. One thing in four thousand million is taken for none.
    number: u32,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Set([Place; WAYS]);

/// Remembers the last things that were added: at most [`WAYS`] for each set, fewer where hashes crowd.
#[derive(Clone, Debug)]
pub(super) struct Recent<T> {
    sets: Vec<Set>,
    ring: Vec<(u64, T)>,
    /// How many things were added: the running number of the last one, of which places keep the lower half.
    added: u64,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self { sets: Vec::new(), ring: Vec::new(), added: 0 }
    }
}

impl<T: Copy> Recent<T> {
    /// Makes room for `sets * WAYS` things; `sets` is a power of two.
    pub fn with_sets(sets: usize) -> Self {
        Self { sets: vec![Set::default(); sets.next_power_of_two()], ..Self::default() }
    }

    pub fn sets(&self) -> usize {
        self.sets.len()
    }

    /// The oldest thing under `hash` that `is_it` holds of.
    pub fn find(&self, hash: u64, is_it: impl Fn(&T) -> bool) -> Option<&T> {
        let set = self.sets.get(self.set_of(hash))?;
        let mut found: Option<(u32, &T)> = None;
        for place in set.0.iter().filter(|place| place.tag == hash as u32) {
            let Some((_, thing)) = self.at(place.number).filter(|(seen, thing)| *seen == hash && is_it(thing)) else {
                continue;
            };
            let age = (self.added as u32).wrapping_sub(place.number);
            if found.is_none_or(|(oldest, _)| oldest < age) {
                found = Some((age, thing));
            }
        }
        found.map(|(_, thing)| thing)
    }

    /// Adds a thing. The oldest of its set is forgotten for it, and what was added a whole round of the ring ago.
    pub fn add(&mut self, hash: u64, thing: T) {
        if self.sets.is_empty() {
            return;
        }
        self.added += 1;
        let last = self.added as u32;
        let (at, set) = (self.ring_index(last), self.set_of(hash));
        // The least after the newest, counted in a circle: a free place, else the oldest.
        if let Some(place) = self.sets[set].0.iter_mut().min_by_key(|place| place.number.wrapping_sub(last)) {
            *place = Place { tag: hash as u32, number: last };
        }
        match self.ring.get_mut(at) {
            Some(old) => *old = (hash, thing),
            None => self.ring.push((hash, thing)),
        }
    }

    /// Asks for the memory that [`Self::find`] and [`Self::add`] will need for a hash. Asked for several hashes in a row, it
    /// comes for all of them in the time of one.
    pub fn touch(&self, hash: u64) -> u32 {
        self.sets.get(self.set_of(hash)).map_or(0, |set| set.0[0].tag)
    }

    /// What has a running number, unless the ring has gone round since.
    fn at(&self, number: u32) -> Option<&(u64, T)> {
        let is_there = ((self.added as u32).wrapping_sub(number) as usize) < self.sets.len() * WAYS;
        self.ring.get(self.ring_index(number)).filter(|_| is_there && number != 0)
    }

    fn ring_index(&self, number: u32) -> usize {
        (number as usize).wrapping_sub(1) & (self.sets.len() * WAYS).saturating_sub(1)
    }

    fn set_of(&self, hash: u64) -> usize {
        (hash >> 32) as usize & self.sets.len().saturating_sub(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hash_of(number: u64) -> u64 {
        number.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number << 40
    }

    #[test]
    fn everything_is_found_until_as_many_came_after_it_as_there_is_room_for() {
        let mut recent = Recent::with_sets(64);
        for number in 1..=10_000_u64 {
            recent.add(hash_of(number), number);
            assert_eq!(recent.find(hash_of(number), |_| true), Some(&number));
            // Sets hold eight each: of the last fourth of the room nearly all is there.
            if number > 1_000 {
                let there = (number - 127..=number).filter(|n| recent.find(hash_of(*n), |_| true) == Some(n)).count();
                assert!(there >= 124, "{there} of 128 at {number}");
                assert_eq!(recent.find(hash_of(number - 512), |_| true), None);
            }
        }
    }

    #[test]
    fn of_equal_ones_the_oldest_is_found_and_the_oldest_makes_room() {
        let mut recent = Recent::with_sets(1);
        for number in 0..8_u32 {
            recent.add(5, number);
        }
        assert_eq!(recent.find(5, |_| true), Some(&0));
        assert_eq!(recent.find(5, |number| *number > 3), Some(&4));
        recent.add(5, 8);
        assert_eq!(recent.find(5, |_| true), Some(&1));
    }

    #[test]
    fn running_numbers_may_wrap() {
        let mut recent = Recent::with_sets(4);
        for number in 0..400_u64 {
            if number == 40 {
                // As if the ring had gone round very often.
                recent.added += (1 << 32) - 320;
            }
            recent.add(hash_of(number), number);
            // The one whose number's lower half is 0 is taken for none.
            let expected = Some(&number).filter(|_| number != 319);
            assert_eq!(recent.find(hash_of(number), |_| true), expected, "{number}");
        }
    }
}
