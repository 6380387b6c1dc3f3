//! IPv4 (RFC 791) and IPv6 (RFC 8200) headers.

use super::address::Ip;
use super::error::{DecodeErrorKind, Layer};
use super::ethernet::need;
use super::{be16, be32};

/// What the walker needs of an IP header; lengths are within the frame.
#[derive(Clone, Copy, Debug)]
pub(super) struct IpHeader {
    pub src: Ip,
    pub dst: Ip,
    /// Protocol after any extension headers.
    pub protocol: u8,
    pub traffic_class: u8,
    pub ttl: u8,
    pub id: Option<u32>,
    /// Length of the packet, header included: as declared, and the part of it that the frame had room for.
    pub declared_bytes: usize,
    pub packet_bytes: usize,
    /// Where the next header starts, from the frame's first byte.
    pub next_at: usize,
    pub fragment: Option<Fragment>,
    pub dont_fragment: bool,
    pub is_total_length_zero: bool,
    pub has_options: bool,
    /// Why the extension headers could not be followed to their end.
    pub stop: Option<(Layer, usize, DecodeErrorKind)>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Fragment {
    pub offset: u16,
    pub is_more: bool,
}

type Parsed = Result<IpHeader, (Layer, usize, DecodeErrorKind)>;

/// `bytes` are the captured ones; `declared_end` is where the enclosing layer ends on the wire.
pub(super) fn ipv4(bytes: &[u8], at: usize, declared_end: usize) -> Parsed {
    let header = need::<20>(bytes, at, Layer::Ipv4)?;
    let bad = |field, value: usize| Err((Layer::Ipv4, at, DecodeErrorKind::BadField { field, value: value as u64 }));
    let (version, header_bytes) = (header[0] >> 4, usize::from(header[0] & 15) * 4);
    if version != 4 {
        return bad("version", usize::from(version));
    }
    if header_bytes < 20 {
        return bad("header length", header_bytes);
    }
    let total = usize::from(be16(header, 2));
    let left = declared_end.saturating_sub(at);
    if total != 0 && total < header_bytes {
        return bad("total length", total);
    }
    let flags = be16(header, 6);
    let (offset, is_more) = ((flags & 0x1fff) << 3, flags & 0x2000 != 0);
    Ok(IpHeader {
        src: Ip::v4(std::array::from_fn(|i| header[12 + i])),
        dst: Ip::v4(std::array::from_fn(|i| header[16 + i])),
        protocol: header[9],
        traffic_class: header[1],
        ttl: header[8],
        id: Some(u32::from(be16(header, 4))),
        // 0 is what a sender leaves that lets its network card cut the segment (TSO).
        declared_bytes: if total == 0 { left } else { total },
        packet_bytes: if total == 0 { left } else { total.min(left) },
        next_at: at + header_bytes,
        fragment: (offset != 0 || is_more).then_some(Fragment { offset, is_more }),
        dont_fragment: flags & 0x4000 != 0,
        is_total_length_zero: total == 0,
        has_options: header_bytes > 20,
        stop: None,
    })
}

/// Extension headers are followed up to this many.
const MAX_EXTENSIONS: usize = 16;

pub(super) fn ipv6(bytes: &[u8], at: usize, declared_end: usize) -> Parsed {
    let header = need::<40>(bytes, at, Layer::Ipv6)?;
    let version = header[0] >> 4;
    if version != 6 {
        let kind = DecodeErrorKind::BadField { field: "version", value: u64::from(version) };
        return Err((Layer::Ipv6, at, kind));
    }
    let payload = usize::from(be16(header, 4));
    let left = declared_end.saturating_sub(at);
    let mut parsed = IpHeader {
        src: Ip::v6(std::array::from_fn(|i| header[8 + i])),
        dst: Ip::v6(std::array::from_fn(|i| header[24 + i])),
        protocol: header[6],
        traffic_class: (be16(header, 0) >> 4) as u8,
        ttl: header[7],
        id: None,
        // 0 is a jumbogram (RFC 2675) or left to the network card.
        declared_bytes: if payload == 0 { left } else { payload + 40 },
        packet_bytes: if payload == 0 { left } else { (payload + 40).min(left) },
        next_at: at + 40,
        fragment: None,
        dont_fragment: false,
        is_total_length_zero: false,
        has_options: false,
        stop: None,
    };
    let end = bytes.len().min(at + parsed.packet_bytes);
    extensions(bytes.get(..end).unwrap_or(bytes), &mut parsed);
    Ok(parsed)
}

/// Hop-by-hop, routing, destination options, fragment, authentication and shim6 headers. Mobility and HIP headers carry
/// nothing behind them, and are the packet's protocol.
fn extensions(bytes: &[u8], parsed: &mut IpHeader) {
    for _ in 0..MAX_EXTENSIONS {
        let is_extension = matches!(parsed.protocol, 0 | 43 | 44 | 51 | 60 | 140);
        // What follows a fragment header belongs to the whole packet.
        let is_fragment = parsed.fragment.is_some();
        if !is_extension || is_fragment {
            return;
        }
        let at = parsed.next_at;
        let header = match need::<8>(bytes, at, Layer::Ipv6Extension) {
            Ok(header) => header,
            Err(stop) => {
                parsed.stop = Some(stop);
                return;
            }
        };
        parsed.has_options = true;
        let length = match parsed.protocol {
            44 => {
                let field = be16(header, 2);
                parsed.id = Some(be32(header, 4));
                let (offset, is_more) = (field & 0xfff8, field & 1 != 0);
                if offset != 0 || is_more {
                    parsed.fragment = Some(Fragment { offset, is_more });
                }
                8
            }
            51 => (usize::from(header[1]) + 2) * 4,
            _ => (usize::from(header[1]) + 1) * 8,
        };
        parsed.protocol = header[0];
        parsed.next_at = at + length;
    }
    parsed.stop = Some((Layer::Ipv6Extension, parsed.next_at, DecodeErrorKind::TooDeep));
}
