//! `nstat`, text and JSON: the kernel's SNMP counters, or what they grew by since the last call.

use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::json::{each_object, next_object};
use super::reading::{Reading, Rows, Tables, lines, numbered};
use crate::capture::Severity;
use crate::tables::{TableDef, table};

table! {
    /// One row per counter that `nstat` printed. Without `-a` the value is the growth since the call before.
    table "nstat" => NstatRow / NstatBuilder {
        /// Number of the sample in the log, from 1: each call of nstat prints one.
        sample_no: u32,
        /// Line of the log, from 1.
        line: u64,
        /// Name of the counter, as `TcpRetransSegs`.
        name: Option<String>,
        /// Its value.
        value: Option<i64>,
    }
}

/// `TcpRetransSegs                  27                 0.0`
static COUNTER: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"^\s*((?:Ip|Icmp|Tcp|Udp|Mptcp|MPTcp|Sctp|Xfrm)[A-Za-z0-9]*)\s+(-?\d+)(?:\s+[\d.]+)?\s*$").ok()
});

pub(super) fn tables() -> Vec<&'static TableDef> {
    vec![NstatRow::table()]
}

pub(super) fn is_in(text: &str) -> bool {
    let counters = || lines(text).filter(|line| is_counter(line)).take(2).count();
    lines(text).any(|line| line.trim() == "#kernel" || line.starts_with("#kernel ")) || counters() == 2 || is_json(text)
}

fn is_json(text: &str) -> bool {
    next_object(text, 0).is_some_and(|found| is_document(&found.value))
}

fn is_counter(line: &str) -> bool {
    LazyLock::force(&COUNTER).as_ref().is_some_and(|counter| counter.is_match(line))
}

pub(super) fn read(text: &str, reading: &mut Reading) -> Tables {
    if !is_in(text) {
        return Ok(None);
    }
    let mut rows = Rows::default();
    if is_json(text) {
        from_json(text, &mut rows, reading)
    } else {
        from_text(text, &mut rows)
    }
    if rows.is_empty() {
        // `nstat` without `-z` prints what changed: nothing is an answer too.
        reading.says("nstat_no_change", Severity::Info, None, None, "");
    }
    Ok(Some(vec![rows.finish::<NstatBuilder>(NstatRow::table(), reading)?]))
}

fn is_document(value: &Value) -> bool {
    value.get("kernel").is_some_and(Value::is_object)
}

fn from_json(text: &str, rows: &mut Rows<NstatRow>, reading: &mut Reading) {
    let mut sample_no = 0;
    each_object(text, reading, is_document, |found, line, _| {
        sample_no += 1;
        for (name, value) in found.value.get("kernel").and_then(Value::as_object).into_iter().flatten() {
            let value = value.as_i64().or_else(|| value.as_u64().map(|_| i64::MAX));
            rows.push(NstatRow { sample_no, line, name: Some(name.clone()), value });
        }
    });
}

fn from_text(text: &str, rows: &mut Rows<NstatRow>) {
    let Some(counter) = LazyLock::force(&COUNTER) else { return };
    let mut sample_no = 1;
    for (line_no, line) in numbered(text) {
        if line.trim_start().starts_with("#kernel") {
            sample_no += u32::from(!rows.is_empty());
        } else if let Some(found) = counter.captures(line) {
            let (name, value) = (Some(found[1].to_owned()), found[2].parse().ok());
            rows.push(NstatRow { sample_no, line: line_no, name, value });
        }
    }
}
