use proptest::prelude::*;

use super::*;
use crate::wire::{Ip, TunnelKind};

fn config() -> DecodeConfig {
    DecodeConfig::new(&Options::default())
}

fn decoded(link: LinkType, bytes: &[u8]) -> Chunk {
    let mut chunk = Chunk::default();
    decode(link, bytes, bytes.len() as u32, &config(), &mut chunk);
    chunk
}

fn ethernet_frame(ethertype: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1];
    bytes.extend(ethertype.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// An IPv4 packet with the second half of the identification, flags and offset given.
fn ipv4_packet(protocol: u8, flags_and_offset: u16, payload: &[u8]) -> Vec<u8> {
    let total = (20 + payload.len()) as u16;
    let mut bytes = vec![0x45, 0xb9];
    bytes.extend(total.to_be_bytes());
    bytes.extend([0, 7]);
    bytes.extend(flags_and_offset.to_be_bytes());
    bytes.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    bytes.extend(payload);
    bytes
}

fn ipv6_packet(next: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend((payload.len() as u16).to_be_bytes());
    bytes.extend([next, 63]);
    bytes.extend([0xfd; 16]);
    bytes.extend([0xfe; 16]);
    bytes.extend(payload);
    bytes
}

fn udp(dst_port: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = 50_000_u16.to_be_bytes().to_vec();
    bytes.extend(dst_port.to_be_bytes());
    bytes.extend((8 + payload.len() as u16).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.extend(payload);
    bytes
}

/// The innermost packet of the tests: a TCP segment of 5 bytes from port 1000 to 2000.
fn inner() -> Vec<u8> {
    let mut bytes = vec![0x03, 0xe8, 0x07, 0xd0, 0, 0, 0, 1, 0, 0, 0, 2, 0x50, 0x18, 1, 0, 0, 0, 0, 0];
    bytes.extend(b"hello");
    let mut packet = ipv4_packet(6, 0x4000, &bytes);
    packet[12..20].copy_from_slice(&[192, 168, 0, 1, 192, 168, 0, 2]);
    packet
}

fn gre(flags: u16, protocol: u16, rest: &[u8]) -> Vec<u8> {
    [&flags.to_be_bytes()[..], &protocol.to_be_bytes(), rest].concat()
}

/// Says what a frame whose innermost packet is [`inner`] must hold; returns its tunnel kinds and numbers.
fn tunnels_around_inner(packet: &[u8]) -> Vec<(TunnelKind, Option<u32>)> {
    let chunk = decoded(LinkType::ETHERNET, &ethernet_frame(0x0800, packet));
    let frame = chunk.frames[0];
    assert_eq!(chunk.stop_of(&frame), None);
    assert_eq!((frame.protocol, frame.src_port, frame.dst_port), (Protocol::Tcp, 1000, 2000));
    assert_eq!((frame.src_ip, frame.dst_ip), (Ip::v4([192, 168, 0, 1]), Ip::v4([192, 168, 0, 2])));
    assert_eq!((frame.payload_bytes, chunk.tcp_of(&frame).map(|tcp| tcp.seq)), (5, Some(1)));
    let tunnels = chunk.tunnels_of(&frame);
    assert_eq!((tunnels[0].src_ip, tunnels[0].dst_ip), (Ip::v4([10, 0, 0, 1]), Ip::v4([10, 0, 0, 2])));
    assert_eq!(tunnels.last().map(|tunnel| tunnel.inner_src_ip), Some(frame.src_ip));
    tunnels.iter().map(|tunnel| (tunnel.kind, tunnel.vni)).collect()
}

#[test]
fn vxlan_and_its_generic_extension_hold_a_frame_or_a_packet() {
    let frame = ethernet_frame(0x0800, &inner());
    let header = [8, 0, 0, 0, 0, 0x12, 0x34, 0];
    let vxlan = |port| ipv4_packet(17, 0, &udp(port, &[&header[..], &frame].concat()));
    assert_eq!(tunnels_around_inner(&vxlan(4789)), [(TunnelKind::Vxlan, Some(0x1234))]);
    assert_eq!(tunnels_around_inner(&vxlan(8472)), [(TunnelKind::Vxlan, Some(0x1234))]);
    let gpe = [&[0x0c, 0, 0, 1, 0, 0, 9, 0][..], &inner()[..]].concat();
    assert_eq!(tunnels_around_inner(&ipv4_packet(17, 0, &udp(4790, &gpe))), [(TunnelKind::VxlanGpe, Some(9))]);
    let gpe = [&[0x0c, 0, 0, 3, 0, 0, 9, 0][..], &frame[..]].concat();
    assert_eq!(tunnels_around_inner(&ipv4_packet(17, 0, &udp(4790, &gpe))), [(TunnelKind::VxlanGpe, Some(9))]);
}

#[test]
fn what_only_came_to_a_vxlan_port_stays_udp() {
    let packet = ipv4_packet(17, 0, &udp(8472, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]));
    let chunk = decoded(LinkType::ETHERNET, &ethernet_frame(0x0800, &packet));
    let frame = chunk.frames[0];
    assert_eq!((frame.protocol, frame.payload_bytes, frame.tunnels), (Protocol::Udp, 10, 0));
}

#[test]
fn geneve_options_are_skipped() {
    let mut payload = vec![2, 0x40, 0x65, 0x58, 0, 0, 7, 0, 1, 2, 3, 1, 0, 0, 0, 0];
    payload.extend(ethernet_frame(0x0800, &inner()));
    assert_eq!(tunnels_around_inner(&ipv4_packet(17, 0, &udp(6081, &payload))), [(TunnelKind::Geneve, Some(7))]);
    let plain = [&[0, 0, 0x08, 0, 0, 0, 7, 0][..], &inner()[..]].concat();
    assert_eq!(tunnels_around_inner(&ipv4_packet(17, 0, &udp(6081, &plain))), [(TunnelKind::Geneve, Some(7))]);
}

#[test]
fn gre_with_key_and_over_udp_and_nvgre() {
    let keyed = gre(0x2000, 0x0800, &[&[0, 0, 1, 0][..], &inner()[..]].concat());
    assert_eq!(tunnels_around_inner(&ipv4_packet(47, 0, &keyed)), [(TunnelKind::Gre, Some(256))]);
    assert_eq!(tunnels_around_inner(&ipv4_packet(17, 0, &udp(4754, &keyed))), [(TunnelKind::Gre, Some(256))]);
    let all = gre(0xb000, 0x0800, &[&[0; 4][..], &[0, 0, 0, 5], &[0, 0, 0, 1], &inner()[..]].concat());
    assert_eq!(tunnels_around_inner(&ipv4_packet(47, 0, &all)), [(TunnelKind::Gre, Some(5))]);
    let frame = ethernet_frame(0x0800, &inner());
    let nvgre = gre(0x2000, 0x6558, &[&[0, 0x20, 0, 0x55][..], &frame[..]].concat());
    assert_eq!(tunnels_around_inner(&ipv4_packet(47, 0, &nvgre)), [(TunnelKind::Nvgre, Some(0x2000))]);
}

#[test]
fn erspan_of_all_three_types() {
    let frame = ethernet_frame(0x0800, &inner());
    let first = gre(0, 0x88be, &frame);
    assert_eq!(tunnels_around_inner(&ipv4_packet(47, 0, &first)), [(TunnelKind::Erspan, None)]);
    let second = gre(0x1000, 0x88be, &[&[0, 0, 0, 1, 0x10, 0, 0, 0x64, 0, 0, 0, 0][..], &frame[..]].concat());
    assert_eq!(tunnels_around_inner(&ipv4_packet(47, 0, &second)), [(TunnelKind::Erspan, Some(100))]);
    let header = [0, 0, 0, 1, 0x20, 0, 0, 0x65, 0, 0, 0, 0, 0, 0, 0, 0];
    let third = gre(0x1000, 0x22eb, &[&header[..], &frame].concat());
    assert_eq!(tunnels_around_inner(&ipv4_packet(47, 0, &third)), [(TunnelKind::Erspan, Some(101))]);
    let with_trailer = [&header[..15], &[1], &[0; 8], &frame].concat();
    let third = gre(0x1000, 0x22eb, &with_trailer);
    assert_eq!(tunnels_around_inner(&ipv4_packet(47, 0, &third)), [(TunnelKind::Erspan, Some(101))]);
}

#[test]
fn ip_in_ip_nests_up_to_the_cap() {
    assert_eq!(tunnels_around_inner(&ipv4_packet(4, 0, &inner())), [(TunnelKind::IpInIp, None)]);
    let six = ipv6_packet(4, &inner());
    assert_eq!(tunnels_around_inner(&ipv4_packet(41, 0, &six)), [(TunnelKind::IpInIp, None); 2]);
    let mut packet = inner();
    for _ in 0..5 {
        packet = ipv4_packet(4, 0, &packet);
    }
    let chunk = decoded(LinkType::RAW, &packet);
    let frame = chunk.frames[0];
    assert_eq!(chunk.stop_of(&frame).map(|stop| stop.kind), Some(DecodeErrorKind::TooDeep));
    assert_eq!(frame.tunnels, 4);
}

#[test]
fn a_packet_of_another_version_is_no_tunnel() {
    let chunk = decoded(LinkType::RAW, &ipv4_packet(41, 0, &inner()));
    let frame = chunk.frames[0];
    let kind = DecodeErrorKind::BadField { field: "version", value: 4 };
    assert_eq!(chunk.stop_of(&frame), Some(&DecodeError { layer: Layer::Ipv6, offset_bytes: 20, kind }));
    assert_eq!((frame.tunnels, frame.src_ip), (0, Ip::v4([10, 0, 0, 1])));
}

#[test]
fn vlan_and_mpls_are_those_of_the_wire() {
    let tagged = [&[0xa0, 0x64, 0x81, 0, 0, 0xc8, 8, 0][..], &inner()[..]].concat();
    let chunk = decoded(LinkType::ETHERNET, &ethernet_frame(0x88a8, &tagged));
    let frame = chunk.frames[0];
    assert!(frame.layers.has(Layers::VLAN) && frame.layers.has(Layers::QINQ));
    assert_eq!((frame.vlan_tci, frame.inner_vlan_tci, frame.ethertype), (0xa064, 0xc8, 0x0800));
    assert_eq!(frame.protocol, Protocol::Tcp);
    // A pseudowire with a control word, and a tag inside that is not the wire's.
    let inside = ethernet_frame(0x8100, &[&[0, 0x33, 8, 0][..], &inner()[..]].concat());
    let labels = [&[0, 1, 0x20, 64, 0, 2, 0x31, 64, 0, 0, 0, 0][..], &inside[..]].concat();
    let chunk = decoded(LinkType::ETHERNET, &ethernet_frame(0x8847, &labels));
    let frame = chunk.frames[0];
    assert!(frame.layers.has(Layers::MPLS) && !frame.layers.has(Layers::VLAN));
    assert_eq!((frame.mpls_label, frame.ethertype, frame.protocol), (0x12, 0x8847, Protocol::Tcp));
    assert_eq!(frame.src_mac.to_string(), "02:00:00:00:00:01");
}

#[test]
fn extension_and_authentication_headers_are_followed() {
    let tcp = &inner()[20..];
    let authentication = [6, 4, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12];
    let chunk = decoded(LinkType::RAW, &ipv4_packet(51, 0, &[&authentication[..], tcp].concat()));
    assert_eq!((chunk.frames[0].protocol, chunk.frames[0].ip_protocol), (Protocol::Tcp, 6));
    let chain = [
        &[60, 0, 1, 4, 0, 0, 0, 0][..], // hop-by-hop
        &[43, 0, 1, 4, 0, 0, 0, 0],     // destination options
        &[44, 0, 0, 0, 0, 0, 0, 0],     // routing
        &[6, 0, 0, 0, 0, 0, 0, 9],      // fragment header of a whole packet
        tcp,
    ];
    let chunk = decoded(LinkType::RAW, &ipv6_packet(0, &chain.concat()));
    let frame = chunk.frames[0];
    assert_eq!((frame.protocol, frame.ip_protocol, frame.ip_id, frame.ttl), (Protocol::Tcp, 6, 9, 63));
    assert!(!frame.layers.has(Layers::FRAGMENT) && frame.layers.has(Layers::IP_OPTIONS));
    let endless: Vec<u8> = [60, 0, 1, 4, 0, 0, 0, 0].repeat(40);
    let chunk = decoded(LinkType::RAW, &ipv6_packet(60, &endless));
    assert_eq!(chunk.stop_of(&chunk.frames[0]).map(|stop| stop.kind), Some(DecodeErrorKind::TooDeep));
}

#[test]
fn lengths_are_declared_and_payload_is_what_there_is_room_for() {
    let mut packet = inner();
    packet[2..4].copy_from_slice(&1500_u16.to_be_bytes());
    let chunk = decoded(LinkType::RAW, &packet);
    assert_eq!((chunk.frames[0].ip_bytes, chunk.frames[0].payload_bytes), (1500, 5));
    packet[2..4].copy_from_slice(&[0, 0]);
    let chunk = decoded(LinkType::RAW, &packet);
    assert_eq!((chunk.frames[0].ip_bytes, chunk.frames[0].payload_bytes), (45, 5));
    assert!(chunk.frames[0].layers.has(Layers::TOTAL_LENGTH_ZERO));
    // Ethernet padding is no payload.
    let mut padded = ethernet_frame(0x0800, &inner());
    padded.resize(90, 0);
    assert_eq!(decoded(LinkType::ETHERNET, &padded).frames[0].payload_bytes, 5);
}

#[test]
fn a_first_fragment_that_carries_a_packet_waits_for_the_rest_unless_it_was_cut() {
    let vxlan = [&[8, 0, 0, 0, 0, 0, 1, 0][..], &ethernet_frame(0x0800, &inner())[..]].concat();
    let packet = ipv4_packet(17, 0x2000, &udp(4789, &vxlan));
    let chunk = decoded(LinkType::RAW, &packet);
    assert_eq!((chunk.frames[0].protocol, chunk.frames[0].tunnels, chunk.fragments.len()), (Protocol::Udp, 0, 1));
    let mut chunk = Chunk::default();
    decode(LinkType::RAW, &packet[..packet.len() - 2], packet.len() as u32, &config(), &mut chunk);
    assert_eq!((chunk.frames[0].protocol, chunk.frames[0].tunnels), (Protocol::Tcp, 1));
}

#[test]
fn a_loopback_header_may_have_either_byte_order() {
    for header in [[2, 0, 0, 0], [0, 0, 0, 2], [0x0f, 0, 8, 0]] {
        let chunk = decoded(LinkType::NULL, &[&header[..], &inner()].concat());
        assert_eq!(chunk.frames[0].protocol, Protocol::Tcp);
    }
}

#[test]
fn every_cut_of_a_tunnelled_frame_keeps_the_layers_before_it() {
    let vxlan = [&[8, 0, 0, 0, 0, 0, 1, 0][..], &ethernet_frame(0x0800, &inner())[..]].concat();
    let whole = ethernet_frame(0x0800, &ipv4_packet(17, 0, &udp(4789, &vxlan)));
    for length in 0..whole.len() {
        let mut chunk = Chunk::default();
        decode(LinkType::ETHERNET, &whole[..length], whole.len() as u32, &config(), &mut chunk);
        let frame = chunk.frames[0];
        assert_eq!(frame.layers.has(Layers::MACS), length >= 14, "{length}");
        // A cut within the payload leaves every header.
        let is_whole = length >= whole.len() - 5;
        assert_eq!(frame.protocol == Protocol::Tcp && frame.stop == 0, is_whole, "{length}");
        assert_eq!(chunk.tunnels.first().map(|tunnel| tunnel.src_ip), (length >= 50).then(|| Ip::v4([10, 0, 0, 1])));
    }
}

proptest! {
    #[test]
    fn any_bytes_of_any_link_type_decode_without_panic_and_stop_within_the_frame(
        link in prop_oneof![Just(1_u16), Just(0), Just(12), Just(101), Just(108), Just(113), Just(228), Just(229), Just(276), any::<u16>()],
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        original in any::<u32>(),
    ) {
        let mut chunk = Chunk::default();
        decode(LinkType(link), &bytes, original, &config(), &mut chunk);
        prop_assert_eq!(chunk.frames.len(), 1);
        for stop in &chunk.stops {
            prop_assert!(stop.offset_bytes <= bytes.len().max(original as usize));
        }
    }

    #[test]
    fn any_damage_to_a_tunnelled_frame_decodes_without_panic(
        at in 0_usize..130, value in any::<u8>(), length in 0_usize..130, kind in 0_usize..6,
    ) {
        let frame = ethernet_frame(0x0800, &inner());
        let packet = match kind {
            0 => ipv4_packet(17, 0, &udp(4789, &[&[8, 0, 0, 0, 0, 0, 1, 0][..], &frame[..]].concat())),
            1 => ipv4_packet(17, 0, &udp(6081, &[&[2, 0, 0x65, 0x58, 0, 0, 7, 0][..], &[0; 8], &frame[..]].concat())),
            2 => ipv4_packet(47, 0, &gre(0x1000, 0x22eb, &[&[0; 16][..], &frame[..]].concat())),
            3 => ipv6_packet(0, &[&[44, 0, 1, 4, 0, 0, 0, 0][..], &[6, 0, 0, 1, 0, 0, 0, 9], &inner()[20..]].concat()),
            4 => ipv4_packet(17, 0, &udp(4791, &[0x06; 60])),
            _ => ipv4_packet(1, 0, &[&[3, 4, 0, 0, 0, 0, 5, 0xdc][..], &inner()[..]].concat()),
        };
        let mut bytes = ethernet_frame(if kind == 3 { 0x86dd } else { 0x0800 }, &packet);
        let original = bytes.len() as u32;
        if let Some(byte) = bytes.get_mut(at) {
            *byte = value;
        }
        bytes.truncate(length);
        let mut chunk = Chunk::default();
        decode(LinkType::ETHERNET, &bytes, original, &config(), &mut chunk);
        prop_assert_eq!(chunk.frames.len(), 1);
    }
}
