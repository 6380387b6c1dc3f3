//! Bytes that a receiver acknowledged although they were never captured: lost by the capture, not by the network.

use serde::{Deserialize, Serialize};

/// Holes of one direction that are kept in mind; more at a time are counted as they are.
const KEPT: usize = 32;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Hole {
    start: u32,
    end: u32,
    is_acked: bool,
    /// Frame of the acknowledgement.
    frame_no: u64,
}

/// Follows what was seen of one direction's stream and what the peer acknowledged of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct HoleTracker {
    /// End of what was seen.
    seen_end: Option<u32>,
    holes: Vec<Hole>,
    missing_bytes: u64,
    missing_ranges: u64,
    first_frame: Option<u64>,
}

impl HoleTracker {
    /// A segment that covers `start..end` of sequence space (SYN and FIN count one).
    pub fn on_segment(&mut self, start: u32, end: u32) {
        let Some(seen_end) = self.seen_end else {
            self.seen_end = Some(end);
            return;
        };
        if before(seen_end, start) {
            self.add(Hole { start: seen_end, end: start, is_acked: false, frame_no: 0 });
        }
        if before(seen_end, end) {
            self.seen_end = Some(end);
        }
        if start != end && !self.holes.is_empty() {
            self.fill(start, end);
        }
    }

    /// The peer acknowledges everything before `ack`.
    pub fn on_ack(&mut self, ack: u32, frame_no: u64) {
        let Some(seen_end) = self.seen_end else { return };
        if before(seen_end, ack) {
            // More than a window's worth is no acknowledgement of this stream.
            if ack.wrapping_sub(seen_end) > 1 << 30 {
                return;
            }
            self.add(Hole { start: seen_end, end: ack, is_acked: true, frame_no });
            self.seen_end = Some(ack);
        }
        for hole in self.holes.iter_mut().filter(|hole| !hole.is_acked) {
            if !before(ack, hole.end) {
                hole.is_acked = true;
                hole.frame_no = frame_no;
            }
        }
    }

    /// Bytes and stretches that were acknowledged and never seen, and the frame of the first such acknowledgement.
    pub fn missing(&self) -> (u64, u64, Option<u64>) {
        let acked = self.holes.iter().filter(|hole| hole.is_acked);
        let bytes: u64 = acked.clone().map(|hole| u64::from(hole.end.wrapping_sub(hole.start))).sum();
        let first = self.first_frame.or_else(|| acked.clone().map(|hole| hole.frame_no).min());
        (self.missing_bytes + bytes, self.missing_ranges + acked.count() as u64, first)
    }

    fn add(&mut self, hole: Hole) {
        if self.holes.len() == KEPT {
            let oldest = self.holes.remove(0);
            if oldest.is_acked {
                self.missing_bytes += u64::from(oldest.end.wrapping_sub(oldest.start));
                self.missing_ranges += 1;
                self.first_frame.get_or_insert(oldest.frame_no);
            }
        }
        self.holes.push(hole);
    }

    /// Data that came late, or was captured after its acknowledgement.
    fn fill(&mut self, start: u32, end: u32) {
        let mut rest = None;
        self.holes.retain_mut(|hole| {
            if !before(hole.start, end) || !before(start, hole.end) {
                return true;
            }
            let has_head = before(hole.start, start);
            let has_tail = before(end, hole.end);
            match (has_head, has_tail) {
                (false, false) => return false,
                (true, false) => hole.end = start,
                (false, true) => hole.start = end,
                (true, true) => {
                    rest = Some(Hole { start: end, ..*hole });
                    hole.end = start;
                }
            }
            true
        });
        if let Some(rest) = rest {
            self.add(rest);
        }
    }
}

/// RFC 9293 3.4: a comparison on a circle.
fn before(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledged_hole_is_missing_from_the_capture_and_an_open_one_is_not() {
        let mut side = HoleTracker::default();
        side.on_segment(0, 100);
        side.on_segment(200, 300);
        assert_eq!(side.missing().0, 0, "it may still come");
        side.on_ack(300, 9);
        assert_eq!(side.missing(), (100, 1, Some(9)));
    }

    #[test]
    fn data_captured_just_after_its_acknowledgement_is_not_missing() {
        let mut side = HoleTracker::default();
        side.on_segment(u32::MAX - 99, 0);
        side.on_ack(500, 2);
        side.on_segment(0, 500);
        assert_eq!(side.missing().0, 0);
    }

    #[test]
    fn a_hole_is_filled_piece_by_piece() {
        let mut side = HoleTracker::default();
        side.on_segment(0, 100);
        side.on_segment(400, 500);
        side.on_segment(200, 300);
        side.on_ack(500, 7);
        assert_eq!(side.missing(), (200, 2, Some(7)));
    }

    #[test]
    fn memory_is_bounded_and_nothing_is_forgotten() {
        let mut side = HoleTracker::default();
        for segment in 0..1_000_u32 {
            side.on_segment(segment * 200, segment * 200 + 100);
            side.on_ack(segment * 200 + 100, u64::from(segment));
        }
        assert_eq!(side.missing(), (999 * 100, 999, Some(1)));
        assert!(side.holes.len() <= KEPT);
    }
}
