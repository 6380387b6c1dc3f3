//! What each stage of a run costs, alone where it can be had alone: `make bench-stages`.
//!
//! Throughput is in frames. Lines of group `run` read and decode as well: what their stage adds is their time less that of
//! `run/read and decode`.

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use criterion::{BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main, measurement::WallTime};
use wirelab::capture::{LinkType, Reader};
use wirelab::scan::MultiScan;
use wirelab::wire::{Chunk, DecodeConfig, decode};
use wirelab::{Checksums, Input, Limits, Options, ScanRequest, TableId, Unobserved};

/// Frames that are decoded before their chunk is emptied, as in a run.
const CHUNK_FRAMES: usize = 2_048;

/// A table and its columns; all of them where none is named.
type Wanted = (TableId, &'static [&'static str]);

/// What a run has to do beyond reading and decoding, stage by stage. Few columns keep the building of rows out.
const STAGES: [(&str, Wanted); 9] = [
    ("flows", (TableId::Flows, &["flow_id"])),
    ("Wireshark's TCP analysis", (TableId::Tcp, &["frame_no"])),
    ("TCP verdicts", (TableId::Tcp, &["verdict"])),
    ("TCP stories", (TableId::TcpEvents, &["kind"])),
    ("RoCE analysis", (TableId::RoceEvents, &["kind"])),
    ("build packets", (TableId::Packets, &[])),
    ("build tcp", (TableId::Tcp, &[])),
    ("build tcp_flows", (TableId::TcpFlows, &[])),
    ("build roce", (TableId::Roce, &[])),
];

/// Captures of the generator, in memory.
struct Generated {
    name: &'static str,
    bytes: Arc<[u8]>,
    frames: u64,
}

fn generated() -> Vec<Generated> {
    let kinds: [(&'static str, &[&str]); 3] = [
        ("bulk", &["--bytes", "30000000"]),
        ("small", &["--packets", "200000", "--flows", "2000"]),
        ("roce", &["--packets", "20000"]),
    ];
    let folder = std::env::temp_dir();
    kinds
        .map(|(kind, options)| {
            let path = folder.join(format!("wirelab-stages-{}-{kind}.pcap", std::process::id()));
            let done = Command::new(env!("CARGO_BIN_EXE_wirelab-bench"))
                .args(["generate", kind, "--out"])
                .arg(&path)
                .args(options)
                .output()
                .expect("the generator runs");
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
            let bytes: Arc<[u8]> = read_and_remove(&path).into();
            let frames = frames_of(&bytes).len() as u64;
            Generated { name: kind, bytes, frames }
        })
        .into()
}

fn read_and_remove(path: &Path) -> Vec<u8> {
    let bytes = std::fs::read(path).expect("a capture was made");
    std::fs::remove_file(path).expect("it can be removed");
    bytes
}

/// The frames of a capture, copied one by one.
fn frames_of(bytes: &Arc<[u8]>) -> Vec<(LinkType, u32, Vec<u8>)> {
    let mut reader = Reader::open(vec![Input::Bytes(bytes.clone())], &Limits::default()).expect("a capture");
    let mut frames = Vec::new();
    while let Some(window) = reader.next_window().expect("it can be read") {
        let records = window.records.iter();
        frames.extend(records.map(|record| (record.link, record.original_bytes, window.bytes(record).to_vec())));
    }
    frames
}

fn read(bytes: &Arc<[u8]>) -> u64 {
    let mut reader = Reader::open(vec![Input::Bytes(bytes.clone())], &Limits::default()).expect("a capture");
    let mut frames = 0;
    while let Some(window) = reader.next_window().expect("it can be read") {
        frames += black_box(&window.records).len() as u64;
    }
    frames
}

fn decode_all(frames: &[(LinkType, u32, Vec<u8>)], config: &DecodeConfig, chunk: &mut Chunk) {
    for some in frames.chunks(CHUNK_FRAMES) {
        chunk.clear();
        for (link, original_bytes, bytes) in some {
            decode(*link, bytes, *original_bytes, config, chunk);
        }
        black_box(&chunk.frames);
    }
}

/// Everything for these tables, on this thread; returns the rows.
fn run(bytes: &Arc<[u8]>, wanted: &[Wanted]) -> usize {
    let requests: Vec<_> = wanted
        .iter()
        .map(|(table, columns)| {
            let columns = columns.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
            ScanRequest { columns: Some(columns).filter(|some| !some.is_empty()), ..ScanRequest::new(*table) }
        })
        .collect();
    let options = Options { threads: NonZeroUsize::new(1), checksums: Checksums::Off, ..Options::default() };
    let mut scan = MultiScan::new(vec![Input::Bytes(bytes.clone())], &options, &requests).expect("a capture");
    let mut rows = 0;
    while let Some(batches) = scan.next_batches(&mut Unobserved).expect("it can be read") {
        rows += batches.iter().map(|(_, batch)| black_box(batch).num_rows()).sum::<usize>();
    }
    rows
}

fn group<'a>(criterion: &'a mut Criterion, stage: &str, of: &Generated) -> BenchmarkGroup<'a, WallTime> {
    let mut group = criterion.benchmark_group(format!("{stage}, {}", of.name));
    group.throughput(Throughput::Elements(of.frames)).sample_size(20);
    group
}

fn stages(criterion: &mut Criterion) {
    for of in &generated() {
        let frames = frames_of(&of.bytes);
        let (config, mut chunk) = (DecodeConfig::new(&Options::default()), Chunk::default());
        let mut alone = group(criterion, "alone", of);
        alone.bench_function("read", |bencher| bencher.iter(|| assert_eq!(read(&of.bytes), of.frames)));
        alone.bench_function("decode", |bencher| bencher.iter(|| decode_all(&frames, &config, &mut chunk)));
        alone.finish();
        let mut runs = group(criterion, "run", of);
        runs.bench_function("read and decode", |bencher| bencher.iter(|| run(&of.bytes, &[])));
        for (name, wanted) in STAGES {
            let is_of_roce = matches!(wanted.0, TableId::Roce | TableId::RoceEvents);
            if is_of_roce != (of.name == "roce") && wanted.0 != TableId::Packets {
                continue;
            }
            assert!(run(&of.bytes, &[wanted]) > 0, "{name} of {} has no rows", of.name);
            runs.bench_function(name, |bencher| bencher.iter(|| run(&of.bytes, &[wanted])));
        }
        runs.finish();
    }
}

criterion_group!(benches, stages);
criterion_main!(benches);
