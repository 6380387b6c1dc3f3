//! The first stage of a window: its frames are decoded, in chunks side by side, and its fragments put together.

use super::gate::Gate;
use super::shard::CHUNK_RECORDS;
use super::tally::Tally;
use crate::capture::{Record, Window};
use crate::flow::{Arrival, Fragments};
use crate::wire::{Chunk, DecodeConfig, decode, verify};

/// Frames whose headers are asked for together before they are decoded.
const RECORDS_ASKED_FOR: usize = 16;
const CACHE_LINE: usize = 64;

pub(super) struct Decoding {
    config: DecodeConfig,
    has_checksums: bool,
    /// Room for the chunks of the largest window so far, and what was counted of each.
    chunks: Vec<Chunk>,
    tallies: Vec<Tally>,
    /// Chunks of this window.
    used: usize,
}

impl Decoding {
    pub fn new(config: DecodeConfig, has_checksums: bool) -> Self {
        Self { config, has_checksums, chunks: Vec::new(), tallies: Vec::new(), used: 0 }
    }

    pub fn decode(&mut self, window: &Window, gate: &mut Gate<'_, '_>) {
        let used = window.records.len().div_ceil(CHUNK_RECORDS);
        if self.chunks.len() < used {
            self.chunks.resize_with(used, Chunk::default);
            self.tallies.resize_with(used, Tally::default);
        }
        self.used = used;
        let (config, has_checksums) = (&self.config, self.has_checksums);
        let mut pieces: Vec<_> = self.chunks.iter_mut().zip(&mut self.tallies).take(used).collect();
        gate.each(&mut pieces, |at, (chunk, tally)| {
            let records = window.records.chunks(CHUNK_RECORDS).nth(at).unwrap_or(&[]);
            chunk.clear();
            **tally = Tally::default();
            for some in records.chunks(RECORDS_ASKED_FOR) {
                touch(window, some);
                for record in some {
                    let bytes = window.bytes(record);
                    decode(record.link, bytes, record.original_bytes, config, chunk);
                    if has_checksums {
                        verify(bytes, chunk);
                    }
                }
            }
            tally.count(records, chunk);
        });
    }

    pub fn chunks(&self) -> &[Chunk] {
        &self.chunks[..self.used]
    }

    /// Adds what was counted of the window.
    pub fn add_to(&self, sum: &mut Tally) {
        self.tallies[..self.used].iter().for_each(|tally| sum.merge(tally));
    }

    /// Fragments find each other in the order of the frames, before the frames part.
    pub fn join_fragments(&mut self, window: &Window, fragments: &mut Fragments, tally: &mut Tally) {
        let chunks = &mut self.chunks[..self.used];
        if chunks.iter().all(|chunk| chunk.fragments.is_empty()) {
            return;
        }
        for chunk in 0..chunks.len() {
            for at in 0..chunks[chunk].fragments.len() {
                let frame = chunks[chunk].fragments[at] as usize;
                let Some(record) = window.records.get(chunk * CHUNK_RECORDS + frame) else { continue };
                let arrival = Arrival {
                    place: (chunk, frame),
                    interface: record.interface,
                    time_ns: record.time(),
                    bytes: window.bytes(record),
                };
                if let Some((before, after)) = fragments.on_fragment(&arrival, chunks, &self.config) {
                    tally.recount(before, after);
                }
            }
        }
        fragments.end_window();
    }
}

/// Reads a byte of each cache line that the headers of these frames lie in. None of these reads waits for another one, as the
/// frames' own decoding would: where frames are large, each of their headers has to come from memory.
fn touch(window: &Window, records: &[Record]) {
    let sum = records.iter().fold(0, |sum, record| {
        let bytes = window.bytes(record);
        sum ^ bytes.first().unwrap_or(&0) ^ bytes.get(CACHE_LINE).unwrap_or(&0)
    });
    std::hint::black_box(sum);
}
