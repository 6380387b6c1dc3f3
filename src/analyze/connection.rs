//! What is kept of a TCP connection for its summary: handshake, options, volumes.

use crate::wire::TcpHeader;

/// One direction of a connection. Index 0 of [`Connection::sides`] is the low end of the flow's key.
#[derive(Clone, Debug, Default)]
pub(crate) struct Side {
    /// Sequence number of the SYN (or SYN,ACK).
    pub isn: Option<u32>,
    pub mss: Option<u16>,
    pub wscale: Option<u8>,
    pub is_sack_permitted: bool,
    pub has_timestamps: bool,
    /// Segments with SYN, without and with ACK.
    pub syn_count: u64,
    pub syn_ack_count: u64,
    pub fin_count: u64,
    pub rst_count: u64,
    pub zero_window_count: u64,
    pub ce_count: u64,
    pub max_segment_bytes: u32,
    pub first_data_ns: Option<i64>,
    pub last_data_ns: Option<i64>,
    /// Stream position of the first payload byte seen, and of the end of the payload: wrapping numbers and a count beside.
    span: Span,
    /// How far the other end acknowledged, likewise.
    acked: Span,
}

/// A stretch of sequence space that only grows, counted in 64 bits so that it survives wraps.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    start: u32,
    end: u32,
    bytes: u64,
    is_set: bool,
}

impl Span {
    fn reach(&mut self, start: u32, end: u32) {
        if !self.is_set {
            *self = Self { start, end, bytes: u64::from(end.wrapping_sub(start)), is_set: true };
            return;
        }
        let further = end.wrapping_sub(self.end) as i32;
        if further > 0 {
            self.end = end;
            self.bytes += further as u64;
        }
        // A first segment that was overtaken by its successor starts before what was taken for the start.
        let before = self.start.wrapping_sub(start) as i32;
        if before > 0 {
            self.start = start;
            self.bytes += before as u64;
        }
    }
}

impl Side {
    /// Stream bytes that arrived, each counted once: as far as they were acknowledged; where no acknowledgement was seen,
    /// as far as they were seen.
    pub fn unique_bytes(&self) -> u64 {
        if !self.span.is_set {
            return 0;
        }
        if !self.acked.is_set {
            return self.span.bytes;
        }
        let missing = self.span.end.wrapping_sub(self.acked.end) as i32;
        // Acknowledged beyond what was seen: a FIN counts one, and the rest was never captured.
        self.span.bytes.saturating_sub(u64::try_from(missing).unwrap_or(0))
    }

    /// From the first to the last data segment.
    pub fn data_ns(&self) -> Option<i64> {
        self.last_data_ns?.checked_sub(self.first_data_ns?).filter(|ns| *ns > 0)
    }

    pub fn goodput_bps(&self) -> Option<u64> {
        let bits = u128::from(self.unique_bytes()) * 8 * 1_000_000_000;
        u64::try_from(bits / self.data_ns()? as u128).ok()
    }
}

/// A TCP connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Connection {
    pub sides: [Side; 2],
    /// The end that sent the SYN.
    pub client: Option<u8>,
    syn_ns: Option<i64>,
    pub handshake_rtt_ns: Option<i64>,
    has_other_than_syn: bool,
    segments: u64,
}

impl Connection {
    /// Whether this segment belongs to a connection after this one, on the same addresses and ports.
    pub fn is_succeeded_by(&self, sender: u8, tcp: &TcpHeader) -> bool {
        let is_syn = tcp.has_flag(TcpHeader::SYN) && !tcp.has_flag(TcpHeader::ACK);
        if !is_syn || self.segments == 0 {
            return false;
        }
        match self.sides[usize::from(sender & 1)].isn {
            Some(isn) => isn != tcp.seq,
            // Both ends may open at the same time (RFC 9293 3.5); anything but SYNs before means an older connection.
            None => self.has_other_than_syn,
        }
    }

    pub fn on_segment(&mut self, sender: u8, time_ns: Option<i64>, tcp: &TcpHeader, payload_bytes: u32, ecn: u8) {
        self.segments += 1;
        let (sender, peer) = (usize::from(sender & 1), usize::from(sender & 1 ^ 1));
        let is_syn = tcp.has_flag(TcpHeader::SYN);
        let is_ack = tcp.has_flag(TcpHeader::ACK);
        self.on_handshake(sender, time_ns, tcp);
        self.has_other_than_syn |= !is_syn || is_ack;
        let side = &mut self.sides[sender];
        side.fin_count += u64::from(tcp.has_flag(TcpHeader::FIN));
        side.rst_count += u64::from(tcp.has_flag(TcpHeader::RST));
        side.ce_count += u64::from(ecn == 3);
        // A RST, and a SYN or FIN, may carry window 0 without meaning that the receiver is full.
        let is_plain = tcp.flags & (TcpHeader::SYN | TcpHeader::FIN | TcpHeader::RST) == 0;
        side.zero_window_count += u64::from(is_plain && tcp.window == 0);
        if payload_bytes > 0 && !tcp.has_flag(TcpHeader::RST) {
            let start = tcp.seq.wrapping_add(u32::from(is_syn));
            side.span.reach(start, start.wrapping_add(payload_bytes));
            side.max_segment_bytes = side.max_segment_bytes.max(payload_bytes);
            side.first_data_ns = side.first_data_ns.or(time_ns);
            side.last_data_ns = time_ns.or(side.last_data_ns);
        }
        if is_ack && !tcp.has_flag(TcpHeader::RST) {
            self.sides[peer].acked.reach(tcp.ack, tcp.ack);
        }
    }

    fn on_handshake(&mut self, sender: usize, time_ns: Option<i64>, tcp: &TcpHeader) {
        let is_ack = tcp.has_flag(TcpHeader::ACK);
        if tcp.has_flag(TcpHeader::SYN) {
            let side = &mut self.sides[sender];
            side.isn = Some(tcp.seq);
            side.mss = tcp.mss().or(side.mss);
            side.wscale = tcp.wscale().or(side.wscale);
            side.is_sack_permitted |= tcp.is_sack_permitted();
            side.has_timestamps |= tcp.timestamps().is_some();
            if is_ack {
                side.syn_ack_count += 1;
                self.client = Some(sender as u8 ^ 1);
            } else {
                side.syn_count += 1;
                self.syn_ns = time_ns;
                self.client = self.client.or(Some(sender as u8));
            }
        } else if is_ack && self.handshake_rtt_ns.is_none() && self.client == Some(sender as u8) {
            // The client's first ACK; needs the SYN,ACK in between, or it answers something else.
            if self.sides[sender ^ 1].isn.is_some() {
                self.handshake_rtt_ns = time_ns.zip(self.syn_ns).map(|(ack, syn)| ack - syn).filter(|rtt| *rtt >= 0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(flags: u16, seq: u32, ack: u32) -> TcpHeader {
        TcpHeader { flags, seq, ack, window: 100, ..TcpHeader::default() }
    }

    #[test]
    fn the_handshake_takes_from_syn_to_the_clients_ack() {
        let mut connection = Connection::default();
        connection.on_segment(1, Some(1_000), &segment(TcpHeader::SYN, 10, 0), 0, 0);
        connection.on_segment(0, Some(4_000), &segment(TcpHeader::SYN | TcpHeader::ACK, 90, 11), 0, 0);
        connection.on_segment(1, Some(4_500), &segment(TcpHeader::ACK, 11, 91), 0, 0);
        connection.on_segment(1, Some(9_500), &segment(TcpHeader::ACK, 11, 91), 0, 0);
        assert_eq!((connection.client, connection.handshake_rtt_ns), (Some(1), Some(3_500)));
    }

    #[test]
    fn resent_bytes_count_once_also_across_a_wrap() {
        let mut connection = Connection::default();
        let start = u32::MAX - 999;
        for seq in [start, start.wrapping_add(1_000), start, start.wrapping_add(500)] {
            connection.on_segment(0, Some(i64::from(seq)), &segment(TcpHeader::ACK, seq, 5), 1_000, 0);
        }
        assert_eq!(connection.sides[0].unique_bytes(), 2_000);
        // The peer acknowledged only half of it.
        connection.on_segment(1, None, &segment(TcpHeader::ACK, 5, start.wrapping_add(1_000)), 0, 0);
        assert_eq!(connection.sides[0].unique_bytes(), 1_000);
    }

    #[test]
    fn a_syn_with_another_number_is_another_connection_and_a_resent_one_is_not() {
        let mut connection = Connection::default();
        connection.on_segment(0, None, &segment(TcpHeader::SYN, 10, 0), 0, 0);
        assert!(!connection.is_succeeded_by(0, &segment(TcpHeader::SYN, 10, 0)));
        assert!(connection.is_succeeded_by(0, &segment(TcpHeader::SYN, 11, 0)));
        // Simultaneous open.
        assert!(!connection.is_succeeded_by(1, &segment(TcpHeader::SYN, 77, 0)));
        connection.on_segment(1, None, &segment(TcpHeader::ACK, 77, 11), 0, 0);
        assert!(connection.is_succeeded_by(1, &segment(TcpHeader::SYN, 78, 0)));
    }

    #[test]
    fn a_reset_with_window_zero_is_no_zero_window() {
        let mut connection = Connection::default();
        let closed = |flags| TcpHeader { window: 0, ..segment(flags, 1, 1) };
        connection.on_segment(0, None, &closed(TcpHeader::RST | TcpHeader::ACK), 0, 0);
        assert_eq!(connection.sides[0].zero_window_count, 0);
        connection.on_segment(0, None, &closed(TcpHeader::ACK), 0, 0);
        assert_eq!(connection.sides[0].zero_window_count, 1);
    }
}
