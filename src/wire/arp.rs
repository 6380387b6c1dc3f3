//! Address resolution, RFC 826, and its reverse, RFC 903; 28 bytes for Ethernet and IPv4.
//!
//! ```text
//!  0      2      4    5    6      8          8+hl       8+hl+pl    8+2hl+pl   8+2hl+2pl
//!  +------+------+----+----+------+----------+----------+----------+----------+
//!  | htype| ptype| hl | pl | oper | sender MAC| sender IP| target MAC| target IP|
//!  +------+------+----+----+------+----------+----------+----------+----------+
//! ```

use super::address::{Ip, Mac};
use super::be16;
use super::error::DecodeErrorKind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArpPacket {
    /// 1 request, 2 reply, 3 reverse request, 4 reverse reply.
    pub operation: u16,
    /// `None` where the hardware is not Ethernet or another IEEE 802 network.
    pub sender_mac: Option<Mac>,
    /// None where the protocol is not IPv4.
    pub sender_ip: Ip,
    pub target_mac: Option<Mac>,
    pub target_ip: Ip,
}

impl ArpPacket {
    const HARDWARE_ATM: u16 = 19;
    /// What comes before the addresses.
    pub const MIN_BYTES: usize = 8;
    /// For Ethernet and IPv4.
    pub const LEN_BYTES: usize = 28;

    pub fn parse(bytes: &[u8]) -> Result<Self, DecodeErrorKind> {
        let truncated = |need_bytes| DecodeErrorKind::Truncated { need_bytes, have_bytes: bytes.len() };
        let Some(fixed) = bytes.first_chunk::<{ Self::MIN_BYTES }>() else { return Err(truncated(Self::LEN_BYTES)) };
        // ATM's address resolution (RFC 2225) is laid out otherwise.
        if be16(fixed, 0) == Self::HARDWARE_ATM {
            return Err(DecodeErrorKind::BadField { field: "hardware type", value: u64::from(Self::HARDWARE_ATM) });
        }
        let (hardware_bytes, protocol_bytes) = (usize::from(fixed[4]), usize::from(fixed[5]));
        let need_bytes = Self::MIN_BYTES + 2 * (hardware_bytes + protocol_bytes);
        if bytes.len() < need_bytes {
            return Err(truncated(need_bytes));
        }
        let is_mac = matches!(be16(fixed, 0), 1 | 6) && hardware_bytes == 6;
        let is_ipv4 = be16(fixed, 2) == 0x0800 && protocol_bytes == 4;
        let mac = |at: usize| is_mac.then(|| Mac(std::array::from_fn(|i| bytes[at + i])));
        let ip = |at: usize| if is_ipv4 { Ip::v4(std::array::from_fn(|i| bytes[at + i])) } else { Ip::NONE };
        let target_at = Self::MIN_BYTES + hardware_bytes + protocol_bytes;
        Ok(Self {
            operation: be16(fixed, 6),
            sender_mac: mac(Self::MIN_BYTES),
            sender_ip: ip(Self::MIN_BYTES + hardware_bytes),
            target_mac: mac(target_at),
            target_ip: ip(target_at + hardware_bytes),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPLY: [u8; 28] = [0, 1, 8, 0, 6, 4, 0, 2, 2, 0, 0, 0, 0, 1, 10, 0, 0, 1, 2, 0, 0, 0, 0, 2, 10, 0, 0, 2];

    #[test]
    fn a_reply_is_read() {
        let arp = ArpPacket::parse(&REPLY).unwrap();
        assert_eq!((arp.operation, arp.sender_ip, arp.target_ip), (2, Ip::v4([10, 0, 0, 1]), Ip::v4([10, 0, 0, 2])));
        assert_eq!(arp.sender_mac.map(|mac| mac.to_string()).as_deref(), Some("02:00:00:00:00:01"));
    }

    #[test]
    fn every_shorter_length_says_what_is_missing() {
        for have_bytes in 0..28 {
            let error = ArpPacket::parse(&REPLY[..have_bytes]).unwrap_err();
            assert_eq!(error, DecodeErrorKind::Truncated { need_bytes: 28, have_bytes });
        }
    }

    #[test]
    fn another_protocol_than_ipv4_has_no_ip_addresses() {
        let mut bytes = REPLY;
        bytes[2] = 0x86;
        let arp = ArpPacket::parse(&bytes).unwrap();
        assert_eq!((arp.operation, arp.sender_ip, arp.target_ip), (2, Ip::NONE, Ip::NONE));
        assert!(arp.sender_mac.is_some());
    }

    #[test]
    fn atm_is_a_forbidden_hardware_type() {
        let mut bytes = REPLY;
        bytes[1] = 19;
        assert_eq!(ArpPacket::parse(&bytes), Err(DecodeErrorKind::BadField { field: "hardware type", value: 19 }));
    }

    #[test]
    fn other_hardware_has_no_mac_addresses_and_lengths_move_the_others() {
        // ARPHRD 4 (token ring of old) with two-byte addresses.
        let bytes = [0, 4, 8, 0, 2, 4, 0, 1, 0xaa, 0xbb, 10, 0, 0, 1, 0xcc, 0xdd, 10, 0, 0, 2];
        let arp = ArpPacket::parse(&bytes).unwrap();
        assert_eq!((arp.sender_ip, arp.target_ip), (Ip::v4([10, 0, 0, 1]), Ip::v4([10, 0, 0, 2])));
        assert_eq!((arp.sender_mac, arp.target_mac), (None, None));
        let error = ArpPacket::parse(&bytes[..19]).unwrap_err();
        assert_eq!(error, DecodeErrorKind::Truncated { need_bytes: 20, have_bytes: 19 });
    }
}
