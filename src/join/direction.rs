//! Which point sees a flow's packets first, and how far the two clocks are apart.

use super::read::{Fate, Flow, NONE, Packet};

/// One of the two capture points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Point {
    A,
    B,
}

/// Least and most of `b_time - a_time`, raw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub min_ns: i64,
    pub max_ns: i64,
}

impl Span {
    fn add(span: &mut Option<Self>, ns: i64) {
        let span = span.get_or_insert(Self { min_ns: ns, max_ns: ns });
        (span.min_ns, span.max_ns) = (span.min_ns.min(ns), span.max_ns.max(ns));
    }

    /// The same of `a_time - b_time`.
    pub fn mirrored(self) -> Self {
        Self { min_ns: self.max_ns.saturating_neg(), max_ns: self.min_ns.saturating_neg() }
    }
}

/// How far B's clock is ahead of A's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockOffset {
    /// Half the difference of both directions' least delays: true where the least delay is the same both ways.
    pub estimate_ns: i64,
    /// No packet arrives before it was sent, so the offset lies from here …
    pub low_ns: i64,
    /// … to here (for clocks that run at one speed).
    pub high_ns: i64,
}

/// What matched packets say of the paths between the points.
#[derive(Default)]
pub(super) struct Directions {
    /// By flow.
    spans: Vec<Option<Span>>,
    /// By host pair: packets up (to the higher address) and down.
    paths: Vec<[Path; 2]>,
    pub offset: Option<ClockOffset>,
}

#[derive(Clone, Copy, Default)]
struct Path {
    span: Option<Span>,
    median_ns: Option<i64>,
    /// Packets whose TTL is lower at B, less those whose TTL is lower at A.
    ttl_votes: i64,
    first: Option<Point>,
}

impl Directions {
    /// Learns from the packets linked so far.
    pub fn new(a: &[Packet], b: &[Packet], flows: &[Flow], pairs: usize, is_same_clock: bool) -> Self {
        let mut spans = vec![None; flows.len()];
        let mut paths = vec![[Path::default(); 2]; pairs];
        let mut delays: Vec<(u32, bool, i64)> = Vec::with_capacity(a.len());
        for packet in a.iter().filter(|packet| packet.fate == Fate::Delivered && packet.peer != NONE) {
            let Some(peer) = b.get(packet.peer as usize) else { continue };
            let Some(flow) = flows.get(packet.flow as usize) else { continue };
            let ns = peer.time_ns.saturating_sub(packet.time_ns);
            Span::add(&mut spans[packet.flow as usize], ns);
            let path = &mut paths[flow.pair as usize][usize::from(flow.is_down)];
            Span::add(&mut path.span, ns);
            path.ttl_votes += (i64::from(packet.ttl) - i64::from(peer.ttl)).signum();
            delays.push((flow.pair, flow.is_down, ns));
        }
        delays.sort_unstable();
        for group in delays.chunk_by(|x, y| (x.0, x.1) == (y.0, y.1)) {
            let (pair, is_down, _) = group[0];
            paths[pair as usize][usize::from(is_down)].median_ns = Some(group[group.len() / 2].2);
        }
        let mut directions = Self { spans, paths, offset: None };
        directions.decide(is_same_clock);
        directions
    }

    /// The point that sees a flow's packets first.
    pub fn of(&self, flow: u32, flows: &[Flow]) -> Option<Point> {
        let flow = flows.get(flow as usize)?;
        self.paths.get(flow.pair as usize)?[usize::from(flow.is_down)].first
    }

    /// `b_time - a_time` of a flow's packets, else of those between its hosts that go the same way.
    pub fn span(&self, flow: u32, flows: &[Flow]) -> Option<Span> {
        let own = self.spans.get(flow as usize).copied().flatten();
        own.or_else(|| {
            let flow = flows.get(flow as usize)?;
            self.paths.get(flow.pair as usize)?[usize::from(flow.is_down)].span
        })
    }

    /// The same, else as judged by what goes the other way between the hosts.
    pub fn expected(&self, flow: u32, flows: &[Flow]) -> Option<Span> {
        self.span(flow, flows).or_else(|| {
            let flow = flows.get(flow as usize)?;
            self.paths.get(flow.pair as usize)?[usize::from(!flow.is_down)].span
        })
    }

    /// `b_time - a_time` of an ordinary packet.
    pub fn typical_ns(&self) -> Option<i64> {
        self.paths.iter().flatten().find_map(|path| path.median_ns)
    }

    fn decide(&mut self, is_same_clock: bool) {
        for pair in &mut self.paths {
            let [up, down] = pair;
            // A router between the points lowers the TTL: the point with the higher one comes first, whatever the clocks.
            for path in [&mut *up, &mut *down] {
                path.first = match path.ttl_votes {
                    1.. => Some(Point::A),
                    0 => None,
                    _ => Some(Point::B),
                };
            }
            // The clocks' offset adds to b - a both ways, the delay one way and its negative the other.
            if let (Some(one), Some(other)) = (up.median_ns, down.median_ns)
                && up.first.is_none()
                && down.first.is_none()
                && one != other
            {
                up.first = Some(if one > other { Point::A } else { Point::B });
            }
            match (up.first, down.first) {
                (Some(first), None) => down.first = Some(opposite(first)),
                (None, Some(first)) => up.first = Some(opposite(first)),
                _ => {}
            }
        }
        self.offset = self.offset();
        let offset = if is_same_clock { Some(0) } else { self.offset.map(|offset| offset.estimate_ns) };
        let Some(offset) = offset else { return };
        // Paths seen one way only, by what the others say of the clocks.
        for pair in &mut self.paths {
            for (at, other) in [(0, 1), (1, 0)] {
                let Some(span) = pair[at].span.filter(|_| pair[at].first.is_none()) else { continue };
                let first = if span.min_ns > offset {
                    Point::A
                } else if span.max_ns < offset {
                    Point::B
                } else {
                    continue;
                };
                pair[at].first = Some(first);
                pair[other].first.get_or_insert(opposite(first));
            }
        }
    }

    fn offset(&self) -> Option<ClockOffset> {
        let spans = |point| {
            let paths = self.paths.iter().flatten().filter(move |path| path.first == Some(point));
            paths.filter_map(|path| path.span)
        };
        let high_ns = spans(Point::A).map(|span| span.min_ns).min()?;
        let low_ns = spans(Point::B).map(|span| span.max_ns).max()?;
        let estimate_ns = ((i128::from(high_ns) + i128::from(low_ns)) / 2) as i64;
        Some(ClockOffset { estimate_ns, low_ns, high_ns })
    }
}

fn opposite(point: Point) -> Point {
    match point {
        Point::A => Point::B,
        Point::B => Point::A,
    }
}
