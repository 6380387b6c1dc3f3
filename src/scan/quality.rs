//! What is to be said of the capture itself, before any figure is read from it.

use std::collections::HashSet;

use super::clocks;
use super::core::Core;
use super::points;
use super::roce_findings;
use super::tally::{ChecksumTally, Marked};
use crate::analyze::{Connection, CopyKind, Side, Vantage};
use crate::capture::{CaptureFacts, Finding, FindingSubject, LinkType, Severity};
use crate::flow::FlowState;

/// Segments that a connection must have before it is called one-sided: fewer may be cut off by the capture's end.
const ONE_SIDED_PACKETS: u64 = 3;
/// What a row of `packets` or `tcp` takes in memory with all its columns; 162 to 174 bytes were measured.
const FRAME_ROW_BYTES: u64 = 170;

/// A segment that every path carries: the least MTU of IPv6. What a black hole swallows is larger.
const ALWAYS_CARRIED_BYTES: u32 = 1_280;
/// Times that a large segment must have been sent in vain.
const VAIN_TRIES: u64 = 3;

/// Everything that is to be said of the capture, the gravest first.
pub(super) fn findings(core: &Core, facts: &CaptureFacts) -> Vec<Finding> {
    let mut findings = facts.findings.clone();
    let tally = &core.tally;
    if tally.unknown_link.count > 0 {
        let link = tally.unknown_link_type.unwrap_or(LinkType::UNKNOWN);
        let finding = Finding::new("unknown_link_type", Severity::Error).value(u64::from(link.0), "link type");
        findings.push(marked(finding.detail("name", link.name()), &tally.unknown_link));
    }
    if tally.cut.count > 0 {
        let snap_length = facts.interfaces.iter().map(|interface| interface.snap_length).max().unwrap_or(0);
        let finding = Finding::new("snap_length", Severity::Info).value(u64::from(snap_length), "bytes");
        findings.push(marked(finding.detail("total", tally.frames), &tally.cut));
    }
    if tally.undecoded.count > 0 {
        let finding = Finding::new("undecoded_frames", Severity::Warning).value(tally.undecoded.count, "frames");
        findings.push(marked(finding, &tally.undecoded));
    }
    findings.extend(checksum_findings(&tally.checksums));
    let clock = &core.clock;
    if clock.backwards.count > 0 {
        let step = u64::try_from(clock.largest_step_ns).unwrap_or(0);
        let finding = Finding::new("clock_backwards", Severity::Warning).value(step, "ns");
        findings.push(marked(finding, &clock.backwards));
    }
    for (number, interface) in facts.interfaces.iter().enumerate() {
        let drops = interface.interface_drops.unwrap_or(0).saturating_add(interface.os_drops.unwrap_or(0));
        if drops > 0 {
            let mut finding = Finding::new("interface_drops", Severity::Warning)
                .value(drops, "frames")
                .detail("interface", interface.name.as_deref().unwrap_or("?"));
            finding.subject.interface = Some(number as u32);
            finding.subject.file = Some(interface.file);
            finding.count = drops;
            findings.push(finding);
        }
    }
    findings.extend(clocks::offsets(core, facts));
    findings.extend(points::finding(core, facts));
    let connections = ConnectionTally::of(core);
    findings.extend(copy_findings(core, &connections));
    findings.extend(connections.findings());
    findings.extend(roce_findings::findings(core));
    let without_flow: u64 = core.shards.iter().map(|shard| shard.frames_without_flow).sum();
    if without_flow > 0 {
        let mut finding = Finding::new("flow_limit", Severity::Error).value(without_flow, "frames");
        finding.count = without_flow;
        findings.push(finding.detail("limit", core.options.limits.flows));
    }
    let dropped = core.fragments.counts.dropped;
    if dropped > 0 {
        let mut finding = Finding::new("fragment_limit", Severity::Warning).value(dropped, "datagrams");
        finding.count = dropped;
        findings.push(finding.detail("limit", core.options.limits.fragment_bytes));
    }
    findings.extend(size_finding(tally.frames, core.options.memory_budget_bytes));
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// A table with a row for each frame that would not fit where tables are kept.
fn size_finding(frames: u64, budget: Option<u64>) -> Option<Finding> {
    let bytes = frames.saturating_mul(FRAME_ROW_BYTES);
    let budget = budget.filter(|budget| bytes > *budget)?;
    let megabytes = |bytes: u64| bytes.div_ceil(1_000_000);
    let finding = Finding::new("large_tables", Severity::Info).value(megabytes(bytes), "MB");
    Some(finding.detail("limit", megabytes(budget)).detail("frames", frames))
}

/// What verifying found: damage, and checksums that were left to the sender's network card.
fn checksum_findings(checksums: &ChecksumTally) -> Vec<Finding> {
    let mut findings = Vec::new();
    let total = checksums.verified;
    let bad = &checksums.bad;
    if bad.count > 0 {
        let finding = Finding::new("checksum_bad", Severity::Warning)
            .value(bad.count, "frames")
            .detail("total", total)
            .detail("share", percent(bad.count, total))
            .detail("ip", checksums.bad_ip)
            .detail("l4", checksums.bad_l4)
            .detail("icrc", checksums.bad_icrc);
        findings.push(marked(finding, bad));
    }
    let partial = &checksums.partial;
    if partial.count > 0 {
        let finding = Finding::new("checksum_offload", Severity::Info)
            .value(partial.count, "frames")
            .detail("total", checksums.verified_l4)
            .detail("share", percent(partial.count, checksums.verified_l4));
        findings.push(marked(finding, partial));
    }
    findings
}

/// A share with one digit after the point, near none and all with three, and never rounded to either: "0.001%" is the
/// least, "99.999%" the most.
pub(super) fn percent(part: u64, whole: u64) -> String {
    if part >= whole {
        return "100%".to_owned();
    }
    let (part, whole) = (u128::from(part), u128::from(whole));
    let thousandths = part * 100_000 / whole;
    match thousandths {
        100..=99_900 => {
            let tenths = (part * 1_000 + whole / 2) / whole;
            format!("{}.{}%", tenths / 10, tenths % 10)
        }
        _ => {
            let thousandths = if part > 0 { thousandths.max(1) } else { 0 };
            format!("{}.{:03}%", thousandths / 1_000, thousandths % 1_000)
        }
    }
}

/// Copies by how they differ. Those on the same spot that a receiver reported were made by the network.
fn copy_findings(core: &Core, connections: &ConnectionTally) -> Vec<Finding> {
    let by_network = connections.by_network;
    let mut findings = Vec::new();
    let total = core.tally.frames;
    for kind in CopyKind::ALL {
        let mut mark = core.copy_marks[kind as usize].clone();
        let (code, severity) = match kind {
            CopyKind::SameInterface => ("duplicate_frames", Severity::Warning),
            CopyKind::OtherInterface => ("duplicate_interfaces", Severity::Info),
            CopyKind::RouterHop => ("duplicate_router_hop", Severity::Warning),
            CopyKind::Tunnel => ("duplicate_tunnel", Severity::Info),
        };
        if kind == CopyKind::SameInterface {
            mark.count = mark.count.saturating_sub(by_network);
            mark.first.retain(|(file, frame_no, _)| !connections.first_by_network.contains(&(*file, *frame_no)));
        }
        if mark.count > 0 {
            let finding = Finding::new(code, severity).value(mark.count, "frames").detail("total", total);
            // Of very many copies only the first frames are known, and those may all be the network's.
            findings.push(marked(finding.variant_if(mark.first.is_empty(), "later"), &mark));
        }
    }
    if by_network > 0 {
        let mut finding = Finding::new("network_duplicates", Severity::Info).value(by_network, "frames");
        finding.count = by_network;
        findings.push(finding.detail("reported", connections.reported));
    }
    findings
}

/// A connection's place in the capture, for sorting and for naming its first frame.
type Place = (u64, u16, u64, Option<i64>);

/// What TCP connections say of the capture.
#[derive(Default)]
struct ConnectionTally {
    connections: u64,
    one_sided: Vec<Place>,
    headless: Vec<Place>,
    over_mss: Vec<Place>,
    over_mss_frames: u64,
    largest_segment: u32,
    lossy: Vec<Place>,
    missing_bytes: u64,
    missing_ranges: u64,
    /// Copies that the network made, and those of them that receivers report.
    by_network: u64,
    reported: u64,
    /// The first copies that the network made, by file and frame.
    first_by_network: HashSet<(u16, u64)>,
    /// Connections whose large segments nobody acknowledged, though the handshake passed.
    swallowed: Vec<Place>,
    largest_swallowed: u32,
    /// Connections by where they were captured.
    vantage: [u64; 4],
}

impl ConnectionTally {
    fn of(core: &Core) -> Self {
        let mut tally = Self::default();
        for shard in &core.shards {
            for (flow, state) in shard.flows.flows.iter().enumerate() {
                if let Some(connection) = shard.connections.get(flow) {
                    tally.add(state, &connection);
                }
            }
        }
        tally
    }

    fn add(&mut self, state: &FlowState, connection: &Connection) {
        self.connections += 1;
        self.vantage[connection.vantage.vantage() as usize] += 1;
        let place = (state.id, state.file, state.first_frame, state.first_time_ns);
        let [low, high] = state.packets;
        let is_one_sided = (low == 0) != (high == 0);
        if is_one_sided && low + high >= ONE_SIDED_PACKETS && !is_unanswered(connection) {
            self.one_sided.push(place);
        }
        if connection.client.is_none() {
            self.headless.push(place);
        }
        for (side, sent_bytes) in connection.sides.iter().zip(state.payload_bytes) {
            if connection.handshake_rtt_ns.is_some() && is_swallowed(side, sent_bytes) {
                self.swallowed.push(place);
                self.largest_swallowed = self.largest_swallowed.max(side.max_segment_bytes);
            }
            self.by_network += side.copies.by_network();
            self.reported += side.copies.reported();
            self.first_by_network.extend(side.copies.first_by_network().map(|copy| (copy.file, copy.frame_no)));
            if side.over_mss_count > 0 {
                self.over_mss_frames += side.over_mss_count;
                self.largest_segment = self.largest_segment.max(side.max_segment_bytes);
                let first = side.first_over_mss.unwrap_or(state.first_frame);
                self.over_mss.push((state.id, state.file, first, state.first_time_ns));
            }
            let (bytes, ranges, first) = side.holes.missing();
            // Where one direction was not captured at all, that is what is said, not how much of it is missing.
            if ranges > 0 && !is_one_sided {
                self.missing_bytes += bytes;
                self.missing_ranges += ranges;
                self.lossy.push((state.id, state.file, first.unwrap_or(state.first_frame), None));
            }
        }
    }

    fn findings(self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut add = |finding: Finding, mut places: Vec<Place>, count: Option<u64>| {
            if places.is_empty() {
                return;
            }
            places.sort_unstable();
            let first = places.iter().take(20).map(|(_, file, frame_no, time)| (*file, *frame_no, *time)).collect();
            let mark = Marked { count: count.unwrap_or(places.len() as u64), first };
            findings.push(marked(finding, &mark));
        };
        let total = self.connections;
        let of = |code, severity, value, unit| Finding::new(code, severity).value(value, unit).detail("total", total);
        // Both directions of a connection may lack bytes.
        let count = self.lossy.iter().map(|(flow, ..)| *flow).collect::<std::collections::BTreeSet<_>>().len() as u64;
        add(
            of("capture_loss", Severity::Warning, self.missing_bytes, "bytes")
                .detail("connections", count)
                .detail("ranges", self.missing_ranges),
            self.lossy,
            Some(self.missing_ranges),
        );
        let largest = u64::from(self.largest_swallowed);
        add(of("mtu_black_hole", Severity::Warning, largest, "bytes"), self.swallowed, None);
        let count = self.one_sided.len() as u64;
        add(of("one_direction", Severity::Warning, count, "connections"), self.one_sided, None);
        let largest = u64::from(self.largest_segment);
        add(of("offload", Severity::Info, largest, "bytes"), self.over_mss, Some(self.over_mss_frames));
        let count = self.headless.len() as u64;
        add(of("missing_handshake", Severity::Info, count, "connections"), self.headless, None);
        findings.extend(vantage_finding(&self.vantage));
        findings
    }
}

/// Where the capture was taken, by the connections of which it can be told.
fn vantage_finding(counts: &[u64; 4]) -> Option<Finding> {
    let of = |vantage: Vantage| counts[vantage as usize];
    let total: u64 = counts.iter().sum();
    let known = total - of(Vantage::Unknown);
    if known == 0 {
        return None;
    }
    let mut finding = Finding::new("vantage", Severity::Info).value(known, "connections").detail("total", total);
    let all = [Vantage::Client, Vantage::Server, Vantage::Middle].into_iter().find(|vantage| of(*vantage) == total);
    finding = match all {
        Some(vantage) => {
            let which = if total == 1 { "vantage.which.one" } else { "vantage.which.all" };
            finding.list("which", [(which, total)]).variant_if(true, vantage.name())
        }
        None => {
            let places = [
                ("vantage.place.client", of(Vantage::Client)),
                ("vantage.place.server", of(Vantage::Server)),
                ("vantage.place.middle", of(Vantage::Middle)),
                ("vantage.place.unknown", of(Vantage::Unknown)),
            ];
            finding.list("places", places.into_iter().filter(|(_, count)| *count > 0))
        }
    };
    finding.count = known;
    Some(finding)
}

/// Nothing but large segments, sent again and again, of which none was acknowledged.
fn is_swallowed(side: &Side, sent_bytes: u64) -> bool {
    let largest = u64::from(side.max_segment_bytes);
    side.max_segment_bytes > ALWAYS_CARRIED_BYTES
        && side.unacknowledged_bytes().is_some_and(|bytes| sent_bytes >= bytes + VAIN_TRIES * largest)
}

/// Nothing but SYNs: nobody answered, which says nothing about the capture.
fn is_unanswered(connection: &Connection) -> bool {
    connection.sides.iter().all(|side| side.first_data_ns.is_none() && side.fin_count == 0)
        && connection.sides.iter().any(|side| side.syn_count > 0)
}

pub(super) fn marked(mut finding: Finding, mark: &Marked) -> Finding {
    finding.count = mark.count;
    if let Some((file, frame_no, time_ns)) = mark.first.first() {
        finding.subject =
            FindingSubject { file: Some(*file), frame_no: Some(*frame_no), time_ns: *time_ns, interface: None };
        finding.frames = mark.first.iter().filter(|(of, _, _)| of == file).map(|(_, frame_no, _)| *frame_no).collect();
    }
    finding
}
