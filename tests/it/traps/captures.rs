//! What a capture as a whole hides: what it lost, its clocks, its formats and link types.

use wirelab::TableId::{Interfaces, Packets, TcpFlows};
use wirelab::{Input, TableId};

use super::Tables;
use crate::support::cells::Value;
use crate::support::craft::{CLIENT, MS, Ng, SERVER, Tcp, ack_of, data, handshake, interfaces};
use crate::support::generate::{Packet, START_NS, pcap, pcap_header, udp};
use crate::support::{files_below, outside_folder};

#[test]
fn bytes_that_were_acknowledged_and_never_seen_are_lost_by_the_capture() {
    let mut packets = handshake(0, 10 * MS);
    // The third of four segments is missing; the receiver has all.
    packets.extend([data(0).at(20 * MS), data(1).at(21 * MS), data(3).at(23 * MS), ack_of(4).at(33 * MS)]);
    let tables = Tables::bytes(pcap(&packets));
    let loss = tables.only_warning("capture_loss");
    assert_eq!((loss.value, loss.unit.as_deref(), loss.count), (Some(1_000), Some("bytes"), 1));
    assert_eq!(loss.frames, [7], "the acknowledgement shows it");
    assert_eq!(tables.both_sides("retransmit_count"), 0);
    // What the receiver lacks was lost by the network.
    let mut packets = handshake(0, 10 * MS);
    packets.extend([data(0).at(20 * MS), data(1).at(21 * MS), data(3).at(23 * MS), ack_of(2).at(33 * MS)]);
    assert!(!Tables::bytes(pcap(&packets)).findings().contains_key("capture_loss"));
}

#[test]
fn drops_that_the_file_counts_are_said() {
    let mut file = Ng::new(true);
    file.interface(1, 0, &[(2, b"mlx5_0")]);
    let frame = data(0).frame();
    file.packet(0, 0, &frame, frame.len(), &[]);
    let three = file.u64(3);
    file.packet(0, 1, &frame, frame.len(), &[(4, &three)]);
    file.drops(0, 40, 2);
    let tables = Tables::bytes(file.bytes);
    let findings = tables.findings();
    assert_eq!((findings["interface_drops"].value, findings["interface_drops"].count), (Some(42), 42));
    assert!(findings["interface_drops"].en.contains("mlx5_0"));
    assert_eq!((findings["packet_drops"].value, findings["packet_drops"].severity.as_str()), (Some(3), "warning"));
    assert_eq!(tables.column(Interfaces, "interface_drops"), [Value::Int(40)]);
    assert_eq!(tables.column(Interfaces, "os_drops"), [Value::Int(2)]);
}

#[test]
fn one_direction_and_connections_without_a_handshake_are_said_and_not_called_loss() {
    let one_way: Vec<_> = (0..5).map(|number| data(number).at(i64::from(number) * MS)).collect();
    let tables = Tables::bytes(pcap(&one_way));
    let found = tables.only_warning("one_direction");
    assert_eq!((found.count, &found.frames[..]), (1, &[1][..]));
    let findings = tables.findings();
    assert_eq!((findings["missing_handshake"].count, findings["missing_handshake"].severity.as_str()), (1, "info"));
    assert_eq!(tables.both_sides("retransmit_count"), 0);
    // Nobody answers a SYN: that is no fault of the capture.
    let syn = Tcp { ack: None, ..Tcp::new(CLIENT, SERVER, 1, 0, 0).flags("S") };
    let asked: Vec<_> = (0..5).map(|again| syn.clone().id(again + 1).at(i64::from(again) * 1_000 * MS)).collect();
    assert!(!Tables::bytes(pcap(&asked)).findings().contains_key("one_direction"));
}

#[test]
fn each_interface_has_its_own_clock_resolution_in_either_byte_order() {
    let mut file = Ng::new(false);
    let frame = data(0).frame();
    let add = |file: &mut Ng| {
        let offset = file.u64(1_000_000_000);
        file.interface(1, 0, &[]);
        file.interface(1, 0, &[(9, &[9])]);
        file.interface(1, 0, &[(9, &[0x80 | 10])]);
        file.interface(1, 0, &[(9, &[3]), (14, &offset)]);
        // 1.5 s in microseconds, nanoseconds, 1/1024 s, and milliseconds after an offset of 10^9 s.
        for (interface, ticks) in [(0, 1_500_000), (1, 1_500_000_001), (2, 1_536), (3, 1_500)] {
            file.packet(interface, ticks, &frame, frame.len(), &[]);
        }
    };
    add(&mut file);
    file.section(true);
    add(&mut file);
    // No interface has a time for it.
    file.simple_packet(&frame);
    let tables = Tables::bytes(file.bytes);
    let times = [1_500_000_000, 1_500_000_001, 1_500_000_000, 1_000_000_001_500_000_000].map(Value::Int);
    let expected: Vec<_> = times.iter().chain(&times).chain([&Value::Null]).cloned().collect();
    assert_eq!(tables.column(Packets, "time"), expected);
    assert_eq!(tables.ints(Packets, "interface_id"), [0, 1, 2, 3, 4, 5, 6, 7, 4]);
}

#[test]
fn a_file_cut_in_its_last_record_keeps_the_others_in_every_pcap_variant() {
    let packets = [data(0).at(123_456_000), data(1).at(123_457_000)];
    let nano = pcap(&packets);
    for (magic, divisor) in [(0xa1b2_c3d4_u32, 1_000), (0xa1b2_3c4d, 1), (0xa1b2_cd34, 1_000)] {
        for is_big in [false, true] {
            let word = |value: u32| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
            let half = |value: u16| if is_big { value.to_be_bytes() } else { value.to_le_bytes() };
            let mut file = word(magic).to_vec();
            file.extend(half(2));
            file.extend(half(4));
            file.extend([0; 8]);
            file.extend(word(65_535));
            file.extend(word(1));
            for packet in &packets {
                let fraction = (packet.time_ns % 1_000_000_000) as u32 / divisor;
                file.extend(word((packet.time_ns / 1_000_000_000) as u32));
                file.extend(word(fraction));
                file.extend(word(packet.bytes.len() as u32));
                file.extend(word(packet.bytes.len() as u32));
                if magic == 0xa1b2_cd34 {
                    // Interface index, protocol, packet type, pad.
                    file.extend([0; 8]);
                }
                file.extend(&packet.bytes);
            }
            let whole = Tables::bytes(file.clone());
            assert_eq!(whole.ints(Packets, "time"), packets.each_ref().map(|packet| i128::from(packet.time_ns)));
            file.truncate(file.len() - 7);
            let cut = Tables::bytes(file);
            assert_eq!(cut.ints(Packets, "frame_no"), [1], "{magic:x}");
            assert_eq!(cut.only_warning("cut_file").severity, "warning");
        }
    }
    assert_eq!(Tables::bytes(nano).ints(Packets, "frame_no"), [1, 2]);
}

#[test]
fn every_link_type_of_a_tap_is_decoded_and_any_other_is_said_aloud() {
    let ethernet = udp([10, 0, 0, 1], [10, 0, 0, 2], (1_111, 2_222), 20);
    let ip = &ethernet[14..];
    let behind = |head: &[u8]| [head, ip].concat();
    let links = [
        (1, ethernet.clone()),
        (101, ip.to_vec()),
        (12, ip.to_vec()),
        (14, ip.to_vec()),
        (228, ip.to_vec()),
        (0, behind(&[2, 0, 0, 0])),
        (0, behind(&[0, 0, 0, 2])),
        (108, behind(&[0, 0, 0, 2])),
        (113, behind(&[0, 0, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0, 8, 0])),
        (276, behind(&[8, 0, 0, 0, 0, 0, 0, 3, 0, 1, 0, 6, 2, 0, 0, 0, 0, 1, 0, 0])),
    ];
    for (link, bytes) in links {
        let tables = Tables::bytes(of_link(link, &bytes));
        assert_eq!(tables.ints(Packets, "dst_port"), [2_222], "link type {link}");
        assert_eq!(tables.texts(Packets, "src_ip"), ["10.0.0.1"], "link type {link}");
        assert!(!tables.findings().contains_key("unknown_link_type"));
    }
    let tables = Tables::bytes(of_link(127, &ethernet));
    let unknown = tables.only_warning("unknown_link_type");
    assert_eq!((unknown.severity.as_str(), unknown.value, unknown.count), ("error", Some(127), 1));
    assert!(unknown.en.contains("IEEE802_11_RADIOTAP") && unknown.zh.contains("IEEE802_11_RADIOTAP"));
}

fn of_link(link: u32, bytes: &[u8]) -> Vec<u8> {
    let mut file = pcap_header(link);
    file.extend(crate::support::generate::pcap_record_header(START_NS, bytes.len() as u32));
    file.extend(bytes);
    file
}

#[test]
fn merged_captures_of_two_hosts_whose_clocks_differ_are_noticed() {
    // The client's and the server's capture of one handshake, 5 ms away from each other; the server's clock is ahead.
    for (ahead_ns, expected) in
        [(80 * MS, Some((75 * MS, "server"))), (-30 * MS, Some((25 * MS, "client"))), (3 * MS, None)]
    {
        let mut client = handshake(0, 10 * MS);
        client.push(data(0).at(500 * MS));
        let server: Vec<_> = client
            .iter()
            .zip([5 * MS, -5 * MS + 10_000, 5 * MS, 5 * MS])
            .map(|(packet, way_ns)| Packet { time_ns: packet.time_ns + way_ns + ahead_ns, bytes: packet.bytes.clone() })
            .collect();
        let files = [("client.pcap", &client), ("server.pcap", &server)];
        let files = files.map(|(name, packets)| Input::NamedBytes(pcap(packets).into(), name.to_owned()));
        let set = Tables::of_set(files.into());
        let found = set.findings().remove("clock_offset");
        assert_eq!(found.is_some(), expected.is_some());
        if let (Some(found), Some((_, ahead))) = (found, expected) {
            assert!(found.en.starts_with(&format!("The clock of interface {ahead}.pcap (#")), "{}", found.en);
        }
        let mut merged: Vec<_> =
            client.into_iter().map(|packet| (0, packet)).chain(server.into_iter().map(|packet| (1, packet))).collect();
        merged.sort_by_key(|(_, packet)| packet.time_ns);
        let tables = Tables::bytes(interfaces(&["client", "server"], &merged));
        match expected {
            Some((least_ns, ahead)) => {
                let found = tables.only_warning("clock_offset");
                assert!((i128::from(least_ns) - found.value.unwrap()).abs() <= 10_000, "{found:?}");
                assert_eq!(found.count, 1);
                assert!(found.en.starts_with(&format!("The clock of interface {ahead} (#")), "{}", found.en);
            }
            // No delay is negative: the clocks may be right.
            None => assert!(!tables.findings().contains_key("clock_offset")),
        }
    }
}

#[test]
fn interfaces_of_one_host_never_look_like_two_clocks() {
    let Some(folder) = outside_folder("WIRELAB_LAB_CAPTURES", "../shared/lab-captures") else { return };
    let mut handshakes = 0;
    for path in files_below(&folder, &[".pcap", ".pcapng"]) {
        let tables = Tables::of(Input::Path(path.clone()));
        assert!(!tables.findings().contains_key("clock_offset"), "{}", path.display());
        handshakes += tables.table(TcpFlows).num_rows();
    }
    assert!(handshakes > 100, "{handshakes} connections");
}

#[test]
fn the_vantage_finding_agrees_with_the_connections() {
    let Some(folder) = outside_folder("WIRELAB_LAB_CAPTURES", "../shared/lab-captures") else { return };
    let mut seen = std::collections::BTreeSet::new();
    for path in files_below(&folder, &[".pcap", ".pcapng"]) {
        let tables = Tables::of(Input::Path(path.clone()));
        let vantages = tables.texts(TcpFlows, "vantage");
        let of = |name: &str| vantages.iter().filter(|vantage| *vantage == name).count();
        let known = vantages.len() - of("unknown");
        let findings = tables.findings();
        let Some(found) = findings.get("vantage") else {
            assert_eq!(known, 0, "{}", path.display());
            continue;
        };
        assert_eq!(found.value, Some(known as i128), "{}", path.display());
        let places = [
            ("client", "at the client"),
            ("server", "at the server"),
            ("middle", "in between"),
            ("unknown", "not known for"),
        ];
        let parts: Vec<String> = places
            .iter()
            .filter(|(name, _)| of(name) > 0)
            .map(|(name, words)| format!("{words} {}", of(name)))
            .collect();
        let text = match (parts.len(), vantages.len()) {
            (1, 1) => "(1 TCP connection), by".to_owned(),
            (1, total) => format!("(all {total} TCP connections), by"),
            (_, total) => format!("Where the {total} TCP connections were captured: {} (by", parts.join(", ")),
        };
        assert!(found.en.contains(&text), "{}: {} / {text}", path.display(), found.en);
        seen.extend(vantages);
    }
    assert!(seen.len() >= 3, "{seen:?}");
}

#[test]
fn traffic_captured_at_two_points_is_said_to_be_counted_twice() {
    let samples = crate::support::crate_root().join("sample-captures");
    let set =
        |names: &[&str]| Tables::of_set(names.iter().map(|name| Input::Path(samples.join(name))).collect()).findings();
    for (names, count, words) in [
        (["roce-loss/roce-loss.requester.pcap", "roce-loss/roce-loss.responder.pcap"], 3, "RoCE queue pairs 3;"),
        (["tcp-loss/tcp-loss.h1.pcap", "tcp-loss/tcp-loss.h2.pcap"], 2, "TCP connections 2;"),
        // Behind a service's address the server is another; it is the same connection.
        (["vxlan-kubernetes/vxlan-kubernetes.node.pcap", "vxlan-kubernetes/vxlan-kubernetes.pod.pcap"], 24, "24;"),
    ] {
        let findings = set(&names);
        let found = &findings["several_points"];
        assert_eq!((found.severity.as_str(), found.value, found.count), ("warning", Some(2), count), "{names:?}");
        assert!(found.en.contains(words) && found.en.contains("wirelab match"), "{}", found.en);
        for name in names {
            assert!(!set(&[name]).contains_key("several_points"), "{name}");
        }
    }
    // Two captures of different traffic, and two pieces of one.
    assert!(!set(&["tcp-loss/tcp-loss.h1.pcap", "tcp-reorder/tcp-reorder.pcap"]).contains_key("several_points"));
    let whole = std::fs::read(samples.join("roce-loss/roce-loss.requester.pcap")).unwrap();
    let mut at = 24;
    for _ in 0..600 {
        at += 16 + u32::from_le_bytes(whole[at + 8..at + 12].try_into().unwrap()) as usize;
    }
    let pieces = [whole[..at].to_vec(), [&whole[..24], &whole[at..]].concat()];
    let findings = Tables::of_set(pieces.map(|piece| Input::Bytes(piece.into())).into()).findings();
    assert!(!findings.contains_key("several_points"), "{findings:?}");
}

#[test]
fn large_segments_that_nothing_ever_acknowledges_look_like_a_black_hole() {
    let samples = crate::support::crate_root().join("sample-captures/path-mtu-black-hole");
    let findings = |name| Tables::of(Input::Path(samples.join(name))).findings();
    let found = &findings("black-hole.h1.pcap")["mtu_black_hole"];
    assert_eq!((found.value, found.count, found.severity.as_str()), (Some(8_948), 1, "warning"));
    for name in ["black-hole.h2.pcap", "healthy.h1.pcap"] {
        assert!(!findings(name).contains_key("mtu_black_hole"), "{name}");
    }
    // Small segments that nobody acknowledges, and large ones of which a part arrived, have other reasons.
    let is_said = |bytes: usize, acked: u32| {
        let mut packets = handshake(0, 10 * MS);
        packets.extend(
            (0..5).map(|at| Tcp { payload_bytes: bytes, ..data(0) }.id(300 + at).at((20 + 300 * i64::from(at)) * MS)),
        );
        packets.push(Tcp::new(SERVER, CLIENT, 5_001, 1_001 + acked, 0).id(900).at(3_000 * MS));
        Tables::bytes(pcap(&packets)).findings().contains_key("mtu_black_hole")
    };
    assert_eq!([is_said(1_400, 0), is_said(1_000, 0), is_said(1_400, 500)], [true, false, false]);
}

#[test]
fn every_finding_has_words_in_both_languages() {
    let mut codes = std::collections::BTreeSet::new();
    let folders =
        ["WIRELAB_CORPUS", "WIRELAB_LAB_CAPTURES"].into_iter().zip(["../shared/corpus", "../shared/lab-captures"]);
    for (variable, default) in folders {
        let Some(folder) = outside_folder(variable, default) else { return };
        for path in files_below(&folder, &[".pcap", ".pcapng", ".cap"]) {
            let request = wirelab::ScanRequest::new(TableId::CaptureQuality);
            let options = crate::support::with_threads(1);
            let Ok(tables) = crate::support::tables(vec![path.clone().into()], &options, &[request]) else { continue };
            for (code, found) in Tables(tables).findings() {
                assert!(
                    found.count > 0 && ["info", "warning", "error"].contains(&found.severity.as_str()),
                    "{found:?}"
                );
                assert!(found.zh.chars().any(|letter| letter as u32 > 0x4e00), "{}", found.zh);
                codes.insert(code);
            }
        }
    }
    assert!(codes.len() >= 15, "{codes:?}");
}
