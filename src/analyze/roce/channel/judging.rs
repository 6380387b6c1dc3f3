//! When what is said of a request is final, and what it is.

use super::*;
use crate::analyze::HoldLimits;

impl Channel {
    pub(super) fn disturb(&mut self, from: Psn, until: Psn) {
        let (from, until) = self.disturbed.map_or((from, until), |(low, high)| (low.min(from), high.max(until)));
        self.disturbed = Some((from, until));
    }

    /// Judges the requests that are acknowledged.
    pub(super) fn drain(&mut self, path: &Path, out: &mut Outs) {
        let acknowledged = self.requester.acknowledged();
        while let Some(front) = self.waiting.front().copied() {
            // The first packet of a READ's response acknowledges the request.
            if !front.psn.is_before(acknowledged) {
                break;
            }
            self.waiting.pop_front();
            self.settle(&front, true, path, out);
        }
        if self.waiting.is_empty() && self.disturbed.is_some_and(|(_, until)| !acknowledged.is_before(until)) {
            self.disturbed = None;
        }
    }

    /// Says what is known of a request.
    pub(super) fn settle(&mut self, waiting: &Waiting, is_acknowledged: bool, path: &Path, out: &mut Outs) {
        let mut evidence = waiting.evidence;
        if is_acknowledged {
            evidence = evidence.with(Evidence::ACKNOWLEDGED);
        }
        let (is_here, by_tap) = self.tap_evidence(path, self.ends.direction);
        evidence = evidence.with(by_tap);
        let is_disturbed =
            self.disturbed.is_some_and(|(from, until)| !waiting.psn.is_before(from) && waiting.psn.is_before(until));
        let is_plain = waiting.sent == Sent::New && waiting.model == Model::InOrder && !is_disturbed;
        let arrival = if waiting.is_lost {
            Arrival::Unknown
        } else if is_here && self.ends.service != Service::Ud {
            match waiting.model {
                Model::InOrder => Arrival::InOrder,
                Model::OutOfSequence(_) => Arrival::OutOfSequence,
                Model::Duplicate => Arrival::Duplicate,
            }
        } else if waiting.is_refused || is_acknowledged && is_plain {
            // The responder takes packets in order only: what it acknowledges without complaint, or refuses for the
            // moment, came in its turn.
            Arrival::InOrder
        } else {
            Arrival::Unknown
        };
        self.count_arrival(waiting, arrival);
        out.judgements.push(RoceJudgement {
            row: waiting.row,
            sent: Some(waiting.sent),
            cause: waiting.cause,
            arrival: Some(arrival),
            evidence,
        });
    }

    fn count_arrival(&mut self, waiting: &Waiting, arrival: Arrival) {
        let counts = &mut self.counts;
        match arrival {
            Arrival::InOrder => counts.in_order += 1,
            Arrival::OutOfSequence => counts.out_of_sequence += 1,
            Arrival::Duplicate => counts.duplicates += 1,
            Arrival::Unknown | Arrival::Damaged => counts.unknown_arrivals += 1,
        }
        // A READ that comes again is carried out again, and of an atomic operation the result is sent again (IBTA volume 1,
        // 9.7.5.1). What the network copied nobody sent again. Unreliable services drop no packet for a gap before it.
        let is_dropped = match arrival {
            Arrival::OutOfSequence => true,
            Arrival::Duplicate => !waiting.operation.has_response(),
            Arrival::InOrder | Arrival::Unknown | Arrival::Damaged => false,
        };
        if is_dropped && waiting.sent != Sent::NetworkDuplicate && self.ends.service.is_reliable() {
            counts.discarded += 1;
            counts.discarded_twice += u64::from(arrival == Arrival::Duplicate);
            counts.discarded_bytes += u64::from(waiting.payload_bytes);
        }
        if arrival == Arrival::OutOfSequence && waiting.model == Model::OutOfSequence(true) {
            counts.gaps += 1;
        }
    }

    /// Whether the tap is where packets of a direction arrive, and the bits that say so.
    pub(super) fn tap_evidence(&self, path: &Path, direction: u8) -> (bool, Evidence) {
        match path.tap(direction) {
            Tap::Responder => (true, Evidence::TAP_AT_RECEIVER),
            Tap::Requester | Tap::Middle => (false, Evidence::TAP_ELSEWHERE),
            Tap::BehindMarks | Tap::Unknown => (false, Evidence::default()),
        }
    }

    /// Judges what has waited too long by now.
    pub fn expire(&mut self, now: Moment, limits: &HoldLimits, path: &Path, out: &mut Outs) {
        while let Some(front) = self.waiting.front().copied().filter(|front| now.is_beyond(front.since, limits)) {
            self.waiting.pop_front();
            self.settle(&front, false, path, out);
        }
    }

    /// Does what a silence leads to that has lasted until now, and says whether it is one. What is complete is given out: packets
    /// that come after so long are no more of it. Done before every packet, so that it does not matter when else.
    pub fn catch_up(&mut self, now: Moment, limits: &HoldLimits, out: &mut Outs, index: u32) -> bool {
        let is_quiet = now.ns_since(self.heard) > limits.time_ns;
        if is_quiet {
            self.requester.rest();
            self.hand_out(out, index, Messages::rest);
            self.waiting.shrink_to(64);
        }
        is_quiet
    }

    /// Gives out all messages with numbers below `before`, finished or not.
    pub fn end_messages(&mut self, before: u64, out: &mut Outs, index: u32) {
        self.hand_out(out, index, |messages, take| messages.end(before, take));
    }

    /// The capture is over.
    pub fn finish(&mut self, now_ns: i64, path: &Path, out: &mut Outs, index: u32) {
        while let Some(front) = self.waiting.pop_front() {
            self.settle(&front, false, path, out);
        }
        self.end_messages(u64::MAX, out, index);
        self.story.finish(now_ns, self.last_sent_ns);
    }
}
