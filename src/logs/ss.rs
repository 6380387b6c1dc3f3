//! `ss -ti`: sockets with the kernel's view of each connection, on two lines or (`-O`) on one.

use super::reading::{Reading, Rows, Tables, lines, numbered};
use super::units::{count, ip_port, ms_ns, number, prefix};
use crate::capture::Severity;
use crate::tables::{Symbol, TableDef, table};
use crate::wire::Ip;

table! {
    /// One row per TCP socket that `ss -ti` printed.
    table "ss" => SsRow / SsBuilder {
        /// Number of the sample in the log, from 1: each call of ss prints one; without its heading all are one.
        sample_no: u32,
        /// Line of the log, from 1.
        line: u64,
        /// State, as `ESTAB`.
        state: Symbol,
        /// Bytes received and not read by the program.
        receive_queue_bytes: Option<u64>,
        /// Bytes sent and not acknowledged, or not yet sent.
        send_queue_bytes: Option<u64>,
        /// Local address.
        local_ip: Ip,
        /// Local port.
        local_port: Option<u16>,
        /// Peer's address.
        remote_ip: Ip,
        /// Peer's port.
        remote_port: Option<u16>,
        /// Congestion control.
        congestion: Option<String>,
        /// Window scale of what the peer announces.
        send_wscale: Option<u8>,
        /// Window scale of what this host announces.
        receive_wscale: Option<u8>,
        /// Retransmission timeout.
        rto_ns: Option<i64>,
        /// Times that the timeout was doubled.
        backoff_count: Option<u32>,
        /// Smoothed round-trip time.
        rtt_ns: Option<i64>,
        /// Its mean deviation.
        rttvar_ns: Option<i64>,
        /// Smallest round-trip time.
        min_rtt_ns: Option<i64>,
        /// Sending MSS, options left out.
        mss_bytes: Option<u32>,
        /// Path MTU that the kernel assumes.
        pmtu_bytes: Option<u32>,
        /// MSS that the received segments show.
        receive_mss_bytes: Option<u32>,
        /// MSS announced to the peer.
        advertised_mss_bytes: Option<u32>,
        /// Congestion window, in segments.
        cwnd_segments: Option<u32>,
        /// Slow-start threshold, in segments; null for none yet.
        ssthresh_segments: Option<u32>,
        /// Payload bytes sent, resent ones too.
        sent_bytes: Option<u64>,
        /// Payload bytes resent.
        retransmitted_bytes: Option<u64>,
        /// Payload bytes acknowledged by the peer.
        acked_bytes: Option<u64>,
        /// Payload bytes received.
        received_bytes: Option<u64>,
        /// Segments sent.
        segments_out_count: Option<u64>,
        /// Segments received.
        segments_in_count: Option<u64>,
        /// Segments with payload sent.
        data_segments_out_count: Option<u64>,
        /// Segments with payload received.
        data_segments_in_count: Option<u64>,
        /// Segments resent and not yet acknowledged.
        retransmit_outstanding_count: Option<u64>,
        /// Segments resent since the start of the connection; 0 where ss prints none.
        retransmit_count: Option<u64>,
        /// Segments taken for lost at the moment.
        lost_count: Option<u64>,
        /// Segments acknowledged by SACK at the moment.
        sacked_count: Option<u64>,
        /// Segments not acknowledged at the moment.
        unacked_count: Option<u64>,
        /// Duplicate segments that the peer reported by D-SACK.
        dsack_count: Option<u64>,
        /// Reordering that the kernel expects, in segments; null for the default of 3.
        reordering_segments: Option<u32>,
        /// Times that reordering was seen.
        reorder_seen_count: Option<u64>,
        /// Segments delivered.
        delivered_count: Option<u64>,
        /// Segments delivered that the peer said carried a CE mark.
        delivered_ce_count: Option<u64>,
        /// `cwnd` per round trip, in bits per second.
        send_bps: Option<u64>,
        /// Pacing rate, in bits per second.
        pacing_bps: Option<u64>,
        /// Delivery rate last measured, in bits per second.
        delivery_bps: Option<u64>,
        /// Time that data was waiting or in flight.
        busy_ns: Option<i64>,
        /// Part of it that the peer's window was in the way.
        rwnd_limited_ns: Option<i64>,
        /// Part of it that the own send buffer was in the way.
        sndbuf_limited_ns: Option<i64>,
        /// Window that the peer offers.
        send_window_bytes: Option<u64>,
        /// Bytes written by the program and not sent.
        notsent_bytes: Option<u64>,
        /// Receive buffer that the kernel aims for.
        receive_space_bytes: Option<u64>,
        /// Whether the program, not the network, limited the delivery rate.
        is_app_limited: bool,
        /// What was negotiated, as `ts sack ecn ecnseen`; null where ss was not asked for it (`-o`).
        options: Option<String>,
    }
}

const STATES: [&str; 12] = [
    "ESTAB",
    "SYN-SENT",
    "SYN-RECV",
    "FIN-WAIT-1",
    "FIN-WAIT-2",
    "TIME-WAIT",
    "UNCONN",
    "CLOSE-WAIT",
    "LAST-ACK",
    "LISTEN",
    "CLOSING",
    "CLOSED",
];
const CONGESTIONS: [&str; 16] = [
    "cubic",
    "reno",
    "bbr",
    "bbr2",
    "dctcp",
    "vegas",
    "westwood",
    "htcp",
    "bic",
    "illinois",
    "veno",
    "yeah",
    "hybla",
    "lp",
    "scalable",
    "highspeed",
];

pub(super) fn tables() -> Vec<&'static TableDef> {
    vec![SsRow::table()]
}

pub(super) fn is_in(text: &str) -> bool {
    lines(text).any(|line| is_heading(line) || (is_details(line) && line.contains("rto:")))
        || lines(text).filter(|line| socket(line).is_some()).take(2).count() == 2
}

fn is_heading(line: &str) -> bool {
    ["State", "Recv-Q", "Send-Q", "Local Address"].iter().all(|word| line.contains(word))
}

fn is_details(line: &str) -> bool {
    line.contains("cwnd:") || line.contains(" mss:")
}

pub(super) fn read(text: &str, reading: &mut Reading) -> Tables {
    if !is_in(text) {
        return Ok(None);
    }
    let mut rows: Rows<SsRow> = Rows::default();
    let mut sample_no = 1;
    // Whether the row before still waits for its second line.
    let mut is_open = false;
    for (line_no, line) in numbered(text) {
        if is_heading(line) {
            sample_no += u32::from(!rows.is_empty());
            is_open = false;
        } else if let Some((mut row, rest)) = socket(line) {
            (row.sample_no, row.line) = (sample_no, line_no);
            details(&mut row, rest);
            is_open = !is_details(rest);
            rows.push(row);
        } else if is_details(line) {
            match rows.last_mut().filter(|_| is_open) {
                Some(row) => details(row, line),
                None => reading.counts("ss_details_alone", Severity::Warning, Some(line_no), line),
            }
            is_open = false;
        }
    }
    Ok(Some(vec![rows.finish::<SsBuilder>(SsRow::table(), reading)?]))
}

/// `ESTAB 0 1448 10.9.1.2:5201 10.9.2.2:40012` and what follows. `ss -a` without `-t` puts the protocol first.
fn socket(line: &str) -> Option<(SsRow, &str)> {
    let mut rest = line.trim_start();
    if let Some(after) = rest.strip_prefix("tcp ") {
        rest = after.trim_start();
    }
    let mut word = || {
        let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let (word, after) = rest.split_at_checked(end)?;
        rest = after.trim_start();
        (!word.is_empty()).then_some(word)
    };
    let state = word()?;
    let state = STATES.into_iter().find(|known| *known == state).map(Symbol)?;
    let (receive, send) = (word()?.parse().ok()?, word()?.parse().ok()?);
    let (local, remote) = (word()?, word()?);
    if !local.contains(':') || !remote.contains(':') {
        return None;
    }
    let mut row = SsRow::new(state);
    (row.receive_queue_bytes, row.send_queue_bytes) = (Some(receive), Some(send));
    (row.local_ip, row.local_port) = ip_port(local);
    (row.remote_ip, row.remote_port) = ip_port(remote);
    Some((row, rest))
}

/// `cubic wscale:7,7 rto:212 rtt:8.235/3.265 ... send 119567699bps ... retrans:0/46`.
fn details(row: &mut SsRow, line: &str) {
    let mut words = line.split_whitespace().peekable();
    let mut has_details = false;
    while let Some(word) = words.next() {
        if let Some((name, value)) = word.split_once(':') {
            has_details |= name == "cwnd" || name == "rto";
            field(row, name, value);
            continue;
        }
        match word {
            "send" => row.send_bps = words.next_if(|next| next.ends_with("bps")).and_then(rate),
            "pacing_rate" => {
                // `pacing_rate 94Mbps/140Mbps`: now, and at most.
                let now = words.next_if(|next| next.contains("bps"));
                row.pacing_bps = now.and_then(|now| rate(now.split('/').next()?));
            }
            "delivery_rate" => row.delivery_bps = words.next_if(|next| next.ends_with("bps")).and_then(rate),
            "app_limited" => row.is_app_limited = true,
            "ts" | "sack" | "ecn" | "ecnseen" | "fastopen" => match &mut row.options {
                Some(options) => options.extend([" ", word]),
                None => row.options = Some(word.to_owned()),
            },
            word if CONGESTIONS.contains(&word) => row.congestion = Some(word.to_owned()),
            _ => {}
        }
    }
    if has_details && row.retransmit_count.is_none() && row.state.0 != "LISTEN" {
        (row.retransmit_count, row.retransmit_outstanding_count) = (Some(0), Some(0));
    }
}

fn field(row: &mut SsRow, name: &str, value: &str) {
    let whole = || value.parse::<u64>().ok();
    let small = || value.parse::<u32>().ok();
    let ms = |text: &str| number(text).and_then(ms_ns);
    // `busy:92ms`, `rwnd_limited:48ms(52.2%)`
    let span = || ms(value.split('(').next().unwrap_or("").trim_end_matches("ms"));
    match name {
        "wscale" => {
            let (send, receive) = value.split_once(',').unwrap_or((value, ""));
            (row.send_wscale, row.receive_wscale) = (send.parse().ok(), receive.parse().ok());
        }
        "rto" => row.rto_ns = ms(value),
        "backoff" => row.backoff_count = small(),
        "rtt" => {
            let (rtt, var) = value.split_once('/').unwrap_or((value, ""));
            (row.rtt_ns, row.rttvar_ns) = (ms(rtt), ms(var));
        }
        "minrtt" => row.min_rtt_ns = ms(value),
        "mss" => row.mss_bytes = small(),
        "pmtu" => row.pmtu_bytes = small(),
        "rcvmss" => row.receive_mss_bytes = small(),
        "advmss" => row.advertised_mss_bytes = small(),
        "cwnd" => row.cwnd_segments = small(),
        "ssthresh" => row.ssthresh_segments = small(),
        "bytes_sent" => row.sent_bytes = whole(),
        "bytes_retrans" => row.retransmitted_bytes = whole(),
        "bytes_acked" => row.acked_bytes = whole(),
        "bytes_received" => row.received_bytes = whole(),
        "segs_out" => row.segments_out_count = whole(),
        "segs_in" => row.segments_in_count = whole(),
        "data_segs_out" => row.data_segments_out_count = whole(),
        "data_segs_in" => row.data_segments_in_count = whole(),
        "retrans" => {
            let (now, all) = value.split_once('/').unwrap_or(("", value));
            (row.retransmit_outstanding_count, row.retransmit_count) = (now.parse().ok(), all.parse().ok());
        }
        "lost" => row.lost_count = whole(),
        "sacked" => row.sacked_count = whole(),
        "unacked" => row.unacked_count = whole(),
        "dsack_dups" => row.dsack_count = whole(),
        "reordering" => row.reordering_segments = small(),
        "reord_seen" => row.reorder_seen_count = whole(),
        "delivered" => row.delivered_count = whole(),
        "delivered_ce" => row.delivered_ce_count = whole(),
        "busy" => row.busy_ns = span(),
        "rwnd_limited" => row.rwnd_limited_ns = span(),
        "sndbuf_limited" => row.sndbuf_limited_ns = span(),
        "snd_wnd" => row.send_window_bytes = whole(),
        "notsent" => row.notsent_bytes = whole(),
        "rcv_space" => row.receive_space_bytes = whole(),
        // `dctcp:(ce_state:0,...)`, `bbr:(bw:...)`; `dctcp:fallback_mode`
        name if CONGESTIONS.contains(&name) => {
            row.congestion.get_or_insert_with(|| name.to_owned());
        }
        _ => {}
    }
}

/// `119567699bps`, `87.4Gbps`.
fn rate(text: &str) -> Option<u64> {
    let text = text.trim_end_matches("bps");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    count(number(digits)? * prefix(text.get(digits.len()..)?, 1000.0))
}

impl SsRow {
    fn new(state: Symbol) -> Self {
        Self {
            sample_no: 1,
            line: 0,
            state,
            receive_queue_bytes: None,
            send_queue_bytes: None,
            local_ip: Ip::NONE,
            local_port: None,
            remote_ip: Ip::NONE,
            remote_port: None,
            congestion: None,
            send_wscale: None,
            receive_wscale: None,
            rto_ns: None,
            backoff_count: None,
            rtt_ns: None,
            rttvar_ns: None,
            min_rtt_ns: None,
            mss_bytes: None,
            pmtu_bytes: None,
            receive_mss_bytes: None,
            advertised_mss_bytes: None,
            cwnd_segments: None,
            ssthresh_segments: None,
            sent_bytes: None,
            retransmitted_bytes: None,
            acked_bytes: None,
            received_bytes: None,
            segments_out_count: None,
            segments_in_count: None,
            data_segments_out_count: None,
            data_segments_in_count: None,
            retransmit_outstanding_count: None,
            retransmit_count: None,
            lost_count: None,
            sacked_count: None,
            unacked_count: None,
            dsack_count: None,
            reordering_segments: None,
            reorder_seen_count: None,
            delivered_count: None,
            delivered_ce_count: None,
            send_bps: None,
            pacing_bps: None,
            delivery_bps: None,
            busy_ns: None,
            rwnd_limited_ns: None,
            sndbuf_limited_ns: None,
            send_window_bytes: None,
            notsent_bytes: None,
            receive_space_bytes: None,
            is_app_limited: false,
            options: None,
        }
    }
}
