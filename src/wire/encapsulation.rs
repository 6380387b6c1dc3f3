//! Tunnels: what is noted of one, and where the packet inside begins.

use super::address::Ip;
use super::error::{DecodeErrorKind, Layer};
use super::ethernet::need;
use super::frame::{Layers, Protocol};
use super::tunnel::{TunnelKind, TunnelLayer};
use super::walk::{Next, OF_PACKET, Step, Walker};
use super::{be16, be24, be32};

impl Walker<'_> {
    pub(super) fn innermost_tunnel(&mut self) -> Option<&mut TunnelLayer> {
        if self.frame.tunnels == 0 { None } else { self.chunk.tunnels.last_mut() }
    }

    /// Notes a tunnel whose own IP header is the one just read, and clears what the packet inside will say anew.
    pub(super) fn enter(
        &mut self,
        kind: TunnelKind,
        vni: Option<u32>,
        at: usize,
        inner_at: usize,
    ) -> Result<(), (Layer, usize, DecodeErrorKind)> {
        if usize::from(self.frame.tunnels) >= self.config.tunnel_depth {
            return Err((layer_of(kind), at, DecodeErrorKind::TooDeep));
        }
        let frame = &mut *self.frame;
        self.chunk.tunnels.push(TunnelLayer {
            kind,
            vni,
            src_ip: frame.src_ip,
            dst_ip: frame.dst_ip,
            ports: frame.layers.has(Layers::PORTS).then_some((frame.src_port, frame.dst_port)),
            traffic_class: frame.traffic_class,
            ttl: frame.ttl,
            ip_id: frame.ip_id,
            l3_at: frame.l3_at,
            overhead_bytes: (inner_at as u32).saturating_sub(frame.l3_at).min(u32::from(u16::MAX)) as u16,
            inner_src_ip: Ip::NONE,
            inner_dst_ip: Ip::NONE,
        });
        frame.tunnels += 1;
        if let Some(vni) = vni {
            frame.vni = vni;
            frame.layers.set(Layers::VNI);
        }
        Ok(())
    }

    /// After a tunnel header: an Ethernet frame that may hold something else than IP.
    pub(super) fn enter_ethernet(&mut self, at: usize) -> Step {
        if self.rest(at).len() >= 14 {
            self.leave_outer_packet();
        }
        Ok(Next::Ethernet(at))
    }

    /// What the tunnel's own packet said is in its [`TunnelLayer`]; the frame speaks of what is inside.
    pub(super) fn leave_outer_packet(&mut self) {
        let frame = &mut *self.frame;
        frame.layers.clear(OF_PACKET);
        frame.layers.clear(Layers::IP);
        frame.src_ip = Ip::NONE;
        frame.dst_ip = Ip::NONE;
        (frame.src_port, frame.dst_port) = (0, 0);
    }

    pub(super) fn enter_ip(&mut self, at: usize, version: u8) -> Step {
        let inner = if version == 4 { Next::Ipv4(at) } else { Next::Ipv6(at) };
        if let Some(first) = self.rest(at).first().map(|first| first >> 4).filter(|first| *first != version) {
            let layer = if version == 4 { Layer::Ipv4 } else { Layer::Ipv6 };
            return Err((layer, at, DecodeErrorKind::BadField { field: "version", value: u64::from(first) }));
        }
        self.enter(TunnelKind::IpInIp, None, at, at)?;
        Ok(inner)
    }

    /// RFC 7348: flags with the I bit, a 24-bit network identifier, then an Ethernet frame. What does not look like it is
    /// left as UDP, since port 8472 carries other things too.
    pub(super) fn vxlan(&mut self, at: usize) -> Step {
        let header = need::<8>(self.bytes, at, Layer::Vxlan)?;
        if header[0] & 0x08 == 0 || header[0] & 0x80 != 0 && header[1] & 0x80 != 0 {
            return Ok(Next::Done);
        }
        let inner_at = at + 8;
        self.enter(TunnelKind::Vxlan, Some(be24(header, 4)), at, inner_at + 14)?;
        self.set_protocol(Protocol::Vxlan, inner_at);
        self.enter_ethernet(inner_at)
    }

    /// draft-ietf-nvo3-vxlan-gpe: the P bit says that a next protocol is given; some senders give it without the bit.
    pub(super) fn vxlan_gpe(&mut self, at: usize) -> Step {
        let header = need::<8>(self.bytes, at, Layer::Vxlan)?;
        let vni = (header[0] & 0x08 != 0).then(|| be24(header, 4));
        let next = if header[0] & 0x04 != 0 || header[3] != 0 { header[3] } else { 3 };
        let inner_at = at + 8;
        if !matches!(next, 1..=3) {
            return Ok(Next::Done);
        }
        self.enter(TunnelKind::VxlanGpe, vni, at, inner_at)?;
        self.set_protocol(Protocol::Vxlan, inner_at);
        match next {
            1 => Ok(Next::Ipv4(inner_at)),
            2 => Ok(Next::Ipv6(inner_at)),
            _ => self.enter_ethernet(inner_at),
        }
    }

    /// RFC 8926: version and option length, flags, protocol type, VNI, options.
    pub(super) fn geneve(&mut self, at: usize) -> Step {
        let header = need::<8>(self.bytes, at, Layer::Geneve)?;
        if header[0] >> 6 != 0 {
            return Ok(Next::Done);
        }
        let inner_at = at + 8 + usize::from(header[0] & 0x3f) * 4;
        let protocol = be16(header, 2);
        self.enter(TunnelKind::Geneve, Some(be24(header, 4)), at, inner_at)?;
        self.set_protocol(Protocol::Geneve, inner_at);
        self.enter_protocol(protocol, inner_at)
    }

    pub(super) fn enter_protocol(&mut self, protocol: u16, at: usize) -> Step {
        match protocol {
            0x6558 => self.enter_ethernet(at),
            0x0800 => Ok(Next::Ipv4(at)),
            0x86dd => Ok(Next::Ipv6(at)),
            0x8847 | 0x8848 => self.mpls(at),
            0x0806 => {
                self.leave_outer_packet();
                Ok(Next::EtherType(protocol, at))
            }
            _ => Ok(Next::Done),
        }
    }

    /// RFC 2784 and 2890 (checksum, key, sequence number); NVGRE (RFC 7637); ERSPAN types I to III.
    pub(super) fn gre(&mut self, at: usize) -> Step {
        self.set_protocol(Protocol::Gre, at);
        let header = need::<4>(self.bytes, at, Layer::Gre)?;
        let (flags, protocol) = (be16(header, 0), be16(header, 2));
        if flags & 7 != 0 {
            // Version 1 is PPTP's.
            return Ok(Next::Done);
        }
        let (has_checksum, has_key, has_sequence) = (flags & 0xc000 != 0, flags & 0x2000 != 0, flags & 0x1000 != 0);
        let mut inner_at = at + 4 + if has_checksum { 4 } else { 0 };
        let mut key = None;
        if has_key {
            key = Some(be32(need::<4>(self.bytes, inner_at, Layer::Gre)?, 0));
            inner_at += 4;
        }
        inner_at += if has_sequence { 4 } else { 0 };
        let kind = match protocol {
            0x6558 if has_key => TunnelKind::Nvgre,
            0x88be | 0x22eb => TunnelKind::Erspan,
            _ => TunnelKind::Gre,
        };
        let vni = if kind == TunnelKind::Nvgre { key.map(|key| key >> 8) } else { key };
        if kind != TunnelKind::Erspan {
            if !matches!(protocol, 0x6558 | 0x0800 | 0x86dd | 0x8847 | 0x8848) {
                return Ok(Next::Done);
            }
            self.enter(kind, vni, at, inner_at)?;
            return self.enter_protocol(protocol, inner_at);
        }
        // Type I has no header of its own and comes without a GRE sequence number; II has 8 bytes, III 12 or 20.
        let (mut session, mut frame_type) = (None, 0);
        if has_sequence {
            let erspan = need::<8>(self.bytes, inner_at, Layer::Erspan)?;
            session = Some(u32::from(be16(erspan, 2) & 0x3ff));
            inner_at += if protocol == 0x88be { 8 } else { 12 };
            if protocol == 0x22eb {
                let [kind, trailer] = *need::<2>(self.bytes, inner_at - 2, Layer::Erspan)?;
                frame_type = kind >> 2 & 0x1f;
                inner_at += if trailer & 1 == 1 { 8 } else { 0 };
            }
        }
        self.enter(kind, session, at, inner_at)?;
        match frame_type {
            0 => self.enter_ethernet(inner_at),
            2 => match self.rest(inner_at).first().map(|first| first >> 4) {
                Some(4) => Ok(Next::Ipv4(inner_at)),
                Some(6) => Ok(Next::Ipv6(inner_at)),
                _ => Ok(Next::Done),
            },
            _ => Ok(Next::Done),
        }
    }
}

fn layer_of(kind: TunnelKind) -> Layer {
    match kind {
        TunnelKind::Vxlan | TunnelKind::VxlanGpe => Layer::Vxlan,
        TunnelKind::Geneve => Layer::Geneve,
        TunnelKind::Gre | TunnelKind::Nvgre => Layer::Gre,
        TunnelKind::Erspan => Layer::Erspan,
        TunnelKind::IpInIp => Layer::Ipv4,
    }
}
