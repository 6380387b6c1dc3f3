//! Rows that wait for the answer of the receiver.

use serde::{Deserialize, Serialize};

use std::collections::VecDeque;

use super::seq::{before, later};
use super::types::{Cause, DirectionSummary, Evidence, Judgement, Outcome, Verdict};
use crate::analyze::{HoldLimits, Moment};

/// Rows of one direction that may wait at a time; beyond it the oldest comes out undecided.
const MAX_HELD: usize = 4_096;

/// Originals of one direction that may wait at a time.
const MAX_FRESH: usize = 16_384;

/// An acknowledged row waits for so many times the frames that others may.
const STANDSTILL: u64 = 4;

/// Ranges of one D-SACK block that are matched one by one.
const MAX_MATCHED: u32 = 64;

/// Where judgements go.
pub(super) type Out = Vec<(u64, Judgement)>;

/// What a waiting row will be, depending on the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Kind {
    /// Resent: D-SACKed is spurious, acknowledged without one is needed.
    Resent(Cause),
    /// The same packet again: D-SACKed is the network's doing, otherwise the capture's.
    Copy,
    /// One byte below the highest: D-SACKed is a tail probe, otherwise a keep-alive.
    KeepAlive,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct HeldRow {
    pub row: u64,
    pub seq: u32,
    pub end: u32,
    pub time_ns: i64,
    /// What it waits by.
    pub since: Moment,
    pub kind: Kind,
    pub evidence: Evidence,
    pub segments: u32,
    pub first_frame_no: Option<u64>,
    pub acked: Option<AckedAt>,
}

impl HeldRow {
    /// When the receiver had its time to report the bytes as received twice; `None` where that is not before the limit.
    fn due_ns(&self, answers: Answers, limits: &HoldLimits) -> Option<i64> {
        let due_ns = self.acked?.at_ns.saturating_add(answers.wait_ns);
        Some(due_ns).filter(|due_ns| *due_ns <= self.since.ns.saturating_add(limits.time_ns))
    }

    /// A row whose ACK came a round trip after it had its chance to be D-SACKed.
    fn is_answered(&self, answers: Answers) -> bool {
        let round_trip_ns = answers.round_trip_ns / 8 * 7;
        self.acked.is_some_and(|acked| acked.time_ns.saturating_sub(self.time_ns) >= round_trip_ns)
    }

    /// Whether it has waited too long. A row that is acknowledged waits for what is due soon, by time and not by frames, or
    /// it would matter which of the two was looked at first; frames count only where time stands still.
    fn is_over(&self, now: Moment, limits: &HoldLimits) -> bool {
        now.is_beyond(self.since, &HoldLimits { rows: self.most_rows(limits), ..*limits })
    }

    fn most_rows(&self, limits: &HoldLimits) -> u64 {
        limits.rows.saturating_mul(if self.acked.is_some() { STANDSTILL } else { 1 })
    }
}

/// When an ACK came.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct AckedAt {
    pub time_ns: i64,
    /// Of the [`Moment`].
    pub at_ns: i64,
}

/// An original that is final once acknowledged, unless a still earlier copy turns up.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct FreshRow {
    pub row: u64,
    pub seq: u32,
    pub end: u32,
    pub time_ns: i64,
    pub since: Moment,
    pub verdict: Verdict,
    pub evidence: Evidence,
    pub cause_if_resent: Cause,
    /// Not final before this time, acknowledged or not.
    pub until_ns: i64,
}

/// What is known about the receiver's side of a direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Answers {
    /// Both ends speak SACK.
    pub has_sack: bool,
    /// How long an answer may take.
    pub wait_ns: i64,
    /// The shortest one took; 0 where none was seen.
    pub round_trip_ns: i64,
}

/// What a D-SACK block reported.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Matched {
    /// Repetitions, in segments of one MSS.
    pub segments: u32,
    /// Rows among them that passed for keep-alives until now.
    pub probes: u32,
}

/// The waiting rows of one direction.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Held {
    rows: VecDeque<HeldRow>,
    /// In order of both row and sequence number.
    fresh: VecDeque<FreshRow>,
    /// No row of `rows` can become final before this time.
    next_ns: i64,
    network_copy_count: u32,
    capture_copy_count: u32,
    /// What [`Self::usual_copy`] says until the next segment.
    is_usually_network: bool,
}

impl Held {
    /// Asks for the memory of what waits longest and shortest.
    pub fn touch(&self) -> u32 {
        let of = |row: Option<&FreshRow>| row.map_or(0, |row| row.seq);
        of(self.fresh.front()) ^ of(self.fresh.back()) ^ self.rows.front().map_or(0, |row| row.seq)
    }

    /// Whether nothing waits.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.fresh.is_empty()
    }

    /// A segment is to be judged. What its answers say is the same for all rows given out before it and after the last one,
    /// so that it does not matter in which order.
    pub fn on_segment(&mut self) {
        self.is_usually_network = self.network_copy_count > self.capture_copy_count;
    }

    /// One more row that waits for its answer.
    pub fn hold(&mut self, row: HeldRow, counts: &mut DirectionSummary, out: &mut Out) {
        if self.rows.len() >= MAX_HELD
            && let Some(oldest) = self.rows.pop_front()
        {
            self.give_up(&oldest, counts, out);
        }
        self.rows.push_back(row);
        self.next_ns = i64::MIN;
    }

    /// One more original that waits for its ACK.
    pub fn hold_fresh(&mut self, row: FreshRow, counts: &mut DirectionSummary, out: &mut Out) {
        if self.fresh.len() >= MAX_FRESH
            && let Some(oldest) = self.fresh.pop_front()
        {
            emit(oldest.row, Judgement::plain(oldest.verdict, oldest.evidence), counts, out);
        }
        self.fresh.push_back(row);
    }

    /// An earlier sending of `start..end` turned up late: what passed for the original was a repetition.
    pub fn relabel(&mut self, start: u32, end: u32, counts: &mut DirectionSummary, out: &mut Out) {
        let from = self.fresh.partition_point(|row| !before(start, row.end));
        while let Some(row) = self.fresh.get(from).copied().filter(|row| before(row.seq, end)) {
            self.fresh.remove(from);
            let evidence = row.evidence.with(Evidence::IP_ID).with(Evidence::SEEN_BYTES);
            let kind = Kind::Resent(row.cause_if_resent);
            let FreshRow { row, seq, end, time_ns, since, .. } = row;
            let (segments, first_frame_no, acked) = (1, None, None);
            let held = HeldRow { row, seq, end, time_ns, since, kind, evidence, segments, first_frame_no, acked };
            self.hold(held, counts, out);
        }
    }

    /// The receiver acknowledged everything before `una`.
    pub fn acknowledge(&mut self, una: u32, now: AckedAt) {
        for row in &mut self.rows {
            if row.acked.is_none() && !before(una, row.end) {
                row.acked = Some(now);
                self.next_ns = i64::MIN;
            }
        }
    }

    /// The receiver reported `left..right` as received twice: the earliest waiting copy of each byte was the second.
    pub fn dsack(&mut self, left: u32, right: u32, counts: &mut DirectionSummary, out: &mut Out) -> Matched {
        let (mut at, mut matched) = (left, Matched::default());
        for _ in 0..MAX_MATCHED {
            let Some(index) = self.rows.iter().position(|row| !before(at, row.seq) && before(at, row.end)) else {
                let next = self.rows.iter().map(|row| row.seq).filter(|&seq| before(at, seq) && before(seq, right));
                let Some(next) = next.min_by_key(|seq| seq.wrapping_sub(at)) else {
                    break;
                };
                at = next;
                continue;
            };
            let Some(row) = self.rows.remove(index) else { break };
            at = later(at, row.end);
            let evidence = row.evidence.with(Evidence::DSACK);
            let judgement = match row.kind {
                Kind::Resent(cause) => resent_as(&row, cause, Outcome::Spurious, evidence),
                Kind::KeepAlive => {
                    matched.probes += 1;
                    resent_as(&row, Cause::Probe, Outcome::Spurious, evidence)
                }
                Kind::Copy => {
                    self.network_copy_count = self.network_copy_count.saturating_add(1);
                    self.is_usually_network = self.network_copy_count > self.capture_copy_count;
                    copy_as(&row, Verdict::NetworkDuplicate, evidence)
                }
            };
            matched.segments = matched.segments.saturating_add(judgement.retransmit_segments);
            emit(row.row, judgement, counts, out);
            if !before(at, right) {
                break;
            }
        }
        matched
    }

    /// Whether [`Self::release`] or [`Self::expire`] would give anything out.
    pub fn is_due(&self, now: Moment, una: Option<u32>, limits: &HoldLimits) -> bool {
        let is_acked = |end: u32| una.is_some_and(|una| !before(una, end));
        let is_due = |row: &FreshRow| row.until_ns <= now.ns && is_acked(row.end) || now.is_beyond(row.since, limits);
        let is_over = |row: &HeldRow| now.ns >= self.next_ns || row.is_over(now, limits);
        self.fresh.front().is_some_and(is_due) || self.rows.front().is_some_and(is_over)
    }

    /// When [`Self::is_due`] will say so if nothing is heard until then: at this time or with this frame, whichever comes first.
    pub fn due(&self, una: Option<u32>, limits: &HoldLimits) -> Moment {
        let over = |since: Moment, rows: u64| Moment {
            ns: since.ns.saturating_add(limits.time_ns).saturating_add(1),
            frame: since.frame.saturating_add(rows).saturating_add(1),
        };
        let mut due = Moment { ns: i64::MAX, frame: u64::MAX };
        if let Some(row) = self.fresh.front() {
            due = over(row.since, limits.rows);
            if una.is_some_and(|una| !before(una, row.end)) {
                due.ns = due.ns.min(row.until_ns);
            }
        }
        if let Some(row) = self.rows.front() {
            let over = over(row.since, row.most_rows(limits));
            due = Moment { ns: due.ns.min(over.ns).min(self.next_ns), frame: due.frame.min(over.frame) };
        }
        due
    }

    /// Gives out what is decided by now. `una`: acknowledged up to here; `None` if no ACK was ever seen.
    pub fn release(
        &mut self,
        now_ns: i64,
        una: Option<u32>,
        answers: Answers,
        limits: &HoldLimits,
        counts: &mut DirectionSummary,
        out: &mut Out,
    ) {
        if let Some(una) = una {
            while let Some(row) = self.fresh.front().filter(|row| !before(una, row.end) && row.until_ns <= now_ns) {
                emit(row.row, Judgement::plain(row.verdict, row.evidence.with(Evidence::ACK)), counts, out);
                self.fresh.pop_front();
            }
        }
        if self.rows.is_empty() || now_ns < self.next_ns {
            return;
        }
        self.next_ns = i64::MAX;
        let mut index = 0;
        while let Some(row) = self.rows.get(index).copied() {
            let due_ns = row.due_ns(answers, limits).unwrap_or(i64::MAX);
            if due_ns > now_ns {
                self.next_ns = self.next_ns.min(due_ns);
                index += 1;
                continue;
            }
            self.rows.remove(index);
            let judgement = self.judge(&row, answers.has_sack);
            emit(row.row, judgement, counts, out);
        }
    }

    /// Gives out what waited too long. Of a row whose time to be D-SACKed was over before, [`Self::release`] is asked first:
    /// it must not matter how often either is.
    pub fn expire(
        &mut self,
        now: Moment,
        una: Option<u32>,
        answers: Answers,
        limits: &HoldLimits,
        counts: &mut DirectionSummary,
        out: &mut Out,
    ) {
        while let Some(row) = self.fresh.front().copied().filter(|row| now.is_beyond(row.since, limits)) {
            self.fresh.pop_front();
            let is_acked = una.is_some_and(|una| !before(una, row.end));
            let evidence = if is_acked { row.evidence.with(Evidence::ACK) } else { row.evidence };
            emit(row.row, Judgement::plain(row.verdict, evidence), counts, out);
        }
        while let Some(row) = self.rows.front().copied().filter(|row| row.is_over(now, limits)) {
            self.rows.pop_front();
            let end_ns = row.since.ns.saturating_add(limits.time_ns);
            // Half of the wait is one round trip as long as it may well be.
            let is_answered = row.acked.is_some_and(|acked| end_ns.saturating_sub(acked.at_ns) >= answers.wait_ns / 2)
                && row.is_answered(answers);
            // Where frames are over first, the row is what it would be once its time is: it must not matter when it is looked at.
            if is_answered || row.due_ns(answers, limits).is_some() {
                let judgement = self.judge(&row, answers.has_sack);
                emit(row.row, judgement, counts, out);
            } else {
                self.give_up(&row, counts, out);
            }
        }
    }

    /// Gives memory back.
    pub fn shrink(&mut self) {
        if self.is_empty() {
            self.rows.shrink_to(8);
            self.fresh.shrink_to(8);
        }
    }

    /// Gives out everything.
    pub fn finish(&mut self, answers: Answers, counts: &mut DirectionSummary, out: &mut Out) {
        while let Some(row) = self.fresh.pop_front() {
            emit(row.row, Judgement::plain(row.verdict, row.evidence), counts, out);
        }
        while let Some(row) = self.rows.pop_front() {
            if row.is_answered(answers) {
                let judgement = self.judge(&row, answers.has_sack);
                emit(row.row, judgement, counts, out);
            } else {
                self.give_up(&row, counts, out);
            }
        }
    }

    /// The answer came and held no D-SACK.
    fn judge(&mut self, row: &HeldRow, has_sack: bool) -> Judgement {
        let evidence = row.evidence.with(Evidence::ACK);
        match row.kind {
            Kind::Resent(cause) if has_sack => resent_as(row, cause, Outcome::Needed, evidence),
            Kind::Resent(cause) => resent_as(row, cause, Outcome::Unknown, evidence),
            Kind::KeepAlive => Judgement::plain(Verdict::KeepAlive, evidence),
            Kind::Copy if has_sack => {
                // One report may get lost or stand for two; a capture that doubles packets does so all the time.
                let usual = self.usual_copy();
                self.capture_copy_count = self.capture_copy_count.saturating_add(1);
                copy_as(row, usual, evidence.with(Evidence::HISTORY))
            }
            Kind::Copy => copy_as(row, self.usual_copy(), evidence.with(Evidence::HISTORY)),
        }
    }

    /// No answer in time.
    fn give_up(&self, row: &HeldRow, counts: &mut DirectionSummary, out: &mut Out) {
        let judgement = match row.kind {
            Kind::Resent(cause) => resent_as(row, cause, Outcome::Unknown, row.evidence),
            Kind::KeepAlive => Judgement::plain(Verdict::KeepAlive, row.evidence),
            Kind::Copy => copy_as(row, self.usual_copy(), row.evidence.with(Evidence::HISTORY)),
        };
        emit(row.row, judgement, counts, out);
    }

    /// A copy that nothing is known about is what the other copies of this direction were.
    pub fn usual_copy(&self) -> Verdict {
        if self.is_usually_network { Verdict::NetworkDuplicate } else { Verdict::CaptureDuplicate }
    }
}

fn resent_as(row: &HeldRow, cause: Cause, outcome: Outcome, evidence: Evidence) -> Judgement {
    Judgement {
        verdict: Verdict::Retransmit,
        cause: Some(cause),
        outcome: Some(outcome),
        evidence,
        retransmit_segments: row.segments,
        first_frame_no: row.first_frame_no,
    }
}

/// A second copy of a packet.
fn copy_as(row: &HeldRow, verdict: Verdict, evidence: Evidence) -> Judgement {
    Judgement { first_frame_no: row.first_frame_no, ..Judgement::plain(verdict, evidence) }
}

/// Counts a judgement and gives it out; the only way out for a row.
pub(super) fn emit(row: u64, judgement: Judgement, counts: &mut DirectionSummary, out: &mut Out) {
    counts.verdict_count[judgement.verdict as usize] += 1;
    if let (Some(cause), Some(outcome)) = (judgement.cause, judgement.outcome) {
        counts.retransmit_segments[cause as usize][outcome as usize] += u64::from(judgement.retransmit_segments);
    }
    out.push((row, judgement));
}
