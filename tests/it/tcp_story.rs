//! `tcp_events` and the story columns of `tcp_flows`, against what kernels and the scripts that made the captures say.

use std::path::{Path, PathBuf};

use wirelab::{Input, ScanRequest, TableId};

use crate::support::cells::{self, Value};
use crate::support::{TableBatches, outside_folder, sample, tables, with_threads};

const MS: i128 = 1_000_000;

/// The events of a capture, by column.
struct Events {
    data: TableBatches,
    rows: usize,
}

impl Events {
    fn of(path: &Path) -> Self {
        let data = one(path, TableId::TcpEvents);
        Self { rows: data.num_rows(), data }
    }

    /// Rows of a kind: (side, cause, duration, count, end, frames).
    fn of_kind(&self, kind: &str) -> Vec<Told> {
        let column = |name: &str| cells::column(&self.data.batches, name);
        let (kinds, sides, causes) = (column("kind"), column("side"), column("cause"));
        let (durations, counts, ends) = (column("duration_ns"), column("count"), column("end_reason"));
        let (bytes, frames, flows) = (column("bytes"), column("frames"), column("flow_id"));
        let told = |at: usize| Told {
            side: sides[at].text().unwrap_or("").to_owned(),
            cause: causes[at].text().unwrap_or("").to_owned(),
            end: ends[at].text().unwrap_or("").to_owned(),
            duration_ns: durations[at].int().unwrap(),
            count: counts[at].int().unwrap(),
            bytes: bytes[at].int(),
            flow: flows[at].int().unwrap(),
            frames: match &frames[at] {
                Value::List(frames) => frames.iter().filter_map(Value::int).collect(),
                other => panic!("frames hold {other:?}"),
            },
        };
        (0..self.rows).filter(|at| kinds[*at].text() == Some(kind)).map(told).collect()
    }
}

#[derive(Debug)]
struct Told {
    side: String,
    cause: String,
    end: String,
    duration_ns: i128,
    count: i128,
    bytes: Option<i128>,
    flow: i128,
    frames: Vec<i128>,
}

fn one(path: &Path, table: TableId) -> TableBatches {
    let inputs = vec![Input::Path(path.to_path_buf())];
    tables(inputs, &with_threads(2), &[ScanRequest::new(table)]).unwrap_or_else(|error| panic!("{error}")).remove(0)
}

fn flow_column(path: &Path, name: &str) -> Vec<Value> {
    cells::column(&one(path, TableId::TcpFlows).batches, name)
}

fn lab(name: &str) -> Option<PathBuf> {
    Some(outside_folder("WIRELAB_LAB_CAPTURES", "../shared/lab-captures")?.join(name))
}

#[test]
fn a_receiver_that_stops_reading_is_a_zero_window_of_its_length() {
    let path = sample("tcp-zero-window/tcp-zero-window.pcap");
    let events = Events::of(&path);
    let stalls = events.of_kind("zero_window");
    assert_eq!(stalls.len(), 1, "the kernel closed its window once (TCPToZeroWindowAdv)");
    let stall = &stalls[0];
    assert_eq!((stall.side.as_str(), stall.end.as_str()), ("server", "window_update"));
    // The reader slept 2.5 s; the window closed once its buffer was full. The kernel counts 3 probes (TCPWinProbe).
    assert!((2_300 * MS..2_500 * MS).contains(&stall.duration_ns), "{stall:?}");
    assert_eq!(stall.count, 3);
    assert_eq!(stall.frames, [15, 16, 17, 18, 19, 20, 21]);
    // The sender's kernel: rwnd_limited 2548 ms.
    let limited = flow_column(&path, "client_window_limited_ns")[0].int().unwrap();
    assert!((limited - 2_548 * MS).abs() < 2_548 * MS / 50, "{limited}");
    assert_eq!(flow_column(&path, "server_zero_window_ns")[0].int(), Some(stall.duration_ns));
    assert_eq!(flow_column(&path, "client_zero_window_ns")[0].int(), Some(0));
    assert_eq!(flow_column(&path, "client_longest_stall_ns")[0].int(), Some(stall.duration_ns));
    // bytes_retrans of the kernel: one segment, needlessly (its D-SACK counters).
    let recovery = events.of_kind("recovery");
    assert_eq!((recovery.len(), recovery[0].bytes, recovery[0].end.as_str()), (1, Some(1_448), "spurious"));
}

#[test]
fn messages_have_all_their_words_in_both_languages() {
    for name in ["tcp-zero-window/tcp-zero-window.pcap", "tcp-loss/tcp-loss.h1.pcap", "hping3-syn/hping3-syn.pcap"] {
        let events = one(&sample(name), TableId::TcpEvents);
        assert!(events.num_rows() > 0, "{name}");
        for language in ["message_en", "message_zh"] {
            for message in cells::texts(&events.batches, language) {
                assert!(!message.contains(['{', '}']) && !message.contains("event."), "{name}: {message}");
                assert!(message.ends_with(['.', '。']), "{name}: {message}");
            }
        }
    }
}

#[test]
fn a_scan_by_hping3_leaves_refused_or_half_open_connections() {
    let path = sample("hping3-syn/hping3-syn.pcap");
    let outcomes = flow_column(&path, "handshake");
    assert!(!outcomes.is_empty());
    let events = Events::of(&path);
    let count = |name: &str| outcomes.iter().filter(|outcome| outcome.text() == Some(name)).count();
    for kind in ["refused", "half_open", "no_answer"] {
        assert_eq!(events.of_kind(kind).len(), count(kind), "{kind}");
    }
    assert_eq!(events.of_kind("handshake").len(), count("complete"));
}

#[test]
fn each_way_to_open_a_connection_is_told_as_its_script_made_it() {
    let Some(path) = lab("tcp_handshake.h1.pcap") else { return };
    // Ports 6001 closed, 6002 filtered, 6003 with its first SYN dropped, 6004 reset by SO_LINGER 0.
    let outcomes: Vec<_> =
        flow_column(&path, "handshake").iter().map(|value| value.text().unwrap().to_owned()).collect();
    assert_eq!(outcomes, ["refused", "no_answer", "complete", "complete"]);
    let retries: Vec<_> = flow_column(&path, "syn_retry_count").iter().filter_map(Value::int).collect();
    // The kernel: TCPSynRetrans 4.
    assert_eq!(retries, [0, 3, 1, 0]);
    let closed: Vec<_> = flow_column(&path, "closed_by").iter().map(|value| value.text().unwrap().to_owned()).collect();
    assert_eq!(closed, ["rst", "none", "fin", "rst"]);
    let resets = Events::of(&path).of_kind("reset");
    let told: Vec<_> = resets.iter().map(|reset| (reset.flow, reset.side.as_str(), reset.cause.as_str())).collect();
    assert_eq!(told, [(0, "server", "refused"), (3, "server", "abort")]);
}

#[test]
fn a_blackout_is_one_timeout_with_everything_the_kernel_resent() {
    let Some(path) = lab("tcp_rto_blackout.h1.pcap") else { return };
    let timeouts = Events::of(&path).of_kind("timeout");
    assert_eq!(timeouts.len(), 1);
    // ss: bytes_retrans 178104, retrans 123.
    assert_eq!((timeouts[0].bytes, timeouts[0].count), (Some(178_104), 123));
    assert_eq!((timeouts[0].end.as_str(), timeouts[0].side.as_str()), ("acknowledged", "client"));
    // From the last ACK before (3.077 s) to the one after the fourth timer (9.221 s).
    let stall = flow_column(&path, "client_longest_stall_ns")[1].int().unwrap();
    assert_eq!(stall, 6_143_834_000);
}

#[test]
fn recoveries_and_round_trips_are_the_kernels() {
    let Some(path) = lab("tcp_loss1.h1.pcap") else { return };
    let recoveries = Events::of(&path).of_kind("recovery");
    // TCPSackRecovery 25, TCPFastRetrans 37, bytes_retrans 53576.
    assert!((24..=25).contains(&recoveries.len()), "{}", recoveries.len());
    assert!(recoveries.iter().all(|recovery| recovery.cause == "sack"), "{recoveries:?}");
    assert_eq!(recoveries.iter().map(|recovery| recovery.count).sum::<i128>(), 37);
    assert_eq!(flow_column(&path, "client_retransmit_bytes")[1].int(), Some(53_576));
    for (name, minrtt_us) in [
        ("tcp_loss1.h1.pcap", 10_690),
        ("tcp_ecn_red.h1.pcap", 5_301),
        ("tcp_ecn_dctcp.h1.pcap", 5_299),
        ("tcp_noecn_red.h1.pcap", 5_338),
        ("tcp_rto_blackout.h1.pcap", 11_740),
    ] {
        let Some(path) = lab(name) else { return };
        let least_us = flow_column(&path, "client_rtt_min_ns")[1].int().unwrap() / 1_000;
        // The kernel's own minimum (ss minrtt), which also counts its way from the socket to the tap.
        assert!((least_us - minrtt_us).abs() <= minrtt_us / 50, "{name}: {least_us} us, kernel {minrtt_us} us");
    }
}

#[test]
fn congestion_marks_are_negotiated_echoed_and_answered() {
    let Some(path) = lab("tcp_ecn_red.h1.pcap") else { return };
    // tshark: 261 ACKs with ECE, 22 segments with CWR after the handshake.
    assert_eq!(flow_column(&path, "is_ecn_negotiated")[1], Value::Bool(true));
    assert_eq!(flow_column(&path, "server_ece_count")[1].int(), Some(261));
    assert_eq!(flow_column(&path, "client_cwr_count")[1].int(), Some(22));
    let events = Events::of(&path).of_kind("ecn");
    assert_eq!(events.iter().map(|event| event.count).sum::<i128>(), 261);
    assert!((19..=22).contains(&events.len()), "{}", events.len());
    assert!(events.iter().all(|event| event.side == "client" && event.cause == "ece"));
    let Some(without) = lab("tcp_noecn_red.h1.pcap") else { return };
    assert_eq!(flow_column(&without, "is_ecn_negotiated")[1], Value::Bool(false));
    assert!(Events::of(&without).of_kind("ecn").is_empty());
}

#[test]
fn the_resets_that_end_an_iperf3_test_are_no_fault() {
    let Some(folder) = outside_folder("WIRELAB_LAB_CAPTURES", "../shared/lab-captures") else { return };
    for name in
        ["tcp_clean.h1.pcap", "tcp_clean.h2.pcap", "tcp_loss1.h1.pcap", "tcp_parallel4.h1.pcap", "tcp_corrupt.h2.pcap"]
    {
        let resets = Events::of(&folder.join(name)).of_kind("reset");
        assert!(!resets.is_empty(), "{name}");
        for reset in resets {
            assert!(matches!(reset.cause.as_str(), "test_end" | "after_close"), "{name}: {reset:?}");
        }
    }
}
