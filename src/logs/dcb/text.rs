//! The text forms of `dcb` and `mlnx_qos`, line by line.

use std::sync::LazyLock;

use regex::Regex;

use super::super::reading::{lines, numbered};
use super::{APPS, EIGHTS, Eight, Samples};

/// Keys of `dcb` with one value.
pub(super) const SINGLES: [&str; 7] =
    ["pfc-cap", "macsec-bypass", "delay", "willing", "ets-cap", "cbs", "default-prio"];

/// Beginnings of lines that no other tool prints.
const MARKS: [&str; 12] = [
    "pfc-cap ",
    "prio-pfc ",
    "prio-tc ",
    "prio-buffer ",
    "tc-tsa ",
    "dscp-prio ",
    "dgram-port-prio ",
    "stream-port-prio ",
    "ethtype-prio ",
    "PFC configuration:",
    "Priority trust state:",
    "dscp2prio mapping:",
];

static COMMAND: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"\bdcb\b.*\bdev\s+(?<dcb>[\w.@-]+)|\bmlnx_qos\b.*(?:-i|--interface)[ =](?<mlnx>[\w.@-]+)").ok()
});
static TC: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"^tc:\s*(?<tc>[0-7])\b(?:.*\btsa:\s*(?<tsa>[\w-]+))?(?:.*\bbw:\s*(?<bw>\d+)%)?").ok());

pub(super) fn is_in(text: &str) -> bool {
    lines(text).any(|line| MARKS.iter().any(|mark| line.trim_start().starts_with(mark)))
}

/// Where within `mlnx_qos` output the lines are.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Part {
    #[default]
    None,
    DscpMap,
    Pfc,
    Class(u8),
}

pub(super) fn read(text: &str, samples: &mut Samples) {
    let mut part = Part::None;
    for (line_no, line) in numbered(text) {
        let line = line.trim();
        if let Some(found) = COMMAND.as_ref().and_then(|command| command.captures(line)) {
            if let Some(device) = found.name("dcb") {
                samples.command(device.as_str(), false);
            } else if let Some(device) = found.name("mlnx") {
                samples.command(device.as_str(), true);
            }
            part = Part::None;
        } else if !dcb_line(line, line_no, samples) {
            part = mlnx_line(line, line_no, part, samples);
        }
    }
}

/// A line of `dcb`: a key and pairs, or several keys with one value each.
fn dcb_line(line: &str, line_no: u64, samples: &mut Samples) -> bool {
    let mut words = line.split_whitespace();
    let Some(key) = words.next() else { return false };
    if let Some((_, what)) = EIGHTS.iter().find(|(known, _)| *known == key) {
        let pairs: Vec<_> = words.filter_map(|word| word.split_once(':')).collect();
        if pairs.is_empty() {
            return false;
        }
        samples.says(key, line_no);
        for (at, value) in pairs {
            if let Some(at) = at.parse::<usize>().ok().filter(|at| *at < 8) {
                samples.eight(*what, at, value, line_no);
            }
        }
        return true;
    }
    if let Some((_, selector)) = APPS.iter().find(|(known, _)| *known == key) {
        samples.says(key, line_no);
        for (name, priority) in words.filter_map(|word| word.rsplit_once(':')) {
            samples.app(selector, name, priority, line_no);
        }
        return true;
    }
    if key == "order" {
        // `dcb apptrust show`.
        samples.says(key, line_no);
        samples.at.trust = Some(words.collect::<Vec<_>>().join(" ")).filter(|trust| !trust.is_empty());
        return true;
    }
    if !SINGLES.contains(&key) {
        return false;
    }
    let mut key = Some(key);
    while let (Some(name), Some(value)) = (key.filter(|key| SINGLES.contains(key)), words.next()) {
        samples.single(name, value, line_no);
        key = words.next();
    }
    true
}

fn mlnx_line(line: &str, line_no: u64, part: Part, samples: &mut Samples) -> Part {
    let after = |head: &str| line.strip_prefix(head).map(str::trim);
    if let Some(mode) = after("DCBX mode:") {
        samples.at_mlnx("dcbx mode", line_no);
        samples.at.dcbx_mode = Some(mode.to_owned());
    } else if let Some(trust) = after("Priority trust state:") {
        samples.at_mlnx("trust", line_no);
        samples.at.trust = Some(trust.to_owned());
    } else if after("dscp2prio mapping:").is_some() {
        samples.at_mlnx("dscp2prio", line_no);
        return Part::DscpMap;
    } else if let Some(priority) = after("default priority:") {
        samples.at_mlnx("default priority", line_no);
        samples.at.default_priority = priority.parse().ok().filter(|priority| *priority < 8);
    } else if after("PFC configuration:").is_some() {
        samples.at_mlnx("pfc", line_no);
        return Part::Pfc;
    } else if let Some(found) = TC.as_ref().and_then(|tc| tc.captures(line)) {
        let class: u8 = found["tc"].parse().unwrap_or(0);
        samples.at_mlnx(&format!("tc {class}"), line_no);
        if let Some(algorithm) = found.name("tsa") {
            samples.eight(Eight::Algorithm, usize::from(class), algorithm.as_str(), line_no);
        }
        if let Some(share) = found.name("bw") {
            samples.eight(Eight::Bandwidth, usize::from(class), share.as_str(), line_no);
        }
        return Part::Class(class);
    } else {
        return within(line, line_no, part, samples);
    }
    Part::None
}

/// A line that belongs to the head before it.
fn within(line: &str, line_no: u64, part: Part, samples: &mut Samples) -> Part {
    match part {
        Part::DscpMap => {
            // `prio:3 dscp:31,30,29,28,27,26,25,24,`
            let found = line.strip_prefix("prio:").and_then(|rest| rest.split_once("dscp:"));
            let Some((priority, dscps)) = found else { return if line.is_empty() { part } else { Part::None } };
            for dscp in dscps.split(',').map(str::trim).filter(|dscp| !dscp.is_empty()) {
                samples.app("dscp", dscp, priority.trim(), line_no);
            }
            part
        }
        Part::Pfc => {
            // `enabled     0   0   0   1   0   0   0   0`
            let mut words = line.split_whitespace();
            let what = match words.next().map(|word| word.trim_end_matches(':')) {
                Some("priority") | None => return part,
                Some("enabled") => Eight::Pfc,
                Some("buffer") => Eight::Buffer,
                Some(_) => return Part::None,
            };
            for (at, value) in words.take(8).enumerate() {
                samples.eight(what, at, value, line_no);
            }
            part
        }
        Part::Class(class) => {
            // `priority:  3`
            let Some(priority) = line.strip_prefix("priority:") else {
                return if line.is_empty() { part } else { Part::None };
            };
            if let Some(priority) = priority.trim().parse::<usize>().ok().filter(|priority| *priority < 8) {
                samples.eight(Eight::TrafficClass, priority, &class.to_string(), line_no);
            }
            part
        }
        Part::None => part,
    }
}

impl Samples {
    fn at_mlnx(&mut self, key: &str, line: u64) {
        if !self.at.is_mlnx {
            // Without its command, the first line tells.
            let device = self.at.said.is_empty().then(|| self.at.device.take()).flatten();
            self.end();
            self.at.device = device;
        }
        self.says(key, line);
        self.at.is_mlnx = true;
    }
}
