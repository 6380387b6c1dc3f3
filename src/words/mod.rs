//! Every sentence a person reads, in English and Chinese, apart from the code that chooses it.

use std::collections::HashMap;
use std::fmt::Display;
use std::sync::LazyLock;

/// Language of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lang {
    #[default]
    En,
    Zh,
}

impl Lang {
    /// `en` or `zh`, also with a region (`zh-CN`, `en_US.UTF-8`).
    pub fn from_tag(tag: &str) -> Option<Self> {
        match tag.get(..2)?.to_ascii_lowercase().as_str() {
            "en" => Some(Self::En),
            "zh" => Some(Self::Zh),
            _ => None,
        }
    }
}

/// The sentence under `key`, with its `{placeholders}` filled in. An unknown key comes back as itself.
///
/// `{count|packet|packets}` is the first form where `count` is 1, else the second. `{Side}` is `{side}` where it begins a
/// sentence: its first letter is a capital.
pub fn say(lang: Lang, key: &str, values: &[(&str, &dyn Display)]) -> String {
    let Some(template) = table(lang).get(key) else { return key.to_owned() };
    let mut text = String::with_capacity(template.len() + 32);
    let mut rest = template.as_str();
    while let Some(open) = rest.find('{') {
        let Some(close) = rest[open..].find('}') else { break };
        text.push_str(&rest[..open]);
        let (name, forms) = parts(&rest[open + 1..open + close]);
        let value = values.iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_string());
        let value = value.or_else(|| capitalised(name, values));
        match (value, forms) {
            (Some(value), None) => text.push_str(&value),
            (Some(value), Some((one, other))) => text.push_str(if value == "1" { one } else { other }),
            (None, _) => text.push_str(&rest[open..=open + close]),
        }
        rest = &rest[open + close + 1..];
    }
    text.push_str(rest);
    text
}

/// The value of a placeholder that begins with a capital, so that the value is to begin with one.
fn capitalised(name: &str, values: &[(&str, &dyn Display)]) -> Option<String> {
    let mut letters = name.chars();
    let first = letters.next().filter(char::is_ascii_uppercase)?;
    let plain = format!("{}{}", first.to_ascii_lowercase(), letters.as_str());
    let value = values.iter().find(|(known, _)| *known == plain)?.1.to_string();
    let mut letters = value.chars();
    Some(letters.next()?.to_uppercase().chain(letters).collect())
}

/// What a placeholder names, and its two forms, if it has them.
fn parts(placeholder: &str) -> (&str, Option<(&str, &str)>) {
    match placeholder.split_once('|') {
        Some((name, forms)) => (name, forms.split_once('|')),
        None => (placeholder, None),
    }
}

/// A span of nanoseconds in the largest unit that leaves something before the point: "1.500 ms".
pub fn span(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    match ns {
        0..1_000 => format!("{sign}{ns} ns"),
        1_000..1_000_000 => format!("{sign}{}.{:03} µs", ns / 1_000, ns % 1_000),
        1_000_000..1_000_000_000 => format!("{sign}{}.{:03} ms", ns / 1_000_000, ns / 1_000 % 1_000),
        _ => format!("{sign}{}.{:03} s", ns / 1_000_000_000, ns / 1_000_000 % 1_000),
    }
}

/// A span of nanoseconds with the three digits that count: "1.50 ms", "399 ms", "2.28 s".
pub fn short(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = u128::from(ns.unsigned_abs());
    let units = [(1_000, "µs"), (1_000_000, "ms"), (1_000_000_000, "s")];
    let Some(at) = units.iter().rposition(|(length, _)| ns >= *length) else { return format!("{sign}{ns} ns") };
    // In hundredths, tenths or whole units: the finest that leaves three digits, in the next unit if that rounds to 1000.
    for (length, unit) in &units[at..] {
        for (decimals, scale) in [(2, 100), (1, 10), (0, 1)] {
            let scaled = (ns * scale + length / 2) / length;
            if scaled < 1_000 {
                let rest = if decimals > 0 { format!(".{:0decimals$}", scaled % scale) } else { String::new() };
                return format!("{sign}{}{rest} {unit}", scaled / scale);
            }
        }
    }
    format!("{sign}{} s", (ns + 500_000_000) / 1_000_000_000)
}

/// Whether there is a sentence under `key`.
pub fn has(key: &str) -> bool {
    table(Lang::En).contains_key(key)
}

/// The rests of all keys that begin with `prefix`, in order.
pub fn keys(prefix: &str) -> Vec<String> {
    let mut keys: Vec<_> =
        table(Lang::En).keys().filter_map(|key| key.strip_prefix(prefix)).map(str::to_owned).collect();
    keys.sort_unstable();
    keys
}

fn table(lang: Lang) -> &'static HashMap<String, String> {
    static EN: LazyLock<HashMap<String, String>> = LazyLock::new(|| flatten(EN_TEXT));
    static ZH: LazyLock<HashMap<String, String>> = LazyLock::new(|| flatten(ZH_TEXT));
    match lang {
        Lang::En => &EN,
        Lang::Zh => &ZH,
    }
}

const EN_TEXT: &[&str] = &[
    include_str!("errors.en.toml"),
    include_str!("quality.en.toml"),
    include_str!("tcp.en.toml"),
    include_str!("match.en.toml"),
    include_str!("roce.en.toml"),
    include_str!("sql.en.toml"),
    include_str!("logs.en.toml"),
    include_str!("submission.en.toml"),
    include_str!("grade.en.toml"),
];
const ZH_TEXT: &[&str] = &[
    include_str!("errors.zh.toml"),
    include_str!("quality.zh.toml"),
    include_str!("tcp.zh.toml"),
    include_str!("match.zh.toml"),
    include_str!("roce.zh.toml"),
    include_str!("sql.zh.toml"),
    include_str!("logs.zh.toml"),
    include_str!("submission.zh.toml"),
    include_str!("grade.zh.toml"),
];

/// `[a] b = "x"` becomes `a.b`. A file that does not parse leaves its keys out; the test below keeps that from shipping.
fn flatten(texts: &[&str]) -> HashMap<String, String> {
    let mut words = HashMap::new();
    for text in texts {
        if let Ok(table) = text.parse::<toml::Table>() {
            flatten_into(&mut words, "", &table);
        }
    }
    words
}

fn flatten_into(words: &mut HashMap<String, String>, prefix: &str, table: &toml::Table) {
    for (name, value) in table {
        let key = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        match value {
            toml::Value::Table(inner) => flatten_into(words, &key, inner),
            toml::Value::String(text) => {
                words.insert(key, text.clone());
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn placeholders(text: &str) -> BTreeSet<&str> {
        text.split('{').skip(1).filter_map(|part| part.split_once('}')).map(|(part, _)| parts(part).0).collect()
    }

    #[test]
    fn both_languages_have_the_same_keys_and_placeholders() {
        for text in EN_TEXT.iter().chain(ZH_TEXT) {
            text.parse::<toml::Table>().expect("a words file that parses");
        }
        let (en, zh) = (table(Lang::En), table(Lang::Zh));
        assert!(en.len() > 20);
        let keys = |words: &HashMap<String, String>| words.keys().cloned().collect::<BTreeSet<_>>();
        assert_eq!(keys(en), keys(zh));
        for (key, text) in en {
            assert_eq!(placeholders(text), placeholders(&zh[key]), "{key}");
        }
    }

    #[test]
    fn one_thing_is_not_told_as_several() {
        const COUNTS: &str = "answers before bytes cnps connections count frames lost max naks \
                              packets points qps ranges storms timeouts total tries value xons";
        let mut wrong = Vec::new();
        for (key, text) in table(Lang::En) {
            let value = |name: &&str| if COUNTS.split(' ').any(|count| count == *name) { "1" } else { "X" };
            let filled: Vec<_> = placeholders(text).into_iter().map(|name| (name, value(&name))).collect();
            let values: Vec<_> = filled.iter().map(|(name, value)| (*name, value as &dyn Display)).collect();
            let said = say(Lang::En, key, &values);
            assert!(!said.contains(['{', '}', '|']), "{key}: {said}");
            wrong.extend(plural_after_one(&said).map(|word| format!("{key}: {word}: {said}")));
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert_eq!(plural_after_one("sent 1 time (1 TCP segments)"), Some("segments"));
        assert_eq!(plural_after_one("1 of 1 queue pairs; 1 is, 1 of the frames"), Some("pairs"));
        let packets = |count: u64| say(Lang::En, "grade.unit.packets", &[("value", &count)]);
        assert_eq!([0, 1, 21].map(packets), ["0 packets", "1 packet", "21 packets"]);
    }

    /// The first plural that a "1" stands before.
    fn plural_after_one(text: &str) -> Option<&str> {
        let words: Vec<&str> = text.split(' ').collect();
        // What ends the name of the one thing.
        const ENDS: [&str; 25] = [
            "1", "takes", "as", "at", "belongs", "by", "carries", "does", "for", "from", "has", "holds", "in", "is",
            "its", "names", "of", "on", "shows", "sends", "tells", "than", "to", "was", "with",
        ];
        let mut ones = words.iter().enumerate().filter(|(_, word)| word.trim_start_matches('(') == "1");
        ones.find_map(|(at, _)| {
            let mut thing = words.iter().skip(at + 1).take(4).scan(false, |is_over, word| {
                let bare = word.trim_end_matches([',', '.', ';', ':', ')', '?']);
                let is_word = bare.chars().all(|letter| letter.is_alphanumeric() || letter == '-');
                let is_next = !*is_over && is_word && !ENDS.contains(&bare);
                *is_over |= bare.len() < word.len();
                is_next.then_some(bare)
            });
            thing.find(|word| word.chars().count() > 2 && word.ends_with('s') && !word.ends_with("ss"))
        })
    }

    #[test]
    fn spans_are_cut_not_rounded_to_three_digits() {
        let spans = [0, 999, 1_000, 999_999, 1_500_000, -20_000_999, i64::MAX].map(span);
        let expected = ["0 ns", "999 ns", "1.000 µs", "999.999 µs", "1.500 ms", "-20.000 ms", "9223372036.854 s"];
        assert_eq!(spans, expected);
    }

    #[test]
    fn short_spans_have_three_digits() {
        let spans =
            [0, 999, 1_000, 47_592_000, 398_730_000, -20_000_999, 2_283_201_000, 999_999_999, 12_345_000_000_000]
                .map(short);
        assert_eq!(
            spans,
            ["0 ns", "999 ns", "1.00 µs", "47.6 ms", "399 ms", "-20.0 ms", "2.28 s", "1.00 s", "12345 s"]
        );
    }

    #[test]
    fn a_word_that_begins_a_sentence_has_a_capital() {
        let side = say(Lang::En, "event.side.server", &[]);
        let text = say(Lang::En, "event.reset.abort", &[("side", &side), ("count", &1), ("frame_no", &9)]);
        assert!(text.starts_with("The server aborted"), "{text}");
        let words = |key: &str| keys(key).iter().map(|rest| table(Lang::En)[&format!("{key}{rest}")].clone()).collect();
        let events: Vec<String> = words("event.");
        let wrong: Vec<_> =
            events.iter().filter(|text| text.starts_with("{side}") || text.starts_with("{other}")).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
    }

    #[test]
    fn a_sentence_is_filled_in_and_an_unknown_placeholder_stays_visible() {
        let text = say(Lang::En, "error.not_found", &[("path", &"x.pcap")]);
        assert!(text.contains("x.pcap") && !text.contains("{path}"), "{text}");
        assert!(say(Lang::En, "error.not_found", &[]).contains("{path}"));
        assert_eq!(say(Lang::Zh, "no.such.key", &[]), "no.such.key");
    }
}
