//! Queue pairs that a log beside the capture names.

use hashbrown::HashMap;

use super::psn::Psn;
use super::types::{RoceEndpoint, RoceSeen};
use crate::wire::Ip;

/// A first request is at most this many packets behind the number that the log gives: more were lost before the capture, or
/// the log is of another run, whose queue pairs may have had the same numbers.
const NEAR: i32 = 1_024;

/// Ends of one address that are compared, where the log does not tell which belong together.
const CANDIDATES: usize = 4_096;

#[derive(Clone, Debug, Default)]
pub(super) struct Endpoints {
    by_number: HashMap<(Ip, u32), Vec<RoceEndpoint>>,
    by_address: HashMap<Ip, Vec<RoceEndpoint>>,
    /// Both maps are empty in nearly every run.
    is_empty: bool,
}

impl Endpoints {
    pub fn new(endpoints: &[RoceEndpoint]) -> Self {
        let mut all = Self { is_empty: endpoints.is_empty(), ..Self::default() };
        for end in endpoints {
            let known = all.by_number.entry((end.ip, end.qpn)).or_default();
            // The logs of both ends name the same queue pairs.
            if !known.contains(end) {
                known.push(*end);
                all.by_address.entry(end.ip).or_default().push(*end);
            }
        }
        all
    }

    /// The end that sends a first request: it has the address of the packet, its peer is where the packet goes, and its numbers
    /// begin nearby. A queue pair's number is used again by later runs, so several may fit: the nearest is taken.
    pub fn requester_of(&self, seen: &RoceSeen<'_>) -> Option<RoceEndpoint> {
        if self.is_empty {
            return None;
        }
        let distance = |end: &RoceEndpoint| seen.psn().since(Psn::new(end.psn));
        let is_near = |end: &RoceEndpoint| (0..NEAR).contains(&distance(end));
        let mut best: Option<RoceEndpoint> = None;
        for peer in self.by_number.get(&(seen.dst_ip, seen.packet.dest_qp))? {
            let is_other_key = seen.packet.reth.zip(peer.rkey).is_some_and(|((_, rkey, _), told)| rkey != told);
            if is_other_key {
                continue;
            }
            let own = match peer.peer_qpn {
                Some(number) => self.by_number.get(&(seen.src_ip, number)),
                None => self.by_address.get(&seen.src_ip),
            };
            for end in own.into_iter().flatten().take(CANDIDATES) {
                let is_pair = end.peer_qpn.is_none_or(|number| number == peer.qpn);
                if is_pair && is_near(end) && best.as_ref().is_none_or(|best| distance(end) < distance(best)) {
                    best = Some(*end);
                }
            }
        }
        best
    }
}
