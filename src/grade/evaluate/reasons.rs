//! Why a check could not be assessed, in words, and what to do about it.

use crate::grade::lab::Lab;
use crate::grade::needs;
use crate::grade::report::{Both, Measured, OPTIONAL_INPUT, QualityFinding, Reason};
use crate::grade::rubric::{Check, Op};
use crate::grade::submission::Unusable;
use crate::grade::units::{pair, readable};
use crate::words::{Lang, say};

#[derive(Clone, Debug)]
pub(super) enum Why {
    /// Waits for a check that did not pass.
    DependsOn {
        check: String,
        /// Whether that one could not be assessed, and so may well be right.
        is_open: bool,
        /// The check that was lost and that all this waits for; none where nothing was lost.
        lost: Option<String>,
    },
    MissingInput(String),
    /// An input that need not be handed in, and was not: the check leaves the total.
    NotHandedIn(String),
    /// Several files could be the input.
    Ambiguous {
        name: String,
        files: String,
    },
    Unreadable {
        file: String,
        why: Both,
    },
    /// What was handed in for the input cannot be it.
    Unusable {
        name: String,
        why: Unusable,
    },
    Unmet {
        need: String,
        finding: QualityFinding,
    },
    Damaged(QualityFinding),
    NoRows,
    /// An expected column is NULL.
    Null(String),
    /// The rubric's query failed.
    SqlFailed(String),
    TimeLimit(u64),
    /// A column that cannot be compared.
    WrongType(String),
}

impl Why {
    pub fn code(&self) -> &'static str {
        match self {
            Self::DependsOn { .. } => "depends_on",
            Self::MissingInput(_) => "missing_input",
            Self::NotHandedIn(_) => OPTIONAL_INPUT,
            Self::Ambiguous { .. } => "ambiguous_input",
            Self::Unreadable { .. } => "unreadable_input",
            Self::Unusable { .. } => "unusable_input",
            Self::Unmet { .. } => "unmet_need",
            Self::Damaged(_) => "damaged_capture",
            Self::NoRows => "no_rows",
            Self::Null(_) => "null",
            Self::SqlFailed(_) => "sql_failed",
            Self::TimeLimit(_) => "time_limit",
            Self::WrongType(_) => "wrong_type",
        }
    }

    /// Whether the check itself is at fault.
    pub fn is_fault(&self) -> bool {
        matches!(self, Self::SqlFailed(_) | Self::TimeLimit(_) | Self::WrongType(_))
    }

    /// Whether what was handed in is at fault: nobody may gain by that unseen.
    pub fn is_defect(&self) -> bool {
        matches!(
            self,
            Self::Ambiguous { .. }
                | Self::Unreadable { .. }
                | Self::Unusable { .. }
                | Self::Unmet { .. }
                | Self::Damaged(_)
        )
    }

    /// Whether the check's query was answered, so that frames can be looked for.
    pub fn has_answer(&self) -> bool {
        matches!(self, Self::Damaged(_) | Self::NoRows | Self::Null(_) | Self::WrongType(_))
    }
}

/// Titles of checks that were assessed, filled in.
pub(super) type Titles = std::collections::BTreeMap<String, Both>;

pub(super) fn reason(why: &Why, lab: &Lab, titles: &Titles, check: &str) -> Reason {
    let message = Both::new(|lang| {
        let key = format!("grade.reason.{}", why.code());
        match why {
            Why::DependsOn { check, is_open, .. } => {
                let key = if *is_open { "grade.reason.depends_on_open" } else { key.as_str() };
                say(lang, key, &[("check", &title(titles, check, lang))])
            }
            Why::MissingInput(name) | Why::NotHandedIn(name) => say(lang, &key, &[("input", &input(lab, name, lang))]),
            Why::Ambiguous { name, files } => say(lang, &key, &[("input", &input(lab, name, lang)), ("files", files)]),
            Why::Unreadable { file, why } => say(lang, &key, &[("file", file), ("why", &why.get(lang))]),
            Why::Unusable { name, why } => {
                let key = if why.files.is_empty() { "grade.reason.unopened_input" } else { key.as_str() };
                let because = if lang == Lang::Zh { &why.zh } else { &why.en };
                let files = why.files.join(&say(lang, "grade.and", &[]));
                say(lang, key, &[("input", &input(lab, name, lang)), ("files", &files), ("why", because)])
            }
            Why::Unmet { need, finding } => {
                let need = say(lang, &needs::words_key(need), &[("code", need)]);
                let values: &[(&str, &dyn std::fmt::Display)] = &[
                    ("input", &input(lab, &finding.input, lang)),
                    ("need", &need),
                    ("finding", &finding.message.get(lang)),
                ];
                say(lang, &key, values)
            }
            Why::Damaged(finding) => {
                let values: &[(&str, &dyn std::fmt::Display)] =
                    &[("input", &input(lab, &finding.input, lang)), ("finding", &finding.message.get(lang))];
                say(lang, &key, values)
            }
            Why::NoRows => say(lang, &key, &[]),
            Why::Null(column) | Why::WrongType(column) => say(lang, &key, &[("column", &lab.label(column).get(lang))]),
            Why::SqlFailed(message) => {
                // The lines after the first show the place in the query, for its author.
                say(lang, &key, &[("why", &message.lines().next().unwrap_or(""))])
            }
            Why::TimeLimit(limit) => say(lang, &key, &[("limit", limit)]),
        }
    });
    Reason { code: why.code().to_owned(), check: Some(check.to_owned()), message }
}

/// What to do about it; none where there is nothing to do.
pub(super) fn hint(why: &Why, lab: &Lab, titles: &Titles) -> Option<Both> {
    if matches!(why, Why::DependsOn { lost: None, .. } | Why::NotHandedIn(_)) {
        return None;
    }
    Some(Both::new(|lang| match why {
        Why::DependsOn { check, lost, .. } => {
            let first = lost.as_ref().unwrap_or(check);
            say(lang, "grade.reason.depends_on_hint", &[("check", &title(titles, first, lang))])
        }
        Why::MissingInput(name) | Why::NotHandedIn(name) | Why::Ambiguous { name, .. } => {
            let (kind, patterns) = lab
                .rubric
                .input(name)
                .map_or((String::new(), String::new()), |input| (input.kind.clone(), input.patterns.join(" ")));
            let key = if patterns.is_empty() {
                "grade.reason.missing_input_any_name_hint"
            } else {
                "grade.reason.missing_input_hint"
            };
            say(lang, key, &[("input", &input(lab, name, lang)), ("kind", &kind), ("patterns", &patterns)])
        }
        Why::Unreadable { .. } => say(lang, "grade.reason.unreadable_input_hint", &[]),
        Why::Unusable { name, .. } => {
            let values: &[(&str, &dyn std::fmt::Display)] = &[("input", &input(lab, name, lang))];
            say(lang, "grade.reason.unusable_input_hint", values)
        }
        Why::Unmet { .. } => say(lang, "grade.reason.unmet_need_hint", &[]),
        Why::Damaged(_) => say(lang, "grade.reason.damaged_capture_hint", &[]),
        Why::NoRows | Why::Null(_) => say(lang, "grade.reason.no_answer_hint", &[]),
        Why::SqlFailed(_) | Why::TimeLimit(_) | Why::WrongType(_) => say(lang, "grade.reason.fault_hint", &[]),
    }))
}

/// What was looked for where the check's query was not asked.
pub(super) fn searched(why: &Why, lab: &Lab, check: &Check) -> String {
    match why {
        Why::MissingInput(name) | Why::NotHandedIn(name) | Why::Ambiguous { name, .. } => {
            lab.rubric.input(name).map_or(String::new(), |input| {
                let patterns = input.patterns.join(" ");
                format!("{}: {} {patterns}", input.name, input.kind).trim_end().to_owned()
            })
        }
        Why::Unreadable { file, .. } => file.clone(),
        Why::Unusable { name, why } if why.files.is_empty() => searched(&Why::MissingInput(name.clone()), lab, check),
        Why::Unusable { why, .. } => why.files.join(", "),
        Why::Unmet { need, finding } => format!("{}: {need}", finding.input),
        Why::DependsOn { check, .. } => format!("check {check}"),
        _ => check.sql.trim().to_owned(),
    }
}

/// "at least 8,960 bytes": what was expected, in words.
pub(super) fn expected(measured: &Measured) -> Both {
    Both::new(|lang| {
        let texts: Vec<_> =
            measured.expected.iter().map(|expected| pair(expected, &measured.value, measured.unit, lang).0).collect();
        match (measured.op, texts.as_slice()) {
            (Op::Between, [least, most]) => format!("{least} – {most}"),
            (Op::OneOf, texts) => texts.join(&say(lang, "grade.and", &[])),
            (_, texts) => texts.first().cloned().unwrap_or_else(|| readable(&crate::sql::Value::Null, None, lang)),
        }
    })
}

fn title(titles: &Titles, check: &str, lang: Lang) -> String {
    titles.get(check).map_or(check, |title| title.get(lang)).to_owned()
}

/// What the lab's words call an input.
pub(super) fn input(lab: &Lab, name: &str, lang: Lang) -> String {
    lab.words(lang).inputs.get(name).cloned().unwrap_or_else(|| name.to_owned())
}
