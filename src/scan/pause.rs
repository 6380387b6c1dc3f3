//! The pause stage of a run: a small state for the whole capture, told the window's frames in order.

use super::core::Context;
use super::rows::{file_no, relative};
use super::sink::Sink;
use crate::analyze::{Mark, Moment, PauseInterval, PauseTracker};
use crate::options::Options;
use crate::tables::*;
use crate::wire::{Ip, Layers, Mac, Protocol};

/// Pauses of one class, added up for the findings.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ClassPauses {
    pub pauses: u64,
    pub known_ns: i64,
    pub longest_ns: i64,
    /// Pauses that a frame ended (XON), and their times until it: all together, and the longest.
    pub xons: u64,
    pub to_xon_ns: i64,
    pub longest_to_xon_ns: i64,
    pub storms: u64,
    pub first: Option<(u16, u64, i64)>,
}

pub(crate) struct PauseStage {
    tracker: PauseTracker,
    /// Whether traffic is watched as well.
    has_traffic: bool,
    storm_ns: i64,
    /// By PFC class; the ninth is PAUSE.
    pub(super) by_class: [ClassPauses; 9],
}

impl PauseStage {
    pub fn new(options: &Options, has_traffic: bool) -> Self {
        Self {
            tracker: PauseTracker::new(options.link_speed_bps),
            has_traffic,
            storm_ns: options.pause_storm_ns,
            by_class: [ClassPauses::default(); 9],
        }
    }

    pub fn on_window(&mut self, context: &Context<'_>, now: Moment, sink: Option<&mut Sink<PauseIntervalRow>>) {
        let has_pauses = context.decoded.chunks.iter().any(|chunk| !chunk.pause.is_empty());
        if has_pauses || self.has_traffic {
            for (at, record, frame, chunk) in context.frames() {
                let now_ns = context.decoded.moment(at).ns;
                let mac = if frame.layers.has(Layers::MACS) { frame.src_mac } else { Mac::default() };
                if matches!(frame.protocol, Protocol::Pause | Protocol::Pfc) {
                    let mark = Mark { file: record.file, frame_no: record.frame_no, time_ns: record.time_ns };
                    if let Some(pause) = chunk.pause.get(frame.detail as usize) {
                        self.tracker.on_pause(record.interface, mac, pause, mark, now_ns);
                    }
                } else if self.has_traffic && frame.layers.has(Layers::IP) {
                    let class = match frame.layers.has(Layers::VLAN) {
                        true => (frame.vlan_tci >> 13) as u8,
                        false => frame.dscp() >> 3,
                    };
                    let (bytes, time_ns) = (record.original_bytes, record.time_ns);
                    self.tracker.catch_up(now_ns);
                    self.tracker.on_traffic(record.interface, mac, class, frame.flow_hash, bytes, time_ns);
                }
            }
        }
        let over = self.tracker.finished(now.ns);
        self.put(over, context.first_time_ns, context.link_speed_bps, sink);
    }

    pub fn finish(
        &mut self,
        now: Moment,
        latest_ns: i64,
        first_ns: Option<i64>,
        link_speed_bps: Option<u64>,
        sink: Option<&mut Sink<PauseIntervalRow>>,
    ) {
        let over = self.tracker.finish(now.ns, latest_ns);
        self.put(over, first_ns, link_speed_bps, sink);
    }

    fn put(
        &mut self,
        over: Vec<PauseInterval>,
        first_ns: Option<i64>,
        link_speed_bps: Option<u64>,
        mut sink: Option<&mut Sink<PauseIntervalRow>>,
    ) {
        for interval in over {
            // Without a link speed a pause may have run out before it was ended.
            let until_ns = interval.end_ns.filter(|_| link_speed_bps.is_some());
            let duration_ns = until_ns.map(|end_ns| end_ns.saturating_sub(interval.start.time_ns));
            let is_storm = duration_ns.map(|duration_ns| duration_ns >= self.storm_ns);
            let class = interval.port.class.filter(|_| interval.port.is_pfc).map_or(8, usize::from);
            if let Some(sum) = self.by_class.get_mut(class) {
                sum.pauses += 1;
                sum.known_ns = sum.known_ns.saturating_add(duration_ns.unwrap_or(0));
                sum.longest_ns = sum.longest_ns.max(duration_ns.unwrap_or(0));
                if let Some(end_ns) = interval.end_ns.filter(|_| interval.ended_by == "xon") {
                    let to_xon_ns = end_ns.saturating_sub(interval.start.time_ns);
                    sum.xons += 1;
                    sum.to_xon_ns = sum.to_xon_ns.saturating_add(to_xon_ns);
                    sum.longest_to_xon_ns = sum.longest_to_xon_ns.max(to_xon_ns);
                }
                sum.storms += u64::from(is_storm == Some(true));
                let start = interval.start;
                sum.first = sum.first.or(Some((start.file, start.frame_no, start.time_ns)));
            }
            if let Some(sink) = &mut sink {
                sink.push(row(&interval, duration_ns, is_storm, first_ns));
            }
        }
    }
}

fn row(
    interval: &PauseInterval,
    duration_ns: Option<i64>,
    is_storm: Option<bool>,
    first_ns: Option<i64>,
) -> PauseIntervalRow {
    let start = interval.start;
    PauseIntervalRow {
        file_no: file_no(start.file),
        frame_no: start.frame_no,
        time: Some(TimeNs(start.time_ns)),
        time_rel_ns: relative(Some(start.time_ns), first_ns),
        interface_id: interval.port.interface,
        kind: Symbol(if interval.port.is_pfc { "PFC" } else { "PAUSE" }),
        class: interval.port.class,
        src_mac: (interval.port.src_mac != [0; 6]).then_some(Mac(interval.port.src_mac)),
        end: interval.end_ns.map(TimeNs),
        duration_ns,
        ended_by: Symbol(interval.ended_by),
        pause_count: interval.requests,
        quanta: interval.largest_quanta,
        is_storm: is_storm == Some(true),
        carried_count: interval.carried,
        carried_bytes: interval.carried_bytes,
        sharing_flow_count: interval.sharing_flows,
        frames: FrameList(interval.frames.list().to_vec()),
    }
}

impl TableRow for PauseIntervalRow {
    type Builder = PauseIntervalBuilder;
    fn definition() -> &'static TableDef {
        Self::table()
    }
    fn subject(&self) -> RowSubject {
        RowSubject::of(self.time, [Ip::NONE; 4], None, None)
    }
}
