//! Everything known about one direction of a connection.

use serde::{Deserialize, Serialize};

use super::copies::CopyTable;
use super::held::{Answers, Held, Out, emit};
use super::ip_id::IdClock;
use super::rtt::RttEstimator;
use super::sender::Sender;
use super::sent::SentRing;
use super::seq::{before, distance, later, segments_of};
use super::types::{DirectionSummary, Evidence, Judgement, RST, SYN, Segment, Verdict};
use crate::analyze::{HoldLimits, Moment};

/// The timestamps option with its padding takes this much of every segment (RFC 7323).
const TIMESTAMP_BYTES: u32 = 12;

/// Without a SYN the MSS is not known: a frame above the largest that is usual is taken as offloaded pieces of the
/// most usual MSS.
const JUMBO_BYTES: u32 = 9_000;
const USUAL_MSS: u32 = 1_448;

/// An echo this many ticks ahead of what was asked for still answers it: the receiver echoes the newest.
const STAMP_SLACK: i32 = 10_000;

/// So many duplicate ACKs without a block, and never one with: the receiver does not speak SACK.
const PLAIN_DUPLICATES: u32 = 3;

/// Ticks of the timestamp clock that must have passed before its rate is believed.
const MIN_TICKS: i64 = 8;

/// How far a sequence number may jump while the receiver's window is not known.
const JUMP_BYTES: u32 = 1 << 28;

/// What is forgiven beyond the window: an ACK that the capture missed.
const WINDOW_SLACK_BYTES: u32 = 1 << 20;

/// One direction, named after its sender.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Half {
    pub copies: CopyTable,
    pub ids: IdClock,
    pub sent: SentRing,
    pub sender: Sender,
    pub rtt: RttEstimator,
    pub held: Held,
    pub counts: DirectionSummary,
    /// Highest sequence number seen, plus one; `None` before the first segment.
    pub snd_max: Option<u32>,
    /// When it was reached.
    pub snd_max_ns: i64,
    pub isn: Option<u32>,
    /// SACK-permitted in its SYN.
    pub sack_permitted: Option<bool>,
    pub has_sent_sack: bool,
    pub has_fin: bool,
    pub newest_tsval: Option<u32>,
    /// First TSval and its time, and when the newest was seen: together the sender's clock rate.
    pub first_stamp: Option<(u32, i64)>,
    pub newest_stamp_ns: i64,
    /// A TSval of this side that no echo was seen of yet, and when it passed.
    pub asked_stamp: Option<(u32, i64)>,
    /// Shortest time from a TSval of this side to its echo: tap to the other end and back.
    pub echo_ns: Option<i64>,
    /// Window field of its last segment, but for RST.
    pub window: Option<u16>,
    /// ACK field of its last segment.
    pub last_ack: Option<u32>,
    /// Packets sent before are still missing; an original is not final before this time, of the [`Moment`].
    pub gap_until_ns: i64,
    /// End of a segment that lay far outside the window: the next one may prove it right.
    pub stray_end: Option<u32>,
    /// Segments resent so far.
    pub resent_segments: u64,
    mss: Option<u16>,
    wscale: Option<u8>,
    widest: u16,
    dsacked_segments: u64,
}

impl Half {
    /// Takes in what a SYN says; another SYN with another number is another stream of bytes.
    pub fn on_syn(&mut self, s: &Segment) {
        if self.isn.is_some_and(|isn| isn != s.seq) {
            self.sent.clear();
            (self.sender, self.snd_max, self.has_fin, self.newest_tsval) = (Sender::default(), None, false, None);
        }
        self.isn = Some(s.seq);
        self.sack_permitted = Some(s.sack_permitted);
        self.mss = s.mss;
        self.wscale = s.wscale;
    }

    /// `end` is the highest sequence number seen now.
    pub fn reach(&mut self, end: u32, now_ns: i64) {
        (self.snd_max, self.snd_max_ns) = (Some(end), now_ns);
    }

    /// Remembers the window; an RST's says nothing.
    pub fn on_window(&mut self, s: &Segment) {
        if !s.has(RST) {
            self.window = Some(s.window);
            // The window of a SYN is never scaled (RFC 7323 2.2).
            if !s.has(SYN) {
                self.widest = self.widest.max(s.window);
            }
        }
    }

    /// The widest window this side has offered, in bytes, if its scale is known.
    pub fn offered_bytes(&self, peer: &Self) -> Option<u32> {
        let shift = match (self.isn, self.wscale, peer.wscale) {
            (Some(_), Some(shift), Some(_)) => shift.min(14),
            (Some(_), _, _) if peer.isn.is_some() => 0,
            _ => return None,
        };
        Some(u32::from(self.widest.max(1)) << shift)
    }

    /// Whether `seq` is where a live sender may be, given what `peer` offered.
    pub fn is_plausible(&self, seq: u32, peer: &Self) -> bool {
        let Some(snd_max) = self.snd_max else { return true };
        let window = peer
            .offered_bytes(self)
            .map_or(JUMP_BYTES, |bytes| bytes.saturating_mul(2).saturating_add(WINDOW_SLACK_BYTES).min(JUMP_BYTES));
        let (low, high) = match self.sender.una() {
            Some(una) => (super::seq::earlier(una, snd_max), later(una, snd_max)),
            None => (snd_max, snd_max),
        };
        !before(seq, low.wrapping_sub(window)) && !before(high.wrapping_add(window), seq)
    }

    /// Largest payload of one packet, if known: what the peer's SYN allows, less the timestamps, or what a path MTU
    /// change left.
    pub fn payload_limit(&self, peer: &Self) -> Option<u32> {
        if let Some(cut) = self.sender.cut_mss() {
            return Some(cut);
        }
        let stamps = if self.newest_tsval.is_some() { TIMESTAMP_BYTES } else { 0 };
        peer.mss.map(|mss| u32::from(mss).saturating_sub(stamps).max(1))
    }

    /// How many packets a frame with this payload stands for.
    pub fn packets_of(&self, payload_bytes: u32, peer: &Self) -> u32 {
        match self.payload_limit(peer) {
            Some(limit) => segments_of(payload_bytes, limit),
            None if payload_bytes <= JUMBO_BYTES => 1,
            None => segments_of(payload_bytes, USUAL_MSS),
        }
    }

    /// Whether the receiver can report what it got twice; `None` if not known.
    pub fn has_sack(&self, peer: &Self) -> Option<bool> {
        match (self.sack_permitted, peer.sack_permitted) {
            _ if peer.has_sent_sack => Some(true),
            (Some(false), _) | (_, Some(false)) => Some(false),
            (Some(true), Some(true)) => Some(true),
            _ => (self.sender.plain_duplicates() >= PLAIN_DUPLICATES).then_some(false),
        }
    }

    /// How answers to this direction come.
    pub fn answers(&self, peer: &Self) -> Answers {
        Answers {
            has_sack: self.has_sack(peer) == Some(true),
            wait_ns: self.rtt.answer_ns(),
            round_trip_ns: self.rtt.min_ns().unwrap_or(0),
        }
    }

    /// Whether the segment, which lies below the highest byte sent, comes so long after higher ones, or after a sighting of its
    /// own first byte, that it was sent after them.
    pub fn is_after_all(&self, s: &Segment) -> bool {
        let seen_ns = self.sent.at_or_after(s.seq).map_or(self.snd_max_ns, |above| above.sent_ns.min(self.snd_max_ns));
        s.time_ns.saturating_sub(seen_ns) > self.rtt.late_ns()
    }

    /// The peer echoed `tsecr`.
    pub fn on_echo(&mut self, tsecr: u32, now_ns: i64) {
        if let Some((asked, asked_ns)) = self.asked_stamp.filter(|&(asked, _)| !before(tsecr, asked)) {
            self.asked_stamp = None;
            let echo_ns = now_ns.saturating_sub(asked_ns);
            // An echo from before the start of the capture would be any value.
            if distance(asked, tsecr) <= STAMP_SLACK && echo_ns >= 0 {
                self.echo_ns = Some(self.echo_ns.map_or(echo_ns, |shortest| shortest.min(echo_ns)));
            }
        }
    }

    /// The shortest time from the tap to the other end and back.
    pub fn half_trip_ns(&self) -> Option<i64> {
        match (self.rtt.min_ns(), self.echo_ns) {
            (Some(acked), Some(echoed)) => Some(acked.min(echoed)),
            (acked, echoed) => acked.or(echoed),
        }
    }

    /// How long one TSval lasts, once the sender's clock was watched for some ticks.
    pub fn tick_ns(&self) -> Option<i64> {
        let (first, first_ns) = self.first_stamp?;
        let ticks = i64::from(distance(first, self.newest_tsval?));
        let elapsed_ns = self.newest_stamp_ns.saturating_sub(first_ns);
        (ticks >= MIN_TICKS && elapsed_ns > 0).then(|| elapsed_ns / ticks)
    }

    /// Counts a D-SACK block as Linux does: it stops believing once more is reported than was ever resent.
    pub fn count_dsack(&mut self, bytes: u32, peer: &Self) {
        let segments = u64::from(self.packets_of(bytes, peer));
        self.dsacked_segments = self.dsacked_segments.saturating_add(segments);
        if self.dsacked_segments <= self.resent_segments {
            self.counts.dsack_segments += segments;
        }
    }

    /// Gives out a second copy of the packet in frame `first_frame_no`.
    pub fn emit_copy(&mut self, row: u64, verdict: Verdict, evidence: Evidence, first_frame_no: u64, out: &mut Out) {
        let judgement = Judgement { first_frame_no: Some(first_frame_no), ..Judgement::plain(verdict, evidence) };
        emit(row, judgement, &mut self.counts, out);
    }

    /// Gives out the rows that are decided, or have waited too long.
    pub fn settle(&mut self, now: Moment, peer: &Self, limits: &HoldLimits, out: &mut Out) {
        let una = self.sender.una();
        if self.held.is_due(now, una, limits) {
            let answers = self.answers(peer);
            self.held.release(now.ns, una, answers, limits, &mut self.counts, out);
            self.held.expire(now, una, answers, limits, &mut self.counts, out);
        }
    }

    /// Gives out the rows that are decided.
    pub fn release(&mut self, now_ns: i64, peer: &Self, limits: &HoldLimits, out: &mut Out) {
        if !self.held.is_empty() {
            let answers = self.answers(peer);
            self.held.release(now_ns, self.sender.una(), answers, limits, &mut self.counts, out);
        }
    }
}
