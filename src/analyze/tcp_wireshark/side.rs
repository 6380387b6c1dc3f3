//! What one end of a connection has sent so far.

use serde::{Deserialize, Serialize};

use super::unacked::Unacked;
use super::{Segment, WsFlags, tcp_flag};

/// State of one direction. In `next`, `contig` and `last_ack` the value 0 doubles as "unknown", as in Wireshark: a
/// sequence number that happens to be 0 switches the tests off that use it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Side {
    pub(super) unacked: Unacked,
    /// Time of the segment that set `next`.
    pub(super) next_time_ns: i64,
    pub(super) last_time_ns: i64,
    /// Frame at which the ack field last changed.
    pub(super) last_nondup_frame_no: u64,
    pub(super) base: Option<u32>,
    /// Highest sequence end sent.
    pub(super) next: u32,
    /// End of the run of data seen without a hole.
    pub(super) contig: u32,
    /// Ack field of the last segment, ACK bit or not.
    pub(super) last_ack: u32,
    /// Raw window field of the last segment.
    pub(super) window: u32,
    pub(super) duplicate_acks: u32,
    /// Bytes in the SACK blocks of the last segment.
    pub(super) sacked_bytes: u32,
    pub(super) scale: Scale,
    /// Kinds of MPTCP option that the connection had shown before the last segment.
    pub(super) mptcp: u8,
    pub(super) window_is_from_syn: bool,
    /// Cleared by a gap: the bytes in flight are then unknown until the other side acknowledges.
    pub(super) knows_flight: bool,
    pub(super) last_was_keep_alive: bool,
    pub(super) last_was_probe: bool,
}

/// Window scale of one direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Scale {
    Unknown,
    /// A handshake without the option was seen.
    NotUsed,
    Shift(u8),
}

impl Default for Side {
    fn default() -> Self {
        Self {
            unacked: Unacked::default(),
            next_time_ns: 0,
            last_time_ns: 0,
            last_nondup_frame_no: 0,
            base: None,
            next: 0,
            contig: 0,
            last_ack: 0,
            window: u32::MAX,
            duplicate_acks: 0,
            sacked_bytes: 0,
            scale: Scale::Unknown,
            mptcp: 0,
            window_is_from_syn: false,
            knows_flight: true,
            last_was_keep_alive: false,
            last_was_probe: false,
        }
    }
}

impl Side {
    /// Takes over what every segment leaves behind, after the tests.
    pub(super) fn remember(&mut self, segment: &Segment, flags: WsFlags) {
        let is_syn = segment.flags & tcp_flag::SYN != 0;
        self.window = u32::from(segment.window);
        self.last_ack = segment.ack;
        self.last_time_ns = segment.time_ns;
        self.last_was_keep_alive = flags.contains(WsFlags::KEEP_ALIVE);
        self.last_was_probe = flags.contains(WsFlags::ZERO_WINDOW_PROBE);
        if is_syn {
            self.window_is_from_syn = true;
        } else if segment.flags & tcp_flag::ACK != 0 {
            self.window_is_from_syn = false;
        }
    }

    /// Scaled window that the last segment offered, as the "window full" test sees it; `None` if the scale is unknown.
    pub(super) fn offered_window_bytes(&self) -> Option<u32> {
        match self.scale {
            Scale::Unknown => None,
            Scale::Shift(shift) if !self.window_is_from_syn => Some(self.window.wrapping_shl(u32::from(shift))),
            Scale::Shift(_) | Scale::NotUsed => Some(self.window),
        }
    }
}
