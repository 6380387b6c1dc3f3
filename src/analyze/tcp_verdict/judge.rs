//! The questions put to a segment, in order.

use super::Connection;
use super::copies::Copied;
use super::half::Half;
use super::held::{AckedAt, FreshRow, HeldRow, Kind, Out, emit};
use super::order::{Case, TIMEOUT_NS, old_or_late, piece_of_seen, same_sending, was_lost_before};
use super::sender::{AckIn, Resent};
use super::sent::Sent;
use super::seq::{before, distance, later};
use super::types::{ACK, Cause, Checksum, Evidence, FIN, Judgement, RST, SYN, Segment, Verdict};
use super::vantage::Passing;

impl Connection {
    /// Judges one segment, or puts it on hold.
    pub(super) fn judge(&mut self, s: &Segment, out: &mut Out) {
        let dir = usize::from(s.dir & 1);
        let (half, peer) = self.pair(dir);
        half.counts.is_seen = true;
        if s.checksum == Checksum::Bad {
            return emit(s.row, Judgement::plain(Verdict::Damaged, Evidence::CHECKSUM), &mut half.counts, out);
        }
        match half.copies.check(s, half.ids.names_packets()) {
            Copied::No => {}
            Copied::Here { first_frame_no } => return on_copy(half, s, first_frame_no, out),
            Copied::Elsewhere { evidence, first_frame_no } => {
                half.emit_copy(s.row, Verdict::CaptureDuplicate, evidence, first_frame_no, out);
                if evidence.has(Evidence::TTL) {
                    self.vantage.on_router_copy();
                }
                return;
            }
        }
        if let Some(first_frame_no) = piece_of_seen(half, peer, s) {
            let evidence = Evidence::SAME_PACKET.with(Evidence::IP_ID);
            return half.emit_copy(s.row, Verdict::CaptureDuplicate, evidence, first_frame_no, out);
        }
        self.vantage.on_packet(&Passing {
            dir: s.dir,
            time_ns: s.time_ns,
            flags: s.flags,
            ttl: s.ttl,
            seq: s.seq,
            seq_len: s.seq_len(),
            ack: s.ack,
        });
        if s.has(ACK) && !s.has(RST) {
            let (half, peer) = self.pair(dir);
            if let Some((_, tsecr)) = s.ts {
                peer.on_echo(tsecr, s.time_ns);
            }
            on_ack(peer, half, s, out);
        }
        self.judge_sending(s, dir, out);
        let (half, _) = self.pair(dir);
        half.on_window(s);
        if s.has(ACK) && !s.has(RST) {
            half.last_ack = Some(s.ack);
        }
    }

    /// The segment as its sender's doing.
    fn judge_sending(&mut self, s: &Segment, dir: usize, out: &mut Out) {
        let is_at_sender = self.vantage.sender_dir() == Some(s.dir & 1);
        let (half, _) = self.pair(dir);
        // Asked for only where something looks old.
        let looks_old = s.seq_len() > 0
            && half.snd_max.is_some_and(|snd_max| {
                before(s.seq, snd_max) || s.seq == snd_max && half.sender.quiet_ns(s.time_ns) >= TIMEOUT_NS
            });
        let round_trip_ns = if looks_old { self.round_trip_ns(dir) } else { None };
        let (half, peer) = self.pair(dir);
        if s.has(RST) {
            // An RST is outside the byte stream: its number is often the peer's wish, its ID not the socket's.
            return emit(s.row, Judgement::plain(Verdict::New, Evidence::default()), &mut half.counts, out);
        }
        let is_syn_again = s.has(SYN) && half.isn == Some(s.seq);
        if s.has(SYN) && !is_syn_again {
            half.on_syn(s);
        }
        let tsval = s.ts.map(|(tsval, _)| tsval);
        let is_no_newer = |this: &u32| half.newest_tsval.is_some_and(|newest| !before(newest, *this));
        let is_long_ago = || s.time_ns.saturating_sub(half.newest_stamp_ns) > half.rtt.late_ns();
        let telling = tsval.filter(|this| !(is_no_newer(this) && is_long_ago()));
        let is_tsval_late = matches!((telling, half.newest_tsval), (Some(this), Some(newest)) if before(this, newest));
        if let Some(this) = tsval
            && half.newest_tsval.is_none_or(|newest| before(newest, this))
        {
            half.first_stamp.get_or_insert((this, s.time_ns));
            (half.newest_tsval, half.newest_stamp_ns) = (Some(this), s.time_ns);
            half.asked_stamp.get_or_insert((this, s.time_ns));
        }
        let took = half.packets_of(s.payload_bytes, peer);
        let is_news = s.seq_len() > 0 && half.snd_max.is_none_or(|snd_max| !before(s.seq, snd_max));
        let reading = half.ids.read(s, took, is_news, || half.rtt.late_ns());
        let snd_max = half.snd_max.unwrap_or(s.seq);
        if half.snd_max.is_none() {
            half.reach(snd_max, s.time_ns);
        }
        let case = Case { snd_max, tsval: telling, reading, is_tsval_late, is_at_sender, is_syn_again, round_trip_ns };

        if !half.is_plausible(s.seq, peer) && !is_syn_again {
            return on_stray(half, s, out);
        }
        if let Some(judgement) = probe_or_bare(half, peer, s, &case) {
            if s.seq_len() == 0 && before(snd_max, s.seq) {
                half.reach(s.seq, s.time_ns);
            }
            match judgement {
                Probe::Final(judgement) => emit(s.row, judgement, &mut half.counts, out),
                Probe::Asked => hold(half, s, Kind::KeepAlive, Evidence::SND_MAX, 1, first_frame_no(half, s), out),
            }
            return;
        }
        half.has_fin |= s.has(FIN);
        let was_lost = was_lost_before(half, peer, s, &case);
        if reading.missing > 0 && s.seq == snd_max {
            half.ids.on_strange_gap();
        }
        if is_syn_again || before(s.seq, snd_max) || was_lost {
            judge_old(half, peer, s, &case, out);
        } else {
            judge_advance(half, peer, s, &case, out);
        }
        half.sent.forget(s.time_ns.saturating_sub(half.rtt.memory_ns()));
    }

    /// The shortest full round trip seen, end to end and back; `None` if one half of it was never seen.
    fn round_trip_ns(&self, dir: usize) -> Option<i64> {
        let (own, other) = (self.halves[dir].half_trip_ns(), self.halves[1 - dir].half_trip_ns());
        let is_at_sender = self.vantage.sender_dir() == Some(dir as u8);
        let both = own.zip(other).map(|(own, other)| own.saturating_add(other)).or(own.filter(|_| is_at_sender));
        match (self.vantage.round_trip_ns(), both) {
            (Some(handshake), Some(both)) => Some(handshake.min(both)),
            (handshake, both) => handshake.or(both),
        }
    }
}

enum Probe {
    Final(Judgement),
    /// The receiver's answer will tell.
    Asked,
}

/// The ACK side of a segment of `acker`, for the sender `half` that it answers.
fn on_ack(half: &mut Half, acker: &mut Half, s: &Segment, out: &mut Out) {
    acker.has_sent_sack |= !s.sack.is_empty();
    if !half.is_plausible(s.ack, acker) {
        return;
    }
    let snd_max = half.snd_max.unwrap_or(s.ack);
    let (mut sack, mut has_dsack, mut dsacked_segments) = (s.sack, false, 0);
    if let Some((&(left, right), rest)) = s.sack.split_first()
        && before(left, right)
    {
        // RFC 2883 4: the first block repeats what is acknowledged, or what the second block holds.
        let is_old = before(left, s.ack);
        let is_inside = rest.first().is_some_and(|&(low, high)| !before(left, low) && !before(high, right));
        if is_old || is_inside {
            let matched = half.held.dsack(left, right, &mut half.counts, out);
            half.resent_segments = half.resent_segments.saturating_add(u64::from(matched.probes));
            if !is_stale(half, acker, s) {
                half.counts.dsack_old_count += u64::from(is_old);
                half.counts.dsack_ooo_count += u64::from(!is_old);
                half.count_dsack(right.wrapping_sub(left), acker);
            }
            dsacked_segments = matched.segments;
            (sack, has_dsack) = (rest, true);
        }
    }
    let is_bare = s.payload_bytes == 0 && s.flags & (SYN | FIN) == 0 && acker.window == Some(s.window);
    let before_una = half.sender.una();
    let ack = AckIn {
        ack: s.ack,
        sack,
        tsecr: s.ts.map(|(_, tsecr)| tsecr),
        time_ns: s.time_ns,
        is_bare,
        has_dsack,
        dsacked_segments,
        has_sack: half.has_sack(acker),
        snd_max,
    };
    if let Some(rtt_ns) = half.sender.on_ack(&ack, &mut half.sent) {
        half.rtt.sample(rtt_ns);
    }
    if half.sender.una() != before_una && !half.held.is_empty() {
        half.held.acknowledge(s.ack, AckedAt { time_ns: s.time_ns, at_ns: s.at.ns });
    }
}

/// Whether the sender's PAWS check (RFC 7323 5.2) drops this ACK, so that it counts nothing from it: it is older than
/// one that came before by more than a tick, and no plain duplicate of the current ACK. What it reports is true anyway.
fn is_stale(half: &Half, acker: &Half, s: &Segment) -> bool {
    let (Some((tsval, _)), Some(newest)) = (s.ts, acker.newest_tsval) else {
        return false;
    };
    let is_no_update = acker.window.is_some_and(|window| s.window <= window);
    let is_current = s.payload_bytes == 0 && half.sender.una() == Some(s.ack) && is_no_update;
    distance(tsval, newest) > 1 && !is_current
}

/// The same packet at the same place: the receiver tells whether it got it twice.
fn on_copy(half: &mut Half, s: &Segment, first_frame_no: u64, out: &mut Out) {
    if s.payload_bytes == 0 {
        let evidence = Evidence::SAME_PACKET.with(Evidence::HISTORY);
        return half.emit_copy(s.row, half.held.usual_copy(), evidence, first_frame_no, out);
    }
    hold(half, s, Kind::Copy, Evidence::SAME_PACKET, 0, Some(first_frame_no), out);
}

/// A segment far outside the window. Two in a row make a capture that missed much, one is damage.
fn on_stray(half: &mut Half, s: &Segment, out: &mut Out) {
    let end = s.seq.wrapping_add(s.seq_len());
    let goes_on = half.stray_end.is_some_and(|stray| stray.wrapping_sub(s.seq).wrapping_add(1 << 16) <= 2 << 16);
    if goes_on {
        half.sent.clear();
        half.sender = super::sender::Sender::default();
        half.reach(end, s.time_ns);
    }
    half.stray_end = Some(end).filter(|_| !goes_on);
    emit(s.row, Judgement::plain(Verdict::Unknown, Evidence::default()), &mut half.counts, out);
}

/// Segments that carry nothing, and the one-byte ones that only ask.
fn probe_or_bare(half: &Half, peer: &Half, s: &Segment, case: &Case) -> Option<Probe> {
    let is_final = |verdict, evidence| Some(Probe::Final(Judgement::plain(verdict, evidence)));
    let len = s.seq_len();
    if len > 1 || s.flags & (SYN | FIN) != 0 {
        return None;
    }
    let is_closed = peer.window == Some(0);
    let una = half.sender.una();
    if is_closed && len == 1 && una == Some(s.seq) && s.seq == case.snd_max.wrapping_sub(1) {
        // The same probe again: the byte was not taken.
        return is_final(Verdict::WindowProbe, Evidence::WINDOW.with(Evidence::SEEN_BYTES));
    }
    if len == 1 && s.seq == case.snd_max {
        return None;
    }
    if case.reading.is_late {
        return if len == 0 { is_final(Verdict::Reordered, Evidence::IP_ID) } else { None };
    }
    let is_acked = una.is_none_or(|una| !before(una, case.snd_max));
    let asks = s.seq == case.snd_max.wrapping_sub(1) && is_acked && !half.has_fin && !case.is_tsval_late;
    if asks && is_closed {
        return is_final(Verdict::WindowProbe, Evidence::WINDOW.with(Evidence::SND_MAX));
    }
    if asks && (len == 0 || una.is_some()) {
        // A tail probe repeats a whole segment. One that was a single byte looks like a keep-alive unless the sender
        // is here and has had its ACK.
        let was_one_byte = half.sent.holding(s.seq).is_none_or(|sent| sent.seq == s.seq);
        if len == 1 && was_one_byte && !case.is_at_sender {
            return Some(Probe::Asked);
        }
        return is_final(Verdict::KeepAlive, Evidence::SND_MAX.with(Evidence::ACK));
    }
    if len == 0 { is_final(Verdict::New, Evidence::default()) } else { None }
}

/// Bytes beyond all that was seen.
fn judge_advance(half: &mut Half, peer: &Half, s: &Segment, case: &Case, out: &mut Out) {
    let end = s.seq.wrapping_add(s.seq_len());
    let is_usable = half.ids.is_usable();
    let (verdict, evidence) = if case.reading.is_late {
        (Verdict::Reordered, Evidence::IP_ID)
    } else if !is_usable && !case.is_at_sender && case.is_tsval_late {
        (Verdict::Reordered, Evidence::TSVAL)
    } else if peer.window == Some(0) && s.seq_len() == 1 && s.payload_bytes == 1 && half.sender.una() == Some(s.seq) {
        // A probe may carry the next byte (RFC 9293 3.8.6.1).
        (Verdict::WindowProbe, Evidence::WINDOW)
    } else {
        (Verdict::New, Evidence::SND_MAX)
    };
    let quiet_ns = half.sender.quiet_ns(s.time_ns);
    if case.reading.is_next && before(case.snd_max, s.seq) {
        // Bytes are missing but no ID: they were sent before the last packet that was seen.
        half.sender.on_older_hole(s.seq);
    }
    half.sent.push(copy_of(s, s.seq, case, true));
    half.reach(end, s.time_ns);
    half.sender.on_send(s.time_ns);
    if verdict == Verdict::New && is_usable && !case.reading.is_next {
        half.gap_until_ns = half.gap_until_ns.max(s.at.ns.saturating_add(half.rtt.bound_ns()));
    }
    let none_missing = is_usable && case.reading.is_next && half.gap_until_ns <= s.at.ns;
    if verdict != Verdict::New || case.is_at_sender || none_missing {
        return emit(s.row, Judgement::plain(verdict, evidence), &mut half.counts, out);
    }
    let fresh = FreshRow {
        row: s.row,
        seq: s.seq,
        end,
        time_ns: s.time_ns,
        since: s.at,
        verdict,
        evidence,
        cause_if_resent: if quiet_ns >= TIMEOUT_NS { Cause::Timeout } else { Cause::Probe },
        until_ns: if is_usable { half.gap_until_ns } else { i64::MIN },
    };
    half.held.hold_fresh(fresh, &mut half.counts, out);
}

/// Bytes that start below the highest seen.
fn judge_old(half: &mut Half, peer: &Half, s: &Segment, case: &Case, out: &mut Out) {
    let end = s.seq.wrapping_add(s.seq_len());
    let is_unseen = s.seq == case.snd_max;
    if case.reading.id.is_none()
        && !case.is_syn_again
        && let Some(first_frame_no) = same_sending(half, s, case)
    {
        return on_copy(half, s, first_frame_no, out);
    }
    let (verdict, mut evidence) = if case.is_syn_again {
        (Verdict::Retransmit, Evidence::SEEN_BYTES)
    } else if is_unseen {
        (Verdict::Retransmit, Evidence::IP_ID)
    } else {
        old_or_late(half, s, case)
    };
    let mut copy = copy_of(s, s.seq, case, verdict != Verdict::Retransmit);
    copy.is_resent = verdict == Verdict::Retransmit;
    if verdict != Verdict::Retransmit {
        if verdict == Verdict::Reordered && half.sent.holding(s.seq).is_some() {
            half.held.relabel(s.seq, end, &mut half.counts, out);
        }
        emit(s.row, Judgement::plain(verdict, evidence), &mut half.counts, out);
    } else {
        let segments = half.packets_of(s.payload_bytes, peer);
        half.resent_segments = half.resent_segments.saturating_add(u64::from(segments));
        let cause = if s.has(SYN) {
            let asked_ns = peer.sender.quiet_ns(s.time_ns);
            if asked_ns.min(half.sender.quiet_ns(s.time_ns)) >= TIMEOUT_NS {
                evidence = evidence.with(Evidence::QUIET);
            }
            if s.has(ACK) { Cause::SynAck } else { Cause::Syn }
        } else {
            let resent = Resent {
                start: s.seq,
                end,
                payload_bytes: s.payload_bytes,
                segments,
                time_ns: s.time_ns,
                tsval: case.tsval,
                has_sack: half.has_sack(peer),
                mss: half.payload_limit(peer),
                round_trip_ns: case.round_trip_ns.unwrap_or(0),
                stamp_gap_ns: stamp_gap_ns(half, s, case),
                // Of what was lost before the tap only the IDs are known: more than one means that more bytes are out.
                snd_max: later(case.snd_max, end.wrapping_add(u32::from(case.reading.missing > 1 && is_unseen))),
            };
            let (cause, why) = half.sender.cause(&resent, &half.sent);
            evidence = evidence.with(why);
            cause
        };
        if half.sent.holds_all(s.seq, end) {
            evidence = evidence.with(Evidence::SEEN_BYTES);
        }
        hold(half, s, Kind::Resent(cause), evidence, segments, first_frame_no(half, s), out);
    }
    half.sent.cover(Sent { end: super::seq::earlier(end, case.snd_max), ..copy });
    if before(case.snd_max, end) {
        half.sent.push(Sent { is_original: !is_unseen, is_resent: is_unseen, ..copy_of(s, case.snd_max, case, true) });
        half.reach(end, s.time_ns);
    }
    half.sender.on_send(s.time_ns);
}

/// How long after the first sending this one was sent, by the sender's own clock: its timestamps, once their rate is known.
fn stamp_gap_ns(half: &Half, s: &Segment, case: &Case) -> Option<i64> {
    let before = half.sent.holding(s.seq)?.tsval?;
    Some(i64::from(distance(before, case.tsval?)).saturating_mul(half.tick_ns()?))
}

/// The frame in which the first byte of this segment was seen before.
fn first_frame_no(half: &Half, s: &Segment) -> Option<u64> {
    half.sent.holding(s.seq).map(|sent| sent.frame_no)
}

fn hold(
    half: &mut Half,
    s: &Segment,
    kind: Kind,
    evidence: Evidence,
    segments: u32,
    first_frame_no: Option<u64>,
    out: &mut Out,
) {
    let end = s.seq.wrapping_add(s.seq_len());
    let is_acked = half.sender.una().is_some_and(|una| !before(una, end));
    let row = HeldRow {
        row: s.row,
        seq: s.seq,
        end,
        time_ns: s.time_ns,
        since: s.at,
        kind,
        evidence,
        segments,
        first_frame_no,
        acked: is_acked.then_some(AckedAt { time_ns: s.time_ns, at_ns: s.at.ns }),
    };
    half.held.hold(row, &mut half.counts, out);
}

fn copy_of(s: &Segment, from: u32, case: &Case, is_original: bool) -> Sent {
    Sent {
        seq: from,
        end: s.seq.wrapping_add(s.seq_len()),
        frame_no: s.frame_no,
        sent_ns: s.time_ns,
        id: case.reading.id,
        tsval: case.tsval,
        last_id: s.ip_id.filter(|&id| id != 0),
        is_original,
        is_resent: false,
        is_sacked: false,
    }
}
