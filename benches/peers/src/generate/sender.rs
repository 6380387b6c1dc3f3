//! A bulk TCP sender: slow start, AIMD, SACK scoreboard (RFC 6675) and loss found by the order of sending (RFC 8985).
//!
//! Positions are 64-bit offsets in sequence space with the SYN at 0 and the first byte at 1; only the wire wraps them.

use std::collections::VecDeque;

use super::receiver::Acknowledgement;

/// A segment is lost once this many sent after it have arrived.
const REORDER_SEGMENTS: u64 = 3;
const INITIAL_WINDOW: f64 = 10.0;
pub(crate) const RETRANSMISSION_TIMEOUT_NS: u64 = 200_000_000;

pub(crate) struct Sender {
    mss: u64,
    /// One past the last byte of the stream.
    end: u64,
    una: u64,
    next: u64,
    /// Segments from `una` to `next`; all but the last are `mss` long.
    segments: VecDeque<Segment>,
    in_flight: u64,
    lost: u64,
    sent_count: u64,
    newest_delivered: u64,
    congestion_window: f64,
    slow_start_until: f64,
    window_limit: f64,
    recovery_until: Option<u64>,
}

#[derive(Clone, Copy)]
struct Segment {
    len: u64,
    sent_order: u64,
    is_resent: bool,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    InFlight,
    Sacked,
    Lost,
}

/// A segment to put on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sending {
    pub offset: u64,
    pub len: u64,
    pub is_new: bool,
}

impl Sender {
    /// `stream_bytes` to send; `window_limit` is the most segments in flight.
    pub fn new(mss: u64, stream_bytes: u64, window_limit: u64) -> Self {
        Self {
            mss,
            end: 1 + stream_bytes,
            una: 1,
            next: 1,
            segments: VecDeque::new(),
            in_flight: 0,
            lost: 0,
            sent_count: 0,
            newest_delivered: 0,
            congestion_window: INITIAL_WINDOW,
            slow_start_until: f64::MAX,
            window_limit: window_limit as f64,
            recovery_until: None,
        }
    }

    pub fn is_done(&self) -> bool {
        self.una == self.end
    }

    pub fn end(&self) -> u64 {
        self.end
    }

    /// The next segment the window allows: holes first, then new data.
    pub fn next_sending(&mut self) -> Option<Sending> {
        if self.in_flight as f64 >= self.congestion_window {
            return None;
        }
        let sent_order = self.sent_count + 1;
        if self.lost > 0 {
            let index = self.segments.iter().position(|segment| segment.state == State::Lost)?;
            let segment = &mut self.segments[index];
            (segment.state, segment.sent_order, segment.is_resent) = (State::InFlight, sent_order, true);
            self.lost -= 1;
            self.in_flight += 1;
            self.sent_count = sent_order;
            return Some(Sending { offset: self.una + index as u64 * self.mss, len: segment.len, is_new: false });
        }
        let len = self.mss.min(self.end - self.next);
        if len == 0 {
            return None;
        }
        let offset = self.next;
        self.segments.push_back(Segment { len, sent_order, is_resent: false, state: State::InFlight });
        self.next += len;
        self.in_flight += 1;
        self.sent_count = sent_order;
        Some(Sending { offset, len, is_new: true })
    }

    pub fn on_acknowledgement(&mut self, acknowledgement: &Acknowledgement) {
        let mut acked = 0_u64;
        while self.una < acknowledgement.ack {
            let Some(segment) = self.segments.pop_front() else {
                break;
            };
            self.leave(segment);
            self.una += segment.len;
            acked += 1;
        }
        // Blocks at or below the ACK are D-SACKs (RFC 2883): they say nothing about what is missing.
        let una = self.una;
        for &(left, right) in acknowledgement.sack().iter().filter(|block| block.0 >= una) {
            let first = ((left - self.una) / self.mss) as usize;
            let last = ((right - self.una).div_ceil(self.mss) as usize).min(self.segments.len());
            for index in first..last {
                let segment = self.segments[index];
                if segment.state != State::Sacked {
                    self.leave(segment);
                    self.segments[index].state = State::Sacked;
                }
            }
        }
        let found_loss = self.mark_lost();
        if found_loss && self.recovery_until.is_none() {
            self.recovery_until = Some(self.next);
            self.slow_start_until = (self.congestion_window * 0.7).max(4.0);
            self.congestion_window = self.slow_start_until;
        }
        if self.recovery_until.is_some_and(|until| self.una >= until) {
            self.recovery_until = None;
        }
        if self.recovery_until.is_none() && acked > 0 {
            let growth = if self.congestion_window < self.slow_start_until {
                acked as f64
            } else {
                // A few segments per round trip rather than one: short captures should show the sawtooth.
                4.0 * acked as f64 / self.congestion_window
            };
            self.congestion_window = (self.congestion_window + growth).min(self.window_limit);
        }
    }

    /// Nothing was acknowledged for a whole timeout: all that is out counts as lost.
    pub fn on_timeout(&mut self) {
        for segment in &mut self.segments {
            if segment.state == State::InFlight {
                segment.state = State::Lost;
                self.lost += 1;
            }
        }
        self.in_flight = 0;
        self.slow_start_until = (self.congestion_window / 2.0).max(2.0);
        self.congestion_window = 2.0;
        self.recovery_until = None;
    }

    /// The segment was delivered: takes it out of the counts.
    fn leave(&mut self, segment: Segment) {
        match segment.state {
            State::InFlight => self.in_flight -= 1,
            State::Lost => self.lost -= 1,
            State::Sacked => {}
        }
        // Of a segment sent twice it is not known which one arrived: it says nothing about those sent between.
        if !segment.is_resent {
            self.newest_delivered = self.newest_delivered.max(segment.sent_order);
        }
    }

    fn mark_lost(&mut self) -> bool {
        let lost_before = self.lost;
        let limit = self.newest_delivered.saturating_sub(REORDER_SEGMENTS);
        for segment in &mut self.segments {
            if segment.state == State::InFlight && segment.sent_order <= limit {
                segment.state = State::Lost;
                self.in_flight -= 1;
                self.lost += 1;
            }
        }
        self.lost > lost_before
    }
}

#[cfg(test)]
mod tests {
    use super::super::receiver::{Receiver, Reply};
    use super::*;

    /// Sends a window over a path that drops what `is_dropped` says, and returns the offsets sent twice.
    fn resent_when(mut is_dropped: impl FnMut(u64) -> bool) -> Vec<u64> {
        let (mut sender, mut receiver) = (Sender::new(1000, 400_000, 40), Receiver::new());
        let (mut resent, mut sent_count) = (Vec::new(), 0);
        while !sender.is_done() {
            let mut window = Vec::new();
            while let Some(sending) = sender.next_sending() {
                window.push(sending);
            }
            if window.is_empty() {
                match receiver.on_delay_over() {
                    Some(acknowledgement) => sender.on_acknowledgement(&acknowledgement),
                    None => sender.on_timeout(),
                }
                continue;
            }
            for sending in window {
                sent_count += 1;
                if !sending.is_new {
                    resent.push(sending.offset);
                }
                if is_dropped(sent_count) {
                    continue;
                }
                if let Reply::Now(acknowledgement) = receiver.on_segment(sending.offset, sending.len) {
                    sender.on_acknowledgement(&acknowledgement);
                }
            }
        }
        resent
    }

    #[test]
    fn without_loss_nothing_is_sent_twice() {
        assert_eq!(resent_when(|_| false), []);
    }

    #[test]
    fn what_is_lost_is_sent_again_and_nothing_else() {
        // The 5th to 7th packets sent carry the 5th to 7th thousand bytes.
        assert_eq!(resent_when(|sent| (5..=7).contains(&sent)), [4001, 5001, 6001]);
    }

    #[test]
    fn a_lost_retransmission_is_sent_a_third_time() {
        let mut first_try = Vec::new();
        let resent = resent_when(|sent| {
            first_try.push(sent);
            sent == 5 || sent == 11
        });
        assert_eq!(resent, [4001, 4001], "sent {} packets", first_try.len());
    }

    #[test]
    fn a_tail_loss_waits_for_the_timeout() {
        assert_eq!(resent_when(|sent| sent == 400), [399_001]);
    }

    #[test]
    fn a_late_segment_sent_again_in_vain_does_not_condemn_those_after_it() {
        let (mut sender, mut receiver) = (Sender::new(1000, 400_000, 40), Receiver::new());
        let sent: Vec<Sending> = std::iter::from_fn(|| sender.next_sending()).collect();
        assert_eq!(sent.len(), 10);
        let mut arrive = |sender: &mut Sender, number: usize| {
            if let Reply::Now(acknowledgement) = receiver.on_segment(sent[number].offset, sent[number].len) {
                sender.on_acknowledgement(&acknowledgement);
            }
        };
        for number in [0, 2, 3, 4, 5, 6] {
            arrive(&mut sender, number);
        }
        assert_eq!(sender.next_sending().map(|sending| sending.offset), Some(1001));
        arrive(&mut sender, 1);
        assert!(std::iter::from_fn(|| sender.next_sending()).all(|sending| sending.is_new));
    }
}
