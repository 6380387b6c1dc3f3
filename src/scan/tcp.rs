//! Rows of table `tcp`: their columns are filled when their frames are seen, and the batch is given out when the verdict on
//! each of its rows is final, in frame order.

use std::collections::VecDeque;

use super::core::Context;
use super::shard::{CHUNK_RECORDS, Shard};
use super::sink::{BATCH_ROWS, Sink};
use super::tcp_columns::{self, Item};
use crate::analyze::Judgement;
use crate::capture::Record;
use crate::tables::*;
use crate::wire::{Chunk, Frame, Ip};

/// Where a row is: its running number in the table; [`RowPlace::NONE`] for a segment that has no row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowPlace(u64);

impl RowPlace {
    pub const NONE: Self = Self(u64::MAX);
}

/// Rows of one batch: the columns that are known at once, and the judgements as they come.
struct Batch {
    columns: TcpBuilder,
    /// Empty where no verdicts are asked for.
    judgements: Vec<Option<Judgement>>,
    /// Rows from the first on that are judged.
    judged: usize,
}

impl Batch {
    /// Looks how many rows from the first on are judged by now.
    fn judged(&mut self) -> usize {
        while self.judgements.get(self.judged).is_some_and(Option::is_some) {
            self.judged += 1;
        }
        self.judged
    }
}

/// Rows that wait for their verdicts.
#[derive(Default)]
pub(crate) struct TcpHold {
    /// Rows before the first batch held: a multiple of [`BATCH_ROWS`].
    base: u64,
    batches: VecDeque<Batch>,
    /// Places of the rows of each chunk of this window: one for each segment, in order.
    places: Vec<RowPlace>,
    /// Where the places of each chunk start.
    starts: Vec<usize>,
    next_row: u64,
}

impl TcpHold {
    /// Adds the rows of a window. With `is_judged` every row waits for its judgement.
    pub fn add_window(&mut self, context: &Context<'_>, sink: &Sink<TcpRow>, is_judged: bool, is_parallel: bool) {
        self.places.clear();
        self.starts.clear();
        let mut items = Vec::new();
        for (at, chunk) in context.decoded.chunks.iter().enumerate() {
            self.starts.push(self.places.len());
            items.clear();
            let first = at * CHUNK_RECORDS;
            let records = context.decoded.window.records.get(first..).unwrap_or(&[]);
            for (offset, (record, frame)) in records.iter().zip(&chunk.frames).enumerate() {
                // A segment has a row exactly where its shard says something of it.
                let Some((out, stream)) = context.tcp_out(first + offset) else { continue };
                let Some(tcp) = chunk.tcp_of(frame) else { continue };
                if !sink.keeps(|| subject(record, frame)) {
                    self.places.push(RowPlace::NONE);
                    continue;
                }
                self.places.push(RowPlace(self.next_row));
                self.next_row += 1;
                items.push(Item { at: first + offset, record, frame, tcp, ws: &out.ws, stream });
            }
            self.add(context, chunk, &items, sink, is_judged, is_parallel);
        }
    }

    fn add(
        &mut self,
        context: &Context<'_>,
        chunk: &Chunk,
        items: &[Item<'_>],
        sink: &Sink<TcpRow>,
        is_judged: bool,
        is_parallel: bool,
    ) {
        let mut rest = items;
        while !rest.is_empty() {
            if self.batches.back().is_none_or(|batch| batch.columns.rows >= BATCH_ROWS) {
                let judgements = Vec::with_capacity(if is_judged { BATCH_ROWS } else { 0 });
                self.batches.push_back(Batch { columns: sink.new_builder(), judgements, judged: 0 });
            }
            let Some(batch) = self.batches.back_mut() else { return };
            let (now, later) = rest.split_at((BATCH_ROWS - batch.columns.rows).min(rest.len()));
            rest = later;
            tcp_columns::append(context, chunk, now, &mut batch.columns, is_parallel);
            if is_judged {
                batch.judgements.resize(batch.columns.rows, None);
            }
        }
    }

    /// Tells every shard where its rows of this window went. Call it after [`Self::add_window`].
    pub fn place_rows(&self, shards: &mut [Shard], tcp_places: &[u32]) {
        for shard in shards.iter_mut() {
            shard.window_places.clear();
            shard.window_places.resize(shard.tcp.len(), RowPlace::NONE);
        }
        for (places, start) in tcp_places.chunks(CHUNK_RECORDS).zip(&self.starts) {
            let rows = self.places.get(*start..).unwrap_or(&[]);
            for (place, row) in places.iter().filter(|place| **place != u32::MAX).zip(rows) {
                let (shard, at) = ((place >> 24) as usize, (place & 0x00ff_ffff) as usize);
                shards[shard].window_places[at] = *row;
            }
        }
        shards.iter_mut().for_each(Shard::keep_places);
    }

    /// Takes the judgements that became final in the shards.
    pub fn judge(&mut self, shards: &mut [Shard]) {
        for shard in shards {
            let mut judgements = std::mem::take(&mut shard.judgements);
            for (row, judgement) in judgements.drain(..) {
                if let Some(place) = shard.place_of(row) {
                    self.set(place, judgement);
                }
            }
            shard.judgements = judgements;
            shard.forget_places();
        }
    }

    fn set(&mut self, place: RowPlace, judgement: Judgement) {
        let Some(row) = place.0.checked_sub(self.base).filter(|_| place != RowPlace::NONE) else { return };
        let Some(batch) = self.batches.get_mut(row as usize / BATCH_ROWS) else { return };
        if let Some(slot) = batch.judgements.get_mut(row as usize % BATCH_ROWS) {
            *slot = Some(judgement);
        }
    }

    /// Gives out every full batch before the first row that still waits; at the `end` the last one too.
    pub fn release(&mut self, sink: &mut Sink<TcpRow>, is_judged: bool, is_end: bool) {
        while let Some(batch) = self.batches.front_mut() {
            let rows = batch.columns.rows;
            let is_full = rows >= BATCH_ROWS || is_end;
            if !is_full || (is_judged && batch.judged() < rows) {
                return;
            }
            let Some(mut batch) = self.batches.pop_front() else { return };
            self.base += rows as u64;
            tcp_columns::append_judgements(&batch.judgements, &mut batch.columns);
            sink.put_out(batch.columns);
        }
    }

    /// Rows from the first one on that waits.
    pub fn waiting_rows(&mut self) -> u64 {
        let mut before = self.base;
        for batch in &mut self.batches {
            let judged = batch.judged();
            before += judged as u64;
            if judged < batch.columns.rows {
                break;
            }
        }
        self.next_row.saturating_sub(before)
    }
}

fn subject(record: &Record, frame: &Frame) -> RowSubject {
    RowSubject {
        time_ns: record.time(),
        ips: [frame.src_ip, frame.dst_ip, Ip::NONE, Ip::NONE],
        ports: [Some(frame.src_port), Some(frame.dst_port)],
    }
}

impl TableRow for TcpRow {
    type Builder = TcpBuilder;
    fn definition() -> &'static TableDef {
        Self::table()
    }
    fn subject(&self) -> RowSubject {
        match *self {}
    }
}
