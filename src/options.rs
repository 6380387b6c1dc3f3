//! What a caller may set for a run, and the limits that guard it.

use std::num::NonZeroUsize;

use crate::analyze::RoceEndpoint;

/// Settings of a run. `Options::default()` suits an ordinary capture.
#[derive(Clone, Debug)]
pub struct Options {
    /// Worker threads; `None` takes one per core. The rows are the same for any number.
    pub threads: Option<NonZeroUsize>,
    /// Link speed in bits per second: turns pause quanta into nanoseconds. Unknown by default.
    pub link_speed_bps: Option<u64>,
    /// A pause that lasts as long is a storm, in nanoseconds.
    pub pause_storm_ns: i64,
    /// UDP destination ports read as VXLAN.
    pub vxlan_ports: Vec<u16>,
    /// UDP destination ports read as RoCEv2.
    pub roce_ports: Vec<u16>,
    /// Queue pairs that a log beside the capture names (perftest prints address, QPN and PSN of both ends): pairs them for
    /// certain where no connection manager's messages were captured.
    pub roce_endpoints: Vec<RoceEndpoint>,
    /// Whether to verify checksums and invariant CRCs, which touches every captured byte.
    pub checksums: Checksums,
    /// Bytes that the tables of an opened capture may take in memory together; larger ones are kept in temporary files, which
    /// read the same. `None` takes half of the machine's memory. A scan holds no tables.
    pub memory_budget_bytes: Option<u64>,
    pub limits: Limits,
}

/// When checksums are verified; columns that tell of them are null where they are not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Checksums {
    /// Unless the input is known to be 256 MB or more, as stored.
    #[default]
    Auto,
    On,
    Off,
}

impl Checksums {
    const AUTO_BYTES: u64 = 256_000_000;

    pub(crate) fn is_on(self, stored_bytes: Option<u64>) -> bool {
        match self {
            Self::Auto => stored_bytes.is_none_or(|bytes| bytes < Self::AUTO_BYTES),
            Self::On => true,
            Self::Off => false,
        }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            threads: None,
            link_speed_bps: None,
            pause_storm_ns: 200_000_000,
            vxlan_ports: vec![4789, 8472],
            roce_ports: vec![4791],
            roce_endpoints: Vec::new(),
            checksums: Checksums::default(),
            memory_budget_bytes: None,
            limits: Limits::default(),
        }
    }
}

impl Options {
    pub(crate) fn thread_count(&self) -> usize {
        self.threads.or_else(|| std::thread::available_parallelism().ok()).map_or(1, NonZeroUsize::get)
    }
}

/// Hard limits. Hitting one leaves a finding in `capture_quality`; the rows so far are kept.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Largest packet or block, in bytes, that is believed.
    pub block_bytes: u32,
    /// Most interfaces of one capture. Frames of further ones keep their sizes, without link type and time.
    pub interfaces: usize,
    /// Most bytes of packet comments of one file; further comments are dropped.
    pub comment_bytes: usize,
    /// Most files of one capture.
    pub files: usize,
    /// Most bytes a compressed file may grow to, as a multiple of its stored size (guards small "bombs").
    pub decompress_ratio: u64,
    /// Decompressed bytes that are always allowed, whatever the ratio.
    pub decompress_free_bytes: u64,
    /// Tunnels inside each other that are followed.
    pub tunnel_depth: usize,
    /// Most flows that are told apart; frames of further flows carry no `flow_id`.
    pub flows: usize,
    /// Bytes of IP fragments that are held until their datagram is whole; the oldest datagram goes first.
    pub fragment_bytes: usize,
    /// Frames of the capture that a row may wait for later evidence; what comes after them does not count for it.
    pub hold_frames: u64,
    /// Nanoseconds of capture time that a row may wait for later evidence; likewise.
    pub hold_ns: i64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            block_bytes: 16 << 20,
            interfaces: 65_536,
            comment_bytes: 64 << 20,
            files: 10_000,
            decompress_ratio: 1_000,
            decompress_free_bytes: 1 << 30,
            tunnel_depth: 4,
            flows: 16_000_000,
            fragment_bytes: 64 << 20,
            hold_frames: 262_144,
            hold_ns: 10_000_000_000,
        }
    }
}
