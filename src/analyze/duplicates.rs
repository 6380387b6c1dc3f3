//! Copies of packets: the same packet captured twice, on one interface or several, before and after a router or a tunnel.
//!
//! A copy is told by the IP identification and the transport checksum together with addresses, ports, sequence numbers and
//! length (see [`FlowHasher::packet`](crate::flow::FlowHasher::packet)); never by a hash of the payload, which a
//! retransmission shares. Who made the copy is not said here: a network can
//! duplicate packets too, and then the receiver's D-SACK tells (see [`SpotCopies`]).

use serde::{Deserialize, Serialize};

use super::recent::Recent;

/// A copy comes at most this long after its original: delays of mirror ports, bridges and routers on the way.
const COPY_NS: i64 = 100_000_000;
/// And at most so many frames of the capture: packets are not remembered for longer.
const COPY_FRAMES: u64 = 1 << 15;

/// How a copy differs from its original.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum CopyKind {
    /// The same interface, the same headers: a mirror port that shows both directions of a link, or a duplicating network.
    SameInterface,
    /// Another interface of the same capture.
    OtherInterface,
    /// A lower TTL: before and after a router.
    RouterHop,
    /// Once inside a tunnel and once outside, or in another one.
    Tunnel,
}

impl CopyKind {
    pub const ALL: [Self; 4] = [Self::SameInterface, Self::OtherInterface, Self::RouterHop, Self::Tunnel];

    pub fn name(self) -> &'static str {
        match self {
            Self::SameInterface => "same_interface",
            Self::OtherInterface => "other_interface",
            Self::RouterHop => "router_hop",
            Self::Tunnel => "tunnel",
        }
    }
}

/// Where and when a packet was captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sighting {
    pub file: u16,
    pub frame_no: u64,
    pub time_ns: i64,
    pub interface: u32,
    pub ttl: u8,
    /// Number of tunnels around it and network identifier of the innermost.
    pub tunnels: u8,
    pub vni: u32,
}

/// A frame that is a copy of an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Copy {
    pub of_frame_no: u64,
    pub kind: CopyKind,
}

/// Remembers the packets of the last frames: of more than [`COPY_FRAMES`] within [`COPY_NS`] the oldest are forgotten, and a
/// copy may then go unnoticed.
#[derive(Default)]
pub(crate) struct CopyFinder {
    seen: Recent<Sighting>,
}

impl CopyFinder {
    /// Asks for the memory that a packet with this hash will need; see [`Recent::touch`].
    pub fn touch(&self, hash: u64) -> u32 {
        self.seen.touch(hash)
    }

    /// Forgets what no copy may come of any more.
    pub fn forget(&mut self, frame: u64) {
        self.seen.forget_before(frame.saturating_sub(COPY_FRAMES));
    }

    /// Notes a packet; says whether it is a copy of an earlier one of the same file. `hash` identifies the packet: two
    /// packets with one hash are one. `frame`: its running number over all files.
    pub fn on_packet(&mut self, hash: u64, has_id: bool, sighting: Sighting, frame: u64) -> Option<Copy> {
        self.forget(frame);
        // The first sighting is the original of all later ones, so it stays; a closer match in kind is not looked for.
        let original = self.seen.find(hash, |seen| {
            seen.file == sighting.file && sighting.time_ns.saturating_sub(seen.time_ns).saturating_abs() <= COPY_NS
        });
        if let Some(original) = original {
            let kind = kind_of(original, &sighting);
            // Without an identification a retransmission looks the same as a copy on the same spot: not claimed.
            return (has_id || kind != CopyKind::SameInterface)
                .then_some(Copy { of_frame_no: original.frame_no, kind });
        }
        self.seen.add(hash, frame, sighting);
        None
    }
}

fn kind_of(original: &Sighting, copy: &Sighting) -> CopyKind {
    if original.tunnels != copy.tunnels || original.vni != copy.vni {
        CopyKind::Tunnel
    } else if original.ttl != copy.ttl {
        CopyKind::RouterHop
    } else if original.interface != copy.interface {
        CopyKind::OtherInterface
    } else {
        CopyKind::SameInterface
    }
}

/// The copies of one direction's segments on the same spot, and which of them its peer's D-SACKs say that it got twice.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct SpotCopies {
    /// The last ones that nothing was said of.
    open: Vec<SpotCopy>,
    /// The first ones, with what was said of them: enough to take them from a list of a capture's first copies.
    first: Vec<(SpotCopy, bool)>,
    count: u64,
    /// Copies that the receiver reported: the network duplicated them.
    reported: u64,
}

/// A segment that came twice: its second frame, and its sequence range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SpotCopy {
    pub file: u16,
    pub frame_no: u64,
    pub start: u32,
    pub end: u32,
}

impl SpotCopies {
    const OPEN: usize = 64;
    /// As many as a finding names frames.
    pub const FIRST: usize = 20;

    pub fn on_copy(&mut self, copy: SpotCopy) {
        if self.open.len() == Self::OPEN {
            self.open.remove(0);
        }
        self.open.push(copy);
        if self.first.len() < Self::FIRST {
            self.first.push((copy, false));
        }
        self.count += 1;
    }

    /// The peer's first SACK block, where it is a D-SACK (RFC 2883).
    pub fn on_dsack(&mut self, left: u32, right: u32) {
        let is_in = |SpotCopy { start, end, .. }: &SpotCopy| {
            (start.wrapping_sub(left) as i32) >= 0 && (right.wrapping_sub(*end) as i32) >= 0 && start != end
        };
        if let Some(at) = self.open.iter().position(is_in) {
            let reported = self.open.remove(at);
            self.reported += 1;
            if let Some((_, is_reported)) = self.first.iter_mut().find(|(copy, _)| *copy == reported) {
                *is_reported = true;
            }
        }
    }

    /// Copies that the network made. Where most were reported the others were made there too: a report may get lost, or
    /// stand for two, and segments without payload are never reported.
    pub fn by_network(&self) -> u64 {
        if self.is_networks() { self.count } else { self.reported }
    }

    /// Copies that the receiver reported.
    pub fn reported(&self) -> u64 {
        self.reported
    }

    /// The first of those that the network made.
    pub fn first_by_network(&self) -> impl Iterator<Item = &SpotCopy> {
        let are_all = self.is_networks();
        self.first.iter().filter(move |(_, is_reported)| are_all || *is_reported).map(|(copy, _)| copy)
    }

    fn is_networks(&self) -> bool {
        self.reported > self.count - self.reported
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(frame_no: u64, time_ns: i64) -> Sighting {
        Sighting { file: 0, frame_no, time_ns, interface: 0, ttl: 64, tunnels: 0, vni: 0 }
    }

    #[test]
    fn a_copy_names_its_original_and_how_it_differs() {
        let mut finder = CopyFinder::default();
        assert_eq!(finder.on_packet(7, true, at(1, 0), 0), None);
        let copy = |of_frame_no, kind| Some(Copy { of_frame_no, kind });
        assert_eq!(finder.on_packet(7, true, at(2, 10), 0), copy(1, CopyKind::SameInterface));
        assert_eq!(
            finder.on_packet(7, true, Sighting { interface: 1, ..at(3, 20) }, 0),
            copy(1, CopyKind::OtherInterface)
        );
        assert_eq!(finder.on_packet(7, true, Sighting { ttl: 63, ..at(4, 30) }, 0), copy(1, CopyKind::RouterHop));
        assert_eq!(finder.on_packet(7, true, Sighting { tunnels: 1, ..at(5, 40) }, 0), copy(1, CopyKind::Tunnel));
        assert_eq!(finder.on_packet(8, true, at(6, 50), 0), None);
    }

    #[test]
    fn what_comes_much_later_or_in_another_file_is_no_copy() {
        let mut finder = CopyFinder::default();
        finder.on_packet(7, true, at(1, 0), 0);
        assert_eq!(finder.on_packet(7, true, at(2, COPY_NS + 1), 0), None);
        assert_eq!(finder.on_packet(7, true, Sighting { file: 1, ..at(1, 5) }, 0), None);
    }

    #[test]
    fn without_an_identification_only_a_copy_elsewhere_is_believed() {
        let mut finder = CopyFinder::default();
        finder.on_packet(7, false, at(1, 0), 0);
        assert_eq!(finder.on_packet(7, false, at(2, 10), 0), None);
        assert!(finder.on_packet(7, false, Sighting { ttl: 63, ..at(3, 20) }, 0).is_some());
    }

    #[test]
    fn a_packet_is_remembered_for_so_many_frames_whatever_its_hash() {
        for hash in [7, u64::MAX, 1 << 40] {
            let mut finder = CopyFinder::default();
            finder.on_packet(hash, true, at(1, 0), 10);
            assert!(finder.on_packet(hash, true, at(2, 5), 10 + COPY_FRAMES).is_some());
            assert_eq!(finder.on_packet(hash, true, at(3, 6), 11 + COPY_FRAMES), None);
        }
    }

    fn copy_of(frame_no: u64, start: u32, end: u32) -> SpotCopy {
        SpotCopy { file: 0, frame_no, start, end }
    }

    #[test]
    fn a_copy_that_the_receiver_reports_was_made_by_the_network() {
        let mut copies = SpotCopies::default();
        copies.on_copy(copy_of(5, u32::MAX - 9, 90));
        copies.on_copy(copy_of(7, 200, 300));
        copies.on_dsack(u32::MAX - 9, 90);
        copies.on_dsack(u32::MAX - 9, 90);
        assert_eq!(copies.by_network(), 1);
        assert_eq!(copies.first_by_network().map(|copy| copy.frame_no).collect::<Vec<_>>(), [5]);
    }

    #[test]
    fn where_most_copies_are_reported_the_network_made_them_all() {
        let mut copies = SpotCopies::default();
        for at in 0..30 {
            copies.on_copy(copy_of(u64::from(at) * 2, at * 100, at * 100 + 100));
            if at % 3 != 0 {
                copies.on_dsack(at * 100, at * 100 + 100);
            }
        }
        // An acknowledgement that came twice.
        copies.on_copy(copy_of(99, 3_000, 3_000));
        assert_eq!((copies.by_network(), copies.first_by_network().count()), (31, SpotCopies::FIRST));
    }
}
