//! The rows of `tcp`, column by column, as [`packets`](super::packet_columns) are.

use super::core::Context;
use super::rows::file_no;
use crate::analyze::{Evidence, Judgement, WsFlags, WsRow};
use crate::capture::Record;
use crate::tables::cell::{Cell, CellBuilder, Gaps, YesNo};
use crate::tables::*;
use crate::wire::{Chunk, Frame, TcpHeader, tcp_flags_text};

/// Segments of one block.
const BLOCK: usize = 128;

/// A segment that has a row.
#[derive(Clone, Copy)]
pub(super) struct Item<'a> {
    /// Place of its frame in the window.
    pub at: usize,
    pub record: &'a Record,
    pub frame: &'a Frame,
    pub tcp: &'a TcpHeader,
    pub ws: &'a WsRow,
    /// Number of its Wireshark stream.
    pub stream: u64,
}

#[inline]
fn fill<'a, T: Cell>(items: &[Item<'a>], column: &mut Option<T::Builder>, value: impl Fn(&Item<'a>) -> T) {
    if let Some(column) = column {
        column.extend(items.iter().map(value));
    }
}

/// A column that is empty but where `is_there`.
#[inline]
fn rare<'a, T: Cell<Builder: Gaps>>(
    items: &[Item<'a>],
    column: &mut Option<T::Builder>,
    is_there: bool,
    value: impl Fn(&Item<'a>) -> T,
) {
    if is_there {
        fill(items, column, value);
    } else if let Some(column) = column {
        column.push_gaps(items.len());
    }
}

/// Adds rows of one chunk to the batch, all but what is judged later. Every column is named here, so that none can be
/// forgotten.
pub(super) fn append(
    context: &Context<'_>,
    chunk: &Chunk,
    items: &[Item<'_>],
    builder: &mut TcpBuilder,
    is_parallel: bool,
) {
    let TcpBuilder {
        rows,
        file_no: file_no_column,
        frame_no,
        time,
        time_rel_ns,
        tcp_stream,
        flow_id,
        src_ip,
        dst_ip,
        src_port,
        dst_port,
        seq,
        ack,
        seq_raw,
        ack_raw,
        flags,
        flags_text,
        payload_bytes,
        window,
        window_bytes,
        mss,
        wscale,
        is_sack_permitted,
        sack,
        tsval,
        tsecr,
        verdict: _,
        cause: _,
        outcome: _,
        evidence: _,
        retransmit_segments: _,
        original_frame_no: _,
        ws_ack_rtt_ns,
        ws_initial_rtt_ns,
        ws_bytes_in_flight,
        ws_retransmission,
        ws_fast_retransmission,
        ws_spurious_retransmission,
        ws_out_of_order,
        ws_duplicate_ack,
        ws_duplicate_ack_num,
        ws_zero_window,
        ws_zero_window_probe,
        ws_zero_window_probe_ack,
        ws_window_full,
        ws_window_update,
        ws_keep_alive,
        ws_keep_alive_ack,
        ws_lost_segment,
        ws_ack_lost_segment,
        ws_reused_ports,
    } = builder;
    *rows += items.len();
    let mut header = |items: &[Item<'_>]| {
        fill(items, file_no_column, |item| file_no(item.record.file));
        fill(items, frame_no, |item| item.record.frame_no);
        fill(items, time, |item| item.record.time().map(TimeNs));
        fill(items, time_rel_ns, |item| context.time_rel_ns(item.record));
        fill(items, src_ip, |item| item.frame.src_ip);
        fill(items, dst_ip, |item| item.frame.dst_ip);
        fill(items, src_port, |item| item.frame.src_port);
        fill(items, dst_port, |item| item.frame.dst_port);
        fill(items, seq_raw, |item| item.tcp.seq);
        fill(items, ack_raw, |item| item.tcp.ack);
        fill(items, flags, |item| item.tcp.flags);
        fill(items, flags_text, |item| Symbol(tcp_flags_text(item.tcp.flags)));
        fill(items, payload_bytes, |item| item.frame.payload_bytes);
        fill(items, window, |item| item.tcp.window);
        let options = items.iter().fold(0, |any, item| any | item.tcp.options);
        rare(items, mss, options & TcpHeader::HAS_MSS != 0, |item| item.tcp.mss());
        rare(items, wscale, options & TcpHeader::HAS_WSCALE != 0, |item| item.tcp.wscale());
        fill(items, is_sack_permitted, |item| item.tcp.is_sack_permitted());
        let has_stamps = options & TcpHeader::HAS_TIMESTAMPS != 0;
        rare(items, tsval, has_stamps, |item| item.tcp.timestamps().map(|(tsval, _)| tsval));
        rare(items, tsecr, has_stamps, |item| item.tcp.timestamps().map(|(_, tsecr)| tsecr));
    };
    let mut analysis = |items: &[Item<'_>]| {
        fill(items, tcp_stream, |item| Some(item.stream));
        fill(items, flow_id, |item| context.flow_id(item.at));
        fill(items, seq, |item| item.ws.relative_seq);
        fill(items, ack, |item| item.ws.relative_ack);
        fill(items, window_bytes, |item| item.ws.window_bytes);
        let has_blocks = items.iter().any(|item| item.tcp.sack_count > 0);
        match sack.as_mut().filter(|_| !has_blocks) {
            Some(sack) => sack.push_empty(items.len()),
            None => fill(items, sack, |item| relative_sack(chunk, item.tcp, item.ws)),
        }
        fill(items, ws_ack_rtt_ns, |item| item.ws.ack_rtt_ns);
        fill(items, ws_initial_rtt_ns, |item| item.ws.initial_rtt_ns);
        fill(items, ws_bytes_in_flight, |item| item.ws.bytes_in_flight);
        let any = items.iter().fold(WsFlags::default(), |any, item| any | item.ws.flags);
        let has = |item: &Item<'_>, flag: WsFlags| item.ws.flags.contains(flag);
        let flag = |column: &mut Option<YesNo>, flag: WsFlags| match column {
            Some(column) if !any.contains(flag) => column.push_no(items.len()),
            column => fill(items, column, |item| has(item, flag)),
        };
        flag(ws_fast_retransmission, WsFlags::FAST_RETRANSMISSION);
        flag(ws_spurious_retransmission, WsFlags::SPURIOUS_RETRANSMISSION);
        flag(ws_out_of_order, WsFlags::OUT_OF_ORDER);
        flag(ws_duplicate_ack, WsFlags::DUPLICATE_ACK);
        flag(ws_zero_window, WsFlags::ZERO_WINDOW);
        flag(ws_zero_window_probe, WsFlags::ZERO_WINDOW_PROBE);
        flag(ws_zero_window_probe_ack, WsFlags::ZERO_WINDOW_PROBE_ACK);
        flag(ws_window_full, WsFlags::WINDOW_FULL);
        flag(ws_window_update, WsFlags::WINDOW_UPDATE);
        flag(ws_keep_alive, WsFlags::KEEP_ALIVE);
        flag(ws_keep_alive_ack, WsFlags::KEEP_ALIVE_ACK);
        flag(ws_lost_segment, WsFlags::LOST_SEGMENT);
        flag(ws_ack_lost_segment, WsFlags::ACK_LOST_SEGMENT);
        flag(ws_reused_ports, WsFlags::REUSED_PORTS);
        match ws_retransmission.as_mut().filter(|_| !any.is_retransmission()) {
            Some(column) => column.push_no(items.len()),
            None => fill(items, ws_retransmission, |item| item.ws.flags.is_retransmission()),
        }
        let has_duplicates = any.contains(WsFlags::DUPLICATE_ACK);
        rare(items, ws_duplicate_ack_num, has_duplicates, |item| {
            has(item, WsFlags::DUPLICATE_ACK).then_some(item.ws.duplicate_ack_num)
        });
    };
    if is_parallel {
        rayon::join(|| items.chunks(BLOCK).for_each(&mut header), || items.chunks(BLOCK).for_each(&mut analysis));
    } else {
        for block in items.chunks(BLOCK) {
            header(block);
            analysis(block);
        }
    }
}

/// Adds what was judged of the rows of a whole batch; where nothing was, its columns are not asked for.
pub(super) fn append_judgements(judgements: &[Option<Judgement>], builder: &mut TcpBuilder) {
    fn fill<T: Cell>(
        judgements: &[Option<Judgement>],
        column: &mut Option<T::Builder>,
        value: impl Fn(&Judgement) -> T,
        none: impl Fn() -> T,
    ) {
        if let Some(column) = column {
            column.extend(judgements.iter().map(|judgement| judgement.as_ref().map_or_else(&none, &value)));
        }
    }
    fill(judgements, &mut builder.verdict, |judgement| Some(Symbol(judgement.verdict.name())), || None);
    fill(judgements, &mut builder.cause, |judgement| judgement.cause.map(|cause| Symbol(cause.name())), || None);
    let outcome = |judgement: &Judgement| judgement.outcome.map(|outcome| Symbol(outcome.name()));
    fill(judgements, &mut builder.outcome, outcome, || None);
    let evidence = |judgement: &Judgement| Some(NameSet { bits: judgement.evidence.0, names: &Evidence::NAMES });
    fill(judgements, &mut builder.evidence, evidence, || None);
    fill(judgements, &mut builder.retransmit_segments, |judgement| judgement.retransmit_segments, || 0);
    fill(judgements, &mut builder.original_frame_no, |judgement| judgement.first_frame_no, || None);
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
