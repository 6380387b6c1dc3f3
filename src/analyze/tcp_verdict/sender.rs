//! What the sender of one direction knew and did: enough of its state to say why it sent something again.
//!
//! The rules are those of the Linux sender (RFC 5681, 6582, 6675, 8985), seen from outside. `una` is SND.UNA, the
//! oldest byte not acknowledged.

use serde::{Deserialize, Serialize};

use super::sent::{SentRing, news};
use super::seq::{before, later};
use super::types::{Cause, Evidence};

/// Linux never arms the retransmission timer shorter than the smoothed round trip plus this.
const RTO_MIN_NS: i64 = 200_000_000;
/// No retransmission timer in use is shorter: one tick of a kernel that counts a thousand in a second.
const LEAST_TIMER_NS: i64 = 1_000_000;

/// How much of a timer a tap may miss: jiffies of 4 ms, and queues that drained meanwhile.
const TIMER_SLACK_NS: i64 = 20_000_000;

/// A piece this much shorter than the MSS was cut on purpose; less may be header options.
const OPTION_ROOM_BYTES: u32 = 40;

/// Recovery after a timeout or a path MTU change: everything up to `end` counts as lost.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Loss {
    end: u32,
    is_pmtu: bool,
    /// Nothing was resent yet: a busy socket takes an ICMP message up later, and sends on meanwhile.
    is_open: bool,
    /// Still checking whether the timeout was spurious (F-RTO, RFC 5682).
    is_frto: bool,
    /// TSval of the first repetition, to find out that the original was acknowledged (Eifel, RFC 3522).
    first_tsval: Option<u32>,
    /// Repetitions not D-SACKed.
    undo_segments: u32,
}

/// A repetition whose cause is asked for.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Resent {
    pub start: u32,
    pub end: u32,
    pub payload_bytes: u32,
    pub segments: u32,
    pub time_ns: i64,
    pub tsval: Option<u32>,
    /// Whether SACK was negotiated; `None` if not known.
    pub has_sack: Option<bool>,
    /// Largest payload of one packet.
    pub mss: Option<u32>,
    /// Shortest full round trip seen.
    pub round_trip_ns: i64,
    /// Time since the first sending by the sender's timestamps, if they tell.
    pub stamp_gap_ns: Option<i64>,
    /// Highest sequence number sent.
    pub snd_max: u32,
}

/// One ACK as its receiver, our sender, sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct AckIn<'a> {
    pub ack: u32,
    /// Without a D-SACK block.
    pub sack: &'a [(u32, u32)],
    pub tsecr: Option<u32>,
    pub time_ns: i64,
    /// Carries nothing but the ACK, and the window did not change.
    pub is_bare: bool,
    pub has_dsack: bool,
    /// Repetitions that its D-SACK blocks reported.
    pub dsacked_segments: u32,
    /// Whether SACK was negotiated; `None` if not known.
    pub has_sack: Option<bool>,
    pub snd_max: u32,
}

/// The sender of one direction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Sender {
    una: Option<u32>,
    /// Highest SACKed end; tells something only beyond `una`.
    sack_high: Option<u32>,
    blocks: [(u32, u32); 4],
    block_count: usize,
    duplicate_acks: u32,
    /// Duplicate ACKs without a SACK block, ever.
    plain_duplicates: u32,
    /// Last ACK or SACK that told the sender something.
    progress_ns: Option<i64>,
    send_ns: Option<i64>,
    recovery_end: Option<u32>,
    loss: Option<Loss>,
    probe_end: Option<u32>,
    /// MSS after a path MTU change.
    cut_mss: Option<u32>,
}

impl Sender {
    /// SND.UNA, once an ACK was seen.
    pub fn una(&self) -> Option<u32> {
        self.una
    }

    /// Duplicate ACKs that a receiver with SACK would have sent with a block.
    pub fn plain_duplicates(&self) -> u32 {
        self.plain_duplicates
    }

    /// The MSS a path MTU change left.
    pub fn cut_mss(&self) -> Option<u32> {
        self.cut_mss
    }

    /// Silence of both sides before `now_ns`.
    pub fn quiet_ns(&self, now_ns: i64) -> i64 {
        let last_ns = self.progress_ns.max(self.send_ns);
        last_ns.map_or(i64::MAX, |last_ns| now_ns.saturating_sub(last_ns))
    }

    /// Something with sequence length was sent.
    pub fn on_send(&mut self, time_ns: i64) {
        self.send_ns = Some(time_ns);
    }

    /// Why a repetition was sent; call before the copy is entered in `ring`.
    pub fn cause(&mut self, r: &Resent, ring: &SentRing) -> (Cause, Evidence) {
        let una = self.una.filter(|&una| !before(r.snd_max, una));
        let is_head = una.is_none_or(|una| !before(una, r.start));
        let timer_ns = (RTO_MIN_NS - TIMER_SLACK_NS).saturating_add(r.round_trip_ns);
        let head_ns = ring.holding(r.start).map(|sent| sent.sent_ns).or(self.send_ns);
        let head_quiet_ns = head_ns.max(self.progress_ns).map_or(i64::MAX, |last_ns| r.time_ns.saturating_sub(last_ns));
        let is_cut = self.is_cut(r, ring);
        let told = self.is_told();

        let may_probe = r.end == r.snd_max
            && r.has_sack != Some(false)
            && !self.is_sacked()
            && self.recovery_end.is_none()
            && self.loss.is_none()
            && self.probe_end.is_none();
        if may_probe && self.quiet_ns(r.time_ns) >= r.round_trip_ns {
            self.probe_end = Some(r.snd_max);
            return (Cause::Probe, Evidence::QUIET.with(Evidence::SND_MAX));
        }
        if is_head && head_quiet_ns >= timer_ns {
            self.enter_loss(r, is_cut, true);
            return (Cause::Timeout, Evidence::QUIET.with(Evidence::ACK));
        }
        if let Some(loss) = &mut self.loss {
            if std::mem::take(&mut loss.is_open) {
                loss.end = r.snd_max;
            }
            loss.undo_segments = loss.undo_segments.saturating_add(r.segments);
            loss.first_tsval = loss.first_tsval.or(r.tsval);
            let why = if loss.is_pmtu { (Cause::Pmtu, Evidence::ICMP) } else { (Cause::SlowStart, Evidence::ACK) };
            return why;
        }
        let was_one_packet = is_cut && ring.took_one_id(r.start);
        if is_cut && is_head && (!told || was_one_packet) && self.recovery_end.is_none() {
            self.enter_loss(r, true, false);
            return (Cause::Pmtu, Evidence::SIZE);
        }
        // No ACK asked for it, or nothing was sent after it that an ACK could have asked by: only a timer can have done
        // it, one shorter than Linux's.
        let is_late_head =
            una == Some(r.start) && r.round_trip_ns > 0 && head_quiet_ns >= r.round_trip_ns.saturating_mul(2);
        let is_tail = !told && self.recovery_end.is_none() && r.end == r.snd_max;
        if !told && self.recovery_end.is_none() && (is_late_head || is_tail) {
            // Both waited in a queue before the tap, and came together: the sender's clock knows how long it had waited.
            if may_probe && r.stamp_gap_ns.is_some_and(|gap_ns| gap_ns > 0 && gap_ns < RTO_MIN_NS - TIMER_SLACK_NS) {
                self.probe_end = Some(r.snd_max);
                return (Cause::Probe, Evidence::TSVAL.with(Evidence::SND_MAX));
            }
            let waited_ns = head_quiet_ns.max(r.stamp_gap_ns.unwrap_or(0));
            if !is_late_head && waited_ns < r.round_trip_ns.max(LEAST_TIMER_NS) {
                return (Cause::Unknown, Evidence::default());
            }
            self.enter_loss(r, is_cut, true);
            return (Cause::Timeout, Evidence::QUIET);
        }
        self.recovery_end.get_or_insert(r.snd_max);
        self.probe_end = None;
        (Cause::Fast, if self.is_sacked() { Evidence::SACK } else { Evidence::ACK })
    }

    /// An ICMP "too big" quoted `seq`. True if the sender will believe it.
    pub fn on_too_big(&mut self, seq: u32, snd_max: u32, mss: u32) -> bool {
        let in_flight = self.una.is_none_or(|una| !before(seq, una)) && before(seq, snd_max);
        if !in_flight || self.cut_mss.is_some_and(|cut| cut <= mss) {
            return false;
        }
        self.cut_mss = Some(mss);
        match &mut self.loss {
            Some(loss) => loss.is_pmtu = true,
            None => {
                self.loss = Some(Loss {
                    end: snd_max,
                    is_pmtu: true,
                    is_open: true,
                    is_frto: false,
                    first_tsval: None,
                    undo_segments: 1,
                });
            }
        }
        self.recovery_end = None;
        self.probe_end = None;
        true
    }

    /// Bytes up to `end` were sent before what was seen last: they belong to what a timeout gave up.
    pub fn on_older_hole(&mut self, end: u32) {
        if let Some(loss) = &mut self.loss {
            loss.end = later(loss.end, end);
        }
    }

    /// An ACK arrived. Returns the round trip it measures, if it does.
    pub fn on_ack(&mut self, a: &AckIn, ring: &mut SentRing) -> Option<i64> {
        if self.una.is_some_and(|una| before(a.ack, una)) {
            return None;
        }
        let advanced = self.una.is_none_or(|una| before(una, a.ack));
        let limit = self.loss.map_or(a.ack, |loss| loss.end);
        let acked = ring.acknowledge(a.ack, limit);
        self.una = Some(a.ack);

        // Without SACK, an ACK that covers both cannot say which of them it answers.
        let mut original_arrived = acked.covers_original && !(a.has_sack == Some(false) && acked.covers_resent);
        let sacked_news = self.on_blocks(a, ring, limit, &mut original_arrived);
        let is_duplicate = !advanced && a.ack != a.snd_max && (sacked_news || a.is_bare && !a.has_dsack);
        self.duplicate_acks = if advanced { 0 } else { self.duplicate_acks.saturating_add(u32::from(is_duplicate)) };
        if is_duplicate && a.sack.is_empty() && !a.has_dsack {
            self.plain_duplicates = self.plain_duplicates.saturating_add(1);
        }
        if advanced || sacked_news || is_duplicate || a.has_dsack {
            self.progress_ns = Some(a.time_ns);
        }
        self.leave_states(a, advanced, sacked_news || is_duplicate, original_arrived);
        acked.sample_ns.filter(|_| advanced).map(|sent_ns| a.time_ns.saturating_sub(sent_ns))
    }

    /// Whether ACKs told the sender of a loss: duplicates, or SACK.
    pub fn is_told(&self) -> bool {
        self.duplicate_acks > 0 || self.is_sacked()
    }

    /// Whether something beyond SND.UNA is SACKed.
    fn is_sacked(&self) -> bool {
        matches!((self.una, self.sack_high), (Some(una), Some(high)) if before(una, high))
    }

    /// Takes in SACK blocks; true if they hold news.
    fn on_blocks(&mut self, a: &AckIn, ring: &mut SentRing, limit: u32, original_arrived: &mut bool) -> bool {
        let mut has_news = false;
        for &(left, right) in a.sack.iter().take(4) {
            // A block beyond what was sent is the remains of another connection, or damage.
            if !before(left, right) || !before(a.ack, right) || before(a.snd_max, right) {
                continue;
            }
            let Some((left, right)) = news((left, right), &self.blocks[..self.block_count]) else {
                continue;
            };
            has_news = true;
            *original_arrived |= ring.sack(left, right, limit);
            self.sack_high = Some(self.sack_high.map_or(right, |high| later(high, right)));
        }
        self.block_count = a.sack.len().min(4);
        self.blocks[..self.block_count].copy_from_slice(&a.sack[..self.block_count]);
        has_news
    }

    fn leave_states(&mut self, a: &AckIn, advanced: bool, duplicate: bool, original_arrived: bool) {
        self.recovery_end = self.recovery_end.filter(|&end| before(a.ack, end));
        // A probe stays pending until an ACK goes beyond it, or says that it came twice (RFC 8985 7.4).
        self.probe_end = self
            .probe_end
            .filter(|&end| before(a.ack, end) || a.ack == end && !a.has_dsack && (advanced || !a.is_bare));
        let Some(loss) = &mut self.loss else { return };
        loss.undo_segments = loss.undo_segments.saturating_sub(a.dsacked_segments);
        if !before(a.ack, loss.end) {
            self.loss = None;
            return;
        }
        let is_echo_older = matches!((a.tsecr, loss.first_tsval), (Some(ecr), Some(first)) if before(ecr, first));
        // Without SACK, Linux stays in this state even when it finds the timeout spurious.
        let undone =
            advanced && !loss.is_pmtu && a.has_sack != Some(false) && (loss.undo_segments == 0 || is_echo_older);
        if undone || loss.is_frto && original_arrived {
            self.loss = None;
        } else if loss.is_frto {
            if before(loss.end, a.snd_max) {
                loss.is_frto = !duplicate;
            } else if advanced {
                loss.end = later(loss.end, a.snd_max);
            }
        }
    }

    /// A timer ran out, or the path MTU shrank, at `r`.
    fn enter_loss(&mut self, r: &Resent, is_cut: bool, is_timeout: bool) {
        let first_tsval = self.loss.and_then(|loss| loss.first_tsval).or(r.tsval);
        let undo_segments = self.loss.map_or(0, |loss| loss.undo_segments).saturating_add(r.segments);
        let is_pmtu = is_cut || self.loss.is_some_and(|loss| loss.is_pmtu);
        self.loss =
            Some(Loss { end: r.snd_max, is_pmtu, is_open: false, is_frto: is_timeout, first_tsval, undo_segments });
        if is_cut {
            self.cut_mss = Some(r.payload_bytes);
        }
        (self.recovery_end, self.probe_end, self.duplicate_acks) = (None, None, 0);
    }

    /// Whether the repetition is a part of what was one packet: the sender believes in a smaller path now. A part of an
    /// offloaded frame is no sign, as long as it is of one MSS.
    fn is_cut(&self, r: &Resent, ring: &SentRing) -> bool {
        let is_short = |whole: u32| r.payload_bytes.saturating_add(OPTION_ROOM_BYTES) < whole;
        let is_part = ring.holding(r.start).is_some_and(|sent| is_short(sent.end.wrapping_sub(r.start)));
        is_part && r.payload_bytes > 0 && (ring.took_one_id(r.start) || self.cut_mss.or(r.mss).is_some_and(is_short))
    }
}
