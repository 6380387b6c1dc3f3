//! What the analysis says of one segment.

use super::WsFlags;

/// Wireshark's statements about one segment. Every field is named after what it means; the comment names the tshark
/// field that it equals. `None` is a field that tshark does not print for this frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WsRow {
    /// The `tcp.analysis.*` flags.
    pub flags: WsFlags,
    /// `tcp.analysis.duplicate_ack_num`; 0 unless the segment is a duplicate ACK.
    pub duplicate_ack_num: u32,
    /// `tcp.analysis.duplicate_ack_frame`: the frame this ACK repeats.
    pub duplicate_ack_frame: Option<u64>,
    /// `tcp.seq` with relative numbers on.
    pub relative_seq: u32,
    /// `tcp.ack` with relative numbers on.
    pub relative_ack: u32,
    /// Receive window in bytes, scaled; `None` while the scale is unknown (no handshake seen).
    pub window_bytes: Option<u64>,
    /// `tcp.window_size`: as above, but the raw field where the scale is unknown.
    pub window_shown: u32,
    /// `tcp.analysis.bytes_in_flight`.
    pub bytes_in_flight: Option<u32>,
    /// `tcp.analysis.acks_frame`: the segment that ends exactly where this ACK points.
    pub acks_frame: Option<u64>,
    /// `tcp.analysis.ack_rtt`: time since that segment. Negative if the clock went back.
    pub ack_rtt_ns: Option<i64>,
    /// `tcp.analysis.initial_rtt` of the connection, on the frames where one-pass tshark prints it.
    pub initial_rtt_ns: Option<i64>,
    /// `tcp.analysis.rto` of a plain retransmission.
    pub rto_ns: Option<i64>,
}
