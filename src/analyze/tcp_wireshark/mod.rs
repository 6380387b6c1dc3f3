//! What Wireshark would say about each segment of a TCP stream: the `tcp.analysis.*` fields of tshark 4.0.
//!
//! These are Wireshark's statements, not ours: several are known to be wrong about the network (a resent segment is
//! called out-of-order whenever it comes within one handshake time of the newest data). They are reproduced so that a
//! reader can reconcile a table with Wireshark's window.
//!
//! A stream here is what Wireshark calls one: all segments between two (address, port) pairs, in file order, copies
//! and tunnelled copies included, until a bare SYN with another sequence number starts the next. The caller keeps
//! streams apart and asks [`starts_new_stream`] before each segment. No clock and no I/O: time comes in the segment.
//! One pass: an answer never depends on a later frame.

mod circular;
mod flags;
mod row;
mod rules;
mod side;
mod stream;
#[cfg(test)]
mod tests;
mod unacked;

pub use flags::WsFlags;
pub use row::WsRow;
pub use stream::{WsStream, starts_new_stream};

use crate::analyze::segment::Segment;

/// Bits of [`Segment::flags`].
mod tcp_flag {
    pub(super) const FIN: u16 = 0x01;
    pub(super) const SYN: u16 = 0x02;
    pub(super) const RST: u16 = 0x04;
    pub(super) const ACK: u16 = 0x10;
}
