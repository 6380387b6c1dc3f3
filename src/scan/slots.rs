//! States by index, each of them at work or at rest: [`frozen`], in an [`Attic`].

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::attic::{Attic, AtticFile, Place};
use crate::analyze::frozen;

enum Slot<T> {
    Empty,
    Live(Box<T>),
    Rest(Place),
}

/// States of one shard.
pub(crate) struct Slots<T> {
    slots: Vec<Slot<T>>,
    /// How many are at work.
    live: usize,
    attic: Attic,
    scratch: Vec<u8>,
}

impl<T> Default for Slots<T> {
    fn default() -> Self {
        Self { slots: Vec::new(), live: 0, attic: Attic::default(), scratch: Vec::new() }
    }
}

impl<T: Clone + Default + Serialize + DeserializeOwned> Slots<T> {
    /// The state at an index, made where it is new, brought back where it was at rest.
    pub fn live(&mut self, index: usize) -> &mut T {
        if self.slots.len() <= index {
            self.slots.resize_with(index + 1, || Slot::Empty);
        }
        let slot = &mut self.slots[index];
        match slot {
            Slot::Live(_) => {}
            Slot::Empty => {
                self.live += 1;
                *slot = Slot::Live(Box::default());
            }
            Slot::Rest(place) => {
                self.live += 1;
                let state = thawed(&self.attic, *place, &mut self.scratch);
                self.attic.forget(*place);
                *slot = Slot::Live(Box::new(state));
            }
        }
        match slot {
            Slot::Live(state) => state,
            _ => unreachable!("it was just made"),
        }
    }

    /// The state at an index where it is at work, to look at.
    pub fn seen_at_work(&self, index: usize) -> Option<&T> {
        match self.slots.get(index)? {
            Slot::Live(state) => Some(state),
            _ => None,
        }
    }

    /// The state at an index where there is one already.
    pub fn known(&mut self, index: usize) -> Option<&mut T> {
        let is_there = self.slots.get(index).is_some_and(|slot| !matches!(slot, Slot::Empty));
        is_there.then(|| self.live(index))
    }

    /// The state at an index where it is at work.
    pub fn at_work(&mut self, index: usize) -> Option<&mut T> {
        match self.slots.get_mut(index)? {
            Slot::Live(state) => Some(state),
            _ => None,
        }
    }

    /// All that are at work.
    pub fn each_at_work(&mut self) -> impl Iterator<Item = &mut T> {
        self.slots.iter_mut().filter_map(|slot| match slot {
            Slot::Live(state) => Some(&mut **state),
            _ => None,
        })
    }

    /// The state at an index, to look at; one at rest stays so.
    pub fn get(&self, index: usize) -> Option<Cow<'_, T>> {
        match self.slots.get(index)? {
            Slot::Empty => None,
            Slot::Live(state) => Some(Cow::Borrowed(state)),
            Slot::Rest(place) => Some(Cow::Owned(thawed(&self.attic, *place, &mut Vec::new()))),
        }
    }

    /// The first fields of a state that is at rest: those of `U` in its order.
    pub fn start_at_rest<U: DeserializeOwned>(&self, index: usize) -> Option<U> {
        let Slot::Rest(place) = self.slots.get(index)? else { return None };
        self.attic.read(*place, &mut Vec::new()).and_then(frozen::thaw_start)
    }

    /// How many are at work.
    pub fn at_work_count(&self) -> usize {
        self.live
    }

    /// See [`Attic::keep_in_memory`].
    #[cfg(test)]
    pub fn keep_in_memory(&mut self, most: usize) {
        self.attic.keep_in_memory(most);
    }

    /// Puts a state to rest, where it can be packed and is not there already.
    pub fn rest(&mut self, index: usize) {
        if let Some(slot) = self.slots.get_mut(index)
            && let Slot::Live(state) = slot
            && let Some(packed) = frozen::freeze(&**state, &mut self.scratch)
            && let Some(place) = self.attic.keep(packed)
        {
            *slot = Slot::Rest(place);
            self.live -= 1;
            if self.attic.is_wasteful() {
                self.tidy();
            }
        }
    }

    /// Moves what rests to an attic without gaps. What cannot be moved is brought back to work.
    fn tidy(&mut self) {
        let mut tidy = self.attic.another();
        for slot in &mut self.slots {
            let Slot::Rest(place) = slot else { continue };
            let moved = self.attic.read(*place, &mut self.scratch).and_then(|packed| tidy.keep(packed));
            match moved {
                Some(moved) => *place = moved,
                None => {
                    self.live += 1;
                    *slot = Slot::Live(Box::new(thawed(&self.attic, *place, &mut self.scratch)));
                }
            }
        }
        self.attic = tidy;
    }

    /// Lets older ones of what rests lie in a file. Call it before anything is put to rest.
    pub fn use_file(&mut self, file: &Arc<AtticFile>) {
        self.attic = Attic::new(file);
    }
}

/// What [`frozen::freeze`] packed is always what it unpacks: both sides are derived from one declaration. Where it cannot be
/// read from the file any more, the run ends with the error that the file keeps.
fn thawed<T: Default + DeserializeOwned>(attic: &Attic, place: Place, scratch: &mut Vec<u8>) -> T {
    let Some(packed) = attic.read(place, scratch) else { return T::default() };
    let state = frozen::thaw(packed);
    debug_assert!(state.is_some(), "a state that was packed here cannot be unpacked");
    state.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_rested_is_what_it_was() {
        let mut slots = Slots::<Vec<u64>>::default();
        for index in 0..1_000 {
            slots.live(index * 2).extend([index as u64, 7]);
            slots.rest(index * 2);
        }
        assert_eq!((slots.each_at_work().count(), slots.at_work_count()), (0, 0));
        assert!(slots.get(1).is_none() && slots.known(1).is_none() && slots.get(5_000).is_none());
        for index in 0..1_000 {
            assert_eq!(slots.get(index * 2).as_deref(), Some(&vec![index as u64, 7]));
        }
        slots.live(1_998).push(9);
        assert_eq!(slots.known(1_998).cloned(), Some(vec![999, 7, 9]));
        assert_eq!((slots.each_at_work().count(), slots.at_work_count()), (1, 1));
        assert!(slots.at_work(1_998).is_some() && slots.at_work(1_500).is_none());
    }
}
