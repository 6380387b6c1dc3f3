//! What is kept of a TCP connection for its summary: handshake, options, volumes.

use serde::{Deserialize, Serialize};

use super::duplicates::{SpotCopies, SpotCopy};
use super::holes::HoleTracker;
use super::tcp_verdict::{Passing, VantagePoint};
use crate::wire::TcpHeader;

/// One direction of a connection. Index 0 of [`Connection::sides`] is the low end of the flow's key.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
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
    /// Segments of at most one MSS that carried payload: a frame that a network card cuts counts as several.
    pub data_segments: u64,
    /// Segments above the MSS that the other end announced: cut or joined by a network card, not by the network.
    pub over_mss_count: u64,
    pub first_over_mss: Option<u64>,
    pub copies: SpotCopies,
    /// Segments that were captured before, here or on the other side of a router, and their payload: frames of the capture
    /// that the sender did not send.
    pub copied_packets: u64,
    pub copied_bytes: u64,
    pub holes: HoleTracker,
    pub first_data_ns: Option<i64>,
    pub last_data_ns: Option<i64>,
    /// Stream position of the first payload byte seen, and of the end of the payload: wrapping numbers and a count beside.
    span: Span,
    /// How far the other end acknowledged, likewise.
    acked: Span,
}

/// A stretch of sequence space that only grows, counted in 64 bits so that it survives wraps.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
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

    /// Stream bytes of which the other end acknowledged none, although it acknowledged the SYN; `None` where it did some.
    pub fn unacknowledged_bytes(&self) -> Option<u64> {
        let has_none = self.span.is_set && self.acked.is_set && self.unique_bytes() == 0;
        has_none.then_some(self.span.bytes).filter(|bytes| *bytes > 0)
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

/// A segment, with what its frame says of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SeenSegment<'a> {
    /// 0 = the low end of the flow's key.
    pub sender: u8,
    pub frame_no: u64,
    pub time_ns: Option<i64>,
    pub tcp: &'a TcpHeader,
    pub sack: &'a [(u32, u32)],
    pub payload_bytes: u32,
    pub ecn: u8,
    /// TTL or hop limit.
    pub ttl: u8,
    pub is_copy: bool,
    /// It is the same packet before or after a router.
    pub is_router_copy: bool,
    pub file: u16,
}

/// RFC 2883: a first block below the acknowledgement, or inside the second block, reports bytes that came twice.
fn dsack_of(sack: &[(u32, u32)], ack: u32) -> Option<(u32, u32)> {
    let (left, right) = *sack.first()?;
    let is_below = (ack.wrapping_sub(right) as i32) >= 0;
    let is_inside = sack.get(1).is_some_and(|(outer_left, outer_right)| {
        (left.wrapping_sub(*outer_left) as i32) >= 0 && (outer_right.wrapping_sub(right) as i32) >= 0
    });
    (is_below || is_inside).then_some((left, right))
}

/// A TCP connection.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Connection {
    pub sides: [Side; 2],
    /// The end that sent the SYN.
    pub client: Option<u8>,
    syn_ns: Option<i64>,
    syn_ack_ns: Option<i64>,
    /// Where the tap is.
    pub vantage: VantagePoint,
    pub handshake_rtt_ns: Option<i64>,
}

impl Connection {
    /// Asks for the memory that the next segment will need: reads a little here and there.
    pub fn touch(&self) -> u32 {
        let of = |side: &Side| {
            side.data_segments as u32
                ^ side.span.end
                ^ side.acked.end
                ^ side.max_segment_bytes
                ^ u32::from(side.mss.unwrap_or(0))
                ^ u32::from(side.last_data_ns.is_some())
        };
        of(&self.sides[0]) ^ of(&self.sides[1]) ^ u32::from(self.syn_ns.is_some()) ^ u32::from(self.client.unwrap_or(0))
    }

    /// SYN and SYN,ACK of a handshake in which each came once, so that one surely answers the other.
    pub fn handshake_times(&self) -> Option<(i64, i64)> {
        let [low, high] = &self.sides;
        let is_plain = low.syn_count + high.syn_count == 1 && low.syn_ack_count + high.syn_ack_count == 1;
        self.syn_ns.zip(self.syn_ack_ns).filter(|_| is_plain)
    }

    /// `is_copy`: the same packet was captured before, at the same place.
    pub fn on_segment(&mut self, seen: &SeenSegment<'_>) {
        let SeenSegment { tcp, time_ns, payload_bytes, .. } = *seen;
        let (sender, peer) = (usize::from(seen.sender & 1), usize::from(seen.sender & 1 ^ 1));
        let is_syn = tcp.has_flag(TcpHeader::SYN);
        if is_syn {
            self.sides[sender].isn = Some(tcp.seq);
        }
        let is_ack = tcp.has_flag(TcpHeader::ACK);
        let is_rst = tcp.has_flag(TcpHeader::RST);
        let length = payload_bytes + u32::from(is_syn) + u32::from(tcp.has_flag(TcpHeader::FIN));
        let end = tcp.seq.wrapping_add(length);
        if seen.is_router_copy {
            self.vantage.on_router_copy();
        }
        if seen.is_copy {
            // The frame is there, but its sender sent it once.
            self.sides[sender].copied_packets += 1;
            self.sides[sender].copied_bytes += u64::from(payload_bytes);
            if !seen.is_router_copy {
                let copy = SpotCopy { file: seen.file, frame_no: seen.frame_no, start: tcp.seq, end };
                self.sides[sender].copies.on_copy(copy);
            }
            return;
        }
        self.on_handshake(sender, time_ns, tcp);
        if let Some(time_ns) = time_ns {
            self.vantage.on_packet(&Passing {
                dir: seen.sender,
                time_ns,
                flags: tcp.flags,
                ttl: seen.ttl,
                seq: tcp.seq,
                seq_len: length,
                ack: tcp.ack,
            });
        }
        if !is_rst {
            self.sides[sender].holes.on_segment(tcp.seq, end);
        }
        if is_ack && !is_rst {
            self.sides[peer].holes.on_ack(tcp.ack, seen.frame_no);
            if let Some((left, right)) = dsack_of(seen.sack, tcp.ack) {
                self.sides[peer].copies.on_dsack(left, right);
            }
        }
        let peer_mss = self.sides[peer].mss;
        let side = &mut self.sides[sender];
        if payload_bytes > 0 && !is_rst {
            side.data_segments += u64::from(payload_bytes.div_ceil(peer_mss.map_or(u32::MAX, u32::from).max(1)));
        }
        if peer_mss.is_some_and(|mss| payload_bytes > u32::from(mss)) {
            side.over_mss_count += 1;
            side.first_over_mss.get_or_insert(seen.frame_no);
        }
        let ecn = seen.ecn;
        side.fin_count += u64::from(tcp.has_flag(TcpHeader::FIN));
        side.rst_count += u64::from(tcp.has_flag(TcpHeader::RST));
        side.ce_count += u64::from(ecn == 3);
        // A RST, and a SYN or FIN, may carry window 0 without meaning that the receiver is full.
        let is_plain = tcp.flags & (TcpHeader::SYN | TcpHeader::FIN | TcpHeader::RST) == 0;
        side.zero_window_count += u64::from(is_plain && tcp.window == 0);
        if payload_bytes > 0 && !is_rst {
            let start = tcp.seq.wrapping_add(u32::from(is_syn));
            side.span.reach(start, start.wrapping_add(payload_bytes));
            side.max_segment_bytes = side.max_segment_bytes.max(payload_bytes);
            side.first_data_ns = side.first_data_ns.or(time_ns);
            side.last_data_ns = time_ns.or(side.last_data_ns);
        }
        if is_ack && !is_rst {
            self.sides[peer].acked.reach(tcp.ack, tcp.ack);
        }
    }

    fn on_handshake(&mut self, sender: usize, time_ns: Option<i64>, tcp: &TcpHeader) {
        let is_ack = tcp.has_flag(TcpHeader::ACK);
        if tcp.has_flag(TcpHeader::SYN) {
            let side = &mut self.sides[sender];
            side.mss = tcp.mss().or(side.mss);
            side.wscale = tcp.wscale().or(side.wscale);
            side.is_sack_permitted |= tcp.is_sack_permitted();
            side.has_timestamps |= tcp.timestamps().is_some();
            if is_ack {
                side.syn_ack_count += 1;
                self.syn_ack_ns = time_ns;
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

    fn feed(connection: &mut Connection, sender: u8, time_ns: Option<i64>, tcp: &TcpHeader, payload_bytes: u32) {
        connection.on_segment(&seen_of(sender, time_ns, tcp, payload_bytes));
    }

    fn seen_of(sender: u8, time_ns: Option<i64>, tcp: &TcpHeader, payload_bytes: u32) -> SeenSegment<'_> {
        SeenSegment {
            sender,
            frame_no: 1,
            time_ns,
            tcp,
            sack: &[],
            payload_bytes,
            ecn: 0,
            ttl: 64,
            is_copy: false,
            is_router_copy: false,
            file: 0,
        }
    }

    fn segment(flags: u16, seq: u32, ack: u32) -> TcpHeader {
        TcpHeader { flags, seq, ack, window: 100, ..TcpHeader::default() }
    }

    #[test]
    fn the_handshake_takes_from_syn_to_the_clients_ack() {
        let mut connection = Connection::default();
        feed(&mut connection, 1, Some(1_000), &segment(TcpHeader::SYN, 10, 0), 0);
        feed(&mut connection, 0, Some(4_000), &segment(TcpHeader::SYN | TcpHeader::ACK, 90, 11), 0);
        feed(&mut connection, 1, Some(4_500), &segment(TcpHeader::ACK, 11, 91), 0);
        feed(&mut connection, 1, Some(9_500), &segment(TcpHeader::ACK, 11, 91), 0);
        assert_eq!((connection.client, connection.handshake_rtt_ns), (Some(1), Some(3_500)));
    }

    #[test]
    fn copies_of_the_handshake_are_no_further_tries_and_do_not_delay_it() {
        let mut connection = Connection::default();
        for (time_ns, is_copy) in [(1_000, false), (2_000, true)] {
            let tcp = segment(TcpHeader::SYN, 10, 0);
            let seen = SeenSegment { is_copy, ..seen_of(1, Some(time_ns), &tcp, 0) };
            connection.on_segment(&seen);
        }
        feed(&mut connection, 0, Some(4_000), &segment(TcpHeader::SYN | TcpHeader::ACK, 90, 11), 0);
        feed(&mut connection, 1, Some(4_500), &segment(TcpHeader::ACK, 11, 91), 0);
        assert_eq!((connection.sides[1].syn_count, connection.handshake_rtt_ns), (1, Some(3_500)));
    }

    #[test]
    fn resent_bytes_count_once_also_across_a_wrap() {
        let mut connection = Connection::default();
        let start = u32::MAX - 999;
        for seq in [start, start.wrapping_add(1_000), start, start.wrapping_add(500)] {
            feed(&mut connection, 0, Some(i64::from(seq)), &segment(TcpHeader::ACK, seq, 5), 1_000);
        }
        assert_eq!(connection.sides[0].unique_bytes(), 2_000);
        // The peer acknowledged only half of it.
        feed(&mut connection, 1, None, &segment(TcpHeader::ACK, 5, start.wrapping_add(1_000)), 0);
        assert_eq!(connection.sides[0].unique_bytes(), 1_000);
    }

    #[test]
    fn a_reset_with_window_zero_is_no_zero_window() {
        let mut connection = Connection::default();
        let closed = |flags| TcpHeader { window: 0, ..segment(flags, 1, 1) };
        feed(&mut connection, 0, None, &closed(TcpHeader::RST | TcpHeader::ACK), 0);
        assert_eq!(connection.sides[0].zero_window_count, 0);
        feed(&mut connection, 0, None, &closed(TcpHeader::ACK), 0);
        assert_eq!(connection.sides[0].zero_window_count, 1);
    }
}
