//! What happened on TCP connections and RoCE queue pairs, by kind and outcome: how often, and the longest of each.

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};

use super::groups::Words;

/// Kinds that say how a connection ran and not that something held it up.
const ORDINARY: [&str; 5] = ["handshake", "idle", "slow_start", "congestion_avoidance", "window_limited"];
/// The same of queue pairs.
const ORDINARY_ROCE: [&str; 2] = ["connect", "disconnect"];
/// RSTs that end what had ended: iperf3 closes its data connections so.
const ORDINARY_RESETS: [&str; 2] = ["after_close", "test_end"];

/// Queue pairs of one happening that are named.
const NAMED: usize = 16;
/// Events that are failures whatever came after them.
const FAILURES: [&str; 6] = ["nak", "unanswered", "reject", "refused", "no_answer", "half_open"];

/// How events ended, the gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// What was asked for did not come about.
    Failed,
    /// Still so where the capture ends.
    Open,
    /// It went on.
    Settled,
    /// It went on, and had not been needed.
    Needless,
}

impl Outcome {
    fn of(kind: &str, cause: Option<&str>, end: Option<&str>) -> Self {
        match (kind, cause, end) {
            (kind, _, _) if FAILURES.contains(&kind) => Self::Failed,
            ("reset", _, _) | (_, _, Some("gave_up" | "reset")) => Self::Failed,
            (_, _, Some("capture_end" | "unfinished")) => Self::Open,
            (_, _, Some("spurious")) => Self::Needless,
            _ => Self::Settled,
        }
    }

    /// `failed`, `open`, `settled`, `needless`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Failed => "failed",
            Self::Open => "open",
            Self::Settled => "settled",
            Self::Needless => "needless",
        }
    }
}

/// A queue pair by its ends: requester and responder, each with its number where that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueuePair {
    pub requester_ip: Option<String>,
    pub requester_qp: Option<u32>,
    pub responder_ip: Option<String>,
    pub responder_qp: Option<u32>,
}

/// Events of one kind, cause and outcome.
#[derive(Clone, Debug)]
pub struct Happening {
    pub outcome: Outcome,
    pub events: u64,
    /// What the events count (segments, SYNs, probes; requests, NAKs, marks), all together.
    pub count: u64,
    /// The longest of them, in nanoseconds.
    pub longest_ns: i64,
    /// The longest of them, the first of several: one row of `tcp_events` or `roce_events`.
    pub longest: RecordBatch,
    /// Queue pairs they happened on, in the order of their first events; at most 16.
    pub queue_pairs: Vec<QueuePair>,
    /// Whether there were more queue pairs.
    pub has_more_queue_pairs: bool,
    key: (String, Option<String>),
}

impl Happening {
    fn add_queue_pair(&mut self, queue_pair: Option<QueuePair>) {
        let Some(queue_pair) = queue_pair.filter(|one| !self.queue_pairs.contains(one)) else { return };
        match self.queue_pairs.len() < NAMED {
            true => self.queue_pairs.push(queue_pair),
            false => self.has_more_queue_pairs = true,
        }
    }
}

/// By kind, cause and outcome.
#[derive(Debug, Default)]
pub(super) struct Happenings(Vec<Happening>);

impl Happenings {
    /// The columns that are asked for.
    pub const COLUMNS: [&str; 9] =
        ["file_no", "frame_no", "kind", "cause", "count", "duration_ns", "end_reason", "message_en", "message_zh"];

    pub fn add(&mut self, batch: &RecordBatch) {
        let (kinds, causes) = (Words::new(&batch["kind"]), Words::new(&batch["cause"]));
        let ends = Words::new(&batch["end_reason"]);
        let counts = batch["count"].as_primitive::<UInt64Type>();
        let durations = batch["duration_ns"].as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            let kind = kinds.get(row).unwrap_or("?");
            let cause = causes.get(row);
            let is_ordinary_reset = kind == "reset" && cause.is_some_and(|cause| ORDINARY_RESETS.contains(&cause));
            if ORDINARY.contains(&kind) || ORDINARY_ROCE.contains(&kind) || is_ordinary_reset {
                continue;
            }
            let outcome = Outcome::of(kind, cause, ends.get(row));
            let known = self
                .0
                .iter_mut()
                .find(|known| known.key.0 == kind && known.key.1.as_deref() == cause && known.outcome == outcome);
            let queue_pair = queue_pair(batch, row);
            match known {
                Some(known) => {
                    known.events += 1;
                    known.count = known.count.saturating_add(counts.value(row));
                    if durations.value(row) > known.longest_ns {
                        known.longest_ns = durations.value(row);
                        known.longest = batch.slice(row, 1);
                    }
                    known.add_queue_pair(queue_pair);
                }
                None => {
                    let mut fresh = Happening {
                        outcome,
                        events: 1,
                        count: counts.value(row),
                        longest_ns: durations.value(row),
                        longest: batch.slice(row, 1),
                        queue_pairs: Vec::new(),
                        has_more_queue_pairs: false,
                        key: (kind.to_owned(), cause.map(str::to_owned)),
                    };
                    fresh.add_queue_pair(queue_pair);
                    self.0.push(fresh);
                }
            }
        }
    }

    /// Failures first, and the longest before the shorter.
    pub fn finish(mut self) -> Vec<Happening> {
        let rank = |one: &Happening| (one.outcome != Outcome::Failed, std::cmp::Reverse(one.longest_ns), one.outcome);
        self.0.sort_by_key(rank);
        self.0
    }
}

/// The queue pair of an event; `None` for rows of other tables.
fn queue_pair(batch: &RecordBatch, row: usize) -> Option<QueuePair> {
    let ip = |column: &str| Words::new(batch.column_by_name(column)?).get(row).map(str::to_owned);
    let number = |column: &str| {
        let column = batch.column_by_name(column)?.as_primitive_opt::<UInt32Type>()?;
        (!column.is_null(row)).then(|| column.value(row))
    };
    batch.column_by_name("requester_ip")?;
    Some(QueuePair {
        requester_ip: ip("requester_ip"),
        requester_qp: number("requester_qp"),
        responder_ip: ip("responder_ip"),
        responder_qp: number("responder_qp"),
    })
}
