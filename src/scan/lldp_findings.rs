//! What LLDP tells of lossless priorities: whether the ends of a link agree, and whether RoCE's data is in one of them.

use std::collections::BTreeMap;

use super::core::Core;
use super::quality::marked;
use super::tally::Marked;
use crate::analyze::{Channel, LldpPort, PfcAgreement, agreement};
use crate::capture::{Finding, Severity};

/// Ports whose priorities are told; table `lldp` has all.
const MOST_PORTS: usize = 8;

pub(super) fn findings(core: &Core, data: &[&Channel]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut told = 0;
    for (interface, ports) in core.lldp.links.interfaces() {
        // More ports than two are a mirror of several links: nothing tells which belong together.
        if let [a, b] = ports[..] {
            findings.extend(of_link([a, b]).map(|finding| at(finding, &[a, b], interface)));
        }
        for port in ports {
            let Some(pfc) = port.pfc else { continue };
            if told < MOST_PORTS {
                told += 1;
                let willing = if pfc.is_willing { "lldp.willing.yes" } else { "lldp.willing.no" };
                let finding = Finding::new("lldp_priorities", Severity::Info)
                    .value(u64::from(pfc.enabled.count_ones()), "priorities")
                    .detail("port", &port.name)
                    .list("lossless", priorities(pfc.enabled))
                    .list("roce", port.roce_v2_priority.map(|priority| ("list.number", u64::from(priority))))
                    .list("willing", [(willing, 0)]);
                findings.push(at(finding, &[port], interface));
            }
            let Some(priority) = port.roce_v2_priority else { continue };
            if pfc.enabled >> priority & 1 == 0 {
                let finding = Finding::new("lldp_roce_lossy", Severity::Warning)
                    .value(u64::from(priority), "priority")
                    .detail("port", &port.name)
                    .list("lossless", priorities(pfc.enabled));
                findings.push(at(finding, &[port], interface));
            }
        }
    }
    findings.extend(lossy_data(core, data));
    findings
}

fn of_link(ends: [&LldpPort; 2]) -> Option<Finding> {
    let (code, severity, of) = match agreement(ends) {
        PfcAgreement::Same | PfcAgreement::Silent => return None,
        PfcAgreement::Different => ("lldp_pfc_mismatch", Severity::Warning, 0),
        PfcAgreement::Pending(of) => ("lldp_pfc_pending", Severity::Info, of),
        PfcAgreement::OneEnd(of) => ("lldp_pfc_one_end", Severity::Info, of),
    };
    let [one, other] = [ends[of], ends[of ^ 1]];
    let lossless = |port: &LldpPort| priorities(port.pfc.map_or(0, |pfc| pfc.enabled));
    let differing = ends.map(|end| end.pfc.map_or(0, |pfc| pfc.enabled));
    let finding = Finding::new(code, severity)
        .value(u64::from((differing[0] ^ differing[1]).count_ones()), "priorities")
        .detail("one", &one.name)
        .list("one_lossless", lossless(one))
        .detail("other", &other.name)
        .list("other_lossless", lossless(other));
    Some(finding)
}

/// Queue pairs whose priority no port on their interface announces as lossless.
fn lossy_data(core: &Core, data: &[&Channel]) -> Option<Finding> {
    // By class and announced priorities, which are the same for all but strange captures.
    let mut found: BTreeMap<(u8, u8), Vec<&Channel>> = BTreeMap::new();
    for channel in data {
        let ports: Vec<&LldpPort> =
            core.lldp.links.ports(channel.ends.interface).filter(|port| port.pfc.is_some()).collect();
        let dscp = channel.traffic_class >> 2;
        let class_at = |port: &LldpPort| channel.pcp.or_else(|| port.dscp_priority(dscp)).unwrap_or(dscp >> 3);
        let enabled = |port: &LldpPort| port.pfc.map_or(0, |pfc| pfc.enabled);
        // Where ports map the DSCP otherwise, one that protects it is enough to say nothing.
        let is_protected = ports.iter().any(|port| enabled(port) >> class_at(port) & 1 == 1);
        let mapped = ports.iter().find(|port| port.dscp_priority(dscp).is_some()).or(ports.first());
        if let Some(port) = mapped.filter(|_| !is_protected) {
            found.entry((class_at(port), enabled(port))).or_default().push(channel);
        }
    }
    let ((class, lossless), channels) = found.into_iter().max_by_key(|(_, channels)| channels.len())?;
    let mut first: Vec<_> = channels.iter().map(|channel| channel.first).collect();
    first.sort_unstable_by_key(|mark| (mark.file, mark.frame_no));
    let first = first.into_iter().take(20).map(|mark| (mark.file, mark.frame_no, Some(mark.time_ns))).collect();
    let count = channels.len() as u64;
    let finding = Finding::new("roce_not_lossless", Severity::Warning)
        .value(count, "queue pairs")
        .detail("total", data.len())
        .detail("class", class)
        .list("lossless", priorities(lossless));
    Some(marked(finding, &Marked { count, first }))
}

/// The priorities of a mask, as parts of a list.
fn priorities(mask: u8) -> Vec<(&'static str, u64)> {
    (0..8).filter(|priority| mask >> priority & 1 == 1).map(|priority| ("list.number", priority)).collect()
}

fn at(finding: Finding, ports: &[&LldpPort], interface: u32) -> Finding {
    let mut first: Vec<_> = ports.iter().map(|port| port.first).collect();
    first.sort_unstable_by_key(|mark| (mark.file, mark.frame_no));
    let first = first.into_iter().map(|mark| (mark.file, mark.frame_no, Some(mark.time_ns))).collect();
    let count = ports.iter().map(|port| port.pdu_count).sum();
    let mut finding = marked(finding, &Marked { count, first });
    finding.subject.interface = Some(interface);
    finding
}
