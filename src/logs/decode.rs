//! Bytes of a log to text: encodings of Windows consoles, terminal colours, line ends, a limit on size.

use std::borrow::Cow;

use encoding_rs::{Encoding, GB18030, UTF_16BE, UTF_16LE};

use super::MAX_LOG_BYTES;
use super::reading::{Reading, Stop};
use crate::capture::Severity;

/// Most lines that are read.
const MAX_LINES: usize = 2_000_000;

/// The text of a log, with `\n` line ends and without terminal control.
pub(super) fn decode<'a>(bytes: &'a [u8], reading: &mut Reading) -> Cow<'a, str> {
    let kept = bytes.get(..MAX_LOG_BYTES).unwrap_or(bytes);
    if kept.len() < bytes.len() {
        let left_out = (bytes.len() - kept.len()) as u64;
        reading.says("log_too_large", Severity::Error, Some(left_out), None, &(MAX_LOG_BYTES >> 20).to_string());
    }
    let text = to_text(kept, kept.len() < bytes.len(), reading);
    // One by one, since a search for one character is far faster than that for several.
    let is_odd = ['\r', '\u{1b}', '\0', '\u{8}'].into_iter().any(|odd| text.contains(odd));
    let text = if is_odd { Cow::Owned(plain(&text)) } else { text };
    first_lines(text, reading)
}

/// The text up to the limit on lines: each costs time, however short it is.
fn first_lines<'a>(text: Cow<'a, str>, reading: &mut Reading) -> Cow<'a, str> {
    let Some((at, _)) = text.match_indices('\n').nth(MAX_LINES) else { return text };
    let left_out = text.get(at..).unwrap_or("").matches('\n').count() as u64;
    reading.says("line_limit", Severity::Error, Some(left_out), None, &MAX_LINES.to_string());
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.get(..at).unwrap_or(text)),
        Cow::Owned(mut text) => {
            text.truncate(at);
            Cow::Owned(text)
        }
    }
}

fn to_text<'a>(bytes: &'a [u8], is_cut: bool, reading: &mut Reading) -> Cow<'a, str> {
    if let Some((encoding, bom)) = Encoding::for_bom(bytes) {
        let (text, had_errors) = encoding.decode_without_bom_handling(bytes.get(bom..).unwrap_or(bytes));
        return said(text, encoding.name(), had_errors && !is_cut, reading);
    }
    if let Some(encoding) = wide(bytes) {
        let (text, had_errors) = encoding.decode_without_bom_handling(bytes);
        return said(text, encoding.name(), had_errors && !is_cut, reading);
    }
    match std::str::from_utf8(bytes) {
        Ok(text) => Cow::Borrowed(text),
        // The limit, or the end of the file, may have cut a character.
        Err(error) if error.error_len().is_none() => String::from_utf8_lossy(bytes),
        Err(_) => {
            // Chinese Windows consoles write GBK, of which GB18030 is the whole.
            let (text, had_errors) = GB18030.decode_without_bom_handling(bytes);
            if had_errors && !is_cut {
                reading.says("undecodable", Severity::Warning, None, None, "");
                return String::from_utf8_lossy(bytes);
            }
            said(text, "GBK", false, reading)
        }
    }
}

fn said<'a>(text: Cow<'a, str>, encoding: &str, had_errors: bool, reading: &mut Reading) -> Cow<'a, str> {
    if had_errors {
        reading.says("undecodable", Severity::Warning, None, None, encoding);
    } else if encoding != "UTF-8" {
        reading.says("encoding", Severity::Info, None, None, encoding);
    }
    text
}

/// UTF-16 without a mark, as some redirections leave it: every other byte of plain text is zero.
fn wide(bytes: &[u8]) -> Option<&'static Encoding> {
    let head = bytes.get(..1024).unwrap_or(bytes);
    let pairs = (head.len() / 2).max(1);
    let zeros = |odd: usize| head.iter().skip(odd).step_by(2).filter(|byte| **byte == 0).count();
    let (even, odd) = (zeros(0), zeros(1));
    match (head.len() >= 8, even * 10 < pairs, odd * 10 < pairs) {
        (true, true, false) if odd * 2 > pairs => Some(UTF_16LE),
        (true, false, true) if even * 2 > pairs => Some(UTF_16BE),
        _ => None,
    }
}

/// Without escape sequences, zeros and backspaces; `\r\n` and `\r` as `\n`.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let stop = Stop::of_thread();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next().filter(|_| !stop.is_set()) {
        match c {
            '\r' => {
                chars.next_if_eq(&'\n');
                out.push('\n');
            }
            '\0' => {}
            '\u{8}' => {
                if !out.ends_with('\n') {
                    out.pop();
                }
            }
            '\u{1b}' => skip_escape(&mut chars),
            c => out.push(c),
        }
    }
    out
}

/// ECMA-48: `ESC [` parameters and a letter, `ESC ]` up to BEL or `ESC \`, otherwise one character.
fn skip_escape(chars: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match chars.next() {
        Some('[') => {
            while chars.next_if(|c| matches!(c, '\u{20}'..='\u{3f}')).is_some() {}
            chars.next_if(|c| matches!(c, '\u{40}'..='\u{7e}'));
        }
        Some(']') => {
            // A title; it never spans a line.
            while let Some(c) = chars.next_if(|c| *c != '\n') {
                if c == '\u{7}' || (c == '\u{1b}' && chars.next_if_eq(&'\\').is_some()) {
                    break;
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(bytes: &[u8]) -> (String, Vec<&'static str>) {
        let mut reading = Reading::default();
        let text = decode(bytes, &mut reading).into_owned();
        (text, reading.into_findings().iter().map(|finding| finding.code).collect())
    }

    #[test]
    fn every_encoding_of_a_windows_console_is_read() {
        let line = "来自 10.0.0.1 的回复\r\n";
        let plain = "来自 10.0.0.1 的回复\n";
        let wide: Vec<u8> = line.encode_utf16().flat_map(u16::to_le_bytes).collect();
        let wide_be: Vec<u8> = line.encode_utf16().flat_map(u16::to_be_bytes).collect();
        let (gbk, _, _) = encoding_rs::GBK.encode(line);
        assert_eq!(text(line.as_bytes()), (plain.to_owned(), vec![]));
        assert_eq!(text(&[b"\xef\xbb\xbf", line.as_bytes()].concat()), (plain.to_owned(), vec![]));
        assert_eq!(text(&[b"\xff\xfe".as_slice(), &wide].concat()), (plain.to_owned(), vec!["encoding"]));
        assert_eq!(text(&[b"\xfe\xff".as_slice(), &wide_be].concat()), (plain.to_owned(), vec!["encoding"]));
        assert_eq!(text(&gbk), (plain.to_owned(), vec!["encoding"]));
        let ascii: Vec<u8> = "PING 10.0.0.1\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        assert_eq!(text(&ascii), ("PING 10.0.0.1\n".to_owned(), vec!["encoding"]));
    }

    #[test]
    fn bytes_of_no_encoding_are_kept_as_far_as_they_go() {
        let (kept, findings) = text(b"64 bytes from \xff\xff\xff 10.0.0.1\n");
        assert!(kept.starts_with("64 bytes from") && kept.ends_with("10.0.0.1\n"), "{kept:?}");
        assert_eq!(findings, ["undecodable"]);
    }

    #[test]
    fn colours_titles_and_typed_corrections_are_dropped() {
        let session =
            b"\x1b]0;root@h1: ~\x07\x1b[01;32mroot@h1\x1b[0m:~# pinf\x08g 10.0.0.1\r\n\x1b[?2004lPING 10.0.0.1\r\n";
        assert_eq!(text(session).0, "root@h1:~# ping 10.0.0.1\nPING 10.0.0.1\n");
    }

    #[test]
    fn what_is_over_the_limit_is_left_out_and_said() {
        let mut bytes = vec![b'a'; MAX_LOG_BYTES];
        bytes.extend_from_slice(b"tail");
        let mut reading = Reading::default();
        assert_eq!(decode(&bytes, &mut reading).len(), MAX_LOG_BYTES);
        let findings = reading.into_findings();
        assert_eq!((findings[0].code, findings[0].value), ("log_too_large", Some(4)));
    }
}
