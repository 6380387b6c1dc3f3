//! Counters of kernel and network card, sockets, and hping3.

use wirelab::logs::{self, LogKind};

use super::{Value, cells, codes, expect, int, read_as, real, text};

#[test]
fn ss_in_its_layouts() {
    let (two_lines, one_line) = (real("ss_tin.txt"), real("ss_Oti.txt"));
    for log in [&two_lines, &one_line] {
        let connections: Vec<_> =
            cells(log, "ss", "local_port").into_iter().zip(cells(log, "ss", "remote_port")).collect();
        assert_eq!(connections.len(), 6);
        assert_eq!(connections[0], (int(34174), int(5400)));
        assert_eq!(connections[5], (int(5400), int(34186)));
        // IPv4 inside IPv6 is the same address.
        assert_eq!(cells(log, "ss", "local_ip"), ["127.0.0.1"; 6].map(text));
        assert_eq!(cells(log, "ss", "rtt_ns")[0], int(70_000));
        assert_eq!(cells(log, "ss", "rttvar_ns")[0], int(36_000));
        assert_eq!(cells(log, "ss", "mss_bytes")[1], int(65483));
        assert_eq!(cells(log, "ss", "congestion"), ["bbr"; 6].map(text));
        assert_eq!(cells(log, "ss", "retransmit_count"), [0; 6].map(int));
        assert_eq!(cells(log, "ss", "is_app_limited")[0], Value::Bool(true));
    }
    assert_eq!(cells(&two_lines, "ss", "send_queue_bytes")[1], int(722_857));
    assert_eq!(cells(&two_lines, "ss", "sent_bytes")[1], int(893_450_152));
    assert_eq!(cells(&two_lines, "ss", "rwnd_limited_ns")[1], int(620_000_000));
    assert_eq!(cells(&two_lines, "ss", "pacing_bps")[1], int(37_948_191_792));
    assert_eq!(cells(&two_lines, "ss", "options")[0], Value::Null);
    let log = real("ss_tinmoe.txt");
    assert_eq!(cells(&log, "ss", "options")[0], text("ts sack"));
    let log = real("ss_tain.txt");
    let states = cells(&log, "ss", "state");
    assert!(states.contains(&text("LISTEN")) && states.contains(&text("TIME-WAIT")), "{states:?}");
    assert_eq!(codes(&log), [""; 0]);
}

#[test]
fn ss_of_a_lossy_connection() {
    let line = "ESTAB 0 0 10.9.1.2:40934 10.9.2.2:6000 cubic wscale:7,7 rto:212 rtt:8.235/3.265 mss:1448 pmtu:1500 cwnd:85 bytes_sent:262636 \
                bytes_retrans:62636 send 119567699bps delivery_rate 36.8Mbps retrans:1/46 dsack_dups:2 minrtt:0.43\n";
    let log = read_as(LogKind::Ss, line.as_bytes());
    expect(
        &log,
        "ss",
        &[
            ("retransmit_count", int(46)),
            ("retransmit_outstanding_count", int(1)),
            ("retransmitted_bytes", int(62636)),
            ("dsack_count", int(2)),
            ("min_rtt_ns", int(430_000)),
            ("send_bps", int(119_567_699)),
            ("delivery_bps", int(36_800_000)),
            ("send_wscale", int(7)),
        ],
    );
}

#[test]
fn nstat_in_text_and_json() {
    let log = real("nstat.txt");
    let names = cells(&log, "nstat", "name");
    let at = names.iter().position(|name| *name == text("TcpActiveOpens")).unwrap();
    assert_eq!(cells(&log, "nstat", "value")[at], int(3));
    let log = real("nstat_j.txt");
    let names = cells(&log, "nstat", "name");
    let at = names.iter().position(|name| *name == text("IpExtInOctets")).unwrap();
    assert_eq!(cells(&log, "nstat", "value")[at], int(16_533_388));
    assert_eq!(codes(&read_as(LogKind::Nstat, b"#kernel\n")), ["nstat_no_change"]);
    let twice = read_as(LogKind::Nstat, b"#kernel\nTcpRetransSegs 1 0.0\n#kernel\nTcpRetransSegs 28 0.0\n");
    assert_eq!(cells(&twice, "nstat", "sample_no"), [1, 2].map(int));
}

#[test]
fn ethtool_counters_say_what_they_count_where_that_is_known() {
    let log = real("ethtool_S.txt");
    assert_eq!(cells(&log, "nic_counters", "name")[0], text("rx_drops"));
    assert_eq!(cells(&log, "nic_counters", "kind")[0], text("dropped"));
    assert_eq!(cells(&log, "nic_counters", "kind")[5], Value::Null);
    let mlx5 = "NIC statistics:\n     rx_prio3_pause: 148213\n     rx_prio3_pause_duration: 3320119\n     tx_prio3_pause: 9\n     rx_pause_ctrl_phy: 4\n     \
                rx_ecn_mark: 5\n     rx_out_of_buffer: 6\n     rx_prio5_bytes: 7\n     module_bus_stuck: 0\n";
    let log = read_as(LogKind::Ethtool, mlx5.as_bytes());
    let kinds = [
        "pause_frames",
        "pause_duration_us",
        "pause_frames",
        "pause_frames",
        "ecn_marked",
        "dropped_no_buffer",
        "bytes",
    ]
    .map(text);
    assert_eq!(cells(&log, "nic_counters", "kind")[..7], kinds);
    assert_eq!(cells(&log, "nic_counters", "class")[..4], [int(3), int(3), int(3), Value::Null]);
    assert_eq!(cells(&log, "nic_counters", "direction")[..3], ["rx", "rx", "tx"].map(text));
    let other =
        "rx_priority_3_xoff: 1\nport.tx_priority_4_xoff: 2\npfc_pri5_rx_duration_us: 3\nrx_flow_control_xoff: 4\n";
    let log = read_as(LogKind::Ethtool, other.as_bytes());
    assert_eq!(cells(&log, "nic_counters", "class"), [int(3), int(4), int(5), Value::Null]);
    assert_eq!(logs::detect(b"no stats available\n"), None);
}

#[test]
fn counters_of_the_rdma_side_in_the_ways_people_save_them() {
    let value_of = |log: &logs::Log, kind: &str| {
        let kinds = cells(log, "nic_counters", "kind");
        let at = kinds.iter().position(|cell| *cell == text(kind)).unwrap_or_else(|| panic!("no {kind}"));
        (cells(log, "nic_counters", "value")[at].clone(), cells(log, "nic_counters", "device")[at].clone())
    };
    let log = real("ethtool_rdma_statistic.txt");
    let port = || text("mlx5_0/1");
    assert_eq!(value_of(&log, "cnp_sent"), (int(184), port()));
    assert_eq!(value_of(&log, "ecn_marked"), (int(184), port()));
    assert_eq!(value_of(&log, "out_of_sequence"), (int(9), port()));
    assert_eq!(value_of(&log, "sequence_naks"), (int(11), port()));
    assert_eq!(cells(&log, "nic_counters", "sample_no").last(), Some(&int(1)));
    assert_eq!(cells(&log, "nic_counters", "device").last(), Some(&text("mlx5_1/1")));
    let files = "/sys/class/infiniband/mlx5_0/ports/1/hw_counters/np_cnp_sent:3\n\
                 /sys/class/infiniband/mlx5_0/ports/1/hw_counters/lifespan:10\n";
    let log = read_as(LogKind::Ethtool, files.as_bytes());
    assert_eq!(value_of(&log, "cnp_sent"), (int(3), text("mlx5_0")));
    assert_eq!(cells(&log, "nic_counters", "name"), ["np_cnp_sent", "lifespan"].map(text));
    // Before and after: a port that comes again begins the next sample.
    let bare = "rp_cnp_handled 0\nnp_cnp_sent 184\nrp_cnp_handled 5\nnp_cnp_sent 190\n";
    let log = read_as(LogKind::Ethtool, bare.as_bytes());
    assert_eq!(cells(&log, "nic_counters", "sample_no"), [1, 1, 2, 2].map(int));
    let session = "$ ethtool -S eth2\nNIC statistics:\n     rx_prio3_pause: 7\n$ ethtool -S eth3\nNIC statistics:\n     rx_prio3_pause: 8\n";
    let log = read_as(LogKind::Ethtool, session.as_bytes());
    assert_eq!(cells(&log, "nic_counters", "device"), ["eth2", "eth3"].map(text));
    assert_eq!(cells(&log, "nic_counters", "sample_no"), [1, 2].map(int));
    // What state a port is in is no counter.
    assert_eq!(logs::detect(b"link rxe0/1 state ACTIVE physical_state LINK_UP netdev eth0\n"), None);
}

#[test]
fn dcb_in_text_and_json_says_the_same() {
    let log = real("dcb_show.txt");
    assert_eq!(cells(&log, "dcb", "device"), ["eth2", "eth3"].map(text));
    assert_eq!(cells(&log, "dcb", "pfc_priorities"), ["3", ""].map(text));
    assert_eq!(cells(&log, "dcb", "pfc_mask"), [8, 0].map(int));
    assert_eq!(cells(&log, "dcb", "pfc_max_classes"), [8, 8].map(int));
    assert_eq!(cells(&log, "dcb", "pfc_delay_bits"), [4096, 0].map(int));
    assert_eq!(cells(&log, "dcb", "is_macsec_bypass")[0], Value::Bool(false));
    assert_eq!(cells(&log, "dcb", "is_ets_willing"), [Value::Bool(false), Value::Null]);
    assert_eq!(cells(&log, "dcb", "default_priority"), [int(0), Value::Null]);
    assert_eq!(cells(&log, "dcb_priorities", "priority").len(), 16);
    assert_eq!(cells(&log, "dcb_priorities", "is_lossless")[3], Value::Bool(true));
    assert_eq!(cells(&log, "dcb_priorities", "traffic_class")[3], int(3));
    assert_eq!(cells(&log, "dcb_classes", "bandwidth_percent")[3], int(50));
    assert_eq!(cells(&log, "dcb_classes", "algorithm")[0], text("ets"));
    let selectors = ["ethertype", "dscp", "dscp", "dscp", "udp"].map(text);
    let protocols = [0x8915, 26, 48, 28, 4791].map(int);
    let json = real("dcb_show_j.txt");
    for log in [&log, &json] {
        assert_eq!(cells(log, "dcb_apps", "selector"), selectors);
        assert_eq!(cells(log, "dcb_apps", "protocol"), protocols);
        assert_eq!(cells(log, "dcb_apps", "priority"), [3, 3, 6, 3, 3].map(int));
        assert_eq!(cells(log, "dcb", "pfc_mask")[0], int(8));
        // PFC frames: what was sent, then what was received.
        assert_eq!(cells(log, "nic_counters", "value")[3], int(17));
        assert_eq!(cells(log, "nic_counters", "value")[11], int(148_213));
        assert_eq!(cells(log, "nic_counters", "direction")[3], text("tx"));
        assert_eq!(cells(log, "nic_counters", "kind")[11], text("pause_frames"));
        assert_eq!(cells(log, "nic_counters", "class")[11], int(3));
    }
}

#[test]
fn mlnx_qos_tells_trust_priorities_classes_and_the_map_of_dscps() {
    let log = real("dcb_mlnx_qos.txt");
    expect(
        &log,
        "dcb",
        &[
            ("tool", text("mlnx_qos")),
            ("device", Value::Null),
            ("trust", text("dscp")),
            ("dcbx_mode", text("OS controlled")),
            ("pfc_priorities", text("3")),
            ("default_priority", Value::Null),
        ],
    );
    assert_eq!(cells(&log, "dcb_apps", "protocol").len(), 64);
    let at = cells(&log, "dcb_apps", "protocol").iter().position(|cell| *cell == int(26)).unwrap();
    assert_eq!(cells(&log, "dcb_apps", "priority")[at], int(3));
    let classes = cells(&log, "dcb_priorities", "traffic_class");
    assert_eq!(classes[..4], [1, 0, 1, 3].map(int));
    assert_eq!(cells(&log, "dcb_priorities", "buffer")[3], int(1));
    assert_eq!(cells(&log, "dcb_classes", "traffic_class"), [0, 1, 3].map(int));
    assert_eq!(cells(&log, "dcb_classes", "algorithm"), ["ets", "vendor", "strict"].map(text));
    assert_eq!(cells(&log, "dcb_classes", "bandwidth_percent"), [int(10), Value::Null, Value::Null]);
    // Two calls with their commands are two samples.
    let once = String::from_utf8(super::bytes_of("dcb_mlnx_qos.txt")).unwrap();
    let session = format!(
        "$ mlnx_qos -i eth2\n{once}$ mlnx_qos -i eth3 -f 0,0,0,0,1,0,0,0\n{}",
        once.replace("0   0   0   1", "0   0   0   0")
    );
    let log = read_as(LogKind::Dcb, session.as_bytes());
    assert_eq!(cells(&log, "dcb", "device"), ["eth2", "eth3"].map(text));
    assert_eq!(cells(&log, "dcb", "pfc_mask"), [8, 0].map(int));
    // The form with colons that some versions print.
    let colons = "Priority trust state: pcp\nPFC configuration:\n        priority:  0   1   2   3   4   5   6   7\n        enabled:   0   0   0   0   1   0   0   0\n";
    assert_eq!(cells(&read_as(LogKind::Dcb, colons.as_bytes()), "dcb", "pfc_mask"), [int(16)]);
}

#[test]
fn hping3_without_its_statistics_is_counted_by_its_lines() {
    let log = real("hping3_tcp.txt");
    expect(
        &log,
        "hping3",
        &[
            ("host", text("127.0.0.1")),
            ("mode", text("S set")),
            ("header_bytes", int(40)),
            ("sent_count", Value::Null),
            ("received_count", int(3)),
            ("rtt_min_ns", int(200_000)),
            ("rtt_avg_ns", int(300_000)),
            ("rtt_max_ns", int(400_000)),
            ("is_complete", Value::Bool(false)),
        ],
    );
    assert_eq!(cells(&log, "hping3_replies", "flags_text"), ["RA"; 3].map(text));
    assert_eq!(cells(&log, "hping3_replies", "is_df"), [Value::Bool(true), Value::Bool(true), Value::Bool(true)]);
    assert_eq!(codes(&log), ["hping_no_summary"]);
    // Standard error came before standard output.
    let log = real("hping3_quiet.txt");
    expect(
        &log,
        "hping3",
        &[
            ("host", text("10.9.2.2")),
            ("interface", text("e0")),
            ("sent_count", int(500)),
            ("received_count", int(500)),
            ("rtt_max_ns", int(1_008_300_000)),
        ],
    );
    let log = real("hping3_udp.txt");
    expect(&log, "hping3", &[("sent_count", int(2)), ("received_count", int(2)), ("mode", text("udp mode set"))]);
    assert_eq!(cells(&log, "hping3_replies", "icmp"), ["Port Unreachable"; 2].map(text));
}
