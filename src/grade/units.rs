//! Figures as people read them, in the unit that the rubric names or that the column's name ends in.

use crate::sql::Value;
use crate::words::{self, Lang};

/// What a figure counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Bytes,
    BitsPerSecond,
    Nanoseconds,
    Microseconds,
    Milliseconds,
    Seconds,
    /// A share, shown in percent.
    Ratio,
    Percent,
    /// Things, by the name of the unit: `packets`.
    Things(&'static str),
}

impl Unit {
    pub const NAMES: [&'static str; 15] = [
        "bytes",
        "bps",
        "ns",
        "us",
        "ms",
        "s",
        "ratio",
        "percent",
        "packets",
        "frames",
        "segments",
        "connections",
        "messages",
        "requests",
        "quanta",
    ];

    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "bytes" => Self::Bytes,
            "bps" => Self::BitsPerSecond,
            "ns" => Self::Nanoseconds,
            "us" => Self::Microseconds,
            "ms" => Self::Milliseconds,
            "s" => Self::Seconds,
            "ratio" => Self::Ratio,
            "percent" => Self::Percent,
            _ => Self::Things(Self::NAMES.into_iter().skip(8).find(|known| *known == name)?),
        })
    }

    /// The unit that a column's name ends in: `rtt_ns`.
    pub fn of_column(column: &str) -> Option<Self> {
        let (_, ending) = column.rsplit_once('_')?;
        Self::from_name(ending).filter(|unit| !matches!(unit, Self::Things(_) | Self::Seconds | Self::Percent))
    }

    /// Whether it is one of time.
    pub fn is_time(self) -> bool {
        matches!(self, Self::Nanoseconds | Self::Microseconds | Self::Milliseconds | Self::Seconds)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::BitsPerSecond => "bps",
            Self::Nanoseconds => "ns",
            Self::Microseconds => "us",
            Self::Milliseconds => "ms",
            Self::Seconds => "s",
            Self::Ratio => "ratio",
            Self::Percent => "percent",
            Self::Things(name) => name,
        }
    }
}

/// Characters of one text value in a sentence; what comes from a capture may be of any length.
const MOST_CHARACTERS: usize = 200;

/// The value for a sentence, rounded where that reads better.
pub fn readable(value: &Value, unit: Option<Unit>, lang: Lang) -> String {
    let Some(number) = as_number(value) else { return plain(value, lang) };
    match unit {
        Some(Unit::Bytes) if number.abs() >= 10_000.0 => scaled(number, &["B", "kB", "MB", "GB", "TB", "PB"]),
        Some(Unit::BitsPerSecond) => scaled(number, &["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]),
        Some(Unit::Nanoseconds) => duration(number, lang),
        Some(Unit::Microseconds) => duration(number * 1e3, lang),
        Some(Unit::Milliseconds) => duration(number * 1e6, lang),
        Some(Unit::Seconds) => duration(number * 1e9, lang),
        Some(Unit::Ratio) => format!("{}%", digits(number * 100.0)),
        Some(Unit::Percent) => format!("{}%", digits(number)),
        _ => exact(value, unit, lang),
    }
}

/// The value as it is, with its unit.
pub fn exact(value: &Value, unit: Option<Unit>, lang: Lang) -> String {
    let text = match (value, unit) {
        (Value::Integer(number), Some(_)) => grouped(*number),
        _ => plain(value, lang),
    };
    let Some(unit) = unit.filter(|_| as_number(value).is_some()) else { return text };
    words::say(lang, &format!("grade.unit.{}", unit.name()), &[("value", &text)])
}

/// Two values side by side: exact where rounding would make them look alike.
pub fn pair(a: &Value, b: &Value, unit: Option<Unit>, lang: Lang) -> (String, String) {
    let rounded = (readable(a, unit, lang), readable(b, unit, lang));
    if rounded.0 == rounded.1 && a != b { (exact(a, unit, lang), exact(b, unit, lang)) } else { rounded }
}

fn plain(value: &Value, lang: Lang) -> String {
    match value {
        Value::Null => words::say(lang, "grade.nothing", &[]),
        Value::Integer(number) => number.to_string(),
        Value::Real(number) => digits(*number),
        Value::Text(text) => match text.char_indices().nth(MOST_CHARACTERS) {
            Some((at, _)) => format!("{}…", &text[..at]),
            None => text.clone(),
        },
    }
}

fn as_number(value: &Value) -> Option<f64> {
    match value {
        Value::Integer(number) => Some(*number as f64),
        Value::Real(number) => Some(*number),
        _ => None,
    }
}

/// Nanoseconds in the unit that suits: from an hour on in days, hours, minutes and whole seconds.
fn duration(ns: f64, lang: Lang) -> String {
    const HOUR_NS: f64 = 3.6e12;
    // What is longer than a century is a figure, and no time that people read.
    if (HOUR_NS..HOUR_NS * 876_600.0).contains(&ns.abs()) {
        let sign = if ns < 0.0 { "-" } else { "" };
        return format!("{sign}{}", long_duration((ns.abs() / 1e9).round() as u64, lang));
    }
    let (unit, length) = match ns.abs() {
        0.0..1e3 => ("ns", 1.0),
        1e3..1e6 => ("µs", 1e3),
        1e6..1e9 => ("ms", 1e6),
        _ => ("s", 1e9),
    };
    format!("{} {unit}", digits(ns / length))
}

/// "1 day and 1 s".
fn long_duration(seconds: u64, lang: Lang) -> String {
    let parts = [
        ("day", seconds / 86_400),
        ("hour", seconds / 3600 % 24),
        ("minute", seconds / 60 % 60),
        ("second", seconds % 60),
    ];
    let part = |(name, count): (&str, u64)| words::say(lang, &format!("grade.duration.{name}"), &[("value", &count)]);
    let mut parts: Vec<_> = parts.into_iter().filter(|(_, count)| *count > 0).map(part).collect();
    let last = parts.pop().unwrap_or_default();
    if parts.is_empty() {
        return last;
    }
    let first = parts.join(&words::say(lang, "grade.duration.between", &[]));
    words::say(lang, "grade.duration.last", &[("first", &first), ("last", &last)])
}

fn scaled(number: f64, units: &[&str]) -> String {
    let (mut value, mut at) = (number, 0);
    while value.abs() >= 999.5 && at + 1 < units.len() {
        value /= 1000.0;
        at += 1;
    }
    format!("{} {}", digits(value), units.get(at).copied().unwrap_or(""))
}

/// At least three digits that count, and no zeros after the point that say nothing.
fn digits(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let magnitude = value.abs().log10().floor();
    if !(-12.0..15.0).contains(&magnitude) {
        return format!("{value:e}");
    }
    let places = (2.0 - magnitude).max(0.0) as usize;
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn grouped(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if number < 0 { format!("-{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn en(value: Value, unit: &str) -> String {
        readable(&value, Unit::from_name(unit), Lang::En)
    }

    #[test]
    fn figures_read_in_the_unit_that_suits() {
        let integer = Value::Integer;
        assert_eq!(en(integer(8960), "bytes"), "8,960 bytes");
        assert_eq!(en(integer(12_345_678), "bytes"), "12.3 MB");
        assert_eq!(en(integer(9_410_000_000), "bps"), "9.41 Gbit/s");
        assert_eq!(en(integer(1_500_000), "ns"), "1.5 ms");
        assert_eq!(en(integer(3_599), "s"), "3599 s");
        assert_eq!(en(integer(86_401), "s"), "1 day and 1 s");
        assert_eq!(en(integer(-180_061), "s"), "-2 days, 2 h, 1 min and 1 s");
        assert_eq!(en(integer(3_600_000_000_000), "ns"), "1 h");
        assert_eq!(readable(&integer(180_061), Unit::from_name("s"), Lang::Zh), "2 天 2 小时 1 分 1 秒");
        assert_eq!(en(Value::Real(0.0523), "ratio"), "5.23%");
        assert_eq!(en(Value::Real(0.0000052), "ratio"), "0.00052%");
        assert_eq!(en(integer(1), "packets"), "1 packet");
        assert_eq!(en(integer(20_480), "packets"), "20,480 packets");
        assert_eq!(en(Value::Null, "bytes"), "none");
        assert_eq!(readable(&integer(5201), None, Lang::En), "5201");
        assert_eq!(readable(&integer(3), Unit::from_name("packets"), Lang::Zh), "3 个数据包");
    }

    #[test]
    fn every_unit_has_a_name_that_leads_back_to_it() {
        for name in Unit::NAMES {
            assert_eq!(Unit::from_name(name).map(Unit::name), Some(name));
            for lang in [Lang::En, Lang::Zh] {
                let text = exact(&Value::Integer(2), Unit::from_name(name), lang);
                assert!(text.starts_with('2') && !text.contains("grade."), "{text}");
            }
        }
    }

    #[test]
    fn values_that_differ_never_look_the_same() {
        let (a, b) =
            pair(&Value::Integer(9_410_000_000), &Value::Integer(9_409_999_999), Some(Unit::BitsPerSecond), Lang::En);
        assert_eq!((a.as_str(), b.as_str()), ("9,410,000,000 bit/s", "9,409,999,999 bit/s"));
    }

    #[test]
    fn a_column_tells_its_unit_by_its_ending() {
        assert_eq!(Unit::of_column("rtt_ns"), Some(Unit::Nanoseconds));
        assert_eq!(Unit::of_column("client_bytes"), Some(Unit::Bytes));
        assert_eq!(Unit::of_column("client_packets"), None);
        assert_eq!(Unit::of_column("mss"), None);
    }
}
