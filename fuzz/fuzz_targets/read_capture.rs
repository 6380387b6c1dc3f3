//! Any bytes as a capture file: read to the end, decoded into `packets` and `capture_quality`.
#![no_main]

use std::num::NonZeroUsize;

use libfuzzer_sys::fuzz_target;
use wirelab::scan::MultiScan;
use wirelab::{Limits, Options, ScanRequest, TableId, Unobserved};

fuzz_target!(|data: &[u8]| {
    // Small limits on growth: a run shall be short, and reaching them is part of what is tested.
    let limits =
        Limits { decompress_free_bytes: 4 << 20, decompress_ratio: 50, interfaces: 1_000, ..Limits::default() };
    let options = Options { threads: NonZeroUsize::new(1), limits, ..Options::default() };
    let requests = [TableId::Packets, TableId::Interfaces, TableId::CaptureQuality].map(ScanRequest::new);
    let Ok(mut scan) = MultiScan::new(vec![data.to_vec().into()], &options, &requests) else { return };
    while let Ok(Some(_)) = scan.next_batches(&mut Unobserved) {}
});
