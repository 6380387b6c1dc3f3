//! Wireshark's TCP streams of one shard: by addresses and ports alone, whatever the interface or virtual network.

use hashbrown::HashTable;

use crate::analyze::segment::{FIN, RST, Segment};
use crate::analyze::{WsFlags, WsRow, WsStream, starts_new_stream};
use crate::flow::Endpoint;

/// A stream, and the number it has in the capture.
#[derive(Default)]
pub(crate) struct StreamState {
    ws: WsStream,
    /// Given out in the order of first frames when a window is merged.
    pub id: u64,
    pub first_in_window: u32,
}

/// Two endpoints, and the stream that runs between them now.
struct Slot {
    ends: (Endpoint, Endpoint),
    hash: u64,
    stream: u32,
}

#[derive(Default)]
pub(crate) struct Streams {
    index: HashTable<u32>,
    slots: Vec<Slot>,
    pub streams: Vec<StreamState>,
    /// Streams from here on are new in this window and have no number yet.
    pub numbered: usize,
}

impl Streams {
    /// The slot of two endpoints, made where it is new. A flow asks once and keeps the answer.
    pub fn slot(&mut self, hash: u64, ends: (Endpoint, Endpoint)) -> u32 {
        let slots = &self.slots;
        if let Some(&at) = self.index.find(hash, |&at| slots[at as usize].ends == ends) {
            return at;
        }
        let at = self.slots.len() as u32;
        self.slots.push(Slot { ends, hash, stream: u32::MAX });
        let slots = &self.slots;
        self.index.insert_unique(hash, at, |&at| slots[at as usize].hash);
        at
    }

    /// Shows a segment to its stream, or to a new one. Returns the stream's index in this shard.
    pub fn on_segment(&mut self, slot: u32, at: u32, segment: &Segment<'_>) -> (u32, WsRow) {
        let stream = self.stream_of(slot, at, segment);
        let ws = &mut self.streams[stream as usize].ws;
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
        self.streams[stream as usize].ws.on_unasked_segment(segment);
        stream
    }

    /// The same for a header that is there but cannot be analysed.
    pub fn on_unanalysed(&mut self, slot: u32, at: u32, segment: &Segment<'_>) -> (u32, WsFlags) {
        let stream = self.stream_of(slot, at, segment);
        (stream, self.streams[stream as usize].ws.on_quoted_segment(segment))
    }

    fn stream_of(&mut self, slot: u32, at: u32, segment: &Segment<'_>) -> u32 {
        let slot = &mut self.slots[slot as usize];
        let current = self.streams.get(slot.stream as usize);
        let ws = match current {
            Some(state) if !starts_new_stream(&state.ws, segment) => return slot.stream,
            Some(_) => WsStream::on_reused_ports(),
            None => WsStream::default(),
        };
        slot.stream = self.streams.len() as u32;
        self.streams.push(StreamState { ws, id: 0, first_in_window: at });
        slot.stream
    }
}
