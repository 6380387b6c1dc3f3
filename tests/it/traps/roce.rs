//! RoCE and PFC as they really look: codes, ports, numbers and silences that mislead other tools.

use wirelab::wire::icrc::icrc_ipv4;
use wirelab::{Input, Options, ScanRequest, TableId};

use super::{Found, Tables};
use crate::support::cells::{self, Value};
use crate::support::craft::{CLIENT, MS, SERVER, Tcp, handshake, mend_ip_checksum};
use crate::support::generate::{Packet, START_NS, pcap, udp};
use crate::support::{TableBatches, outside_folder, tables, with_threads};

pub(super) const A: [u8; 4] = [10, 0, 18, 1];
pub(super) const B: [u8; 4] = [10, 0, 17, 1];

/// A CNP of a ConnectX-4 Lx, as captured: IPv4 with TOS 0xC2, UDP source port 0, BTH, 16 reserved bytes, invariant CRC.
pub(super) const CNP: &str = "45c2003c718c4000401191610a0011010a001201000012b7002800008100ffff4000011800000000\
                   0000000000000000000000000000000082fd002a";

pub(super) fn bytes_of(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

pub(super) fn ethernet(ip: &[u8]) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x08, 0x00];
    frame.extend(ip);
    frame
}

/// A RoCEv2 packet with `extension` headers and `payload_bytes` of payload; its invariant CRC is right, its UDP checksum absent.
pub(super) fn roce(from: [u8; 4], to: [u8; 4], bth: [u8; 12], extension: &[u8], payload_bytes: usize) -> Vec<u8> {
    let mut frame = udp(from, to, (0xd123, 4_791), 12 + extension.len() + payload_bytes + 4);
    frame[42..54].copy_from_slice(&bth);
    frame[54..54 + extension.len()].copy_from_slice(extension);
    frame[40..42].fill(0);
    let end = frame.len() - 4;
    let (ip, udp) = (frame[14..34].try_into().unwrap(), frame[34..42].try_into().unwrap());
    let icrc = icrc_ipv4(ip, udp, &frame[42..end]);
    frame[end..].copy_from_slice(&icrc.to_le_bytes());
    frame
}

pub(super) fn bth(opcode: u8, dest_qp: u32, psn: u32) -> [u8; 12] {
    let ([_, q0, q1, q2], [_, p0, p1, p2]) = (dest_qp.to_be_bytes(), psn.to_be_bytes());
    [opcode, 0x40, 0xff, 0xff, 0, q0, q1, q2, 0x80, p0, p1, p2]
}

pub(super) fn with_tos(mut frame: Vec<u8>, tos: u8) -> Vec<u8> {
    frame[15] = tos;
    mend_ip_checksum(&mut frame);
    frame
}

pub(super) fn send(psn: u32) -> Vec<u8> {
    roce(A, B, bth(0x04, 0x20, psn), &[], 64)
}

pub(super) fn ack(psn: u32) -> Vec<u8> {
    roce(B, A, bth(0x11, 0x118, psn), &[0x1f, 0, 0, 1], 0)
}

pub(super) fn pfc(class: u8, quanta: u16, mac: [u8; 6]) -> Vec<u8> {
    let mut frame = vec![0x01, 0x80, 0xc2, 0, 0, 0x01];
    frame.extend(mac);
    frame.extend([0x88, 0x08, 0x01, 0x01, 0, 1 << class]);
    let mut quantas = [0; 16];
    quantas[2 * usize::from(class)..][..2].copy_from_slice(&quanta.to_be_bytes());
    frame.extend(quantas);
    frame.resize(60, 0);
    frame
}

pub(super) fn capture(frames: Vec<Vec<u8>>) -> Vec<u8> {
    let packets = frames.into_iter().enumerate();
    let packets: Vec<_> = packets.map(|(at, bytes)| Packet { time_ns: START_NS + at as i64 * 20_000, bytes }).collect();
    pcap(&packets)
}

fn table(bytes: &[u8], table: TableId, options: Options) -> TableBatches {
    let inputs = vec![Input::Bytes(bytes.to_vec().into())];
    tables(inputs, &options, &[ScanRequest::new(table)]).unwrap().remove(0)
}

pub(super) fn rows(bytes: &[u8], id: TableId) -> TableBatches {
    table(bytes, id, with_threads(1))
}

pub(super) fn finding(bytes: Vec<u8>, code: &str) -> Option<Found> {
    Tables::bytes(bytes).findings().remove(code)
}

#[test]
fn a_roce_lab_without_a_roce_packet_is_told_why_and_how_to_capture() {
    // perftest sets up its queue pairs over TCP port 18515; hardware then bypasses tcpdump.
    let mut packets = handshake(0, 10 * MS);
    for packet in &mut packets {
        let at = if packet.bytes[30..34] == SERVER.ip { 36 } else { 34 };
        packet.bytes[at..at + 2].copy_from_slice(&18_515_u16.to_be_bytes());
    }
    let found = finding(pcap(&packets), "roce_expected").expect("a finding");
    assert_eq!((found.severity.as_str(), found.count, found.frames), ("warning", 1, vec![1]));
    assert!(found.en.contains("bypasses") && found.en.contains("mlx5_0"), "{}", found.en);
    // Other TCP says nothing of the kind.
    let plain = vec![Tcp::new(CLIENT, SERVER, 1, 1, 100).at(0)];
    assert!(finding(pcap(&plain), "roce_expected").is_none());
}

#[test]
fn a_cnp_is_0x81_and_the_code_of_native_infiniband_is_told_apart() {
    let native = roce(
        B,
        A,
        {
            let mut cnp = bth(0x80, 0x118, 0);
            cnp[4] = 0x40;
            cnp
        },
        &[0; 16],
        0,
    );
    let bytes = capture(vec![send(5), ack(5), ethernet(&bytes_of(CNP)), native]);
    let roce = rows(&bytes, TableId::Roce);
    let names = cells::texts(&roce.batches, "opcode_name");
    assert_eq!(names[2..], ["CNP", "CNP_INFINIBAND"]);
    assert_eq!(cells::ints(&rows(&bytes, TableId::RoceQps).batches, "cnp_count"), [2]);
    assert_eq!(cells::ints(&roce.batches, "qp_id"), [0, 0, 0, 0]);
}

#[test]
fn congestion_bits_of_the_transport_header_have_columns_of_their_own() {
    let mut forward = bth(0x04, 0x20, 1);
    forward[4] = 0x80;
    let bytes = capture(vec![roce(A, B, forward, &[], 64), ethernet(&bytes_of(CNP))]);
    let roce = rows(&bytes, TableId::Roce);
    let column = |name| cells::column(&roce.batches, name);
    assert_eq!(column("is_fecn"), [Value::Bool(true), Value::Bool(false)]);
    assert_eq!(column("is_becn"), [Value::Bool(false), Value::Bool(true)]);
}

#[test]
fn the_invariant_crc_is_no_payload_and_is_checked_in_its_own_byte_order() {
    let mut wrong = bytes_of(CNP);
    let end = wrong.len();
    wrong[end - 4..].reverse();
    let bytes = capture(vec![ethernet(&bytes_of(CNP)), ethernet(&wrong), send(1)]);
    let roce = rows(&bytes, TableId::Roce);
    assert_eq!(cells::texts(&roce.batches, "icrc_status"), ["ok", "bad", "ok"]);
    assert_eq!(cells::ints(&roce.batches, "payload_bytes"), [16, 16, 64]);
}

#[test]
fn a_udp_source_port_of_4791_alone_makes_no_roce_packet() {
    let mut reply = udp(B, A, (4_791, 53_000), 40);
    reply[42..54].copy_from_slice(&bth(0x04, 0x20, 1));
    let mut text = udp(A, B, (53_000, 4_791), 40);
    text[42..82].fill(b'x');
    let bytes = capture(vec![reply, text, send(1)]);
    assert_eq!(cells::ints(&rows(&bytes, TableId::Roce).batches, "frame_no"), [3]);
}

#[test]
fn the_queue_pair_that_sends_is_found_although_no_packet_names_it() {
    let bytes = capture((0..4).flat_map(|psn| [send(psn), ack(psn)]).collect());
    let qps = rows(&bytes, TableId::RoceQps);
    assert_eq!(cells::ints(&qps.batches, "requester_qp"), [0x118]);
    assert_eq!(cells::texts(&qps.batches, "paired_by"), ["psn"]);
    assert_eq!(cells::texts(&qps.batches, "pair_confidence"), ["high"]);
    // Without answers the number stays unknown.
    let mute = rows(&capture((0..4).map(send).collect()), TableId::RoceQps);
    assert_eq!(cells::column(&mute.batches, "requester_qp"), [Value::Null]);
    assert_eq!(cells::column(&mute.batches, "paired_by"), [Value::Null]);
}

#[test]
fn numbers_of_24_bits_wrap_and_one_acknowledgement_covers_many() {
    let psns = [0xff_fffd, 0xff_fffe, 0xff_ffff, 0, 1];
    let bytes = capture(psns.map(send).into_iter().chain([ack(1)]).collect());
    let roce = rows(&bytes, TableId::Roce);
    let text = |text: &str| vec![Value::Text(text.to_owned()); 5];
    assert_eq!(cells::column(&roce.batches, "sent")[..5], text("new"));
    assert_eq!(cells::column(&roce.batches, "arrival")[..5], text("in_order"));
    let messages = rows(&bytes, TableId::RoceMessages);
    assert_eq!(cells::texts(&messages.batches, "completion"), ["acknowledged"; 5]);
}

#[test]
fn no_pause_frame_in_a_hosts_capture_proves_nothing_and_that_is_said() {
    let found = finding(capture(vec![send(1), ack(1)]), "no_pause_frames").expect("a finding");
    assert!(found.en.contains("ethtool -S") && found.severity == "info", "{}", found.en);
    // A pause frame without a source address (some switches send them) is one all the same.
    let bytes = capture(vec![send(1), ack(1), pfc(3, 0xffff, [0; 6]), pfc(3, 0, [0; 6])]);
    assert!(finding(bytes.clone(), "no_pause_frames").is_none());
    assert_eq!(cells::texts(&rows(&bytes, TableId::PauseIntervals).batches, "ended_by"), ["xon"]);
}

#[test]
fn pause_times_need_the_link_speed() {
    let bytes = capture(vec![pfc(3, 0xffff, [2; 6]), pfc(3, 0xffff, [2; 6])]);
    let unknown = rows(&bytes, TableId::PauseIntervals);
    assert_eq!(cells::column(&unknown.batches, "duration_ns"), [Value::Null]);
    assert_eq!(cells::ints(&unknown.batches, "quanta"), [0xffff]);
    let mut later = capture(vec![pfc(3, 0xffff, [2; 6])]);
    later.extend(&pcap(&[Packet { time_ns: START_NS + 500 * MS, bytes: send(1) }])[24..]);
    for (speed, expected) in [(10_000_000_000, 3_355_392), (100_000_000_000, 335_539), (400_000_000_000, 83_884)] {
        let options = Options { link_speed_bps: Some(speed), ..with_threads(1) };
        let known = table(&later, TableId::PauseIntervals, options);
        assert_eq!(cells::ints(&known.batches, "duration_ns"), [expected]);
    }
}

#[test]
fn a_class_held_for_200_ms_is_a_storm_and_the_length_of_one_is_settable() {
    // Refreshed every 3 ms at 10 Gb/s, for 210 ms.
    let packets: Vec<_> = (0..70)
        .map(|at| Packet { time_ns: START_NS + at * 3 * MS, bytes: pfc(3, 0xffff, [2; 6]) })
        .chain([Packet { time_ns: START_NS + 210 * MS, bytes: pfc(3, 0, [2; 6]) }])
        .collect();
    let options = |storm_ms: i64| Options {
        link_speed_bps: Some(10_000_000_000),
        pause_storm_ns: storm_ms * MS,
        ..with_threads(1)
    };
    for (storm_ms, is_storm) in [(200, true), (500, false)] {
        let pauses = table(&pcap(&packets), TableId::PauseIntervals, options(storm_ms));
        assert_eq!(cells::column(&pauses.batches, "is_storm"), [Value::Bool(is_storm)]);
        assert_eq!(cells::ints(&pauses.batches, "pause_count"), [70]);
        let quality = table(&pcap(&packets), TableId::CaptureQuality, options(storm_ms));
        assert_eq!(cells::texts(&quality.batches, "code").contains(&"pause_storm".to_owned()), is_storm);
    }
}

#[test]
fn a_cnp_of_real_hardware_has_dscp_48_ect_and_source_port_0() {
    let bytes = capture(vec![ethernet(&bytes_of(CNP))]);
    let roce = rows(&bytes, TableId::Roce);
    let int = |name| cells::ints(&roce.batches, name)[0];
    assert_eq!((int("src_port"), int("dscp"), int("ecn"), int("dest_qp")), (0, 48, 2, 0x118));
    assert_eq!(cells::texts(&roce.batches, "opcode_name"), ["CNP"]);
    assert_eq!(cells::texts(&roce.batches, "icrc_status"), ["ok"]);
}

#[test]
fn marks_and_notifications_are_held_against_each_other() {
    let marked = |psn| with_tos(send(psn), 0x6b);
    let plain = |psn| with_tos(send(psn), 0x6a);
    let cnp = || ethernet(&bytes_of(CNP));
    let start = || vec![plain(0), ack(0)];
    let without = [start(), vec![marked(1), marked(2), ack(2)]].concat();
    let found = finding(capture(without), "roce_ce_without_cnp").expect("marks without notification");
    assert_eq!((found.value, found.frames), (Some(2), vec![3]));
    let unseen = [start(), vec![plain(1), cnp(), ack(1)]].concat();
    let found = finding(capture(unseen), "roce_cnp_without_ce").expect("notifications without marks");
    assert_eq!((found.value, found.severity.as_str()), (Some(1), "info"));
    let both = capture([start(), vec![marked(1), cnp(), ack(1)]].concat());
    let qps = rows(&both, TableId::RoceQps);
    assert_eq!(cells::ints(&qps.batches, "ce_to_cnp_min_ns"), [20_000]);
    assert!(finding(both, "roce_congestion").is_some());
}

#[test]
fn classes_that_do_not_fit_each_other_are_told() {
    let zero = capture(vec![send(1), ack(1), pfc(3, 0xffff, [2; 6])]);
    let findings = Tables::bytes(zero).findings();
    assert!(findings["pfc_other_class"].en.contains("priority 3") && findings.contains_key("roce_dscp_zero"));
    assert_eq!(findings["roce_not_ect"].value, Some(1));
    // DSCP 26 is class 3: now they agree.
    let fitting = capture(vec![with_tos(send(1), 0x6a), ack(1), pfc(3, 0xffff, [2; 6])]);
    let findings = Tables::bytes(fitting).findings();
    for code in ["pfc_other_class", "roce_dscp_zero", "roce_not_ect"] {
        assert!(!findings.contains_key(code), "{code}");
    }
    // A CNP in the class of the data waits behind it.
    let mut cnp = bytes_of(CNP);
    cnp[1] = 0x6a;
    let mut cnp = ethernet(&cnp);
    mend_ip_checksum(&mut cnp);
    let shared = capture(vec![with_tos(send(1), 0x6a), ack(1), cnp]);
    assert!(finding(shared, "roce_cnp_in_data_class").is_some());
    // VLAN priority 5 and DSCP 26.
    let mut tagged = with_tos(send(1), 0x6a);
    tagged.splice(12..12, [0x81, 0x00, 0xa0, 0x01]);
    let found = finding(capture(vec![tagged]), "roce_pcp_mismatch").expect("a mismatch");
    assert!(found.en.contains("priority 5") && found.en.contains("DSCP 26"), "{}", found.en);
}

#[test]
fn soft_roce_marks_without_cnps_and_a_lab_with_pfc_on_the_wrong_class_are_found_in_real_captures() {
    let Some(folder) = outside_folder("WIRELAB_LAB_CAPTURES", "../shared/lab-captures") else { return };
    let findings = Tables::of(folder.join("roce_ecn_red.vm1.pcap")).findings();
    // RED marked 981 packets on the way, by its own count.
    assert_eq!(findings["roce_ce_without_cnp"].value, Some(981));
    // Beside a capture from before the switch the share is still of the packets that passed it.
    let both = ["roce_ecn_red.vm0.pcap", "roce_ecn_red.vm1.pcap"].map(|name| Input::Path(folder.join(name)));
    let said = Tables::of_set(both.into()).findings();
    assert!(said["roce_ce_without_cnp"].en.contains("981 of 2560"), "{}", said["roce_ce_without_cnp"].en);
    let findings = Tables::of(folder.join("roce_pfc.vm0.pcap")).findings();
    assert!(findings["pfc_other_class"].en.contains("priority 3"));
    let findings = Tables::of(folder.join("roce_write_loss1.vm0.pcap")).findings();
    assert!(findings["roce_retransmit"].value > Some(1_000));
    assert!(findings["roce_queue_pairs"].en.contains("(requester of 2"));
    // Both timeouts follow NAKs of the very packets, which Soft-RoCE ignored.
    let waits = &findings["roce_timeout_wait"].en;
    assert!(waits.contains("had already asked for the packet, in vain: the requester ignored it"), "{waits}");
    assert!(findings["roce_retransmit"].en.ends_with("Exact, since captured at the requester."));
    let far = Tables::of(folder.join("roce_write_loss1.vm1.pcap")).findings();
    assert!(far["roce_timeout_wait"].en.contains("in vain: it was lost on its way, or the requester ignored it"));
    assert!(far["roce_retransmit"].en.ends_with("Packets lost before the capture point are missing."));
    let findings = Tables::of(folder.join("roce_verbs.vm0.pcap")).findings();
    assert_eq!((findings["roce_rnr"].value, findings["roce_nak"].value), (Some(53), Some(4)));
    assert!(
        findings["roce_nak"].en.contains("not allowed) 3, remote operational error"),
        "{}",
        findings["roce_nak"].en
    );
}

#[test]
fn a_request_that_the_network_copied_is_no_copy_of_a_mirror_port_and_no_waste_of_go_back_n() {
    let with_id = |mut frame: Vec<u8>, id: u16| {
        frame[18..20].copy_from_slice(&id.to_be_bytes());
        mend_ip_checksum(&mut frame);
        frame
    };
    let mut frames: Vec<_> = (0..20).map(|psn| with_id(send(psn), 100 + psn as u16)).collect();
    frames.insert(11, frames[10].clone());
    frames.push(ack(19));
    let findings = Tables::bytes(capture(frames)).findings();
    let found = &findings["roce_network_duplicates"];
    assert_eq!((found.severity.as_str(), found.value), ("info", Some(1)));
    let codes: Vec<_> = findings.keys().filter(|code| *code != "roce_network_duplicates").collect();
    assert!(!codes.iter().any(|code| ["duplicate_frames", "roce_discarded"].contains(&code.as_str())), "{codes:?}");
    // A mirror port shows all of them twice.
    let frames = (0..20).flat_map(|psn| vec![with_id(send(psn), 100 + psn as u16); 2]);
    let findings = Tables::bytes(capture(frames.collect())).findings();
    assert_eq!(findings["duplicate_frames"].count, 20);
    assert!(!findings.contains_key("roce_network_duplicates"));
}
