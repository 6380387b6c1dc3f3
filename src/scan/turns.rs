//! The TCP segments of one window and shard, put together by connection.
//!
//! The state of a connection takes several KB. Where a capture holds more connections than fit into the processor's cache,
//! following its segments in the order of the frames would fetch that state from memory for each of them; taken by
//! connection it is fetched once for all segments of a window. Within a connection the order of the frames stays.

use crate::analyze::CopyKind;
use crate::flow::FlowRef;

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
    group: u32,
}

impl Default for Turn {
    fn default() -> Self {
        Self::new(0, FlowRef::NONE, 0)
    }
}

impl Turn {
    pub fn new(at: u32, flow: FlowRef, sender: u8) -> Self {
        Self { at, flow, replaces: FlowRef::NONE, sender, copy: None, group: 0 }
    }
}

/// Segments by group: of one connection, or of all connections that share a Wireshark stream.
#[derive(Default)]
pub(super) struct Turns {
    turns: Vec<Turn>,
    /// Turns of each group, in the order in which groups first appear.
    counts: Vec<u32>,
    /// Window and group of each member that was seen, by its number in the shard.
    group_of: Vec<(u32, u32)>,
    window: u32,
    /// Places of the turns, group by group; made by [`Self::sort`].
    order: Vec<u32>,
}

impl Turns {
    /// Forgets the last window's.
    pub fn start(&mut self) {
        self.turns.clear();
        self.counts.clear();
        self.order.clear();
        self.window = self.window.wrapping_add(1);
    }

    /// Adds a segment behind the others of `member`, which numbers what is followed together.
    pub fn add(&mut self, member: u32, turn: Turn) {
        let index = member as usize;
        if self.group_of.len() <= index {
            self.group_of.resize(index + 1, (self.window.wrapping_sub(1), 0));
        }
        let (window, mut group) = self.group_of[index];
        if window == self.window {
            self.counts[group as usize] += 1;
        } else {
            group = self.counts.len() as u32;
            self.group_of[index] = (self.window, group);
            self.counts.push(1);
        }
        self.turns.push(Turn { group, ..turn });
    }

    /// How many groups this window has.
    pub fn groups(&self) -> usize {
        self.counts.len()
    }

    /// Puts the segments in order: group by group, each group in the order of its frames.
    pub fn sort(&mut self) {
        let mut first = 0;
        for count in &mut self.counts {
            first += std::mem::replace(count, first);
        }
        self.order.clear();
        self.order.resize(self.turns.len(), 0);
        for (at, turn) in self.turns.iter().enumerate() {
            let place = &mut self.counts[turn.group as usize];
            self.order[*place as usize] = at as u32;
            *place += 1;
        }
    }

    /// All segments in that order. Where each lies is known beforehand, so that reading many of them waits for memory once.
    pub fn iter(&self) -> impl Iterator<Item = Turn> {
        self.order.iter().filter_map(|at| self.turns.get(*at as usize).copied())
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
            turns.sort();
            let order: Vec<_> = turns.iter().map(|turn| (turn.flow.0, turn.at)).collect();
            assert_eq!(order, [(7, 0), (7, 2), (7, 5), (3, 1), (3, 4), (0, 3)]);
            assert_eq!(turns.groups(), 3);
        }
    }
}
