//! Congestion marks and notifications, what a host's capture cannot hold, and counters that count other things than captures do.

use wirelab::TableId;
use wirelab::logs::{self, LogKind};

use super::Tables;
use super::roce::{A, B, CNP, ack, bth, bytes_of, capture, ethernet, finding, pfc, roce, rows, send, with_tos};
use crate::support::cells::{self, Value};
use crate::support::craft::{MS, mend_ip_checksum};
use crate::support::crate_root;
use crate::support::generate::{Packet, START_NS, pcap, pcap_header, pcap_record_header};

/// A CNP from one host to a queue pair of the other.
fn cnp(from: [u8; 4], to: [u8; 4], dest_qp: u32) -> Vec<u8> {
    let mut bth = bth(0x81, dest_qp, 0);
    bth[4] = 0x40;
    with_tos(roce(from, to, bth, &[0; 16], 0), 0xc2)
}

fn ints(bytes: &[u8], table: TableId, column: &str) -> Vec<i128> {
    cells::ints(&rows(bytes, table).batches, column)
}

#[test]
fn the_share_of_marks_over_time_is_told_for_each_queue_pair_and_adds_up() {
    let plain = |psn| with_tos(send(psn), 0x6a);
    let marked = |psn| with_tos(send(psn), 0x6b);
    // Ten requests in each of four milliseconds; half of those in the second are marked, all in the third.
    let mut packets = Vec::new();
    for psn in 0..40_u32 {
        let is_marked = psn / 10 == 2 || (psn / 10 == 1 && psn % 2 == 0);
        let bytes = if is_marked { marked(psn) } else { plain(psn) };
        packets.push(Packet { time_ns: START_NS + i64::from(psn) * MS / 10, bytes });
    }
    packets.push(Packet { time_ns: START_NS + 39 * MS / 10 + 1_000, bytes: ack(39) });
    packets.push(Packet { time_ns: START_NS + 39 * MS / 10 + 2_000, bytes: ethernet(&bytes_of(CNP)) });
    let bytes = pcap(&packets);
    let intervals = rows(&bytes, TableId::RoceIntervals);
    let column = |name| cells::ints(&intervals.batches, name);
    assert_eq!(START_NS % MS, 0);
    assert_eq!(column("interval_ns"), [1_000_000; 4]);
    assert_eq!(column("time_rel_ns"), [0, 1, 2, 3].map(|ms| ms * 1_000_000));
    assert_eq!(column("request_count"), [10; 4]);
    assert_eq!(column("ce_count"), [0, 5, 10, 0]);
    assert_eq!(column("cnp_count"), [0, 0, 0, 1]);
    assert_eq!(column("throughput_bps"), [640 * 8 * 1_000; 4]);
    let ratios = cells::column(&intervals.batches, "ce_ratio");
    assert_eq!(ratios, [0.0, 0.5, 1.0, 0.0].map(Value::Float));
    assert_eq!(cells::column(&intervals.batches, "response_ce_ratio"), vec![Value::Null; 4]);
    for name in ["request_count", "response_count", "ce_count", "not_ect_count", "cnp_count", "retransmit_count"] {
        let of_qps: i128 = ints(&bytes, TableId::RoceQps, name).iter().sum();
        assert_eq!(column(name).iter().sum::<i128>(), of_qps, "{name}");
    }
}

#[test]
fn intervals_add_up_to_the_queue_pairs_in_real_captures() {
    let Some(folder) = crate::support::outside_folder("WIRELAB_LAB_CAPTURES", "../shared/lab-captures") else { return };
    for name in ["roce_ecn_red.vm1", "roce_write_loss1.vm0", "roce_read_loss1.vm1", "roce_write_reorder.vm1"] {
        let bytes = std::fs::read(folder.join(format!("{name}.pcap"))).unwrap();
        for column in ["request_count", "response_count", "ce_count", "not_ect_count", "retransmit_count"] {
            let sum = |table| ints(&bytes, table, column).iter().sum::<i128>();
            assert_eq!(sum(TableId::RoceIntervals), sum(TableId::RoceQps), "{name} {column}");
        }
    }
}

#[test]
fn a_notification_slows_the_queue_pair_that_it_names_among_several() {
    let of = |qp, psn| with_tos(roce(A, B, bth(0x04, qp, psn), &[], 64), 0x6b);
    let answer = |qp, psn| roce(B, A, bth(0x11, qp, psn), &[0x1f, 0, 0, 1], 0);
    // Two queue pairs with numbers far apart, which their acknowledgements pair.
    let frames = vec![
        of(0x20, 5),
        answer(0x118, 5),
        of(0x21, 700_000),
        answer(0x119, 700_000),
        cnp(B, A, 0x119),
        of(0x21, 700_001),
        cnp(B, A, 0x119),
    ];
    let bytes = capture(frames);
    assert_eq!(ints(&bytes, TableId::RoceQps, "requester_qp"), [0x118, 0x119]);
    assert_eq!(ints(&bytes, TableId::RoceQps, "cnp_count"), [0, 2]);
    // 40 us from the first mark to its notification, 20 us from the second to the next.
    assert_eq!(
        cells::column(&rows(&bytes, TableId::RoceQps).batches, "ce_to_cnp_min_ns"),
        [Value::Null, Value::Int(20_000)]
    );
    let found = finding(bytes, "roce_congestion").expect("congestion");
    assert_eq!((found.value, found.severity.as_str()), (Some(3), "info"));
}

#[test]
fn marks_on_read_responses_and_their_notifications_concern_the_responder() {
    let read = [0_u8; 12].into_iter().chain(64_u32.to_be_bytes()).collect::<Vec<_>>();
    let request = |psn| with_tos(roce(A, B, bth(0x0c, 0x20, psn), &read, 0), 0x6a);
    let response = |psn, tos| with_tos(roce(B, A, bth(0x10, 0x118, psn), &[0x1f, 0, 0, 1], 64), tos);
    let frames = vec![request(1), response(1, 0x6b), request(2), response(2, 0x6a), cnp(A, B, 0x20)];
    let bytes = capture(frames);
    let qps = rows(&bytes, TableId::RoceQps);
    let column = |name| cells::ints(&qps.batches, name);
    assert_eq!((column("ce_count"), column("response_ce_count")), (vec![0], vec![1]));
    assert_eq!((column("cnp_count"), column("response_cnp_count")), (vec![0], vec![1]));
    assert_eq!(column("ce_to_cnp_min_ns"), [60_000]);
    let found = finding(bytes, "roce_congestion").expect("congestion");
    assert!(found.en.contains("1 of 4 RoCE data packets"), "{}", found.en);
    // Without the notification it is missed as well.
    let without = capture(vec![request(1), response(1, 0x6b)]);
    assert_eq!(finding(without, "roce_ce_without_cnp").expect("marks alone").value, Some(1));
}

/// A capture with `tcpdump -i any`: frames with the type that the capturing host gives each (0 for it, 4 sent by it).
fn cooked(frames: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut file = pcap_header(113);
    for (at, (kind, frame)) in frames.iter().enumerate() {
        let mut bytes = vec![0, *kind, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0];
        bytes.extend(&frame[12..]);
        file.extend(pcap_record_header(START_NS + at as i64 * 20_000, bytes.len() as u32));
        file.extend(bytes);
    }
    file
}

#[test]
fn marks_without_cnps_are_blamed_on_the_receiver_only_where_its_cnps_would_pass() {
    let marked = |psn| with_tos(send(psn), 0x6b);
    let said = |bytes: &[u8]| finding(bytes.to_vec(), "roce_ce_without_cnp").expect("marks alone");
    let tap = |bytes: &[u8]| cells::texts(&rows(bytes, TableId::RoceQps).batches, "tap");
    // Marks are seen at a mirror port behind the switch as well as at the receiver.
    let behind = capture(vec![marked(1), ack(1), marked(2), ack(2)]);
    let found = said(&behind);
    assert!(found.en.contains("or are lost between it and here"), "{}", found.en);
    assert!(found.zh.contains("或者在接收端与抓包点之间丢失"), "{}", found.zh);
    assert_eq!(tap(&behind), ["behind_marks"]);
    assert!(finding(behind, "roce_queue_pairs").unwrap().en.contains("behind the switch that set the CE marks"));
    // One that is marked and does not arrive: there is more way behind the tap.
    let nak = roce(B, A, bth(0x11, 0x118, 2), &[0x60, 0, 0, 1], 0);
    let between = capture(vec![marked(1), ack(1), marked(2), marked(3), nak, marked(2), marked(3), ack(3)]);
    assert_eq!(tap(&between), ["middle"]);
    assert!(said(&between).en.contains("or are lost between it and here"), "{}", said(&between).en);
    // Nothing of the way back is here.
    let found = said(&capture(vec![marked(1), marked(2)]));
    assert!(found.en.contains("so its CNPs cannot be seen") && found.zh.contains("看不到它的 CNP"), "{}", found.en);
    // The host that received the packets says so.
    let here = cooked(&[(0, marked(1)), (4, ack(1)), (0, marked(2)), (4, ack(2))]);
    let found = said(&here);
    assert!(found.en.contains("although it was taken at the receiver"), "{}", found.en);
    assert!(found.zh.contains("抓包位置就在接收端，却没有任何 CNP"), "{}", found.zh);
    assert_eq!(tap(&here), ["responder"]);
    assert!(finding(here, "roce_queue_pairs").unwrap().en.contains("Captured at 10.0.17.1 (responder of 1)."));
    // A host that forwards receives and sends both directions.
    let forwarded = cooked(&[(0, marked(1)), (4, marked(1)), (0, ack(1)), (4, ack(1))]);
    assert_eq!(tap(&forwarded), ["middle"]);
    assert!(!said(&forwarded).en.contains("taken at the receiver"));
    // The requester receives the marked response of a READ; its own CNPs would pass.
    let read = [0_u8; 12].into_iter().chain(64_u32.to_be_bytes()).collect::<Vec<_>>();
    let request = || with_tos(roce(A, B, bth(0x0c, 0x20, 1), &read, 0), 0x6a);
    let response = || with_tos(roce(B, A, bth(0x10, 0x118, 1), &[0x1f, 0, 0, 1], 64), 0x6b);
    assert!(said(&cooked(&[(4, request()), (0, response())])).en.contains("although it was taken at the receiver"));
    let elsewhere = capture(vec![request(), response()]);
    assert_eq!(tap(&elsewhere), ["behind_marks"]);
    assert!(said(&elsewhere).en.contains("or are lost between it and here"));
}

#[test]
fn without_a_link_speed_pauses_have_an_upper_bound_where_xon_ends_them() {
    let at = |ms: i64, quanta| Packet { time_ns: START_NS + ms * MS / 10, bytes: pfc(3, quanta, [2; 6]) };
    let ended = [at(0, 0xffff), at(20, 0), at(100, 0xffff), at(107, 0)];
    let said = |packets: &[Packet]| finding(pcap(packets), "pauses_without_speed").expect("pauses");
    let found = said(&ended);
    let words = "Pauses of priority 3: 2 (first in frame 1), from XOFF to XON at most about 2.70 ms together, the longest \
                 about 2.00 ms.";
    assert!(found.en.starts_with(words), "{}", found.en);
    assert!(found.zh.starts_with("优先级 3 被暂停 2 次"), "{}", found.zh);
    let mut open = ended.to_vec();
    open.push(at(5_000, 0xffff));
    assert!(said(&open).en.contains("3 (first in frame 1), 2 of them ended by XON"), "{}", said(&open).en);
    assert!(said(&open[4..]).en.contains("none of them ended by XON"), "{}", said(&open[4..]).en);
}

#[test]
fn packets_of_one_queue_pair_in_two_classes_are_told() {
    let bytes = capture(vec![with_tos(send(1), 0x6a), with_tos(send(2), 0xba), ack(2)]);
    let found = finding(bytes, "roce_dscp_varies").expect("two classes");
    assert_eq!((found.value, found.severity.as_str()), (Some(1), "warning"));
    // ECN bits that change are no other class.
    let bytes = capture(vec![with_tos(send(1), 0x6a), with_tos(send(2), 0x6b), ack(2)]);
    assert!(finding(bytes, "roce_dscp_varies").is_none());
}

/// A connection management datagram on queue pair 1.
fn cm(from: [u8; 4], to: [u8; 4], attribute: u8, fields: &[(usize, &[u8])]) -> Vec<u8> {
    let mut mad = [0; 256];
    mad[..4].copy_from_slice(&[1, 7, 2, 3]);
    mad[17] = attribute;
    for (at, bytes) in fields {
        mad[24 + at..24 + at + bytes.len()].copy_from_slice(bytes);
    }
    let deth = [0x80, 1, 0, 0, 0, 0, 0, 1];
    let mut frame = roce(from, to, bth(0x64, 1, 0), &[&deth[..], &mad].concat(), 0);
    mend_ip_checksum(&mut frame);
    frame
}

#[test]
fn queue_pairs_that_are_connected_and_never_send_here_are_told() {
    let connected = || {
        vec![
            cm(A, B, 0x10, &[(0, &[0, 0, 0, 7]), (32, &[0, 1, 0x18]), (44, &[0, 0, 5])]),
            cm(B, A, 0x13, &[(0, &[0, 0, 0, 9]), (4, &[0, 0, 0, 7]), (12, &[0, 0, 0x20]), (20, &[0, 0, 9])]),
            cm(A, B, 0x14, &[(0, &[0, 0, 0, 7]), (4, &[0, 0, 0, 9])]),
        ]
    };
    let found = finding(capture(connected()), "roce_control_only").expect("no data");
    assert_eq!((found.value, found.severity.as_str(), found.frames), (Some(1), "warning", vec![1]));
    assert!(found.en.contains("mlx5_0") && found.zh.contains("mlx5_0"), "{}", found.en);
    let with_data = capture([connected(), vec![send(5), ack(5)]].concat());
    assert!(finding(with_data, "roce_control_only").is_none());
}

#[test]
fn one_direction_alone_is_told_whichever_it_is() {
    let requests = capture((0..5).map(send).collect());
    let found = finding(requests, "roce_one_direction").expect("requests alone");
    assert!(found.en.contains("1 of 1") && found.severity == "warning", "{}", found.en);
    let answers = capture((0..5).map(ack).collect());
    let found = finding(answers, "roce_one_direction").expect("answers alone");
    assert!(found.en.contains("not captured: 5"), "{}", found.en);
    let both = capture((0..5).flat_map(|psn| [send(psn), ack(psn)]).collect());
    assert!(finding(both, "roce_one_direction").is_none());
}

#[test]
fn pause_frames_are_counted_apart_from_packets() {
    // A card's count of good packets leaves flow control out; so must who compares it with a capture.
    let log = logs::read(LogKind::Ethtool, b"NIC statistics:\n     rx_packets: 3\n     rx_prio3_pause: 2\n").unwrap();
    let counters = log.table("nic_counters").unwrap();
    let kinds = cells::texts(&counters.batches, "kind").into_iter().zip(cells::ints(&counters.batches, "value"));
    assert_eq!(kinds.collect::<Vec<_>>(), [("packets".to_owned(), 3), ("pause_frames".to_owned(), 2)]);
    let bytes = capture(vec![send(1), pfc(3, 0xffff, [2; 6]), send(2), ack(2), pfc(3, 0, [2; 6])]);
    let protocols = Tables::bytes(bytes.clone()).texts(TableId::Packets, "protocol");
    let (pauses, packets): (Vec<_>, Vec<_>) = protocols.iter().partition(|name| *name == "PFC" || *name == "PAUSE");
    assert_eq!((packets.len(), pauses.len()), (3, 2));
    assert_eq!(ints(&bytes, TableId::Pause, "class"), [3, 3]);
}

/// Whether instructions that impair RoCE with netem say what that acts on.
fn tells_what_netem_acts_on(text: &str) -> bool {
    let text = text.to_lowercase();
    let is_about = |words: &[&str]| words.iter().any(|word| text.contains(word));
    let is_impaired = is_about(&["netem"]) && is_about(&["roce", "rdma", "ib_write", "ib_send", "ib_read"]);
    !is_impaired || (is_about(&["soft-roce", "rxe"]) && is_about(&["bypass", "绕过"]))
}

#[test]
fn a_lab_that_impairs_roce_with_netem_says_that_hardware_bypasses_it() {
    assert!(!tells_what_netem_acts_on("tc qdisc add dev eth0 root netem loss 1%\nib_write_bw -d mlx5_0"));
    assert!(tells_what_netem_acts_on("netem acts on Soft-RoCE (rxe) only: RDMA hardware bypasses the kernel."));
    assert!(tells_what_netem_acts_on("tc qdisc add dev eth0 root netem loss 1%\niperf3 -c 10.0.0.1"));
    let mut texts = 0;
    for lab in std::fs::read_dir(crate_root().join("graders")).unwrap() {
        let readme = lab.unwrap().path().join("README.md");
        let Ok(text) = std::fs::read_to_string(&readme) else { continue };
        texts += 1;
        assert!(tells_what_netem_acts_on(&text), "{}: netem does nothing to hardware RoCE", readme.display());
    }
    assert!(texts > 0);
}
