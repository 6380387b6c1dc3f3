//! The words of a check: which of the lab's are used, and what fills their places.

use std::collections::BTreeSet;

use super::check::{Bench, Found};
use super::reasons;
use crate::grade::feedback::Words;
use crate::grade::fill::Places;
use crate::grade::lab::Lab;
use crate::grade::report::{Both, Evidence, points_text};
use crate::grade::rubric::Check;
use crate::grade::units::Unit;
use crate::sql::Value;
use crate::words::say;

impl Bench<'_> {
    /// The lab's words for the outcome: message and hint.
    pub(super) fn words(&mut self, check: &Check, found: &Found, places: &Places) -> (Option<Both>, Option<Both>) {
        let names: Vec<&str> = found.say.iter().map(String::as_str).collect();
        let lab = self.lab;
        let of = |lang, name: &str| -> Option<&Words> { lab.words(lang).checks.get(&check.id)?.outcomes.get(name) };
        use crate::words::Lang::{En, Zh};
        let chosen = names.iter().find_map(|name| Some((*name, of(En, name)?, of(Zh, name)?)));
        let Some((name, en, zh)) = chosen else { return (None, None) };
        self.said.insert((check.id.clone(), name.to_owned()));
        let message = Both { en: en.message.clone(), zh: zh.message.clone() };
        let hint = en.hint.clone().zip(zh.hint.clone()).map(|(en, zh)| Both { en, zh });
        let message = self.fill_both(check, &message, places);
        (Some(message), hint.map(|hint| self.fill_both(check, &hint, places)))
    }

    /// The message with the words of each note after it.
    pub(super) fn with_notes(&mut self, check: &Check, notes: &[String], places: &Places, mut message: Both) -> Both {
        for name in notes {
            let of = |lab: &Lab, lang| Some(lab.words(lang).checks.get(&check.id)?.outcomes.get(name)?.message.clone());
            let Some(words) = self.text(of) else { continue };
            self.said.insert((check.id.clone(), name.clone()));
            let words = self.fill_both(check, &words, places);
            message = Both::new(|lang| {
                say(lang, "grade.with_note", &[("message", &message.get(lang)), ("note", &words.get(lang))])
            });
        }
        message
    }

    /// A text in both languages, where both have it.
    pub(super) fn text(&self, of: impl Fn(&Lab, crate::words::Lang) -> Option<String>) -> Option<Both> {
        use crate::words::Lang::{En, Zh};
        Some(Both { en: of(self.lab, En)?, zh: of(self.lab, Zh)? })
    }

    pub(super) fn fill(&mut self, check: &Check, text: &str, places: &Places) -> Both {
        self.fill_both(check, &Both { en: text.to_owned(), zh: text.to_owned() }, places)
    }

    pub(super) fn fill_both(&mut self, check: &Check, text: &Both, places: &Places) -> Both {
        let mut unfilled = BTreeSet::new();
        let filled = Both::new(|lang| places.fill(text.get(lang), lang, &mut unfilled));
        self.unfilled.extend(unfilled.into_iter().map(|name| (check.id.clone(), name)));
        filled
    }

    pub(super) fn places(&self, check: &Check, found: &Found, shown: &[Evidence]) -> Places {
        let mut places = Places::default();
        for param in &self.lab.rubric.params {
            let value = self.params.get(&param.name).cloned().unwrap_or(Value::Null);
            places.value(format!("param.{}", param.name), value, param.unit);
        }
        for input in self.inputs {
            let files = input.files.join(", ");
            if files.is_empty() {
                places.value(format!("input.{}", input.name), Value::Null, None);
            } else {
                places.text(format!("input.{}", input.name), files);
            }
        }
        let unit_of = |column: &str| {
            let expect = check.expect.iter().find(|expect| expect.column == column);
            expect.and_then(|expect| expect.unit).or_else(|| Unit::of_column(column))
        };
        for (at, column) in found.columns.iter().enumerate() {
            let value = found.row.get(at).cloned().unwrap_or(Value::Null);
            places.value(column.clone(), value, unit_of(column));
        }
        for (at, measured) in found.measured.iter().enumerate() {
            let expected = reasons::expected(measured);
            let (value, unit) = (measured.value.clone(), measured.unit);
            if at == found.focus {
                places.value("measured", value.clone(), unit);
                places.words("expected", expected.en.clone(), expected.zh.clone());
            }
            places.value(format!("measured.{}", measured.column), value, unit);
            places.words(format!("expected.{}", measured.column), expected.en, expected.zh);
        }
        let frames: Vec<_> = shown.iter().flat_map(|evidence| &evidence.frames).map(u64::to_string).collect();
        places.text("frame", frames.first().cloned().unwrap_or_else(|| "–".to_owned()));
        places.text("frame_count", frames.len().to_string());
        places.text("frames", if frames.is_empty() { "–".to_owned() } else { frames.join(", ") });
        places.text("filter", "");
        places.text("points", points_text(found.points));
        places.text("max_points", points_text(check.points));
        places
    }
}
