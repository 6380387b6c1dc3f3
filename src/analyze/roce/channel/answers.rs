//! What the responder answers, and what that says of the requests.

use super::*;
use crate::analyze::roce::responder::Missing;
use crate::analyze::roce::taker::Taken;

/// Times of the RNR timer codes, in units of 10 microseconds (IBTA volume 1, table 45).
const RNR_TIMER: [i64; 32] = [
    65_536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1_024, 1_536, 2_048, 3_072,
    4_096, 6_144, 8_192, 12_288, 16_384, 24_576, 32_768, 49_152,
];

impl Channel {
    /// A packet of the responder: acknowledgement, READ data, the answer to an atomic operation.
    pub fn on_response(&mut self, seen: &RoceSeen<'_>, role: Role, path: &mut Path, out: &mut Outs, index: u32) {
        let (psn, mark) = (seen.psn(), seen.mark);
        self.heard = seen.moment;
        self.last_ns = self.last_ns.max(mark.time_ns);
        let is_data = matches!(role, Role::Response(..) | Role::AtomicResponse);
        if is_data {
            let is_marked = seen.ecn() == 3;
            let interval = self.intervals.at(mark.time_ns);
            interval.responses += 1;
            interval.bytes += u64::from(seen.packet.payload_bytes);
            interval.response_ce += u64::from(is_marked);
            self.counts.response_ce += u64::from(is_marked);
            if is_marked {
                path.add_mark(self.ends.direction ^ 1);
                self.story.on_response_mark(mark);
            }
        }
        if self.requester.expects_ack_of(psn) {
            self.fits += 1;
        } else {
            self.misfits += 1;
        }
        let packet = seen.packet;
        let mut judgement =
            RoceJudgement { row: seen.row, sent: None, cause: None, arrival: None, evidence: Evidence::default() };
        let place = match role {
            Role::Response(first, last) => {
                self.counts.responses += 1;
                if !last {
                    self.learn_mtu(packet.payload_bytes);
                }
                if first || self.open_read.is_some() {
                    self.size_open_read();
                }
                let place = self.messages.of_response(psn);
                self.on_data(place, seen, last, path, &mut judgement);
                place
            }
            Role::AtomicResponse => {
                self.counts.responses += 1;
                let place = self.messages.of_response(psn);
                self.on_data(place, seen, true, path, &mut judgement);
                place
            }
            _ => {
                self.counts.acknowledgements += 1;
                self.messages.of_response(psn)
            }
        };
        let message = place.map_or(Found::None, Found::Known);
        self.place(seen.at, message, out, index);
        out.judgements.push(judgement);
        let (syndrome, _) = packet.aeth.unwrap_or((0, 0));
        match (syndrome >> 5 & 3, syndrome & 0x1f) {
            (1, timer) => self.on_not_ready(psn, timer, mark),
            (3, 0) => self.on_sequence_nak(psn, mark, path),
            (3, code) => self.on_fatal_nak(psn, code, mark),
            _ => {
                if !is_data {
                    let due = self.due_answer(psn);
                    self.taker.on_acknowledged(psn, due, mark.time_ns);
                }
                self.acknowledge(psn.plus(1), mark);
            }
        }
        self.drain(path, out);
        self.release(out, index);
    }

    fn on_data(
        &mut self,
        place: Option<usize>,
        seen: &RoceSeen<'_>,
        is_last: bool,
        path: &mut Path,
        judgement: &mut RoceJudgement,
    ) {
        let payload_bytes = seen.packet.payload_bytes;
        let ahead =
            place.and_then(|place| self.messages.on_response(place, seen.psn(), payload_bytes, is_last, seen.mark));
        let found = match ahead {
            None => Evidence::default(),
            Some(0) => Evidence::PSN_EXPECTED,
            Some(ahead) if ahead > 0 => Evidence::PSN_GAP,
            Some(_) => Evidence::PSN_BEHIND,
        };
        let due = self.due_answer(seen.psn());
        let taken = ahead.map(|_| self.taker.on_data(seen.psn(), due, seen.mark.time_ns));
        let arrival = match taken {
            Some(Taken::InPlace) => Arrival::InOrder,
            Some(Taken::Again) => Arrival::Duplicate,
            Some(Taken::Ahead) if ahead > Some(0) => Arrival::OutOfSequence,
            // An answer before it is missing: its requester drops it, unless only the capture lacks the other.
            Some(Taken::Ahead) | None => Arrival::Unknown,
        };
        if ahead == Some(0) {
            self.counts.response_bytes += u64::from(payload_bytes);
        }
        let (tap, evidence) = self.tap_evidence(path, self.ends.direction ^ 1);
        judgement.sent = Some(if ahead.is_some_and(|ahead| ahead < 0) { Sent::Retransmit } else { Sent::New });
        judgement.arrival = Some(if tap { arrival } else { Arrival::Unknown });
        judgement.evidence = found.with(evidence);
    }

    /// The first answer with data, up to `until`, that the requester has not taken.
    fn due_answer(&self, until: Psn) -> Option<Psn> {
        self.messages.due_answer(self.taker.next()?, until)
    }

    fn on_not_ready(&mut self, psn: Psn, timer: u8, mark: Mark) {
        self.counts.rnr_naks += 1;
        self.acknowledge(psn, mark);
        self.requester.on_refused(psn);
        self.responder.on_refused(psn);
        let wait_ns = RNR_TIMER[usize::from(timer & 31)] * 10_000;
        self.story.on_not_ready(psn, wait_ns, mark);
        // The request was refused; what came after it came to a responder that still waits for it.
        let Some(at) = self.waiting.iter().position(|waiting| waiting.psn == psn && !waiting.is_refused) else {
            return;
        };
        let mut rest = self.waiting.iter_mut().skip(at);
        if let Some(refused) = rest.next() {
            refused.is_refused = true;
            refused.evidence = refused.evidence.with(Evidence::RNR_NAK).with(Evidence::REFUSED);
        }
        for waiting in rest {
            waiting.model = self.responder.on_request(waiting.psn, waiting.span);
        }
    }

    fn on_sequence_nak(&mut self, psn: Psn, mark: Mark, path: &mut Path) {
        self.counts.sequence_naks += 1;
        self.acknowledge(psn, mark);
        self.requester.on_nak(psn, mark);
        let to = self.ends.direction;
        match self.responder.on_nak(psn) {
            Missing::BeforeTap => path.add_touched_before(to),
            Missing::AfterTap => {
                path.add_lost_after(to);
                self.lose(psn);
            }
            Missing::NotKnown => {}
        }
        self.disturb(psn, self.requester.next().unwrap_or(psn));
    }

    /// The request at `psn` passed the tap and did not come to the responder, which waits for it.
    fn lose(&mut self, psn: Psn) {
        let Some(at) = self.waiting.iter().rposition(|waiting| waiting.psn == psn && !waiting.is_lost) else { return };
        let mut rest = self.waiting.iter_mut().skip(at);
        if let Some(lost) = rest.next() {
            lost.is_lost = true;
        }
        self.responder.wait_for(psn);
        for waiting in rest {
            waiting.model = self.responder.on_request(waiting.psn, waiting.span);
        }
        // It has complained of that gap.
        self.responder.on_nak(psn);
    }

    fn on_fatal_nak(&mut self, psn: Psn, code: u8, mark: Mark) {
        self.counts.fatal_naks += 1;
        self.counts.fatal_by_code[usize::from(if code <= 4 { code } else { 0 })] += 1;
        self.has_failed = true;
        self.acknowledge(psn, mark);
        self.messages.on_failed(psn, mark);
        let mut event = RoceEvent::at(RoceEventKind::Refused, mark);
        event.psn = Some(psn.get());
        event.cause = Some(match code {
            1 => "invalid_request",
            2 => "remote_access",
            3 => "remote_operation",
            4 => "invalid_rd_request",
            _ => "reserved",
        });
        self.story.push(event);
    }

    /// Everything before `psn` is acknowledged.
    fn acknowledge(&mut self, psn: Psn, mark: Mark) {
        if let Some(next) = self.requester.next()
            && psn.since(next) > 0
        {
            let missing = psn.since(next) as u64;
            // Farther off than any window: the acknowledgement belongs elsewhere.
            if missing > 1 << 20 {
                return;
            }
            self.counts.not_captured += missing;
            let mut event = RoceEvent::at(RoceEventKind::CaptureLoss, mark);
            (event.count, event.psn) = (missing, Some(next.get()));
            self.story.push(event);
        }
        self.responder.on_acknowledged(psn);
        let is_news = self.requester.on_acknowledged(psn, mark.time_ns);
        if is_news {
            self.last_progress_ns = mark.time_ns;
            self.messages.on_acknowledged(psn, mark);
        }
        // Behind a gap the requester takes no answer.
        match (self.taker.has_gap(), is_news) {
            (true, _) => {}
            (false, true) => self.story.on_acknowledged(psn, mark),
            (false, false) => self.story.on_acknowledged_again(psn, mark),
        }
        if !self.requester.has_outstanding() && self.requester.next() == Some(psn) {
            self.all_acknowledged = Some(mark);
        }
    }
}
