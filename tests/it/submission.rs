//! Submissions: what students really hand in, and what nobody should.

mod assigning;
mod hostile;
mod zips;

use std::io::{Cursor, Write};
use std::path::Path;
use std::sync::Arc;

use wirelab::grade::submission::{self, FileKind, Submission, SubmissionLimits, children, left_out, may_be_class};
use wirelab::logs::LogKind;
use wirelab::{Error, Lang, Unobserved};
use zip::write::SimpleFileOptions;

use crate::support::{Scratch, crate_root, sample};

/// A small capture with packets.
pub fn capture() -> Vec<u8> {
    std::fs::read(sample("ping-delay/ping-delay.pcap")).unwrap()
}

/// Another one.
pub fn other_capture() -> Vec<u8> {
    std::fs::read(sample("path-mtu-black-hole/black-hole.h1.pcap")).unwrap()
}

pub fn log(name: &str) -> Vec<u8> {
    std::fs::read(crate_root().join("tests/data/logs").join(name)).unwrap()
}

pub fn zip_of(files: &[(&str, &[u8])]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        writer.start_file(*name, SimpleFileOptions::default()).unwrap();
        writer.write_all(bytes).unwrap();
    }
    writer.finish().unwrap().into_inner()
}

pub fn read(path: &Path, limits: &SubmissionLimits) -> Result<Submission, Error> {
    submission::read(path, limits, &mut Unobserved)
}

pub fn read_bytes(name: &str, bytes: Arc<[u8]>, limits: &SubmissionLimits) -> Submission {
    submission::read_bytes(name, bytes, limits, &mut Unobserved).unwrap()
}

pub fn unpacked(name: &str, bytes: Vec<u8>) -> Submission {
    read_bytes(name, bytes.into(), &SubmissionLimits::default())
}

/// The codes and files of all findings. Each must be sayable in both languages.
pub fn findings(submission: &Submission) -> Vec<(&'static str, String)> {
    for finding in &submission.findings {
        for lang in [Lang::En, Lang::Zh] {
            let message = finding.message(lang);
            assert!(!message.contains('{') && !message.starts_with("submission."), "{message}");
        }
    }
    submission.findings.iter().map(|finding| (finding.code, finding.file.clone())).collect()
}

pub fn names(submission: &Submission) -> Vec<&str> {
    submission.files.iter().map(|file| file.name.as_str()).collect()
}

pub fn kinds(submission: &Submission) -> Vec<FileKind> {
    submission.files.iter().map(|file| file.kind).collect()
}

/// One file alone: its kind and what is said of it.
fn alone(name: &str, bytes: &[u8]) -> (FileKind, Vec<&'static str>) {
    let submission = unpacked("lab.zip", zip_of(&[(name, bytes), ("answers.txt", b"my answers")]));
    let file = submission.files.iter().find(|file| file.name == name).unwrap_or_else(|| panic!("{name} is gone"));
    (file.kind, findings(&submission).into_iter().map(|(code, _)| code).collect())
}

#[test]
fn a_folder_is_read_with_names_sizes_hashes_and_kinds() {
    let scratch = Scratch::new("submission-folder");
    let root = scratch.path().join("li-lei");
    std::fs::create_dir_all(root.join("logs")).unwrap();
    std::fs::write(root.join("a.pcap"), capture()).unwrap();
    std::fs::write(root.join("logs/iperf3.json"), log("iperf3_tcp_json.client.txt")).unwrap();
    std::fs::write(root.join("logs/ping.txt"), log("ping_delay.txt")).unwrap();
    std::fs::write(root.join("readme.md"), "my answers").unwrap();
    let submission = read(&root, &SubmissionLimits::default()).unwrap();
    assert_eq!(submission.id, "li-lei");
    assert_eq!(names(&submission), ["a.pcap", "logs/iperf3.json", "logs/ping.txt", "readme.md"]);
    let log = FileKind::Log;
    assert_eq!(kinds(&submission), [FileKind::Capture, log(LogKind::Iperf3), log(LogKind::Ping), FileKind::Text]);
    assert_eq!(findings(&submission), []);
    let first = &submission.files[0];
    assert_eq!((first.size, first.sha256.len()), (capture().len() as u64, 64));
    assert_eq!(first.base_name(), "a.pcap");
    // A capture of a folder stays where it is.
    let opened = wirelab::open([first.input()], &wirelab::Options::default()).unwrap();
    assert_eq!(opened.table(wirelab::TableId::Probes).unwrap().num_rows(), 12);
    assert_eq!(submission.files[2].bytes().unwrap()[..], log_bytes("ping_delay.txt")[..]);
}

fn log_bytes(name: &str) -> Vec<u8> {
    log(name)
}

#[test]
fn a_zip_holds_the_same_as_the_folder() {
    let zip = zip_of(&[("lab/a.pcap", &capture()), ("lab/ping.txt", &log("ping_delay.txt"))]);
    let submission = unpacked("li-lei.zip", zip);
    assert_eq!(submission.id, "li-lei");
    assert_eq!(names(&submission), ["lab/a.pcap", "lab/ping.txt"]);
    assert_eq!(findings(&submission), []);
    let opened = wirelab::open([submission.files[0].input()], &wirelab::Options::default()).unwrap();
    assert_eq!(opened.table(wirelab::TableId::Probes).unwrap().num_rows(), 12);
    // The hash is that of the content: sha256sum sample-captures/ping-delay/ping-delay.pcap
    let scratch = Scratch::new("submission-single");
    let single = read(&scratch.write("a.pcap", &capture()), &SubmissionLimits::default()).unwrap();
    assert_eq!(single.id, "a");
    assert_eq!(single.files[0].sha256, submission.files[0].sha256);
}

#[test]
fn a_path_that_is_not_there_is_an_error() {
    assert!(read(Path::new("/no/such/place"), &SubmissionLimits::default()).is_err());
}

#[test]
fn an_empty_file_and_a_capture_without_packets_are_named() {
    assert_eq!(alone("a.pcap", b""), (FileKind::Other, vec!["empty_file"]));
    assert_eq!(alone("a.pcap", &capture()[..24]), (FileKind::Capture, vec!["no_packets"]));
    assert_eq!(alone("a.pcap", &capture()[..10]), (FileKind::Other, vec!["no_capture"]));
}

#[test]
fn a_capture_under_another_name_is_read_all_the_same() {
    assert_eq!(alone("a.txt", &capture()), (FileKind::Capture, vec!["renamed_capture"]));
    assert_eq!(alone("capture", &capture()), (FileKind::Capture, vec!["renamed_capture"]));
    assert_eq!(alone("a.cap", &capture()), (FileKind::Capture, vec![]));
}

#[test]
fn what_tcpdump_printed_is_no_capture() {
    let text = b"12:00:01.000001 IP 10.0.0.1.80 > 10.0.0.2.9: Flags [S], seq 1, win 64240, length 0\n";
    assert_eq!(alone("a.pcap", text), (FileKind::Text, vec!["tcpdump_text"]));
    assert_eq!(alone("a.pcap", b"hello"), (FileKind::Text, vec!["no_capture"]));
    assert_eq!(alone("a.pcap", &log("ping_delay.txt")), (FileKind::Log(LogKind::Ping), vec!["no_capture"]));
}

#[test]
fn pictures_and_documents_are_named() {
    assert_eq!(alone("a.png", b"\x89PNG\r\n\x1a\n....."), (FileKind::Other, vec!["picture"]));
    assert_eq!(alone("a.pcap", b"\xff\xd8\xff\xe0....."), (FileKind::Other, vec!["picture"]));
    assert_eq!(alone("a.pdf", b"%PDF-1.7 ....."), (FileKind::Other, vec!["document"]));
    let docx = zip_of(&[("[Content_Types].xml", b"<Types/>"), ("word/document.xml", b"<w/>")]);
    assert_eq!(alone("report.docx", &docx), (FileKind::Other, vec!["document"]));
    assert_eq!(alone("report.doc", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1\0\0\0\0"), (FileKind::Other, vec!["document"]));
}

#[test]
fn archives_that_are_not_opened_say_what_to_do_instead() {
    assert_eq!(alone("a.rar", b"Rar!\x1a\x07\x01\0...."), (FileKind::Archive, vec!["rar"]));
    assert_eq!(alone("a.7z", b"7z\xbc\xaf\x27\x1c\0\x04...."), (FileKind::Archive, vec!["seven_zip"]));
    let mut tar = vec![0; 1024];
    tar[..6].copy_from_slice(b"a.pcap");
    tar[257..262].copy_from_slice(b"ustar");
    assert_eq!(alone("a.tar", &tar), (FileKind::Archive, vec!["tar"]));
    assert_eq!(alone("a.tar.gz", &gzip(&tar)), (FileKind::Archive, vec!["tar"]));
    assert_eq!(alone("a.bz2", b"BZh91AY&SY...."), (FileKind::Archive, vec!["bzip2"]));
    assert_eq!(alone("ping.txt.gz", &gzip(&log("ping_delay.txt"))), (FileKind::Other, vec!["compressed_text"]));
    assert_eq!(
        alone("iperf3.json.gz", &gzip(&log("iperf3_tcp_json.client.txt"))),
        (FileKind::Other, vec!["compressed_text"])
    );
    assert_eq!(alone("a.pcap.gz", &gzip(&capture())), (FileKind::Capture, vec![]));
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn other_capture_formats_are_named_with_the_way_to_convert_them() {
    let submission = unpacked("lab.zip", zip_of(&[("a.snoop", b"snoop\0\0\0\0\0\0\x02....")]));
    let message = submission.findings[0].message(Lang::En);
    assert!(message.contains("snoop") && message.contains("editcap"), "{message}");
}

#[test]
fn logs_of_windows_consoles_are_logs() {
    let chinese = "正在 Ping 10.9.2.2 具有 32 字节的数据:\r\n来自 10.9.2.2 的回复: 字节=32 时间=3ms TTL=62\r\n";
    let (gbk, _, _) = encoding_rs::GBK.encode(chinese);
    assert_eq!(alone("ping.txt", &gbk), (FileKind::Log(LogKind::Ping), vec![]));
    let (gbk, _, _) = encoding_rs::GBK.encode("这是我的实验报告，丢包率为百分之一。");
    assert_eq!(alone("report.txt", &gbk), (FileKind::Text, vec![]));
    let wide: Vec<u8> = [0xff, 0xfe].into_iter().chain("hello".encode_utf16().flat_map(u16::to_le_bytes)).collect();
    assert_eq!(alone("report.txt", &wide), (FileKind::Text, vec![]));
    assert_eq!(alone("data.bin", &[0, 1, 2, 3, 4, 5]), (FileKind::Other, vec![]));
}

#[test]
fn hidden_files_and_what_systems_leave_behind_are_left_out() {
    let scratch = Scratch::new("submission-junk");
    std::fs::create_dir_all(scratch.path().join("__MACOSX")).unwrap();
    scratch.write("a.pcap", &capture());
    for name in [".DS_Store", "Thumbs.db", "desktop.ini", "._a.pcap", "~$report.docx", "__MACOSX/._a.pcap", ".hidden"] {
        scratch.write(name, b"\0\x05\x16\x07");
    }
    let submission = read(scratch.path(), &SubmissionLimits::default()).unwrap();
    assert_eq!(names(&submission), ["a.pcap"]);
    assert_eq!(submission.findings[0].code, "left_out");
    assert_eq!(submission.findings[0].value, Some(7));
}

#[test]
fn an_empty_folder_is_named() {
    let scratch = Scratch::new("submission-empty");
    let submission = read(scratch.path(), &SubmissionLimits::default()).unwrap();
    assert_eq!(findings(&submission), [("no_files", String::new())]);
}

#[cfg(unix)]
#[test]
fn links_and_pipes_are_not_followed() {
    let scratch = Scratch::new("submission-links");
    scratch.write("a.pcap", &capture());
    std::os::unix::fs::symlink("/etc/passwd", scratch.path().join("passwd.txt")).unwrap();
    std::os::unix::fs::symlink(scratch.path(), scratch.path().join("loop")).unwrap();
    let made = std::process::Command::new("mkfifo").arg(scratch.path().join("pipe")).status().unwrap();
    assert!(made.success());
    assert!(read(&scratch.path().join("pipe"), &SubmissionLimits::default()).is_err());
    let submission = read(scratch.path(), &SubmissionLimits::default()).unwrap();
    assert_eq!(names(&submission), ["a.pcap"]);
    let expected = [("link", "loop"), ("link", "passwd.txt"), ("special_file", "pipe")];
    assert_eq!(findings(&submission), expected.map(|(code, file)| (code, file.to_owned())));
}

#[test]
fn folders_have_limits_on_depth_and_number() {
    let scratch = Scratch::new("submission-deep");
    let mut deep = scratch.path().to_path_buf();
    for _ in 0..6 {
        deep.push("d");
    }
    std::fs::create_dir_all(&deep).unwrap();
    std::fs::write(deep.join("a.pcap"), capture()).unwrap();
    for number in 0..5 {
        scratch.write(&format!("{number}.txt"), format!("text {number}").as_bytes());
    }
    let limits = SubmissionLimits { depth: 3, files: 4, ..SubmissionLimits::default() };
    let submission = read(scratch.path(), &limits).unwrap();
    assert_eq!(submission.files.len(), 4);
    let codes: Vec<_> = findings(&submission).into_iter().map(|(code, _)| code).collect();
    assert_eq!(codes, ["folders_too_deep", "too_many_files"]);
    assert_eq!(submission.findings[1].value, Some(1));
}

#[test]
fn the_same_file_twice_counts_once_in_an_archive_with_twin_names() {
    let submission = unpacked("lab.zip", zip_of(&[("A.pcap", &capture()), ("a.pcap", &other_capture())]));
    assert_eq!(names(&submission), ["A.pcap", "a (2).pcap"]);
    assert_eq!(findings(&submission), [("duplicate_name", "a.pcap".to_owned())]);
    let submission = unpacked("lab.zip", zip_of(&[("A.pcap", &capture()), ("a.pcap", &capture())]));
    assert_eq!(names(&submission), ["A.pcap"]);
    assert_eq!(findings(&submission), [("same_file_twice", "a.pcap".to_owned())]);
}

#[test]
fn a_folder_of_a_class_is_listed() {
    let scratch = Scratch::new("submission-class");
    std::fs::create_dir_all(scratch.path().join("zhang-san")).unwrap();
    std::fs::create_dir_all(scratch.path().join("__MACOSX")).unwrap();
    scratch.write("li-si.zip", &zip_of(&[("a.pcap", &capture())]));
    scratch.write(".DS_Store", b"x");
    scratch.write("roster.csv", b"id,name");
    scratch.write("wang-wu.rar", b"Rar!\x1a\x07\x01\0");
    let found = children(scratch.path()).unwrap();
    let names: Vec<_> = found.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(names, ["li-si.zip", "wang-wu.rar", "zhang-san"]);
    std::os::unix::fs::symlink("zhang-san", scratch.path().join("zhao-liu")).unwrap();
    let others = left_out(scratch.path()).unwrap();
    let names: Vec<_> = others.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect();
    assert_eq!(names, ["roster.csv", "zhao-liu"], "told, and not read");
    assert!(may_be_class(scratch.path()));
    scratch.write("zhao-liu.pcap", &capture());
    assert!(!may_be_class(scratch.path()));
    assert!(children(Path::new("/no/such/place")).is_err() && !may_be_class(Path::new("/no/such/place")));
}

#[test]
fn the_same_submission_gives_the_same_findings_in_the_same_order() {
    let zip: Arc<[u8]> = zip_of(&[("b.pcap", b""), ("a.pcap", b""), ("c.rar", b"Rar!"), (".DS_Store", b"")]).into();
    let all = || findings(&read_bytes("lab.zip", zip.clone(), &SubmissionLimits::default()));
    assert_eq!(all(), all());
}
