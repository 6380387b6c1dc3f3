//! What one direction has sent, as far as it may still matter: the unacknowledged part and a little before it.

use serde::{Deserialize, Serialize};

use std::collections::VecDeque;

use super::seq::{before, earlier, id_before, later};

/// Ranges kept at most; beyond it the oldest goes, acknowledged or not.
const MAX_RANGES: usize = 32_768;

/// Acknowledged ranges kept at most, for late originals.
const MAX_ACKED: usize = 4_096;

/// How many ranges above a late segment are asked who was sent first.
const MAX_ASKED: usize = 64;

/// One run of bytes that was seen in one piece.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sent {
    pub seq: u32,
    pub end: u32,
    /// Frame of the first copy seen.
    pub frame_no: u64,
    /// Capture time of the last copy.
    pub sent_ns: i64,
    /// Of the copy that was sent first, as far as seen.
    pub id: Option<u16>,
    pub tsval: Option<u32>,
    /// IP ID of the last copy, if that held the whole range in one frame.
    pub last_id: Option<u16>,
    /// Whether the first sending was seen, not only a repetition.
    pub is_original: bool,
    /// Whether a repetition was seen.
    pub is_resent: bool,
    pub is_sacked: bool,
}

/// Whether a segment was sent after or before what was seen with higher sequence numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Sent after higher bytes: a repetition.
    After,
    /// Sent before all of them: an original.
    Before,
    /// Equal marks, or none.
    Unknown,
}

/// What an ACK newly covered.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Acked {
    /// When the newest range it covers was sent, if that was sent only once.
    pub sample_ns: Option<i64>,
    /// It covers bytes below `limit` that were never resent and not yet SACKed: the original arrived.
    pub covers_original: bool,
    /// It covers bytes that were resent.
    pub covers_resent: bool,
}

/// Ranges in sequence order, without overlap.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct SentRing {
    ranges: VecDeque<Sent>,
    acked_count: usize,
}

impl SentRing {
    /// Asks for the memory of its ends, and of where the acknowledged part ends.
    pub fn touch(&self) -> u32 {
        let of = |sent: Option<&Sent>| sent.map_or(0, |sent| sent.seq);
        of(self.ranges.front()) ^ of(self.ranges.get(self.acked_count)) ^ of(self.ranges.back())
    }

    /// Appends bytes beyond all others.
    pub fn push(&mut self, sent: Sent) {
        if self.ranges.len() >= MAX_RANGES {
            self.pop();
        }
        self.ranges.push_back(sent);
    }

    /// The range that holds `seq`, or the first one after it.
    pub fn at_or_after(&self, seq: u32) -> Option<&Sent> {
        self.ranges.get(self.index_after(seq))
    }

    /// The range that holds `seq`.
    pub fn holding(&self, seq: u32) -> Option<&Sent> {
        self.at_or_after(seq).filter(|sent| !before(seq, sent.seq))
    }

    /// Whether the range that holds `seq` went out as one packet: the range after it has the next ID.
    pub fn took_one_id(&self, seq: u32) -> bool {
        let index = self.index_after(seq);
        let (Some(sent), Some(next)) = (self.ranges.get(index), self.ranges.get(index + 1)) else {
            return false;
        };
        let ids = sent.id.zip(next.id);
        sent.is_original && next.is_original && ids.is_some_and(|(this, next)| next == this.wrapping_add(1))
    }

    /// Whether all of `start..end` was seen before.
    pub fn holds_all(&self, start: u32, end: u32) -> bool {
        let mut at = start;
        for sent in self.ranges.range(self.index_after(start)..).take(MAX_ASKED) {
            if before(at, sent.seq) {
                return false;
            }
            at = sent.end;
            if !before(at, end) {
                return true;
            }
        }
        false
    }

    /// Order of sending by IP ID: originals above were sent in the order of their bytes, so the nearest one decides.
    pub fn order_by_id(&self, start: u32, id: u16) -> Order {
        let mut order = Order::Unknown;
        for sent in self.ranges.range(self.index_after(start)..).take(MAX_ASKED) {
            let Some(seen) = sent.id else { continue };
            if id_before(seen, id) {
                return Order::After;
            }
            order = Order::Before;
            if sent.is_original {
                break;
            }
        }
        order
    }

    /// Order of sending by TSval, which several segments may share.
    pub fn order_by_tsval(&self, start: u32, tsval: u32) -> Order {
        let mut order = Order::Unknown;
        for sent in self.ranges.range(self.index_after(start)..).take(MAX_ASKED) {
            let Some(seen) = sent.tsval else { continue };
            if before(seen, tsval) {
                return Order::After;
            }
            order = if seen == tsval { Order::Unknown } else { Order::Before };
            if sent.is_original {
                break;
            }
        }
        order
    }

    /// Takes in one more copy of `copy.seq..copy.end`, or of a part of it, somewhere below the highest bytes.
    pub fn cover(&mut self, copy: Sent) {
        let mut at = copy.seq;
        let mut index = self.index_after(at);
        while before(at, copy.end) {
            match self.ranges.get_mut(index) {
                Some(seen) if !before(at, seen.seq) => {
                    seen.sent_ns = copy.sent_ns;
                    let is_whole = copy.seq == seen.seq && !before(copy.end, seen.end);
                    seen.last_id = copy.last_id.filter(|_| is_whole);
                    seen.is_resent |= copy.is_resent || seen.is_original && copy.is_original;
                    if copy.is_original && !seen.is_original {
                        (seen.id, seen.tsval) = (copy.id, copy.tsval);
                        (seen.is_original, seen.is_resent) = (true, true);
                    }
                    at = seen.end;
                }
                next => {
                    let end = next.map_or(copy.end, |next| earlier(next.seq, copy.end));
                    if self.ranges.len() >= MAX_RANGES {
                        return;
                    }
                    self.ranges.insert(index, Sent { seq: at, end, ..copy });
                    self.acked_count += usize::from(index < self.acked_count);
                    at = end;
                }
            }
            index += 1;
        }
    }

    /// Marks `left..right` as SACKed; true if that includes bytes below `limit` that were never resent.
    pub fn sack(&mut self, left: u32, right: u32, limit: u32) -> bool {
        let from = self.index_after(left);
        let mut covers_original = false;
        for sent in self.ranges.range_mut(from..) {
            if before(right, sent.end) {
                break;
            }
            if !before(sent.seq, left) && !sent.is_sacked {
                sent.is_sacked = true;
                covers_original |= !sent.is_resent && !before(limit, sent.end);
            }
        }
        covers_original
    }

    /// Moves the acknowledged part up to `una`.
    pub fn acknowledge(&mut self, una: u32, limit: u32) -> Acked {
        let mut acked = Acked::default();
        while let Some(sent) = self.ranges.get(self.acked_count).filter(|sent| !before(una, sent.end)) {
            let is_clean = !sent.is_resent && sent.is_original && !sent.is_sacked;
            acked.sample_ns = is_clean.then_some(sent.sent_ns);
            acked.covers_resent |= sent.is_resent;
            acked.covers_original |= is_clean && !before(limit, sent.end);
            self.acked_count += 1;
        }
        acked
    }

    /// Forgets what was acknowledged and sent before `horizon_ns`.
    pub fn forget(&mut self, horizon_ns: i64) {
        while self.acked_count > 0 {
            let is_old = self.ranges.front().is_some_and(|sent| sent.sent_ns < horizon_ns);
            if !is_old && self.acked_count <= MAX_ACKED {
                return;
            }
            self.pop();
        }
    }

    /// Starts anew, as after a SYN with another number.
    pub fn clear(&mut self) {
        self.ranges.clear();
        self.acked_count = 0;
    }

    /// Gives memory back when there is hardly anything to remember.
    pub fn shrink(&mut self) {
        if self.ranges.len() <= 1 {
            self.ranges.shrink_to(16);
        }
    }

    fn pop(&mut self) {
        self.ranges.pop_front();
        self.acked_count = self.acked_count.saturating_sub(1);
    }

    /// Index of the first range that ends after `seq`.
    fn index_after(&self, seq: u32) -> usize {
        match self.ranges.back() {
            Some(last) if before(seq, last.end) => self.ranges.partition_point(|sent| !before(seq, sent.end)),
            _ => self.ranges.len(),
        }
    }
}

/// The part of `left..right` that `seen` (an earlier block) did not hold; `None` if it held all.
pub(super) fn news((left, right): (u32, u32), seen: &[(u32, u32)]) -> Option<(u32, u32)> {
    let mut rest = (left, right);
    for &(seen_left, seen_right) in seen {
        let touches = before(seen_left, rest.1) && before(rest.0, seen_right);
        if !touches {
            continue;
        }
        if !before(rest.0, seen_left) {
            rest.0 = later(rest.0, seen_right);
        } else if !before(seen_right, rest.1) {
            rest.1 = earlier(rest.1, seen_left);
        }
        if !before(rest.0, rest.1) {
            return None;
        }
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn original(seq: u32, end: u32, id: u16) -> Sent {
        Sent { seq, end, id: Some(id), last_id: Some(id), is_original: true, ..Sent::default() }
    }

    #[test]
    fn a_hole_is_filled_without_overlap_and_keeps_the_order() {
        let mut ring = SentRing::default();
        ring.push(original(0, 100, 1));
        ring.push(original(200, 300, 3));
        ring.cover(original(50, 250, 2));
        let all: Vec<_> = ring.ranges.iter().map(|sent| (sent.seq, sent.end)).collect();
        assert_eq!(all, [(0, 100), (100, 200), (200, 300)]);
        assert!(ring.holds_all(0, 300) && !ring.holds_all(0, 301));
    }

    #[test]
    fn the_nearest_original_above_decides_who_was_first() {
        let mut ring = SentRing::default();
        ring.push(original(0, 100, 1));
        ring.push(Sent { is_original: false, is_resent: true, ..original(200, 300, 9) });
        ring.push(original(300, 400, 4));
        assert_eq!(ring.order_by_id(100, 2), Order::Before);
        assert_eq!(ring.order_by_id(100, 5), Order::After);
        assert_eq!(ring.order_by_id(400, 5), Order::Unknown);
    }

    #[test]
    fn only_the_new_part_of_a_sack_block_is_looked_at() {
        assert_eq!(news((10, 30), &[(10, 20)]), Some((20, 30)));
        assert_eq!(news((10, 30), &[(20, 30)]), Some((10, 20)));
        assert_eq!(news((10, 30), &[(10, 30)]), None);
        assert_eq!(news((10, 30), &[(40, 50)]), Some((10, 30)));
    }
}
