//! The RoCE stage of a run: routes a window's RoCE packets to fabrics by address pair, numbers queue pairs and messages, and
//! holds rows of `roce` until what is said of them is final. Does nothing where a window has no RoCE packet.

use std::collections::VecDeque;
use std::ops::Range;

use super::core::{Context, Sinks};
use super::gate::Gate;
use super::rows::{roce_of, roce_row};
use super::sink::Sink;
use super::{roce_intervals, roce_story};
use crate::analyze::{
    Fabric, HoldLimits, LeftOut, Mark, Moment, NO_CHANNEL, NO_MESSAGE, RoceEvidence, RoceJudgement, RoceSeen,
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
    /// Messages that may wait.
    most_messages: u64,
    held: RowHold,
    messages: VecDeque<Option<RoceMessageRow>>,
    /// Number of the first message held.
    first_message: u64,
    /// Queue pair and message of each packet of the window, by its running number.
    window_ids: Vec<(u64, u64)>,
    /// Places of the window's requests that the network copied, ascending once the window is done.
    pub network_copies: Vec<u32>,
    /// The first packet with a right invariant CRC: from there on wrong checksums are damage.
    proven_row: Option<u64>,
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
        let hold = HoldLimits { rows: options.limits.hold_frames, time_ns: options.limits.hold_ns };
        Some(Self {
            fabrics: (0..FABRICS).map(|_| Fabric::new(hold, &options.roce_endpoints)).collect(),
            places: vec![Vec::new(); FABRICS],
            rows: 0,
            next_qp: 0,
            next_message: 0,
            most_messages: hold.rows,
            held: RowHold::default(),
            messages: VecDeque::new(),
            first_message: 0,
            window_ids: Vec::new(),
            network_copies: Vec::new(),
            proven_row: None,
        })
    }

    pub fn on_window(&mut self, context: &Context<'_>, now: Moment, gate: &mut Gate<'_, '_>, sinks: &mut Sinks) {
        self.network_copies.clear();
        let has_roce = context.decoded.chunks.iter().any(|chunk| !chunk.roce.is_empty());
        if !has_roce && self.rows == 0 {
            return;
        }
        let first_row = self.rows;
        self.places.iter_mut().for_each(Vec::clear);
        if has_roce {
            for (at, _, frame, chunk) in context.frames() {
                if let Some(packet) = roce_of(frame, chunk) {
                    if packet.icrc == Some(IcrcStatus::Ok) {
                        self.proven_row.get_or_insert(self.rows);
                    }
                    let fabric = (frame.flow_hash >> 58) as usize % FABRICS;
                    self.places[fabric].push((at as u32, self.rows));
                    self.rows += 1;
                }
            }
        }
        self.window_ids.clear();
        // What too many messages lead to comes after certain packets of the capture, wherever its windows end.
        let every = (self.most_messages / 8).max(1);
        let mut from = first_row;
        loop {
            let until = (from - from % every).saturating_add(every).min(self.rows);
            let is_last = until == self.rows;
            self.follow(context, from..until, is_last.then_some(now), gate);
            if gate.is_shut() {
                return;
            }
            self.number(from..until);
            let copies = self.fabrics.iter().flat_map(|fabric| fabric.out.network_copies.iter().copied());
            self.network_copies.extend(copies);
            if until.is_multiple_of(every) {
                let before = self.next_message.saturating_sub(self.most_messages);
                self.fabrics.iter_mut().for_each(|fabric| fabric.end_messages(before, self.next_message));
            }
            self.take_messages(context.first_time_ns, sinks);
            if is_last {
                break;
            }
            from = until;
        }
        self.network_copies.sort_unstable();
        if let Some(sink) = sinks.roce.as_mut().filter(|sink| needs_analysis(sink)) {
            self.hold_rows(context, first_row);
            self.judge();
            self.held.release(sink);
        } else {
            for fabric in &mut self.fabrics {
                fabric.out.moved.clear();
                fabric.out.judgements.clear();
            }
        }
    }

    /// Tells the fabrics their packets among these rows, and with the last of a window how far the capture has come.
    fn follow(&mut self, context: &Context<'_>, rows: Range<u64>, now: Option<Moment>, gate: &mut Gate<'_, '_>) {
        let (places, proven_row) = (&self.places, self.proven_row);
        gate.each(&mut self.fabrics, |at, fabric| {
            fabric.begin_part();
            for (at, row) in within(&places[at], &rows) {
                on_packet(context, fabric, (*at, *row), proven_row.is_some_and(|proven| proven <= *row));
            }
            if let Some(now) = now {
                fabric.rest(now);
            }
        });
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
    fn number(&mut self, rows: Range<u64>) {
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
        let first = self.window_ids.len();
        self.window_ids.resize(first + (rows.end - rows.start) as usize, (u64::MAX, NO_MESSAGE));
        for (fabric, places) in self.fabrics.iter().zip(&self.places) {
            let mut of_fabric = within(places, &rows).iter();
            for placed in &fabric.out.placed {
                let Some((_, row)) = of_fabric.by_ref().find(|(at, _)| *at == placed.at) else { continue };
                let qp = fabric.channel(placed.channel).filter(|_| placed.channel != NO_CHANNEL);
                if let Some(ids) = self.window_ids.get_mut(first + (row - rows.start) as usize) {
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
            let mut moved = fabric.out.moved.drain(..).peekable();
            for (at, judgement) in fabric.out.judgements.drain(..).enumerate() {
                while let Some((row, message, _)) = moved.next_if(|(.., before)| *before <= at) {
                    self.held.move_to(row, message);
                }
                self.held.set(&judgement);
            }
            moved.for_each(|(row, message, _)| self.held.move_to(row, message));
        }
    }

    /// Takes the messages that ended, and gives out those before the first that has not.
    fn take_messages(&mut self, first_ns: Option<i64>, sinks: &mut Sinks) {
        let Some(sink) = &mut sinks.roce_messages else {
            self.fabrics.iter_mut().for_each(|fabric| fabric.out.finished.clear());
            return;
        };
        let wanted = (self.next_message - self.first_message) as usize;
        self.messages.resize_with(wanted.max(self.messages.len()), || None);
        for fabric in &mut self.fabrics {
            let mut finished = std::mem::take(&mut fabric.out.finished);
            for done in &finished {
                let place = done.message.id.checked_sub(self.first_message).and_then(|at| usize::try_from(at).ok());
                let slot = place.and_then(|at| self.messages.get_mut(at));
                if let Some((channel, slot)) = fabric.channel(done.channel).zip(slot) {
                    *slot = Some(roce_story::message_row(channel, done, first_ns));
                }
            }
            finished.clear();
            fabric.out.finished = finished;
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

/// The places of these rows.
fn within<'a>(places: &'a [(u32, u64)], rows: &Range<u64>) -> &'a [(u32, u64)] {
    let before = |end: u64| places.partition_point(|(_, row)| *row < end);
    places.get(before(rows.start)..before(rows.end)).unwrap_or(&[])
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
        moment: context.decoded.moment(at as usize),
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

    fn set(&mut self, judgement: &RoceJudgement) {
        let Some(at) = judgement.row.checked_sub(self.base) else { return };
        let Some((row, is_waiting)) = self.rows.get_mut(at as usize) else { return };
        row.sent = judgement.sent.map(|sent| Symbol(sent.name()));
        row.cause = judgement.cause.map(|cause| Symbol(cause.name()));
        row.arrival = judgement.arrival.map(|arrival| Symbol(arrival.name()));
        row.evidence = Some(NameSet { bits: judgement.evidence.0, names: &RoceEvidence::NAMES });
        *is_waiting = false;
    }

    /// A row is of another message, unless it is told by now.
    fn move_to(&mut self, row: u64, message: u64) {
        let held = row.checked_sub(self.base).and_then(|at| self.rows.get_mut(at as usize));
        if let Some((row, true)) = held {
            row.message_id = Some(message).filter(|id| *id != NO_MESSAGE);
        }
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
