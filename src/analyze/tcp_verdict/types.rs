//! What goes in and what comes out: segments, verdicts, causes, outcomes, evidence, limits.

use serde::{Deserialize, Serialize};

pub(super) use crate::analyze::segment::{ACK, Checksum, FIN, RST, SYN, Segment};

/// What a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Verdict {
    /// Sent for the first time and in its place; every pure acknowledgement too.
    New,
    /// The sender sent these bytes again.
    Retransmit,
    /// Sent once, overtaken on the way.
    Reordered,
    /// The network delivered the same packet twice.
    NetworkDuplicate,
    /// The capture holds the same packet twice.
    CaptureDuplicate,
    /// Asks an idle peer whether it is still there.
    KeepAlive,
    /// Asks a peer with a closed window whether it has opened.
    WindowProbe,
    /// Checksum wrong: the receiver throws it away.
    Damaged,
    /// Either a retransmission or a reordered original; nothing in the packets tells which.
    Ambiguous,
    /// Does not fit this connection at all (a sequence number far outside the window).
    Unknown,
}

impl Verdict {
    /// Number of values.
    pub const COUNT: usize = 10;

    /// The name used in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Retransmit => "retransmit",
            Self::Reordered => "reordered",
            Self::NetworkDuplicate => "network_duplicate",
            Self::CaptureDuplicate => "capture_duplicate",
            Self::KeepAlive => "keep_alive",
            Self::WindowProbe => "window_probe",
            Self::Damaged => "damaged",
            Self::Ambiguous => "ambiguous",
            Self::Unknown => "unknown",
        }
    }
}

/// Why a segment was sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Cause {
    /// Duplicate ACKs, SACK or RACK said it was lost.
    Fast,
    /// The retransmission timer ran out.
    Timeout,
    /// Resent on returning ACKs after a timeout.
    SlowStart,
    /// Tail loss probe.
    Probe,
    /// The path MTU turned out smaller.
    Pmtu,
    /// A SYN sent again.
    Syn,
    /// A SYN/ACK sent again.
    SynAck,
    /// Not to be told from this tap.
    Unknown,
}

impl Cause {
    /// Number of values.
    pub const COUNT: usize = 8;

    /// The name used in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Timeout => "timeout",
            Self::SlowStart => "slow_start",
            Self::Probe => "probe",
            Self::Pmtu => "pmtu",
            Self::Syn => "syn",
            Self::SynAck => "synack",
            Self::Unknown => "unknown",
        }
    }
}

/// Whether sending again was needed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Outcome {
    /// Acknowledged, and the receiver did not report the bytes as received twice.
    Needed,
    /// The receiver had the bytes already (D-SACK, RFC 2883).
    Spurious,
    /// No acknowledgements seen, no SACK, or not decided in time.
    Unknown,
}

impl Outcome {
    /// Number of values.
    pub const COUNT: usize = 3;

    /// The name used in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Needed => "needed",
            Self::Spurious => "spurious",
            Self::Unknown => "unknown",
        }
    }
}

/// What a judgement rests on: a set of flags.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Evidence(pub u32);

impl Evidence {
    /// Order of the IP identifications.
    pub const IP_ID: Self = Self(1);
    /// SACK blocks of the receiver.
    pub const SACK: Self = Self(1 << 1);
    /// A D-SACK block of the receiver.
    pub const DSACK: Self = Self(1 << 2);
    /// Order of the TSvals, or a TSecr.
    pub const TSVAL: Self = Self(1 << 3);
    /// Acknowledgement numbers, duplicate ACKs included.
    pub const ACK: Self = Self(1 << 4);
    /// Only the capture time.
    pub const TIME: Self = Self(1 << 5);
    /// The same bytes were seen before.
    pub const SEEN_BYTES: Self = Self(1 << 6);
    /// Starts before the highest sequence number sent.
    pub const SND_MAX: Self = Self(1 << 7);
    /// An ICMP "packet too big".
    pub const ICMP: Self = Self(1 << 8);
    /// A silence before it as long as a timer.
    pub const QUIET: Self = Self(1 << 9);
    /// The TCP checksum.
    pub const CHECKSUM: Self = Self(1 << 10);
    /// Another capture interface.
    pub const INTERFACE: Self = Self(1 << 11);
    /// A lower TTL.
    pub const TTL: Self = Self(1 << 12);
    /// The receiver's closed window.
    pub const WINDOW: Self = Self(1 << 13);
    /// Every field that a resent packet would change is the same.
    pub const SAME_PACKET: Self = Self(1 << 14);
    /// What the other copies of this direction turned out to be.
    pub const HISTORY: Self = Self(1 << 15);
    /// Shorter than the piece it repeats and than the MSS.
    pub const SIZE: Self = Self(1 << 16);

    /// Names by bit, in order.
    pub const NAMES: [&'static str; 17] = [
        "ip_id",
        "sack",
        "dsack",
        "tsval",
        "ack",
        "time",
        "seen_bytes",
        "snd_max",
        "icmp",
        "quiet",
        "checksum",
        "interface",
        "ttl",
        "window",
        "same_packet",
        "history",
        "size",
    ];

    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether all of `other` is in it.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}

/// The final word on one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// What the segment is.
    pub verdict: Verdict,
    /// Why it was resent; only for [`Verdict::Retransmit`].
    pub cause: Option<Cause>,
    /// Whether that was needed; only for [`Verdict::Retransmit`].
    pub outcome: Option<Outcome>,
    /// What this rests on.
    pub evidence: Evidence,
    /// How many segments of one MSS the sender resent here; 0 unless a retransmission.
    pub retransmit_segments: u32,
    /// The frame that carried these bytes, or this packet, first; `None` if none did, or it is no longer remembered.
    pub first_frame_no: Option<u64>,
}

impl Judgement {
    /// A judgement on something that was not resent.
    pub const fn plain(verdict: Verdict, evidence: Evidence) -> Self {
        Self { verdict, cause: None, outcome: None, evidence, retransmit_segments: 0, first_frame_no: None }
    }
}

/// Where the tap is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Vantage {
    /// At the end that opened the connection.
    Client,
    /// At the end that accepted it.
    Server,
    /// Between two hops.
    Middle,
    /// Not to be told.
    #[default]
    Unknown,
}

impl Vantage {
    /// The name used in tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Server => "server",
            Self::Middle => "middle",
            Self::Unknown => "unknown",
        }
    }
}

/// Counts of one direction, named after its sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DirectionSummary {
    /// Whether any segment of this direction was seen.
    pub is_seen: bool,
    /// Whether the tap is so near the sender that what it sees is what was sent, in order.
    pub is_at_sender: bool,
    /// Rows by verdict, indexed by `Verdict as usize`.
    #[serde(with = "crate::analyze::frozen::counts")]
    pub verdict_count: [u64; Verdict::COUNT],
    /// Retransmitted segments (of one MSS) by cause and outcome, indexed by `as usize`.
    #[serde(with = "crate::analyze::frozen::counts_by_two")]
    pub retransmit_segments: [[u64; Outcome::COUNT]; Cause::COUNT],
    /// ACKs received by this sender whose first SACK block reports bytes below the ACK (Linux: TCPDSACKRecv).
    pub dsack_old_count: u64,
    /// ACKs received whose first SACK block lies inside the second (Linux: TCPDSACKOfoRecv).
    pub dsack_ooo_count: u64,
    /// Segments so reported, as the sender would believe them (Linux: TCPDSACKRecvSegs).
    pub dsack_segments: u64,
}

impl DirectionSummary {
    /// Segments resent for this cause, whatever became of them.
    pub fn resent(&self, cause: Cause) -> u64 {
        self.retransmit_segments[cause as usize].iter().sum()
    }

    /// All segments resent.
    pub fn resent_total(&self) -> u64 {
        self.retransmit_segments.iter().flatten().sum()
    }
}

/// What is known about a connection so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Where the tap is.
    pub vantage: Vantage,
    /// Which direction the client sends in, if the handshake was seen.
    pub client_dir: Option<u8>,
    /// Whether both ends said SACK-permitted; `None` if that was not seen.
    pub is_sack_negotiated: Option<bool>,
    /// By sender.
    pub directions: [DirectionSummary; 2],
}
