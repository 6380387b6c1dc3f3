//! Figures over all packets, and the sentences that must stand beside them.

use super::direction::{ClockOffset, Point};
use super::read::{Fate, NONE, Side};
use super::rows::direction_name;
use super::{Joined, MatchOptions};
use crate::flow::Endpoint;
use crate::words::{Lang, say};

/// Flow directions that are told apart in a summary; the others only count in the totals.
const TOLD_FLOWS: usize = 1_000;

/// What the comparison found, in figures.
#[derive(Clone, Debug)]
pub struct MatchSummary {
    pub a: PointFacts,
    pub b: PointFacts,
    /// Packets that pass A first.
    pub a_to_b: TravelCounts,
    /// Packets that pass B first.
    pub b_to_a: TravelCounts,
    /// Packets of which it is not known which point they pass first, or that no packet between their hosts helps to place.
    pub unknown: TravelCounts,
    /// Flow directions, those with the most packets first, at most a thousand.
    pub flows: Vec<FlowCounts>,
    pub flows_left_out: u64,
    /// How far B's clock is ahead of A's; `None` where packets were seen in one direction only.
    pub clock_offset: Option<ClockOffset>,
    /// The caller said that one clock stamped both captures.
    pub is_same_clock: bool,
}

/// One capture.
#[derive(Clone, Debug, Default)]
pub struct PointFacts {
    pub frames: u64,
    /// IP packets that were compared.
    pub packets: u64,
    /// Frames that are not IP, have no time, or belong to flows beyond the limit.
    pub not_compared: u64,
    /// Frames that show a packet which the same capture already holds, from another interface, hop or tunnel.
    pub copies: u64,
    /// The limit of packets ended the reading.
    pub is_cut: bool,
    pub first_time_ns: Option<i64>,
    pub last_time_ns: Option<i64>,
}

/// Packets that travel one way.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TravelCounts {
    /// Seen upstream while both captures ran: delivered, resegmented and lost ones.
    pub sent_count: u64,
    /// Of these, seen downstream as they were.
    pub delivered_count: u64,
    /// Of these, seen downstream as other segments, at least in part.
    pub resegmented_count: u64,
    /// Of these, not seen downstream at all.
    pub lost_count: u64,
    /// Payload bytes of the lost ones, and what is missing of resegmented ones.
    pub lost_bytes: u64,
    pub duplicated_count: u64,
    pub reordered_count: u64,
    pub not_captured_count: u64,
    pub outside_count: u64,
    pub unmatched_count: u64,
    /// Of the delivered ones; `None` where there are none, or the direction is not known.
    pub delay: Option<DelayFigures>,
}

/// Raw differences of the two captures' times, in nanoseconds: the clocks' offset is part of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DelayFigures {
    pub min_ns: i64,
    pub median_ns: i64,
    pub p99_ns: i64,
}

/// One direction of one flow.
#[derive(Clone, Debug)]
pub struct FlowCounts {
    pub src: Endpoint,
    pub dst: Endpoint,
    pub protocol: Option<&'static str>,
    /// `a_to_b`, `b_to_a` or `unknown`.
    pub direction: &'static str,
    pub counts: TravelCounts,
}

impl MatchSummary {
    pub(super) fn new(joined: &mut Joined, options: &MatchOptions) -> Self {
        let (flows, directions) = (&joined.flows, &joined.directions);
        let mut counts = vec![TravelCounts::default(); flows.len()];
        let mut delays: Vec<(u32, i64)> = Vec::new();
        for (point, own, other) in [(Point::A, &joined.a, &joined.b), (Point::B, &joined.b, &joined.a)] {
            for packet in &own.packets {
                let first = directions.of(packet.flow, flows);
                // Where the direction is not known, A stands in for the point upstream.
                let is_upstream = first.unwrap_or(Point::A) == point;
                let count = &mut counts[packet.flow as usize];
                match packet.fate {
                    Fate::Delivered | Fate::Resegmented if !is_upstream => {
                        count.reordered_count += u64::from(packet.is_reordered);
                    }
                    Fate::Delivered => {
                        count.delivered_count += 1;
                        let peer = other.packets.get(packet.peer as usize).filter(|_| first.is_some());
                        delays.extend(peer.map(|peer| (packet.flow, peer.time_ns.saturating_sub(packet.time_ns))));
                    }
                    Fate::Resegmented => count.resegmented_count += 1,
                    Fate::Lost => {
                        count.lost_count += 1;
                        count.lost_bytes += u64::from(packet.payload_bytes);
                    }
                    Fate::Duplicated => count.duplicated_count += 1,
                    Fate::NotCaptured => count.not_captured_count += 1,
                    Fate::Outside => count.outside_count += 1,
                    Fate::Open | Fate::Unmatched => count.unmatched_count += 1,
                }
            }
        }
        for piece in &joined.pieces {
            let (up, flow) = joined.upstream_of(piece);
            if let Some(up) = up {
                let down = if up.0 == Point::A { piece.b } else { piece.a };
                if down == NONE {
                    counts[flow as usize].lost_bytes += u64::from(piece.bytes);
                }
            }
        }
        delays.sort_unstable();
        joined.min_delays = vec![None; flows.len()];
        for group in delays.chunk_by(|x, y| x.0 == y.0) {
            let flow = group[0].0 as usize;
            counts[flow].delay = figures(group.len(), |at| group[at].1);
            joined.min_delays[flow] = Some(group[0].1);
        }
        for count in &mut counts {
            count.sent_count = count.delivered_count + count.resegmented_count + count.lost_count;
        }
        Self::totals(joined, &counts, delays, options)
    }

    fn totals(joined: &Joined, counts: &[TravelCounts], delays: Vec<(u32, i64)>, options: &MatchOptions) -> Self {
        let (flows, directions) = (&joined.flows, &joined.directions);
        let mut totals = [TravelCounts::default(), TravelCounts::default(), TravelCounts::default()];
        let place = |flow: u32| directions.of(flow, flows).map_or(2, |first| usize::from(first == Point::B));
        for (flow, count) in counts.iter().enumerate() {
            totals[place(flow as u32)].add(count);
        }
        let mut by_way: [Vec<i64>; 2] = Default::default();
        for (flow, ns) in delays {
            if let Some(way) = by_way.get_mut(place(flow)) {
                way.push(ns);
            }
        }
        for (way, total) in by_way.iter_mut().zip(&mut totals) {
            way.sort_unstable();
            total.delay = figures(way.len(), |at| way[at]);
        }
        let mut order: Vec<usize> = (0..flows.len()).collect();
        order.sort_by_key(|flow| std::cmp::Reverse(counts[*flow].packets()));
        let told = order.iter().take(TOLD_FLOWS).map(|&flow| FlowCounts {
            src: flows[flow].src,
            dst: flows[flow].dst,
            protocol: flows[flow].protocol.name(),
            direction: direction_name(directions.of(flow as u32, flows)),
            counts: counts[flow].clone(),
        });
        let [a_to_b, b_to_a, unknown] = totals;
        Self {
            a: facts(&joined.a),
            b: facts(&joined.b),
            a_to_b,
            b_to_a,
            unknown,
            flows: told.collect(),
            flows_left_out: flows.len().saturating_sub(TOLD_FLOWS) as u64,
            clock_offset: directions.offset,
            is_same_clock: options.is_same_clock,
        }
    }

    /// What a reader of the figures must know, most important first.
    pub fn sentences(&self, lang: Lang) -> Vec<String> {
        let mut said = Vec::new();
        for (point, facts) in [("A", &self.a), ("B", &self.b)] {
            if facts.is_cut {
                said.push(say(lang, "match.limit", &[("point", &point), ("packets", &facts.packets)]));
            }
        }
        let matched = |counts: &TravelCounts| counts.delivered_count + counts.resegmented_count;
        if matched(&self.a_to_b) + matched(&self.b_to_a) + matched(&self.unknown) == 0 {
            said.push(say(lang, "match.nothing", &[]));
            return said;
        }
        match &self.clock_offset {
            _ if self.is_same_clock => said.push(say(lang, "match.same_clock", &[])),
            Some(offset) => {
                let us = |ns: i64| micros(ns);
                let values: [(&str, &dyn std::fmt::Display); 3] = [
                    ("offset_us", &us(offset.estimate_ns)),
                    ("low_us", &us(offset.low_ns)),
                    ("high_us", &us(offset.high_ns)),
                ];
                said.push(say(lang, "match.offset", &values));
            }
            None if matched(&self.a_to_b) + matched(&self.b_to_a) == 0 => said.push(say(lang, "match.no_order", &[])),
            None => said.push(say(lang, "match.one_way", &[])),
        }
        if self.unknown.sent_count > 0 {
            said.push(say(lang, "match.unknown_direction", &[("packets", &self.unknown.sent_count)]));
        }
        let sum = |get: fn(&TravelCounts) -> u64| get(&self.a_to_b) + get(&self.b_to_a) + get(&self.unknown);
        let counts: [(&str, u64); 5] = [
            ("match.unmatched", sum(|counts| counts.unmatched_count)),
            ("match.outside", sum(|counts| counts.outside_count)),
            ("match.not_captured", sum(|counts| counts.not_captured_count)),
            ("match.resegmented", sum(|counts| counts.resegmented_count)),
            ("match.copies", self.a.copies + self.b.copies),
        ];
        for (key, packets) in counts.iter().filter(|(_, packets)| *packets > 0) {
            said.push(say(lang, key, &[("packets", packets)]));
        }
        said
    }
}

impl TravelCounts {
    fn packets(&self) -> u64 {
        self.sent_count + self.duplicated_count + self.not_captured_count + self.outside_count + self.unmatched_count
    }

    fn add(&mut self, other: &Self) {
        self.sent_count += other.sent_count;
        self.delivered_count += other.delivered_count;
        self.resegmented_count += other.resegmented_count;
        self.lost_count += other.lost_count;
        self.lost_bytes += other.lost_bytes;
        self.duplicated_count += other.duplicated_count;
        self.reordered_count += other.reordered_count;
        self.not_captured_count += other.not_captured_count;
        self.outside_count += other.outside_count;
        self.unmatched_count += other.unmatched_count;
    }
}

fn facts(side: &Side) -> PointFacts {
    PointFacts {
        frames: side.frames,
        packets: side.packets.len() as u64,
        not_compared: side.not_compared,
        copies: side.copies,
        is_cut: side.is_cut,
        first_time_ns: side.first_ns,
        last_time_ns: side.last_ns,
    }
}

/// Least, median and 99th percentile (nearest rank) of ascending values.
fn figures(count: usize, at: impl Fn(usize) -> i64) -> Option<DelayFigures> {
    let rank = |percent: usize| (count * percent).div_ceil(100).max(1) - 1;
    (count > 0).then(|| DelayFigures { min_ns: at(0), median_ns: at(rank(50)), p99_ns: at(rank(99)) })
}

/// Microseconds with three digits, exact.
fn micros(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    format!("{sign}{}.{:03}", ns.unsigned_abs() / 1_000, ns.unsigned_abs() % 1_000)
}
