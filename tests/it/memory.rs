//! Memory stays bounded whatever the size of the capture.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use wirelab::scan::MultiScan;
use wirelab::{Input, ScanRequest, TableId, Unobserved};

use crate::support::generate::{START_NS, pcap_header, pcap_record_header, syn, udp};
use crate::support::{Scratch, process_bytes, with_threads};

/// Anonymous memory that a run may take beyond what the process had before. Mapped pages of the file are not counted: the
/// system takes them back whenever it wants.
const BOUND_BYTES: u64 = 100 << 20;
const FRAME_BYTES: usize = 9_014;

#[test]
fn a_large_plain_file_is_scanned_in_bounded_memory() {
    measured_alone("a_large_plain_file_is_scanned_in_bounded_memory", || {
        let scratch = Scratch::new("memory-plain");
        let path = scratch.path().join("large.pcap");
        let frames = write_sparse(&path, 400 << 20);
        scan_within_bound(vec![Input::Path(path)], frames, BOUND_BYTES);
    });
}

#[test]
fn a_large_stream_is_scanned_in_bounded_memory() {
    measured_alone("a_large_stream_is_scanned_in_bounded_memory", || {
        let frames = 1_000_000;
        let input = Input::Reader(Box::new(Endless::new(frames)), "generated".to_owned());
        scan_within_bound(vec![input], frames, BOUND_BYTES);
    });
}

#[test]
fn a_flood_of_connections_that_are_all_open_at_a_time_is_scanned_in_bounded_memory() {
    measured_alone("a_flood_of_connections_that_are_all_open_at_a_time_is_scanned_in_bounded_memory", || {
        let mut file = pcap_header(1);
        let frames = 250_000_u32;
        for number in 0..frames {
            let [_, high, middle, low] = number.to_be_bytes();
            let frame = syn([10, high, middle, low], [10, 200, 0, 1], (10_000, 443));
            file.extend(pcap_record_header(START_NS + 1_000 * i64::from(number), frame.len() as u32));
            file.extend(frame);
        }
        // With all of their states at hand they would take 1.6 GB.
        scan_within_bound(vec![Input::Bytes(file.into())], u64::from(frames), 900 << 20);
    });
}

/// Runs `work` in a process of its own, where no other test's memory is in the way.
pub fn measured_alone(test: &str, work: fn()) {
    const VARIABLE: &str = "WIRELAB_MEMORY_TEST";
    if process_bytes("RssAnon").is_none() {
        println!("SKIPPED: this system does not tell a process's anonymous memory");
        return;
    }
    if std::env::var(VARIABLE).as_deref() == Ok(test) {
        return work();
    }
    let binary = std::env::current_exe().unwrap();
    let name = if test.contains("::") { test.to_owned() } else { format!("memory::{test}") };
    let output = std::process::Command::new(binary)
        .args([name.as_str(), "--exact", "--nocapture"])
        .env(VARIABLE, test)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    println!("{said}");
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    assert!(said.contains("1 passed") && said.contains("anonymous memory"), "the test did not run: {said}");
}

fn scan_within_bound(inputs: Vec<Input>, frames: u64, bound_bytes: u64) {
    static PEAK: AtomicU64 = AtomicU64::new(0);
    static IS_OVER: AtomicBool = AtomicBool::new(false);
    let note = || {
        PEAK.fetch_max(process_bytes("RssAnon").unwrap_or(0), Ordering::Relaxed);
    };
    let before = process_bytes("RssAnon").unwrap();
    let watcher = std::thread::spawn(move || {
        while !IS_OVER.load(Ordering::Relaxed) {
            note();
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    });
    let requests = [TableId::Packets, TableId::Tcp, TableId::TcpFlows, TableId::Flows].map(ScanRequest::new);
    let mut scan = MultiScan::new(inputs, &with_threads(2), &requests).unwrap();
    let mut rows = 0;
    while let Some(batches) = scan.next_batches(&mut Unobserved).unwrap() {
        note();
        let packets = batches.iter().filter(|(table, _)| *table == TableId::Packets);
        rows += packets.map(|(_, batch)| batch.num_rows() as u64).sum::<u64>();
    }
    IS_OVER.store(true, Ordering::Relaxed);
    watcher.join().unwrap();
    assert_eq!(rows, frames);
    let taken = PEAK.load(Ordering::Relaxed).saturating_sub(before);
    println!("anonymous memory: {} MiB beyond the {} MiB before", taken >> 20, before >> 20);
    assert!(taken <= bound_bytes, "{} MiB, allowed are {}", taken >> 20, bound_bytes >> 20);
}

/// A file of jumbo frames whose payloads are holes; returns how many.
fn write_sparse(path: &Path, bytes: u64) -> u64 {
    let frames = bytes / (16 + FRAME_BYTES as u64);
    let mut file = File::create(path).unwrap();
    file.write_all(&pcap_header(1)).unwrap();
    for number in 0..frames {
        file.write_all(&pcap_record_header(START_NS + 1_000 * number as i64, FRAME_BYTES as u32)).unwrap();
        let frame = frame(number);
        file.write_all(&frame[..64]).unwrap();
        file.seek(SeekFrom::Current(FRAME_BYTES as i64 - 64)).unwrap();
    }
    let end = file.stream_position().unwrap();
    file.set_len(end).unwrap();
    frames
}

fn frame(number: u64) -> Vec<u8> {
    let host = (number % 100) as u8;
    udp([10, 0, 0, host], [10, 0, 1, 1], (10_000 + host as u16, 5201), FRAME_BYTES - 42)
}

/// A capture of small frames that is made while it is read.
struct Endless {
    header: Vec<u8>,
    frame: Vec<u8>,
    left: u64,
    number: u64,
    ready: Vec<u8>,
    at: usize,
}

impl Endless {
    fn new(frames: u64) -> Self {
        let frame = udp([10, 0, 0, 1], [10, 0, 1, 1], (10_000, 5201), 22);
        Self { header: pcap_header(1), frame, left: frames, number: 0, ready: Vec::new(), at: 0 }
    }
}

impl Read for Endless {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        if self.at == self.ready.len() {
            self.ready.clear();
            self.ready.append(&mut self.header);
            self.at = 0;
            for _ in 0..self.left.min(1_000) {
                self.ready.extend(pcap_record_header(START_NS + 1_000 * self.number as i64, self.frame.len() as u32));
                self.ready.extend(&self.frame);
                self.number += 1;
            }
            self.left -= self.left.min(1_000);
        }
        let given = buffer.len().min(self.ready.len() - self.at);
        buffer[..given].copy_from_slice(&self.ready[self.at..self.at + given]);
        self.at += given;
        Ok(given)
    }
}
