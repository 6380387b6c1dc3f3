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
    /// Frames of the capture after it.
    pub rows: u64,
    /// Nanoseconds of capture time after it.
    pub time_ns: i64,
}

/// What is answered waits this long for further answers.
const AGAIN_NS: i64 = 1_000_000_000;

impl HoldLimits {
    /// Whether nothing counts any more for what was asked, and perhaps answered; once true, that stays so.
    pub fn is_over(&self, asked: Moment, answered: Option<Moment>, now: Moment) -> bool {
        match answered {
            None => now.is_beyond(asked, self),
            // Counted in frames, it waits no longer for further answers than it did for the first.
            Some(answered) => {
                now.is_beyond(Moment { frame: asked.frame, ..answered }, &Self { time_ns: AGAIN_NS, ..*self })
            }
        }
    }
}

impl Default for HoldLimits {
    /// Ten seconds or a million frames: longer than a timer backed off five times.
    fn default() -> Self {
        Self { rows: 1_000_000, time_ns: 10_000_000_000 }
    }
}

/// Calls `check` for answers at both sides of the limits: whether what waits is given out before each of them, when the two
/// come to what was asked at time 0 in frame 1, and whether each counts.
#[cfg(test)]
pub(crate) fn each_late_answer(check: impl Fn(HoldLimits, bool, [Moment; 2], (bool, bool))) {
    const SECOND: i64 = 1_000_000_000;
    let limits = HoldLimits { rows: 100, time_ns: 10 * SECOND };
    // Frames and seconds to the first answer, and from there to the second.
    for (first, second, is_counted) in [
        ((99, 9), (1, 1), (true, true)),
        ((100, 10), (0, 1), (true, true)),
        ((100, 10), (1, 1), (true, false)),
        ((99, 9), (1, 2), (true, false)),
        ((101, 1), (1, 1), (false, false)),
        ((9, 11), (1, 1), (false, false)),
    ] {
        let after = |at: Moment, (frames, seconds): (u64, i64)| Moment {
            ns: at.ns + seconds * SECOND,
            frame: at.frame + frames,
        };
        let one = after(Moment { ns: 0, frame: 1 }, first);
        for is_often in [false, true] {
            check(limits, is_often, [one, after(one, second)], is_counted);
        }
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
