//! Tells one TCP connection from the next one on the same addresses and ports.

use crate::wire::TcpHeader;

/// What is kept of a connection's beginning for that.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Opening {
    /// Sequence number of each end's SYN (or SYN,ACK).
    isn: [Option<u32>; 2],
    has_segments: bool,
    has_other_than_syn: bool,
}

impl Opening {
    pub fn on_segment(&mut self, sender: u8, tcp: &TcpHeader) {
        let is_syn = tcp.has_flag(TcpHeader::SYN);
        self.has_segments = true;
        self.has_other_than_syn |= !is_syn || tcp.has_flag(TcpHeader::ACK);
        if is_syn {
            self.isn[usize::from(sender & 1)] = Some(tcp.seq);
        }
    }

    /// Whether this segment belongs to a connection after this one, on the same addresses and ports.
    pub fn is_succeeded_by(&self, sender: u8, tcp: &TcpHeader) -> bool {
        let is_syn = tcp.has_flag(TcpHeader::SYN) && !tcp.has_flag(TcpHeader::ACK);
        if !is_syn || !self.has_segments {
            return false;
        }
        match self.isn[usize::from(sender & 1)] {
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
        opening.on_segment(0, &segment(TcpHeader::SYN, 10));
        assert!(!opening.is_succeeded_by(0, &segment(TcpHeader::SYN, 10)));
        assert!(opening.is_succeeded_by(0, &segment(TcpHeader::SYN, 11)));
        // Simultaneous open.
        assert!(!opening.is_succeeded_by(1, &segment(TcpHeader::SYN, 77)));
        opening.on_segment(1, &segment(TcpHeader::ACK, 77));
        assert!(opening.is_succeeded_by(1, &segment(TcpHeader::SYN, 78)));
    }
}
