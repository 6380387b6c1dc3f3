//! Round-trip times as the tap sees them: from a segment to the ACK that covers it.

use serde::{Deserialize, Serialize};

/// Before any sample a row waits this long after its ACK, and timers are compared with this. RFC 6298 starts at 1 s;
/// a fifth of it is what Linux never goes below.
const NO_SAMPLE_NS: i64 = 200_000_000;

/// No wait is shorter than this: a receiver that was descheduled for a few milliseconds answers that late.
const FLOOR_NS: i64 = 5_000_000;

/// A receiver may take this long to answer at all: Linux's shortest delayed ACK.
const ANSWER_FLOOR_NS: i64 = 40_000_000;

/// Acknowledged bytes are remembered for this many round trips, and at least as long as Linux's shortest timer: near
/// the receiver the round trip is next to nothing, while a repetition may have been on its way for long.
const LATE_ROUND_TRIPS: i64 = 4;
const LATE_NS: i64 = 200_000_000;

/// No packet is overtaken by those that were sent so much later, and no copy of one comes so long after it. Queues hold traffic
/// back for seconds at most, and what comes behind it as well: order is lost where two ways differ, by milliseconds, or where a
/// device looks at packets one by one. So what comes later than this after higher numbers was sent after them. The time that
/// acknowledged bytes are remembered, 200 ms or four round trips, is no such limit: it is shorter on most paths, as it must be
/// paid for in memory. Where round trips themselves take seconds it is longer, and counts instead.
pub(super) const LATEST_NS: i64 = 5_000_000_000;

/// RFC 6298 smoothing without its one-second floor, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct RttEstimator {
    srtt_ns: i64,
    rttvar_ns: i64,
    min_ns: Option<i64>,
}

impl RttEstimator {
    /// One measurement; a clock that ran backwards is no measurement.
    pub fn sample(&mut self, rtt_ns: i64) {
        if rtt_ns < 0 {
            return;
        }
        match self.min_ns {
            None => (self.srtt_ns, self.rttvar_ns, self.min_ns) = (rtt_ns, rtt_ns / 2, Some(rtt_ns)),
            Some(min_ns) => {
                self.min_ns = Some(min_ns.min(rtt_ns));
                let error_ns = rtt_ns.saturating_sub(self.srtt_ns);
                self.srtt_ns = self.srtt_ns.saturating_add(error_ns / 8);
                self.rttvar_ns = self.rttvar_ns.saturating_add((error_ns.saturating_abs() - self.rttvar_ns) / 4);
            }
        }
    }

    /// The shortest seen.
    pub fn min_ns(&self) -> Option<i64> {
        self.min_ns
    }

    /// How long a receiver's report of a second copy is waited for: one round trip, and one more for the queue or the
    /// busy host that has just grown.
    pub fn answer_ns(&self) -> i64 {
        self.bound_ns().saturating_mul(2).max(ANSWER_FLOOR_NS)
    }

    /// One round trip as long as it may well be: how long an answer is waited for.
    pub fn bound_ns(&self) -> i64 {
        if self.min_ns.is_none() {
            return NO_SAMPLE_NS;
        }
        self.srtt_ns.saturating_add(self.rttvar_ns.saturating_mul(4)).max(FLOOR_NS)
    }

    /// How long acknowledged bytes are remembered, for copies that come late.
    pub fn memory_ns(&self) -> i64 {
        self.bound_ns().saturating_mul(LATE_ROUND_TRIPS).max(LATE_NS)
    }

    /// Higher numbers that were seen longer ago than this have not overtaken what comes now.
    pub fn late_ns(&self) -> i64 {
        self.memory_ns().max(LATEST_NS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_steady_round_trip_is_learnt_and_a_backward_clock_ignored() {
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.bound_ns(), NO_SAMPLE_NS);
        for _ in 0..200 {
            rtt.sample(20_000_000);
        }
        rtt.sample(-5);
        assert_eq!(rtt.min_ns(), Some(20_000_000));
        assert!((20_000_000..21_000_000).contains(&rtt.bound_ns()), "{}", rtt.bound_ns());
    }
}
