//! Walks one frame from the link layer inwards, through tunnels, as far as its bytes go.

use super::arp::ArpPacket;
use super::error::{DecodeError, DecodeErrorKind, Layer};
use super::ethernet::{ethernet, link_layer, need};
use super::frame::{Chunk, Datagram, Frame, Layers, Protocol};
use super::icmp::IcmpMessage;
use super::ip::{IpHeader, ipv4, ipv6};
use super::pause::PauseFrame;
use super::roce::RocePacket;
use super::tcp::TcpHeader;
use super::{be16, be24};
use crate::capture::LinkType;
use crate::flow::FlowHasher;
use crate::options::Options;

/// What decoding needs to know beside the frame.
#[derive(Clone, Debug)]
pub struct DecodeConfig {
    pub(super) vxlan_ports: Vec<u16>,
    roce_ports: Vec<u16>,
    pub(super) tunnel_depth: usize,
    pub(crate) hasher: FlowHasher,
}

impl DecodeConfig {
    pub fn new(options: &Options) -> Self {
        Self {
            vxlan_ports: options.vxlan_ports.clone(),
            roce_ports: options.roce_ports.clone(),
            tunnel_depth: options.limits.tunnel_depth.min(64),
            hasher: FlowHasher::new(),
        }
    }
}

/// What the bytes at a place are.
#[derive(Clone, Copy, Debug)]
pub(super) enum Next {
    Ethernet(usize),
    EtherType(u16, usize),
    Ipv4(usize),
    Ipv6(usize),
    /// Nothing that is decoded.
    Opaque,
    Done,
}

pub(super) type Step = Result<Next, (Layer, usize, DecodeErrorKind)>;

/// VLAN tags and MPLS labels of one frame that are followed.
const MAX_TAGS: usize = 16;
const UDP_BYTES: usize = 8;
const PORT_VXLAN_GPE: u16 = 4790;
const PORT_GENEVE: u16 = 6081;
/// GRE in UDP, RFC 8086.
const PORT_GRE: u16 = 4754;

/// Decodes one frame and appends it to `chunk`. `bytes` are the captured ones, `original_bytes` the length on the wire.
pub fn decode(link: LinkType, bytes: &[u8], original_bytes: u32, config: &DecodeConfig, chunk: &mut Chunk) {
    let mut frame = Frame { tunnels_at: chunk.tunnels.len() as u32, ..Frame::default() };
    let first = link_layer(link, bytes, &mut frame);
    walk(first, bytes, bytes.len().max(original_bytes as usize), config, &mut frame, chunk);
    if frame.layers.has(Layers::FRAGMENT) {
        chunk.fragments.push(chunk.frames.len() as u32);
    }
    if frame.protocol == Protocol::Lldp {
        chunk.lldp.push(chunk.frames.len() as u32);
    }
    chunk.frames.push(frame);
}

/// Decodes the packet that the frame at a place of the chunk completed, and puts it in the frame's place. Tunnels around the
/// fragments stay; so does what the row says of the last fragment's IP header, unless the packet holds another one.
pub(crate) fn decode_datagram(at: usize, bytes: Vec<u8>, config: &DecodeConfig, chunk: &mut Chunk) {
    let Some(piece) = chunk.frames.get(at).copied() else { return };
    let around = chunk.tunnels_of(&piece).to_vec();
    let tunnels_at = chunk.tunnels.len();
    chunk.tunnels.extend_from_slice(&around);
    let mut frame = Frame { tunnels_at: tunnels_at as u32, stop: 0, ..piece };
    frame.layers.set(Layers::REASSEMBLED);
    let first = if piece.src_ip.is_v6() { Next::Ipv6(0) } else { Next::Ipv4(0) };
    walk(Ok(first), &bytes, bytes.len(), config, &mut frame, chunk);
    chunk.tunnels[tunnels_at..tunnels_at + around.len()].copy_from_slice(&around);
    if frame.tunnels == piece.tunnels {
        frame.layers.set(Layers(piece.layers.0 & OF_PACKET.0 & !Layers::PORTS.0));
        frame.layers.set(Layers::WHOLE);
        frame.ip_id = piece.ip_id;
        frame.ip_bytes = piece.ip_bytes;
        frame.fragment_offset = piece.fragment_offset;
        frame.traffic_class = piece.traffic_class;
        frame.ttl = piece.ttl;
        frame.flow_hash = config.hasher.hash(&frame);
    }
    chunk.frames[at] = frame;
    chunk.datagrams.push(Datagram { frame: at as u32, piece_bytes: piece.payload_bytes, bytes });
}

/// Follows the layers from `first` to the end, and says in the frame where it stopped.
fn walk(first: Step, bytes: &[u8], declared_end: usize, config: &DecodeConfig, frame: &mut Frame, chunk: &mut Chunk) {
    let mut walker = Walker { bytes, declared_end, config, frame: &mut *frame, chunk, tags: 0 };
    let mut step = first;
    loop {
        step = match step {
            Ok(Next::Done | Next::Opaque) => break,
            Ok(next) => walker.step(next),
            Err((layer, offset_bytes, kind)) => {
                walker.chunk.stops.push(DecodeError { layer, offset_bytes, kind });
                walker.frame.stop = walker.chunk.stops.len() as u32;
                break;
            }
        };
    }
    frame.flow_hash = config.hasher.hash(frame);
}

/// What each IP header says anew.
pub(super) const OF_PACKET: Layers = Layers(
    Layers::PORTS.0
        | Layers::FRAGMENT.0
        | Layers::MORE_FRAGMENTS.0
        | Layers::DONT_FRAGMENT.0
        | Layers::IP_ID.0
        | Layers::TOTAL_LENGTH_ZERO.0
        | Layers::IP_OPTIONS.0
        | Layers::WHOLE.0,
);

pub(super) struct Walker<'a> {
    pub(super) bytes: &'a [u8],
    /// Where the layer at hand ends on the wire, by the lengths of the layers around it.
    pub(super) declared_end: usize,
    pub(super) config: &'a DecodeConfig,
    pub(super) frame: &'a mut Frame,
    pub(super) chunk: &'a mut Chunk,
    pub(super) tags: usize,
}

impl<'a> Walker<'a> {
    fn step(&mut self, next: Next) -> Step {
        match next {
            Next::Ethernet(at) => ethernet(self.bytes, at, self.frame),
            Next::EtherType(ethertype, at) => self.ethertype(ethertype, at),
            Next::Ipv4(at) => {
                let header = ipv4(self.bytes, at, self.declared_end)?;
                self.ip(header, at)
            }
            Next::Ipv6(at) => {
                let header = ipv6(self.bytes, at, self.declared_end)?;
                self.ip(header, at)
            }
            Next::Opaque | Next::Done => Ok(Next::Done),
        }
    }

    /// The captured bytes from `at` to the end of the layer at hand.
    pub(super) fn rest(&self, at: usize) -> &'a [u8] {
        let end = self.bytes.len().min(self.declared_end);
        self.bytes.get(at..end).unwrap_or(&[])
    }

    fn ethertype(&mut self, ethertype: u16, at: usize) -> Step {
        if matches!(ethertype, 0x8100 | 0x88a8 | 0x9100 | 0x9200) {
            return self.vlan(at);
        }
        if self.is_outermost() {
            self.frame.ethertype = ethertype;
            self.frame.layers.set(Layers::ETHERTYPE);
        }
        match ethertype {
            0x8847 | 0x8848 => self.mpls(at),
            0x0800 => Ok(Next::Ipv4(at)),
            0x86dd => Ok(Next::Ipv6(at)),
            0x0806 | 0x8035 => {
                self.set_protocol(Protocol::Arp, at);
                let packet = ArpPacket::parse(self.rest(at)).map_err(|kind| (Layer::Arp, at, kind))?;
                self.frame.detail = self.chunk.arp.len() as u32;
                self.chunk.arp.push(packet);
                Ok(Next::Done)
            }
            0x8808 => {
                self.set_protocol(Protocol::MacControl, at);
                let pause = match PauseFrame::parse(self.rest(at)) {
                    Ok(pause) => pause,
                    // Other MAC control opcodes exist (MPCP, 802.3 clause 31); they are none of ours.
                    Err(DecodeErrorKind::BadField { .. }) => return Ok(Next::Done),
                    Err(kind) => return Err((Layer::MacControl, at, kind)),
                };
                self.frame.protocol = if pause.is_pfc { Protocol::Pfc } else { Protocol::Pause };
                self.frame.detail = self.chunk.pause.len() as u32;
                self.chunk.pause.push(pause);
                Ok(Next::Done)
            }
            0x8915 => self.roce_v1(at),
            0x88cc => self.finish(Protocol::Lldp, at),
            0x8809 if self.rest(at).first() == Some(&1) => self.finish(Protocol::Lacp, at),
            // Up to 1500 it is a length: IEEE 802.3 with LLC.
            0..=1500 => {
                self.declared_end = self.declared_end.min(at + usize::from(ethertype));
                self.llc(at)
            }
            _ => self.finish(Protocol::Ethernet, at),
        }
    }

    /// LLC is skipped, but for SNAP, which holds an EtherType again.
    fn llc(&mut self, at: usize) -> Step {
        match self.rest(at).first_chunk::<8>() {
            Some([0xaa, 0xaa, 0x03, 0, 0, 0, high, low]) => {
                Ok(Next::EtherType(u16::from_be_bytes([*high, *low]).max(1501), at + 8))
            }
            _ => self.finish(Protocol::Llc, at),
        }
    }

    fn vlan(&mut self, at: usize) -> Step {
        let tag = need::<4>(self.bytes, at, Layer::Vlan)?;
        self.count_tag(Layer::Vlan, at)?;
        if self.is_outermost() {
            if !self.frame.layers.has(Layers::VLAN) {
                self.frame.layers.set(Layers::VLAN);
                self.frame.vlan_tci = be16(tag, 0);
            } else if !self.frame.layers.has(Layers::QINQ) {
                self.frame.layers.set(Layers::QINQ);
                self.frame.inner_vlan_tci = be16(tag, 0);
            }
        }
        Ok(Next::EtherType(be16(tag, 2), at + 4))
    }

    pub(super) fn mpls(&mut self, at: usize) -> Step {
        let mut at = at;
        loop {
            let entry = need::<4>(self.bytes, at, Layer::Mpls)?;
            self.count_tag(Layer::Mpls, at)?;
            if self.frame.tunnels == 0 && !self.frame.layers.has(Layers::MPLS) {
                self.frame.layers.set(Layers::MPLS);
                self.frame.mpls_label = be24(entry, 0) >> 4;
            }
            at += 4;
            if entry[2] & 1 == 1 {
                break;
            }
        }
        // RFC 4928: what follows the stack is told by its first nibble; a pseudowire may start with a control word of 0.
        match self.rest(at).first().map(|first| first >> 4) {
            Some(4) => Ok(Next::Ipv4(at)),
            Some(6) => Ok(Next::Ipv6(at)),
            Some(0) if self.rest(at).len() >= 18 => Ok(Next::Ethernet(at + 4)),
            _ => self.finish(Protocol::Mpls, at),
        }
    }

    /// The Ethernet frame at hand is the one on the wire, not one inside a tunnel or pseudowire.
    pub(super) fn is_outermost(&self) -> bool {
        self.frame.tunnels == 0 && !self.frame.layers.has(Layers::MPLS)
    }

    fn count_tag(&mut self, layer: Layer, at: usize) -> Result<(), (Layer, usize, DecodeErrorKind)> {
        self.tags += 1;
        if self.tags > MAX_TAGS { Err((layer, at, DecodeErrorKind::TooDeep)) } else { Ok(()) }
    }

    fn finish(&mut self, protocol: Protocol, at: usize) -> Step {
        self.set_protocol(protocol, at);
        Ok(Next::Done)
    }

    pub(super) fn set_protocol(&mut self, protocol: Protocol, payload_at: usize) {
        self.frame.protocol = protocol;
        self.set_payload(payload_at);
    }

    pub(super) fn set_payload(&mut self, at: usize) {
        self.frame.payload_at = at as u32;
        self.frame.payload_bytes = self.declared_end.saturating_sub(at) as u32;
    }

    fn ip(&mut self, header: IpHeader, at: usize) -> Step {
        let is_v6 = header.src.is_v6();
        if let Some(tunnel) = self.innermost_tunnel() {
            tunnel.overhead_bytes = (at as u32).saturating_sub(tunnel.l3_at).min(u32::from(u16::MAX)) as u16;
            tunnel.inner_src_ip = header.src;
            tunnel.inner_dst_ip = header.dst;
        }
        let frame = &mut *self.frame;
        frame.layers.clear(OF_PACKET);
        frame.layers.set(Layers::IP);
        frame.src_ip = header.src;
        frame.dst_ip = header.dst;
        frame.src_port = 0;
        frame.dst_port = 0;
        frame.ip_protocol = header.protocol;
        frame.traffic_class = header.traffic_class;
        frame.ttl = header.ttl;
        frame.ip_bytes = header.declared_bytes as u32;
        frame.l3_at = at as u32;
        frame.l4_at = header.next_at as u32;
        frame.fragment_offset = 0;
        let mut set = |is_set: bool, layer: Layers| {
            if is_set {
                frame.layers.set(layer);
            }
        };
        set(header.id.is_some(), Layers::IP_ID);
        set(header.dont_fragment, Layers::DONT_FRAGMENT);
        set(header.is_total_length_zero, Layers::TOTAL_LENGTH_ZERO);
        set(header.has_options, Layers::IP_OPTIONS);
        set(header.fragment.is_some(), Layers::FRAGMENT);
        set(header.fragment.is_some_and(|fragment| fragment.is_more), Layers::MORE_FRAGMENTS);
        frame.ip_id = header.id.unwrap_or(0);
        self.declared_end = at + header.packet_bytes;
        self.set_protocol(if is_v6 { Protocol::Ipv6 } else { Protocol::Ipv4 }, header.next_at);
        if let Some(stop) = header.stop {
            return Err(stop);
        }
        if let Some(fragment) = header.fragment {
            self.frame.fragment_offset = fragment.offset;
            // A packet inside is read once, when it is whole; where the capture was cut, never more than this will be there.
            let is_carrier = matches!(header.protocol, 4 | 41 | 47 | 51) && self.bytes.len() >= self.declared_end;
            if fragment.offset != 0 || is_carrier {
                return Ok(Next::Done);
            }
        }
        self.transport(header.protocol, header.next_at, is_v6)
    }

    fn transport(&mut self, protocol: u8, at: usize, is_v6: bool) -> Step {
        match protocol {
            6 => self.tcp(at),
            17 => self.udp(at),
            1 if !is_v6 => self.icmp(at, false),
            58 if is_v6 => self.icmp(at, true),
            4 => self.enter_ip(at, 4),
            41 => self.enter_ip(at, 6),
            47 => self.gre(at),
            51 => self.authentication(at, is_v6),
            2 => self.finish(Protocol::Igmp, at),
            50 => self.finish(Protocol::Esp, at),
            89 => self.finish(Protocol::Ospf, at),
            103 => self.finish(Protocol::Pim, at),
            112 => self.finish(Protocol::Vrrp, at),
            132 => {
                if let Some(ports) = self.rest(at).first_chunk::<4>() {
                    self.set_ports(ports);
                }
                self.finish(Protocol::Sctp, at)
            }
            _ => Ok(Next::Done),
        }
    }

    fn set_ports(&mut self, ports: &[u8; 4]) {
        self.frame.layers.set(Layers::PORTS);
        self.frame.src_port = be16(ports, 0);
        self.frame.dst_port = be16(ports, 2);
    }

    /// RFC 4302, over IPv4; over IPv6 it is one of the extension headers.
    fn authentication(&mut self, at: usize, is_v6: bool) -> Step {
        let rest = self.rest(at);
        let Some(header) = rest.first_chunk::<8>() else { return self.finish(Protocol::Ah, at) };
        let next_at = at + (usize::from(header[1]) + 2) * 4;
        self.set_protocol(Protocol::Ah, at);
        // A chain of these is bounded by the bytes: each is at least 8 long.
        self.frame.ip_protocol = header[0];
        self.frame.l4_at = next_at as u32;
        if next_at >= self.bytes.len() { Ok(Next::Done) } else { self.transport(header[0], next_at, is_v6) }
    }

    fn tcp(&mut self, at: usize) -> Step {
        let rest = self.rest(at);
        self.set_protocol(Protocol::Tcp, at);
        let mut header = match TcpHeader::parse_fixed(rest) {
            Ok(header) => header,
            Err(kind) => {
                if let Some(ports) = rest.first_chunk::<4>() {
                    self.set_ports(ports);
                }
                self.frame.protocol = if self.frame.src_ip.is_v6() { Protocol::Ipv6 } else { Protocol::Ipv4 };
                return Err((Layer::Tcp, at, kind));
            }
        };
        self.set_ports(&[rest[0], rest[1], rest[2], rest[3]]);
        let header_bytes = usize::from(header.header_bytes);
        let declared = self.declared_end.saturating_sub(at);
        let is_bad = header_bytes < TcpHeader::MIN_BYTES || header_bytes > declared;
        header.sack_at = self.chunk.sacks.len() as u32;
        if is_bad {
            header.options |= TcpHeader::BAD_OFFSET;
        } else {
            let options = rest.get(20..header_bytes.min(rest.len())).unwrap_or(&[]);
            header.parse_options(options, &mut self.chunk.sacks);
        }
        self.set_payload(at + header_bytes.max(TcpHeader::MIN_BYTES));
        self.frame.detail = self.chunk.tcp.len() as u32;
        self.chunk.tcp.push(header);
        if is_bad {
            let kind = DecodeErrorKind::BadField { field: "data offset", value: (header_bytes / 4) as u64 };
            return Err((Layer::Tcp, at, kind));
        }
        if rest.len() < header_bytes {
            let kind = DecodeErrorKind::Truncated { need_bytes: header_bytes, have_bytes: rest.len() };
            return Err((Layer::TcpOptions, at, kind));
        }
        Ok(Next::Done)
    }

    fn udp(&mut self, at: usize) -> Step {
        let rest = self.rest(at);
        let Some(header) = rest.first_chunk::<UDP_BYTES>() else {
            if let Some(ports) = rest.first_chunk::<4>() {
                self.set_ports(ports);
            }
            let kind = DecodeErrorKind::Truncated { need_bytes: UDP_BYTES, have_bytes: rest.len() };
            return Err((Layer::Udp, at, kind));
        };
        self.set_ports(&[header[0], header[1], header[2], header[3]]);
        let length = usize::from(be16(header, 4));
        // 0 is a jumbogram, or left to the network card; a length past the packet belongs to a first fragment or is a lie.
        if length >= UDP_BYTES {
            self.declared_end = self.declared_end.min(at + length);
        }
        let payload_at = at + UDP_BYTES;
        self.set_protocol(Protocol::Udp, payload_at);
        if length != 0 && length < UDP_BYTES {
            return Err((Layer::Udp, at, DecodeErrorKind::BadField { field: "length", value: length as u64 }));
        }
        // What is inside is read once, when the datagram is whole; where the capture was cut, it never will be.
        if self.frame.layers.has(Layers::FRAGMENT) && self.bytes.len() >= self.declared_end {
            return Ok(Next::Done);
        }
        let port = self.frame.dst_port;
        if self.config.roce_ports.contains(&port) {
            // A RoCE packet without its end is none.
            return if self.frame.layers.has(Layers::FRAGMENT) { Ok(Next::Done) } else { self.roce_v2(payload_at) };
        }
        if self.config.vxlan_ports.contains(&port) {
            return self.vxlan(payload_at);
        }
        match port {
            PORT_VXLAN_GPE => self.vxlan_gpe(payload_at),
            PORT_GENEVE => self.geneve(payload_at),
            PORT_GRE => self.gre(payload_at),
            _ => Ok(Next::Done),
        }
    }

    fn icmp(&mut self, at: usize, is_v6: bool) -> Step {
        self.set_protocol(if is_v6 { Protocol::Icmpv6 } else { Protocol::Icmp }, at);
        self.frame.detail = u32::MAX;
        let message = IcmpMessage::parse(self.rest(at), is_v6).map_err(|kind| (Layer::Icmp, at, kind))?;
        self.set_payload(at + IcmpMessage::MIN_BYTES);
        self.frame.detail = self.chunk.icmp.len() as u32;
        self.chunk.icmp.push(message);
        Ok(Next::Done)
    }

    fn roce_v2(&mut self, at: usize) -> Step {
        if !RocePacket::is_plausible(self.rest(at)) {
            return Ok(Next::Done);
        }
        self.roce(at, Protocol::RoceV2)
    }

    fn roce(&mut self, at: usize, protocol: Protocol) -> Step {
        let declared = self.declared_end.saturating_sub(at) as u32;
        let packet = RocePacket::parse(self.rest(at), declared).map_err(|kind| (Layer::Bth, at, kind))?;
        self.set_protocol(protocol, at);
        self.frame.payload_bytes = packet.payload_bytes;
        self.frame.detail = self.chunk.roce.len() as u32;
        self.chunk.roce.push(packet);
        Ok(Next::Done)
    }

    /// EtherType 0x8915: a global route header, laid out like IPv6, with next header 0x1b, then the BTH.
    fn roce_v1(&mut self, at: usize) -> Step {
        self.set_protocol(Protocol::Ethernet, at);
        let header = ipv6(self.bytes, at, self.declared_end).map_err(|(_, _, kind)| (Layer::Grh, at, kind))?;
        let frame = &mut *self.frame;
        frame.layers.set(Layers::IP);
        frame.src_ip = header.src;
        frame.dst_ip = header.dst;
        frame.traffic_class = header.traffic_class;
        frame.ttl = header.ttl;
        frame.ip_protocol = header.protocol;
        frame.ip_bytes = header.declared_bytes as u32;
        frame.l3_at = at as u32;
        frame.l4_at = at as u32 + 40;
        self.declared_end = at + header.packet_bytes;
        if header.protocol != 0x1b {
            let kind = DecodeErrorKind::BadField { field: "next header", value: u64::from(header.protocol) };
            return Err((Layer::Grh, at, kind));
        }
        self.roce(at + 40, Protocol::RoceV1)
    }
}

#[cfg(test)]
mod tests;
