//! The RoCE stage of a run: routes a window's RoCE packets to fabrics by address pair, numbers queue pairs and messages, and
//! holds rows of `roce` until what is said of them is final. Does nothing where a window has no RoCE packet.

use std::collections::VecDeque;

use super::core::{Context, Sinks};
use super::gate::Gate;
use super::rows::{roce_of, roce_row};
use super::sink::Sink;
use super::{roce_intervals, roce_story};
use crate::analyze::{
    Fabric, HoldLimits, LeftOut, Mark, NO_CHANNEL, NO_MESSAGE, RoceEvidence, RoceJudgement, RoceSeen,
};
use crate::capture::Record;
use crate::options::Options;
use crate::tables::*;
use crate::wire::{ChecksumStatus, CmMessage, Frame, IcrcStatus, Layers, PacketDirection, RocePacket};

/// Fabrics are a fixed number, as shards are.
const FABRICS: usize = 64;

/// Columns of `roce` that need the analysis.
const COLUMNS: [&str; 6] = ["sent", "cause", "arrival", "evidence", "qp_id", "message_id"];

/// Whether the rows asked for hold more than headers.
pub(super) fn needs_analysis(sink: &Sink<RoceRow>) -> bool {
    COLUMNS.iter().any(|column| sink.wants(column))
}

pub(crate) struct RoceStage {
    pub fabrics: Vec<Fabric>,
    /// Places of this window's packets, by fabric.
    places: Vec<Vec<(u32, u64)>>,
    /// RoCE packets so far.
    rows: u64,
    next_qp: u64,
    next_message: u64,
    hold: HoldLimits,
    held: RowHold,
    messages: VecDeque<Option<RoceMessageRow>>,
    ended_messages: u64,
    /// Number of the first message held.
    first_message: u64,
    /// Queue pair and message of each packet of the window, by its running number.
    window_ids: Vec<(u64, u64)>,
    has_packets: bool,
    /// A packet with a right invariant CRC was seen: wrong checksums are damage.
    has_proven: bool,
}

impl RoceStage {
    /// The stage, where a table needs it.
    pub fn needed(sinks: &Sinks, options: &Options) -> Option<Self> {
        let is_needed = sinks.roce.as_ref().is_some_and(needs_analysis)
            || sinks.roce_qps.is_some()
            || sinks.roce_messages.is_some()
            || sinks.roce_intervals.is_some()
            || sinks.roce_events.is_some()
            || sinks.capture_quality.is_some();
        if !is_needed {
            return None;
        }
        let mut fabrics: Vec<Fabric> = (0..FABRICS).map(|_| Fabric::default()).collect();
        fabrics.iter_mut().for_each(|fabric| fabric.set_endpoints(&options.roce_endpoints));
        Some(Self {
            fabrics,
            places: vec![Vec::new(); FABRICS],
            rows: 0,
            next_qp: 0,
            next_message: 0,
            hold: HoldLimits { rows: options.limits.hold_frames, time_ns: options.limits.hold_ns },
            held: RowHold::default(),
            messages: VecDeque::new(),
            ended_messages: 0,
            first_message: 0,
            window_ids: Vec::new(),
            has_packets: false,
            has_proven: false,
        })
    }

    pub fn on_window(&mut self, context: &Context<'_>, now_ns: i64, gate: &mut Gate<'_, '_>, sinks: &mut Sinks) {
        let has_roce = context.decoded.chunks.iter().any(|chunk| !chunk.roce.is_empty());
        if !has_roce && !self.has_packets {
            return;
        }
        self.has_packets = true;
        let first_row = self.rows;
        self.places.iter_mut().for_each(Vec::clear);
        if has_roce {
            for (at, _, frame, chunk) in context.frames() {
                if let Some(packet) = roce_of(frame, chunk) {
                    self.has_proven |= packet.icrc == Some(IcrcStatus::Ok);
                    let fabric = (frame.flow_hash >> 58) as usize % FABRICS;
                    self.places[fabric].push((at as u32, self.rows));
                    self.rows += 1;
                }
            }
        }
        let (row_now, hold, has_proven) = (self.rows, self.hold, self.has_proven);
        let places = &self.places;
        gate.each(&mut self.fabrics, |at, fabric| {
            fabric.begin_window();
            for (at, row) in &places[at] {
                on_packet(context, fabric, (*at, *row), has_proven);
            }
            fabric.expire(now_ns, row_now, &hold);
        });
        if gate.is_shut() {
            return;
        }
        self.number(first_row);
        if let Some(sink) = sinks.roce.as_mut().filter(|sink| needs_analysis(sink)) {
            self.hold_rows(context, first_row);
            self.judge();
            self.held.release(sink);
            if self.held.len() > self.hold.rows {
                self.fabrics.iter_mut().for_each(Fabric::judge_all);
                self.judge();
                self.held.release(sink);
            }
        }
        self.take_messages(context.first_time_ns, sinks);
        if self.next_message - self.ended_messages > self.hold.rows {
            self.fabrics.iter_mut().for_each(Fabric::end_messages);
            self.take_messages(context.first_time_ns, sinks);
        }
    }

    /// RoCE packets so far.
    pub fn packets(&self) -> u64 {
        self.rows
    }

    /// Packets that found no place.
    pub fn left_out(&self) -> LeftOut {
        let mut sum = LeftOut::default();
        for fabric in &self.fabrics {
            sum.over_limit += fabric.left_out.over_limit;
            sum.without_requests += fabric.left_out.without_requests;
        }
        sum
    }

    /// Gives new queue pairs and messages their numbers, in the order of their first packets.
    fn number(&mut self, first_row: u64) {
        let mut fresh: Vec<(u32, &mut u64)> = Vec::new();
        for fabric in &mut self.fabrics {
            fresh.extend(fabric.unnumbered().map(|channel| (channel.first_at, &mut channel.id)));
        }
        fresh.sort_unstable_by_key(|(at, _)| *at);
        for (_, id) in fresh {
            *id = self.next_qp;
            self.next_qp += 1;
        }
        let mut order: Vec<(u32, usize, usize)> = Vec::new();
        let mut ids: Vec<Vec<u64>> = Vec::with_capacity(FABRICS);
        for (of, fabric) in self.fabrics.iter().enumerate() {
            order.extend(fabric.out.fresh.iter().enumerate().map(|(at, (place, _, _))| (*place, of, at)));
            ids.push(vec![NO_MESSAGE; fabric.out.fresh.len()]);
        }
        order.sort_unstable();
        for (_, fabric, at) in order {
            ids[fabric][at] = self.next_message;
            self.next_message += 1;
        }
        for (fabric, ids) in self.fabrics.iter_mut().zip(&ids) {
            fabric.number_messages(ids);
        }
        // Places in the window become running numbers of rows.
        self.window_ids.clear();
        self.window_ids.resize((self.rows - first_row) as usize, (u64::MAX, NO_MESSAGE));
        for (fabric, places) in self.fabrics.iter().zip(&self.places) {
            let mut rows = places.iter();
            for placed in &fabric.out.placed {
                let Some((_, row)) = rows.by_ref().find(|(at, _)| *at == placed.at) else { continue };
                let qp = fabric.channel(placed.channel).filter(|_| placed.channel != NO_CHANNEL);
                if let Some(ids) = self.window_ids.get_mut((row - first_row) as usize) {
                    *ids = (qp.map_or(u64::MAX, |channel| channel.id), placed.message);
                }
            }
        }
    }

    fn hold_rows(&mut self, context: &Context<'_>, first_row: u64) {
        let mut row_no = first_row;
        for (at, record, frame, chunk) in context.frames() {
            let Some(packet) = roce_of(frame, chunk) else { continue };
            let mut row = roce_row(context, at, record, frame, packet);
            if let Some((qp, message)) = self.window_ids.get((row_no - first_row) as usize) {
                row.qp_id = Some(*qp).filter(|id| *id != u64::MAX);
                row.message_id = Some(*message).filter(|id| *id != NO_MESSAGE);
            }
            self.held.push(row);
            row_no += 1;
        }
    }

    fn judge(&mut self) {
        for fabric in &mut self.fabrics {
            for judgement in fabric.out.judgements.drain(..) {
                self.held.set(&judgement);
            }
        }
    }

    /// Takes the messages that ended, and gives out those before the first that has not.
    fn take_messages(&mut self, first_ns: Option<i64>, sinks: &mut Sinks) {
        let finished = self.fabrics.iter().map(|fabric| fabric.out.finished.len() as u64);
        self.ended_messages += finished.sum::<u64>();
        let Some(sink) = &mut sinks.roce_messages else {
            self.fabrics.iter_mut().for_each(|fabric| fabric.out.finished.clear());
            return;
        };
        let wanted = (self.next_message - self.first_message) as usize;
        self.messages.resize_with(wanted.max(self.messages.len()), || None);
        for fabric in &mut self.fabrics {
            for (channel, message) in std::mem::take(&mut fabric.out.finished) {
                let place = message.id.checked_sub(self.first_message).and_then(|at| usize::try_from(at).ok());
                if let (Some(channel), Some(slot)) =
                    (fabric.channel(channel), place.and_then(|at| self.messages.get_mut(at)))
                {
                    *slot = Some(roce_story::message_row(channel, &message, first_ns));
                }
            }
        }
        while let Some(Some(_)) = self.messages.front() {
            if let Some(Some(row)) = self.messages.pop_front() {
                sink.push(row);
            }
            self.first_message += 1;
        }
    }

    pub fn finish(&mut self, now_ns: i64, first_ns: Option<i64>, sinks: &mut Sinks) {
        for fabric in &mut self.fabrics {
            fabric.begin_window();
            fabric.finish(now_ns);
        }
        if let Some(sink) = sinks.roce.as_mut().filter(|sink| needs_analysis(sink)) {
            self.judge();
            self.held.release_all(sink);
        }
        self.take_messages(first_ns, sinks);
        // A message that could not be followed to its end leaves a gap, not a stop.
        if let Some(sink) = &mut sinks.roce_messages {
            self.messages.drain(..).flatten().for_each(|row| sink.push(row));
        }
        roce_story::qp_table(self, first_ns, sinks);
        roce_intervals::interval_table(self, first_ns, sinks);
        roce_story::event_table(self, first_ns, sinks);
    }
}

fn on_packet(context: &Context<'_>, fabric: &mut Fabric, (at, row): (u32, u64), has_proven: bool) {
    let Some((frame, chunk)) = context.decoded.frame(at as usize) else { return };
    let Some(record) = context.decoded.window.records.get(at as usize) else { return };
    let Some(packet) = roce_of(frame, chunk) else { return };
    let cm = connection_message(context, record, frame, packet);
    let is_wrong = |status| status == Some(ChecksumStatus::Bad);
    fabric.on_packet(&RoceSeen {
        row,
        at,
        mark: Mark { file: record.file, frame_no: record.frame_no, time_ns: record.time_ns },
        src_ip: frame.src_ip,
        dst_ip: frame.dst_ip,
        interface: record.interface,
        vni: frame.layers.has(Layers::VNI).then_some(frame.vni),
        if_index: frame.if_index,
        ip_id: frame.layers.has(Layers::IP_ID).then_some(frame.ip_id as u16),
        ttl: frame.ttl,
        traffic_class: frame.traffic_class,
        pcp: frame.layers.has(Layers::VLAN).then_some((frame.vlan_tci >> 13) as u8),
        is_from_us: match frame.direction {
            PacketDirection::FromUs => Some(true),
            PacketDirection::ToUs => Some(false),
            _ => None,
        },
        packet,
        is_icrc_bad: packet.icrc == Some(IcrcStatus::Bad),
        is_checksum_bad: has_proven && (is_wrong(frame.ip_checksum) || is_wrong(frame.l4_checksum)),
        is_proven: packet.icrc == Some(IcrcStatus::Ok),
        cm: cm.as_ref(),
    });
}

/// The connection management message in a datagram to queue pair 1.
fn connection_message(context: &Context<'_>, record: &Record, frame: &Frame, packet: &RocePacket) -> Option<CmMessage> {
    const MAD_AT: usize = RocePacket::BTH_BYTES + 8;
    if packet.opcode != 0x64 || packet.dest_qp != CmMessage::QPN || frame.layers.has(Layers::REASSEMBLED) {
        return None;
    }
    let bytes = context.decoded.window.bytes(record);
    CmMessage::parse(bytes.get((frame.payload_at as usize).checked_add(MAD_AT)?..)?)
}

/// Rows of `roce` in frame order, each with whether it waits.
#[derive(Default)]
struct RowHold {
    /// Running number of the first row held.
    base: u64,
    rows: VecDeque<(RoceRow, bool)>,
}

impl RowHold {
    fn push(&mut self, row: RoceRow) {
        // What no queue pair takes is never judged.
        let is_waiting = row.qp_id.is_some();
        self.rows.push_back((row, is_waiting));
    }

    fn len(&self) -> u64 {
        self.rows.len() as u64
    }

    fn set(&mut self, judgement: &RoceJudgement) {
        let Some(at) = judgement.row.checked_sub(self.base) else { return };
        let Some((row, is_waiting)) = self.rows.get_mut(at as usize) else { return };
        row.sent = judgement.sent.map(|sent| Symbol(sent.name()));
        row.cause = judgement.cause.map(|cause| Symbol(cause.name()));
        row.arrival = judgement.arrival.map(|arrival| Symbol(arrival.name()));
        row.evidence = Some(NameSet { bits: judgement.evidence.0, names: &RoceEvidence::NAMES });
        *is_waiting = false;
    }

    fn release(&mut self, sink: &mut Sink<RoceRow>) {
        while self.rows.front().is_some_and(|(_, is_waiting)| !is_waiting) {
            let Some((row, _)) = self.rows.pop_front() else { return };
            self.base += 1;
            sink.push(row);
        }
    }

    fn release_all(&mut self, sink: &mut Sink<RoceRow>) {
        self.base += self.rows.len() as u64;
        self.rows.drain(..).for_each(|(row, _)| sink.push(row));
    }
}
