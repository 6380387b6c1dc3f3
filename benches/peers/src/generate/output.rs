//! The capture file being written, and the generator's own account of what is in it.

use std::fs::File;
use std::io::{self, BufWriter, Write};

/// Nanosecond pcap, little-endian (draft-ietf-opsawg-pcap).
const MAGIC_NS: u32 = 0xa1b2_3c4d;
const SNAP_LEN: u32 = 262_144;
const LINK_ETHERNET: u32 = 1;
/// 2025-01-01 00:00:00 UTC: captures start at a fixed time, so that a seed is all they depend on.
const START_S: u64 = 1_735_689_600;

pub(crate) struct CaptureFile {
    out: BufWriter<Box<dyn Write>>,
    pub truth: Truth,
}

/// What was written. `retransmissions` are TCP segments all of whose payload had passed the tap before.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Truth {
    pub frames: u64,
    pub bytes: u64,
    pub tcp: u64,
    pub tcp_flows: u64,
    pub retransmissions: u64,
    pub roce: u64,
    pub naks: u64,
    last_time_ns: u64,
}

impl CaptureFile {
    pub fn create(path: &str) -> io::Result<Self> {
        Self::to(Box::new(File::create(path)?))
    }

    pub fn to(out: Box<dyn Write>) -> io::Result<Self> {
        let mut out = BufWriter::with_capacity(1 << 20, out);
        out.write_all(&MAGIC_NS.to_le_bytes())?;
        out.write_all(&[2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0])?;
        out.write_all(&SNAP_LEN.to_le_bytes())?;
        out.write_all(&LINK_ETHERNET.to_le_bytes())?;
        Ok(Self { out, truth: Truth { bytes: 24, ..Truth::default() } })
    }

    /// Appends a frame seen `time_ns` after the capture's start.
    pub fn frame(&mut self, time_ns: u64, frame: &[u8]) -> io::Result<()> {
        debug_assert!(time_ns >= self.truth.last_time_ns, "frames are written in time order");
        let mut header = [0_u8; 16];
        header[..4].copy_from_slice(&((START_S + time_ns / 1_000_000_000) as u32).to_le_bytes());
        header[4..8].copy_from_slice(&((time_ns % 1_000_000_000) as u32).to_le_bytes());
        header[8..12].copy_from_slice(&(frame.len() as u32).to_le_bytes());
        header[12..].copy_from_slice(&(frame.len() as u32).to_le_bytes());
        self.out.write_all(&header)?;
        self.out.write_all(frame)?;
        self.truth.frames += 1;
        self.truth.bytes += 16 + frame.len() as u64;
        self.truth.last_time_ns = time_ns;
        Ok(())
    }

    pub fn finish(mut self) -> io::Result<Truth> {
        self.out.flush()?;
        Ok(self.truth)
    }
}

impl Truth {
    pub fn to_json(&self) -> String {
        format!(
            "{{\"frames\": {}, \"bytes\": {}, \"tcp\": {}, \"tcp_flows\": {}, \"retransmissions\": {}, \
             \"roce\": {}, \"naks\": {}, \"duration_ns\": {}}}",
            self.frames,
            self.bytes,
            self.tcp,
            self.tcp_flows,
            self.retransmissions,
            self.roce,
            self.naks,
            self.last_time_ns
        )
    }
}
