//! How far a capture was read when something was seen: what waits for later evidence waits by it.
//!
//! It depends on nothing but the frames before, so that no result depends on how many of them are worked on at a time, or
//! on where the files of a ring end.

use serde::{Deserialize, Serialize};

/// A place in a capture. Never before an earlier one, although the frames' own times may run backwards: from one interface
/// or file to another, or where a clock was set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moment {
    /// The latest time of all frames so far, in nanoseconds since the first frame that has a time.
    pub ns: i64,
    /// Frames before this one, over all files.
    pub frame: u64,
}

impl Moment {
    /// Whether what was seen `since` has waited longer than anything may.
    pub fn is_beyond(self, since: Self, limits: &HoldLimits) -> bool {
        self.frame.saturating_sub(since.frame) > limits.rows || self.ns_since(since) > limits.time_ns
    }

    pub fn ns_since(self, since: Self) -> i64 {
        self.ns.saturating_sub(since.ns)
    }
}

/// How long something may wait for evidence before it comes out with what is known. Evidence later than that never counts.
#[derive(Clone, Copy, Debug)]
pub struct HoldLimits {
    /// Frames of the capture after it; of RoCE, rows.
    pub rows: u64,
    /// Nanoseconds of capture time after it.
    pub time_ns: i64,
}

impl Default for HoldLimits {
    /// Ten seconds or a million frames: longer than a timer backed off five times.
    fn default() -> Self {
        Self { rows: 1_000_000, time_ns: 10_000_000_000 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_exactly_as_long_as_it_may_still_waits() {
        let limits = HoldLimits { rows: 5, time_ns: 10 };
        let since = Moment { ns: 100, frame: 7 };
        let after = |ns, frame| Moment { ns, frame }.is_beyond(since, &limits);
        assert!(!after(110, 12) && after(111, 8) && after(100, 13));
        assert!(!after(i64::MIN, 0) && after(i64::MAX, 8));
    }
}
