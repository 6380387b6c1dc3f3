//! Order, copies, several vantage points: what looks like loss and is none.

use wirelab::TableId::{Flows, Packets, Tcp as TcpTable, TcpFlows};

use super::Tables;
use crate::support::cells::Value;
use crate::support::craft::{
    CLIENT, MS, SERVER, Tcp, ack_of, data, handshake, in_vxlan, in_vxlan_between, interfaces, routed,
};
use crate::support::generate::{Packet, pcap};

/// Ten segments and their acknowledgements, without loss.
fn transfer() -> Vec<Packet> {
    let mut packets = handshake(0, 10 * MS);
    for number in 0..10 {
        let time_ns = 20 * MS + i64::from(number) * 20 * MS;
        packets.push(data(number).at(time_ns));
        packets.push(ack_of(number + 1).at(time_ns + 10 * MS));
    }
    packets
}

fn nulls(count: usize) -> Vec<Value> {
    vec![Value::Null; count]
}

#[test]
fn frames_written_out_of_time_order_are_counted_and_no_verdict_is_fooled() {
    let mut packets = transfer();
    // The ACK before the data that it acknowledges, and a segment after its successor's ACK.
    packets.swap(3, 4);
    packets.swap(9, 10);
    packets.swap(13, 15);
    let tables = Tables::bytes(pcap(&packets));
    let found = tables.only_warning("clock_backwards");
    // Three frames come before one of an earlier time; the last of them with one more between.
    assert_eq!((found.count, found.value, found.unit.as_deref()), (4, Some(10_000_000), Some("ns")));
    assert_eq!(found.frames, [5, 11, 15, 16]);
    assert_eq!(tables.ints(Packets, "frame_no"), (1..=23).collect::<Vec<_>>());
    assert_eq!(tables.verdicts(), [("new".to_owned(), 23)].into());
    assert_eq!(tables.both_sides("retransmit_count") + tables.both_sides("reordered_count"), 0);
}

#[test]
fn a_mirror_port_that_shows_every_frame_twice_resends_nothing() {
    let packets = transfer();
    let twice: Vec<_> = packets.iter().flat_map(|packet| [packet.clone(), later(packet, 3_000)]).collect();
    let tables = Tables::bytes(pcap(&twice));
    let found = tables.only_warning("duplicate_frames");
    assert_eq!((found.count, found.frames[0], found.frames.len()), (23, 2, 20));
    let originals: Vec<_> =
        (1..=46).map(|frame| if frame % 2 == 0 { Value::Int(frame - 1) } else { Value::Null }).collect();
    assert_eq!(tables.column(Packets, "duplicate_of"), originals);
    let expected = [("new".to_owned(), 23), ("capture_duplicate".to_owned(), 23)];
    assert_eq!(tables.verdicts(), expected.into());
    assert_eq!(tables.both_sides("retransmit_count"), 0);
    assert_eq!(tables.ints(TcpFlows, "client_packets"), [12]);
    assert_eq!(tables.ints(TcpFlows, "client_bytes"), tables.ints(TcpFlows, "client_unique_bytes"));
    // Wireshark is fooled, and what it says is not changed.
    assert!(tables.column(TcpTable, "ws_retransmission").iter().filter(|is| **is == Value::Bool(true)).count() >= 10);
}

/// What is remembered does not depend on hashes, which differ from run to run.
#[test]
fn every_copy_is_found_that_comes_within_a_tenth_of_a_second_also_on_a_fast_link() {
    let packet =
        |number: u32| Tcp::new(CLIENT, SERVER, 1 + number, 1, 1).id(number as u16).at(i64::from(number) * 1_000).bytes;
    // One connection, a packet each microsecond, and each once more behind a router 12 ms later.
    let (count, delay) = (30_000, 12_000);
    let mut packets = Vec::new();
    for at in 0..count + delay {
        if at < count {
            packets.push(Packet { bytes: packet(at), time_ns: i64::from(at) * 1_000 });
        }
        if let Some(copied) = at.checked_sub(delay) {
            packets.push(Packet { bytes: routed(&packet(copied)), time_ns: i64::from(at) * 1_000 + 300 });
        }
    }
    let tables = Tables::bytes(pcap(&packets));
    assert_eq!(tables.column(Packets, "duplicate_kind").iter().filter(|kind| **kind != Value::Null).count(), 30_000);
}

#[test]
fn a_packet_seen_on_two_interfaces_belongs_to_a_flow_on_each() {
    let both: Vec<_> = transfer().iter().flat_map(|packet| [(0, packet.clone()), (1, later(packet, 2_000))]).collect();
    let tables = Tables::bytes(interfaces(&["eth0", "br0"], &both));
    let findings = tables.findings();
    assert_eq!((findings["duplicate_interfaces"].count, findings["duplicate_interfaces"].frames[0]), (23, 2));
    assert!(findings.values().all(|found| found.severity == "info"), "{findings:?}");
    assert_eq!(tables.ints(Flows, "interface_id"), [0, 1]);
    assert_eq!(tables.ints(TcpFlows, "client_packets"), [12, 12]);
    assert_eq!(tables.verdicts(), [("new".to_owned(), 46)].into());
}

#[test]
fn both_sides_of_a_router_in_one_file_are_no_retransmissions() {
    let hop = |packet: &Packet| Packet { bytes: routed(&packet.bytes), ..later(packet, 5_000) };
    let both: Vec<_> = transfer().iter().flat_map(|packet| [packet.clone(), hop(packet)]).collect();
    let tables = Tables::bytes(pcap(&both));
    assert_eq!(tables.only_warning("duplicate_router_hop").count, 23);
    let kinds = tables.column(Packets, "duplicate_kind");
    assert_eq!(kinds.iter().filter(|kind| kind.text() == Some("router_hop")).count(), 23);
    assert_eq!(tables.both_sides("retransmit_count") + tables.both_sides("reordered_count"), 0);
    assert_eq!(tables.verdicts().get("retransmit"), None);
}

#[test]
fn a_packet_outside_and_inside_its_tunnel_is_one_packet_in_two_flows() {
    let inside = |packet: &Packet| Packet { bytes: in_vxlan(&routed(&packet.bytes), 7), ..later(packet, 5_000) };
    let both: Vec<_> = transfer().iter().flat_map(|packet| [packet.clone(), inside(packet)]).collect();
    let tables = Tables::bytes(pcap(&both));
    let findings = tables.findings();
    assert_eq!(findings["duplicate_tunnel"].count, 23);
    assert!(findings.values().all(|found| found.severity == "info"), "{findings:?}");
    assert_eq!(tables.column(Flows, "vni"), [Value::Null, Value::Int(7)]);
    assert_eq!(tables.verdicts(), [("new".to_owned(), 46)].into());
}

#[test]
fn directions_with_virtual_networks_of_their_own_are_one_connection_between_the_same_tunnel_ends() {
    let from_client = |packet: &Packet| packet.bytes[26..30] == CLIENT.ip;
    let wrapped = |vnis: [u8; 2], far: u8| -> Vec<Packet> {
        let wrap = |packet: &Packet| {
            let bytes = match from_client(packet) {
                true => in_vxlan_between(&packet.bytes, vnis[0], 1, 2),
                false => in_vxlan_between(&packet.bytes, vnis[1], far, 1),
            };
            Packet { bytes, ..packet.clone() }
        };
        transfer().iter().map(wrap).collect()
    };
    let one = Tables::bytes(pcap(&wrapped([7, 9], 2)));
    assert_eq!(one.ints(TcpFlows, "vni"), [7]);
    assert_eq!(one.ints(TcpFlows, "handshake_rtt_ns"), [10_020_000]);
    assert_eq!(one.ints(Flows, "flow_id"), [0]);
    assert_eq!(one.ints(Packets, "vni").iter().filter(|vni| **vni == 9).count(), 11, "rows say what the wire said");
    // The client's number changes while the connection lasts.
    let mut changed = wrapped([7, 9], 2);
    for (at, packet) in transfer().iter().enumerate().skip(9).filter(|(_, packet)| from_client(packet)) {
        changed[at].bytes = in_vxlan_between(&packet.bytes, 8, 1, 2);
    }
    assert_eq!(Tables::bytes(pcap(&changed)).ints(TcpFlows, "vni"), [7]);
    // The same ports again, with another number for the client: another connection, whole.
    let again = |packet: &Packet, vnis: [u8; 2], by: u32| {
        let mut inner = packet.clone();
        let (seq_at, ack_at) = if from_client(packet) { (38, 42) } else { (42, 38) };
        let moved = |at: usize| u32::from_be_bytes(std::array::from_fn(|i| packet.bytes[at + i])).wrapping_add(by);
        inner.bytes[seq_at..seq_at + 4].copy_from_slice(&moved(seq_at).to_be_bytes());
        let server_by = u32::from_be_bytes(std::array::from_fn(|i| packet.bytes[ack_at + i])).wrapping_add(by / 2);
        inner.bytes[ack_at..ack_at + 4].copy_from_slice(&server_by.to_be_bytes());
        let bytes = match from_client(packet) {
            true => in_vxlan_between(&inner.bytes, vnis[0], 1, 2),
            false => in_vxlan_between(&inner.bytes, vnis[1], 2, 1),
        };
        Packet { time_ns: packet.time_ns + 10_000 * MS, bytes }
    };
    let mut reused = wrapped([7, 9], 2);
    reused.extend(transfer().iter().map(|packet| again(packet, [8, 9], 1 << 30)));
    let tables = Tables::bytes(pcap(&reused));
    assert_eq!(tables.ints(TcpFlows, "vni"), [7, 8]);
    assert_eq!(tables.ints(TcpFlows, "server_packets"), [11, 11]);
    // Two tenants with the same addresses and ports at the same time.
    let mut tenants = wrapped([7, 9], 2);
    let other = |packet: &Packet| Packet { time_ns: packet.time_ns + MS, ..again(packet, [8, 10], 1 << 30) };
    tenants.extend(transfer().iter().map(other));
    tenants.sort_by_key(|packet| packet.time_ns);
    let tables = Tables::bytes(pcap(&tenants));
    assert_eq!((tables.ints(TcpFlows, "vni"), tables.ints(TcpFlows, "server_packets")), (vec![7, 8], vec![11, 11]));
    // Other tunnel ends: two tenants with the same addresses.
    let two = Tables::bytes(pcap(&wrapped([7, 9], 3)));
    assert_eq!(two.ints(TcpFlows, "vni"), [7, 9]);
    // Both directions in each of two networks: two connections as ever.
    let mut both = wrapped([7, 7], 2);
    both.extend(wrapped([9, 9], 2));
    both.sort_by_key(|packet| packet.time_ns);
    assert_eq!(Tables::bytes(pcap(&both)).ints(TcpFlows, "vni"), [7, 9]);
}

#[test]
fn resent_segments_keep_alives_and_resets_are_not_taken_for_copies() {
    let mut packets = handshake(0, 10 * MS);
    packets.push(data(0).at(20 * MS));
    // Resent at once with an identification of its own, then by a sender that always writes 0 with DF.
    packets.push(data(0).id(300).at(20 * MS + 100_000));
    packets.push(data(1).id(0).at(21 * MS));
    packets.push(data(1).id(0).at(22 * MS));
    // The receiver reports both second copies.
    packets.push(ack_of(2).at(32 * MS));
    let keep_alive = Tcp::new(CLIENT, SERVER, 3_000, 5_001, 0);
    packets.extend([keep_alive.clone().id(301).at(40 * MS), keep_alive.id(302).at(40 * MS + 1_000)]);
    let reset = Tcp::new(SERVER, CLIENT, 5_001, 3_001, 0).flags("R");
    packets.extend([reset.clone().id(401).at(50 * MS), reset.id(402).at(50 * MS + 1_000)]);
    let tables = Tables::bytes(pcap(&packets));
    assert_eq!(tables.column(Packets, "duplicate_of"), nulls(packets.len()));
    assert!(tables.findings().values().all(|found| found.severity == "info"));
    assert_eq!(tables.both_sides("retransmit_count"), 2);
    let verdicts = tables.texts(TcpTable, "verdict");
    assert_eq!(verdicts[3..8], ["new", "retransmit", "new", "retransmit", "new"].map(str::to_owned));
    assert_eq!(verdicts[8..10], ["keep_alive", "keep_alive"].map(str::to_owned));
}

#[test]
fn a_copy_that_the_receiver_reports_with_d_sack_was_made_by_the_network() {
    use etherparse::TcpOptionElement::SelectiveAcknowledgement;
    // At the receiver: the same packet twice, then its report (RFC 2883).
    let mut packets = handshake(0, 10 * MS);
    packets.push(data(0).at(20 * MS));
    packets.push(data(0).at(20 * MS + 50_000));
    packets.push(ack_of(1).at(20 * MS + 60_000));
    let options = vec![SelectiveAcknowledgement((1_001, 2_001), [None; 3])];
    packets.push(Tcp { options, ..ack_of(1).id(1_050) }.at(20 * MS + 70_000));
    let tables = Tables::bytes(pcap(&packets));
    let findings = tables.findings();
    assert_eq!(findings["network_duplicates"].count, 1);
    assert!(!findings.contains_key("duplicate_frames"), "{findings:?}");
    assert_eq!(tables.texts(TcpTable, "verdict")[4], "network_duplicate");
    assert_eq!(tables.both_sides("network_duplicate_count"), 1);
    // The client sent it once.
    assert_eq!(tables.ints(TcpFlows, "client_packets"), [3]);
    assert_eq!(tables.ints(TcpFlows, "client_bytes"), [1_000]);
    // What the capture shows twice is told of without the network's copies.
    packets.extend([ack_of(1).id(1_060).at(30 * MS), ack_of(1).id(1_060).at(30 * MS + 3_000)]);
    let found = Tables::bytes(pcap(&packets)).only_warning("duplicate_frames");
    assert_eq!((found.count, found.frames), (1, vec![9]));
}

#[test]
fn a_retransmission_is_counted_where_it_was_seen_and_no_interface_confuses_another() {
    // Lost between the interfaces: the first one sees the segment twice, the second one once.
    let mut packets: Vec<_> =
        handshake(0, 10 * MS).iter().flat_map(|packet| [(0, packet.clone()), (1, later(packet, 2_000))]).collect();
    let resent = data(0).id(250);
    packets.push((0, data(0).at(20 * MS)));
    packets.push((0, resent.at(240 * MS)));
    packets.push((1, later(&resent.at(240 * MS), 2_000)));
    for interface in [1, 0] {
        packets.push((interface, later(&ack_of(1).at(250 * MS), i64::from(1 - interface) * 2_000)));
    }
    let tables = Tables::bytes(interfaces(&["near", "far"], &packets));
    assert_eq!(tables.ints(TcpFlows, "client_retransmit_count"), [1, 0]);
    assert_eq!(tables.ints(TcpFlows, "interface_id"), [0, 1]);
}

fn later(packet: &Packet, by_ns: i64) -> Packet {
    Packet { time_ns: packet.time_ns + by_ns, bytes: packet.bytes.clone() }
}
