//! The captures are what they say: every checksum right, times in order, losses visible, bytes equal for equal seeds.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use etherparse::{NetSlice, SlicedPacket, TransportSlice};

use super::output::{CaptureFile, Truth};
use super::{bulk, flows, roce, wire};

#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

struct Made {
    bytes: Vec<u8>,
    truth: Truth,
}

fn make(write: impl FnOnce(&mut CaptureFile) -> io::Result<()>) -> Made {
    let shared = Shared::default();
    let mut file = CaptureFile::to(Box::new(shared.clone())).unwrap();
    write(&mut file).unwrap();
    let truth = file.finish().unwrap();
    let bytes = shared.0.lock().unwrap().clone();
    Made { bytes, truth }
}

fn bulk_capture(seed: u64) -> Made {
    make(|file| bulk::write(&bulk::Plan::plain(12_000_000, 5, seed), file))
}

impl Made {
    /// Time in nanoseconds and bytes of every frame, read with pcap-parser.
    fn frames(&self) -> Vec<(u64, &[u8])> {
        let (mut rest, header) = pcap_parser::parse_pcap_header(&self.bytes).unwrap();
        assert!(header.is_nanosecond_precision());
        let mut frames = Vec::new();
        while !rest.is_empty() {
            let (after, block) = pcap_parser::parse_pcap_frame(rest).unwrap();
            assert_eq!(block.caplen, block.origlen);
            frames.push((u64::from(block.ts_sec) * 1_000_000_000 + u64::from(block.ts_usec), block.data));
            rest = after;
        }
        frames
    }
}

fn assert_sound(made: &Made) {
    let frames = made.frames();
    assert_eq!(frames.len() as u64, made.truth.frames);
    assert_eq!(made.bytes.len() as u64, made.truth.bytes);
    assert!(frames.is_sorted_by_key(|frame| frame.0), "times go forward");
    for (_, frame) in frames {
        assert_checksums(frame, true);
    }
}

fn assert_checksums(frame: &[u8], may_hold_tunnel: bool) {
    let packet = SlicedPacket::from_ethernet(frame).unwrap();
    let Some(NetSlice::Ipv4(ip)) = &packet.net else { panic!("not IPv4") };
    assert_eq!(wire::header_checksum(ip.header().slice()), 0);
    let (src, dst) = (ip.header().source(), ip.header().destination());
    match packet.transport.unwrap() {
        TransportSlice::Tcp(tcp) => {
            assert_eq!(wire::transport_checksum(src, dst, 6, tcp.slice()), 0)
        }
        TransportSlice::Udp(udp) if udp.destination_port() == 4789 && may_hold_tunnel => {
            assert_checksums(&udp.payload()[8..], false);
        }
        TransportSlice::Udp(udp) if udp.destination_port() == 4791 => {
            let end = frame.len() - 4;
            let stored = u32::from_le_bytes(frame[end..].try_into().unwrap());
            assert_eq!(roce::icrc(&frame[14..end], &mut Vec::new()), stored);
        }
        TransportSlice::Udp(udp) => {
            assert_eq!(wire::transport_checksum(src, dst, 17, udp.slice()), 0)
        }
        _ => panic!("neither TCP nor UDP"),
    }
}

#[test]
fn equal_seeds_give_equal_bytes_and_others_do_not() {
    let first = bulk_capture(7);
    assert!(first.bytes == bulk_capture(7).bytes);
    assert!(first.bytes != bulk_capture(8).bytes);
}

#[test]
fn a_bulk_capture_has_the_size_asked_for_and_shows_its_retransmissions() {
    let made = bulk_capture(1);
    assert_sound(&made);
    assert!(made.truth.bytes >= 12_000_000);
    assert_eq!((made.truth.tcp, made.truth.tcp_flows), (made.truth.frames, 5));
    let mut seen = HashSet::new();
    let mut repeated = 0;
    for (_, frame) in made.frames() {
        let packet = SlicedPacket::from_ethernet(frame).unwrap();
        let Some(TransportSlice::Tcp(tcp)) = packet.transport else { panic!("not TCP") };
        let identity = (tcp.source_port(), tcp.destination_port(), frame[26..34].to_vec(), tcp.sequence_number());
        repeated += u64::from(!tcp.payload().is_empty() && !seen.insert(identity));
    }
    assert!(repeated > 0);
    assert_eq!(repeated, made.truth.retransmissions);
}

#[test]
fn every_byte_of_a_bulk_transfer_passes_the_tap_in_the_end() {
    let made = bulk_capture(3);
    let mut ends: HashMap<Vec<u8>, (HashSet<u32>, u64)> = HashMap::new();
    for (_, frame) in made.frames() {
        let packet = SlicedPacket::from_ethernet(frame).unwrap();
        let Some(TransportSlice::Tcp(tcp)) = packet.transport else { panic!("not TCP") };
        let direction = ends.entry(frame[26..38].to_vec()).or_default();
        if !tcp.payload().is_empty() && direction.0.insert(tcp.sequence_number()) {
            direction.1 += tcp.payload().len() as u64;
        }
    }
    let streams: HashSet<u64> = ends.values().map(|end| end.1).filter(|&bytes| bytes > 0).collect();
    assert_eq!(streams.len(), 1, "five streams of one length: {streams:?}");
}

#[test]
fn ip_ids_of_a_bulk_sender_go_up_by_one_or_by_what_was_lost_before_the_tap() {
    let made = bulk_capture(1);
    let mut last: HashMap<Vec<u8>, u16> = HashMap::new();
    for (_, frame) in made.frames() {
        let id = u16::from_be_bytes([frame[18], frame[19]]);
        let is_syn_ack = frame[47] & 0x12 == 0x12;
        if !is_syn_ack && let Some(before) = last.insert(frame[26..38].to_vec(), id) {
            assert!((1..=4).contains(&id.wrapping_sub(before)), "{before} then {id}");
        }
    }
}

#[test]
fn vxlan_holds_sound_frames_within_the_outer_mtu() {
    let made = make(|file| bulk::write(&bulk::Plan::vxlan(3_000_000, 3, 1), file));
    assert_sound(&made);
    assert_eq!(made.truth.tcp, made.truth.frames);
    assert_eq!(made.frames().iter().map(|frame| frame.1.len()).max(), Some(1514));
}

#[test]
fn small_frames_come_in_the_number_and_size_asked_for() {
    for (packets, count) in [(20_000, 200), (30_017, 301)] {
        let made = make(|file| flows::write_small(packets, count, 1, file));
        assert_sound(&made);
        assert_eq!(made.truth.frames, packets);
        assert!(made.frames().iter().all(|frame| (66..=130).contains(&frame.1.len())));
        let conversations: HashSet<_> = made
            .frames()
            .iter()
            .map(|(_, frame)| {
                let ends = [frame[26..30].to_vec(), frame[30..34].to_vec()];
                let ports = [frame[34..36].to_vec(), frame[36..38].to_vec()];
                let (mut both, protocol) =
                    ([(ends[0].clone(), ports[0].clone()), (ends[1].clone(), ports[1].clone())], frame[23]);
                both.sort();
                (both, protocol)
            })
            .collect();
        assert_eq!(conversations.len() as u64, count);
        assert!(made.truth.retransmissions > 0 && made.truth.tcp < made.truth.frames);
    }
}

#[test]
fn short_flows_are_one_connection_each() {
    let made = make(|file| flows::write_short(3_000, 1, file));
    assert_sound(&made);
    assert_eq!((made.truth.tcp_flows, made.truth.tcp), (3_000, made.truth.frames));
}

#[test]
fn roce_captures_show_go_back_n_and_right_icrcs() {
    let made = make(|file| roce::write(40_000, 6, 1, file));
    assert_sound(&made);
    assert_eq!(made.truth.roce, made.truth.frames);
    assert!(made.truth.naks > 0);
    let psns: Vec<u32> = made
        .frames()
        .iter()
        .filter(|(_, frame)| (0x06..=0x0a).contains(&frame[42]) && frame[47..50] == [0, 1, 0])
        .map(|(_, frame)| u32::from_be_bytes([0, frame[51], frame[52], frame[53]]))
        .collect();
    let backwards = psns.windows(2).filter(|pair| pair[1].wrapping_sub(pair[0]) & 0xff_ffff > 1 << 23).count();
    assert!(backwards > 0, "the first queue pair goes back at least once");
}

#[test]
fn the_icrc_of_a_connectx_cnp_is_reproduced() {
    let mut packet = hex("45c2003c718c4000401191610a0011010a001201000012b7002800008100ffff4000011800000000");
    packet.extend_from_slice(&[0; 16]);
    assert_eq!(roce::icrc(&packet, &mut Vec::new()).to_le_bytes().to_vec(), hex("82fd002a"));
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}
