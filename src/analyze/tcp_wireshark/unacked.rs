//! The segments of one direction that the other side has not acknowledged yet.
//!
//! Wireshark walks a linked list for every segment and every ACK. Here the list is kept in order of sequence end, so
//! that an ACK takes entries from the front and the span is read off the two ends:
//!
//! * new data is appended, a retransmission is put in place (near the front, where insertion is cheap);
//! * `floor` is the lowest start among an entry and all entries behind it, so the front's `floor` is the lowest start
//!   of the whole list even where a long segment covers several short ones;
//! * `oldest_time_ns` is the same for the time of the entry that came first, and needs no upkeep: a new entry is always
//!   the newest.
//!
//! Damaged captures hold sequence numbers from all over the circle, for which no order exists. The list then turns
//! `scattered`: kept in arrival order and scanned, at most [`Unacked::MAX_ENTRIES`] steps, until it is empty again.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use super::circular::{is_after, is_at_or_before, is_before};

/// Sequence numbers further apart than this are not trusted to have an order.
const ORDERED_SPAN: u32 = 1 << 30;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Entry {
    start: u32,
    end: u32,
    floor: u32,
    /// Low half of the frame number; no list lives for 2^32 frames.
    frame_low: u32,
    time_ns: i64,
    oldest_time_ns: i64,
}

/// When a segment was sent: what an ACK or a retransmission is measured against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) frame_no: u64,
    pub(super) time_ns: i64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Unacked {
    entries: VecDeque<Entry>,
    scattered: bool,
}

impl Unacked {
    /// Wireshark 4.0 remembers no more segments than this per direction.
    pub(super) const MAX_ENTRIES: usize = 10_000;

    pub(super) fn is_full(&self) -> bool {
        self.entries.len() >= Self::MAX_ENTRIES
    }

    /// Asks for the memory of the oldest and the newest entry.
    pub(super) fn touch(&self) -> u32 {
        let of = |entry: Option<&Entry>| entry.map_or(0, |entry| entry.end);
        of(self.entries.front()) ^ of(self.entries.back())
    }

    /// Gives unused memory back; an empty list keeps none.
    pub(super) fn compact(&mut self) {
        self.entries.shrink_to_fit();
    }

    /// Heap memory held, in bytes.
    #[cfg(test)]
    pub(super) fn heap_bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Entry>()
    }

    /// Adds a segment that spans `start..end`. The caller has checked [`Unacked::is_full`].
    pub(super) fn insert(&mut self, start: u32, end: u32, sent: Sent) {
        self.grow();
        let Sent { frame_no, time_ns } = sent;
        let entry = Entry { start, end, floor: start, frame_low: frame_no as u32, time_ns, oldest_time_ns: time_ns };
        let (Some(front), Some(back)) = (self.entries.front(), self.entries.back()) else {
            self.scattered = !is_near(start, end);
            self.entries.push_back(entry);
            return;
        };
        if self.scattered || !(is_near(start, end) && is_near(front.floor, end) && is_near(back.end, start)) {
            self.scattered = true;
            self.entries.push_back(entry);
            return;
        }
        if !is_before(end, back.end) {
            self.entries.push_back(entry);
            self.lower_floors_before(self.entries.len() - 1);
            return;
        }
        // Behind entries of the same end: the oldest of them is the one an ACK is matched with.
        let at = self.entries.partition_point(|old| is_at_or_before(old.end, end));
        let Entry { floor, oldest_time_ns, .. } = self.entries.get(at).copied().unwrap_or(entry);
        self.entries.insert(at, Entry { floor: earlier(start, floor), oldest_time_ns, ..entry });
        self.lower_floors_before(at);
    }

    /// Drops what `ack` covers and moves up the start of what it covers in part. Gives the oldest segment that ends
    /// exactly at `ack`.
    pub(super) fn acknowledge(&mut self, ack: u32, now_frame_no: u64) -> Option<Sent> {
        let (Some(front), Some(back)) = (self.entries.front(), self.entries.back()) else {
            return None;
        };
        if self.scattered || !(is_near(front.floor, ack) && is_near(back.end, ack)) {
            return self.acknowledge_by_scan(ack, now_frame_no);
        }
        let mut acked = None;
        while let Some(front) = self.entries.front() {
            if is_after(front.end, ack) {
                break;
            }
            if front.end == ack && acked.is_none() {
                acked = Some(sent_of(front, now_frame_no));
            }
            self.entries.pop_front();
        }
        // Floors never fall along the list, so the partly covered entries are a prefix.
        for entry in &mut self.entries {
            if !is_before(entry.floor, ack) {
                break;
            }
            entry.floor = ack;
            if is_before(entry.start, ack) {
                entry.start = ack;
            }
        }
        acked
    }

    /// Lowest start and highest end, compared as unsigned distances from `base`, as Wireshark does: from the point
    /// where those distances wrap (each 4 GiB) its answer makes no sense for a moment, and neither does this one.
    pub(super) fn span_from(&self, base: u32) -> Option<(u32, u32)> {
        let (front, back) = (self.entries.front()?, self.entries.back()?);
        let (start, end) = (front.floor.wrapping_sub(base), back.end.wrapping_sub(base));
        if !self.scattered && start <= end {
            return Some((start, end));
        }
        let start = self.entries.iter().map(|entry| entry.start.wrapping_sub(base)).min()?;
        let end = self.entries.iter().map(|entry| entry.end.wrapping_sub(base)).max()?;
        Some((start, end))
    }

    /// Capture time of the segment that has waited longest.
    pub(super) fn oldest_time_ns(&self) -> Option<i64> {
        self.entries.front().map(|front| front.oldest_time_ns)
    }

    /// Doubling would overshoot the limit by far.
    fn grow(&mut self) {
        let len = self.entries.len();
        if len == self.entries.capacity() && len > Self::MAX_ENTRIES / 2 {
            self.entries.reserve_exact(Self::MAX_ENTRIES.saturating_sub(len));
        }
    }

    fn lower_floors_before(&mut self, at: usize) {
        let Some(&Entry { floor, .. }) = self.entries.get(at) else {
            return;
        };
        for entry in self.entries.range_mut(..at).rev() {
            if is_at_or_before(entry.floor, floor) {
                break;
            }
            entry.floor = floor;
        }
    }

    fn acknowledge_by_scan(&mut self, ack: u32, now_frame_no: u64) -> Option<Sent> {
        let now_low = now_frame_no as u32;
        let mut oldest: Option<Entry> = None;
        let len_before = self.entries.len();
        let mut has_moved = false;
        self.entries.retain_mut(|entry| {
            if entry.end == ack {
                if oldest.is_none_or(|oldest| age(oldest.frame_low, now_low) < age(entry.frame_low, now_low)) {
                    oldest = Some(*entry);
                }
                return false;
            }
            if is_after(ack, entry.start) && is_at_or_before(ack, entry.end) {
                entry.start = ack;
                has_moved = true;
            }
            is_after(entry.end, ack)
        });
        self.scattered = self.scattered && !self.entries.is_empty();
        if has_moved || self.entries.len() != len_before {
            self.rebuild(now_low);
        }
        oldest.map(|entry| sent_of(&entry, now_frame_no))
    }

    /// Works out anew what each entry says about those behind it.
    fn rebuild(&mut self, now_low: u32) {
        let mut behind: Option<Entry> = None;
        for entry in self.entries.iter_mut().rev() {
            entry.floor = behind.map_or(entry.start, |behind| earlier(entry.start, behind.floor));
            entry.oldest_time_ns = entry.time_ns;
            let mut oldest_low = entry.frame_low;
            if let Some(behind) = behind.filter(|behind| age(behind.frame_low, now_low) > age(oldest_low, now_low)) {
                oldest_low = behind.frame_low;
                entry.oldest_time_ns = behind.oldest_time_ns;
            }
            behind = Some(Entry { frame_low: oldest_low, ..*entry });
        }
    }
}

fn is_near(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32).unsigned_abs() < ORDERED_SPAN
}

fn earlier(a: u32, b: u32) -> u32 {
    if is_before(a, b) { a } else { b }
}

/// Frames since.
fn age(frame_low: u32, now_low: u32) -> u32 {
    now_low.wrapping_sub(frame_low)
}

fn sent_of(entry: &Entry, now_frame_no: u64) -> Sent {
    let age = u64::from(age(entry.frame_low, now_frame_no as u32));
    Sent { frame_no: now_frame_no.wrapping_sub(age), time_ns: entry.time_ns }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(frame_no: u64) -> Sent {
        Sent { frame_no, time_ns: frame_no as i64 * 1000 }
    }

    fn list(spans: &[(u32, u32)]) -> Unacked {
        let mut list = Unacked::default();
        for (frame_no, &(start, end)) in (1..).zip(spans) {
            list.insert(start, end, sent(frame_no));
        }
        list
    }

    #[test]
    fn an_ack_drops_what_it_covers_and_names_the_segment_that_ends_there() {
        let mut list = list(&[(0, 10), (10, 20), (20, 30)]);
        assert_eq!(list.acknowledge(20, 9), Some(sent(2)));
        assert_eq!(list.span_from(0), Some((20, 30)));
        assert_eq!(list.acknowledge(20, 9), None);
    }

    #[test]
    fn of_two_segments_with_one_end_the_first_sent_is_named() {
        let mut list = list(&[(0, 10), (10, 20), (0, 10), (5, 10)]);
        assert_eq!(list.acknowledge(10, 9), Some(sent(1)));
    }

    #[test]
    fn a_partly_covered_segment_keeps_its_rest() {
        let mut list = list(&[(0, 100), (100, 200)]);
        assert_eq!(list.acknowledge(130, 9), None);
        assert_eq!(list.span_from(0), Some((130, 200)));
    }

    #[test]
    fn a_long_segment_behind_short_ones_holds_the_start_of_the_span() {
        let mut list = list(&[(0, 10), (10, 20), (20, 30), (5, 40)]);
        list.acknowledge(10, 9);
        assert_eq!(list.span_from(0), Some((10, 40)));
        // The resent piece starts below the ACK; only the next ACK moves it up.
        list.insert(2, 35, sent(6));
        assert_eq!(list.span_from(0), Some((2, 40)));
        list.acknowledge(10, 9);
        assert_eq!(list.span_from(0), Some((10, 40)));
    }

    #[test]
    fn the_oldest_is_the_first_sent_wherever_it_lies() {
        let mut list = list(&[(20, 30), (0, 10), (10, 20)]);
        assert_eq!(list.oldest_time_ns(), Some(1000));
        list.acknowledge(20, 9);
        assert_eq!(list.oldest_time_ns(), Some(1000));
        list.acknowledge(30, 9);
        assert_eq!(list.oldest_time_ns(), None);
    }

    #[test]
    fn the_list_works_across_the_wrap_of_sequence_numbers() {
        let mut list = list(&[(0xffff_ff00, 0xffff_ff80), (0xffff_ff80, 0x10), (0x10, 0x20)]);
        assert_eq!(list.span_from(0xffff_0000), Some((0xff00, 0x1_0020)));
        assert_eq!(list.acknowledge(0x10, 9), Some(sent(2)));
        assert_eq!(list.span_from(0xffff_0000), Some((0x1_0010, 0x1_0020)));
    }

    #[test]
    fn a_quiet_list_holds_no_memory_after_compaction() {
        let mut list = list(&[(0, 10), (10, 20)]);
        list.acknowledge(20, 9);
        list.compact();
        assert_eq!(list.heap_bytes(), 0);
    }

    #[test]
    fn a_full_list_takes_no_more_memory_than_its_entries() {
        let mut list = Unacked::default();
        while !list.is_full() {
            let at = list.entries.len() as u32;
            list.insert(at, at + 1, sent(u64::from(at)));
        }
        assert_eq!(list.entries.len(), Unacked::MAX_ENTRIES);
        assert_eq!(list.heap_bytes(), Unacked::MAX_ENTRIES * size_of::<Entry>());
    }

    #[test]
    fn frame_numbers_past_32_bits_come_back_whole() {
        let mut list = Unacked::default();
        list.insert(0, 10, Sent { frame_no: 0xffff_ffff, time_ns: 5 });
        list.insert(10, 20, Sent { frame_no: 0x1_0000_0002, time_ns: 6 });
        assert_eq!(list.oldest_time_ns(), Some(5));
        assert_eq!(list.acknowledge(10, 0x1_0000_0003), Some(Sent { frame_no: 0xffff_ffff, time_ns: 5 }));
        assert_eq!(list.acknowledge(20, 0x1_0000_0003), Some(Sent { frame_no: 0x1_0000_0002, time_ns: 6 }));
    }

    /// The list as Wireshark keeps it: in order of arrival, walked for everything.
    #[derive(Default)]
    struct Plain(Vec<(u32, u32, Sent)>);

    impl Plain {
        fn acknowledge(&mut self, ack: u32) -> Option<Sent> {
            let acked = self.0.iter().find(|entry| entry.1 == ack).map(|entry| entry.2);
            self.0.retain_mut(|(start, end, _)| {
                if *end != ack && is_after(ack, *start) && is_at_or_before(ack, *end) {
                    *start = ack;
                }
                *end != ack && is_after(*end, ack)
            });
            acked
        }

        fn span_from(&self, base: u32) -> Option<(u32, u32)> {
            let start = self.0.iter().map(|entry| entry.0.wrapping_sub(base)).min()?;
            Some((start, self.0.iter().map(|entry| entry.1.wrapping_sub(base)).max()?))
        }
    }

    #[test]
    fn ordered_and_scattered_lists_answer_like_a_plain_walk() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut random = move |below: u32| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u32 % below
        };
        for round in 0..400 {
            let (mut list, mut plain) = (Unacked::default(), Plain::default());
            let origin = [0, 0xffff_ffc0, 0x7fff_ffc0, random(u32::MAX)][round % 4];
            for frame_no in 1..120_u64 {
                let far =
                    if round % 3 == 0 && random(8) == 0 { [1 << 30, 1 << 31, 3 << 30][random(3) as usize] } else { 0 };
                let at = origin.wrapping_add(random(150) + frame_no as u32).wrapping_add(far);
                if random(3) == 0 {
                    assert_eq!(list.acknowledge(at, frame_no), plain.acknowledge(at), "round {round} frame {frame_no}");
                } else {
                    let end = at.wrapping_add(1 + random(40));
                    list.insert(at, end, sent(frame_no));
                    plain.0.push((at, end, sent(frame_no)));
                }
                assert_eq!(list.span_from(origin), plain.span_from(origin), "round {round} frame {frame_no}");
                let oldest = plain.0.first().map(|entry| entry.2.time_ns);
                assert_eq!(list.oldest_time_ns(), oldest, "round {round} frame {frame_no}");
            }
        }
    }
}
