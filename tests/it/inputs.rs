//! One input: what it may be, however it is packed, wherever it was cut, and what is said of everything that is no capture.

use std::io::Write;
use std::path::Path;

use wirelab::capture::LooksLike;
use wirelab::{Error, Input, Lang, Options, TableId};

use crate::support::cells::{ints, texts};
use crate::support::generate::{self, pcap, pcapng, traffic};
use crate::support::{Scratch, TableBatches, all_tables, assert_same_tables, nameless_tables, sample, with_threads};

#[test]
fn what_is_no_capture_is_one_clear_error() {
    let scratch = Scratch::new("no-capture");
    let gzip = |bytes: &[u8]| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    };
    let tcpdump = b"12:00:00.000000 IP 10.0.0.1.80 > 10.0.0.2.4242: Flags [S], seq 1, win 64240, length 0\n".as_slice();
    let zip = b"PK\x03\x04\x14\0\0\0\0\0".as_slice();
    let gzip_of_text = gzip(b"no capture, but text\n");
    let gzip_of_gzip = gzip(&gzip(&pcap(&traffic(3, 1))));
    let cases = [
        ("empty.pcap", b"".as_slice(), LooksLike::Empty),
        ("notes.pcap", b"Dear teacher,\nmy dog ate the capture.\n", LooksLike::Text),
        ("page.pcap", b"<!DOCTYPE html><html><body>404</body></html>", LooksLike::Html),
        ("printed.pcap", tcpdump, LooksLike::TcpdumpText),
        ("packed.pcap", zip, LooksLike::Zip),
        ("text.pcap.gz", &gzip_of_text, LooksLike::CompressedText),
        ("twice.pcap.gz", &gzip_of_gzip, LooksLike::CompressedTwice),
        ("noise.pcap", &[0x00, 0x9c, 0xff, 0x81, 0x00, 0x00, 0xfe, 0x02], LooksLike::Unknown),
    ];
    for (name, bytes, expected) in cases {
        let path = scratch.write(name, bytes);
        let error = wirelab::open([path.as_path()], &Options::default()).unwrap_err();
        match &error {
            Error::NotACapture { path: named, looks_like } => {
                assert_eq!((named, *looks_like), (&path, expected), "{name}")
            }
            other => panic!("{name}: {other:?}"),
        }
        for lang in [Lang::En, Lang::Zh] {
            let message = error.message(lang);
            assert!(message.contains(name), "{name}: {message}");
            assert!(!message.contains('\n') && !message.contains('{'), "{name}: {message}");
        }
    }
}

#[test]
fn a_directory_and_a_missing_file_are_named() {
    let scratch = Scratch::new("no-file");
    let error = wirelab::open([scratch.path()], &Options::default()).unwrap_err();
    assert!(matches!(&error, Error::Io { path, .. } if path == scratch.path()), "{error:?}");
    assert!(error.to_string().contains(&scratch.path().display().to_string()), "{error}");
    let missing = scratch.path().join("missing.pcap");
    let error = wirelab::open([missing.as_path()], &Options::default()).unwrap_err();
    assert!(matches!(&error, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound), "{error:?}");
    assert!(error.to_string().contains("missing.pcap"), "{error}");
    let none: [&Path; 0] = [];
    assert!(matches!(wirelab::open(none, &Options::default()), Err(Error::Usage(_))));
    // One wrong file among good ones is named at once.
    let good = sample("ping-delay/ping-delay.pcap");
    let error = wirelab::open([good.as_path(), missing.as_path()], &Options::default()).unwrap_err();
    assert!(error.to_string().contains("missing.pcap"), "{error}");
}

#[test]
fn a_pcap_file_cut_anywhere_keeps_its_whole_records() {
    let file = std::fs::read(sample("ping-delay/ping-delay.pcap")).unwrap();
    let mut ends = vec![24];
    while ends[ends.len() - 1] < file.len() {
        let at = ends[ends.len() - 1];
        let captured = u32::from_le_bytes(file[at + 8..at + 12].try_into().unwrap()) as usize;
        ends.push(at + 16 + captured);
    }
    assert_eq!((ends.len() - 1, ends[ends.len() - 1]), (24, file.len()));
    cut_at(&file, 24, |cut| {
        let whole = ends.iter().rposition(|end| *end <= cut).unwrap();
        (whole, ends[whole] == cut)
    });
}

#[test]
fn a_pcapng_file_cut_anywhere_keeps_its_whole_records() {
    let packets: Vec<_> = traffic(200, 21).into_iter().filter(|packet| packet.bytes.len() < 100).take(15).collect();
    let file = pcapng(&packets, "e0");
    let (mut ends, mut frames_at) = (vec![0], vec![0]);
    while ends[ends.len() - 1] < file.len() {
        let at = ends[ends.len() - 1];
        let total = u32::from_le_bytes(file[at + 4..at + 8].try_into().unwrap()) as usize;
        frames_at.push(frames_at[frames_at.len() - 1] + usize::from(file[at] == 6));
        ends.push(at + total);
    }
    assert_eq!(frames_at[frames_at.len() - 1], 15);
    cut_at(&file, 28, |cut| {
        let whole = ends.iter().rposition(|end| *end <= cut).unwrap();
        (frames_at[whole], ends[whole] == cut)
    });
}

/// Opens every beginning of a file. `whole` says how many frames are whole in it, and whether the cut is between records.
fn cut_at(file: &[u8], header_bytes: usize, whole: impl Fn(usize) -> (usize, bool)) {
    let full = all_tables(vec![Input::from(file.to_vec())], &with_threads(1)).unwrap();
    let all_times = ints(&full[0].batches, "time");
    for cut in 0..=file.len() {
        let tables = match all_tables(vec![Input::from(file[..cut].to_vec())], &with_threads(1)) {
            Ok(tables) => tables,
            Err(error) => {
                assert!(matches!(error, Error::NotACapture { .. }), "cut at {cut}: {error:?}");
                assert!(cut < header_bytes, "cut at {cut}: {error}");
                continue;
            }
        };
        assert!(cut >= header_bytes, "cut at {cut}: a cut header was taken for a capture");
        let (frames, is_between) = whole(cut);
        assert_eq!(tables[0].num_rows(), frames, "cut at {cut}");
        let times = if frames == 0 { Vec::new() } else { ints(&tables[0].batches, "time") };
        assert_eq!(times, all_times[..frames], "cut at {cut}");
        let codes = findings(&tables);
        assert_eq!(codes.iter().any(|code| code == "cut_file"), !is_between, "cut at {cut}: {codes:?}");
        assert_eq!(codes.iter().any(|code| code == "no_frames"), frames == 0, "cut at {cut}: {codes:?}");
    }
}

fn findings(tables: &[TableBatches]) -> Vec<String> {
    let quality = tables.iter().find(|table| table.table == TableId::CaptureQuality).unwrap();
    if quality.batches.is_empty() { Vec::new() } else { texts(&quality.batches, "code") }
}

#[test]
fn bytes_and_readers_give_what_the_file_gives() {
    for path in [sample("tcp-loss/tcp-loss.h1.pcap"), sample("any-interface/any-interface.sll2.pcap")] {
        let file = std::fs::read(&path).unwrap();
        let from_file = nameless_tables(vec![Input::Path(path.clone())]).unwrap();
        assert!(from_file[0].num_rows() > 500);
        let from_bytes = nameless_tables(vec![Input::from(file.clone())]).unwrap();
        assert_same_tables(&from_bytes, &from_file, "bytes");
        for step in [1, 7, 4_096] {
            let reader = Trickle { bytes: file.clone(), at: 0, step };
            let from_reader = nameless_tables(vec![Input::Reader(Box::new(reader), "trickle".to_owned())]).unwrap();
            assert_same_tables(&from_reader, &from_file, &format!("reader of {step} bytes at a time"));
        }
        // An opened capture keeps what can be read only once, and gives its tables as often as they are asked for.
        let reader = Trickle { bytes: file, at: 0, step: 999 };
        let capture = wirelab::open([Input::Reader(Box::new(reader), "trickle".to_owned())], &with_threads(1)).unwrap();
        for table in [TableId::Packets, TableId::Flows] {
            let same = from_file.iter().find(|other| other.table == table).unwrap();
            assert_eq!(capture.table(table).unwrap().num_rows(), same.num_rows());
        }
    }
}

#[test]
fn compression_is_told_by_content_and_changes_no_row() {
    let scratch = Scratch::new("compressed");
    let file = pcap(&traffic(30_000, 22));
    let plain = nameless_tables(vec![Input::Path(scratch.write("plain.bin", &file))]).unwrap();
    assert_eq!(plain[0].num_rows(), 30_000);
    for (name, compress) in COMPRESSIONS {
        let compressed = compress(&file);
        assert!(compressed.len() < file.len());
        // No name says what it is, and two streams one after the other are one content, as the tools have it.
        let half = file.len() / 2;
        let joined = [compress(&file[..half]), compress(&file[half..])].concat();
        for (what, bytes) in [("whole", compressed), ("joined", joined)] {
            let path = scratch.write(&format!("{what}.{name}.data"), &bytes);
            let capture = wirelab::open([path.as_path()], &with_threads(1)).unwrap();
            assert_eq!(capture.files().unwrap()[0].compression, Some(name));
            let tables = nameless_tables(vec![Input::Path(path)]).unwrap();
            assert_same_tables(&tables, &plain, &format!("{name}, {what}"));
        }
    }
}

#[test]
fn a_cut_compressed_file_keeps_its_rows_and_says_so() {
    let file = pcap(&traffic(30_000, 23));
    for (name, compress) in COMPRESSIONS {
        let compressed = compress(&file);
        for part in [50, 90, 99] {
            let cut = compressed[..compressed.len() * part / 100].to_vec();
            let tables =
                all_tables(vec![Input::from(cut)], &with_threads(1)).unwrap_or_else(|error| panic!("{name}: {error}"));
            let codes = findings(&tables);
            assert!(codes.iter().any(|code| code == "compressed_cut"), "{name}, {part} %: {codes:?}");
            assert!(!codes.iter().any(|code| code == "cut_file"), "{name}, {part} %: one finding says it: {codes:?}");
            let rows = tables[0].num_rows();
            assert!(rows < 30_000, "{name}, {part} %: {rows} rows");
            // Compressors work in blocks, the last of which is lost; the rest is not.
            let least = 30_000 * (part - 25) / 100;
            assert!(rows >= least, "{name}, {part} %: {rows} rows, expected at least {least}");
        }
    }
}

type Compress = fn(&[u8]) -> Vec<u8>;

const COMPRESSIONS: [(&str, Compress); 4] = [
    ("gzip", |bytes| {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }),
    ("zstd", |bytes| zstd::encode_all(bytes, 1).unwrap()),
    ("lz4", |bytes| {
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }),
    ("xz", |bytes| {
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 0);
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }),
];

#[test]
fn a_large_file_gives_what_its_stream_gives() {
    // Files and streams are read through other buffers, with other window borders: the same rows.
    let scratch = Scratch::new("large");
    let mut packets = traffic(40_000, 24);
    for packet in packets.iter_mut().skip(100).step_by(17) {
        packet.bytes = generate::udp([10, 9, 9, 9], [10, 9, 9, 8], (9_999, 5201), 40_000);
    }
    let file = pcap(&packets);
    assert!(file.len() > 80 << 20, "{} bytes", file.len());
    let path = scratch.write("large.pcap", &file);
    let large = nameless_tables(vec![Input::Path(path.clone())]).unwrap();
    let reader = Input::Reader(Box::new(std::fs::File::open(path).unwrap()), "stream".to_owned());
    assert_same_tables(&nameless_tables(vec![reader]).unwrap(), &large, "stream");
    assert_eq!(large[0].num_rows(), 40_000);
}

#[test]
fn comments_and_times_of_a_pcapng_file_are_kept() {
    let packets = traffic(3_000, 25);
    let tables = all_tables(vec![Input::from(pcapng(&packets, "e0"))], &with_threads(2)).unwrap();
    let times: Vec<i128> = packets.iter().map(|packet| i128::from(packet.time_ns)).collect();
    assert_eq!(ints(&tables[0].batches, "time"), times);
    let comments = crate::support::cells::column(&tables[0].batches, "comment");
    for (at, comment) in comments.iter().enumerate() {
        let expected = (at % 10 == 9).then(|| format!("frame {}", at + 1));
        assert_eq!(comment.text(), expected.as_deref(), "frame {}", at + 1);
    }
    // The same packets in a pcap file are the same frames.
    let plain = all_tables(vec![Input::from(pcap(&packets))], &with_threads(2)).unwrap();
    for column in ["frame_no", "time", "src_ip", "payload_bytes", "flow_id"] {
        let both = [&tables, &plain].map(|tables| crate::support::cells::column(&tables[0].batches, column));
        assert_eq!(both[0], both[1], "{column}");
    }
}

/// Gives a few bytes at a time, as a slow pipe does.
struct Trickle {
    bytes: Vec<u8>,
    at: usize,
    step: usize,
}

impl std::io::Read for Trickle {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let given = self.step.min(buffer.len()).min(self.bytes.len() - self.at);
        buffer[..given].copy_from_slice(&self.bytes[self.at..self.at + given]);
        self.at += given;
        Ok(given)
    }
}
