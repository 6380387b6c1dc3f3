//! Tells one TCP connection from the next one on the same addresses and ports, and from another one of other tenants.

use crate::wire::TcpHeader;

/// How far a segment's numbers may lie from the last ones of its connection.
const NEAR_BYTES: u32 = 1 << 22;

/// What is kept of a connection's numbers for that.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening {
    /// Sequence number of each end's SYN (or SYN,ACK), and where its last segment ended; each where it is known.
    isn: [u32; 2],
    end: [u32; 2],
    has_isn: [bool; 2],
    has_end: [bool; 2],
    has_segments: bool,
    has_other_than_syn: bool,
}

impl Opening {
    /// Asks for its memory.
    pub fn touch(&self) -> u64 {
        u64::from(self.has_segments) ^ u64::from(self.end[0])
    }

    pub fn on_segment(&mut self, sender: u8, tcp: &TcpHeader, payload_bytes: u32) {
        let is_syn = tcp.has_flag(TcpHeader::SYN);
        let length =
            payload_bytes.wrapping_add(u32::from(is_syn)).wrapping_add(u32::from(tcp.has_flag(TcpHeader::FIN)));
        if !tcp.has_flag(TcpHeader::RST) {
            self.end[usize::from(sender & 1)] = tcp.seq.wrapping_add(length);
            self.has_end[usize::from(sender & 1)] = true;
        }
        self.has_segments = true;
        self.has_other_than_syn |= !is_syn || tcp.has_flag(TcpHeader::ACK);
        if is_syn {
            self.isn[usize::from(sender & 1)] = tcp.seq;
            self.has_isn[usize::from(sender & 1)] = true;
        }
    }

    /// Whether this segment's numbers go on from those seen: its own from its end's, its acknowledgement from the other's. What
    /// was seen already is none: the same packet in another network would be taken for one that was sent again.
    pub fn goes_on(&self, sender: u8, tcp: &TcpHeader) -> bool {
        let is_near = |one: u32, other: u32| (one.wrapping_sub(other) as i32).unsigned_abs() <= NEAR_BYTES;
        let is_next = |end: u32| is_near(tcp.seq, end) && (tcp.seq.wrapping_sub(end) as i32) >= 0;
        let end_of = |end: usize| self.has_end[end].then_some(self.end[end]);
        let own = end_of(usize::from(sender & 1)).map(is_next);
        let other = end_of(usize::from(sender & 1 ^ 1));
        let acked = other.map(|end| tcp.has_flag(TcpHeader::ACK) && is_near(tcp.ack, end));
        match (own, acked) {
            (Some(own), Some(acked)) => own && acked,
            (own, acked) => own.or(acked).unwrap_or(false),
        }
    }

    /// Whether this segment belongs to a connection after this one, on the same addresses and ports.
    pub fn is_succeeded_by(&self, sender: u8, tcp: &TcpHeader) -> bool {
        let is_syn = tcp.has_flag(TcpHeader::SYN) && !tcp.has_flag(TcpHeader::ACK);
        if !is_syn || !self.has_segments {
            return false;
        }
        let end = usize::from(sender & 1);
        match self.has_isn[end].then_some(self.isn[end]) {
            Some(isn) => isn != tcp.seq,
            // Both ends may open at the same time (RFC 9293 3.5); anything but SYNs before means an older connection.
            None => self.has_other_than_syn,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(flags: u16, seq: u32) -> TcpHeader {
        TcpHeader { flags, seq, ..TcpHeader::default() }
    }

    #[test]
    fn a_syn_with_another_number_is_another_connection_and_a_resent_one_is_not() {
        let mut opening = Opening::default();
        assert!(!opening.is_succeeded_by(0, &segment(TcpHeader::SYN, 10)));
        opening.on_segment(0, &segment(TcpHeader::SYN, 10), 0);
        assert!(!opening.is_succeeded_by(0, &segment(TcpHeader::SYN, 10)));
        assert!(opening.is_succeeded_by(0, &segment(TcpHeader::SYN, 11)));
        // Simultaneous open.
        assert!(!opening.is_succeeded_by(1, &segment(TcpHeader::SYN, 77)));
        opening.on_segment(1, &segment(TcpHeader::ACK, 77), 0);
        assert!(opening.is_succeeded_by(1, &segment(TcpHeader::SYN, 78)));
    }
}
