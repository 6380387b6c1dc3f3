//! The TCP segments of one window and shard, put together by connection.
//!
//! The state of a connection takes several KB. Where a capture holds more connections than fit into the processor's cache,
//! following its segments in the order of the frames would fetch that state from memory for each of them; taken by
//! connection it is fetched once for all segments of a window. Within a connection the order of the frames stays.

use crate::analyze::CopyKind;
use crate::flow::FlowRef;

/// Marks the end of a connection's turns.
const NONE: u32 = u32::MAX;

/// One segment that waits for its connection's turn.
#[derive(Clone, Copy, Debug)]
pub(super) struct Turn {
    /// Place of its frame in the window, as the shard was given it.
    pub at: u32,
    pub flow: FlowRef,
    /// The connection on the same ports before this one, which ended with this segment; [`FlowRef::NONE`] for none.
    pub replaces: FlowRef,
    pub sender: u8,
    pub copy: Option<CopyKind>,
    next: u32,
}

impl Default for Turn {
    fn default() -> Self {
        Self::new(0, FlowRef::NONE, 0)
    }
}

impl Turn {
    pub fn new(at: u32, flow: FlowRef, sender: u8) -> Self {
        Self { at, flow, replaces: FlowRef::NONE, sender, copy: None, next: NONE }
    }
}

/// Segments by group: of one connection, or of all connections that share a Wireshark stream.
#[derive(Default)]
pub(super) struct Turns {
    turns: Vec<Turn>,
    /// First and last turn of each group, in the order in which groups first appear.
    groups: Vec<(u32, u32)>,
    /// Window and group of each member that was seen, by its number in the shard.
    group_of: Vec<(u32, u32)>,
    window: u32,
}

impl Turns {
    /// Forgets the last window's.
    pub fn start(&mut self) {
        self.turns.clear();
        self.groups.clear();
        self.window = self.window.wrapping_add(1);
    }

    /// Adds a segment behind the others of `member`, which numbers what is followed together.
    pub fn add(&mut self, member: u32, turn: Turn) {
        let index = member as usize;
        if self.group_of.len() <= index {
            self.group_of.resize(index + 1, (self.window.wrapping_sub(1), 0));
        }
        let at = self.turns.len() as u32;
        self.turns.push(turn);
        let (window, group) = self.group_of[index];
        if window == self.window {
            let last = &mut self.groups[group as usize].1;
            self.turns[*last as usize].next = at;
            *last = at;
        } else {
            self.group_of[index] = (self.window, self.groups.len() as u32);
            self.groups.push((at, at));
        }
    }

    /// How many groups this window has.
    pub fn groups(&self) -> usize {
        self.groups.len()
    }

    /// All segments, group by group, each group in the order of its frames.
    pub fn iter(&self) -> impl Iterator<Item = Turn> {
        let turn_at = |at: u32| self.turns.get(at as usize).copied();
        self.groups
            .iter()
            .flat_map(move |(first, _)| std::iter::successors(turn_at(*first), move |turn| turn_at(turn.next)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_come_by_connection_and_in_order_within_it() {
        let mut turns = Turns::default();
        for _ in 0..2 {
            turns.start();
            for (at, member) in [7, 3, 7, 0, 3, 7].into_iter().enumerate() {
                turns.add(member, Turn::new(at as u32, FlowRef(member), 0));
            }
            let order: Vec<_> = turns.iter().map(|turn| (turn.flow.0, turn.at)).collect();
            assert_eq!(order, [(7, 0), (7, 2), (7, 5), (3, 1), (3, 4), (0, 3)]);
            assert_eq!(turns.groups(), 3);
        }
    }
}
