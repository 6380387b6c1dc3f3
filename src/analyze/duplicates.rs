//! Copies of packets: the same packet captured twice, on one interface or several, before and after a router or a tunnel.
//!
//! A copy is told by the IP identification and the transport checksum together with addresses, ports, sequence numbers and
//! length (see [`FlowHasher::packet`](crate::flow::FlowHasher::packet)); never by a hash of the payload, which a
//! retransmission shares. Who made the copy is not said here: a network can
//! duplicate packets too, and then the receiver's D-SACK tells (see [`CopyRanges`]).

use serde::{Deserialize, Serialize};

use super::recent::Recent;

/// A copy comes at most this long after its original: delays of mirror ports, bridges and routers on the way.
const COPY_NS: i64 = 100_000_000;
/// Packets of one shard that are remembered: sets of eight.
const SETS: usize = 1 << 10;

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

/// Remembers the packets of the last moments. Fixed in size: of very many packets within [`COPY_NS`] the oldest are
/// forgotten, and a copy may then go unnoticed.
#[derive(Default)]
pub(crate) struct CopyFinder {
    seen: Recent<Sighting>,
}

impl CopyFinder {
    /// Asks for the memory that a packet with this hash will need; see [`Recent::touch`].
    pub fn touch(&self, hash: u64) -> u32 {
        self.seen.touch(hash)
    }

    /// Notes a packet; says whether it is a copy of an earlier one of the same file. `hash` identifies the packet: two
    /// packets with one hash are one.
    pub fn on_packet(&mut self, hash: u64, has_id: bool, sighting: Sighting) -> Option<Copy> {
        if self.seen.sets() == 0 {
            self.seen = Recent::with_sets(SETS);
        }
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
        self.seen.add(hash, sighting);
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

/// The sequence ranges of a direction that came twice, until the peer's D-SACK says that it got them twice.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CopyRanges {
    ranges: Vec<(u32, u32)>,
    /// Copies that the receiver reported: the network duplicated them.
    pub by_network: u64,
}

impl CopyRanges {
    const KEPT: usize = 64;

    pub fn on_copy(&mut self, start: u32, end: u32) {
        if self.ranges.len() == Self::KEPT {
            self.ranges.remove(0);
        }
        self.ranges.push((start, end));
    }

    /// The peer's first SACK block, where it is a D-SACK (RFC 2883).
    pub fn on_dsack(&mut self, left: u32, right: u32) {
        let is_in = |(start, end): &(u32, u32)| {
            (start.wrapping_sub(left) as i32) >= 0 && (right.wrapping_sub(*end) as i32) >= 0 && start != end
        };
        if let Some(at) = self.ranges.iter().position(is_in) {
            self.ranges.remove(at);
            self.by_network += 1;
        }
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
        assert_eq!(finder.on_packet(7, true, at(1, 0)), None);
        let copy = |of_frame_no, kind| Some(Copy { of_frame_no, kind });
        assert_eq!(finder.on_packet(7, true, at(2, 10)), copy(1, CopyKind::SameInterface));
        assert_eq!(
            finder.on_packet(7, true, Sighting { interface: 1, ..at(3, 20) }),
            copy(1, CopyKind::OtherInterface)
        );
        assert_eq!(finder.on_packet(7, true, Sighting { ttl: 63, ..at(4, 30) }), copy(1, CopyKind::RouterHop));
        assert_eq!(finder.on_packet(7, true, Sighting { tunnels: 1, ..at(5, 40) }), copy(1, CopyKind::Tunnel));
        assert_eq!(finder.on_packet(8, true, at(6, 50)), None);
    }

    #[test]
    fn what_comes_much_later_or_in_another_file_is_no_copy() {
        let mut finder = CopyFinder::default();
        finder.on_packet(7, true, at(1, 0));
        assert_eq!(finder.on_packet(7, true, at(2, COPY_NS + 1)), None);
        assert_eq!(finder.on_packet(7, true, Sighting { file: 1, ..at(1, 5) }), None);
    }

    #[test]
    fn without_an_identification_only_a_copy_elsewhere_is_believed() {
        let mut finder = CopyFinder::default();
        finder.on_packet(7, false, at(1, 0));
        assert_eq!(finder.on_packet(7, false, at(2, 10)), None);
        assert!(finder.on_packet(7, false, Sighting { ttl: 63, ..at(3, 20) }).is_some());
    }

    #[test]
    fn a_copy_that_the_receiver_reports_was_made_by_the_network() {
        let mut ranges = CopyRanges::default();
        ranges.on_copy(u32::MAX - 9, 90);
        ranges.on_copy(200, 300);
        ranges.on_dsack(u32::MAX - 9, 90);
        ranges.on_dsack(u32::MAX - 9, 90);
        assert_eq!(ranges.by_network, 1);
    }
}
