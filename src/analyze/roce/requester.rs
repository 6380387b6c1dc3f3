//! The requester of a queue pair: what it sent for the first time, what it sent again, and why.

use std::collections::VecDeque;

use super::psn::Psn;
use super::types::{Cause, Evidence, Operation, Sent};
use crate::analyze::Mark;

/// Without anything sent for so long a requester's timer may have run out. The shortest timers in use are far longer
/// (timeout 14, 67 ms, is the usual least one); a busy host may pause for some milliseconds.
const TIMEOUT_NS: i64 = 10_000_000;
/// A NAK, or a gap in the answers, that the requester left alone so long is not why it sends again. Nor was it on the way
/// already, when what it repeats was acknowledged so long ago.
const STALE_NAK_NS: i64 = 50_000_000;
/// Numbers that are remembered after they were acknowledged.
const HISTORY: usize = 64;
/// Numbers that are remembered at most.
const MOST_SEEN: usize = 1 << 14;

#[derive(Clone, Copy, Debug)]
struct Seen {
    psn: Psn,
    ip_id: u16,
    ttl: u8,
    if_index: u32,
}

/// A request, as far as its sender's model needs to know it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub psn: Psn,
    /// Numbers it takes: more than one for a READ.
    pub span: u32,
    pub operation: Operation,
    pub ip_id: Option<u16>,
    pub ttl: u8,
    pub if_index: u32,
    pub time_ns: i64,
    /// Answers to later numbers have passed since it asked: by these its sender may see that this one's is missing.
    pub may_miss_answer: bool,
}

/// What is said of a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sending {
    pub sent: Sent,
    pub cause: Option<Cause>,
    pub evidence: Evidence,
    /// With it the requester went back.
    pub is_rewind: bool,
    /// Its number passes the tap for the first time.
    pub is_fresh: bool,
    /// The sequence NAK that had asked for it in vain before the timer did.
    pub unheeded_nak: Option<Mark>,
}

impl Sending {
    /// One that repeats nothing.
    pub fn once(sent: Sent, evidence: Evidence, is_fresh: bool) -> Self {
        Self { sent, cause: None, evidence, is_rewind: false, is_fresh, unheeded_nak: None }
    }
}

#[derive(Debug, Default)]
pub(super) struct Requester {
    /// Numbers that passed the tap, ascending.
    seen: VecDeque<Seen>,
    /// Numbers before it passed and are no longer remembered.
    forgotten: Option<Psn>,
    /// After the furthest number sent; `None` before the first.
    next: Option<Psn>,
    /// After the last number sent.
    cursor: Psn,
    /// Everything before it is acknowledged.
    acknowledged: Psn,
    newest_ip_id: Option<u16>,
    last_ip_id: Option<u16>,
    /// Requests so far, and those with the identification of an earlier one.
    requests: u64,
    copies: u64,
    is_ip_id_useless: bool,
    /// A sequence NAK that the requester has not answered by going back.
    nak: Option<(Psn, Mark)>,
    /// The request that the responder was not ready for.
    refused: Option<Psn>,
    /// Why the numbers before `next` are sent again just now.
    recovery: Option<Cause>,
    /// When something was last heard of the queue pair, either way.
    heard_ns: i64,
}

impl Requester {
    /// The number of the first request, known before it comes.
    pub fn start_at(&mut self, psn: Psn) {
        if self.next.is_none() {
            (self.next, self.cursor, self.acknowledged) = (Some(psn), psn, psn);
        }
    }

    /// After the furthest number sent.
    pub fn next(&self) -> Option<Psn> {
        self.next
    }

    pub fn acknowledged(&self) -> Psn {
        self.acknowledged
    }

    pub fn has_outstanding(&self) -> bool {
        self.next.is_some_and(|next| self.acknowledged.is_before(next))
    }

    /// Whether an acknowledgement of `psn` can be meant for this requester.
    pub fn expects_ack_of(&self, psn: Psn) -> bool {
        self.next.is_some_and(|next| psn.is_before(next) && psn.since(self.acknowledged) >= -1)
    }

    pub fn on_request(&mut self, request: &Request) -> Sending {
        let silence_ns = request.time_ns.saturating_sub(self.heard_ns);
        self.heard_ns = request.time_ns;
        self.requests += 1;
        let Request { psn, span, .. } = *request;
        let next = match self.next {
            Some(next) => next,
            None => {
                self.acknowledged = psn;
                psn
            }
        };
        let end = psn.plus(span);
        let ahead = psn.since(next);
        if ahead >= 0 {
            self.note_ip_id(request);
            self.remember(psn, request);
            (self.next, self.cursor, self.recovery) = (Some(end), end, None);
            let evidence = if ahead == 0 { Evidence::PSN_EXPECTED } else { Evidence::PSN_GAP };
            return Sending::once(Sent::New, evidence, true);
        }
        let mut evidence = Evidence::PSN_BEHIND;
        let known = self.find(psn);
        let ip_id = request.ip_id.filter(|id| *id != 0 && !self.is_ip_id_useless);
        if let Some(seen) = known {
            evidence = evidence.with(Evidence::SEEN_BEFORE);
            if ip_id == Some(seen.ip_id) {
                self.copies += 1;
                let is_elsewhere = request.ttl < seen.ttl || request.if_index != seen.if_index;
                // A mirror port doubles nearly all of them, the network a few. Of the first few nobody can tell.
                let are_many = self.copies.saturating_mul(3) > self.requests;
                let sent = match (is_elsewhere, are_many) {
                    (false, false) => Sent::NetworkDuplicate,
                    (false, true) if self.copies < 4 => Sent::Unknown,
                    _ => Sent::CaptureDuplicate,
                };
                let evidence = evidence.with(Evidence::SAME_IP_ID);
                return Sending::once(sent, evidence, false);
            }
        }
        // A repetition may overtake what it repeats: the older identification is the original's.
        let is_older = |seen: Seen| ip_id.is_some_and(|id| (id.wrapping_sub(seen.ip_id) as i16) < 0);
        if known.is_some_and(is_older) {
            let evidence = evidence.with(Evidence::OLDER_IP_ID);
            return Sending::once(Sent::New, evidence, false);
        }
        let is_in_hole = known.is_none() && self.is_remembered(psn);
        let by_id = ip_id.zip(self.newest_ip_id).map(|(id, newest)| id.wrapping_sub(newest) as i16);
        if is_in_hole && by_id.is_some_and(|by| by < 0) {
            self.remember(psn, request);
            let evidence = evidence.with(Evidence::OLDER_IP_ID);
            return Sending::once(Sent::New, evidence, true);
        }
        if by_id.is_some_and(|by| by > 0) {
            evidence = evidence.with(Evidence::NEWER_IP_ID);
        }
        let is_continued = self.recovery.is_some() && !psn.is_before(self.cursor);
        let (cause, unheeded_nak) = match self.recovery.filter(|_| is_continued) {
            Some(cause) => (cause, None),
            None => self.cause_of(request, silence_ns, &mut evidence),
        };
        // A number that never passed the tap, no identification and no reason to send it again: nobody can tell.
        let is_told = known.is_some() || !is_in_hole || by_id.is_some() || cause != Cause::Unknown;
        if !is_told && request.operation != Operation::Read {
            self.remember(psn, request);
            return Sending::once(Sent::Unknown, evidence, true);
        }
        self.note_ip_id(request);
        self.remember(psn, request);
        self.recovery = Some(cause);
        self.cursor = end;
        let is_rewind = !is_continued;
        // A READ that is issued again from within its range may reach past what was sent so far.
        if next.is_before(end) {
            self.next = Some(end);
        }
        Sending {
            sent: Sent::Retransmit,
            cause: Some(cause),
            evidence,
            is_rewind,
            is_fresh: known.is_none() && is_in_hole,
            unheeded_nak,
        }
    }

    /// Why it goes back, and the NAK that had asked for just that before and was not heeded.
    fn cause_of(&mut self, request: &Request, silence_ns: i64, evidence: &mut Evidence) -> (Cause, Option<Mark>) {
        let psn = request.psn;
        let mut unheeded = None;
        if let Some((nak, mark)) = self.nak
            && !nak.is_before(psn)
        {
            self.nak = None;
            *evidence = evidence.with(Evidence::NAK);
            if silence_ns < STALE_NAK_NS {
                return (Cause::Nak, None);
            }
            unheeded = Some(mark).filter(|_| nak == psn);
        }
        if self.refused == Some(psn) {
            *evidence = evidence.with(Evidence::RNR_NAK);
            return (Cause::Rnr, None);
        }
        let is_asked_again = request.operation.has_response();
        if silence_ns >= TIMEOUT_NS {
            *evidence = evidence.with(Evidence::SILENCE);
            // A gap that its sender saw, or its timer: as with a NAK, only a long silence speaks against the gap.
            let may_be_else = if is_asked_again { request.may_miss_answer } else { psn.is_before(self.acknowledged) };
            let is_open = may_be_else && silence_ns < STALE_NAK_NS;
            return if is_open { (Cause::Unknown, None) } else { (Cause::Timeout, unheeded) };
        }
        (if is_asked_again { Cause::Reissue } else { Cause::Unknown }, None)
    }

    /// Everything before `psn` is acknowledged. Returns whether that is news.
    pub fn on_acknowledged(&mut self, psn: Psn, time_ns: i64) -> bool {
        self.heard_ns = time_ns;
        let is_news = self.acknowledged.is_before(psn);
        if is_news {
            self.acknowledged = psn;
            // What was acknowledged was sent, even if the capture lost it.
            if self.next.is_some_and(|next| next.is_before(psn)) {
                self.next = Some(psn);
                self.cursor = psn;
            }
            if self.refused.is_some_and(|refused| refused.is_before(psn)) {
                self.refused = None;
            }
            if self.nak.is_some_and(|(nak, _)| nak.is_before(psn)) {
                self.nak = None;
            }
            while self.seen.len() > HISTORY && self.seen.front().is_some_and(|seen| seen.psn.is_before(psn)) {
                self.forget_oldest();
            }
        }
        is_news
    }

    pub fn on_nak(&mut self, psn: Psn, mark: Mark) {
        self.nak = Some((psn, mark));
    }

    pub fn on_refused(&mut self, psn: Psn) {
        self.refused = Some(psn);
    }

    /// The span of a READ turned out to be another one: nothing was lost before the request at `psn`.
    pub fn correct_next(&mut self, psn: Psn) {
        (self.next, self.cursor) = (Some(psn), psn);
    }

    /// Gives memory back while nothing is outstanding.
    pub fn rest(&mut self) {
        if !self.has_outstanding() {
            while self.seen.len() > HISTORY {
                self.forget_oldest();
            }
            self.seen.shrink_to(HISTORY);
        }
    }

    fn forget_oldest(&mut self) {
        if let Some(oldest) = self.seen.pop_front() {
            self.forgotten = Some(oldest.psn.plus(1));
        }
    }

    /// Whether it would be known if the number had passed the tap.
    fn is_remembered(&self, psn: Psn) -> bool {
        let from = self.forgotten.or_else(|| self.seen.front().map(|oldest| oldest.psn));
        from.is_some_and(|from| !psn.is_before(from))
    }

    fn find(&self, psn: Psn) -> Option<Seen> {
        let at = self.place(psn);
        self.seen.get(at).copied().filter(|seen| seen.psn == psn)
    }

    /// Where `psn` is, or belongs, among the numbers seen.
    fn place(&self, psn: Psn) -> usize {
        self.seen.partition_point(|seen| seen.psn.is_before(psn))
    }

    fn remember(&mut self, psn: Psn, request: &Request) {
        if self.forgotten.is_some_and(|forgotten| psn.is_before(forgotten)) {
            return;
        }
        let Request { ttl, if_index, .. } = *request;
        let seen = Seen { psn, ip_id: request.ip_id.unwrap_or(0), ttl, if_index };
        if self.seen.back().is_none_or(|last| last.psn.is_before(psn)) {
            self.seen.push_back(seen);
        } else {
            let at = self.place(psn);
            match self.seen.get_mut(at) {
                Some(known) if known.psn == psn => *known = seen,
                _ => self.seen.insert(at, seen),
            }
        }
        if self.seen.len() > MOST_SEEN {
            self.forget_oldest();
        }
    }

    /// Identifications tell the order of sending unless two packets in a row have the same one.
    fn note_ip_id(&mut self, request: &Request) {
        let Some(id) = request.ip_id else { return };
        self.is_ip_id_useless |= self.last_ip_id == Some(id);
        self.last_ip_id = Some(id);
        // The newest, not the last to come: packets overtake each other.
        if self.newest_ip_id.is_none_or(|newest| id.wrapping_sub(newest) as i16 > 0) {
            self.newest_ip_id = Some(id);
        }
    }
}
