//! What was resent, what was late, what only looks like it: traps of TCP itself.

use etherparse::TcpOptionElement::{self, MaximumSegmentSize, SelectiveAcknowledgement, Timestamp};
use wirelab::TableId::{Tcp as TcpTable, TcpFlows};
use wirelab::{Input, ScanRequest};

use super::Tables;
use crate::support::cells::Value;
use crate::support::craft::{CLIENT, MS, SERVER, Tcp, ack_of, data, handshake};
use crate::support::generate::{Packet, pcap};
use crate::support::{all_tables, with_threads};

const US: i64 = 1_000;

fn sack(first: (u32, u32)) -> Vec<TcpOptionElement> {
    vec![SelectiveAcknowledgement(first, [None; 3])]
}

/// The handshake as a tap at the server sees it: the answer comes at once, the client's ACK a round trip later.
fn handshake_at_server(rtt_ns: i64) -> Vec<Packet> {
    let [syn, syn_ack, ack]: [Packet; 3] = handshake(0, 20 * US).try_into().unwrap();
    let ack = Packet { time_ns: ack.time_ns + rtt_ns, ..ack };
    vec![syn, syn_ack, ack]
}

fn flags(tables: &Tables, column: &str) -> Vec<usize> {
    let values = tables.column(TcpTable, column);
    (1..).zip(values).filter(|(_, value)| *value == Value::Bool(true)).map(|(frame, _)| frame).collect()
}

/// Trap 1.
#[test]
fn bytes_that_sack_reported_missing_and_that_come_again_are_resent_however_soon() {
    let mut packets = handshake(0, 2 * MS);
    for number in 0..4 {
        packets.push(data(number).at(10 * MS + i64::from(number) * 10 * US));
    }
    // The receiver misses the first and reports each of the others.
    for number in 1..4u32 {
        let options = sack((2_001, 2_001 + 1_000 * number));
        packets.push(Tcp { options, ..ack_of(0).id(2_000 + number as u16) }.at(12 * MS + i64::from(number) * 10 * US));
    }
    packets.push(data(0).id(204).at(12 * MS + 100 * US));
    packets.push(ack_of(4).at(14 * MS + 100 * US));
    let tables = Tables::bytes(pcap(&packets));
    assert_eq!(tables.texts(TcpTable, "verdict")[10], "retransmit");
    assert_eq!(tables.column(TcpTable, "cause")[10], Value::Text("fast".into()));
    assert_eq!(tables.column(TcpTable, "outcome")[10], Value::Text("needed".into()));
    assert_eq!(tables.both_sides("retransmit_count"), 1);
    assert_eq!(tables.both_sides("reordered_count"), 0);
}

/// Trap 2, first half.
#[test]
fn a_late_segment_whose_ip_id_is_older_was_overtaken_although_wireshark_calls_it_resent() {
    let mut packets = handshake_at_server(MS);
    packets.push(data(0).id(210).at(10 * MS));
    packets.push(data(2).id(212).at(10 * MS + 10 * US));
    packets.push(data(1).id(211).at(15 * MS + 210 * US));
    packets.push(ack_of(3).at(15 * MS + 250 * US));
    let tables = Tables::bytes(pcap(&packets));
    assert_eq!(tables.texts(TcpTable, "verdict")[5], "reordered");
    assert_eq!(flags(&tables, "ws_retransmission"), [6], "5.2 ms are more than its 3 ms");
    assert_eq!((tables.both_sides("reordered_count"), tables.both_sides("retransmit_count")), (1, 0));
}

/// Trap 2, second half.
#[test]
fn a_segment_sent_again_within_a_long_round_trip_is_resent_although_wireshark_calls_it_out_of_order() {
    let mut packets = handshake_at_server(50 * MS);
    packets.push(data(0).id(210).at(60 * MS));
    // The second was lost on the way; the third makes the receiver ask.
    packets.push(data(2).id(212).at(61 * MS));
    packets.push(Tcp { options: sack((3_001, 4_001)), ..ack_of(1) }.at(61 * MS + 20 * US));
    packets.push(data(1).id(213).at(73 * MS));
    packets.push(ack_of(3).at(73 * MS + 50 * US));
    let tables = Tables::bytes(pcap(&packets));
    assert_eq!(tables.texts(TcpTable, "verdict")[6], "retransmit");
    assert_eq!(flags(&tables, "ws_out_of_order"), [7]);
    assert_eq!((tables.both_sides("reordered_count"), tables.both_sides("retransmit_count")), (0, 1));
}

/// Trap 3.
#[test]
fn retransmissions_are_counted_by_segment_and_by_byte_and_each_has_its_frame() {
    let mut packets = handshake(0, 10 * MS);
    for number in 0..8 {
        packets.push(data(number).at(20 * MS + i64::from(number) * MS));
    }
    // Half of the last one again, after a timeout.
    let half = Tcp { payload_bytes: 500, ..data(7).id(300) };
    packets.push(half.at(400 * MS));
    packets.push(ack_of(8).at(410 * MS));
    let tables = Tables::bytes(pcap(&packets));
    assert_eq!(tables.ints(TcpFlows, "client_retransmit_count"), [1]);
    assert_eq!(tables.ints(TcpFlows, "client_retransmit_bytes"), [500]);
    assert_eq!(tables.column(TcpFlows, "client_retransmit_ratio"), [Value::Float(1.0 / 9.0)]);
    assert_eq!(tables.column(TcpFlows, "client_retransmit_bytes_ratio"), [Value::Float(500.0 / 8_500.0)]);
    let resent: Vec<_> = tables.texts(TcpTable, "verdict").iter().map(|verdict| verdict == "retransmit").collect();
    assert_eq!((1..).zip(resent).filter(|(_, is)| *is).map(|(frame, _)| frame).collect::<Vec<i32>>(), [12]);
}

/// Trap 7.
#[test]
fn without_a_handshake_the_window_is_unknown_and_a_closed_one_is_not() {
    let closed = |packet: Tcp| Tcp { window: 0, ..packet };
    let packets = [
        data(0).at(0),
        Tcp { window: 1, ..ack_of(1) }.at(MS),
        // Fills a window of 1 byte many times over, if it were one.
        data(1).at(2 * MS),
        closed(ack_of(2)).at(3 * MS),
        ack_of(2).id(1_900).at(50 * MS),
    ];
    let tables = Tables::bytes(pcap(&packets));
    assert!(tables.column(TcpTable, "window_bytes").iter().all(|bytes| *bytes == Value::Null));
    assert_eq!(flags(&tables, "ws_window_full"), [0; 0]);
    assert_eq!(flags(&tables, "ws_zero_window"), [4]);
    assert_eq!(tables.ints(TcpFlows, "server_zero_window_count"), [1]);
    assert_eq!(tables.ints(TcpFlows, "server_zero_window_ns"), [i128::from(47 * MS)]);
    // A window that a SYN,ACK scaled is known, and the SYN's own is never scaled.
    let tables = Tables::bytes(pcap(&handshake(0, MS)));
    assert_eq!(tables.column(TcpTable, "window_bytes"), [Value::Int(500), Value::Int(500), Value::Int(500)]);
}

/// Trap 8.
#[test]
fn a_stall_has_a_side_and_a_duration_and_a_reset_with_window_0_is_none() {
    let mut packets = handshake(0, MS);
    packets.push(data(0).at(10 * MS));
    packets.push(Tcp { window: 0, ..ack_of(1) }.at(11 * MS));
    packets.push(ack_of(1).id(1_500).at(111 * MS));
    packets.push(Tcp { window: 0, ..Tcp::new(SERVER, CLIENT, 5_001, 2_001, 0).flags("R") }.at(120 * MS));
    packets.push(Tcp { window: 0, ..Tcp::new(CLIENT, SERVER, 2_001, 5_001, 0).flags("R") }.at(121 * MS));
    let tables = Tables::bytes(pcap(&packets));
    assert_eq!(tables.ints(TcpFlows, "server_zero_window_stall_count"), [1]);
    assert_eq!(tables.ints(TcpFlows, "server_zero_window_ns"), [i128::from(100 * MS)]);
    assert_eq!(tables.ints(TcpFlows, "client_zero_window_count"), [0]);
    assert_eq!(tables.ints(TcpFlows, "client_zero_window_ns"), [0]);
    assert_eq!(flags(&tables, "ws_zero_window"), [5]);
}

/// Trap 9.
#[test]
fn keep_alives_and_window_probes_are_no_retransmissions() {
    let mut packets = handshake(0, MS);
    packets.push(data(0).at(10 * MS));
    packets.push(ack_of(1).at(11 * MS));
    // Without and with the byte before the next one.
    let ask = Tcp::new(CLIENT, SERVER, 2_000, 5_001, 0);
    packets.push(ask.clone().id(300).at(20_000 * MS));
    packets.push(ack_of(1).id(1_300).at(20_001 * MS));
    packets.push(Tcp { payload_bytes: 1, ..ask.clone().id(301) }.at(30_000 * MS));
    packets.push(ack_of(1).id(1_301).at(30_001 * MS));
    // The window closes; probes ask for it.
    packets.push(data(1).at(40_000 * MS));
    packets.push(Tcp { window: 0, ..ack_of(2) }.at(40_001 * MS));
    for (at, time_ns) in [(0, 40_300 * MS), (1, 40_900 * MS)] {
        packets.push(Tcp { seq: 3_000, ..ask.clone() }.id(302 + at).at(time_ns));
        packets.push(Tcp { window: 0, ..ack_of(2).id(1_302 + at) }.at(time_ns + MS));
    }
    let tables = Tables::bytes(pcap(&packets));
    assert_eq!(tables.both_sides("retransmit_count"), 0);
    let verdicts = tables.verdicts();
    assert_eq!((verdicts["keep_alive"], verdicts["window_probe"]), (2, 2), "{verdicts:?}");
    assert!(!verdicts.contains_key("retransmit"));
}

/// Trap 10.
#[test]
fn a_retransmission_points_at_the_first_sending_of_its_bytes_and_not_at_the_last_frame() {
    let mut packets = handshake(0, 10 * MS);
    packets.push(data(0).at(20 * MS));
    packets.push(data(1).at(21 * MS));
    packets.push(data(2).at(22 * MS));
    packets.push(data(0).id(300).at(260 * MS));
    packets.push(data(0).id(301).at(740 * MS));
    packets.push(ack_of(3).at(750 * MS));
    let tables = Tables::bytes(pcap(&packets));
    assert_eq!(tables.texts(TcpTable, "verdict")[6..8], ["retransmit", "retransmit"].map(str::to_owned));
    let first = tables.column(TcpTable, "original_frame_no");
    assert_eq!(first[6..8], [Value::Int(4), Value::Int(4)]);
    assert_eq!(tables.ints(TcpFlows, "client_retransmit_timeout_count"), [2]);
}

/// Trap 11.
#[test]
fn gaps_are_found_alike_by_one_thread_and_by_many_across_many_windows() {
    let mut packets = handshake(0, 100 * US);
    let (mut lost, mut id) = (0, 0);
    let mut next_id = || {
        id += 1;
        id
    };
    // Longer than two windows of the reader; every 97th segment never reaches this tap, its repetition does.
    for number in 0..40_000u32 {
        let time_ns = MS + i64::from(number) * 20 * US;
        let segment = Tcp { seq: 1_001 + 100 * number, payload_bytes: 100, ..data(0) }.id(next_id());
        if number % 97 == 5 {
            lost += 1;
            continue;
        }
        packets.push(segment.at(time_ns));
        if number % 97 == 9 {
            packets.push(Tcp { seq: segment.seq - 400, ..segment }.id(next_id()).at(time_ns + 10 * US));
        }
    }
    let bytes: std::sync::Arc<[u8]> = pcap(&packets).into();
    let of = |threads| all_tables(vec![Input::Bytes(bytes.clone())], &with_threads(threads)).unwrap();
    let (one, seven) = (of(1), of(7));
    crate::support::assert_same_tables(&one, &seven, "gaps");
    let flows = one.iter().find(|table| table.table == TcpFlows).unwrap();
    let resent = crate::support::cells::ints(&flows.batches, "client_retransmit_count");
    assert_eq!(resent, [lost], "in one flow that is never split");
}

/// Trap 12.
#[test]
fn reused_ports_start_a_connection_and_neither_a_wrap_nor_an_overlap_miscounts_bytes() {
    let mut packets = handshake(0, MS);
    packets.push(data(0).at(10 * MS));
    packets.push(ack_of(1).at(11 * MS));
    // The same ports, another initial number: so near the end that the data wraps.
    let isn = u32::MAX - 1_499;
    let options = vec![MaximumSegmentSize(1_448)];
    packets.push(Tcp { ack: None, options, ..Tcp::new(CLIENT, SERVER, isn, 0, 0).flags("S").id(110) }.at(20 * MS));
    packets.push(Tcp::new(SERVER, CLIENT, 70_000, isn + 1, 0).flags("S").id(910).at(21 * MS));
    let at = |offset: u32, payload_bytes: usize, id: u16, time_ns: i64| {
        Tcp::new(CLIENT, SERVER, isn.wrapping_add(1 + offset), 70_001, payload_bytes).id(id).at(time_ns)
    };
    packets.push(at(0, 0, 111, 21 * MS + 20 * US));
    packets.push(at(0, 1_000, 112, 30 * MS));
    packets.push(at(1_000, 1_000, 113, 31 * MS));
    // The second half of the first, all of the second and 500 new bytes, in one segment.
    packets.push(at(500, 2_000, 114, 300 * MS));
    packets.push(Tcp::new(SERVER, CLIENT, 70_001, isn.wrapping_add(2_501), 0).id(911).at(310 * MS));
    let tables = Tables::bytes(pcap(&packets));
    assert_eq!(tables.ints(TcpFlows, "flow_id"), [0, 1]);
    assert_eq!(tables.ints(TcpFlows, "client_unique_bytes"), [1_000, 2_500]);
    assert_eq!(tables.ints(TcpFlows, "client_bytes"), [1_000, 4_000]);
    assert_eq!(tables.ints(TcpFlows, "client_retransmit_bytes"), [0, 1_500]);
    assert_eq!(tables.ints(TcpTable, "seq")[8..11], [1, 1_001, 501]);
    assert_eq!(flags(&tables, "ws_reused_ports"), [6]);
}

/// Trap 13.
#[test]
fn a_long_capture_comes_in_batches_of_bounded_size() {
    let packets: Vec<_> = (0..120_000u32)
        .map(|number| {
            let (from, to) = if number % 2 == 0 { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
            Tcp::new(from, to, 1 + number / 2, 1 + number / 2, 1).id(number as u16).at(i64::from(number) * US)
        })
        .collect();
    let scan = wirelab::scan([Input::Bytes(pcap(&packets).into())], &with_threads(2), ScanRequest::new(TcpTable));
    let rows: Vec<_> = scan.unwrap().map(|batch| batch.unwrap().num_rows()).collect();
    assert_eq!(rows.iter().sum::<usize>(), 120_000);
    // A batch ends with the block of frames that fills it.
    assert!(rows.len() >= 8 && rows.iter().all(|rows| *rows < 16_384 + 2_048), "{rows:?}");
}

/// Trap 14.
#[test]
fn with_one_direction_only_nobody_knows_what_was_needed() {
    let mut packets: Vec<_> = (0..4).map(|number| data(number).at(MS + i64::from(number) * 100 * US)).collect();
    packets.push(data(1).id(300).at(250 * MS));
    packets.push(data(4).id(301).at(251 * MS));
    let tables = Tables::bytes(pcap(&packets));
    assert_eq!(tables.texts(TcpTable, "verdict")[4], "retransmit");
    assert_eq!(tables.column(TcpTable, "outcome")[4], Value::Text("unknown".into()));
    assert_eq!(tables.column(TcpFlows, "client_rtt_min_ns"), [Value::Null]);
    let findings = tables.findings();
    assert!(findings.contains_key("one_direction"), "{:?}", findings.keys());
}

/// Trap 15.
#[test]
fn every_order_of_arrival_delivers_the_same_bytes_and_only_real_overtaking_is_counted() {
    let orders: [([u16; 4], i128); 3] = [([0, 1, 2, 3], 0), ([1, 0, 3, 2], 2), ([1, 2, 3, 0], 1)];
    for (order, overtaken) in orders {
        let mut packets = handshake_at_server(10 * MS);
        for (place, number) in (0..).zip(order) {
            let stamps = vec![Timestamp(100, 7)];
            packets.push(Tcp { options: stamps, ..data(number) }.at(20 * MS + place * 30 * US));
        }
        packets.push(ack_of(4).at(21 * MS));
        let tables = Tables::bytes(pcap(&packets));
        assert_eq!(tables.ints(TcpFlows, "client_unique_bytes"), [4_000], "{order:?}");
        assert_eq!(tables.ints(TcpFlows, "client_reordered_count"), [overtaken], "{order:?}");
        assert_eq!(tables.both_sides("retransmit_count"), 0, "{order:?}");
    }
}
