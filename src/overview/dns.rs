//! DNS queries by what is asked for.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt16Type, UInt32Type};
use arrow_array::{Array, RecordBatch};

use super::groups::{Groups, RttCounts, Words};

/// Questions that are told apart, and of them those that are given: a capture with more has its names made up.
const QUESTIONS: usize = 50_000;
const GIVEN: usize = 1_000;

/// Columns of `dns` that are read.
pub(super) const COLUMNS: [&str; 9] = [
    "server_ip",
    "query_name",
    "query_type",
    "query_type_name",
    "is_query_seen",
    "retry_count",
    "response_frame_no",
    "rtt_ns",
    "rcode_name",
];

/// What a DNS server is asked for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DnsQuestion {
    pub server_ip: String,
    /// In small letters, since names differ by no others. `None` where the question cannot be read.
    pub name: Option<String>,
    /// By name where it has one, else the number.
    pub record_type: Option<String>,
}

/// What became of queries.
#[derive(Clone, Debug, Default)]
pub struct DnsCounts {
    pub query_count: u64,
    /// Of them, those without a response in the capture.
    pub unanswered_count: u64,
    /// Of them, those that repeat one that had not been answered.
    pub retry_count: u64,
    /// Responses with another code than `NOERROR`, by code.
    pub failures: BTreeMap<String, u64>,
    pub rtt: RttCounts,
}

impl DnsCounts {
    /// Queries that came to nothing. That there is no such name is an answer: a resolver tries those of its search list.
    pub fn wrong_count(&self) -> u64 {
        let failed = self.failures.iter().filter(|(code, _)| *code != "NXDOMAIN").map(|(_, count)| count);
        self.unanswered_count + failed.sum::<u64>()
    }
}

/// DNS queries over UDP.
#[derive(Clone, Debug, Default)]
pub struct DnsOverview {
    /// Of all queries.
    pub total: DnsCounts,
    /// How many questions are told apart.
    pub question_count: u64,
    /// Queries whose question is not, since there are too many.
    pub left_out: u64,
    /// At most a thousand questions: those that went wrong most often first, then those that were asked most often.
    pub questions: Vec<(DnsQuestion, DnsCounts)>,
    /// Servers that were asked and of which no answer is in the capture.
    pub silent_servers: Vec<String>,
}

pub(super) struct DnsGathered {
    total: DnsCounts,
    questions: Groups<DnsQuestion, DnsCounts>,
    /// Whether an answer of a server is there.
    servers: Groups<String, bool>,
}

impl Default for DnsGathered {
    fn default() -> Self {
        Self { total: DnsCounts::default(), questions: Groups::up_to(QUESTIONS), servers: Groups::default() }
    }
}

impl DnsGathered {
    pub fn add(&mut self, batch: &RecordBatch) {
        let (servers, types) = (Words::new(&batch["server_ip"]), Words::new(&batch["query_type_name"]));
        let codes = Words::new(&batch["rcode_name"]);
        let names = batch["query_name"].as_string::<i32>();
        let numbers = batch["query_type"].as_primitive::<UInt16Type>();
        let is_seen = batch["is_query_seen"].as_boolean();
        let retries = batch["retry_count"].as_primitive::<UInt32Type>();
        let rtts = batch["rtt_ns"].as_primitive::<Int64Type>();
        for row in 0..batch.num_rows() {
            let server_ip = servers.get(row).unwrap_or("?").to_owned();
            let is_answered = !batch["response_frame_no"].is_null(row);
            if let Some(answers) = self.servers.entry(server_ip.clone()) {
                *answers |= is_answered;
            }
            if !is_seen.value(row) {
                continue;
            }
            let number = || (!numbers.is_null(row)).then(|| numbers.value(row).to_string());
            let key = DnsQuestion {
                server_ip,
                name: (!names.is_null(row)).then(|| names.value(row).to_ascii_lowercase()),
                record_type: types.get(row).map(str::to_owned).or_else(number),
            };
            for counts in [Some(&mut self.total), self.questions.entry(key)].into_iter().flatten() {
                counts.query_count += 1;
                counts.retry_count += u64::from(retries.value(row) > 0);
                counts.unanswered_count += u64::from(!is_answered);
                if let Some(code) = codes.get(row).filter(|code| *code != "NOERROR") {
                    *counts.failures.entry(code.to_owned()).or_default() += 1;
                }
                if !rtts.is_null(row) {
                    counts.rtt.add(rtts.value(row));
                }
            }
        }
    }

    pub fn finish(self) -> DnsOverview {
        let left_out = self.questions.left_out();
        let mut questions: Vec<_> = self.questions.into_counts().into_iter().collect();
        let question_count = questions.len() as u64;
        // Equal ones stay in the order of their servers and names.
        questions.sort_by_key(|(_, counts)| Reverse((counts.wrong_count(), counts.query_count)));
        questions.truncate(GIVEN);
        let silent = self.servers.into_counts().into_iter().filter(|(_, answers)| !answers);
        let silent_servers = silent.map(|(server_ip, _)| server_ip).collect();
        DnsOverview { total: self.total, question_count, left_out, questions, silent_servers }
    }
}
