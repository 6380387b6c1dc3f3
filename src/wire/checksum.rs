//! The Internet checksum of IPv4, TCP, UDP, ICMP and IGMP: is what was captured intact?
//!
//! RFC 1071: the field makes the one's-complement sum of all covered 16-bit words `0xffff`. A sum of zero has two
//! representations, so a field that should hold `0x0000` is as good as `0xffff`; adding the field to the rest and
//! comparing the total with `0xffff` accepts both, as receivers do.
//!
//! A checksum that does not verify is not yet damage. A host with checksum offload shows its own packets to the
//! capture before the hardware fills the field in: [`ChecksumStatus::Partial`]. Linux leaves the folded
//! pseudo-header sum there, not complemented, over the length of the frame it hands down: with segmentation offload
//! that is the large frame's length, not that of a segment on the wire. Windows leaves the length out of it for large
//! sends. The same values show up at the *receiving* host when the packet never crossed a wire (veth, virtio,
//! loopback), and on frames that GRO merged. Simulators and some drivers write no checksum at all:
//! [`ChecksumStatus::Absent`].
//!
//! Both are told from damage by the field's value alone, so up to three damaged packets in 65536 pass for one of them.

/// What a checksum field says about the bytes it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChecksumStatus {
    /// The covered bytes and the field agree.
    Ok,
    /// They do not, and the field is not what an unfinished checksum looks like either.
    Bad,
    /// All covered bytes are there and the TCP or UDP field holds the pseudo-header sum alone: it waits for the
    /// sender's hardware.
    Partial,
    /// Not all covered bytes are there: cut by the snap length, a fragment, or a length that cannot be.
    Unverifiable,
    /// No checksum was written: the field is zero where zero is not the checksum. UDP may do so (RFC 768); in other
    /// protocols it is the work of offload (the IPv4 header) or of a simulator.
    Absent,
}

impl ChecksumStatus {
    /// The value as tables spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Bad => "bad",
            Self::Partial => "partial",
            Self::Unverifiable => "unverifiable",
            Self::Absent => "absent",
        }
    }
}

/// The addresses of a pseudo-header (RFC 9293 section 3.1, RFC 8200 section 8.1), already summed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PseudoAddresses {
    sum: u16,
    is_v6: bool,
}

impl PseudoAddresses {
    /// IPv4 addresses. With a source route pending, `dst` is the last hop of the route.
    pub fn v4(src: [u8; 4], dst: [u8; 4]) -> Self {
        Self { sum: add(sum_bytes(&src), sum_bytes(&dst)), is_v6: false }
    }

    /// IPv6 addresses. With a routing header that has segments left, `dst` is the final destination; with a home
    /// address option, `src` is the home address (RFC 6275 section 11.3.1).
    pub fn v6(src: [u8; 16], dst: [u8; 16]) -> Self {
        Self { sum: add(sum_bytes(&src), sum_bytes(&dst)), is_v6: true }
    }

    /// The whole pseudo-header, folded. A length above 65535 (an IPv6 jumbogram, Linux "BIG TCP") adds both halves.
    fn with(self, protocol: u8, l4_bytes: u32) -> u16 {
        fold(u64::from(self.sum) + u64::from(protocol) + u64::from(l4_bytes))
    }
}

/// Checks an IPv4 header (RFC 791): `header` starts at the version byte and may go on past the header.
///
/// A field of zero that does not verify is [`ChecksumStatus::Absent`]: it is what a sender with header checksum
/// offload leaves.
pub fn ipv4_header(header: &[u8]) -> ChecksumStatus {
    let Some(&first) = header.first() else {
        return ChecksumStatus::Unverifiable;
    };
    let header_bytes = usize::from(first & 0x0f) * 4;
    if first >> 4 != 4 || header_bytes < 20 {
        return ChecksumStatus::Unverifiable;
    }
    let Some(header) = header.get(..header_bytes) else {
        return ChecksumStatus::Unverifiable;
    };
    verdict(sum_bytes(header), field_at(header, 10))
}

/// Checks the checksum of what an IP packet carries; `None` when `protocol` has no checksum of this kind.
///
/// * `protocol`: the IP protocol or last next header: TCP 6, UDP 17, ICMP 1 and IGMP 2 (over IPv4), ICMPv6 58 (over
///   IPv6).
/// * `l4_bytes`: length the IP header leaves for this protocol, after its options or extension headers.
/// * `captured`: from the first byte of the protocol's header to the end of the captured bytes; Ethernet padding
///   after `l4_bytes` is ignored.
/// * `is_fragment`: any fragment, the first too: a checksum covers the reassembled datagram.
///
/// UDP covers what its own length field says, and that length is the pseudo-header's. Its zero field means
/// "no checksum" over IPv4 (RFC 768). Over IPv6 zero is forbidden but for tunnels whose ends agreed on it (RFC 6935,
/// RFC 6936), and that agreement is not in the packet. Nothing shows such a datagram to be damaged, so it
/// is [`ChecksumStatus::Absent`] too; whoever wants to object to it finds it by IPv6 and `absent`.
///
/// A packet cut by the snap length is [`ChecksumStatus::Unverifiable`] even if its field looks partial;
/// see [`holds_pseudo_sum`].
pub fn l4(
    addresses: PseudoAddresses,
    protocol: u8,
    l4_bytes: u32,
    captured: &[u8],
    is_fragment: bool,
) -> Option<ChecksumStatus> {
    Some(match (protocol, addresses.is_v6) {
        (TCP | UDP, _) | (ICMP | IGMP, false) | (ICMPV6, true) if is_fragment => ChecksumStatus::Unverifiable,
        (TCP, _) => tcp(addresses, l4_bytes, captured),
        (UDP, _) => udp(addresses, l4_bytes, captured, 0),
        (ICMP | IGMP, false) => whole(0, 2, 8, l4_bytes, captured),
        (ICMPV6, true) => whole(addresses.with(ICMPV6, l4_bytes), 2, 4, l4_bytes, captured),
        _ => return None,
    })
}

/// Whether a TCP or UDP field holds the pseudo-header sum alone, as far as the field itself tells: the header must be
/// captured, the payload need not be. Arguments as for [`l4`], not for fragments.
///
/// One finished checksum in 65536 (TCP: two) has this value by chance. In a complete packet [`l4`] excludes that; in cut packets
/// only their share tells offload (nearly all of one direction) from chance.
pub fn holds_pseudo_sum(addresses: PseudoAddresses, protocol: u8, l4_bytes: u32, captured: &[u8]) -> bool {
    match protocol {
        TCP => field_at(captured, 16)
            .is_some_and(|field| field == addresses.with(TCP, l4_bytes) || field == addresses.with(TCP, 0)),
        UDP => match (field_at(captured, 6), udp_bytes(l4_bytes, captured)) {
            (Some(field), Some(udp_bytes)) => field == addresses.with(UDP, udp_bytes),
            _ => false,
        },
        _ => false,
    }
}

/// What filling in a partial checksum will add to the one's-complement sum of everything around it.
///
/// Linux computes the UDP checksum of a tunnel for the finished inner packet ("local checksum offload"). While the
/// inner checksum is [`ChecksumStatus::Partial`], the outer one is off by this; see [`tunnel_udp`]. `None` if
/// the packet is not partial. Arguments as for [`l4`], not for fragments.
pub fn pending_sum(addresses: PseudoAddresses, protocol: u8, l4_bytes: u32, captured: &[u8]) -> Option<u16> {
    if l4(addresses, protocol, l4_bytes, captured, false) != Some(ChecksumStatus::Partial) {
        return None;
    }
    let covered_bytes = if protocol == UDP { udp_bytes(l4_bytes, captured)? } else { l4_bytes };
    let covered = captured.get(..usize::try_from(covered_bytes).ok()?)?;
    // The finished packet and its pseudo-header will sum to 0xffff; what they lack now is what the field gains.
    Some(!add(addresses.with(protocol, covered_bytes), sum_bytes(covered)))
}

/// [`l4`] for the UDP header of a tunnel whose innermost packet has the [`pending_sum`] `pending`. The inner packet
/// starts at an even offset, as it does in every tunnel of this library.
pub fn tunnel_udp(addresses: PseudoAddresses, l4_bytes: u32, captured: &[u8], pending: u16) -> ChecksumStatus {
    udp(addresses, l4_bytes, captured, pending)
}

/// The one's-complement sum (RFC 1071) of `bytes` as big-endian 16-bit words, folded to 16 bits, not complemented.
/// An odd last byte counts as the high half of a word. The sum is zero only if all bytes are.
pub fn sum_bytes(bytes: &[u8]) -> u16 {
    // The sum commutes with swapping the bytes of every word (RFC 1071 section 2 (B)): add little-endian words, which
    // most machines load as they are, and swap once. 32-bit words in 64-bit lanes cannot overflow below 2^32
    // words, and separate lanes leave the compiler free to use vector registers.
    let mut lanes = [0u64; LANES];
    let mut blocks = bytes.chunks_exact(4 * LANES);
    for block in &mut blocks {
        for (lane, word) in lanes.iter_mut().zip(block.chunks_exact(4)) {
            *lane += u64::from(u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
        }
    }
    let mut sum = lanes.iter().fold(0u64, |sum, lane| sum + u64::from(fold(*lane)));
    let mut words = blocks.remainder().chunks_exact(2);
    for word in &mut words {
        sum += u64::from(u16::from_le_bytes([word[0], word[1]]));
    }
    if let [last] = words.remainder() {
        sum += u64::from(*last);
    }
    fold(sum).swap_bytes()
}

const ICMP: u8 = 1;
const IGMP: u8 = 2;
const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;
const LANES: usize = 8;

fn tcp(addresses: PseudoAddresses, l4_bytes: u32, captured: &[u8]) -> ChecksumStatus {
    match whole(addresses.with(TCP, l4_bytes), 16, 20, l4_bytes, captured) {
        ChecksumStatus::Bad if holds_pseudo_sum(addresses, TCP, l4_bytes, captured) => ChecksumStatus::Partial,
        other => other,
    }
}

fn udp(addresses: PseudoAddresses, l4_bytes: u32, captured: &[u8], pending: u16) -> ChecksumStatus {
    if field_at(captured, 6) == Some(0) {
        return ChecksumStatus::Absent;
    }
    let Some(udp_bytes) = udp_bytes(l4_bytes, captured) else {
        return ChecksumStatus::Unverifiable;
    };
    match whole(add(addresses.with(UDP, udp_bytes), pending), 6, 8, udp_bytes, captured) {
        ChecksumStatus::Bad if holds_pseudo_sum(addresses, UDP, l4_bytes, captured) => ChecksumStatus::Partial,
        other => other,
    }
}

/// The UDP length; zero there means a jumbogram, too long for the field (RFC 2675 section 4). `None` if impossible.
fn udp_bytes(l4_bytes: u32, captured: &[u8]) -> Option<u32> {
    match field_at(captured, 4).map(u32::from)? {
        0 if l4_bytes > 0xffff => Some(l4_bytes),
        udp_bytes => (8..=l4_bytes).contains(&udp_bytes).then_some(udp_bytes),
    }
}

/// Adds `covered_bytes` of `captured` to `pseudo`. Fewer than `min_bytes` cannot hold the protocol's header.
fn whole(pseudo: u16, field_offset: usize, min_bytes: u32, covered_bytes: u32, captured: &[u8]) -> ChecksumStatus {
    let covered = usize::try_from(covered_bytes).ok().and_then(|covered_bytes| captured.get(..covered_bytes));
    match covered {
        Some(covered) if covered_bytes >= min_bytes => {
            verdict(add(pseudo, sum_bytes(covered)), field_at(covered, field_offset))
        }
        _ => ChecksumStatus::Unverifiable,
    }
}

fn verdict(total: u16, field: Option<u16>) -> ChecksumStatus {
    if total == 0xffff {
        ChecksumStatus::Ok
    } else if field == Some(0) {
        ChecksumStatus::Absent
    } else {
        ChecksumStatus::Bad
    }
}

fn field_at(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..)?.first_chunk().map(|field| u16::from_be_bytes(*field))
}

fn add(a: u16, b: u16) -> u16 {
    fold(u64::from(a) + u64::from(b))
}

/// Adds the carries back in until 16 bits are left.
fn fold(sum: u64) -> u16 {
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 32) + (sum & 0xffff_ffff);
    let sum = (sum >> 16) + (sum & 0xffff);
    (sum as u16).wrapping_add((sum >> 16) as u16)
}

#[cfg(test)]
mod tests {
    use super::ChecksumStatus::{Absent, Bad, Ok, Partial, Unverifiable};
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071 word by word, carry by carry.
    fn slow_sum(bytes: &[u8]) -> u16 {
        bytes.chunks(2).fold(0, |sum: u16, word| {
            let (sum, carry) = sum.overflowing_add(u16::from_be_bytes([word[0], word.get(1).copied().unwrap_or(0)]));
            sum + u16::from(carry)
        })
    }

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(16)).collect();
        digits.chunks(2).map(|pair| (pair[0] << 4 | pair[1]) as u8).collect()
    }

    fn noise(len: u32) -> Vec<u8> {
        (0..len).map(|i| (i.wrapping_mul(0x9e37_79b1) >> 24) as u8).collect()
    }

    struct Packet {
        addresses: PseudoAddresses,
        protocol: u8,
        l4: Vec<u8>,
    }

    impl Packet {
        /// From IP packets without extension headers.
        fn from_ip(ip: &str) -> Self {
            let ip = hex(ip);
            let (addresses, protocol, header_bytes) = if ip[0] >> 4 == 4 {
                assert_eq!(ipv4_header(&ip), Ok);
                let at = |at: usize| ip[at..at + 4].try_into().unwrap();
                (PseudoAddresses::v4(at(12), at(16)), ip[9], usize::from(ip[0] & 15) * 4)
            } else {
                let at = |at: usize| ip[at..at + 16].try_into().unwrap();
                (PseudoAddresses::v6(at(8), at(24)), ip[6], 40)
            };
            let l4 = ip[header_bytes..].to_vec();
            Self { addresses, protocol, l4 }
        }

        fn bytes(&self) -> u32 {
            self.l4.len() as u32
        }

        fn status_of(&self, captured: &[u8]) -> ChecksumStatus {
            l4(self.addresses, self.protocol, self.bytes(), captured, false).unwrap()
        }

        fn status(&self) -> ChecksumStatus {
            self.status_of(&self.l4)
        }
    }

    const TCP_ODD: &str = "45000035112340003f06138b0a0902020a09010214519910f660436e67667c03801801fd441b00000101080a8fe8\
        b267fd67063409";
    const TCP_PARTIAL: &str = "450000353c0e40003f06e89f0a0902020a0901021451ec922e70966749bcb5b8801801fd173d0000010108\
        0a1ea9e8c60302038009";
    const UDP_V6: &str = "6000000000101140fd01ababcdcdefe08655ab4d6299e315fd01cafe0000000000000000000000019c4717710010\
        b1e781cb0001477f2b32";
    const ICMP_ECHO: &str = "45000054fe5540004001253e0a0901020a0902020800450e114d000132400d6b0000000096250d0000000000\
        101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c2d2e2f3031323334353637";
    const ICMPV6_NS: &str = "6000000000203aff00000000000000000000000000000000ff0200000000000000000001ffe1000f8700566e00\
        000000fe80000000000000546ff7fffee1000f0e016069604c0aaa";
    /// A VXLAN packet of a Linux host: the inner TCP checksum is partial, the outer UDP one counts on its completion.
    const VXLAN_PENDING: &str = "45000066505500004011a62ec0000201c0000202994812b50052d2e40800000000000100024200000002\
        024200000001080045000034 1aeb40003f0607dd0af4010a0af4020be7100050435b95ab1a579b50801001fb192300000101080a368ed1f5\
        739f3854";

    #[test]
    fn the_example_of_rfc_1071_sums_as_printed() {
        assert_eq!(sum_bytes(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), 0xddf2);
    }

    #[test]
    fn the_fast_sum_equals_the_slow_one_at_every_length_and_at_full_carry() {
        let bytes = noise(600);
        for len in 0..=bytes.len() {
            assert_eq!(sum_bytes(&bytes[..len]), slow_sum(&bytes[..len]), "length {len}");
            let ones = vec![0xff; len];
            assert_eq!(sum_bytes(&ones), slow_sum(&ones), "ones, length {len}");
        }
        assert_eq!(sum_bytes(&vec![0xff; 1 << 20]), 0xffff);
        assert_eq!(sum_bytes(&vec![0; 1 << 20]), 0);
    }

    #[test]
    fn captured_packets_verify_and_every_flipped_bit_and_truncation_is_found() {
        for ip in [TCP_ODD, UDP_V6, ICMP_ECHO, ICMPV6_NS] {
            let packet = Packet::from_ip(ip);
            assert_eq!(packet.status(), Ok, "{ip}");
            for bit in 0..packet.l4.len() * 8 {
                let mut l4 = packet.l4.clone();
                l4[bit / 8] ^= 1 << (bit % 8);
                assert!(matches!(packet.status_of(&l4), Bad | Unverifiable), "{ip} bit {bit}");
            }
            for len in 0..packet.l4.len() {
                assert_eq!(packet.status_of(&packet.l4[..len]), Unverifiable, "{ip} cut to {len}");
            }
            let padded = [packet.l4.as_slice(), &[0xaa; 5]].concat();
            assert_eq!(packet.status_of(&padded), Ok, "{ip} with Ethernet padding");
            let mut elsewhere = Packet { l4: packet.l4, ..packet };
            elsewhere.addresses.sum = add(packet.addresses.sum, 1);
            let expected = if packet.protocol == ICMP { Ok } else { Bad };
            assert_eq!(elsewhere.status(), expected, "{ip} to another address");
        }
    }

    #[test]
    fn an_igmp_message_has_no_pseudo_header() {
        let query = hex("1164ee9b00000000");
        let addresses = PseudoAddresses::v4([10, 0, 0, 1], [224, 0, 0, 1]);
        assert_eq!(l4(addresses, IGMP, 8, &query, false), Some(Ok));
        assert_eq!(l4(addresses, IGMP, 8, &query[..7], false), Some(Unverifiable));
        assert_eq!(l4(addresses, IGMP, 8, &hex("1164ee9b00000001"), false), Some(Bad));
    }

    #[test]
    fn every_flipped_bit_and_truncation_of_an_ipv4_header_is_found() {
        let header = hex("450000730000400040 11b861c0a80001c0a800c7");
        assert_eq!(ipv4_header(&header), Ok);
        assert_eq!(ipv4_header(&[header.as_slice(), &[1, 2, 3]].concat()), Ok);
        for bit in 0..160 {
            let mut header = header.clone();
            header[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(ipv4_header(&header), Bad | Unverifiable), "bit {bit}");
        }
        for len in 0..20 {
            assert_eq!(ipv4_header(&header[..len]), Unverifiable);
        }
        let mut no_header = hex("4400001000000000 40110000 0a000001");
        let checksum = !sum_bytes(&no_header);
        no_header[10..12].copy_from_slice(&checksum.to_be_bytes());
        assert_eq!(ipv4_header(&no_header), Unverifiable, "shorter than a header can be");
        assert_eq!(ipv4_header(&[&[0x45 ^ 0x20, 0x20], &header[2..]].concat()), Unverifiable, "not IPv4, sum intact");
        let mut offloaded = header.clone();
        offloaded[10..12].fill(0);
        assert_eq!(ipv4_header(&offloaded), Absent);
    }

    #[test]
    fn ipv4_options_are_part_of_the_header() {
        let mut header = hex("4600002800000000 01020000 0a000001 e0000016 94040000");
        let checksum = !sum_bytes(&header);
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
        assert_eq!(ipv4_header(&header), Ok);
        header[23] = 1;
        assert_eq!(ipv4_header(&header), Bad);
        assert_eq!(ipv4_header(&header[..20]), Unverifiable);
    }

    #[test]
    fn a_captured_offloaded_segment_is_partial_until_it_is_finished() {
        let mut packet = Packet::from_ip(TCP_PARTIAL);
        assert_eq!(packet.status(), Partial);
        assert!(holds_pseudo_sum(packet.addresses, TCP, packet.bytes(), &packet.l4[..18]));
        assert!(!holds_pseudo_sum(packet.addresses, TCP, packet.bytes(), &packet.l4[..17]));
        assert_eq!(packet.status_of(&packet.l4[..18]), Unverifiable);
        let pending = pending_sum(packet.addresses, TCP, packet.bytes(), &packet.l4).unwrap();
        let finished = add(0x173d, pending);
        packet.l4[16..18].copy_from_slice(&finished.to_be_bytes());
        assert_eq!(packet.status(), Ok);
        assert_eq!(pending_sum(packet.addresses, TCP, packet.bytes(), &packet.l4), None);
    }

    #[test]
    fn a_large_send_may_leave_the_length_out_of_its_pseudo_header() {
        let mut packet = Packet::from_ip(TCP_PARTIAL);
        let without_length = packet.addresses.with(TCP, 0).to_be_bytes();
        packet.l4[16..18].copy_from_slice(&without_length);
        assert_eq!(packet.status(), Partial);
        packet.l4[17] ^= 1;
        assert_eq!(packet.status(), Bad);
    }

    #[test]
    fn a_tcp_field_of_zero_is_absent_unless_zero_is_right() {
        let mut packet = Packet::from_ip(TCP_ODD);
        packet.l4[16..18].fill(0);
        assert_eq!(packet.status(), Absent);
        // The urgent pointer takes what is missing to a checksum of zero.
        let missing = !add(packet.addresses.with(TCP, packet.bytes()), sum_bytes(&packet.l4));
        packet.l4[18..20].copy_from_slice(&missing.to_be_bytes());
        assert_eq!(packet.status(), Ok);
        packet.l4[16..18].fill(0xff);
        assert_eq!(packet.status(), Ok, "the other representation of zero");
    }

    #[test]
    fn a_zero_udp_field_is_absent_over_both_ip_versions_however_short_the_capture() {
        let datagram = hex("c00012b7000c0000 01020304");
        for addresses in [PseudoAddresses::v4([1; 4], [2; 4]), PseudoAddresses::v6([1; 16], [2; 16])] {
            for len in 8..=datagram.len() {
                assert_eq!(l4(addresses, UDP, 12, &datagram[..len], false), Some(Absent));
            }
            assert_eq!(l4(addresses, UDP, 12, &datagram[..7], false), Some(Unverifiable));
        }
    }

    #[test]
    fn udp_covers_what_its_own_length_says() {
        let packet = Packet::from_ip(UDP_V6);
        let longer = [packet.l4.as_slice(), &[7; 9]].concat();
        let of_ip_bytes = |l4_bytes, captured: &[u8]| l4(packet.addresses, UDP, l4_bytes, captured, false);
        assert_eq!(of_ip_bytes(25, &longer), Some(Ok));
        assert_eq!(of_ip_bytes(15, &longer), Some(Unverifiable), "longer than IP allows");
        let mut short = packet.l4.clone();
        short[4..6].copy_from_slice(&[0, 7]);
        short[6..8].copy_from_slice(&packet.addresses.with(UDP, 7).to_be_bytes());
        assert_eq!(packet.status_of(&short), Unverifiable);
        assert!(!holds_pseudo_sum(packet.addresses, UDP, 16, &short));
        let mut partial = packet.l4.clone();
        partial[6..8].copy_from_slice(&packet.addresses.with(UDP, 16).to_be_bytes());
        assert_eq!(packet.status_of(&partial), Partial);
    }

    #[test]
    fn a_tunnel_checksum_that_counts_on_the_inner_one_is_ok_and_still_finds_damage() {
        let outer = Packet::from_ip(VXLAN_PENDING);
        let inner = Packet::from_ip(&VXLAN_PENDING.replace([' ', '\n'], "")[100..]);
        assert_eq!((outer.status(), inner.status()), (Bad, Partial));
        let pending = pending_sum(inner.addresses, TCP, inner.bytes(), &inner.l4).unwrap();
        let outer_status = |captured: &[u8]| tunnel_udp(outer.addresses, outer.bytes(), captured, pending);
        assert_eq!(outer_status(&outer.l4), Ok);
        for at in 6..outer.l4.len() {
            let mut damaged = outer.l4.clone();
            damaged[at] ^= 0x10;
            assert_eq!(outer_status(&damaged), Bad, "byte {at}");
        }
    }

    #[test]
    fn lengths_above_16_bits_count_with_both_halves() {
        let mut l4_bytes = noise(70_001);
        let addresses = PseudoAddresses::v6([0x20; 16], [0x30; 16]);
        for (protocol, field) in [(TCP, 16), (UDP, 6)] {
            l4_bytes[4..6].fill(0);
            l4_bytes[field..field + 2].fill(0);
            let total = u64::from(slow_sum(&[0x20; 16])) + u64::from(slow_sum(&[0x30; 16])) + u64::from(protocol);
            let checksum = !fold(total + 1 + (70_001 - 65_536) + u64::from(slow_sum(&l4_bytes)));
            l4_bytes[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
            assert_eq!(l4(addresses, protocol, 70_001, &l4_bytes, false), Some(Ok));
        }
    }

    #[test]
    fn fragments_and_impossible_lengths_are_unverifiable_and_other_protocols_have_no_status() {
        for ip in [TCP_ODD, UDP_V6, ICMP_ECHO, ICMPV6_NS] {
            let packet = Packet::from_ip(ip);
            let fragment = l4(packet.addresses, packet.protocol, packet.bytes(), &packet.l4, true);
            assert_eq!(fragment, Some(Unverifiable));
        }
        let packet = Packet::from_ip(TCP_ODD);
        let of = |protocol, l4_bytes| l4(packet.addresses, protocol, l4_bytes, &packet.l4, false);
        assert_eq!(of(TCP, 19), Some(Unverifiable));
        assert_eq!(of(TCP, u32::MAX), Some(Unverifiable));
        assert_eq!(of(132, 33), None);
        assert_eq!(of(ICMPV6, 33), None, "ICMPv6 over IPv4");
    }

    proptest! {
        #[test]
        fn any_bytes_sum_like_the_slow_sum(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            prop_assert_eq!(sum_bytes(&bytes), slow_sum(&bytes));
        }

        #[test]
        fn any_input_gets_an_answer(
            bytes in prop::collection::vec(any::<u8>(), 0..80),
            protocol in prop_oneof![Just(ICMP), Just(IGMP), Just(TCP), Just(UDP), Just(ICMPV6), any::<u8>()],
            l4_bytes in prop_oneof![0u32..90, any::<u32>()],
            addresses in any::<([u8; 16], [u8; 16], bool)>(),
            pending in any::<u16>(),
        ) {
            let (src, dst, is_v6) = addresses;
            let addresses = PseudoAddresses { is_v6, ..PseudoAddresses::v6(src, dst) };
            let status = l4(addresses, protocol, l4_bytes, &bytes, false);
            let verified = matches!(status, Some(Ok | Bad | Partial));
            prop_assert!(!verified || bytes.len() >= l4_bytes.min(8) as usize);
            prop_assert_eq!(status == Some(Partial), pending_sum(addresses, protocol, l4_bytes, &bytes).is_some());
            tunnel_udp(addresses, l4_bytes, &bytes, pending);
            ipv4_header(&bytes);
        }
    }
}
