//! JSON as tools really print it: with text around it, printed twice, with `-nan` for a number, or cut in the middle.

use serde_json::Value;

use super::reading::{Reading, Stop, line_at};
use crate::capture::Severity;

/// Objects inside each other that are followed.
const MAX_DEPTH: usize = 64;
/// Values of one object that are read; each takes about 32 bytes of memory and more.
const MAX_VALUES: u64 = 2_000_000;

/// A JSON object found in a text.
pub(super) struct Found {
    pub value: Value,
    /// Where it starts and ends, in bytes of the text.
    pub start: usize,
    pub end: usize,
    pub repairs: Repairs,
}

/// What had to be mended for an object to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Repairs {
    /// Numbers that are none (`nan`, `inf`, too large for a float); they are null.
    pub not_a_number: u64,
    /// The text ended inside the object.
    pub is_cut: bool,
    /// What stands at this byte is no JSON; what came before is kept.
    pub broken_at: Option<usize>,
    /// More objects inside each other, or more values, than are read.
    pub is_over_limit: bool,
}

/// Shows the objects of a text that `is_document` holds of, each with its line, and says what had to be mended in them.
pub(super) fn each_object(
    text: &str,
    reading: &mut Reading,
    is_document: impl Fn(&Value) -> bool,
    mut show: impl FnMut(&Found, u64, &mut Reading),
) {
    let mut at = 0;
    while let Some(found) = next_object(text, at) {
        at = found.end;
        if is_document(&found.value) {
            say_repairs(text, &found, reading);
            show(&found, line_at(text, found.start), reading);
        }
    }
}

fn say_repairs(text: &str, found: &Found, reading: &mut Reading) {
    let Repairs { not_a_number, is_cut, broken_at, is_over_limit } = found.repairs;
    let line = |at| Some(line_at(text, at));
    if not_a_number > 0 {
        reading.says("not_a_number", Severity::Info, Some(not_a_number), line(found.start), "");
    }
    if is_cut {
        reading.says("json_cut", Severity::Warning, None, line(text.len()), "");
    }
    if let Some(at) = broken_at {
        reading.says(
            "json_broken",
            Severity::Warning,
            None,
            line(at),
            text.get(at..).unwrap_or("").lines().next().unwrap_or(""),
        );
    }
    if is_over_limit {
        reading.says("json_too_large", Severity::Error, None, line(found.end), "");
    }
}

/// The first object of `text` from byte `from` on; what is wrong in it is mended, and what is missing is left out.
pub(super) fn next_object(text: &str, from: usize) -> Option<Found> {
    let start = start_of_object(text, from)?;
    let mut scan = Scan::new(text, start);
    scan.run();
    if scan.stop.is_set() {
        return None;
    }
    let end = scan.at.max(start + 1);
    let repairs = scan.repairs;
    let value = serde_json::from_str(&scan.finish()).ok()?;
    Some(Found { value, start, end, repairs })
}

/// A brace that is followed by a quotation mark or by its partner: no such thing stands in prose by chance.
fn start_of_object(text: &str, from: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    rest.match_indices('{').map(|(at, _)| from + at).find(|at| {
        let after = text.get(at + 1..).unwrap_or("").trim_start();
        after.starts_with('"') || after.starts_with('}')
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Expect {
    Key,
    Colon,
    Value,
    Comma,
}

/// One pass over the text that writes clean JSON.
struct Scan<'a> {
    text: &'a str,
    at: usize,
    out: String,
    /// Brackets that are open: the closing one of each, and what comes next inside it.
    open: Vec<(char, Expect)>,
    /// Length of `out` after the last whole value. Between two such points no bracket opens or closes, so cutting there and
    /// closing what is open leaves valid JSON.
    whole: usize,
    values: u64,
    repairs: Repairs,
    stop: Stop,
}

impl<'a> Scan<'a> {
    fn new(text: &'a str, start: usize) -> Self {
        let out = String::with_capacity((text.len() - start).min(1 << 12));
        let (repairs, stop) = (Repairs::default(), Stop::of_thread());
        Self { text, at: start, out, open: Vec::new(), whole: 0, values: 0, repairs, stop }
    }

    fn run(&mut self) {
        while let Some(next) = self.text.get(self.at..).and_then(|rest| rest.chars().next()) {
            let went_on = match next {
                c if c.is_whitespace() => {
                    self.at += c.len_utf8();
                    true
                }
                '{' | '[' => self.opens(next),
                '}' | ']' => self.closes(next),
                '"' => self.string(),
                ':' => self.sign(':', Expect::Colon, Expect::Value),
                ',' => {
                    let after =
                        if self.open.last().is_some_and(|top| top.0 == '}') { Expect::Key } else { Expect::Value };
                    self.sign(',', Expect::Comma, after)
                }
                _ => self.token(),
            };
            if self.stop.is_set() {
                return;
            }
            if !went_on {
                if !self.repairs.is_over_limit && !self.repairs.is_cut {
                    self.repairs.broken_at = Some(self.at);
                }
                return;
            }
            if self.open.is_empty() {
                return;
            }
        }
        self.repairs.is_cut = true;
    }

    /// Cuts what is not whole and closes what is open.
    fn finish(mut self) -> String {
        if !self.open.is_empty() {
            self.out.truncate(self.whole);
            while let Some((closing, _)) = self.open.pop() {
                self.out.push(closing);
            }
        }
        self.out
    }

    fn expected(&self) -> Expect {
        self.open.last().map_or(Expect::Value, |top| top.1)
    }

    fn expect(&mut self, what: Expect) {
        if let Some(top) = self.open.last_mut() {
            top.1 = what;
        }
    }

    fn opens(&mut self, bracket: char) -> bool {
        if self.expected() != Expect::Value {
            return false;
        }
        if self.open.len() >= MAX_DEPTH || !self.counts() {
            self.repairs.is_over_limit = true;
            return false;
        }
        self.out.push(bracket);
        self.open.push(if bracket == '{' { ('}', Expect::Key) } else { (']', Expect::Value) });
        self.at += 1;
        self.whole = self.out.len();
        true
    }

    fn closes(&mut self, bracket: char) -> bool {
        let Some(&(closing, expected)) = self.open.last() else { return false };
        let is_after_value = expected == Expect::Comma || self.whole == self.out.len();
        // A comma before the bracket is a slip that harms nothing.
        let is_after_comma = self.out.ends_with(',') && matches!(expected, Expect::Key | Expect::Value);
        if closing != bracket || !(is_after_value || is_after_comma) {
            return false;
        }
        if is_after_comma {
            self.out.truncate(self.whole);
        }
        self.out.push(bracket);
        self.open.pop();
        self.at += 1;
        self.value_ends();
        true
    }

    fn sign(&mut self, sign: char, now: Expect, next: Expect) -> bool {
        if self.expected() != now {
            return false;
        }
        self.out.push(sign);
        self.expect(next);
        self.at += 1;
        true
    }

    fn value_ends(&mut self) {
        self.whole = self.out.len();
        self.expect(Expect::Comma);
    }

    fn counts(&mut self) -> bool {
        self.values += 1;
        self.values <= MAX_VALUES
    }

    fn string(&mut self) -> bool {
        let is_key = match self.expected() {
            Expect::Key => true,
            Expect::Value => false,
            _ => return false,
        };
        if !self.counts() {
            self.repairs.is_over_limit = true;
            return false;
        }
        let body = self.text.get(self.at + 1..).unwrap_or("");
        let mut chars = body.char_indices();
        self.out.push('"');
        while let Some((at, c)) = chars.next() {
            match c {
                '"' => {
                    self.out.push('"');
                    self.at += at + 2;
                    if is_key {
                        self.expect(Expect::Colon);
                    } else {
                        self.value_ends();
                    }
                    return true;
                }
                '\\' => match chars.next() {
                    Some((_, e @ ('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't'))) => self.out.extend(['\\', e]),
                    // Checked and joined when it is needed: no log reader looks at characters given by number.
                    Some((_, 'u')) => self.out.push('\u{fffd}'),
                    Some((_, other)) => {
                        self.out.push_str("\\\\");
                        self.out.push(if other.is_control() { ' ' } else { other });
                    }
                    None => break,
                },
                c if c.is_control() => self.out.push(' '),
                c => self.out.push(c),
            }
        }
        self.at = self.text.len();
        self.repairs.is_cut = true;
        false
    }

    fn token(&mut self) -> bool {
        if self.expected() != Expect::Value {
            return false;
        }
        if !self.counts() {
            self.repairs.is_over_limit = true;
            return false;
        }
        let rest = self.text.get(self.at..).unwrap_or("");
        let ends = |c: char| c.is_whitespace() || matches!(c, ',' | ':' | '{' | '}' | '[' | ']' | '"');
        let Some(length) = rest.find(ends) else {
            // The rest of a number may be missing.
            self.at = self.text.len();
            self.repairs.is_cut = true;
            return false;
        };
        let token = &rest[..length];
        if matches!(token, "true" | "false" | "null") || serde_json::from_str::<serde_json::Number>(token).is_ok() {
            self.out.push_str(token);
        } else {
            match token.parse::<f64>() {
                Ok(number) if number.is_finite() => self.out.push_str(&number.to_string()),
                Ok(_) => {
                    self.repairs.not_a_number += 1;
                    self.out.push_str("null");
                }
                Err(_) if token.trim_start_matches('-').to_ascii_lowercase().starts_with("nan") => {
                    self.repairs.not_a_number += 1;
                    self.out.push_str("null");
                }
                Err(_) => return false,
            }
        }
        self.at += length;
        self.value_ends();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(text: &str) -> (Value, Repairs) {
        let found = next_object(text, 0).expect("an object");
        (found.value, found.repairs)
    }

    #[test]
    fn a_whole_object_comes_out_as_it_is() {
        let text = r#"{"a": [1, -2.5e3, "x\"y", true, null, {"b": {}}], "c": "抓包"}"#;
        assert_eq!(
            read(text),
            (json!({"a": [1, -2500.0, "x\"y", true, null, {"b": {}}], "c": "抓包"}), Repairs::default())
        );
    }

    #[test]
    fn numbers_that_are_none_are_null_and_counted() {
        let (value, repairs) = read(r#"{"a": -nan, "b": nan, "c": inf, "d": 1e999, "e": 2, "f": nan(0x1)}"#);
        assert_eq!(value, json!({"a": null, "b": null, "c": null, "d": null, "e": 2, "f": null}));
        assert_eq!(repairs.not_a_number, 5);
    }

    #[test]
    fn an_object_cut_anywhere_keeps_every_whole_value_before_the_cut() {
        let text = r#"{"start": {"v": "3.12", "n": [1, 22]}, "end": {"bytes": 345}}"#;
        for length in 2..text.len() {
            let found = next_object(&text[..length], 0).unwrap_or_else(|| panic!("{}", &text[..length]));
            assert!(found.repairs.is_cut, "{}", &text[..length]);
            let has_version = found.value.pointer("/start/v") == Some(&json!("3.12"));
            assert_eq!(has_version, length >= r#"{"start": {"v": "3.12""#.len(), "{}", &text[..length]);
            // A number at the cut may lack digits: it is left out, not shortened.
            assert_eq!(found.value.pointer("/end/bytes").is_some(), length > text.len() - 2, "{}", &text[..length]);
        }
    }

    #[test]
    fn text_before_and_after_and_a_second_object_do_not_disturb() {
        let text = "$ iperf3 -J {x}\n{\"a\": 1}\nwarning: done\n{\"a\": 2}";
        let first = next_object(text, 0).unwrap();
        assert_eq!((first.value, &text[first.start..first.end]), (json!({"a": 1}), "{\"a\": 1}"));
        let second = next_object(text, first.end).unwrap();
        assert_eq!((second.value, second.end), (json!({"a": 2}), text.len()));
        assert!(next_object(text, second.end).is_none());
    }

    #[test]
    fn an_object_broken_in_the_middle_ends_there_and_the_next_one_is_found() {
        let text = "{\"a\": {\"b\": 1, \"c\": \niperf3: interrupt\n{\"a\": 2}";
        let first = next_object(text, 0).unwrap();
        assert_eq!(first.value, json!({"a": {"b": 1}}));
        assert!(first.repairs.broken_at.is_some());
        assert_eq!(next_object(text, first.end).unwrap().value, json!({"a": 2}));
    }

    #[test]
    fn slips_of_a_writer_are_mended() {
        assert_eq!(
            read("{\"a\": [1, 2,], \"b\": .5, \"c\": \"x\ty\\q\",}").0,
            json!({"a": [1, 2], "b": 0.5, "c": "x y\\q"})
        );
    }

    #[test]
    fn depth_is_limited_and_said() {
        let text = format!("{{\"a\": {}1{}}}", "[".repeat(5000), "]".repeat(5000));
        let (value, repairs) = read(&text);
        assert!(repairs.is_over_limit && value.get("a").is_some());
    }
}
