//! Who was sent first: whether bytes below the highest were sent again, came late, or are the same packet once more.

use super::half::Half;
use super::ip_id::IdReading;
use super::sent::{Order, Sent};
use super::seq::before;
use super::types::{Evidence, Segment, Verdict};

/// A silence this long was the retransmission timer: 200 ms at least on Linux, less what a tap may miss.
pub(super) const TIMEOUT_NS: i64 = 180_000_000;

/// What was found out about a segment before it is judged.
pub(super) struct Case {
    pub snd_max: u32,
    /// `None` also where it says nothing, being no newer than one that was seen too long ago to have overtaken it.
    pub tsval: Option<u32>,
    pub reading: IdReading,
    pub is_tsval_late: bool,
    pub is_at_sender: bool,
    pub is_syn_again: bool,
    /// Shortest full round trip, if both halves of it were seen.
    pub round_trip_ns: Option<i64>,
}

/// Whether this is a packet already seen in another cut: the pieces of an offloaded frame, or a frame put together
/// from pieces. Its ID is that of the seen frame plus one per packet in between. Gives that frame's number.
pub(super) fn piece_of_seen(half: &Half, peer: &Half, s: &Segment) -> Option<u64> {
    let id = s.ip_id.filter(|&id| id != 0 && half.ids.names_packets())?;
    if s.payload_bytes == 0 || !half.snd_max.is_some_and(|snd_max| before(s.seq, snd_max)) {
        return None;
    }
    let seen = half.sent.holding(s.seq)?;
    let limit = half.payload_limit(peer)?;
    let offset = s.seq.wrapping_sub(seen.seq);
    let is_same_stamp = seen.is_resent || seen.tsval == s.ts.map(|(tsval, _)| tsval);
    let packet = u16::try_from(offset / limit).unwrap_or(u16::MAX);
    // Cut or put together on the way to the tap, which takes no seconds.
    let is_soon = s.time_ns.saturating_sub(seen.sent_ns) <= half.rtt.late_ns();
    let is_piece = is_soon
        && offset % limit == 0
        && is_same_stamp
        && seen.last_id.is_some_and(|first| first.wrapping_add(packet) == id);
    is_piece.then_some(seen.frame_no)
}

/// Bytes that look new, after a silence as long as the retransmission timer, with IDs missing and nothing else: all
/// before is acknowledged, so the missing packets held these bytes, and no peer's data asked for a bare ACK meanwhile.
pub(super) fn was_lost_before(half: &Half, peer: &Half, s: &Segment, case: &Case) -> bool {
    let is_all_acked = half.sender.una() == Some(case.snd_max);
    let quiet_ns = half.sender.quiet_ns(s.time_ns);
    case.reading.missing > 0
        && has_room_for(u32::from(case.reading.missing), quiet_ns, half, peer, s)
        && half.ids.is_own()
        && is_all_acked
        && s.seq == case.snd_max
        && half.last_ack == peer.snd_max
        && peer.window != Some(0)
        && quiet_ns >= TIMEOUT_NS.saturating_add(case.round_trip_ns.unwrap_or(0))
}

/// Whether so many packets can have been lost before this one: its own bytes again and again, each time after twice as long, and
/// once for a tail loss probe; if there was more in flight, as much as the window holds, and then the first of it is a full
/// segment. A counter that other connections share goes on by any number.
fn has_room_for(missing: u32, quiet_ns: i64, half: &Half, peer: &Half, s: &Segment) -> bool {
    let timeouts = (quiet_ns / TIMEOUT_NS).max(0).saturating_add(1).ilog2();
    let own = timeouts + 1;
    let Some(limit) = half.payload_limit(peer).filter(|_| missing > own) else { return missing <= own };
    let window = peer.offered_bytes(half).map_or(u32::MAX, |bytes| bytes / limit);
    s.payload_bytes >= limit && missing <= window.saturating_add(own)
}

/// Whether one TSval is too short for a round trip: then no two of the same are a sending and its repetition.
fn is_tick_short(half: &Half, case: &Case) -> bool {
    half.tick_ns().zip(case.round_trip_ns).is_some_and(|(tick_ns, trip_ns)| trip_ns >= tick_ns.saturating_mul(3))
}

/// Without IDs: the same bytes with the same TSval, sooner than the sender could have been asked to repeat them.
pub(super) fn same_sending(half: &Half, s: &Segment, case: &Case) -> Option<u64> {
    let end = s.seq.wrapping_add(s.seq_len());
    let is_same = |seen: &&Sent| seen.seq == s.seq && seen.end == end && seen.tsval == case.tsval && !seen.is_resent;
    if s.payload_bytes == 0 || case.tsval.is_none() || !is_tick_short(half, case) {
        return None;
    }
    let is_soon = |seen: &&Sent| s.time_ns.saturating_sub(seen.sent_ns) <= half.rtt.late_ns();
    half.sent.holding(s.seq).filter(is_same).filter(is_soon).map(|seen| seen.frame_no)
}

/// Whether bytes below the highest were sent again or came late.
pub(super) fn old_or_late(half: &Half, s: &Segment, case: &Case) -> (Verdict, Evidence) {
    let (verdict, evidence) = sent_again_or_late(half, s, case);
    if matches!(verdict, Verdict::Reordered | Verdict::Ambiguous) && half.is_after_all(s) {
        return (Verdict::Retransmit, Evidence::TIME);
    }
    let is_order_alone = verdict == Verdict::Reordered || evidence == Evidence::SND_MAX;
    if is_order_alone && is_written_late(half, s) {
        (Verdict::New, evidence.with(Evidence::TIME))
    } else {
        (verdict, evidence)
    }
}

/// Whether the segment passed the tap before the bytes above it, by its time, and only its record comes after theirs: the
/// file is out of order, not the network.
fn is_written_late(half: &Half, s: &Segment) -> bool {
    let end = s.seq.wrapping_add(s.seq_len());
    half.sent.at_or_after(s.seq).is_some_and(|above| !before(above.seq, end) && s.time_ns < above.sent_ns)
}

fn sent_again_or_late(half: &Half, s: &Segment, case: &Case) -> (Verdict, Evidence) {
    let of = |order, evidence| match order {
        Order::After => Some((Verdict::Retransmit, evidence)),
        Order::Before => Some((Verdict::Reordered, evidence)),
        Order::Unknown => None,
    };
    if let Some(id) = case.reading.id {
        let by_clock = if case.reading.is_late { Order::Before } else { Order::After };
        let order = half.sent.order_by_id(s.seq, id);
        let order = if order == Order::Unknown { by_clock } else { order };
        if let Some(answer) = of(order, Evidence::IP_ID.with(Evidence::SND_MAX)) {
            return answer;
        }
    }
    if case.is_at_sender {
        return (Verdict::Retransmit, Evidence::SND_MAX);
    }
    if let Some(tsval) = case.tsval {
        if let Some(answer) = of(half.sent.order_by_tsval(s.seq, tsval), Evidence::TSVAL.with(Evidence::SND_MAX)) {
            return answer;
        }
        if is_tick_short(half, case) && half.sent.at_or_after(s.seq).is_some_and(|above| above.tsval == Some(tsval)) {
            return (Verdict::Reordered, Evidence::TSVAL.with(Evidence::TIME));
        }
    }
    by_time(half, s, case)
}

/// The last resort. A repetition cannot pass before the receiver's complaint has gone to the sender and the answer has
/// come back, one round trip after the hole showed.
fn by_time(half: &Half, s: &Segment, case: &Case) -> (Verdict, Evidence) {
    let end = s.seq.wrapping_add(s.seq_len());
    if half.sent.holds_all(s.seq, end) {
        return match case.tsval {
            None => (Verdict::Retransmit, Evidence::SEEN_BYTES),
            Some(_) => (Verdict::Ambiguous, Evidence::SEEN_BYTES.with(Evidence::TSVAL)),
        };
    }
    let Some(above) = half.sent.at_or_after(s.seq) else {
        return (Verdict::Ambiguous, Evidence::SND_MAX);
    };
    let since_ns = s.time_ns.saturating_sub(above.sent_ns);
    let Some(round_trip_ns) = case.round_trip_ns else {
        return (Verdict::Ambiguous, Evidence::SND_MAX);
    };
    if since_ns < round_trip_ns / 2 {
        (Verdict::Reordered, Evidence::TIME)
    } else if half.sender.is_told() && since_ns >= round_trip_ns {
        (Verdict::Retransmit, Evidence::TIME.with(Evidence::ACK))
    } else {
        (Verdict::Ambiguous, Evidence::TIME)
    }
}
