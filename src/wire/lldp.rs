//! LLDP (IEEE 802.1AB), EtherType 0x88cc: what a port tells the port at the other end of its link.
//!
//! ```text
//!   0        1        2
//!   +--------+--------+------------ … ------------+
//!   | type 7b| length 9b |        value           |   repeated; type 0 ends the list
//!   +--------+--------+------------ … ------------+
//!   type 127: 3 bytes of OUI, 1 byte of subtype, then what the organisation defines
//! ```

use std::fmt::Write;

use super::address::{Ip, Mac};
use super::dcbx::Dcbx;

/// Bytes that are read of an LLDPDU: more than any Ethernet frame holds.
const MAX_BYTES: usize = 16 << 10;

/// One LLDPDU. What is broken in it is left out, and `problem` says so.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LldpPdu {
    pub chassis: Option<LldpId>,
    pub port: Option<LldpId>,
    /// How long the neighbour shall believe this; 0 takes everything back.
    pub ttl_s: Option<u16>,
    pub port_description: Option<String>,
    pub system_name: Option<String>,
    pub system_description: Option<String>,
    /// Bit n is the nth of [`CAPABILITIES`].
    pub enabled_capabilities: Option<u16>,
    /// The first management address, where it is an IP address.
    pub management_ip: Ip,
    /// IEEE 802.1: VLAN of untagged frames.
    pub port_vlan: Option<u16>,
    /// IEEE 802.3: largest frame.
    pub max_frame_bytes: Option<u16>,
    pub dcbx: Dcbx,
    pub tlv_count: u32,
    pub problem: Option<LldpProblem>,
}

/// An identifier of a chassis or a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LldpId {
    pub kind: &'static str,
    /// As text: addresses as such, other bytes that are no text in hexadecimal.
    pub text: String,
}

/// The first thing that is wrong with an LLDPDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LldpProblem {
    /// It ends within a TLV.
    Truncated,
    /// Chassis, port and time to live do not come first, in this order.
    Order,
    /// A TLV is too short or too long for its kind; it is left out.
    Length,
    /// A TLV that may come once came again; the first counts.
    Repeated,
}

impl LldpProblem {
    pub fn name(self) -> &'static str {
        match self {
            Self::Truncated => "truncated",
            Self::Order => "order",
            Self::Length => "length",
            Self::Repeated => "repeated",
        }
    }
}

/// System capabilities, by bit.
pub const CAPABILITIES: [&str; 11] = [
    "other",
    "repeater",
    "bridge",
    "wlan_access_point",
    "router",
    "telephone",
    "docsis_cable_device",
    "station_only",
    "cvlan",
    "svlan",
    "two_port_relay",
];

const CHASSIS_KINDS: [&str; 7] = [
    "chassis_component",
    "interface_alias",
    "port_component",
    "mac_address",
    "network_address",
    "interface_name",
    "local",
];
const PORT_KINDS: [&str; 7] = [
    "interface_alias",
    "port_component",
    "mac_address",
    "network_address",
    "interface_name",
    "agent_circuit_id",
    "local",
];

pub(super) const OUI_802_1: [u8; 3] = [0x00, 0x80, 0xc2];
const OUI_802_3: [u8; 3] = [0x00, 0x12, 0x0f];
/// DCBX before the standard: CEE and CIN.
const OUI_CEE: [u8; 3] = [0x00, 0x1b, 0x21];

impl LldpPdu {
    /// Reads an LLDPDU; `bytes` follow the EtherType, padding may follow its end.
    pub fn parse(bytes: &[u8]) -> Self {
        let mut pdu = Self::default();
        let mut rest = bytes.get(..MAX_BYTES).unwrap_or(bytes);
        while let Some((kind, value, after)) = next_tlv(rest) {
            if kind == 0 {
                return pdu.checked();
            }
            pdu.tlv_count += 1;
            let is_in_order = match pdu.tlv_count {
                1..=3 => u32::from(kind) == pdu.tlv_count,
                _ => kind > 3,
            };
            if !is_in_order {
                let is_again = kind <= 3 && pdu.tlv_count > 3;
                pdu.problem(if is_again { LldpProblem::Repeated } else { LldpProblem::Order });
            }
            if let Err(problem) = pdu.take(kind, value) {
                pdu.problem(problem);
            }
            rest = after;
        }
        // A list that nothing ends is complete all the same if it ends with a TLV (IEEE 802.1AB-2016, 8.5.1).
        if !rest.is_empty() {
            pdu.problem(LldpProblem::Truncated);
        }
        pdu.checked()
    }

    fn checked(mut self) -> Self {
        if self.tlv_count < 3 {
            self.problem(LldpProblem::Truncated);
        }
        self
    }

    fn problem(&mut self, problem: LldpProblem) {
        self.problem = self.problem.or(Some(problem));
    }

    fn take(&mut self, kind: u8, value: &[u8]) -> Result<(), LldpProblem> {
        match kind {
            1 => first(&mut self.chassis, identifier(value, &CHASSIS_KINDS)?),
            2 => first(&mut self.port, identifier(value, &PORT_KINDS)?),
            3 => first(&mut self.ttl_s, be16_of(value)?),
            4 => first(&mut self.port_description, text(value)),
            5 => first(&mut self.system_name, text(value)),
            6 => first(&mut self.system_description, text(value)),
            7 => {
                let fields: &[u8; 4] = value.try_into().map_err(|_| LldpProblem::Length)?;
                first(&mut self.enabled_capabilities, u16::from_be_bytes([fields[2], fields[3]]))
            }
            8 => self.management(value),
            127 => self.organisation(value),
            _ => Ok(()),
        }
    }

    /// Length of subtype and address, subtype, address; then interface numbering and object identifier.
    fn management(&mut self, value: &[u8]) -> Result<(), LldpProblem> {
        let (length, rest) = value.split_first().ok_or(LldpProblem::Length)?;
        let address = rest.get(..usize::from(*length)).ok_or(LldpProblem::Length)?;
        // Interface subtype and number, and the length of the object identifier.
        let tail = rest.get(address.len()..).unwrap_or(&[]);
        let object_bytes = tail.get(5).ok_or(LldpProblem::Length)?;
        if tail.len() != 6 + usize::from(*object_bytes) {
            return Err(LldpProblem::Length);
        }
        if self.management_ip.is_none() {
            self.management_ip = network_address(address).unwrap_or(Ip::NONE);
        }
        Ok(())
    }

    fn organisation(&mut self, value: &[u8]) -> Result<(), LldpProblem> {
        let Some(([a, b, c, subtype], content)) = value.split_first_chunk::<4>() else {
            return Err(LldpProblem::Length);
        };
        match ([*a, *b, *c], *subtype) {
            (OUI_802_1, 1) => first(&mut self.port_vlan, be16_of(content)?),
            (OUI_802_1, subtype) => self.dcbx.take_ieee(subtype, content),
            (OUI_802_3, 4) => first(&mut self.max_frame_bytes, be16_of(content)?),
            (OUI_CEE, subtype) => self.dcbx.take_cee(subtype, content),
            _ => Ok(()),
        }
    }
}

/// Type, value and what follows of the next TLV, if it is whole.
pub(super) fn next_tlv(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let ([high, low], rest) = bytes.split_first_chunk::<2>()?;
    let length = usize::from(u16::from_be_bytes([*high, *low]) & 0x1ff);
    let (value, after) = rest.split_at_checked(length)?;
    Some((high >> 1, value, after))
}

pub(super) fn first<T>(slot: &mut Option<T>, value: T) -> Result<(), LldpProblem> {
    match slot {
        Some(_) => Err(LldpProblem::Repeated),
        None => {
            *slot = Some(value);
            Ok(())
        }
    }
}

fn be16_of(value: &[u8]) -> Result<u16, LldpProblem> {
    let fields: &[u8; 2] = value.try_into().map_err(|_| LldpProblem::Length)?;
    Ok(u16::from_be_bytes(*fields))
}

fn identifier(value: &[u8], kinds: &[&'static str; 7]) -> Result<LldpId, LldpProblem> {
    let (subtype, id) = value.split_first().ok_or(LldpProblem::Length)?;
    if id.is_empty() || id.len() > 255 {
        return Err(LldpProblem::Length);
    }
    let kind = usize::from(*subtype).checked_sub(1).and_then(|at| kinds.get(at)).copied().unwrap_or("reserved");
    let text = match kind {
        "mac_address" => <[u8; 6]>::try_from(id).ok().map(|mac| Mac(mac).to_string()),
        "network_address" => network_address(id).map(|ip| ip.to_string()),
        _ => printable(id),
    };
    Ok(LldpId { kind, text: text.unwrap_or_else(|| hex(id)) })
}

/// An address family (1 IPv4, 2 IPv6) and an address.
fn network_address(bytes: &[u8]) -> Option<Ip> {
    let (family, address) = bytes.split_first()?;
    match family {
        1 => Some(Ip::v4(address.try_into().ok()?)),
        2 => Some(Ip::v6(address.try_into().ok()?)),
        _ => None,
    }
}

fn text(value: &[u8]) -> String {
    // Some senders count the zero at the end of a C string.
    let end = value.iter().position(|byte| *byte == 0).unwrap_or(value.len());
    String::from_utf8_lossy(&value[..end]).into_owned()
}

fn printable(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?.trim_end_matches('\0');
    (!text.is_empty() && !text.chars().any(char::is_control)).then(|| text.to_owned())
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        // Writing to a string does not fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tlv(kind: u8, value: &[u8]) -> Vec<u8> {
        let head = u16::from(kind) << 9 | value.len() as u16;
        [&head.to_be_bytes(), value].concat()
    }

    fn head() -> Vec<u8> {
        [tlv(1, &[4, 2, 0, 0, 0, 0, 7]), tlv(2, b"\x05swp1"), tlv(3, &[0, 120])].concat()
    }

    fn whole() -> Vec<u8> {
        [
            head(),
            tlv(4, b"to host 1"),
            tlv(5, b"leaf1"),
            tlv(6, b"Linux\0"),
            tlv(7, &[0, 0x14, 0, 0x10]),
            tlv(8, &[5, 1, 192, 0, 2, 1, 2, 0, 0, 0, 3, 0]),
            tlv(127, &[0, 0x80, 0xc2, 1, 0, 100]),
            tlv(127, &[0, 0x12, 0x0f, 4, 0x24, 0x0c]),
            tlv(0, &[]),
        ]
        .concat()
    }

    #[test]
    fn a_pdu_says_who_and_where_it_is() {
        let pdu = LldpPdu::parse(&whole());
        assert_eq!(pdu.chassis, Some(LldpId { kind: "mac_address", text: "02:00:00:00:00:07".into() }));
        assert_eq!(pdu.port, Some(LldpId { kind: "interface_name", text: "swp1".into() }));
        assert_eq!((pdu.ttl_s, pdu.port_vlan, pdu.max_frame_bytes), (Some(120), Some(100), Some(9_228)));
        assert_eq!((pdu.system_name.as_deref(), pdu.system_description.as_deref()), (Some("leaf1"), Some("Linux")));
        assert_eq!((pdu.management_ip, pdu.enabled_capabilities), (Ip::v4([192, 0, 2, 1]), Some(0x10)));
        assert_eq!((pdu.tlv_count, pdu.problem), (10, None));
    }

    #[test]
    fn every_shorter_pdu_is_read_as_far_as_it_goes_and_said_to_be_cut_within_a_tlv() {
        let bytes = whole();
        // After each TLV from the third on the list may end.
        let mut ends = vec![];
        let mut at = 0;
        while let Some((_, value, _)) = next_tlv(&bytes[at..]) {
            at += 2 + value.len();
            ends.push(at);
        }
        for length in 0..bytes.len() {
            let pdu = LldpPdu::parse(&bytes[..length]);
            let is_whole = ends[2..].contains(&length);
            assert_eq!(pdu.problem, (!is_whole).then_some(LldpProblem::Truncated), "{length}");
        }
    }

    #[test]
    fn what_is_wrong_is_named_and_the_rest_is_read() {
        let with = |more: Vec<u8>| LldpPdu::parse(&[head(), more, tlv(5, b"x")].concat());
        for (more, problem) in [
            (tlv(7, &[0; 3]), LldpProblem::Length),
            (tlv(8, &[200, 1, 2]), LldpProblem::Length),
            (tlv(8, &[5, 1, 192, 0, 2, 1, 2, 0, 0, 0, 3, 9]), LldpProblem::Length),
            (tlv(127, &[0, 0x80]), LldpProblem::Length),
            (tlv(127, &[0, 0x12, 0x0f, 4, 1]), LldpProblem::Length),
            (tlv(3, &[0, 1]), LldpProblem::Repeated),
            (tlv(2, &[7]), LldpProblem::Repeated),
        ] {
            let pdu = with(more);
            assert_eq!((pdu.problem, pdu.system_name.as_deref()), (Some(problem), Some("x")));
        }
        let turned = [tlv(2, b"\x05swp1"), tlv(1, &[7, 0xff]), tlv(3, &[0, 0])].concat();
        let pdu = LldpPdu::parse(&turned);
        assert_eq!((pdu.problem, pdu.ttl_s), (Some(LldpProblem::Order), Some(0)));
        // No text: hexadecimal.
        assert_eq!(pdu.chassis, Some(LldpId { kind: "local", text: "ff".into() }));
        assert_eq!(LldpPdu::parse(&[]).problem, Some(LldpProblem::Truncated));
    }
}
