//! A lab's words in one language: `feedback.en.toml` and `feedback.zh.toml`.

use std::collections::{BTreeMap, BTreeSet};

use super::document::{Document, Entry, Problem, Section, did_you_mean};
use super::fill;
use super::rubric::{Check, Outcome, Rubric};
use super::units::Unit;

pub const KEYS: [&str; 6] = ["title", "summary", "input", "group", "label", "check"];
/// Keys of a check's words beside those that `say` names.
pub const CHECK_KEYS: [&str; 8] = ["title", "hint", "pass", "partial", "fail", "no_rows", "null", "not_assessable"];

/// Places of a text that are there for every check, beside the columns of its row.
const COMMON_PLACES: [&str; 8] =
    ["measured", "expected", "points", "max_points", "frame", "frames", "frame_count", "filter"];

/// Whether `say` cannot use this name.
pub fn is_reserved(name: &str) -> bool {
    CHECK_KEYS.contains(&name)
}

/// All words of a lab in one language.
#[derive(Clone, Debug, Default)]
pub struct Feedback {
    pub file: String,
    pub title: String,
    pub summary: String,
    pub inputs: BTreeMap<String, String>,
    pub groups: BTreeMap<String, String>,
    /// What columns that are compared are called; those without a label go by their own name.
    pub labels: BTreeMap<String, String>,
    pub checks: BTreeMap<String, CheckWords>,
}

#[derive(Clone, Debug, Default)]
pub struct CheckWords {
    pub line: usize,
    pub title: String,
    /// What to try next, for every lost point whose words have no hint of their own.
    pub hint: Option<String>,
    /// By outcome, or by what `say` names.
    pub outcomes: BTreeMap<String, Words>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Words {
    pub message: String,
    pub hint: Option<String>,
}

impl Feedback {
    /// Reads the words for a rubric; says which are missing, and which nothing uses.
    pub fn parse(file: &str, text: &str, rubric: &Rubric) -> (Self, Vec<Problem>) {
        let document = Document::new(file, text);
        let table = document.parse();
        let feedback = read(file, &Section::top(&document, &table), rubric);
        drop(table);
        (feedback, document.into_problems())
    }

    /// Every text, by a key that both languages share.
    fn texts(&self) -> BTreeMap<String, &str> {
        let mut texts =
            BTreeMap::from([("title".to_owned(), self.title.as_str()), ("summary".to_owned(), self.summary.as_str())]);
        texts.extend(self.inputs.iter().map(|(name, text)| (format!("input.{name}"), text.as_str())));
        texts.extend(self.groups.iter().map(|(name, text)| (format!("group.{name}"), text.as_str())));
        texts.extend(self.labels.iter().map(|(name, text)| (format!("label.{name}"), text.as_str())));
        for (id, words) in &self.checks {
            texts.insert(format!("check.{id}.title"), &words.title);
            texts.extend(words.hint.iter().map(|hint| (format!("check.{id}.hint"), hint.as_str())));
            for (name, words) in &words.outcomes {
                texts.insert(format!("check.{id}.{name}"), &words.message);
                texts.extend(words.hint.iter().map(|hint| (format!("check.{id}.{name}.hint"), hint.as_str())));
            }
        }
        texts
    }
}

/// What differs between two languages: keys, and the places to fill.
pub fn compare(a: &Feedback, b: &Feedback) -> Vec<Problem> {
    let (of_a, of_b) = (a.texts(), b.texts());
    let mut problems = Vec::new();
    for (from, to, texts, others) in [(a, b, &of_a, &of_b), (b, a, &of_b, &of_a)] {
        for key in texts.keys().filter(|key| !others.contains_key(*key)) {
            problems.push(Problem::of_file(&to.file, format!("{key} is missing, which {} has", from.file)));
        }
    }
    for (of, texts) in [(a, &of_a), (b, &of_b)] {
        for (key, text) in texts {
            for (name, unit) in fill::unknown_units(text) {
                let hint = did_you_mean(unit, Unit::NAMES);
                let message = format!("{key}: {{{name}:{unit}}} names no unit{hint}, and would be shown as it is");
                problems.push(Problem::of_file(&of.file, message));
            }
        }
    }
    for (key, text) in &of_a {
        let Some(other) = of_b.get(key) else { continue };
        let (here, there) = (fill::places(text), fill::places(other));
        for name in here.symmetric_difference(&there) {
            let (with, without) = if here.contains(name) { (a, b) } else { (b, a) };
            let message = format!("{key} lacks the place {{{name}}}, which it has in {}", with.file);
            problems.push(Problem::of_file(&without.file, message));
        }
    }
    problems
}

fn read(file: &str, top: &Section<'_>, rubric: &Rubric) -> Feedback {
    top.expect_keys(&KEYS);
    let inputs: Vec<_> = rubric.inputs.iter().map(|input| input.name.as_str()).collect();
    let groups: Vec<_> = rubric.groups.iter().map(String::as_str).collect();
    let mut checks = BTreeMap::new();
    if let Some(section) = top.section("check", "check") {
        for (id, entry) in section.entries() {
            let Some(check) = rubric.check(id) else {
                let hint = did_you_mean(id, rubric.checks.iter().map(|check| check.id.as_str()));
                entry.problem(format!("the rubric has no check {id}{hint}"));
                continue;
            };
            match entry.section(format!("check {id}")) {
                Some(words) => drop(checks.insert(id.to_owned(), read_check(&words, check, rubric))),
                None => entry.problem(format!("check.{id} must be a table: [check.{id}]")),
            }
        }
    }
    for check in rubric.checks.iter().filter(|check| !checks.contains_key(&check.id)) {
        top.problem(format!("the words of check {0} are missing: [check.{0}]", check.id));
    }
    Feedback {
        file: file.to_owned(),
        title: top.required_text("title"),
        summary: top.required_text("summary"),
        inputs: names(top, "input", &inputs),
        groups: names(top, "group", &groups),
        labels: labels(top, rubric),
        checks,
    }
}

/// `[key]`: a text for each of the rubric's names.
fn names(top: &Section<'_>, key: &str, wanted: &[&str]) -> BTreeMap<String, String> {
    let mut names = BTreeMap::new();
    if let Some(section) = top.section(key, key) {
        section.expect_keys(wanted);
        for name in wanted {
            names.extend(section.text(name).map(|text| ((*name).to_owned(), text)));
        }
    }
    for name in wanted.iter().filter(|name| !names.contains_key(**name)) {
        top.problem(format!("[{key}] lacks words for {name}"));
    }
    names
}

/// `[label]`: words for columns that checks compare, as many as the lab likes.
fn labels(top: &Section<'_>, rubric: &Rubric) -> BTreeMap<String, String> {
    let Some(section) = top.section("label", "label") else { return BTreeMap::new() };
    let columns = rubric.checks.iter().flat_map(|check| &check.expect).map(|expect| expect.column.as_str());
    let columns: BTreeSet<_> = columns.collect();
    section.expect_keys(&columns.iter().copied().collect::<Vec<_>>());
    columns.into_iter().filter_map(|name| Some((name.to_owned(), section.text(name)?))).collect()
}

fn read_check(section: &Section<'_>, check: &Check, rubric: &Rubric) -> CheckWords {
    let says = says(check);
    let mut known: Vec<&str> = CHECK_KEYS.to_vec();
    known.extend(&says);
    section.expect_keys(&known);
    let mut words = CheckWords {
        line: section.line(),
        title: section.required_text("title"),
        hint: section.text("hint"),
        outcomes: BTreeMap::new(),
    };
    for name in known.iter().filter(|name| !["title", "hint"].contains(*name) && section.has(name)) {
        if let Some(of_outcome) = read_words(section, name) {
            words.outcomes.insert((*name).to_owned(), of_outcome);
        }
    }
    for name in required(check) {
        if !section.has(name) {
            section.problem(format!("check {} lacks the words {name}", check.id));
        } else if name != "pass"
            && !check.notes.iter().any(|note| note.say == name)
            && words.hint.is_none()
            && words.outcomes.get(name).is_some_and(|words| words.hint.is_none())
        {
            section.problem_at(name, format!("{name} says nothing to try next: a hint, here or for the whole check"));
        }
    }
    complain_of_places(section, &words, check, rubric);
    words
}

/// A message alone, or a table of message and hint.
fn read_words(section: &Section<'_>, name: &str) -> Option<Words> {
    let entry: Option<(_, Entry<'_>)> = section.entries().into_iter().find(|(key, _)| *key == name);
    let (_, entry) = entry?;
    if let Some(message) = entry.text() {
        return Some(Words { message, hint: None });
    }
    let Some(table) = entry.section(name) else {
        entry.problem(format!("{name} must be a text, or a table with message and hint"));
        return None;
    };
    table.expect_keys(&["message", "hint"]);
    Some(Words { message: table.required_text("message"), hint: table.text("hint") })
}

/// What the check's partial results and expectations name.
pub fn says(check: &Check) -> BTreeSet<&str> {
    let of_partials = check.partial.iter().map(|partial| partial.say.as_str());
    let of_notes = check.notes.iter().map(|note| note.say.as_str());
    of_partials.chain(of_notes).chain(check.expect.iter().filter_map(|expect| expect.say.as_deref())).collect()
}

/// Words without which an outcome could not be told.
fn required(check: &Check) -> Vec<&str> {
    let mut required = vec!["pass", "fail"];
    if check.on_no_rows == Outcome::NotAssessable || check.on_null == Outcome::NotAssessable {
        required.push("not_assessable");
    }
    required.extend(says(check));
    required
}

/// Places with a dot are told without running the check; its columns are not.
fn complain_of_places(section: &Section<'_>, words: &CheckWords, check: &Check, rubric: &Rubric) {
    let mut known: Vec<String> = COMMON_PLACES.iter().map(|name| (*name).to_owned()).collect();
    known.extend(rubric.params.iter().map(|param| format!("param.{}", param.name)));
    known.extend(rubric.inputs.iter().map(|input| format!("input.{}", input.name)));
    for expect in &check.expect {
        known.extend([format!("expected.{}", expect.column), format!("measured.{}", expect.column)]);
    }
    let messages = words.outcomes.iter().map(|(name, words)| (name.as_str(), words.message.as_str()));
    let hints = words.outcomes.iter().filter_map(|(name, words)| Some((name.as_str(), words.hint.as_deref()?)));
    for (key, text) in messages.chain(hints).chain(words.hint.iter().map(|hint| ("hint", hint.as_str()))) {
        for name in fill::places(text).into_iter().filter(|name| name.contains('.')) {
            if !known.iter().any(|one| one == name) {
                let hint = did_you_mean(name, known.iter().map(String::as_str));
                section.problem_at(key, format!("nothing fills {{{name}}}{hint}"));
            }
        }
    }
    for name in fill::places(&words.title) {
        if !name.starts_with("param.") || !known.iter().any(|one| one == name) {
            section.problem_at("title", format!("a title can have parameters only, not {{{name}}}"));
        }
    }
}
