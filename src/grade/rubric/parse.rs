//! `rubric.toml` into a [`Rubric`], or every problem with it.

use std::collections::BTreeSet;

use sha2::{Digest, Sha256};

use super::check::{self, CHECK_KEYS, EXPECT_KEYS, Known, NOTE_KEYS, PARTIAL_KEYS};
use super::views::{self, VIEW_KEYS};
use super::{Input, Rubric};
use crate::grade::document::{Document, Problem, Section, did_you_mean};
use crate::grade::params::{Param, ParamKind};
use crate::grade::submission::check_pattern;
use crate::grade::units::Unit;
use crate::grade::{MAX_INPUTS, SUBMISSION_SCHEMA, input_kinds};
use crate::sql::Value;

/// What the first line of a rubric says.
const SCHEMA: &str = "wirelab-rubric/1";

const TOP_KEYS: [&str; 8] = ["schema", "id", "version", "groups", "param", "input", "view", "check"];
const PARAM_KEYS: [&str; 5] = ["type", "default", "min", "max", "unit"];
const INPUT_KEYS: [&str; 4] = ["kind", "match", "required", "traffic"];

/// Every key, by the table it belongs to: the documentation must tell of all.
pub const KEYS: [(&str, &[&str]); 8] = [
    ("top", &TOP_KEYS),
    ("param", &PARAM_KEYS),
    ("input", &INPUT_KEYS),
    ("view", &VIEW_KEYS),
    ("check", &CHECK_KEYS),
    ("expect", &EXPECT_KEYS),
    ("partial", &PARTIAL_KEYS),
    ("note", &NOTE_KEYS),
];

impl Rubric {
    /// Reads a rubric; `file` is what messages call it.
    pub fn parse(file: &str, text: &str) -> Result<Self, Vec<Problem>> {
        let text = text.replace("\r\n", "\n");
        let document = Document::new(file, &text);
        let table = document.parse();
        let rubric = read(&Section::top(&document, &table), &text);
        drop(table);
        let problems = document.into_problems();
        if problems.is_empty() { Ok(rubric) } else { Err(problems) }
    }
}

fn read(top: &Section<'_>, text: &str) -> Rubric {
    top.expect_keys(&TOP_KEYS);
    let schema = top.required_text("schema");
    if !schema.is_empty() && schema != SCHEMA {
        top.problem_at("schema", format!("schema must be {SCHEMA}, which this wirelab reads, not {schema}"));
    }
    let id = top.required_text("id");
    if !id.is_empty() && !is_lab_id(&id) {
        top.problem_at("id", format!("id must be small letters, digits and hyphens, not {id}"));
    }
    let version = top.required_text("version");
    let params: Vec<_> = named(top, "param").iter().filter_map(|(name, section)| param(name, section)).collect();
    let inputs: Vec<_> = named(top, "input").iter().map(|(name, section)| input(name, section, &params)).collect();
    if inputs.is_empty() {
        top.problem("the file lacks an [input.NAME]: what is handed in");
    } else if inputs.len() > MAX_INPUTS {
        top.problem_at("input", format!("there can be {MAX_INPUTS} inputs, not {}", inputs.len()));
    }
    let views = views::read(top, &params);
    let known = Known { inputs: &inputs, params: &params, views: &views };
    let groups = top.texts("groups");
    let mut checks: Vec<super::Check> = Vec::new();
    for section in top.sections("check", "a check") {
        let check = check::read(section.clone(), &known, &checks);
        if checks.iter().any(|other| other.id == check.id) {
            section.problem_at("id", format!("there are two checks {}", check.id));
        }
        if let Some(group) = check.group.as_ref().filter(|group| !groups.contains(group)) {
            let hint = did_you_mean(group, groups.iter().map(String::as_str));
            section.problem_at("group", format!("groups, at the top of the file, has no {group}{hint}"));
        }
        checks.push(check);
    }
    if checks.is_empty() {
        top.problem("the file lacks a [[check]]");
    }
    let duplicate = groups.iter().enumerate().find(|(at, group)| groups[..*at].contains(group));
    if let Some((_, group)) = duplicate {
        top.problem_at("groups", format!("groups names {group} twice"));
    }
    Rubric { id, version, sha256: sha256(text.as_bytes()), params, inputs, groups, checks }
}

/// SHA-256 in hex.
fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The tables of `[key.NAME]`.
fn named<'d>(top: &Section<'d>, key: &str) -> Vec<(&'d str, Section<'d>)> {
    let Some(section) = top.section(key, key) else { return Vec::new() };
    let mut named = Vec::new();
    for (name, entry) in section.entries() {
        if !is_name(name) {
            entry.problem(format!("{name} is no name for a {key}: small letters, digits and _, a letter first"));
        }
        match entry.section(format!("{key} {name}")) {
            Some(section) => named.push((name, section)),
            None => entry.problem(format!("{key}.{name} must be a table: [{key}.{name}]")),
        }
    }
    named
}

fn param(name: &str, section: &Section<'_>) -> Option<Param> {
    section.expect_keys(&PARAM_KEYS);
    let Some(mut default) = section.scalar("default") else {
        if !section.has("default") {
            section.problem(format!("param {name} lacks a default"));
        }
        return None;
    };
    let told = section.choice("type", &ParamKind::ALL);
    let kind = told.unwrap_or(match default {
        Value::Text(_) => ParamKind::Text,
        Value::Real(_) => ParamKind::Number,
        _ => ParamKind::Integer,
    });
    let limit = |key: &str| match section.scalar(key)? {
        Value::Integer(number) => Some(number as f64),
        Value::Real(number) => Some(number),
        _ => {
            section.problem_at(key, format!("{key} must be a number"));
            None
        }
    };
    let (min, max) = (limit("min"), limit("max"));
    let mut param = Param { name: name.to_owned(), kind, default: Value::Null, min, max, unit: unit(section) };
    match param.within(default.clone()) {
        Ok(value) => default = value,
        Err(message) => section.problem_at("default", format!("the default of {message}")),
    }
    param.default = default;
    Some(param)
}

fn input(name: &str, section: &Section<'_>, params: &[Param]) -> Input {
    section.expect_keys(&INPUT_KEYS);
    if [SUBMISSION_SCHEMA, "main", "temp"].contains(&name) || name.starts_with("sqlite_") {
        section.problem(format!("an input cannot be called {name}: SQL has that name already"));
    }
    let kind = section.required_text("kind");
    let kinds = input_kinds();
    if !kind.is_empty() && !kinds.contains(&kind.as_str()) {
        let hint = did_you_mean(&kind, kinds.iter().copied());
        section.problem_at("kind", format!("there is no kind {kind}{hint}; the kinds are {}", kinds.join(", ")));
    }
    let patterns = section.texts("match");
    for pattern in &patterns {
        if let Err(reason) = check_pattern(pattern) {
            section.problem_at("match", format!("{pattern} is no file name pattern: {reason}"));
        }
    }
    let traffic = section.text("traffic");
    if traffic.is_some() && kind != "capture" {
        section.problem_at("traffic", "traffic says which connections of a capture count; this input is none");
    }
    for unknown in traffic.as_deref().map(|sql| check::unknown_params(sql, params)).unwrap_or_default() {
        section.problem_at("traffic", unknown);
    }
    Input { name: name.to_owned(), kind, patterns, required: section.boolean("required").unwrap_or(true), traffic }
}

/// The key `unit`, where there is one.
pub(super) fn unit(section: &Section<'_>) -> Option<Unit> {
    let name = section.text("unit")?;
    let unit = Unit::from_name(&name);
    if unit.is_none() {
        let hint = did_you_mean(&name, Unit::NAMES);
        section.problem_at("unit", format!("there is no unit {name}{hint}; the units are {}", Unit::NAMES.join(", ")));
    }
    unit
}

/// Whether this can be a name in SQL without quotes: an input, a parameter, a check.
pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.len() <= 60
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Whether this can be a lab: also the name of its folder.
pub fn is_lab_id(id: &str) -> bool {
    id.starts_with(|c: char| c.is_ascii_lowercase())
        && id.len() <= 60
        && id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

/// The words of an SQL text that stand before a dot: schemas and aliases.
pub(in crate::grade) fn qualifiers(sql: &str) -> BTreeSet<&str> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let before_dots = sql.match_indices('.').map(|(at, _)| {
        let before = sql[..at].trim_end_matches('"');
        before.rfind(|c| !word(c)).map_or(before, |start| &before[start + 1..])
    });
    before_dots.filter(|name| !name.is_empty()).collect()
}
