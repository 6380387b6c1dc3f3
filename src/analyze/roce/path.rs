//! Where the tap is on the way between two hosts, by what was lost or changed before it and after it.

use super::types::RoceSeen;

/// What is known of the way between two addresses, by direction: 0 from the lower address, 1 from the higher one.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Path {
    /// How often packets of the direction were found lost, copied, damaged or marked before they came to the tap.
    touched_before: [u32; 2],
    /// How often packets of the direction passed the tap and did not arrive.
    lost_after: [u32; 2],
    /// The capture itself says that its host receives (or sends) the direction.
    is_received_here: [Option<bool>; 2],
    /// Packets of the direction with a right and with a wrong invariant CRC.
    proven: [u64; 2],
}

/// Where the tap is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tap {
    Requester,
    Responder,
    Middle,
    Unknown,
}

impl Tap {
    pub fn name(self) -> &'static str {
        match self {
            Self::Requester => "requester",
            Self::Responder => "responder",
            Self::Middle => "middle",
            Self::Unknown => "unknown",
        }
    }
}

impl Path {
    pub fn add_touched_before(&mut self, direction: u8) {
        let count = &mut self.touched_before[usize::from(direction & 1)];
        *count = count.saturating_add(1);
    }

    /// A packet carries the CE mark, which no sender sets: a switch before the tap did. However many, that says one thing.
    pub fn add_mark(&mut self, direction: u8) {
        let count = &mut self.touched_before[usize::from(direction & 1)];
        *count = (*count).max(1);
    }

    pub fn add_lost_after(&mut self, direction: u8) {
        let count = &mut self.lost_after[usize::from(direction & 1)];
        *count = count.saturating_add(1);
    }

    pub fn is_from_us(&mut self, direction: u8, is_from_us: bool) {
        let here = &mut self.is_received_here;
        here[usize::from(direction & 1)] = Some(!is_from_us);
        here[usize::from(direction & 1 ^ 1)] = Some(is_from_us);
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
        let (to, back) = (usize::from(direction & 1), usize::from(direction & 1 ^ 1));
        if let Some(is_received) = self.is_received_here[to] {
            return if is_received { Tap::Responder } else { Tap::Requester };
        }
        let far = self.touched_before[to].saturating_add(self.lost_after[back]);
        let near = self.touched_before[back].saturating_add(self.lost_after[to]);
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
