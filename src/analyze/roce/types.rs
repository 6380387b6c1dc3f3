//! What the analysis of RoCE is told, and what it says of a packet.

use super::psn::Psn;
use crate::analyze::{Mark, Moment};
use crate::wire::{CmMessage, Ip, RocePacket};

/// One packet, as the tap saw it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoceSeen<'a> {
    /// Running number of the packet among all RoCE packets of the capture.
    pub row: u64,
    /// Place of its frame in the window.
    pub at: u32,
    /// How far the capture had come: what waits does so by this.
    pub moment: Moment,
    pub mark: Mark,
    pub src_ip: Ip,
    pub dst_ip: Ip,
    pub interface: u32,
    pub vni: Option<u32>,
    /// Device of the capturing host, where a capture of several devices tells it.
    pub if_index: u32,
    /// IPv4 identification.
    pub ip_id: Option<u16>,
    pub ttl: u8,
    pub traffic_class: u8,
    /// Priority of the VLAN tag.
    pub pcp: Option<u8>,
    /// The capture says that the capturing host sent it (`Some(true)`) or received it.
    pub is_from_us: Option<bool>,
    pub packet: &'a RocePacket,
    /// Its invariant CRC is wrong.
    pub is_icrc_bad: bool,
    /// Its IP or UDP checksum is wrong, in a capture where invariant CRCs are right.
    pub is_checksum_bad: bool,
    /// Its invariant CRC is right.
    pub is_proven: bool,
    pub cm: Option<&'a CmMessage>,
}

impl RoceSeen<'_> {
    pub fn psn(&self) -> Psn {
        Psn::new(self.packet.psn)
    }

    pub fn ecn(&self) -> u8 {
        self.traffic_class & 3
    }
}

/// Transport service of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Service {
    Rc,
    Uc,
    Rd,
    Ud,
    Xrc,
}

impl Service {
    /// The service of an opcode; `None` for CNPs and reserved codes.
    pub fn of(opcode: u8) -> Option<Self> {
        Some(match opcode >> 5 {
            0 => Self::Rc,
            1 => Self::Uc,
            2 => Self::Rd,
            3 => Self::Ud,
            5 => Self::Xrc,
            _ => return None,
        })
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Rc => "RC",
            Self::Uc => "UC",
            Self::Rd => "RD",
            Self::Ud => "UD",
            Self::Xrc => "XRC",
        }
    }

    /// The responder acknowledges, and its requester sends again what is lost.
    pub fn is_reliable(self) -> bool {
        matches!(self, Self::Rc | Self::Xrc)
    }
}

/// What a packet asks for or brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    Send,
    Write,
    Read,
    CompareSwap,
    FetchAdd,
}

impl Operation {
    pub fn name(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Write => "write",
            Self::Read => "read",
            Self::CompareSwap => "compare_swap",
            Self::FetchAdd => "fetch_add",
        }
    }

    /// The responder answers with data.
    pub fn has_response(self) -> bool {
        matches!(self, Self::Read | Self::CompareSwap | Self::FetchAdd)
    }
}

/// What a packet is in the dialogue of two queue pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Of the requester: (operation, starts a message, ends it).
    Request(Operation, bool, bool),
    /// Read response: (first, last).
    Response(bool, bool),
    AtomicResponse,
    Acknowledge,
    Notification,
    Other,
}

impl Role {
    pub fn of(opcode: u8) -> Self {
        use Operation::*;
        if matches!(opcode, 0x80 | 0x81) {
            return Self::Notification;
        }
        if opcode >> 5 == 4 || opcode >> 5 > 5 {
            return Self::Other;
        }
        match opcode & 0x1f {
            0x00 => Self::Request(Send, true, false),
            0x01 => Self::Request(Send, false, false),
            0x02 | 0x03 | 0x16 => Self::Request(Send, false, true),
            0x04 | 0x05 | 0x17 => Self::Request(Send, true, true),
            0x06 => Self::Request(Write, true, false),
            0x07 => Self::Request(Write, false, false),
            0x08 | 0x09 => Self::Request(Write, false, true),
            0x0a | 0x0b => Self::Request(Write, true, true),
            0x0c => Self::Request(Read, true, true),
            0x0d => Self::Response(true, false),
            0x0e => Self::Response(false, false),
            0x0f => Self::Response(false, true),
            0x10 => Self::Response(true, true),
            0x11 => Self::Acknowledge,
            0x12 => Self::AtomicResponse,
            0x13 => Self::Request(CompareSwap, true, true),
            0x14 => Self::Request(FetchAdd, true, true),
            _ => Self::Other,
        }
    }
}

/// What the requester did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Sent {
    New,
    Retransmit,
    /// The network copied a packet that was sent once.
    NetworkDuplicate,
    /// The capture holds the packet twice.
    CaptureDuplicate,
    Unknown,
}

impl Sent {
    pub fn name(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Retransmit => "retransmit",
            Self::NetworkDuplicate => "network_duplicate",
            Self::CaptureDuplicate => "capture_duplicate",
            Self::Unknown => "unknown",
        }
    }
}

/// Why the requester sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    Nak,
    Rnr,
    Timeout,
    Reissue,
    Unknown,
}

impl Cause {
    pub const ALL: [Self; 5] = [Self::Nak, Self::Rnr, Self::Timeout, Self::Reissue, Self::Unknown];

    pub fn name(self) -> &'static str {
        match self {
            Self::Nak => "nak",
            Self::Rnr => "rnr",
            Self::Timeout => "timeout",
            Self::Reissue => "reissue",
            Self::Unknown => "unknown",
        }
    }
}

/// How a packet came to its receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Arrival {
    InOrder,
    OutOfSequence,
    Duplicate,
    Damaged,
    Unknown,
}

impl Arrival {
    pub fn name(self) -> &'static str {
        match self {
            Self::InOrder => "in_order",
            Self::OutOfSequence => "out_of_sequence",
            Self::Duplicate => "duplicate",
            Self::Damaged => "damaged",
            Self::Unknown => "unknown",
        }
    }
}

/// What a judgement rests on; a set of bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence(pub u32);

impl Evidence {
    pub const NAMES: [&'static str; 15] = [
        "psn_expected",
        "psn_gap",
        "psn_behind",
        "seen_before",
        "same_ip_id",
        "older_ip_id",
        "newer_ip_id",
        "nak",
        "rnr_nak",
        "silence",
        "acknowledged",
        "icrc_or_checksum",
        "tap_at_receiver",
        "tap_elsewhere",
        "refused",
    ];
    /// The number is the next one at this tap.
    pub const PSN_EXPECTED: Self = Self(1);
    /// Numbers before it have not passed the tap.
    pub const PSN_GAP: Self = Self(1 << 1);
    /// It lies before what has passed the tap.
    pub const PSN_BEHIND: Self = Self(1 << 2);
    pub const SEEN_BEFORE: Self = Self(1 << 3);
    pub const SAME_IP_ID: Self = Self(1 << 4);
    pub const OLDER_IP_ID: Self = Self(1 << 5);
    pub const NEWER_IP_ID: Self = Self(1 << 6);
    pub const NAK: Self = Self(1 << 7);
    pub const RNR_NAK: Self = Self(1 << 8);
    /// Nothing was sent either way for the length of a timeout.
    pub const SILENCE: Self = Self(1 << 9);
    pub const ACKNOWLEDGED: Self = Self(1 << 10);
    pub const DAMAGE: Self = Self(1 << 11);
    /// What was lost or changed shows that the tap is behind the network, at the receiver.
    pub const TAP_AT_RECEIVER: Self = Self(1 << 12);
    /// It shows that the tap is somewhere else.
    pub const TAP_ELSEWHERE: Self = Self(1 << 13);
    /// The responder was not ready (RNR) and did not take it.
    pub const REFUSED: Self = Self(1 << 14);

    pub fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// What is said of one packet once it can be said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RoceJudgement {
    pub row: u64,
    pub sent: Option<Sent>,
    pub cause: Option<Cause>,
    pub arrival: Option<Arrival>,
    pub evidence: Evidence,
}

/// What two queue pairs were paired by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PairedBy {
    #[default]
    None,
    /// The connection manager's messages.
    Cm,
    /// A log of perftest beside the capture, or the like.
    Log,
    /// Every packet names both (datagrams).
    Deth,
    /// Acknowledgements that fit the requests of one queue pair alone.
    Psn,
    /// Acknowledgements fit several; the one with the same number was taken.
    SameNumber,
}

impl PairedBy {
    pub fn name(self) -> Option<&'static str> {
        Some(match self {
            Self::None => return None,
            Self::Cm => "cm",
            Self::Log => "perftest",
            Self::Deth => "deth",
            Self::Psn => "psn",
            Self::SameNumber => "same_number",
        })
    }
}

/// One end of a connection, as a log beside the capture tells (perftest: "local address: ... QPN 0x.. PSN 0x..").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoceEndpoint {
    pub ip: Ip,
    /// Queue pair number.
    pub qpn: u32,
    /// Packet sequence number of its first request.
    pub psn: u32,
    /// Remote key of its memory, where the log gives one.
    pub rkey: Option<u32>,
    /// Virtual address of its memory, where the log gives one.
    pub vaddr: Option<u64>,
    /// Queue pair number of the other end, where the log tells which ends belong together.
    pub peer_qpn: Option<u32>,
}
