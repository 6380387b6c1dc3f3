//! hping3. Its statistics go to standard error, so a log made with `>` lacks them: counts come from the lines then.

use std::sync::LazyLock;

use regex::Regex;

use super::reading::{Reading, Rows, Tables, lines, numbered};
use super::units::{ip, ms_ns, number, ratio};
use crate::capture::Severity;
use crate::tables::{TableDef, table};
use crate::wire::Ip;

table! {
    /// One row per run of hping3 in the log.
    table "hping3" => HpingRow / HpingBuilder {
        /// Number of the run in the log, from 1.
        run_no: u32,
        /// Line of the log that it starts on, from 1.
        line: u64,
        /// Host that was asked for, as it was typed.
        host: Option<String>,
        /// Address that was probed.
        dst_ip: Ip,
        /// Interface that it went out of.
        interface: Option<String>,
        /// Kind of the probes, as hping3 names it: `S set`, `NO FLAGS are set`, `icmp mode set`, `udp mode set`.
        mode: Option<String>,
        /// Headers of a probe, from IP on.
        header_bytes: Option<u32>,
        /// Payload of a probe.
        payload_bytes: Option<u32>,
        /// Probes sent; null without the statistics.
        sent_count: Option<u64>,
        /// Replies received; without the statistics, the lines that show one.
        received_count: u64,
        /// Probes without a reply over probes sent.
        loss_ratio: Option<f64>,
        /// Smallest round-trip time.
        rtt_min_ns: Option<i64>,
        /// Mean round-trip time.
        rtt_avg_ns: Option<i64>,
        /// Largest round-trip time.
        rtt_max_ns: Option<i64>,
        /// Whether the statistics are there; otherwise the times are computed from the lines.
        is_complete: bool,
    }
}

table! {
    /// One row per reply that hping3 printed.
    table "hping3_replies" => HpingReplyRow / HpingReplyBuilder {
        /// Number of the run in the log, from 1.
        run_no: u32,
        /// Line of the log, from 1.
        line: u64,
        /// The ICMP error that came as the answer, as `Port Unreachable`; null for a reply.
        icmp: Option<String>,
        /// Size of the reply, from IP on.
        ip_bytes: Option<u32>,
        /// Address that answered.
        src_ip: Ip,
        /// TTL of the reply.
        ttl: Option<u8>,
        /// Whether "don't fragment" was set in the reply.
        is_df: bool,
        /// IP identification of the reply.
        ip_id: Option<u16>,
        /// Port that answered.
        src_port: Option<u16>,
        /// TCP flags of the reply in hping3's letters: `SA` an open port, `RA` a closed one.
        flags_text: Option<String>,
        /// Number of the probe, from 0.
        sequence: Option<u32>,
        /// Window of the reply.
        window: Option<u32>,
        /// Round-trip time, to 0.1 ms.
        rtt_ns: Option<i64>,
    }
}

type Lazy = LazyLock<Option<Regex>>;

/// `HPING 10.9.2.2 (e0 10.9.2.2): S set, 40 headers + 0 data bytes`
static START: Lazy =
    LazyLock::new(|| Regex::new(r"HPING (\S+) \((\S+) ([^)\s]+)\): (.+?), (\d+) headers \+ (\d+) data bytes").ok());
static FIELD: Lazy = LazyLock::new(|| Regex::new(r"(\w+)=(\S+)").ok());
/// `ICMP Port Unreachable from ip=10.9.2.2 get hostname...`
static ICMP: Lazy = LazyLock::new(|| Regex::new(r"^\s*ICMP ([A-Za-z][A-Za-z ]*?) from ip=").ok());
/// hping3 writes "tramitted" in some builds.
static PACKETS: Lazy = LazyLock::new(|| Regex::new(r"(\d+) packets tran?s?mitted, (\d+) packets received").ok());
static TIMES: Lazy = LazyLock::new(|| Regex::new(r"round-trip min/avg/max = ([\d.]+)/([\d.]+)/([\d.]+) ms").ok());

pub(super) fn tables() -> Vec<&'static TableDef> {
    vec![HpingRow::table(), HpingReplyRow::table()]
}

pub(super) fn is_in(text: &str) -> bool {
    lines(text).any(|line| line.contains("hping statistic ---") || matched(&START, line).is_some() || is_reply(line))
}

fn is_reply(line: &str) -> bool {
    let is_answer = line.trim_start().starts_with("len=") && line.contains(" ip=") && line.contains(" rtt=");
    is_answer || matched(&ICMP, line).is_some()
}

pub(super) fn read(text: &str, reading: &mut Reading) -> Tables {
    if !is_in(text) {
        return Ok(None);
    }
    let mut runs = Runs::default();
    for (line_no, line) in numbered(text) {
        runs.line(line_no, line);
    }
    runs.end();
    for run in runs.runs.as_slice() {
        if !run.is_complete {
            reading.counts("hping_no_summary", Severity::Info, Some(run.line), "");
        }
    }
    Ok(Some(vec![
        runs.runs.finish::<HpingBuilder>(HpingRow::table(), reading)?,
        runs.replies.finish::<HpingReplyBuilder>(HpingReplyRow::table(), reading)?,
    ]))
}

#[derive(Default)]
struct Runs {
    runs: Rows<HpingRow>,
    replies: Rows<HpingReplyRow>,
    open: Option<HpingRow>,
    /// Statistics that came before their heading: standard error is often merged ahead of buffered standard output.
    early: Option<HpingRow>,
    /// Sum and number of the round-trip times of the open run.
    rtt: (i128, i64),
}

impl Runs {
    fn line(&mut self, line_no: u64, line: &str) {
        if let Some(found) = matched(&START, line) {
            self.end();
            let mut run = self.early.take().unwrap_or_else(|| self.run(line_no));
            run.host = Some(found[1].to_owned());
            run.interface = Some(found[2].to_owned());
            run.dst_ip = ip(&found[3]);
            run.mode = Some(found[4].to_owned());
            (run.header_bytes, run.payload_bytes) = (found[5].parse().ok(), found[6].parse().ok());
            self.open = Some(run);
        } else if is_reply(line) {
            let mut run = self.open.take().unwrap_or_else(|| self.run(line_no));
            self.reply(&mut run, line_no, line);
            self.open = Some(run);
        } else if let Some(found) = matched(&PACKETS, line) {
            let mut run = self.open.take().unwrap_or_else(|| self.run(line_no));
            run.is_complete = true;
            run.sent_count = found[1].parse().ok();
            run.received_count = found[2].parse().unwrap_or(run.received_count);
            self.open = Some(run);
        } else if let Some(found) = matched(&TIMES, line) {
            let Some(run) = &mut self.open else { return };
            let ms = |at: usize| found.get(at).and_then(|ms| number(ms.as_str())).and_then(ms_ns);
            (run.rtt_min_ns, run.rtt_avg_ns, run.rtt_max_ns) = (ms(1), ms(2), ms(3));
        }
    }

    fn run(&self, line_no: u64) -> HpingRow {
        HpingRow {
            run_no: (self.runs.len() as u32).saturating_add(1),
            line: line_no,
            host: None,
            dst_ip: Ip::NONE,
            interface: None,
            mode: None,
            header_bytes: None,
            payload_bytes: None,
            sent_count: None,
            received_count: 0,
            loss_ratio: None,
            rtt_min_ns: None,
            rtt_avg_ns: None,
            rtt_max_ns: None,
            is_complete: false,
        }
    }

    fn reply(&mut self, run: &mut HpingRow, line_no: u64, line: &str) {
        let mut row = HpingReplyRow {
            run_no: run.run_no,
            line: line_no,
            icmp: matched(&ICMP, line).map(|found| found[1].to_owned()),
            ip_bytes: None,
            src_ip: Ip::NONE,
            ttl: None,
            is_df: line.contains(" DF "),
            ip_id: None,
            src_port: None,
            flags_text: None,
            sequence: None,
            window: None,
            rtt_ns: None,
        };
        for found in LazyLock::force(&FIELD).iter().flat_map(|regex| regex.captures_iter(line)) {
            let value = &found[2];
            match &found[1] {
                "len" => row.ip_bytes = value.parse().ok(),
                "ip" => row.src_ip = ip(value),
                "ttl" => row.ttl = value.parse().ok(),
                "id" => row.ip_id = value.parse().ok(),
                "sport" => row.src_port = value.parse().ok(),
                "flags" => row.flags_text = Some(value.to_owned()),
                "seq" | "icmp_seq" => row.sequence = value.parse().ok(),
                "win" => row.window = value.parse().ok(),
                "rtt" => row.rtt_ns = number(value).and_then(ms_ns),
                _ => {}
            }
        }
        if !run.is_complete {
            run.received_count += 1;
            if let Some(rtt) = row.rtt_ns {
                run.rtt_min_ns = Some(run.rtt_min_ns.map_or(rtt, |known| known.min(rtt)));
                run.rtt_max_ns = Some(run.rtt_max_ns.map_or(rtt, |known| known.max(rtt)));
                self.rtt.0 += i128::from(rtt);
                self.rtt.1 += 1;
            }
        }
        self.replies.push(row);
    }

    fn end(&mut self) {
        let (sum, count) = std::mem::take(&mut self.rtt);
        let Some(mut run) = self.open.take() else { return };
        if run.is_complete && run.host.is_none() && run.run_no as usize == self.runs.len() + 1 && self.early.is_none() {
            let is_headless = !self.replies.as_slice().iter().any(|reply| reply.run_no == run.run_no);
            if is_headless {
                self.early = Some(run);
                return;
            }
        }
        if !run.is_complete {
            run.rtt_avg_ns = sum.checked_div(i128::from(count)).and_then(|avg| i64::try_from(avg).ok());
        }
        run.loss_ratio = run.sent_count.and_then(|sent| ratio(sent.saturating_sub(run.received_count), sent));
        self.runs.push(run);
    }
}

fn matched<'t>(regex: &Lazy, text: &'t str) -> Option<regex::Captures<'t>> {
    LazyLock::force(regex).as_ref()?.captures(text)
}
