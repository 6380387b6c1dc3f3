//! One queue pair that sends requests, with what its peer answers.

mod answers;
mod judging;
mod reads;

use std::collections::VecDeque;

use super::counts::RoceCounts;
use super::event::{RoceEvent, RoceEventKind};
use super::fabric::{Finished, Outs, Placed};
use super::intervals::Intervals;
use super::message::{Found, Message, Messages, Part};
use super::path::{Path, Tap};
use super::psn::Psn;
use super::requester::{Request, Requester, Sending};
use super::responder::{Model, Responder};
use super::story::{Story, TimedOut};
use super::taker::{Missed, Taker};
use super::types::*;
use crate::analyze::{Mark, Moment, Quantiles};
use crate::wire::Ip;
use reads::OpenRead;

/// Requests of one queue pair that wait to be judged.
const MOST_WAITING: usize = 1 << 16;
/// An acknowledgement that passed the tap so long ago reached the requester or was lost.
const CROSSING_NS: i64 = 10_000_000;
const PATH_MTUS: [u32; 5] = [256, 512, 1_024, 2_048, 4_096];

fn note_latency(latency: &mut Option<Box<Quantiles>>, message: &Message) {
    if let Some(latency_ns) = message.latency_ns().filter(|_| message.has_start) {
        latency.get_or_insert_default().add(latency_ns);
    }
}

/// A request that waits for what is said of it.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    row: u64,
    since: Moment,
    psn: Psn,
    span: u32,
    operation: Operation,
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
    /// Number in the capture, given when a part of a window is merged.
    pub id: u64,
    /// Place of the first packet in its window: the order in which numbers are given.
    pub first_at: u32,
    pub ends: ChannelEnds,
    pub paired_by: PairedBy,
    /// Acknowledgements that fit the requests, and that do not.
    pub fits: u64,
    pub misfits: u64,
    pub first: Mark,
    /// Number of the first request.
    pub first_psn: Option<u32>,
    pub last_ns: i64,
    /// When a packet of it was seen last.
    heard: Moment,
    last_sent_ns: i64,
    last_progress_ns: i64,
    last_timeout_ns: Option<i64>,
    /// The last acknowledgement that left nothing open.
    all_acknowledged: Option<Mark>,
    /// From the first packet of messages to their completion.
    pub latency: Option<Box<Quantiles>>,
    pub counts: RoceCounts,
    pub intervals: Intervals,
    pub path_mtu: Option<u32>,
    /// Priority class of the notifications to it.
    pub notification_class: Option<u8>,
    /// Type of service of the first request; whether others differ.
    pub traffic_class: u8,
    pub pcp: Option<u8>,
    pub has_other_dscp: bool,
    pub has_other_pcp: bool,
    /// It is not at rest.
    pub is_active: bool,
    /// It is among those whose requests wait.
    pub is_due: bool,
    /// The responder refused a request for good.
    pub has_failed: bool,
    requester: Requester,
    responder: Responder,
    taker: Taker,
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
            first_psn: None,
            last_ns: seen.mark.time_ns,
            heard: seen.moment,
            last_sent_ns: seen.mark.time_ns,
            last_progress_ns: seen.mark.time_ns,
            last_timeout_ns: None,
            all_acknowledged: None,
            latency: None,
            counts: RoceCounts::default(),
            intervals: Intervals::default(),
            path_mtu: None,
            notification_class: None,
            traffic_class: seen.traffic_class,
            pcp: seen.pcp,
            has_other_dscp: false,
            has_other_pcp: false,
            is_active: false,
            is_due: false,
            has_failed: false,
            requester: Requester::default(),
            responder: Responder::default(),
            taker: Taker::default(),
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

    /// Since when the first of the requests waits that nothing final is said of yet.
    pub fn waits_since(&self) -> Option<Moment> {
        self.waiting.front().map(|first| first.since)
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
        self.heard = seen.moment;
        self.last_ns = self.last_ns.max(mark.time_ns);
        self.counts.requests += 1;
        self.first_psn.get_or_insert(psn.get());
        self.note_marks(seen);
        if seen.ecn() == 3 {
            path.add_mark(self.ends.direction);
        }
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
        let request = Request {
            psn,
            span,
            operation,
            ip_id: seen.ip_id,
            ttl: seen.ttl,
            if_index: seen.if_index,
            time_ns: mark.time_ns,
            may_miss_answer: operation.has_response() && self.taker.may_miss(psn),
        };
        let sending = match self.ends.service {
            Service::Ud => self.datagram(&request),
            _ => self.requester.on_request(&request),
        };
        self.count_sending(&sending, packet.payload_bytes);
        let interval = self.intervals.at(mark.time_ns);
        interval.requests += 1;
        interval.bytes += u64::from(packet.payload_bytes);
        interval.ce += u64::from(seen.ecn() == 3);
        interval.not_ect += u64::from(seen.ecn() == 0);
        interval.resent += u64::from(sending.sent == Sent::Retransmit);
        let message = self.messages.on_part(&Part {
            row: seen.row,
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
        if let (Some(bytes), None, Found::New(place)) = (read_bytes, mtu, message) {
            let message = self.messages.get(place).map(|message| message.number);
            self.open_read = message.map(|message| OpenRead { psn, bytes, message });
        }
        for stray in std::mem::take(&mut self.messages.strays) {
            let message = self.messages.on_part(&stray);
            let message = self.number(seen.at, message, out, index);
            out.moved.push((stray.row, message, out.judgements.len()));
        }
        let to = self.ends.direction;
        match sending.sent {
            Sent::CaptureDuplicate | Sent::Unknown if sending.evidence.has(Evidence::SAME_IP_ID) => {
                let judgement = RoceJudgement {
                    row: seen.row,
                    sent: Some(sending.sent),
                    cause: None,
                    arrival: (sending.sent == Sent::Unknown).then_some(Arrival::Unknown),
                    evidence: sending.evidence,
                };
                out.judgements.push(judgement);
                return;
            }
            Sent::NetworkDuplicate => {
                path.add_touched_before(to);
                out.network_copies.push(seen.at);
            }
            Sent::New if !sending.is_fresh && self.ends.service != Service::Ud => {
                self.relabel(psn, packet.payload_bytes)
            }
            Sent::New => self.taker.on_new(psn, mark.time_ns),
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
            since: seen.moment,
            psn,
            span,
            operation,
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

    /// The original of `psn` comes after its repetition: what was taken for it was the repetition.
    fn relabel(&mut self, psn: Psn, payload_bytes: u32) {
        let is_it = |waiting: &&mut Waiting| waiting.psn == psn && waiting.sent == Sent::New;
        let Some(earlier) = self.waiting.iter_mut().rev().find(is_it) else { return };
        (earlier.sent, earlier.cause) = (Sent::Retransmit, Some(Cause::Unknown));
        self.counts.resent[Cause::Unknown as usize] += 1;
        self.intervals.at(earlier.time_ns).resent += 1;
        self.counts.resent_bytes += u64::from(payload_bytes);
        // Both were counted as sent for the first time.
        self.counts.request_bytes = self.counts.request_bytes.saturating_sub(u64::from(payload_bytes));
    }

    /// A datagram has no relation to the numbers before it: they count packets to all destinations.
    fn datagram(&mut self, _request: &Request) -> Sending {
        Sending::once(Sent::New, Evidence::default(), true)
    }

    fn count_sending(&mut self, sending: &Sending, payload_bytes: u32) {
        let counts = &mut self.counts;
        match sending.sent {
            Sent::Unknown if sending.evidence.has(Evidence::SAME_IP_ID) => {}
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
            let wait_ns = (cause == Cause::Timeout).then(|| self.timeout_wait_ns(request.psn, mark, progress_ns));
            let is_complete = !self.requester.has_outstanding() && !self.taker.has_gap();
            let unheeded_ack = self.all_acknowledged.filter(|_| cause == Cause::Timeout && is_complete);
            self.counts.timeouts_after_nak += u64::from(sending.unheeded_nak.is_some());
            self.counts.timeouts_after_ack += u64::from(unheeded_ack.is_some());
            let timeout = TimedOut { wait_ns, unheeded_nak: sending.unheeded_nak, unheeded_ack };
            self.story.on_rewind(cause, request.psn, next, mark, timeout);
            let back = self.ends.direction ^ 1;
            let due = self.taker.next().and_then(|next| self.messages.of_response(next));
            let start = due.and_then(|place| self.messages.get(place)).map(|message| message.psn);
            let missed = self.taker.on_rewind(request.psn, start);
            if request.operation.has_response() {
                // It asks again for what it misses of a response.
                match missed {
                    Missed::AfterTap => path.add_lost_after(back),
                    Missed::BeforeTap => path.add_touched_before(back),
                    Missed::NotKnown => {}
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

    /// How long nothing moved before a timeout: since the last acknowledgement, since the packet was sent (a queue pair that has
    /// nothing to send does not wait), or since it went back the last time.
    fn timeout_wait_ns(&mut self, psn: Psn, mark: Mark, progress_ns: i64) -> i64 {
        let sent_ns =
            self.waiting.iter().find(|waiting| waiting.psn == psn).map_or(self.last_sent_ns, |first| first.time_ns);
        let since_ns = progress_ns.max(sent_ns).max(self.last_timeout_ns.unwrap_or(i64::MIN));
        self.last_timeout_ns = Some(mark.time_ns);
        let wait_ns = mark.time_ns.saturating_sub(since_ns).max(0);
        let counts = &mut self.counts;
        counts.timeout_wait_ns = counts.timeout_wait_ns.saturating_add(wait_ns);
        counts.longest_timeout_wait_ns = counts.longest_timeout_wait_ns.max(wait_ns);
        wait_ns
    }

    pub fn on_notification(&mut self, seen: &RoceSeen<'_>) {
        self.counts.notifications += 1;
        self.intervals.at(seen.mark.time_ns).notifications += 1;
        self.notification_class = Some(seen.pcp.unwrap_or(seen.traffic_class >> 5));
        self.story.on_notification(seen.mark);
    }

    /// A notification to the responder: what it sends are READ responses.
    pub fn on_response_notification(&mut self, seen: &RoceSeen<'_>) {
        self.counts.response_notifications += 1;
        self.intervals.at(seen.mark.time_ns).response_notifications += 1;
        self.notification_class = Some(seen.pcp.unwrap_or(seen.traffic_class >> 5));
        self.story.on_response_notification(seen.mark);
    }

    pub fn has_event(&self, kind: RoceEventKind) -> bool {
        self.story.events().any(|event| event.kind == kind)
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

    fn place(&mut self, at: u32, message: Found, out: &mut Outs, index: u32) {
        let message = self.number(at, message, out, index);
        out.placed.push(Placed { at, channel: index, message });
    }

    fn number(&mut self, at: u32, message: Found, out: &mut Outs, index: u32) -> u64 {
        if let Found::New(_) = message {
            self.counts.messages += 1;
        }
        out.number(at, index, message, &mut self.messages)
    }

    /// Hands out messages that nothing more is expected of.
    fn release(&mut self, out: &mut Outs, index: u32) {
        self.hand_out(out, index, Messages::release);
    }

    /// Hands out what `of` takes from the messages.
    fn hand_out(&mut self, out: &mut Outs, channel: u32, of: impl FnOnce(&mut Messages, &mut dyn FnMut(Message))) {
        let Self { messages, latency, ends, .. } = self;
        of(messages, &mut |message| {
            note_latency(latency, &message);
            out.finished.push(Finished { channel, requester_qp: ends.requester_qp, message });
        });
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
