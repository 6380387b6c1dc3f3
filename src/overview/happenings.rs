//! What happened on TCP connections and RoCE queue pairs, by kind: how often, and the first of each.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt64Type};
use arrow_array::{Array, RecordBatch};

use super::groups::Words;

/// Kinds that say how a connection ran and not that something held it up.
const ORDINARY: [&str; 5] = ["handshake", "idle", "slow_start", "congestion_avoidance", "window_limited"];
/// The same of queue pairs.
const ORDINARY_ROCE: [&str; 2] = ["connect", "disconnect"];
/// RSTs that end what had ended: iperf3 closes its data connections so.
const ORDINARY_RESETS: [&str; 2] = ["after_close", "test_end"];

/// Events of one kind and cause.
#[derive(Clone, Debug)]
pub struct Happening {
    pub events: u64,
    /// What the events count (segments, SYNs, probes; requests, NAKs, marks), all together.
    pub count: u64,
    /// The longest of them, in nanoseconds.
    pub longest_ns: i64,
    /// The first of them: one row of `tcp_events` or `roce_events`.
    pub first: RecordBatch,
    key: (String, Option<String>),
}

/// By kind and cause, in the order of the first of each.
#[derive(Debug, Default)]
pub(super) struct Happenings(pub Vec<Happening>);

impl Happenings {
    /// The columns that are asked for.
    pub const COLUMNS: [&str; 8] =
        ["file_no", "frame_no", "kind", "cause", "count", "duration_ns", "message_en", "message_zh"];

    pub fn add(&mut self, batch: &RecordBatch) {
        let (kinds, causes) = (Words::new(&batch["kind"]), Words::new(&batch["cause"]));
        let counts = batch["count"].as_primitive::<UInt64Type>();
        let durations = batch["duration_ns"].as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            let kind = kinds.get(row).unwrap_or("?");
            let cause = if batch["cause"].is_null(row) { None } else { causes.get(row) };
            let is_ordinary_reset = kind == "reset" && cause.is_some_and(|cause| ORDINARY_RESETS.contains(&cause));
            if ORDINARY.contains(&kind) || ORDINARY_ROCE.contains(&kind) || is_ordinary_reset {
                continue;
            }
            let known = self.0.iter_mut().find(|known| known.key.0 == kind && known.key.1.as_deref() == cause);
            match known {
                Some(known) => {
                    known.events += 1;
                    known.count = known.count.saturating_add(counts.value(row));
                    known.longest_ns = known.longest_ns.max(durations.value(row));
                }
                None => self.0.push(Happening {
                    events: 1,
                    count: counts.value(row),
                    longest_ns: durations.value(row),
                    first: batch.slice(row, 1),
                    key: (kind.to_owned(), cause.map(str::to_owned)),
                }),
            }
        }
    }
}
