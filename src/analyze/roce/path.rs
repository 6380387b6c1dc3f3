//! Where the tap is on the way between two hosts, by what was lost or changed before it and after it.

use super::types::RoceSeen;

/// What is known of the way between two addresses, by direction: 0 from the lower address, 1 from the higher one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Path {
    /// How often packets of the direction were found lost, copied or damaged before they came to the tap.
    touched_before: [u32; 2],
    /// Packets of the direction carry the CE mark.
    is_marked: [bool; 2],
    /// How often packets of the direction passed the tap and did not arrive.
    lost_after: [u32; 2],
    /// The capture itself says that its host sends the direction, and that it receives it; of what it forwards it says both.
    is_sent_here: [bool; 2],
    is_received_here: [bool; 2],
    /// Packets of the direction with a right and with a wrong invariant CRC.
    proven: [u64; 2],
}

/// Where the tap is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tap {
    Requester,
    Responder,
    Middle,
    /// Behind a switch that marks. Whether at the end of the way is not known: its marks are seen all the way there.
    BehindMarks,
    Unknown,
}

impl Tap {
    pub const COUNT: usize = Self::Unknown as usize + 1;

    pub fn name(self) -> &'static str {
        match self {
            Self::Requester => "requester",
            Self::Responder => "responder",
            Self::Middle => "middle",
            Self::BehindMarks => "behind_marks",
            Self::Unknown => "unknown",
        }
    }
}

impl Path {
    pub fn add_touched_before(&mut self, direction: u8) {
        let count = &mut self.touched_before[usize::from(direction & 1)];
        *count = count.saturating_add(1);
    }

    /// A packet carries the CE mark.
    pub fn add_mark(&mut self, direction: u8) {
        self.is_marked[usize::from(direction & 1)] = true;
    }

    pub fn add_lost_after(&mut self, direction: u8) {
        let count = &mut self.lost_after[usize::from(direction & 1)];
        *count = count.saturating_add(1);
    }

    /// The capture says that its host sent a packet of the direction, or received it.
    pub fn is_from_us(&mut self, direction: u8, is_from_us: bool) {
        let here = if is_from_us { &mut self.is_sent_here } else { &mut self.is_received_here };
        here[usize::from(direction & 1)] = true;
    }

    /// Whether the capture itself says that it was taken at an end, and which.
    pub fn tap_by_host(&self, direction: u8) -> Option<Tap> {
        let (to, back) = (usize::from(direction & 1), usize::from(direction & 1 ^ 1));
        let is_requester = self.is_sent_here[to] || self.is_received_here[back];
        let is_responder = self.is_received_here[to] || self.is_sent_here[back];
        match (is_requester, is_responder) {
            (true, false) => Some(Tap::Requester),
            (false, true) => Some(Tap::Responder),
            (true, true) => Some(Tap::Middle),
            (false, false) => None,
        }
    }

    /// Whether a wrong check value means damage: not where the direction has never shown a right one, since a capture at a
    /// sender may hold frames whose network card had yet to write it.
    pub fn is_damaged(&mut self, direction: u8, seen: &RoceSeen<'_>) -> bool {
        let proven = &mut self.proven[usize::from(direction & 1)];
        *proven += u64::from(seen.is_proven);
        let is_damaged = seen.is_checksum_bad || seen.is_icrc_bad && *proven > 0;
        if is_damaged {
            self.add_touched_before(direction);
        }
        is_damaged
    }

    /// Where the tap is, seen from the requester that sends in a direction.
    pub fn tap(&self, direction: u8) -> Tap {
        if let Some(tap) = self.tap_by_host(direction) {
            return tap;
        }
        let (to, back) = (usize::from(direction & 1), usize::from(direction & 1 ^ 1));
        let far = self.touched_before[to].saturating_add(self.lost_after[back]);
        let near = self.touched_before[back].saturating_add(self.lost_after[to]);
        if near == 0 && far == 0 {
            return if self.is_marked[to] || self.is_marked[back] { Tap::BehindMarks } else { Tap::Unknown };
        }
        // No sender sets marks: a switch before the tap did. However many, that says one thing.
        let far = far.saturating_add(u32::from(self.is_marked[to]));
        let near = near.saturating_add(u32::from(self.is_marked[back]));
        // A stray frame does not speak against what ten others say: one to another host's MAC address, say, that only a
        // promiscuous tap takes.
        let (is_near, is_far) = (near > 0 && near > far / 10, far > 0 && far > near / 10);
        match (is_near, is_far) {
            (true, false) => Tap::Requester,
            (false, true) => Tap::Responder,
            (true, true) => Tap::Middle,
            (false, false) => Tap::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_before_the_tap_puts_it_at_the_far_end() {
        let mut path = Path::default();
        assert_eq!(path.tap(0), Tap::Unknown);
        path.add_touched_before(0);
        assert_eq!((path.tap(0), path.tap(1)), (Tap::Responder, Tap::Requester));
        path.add_lost_after(1);
        assert_eq!(path.tap(0), Tap::Responder);
        path.add_lost_after(0);
        assert_eq!((path.tap(0), path.tap(1)), (Tap::Middle, Tap::Middle));
        path.is_from_us(1, false);
        assert_eq!((path.tap(0), path.tap(1)), (Tap::Requester, Tap::Responder));
        assert_eq!(path.tap_by_host(0), Some(Tap::Requester));
        // Both ways: a host that forwards.
        path.is_from_us(1, true);
        assert_eq!((path.tap(0), path.tap(1)), (Tap::Middle, Tap::Middle));
    }

    #[test]
    fn marks_alone_put_the_tap_behind_the_switch_that_marks_and_no_further() {
        let mut path = Path::default();
        path.add_mark(0);
        assert_eq!((path.tap(0), path.tap(1), path.tap_by_host(0)), (Tap::BehindMarks, Tap::BehindMarks, None));
        // Something is lost behind it: it is in between.
        let mut between = path;
        between.add_lost_after(0);
        assert_eq!(between.tap(0), Tap::Middle);
        // Something is lost before it as well.
        path.add_touched_before(0);
        assert_eq!((path.tap(0), path.tap(1)), (Tap::Responder, Tap::Requester));
    }

    #[test]
    fn one_stray_frame_does_not_speak_against_many() {
        let mut path = Path::default();
        (0..20).for_each(|_| path.add_touched_before(0));
        path.add_lost_after(0);
        assert_eq!(path.tap(0), Tap::Responder);
        path.add_lost_after(0);
        path.add_lost_after(0);
        assert_eq!(path.tap(0), Tap::Middle);
    }
}
