//! Round trips that one side's data saw: from the tap to the other end and back.

use serde::{Deserialize, Serialize};

use std::collections::VecDeque;

use super::quantiles::Quantiles;
use super::seq::before;

/// Sendings kept in mind. With more in flight only some of them are measured.
const KEPT: usize = 512;

#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct Sending {
    start: u32,
    end: u32,
    time_ns: i64,
    tsval: Option<u32>,
    /// When its bytes were sent once more, and with which TSval; `Twice` where that happened again.
    again: Again,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Again {
    No,
    Once { tsval: Option<u32>, time_ns: i64 },
    Twice,
}

/// What an ACK says.
#[derive(Clone, Copy, Debug)]
pub struct AckOf {
    pub ack: u32,
    pub time_ns: i64,
    pub tsecr: Option<u32>,
    /// It has SACK blocks, or acknowledges nothing new.
    pub reports_gap: bool,
    pub is_advance: bool,
}

/// One sample per ACK that acknowledges new bytes: the time since the last of them was sent. Where bytes were resent, or
/// a gap was reported before, only an ACK whose TSecr names one sending counts (RFC 7323 section 4); without timestamps
/// there is no sample then (Karn's rule, RFC 6298 section 3).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RttMeter {
    sent: VecDeque<Sending>,
    has_gap: bool,
    pub quantiles: Quantiles,
}

impl RttMeter {
    /// Asks for the memory of the oldest and newest sending, and of the last sample.
    pub fn touch(&self) -> u32 {
        let of = |sending: Option<&Sending>| sending.map_or(0, |sending| sending.start);
        of(self.sent.front()) ^ of(self.sent.back()) ^ self.quantiles.touch()
    }

    /// New bytes.
    pub fn on_send(&mut self, start: u32, end: u32, time_ns: i64, tsval: Option<u32>) {
        if self.sent.len() < KEPT {
            self.sent.push_back(Sending { start, end, time_ns, tsval, again: Again::No });
        }
    }

    /// Old bytes.
    pub fn on_resend(&mut self, start: u32, end: u32, time_ns: i64, tsval: Option<u32>) {
        for sending in self.sent.iter_mut().filter(|s| before(s.start, end) && before(start, s.end)) {
            sending.again = match sending.again {
                Again::No => Again::Once { tsval, time_ns },
                _ => Again::Twice,
            };
        }
    }

    pub fn on_ack(&mut self, ack: &AckOf) {
        if !ack.is_advance {
            self.has_gap |= ack.reports_gap;
            return;
        }
        let (mut newest, mut named, mut was_resent, mut is_ambiguous) = (None, None, false, false);
        while let Some(sending) = self.sent.front().copied() {
            if !before(sending.start, ack.ack) {
                break;
            }
            if let Again::Once { tsval, time_ns } = sending.again
                && ack.tsecr.is_some()
                && tsval != sending.tsval
            {
                let time = if tsval == ack.tsecr { Some(time_ns) } else { None };
                named = time.or((sending.tsval == ack.tsecr).then_some(sending.time_ns)).or(named);
            }
            was_resent |= sending.again != Again::No;
            is_ambiguous |= sending.again == Again::Twice;
            if before(ack.ack, sending.end) {
                // Acknowledged in part: a frame that the sender's network card cut.
                newest = Some(sending);
                break;
            }
            newest = (sending.end == ack.ack).then_some(sending);
            self.sent.pop_front();
        }
        let sample_from_ns = if is_ambiguous {
            None
        } else if was_resent {
            named
        } else if self.has_gap {
            newest.filter(|newest| newest.tsval.is_some() && newest.tsval == ack.tsecr).map(|newest| newest.time_ns)
        } else {
            newest.map(|newest| newest.time_ns)
        };
        if let Some(from_ns) = sample_from_ns {
            self.quantiles.add(ack.time_ns.saturating_sub(from_ns));
        }
        self.has_gap = ack.reports_gap;
    }

    /// Gives memory back while nothing is in flight.
    pub fn shrink(&mut self) {
        self.sent.shrink_to(8);
    }
}
