//! The analysis flags of one segment, one bit each.

use std::ops::{BitOr, BitOrAssign};

/// What Wireshark 4.0 says about one TCP segment: a set of `tcp.analysis.*` flags.
///
/// The three retransmission bits exclude each other; [`WsFlags::is_retransmission`] is what Wireshark itself shows
/// as `tcp.analysis.retransmission`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct WsFlags(pub u32);

impl WsFlags {
    /// Nothing to say.
    pub const NONE: Self = Self(0);
    /// A retransmission that is neither fast nor spurious.
    pub const PLAIN_RETRANSMISSION: Self = Self(1 << 0);
    /// `tcp.analysis.fast_retransmission`.
    pub const FAST_RETRANSMISSION: Self = Self(1 << 1);
    /// `tcp.analysis.spurious_retransmission`.
    pub const SPURIOUS_RETRANSMISSION: Self = Self(1 << 2);
    /// `tcp.analysis.out_of_order`.
    pub const OUT_OF_ORDER: Self = Self(1 << 3);
    /// `tcp.analysis.duplicate_ack`.
    pub const DUPLICATE_ACK: Self = Self(1 << 4);
    /// `tcp.analysis.zero_window`.
    pub const ZERO_WINDOW: Self = Self(1 << 5);
    /// `tcp.analysis.zero_window_probe`.
    pub const ZERO_WINDOW_PROBE: Self = Self(1 << 6);
    /// `tcp.analysis.zero_window_probe_ack`.
    pub const ZERO_WINDOW_PROBE_ACK: Self = Self(1 << 7);
    /// `tcp.analysis.window_full`.
    pub const WINDOW_FULL: Self = Self(1 << 8);
    /// `tcp.analysis.window_update`.
    pub const WINDOW_UPDATE: Self = Self(1 << 9);
    /// `tcp.analysis.keep_alive`.
    pub const KEEP_ALIVE: Self = Self(1 << 10);
    /// `tcp.analysis.keep_alive_ack`.
    pub const KEEP_ALIVE_ACK: Self = Self(1 << 11);
    /// `tcp.analysis.lost_segment`: "previous segment not captured".
    pub const LOST_SEGMENT: Self = Self(1 << 12);
    /// `tcp.analysis.ack_lost_segment`: "ACKed unseen segment".
    pub const ACK_LOST_SEGMENT: Self = Self(1 << 13);
    /// `tcp.analysis.reused_ports`.
    pub const REUSED_PORTS: Self = Self(1 << 14);

    /// Whether every bit of `other` is set here.
    pub fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Whether at least one bit of `other` is set here.
    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Whether no flag is set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// `tcp.analysis.retransmission`: Wireshark shows it on plain, fast and spurious ones alike.
    pub fn is_retransmission(self) -> bool {
        self.intersects(Self::PLAIN_RETRANSMISSION | Self::FAST_RETRANSMISSION | Self::SPURIOUS_RETRANSMISSION)
    }
}

impl BitOr for WsFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for WsFlags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_has_a_bit_of_its_own() {
        let all = [
            WsFlags::PLAIN_RETRANSMISSION,
            WsFlags::FAST_RETRANSMISSION,
            WsFlags::SPURIOUS_RETRANSMISSION,
            WsFlags::OUT_OF_ORDER,
            WsFlags::DUPLICATE_ACK,
            WsFlags::ZERO_WINDOW,
            WsFlags::ZERO_WINDOW_PROBE,
            WsFlags::ZERO_WINDOW_PROBE_ACK,
            WsFlags::WINDOW_FULL,
            WsFlags::WINDOW_UPDATE,
            WsFlags::KEEP_ALIVE,
            WsFlags::KEEP_ALIVE_ACK,
            WsFlags::LOST_SEGMENT,
            WsFlags::ACK_LOST_SEGMENT,
            WsFlags::REUSED_PORTS,
        ];
        let mut seen = WsFlags::NONE;
        for flag in all {
            assert_eq!(flag.0.count_ones(), 1);
            assert!(!seen.intersects(flag));
            seen |= flag;
        }
    }

    #[test]
    fn fast_and_spurious_are_retransmissions_and_out_of_order_is_not() {
        assert!(WsFlags::PLAIN_RETRANSMISSION.is_retransmission());
        assert!(WsFlags::FAST_RETRANSMISSION.is_retransmission());
        assert!((WsFlags::SPURIOUS_RETRANSMISSION | WsFlags::WINDOW_FULL).is_retransmission());
        assert!(!WsFlags::OUT_OF_ORDER.is_retransmission());
    }
}
