//! Bytes that left in other packets than they arrive in: TCP segments cut or merged by offload between the points, and IP
//! packets that were fragmented there.

use super::direction::{Directions, Point, Span};
use super::read::{Fate, Flow, NONE, Packet};

/// A retransmission is told from its original by the order of sending; this much lateness is still taken for delay.
const SLACK_NS: i64 = 1_000_000_000;
/// Earliness that two clocks or CPUs may show against the least delay.
const EARLY_NS: i64 = 1_000_000;
/// Segments that may lie over the same bytes before no more of them are looked at.
const CANDIDATES: usize = 4_096;

/// Bytes that packet `up` and packet `down` share; one of them [`NONE`] where bytes were seen at one point only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub up: u32,
    pub down: u32,
    pub bytes: u32,
}

/// A segment with its place in the stream, unwrapped.
struct Segment {
    at: u32,
    start: i64,
    end: i64,
    time_ns: i64,
    /// Bytes that no segment upstream has claimed.
    left: (i64, i64),
}

/// Links what is still open, flow by flow and fragmented packet by packet. Returns the pieces, by packets upstream and
/// downstream, with the point upstream.
pub(super) fn link_ranges(
    a: &mut [Packet],
    b: &mut [Packet],
    flows: &[Flow],
    directions: &Directions,
) -> Vec<(Point, Piece)> {
    let mut pieces = Vec::new();
    let (open_a, open_b) = (open(a, flows), open(b, flows));
    let mut rest = open_b.as_slice();
    for own in open_a.chunk_by(|x, y| x.0 == y.0) {
        let stream = own[0].0;
        rest = &rest[rest.iter().position(|entry| entry.0 >= stream).unwrap_or(rest.len())..];
        let end = rest.iter().position(|entry| entry.0 != stream).unwrap_or(rest.len());
        let other;
        (other, rest) = rest.split_at(end);
        let flow = a[own[0].1 as usize].flow;
        let Some(first) = directions.of(flow, flows).filter(|_| !other.is_empty()) else { continue };
        let is_fragment = |packets: &[Packet], places: &[(u64, u32)]| {
            places.iter().any(|(_, at)| packets[*at as usize].kind & Packet::FRAGMENT != 0)
        };
        if stream & OF_FRAGMENTS != 0 && !is_fragment(a, own) && !is_fragment(b, other) {
            continue;
        }
        let span = directions.span(flow, flows);
        match first {
            Point::A => link_stream(a, b, own, other, span, |piece| pieces.push((first, piece))),
            Point::B => link_stream(b, a, other, own, span.map(Span::mirrored), |piece| pieces.push((first, piece))),
        }
    }
    pieces
}

/// Marks the number of a stream that is the payload of one IP packet, by the hosts' pair, way and identification; other
/// streams are a TCP flow's, by its number.
const OF_FRAGMENTS: u64 = 1 << 63;

/// Open packets by the stream that they are a range of, those of one stream in capture order.
fn open(packets: &[Packet], flows: &[Flow]) -> Vec<(u64, u32)> {
    let stream = |packet: &Packet| {
        if packet.fate != Fate::Open {
            return None;
        }
        if packet.has_tcp_bytes() {
            return Some(u64::from(packet.flow));
        }
        let flow = flows.get(packet.flow as usize).filter(|_| packet.ip_id != 0 && packet.kind & Packet::TCP == 0)?;
        let way = u64::from(flow.pair) << 33 | u64::from(flow.is_down) << 32;
        Some(OF_FRAGMENTS | way | u64::from(packet.ip_id))
    };
    let places = packets.iter().enumerate();
    let mut open: Vec<_> = places.filter_map(|(at, packet)| Some((stream(packet)?, at as u32))).collect();
    open.sort_unstable();
    open
}

/// Where a packet's range of its stream starts, and its length.
fn range(packet: &Packet) -> (u32, u32) {
    match packet.kind & (Packet::TCP | Packet::FRAGMENT) {
        0 => (0, packet.ip_payload_bytes),
        _ => (packet.seq, packet.payload_bytes),
    }
}

fn link_stream(
    up: &mut [Packet],
    down: &mut [Packet],
    at_up: &[(u64, u32)],
    at_down: &[(u64, u32)],
    span: Option<Span>,
    mut found: impl FnMut(Piece),
) {
    let base = range(&up[at_up[0].1 as usize]).0;
    let sent = segments(up, at_up, base);
    let mut arrived = segments(down, at_down, base);
    let longest = arrived.iter().map(|segment| segment.end - segment.start).max().unwrap_or(0);
    arrived.sort_by_key(|segment| (segment.start, segment.at));
    let mut pieces: Vec<Piece> = Vec::new();
    // From the last one sent: what arrives is taken for the latest that can have become it, so that a retransmission keeps
    // its own bytes and the original is the one that was lost.
    for segment in sent.iter().rev() {
        let first = arrived.partition_point(|other| other.start < segment.start - longest);
        let is_near = |other: &&mut Segment| {
            other.left.0 < other.left.1
                && other.end > segment.start
                && span.is_none_or(|span| {
                    let delay = other.time_ns.saturating_sub(segment.time_ns);
                    delay >= span.min_ns.saturating_sub(EARLY_NS) && delay <= span.max_ns.saturating_add(SLACK_NS)
                })
        };
        let over = arrived[first..].iter_mut().take_while(|other| other.start < segment.end);
        let mut over: Vec<_> = over.take(CANDIDATES).filter(is_near).collect();
        over.sort_by_key(|other| std::cmp::Reverse(other.at));
        let mut missing = vec![(segment.start, segment.end)];
        let before = pieces.len();
        for other in over {
            if let Some(bytes) = claim(&mut missing, other) {
                pieces.push(Piece { up: segment.at, down: other.at, bytes });
            }
        }
        if pieces.len() > before {
            let bytes: i64 = missing.iter().map(|(from, to)| to - from).sum();
            if bytes > 0 {
                pieces.push(Piece { up: segment.at, down: NONE, bytes: bytes as u32 });
            }
        }
    }
    let is_whole = |segment: &Segment, bytes: u32| i64::from(bytes) == segment.end - segment.start;
    let (mut by_up, mut by_down) = (vec![0_u32; sent.len()], std::collections::HashMap::new());
    let place = |at: u32| at_up.partition_point(|entry| entry.1 < at);
    for piece in &pieces {
        by_up[place(piece.up)] += 1;
        *by_down.entry(piece.down).or_insert(0_u32) += 1;
    }
    for segment in &arrived {
        let bytes = segment.left.1 - segment.left.0;
        if let Some(count) = by_down.get_mut(&segment.at).filter(|_| bytes > 0) {
            pieces.push(Piece { up: NONE, down: segment.at, bytes: bytes as u32 });
            *count += 1;
        }
    }
    let mut set = |piece: &Piece, fate: Fate| {
        if let Some(packet) = up.get_mut(piece.up as usize) {
            (packet.fate, packet.peer) = (fate, if piece.down == NONE { packet.peer } else { piece.down });
        }
        if let Some(packet) = down.get_mut(piece.down as usize) {
            (packet.fate, packet.peer) = (fate, if piece.up == NONE { packet.peer } else { piece.up });
        }
    };
    for piece in pieces {
        let is_same = piece.up != NONE && piece.down != NONE && {
            let at = place(piece.up);
            by_up[at] == 1 && by_down.get(&piece.down) == Some(&1) && is_whole(&sent[at], piece.bytes)
        };
        // The same bytes in one segment at both points: only its headers were rewritten.
        set(&piece, if is_same { Fate::Delivered } else { Fate::Resegmented });
        if !is_same {
            found(piece);
        }
    }
}

/// The segments' places in the stream, counted from `base` without wrapping, in capture order.
fn segments(packets: &[Packet], places: &[(u64, u32)], base: u32) -> Vec<Segment> {
    let (mut last_seq, mut last) = (base, 0_i64);
    let place = |(_, at): &(u64, u32)| {
        let packet = &packets[*at as usize];
        let (seq, bytes) = range(packet);
        let start = last + i64::from(seq.wrapping_sub(last_seq) as i32);
        (last_seq, last) = (seq, start);
        let end = start + i64::from(bytes);
        Segment { at: *at, start, end, time_ns: packet.time_ns, left: (start, end) }
    };
    places.iter().map(place).collect()
}

/// Takes the bytes that are both missing and left in `other`; how many.
fn claim(missing: &mut Vec<(i64, i64)>, other: &mut Segment) -> Option<u32> {
    let mut taken = 0;
    let mut at = 0;
    while at < missing.len() {
        let (from, to) = missing[at];
        let (start, end) = (from.max(other.left.0), to.min(other.left.1));
        if start >= end {
            at += 1;
            continue;
        }
        taken += end - start;
        missing.remove(at);
        for part in [(end, to), (from, start)] {
            if part.0 < part.1 {
                missing.insert(at, part);
            }
        }
        // What is left of it stays one stretch: the longer side.
        let (below, above) = ((other.left.0, start), (end, other.left.1));
        other.left = if below.1 - below.0 > above.1 - above.0 { below } else { above };
    }
    (taken > 0).then_some(taken as u32)
}
