//! Damaged and malicious inputs: never a panic, never a lost row before the damage, never more than a gigabyte.

use std::io::{Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use wirelab::{Error, Input, ScanRequest, TABLES, TableId};

use crate::memory::measured_alone;
use crate::support::cells::{column, rows_as_text};
use crate::support::generate::{Numbers, START_NS, pcap, pcap_header, pcap_record_header, pcapng, traffic};
use crate::support::{Scratch, process_bytes, tables, with_threads};

/// The most that any input may cost.
const BOUND_BYTES: u64 = 1 << 30;

/// Where each frame of a file ends, and the file.
struct Laid {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Frames start here; before it, the file says how they are to be read.
    first: usize,
}

fn laid_out() -> [Laid; 2] {
    let packets = traffic(24, 7);
    let plain = pcap(&packets);
    let mut ends = Vec::new();
    let mut at = 24;
    for packet in &packets {
        at += 16 + packet.bytes.len();
        ends.push(at);
    }
    assert_eq!(ends.last(), Some(&plain.len()));
    let blocks = pcapng(&packets, "eth0");
    let mut block_ends = Vec::new();
    let (mut at, mut first) = (0, 0);
    while at < blocks.len() {
        let kind = u32::from_le_bytes(blocks[at..at + 4].try_into().unwrap());
        if kind == 6 && first == 0 {
            first = at;
        }
        at += u32::from_le_bytes(blocks[at + 4..at + 8].try_into().unwrap()) as usize;
        if kind == 6 {
            block_ends.push(at);
        }
    }
    [Laid { bytes: plain, ends, first: 24 }, Laid { bytes: blocks, ends: block_ends, first }]
}

/// Every table of hostile bytes; the rows of `packets` as text. `None` where it is no capture.
fn packets_of(bytes: Vec<u8>) -> Option<Vec<String>> {
    match tables(vec![bytes.into()], &with_threads(1), &TABLES.map(ScanRequest::new)) {
        Ok(tables) => Some(rows_as_text(&tables[0].batches)),
        Err(Error::NotACapture { .. } | Error::Io { .. }) => None,
        Err(error) => panic!("{error}"),
    }
}

/// The frames that end before `at` are as in the whole file.
fn assert_kept(laid: &Laid, whole: &[String], damaged: Vec<u8>, at: usize) {
    let kept = laid.ends.iter().filter(|end| **end <= at).count();
    let rows = packets_of(damaged).unwrap_or_default();
    if at >= laid.first {
        assert!(rows.len() >= kept, "damage at {at}: {} rows, {kept} frames before it", rows.len());
        assert_eq!(rows[..kept], whole[..kept], "damage at {at}");
    }
}

#[test]
fn a_cut_at_every_byte_keeps_every_frame_before_it() {
    for laid in laid_out() {
        let whole = packets_of(laid.bytes.clone()).unwrap();
        for length in 0..laid.bytes.len() {
            assert_kept(&laid, &whole, laid.bytes[..length].to_vec(), length);
        }
    }
}

#[test]
fn flipped_bits_keep_every_frame_before_them() {
    let mut dice = Numbers::new(3);
    for laid in laid_out() {
        let whole = packets_of(laid.bytes.clone()).unwrap();
        for _ in 0..3_000 {
            let at = dice.below(laid.bytes.len() as u32) as usize;
            let mut damaged = laid.bytes.clone();
            damaged[at] ^= 1 << dice.below(8);
            assert_kept(&laid, &whole, damaged, at);
        }
    }
}

#[test]
fn bytes_overwritten_in_runs_keep_every_frame_before_them() {
    let mut dice = Numbers::new(4);
    for laid in laid_out() {
        let whole = packets_of(laid.bytes.clone()).unwrap();
        for _ in 0..1_500 {
            let at = dice.below(laid.bytes.len() as u32) as usize;
            let end = (at + 1 + dice.below(64) as usize).min(laid.bytes.len());
            let mut damaged = laid.bytes.clone();
            let fill = [0, 0xff, dice.below(256) as u8][dice.below(3) as usize];
            damaged[at..end].fill(fill);
            assert_kept(&laid, &whole, damaged, at);
        }
    }
}

#[test]
fn records_and_blocks_swapped_repeated_or_left_out_are_read_as_they_come() {
    for laid in laid_out() {
        let mut starts = vec![laid.first];
        starts.extend(&laid.ends[..laid.ends.len() - 1]);
        let record = |at: usize| &laid.bytes[starts[at]..laid.ends[at]];
        let lengths = |rows: Option<Vec<String>>| rows.unwrap().len();
        for at in 0..starts.len() - 1 {
            let swapped = [&laid.bytes[..starts[at]], record(at + 1), record(at), &laid.bytes[laid.ends[at + 1]..]];
            assert_eq!(lengths(packets_of(swapped.concat())), starts.len());
            let repeated = [&laid.bytes[..laid.ends[at]], record(at), record(at), &laid.bytes[laid.ends[at]..]];
            assert_eq!(lengths(packets_of(repeated.concat())), starts.len() + 2);
            let left_out = [&laid.bytes[..starts[at]], &laid.bytes[laid.ends[at]..]];
            assert_eq!(lengths(packets_of(left_out.concat())), starts.len() - 1);
        }
    }
    // The blocks before the frames, too: a second section header forgets the interface.
    let [_, laid] = laid_out();
    let doubled = [&laid.bytes[..laid.first], &laid.bytes[..28], &laid.bytes[laid.first..]].concat();
    let _ = packets_of(doubled);
    let reversed = [&laid.bytes[laid.first..], &laid.bytes[..laid.first]].concat();
    assert!(packets_of(reversed).is_none());
}

#[test]
fn bombs_in_every_compression_stay_below_a_gigabyte() {
    measured_alone("hostile::bombs_in_every_compression_stay_below_a_gigabyte", || {
        // 16 MiB of frames that hold nothing, compressed once and joined until they unpack to 3 GiB.
        let mut part = Vec::new();
        for number in 0..64 {
            part.extend(pcap_record_header(START_NS + number, 262_144));
            part.resize(part.len() + 262_144, 0);
        }
        let joined = |compress: &dyn Fn(&[u8]) -> Vec<u8>| {
            let parts = compress(&part).repeat(192);
            [compress(&pcap_header(1)), parts].concat()
        };
        let gzip = joined(&|bytes| {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        });
        let zstd = joined(&|bytes| zstd::encode_all(bytes, 1).unwrap());
        let lz4 = joined(&|bytes| {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        });
        let xz = joined(&|bytes| {
            let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 0);
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        });
        within_bound(|| {
            for (name, bytes) in [("gzip", gzip), ("zstd", zstd), ("lz4", lz4), ("xz", xz)] {
                // Where the ratio is within what real captures reach, it is read whole.
                let is_over = bytes.len() as u64 * 1_000 < 3 << 30;
                let (rows, codes) = run(vec![bytes.into()]);
                assert_eq!(codes.contains(&"compressed_limit".to_owned()), is_over, "{name}: {codes:?}");
                assert!(rows >= 4_000 && (is_over || rows == 192 * 64), "{name}: {rows}");
            }
        });
    });
}

#[test]
fn windows_that_ask_for_gigabytes_are_refused() {
    measured_alone("hostile::windows_that_ask_for_gigabytes_are_refused", || {
        // A zstd frame with a window of 2 GiB, and an xz block with a dictionary of 1.5 GiB.
        let mut zstd = vec![0x28, 0xb5, 0x2f, 0xfd, 0x00, 21 << 3];
        zstd.extend([0x01, 0x00, 0x00]);
        let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 0);
        encoder.write_all(&pcap(&traffic(10, 1))).unwrap();
        let mut xz = encoder.finish().unwrap();
        let header_bytes = 4 * (usize::from(xz[12]) + 1);
        let dictionary = 12 + 4;
        assert_eq!(xz[dictionary - 2], 0x21, "the LZMA2 filter");
        xz[dictionary] = 37;
        let mut crc = flate2::Crc::new();
        crc.update(&xz[12..12 + header_bytes - 4]);
        let end = 12 + header_bytes;
        xz[end - 4..end].copy_from_slice(&crc.sum().to_le_bytes());
        within_bound(|| {
            for (name, bytes) in [("zstd", zstd), ("xz", xz)] {
                let error = wirelab::open([bytes], &with_threads(1)).expect_err(name);
                assert!(error.to_string().contains("memory"), "{name}: {error}");
            }
        });
    });
}

#[test]
fn floods_of_interfaces_comments_and_options_stay_below_a_gigabyte() {
    measured_alone("hostile::floods_of_interfaces_comments_and_options_stay_below_a_gigabyte", || {
        let section = block(0x0a0d_0d0a, &[&0x1a2b_3c4d_u32.to_le_bytes()[..], &[1, 0, 0, 0], &[0xff; 8]].concat());
        let name = [&[1, 0, 0, 0, 0, 0, 0, 0][..], &option(2, &[b'x'; 60_000])].concat();
        let interface = block(1, &name);
        let packet = |options: &[u8]| {
            let fixed: Vec<u8> = [0_u32, 0, 1, 4, 4].iter().flat_map(|field| field.to_le_bytes()).collect();
            block(6, &[&fixed[..], b"data", options].concat())
        };
        let comment = packet(&option(1, &[b'c'; 60_000]).repeat(4));
        let options = packet(&option(9, b"").repeat(1 << 18));
        within_bound(|| {
            // 100,000 interfaces with long names are 6 GB; without names, 20 million are 400 MB.
            let named = Repeated::new(section.clone(), interface.clone(), 20_000);
            let (rows, _) = run(vec![Input::Reader(Box::new(named), "named".to_owned())]);
            assert_eq!(rows, 0);
            let bare = Repeated::new(section.clone(), block(1, &[1, 0, 0, 0, 0, 0, 0, 0]), 3_000_000);
            let (_, codes) = run(vec![Input::Reader(Box::new(bare), "bare".to_owned())]);
            assert!(codes.contains(&"interface_limit".to_owned()), "{codes:?}");
            let start = [section.clone(), interface].concat();
            let comments = Repeated::new(start.clone(), comment, 6_000);
            let (rows, codes) = run(vec![Input::Reader(Box::new(comments), "comments".to_owned())]);
            assert_eq!((rows, codes.contains(&"comment_limit".to_owned())), (6_000, true), "{codes:?}");
            let (rows, _) =
                run(vec![Input::Reader(Box::new(Repeated::new(start, options, 200)), "options".to_owned())]);
            assert_eq!(rows, 200);
        });
    });
}

#[test]
fn a_merge_of_a_thousand_files_stays_below_a_gigabyte() {
    measured_alone("hostile::a_merge_of_a_thousand_files_stays_below_a_gigabyte", || {
        let scratch = Scratch::new("thousand");
        let mut inputs = Vec::new();
        for host in 0..1_000_i64 {
            let mut bytes = pcap_header(1);
            for number in 0..100_i64 {
                bytes.extend(pcap_record_header(START_NS + host + number * 1_000_000, 1_000));
                bytes.resize(bytes.len() + 1_000, host as u8);
            }
            inputs.push(Input::Path(scratch.write(&format!("h{host}.pcap"), &bytes)));
        }
        within_bound(|| {
            let (rows, _) = run(inputs);
            assert_eq!(rows, 100_000);
        });
    });
}

/// Rows of `packets`, and the codes of the findings.
fn run(inputs: Vec<Input>) -> (usize, Vec<String>) {
    let requests = [
        ScanRequest {
            columns: Some(vec!["frame_no".to_owned(), "comment".to_owned()]),
            ..ScanRequest::new(TableId::Packets)
        },
        ScanRequest::new(TableId::CaptureQuality),
    ];
    let tables = tables(inputs, &with_threads(1), &requests).unwrap();
    let codes = column(&tables[1].batches, "code");
    (tables[0].num_rows(), codes.iter().filter_map(|code| code.text().map(str::to_owned)).collect())
}

/// Runs `work` and holds the anonymous memory that it adds against the bound.
fn within_bound(work: impl FnOnce()) {
    static PEAK: AtomicU64 = AtomicU64::new(0);
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    let before = process_bytes("RssAnon").unwrap();
    let watcher = std::thread::spawn(|| {
        while !IS_OVER.load(Ordering::Relaxed) {
            PEAK.fetch_max(process_bytes("RssAnon").unwrap_or(0), Ordering::Relaxed);
            std::thread::sleep(std::time::Duration::from_millis(3));
        }
    });
    work();
    IS_OVER.store(true, Ordering::Relaxed);
    watcher.join().unwrap();
    let taken = PEAK.load(Ordering::Relaxed).saturating_sub(before);
    println!("anonymous memory: {} MiB beyond the {} MiB before", taken >> 20, before >> 20);
    assert!(taken <= BOUND_BYTES, "{} MiB, allowed are {}", taken >> 20, BOUND_BYTES >> 20);
}

fn block(kind: u32, body: &[u8]) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    let length = 12 + body.len().next_multiple_of(4) as u32;
    bytes.extend(length.to_le_bytes());
    bytes.extend(body);
    bytes.resize(length as usize - 4, 0);
    bytes.extend(length.to_le_bytes());
    bytes
}

fn option(code: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = [code.to_le_bytes(), (value.len() as u16).to_le_bytes()].concat();
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

/// A start, then one part again and again.
struct Repeated {
    part: Vec<u8>,
    left: usize,
    now: std::io::Cursor<Vec<u8>>,
}

impl Repeated {
    fn new(start: Vec<u8>, part: Vec<u8>, times: usize) -> Self {
        Self { part, left: times, now: std::io::Cursor::new(start) }
    }
}

impl Read for Repeated {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        loop {
            let read = self.now.read(buffer)?;
            if read > 0 || self.left == 0 || buffer.is_empty() {
                return Ok(read);
            }
            self.left -= 1;
            self.now = std::io::Cursor::new(self.part.clone());
        }
    }
}
