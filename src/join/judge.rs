//! What became of the packets that were seen at one point only, and which ones were overtaken.

use super::direction::{Directions, Point, Span};
use super::read::{Fate, Flow, Packet, Side};

/// A sender that counts its IP identifications steps by at most this between packets of one flow, 19 times out of 20 …
const COUNTED_IDS: i16 = 256;
/// … and a capture swaps packets that are at most so far apart.
const SWAP_IDS: i16 = 64;

/// Judges every open packet of both captures.
pub(super) fn judge(a: &mut Side, b: &mut Side, flows: &[Flow], directions: &Directions) {
    for first in [Point::A, Point::B] {
        let (up, down) = match first {
            Point::A => (&mut *a, &mut *b),
            Point::B => (&mut *b, &mut *a),
        };
        let is_here = |flow: u32| directions.of(flow, flows) == Some(first);
        let delays = |flow: u32| {
            let span = directions.expected(flow, flows)?;
            Some(if first == Point::A { span } else { span.mirrored() })
        };
        leftovers(up, down, true, is_here, delays, flows.len());
        leftovers(down, up, false, is_here, delays, flows.len());
        mark_overtaken(&up.packets, &mut down.packets, is_here, flows.len());
    }
    for packet in a.packets.iter_mut().chain(&mut b.packets) {
        if packet.fate == Fate::Open {
            packet.fate = Fate::Unmatched;
        }
    }
}

/// Whether the other capture ran when each open packet of `own` should have passed it.
fn leftovers(
    own: &mut Side,
    other: &Side,
    is_upstream: bool,
    is_here: impl Fn(u32) -> bool,
    delays: impl Fn(u32) -> Option<Span>,
    flows: usize,
) {
    // Delay of the packet before it in the same flow: queues change slowly against the distance of packets.
    let mut recent: Vec<Option<i64>> = vec![None; flows];
    let (Some(start), Some(end)) = (other.first_ns, other.last_ns) else { return };
    for packet in &mut own.packets {
        if !is_here(packet.flow) {
            continue;
        }
        if packet.fate != Fate::Open {
            if let Some(peer) = other.packets.get(packet.peer as usize)
                && packet.fate != Fate::Duplicated
            {
                recent[packet.flow as usize] = Some(peer.time_ns.saturating_sub(packet.time_ns));
            }
            continue;
        }
        let Some(span) = delays(packet.flow).map(|span| if is_upstream { span } else { span.mirrored() }) else {
            continue;
        };
        let latest = recent[packet.flow as usize].unwrap_or(span.max_ns).clamp(span.min_ns, span.max_ns);
        // From `earliest` to `latest`: when it passed the other point, by that point's clock.
        let earliest = packet.time_ns.saturating_add(span.min_ns);
        let latest = packet.time_ns.saturating_add(latest);
        packet.fate = match (earliest >= start && latest <= end, is_upstream) {
            (false, _) => Fate::Outside,
            (true, true) => Fate::Lost,
            (true, false) => Fate::NotCaptured,
        };
    }
}

/// RFC 4737: a packet is reordered if one that was sent after it arrived before it.
fn mark_overtaken(up: &[Packet], down: &mut [Packet], is_here: impl Fn(u32) -> bool, flows: usize) {
    let order = sending_order(up, flows);
    let mut latest_sent: Vec<Option<i64>> = vec![None; flows];
    for packet in down {
        let has_arrived = matches!(packet.fate, Fate::Delivered | Fate::Resegmented);
        let Some(sent) = order.get(packet.peer as usize).copied().filter(|_| has_arrived && is_here(packet.flow))
        else {
            continue;
        };
        let latest = &mut latest_sent[packet.flow as usize];
        packet.is_reordered = latest.is_some_and(|latest| sent < latest);
        *latest = Some(sent).max(*latest);
    }
}

/// The order in which the packets of each flow were sent: by IP identification where the sender counts it up, since a capture
/// on several CPUs may swap neighbours; else as captured.
fn sending_order(packets: &[Packet], flows: usize) -> Vec<i64> {
    #[derive(Clone, Copy, Default)]
    struct Counter {
        last: Option<u16>,
        steps: u32,
        small_steps: u32,
        position: i64,
        highest: i64,
    }
    let mut counters = vec![Counter::default(); flows];
    let step = |counter: &mut Counter, packet: &Packet| {
        let id = packet.ip_id as u16;
        let step = counter.last.map(|last| id.wrapping_sub(last) as i16);
        counter.last = Some(id);
        step
    };
    let is_small = |step: i16| (-SWAP_IDS..=COUNTED_IDS).contains(&step);
    let has_id = |packet: &Packet| packet.ip_id != 0 && packet.kind & Packet::FRAGMENT == 0;
    for packet in packets.iter().filter(|packet| has_id(packet)) {
        let counter = &mut counters[packet.flow as usize];
        if let Some(step) = step(counter, packet) {
            counter.steps += 1;
            counter.small_steps += u32::from(is_small(step));
        }
    }
    let is_counted: Vec<bool> =
        counters.iter().map(|c| c.steps > 0 && c.small_steps >= c.steps - c.steps / 20).collect();
    counters.fill(Counter::default());
    let places = packets.iter().enumerate();
    let order = places.map(|(at, packet)| {
        if !is_counted[packet.flow as usize] {
            return at as i64;
        }
        let counter = &mut counters[packet.flow as usize];
        if has_id(packet) {
            let step = step(counter, packet);
            // A leap says nothing of the order: the counter is taken to start anew.
            counter.position = match step.filter(|step| is_small(*step)) {
                Some(step) => counter.position + i64::from(step),
                None => counter.highest + 1,
            };
            counter.highest = counter.highest.max(counter.position);
        }
        counter.position
    });
    order.collect()
}
