//! Logs as they really come: cut, doubled, renumbered, with other things around them.

use proptest::prelude::*;
use wirelab::Lang;
use wirelab::logs::{self, LOG_KINDS, LogError, LogKind};

use super::{Value, bytes_of, cell, cells, codes, expect, int, read_as, text};
use crate::support::crate_root;

const CLIENT: &str = "iperf3_tcp_json.client.txt";

fn whole() -> String {
    String::from_utf8(bytes_of(CLIENT)).unwrap()
}

#[test]
fn iperf3_json_that_ends_in_the_middle_keeps_what_is_there() {
    let json = whole();
    let cut = json.find("\"end\":\t{\n\t\t\"streams\"").unwrap();
    let log = read_as(LogKind::Iperf3, &json.as_bytes()[..cut]);
    expect(
        &log,
        "iperf3",
        &[("is_complete", Value::Bool(false)), ("sent_bytes", Value::Null), ("local_port", int(54178))],
    );
    assert_eq!(cells(&log, "iperf3_intervals", "is_sum").len(), 6);
    assert_eq!(codes(&log), ["json_cut", "iperf3_no_summary"]);
    // Cut anywhere, it is read or refused, and never claims to be complete.
    for length in (0..json.trim_end().len()).step_by(7) {
        if let Ok(log) = logs::read(LogKind::Iperf3, &json.as_bytes()[..length]) {
            assert_eq!(cells(&log, "iperf3", "is_complete"), [Value::Bool(false)], "cut at {length}");
        }
    }
}

#[test]
fn iperf3_json_with_things_around_it() {
    let json = whole();
    let reference = read_as(LogKind::Iperf3, json.as_bytes());
    let cases = [
        (format!("root@h1:~# iperf3 -c 10.9.2.2 -J\n{json}"), vec![]),
        (format!("{json}\niperf Done.\n"), vec!["text_after_json"]),
        (format!("{json}{json}"), vec!["json_twice"]),
        (format!("\u{feff}{}", json.replace('\n', "\r\n")), vec![]),
        (json.replace("\"retransmits\":\t0,", "\"retransmits\":\t-nan,"), vec!["not_a_number"]),
    ];
    for (text, expected) in cases {
        assert_eq!(logs::detect(text.as_bytes()), Some(LogKind::Iperf3));
        let log = read_as(LogKind::Iperf3, text.as_bytes());
        assert_eq!(codes(&log), expected);
        for name in ["sent_bytes", "received_bytes", "test_no", "local_port", "cookie"] {
            assert_eq!(cell(&log, "iperf3", name), cell(&reference, "iperf3", name), "{name}");
        }
    }
}

#[test]
fn what_is_wrong_in_json_is_said_alike_for_every_tool() {
    let perftest =
        "{\"test_info\": {\"test\": \"RDMA_Write_BW\"}, \"results\": {\"MsgSize\": 65536, \"n_iterations\": 5000}}";
    let of_file = |name| String::from_utf8(bytes_of(name)).unwrap();
    let cases = [
        (LogKind::Perftest, perftest.to_owned(), "65536"),
        (LogKind::Nstat, of_file("nstat_j.txt"), "242"),
        (LogKind::Dcb, of_file("dcb_show_j.txt"), "148213"),
    ];
    for (kind, text, figure) in cases {
        let is_json = |code: &&str| code.starts_with("json_") || *code == "not_a_number";
        let said = |text: &str| codes(&read_as(kind, text.as_bytes())).into_iter().filter(is_json).collect::<Vec<_>>();
        let at = text.find(figure).unwrap_or_else(|| panic!("{}: no {figure}", kind.name()));
        let (before, after) = (&text[..at], &text[at + figure.len()..]);
        assert_eq!(said(&text), [""; 0], "{}", kind.name());
        assert_eq!(said(&format!("{before}nan{after}")), ["not_a_number"], "{}", kind.name());
        assert_eq!(said(&format!("{before}?{after}")), ["json_broken"], "{}", kind.name());
        assert_eq!(said(&format!("{before}{figure}")), ["json_cut"], "{}", kind.name());
    }
}

#[test]
fn iperf3_figures_that_overflowed_are_null_and_said() {
    let json = whole().replace("\"bytes\":\t2105016320", "\"bytes\":\t-2189951008");
    let log = read_as(LogKind::Iperf3, json.as_bytes());
    assert_eq!(cell(&log, "iperf3", "sent_bytes"), Value::Null);
    assert_eq!(codes(&log), ["negative_figure"]);
}

#[test]
fn iperf3_json_stream_is_the_same_test_line_by_line() {
    let whole: serde_json::Value = serde_json::from_str(&whole()).unwrap();
    let event = |name: &str, data: &serde_json::Value| format!("{{\"event\":\"{name}\",\"data\":{data}}}\n");
    let mut stream = event("start", &whole["start"]);
    for interval in whole["intervals"].as_array().unwrap() {
        stream.push_str(&event("interval", interval));
    }
    let without_end = stream.clone();
    stream.push_str(&event("end", &whole["end"]));
    let (log, reference) = (read_as(LogKind::Iperf3, stream.as_bytes()), super::real(CLIENT));
    for table in ["iperf3", "iperf3_streams", "iperf3_intervals"] {
        let rows = |log: &logs::Log| crate::support::cells::rows_as_text(&log.table(table).unwrap().batches);
        assert_eq!(rows(&log), rows(&reference), "{table}");
    }
    let log = read_as(
        LogKind::Iperf3,
        format!("{without_end}{{\"event\":\"error\",\"data\":\"interrupt - the client has terminated\"}}\n").as_bytes(),
    );
    expect(
        &log,
        "iperf3",
        &[("error", text("interrupt - the client has terminated")), ("is_complete", Value::Bool(false))],
    );
}

#[test]
fn several_tests_and_runs_in_one_log_are_told_apart() {
    let server = [bytes_of("iperf3_tcp_json.server.txt"), bytes_of("iperf3_udp_json.server.txt")].concat();
    let log = read_as(LogKind::Iperf3, &server);
    assert_eq!(cells(&log, "iperf3", "protocol"), ["TCP", "UDP"].map(text));
    assert_eq!(cells(&log, "iperf3", "test_no"), [1, 2].map(int));
    let server = [bytes_of("iperf3_tcp_text.server.txt"), bytes_of("iperf3_udp_text.server.txt")].concat();
    let log = read_as(LogKind::Iperf3, &server);
    assert_eq!(cells(&log, "iperf3", "protocol"), ["TCP", "UDP"].map(text));
    assert_eq!(cells(&log, "iperf3", "server_port"), [5301, 5306].map(int));
    let runs = [bytes_of("ping_frag_needed.txt"), bytes_of("ping_jumbo_ok.txt"), bytes_of("ping_nohost.txt")].concat();
    let log = read_as(LogKind::Ping, &runs);
    assert_eq!(cells(&log, "ping", "received_count"), [0, 3, 0].map(int));
    assert_eq!(cells(&log, "ping_replies", "run_no"), [1, 1, 1, 2, 2, 2].map(int));
    let runs =
        [bytes_of("perftest_write_bw.txt"), bytes_of("perftest_send_lat.txt"), bytes_of("perftest_4qp.txt")].concat();
    let log = read_as(LogKind::Perftest, &runs);
    assert_eq!(cells(&log, "perftest", "operation"), ["write", "send", "write"].map(text));
    assert_eq!(cells(&log, "perftest_results", "run_no"), [1, 2, 3].map(int));
}

#[test]
fn a_saved_session_holds_logs_of_several_kinds() {
    let session = [
        b"$ ping -c 3 -M do -s 8972 10.9.2.2\n".to_vec(),
        bytes_of("ping_jumbo_ok.txt"),
        b"$ iperf3 -c 10.9.2.2\n".to_vec(),
        bytes_of("iperf3_tcp_text.client.txt"),
    ]
    .concat();
    assert_eq!(logs::kinds(&session), [LogKind::Iperf3, LogKind::Ping]);
    // The command says that "don't fragment" was set, which the output alone does not.
    expect(&read_as(LogKind::Ping, &session), "ping", &[("df", text("set")), ("received_count", int(3))]);
    expect(&read_as(LogKind::Iperf3, &session), "iperf3", &[("local_port", int(36470))]);
    // As `set -x` shows it.
    let traced = [b"+ ping -M dont -s 8972 10.9.2.2\n".to_vec(), bytes_of("ping_jumbo_ok.txt")].concat();
    expect(&read_as(LogKind::Ping, &traced), "ping", &[("df", text("clear"))]);
}

#[test]
fn ping_that_was_cut_is_counted_by_its_lines() {
    let whole = String::from_utf8(bytes_of("ping_delay.txt")).unwrap();
    let cut = whole.find("64 bytes from 10.9.2.2: icmp_seq=8").unwrap();
    let without_second = whole[..cut].replace("64 bytes from 10.9.2.2: icmp_seq=2 ttl=63 time=21.3 ms\n", "");
    let log = read_as(LogKind::Ping, without_second.as_bytes());
    expect(&log, "ping", &[("sent_count", int(7)), ("received_count", int(6)), ("is_complete", Value::Bool(false))]);
    assert_eq!(codes(&log), ["ping_no_summary"]);
    let duplicates = "64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=1 ms\n64 bytes from 10.0.0.2: icmp_seq=1 ttl=64 time=2 ms (DUP!)\n";
    expect(
        &read_as(LogKind::Ping, duplicates.as_bytes()),
        "ping",
        &[("received_count", int(1)), ("duplicate_count", int(1))],
    );
}

#[test]
fn what_is_no_log_is_refused_with_a_reason() {
    let error = |kind, bytes: &[u8]| logs::read(kind, bytes).map(|_| ()).unwrap_err();
    assert_eq!(error(LogKind::Ping, b" \r\n "), LogError::Empty);
    let other = error(LogKind::Ping, &bytes_of(CLIENT));
    assert_eq!(other, LogError::NotThisKind { kind: LogKind::Ping, looks_like: Some(LogKind::Iperf3) });
    assert!(other.message(Lang::En).contains("iperf3") && other.message(Lang::Zh).contains("iperf3"));
    for kind in LOG_KINDS {
        assert_eq!(error(kind, b"I did the lab and it was fun.\n"), LogError::NotThisKind { kind, looks_like: None });
        assert_eq!(error(kind, b"{\"a\": [1, 2, 3]}"), LogError::NotThisKind { kind, looks_like: None });
    }
    for prose in [
        "We measured with iperf3: it was fast.\n",
        "RDMA_Write BW Test results are below\n",
        "Then I sent a ping: no answer.\n",
    ] {
        assert_eq!(logs::detect(prose.as_bytes()), None, "{prose}");
    }
    assert_eq!(logs::detect(b"bash: iperf3: command not found\n"), Some(LogKind::Iperf3));
    let iperf2 = b"------------------------------------------------------------\nClient connecting to 10.0.0.1, TCP port 5001\n[  3]  0.0-10.0 sec  1.10 GBytes   941 Mbits/sec\n";
    assert_eq!(error(LogKind::Iperf3, iperf2), LogError::Iperf2);
    assert_eq!(logs::detect(iperf2), None);
}

#[test]
fn a_flood_of_lines_meets_the_limit_on_rows() {
    let flood = format!("#kernel\n{}", "TcpInSegs 1 0.0\n".repeat(1_000_100));
    let log = read_as(LogKind::Nstat, flood.as_bytes());
    assert_eq!(log.table("nstat").unwrap().num_rows(), 1_000_000);
    assert_eq!(log.findings.iter().find(|finding| finding.code == "row_limit").unwrap().value, Some(100));
}

#[test]
fn lines_without_end_and_lines_without_number_meet_limits() {
    let long = format!("PING 10.0.0.1 (10.0.0.1) 56(84) bytes of data.\n{}", "64 bytes from ".repeat(1 << 20));
    assert_eq!(cells(&read_as(LogKind::Ping, long.as_bytes()), "ping", "received_count"), [int(0)]);
    let many = format!("PING 10.0.0.1 (10.0.0.1) 56(84) bytes of data.{}", "\n".repeat(2_000_100));
    assert!(codes(&read_as(LogKind::Ping, many.as_bytes())).contains(&"line_limit"));
}

#[test]
fn json_that_is_a_bomb_meets_limits() {
    let deep = format!(
        "{{\"start\": {{\"version\": \"iperf 3.12\", \"deep\": {}1{}}}}}",
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    assert!(codes(&read_as(LogKind::Iperf3, deep.as_bytes())).contains(&"json_too_large"));
    let wide = format!("{{\"start\": {{}}, \"end\": {{}}, \"intervals\": [{}]}}", "0,".repeat(2_500_000));
    assert!(codes(&read_as(LogKind::Iperf3, wide.as_bytes())).contains(&"json_too_large"));
}

/// Reads the bytes as every kind; the tables must agree with their schemas and the findings must be sayable.
fn read_as_everything(bytes: &[u8]) {
    let _ = logs::detect(bytes);
    for kind in LOG_KINDS {
        match logs::read(kind, bytes) {
            Ok(log) => {
                codes(&log);
                for (name, table) in &log.tables {
                    assert!(table.batches.iter().all(|batch| batch.schema() == table.schema), "{name}");
                }
            }
            Err(error) => assert!(!error.message(Lang::Zh).is_empty()),
        }
    }
}

fn real_logs() -> Vec<Vec<u8>> {
    let files = crate::support::files_below(&crate_root().join("tests/data/logs"), &[".txt"]);
    assert!(files.len() > 40);
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_a_reader_panic(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        read_as_everything(&bytes);
    }

    #[test]
    fn no_text_of_the_tools_words_makes_a_reader_panic(
        words in proptest::collection::vec(
            prop_oneof![
                "[ -~]{0,12}",
                "[0-9]{1,22}",
                Just("{\"start\":".to_owned()), Just("\"end\":{".to_owned()), Just("\"intervals\":[".to_owned()), Just("}".to_owned()),
                Just("\"event\":\"start\",\"data\":".to_owned()), Just("-nan".to_owned()), Just("\n".to_owned()), Just("\n".to_owned()),
                Just("[  5]".to_owned()), Just("[SUM]".to_owned()), Just("0.00-1.00   sec".to_owned()), Just("3.0 MBytes  4 Gbits/sec".to_owned()),
                Just("- - - - - - -".to_owned()), Just("sender".to_owned()), Just("Accepted connection from".to_owned()),
                Just("PING a (1.2.3.4) 56(84) bytes of data.".to_owned()), Just("bytes from 1.2.3.4: icmp_seq=".to_owned()),
                Just("packets transmitted, ".to_owned()), Just(" received".to_owned()), Just("#bytes #iterations BW average".to_owned()),
                Just("local address: LID 0 QPN 0x PSN 0x".to_owned()), Just("GID: ".to_owned()), Just("ESTAB 0 0 1.2.3.4:5 [::]:6".to_owned()),
                Just("cwnd:1 rto:2 rtt:1/2 retrans:/".to_owned()), Just("NIC statistics:".to_owned()), Just("#kernel".to_owned()),
                Just("HPING a (b c): d, 1 headers + 2 data bytes".to_owned()), Just("len=1 ip=2 rtt=3".to_owned()),
            ],
            0..120,
        )
    ) {
        read_as_everything(words.join(" ").as_bytes());
    }

    #[test]
    fn no_mutation_of_a_real_log_makes_a_reader_panic(
        which in any::<prop::sample::Index>(),
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..4u8), 1..40),
        cut in any::<prop::sample::Index>(),
    ) {
        let logs = real_logs();
        let mut bytes = which.get(&logs).clone();
        for (at, byte, what) in edits {
            if bytes.is_empty() {
                break;
            }
            let at = at.index(bytes.len());
            match what {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                2 => { bytes.remove(at); }
                _ => { let piece = bytes[at..(at + usize::from(byte)).min(bytes.len())].to_vec(); bytes.extend_from_slice(&piece); }
            }
        }
        bytes.truncate(cut.index(bytes.len() + 1).max(bytes.len() / 2));
        read_as_everything(&bytes);
    }
}

/// Asks to stop at the first question.
struct Impatient(u32);

impl wirelab::Observer for Impatient {
    fn on_progress(&mut self, _: u64, _: Option<u64>) -> std::ops::ControlFlow<()> {
        self.0 += 1;
        std::ops::ControlFlow::Break(())
    }
}

#[test]
fn a_hostile_log_is_left_as_soon_as_the_observer_asks() {
    // Each takes many seconds to its end.
    let line = "[  5]   0.00-1.00   sec   128 KBytes  1.05 Mbits/sec    0    245 KBytes\n";
    let text = format!("Connecting to host 10.0.0.1, port 5201\n{}", line.repeat(400_000));
    let broken = "{\"start\": {\"a\": [1,2,3".repeat(1_000_000);
    let echoes = "64 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=0.1 ms\n".repeat(400_000);
    for (kind, text) in [(LogKind::Iperf3, text), (LogKind::Iperf3, broken), (LogKind::Ping, echoes)] {
        let (mut observer, began) = (Impatient(0), std::time::Instant::now());
        let error = logs::read_observed(kind, text.as_bytes(), &mut observer).map(|_| ()).unwrap_err();
        assert_eq!((error, observer.0), (LogError::Cancelled, 1), "{kind}");
        assert!(began.elapsed().as_secs_f64() < 2.0, "{kind}: {:?}", began.elapsed());
    }
    // And one that is short is read, whoever asks.
    let log = logs::read_observed(LogKind::Iperf3, line.as_bytes(), &mut wirelab::Unobserved).unwrap();
    assert_eq!(log.table("iperf3_intervals").unwrap().num_rows(), 1);
}

#[test]
fn an_empty_log_has_all_tables_of_its_kind() {
    for kind in LOG_KINDS {
        let log = logs::empty(kind);
        let names: Vec<_> = log.tables.iter().map(|(name, _)| *name).collect();
        let expected: Vec<_> = kind.tables().iter().map(|table| table.name).chain(["log_quality"]).collect();
        assert_eq!(names, expected);
        assert!(log.tables.iter().all(|(_, table)| table.num_rows() == 0));
    }
}
