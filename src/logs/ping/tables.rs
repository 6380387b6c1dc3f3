//! The tables of a ping log.

use crate::tables::{Symbol, TimeNs, table};
use crate::wire::Ip;

table! {
    /// One row per run of ping in the log.
    table "ping" => PingRow / PingBuilder {
        /// Number of the run in the log, from 1.
        run_no: u32,
        /// Line of the log that it starts on, from 1.
        line: u64,
        /// Whose ping it is: `iputils`, `bsd` (also macOS and BusyBox) or `windows`.
        tool: Symbol,
        /// The host that was asked for, as it was typed.
        host: Option<String>,
        /// Address that was pinged.
        dst_ip: Ip,
        /// Payload of an echo request (`-s`).
        payload_bytes: Option<u32>,
        /// Size of the whole IP packet; known where the tool prints it.
        ip_bytes: Option<u32>,
        /// `set` where the log shows that "don't fragment" was on, `clear` where it shows that it was off; null otherwise.
        df: Option<Symbol>,
        /// Requests sent.
        sent_count: Option<u64>,
        /// Replies received, duplicates left out.
        received_count: u64,
        /// Replies that came again.
        duplicate_count: u64,
        /// Errors reported: by a router, or by the host's own kernel.
        error_count: u64,
        /// Requests without a reply over requests sent.
        loss_ratio: Option<f64>,
        /// Smallest MTU that an error told of, in bytes.
        path_mtu_bytes: Option<u32>,
        /// Who told of it: `router` (fragmentation needed, by ICMP) or `host` (the own kernel: message too long).
        path_mtu_source: Option<Symbol>,
        /// Router that told of it.
        path_mtu_ip: Ip,
        /// How long the run lasted.
        duration_ns: Option<i64>,
        /// Smallest round-trip time.
        rtt_min_ns: Option<i64>,
        /// Mean round-trip time.
        rtt_avg_ns: Option<i64>,
        /// Largest round-trip time.
        rtt_max_ns: Option<i64>,
        /// Standard deviation (`mdev`, `stddev`) of the round-trip times.
        rtt_mdev_ns: Option<i64>,
        /// Whether the statistics at the end are there; without them `sent_count` is the highest sequence number seen.
        is_complete: bool,
        /// What ping said went wrong before it sent anything, such as an unknown host.
        error: Option<String>,
    }
}

table! {
    /// One row per line of ping that tells what became of a request.
    table "ping_replies" => ReplyRow / ReplyBuilder {
        /// Number of the run in the log, from 1.
        run_no: u32,
        /// Line of the log, from 1.
        line: u64,
        /// Time of the line (`ping -D`).
        time: Option<TimeNs>,
        /// `reply`, `duplicate`, `timeout`, `frag_needed`, `message_too_long`, `unreachable`, `ttl_exceeded` or `other_error`.
        kind: Symbol,
        /// Sequence number, as printed: iputils counts from 1, others from 0.
        sequence: Option<u32>,
        /// Address that answered.
        src_ip: Ip,
        /// Size of the answer, as printed: with the ICMP header, except by Windows.
        answer_bytes: Option<u32>,
        /// TTL of the answer.
        ttl: Option<u8>,
        /// Round-trip time; null where it is printed as "less than".
        rtt_ns: Option<i64>,
        /// MTU that an error tells of.
        mtu_bytes: Option<u32>,
    }
}

impl PingRow {
    pub(super) fn new(run_no: u32, line: u64, tool: Symbol) -> Self {
        Self {
            run_no,
            line,
            tool,
            host: None,
            dst_ip: Ip::NONE,
            payload_bytes: None,
            ip_bytes: None,
            df: None,
            sent_count: None,
            received_count: 0,
            duplicate_count: 0,
            error_count: 0,
            loss_ratio: None,
            path_mtu_bytes: None,
            path_mtu_source: None,
            path_mtu_ip: Ip::NONE,
            duration_ns: None,
            rtt_min_ns: None,
            rtt_avg_ns: None,
            rtt_max_ns: None,
            rtt_mdev_ns: None,
            is_complete: false,
            error: None,
        }
    }
}
