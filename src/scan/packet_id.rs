//! What a frame's packet is known by, wherever it is captured again.

use crate::analyze::Sighting;
use crate::capture::{Record, Window};
use crate::flow::FlowHasher;
use crate::wire::{Chunk, Frame, Protocol};

/// What tells a packet from all others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PacketId {
    pub hash: u64,
    /// It has a number that is used once, such as an IP identification: enough to know a copy on the same spot.
    pub has_number: bool,
}

impl PacketId {
    pub fn of(window: &Window, record: &Record, frame: &Frame, chunk: &Chunk, hasher: &FlowHasher) -> Self {
        let mut has_number = frame.ip_id != 0;
        let (checksum, numbers) = match frame.protocol {
            Protocol::Tcp => chunk.tcp_of(frame).map_or((0, (0, 0)), |tcp| (tcp.checksum, (tcp.seq, tcp.ack))),
            Protocol::RoceV2 | Protocol::RoceV1 => {
                let packet = chunk.roce.get(frame.detail as usize);
                (0, packet.map_or((0, 0), |packet| (packet.psn, packet.dest_qp << 8 | u32::from(packet.opcode))))
            }
            protocol => {
                let at = match protocol {
                    Protocol::Udp => 6,
                    Protocol::Icmp | Protocol::Icmpv6 => 2,
                    _ => usize::MAX,
                };
                let field = (frame.l4_at as usize).checked_add(at).and_then(|at| window.bytes(record).get(at..at + 2));
                let echo = matches!(protocol, Protocol::Icmp | Protocol::Icmpv6)
                    .then(|| chunk.icmp.get(frame.detail as usize).and_then(|message| message.echo))
                    .flatten();
                // A number that is used once identifies an echo message as well as an IP identification does.
                has_number |= echo.is_some();
                let numbers = echo.map_or((0, 0), |(identifier, number)| (u32::from(identifier), u32::from(number)));
                (field.map_or(0, |field| u16::from_be_bytes([field[0], field[1]])), numbers)
            }
        };
        Self { hash: hasher.packet(frame, checksum, numbers), has_number }
    }
}

/// Where and when it was seen.
pub(super) fn sighting_of(record: &Record, frame: &Frame) -> Sighting {
    Sighting {
        file: record.file,
        frame_no: record.frame_no,
        time_ns: record.time_ns,
        interface: record.interface,
        ttl: frame.ttl,
        tunnels: frame.tunnels,
        vni: frame.vni,
    }
}
