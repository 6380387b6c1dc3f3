//! The tests on one segment, in Wireshark's order. They read the state of both sides as the segments before left it.

use super::circular::{is_after, is_at_or_before, is_before};
use super::side::Side;
use super::{Segment, WsFlags, WsRow, tcp_flag};

/// Resent data counts as fast retransmission only this soon after the peer's last segment.
const FAST_RETRANSMISSION_NS: u64 = 20_000_000;
/// Stands in for the handshake RTT where no handshake was seen.
const DEFAULT_OUT_OF_ORDER_NS: u64 = 3_000_000;
const SYN_FIN: u16 = tcp_flag::SYN | tcp_flag::FIN;

/// What the tests need to know of the connection as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    /// Handshake round trip; 0 = unknown.
    pub(super) initial_rtt_ns: i64,
    /// An MPTCP option of a new kind was seen since the sender's last segment.
    pub(super) has_new_mptcp: bool,
}

/// Runs all tests. Sets the flags and what belongs to them in `row`; counters change, sequence state does not.
///
/// Returns whether Wireshark keeps a note on the frame, be it an empty one.
pub(super) fn apply(segment: &Segment, me: &mut Side, peer: &mut Side, context: Context, row: &mut WsRow) -> bool {
    let is_probe = segment.payload_bytes == 1 && segment.seq == me.next && peer.window == 0;
    if is_probe {
        row.flags |= WsFlags::ZERO_WINDOW_PROBE;
    } else {
        window_and_duplicate_tests(segment, me, peer, context, row);
    }
    if segment.ack != me.last_ack {
        me.duplicate_acks = 0;
        me.last_nondup_frame_no = segment.frame_no;
    }
    let acks_unseen_data = unseen_data_test(segment, peer, row);
    if segment.payload_bytes > 0 || segment.flags & SYN_FIN != 0 {
        retransmission_tests(segment, me, peer, context.initial_rtt_ns, row);
    }
    acks_unseen_data || !row.flags.is_empty()
}

fn window_and_duplicate_tests(segment: &Segment, me: &mut Side, peer: &Side, context: Context, row: &mut WsRow) {
    let len = segment.payload_bytes;
    let window = u32::from(segment.window);
    let is_plain = segment.flags & (SYN_FIN | tcp_flag::RST) == 0;

    if window == 0 && is_plain {
        row.flags |= WsFlags::ZERO_WINDOW;
    }
    if me.next != 0 && is_after(segment.seq, me.next) && segment.flags & tcp_flag::RST == 0 {
        row.flags |= WsFlags::LOST_SEGMENT;
        me.knows_flight = false;
    }
    if !is_plain {
        return;
    }
    if len <= 1 && segment.seq == me.next.wrapping_sub(1) {
        row.flags |= WsFlags::KEEP_ALIVE;
    }
    if len > 0 {
        let limit = peer.offered_window_bytes().map(|window| peer.last_ack.wrapping_add(window));
        if limit == Some(segment.seq.wrapping_add(len)) {
            row.flags |= WsFlags::WINDOW_FULL;
        }
        return;
    }
    // From here on: a segment without data that says nothing new except, perhaps, a window.
    if segment.seq != me.next || segment.ack != me.last_ack {
        return;
    }
    if window != me.window {
        if window != 0 {
            row.flags |= WsFlags::WINDOW_UPDATE;
        }
    } else if window == 0 {
        if peer.last_was_probe {
            row.flags |= WsFlags::ZERO_WINDOW_PROBE_ACK;
        }
    } else if peer.last_was_keep_alive {
        row.flags |= WsFlags::KEEP_ALIVE_ACK;
    } else if !context.has_new_mptcp {
        me.duplicate_acks = me.duplicate_acks.wrapping_add(1).max(1);
        row.flags |= WsFlags::DUPLICATE_ACK;
        row.duplicate_ack_num = me.duplicate_acks;
        row.duplicate_ack_frame = Some(me.last_nondup_frame_no);
    }
}

/// "ACKed unseen segment". Marks the frame as analysed even where it keeps silent.
fn unseen_data_test(segment: &Segment, peer: &mut Side, row: &mut WsRow) -> bool {
    if segment.flags & tcp_flag::ACK == 0 || peer.contig == 0 || !is_after(segment.ack, peer.contig) {
        return false;
    }
    if is_before(peer.contig, peer.next) {
        peer.contig = peer.next;
        row.flags |= WsFlags::ACK_LOST_SEGMENT;
        return true;
    }
    // One gap is reported once: the counter is marked, and Wireshark's is unsigned.
    if peer.duplicate_acks == 0 {
        row.flags |= WsFlags::ACK_LOST_SEGMENT;
    }
    peer.duplicate_acks = u32::MAX;
    true
}

fn retransmission_tests(segment: &Segment, me: &Side, peer: &Side, initial_rtt_ns: i64, row: &mut WsRow) {
    if row.flags.contains(WsFlags::KEEP_ALIVE) {
        return;
    }
    let len = segment.payload_bytes;
    let end = segment.seq.wrapping_add(len);
    if len > 0 && peer.last_ack != 0 && is_at_or_before(end, peer.last_ack) {
        row.flags |= WsFlags::SPURIOUS_RETRANSMISSION;
        return;
    }
    // Data that starts one byte low follows a probe byte; it is new.
    let follows_probe = len > 1 && segment.seq == me.next.wrapping_sub(1);
    if me.next == 0 || !is_before(segment.seq, me.next) || follows_probe {
        return;
    }
    if peer.duplicate_acks >= 2
        && peer.last_ack == segment.seq
        && elapsed_ns(peer.last_time_ns, segment.time_ns) < FAST_RETRANSMISSION_NS
    {
        row.flags |= WsFlags::FAST_RETRANSMISSION;
        return;
    }
    let limit_ns = if initial_rtt_ns == 0 { DEFAULT_OUT_OF_ORDER_NS } else { initial_rtt_ns as u64 };
    let full_end = end.wrapping_add(u32::from(segment.flags & SYN_FIN != 0));
    if elapsed_ns(me.next_time_ns, segment.time_ns) < limit_ns && full_end != me.next {
        row.flags |= WsFlags::OUT_OF_ORDER;
        return;
    }
    row.flags |= WsFlags::PLAIN_RETRANSMISSION;
    let waits_since_ns = me.unacked.oldest_time_ns().unwrap_or(me.next_time_ns);
    row.rto_ns = Some(segment.time_ns.wrapping_sub(waits_since_ns)).filter(|&rto_ns| rto_ns != 0);
}

/// Unsigned like Wireshark's: a clock that went back gives a huge time, which is below no limit.
fn elapsed_ns(since_ns: i64, now_ns: i64) -> u64 {
    now_ns.wrapping_sub(since_ns) as u64
}
