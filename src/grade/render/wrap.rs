//! Text in columns, for screens: Chinese characters take two places.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Places that the text takes on a screen.
pub fn width(text: &str) -> usize {
    text.width()
}

pub fn padded(text: &str, places: usize) -> String {
    format!("{text}{}", " ".repeat(places.saturating_sub(width(text))))
}

/// Control characters, which a submission may bring along, as what they are and not as what they do. Line feeds stay.
pub fn printable(text: &str) -> String {
    let is_sound = |c: char| !c.is_control() && !is_invisible(c);
    if text.chars().all(|c| c == '\n' || is_sound(c)) {
        return text.to_owned();
    }
    text.chars()
        .map(|c| if c == '\n' || is_sound(c) { c.to_string() } else { c.escape_unicode().to_string() })
        .collect()
}

/// Marks that turn the direction of what follows, or have no width: they can make text look like other text.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Lines of at most so many places; breaks at spaces, and between Chinese characters.
pub fn wrapped(text: &str, places: usize) -> Vec<String> {
    text.lines().flat_map(|line| wrapped_line(line, places)).collect()
}

fn wrapped_line(text: &str, places: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = String::new();
    for word in words(text) {
        if !line.is_empty() && width(&line) + width(word.trim_end()) > places {
            lines.push(line.trim_end().to_owned());
            line.clear();
        }
        line.push_str(word);
    }
    if !line.trim_end().is_empty() || lines.is_empty() {
        lines.push(line.trim_end().to_owned());
    }
    lines
}

/// The text in pieces that may stand on lines of their own.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut start = 0;
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        // A line may begin with any wide character but closing punctuation, and end with any but opening punctuation.
        let is_wide = c.width() == Some(2);
        let can_break = before == ' ' || (is_wide || before.width() == Some(2)) && !closes(c) && !opens(before);
        if at > start && can_break {
            words.push(&text[start..at]);
            start = at;
        }
        before = c;
    }
    if start < text.len() {
        words.push(&text[start..]);
    }
    words
}

fn closes(c: char) -> bool {
    "，。、；：？！）」』】》〉”’…%,.;:?!)]}".contains(c)
}

fn opens(c: char) -> bool {
    "（「『【《〈“‘([{".contains(c)
}
