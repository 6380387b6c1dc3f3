//! Bytes over time, without knowing beforehand how long the capture is.

/// Bins kept; as time goes on, neighbours are joined and bins get wider.
const BINS: usize = 120;
/// Width of a bin at the start, in nanoseconds.
const FIRST_BIN_NS: i64 = 1_000;

/// Bytes per stretch of time.
#[derive(Clone, Debug)]
pub struct Timeline {
    start_ns: Option<i64>,
    bin_ns: i64,
    bins: Vec<u64>,
}

impl Default for Timeline {
    fn default() -> Self {
        Self { start_ns: None, bin_ns: FIRST_BIN_NS, bins: Vec::new() }
    }
}

impl Timeline {
    /// Start of the first bin, in nanoseconds since 1970-01-01 UTC; `None` without frames.
    pub fn start_ns(&self) -> Option<i64> {
        self.start_ns
    }

    /// Width of a bin, in nanoseconds.
    pub fn bin_ns(&self) -> i64 {
        self.bin_ns
    }

    /// Bytes of each bin, up to the last that has any; at most 120.
    pub fn bins(&self) -> &[u64] {
        &self.bins
    }

    /// Times before the first one seen (clocks step back) count towards the first bin.
    pub(super) fn add(&mut self, time_ns: i64, bytes: u64) {
        let start_ns = *self.start_ns.get_or_insert(time_ns);
        let since_ns = time_ns.saturating_sub(start_ns).max(0);
        while since_ns / self.bin_ns >= BINS as i64 {
            self.join_neighbours();
        }
        let at = (since_ns / self.bin_ns) as usize;
        if self.bins.len() <= at {
            self.bins.resize(at + 1, 0);
        }
        self.bins[at] = self.bins[at].saturating_add(bytes);
    }

    fn join_neighbours(&mut self) {
        self.bins =
            self.bins.chunks(2).map(|pair| pair.iter().fold(0, |sum: u64, bytes| sum.saturating_add(*bytes))).collect();
        self.bin_ns = self.bin_ns.saturating_mul(2);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_widen_with_the_capture_and_lose_no_byte() {
        let mut timeline = Timeline::default();
        for step in 0..1_000 {
            timeline.add(5 + step * 1_000_000, 10);
        }
        assert!(timeline.bins().len() <= BINS && timeline.bins().len() > BINS / 2, "{}", timeline.bins().len());
        assert_eq!(timeline.bins().iter().sum::<u64>(), 10_000);
        assert_eq!(timeline.start_ns(), Some(5));
    }

    #[test]
    fn the_widest_span_of_time_ends() {
        let mut timeline = Timeline::default();
        timeline.add(i64::MIN, 1);
        timeline.add(i64::MAX, 2);
        timeline.add(0, 3);
        assert_eq!(timeline.bins().iter().sum::<u64>(), 6);
    }
}
