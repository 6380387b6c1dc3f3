//! The rows of `tcp`, column by column, as [`packets`](super::packet_columns) are.

use super::columns::{fill, fill_ips, rare};
use super::core::Context;
use super::rows::file_no;
use super::shard::Found;
use crate::analyze::{Evidence, Judgement, WsFlags};
use crate::capture::Record;
use crate::tables::cell::{BLOCK, Cell, CellBuilder, YesNo};
use crate::tables::*;
use crate::wire::{Frame, TcpHeader, tcp_flags_text};

/// A segment that has a row.
#[derive(Clone, Copy)]
pub(super) struct Item<'a> {
    /// Place of its frame in the window.
    pub at: usize,
    pub record: &'a Record,
    pub frame: &'a Frame,
    pub tcp: &'a TcpHeader,
}

/// Adds rows to a batch: what their frames say. Every column of the table is named here, so that none can be forgotten.
pub(super) fn append_header(context: &Context<'_>, items: &[Item<'_>], builder: &mut TcpBuilder) {
    let TcpBuilder {
        rows,
        file_no: file_no_column,
        frame_no,
        time,
        time_rel_ns,
        flow_id,
        src_ip,
        dst_ip,
        src_port,
        dst_port,
        seq_raw,
        ack_raw,
        flags,
        flags_text,
        payload_bytes,
        window,
        mss,
        wscale,
        is_sack_permitted,
        tsval,
        tsecr,
        // Filled by `append_found`.
        tcp_stream: _,
        seq: _,
        ack: _,
        window_bytes: _,
        sack: _,
        ws_ack_rtt_ns: _,
        ws_initial_rtt_ns: _,
        ws_bytes_in_flight: _,
        ws_retransmission: _,
        ws_fast_retransmission: _,
        ws_spurious_retransmission: _,
        ws_out_of_order: _,
        ws_duplicate_ack: _,
        ws_duplicate_ack_num: _,
        ws_zero_window: _,
        ws_zero_window_probe: _,
        ws_zero_window_probe_ack: _,
        ws_window_full: _,
        ws_window_update: _,
        ws_keep_alive: _,
        ws_keep_alive_ack: _,
        ws_lost_segment: _,
        ws_ack_lost_segment: _,
        ws_reused_ports: _,
        // Filled by `append_judgements`.
        verdict: _,
        cause: _,
        outcome: _,
        evidence: _,
        retransmit_segments: _,
        original_frame_no: _,
    } = builder;
    *rows += items.len();
    for items in items.chunks(BLOCK) {
        fill(items, file_no_column, |item| file_no(item.record.file));
        fill(items, frame_no, |item| item.record.frame_no);
        fill(items, time, |item| item.record.time().map(TimeNs));
        fill(items, time_rel_ns, |item| context.time_rel_ns(item.record));
        fill(items, flow_id, |item| context.flow_id(item.at));
        fill_ips(items, src_ip, |item| context.numbered_src_ip(item.at, item.frame));
        fill_ips(items, dst_ip, |item| context.numbered_dst_ip(item.at, item.frame));
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
    }
}

/// Adds to the rows of a batch what was found of their segments.
pub(super) fn append_found<'a>(found: impl Iterator<Item = Found<'a>>, builder: &mut TcpBuilder) {
    let mut found = found;
    let mut block = Vec::with_capacity(BLOCK);
    loop {
        block.clear();
        block.extend(found.by_ref().take(BLOCK));
        append_block(&block, builder);
        if block.len() < BLOCK {
            return;
        }
    }
}

fn append_block(items: &[Found<'_>], builder: &mut TcpBuilder) {
    fill(items, &mut builder.tcp_stream, |found| Some(found.stream));
    fill(items, &mut builder.seq, |found| found.out.relative_seq);
    fill(items, &mut builder.ack, |found| found.out.relative_ack);
    fill(items, &mut builder.window_bytes, |found| found.out.window_bytes);
    let has_blocks = items.iter().any(|found| !found.sacks.is_empty());
    match builder.sack.as_mut().filter(|_| !has_blocks) {
        Some(sack) => sack.push_empty(items.len()),
        None => fill(items, &mut builder.sack, relative_sack),
    }
    fill(items, &mut builder.ws_ack_rtt_ns, |found| found.out.ack_rtt_ns);
    fill(items, &mut builder.ws_initial_rtt_ns, |found| found.out.initial_rtt_ns);
    fill(items, &mut builder.ws_bytes_in_flight, |found| found.out.bytes_in_flight);
    let any = items.iter().fold(WsFlags::default(), |any, found| any | found.out.flags);
    let flag = |column: &mut Option<YesNo>, flag: WsFlags| match column {
        Some(column) if !any.contains(flag) => column.push_no(items.len()),
        column => fill(items, column, |found| found.out.flags.contains(flag)),
    };
    flag(&mut builder.ws_fast_retransmission, WsFlags::FAST_RETRANSMISSION);
    flag(&mut builder.ws_spurious_retransmission, WsFlags::SPURIOUS_RETRANSMISSION);
    flag(&mut builder.ws_out_of_order, WsFlags::OUT_OF_ORDER);
    flag(&mut builder.ws_duplicate_ack, WsFlags::DUPLICATE_ACK);
    flag(&mut builder.ws_zero_window, WsFlags::ZERO_WINDOW);
    flag(&mut builder.ws_zero_window_probe, WsFlags::ZERO_WINDOW_PROBE);
    flag(&mut builder.ws_zero_window_probe_ack, WsFlags::ZERO_WINDOW_PROBE_ACK);
    flag(&mut builder.ws_window_full, WsFlags::WINDOW_FULL);
    flag(&mut builder.ws_window_update, WsFlags::WINDOW_UPDATE);
    flag(&mut builder.ws_keep_alive, WsFlags::KEEP_ALIVE);
    flag(&mut builder.ws_keep_alive_ack, WsFlags::KEEP_ALIVE_ACK);
    flag(&mut builder.ws_lost_segment, WsFlags::LOST_SEGMENT);
    flag(&mut builder.ws_ack_lost_segment, WsFlags::ACK_LOST_SEGMENT);
    flag(&mut builder.ws_reused_ports, WsFlags::REUSED_PORTS);
    match builder.ws_retransmission.as_mut().filter(|_| !any.is_retransmission()) {
        Some(column) => column.push_no(items.len()),
        None => fill(items, &mut builder.ws_retransmission, |found| found.out.flags.is_retransmission()),
    }
    rare(items, &mut builder.ws_duplicate_ack_num, any.contains(WsFlags::DUPLICATE_ACK), |found| {
        found.out.flags.contains(WsFlags::DUPLICATE_ACK).then_some(found.out.duplicate_ack_num)
    });
}

/// Adds what was judged of the rows of a whole batch; where nothing was, its columns are not asked for.
pub(super) fn append_judgements(judgements: &[Option<Judgement>], builder: &mut TcpBuilder) {
    fn fill<T: Cell>(
        judgements: &[Option<Judgement>],
        column: &mut Option<T::Builder>,
        value: impl Fn(&Judgement) -> T,
        none: impl Fn() -> T,
    ) {
        let Some(column) = column else { return };
        for some in judgements.chunks(BLOCK) {
            column.extend(some.iter().map(|judgement| judgement.as_ref().map_or_else(&none, &value)));
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
fn relative_sack(found: &Found<'_>) -> SackList {
    let mut sack = SackList::default();
    let base = found.ack.wrapping_sub(found.out.relative_ack);
    for (block, (left, right)) in sack.blocks.iter_mut().zip(found.sacks) {
        *block = (left.wrapping_sub(base), right.wrapping_sub(base));
        sack.count += 1;
    }
    sack
}
