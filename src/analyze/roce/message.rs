//! Messages of one queue pair's requester, put together from their packets.

use std::collections::VecDeque;

use super::psn::Psn;
use super::types::{Cause, Operation};
use crate::analyze::Mark;

/// Finished messages that a queue pair remembers, since their packets may come once more.
const HISTORY: usize = 32;
/// Unfinished messages of one queue pair.
const MOST_OPEN: usize = 4_096;
/// So many messages may have overtaken one, or have begun before it came once more.
const MOST_OVERTAKING: usize = 512;
/// Packets of a message that may pass before its first one, and be sorted out by that.
const MOST_LOOSE: usize = 256;

/// How a message ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Completion {
    /// Its last packet was acknowledged.
    Acknowledged,
    /// Its response came to the end.
    Response,
    /// The responder refused it for good (NAK).
    Failed,
    /// An unreliable service tells no more than that the last packet was sent.
    Sent,
    /// The capture does not show its end.
    Unfinished,
}

impl Completion {
    pub fn name(self) -> &'static str {
        match self {
            Self::Acknowledged => "acknowledged",
            Self::Response => "response",
            Self::Failed => "failed",
            Self::Sent => "sent",
            Self::Unfinished => "unfinished",
        }
    }
}

/// One message.
#[derive(Clone, Debug)]
pub(crate) struct Message {
    /// Number in the capture, once it is given (see [`super::FRESH`]).
    pub id: u64,
    /// Running number among those of its queue pair, in the order in which they began.
    pub number: u64,
    pub operation: Operation,
    pub first: Mark,
    /// Its last packet so far, of either side.
    pub last: Mark,
    /// Number of its first packet, and how many numbers it takes as far as is known.
    pub psn: Psn,
    pub span: u32,
    is_span_final: bool,
    /// Only because another began behind it; of that many numbers it is known that they are its.
    is_closed: bool,
    reached: u32,
    /// Its packets while the first one has not come: some may belong to the next.
    loose: Vec<Part>,
    /// RETH: length of the whole message.
    pub dma_bytes: Option<u32>,
    /// Payload that passed the tap in its place, each number once.
    pub payload_bytes: u64,
    pub imm: Option<u32>,
    pub has_start: bool,
    pub has_end: bool,
    /// Packets of the requester, repetitions included.
    pub packets: u64,
    pub response_packets: u64,
    pub response_first: Option<Mark>,
    /// Next number of the response that is due.
    response_next: Psn,
    /// Packets sent again, by cause.
    pub resent: [u64; Cause::ALL.len()],
    pub ce_count: u64,
    pub completion: Completion,
    pub done: Option<Mark>,
}

impl Message {
    pub fn last_psn(&self) -> Psn {
        self.psn.plus(self.span.saturating_sub(1))
    }

    pub fn is_done(&self) -> bool {
        self.done.is_some()
    }

    /// From its first packet to its completion. How long a refusal took is not how long messages take, nor is how long sending
    /// took where nothing answers.
    pub fn latency_ns(&self) -> Option<i64> {
        let is_answered = matches!(self.completion, Completion::Acknowledged | Completion::Response);
        let done = self.done.filter(|_| is_answered)?;
        Some(done.time_ns.saturating_sub(self.first.time_ns))
    }

    /// All of it passed the tap.
    pub fn is_whole(&self) -> bool {
        self.has_start && self.has_end && self.dma_bytes.is_none_or(|bytes| u64::from(bytes) == self.payload_bytes)
    }

    /// How many numbers are its own for sure.
    fn taken(&self) -> u32 {
        if self.is_closed { self.reached } else { self.span }
    }

    /// It can have no packets from `psn` on, where another begins.
    fn close(&mut self, psn: Psn) {
        let room = psn.since(self.psn);
        if room > 0 && (self.is_closed || !self.is_span_final) {
            (self.span, self.is_span_final, self.is_closed) = (room as u32, true, true);
        }
    }

    /// Another begins at `psn`, in the middle of what was taken for its packets.
    fn is_cut_at(&self, psn: Psn) -> bool {
        let room = psn.since(self.psn);
        !self.loose.is_empty() && room > 0 && (room as u32) < self.reached
    }

    /// A packet that starts a message told how far it reaches: keeps the packets that are its own, and returns the others.
    fn keep_own(&mut self, start: &Part) -> Vec<Part> {
        let (own, others): (Vec<Part>, _) =
            std::mem::take(&mut self.loose).into_iter().partition(|part| !self.is_span_final || self.covers(part.psn));
        for part in &others {
            self.packets -= 1;
            self.ce_count -= u64::from(part.is_ce);
            self.payload_bytes -= if part.is_fresh { u64::from(part.payload_bytes) } else { 0 };
            if let Some(cause) = part.cause {
                self.resent[cause as usize] -= 1;
            }
        }
        if !others.is_empty() {
            self.first = own.first().map_or(start.mark, |part| part.mark);
            self.has_end = own.iter().any(|part| part.ends);
            self.imm = own.iter().find_map(|part| part.imm);
        }
        if !self.has_start {
            self.loose = own;
        }
        others
    }

    fn covers(&self, psn: Psn) -> bool {
        let offset = psn.since(self.psn);
        offset >= 0 && (!self.is_span_final || (offset as u32) < self.span)
    }
}

/// A request packet, as far as messages need to know it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    /// Running number of its row.
    pub row: u64,
    pub psn: Psn,
    pub span: u32,
    pub operation: Operation,
    pub starts: bool,
    pub ends: bool,
    pub payload_bytes: u32,
    pub dma_bytes: Option<u32>,
    pub imm: Option<u32>,
    /// Its number passes the tap for the first time.
    pub is_fresh: bool,
    pub cause: Option<Cause>,
    pub is_ce: bool,
    pub is_reliable: bool,
    pub path_mtu: Option<u32>,
    pub mark: Mark,
}

/// The place of a packet's message; it holds until messages begin or are given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Begun by this packet.
    New(usize),
    Known(usize),
    None,
}

#[derive(Debug, Default)]
pub(super) struct Messages {
    /// In the order of their packets' numbers, which is the order of [`Message::number`] unless one was overtaken.
    list: VecDeque<Message>,
    /// Whether any was.
    has_overtaken: bool,
    /// Messages that began so far.
    begun: u64,
    /// Place of the first that is not acknowledged.
    acknowledged: usize,
    /// Packets that were taken for those of another message; they are to be told again.
    pub strays: Vec<Part>,
}

impl Messages {
    pub fn on_part(&mut self, part: &Part) -> Found {
        if let Some(at) = self.find(part) {
            let mut is_longer_before = false;
            let message = &mut self.list[at];
            message.packets += 1;
            message.last = part.mark;
            message.ce_count += u64::from(part.is_ce);
            if let Some(cause) = part.cause {
                message.resent[cause as usize] += 1;
            }
            if !message.has_start {
                // What comes late may lie before what was seen of it.
                let before = message.psn.since(part.psn);
                is_longer_before = before > 0;
                if is_longer_before {
                    message.psn = part.psn;
                    message.span += before as u32;
                    message.reached += before as u32;
                }
                if part.starts {
                    message.has_start = true;
                    Self::set_span(message, part);
                    self.strays.append(&mut message.keep_own(part));
                } else if !message.operation.has_response() && message.loose.len() < MOST_LOOSE {
                    message.loose.push(*part);
                }
            }
            message.dma_bytes = message.dma_bytes.or(part.dma_bytes);
            message.imm = message.imm.or(part.imm);
            if part.is_fresh && !message.operation.has_response() {
                message.payload_bytes += u64::from(part.payload_bytes);
            }
            Self::reach(message, part);
            if let Some(before) = self.before_mut(at).filter(|_| is_longer_before) {
                before.close(part.psn);
            }
            return Found::Known(at);
        }
        let place = self.list.partition_point(|message| !part.psn.is_before(message.psn));
        if !self.may_begin(part, place) {
            return Found::None;
        }
        self.begin(part, place)
    }

    fn before_mut(&mut self, place: usize) -> Option<&mut Message> {
        self.list.get_mut(place.checked_sub(1)?)
    }

    /// Whether a packet that belongs to no message yet begins one at `place`.
    fn may_begin(&self, part: &Part, place: usize) -> bool {
        let before = place.checked_sub(1).and_then(|before| self.list.get(before));
        if place == self.list.len() {
            return (part.cause.is_none() || part.starts) && before.is_none_or(|before| before.psn.is_before(part.psn));
        }
        // Those behind it overtook it, or it was lost before the tap when it was sent first.
        let has_room = |before: &Message| {
            i64::from(part.psn.since(before.psn)) >= i64::from(before.taken())
                || part.starts && before.is_cut_at(part.psn)
        };
        part.is_fresh && self.list.len() - place <= MOST_OVERTAKING && before.is_none_or(has_room)
    }

    fn begin(&mut self, part: &Part, place: usize) -> Found {
        if let Some(before) = place.checked_sub(1).and_then(|before| self.list.get_mut(before)) {
            if part.starts && before.is_cut_at(part.psn) {
                before.span = part.psn.since(before.psn) as u32;
                (before.reached, before.is_span_final, before.is_closed) = (before.span, true, false);
                self.strays.append(&mut before.keep_own(part));
            }
            before.close(part.psn);
        }
        let mut message = Message {
            id: u64::MAX,
            number: self.begun,
            operation: part.operation,
            first: part.mark,
            last: part.mark,
            psn: part.psn,
            span: part.span,
            is_span_final: false,
            is_closed: false,
            reached: 0,
            loose: if part.starts || part.operation.has_response() { Vec::new() } else { vec![*part] },
            dma_bytes: part.dma_bytes,
            payload_bytes: if part.operation.has_response() { 0 } else { u64::from(part.payload_bytes) },
            imm: part.imm,
            has_start: part.starts,
            has_end: false,
            packets: 1,
            response_packets: 0,
            response_first: None,
            response_next: part.psn,
            resent: [0; Cause::ALL.len()],
            ce_count: u64::from(part.is_ce),
            completion: Completion::Unfinished,
            done: None,
        };
        if let Some(cause) = part.cause {
            message.resent[cause as usize] += 1;
        }
        Self::set_span(&mut message, part);
        Self::reach(&mut message, part);
        if let Some(after) = self.list.get(place) {
            message.close(after.psn);
        }
        self.has_overtaken |= place < self.list.len();
        self.acknowledged = self.acknowledged.min(place);
        self.begun += 1;
        self.list.insert(place, message);
        Found::New(place)
    }

    /// The first packet of a WRITE says how long it is: what comes behind belongs to the next, also where that one's first
    /// packet is late.
    fn set_span(message: &mut Message, part: &Part) {
        if let Some(span) = Self::span_of(part) {
            (message.span, message.is_span_final, message.is_closed) = (span, true, false);
        }
    }

    /// How many numbers the message of a first packet takes, if that tells.
    fn span_of(part: &Part) -> Option<u32> {
        let mtu = part.path_mtu.filter(|_| part.operation == Operation::Write && part.starts)?;
        Some(part.dma_bytes?.div_ceil(mtu).max(1))
    }

    /// The message reaches as far as this packet, or ends with it.
    fn reach(message: &mut Message, part: &Part) {
        let reached = part.psn.plus(part.span).since(message.psn).max(0) as u32;
        message.reached = message.reached.max(reached);
        if part.ends {
            if !message.has_end || message.operation == Operation::Read && reached > message.span {
                (message.span, message.is_span_final, message.has_end) = (reached, true, true);
                message.is_closed = false;
            }
            if !part.is_reliable && message.done.is_none() {
                (message.completion, message.done) = (Completion::Sent, Some(part.mark));
            }
        } else if !message.is_span_final {
            message.span = message.span.max(reached);
        }
    }

    /// The place of the message that a request belongs to.
    fn find(&self, part: &Part) -> Option<usize> {
        let after = self.list.partition_point(|message| !part.psn.is_before(message.psn));
        if let Some(at) = after.checked_sub(1)
            && let Some(message) = self.list.get(at)
            && message.covers(part.psn)
            && message.operation == part.operation
            && (!part.starts || message.psn == part.psn || part.operation == Operation::Read && part.is_in_range_of(message))
            // A further packet of a message whose end is not known yet, unless one that starts came in between.
            && (part.starts || message.is_span_final || after == self.list.len() || !message.has_end)
        {
            return Some(at);
        }
        // Its first packets come late.
        let next = self.list.get(after)?;
        let is_headless = !next.has_start && next.operation == part.operation && !part.ends;
        let distance = next.psn.since(part.psn);
        let reaches_it = Self::span_of(part).is_none_or(|span| i64::from(span) > i64::from(distance));
        (is_headless && distance < 1 << 16 && reaches_it).then_some(after)
    }

    /// The message that a number of the responder speaks of.
    pub fn of_response(&self, psn: Psn) -> Option<usize> {
        let at = self.list.partition_point(|message| !psn.is_before(message.psn)).checked_sub(1)?;
        self.list.get(at).filter(|message| message.covers(psn)).map(|_| at)
    }

    /// The first number from `from` on, up to `until`, that is answered with data.
    pub fn due_answer(&self, from: Psn, until: Psn) -> Option<Psn> {
        let at = self.list.partition_point(|message| !from.is_before(message.psn)).saturating_sub(1);
        let mut answered =
            self.list.range(at..).take_while(|message| !until.is_before(message.psn)).filter_map(|message| {
                let due = if message.covers(from) { from } else { message.psn };
                (message.operation.has_response() && !due.is_before(from)).then_some(due)
            });
        answered.next().filter(|due| !until.is_before(*due))
    }

    pub fn get(&self, place: usize) -> Option<&Message> {
        self.list.get(place)
    }

    pub fn get_mut(&mut self, place: usize) -> Option<&mut Message> {
        self.list.get_mut(place)
    }

    /// The message of a running number, unless it was given out.
    pub fn numbered_mut(&mut self, number: u64) -> Option<&mut Message> {
        let is_it = |message: &Message| message.number == number;
        let from_first = number.checked_sub(self.list.front()?.number).and_then(|place| usize::try_from(place).ok());
        let place = from_first.filter(|place| self.list.get(*place).is_some_and(is_it));
        let place = place.or_else(|| self.list.iter().rposition(is_it).filter(|_| self.has_overtaken))?;
        self.list.get_mut(place)
    }

    /// A packet of a response: READ data, or the answer to an atomic operation. Returns how far ahead of the due number it is.
    pub fn on_response(
        &mut self,
        place: usize,
        psn: Psn,
        payload_bytes: u32,
        is_last: bool,
        mark: Mark,
    ) -> Option<i32> {
        let message = self.get_mut(place)?;
        message.response_packets += 1;
        message.last = mark;
        message.response_first = message.response_first.or(Some(mark));
        let ahead = psn.since(message.response_next);
        if ahead == 0 {
            message.response_next = psn.plus(1);
            message.payload_bytes += u64::from(payload_bytes);
            if is_last && psn == message.last_psn() && message.done.is_none() {
                (message.completion, message.done) = (Completion::Response, Some(mark));
            }
        }
        Some(ahead)
    }

    /// Numbers of a READ became known: its response has packets of `mtu` bytes.
    pub fn set_read_span(&mut self, number: u64, mtu: u32) {
        if let Some(message) = self.numbered_mut(number)
            && let (Operation::Read, Some(bytes)) = (message.operation, message.dma_bytes)
        {
            message.span = bytes.div_ceil(mtu.max(1)).max(1);
            (message.is_span_final, message.is_closed) = (true, false);
        }
    }

    /// Everything before `psn` is acknowledged.
    pub fn on_acknowledged(&mut self, psn: Psn, mark: Mark) {
        while let Some(message) = self.get_mut(self.acknowledged) {
            if !message.is_span_final || !message.last_psn().is_before(psn) {
                return;
            }
            // What is answered with data is complete when the data is there.
            if message.done.is_none() && !message.operation.has_response() {
                (message.completion, message.done, message.last) = (Completion::Acknowledged, Some(mark), mark);
            }
            self.acknowledged += 1;
        }
    }

    /// The responder refused the request at `psn` for good.
    pub fn on_failed(&mut self, psn: Psn, mark: Mark) {
        if let Some(place) = self.of_response(psn)
            && let Some(message) = self.get_mut(place)
            && message.done.is_none()
        {
            (message.completion, message.done) = (Completion::Failed, Some(mark));
            message.last = mark;
        }
    }

    /// Takes out messages that nothing more is expected of.
    pub fn release(&mut self, take: &mut dyn FnMut(Message)) {
        loop {
            let is_done = self.list.front().is_some_and(Message::is_done);
            if self.list.len() <= if is_done { HISTORY } else { MOST_OPEN } {
                return;
            }
            self.pop(take);
        }
    }

    /// Takes out those with numbers below `before`, finished or not.
    pub fn end(&mut self, before: u64, take: &mut dyn FnMut(Message)) {
        while self.first_id().is_some_and(|id| id < before) {
            self.pop(take);
        }
    }

    /// Takes out finished messages while the queue pair is quiet.
    pub fn rest(&mut self, take: &mut dyn FnMut(Message)) {
        while self.list.front().is_some_and(Message::is_done) {
            self.pop(take);
        }
        self.list.shrink_to(HISTORY);
    }

    fn pop(&mut self, take: &mut dyn FnMut(Message)) {
        if let Some(message) = self.list.pop_front() {
            self.acknowledged = self.acknowledged.saturating_sub(1);
            self.has_overtaken &= !self.list.is_empty();
            take(message);
        }
    }

    /// Number in the capture of the first that is not taken out.
    pub fn first_id(&self) -> Option<u64> {
        let sought = if self.has_overtaken { self.list.len() } else { 1 };
        self.list.iter().take(sought).map(|message| message.id).min()
    }
}

impl Part {
    /// A READ that is issued again asks for what is left of its range.
    fn is_in_range_of(&self, message: &Message) -> bool {
        !self.is_fresh
            || self.cause.is_some()
            || self.psn.since(message.psn) > 0 && (self.psn.since(message.psn) as u32) < message.span
    }
}
