//! Slow start and congestion avoidance, read from the bytes in flight of one round trip after the other. Only what is
//! clear is named: most of a connection's life carries no name.

use serde::{Deserialize, Serialize};

use super::event::{Event, EventKind, Events, Frames, Mark};
use super::seq::before;

/// Round trips that a phase must last.
const SLOW_START_ROUNDS: u64 = 2;
const AVOIDANCE_ROUNDS: u64 = 4;

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Run {
    kind: EventKind,
    start: Mark,
    end_ns: i64,
    rounds: u64,
    first_peak: u32,
    peak: u32,
    frames: Frames,
}

/// The round trips of one sender. A round ends when what was out at its start is acknowledged.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Phases {
    /// End of everything sent when the round began, and the frame that began it.
    round: Option<(u32, Mark)>,
    peak: u32,
    previous_peak: Option<u32>,
    run: Option<Box<Run>>,
    largest_segment: u32,
}

impl Phases {
    /// New bytes were sent; `end` is the end of everything sent, `in_flight` what is not acknowledged of it.
    pub fn on_send(&mut self, end: u32, in_flight: u32, payload_bytes: u32, now: Mark) {
        self.largest_segment = self.largest_segment.max(payload_bytes);
        self.round.get_or_insert((end, now));
        self.peak = self.peak.max(in_flight);
    }

    pub fn on_ack(&mut self, ack: u32, snd_max: u32, in_flight: u32, now: Mark, dir: u8, events: &mut Events) {
        let Some((end, start)) = self.round else { return };
        if before(ack, end) {
            return;
        }
        if in_flight == 0 {
            // Nothing is out: the sender's application sets the pace, and this round's peak says little.
            self.interrupt("application", dir, events);
            return;
        }
        let peak = std::mem::replace(&mut self.peak, in_flight);
        if let Some(previous) = self.previous_peak {
            self.on_round(previous, peak, start, now, dir, events);
        }
        self.previous_peak = Some(peak);
        self.round = Some((snd_max, now));
    }

    fn on_round(&mut self, previous: u32, peak: u32, start: Mark, now: Mark, dir: u8, events: &mut Events) {
        let (was, is) = (u64::from(previous), u64::from(peak));
        let kind = if is * 2 >= was * 3 {
            Some(EventKind::SlowStart)
        } else if is >= was && is * 4 <= was * 5 {
            Some(EventKind::CongestionAvoidance)
        } else {
            None
        };
        if self.run.as_ref().is_some_and(|run| kind != Some(run.kind)) {
            self.end("leveled", dir, events);
        }
        let Some(kind) = kind else { return };
        let run = self.run.get_or_insert_with(|| {
            Box::new(Run {
                kind,
                start,
                end_ns: now.time_ns,
                rounds: 0,
                first_peak: previous,
                peak,
                frames: Frames::of(start),
            })
        });
        run.rounds += 1;
        run.end_ns = now.time_ns;
        run.peak = peak;
        run.frames.add(now);
    }

    /// Something ends the phase and spoils the round: a loss, the receiver's window, a pause.
    pub fn interrupt(&mut self, reason: &'static str, dir: u8, events: &mut Events) {
        self.end(reason, dir, events);
        (self.round, self.peak, self.previous_peak) = (None, 0, None);
    }

    fn end(&mut self, reason: &'static str, dir: u8, events: &mut Events) {
        let Some(run) = self.run.take() else { return };
        let is_clear = match run.kind {
            EventKind::SlowStart => run.rounds >= SLOW_START_ROUNDS,
            _ => {
                let grown = run.peak.saturating_sub(run.first_peak);
                run.rounds >= AVOIDANCE_ROUNDS && grown >= self.largest_segment.saturating_mul(2)
            }
        };
        if is_clear {
            events.push(Event {
                end_ns: run.end_ns,
                bytes: Some(u64::from(run.peak)),
                count: run.rounds,
                end_reason: Some(reason),
                frames: run.frames,
                ..Event::at(run.kind, dir, run.start)
            });
        }
    }
}
