//! TCP segments of a few connections with any numbers, flags, options and times, through the TCP analysis.
#![no_main]

use std::num::NonZeroUsize;

use libfuzzer_sys::fuzz_target;
use wirelab::scan::MultiScan;
use wirelab::{Options, ScanRequest, TableId, Unobserved};

/// Bytes of one segment's description; see [`segment`].
const STEP_BYTES: usize = 12;

fuzz_target!(|data: &[u8]| {
    let mut file = Vec::new();
    for field in [0xa1b2_3c4d_u32, 0x0004_0002, 0, 0, 262_144, 101] {
        file.extend(field.to_le_bytes());
    }
    let mut time_ns = 1_700_000_000_000_000_000_u64;
    for (number, step) in data.chunks_exact(STEP_BYTES).enumerate() {
        // A few microseconds to seconds, now and then backwards.
        let pause = u64::from(step[10]) << (step[11] % 24);
        time_ns = if step[11] >= 250 { time_ns.saturating_sub(pause) } else { time_ns + pause };
        let packet = segment(step, number as u16);
        for field in [time_ns / 1_000_000_000, time_ns % 1_000_000_000, packet.len() as u64, packet.len() as u64] {
            file.extend((field as u32).to_le_bytes());
        }
        file.extend(packet);
    }
    let options = Options { threads: NonZeroUsize::new(1), ..Options::default() };
    let requests = [TableId::Tcp, TableId::TcpFlows, TableId::CaptureQuality].map(ScanRequest::new);
    let mut scan = MultiScan::new(vec![file.into()], &options, &requests).expect("a capture");
    while scan.next_batches(&mut Unobserved).expect("no error").is_some() {}
});

/// An IPv4 packet with a TCP segment. Sequence numbers stay near a base, as in life: byte 1 picks one that wraps.
fn segment(step: &[u8], number: u16) -> Vec<u8> {
    let (is_reverse, port) = (step[0] & 1 != 0, u16::from(step[0] >> 1 & 3));
    let base: u32 = if step[1] & 1 != 0 { 0xffff_f000 } else { 1_000 };
    let near = |byte: u8, scale: u32| base.wrapping_add(u32::from(byte).wrapping_mul(scale));
    let (seq, ack) = (near(step[2], 1 << (step[1] >> 1 & 7)), near(step[3], 1 << (step[1] >> 4 & 7)));
    let payload = usize::from(step[4]) * if step[0] & 8 != 0 { 64 } else { 1 };
    let mut options: Vec<u8> = Vec::new();
    match step[5] % 6 {
        1 => options.extend([2, 4, 5, 180, 1, 3, 3, step[6], 4, 2, 1, 1]),
        2 => {
            options.extend([1, 1, 8, 10]);
            options.extend(u32::from(step[6]).to_be_bytes());
            options.extend(u32::from(step[7]).to_be_bytes());
        }
        3 => {
            options.extend([1, 1, 5, 10]);
            options.extend(near(step[6], 100).to_be_bytes());
            options.extend(near(step[7], 100).to_be_bytes());
        }
        4 => {
            options.extend([1, 1, 5, 18]);
            for byte in [step[6], step[7], step[8], step[9]] {
                options.extend(near(byte, 50).to_be_bytes());
            }
        }
        // Options as they come.
        5 => options.extend(&step[2..10]),
        _ => {}
    }
    let header = 20 + options.len();
    let total = 20 + header + payload;
    let (near_end, far_end) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let (source, target) = if is_reverse { (far_end, near_end) } else { (near_end, far_end) };
    let mut packet = vec![0x45, 0];
    packet.extend((total as u16).to_be_bytes());
    packet.extend(number.to_be_bytes());
    packet.extend([0x40, 0, 64, 6, 0, 0]);
    packet.extend(source);
    packet.extend(target);
    let ports = if is_reverse { [80, 4_000 + port] } else { [4_000 + port, 80] };
    for port in ports {
        packet.extend(port.to_be_bytes());
    }
    packet.extend(seq.to_be_bytes());
    packet.extend(ack.to_be_bytes());
    packet.extend([(header as u8 / 4) << 4, step[9]]);
    packet.extend((u16::from(step[8]) << 4).to_be_bytes());
    packet.extend([0; 4]);
    packet.extend(options);
    packet.resize(total, number as u8);
    packet
}
