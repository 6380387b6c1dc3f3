//! What iperf3 prints without `-J`.

use std::sync::LazyLock;

use regex::{Captures, Regex};

use super::super::reading::{Reading, lines, numbered};
use super::super::units::{count, http_date_ns, ip, ms_ns, number, prefix, ratio, seconds_ns};
use super::from_json::protocol;
use super::tables::{IntervalRow, Iperf3Row, StreamRow};
use super::{BOTH, CLIENT, FORWARD, REVERSE, SERVER, Tests, direction};
use crate::capture::Severity;
use crate::tables::{Symbol, TimeNs};

/// A line of figures: `[  5][TX-C]   0.00-1.00   sec   741 MBytes  6.21 Gbits/sec` and what follows.
static FIGURES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"(?x) \[\s*(?P<id>\d+|SUM)\s*\] (?:\[(?P<tag>TX|RX)-[CS]\])? \s+
        (?P<from>\d+(?:\.\d+)?)\s*-\s*(?P<to>\d+(?:\.\d+)?) \s+ sec \s+
        (?P<amount>[\d.]+|-?nan)\s(?P<amount_prefix>[KMGTP]?)Bytes \s+
        (?P<rate>[\d.]+|-?nan|inf)\s(?P<rate_prefix>[KMGTP]?)(?P<rate_unit>bits|Bytes)/sec (?P<rest>.*)",
    )
    .ok()
});
/// UDP, at the receiver: `0.060 ms  0/39 (0%)`.
static LOSS: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?P<jitter>[\d.]+|-?nan) ms\s+(?P<lost>-?\d+)/(?P<all>\d+)\s+\(").ok());
/// TCP, at a sender: `3   895 KBytes`; UDP, at a sender: `20`.
static COUNT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^\s*(?P<count>\d+)(?:\s+(?P<cwnd>[\d.]+)\s(?P<prefix>[KMGT]?)Bytes)?").ok());
static CONNECTED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\[\s*(\d+)\](?:\[[TR]X-[CS]\])? local (\S+) port (\d+) connected (?:to|with) (\S+) port (\d+)").ok()
});
static STARTING: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(
        r"Starting Test: protocol: (\w+), (\d+) streams, (\d+) byte blocks, omitting (\d+) seconds, (?:(\d+) second test|\d+ (?:bytes|blocks) to send), tos (\d+)",
    )
    .ok()
});
static VERSION: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"(?:^|\s)iperf (3\.\d\S*)").ok());
static PORT: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?:Connecting to host \S+, port|Server listening on(?: port)?) (\d+)").ok());

const MARKS: [&str; 4] = ["Connecting to host ", "[ ID] Interval", "[ ID][Role] Interval", "Server listening on "];

/// `iperf3: error - unable to connect to server`, `iperf3: interrupt - the client has terminated`, and what a shell says of
/// it. That somebody wrote "iperf3: it was fast" is none.
fn error_of(line: &str) -> Option<&str> {
    let (before, message) = line.split_once("iperf3: ")?;
    let message = message.trim();
    let starts =
        ["error", "interrupt", "the client", "the server", "exiting", "unable", "command not found", "parameter"];
    let is_error = starts.iter().any(|start| message.starts_with(start));
    let is_alone = before.trim().is_empty() || before.trim_end().ends_with([':', ']']) || message.contains(" - ");
    (is_error && is_alone).then_some(message)
}

/// iperf 2 is another program with other output: "Client connecting to 10.0.0.1, TCP port 5001".
pub(super) fn is_version_2(text: &str) -> bool {
    lines(text).any(|line| {
        let is_banner = line.contains("Client connecting to ") || line.contains("Server listening on ");
        is_banner && (line.contains("TCP port ") || line.contains("UDP port "))
    })
}

pub(super) fn is_in(text: &str) -> bool {
    let is_mark = |line: &str| {
        MARKS.iter().any(|mark| line.contains(mark))
            || error_of(line).is_some()
            || (line.contains("bits/sec") && matches(&FIGURES, line).is_some())
    };
    !is_version_2(text) && lines(text).any(is_mark)
}

pub(super) fn read(text: &str, tests: &mut Tests, reading: &mut Reading) {
    if !is_in(text) {
        return;
    }
    let mut parser = Parser::new(tests, reading);
    for (line_no, line) in numbered(text) {
        parser.line(line_no, line);
    }
    parser.flush();
}

fn matches<'t>(regex: &LazyLock<Option<Regex>>, line: &'t str) -> Option<Captures<'t>> {
    LazyLock::force(regex).as_ref()?.captures(line)
}

struct Parser<'a> {
    tests: &'a mut Tests,
    reading: &'a mut Reading,
    row: Iperf3Row,
    streams: Vec<StreamRow>,
    /// Whether anything of the present test was seen.
    has_begun: bool,
    is_summary: bool,
    is_reverse: bool,
    is_udp: bool,
    interval_no: u32,
    /// Start of the interval that is being read, as printed.
    interval_from: String,
    server_port: Option<u16>,
    version: Option<String>,
}

impl<'a> Parser<'a> {
    fn new(tests: &'a mut Tests, reading: &'a mut Reading) -> Self {
        Self {
            tests,
            reading,
            row: Iperf3Row::new(1),
            streams: Vec::new(),
            has_begun: false,
            is_summary: false,
            is_reverse: false,
            is_udp: false,
            interval_no: 0,
            interval_from: String::new(),
            server_port: None,
            version: None,
        }
    }

    fn line(&mut self, line_no: u64, line: &str) {
        if let Some(figures) = matches(&FIGURES, line) {
            self.begin();
            self.figures(&figures);
            return;
        }
        if let Some(connected) = matches(&CONNECTED, line) {
            self.connected(&connected);
            return;
        }
        if line.contains("- - - - -") || line.contains("Test Complete. Summary Results") {
            self.is_summary = self.has_begun;
        } else if line.contains("Connecting to host ") {
            self.flush();
            self.begin();
            self.row.role = Some(CLIENT);
            self.row.server_port = matches(&PORT, line).and_then(|port| port[1].parse().ok());
        } else if line.contains("Server listening on ") {
            self.flush();
            self.server_port = matches(&PORT, line).and_then(|port| port[1].parse().ok());
        } else if line.contains("Accepted connection from ") {
            self.flush();
            self.begin();
            self.row.role = Some(SERVER);
            self.row.server_port = self.server_port;
        } else if line.contains("Reverse mode, remote host ") {
            self.is_reverse = true;
        } else if let Some(error) = error_of(line) {
            self.begin();
            self.row.error.get_or_insert_with(|| error.trim_start_matches("error - ").to_owned());
            self.reading.says("iperf3_error", Severity::Error, None, Some(line_no), error);
        } else {
            self.details(line);
        }
    }

    fn details(&mut self, line: &str) {
        let after = |mark: &str| line.split_once(mark).map(|(_, rest)| rest.trim());
        let mss = |text: &str| text.split_whitespace().next().and_then(|mss| mss.parse::<u32>().ok());
        if line.contains("Interval") && line.contains("Transfer") {
            self.is_udp |= line.contains("Datagrams") || line.contains("Jitter");
            // A server does not say that the test is in reverse, but only a sender has these columns.
            let is_senders = line.contains("Cwnd") || line.contains("Total Datagrams");
            self.is_reverse |= is_senders && self.row.role == Some(SERVER) && !line.contains("[Role]");
        } else if let Some(starting) = matches(&STARTING, line) {
            let part = |at: usize| starting.get(at).map_or("", |part| part.as_str());
            self.row.protocol = protocol(part(1));
            self.row.stream_count = part(2).parse().ok();
            self.row.block_bytes = part(3).parse().ok();
            self.row.omitted_ns = part(4).parse().ok().filter(|s| *s > 0.0).and_then(seconds_ns);
            self.row.requested_ns = part(5).parse().ok().and_then(seconds_ns);
            self.row.tos = part(6).parse().ok();
            self.is_reverse |= line.contains("reverse");
        } else if let Some(text) =
            after("Control connection MSS ").or(after("TCP MSS: ").filter(|t| t.contains("default")))
        {
            self.row.control_mss_bytes = mss(text);
        } else if let Some(text) = after("TCP MSS: ") {
            self.row.requested_mss_bytes = mss(text);
        } else if let Some(cookie) = after("Cookie: ") {
            self.row.cookie = Some(cookie.to_owned());
        } else if let Some(congestion) = after("snd_tcp_congestion ") {
            self.row.sender_congestion = Some(congestion.to_owned());
        } else if let Some(congestion) = after("rcv_tcp_congestion ") {
            self.row.receiver_congestion = Some(congestion.to_owned());
        } else if let Some(time) = after("Time: ") {
            self.row.start = http_date_ns(time).map(TimeNs);
        } else if let Some(version) = matches(&VERSION, line) {
            self.version = Some(version[1].to_owned());
        }
    }

    fn begin(&mut self) {
        self.has_begun = true;
    }

    fn connected(&mut self, found: &Captures<'_>) {
        self.begin();
        // Streams are made before figures come: a connection after the summary belongs to the next test.
        if self.is_summary {
            let (role, port) = (self.row.role, self.row.server_port);
            self.flush();
            self.begin();
            (self.row.role, self.row.server_port) = (role, port);
        }
        let mut stream = StreamRow::new(self.row.test_no, self.streams.len() as u32 + 1);
        stream.socket = found[1].parse().ok();
        (stream.local_ip, stream.local_port) = (ip(&found[2]), found[3].parse().ok());
        (stream.remote_ip, stream.remote_port) = (ip(&found[4]), found[5].parse().ok());
        self.streams.push(stream);
    }

    fn figures(&mut self, found: &Captures<'_>) {
        let text = |name: &str| found.name(name).map_or("", |part| part.as_str());
        let rest = text("rest");
        let socket: Option<i64> = text("id").parse().ok();
        let (from, to) = (number(text("from")), number(text("to")));
        let length = to.zip(from).map(|(to, from)| to - from);
        let bits = if text("rate_unit") == "bits" { 1.0 } else { 8.0 };
        // Amounts come in powers of 1024, rates in powers of 1000; rates in bytes again in powers of 1024.
        let rate_base = if text("rate_unit") == "bits" { 1000.0 } else { 1024.0 };
        let amount = number(text("amount")).and_then(|n| count(n * prefix(text("amount_prefix"), 1024.0)));
        let rate = number(text("rate")).and_then(|n| count(n * prefix(text("rate_prefix"), rate_base) * bits));
        let is_sender = match text("tag") {
            "TX" => true,
            "RX" => false,
            _ => (self.row.role == Some(SERVER)) == self.is_reverse,
        };
        let way = direction(self.row.role, is_sender);
        if !text("tag").is_empty() {
            self.row.direction = Some(BOTH);
        }
        let loss = matches(&LOSS, rest);
        self.is_udp |= loss.is_some();
        let totals = Totals {
            way,
            amount,
            rate,
            length,
            lost: loss.as_ref().and_then(|loss| loss["lost"].parse().ok()),
            packets: loss.as_ref().and_then(|loss| loss["all"].parse().ok()),
            jitter_ns: loss.as_ref().and_then(|loss| number(&loss["jitter"])).and_then(ms_ns),
        };
        let counted = if loss.is_none() { matches(&COUNT, rest) } else { None };
        let counter = counted.as_ref().and_then(|counted| counted["count"].parse::<u64>().ok());
        let is_receiver_line = rest.trim_end().ends_with("receiver");
        if is_receiver_line || rest.trim_end().ends_with("sender") || self.is_summary {
            self.total(
                socket,
                &totals,
                counter,
                is_receiver_line || (self.is_summary && !rest.contains("sender") && !is_sender),
            );
            return;
        }
        if self.interval_from != text("from") {
            self.interval_no = self.interval_no.saturating_add(1);
            self.interval_from = text("from").to_owned();
        }
        let cwnd = counted.as_ref().and_then(|counted| {
            let factor = prefix(counted.name("prefix")?.as_str(), 1024.0);
            count(number(counted.name("cwnd")?.as_str())? * factor)
        });
        let stream_no = socket.map(|socket| self.stream_of(socket));
        if let Some(stream) = stream_no.and_then(|no| self.streams.get_mut(no as usize - 1)) {
            stream.direction.get_or_insert(way);
        }
        self.tests.intervals.push(IntervalRow {
            test_no: self.row.test_no,
            interval_no: self.interval_no,
            stream_no,
            is_sum: socket.is_none(),
            direction: Some(way),
            is_omitted: rest.contains("(omitted)"),
            start_ns: from.and_then(seconds_ns),
            duration_ns: length.and_then(seconds_ns),
            transferred_bytes: amount,
            transferred_bps: rate,
            retransmit_count: counter.filter(|_| !self.is_udp),
            cwnd_bytes: cwnd,
            window_bytes: None,
            rtt_ns: None,
            rttvar_ns: None,
            pmtu_bytes: None,
            packet_count: totals.packets.or(counter.filter(|_| self.is_udp)),
            lost_count: totals.lost,
            jitter_ns: totals.jitter_ns.filter(|_| !is_sender),
        });
    }

    fn stream_of(&mut self, socket: i64) -> u32 {
        if let Some(stream) = self.streams.iter().find(|stream| stream.socket == Some(socket)) {
            return stream.stream_no;
        }
        let stream_no = self.streams.len() as u32 + 1;
        let mut stream = StreamRow::new(self.row.test_no, stream_no);
        stream.socket = Some(socket);
        self.streams.push(stream);
        stream_no
    }

    /// A line of the summary: of a stream, or of all.
    fn total(&mut self, socket: Option<i64>, totals: &Totals, counter: Option<u64>, is_receiver: bool) {
        self.row.is_complete = true;
        // A server does not hear what the client counted: it prints zero.
        let is_other_side = self.row.role == Some(SERVER) && is_receiver == (totals.way == REVERSE);
        if is_other_side && totals.amount == Some(0) {
            return;
        }
        match socket {
            Some(socket) => {
                let stream_no = self.stream_of(socket);
                if let Some(stream) = self.streams.get_mut(stream_no as usize - 1) {
                    totals.add_to_stream(stream, counter.filter(|_| !self.is_udp), is_receiver);
                }
            }
            None => totals.add_to_test(&mut self.row, counter.filter(|_| !self.is_udp), is_receiver),
        }
    }

    fn flush(&mut self) {
        let next = Iperf3Row::new(self.row.test_no.saturating_add(u32::from(self.has_begun)));
        let mut row = std::mem::replace(&mut self.row, next);
        let streams = std::mem::take(&mut self.streams);
        let (is_reverse, is_udp) = (std::mem::take(&mut self.is_reverse), std::mem::take(&mut self.is_udp));
        self.is_summary = false;
        self.interval_no = 0;
        self.interval_from.clear();
        if !std::mem::take(&mut self.has_begun) {
            // Lines before the first connection, such as the version and the settings, belong to the test that follows.
            (self.row, self.is_reverse) = (row, is_reverse);
            self.row.test_no = self.tests.tests.len() as u32 + 1;
            return;
        }
        row.version = self.version.clone();
        row.is_rounded = true;
        let has_figures = row.is_complete || !streams.is_empty();
        if row.protocol.is_none() && has_figures {
            row.protocol = Some(Symbol(if is_udp { "UDP" } else { "TCP" }));
        }
        if row.direction.is_none() && has_figures {
            row.direction = Some(if is_reverse { REVERSE } else { FORWARD });
        }
        if let Some(first) = streams.first() {
            (row.local_ip, row.local_port) = (first.local_ip, first.local_port);
            (row.remote_ip, row.remote_port) = (first.remote_ip, first.remote_port);
        }
        let one_way =
            |stream: &&StreamRow| stream.direction.is_none_or(|way| way == FORWARD || row.direction != Some(BOTH));
        row.stream_count.get_or_insert(streams.iter().filter(one_way).count() as u32);
        sum_up(&mut row, &streams);
        for stream in streams {
            self.tests.streams.push(stream);
        }
        self.tests.tests.push(row);
    }
}

/// Figures of a line of the summary.
struct Totals {
    way: Symbol,
    amount: Option<u64>,
    rate: Option<u64>,
    length: Option<f64>,
    lost: Option<u64>,
    packets: Option<u64>,
    jitter_ns: Option<i64>,
}

impl Totals {
    fn add_to_stream(&self, stream: &mut StreamRow, retransmits: Option<u64>, is_receiver: bool) {
        stream.direction = Some(self.way);
        if is_receiver {
            (stream.received_bytes, stream.received_bps) = (self.amount, self.rate);
        } else {
            (stream.sent_bytes, stream.sent_bps) = (self.amount, self.rate);
            stream.retransmit_count = retransmits;
        }
        if !is_receiver || stream.duration_ns.is_none() {
            stream.duration_ns = self.length.and_then(seconds_ns);
        }
        // The sender's line repeats the receiver's figures in some versions, and has zeros in others.
        if self.packets.is_some() && (is_receiver || stream.packet_count.is_none()) {
            (stream.packet_count, stream.lost_count) = (self.packets, self.lost);
            stream.loss_ratio = self.lost.zip(self.packets).and_then(|(lost, all)| ratio(lost, all));
            stream.jitter_ns = self.jitter_ns;
        }
    }

    fn add_to_test(&self, row: &mut Iperf3Row, retransmits: Option<u64>, is_receiver: bool) {
        let is_back = self.way == REVERSE && row.direction == Some(BOTH);
        let (bytes, bps) = match (is_back, is_receiver) {
            (false, false) => (&mut row.sent_bytes, &mut row.sent_bps),
            (false, true) => (&mut row.received_bytes, &mut row.received_bps),
            (true, false) => (&mut row.reverse_sent_bytes, &mut row.reverse_sent_bps),
            (true, true) => (&mut row.reverse_received_bytes, &mut row.reverse_received_bps),
        };
        (*bytes, *bps) = (self.amount, self.rate);
        if !is_receiver {
            *if is_back { &mut row.reverse_retransmit_count } else { &mut row.retransmit_count } = retransmits;
        }
        if row.duration_ns.is_none() {
            row.duration_ns = self.length.and_then(seconds_ns);
        }
        if self.packets.is_some() && (is_receiver || row.packet_count.is_none()) {
            (row.packet_count, row.lost_count, row.jitter_ns) = (self.packets, self.lost, self.jitter_ns);
            row.loss_ratio = self.lost.zip(self.packets).and_then(|(lost, all)| ratio(lost, all));
        }
    }
}

/// With one stream there is no line for the sum: the stream's figures are the test's.
fn sum_up(row: &mut Iperf3Row, streams: &[StreamRow]) {
    for way in [FORWARD, REVERSE] {
        let mut of_way = streams.iter().filter(|stream| stream.direction == Some(way));
        let (Some(stream), None) = (of_way.next(), of_way.next()) else { continue };
        if way == REVERSE && row.direction == Some(BOTH) {
            row.reverse_sent_bytes = row.reverse_sent_bytes.or(stream.sent_bytes);
            row.reverse_received_bytes = row.reverse_received_bytes.or(stream.received_bytes);
            row.reverse_sent_bps = row.reverse_sent_bps.or(stream.sent_bps);
            row.reverse_received_bps = row.reverse_received_bps.or(stream.received_bps);
            row.reverse_retransmit_count = row.reverse_retransmit_count.or(stream.retransmit_count);
            continue;
        }
        row.sent_bytes = row.sent_bytes.or(stream.sent_bytes);
        row.received_bytes = row.received_bytes.or(stream.received_bytes);
        row.sent_bps = row.sent_bps.or(stream.sent_bps);
        row.received_bps = row.received_bps.or(stream.received_bps);
        row.retransmit_count = row.retransmit_count.or(stream.retransmit_count);
        row.duration_ns = row.duration_ns.or(stream.duration_ns);
        row.packet_count = row.packet_count.or(stream.packet_count);
        row.lost_count = row.lost_count.or(stream.lost_count);
        row.loss_ratio = row.loss_ratio.or(stream.loss_ratio);
        row.jitter_ns = row.jitter_ns.or(stream.jitter_ns);
    }
}
