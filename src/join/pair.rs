//! Finds the two sightings of each packet.

use super::direction::{Directions, Point, Span};
use super::read::{Fate, Flow, NONE, Packet};

/// Delays of copies may lie this far outside of those of the packets that have one copy only.
const SLACK_NS: i64 = 20_000_000;
/// How much later than its original a duplicate may arrive.
const DUPLICATE_NS: i64 = 1_000_000_000;

/// Places of packets that share a key, by key; those of one key in capture order.
pub(super) struct ByKey {
    order: Vec<(u64, u32)>,
}

impl ByKey {
    pub fn new(packets: &[Packet], key: impl Fn(&Packet) -> Option<u64>) -> Self {
        let places = packets.iter().enumerate();
        let mut order: Vec<_> = places.filter_map(|(at, packet)| Some((key(packet)?, at as u32))).collect();
        order.sort_unstable();
        Self { order }
    }

    /// Calls `visit` with the places in `self` and in `other` of every key that both have.
    fn both<'a>(&'a self, other: &'a Self, mut visit: impl FnMut(&'a [(u64, u32)], &'a [(u64, u32)])) {
        let mut rest = other.order.as_slice();
        for own in self.order.chunk_by(|x, y| x.0 == y.0) {
            let key = own[0].0;
            let start = rest.partition_point_near(|entry| entry.0 < key);
            rest = &rest[start..];
            let end = rest.iter().take_while(|entry| entry.0 == key).count();
            if end > 0 {
                visit(own, &rest[..end]);
                rest = &rest[end..];
            }
        }
    }

    pub fn groups(&self) -> impl Iterator<Item = &[(u64, u32)]> {
        self.order.chunk_by(|x, y| x.0 == y.0)
    }
}

trait PartitionNear<T> {
    fn partition_point_near(&self, is_before: impl Fn(&T) -> bool) -> usize;
}

impl<T> PartitionNear<T> for [T] {
    /// Like `partition_point`, for a point that is most often near the start.
    fn partition_point_near(&self, is_before: impl Fn(&T) -> bool) -> usize {
        self.iter().position(|entry| !is_before(entry)).unwrap_or(self.len())
    }
}

/// Links packets that were seen exactly once at each point: nothing can be mistaken there. Returns the groups that are left.
pub(super) fn link_unique(a: &mut [Packet], b: &mut [Packet]) -> Vec<(Vec<u32>, Vec<u32>)> {
    let (by_a, by_b) = (ByKey::new(a, |packet| Some(packet.key)), ByKey::new(b, |packet| Some(packet.key)));
    let mut groups = Vec::new();
    by_a.both(&by_b, |at_a, at_b| match (at_a, at_b) {
        ([(_, a_at)], [(_, b_at)]) => link(a, b, *a_at, *b_at),
        _ => groups.push((places(at_a), places(at_b))),
    });
    groups
}

/// Links the packets of which there are several copies, by order and delay.
pub(super) fn link_copies(
    a: &mut [Packet],
    b: &mut [Packet],
    groups: Vec<(Vec<u32>, Vec<u32>)>,
    flows: &[Flow],
    directions: &Directions,
) {
    for (at_a, at_b) in groups {
        let Some(flow) = at_a.first().and_then(|at| a.get(*at as usize)).map(|packet| packet.flow) else { continue };
        let span = directions.span(flow, flows);
        if directions.of(flow, flows) == Some(Point::B) {
            align(b, a, &at_b, &at_a, span.map(Span::mirrored));
        } else {
            align(a, b, &at_a, &at_b, span);
        }
    }
}

/// Links packets whose contents differ between the points (damaged on the way, cut shorter by one capture) but whose flow,
/// IP identification and length agree at a plausible delay.
pub(super) fn link_by_identification(a: &mut [Packet], b: &mut [Packet], flows: &[Flow], directions: &Directions) {
    let key = |packet: &Packet| {
        let is_open = packet.fate == Fate::Open && packet.ip_id != 0 && directions.span(packet.flow, flows).is_some();
        let offset = if packet.kind & Packet::FRAGMENT != 0 { u64::from(packet.seq) } else { 0 };
        // The flow is compared in full below; the rest must only be unlikely to collide.
        let length = u64::from(packet.ip_bytes ^ (offset as u32).rotate_left(16)) & 0xffff;
        is_open.then_some(u64::from(packet.flow) << 32 ^ u64::from(packet.ip_id) << 16 ^ length)
    };
    let (by_a, by_b) = (ByKey::new(a, key), ByKey::new(b, key));
    let mut groups = Vec::new();
    by_a.both(&by_b, |at_a, at_b| groups.push((places(at_a), places(at_b))));
    groups.retain(|(at_a, at_b)| {
        let first = &a[at_a[0] as usize];
        let alike = |packet: &Packet| {
            packet.flow == first.flow && packet.ip_id == first.ip_id && packet.ip_bytes == first.ip_bytes
        };
        at_a.iter().all(|at| alike(&a[*at as usize])) && at_b.iter().all(|at| alike(&b[*at as usize]))
    });
    link_copies(a, b, groups, flows, directions);
}

/// Further copies at the point downstream of a packet that arrived.
pub(super) fn mark_duplicates(packets: &mut [Packet], is_downstream: impl Fn(u32) -> bool) {
    let by_key = ByKey::new(packets, |packet| Some(packet.key));
    for group in by_key.groups().filter(|group| group.len() > 1) {
        let arrived = group
            .iter()
            .map(|(_, at)| packets[*at as usize])
            .find(|packet| matches!(packet.fate, Fate::Delivered | Fate::Resegmented) && is_downstream(packet.flow));
        let Some(first) = arrived else { continue };
        for (_, at) in group {
            let packet = &mut packets[*at as usize];
            let late_ns = packet.time_ns.saturating_sub(first.time_ns);
            if packet.fate == Fate::Open && packet.flow == first.flow && (0..=DUPLICATE_NS).contains(&late_ns) {
                packet.fate = Fate::Duplicated;
                packet.peer = first.peer;
            }
        }
    }
}

/// Links the copies of one packet: `up` sees it first. `span` are the delays of its flow.
fn align(up: &mut [Packet], down: &mut [Packet], at_up: &[u32], at_down: &[u32], span: Option<Span>) {
    let is_plausible = |up: &Packet, down: &Packet| {
        span.map_or((true, true), |span| {
            let delay = down.time_ns.saturating_sub(up.time_ns);
            let slack = SLACK_NS.max(span.max_ns.saturating_sub(span.min_ns));
            (delay >= span.min_ns.saturating_sub(slack), delay <= span.max_ns.saturating_add(slack))
        })
    };
    let mut step = |u: u32, d: u32| -> std::cmp::Ordering {
        match is_plausible(&up[u as usize], &down[d as usize]) {
            (false, _) => std::cmp::Ordering::Less,
            (_, false) => std::cmp::Ordering::Greater,
            _ => {
                link(up, down, u, d);
                std::cmp::Ordering::Equal
            }
        }
    };
    if at_down.len() >= at_up.len() {
        let (mut u, mut d) = (0, 0);
        while let (Some(&at_u), Some(&at_d)) = (at_up.get(u), at_down.get(d)) {
            // Less: it arrived before it can have been sent. Greater: too late to be this one.
            let order = step(at_u, at_d);
            u += usize::from(order.is_ge());
            d += usize::from(order.is_le());
        }
    } else {
        // Some were lost: what arrived is taken for the latest that can have become it.
        let (mut u, mut d) = (at_up.len(), at_down.len());
        while u > 0 && d > 0 {
            let order = step(at_up[u - 1], at_down[d - 1]);
            u -= usize::from(order.is_le());
            d -= usize::from(order.is_ge());
        }
    }
}

fn link(a: &mut [Packet], b: &mut [Packet], a_at: u32, b_at: u32) {
    let (Some(one), Some(other)) = (a.get_mut(a_at as usize), b.get_mut(b_at as usize)) else { return };
    (one.peer, one.fate) = (b_at, Fate::Delivered);
    (other.peer, other.fate) = (a_at, Fate::Delivered);
}

fn places(entries: &[(u64, u32)]) -> Vec<u32> {
    entries.iter().map(|(_, at)| *at).filter(|at| *at != NONE).collect()
}
