//! `ethtool -S`: the counters of a network card. Their names are the driver's; what the common ones mean is said in `kind`.

use std::sync::LazyLock;

use regex::Regex;

use super::reading::{Reading, Rows, Tables, lines, numbered};
use crate::capture::Severity;
use crate::tables::{Symbol, TableDef, table};

table! {
    /// One row per counter of a network card that `ethtool -S` printed. Counters run since the driver was loaded: two samples
    /// tell what an experiment added.
    table "nic_counters" => NicCounterRow / NicCounterBuilder {
        /// Number of the sample in the log, from 1: each call of ethtool prints one.
        sample_no: u32,
        /// Line of the log, from 1.
        line: u64,
        /// The driver's name of the counter.
        name: Option<String>,
        /// Its value.
        value: Option<u64>,
        /// What it counts, where that is known: `pause_frames`, `pause_duration_us`, `pause_transitions`, `pause_storm`,
        /// `dropped_no_buffer`, `dropped`, `errors`, `crc_errors`, `ecn_marked`, `cnp_sent`, `cnp_handled`, `out_of_sequence`,
        /// `ack_timeout`, `packets` or `bytes`.
        kind: Option<Symbol>,
        /// `rx` or `tx`.
        direction: Option<Symbol>,
        /// Priority class of a counter per priority, 0 to 7; null for PAUSE that stops all traffic.
        class: Option<u8>,
    }
}

/// Patterns over the whole name, and what such a counter counts. The first that fits counts.
/// mlx5: kernel documentation, "Ethtool counters"; i40e, ice, ixgbe and bnxt: their drivers' string tables.
const KINDS: [(&str, &str); 23] = [
    (r"^(rx|tx)_prio(\d)_pause_duration$", "pause_duration_us"),
    (r"^(rx|tx)_prio(\d)_pause_transition$", "pause_transitions"),
    (r"^(rx|tx)_prio(\d)_pause$", "pause_frames"),
    (r"^(rx|tx)_prio(\d)_(?:buf_)?discards?$", "dropped_no_buffer"),
    (r"^(rx|tx)_prio(\d)_packets$", "packets"),
    (r"^(rx|tx)_prio(\d)_bytes$", "bytes"),
    (r"^(rx|tx)_(?:global_pause|pause_ctrl_phy)$", "pause_frames"),
    (r"^(rx|tx)_global_pause_duration$", "pause_duration_us"),
    (r"^(rx|tx)_global_pause_transition$", "pause_transitions"),
    (r"^(tx)_pause_storm_(?:warning|error)_events$", "pause_storm"),
    (r"^(?:port\.)?(rx|tx)_priority_(\d)_xoff(?:\.nic)?$", "pause_frames"),
    (r"^(?:port\.)?link_xoff_(rx|tx)(?:\.nic)?$", "pause_frames"),
    (r"^(rx|tx)_flow_control_xoff$", "pause_frames"),
    (r"^(rx|tx)_pfc_ena_frames_pri(\d)$", "pause_frames"),
    (r"^pfc_pri(?P<class>\d)_(?P<way>rx|tx)_duration_us$", "pause_duration_us"),
    (r"^pfc_pri(?P<class>\d)_(?P<way>rx|tx)_transitions$", "pause_transitions"),
    (r"^(rx|tx)_pause(?:_frames)?$", "pause_frames"),
    (r"^(rx|tx)(?:\d+)?_ecn_mark$", "ecn_marked"),
    (r"^(rx)_(?:out_of_buffer|discards_phy|no_buffer_count|missed_errors)$", "dropped_no_buffer"),
    (r"^(rx|tx)_(?:dropped|drops|discards|discards_phy|queue_dropped)$", "dropped"),
    (r"^(rx|tx)_(?:crc_errors|crc_errors_phy)$", "crc_errors"),
    (r"^(rx|tx)_(?:errors|errors_phy|symbol_err_phy|wqe_err|length_errors)$", "errors"),
    (r"^(rx|tx)_(packets|bytes)(?:_phy)?$", ""),
];

/// Counters of the RDMA side, as `hw_counters` names them and some drivers' `ethtool -S` too.
const NAMED: [(&str, &str); 7] = [
    ("np_cnp_sent", "cnp_sent"),
    ("rp_cnp_handled", "cnp_handled"),
    ("np_ecn_marked_roce_packets", "ecn_marked"),
    ("out_of_sequence", "out_of_sequence"),
    ("packet_seq_err", "out_of_sequence"),
    ("local_ack_timeout_err", "ack_timeout"),
    ("out_of_buffer", "dropped_no_buffer"),
];

static PATTERNS: LazyLock<Vec<(Regex, &'static str)>> =
    LazyLock::new(|| KINDS.iter().filter_map(|(pattern, kind)| Some((Regex::new(pattern).ok()?, *kind))).collect());
static COUNTER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"^\s+(\S(?:.*\S)?)\s*:\s*(\d+)\s*$").ok());

const HEADS: [&str; 2] = ["NIC statistics:", "Standard stats for "];

pub(super) fn tables() -> Vec<&'static TableDef> {
    vec![NicCounterRow::table()]
}

pub(super) fn is_in(text: &str) -> bool {
    lines(text).any(|line| HEADS.iter().any(|head| line.trim_start().starts_with(head)) || is_grepped(line))
}

/// A line of `ethtool -S eth0 | grep pause`, whose head is gone.
fn is_grepped(line: &str) -> bool {
    counter(line).is_some_and(|(name, _)| meaning(name).is_some())
}

pub(super) fn read(text: &str, reading: &mut Reading) -> Tables {
    if !is_in(text) {
        return Ok(None);
    }
    let has_head = lines(text).any(|line| HEADS.iter().any(|head| line.trim_start().starts_with(head)));
    let mut rows: Rows<NicCounterRow> = Rows::default();
    let (mut sample_no, mut is_inside) = (1, !has_head);
    for (line_no, line) in numbered(text) {
        if HEADS.iter().any(|head| line.trim_start().starts_with(head)) {
            sample_no += u32::from(!rows.is_empty());
            is_inside = true;
        } else if let Some((name, value)) = counter(line).filter(|_| is_inside) {
            let (kind, direction, class) = meaning(name).unwrap_or((None, way(name), None));
            // Without heads, a name that comes again begins the next sample.
            let is_again = !has_head
                && rows
                    .as_slice()
                    .iter()
                    .rev()
                    .take(4096)
                    .any(|row| row.sample_no == sample_no && row.name.as_deref() == Some(name));
            sample_no += u32::from(is_again);
            let parsed = value.parse().ok();
            if parsed.is_none() {
                reading.counts("figure_too_large", Severity::Warning, Some(line_no), line);
            }
            rows.push(NicCounterRow {
                sample_no,
                line: line_no,
                name: Some(name.to_owned()),
                value: parsed,
                kind,
                direction,
                class,
            });
        } else if !line.trim().is_empty() && !line.starts_with(char::is_whitespace) {
            is_inside = !has_head;
        }
    }
    Ok(Some(vec![rows.finish::<NicCounterBuilder>(NicCounterRow::table(), reading)?]))
}

fn counter(line: &str) -> Option<(&str, &str)> {
    if line.len() > 512 {
        return None;
    }
    let found = match LazyLock::force(&COUNTER).as_ref()?.captures(line) {
        Some(found) => found,
        // `grep -o`, or copied by hand: no space in front.
        None => {
            return line.split_once(':').map(|(name, value)| (name.trim(), value.trim())).filter(|(name, value)| {
                !value.is_empty() && value.bytes().all(|b| b.is_ascii_digit()) && meaning(name).is_some()
            });
        }
    };
    Some((found.get(1)?.as_str(), found.get(2)?.as_str()))
}

fn meaning(name: &str) -> Option<(Option<Symbol>, Option<Symbol>, Option<u8>)> {
    if let Some((_, kind)) = NAMED.iter().find(|(known, _)| *known == name) {
        return Some((Some(Symbol(kind)), way(name), None));
    }
    let (pattern, kind) = PATTERNS.iter().find(|(pattern, _)| pattern.is_match(name))?;
    let found = pattern.captures(name)?;
    let kind = match *kind {
        "" if name.contains("bytes") => "bytes",
        "" => "packets",
        kind => kind,
    };
    let class =
        found.name("class").or(found.get(2)).and_then(|class| class.as_str().parse().ok()).filter(|class| *class < 8);
    let direction = found.name("way").or(found.get(1)).and_then(|way| symbol(way.as_str()));
    Some((Some(Symbol(kind)), direction, class))
}

fn way(name: &str) -> Option<Symbol> {
    ["rx", "tx"].into_iter().find(|way| name.starts_with(way)).map(Symbol)
}

fn symbol(way: &str) -> Option<Symbol> {
    match way {
        "rx" => Some(Symbol("rx")),
        "tx" => Some(Symbol("tx")),
        _ => None,
    }
}
