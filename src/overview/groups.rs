//! Counts by a key, for a limited number of keys.

use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{Array, ArrayRef, DictionaryArray, StringArray};

/// Keys that are told apart: enough to show, few enough for any capture.
const KEYS: usize = 1_000;

/// Counts by key, in the order of keys. Beyond a thousand keys (or another limit), further ones are only counted.
#[derive(Clone, Debug)]
pub struct Groups<K: Ord, V> {
    counts: BTreeMap<K, V>,
    limit: usize,
    left_out: u64,
}

impl<K: Ord, V> Default for Groups<K, V> {
    fn default() -> Self {
        Self::up_to(KEYS)
    }
}

impl<K: Ord, V> Groups<K, V> {
    pub(super) fn up_to(limit: usize) -> Self {
        Self { counts: BTreeMap::new(), limit, left_out: 0 }
    }

    pub(super) fn into_counts(self) -> BTreeMap<K, V> {
        self.counts
    }
}

impl<K: Ord, V: Default> Groups<K, V> {
    pub fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.counts.iter()
    }

    /// Rows whose key came after as many as are told apart.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    pub(super) fn entry(&mut self, key: K) -> Option<&mut V> {
        if self.counts.contains_key(&key) || self.counts.len() < self.limit {
            return Some(self.counts.entry(key).or_default());
        }
        self.left_out += 1;
        None
    }
}

/// TCP segments that were overtaken on the way.
#[derive(Clone, Debug, Default)]
pub struct ReorderCounts {
    pub segments: u64,
    pub connections: u64,
}

impl ReorderCounts {
    /// One connection's.
    pub(super) fn add(&mut self, segments: u64) {
        self.segments = self.segments.saturating_add(segments);
        self.connections += u64::from(segments > 0);
    }
}

/// Who says that packets between two ends were too big, and for which MTU.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TooBig {
    pub by: String,
    pub src_ip: String,
    pub dst_ip: String,
    /// `None` from routers older than RFC 1191, and where the message is cut.
    pub mtu: Option<u32>,
}

/// Pause frames of one kind and class.
#[derive(Clone, Debug, Default)]
pub struct PauseCounts {
    /// Frames that ask to stop.
    pub pause_count: u64,
    /// Frames that end a pause (XON).
    pub resume_count: u64,
    /// Longest pause asked for, in quanta of 512 bit times.
    pub largest_quanta: u16,
}

/// Encapsulated packets of one virtual network.
#[derive(Clone, Debug, Default)]
pub struct TunnelCounts {
    pub packets: u64,
    /// Bytes of the outer headers of all packets.
    pub overhead_bytes: u64,
}

/// Round-trip times.
#[derive(Clone, Debug, Default)]
pub struct RttCounts {
    pub count: u64,
    pub min_ns: Option<i64>,
    pub max_ns: Option<i64>,
    sum_ns: i128,
}

impl RttCounts {
    pub(super) fn add(&mut self, rtt_ns: i64) {
        self.count += 1;
        self.min_ns = Some(self.min_ns.map_or(rtt_ns, |min| min.min(rtt_ns)));
        self.max_ns = Some(self.max_ns.map_or(rtt_ns, |max| max.max(rtt_ns)));
        self.sum_ns += i128::from(rtt_ns);
    }

    /// The mean in nanoseconds, rounded down; `None` without any.
    pub fn mean_ns(&self) -> Option<i64> {
        let count = i128::from(self.count);
        (count > 0).then(|| i64::try_from(self.sum_ns.div_euclid(count)).unwrap_or(i64::MAX))
    }
}

/// Probes between two addresses.
#[derive(Clone, Debug, Default)]
pub struct ProbeCounts {
    pub sent_count: u64,
    /// Those without a reply.
    pub lost_count: u64,
    /// Those that an ICMP error answered: they are without a reply as well.
    pub error_count: u64,
    pub rtt: RttCounts,
}

/// The texts of a dictionary column.
pub(super) struct Words<'a> {
    column: &'a DictionaryArray<Int32Type>,
    values: &'a StringArray,
}

impl<'a> Words<'a> {
    pub fn new(column: &'a ArrayRef) -> Self {
        let column = column.as_dictionary::<Int32Type>();
        Self { column, values: column.values().as_string::<i32>() }
    }

    pub fn get(&self, row: usize) -> Option<&'a str> {
        let key = self.column.key(row)?;
        (!self.values.is_null(key)).then(|| self.values.value(key))
    }
}
