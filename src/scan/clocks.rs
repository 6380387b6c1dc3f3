//! Two interfaces of one capture whose clocks disagree, as after merging the captures of two hosts.
//!
//! Both taps lie on the way of one connection, so the SYN passes the client's side first and the SYN,ACK the server's: seen
//! with one clock, the server's side has its two packets within the time that the client's side waits. Where one of
//! them lies outside, the clocks differ by at least that much. Nothing is assumed of delays but that none is negative.

use std::collections::HashMap;

use super::core::Core;
use crate::capture::{CaptureFacts, Finding, Severity};
use crate::flow::Endpoint;

/// One clock may stamp packets of two interfaces out of order by less than this: queues and processors of one host.
const JITTER_NS: i64 = 1_000_000;

/// Handshakes that are compared; more prove nothing more.
const MOST_HANDSHAKES: usize = 100_000;

/// A handshake, wherever it was seen.
type Handshake = (Endpoint, Endpoint, [u32; 2]);

/// One sighting of it.
#[derive(Clone, Copy)]
struct Seen {
    interface: u32,
    file: u16,
    frame_no: u64,
    syn_ns: i64,
    syn_ack_ns: i64,
}

/// What the connections between two interfaces say: `other` is ahead of `one` by at least `low_ns`, at most `high_ns`.
struct Pair {
    one: u32,
    other: u32,
    low_ns: i64,
    high_ns: i64,
    connections: u64,
    contradictions: Vec<(u16, u64)>,
}

/// One finding for each two interfaces whose clocks contradict each other.
pub(super) fn offsets(core: &Core, facts: &CaptureFacts) -> Vec<Finding> {
    if facts.interfaces.iter().filter(|interface| interface.frames > 0).count() < 2 {
        return Vec::new();
    }
    let pairs = pairs(core);
    let mut findings = Vec::new();
    for pair in pairs.into_iter().filter(|pair| !pair.contradictions.is_empty()) {
        // What all connections allow; where clocks drift nothing does, and the nearest to no offset is said.
        let offset_ns = if pair.low_ns > 0 { pair.low_ns } else { pair.high_ns };
        let (ahead, behind) = if offset_ns > 0 { (pair.other, pair.one) } else { (pair.one, pair.other) };
        let name = |number: u32| {
            let interface = facts.interfaces.get(number as usize);
            let file = interface.and_then(|interface| facts.files.get(usize::from(interface.file)));
            let name =
                interface.and_then(|interface| interface.name.as_deref()).or(file.map(|file| file.name.as_str()));
            name.map_or_else(|| format!("#{number}"), |name| format!("{name} (#{number})"))
        };
        let mut finding = Finding::new("clock_offset", Severity::Warning)
            .value(offset_ns.unsigned_abs(), "ns")
            .detail("ahead", name(ahead))
            .detail("behind", name(behind))
            .detail("total", pair.connections);
        finding.count = pair.contradictions.len() as u64;
        finding.subject.interface = Some(ahead);
        if let Some((file, frame_no)) = pair.contradictions.iter().min() {
            finding.subject.file = Some(*file);
            finding.subject.frame_no = Some(*frame_no);
        }
        let first_file = finding.subject.file;
        let of_file = pair.contradictions.iter().filter(|(file, _)| Some(*file) == first_file);
        let mut frames: Vec<_> = of_file.map(|(_, frame_no)| *frame_no).collect();
        frames.sort_unstable();
        frames.truncate(20);
        finding.frames = frames;
        findings.push(finding);
    }
    findings
}

fn pairs(core: &Core) -> Vec<Pair> {
    let mut handshakes: HashMap<Handshake, Vec<Seen>> = HashMap::new();
    for shard in &core.shards {
        for (flow, state) in shard.flows.flows.iter().enumerate() {
            let Some(connection) = shard.connections.get(flow) else { continue };
            let Some((syn_ns, syn_ack_ns)) = connection.handshake_times() else { continue };
            let [Some(low), Some(high)] = connection.sides.each_ref().map(|side| side.isn) else { continue };
            if handshakes.len() >= MOST_HANDSHAKES {
                break;
            }
            let seen = Seen {
                interface: state.key.interface,
                file: state.file,
                frame_no: state.first_frame,
                syn_ns,
                syn_ack_ns,
            };
            handshakes.entry((state.key.low, state.key.high, [low, high])).or_default().push(seen);
        }
    }
    let mut pairs: Vec<Pair> = Vec::new();
    for mut seen in handshakes.into_values() {
        seen.sort_unstable_by_key(|seen| (seen.interface, seen.frame_no));
        for (at, one) in seen.iter().enumerate() {
            for other in seen.iter().skip(at + 1).filter(|other| other.interface != one.interface) {
                compare(&mut pairs, one, other);
            }
        }
    }
    pairs.sort_unstable_by_key(|pair| (pair.one, pair.other));
    pairs
}

fn compare(pairs: &mut Vec<Pair>, one: &Seen, other: &Seen) {
    let gap = |seen: &Seen| seen.syn_ack_ns.saturating_sub(seen.syn_ns);
    if gap(one) < 0 || gap(other) < 0 {
        return;
    }
    // The longer wait is the client's side. `other` ahead of `one` by d: other's packets happened d earlier than it says.
    let (outer, inner) = if gap(one) >= gap(other) { (one, other) } else { (other, one) };
    let least = inner.syn_ack_ns.saturating_sub(outer.syn_ack_ns);
    let most = inner.syn_ns.saturating_sub(outer.syn_ns);
    let (low_ns, high_ns) =
        if std::ptr::eq(outer, one) { (least, most) } else { (most.saturating_neg(), least.saturating_neg()) };
    let at = pairs.iter().position(|pair| (pair.one, pair.other) == (one.interface, other.interface));
    let at = at.unwrap_or_else(|| {
        let (one, other) = (one.interface, other.interface);
        let (low_ns, high_ns) = (i64::MIN, i64::MAX);
        pairs.push(Pair { one, other, low_ns, high_ns, connections: 0, contradictions: Vec::new() });
        pairs.len() - 1
    });
    let Some(pair) = pairs.get_mut(at) else { return };
    pair.low_ns = pair.low_ns.max(low_ns);
    pair.high_ns = pair.high_ns.min(high_ns);
    pair.connections += 1;
    if low_ns > JITTER_NS || high_ns < -JITTER_NS {
        pair.contradictions.push((one.file, one.frame_no));
    }
}
