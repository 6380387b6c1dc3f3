//! `ethtool -S`, `rdma statistic show` and the files of `hw_counters`: the counters of a network card. Their names are the
//! driver's; what the common ones mean is said in `kind`.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;

use super::nic_names::{is_rdma, meaning, way_of};
use super::reading::{Reading, Rows, Tables, lines, numbered};
use crate::capture::Severity;
use crate::tables::{Symbol, TableDef, table};

table! {
    /// One row per counter of a network card that `ethtool -S`, `rdma statistic show` or `grep . .../hw_counters/*` printed (`dcb -s pfc
    /// show`: PFC frames). Counters run since the driver was loaded: two samples tell what an experiment added.
    table "nic_counters" => NicCounterRow / NicCounterBuilder {
        /// Number of the sample in the log, from 1: each call prints one.
        sample_no: u32,
        /// Line of the log, from 1.
        line: u64,
        /// Network interface or RDMA port, as `eth0` or `mlx5_0/1`; null where the log does not name it.
        device: Option<String>,
        /// The driver's name of the counter.
        name: Option<String>,
        /// Its value.
        value: Option<u64>,
        /// What it counts, where that is known. Flow control: `pause_frames` (with a class: PFC), `resume_frames`, `pfc_frames` (of all
        /// classes), `pause_duration_us`, `pause_transitions`, `pause_storm`. Congestion: `ecn_marked`, `cnp_sent`, `cnp_handled`,
        /// `cnp_ignored`. Loss: `out_of_sequence` (gaps that the responder saw), `sequence_naks`, `implied_naks`, `rnr_naks`,
        /// `duplicate_requests`, `ack_timeout`, `timeout_retransmits`, `adaptive_retransmits`, `retries`, `retry_exceeded`,
        /// `rnr_retry_exceeded`, `dropped_no_buffer`, `dropped`, `errors`, `crc_errors`, `icrc_errors`. Traffic: `packets`, `bytes` (most
        /// cards do not count pause frames among them), `rdma_packets`, `rdma_bytes` (counted apart from the host's).
        kind: Option<Symbol>,
        /// `rx` or `tx`.
        direction: Option<Symbol>,
        /// Priority class of a counter per priority, 0 to 7; null for PAUSE that stops all traffic.
        class: Option<u8>,
    }
}

static COUNTER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\s+(\S(?:.*\S)?)\s*:\s*(\d+)\s*$").ok());

/// Names of one sample that are remembered.
const MOST_NAMES: usize = 65_536;
const HEADS: [&str; 2] = ["NIC statistics:", "Standard stats for "];

/// `ethtool -S eth0`, as a saved session shows it.
static COMMAND: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"\bethtool\s+(?:-S|--statistics)\s+([\w.@-]+)").ok());

pub(super) fn tables() -> Vec<&'static TableDef> {
    vec![NicCounterRow::table()]
}

pub(super) fn is_in(text: &str) -> bool {
    lines(text).any(|line| is_head(line) || is_grepped(line) || is_rdma_line(line) || bare(line).is_some())
}

fn is_rdma_line(line: &str) -> bool {
    rdma_link(line).is_some_and(|(_, counters)| !counters.trim().is_empty())
}

fn is_head(line: &str) -> bool {
    HEADS.iter().any(|head| line.trim_start().starts_with(head))
}

/// A line of `ethtool -S eth0 | grep pause`, whose head is gone.
fn is_grepped(line: &str) -> bool {
    counter(line).is_some_and(|(_, name, _)| meaning(name).is_some())
}

/// `link mlx5_0/1 out_of_buffer 135 out_of_sequence 0 ...`: the port, and the counters with their values.
fn rdma_link(line: &str) -> Option<(&str, &str)> {
    let (port, counters) = line.trim_start().strip_prefix("link ")?.split_once(char::is_whitespace).or_else(|| {
        // `rdma -p`: the counters come on lines of their own.
        Some((line.trim_start().strip_prefix("link ")?, ""))
    })?;
    let port = port.trim();
    let (_, number) = port.split_once('/')?;
    let is_port = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let first = counters.split_whitespace().nth(1);
    // `rdma link` says what state a port is in.
    let is_statistic = first.is_none_or(|value| value.bytes().all(|byte| byte.is_ascii_digit()));
    (is_port && is_statistic).then_some((port, counters))
}

/// A counter of the RDMA side alone on its line, as `rdma -p statistic` and `grep -o` leave it.
fn bare(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_whitespace();
    let (name, value) = (words.next()?, words.next()?);
    let is_number = value.bytes().all(|byte| byte.is_ascii_digit());
    (words.next().is_none() && is_number && is_rdma(name)).then_some((name, value))
}

#[derive(Default)]
struct Sample {
    rows: Rows<NicCounterRow>,
    sample_no: u32,
    device: Option<String>,
    has_head: bool,
    /// Names of this sample: one that comes again begins the next.
    seen: HashSet<String>,
}

impl Sample {
    /// A new call's output begins, if the one before printed anything.
    fn begin(&mut self, device: Option<&str>) {
        if !self.seen.is_empty() {
            self.sample_no += 1;
            self.seen.clear();
        }
        self.device = device.map(str::to_owned);
    }

    fn push(
        &mut self,
        (device, name, value): (Option<&str>, &str, &str),
        line_no: u64,
        line: &str,
        reading: &mut Reading,
    ) {
        let key = format!("{} {name}", device.unwrap_or(""));
        // Under a head of ethtool, names may come again: a driver's rings.
        let begins = !self.has_head || device.is_some() || is_rdma(name);
        if begins && self.seen.contains(&key) {
            self.sample_no += 1;
            self.seen.clear();
        }
        if self.seen.len() < MOST_NAMES {
            self.seen.insert(key);
        }
        let parsed = value.parse().ok();
        if parsed.is_none() {
            reading.counts("figure_too_large", Severity::Warning, Some(line_no), line);
        }
        let known = meaning(name);
        self.rows.push(NicCounterRow {
            sample_no: self.sample_no,
            line: line_no,
            device: device.map(str::to_owned).or_else(|| self.device.clone()),
            name: Some(name.to_owned()),
            value: parsed,
            kind: known.and_then(|known| known.kind),
            direction: known.map_or_else(|| way_of(name), |known| known.direction),
            class: known.and_then(|known| known.class),
        });
    }
}

pub(super) fn read(text: &str, reading: &mut Reading) -> Tables {
    if !is_in(text) {
        return Ok(None);
    }
    let has_head = lines(text).any(is_head);
    let mut sample = Sample { sample_no: 1, has_head, ..Sample::default() };
    let mut is_inside = !has_head;
    for (line_no, line) in numbered(text) {
        if let Some(found) = COMMAND.as_ref().and_then(|command| command.captures(line)) {
            sample.begin(found.get(1).map(|device| device.as_str()));
        } else if is_head(line) {
            let device = sample.device.take();
            sample.begin(device.as_deref());
            is_inside = true;
        } else if let Some((port, counters)) = rdma_link(line) {
            // All ports are one call's.
            sample.device = Some(port.to_owned());
            let mut words = counters.split_whitespace();
            while let (Some(name), Some(value)) = (words.next(), words.next()) {
                if value.bytes().all(|byte| byte.is_ascii_digit()) {
                    sample.push((Some(port), name, value), line_no, line, reading);
                }
            }
        } else if let Some((name, value)) = bare(line) {
            let port = sample.device.clone();
            sample.push((port.as_deref(), name, value), line_no, line, reading);
        } else if let Some(found) = counter(line).filter(|(device, ..)| is_inside || device.is_some()) {
            sample.push(found, line_no, line, reading);
        } else if !line.trim().is_empty() && !line.starts_with(char::is_whitespace) {
            is_inside = !has_head;
        }
    }
    Ok(Some(vec![sample.rows.finish::<NicCounterBuilder>(NicCounterRow::table(), reading)?]))
}

/// Device, name and value of a counter.
fn counter(line: &str) -> Option<(Option<&str>, &str, &str)> {
    if line.len() > 512 {
        return None;
    }
    if let Some(found) = LazyLock::force(&COUNTER).as_ref()?.captures(line) {
        return Some((None, found.get(1)?.as_str(), found.get(2)?.as_str()));
    }
    // `grep -o`, or copied by hand: no space in front. `grep .`: the path of a file.
    let (name, value) = line.split_once(':').map(|(name, value)| (name.trim(), value.trim()))?;
    if value.is_empty() || !value.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let (folder, file) = name.rsplit_once('/').map_or(("", name), |(folder, file)| (folder, file));
    let is_counter = meaning(file).is_some() || folder.ends_with("hw_counters");
    let device = ["/infiniband/", "/net/"].iter().find_map(|mark| folder.split_once(mark)?.1.split('/').next());
    is_counter.then_some((device, file, value))
}
