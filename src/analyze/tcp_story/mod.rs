//! The story of a connection: how it opened, what held it back, what was lost and how that was repaired, how it closed.
//!
//! A [`Story`] is told every segment that is not a copy made by the capture, and every judgement of `tcp_verdict` as it
//! becomes final. It does no I/O and has no clock. Memory per connection is bounded but for the segments whose verdicts
//! wait, which `tcp_verdict` bounds: 512 sendings and about 5 KB of quantile steps a direction, a thousand events.
//!
//! How many bytes are in flight is known exactly only where the data is sent. What rests on it (phases, limits by the
//! window, the most in flight) is told only where the tap is at the sender.

mod ecn;
mod ends;
mod event;
mod limits;
mod phases;
mod quantiles;
mod recovery;
mod rtt;
mod seq;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use event::{Event, EventKind, Frames, Mark};
pub use quantiles::Quantiles;

use ecn::EcnWatch;
use ends::{CWR, ECE, Ends};
use event::Events;
use limits::{Limits, Waits, ZeroWindow};
use phases::Phases;
use recovery::{Recover, Recovery};
use rtt::{AckOf, RttMeter};
use seq::{before, bytes_between};

use super::segment::{ACK, Checksum, FIN, RST, SYN, Segment};
use super::tcp_verdict::{Judgement, Summary as VerdictSummary};

/// An ACK or a sequence number this far off belongs to another stream.
const FAR_BYTES: u32 = 1 << 30;
/// Silence after which the next bytes may be resent ones whose first sending was lost before the tap.
const QUIET_NS: i64 = 200_000_000;
/// Without a SYN the largest segment is not known; this is the usual one.
const USUAL_MSS: u32 = 1_448;

/// What one end did as a sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SideStory {
    /// Round trips of its data, from the tap: least, median, 99th percentile; nanoseconds.
    pub rtt_min_ns: Option<i64>,
    pub rtt_median_ns: Option<i64>,
    pub rtt_p99_ns: Option<i64>,
    /// How long its own receive window was closed, and how often.
    pub zero_window_ns: i64,
    pub zero_window_stalls: u64,
    /// How long the other end's window held it back; `None` where that is not known.
    pub window_limited_ns: Option<i64>,
    /// Pauses between its data with everything acknowledged; `None` if it sent no data.
    pub idle_ns: Option<i64>,
    /// The longest wait for progress; `None` if it sent no data.
    pub longest_stall_ns: Option<i64>,
    /// ACKs with ECE and segments with CWR that it sent, SYNs left out.
    pub ece_count: u64,
    pub cwr_count: u64,
    pub resent_bytes: u64,
    /// Payload sent, resent bytes included, copies left out.
    pub payload_bytes: u64,
    /// `None` where the tap is not at the sender.
    pub max_in_flight_bytes: Option<u32>,
}

/// What the whole connection came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StorySummary {
    pub sides: [SideStory; 2],
    pub handshake: &'static str,
    pub closed_by: &'static str,
    pub is_ecn_negotiated: bool,
    pub syn_retries: u64,
    pub syn_ack_retries: u64,
}

/// One direction, named after its sender.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Side {
    snd_max: Option<u32>,
    una: Option<u32>,
    /// Newest acknowledgement that this side sent, and where the window it offers ends.
    last_ack: Option<u32>,
    window_end: Option<u32>,
    wscale: Option<u8>,
    has_syn: bool,
    mss: Option<u16>,
    last_send_ns: Option<i64>,
    has_data: bool,
    has_fin: bool,
    max_in_flight: u32,
    largest_segment: u32,
    payload_bytes: u64,
    ece_count: u64,
    rtt: RttMeter,
    limits: Limits,
    zero_window: ZeroWindow,
    phases: Phases,
    recovery: Recovery,
    ecn: EcnWatch,
}

impl Side {
    fn in_flight(&self) -> u32 {
        self.una.zip(self.snd_max).map_or(0, |(una, snd_max)| bytes_between(una, snd_max))
    }

    /// What this sender waits for, with `peer` on the other end.
    fn waits(&self, peer: &Self) -> Waits {
        if !self.has_data || self.has_fin {
            return Waits::Out;
        }
        let (Some(snd_max), in_flight) = (self.snd_max, self.in_flight()) else { return Waits::Out };
        if peer.zero_window.is_closed() {
            return Waits::Window;
        }
        // A full segment, as far as this sender has shown how large that is.
        let segment = self.largest_segment.min(peer.mss.map_or(USUAL_MSS, u32::from));
        let room = peer.window_end.map(|end| bytes_between(snd_max, end));
        match room {
            Some(room) if room < segment && in_flight > 0 => Waits::Window,
            _ if in_flight == 0 => Waits::Application,
            _ => Waits::Network,
        }
    }
}

/// The story of one connection.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Story {
    sides: [Side; 2],
    ends: Ends,
    events: Events,
    last: Option<Mark>,
    is_finished: bool,
}

impl Story {
    /// Asks for the memory that the next segment will need: reads a little here and there.
    pub fn touch(&self) -> u32 {
        let of = |side: &Side| {
            side.snd_max.unwrap_or(0)
                ^ side.payload_bytes as u32
                ^ side.limits.idle_ns as u32
                ^ side.recovery.resent_bytes as u32
                ^ side.rtt.quantiles.min_ns().unwrap_or(0) as u32
                ^ u32::from(side.zero_window.is_closed())
                ^ side.ecn.cwr_count as u32
        };
        of(&self.sides[0]) ^ of(&self.sides[1]) ^ u32::from(self.is_finished)
    }

    /// The same for the ends of its lists.
    pub fn touch_lists(&self) -> u32 {
        self.sides[0].rtt.touch() ^ self.sides[1].rtt.touch()
    }

    /// An ICMP "unreachable" about a segment that `sender` sent.
    pub fn on_unreachable(&mut self, sender: u8, now: Mark) {
        self.ends.on_unreachable(sender, now);
    }

    /// The next segment; not for copies of packets that were captured before. `file` is the file of its frame.
    pub fn on_segment(&mut self, s: &Segment<'_>, file: u16) {
        if s.checksum == Checksum::Bad {
            return;
        }
        let now = Mark { file, frame_no: s.frame_no, time_ns: s.time_ns };
        self.last = Some(now);
        self.ends.on_segment(s, now);
        let dir = s.dir & 1;
        if s.has(RST) {
            self.on_reset(now);
            return;
        }
        if s.has(SYN) {
            let side = &mut self.sides[usize::from(dir)];
            (side.has_syn, side.wscale, side.mss) = (true, s.wscale, s.mss.or(side.mss));
        }
        let has_news = self.sides[usize::from(dir)].last_ack != Some(s.ack);
        if s.has(ACK) {
            self.on_ack(s, dir, now);
        }
        self.on_send(s, dir, now, has_news);
        for dir in 0..2 {
            let (side, peer, events) = self.split(dir);
            let waits = side.waits(peer);
            side.limits.enter(waits, now, dir, events);
            if waits == Waits::Window {
                side.phases.interrupt("window", dir, events);
            }
        }
    }

    /// What `acker` says of the other direction's bytes, and of its own window.
    fn on_ack(&mut self, s: &Segment<'_>, acker: u8, now: Mark) {
        let sender = acker ^ 1;
        let (side, peer, events) = self.split(sender);
        let una = *side.una.get_or_insert(s.ack);
        if s.ack.wrapping_sub(una).wrapping_add(FAR_BYTES) > 2 * FAR_BYTES || before(s.ack, una) {
            // Overtaken by a newer one, or no acknowledgement of this stream.
            return;
        }
        let is_advance = before(una, s.ack);
        side.una = Some(s.ack);
        if side.snd_max.is_none_or(|snd_max| before(snd_max, s.ack)) {
            side.snd_max = Some(s.ack);
        }
        let snd_max = side.snd_max.unwrap_or(s.ack);
        let in_flight = side.in_flight();
        // A duplicate ACK: nothing new, nothing carried, no window update, while bytes are out (RFC 5681 2).
        let offered = peer.window_end;
        let window_end = window_end(s, peer, side);
        let is_duplicate = !is_advance && s.seq_len() == 0 && in_flight > 0 && window_end == offered;
        let reports_gap = s.sack.iter().any(|(left, _)| before(s.ack, *left)) || is_duplicate;
        let tsecr = s.ts.map(|(_, tsecr)| tsecr);
        side.rtt.on_ack(&AckOf { ack: s.ack, time_ns: s.time_ns, tsecr, reports_gap, is_advance });
        // Also one that says nothing new: what was sent again may have been acknowledged before.
        side.recovery.on_ack(s.ack, s.time_ns);
        if is_advance {
            side.limits.on_progress(s.time_ns, true, in_flight > 0);
            side.phases.on_ack(s.ack, snd_max, in_flight, now, sender, events);
        }
        let is_plain = s.flags & (SYN | FIN) == 0;
        if is_plain {
            let has_echo = s.flags & ECE != 0;
            peer.ece_count += u64::from(has_echo);
            side.ecn.on_ack(s.ack, has_echo, snd_max, now, sender, events);
        }
        peer.last_ack = Some(s.ack);
        peer.window_end = window_end;
        // A SYN or FIN may carry window 0 without meaning that the receiver is full.
        if is_plain && let Some(ns) = peer.zero_window.on_window(s.window == 0, now, acker, events) {
            side.limits.on_closed_window(ns);
        }
    }

    /// `has_news`: it acknowledges other bytes than the segment before it.
    fn on_send(&mut self, s: &Segment<'_>, dir: u8, now: Mark, has_news: bool) {
        let (side, peer, events) = self.split(dir);
        let end = s.seq.wrapping_add(s.seq_len());
        if s.ecn == 3 {
            side.ecn.on_mark(end, now);
        }
        let snd_max = *side.snd_max.get_or_insert(s.seq);
        let is_far = s.seq.wrapping_sub(snd_max).wrapping_add(FAR_BYTES) > 2 * FAR_BYTES;
        let probes = peer.zero_window.is_closed() && s.seq_len() <= 1 && before(s.seq, snd_max.wrapping_add(1));
        // A bare ACK of the peer's data asks for nothing.
        if probes && (s.seq_len() == 1 || before(s.seq, snd_max) && !has_news) {
            peer.zero_window.on_probe(now);
        }
        if s.seq_len() == 0 || is_far {
            return;
        }
        side.una.get_or_insert(s.seq);
        let is_old = before(s.seq, snd_max);
        let is_quiet = side.last_send_ns.is_some_and(|last_ns| s.time_ns.saturating_sub(last_ns) >= QUIET_NS);
        side.last_send_ns = Some(s.time_ns);
        if !s.has(SYN) {
            let newest = if before(snd_max, end) { end } else { snd_max };
            let recover = (is_old || is_quiet).then_some(Recover { newest, is_sure: is_old });
            // Of a segment that starts with old bytes and goes on with new ones, the old ones count as sent again.
            let old = if is_old { s.payload_bytes.min(bytes_between(s.seq, snd_max)) } else { s.payload_bytes };
            side.recovery.on_send(s.row, now, old, recover);
        }
        if is_old {
            let tsval = s.ts.map(|(tsval, _)| tsval);
            side.rtt.on_resend(s.seq, end, s.time_ns, tsval);
            if !s.has(SYN) {
                side.phases.interrupt("loss", dir, events);
            }
        }
        side.payload_bytes += u64::from(s.payload_bytes);
        if before(snd_max, end) {
            side.snd_max = Some(end);
        }
        let in_flight = side.in_flight();
        if s.payload_bytes > 0 {
            side.has_data = true;
            side.largest_segment = side.largest_segment.max(s.payload_bytes);
            if before(snd_max, end) {
                let start = if is_old { snd_max } else { s.seq };
                side.rtt.on_send(start, end, s.time_ns, s.ts.map(|(tsval, _)| tsval));
                side.max_in_flight = side.max_in_flight.max(in_flight);
                if !side.recovery.is_open() {
                    side.phases.on_send(end, in_flight, s.payload_bytes, now);
                }
            }
            side.limits.on_progress(s.time_ns, false, in_flight > 0);
            if in_flight == 0 {
                side.limits.on_acknowledged_data(now, dir, events);
            }
        }
        if s.flags & (CWR | SYN) == CWR {
            side.ecn.on_cwr(end, now);
        }
        side.has_fin |= s.has(FIN);
    }

    fn on_reset(&mut self, now: Mark) {
        for dir in 0..2 {
            let (side, _, events) = self.split(dir);
            side.recovery.on_reset(now.time_ns);
            side.zero_window.close(now, "reset", dir, events);
            side.phases.interrupt("reset", dir, events);
            side.ecn.finish("reset", dir, events);
            side.limits.finish(now, dir, events);
            side.has_fin = true;
        }
    }

    /// The final word on a segment.
    pub fn on_judgement(&mut self, row: u64, judgement: &Judgement) {
        for dir in 0..2 {
            let (side, _, events) = self.split(dir);
            side.recovery.on_judgement(row, judgement, dir, events);
        }
    }

    /// The connection is quiet: memory that it needs only in full flow goes back.
    pub fn rest(&mut self) {
        for side in &mut self.sides {
            side.rtt.shrink();
            side.recovery.shrink();
        }
    }

    /// The connection, or the capture, is over; all judgements are in.
    pub fn finish(&mut self, verdicts: &VerdictSummary) {
        let Some(last) = self.last.filter(|_| !self.is_finished) else { return };
        self.is_finished = true;
        for dir in 0..2 {
            let (side, peer, events) = self.split(dir);
            if let Some(ns) = side.zero_window.close(last, "unfinished", dir, events) {
                peer.limits.on_closed_window(ns);
            }
            side.phases.interrupt("unfinished", dir, events);
            side.recovery.finish(dir, events);
            side.ecn.finish("unfinished", dir, events);
            side.limits.finish(last, dir, events);
        }
        self.ends.finish(last, &mut self.events);
        let needs_sender = [EventKind::SlowStart, EventKind::CongestionAvoidance, EventKind::WindowLimited];
        self.events.retain(|event| {
            verdicts.directions[usize::from(event.dir & 1)].is_at_sender || !needs_sender.contains(&event.kind)
        });
    }

    /// What happened; complete after [`Self::finish`].
    pub fn events(&self) -> impl Iterator<Item = &Event> {
        self.events.iter()
    }

    /// The figures; complete after [`Self::finish`].
    pub fn summary(&self, verdicts: &VerdictSummary) -> StorySummary {
        let (syn_retries, syn_ack_retries) = self.ends.retries();
        let mut sides = [SideStory::default(); 2];
        for (dir, out) in sides.iter_mut().enumerate() {
            let (side, peer) = (&self.sides[dir], &self.sides[dir ^ 1]);
            let is_at_sender = verdicts.directions[dir].is_at_sender;
            let rtt = &side.rtt.quantiles;
            *out = SideStory {
                rtt_min_ns: rtt.min_ns(),
                rtt_median_ns: rtt.at_ns(500),
                rtt_p99_ns: rtt.at_ns(990),
                zero_window_ns: side.zero_window.total_ns,
                zero_window_stalls: side.zero_window.stalls,
                window_limited_ns: (is_at_sender && side.has_data && peer.window_end.is_some())
                    .then_some(side.limits.window_ns),
                idle_ns: side.has_data.then_some(side.limits.idle_ns),
                longest_stall_ns: side.has_data.then_some(side.limits.longest_stall_ns),
                ece_count: side.ece_count,
                cwr_count: side.ecn.cwr_count,
                resent_bytes: side.recovery.resent_bytes,
                payload_bytes: side.payload_bytes,
                max_in_flight_bytes: (is_at_sender && side.has_data).then_some(side.max_in_flight),
            };
        }
        StorySummary {
            sides,
            handshake: self.ends.handshake(),
            closed_by: self.ends.closed_by(),
            is_ecn_negotiated: self.ends.is_ecn_negotiated,
            syn_retries,
            syn_ack_retries,
        }
    }

    /// One direction, the other, and the events.
    fn split(&mut self, dir: u8) -> (&mut Side, &mut Side, &mut Events) {
        let [zero, one] = &mut self.sides;
        if dir & 1 == 0 { (zero, one, &mut self.events) } else { (one, zero, &mut self.events) }
    }
}

/// Where the window offered by a segment of `acker` ends; `None` while its scale is not known. The window of a SYN is never
/// scaled, and no other one is unless both ends said so (RFC 7323 2.2).
fn window_end(s: &Segment<'_>, acker: &Side, other: &Side) -> Option<u32> {
    let shift = match (acker.has_syn, other.has_syn, acker.wscale, other.wscale) {
        _ if s.has(SYN) => 0,
        (true, true, Some(shift), Some(_)) => shift.min(14),
        (true, true, _, _) => 0,
        _ => return None,
    };
    Some(s.ack.wrapping_add(u32::from(s.window) << shift))
}
