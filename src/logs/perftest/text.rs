//! What perftest prints.

use std::sync::LazyLock;

use regex::Regex;

use super::super::reading::{Reading, lines, numbered};
use super::super::units::{count, hex, number, us_ns};
use super::Runs;
use super::tables::{PerftestRow, QpRow, ResultRow};
use crate::tables::Symbol;
use crate::wire::Ip;

type Lazy = LazyLock<Option<Regex>>;

/// `                    RDMA_Write BW Test`, `Atomic CMP_AND_SWAP BW Test`, `Send Bidirectional BW Test`
static TITLE: Lazy = LazyLock::new(|| {
    Regex::new(r"^\s*((?:RDMA_Write|RDMA_Read|Send|Atomic|Raw Ethernet)\b.*(?:BW|Latency)\b.*Test)\s*$").ok()
});
/// ` Number of qps   : 1`, two tabs, `Transport type : IB`
static SETTING: Lazy =
    LazyLock::new(|| Regex::new(r"(?:^|\s{2,}|\t)\s*([A-Za-z][\w .*]*?)\s*: ?([^\s:][^\t]*?)(?:\t|\s{2,}|$)").ok());
static ADDRESS: Lazy = LazyLock::new(|| {
    Regex::new(r"(local|remote) address: LID \S+ QPN (\S+) PSN (\S+)(?:.*? RKey (\S+) VAddr (\S+))?").ok()
});
static GID: Lazy = LazyLock::new(|| Regex::new(r"^\s*GID: ((?:[0-9a-fA-F]{2,3}:){15}[0-9a-fA-F]{2,3})\s*$").ok());
/// Something that only a failing program prints.
static TROUBLE: Lazy = LazyLock::new(|| {
    Regex::new(
        r"(?i)(couldn't|unable to|failed to|failed status|completion with error|timeout|not found|mismatch|error)",
    )
    .ok()
});

pub(super) fn is_in(text: &str) -> bool {
    lines(text)
        .any(|line| Columns::of(line).is_some() || matched(&TITLE, line).is_some() || matched(&ADDRESS, line).is_some())
}

pub(super) fn read(text: &str, runs: &mut Runs, reading: &mut Reading) {
    if !is_in(text) {
        return;
    }
    let mut parser = Parser::default();
    for (line_no, line) in numbered(text) {
        parser.line(line_no, line, runs, reading);
    }
    parser.flush(runs);
}

#[derive(Default)]
struct Parser {
    run: Option<PerftestRow>,
    qps: Vec<QpRow>,
    columns: Option<Columns>,
    is_server: bool,
    trouble: Option<String>,
    /// Whether the address last seen was the local one.
    is_local: bool,
    local_count: usize,
    remote_count: usize,
}

/// What the columns of a heading stand for.
#[derive(Clone, Copy, PartialEq)]
enum Columns {
    Bandwidth(Symbol),
    Latency,
    LatencyByTime,
}

impl Columns {
    fn of(line: &str) -> Option<Self> {
        if !line.contains("#bytes") || !line.contains("#iterations") {
            return None;
        }
        if line.contains("BW average") {
            return Some(Self::Bandwidth(Symbol(if line.contains("Gb/sec") { "Gb/s" } else { "MiB/s" })));
        }
        match (line.contains("t_min"), line.contains("t_avg")) {
            (true, _) => Some(Self::Latency),
            (false, true) => Some(Self::LatencyByTime),
            _ => None,
        }
    }
}

impl Parser {
    fn line(&mut self, line_no: u64, line: &str, runs: &mut Runs, reading: &mut Reading) {
        if line.contains("Waiting for client to connect") {
            self.flush(runs);
            self.is_server = true;
        } else if let Some(title) = matched(&TITLE, line) {
            self.flush(runs);
            self.run(line_no, runs).name(&title[1]);
        } else if let Some(columns) = Columns::of(line) {
            self.run(line_no, runs);
            self.columns = Some(columns);
        } else if let Some(found) = matched(&ADDRESS, line) {
            self.run(line_no, runs);
            self.address(&found);
        } else if let Some(gid) = matched(&GID, line) {
            self.gid(&gid[1]);
        } else if let Some(row) = self.result(line_no, line, reading) {
            if let Some(run) = &mut self.run {
                run.is_complete = true;
            }
            runs.results.push(row);
        } else if matched(&TROUBLE, line).is_some() && !line.contains("  ") && line.len() < 512 {
            // Standard error comes first where both were saved together.
            self.trouble.get_or_insert_with(|| line.trim().to_owned());
        } else if let (Some(run), Some(settings)) = (&mut self.run, LazyLock::force(&SETTING)) {
            let mut at = 0;
            while let Some(found) = settings.captures_at(line, at) {
                run.setting(&found[1], &found[2]);
                let end = found.get(2).map_or(line.len(), |value| value.end());
                at = end.max(at + 1);
                if at > line.len() || !line.is_char_boundary(at) {
                    break;
                }
            }
        }
    }

    fn run(&mut self, line_no: u64, runs: &Runs) -> &mut PerftestRow {
        let run_no = (runs.runs.len() as u32).saturating_add(1);
        let role = Symbol(if self.is_server { "server" } else { "client" });
        self.run.get_or_insert_with(|| {
            let mut run = PerftestRow::new(run_no, line_no);
            run.role = Some(role);
            run
        })
    }

    fn address(&mut self, found: &regex::Captures<'_>) {
        let Some(run_no) = self.run.as_ref().map(|run| run.run_no) else { return };
        self.is_local = &found[1] == "local";
        let at = if self.is_local { &mut self.local_count } else { &mut self.remote_count };
        *at += 1;
        let number = *at;
        // Local and remote lines come in pairs, or all local ones first.
        if self.qps.len() < number {
            self.qps.push(QpRow::new(run_no, number as u32));
        }
        let Some(qp) = self.qps.get_mut(number - 1) else { return };
        let value = |group: usize| found.get(group).and_then(|text| hex(text.as_str()));
        let small = |group: usize| value(group).and_then(|value| u32::try_from(value).ok());
        if self.is_local {
            (qp.local_qp, qp.local_psn, qp.local_rkey, qp.local_va) = (small(2), small(3), small(4), value(5));
        } else {
            (qp.remote_qp, qp.remote_psn, qp.remote_rkey, qp.remote_va) = (small(2), small(3), small(4), value(5));
        }
    }

    fn gid(&mut self, text: &str) {
        let at = if self.is_local { self.local_count } else { self.remote_count };
        let ip = gid_address(text);
        if let Some(qp) = at.checked_sub(1).and_then(|at| self.qps.get_mut(at)) {
            *if self.is_local { &mut qp.local_ip } else { &mut qp.remote_ip } = ip;
        }
    }

    fn result(&self, line_no: u64, line: &str, reading: &mut Reading) -> Option<ResultRow> {
        let columns = self.columns?;
        let run = self.run.as_ref()?;
        let mut words = line.split_whitespace();
        let mut row = ResultRow::new(run.run_no, line_no);
        row.message_bytes = Some(words.next()?.parse().ok()?);
        row.iteration_count = Some(words.next()?.parse().ok()?);
        let figures: Vec<Option<f64>> = words.take(16).map(number).collect();
        let figure = |at: usize| figures.get(at).copied().flatten();
        figures.first()?;
        let us = |at: usize| figure(at).and_then(us_ns);
        match columns {
            Columns::Bandwidth(unit) => {
                row.bandwidth(Some(unit), [figure(0), figure(1), figure(2)], reading);
            }
            Columns::Latency => {
                (row.latency_min_ns, row.latency_max_ns, row.latency_typical_ns) = (us(0), us(1), us(2));
                (row.latency_avg_ns, row.latency_stdev_ns) = (us(3), us(4));
                (row.latency_p99_ns, row.latency_p999_ns) = (us(5), us(6));
            }
            Columns::LatencyByTime => {
                row.latency_avg_ns = us(0);
                row.transactions_per_second = figure(1).filter(|tps| count(*tps).is_some());
            }
        }
        Some(row)
    }

    fn flush(&mut self, runs: &mut Runs) {
        let mut rest = std::mem::take(self);
        let Some(mut run) = rest.run.take() else {
            // Trouble and the waiting for a client come before the heading.
            (self.trouble, self.is_server) = (rest.trouble, rest.is_server);
            return;
        };
        // A warning does not matter to a run that came to its end.
        run.error = rest.trouble.filter(|_| !run.is_complete);
        for qp in rest.qps {
            runs.qps.push(qp);
        }
        runs.runs.push(run);
    }
}

/// perftest prints a GID in decimal bytes, `00:...:255:255:10:77:00:01`, or (IPv6, newer versions) in hexadecimal.
fn gid_address(text: &str) -> Ip {
    let parts: Vec<&str> = text.split(':').collect();
    let decimal: Option<Vec<u8>> = parts.iter().map(|part| part.parse().ok()).collect();
    let bytes = decimal.or_else(|| parts.iter().map(|part| u8::from_str_radix(part, 16).ok()).collect());
    let Some(bytes) = bytes.and_then(|bytes| <[u8; 16]>::try_from(bytes).ok()) else { return Ip::NONE };
    match bytes {
        [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, a, b, c, d] => Ip::v4([a, b, c, d]),
        bytes => Ip::v6(bytes),
    }
}

fn matched<'t>(regex: &Lazy, text: &'t str) -> Option<regex::Captures<'t>> {
    LazyLock::force(regex).as_ref()?.captures(text)
}
