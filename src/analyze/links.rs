//! The two ends of each link, by what they tell each other with LLDP, and whether they agree on lossless priorities.

use std::collections::BTreeMap;

use super::Mark;
use crate::wire::{LldpPdu, Mac, Pfc};

/// Ports that are kept of one interface. A link has two; more are a mirror of several links.
const MOST_PORTS: usize = 64;
/// Interfaces that are followed.
const MOST_INTERFACES: usize = 1_024;

/// One port, as its last LLDPDU tells.
#[derive(Clone, Debug)]
pub(crate) struct LldpPort {
    /// System and port as people call them.
    pub name: String,
    pub src_mac: Mac,
    pub first: Mark,
    pub pdu_count: u64,
    pub pfc: Option<Pfc>,
    pub roce_v2_priority: Option<u8>,
    /// Priority of each DSCP that the port announces one for.
    dscp_priorities: [Option<u8>; 64],
}

impl LldpPort {
    pub fn dscp_priority(&self, dscp: u8) -> Option<u8> {
        self.dscp_priorities.get(usize::from(dscp)).copied().flatten()
    }
}

/// What the two ends of a link say of PFC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PfcAgreement {
    Same,
    /// They differ, and neither gives way.
    Different,
    /// They differ, and the end at this place (0 or 1) is to take over what the other says.
    Pending(usize),
    /// Only the end at this place says anything.
    OneEnd(usize),
    /// Neither does.
    Silent,
}

/// Chassis and port identifier.
type PortName = (String, String);

/// Ports heard on each interface of the capture.
#[derive(Debug, Default)]
pub(crate) struct Links {
    interfaces: BTreeMap<u32, Vec<(PortName, LldpPort)>>,
}

impl Links {
    pub fn on_pdu(&mut self, interface: u32, src_mac: Mac, pdu: &LldpPdu, mark: Mark) {
        let (Some(chassis), Some(port)) = (&pdu.chassis, &pdu.port) else { return };
        if self.interfaces.len() >= MOST_INTERFACES && !self.interfaces.contains_key(&interface) {
            return;
        }
        let ports = self.interfaces.entry(interface).or_default();
        let at = ports.iter().position(|((of, id), _)| *of == chassis.text && *id == port.text);
        if pdu.ttl_s == Some(0) {
            // The port says good-bye.
            if let Some(at) = at {
                ports.remove(at);
            }
            return;
        }
        let (first, pdu_count) = at.map_or((mark, 0), |at| (ports[at].1.first, ports[at].1.pdu_count));
        let system = pdu.system_name.as_ref().filter(|name| !name.is_empty()).unwrap_or(&chassis.text);
        let told = LldpPort {
            // A host often calls its port as it calls itself.
            name: short(&if *system == port.text { system.clone() } else { format!("{system} {}", port.text) }),
            src_mac,
            first,
            pdu_count: pdu_count + 1,
            pfc: pdu.dcbx.pfc,
            roce_v2_priority: pdu.dcbx.roce_v2_priority(),
            dscp_priorities: pdu.dcbx.dscp_priorities(),
        };
        match at {
            Some(at) => ports[at].1 = told,
            None if ports.len() < MOST_PORTS => ports.push(((chassis.text.clone(), port.text.clone()), told)),
            None => {}
        }
    }

    /// Interfaces with the ports heard there, in the order in which they were first heard.
    pub fn interfaces(&self) -> impl Iterator<Item = (u32, Vec<&LldpPort>)> {
        self.interfaces.iter().map(|(interface, ports)| (*interface, ports.iter().map(|(_, port)| port).collect()))
    }

    /// The ports heard on an interface.
    pub fn ports(&self, interface: u32) -> impl Iterator<Item = &LldpPort> {
        self.interfaces.get(&interface).into_iter().flatten().map(|(_, port)| port)
    }
}

/// IEEE 802.1Q, 38.4.2 (symmetric attributes): a willing end takes over what an unwilling one says; of two willing ends, the
/// one with the lower MAC address keeps its own.
pub(crate) fn agreement(ends: [&LldpPort; 2]) -> PfcAgreement {
    match [ends[0].pfc, ends[1].pfc] {
        [None, None] => PfcAgreement::Silent,
        [Some(_), None] => PfcAgreement::OneEnd(0),
        [None, Some(_)] => PfcAgreement::OneEnd(1),
        [Some(a), Some(b)] if a.enabled == b.enabled => PfcAgreement::Same,
        [Some(a), Some(b)] => match (a.is_willing, b.is_willing) {
            (false, false) => PfcAgreement::Different,
            (true, false) => PfcAgreement::Pending(0),
            (false, true) => PfcAgreement::Pending(1),
            (true, true) => PfcAgreement::Pending(usize::from(ends[0].src_mac.0 < ends[1].src_mac.0)),
        },
    }
}

/// A name that fits a sentence.
fn short(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::{Dcbx, LldpId};

    fn pdu(system: &str, pfc: Option<(bool, u8)>) -> LldpPdu {
        let id = |text: &str| Some(LldpId { kind: "local", text: text.to_owned() });
        let pfc = pfc.map(|(is_willing, enabled)| Pfc { is_willing, is_macsec_bypass: None, max_classes: 8, enabled });
        let mut dcbx = Dcbx::default();
        dcbx.pfc = pfc;
        LldpPdu { chassis: id(system), port: id("p1"), ttl_s: Some(120), dcbx, ..LldpPdu::default() }
    }

    fn told(pdus: &[(u8, LldpPdu)]) -> Links {
        let mut links = Links::default();
        for (frame_no, (mac, pdu)) in pdus.iter().enumerate() {
            let mark = Mark { file: 0, frame_no: frame_no as u64 + 1, time_ns: 0 };
            links.on_pdu(0, Mac([2, 0, 0, 0, 0, *mac]), pdu, mark);
        }
        links
    }

    fn of(a: Option<(bool, u8)>, b: Option<(bool, u8)>) -> PfcAgreement {
        let links = told(&[(1, pdu("a", a)), (2, pdu("b", b))]);
        let ports: Vec<_> = links.ports(0).collect();
        agreement([ports[0], ports[1]])
    }

    #[test]
    fn ends_agree_differ_or_give_way() {
        assert_eq!(of(Some((false, 8)), Some((true, 8))), PfcAgreement::Same);
        assert_eq!(of(Some((false, 8)), Some((false, 16))), PfcAgreement::Different);
        assert_eq!(of(Some((true, 8)), Some((false, 16))), PfcAgreement::Pending(0));
        assert_eq!(of(Some((false, 8)), Some((true, 0))), PfcAgreement::Pending(1));
        // Both are willing: the lower address (the first) keeps its own.
        assert_eq!(of(Some((true, 8)), Some((true, 0))), PfcAgreement::Pending(1));
        assert_eq!(of(None, Some((true, 0))), PfcAgreement::OneEnd(1));
        assert_eq!(of(None, None), PfcAgreement::Silent);
    }

    #[test]
    fn the_last_word_counts_and_a_port_that_leaves_is_gone() {
        let gone = LldpPdu { ttl_s: Some(0), ..pdu("b", None) };
        let links =
            told(&[(1, pdu("a", Some((true, 0)))), (2, pdu("b", None)), (1, pdu("a", Some((true, 8)))), (2, gone)]);
        let ports: Vec<_> = links.ports(0).collect();
        assert_eq!(ports.len(), 1);
        assert_eq!((ports[0].pdu_count, ports[0].first.frame_no, ports[0].pfc.unwrap().enabled), (2, 1, 8));
        assert_eq!(links.interfaces().count(), 1);
    }

    #[test]
    fn ports_beyond_the_limit_are_left_out() {
        let many: Vec<_> = (0..100).map(|at| (at, pdu(&at.to_string(), None))).collect();
        assert_eq!(told(&many).ports(0).count(), MOST_PORTS);
    }
}
