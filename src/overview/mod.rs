//! A capture at a glance, in one pass and bounded memory: what `wirelab info` and notebook cards show.

mod dns;
mod groups;
mod happenings;
#[cfg(test)]
mod tests;
mod timeline;

use std::collections::BinaryHeap;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, RecordBatch};

use crate::capture::{FileFacts, Input};
use crate::error::Error;
use crate::observe::Observer;
use crate::open::TableData;
use crate::options::Options;
use crate::scan::{Engine, ScanRequest, Summary};
use crate::tables::TableId;

use dns::DnsGathered;
pub use dns::{DnsCounts, DnsOverview, DnsQuestion};
use groups::Words;
pub use groups::{Groups, PauseCounts, ProbeCounts, ReorderCounts, RttCounts, TooBig, TunnelCounts};
use happenings::Happenings;
pub use happenings::{Happening, Outcome, QueuePair};
pub use timeline::Timeline;

/// Connections that are told apart; the others are only counted.
const TOP_CONNECTIONS: usize = 10;
/// Events of queue pairs that are shown.
const FIRST_EVENTS: usize = 8;

/// What goes to and from it is told by its questions.
const DNS_PORT: u16 = 53;

/// What a capture holds, by the kinds of traffic that wirelab knows.
#[derive(Clone, Debug)]
pub struct Overview {
    pub summary: Summary,
    pub files: Vec<FileFacts>,
    /// The table `capture_quality`.
    pub findings: TableData,
    /// The table `interfaces`.
    pub interfaces: TableData,
    /// Bytes on the wire over time.
    pub timeline: Timeline,
    /// TCP connections.
    pub connection_count: u64,
    /// The ten connections with the most payload, most first: one-row batches of `tcp_flows`.
    pub top_connections: TableData,
    /// What held TCP connections up, by kind.
    pub tcp_happenings: Vec<Happening>,
    /// TCP segments that were overtaken on the way, and the connections they belong to.
    pub reordered: ReorderCounts,
    /// ICMP messages that a packet was too big, by who says it, the packet's ends, and the MTU it gives.
    pub too_big: Groups<TooBig, u64>,
    pub roce: RoceOverview,
    /// Pause frames by kind and class.
    pub pauses: Groups<(String, Option<u8>, Option<String>), PauseCounts>,
    /// Encapsulated packets by kind and virtual network.
    pub tunnels: Groups<(String, Option<u32>), TunnelCounts>,
    /// Probes by protocol, asker and asked.
    pub probes: Groups<(String, String, String), ProbeCounts>,
    pub dns: DnsOverview,
    /// UDP flows whose payload is of no kind that is told apart here.
    pub udp_flow_count: u64,
    /// The ten of them with the most bytes on the wire, most first: one-row batches of `flows`.
    pub top_udp_flows: Vec<RecordBatch>,
}

/// RoCE packets, counted.
#[derive(Clone, Debug, Default)]
pub struct RoceOverview {
    pub packets: u64,
    pub payload_bytes: u64,
    /// Packets by opcode: code, name where it has one, count; by code.
    pub opcodes: Vec<(u8, Option<String>, u64)>,
    /// Acknowledgements by what their syndrome says.
    pub syndromes: Groups<String, u64>,
    /// Packets with the CE mark of congestion.
    pub ce_count: u64,
    /// Queue pairs that send data.
    pub queue_pair_count: u64,
    /// Queue pairs that carry the connection manager's datagrams, and no data.
    pub management_count: u64,
    /// The ten that send data with the most payload, most first: one-row batches of `roce_qps`.
    pub top_queue_pairs: Vec<RecordBatch>,
    /// What happened on queue pairs, beside connecting and disconnecting.
    pub event_count: u64,
    /// The first of these: batches of `roce_events`.
    pub first_events: Vec<RecordBatch>,
    /// The same by kind, cause and outcome, failures first.
    pub happenings: Vec<Happening>,
}

/// Reads the inputs as one capture, once.
pub fn overview<I>(inputs: I, options: &Options, observer: &mut dyn Observer) -> Result<Overview, Error>
where
    I: IntoIterator,
    I::Item: Into<Input>,
{
    let request = |table, columns: &[&str]| {
        let mut request = ScanRequest::new(table);
        request.columns = Some(columns.iter().map(|name| (*name).to_owned()).collect());
        request
    };
    let requests = [
        request(TableId::Packets, &["time", "original_bytes"]),
        ScanRequest::new(TableId::TcpFlows),
        request(TableId::TcpEvents, &Happenings::COLUMNS),
        request(TableId::Roce, &["opcode", "opcode_name", "aeth", "payload_bytes", "ecn"]),
        ScanRequest::new(TableId::RoceQps),
        ScanRequest::new(TableId::RoceEvents),
        request(TableId::Icmp, &["protocol", "src_ip", "type", "code", "mtu", "quoted_src_ip", "quoted_dst_ip"]),
        request(TableId::Pause, &["kind", "class", "src_mac", "quanta"]),
        request(TableId::Tunnels, &["kind", "vni", "overhead_bytes"]),
        request(TableId::Probes, &["protocol", "src_ip", "dst_ip", "rtt_ns", "error_frame_no", "is_lost"]),
        request(TableId::Dns, &dns::COLUMNS),
        ScanRequest::new(TableId::Flows),
        ScanRequest::new(TableId::Interfaces),
        ScanRequest::new(TableId::CaptureQuality),
    ];
    let inputs = inputs.into_iter().map(Into::into).collect();
    // Whoever looks at a capture first is told if its tables will not fit.
    let budget = options.memory_budget_bytes.unwrap_or_else(crate::spill::default_budget);
    let options = &Options { memory_budget_bytes: Some(budget), ..options.clone() };
    let mut engine = Engine::new(inputs, options, &requests)?;
    let mut gathered = Gathered::default();
    while let Some(batches) = engine.step(observer)? {
        for (table, batch) in batches {
            gathered.add(table, batch);
        }
    }
    Ok(gathered.finish(engine.summary(), engine.facts().files.clone()))
}

#[derive(Default)]
struct Gathered {
    findings: Vec<RecordBatch>,
    interfaces: Vec<RecordBatch>,
    timeline: Timeline,
    connection_count: u64,
    top: BinaryHeap<Connection>,
    reordered: ReorderCounts,
    too_big: Groups<TooBig, u64>,
    tcp_happenings: Happenings,
    roce_happenings: Happenings,
    top_queue_pairs: BinaryHeap<Connection>,
    opcodes: Vec<(Option<String>, u64)>,
    roce: RoceOverview,
    pauses: Groups<(String, Option<u8>, Option<String>), PauseCounts>,
    tunnels: Groups<(String, Option<u32>), TunnelCounts>,
    probes: Groups<(String, String, String), ProbeCounts>,
    dns: DnsGathered,
    udp_flow_count: u64,
    top_udp_flows: BinaryHeap<Connection>,
}

impl Gathered {
    fn add(&mut self, table: TableId, batch: RecordBatch) {
        match table {
            TableId::Packets => self.add_packets(&batch),
            TableId::TcpFlows => self.add_connections(&batch),
            TableId::TcpEvents => self.tcp_happenings.add(&batch),
            TableId::Roce => self.add_roce(&batch),
            TableId::RoceQps => self.add_queue_pairs(&batch),
            TableId::RoceEvents => {
                self.add_events(&batch);
                self.roce_happenings.add(&batch);
            }
            TableId::Icmp => self.add_icmp(&batch),
            TableId::Pause => self.add_pauses(&batch),
            TableId::Tunnels => self.add_tunnels(&batch),
            TableId::Probes => self.add_probes(&batch),
            TableId::Dns => self.dns.add(&batch),
            TableId::Flows => self.add_flows(&batch),
            TableId::Interfaces => self.interfaces.push(batch),
            TableId::CaptureQuality => self.findings.push(batch),
            _ => {}
        }
    }

    fn add_packets(&mut self, batch: &RecordBatch) {
        let times = batch["time"].as_primitive::<arrow_array::types::TimestampNanosecondType>();
        let bytes = batch["original_bytes"].as_primitive::<UInt32Type>();
        for (time, bytes) in times.iter().zip(bytes.values()) {
            if let Some(time_ns) = time {
                self.timeline.add(time_ns, u64::from(*bytes));
            }
        }
    }

    fn add_connections(&mut self, batch: &RecordBatch) {
        let client = batch["client_bytes"].as_primitive::<UInt64Type>();
        let server = batch["server_bytes"].as_primitive::<UInt64Type>();
        let reordered = ["client_reordered_count", "server_reordered_count"]
            .map(|column| batch[column].as_primitive::<UInt64Type>());
        for row in 0..batch.num_rows() {
            let bytes = client.value(row).saturating_add(server.value(row));
            self.reordered.add(reordered.iter().map(|column| column.value(row)).sum());
            put_among_largest(&mut self.top, bytes, self.connection_count, || batch.slice(row, 1));
            self.connection_count += 1;
        }
    }

    fn add_queue_pairs(&mut self, batch: &RecordBatch) {
        let bytes = batch["bytes"].as_primitive::<UInt64Type>();
        let services = Words::new(&batch["service"]);
        let responders = batch["responder_qp"].as_primitive::<UInt32Type>();
        for row in 0..batch.num_rows() {
            if services.get(row) == Some("UD") && responders.value(row) == 1 {
                self.roce.management_count += 1;
                continue;
            }
            let order = self.roce.queue_pair_count;
            put_among_largest(&mut self.top_queue_pairs, bytes.value(row), order, || batch.slice(row, 1));
            self.roce.queue_pair_count += 1;
        }
    }

    fn add_events(&mut self, batch: &RecordBatch) {
        let kinds = Words::new(&batch["kind"]);
        for row in 0..batch.num_rows() {
            if matches!(kinds.get(row), Some("connect" | "disconnect")) {
                continue;
            }
            self.roce.event_count += 1;
            if self.roce.first_events.len() < FIRST_EVENTS {
                self.roce.first_events.push(batch.slice(row, 1));
            }
        }
    }

    fn add_roce(&mut self, batch: &RecordBatch) {
        let opcodes = batch["opcode"].as_primitive::<UInt8Type>();
        let names = Words::new(&batch["opcode_name"]);
        self.opcodes.resize(256, (None, 0));
        for (row, opcode) in opcodes.values().iter().enumerate() {
            let (name, count) = &mut self.opcodes[usize::from(*opcode)];
            *count += 1;
            if name.is_none() {
                *name = names.get(row).map(str::to_owned);
            }
        }
        let syndromes = Words::new(&batch["aeth"]);
        for row in 0..batch.num_rows() {
            if let Some(syndrome) = syndromes.get(row)
                && let Some(count) = self.roce.syndromes.entry(syndrome.to_owned())
            {
                *count += 1;
            }
        }
        self.roce.packets += batch.num_rows() as u64;
        let payloads = batch["payload_bytes"].as_primitive::<UInt32Type>();
        self.roce.payload_bytes += payloads.values().iter().map(|bytes| u64::from(*bytes)).sum::<u64>();
        let marks = batch["ecn"].as_primitive::<UInt8Type>();
        self.roce.ce_count += marks.values().iter().filter(|ecn| **ecn == 3).count() as u64;
    }

    fn add_pauses(&mut self, batch: &RecordBatch) {
        let (kinds, ports) = (Words::new(&batch["kind"]), Words::new(&batch["src_mac"]));
        let classes = batch["class"].as_primitive::<UInt8Type>();
        let quanta = batch["quanta"].as_primitive::<UInt16Type>();
        for row in 0..batch.num_rows() {
            let class = (!classes.is_null(row)).then(|| classes.value(row));
            let key = (kinds.get(row).unwrap_or("?").to_owned(), class, ports.get(row).map(str::to_owned));
            if let Some(counts) = self.pauses.entry(key) {
                match quanta.value(row) {
                    0 => counts.resume_count += 1,
                    quanta => {
                        counts.pause_count += 1;
                        counts.largest_quanta = counts.largest_quanta.max(quanta);
                    }
                }
            }
        }
    }

    fn add_icmp(&mut self, batch: &RecordBatch) {
        let protocols = Words::new(&batch["protocol"]);
        let [by, from, to] = ["src_ip", "quoted_src_ip", "quoted_dst_ip"].map(|column| Words::new(&batch[column]));
        let [types, codes] = ["type", "code"].map(|column| batch[column].as_primitive::<UInt8Type>());
        let mtus = batch["mtu"].as_primitive::<UInt32Type>();
        for row in 0..batch.num_rows() {
            // RFC 1191 and RFC 4443.
            let is_too_big = match protocols.get(row) {
                Some("ICMP") => (types.value(row), codes.value(row)) == (3, 4),
                Some("ICMPv6") => types.value(row) == 2,
                _ => false,
            };
            if !is_too_big {
                continue;
            }
            let word = |words: &Words| words.get(row).unwrap_or("?").to_owned();
            let mtu = (!mtus.is_null(row)).then(|| mtus.value(row));
            let key = TooBig { by: word(&by), src_ip: word(&from), dst_ip: word(&to), mtu };
            if let Some(count) = self.too_big.entry(key) {
                *count += 1;
            }
        }
    }

    fn add_tunnels(&mut self, batch: &RecordBatch) {
        let kinds = Words::new(&batch["kind"]);
        let networks = batch["vni"].as_primitive::<UInt32Type>();
        let overheads = batch["overhead_bytes"].as_primitive::<UInt16Type>();
        for row in 0..batch.num_rows() {
            let vni = (!networks.is_null(row)).then(|| networks.value(row));
            let key = (kinds.get(row).unwrap_or("?").to_owned(), vni);
            if let Some(counts) = self.tunnels.entry(key) {
                counts.packets += 1;
                counts.overhead_bytes += u64::from(overheads.value(row));
            }
        }
    }

    fn add_probes(&mut self, batch: &RecordBatch) {
        let protocols = Words::new(&batch["protocol"]);
        let (sources, destinations) = (Words::new(&batch["src_ip"]), Words::new(&batch["dst_ip"]));
        let rtts = batch["rtt_ns"].as_primitive::<Int64Type>();
        let lost = batch["is_lost"].as_boolean();
        for row in 0..batch.num_rows() {
            let word = |words: &Words| words.get(row).unwrap_or("?").to_owned();
            let key = (word(&protocols), word(&sources), word(&destinations));
            if let Some(counts) = self.probes.entry(key) {
                counts.sent_count += 1;
                counts.lost_count += u64::from(lost.value(row));
                counts.error_count += u64::from(!batch["error_frame_no"].is_null(row));
                if !rtts.is_null(row) {
                    counts.rtt.add(rtts.value(row));
                }
            }
        }
    }

    fn add_flows(&mut self, batch: &RecordBatch) {
        let protocols = Words::new(&batch["protocol"]);
        let [client, server] =
            ["client_bytes", "server_bytes"].map(|column| batch[column].as_primitive::<UInt64Type>());
        let ports = ["client_port", "server_port"].map(|column| batch[column].as_primitive::<UInt16Type>());
        for row in 0..batch.num_rows() {
            let is_dns = ports.iter().any(|port| !port.is_null(row) && port.value(row) == DNS_PORT);
            if protocols.get(row) == Some("UDP") && !is_dns {
                let bytes = client.value(row).saturating_add(server.value(row));
                put_among_largest(&mut self.top_udp_flows, bytes, self.udp_flow_count, || batch.slice(row, 1));
                self.udp_flow_count += 1;
            }
        }
    }

    fn finish(self, summary: Summary, files: Vec<FileFacts>) -> Overview {
        let table = |id: TableId, batches| TableData { schema: id.definition().schema(), batches };
        let named = self.opcodes.into_iter().enumerate();
        let opcodes = named.filter(|(_, (_, count))| *count > 0).map(|(code, (name, count))| (code as u8, name, count));
        let rows = |largest: BinaryHeap<Connection>| {
            largest.into_sorted_vec().into_iter().filter_map(|connection| connection.row).collect::<Vec<_>>()
        };
        let (top, top_queue_pairs) = (rows(self.top), rows(self.top_queue_pairs));
        let top_udp_flows = rows(self.top_udp_flows);
        Overview {
            summary,
            files,
            findings: table(TableId::CaptureQuality, self.findings),
            interfaces: table(TableId::Interfaces, self.interfaces),
            timeline: self.timeline,
            connection_count: self.connection_count,
            top_connections: table(TableId::TcpFlows, top),
            reordered: self.reordered,
            too_big: self.too_big,
            tcp_happenings: self.tcp_happenings.finish(),
            roce: RoceOverview {
                opcodes: opcodes.collect(),
                top_queue_pairs,
                happenings: self.roce_happenings.finish(),
                ..self.roce
            },
            pauses: self.pauses,
            tunnels: self.tunnels,
            probes: self.probes,
            dns: self.dns.finish(),
            udp_flow_count: self.udp_flow_count,
            top_udp_flows,
        }
    }
}

/// Keeps a row if it is among the largest.
fn put_among_largest(top: &mut BinaryHeap<Connection>, bytes: u64, order: u64, row: impl FnOnce() -> RecordBatch) {
    let connection = Connection { bytes, order, row: None };
    if top.len() < TOP_CONNECTIONS || top.peek().is_some_and(|least| connection < *least) {
        top.push(Connection { row: Some(row()), ..connection });
        if top.len() > TOP_CONNECTIONS {
            top.pop();
        }
    }
}

/// A connection or queue pair among the largest. The order puts more bytes first, then the earlier connection.
struct Connection {
    bytes: u64,
    order: u64,
    row: Option<RecordBatch>,
}

impl Connection {
    fn rank(&self) -> (std::cmp::Reverse<u64>, u64) {
        (std::cmp::Reverse(self.bytes), self.order)
    }
}

impl PartialEq for Connection {
    fn eq(&self, other: &Self) -> bool {
        self.rank() == other.rank()
    }
}

impl Eq for Connection {}

impl PartialOrd for Connection {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Connection {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.rank().cmp(&other.rank())
    }
}
