use std::io::Write;

use super::super::testing::{Pcapng, pcap};
use super::*;

struct Outcome {
    frames: Vec<(u64, Option<i64>, Vec<u8>)>,
    comments: Vec<(u64, String)>,
    codes: Vec<&'static str>,
    findings: Vec<Finding>,
}

fn read_with(input: Input, limits: &Limits, share: Share) -> Result<Outcome, Error> {
    let mut reader = SingleReader::open(input, 0, limits, share)?;
    let mut outcome = Outcome { frames: Vec::new(), comments: Vec::new(), codes: Vec::new(), findings: Vec::new() };
    while let Some(window) = reader.next_window()? {
        for record in &window.records {
            outcome.frames.push((record.frame_no, record.time(), window.bytes(record).to_vec()));
        }
        let of = |at: u32| window.records[at as usize].frame_no;
        outcome.comments.extend(window.comments.iter().map(|(at, text)| (of(*at), text.clone())));
    }
    outcome.codes = reader.findings.iter().map(|finding| finding.code).collect();
    outcome.findings = reader.findings;
    Ok(outcome)
}

fn read(bytes: Vec<u8>) -> Outcome {
    read_with(bytes.into(), &Limits::default(), Share::default()).expect("a capture")
}

fn name_of(bytes: Vec<u8>) -> LooksLike {
    match read_with(bytes.into(), &Limits::default(), Share::default()) {
        Err(Error::NotACapture { looks_like, .. }) => looks_like,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was read"),
    }
}

fn frames(count: usize, bytes: usize) -> Vec<u8> {
    let data = vec![7; bytes];
    let list: Vec<(i64, &[u8])> = (0..count).map(|at| (at as i64 * 1_000, data.as_slice())).collect();
    pcap(&list)
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = zstd::Encoder::new(Vec::new(), 1).expect("a level");
    encoder.include_checksum(true).expect("a flag");
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn lz4(bytes: &[u8]) -> Vec<u8> {
    let info = lz4_flex::frame::FrameInfo::new().block_size(lz4_flex::frame::BlockSize::Max64KB).content_checksum(true);
    let mut encoder = lz4_flex::frame::FrameEncoder::with_frame_info(info, Vec::new());
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).expect("memory");
    encoder.finish().expect("memory")
}

type Compressor = fn(&[u8]) -> Vec<u8>;
const COMPRESSORS: [(&str, Compressor); 4] = [("gzip", gzip), ("zstd", zstd), ("lz4", lz4), ("xz", xz)];

/// Bytes that do not compress.
fn noise(count: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..count).map(|_| next()).collect()
}

/// A reader that gives a few bytes at a time and is interrupted in between.
struct Hesitant {
    bytes: io::Cursor<Vec<u8>>,
    turn: u32,
}

impl Read for Hesitant {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.turn += 1;
        if self.turn.is_multiple_of(3) {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let most = buffer.len().min(1_000);
        self.bytes.read(&mut buffer[..most])
    }
}

#[test]
fn whole_files_small_buffers_and_streams_give_the_same_frames() {
    let path = std::env::temp_dir().join(format!("wirelab-buffers-{}.pcap", std::process::id()));
    // Frames of about 20 kB lie across every border between buffers of 64 KiB.
    let data = noise(20_001);
    let list: Vec<(i64, &[u8])> = (0..100).map(|at| (at * 1_000, &data[at as usize..])).collect();
    let bytes = pcap(&list);
    std::fs::write(&path, &bytes).expect("a file");
    let small = Share { buffer_bytes: 64 << 10, ..Share::default() };
    let shares = [Share::default(), small, Share { is_reopened: true, ..small }];
    for share in shares {
        let outcome = read_with(path.as_path().into(), &Limits::default(), share).expect("a capture");
        assert_eq!(outcome.frames.len(), 100, "{share:?}");
        for (at, (number, time, bytes)) in outcome.frames.iter().enumerate() {
            assert_eq!((*number, *time), (at as u64 + 1, Some(at as i64 * 1_000)));
            assert_eq!(bytes, &data[at..]);
        }
        assert!(outcome.codes.is_empty());
    }
    let hesitant = Hesitant { bytes: io::Cursor::new(bytes), turn: 0 };
    let input = Input::Reader(Box::new(hesitant), "hesitant".to_owned());
    let outcome = read_with(input, &Limits::default(), small).expect("a capture");
    assert_eq!((outcome.frames.len(), &outcome.frames[99].2[..]), (100, &data[99..]));
    std::fs::remove_file(&path).expect("our own file");
}

#[test]
fn a_file_that_is_cut_meanwhile_keeps_what_was_read() {
    let path = std::env::temp_dir().join(format!("wirelab-cut-{}.pcap", std::process::id()));
    std::fs::write(&path, frames(1_000, 1_000)).expect("a file");
    let share = Share { buffer_bytes: 64 << 10, ..Share::default() };
    let mut reader = SingleReader::open(path.as_path().into(), 0, &Limits::default(), share).expect("a capture");
    let first = reader.next_window().expect("no error").expect("a window").records.len();
    std::fs::OpenOptions::new().write(true).open(&path).and_then(|file| file.set_len(200_000)).expect("it is cut");
    let mut count = first;
    while let Some(window) = reader.next_window().expect("no error") {
        count += window.records.len();
    }
    assert_eq!(count, (200_000 - 24) / 1_016);
    assert_eq!(reader.findings.iter().map(|finding| finding.code).collect::<Vec<_>>(), ["file_shortened"]);
    std::fs::remove_file(&path).expect("our own file");
}

#[test]
fn every_compression_is_known_by_content_and_joined_streams_are_read_on() {
    let (first, second) = (frames(3, 500), frames(5, 500)[24..].to_vec());
    for (name, compress) in COMPRESSORS {
        let mut bytes = compress(&first);
        bytes.extend(compress(&second));
        let mut reader = SingleReader::open(bytes.into(), 0, &Limits::default(), Share::default()).expect("a capture");
        assert_eq!(reader.facts.compression, Some(name));
        let mut count = 0;
        while let Some(window) = reader.next_window().expect("no error") {
            count += window.records.len();
        }
        assert_eq!((count, reader.findings.len()), (8, 0), "{name}: {:?}", reader.findings);
    }
}

#[test]
fn compressed_data_that_is_cut_or_damaged_keeps_the_frames_before_and_says_so() {
    // Noise, so that neither cut nor flipped bits are lost in one block.
    let data = noise(500_000);
    let list: Vec<(i64, &[u8])> = data.chunks(1_000).map(|chunk| (1, chunk)).collect();
    let whole = pcap(&list);
    for (name, compress) in COMPRESSORS {
        let bytes = compress(&whole);
        let outcome = read(bytes[..bytes.len() - 5_000].to_vec());
        assert!((1..500).contains(&outcome.frames.len()), "{name}: {}", outcome.frames.len());
        assert_eq!(outcome.codes, ["compressed_cut"], "{name}: {:?}", outcome.findings);
        let mut bytes = compress(&whole);
        let at = bytes.len() - 3_000;
        bytes[at] ^= 0x10;
        let outcome = read(bytes);
        assert_eq!(outcome.codes, ["compressed_damaged"], "{name}: {:?}", outcome.findings);
        assert!(!outcome.frames.is_empty(), "{name}");
        // No frame of what was read may differ from the original.
        let sure = outcome.frames.len().saturating_sub(100);
        assert!(outcome.frames[..sure].iter().zip(&list).all(|(read, (_, whole))| read.2 == *whole), "{name}");
    }
}

#[test]
fn a_bomb_stops_at_the_limit() {
    let limits = Limits { decompress_ratio: 10, decompress_free_bytes: 1 << 20, ..Limits::default() };
    let bytes = vec![0; 200_000];
    let list: Vec<(i64, &[u8])> = (0..100).map(|_| (1, bytes.as_slice())).collect();
    for (name, compress) in COMPRESSORS {
        let bytes = compress(&pcap(&list));
        let outcome = read_with(bytes.into(), &limits, Share::default()).expect("a capture");
        assert!((1..100).contains(&outcome.frames.len()), "{name}: {}", outcome.frames.len());
        assert_eq!(outcome.codes, ["compressed_limit"], "{name}");
    }
}

#[test]
fn what_is_inside_a_compressed_file_is_named() {
    assert_eq!(name_of(gzip(b"hello, this is my homework")), LooksLike::CompressedText);
    assert_eq!(name_of(gzip(b"12:00:01.000001 IP 10.0.0.1.80 > 10.0.0.2.9: Flags [S]\n")), LooksLike::TcpdumpText);
    assert_eq!(name_of(zstd(&gzip(&frames(1, 5)))), LooksLike::CompressedTwice);
    assert_eq!(name_of(gzip(b"snoop\0\0\0\0\0\0\x02")), LooksLike::Snoop);
    assert_eq!(name_of(xz(b"")), LooksLike::CompressedEmpty);
    assert_eq!(name_of(gzip(&frames(1, 5)[..20])), LooksLike::CompressedEmpty);
    assert_eq!(name_of(lz4(&[0x80, 0xff, 1, 2])), LooksLike::CompressedOther);
}

#[test]
fn a_file_that_ends_within_a_record_says_where() {
    let whole = frames(3, 100);
    let outcome = read(whole[..whole.len() - 10].to_vec());
    assert_eq!((outcome.frames.len(), &outcome.codes[..]), (2, &["cut_file"][..]));
    let finding = &outcome.findings[0];
    assert_eq!(finding.value, Some(106));
    assert!(finding.details.contains(&("offset", (24 + 2 * 116).to_string())));
}

#[test]
fn damage_says_where_and_what_was_lost() {
    let mut bytes = frames(3, 100);
    let second = 24 + 116;
    bytes[second + 11] = 0xff;
    let outcome = read(bytes);
    assert_eq!((outcome.frames.len(), &outcome.codes[..]), (1, &["damaged_file"][..]));
    assert_eq!(outcome.findings[0].value, Some(second as i64));
    assert!(outcome.findings[0].details.contains(&("lost", "232".to_owned())));
}

#[test]
fn windows_are_bounded_and_comments_follow_their_frames() {
    let mut file = Pcapng::new(false);
    file.interface(1, 0, &[]);
    for at in 0..40_000_u64 {
        let text = format!("comment {at}");
        let options: &[(u16, &[u8])] = if at % 1_000 == 999 { &[(1, text.as_bytes()), (1, b"more")] } else { &[] };
        file.packet(0, at, b"x", options);
    }
    let outcome = read(file.bytes);
    assert_eq!(outcome.frames.len(), 40_000);
    assert_eq!(outcome.comments.len(), 80);
    for pair in outcome.comments.chunks(2) {
        assert_eq!(pair[0].1, format!("comment {}", pair[0].0 - 1));
        assert_eq!(pair[1], (pair[0].0, "more".to_owned()));
    }
}

#[test]
fn long_stretches_without_frames_still_come_back_to_the_caller() {
    let mut file = Pcapng::new(false);
    file.interface(1, 0, &[]);
    for _ in 0..40 {
        file.block(0x7777, &vec![0; 1 << 16]);
    }
    file.packet(0, 1, b"x", &[]);
    let share = Share { buffer_bytes: 64 << 10, ..Share::default() };
    let mut reader = SingleReader::open(file.bytes.into(), 0, &Limits::default(), share).expect("a capture");
    let mut windows = 0;
    while let Some(window) = reader.next_window().expect("no error") {
        windows += 1;
        assert!(window.records.len() < 2);
    }
    assert!(windows > 10);
    assert_eq!(reader.facts.frames, 1);
}

#[test]
fn an_error_of_the_disk_ends_the_file_and_one_of_the_caller_goes_back() {
    struct Broken(io::Cursor<Vec<u8>>);
    impl Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.read(buffer)? {
                0 => Err(io::Error::other("the caller's own")),
                read => Ok(read),
            }
        }
    }
    // More than the head, so that the error comes while reading.
    let broken = Broken(io::Cursor::new(frames(200, 1_000)));
    let input = Input::Reader(Box::new(broken), "broken".to_owned());
    let error = read_with(input, &Limits::default(), Share::default()).err().expect("an error");
    assert!(matches!(error, Error::Io { .. }), "{error}");
}

#[test]
fn every_truncation_of_a_small_file_keeps_its_whole_frames() {
    let whole = frames(3, 10);
    for length in 24..whole.len() {
        let outcome = read(whole[..length].to_vec());
        let complete = (length - 24) / 26;
        assert_eq!(outcome.frames.len(), complete);
        let is_cut = (length - 24) % 26 != 0;
        assert_eq!(outcome.codes.contains(&"cut_file"), is_cut, "{length}");
    }
}
