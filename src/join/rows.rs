//! The table `matches`.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::direction::Point;
use super::read::{Fate, NONE, Packet};
use super::{Joined, JoinedPiece};
use crate::error::Error;
use crate::tables::{MatchBuilder, MatchRow, Projection, Symbol, TableBuilder, TimeNs};

/// Rows per batch.
const BATCH_ROWS: usize = 32_768;
const BLOCK_ROWS: usize = 256;

pub(super) fn schema() -> SchemaRef {
    MatchRow::table().schema()
}

pub(super) fn direction_name(first: Option<Point>) -> &'static str {
    match first {
        Some(Point::A) => "a_to_b",
        Some(Point::B) => "b_to_a",
        None => "unknown",
    }
}

/// Builds the batches as they are asked for.
pub struct MatchBatches<'a> {
    joined: &'a Joined,
    is_unmatched_only: bool,
    projection: Projection,
    schema: SchemaRef,
    a_at: usize,
    b_at: usize,
    piece_at: usize,
    /// Next of the pieces that A did not see.
    b_piece_at: usize,
    /// B's time less this is compared with A's.
    shift_ns: i64,
}

impl<'a> MatchBatches<'a> {
    pub(super) fn new(joined: &'a Joined, is_unmatched_only: bool) -> Self {
        let definition = MatchRow::table();
        Self {
            joined,
            is_unmatched_only,
            projection: Projection::all(definition.columns.len()),
            schema: definition.schema(),
            a_at: 0,
            b_at: 0,
            piece_at: 0,
            b_piece_at: joined.pieces.partition_point(|piece| piece.a != NONE),
            shift_ns: joined.shift_ns(),
        }
    }

    /// Appends the rows of the next packet; false at the end.
    fn step(&mut self, rows: &mut Vec<MatchRow>) -> bool {
        let (a, b) = (&self.joined.a.packets, &self.joined.b.packets);
        while let Some(packet) = b.get(self.b_at) {
            // What was linked has its row with A's packet.
            let has_own_row = !matches!(packet.fate, Fate::Delivered | Fate::Resegmented);
            let next_piece = self.joined.pieces.get(self.b_piece_at).filter(|piece| piece.b as usize == self.b_at);
            if !has_own_row && next_piece.is_none() {
                self.b_at += 1;
                continue;
            }
            let is_due =
                a.get(self.a_at).is_none_or(|next| packet.time_ns.saturating_sub(self.shift_ns) <= next.time_ns);
            if !is_due {
                break;
            }
            if has_own_row {
                let peer = if packet.fate == Fate::Duplicated { packet.peer } else { NONE };
                self.push(rows, peer, self.b_at as u32, packet.fate, packet.payload_bytes);
            } else if let Some(piece) = next_piece.copied() {
                self.push_piece(rows, &piece);
                self.b_piece_at += 1;
            }
            self.b_at += 1;
            return true;
        }
        let Some(packet) = a.get(self.a_at) else { return false };
        let at = self.a_at as u32;
        self.a_at += 1;
        if packet.fate == Fate::Resegmented {
            while let Some(piece) = self.joined.pieces.get(self.piece_at).filter(|piece| piece.a == at).copied() {
                self.push_piece(rows, &piece);
                self.piece_at += 1;
            }
        } else {
            let has_peer = matches!(packet.fate, Fate::Delivered | Fate::Duplicated);
            let peer = if has_peer { packet.peer } else { NONE };
            self.push(rows, at, peer, packet.fate, packet.payload_bytes);
        }
        true
    }

    fn push_piece(&self, rows: &mut Vec<MatchRow>, piece: &JoinedPiece) {
        let known = if piece.a != NONE && piece.b != NONE {
            Fate::Resegmented
        } else if self.joined.upstream_of(piece).0.is_some() {
            Fate::Lost
        } else {
            Fate::NotCaptured
        };
        self.push(rows, piece.a, piece.b, known, piece.bytes);
    }

    fn push(&self, rows: &mut Vec<MatchRow>, a_at: u32, b_at: u32, fate: Fate, payload_bytes: u32) {
        if self.is_unmatched_only && matches!(fate, Fate::Delivered | Fate::Resegmented) {
            return;
        }
        let joined = self.joined;
        let (a, b) = (joined.a.packets.get(a_at as usize), joined.b.packets.get(b_at as usize));
        let Some(any) = a.or(b) else { return };
        let Some(flow) = joined.flows.get(any.flow as usize) else { return };
        let first = joined.directions.of(any.flow, &joined.flows);
        let raw = a.zip(b).map(|(a, b)| b.time_ns.saturating_sub(a.time_ns));
        let delay = raw.zip(first).map(|(ns, first)| if first == Point::A { ns } else { ns.saturating_neg() });
        let least = joined.min_delays.get(any.flow as usize).copied().flatten();
        let down = if first == Some(Point::A) { b } else { a };
        let has_arrived = matches!(fate, Fate::Delivered | Fate::Resegmented);
        let port = |port: u16| (port != 0 || (flow.src.port, flow.dst.port) != (0, 0)).then_some(port);
        let file = |packet: &Packet| u32::from(packet.file) + 1;
        rows.push(MatchRow {
            a_file_no: a.map(file),
            a_frame_no: a.map(|packet| packet.frame_no),
            b_file_no: b.map(file),
            b_frame_no: b.map(|packet| packet.frame_no),
            a_time: a.map(|packet| TimeNs(packet.time_ns)),
            b_time: b.map(|packet| TimeNs(packet.time_ns)),
            src_ip: flow.src.ip,
            src_port: port(flow.src.port),
            dst_ip: flow.dst.ip,
            dst_port: port(flow.dst.port),
            protocol: flow.protocol.name().map(Symbol),
            payload_bytes,
            direction: Symbol(direction_name(first)),
            status: Symbol(fate.name()),
            is_reordered: has_arrived && down.is_some_and(|packet| packet.is_reordered),
            delay_ns: delay,
            delay_above_min_ns: delay.zip(least).map(|(ns, least)| ns.saturating_sub(least)),
        });
    }
}

impl Iterator for MatchBatches<'_> {
    type Item = Result<RecordBatch, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut builder = MatchBuilder::new(&self.projection, BATCH_ROWS);
        let mut block = Vec::with_capacity(BLOCK_ROWS + 64);
        loop {
            let has_more = self.step(&mut block);
            if block.len() >= BLOCK_ROWS || !has_more {
                builder.append(&block);
                block.clear();
            }
            if !has_more || builder.rows() >= BATCH_ROWS {
                break;
            }
        }
        let rows = builder.rows();
        (rows > 0).then(|| self.projection.batch(&self.schema, rows, builder.finish()))
    }
}
