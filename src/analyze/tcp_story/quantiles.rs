//! Quantiles of durations in constant memory.

use serde::{Deserialize, Serialize};

/// Samples that are kept as they are; with more, they are counted in steps.
const EXACT: usize = 64;
/// Room for samples at first.
const FEW: usize = 12;
/// Steps per doubling: a quantile is off by at most half a step, 1/64 of its value (1.6 %).
const STEPS_LOG2: u32 = 5;
/// Doublings covered: up to 2^42 ns, more than an hour.
const DOUBLINGS: u32 = 42;
const BUCKETS: usize = ((DOUBLINGS - STEPS_LOG2 + 1) << STEPS_LOG2) as usize;

/// Durations in nanoseconds. Exact up to 64 samples, then within 1.6 % (the least one stays exact).
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Quantiles {
    count: u64,
    min_ns: i64,
    max_ns: i64,
    exact: Vec<i64>,
    buckets: Vec<u32>,
}

impl Quantiles {
    /// Asks for the memory of the last sample; of many, for where another least one would be counted.
    pub fn touch(&self) -> u32 {
        let last = self.exact.last().map_or(0, |ns| *ns as u32);
        last ^ self.buckets.get(bucket_of(self.min_ns)).copied().unwrap_or(0)
    }

    pub fn add(&mut self, ns: i64) {
        let ns = ns.max(0);
        self.min_ns = if self.count == 0 { ns } else { self.min_ns.min(ns) };
        self.max_ns = self.max_ns.max(ns);
        self.count += 1;
        if self.buckets.is_empty() {
            if self.exact.len() < EXACT {
                if self.exact.len() == self.exact.capacity() {
                    // In two steps: most connections have few samples, and those with many soon fill the list.
                    self.exact.reserve_exact(if self.exact.is_empty() { FEW } else { EXACT - self.exact.len() });
                }
                self.exact.push(ns);
                return;
            }
            self.buckets = vec![0; BUCKETS];
            for kept in std::mem::take(&mut self.exact) {
                self.step(kept);
            }
        }
        self.step(ns);
    }

    fn step(&mut self, ns: i64) {
        if let Some(count) = self.buckets.get_mut(bucket_of(ns)) {
            *count = count.saturating_add(1);
        }
    }

    pub fn min_ns(&self) -> Option<i64> {
        (self.count > 0).then_some(self.min_ns)
    }

    /// The value that `per_mille` of the samples do not exceed (nearest rank).
    pub fn at_ns(&self, per_mille: u64) -> Option<i64> {
        if self.count == 0 {
            return None;
        }
        let rank = (u128::from(self.count) * u128::from(per_mille)).div_ceil(1_000).max(1) as u64;
        if self.buckets.is_empty() {
            let mut room = [0; EXACT];
            let sorted = room.get_mut(..self.exact.len())?;
            sorted.copy_from_slice(&self.exact);
            sorted.sort_unstable();
            return sorted.get(rank as usize - 1).copied();
        }
        let mut below = 0;
        for (bucket, count) in self.buckets.iter().enumerate() {
            below += u64::from(*count);
            if below >= rank {
                return Some(middle_of(bucket).clamp(self.min_ns, self.max_ns));
            }
        }
        Some(self.max_ns)
    }
}

/// Below 2^5 each value has its bucket; above, each doubling has 2^5.
fn bucket_of(ns: i64) -> usize {
    let value = ns as u64;
    if value < 1 << STEPS_LOG2 {
        return value as usize;
    }
    let shift = value.ilog2() - STEPS_LOG2;
    let step = (value >> shift) as usize - (1 << STEPS_LOG2);
    ((((shift as usize) + 1) << STEPS_LOG2) + step).min(BUCKETS - 1)
}

fn middle_of(bucket: usize) -> i64 {
    let steps = 1 << STEPS_LOG2;
    if bucket < steps {
        return bucket as i64;
    }
    let shift = (bucket >> STEPS_LOG2) - 1;
    let low = ((bucket % steps + steps) as i64) << shift;
    low + ((1_i64 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_samples_give_exact_quantiles() {
        let mut quantiles = Quantiles::default();
        assert_eq!(quantiles.at_ns(500), None);
        for ns in [50, 10, 30, 20, 40] {
            quantiles.add(ns);
        }
        assert_eq!((quantiles.min_ns(), quantiles.at_ns(500), quantiles.at_ns(990)), (Some(10), Some(30), Some(50)));
    }

    #[test]
    fn many_samples_stay_within_a_sixty_fourth() {
        let mut quantiles = Quantiles::default();
        for ns in 0..100_000_i64 {
            quantiles.add(1_000 + ns * 977 % 100_000 * 10);
        }
        for per_mille in [1, 100, 500, 900, 990, 1_000] {
            let truth = 1_000 + per_mille as i64 * 1_000 - 10;
            let said = quantiles.at_ns(per_mille).unwrap();
            assert!((said - truth).abs() <= truth / 64 + 1, "{per_mille}: {said} for {truth}");
        }
        assert_eq!(quantiles.min_ns(), Some(1_000));
    }

    #[test]
    fn a_bucket_holds_its_middle_and_none_is_out_of_range() {
        for bucket in 0..BUCKETS {
            assert_eq!(bucket_of(middle_of(bucket)), bucket);
        }
        assert_eq!(bucket_of(i64::MAX), BUCKETS - 1);
    }
}
