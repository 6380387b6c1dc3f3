//! Link layers: what each link type puts before the network layer.

use super::address::Mac;
use super::error::{DecodeErrorKind, Layer};
use super::frame::{Frame, Layers, PacketDirection};
use super::{be16, be32, walk::Next};
use crate::capture::LinkType;

pub(super) type LinkResult = Result<Next, (Layer, usize, DecodeErrorKind)>;

pub(super) fn link_layer(link: LinkType, bytes: &[u8], frame: &mut Frame) -> LinkResult {
    match link {
        LinkType::ETHERNET => ethernet(bytes, 0, frame),
        LinkType::LINUX_SLL => linux_sll(bytes, frame),
        LinkType::LINUX_SLL2 => linux_sll2(bytes, frame),
        LinkType::RAW | LinkType::RAW_BSD | LinkType::RAW_OPENBSD => raw_ip(bytes),
        LinkType::IPV4 => Ok(Next::Ipv4(0)),
        LinkType::IPV6 => Ok(Next::Ipv6(0)),
        LinkType::NULL | LinkType::LOOP => null(bytes),
        LinkType(link_type) => Err((Layer::Link, 0, DecodeErrorKind::UnknownLinkType { link_type })),
    }
}

/// Ethernet II, or IEEE 802.3 with a length instead of an EtherType. Only the outermost frame's addresses are kept.
pub(super) fn ethernet(bytes: &[u8], at: usize, frame: &mut Frame) -> LinkResult {
    let header = need::<14>(bytes, at, Layer::Ethernet)?;
    if !frame.layers.has(Layers::MACS) && frame.tunnels == 0 {
        frame.layers.set(Layers::MACS);
        frame.dst_mac = Mac(std::array::from_fn(|i| header[i]));
        frame.src_mac = Mac(std::array::from_fn(|i| header[6 + i]));
    }
    Ok(Next::EtherType(be16(header, 12), at + 14))
}

/// `LINKTYPE_LINUX_SLL`: packet type 2, ARPHRD type 2, address length 2, address 8, protocol 2.
fn linux_sll(bytes: &[u8], frame: &mut Frame) -> LinkResult {
    let header = need::<16>(bytes, 0, Layer::Link)?;
    source_mac(frame, be16(header, 4), &header[6..12]);
    frame.direction = PacketDirection::of_cooked(be16(header, 0));
    cooked_next(be16(header, 14), be16(header, 2), 16)
}

/// `LINKTYPE_LINUX_SLL2`: protocol 2, reserved 2, interface index 4, ARPHRD type 2, packet type 1, address length 1,
/// address 8.
fn linux_sll2(bytes: &[u8], frame: &mut Frame) -> LinkResult {
    let header = need::<20>(bytes, 0, Layer::Link)?;
    source_mac(frame, u16::from(header[11]), &header[12..18]);
    frame.direction = PacketDirection::of_cooked(u16::from(header[10]));
    frame.layers.set(Layers::IF_INDEX);
    frame.if_index = be32(header, 4);
    cooked_next(be16(header, 0), be16(header, 8), 20)
}

fn source_mac(frame: &mut Frame, length: u16, address: &[u8]) {
    if length == 6 {
        frame.layers.set(Layers::SOURCE_MAC_ONLY);
        frame.src_mac = Mac(std::array::from_fn(|i| address[i]));
    }
}

/// What follows a cooked header depends on the protocol field and, for some devices, on the ARPHRD type.
fn cooked_next(protocol: u16, arphrd: u16, at: usize) -> LinkResult {
    const ARPHRD_IPGRE: u16 = 778;
    const ARPHRD_NETLINK: u16 = 824;
    match (arphrd, protocol) {
        (ARPHRD_NETLINK, _) => Ok(Next::Opaque),
        // The GRE device gives the protocol of the payload, which is an Ethernet frame for 0x6558.
        (ARPHRD_IPGRE, 0x6558) => Ok(Next::Ethernet(at)),
        // Below 0x600 these are kernel pseudo-protocols (802.3 raw, LLC, CAN ...).
        (_, 0..0x0600) => Ok(Next::Opaque),
        _ => Ok(Next::EtherType(protocol, at)),
    }
}

fn raw_ip(bytes: &[u8]) -> LinkResult {
    let first = need::<1>(bytes, 0, Layer::Link)?[0];
    match first >> 4 {
        4 => Ok(Next::Ipv4(0)),
        6 => Ok(Next::Ipv6(0)),
        version => Err((Layer::Link, 0, DecodeErrorKind::BadField { field: "IP version", value: u64::from(version) })),
    }
}

/// BSD loopback: an address family in the byte order of the capturing host (NULL) or of the network (LOOP).
fn null(bytes: &[u8]) -> LinkResult {
    let header = *need::<4>(bytes, 0, Layer::Link)?;
    let family = match u32::from_be_bytes(header) {
        // A family is a small number: the other reading has it in the upper half.
        swapped if swapped > 0xffff => u32::from_le_bytes(header),
        family => family,
    };
    match family {
        2 => Ok(Next::Ipv4(4)),
        // AF_INET6 of NetBSD/OpenBSD, FreeBSD, Darwin, Linux and Windows.
        24 | 28 | 30 | 10 | 23 => Ok(Next::Ipv6(4)),
        // Some writers put an EtherType here, or into the last two bytes.
        0x0800 | 0x86dd => Ok(Next::EtherType(family as u16, 4)),
        _ => match be16(&header, 2) {
            ethertype @ (0x0800 | 0x86dd) => Ok(Next::EtherType(ethertype, 4)),
            _ => Ok(Next::Opaque),
        },
    }
}

pub(super) fn need<const N: usize>(
    bytes: &[u8],
    at: usize,
    layer: Layer,
) -> Result<&[u8; N], (Layer, usize, DecodeErrorKind)> {
    let rest = bytes.get(at..).unwrap_or(&[]);
    rest.first_chunk::<N>().ok_or((layer, at, DecodeErrorKind::Truncated { need_bytes: N, have_bytes: rest.len() }))
}
