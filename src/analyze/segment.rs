//! What TCP analyzers are told of one segment. No clock, no I/O: time arrives here.

use super::Moment;

/// The FIN bit of the TCP flags (RFC 9293 3.1).
pub const FIN: u16 = 0x01;
/// The SYN bit of the TCP flags.
pub const SYN: u16 = 0x02;
/// The RST bit of the TCP flags.
pub const RST: u16 = 0x04;
/// The ACK bit of the TCP flags.
pub const ACK: u16 = 0x10;

/// One TCP segment as a tap saw it, with what its IP header says.
#[derive(Clone, Copy, Debug, Default)]
pub struct Segment<'a> {
    /// Running number of this segment in its connection's shard; judgements refer to it.
    pub row: u64,
    /// Frame number in its file, from 1.
    pub frame_no: u64,
    /// Capture time, nanoseconds since 1970-01-01 UTC.
    pub time_ns: i64,
    /// How far the capture had come with it.
    pub at: Moment,
    /// Which end sent it: 0 or 1.
    pub dir: u8,
    /// Sequence number on the wire.
    pub seq: u32,
    /// Acknowledgement number on the wire; meaningless without the ACK bit.
    pub ack: u32,
    /// TCP flags, the low 12 bits as on the wire.
    pub flags: u16,
    /// Window field, not scaled.
    pub window: u16,
    /// TCP payload, from the IP length, not from what was captured.
    pub payload_bytes: u32,
    /// MSS option, in bytes.
    pub mss: Option<u16>,
    /// Window scale option: the shift.
    pub wscale: Option<u8>,
    /// Whether the SACK-permitted option is there.
    pub sack_permitted: bool,
    /// Timestamps option: (TSval, TSecr).
    pub ts: Option<(u32, u32)>,
    /// SACK blocks in the order of the option: (left edge, right edge).
    pub sack: &'a [(u32, u32)],
    /// Kinds of MPTCP option (TCP option 30): bit n set = an option of subtype n, 0 to 7; 0 for none.
    pub mptcp: u8,
    /// IPv4 identification; `None` for IPv6.
    pub ip_id: Option<u16>,
    /// IPv4 TTL or IPv6 hop limit.
    pub ttl: u8,
    /// The two ECN bits of the IP header.
    pub ecn: u8,
    /// The checksum field of the TCP header.
    pub l4_checksum_field: u16,
    /// What became of verifying that field.
    pub checksum: Checksum,
    /// Which capture interface saw it.
    pub interface: u32,
}

impl Segment<'_> {
    /// Sequence space this segment takes: its payload, and one each for SYN and FIN (RFC 9293 3.4).
    pub fn seq_len(&self) -> u32 {
        let flag = |bit: u16| u32::from(self.flags & bit != 0);
        self.payload_bytes.wrapping_add(flag(SYN)).wrapping_add(flag(FIN))
    }

    /// Whether all of `bits` are set.
    pub fn has(&self, bits: u16) -> bool {
        self.flags & bits == bits
    }
}

/// Result of verifying a TCP checksum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksum {
    /// Verified and right.
    Ok,
    /// Verified and wrong.
    Bad,
    /// Only the pseudo-header sum: the sender left the rest to its network card.
    Partial,
    /// Not all bytes were captured.
    Unverifiable,
    /// There is no checksum.
    Absent,
    /// Nobody looked.
    #[default]
    NotChecked,
}
