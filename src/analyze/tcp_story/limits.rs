//! What held a sender back: nothing to send, the receiver's window, or no answer.

use serde::{Deserialize, Serialize};

use super::event::{Event, EventKind, Events, Frames, Mark};

/// Pauses shorter than this are no event, only part of the sum.
const IDLE_EVENT_NS: i64 = 200_000_000;
/// A stretch of window limits is an event from this length on.
const WINDOW_EVENT_NS: i64 = 100_000_000;
/// Limits that come back within this time are one stretch: the sender fills every bit of window it gets.
const WINDOW_GAP_NS: i64 = 10_000_000;

/// What a sender waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Waits {
    /// It has sent no data yet, or is done.
    #[default]
    Out,
    /// For its application: everything is acknowledged.
    Application,
    /// For the receiver's window: less than one segment more may be sent.
    Window,
    /// For nothing but the network.
    Network,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Stretch {
    start: Mark,
    end_ns: i64,
    count: u64,
    frames: Frames,
}

/// How long one sender waited for what.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Limits {
    state: Waits,
    since: Mark,
    pub idle_ns: i64,
    pub window_ns: i64,
    pub longest_stall_ns: i64,
    /// Since when bytes are out without any of them having been acknowledged.
    waiting_since_ns: Option<i64>,
    stretch: Option<Box<Stretch>>,
}

impl Limits {
    /// The state after a segment.
    pub fn enter(&mut self, state: Waits, now: Mark, dir: u8, events: &mut Events) {
        if state == self.state {
            return;
        }
        let waited_ns = now.time_ns.saturating_sub(self.since.time_ns).max(0);
        match self.state {
            // A pause that no data ends is the end of the stream, not a pause.
            Waits::Application if state != Waits::Out => {
                self.idle_ns = self.idle_ns.saturating_add(waited_ns);
                if waited_ns >= IDLE_EVENT_NS {
                    let mut event = Event::at(EventKind::Idle, dir, self.since);
                    event.end_ns = now.time_ns;
                    event.end_reason = Some(if state == Waits::Window { "window" } else { "data" });
                    event.frames.add(now);
                    events.push(event);
                }
            }
            Waits::Window => {
                self.window_ns = self.window_ns.saturating_add(waited_ns);
                self.extend(now, dir, events);
            }
            _ => {}
        }
        (self.state, self.since) = (state, now);
    }

    /// Data was sent that nothing waits for, since it was acknowledged before it came: the sender had some, all the same.
    pub fn on_acknowledged_data(&mut self, now: Mark, dir: u8, events: &mut Events) {
        if self.state == Waits::Application {
            self.enter(Waits::Network, now, dir, events);
            self.enter(Waits::Application, now, dir, events);
        }
    }

    fn extend(&mut self, now: Mark, dir: u8, events: &mut Events) {
        if let Some(stretch) = &mut self.stretch {
            if self.since.time_ns.saturating_sub(stretch.end_ns) <= WINDOW_GAP_NS {
                stretch.end_ns = now.time_ns;
                stretch.count += 1;
                stretch.frames.add(self.since);
                return;
            }
            self.flush(dir, events);
        }
        let (start, frames) = (self.since, Frames::of(self.since));
        self.stretch = Some(Box::new(Stretch { start, end_ns: now.time_ns, count: 1, frames }));
    }

    fn flush(&mut self, dir: u8, events: &mut Events) {
        let Some(stretch) = self.stretch.take() else { return };
        if stretch.end_ns.saturating_sub(stretch.start.time_ns) < WINDOW_EVENT_NS {
            return;
        }
        events.push(Event {
            end_ns: stretch.end_ns,
            count: stretch.count,
            frames: stretch.frames,
            ..Event::at(EventKind::WindowLimited, dir, stretch.start)
        });
    }

    /// Bytes were sent, or acknowledged: `has_more` are still out.
    pub fn on_progress(&mut self, time_ns: i64, is_ack: bool, has_more: bool) {
        if is_ack && let Some(since_ns) = self.waiting_since_ns.take() {
            self.longest_stall_ns = self.longest_stall_ns.max(time_ns.saturating_sub(since_ns));
        }
        if has_more {
            self.waiting_since_ns.get_or_insert(time_ns);
        }
    }

    /// The receiver's window was closed so long.
    pub fn on_closed_window(&mut self, ns: i64) {
        self.longest_stall_ns = self.longest_stall_ns.max(ns);
    }

    /// The connection is over; `now` is its last segment.
    pub fn finish(&mut self, now: Mark, dir: u8, events: &mut Events) {
        if let Some(since_ns) = self.waiting_since_ns.take() {
            self.longest_stall_ns = self.longest_stall_ns.max(now.time_ns.saturating_sub(since_ns));
        }
        self.enter(Waits::Out, now, dir, events);
        self.flush(dir, events);
    }
}

/// The closed windows of one receiver.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ZeroWindow {
    open: Option<Box<(Mark, u64, Frames)>>,
    pub total_ns: i64,
    pub stalls: u64,
}

impl ZeroWindow {
    /// A segment of the receiver that states its window. Returns how long it was closed, where it opens.
    pub fn on_window(&mut self, is_closed: bool, now: Mark, dir: u8, events: &mut Events) -> Option<i64> {
        match (&mut self.open, is_closed) {
            (None, true) => self.open = Some(Box::new((now, 0, Frames::of(now)))),
            (Some(open), true) => open.2.add(now),
            (Some(_), false) => return self.close(now, "window_update", dir, events),
            (None, false) => {}
        }
        None
    }

    /// The sender asks whether it has opened.
    pub fn on_probe(&mut self, now: Mark) {
        if let Some((_, probes, frames)) = self.open.as_deref_mut() {
            *probes += 1;
            frames.add(now);
        }
    }

    pub fn is_closed(&self) -> bool {
        self.open.is_some()
    }

    pub fn close(&mut self, now: Mark, reason: &'static str, dir: u8, events: &mut Events) -> Option<i64> {
        let (start, probes, mut frames) = *self.open.take()?;
        let closed_ns = now.time_ns.saturating_sub(start.time_ns).max(0);
        frames.add(now);
        self.total_ns = self.total_ns.saturating_add(closed_ns);
        self.stalls += 1;
        events.push(Event {
            end_ns: now.time_ns,
            count: probes,
            end_reason: Some(reason),
            frames,
            ..Event::at(EventKind::ZeroWindow, dir, start)
        });
        Some(closed_ns)
    }
}
