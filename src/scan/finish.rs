//! Tables that are complete only when the capture was read: flows, connections, interfaces, findings.

use rayon::prelude::*;

use super::core::Core;
use super::gate::{Gate, ROWS_BETWEEN_LOOKS};
use super::quality::findings;
use super::rows::{file_no, relative};
use super::shard::Shard;
use super::sink::BATCH_ROWS;
use crate::analyze::{
    Cause, Connection, DirectionSummary, Outcome, Side, SideStory, StorySummary, Verdict, VerdictSummary,
};
use crate::capture::{CaptureFacts, Finding};
use crate::flow::{Endpoint, FlowState};
use crate::tables::*;
use crate::wire::Ip;
use crate::words::{self, Lang};

/// Flows whose rows are built in one go: few, since several such parts may be on their way to a file.
const ROWS_AT_A_TIME: usize = BATCH_ROWS / 2;

/// The flows of all shards in the order of their numbers, and how many of them have their rows.
pub(crate) struct FlowOrder {
    /// Number, shard and index in the shard.
    flows: Vec<(u64, u32, u32)>,
    done: usize,
}

impl FlowOrder {
    pub fn of(shards: &[Shard]) -> Self {
        let mut flows = Vec::with_capacity(shards.iter().map(|shard| shard.flows.flows.len()).sum());
        for (at, shard) in shards.iter().enumerate() {
            flows.extend(shard.flows.flows.iter().enumerate().map(|(flow, state)| (state.id, at as u32, flow as u32)));
        }
        flows.sort_unstable();
        Self { flows, done: 0 }
    }

    fn next(&mut self) -> Vec<(u64, u32, u32)> {
        let next: Vec<_> = self.flows.iter().skip(self.done).take(ROWS_AT_A_TIME).copied().collect();
        self.done += next.len();
        if self.done == self.flows.len() {
            self.flows = Vec::new();
        }
        next
    }
}

/// Builds the rows of the next flows; says whether there are more to come.
pub(super) fn flow_tables(core: &mut Core, gate: &mut Gate<'_, '_>) -> bool {
    if core.sinks.flows.is_none() && core.sinks.tcp_flows.is_none() {
        return false;
    }
    let Some(order) = &mut core.ending else { return false };
    let flows = order.next();
    let (shards, first_ns) = (&core.shards, core.first_time_ns);
    let (has_flows, has_tcp_flows) = (core.sinks.flows.is_some(), core.sinks.tcp_flows.is_some());
    let rows_of = |(_, shard, flow): &(u64, u32, u32)| {
        let (shard, flow) = (&shards[*shard as usize], *flow as usize);
        let state = &shard.flows.flows[flow];
        let connection = shard.connections.get(flow);
        let connection = connection.as_deref();
        let of_flow = has_flows.then(|| flow_row(state, connection, first_ns));
        let of_connection = connection.filter(|_| has_tcp_flows).map(|connection| {
            let stream = shard.streams.streams.get(state.stream as usize).map(|stream| stream.id);
            let (verdicts, story) = shard
                .tell(flow, |story, verdicts| {
                    (*verdicts, story.map(|story| story.summary(verdicts)).unwrap_or_default())
                })
                .unwrap_or_default();
            let row = tcp_flow_row(state, connection, &verdicts, &story, first_ns);
            TcpFlowRow { tcp_stream: stream, ..row }
        });
        (of_flow, of_connection)
    };
    for some in flows.chunks(ROWS_BETWEEN_LOOKS / 4) {
        if gate.is_shut() {
            return false;
        }
        let rows: Vec<_> = if gate.is_parallel() {
            some.par_iter().with_min_len(64).map(rows_of).collect()
        } else {
            some.iter().map(rows_of).collect()
        };
        for (of_flow, of_connection) in rows {
            if let (Some(sink), Some(row)) = (&mut core.sinks.flows, of_flow) {
                sink.push(row);
            }
            if let (Some(sink), Some(row)) = (&mut core.sinks.tcp_flows, of_connection) {
                sink.push(row);
            }
        }
    }
    flows.len() == ROWS_AT_A_TIME
}

/// Which end (0 low, 1 high) is the client, and whether a SYN says so.
pub(super) fn client_of(state: &FlowState, connection: Option<&Connection>) -> (u8, bool) {
    if let Some(client) = connection.and_then(|connection| connection.client) {
        return (client, true);
    }
    let (low, high) = (state.key.low.port, state.key.high.port);
    match low.cmp(&high) {
        std::cmp::Ordering::Less => (1, false),
        std::cmp::Ordering::Greater => (0, false),
        std::cmp::Ordering::Equal => (state.first_sender, false),
    }
}

pub(super) fn ends(state: &FlowState, client: u8) -> (Endpoint, Endpoint) {
    if client == 0 { (state.key.low, state.key.high) } else { (state.key.high, state.key.low) }
}

fn has_ports(state: &FlowState) -> bool {
    matches!(state.key.ip_protocol, 6 | 17 | 132)
}

fn flow_row(state: &FlowState, connection: Option<&Connection>, first_ns: Option<i64>) -> FlowRow {
    let (client, client_known) = client_of(state, connection);
    let (client_end, server_end) = ends(state, client);
    let (c, s) = (usize::from(client), usize::from(client ^ 1));
    let port = |end: Endpoint| has_ports(state).then_some(end.port);
    FlowRow {
        file_no: file_no(state.file),
        frame_no: state.first_frame,
        time: state.first_time_ns.map(TimeNs),
        time_rel_ns: relative(state.first_time_ns, first_ns),
        flow_id: state.id,
        interface_id: state.key.interface,
        protocol: Some(Symbol(state.protocol.name().unwrap_or("IP"))),
        ip_protocol: state.key.ip_protocol,
        tunnel: state.tunnel.map(|kind| Symbol(kind.name())),
        vni: state.key.vni,
        client_ip: client_end.ip,
        client_port: port(client_end),
        server_ip: server_end.ip,
        server_port: port(server_end),
        client_known,
        duration_ns: relative(state.last_time_ns, state.first_time_ns),
        end: state.last_time_ns.map(TimeNs),
        client_packets: state.packets[c],
        server_packets: state.packets[s],
        client_bytes: state.bytes[c],
        server_bytes: state.bytes[s],
        client_payload_bytes: state.payload_bytes[c],
        server_payload_bytes: state.payload_bytes[s],
    }
}

/// What one end sent again.
struct Resent {
    total: u64,
    fast: u64,
    timeout: u64,
    slow_start: u64,
    probe: u64,
    spurious: u64,
    ratio: Option<f64>,
    reordered: u64,
    network_duplicates: u64,
}

impl Resent {
    fn of(counts: &DirectionSummary, side: &Side) -> Self {
        let sum = |causes: &[Cause]| causes.iter().map(|cause| counts.resent(*cause)).sum();
        let of_verdict = |verdict: Verdict| counts.verdict_count[verdict as usize];
        let total = counts.resent_total();
        Self {
            total,
            fast: counts.resent(Cause::Fast),
            timeout: sum(&[Cause::Timeout, Cause::Syn, Cause::SynAck]),
            slow_start: sum(&[Cause::SlowStart, Cause::Pmtu]),
            probe: counts.resent(Cause::Probe),
            spurious: counts.retransmit_segments.iter().map(|by_outcome| by_outcome[Outcome::Spurious as usize]).sum(),
            ratio: (side.data_segments > 0).then(|| total as f64 / side.data_segments as f64),
            reordered: of_verdict(Verdict::Reordered),
            network_duplicates: of_verdict(Verdict::NetworkDuplicate),
        }
    }
}

fn tcp_flow_row(
    state: &FlowState,
    connection: &Connection,
    verdicts: &VerdictSummary,
    story: &StorySummary,
    first_ns: Option<i64>,
) -> TcpFlowRow {
    let (client, client_known) = client_of(state, Some(connection));
    let (client_end, server_end) = ends(state, client);
    let (c, s) = (usize::from(client), usize::from(client ^ 1));
    let sides = [&connection.sides[c], &connection.sides[s]];
    let [client_story, server_story] = [&story.sides[c], &story.sides[s]];
    let [client_sent, server_sent] =
        [Resent::of(&verdicts.directions[c], sides[0]), Resent::of(&verdicts.directions[s], sides[1])];
    TcpFlowRow {
        file_no: file_no(state.file),
        frame_no: state.first_frame,
        time: state.first_time_ns.map(TimeNs),
        time_rel_ns: relative(state.first_time_ns, first_ns),
        tcp_stream: None,
        flow_id: state.id,
        interface_id: state.key.interface,
        vni: state.key.vni,
        client_ip: client_end.ip,
        client_port: client_end.port,
        server_ip: server_end.ip,
        server_port: server_end.port,
        client_known,
        duration_ns: relative(state.last_time_ns, state.first_time_ns),
        handshake_rtt_ns: connection.handshake_rtt_ns,
        client_packets: state.packets[c].saturating_sub(sides[0].copied_packets),
        server_packets: state.packets[s].saturating_sub(sides[1].copied_packets),
        client_bytes: state.payload_bytes[c].saturating_sub(sides[0].copied_bytes),
        server_bytes: state.payload_bytes[s].saturating_sub(sides[1].copied_bytes),
        client_unique_bytes: sides[0].unique_bytes(),
        server_unique_bytes: sides[1].unique_bytes(),
        client_goodput_bps: sides[0].goodput_bps(),
        server_goodput_bps: sides[1].goodput_bps(),
        client_max_segment_bytes: sides[0].max_segment_bytes,
        server_max_segment_bytes: sides[1].max_segment_bytes,
        client_mss: sides[0].mss,
        server_mss: sides[1].mss,
        client_wscale: sides[0].wscale,
        server_wscale: sides[1].wscale,
        is_sack_permitted: sides.iter().all(|side| side.is_sack_permitted),
        has_timestamps: sides.iter().all(|side| side.has_timestamps),
        syn_count: sides[0].syn_count,
        fin_count: sides[0].fin_count + sides[1].fin_count,
        rst_count: sides[0].rst_count + sides[1].rst_count,
        client_zero_window_count: sides[0].zero_window_count,
        server_zero_window_count: sides[1].zero_window_count,
        client_ce_count: sides[0].ce_count,
        server_ce_count: sides[1].ce_count,
        vantage: Some(Symbol(verdicts.vantage.name())),
        client_retransmit_count: client_sent.total,
        client_retransmit_fast_count: client_sent.fast,
        client_retransmit_timeout_count: client_sent.timeout,
        client_retransmit_slow_start_count: client_sent.slow_start,
        client_retransmit_probe_count: client_sent.probe,
        client_retransmit_spurious_count: client_sent.spurious,
        client_retransmit_ratio: client_sent.ratio,
        client_reordered_count: client_sent.reordered,
        client_network_duplicate_count: client_sent.network_duplicates,
        server_retransmit_count: server_sent.total,
        server_retransmit_fast_count: server_sent.fast,
        server_retransmit_timeout_count: server_sent.timeout,
        server_retransmit_slow_start_count: server_sent.slow_start,
        server_retransmit_probe_count: server_sent.probe,
        server_retransmit_spurious_count: server_sent.spurious,
        server_retransmit_ratio: server_sent.ratio,
        server_reordered_count: server_sent.reordered,
        server_network_duplicate_count: server_sent.network_duplicates,
        handshake: (!story.handshake.is_empty()).then_some(Symbol(story.handshake)),
        syn_retry_count: story.syn_retries,
        syn_ack_retry_count: story.syn_ack_retries,
        is_ecn_negotiated: story.is_ecn_negotiated,
        closed_by: (!story.closed_by.is_empty()).then_some(Symbol(story.closed_by)),
        client_rtt_min_ns: client_story.rtt_min_ns,
        client_rtt_median_ns: client_story.rtt_median_ns,
        client_rtt_p99_ns: client_story.rtt_p99_ns,
        client_zero_window_ns: client_story.zero_window_ns,
        client_zero_window_stall_count: client_story.zero_window_stalls,
        client_window_limited_ns: client_story.window_limited_ns,
        client_idle_ns: client_story.idle_ns,
        client_longest_stall_ns: client_story.longest_stall_ns,
        client_ece_count: client_story.ece_count,
        client_cwr_count: client_story.cwr_count,
        client_retransmit_bytes: client_story.resent_bytes,
        client_retransmit_bytes_ratio: bytes_ratio(client_story),
        client_max_in_flight_bytes: client_story.max_in_flight_bytes,
        server_rtt_min_ns: server_story.rtt_min_ns,
        server_rtt_median_ns: server_story.rtt_median_ns,
        server_rtt_p99_ns: server_story.rtt_p99_ns,
        server_zero_window_ns: server_story.zero_window_ns,
        server_zero_window_stall_count: server_story.zero_window_stalls,
        server_window_limited_ns: server_story.window_limited_ns,
        server_idle_ns: server_story.idle_ns,
        server_longest_stall_ns: server_story.longest_stall_ns,
        server_ece_count: server_story.ece_count,
        server_cwr_count: server_story.cwr_count,
        server_retransmit_bytes: server_story.resent_bytes,
        server_retransmit_bytes_ratio: bytes_ratio(server_story),
        server_max_in_flight_bytes: server_story.max_in_flight_bytes,
    }
}

fn bytes_ratio(side: &SideStory) -> Option<f64> {
    (side.payload_bytes > 0).then(|| side.resent_bytes as f64 / side.payload_bytes as f64)
}

pub(super) fn capture_tables(core: &mut Core, facts: &CaptureFacts) {
    if let Some(sink) = &mut core.sinks.interfaces {
        for (number, interface) in facts.interfaces.iter().enumerate() {
            sink.push(InterfaceRow {
                file_no: file_no(interface.file),
                file_name: facts.files.get(usize::from(interface.file)).map(|file| file.name.clone()),
                interface_id: number as u32,
                name: interface.name.clone(),
                description: interface.description.clone(),
                link_type: interface.link.0,
                link_name: Symbol(interface.link.name()),
                snap_length_bytes: Some(interface.snap_length).filter(|bytes| *bytes > 0),
                link_speed_bps: interface.speed_bps,
                frames: interface.frames,
                interface_drops: interface.interface_drops,
                os_drops: interface.os_drops,
            });
        }
    }
    let findings = if core.sinks.capture_quality.is_some() { findings(core, facts) } else { Vec::new() };
    if let Some(sink) = &mut core.sinks.capture_quality {
        for finding in &findings {
            sink.push(quality_row(finding, facts));
        }
    }
}

/// The sentence of a finding.
pub(super) fn sentence(finding: &Finding, facts: &CaptureFacts, lang: Lang) -> String {
    let subject = finding.subject;
    let file = subject.file.and_then(|file| facts.files.get(usize::from(file))).map_or("", |file| &file.name);
    let value = finding.value.unwrap_or(0);
    let span = words::short(value);
    let frame_no = subject.frame_no.unwrap_or(0);
    let lists: Vec<(&str, String)> = finding.lists.iter().map(|(name, parts)| (*name, list(parts, lang))).collect();
    let mut values: Vec<(&str, &dyn std::fmt::Display)> =
        vec![("file", &file), ("value", &value), ("span", &span), ("count", &finding.count), ("frame_no", &frame_no)];
    values.extend(finding.details.iter().map(|(name, value)| (*name, value as &dyn std::fmt::Display)));
    values.extend(lists.iter().map(|(name, text)| (*name, text as &dyn std::fmt::Display)));
    let key = match finding.variant {
        Some(variant) => format!("quality.{}.{variant}", finding.code),
        None => format!("quality.{}", finding.code),
    };
    words::say(lang, &key, &values)
}

/// The parts of a list, in words; "none" where there are none.
fn list(parts: &[(&str, u64)], lang: Lang) -> String {
    if parts.is_empty() {
        return words::say(lang, "list.none", &[]);
    }
    let said: Vec<_> = parts.iter().map(|(key, count)| words::say(lang, key, &[("count", count)])).collect();
    said.join(&words::say(lang, "list.comma", &[]))
}

fn quality_row(finding: &Finding, facts: &CaptureFacts) -> QualityRow {
    let subject = finding.subject;
    let message = |lang| Some(sentence(finding, facts, lang));
    QualityRow {
        file_no: subject.file.map(file_no),
        frame_no: subject.frame_no,
        time: subject.time_ns.map(TimeNs),
        code: Symbol(finding.code),
        severity: Symbol(finding.severity.name()),
        interface_id: subject.interface,
        value: finding.value,
        unit: (!finding.unit.is_empty()).then_some(Symbol(finding.unit)),
        count: finding.count,
        frames: FrameList(finding.frames.clone()),
        message_en: message(Lang::En),
        message_zh: message(Lang::Zh),
    }
}

impl TableRow for FlowRow {
    type Builder = FlowBuilder;
    fn definition() -> &'static TableDef {
        Self::table()
    }
    fn subject(&self) -> RowSubject {
        let ips = [self.client_ip, self.server_ip, Ip::NONE, Ip::NONE];
        RowSubject {
            time_ns: self.time.map(|time| time.0),
            ips,
            ports: [self.client_port, self.server_port, None, None],
        }
    }
}

impl TableRow for TcpFlowRow {
    type Builder = TcpFlowBuilder;
    fn definition() -> &'static TableDef {
        Self::table()
    }
    fn subject(&self) -> RowSubject {
        let ips = [self.client_ip, self.server_ip, Ip::NONE, Ip::NONE];
        let ports = [Some(self.client_port), Some(self.server_port), None, None];
        RowSubject { time_ns: self.time.map(|time| time.0), ips, ports }
    }
}

/// Filters do not apply to what is said of the capture as a whole.
impl TableRow for InterfaceRow {
    type Builder = InterfaceBuilder;
    fn definition() -> &'static TableDef {
        Self::table()
    }
    fn subject(&self) -> RowSubject {
        RowSubject::default()
    }
}

impl TableRow for QualityRow {
    type Builder = QualityBuilder;
    fn definition() -> &'static TableDef {
        Self::table()
    }
    fn subject(&self) -> RowSubject {
        RowSubject::default()
    }
}
