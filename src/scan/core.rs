//! What happens to one window: decode, route, analyse, number, build.

use rayon::prelude::*;

use super::finish;
use super::rows;
use super::shard::{CHUNK_RECORDS, Decoded, Shard, TcpOut};
use super::sink::Sink;
use super::tally::{ClockOrder, Summary, Tally};
use crate::analyze::ProbeTracker;
use crate::capture::{CaptureFacts, Window};
use crate::error::Error;
use crate::flow::{Arrival, FlowRef, Fragments};
use crate::options::Options;
use crate::tables::*;
use crate::wire::{Chunk, DecodeConfig, Layers, decode};

/// Shards are a fixed number, whatever the threads: nothing about the rows may depend on the machine.
const SHARDS: usize = 64;

/// One sink per table; `None` for what nobody asked for.
#[derive(Default)]
pub(crate) struct Sinks {
    pub packets: Option<Sink<PacketRow>>,
    pub tcp: Option<Sink<TcpRow>>,
    pub tcp_flows: Option<Sink<TcpFlowRow>>,
    pub flows: Option<Sink<FlowRow>>,
    pub roce: Option<Sink<RoceRow>>,
    pub pause: Option<Sink<PauseRow>>,
    pub tunnels: Option<Sink<TunnelRow>>,
    pub probes: Option<Sink<ProbeRow>>,
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
            packets Packets, tcp Tcp, tcp_flows TcpFlows, flows Flows, roce Roce, pause Pause, tunnels Tunnels,
            probes Probes, icmp Icmp, arp Arp, interfaces Interfaces, capture_quality CaptureQuality);
    }};
    (@ $sinks:ident, $id:ident, $sink:ident, $body:expr; $($field:ident $variant:ident),*) => {
        $( if let Some($sink) = &mut $sinks.$field { let $id = TableId::$variant; $body } )*
    };
}

/// The state of a run.
pub(crate) struct Core {
    pub options: Options,
    config: DecodeConfig,
    pub sinks: Sinks,
    chunks: Vec<Chunk>,
    tallies: Vec<Tally>,
    pub fragments: Fragments,
    pub shards: Vec<Shard>,
    order: Vec<u32>,
    flow_ids: Vec<u64>,
    next_flow_id: u64,
    next_stream_id: u64,
    /// Place of each frame's TCP findings: shard in the upper 8 bits; `u32::MAX` for none.
    tcp_places: Vec<u32>,
    needs_streams: bool,
    pub probes: ProbeTracker,
    pub tally: Tally,
    pub clock: ClockOrder,
    pub first_time_ns: Option<i64>,
    latest_ns: Option<i64>,
    needs_flows: bool,
}

/// What building rows of a window needs.
pub(crate) struct Context<'a> {
    pub decoded: Decoded<'a>,
    /// Flow number of each frame; `u64::MAX` for none.
    pub flow_ids: &'a [u64],
    tcp_places: &'a [u32],
    shards: &'a [Shard],
    pub first_time_ns: Option<i64>,
    pub link_speed_bps: Option<u64>,
}

impl Context<'_> {
    /// What analysis says of the TCP segment in the frame at a place of the window, and its stream's number.
    pub fn tcp_out(&self, at: usize) -> Option<(&TcpOut, u64)> {
        let place = self.tcp_places.get(at).copied().filter(|place| *place != u32::MAX)?;
        let shard = self.shards.get((place >> 24) as usize)?;
        let out = shard.tcp.get((place & 0x00ff_ffff) as usize)?;
        Some((out, shard.streams.streams.get(out.stream as usize)?.id))
    }
}

impl Core {
    pub fn new(options: &Options, sinks: Sinks, needs_flows: bool) -> Self {
        let needs_streams = sinks.tcp.is_some() || sinks.tcp_flows.is_some();
        Self {
            options: options.clone(),
            config: DecodeConfig::new(options),
            sinks,
            chunks: Vec::new(),
            tallies: Vec::new(),
            fragments: Fragments::new(options.limits.fragment_bytes),
            shards: (0..SHARDS).map(|_| Shard::default()).collect(),
            order: Vec::new(),
            flow_ids: Vec::new(),
            next_flow_id: 0,
            next_stream_id: 0,
            tcp_places: Vec::new(),
            probes: ProbeTracker::default(),
            tally: Tally::default(),
            clock: ClockOrder::default(),
            first_time_ns: None,
            latest_ns: None,
            needs_flows,
            needs_streams,
        }
    }

    /// Takes a window through all stages. Must run inside the pool where `is_parallel`.
    pub fn process(&mut self, window: &Window, is_parallel: bool) {
        if window.records.is_empty() {
            return;
        }
        let used = self.decode(window, is_parallel);
        for tally in &self.tallies[..used] {
            self.tally.merge(tally);
        }
        self.join_fragments(window, used);
        self.clock.watch(window);
        if self.first_time_ns.is_none() {
            self.first_time_ns = window.records.iter().find_map(|record| record.time());
        }
        let decoded = Decoded { window, chunks: &self.chunks[..used] };
        if self.needs_flows {
            let starts = route(&decoded, &mut self.order);
            let flow_limit = self.options.limits.flows / SHARDS + 1;
            let order = &self.order;
            let needs_streams = self.needs_streams;
            let follow = |(at, shard): (usize, &mut Shard)| {
                let frames = order.get(starts[at]..starts[at + 1]).unwrap_or(&[]);
                shard.process(&decoded, frames, flow_limit, needs_streams);
            };
            match is_parallel {
                true => self.shards.par_iter_mut().enumerate().for_each(follow),
                false => self.shards.iter_mut().enumerate().for_each(follow),
            }
            number_flows(&mut self.shards, &mut self.next_flow_id);
            number_streams(&mut self.shards, &mut self.next_stream_id);
            self.tcp_places.clear();
            self.tcp_places.resize(window.records.len(), u32::MAX);
            self.flow_ids.clear();
            self.flow_ids.resize(window.records.len(), u64::MAX);
            for (at, shard) in self.shards.iter().enumerate() {
                for (frame, flow) in self.order[starts[at]..starts[at + 1]].iter().zip(&shard.refs) {
                    if *flow != FlowRef::NONE {
                        self.flow_ids[*frame as usize] = shard.flows.flows[flow.0 as usize].id;
                    }
                }
                for (place, out) in shard.tcp.iter().enumerate() {
                    self.tcp_places[out.at as usize] = (at as u32) << 24 | place as u32;
                }
            }
        }
        let context = Context {
            decoded,
            flow_ids: if self.needs_flows { &self.flow_ids } else { &[] },
            tcp_places: if self.needs_streams { &self.tcp_places } else { &[] },
            shards: &self.shards,
            first_time_ns: self.first_time_ns,
            link_speed_bps: self.options.link_speed_bps,
        };
        if let Some(sink) = &mut self.sinks.probes {
            rows::follow_probes(&context, &mut self.probes);
            self.latest_ns = window.records.iter().filter_map(|record| record.time()).max().max(self.latest_ns);
            let limits = &self.options.limits;
            let first = self.first_time_ns;
            self.probes.release(self.latest_ns, limits.hold_ns, limits.hold_frames, |probe| {
                sink.push(rows::probe_row(&probe, first));
            });
        }
        build(&context, &mut self.sinks, is_parallel);
    }

    /// Fragments find each other in the order of the frames, before the frames part.
    fn join_fragments(&mut self, window: &Window, used: usize) {
        if self.chunks[..used].iter().all(|chunk| chunk.fragments.is_empty()) {
            return;
        }
        let chunks = &mut self.chunks[..used];
        for chunk in 0..used {
            for at in 0..chunks[chunk].fragments.len() {
                let frame = chunks[chunk].fragments[at] as usize;
                let Some(record) = window.records.get(chunk * CHUNK_RECORDS + frame) else { continue };
                let arrival = Arrival {
                    place: (chunk, frame),
                    interface: record.interface,
                    time_ns: record.time(),
                    bytes: window.bytes(record),
                };
                if let Some((before, after)) = self.fragments.on_fragment(&arrival, chunks, &self.config) {
                    self.tally.recount(before, after);
                }
            }
        }
        self.fragments.end_window();
    }

    fn decode(&mut self, window: &Window, is_parallel: bool) -> usize {
        let used = window.records.len().div_ceil(CHUNK_RECORDS);
        if self.chunks.len() < used {
            self.chunks.resize_with(used, Chunk::default);
            self.tallies.resize_with(used, Tally::default);
        }
        let config = &self.config;
        let work = |((chunk, tally), records): ((&mut Chunk, &mut Tally), &[crate::capture::Record])| {
            chunk.clear();
            *tally = Tally::default();
            for record in records {
                decode(record.link, window.bytes(record), record.original_bytes, config, chunk);
            }
            tally.count(records, chunk);
        };
        let chunks = &mut self.chunks[..used];
        let tallies = &mut self.tallies[..used];
        match is_parallel {
            true => chunks
                .par_iter_mut()
                .zip(tallies.par_iter_mut())
                .zip(window.records.par_chunks(CHUNK_RECORDS))
                .for_each(work),
            false => {
                chunks.iter_mut().zip(tallies.iter_mut()).zip(window.records.chunks(CHUNK_RECORDS)).for_each(work);
            }
        }
        used
    }

    /// Ends the run: what was held, what is known only now.
    pub fn finish(&mut self, facts: &CaptureFacts) {
        if let Some(sink) = &mut self.sinks.probes {
            let first = self.first_time_ns;
            self.probes.release(None, 0, 0, |probe| sink.push(rows::probe_row(&probe, first)));
        }
        finish::flow_tables(self);
        finish::capture_tables(self, facts);
        each_sink!(&mut self.sinks, |_id, sink| sink.flush());
    }

    /// The batches finished so far, in the order of tables.
    pub fn take_batches(&mut self) -> Result<Vec<(TableId, arrow_array::RecordBatch)>, Error> {
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

/// Sorts the window's frames by shard, keeping their order: a counting sort. Returns where each shard's frames start.
fn route(decoded: &Decoded<'_>, order: &mut Vec<u32>) -> [usize; SHARDS + 1] {
    let shard_of = |hash: u64| (hash >> 58) as usize % SHARDS;
    let mut starts = [0; SHARDS + 1];
    let frames = || decoded.chunks.iter().flat_map(|chunk| &chunk.frames).enumerate();
    for (_, frame) in frames().filter(|(_, frame)| frame.layers.has(Layers::IP)) {
        starts[shard_of(frame.flow_hash) + 1] += 1;
    }
    for at in 0..SHARDS {
        starts[at + 1] += starts[at];
    }
    let mut next = starts;
    order.clear();
    order.resize(starts[SHARDS], 0);
    for (at, frame) in frames().filter(|(_, frame)| frame.layers.has(Layers::IP)) {
        let place = &mut next[shard_of(frame.flow_hash)];
        order[*place] = at as u32;
        *place += 1;
    }
    starts
}

/// Gives the flows that are new in this window their numbers, in the order of their first frames.
fn number_flows(shards: &mut [Shard], next_id: &mut u64) {
    let mut fresh: Vec<(u32, usize, usize)> = Vec::new();
    for (at, shard) in shards.iter_mut().enumerate() {
        let table = &mut shard.flows;
        let new = table.numbered..table.flows.len();
        fresh.extend(new.map(|flow| (table.flows[flow].first_in_window, at, flow)));
        table.numbered = table.flows.len();
    }
    fresh.sort_unstable();
    for (_, shard, flow) in fresh {
        shards[shard].flows.flows[flow].id = *next_id;
        *next_id += 1;
    }
}

/// The same for Wireshark's streams.
fn number_streams(shards: &mut [Shard], next_id: &mut u64) {
    let mut fresh: Vec<(u32, usize, usize)> = Vec::new();
    for (at, shard) in shards.iter_mut().enumerate() {
        let table = &mut shard.streams;
        let new = table.numbered..table.streams.len();
        fresh.extend(new.map(|stream| (table.streams[stream].first_in_window, at, stream)));
        table.numbered = table.streams.len();
    }
    fresh.sort_unstable();
    for (_, shard, stream) in fresh {
        shards[shard].streams.streams[stream].id = *next_id;
        *next_id += 1;
    }
}

/// Builds the rows of the window's tables; each table is one task.
fn build(context: &Context<'_>, sinks: &mut Sinks, is_parallel: bool) {
    let Sinks { packets, tcp, roce, pause, tunnels, icmp, arp, .. } = sinks;
    let mut small = || {
        if let Some(sink) = roce {
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
            rows::packet_rows(context, sink);
        }
    };
    let mut middle = || {
        if let Some(sink) = tcp {
            rows::tcp_rows(context, sink);
        }
    };
    if is_parallel {
        rayon::join(large, || rayon::join(middle, small));
    } else {
        large();
        middle();
        small();
    }
}
