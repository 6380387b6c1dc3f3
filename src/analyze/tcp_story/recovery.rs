//! Losses and how the sender got over them, from what the verdicts call retransmissions.
//!
//! A round of recovery opens when bytes are sent that may be old, and ends when everything that was out at that moment is
//! acknowledged (RFC 6582's `recover`). Which of its segments were retransmissions, and why, is known when their
//! judgements come in; they are taken in the order of the frames.

use serde::{Deserialize, Serialize};

use std::collections::VecDeque;

use super::event::{Event, EventKind, Events, Frames, Mark};
use super::seq::before;
use crate::analyze::frozen::StateWord;
use crate::analyze::tcp_verdict::{Cause, Evidence, Judgement, Outcome, Verdict};

/// Ends of rounds that wait for judgements of their rows.
const KEPT_ENDS: usize = 64;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Row {
    row: u64,
    mark: Mark,
    bytes: u32,
    round: u64,
    judgement: Option<Judgement>,
}

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct End {
    round: u64,
    time_ns: i64,
    #[serde(with = "crate::analyze::frozen::word")]
    reason: StateWord,
}

/// Segments of one round that were resent for reasons of one kind.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Part {
    start: Mark,
    last_ns: i64,
    #[serde(with = "crate::analyze::frozen::word")]
    cause: StateWord,
    segments: u64,
    spurious: u64,
    bytes: u64,
    frames: Frames,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Gathered {
    round: u64,
    quick: Option<Part>,
    timer: Option<Part>,
    end: Option<End>,
}

impl Gathered {
    fn of(round: u64) -> Self {
        Self { round, quick: None, timer: None, end: None }
    }
}

/// What is to be acknowledged before a sender is over a loss.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Recover {
    /// The end of everything sent so far.
    pub newest: u32,
    /// Old bytes are sent, not only some after a silence, which may be new.
    pub is_sure: bool,
}

/// The recoveries of one sender.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Recovery {
    /// Number of the open round, and what must be acknowledged to end it.
    open: Option<(u64, Recover)>,
    rounds: u64,
    /// The newest row, until another comes: most are judged at once and never reach `rows`.
    newest: Option<Row>,
    rows: VecDeque<Row>,
    ends: VecDeque<End>,
    gathered: Option<Box<Gathered>>,
    /// Payload sent again.
    pub resent_bytes: u64,
}

impl Recovery {
    /// A segment with payload, SYN or FIN. `recover`: where its bytes may be old ones.
    pub fn on_send(&mut self, row: u64, mark: Mark, bytes: u32, recover: Option<Recover>) {
        match (&mut self.open, recover) {
            (None, Some(recover)) => {
                self.rounds += 1;
                self.open = Some((self.rounds, recover));
            }
            // Only now it shows what has to be recovered.
            (Some((_, open)), Some(recover)) if recover.is_sure && !open.is_sure => *open = recover,
            _ => {}
        }
        let round = self.open.map_or(0, |(round, _)| round);
        self.rows.extend(self.newest.replace(Row { row, mark, bytes, round, judgement: None }));
    }

    pub fn is_open(&self) -> bool {
        self.open.is_some()
    }

    pub fn on_ack(&mut self, ack: u32, time_ns: i64) {
        if self.open.is_some_and(|(_, recover)| !before(ack, recover.newest)) {
            self.close(time_ns, "acknowledged");
        }
    }

    pub fn on_reset(&mut self, time_ns: i64) {
        self.close(time_ns, "reset");
    }

    fn close(&mut self, time_ns: i64, reason: &'static str) {
        let Some((round, _)) = self.open.take() else { return };
        let end = End { round, time_ns, reason };
        if let Some(gathered) = self.gathered.as_mut().filter(|gathered| gathered.round == round) {
            gathered.end = Some(end);
        }
        if self.newest.as_ref().or(self.rows.back()).is_some_and(|row| row.round == round) {
            if self.ends.len() == KEPT_ENDS {
                self.ends.pop_front();
            }
            self.ends.push_back(end);
        }
    }

    /// The final word on a row; rows that were never told of are none of this direction's business.
    pub fn on_judgement(&mut self, row: u64, judgement: &Judgement, dir: u8, events: &mut Events) {
        if let Some(newest) = self.newest.as_mut().filter(|newest| newest.row == row) {
            newest.judgement = Some(*judgement);
            if judgement.verdict != Verdict::Retransmit {
                self.newest = None;
            }
        } else if let Ok(at) = self.rows.binary_search_by_key(&row, |kept| kept.row) {
            self.rows[at].judgement = Some(*judgement);
        } else {
            return;
        }
        while let Some((row, judgement)) = self.first_judged() {
            if judgement.verdict == Verdict::Retransmit {
                self.gather(&row, &judgement, dir, events);
            }
        }
    }

    /// Takes the first row that waits, if it is judged.
    fn first_judged(&mut self) -> Option<(Row, Judgement)> {
        let first = self.rows.front().or(self.newest.as_ref())?;
        let judged = (*first, first.judgement?);
        if self.rows.pop_front().is_none() {
            self.newest = None;
        }
        Some(judged)
    }

    fn gather(&mut self, row: &Row, judgement: &Judgement, dir: u8, events: &mut Events) {
        let cause = judgement.cause.unwrap_or(Cause::Unknown);
        if matches!(cause, Cause::Syn | Cause::SynAck) {
            return;
        }
        self.resent_bytes += u64::from(row.bytes);
        // Round 0: nothing looked old at the time; the row stands for itself.
        if self.gathered.as_ref().is_some_and(|gathered| gathered.round != row.round || row.round == 0) {
            self.flush(dir, events);
        }
        while self.ends.front().is_some_and(|end| end.round < row.round) {
            self.ends.pop_front();
        }
        let end = self.ends.front().filter(|end| end.round == row.round).copied();
        let gathered = self.gathered.get_or_insert_with(|| Box::new(Gathered::of(row.round)));
        gathered.end = end.or(gathered.end);
        let is_timer = matches!(cause, Cause::Timeout | Cause::SlowStart) || gathered.timer.is_some();
        let slot = if is_timer { &mut gathered.timer } else { &mut gathered.quick };
        let part = slot.get_or_insert_with(|| Part {
            start: row.mark,
            last_ns: row.mark.time_ns,
            cause: cause_name(cause, judgement.evidence),
            segments: 0,
            spurious: 0,
            bytes: 0,
            frames: Frames::default(),
        });
        let segments = u64::from(judgement.retransmit_segments);
        part.last_ns = row.mark.time_ns;
        part.segments += segments;
        part.spurious += if judgement.outcome == Some(Outcome::Spurious) { segments } else { 0 };
        part.bytes += u64::from(row.bytes);
        part.frames.add(row.mark);
    }

    fn flush(&mut self, dir: u8, events: &mut Events) {
        let Some(gathered) = self.gathered.take() else { return };
        let Gathered { quick, timer, end, .. } = *gathered;
        if let Some(part) = quick {
            let end = match &timer {
                Some(timer) => Some((timer.start.time_ns, "timeout")),
                None => end.map(|end| (end.time_ns, end.reason)),
            };
            events.push(part.event(EventKind::Recovery, dir, end));
        }
        if let Some(part) = timer {
            events.push(part.event(EventKind::Timeout, dir, end.map(|end| (end.time_ns, end.reason))));
        }
    }

    /// The connection is over. Rows without a judgement by now are none.
    pub fn finish(&mut self, dir: u8, events: &mut Events) {
        self.flush(dir, events);
    }

    /// Gives memory back.
    pub fn shrink(&mut self) {
        self.rows.shrink_to(8);
    }
}

impl Part {
    fn event(self, kind: EventKind, dir: u8, end: Option<(i64, &'static str)>) -> Event {
        let (end_ns, reason) = end.unwrap_or((self.last_ns, "unfinished"));
        let is_spurious = self.segments > 0 && self.spurious == self.segments && reason == "acknowledged";
        Event {
            end_ns: end_ns.max(self.start.time_ns),
            bytes: Some(self.bytes),
            count: self.segments,
            cause: Some(self.cause),
            end_reason: Some(if is_spurious { "spurious" } else { reason }),
            frames: self.frames,
            ..Event::at(kind, dir, self.start)
        }
    }
}

/// What started a recovery.
fn cause_name(cause: Cause, evidence: Evidence) -> &'static str {
    match cause {
        Cause::Fast if evidence.has(Evidence::SACK) => "sack",
        Cause::Fast => "dup_ack",
        cause => cause.name(),
    }
}
