//! ICMP for IPv4 (RFC 792) and IPv6 (RFC 4443).
//!
//! ```text
//!  0      1      2          4                8
//!  +------+------+----------+----------------+---- … ----+
//!  | type | code | checksum | rest of header | echo data, or the packet that caused an error |
//!  +------+------+----------+----------------+---- … ----+
//! ```

use super::address::Ip;
use super::error::DecodeErrorKind;
use super::{be16, be32};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IcmpMessage {
    pub is_v6: bool,
    pub icmp_type: u8,
    pub code: u8,
    /// Identifier and sequence number of an echo request or reply.
    pub echo: Option<(u16, u16)>,
    /// Next-hop MTU of "fragmentation needed" (RFC 1191; 0 from old routers) or "packet too big".
    pub mtu: Option<u32>,
    /// The packet quoted by an error.
    pub quoted: Option<QuotedPacket>,
}

/// The start of the packet that an ICMP error is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotedPacket {
    pub src_ip: Ip,
    pub dst_ip: Ip,
    pub ip_protocol: u8,
    pub ip_bytes: u16,
    pub src_port: Option<u16>,
    pub dst_port: Option<u16>,
    /// TCP sequence number.
    pub seq: Option<u32>,
    /// Identifier and sequence number of an echo request.
    pub echo: Option<(u16, u16)>,
}

impl IcmpMessage {
    pub const MIN_BYTES: usize = 8;

    pub fn parse(bytes: &[u8], is_v6: bool) -> Result<Self, DecodeErrorKind> {
        let Some(header) = bytes.first_chunk::<{ Self::MIN_BYTES }>() else {
            return Err(DecodeErrorKind::Truncated { need_bytes: Self::MIN_BYTES, have_bytes: bytes.len() });
        };
        let (icmp_type, code) = (header[0], header[1]);
        let is_echo = if is_v6 { matches!(icmp_type, 128 | 129) } else { matches!(icmp_type, 0 | 8) };
        let is_error = if is_v6 { icmp_type < 128 } else { matches!(icmp_type, 3 | 4 | 5 | 11 | 12) };
        let mtu = match (is_v6, icmp_type, code) {
            (false, 3, 4) => Some(u32::from(be16(header, 6))),
            (true, 2, _) => Some(be32(header, 4)),
            _ => None,
        };
        Ok(Self {
            is_v6,
            icmp_type,
            code,
            echo: is_echo.then(|| (be16(header, 4), be16(header, 6))),
            mtu,
            quoted: match (is_v6, icmp_type) {
                (true, 137) => redirected(bytes).and_then(QuotedPacket::parse),
                _ if is_error => QuotedPacket::parse(&bytes[8..]),
                _ => None,
            },
        })
    }

    pub fn is_echo_request(&self) -> bool {
        self.icmp_type == if self.is_v6 { 128 } else { 8 }
    }
}

/// The packet in the option "redirected header" of an ICMPv6 redirect (RFC 4861 sections 4.5 and 4.6.3).
fn redirected(message: &[u8]) -> Option<&[u8]> {
    let mut options = message.get(40..)?;
    while let [kind, length, ..] = *options {
        let end = usize::from(length) * 8;
        if kind == 4 {
            return options.get(8..options.len().min(end));
        }
        options = options.get(end..).filter(|_| end > 0)?;
    }
    None
}

impl QuotedPacket {
    /// `None` where too little is quoted to tell the packet's addresses.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        match bytes.first()? >> 4 {
            4 => {
                let header = bytes.first_chunk::<20>()?;
                let ip = |at: usize| Ip::v4(std::array::from_fn(|i| header[at + i]));
                let is_first = be16(header, 6) & 0x1fff == 0;
                let rest = bytes.get(usize::from(header[0] & 15) * 4..).filter(|_| is_first).unwrap_or(&[]);
                Some(Self::with_ports(ip(12), ip(16), header[9], be16(header, 2), rest))
            }
            6 => {
                let header = bytes.first_chunk::<40>()?;
                let ip = |at: usize| Ip::v6(std::array::from_fn(|i| header[at + i]));
                Some(Self::with_ports(ip(8), ip(24), header[6], be16(header, 4).saturating_add(40), &bytes[40..]))
            }
            _ => None,
        }
    }

    fn with_ports(src_ip: Ip, dst_ip: Ip, ip_protocol: u8, ip_bytes: u16, rest: &[u8]) -> Self {
        let has_ports = matches!(ip_protocol, 6 | 17 | 132) && rest.len() >= 4;
        let is_request = matches!((ip_protocol, rest.first()), (1, Some(8)) | (58, Some(128)));
        Self {
            src_ip,
            dst_ip,
            ip_protocol,
            ip_bytes,
            src_port: has_ports.then(|| be16(rest, 0)),
            dst_port: has_ports.then(|| be16(rest, 2)),
            seq: (ip_protocol == 6 && rest.len() >= 8).then(|| be32(rest, 4)),
            echo: (is_request && rest.len() >= 8).then(|| (be16(rest, 4), be16(rest, 6))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_echo_request_has_an_identifier_and_a_sequence_number() {
        let message = IcmpMessage::parse(&[8, 0, 0, 0, 0x12, 0x34, 0, 7, 1, 2], false).unwrap();
        assert_eq!((message.echo, message.is_echo_request()), (Some((0x1234, 7)), true));
    }

    #[test]
    fn fragmentation_needed_tells_the_mtu_and_the_segment_it_is_about() {
        let mut bytes = vec![3, 4, 0, 0, 0, 0, 0x05, 0xdc];
        bytes.extend([0x45, 0, 0x23, 0x28, 0, 1, 0x40, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        bytes.extend([0x14, 0x51, 0, 80, 1, 2, 3, 4]);
        let message = IcmpMessage::parse(&bytes, false).unwrap();
        assert_eq!(message.mtu, Some(1500));
        let quoted = message.quoted.unwrap();
        assert_eq!((quoted.src_port, quoted.dst_port), (Some(0x1451), Some(80)));
        assert_eq!((quoted.seq, quoted.ip_bytes), (Some(0x0102_0304), 9000));
    }

    #[test]
    fn packet_too_big_has_a_32_bit_mtu() {
        let message = IcmpMessage::parse(&[2, 0, 0, 0, 0, 1, 0, 0], true).unwrap();
        assert_eq!((message.mtu, message.quoted), (Some(65536), None));
    }

    #[test]
    fn a_redirect_quotes_the_packet_in_its_option() {
        let mut bytes = vec![137, 0, 0, 0, 0, 0, 0, 0];
        bytes.extend([0x20; 32]);
        bytes.extend([2, 1, 2, 0, 0, 0, 0, 5]); // target link-layer address
        bytes.extend([4, 6, 0, 0, 0, 0, 0, 0]); // redirected header: 8 + 40 bytes
        bytes.extend([0x60, 0, 0, 0, 0, 0, 59, 64]);
        bytes.extend([1; 16]);
        bytes.extend([2; 16]);
        let quoted = IcmpMessage::parse(&bytes, true).unwrap().quoted.unwrap();
        assert_eq!((quoted.src_ip, quoted.dst_ip), (Ip::v6([1; 16]), Ip::v6([2; 16])));
        bytes[41] = 0;
        assert_eq!(IcmpMessage::parse(&bytes, true).unwrap().quoted, None);
    }

    #[test]
    fn every_shorter_length_says_what_is_missing() {
        for have_bytes in 0..8 {
            let error = IcmpMessage::parse(&[8; 8][..have_bytes], false).unwrap_err();
            assert_eq!(error, DecodeErrorKind::Truncated { need_bytes: 8, have_bytes });
        }
    }
}
