//! `iperf3 -J` and `iperf3 --json-stream`.

use serde_json::Value;

use super::super::json::{Found, Repairs, each_object};
use super::super::reading::{Reading, line_at};
use super::super::units::{count, ip, ms_ns, ratio, seconds_ns, us_ns};
use super::tables::{IntervalRow, Iperf3Row, StreamRow};
use super::{BOTH, CLIENT, FORWARD, REVERSE, SERVER, Tests, direction};
use crate::capture::Severity;
use crate::tables::{Symbol, TimeNs};

/// Whether an object is a report of iperf3, or an event of its stream.
pub(super) fn is_document(value: &Value) -> bool {
    let has = |key| value.get(key).is_some();
    let is_event = value.get("event").is_some_and(Value::is_string) && has("data");
    let names_itself = value.pointer("/start/version").and_then(Value::as_str).is_some_and(|v| v.starts_with("iperf"));
    is_event || names_itself || (has("start") && (has("intervals") || has("end"))) || (has("end") && has("intervals"))
}

pub(super) fn read(text: &str, tests: &mut Tests, reading: &mut Reading) {
    let mut stream = Stream::default();
    let mut last_end = None;
    each_object(text, reading, is_document, |found, _, reading| {
        last_end = Some(found.end);
        match found.value.get("event").and_then(Value::as_str) {
            Some(event) => stream.event(event, &found.value, tests, reading),
            None => {
                stream.flush(tests, reading);
                whole(found, text, tests, reading);
            }
        }
    });
    stream.flush(tests, reading);
    let after = last_end.and_then(|end| text.get(end..)).unwrap_or("").trim();
    if let Some(end) = last_end.filter(|_| !after.is_empty()) {
        reading.says("text_after_json", Severity::Info, None, Some(line_at(text, end)), after);
    }
}

/// A whole report. Some versions print it twice; a server prints one per test.
fn whole(found: &Found, text: &str, tests: &mut Tests, reading: &mut Reading) {
    let cookie = found.value.pointer("/start/cookie").and_then(Value::as_str);
    let is_again = tests.tests.as_slice().iter().any(|test| match (&test.cookie, cookie) {
        (Some(known), Some(cookie)) => known == cookie,
        (None, None) => {
            test.error.is_some() && test.error.as_deref() == found.value.get("error").and_then(Value::as_str)
        }
        _ => false,
    });
    if is_again {
        reading.counts("json_twice", Severity::Info, Some(line_at(text, found.start)), "");
        return;
    }
    let empty = Value::Null;
    let section = |key| found.value.get(key).unwrap_or(&empty);
    let mut test = Test::new(tests, reading);
    test.start(section("start"));
    test.complete_if(&found.repairs);
    for interval in section("intervals").as_array().into_iter().flatten() {
        test.interval(interval);
    }
    test.end(section("end"));
    test.row.error = found.value.get("error").and_then(Value::as_str).map(str::to_owned);
    test.push();
}

/// `--json-stream`: one event per line.
#[derive(Default)]
struct Stream {
    start: Option<Value>,
    intervals: Vec<Value>,
    end: Option<Value>,
    error: Option<String>,
}

impl Stream {
    fn event(&mut self, event: &str, value: &Value, tests: &mut Tests, reading: &mut Reading) {
        let data = value.get("data").cloned().unwrap_or_default();
        match event {
            "start" => {
                self.flush(tests, reading);
                self.start = Some(data);
            }
            "interval" => self.intervals.push(data),
            "end" => self.end = Some(data),
            "error" => self.error = data.as_str().map(str::to_owned),
            _ => {}
        }
    }

    fn flush(&mut self, tests: &mut Tests, reading: &mut Reading) {
        let Self { start, intervals, end, error } = std::mem::take(self);
        if start.is_none() && intervals.is_empty() && end.is_none() && error.is_none() {
            return;
        }
        let mut test = Test::new(tests, reading);
        test.start(&start.unwrap_or_default());
        for interval in &intervals {
            test.interval(interval);
        }
        test.end(&end.unwrap_or_default());
        test.row.error = error;
        test.push();
    }
}

/// A test that is being read.
struct Test<'a> {
    tests: &'a mut Tests,
    reading: &'a mut Reading,
    row: Iperf3Row,
    streams: Vec<StreamRow>,
    interval_no: u32,
    is_reverse: bool,
    is_cut: bool,
}

impl<'a> Test<'a> {
    fn new(tests: &'a mut Tests, reading: &'a mut Reading) -> Self {
        let test_no = tests.tests.len() as u32 + 1;
        let row = Iperf3Row::new(test_no);
        Self { tests, reading, row, streams: Vec::new(), interval_no: 0, is_reverse: false, is_cut: false }
    }

    fn complete_if(&mut self, repairs: &Repairs) {
        self.is_cut = repairs.is_cut || repairs.broken_at.is_some() || repairs.is_over_limit;
    }

    fn push(mut self) {
        if let Some(first) = self.streams.first() {
            self.row.local_ip = first.local_ip;
            self.row.local_port = first.local_port;
            self.row.remote_ip = first.remote_ip;
            self.row.remote_port = first.remote_port;
        }
        for stream in self.streams {
            self.tests.streams.push(stream);
        }
        self.tests.tests.push(self.row);
    }

    fn start(&mut self, start: &Value) {
        let row = &mut self.row;
        let text = |key| start.get(key).and_then(Value::as_str).map(str::to_owned);
        row.version = text("version").map(|version| version.trim_start_matches("iperf ").to_owned());
        row.cookie = text("cookie").filter(|cookie| !cookie.is_empty());
        let port = |value: Option<&Value>| value.and_then(|v| v.get("port")?.as_u64()).and_then(|p| p.try_into().ok());
        let (connecting, accepted) = (start.get("connecting_to"), start.get("accepted_connection"));
        row.role = match (connecting, accepted) {
            (Some(_), _) => Some(CLIENT),
            (None, Some(_)) => Some(SERVER),
            _ => None,
        };
        let stamp = |key| start.pointer(key).and_then(Value::as_u64);
        let ms = stamp("/timestamp/timemillisecs").and_then(|ms| i64::try_from(ms).ok()?.checked_mul(1_000_000));
        let s = stamp("/timestamp/timesecs").and_then(|s| i64::try_from(s).ok()?.checked_mul(1_000_000_000));
        row.start = ms.or(s).map(TimeNs);
        let mss =
            |key| start.get(key).and_then(Value::as_u64).and_then(|mss| u32::try_from(mss).ok()).filter(|mss| *mss > 0);
        row.control_mss_bytes = mss("tcp_mss_default");
        row.requested_mss_bytes = mss("tcp_mss");
        for connected in start.get("connected").and_then(Value::as_array).into_iter().flatten() {
            let mut stream = StreamRow::new(row.test_no, self.streams.len() as u32 + 1);
            let host = |key| connected.get(key).and_then(Value::as_str).map_or(crate::wire::Ip::NONE, ip);
            let port = |key| connected.get(key).and_then(Value::as_u64).and_then(|port| port.try_into().ok());
            stream.socket = connected.get("socket").and_then(Value::as_i64);
            (stream.local_ip, stream.local_port) = (host("local_host"), port("local_port"));
            (stream.remote_ip, stream.remote_port) = (host("remote_host"), port("remote_port"));
            self.streams.push(stream);
        }
        row.server_port = match row.role {
            Some(SERVER) => self.streams.first().and_then(|stream| stream.local_port),
            _ => port(connecting),
        };
        let Some(asked) = start.get("test_start") else { return };
        let number = |key| asked.get(key).and_then(Value::as_f64);
        row.protocol = asked.get("protocol").and_then(Value::as_str).and_then(protocol);
        self.is_reverse = number("reverse").is_some_and(|reverse| reverse != 0.0);
        let is_both = number("bidir").is_some_and(|bidir| bidir != 0.0);
        row.direction = Some(if is_both {
            BOTH
        } else if self.is_reverse {
            REVERSE
        } else {
            FORWARD
        });
        row.stream_count = number("num_streams").and_then(count).and_then(|n| n.try_into().ok());
        row.block_bytes = number("blksize").and_then(count);
        let by_amount = number("bytes").is_some_and(|n| n > 0.0) || number("blocks").is_some_and(|n| n > 0.0);
        row.requested_ns = number("duration").filter(|s| *s > 0.0 && !by_amount).and_then(seconds_ns);
        row.omitted_ns = number("omit").filter(|s| *s > 0.0).and_then(seconds_ns);
        row.tos = number("tos").and_then(count).and_then(|tos| tos.try_into().ok());
        let target = number("target_bitrate").or(start.get("target_bitrate").and_then(Value::as_f64));
        row.target_bps = target.filter(|bps| *bps > 0.0).and_then(count);
    }

    fn interval(&mut self, interval: &Value) {
        self.interval_no = self.interval_no.saturating_add(1);
        for (position, stream) in interval.get("streams").and_then(Value::as_array).into_iter().flatten().enumerate() {
            let stream_no = self.stream_of(stream, position);
            let row = self.interval_row(stream, Some(stream_no));
            self.tests.intervals.push(row);
        }
        for key in ["sum", "sum_bidir_reverse"] {
            if let Some(sum) = interval.get(key) {
                let row = self.interval_row(sum, None);
                self.tests.intervals.push(row);
            }
        }
    }

    /// The number of a stream, by its socket; a log whose start is missing tells of sockets only here.
    fn stream_of(&mut self, value: &Value, position: usize) -> u32 {
        let socket = value.get("socket").and_then(Value::as_i64);
        let by_socket = socket.and_then(|socket| self.streams.iter().find(|stream| stream.socket == Some(socket)));
        if let Some(stream) = by_socket {
            return stream.stream_no;
        }
        if socket.is_none() && position < self.streams.len() {
            return position as u32 + 1;
        }
        let stream_no = self.streams.len() as u32 + 1;
        let mut stream = StreamRow::new(self.row.test_no, stream_no);
        stream.socket = socket;
        self.streams.push(stream);
        stream_no
    }

    fn interval_row(&mut self, value: &Value, stream_no: Option<u32>) -> IntervalRow {
        let is_sender = value.get("sender").and_then(Value::as_bool);
        let way = match is_sender {
            Some(is_sender) => Some(direction(self.row.role, is_sender)),
            None => self.row.direction.filter(|direction| *direction != BOTH),
        };
        if let (Some(way), Some(stream)) = (way, stream_no.and_then(|no| self.streams.get_mut(no as usize - 1))) {
            stream.direction.get_or_insert(way);
        }
        let start = number(value, "start");
        let length = number(value, "seconds").or(number(value, "end").zip(start).map(|(end, start)| end - start));
        IntervalRow {
            test_no: self.row.test_no,
            interval_no: self.interval_no,
            stream_no,
            is_sum: stream_no.is_none(),
            direction: way,
            is_omitted: value.get("omitted").and_then(Value::as_bool).unwrap_or(false),
            start_ns: start.and_then(seconds_ns),
            duration_ns: length.and_then(seconds_ns),
            transferred_bytes: self.figure(value, "bytes"),
            transferred_bps: self.figure(value, "bits_per_second"),
            retransmit_count: self.figure(value, "retransmits"),
            cwnd_bytes: self.figure(value, "snd_cwnd"),
            window_bytes: self.figure(value, "snd_wnd"),
            rtt_ns: number(value, "rtt").and_then(us_ns),
            rttvar_ns: number(value, "rttvar").and_then(us_ns),
            pmtu_bytes: self.figure(value, "pmtu").and_then(|pmtu| pmtu.try_into().ok()),
            packet_count: self.figure(value, "packets"),
            lost_count: self.figure(value, "lost_packets"),
            jitter_ns: number(value, "jitter_ms").and_then(ms_ns),
        }
    }

    /// A count; a negative one is an overflow inside iperf3.
    fn figure(&mut self, value: &Value, key: &'static str) -> Option<u64> {
        let number = number(value, key)?;
        if number < 0.0 {
            self.reading.counts("negative_figure", Severity::Warning, None, key);
        }
        count(number)
    }

    fn end(&mut self, end: &Value) {
        let sums = ["sum_sent", "sum_received", "sum"].map(|key| end.get(key).filter(|sum| sum.is_object()));
        self.row.is_complete = !self.is_cut && sums.iter().any(Option::is_some);
        if end.get("sum_sent_bidir_reverse").is_some() {
            self.row.direction = Some(BOTH);
        }
        for (position, stream) in end.get("streams").and_then(Value::as_array).into_iter().flatten().enumerate() {
            self.stream_end(stream, position);
        }
        let [sent, received, sum] = sums;
        let is_udp = sum.is_some();
        // Before 3.13 or so UDP has `sum` alone.
        let (sent, received) = if sent.is_none() && received.is_none() { (sum, None) } else { (sent, received) };
        let first_way = if self.is_reverse { REVERSE } else { FORWARD };
        let known = self.known(first_way);
        self.row.duration_ns = sent.or(received).and_then(|sum| number(sum, "seconds")).and_then(seconds_ns);
        (self.row.sent_bytes, self.row.sent_bps) = self.volume(sent, known.0);
        (self.row.received_bytes, self.row.received_bps) = self.volume(received, known.1);
        self.row.retransmit_count = sent.filter(|_| known.0).and_then(|sent| self.figure(sent, "retransmits"));
        let known = self.known(REVERSE);
        let back = end.get("sum_sent_bidir_reverse");
        (self.row.reverse_sent_bytes, self.row.reverse_sent_bps) = self.volume(back, known.0);
        self.row.reverse_retransmit_count = back.filter(|_| known.0).and_then(|sent| self.figure(sent, "retransmits"));
        (self.row.reverse_received_bytes, self.row.reverse_received_bps) =
            self.volume(end.get("sum_received_bidir_reverse"), known.1);
        if is_udp {
            let figures = sum.or(received).unwrap_or(&Value::Null);
            self.row.packet_count = self.figure(figures, "packets");
            self.row.lost_count = self.figure(figures, "lost_packets");
            self.row.loss_ratio =
                self.row.lost_count.zip(self.row.packet_count).and_then(|(lost, all)| ratio(lost, all));
            self.row.jitter_ns = number(figures, "jitter_ms").and_then(ms_ns);
        }
        let text = |key| end.get(key).and_then(Value::as_str).map(str::to_owned);
        self.row.sender_congestion = text("sender_tcp_congestion");
        self.row.receiver_congestion = text("receiver_tcp_congestion");
    }

    /// Whether the log knows what the sender, and what the receiver counted. A client is told the server's figures at the
    /// end; a server never hears the client's, and prints zeros for them.
    fn known(&self, way: Symbol) -> (bool, bool) {
        let is_server = self.row.role == Some(SERVER);
        (!is_server || way == REVERSE, !is_server || way == FORWARD)
    }

    fn volume(&mut self, sum: Option<&Value>, is_known: bool) -> (Option<u64>, Option<u64>) {
        let Some(sum) = sum else { return (None, None) };
        let (bytes, bps) = (self.figure(sum, "bytes"), self.figure(sum, "bits_per_second"));
        if is_known || bytes.is_some_and(|bytes| bytes > 0) { (bytes, bps) } else { (None, None) }
    }

    fn stream_end(&mut self, value: &Value, position: usize) {
        let udp = value.get("udp");
        let (sender, receiver) = (udp.or(value.get("sender")), value.get("receiver"));
        let Some(any) = sender.or(receiver) else { return };
        let stream_no = self.stream_of(any, position);
        let is_sender = any.get("sender").and_then(Value::as_bool);
        let is_both = self.row.direction == Some(BOTH);
        let way = match is_sender {
            Some(is_sender) => direction(self.row.role, is_sender),
            None if is_both => FORWARD,
            None => self.row.direction.unwrap_or(FORWARD),
        };
        let known = self.known(way);
        let (sent_bytes, sent_bps) = self.volume(sender, known.0);
        let (received_bytes, received_bps) = self.volume(receiver, known.1);
        let retransmit_count = sender.filter(|_| known.0).and_then(|sender| self.figure(sender, "retransmits"));
        // A receiver prints zeros for what only the sender's kernel knows.
        let mut positive = |key| sender.and_then(|sender| self.figure(sender, key)).filter(|figure| *figure > 0);
        let (cwnd, window) = (positive("max_snd_cwnd"), positive("max_snd_wnd"));
        let mut rtt = |key| positive(key).and_then(|us| us_ns(us as f64));
        let (min_rtt_ns, mean_rtt_ns, max_rtt_ns) = (rtt("min_rtt"), rtt("mean_rtt"), rtt("max_rtt"));
        let mut of_udp = |key| udp.and_then(|udp| self.figure(udp, key));
        let (packets, lost, out_of_order) = (of_udp("packets"), of_udp("lost_packets"), of_udp("out_of_order"));
        let Some(stream) = self.streams.get_mut(stream_no as usize - 1) else { return };
        stream.direction = Some(way);
        stream.duration_ns = number(any, "seconds").and_then(seconds_ns);
        (stream.sent_bytes, stream.sent_bps) = (sent_bytes, sent_bps);
        (stream.received_bytes, stream.received_bps) = (received_bytes, received_bps);
        stream.retransmit_count = retransmit_count;
        (stream.max_cwnd_bytes, stream.max_window_bytes) = (cwnd, window);
        (stream.min_rtt_ns, stream.mean_rtt_ns, stream.max_rtt_ns) = (min_rtt_ns, mean_rtt_ns, max_rtt_ns);
        (stream.packet_count, stream.lost_count, stream.out_of_order_count) = (packets, lost, out_of_order);
        stream.loss_ratio = lost.zip(packets).and_then(|(lost, packets)| ratio(lost, packets));
        stream.jitter_ns = udp.and_then(|udp| number(udp, "jitter_ms")).and_then(ms_ns);
    }
}

fn number(value: &Value, key: &str) -> Option<f64> {
    value.get(key).and_then(Value::as_f64)
}

pub(super) fn protocol(name: &str) -> Option<Symbol> {
    ["TCP", "UDP", "SCTP"].into_iter().find(|known| known.eq_ignore_ascii_case(name)).map(Symbol)
}
