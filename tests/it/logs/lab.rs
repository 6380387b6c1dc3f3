//! What the tools printed while the lab captures were made, next to the kernel's own counters: all of it is read.

use serde_json::{Value as Json, json};
use wirelab::logs::{self, LogKind};

use super::{Value, cell, cells, int, read_as};
use crate::support::{files_below, outside_folder};

/// The kind of tool output under a key of `truth`, `None` for what no reader is for.
fn kind_of(key: &str, output: &str) -> Option<LogKind> {
    match key {
        key if key.starts_with("ping") => Some(LogKind::Ping),
        key if key.starts_with("hping") => Some(LogKind::Hping3),
        "client_out" | "server_out" if output.contains(" Test\n") => Some(LogKind::Perftest),
        _ => None,
    }
}

/// Python's `json` module writes and reads what serde_json cannot, such as NaN; these files hold none.
fn lab_files() -> Vec<(String, Json)> {
    let Some(folder) = outside_folder("WIRELAB_LAB_CAPTURES", "../shared/lab-captures") else { return Vec::new() };
    let files = files_below(&folder, &[".json"]);
    assert!(files.len() > 30, "{} files", files.len());
    let read = |path: &std::path::PathBuf| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
    };
    files.iter().map(read).collect()
}

#[test]
fn lab_captures_tool_output_is_detected_and_read() {
    let files = lab_files();
    let mut counts = std::collections::BTreeMap::new();
    for (name, file) in &files {
        for (key, output) in file["truth"].as_object().unwrap() {
            let Some(output) = output.as_str() else { continue };
            let Some(kind) = kind_of(key, output) else {
                assert!(!output.contains("rtt min/avg/max") && !output.contains("BW average"), "{name}.{key}");
                continue;
            };
            assert_eq!(logs::detect(output.as_bytes()), Some(kind), "{name}.{key}");
            let log = read_as(kind, output.as_bytes());
            *counts.entry(kind.name()).or_insert(0) += 1;
            match kind {
                LogKind::Ping => ping(&log, name, key, output),
                LogKind::Perftest => perftest(&log, name, key, output),
                LogKind::Hping3 => assert_eq!(cell(&log, "hping3", "is_complete"), Value::Bool(true)),
                _ => unreachable!("{kind}"),
            }
        }
    }
    println!("read {counts:?}");
    assert!(
        files.is_empty() || (counts["ping"] >= 10 && counts["perftest"] >= 40 && counts["hping3"] == 2),
        "{counts:?}"
    );
}

/// The counts of a ping are those of its own words, found in another way.
fn ping(log: &logs::Log, name: &str, key: &str, output: &str) {
    let summary = output.lines().find(|line| line.contains("packets transmitted")).unwrap();
    let numbers: Vec<i128> = summary.split([' ', ',']).filter_map(|word| word.parse().ok()).collect();
    let expected = [int(numbers[0]), int(numbers[1])];
    assert_eq!([cell(log, "ping", "sent_count"), cell(log, "ping", "received_count")], expected, "{name}.{key}");
    let kinds = cells(log, "ping_replies", "kind");
    let replies = kinds.iter().filter(|kind| **kind == super::text("reply")).count();
    assert_eq!(replies as i128, numbers[1], "{name}.{key}");
    assert_eq!(kinds.len() - replies, output.matches("mtu").count(), "{name}.{key}: {kinds:?}");
    if output.contains("mtu") {
        let mtu: i128 = output
            .split("mtu")
            .nth(1)
            .unwrap()
            .trim_start_matches([' ', '='])
            .split([')', '\n'])
            .next()
            .unwrap()
            .parse()
            .unwrap();
        assert_eq!(cell(log, "ping", "path_mtu_bytes"), int(mtu), "{name}.{key}");
    }
}

/// Every address line is a queue pair, every line of figures a result.
fn perftest(log: &logs::Log, name: &str, key: &str, output: &str) {
    let qps = cells(log, "perftest_qps", "local_qp");
    assert_eq!(qps.len(), output.matches("local address:").count(), "{name}.{key}");
    assert!(qps.iter().chain(&cells(log, "perftest_qps", "remote_psn")).all(|qp| *qp != Value::Null), "{name}.{key}");
    let is_figures = |line: &&str| {
        line.split_whitespace().count() >= 5 && line.split_whitespace().all(|word| word.parse::<f64>().is_ok())
    };
    assert_eq!(
        cells(log, "perftest_results", "message_bytes").len(),
        output.lines().filter(is_figures).count(),
        "{name}.{key}"
    );
    let is_server = output.contains("Waiting for client");
    assert_eq!(cell(log, "perftest", "role"), super::text(if is_server { "server" } else { "client" }), "{name}.{key}");
    for (rate, bps, bytes) in itertools3(log) {
        // Both are printed with few digits after the point: small figures say little.
        assert!(
            rate < 100.0 || bps < 8e6 || (rate * bytes * 8.0 / bps - 1.0).abs() < 0.1,
            "{name}.{key}: {rate} {bytes} {bps}"
        );
    }
}

fn itertools3(log: &logs::Log) -> Vec<(f64, f64, f64)> {
    let column = |name| cells(log, "perftest_results", name);
    let zipped = column("messages_per_second").into_iter().zip(column("average_bps")).zip(column("message_bytes"));
    zipped
        .filter_map(|((rate, bps), bytes)| match (rate, bps, bytes) {
            (Value::Float(rate), Value::Int(bps), Value::Int(bytes)) => Some((rate, bps as f64, bytes as f64)),
            _ => None,
        })
        .collect()
}

#[test]
fn lab_captures_nstat_deltas_are_read_as_nstat_prints_them() {
    let mut samples = 0;
    for (name, file) in lab_files() {
        let truth = &file["truth"];
        let hosts = truth["nstat_delta"].as_object().into_iter().flat_map(|hosts| hosts.values());
        let vms = ["vm0", "vm1"].into_iter().filter_map(|vm| truth.get(vm)?.get("nstat"));
        for counters in hosts.chain(vms) {
            let counters = counters.as_object().unwrap();
            let as_json = json!({ "kernel": counters }).to_string();
            let as_text: String = counters
                .iter()
                .map(|(name, value)| format!("{name:<32}{:<16}0.0\n", value.as_i64().unwrap()))
                .collect();
            for text in [as_json, format!("#kernel\n{as_text}")] {
                let log = read_as(LogKind::Nstat, text.as_bytes());
                let values: Vec<i128> =
                    cells(&log, "nstat", "value").iter().map(|value| value.int().unwrap()).collect();
                let expected: Vec<i128> = counters.values().map(|value| value.as_i64().unwrap().into()).collect();
                assert_eq!(values, expected, "{name}");
            }
            samples += 1;
        }
    }
    println!("read {samples} samples of nstat");
}

#[test]
fn lab_captures_sockets_are_read_as_ss_prints_them() {
    let mut sockets = 0;
    for (name, file) in lab_files() {
        let Some(last) = file["truth"]["ss"]["last"].as_object() else { continue };
        for (connection, line) in last {
            let line = line.as_str().unwrap();
            let log = read_as(LogKind::Ss, line.as_bytes());
            let (local, remote) = connection.split_once('>').unwrap();
            let shown = |ip: &str, port: &str| {
                format!("{}:{}", cell(&log, "ss", ip).text().unwrap(), cell(&log, "ss", port).int().unwrap())
            };
            assert_eq!(shown("local_ip", "local_port"), local, "{name}");
            assert_eq!(shown("remote_ip", "remote_port"), remote, "{name}");
            let number = |mark: &str| {
                line.split(mark).nth(1).and_then(|rest| rest.split([' ', '/', '(']).next()?.parse::<i128>().ok())
            };
            for (column, mark) in [
                ("mss_bytes", " mss:"),
                ("cwnd_segments", " cwnd:"),
                ("retransmitted_bytes", " bytes_retrans:"),
                ("pmtu_bytes", " pmtu:"),
            ] {
                assert_eq!(cell(&log, "ss", column).int(), number(mark), "{name} {column}");
            }
            let resent = line.split(" retrans:").nth(1).and_then(|rest| rest.split(['/', ' ']).nth(1)?.parse().ok());
            assert_eq!(cell(&log, "ss", "retransmit_count").int(), Some(resent.unwrap_or(0)), "{name}");
            sockets += 1;
        }
    }
    println!("read {sockets} sockets of ss");
}

/// The lab kept parts of iperf3's report: put together again, they are a report without a start.
#[test]
fn lab_captures_iperf3_reports_are_read() {
    let mut reports = 0;
    for (name, file) in lab_files() {
        let truth = &file["truth"];
        let Some(sums) = truth["iperf3"].as_object() else { continue };
        let intervals: Vec<Json> = truth["iperf3_intervals"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|sum| json!({"streams": [], "sum": sum}))
            .collect();
        let mut end = sums.clone();
        end.insert("streams".into(), truth["iperf3_streams"].clone());
        let report = json!({"start": {"version": "iperf 3.12"}, "intervals": intervals, "end": end});
        let log = read_as(LogKind::Iperf3, report.to_string().as_bytes());
        let figure = |path: &str| report.pointer(path).and_then(Json::as_u64).map(i128::from);
        let expected =
            if sums.contains_key("sum_sent") { figure("/end/sum_sent/bytes") } else { figure("/end/sum/bytes") };
        assert_eq!(cell(&log, "iperf3", "sent_bytes").int(), expected, "{name}");
        assert_eq!(cell(&log, "iperf3", "received_bytes").int(), figure("/end/sum_received/bytes"), "{name}");
        assert_eq!(cell(&log, "iperf3", "retransmit_count").int(), figure("/end/sum_sent/retransmits"), "{name}");
        assert_eq!(cell(&log, "iperf3", "lost_count").int(), figure("/end/sum/lost_packets"), "{name}");
        let streams = truth["iperf3_streams"].as_array().map_or(0, Vec::len);
        assert_eq!(cells(&log, "iperf3_streams", "stream_no").len(), streams, "{name}");
        assert_eq!(cells(&log, "iperf3_intervals", "is_sum").len(), intervals.len(), "{name}");
        reports += 1;
    }
    println!("read {reports} reports of iperf3");
}
