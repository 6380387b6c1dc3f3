//! What a file is, by its content; and what to say where it is not what its name promises.

use std::io::Read;

use super::FileKind;
use super::finding::SubmissionFinding;
use super::names::is_capture_name;
use crate::capture::{Input, LooksLike, Reader};
use crate::error::Error;
use crate::logs::{self, LogKind};
use crate::observe::Observer;
use crate::options::Limits;

/// Bytes that are looked at.
const HEAD_BYTES: usize = 256 << 10;

pub(super) struct Looked {
    pub kind: FileKind,
    pub logs: Vec<LogKind>,
    /// A zip that may be unpacked.
    pub is_zip: bool,
    pub is_compressed: bool,
    pub findings: Vec<SubmissionFinding>,
}

impl Looked {
    fn new(kind: FileKind) -> Self {
        Self { kind, logs: Vec::new(), is_zip: false, is_compressed: false, findings: Vec::new() }
    }

    fn with(kind: FileKind, finding: SubmissionFinding) -> Self {
        Self { findings: vec![finding], ..Self::new(kind) }
    }
}

/// Looks at a file whose name in the submission is `name`.
pub(super) fn look(input: Input, name: &str, observer: &mut dyn Observer) -> Looked {
    let head = head_of(&input);
    match Reader::open(vec![input], &Limits::default()) {
        Ok(reader) => {
            let is_compressed = head.is_ok_and(|head| is_compressed(&head));
            Looked { is_compressed, ..capture(reader, name) }
        }
        Err(Error::NotACapture { looks_like, .. }) => match head {
            Ok(head) => no_capture(looks_like, &head, name, observer),
            Err(error) => unreadable(name, &error),
        },
        Err(Error::Io { source, .. }) => unreadable(name, &source),
        Err(error) => Looked::with(
            FileKind::Other,
            SubmissionFinding::error("unreadable", name).said("reason", |lang| error.message(lang)),
        ),
    }
}

fn unreadable(name: &str, error: &std::io::Error) -> Looked {
    Looked::with(FileKind::Other, SubmissionFinding::error("unreadable", name).detail("reason", error))
}

fn head_of(input: &Input) -> std::io::Result<Vec<u8>> {
    let mut head = Vec::new();
    match input {
        Input::Path(path) => {
            std::fs::File::open(path)?.take(HEAD_BYTES as u64).read_to_end(&mut head)?;
        }
        Input::Bytes(bytes) | Input::NamedBytes(bytes, _) => {
            head.extend_from_slice(bytes.get(..HEAD_BYTES).unwrap_or(bytes));
        }
        Input::Reader(..) => {}
    }
    Ok(head)
}

fn capture(mut reader: Reader, name: &str) -> Looked {
    let mut looked = Looked::new(FileKind::Capture);
    let has_packets = match reader.next_window() {
        Ok(Some(window)) => !window.records.is_empty(),
        Ok(None) => false,
        Err(error) => {
            let finding = SubmissionFinding::error("unreadable", name);
            looked.findings.push(finding.said("reason", |lang| error.message(lang)));
            return looked;
        }
    };
    if !has_packets {
        looked.findings.push(SubmissionFinding::error("no_packets", name));
    }
    if !is_capture_name(name) {
        looked.findings.push(SubmissionFinding::info("renamed_capture", name));
    }
    looked
}

fn no_capture(looks_like: LooksLike, head: &[u8], name: &str, observer: &mut dyn Observer) -> Looked {
    let error = |code| SubmissionFinding::error(code, name);
    let warning = |code| SubmissionFinding::warning(code, name);
    if is_compressed(head) && !matches!(looks_like, LooksLike::CompressedEmpty | LooksLike::CompressedTwice) {
        return match looks_like {
            LooksLike::Tar => Looked::with(FileKind::Archive, error("tar")),
            LooksLike::Text
            | LooksLike::CompressedText
            | LooksLike::Json
            | LooksLike::Html
            | LooksLike::TcpdumpText => Looked::with(FileKind::Other, error("compressed_text")),
            _ => Looked::with(FileKind::Other, no_capture_finding(looks_like, name)),
        };
    }
    match looks_like {
        LooksLike::Empty => Looked::with(FileKind::Other, error("empty_file")),
        LooksLike::Zip if is_document(head) => Looked::with(FileKind::Other, warning("document")),
        LooksLike::Zip => Looked { is_zip: true, ..Looked::new(FileKind::Archive) },
        LooksLike::Rar => Looked::with(FileKind::Archive, error("rar")),
        LooksLike::SevenZip => Looked::with(FileKind::Archive, error("seven_zip")),
        LooksLike::Tar => Looked::with(FileKind::Archive, error("tar")),
        LooksLike::Bzip2 => Looked::with(FileKind::Archive, error("bzip2")),
        LooksLike::Image => Looked::with(FileKind::Other, warning("picture")),
        LooksLike::Pdf => Looked::with(FileKind::Other, warning("document")),
        LooksLike::TcpdumpText => Looked::with(FileKind::Text, error("tcpdump_text")),
        LooksLike::Text | LooksLike::Json | LooksLike::Html => text(looks_like, kinds(head, observer), name),
        // Text in GBK or UTF-16 is no text to the reader of captures.
        LooksLike::Unknown if is_old_document(head) => Looked::with(FileKind::Other, warning("document")),
        LooksLike::Unknown => {
            let found = kinds(head, observer);
            match found.is_empty() && !is_wide_text(head) {
                true => other(looks_like, name),
                false => text(looks_like, found, name),
            }
        }
        _ => other(looks_like, name),
    }
}

/// Nothing that is known.
fn other(looks_like: LooksLike, name: &str) -> Looked {
    let finding = no_capture_finding(looks_like, name);
    // A file of an unknown kind matters only where a capture was meant.
    let is_meant = is_capture_name(name) || !matches!(looks_like, LooksLike::Unknown);
    if is_meant { Looked::with(FileKind::Other, finding) } else { Looked::new(FileKind::Other) }
}

/// The tools whose output it holds; none once the observer asked to stop, which whoever calls knows.
fn kinds(head: &[u8], observer: &mut dyn Observer) -> Vec<LogKind> {
    logs::kinds_observed(head, observer).unwrap_or_default()
}

fn no_capture_finding(looks_like: LooksLike, name: &str) -> SubmissionFinding {
    let finding = SubmissionFinding::error("no_capture", name);
    finding.words("what", looks_like.key()).words("advice", looks_like.advice_key())
}

fn text(looks_like: LooksLike, logs: Vec<LogKind>, name: &str) -> Looked {
    let kind = logs.first().map_or(FileKind::Text, |kind| FileKind::Log(*kind));
    let mut looked = Looked { logs, ..Looked::new(kind) };
    if is_capture_name(name) {
        let looks_like = if looks_like == LooksLike::Unknown { LooksLike::Text } else { looks_like };
        looked.findings.push(no_capture_finding(looks_like, name));
    }
    looked
}

/// Word, Excel and PowerPoint files, and OpenDocument, are zips that begin with these entries.
fn is_document(head: &[u8]) -> bool {
    let first_name = head.get(30..).unwrap_or_default();
    ["[Content_Types].xml", "_rels/", "word/", "xl/", "ppt/", "docProps/", "mimetypeapplication/vnd.oasis"]
        .iter()
        .any(|name| first_name.starts_with(name.as_bytes()))
}

/// Word before 2007, and WPS: an OLE2 container.
fn is_old_document(head: &[u8]) -> bool {
    head.starts_with(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1")
}

fn is_wide_text(head: &[u8]) -> bool {
    if head.starts_with(b"\xff\xfe") || head.starts_with(b"\xfe\xff") {
        return true;
    }
    // GBK: no control characters, and every pair of bytes a character.
    let is_plain = head.iter().all(|byte| *byte >= 0x20 || matches!(byte, b'\t' | b'\n' | b'\r'));
    let (_, had_errors) = encoding_rs::GB18030.decode_without_bom_handling(head);
    is_plain && !had_errors
}

/// gzip, zstd, lz4 and xz, which may be around a capture: what the capture's reader saw is then inside of it.
fn is_compressed(head: &[u8]) -> bool {
    [b"\x1f\x8b".as_slice(), b"\x28\xb5\x2f\xfd", b"\x04\x22\x4d\x18", b"\xfd7zXZ\0"]
        .iter()
        .any(|magic| head.starts_with(magic))
}
