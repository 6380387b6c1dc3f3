//! Address resolution, RFC 826, for Ethernet and IPv4 (28 bytes).
//!
//! ```text
//!  0      2      4    5    6      8          14         18         24         28
//!  +------+------+----+----+------+----------+----------+----------+----------+
//!  | htype| ptype| hl | pl | oper | sender MAC| sender IP| target MAC| target IP|
//!  +------+------+----+----+------+----------+----------+----------+----------+
//! ```

use super::be16;
use super::error::DecodeErrorKind;
use super::frame::{Ip, Mac};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArpPacket {
    /// 1 request, 2 reply.
    pub operation: u16,
    pub sender_mac: Mac,
    pub sender_ip: Ip,
    pub target_mac: Mac,
    pub target_ip: Ip,
}

impl ArpPacket {
    pub const LEN_BYTES: usize = 28;

    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeErrorKind> {
        let Some(bytes) = bytes.first_chunk::<{ Self::LEN_BYTES }>() else {
            return Err(DecodeErrorKind::Truncated { need_bytes: Self::LEN_BYTES, have_bytes: bytes.len() });
        };
        if be16(bytes, 2) != 0x0800 || bytes[4] != 6 || bytes[5] != 4 {
            return Err(DecodeErrorKind::BadField { field: "protocol type", value: u64::from(be16(bytes, 2)) });
        }
        let mac = |at: usize| Mac(std::array::from_fn(|i| bytes[at + i]));
        let ip = |at: usize| Ip::v4(std::array::from_fn(|i| bytes[at + i]));
        Ok(Self {
            operation: be16(bytes, 6),
            sender_mac: mac(8),
            sender_ip: ip(14),
            target_mac: mac(18),
            target_ip: ip(24),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLY: [u8; 28] = [
        0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 2, 0, 0, 0, 0, 2, 10, 0, 0, 2,
    ];

    #[test]
    fn a_reply_is_read() {
        let arp = ArpPacket::parse(&REPLY).unwrap();
        assert_eq!((arp.operation, arp.sender_ip, arp.target_ip), (2, Ip::v4([10, 0, 0, 1]), Ip::v4([10, 0, 0, 2])));
        assert_eq!(arp.sender_mac.to_string(), "02:00:00:00:00:01");
    }

    #[test]
    fn every_shorter_length_says_what_is_missing() {
        for have_bytes in 0..28 {
            let error = ArpPacket::parse(&REPLY[..have_bytes]).unwrap_err();
            assert_eq!(error, DecodeErrorKind::Truncated { need_bytes: 28, have_bytes });
        }
    }

    #[test]
    fn another_protocol_than_ipv4_is_a_bad_field() {
        let mut bytes = REPLY;
        bytes[2] = 0x86;
        assert!(matches!(ArpPacket::parse(&bytes), Err(DecodeErrorKind::BadField { .. })));
    }
}
