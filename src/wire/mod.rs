//! One frame's layers, decoded without knowing any other frame.
//!
//! Always lax: what decoded is kept, and where and why it stopped is said. [`decode`] reads one frame into a [`Chunk`]: a list
//! of [`Frame`]s, and beside it one list for each kind of detail.

mod address;
mod arp;
pub mod checksum;
mod cm;
mod dcbx;
mod dns;
mod encapsulation;
mod error;
mod ethernet;
mod frame;
mod icmp;
pub mod icrc;
mod ip;
mod lldp;
mod pause;
mod roce;
mod tcp;
mod tunnel;
mod verify;
mod walk;

pub use address::{Ip, Mac};
pub use arp::ArpPacket;
pub use checksum::ChecksumStatus;
pub use cm::{CmKind, CmMessage};
pub use dcbx::{AppPriority, AppSelector, Dcbx, Ets, Pfc};
pub use dns::{DnsMessage, Question, rcode_name, type_name as dns_type_name};
pub use error::{DecodeError, DecodeErrorKind, Layer};
pub use frame::{Chunk, Datagram, Frame, Layers, PacketDirection, Protocol};
pub use icmp::{IcmpMessage, QuotedPacket};
pub use icrc::IcrcStatus;
pub use lldp::{CAPABILITIES as LLDP_CAPABILITIES, LldpId, LldpPdu, LldpProblem};
pub use pause::PauseFrame;
pub(crate) use pause::pause_ns;
pub(crate) use roce::aeth_text;
pub use roce::{BthFlags, RocePacket, opcode_name};
pub use tcp::{TcpHeader, tcp_flags_text};
pub use tunnel::{TunnelKind, TunnelLayer};
pub(crate) use verify::verify;
pub(crate) use walk::decode_datagram;
pub use walk::{DecodeConfig, decode};

/// Big-endian fields at a known place of a header whose length was checked.
pub(crate) fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

pub(crate) fn be24(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([0, bytes[at], bytes[at + 1], bytes[at + 2]])
}

pub(crate) fn be32(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

pub(crate) fn be64(bytes: &[u8], at: usize) -> u64 {
    u64::from(be32(bytes, at)) << 32 | u64::from(be32(bytes, at + 4))
}
