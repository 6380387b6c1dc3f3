//! Which shard a frame belongs to, and the numbers of what is new in the shards.

use super::quoted::quoted_frame;
use super::shard::{Decoded, QUOTED, Shard};
use crate::flow::FlowHasher;
use crate::wire::{Chunk, Frame, Layers, Protocol};

/// Shards are a fixed number, whatever the threads: nothing about the rows may depend on the machine.
pub(super) const SHARDS: usize = 64;

/// Sorts the window's frames by shard, keeping their order: a counting sort. Returns where each shard's frames start. With
/// `hasher`, an ICMP error that quotes a TCP segment is also shown to the segment's shard.
pub(super) fn route(decoded: &Decoded<'_>, order: &mut Vec<u32>, hasher: Option<&FlowHasher>) -> [usize; SHARDS + 1] {
    let shard_of = |hash: u64| (hash >> 58) as usize % SHARDS;
    // Each frame with IP once, and where it quotes a segment once more where that belongs.
    let quoted_hash = |frame: &Frame, chunk: &Chunk| {
        if !matches!(frame.protocol, Protocol::Icmp | Protocol::Icmpv6) {
            return None;
        }
        let quoted = chunk.icmp.get(frame.detail as usize)?.quoted.as_ref()?;
        let is_segment = quoted.ip_protocol == 6 && quoted.src_port.is_some();
        hasher.filter(|_| is_segment).map(|hasher| quoted_frame(quoted, frame, hasher).flow_hash)
    };
    let mut starts = [0; SHARDS + 1];
    let each = |place: &mut dyn FnMut(usize, u32)| {
        let mut at = 0;
        for chunk in decoded.chunks {
            for frame in &chunk.frames {
                if frame.layers.has(Layers::IP) {
                    place(shard_of(frame.flow_hash), at);
                    if let Some(hash) = quoted_hash(frame, chunk) {
                        place(shard_of(hash), at | QUOTED);
                    }
                }
                at += 1;
            }
        }
    };
    each(&mut |shard, _| starts[shard + 1] += 1);
    for at in 0..SHARDS {
        starts[at + 1] += starts[at];
    }
    let mut next = starts;
    order.clear();
    order.resize(starts[SHARDS], 0);
    each(&mut |shard, at| {
        order[next[shard]] = at;
        next[shard] += 1;
    });
    starts
}

/// Gives the flows that are new in this window their numbers, in the order of their first frames.
pub(super) fn number_flows(shards: &mut [Shard], next_id: &mut u64) {
    let mut fresh: Vec<(u32, usize, usize)> = Vec::new();
    for (at, shard) in shards.iter_mut().enumerate() {
        let table = &mut shard.flows;
        let new = table.numbered..table.flows.len();
        fresh.extend(new.map(|flow| (table.flows[flow].first_in_window, at, flow)));
        table.numbered = table.flows.len();
    }
    fresh.sort_unstable();
    for (_, shard, flow) in fresh {
        shards[shard].flows.flows[flow].id = *next_id;
        *next_id += 1;
    }
}

/// The same for Wireshark's streams.
pub(super) fn number_streams(shards: &mut [Shard], next_id: &mut u64) {
    let mut fresh: Vec<(u32, usize, usize)> = Vec::new();
    for (at, shard) in shards.iter_mut().enumerate() {
        let table = &mut shard.streams;
        let new = table.numbered..table.streams.len();
        fresh.extend(new.map(|stream| (table.streams[stream].first_in_window, at, stream)));
        table.numbered = table.streams.len();
    }
    fresh.sort_unstable();
    for (_, shard, stream) in fresh {
        shards[shard].streams.streams[stream].id = *next_id;
        *next_id += 1;
    }
}
