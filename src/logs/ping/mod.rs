//! ping: iputils (Linux), BusyBox, BSD and macOS, and Windows in English and Chinese.

mod lines;
mod tables;

use super::reading::{Reading, Rows, Tables, lines, numbered};
use super::units::ratio;
use crate::capture::Severity;
use crate::tables::{Symbol, TableDef};
use crate::wire::Ip;
use lines::{Line, Statistics};
use tables::{PingBuilder, PingRow, ReplyBuilder, ReplyRow};

const SET: Symbol = Symbol("set");
const CLEAR: Symbol = Symbol("clear");
const ROUTER: Symbol = Symbol("router");
const HOST: Symbol = Symbol("host");

pub(super) fn tables() -> Vec<&'static TableDef> {
    vec![PingRow::table(), ReplyRow::table()]
}

pub(super) fn is_in(text: &str) -> bool {
    lines(text)
        .any(|line| matches!(lines::read(line), Some(Line::Start { .. } | Line::Answer(_) | Line::Failed { .. })))
}

pub(super) fn read(text: &str, reading: &mut Reading) -> Tables {
    let mut runs = Runs::default();
    for (line_no, text) in numbered(text) {
        if let Some(line) = lines::read(text) {
            runs.line(line_no, line);
        }
    }
    runs.end();
    if runs.runs.is_empty() {
        return Ok(None);
    }
    for run in runs.runs.as_slice() {
        if !run.is_complete && run.error.is_none() {
            reading.counts("ping_no_summary", Severity::Warning, Some(run.line), "");
        }
        if let Some(error) = &run.error {
            reading.counts("ping_error", Severity::Error, Some(run.line), error);
        }
    }
    let count = runs.runs.len() as u64;
    if count > 1 {
        reading.says("ping_runs", Severity::Info, Some(count), None, "");
    }
    Ok(Some(vec![
        runs.runs.finish::<PingBuilder>(PingRow::table(), reading)?,
        runs.replies.finish::<ReplyBuilder>(ReplyRow::table(), reading)?,
    ]))
}

#[derive(Default)]
struct Runs {
    runs: Rows<PingRow>,
    replies: Rows<ReplyRow>,
    open: Option<PingRow>,
    /// Highest and lowest sequence number of the open run.
    sequences: Option<(u32, u32)>,
    timeouts: u64,
    /// What a command line before the run asked for.
    asked_df: Option<Symbol>,
}

impl Runs {
    fn line(&mut self, line_no: u64, line: Line<'_>) {
        match line {
            Line::Command { df } => {
                self.end();
                self.asked_df = df;
            }
            Line::Start { tool, host, ip, payload_bytes, ip_bytes } => {
                self.end();
                let mut run = self.run(line_no, tool);
                run.host = Some(host.to_owned());
                (run.dst_ip, run.payload_bytes, run.ip_bytes) = (ip, payload_bytes, ip_bytes);
                run.df = self.asked_df.take();
                self.open = Some(run);
            }
            Line::Answer(answer) => {
                let mut run = self.open.take().unwrap_or_else(|| self.run(line_no, answer.tool));
                self.answer(&mut run, line_no, &answer);
                self.open = Some(run);
            }
            Line::Statistics(statistics) => {
                let mut run = self.open.take().unwrap_or_else(|| self.run(line_no, Symbol("iputils")));
                fill(&mut run, &statistics);
                self.open = Some(run);
            }
            Line::Failed { message } => {
                self.end();
                let mut run = self.run(line_no, Symbol("iputils"));
                run.error = Some(message.to_owned());
                self.open = Some(run);
                self.end();
            }
        }
    }

    fn run(&self, line_no: u64, tool: Symbol) -> PingRow {
        PingRow::new((self.runs.len() as u32).saturating_add(1), line_no, tool)
    }

    fn answer(&mut self, run: &mut PingRow, line_no: u64, answer: &lines::Answer) {
        match answer.kind.0 {
            "reply" => run.received_count += 1,
            "duplicate" => run.duplicate_count += 1,
            "timeout" => self.timeouts += 1,
            _ => run.error_count += 1,
        }
        if answer.has_df {
            run.df = Some(SET);
        }
        if let Some(mtu) = answer.mtu_bytes
            && run.path_mtu_bytes.is_none_or(|known| mtu < known)
        {
            run.path_mtu_bytes = Some(mtu);
            run.path_mtu_source = Some(if answer.kind.0 == "frag_needed" { ROUTER } else { HOST });
            run.path_mtu_ip = if answer.kind.0 == "frag_needed" { answer.src_ip } else { Ip::NONE };
        }
        if let Some(sequence) = answer.sequence {
            let (low, high) = self.sequences.unwrap_or((sequence, sequence));
            self.sequences = Some((low.min(sequence), high.max(sequence)));
        }
        self.replies.push(ReplyRow {
            run_no: run.run_no,
            line: line_no,
            time: answer.time,
            kind: answer.kind,
            sequence: answer.sequence,
            src_ip: answer.src_ip,
            answer_bytes: answer.bytes,
            ttl: answer.ttl,
            rtt_ns: answer.rtt_ns,
            mtu_bytes: answer.mtu_bytes,
        });
    }

    fn end(&mut self) {
        let (sequences, timeouts) = (self.sequences.take(), std::mem::take(&mut self.timeouts));
        let Some(mut run) = self.open.take() else { return };
        if run.sent_count.is_none() && run.error.is_none() {
            // Without statistics: what the lines show. Only iputils counts from 1; Windows has no numbers, but a line each.
            let first = u32::from(run.tool.0 == "iputils");
            let by_number = sequences.map(|(_, high)| u64::from(high) + 1 - u64::from(first.min(high)));
            let by_line = (run.tool.0 == "windows").then(|| run.received_count + run.error_count + timeouts);
            run.sent_count = by_number.or(by_line);
        }
        if let Some(sent) = run.sent_count {
            run.loss_ratio = ratio(sent.saturating_sub(run.received_count), sent);
        }
        self.runs.push(run);
    }
}

fn fill(run: &mut PingRow, statistics: &Statistics) {
    match *statistics {
        Statistics::Packets { sent, received, duplicates, errors, duration_ns } => {
            run.is_complete = true;
            run.sent_count = Some(sent);
            run.received_count = received;
            run.duplicate_count = duplicates.unwrap_or(run.duplicate_count);
            run.error_count = errors.unwrap_or(run.error_count);
            run.duration_ns = duration_ns;
        }
        Statistics::Times { min_ns, avg_ns, max_ns, mdev_ns } => {
            (run.rtt_min_ns, run.rtt_avg_ns, run.rtt_max_ns, run.rtt_mdev_ns) = (min_ns, avg_ns, max_ns, mdev_ns);
        }
    }
}
