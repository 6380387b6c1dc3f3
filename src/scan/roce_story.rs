//! Rows of `roce_qps`, `roce_messages` and `roce_events`.

use std::collections::HashMap;
use std::fmt;

use super::core::Sinks;
use super::roce::RoceStage;
use super::rows::{file_no, relative};
use super::story::FrameWords;
use crate::analyze::{Channel, Fabric, FinishedMessage, RoceCause, RoceEvent, RoceEventKind, Tap};
use crate::tables::*;
use crate::wire::Ip;
use crate::words::{self, Lang};

/// `bytes` in bits per second over a time; `None` where no time passed.
fn bits_per_s(bytes: u64, over_ns: i64) -> Option<u64> {
    let over_ns = u128::try_from(over_ns).ok().filter(|ns| *ns > 0)?;
    u64::try_from(u128::from(bytes) * 8 * 1_000_000_000 / over_ns).ok()
}

pub(super) fn message_row(channel: &Channel, done: &FinishedMessage, first_ns: Option<i64>) -> RoceMessageRow {
    let message = &done.message;
    let resent = |cause: RoceCause| message.resent[cause as usize];
    let bytes = message.dma_bytes.map_or(message.payload_bytes, u64::from);
    let latency_ns = message.latency_ns();
    RoceMessageRow {
        file_no: file_no(message.first.file),
        frame_no: message.first.frame_no,
        time: Some(TimeNs(message.first.time_ns)),
        time_rel_ns: relative(Some(message.first.time_ns), first_ns),
        message_id: message.id,
        qp_id: channel.id,
        requester_ip: channel.ends.requester_ip,
        requester_qp: done.requester_qp,
        responder_ip: channel.ends.responder_ip,
        responder_qp: channel.ends.responder_qp,
        service: Symbol(channel.ends.service.name()),
        operation: Symbol(message.operation.name()),
        bytes,
        dma_bytes: message.dma_bytes,
        payload_bytes: message.payload_bytes,
        psn: message.psn.get(),
        last_psn: message.last_psn().get(),
        packet_count: message.packets,
        response_count: message.response_packets,
        last_frame_no: message.last.frame_no,
        end: message.done.map(|done| TimeNs(done.time_ns)),
        latency_ns,
        throughput_bps: latency_ns.and_then(|latency_ns| bits_per_s(bytes, latency_ns)),
        completion: Symbol(message.completion.name()),
        is_complete: message.is_whole(),
        imm: message.imm,
        retransmit_count: message.resent.iter().sum(),
        retransmit_nak_count: resent(RoceCause::Nak),
        retransmit_rnr_count: resent(RoceCause::Rnr),
        retransmit_timeout_count: resent(RoceCause::Timeout),
        retransmit_reissue_count: resent(RoceCause::Reissue),
        retransmit_unknown_count: resent(RoceCause::Unknown),
        ce_count: message.ce_count,
    }
}

pub(super) fn qp_table(stage: &RoceStage, first_ns: Option<i64>, sinks: &mut Sinks) {
    let Some(sink) = &mut sinks.roce_qps else { return };
    let mut rows = Vec::new();
    for fabric in &stage.fabrics {
        let mut by_ends = HashMap::new();
        for channel in fabric.channels() {
            let ends = &channel.ends;
            if let Some(own) = ends.requester_qp {
                by_ends.insert((ends.pair, ends.direction, own, ends.responder_qp, ends.service), channel.id);
            }
        }
        for channel in fabric.channels() {
            let ends = &channel.ends;
            let peer = ends.requester_qp.and_then(|own| {
                by_ends.get(&(ends.pair, ends.direction ^ 1, ends.responder_qp, own, ends.service)).copied()
            });
            rows.push(qp_row(fabric, channel, peer, first_ns));
        }
    }
    rows.sort_unstable_by_key(|row| row.qp_id);
    rows.into_iter().for_each(|row| sink.push(row));
}

fn qp_row(fabric: &Fabric, channel: &Channel, peer_qp_id: Option<u64>, first_ns: Option<i64>) -> RoceQpRow {
    let (ends, counts) = (&channel.ends, &channel.counts);
    let tap = fabric.tap(channel);
    let here = |count: u64| (tap == Tap::Responder && ends.service.is_reliable()).then_some(count);
    let resent = |cause: RoceCause| counts.resent[cause as usize];
    let duration_ns = channel.last_ns.saturating_sub(channel.first.time_ns);
    let bytes = counts.request_bytes + counts.response_bytes;
    let share = |count: u64| (counts.requests > 0).then(|| count as f64 / counts.requests as f64);
    let delay = channel.story.notification_delay.as_ref();
    let went_back: u64 = counts.rewinds.iter().sum();
    RoceQpRow {
        file_no: file_no(channel.first.file),
        frame_no: channel.first.frame_no,
        time: Some(TimeNs(channel.first.time_ns)),
        time_rel_ns: relative(Some(channel.first.time_ns), first_ns),
        qp_id: channel.id,
        interface_id: ends.interface,
        vni: ends.vni,
        service: Symbol(ends.service.name()),
        requester_ip: ends.requester_ip,
        requester_qp: ends.requester_qp,
        responder_ip: ends.responder_ip,
        responder_qp: ends.responder_qp,
        paired_by: channel.paired_by.name().map(Symbol),
        pair_confidence: channel.confidence().map(Symbol),
        peer_qp_id,
        tap: Symbol(tap.name()),
        end: Some(TimeNs(channel.last_ns)),
        duration_ns: Some(duration_ns),
        request_count: counts.requests,
        response_count: counts.responses,
        ack_count: counts.acknowledgements,
        message_count: counts.messages,
        bytes,
        throughput_bps: bits_per_s(bytes, duration_ns),
        path_mtu_bytes: channel.path_mtu,
        dscp: channel.traffic_class >> 2,
        vlan_pcp: channel.pcp,
        retransmit_count: counts.resent_total(),
        retransmit_nak_count: resent(RoceCause::Nak),
        retransmit_rnr_count: resent(RoceCause::Rnr),
        retransmit_timeout_count: resent(RoceCause::Timeout),
        retransmit_reissue_count: resent(RoceCause::Reissue),
        retransmit_unknown_count: resent(RoceCause::Unknown),
        retransmit_bytes: counts.resent_bytes,
        retransmit_ratio: share(counts.resent_total()),
        timeout_wait_ns: counts.timeout_wait_ns,
        latency_median_ns: channel.latency.as_ref().and_then(|latency| latency.at_ns(500)),
        latency_p99_ns: channel.latency.as_ref().and_then(|latency| latency.at_ns(990)),
        latency_max_ns: channel.latency.as_ref().and_then(|latency| latency.at_ns(1_000)),
        rewind_count: went_back - counts.rewinds[RoceCause::Rnr as usize],
        in_order_count: here(counts.in_order),
        out_of_sequence_count: here(counts.out_of_sequence),
        duplicate_count: here(counts.duplicates),
        gap_count: here(counts.gaps),
        discarded_count: here(counts.discarded),
        discarded_bytes: here(counts.discarded_bytes),
        damaged_count: counts.damaged,
        network_duplicate_count: counts.network_duplicates,
        nak_sequence_count: counts.sequence_naks,
        nak_rnr_count: counts.rnr_naks,
        nak_fatal_count: counts.fatal_naks,
        unanswered_count: channel.unanswered(),
        not_captured_count: counts.not_captured,
        ce_count: counts.ce,
        ce_ratio: share(counts.ce),
        not_ect_count: counts.not_ect,
        cnp_count: counts.notifications,
        response_ce_count: counts.response_ce,
        response_cnp_count: counts.response_notifications,
        ce_to_cnp_min_ns: delay.and_then(|delay| delay.min_ns()),
        ce_to_cnp_median_ns: delay.and_then(|delay| delay.at_ns(500)),
    }
}

pub(super) fn event_table(stage: &RoceStage, first_ns: Option<i64>, sinks: &mut Sinks) {
    let Some(sink) = &mut sinks.roce_events else { return };
    let mut told: Vec<(&Channel, &RoceEvent)> = Vec::new();
    for channel in stage.fabrics.iter().flat_map(Fabric::channels) {
        told.extend(channel.story.events().map(|event| (channel, event)));
    }
    told.sort_by_key(|(channel, event)| {
        let start = event.start;
        (start.time_ns, start.file, start.frame_no, channel.id, event.kind, event.end_ns)
    });
    for (channel, event) in told {
        sink.push(event_row(channel, event, first_ns));
    }
}

fn event_row(channel: &Channel, event: &RoceEvent, first_ns: Option<i64>) -> RoceEventRow {
    let (requester_qp, responder_qp) = match event.ends {
        Some((requester, responder)) => (Some(requester), responder),
        None => (channel.ends.requester_qp, channel.ends.responder_qp),
    };
    let ends = (requester_qp, responder_qp);
    RoceEventRow {
        file_no: file_no(event.start.file),
        frame_no: event.start.frame_no,
        time: Some(TimeNs(event.start.time_ns)),
        time_rel_ns: relative(Some(event.start.time_ns), first_ns),
        qp_id: channel.id,
        requester_ip: channel.ends.requester_ip,
        requester_qp,
        responder_ip: channel.ends.responder_ip,
        responder_qp,
        kind: Symbol(event.kind.name()),
        duration_ns: event.end_ns.saturating_sub(event.start.time_ns),
        end: Some(TimeNs(event.end_ns)),
        psn: event.psn,
        count: event.count,
        bytes: event.bytes,
        try_count: event.tries,
        wait_ns: event.wait_ns,
        cause: event.cause.map(Symbol),
        end_reason: event.end_reason.map(Symbol),
        frames: FrameList(event.frames.list().to_vec()),
        message_en: Some(message(Lang::En, channel, event, ends)),
        message_zh: Some(message(Lang::Zh, channel, event, ends)),
    }
}

/// A queue pair as people write it: address and number.
pub(super) struct QpName(pub Ip, pub Option<u32>);

impl fmt::Display for QpName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.1 {
            Some(qp) => write!(f, "{} QP 0x{qp:x}", self.0),
            None => write!(f, "{}", self.0),
        }
    }
}

fn message(lang: Lang, channel: &Channel, event: &RoceEvent, (requester, responder): (Option<u32>, u32)) -> String {
    let wait = words::short(event.wait_ns.unwrap_or(0));
    // Frame numbers of another file would mislead.
    let nak = event.unheeded_nak.filter(|nak| nak.file == event.start.file).map(|nak| nak.frame_no);
    let ack = event.unheeded_ack.filter(|ack| ack.file == event.start.file).map(|ack| ack.frame_no);
    let values: [(&str, &dyn fmt::Display); 3] =
        [("wait", &wait), ("nak", &nak.unwrap_or(0)), ("ack", &ack.unwrap_or(0))];
    let word = |group: &str, name: Option<&str>| {
        name.map_or(String::new(), |name| words::say(lang, &format!("roce.{group}.{name}"), &values))
    };
    let cause = match (event.cause, nak, ack) {
        (Some("timeout"), Some(_), _) => Some("timeout_after_nak"),
        (Some("timeout"), None, Some(_)) => Some("timeout_after_ack"),
        (cause, _, _) => cause,
    };
    let kind = event.kind.name();
    let key = match (event.kind, event.cause) {
        (RoceEventKind::Refused, Some(cause)) => format!("roce.event.{kind}.{cause}"),
        _ => format!("roce.event.{kind}"),
    };
    words::say(
        lang,
        &key,
        &[
            ("requester", &QpName(channel.ends.requester_ip, requester)),
            ("responder", &QpName(channel.ends.responder_ip, Some(responder))),
            ("frame_no", &event.start.frame_no),
            ("frames", &FrameWords(event.frames.list(), lang)),
            ("span", &words::short(event.end_ns.saturating_sub(event.start.time_ns))),
            ("psn", &event.psn.unwrap_or(0)),
            ("count", &event.count),
            ("bytes", &event.bytes.unwrap_or(0)),
            ("tries", &event.tries.unwrap_or(0)),
            ("wait", &wait),
            ("cause", &word("cause", cause)),
            ("end", &word("end", event.end_reason)),
        ],
    )
}

impl TableRow for RoceQpRow {
    type Builder = RoceQpBuilder;
    fn definition() -> &'static TableDef {
        Self::table()
    }
    fn subject(&self) -> RowSubject {
        RowSubject::of(self.time, [self.requester_ip, self.responder_ip, Ip::NONE, Ip::NONE], None, None)
    }
}

impl TableRow for RoceMessageRow {
    type Builder = RoceMessageBuilder;
    fn definition() -> &'static TableDef {
        Self::table()
    }
    fn subject(&self) -> RowSubject {
        RowSubject::of(self.time, [self.requester_ip, self.responder_ip, Ip::NONE, Ip::NONE], None, None)
    }
}

impl TableRow for RoceEventRow {
    type Builder = RoceEventBuilder;
    fn definition() -> &'static TableDef {
        Self::table()
    }
    fn subject(&self) -> RowSubject {
        RowSubject::of(self.time, [self.requester_ip, self.responder_ip, Ip::NONE, Ip::NONE], None, None)
    }
}
