//! Which files are one capture, what each capture is called in the dataset, and what is left to do for it.

use std::cmp::Ordering;
use std::collections::{BTreeSet, HashMap, HashSet};

use serde_json::Value;

use super::GroupBy;
use super::dataset::{Marker, Record, told};
use super::files::{InputFile, Stamp, file_name, is_gone};
use crate::capture::ring_of;
use crate::error::Error;
use crate::tables::TableId;

/// Longest name of a capture, in bytes; systems allow 255 with what stands before it.
const NAME_BYTES: usize = 160;

/// A capture of the dataset, and what is to be done.
#[derive(Debug)]
pub(super) struct Group {
    /// Its name as a reader of the dataset sees it in the column `capture`.
    pub name: String,
    pub files: Vec<InputFile>,
    /// Tables to compute; none if all is there.
    pub missing: Vec<TableId>,
    /// What is there already and stays.
    pub kept: Option<Record>,
}

impl Group {
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(InputFile::bytes).sum()
    }

    pub fn stamps(&self) -> Vec<(String, Stamp)> {
        let known = |file: &InputFile| Some((file.key.clone(), *file.stamp.as_ref().ok()?));
        self.files.iter().filter_map(known).collect()
    }
}

pub(super) struct Plan {
    pub groups: Vec<Group>,
    /// Captures of the dataset whose files now belong to others.
    pub superseded: Vec<String>,
    /// Captures of the dataset that were not named, and were made by another version or with other options.
    pub outdated: usize,
    /// Captures of the dataset that were not named, and of which no file is where it was.
    pub gone: usize,
}

/// What the caller wants, against what is there.
pub(super) fn plan(
    files: Vec<InputFile>,
    group_by: GroupBy,
    tables: &[TableId],
    made_with: &Value,
    markers: Vec<Marker>,
) -> Result<Plan, Error> {
    let moved = moved(&files, &markers);
    let key_of = |file: &InputFile| moved.get(&file.key).unwrap_or(&file.key).clone();
    let all: HashSet<String> = files.iter().map(key_of).collect();
    let mut owner: HashMap<String, usize> = HashMap::new();
    for (at, marker) in markers.iter().enumerate() {
        owner.extend(marker.record.inputs.iter().map(|(key, _)| (key.clone(), at)));
    }
    let touched: BTreeSet<usize> = all.iter().filter_map(|key| owner.get(key).copied()).collect();
    for at in &touched {
        let marker = &markers[*at];
        // Rows of a file that is not read again must not be lost.
        if let Some((left_out, _)) = marker.record.inputs.iter().find(|(key, _)| !all.contains(key)) {
            return Err(Error::Usage(format!(
                "capture {} of the dataset also holds {}: name that file too, or convert into another directory",
                told(&marker.name),
                told(left_out)
            )));
        }
    }
    let is_current = |marker: &Marker| marker.record.made_with == *made_with;
    let outdated =
        markers.iter().enumerate().filter(|(at, marker)| !touched.contains(at) && !is_current(marker)).count();
    let has_no_file = |marker: &Marker| marker.record.inputs.iter().all(|(key, _)| is_gone(key));
    let gone = markers.iter().enumerate().filter(|(at, marker)| !touched.contains(at) && has_no_file(marker)).count();
    let mut taken: HashSet<String> = markers
        .iter()
        .enumerate()
        .filter(|(at, _)| !touched.contains(at))
        .map(|(_, marker)| folded(&marker.name))
        .collect();
    // Captures that are there keep their names, so these are given first.
    let (mut kept_names, mut groups) = (HashMap::new(), grouped(files, group_by));
    for (place, group) in groups.iter().enumerate() {
        let keys: Vec<String> = group.files.iter().map(key_of).collect();
        let same = keys.first().and_then(|key| owner.get(key)).map(|at| &markers[*at]);
        let same = same.filter(|marker| marker.record.inputs.iter().map(|(key, _)| key).eq(keys.iter()));
        if let Some(marker) = same {
            taken.insert(folded(&marker.name));
            kept_names.insert(place, marker);
        }
    }
    // Of new captures, none gets a name that another could have as well, were it there already or not: names must not
    // depend on where an earlier run was stopped.
    let possible: Vec<Vec<String>> = groups.iter().map(|group| possible_names(group, group_by)).collect();
    let mut claims: HashMap<String, usize> = HashMap::new();
    for name in possible.iter().flatten() {
        *claims.entry(folded(name)).or_default() += 1;
    }
    for (place, group) in groups.iter_mut().enumerate() {
        let marker = kept_names.get(&place).copied();
        group.name = match marker {
            Some(marker) => marker.name.clone(),
            None => name_for(&possible[place], &claims, &taken),
        };
        // A ring that has grown replaces what it was.
        let replaced =
            touched.iter().map(|at| &markers[*at]).find(|marker| folded(&marker.name) == folded(&group.name));
        if let Some(replaced) = replaced {
            group.name.clone_from(&replaced.name);
        }
        taken.insert(folded(&group.name));
        let before = replaced.map(|marker| &marker.record);
        let is_same = before.is_some_and(|record| {
            let stamps: Vec<Stamp> = group.stamps().into_iter().map(|(_, stamp)| stamp).collect();
            marker.is_some()
                && record.made_with == *made_with
                && record.inputs.iter().map(|(_, stamp)| stamp).eq(stamps.iter())
        });
        let is_there = |table: &TableId| before.is_some_and(|record| record.tables.contains_key(table.name()));
        let is_unfinished = |table: &TableId| before.is_some_and(|record| record.unfinished.contains(table));
        let is_missing = |table: &TableId| match is_same {
            true => is_unfinished(table) || tables.contains(table) && !is_there(table),
            // Tables that nobody asks for now would else stay behind with rows of what the file was before.
            false => is_unfinished(table) || tables.contains(table) || is_there(table),
        };
        group.missing = crate::tables::TABLES.into_iter().filter(is_missing).collect();
        group.kept = before.filter(|_| is_same).cloned();
    }
    let names: HashSet<String> = groups.iter().map(|group| folded(&group.name)).collect();
    let superseded =
        touched.iter().map(|at| markers[*at].name.clone()).filter(|name| !names.contains(&folded(name))).collect();
    Ok(Plan { groups, superseded, outdated, gone })
}

/// Files that only lie elsewhere than before: same name, size and time, and nothing is left where they were.
fn moved(files: &[InputFile], markers: &[Marker]) -> HashMap<String, String> {
    let named: HashSet<&str> = files.iter().map(|file| file.key.as_str()).collect();
    let known: HashSet<&str> =
        markers.iter().flat_map(|marker| &marker.record.inputs).map(|(key, _)| key.as_str()).collect();
    let mut gone: HashMap<(&str, u64, i64), &str> = HashMap::new();
    for (key, stamp) in markers.iter().flat_map(|marker| &marker.record.inputs) {
        if !named.contains(key.as_str()) && is_gone(key) {
            gone.insert((file_name(key), stamp.bytes, stamp.modified_ns), key);
        }
    }
    let mut moved = HashMap::new();
    for file in files.iter().filter(|file| !known.contains(file.key.as_str())) {
        let Ok(stamp) = file.stamp.as_ref() else { continue };
        if let Some(before) = gone.remove(&(file.file_name(), stamp.bytes, stamp.modified_ns)) {
            moved.insert(file.key.clone(), before.to_owned());
        }
    }
    moved
}

/// Files that are one capture together, in the order given.
fn grouped(files: Vec<InputFile>, group_by: GroupBy) -> Vec<Group> {
    let group = |files| Group { name: String::new(), files, missing: Vec::new(), kept: None };
    match group_by {
        GroupBy::File => files.into_iter().map(|file| group(vec![file])).collect(),
        GroupBy::All => vec![group(files)],
        GroupBy::Ring => {
            let mut places: HashMap<String, usize> = HashMap::new();
            let mut groups: Vec<Group> = Vec::new();
            for file in files {
                let place = ring_of(&file.key).map(|ring| *places.entry(ring).or_insert(groups.len()));
                match place.and_then(|place| groups.get_mut(place)) {
                    Some(group) => group.files.push(file),
                    None => groups.push(group(vec![file])),
                }
            }
            // Not in the order that a shell happens to name them.
            groups.iter_mut().for_each(|group| group.files.sort_by(|a, b| natural(&a.key, &b.key)));
            groups
        }
        GroupBy::Bytes(most) => {
            let mut groups: Vec<Group> = Vec::new();
            let mut sum = 0_u64;
            for file in files {
                sum = sum.saturating_add(file.bytes());
                match groups.last_mut() {
                    Some(group) if sum <= most => group.files.push(file),
                    _ => {
                        sum = file.bytes();
                        groups.push(group(vec![file]));
                    }
                }
            }
            groups
        }
    }
}

/// What a capture may be called: ends of a path, shortest first.
fn possible_names(group: &Group, group_by: GroupBy) -> Vec<String> {
    let key = group.files.first().map_or("", |file| file.key.as_str());
    let ring = ring_of(key).filter(|_| group_by == GroupBy::Ring && group.files.len() > 1);
    let path = ring.as_deref().filter(|ring| !ring.is_empty() && !ring.ends_with(['/', '\\'])).unwrap_or(key);
    let parts: Vec<&str> = path.split(['/', '\\']).filter(|part| !part.is_empty()).collect();
    let name = |count: usize| {
        let name = parts[parts.len() - count..].join("/");
        if reads_as_value(&name) { format!("capture-{name}") } else { name }
    };
    (1..=parts.len()).map(name).collect()
}

/// The shortest that no other capture is called by, nor could be.
fn name_for(possible: &[String], claims: &HashMap<String, usize>, taken: &HashSet<String>) -> String {
    let is_free = |name: &&String| {
        let folded = folded(name);
        encoded(name).len() <= NAME_BYTES
            && !taken.contains(&folded)
            && claims.get(&folded).is_none_or(|count| *count < 2)
    };
    if let Some(name) = possible.iter().find(is_free) {
        return name.clone();
    }
    // Too long, or of different ends of one path: a number settles it.
    let mut start: String = possible.first().cloned().unwrap_or_else(|| "capture".to_owned());
    while encoded(&start).len() > NAME_BYTES - 12 {
        start.pop();
    }
    (2_u32..).map(|number| format!("{start}~{number}")).find(|name| !taken.contains(&folded(name))).unwrap_or(start)
}

/// Whether a reader of the dataset would take the name for a number, a date, a truth value or nothing.
fn reads_as_value(name: &str) -> bool {
    // The last is how Hive writes that there is no value.
    let words = ["true", "false", "null", "none", "nan", "inf", "infinity", "na", "n/a", "__hive_default_partition__"];
    let is_word = words.contains(&name.to_lowercase().trim_start_matches(['+', '-']));
    is_word || !name.chars().any(|c| c.is_alphabetic() && !matches!(c, 'e' | 'E' | 't' | 'T' | 'z' | 'Z'))
}

/// The name as a part of a path: what is no letter, digit, dot, hyphen or underscore in percent encoding, as Hive and its
/// readers have it.
pub(super) fn encoded(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for c in name.chars() {
        if c.is_alphanumeric() || matches!(c, '.' | '-' | '_') {
            text.push(c);
        } else {
            let mut bytes = [0; 4];
            for byte in c.encode_utf8(&mut bytes).bytes() {
                text.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    text
}

/// Some systems tell names apart by more than their letters' case, others do not.
fn folded(name: &str) -> String {
    name.to_lowercase()
}

/// As people sort: `a2` before `a10`.
fn natural(a: &str, b: &str) -> Ordering {
    let (mut left, mut right) = (a, b);
    while let (Some(x), Some(y)) = (left.chars().next(), right.chars().next()) {
        if x.is_ascii_digit() && y.is_ascii_digit() {
            let digits = |text: &str| text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            let (p, q) = (left.split_at(digits(left)), right.split_at(digits(right)));
            let number = |text: &str| text.trim_start_matches('0').to_owned();
            let (n, m) = (number(p.0), number(q.0));
            let order = n.len().cmp(&m.len()).then_with(|| n.cmp(&m));
            if order != Ordering::Equal {
                return order;
            }
            (left, right) = (p.1, q.1);
        } else {
            if x != y {
                return x.cmp(&y);
            }
            (left, right) = (&left[x.len_utf8()..], &right[y.len_utf8()..]);
        }
    }
    left.len().cmp(&right.len()).then_with(|| a.cmp(b))
}
