//! File names that come from elsewhere: their encoding, what must not be trusted in them, and what nobody meant to hand in.

use std::borrow::Cow;

use encoding_rs::GB18030;

/// Longest name that is kept, in characters.
const MAX_CHARS: usize = 240;

/// What was wrong with a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It starts at the root, or at a drive.
    Absolute,
    /// It climbs out of its folder.
    Climbs,
    /// A part of it is the name of a device on Windows, such as `CON` or `COM1`.
    Device,
}

/// The name of a zip's entry. Without a mark that it is UTF-8, Windows writes it in the encoding of the system: GBK in
/// China; else it is what zip was made for, code page 437, which the caller has at hand.
pub(super) fn decode<'a>(raw: &'a [u8], cp437: impl FnOnce() -> Option<Cow<'a, str>>) -> (Cow<'a, str>, bool) {
    if let Ok(name) = std::str::from_utf8(raw) {
        return (Cow::Borrowed(name), false);
    }
    let (name, had_errors) = GB18030.decode_without_bom_handling(raw);
    if !had_errors {
        return (name, true);
    }
    (cp437().unwrap_or_else(|| String::from_utf8_lossy(raw)), true)
}

/// A relative path with forward slashes, and what had to be taken away for it. The name is only ever shown and compared;
/// nothing is written under it.
pub(super) fn clean(raw: &str) -> (String, Option<Fault>) {
    let path = raw.replace('\\', "/");
    let mut fault = None;
    let mut rest = path.as_str();
    let drive = rest.as_bytes();
    if drive.len() >= 2 && drive[0].is_ascii_alphabetic() && drive[1] == b':' {
        fault = Some(Fault::Absolute);
        rest = &rest[2..];
    }
    if rest.starts_with('/') {
        fault = Some(Fault::Absolute);
    }
    let mut parts = Vec::new();
    for part in rest.split('/') {
        match part {
            "" | "." => {}
            ".." => fault = Some(Fault::Climbs),
            part => {
                if is_device(part) {
                    fault = fault.or(Some(Fault::Device));
                }
                // Control characters, and those that turn the direction of text, make one name look like another.
                let shown: String = part.chars().map(|c| if is_treacherous(c) { '\u{fffd}' } else { c }).collect();
                parts.push(shown);
            }
        }
    }
    let name = parts.join("/");
    let name = match name.char_indices().rev().nth(MAX_CHARS - 1) {
        // The end tells more than the beginning: it holds the file's own name.
        Some((at, _)) => name.get(at..).unwrap_or(&name).trim_start_matches('/').to_owned(),
        None => name,
    };
    (if name.is_empty() { "unnamed".to_owned() } else { name }, fault)
}

fn is_treacherous(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

fn is_device(part: &str) -> bool {
    let stem = part.split('.').next().unwrap_or(part).trim_end().to_ascii_uppercase();
    let numbered = |name: &str| {
        stem.strip_prefix(name).is_some_and(|rest| rest.len() == 1 && rest.bytes().all(|b| (b'1'..=b'9').contains(&b)))
    };
    matches!(stem.as_str(), "CON" | "PRN" | "AUX" | "NUL") || numbered("COM") || numbered("LPT")
}

/// Side files of operating systems and editors, and hidden files: nobody means to hand them in.
pub(super) fn is_junk(name: &str) -> bool {
    name.split('/').any(|part| {
        let lower = part.to_ascii_lowercase();
        part.starts_with('.')
            || part.starts_with("~$")
            || matches!(
                lower.as_str(),
                "__macosx" | "thumbs.db" | "desktop.ini" | "ehthumbs.db" | "__pycache__" | "$recycle.bin"
            )
    })
}

/// A name that a capture would have.
pub(super) fn is_capture_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    let plain = [".gz", ".zst", ".lz4", ".xz"].iter().find_map(|ending| lower.strip_suffix(ending)).unwrap_or(&lower);
    let numbered = plain.trim_end_matches(|c: char| c.is_ascii_digit());
    [".pcap", ".pcapng", ".cap", ".dmp", ".ntar"]
        .iter()
        .any(|ending| plain.ends_with(ending) || numbered.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lose_what_leads_out_of_the_submission() {
        for (raw, expected, fault) in [
            ("a/b.pcap", "a/b.pcap", None),
            ("./a//b.pcap", "a/b.pcap", None),
            ("a\\b.pcap", "a/b.pcap", None),
            ("/etc/passwd", "etc/passwd", Some(Fault::Absolute)),
            ("C:\\Users\\li\\x.pcap", "Users/li/x.pcap", Some(Fault::Absolute)),
            ("../../x.pcap", "x.pcap", Some(Fault::Climbs)),
            ("..\\x.pcap", "x.pcap", Some(Fault::Climbs)),
            ("a/COM1.pcap", "a/COM1.pcap", Some(Fault::Device)),
            ("nul", "nul", Some(Fault::Device)),
            ("console.txt", "console.txt", None),
            ("a\u{202e}pacp.exe", "a\u{fffd}pacp.exe", None),
            ("a\0b", "a\u{fffd}b", None),
            ("///", "unnamed", Some(Fault::Absolute)),
            ("", "unnamed", None),
        ] {
            assert_eq!(clean(raw), (expected.to_owned(), fault), "{raw:?}");
        }
        let long = format!("{}/last.pcap", "x".repeat(5000));
        let (name, _) = clean(&long);
        assert!(name.ends_with("/last.pcap") && name.chars().count() <= MAX_CHARS);
    }

    #[test]
    fn chinese_names_are_read_in_utf8_and_gbk_and_others_in_cp437() {
        let none = || None;
        assert_eq!(decode("抓包.pcap".as_bytes(), none), (Cow::Borrowed("抓包.pcap"), false));
        let (gbk, _, _) = encoding_rs::GBK.encode("实验一/抓包.pcap");
        assert_eq!(decode(&gbk, none), (Cow::Borrowed("实验一/抓包.pcap"), true));
        let (name, is_guessed) = decode(b"r\x82sum\x82.txt\xff", || Some("résumé.txt ".into()));
        assert_eq!((name.as_ref(), is_guessed), ("résumé.txt ", true));
    }

    #[test]
    fn names_of_captures_and_of_junk_are_told() {
        for name in ["a.pcap", "a.PCAPNG", "a.cap", "a.pcap.gz", "ring.pcap12"] {
            assert!(is_capture_name(name), "{name}");
        }
        assert!(!is_capture_name("a.txt") && !is_capture_name("capture"));
        for name in [".DS_Store", "__MACOSX/._a.pcap", "a/._a.pcap", "Thumbs.db", "~$report.docx", ".git/config"] {
            assert!(is_junk(name), "{name}");
        }
        assert!(!is_junk("a/b.pcap"));
    }
}
