//! `dcb` of iproute2 (`pfc`, `ets`, `app`, `dcbx`, `apptrust`; text and `-j`) and `mlnx_qos -i`: how an interface treats
//! priorities.

mod tables;
mod text;

use serde_json::Value;

use super::ethtool::{NicCounterBuilder, NicCounterRow};
use super::json::{each_object, next_object};
use super::reading::{Reading, Rows, Tables};
use crate::tables::{Symbol, TableDef};
use tables::{AppBuilder, AppRow, ClassBuilder, ClassRow, DcbBuilder, DcbRow, PriorityBuilder, PriorityRow};

pub(super) fn tables() -> Vec<&'static TableDef> {
    vec![DcbRow::table(), PriorityRow::table(), ClassRow::table(), AppRow::table(), NicCounterRow::table()]
}

pub(super) fn is_in(text: &str) -> bool {
    text::is_in(text) || next_object(text, 0).is_some_and(|found| is_document(&found.value))
}

fn is_document(value: &Value) -> bool {
    ["prio_pfc", "prio_tc", "tc_tsa", "dscp_prio", "dgram_port_prio", "ethtype_prio", "default_prio"]
        .iter()
        .any(|key| value.get(key).is_some_and(Value::is_array))
}

/// What one row per priority or class may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Eight {
    Pfc,
    TrafficClass,
    Buffer,
    Algorithm,
    Bandwidth,
    Requests,
    Indications,
}

/// A sample that is being read.
#[derive(Default)]
struct Sample {
    line: u64,
    is_mlnx: bool,
    device: Option<String>,
    pfc: [Option<bool>; 8],
    traffic_class: [Option<u8>; 8],
    buffer: [Option<u8>; 8],
    algorithm: [Option<String>; 8],
    bandwidth: [Option<u8>; 8],
    counters: Vec<(u64, &'static str, u8, Option<u64>)>,
    pfc_max_classes: Option<u8>,
    is_macsec_bypass: Option<bool>,
    pfc_delay_bits: Option<u32>,
    is_ets_willing: Option<bool>,
    ets_max_classes: Option<u8>,
    is_credit_based: Option<bool>,
    trust: Option<String>,
    dcbx_mode: Option<String>,
    default_priority: Option<u8>,
    apps: Vec<(u64, &'static str, Option<u32>, String, u8)>,
    /// What was said so far: what comes again begins the next sample.
    said: Vec<String>,
}

/// Application entries of one sample that are kept: each of 65,536 ports of five kinds may have a few.
const MOST_APPS: usize = 100_000;
/// Devices and keys of one sample that are remembered.
const MOST_SAID: usize = 256;

/// Samples that were read.
#[derive(Default)]
struct Samples {
    at: Sample,
    rows: Rows<DcbRow>,
    priorities: Rows<PriorityRow>,
    classes: Rows<ClassRow>,
    apps: Rows<AppRow>,
    counters: Rows<NicCounterRow>,
}

impl Samples {
    /// A key of the output comes; if it came before, a new sample begins.
    fn says(&mut self, key: &str, line: u64) {
        if self.at.said.iter().any(|said| said == key) {
            let (device, is_mlnx) = (self.at.device.clone(), self.at.is_mlnx);
            self.end();
            (self.at.device, self.at.is_mlnx) = (device, is_mlnx);
        }
        if self.at.said.is_empty() {
            self.at.line = line;
        }
        if self.at.said.len() < MOST_SAID {
            self.at.said.push(key.to_owned());
        }
    }

    /// The log shows a command about a device.
    fn command(&mut self, device: &str, is_mlnx: bool) {
        if self.at.device.as_deref() != Some(device) || self.at.is_mlnx != is_mlnx {
            self.end();
        }
        (self.at.device, self.at.is_mlnx) = (Some(device.to_owned()), is_mlnx);
    }

    fn eight(&mut self, what: Eight, at: usize, value: &str, line: u64) {
        let number = || value.parse().ok();
        let sample = &mut self.at;
        match what {
            Eight::Pfc => sample.pfc[at] = truth(value),
            Eight::TrafficClass => sample.traffic_class[at] = number().filter(|class| *class < 16),
            Eight::Buffer => sample.buffer[at] = number(),
            Eight::Algorithm => sample.algorithm[at] = Some(value.to_owned()),
            Eight::Bandwidth => sample.bandwidth[at] = number().filter(|percent| *percent <= 100),
            Eight::Requests => sample.counters.push((line, "requests", at as u8, value.parse().ok())),
            Eight::Indications => sample.counters.push((line, "indications", at as u8, value.parse().ok())),
        }
    }

    fn app(&mut self, selector: &'static str, name: &str, priority: &str, line: u64) {
        let Some(priority) = priority.parse().ok().filter(|priority: &u8| *priority < 8) else { return };
        let protocol = match selector {
            "dscp" => dscp(name).map(u32::from),
            "ethertype" => u32::from_str_radix(name, 16).ok(),
            "pcp" => None,
            _ => name.parse().ok(),
        };
        if self.at.apps.len() < MOST_APPS {
            self.at.apps.push((line, selector, protocol, name.to_owned(), priority));
        }
    }

    fn end(&mut self) {
        let sample = std::mem::take(&mut self.at);
        if sample.said.is_empty() {
            return;
        }
        let sample_no = self.rows.len() as u32 + 1;
        let has_pfc = sample.pfc.iter().any(Option::is_some);
        let mask =
            sample.pfc.iter().enumerate().fold(0_u8, |mask, (at, pfc)| mask | u8::from(*pfc == Some(true)) << at);
        let list = (0..8).filter(|at| mask >> at & 1 == 1).map(|at| at.to_string()).collect::<Vec<_>>().join(",");
        for at in 0..8 {
            let (is_lossless, traffic_class, buffer) = (sample.pfc[at], sample.traffic_class[at], sample.buffer[at]);
            if is_lossless.is_some() || traffic_class.is_some() || buffer.is_some() {
                let priority = at as u8;
                self.priorities.push(PriorityRow { sample_no, priority, is_lossless, traffic_class, buffer });
            }
            if sample.algorithm[at].is_some() || sample.bandwidth[at].is_some() {
                self.classes.push(ClassRow {
                    sample_no,
                    traffic_class: at as u8,
                    algorithm: sample.algorithm[at].clone(),
                    bandwidth_percent: sample.bandwidth[at],
                });
            }
        }
        for (line, selector, protocol, name, priority) in sample.apps {
            self.apps.push(AppRow {
                sample_no,
                line,
                selector: Symbol(selector),
                protocol,
                name: Some(name),
                priority,
            });
        }
        for (line, name, class, value) in sample.counters {
            // IEEE 802.1Q, 12.23: PFC frames that were sent, and that were received.
            let direction = if name == "requests" { "tx" } else { "rx" };
            self.counters.push(NicCounterRow {
                sample_no,
                line,
                device: sample.device.clone(),
                name: Some(name.to_owned()),
                value,
                kind: Some(Symbol("pause_frames")),
                direction: Some(Symbol(direction)),
                class: Some(class),
            });
        }
        self.rows.push(DcbRow {
            sample_no,
            line: sample.line,
            tool: Symbol(if sample.is_mlnx { "mlnx_qos" } else { "dcb" }),
            device: sample.device,
            pfc_priorities: has_pfc.then_some(list),
            pfc_mask: has_pfc.then_some(mask),
            pfc_max_classes: sample.pfc_max_classes,
            is_macsec_bypass: sample.is_macsec_bypass,
            pfc_delay_bits: sample.pfc_delay_bits,
            is_ets_willing: sample.is_ets_willing,
            ets_max_classes: sample.ets_max_classes,
            is_credit_based: sample.is_credit_based,
            trust: sample.trust,
            dcbx_mode: sample.dcbx_mode,
            default_priority: sample.default_priority,
        });
    }
}

pub(super) fn read(text: &str, reading: &mut Reading) -> Tables {
    if !is_in(text) {
        return Ok(None);
    }
    let mut samples = Samples::default();
    from_json(text, &mut samples, reading);
    text::read(text, &mut samples);
    samples.end();
    if samples.rows.is_empty() {
        return Ok(None);
    }
    Ok(Some(vec![
        samples.rows.finish::<DcbBuilder>(DcbRow::table(), reading)?,
        samples.priorities.finish::<PriorityBuilder>(PriorityRow::table(), reading)?,
        samples.classes.finish::<ClassBuilder>(ClassRow::table(), reading)?,
        samples.apps.finish::<AppBuilder>(AppRow::table(), reading)?,
        samples.counters.finish::<NicCounterBuilder>(NicCounterRow::table(), reading)?,
    ]))
}

/// Keys of lists of eight, in text and (with underscores) in JSON.
const EIGHTS: [(&str, Eight); 7] = [
    ("prio-pfc", Eight::Pfc),
    ("prio-tc", Eight::TrafficClass),
    ("prio-buffer", Eight::Buffer),
    ("tc-tsa", Eight::Algorithm),
    ("tc-bw", Eight::Bandwidth),
    ("requests", Eight::Requests),
    ("indications", Eight::Indications),
];
/// Keys of application tables, in the order in which `dcb` prints them.
const APPS: [(&str, &str); 6] = [
    ("ethtype-prio", "ethertype"),
    ("dscp-prio", "dscp"),
    ("stream-port-prio", "tcp"),
    ("dgram-port-prio", "udp"),
    ("port-prio", "port"),
    ("pcp-prio", "pcp"),
];

fn from_json(text: &str, samples: &mut Samples, reading: &mut Reading) {
    each_object(text, reading, is_document, |found, line, _| {
        let shown = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let get = |key: &str| found.value.get(key.replace('-', "_"));
        let list = |key: &str| get(key).and_then(Value::as_array).map(Vec::as_slice);
        for key in text::SINGLES {
            if let Some(value) = get(key) {
                let value = value.as_array().map_or(Some(value), |list| list.first());
                value.into_iter().for_each(|value| samples.single(key, &shown(value), line));
            }
        }
        for (key, what) in EIGHTS {
            let Some(list) = list(key) else { continue };
            samples.says(key, line);
            for (at, one) in list.iter().take(8).enumerate() {
                samples.eight(what, at, &shown(one), line);
            }
        }
        for (key, selector) in APPS {
            let Some(list) = list(key) else { continue };
            samples.says(key, line);
            for (name, priority) in list.iter().filter_map(|pair| pair.get(0).zip(pair.get(1))) {
                // An EtherType is a number here, and in text hexadecimal digits.
                let name = match (selector, name.as_u64()) {
                    ("ethertype", Some(number)) => format!("{number:x}"),
                    _ => shown(name),
                };
                samples.app(selector, &name, &shown(priority), line);
            }
        }
    });
}

impl Samples {
    /// A key with one value.
    fn single(&mut self, key: &str, value: &str, line: u64) {
        self.says(key, line);
        let sample = &mut self.at;
        match key {
            "pfc-cap" => sample.pfc_max_classes = value.parse().ok(),
            "macsec-bypass" => sample.is_macsec_bypass = truth(value),
            "delay" => sample.pfc_delay_bits = value.parse().ok(),
            "willing" => sample.is_ets_willing = truth(value),
            "ets-cap" => sample.ets_max_classes = value.parse().ok(),
            "cbs" => sample.is_credit_based = truth(value),
            "default-prio" => sample.default_priority = value.parse().ok().filter(|priority| *priority < 8),
            _ => {}
        }
    }
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "on" | "true" | "1" => Some(true),
        "off" | "false" | "0" => Some(false),
        _ => None,
    }
}

/// A DSCP by number or name (RFC 2474, 2597, 3246).
fn dscp(name: &str) -> Option<u8> {
    if let Ok(number) = name.parse() {
        return Some(number).filter(|number| *number < 64);
    }
    if let Some(class) = name.strip_prefix("CS").and_then(|class| class.parse::<u8>().ok()) {
        return (class < 8).then_some(class << 3);
    }
    match name.as_bytes() {
        [b'A', b'F', class @ b'1'..=b'4', drop @ b'1'..=b'3'] => Some((class - b'0') << 3 | (drop - b'0') << 1),
        b"EF" => Some(46),
        b"VOICE-ADMIT" => Some(44),
        b"default" | b"BE" => Some(0),
        _ => None,
    }
}
