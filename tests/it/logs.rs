//! Logs of lab tools: what real ones say, and what broken ones leave.

mod broken;
mod counters;
mod lab;
mod windows;

use wirelab::Lang;
use wirelab::logs::{self, Log, LogKind};

use crate::support::cells::{Value, column};
use crate::support::crate_root;

/// A log of `tests/data/logs`.
fn bytes_of(name: &str) -> Vec<u8> {
    let path = crate_root().join("tests/data/logs").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn read_as(kind: LogKind, bytes: &[u8]) -> Log {
    logs::read(kind, bytes).unwrap_or_else(|error| panic!("{error}"))
}

/// Reads a log of the kind that it is detected to be.
fn real(name: &str) -> Log {
    let bytes = bytes_of(name);
    let kind = logs::detect(&bytes).unwrap_or_else(|| panic!("{name} is of no kind"));
    assert!(name.starts_with(kind.name()), "{name} is taken for {kind}");
    read_as(kind, &bytes)
}

fn cells(log: &Log, table: &str, name: &str) -> Vec<Value> {
    column(&log.table(table).unwrap_or_else(|| panic!("there is no table {table}")).batches, name)
}

/// The only row's cell.
fn cell(log: &Log, table: &str, name: &str) -> Value {
    let cells = cells(log, table, name);
    assert_eq!(cells.len(), 1, "{table}.{name}");
    cells[0].clone()
}

fn int(value: i128) -> Value {
    Value::Int(value)
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

fn codes(log: &Log) -> Vec<&'static str> {
    for finding in &log.findings {
        for lang in [Lang::En, Lang::Zh] {
            let message = finding.message(lang);
            // What a finding quotes may hold braces; no placeholder may be left.
            let is_filled = ["{value}", "{line}", "{text}"].iter().all(|name| !message.contains(name));
            assert!(is_filled && !message.starts_with("log."), "{message}");
        }
    }
    log.findings.iter().map(|finding| finding.code).collect()
}

/// Checks columns of a table's only row.
fn expect(log: &Log, table: &str, expected: &[(&str, Value)]) {
    for (name, value) in expected {
        assert_eq!(&cell(log, table, name), value, "{table}.{name}");
    }
}

#[test]
fn every_kind_has_a_name_and_documented_tables() {
    for kind in logs::LOG_KINDS {
        assert_eq!(LogKind::from_name(kind.name()), Some(kind));
        for table in kind.tables() {
            for column in &table.columns {
                let name = format!("{}.{}", table.name, column.name);
                assert!(column.doc.trim().ends_with('.'), "{name}: its comment is no sentence");
                assert!(!column.name.ends_with("_ms") && !column.name.ends_with("_us"), "{name}: unit");
                let is_truth = ["is_", "has_"].iter().any(|start| column.name.starts_with(start));
                assert_eq!(column.data_type == arrow_schema::DataType::Boolean, is_truth, "{name}");
                assert!(!column.name.ends_with("_ns") || column.data_type == arrow_schema::DataType::Int64, "{name}");
            }
        }
    }
    assert_eq!(LogKind::from_name("nccl"), None);
}

#[test]
fn iperf3_json_of_a_client() {
    let log = real("iperf3_tcp_json.client.txt");
    expect(
        &log,
        "iperf3",
        &[
            ("version", text("3.12")),
            ("role", text("client")),
            ("protocol", text("TCP")),
            ("direction", text("forward")),
            ("is_complete", Value::Bool(true)),
            ("is_rounded", Value::Bool(false)),
            ("local_ip", text("127.0.0.1")),
            ("local_port", int(54178)),
            ("remote_port", int(5302)),
            ("server_port", int(5302)),
            ("start", int(1_796_055_667_000_000_000)),
            ("requested_ns", int(1_000_000_000)),
            ("stream_count", int(2)),
            ("control_mss_bytes", int(32768)),
            ("requested_mss_bytes", Value::Null),
            ("sent_bytes", int(2_105_016_320)),
            ("received_bytes", int(2_105_016_320)),
            ("retransmit_count", int(2)),
            ("packet_count", Value::Null),
            ("error", Value::Null),
        ],
    );
    assert_eq!(cells(&log, "iperf3_streams", "local_port"), [int(54178), int(54190)]);
    assert_eq!(cells(&log, "iperf3_streams", "sent_bytes"), [int(1_061_683_200), int(1_043_333_120)]);
    assert_eq!(cells(&log, "iperf3_streams", "min_rtt_ns")[0], int(245_000));
    // Two intervals of two streams and their sum.
    assert_eq!(cells(&log, "iperf3_intervals", "is_sum").len(), 6);
    assert_eq!(cells(&log, "iperf3_intervals", "transferred_bytes")[0], int(520_355_840));
    assert_eq!(cells(&log, "iperf3_intervals", "stream_no")[2], Value::Null);
    assert_eq!(codes(&log), [""; 0]);
}

#[test]
fn an_iperf3_server_does_not_pretend_to_know_what_the_client_counted() {
    let log = real("iperf3_tcp_json.server.txt");
    expect(
        &log,
        "iperf3",
        &[
            ("role", text("server")),
            ("direction", text("forward")),
            ("server_port", int(5302)),
            ("sent_bytes", Value::Null),
            ("sent_bps", Value::Null),
            ("received_bytes", int(2_105_016_320)),
            ("retransmit_count", Value::Null),
            ("control_mss_bytes", Value::Null),
        ],
    );
    let log = real("iperf3_tcp_rev_json.server.txt");
    expect(
        &log,
        "iperf3",
        &[
            ("direction", text("reverse")),
            ("sent_bytes", int(2_305_556_480)),
            ("received_bytes", Value::Null),
            ("retransmit_count", int(0)),
        ],
    );
    let log = real("iperf3_udp_json.server.txt");
    let bytes = int(2_555_904);
    expect(
        &log,
        "iperf3",
        &[("sent_bytes", Value::Null), ("received_bytes", bytes), ("packet_count", int(78)), ("jitter_ns", int(9960))],
    );
}

#[test]
fn iperf3_in_reverse_and_in_both_directions() {
    let log = real("iperf3_tcp_rev_json.client.txt");
    let received = ("received_bytes", int(2_300_575_744));
    expect(&log, "iperf3", &[("direction", text("reverse")), ("sent_bytes", int(2_305_556_480)), received]);
    assert_eq!(cells(&log, "iperf3_streams", "direction"), [text("reverse")]);
    for (name, sent, received, back_sent, back_received) in [
        ("iperf3_tcp_bidir_json.client.txt", 1_285_816_320, 1_285_554_176, 1_066_926_080, 1_063_124_992),
        ("iperf3_tcp_bidir_json.server.txt", -1, 1_285_554_176, 1_066_926_080, -1),
    ] {
        let log = real(name);
        let known = |value: i128| if value < 0 { Value::Null } else { int(value) };
        expect(
            &log,
            "iperf3",
            &[
                ("direction", text("both")),
                ("sent_bytes", known(sent)),
                ("received_bytes", known(received)),
                ("reverse_sent_bytes", known(back_sent)),
                ("reverse_received_bytes", known(back_received)),
            ],
        );
        assert_eq!(cells(&log, "iperf3_streams", "direction"), [text("forward"), text("reverse")], "{name}");
    }
}

#[test]
fn iperf3_text_of_client_and_server() {
    let log = real("iperf3_tcp_text.client.txt");
    let mebibytes = |mebibytes: i128| int(mebibytes << 20);
    expect(
        &log,
        "iperf3",
        &[
            ("role", text("client")),
            ("protocol", text("TCP")),
            ("direction", text("forward")),
            ("is_complete", Value::Bool(true)),
            ("is_rounded", Value::Bool(true)),
            ("local_port", int(36470)),
            ("server_port", int(5301)),
            ("stream_count", int(1)),
            ("sent_bytes", mebibytes(3)),
            ("received_bytes", mebibytes(3)),
            ("sent_bps", int(4_830_000_000)),
            ("received_bps", int(3_720_000_000)),
            ("retransmit_count", int(0)),
            ("duration_ns", int(10_000_000)),
        ],
    );
    expect(&log, "iperf3_intervals", &[("cwnd_bytes", int(895 << 10)), ("retransmit_count", int(0))]);
    let log = real("iperf3_tcp_text.server.txt");
    let sent = ("sent_bytes", Value::Null);
    expect(
        &log,
        "iperf3",
        &[("role", text("server")), ("server_port", int(5301)), sent, ("received_bytes", mebibytes(3))],
    );
    let log = real("iperf3_tcp_ts_text.client.txt");
    expect(
        &log,
        "iperf3",
        &[
            ("version", text("3.12")),
            ("start", int(1_796_055_676_000_000_000)),
            ("cookie", text("lo6on7j4zqpm35gbiei5mvjzzbelatqmf5i7")),
            ("control_mss_bytes", int(32768)),
            ("block_bytes", int(131_072)),
            ("requested_ns", int(1_000_000_000)),
            ("sender_congestion", text("bbr")),
        ],
    );
}

#[test]
fn iperf3_text_in_both_directions() {
    for (name, role) in [("iperf3_tcp_bidir_text.client.txt", "client"), ("iperf3_tcp_bidir_text.server.txt", "server")]
    {
        let log = real(name);
        expect(&log, "iperf3", &[("role", text(role)), ("direction", text("both")), ("stream_count", int(2))]);
        let ways = ["forward", "forward", "reverse", "reverse"].map(text);
        assert_eq!(cells(&log, "iperf3_streams", "direction"), ways, "{name}");
    }
    let log = real("iperf3_tcp_bidir_text.client.txt");
    let figures = [
        ("reverse_sent_bps", int(4_430_000_000)),
        ("reverse_received_bps", int(4_340_000_000)),
        ("reverse_retransmit_count", int(6)),
    ];
    expect(&log, "iperf3", &figures);
    expect(
        &log,
        "iperf3",
        &[("sent_bps", int(12_400_000_000)), ("received_bps", int(12_300_000_000)), ("retransmit_count", int(4))],
    );
}

#[test]
fn iperf3_text_over_udp() {
    let log = real("iperf3_udp_text.client.txt");
    expect(
        &log,
        "iperf3",
        &[
            ("protocol", text("UDP")),
            ("packet_count", int(39)),
            ("lost_count", int(0)),
            ("loss_ratio", Value::Float(0.0)),
            ("jitter_ns", int(60_000)),
            ("retransmit_count", Value::Null),
        ],
    );
    assert_eq!(cells(&log, "iperf3_intervals", "packet_count"), [int(20), int(19)]);
    let log = real("iperf3_udp_rev_text.client.txt");
    expect(&log, "iperf3", &[("direction", text("reverse")), ("packet_count", int(20)), ("jitter_ns", int(8_000))]);
    let log = real("iperf3_udp_rev_text.server.txt");
    expect(&log, "iperf3", &[("direction", text("reverse")), ("role", text("server")), ("sent_bytes", int(640 << 10))]);
}

#[test]
fn iperf3_that_could_not_connect_says_so() {
    for name in ["iperf3_refused.txt", "iperf3_refused_json.txt"] {
        let log = real(name);
        expect(
            &log,
            "iperf3",
            &[("error", text("unable to connect to server: Connection refused")), ("is_complete", Value::Bool(false))],
        );
        assert_eq!(codes(&log), ["iperf3_error"], "{name}");
    }
}

#[test]
fn ping_of_linux() {
    let log = real("ping_delay.txt");
    expect(
        &log,
        "ping",
        &[
            ("tool", text("iputils")),
            ("host", text("10.9.2.2")),
            ("dst_ip", text("10.9.2.2")),
            ("payload_bytes", int(56)),
            ("ip_bytes", int(84)),
            ("sent_count", int(12)),
            ("received_count", int(12)),
            ("loss_ratio", Value::Float(0.0)),
            ("duration_ns", int(11_026_000_000)),
            ("rtt_min_ns", int(19_317_000)),
            ("rtt_avg_ns", int(21_789_000)),
            ("rtt_max_ns", int(25_729_000)),
            ("rtt_mdev_ns", int(1_741_000)),
            ("df", Value::Null),
            ("path_mtu_bytes", Value::Null),
        ],
    );
    assert_eq!(cells(&log, "ping_replies", "sequence").len(), 12);
    assert_eq!(cells(&log, "ping_replies", "rtt_ns")[0], int(20_900_000));
    assert_eq!(cells(&log, "ping_replies", "ttl")[11], int(63));
}

#[test]
fn ping_that_is_too_long_for_the_path_tells_the_mtu_and_who_said_it() {
    let log = real("ping_frag_needed.txt");
    expect(
        &log,
        "ping",
        &[
            ("payload_bytes", int(8972)),
            ("df", text("set")),
            ("path_mtu_bytes", int(1500)),
            ("path_mtu_source", text("router")),
            ("path_mtu_ip", text("10.9.1.1")),
            ("sent_count", int(3)),
            ("received_count", int(0)),
            ("error_count", int(3)),
            ("loss_ratio", Value::Float(1.0)),
            ("rtt_avg_ns", Value::Null),
        ],
    );
    let kinds = ["frag_needed", "message_too_long", "message_too_long"].map(text);
    assert_eq!(cells(&log, "ping_replies", "kind"), kinds);
    let log = real("ping_too_long.txt");
    expect(&log, "ping", &[("path_mtu_source", text("host")), ("path_mtu_ip", Value::Null), ("df", text("set"))]);
    let log = real("ping_jumbo_ok.txt");
    expect(&log, "ping", &[("ip_bytes", int(9000)), ("received_count", int(3)), ("df", Value::Null)]);
}

#[test]
fn ping_in_other_forms() {
    let log = real("ping_busybox.txt");
    expect(
        &log,
        "ping",
        &[("tool", text("bsd")), ("sent_count", int(3)), ("rtt_max_ns", int(208_000)), ("rtt_mdev_ns", Value::Null)],
    );
    let with_source = "PING 10.9.2.2 (10.9.2.2) from 10.9.1.2 e0: 8972(9000) bytes of data.\n64 bytes from h2 (10.9.2.2): icmp_req=1 ttl=64 time=1 ms\n";
    let log = read_as(LogKind::Ping, with_source.as_bytes());
    expect(&log, "ping", &[("payload_bytes", int(8972)), ("ip_bytes", int(9000)), ("received_count", int(1))]);
    let log = real("ping6.txt");
    expect(&log, "ping", &[("dst_ip", text("::1")), ("payload_bytes", int(56)), ("received_count", int(2))]);
    let log = real("ping_D.txt");
    assert_eq!(cells(&log, "ping_replies", "time")[0], int(1_796_055_679_223_737_000));
    let log = real("ping_q.txt");
    expect(&log, "ping", &[("received_count", int(2)), ("is_complete", Value::Bool(true))]);
    assert_eq!(cells(&log, "ping_replies", "kind").len(), 0);
    let log = real("ping_f.txt");
    expect(&log, "ping", &[("sent_count", int(50)), ("rtt_mdev_ns", int(3_000))]);
    let log = real("ping_lost.txt");
    expect(&log, "ping", &[("sent_count", int(2)), ("received_count", int(0)), ("loss_ratio", Value::Float(1.0))]);
    assert_eq!(cells(&log, "ping_replies", "kind"), [text("timeout")]);
    let log = real("ping_nohost.txt");
    expect(&log, "ping", &[("error", text("no.such.host.invalid: Name or service not known"))]);
    assert_eq!(codes(&log), ["ping_error"]);
}

#[test]
fn perftest_of_client_and_server() {
    let log = real("perftest_write_bw.txt");
    expect(
        &log,
        "perftest",
        &[
            ("test", text("RDMA_Write BW Test")),
            ("operation", text("write")),
            ("measures", text("bandwidth")),
            ("role", text("client")),
            ("device", text("rxe0")),
            ("connection_type", text("RC")),
            ("link_type", text("Ethernet")),
            ("qp_count", int(1)),
            ("path_mtu_bytes", int(4096)),
            ("exchange", text("Ethernet")),
            ("is_complete", Value::Bool(true)),
        ],
    );
    let server = real("perftest_write_bw.server.txt");
    expect(&server, "perftest", &[("role", text("server"))]);
    // What is local to one is remote to the other.
    for what in ["qp", "psn", "rkey", "va", "ip"] {
        let (local, remote) = (format!("local_{what}"), format!("remote_{what}"));
        assert_eq!(cell(&log, "perftest_qps", &local), cell(&server, "perftest_qps", &remote), "{what}");
        assert_eq!(cell(&log, "perftest_qps", &remote), cell(&server, "perftest_qps", &local), "{what}");
        assert_ne!(cell(&log, "perftest_qps", &local), Value::Null, "{what}");
    }
    assert_eq!(cell(&log, "perftest_qps", "local_ip"), text("10.77.0.1"));
    // The unit is 2^20 bytes: messages per second times their size says so.
    let (rate, bps) =
        (cell(&log, "perftest_results", "messages_per_second"), cell(&log, "perftest_results", "average_bps"));
    let (Value::Float(rate), Some(bps)) = (rate, bps.int()) else { panic!("no figures") };
    let bytes = cell(&log, "perftest_results", "message_bytes").int().unwrap();
    assert!((rate * bytes as f64 * 8.0 / bps as f64 - 1.0).abs() < 0.05, "{rate} {bytes} {bps}");
}

#[test]
fn perftest_of_latency_of_several_queue_pairs_and_without_a_result() {
    let log = real("perftest_send_lat.txt");
    expect(
        &log,
        "perftest_results",
        &[
            ("message_bytes", int(64)),
            ("iteration_count", int(300)),
            ("latency_min_ns", int(308_420)),
            ("latency_typical_ns", int(840_920)),
            ("latency_p999_ns", int(6_845_040)),
            ("average_bps", Value::Null),
        ],
    );
    let log = real("perftest_4qp.txt");
    assert_eq!(cells(&log, "perftest_qps", "local_qp"), [0x22, 0x23, 0x24, 0x25].map(int));
    assert_eq!(cells(&log, "perftest_qps", "remote_psn"), [0x3b44b6, 0x872f68, 0x782092, 0x27a979].map(int));
    let log = real("perftest_no_result.txt");
    expect(&log, "perftest", &[("is_complete", Value::Bool(false)), ("role", text("server"))]);
    assert!(cell(&log, "perftest", "error").text().unwrap().contains("Couldn't read remote address"));
    assert_eq!(codes(&log), ["perftest_no_result"]);
    let log = real("perftest_atomic.server.txt");
    expect(&log, "perftest", &[("operation", text("atomic")), ("exchange", text("rdma_cm")), ("error", Value::Null)]);
}

#[test]
fn perftest_json_tells_its_unit_by_its_figures() {
    let json = |average: f64, rate: f64| {
        format!(
            r#"{{"test_info": {{"test": "RDMA_Write_BW_Test", "Device": "mlx5_11", "Number_of_qps": 1, "Connection_type": "RC", "Mtu": 1024, "GID_index": 1}},
            "results": {{"MsgSize": 65536, "n_iterations": 5000, "BW_peak": 0.0, "BW_average": {average}, "MsgRate": {rate}}}}}"#
        )
    };
    let log = read_as(LogKind::Perftest, json(2229.27, 0.035668).as_bytes());
    expect(
        &log,
        "perftest",
        &[("test", text("RDMA_Write BW Test")), ("operation", text("write")), ("path_mtu_bytes", int(1024))],
    );
    expect(
        &log,
        "perftest_results",
        &[("unit", text("MiB/s")), ("peak_bps", Value::Null), ("average_bps", int(18_700_472_156))],
    );
    let log = read_as(LogKind::Perftest, json(18.70, 0.035668).as_bytes());
    expect(&log, "perftest_results", &[("unit", text("Gb/s")), ("average_bps", int(18_700_000_000))]);
    let log = read_as(LogKind::Perftest, json(-3.0, 0.035668).as_bytes());
    expect(&log, "perftest_results", &[("unit", Value::Null), ("average_bps", Value::Null)]);
    assert_eq!(codes(&log), ["negative_figure"]);
}
