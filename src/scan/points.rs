//! The same packets captured at two points, as when the captures of two hosts are read as one: totals count them twice.
//!
//! A TCP connection is the same where its client and both sequence numbers of its handshake are; a queue pair where its ends and the
//! number of its first request are, in files of overlapping times: programs that fix their first number may use it again.
//! A capture cut in pieces has each of these in one piece alone.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

use super::core::Core;
use super::finish::{client_of, ends};
use super::quality::marked;
use super::tally::Marked;
use crate::analyze::{CopyKind, Fabric};
use crate::capture::{CaptureFacts, Finding, Severity};

/// Connections and queue pairs that are compared; more prove nothing more.
const MOST: usize = 100_000;

/// Where something was first seen.
#[derive(Clone, Copy)]
struct Seen {
    interface: u32,
    file: u16,
    frame_no: u64,
    time_ns: Option<i64>,
}

/// Whether two files were captured at the same time, for a while at least.
fn overlap(facts: &CaptureFacts, one: u16, other: u16) -> bool {
    let span = |file: u16| {
        let file = facts.files.get(usize::from(file))?;
        file.first_time_ns.zip(file.last_time_ns)
    };
    one == other || span(one).zip(span(other)).is_some_and(|(one, other)| one.0 <= other.1 && other.0 <= one.1)
}

/// Things by what tells them apart, with where each was first seen, and those that were seen at a second point.
struct Sightings<'a, K> {
    facts: &'a CaptureFacts,
    /// Whether two interfaces of one file count as two points.
    has_points_in_file: bool,
    /// Whether files must have been captured at the same time.
    must_overlap: bool,
    first: HashMap<K, Seen>,
    again: HashMap<K, Seen>,
    points: BTreeSet<u32>,
}

impl<'a, K: Eq + Hash> Sightings<'a, K> {
    fn new(core: &Core, facts: &'a CaptureFacts, must_overlap: bool) -> Self {
        // Copies that were found within one file are told as such.
        let has_points_in_file = core.copy_marks[CopyKind::OtherInterface as usize].count == 0;
        Self {
            facts,
            has_points_in_file,
            must_overlap,
            first: HashMap::new(),
            again: HashMap::new(),
            points: BTreeSet::new(),
        }
    }

    fn add(&mut self, key: K, seen: Seen) {
        let Some(first) = self.first.get(&key).copied() else {
            if self.first.len() < MOST {
                self.first.insert(key, seen);
            }
            return;
        };
        let file = |seen: &Seen| self.facts.interfaces.get(seen.interface as usize).map(|interface| interface.file);
        let is_other_point = first.interface != seen.interface
            && (self.has_points_in_file || file(&first) != file(&seen))
            && (!self.must_overlap || overlap(self.facts, first.file, seen.file));
        if is_other_point {
            self.points.extend([first.interface, seen.interface]);
            self.again.entry(key).or_insert(seen);
        }
    }
}

pub(super) fn finding(core: &Core, facts: &CaptureFacts) -> Option<Finding> {
    if facts.interfaces.iter().filter(|interface| interface.frames > 0).count() < 2 {
        return None;
    }
    let mut connections = Sightings::new(core, facts, false);
    for shard in &core.shards {
        for (flow, state) in shard.flows.flows.iter().enumerate() {
            let Some(connection) = shard.connections.get(flow) else { continue };
            let [Some(low), Some(high)] = connection.sides.each_ref().map(|side| side.isn) else { continue };
            let seen = Seen {
                interface: state.key.interface,
                file: state.file,
                frame_no: state.first_frame,
                time_ns: state.first_time_ns,
            };
            // The server's address may be another behind a load balancer; the client's and the numbers stay.
            let (client, _) = client_of(state, Some(&connection));
            let numbers = if client == 0 { [low, high] } else { [high, low] };
            connections.add((ends(state, client).0, numbers), seen);
        }
    }
    let mut queue_pairs = Sightings::new(core, facts, true);
    for channel in core.roce.iter().flat_map(|stage| stage.fabrics.iter().flat_map(Fabric::channels)) {
        let of = &channel.ends;
        let Some(psn) = channel.first_psn.filter(|_| of.service.is_reliable()) else { continue };
        let seen = Seen {
            interface: of.interface,
            file: channel.first.file,
            frame_no: channel.first.frame_no,
            time_ns: Some(channel.first.time_ns),
        };
        queue_pairs.add((of.requester_ip, of.responder_ip, of.responder_qp, psn), seen);
    }
    let (of_tcp, of_roce) = (connections.again.len() as u64, queue_pairs.again.len() as u64);
    let count = of_tcp + of_roce;
    if count == 0 {
        return None;
    }
    let again = connections.again.values().chain(queue_pairs.again.values());
    let mut first: Vec<_> = again.map(|seen| (seen.file, seen.frame_no, seen.time_ns)).collect();
    first.sort_unstable();
    first.truncate(20);
    let points: BTreeSet<u32> = connections.points.union(&queue_pairs.points).copied().collect();
    let parts = [("points.connections", of_tcp), ("points.queue_pairs", of_roce)];
    let finding = Finding::new("several_points", Severity::Warning)
        .value(points.len() as u64, "interfaces")
        .list("what", parts.into_iter().filter(|(_, count)| *count > 0));
    Some(marked(finding, &Marked { count, first }))
}
