//! What a single frame hides: offload, lengths that are not there, checksums, padding, tags, fragments, directions.

use wirelab::TableId::{Flows, Packets, Tcp as TcpTable, TcpFlows, Tunnels};

use super::Tables;
use crate::support::cells::Value;
use crate::support::craft::{CLIENT, MS, Ng, SERVER, TCP_PAYLOAD_AT, Tcp, data, handshake, in_vxlan, mend_ip_checksum};
use crate::support::generate::{Packet, START_NS, pcap, udp};
use crate::support::outside_folder;

fn at(time_ns: i64, bytes: Vec<u8>) -> Packet {
    Packet { time_ns: START_NS + time_ns, bytes }
}

fn texts(values: &[Option<&str>]) -> Vec<Value> {
    values.iter().map(|text| text.map_or(Value::Null, |text| Value::Text(text.to_owned()))).collect()
}

#[test]
fn a_frame_of_64_kb_is_many_segments_and_proves_no_mtu() {
    let mut packets = handshake(0, 10 * MS);
    let large = Tcp { payload_bytes: 64_000, ..data(0) };
    packets.push(large.at(20 * MS));
    // All of it once more after a timeout: 45 segments of 1,448 bytes.
    packets.push(large.id(260).at(320 * MS));
    let tables = Tables::bytes(pcap(&packets));
    let findings = tables.findings();
    assert_eq!((findings["offload"].count, findings["offload"].value), (2, Some(64_000)));
    assert_eq!(findings["offload"].frames, [4]);
    assert_eq!(tables.ints(TcpFlows, "client_max_segment_bytes"), [64_000]);
    assert_eq!(tables.ints(TcpFlows, "server_mss"), [1_448]);
    assert_eq!(tables.ints(TcpTable, "retransmit_segments"), [0, 0, 0, 0, 45]);
    assert_eq!(tables.ints(TcpFlows, "client_retransmit_count"), [45]);
}

#[test]
fn a_total_length_of_0_means_the_length_of_the_frame() {
    let mut packets = handshake(0, 10 * MS);
    let mut frame = Tcp { payload_bytes: 30_000, ..data(0) }.frame();
    frame[16..18].fill(0);
    mend_ip_checksum(&mut frame);
    packets.push(at(20 * MS, frame));
    packets.push(Tcp { seq: 31_001, ..data(1) }.at(21 * MS));
    let tables = Tables::bytes(pcap(&packets));
    assert_eq!(tables.ints(TcpTable, "payload_bytes")[3..], [30_000, 1_000]);
    assert_eq!(tables.ints(Packets, "ip_bytes")[3], 30_040);
    assert_eq!(tables.column(Packets, "decode_stop"), vec![Value::Null; 5]);
    // Nothing is missing before the segment behind it.
    assert_eq!(tables.column(TcpTable, "ws_lost_segment")[4], Value::Bool(false));
}

#[test]
fn a_checksum_is_bad_only_where_it_is_wrong_and_partial_where_hardware_fills_it_in() {
    let mut packets = handshake(0, 10 * MS);
    let mut partial = data(0).frame();
    let pseudo = pseudo_sum(&partial);
    partial[50..52].copy_from_slice(&pseudo.to_be_bytes());
    let mut damaged = data(1).frame();
    damaged[TCP_PAYLOAD_AT + 500] ^= 0x10;
    let mut damaged_header = data(2).frame();
    damaged_header[24] ^= 1;
    packets.extend([at(20 * MS, partial), at(21 * MS, damaged), at(22 * MS, damaged_header)]);
    packets.push(data(3).at(23 * MS));
    let tables = Tables::bytes(pcap(&packets));
    let l4 = ["ok", "ok", "ok", "partial", "bad", "ok", "ok"].map(Some);
    assert_eq!(tables.column(Packets, "l4_checksum"), texts(&l4));
    let ip = ["ok", "ok", "ok", "ok", "ok", "bad", "ok"].map(Some);
    assert_eq!(tables.column(Packets, "ip_checksum"), texts(&ip));
    let bad = tables.only_warning("checksum_bad");
    assert_eq!((bad.count, bad.value, &bad.frames[..]), (2, Some(2), &[5, 6][..]));
    assert!(bad.en.contains("2 of 7 verified (28.6%)") && bad.zh.contains("28.6%"), "{}", bad.en);
    let offload = &tables.findings()["checksum_offload"];
    assert_eq!((offload.count, &offload.frames[..], offload.severity.as_str()), (1, &[4][..], "info"));
    // The damaged segment never arrived; the others did.
    assert_eq!(tables.verdicts().get("damaged"), Some(&1));
    assert_eq!(tables.texts(TcpTable, "verdict")[4], "damaged");
}

/// What Linux leaves in the TCP checksum field of an IPv4 frame for the network card.
fn pseudo_sum(frame: &[u8]) -> u16 {
    let words = frame[26..34].chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
    let sum = words.sum::<u32>() + 6 + (frame.len() as u32 - 34);
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

#[test]
fn damaged_rdma_packets_of_a_real_capture_are_counted_by_their_icrc() {
    let Some(folder) = outside_folder("WIRELAB_LAB_CAPTURES", "../shared/lab-captures") else { return };
    let tables = Tables::of(folder.join("roce_corrupt.vm1.pcap"));
    let bad = &tables.findings()["checksum_bad"];
    // Counted by an independent reader: 66 packets with a wrong ICRC.
    assert!(bad.en.contains("RoCE ICRC 66;"), "{}", bad.en);
    // And the sender's side of it: nothing is damaged before it leaves.
    let tables = Tables::of(folder.join("roce_corrupt.vm0.pcap"));
    assert!(!tables.findings().contains_key("checksum_bad"));
}

#[test]
fn a_frame_cut_by_the_snap_length_keeps_its_sizes_and_proves_no_damage() {
    let mut file = Ng::new(false);
    file.interface(1, 96, &[(9, &[9])]);
    let mut packets = handshake(0, 10 * MS);
    packets.extend([data(0).at(20 * MS), data(1).at(21 * MS)]);
    for packet in &packets {
        let kept = packet.bytes.len().min(96);
        file.packet(0, packet.time_ns as u64, &packet.bytes[..kept], packet.bytes.len(), &[]);
    }
    let tables = Tables::bytes(file.bytes);
    assert_eq!(tables.ints(TcpTable, "payload_bytes")[3..], [1_000, 1_000]);
    assert_eq!(tables.column(Packets, "l4_checksum")[3..], texts(&[Some("unverifiable"); 2]));
    assert_eq!(tables.column(Packets, "decode_stop"), vec![Value::Null; 5]);
    let findings = tables.findings();
    let cut = &findings["snap_length"];
    assert_eq!((cut.count, cut.value, &cut.frames[..]), (2, Some(96), &[4, 5][..]));
    assert!(!findings.contains_key("checksum_bad") && !findings.contains_key("undecoded_frames"));
    assert_eq!(tables.ints(Flows, "client_payload_bytes"), [2_000]);
}

#[test]
fn a_cooked_capture_tells_direction_and_device() {
    let ip = &data(0).frame()[14..];
    let mut file = Ng::new(true);
    file.interface(276, 0, &[]);
    file.interface(113, 0, &[]);
    for packet_type in 0..6_u8 {
        // SLL2: protocol, reserved, interface index, ARPHRD, packet type, address length, address.
        let mut bytes = vec![0x08, 0, 0, 0, 0, 0, 1, 10 + packet_type, 0, 1, packet_type, 6, 2, 0, 0, 0, 0, 1, 0, 0];
        bytes.extend(ip);
        file.packet(0, 0, &bytes, bytes.len(), &[]);
    }
    let mut bytes = vec![0, 4, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0];
    bytes.extend(ip);
    file.packet(1, 0, &bytes, bytes.len(), &[]);
    let tables = Tables::bytes(file.bytes);
    let directions = ["to_us", "broadcast", "multicast", "to_other", "from_us"].map(Some);
    let mut expected = texts(&directions);
    expected.extend(texts(&[None, Some("from_us")]));
    assert_eq!(tables.column(Packets, "packet_direction"), expected);
    let mut devices: Vec<_> = (266..272).map(Value::Int).collect();
    devices.push(Value::Null);
    assert_eq!(tables.column(Packets, "ifindex"), devices);
    // The protocol below Ethernet has neither.
    let tables = Tables::bytes(pcap(&[data(0).at(0)]));
    assert_eq!(tables.column(Packets, "packet_direction"), [Value::Null]);
    assert_eq!(tables.column(Packets, "ifindex"), [Value::Null]);
}

#[test]
fn a_router_captured_on_all_devices_forwards_each_packet_and_resends_none() {
    let Some(folder) = outside_folder("WIRELAB_LAB_CAPTURES", "../shared/lab-captures") else { return };
    let tables = Tables::of(folder.join("fmt_any.any_sll2.pcap"));
    let of = |direction: &str, device| {
        let directions = tables.texts(Packets, "packet_direction").into_iter().zip(tables.ints(Packets, "ifindex"));
        directions.filter(|(is, on)| is == direction && *on == device).count()
    };
    // As tshark prints sll.pkttype and sll.ifindex: in on one device, out on the other.
    assert_eq!([of("to_us", 2), of("from_us", 3), of("to_us", 3), of("from_us", 2)], [294, 294, 118, 118]);
    assert_eq!(tables.findings()["duplicate_router_hop"].count, 412);
    assert_eq!(tables.both_sides("retransmit_count") + tables.both_sides("reordered_count"), 0);
}

#[test]
fn padding_and_a_frame_check_sequence_are_no_payload() {
    let mut padded = Tcp::new(CLIENT, SERVER, 1_001, 5_001, 0).frame();
    padded.resize(60, 0);
    let mut small = udp([10, 0, 0, 1], [10, 0, 0, 2], (1, 2), 5);
    small.resize(60, 0);
    let mut file = Ng::new(false);
    file.interface(1, 0, &[(13, &[4])]);
    for bytes in [&padded, &small, &data(0).frame()] {
        let mut bytes = bytes.clone();
        bytes.extend([0xde, 0xad, 0xbe, 0xef]);
        file.packet(0, 0, &bytes, bytes.len(), &[]);
    }
    let tables = Tables::bytes(file.bytes);
    assert_eq!(tables.ints(Packets, "payload_bytes"), [0, 5, 1_000]);
    assert_eq!(tables.column(Packets, "l4_checksum"), texts(&[Some("ok"); 3]));
    assert_eq!(tables.column(Packets, "decode_stop"), vec![Value::Null; 3]);
}

#[test]
fn a_tag_that_is_not_there_is_null_and_a_priority_tag_is_vlan_0() {
    let plain = data(0).frame();
    let tagged = |tag: &[u8]| [&plain[..12], tag, &plain[12..]].concat();
    let frames = [
        plain.clone(),
        tagged(&[0x81, 0, 0, 0]),
        tagged(&[0x81, 0, 0x60, 100]),
        tagged(&[0x88, 0xa8, 0xa0, 200, 0x81, 0, 0x60, 100]),
    ];
    let packets: Vec<_> = (0..).zip(frames).map(|(number, frame)| at(number * 200 * MS, frame)).collect();
    let tables = Tables::bytes(pcap(&packets));
    let ints = |values: [Option<i128>; 4]| values.map(|value| value.map_or(Value::Null, Value::Int));
    assert_eq!(tables.column(Packets, "vlan_id"), ints([None, Some(0), Some(100), Some(200)]));
    assert_eq!(tables.column(Packets, "vlan_pcp"), ints([None, Some(0), Some(3), Some(5)]));
    assert_eq!(tables.column(Packets, "inner_vlan_id"), ints([None, None, None, Some(100)]));
    assert_eq!(tables.ints(Packets, "dst_port"), [5_201; 4]);
}

#[test]
fn later_fragments_get_the_ports_of_the_first_and_the_last_one_the_datagram() {
    let whole = udp([10, 0, 0, 1], [10, 0, 0, 2], (7_000, 8_000), 3_000);
    let fragments = fragments_of(&whole, 1_480);
    assert_eq!(fragments.len(), 3);
    let mut packets: Vec<_> = (0..).zip(fragments).map(|(number, bytes)| at(number * MS, bytes)).collect();
    // A datagram of no bytes is whole.
    packets.push(at(9 * MS, udp([10, 0, 0, 1], [10, 0, 0, 2], (7_000, 8_000), 0)));
    let tables = Tables::bytes(pcap(&packets));
    assert_eq!(tables.ints(Packets, "dst_port"), [8_000; 4]);
    let fragment = |is| Value::Bool(is);
    assert_eq!(tables.column(Packets, "is_fragment"), [true, true, true, false].map(fragment));
    assert_eq!(tables.ints(Flows, "frame_no"), [1], "one flow");
    assert_eq!(tables.ints(Packets, "payload_bytes")[2..], [3_000, 0]);
    assert_eq!(tables.ints(Flows, "server_payload_bytes"), [3_000], "the lower port is taken for the server");
}

#[test]
fn vxlan_that_was_fragmented_shows_as_fragments_of_a_tunnel() {
    let inner = Tcp { payload_bytes: 1_448, ..data(0) }.frame();
    let packets: Vec<_> =
        (0..).zip(fragments_of(&in_vxlan(&inner, 7), 1_480)).map(|(at_ms, bytes)| at(at_ms * MS, bytes)).collect();
    let tables = Tables::bytes(pcap(&packets));
    assert_eq!(packets.len(), 2);
    assert_eq!(tables.ints(Tunnels, "vni"), [7], "one packet in one tunnel");
    // The inner packet is not damaged, wherever it is shown.
    assert!(!tables.findings().contains_key("checksum_bad"));
    assert_eq!(tables.ints(TcpTable, "payload_bytes"), [1_448]);
}

/// An Ethernet frame's IPv4 packet in fragments of at most `bytes` bytes of payload each.
fn fragments_of(frame: &[u8], bytes: usize) -> Vec<Vec<u8>> {
    let payload = &frame[34..];
    let pieces = payload.chunks(bytes).enumerate().map(|(number, piece)| {
        let (offset, is_last) = (number * bytes, number * bytes + piece.len() == payload.len());
        let mut fragment = frame[..34].to_vec();
        fragment.extend(piece);
        fragment[16..18].copy_from_slice(&(20 + piece.len() as u16).to_be_bytes());
        fragment[18..20].copy_from_slice(&77_u16.to_be_bytes());
        fragment[20..22].copy_from_slice(&((offset / 8) as u16 | if is_last { 0 } else { 0x2000 }).to_be_bytes());
        mend_ip_checksum(&mut fragment);
        fragment
    });
    pieces.collect()
}
