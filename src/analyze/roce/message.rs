//! Messages of one queue pair's requester, put together from their packets.

use std::collections::VecDeque;

use super::psn::Psn;
use super::types::{Cause, Operation};
use crate::analyze::Mark;

/// Finished messages that a queue pair remembers, since their packets may come once more.
const HISTORY: usize = 32;
/// Unfinished messages of one queue pair.
const MOST_OPEN: usize = 4_096;

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
    pub operation: Operation,
    pub first: Mark,
    /// Its last packet so far, of either side.
    pub last: Mark,
    /// Number of its first packet, and how many numbers it takes as far as is known.
    pub psn: Psn,
    pub span: u32,
    is_span_final: bool,
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

    fn covers(&self, psn: Psn) -> bool {
        let offset = psn.since(self.psn);
        offset >= 0 && (!self.is_span_final || (offset as u32) < self.span)
    }
}

/// A request packet, as far as messages need to know it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
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

/// Where the message of a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Begun by this packet; its running number among the queue pair's messages.
    New(u64),
    Known(u64),
    None,
}

#[derive(Debug, Default)]
pub(super) struct Messages {
    list: VecDeque<Message>,
    /// Running number of the first in the list.
    base: u64,
    /// Running number of the first that is not acknowledged.
    acknowledged: u64,
}

impl Messages {
    pub fn on_part(&mut self, part: &Part) -> Found {
        if let Some(at) = self.find(part) {
            let message = &mut self.list[at];
            message.packets += 1;
            message.last = part.mark;
            message.ce_count += u64::from(part.is_ce);
            if let Some(cause) = part.cause {
                message.resent[cause as usize] += 1;
            }
            if part.starts && !message.has_start {
                // It came late: the message begins before what was seen of it.
                let before = message.psn.since(part.psn).max(0) as u32;
                (message.psn, message.span, message.has_start) = (part.psn, message.span + before, true);
                Self::set_span(message, part);
            }
            message.dma_bytes = message.dma_bytes.or(part.dma_bytes);
            message.imm = message.imm.or(part.imm);
            if part.is_fresh && !message.operation.has_response() {
                message.payload_bytes += u64::from(part.payload_bytes);
            }
            Self::reach(message, part);
            return Found::Known(self.base + at as u64);
        }
        if part.cause.is_some() && !part.starts {
            return Found::None;
        }
        self.begin(part)
    }

    fn begin(&mut self, part: &Part) -> Found {
        // The one before it can have no more packets.
        if let Some(before) = self.list.back_mut()
            && !before.is_span_final
            && before.psn.is_before(part.psn)
        {
            before.span = part.psn.since(before.psn) as u32;
            before.is_span_final = true;
        }
        let mut message = Message {
            id: u64::MAX,
            operation: part.operation,
            first: part.mark,
            last: part.mark,
            psn: part.psn,
            span: part.span,
            is_span_final: false,
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
        let is_last = self.list.back().is_none_or(|last| last.psn.is_before(part.psn));
        if is_last {
            self.list.push_back(message);
            return Found::New(self.base + self.list.len() as u64 - 1);
        }
        Found::None
    }

    /// The first packet of a WRITE says how long it is: what comes behind belongs to the next, also where that one's first
    /// packet is late.
    fn set_span(message: &mut Message, part: &Part) {
        if let (Some(bytes), Some(mtu), Operation::Write, true) =
            (part.dma_bytes, part.path_mtu, part.operation, part.starts)
        {
            (message.span, message.is_span_final) = (bytes.div_ceil(mtu).max(1), true);
        }
    }

    /// The message reaches as far as this packet, or ends with it.
    fn reach(message: &mut Message, part: &Part) {
        let reached = part.psn.plus(part.span).since(message.psn).max(0) as u32;
        if part.ends {
            if !message.has_end || message.operation == Operation::Read && reached > message.span {
                (message.span, message.is_span_final, message.has_end) = (reached, true, true);
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
        (is_headless && next.psn.since(part.psn) < 1 << 16).then_some(after)
    }

    /// The message that a number of the responder speaks of.
    pub fn of_response(&self, psn: Psn) -> Option<u64> {
        let at = self.list.partition_point(|message| !psn.is_before(message.psn)).checked_sub(1)?;
        self.list.get(at).filter(|message| message.covers(psn)).map(|_| self.base + at as u64)
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

    pub fn get(&self, number: u64) -> Option<&Message> {
        self.list.get(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }

    pub fn get_mut(&mut self, number: u64) -> Option<&mut Message> {
        self.list.get_mut(usize::try_from(number.checked_sub(self.base)?).ok()?)
    }

    /// A packet of a response: READ data, or the answer to an atomic operation. Returns how far ahead of the due number it is.
    pub fn on_response(&mut self, number: u64, psn: Psn, payload_bytes: u32, is_last: bool, mark: Mark) -> Option<i32> {
        let message = self.get_mut(number)?;
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
        if let Some(message) = self.get_mut(number)
            && let (Operation::Read, Some(bytes)) = (message.operation, message.dma_bytes)
        {
            message.span = bytes.div_ceil(mtu.max(1)).max(1);
            message.is_span_final = true;
        }
    }

    /// Everything before `psn` is acknowledged.
    pub fn on_acknowledged(&mut self, psn: Psn, mark: Mark) {
        self.acknowledged = self.acknowledged.max(self.base);
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
        if let Some(number) = self.of_response(psn)
            && let Some(message) = self.get_mut(number)
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
            self.base += 1;
            take(message);
        }
    }

    /// Number in the capture of the first that is not taken out.
    pub fn first_id(&self) -> Option<u64> {
        self.list.front().map(|message| message.id)
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
