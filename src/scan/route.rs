//! Which shard a frame belongs to, and the numbers of what is new in the shards.

use super::quoted::quoted_frame;
use super::shard::{Decoded, QUOTED, Shard};
use super::streams::StreamState;
use crate::flow::{AddressBook, FlowHasher, FlowState};
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

/// Gives the flows that are new in this window their numbers, in the order of their first frames, and where a book is given,
/// their addresses theirs.
pub(super) fn number_flows(shards: &mut [Shard], next_id: &mut u64, mut book: Option<&mut AddressBook>) {
    let number_addresses = |flow: &mut FlowState| {
        if let Some(book) = &mut book {
            flow.addresses = [flow.key.low.ip, flow.key.high.ip].map(|address| book.number_of(address));
        }
    };
    number(shards, next_id, |shard| (&mut shard.flows.flows, &mut shard.flows.numbered), number_addresses);
}

/// The same for Wireshark's streams.
pub(super) fn number_streams(shards: &mut [Shard], next_id: &mut u64) {
    number(shards, next_id, |shard| (&mut shard.streams.streams, &mut shard.streams.numbered), |_| {});
}

/// `new`: what a shard has of them, and how many of these have their numbers. `also` is done with each that gets one.
fn number<T: Numbered>(
    shards: &mut [Shard],
    next_id: &mut u64,
    new: fn(&mut Shard) -> (&mut Vec<T>, &mut usize),
    mut also: impl FnMut(&mut T),
) {
    let mut fresh: Vec<(u32, usize, usize)> = Vec::new();
    for (shard_at, shard) in shards.iter_mut().enumerate() {
        let (all, numbered) = new(shard);
        let unnumbered = all.iter().enumerate().skip(*numbered);
        fresh.extend(unnumbered.map(|(at, one)| (one.first_in_window(), shard_at, at)));
        *numbered = all.len();
    }
    fresh.sort_unstable();
    for (_, shard_at, at) in fresh {
        let one = &mut new(&mut shards[shard_at]).0[at];
        one.set_id(*next_id);
        also(one);
        *next_id += 1;
    }
}

/// What has a number in the capture, by its first frame.
trait Numbered {
    fn first_in_window(&self) -> u32;
    fn set_id(&mut self, id: u64);
}

impl Numbered for FlowState {
    fn first_in_window(&self) -> u32 {
        self.first_in_window
    }

    fn set_id(&mut self, id: u64) {
        self.id = id;
    }
}

impl Numbered for StreamState {
    fn first_in_window(&self) -> u32 {
        self.first_in_window
    }

    fn set_id(&mut self, id: u64) {
        self.id = id;
    }
}
