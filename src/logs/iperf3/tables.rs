//! The tables of an iperf3 log.

use crate::tables::{Symbol, TimeNs, table};
use crate::wire::Ip;

table! {
    /// One row per iperf3 test of the log. "Forward" is from the client to the server, "reverse" (`-R`, and the other half of
    /// `--bidir`) from the server to the client.
    table "iperf3" => Iperf3Row / Iperf3Builder {
        /// Number of the test in the log, from 1.
        test_no: u32,
        /// Version of iperf3, as `3.12`.
        version: Option<String>,
        /// `client` or `server`: which side printed the log.
        role: Option<Symbol>,
        /// `TCP`, `UDP` or `SCTP`.
        protocol: Option<Symbol>,
        /// `forward`, `reverse` or `both`.
        direction: Option<Symbol>,
        /// Whether the summary at the end is there; without it the run was cut short.
        is_complete: bool,
        /// Whether the figures come from text output, which rounds them to about three digits.
        is_rounded: bool,
        /// What iperf3 said went wrong.
        error: Option<String>,
        /// Address of the first stream on the side that printed the log.
        local_ip: Ip,
        /// Port of the first stream on that side.
        local_port: Option<u16>,
        /// Address of the first stream on the other side.
        remote_ip: Ip,
        /// Port of the first stream on the other side.
        remote_port: Option<u16>,
        /// Port that the server listened on.
        server_port: Option<u16>,
        /// When the test started, by the clock of the host that printed the log; whole seconds in older versions.
        start: Option<TimeNs>,
        /// How long the test was to last; null where an amount was asked for instead.
        requested_ns: Option<i64>,
        /// How long it lasted, as the sending side counted.
        duration_ns: Option<i64>,
        /// Time at the start that was left out of the figures (`-O`).
        omitted_ns: Option<i64>,
        /// Streams in one direction (`-P`).
        stream_count: Option<u32>,
        /// Size of one write, or payload of one datagram.
        block_bytes: Option<u64>,
        /// Rate asked for (`-b`); null for as fast as possible.
        target_bps: Option<u64>,
        /// Type of service asked for (`-S`).
        tos: Option<u8>,
        /// Bytes that the sender counted; in the reverse direction for a reverse test, in the forward direction otherwise. Null
        /// where the log cannot know, as on a receiving server.
        sent_bytes: Option<u64>,
        /// Bytes that the receiver counted, in the same direction.
        received_bytes: Option<u64>,
        /// Rate that the sender saw, in bits per second.
        sent_bps: Option<u64>,
        /// Rate that the receiver saw, in bits per second.
        received_bps: Option<u64>,
        /// Segments resent, as the sender's kernel counted; only a sending Linux host knows.
        retransmit_count: Option<u64>,
        /// Reverse direction of a test in both directions: bytes sent.
        reverse_sent_bytes: Option<u64>,
        /// Reverse direction of a test in both directions: bytes received.
        reverse_received_bytes: Option<u64>,
        /// Reverse direction of a test in both directions: rate that the sender saw, in bits per second.
        reverse_sent_bps: Option<u64>,
        /// Reverse direction of a test in both directions: rate that the receiver saw, in bits per second.
        reverse_received_bps: Option<u64>,
        /// Reverse direction of a test in both directions: segments resent.
        reverse_retransmit_count: Option<u64>,
        /// Datagrams sent (UDP).
        packet_count: Option<u64>,
        /// Datagrams lost (UDP).
        lost_count: Option<u64>,
        /// `lost_count` over `packet_count`.
        loss_ratio: Option<f64>,
        /// Jitter at the receiver (UDP), smoothed as RFC 1889 says.
        jitter_ns: Option<i64>,
        /// MSS of the control connection, which is not that of the streams.
        control_mss_bytes: Option<u32>,
        /// MSS asked for (`-M`).
        requested_mss_bytes: Option<u32>,
        /// Congestion control of the sender.
        sender_congestion: Option<String>,
        /// Congestion control of the receiver.
        receiver_congestion: Option<String>,
        /// Random text that client and server share: two logs with the same one are of the same test.
        cookie: Option<String>,
    }
}

table! {
    /// One row per stream of an iperf3 test, with its totals.
    table "iperf3_streams" => StreamRow / StreamBuilder {
        /// Number of the test in the log, from 1.
        test_no: u32,
        /// Number of the stream in the test, from 1.
        stream_no: u32,
        /// What iperf3 calls the stream: a socket number of its process.
        socket: Option<i64>,
        /// `forward` or `reverse`.
        direction: Option<Symbol>,
        /// Address on the side that printed the log.
        local_ip: Ip,
        /// Port on that side.
        local_port: Option<u16>,
        /// Address on the other side.
        remote_ip: Ip,
        /// Port on the other side.
        remote_port: Option<u16>,
        /// How long it sent.
        duration_ns: Option<i64>,
        /// Bytes that the sender counted; null where the log cannot know.
        sent_bytes: Option<u64>,
        /// Bytes that the receiver counted; null where the log cannot know.
        received_bytes: Option<u64>,
        /// Rate that the sender saw, in bits per second.
        sent_bps: Option<u64>,
        /// Rate that the receiver saw, in bits per second.
        received_bps: Option<u64>,
        /// Segments resent, as the sender's kernel counted.
        retransmit_count: Option<u64>,
        /// Largest congestion window seen.
        max_cwnd_bytes: Option<u64>,
        /// Largest window offered by the receiver.
        max_window_bytes: Option<u64>,
        /// Smallest round-trip time that the sender's kernel had at the end of an interval.
        min_rtt_ns: Option<i64>,
        /// Mean of those.
        mean_rtt_ns: Option<i64>,
        /// Largest of those.
        max_rtt_ns: Option<i64>,
        /// Datagrams sent (UDP).
        packet_count: Option<u64>,
        /// Datagrams lost (UDP).
        lost_count: Option<u64>,
        /// `lost_count` over `packet_count`.
        loss_ratio: Option<f64>,
        /// Jitter at the receiver (UDP).
        jitter_ns: Option<i64>,
        /// Datagrams that came out of order (UDP).
        out_of_order_count: Option<u64>,
    }
}

table! {
    /// One row per interval that iperf3 reported, and stream; and one for the sum of the streams.
    table "iperf3_intervals" => IntervalRow / IntervalBuilder {
        /// Number of the test in the log, from 1.
        test_no: u32,
        /// Number of the interval in the test, from 1.
        interval_no: u32,
        /// Number of the stream in the test, as in `iperf3_streams`; null for the sum of all.
        stream_no: Option<u32>,
        /// Whether it is the sum of the streams of one direction.
        is_sum: bool,
        /// `forward` or `reverse`.
        direction: Option<Symbol>,
        /// Whether it was left out of the totals (`-O`).
        is_omitted: bool,
        /// Start, since the start of the test.
        start_ns: Option<i64>,
        /// Length.
        duration_ns: Option<i64>,
        /// Bytes sent or received, by the side that printed the log.
        transferred_bytes: Option<u64>,
        /// Rate, in bits per second.
        transferred_bps: Option<u64>,
        /// Segments resent.
        retransmit_count: Option<u64>,
        /// Congestion window at the end.
        cwnd_bytes: Option<u64>,
        /// Window offered by the receiver, at the end.
        window_bytes: Option<u64>,
        /// Smoothed round-trip time of the kernel, at the end.
        rtt_ns: Option<i64>,
        /// Its mean deviation.
        rttvar_ns: Option<i64>,
        /// Path MTU that the kernel assumed, at the end.
        pmtu_bytes: Option<u32>,
        /// Datagrams sent or expected (UDP).
        packet_count: Option<u64>,
        /// Datagrams lost (UDP).
        lost_count: Option<u64>,
        /// Jitter (UDP).
        jitter_ns: Option<i64>,
    }
}

impl Iperf3Row {
    pub(super) fn new(test_no: u32) -> Self {
        Self {
            test_no,
            version: None,
            role: None,
            protocol: None,
            direction: None,
            is_complete: false,
            is_rounded: false,
            error: None,
            local_ip: Ip::NONE,
            local_port: None,
            remote_ip: Ip::NONE,
            remote_port: None,
            server_port: None,
            start: None,
            requested_ns: None,
            duration_ns: None,
            omitted_ns: None,
            stream_count: None,
            block_bytes: None,
            target_bps: None,
            tos: None,
            sent_bytes: None,
            received_bytes: None,
            sent_bps: None,
            received_bps: None,
            retransmit_count: None,
            reverse_sent_bytes: None,
            reverse_received_bytes: None,
            reverse_sent_bps: None,
            reverse_received_bps: None,
            reverse_retransmit_count: None,
            packet_count: None,
            lost_count: None,
            loss_ratio: None,
            jitter_ns: None,
            control_mss_bytes: None,
            requested_mss_bytes: None,
            sender_congestion: None,
            receiver_congestion: None,
            cookie: None,
        }
    }
}

impl StreamRow {
    pub(super) fn new(test_no: u32, stream_no: u32) -> Self {
        Self {
            test_no,
            stream_no,
            socket: None,
            direction: None,
            local_ip: Ip::NONE,
            local_port: None,
            remote_ip: Ip::NONE,
            remote_port: None,
            duration_ns: None,
            sent_bytes: None,
            received_bytes: None,
            sent_bps: None,
            received_bps: None,
            retransmit_count: None,
            max_cwnd_bytes: None,
            max_window_bytes: None,
            min_rtt_ns: None,
            mean_rtt_ns: None,
            max_rtt_ns: None,
            packet_count: None,
            lost_count: None,
            loss_ratio: None,
            jitter_ns: None,
            out_of_order_count: None,
        }
    }
}
