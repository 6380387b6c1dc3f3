//! What decoding leaves of a frame: one flat record, and lists beside it for what only some frames have.

use super::address::{Ip, Mac};
use super::arp::ArpPacket;
use super::checksum::ChecksumStatus;
use super::error::DecodeError;
use super::icmp::IcmpMessage;
use super::pause::PauseFrame;
use super::roce::RocePacket;
use super::tcp::TcpHeader;
use super::tunnel::TunnelLayer;

/// Which layers and features a frame has; a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Layers(pub u32);

impl Layers {
    /// The frame has a source and a destination MAC address.
    pub const MACS: Self = Self(1);
    pub const VLAN: Self = Self(1 << 1);
    /// A second VLAN tag (IEEE 802.1ad).
    pub const QINQ: Self = Self(1 << 2);
    pub const MPLS: Self = Self(1 << 3);
    /// The innermost network layer is IPv4 or IPv6.
    pub const IP: Self = Self(1 << 4);
    pub const PORTS: Self = Self(1 << 5);
    /// The innermost IP packet is a fragment.
    pub const FRAGMENT: Self = Self(1 << 6);
    pub const MORE_FRAGMENTS: Self = Self(1 << 7);
    pub const DONT_FRAGMENT: Self = Self(1 << 8);
    /// The packet has an identification: IPv4, or IPv6 with a fragment header.
    pub const IP_ID: Self = Self(1 << 9);
    pub const VNI: Self = Self(1 << 10);
    /// IPv4 total length 0: segmentation was left to the network card.
    pub const TOTAL_LENGTH_ZERO: Self = Self(1 << 11);
    /// The source MAC address alone is known (Linux cooked capture).
    pub const SOURCE_MAC_ONLY: Self = Self(1 << 12);
    /// The MAC addresses are those of an inner frame only.
    pub const ETHERTYPE: Self = Self(1 << 13);
    /// IPv4 options or IPv6 extension headers are present.
    pub const IP_OPTIONS: Self = Self(1 << 14);
    /// The frame completed a fragmented datagram: places in it count from the start of [`Chunk::datagram_of`].
    pub const REASSEMBLED: Self = Self(1 << 15);
    /// The fragment at hand completed its datagram, and the layers above IP are those of the whole.
    pub const WHOLE: Self = Self(1 << 16);
    /// The capture names the device that the frame passed (Linux cooked capture v2).
    pub const IF_INDEX: Self = Self(1 << 17);

    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub fn set(&mut self, other: Self) {
        self.0 |= other.0;
    }

    pub fn clear(&mut self, other: Self) {
        self.0 &= !other.0;
    }
}

/// The highest protocol that was recognised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Protocol {
    #[default]
    Unknown,
    Ethernet,
    Llc,
    Lldp,
    Lacp,
    Arp,
    Pause,
    Pfc,
    MacControl,
    Mpls,
    Ipv4,
    Ipv6,
    Icmp,
    Icmpv6,
    Igmp,
    Tcp,
    Udp,
    Sctp,
    Gre,
    Esp,
    Ah,
    Ospf,
    Pim,
    Vrrp,
    RoceV1,
    RoceV2,
    Vxlan,
    Geneve,
}

impl Protocol {
    /// The name in the column `protocol`; `None` for frames that nothing is known of.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::Unknown => return None,
            Self::Ethernet => "Ethernet",
            Self::Llc => "LLC",
            Self::Lldp => "LLDP",
            Self::Lacp => "LACP",
            Self::Arp => "ARP",
            Self::Pause => "PAUSE",
            Self::Pfc => "PFC",
            Self::MacControl => "MAC control",
            Self::Mpls => "MPLS",
            Self::Ipv4 => "IPv4",
            Self::Ipv6 => "IPv6",
            Self::Icmp => "ICMP",
            Self::Icmpv6 => "ICMPv6",
            Self::Igmp => "IGMP",
            Self::Tcp => "TCP",
            Self::Udp => "UDP",
            Self::Sctp => "SCTP",
            Self::Gre => "GRE",
            Self::Esp => "ESP",
            Self::Ah => "AH",
            Self::Ospf => "OSPF",
            Self::Pim => "PIM",
            Self::Vrrp => "VRRP",
            Self::RoceV1 => "RoCEv1",
            Self::RoceV2 => "RoCEv2",
            Self::Vxlan => "VXLAN",
            Self::Geneve => "GENEVE",
        })
    }
}

/// Whose frame it was to the capturing host, as Linux cooked captures tell (`sll_pkttype`, the kernel's `PACKET_*`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum PacketDirection {
    /// The link type does not say, or the value is none that is assigned.
    #[default]
    Unknown,
    ToUs,
    Broadcast,
    Multicast,
    /// Not for this host, seen in promiscuous mode.
    ToOther,
    FromUs,
}

impl PacketDirection {
    pub fn of_cooked(packet_type: u16) -> Self {
        match packet_type {
            0 => Self::ToUs,
            1 => Self::Broadcast,
            2 => Self::Multicast,
            3 => Self::ToOther,
            4 => Self::FromUs,
            _ => Self::Unknown,
        }
    }

    /// The name in the column `packet_direction`.
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::Unknown => return None,
            Self::ToUs => "to_us",
            Self::Broadcast => "broadcast",
            Self::Multicast => "multicast",
            Self::ToOther => "to_other",
            Self::FromUs => "from_us",
        })
    }
}

/// One frame's layers, flat. MAC addresses and VLAN are the wire's (outermost), everything from IP upwards the innermost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Frame {
    pub layers: Layers,
    pub protocol: Protocol,
    pub direction: PacketDirection,
    /// Number of the device in the capturing host; see [`Layers::IF_INDEX`].
    pub if_index: u32,
    pub src_mac: Mac,
    pub dst_mac: Mac,
    /// EtherType after any VLAN tags, of the outermost frame.
    pub ethertype: u16,
    /// Tag control information of the outermost tag: PCP, DEI, VLAN identifier.
    pub vlan_tci: u16,
    pub inner_vlan_tci: u16,
    /// Top label stack entry.
    pub mpls_label: u32,
    pub src_ip: Ip,
    pub dst_ip: Ip,
    pub src_port: u16,
    pub dst_port: u16,
    pub ip_id: u32,
    /// The IP packet with its header, as its header declares, even where that is more than the frame holds.
    pub ip_bytes: u32,
    /// DSCP and ECN: the IPv4 TOS or IPv6 traffic class byte.
    pub traffic_class: u8,
    pub ttl: u8,
    /// After any IPv6 extension headers and authentication headers.
    pub ip_protocol: u8,
    /// In bytes.
    pub fragment_offset: u16,
    /// Where the innermost IP header and what it carries start in the frame (see [`Layers::REASSEMBLED`]).
    pub l3_at: u32,
    pub l4_at: u32,
    /// Where the payload of the highest layer starts, and its length as the headers declare it.
    pub payload_at: u32,
    pub payload_bytes: u32,
    /// VXLAN network identifier, GENEVE VNI, NVGRE virtual subnet identifier, GRE key or ERSPAN session of the innermost tunnel
    /// that has one.
    pub vni: u32,
    /// Tunnel layers, outermost first: where they start in [`Chunk::tunnels`], and how many.
    pub tunnels_at: u32,
    pub tunnels: u8,
    /// Index into the chunk's list for `protocol` (TCP, RoCE, ICMP, ARP, pause).
    pub detail: u32,
    /// Index into [`Chunk::stops`] plus one; 0 = decoded to the end.
    pub stop: u32,
    /// Same for both directions of a flow; decides the shard.
    pub flow_hash: u64,
    /// Of the innermost IPv4 header; `None` where not verified or not IPv4.
    pub ip_checksum: Option<ChecksumStatus>,
    /// Of the innermost TCP, UDP, ICMP or IGMP; `None` where not verified or none of these.
    pub l4_checksum: Option<ChecksumStatus>,
}

impl Frame {
    pub fn dscp(&self) -> u8 {
        self.traffic_class >> 2
    }

    pub fn ecn(&self) -> u8 {
        self.traffic_class & 3
    }

    /// A fragment that says nothing of the whole datagram.
    pub fn is_piece(&self) -> bool {
        self.layers.has(Layers::FRAGMENT) && !self.layers.has(Layers::WHOLE)
    }

    /// A TCP header was read; see [`Frame::is_piece`].
    pub fn is_tcp(&self) -> bool {
        self.protocol == Protocol::Tcp
    }
}

/// The frames of one stretch of records, decoded: what a worker produces.
#[derive(Debug, Default)]
pub struct Chunk {
    pub frames: Vec<Frame>,
    pub tcp: Vec<TcpHeader>,
    /// SACK blocks (left and right edge as on the wire) of all TCP headers.
    pub sacks: Vec<(u32, u32)>,
    pub roce: Vec<RocePacket>,
    pub icmp: Vec<IcmpMessage>,
    pub arp: Vec<ArpPacket>,
    pub pause: Vec<PauseFrame>,
    pub tunnels: Vec<TunnelLayer>,
    pub stops: Vec<DecodeError>,
    /// Frames that are IP fragments.
    pub fragments: Vec<u32>,
    /// Frames that hold an LLDPDU, which is read where a table needs it.
    pub lldp: Vec<u32>,
    pub datagrams: Vec<Datagram>,
}

/// A datagram put together from fragments.
#[derive(Debug)]
pub struct Datagram {
    /// The frame of the chunk that completed it.
    pub frame: u32,
    /// Payload of that frame's own fragment.
    pub piece_bytes: u32,
    /// The IP packet as if it had never been fragmented.
    pub bytes: Vec<u8>,
}

impl Chunk {
    pub fn clear(&mut self) {
        self.frames.clear();
        self.tcp.clear();
        self.sacks.clear();
        self.roce.clear();
        self.icmp.clear();
        self.arp.clear();
        self.pause.clear();
        self.tunnels.clear();
        self.stops.clear();
        self.fragments.clear();
        self.lldp.clear();
        self.datagrams.clear();
    }

    /// The datagram that the frame at a place of the chunk completed.
    pub fn datagram_of(&self, at: usize) -> Option<&Datagram> {
        let found = self.datagrams.binary_search_by_key(&at, |datagram| datagram.frame as usize);
        self.datagrams.get(found.ok()?)
    }

    pub fn tunnels_of(&self, frame: &Frame) -> &[TunnelLayer] {
        let start = frame.tunnels_at as usize;
        self.tunnels.get(start..start + usize::from(frame.tunnels)).unwrap_or(&[])
    }

    pub fn stop_of(&self, frame: &Frame) -> Option<&DecodeError> {
        self.stops.get((frame.stop as usize).checked_sub(1)?)
    }

    pub fn tcp_of(&self, frame: &Frame) -> Option<&TcpHeader> {
        if frame.is_tcp() { self.tcp.get(frame.detail as usize) } else { None }
    }
}
