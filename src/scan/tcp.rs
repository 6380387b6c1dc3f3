//! Rows of table `tcp`: built when their frames are seen, held until the verdict on each is final, given out in frame order.

use std::collections::VecDeque;

use super::core::Context;
use super::gate::Gate;
use super::rows::file_no;
use super::shard::{CHUNK_RECORDS, Shard, TcpOut};
use super::sink::Sink;
use crate::analyze::{Evidence, Judgement, WsFlags, WsRow};
use crate::capture::Record;
use crate::tables::*;
use crate::wire::{Chunk, Frame, Ip, TcpHeader, tcp_flags_text};

/// The rows of one chunk, and how many of them still wait.
struct Block {
    rows: Vec<TcpRow>,
    pending: usize,
}

/// Where a row is: its block's running number and its place in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RowPlace {
    block: u64,
    row: u16,
}

/// Rows that wait for their verdicts.
#[derive(Default)]
pub(crate) struct TcpHold {
    /// Number of the first block still held.
    base: u64,
    blocks: VecDeque<Block>,
    held_rows: u64,
    spare: Vec<Vec<TcpRow>>,
}

impl TcpHold {
    /// Builds the rows of a window. With `is_judged` every row waits for its judgement.
    pub fn add_window(&mut self, context: &Context<'_>, is_judged: bool, gate: &mut Gate<'_, '_>) {
        let chunks = context.decoded.chunks;
        let mut built: Vec<Vec<TcpRow>> = (0..chunks.len()).map(|_| self.spare.pop().unwrap_or_default()).collect();
        gate.each(&mut built, |at, rows| build_rows(context, at, rows));
        for rows in built {
            self.held_rows += rows.len() as u64;
            let pending = if is_judged { rows.len() } else { 0 };
            self.blocks.push_back(Block { rows, pending });
        }
    }

    /// Tells every shard where its rows of this window went. Call it after [`Self::add_window`].
    pub fn place_rows(&self, shards: &mut [Shard], tcp_places: &[u32], chunks: usize) {
        let first_block = self.base + (self.blocks.len() - chunks) as u64;
        for shard in shards.iter_mut() {
            shard.window_places.clear();
            shard.window_places.resize(shard.tcp.len(), RowPlace { block: 0, row: 0 });
        }
        for (chunk, places) in tcp_places.chunks(CHUNK_RECORDS).enumerate() {
            for (row, place) in places.iter().filter(|place| **place != u32::MAX).enumerate() {
                let (shard, at) = ((place >> 24) as usize, (place & 0x00ff_ffff) as usize);
                shards[shard].window_places[at] = RowPlace { block: first_block + chunk as u64, row: row as u16 };
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
                    self.set(place, &judgement);
                }
            }
            shard.judgements = judgements;
            shard.forget_places();
        }
    }

    fn set(&mut self, place: RowPlace, judgement: &Judgement) {
        let Some(index) = place.block.checked_sub(self.base) else { return };
        let Some(block) = self.blocks.get_mut(index as usize) else { return };
        let Some(row) = block.rows.get_mut(usize::from(place.row)) else { return };
        if row.verdict.is_none() {
            block.pending = block.pending.saturating_sub(1);
        }
        row.verdict = Some(Symbol(judgement.verdict.name()));
        row.cause = judgement.cause.map(|cause| Symbol(cause.name()));
        row.outcome = judgement.outcome.map(|outcome| Symbol(outcome.name()));
        row.evidence = Some(NameSet { bits: judgement.evidence.0, names: &Evidence::NAMES });
        row.retransmit_segments = judgement.retransmit_segments;
        row.original_frame_no = judgement.first_frame_no;
    }

    /// Gives out every row before the first one that still waits.
    pub fn release(&mut self, sink: &mut Sink<TcpRow>, gate: &mut Gate<'_, '_>) {
        while !gate.is_shut() && self.blocks.front().is_some_and(|block| block.pending == 0) {
            let Some(block) = self.blocks.pop_front() else { return };
            self.base += 1;
            self.held_rows -= block.rows.len() as u64;
            let mut rows = block.rows;
            sink.append(&rows);
            rows.clear();
            if self.spare.len() < 32 {
                self.spare.push(rows);
            }
        }
    }

    /// Rows held now.
    pub fn held_rows(&self) -> u64 {
        self.held_rows
    }
}

fn build_rows(context: &Context<'_>, chunk_at: usize, rows: &mut Vec<TcpRow>) {
    let Some(chunk) = context.decoded.chunks.get(chunk_at) else { return };
    let first = chunk_at * CHUNK_RECORDS;
    let records = context.decoded.window.records.get(first..).unwrap_or(&[]);
    for (offset, (record, frame)) in records.iter().zip(&chunk.frames).enumerate() {
        let at = first + offset;
        // A segment has a row exactly where its shard says something of it.
        let Some((out, stream)) = context.tcp_out(at) else { continue };
        let Some(tcp) = chunk.tcp_of(frame) else { continue };
        rows.push(tcp_row(context, at, record, frame, chunk, tcp, out, stream));
    }
}

#[expect(clippy::too_many_arguments, reason = "one call, in the hot loop above")]
fn tcp_row(
    context: &Context<'_>,
    at: usize,
    record: &Record,
    frame: &Frame,
    chunk: &Chunk,
    tcp: &TcpHeader,
    out: &TcpOut,
    stream: u64,
) -> TcpRow {
    let ws = &out.ws;
    let has = |flag: WsFlags| ws.flags.contains(flag);
    TcpRow {
        file_no: file_no(record.file),
        frame_no: record.frame_no,
        time: record.time().map(TimeNs),
        time_rel_ns: context.time_rel_ns(record),
        tcp_stream: Some(stream),
        flow_id: context.flow_id(at),
        src_ip: frame.src_ip,
        dst_ip: frame.dst_ip,
        src_port: frame.src_port,
        dst_port: frame.dst_port,
        seq: ws.relative_seq,
        ack: ws.relative_ack,
        seq_raw: tcp.seq,
        ack_raw: tcp.ack,
        flags: tcp.flags,
        flags_text: Symbol(tcp_flags_text(tcp.flags)),
        payload_bytes: frame.payload_bytes,
        window: tcp.window,
        window_bytes: ws.window_bytes,
        mss: tcp.mss(),
        wscale: tcp.wscale(),
        is_sack_permitted: tcp.is_sack_permitted(),
        sack: relative_sack(chunk, tcp, ws),
        tsval: tcp.timestamps().map(|(tsval, _)| tsval),
        tsecr: tcp.timestamps().map(|(_, tsecr)| tsecr),
        verdict: None,
        cause: None,
        outcome: None,
        evidence: None,
        retransmit_segments: 0,
        original_frame_no: None,
        ws_ack_rtt_ns: ws.ack_rtt_ns,
        ws_initial_rtt_ns: ws.initial_rtt_ns,
        ws_bytes_in_flight: ws.bytes_in_flight,
        ws_retransmission: ws.flags.is_retransmission(),
        ws_fast_retransmission: has(WsFlags::FAST_RETRANSMISSION),
        ws_spurious_retransmission: has(WsFlags::SPURIOUS_RETRANSMISSION),
        ws_out_of_order: has(WsFlags::OUT_OF_ORDER),
        ws_duplicate_ack: has(WsFlags::DUPLICATE_ACK),
        ws_duplicate_ack_num: has(WsFlags::DUPLICATE_ACK).then_some(ws.duplicate_ack_num),
        ws_zero_window: has(WsFlags::ZERO_WINDOW),
        ws_zero_window_probe: has(WsFlags::ZERO_WINDOW_PROBE),
        ws_zero_window_probe_ack: has(WsFlags::ZERO_WINDOW_PROBE_ACK),
        ws_window_full: has(WsFlags::WINDOW_FULL),
        ws_window_update: has(WsFlags::WINDOW_UPDATE),
        ws_keep_alive: has(WsFlags::KEEP_ALIVE),
        ws_keep_alive_ack: has(WsFlags::KEEP_ALIVE_ACK),
        ws_lost_segment: has(WsFlags::LOST_SEGMENT),
        ws_ack_lost_segment: has(WsFlags::ACK_LOST_SEGMENT),
        ws_reused_ports: has(WsFlags::REUSED_PORTS),
    }
}

/// SACK blocks count from where the acknowledgement does.
fn relative_sack(chunk: &Chunk, tcp: &TcpHeader, ws: &WsRow) -> SackList {
    let mut sack = SackList::default();
    if tcp.sack_count == 0 {
        return sack;
    }
    let base = tcp.ack.wrapping_sub(ws.relative_ack);
    let first = tcp.sack_at as usize;
    for (left, right) in chunk.sacks.iter().skip(first).take(usize::from(tcp.sack_count)).take(4) {
        sack.blocks[usize::from(sack.count)] = (left.wrapping_sub(base), right.wrapping_sub(base));
        sack.count += 1;
    }
    sack
}

impl TableRow for TcpRow {
    type Builder = TcpBuilder;
    fn definition() -> &'static TableDef {
        Self::table()
    }
    fn subject(&self) -> RowSubject {
        let ips = [self.src_ip, self.dst_ip, Ip::NONE, Ip::NONE];
        RowSubject::of(self.time, ips, Some(self.src_port), Some(self.dst_port))
    }
}
