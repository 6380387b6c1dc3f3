//! What happens to one window: decode, route, analyse, number, build.

use std::sync::Arc;

use super::attic::AtticFile;
use super::decoding::Decoding;
use super::finish;
use super::following::Following;
use super::gate::Gate;
use super::lldp::LldpStage;
use super::packet_columns;
use super::pause::PauseStage;
use super::roce::{RoceStage, needs_analysis};
use super::route::{SHARDS, number_flows, route};
use super::rows;
use super::shard::{Decoded, FlowNumbers, Shard, ShardNeeds};
use super::sink::Sink;
use super::story;
use super::tally::{ClockOrder, Marked, NextTime, Summary, Tally};
use super::tcp::TcpHold;
use crate::analyze::{Copy, CopyKind, DnsTracker, HoldLimits, ProbeTracker};
use crate::capture::{CaptureFacts, WINDOW_RECORDS, Window};
use crate::error::Error;
use crate::flow::{AddressBook, Fragments};
use crate::options::Options;
use crate::tables::*;
use crate::wire::DecodeConfig;

/// TCP segments that are followed in one go, at least and at most.
const FEWEST_SEGMENTS: usize = WINDOW_RECORDS / 2;
const MOST_SEGMENTS: usize = 16 * WINDOW_RECORDS;
/// So many segments of each connection shall be followed in one go: its state is fetched from memory once for all of them.
const SEGMENTS_PER_CONNECTION: usize = 32;
/// Frames whose segments are kept at most, however few they are.
const KEPT_FRAMES: usize = 1 << 20;

/// Columns of `tcp` that need the verdict analysis.
const VERDICT_COLUMNS: [&str; 6] =
    ["verdict", "cause", "outcome", "evidence", "retransmit_segments", "original_frame_no"];

/// One sink per table; `None` for what nobody asked for.
#[derive(Default)]
pub(crate) struct Sinks {
    pub packets: Option<Sink<PacketRow>>,
    pub tcp: Option<Sink<TcpRow>>,
    pub tcp_flows: Option<Sink<TcpFlowRow>>,
    pub tcp_events: Option<Sink<TcpEventRow>>,
    pub flows: Option<Sink<FlowRow>>,
    pub roce: Option<Sink<RoceRow>>,
    pub roce_qps: Option<Sink<RoceQpRow>>,
    pub roce_messages: Option<Sink<RoceMessageRow>>,
    pub roce_intervals: Option<Sink<RoceIntervalRow>>,
    pub roce_events: Option<Sink<RoceEventRow>>,
    pub pause: Option<Sink<PauseRow>>,
    pub pause_intervals: Option<Sink<PauseIntervalRow>>,
    pub lldp: Option<Sink<LldpRow>>,
    pub tunnels: Option<Sink<TunnelRow>>,
    pub probes: Option<Sink<ProbeRow>>,
    pub dns: Option<Sink<DnsRow>>,
    pub icmp: Option<Sink<IcmpRow>>,
    pub arp: Option<Sink<ArpRow>>,
    pub interfaces: Option<Sink<InterfaceRow>>,
    pub capture_quality: Option<Sink<QualityRow>>,
}

/// Runs `$body` with every sink that is there.
macro_rules! each_sink {
    ($sinks:expr, |$id:ident, $sink:ident| $body:expr) => {{
        let sinks = $sinks;
        each_sink!(@ sinks, $id, $sink, $body;
            packets Packets, tcp Tcp, tcp_flows TcpFlows, tcp_events TcpEvents, flows Flows, roce Roce,
            roce_qps RoceQps, roce_messages RoceMessages, roce_intervals RoceIntervals,
            roce_events RoceEvents, pause Pause, pause_intervals PauseIntervals, lldp Lldp, tunnels Tunnels,
            probes Probes, dns Dns, icmp Icmp, arp Arp, interfaces Interfaces, capture_quality CaptureQuality);
    }};
    (@ $sinks:ident, $id:ident, $sink:ident, $body:expr; $($field:ident $variant:ident),*) => {
        $( if let Some($sink) = &mut $sinks.$field { let $id = TableId::$variant; $body } )*
    };
}

/// The state of a run.
pub(crate) struct Core {
    pub options: Options,
    decoding: Decoding,
    pub sinks: Sinks,
    pub fragments: Fragments,
    pub shards: Vec<Shard>,
    /// Where the states of quiet connections lie that memory is too small for.
    pub attic_file: Arc<AtticFile>,
    order: Vec<u32>,
    flow_numbers: Vec<FlowNumbers>,
    /// `None` where no table names addresses.
    addresses: Option<AddressBook>,
    next_flow_id: u64,
    next_stream_id: u64,
    /// Where each frame's TCP segment is kept: shard in the upper 8 bits, index in the lower 24; `u32::MAX` for none.
    tcp_places: Vec<u32>,
    /// Frames of the windows whose segments are kept.
    kept_frames: u32,
    needs: ShardNeeds,
    /// Copies of this window, by place.
    copies: Vec<(u32, Copy)>,
    /// Copies by kind.
    pub copy_marks: [Marked; CopyKind::ALL.len()],
    pub probes: ProbeTracker,
    pub dns: DnsTracker,
    pub tally: Tally,
    pub clock: ClockOrder,
    pub first_time_ns: Option<i64>,
    latest_ns: Option<i64>,
    needs_flows: bool,
    tcp_hold: TcpHold,
    /// Enough segments are kept; they are followed while the next window is decoded.
    is_following_due: bool,
    pub fewest_segments: usize,
    pub most_segments: usize,
    /// `None` where no table needs it.
    pub roce: Option<RoceStage>,
    pub pauses: Option<PauseStage>,
    pub lldp: LldpStage,
    /// `None` until the last frame was seen.
    pub ending: Option<finish::FlowOrder>,
    pub events: Option<story::EventOrder>,
}

/// What building rows of a window needs.
pub(crate) struct Context<'a> {
    pub decoded: Decoded<'a>,
    /// Of each frame's flow; [`FlowNumbers::NONE`] for none.
    pub flow_numbers: &'a [FlowNumbers],
    /// Where the TCP segment of each frame is kept; see [`Core`].
    pub tcp_places: &'a [u32],
    /// Frames that are copies of earlier ones, by place, ascending.
    pub copies: &'a [(u32, Copy)],
    pub first_time_ns: Option<i64>,
    pub link_speed_bps: Option<u64>,
}

impl Core {
    pub fn new(options: &Options, sinks: Sinks, needs_flows: bool, stored_bytes: Option<u64>) -> Self {
        let hold = HoldLimits { rows: options.limits.hold_frames, time_ns: options.limits.hold_ns };
        let has_quality = sinks.capture_quality.is_some();
        let config = DecodeConfig::new(options);
        let attic_file = Arc::<AtticFile>::default();
        let stories = sinks.tcp_flows.is_some() || sinks.tcp_events.is_some();
        fn names<R: TableRow>(sink: Option<&Sink<R>>) -> bool {
            sink.is_some_and(|sink| sink.wants("src_ip") || sink.wants("dst_ip"))
        }
        let names_addresses = names(sinks.packets.as_ref()) || names(sinks.tcp.as_ref());
        let connections = has_quality || stories || sinks.flows.is_some();
        let needs = ShardNeeds {
            flow_limit: options.limits.flows / SHARDS + 1,
            streams: sinks.tcp.is_some() || stories,
            ws: sinks.tcp.is_some(),
            connections,
            // Connections and probes leave copies out, whatever else is asked for.
            copies: connections
                || sinks.probes.is_some()
                || sinks.dns.is_some()
                || sinks
                    .packets
                    .as_ref()
                    .is_some_and(|sink| sink.wants("duplicate_of") || sink.wants("duplicate_kind")),
            verdicts: stories || sinks.tcp.as_ref().is_some_and(|sink| VERDICT_COLUMNS.iter().any(|c| sink.wants(c))),
            stories,
            hold,
            hasher: config.hasher.clone(),
        };
        Self {
            options: options.clone(),
            roce: RoceStage::needed(&sinks, options),
            pauses: (has_quality || sinks.pause_intervals.is_some())
                .then(|| PauseStage::new(options, sinks.pause_intervals.is_some())),
            lldp: LldpStage::default(),
            ending: None,
            events: None,
            decoding: Decoding::new(config, options.checksums.is_on(stored_bytes)),
            sinks,
            fragments: Fragments::new(options.limits.fragment_bytes),
            shards: (0..SHARDS).map(|_| Shard::new(&attic_file)).collect(),
            attic_file,
            order: Vec::new(),
            flow_numbers: Vec::new(),
            addresses: names_addresses.then(AddressBook::default),
            next_flow_id: 0,
            next_stream_id: 0,
            tcp_places: Vec::new(),
            kept_frames: 0,
            probes: ProbeTracker::new(hold),
            dns: DnsTracker::new(hold),
            tally: Tally::default(),
            clock: ClockOrder::default(),
            first_time_ns: None,
            latest_ns: None,
            needs_flows,
            tcp_hold: TcpHold::default(),
            is_following_due: false,
            fewest_segments: FEWEST_SEGMENTS,
            most_segments: MOST_SEGMENTS,
            needs,
            copies: Vec::new(),
            copy_marks: Default::default(),
        }
    }

    /// Whether a window can be taken only together with the time of the record after it.
    pub fn needs_next(&self, window: &Window) -> bool {
        self.clock.needs_next(&window.records)
    }

    /// Takes a window through all stages, unless the run is to end before; `next`: see [`Self::needs_next`].
    pub fn process(&mut self, window: &Window, next: NextTime, gate: &mut Gate<'_, '_>) {
        if window.records.is_empty() {
            return;
        }
        if std::mem::take(&mut self.is_following_due) {
            let (decoding, following) = self.parts();
            gate.both(|gate| following.follow(gate), |gate| decoding.decode(window, gate));
        } else {
            self.decoding.decode(window, gate);
        }
        if gate.is_shut() {
            return;
        }
        self.decoding.add_to(&mut self.tally);
        self.decoding.join_fragments(window, &mut self.fragments, &mut self.tally);
        self.clock.watch(&window.records, next);
        if self.first_time_ns.is_none() {
            self.first_time_ns = window.records.iter().find_map(|record| record.time());
        }
        self.latest_ns = window.records.iter().filter_map(|record| record.time()).max().max(self.latest_ns);
        let ClockOrder { latest_ns, first_frame, now, .. } = &self.clock;
        let (now, first_frame) = (*now, *first_frame);
        let decoded = Decoded { window, chunks: self.decoding.chunks(), latest_ns, first_frame };
        if self.needs_flows {
            let hasher = (self.needs.streams || self.needs.verdicts).then_some(&self.needs.hasher);
            let starts = route(&decoded, &mut self.order, hasher);
            let order = &self.order;
            let (needs, place) = (&self.needs, self.kept_frames);
            gate.each(&mut self.shards, |at, shard| {
                let frames = order.get(starts[at]..starts[at + 1]).unwrap_or(&[]);
                shard.process(&decoded, frames, place, needs);
            });
            if gate.is_shut() {
                return;
            }
            number_flows(&mut self.shards, &mut self.next_flow_id, self.addresses.as_mut());
            self.copies.clear();
            self.copies.extend(self.shards.iter().flat_map(|shard| shard.copies.iter().copied()));
            self.copies.sort_unstable_by_key(|(at, _)| *at);
            self.tcp_places.clear();
            self.tcp_places.resize(window.records.len(), u32::MAX);
            self.flow_numbers.clear();
            self.flow_numbers.resize(window.records.len(), FlowNumbers::NONE);
            for (at, shard) in self.shards.iter().enumerate() {
                for (frame, numbers) in self.order[starts[at]..starts[at + 1]].iter().zip(shard.flow_numbers()) {
                    if let Some(numbers) = numbers {
                        self.flow_numbers[*frame as usize] = numbers;
                    }
                }
                for (index, frame) in shard.window_segments() {
                    if let Some(place) = self.tcp_places.get_mut((frame - self.kept_frames) as usize) {
                        *place = (at as u32) << 24 | index;
                    }
                }
            }
        }
        let context = Context {
            decoded,
            flow_numbers: if self.needs_flows { &self.flow_numbers } else { &[] },
            tcp_places: if self.needs.ws { &self.tcp_places } else { &[] },
            copies: if self.needs_flows { &self.copies } else { &[] },
            first_time_ns: self.first_time_ns,
            link_speed_bps: self.options.link_speed_bps,
        };
        if let Some(sink) = &mut self.sinks.probes {
            rows::follow_probes(&context, &mut self.probes);
            let first = self.first_time_ns;
            self.probes.release(Some(now), |probe| sink.push(rows::probe_row(&probe, first)));
        }
        if let Some(sink) = &mut self.sinks.dns {
            super::dns::follow(&context, &mut self.dns);
            let first = self.first_time_ns;
            self.dns.release(Some(now), |done| sink.push(super::dns::row(done, first)));
        }
        let hold = Some(&mut self.tcp_hold).filter(|_| self.needs.ws);
        build(&context, &mut self.sinks, hold, self.needs.verdicts, gate.is_parallel());
        if gate.is_shut() {
            return;
        }
        if let Some(roce) = &mut self.roce {
            roce.on_window(&context, now, gate, &mut self.sinks);
        }
        let by_network = self.roce.as_ref().map_or(&[][..], |roce| &roce.network_copies);
        for (at, copy) in context.copies {
            let is_by_network = copy.kind == CopyKind::SameInterface && by_network.binary_search(at).is_ok();
            if let Some(record) = window.records.get(*at as usize).filter(|_| !is_by_network) {
                self.copy_marks[copy.kind as usize].add(record);
            }
        }
        if let Some(pauses) = &mut self.pauses {
            pauses.on_window(&context, now, self.sinks.pause_intervals.as_mut());
        }
        self.lldp.on_window(&context, self.sinks.lldp.as_mut());
        if self.needs.ws && self.needs.verdicts {
            self.tcp_hold.place_rows(&mut self.shards, &self.tcp_places);
        }
        self.kept_frames += window.records.len() as u32;
        let kept: usize = self.shards.iter().map(Shard::kept_segments).sum();
        let connections: usize = self.shards.iter().map(Shard::active_connections).sum();
        let wanted = connections.saturating_mul(SEGMENTS_PER_CONNECTION);
        let wanted = wanted.clamp(self.fewest_segments, self.most_segments);
        self.is_following_due = kept >= wanted || self.kept_frames as usize > KEPT_FRAMES;
    }

    /// What decodes the next window, and what follows the segments of those before it.
    fn parts(&mut self) -> (&mut Decoding, Following<'_>) {
        let following = Following {
            needs: &self.needs,
            now: self.clock.now,
            shards: &mut self.shards,
            next_stream_id: &mut self.next_stream_id,
            sink: self.sinks.tcp.as_mut(),
            hold: &mut self.tcp_hold,
            kept_frames: &mut self.kept_frames,
        };
        (&mut self.decoding, following)
    }

    /// Ends the run: what was held, what is known only now.
    ///
    /// It takes several calls, so that the rows of very many connections need not lie in memory all at once; says whether
    /// this was the last.
    pub fn finish(&mut self, facts: &CaptureFacts, gate: &mut Gate<'_, '_>) -> bool {
        if self.ending.is_none() {
            self.finish_following(gate);
            self.ending = Some(finish::FlowOrder::of(&self.shards));
        }
        if finish::flow_tables(self, gate) && !gate.is_shut() {
            return false;
        }
        if story::event_table(self, gate) && !gate.is_shut() {
            return false;
        }
        if gate.is_shut() {
            return true;
        }
        if let Some(roce) = &mut self.roce {
            roce.finish(self.latest_ns.unwrap_or(0), self.first_time_ns, &mut self.sinks);
        }
        if let Some(pauses) = &mut self.pauses {
            let (latest_ns, speed) = (self.latest_ns.unwrap_or(0), self.options.link_speed_bps);
            let (now, sink) = (self.clock.now, self.sinks.pause_intervals.as_mut());
            pauses.finish(now, latest_ns, self.first_time_ns, speed, sink);
        }
        finish::capture_tables(self, facts);
        // Side by side: of a million connections that takes a while.
        gate.each(&mut self.shards, |_, shard| *shard = Shard::default());
        each_sink!(&mut self.sinks, |_id, sink| sink.flush());
        true
    }

    /// No frame comes any more: what waits is decided.
    fn finish_following(&mut self, gate: &mut Gate<'_, '_>) {
        self.parts().1.follow(gate);
        if gate.is_shut() {
            return;
        }
        if let Some(sink) = &mut self.sinks.probes {
            let first = self.first_time_ns;
            self.probes.release(None, |probe| sink.push(rows::probe_row(&probe, first)));
        }
        if let Some(sink) = &mut self.sinks.dns {
            let first = self.first_time_ns;
            self.dns.release(None, |done| sink.push(super::dns::row(done, first)));
        }
        let (needs, now) = (&self.needs, self.clock.now);
        gate.each(&mut self.shards, |_, shard| shard.finish_verdicts(now, &needs.hold));
        if gate.is_shut() {
            return;
        }
        if let Some(sink) = &mut self.sinks.tcp {
            self.tcp_hold.judge(&mut self.shards);
            self.tcp_hold.release(sink, self.needs.verdicts, true, gate.is_parallel());
        }
        gate.each(&mut self.shards, |_, shard| shard.finish_stories());
    }

    /// Whether batches wait to be taken, or a failure.
    pub fn has_batches(&mut self) -> bool {
        let mut has_any = self.attic_file.has_failed();
        each_sink!(&mut self.sinks, |_id, sink| has_any |= !sink.batches.is_empty() || sink.failure.is_some());
        has_any
    }

    /// The batches finished so far, in the order of tables.
    pub fn take_batches(&mut self) -> Result<Vec<(TableId, arrow_array::RecordBatch)>, Error> {
        if let Some(error) = self.attic_file.failure() {
            return Err(error);
        }
        let mut batches = Vec::new();
        each_sink!(&mut self.sinks, |id, sink| {
            if let Some(error) = sink.failure.take() {
                return Err(error);
            }
            batches.extend(sink.batches.drain(..).map(|batch| (id, batch)));
        });
        Ok(batches)
    }

    pub fn summary(&self) -> Summary {
        self.tally.summary()
    }
}

/// Builds the rows of the window's tables; each large table is one task.
fn build(context: &Context<'_>, sinks: &mut Sinks, tcp_hold: Option<&mut TcpHold>, is_judged: bool, is_parallel: bool) {
    let Sinks { packets, tcp, roce, pause, tunnels, icmp, arp, .. } = sinks;
    let small = || {
        if let Some((sink, hold)) = tcp.as_ref().zip(tcp_hold) {
            hold.add_window(context, sink, is_judged);
        }
        // Rows with columns from the analysis come out later.
        if let Some(sink) = roce.as_mut().filter(|sink| !needs_analysis(sink)) {
            rows::roce_rows(context, sink);
        }
        if let Some(sink) = pause {
            rows::pause_rows(context, sink);
        }
        if let Some(sink) = tunnels {
            rows::tunnel_rows(context, sink);
        }
        if let Some(sink) = icmp {
            rows::icmp_rows(context, sink);
        }
        if let Some(sink) = arp {
            rows::arp_rows(context, sink);
        }
    };
    let mut large = || {
        if let Some(sink) = packets {
            packet_columns::packet_rows(context, sink, is_parallel);
        }
    };
    if is_parallel {
        rayon::join(large, small);
    } else {
        large();
        small();
    }
}
