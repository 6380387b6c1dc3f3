//! What is to be said of a submission itself, before anything in it is graded.

use crate::capture::Severity;
use crate::words::{self, Lang};

/// One thing that a student or teacher should know of a submission.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubmissionFinding {
    /// Stable name; the sentences are `submission.<code>` in `src/words/`.
    pub code: &'static str,
    pub severity: Severity,
    /// The file concerned, by its name in the submission; empty for the submission as a whole.
    pub file: String,
    /// The figure: how many, or how much.
    pub value: Option<u64>,
    /// Further values for the sentence.
    details: Vec<(&'static str, Detail)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Detail {
    Text(String),
    /// A sentence of its own, by key.
    Words(&'static str),
    /// One that was said already, in English and Chinese.
    Said(String, String),
}

impl SubmissionFinding {
    pub(super) fn error(code: &'static str, file: &str) -> Self {
        Self::new(code, Severity::Error, file)
    }

    pub(super) fn warning(code: &'static str, file: &str) -> Self {
        Self::new(code, Severity::Warning, file)
    }

    pub(super) fn info(code: &'static str, file: &str) -> Self {
        Self::new(code, Severity::Info, file)
    }

    fn new(code: &'static str, severity: Severity, file: &str) -> Self {
        Self { code, severity, file: file.to_owned(), value: None, details: Vec::new() }
    }

    pub(super) fn value(mut self, value: u64) -> Self {
        self.value = Some(value);
        self
    }

    pub(super) fn detail(mut self, name: &'static str, value: impl ToString) -> Self {
        self.details.push((name, Detail::Text(value.to_string())));
        self
    }

    pub(super) fn said(mut self, name: &'static str, say: impl Fn(Lang) -> String) -> Self {
        self.details.push((name, Detail::Said(say(Lang::En), say(Lang::Zh))));
        self
    }

    pub(super) fn words(mut self, name: &'static str, key: &'static str) -> Self {
        self.details.push((name, Detail::Words(key)));
        self
    }

    /// The sentence, in the language asked for.
    pub fn message(&self, lang: Lang) -> String {
        let value = self.value.map_or(String::new(), |value| value.to_string());
        let details: Vec<(&'static str, String)> = self
            .details
            .iter()
            .map(|(name, detail)| match detail {
                Detail::Text(text) => (*name, text.clone()),
                Detail::Said(en, zh) => (*name, if lang == Lang::Zh { zh } else { en }.clone()),
                Detail::Words(key) => (*name, words::say(lang, key, &[("path", &self.file)])),
            })
            .collect();
        let mut values: Vec<(&str, &dyn std::fmt::Display)> = vec![("file", &self.file), ("value", &value)];
        values.extend(details.iter().map(|(name, text)| (*name, text as &dyn std::fmt::Display)));
        words::say(lang, &format!("submission.{}", self.code), &values)
    }
}
