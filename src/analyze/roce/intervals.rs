//! What passed on one queue pair, over time: counts by intervals of equal length, in bounded memory.

/// Intervals that are kept of one queue pair; when there are more, two become one.
const MOST: usize = 256;
/// Length of an interval at first; it doubles as often as it must.
const FIRST_NS: i64 = 1_000_000;
/// Longer ones are of no use: 2^32 ms.
const MOST_DOUBLINGS: u32 = 32;

/// What is counted in an interval. Requests and responses are counted as in the queue pair's own counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct IntervalCounts {
    pub requests: u64,
    /// Payload of all requests and responses as they passed, repetitions included.
    pub bytes: u64,
    pub ce: u64,
    pub not_ect: u64,
    pub resent: u64,
    pub responses: u64,
    pub response_ce: u64,
    pub notifications: u64,
    pub response_notifications: u64,
}

impl IntervalCounts {
    fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.bytes += other.bytes;
        self.ce += other.ce;
        self.not_ect += other.not_ect;
        self.resent += other.resent;
        self.responses += other.responses;
        self.response_ce += other.response_ce;
        self.notifications += other.notifications;
        self.response_notifications += other.response_notifications;
    }
}

/// Intervals in which something passed, in order. They begin at multiples of their length since 1970.
#[derive(Debug, Default)]
pub(crate) struct Intervals {
    doublings: u32,
    kept: Vec<(i64, IntervalCounts)>,
    /// The last interval, from and until: nearly every packet lies in it, and needs no division.
    last_ns: (i64, i64),
}

impl Intervals {
    pub fn length_ns(&self) -> i64 {
        FIRST_NS << self.doublings
    }

    /// Start and counts of each interval.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &IntervalCounts)> {
        let length_ns = self.length_ns();
        self.kept.iter().map(move |(number, counts)| (number.saturating_mul(length_ns), counts))
    }

    /// The counts of the interval that a time lies in.
    pub fn at(&mut self, time_ns: i64) -> &mut IntervalCounts {
        if (self.last_ns.0..self.last_ns.1).contains(&time_ns) {
            let last = self.kept.len() - 1;
            return &mut self.kept[last].1;
        }
        let at = self.find(time_ns);
        let length_ns = self.length_ns();
        if let Some((last, _)) = self.kept.last() {
            let start_ns = last.saturating_mul(length_ns);
            self.last_ns = (start_ns, start_ns.saturating_add(length_ns));
        }
        &mut self.kept[at].1
    }

    /// The place of the interval that a time lies in, made where it is new.
    fn find(&mut self, time_ns: i64) -> usize {
        loop {
            let number = time_ns.div_euclid(self.length_ns());
            // Nearly always the last one, or a new one behind it.
            let place = match self.kept.last() {
                Some((last, _)) if *last == number => Ok(self.kept.len() - 1),
                Some((last, _)) if *last < number => Err(self.kept.len()),
                _ => self.kept.binary_search_by_key(&number, |(kept, _)| *kept),
            };
            match place {
                Ok(at) => return at,
                Err(at) if self.kept.len() < MOST || self.doublings >= MOST_DOUBLINGS => {
                    self.kept.insert(at, (number, IntervalCounts::default()));
                    return at;
                }
                Err(_) => self.double(),
            }
        }
    }

    fn double(&mut self) {
        self.doublings += 1;
        for (number, _) in &mut self.kept {
            *number = number.div_euclid(2);
        }
        self.kept.dedup_by(|later, earlier| {
            let is_same = later.0 == earlier.0;
            if is_same {
                earlier.1.add(&later.1);
            }
            is_same
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_double_so_that_they_stay_few_and_nothing_is_lost() {
        let mut intervals = Intervals::default();
        for at in 0..10_000 {
            let counts = intervals.at(at * 500_000);
            counts.requests += 1;
            counts.ce += u64::from(at % 10 == 0);
        }
        // 5 s in at most 256 intervals: 32 ms each.
        assert_eq!(intervals.length_ns(), 32_000_000);
        assert_eq!(intervals.kept.len(), 157);
        let sum = |of: fn(&IntervalCounts) -> u64| intervals.iter().map(|(_, counts)| of(counts)).sum::<u64>();
        assert_eq!((sum(|counts| counts.requests), sum(|counts| counts.ce)), (10_000, 1_000));
        assert!(intervals.iter().zip(0..).all(|((start_ns, _), at)| start_ns == at * 32_000_000));
    }

    #[test]
    fn times_that_run_backwards_or_far_away_find_their_interval() {
        let mut intervals = Intervals::default();
        for time_ns in [5_000_000, -1, 0, 5_999_999, i64::MAX, i64::MIN] {
            intervals.at(time_ns).requests += 1;
        }
        let found: Vec<_> = intervals.iter().map(|(start_ns, counts)| (start_ns, counts.requests)).collect();
        assert_eq!(found[1..4], [(-1_000_000, 1), (0, 1), (5_000_000, 2)]);
        assert_eq!(found.len(), 5);
        for at in 0..2_000 {
            intervals.at(at * (i64::MAX / 2_000)).requests += 1;
        }
        assert_eq!(intervals.iter().map(|(_, counts)| counts.requests).sum::<u64>(), 2_006);
    }
}
