//! Wireshark's TCP streams of one shard: by addresses and ports alone, whatever the interface or virtual network.

use std::sync::Arc;

use hashbrown::HashTable;

use super::attic::AtticFile;
use super::slots::Slots;
use crate::analyze::segment::{FIN, RST, Segment};
use crate::analyze::{WsFlags, WsRow, WsStream, starts_new_stream};
use crate::flow::{Endpoint, FlowTable};

/// The number that a stream has in the capture.
#[derive(Clone, Copy, Default)]
pub(crate) struct StreamState {
    /// Given out in the order of first frames when a window is merged.
    pub id: u64,
    pub first_in_window: u32,
}

/// Two endpoints, and the stream that runs between them now.
struct Slot {
    /// The endpoints are those of this flow; see [`Slot::OWN_ENDS`].
    flow: u32,
    stream: u32,
    hash: u64,
}

impl Slot {
    /// Marks a slot of endpoints that are no flow's, but a quoted header's: the rest is their place in a list.
    const OWN_ENDS: u32 = 1 << 31;
}

#[derive(Default)]
pub(crate) struct Streams {
    index: HashTable<u32>,
    slots: Vec<Slot>,
    own_ends: Vec<(Endpoint, Endpoint)>,
    pub streams: Vec<StreamState>,
    /// What Wireshark would know of each of them. It never forgets a stream; a quiet one is packed.
    states: Slots<WsStream>,
    /// Streams from here on are new in this window and have no number yet.
    pub numbered: usize,
}

impl Streams {
    /// The slot of two endpoints, made where it is new. A flow asks once and keeps the answer. `flow`: the one that lies
    /// between them, if there is one.
    pub fn slot(&mut self, hash: u64, ends: (Endpoint, Endpoint), flow: Option<u32>, flows: &FlowTable) -> u32 {
        let Self { index, slots, own_ends, .. } = self;
        let is_it = |at: u32| {
            let Some(slot) = slots.get(at as usize) else { return false };
            match slot.flow & Slot::OWN_ENDS {
                0 => flows.flows.get(slot.flow as usize).is_some_and(|flow| (flow.key.low, flow.key.high) == ends),
                _ => own_ends.get((slot.flow & !Slot::OWN_ENDS) as usize) == Some(&ends),
            }
        };
        if let Some(&at) = index.find(hash, |&at| is_it(at)) {
            return at;
        }
        let at = slots.len() as u32;
        let flow = flow.filter(|flow| flow & Slot::OWN_ENDS == 0).unwrap_or_else(|| {
            own_ends.push(ends);
            Slot::OWN_ENDS | (own_ends.len() as u32 - 1)
        });
        slots.push(Slot { flow, stream: u32::MAX, hash });
        index.insert_unique(hash, at, |&at| slots[at as usize].hash);
        at
    }

    /// Shows a segment to its stream, or to a new one. Returns the stream's index in this shard.
    pub fn on_segment(&mut self, slot: u32, at: u32, segment: &Segment<'_>) -> (u32, WsRow) {
        let stream = self.stream_of(slot, at, segment);
        let ws = self.states.live(stream as usize);
        let row = ws.on_segment(segment);
        // The state is kept to the end of the capture, as Wireshark keeps it; of a closed stream little is left.
        if segment.flags & (FIN | RST) != 0 {
            ws.compact();
        }
        (stream, row)
    }

    /// The same where nobody asks what Wireshark says of the segment.
    pub fn on_unasked_segment(&mut self, slot: u32, at: u32, segment: &Segment<'_>) -> u32 {
        let stream = self.stream_of(slot, at, segment);
        self.states.live(stream as usize).on_unasked_segment(segment);
        stream
    }

    /// The same for a header that is there but cannot be analysed.
    pub fn on_unanalysed(&mut self, slot: u32, at: u32, segment: &Segment<'_>) -> (u32, WsFlags) {
        let stream = self.stream_of(slot, at, segment);
        (stream, self.states.live(stream as usize).on_quoted_segment(segment))
    }

    fn stream_of(&mut self, slot: u32, at: u32, segment: &Segment<'_>) -> u32 {
        let slot = &mut self.slots[slot as usize];
        let reuses_ports = match self.states.known(slot.stream as usize) {
            Some(state) if !starts_new_stream(state, segment) => return slot.stream,
            state => state.is_some(),
        };
        slot.stream = self.streams.len() as u32;
        self.streams.push(StreamState { id: 0, first_in_window: at });
        if reuses_ports {
            *self.states.live(slot.stream as usize) = WsStream::on_reused_ports();
        }
        slot.stream
    }

    /// See [`WsStream::touch`].
    pub fn touch(&self, stream: u32) -> u32 {
        self.states.seen_at_work(stream as usize).map_or(0, WsStream::touch)
    }

    /// See [`WsStream::touch_lists`].
    pub fn touch_lists(&self, stream: u32) -> u32 {
        self.states.seen_at_work(stream as usize).map_or(0, WsStream::touch_lists)
    }

    /// Packs the state of a stream that is quiet.
    pub fn rest(&mut self, stream: u32) {
        self.states.rest(stream as usize);
    }

    /// See [`Slots::use_file`].
    pub fn use_file(&mut self, file: &Arc<AtticFile>) {
        self.states.use_file(file);
    }

    /// See [`Slots::keep_in_memory`].
    #[cfg(test)]
    pub fn keep_in_memory(&mut self, most: usize) {
        self.states.keep_in_memory(most);
    }
}
