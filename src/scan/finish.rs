//! Tables that are complete only when the capture was read: flows, connections, interfaces, findings.

use super::core::Core;
use super::rows::{file_no, relative};
use super::tally::Marked;
use crate::analyze::Connection;
use crate::capture::{CaptureFacts, Finding, FindingSubject, Severity};
use crate::flow::{Endpoint, FlowState};
use crate::tables::*;
use crate::wire::Ip;
use crate::words::{self, Lang};

/// Segments that a connection must have before it is called one-sided: fewer may be cut off by the capture's end.
const ONE_SIDED_PACKETS: u64 = 3;

pub(super) fn flow_tables(core: &mut Core) {
    if core.sinks.flows.is_none() && core.sinks.tcp_flows.is_none() {
        return;
    }
    let shards = &core.shards;
    let mut order: Vec<(u64, usize, usize)> = Vec::new();
    for (at, shard) in shards.iter().enumerate() {
        order.extend(shard.flows.flows.iter().enumerate().map(|(flow, state)| (state.id, at, flow)));
    }
    order.sort_unstable();
    for (_, shard, flow) in order {
        let shard = &shards[shard];
        let state = &shard.flows.flows[flow];
        let connection = shard.connections.get(flow).and_then(Option::as_deref);
        if let Some(sink) = &mut core.sinks.flows {
            sink.push(flow_row(state, connection, core.first_time_ns));
        }
        if let (Some(sink), Some(connection)) = (&mut core.sinks.tcp_flows, connection) {
            let stream = shard.streams.streams.get(state.stream as usize).map(|stream| stream.id);
            sink.push(TcpFlowRow { tcp_stream: stream, ..tcp_flow_row(state, connection, core.first_time_ns) });
        }
    }
}

/// Which end (0 low, 1 high) is the client, and whether a SYN says so.
fn client_of(state: &FlowState, connection: Option<&Connection>) -> (u8, bool) {
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

fn ends(state: &FlowState, client: u8) -> (Endpoint, Endpoint) {
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
        protocol: Some(Symbol(state.protocol)),
        ip_protocol: state.key.ip_protocol,
        tunnel: state.tunnel.map(Symbol),
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

fn tcp_flow_row(state: &FlowState, connection: &Connection, first_ns: Option<i64>) -> TcpFlowRow {
    let (client, client_known) = client_of(state, Some(connection));
    let (client_end, server_end) = ends(state, client);
    let (c, s) = (usize::from(client), usize::from(client ^ 1));
    let sides = [&connection.sides[c], &connection.sides[s]];
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
        client_packets: state.packets[c],
        server_packets: state.packets[s],
        client_bytes: state.payload_bytes[c],
        server_bytes: state.payload_bytes[s],
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
    }
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

/// Everything that is to be said of the capture, the gravest first.
fn findings(core: &Core, facts: &CaptureFacts) -> Vec<Finding> {
    let mut findings = facts.findings.clone();
    let tally = &core.tally;
    if tally.unknown_link.count > 0 {
        let link = tally.unknown_link_type.unwrap_or(crate::capture::LinkType::UNKNOWN);
        let finding = Finding::new("unknown_link_type", Severity::Error).value(u64::from(link.0), "link type");
        findings.push(marked(finding.detail("name", link.name()), &tally.unknown_link));
    }
    if tally.cut.count > 0 {
        let snap_length = facts.interfaces.iter().map(|interface| interface.snap_length).max().unwrap_or(0);
        let finding = Finding::new("snap_length", Severity::Info).value(u64::from(snap_length), "bytes");
        findings.push(marked(finding.detail("total", tally.frames), &tally.cut));
    }
    if tally.undecoded.count > 0 {
        let finding = Finding::new("undecoded_frames", Severity::Warning).value(tally.undecoded.count, "frames");
        findings.push(marked(finding, &tally.undecoded));
    }
    let clock = &core.clock;
    if clock.backwards.count > 0 {
        let step = u64::try_from(clock.largest_step_ns).unwrap_or(0);
        let finding = Finding::new("clock_backwards", Severity::Warning).value(step, "ns");
        findings.push(marked(finding, &clock.backwards));
    }
    for (number, interface) in facts.interfaces.iter().enumerate() {
        let drops = interface.interface_drops.unwrap_or(0).saturating_add(interface.os_drops.unwrap_or(0));
        if drops > 0 {
            let mut finding = Finding::new("interface_drops", Severity::Warning)
                .value(drops, "frames")
                .detail("interface", interface.name.as_deref().unwrap_or("?"));
            finding.subject.interface = Some(number as u32);
            finding.subject.file = Some(interface.file);
            finding.count = drops;
            findings.push(finding);
        }
    }
    findings.extend(connection_findings(core));
    let without_flow: u64 = core.shards.iter().map(|shard| shard.frames_without_flow).sum();
    if without_flow > 0 {
        let mut finding = Finding::new("flow_limit", Severity::Error).value(without_flow, "frames");
        finding.count = without_flow;
        findings.push(finding.detail("limit", core.options.limits.flows));
    }
    let dropped = core.fragments.counts.dropped;
    if dropped > 0 {
        let mut finding = Finding::new("fragment_limit", Severity::Warning).value(dropped, "datagrams");
        finding.count = dropped;
        findings.push(finding.detail("limit", core.options.limits.fragment_bytes));
    }
    findings.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    findings
}

/// What TCP connections say of the capture: seen from one side only, or begun before it.
fn connection_findings(core: &Core) -> Vec<Finding> {
    let mut connections = 0_u64;
    let (mut one_sided, mut headless) = (Vec::new(), Vec::new());
    for shard in &core.shards {
        for (state, connection) in shard.flows.flows.iter().zip(&shard.connections) {
            let Some(connection) = connection else { continue };
            connections += 1;
            let [low, high] = state.packets;
            let place = (state.id, state.file, state.first_frame, state.first_time_ns);
            if (low == 0) != (high == 0) && low + high >= ONE_SIDED_PACKETS && !is_unanswered(connection) {
                one_sided.push(place);
            }
            if connection.client.is_none() {
                headless.push(place);
            }
        }
    }
    let mut findings = Vec::new();
    for (code, severity, mut places) in
        [("one_direction", Severity::Warning, one_sided), ("missing_handshake", Severity::Info, headless)]
    {
        if places.is_empty() {
            continue;
        }
        places.sort_unstable();
        let first = places.iter().take(20).map(|(_, file, frame_no, time)| (*file, *frame_no, *time)).collect();
        let mark = Marked { count: places.len() as u64, first };
        let finding = Finding::new(code, severity).value(mark.count, "connections").detail("total", connections);
        findings.push(marked(finding, &mark));
    }
    findings
}

/// Nothing but SYNs: nobody answered, which says nothing about the capture.
fn is_unanswered(connection: &Connection) -> bool {
    connection.sides.iter().all(|side| side.first_data_ns.is_none() && side.fin_count == 0)
        && connection.sides.iter().any(|side| side.syn_count > 0)
}

fn marked(mut finding: Finding, mark: &Marked) -> Finding {
    finding.count = mark.count;
    if let Some((file, frame_no, time_ns)) = mark.first.first() {
        finding.subject =
            FindingSubject { file: Some(*file), frame_no: Some(*frame_no), time_ns: *time_ns, interface: None };
        finding.frames = mark.first.iter().filter(|(of, _, _)| of == file).map(|(_, frame_no, _)| *frame_no).collect();
    }
    finding
}

fn quality_row(finding: &Finding, facts: &CaptureFacts) -> QualityRow {
    let subject = finding.subject;
    let message = |lang| {
        let file = subject.file.and_then(|file| facts.files.get(usize::from(file))).map_or("", |file| &file.name);
        let value = finding.value.unwrap_or(0);
        let frame_no = subject.frame_no.unwrap_or(0);
        let mut values: Vec<(&str, &dyn std::fmt::Display)> = vec![
            ("file", &file),
            ("value", &value),
            ("count", &finding.count),
            ("frame_no", &frame_no),
        ];
        values.extend(finding.details.iter().map(|(name, value)| (*name, value as &dyn std::fmt::Display)));
        Some(words::say(lang, &format!("quality.{}", finding.code), &values))
    };
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
        RowSubject { time_ns: self.time.map(|time| time.0), ips, ports: [self.client_port, self.server_port] }
    }
}

impl TableRow for TcpFlowRow {
    type Builder = TcpFlowBuilder;
    fn definition() -> &'static TableDef {
        Self::table()
    }
    fn subject(&self) -> RowSubject {
        let ips = [self.client_ip, self.server_ip, Ip::NONE, Ip::NONE];
        let ports = [Some(self.client_port), Some(self.server_port)];
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
