//! The invariant CRC of RoCE: the last four bytes of every RoCE packet, good from end to end.
//!
//! IBTA Architecture Specification, volume 1, section 7.8.1 and annexes A16 (RoCE) and A17 (RoCEv2). CRC-32 with the
//! Ethernet polynomial over the packet from its network header on, preceded by eight bytes of ones where InfiniBand
//! has its local route header, with every field that a switch or router may change replaced by ones. The result is
//! stored least significant byte first.
//!
//! | header  | replaced by ones                        |
//! |---------|-----------------------------------------|
//! | IPv4    | type of service, TTL, header checksum   |
//! | IPv6    | traffic class, flow label, hop limit    |
//! | GRH     | as IPv6                                 |
//! | UDP     | checksum                                |
//! | BTH     | byte 4: FECN, BECN and reserved bits    |
//!
//! A host capture of the host's own sending may show a packet before the adapter has written the ICRC: then it is
//! [`IcrcStatus::Bad`] without any damage.

use crc32fast::Hasher;

/// What the ICRC of a RoCE packet says about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IcrcStatus {
    /// Packet and ICRC agree.
    Ok,
    /// They do not.
    Bad,
    /// Not all covered bytes are there (snap length, a fragment, a length that cannot be), or the packet has IPv4
    /// options or IPv6 extension headers, for which no ICRC is defined.
    Unverifiable,
}

impl IcrcStatus {
    /// The value as tables spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Bad => "bad",
            Self::Unverifiable => "unverifiable",
        }
    }
}

/// Length of the ICRC, the last bytes of what the IP header's (RoCEv1: the GRH's) length covers.
pub const ICRC_BYTES: usize = 4;

/// Checks a RoCEv2 packet over IPv4. `packet` starts at the IPv4 header and may go on past the packet (padding, FCS).
/// That its UDP port means RoCE is the caller's knowledge.
pub fn check_ipv4(packet: &[u8]) -> IcrcStatus {
    let Some((ip, after_ip)) = packet.split_first_chunk::<IPV4_BYTES>() else {
        return IcrcStatus::Unverifiable;
    };
    let (total_bytes, fragment) = (be16(ip, 2), be16(ip, 6));
    let is_fragment = fragment & 0x3fff != 0;
    if ip[0] != 0x45 || ip[9] != UDP_PROTOCOL || is_fragment {
        return IcrcStatus::Unverifiable;
    }
    let Some((udp, transport, stored)) = split_udp(after_ip, total_bytes.saturating_sub(IPV4_BYTES)) else {
        return IcrcStatus::Unverifiable;
    };
    compare(icrc_ipv4(ip, udp, transport), stored)
}

/// Checks a RoCEv2 packet over IPv6. `packet` starts at the IPv6 header and may go on past the packet.
pub fn check_ipv6(packet: &[u8]) -> IcrcStatus {
    let Some((ip, after_ip)) = packet.split_first_chunk::<IPV6_BYTES>() else {
        return IcrcStatus::Unverifiable;
    };
    if ip[0] >> 4 != 6 || ip[6] != UDP_PROTOCOL {
        return IcrcStatus::Unverifiable;
    }
    let Some((udp, transport, stored)) = split_udp(after_ip, be16(ip, 4)) else {
        return IcrcStatus::Unverifiable;
    };
    compare(icrc_ipv6(ip, udp, transport), stored)
}

/// Checks a RoCEv1 packet (EtherType 0x8915). `packet` starts at the global route header and may go on past the packet.
pub fn check_v1(packet: &[u8]) -> IcrcStatus {
    let Some((grh, after_grh)) = packet.split_first_chunk::<GRH_BYTES>() else {
        return IcrcStatus::Unverifiable;
    };
    if grh[0] >> 4 != 6 || grh[6] != GRH_NEXT_HEADER_BTH {
        return IcrcStatus::Unverifiable;
    }
    let Some((transport, stored)) = split_icrc(after_grh, be16(grh, 4)) else {
        return IcrcStatus::Unverifiable;
    };
    compare(icrc_v1(grh, transport), stored)
}

/// The ICRC of a RoCEv2 packet over IPv4 without options. `transport` is everything from the BTH up to, but without,
/// the ICRC. Its little-endian bytes are what the wire carries.
pub fn icrc_ipv4(ip_header: &[u8; IPV4_BYTES], udp_header: &[u8; UDP_BYTES], transport: &[u8]) -> u32 {
    let mut head = [0u8; IPV4_BYTES + UDP_BYTES];
    let (ip, udp) = head.split_at_mut(IPV4_BYTES);
    ip.copy_from_slice(ip_header);
    udp.copy_from_slice(udp_header);
    ip[1] = 0xff;
    ip[8] = 0xff;
    ip[10..12].fill(0xff);
    udp[6..8].fill(0xff);
    crc(&head, transport)
}

/// The ICRC of a RoCEv2 packet over IPv6 without extension headers; see [`icrc_ipv4`].
pub fn icrc_ipv6(ip_header: &[u8; IPV6_BYTES], udp_header: &[u8; UDP_BYTES], transport: &[u8]) -> u32 {
    let mut head = [0u8; IPV6_BYTES + UDP_BYTES];
    let (ip, udp) = head.split_at_mut(IPV6_BYTES);
    ip.copy_from_slice(ip_header);
    udp.copy_from_slice(udp_header);
    mask_ipv6(ip);
    udp[6..8].fill(0xff);
    crc(&head, transport)
}

/// The ICRC of a RoCEv1 packet, whose global route header has the layout of an IPv6 header; see [`icrc_ipv4`].
pub fn icrc_v1(grh: &[u8; GRH_BYTES], transport: &[u8]) -> u32 {
    let mut head = *grh;
    mask_ipv6(&mut head);
    crc(&head, transport)
}

const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
const GRH_BYTES: usize = 40;
const UDP_BYTES: usize = 8;
const BTH_BYTES: usize = 12;
const UDP_PROTOCOL: u8 = 17;
const GRH_NEXT_HEADER_BTH: u8 = 0x1b;
/// CRC-32 of the eight bytes of ones before every packet.
const CRC_OF_DUMMY_LRH: u32 = 0x2144_df1c;

/// UDP header, transport and ICRC of the `ip_payload_bytes` after an IP header; `None` when bytes are missing.
///
/// The packet ends where IP says, as receivers see it. The UDP length is only covered, not trusted: damage to it
/// would otherwise hide itself.
fn split_udp(after_ip: &[u8], ip_payload_bytes: usize) -> Option<(&[u8; UDP_BYTES], &[u8], u32)> {
    let (udp, after_udp) = after_ip.split_first_chunk::<UDP_BYTES>()?;
    let (transport, stored) = split_icrc(after_udp, ip_payload_bytes.checked_sub(UDP_BYTES)?)?;
    Some((udp, transport, stored))
}

/// Splits the first `declared_bytes` into what the ICRC covers and the ICRC.
fn split_icrc(bytes: &[u8], declared_bytes: usize) -> Option<(&[u8], u32)> {
    let (transport, icrc) = bytes.get(..declared_bytes)?.split_last_chunk::<ICRC_BYTES>()?;
    (transport.len() >= BTH_BYTES).then(|| (transport, u32::from_le_bytes(*icrc)))
}

/// Ones for traffic class, flow label and hop limit.
fn mask_ipv6(header: &mut [u8]) {
    header[0] |= 0x0f;
    header[1..4].fill(0xff);
    header[7] = 0xff;
}

/// CRC of an already masked `head` and of `transport`, whose BTH is masked here.
fn crc(head: &[u8], transport: &[u8]) -> u32 {
    let mut hasher = Hasher::new_with_initial(CRC_OF_DUMMY_LRH);
    hasher.update(head);
    match transport.split_first_chunk::<BTH_BYTES>() {
        Some((bth, rest)) => {
            let mut bth = *bth;
            bth[4] = 0xff;
            hasher.update(&bth);
            hasher.update(rest);
        }
        None => hasher.update(transport),
    }
    hasher.finalize()
}

fn compare(computed: u32, stored: u32) -> IcrcStatus {
    if computed == stored { IcrcStatus::Ok } else { IcrcStatus::Bad }
}

fn be16(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]))
}

#[cfg(test)]
mod tests {
    use super::IcrcStatus::{Bad, Ok, Unverifiable};
    use super::*;
    use proptest::prelude::*;

    /// A UC SEND Only, from its IPv4 header on.
    const UC_SEND: &str = "45010040047840004011b4d5c0a80007c0a80007 c00012b7002caca2 2460ffff000000d300cf1710 \
        4630818be28935d90e9a95505401be885e500000 78f353f3";
    /// A CNP captured on a ConnectX-4 Lx.
    const CNP: &str = "45c2003c718c4000401191610a0011010a001201 000012b700280000 8100ffff4000011800000000 \
        00000000000000000000000000000000 82fd002a";
    /// A RoCEv1 acknowledgement captured on Mellanox adapters, from its GRH on.
    const ACK_V1: &str = "6020000000141b40 00000000000000000000ffffc0a8f239 00000000000000000000ffffc0a8f238 \
        1140ffff00001312007d4a1a 1f000000 460eb2dd";

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
        digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
    }

    /// CRC-32 bit by bit.
    fn slow_crc(bytes: impl IntoIterator<Item = u8>) -> u32 {
        let step = |crc: u32, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 };
        !bytes.into_iter().fold(!0, |crc, byte| (0..8).fold(crc ^ u32::from(byte), step))
    }

    /// The CNP over IPv6, its ICRC computed bit by bit over a masked copy.
    fn cnp_v6() -> Vec<u8> {
        let mut packet = hex("6c212345 0028 11 40");
        packet.extend((0..32u8).map(|i| i * 7));
        packet.extend(&hex(CNP)[20..56]);
        let mut masked = packet.clone();
        masked[0] = 0x6f;
        for at in [1, 2, 3, 7, 46, 47, 52] {
            masked[at] = 0xff;
        }
        packet.extend(slow_crc([0xff; 8].into_iter().chain(masked)).to_le_bytes());
        packet
    }

    struct Sample {
        packet: Vec<u8>,
        check: fn(&[u8]) -> IcrcStatus,
        /// Byte offsets and masks of the bits the ICRC does not cover.
        free: Vec<(usize, u8)>,
    }

    impl Sample {
        fn is_free(&self, at: usize, bits: u8) -> bool {
            let free = self.free.iter().filter(|(free_at, _)| *free_at == at).fold(0, |mask, (_, free)| mask | free);
            bits & !free == 0
        }
    }

    fn samples() -> [Sample; 4] {
        let v4 = vec![(1, 0xff), (8, 0xff), (10, 0xff), (11, 0xff), (26, 0xff), (27, 0xff), (32, 0xff)];
        let grh = vec![(0, 0x0f), (1, 0xff), (2, 0xff), (3, 0xff), (7, 0xff)];
        let v6 = [grh.clone(), vec![(46, 0xff), (47, 0xff), (52, 0xff)]].concat();
        let v1 = [grh, vec![(44, 0xff)]].concat();
        [
            Sample { packet: hex(UC_SEND), check: check_ipv4, free: v4.clone() },
            Sample { packet: hex(CNP), check: check_ipv4, free: v4 },
            Sample { packet: cnp_v6(), check: check_ipv6, free: v6 },
            Sample { packet: hex(ACK_V1), check: check_v1, free: v1 },
        ]
    }

    #[test]
    fn the_dummy_route_header_is_eight_bytes_of_ones() {
        assert_eq!(slow_crc([0xff; 8]), CRC_OF_DUMMY_LRH);
        assert_eq!(!CRC_OF_DUMMY_LRH, 0xdebb_20e3, "the seed of Linux' rxe");
    }

    #[test]
    fn known_packets_verify_and_the_value_is_stored_little_endian() {
        for Sample { packet, check, .. } in samples() {
            assert_eq!(check(&packet), Ok);
        }
        let packet = hex(CNP);
        let (ip, udp) = (packet.first_chunk().unwrap(), packet[20..].first_chunk().unwrap());
        assert_eq!(icrc_ipv4(ip, udp, &packet[28..56]).to_le_bytes(), [0x82, 0xfd, 0x00, 0x2a]);
    }

    #[test]
    fn exactly_the_bits_that_switches_may_change_are_not_covered() {
        for sample in samples() {
            for bit in 0..sample.packet.len() * 8 {
                let (at, mask) = (bit / 8, 1 << (bit % 8));
                let mut changed = sample.packet.clone();
                changed[at] ^= mask;
                let is_ok = (sample.check)(&changed) == Ok;
                assert_eq!(is_ok, sample.is_free(at, mask), "byte {at} mask {mask:#x}");
            }
        }
    }

    #[test]
    fn damage_to_the_udp_length_is_bad_not_unverifiable() {
        let mut packet = hex(UC_SEND);
        packet[24] ^= 0x10;
        assert_eq!(check_ipv4(&packet), Bad);
    }

    #[test]
    fn a_cut_packet_is_unverifiable_and_padding_does_not_matter() {
        for Sample { packet, check, .. } in samples() {
            for len in 0..packet.len() {
                assert_eq!(check(&packet[..len]), Unverifiable, "cut to {len}");
            }
            assert_eq!(check(&[packet.as_slice(), &[0xaa; 6]].concat()), Ok);
        }
    }

    #[test]
    fn options_fragments_and_lengths_without_a_bth_are_unverifiable() {
        let changed = |at: usize, value: u8| {
            let mut packet = hex(UC_SEND);
            packet[at] = value;
            check_ipv4(&packet)
        };
        assert_eq!(changed(0, 0x46), Unverifiable, "options");
        assert_eq!(changed(6, 0x20), Unverifiable, "more fragments");
        assert_eq!(changed(7, 0x01), Unverifiable, "a later fragment");
        assert_eq!(changed(9, 6), Unverifiable, "TCP");
        assert_eq!(changed(3, 0), Unverifiable, "total length 0");
        assert_eq!(changed(3, 43), Unverifiable, "no room for BTH and ICRC");
        assert_eq!(changed(3, 44), Bad, "room for nothing else");
        assert_eq!(changed(6, 0xc0), Bad, "the reserved bit is covered");
        let mut packet = cnp_v6();
        packet[6] = 44;
        assert_eq!(check_ipv6(&packet), Unverifiable, "a fragment header");
        for (at, value) in [(0, 0x46), (6, 17)] {
            let mut packet = hex(ACK_V1);
            packet[at] = value;
            assert_eq!(check_v1(&packet), Unverifiable, "not a GRH before a BTH");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            for check in [check_ipv4, check_ipv6, check_v1] {
                prop_assert_ne!(check(&bytes), Ok);
            }
        }

        /// A CRC-32 notices every burst of up to 32 bits.
        #[test]
        fn any_burst_of_damage_is_noticed(which in 0usize..4, at in any::<prop::sample::Index>(), burst in any::<[u8; 4]>()) {
            let sample = &samples()[which];
            let start = at.index(sample.packet.len() - 3);
            let mut damaged = sample.packet.clone();
            for (byte, change) in damaged[start..].iter_mut().zip(burst) {
                *byte ^= change;
            }
            let is_harmless = (0..4).all(|i| sample.is_free(start + i, burst[i]));
            prop_assert_eq!((sample.check)(&damaged) == Ok, is_harmless);
        }

        #[test]
        fn the_crc_equals_the_slow_crc_at_any_length(transport in prop::collection::vec(any::<u8>(), 12..600)) {
            let (ip, udp) = ([0xff; 20], [0xff; 8]);
            let mut masked = transport.clone();
            masked[4] = 0xff;
            let covered = [0xff; 36].into_iter().chain(masked);
            prop_assert_eq!(icrc_ipv4(&ip, &udp, &transport), slow_crc(covered));
        }
    }
}
