//! A TOML file read key by key: every problem is kept with its line, and an unknown key with the one that was meant.

use std::cell::{Cell, RefCell};
use std::fmt;

use rust_decimal::Decimal;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::sql::Value;

/// Something wrong with a file of a lab, for its author.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    pub file: String,
    /// From 1; 0 where it is the whole file.
    pub line: usize,
    pub message: String,
}

impl Problem {
    pub fn of_file(file: impl Into<String>, message: impl Into<String>) -> Self {
        Self { file: file.into(), line: 0, message: message.into() }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.message),
            line => write!(f, "{}:{line}: {}", self.file, self.message),
        }
    }
}

/// The known name that is most like this one, where one is like it at all.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|one| (strsim::damerau_levenshtein(name, one), one));
    // Of a short name half must be right: two other letters are another name.
    let most = |one: &str| match one.chars().count() {
        0..=3 => 1,
        length => 1 + length / 3,
    };
    let has_letter_of = |one: &str| name.chars().any(|c| one.contains(c));
    scored
        .filter(|(distance, one)| *distance <= most(one) && (*distance == 0 || has_letter_of(one)))
        .min()
        .map(|(_, one)| one)
}

/// ` (did you mean x?)`, or nothing.
pub fn did_you_mean<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(name, known).map_or(String::new(), |near| format!(" (did you mean {near}?)"))
}

/// One file, and what is wrong with it.
pub struct Document<'a> {
    file: &'a str,
    text: &'a str,
    problems: RefCell<Vec<Problem>>,
    /// The first so many are of the syntax.
    syntax_errors: Cell<usize>,
}

impl<'a> Document<'a> {
    pub fn new(file: &'a str, text: &'a str) -> Self {
        Self { file, text, problems: RefCell::default(), syntax_errors: Cell::default() }
    }

    /// The file's top table; syntax errors become problems, and what can be read is read.
    pub fn parse(&self) -> Spanned<DeTable<'a>> {
        let (table, errors) = DeTable::parse_recoverable(self.text);
        for error in errors {
            let at = error.span().map_or(0, |span| span.start);
            self.problem(at, format!("this is not valid TOML: {}", error.message()));
        }
        self.syntax_errors.set(self.problems.borrow().len());
        table
    }

    pub fn problem(&self, at: usize, message: impl Into<String>) {
        let line = 1 + self.text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count();
        self.problems.borrow_mut().push(Problem { file: self.file.to_owned(), line, message: message.into() });
    }

    /// All problems, in the order of the file. Where it is not valid TOML, no others: what seems to be missing may stand behind
    /// the fault.
    pub fn into_problems(self) -> Vec<Problem> {
        let mut problems = self.problems.into_inner();
        problems.truncate(if self.syntax_errors.get() > 0 { self.syntax_errors.get() } else { usize::MAX });
        problems.sort_by_key(|problem| problem.line);
        problems
    }
}

/// A table of the file, with the name it has in messages.
#[derive(Clone)]
pub struct Section<'d> {
    document: &'d Document<'d>,
    table: &'d DeTable<'d>,
    at: usize,
    name: String,
}

impl<'d> Section<'d> {
    pub fn top(document: &'d Document<'d>, table: &'d Spanned<DeTable<'d>>) -> Self {
        Self { document, table: table.get_ref(), at: 0, name: String::new() }
    }

    pub fn problem(&self, message: impl Into<String>) {
        self.document.problem(self.at, message);
    }

    pub fn problem_at(&self, key: &str, message: impl Into<String>) {
        self.document.problem(self.get(key).map_or(self.at, |value| value.span().start), message);
    }

    /// What messages call it: `check jumbo_mss`.
    pub fn rename(&mut self, name: impl Into<String>) {
        self.name = name.into();
    }

    /// The line it begins at, from 1.
    pub fn line(&self) -> usize {
        1 + self.document.text.as_bytes().iter().take(self.at).filter(|byte| **byte == b'\n').count()
    }

    /// The line where the value of a key begins, from 1; that of the table where there is none.
    pub fn line_of(&self, key: &str) -> usize {
        let at = self.get(key).map_or(self.at, |value| value.span().start);
        1 + self.document.text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count()
    }

    /// Complains of every key that is not known.
    pub fn expect_keys(&self, known: &[&str]) {
        for key in self.table.keys() {
            let name: &str = key.get_ref();
            if !known.contains(&name) {
                let hint = did_you_mean(name, known.iter().copied());
                let known = known.join(", ");
                self.document.problem(
                    key.span().start,
                    format!("{} has no key {name}{hint}; its keys are {known}", self.place()),
                );
            }
        }
    }

    pub fn has(&self, key: &str) -> bool {
        self.get(key).is_some()
    }

    pub fn is_empty_list(&self, key: &str) -> bool {
        self.entry(key).is_some_and(|entry| entry.items().is_empty())
    }

    /// Keys and their values, in the order of the file.
    pub fn entries(&self) -> Vec<(&'d str, Entry<'d>)> {
        let mut entries: Vec<_> = self.table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let entry = |(key, value): (&'d Spanned<_>, &'d Spanned<DeValue<'d>>)| {
            let key: &'d std::borrow::Cow<'d, str> = key.get_ref();
            (key.as_ref(), Entry { document: self.document, value })
        };
        entries.into_iter().map(entry).collect()
    }

    pub fn text(&self, key: &str) -> Option<String> {
        let entry = self.entry(key)?;
        entry.text().or_else(|| entry.wrong(key, "text in quotes"))
    }

    pub fn required_text(&self, key: &str) -> String {
        if !self.has(key) {
            self.problem(format!("{} lacks the key {key}", self.place()));
        }
        self.text(key).unwrap_or_default()
    }

    pub fn boolean(&self, key: &str) -> Option<bool> {
        let entry = self.entry(key)?;
        entry.value.get_ref().as_bool().or_else(|| entry.wrong(key, "true or false"))
    }

    pub fn scalar(&self, key: &str) -> Option<Value> {
        let entry = self.entry(key)?;
        entry.scalar().or_else(|| entry.wrong(key, "a number, text or truth value"))
    }

    /// One text, or a list of them.
    pub fn texts(&self, key: &str) -> Vec<String> {
        let Some(entry) = self.entry(key) else { return Vec::new() };
        let items = entry.items();
        let texts: Vec<_> = items.iter().filter_map(Entry::text).collect();
        if texts.len() != items.len() {
            entry.wrong::<()>(key, "a list of texts in quotes");
        }
        texts
    }

    /// One scalar, or a list of them.
    pub fn scalars(&self, key: &str) -> Vec<Value> {
        let Some(entry) = self.entry(key) else { return Vec::new() };
        let items = entry.items();
        let values: Vec<_> = items.iter().filter_map(Entry::scalar).collect();
        if values.len() != items.len() {
            entry.wrong::<()>(key, "a number, text or truth value, or a list of them");
        }
        values
    }

    /// Points: decimal text, since binary floats drift.
    pub fn points(&self, key: &str) -> Option<Decimal> {
        let entry = self.entry(key)?;
        let points = entry.text().and_then(|text| Decimal::from_str_exact(text.trim()).ok());
        let Some(points) = points.filter(|points| !points.is_sign_negative() && points.scale() <= 6) else {
            return entry.wrong(key, "a decimal number in quotes, from 0 on, such as \"2.5\"");
        };
        Some(points.normalize())
    }

    /// One of several words.
    pub fn choice<T: Copy>(&self, key: &str, choices: &[(&str, T)]) -> Option<T> {
        let word = self.text(key)?;
        let found = choices.iter().find(|(name, _)| *name == word).map(|(_, value)| *value);
        if found.is_none() {
            let names: Vec<_> = choices.iter().map(|(name, _)| *name).collect();
            let hint = did_you_mean(&word, names.iter().copied());
            self.problem_at(key, format!("{key} cannot be {word}{hint}; it is one of {}", names.join(", ")));
        }
        found
    }

    pub fn section(&self, key: &str, name: impl Into<String>) -> Option<Self> {
        let entry = self.entry(key)?;
        entry.section(name).or_else(|| entry.wrong(key, "a table"))
    }

    /// An array of tables, or one table alone.
    pub fn sections(&self, key: &str, name: &str) -> Vec<Self> {
        let Some(entry) = self.entry(key) else { return Vec::new() };
        let items = entry.items();
        let sections: Vec<_> = items.iter().filter_map(|item| item.section(name)).collect();
        if sections.len() != items.len() {
            entry.wrong::<()>(key, "a list of tables");
        }
        sections
    }

    fn entry(&self, key: &str) -> Option<Entry<'d>> {
        self.get(key).map(|value| Entry { document: self.document, value })
    }

    fn get(&self, key: &str) -> Option<&'d Spanned<DeValue<'d>>> {
        self.table.iter().find(|(name, _)| name.get_ref() == key).map(|(_, value)| value)
    }

    fn place(&self) -> &str {
        if self.name.is_empty() { "the file" } else { &self.name }
    }
}

/// One value of a table or list.
#[derive(Clone, Copy)]
pub struct Entry<'d> {
    document: &'d Document<'d>,
    value: &'d Spanned<DeValue<'d>>,
}

impl<'d> Entry<'d> {
    pub fn text(&self) -> Option<String> {
        self.value.get_ref().as_str().map(str::to_owned)
    }

    pub fn section(&self, name: impl Into<String>) -> Option<Section<'d>> {
        let table = self.value.get_ref().as_table()?;
        Some(Section { document: self.document, table, at: self.value.span().start, name: name.into() })
    }

    /// A list's items; anything else is a list of one.
    pub fn items(&self) -> Vec<Self> {
        match self.value.get_ref().as_array() {
            Some(array) => array.iter().map(|value| Self { document: self.document, value }).collect(),
            None => vec![*self],
        }
    }

    pub fn problem(&self, message: impl Into<String>) {
        self.document.problem(self.value.span().start, message);
    }

    pub fn scalar(&self) -> Option<Value> {
        match self.value.get_ref() {
            DeValue::String(text) => Some(Value::Text(text.clone().into_owned())),
            DeValue::Integer(number) => {
                let digits = number.as_str().replace('_', "");
                i64::from_str_radix(&digits, number.radix()).ok().map(Value::Integer)
            }
            DeValue::Float(number) => {
                let value: f64 = number.as_str().replace('_', "").parse().ok()?;
                value.is_finite().then_some(Value::Real(value))
            }
            DeValue::Boolean(value) => Some(Value::Integer(i64::from(*value))),
            _ => None,
        }
    }

    fn wrong<T>(&self, key: &str, wanted: &str) -> Option<T> {
        let given = self.value.get_ref().type_str();
        self.problem(format!("{key} must be {wanted}, not this {given}"));
        None
    }
}
