//! Any frames, short ones, as one capture, through every analysis and into every table.
#![no_main]

use std::num::NonZeroUsize;

use libfuzzer_sys::fuzz_target;
use wirelab::scan::MultiScan;
use wirelab::tables::TABLES;
use wirelab::{Options, ScanRequest, Unobserved};

// A list of frames, each: length (1 byte), bytes cut off (1 byte), pause before it (1 byte), the bytes.
fuzz_target!(|data: &[u8]| {
    let mut file = Vec::new();
    for field in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 1] {
        file.extend(field.to_le_bytes());
    }
    let (mut rest, mut time_ns) = (data, 1_700_000_000_000_000_000_u64);
    while let [length, cut, pause, tail @ ..] = rest {
        let length = usize::from(*length).min(tail.len());
        let (frame, after) = tail.split_at(length);
        time_ns += 1 << (pause % 36);
        let original = frame.len() as u64 + u64::from(*cut);
        for field in [time_ns / 1_000_000_000, time_ns % 1_000_000_000, frame.len() as u64, original] {
            file.extend((field as u32).to_le_bytes());
        }
        file.extend_from_slice(frame);
        rest = after;
    }
    let options =
        Options { threads: NonZeroUsize::new(1), link_speed_bps: Some(100_000_000_000), ..Options::default() };
    let requests = TABLES.map(ScanRequest::new);
    let mut scan = MultiScan::new(vec![file.into()], &options, &requests).expect("a capture");
    while scan.next_batches(&mut Unobserved).expect("no error").is_some() {}
});
