//! DCBX: the TLVs of LLDP by which two ports agree on priorities. IEEE 802.1Q (OUI 00-80-C2, subtypes 9 to 12), and its
//! predecessor CEE (OUI 00-1B-21, subtype 2), where TLVs lie within one TLV.
//!
//! ```text
//!   ETS  9: willing 1b CBS 1b resv 3b max TCs 3b | TC of priorities 0 to 7, 4b each | 8 bandwidths in % | 8 algorithms
//!   ETS 10: resv 8b                              | the same: what the port recommends to its peer
//!   PFC 11: willing 1b MBC 1b resv 2b max classes 4b | bit n = priority n is lossless
//!   APP 12: resv 8b | { priority 3b resv 2b selector 3b | protocol 16b } ...
//! ```

use super::be16;
use super::lldp::{LldpProblem, first, next_tlv};

/// Application priorities that are kept of one LLDPDU; a TLV of the standard holds 168.
const MAX_APPS: usize = 256;

/// What a port announces of its priorities.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dcbx {
    /// Bit n: a TLV of the nth of [`Dcbx::DIALECTS`] is there.
    pub dialects: u8,
    pub pfc: Option<Pfc>,
    pub ets: Option<Ets>,
    pub ets_recommended: Option<Ets>,
    pub apps: Vec<AppPriority>,
    /// An application TLV came, even an empty one.
    has_apps: bool,
    /// What CEE says, taken where the standard's TLVs do not say it.
    has_ieee_apps: bool,
}

/// Priority-based flow control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pfc {
    /// The port takes over what its peer announces.
    pub is_willing: bool,
    /// MACsec bypass capability; CEE does not know it.
    pub is_macsec_bypass: Option<bool>,
    /// Classes that can be lossless at once.
    pub max_classes: u8,
    /// Bit n: priority n is lossless.
    pub enabled: u8,
}

/// Enhanced transmission selection; of CEE, priority groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ets {
    /// None in a recommendation.
    pub is_willing: Option<bool>,
    pub is_credit_based: Option<bool>,
    pub max_classes: Option<u8>,
    /// Traffic class (CEE: priority group, 15 is without limit) of each priority.
    pub classes: [u8; 8],
    /// Percent of each class.
    pub bandwidths: [u8; 8],
    /// Algorithm of each class: 0 strict priority, 1 credit-based shaper, 2 ETS, 255 the vendor's. CEE does not say.
    pub algorithms: Option<[u8; 8]>,
}

/// One entry of the application priority table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AppPriority {
    pub selector: AppSelector,
    /// EtherType, port or DSCP.
    pub protocol: u16,
    pub priority: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppSelector {
    EtherType,
    Tcp,
    Udp,
    /// A port of TCP and UDP.
    Port,
    Dscp,
    Reserved(u8),
}

impl AppSelector {
    fn of_ieee(code: u8) -> Self {
        match code {
            1 => Self::EtherType,
            2 => Self::Tcp,
            3 => Self::Udp,
            4 => Self::Port,
            5 => Self::Dscp,
            code => Self::Reserved(code),
        }
    }
}

impl std::fmt::Display for AppPriority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (protocol, priority) = (self.protocol, self.priority);
        match self.selector {
            AppSelector::EtherType => write!(f, "ethertype:0x{protocol:04x}={priority}"),
            AppSelector::Tcp => write!(f, "tcp:{protocol}={priority}"),
            AppSelector::Udp => write!(f, "udp:{protocol}={priority}"),
            AppSelector::Port => write!(f, "port:{protocol}={priority}"),
            AppSelector::Dscp => write!(f, "dscp:{protocol}={priority}"),
            AppSelector::Reserved(code) => write!(f, "selector{code}:{protocol}={priority}"),
        }
    }
}

impl Dcbx {
    pub const DIALECTS: [&str; 3] = ["ieee", "cee", "cin"];
    const IEEE: u8 = 1;
    const CEE: u8 = 2;
    const CIN: u8 = 4;

    /// Whether there is an application priority table, even an empty one.
    pub fn has_apps(&self) -> bool {
        self.has_apps
    }

    /// The priority announced for RoCEv2: that of UDP port 4791.
    pub fn roce_v2_priority(&self) -> Option<u8> {
        self.priority_of(4_791, |selector| matches!(selector, AppSelector::Udp | AppSelector::Port))
    }

    /// The priority announced for RoCEv1: that of EtherType 0x8915.
    pub fn roce_v1_priority(&self) -> Option<u8> {
        self.priority_of(0x8915, |selector| selector == AppSelector::EtherType)
    }

    /// The priority announced for each DSCP; of several the first.
    pub fn dscp_priorities(&self) -> [Option<u8>; 64] {
        let mut table = [None; 64];
        for app in self.apps.iter().filter(|app| app.selector == AppSelector::Dscp) {
            if let Some(place) = table.get_mut(usize::from(app.protocol)) {
                *place = place.or(Some(app.priority));
            }
        }
        table
    }

    fn priority_of(&self, protocol: u16, is_it: impl Fn(AppSelector) -> bool) -> Option<u8> {
        self.apps.iter().find(|app| app.protocol == protocol && is_it(app.selector)).map(|app| app.priority)
    }

    /// A TLV of IEEE 802.1 of which the OUI and subtype were read.
    pub(super) fn take_ieee(&mut self, subtype: u8, content: &[u8]) -> Result<(), LldpProblem> {
        if !(9..=12).contains(&subtype) {
            return Ok(());
        }
        // What CEE said before gives way.
        if self.dialects & Self::IEEE == 0 {
            (self.pfc, self.ets) = (None, None);
        }
        self.dialects |= Self::IEEE;
        match subtype {
            9 | 10 => {
                let fields: &[u8; 21] = content.try_into().map_err(|_| LldpProblem::Length)?;
                let is_own = subtype == 9;
                let ets = Ets {
                    is_willing: is_own.then_some(fields[0] & 0x80 != 0),
                    is_credit_based: is_own.then_some(fields[0] & 0x40 != 0),
                    // Three bits: 0 stands for 8.
                    max_classes: is_own.then_some(if fields[0] & 7 == 0 { 8 } else { fields[0] & 7 }),
                    classes: nibbles(&fields[1..5]),
                    bandwidths: std::array::from_fn(|class| fields[5 + class]),
                    algorithms: Some(std::array::from_fn(|class| fields[13 + class])),
                };
                first(if is_own { &mut self.ets } else { &mut self.ets_recommended }, ets)
            }
            11 => {
                let fields: &[u8; 2] = content.try_into().map_err(|_| LldpProblem::Length)?;
                let pfc = Pfc {
                    is_willing: fields[0] & 0x80 != 0,
                    is_macsec_bypass: Some(fields[0] & 0x40 != 0),
                    max_classes: fields[0] & 0xf,
                    enabled: fields[1],
                };
                first(&mut self.pfc, pfc)
            }
            _ => {
                let (_, entries) = content.split_first().ok_or(LldpProblem::Length)?;
                if !self.has_ieee_apps {
                    self.apps.clear();
                }
                (self.has_apps, self.has_ieee_apps) = (true, true);
                for entry in entries.chunks_exact(3) {
                    let selector = AppSelector::of_ieee(entry[0] & 7);
                    self.add(AppPriority { selector, protocol: be16(entry, 1), priority: entry[0] >> 5 });
                }
                if entries.len().is_multiple_of(3) { Ok(()) } else { Err(LldpProblem::Length) }
            }
        }
    }

    /// A TLV of the OUI of CEE: TLVs within it, each with operating version, highest version, flags and subtype first.
    pub(super) fn take_cee(&mut self, subtype: u8, content: &[u8]) -> Result<(), LldpProblem> {
        match subtype {
            // The version before CEE numbers its TLVs otherwise; that it is spoken is all that is said.
            1 => {
                self.dialects |= Self::CIN;
                return Ok(());
            }
            2 => self.dialects |= Self::CEE,
            _ => return Ok(()),
        }
        let mut rest = content;
        let mut outcome = Ok(());
        while let Some((kind, value, after)) = next_tlv(rest) {
            if kind == 0 {
                return outcome;
            }
            if let Err(problem) = self.cee_feature(kind, value) {
                outcome = outcome.and(Err(problem));
            }
            rest = after;
        }
        if rest.is_empty() { outcome } else { outcome.and(Err(LldpProblem::Length)) }
    }

    fn cee_feature(&mut self, kind: u8, value: &[u8]) -> Result<(), LldpProblem> {
        if !(2..=4).contains(&kind) {
            return Ok(());
        }
        let (head, content) = value.split_first_chunk::<4>().ok_or(LldpProblem::Length)?;
        // A feature that is not enabled, or in error, is configured and not in force.
        let is_in_force = head[2] & 0x80 != 0 && head[2] & 0x20 == 0;
        let is_willing = head[2] & 0x40 != 0;
        let has_ieee = self.dialects & Self::IEEE != 0;
        match kind {
            2 => {
                let fields: &[u8; 13] = content.try_into().map_err(|_| LldpProblem::Length)?;
                let ets = Ets {
                    is_willing: Some(is_willing),
                    is_credit_based: None,
                    max_classes: Some(fields[12]),
                    classes: nibbles(&fields[..4]),
                    bandwidths: std::array::from_fn(|group| fields[4 + group]),
                    algorithms: None,
                };
                if has_ieee || !is_in_force { Ok(()) } else { first(&mut self.ets, ets) }
            }
            3 => {
                let fields: &[u8; 2] = content.try_into().map_err(|_| LldpProblem::Length)?;
                let pfc = Pfc {
                    is_willing,
                    is_macsec_bypass: None,
                    max_classes: fields[1],
                    enabled: if is_in_force { fields[0] } else { 0 },
                };
                if has_ieee { Ok(()) } else { first(&mut self.pfc, pfc) }
            }
            _ => {
                if self.has_ieee_apps || !is_in_force {
                    return Ok(());
                }
                self.has_apps = true;
                for entry in content.chunks_exact(6) {
                    // Protocol, OUI with two bits of selector in it, bit n = priority n.
                    let selector = match entry[2] & 3 {
                        0 => AppSelector::EtherType,
                        1 => AppSelector::Port,
                        code => AppSelector::Reserved(code),
                    };
                    for priority in (0..8).filter(|priority| entry[5] >> priority & 1 == 1) {
                        self.add(AppPriority { selector, protocol: be16(entry, 0), priority });
                    }
                }
                if content.len().is_multiple_of(6) { Ok(()) } else { Err(LldpProblem::Length) }
            }
        }
    }

    fn add(&mut self, app: AppPriority) {
        if self.apps.len() < MAX_APPS {
            self.apps.push(app);
        }
    }
}

/// Eight numbers of four bits, the first in the upper half of the first byte.
fn nibbles(bytes: &[u8]) -> [u8; 8] {
    std::array::from_fn(|at| bytes.get(at / 2).map_or(0, |byte| if at % 2 == 0 { byte >> 4 } else { byte & 0xf }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::LldpPdu;

    fn tlv(kind: u8, value: &[u8]) -> Vec<u8> {
        let head = u16::from(kind) << 9 | value.len() as u16;
        [&head.to_be_bytes(), value].concat()
    }

    fn ieee(subtype: u8, content: &[u8]) -> Vec<u8> {
        tlv(127, &[&[0x00, 0x80, 0xc2, subtype], content].concat())
    }

    fn cee(features: &[u8]) -> Vec<u8> {
        tlv(127, &[&[0x00, 0x1b, 0x21, 2], features].concat())
    }

    fn parse(tlvs: &[Vec<u8>]) -> LldpPdu {
        let head = [tlv(1, &[4, 2, 0, 0, 0, 0, 7]), tlv(2, b"\x05swp1"), tlv(3, &[0, 120])].concat();
        LldpPdu::parse(&[head, tlvs.concat()].concat())
    }

    const ETS: [u8; 21] = [0x83, 0x01, 0x23, 0x00, 0x00, 10, 20, 30, 40, 0, 0, 0, 0, 2, 2, 2, 2, 0, 0, 0, 0xff];

    #[test]
    fn the_tlvs_of_the_standard_give_lossless_priorities_classes_and_applications() {
        let apps = [0, 3 << 5 | 3, 0x12, 0xb7, 4 << 5 | 1, 0x89, 0x15, 6 << 5 | 5, 0, 48];
        let pdu = parse(&[ieee(9, &ETS), ieee(10, &ETS), ieee(11, &[0xc4, 0b0000_1000]), ieee(12, &apps)]);
        assert_eq!(pdu.problem, None);
        let dcbx = pdu.dcbx;
        let pfc = Pfc { is_willing: true, is_macsec_bypass: Some(true), max_classes: 4, enabled: 8 };
        assert_eq!((dcbx.dialects, dcbx.pfc), (1, Some(pfc)));
        let ets = dcbx.ets.unwrap();
        assert_eq!((ets.is_willing, ets.is_credit_based, ets.max_classes), (Some(true), Some(false), Some(3)));
        assert_eq!((ets.classes, ets.bandwidths), ([0, 1, 2, 3, 0, 0, 0, 0], [10, 20, 30, 40, 0, 0, 0, 0]));
        assert_eq!(ets.algorithms, Some([2, 2, 2, 2, 0, 0, 0, 255]));
        assert_eq!(dcbx.ets_recommended.unwrap().is_willing, None);
        assert_eq!(
            (dcbx.roce_v2_priority(), dcbx.roce_v1_priority(), dcbx.dscp_priorities()[48]),
            (Some(3), Some(4), Some(6))
        );
        let texts: Vec<_> = dcbx.apps.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["udp:4791=3", "ethertype:0x8915=4", "dscp:48=6"]);
    }

    #[test]
    fn every_shorter_tlv_is_refused_and_none_panics() {
        for (subtype, content) in [(9, &ETS[..]), (10, &ETS), (11, &[0, 8]), (12, &[0, 0x63, 0x12, 0xb7])] {
            for length in 0..content.len() {
                let pdu = parse(&[ieee(subtype, &content[..length])]);
                // An application table without entries is one.
                let is_empty_table = subtype == 12 && length == 1;
                assert_eq!(pdu.problem, (!is_empty_table).then_some(LldpProblem::Length), "{subtype} {length}");
                assert!(pdu.dcbx.pfc.is_none() && pdu.dcbx.ets.is_none() && pdu.dcbx.apps.is_empty());
            }
        }
    }

    fn cee_features() -> Vec<u8> {
        [
            tlv(1, &[0, 0, 0, 0, 0, 1, 0, 0, 0, 1]),
            tlv(2, &[0, 0, 0x80, 0, 0x00, 0x01, 0xf0, 0x00, 60, 40, 0, 0, 0, 0, 0, 0, 8]),
            tlv(3, &[0, 0, 0xc0, 0, 0b0001_0000, 8]),
            tlv(4, &[0, 0, 0x80, 0, 0x12, 0xb7, 0x01, 0x1b, 0x21, 0b0001_0000]),
        ]
        .concat()
    }

    #[test]
    fn the_dialect_before_the_standard_is_read_and_gives_way_to_it() {
        let old = parse(&[cee(&cee_features())]);
        assert_eq!((old.problem, old.dcbx.dialects), (None, 2));
        let pfc = old.dcbx.pfc.unwrap();
        assert_eq!((pfc.is_willing, pfc.enabled, pfc.max_classes), (true, 0x10, 8));
        let ets = old.dcbx.ets.unwrap();
        assert_eq!((ets.classes, ets.bandwidths[..2].to_vec()), ([0, 0, 0, 1, 15, 0, 0, 0], vec![60, 40]));
        assert_eq!(old.dcbx.roce_v2_priority(), Some(4));
        for tlvs in [
            [cee(&cee_features()), ieee(11, &[0, 8]), ieee(12, &[0])],
            [ieee(11, &[0, 8]), ieee(12, &[0]), cee(&cee_features())],
        ] {
            let both = parse(&tlvs).dcbx;
            assert_eq!((both.dialects, both.pfc.unwrap().enabled, both.apps.len()), (3, 8, 0));
        }
        // A feature that is switched off is configured, not in force.
        let off = parse(&[cee(&tlv(3, &[0, 0, 0x40, 0, 0xff, 8]))]).dcbx.pfc.unwrap();
        assert_eq!((off.enabled, off.is_willing), (0, true));
        for length in 0..cee_features().len() {
            parse(&[cee(&cee_features()[..length])]);
        }
    }

    #[test]
    fn applications_beyond_the_limit_are_left_out() {
        let entries = [&[0_u8][..], &[0x61, 0, 1].repeat(160)].concat();
        let pdu = parse(&[ieee(12, &entries), ieee(12, &entries)]);
        assert_eq!((pdu.dcbx.apps.len(), pdu.problem), (MAX_APPS, None));
    }
}
