//! The TCP segments that ICMP errors quote.

use super::shard::{Decoded, QUOTED, ShardNeeds};
use crate::capture::Record;
use crate::flow::{FlowHasher, FlowKey};
use crate::wire::{Frame, IcmpMessage, Layers, Protocol, QuotedPacket, TcpHeader};

/// The TCP header quoted by an ICMP error, as a segment of its connection.
pub(super) struct Quote<'a> {
    pub record: &'a Record,
    pub message: &'a IcmpMessage,
    pub quoted: &'a QuotedPacket,
    /// A frame with the quoted addresses and ports.
    pub stand_in: Frame,
    pub key: FlowKey,
    pub sender: u8,
    /// `None` where less than its fixed part was quoted.
    pub tcp: Option<TcpHeader>,
}

impl<'a> Quote<'a> {
    pub fn of(decoded: &'a Decoded<'_>, at: u32, needs: &ShardNeeds) -> Option<Self> {
        let at = (at & !QUOTED) as usize;
        let (frame, chunk) = decoded.frame(at)?;
        let record = decoded.window.records.get(at)?;
        let message = chunk.icmp.get(frame.detail as usize)?;
        let quoted = message.quoted.as_ref()?;
        let stand_in = quoted_frame(quoted, frame, &needs.hasher);
        let (key, is_reversed) = FlowKey::of(&stand_in, record.interface)?;
        let tcp = quoted_tcp(decoded.window.bytes(record), frame.payload_at as usize);
        Some(Self { record, message, quoted, stand_in, key, sender: u8::from(is_reversed), tcp })
    }
}

/// A frame with the addresses and ports of a quoted TCP segment, so that it finds its flow.
pub(super) fn quoted_frame(quoted: &QuotedPacket, frame: &Frame, hasher: &FlowHasher) -> Frame {
    let mut layers = Layers(Layers::IP.0 | Layers::PORTS.0);
    if frame.layers.has(Layers::VNI) {
        layers.set(Layers::VNI);
    }
    let mut stand_in = Frame {
        layers,
        protocol: Protocol::Tcp,
        src_ip: quoted.src_ip,
        dst_ip: quoted.dst_ip,
        src_port: quoted.src_port.unwrap_or(0),
        dst_port: quoted.dst_port.unwrap_or(0),
        ip_protocol: quoted.ip_protocol,
        vni: frame.vni,
        ..Frame::default()
    };
    stand_in.flow_hash = hasher.hash(&stand_in);
    stand_in
}

/// The TCP header behind the IP header that an ICMP error quotes, if its fixed part is there.
fn quoted_tcp(bytes: &[u8], at: usize) -> Option<TcpHeader> {
    let quote = bytes.get(at..)?;
    let header_bytes = match quote.first()? >> 4 {
        4 => usize::from(quote.first()? & 15) * 4,
        _ => 40,
    };
    TcpHeader::parse_fixed(quote.get(header_bytes..)?).ok()
}
