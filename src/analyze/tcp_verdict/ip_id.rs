//! The sender's IP identification as a clock: who was sent first.
//!
//! Linux numbers the packets of a TCP socket one by one, a retransmission included, so the IDs of one direction give
//! the order of sending even where times and sequence numbers cannot. Other systems send zero, a constant, random
//! numbers, or share one counter over all connections; network cards that cut offloaded frames may number the pieces in the
//! wrong byte order. Then the clock says that it cannot be used.

use serde::{Deserialize, Serialize};

use super::seq::{before, id_before};
use super::types::Segment;

/// A step of the counter that is taken as "the same counter went on". Random IDs come this near by chance in 3 % of
/// cases; a counter of one socket goes further only if a thousand packets were lost in a row.
const NEAR: u16 = 1024;

/// What a counter goes on by where it is written in the wrong byte order.
const WRONG_ORDER_STEP: u16 = 256;

/// A clock that jumped is still believed while it went on properly this many times as often.
const NEAR_PER_FAR: u32 = 4;

/// The same of one that was found wrong: jumps happen between packets, but no counter gives later packets earlier numbers. One
/// packet may seem to have them where what was sent before it was lost on the way to the tap, and came again first.
const NEAR_PER_WRONG: u32 = 64;

/// A counter serves this connection alone if it went on without a gap so many times as often as with one that no
/// missing bytes explain. A counter that other connections share has such gaps after every pause.
const NEXT_PER_GAP: u32 = 32;

/// What one more ID means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct IdReading {
    /// The ID, if it can say anything about order.
    pub id: Option<u16>,
    /// Sent earlier than something that was seen before it.
    pub is_late: bool,
    /// Follows directly on the highest seen: nothing sent before it is missing that was not missing already.
    pub is_next: bool,
    /// Packets between the highest seen and this one that were not seen.
    pub missing: u16,
}

/// The IDs of one direction.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct IdClock {
    highest: Option<u16>,
    /// How many IDs the frame with the highest one took: an offloaded frame takes one per segment.
    highest_took: u16,
    /// When that frame passed.
    highest_ns: i64,
    /// Where its bytes end, if they were none that had been seen before.
    highest_end: Option<u32>,
    near_count: u32,
    far_count: u32,
    wrong_count: u32,
    swapped_count: u32,
    next_count: u32,
    strange_gap_count: u32,
}

impl IdClock {
    /// Whether the IDs give the order of sending.
    pub fn is_usable(&self) -> bool {
        let is_wrong = self.near_count / NEAR_PER_WRONG < self.wrong_count;
        let far_count = self.far_count.saturating_add(self.swapped_count);
        self.near_count > 0 && self.near_count / NEAR_PER_FAR >= far_count && !is_wrong
    }

    /// Whether every ID that is missing was a packet of this direction, not of another connection.
    pub fn is_own(&self) -> bool {
        self.is_usable() && self.next_count / NEXT_PER_GAP > self.strange_gap_count
    }

    /// IDs were missing before a segment that follows the bytes seen before it.
    pub fn on_strange_gap(&mut self) {
        self.strange_gap_count = self.strange_gap_count.saturating_add(1);
    }

    /// Whether an ID names one packet of this direction: a sender with a constant ID is found out here.
    pub fn names_packets(&self) -> bool {
        self.near_count.saturating_add(self.swapped_count) / NEAR_PER_FAR >= self.far_count
    }

    /// The next segment's ID. `took`: how many segments of one MSS the frame stands for; `is_news`: it carries bytes beyond all
    /// before. What comes later than `late_ns` after the highest was sent after it, whatever its ID: again, or by a counter that
    /// went round.
    pub fn read(&mut self, s: &Segment, took: u32, is_news: bool, late_ns: impl FnOnce() -> i64) -> IdReading {
        let Some(id) = s.ip_id.filter(|&id| id != 0) else {
            return IdReading::default();
        };
        let took = took.min(u32::from(NEAR)) as u16;
        let end = is_news.then(|| s.seq.wrapping_add(s.seq_len()));
        let Some(highest) = self.highest else {
            self.advance(id, took, s.time_ns, end);
            return IdReading { id: Some(id), ..IdReading::default() };
        };
        let step = id.wrapping_sub(highest);
        let is_late = !id_before(highest, id);
        let distance = step.min(step.wrapping_neg());
        let is_swapped = distance != 0 && distance.is_multiple_of(WRONG_ORDER_STEP);
        let is_far = distance == 0 || distance > NEAR || is_swapped;
        if is_late && !is_far && s.time_ns.saturating_sub(self.highest_ns) > late_ns() {
            return IdReading::default();
        }
        // Bytes are sent in order, and what begins after others' end was sent after them: a network card that numbers the pieces
        // of an offloaded frame in the wrong byte order says otherwise.
        let is_wrong = is_late && self.highest_end.is_some_and(|end| !before(s.seq, end));
        if is_far || is_wrong {
            let count = match (is_swapped, is_far) {
                (true, _) => &mut self.swapped_count,
                (_, true) => &mut self.far_count,
                _ => &mut self.wrong_count,
            };
            *count = count.saturating_add(1);
            self.advance(id, took, s.time_ns, end);
            return IdReading::default();
        }
        self.near_count = self.near_count.saturating_add(1);
        let took_before = self.highest_took;
        let is_next = step == took_before;
        if is_next {
            self.next_count = self.next_count.saturating_add(1);
        }
        if !is_late {
            self.advance(id, took, s.time_ns, end);
        }
        if !self.is_usable() {
            return IdReading::default();
        }
        let missing = if is_late { 0 } else { step.saturating_sub(took_before) };
        IdReading { id: Some(id), is_late, is_next, missing }
    }

    fn advance(&mut self, id: u16, took: u16, now_ns: i64, end: Option<u32>) {
        (self.highest, self.highest_took, self.highest_ns, self.highest_end) = (Some(id), took, now_ns, end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A segment without bytes at a time, half a microsecond before which the rest may be late.
    fn read(clock: &mut IdClock, id: u16, took: u32, time_ns: i64) -> IdReading {
        clock.read(&Segment { ip_id: Some(id), time_ns, ..Segment::default() }, took, false, || 500)
    }

    #[test]
    fn a_counter_gives_the_order_across_its_wrap() {
        let mut clock = IdClock::default();
        read(&mut clock, 65534, 1, 0);
        assert_eq!(read(&mut clock, 65535, 1, 0), IdReading { id: Some(65535), is_next: true, ..IdReading::default() });
        assert_eq!(read(&mut clock, 2, 1, 0), IdReading { id: Some(2), missing: 2, ..IdReading::default() });
        assert_eq!(read(&mut clock, 1, 1, 0), IdReading { id: Some(1), is_late: true, ..IdReading::default() });
    }

    #[test]
    fn an_offloaded_frame_takes_one_id_per_segment() {
        let mut clock = IdClock::default();
        read(&mut clock, 10, 45, 0);
        assert!(read(&mut clock, 55, 2, 0).is_next && read(&mut clock, 57, 1, 0).is_next);
    }

    #[test]
    fn zero_constant_and_random_ids_say_nothing() {
        let mut clock = IdClock::default();
        for _ in 0..10 {
            assert_eq!(read(&mut clock, 0, 1, 0), IdReading::default());
        }
        assert!(!clock.is_usable());
        for _ in 0..10 {
            read(&mut clock, 7, 1, 0);
        }
        assert!(!clock.is_usable() && !clock.names_packets());
        let (mut random, mut state) = (IdClock::default(), 1u32);
        for _ in 0..64 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            read(&mut random, (state >> 16) as u16, 1, 0);
        }
        assert!(!random.is_usable());
    }

    #[test]
    fn after_a_long_silence_an_older_id_is_not_late_and_the_counter_goes_on_where_it_was() {
        let mut clock = IdClock::default();
        for id in [10, 11, 13] {
            read(&mut clock, id, 1, 1_000);
        }
        let late = IdReading { id: Some(12), is_late: true, ..IdReading::default() };
        assert_eq!(read(&mut clock, 12, 1, 1_500), late);
        for id in [10, 11, 12] {
            assert_eq!(read(&mut clock, id, 1, 1_501), IdReading::default());
        }
        assert!(clock.is_usable() && clock.names_packets());
        // A clock that was set back tells no silence.
        assert_eq!(read(&mut clock, 12, 1, -9_000), late);
        assert!(read(&mut clock, 14, 1, 9_000).is_next && clock.is_usable());
        assert_eq!(read(&mut clock, 13, 1, 9_500), IdReading { id: Some(13), ..late });
    }

    #[test]
    fn ids_in_the_wrong_byte_order_are_no_clock() {
        let mut clock = IdClock::default();
        for (at, id) in (0x76_u16..0x80).map(|high| high << 8 | 0x3d).chain(0x763e..0x7644).enumerate() {
            read(&mut clock, id, 1, at as i64);
            assert!(!clock.is_usable() && clock.names_packets(), "{id:#x}");
        }
        // Hundreds of lost packets may leave such a step as well.
        let mut clock = IdClock::default();
        for id in (1..100).chain(355..400) {
            read(&mut clock, id, 1, 0);
        }
        assert!(clock.is_usable());
    }

    #[test]
    fn ids_that_run_against_the_bytes_are_no_clock() {
        // Pieces of offloaded frames, numbered in the wrong byte order from 0x7300 and 0x7303 on.
        let ids = [0x7300_u16, 0x7400, 0x7500, 0x7303, 0x7403, 0x7503, 0x7306, 0x7406, 0x7506];
        let mut clock = IdClock::default();
        for (seq, id) in (0_u32..).step_by(100).zip(ids) {
            let piece = Segment { seq, payload_bytes: 100, ip_id: Some(id), ..Segment::default() };
            assert!(!clock.read(&piece, 1, true, || 500).is_late, "{id:#x}");
        }
        assert!(!clock.is_usable());
        // What was overtaken by a repetition of older bytes is late all the same.
        let mut clock = IdClock::default();
        let read = |clock: &mut IdClock, seq, ip_id, is_news| {
            let piece = Segment { seq, payload_bytes: 100, ip_id: Some(ip_id), ..Segment::default() };
            clock.read(&piece, 1, is_news, || 500)
        };
        for (seq, id, is_news) in [(0, 1, true), (100, 2, true), (200, 3, true), (0, 5, false)] {
            assert!(!read(&mut clock, seq, id, is_news).is_late);
        }
        assert!(read(&mut clock, 300, 4, true).is_late);
    }
}
