//! One queue pair that sends requests, with what its peer answers.

use std::collections::VecDeque;

use super::counts::RoceCounts;
use super::event::{RoceEvent, RoceEventKind};
use super::fabric::Outs;
use super::message::{Found, Messages, Part};
use super::path::{Path, Tap};
use super::psn::Psn;
use super::requester::{Request, Requester, Sending};
use super::responder::{Missing, Model, Responder};
use super::story::Story;
use super::types::*;
use crate::analyze::{HoldLimits, Mark};
use crate::wire::Ip;

/// Requests of one queue pair that wait to be judged.
const MOST_WAITING: usize = 1 << 16;
/// An acknowledgement that passed the tap so long ago reached the requester or was lost.
const CROSSING_NS: i64 = 10_000_000;
const PATH_MTUS: [u32; 5] = [256, 512, 1_024, 2_048, 4_096];
/// Times of the RNR timer codes, in units of 10 microseconds (IBTA volume 1, table 45).
const RNR_TIMER: [i64; 32] = [
    65_536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1_024, 1_536, 2_048, 3_072, 4_096,
    6_144, 8_192, 12_288, 16_384, 24_576, 32_768, 49_152,
];

/// A request that waits for what is said of it.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    row: u64,
    psn: Psn,
    span: u32,
    time_ns: i64,
    payload_bytes: u32,
    sent: Sent,
    cause: Option<Cause>,
    evidence: Evidence,
    model: Model,
    /// The responder was not ready for it.
    is_refused: bool,
    /// The responder says that it did not come.
    is_lost: bool,
}

/// A READ whose span is not known yet: the path MTU has not been seen.
#[derive(Clone, Copy, Debug)]
struct OpenRead {
    psn: Psn,
    bytes: u32,
    message: u64,
}

/// Which queue pairs talk, and where.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChannelEnds {
    pub requester_ip: Ip,
    pub responder_ip: Ip,
    pub requester_qp: Option<u32>,
    pub responder_qp: u32,
    pub service: Service,
    pub vni: Option<u32>,
    pub interface: u32,
    pub pair: u32,
    /// Direction of the requests: 0 from the lower address.
    pub direction: u8,
}

#[derive(Debug)]
pub(crate) struct Channel {
    /// Number in the capture, given when a window is merged.
    pub id: u64,
    /// Place of the first packet in its window: the order in which numbers are given.
    pub first_at: u32,
    pub ends: ChannelEnds,
    pub paired_by: PairedBy,
    /// Acknowledgements that fit the requests, and that do not.
    pub fits: u64,
    pub misfits: u64,
    pub first: Mark,
    pub last_ns: i64,
    last_sent_ns: i64,
    last_progress_ns: i64,
    pub counts: RoceCounts,
    pub path_mtu: Option<u32>,
    /// Type of service of the first request; whether others differ.
    pub traffic_class: u8,
    pub pcp: Option<u8>,
    pub has_other_dscp: bool,
    pub has_other_pcp: bool,
    pub is_active: bool,
    /// The responder refused a request for good.
    pub has_failed: bool,
    requester: Requester,
    responder: Responder,
    pub(super) messages: Messages,
    open_read: Option<OpenRead>,
    waiting: VecDeque<Waiting>,
    /// Numbers of which the tap cannot tell how often and in which order they arrived.
    disturbed: Option<(Psn, Psn)>,
    pub story: Story,
}

impl Channel {
    pub fn new(ends: ChannelEnds, seen: &RoceSeen<'_>) -> Self {
        Self {
            id: u64::MAX,
            first_at: seen.at,
            ends,
            paired_by: PairedBy::None,
            fits: 0,
            misfits: 0,
            first: seen.mark,
            last_ns: seen.mark.time_ns,
            last_sent_ns: seen.mark.time_ns,
            last_progress_ns: seen.mark.time_ns,
            counts: RoceCounts::default(),
            path_mtu: None,
            traffic_class: seen.traffic_class,
            pcp: seen.pcp,
            has_other_dscp: false,
            has_other_pcp: false,
            is_active: false,
            has_failed: false,
            requester: Requester::default(),
            responder: Responder::default(),
            messages: Messages::default(),
            open_read: None,
            waiting: VecDeque::new(),
            disturbed: None,
            story: Story::default(),
        }
    }

    /// The connection manager or a log told the number of the first request.
    pub fn start_at(&mut self, psn: Psn) {
        self.requester.start_at(psn);
        self.responder.start_at(psn);
    }

    pub fn expects_ack_of(&self, psn: Psn) -> bool {
        self.requester.expects_ack_of(psn)
    }

    /// Packets between what was sent last and `psn`: where far, another connection has taken the queue pair's number.
    pub fn distance(&self, psn: Psn) -> i32 {
        self.requester.next().map_or(0, |next| psn.since(next))
    }

    pub fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// How sure the pairing is.
    pub fn confidence(&self) -> Option<&'static str> {
        Some(match self.paired_by {
            PairedBy::None => return None,
            PairedBy::Cm | PairedBy::Log | PairedBy::Deth => "certain",
            PairedBy::Psn if self.fits >= 3 && self.misfits.saturating_mul(20) <= self.fits => "high",
            PairedBy::Psn | PairedBy::SameNumber => "low",
        })
    }

    pub fn on_request(
        &mut self,
        seen: &RoceSeen<'_>,
        (operation, starts, ends): (Operation, bool, bool),
        path: &mut Path,
        out: &mut Outs,
        index: u32,
    ) {
        let packet = seen.packet;
        let (psn, mark) = (seen.psn(), seen.mark);
        let silence_from_ns = self.last_progress_ns;
        self.last_ns = self.last_ns.max(mark.time_ns);
        self.counts.requests += 1;
        self.note_marks(seen);
        if !ends && operation != Operation::Read {
            self.learn_mtu(packet.payload_bytes);
        }
        let dma_bytes = packet.reth.map(|reth| reth.2);
        self.close_open_read(psn);
        let mtu = self.path_mtu;
        let read_bytes = dma_bytes.filter(|_| operation == Operation::Read);
        let span = match (read_bytes, mtu) {
            (Some(bytes), Some(mtu)) => bytes.div_ceil(mtu).max(1),
            _ => 1,
        };
        let request = Request { psn, span, operation, ip_id: seen.ip_id, ttl: seen.ttl, time_ns: mark.time_ns };
        let sending = match self.ends.service {
            Service::Ud => self.datagram(&request),
            _ => self.requester.on_request(&request),
        };
        self.count_sending(&sending, packet.payload_bytes);
        let message = self.messages.on_part(&Part {
            psn,
            span,
            operation,
            starts,
            ends,
            payload_bytes: packet.payload_bytes,
            dma_bytes,
            imm: packet.imm,
            is_fresh: sending.is_fresh,
            cause: sending.cause,
            is_ce: seen.ecn() == 3,
            is_reliable: self.ends.service.is_reliable(),
            path_mtu: mtu,
            mark,
        });
        self.place(seen.at, message, out, index);
        if let (Some(bytes), None, Found::New(message)) = (read_bytes, mtu, message) {
            self.open_read = Some(OpenRead { psn, bytes, message });
        }
        let to = self.ends.direction;
        match sending.sent {
            Sent::CaptureDuplicate => {
                let judgement = RoceJudgement {
                    row: seen.row,
                    sent: Some(sending.sent),
                    cause: None,
                    arrival: None,
                    evidence: sending.evidence,
                };
                out.judgements.push(judgement);
                return;
            }
            Sent::NetworkDuplicate => path.add_touched_before(to),
            Sent::Retransmit => self.on_resent(&sending, &request, packet.payload_bytes, mark, path, silence_from_ns),
            _ => {}
        }
        self.last_sent_ns = mark.time_ns;
        let model = match self.ends.service {
            Service::Rc | Service::Xrc => self.responder.on_request(psn, span),
            Service::Uc => self.responder.on_unreliable(psn),
            Service::Ud | Service::Rd => Model::InOrder,
        };
        let waiting = Waiting {
            row: seen.row,
            psn,
            span,
            time_ns: mark.time_ns,
            payload_bytes: packet.payload_bytes,
            sent: sending.sent,
            cause: sending.cause,
            evidence: sending.evidence,
            model,
            is_refused: false,
            is_lost: false,
        };
        if self.ends.service.is_reliable() {
            self.waiting.push_back(waiting);
            if self.waiting.len() > MOST_WAITING
                && let Some(oldest) = self.waiting.pop_front()
            {
                self.settle(&oldest, false, path, out);
            }
            self.drain(path, out);
        } else {
            self.settle(&waiting, false, path, out);
        }
        self.release(out, index);
    }

    /// A datagram has no relation to the numbers before it: they count packets to all destinations.
    fn datagram(&mut self, _request: &Request) -> Sending {
        Sending { sent: Sent::New, cause: None, evidence: Evidence::default(), is_rewind: false, is_fresh: true }
    }

    fn count_sending(&mut self, sending: &Sending, payload_bytes: u32) {
        let counts = &mut self.counts;
        match sending.sent {
            Sent::New | Sent::Unknown => counts.request_bytes += u64::from(payload_bytes),
            Sent::NetworkDuplicate => counts.network_duplicates += 1,
            Sent::CaptureDuplicate => counts.capture_duplicates += 1,
            Sent::Retransmit => {
                counts.resent_bytes += u64::from(payload_bytes);
                let cause = sending.cause.unwrap_or(Cause::Unknown);
                counts.resent[cause as usize] += 1;
                counts.rewinds[cause as usize] += u64::from(sending.is_rewind);
            }
        }
    }

    fn on_resent(
        &mut self,
        sending: &Sending,
        request: &Request,
        payload_bytes: u32,
        mark: Mark,
        path: &mut Path,
        progress_ns: i64,
    ) {
        let cause = sending.cause.unwrap_or(Cause::Unknown);
        let next = self.requester.next().unwrap_or(request.psn);
        if sending.is_rewind {
            self.disturb(request.psn, next);
            self.story.on_rewind(cause, request.psn, next, mark);
            let back = self.ends.direction ^ 1;
            if request.operation.has_response() {
                // It asks again for what it misses of a response.
                let response = self.messages.of_response(request.psn).and_then(|number| self.messages.get(number));
                match response.map(|message| message.response_state(request.psn)) {
                    Some(Some(true)) => path.add_lost_after(back),
                    Some(Some(false)) => path.add_touched_before(back),
                    _ => {}
                }
            } else if cause == Cause::Timeout
                && request.psn.is_before(self.requester.acknowledged())
                && mark.time_ns.saturating_sub(progress_ns) >= CROSSING_NS
            {
                // Its acknowledgement passed the tap and did not arrive.
                path.add_lost_after(back);
            }
        }
        self.story.on_resent(payload_bytes, mark);
    }

    /// A packet of the responder: acknowledgement, READ data, the answer to an atomic operation.
    pub fn on_response(&mut self, seen: &RoceSeen<'_>, role: Role, path: &mut Path, out: &mut Outs, index: u32) {
        let (psn, mark) = (seen.psn(), seen.mark);
        self.last_ns = self.last_ns.max(mark.time_ns);
        self.counts.response_ce += u64::from(seen.ecn() == 3);
        if self.requester.expects_ack_of(psn) {
            self.fits += 1;
        } else {
            self.misfits += 1;
        }
        let packet = seen.packet;
        let mut judgement = RoceJudgement {
            row: seen.row,
            sent: None,
            cause: None,
            arrival: None,
            evidence: Evidence::default(),
        };
        let number = match role {
            Role::Response(first, last) => {
                self.counts.responses += 1;
                if !last {
                    self.learn_mtu(packet.payload_bytes);
                }
                if first || self.open_read.is_some() {
                    self.size_open_read();
                }
                let number = self.messages.of_response(psn);
                self.on_data(number, seen, last, path, &mut judgement);
                number
            }
            Role::AtomicResponse => {
                self.counts.responses += 1;
                let number = self.messages.of_response(psn);
                self.on_data(number, seen, true, path, &mut judgement);
                number
            }
            _ => {
                self.counts.acknowledgements += 1;
                self.messages.of_response(psn)
            }
        };
        let message = number.map_or(Found::None, Found::Known);
        self.place(seen.at, message, out, index);
        out.judgements.push(judgement);
        let (syndrome, _) = packet.aeth.unwrap_or((0, 0));
        match (syndrome >> 5 & 3, syndrome & 0x1f) {
            (1, timer) => self.on_not_ready(psn, timer, mark),
            (3, 0) => self.on_sequence_nak(psn, mark, path),
            (3, code) => self.on_fatal_nak(psn, code, mark),
            _ => self.acknowledge(psn.plus(1), mark),
        }
        self.drain(path, out);
        self.release(out, index);
    }

    fn on_data(
        &mut self,
        number: Option<u64>,
        seen: &RoceSeen<'_>,
        is_last: bool,
        path: &mut Path,
        judgement: &mut RoceJudgement,
    ) {
        let payload_bytes = seen.packet.payload_bytes;
        let ahead =
            number.and_then(|number| self.messages.on_response(number, seen.psn(), payload_bytes, is_last, seen.mark));
        let model = match ahead {
            None => None,
            Some(0) => Some((Arrival::InOrder, Evidence::PSN_EXPECTED)),
            Some(ahead) if ahead > 0 => Some((Arrival::OutOfSequence, Evidence::PSN_GAP)),
            Some(_) => Some((Arrival::Duplicate, Evidence::PSN_BEHIND)),
        };
        if ahead == Some(0) {
            self.counts.response_bytes += u64::from(payload_bytes);
        }
        let (tap, evidence) = self.tap_evidence(path, self.ends.direction ^ 1);
        judgement.sent = Some(if ahead.is_some_and(|ahead| ahead < 0) { Sent::Retransmit } else { Sent::New });
        let (arrival, found) = model.unwrap_or((Arrival::Unknown, Evidence::default()));
        judgement.arrival = Some(if tap { arrival } else { Arrival::Unknown });
        judgement.evidence = found.with(evidence);
    }

    fn on_not_ready(&mut self, psn: Psn, timer: u8, mark: Mark) {
        self.counts.rnr_naks += 1;
        self.acknowledge(psn, mark);
        self.requester.on_refused(psn);
        self.responder.on_refused(psn);
        let wait_ns = RNR_TIMER[usize::from(timer & 31)] * 10_000;
        self.story.on_not_ready(psn, wait_ns, mark);
        // The request was refused; what came after it came to a responder that still waits for it.
        let Some(at) = self.waiting.iter().position(|waiting| waiting.psn == psn && !waiting.is_refused) else { return };
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
        self.requester.on_nak(psn);
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
        if self.requester.on_acknowledged(psn, mark.time_ns) {
            self.last_progress_ns = mark.time_ns;
            self.messages.on_acknowledged(psn, mark);
            self.story.on_acknowledged(psn, mark);
        }
    }

    pub fn on_notification(&mut self, mark: Mark) {
        self.counts.notifications += 1;
        self.story.on_notification(mark);
    }

    fn note_marks(&mut self, seen: &RoceSeen<'_>) {
        match seen.ecn() {
            0 => self.counts.not_ect += 1,
            3 => {
                self.counts.ce += 1;
                self.story.on_mark(seen.packet.payload_bytes, seen.mark);
            }
            _ => self.counts.ect += 1,
        }
        self.has_other_dscp |= seen.traffic_class >> 2 != self.traffic_class >> 2;
        self.has_other_pcp |= seen.pcp != self.pcp;
    }

    fn learn_mtu(&mut self, payload_bytes: u32) {
        if self.path_mtu.is_none() && PATH_MTUS.contains(&payload_bytes) {
            self.path_mtu = Some(payload_bytes);
        }
    }

    pub fn set_mtu(&mut self, mtu: Option<u32>) {
        self.path_mtu = self.path_mtu.or(mtu);
    }

    /// A request after a READ of unknown span tells how many numbers the READ took.
    fn close_open_read(&mut self, psn: Psn) {
        let Some(open) = self.open_read.take() else { return };
        let taken = psn.since(open.psn);
        let is_next = self.requester.next() == Some(open.psn.plus(1));
        if taken < 1 || !is_next || taken as u32 > open.bytes.div_ceil(PATH_MTUS[0]).max(1) {
            return;
        }
        let mut fitting = PATH_MTUS.iter().filter(|mtu| open.bytes.div_ceil(**mtu).max(1) == taken as u32);
        let Some(mtu) = fitting.next() else { return };
        if fitting.next().is_none() && taken > 1 {
            self.path_mtu = self.path_mtu.or(Some(*mtu));
        }
        self.span_open_read(&open, *mtu);
    }

    /// The first packet of a response tells the path MTU.
    fn size_open_read(&mut self) {
        let Some(mtu) = self.path_mtu else { return };
        if let Some(open) = self.open_read.take()
            && self.requester.next() == Some(open.psn.plus(1))
        {
            self.span_open_read(&open, mtu);
        }
    }

    fn span_open_read(&mut self, open: &OpenRead, mtu: u32) {
        let span = open.bytes.div_ceil(mtu).max(1);
        let next = open.psn.plus(span);
        self.messages.set_read_span(open.message, mtu);
        self.requester.correct_next(next);
        if self.responder.next() == Some(open.psn.plus(1)) {
            self.responder.correct_next(next);
        }
        if let Some(waiting) = self.waiting.iter_mut().rev().find(|waiting| waiting.psn == open.psn) {
            waiting.span = span;
        }
    }

    fn disturb(&mut self, from: Psn, until: Psn) {
        let (from, until) =
            self.disturbed.map_or((from, until), |(low, high)| (low.min(from), high.max(until)));
        self.disturbed = Some((from, until));
    }

    /// Judges the requests that are acknowledged.
    fn drain(&mut self, path: &Path, out: &mut Outs) {
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
    fn settle(&mut self, waiting: &Waiting, is_acknowledged: bool, path: &Path, out: &mut Outs) {
        let mut evidence = waiting.evidence;
        if is_acknowledged {
            evidence = evidence.with(Evidence::ACKNOWLEDGED);
        }
        let (is_here, by_tap) = self.tap_evidence(path, self.ends.direction);
        evidence = evidence.with(by_tap);
        let is_disturbed = self
            .disturbed
            .is_some_and(|(from, until)| !waiting.psn.is_before(from) && waiting.psn.is_before(until));
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
        if matches!(arrival, Arrival::OutOfSequence | Arrival::Duplicate) {
            counts.discarded += 1;
            counts.discarded_bytes += u64::from(waiting.payload_bytes);
        }
        if arrival == Arrival::OutOfSequence && waiting.model == Model::OutOfSequence(true) {
            counts.gaps += 1;
        }
    }

    /// Whether the tap is where packets of a direction arrive, and the bits that say so.
    fn tap_evidence(&self, path: &Path, direction: u8) -> (bool, Evidence) {
        match path.tap(direction) {
            Tap::Responder => (true, Evidence::TAP_AT_RECEIVER),
            Tap::Requester | Tap::Middle => (false, Evidence::TAP_ELSEWHERE),
            Tap::Unknown => (false, Evidence::default()),
        }
    }

    fn place(&mut self, at: u32, message: Found, out: &mut Outs, index: u32) {
        if let Found::New(_) = message {
            self.counts.messages += 1;
        }
        out.place(at, index, message, &mut self.messages);
    }

    fn release(&mut self, out: &mut Outs, index: u32) {
        self.messages.release(false, |message| out.finished.push((index, message)));
    }

    /// Judges what waits too long.
    pub fn expire(&mut self, now_ns: i64, row_now: u64, limits: &HoldLimits, path: &Path, out: &mut Outs) {
        let (oldest_ns, oldest_row) = (now_ns.saturating_sub(limits.time_ns), row_now.saturating_sub(limits.rows));
        while let Some(front) = self.waiting.front().copied() {
            if front.time_ns >= oldest_ns && front.row >= oldest_row {
                break;
            }
            self.waiting.pop_front();
            self.settle(&front, false, path, out);
        }
    }

    /// Gives memory back while the queue pair is quiet.
    pub fn rest(&mut self, out: &mut Outs, index: u32) {
        self.requester.rest();
        self.messages.rest(|message| out.finished.push((index, message)));
        self.waiting.shrink_to(64);
    }

    /// Judges all that waits; the queue pair may go on.
    pub fn judge_all(&mut self, path: &Path, out: &mut Outs) {
        while let Some(front) = self.waiting.pop_front() {
            self.settle(&front, false, path, out);
        }
    }

    /// Gives out all messages, finished or not.
    pub fn end_messages(&mut self, out: &mut Outs, index: u32) {
        self.messages.release(true, |message| out.finished.push((index, message)));
    }

    /// The capture is over.
    pub fn finish(&mut self, now_ns: i64, path: &Path, out: &mut Outs, index: u32) {
        self.judge_all(path, out);
        self.end_messages(out, index);
        self.story.finish(now_ns, self.last_sent_ns);
    }

    pub fn tap(&self, path: &Path) -> Tap {
        path.tap(self.ends.direction)
    }

    /// Requests that were sent and nothing is known of.
    pub fn unanswered(&self) -> u64 {
        if !self.ends.service.is_reliable() {
            return 0;
        }
        self.requester.next().map_or(0, |next| next.since(self.requester.acknowledged()).max(0) as u64)
    }
}
