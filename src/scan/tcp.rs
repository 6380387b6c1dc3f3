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
use crate::wire::{Frame, Ip};

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
    /// Rows from the first on whose segments were followed.
    followed: usize,
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
    /// Where the row of each segment of this window went, in order.
    places: Vec<RowPlace>,
    /// Where the segments of the rows that were not followed yet are kept, in the order of the rows.
    kept: Vec<u32>,
    next_row: u64,
}

impl TcpHold {
    /// Adds the rows of a window. With `is_judged` every row waits for its judgement.
    pub fn add_window(&mut self, context: &Context<'_>, sink: &Sink<TcpRow>, is_judged: bool) {
        self.places.clear();
        let mut items = Vec::new();
        for (at, chunk) in context.decoded.chunks.iter().enumerate() {
            items.clear();
            let first = at * CHUNK_RECORDS;
            let records = context.decoded.window.records.get(first..).unwrap_or(&[]);
            for (offset, (record, frame)) in records.iter().zip(&chunk.frames).enumerate() {
                // A segment has a row exactly where its shard has kept it.
                let kept = context.tcp_places.get(first + offset).copied().filter(|kept| *kept != u32::MAX);
                let Some((kept, tcp)) = kept.zip(chunk.tcp_of(frame)) else { continue };
                if !sink.keeps(|| subject(record, frame)) {
                    self.places.push(RowPlace::NONE);
                    continue;
                }
                self.places.push(RowPlace(self.next_row));
                self.next_row += 1;
                self.kept.push(kept);
                items.push(Item { at: first + offset, record, frame, tcp });
            }
            self.add(context, &items, sink, is_judged);
        }
    }

    fn add(&mut self, context: &Context<'_>, items: &[Item<'_>], sink: &Sink<TcpRow>, is_judged: bool) {
        let mut rest = items;
        while !rest.is_empty() {
            if self.batches.back().is_none_or(|batch| batch.columns.rows >= BATCH_ROWS) {
                let judgements = Vec::with_capacity(if is_judged { BATCH_ROWS } else { 0 });
                self.batches.push_back(Batch { columns: sink.new_builder(), judgements, judged: 0, followed: 0 });
            }
            let Some(batch) = self.batches.back_mut() else { return };
            let (now, later) = rest.split_at((BATCH_ROWS - batch.columns.rows).min(rest.len()));
            rest = later;
            tcp_columns::append_header(context, now, &mut batch.columns);
            if is_judged {
                batch.judgements.resize(batch.columns.rows, None);
            }
        }
    }

    /// Tells every shard where its rows of this window went. Call it after [`Self::add_window`].
    pub fn place_rows(&self, shards: &mut [Shard], tcp_places: &[u32]) {
        let kept = tcp_places.iter().filter(|place| **place != u32::MAX);
        for (kept, row) in kept.zip(&self.places) {
            if let Some(shard) = shards.get_mut((kept >> 24) as usize) {
                shard.add_place(*row);
            }
        }
    }

    /// Adds what was found of the segments that were followed.
    pub fn add_found(&mut self, shards: &[Shard]) {
        let mut rest = self.kept.as_slice();
        for batch in &mut self.batches {
            let (now, later) = rest.split_at((batch.columns.rows - batch.followed).min(rest.len()));
            rest = later;
            batch.followed += now.len();
            let found = |kept: &u32| shards.get((kept >> 24) as usize)?.found(kept & 0x00ff_ffff);
            tcp_columns::append_found(now.iter().filter_map(found), &mut batch.columns);
        }
        self.kept.clear();
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
            if !is_full || batch.followed < rows || (is_judged && batch.judged() < rows) {
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
        ports: [Some(frame.src_port), Some(frame.dst_port), None, None],
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
