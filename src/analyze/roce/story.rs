//! What happened on one queue pair: going back, receivers that were not ready, congestion, silence.

use super::event::{RoceEvent, RoceEventKind, RoceEvents};
use super::psn::Psn;
use super::types::Cause;
use crate::analyze::{Mark, Quantiles};

/// Marks and notifications closer than this belong together.
const SERIES_NS: i64 = 10_000_000;
/// So many tries without an answer are worth telling.
const TRIES: u64 = 2;

#[derive(Debug)]
struct GoingBack {
    event: RoceEvent,
    /// The number it went back to, and the one where everything sent before is acknowledged.
    from: Psn,
    until: Psn,
    last_try_ns: i64,
    longest_wait_ns: i64,
    /// When everything was acknowledged since it went back the last time, though not for the first time: more may be on its
    /// way again.
    acknowledged_ns: Option<i64>,
}

/// What is known of a timeout.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TimedOut {
    /// How long nothing moved.
    pub wait_ns: Option<i64>,
    /// The NAK that the requester had not heeded.
    pub unheeded_nak: Option<Mark>,
    /// The acknowledgement of everything that had passed the tap before.
    pub unheeded_ack: Option<Mark>,
}

#[derive(Debug, Default)]
pub(crate) struct Story {
    events: RoceEvents,
    going_back: Option<Box<GoingBack>>,
    rnr: Option<Box<(RoceEvent, Psn)>>,
    congestion: Option<Box<RoceEvent>>,
    notification: Option<Box<RoceEvent>>,
    /// The first mark that no notification followed yet.
    first_mark_ns: Option<i64>,
    /// The same of responses, whose sender is the responder.
    first_response_mark_ns: Option<i64>,
    /// From a mark to the notification that it led to.
    pub notification_delay: Option<Box<Quantiles>>,
}

impl Story {
    pub fn events(&self) -> impl Iterator<Item = &RoceEvent> {
        self.events.iter()
    }

    pub fn push(&mut self, event: RoceEvent) {
        self.events.push(event);
    }

    /// The requester went back to `psn`; everything before `until` had been sent.
    pub fn on_rewind(&mut self, cause: Cause, psn: Psn, until: Psn, mark: Mark, timeout: TimedOut) {
        // What the responder was not ready for is told as such.
        if cause == Cause::Rnr {
            return;
        }
        if let Some(open) = &mut self.going_back
            && open.from == psn
        {
            let wait_ns = mark.time_ns.saturating_sub(open.last_try_ns);
            open.longest_wait_ns = open.longest_wait_ns.max(wait_ns);
            open.last_try_ns = mark.time_ns;
            open.event.tries = open.event.tries.map(|tries| tries + 1);
            open.event.cause = Some(cause.name());
            open.event.unheeded_nak = open.event.unheeded_nak.or(timeout.unheeded_nak);
            open.event.unheeded_ack = open.event.unheeded_ack.or(timeout.unheeded_ack);
            open.event.wait_ns = open.event.wait_ns.max(timeout.wait_ns);
            open.acknowledged_ns = None;
            return;
        }
        // Until a timer runs out nothing happens: that is most of such an event.
        self.close_going_back(mark.time_ns, if cause == Cause::Timeout { "timeout" } else { "again" });
        let mut event = RoceEvent::at(RoceEventKind::GoBack, mark);
        (event.cause, event.psn, event.tries) = (Some(cause.name()), Some(psn.get()), Some(1));
        (event.unheeded_nak, event.unheeded_ack) = (timeout.unheeded_nak, timeout.unheeded_ack);
        (event.count, event.bytes, event.wait_ns) = (0, Some(0), timeout.wait_ns);
        let (last_try_ns, longest_wait_ns, acknowledged_ns) = (mark.time_ns, 0, None);
        let open = GoingBack { event, from: psn, until, last_try_ns, longest_wait_ns, acknowledged_ns };
        self.going_back = Some(Box::new(open));
    }

    pub fn on_resent(&mut self, payload_bytes: u32, mark: Mark) {
        let Some(open) = &mut self.going_back else { return };
        open.event.count += 1;
        open.event.bytes = open.event.bytes.map(|bytes| bytes + u64::from(payload_bytes));
        open.event.end_ns = mark.time_ns;
        open.event.frames.add(mark);
    }

    /// Everything before `psn` is acknowledged once more: its acknowledgement was lost behind the tap.
    pub fn on_acknowledged_again(&mut self, psn: Psn, mark: Mark) {
        if let Some(open) = self.going_back.as_mut().filter(|open| !psn.is_before(open.until)) {
            open.acknowledged_ns = Some(mark.time_ns);
        }
    }

    /// Everything before `psn` is acknowledged.
    pub fn on_acknowledged(&mut self, psn: Psn, mark: Mark) {
        if self.going_back.as_ref().is_some_and(|open| !psn.is_before(open.until)) {
            self.close_going_back(mark.time_ns, "acknowledged");
        }
        if self.rnr.as_ref().is_some_and(|open| open.1.is_before(psn)) {
            self.close_rnr(Some(mark.time_ns), "accepted");
        }
    }

    pub fn on_not_ready(&mut self, psn: Psn, wait_ns: i64, mark: Mark) {
        if let Some(open) = &mut self.rnr
            && open.1 == psn
        {
            open.0.count += 1;
            open.0.end_ns = mark.time_ns;
            open.0.frames.add(mark);
            return;
        }
        self.close_rnr(None, "again");
        let mut event = RoceEvent::at(RoceEventKind::Rnr, mark);
        (event.psn, event.wait_ns) = (Some(psn.get()), Some(wait_ns));
        self.rnr = Some(Box::new((event, psn)));
    }

    pub fn on_mark(&mut self, payload_bytes: u32, mark: Mark) {
        self.first_mark_ns = self.first_mark_ns.or(Some(mark.time_ns));
        Self::extend(&mut self.congestion, &mut self.events, RoceEventKind::Congestion, mark);
        if let Some(open) = &mut self.congestion {
            open.bytes = Some(open.bytes.unwrap_or(0) + u64::from(payload_bytes));
        }
    }

    pub fn on_response_mark(&mut self, mark: Mark) {
        self.first_response_mark_ns = self.first_response_mark_ns.or(Some(mark.time_ns));
    }

    pub fn on_response_notification(&mut self, mark: Mark) {
        if let Some(first_ns) = self.first_response_mark_ns.take() {
            let delay = self.notification_delay.get_or_insert_default();
            delay.add(mark.time_ns.saturating_sub(first_ns));
        }
    }

    pub fn on_notification(&mut self, mark: Mark) {
        if let Some(first_ns) = self.first_mark_ns.take() {
            let delay = self.notification_delay.get_or_insert_default();
            delay.add(mark.time_ns.saturating_sub(first_ns));
        }
        Self::extend(&mut self.notification, &mut self.events, RoceEventKind::Notification, mark);
    }

    fn extend(open: &mut Option<Box<RoceEvent>>, events: &mut RoceEvents, kind: RoceEventKind, mark: Mark) {
        match open {
            Some(event) if mark.time_ns.saturating_sub(event.end_ns) <= SERIES_NS => {
                event.count += 1;
                event.end_ns = event.end_ns.max(mark.time_ns);
                event.frames.add(mark);
            }
            _ => {
                let fresh = Box::new(RoceEvent::at(kind, mark));
                if let Some(before) = open.replace(fresh) {
                    events.push(*before);
                }
            }
        }
    }

    fn close_going_back(&mut self, end_ns: i64, reason: &'static str) {
        if let Some(mut open) = self.going_back.take() {
            let acknowledged = open.acknowledged_ns.map(|ns| (ns, "acknowledged"));
            let (end_ns, reason) = acknowledged.unwrap_or((end_ns, reason));
            (open.event.end_ns, open.event.end_reason) = (end_ns, Some(reason));
            self.events.push(open.event);
        }
    }

    fn close_rnr(&mut self, end_ns: Option<i64>, reason: &'static str) {
        if let Some(mut open) = self.rnr.take() {
            open.0.end_ns = end_ns.unwrap_or(open.0.end_ns);
            open.0.end_reason = Some(reason);
            self.events.push(open.0);
        }
    }

    /// The capture is over. `unanswered` is where the first request without an answer was sent, if there is one.
    pub fn finish(&mut self, now_ns: i64, last_sent_ns: i64) {
        let quiet_ns = now_ns.saturating_sub(last_sent_ns);
        if self.going_back.as_ref().is_some_and(|open| open.acknowledged_ns.is_some()) {
            self.close_going_back(now_ns, "acknowledged");
        }
        if let Some(mut open) = self.going_back.take() {
            let is_unanswered = open.event.cause == Some(Cause::Timeout.name()) && open.event.tries >= Some(TRIES);
            // Longer without a try than any wait between tries: it has most likely given up.
            let has_given_up = open.longest_wait_ns > 0 && quiet_ns > open.longest_wait_ns.saturating_mul(2);
            open.event.end_reason = Some(if has_given_up { "gave_up" } else { "capture_end" });
            if is_unanswered {
                open.event.kind = RoceEventKind::Unanswered;
            }
            self.events.push(open.event);
        }
        if let Some(open) = &self.rnr {
            let wait_ns = open.0.wait_ns.unwrap_or(0);
            let has_given_up = quiet_ns > wait_ns.saturating_mul(4).max(100_000_000);
            self.close_rnr(None, if has_given_up { "gave_up" } else { "capture_end" });
        }
        for open in [self.congestion.take(), self.notification.take()].into_iter().flatten() {
            self.events.push(*open);
        }
    }
}
