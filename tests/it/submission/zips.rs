//! Zips as Windows, macOS and careless or hostile hands make them. What the zip crate does not write is crafted here.

use std::io::{Cursor, Write};

use wirelab::grade::submission::{FileKind, SubmissionLimits};
use wirelab::logs::LogKind;
use zip::write::SimpleFileOptions;

use super::{capture, findings, kinds, log, names, read, read_bytes, unpacked, zip_of};
use crate::support::Scratch;

/// One stored entry of a crafted zip.
#[derive(Clone)]
pub struct Entry {
    pub name: Vec<u8>,
    pub data: Vec<u8>,
    pub flags: u16,
    pub method: u16,
    pub extra: Vec<u8>,
    /// Unix mode, in the upper half of the external attributes.
    pub mode: u16,
    pub declared_size: Option<u32>,
}

impl Entry {
    pub fn new(name: impl Into<Vec<u8>>, data: &[u8]) -> Self {
        Self {
            name: name.into(),
            data: data.to_vec(),
            flags: 0,
            method: 0,
            extra: Vec::new(),
            mode: 0o100_644,
            declared_size: None,
        }
    }
}

/// A zip written byte by byte: APPNOTE 4.3.
pub fn crafted(entries: &[Entry]) -> Vec<u8> {
    let (mut out, mut directory) = (Vec::new(), Vec::new());
    for entry in entries {
        let offset = out.len() as u32;
        let crc = crc32fast::hash(&entry.data);
        let size = entry.declared_size.unwrap_or(entry.data.len() as u32);
        let common = |into: &mut Vec<u8>| {
            into.extend(20u16.to_le_bytes());
            into.extend(entry.flags.to_le_bytes());
            into.extend(entry.method.to_le_bytes());
            into.extend([0, 0, 0x21, 0x58]);
            into.extend(crc.to_le_bytes());
            into.extend((entry.data.len() as u32).to_le_bytes());
            into.extend(size.to_le_bytes());
            into.extend((entry.name.len() as u16).to_le_bytes());
            into.extend((entry.extra.len() as u16).to_le_bytes());
        };
        out.extend(0x0403_4b50u32.to_le_bytes());
        common(&mut out);
        out.extend(&entry.name);
        out.extend(&entry.extra);
        out.extend(&entry.data);
        directory.extend(0x0201_4b50u32.to_le_bytes());
        // Made by Unix, so that the mode counts.
        directory.extend(0x0314u16.to_le_bytes());
        common(&mut directory);
        directory.extend([0; 6]);
        directory.extend((u32::from(entry.mode) << 16).to_le_bytes());
        directory.extend(offset.to_le_bytes());
        directory.extend(&entry.name);
        directory.extend(&entry.extra);
    }
    let start = out.len() as u32;
    let count = entries.len() as u16;
    out.extend(&directory);
    out.extend(0x0605_4b50u32.to_le_bytes());
    out.extend([0; 4]);
    out.extend(count.to_le_bytes());
    out.extend(count.to_le_bytes());
    out.extend((directory.len() as u32).to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0, 0]);
    out
}

#[test]
fn chinese_names_of_windows_are_read() {
    let (gbk, _, _) = encoding_rs::GBK.encode("实验一/抓包.pcap");
    let submission =
        unpacked("lab.zip", crafted(&[Entry::new(gbk.to_vec(), &capture()), Entry::new("说明.txt", b"hello")]));
    assert_eq!(names(&submission), ["实验一/抓包.pcap", "说明.txt"]);
    assert_eq!(findings(&submission), [("name_encoding", "lab.zip".to_owned())]);
}

#[test]
fn a_unicode_path_beside_the_name_counts() {
    let (gbk, _, _) = encoding_rs::GBK.encode("抓包.pcap");
    let mut entry = Entry::new(gbk.to_vec(), &capture());
    let unicode = "抓包é.pcap".as_bytes();
    entry.extra.extend(0x7075u16.to_le_bytes());
    entry.extra.extend((5 + unicode.len() as u16).to_le_bytes());
    entry.extra.push(1);
    entry.extra.extend(crc32fast::hash(&entry.name).to_le_bytes());
    entry.extra.extend(unicode);
    assert_eq!(names(&unpacked("lab.zip", crafted(&[entry]))), ["抓包é.pcap"]);
}

#[test]
fn names_in_code_page_437_are_read() {
    let submission = unpacked("lab.zip", crafted(&[Entry::new(b"r\x82sum\x82\xff.txt".to_vec(), b"hello")]));
    assert_eq!(names(&submission), ["résumé\u{a0}.txt"]);
}

#[test]
fn files_packed_on_macos_come_without_their_side_files() {
    let zip =
        zip_of(&[("lab/a.pcap", &capture()), ("__MACOSX/lab/._a.pcap", b"\0\x05\x16\x07"), ("lab/.DS_Store", b"x")]);
    let submission = unpacked("lab.zip", zip);
    assert_eq!(names(&submission), ["lab/a.pcap"]);
    assert_eq!(findings(&submission)[0].0, "left_out");
    assert_eq!(submission.findings[0].value, Some(2));
}

#[test]
fn a_zip_that_is_empty_damaged_or_cut_is_named() {
    let codes =
        |bytes: Vec<u8>| findings(&unpacked("lab.zip", bytes)).into_iter().map(|(code, _)| code).collect::<Vec<_>>();
    assert_eq!(codes(crafted(&[])), ["empty_archive", "no_files"]);
    let whole = zip_of(&[("a.pcap", &capture()), ("b.txt", b"hello")]);
    assert_eq!(codes(whole[..whole.len() / 2].to_vec()), ["damaged_archive", "no_files"]);
    // A flipped bit inside the data: the checksum tells.
    let mut flipped = crafted(&[Entry::new("a.txt", b"hello hello"), Entry::new("b.txt", b"world")]);
    flipped[36] ^= 1;
    assert_eq!(codes(flipped.clone()), ["damaged_file"]);
    assert_eq!(names(&unpacked("lab.zip", flipped)), ["b.txt"]);
    let folders = crafted(&[Entry { mode: 0o040_755, ..Entry::new("lab/", b"") }]);
    assert_eq!(codes(folders), ["no_files"]);
}

#[test]
fn an_encrypted_zip_is_named() {
    let submission = unpacked("lab.zip", crafted(&[Entry { flags: 1, ..Entry::new("a.pcap", &capture()) }]));
    assert_eq!(findings(&submission), [("encrypted", "a.pcap".to_owned()), ("no_files", String::new())]);
}

#[test]
fn an_unusual_packing_method_is_named() {
    // 14 is LZMA, 9 is Deflate64.
    for method in [9, 14] {
        let submission = unpacked("lab.zip", crafted(&[Entry { method, ..Entry::new("a.pcap", &capture()) }]));
        assert_eq!(findings(&submission)[0], ("packing_method", "a.pcap".to_owned()));
    }
}

#[test]
fn links_in_a_zip_are_not_followed() {
    let submission = unpacked("lab.zip", crafted(&[Entry { mode: 0o120_777, ..Entry::new("a.pcap", b"/etc/passwd") }]));
    assert_eq!(findings(&submission)[1], ("link", "a.pcap".to_owned()));
    assert!(submission.files.is_empty());
}

#[test]
fn paths_in_a_zip_lead_nowhere() {
    let entries = ["../../etc/a.pcap", "/etc/b.pcap", "C:\\lab\\c.pcap", "CON.pcap", "..\\d.pcap"];
    let entries: Vec<_> = entries.iter().map(|name| Entry::new(*name, format!("text {name}").as_bytes())).collect();
    let submission = unpacked("lab.zip", crafted(&entries));
    assert_eq!(names(&submission), ["CON.pcap", "etc/b.pcap", "lab/c.pcap"]);
    let found = findings(&submission);
    for expected in [
        ("climbing_path", "etc/a.pcap"),
        ("climbing_path", "d.pcap"),
        ("absolute_path", "etc/b.pcap"),
        ("absolute_path", "lab/c.pcap"),
        ("device_name", "CON.pcap"),
    ] {
        assert!(found.contains(&(expected.0, expected.1.to_owned())), "{expected:?} in {found:?}");
    }
}

#[test]
fn two_entries_of_one_name_are_both_read() {
    let submission = unpacked("lab.zip", crafted(&[Entry::new("a.txt", b"one"), Entry::new("a.txt", b"two")]));
    assert_eq!(names(&submission), ["a (2).txt", "a.txt"]);
    assert_eq!(findings(&submission), [("duplicate_name", "a.txt".to_owned())]);
}

#[test]
fn a_zip_inside_a_zip_is_opened_once() {
    let inner = zip_of(&[("a.pcap", &capture())]);
    let middle = zip_of(&[("inner.zip", &inner), ("b.pcap", &super::other_capture())]);
    let outer = zip_of(&[("middle.zip", &middle), ("ping.txt", &log("ping_delay.txt"))]);
    let submission = unpacked("lab.zip", outer);
    assert_eq!(names(&submission), ["middle.zip/b.pcap", "middle.zip/inner.zip", "ping.txt"]);
    assert_eq!(kinds(&submission), [FileKind::Capture, FileKind::Archive, FileKind::Log(LogKind::Ping)]);
    assert_eq!(findings(&submission), [("nested_too_deep", "middle.zip/inner.zip".to_owned())]);
}

#[test]
fn a_zip_in_a_folder_is_opened() {
    let scratch = Scratch::new("submission-zip-in-folder");
    scratch.write("lab.zip", &zip_of(&[("a.pcap", &capture())]));
    scratch.write("notes.txt", b"hello");
    let submission = read(scratch.path(), &SubmissionLimits::default()).unwrap();
    assert_eq!(names(&submission), ["lab.zip/a.pcap", "notes.txt"]);
}

fn limited(bytes: Vec<u8>, limits: SubmissionLimits) -> Vec<(&'static str, String)> {
    findings(&read_bytes("lab.zip", bytes.into(), &limits))
}

#[test]
fn size_limits_hold_for_what_really_comes_out() {
    let text = vec![b'a'; 3 << 20];
    let limits = SubmissionLimits { file_bytes: 1 << 20, ..SubmissionLimits::default() };
    assert_eq!(limited(zip_of(&[("a.txt", &text), ("b.txt", b"x")]), limits), [("file_too_large", "a.txt".to_owned())]);
    let limits = SubmissionLimits { unpacked_bytes: 4 << 20, ..SubmissionLimits::default() };
    let files = [("a.txt", &text[..]), ("b.txt", &text[1..]), ("c.txt", b"x")];
    assert_eq!(limited(zip_of(&files), limits), [("too_much", "lab.zip".to_owned())]);
    // The header says 5 bytes.
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    writer.start_file("a.txt", SimpleFileOptions::default()).unwrap();
    writer.write_all(&text).unwrap();
    let mut lying = writer.finish().unwrap().into_inner();
    let real = (text.len() as u32).to_le_bytes();
    let places: Vec<usize> = (0..lying.len() - 4).filter(|at| lying[*at..*at + 4] == real).collect();
    assert!(!places.is_empty());
    for at in places {
        lying[at..at + 4].copy_from_slice(&5u32.to_le_bytes());
    }
    let limits = SubmissionLimits { file_bytes: 1 << 20, ..SubmissionLimits::default() };
    let found = limited(lying, limits);
    assert!(found.iter().any(|(code, _)| ["file_too_large", "damaged_file"].contains(code)), "{found:?}");
}

#[test]
fn a_zip_bomb_is_defused() {
    let zeros = vec![0; 40 << 20];
    let bomb = zip_of(&[("a.pcap", &zeros), ("b.pcap", &zeros[1..]), ("c.pcap", &zeros[2..])]);
    assert!(bomb.len() < 200 << 10, "{}", bomb.len());
    let found = limited(bomb, SubmissionLimits::default());
    assert!(found.contains(&("zip_bomb", "lab.zip".to_owned())), "{found:?}");
}

#[test]
fn the_number_of_entries_is_limited() {
    let entries: Vec<_> =
        (0..50).map(|number| Entry::new(format!("{number:02}.txt"), format!("{number}").as_bytes())).collect();
    let limits = SubmissionLimits { files: 10, ..SubmissionLimits::default() };
    let submission = read_bytes("lab.zip", crafted(&entries).into(), &limits);
    assert_eq!(submission.files.len(), 10);
    assert_eq!((submission.findings[0].code, submission.findings[0].value), ("too_many_files", Some(40)));
    let folders: Vec<_> =
        (0..500).map(|number| Entry { mode: 0o040_755, ..Entry::new(format!("{number}/"), b"") }).collect();
    let submission = read_bytes("lab.zip", crafted(&folders).into(), &limits);
    assert_eq!(submission.findings[0].code, "too_many_files");
}

#[test]
fn findings_without_number_are_cut() {
    let entries: Vec<_> = (0..500).map(|number| Entry::new(format!("../{number}"), b"x")).collect();
    let submission = unpacked("lab.zip", crafted(&entries));
    assert_eq!(submission.findings.len(), 201);
    assert_eq!(submission.findings.last().unwrap().code, "more_findings");
}
