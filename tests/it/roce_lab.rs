//! The analysis of RoCE against the kernel's own counters: every `roce_*` lab capture, each end by the capture taken there.
//!
//! The lab's hosts run Soft-RoCE (rxe), whose counters say what its requester and responder did. Where ours differ, the
//! difference is named here with its reason.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use wirelab::{Input, ScanRequest, TableId};

use crate::support::cells::{self, Value};
use crate::support::{TableBatches, outside_folder, tables, with_threads};

const HOSTS: [(&str, &str); 2] = [("vm0", "10.77.0.1"), ("vm1", "10.77.0.2")];

/// Rows of a table: cells by column name.
struct Rows {
    columns: BTreeMap<String, Vec<Value>>,
    count: usize,
}

impl Rows {
    fn of(data: &TableBatches) -> Self {
        let names = data.table.definition().columns.iter().map(|column| column.name.to_owned());
        let columns = names.map(|name| (name.clone(), cells::column(&data.batches, &name))).collect();
        Self { columns, count: data.num_rows() }
    }

    fn text(&self, name: &str, row: usize) -> &str {
        self.columns[name][row].text().unwrap_or("")
    }

    fn int(&self, name: &str, row: usize) -> Option<i128> {
        self.columns[name][row].int()
    }

    /// Rows of which a column holds a text.
    fn having<'a>(&'a self, name: &'a str, text: &'a str) -> impl Iterator<Item = usize> + 'a {
        (0..self.count).filter(move |row| self.text(name, *row) == text)
    }
}

struct Seen {
    packets: Rows,
    qps: Rows,
    messages: Rows,
}

impl Seen {
    fn of(path: &Path) -> Self {
        let requests = [TableId::Roce, TableId::RoceQps, TableId::RoceMessages].map(ScanRequest::new);
        let inputs = vec![Input::Path(path.to_path_buf())];
        let tables = tables(inputs, &with_threads(2), &requests).unwrap_or_else(|error| panic!("{error}"));
        let [packets, qps, messages] = [0, 1, 2].map(|at| Rows::of(&tables[at]));
        Self { packets, qps, messages }
    }

    /// A column of the queue pairs whose `end` (`requester_ip`, `responder_ip`) is the host, added up; null counts nothing.
    fn qp_sum(&self, end: &str, host: &str, column: &str) -> i128 {
        self.qps.having(end, host).filter_map(|row| self.qps.int(column, row)).sum()
    }

    /// Packets with `column` = `value` that the host sent (`src_ip`) or received (`dst_ip`).
    fn packets_with(&self, end: &str, host: &str, column: &str, value: &str) -> i128 {
        self.packets.having(end, host).filter(|row| self.packets.text(column, *row) == value).count() as i128
    }

    /// Sequence NAKs that told the host something new: their number lies beyond all that was acknowledged or NAKed before.
    fn news_by_nak(&self, host: &str) -> i128 {
        let mut known: BTreeMap<i128, i128> = BTreeMap::new();
        let mut count = 0;
        for row in self.packets.having("dst_ip", host) {
            let (Some(qp), Some(psn)) = (self.packets.int("qp_id", row), self.packets.int("psn", row)) else {
                continue;
            };
            let syndrome = self.packets.text("aeth", row);
            let opcode = self.packets.int("opcode", row).unwrap_or(0) & 0x1f;
            if !(0x0d..=0x12).contains(&opcode) {
                continue;
            }
            let next = if syndrome.is_empty() || syndrome == "ACK" { psn + 1 } else { psn };
            let before = known.get(&qp).copied();
            let is_news = before.is_none_or(|before| (next - before).rem_euclid(1 << 24) < 1 << 23 && next != before);
            count += i128::from(is_news && syndrome == "NAK_PSN_SEQUENCE_ERROR");
            if is_news {
                known.insert(qp, next);
            }
        }
        count
    }

    /// Messages that end with a completion on the host's side: at the requester every SEND that was carried out or refused,
    /// at the responder every message that was carried out and consumes a receive request: SEND, and WRITE with immediate.
    fn completions(&self, end: &str, host: &str) -> i128 {
        let is_counted = |row: &usize| {
            let is_write_imm =
                self.messages.text("operation", *row) == "write" && self.messages.int("imm", *row).is_some();
            let (is_send, is_at_responder) = (self.messages.text("operation", *row) == "send", end == "responder_ip");
            match self.messages.text("completion", *row) {
                "acknowledged" | "sent" => is_send || is_write_imm && is_at_responder,
                "failed" => is_send && !is_at_responder,
                _ => false,
            }
        };
        self.messages.having(end, host).filter(is_counted).count() as i128
    }
}

/// What the capture at a host says the host's counter is.
fn ours(seen: &Seen, counter: &str, host: &str) -> i128 {
    match counter {
        "sent_pkts" => seen.packets.having("src_ip", host).count() as i128,
        "rcvd_pkts" => {
            let damaged = seen.packets_with("dst_ip", host, "arrival", "damaged");
            seen.packets.having("dst_ip", host).count() as i128 - damaged
        }
        "out_of_seq_request" => seen.qp_sum("responder_ip", host, "gap_count"),
        "duplicate_request" => seen.qp_sum("responder_ip", host, "duplicate_count"),
        "send_rnr_err" => seen.packets_with("src_ip", host, "aeth", "RNR_NAK"),
        "rcvd_rnr_err" => seen.packets_with("dst_ip", host, "aeth", "RNR_NAK"),
        "completer_retry_err" => seen.qp_sum("requester_ip", host, "rewind_count"),
        "rcvd_seq_err" => seen.news_by_nak(host),
        "rdma_sends" => seen.completions("requester_ip", host),
        "rdma_recvs" => seen.completions("responder_ip", host),
        other => panic!("{other} is not compared"),
    }
}

const COUNTERS: [&str; 10] = [
    "sent_pkts",
    "rcvd_pkts",
    "out_of_seq_request",
    "duplicate_request",
    "send_rnr_err",
    "rcvd_rnr_err",
    "completer_retry_err",
    "rcvd_seq_err",
    "rdma_sends",
    "rdma_recvs",
];

/// Differences with their reasons: capture, host, counter, ours, kernel's. Everything else is equal.
const EXPLAINED: [(&str, &str, &str, i128, i128, &str); 5] = [
    (
        "roce_corrupt",
        "vm1",
        "rcvd_pkts",
        2_952,
        2_951,
        "frame 1799: a flipped bit in the destination MAC address, outside of all checks; tcpdump's promiscuous tap takes it, the host does not",
    ),
    (
        "roce_verbs",
        "vm0",
        "completer_retry_err",
        3,
        8,
        "rxe's retransmission timer (67 ms) runs on while its requester waits 399 ms for a receiver that is not ready (frames 1 to 101): it expires five times, each counts, and the requester still waits for the RNR timer before it sends (frames 69 and 70 are both timers at once)",
    ),
    (
        "roce_verbs",
        "vm0",
        "rdma_sends",
        9,
        11,
        "the SENDs of frames 103 (RNR retries used up) and 201 (retries used up) complete with an error of the requester's own, which sends nothing",
    ),
    (
        "roce_verbs",
        "vm1",
        "rcvd_pkts",
        116,
        111,
        "frames 201 to 204 go to a queue pair that is gone, frame 137 to one in error: rxe drops them before it counts",
    ),
    (
        "roce_write_reorder",
        "vm0",
        "rcvd_seq_err",
        32,
        31,
        "the NAKs of frames 149, 150 and 152 come before the requester goes back for that of frame 147 (frame 154); rxe reads on with the next answer (frame 178; its ack_deferred of 6 counts what came while others waited), while only a part of the fourth message (PSN base + 48 to 63) is sent again: 149 and 150 name numbers in it and count, 152 names the fifth and is dropped",
    ),
];

fn lab() -> Option<PathBuf> {
    outside_folder("WIRELAB_LAB_CAPTURES", "../shared/lab-captures")
}

fn captures(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter_map(|name| Some(name.strip_suffix(".json")?.to_owned()).filter(|name| name.starts_with("roce_")))
        .collect();
    names.sort();
    names
}

fn kernel_counters(folder: &Path, name: &str, host: &str) -> BTreeMap<String, i128> {
    let text = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let counters = json["truth"][host]["rxe_hw"].as_object().cloned().unwrap_or_default();
    counters.into_iter().filter_map(|(name, value)| Some((name, i128::from(value.as_i64()?)))).collect()
}

#[test]
fn every_lab_capture_reproduces_the_kernels_rxe_counters() {
    let Some(folder) = lab() else { return };
    let names = captures(&folder);
    assert!(names.len() >= 20, "{names:?}");
    let mut failures = Vec::new();
    println!("| capture | host | counter | ours | kernel | |\n|---|---|---|---|---|---|");
    for name in &names {
        for (host, ip) in HOSTS {
            let seen = Seen::of(&folder.join(format!("{name}.{host}.pcap")));
            let kernel = kernel_counters(&folder, name, host);
            for counter in COUNTERS {
                let (ours, kernel) = (ours(&seen, counter, ip), kernel.get(counter).copied().unwrap_or(0));
                if ours == 0 && kernel == 0 {
                    continue;
                }
                let reason = EXPLAINED.iter().find(|known| (known.0, known.1, known.2) == (name, host, counter));
                let is_explained = reason.is_some_and(|known| (known.3, known.4) == (ours, kernel));
                let is_fine = ours == kernel || is_explained;
                let note = match (is_fine, reason) {
                    (true, Some(known)) => known.5,
                    (true, None) => "",
                    (false, _) => "DIFFERS",
                };
                println!("| {name} | {host} | {counter} | {ours} | {kernel} | {note} |");
                if !is_fine {
                    failures.push(format!("{name} {host} {counter}: ours {ours}, kernel {kernel}"));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{} differences:\n{}", failures.len(), failures.join("\n"));
}

/// By source, IP identification, opcode and number.
type SaidByPacket = BTreeMap<(String, i128, i128, i128), Vec<(String, String)>>;

/// What is said of each packet of a capture, by what identifies the packet at both ends: source, IP identification, opcode
/// and number.
fn said_by_packet(path: &Path) -> SaidByPacket {
    let requests = [TableId::Roce, TableId::Packets].map(ScanRequest::new);
    let tables = tables(vec![Input::Path(path.to_path_buf())], &with_threads(2), &requests).unwrap();
    let (roce, packets) = (Rows::of(&tables[0]), Rows::of(&tables[1]));
    let id_of: BTreeMap<_, _> =
        (0..packets.count).map(|row| (packets.int("frame_no", row), packets.int("ip_id", row))).collect();
    let mut said: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for row in 0..roce.count {
        let id = id_of[&roce.int("frame_no", row)].unwrap_or(-1);
        let number = |name| roce.int(name, row).unwrap_or(-1);
        let key = (roce.text("src_ip", row).to_owned(), id, number("opcode"), number("psn"));
        let words = (roce.text("sent", row).to_owned(), roce.text("arrival", row).to_owned());
        said.entry(key).or_default().push(words);
    }
    said
}

const IMPAIRED: [&str; 6] = [
    "roce_write_loss1",
    "roce_write_reorder",
    "roce_write_dup",
    "roce_write_ackloss",
    "roce_read_loss1",
    "roce_corrupt",
];

#[test]
fn what_was_sent_again_is_the_same_at_both_ends() {
    let Some(folder) = lab() else { return };
    for name in IMPAIRED {
        let [near, far] = ["vm0", "vm1"].map(|host| said_by_packet(&folder.join(format!("{name}.{host}.pcap"))));
        let (mut compared, mut first_seen, mut wrong) = (0, 0, Vec::new());
        // The requester sees every request as it leaves.
        for (key, at_sender) in near.iter().filter(|(key, _)| key.0 == HOSTS[0].1) {
            let is_request = !(0x0d..=0x12).contains(&(key.2 & 0x1f));
            let Some(there) = far.get(key).filter(|_| is_request && at_sender.len() == 1) else { continue };
            let (sent, first) = (&at_sender[0].0, &there[0]);
            if first.1 == "damaged" {
                continue;
            }
            compared += 1;
            // The first sending of the last packet under way was lost before the tap: its repetition is the first to come,
            // just where the next new packet is due.
            if sent == "retransmit" && first.0 == "new" {
                first_seen += 1;
                continue;
            }
            if *sent != first.0 {
                wrong.push(format!("{key:?}: {sent} at its sender, {} at its receiver", first.0));
            }
        }
        assert!(compared > 100, "{name}: {compared} compared");
        assert!(first_seen <= 2, "{name}: {first_seen} repetitions taken for first sendings");
        assert!(wrong.is_empty(), "{name}: {} of {compared} differ: {:#?}", wrong.len(), &wrong[..wrong.len().min(9)]);
    }
}

#[test]
fn what_is_said_of_arrivals_elsewhere_is_what_the_receiver_saw() {
    let Some(folder) = lab() else { return };
    let mut told = 0;
    for name in captures(&folder) {
        let ends = HOSTS.map(|(host, ip)| (ip, said_by_packet(&folder.join(format!("{name}.{host}.pcap")))));
        for (sender, receiver) in [(&ends[0], &ends[1]), (&ends[1], &ends[0])] {
            for (key, at_sender) in sender.1.iter().filter(|(key, _)| key.0 == sender.0) {
                let arrival = &at_sender[0].1;
                if arrival.is_empty() || arrival == "unknown" {
                    continue;
                }
                let there = receiver.1.get(key).unwrap_or_else(|| panic!("{name}: {key:?} did not arrive"));
                // The first copy, where the network made another.
                let is_same = there[0].1 == *arrival || there[0].1 == "unknown";
                assert!(is_same, "{name}: {key:?}: {arrival} at its sender, {} at its receiver", there[0].1);
                told += 1;
            }
        }
    }
    assert!(told > 5_000, "{told} arrivals told at the sender");
}

#[test]
fn the_requesters_tap_does_not_call_repetitions_duplicates() {
    let Some(folder) = lab() else { return };
    let seen = Seen::of(&folder.join("roce_corrupt.vm0.pcap"));
    let again: Vec<usize> = seen.packets.having("sent", "retransmit").collect();
    // As many as 2,060 packets carry a number that passed before; the responder's kernel counts no duplicate.
    assert!(again.len() > 2_000, "{}", again.len());
    assert!(again.iter().all(|row| seen.packets.text("arrival", *row) == "unknown"));
    assert_eq!(seen.packets.having("arrival", "duplicate").count(), 0);
}

#[test]
fn messages_of_every_lab_capture_are_as_long_as_perftest_asked() {
    let Some(folder) = lab() else { return };
    // Capture, operation, bytes of each message, how many.
    for (name, operation, bytes, count) in [
        ("roce_write_rc", "write", 65_536, 30),
        ("roce_read_rc", "read", 65_536, 40),
        ("roce_write_loss1", "write", 65_536, 40),
        ("roce_read_loss1", "read", 65_536, 40),
        ("roce_send_rc", "send", 4_096, 200),
        ("roce_send_uc", "send", 4_096, 100),
        ("roce_send_ud", "send", 1_024, 300),
        ("roce_write_uc", "write", 8_192, 100),
        ("roce_atomic_cs", "compare_swap", 0, 200),
        ("roce_atomic_fa", "fetch_add", 0, 200),
        // Whole messages were overtaken by others, or lost before the receiver's tap when they were sent first.
        ("roce_write_reorder", "write", 16_384, 60),
        ("roce_corrupt", "write", 16_384, 60),
        ("roce_ecn_red", "write", 65_536, 40),
        ("roce_write_dup", "write", 16_384, 60),
        ("roce_write_ackloss", "write", 16_384, 100),
        ("roce_write_4qp", "write", 16_384, 200),
        ("roce_mtu4096", "write", 65_536, 40),
        ("roce_pfc", "write", 32_768, 60),
    ] {
        for (host, ip) in HOSTS {
            let seen = Seen::of(&folder.join(format!("{name}.{host}.pcap")));
            let of_test = |row: &usize| {
                seen.messages.text("operation", *row) == operation && seen.messages.int("bytes", *row) == Some(bytes)
            };
            let rows: Vec<usize> = seen.messages.having("requester_ip", HOSTS[0].1).filter(of_test).collect();
            assert_eq!(rows.len(), count, "{name} {host} ({ip})");
            for row in rows {
                let completion = seen.messages.text("completion", row);
                assert!(completion != "unfinished" && completion != "failed", "{name} {host} row {row}: {completion}");
                let payload = seen.messages.int("payload_bytes", row);
                let is_data = operation == "write" || operation == "send";
                assert!(!is_data || payload == Some(bytes), "{name} {host} row {row}: {payload:?} bytes of {bytes}");
            }
        }
    }
}

#[test]
fn four_queue_pairs_are_four_and_every_one_finds_its_peer() {
    let Some(folder) = lab() else { return };
    for (host, _) in HOSTS {
        let seen = Seen::of(&folder.join(format!("roce_write_4qp.{host}.pcap")));
        assert_eq!(seen.qps.count, 4);
        for row in 0..4 {
            // On Soft-RoCE both ends happen to give the same numbers.
            assert_eq!(seen.qps.int("requester_qp", row), seen.qps.int("responder_qp", row));
            assert_eq!((seen.qps.text("paired_by", row), seen.qps.text("pair_confidence", row)), ("psn", "high"));
        }
        let both = Seen::of(&folder.join(format!("roce_write_bidir.{host}.pcap")));
        assert_eq!(both.qps.count, 2);
        assert_eq!((both.qps.int("peer_qp_id", 0), both.qps.int("peer_qp_id", 1)), (Some(1), Some(0)));
    }
}

/// Queue pairs, events and findings of a capture.
fn told(path: &Path) -> [Rows; 3] {
    let requests = [TableId::RoceQps, TableId::RoceEvents, TableId::CaptureQuality].map(ScanRequest::new);
    let tables = tables(vec![Input::Path(path.to_path_buf())], &with_threads(2), &requests).unwrap();
    [0, 1, 2].map(|at| Rows::of(&tables[at]))
}

#[test]
fn what_the_lab_captures_say_of_repetitions_is_what_happened() {
    let Some(folder) = lab() else { return };
    let of = |name: &str| told(&folder.join(format!("{name}.pcap")));
    let has = |findings: &Rows, code: &str| findings.having("code", code).next();
    // READs that were asked for again: answered again, not dropped. Twice the timer was why, seen from either end.
    let ends = ["roce_read_loss1.vm0", "roce_read_loss1.vm1"].map(of);
    for ([qps, events, findings], tap) in ends.iter().zip(["requester", "responder"]) {
        assert_eq!(qps.text("tap", 0), tap);
        assert_eq!((has(findings, "roce_discarded"), qps.int("discarded_count", 0).unwrap_or(0)), (None, 0));
        let waited: Vec<_> = events.having("cause", "timeout").map(|row| events.int("psn", row)).collect();
        assert_eq!(waited, [Some(12_145_813), Some(12_146_296)], "{tap}");
    }
    // Packets overtook each other all the time; the timer ran out twice.
    for name in ["roce_write_reorder.vm0", "roce_write_reorder.vm1"] {
        let [_, events, _] = of(name);
        let waited: Vec<_> = events.having("cause", "timeout").map(|row| events.int("frame_no", row)).collect();
        assert_eq!(waited, [Some(1_152), Some(1_817)], "{name}");
    }
    // Copies that the network made.
    let [qps, _, findings] = of("roce_write_dup.vm1");
    assert_eq!((qps.int("network_duplicate_count", 0), qps.int("discarded_count", 0)), (Some(16), Some(0)));
    let codes = ["duplicate_frames", "roce_discarded"].map(|code| has(&findings, code));
    assert_eq!((codes, has(&findings, "roce_network_duplicates").is_some()), ([None, None], true));
    // A lost acknowledgement, seen where it was sent.
    let [_, events, findings] = of("roce_write_ackloss.vm1");
    let back = events.having("kind", "go_back_n").next().unwrap();
    assert_eq!((events.int("frame_no", back), events.text("end_reason", back)), (Some(1_701), "acknowledged"));
    assert!(events.text("message_en", back).contains("by frame 1700"), "{}", events.text("message_en", back));
    let waited = findings.text("message_en", has(&findings, "roce_timeout_wait").unwrap());
    assert!(waited.contains("everything had been answered") && !waited.contains("lost last packet"), "{waited}");
    // Where nothing answers, nothing tells how long it took.
    for name in ["roce_send_ud.vm0", "roce_send_uc.vm1", "roce_write_uc.vm0"] {
        let [qps, ..] = of(name);
        assert_eq!(["median", "p99", "max"].map(|of| qps.int(&format!("latency_{of}_ns"), 0)), [None; 3], "{name}");
    }
}
