//! Words with places to fill: `{mss}`, `{rtt_ns}`, `{rate:bps}`, `{param.mtu}`. Braces around anything else, as in Wireshark's
//! `{80, 443}`, stay as they are.

use std::collections::{BTreeMap, BTreeSet};

use super::units::{Unit, readable};
use crate::sql::Value;
use crate::words::Lang;

/// What the places of a text can hold, by name.
#[derive(Clone, Debug, Default)]
pub struct Places(BTreeMap<String, Place>);

#[derive(Clone, Debug)]
enum Place {
    Value(Value, Option<Unit>),
    /// The same in both languages, or one for each.
    Words(String, String),
}

impl Places {
    pub fn value(&mut self, name: impl Into<String>, value: Value, unit: Option<Unit>) {
        self.0.insert(name.into(), Place::Value(value, unit));
    }

    pub fn words(&mut self, name: impl Into<String>, en: impl Into<String>, zh: impl Into<String>) {
        self.0.insert(name.into(), Place::Words(en.into(), zh.into()));
    }

    pub fn text(&mut self, name: impl Into<String>, text: impl Into<String>) {
        let text = text.into();
        self.words(name, text.clone(), text);
    }

    /// The text, filled in. A place that nothing fills stays visible, and is noted.
    pub fn fill(&self, text: &str, lang: Lang, unfilled: &mut BTreeSet<String>) -> String {
        let mut filled = String::with_capacity(text.len() + 32);
        for piece in pieces(text) {
            match piece {
                Piece::Literal(literal) => filled.push_str(literal),
                Piece::Place { whole, name, unit } => match self.0.get(name) {
                    Some(Place::Words(en, zh)) => filled.push_str(if lang == Lang::En { en } else { zh }),
                    Some(Place::Value(value, own)) => {
                        let unit = unit.and_then(Unit::from_name).or(*own);
                        filled.push_str(&readable(value, unit, lang));
                    }
                    None => {
                        unfilled.insert(name.to_owned());
                        filled.push_str(whole);
                    }
                },
            }
        }
        filled
    }
}

/// A part of a text.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    Literal(&'a str),
    Place { whole: &'a str, name: &'a str, unit: Option<&'a str> },
}

pub fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut literal_from = 0;
    let mut at = 0;
    while let Some(open) = text[at..].find('{').map(|found| at + found) {
        at = open + 1;
        let Some(close) = text[at..].find(['{', '}']).map(|found| at + found) else { break };
        if !text[close..].starts_with('}') {
            continue;
        }
        let inside = &text[at..close];
        let (name, unit) = match inside.split_once(':') {
            Some((name, unit)) => (name, Some(unit)),
            None => (inside, None),
        };
        if is_place_name(name) && unit.is_none_or(|unit| Unit::from_name(unit).is_some()) {
            if literal_from < open {
                pieces.push(Piece::Literal(&text[literal_from..open]));
            }
            pieces.push(Piece::Place { whole: &text[open..=close], name, unit });
            literal_from = close + 1;
        }
        at = close + 1;
    }
    if literal_from < text.len() {
        pieces.push(Piece::Literal(&text[literal_from..]));
    }
    pieces
}

/// Places that name a unit which is none, and so stay as they are written.
pub fn unknown_units(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let inside = text.split('{').skip(1).filter_map(|rest| rest.split_once('}')).map(|(inside, _)| inside);
    inside.filter_map(|inside| {
        let (name, unit) = inside.split_once(':')?;
        let is_unit = unit.starts_with(|c: char| c.is_ascii_alphabetic()) && is_place_name(unit);
        (is_place_name(name) && is_unit && Unit::from_name(unit).is_none()).then_some((name, unit))
    })
}

/// The names of all places of a text.
pub fn places(text: &str) -> BTreeSet<&str> {
    let place = |piece| match piece {
        Piece::Place { name, .. } => Some(name),
        Piece::Literal(_) => None,
    };
    pieces(text).into_iter().filter_map(place).collect()
}

fn is_place_name(name: &str) -> bool {
    let is_word = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    name.split_once('.').map_or(is_word(name), |(prefix, rest)| is_word(prefix) && is_word(rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_filled_and_other_braces_stay() {
        let mut places = Places::default();
        places.value("mss", Value::Integer(8960), Some(Unit::Bytes));
        places.value("param.port", Value::Integer(5201), None);
        places.text("frames", "1, 5");
        let mut unfilled = BTreeSet::new();
        let text = "MSS {mss} on {param.port}: tcp.port in {80, 443} and frame.number in {{frames}} {nope} {mss:";
        let filled = places.fill(text, Lang::En, &mut unfilled);
        assert_eq!(filled, "MSS 8,960 bytes on 5201: tcp.port in {80, 443} and frame.number in {1, 5} {nope} {mss:");
        assert_eq!(unfilled.into_iter().collect::<Vec<_>>(), ["nope"]);
    }

    #[test]
    fn a_place_may_name_the_unit() {
        let mut places = Places::default();
        places.value("rate", Value::Real(2.5e9), None);
        let fill = |text: &str| places.fill(text, Lang::En, &mut BTreeSet::new());
        assert_eq!(fill("{rate:bps}"), "2.5 Gbit/s");
        assert_eq!(fill("{rate:parsec}"), "{rate:parsec}");
        let text = "{rate:parsec} {rate:bps} {80, 443} {{x:mile}} {tcp.port: 80} {a:1}";
        assert_eq!(unknown_units(text).collect::<Vec<_>>(), [("rate", "parsec"), ("x", "mile")]);
        assert_eq!(fill("é{rate:bps}é"), "é2.5 Gbit/sé");
    }
}
